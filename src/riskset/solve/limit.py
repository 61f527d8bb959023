"""The likelihood in the limit, as coefficients go to infinity along a direction d.

Each risk set keeps the rows that attain its maximum of x'd. On the rows that d was found on every
event is among them (`solve.separation`); on others an event need not be.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import Features, Rows
from riskset.data.design import Design
from riskset.model.loss import Loss
from riskset.solve.exact import Direction, order_of

__all__ = [
    "DirectionValues",
    "log_likelihood_without",
    "events_lost_in_limit",
    "restrict_to_limit",
]

RELATIVE_SLACK = 1e-8
"""Values of x'd of several columns that differ by less of what they are summed from may be equal
up to the rounding of d, which comes from a search. A `Direction` orders them exactly."""
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


def restrict_to_limit(design: Design, loss: Loss, direction: Direction) -> Loss:
    """The likelihood in the limit: each risk set keeps the rows that attain its maximum of x'd."""
    values = DirectionValues.of(design, loss, direction)
    return loss.in_limit(values.z, values.slack)


def events_lost_in_limit(loss: Loss) -> NDArray[np.bool_]:
    """Rows (n,) whose event attains no maximum of its risk set: it has likelihood 0 in the limit.

    The loss is what `restrict_to_limit` left.
    """
    out = loss.outcome.is_event & (loss.outcome.weight > 0)
    out[loss.risk.order[loss.risk.event_weight > 0]] = False
    return out


def log_likelihood_without(loss: Loss, eta: Rows, left_out: NDArray[np.bool_]) -> float:
    r"""Log likelihood without the terms of some events; their rows stay at risk.

    The term of an event i among the m that are tied in its group is

    .. math:: w_i \Bigl(\eta_i - \frac{1}{m} \sum_{k=0}^{m-1} \log(D - \tfrac{k}{m} E)\Bigr)

    as in `risk_sets_ref.cox_pass`, with m the number of all of them: the terms that are left in are
    the limits of what they are at finite coefficients. Those that `events_lost_in_limit` names must
    be among `left_out` (n,).
    """
    risk = loss.risk
    out = left_out[risk.order] & (risk.event_weight > 0)
    events = np.zeros(risk.group_events.size)
    np.add.at(events, risk.group, np.where(out, 0.0, risk.event_weight))
    some = risk._replace(
        event_weight=np.where(out, TIED_EVENT_WEIGHT, risk.event_weight),
        group_events=events,
        group_tied=np.where(events > 0, risk.group_tied, 0),
    )
    return loss.restricted(some, loss.tails).evaluate(eta).log_likelihood
