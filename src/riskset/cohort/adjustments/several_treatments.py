"""Weights for several treatments, from generalised propensity scores or by entropy balancing."""

import itertools
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskset._errors import CohortError, InputError, counted
from riskset._keywords import takes
from riskset._runtime import Runtime
from riskset._settings import bad_setting
from riskset._types import AnyArray, Index, Matrix, Rows
from riskset.cohort.adjustments.adjustment import (
    Adjustment,
    Estimand,
    effective_size,
    narrowed,
    start,
)
from riskset.cohort.adjustments.adjustment_settings import SeveralTreatments
from riskset.cohort.adjustments.balancing_weights import Standardised, means_of, tilted
from riskset.cohort.covariates.covariate_balance import balance
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.population import Population
from riskset.cohort.propensity.generalised_score import TreatedPeople, fit_generalised_score
from riskset.data.checks import Places
from riskset.data.design import Design
from riskset.data.frame import data_frame
from riskset.data.labels import typed_labels
from riskset.model.penalty import Penalty

__all__ = ["TreatmentWeights", "weight_treatments"]

POSITIVE = 1e-10
"""A person nearer than this to certainty has no like in another arm."""


@dataclass(frozen=True, eq=False, repr=False)
class TreatmentWeights:
    """Result of `weight_treatments`.

    Attributes
    ----------
    treatments : tuple
        The k treatments in sorted order.
    code : (n,) int64
        Place of each row's treatment in `treatments`.
    score : (n, k) float64 or None
        Generalised propensity scores. None for entropy balancing.
    weight : (n,) float64
    estimand : {"ate", "att", "ato"}
    penalty : Penalty or None
        The penalty of the regression, if scores were fitted with one.
    population : Population
        The people, with person ids and sampling weights; its arms are the first treatment (1) and
        all others (0).

    Examples
    --------
    >>> import riskset as rs
    >>> score = [[0.5, 0.25, 0.25], [0.2, 0.4, 0.4], [0.25, 0.5, 0.25]]
    >>> found = rs.cohort.weight_treatments(["a", "b", "c"], score=score)
    >>> found
    TreatmentWeights(ato: 1 a, 1 b, 1 c)
    >>> found.weight
    array([0.2 , 0.25, 0.4 ])
    """

    treatments: tuple[object, ...]
    code: Index
    score: Matrix | None
    weight: Rows
    estimand: Estimand
    population: Population
    penalty: Penalty | None = None

    def effective_sizes(self) -> dict[object, float]:
        """Return Kish's effective sample size of each treatment."""
        return {
            name: effective_size(self.weight[self.code == k])
            for k, name in enumerate(self.treatments)
        }

    def rows(self, target: object, comparator: object) -> Index:
        """Return the rows that have one of two treatments."""
        pair = [self._place(name) for name in (target, comparator)]
        if pair[0] == pair[1]:
            raise InputError(
                f"the target and the comparator are both {target!r}.",
                hint="name two treatments.",
            )
        return np.flatnonzero(np.isin(self.code, pair))

    def pair(self, target: object, comparator: object) -> Adjustment:
        """Return the weights of two treatments, for `balance`, curves and `fit_outcome`.

        Its population are the `rows` of the two, so outcomes and covariates are those of these
        rows.
        """
        rows = self.rows(target, comparator)
        own = self.population.take(rows)
        people = Population(
            (self.code[rows] == self._place(target)).astype(np.int64),
            row_id=rows,
            person_id=own.person_id,
            sampling_weight=own.sampling_weight if own.has_sampling_weight else None,
        )
        return narrowed(
            start(people), "weighting", [], weight=self.weight[rows], estimand=self.estimand
        )

    def balance(self, X: object, library: str | None = None) -> Any:
        """Return a data frame with the balance of every covariate between each two treatments.

        Its columns are ``target``, ``comparator`` and those of `Balance.to_frame`.
        """
        design = as_design(X, self.code.size)
        parts = [
            self._of_pair(design, one, other)
            for one, other in itertools.combinations(self.treatments, 2)
        ]
        return data_frame(
            {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}, library
        )

    def _of_pair(self, design: Design, one: object, other: object) -> dict[str, AnyArray]:
        found = balance(design.take_rows(self.rows(one, other)), self.pair(one, other)).columns()
        size = design.n_features
        names = {
            name: np.full(size, value) for name, value in (("target", one), ("comparator", other))
        }
        first = next(iter(found))  # labels the rows
        return {first: found[first]} | names | found

    def _place(self, name: object) -> int:
        if name not in self.treatments:
            raise InputError.unknown_name("treatment", name, self.treatments)
        return self.treatments.index(name)

    def __repr__(self) -> str:
        sizes = np.bincount(self.code, minlength=len(self.treatments)).tolist()
        listed = ", ".join(f"{n:,} {k}" for n, k in zip(sizes, self.treatments, strict=True))
        return f"TreatmentWeights({self.estimand}: {listed})"


