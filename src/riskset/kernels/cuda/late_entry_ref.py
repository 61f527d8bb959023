"""Sums over risk sets that rows enter late, as the plain formulas: the specification.

A row at risk in the groups [first, end) of level l is a tail of the left half and a head of the
right half of one block of ``2 half`` groups: see `scan_plan.LevelPlan`. Places number the groups
with those of right halves in mirrored order; `starts`, `chunk_ptr`, `group_piece` are by place.
"""

import numpy as np

from riskset._types import AnyArray, Index, Matrix

__all__ = ["add_level", "level_residuals", "seen_level", "sum_level", "sum_tied"]


def _groups_by_place(n_places: int, half: int) -> Index:
    place = np.arange(n_places)
    return np.where(place & half, place ^ (half - 1), place)


def _block(g: Index, half: int) -> Index:
    return g // half if half else g


def sum_tied(
    r: Matrix, event_ptr: AnyArray, event_row: AnyArray, n_groups: int, n_lanes: int, tied: Matrix
) -> None:
    """Sum of the risks of the rows with an event in each group."""
    for g in range(n_groups):
        tied[g] = r[event_row[event_ptr[g] : event_ptr[g + 1]]].sum(axis=0)


def add_level(
    sums: Matrix,
    group_piece: AnyArray,
    tied_piece: AnyArray,
    starts: AnyArray,
    chunk_ptr: AnyArray,
    carried: Matrix,
    n_chunks: int,
    half: int,
    n_groups: int,
    n_lanes: int,
    rest: Matrix,
) -> None:
    """Add a level's rows to the sums of the groups in which they are at risk, without tied ones.

    `rest` of a group in a left half gains the rows that start at it or before it in the half, in a
    right half those that end at it or after it; rows with an event count from the next group on.
    """
    at = _groups_by_place(starts.size, half)
    for c in range(n_chunks):
        for p in range(chunk_ptr[c], chunk_ptr[c + 1]):
            if at[p] >= n_groups:
                continue
            begin = max(q for q in range(p + 1) if starts[q] or q == 0)
            first = max(begin, chunk_ptr[c])
            total = sums[group_piece[first] : tied_piece[p]].sum(axis=0)
            rest[at[p]] += total + (carried[c] if begin < chunk_ptr[c] else 0.0)


def sum_level(
    hazard: Matrix,
    starts: AnyArray,
    chunk_ptr: AnyArray,
    n_chunks: int,
    half: int,
    n_groups: int,
    n_lanes: int,
    handed: Matrix,
) -> None:
    """Sum of the hazard over the places of a chunk up to the first that starts, without that."""
    at = _groups_by_place(starts.size, half)
    for c in range(n_chunks):
        own = np.arange(chunk_ptr[c], chunk_ptr[c + 1])
        stop = np.flatnonzero(starts[own])
        own = own[: stop[0]] if stop.size else own
        handed[c] = hazard[at[own][at[own] < n_groups]].sum(axis=0)


def seen_level(
    hazard: Matrix,
    starts: AnyArray,
    chunk_ptr: AnyArray,
    carried: Matrix,
    n_chunks: int,
    half: int,
    n_groups: int,
    n_lanes: int,
    seen: Matrix,
) -> None:
    """What a row sees of the hazard in one half of its block.

    `seen` of a group in a left half is the sum over the groups after it in the half, in a right
    half that over the groups up to it.
    """
    g = np.arange(n_groups)
    for k in range(n_groups):
        same = _block(g, half) == _block(g[k : k + 1], half)
        seen[k] = hazard[same & ((g <= k) if k & half else (g > k))].sum(axis=0)


def level_residuals(
    row: AnyArray,
    first: AnyArray,
    end: AnyArray,
    weight: Matrix,
    is_event: AnyArray,
    hazard: Matrix,
    hazard_tied: Matrix,
    seen: Matrix,
    n_places: int,
    half: int,
    is_efron: int,
    n_lanes: int,
    residual: Matrix,
) -> None:
    """Observed less expected events of the rows of a level; `residual` holds their risks before."""
    for i in range(n_places):
        j, a, b = row[i], first[i], end[i]
        total = np.zeros(n_lanes)
        if a < b:
            total = total + (hazard_tied[a] if is_efron and is_event[j] else hazard[a])
        if half:
            total = total + seen[a] + seen[b - 1]
        residual[j] = weight[j] * is_event[j] - residual[j] * total
