"""Life tables of rows that weigh the same, and what is summed over their times.

The fast twin is `life_table_cpu`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Rows

__all__ = ["SurvivalSteps", "count_ends", "sum_later", "survival_steps"]


class SurvivalSteps(NamedTuple):
    """Of each time (m,): survival, cumulative hazard and their standard errors.

    The standard error is NaN where the survival is 0.
    """

    at_risk: Rows
    survival: Rows
    standard_error: Rows
    hazard: Rows
    hazard_error: Rows


def count_ends(
    time: Rows, code: AnyArray, n_codes: int, runtime: Runtime
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distinct times (m,), and the numbers of rows that end there by code (n_codes, m).

    No time is negative; codes count from 0.
    """
    distinct, place = np.unique(time, return_inverse=True)
    sums = [np.bincount(place, code == k, distinct.size) for k in range(n_codes)]
    return distinct, np.array(sums)


def sum_later(sums: NDArray[np.float64], runtime: Runtime) -> Rows:
    """Sum over all rows of a table (k, m) of what stands behind each column (m,)."""
    return np.append(np.cumsum(sums.sum(axis=0)[:0:-1])[::-1], 0.0)


def survival_steps(events: Rows, censored: Rows, staying: Rows, runtime: Runtime) -> SurvivalSteps:
    r"""Kaplan and Meier's survival and Nelson and Aalen's hazard, with Greenwood's variance.

    With d events at u and Y at risk: :math:`S = \prod (Y - d) / Y`, its variance
    :math:`S^2 \sum d / (Y (Y - d))`; :math:`\sum d / Y`, its variance :math:`\sum d / Y^2`.
    """
    survivors = staying + censored
    at_risk = survivors + events
    survival: Rows = np.cumprod(survivors / at_risk).astype(np.float64)
    # One division after the other: the product of two large weights may not be a number.
    share = events / at_risk
    terms = np.divide(share, survivors, out=np.zeros_like(share), where=survivors > 0)
    error = np.full_like(survival, np.nan)
    np.multiply(survival, np.sqrt(np.cumsum(terms)), out=error, where=survival > 0)
    hazard = np.cumsum(events / at_risk)
    return SurvivalSteps(
        at_risk, survival, error, hazard, np.sqrt(np.cumsum(events / at_risk / at_risk))
    )
