"""How a curve moves with the weight of each row: what robust variances are made of."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import Matrix, Rows
from riskset.curves.life_table import LifeTable, TableSteps
from riskset.curves.variance import greenwood_terms, survival_before

__all__ = ["Influence", "hazard_influence", "incidence_influence", "influence_at"]


class Influence(NamedTuple):
    r"""Derivative of a curve F in the weight of each row, for every time.

    It is :math:`d(t) - slope_i F(t) + constant_i` while row i is under observation, and
    :math:`end_i + q_i (F(t) - F(T_i))` from its end at T on. `d` is (m,), the others (n,).
    """

    d: TableSteps
    slope: Rows
    constant: Rows
    end: Rows
    q: Rows


def incidence_influence(table: LifeTable, k: int, incidence: TableSteps) -> Influence:
    r"""Influence of each row on the incidence of cause k.

    With :math:`A(t) = \sum d_u / (Y_u (Y_u - d_u))` and
    :math:`D(t) = \sum S(u-) (A(u-) - 1 / Y_u) \, d_{ku} / Y_u`, a row that entered at e changes
    F(t) by :math:`D(t) - D(e) - A(e) (F(t) - F(e))` while it is under observation. After its end
    at T the change moves on by q (F(t) - F(T)), q its change of log S(T).
    """
    at_risk, before, events = table.at_risk, survival_before(table)[0], table.events[k]
    place = table.place
    a = np.cumsum(greenwood_terms(table))
    a_before = np.append(0.0, a[:-1])
    d = np.cumsum(before * (a_before - 1.0 / at_risk) * (events / at_risk))
    a_entry, f_entry, d_entry = (table.at_entry(steps) for steps in (a, incidence, d))

    event = table.rows.event
    fails, fails_of_k = np.isin(event, table.causes), event == table.causes[k]
    survivors = table.staying + table.censored
    last = np.divide(1.0, survivors, out=np.zeros_like(survivors), where=survivors > 0)
    q = a[place] - a_entry - fails * last[place]
    end = (
        d[place]
        - d_entry
        - a_entry * (incidence[place] - f_entry)
        + fails_of_k * (before / at_risk)[place]
    )
    return Influence(d, a_entry, a_entry * f_entry - d_entry, end, q)


def influence_at(
    table: LifeTable, influence: Influence, curve: TableSteps, times: NDArray[np.float64]
) -> Matrix:
    r"""What each row adds to a curve at times (n, k): :math:`w_i \partial F / \partial w_i`."""
    seen = np.searchsorted(table.time, times, side="right")
    d, slope, constant, end, q = influence
    d, padded = np.append(0.0, d), np.append(0.0, curve)
    out = np.empty((table.rows.time.size, seen.size))
    for k, n in enumerate(seen.tolist()):
        staying = d[n] - slope * padded[n] + constant
        gone = end + q * (padded[n] - curve[table.place])
        moved = np.where(table.place < n, gone, staying)
        out[:, k] = table.rows.weight * np.where(table.start <= n, moved, 0.0)  # who has entered
    return out


def hazard_influence(table: LifeTable) -> Influence:
    """Influence of each row on the Nelson-Aalen estimate."""
    at_risk = table.at_risk
    d = -np.cumsum(table.n_events / at_risk**2)
    d_entry = table.at_entry(d)
    fails = np.isin(table.rows.event, table.causes)
    none = np.zeros(table.rows.time.size)
    end = d[table.place] - d_entry + fails / at_risk[table.place]
    return Influence(d, none, -d_entry, end, none)
