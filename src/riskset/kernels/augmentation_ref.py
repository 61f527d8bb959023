"""Predicted risks and areas of rows, and their outcomes completed by models of censoring.

Everything is written as the formulas of `augmented` read, one row and horizon at a time;
`augmentation_cpu` gives the same numbers in one pass forwards and one backwards over time.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, Matrix, Rows

__all__ = ["LARGEST", "FollowedRows", "TimeCells", "augmented"]

LARGEST = 699.0
"""Cumulative hazards of censoring are at most this number, so that 1 / G is finite."""


class TimeCells(NamedTuple):
    """Cells of time up to the last horizon, and the hazards of a row with linear predictors of 0.

    `time` (T,) are the ends of the cells, ascending; the first cell starts at 0. `step` (J, T) and
    `censoring` (T,) are what the cumulative hazards of the J models and of censoring rise by within
    each. `until` (k,) are the cells that end with a horizon. If `at_end` is 1, hazards rise at the
    ends of cells; if it is 0.5, evenly within.
    """

    time: Rows
    step: Matrix
    censoring: Rows
    until: Index
    at_end: float


class FollowedRows(NamedTuple):
    """Rows (n,) with factors of their hazards, and how they were followed.

    `cell` is the cell of the time `end`, T if it is after the last horizon, and -1 for rows of
    which nothing is wanted but predictions. The status is 0 = censored, 1 = outcome, 2 = competing.
    `rest` (J, n) and `rest_censoring` are what the hazards rise by from the start of that cell to
    the end of the row, with factors of 1. Nobody is censored at the time of an event before it.
    """

    factor: Matrix
    censoring_factor: Rows
    cell: Index
    end: Rows
    status: Index
    rest: Matrix
    rest_censoring: Rows


def augmented(
    cells: TimeCells, rows: FollowedRows, is_subdistribution: bool, runtime: Runtime
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Predictions (n, 3, k) and completed outcomes (n, 3, k) up to each of k horizons t.

    The three numbers are the risk of the outcome, the mean time without any event, and the mean
    time lost to the outcome: the means of

    .. math:: h = 1(T \le t, \epsilon = 1), \quad \min(T, t), \quad (t - T)^+ 1(\epsilon = 1)

    With S and F of the hazards of the causes (as in `riskset.model.incidence`), or F of a
    subdistribution hazard and S of the hazard of any event, they are expected to be, of somebody
    without an event by u,

    .. math::
        m(u) = \frac{F(t) - F(u)}{S(u)}, \quad u + \frac{\int_u^t S}{S(u)}, \quad
        \frac{\int_u^t (F(v) - F(u)) \, dv}{S(u)}

    The prediction is m(0). With :math:`R = 1 / G` for the probability G of not being censored, and
    :math:`e = \min(T, C, t)`, the completed outcome of a row is

    .. math:: H = R(e) \, (h \text{ if it is known at } e, \text{ else } m(e))
        - \int_0^e m(u) \, dR(u)

    where R(e) has no jump at e if h is known. It is NaN if `cell` is -1.
    """
    n, k = rows.end.size, cells.until.size
    predicted, completed = np.zeros((n, 3, k)), np.full((n, 3, k), np.nan)
    for i in range(n):
        path = _Path(cells, rows, i, is_subdistribution)
        for j in range(k):
            predicted[i, :, j] = path.expected(-1, j)
            if rows.cell[i] >= 0:
                completed[i, :, j] = _completed(cells, rows, i, path, j)
    return predicted, completed


