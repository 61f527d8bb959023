"""Confidence intervals of a probability that was estimated with a standard error."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from riskset._errors import InputError
from riskset._runtime import Runtime

__all__ = ["ProbabilityIntervalType", "check_interval_type", "probability_interval"]

ProbabilityIntervalType = Literal["log-log", "log", "plain"]

BLOCK = 1 << 14
CERTAINTY_GAP = 1e-12
"""A probability nearer to 1 is 1: nobody, or everybody, has failed."""


def check_interval_type(interval: str) -> None:
    """Refuse an unknown kind of interval."""
    if interval not in get_args(ProbabilityIntervalType):
        raise InputError.unknown_name("interval", str(interval), get_args(ProbabilityIntervalType))


def probability_interval(
    p: NDArray[np.float64], standard_error: NDArray[np.float64], level: float, kind: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Lower and upper ends, within [0, 1].

    With z the normal quantile and s the standard error:

    * ``"log-log"``: :math:`p^{\exp(\pm z s / (p \log p))}`,
    * ``"log"``: :math:`p \exp(\pm z s / p)`, cut at 1,
    * ``"plain"``: :math:`p \pm z s`, cut at 0 and 1.

    A probability that is 0 or 1 has itself for both ends; without a standard error both are NaN.
    Source: Borgan & Liestol (1990), Scandinavian Journal of Statistics 17, 35-41.
    """
    z = float(ndtri(0.5 + level / 2))
    lower, upper = np.empty_like(p), np.empty_like(p)
    flat = [np.ascontiguousarray(array).reshape(-1) for array in (p, standard_error)]
    ends = [array.reshape(-1) for array in (lower, upper)]

    def fill(start: int) -> None:
        some = slice(start, start + BLOCK)
        ends[0][some], ends[1][some] = _interval(flat[0][some], flat[1][some], z, kind)

    # Some at a time: what they need on the way stays in the cache.
    Runtime.select().map(fill, range(0, p.size, BLOCK))
    return lower, upper


def _interval(
    p: NDArray[np.float64], standard_error: NDArray[np.float64], z: float, kind: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    inner = (p > 0) & (p < 1 - CERTAINTY_GAP)
    safe = np.where(inner, p, 0.5)
    with np.errstate(over="ignore"):
        if kind == "log-log":
            log_p = np.log(safe)
            factor = np.exp(z * standard_error / (safe * -log_p))
            lower, upper = np.exp(log_p * factor), np.exp(log_p / factor)
        elif kind == "log":
            lower = safe * np.exp(-z * standard_error / safe)
            upper = safe * np.exp(z * standard_error / safe)
        else:
            lower, upper = safe - z * standard_error, safe + z * standard_error
    unknown = np.isnan(standard_error)
    ends = (np.where(inner | unknown, np.where(unknown, np.nan, end), p) for end in (lower, upper))
    lower, upper = (np.clip(end, 0.0, 1.0) for end in ends)
    return lower, upper
