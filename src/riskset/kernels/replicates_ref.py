"""Eight likelihoods at once, as the plain formulas: the specification of `replicates_host`.

A lane is one replicate: a fold or a resample of the same rows. Arrays (n, 8) hold one row of lanes
for each row, column or group. The matrix is stored as in `matrix_ref`.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Matrix, Rows
from riskset.kernels import descent_ref, matrix_ref

__all__ = [
    "bounds",
    "counts",
    "cross_binary",
    "cross_dense",
    "cross_valued",
    "minimise_quadratics",
    "product_binary",
    "product_dense",
    "product_valued",
    "residuals_of_tail",
    "residuals_up_to",
    "sum_after",
    "sum_up_to",
]

_ALONE = Runtime(1)


def cross_binary(
    block_ptr: Index, row: AnyArray, slots: Index, r: Matrix, shift: int, out: Matrix
) -> None:
    """Add `matrix_ref.cross_binary` of each lane of `r` (n, 8) to `out` (m, 8)."""
    cross_valued(block_ptr, row, np.ones(row.size), slots, r, shift, out)


def cross_valued(
    block_ptr: Index, row: AnyArray, value: Rows, slots: Index, r: Matrix, shift: int, out: Matrix
) -> None:
    """As `cross_binary`, with the value of each entry."""
    for k in range(r.shape[1]):
        out[:, k] += matrix_ref.cross_valued(block_ptr, row, value, slots, r[:, k], shift, _ALONE)


def cross_dense(blocks: AnyArray, slots: Index, r: Matrix, out: Matrix) -> None:
    """As `cross_binary`, for a dense part."""
    for k in range(r.shape[1]):
        out[:, k] += matrix_ref.cross_dense(blocks, slots, r[:, k], _ALONE)


def product_binary(
    block_ptr: Index, row: AnyArray, slots: Index, v: Matrix, shift: int, out: Matrix
) -> None:
    """Add `matrix_ref.product_binary` of each lane of `v` (m, 8) to `out` (n, 8)."""
    product_valued(block_ptr, row, np.ones(row.size), slots, v, shift, out)


def product_valued(
    block_ptr: Index, row: AnyArray, value: Rows, slots: Index, v: Matrix, shift: int, out: Matrix
) -> None:
    """As `product_binary`, with the value of each entry."""
    for k in range(v.shape[1]):
        matrix_ref.product_valued(block_ptr, row, value, slots, v[:, k], shift, out[:, k], _ALONE)


def product_dense(blocks: AnyArray, slots: Index, v: Matrix, out: Matrix) -> None:
    """As `product_binary`, for a dense part."""
    for k in range(v.shape[1]):
        matrix_ref.product_dense(blocks, slots, v[:, k], out[:, k], _ALONE)


def _groups(group_ptr: Index, starts: NDArray[np.bool_]) -> tuple[Index, Index]:
    """Group of each row, and stratum of each group."""
    group = np.repeat(np.arange(starts.size), np.diff(group_ptr))
    return group, np.cumsum(starts)


def bounds(x: Matrix, low: Rows, high: Rows) -> None:
    """Least and largest number of each lane of `x` (n, 8), to `low` and `high` (8,)."""
    low[:], high[:] = x.min(axis=0), x.max(axis=0)


def counts(weight: Rows, unit: Rows, lane: int, out: AnyArray) -> bool:
    """How often each row counts in a lane: ``weight / unit``, to column `lane` of `out` (n, 8).

    Parameters
    ----------
    weight : (n,) float64
        Case weights of the lane.
    unit : (n,) float64
        Those of the data.
    out : (n, 8) uint8

    Returns
    -------
    bool
        Whether all counts are whole numbers below 256; if not, `out` says nothing.
    """
    ratio = np.minimum(np.divide(weight, unit, out=np.zeros_like(unit), where=unit > 0), 255.0)
    out[:, lane] = ratio.astype(np.uint8)
    return bool((out[:, lane] * unit == weight).all())


def sum_up_to(
    eta: Matrix,
    shift: Rows,
    order: Index,
    weight: Rows,
    events: Rows,
    count: AnyArray,
    group_ptr: Index,
    starts: NDArray[np.bool_],
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

    S within the stratum of g, :math:`d_g` the sum of :math:`d_i` in the group.

    Parameters
    ----------
    eta : (n, 8) float64
        In the caller's order.
    shift : (8,) float64
        s.
    order : (n,) int64
        Position -> the caller's row.
    weight, events : (n,) float64
        By position; `events` is 0 for rows without one.
    count : (n, 8) uint8 or float64
        How often a row counts in a lane; by position.
    group_ptr : (G + 1,) int64
    starts : (G,) bool
        The group is the first of its stratum.
    more : (G, 8) float64 or None
        m, what tails add to each risk set.
    r : (n, 8) float64
        By position.
    hazard : (G, 8) float64
        h; 0 without events.
    low : (8,) float64
        The least S of groups with events; the others stand for 1.
    value : (8,) float64
        The likelihood. The results are `r`, `hazard`, `low` and `value`.
    """
    x = eta[order] - shift
    r[:] = (weight[:, None] * count) * np.exp(x)
    died = events[:, None] * count
    group, stratum = _groups(group_ptr, starts)
    value[:] = (died * x).sum(axis=0)
    low[:] = np.inf
    for g in range(starts.size):
        among = (stratum[group] == stratum[g]) & (group <= g)
        total = r[among].sum(axis=0) + (0.0 if more is None else more[g])
        d = died[group == g].sum(axis=0)
        total = np.where(d > 0, total, 1.0)
        hazard[g] = d / total
        low[:] = np.minimum(low, total)
        value -= d * np.log(total)