class _Path:
    """S, F and their areas, of one row at the ends of all cells; place 0 is time 0."""

    def __init__(self, cells: TimeCells, rows: FollowedRows, i: int, is_subdistribution: bool):
        self.cells, self.factor = cells, rows.factor[:, i]
        self.is_subdistribution = is_subdistribution
        self.time = np.append(0.0, cells.time)
        hazard = self.factor[:, None] * cells.step
        if is_subdistribution:
            self.risk = 1.0 - np.exp(-np.append(0.0, np.cumsum(hazard[0])))
            self.free = np.exp(-np.append(0.0, np.cumsum(hazard[1])))
        else:
            self.free = np.exp(-np.append(0.0, np.cumsum(hazard.sum(axis=0))))
            rise = [self._risk(hazard[:, c]) for c in range(cells.time.size)]
            self.risk = np.append(0.0, np.cumsum(self.free[:-1] * rise))
        width = np.diff(self.time)
        self.area_free, self.area_risk = (
            np.append(0.0, np.cumsum(width * (cells.at_end * v[:-1] + (1 - cells.at_end) * v[1:])))
            for v in (self.free, self.risk)
        )

    @staticmethod
    def _risk(hazard: Rows) -> float:
        total = float(hazard.sum())
        return -float(np.expm1(-total)) * float(hazard[0]) / total if total > 0 else 0.0

    def expected(self, c: int, j: int) -> Rows:
        """M at the end of cell c, for horizon j."""
        a, b = c + 1, int(self.cells.until[j]) + 1
        u, t = self.time[a], self.time[b]
        at_u = np.array([v[a] for v in (self.free, self.risk, self.area_free, self.area_risk)])
        return self._of(at_u, u, t, b)

    def _of(self, at_u: Rows, u: float, t: float, b: int) -> Rows:
        """M from S, F and their areas at u."""
        free, risk, area_free, area_risk = at_u.tolist()
        free = max(free, 1e-300)
        rises = (self.risk[b] - risk) / free
        lost = (self.area_risk[b] - area_risk - risk * (t - u)) / free
        if self.is_subdistribution:
            rises, lost = min(max(rises, 0.0), 1.0), min(max(lost, 0.0), t - u)
        return np.array([rises, u + (self.area_free[b] - area_free) / free, lost])

    def expected_within(self, rest: Rows, c: int, end: float, j: int) -> Rows:
        """M at a time within cell c, up to which the hazards of a factor of 1 rise by `rest`."""
        b, at_end = int(self.cells.until[j]) + 1, self.cells.at_end
        t, stop = self.time[b], self.time[c + 1]
        if self.is_subdistribution:
            so_far = self.factor * (self.cells.step[:, :c].sum(axis=1) + rest)
            risk, free = 1.0 - np.exp(-so_far[0]), np.exp(-so_far[1])
            width = end - self.time[c]
            area_free = self.area_free[c] + width * (at_end * self.free[c] + (1 - at_end) * free)
            area_risk = self.area_risk[c] + width * (at_end * self.risk[c] + (1 - at_end) * risk)
            return self._of(np.array([free, risk, area_free, area_risk]), end, t, b)
        left = self.factor * np.maximum(self.cells.step[:, c] - rest, 0.0)
        stays, rises = float(np.exp(-left.sum())), self._risk(left)
        after, width = self.expected(c, j), stop - end
        time = width * (at_end + (1 - at_end) * stays) + stays * (after[1] - stop)
        lost = rises * (t - stop + (1 - at_end) * width) + stays * after[2]
        return np.array([rises + stays * after[0], end + time, lost])


def _completed(cells: TimeCells, rows: FollowedRows, i: int, path: _Path, j: int) -> Rows:
    last, own, status = int(cells.until[j]), int(rows.cell[i]), int(rows.status[i])
    t, end = float(cells.time[last]), float(rows.end[i])
    hazard = np.append(0.0, np.cumsum(rows.censoring_factor[i] * cells.censoring))
    inverse = np.exp(np.minimum(hazard, LARGEST))

    def mean(before: Rows, after: Rows) -> Rows:
        return np.asarray(cells.at_end * after + (1 - cells.at_end) * before)

    is_followed = own > last or (own == last and status == 0)
    whole = last if is_followed else own
    total = np.zeros(3)
    for c in range(whole):
        total += mean(path.expected(c - 1, j), path.expected(c, j)) * (inverse[c + 1] - inverse[c])
    if is_followed:
        return np.asarray(np.array([0.0, t, 0.0]) * inverse[whole] - total)
    reached = hazard[own] + rows.censoring_factor[i] * rows.rest_censoring[i]
    inverse_end = np.exp(min(reached, LARGEST))
    there = path.expected_within(rows.rest[:, i], own, end, j)
    total += mean(path.expected(own - 1, j), there) * (inverse_end - inverse[own])
    if status == 0:
        return np.asarray(there * inverse_end - total)
    is_outcome = float(status == 1)
    known = np.array([is_outcome, end, is_outcome * (t - end)])
    return np.asarray(known * inverse_end - total)
