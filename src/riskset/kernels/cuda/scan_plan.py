"""Cut risk sets into pieces of even size, so that ties and rare events leave no thread idle."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray, Index, Pointer, RiskSets

__all__ = [
    "EventRows",
    "LevelPlan",
    "ScanPlan",
    "cut",
    "events_by_group",
    "levels",
    "nested",
    "tail",
]

PIECE = 32
"""Rows that one thread adds up."""
CHUNK = 64
"""Pieces, or groups without any, that one thread passes in a running sum."""


class ScanPlan(NamedTuple):
    """A running sum over groups of rows, as the kernels of `risk_sets` take it.

    Attributes
    ----------
    place : (m,) int32
        Where the risks of each row are kept, group by group; in a group, rows with an event last
        if they are separate.
    piece_ptr : (n_pieces + 1,) int32
        A piece is ``place[piece_ptr[k]:piece_ptr[k + 1]]``, at most `PIECE` rows of one group.
    group_piece : (G + 1,) int32
        The pieces of a group.
    tied_piece : (G,) int32
        The first piece of its rows with an event.
    starts : (G,) uint8
        The sum starts anew.
    chunk_ptr : (n_chunks + 1,) int32
        The groups of a chunk.
    has_start : (n_chunks,) uint8
        Some group of the chunk starts anew.
    """

    place: AnyArray
    piece_ptr: AnyArray
    group_piece: AnyArray
    tied_piece: AnyArray
    starts: AnyArray
    chunk_ptr: AnyArray
    has_start: AnyArray


class EventRows(NamedTuple):
    """Rows with an event by group: ``row[ptr[g]:ptr[g + 1]]``, both int32."""

    ptr: AnyArray
    row: AnyArray


class LevelPlan(NamedTuple):
    """Rows that share a level of `late_entry.cuh`, and the sums over their group ranges.

    Attributes
    ----------
    half : int
        Groups of half a block; 0 for rows at risk in one group or none.
    scan : Scan
        By place in mirrored order; each row as a tail and as a head.
    row, first, end : (m,) int32
        The caller's rows, and the groups [first, end) in which each is at risk.
    """

    half: int
    scan: ScanPlan
    row: AnyArray
    first: AnyArray
    end: AnyArray


def cut(place: AnyArray, group: Index, is_tied: NDArray[np.bool_], starts: AnyArray) -> ScanPlan:
    """Pieces and chunks of rows in any order, by the group of each and whether it is separate."""
    n_groups = starts.size
    segment = 2 * group + is_tied
    order = np.argsort(segment, kind="stable")
    length = np.bincount(segment, minlength=2 * n_groups)
    n_pieces = -(-length // PIECE)
    first_piece = np.append(0, np.cumsum(n_pieces))
    within = np.arange(first_piece[-1]) - np.repeat(first_piece[:-1], n_pieces)
    begin = np.repeat(np.cumsum(length) - length, n_pieces)
    piece_ptr = np.append(begin + PIECE * within, place.size)
    work = np.maximum(n_pieces[0::2] + n_pieces[1::2], 1)
    before = np.cumsum(work) - work
    chunk_ptr = np.append(np.flatnonzero(np.diff(before // CHUNK, prepend=-1)), n_groups)
    has_start = np.add.reduceat(starts.astype(np.int64), chunk_ptr[:-1]) > 0
    return ScanPlan(
        _int32(place[order]),
        _int32(piece_ptr),
        _int32(first_piece[0::2]),
        _int32(first_piece[1::2]),
        starts.astype(np.uint8),
        _int32(chunk_ptr),
        has_start.astype(np.uint8),
    )


def nested(risk: RiskSets, is_event: NDArray[np.bool_], efron: bool) -> ScanPlan:
    """Rows in risk sets up to their own time; with `efron`, rows with an event are separate.

    `is_event` (n,) is in the caller's order.
    """
    return cut(risk.order, risk.group, is_event[risk.order] & efron, risk.starts_stratum)


def tail(group_ptr: Pointer, starts: AnyArray) -> ScanPlan:
    """Rows of a tail, kept in their own order."""
    group = np.repeat(np.arange(group_ptr.size - 1), np.diff(group_ptr))
    return cut(np.arange(group.size), group, np.zeros(group.size, dtype=bool), starts)


def events_by_group(risk: RiskSets, is_event: NDArray[np.bool_]) -> EventRows:
    """Rows with an event, by group."""
    has = is_event[risk.order]
    return EventRows(_int32(np.append(0, np.cumsum(has))[risk.group_ptr]), _int32(risk.order[has]))


def levels(risk: RiskSets, is_event: NDArray[np.bool_], efron: bool) -> list[LevelPlan]:
    """The levels of rows that enter late: `RiskSets.level_ptr`."""
    n_groups = risk.group_events.size
    at_risk = risk.own < risk.end
    found = []
    for level in range(risk.level_ptr.size - 1):
        rows = risk.level_rows[risk.level_ptr[level] : risk.level_ptr[level + 1]]
        if level == 0:
            # Rows that are never at risk need a residual, too.
            everyone = np.concatenate([rows, np.flatnonzero(~at_risk)])
            place, group = risk.order[rows], risk.own[rows]
            tied = is_event[place] & efron
            starts, half = np.ones(n_groups), 0
        elif rows.size:
            half = 1 << (level - 1)
            everyone, row = rows, risk.order[rows]
            head = risk.end[rows] - 1
            place = np.concatenate([row, row])
            group = np.concatenate([risk.own[rows], head ^ (half - 1)])
            tied = np.concatenate([is_event[row] & efron, np.zeros(row.size, dtype=bool)])
            starts = np.arange(-(-n_groups // half) * half) % half == 0
        else:
            continue
        scan = cut(place, group, tied, starts)
        at = everyone
        found.append(
            LevelPlan(half, scan, *map(_int32, (risk.order[at], risk.own[at], risk.end[at])))
        )
    return found


def _int32(x: AnyArray) -> AnyArray:
    assert x.size == 0 or int(x.max()) < 2**31
    return np.ascontiguousarray(x, dtype=np.int32)