def sum_after(
    eta: Matrix,
    shift: Rows,
    order: Index,
    weight: Matrix,
    group_ptr: Index,
    starts: NDArray[np.bool_],
    survival: Matrix,
    r: Matrix,
    total: Matrix,
) -> None:
    r"""Risk of each row of a tail, and what they add to the risk sets before which they stand.

    .. math::
        r_i = w_i e^{\eta_i - s}, \qquad
        total_g \mathrel{+}= G_g \sum_{i \text{ in groups} > g} r_i

    within the stratum of g; arrays as in `sum_up_to`, but for these.

    Parameters
    ----------
    order : (m,) int64
    weight, r : (m, 8) float64
        By position.
    survival : (G, 8) float64
        The probability G of no censoring up to the group.
    total : (G, 8) float64
        Changed in place.
    """
    r[:] = weight * np.exp(eta[order] - shift)
    group, stratum = _groups(group_ptr, starts)
    for g in range(starts.size):
        among = (stratum[group] == stratum[g]) & (group > g)
        total[g] += survival[g] * r[among].sum(axis=0)


def residuals_up_to(
    hazard: Matrix,
    order: Index,
    r: Matrix,
    events: Rows,
    count: AnyArray,
    group_ptr: Index,
    starts: NDArray[np.bool_],
    residual: Matrix,
) -> None:
    r"""Events of each row minus those expected up to its own time.

    .. math:: residual_i = d_i - r_i \sum_{g \ge g_i} h_g

    within the stratum of the row's group :math:`g_i`; arrays as in `sum_up_to`.

    Parameters
    ----------
    residual : (n, 8) float64
        In the caller's order.
    """
    group, stratum = _groups(group_ptr, starts)
    for i in range(order.size):
        seen = (stratum == stratum[group[i]]) & (np.arange(starts.size) >= group[i])
        residual[order[i]] = events[i] * count[i] - r[i] * hazard[seen].sum(axis=0)


def residuals_of_tail(
    hazard: Matrix,
    order: Index,
    r: Matrix,
    group_ptr: Index,
    starts: NDArray[np.bool_],
    survival: Matrix,
    residual: Matrix,
) -> None:
    r"""Take off what is expected of the rows of a tail after their own time.

    .. math:: residual_i \mathrel{-}= r_i \sum_{g < g_i} G_g h_g

    within the stratum of the row's group; arrays as in `sum_after`.
    """
    group, stratum = _groups(group_ptr, starts)
    for i in range(order.size):
        seen = (stratum == stratum[group[i]]) & (np.arange(starts.size) < group[i])
        residual[order[i]] -= r[i] * (survival * hazard)[seen].sum(axis=0)


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

    Parameters
    ----------
    curvature : (q, q) float64
        B, shared; a coordinate without curvature stays where it is.
    scale : (8,) float64
    pairs : (q, n_pairs, 8) float64
        Vectors of the lane's secant updates, added and taken off in turn.
    gradient, beta, box, step, image : (q, 8) float64
    may_move : (q, 8) bool
        The others keep step 0.
    tolerance : (8,) float64
    """
    sign = np.where(np.arange(pairs.shape[1]) % 2, -1.0, 1.0)
    for k in range(scale.size):
        own = scale[k] * curvature + (pairs[:, :, k] * sign) @ pairs[:, :, k].T
        use = np.flatnonzero(may_move[:, k])
        d, b_d = np.zeros(use.size), np.zeros(use.size)
        descent_ref.minimise_quadratic(
            own[np.ix_(use, use)], gradient[use, k], beta[use, k], l1[use], l2[use],
            box[use, k], tolerance[k], max_sweeps, d, b_d,
        )  # fmt: skip
        step[use, k] = d
        image[:, k] = own @ step[:, k]
