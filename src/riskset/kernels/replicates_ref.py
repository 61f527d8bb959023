"""Eight likelihoods at once, as the plain formulas: the specification of `replicates_host`.

A lane is one replicate: a fold or a resample of the same rows. Arrays (n, 8) hold one row of lanes
for each row, column or group. The matrix is stored as in `matrix_ref`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Matrix, NewtonQuadratic, Pointer, RiskSets, Rows
from riskset.kernels import descent_ref, matrix_ref

__all__ = [
    "LaneTail",
    "bounds",
    "counts",
    "cross_dense",
    "cross_sparse",
    "minimise_quadratics",
    "product_dense",
    "product_sparse",
    "residuals_of_tail",
    "residuals_up_to",
    "sum_after",
    "sum_up_to",
]

_ALONE = Runtime(1)


class LaneTail(NamedTuple):
    """Rows with a competing event, which stay at risk after their own time: `Tail` in lanes.

    Row i of `order` (m,) has the weights (m, 8), each case weight over G at its own time, and G at
    the time of each group is `survival` (G, 8).
    """

    order: Index
    weight: Matrix
    group_ptr: Pointer
    starts_stratum: NDArray[np.bool_]
    survival: Matrix


def cross_sparse(
    block_ptr: Index,
    row: AnyArray,
    value: Rows | None,
    slots: Index,
    r: Matrix,
    shift: int,
    out: Matrix,
) -> None:
    """Add `matrix_ref.cross_valued` of each lane of `r` (n, 8) to `out` (m, 8).

    Without values all entries are 1.
    """
    x = np.ones(row.size) if value is None else value
    for k in range(r.shape[1]):
        out[:, k] += matrix_ref.cross_valued(block_ptr, row, x, slots, r[:, k], shift, _ALONE)


def cross_dense(blocks: AnyArray, slots: Index, r: Matrix, out: Matrix) -> None:
    """As `cross_sparse`, for a dense part."""
    for k in range(r.shape[1]):
        out[:, k] += matrix_ref.cross_dense(blocks, slots, r[:, k], _ALONE)


def product_sparse(
    block_ptr: Index,
    row: AnyArray,
    value: Rows | None,
    slots: Index,
    v: Matrix,
    shift: int,
    out: Matrix,
) -> None:
    """Add `matrix_ref.product_valued` of each lane of `v` (m, 8) to `out` (n, 8)."""
    x = np.ones(row.size) if value is None else value
    for k in range(v.shape[1]):
        matrix_ref.product_valued(block_ptr, row, x, slots, v[:, k], shift, out[:, k], _ALONE)


def product_dense(blocks: AnyArray, slots: Index, v: Matrix, out: Matrix) -> None:
    """As `product_sparse`, for a dense part."""
    for k in range(v.shape[1]):
        matrix_ref.product_dense(blocks, slots, v[:, k], out[:, k], _ALONE)


def _groups(sets: RiskSets | LaneTail) -> tuple[Index, Index]:
    """Group of each row, and stratum of each group."""
    group = np.repeat(np.arange(sets.starts_stratum.size), np.diff(sets.group_ptr))
    return group, np.cumsum(sets.starts_stratum)


def bounds(x: Matrix, low: Rows, high: Rows) -> None:
    """Least and largest number of each lane of `x` (n, 8), to `low` and `high` (8,)."""
    low[:], high[:] = x.min(axis=0), x.max(axis=0)


def counts(weight: Rows, unit: Rows, lane: int, out: AnyArray) -> bool:
    """How often each row counts in a lane: ``weight / unit``, to column `lane` of `out` (n, 8).

    `weight` are the case weights of the lane, `unit` those of the data. Returns whether all counts
    are whole numbers below 256; if not, `out` is not to be used.
    """
    ratio = np.minimum(np.divide(weight, unit, out=np.zeros_like(unit), where=unit > 0), 255.0)
    out[:, lane] = ratio.astype(np.uint8)
    return bool((out[:, lane] * unit == weight).all())


def sum_up_to(
    eta: Matrix,
    shift: Rows,
    risk: RiskSets,
    count: AnyArray,
    more: Matrix | None,
    r: Matrix,
    hazard: Matrix,
    low: Rows,
    value: Rows,
) -> None:
    r"""Partial likelihood, risk of each row, and increments of the cumulative hazard.

    With :math:`w_i` and :math:`d_i` the weight of a row and of its event, times its count,

    .. math::
        r_i = w_i e^{\eta_i - s}, \qquad
        S_g = m_g + \sum_{i \text{ in groups} \le g} r_i, \qquad
        h_g = \frac{d_g}{S_g}, \qquad
        \ell = \sum_i d_i (\eta_i - s) - \sum_g d_g \log S_g

    S within the stratum of g, :math:`d_g` the sum of :math:`d_i` in the group. `eta` (n, 8) is in
    the caller's order, `shift` (8,) is s, `count` (n, 8) in risk order says how often a row counts,
    and `more` (G, 8) is m, what tails add to each risk set. The results are `r` (n, 8) in risk
    order, `hazard` (G, 8), 0 without events, `low` (8,), the least S of groups with events and 1,
    and `value` (8,), the likelihood.
    """
    x = eta[risk.order] - shift
    r[:] = (risk.weight[:, None] * count) * np.exp(x)
    died = risk.event_weight[:, None] * count
    group, stratum = _groups(risk)
    value[:] = (died * x).sum(axis=0)
    low[:] = np.inf
    for g in range(stratum.size):
        among = (stratum[group] == stratum[g]) & (group <= g)
        total = r[among].sum(axis=0) + (0.0 if more is None else more[g])
        d = died[group == g].sum(axis=0)
        total = np.where(d > 0, total, 1.0)
        hazard[g] = d / total
        low[:] = np.minimum(low, total)
        value -= d * np.log(total)


def sum_after(eta: Matrix, shift: Rows, tail: LaneTail, r: Matrix, total: Matrix) -> None:
    r"""Risk of each row of a tail (m, 8), and what they add to the risk sets before them (G, 8).

    .. math::
        r_i = w_i e^{\eta_i - s}, \qquad
        total_g \mathrel{+}= G_g \sum_{i \text{ in groups} > g} r_i

    within the stratum of g.
    """
    r[:] = tail.weight * np.exp(eta[tail.order] - shift)
    group, stratum = _groups(tail)
    for g in range(stratum.size):
        among = (stratum[group] == stratum[g]) & (group > g)
        total[g] += tail.survival[g] * r[among].sum(axis=0)


def residuals_up_to(
    hazard: Matrix, risk: RiskSets, count: AnyArray, r: Matrix, residual: Matrix
) -> None:
    r"""Events of each row minus those expected up to its own time, in the caller's order (n, 8).

    .. math:: residual_i = d_i - r_i \sum_{g \ge g_i} h_g

    within the stratum of the row's group :math:`g_i`; arrays as in `sum_up_to`.
    """
    group, stratum = _groups(risk)
    for i in range(risk.order.size):
        seen = (stratum == stratum[group[i]]) & (np.arange(stratum.size) >= group[i])
        expected = r[i] * hazard[seen].sum(axis=0)
        residual[risk.order[i]] = risk.event_weight[i] * count[i] - expected


def residuals_of_tail(hazard: Matrix, tail: LaneTail, r: Matrix, residual: Matrix) -> None:
    r"""Take off what is expected of the rows of a tail after their own time.

    .. math:: residual_i \mathrel{-}= r_i \sum_{g < g_i} G_g h_g

    within the stratum of the row's group.
    """
    group, stratum = _groups(tail)
    for i in range(tail.order.size):
        seen = (stratum == stratum[group[i]]) & (np.arange(stratum.size) < group[i])
        residual[tail.order[i]] -= r[i] * (tail.survival * hazard)[seen].sum(axis=0)


def minimise_quadratics(
    curvature: Matrix,
    scale: Rows,
    pairs: AnyArray,
    gradient: Matrix,
    beta: Matrix,
    l1: Rows,
    l2: Rows,
    box: Matrix,
    may_move: NDArray[np.bool_],
    tolerance: Rows,
    max_sweeps: int,
    step: Matrix,
    image: Matrix,
) -> None:
    r"""`descent_ref.minimise_quadratic` in each lane, with a curvature of its own.

    .. math:: B_k = s_k B + \sum_a (-1)^a p_{ak} p_{ak}'

    `curvature` (q, q) is B, which the lanes share, `scale` (8,) is s, and `pairs` (q, n_pairs, 8)
    are the vectors p of the lane's secant updates, added and taken off in turn. Arrays of the
    columns are (q, 8), `tolerance` is (8,). A coordinate keeps step 0 if it has no curvature or
    may not move.
    """
    sign = np.where(np.arange(pairs.shape[1]) % 2, -1.0, 1.0)
    for k in range(scale.size):
        own = scale[k] * curvature + (pairs[:, :, k] * sign) @ pairs[:, :, k].T
        use = np.flatnonzero(may_move[:, k])
        d, b_d = np.zeros(use.size), np.zeros(use.size)
        problem = NewtonQuadratic(
            own[np.ix_(use, use)], gradient[use, k], beta[use, k], l1[use], l2[use], box[use, k]
        )
        descent_ref.minimise_quadratic(problem, tolerance[k], max_sweeps, d, b_d)
        step[use, k] = d
        image[:, k] = own @ step[:, k]
