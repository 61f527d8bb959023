"""Confidence intervals of a probability that was estimated with a standard error."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset.kernels.intervals_cpu import probability_ends

__all__ = [
    "ProbabilityIntervalType",
    "check_interval_type",
    "probability_interval",
    "probability_limits",
]

ProbabilityIntervalType = Literal["log-log", "log", "plain", "logit", "arcsine"]


def check_interval_type(interval: str) -> None:
    """Refuse an unknown kind of interval."""
    if interval not in get_args(ProbabilityIntervalType):
        raise InputError.wrong_option("interval", interval, get_args(ProbabilityIntervalType))


def probability_interval(
    p: NDArray[np.float64], standard_error: NDArray[np.float64], level: float, kind: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Lower and upper ends, within [0, 1].

    With z the normal quantile and s the standard error:

    * ``"log-log"``: :math:`p^{\exp(\pm z s / (p \log p))}`,
    * ``"log"``: :math:`p \exp(\pm z s / p)`, cut at 1,
    * ``"plain"``: :math:`p \pm z s`, cut at 0 and 1,
    * ``"logit"``: :math:`p / (p + (1 - p) \exp(\mp z s / (p (1 - p))))`,
    * ``"arcsine"``: :math:`\sin^2(\arcsin \sqrt p \pm z s / (2 \sqrt{p (1 - p)}))`, the angle cut
      at 0 and :math:`\pi / 2`.

    A probability that is 0 or 1 has itself for both ends; without a standard error both are NaN.
    These are R's ``conf.type``. Source: Borgan & Liestol (1990), Scandinavian Journal of Statistics
    17, 35-41.
    """
    return probability_limits(p, standard_error, float(ndtri(0.5 + level / 2)), kind)


def probability_limits(
    p: NDArray[np.float64], error: NDArray[np.float64], z: float, kind: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends that are z errors from p on a scale; see `probability_interval`."""
    flat = [np.ascontiguousarray(array).reshape(-1) for array in (p, error)]
    lower, upper = probability_ends(flat[0], flat[1], z, kind, Runtime.select())
    return lower.reshape(p.shape), upper.reshape(p.shape)
