r"""The distribution of censoring, which weights rows after a competing event.

A row with a competing event at s stays in the risk set of an event at t > s with the chance
:math:`G(t-) / G(s-)` that it would not have been censored by then, G the Kaplan-Meier estimate of
the censoring distribution.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Rows

__all__ = ["CensoringTies", "CensoringTimes"]

CensoringTies = Literal["crr", "finegray"]


@dataclass(frozen=True)
class CensoringTimes:
    """The rows of one group by their distinct times: what estimates under any weights share.

    Attributes
    ----------
    rows : (m,) int64
        The caller's rows.
    at : (m,) int64
        Number of distinct times before each row's own.
    time : (k,) float64, increasing
        The distinct times.
    is_censored : (m,) bool
    """

    rows: Index
    at: Index
    time: NDArray[np.float64]
    is_censored: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Index, time: Rows, event: Index) -> "CensoringTimes":
        """Of some rows (m,) of `time` and `event` (n,), 0 = censored."""
        values, at = np.unique(time[rows], return_inverse=True)
        return cls(rows, at, values, event[rows] == 0)

    def n_before(self, time: NDArray[np.float64]) -> Index:
        """Number of distinct times before others."""
        return np.searchsorted(self.time, time)

    def survival(self, weight: Rows, ties: CensoringTies) -> NDArray[np.float64]:
        r"""Kaplan-Meier estimate after 0, 1, ..., k distinct times (k + 1,).

        .. math:: G(t) = \prod_{u \le t} \left(1 - \frac{c_u}{Y_u}\right)

        with :math:`c_u` the weight censored at u, and :math:`Y_u` the weight at risk of it.

        Parameters
        ----------
        weight : (m,) float64
            Of the group's rows.
        ties : {"crr", "finegray"}
            Whether rows with an event at u count in :math:`Y_u` ("crr": as cmprsk::crr and
            Cyclops), or have left before the censorings at u ("finegray": as
            survival::finegray).

        References
        ----------
        Kaplan & Meier (1958), Journal of the American Statistical Association 53, 457-481,
        doi:10.1080/01621459.1958.10501452.
        """
        n = self.time.size
        leaving = np.bincount(self.at, weight, n)
        censored = np.bincount(self.at, np.where(self.is_censored, weight, 0.0), n)
        # Added up from the end, apart from those who leave now: nothing is taken off.
        staying = np.append(np.cumsum(leaving[::-1])[::-1][1:], 0.0)
        if ties == "crr":
            staying += np.bincount(self.at, np.where(self.is_censored, 0.0, weight), n)
        curve = np.ones(n + 1)
        np.divide(staying, staying + censored, out=curve[1:], where=censored > 0)
        return np.cumprod(curve, out=curve)

    def last(self, weight: Rows) -> int:
        """Number of distinct times before the last one of a row that counts; 0 without any."""
        return int(self.at[weight > 0].max(initial=0))
