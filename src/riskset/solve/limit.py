"""The likelihood in the limit, as coefficients go to infinity along a direction d.

Each risk set keeps the rows that attain its maximum of x'd. On the rows that d was found on every
event is among them (`solve.separation`); on others an event need not be.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import Features, Index, RiskSets, Rows
from riskset.data.design import Design
from riskset.data.risk_order import by_level
from riskset.kernels import separation_cpu as kernels
from riskset.model.curvature import ranges_after, ranges_at_risk
from riskset.model.logistic import LogisticLoss
from riskset.model.loss import Loss
from riskset.solve.exact import Direction, order_of

__all__ = [
    "DirectionValues",
    "log_likelihood_without",
    "events_lost_in_limit",
    "peaks",
    "restrict_to_limit",
]

RELATIVE_SLACK = 1e-8
"""Values of x'd of several columns that differ by less of what they are summed from may be equal
but for the rounding of d: so says a search. Of a `Direction` they are told apart exactly."""
TIED_EVENT_WEIGHT = 1e-300
"""Weight of an event that is among the tied, and adds nothing itself."""


class DirectionValues(NamedTuple):
    """x'd of every row (caller's order), or its rank, and how much of it may be rounding."""

    z: Rows
    slack: Rows

    @classmethod
    def of(cls, design: Design, loss: Loss, direction: Direction | Features) -> "DirectionValues":
        """Of a direction in stored units; exact ranks without slack of a `Direction`."""
        runtime = loss.runtime
        if isinstance(direction, Direction):
            z = order_of(design, direction, runtime)
            return cls(z, np.zeros_like(z))
        z = design.product(direction, runtime=runtime)
        if np.count_nonzero(direction) == 1:
            return cls(z, np.zeros_like(z))
        return cls(z, RELATIVE_SLACK * design.magnitude(direction, runtime=runtime))


def peaks(loss: Loss, z: Rows) -> tuple[NDArray[np.float64], Index]:
    """Largest z of each risk set, and a row (caller's) that has it."""
    risk = loss.risk
    n_groups = risk.group_events.size
    present = np.where(risk.weight > 0, z[risk.order], -np.inf)
    if risk.own.size:
        peak, at = kernels.peaks_cover(
            present, risk.own, risk.end, risk.level_rows, risk.level_ptr, n_groups
        )
    else:
        peak, at = kernels.peaks_nested(present, risk.group_ptr, risk.starts_stratum)
    rival = risk.order[np.maximum(at, 0)]
    for tail in loss.tails:
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


def restrict_to_limit(design: Design, loss: Loss, direction: Direction) -> Loss:
    """The likelihood in the limit: each risk set keeps the rows that attain its maximum of x'd."""
    values = DirectionValues.of(design, loss, direction)
    if isinstance(loss, LogisticLoss):
        return loss.in_limit(values.z, values.slack)
    peak, top = peaks(loss, values.z)
    peak = peak - values.slack[top]
    z = values.z + values.slack
    tails = tuple(
        tail._replace(
            sets=_attaining(
                tail.sets, *ranges_after(tail.sets), z, np.where(tail.survival > 0, peak, np.inf)
            )
        )
        for tail in loss.tails
    )
    return loss.restricted(_attaining(loss.risk, *ranges_at_risk(loss.risk), z, peak), tails)


def _attaining(
    sets: RiskSets, own: Index, end: Index, z: Rows, peak: NDArray[np.float64]
) -> RiskSets:
    """What is left of risk sets: each row where its z reaches the peak."""
    rows, begin, stop = kernels.attaining(z[sets.order], peak, own, end)
    return _pieces(sets, rows, begin, stop, own)


def _pieces(risk: RiskSets, rows: Index, begin: Index, stop: Index, own: Index) -> RiskSets:
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


def events_lost_in_limit(loss: Loss) -> NDArray[np.bool_]:
    """Rows (n,) whose event attains no maximum of its risk set: it has likelihood 0 in the limit.

    Parameters
    ----------
    loss : Loss
        What `restrict` left.
    """
    out = loss.outcome.is_event & (loss.outcome.weight > 0)
    out[loss.risk.order[loss.risk.event_weight > 0]] = False
    return out


def log_likelihood_without(loss: Loss, eta: Rows, left_out: NDArray[np.bool_]) -> float:
    r"""Log likelihood without the terms of some events; their rows stay at risk.

    The term of an event i among the m that are tied in its group is

    .. math:: w_i \Bigl(\eta_i - \frac{1}{m} \sum_{k=0}^{m-1} \log(D - \tfrac{k}{m} E)\Bigr)

    as in `risk_sets_ref.cox_pass`, with m the number of all of them: the terms that are left in are
    the limits of what they are at finite coefficients.

    Parameters
    ----------
    left_out : (n,) bool
        Those that `missing` names among them.
    """
    risk = loss.risk
    group = np.repeat(np.arange(risk.group_events.size), np.diff(risk.group_ptr))
    out = left_out[risk.order] & (risk.event_weight > 0)
    events = np.zeros(risk.group_events.size)
    np.add.at(events, group, np.where(out, 0.0, risk.event_weight))
    some = risk._replace(
        event_weight=np.where(out, TIED_EVENT_WEIGHT, risk.event_weight),
        group_events=events,
        group_tied=np.where(events > 0, risk.group_tied, 0),
    )
    return loss.restricted(some, loss.tails).evaluate(eta).log_likelihood
