"""The curvature of a likelihood in its linear predictors, applied to vectors of rows."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from riskset._types import Index, RiskSets, Rows
from riskset.kernels.risk_sets_cpu import MAX_ETA_SPAN
from riskset.kernels.subdistribution_cpu import seen_after, seen_up_to, sum_before, sum_up_to
from riskset.model.loss import Loss, within_reach

__all__ = ["MAX_PRODUCT_SPAN", "EfronTies", "curvature_product"]

MAX_PRODUCT_SPAN = 0.9 * MAX_ETA_SPAN
"""Largest range of linear predictors for which products are right."""


def curvature_product(loss: Loss, eta: Rows) -> Callable[[Rows], Rows]:
    r"""The map u -> C u with C the negative second derivative of the log likelihood in eta.

    .. math::
        (Cu)_i = h_i u_i - r_i \sum_{g: i \in R_g} \frac{N_g}{D_g} \bar u_g,
        \qquad \bar u_g = \sum_{i \in R_g} r_i u_i / D_g

    with h the expected events: one scan in each direction, O(n). Vectors (n,) are in the caller's
    order. See `EfronTies` for Efron's ties. Of a logistic regression
    :math:`C = \mathrm{diag}(v) - v v' / \sum v`. Rows further than `MAX_PRODUCT_SPAN` below the
    largest eta that counts are treated as if they were there: this serves steps, whose gradient is
    exact. See `within_reach`.
    """
    risk = loss.risk
    if not loss.has_intercept:
        eta = within_reach(loss, eta, MAX_PRODUCT_SPAN)
    now = loss.evaluate(eta)
    if loss.has_intercept:
        variance, total = now.expected, max(float(now.expected.sum()), 1e-300)
        return lambda u: np.asarray(variance * (u - float(variance @ u) / total))
    shift = float(eta.max())
    with np.errstate(divide="ignore"):
        inverse = np.where(risk.group_events > 0, np.exp(shift - now.log_total), 0.0)
    parts = [(risk, np.ones(inverse.size), sum_up_to, seen_up_to)]
    parts += [(tail.sets, tail.survival, sum_before, seen_after) for tail in loss.tails]
    risks = [sets.weight * np.exp(eta[sets.order] - shift) for sets, *_ in parts]
    ties = EfronTies.of(risk, risks[0], inverse) if loss.efron else None

    def product(u: Rows) -> Rows:
        sums = np.zeros(inverse.size)
        for (sets, share, summed, _), r in zip(parts, risks, strict=True):
            sums += share * summed(r * u[sets.order], sets)
        # One factor at a time: the square of the first may be beyond the largest number.
        sums *= inverse
        out = now.expected * u
        if ties is None:
            sums *= risk.group_events * inverse
        else:
            sums, lacking = ties.weigh(sums, u[risk.order])
            out[risk.order] += lacking
        for (sets, share, _, seen), r in zip(parts, risks, strict=True):
            np.subtract.at(out, sets.order, r * seen(share * sums, sets))
        return out

    return product


@dataclass(frozen=True)
class EfronTies:
    r"""What Efron's ties change in a product with the curvature.

    Of the m tied events of a group the k-th, from 0 on, finds the mean

    .. math:: \bar u_k = (S - \tfrac{k}{m} E) / D_k, \qquad D_k = D - \tfrac{k}{m} E_1

    with the sums S and D of r u and r over the risk set, E and E_1 over the tied rows. A row at
    risk has the factor :math:`\sum_k \tfrac{N}{m} \bar u_k / D_k`; in that of a tied row each term
    counts :math:`1 - \tfrac{k}{m}` times.

    `rows` are the tied rows in risk order, with their groups and risks; `inverse` is 1 / D, and
    `moments` has :math:`\sum_k \tfrac{N}{m} (D / D_k)^2 (k/m)^j` of j = 0, 1, 2, by group.
    """

    rows: Index
    group: Index
    r: Rows
    inverse: Rows
    moments: tuple[Rows, Rows, Rows]

    @classmethod
    def of(cls, risk: RiskSets, r: Rows, inverse: Rows) -> "EfronTies":
        """Of rows in risk order with the risks `r`, and 1 / D by group."""
        rows, m = np.flatnonzero(risk.event_weight > 0), risk.group_tied
        group = risk.group[rows]
        tied_share = np.minimum(np.bincount(group, r[rows], m.size) * inverse, 1.0)
        at = np.repeat(np.arange(m.size), m)
        part = (np.arange(at.size) - np.repeat(np.cumsum(m) - m, m)) / m[at]
        term = (risk.group_events / np.maximum(m, 1))[at] / (1.0 - part * tied_share[at]) ** 2
        none, once, twice = (
            np.bincount(at, term * part**j, m.size).astype(np.float64) for j in range(3)
        )
        return cls(rows, group, r[rows], inverse, (none, once, twice))

    def weigh(self, means: Rows, u: Rows) -> tuple[Rows, Rows]:
        """Factors of rows at risk by group, and what the product lacks then (n,) in risk order.

        `means` are S / D by group, `u` the vector in risk order.
        """
        own = np.bincount(self.group, self.r * u[self.rows], means.size) * self.inverse
        none, once, twice = self.moments
        lacking = np.zeros(u.size)
        lacking[self.rows] = self.r * ((once * means - twice * own) * self.inverse)[self.group]
        return (none * means - once * own) * self.inverse, lacking
