r"""Areas under the curves of a group up to a horizon, and how the rows of the group move them.

For the survival S free of every event and the incidence :math:`F_k` of each cause,

.. math:: \int_0^\tau S(t) \, dt + \sum_k \int_0^\tau F_k(t) \, dt = \tau.

At the times u there are :math:`Y_u` at risk, of whom :math:`d_{ku} = Y_u p_{ku}` fail of cause k
and :math:`d_u = Y_u p_u` of any. An area moves by :math:`g_{ju}` per unit of :math:`p_{ju}`: that
of S by

.. math:: g_{ju} = -\frac{1}{1 - p_u} \int_u^\tau S(t) \, dt,

and that of :math:`F_k` by

.. math:: g_{ju} = 1_{j = k} \, S(u-) (\tau - u)
    - \frac{1}{1 - p_u} \int_u^\tau (F_k(t) - F_k(u)) \, dt.

After a time at which everybody fails nothing moves.
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Rows
from riskset.curves._result import known_until
from riskset.curves.life_table import LifeTable, TableSteps
from riskset.curves.variance import survival_before

__all__ = ["RestrictedAreas", "RestrictedCurves"]


@dataclass(frozen=True, eq=False)
class RestrictedCurves:
    """The curves of one group, which have an area up to any horizon.

    `before` and `after` (m,) are the survival free of every event around each time of the table.
    """

    table: LifeTable
    before: TableSteps
    after: TableSteps

    @classmethod
    def of(cls, table: LifeTable) -> "RestrictedCurves":
        """The curves of a table, all of whose causes count as events."""
        return cls(table, *survival_before(table))

    @property
    def end(self) -> float:
        """The largest horizon: the end of follow-up, or none if nobody is left without an event."""
        return known_until(self.table.time, self.after)

    @functools.cached_property
    def entry_place(self) -> Index | None:
        """Number of times up to the entry of each row (n,); None if nobody enters late."""
        entry = self.table.rows.entry
        if entry is None or not self.table.has_late_entry:
            return None
        return np.searchsorted(self.table.time, entry, side="right")

    def areas(self, horizon: float) -> "RestrictedAreas":
        """Areas from 0 to a horizon, which should not be larger than `end`."""
        table = self.table
        n = int(np.searchsorted(table.time, horizon, side="right"))
        time, at_risk = table.time[:n], table.at_risk[:n]
        survivors = (table.staying + table.censored)[:n]
        inverse = np.divide(at_risk, survivors, out=np.zeros(n), where=survivors > 0)
        width = np.diff(time, append=horizon)
        free = _from_the_end(self.after[:n] * width)
        value = [float(free[0] + time[0]) if n else horizon]
        own, other = [np.zeros(n)], [-free * inverse]
        if table.causes.size == 1:
            value.append(horizon - value[0])
            own, other = [own[0], own[0]], [other[0], -other[0]]
        else:
            reach = self.before[:n] * (horizon - time)
            for events in table.events[:, :n]:
                lost = _from_the_end(reach * (events / at_risk))
                value.append(float(lost[0]) if n else 0.0)
                own.append(reach)
                other.append(-np.append(lost[1:], 0.0)[:n] * inverse)
        return RestrictedAreas(self, horizon, np.array(value), np.array(own), np.array(other))


@dataclass(frozen=True, eq=False)
class RestrictedAreas:
    """Areas up to a horizon (1 + k,): free of every event, and lost to each of k causes.

    At the n times up to the horizon, an event of the cause of an area moves it by `own` + `other`,
    and any other event by `other`, both (1 + k, n).
    """

    curves: RestrictedCurves
    horizon: float
    value: NDArray[np.float64]
    own: NDArray[np.float64]
    other: NDArray[np.float64]

    def counted_variance(self) -> NDArray[np.float64]:
        r"""Variances (1 + k,) in which weights are numbers of rows, by the delta method.

        .. math:: \sum_{u \le \tau} \frac{1}{Y_u} \Big( \sum_j p_{ju} (g_{ju} - \bar g_u)^2
            + (1 - p_u) \bar g_u^2 \Big), \qquad \bar g_u = \sum_j p_{ju} g_{ju}.

        That of the survival is :math:`\sum_u (\int_u^\tau S)^2 d_u / (Y_u (Y_u - d_u))`.
        """
        table, n = self.curves.table, self.own.shape[1]
        at_risk = table.at_risk[:n]
        any_share = table.n_events[:n] / at_risk
        left = (table.staying + table.censored)[:n] / at_risk
        found = []
        for q in range(self.value.size):
            share = self._share_of(q)
            mean = self._mean(q)
            spread = share * (self.own[q] + self.other[q] - mean) ** 2 + left * mean**2
            spread += np.maximum(any_share - share, 0.0) * (self.other[q] - mean) ** 2
            found.append(float((spread / at_risk).sum()))
        return np.array(found)

    def influence(self, q: int) -> Rows:
        r"""What each row adds to area q (n,), so that the squares add up to the robust variance.

        .. math:: w_i \frac{\partial \int}{\partial w_i} = w_i \Big( \frac{g_{j_i T_i}}{Y_{T_i}}
            - \sum_{e_i < u \le T_i} \frac{\bar g_u}{Y_u} \Big)

        for a row that enters at e and ends at T, by cause j or censored. They add up to 0.
        """
        table, n = self.curves.table, self.own.shape[1]
        rows, at_risk = table.rows, table.at_risk[:n]
        passed = np.append(np.cumsum(self._mean(q) / at_risk), 0.0)
        passed[n] = passed[n - 1] if n else 0.0
        place = table.place
        found = -passed[np.minimum(place, n)]
        entered = self.curves.entry_place
        if entered is not None:
            found += np.append(0.0, passed)[np.minimum(entered, n + 1)]
        fails = (place < n) & np.isin(rows.event, table.causes)
        found[fails] += (self.other[q] / at_risk)[place[fails]]
        if q and self.own[q].any():
            fails &= rows.event == table.causes[q - 1]
            found[fails] += (self.own[q] / at_risk)[place[fails]]
        return np.asarray(rows.weight * found)

    def _share_of(self, q: int) -> TableSteps:
        """Share of those at risk who fail of the cause of an area; 0 for the survival."""
        table, n = self.curves.table, self.own.shape[1]
        return table.events[q - 1, :n] / table.at_risk[:n] if q else np.zeros(n)

    def _mean(self, q: int) -> TableSteps:
        table, n = self.curves.table, self.own.shape[1]
        any_share = table.n_events[:n] / table.at_risk[:n]
        return np.asarray(self._share_of(q) * self.own[q] + any_share * self.other[q])


def _from_the_end(values: TableSteps) -> TableSteps:
    """Sum of each value and all later ones."""
    return np.asarray(np.cumsum(values[::-1])[::-1])
