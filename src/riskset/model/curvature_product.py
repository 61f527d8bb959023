"""The curvature of the partial likelihood applied to a vector, without ever forming a matrix."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from riskset._types import RiskSets, Rows
from riskset.kernels.late_entry_cpu import sum_at_risk, sum_seen
from riskset.kernels.risk_sets_cpu import MAX_ETA_SPAN
from riskset.kernels.subdistribution_cpu import seen_after, seen_up_to, sum_before, sum_up_to
from riskset.model.loss import Loss

__all__ = ["curvature_product"]


def curvature_product(loss: Loss, eta: Rows) -> Callable[[Rows], Rows]:
    r"""The map u -> C u with C the negative second derivative of the log likelihood in eta.

    .. math::
        (Cu)_i = h_i u_i - r_i \sum_{g: i \in R_g} \frac{N_g}{D_g} \bar u_g,
        \qquad \bar u_g = \sum_{i \in R_g} r_i u_i / D_g

    with h the expected events: one scan in each direction, O(n). Ties are treated as Breslow's, and
    rows further than `MAX_ETA_SPAN` below the largest eta as if they were there: this serves steps,
    whose gradient is exact. Of a logistic regression :math:`C = \mathrm{diag}(v) - v v' / \sum v`.

    Returns
    -------
    callable
        From (n,) float64 to (n,) float64, in the caller's order.
    """
    risk = loss.risk
    eta = np.maximum(eta, eta.max() - 0.9 * MAX_ETA_SPAN)
    now = loss.evaluate(eta)
    if loss.has_intercept:
        variance, total = now.expected, max(float(now.expected.sum()), 1e-300)
        return lambda u: np.asarray(variance * (u - float(variance @ u) / total))
    shift = float(eta.max())
    with np.errstate(divide="ignore"):
        inverse = np.where(risk.group_events > 0, np.exp(shift - now.log_total), 0.0)
    parts = [(risk, np.ones(inverse.size), True)]
    parts += [(tail.sets, tail.survival, False) for tail in loss.tails]
    risks = [sets.weight * np.exp(eta[sets.order] - shift) for sets, _, _ in parts]

    def product(u: Rows) -> Rows:
        sums = np.zeros(inverse.size)
        for (sets, share, is_nested), r in zip(parts, risks, strict=True):
            sums += share * _summed(r * u[sets.order], sets, is_nested)
        # One factor at a time: the square of the first may be beyond the largest number.
        sums *= inverse
        sums *= risk.group_events * inverse
        out = now.expected * u
        for (sets, share, is_nested), r in zip(parts, risks, strict=True):
            np.subtract.at(out, sets.order, r * _seen(share * sums, sets, is_nested))
        return out

    return product


def _summed(ru: Rows, sets: RiskSets, is_nested: bool) -> NDArray[np.float64]:
    out = np.empty(sets.group_events.size)
    if sets.own.size:
        sum_at_risk(ru, sets, False, out)
    elif is_nested:
        sum_up_to(ru, sets, out)
    else:
        sum_before(ru, sets, out)
    return out


def _seen(hazard: NDArray[np.float64], sets: RiskSets, is_nested: bool) -> Rows:
    out = np.empty(sets.order.size)
    if sets.own.size:
        sum_seen(hazard, hazard, sets, out)
    elif is_nested:
        seen_up_to(hazard, sets, out)
    else:
        seen_after(hazard, sets, out)
    return out
