"""The curvature of the partial likelihood applied to a vector, without ever forming a matrix."""

from collections.abc import Callable

import numpy as np

from riskset._types import Rows
from riskset.kernels.curvature_cpu import nested_pull
from riskset.kernels.late_entry_cpu import sum_at_risk, sum_seen
from riskset.kernels.risk_sets_cpu import SPAN
from riskset.model.cox import CoxLoss

__all__ = ["curvature_product"]


def curvature_product(loss: CoxLoss, eta: Rows) -> Callable[[Rows], Rows]:
    r"""The map u -> C u with C the negative second derivative of the log likelihood in eta.

    .. math::
        (Cu)_i = h_i u_i - r_i \sum_{g: i \in R_g} \frac{N_g}{D_g} \bar u_g,
        \qquad \bar u_g = \sum_{i \in R_g} r_i u_i / D_g

    with h the expected events: one scan in each direction, O(n). Ties are treated as Breslow's,
    and rows further than `SPAN` below the largest eta as if they were there: this serves steps,
    whose gradient is exact.

    Returns
    -------
    callable
        From (n,) float64 to (n,) float64, in the caller's order.
    """
    risk = loss.risk
    eta = np.maximum(eta, eta.max() - 0.9 * SPAN)
    now = loss.evaluate(eta)
    shift = float(eta.max())
    r = risk.weight * np.exp(eta[risk.order] - shift)
    with np.errstate(divide="ignore"):
        inverse = np.where(risk.group_events > 0, np.exp(shift - now.log_total), 0.0)
    factor = risk.group_events * inverse**2

    def nested(u: Rows) -> Rows:
        return nested_pull(r * u[risk.order], factor, risk.group_ptr, risk.starts_stratum)

    def late(u: Rows) -> Rows:
        sums, back = np.empty(factor.size), np.empty(r.size)
        sum_at_risk(r * u[risk.order], risk, False, sums)
        share = factor * sums
        sum_seen(share, share, risk, back)
        return back

    through = late if risk.own.size else nested

    def product(u: Rows) -> Rows:
        out = now.expected * u
        np.subtract.at(out, risk.order, r * through(u))
        return out

    return product
