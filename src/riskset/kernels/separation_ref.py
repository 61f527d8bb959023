"""Maxima over risk sets, with the row that attains them, written as the formulas read."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Pointer, Rows

__all__ = ["attaining", "peaks_cover", "peaks_nested"]


def _peaks(z: Rows, at_risk: NDArray[np.bool_]) -> tuple[NDArray[np.float64], Index]:
    present = np.where(at_risk, z, -np.inf)
    peak = present.max(axis=1, initial=-np.inf)
    return peak, np.where(peak > -np.inf, present.argmax(axis=1), -1)


def peaks_nested(
    z: Rows, group_ptr: Pointer, starts: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], Index]:
    r"""Largest z over nested risk sets, and a row that has it.

    .. math:: p_g = \max_{i \in R_g} z_i

    `z` (n,) is in risk order, -inf for absent rows; `starts` (G,) marks the groups that begin a
    stratum. Where nobody is at risk, the peak is -inf and the row -1; the row is any that attains
    it.
    """
    group = np.arange(starts.size)[:, None]
    own, stratum = np.repeat(np.arange(starts.size), np.diff(group_ptr)), np.cumsum(starts)
    return _peaks(z, (own <= group) & (stratum[own] == stratum[:, None]))


def peaks_cover(
    z: Rows, own: Index, end: Index, level_rows: Index, level_ptr: Pointer, n_groups: int
) -> tuple[NDArray[np.float64], Index]:
    """As `peaks_nested`, where row i is at risk in groups own[i] up to end[i]."""
    group = np.arange(n_groups)[:, None]
    return _peaks(z, (own <= group) & (group < end))


def attaining(
    z: Rows, peak: NDArray[np.float64], own: Index, end: Index
) -> tuple[Index, Index, Index]:
    """Runs of groups, within each row's range own[i] to end[i], in which its z reaches the peak.

    Row ``rows[k]`` of the results has ``z >= peak`` in groups ``begin[k]`` up to ``stop[k]``, and
    not in the groups of its range next to them. Runs are sorted by row, then by group.
    """
    runs = []
    for i in range(z.size):
        reaches = np.concatenate([[False], z[i] >= peak[own[i] : end[i]], [False]])
        edges = own[i] + np.flatnonzero(reaches[1:] != reaches[:-1])
        runs += [(i, a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    rows, begin, stop = np.array(runs, dtype=np.int64).reshape(-1, 3).T
    return rows, begin, stop
