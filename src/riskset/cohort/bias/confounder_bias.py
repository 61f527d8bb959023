r"""The bias of an unmeasured confounder, and the confounder of a given bias, in closed form.

A confounder U changes the outcome by the risk ratio g (per unit), in both arms alike. Without U in
the model, the risk ratio of the treatment is too large by the factor

* :math:`(1 + (g - 1) p_1) / (1 + (g - 1) p_0)` if U is binary, with the prevalences :math:`p_1` in
  the target and :math:`p_0` in the comparator,
* :math:`g^d` if U is normal with equal variances in both arms, and means that differ by d.
"""

from typing import NamedTuple

import numpy as np

from riskset._types import Rows

__all__ = ["BINARY", "NORMAL", "ConfounderValues", "bias_of", "solved"]

BINARY = ("target_prevalence", "comparator_prevalence", "effect")
NORMAL = ("difference", "effect")
"""What describes a confounder of each kind."""
ROUNDING = 1e-14
"""Prevalences that differ by less are the same."""


class ConfounderValues(NamedTuple):
    """Confounders, one an element; what does not belong to their kind is NaN."""

    target_prevalence: Rows
    comparator_prevalence: Rows
    difference: Rows
    effect: Rows


def bias_of(of: ConfounderValues) -> Rows:
    """The factor by which the ratio is too large (n,)."""
    binary = _mean(of.effect, of.target_prevalence) / _mean(of.effect, of.comparator_prevalence)
    with np.errstate(over="ignore"):
        normal = np.exp(of.difference * np.log(of.effect))
    return np.where(np.isnan(of.difference), binary, normal)


def _mean(effect: Rows, prevalence: Rows) -> Rows:
    """Mean factor of a prevalence; 1 + (g - 1) p would round a tiny effect to none at all."""
    return np.asarray((1 - prevalence) + effect * prevalence)


def solved(name: str, of: ConfounderValues, bias: float) -> Rows:
    """The value of `name` with which the bias is the given one (n,); NaN where no value does it."""
    if not 0 < bias < np.inf:
        return np.full(of.effect.size, np.nan)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _SOLUTIONS[name](of, bias)


def _effect(of: ConfounderValues, bias: float) -> Rows:
    if bias == 1:
        return np.ones(of.effect.size)
    largest = bias * of.comparator_prevalence
    slope = of.target_prevalence - largest
    # Only an infinite effect has the bias p1 / p0, and only 0 (1 - p1) / (1 - p0).
    slope = np.where(np.abs(slope) <= ROUNDING * largest, 0.0, slope)
    binary = 1 + (bias - 1) / slope
    normal = np.exp(np.log(bias) / of.difference)
    found = np.where(np.isnan(of.difference), binary, normal)
    is_none = ~np.isfinite(binary) | (binary <= ROUNDING)
    return np.where(np.where(np.isnan(of.difference), is_none, of.difference == 0), np.nan, found)


def _target_prevalence(of: ConfounderValues, bias: float) -> Rows:
    excess = of.effect - 1
    found = (bias * (1 + excess * of.comparator_prevalence) - 1) / excess
    return _prevalence(found, of.comparator_prevalence, bias)


def _comparator_prevalence(of: ConfounderValues, bias: float) -> Rows:
    excess = of.effect - 1
    found = ((1 + excess * of.target_prevalence) / bias - 1) / excess
    return _prevalence(found, of.target_prevalence, bias)


def _prevalence(found: Rows, other: Rows, bias: float) -> Rows:
    if bias == 1:
        return other.copy()
    is_one = (found >= -ROUNDING) & (found <= 1 + ROUNDING)
    return np.where(is_one, np.clip(found, 0.0, 1.0), np.nan)


def _difference(of: ConfounderValues, bias: float) -> Rows:
    if bias == 1:
        return np.zeros(of.effect.size)
    return np.where(of.effect == 1, np.nan, np.log(bias) / np.log(of.effect))


_SOLUTIONS = {
    "effect": _effect,
    "target_prevalence": _target_prevalence,
    "comparator_prevalence": _comparator_prevalence,
    "difference": _difference,
}
