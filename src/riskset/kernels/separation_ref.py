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

    Parameters
    ----------
    z : (n,) float64
        In risk order; -inf for absent rows.
    group_ptr : (G + 1,) int64
    starts : (G,) bool
        Groups that begin a stratum.

    Returns
    -------
    peak : (G,) float64
        -inf where nobody is at risk.
    at : (G,) int64
        Any of the rows that attain it, in risk order; -1 where nobody is at risk.
    """
    group = np.arange(starts.size)[:, None]
    own, stratum = np.repeat(np.arange(starts.size), np.diff(group_ptr)), np.cumsum(starts)
    return _peaks(z, (own <= group) & (stratum[own] == stratum[:, None]))


def peaks_cover(
    z: Rows, own: Index, end: Index, level_rows: Index, level_ptr: Pointer, n_groups: int
) -> tuple[NDArray[np.float64], Index]:
    """As `peaks_nested`, where row i is at risk in groups own[i] up to end[i].

    Parameters
    ----------
    level_rows, level_ptr
        See `RiskSets`; the specification does not need them.
    """
    group = np.arange(n_groups)[:, None]
    return _peaks(z, (own <= group) & (group < end))


def attaining(
    z: Rows, peak: NDArray[np.float64], own: Index, end: Index
) -> tuple[Index, Index, Index]:
    """Runs of groups, within each row's range, in which its z reaches the peak.

    Parameters
    ----------
    z : (n,) float64
    peak : (G,) float64
    own, end : (n,) int64
        The range of row i is own[i] up to end[i].

    Returns
    -------
    rows, begin, stop : (n_runs,) int64
        Row ``rows[k]`` has ``z >= peak`` in groups ``begin[k]`` up to ``stop[k]``, and not in the
        groups of its range next to them. Sorted by row, then by group.
    """
    runs = []
    for i in range(z.size):
        reaches = np.concatenate([[False], z[i] >= peak[own[i] : end[i]], [False]])
        edges = own[i] + np.flatnonzero(reaches[1:] != reaches[:-1])
        runs += [(i, a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    rows, begin, stop = np.array(runs, dtype=np.int64).reshape(-1, 3).T
    return rows, begin, stop
