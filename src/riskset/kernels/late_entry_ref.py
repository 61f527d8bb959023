"""Sums over risk sets that rows enter late, written as the formulas read."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import RiskSets, Rows
from riskset.kernels.risk_sets_ref import _at_risk

__all__ = ["sum_at_risk", "sum_seen"]


def _own_event(risk: RiskSets) -> NDArray[np.bool_]:
    group = np.arange(risk.group_events.size)[:, None]
    in_own: NDArray[np.bool_] = (risk.group == group) & (risk.event_weight > 0)
    return in_own


def sum_at_risk(r: Rows, risk: RiskSets, efron: bool, rest: NDArray[np.float64]) -> None:
    r"""Sum of r (n,) over the rows at risk in each group; for Efron, without its events.

    Rows are in risk order.

    .. math:: rest_g = \sum_{i \in R_g} r_i
    """
    part = _at_risk(risk) & ~(_own_event(risk) & efron)
    rest[:] = (part * r).sum(axis=1)


def sum_seen(
    hazard: NDArray[np.float64], hazard_tied: NDArray[np.float64], risk: RiskSets, seen: Rows
) -> None:
    r"""Sum of the hazard over the groups in which each row is at risk, in risk order.

    .. math:: seen_i = \sum_{g: i \in R_g} h_g

    In its own group a row with an event takes `hazard_tied`.
    """
    taken = np.where(_own_event(risk), hazard_tied[:, None], hazard[:, None])
    seen[:] = (_at_risk(risk) * taken).sum(axis=0)
