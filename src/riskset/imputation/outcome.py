r"""What the outcome gives to imputation models: events, and the hazard that rows have passed.

For a Cox model the conditional distribution of a missing covariate depends on the outcome through
the event indicator and the cumulative baseline hazard, of which the Nelson-Aalen estimate of all
rows is an approximation. With competing events, each cause has both.

References
----------
White and Royston (2009), Imputing missing covariate values for the Cox model, Statistics in
Medicine 28, 1982-1998, doi:10.1002/sim.3618.
"""

import numpy as np

from riskset._types import Index, Matrix, Rows

__all__ = ["cumulative_hazard", "outcome_columns"]


def cumulative_hazard(time: Rows, event: Index, entry: Rows | None, cause: int) -> Rows:
    r"""Nelson-Aalen estimate of the cumulative hazard (n,) that each row has been exposed to.

    .. math:: H(t) = \sum_{t_k \le t} d_k / n_k

    with the events of the cause and the rows at risk, from its entry to its time.
    """
    times, place = np.unique(time, return_inverse=True)
    events = np.bincount(place.reshape(-1), event == cause, times.size)
    at_risk = time.size - np.searchsorted(np.sort(time), times, side="left")
    if entry is not None:
        at_risk = at_risk - (time.size - np.searchsorted(np.sort(entry), times, side="left"))
    hazard = np.append(0.0, np.cumsum(events / np.maximum(at_risk, 1)))
    passed = hazard[np.searchsorted(times, time, side="right")]
    if entry is not None:
        passed = passed - hazard[np.searchsorted(times, entry, side="right")]
    return np.asarray(passed)


def outcome_columns(time: Rows, event: Index, entry: Rows | None = None) -> Matrix:
    """Event indicator and cumulative hazard of each cause, as columns (n, 2 causes)."""
    columns = []
    for cause in np.unique(event[event > 0]).tolist():
        columns.append((event == cause).astype(np.float64))
        columns.append(cumulative_hazard(time, event, entry, cause))
    return np.column_stack(columns) if columns else np.zeros((time.size, 0))
