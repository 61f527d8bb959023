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
from riskset.kernels import censoring_cpu as kernels

__all__ = ["CensoringTies", "CensoringTimes"]

CensoringTies = Literal["crr", "finegray"]

ROWS_PER_LOOK = 4096
"""Rows looked at together, from the last one down."""


@dataclass(frozen=True)
class CensoringTimes:
    """The rows of one group by their distinct times: what estimates under any weights share.

    Attributes
    ----------
    rows : (m,) int64
        The caller's rows, in the order of time.
    at : (m,) int64, increasing
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
        rows = rows[np.argsort(time[rows], kind="stable")]
        values, at = np.unique(time[rows], return_inverse=True)
        return cls(rows, at, values, event[rows] == 0)

    def n_before(self, time: NDArray[np.float64]) -> Index:
        """Number of distinct times before others; replicates ask for the same ones again."""
        asked, found = self.__dict__.get("_before", (None, None))
        if asked is not time:
            found = np.searchsorted(self.time, time)
            self.__dict__["_before"] = time, found
        return np.asarray(found)

    def survival(self, weight: Rows, ties: CensoringTies) -> NDArray[np.float64]:
        r"""Kaplan-Meier estimate after 0, 1, ..., k distinct times (k + 1,).

        .. math:: G(t) = \prod_{u \le t} \left(1 - \frac{c_u}{Y_u}\right)

        with :math:`c_u` the weight censored at u, and :math:`Y_u` the weight at risk of it.

        Parameters
        ----------
        weight : (n,) float64
            Of the caller's rows.
        ties : {"crr", "finegray"}
            Whether rows with an event at u count in :math:`Y_u` ("crr": as cmprsk::crr and
            Cyclops), or have left before the censorings at u ("finegray": as
            survival::finegray).

        References
        ----------
        Kaplan & Meier (1958), Journal of the American Statistical Association 53, 457-481,
        doi:10.1080/01621459.1958.10501452.
        """
        return kernels.survival(
            self.rows, self.at, self.time.size, self.is_censored, weight, ties == "crr"
        )

    def last(self, weight: Rows) -> int:
        """Number of distinct times before the last one of a row that counts; 0 without any."""
        for stop in range(self.rows.size, 0, -ROWS_PER_LOOK):
            counting = np.flatnonzero(weight[self.rows[max(stop - ROWS_PER_LOOK, 0) : stop]] > 0)
            if counting.size:
                return int(self.at[max(stop - ROWS_PER_LOOK, 0) + counting[-1]])
        return 0
