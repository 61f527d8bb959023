r"""The bootstrap: how estimates move when other subjects of the same population are drawn.

A resample draws n units (rows, or clusters whole) with replacement from the n there are, which to
a likelihood is no more than other case weights: the weight of a row times the number of times that
its unit was drawn. What intervals are made of the estimates: `infer.bootstrap_intervals`.

References
----------
Efron (1981), Journal of the American Statistical Association 76, 312-319, for censored data,
doi:10.1080/01621459.1981.10477650.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import Features, Index, Rows
from riskset.data.outcome import Outcome
from riskset.engine import Workers
from riskset.infer.variance import among, cluster_sums, generalized_inverse, influence
from riskset.model.loss import Loss
from riskset.model.penalty import Penalty
from riskset.solve import aliasing
from riskset.solve.optimality import Problem, in_stored_units
from riskset.solve.replicates import Replicate, ReplicateWeights, fit_replicates
from riskset.solve.result import UNCERTIFIED, Solution, Status

__all__ = [
    "ReplicateEstimate",
    "ResampledUnits",
    "acceleration",
    "estimate_of",
    "resample_estimates",
    "weights_of_resamples",
]

REPLICATE_TOL = 1e-6
"""Relative KKT residual of replicates: their error is far below the spread between them."""
MAX_ACTIVE = 2000
"""Larger sets of coefficients other than 0 have no acceleration: it needs their information."""


@dataclass(frozen=True)
class ResampledUnits:
    """Which rows are drawn together, and from which others.

    `unit` is the number of the unit of each row (n,), -1 for rows of weight 0, which are never
    drawn. Draw k chooses among the units from ``first[k]`` up to ``last[k]`` (n_units,).
    """

    weight: Rows
    unit: Index
    first: Index
    last: Index

    @classmethod
    def of(
        cls, outcome: Outcome, cluster: Index | None = None, *, within_strata: bool = False
    ) -> "ResampledUnits":
        """Draw rows or, by codes (n,), whole clusters; from all, or from those of the same stratum.

        With `within_strata`, every stratum keeps its number of units, and a cluster must be within
        one.
        """
        present = np.flatnonzero(outcome.weight > 0)
        codes = present if cluster is None else cluster[present]
        kept, row, of_row = np.unique(codes, return_index=True, return_inverse=True)
        pool = np.zeros(kept.size, dtype=np.int64)
        if within_strata:
            stratum = outcome.stratum[present]
            pool = stratum[row]
            _check_within(outcome, present, stratum != pool[of_row])
        if kept.size < 2:
            raise InputError(
                f"there is only one {'row' if cluster is None else 'cluster'} of positive weight, "
                "so there is nothing to draw from.",
                hint="a bootstrap needs at least two subjects; many more give intervals.",
            )
        order = np.argsort(pool, kind="stable")
        number = np.empty(kept.size, dtype=np.int64)
        number[order] = np.arange(kept.size)
        unit = np.full(outcome.n_rows, -1, dtype=np.int64)
        unit[present] = number[of_row]
        pool = pool[order]
        first, last = (np.searchsorted(pool, pool, side=side) for side in ("left", "right"))
        return cls(outcome.weight, unit, first, last)

    @property
    def n_units(self) -> int:
        """How many units are drawn, and there are to draw from."""
        return int(self.first.size)

    def counts(self, seed: int, number: int) -> Index:
        """How often replicate `number` draws each row (n,).

        Each replicate has its own stream of random numbers, so that its draws depend neither on the
        number of replicates nor on their order.
        """
        stream = np.random.SeedSequence(seed, spawn_key=(number,))
        picked = np.random.default_rng(stream).integers(self.first, self.last)
        drawn = np.append(np.bincount(picked, minlength=self.n_units), 0)  # unit -1: the 0
        return np.asarray(drawn[self.unit])


def _check_within(outcome: Outcome, present: Index, outside: NDArray[np.bool_]) -> None:
    if outside.any():
        row = int(present[np.flatnonzero(outside)[0]])
        raise InputError(
            "`within_strata` draws clusters from those of the same stratum, but the cluster of row "
            f"{row} has rows in more than one.",
            hint="leave within_strata out, or give clusters that lie within strata.",
        )


def weights_of_resamples(
    loss: Loss, resampling: ResampledUnits, seed: int
) -> tuple[Loss, Callable[[int], ReplicateWeights]]:
    """The likelihood to take replicates of, and the weights of each replicate.

    If case weights do not count in the censoring distribution, the number of times that a row was
    drawn still does.
    """
    counting = loss.counting_draws()

    def weights(number: int) -> ReplicateWeights:
        counts = resampling.counts(seed, number)
        weight = resampling.weight * counts
        return ReplicateWeights(weight, weight if counting is loss else counts.astype(np.float64))

    return counting, weights


# ---------------------------------------------------------------------------------- estimates


class ReplicateEstimate(NamedTuple):
    """The answer of one replicate.

    `coef` (q,) is NaN without an estimate. The status is "not_estimable" also if only some of
    `coef` are NaN, and "no_penalty" if no penalty could be chosen; `reason` then says why.
    """

    coef: Features
    status: Status | Literal["no_penalty"]
    penalty: Penalty | None = None
    reason: str = ""


def resample_estimates(
    problem: Problem,
    whole: Solution,
    l1: Features,
    l2: Features,
    resampling: ResampledUnits,
    columns: Index,
    *,
    replicates: int,
    seed: int,
    tol: float = REPLICATE_TOL,
    max_iter: int = 200,
    workers: Workers | None = None,
) -> Iterator[ReplicateEstimate]:
    """Estimates (q,) of the coefficients `columns` in every resample, one after the other.

    `whole` is the solution on all rows at the same penalty, where replicates start; `l1` and `l2`
    are in the user's units, and `tol` bounds the relative KKT residual of each replicate. An
    unpenalised coefficient has no estimate if its column varies in no risk set of the resample or
    repeats others there. Each resample estimates its own censoring distribution, unless that was
    given.
    """
    loss, weights = weights_of_resamples(problem.loss, resampling, seed)
    problem = replace(problem, loss=loss)
    free = (l1 == 0) & (l2 == 0)
    parts = [partial(weights, k) for k in range(replicates)]
    fitted = fit_replicates(
        problem,
        whole,
        l1,
        l2,
        parts,
        tol=tol,
        max_iter=max_iter,
        separation=bool(free.any()),
        workers=workers,
    )
    for number, found in enumerate(fitted):
        lost = whole.aliased & free
        # Only a column that was left out has a coefficient of exactly 0, but for coincidences.
        if (free & ~lost & (found.coef == 0)).any():
            lost = _left_out(problem, weights(number), l1, l2) & free
        yield estimate_of(found, lost, columns)


def _left_out(
    problem: Problem, part: ReplicateWeights, l1: Features, l2: Features
) -> NDArray[np.bool_]:
    design = problem.design
    resample = Problem.prepare(design, problem.loss.replicate(part.weight, part.censoring))
    return aliasing.find_aliased(resample, *in_stored_units(design, l1, l2))[0]


def estimate_of(
    found: Replicate | Solution, lost: NDArray[np.bool_], columns: Index
) -> ReplicateEstimate:
    """What is kept of a fit; `lost` are the coefficients (p,) that are not identified."""
    if found.status in (*UNCERTIFIED, "not_estimable"):
        return ReplicateEstimate(np.full(columns.size, np.nan), found.status)
    coef = np.where(lost, np.nan, found.coef)[columns]
    return ReplicateEstimate(coef, "not_estimable" if np.isnan(coef).any() else found.status)


def acceleration(
    problem: Problem,
    whole: Solution,
    l2: Features,
    free: NDArray[np.bool_],
    resampling: ResampledUnits,
    columns: Index,
) -> Features:
    r"""Acceleration (q,) of each parameter, from the infinitesimal jackknife.

    .. math:: a = \frac{\sum_c u_c^3}{6 \left(\sum_c u_c^2\right)^{3/2}}, \qquad
        u_c = \sum_{i \in c} w_i U_i (I + \Lambda_2)^{-1} - \text{mean}

    with :math:`u_c` the derivative of the estimate in the number of times that unit c is drawn:
    scores U of the rows (in Fine and Gray's model also through the censoring distribution), I the
    information of the coefficients that are not 0, :math:`\Lambda_2` their quadratic penalty. The
    derivative of an L1 penalty does not change as long as the same coefficients are 0. The mean is
    that of the units among which c is drawn. The result is 0 for coefficients that a penalty holds
    at 0; NaN if the estimate is infinite or not identified, or more than 2,000 coefficients are not
    0.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, Chapman & Hall, equation 14.15,
    with the infinitesimal jackknife in place of the jackknife as their chapter 22 has it; DiCiccio
    and Efron (1996), Statistical Science 11, 189-228, doi:10.1214/ss/1032280214.
    """
    active = np.flatnonzero((free | (whole.coef != 0)) & ~whole.aliased)
    inside = np.isin(columns, active)
    out = np.where(whole.aliased[columns] & free[columns], np.nan, 0.0)
    if not inside.any():
        return out
    if active.size > MAX_ACTIVE:
        return np.full(columns.size, np.nan)
    design, loss = problem.design, whole.likelihood
    information = loss.information(design, whole.eta, active)
    information[np.diag_indices(active.size)] += l2[active] / design.scale[active] ** 2
    inverse = among(generalized_inverse(information), active, design.n_features)
    wanted = columns[inside]
    rows = influence(loss, design, whole.eta, inverse, wanted)
    drawn = resampling.unit >= 0
    units = cluster_sums(rows[drawn], resampling.unit[drawn])
    values = np.array([_skewness(u, resampling.first) for u in units.T])
    is_defined = inverse.identified[wanted] & np.isfinite(whole.coef[wanted])
    out[inside] = np.where(is_defined, values / 6, np.nan)
    return out


def _skewness(values: Features, pool: Index) -> float:
    """Sum of cubes over that of squares to the power 3/2, about the mean of each pool."""
    size = np.bincount(pool, minlength=values.size)
    total = np.bincount(pool, values, minlength=values.size)
    centred = values - (total / np.maximum(size, 1))[pool]
    largest = np.abs(centred).max()
    if largest == 0:
        return 0.0
    centred = centred / largest  # squares of tiny numbers would be 0
    return float(np.sum(centred**3) / np.sum(centred**2) ** 1.5)
