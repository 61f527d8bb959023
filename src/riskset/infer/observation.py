"""How rows move the estimated distributions of censoring and of late entry."""

import numpy as np

from riskset._types import Matrix, Rows
from riskset.model.censoring import CensoringTies, ObservationTimes

__all__ = ["through_observation"]


def through_observation(
    times: ObservationTimes, weight: Rows, ties: CensoringTies, q: Matrix
) -> Matrix:
    r"""Influence of each row of `times` on a score through G and H (m, p), per unit of its weight.

    .. math::
        \psi_i = \sum_u \frac{q(u)}{Y_u - c_u} \left(1_{i \text{ censored at } u}
                 - 1_{i \text{ at risk at } u} \frac{c_u}{Y_u}\right)
                 - \sum_u \frac{q(u)}{Z_u - e_u} \left(1_{i \text{ enters at } u}
                 - 1_{i \text{ in } Z_u} \frac{e_u}{Z_u}\right)

    in the notation of `ObservationTimes.survival`: the derivative of the score in the weight that
    the row has in G and H. `q` (k, p) is, at each time u, minus the derivative in the log of a
    factor 1 - c_u / Y_u, and so the derivative in that of 1 - e_u / Z_u, by which weights are
    divided. `weight` (n,) is that of the rows in G and H. O(k p + m p) time.
    """
    censored, staying, entering, entered = times.observed(weight, ties)
    at, since = times.at, times.since
    left, drift = _factor_derivatives(censored, staying, q)
    # With ties as finegray has them a row with an event leaves before the censorings then.
    end = at + 1 if ties == "crr" else np.where(times.is_event, at, at + 1)
    out = np.where(times.is_censored[:, None], left[at], 0.0) - (drift[end] - drift[since + 1])
    came, drift = _factor_derivatives(entering, entered, q)
    out -= np.where(times.is_first[:, None], came[since], 0.0) - (drift[at] - drift[since])
    return np.asarray(out)


def _factor_derivatives(gone: Rows, rest: Rows, q: Matrix) -> tuple[Matrix, Matrix]:
    """Quotients of q and the rest (k, p), and sums of their shares before each time (k + 1, p).

    0 where nobody is gone, and where no rest is: that factor is left out, or is 0 for good.
    """
    counts = (gone > 0) & (rest > 0)
    jump = q * np.divide(1.0, rest, out=np.zeros_like(rest), where=counts)[:, None]
    share = np.divide(gone, gone + rest, out=np.zeros_like(rest), where=counts)
    sums = np.cumsum(jump * share[:, None], axis=0)
    return jump, np.concatenate([np.zeros((1, q.shape[1])), sums])
