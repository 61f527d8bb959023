"""Confidence intervals of many probabilities. The fast twin is `intervals_cpu`."""

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Rows

__all__ = ["CERTAINTY_GAP", "KINDS", "probability_ends"]

KINDS = ("log-log", "log", "plain", "logit", "arcsine")
CERTAINTY_GAP = 1e-12
"""A probability nearer to 1 is 1: nobody, or everybody, has failed."""


def probability_ends(
    p: Rows, error: Rows, z: float, kind: str, runtime: Runtime
) -> tuple[Rows, Rows]:
    r"""Lower and upper ends of probabilities p (m,) with standard errors s, within [0, 1].

    * ``"log-log"``: :math:`p^{\exp(\pm z s / (p \log p))}`,
    * ``"log"``: :math:`p \exp(\pm z s / p)`,
    * ``"plain"``: :math:`p \pm z s`,
    * ``"logit"``: :math:`p / (p + (1 - p) \exp(\mp z s / (p (1 - p))))`,
    * ``"arcsine"``: :math:`\sin^2(\arcsin \sqrt p \pm z s / (2 \sqrt{p (1 - p)}))`, the angle cut
      at 0 and :math:`\pi / 2`.

    Ends beyond 0 and 1 are cut off. A probability that is 0 or 1 has itself for both ends; without
    a standard error (NaN) both are NaN.
    """
    inner = (p > 0) & (p < 1 - CERTAINTY_GAP)
    safe = np.where(inner, p, 0.5)
    with np.errstate(over="ignore"):
        if kind == "log-log":
            log_p = np.log(safe)
            factor = np.exp(z * error / (safe * -log_p))
            lower, upper = np.exp(log_p * factor), np.exp(log_p / factor)
        elif kind == "log":
            lower, upper = safe * np.exp(-z * error / safe), safe * np.exp(z * error / safe)
        elif kind == "logit":
            factor = np.exp(z * error / (safe * (1 - safe)))
            lower = safe / (safe + (1 - safe) * factor)
            upper = safe / (safe + (1 - safe) / factor)
        elif kind == "arcsine":
            angle, half = np.arcsin(np.sqrt(safe)), z * error / 2 / np.sqrt(safe * (1 - safe))
            lower = np.sin(np.maximum(angle - half, 0.0)) ** 2
            upper = np.sin(np.minimum(angle + half, np.pi / 2)) ** 2
        else:
            lower, upper = safe - z * error, safe + z * error
    unknown = np.isnan(error)
    ends = (np.where(inner | unknown, np.where(unknown, np.nan, end), p) for end in (lower, upper))
    lower, upper = (np.clip(end, 0.0, 1.0) for end in ends)
    return lower, upper
