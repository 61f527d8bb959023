"""Eight likelihoods at once on the CPU. The specification is `replicates_ref`.

A kernel does all rows in one thread: bundles of eight are shared out among the threads, so that
nothing is divided, and the bits of a lane depend on its own numbers alone.
"""

import math

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray, Index, Matrix, RiskSets, Rows
from riskset.kernels import _vector_sums as vector
from riskset.kernels._jit import kernel
from riskset.kernels._vector import LANES, gather_rows, scatter_rows
from riskset.kernels.replicates_ref import LaneTail

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


@kernel
def cross_sparse(
    block_ptr: Index,
    row: AnyArray,
    value: Rows | None,
    slots: Index,
    r: Matrix,
    shift: int,
    out: Matrix,
) -> None:
    for b in range(block_ptr.shape[0]):
        for m in range(slots.size):
            s = slots[m]
            first, last = block_ptr[b, s], block_ptr[b, s + 1]
            gather_rows(row, value, first, last, b << shift, r, out, m)


@kernel
def cross_dense(blocks: AnyArray, slots: Index, r: Matrix, out: Matrix) -> None:
    n_blocks, _, size = blocks.shape
    for b in range(n_blocks):
        n = min(size, r.shape[0] - b * size)
        for m in range(slots.size):
            gather_rows(None, blocks[b, slots[m]], 0, n, b * size, r, out, m)


@kernel
def product_sparse(
    block_ptr: Index,
    row: AnyArray,
    value: Rows | None,
    slots: Index,
    v: Matrix,
    shift: int,
    out: Matrix,
) -> None:
    for b in range(block_ptr.shape[0]):
        for m in range(slots.size):
            s = slots[m]
            first, last = block_ptr[b, s], block_ptr[b, s + 1]
            scatter_rows(row, value, first, last, b << shift, v, m, out)


@kernel
def product_dense(blocks: AnyArray, slots: Index, v: Matrix, out: Matrix) -> None:
    n_blocks, _, size = blocks.shape
    for b in range(n_blocks):
        n = min(size, out.shape[0] - b * size)
        for m in range(slots.size):
            scatter_rows(None, blocks[b, slots[m]], 0, n, b * size, v, m, out)


@kernel
def bounds(x: Matrix, low: Rows, high: Rows) -> None:
    n = x.shape[0]
    low[:], high[:] = np.inf, -np.inf
    for i in range(n):
        for k in range(LANES):
            low[k] = min(low[k], x[i, k])
            high[k] = max(high[k], x[i, k])


@kernel
def counts(weight: Rows, unit: Rows, lane: int, out: AnyArray) -> bool:
    exact = True
    for i in range(weight.size):
        ratio = weight[i] / unit[i] if unit[i] > 0.0 else 0.0
        n = np.uint8(min(ratio, 255.0))
        exact = exact and n * unit[i] == weight[i]
        out[i, lane] = n
    return exact


@kernel
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
    vector.sum_up_to(
        eta, shift, risk.order, risk.weight, risk.event_weight, count, risk.group_ptr,
        risk.starts_stratum, more, r, hazard, low, value,
    )  # fmt: skip


@kernel
def sum_after(eta: Matrix, shift: Rows, tail: LaneTail, r: Matrix, total: Matrix) -> None:
    vector.sum_after(
        eta, shift, tail.order, tail.weight, tail.group_ptr, tail.starts_stratum, tail.survival, r,
        total,
    )  # fmt: skip


@kernel
def residuals_up_to(
    hazard: Matrix, risk: RiskSets, count: AnyArray, r: Matrix, residual: Matrix
) -> None:
    vector.residuals_up_to(
        hazard, risk.order, r, risk.event_weight, count, risk.group_ptr, risk.starts_stratum,
        residual,
    )  # fmt: skip


@kernel
def residuals_of_tail(hazard: Matrix, tail: LaneTail, r: Matrix, residual: Matrix) -> None:
    vector.residuals_of_tail(
        hazard, tail.order, r, tail.group_ptr, tail.starts_stratum, tail.survival, residual
    )


@kernel
def _curvatures(curvature: Matrix, scale: Rows, pairs: AnyArray) -> Matrix:
    """Curvature (q, 8) of single coordinates; secant pairs take away no more than all but 0.1 %."""
    q, n_pairs = pairs.shape[0], pairs.shape[1]
    size = np.empty((q, LANES))
    for j in range(q):
        for k in range(LANES):
            h = curvature[j, j] * scale[k]
            size[j, k] = h
            for a in range(n_pairs):
                sign = 1.0 - 2.0 * (a & 1)
                size[j, k] += sign * pairs[j, a, k] * pairs[j, a, k]
            size[j, k] = max(size[j, k], 1e-3 * h)
    return size


@kernel
def _any_remaining(
    moved: Rows, tolerance: Rows, full: NDArray[np.bool_], done: NDArray[np.bool_]
) -> bool:
    """Whether a lane goes on after a sweep that moved its coordinates by so much, in place.

    A sweep over all coordinates (`full`) is followed by sweeps over those that are not 0, and the
    last one is over all again.
    """
    remaining = False
    for k in range(LANES):
        if not done[k]:
            if moved[k] <= tolerance[k]:
                done[k] = full[k]
                full[k] = True
            else:
                full[k] = False
            remaining = remaining or not done[k]
    return remaining


@kernel
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
    q, n_pairs = pairs.shape[0], pairs.shape[1]
    size = _curvatures(curvature, scale, pairs)
    seen = np.zeros((n_pairs, LANES))
    change = np.empty((1, LANES))
    pull = np.empty(LANES)
    full, done, moved = np.ones(LANES, np.bool_), np.zeros(LANES, np.bool_), np.empty(LANES)
    for _ in range(max_sweeps):
        moved[:] = 0.0
        for j in range(q):
            some = False
            for k in range(LANES):
                change[0, k] = 0.0
                looked = beta[j, k] + step[j, k] != 0.0 or full[k]
                if may_move[j, k] and not done[k] and looked:
                    change[0, k] = 1.0
                    some = True
            if not some:
                continue
            for k in range(LANES):
                pull[k] = gradient[j, k] - image[j, k]
            for a in range(n_pairs):
                sign = 1.0 - 2.0 * (a & 1)
                for k in range(LANES):
                    pull[k] -= sign * pairs[j, a, k] * seen[a, k]
            some = False
            for k in range(LANES):
                h = size[j, k]
                if change[0, k] == 0.0 or h + l2[j] <= 0.0:
                    change[0, k] = 0.0
                    continue
                z = (beta[j, k] + step[j, k]) * h + pull[k]
                target = math.copysign(max(abs(z) - l1[j], 0.0) / (h + l2[j]), z)
                new = min(max(target - beta[j, k], -box[j, k]), box[j, k])
                change[0, k] = new - step[j, k]
                if change[0, k] != 0.0:
                    some = True
                    step[j, k] = new
                    moved[k] = max(moved[k], abs(change[0, k]) * (h + l2[j]))
            if some:
                for a in range(n_pairs):
                    for k in range(LANES):
                        seen[a, k] += pairs[j, a, k] * change[0, k]
                for k in range(LANES):
                    change[0, k] *= scale[k]
                scatter_rows(None, curvature[j], 0, q, 0, change, 0, image)
        if not _any_remaining(moved, tolerance, full, done):
            break
    for j in range(q):
        for a in range(n_pairs):
            sign = 1.0 - 2.0 * (a & 1)
            for k in range(LANES):
                image[j, k] += sign * pairs[j, a, k] * seen[a, k]
