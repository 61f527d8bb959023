"""Robust variances of curves: the infinitesimal jackknife over rows, or over clusters of rows."""

import numpy as np
from numpy.typing import NDArray

from riskset.curves.clusters import ClusterPieces
from riskset.curves.influence import Influence, hazard_influence, incidence_influence
from riskset.curves.life_table import LifeTable, TableSteps
from riskset.curves.variance import distances

__all__ = ["jackknife_hazard_variance", "jackknife_variance"]


def jackknife_variance(table: LifeTable, k: int, incidence: TableSteps) -> TableSteps:
    r"""Variance of the incidence of cause k that does not take weights for counts.

    .. math:: \sum_i \left( w_i \, \partial F(t) / \partial w_i \right)^2

    the infinitesimal jackknife over rows. Without weights and censoring it is F (1 - F) / n. If the
    rows have clusters, the sum is over clusters: the influence of all rows of one is squared.
    """
    return _variance(table, incidence_influence(table, k, incidence), incidence)


def jackknife_hazard_variance(table: LifeTable) -> TableSteps:
    """Variance of the Nelson-Aalen estimate by the infinitesimal jackknife."""
    return _variance(table, hazard_influence(table), np.zeros(table.time.size))


def _variance(table: LifeTable, influence: Influence, curve: TableSteps) -> TableSteps:
    if table.pieces is not None:
        return _over_clusters(table, table.pieces, influence, curve)
    square = table.rows.weight**2
    cross, _ = distances(curve, table.sum_leaving(square * influence.end * influence.q))
    _, spread = distances(curve, table.sum_leaving(square * influence.q**2))
    gone = np.cumsum(table.sum_leaving(square * influence.end**2)) + 2.0 * cross + spread
    return np.maximum(gone + _staying_squares(table, influence, curve), 0.0)


def _staying_squares(
    table: LifeTable, influence: Influence, curve: TableSteps
) -> NDArray[np.float64]:
    """Sum over the rows that stay of the squares of w (d - slope * curve + constant)."""
    square, d = table.rows.weight**2, influence.d
    total = table.sum_staying(square) * d**2
    if not table.has_late_entry:
        return total
    slope, constant = influence.slope, influence.constant
    sums = [
        table.sum_staying(square * f)
        for f in (slope, constant, slope**2, constant**2, slope * constant)
    ]
    u, v, uu, vv, uv = sums
    total += 2.0 * d * (v - curve * u) + curve**2 * uu + vv - 2.0 * curve * uv
    return np.maximum(total, 0.0)


def _over_clusters(
    table: LifeTable, pieces: ClusterPieces, influence: Influence, curve: TableSteps
) -> TableSteps:
    """Sum over clusters of the squared influence of their rows together.

    Between two times at which one of its rows enters or leaves, the influence of a cluster is a
    constant plus multiples of d(t) and F(t).
    """
    weight, none = table.rows.weight, np.zeros(table.rows.weight.size)
    # What is left to happen has more digits than what has happened.
    shift, curve = curve[-1], curve - curve[-1]
    d, slope, constant, end, q = influence
    during = weight * np.stack([constant - slope * shift, none + 1.0, -slope])
    after = weight * np.stack([end - q * curve[table.place], none, q])
    basis = np.stack([np.ones_like(d), d, curve])
    if not curve.any():  # a hazard
        during, after, basis = during[:2], after[:2], basis[:2]
    return pieces.sum_of_squares(during, after, basis)
