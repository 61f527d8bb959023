r"""Generalised propensity scores: a multinomial logistic regression with a penalty.

With k treatments, the log likelihood of person i is

.. math:: \ell_i = \eta_{i a_i} - \log \sum_k e^{\eta_{ik}}, \qquad \eta_{ik} = b_k + x_i'\beta_k

which is that of a Cox model whose stratum i has one row for each treatment, of which the one that
was taken has the event. So the package's solver fits it, with its certificate, and its
cross-validation scores the held-out people by their multinomial likelihood.

One regression for each treatment against all others would be another model: its scores do not add
up to 1, so that weights by them belong to no joint distribution of the treatments (McCaffrey et
al., 2013). With a penalty, every treatment has coefficients of its own, as in glmnet, so that
results do not depend on a reference (Friedman et al., 2010, section 4). Without a penalty, the
coefficients of the first treatment are 0.

References
----------
Friedman, Hastie and Tibshirani (2010), Journal of Statistical Software 33(1),
doi:10.18637/jss.v033.i01.
McCaffrey et al. (2013), Statistics in Medicine 32, 3388-3414, doi:10.1002/sim.5753.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from riskset._errors import CohortError
from riskset._runtime import Runtime
from riskset._types import Features, Index, Matrix, Rows
from riskset.cohort.adjustments.adjustment_settings import SeveralTreatments
from riskset.cohort.population import Population
from riskset.cohort.propensity.propensity_checks import ScoreCovariates
from riskset.data.column_storage import SparseColumns
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.estimators._cv_settings import CVSettings, choose_penalty
from riskset.infer.crossval.folds import deal_units
from riskset.infer.crossval.search_plan import SearchPlan
from riskset.model.cox import CoxLoss
from riskset.model.penalty import Penalty
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import MIN_SIGNAL_PER_EVENT, Problem
from riskset.solve.result import UNCERTIFIED, Solution

__all__ = ["GeneralisedScore", "TreatedPeople", "assign_folds", "fit_generalised_score"]


@dataclass(frozen=True, eq=False)
class TreatedPeople:
    """Treatments of people (n,), as codes, with sampling weights; some may have several rows."""

    code: Index
    n_treatments: int
    sampling_weight: Rows
    person_id: Index

    def take(self, rows: Index) -> "TreatedPeople":
        """Some of them."""
        return TreatedPeople(
            self.code[rows], self.n_treatments, self.sampling_weight[rows], self.person_id[rows]
        )

    def share(self) -> Features:
        """Weighted share of each treatment."""
        total = np.bincount(self.code, self.sampling_weight, minlength=self.n_treatments)
        return np.asarray(total / total.sum())


@dataclass(frozen=True, eq=False)
class GeneralisedScore:
    """Scores (n, k), and the penalty of the model that made them."""

    score: Matrix
    penalty: Penalty | None


def fit_generalised_score(
    design: Design,
    people: TreatedPeople,
    settings: SeveralTreatments,
    checkpoint: str | os.PathLike[str] | None = None,
) -> GeneralisedScore:
    """Fit the model, and predict everybody's scores.

    Raises `CohortError`: "HighCorrelation", and "Positivity" if covariates determine the treatment
    of somebody, or the fit did not converge.
    """
    rows = _sampled(people, settings.max_rows)
    is_part = rows.size < people.code.size
    fitted, of_fitted = (people.take(rows), design.take_rows(rows)) if is_part else (people, design)
    covariates = _checked(of_fitted, fitted, settings)
    stacked = _Stacked.of(covariates, fitted, settings.kind)
    problem = Problem.prepare(stacked.design, stacked.loss)
    penalty, start = settings.kind, None
    if settings.chooses_penalty:
        assert penalty is not None
        signal = np.abs(problem.gradient_at_zero / problem.spread)[stacked.n_intercepts :]
        if signal.max(initial=0.0) > MIN_SIGNAL_PER_EVENT * fitted.code.size:
            plan = SearchPlan.build(
                stacked.penalty(penalty, covariates.names),
                search=settings.search,
                rule=settings.rule,
            )
            folds = np.repeat(assign_folds(fitted, settings), people.n_treatments, axis=1)
            how = CVSettings(folds, checkpoint=checkpoint)
            choice = choose_penalty(problem, plan, how, max_iter=settings.max_iter, progress=False)
            penalty, start = penalty.with_strength(choice.penalty.strength), choice.start
        else:
            penalty = penalty.with_strength(1.0)  # any leaves all coefficients at 0
    zero = np.zeros(stacked.design.n_features)
    l1, l2 = zero, zero
    if penalty is not None:
        l1, l2 = stacked.penalty(penalty, covariates.names).arrays(stacked.design.names)
    solution = fit_by_newton(
        stacked.design, stacked.loss, l1, l2, tol=settings.tol, max_iter=settings.max_iter,
        start=start, problem=problem,
    )  # fmt: skip
    _check(solution)
    eta = solution.eta.reshape(fitted.code.size, people.n_treatments)
    if is_part:
        place = {name: j for j, name in enumerate(design.names)}
        columns = np.array([place[name] for name in covariates.names], dtype=np.int64)
        eta = stacked.predict(solution.coef, design, columns)
        eta += np.log(people.share()) - np.log(fitted.share())
    return GeneralisedScore(softmax(eta, axis=1), penalty)


def _sampled(people: TreatedPeople, max_rows: int | None) -> Index:
    """Rows, evenly spaced by the id of the person, at most so many of each treatment."""
    chosen = np.ones(people.code.size, dtype=bool)
    for k in range(people.n_treatments):
        own = np.flatnonzero(people.code == k)
        if max_rows is not None and own.size > max_rows:
            own = own[np.argsort(people.person_id[own], kind="stable")]
            chosen[own] = False
            chosen[own[np.arange(max_rows) * (own.size - 1) // (max_rows - 1)]] = True
    return np.flatnonzero(chosen)


def _checked(design: Design, people: TreatedPeople, settings: SeveralTreatments) -> Design:
    """Refuse covariates that nearly determine whether somebody has one of the treatments."""
    how, limit = settings.on_high_correlation, settings.max_correlation
    for k in range(people.n_treatments):
        arm = Population((people.code == k).astype(np.int64))
        design = ScoreCovariates.check(design, arm, how, limit, settings.kind).design
    return design


@dataclass(frozen=True, eq=False)
class _Stacked:
    """A row for each person and treatment, in this order.

    The first columns are the intercepts of all treatments but the first. Then come the coefficients
    of each covariate for each treatment that has some: all of them with a penalty, and all but the
    first without. `center` are the constants that are taken from the covariates.
    """

    design: Design
    loss: CoxLoss
    center: Features
    n_treatments: int
    has_reference: bool

    @property
    def n_intercepts(self) -> int:
        """Their number."""
        return self.n_treatments - 1

    @property
    def n_blocks(self) -> int:
        """Number of treatments with coefficients."""
        return self.n_treatments - self.has_reference

    @classmethod
    def of(cls, design: Design, people: TreatedPeople, penalty: Penalty | None) -> "_Stacked":
        """The rows of all people."""
        n, k = people.code.size, people.n_treatments
        free = np.eye(k)[:, 1:]
        intercepts = sp.kron(np.ones((n, 1)), free)
        slopes = sp.kron(_entries(design), free if penalty is None else np.eye(k))
        event = (np.arange(k) == people.code[:, None]).astype(np.int64).reshape(-1)
        weight = people.sampling_weight / people.sampling_weight.mean()
        outcome = Outcome.build(
            np.ones(n * k),
            event,
            weight=None if (weight == 1).all() else np.repeat(weight, k),
            stratum=np.repeat(np.arange(n), k),
        )
        return cls(
            Design.from_sparse(sp.hstack([intercepts, slopes], format="csc")),
            CoxLoss(outcome, "breslow", Runtime.select()),
            design.center,
            k,
            penalty is None,
        )

    def penalty(self, of_covariates: Penalty, names: Sequence[str]) -> Penalty:
        """The penalty of all columns, from that of the covariates; intercepts have none."""
        factor = np.repeat(of_covariates.factors(names), self.n_blocks)
        given = of_covariates.get_params() | {"unpenalized": (), "drop_first": None}
        given["factor"] = (0.0,) * self.n_intercepts + tuple(factor.tolist())
        if "rescale" in given:
            given["rescale"] = False  # the factors are rescaled
        return type(of_covariates)(**given)  # type: ignore[arg-type]

    def predict(self, coef: Features, design: Design, columns: Index) -> Matrix:
        """Linear predictors (n, k) of rows of a design, of which `columns` are the covariates."""
        eta = np.zeros((design.n_rows, self.n_treatments))
        eta[:, 1:] = coef[: self.n_intercepts]
        slopes = coef[self.n_intercepts :].reshape(-1, self.n_blocks)
        for block in range(self.n_blocks):
            used = np.flatnonzero(slopes[:, block])
            own = slopes[used, block]
            shift = float(self.center[used] @ own)
            eta[:, block + self.has_reference] += design.dot(own, columns[used]) - shift
        return eta


def _entries(design: Design) -> sp.csc_array:
    """The covariates less the centres of the design, which the intercepts take up."""
    blocks = [sp.csc_array((design.n_rows, 0))]
    order = [np.zeros(0, dtype=np.int64)]
    everybody = np.arange(design.n_rows)
    for part in design.parts:
        order.append(part.columns)
        if isinstance(part, SparseColumns):
            pointer, row, value = part.to_csc(everybody)
            value = value if value.size else np.ones(row.size)
            shape = (design.n_rows, part.columns.size)
            block = sp.csc_array((value, row.astype(np.int64), pointer), shape=shape)
        else:
            block = sp.csc_array(design.stored(part.columns))
        blocks.append(block @ sp.diags_array(design.scale[part.columns], format="csc"))
    return sp.hstack(blocks, format="csc")[:, np.argsort(np.concatenate(order))]


def assign_folds(people: TreatedPeople, settings: SeveralTreatments) -> Index:
    """Fold of each row in each repetition (repeats, n); treatments are spread evenly over folds.

    Rows of one person are in one fold.
    """
    _, first, unit = np.unique(people.person_id, return_index=True, return_inverse=True)
    n, folds = first.size, settings.folds
    if folds > n:
        raise CohortError(
            "BadSetting",
            f"there are {n:,} people, too few for {folds:,} folds.",
            hint="use fewer `folds`, or give the penalty a strength.",
        )
    dealt = deal_units(n, folds, settings.repeats, settings.seed, (people.code[first],))
    return dealt[:, unit.reshape(-1)]


def _check(solution: Solution) -> None:
    """Scores of 0 and fits that did not converge give no weights."""
    if solution.infinite.any():
        raise CohortError(
            "Positivity",
            "covariates determine the treatment of some people with certainty.",
            hint="leave out covariates that record the treatment, or use a penalty.",
        )
    if solution.status in UNCERTIFIED:
        raise CohortError(
            "Positivity",
            "the regression of the treatment on the covariates did not converge: covariates may "
            "determine the treatment of some people.",
            hint="leave out covariates that record the treatment, or use a penalty.",
        )
