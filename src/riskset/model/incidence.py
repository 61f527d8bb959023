"""Cumulative incidence from the hazards of all causes, and a check of the total incidence."""

import warnings
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from riskset._errors import InputError, RisksetWarning
from riskset._types import AnyArray, Rows
from riskset.data.checks import Places
from riskset.model.baseline import Baseline
from riskset.model.step_function import step_functions

__all__ = [
    "check_total_incidence",
    "functions_of_time",
    "hazard_increments",
    "incidence_from_hazards",
    "without_event",
]

CHUNK = 1 << 21
"""Numbers held at a time, for rows by event times."""

ROUNDING = 1e-9
"""Incidences that exceed 1 together by no more do not count."""


def incidence_from_hazards(
    baselines: Sequence[Baseline],
    eta: NDArray[np.float64],
    times: Rows,
    stratum: object = None,
    places: Places | None = None,
) -> NDArray[np.float64]:
    r"""Cumulative incidence of every cause by the product integral of all hazards.

    .. math:: F_k(t) = \sum_{u \le t} S(u-) \left(1 - e^{-h_u}\right) \frac{h_{ku}}{h_u}, \qquad
        S(t) = e^{-\sum_{u \le t} h_u}, \qquad h_u = \sum_k h_{ku}

    with :math:`h_{ku}` the increment at u of the cumulative hazard of cause k for the row. Each
    jump is spread over a moment, in which the causes compete at constant rates; so the incidences
    rise from 0, and with S add up to 1, whatever the covariates.

    There is a baseline for each cause, all with the same strata, and a linear predictor for each
    cause and row (n_causes, k); the result is (n_causes, k, n_times). See
    `Baseline.cumulative_hazard`.

    Notes
    -----
    O(k G n_causes) time for G event times up to the last of `times`. Hazards are logarithms until
    the last step, so that no covariate overflows.
    """
    codes = baselines[0].codes_of(stratum, eta.shape[1], places or Places())
    out = np.zeros((len(baselines), eta.shape[1], times.size))
    for code in np.unique(codes):
        grid, log_hazard = hazard_increments(baselines, int(code), times.max(initial=-np.inf))
        rows = np.flatnonzero(codes == code)
        seen = np.searchsorted(grid, times, side="right")
        size = max(1, CHUNK // (len(baselines) * max(grid.size, 1)))
        for part in np.split(rows, range(size, rows.size, size)):
            out[:, part] = _product_integral(log_hazard, eta[:, part])[:, :, seen]
    return out


def functions_of_time(
    baselines: Sequence[Baseline],
    eta: NDArray[np.float64],
    cause: int | None,
    stratum: object = None,
    places: Places | None = None,
) -> NDArray[np.object_]:
    """The incidence of a cause, or the survival (None), of each row (k,) as a function of time."""
    codes = baselines[0].codes_of(stratum, eta.shape[1], places or Places()).tolist()
    jumps = {code: hazard_increments(baselines, code, np.inf)[0] for code in set(codes)}
    return step_functions(
        [jumps[code] for code in codes],
        [partial(_of_row, baselines, eta[:, [i]], code, cause) for i, code in enumerate(codes)],
    )


def _of_row(
    baselines: Sequence[Baseline],
    eta: NDArray[np.float64],
    code: int,
    cause: int | None,
    times: AnyArray,
) -> NDArray[np.float64]:
    """Incidence of a cause at times (m,), or the survival (None)."""
    found = incidence_from_hazards(baselines, eta, times, baselines[0].label_of(code))[:, 0]
    return without_event(found) if cause is None else np.asarray(found[cause])


def without_event(incidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of no event of any cause, from the incidences of all (n_causes, ...)."""
    return np.asarray(np.maximum(1.0 - incidence.sum(axis=0), 0.0))


def hazard_increments(
    baselines: Sequence[Baseline], code: int, last: float
) -> tuple[Rows, NDArray[np.float64]]:
    """Event times of any cause in a stratum, and log hazard increments at them at 0."""
    steps = []
    for baseline in baselines:
        own = slice(baseline.stratum_ptr[code], baseline.stratum_ptr[code + 1])
        log_h, time = baseline.log_cumulative[own], baseline.time[own]
        before = np.append(-np.inf, log_h[:-1])
        with np.errstate(invalid="ignore", divide="ignore"):
            log_step = log_h + np.log(-np.expm1(before - log_h))
        log_step = np.where(log_h > -np.inf, log_step, -np.inf)
        steps.append((time[time <= last], log_step[time <= last] - baseline.center))
    grid = np.unique(np.concatenate([time for time, _ in steps]))
    log_hazard = np.full((len(steps), grid.size), -np.inf)
    for k, (time, log_step) in enumerate(steps):
        log_hazard[k, np.searchsorted(grid, time)] = log_step
    return grid, log_hazard


def _product_integral(
    log_hazard: NDArray[np.float64], eta: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Incidences (n_causes, rows, 1 + n_times) before the first time and after each."""
    start = np.zeros((*eta.shape, 1))
    if log_hazard.shape[1] == 0:
        return start
    log_h = log_hazard[:, None, :] + eta[:, :, None]
    log_total = logsumexp(log_h, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.exp(log_total)
        before = np.append(start[0], np.cumsum(total, axis=1)[:, :-1], axis=1)
        failing = np.exp(-before) * -np.expm1(-total)
        share = np.where(log_total > -np.inf, np.exp(log_h - log_total), 0.0)
    incidence = np.cumsum(failing * share, axis=2)
    return np.concatenate([start, np.minimum(incidence, 1.0)], axis=2)


def check_total_incidence(*incidences: AnyArray, stacklevel: int = 2) -> NDArray[np.float64]:
    """Add up the incidences of all causes, and warn if they exceed 1.

    Separate subdistribution hazard models are not constrained to each other, so their predicted
    risks for one row can add up to more than 1. The risks of `riskset.CauseSpecificCox` cannot.

    Parameters
    ----------
    *incidences : arrays of one shape
        Cumulative incidence of each cause, rows by times, for example from
        ``predict_cumulative_incidence`` of `riskset.FineGray`.
    stacklevel : int
        Line that the warning refers to: 2 is the caller's.

    Returns
    -------
    array of the same shape
        Total incidence.

    Raises
    ------
    InputError
        If the shapes differ or a number is not in [0, 1].

    Warns
    -----
    RisksetWarning
        If a total exceeds 1. The warning gives the number of rows and the largest total.

    Examples
    --------
    >>> import numpy as np
    >>> import riskset as rs
    >>> rs.check_total_incidence(np.array([[0.1, 0.2]]), np.array([[0.3, 0.5]]))
    array([[0.4, 0.7]])
    """
    arrays = [np.asarray(incidence, dtype=np.float64) for incidence in incidences]
    if not arrays or any(a.shape != arrays[0].shape for a in arrays):
        shapes = ", ".join(str(a.shape) for a in arrays) or "none"
        raise InputError(
            f"incidences must be arrays of one shape, one for each cause, but the shapes are "
            f"{shapes}.",
            hint="predict every cause for the same rows and times.",
        )
    for position, array in enumerate(arrays):
        if not ((array >= 0) & (array <= 1)).all():
            raise InputError(
                f"incidences must be in [0, 1], but not all of argument {position + 1} are.",
                hint="pass what predict_cumulative_incidence gives.",
            )
    total = np.asarray(np.sum(arrays, axis=0))
    above = total > 1 + ROUNDING
    if above.any():
        rows = np.atleast_2d(above).any(axis=1)
        warnings.warn(
            f"the incidences of the {len(arrays)} causes add up to more than 1 for "
            f"{int(rows.sum()):,} of {rows.size:,} rows (at most {total.max():.4g}), because each "
            "cause has a separate model. Do not use them for these rows; "
            "`riskset.CauseSpecificCox` gives risks that add up.",
            RisksetWarning,
            stacklevel=stacklevel,
        )
    return total
