"""What the estimation of propensity scores adds to the variance of weighted estimates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError
from riskset._runtime import Runtime, one_blas_thread
from riskset._settings import bad_setting
from riskset._types import Features, Index, Matrix, Rows
from riskset.cohort.adjustments.adjustment import Adjustment
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.population import Population, logit
from riskset.data.design import Design
from riskset.infer.variance import (
    GeneralizedInverse,
    cluster_sums,
    generalized_inverse,
    information_inverse,
)
from riskset.model.logistic import LogisticLoss

__all__ = ["EstimatedScore", "check_score_covariates", "score_of_weights"]

LARGEST_STEP = 1e-2
"""A maximum of the likelihood is at most so many standard errors away, in any direction."""


@dataclass(frozen=True, eq=False)
class EstimatedScore:
    r"""The logistic model of the scores from which weights were computed.

    With :math:`D_i` the influence of row i on an estimate at known weights, which is proportional
    to its weight :math:`w_i`, the estimation of the score adds

    .. math:: \Big( \sum_j \frac{\partial \log w_j}{\partial \alpha} D_j \Big)' \, J^{-1} x_i (t_i -
        e_i), \qquad J = \sum_j e_j (1 - e_j) x_j x_j'

    where x has the intercept: the derivative of the estimate in the coefficients :math:`\alpha` of
    the score, times the influence of the row on these. Stabilised weights depend on the share of
    the target as well.

    Attributes
    ----------
    design : Design
        Covariates of the score, of the m people in whom it was estimated.
    inverse : GeneralizedInverse
        Inverse of J without its intercept, in stored units.
    mean : (p,) float64
        Means of the covariates with the weights e (1 - e), times sampling weights, in stored units.
    total : float
        Sum of e (1 - e).
    residual : (m,) float64
        Treatment minus score, times the sampling weight.
    place : (n,) int64
        Which of the m are the n people who are weighted.
    slope, share_slope : (n,) float64
        Derivatives of the log weight in the log odds of the score, and in the share of the target.
    share_residual : (m,) float64
        Treatment minus share, divided by m.
    cluster : (m,) int64
        Persons, with all their rows.
    """

    design: Design
    inverse: GeneralizedInverse
    mean: Features
    total: float
    residual: Rows
    place: Index
    slope: Rows
    share_slope: Rows
    share_residual: Rows
    cluster: Index

    @one_blas_thread
    def influence(self, moved: Matrix, by_weight: Matrix | None = None) -> Matrix:
        """The influence of rows (m, q), through the score too, from that at known weights (n, q).

        `by_weight` is the part of `moved` that is proportional to the weights; by default, all.
        O(q (nnz + m + p^2)) time.
        """
        runtime, design = Runtime.select(), self.design
        out = np.zeros((self.residual.size, moved.shape[1]))
        out[self.place] = moved
        pull = np.zeros(self.residual.size)
        for k, own in enumerate((moved if by_weight is None else by_weight).T):
            pull[self.place] = self.slope * own
            total = float(pull.sum())
            combination = self.inverse.basis @ (
                self.inverse.basis.T @ (design.cross(pull, runtime=runtime) - total * self.mean)
            )
            along = design.product(combination, runtime=runtime) - float(self.mean @ combination)
            out[:, k] += self.residual * (along + total / self.total)
            out[:, k] += float(self.share_slope @ own) * self.share_residual
        return out

    def cluster_sums(self, moved: Matrix, by_weight: Matrix | None = None) -> Matrix:
        """The `influence` of each person (c, q)."""
        return cluster_sums(self.influence(moved, by_weight), self.cluster)


def check_score_covariates(interval: str, covariates: object) -> None:
    """Covariates of the score go with a stacked interval, and it with them."""
    if interval == "stacked" and covariates is None:
        raise bad_setting(
            "interval",
            "a stacked interval needs the covariates of the propensity score.",
            hint="pass them as `score_covariates`.",
        )
    if interval != "stacked" and covariates is not None:
        raise bad_setting(
            "score_covariates",
            "`score_covariates` is for stacked intervals alone.",
            hint="add `interval='stacked'`, or leave it out.",
        )


def score_of_weights(adjustment: Adjustment, X: object) -> EstimatedScore:
    """The score behind the weights of an adjustment, with its covariates `X` (N, p).

    It was estimated in the people who are weighted, or in everybody. CohortError "BadSetting" if
    the weights are not smooth functions of an unpenalised logistic score of these covariates.
    """
    settings = adjustment.settings
    _check_weights(adjustment, settings)
    people, kept = adjustment.population, np.flatnonzero(adjustment.kept)
    whole = as_design(X, people.n_rows)
    found = _logistic(whole, people, kept)
    if found.step > LARGEST_STEP and kept.size < people.n_rows:
        of_all = _logistic(whole, people, np.arange(people.n_rows))
        found = min(found, of_all, key=lambda one: one.step)
    if not found.step <= LARGEST_STEP:
        raise CohortError(
            "BadSetting",
            "the scores are not those of an unpenalised logistic model of `score_covariates`: they "
            f"are {found.step:.2g} standard errors away from its maximum.",
            hint="estimate them with `riskset.cohort.propensity_score(people, X, penalty=None)` "
            "and pass the same X; for other scores, use `interval='bootstrap'` with `readjust`.",
        )
    target, score = people.is_target[kept], people.score[kept]
    slope, share_slope = _slope(score, target, str(adjustment.estimand)), np.zeros(kept.size)
    sampled = people.sampling_weight[kept]
    share = float(np.average(target, weights=sampled))
    if _is_stabilised(adjustment):
        if found.rows.size > kept.size:
            raise bad_setting(
                "interval",
                "a stacked interval of stabilised weights needs scores that were estimated in the "
                "people who are weighted.",
                hint="leave `stabilise` out, or estimate the scores after all exclusions.",
            )
        share_slope = np.where(target, 1 / share, -1 / (1 - share))
    cap = adjustment.details.get("cap")
    if isinstance(cap, float):  # a weight that was cut does not move
        is_cut = adjustment.weight[kept] >= cap * sampled * (1 - 1e-12)
        slope, share_slope = (np.where(is_cut, 0.0, one) for one in (slope, share_slope))
    rows = found.rows
    base = people.sampling_weight[rows]
    variance = base * people.score[rows] * (1 - people.score[rows])
    runtime, total = Runtime.select(), float(variance.sum())
    return EstimatedScore(
        design=found.design,
        inverse=found.inverse,
        mean=found.design.cross(variance, runtime=runtime) / total,
        total=total,
        residual=base * (people.is_target[rows] - people.score[rows]),
        place=np.searchsorted(rows, kept),
        slope=slope,
        share_slope=share_slope,
        share_residual=base * (people.is_target[rows] - share) / base.sum(),
        cluster=np.unique(people.person_id[rows], return_inverse=True)[1].astype(np.int64),
    )


class _Logistic(NamedTuple):
    """A score of some rows, and how many standard errors it is from the maximum likelihood."""

    rows: Index
    design: Design
    inverse: GeneralizedInverse
    step: float


def _logistic(whole: Design, people: Population, rows: Index) -> _Logistic:
    design = whole.take_rows(rows) if rows.size < people.n_rows else whole
    target, score, runtime = people.is_target[rows], people.score[rows], Runtime.select()
    if not target.any() or target.all():
        return _Logistic(rows, design, generalized_inverse(np.zeros((0, 0))), np.inf)
    base = people.sampling_weight[rows]
    loss = LogisticLoss.of(target, runtime, weight=base)
    odds = logit(score)
    inverse = information_inverse(loss, design, odds)
    variance = base * score * (1 - score)
    residual, total = base * (target - score), float(variance.sum())
    square = inverse.form(design.cross(residual, runtime=runtime))
    square += float(residual.sum()) ** 2 / total if total > 0 else np.inf
    square += float(variance @ _beside(design, inverse, odds, variance, runtime) ** 2)
    return _Logistic(rows, design, inverse, float(np.sqrt(square)))


@one_blas_thread
def _beside(
    design: Design, inverse: GeneralizedInverse, odds: Rows, variance: Rows, runtime: Runtime
) -> Rows:
    """What of log odds (m,) is not linear in the covariates, by weighted least squares.

    Scores of more covariates than these fulfil the equations of these as well.
    """
    total = max(float(variance.sum()), 1e-300)
    rest: Rows = odds - float(variance @ odds) / total
    pull = design.cross(variance * rest, runtime=runtime)
    combination = inverse.basis @ (inverse.basis.T @ pull)
    along = design.product(combination, runtime=runtime)
    return rest - (along - float(variance @ along) / total)


def _is_stabilised(adjustment: Adjustment) -> bool:
    """Whether the share of the target is in the weights."""
    how, estimand = adjustment.settings.get("stabilise"), adjustment.estimand
    return bool(how) and (estimand == "ate" or (estimand == "att" and how == "cohortmethod"))


def _check_weights(adjustment: Adjustment, settings: Mapping[str, object]) -> None:
    if adjustment.kind != "weighting" or settings.get("method", "score") != "score":
        how = str(settings.get("method", adjustment.kind)) if adjustment.kind == "weighting" else ""
        raise bad_setting(
            "interval",
            f"a stacked interval is for weights by a propensity score, but the adjustment is by "
            f"{how or adjustment.kind}.",
            hint="use `interval='bootstrap'` with `readjust`.",
        )
    if isinstance(settings.get("truncate"), str):
        raise bad_setting(
            "interval",
            "a stacked interval needs weights that are smooth in the score, but the largest weight "
            f"is the percentile {settings['truncate']} of the weights.",
            hint="truncate at a number, or use `interval='bootstrap'` with `readjust`.",
        )


def _slope(e: Rows, target: NDArray[np.bool_], estimand: str) -> Rows:
    """Derivative of the log of each weight (n,) in the log odds of the score."""
    of_target, of_comparator = {
        "ate": (-(1 - e), e),
        "att": (np.zeros(e.size), np.ones(e.size)),
        "atu": (-np.ones(e.size), np.zeros(e.size)),
        "ato": (-e, 1 - e),
        "matching": (np.where(e > 0.5, -1.0, 0.0), np.where(e < 0.5, 1.0, 0.0)),
    }[estimand]
    return np.where(target, of_target, of_comparator)
