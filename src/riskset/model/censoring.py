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

__all__ = ["CensoringTies", "StepCurve", "censoring_curve"]

CensoringTies = Literal["crr", "finegray"]


@dataclass(frozen=True)
class StepCurve:
    """A survival curve: the value after each time, 1 before the first.

    Attributes
    ----------
    time : (m,) float64, increasing
    after : (m,) float64
    """

    time: NDArray[np.float64]
    after: NDArray[np.float64]

    def before(self, time: NDArray[np.float64]) -> NDArray[np.float64]:
        """Left limits, G(t-)."""
        return np.append(1.0, self.after)[np.searchsorted(self.time, time, side="left")]


def censoring_curve(time: Rows, event: Index, weight: Rows, ties: CensoringTies) -> StepCurve:
    r"""Kaplan-Meier estimate of the censoring distribution.

    .. math:: G(t) = \prod_{u \le t} \left(1 - \frac{c_u}{Y_u}\right)

    with :math:`c_u` the weight censored at u, and :math:`Y_u` the weight at risk of it.

    Parameters
    ----------
    time : (n,) float64
    event : (n,) int64
        0 = censored.
    weight : (n,) float64
    ties : {"crr", "finegray"}
        Whether rows with an event at u count in :math:`Y_u` ("crr": as cmprsk::crr and Cyclops),
        or have left before the censorings at u ("finegray": as survival::finegray).

    Returns
    -------
    StepCurve
        Constant 1 if nobody is censored.

    References
    ----------
    Kaplan & Meier (1958), Journal of the American Statistical Association 53, 457-481,
    doi:10.1080/01621459.1958.10501452.
    """
    used = weight > 0
    values, at = np.unique(time[used], return_inverse=True)
    w, is_censored = weight[used], event[used] == 0
    leaving = np.bincount(at, w, values.size)
    censored = np.bincount(at, np.where(is_censored, w, 0.0), values.size)
    # Added up from the end, apart from those who leave now: nothing is taken off.
    later = np.append(np.cumsum(leaving[::-1])[::-1][1:], 0.0)
    with_event = np.bincount(at, np.where(is_censored, 0.0, w), values.size)
    staying = later + with_event if ties == "crr" else later
    steps = censored > 0
    factor = staying[steps] / (staying + censored)[steps]
    return StepCurve(values[steps], np.cumprod(factor).astype(np.float64))