@takes(SeveralTreatments)
def weight_treatments(
    treatment: object,
    X: object = None,
    *,
    settings: SeveralTreatments,
    score: object = None,
    sampling_weight: object = None,
    person_id: object = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> TreatmentWeights:
    r"""Weight people of several treatments so that all arms resemble the same population.

    With the generalised propensity scores :math:`e_k(x) = P(A = k \mid x)`, the weight of a person
    with treatment a is

    =========== ==================================================
    estimand    weight
    =========== ==================================================
    "ate"       :math:`1 / e_a`
    "att"       :math:`e_t / e_a`, with the treatment t of `target`
    "ato"       :math:`(1 / e_a) / \sum_k (1 / e_k)`
    =========== ==================================================

    The scores are given, or are those of a multinomial logistic regression of the treatment on the
    covariates,

    .. math::
        e_k(x) = \frac{e^{b_k + x'\beta_k}}{\sum_l e^{b_l + x'\beta_l}}, \qquad
        \min_{b, \beta} \; -\sum_i w_i \log e_{a_i}(x_i)
        + \sum_{jk} f_j (\lambda_1 |\beta_{jk}| + \tfrac12 \lambda_2 \beta_{jk}^2)

    with the sampling weights w divided by their mean. With a penalty, every treatment has
    coefficients of its own, so that results do not depend on a reference; cross-validation of the
    multinomial likelihood chooses its strength, as in `propensity_score`. Covariates that nearly
    determine whether somebody has one of the treatments are an error.

    ``method="entropy"`` needs no scores, and refuses settings of the regression. It takes, in each
    arm, the weights closest to equal ones, or to the sampling weights, with which the covariates
    have the means of everybody ("ate") or of the target ("att").

    Sampling weights multiply the weights of the table.

    Parameters
    ----------
    treatment : (n,) labels
    X : Design, data frame, matrix or array (n, p), optional
        Covariates, unless scores are given.
    settings : SeveralTreatments
    score : (n, k) numbers in (0, 1), optional
        Scores in the order of the sorted treatments; each row adds up to 1.
    sampling_weight : (n,) positive numbers, optional
        Weights of a survey.
    person_id : (n,) whole numbers or text, optional
        Identifier of the person, for people with several rows, which stay in one fold.
    checkpoint : path, optional
        As for `riskset.CoxCV`.

    Returns
    -------
    TreatmentWeights

    Raises
    ------
    CohortError
        "BadTreatment", "BadScore", "BadSetting", "BadCovariates", "BadWeight" or "BadId";
        "HighCorrelation" as in `propensity_score`; "Positivity" if a treatment was practically
        impossible for a person, or the regression did not converge; "NoBalance" as in `weight`.

    References
    ----------
    Li and Li (2019), Annals of Applied Statistics 13, 2389-2415, doi:10.1214/19-AOAS1282.
    Imbens (2000), Biometrika 87, 706-710, doi:10.1093/biomet/87.3.706.
    Friedman, Hastie and Tibshirani (2010), Journal of Statistical Software 33(1),
    doi:10.18637/jss.v033.i01, section 4, for the multinomial regression with a penalty.
    McCaffrey et al. (2013), Statistics in Medicine 32, 3388-3414, doi:10.1002/sim.5753: scores of
    separate regressions, each of one treatment against all others, do not add up to 1.

    Examples
    --------
    >>> import riskset as rs
    >>> treatment = ["a", "b", "c"] * 4
    >>> x = [[0], [1], [1], [1], [0], [0], [1], [1], [0], [0], [0], [1]]
    >>> found = rs.cohort.weight_treatments(treatment, x, estimand="ate", penalty=None)
    >>> found.weight.round(2)[:3]
    array([3., 3., 3.])
    """
    levels, code = _levels(treatment)
    people = Population(
        (code == 0).astype(np.int64), sampling_weight=sampling_weight, person_id=person_id
    )
    base = people.sampling_weight
    if score is not None:
        _check_use_of_score(X, settings)
    target = None
    if settings.estimand == "att":
        if settings.target not in levels:
            raise InputError.unknown_name("treatment", settings.target, levels)
        target = levels.index(settings.target)
    if settings.method == "entropy":
        design = _covariates(X, code.size)
        weight = _by_entropy(design, code, levels, target, base)
        return TreatmentWeights(levels, code, None, weight, settings.estimand, people)
    penalty = None
    if score is None:
        persons = np.unique(people.person_id, return_inverse=True)[1].reshape(-1)
        treated = TreatedPeople(code, len(levels), base, persons)
        design = _covariates(X, code.size)
        fitted = fit_generalised_score(design, treated, settings, checkpoint)
        scores, penalty = fitted.score, fitted.penalty
    else:
        scores = _given(score, code.size, levels)
    weight = base * _weights(scores, code, settings.estimand, target)
    return TreatmentWeights(levels, code, scores, weight, settings.estimand, people, penalty)


def _check_use_of_score(X: object, settings: SeveralTreatments) -> None:
    """Refuse arguments and settings that do nothing, or leave the scores without use."""
    if settings.method == "entropy":
        raise bad_setting(
            "score",
            "entropy balancing does not use `score`.",
            hint="leave it out, or use the method score.",
        )
    if X is not None:
        raise bad_setting(
            "X",
            "`X` has no use, because `score` gives the scores.",
            hint="leave one of the two out.",
        )
    for name in settings.of_regression():
        raise bad_setting(
            name,
            f"`{name}` belongs to the regression of the scores, but `score` gives them.",
            hint="leave one of the two out.",
        )


def _weights(scores: Matrix, code: Index, estimand: str, target: int | None) -> Rows:
    own = scores[np.arange(code.size), code]
    _check_positivity(own, scores, estimand)
    if estimand == "ate":
        return np.asarray(1.0 / own)
    if target is not None:
        return np.asarray(scores[:, target] / own)
    return np.asarray(1.0 / (own * (1.0 / scores).sum(axis=1)))


def _levels(treatment: object) -> tuple[tuple[object, ...], Index]:
    try:
        values, missing = typed_labels(treatment, "`treatment`", Places())
    except InputError as error:
        raise CohortError("BadTreatment", error.message, hint=error.hint) from None
    if values.ndim != 1:
        raise CohortError(
            "BadTreatment",
            f"`treatment` must have one dimension, but its shape is {values.shape}.",
            hint="pass the treatment of each row.",
        )
    if missing.any():
        raise CohortError(
            "BadTreatment",
            f"`treatment` must not be missing, but it is in {counted(int(missing.sum()), 'row')}.",
            hint="leave these rows out.",
        )
    levels, code = np.unique(values, return_inverse=True)
    if levels.size < 2:
        raise CohortError(
            "BadTreatment",
            f"`treatment` must have two or more levels, but it has {levels.size}.",
            hint="pass the treatment of each row.",
        )
    return tuple(levels.tolist()), code.reshape(-1).astype(np.int64)


def _covariates(X: object, n_rows: int) -> Design:
    if X is None:
        raise bad_setting(
            "X", "`X` was not given.", hint="pass covariates, or the scores of a model as `score`."
        )
    return as_design(X, n_rows)


def _given(score: object, n_rows: int, levels: tuple[object, ...]) -> Matrix:
    shape, names = (n_rows, len(levels)), list(getattr(score, "columns", ()))
    if names != list(levels) and set(names) == set(levels):
        raise CohortError(
            "BadScore",
            f"the columns of `score` are {', '.join(map(repr, names))}, in another order than the "
            "sorted treatments.",
            hint=f"pass them in the order {', '.join(map(repr, levels))}.",
        )
    try:
        scores = np.asarray(score, dtype=np.float64)
    except (TypeError, ValueError):
        raise CohortError(
            "BadScore",
            "`score` must be a table of numbers, a column for each treatment.",
            hint="pass an array (n, k).",
        ) from None
    if scores.shape != shape:
        raise CohortError(
            "BadScore",
            f"`score` must have the shape {shape}, a column for each treatment, but it has "
            f"{scores.shape}.",
            hint="pass scores in the order of the sorted treatments.",
        )
    if not ((scores >= 0) & (scores <= 1)).all() or not np.allclose(scores.sum(axis=1), 1.0):
        raise CohortError(
            "BadScore",
            "`score` must be probabilities that add up to 1 in each row.",
            hint="check the model that made them.",
        )
    return scores


def _check_positivity(own: Rows, scores: Matrix, estimand: str) -> None:
    low = scores.min(axis=1) if estimand == "ato" else own
    n = int(np.count_nonzero(low < POSITIVE))
    if n:
        raise CohortError(
            "Positivity",
            f"weights would be infinite or nearly so for {counted(n, 'person', 'people')}, for "
            "whom a treatment was practically impossible.",
            hint="leave these people out, and look for covariates that determine the treatment.",
            details={"count": n},
        )


def _by_entropy(
    design: Design, code: Index, levels: tuple[object, ...], target: int | None, base: Rows
) -> Rows:
    runtime = Runtime.select()
    everybody, unit = means_of(design, base, runtime)
    like = base if target is None else np.where(code == target, base, 0.0)
    wanted = means_of(design, like, runtime)[0] if target is not None else everybody
    weight = base.copy()
    for k in range(len(levels)):
        if k != target:
            rows = np.flatnonzero(code == k)
            part = Standardised(design.take_rows(rows), wanted, unit, runtime)
            who = f"the treatment {levels[k]!r}"
            weight[rows] = tilted(part, base[rows], who)[0] * like.sum()
    return weight
