"""Strategies with a grace period: to start a treatment within it, or not to start it."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from riskset._types import Rows

__all__ = ["GraceStrategy"]


@dataclass(frozen=True)
class GraceStrategy:
    """To start a treatment until the end of a grace period, or not to start it until then.

    `grace` is the end of the period on the clock of the follow-up; infinite with `starts` false:
    never to start. Those who start after `opens` stand for those who do not start.
    """

    starts: bool
    grace: float
    opens: float = 0.0

    @staticmethod
    def opening(grace: float, window: float) -> float:
        """The start of a window, as people would write it: 0.3 - 0.1 is 0.2, as times in data are.

        The difference of the binary numbers is a little less.
        """
        return float(Decimal(repr(float(grace))) - Decimal(repr(float(window))))

    @property
    def borders(self) -> tuple[float, ...]:
        """Times at which rows must be cut, because who can deviate changes then."""
        ends = (self.opens, self.grace) if self.starts else (self.grace,)
        return tuple(time for time in ends if np.isfinite(time))

    def deviation(self, began: Rows) -> Rows:
        """When people deviate who start at some times (n,); infinite: never."""
        in_time = began <= self.grace
        if self.starts:
            return np.where(in_time, np.inf, self.grace)
        return np.where(in_time, began, np.inf)

    def can_deviate(
        self, entry: Rows, time: Rows, has_event: NDArray[np.bool_], began: Rows
    ) -> NDArray[np.bool_]:
        """Whether rows at risk in (entry, time], cut at the borders, can end with a deviation."""
        if self.starts:
            return np.asarray((time == self.grace) & (began > self.opens) & ~has_event)
        return np.asarray((entry < self.grace) & (entry < began))
