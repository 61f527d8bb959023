"""Sampling of risk sets and sums of squares over a sample, written as the formulas read."""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Matrix, Pointer, Rows

__all__ = [
    "bin_counts",
    "binary_gram",
    "draw_groups",
    "draw_mates",
    "draw_rows",
    "fill_bits",
    "fill_sparse",
]


def draw_rows(expected: Rows, n_samples: int) -> Index:
    """Draw rows (m,) systematically, in proportion to their expected events (n,)."""
    border = np.cumsum(expected)
    k = np.arange(n_samples)
    row = np.searchsorted(border, (k + 0.5) * (border[-1] / n_samples), side="right")
    return np.asarray(np.minimum(row, expected.size - 1), dtype=np.int64)


def draw_groups(own: Index, end: Index, cumulative: NDArray[np.float64]) -> Index:
    r"""Draw a group of each row (m,), at risk in groups [own, end), proportional to its hazard.

    After `draw_rows`, a pair has a probability proportional to the row's share of the risk set.

    .. math:: P(i, g) \propto 1\{i \in R_g\}\, r_i N_g / D_g

    The expected events of a row are the sums of these probabilities; its group follows by inverting
    the cumulative hazard, `cumulative` (G + 1,), at the fractional parts of multiples of the golden
    ratio.
    """
    part = np.modf((np.arange(own.size) + 1) * 0.6180339887498949)[0]
    low, high = cumulative[own], cumulative[end]
    target = low + part * (high - low)
    group = np.searchsorted(cumulative, target, side="right") - 1
    return np.asarray(np.clip(group, own, np.maximum(end - 1, own)), dtype=np.int64)


def draw_mates(
    r: Rows,
    group_ptr: Pointer,
    starts: NDArray[np.bool_],
    group: Index,
    own: Index,
    end: Index,
) -> Index:
    """A second row of each sampled risk set, drawn with probability proportional to r.

    With late entry rows that are not at risk are drawn again; after 20 tries there is none: -1. `r`
    is weight times exp(eta) in risk order, at any common scale.
    """
    stratum_start = np.maximum.accumulate(np.where(starts, group_ptr[:-1], 0))
    mate = np.full(group.size, -1, dtype=np.int64)
    for k, g in enumerate(group):
        first, last = stratum_start[g], group_ptr[g + 1]
        border = np.cumsum(r[first:last])
        for attempt in range(20):
            part = np.modf((k + 1) * 0.41421356237309503 + attempt * 0.6180339887498949)[0]
            at = first + np.searchsorted(border[:-1], part * border[-1], side="right")
            if own[at] <= g < end[at]:
                mate[k] = at
                break
    return mate


def fill_bits(
    block_ptr: Index,
    row: AnyArray,
    shift: int,
    columns: Index,
    copies: AnyArray,
    start: Pointer,
    slot: Index,
    bits: NDArray[np.uint64],
    runtime: Runtime,
) -> None:
    """Set bit s of column q where the row sampled in slot s has a one.

    `copies` (n,) is 1 where a row was sampled at all, and ``slot[start[i]:start[i + 1]]`` are the
    slots of row i. `bits` (q, n_words) is zero at the start; slot s is bit ``s % 64`` of word ``s
    // 64``.
    """
    for q, s in enumerate(columns):
        for b in range(block_ptr.shape[0]):
            for k in range(block_ptr[b, s], block_ptr[b, s + 1]):
                i = (b << shift) + int(row[k])
                for at in slot[start[i] : start[i + 1]]:
                    bits[q, at // 64] |= np.uint64(1) << np.uint64(at % 64)


def fill_sparse(
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
    shift: int,
    columns: Index,
    start: Pointer,
    slot: Index,
    out: Matrix,
) -> None:
    """``out[s, q] =`` the value of column q in the row of slot s; no values: a binary part."""
    for q, s in enumerate(columns):
        for b in range(block_ptr.shape[0]):
            for k in range(block_ptr[b, s], block_ptr[b, s + 1]):
                i = (b << shift) + int(row[k])
                out[slot[start[i] : start[i + 1]], q] = value[k] if value.size else 1.0


def binary_gram(bits: NDArray[np.uint64], runtime: Runtime) -> Matrix:
    """Number of slots in which both columns have a one, for all pairs of columns."""
    as_bytes = bits.view(np.uint8)
    ones = np.unpackbits(as_bytes, axis=1).astype(np.float64)
    return ones @ ones.T


def bin_counts(bits: NDArray[np.uint64], bin_word: Pointer) -> Matrix:
    """Number of ones of each column (q) in each bin of words: (n_bins, q)."""
    ones = np.bitwise_count(bits)
    return np.array(
        [ones[:, a:b].sum(axis=1) for a, b in zip(bin_word[:-1], bin_word[1:], strict=True)],
        dtype=np.float64,
    )
