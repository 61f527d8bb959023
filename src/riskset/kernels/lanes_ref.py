"""Eight likelihoods at once, as the plain formulas: the specification of `lanes_cpu`.

A lane is one replicate: a fold or a resample of the same rows. Arrays (n, 8) hold one row of lanes
for each row, column or group. The matrix is stored as in `matrix_ref`.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Matrix, Rows
from riskset.kernels import descent_ref, matrix_ref

__all__ = [
    "add_expected",
    "bounds",
    "cross_binary",
    "cross_dense",
    "cross_valued",
    "into_groups",
    "minimise_quadratics",
    "product_binary",
    "product_dense",
    "product_valued",
    "score",
    "sum_at_risk",
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


def into_groups(
    weight: Matrix,
    order: Index,
    is_event: NDArray[np.bool_],
    group_ptr: Index,
    placed: Matrix,
    events: Matrix,
    group_events: Matrix,
) -> None:
    """Case weights by position, those of the rows with an event, and the sums of these by group.

    Parameters
    ----------
    weight : (n, 8) float64
        In the caller's order, as `is_event` (n,) and `events` (n, 8).
    placed : (n, 8) float64
    group_events : (G, 8) float64
        The results, with `events`.
    """
    placed[:] = weight[order]
    events[:] = weight * is_event[:, None]
    group_events[:] = np.add.reduceat(events[order], group_ptr[:-1])


def score(eta: Matrix, shift: Rows, events: Matrix, out: Rows) -> None:
    """``sum_i events[i] (eta[i] - shift)`` of each lane, to `out` (8,)."""
    out[:] = (events * (eta - shift)).sum(axis=0)


def sum_at_risk(
    eta: Matrix,
    shift: Rows,
    order: Index,
    weight: Matrix,
    group_ptr: Index,
    starts: NDArray[np.bool_],
    is_tail: bool,
    r: Matrix,
    total: Matrix,
) -> None:
    r"""Risk of each row, and its sum over nested risk sets.

    .. math::
        r_i = w_i e^{\eta_i - s}, \qquad
        S_g = \sum_{i \text{ in groups} \le g} r_i, \qquad
        T_g = \sum_{i \text{ in groups} > g} r_i

    S and T within the stratum of g: S for rows up to their own time, T for a tail, after it.

    Parameters
    ----------
    eta : (n, 8) float64
        In the caller's order.
    shift : (8,) float64
    order : (m,) int64
        Position -> the caller's row.
    weight : (m, 8) float64
        By position.
    group_ptr : (G + 1,) int64
    starts : (G,) bool
        The group is the first of its stratum.
    is_tail : bool
        T instead of S.
    r : (m, 8) float64
    total : (G, 8) float64
        The results.
    """
    r[:] = weight * np.exp(eta[order] - shift)
    group, stratum = _groups(group_ptr, starts)
    for g in range(starts.size):
        among = (stratum[group] == stratum[g]) & ((group > g) if is_tail else (group <= g))
        total[g] = r[among].sum(axis=0)


def add_expected(
    hazard: Matrix,
    order: Index,
    r: Matrix,
    group_ptr: Index,
    starts: NDArray[np.bool_],
    is_tail: bool,
    residual: Matrix,
) -> None:
    r"""Take the expected events of each row off its residual.

    .. math::
        \sum_{g \ge g_i} h_g r_i \quad\text{or, of a tail,}\quad \sum_{g < g_i} h_g r_i

    within the stratum of the row's group :math:`g_i`; arrays as in `sum_at_risk`.

    Parameters
    ----------
    hazard : (G, 8) float64
    r : (m, 8) float64
    residual : (n, 8) float64
        In the caller's order; changed in place.
    """
    group, stratum = _groups(group_ptr, starts)
    every = np.arange(starts.size)
    for i in range(order.size):
        g = group[i]
        seen = (stratum == stratum[g]) & ((every < g) if is_tail else (every >= g))
        residual[order[i]] -= r[i] * hazard[seen].sum(axis=0)


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
