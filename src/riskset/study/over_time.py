"""The effect in stretches of time, as rows of the results."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from riskset.cohort.adjustment import Adjustment
from riskset.cohort.estimate import Estimate
from riskset.study.cohorts import Followed

__all__ = ["MOST_INTERVALS", "over_time_rows"]

MOST_INTERVALS = 6
BY_ROWS = ("robust", "bootstrap")
"""Ways of intervals with which rows count as belonging together or having weights."""


def over_time_rows(found: Estimate, followed: Followed, made: Adjustment) -> list[dict[str, Any]]:
    """A row for each interval of time of an estimate, the first one first."""
    own = found.over_time
    if own is None:
        return []
    errors = own.se_robust if found.interval in BY_ROWS else own.se_model
    half = float(ndtri(0.5 + found.level / 2)) * errors
    hr, lower, upper = (np.exp(own.coef + side * half) for side in (0, -1, 1))
    is_event = made.kept & (followed.status == 1)
    is_target = made.population.is_target
    rows = []
    for k, (start, end) in enumerate(zip(own.start, own.end, strict=True)):
        inside = is_event & (start < followed.time) & (followed.time <= end)
        row: dict[str, Any] = {"interval": k + 1, "start": float(start), "end": float(end)}
        for arm, is_own in (("target", is_target), ("comparator", ~is_target)):
            row[f"{arm}_outcomes"] = int(np.count_nonzero(inside & is_own))
        row |= {"hr": float(hr[k]), "hr_lower": float(lower[k]), "hr_upper": float(upper[k])}
        row |= {"log_hr": float(own.coef[k]), "se": float(errors[k])}
        rows.append(row | {"interval_level": found.level})
    return rows
