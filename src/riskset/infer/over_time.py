"""How a coefficient differs between times: what a test of proportional hazards tests."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._types import Features, Index, Rows
from riskset.data.design import Design
from riskset.infer.residuals import pieces_at
from riskset.model.loss import Loss

__all__ = ["EffectOverTime", "effect_over_time"]

MIN_EVENTS_PER_INTERVAL = 20
"""Of an interval; with fewer, a normal interval of its coefficient says little."""


@dataclass(frozen=True, eq=False)
class EffectOverTime:
    """A coefficient in intervals of time with about equal numbers of events; all (k,).

    An interval does not contain its start, but its end. `coef` is the log hazard ratio per unit of
    the covariate. Standard errors are from the inverse information, and from the sandwich over
    clusters.
    """

    start: Features
    end: Features
    events: Index
    coef: Features
    se_model: Features
    se_robust: Features


def effect_over_time(
    loss: Loss,
    design: Design,
    eta: Rows,
    column: int,
    coef: float,
    n_intervals: int,
    cluster: Index | None = None,
) -> EffectOverTime | None:
    r"""The coefficient of one covariate in intervals of time, by its scaled Schoenfeld residuals.

    .. math:: \hat\beta_k = \hat\beta + U_k / I_k, \qquad
              U_k = \sum_{i \in k} w_i (x_i - \bar x(t_i)), \qquad I_k = \sum_{t \in k} V(t)

    with the sums over the events of interval k and V(t) the variance of the covariate over the risk
    set: one step of Newton's method from the constant coefficient towards that of the interval. The
    mean of :math:`\hat\beta_k` with the weights :math:`I_k` is :math:`\hat\beta`. Other
    coefficients are taken as known, as are censoring weights. Standard errors are
    :math:`I_k^{-1/2}`, and :math:`(\sum_c u_{ck}^2)^{1/2} / I_k` with :math:`u_{ck}` the score that
    the rows of cluster c (by default, each row) have in the interval.

    `eta` (n,) includes the offset, and `coef` is in the user's units; the covariate must have no
    penalty. Intervals have at least 20 events on average. The result is None if there are too few
    events for two intervals, or one lacks information.

    Notes
    -----
    O(n k) time and memory. Tied events of Efron's method share the mean of their steps' means.

    References
    ----------
    Grambsch and Therneau (1994), Biometrika 81, 515-526, doi:10.1093/biomet/81.3.515.
    """
    outcome, risk = loss.outcome, loss.risk
    at = np.flatnonzero(risk.event_weight > 0)
    group = np.searchsorted(risk.group_ptr, at, side="right") - 1
    row = risk.order[at]
    ends = _ends(outcome.time[row], n_intervals)
    if ends.size < 2:
        return None
    own = np.searchsorted(ends, outcome.time[row])
    inside = np.zeros((risk.group_events.size, ends.size))
    inside[group, own] = 1.0
    pieces = pieces_at(loss, eta)
    expected = pieces.expected_times(inside)
    x = design.stored(np.array([column]))
    x -= expected.sum(axis=1) @ x / expected.sum()  # the answer does not see it, its digits do
    mean, gap = (values[:, 0] for values in pieces.event_means(x))
    x = x[:, 0]
    residual = risk.event_weight[at] * (x[row] - mean[group])
    lost = risk.group_events * (mean**2 + pieces.spread * gap**2)
    information = x**2 @ expected - lost @ inside
    if not (information > 1e-9 * (x**2 @ expected)).all():
        return None
    share = pieces.expected_times(inside * mean[:, None]) - x[:, None] * expected
    np.add.at(share, (row, own), residual)
    codes = np.arange(x.size) if cluster is None else np.unique(cluster, return_inverse=True)[1]
    scores = [np.bincount(codes, column_) for column_ in share.T]
    scale = float(design.scale[column])
    return EffectOverTime(
        np.concatenate([[0.0], ends[:-1]]),
        ends,
        np.bincount(own, minlength=ends.size),
        coef + np.bincount(own, residual, ends.size) / information / scale,
        1 / np.sqrt(information) / scale,
        np.array([np.sqrt(score @ score) for score in scores]) / information / scale,
    )


def _ends(time: NDArray[np.float64], n_intervals: int) -> NDArray[np.float64]:
    """Ends of intervals with equal numbers of events, but for those at one time."""
    n = min(n_intervals, time.size // MIN_EVENTS_PER_INTERVAL)
    if n < 2:
        return np.zeros(0)
    last = np.ceil(time.size * np.arange(1, n + 1) / n).astype(np.int64) - 1
    return np.unique(np.sort(time)[last])
