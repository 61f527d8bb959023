"""What is left of risk sets as coefficients go to infinity along a direction d.

The partial likelihood has a term ``exp(x_i'b) / sum_j exp(x_j'b)`` for each event. With b = t d and
t to infinity only those rows of a risk set keep a share of it that attain its maximum of x'd; the
others drop out. So the limit is a partial likelihood on smaller risk sets, and a row may be in some
of those between its entry and its time, and not in others: it is then kept in pieces.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, RiskSets, Rows, Tail
from riskset.data.risk_order import by_level
from riskset.kernels import separation_cpu as kernels

__all__ = ["attaining_peaks", "peaks", "pieces", "ranges_after", "ranges_at_risk"]


def ranges_at_risk(risk: RiskSets, rows: Index | None = None) -> tuple[Index, Index]:
    """Groups [own, end) in which each row is at risk, or each of some places in risk order."""
    if risk.own.size:
        return _some(risk.own, rows), _some(risk.end, rows)
    n_groups = risk.group_events.size
    first = np.append(np.flatnonzero(risk.starts_stratum), n_groups)
    stop = np.repeat(first[1:], np.diff(first))
    own = _groups(risk, rows)
    return own, stop[own]


def ranges_after(sets: RiskSets, rows: Index | None = None) -> tuple[Index, Index]:
    """Groups [own, end) in which each row of a tail is at risk, or each of some places in it."""
    if sets.own.size:
        return _some(sets.own, rows), _some(sets.end, rows)
    n_groups = sets.group_events.size
    first = np.flatnonzero(sets.starts_stratum)
    begin = np.repeat(first, np.diff(np.append(first, n_groups)))
    end = _groups(sets, rows)
    return begin[end], end


def _some(values: Index, rows: Index | None) -> Index:
    return values if rows is None else values[rows]


def _groups(sets: RiskSets, rows: Index | None) -> Index:
    """Group in which each row stands, or each of some places."""
    if rows is None:
        return sets.group
    # Of groups without rows at this place, the last one has them.
    return np.searchsorted(sets.group_ptr, rows, side="right") - 1


def peaks(risk: RiskSets, tails: tuple[Tail, ...], z: Rows) -> tuple[NDArray[np.float64], Index]:
    """Largest z (n,) of each risk set, and a row (caller's) that has it."""
    n_groups = risk.group_events.size
    present = np.where(risk.weight > 0, z[risk.order], -np.inf)
    if risk.own.size:
        peak, at = kernels.peaks_cover(
            present, risk.own, risk.end, risk.level_rows, risk.level_ptr, n_groups
        )
    else:
        peak, at = kernels.peaks_nested(present, risk.group_ptr, risk.starts_stratum)
    rival = risk.order[np.maximum(at, 0)]
    for tail in tails:
        sets = tail.sets
        if not sets.order.size:
            continue
        own, end = ranges_after(sets)
        own_z = np.where(sets.weight > 0, z[sets.order], -np.inf)
        top, at = kernels.peaks_cover(own_z, own, end, *by_level(own, end, n_groups), n_groups)
        higher = (top > peak) & (tail.survival > 0)
        peak = np.where(higher, top, peak)
        rival = np.where(higher, sets.order[np.maximum(at, 0)], rival)
    return peak, rival


def attaining_peaks(
    risk: RiskSets, tails: tuple[Tail, ...], z: Rows, slack: Rows
) -> tuple[RiskSets, tuple[Tail, ...]]:
    """Risk sets and tails of the rows that attain the maximum of z.

    `z` (n,) is x'd of a direction d of recession, of which `slack` (n,) may be rounding.
    """
    peak, top = peaks(risk, tails, z)
    peak = peak - slack[top]
    z = z + slack
    left = tuple(
        tail._replace(
            sets=_attaining(
                tail.sets, *ranges_after(tail.sets), z, np.where(tail.survival > 0, peak, np.inf)
            )
        )
        for tail in tails
    )
    return _attaining(risk, *ranges_at_risk(risk), z, peak), left


def _attaining(
    sets: RiskSets, own: Index, end: Index, z: Rows, peak: NDArray[np.float64]
) -> RiskSets:
    """What is left of risk sets: each row where its z reaches the peak."""
    rows, begin, stop = kernels.attaining(z[sets.order], peak, own, end)
    return pieces(sets, rows, begin, stop, own)


def pieces(risk: RiskSets, rows: Index, begin: Index, stop: Index, own: Index) -> RiskSets:
    """Risk sets of row pieces: position `rows[k]` is at risk in groups begin[k] to stop[k]."""
    has_event = (risk.event_weight[rows] > 0) & (begin == own[rows])
    # An event's piece must stand in its own group; the others may stand where they begin.
    by_group = np.argsort(begin, kind="stable")
    rows, begin, stop, has_event = (
        rows[by_group],
        begin[by_group],
        stop[by_group],
        has_event[by_group],
    )
    n_groups = risk.group_events.size
    group_ptr = np.searchsorted(begin, np.arange(n_groups + 1)).astype(np.int64)
    level_rows, level_ptr = by_level(begin, stop, n_groups)
    cut = np.searchsorted(group_ptr, np.linspace(0, rows.size, risk.chunk_ptr.size)[1:-1])
    chunks = np.unique(np.concatenate([[0], cut, [n_groups]])).astype(np.int64)
    return risk._replace(
        order=risk.order[rows],
        weight=risk.weight[rows],
        event_weight=np.where(has_event, risk.event_weight[rows], 0.0),
        group_ptr=group_ptr,
        chunk_ptr=chunks,
        own=begin,
        end=stop,
        level_rows=level_rows,
        level_ptr=level_ptr,
    )
