"""Robust variance of predictions: the infinitesimal jackknife over rows or clusters.

A row moves a prediction through the coefficients and through the increments of the hazard; in Fine
and Gray's model also through the estimated distribution of censoring. Both are added up for each
row, or cluster, before they are squared.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import one_blas_thread
from riskset._types import Index, Matrix, Rows
from riskset.data.design import Design
from riskset.infer.hazard_steps import HazardSteps, WindowMoments, window_moments
from riskset.infer.residuals import RiskSetPieces, column_blocks, pieces_at
from riskset.infer.subdistribution import SubdistributionPieces
from riskset.infer.variance import GeneralizedInverse, cluster_sums, influence
from riskset.model.cox import in_blocks
from riskset.model.loss import Loss

__all__ = ["FittedHazard", "joint_covariance", "robust_window_moments"]

MAX_NUMBERS = 1 << 26
"""Influences of rows that are held at a time (512 MB)."""


@dataclass(frozen=True, eq=False)
class FittedHazard:
    """A fit: its likelihood, covariates, linear predictor (n,), inverse information and steps."""

    loss: Loss
    design: Design
    eta: Rows
    inverse: GeneralizedInverse
    steps: HazardSteps

    @functools.cached_property
    def pieces(self) -> RiskSetPieces | SubdistributionPieces:
        """The pieces of residuals at the estimate."""
        return pieces_at(self.loss, self.eta)

    @property
    def is_shared(self) -> bool:
        """Whether other strata move the hazard of a stratum, by the censoring they share."""
        return self.loss.censoring is not None

    def of_hazards(self, weights: Mapping[int, Matrix]) -> Matrix:
        """Influence of rows (n, r) on sums of log increments with `weights` (r, M_s)."""
        width = max(each.shape[0] for each in weights.values())
        powers = np.zeros((self.loss.risk.group_events.size, width))
        for stratum, each in weights.items():
            powers[self.steps.group[self.steps.own(stratum)], : each.shape[0]] = each.T
        return self.pieces.hazard_influence(powers)

    def of_coefficients(self, columns: Index) -> Matrix:
        """Influence of rows (n, q) on some coefficients, in the user's units."""
        moved = influence(self.loss, self.design, self.eta, self.inverse, columns)
        return np.asarray(moved / self.design.scale[columns])

    def windows(self, stratum: int, first: Index, last: Index) -> Matrix:
        """Share of each increment of a stratum in the hazard of each window (r, M_s)."""
        hazard = self.steps.hazard[self.steps.own(stratum)]
        at = np.arange(hazard.size)
        inside = (at >= first[:, None]) & (at < last[:, None])
        shares = np.where(inside, hazard, 0.0)
        total = shares.sum(axis=1, keepdims=True)
        return np.asarray(shares / np.where(total > 0, total, 1.0))


@one_blas_thread
def robust_window_moments(
    fit: FittedHazard, windows: Mapping[int, tuple[Index, Index]]
) -> dict[int, WindowMoments]:
    r"""Moments of the `windows` of each stratum; see `window_moments`.

    .. math:: square = \sum_c D_c^2, \qquad cross = \sum_c D_c \, D^\beta_c

    with :math:`D_c` the influence of a cluster (by default, a row) on the log of the window's
    hazard at known coefficients and :math:`D^\beta_c` that on the coefficients. O(n (r + p)) time,
    and with G(t) estimated as often as there are strata; O(n p + r p) for windows from the start,
    without late entry.
    """
    if _may_accumulate(fit):
        from_start = {s: pair for s, pair in windows.items() if not pair[0].any()}
        found = {s: _moments_from_start(fit, s, last) for s, (_, last) in from_start.items()}
        rest = {s: pair for s, pair in windows.items() if s not in found}
        return found | (_moments_in_batches(fit, rest) if rest else {})
    return _moments_in_batches(fit, windows)


def _moments_in_batches(
    fit: FittedHazard, windows: Mapping[int, tuple[Index, Index]]
) -> dict[int, WindowMoments]:
    """The moments, with the influence of all rows on each window."""
    width = max(1, MAX_NUMBERS // max(1, fit.loss.outcome.n_rows))
    n_windows = max(first.size for first, _ in windows.values())
    parts: dict[int, list[WindowMoments]] = {stratum: [] for stratum in windows}
    for a in range(0, max(1, n_windows), width):
        some = {
            s: (first[a : a + width], last[a : a + width]) for s, (first, last) in windows.items()
        }
        some = {s: pair for s, pair in some.items() if pair[0].size or not parts[s]}
        for batch in [{s: pair} for s, pair in some.items()] if fit.is_shared else [some]:
            for stratum, found in _robust_moments(fit, batch).items():
                parts[stratum].append(found)
    return {stratum: _joined(of_stratum) for stratum, of_stratum in parts.items()}


def _may_accumulate(fit: FittedHazard) -> bool:
    """Whether the influence of a row is that of a person from the start until the row's end."""
    return not fit.is_shared and not fit.loss.is_limit and fit.loss.outcome.entry is None


def _moments_from_start(fit: FittedHazard, stratum: int, last: Index) -> WindowMoments:
    r"""Moments of windows from the start of a stratum to its event time ``last - 1`` (r,).

    Until its own end, a row has the influence :math:`-v_i A(t)` on H(t) times the log of it, with
    :math:`v_i = w_i e^{\eta_i}` and A the same for all rows, and afterwards the one of its end,
    :math:`c_i`. So sums over clusters of squares, of sums :math:`C` of those that ended and
    :math:`B` of those that did not, are three numbers for each time,

    .. math:: \sum_c (C_c - A B_c)^2 = \sum_c C_c^2 - 2 A \sum_c C_c B_c + A^2 \sum_c B_c^2

    and change at the ends of rows only.
    """
    loss, steps, own = fit.loss, fit.steps, fit.steps.own(stratum)
    outcome, hazard = loss.outcome, steps.hazard[own]
    pieces = fit.pieces
    assert isinstance(pieces, RiskSetPieces)
    group = np.empty(outcome.n_rows, dtype=np.int64)
    group[loss.risk.order] = pieces.group
    inside = outcome.weight > 0
    inside &= outcome.stratum == stratum
    rows = np.flatnonzero(inside)
    # Groups are numbered from the last time to the first.
    ends = hazard.size - np.searchsorted(steps.group[own][::-1], group[rows], side="left")
    order = np.argsort(ends, kind="stable")
    rows, ends = rows[order], ends[order]
    scale = float(fit.eta[rows].max(initial=-np.inf))
    risk = outcome.weight[rows] * np.exp(fit.eta[rows] - scale)
    groups = steps.group[own]
    each = np.exp(pieces.ties.log_hazard[groups] + scale) * pieces.hazard_variance[groups] * hazard
    until = np.append(0.0, np.cumsum(each))[last]
    ended = fit.of_hazards({stratum: hazard[None]})[rows, 0]
    # Rows that ended by the event time number `last - 1`: those of ends up to `last`.
    seen = np.searchsorted(ends, last, side="right")
    square = _squares(ended, risk, None if outcome.cluster is None else outcome.cluster[rows])
    first, mixed, second = (sums[seen] for sums in square)
    total = np.append(0.0, np.cumsum(hazard))[last]
    safe = np.where(total > 0, total, 1.0)
    n_features = fit.design.n_features
    cross, columns = np.empty((last.size, n_features)), np.arange(n_features)
    for block in column_blocks(outcome.n_rows, columns):
        moved = fit.of_coefficients(columns[block])
        if outcome.cluster is not None:
            moved = cluster_sums(moved, outcome.cluster)[outcome.cluster]
        moved = moved[rows]
        before = _sums_before(ended[:, None] * moved)[seen]
        after = _sums_from(risk[:, None] * moved)[seen]
        cross[:, block] = (before - until[:, None] * after) / safe[:, None]
    squares = np.maximum(first - 2.0 * until * mixed + until**2 * second, 0.0) / safe**2
    mean = window_moments(steps, stratum, np.zeros_like(last), last).mean
    return WindowMoments(mean, squares, cross)


def _squares(ended: Rows, risk: Rows, cluster: Index | None) -> tuple[Rows, Rows, Rows]:
    """Sums over clusters of C^2, C B and B^2 after each number of rows (n + 1,) that ended."""
    if cluster is None:
        return _sums_before(ended**2), np.zeros(ended.size + 1), _sums_from(risk**2)
    by_cluster = np.argsort(cluster, kind="stable")
    starts = np.flatnonzero(np.diff(cluster[by_cluster], prepend=-1))
    lengths = np.diff(np.append(starts, cluster.size))
    done = _within(ended[by_cluster], starts, lengths)
    left = np.repeat(np.add.reduceat(risk[by_cluster], starts), lengths)
    left -= _within(risk[by_cluster], starts, lengths)
    c, v = ended[by_cluster], risk[by_cluster]
    changes = np.empty((3, cluster.size))
    changes[0, by_cluster] = done**2 - (done - c) ** 2
    changes[1, by_cluster] = done * left - (done - c) * (left + v)
    changes[2, by_cluster] = (left + v) ** 2 - left**2
    return _sums_before(changes[0]), _sums_before(changes[1]), _sums_from(changes[2])


def _within(values: Rows, starts: Index, lengths: Index) -> Rows:
    """Sums of each value and those before it in its cluster."""
    sums = np.cumsum(values, dtype=np.longdouble)  # what is taken off has many more rows
    return (sums - np.repeat(sums[starts] - values[starts], lengths)).astype(np.float64)


def _sums_before(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the first 0, 1, ... rows (n + 1, ...)."""
    return np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])


def _sums_from(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of all but the first 0, 1, ... rows (n + 1, ...)."""
    return _sums_before(values[::-1])[::-1]


def _robust_moments(
    fit: FittedHazard, windows: Mapping[int, tuple[Index, Index]]
) -> dict[int, WindowMoments]:
    outcome, n_features = fit.loss.outcome, fit.design.n_features
    direct = fit.of_hazards({s: fit.windows(s, *pair) for s, pair in windows.items()})
    own = {s: _rows_of(fit, s) for s in windows}
    cross = {s: np.zeros((first.size, n_features)) for s, (first, _) in windows.items()}
    columns = np.arange(n_features)
    for block in column_blocks(outcome.n_rows, columns):
        moved = fit.of_coefficients(columns[block])
        if outcome.cluster is not None:
            moved = cluster_sums(moved, outcome.cluster)[outcome.cluster]
        for s, rows in own.items():
            cross[s][:, block] = direct[rows, : cross[s].shape[0]].T @ moved[rows]
    out = {}
    for s, (first, last) in windows.items():
        sums = direct[own[s], : first.size]
        if outcome.cluster is not None:
            cluster = np.unique(outcome.cluster[own[s]], return_inverse=True)[1]
            sums = cluster_sums(sums, cluster.reshape(-1))
        mean = window_moments(fit.steps, s, first, last).mean
        out[s] = WindowMoments(mean, np.einsum("cr,cr->r", sums, sums), cross[s])
    return out


def _rows_of(fit: FittedHazard, stratum: int) -> Index | slice:
    """Rows that move the increments of a stratum."""
    outcome = fit.loss.outcome
    if fit.is_shared or outcome.n_strata == 1:
        return slice(None)
    return np.flatnonzero(outcome.stratum == stratum)


def _joined(parts: Sequence[WindowMoments]) -> WindowMoments:
    if len(parts) == 1:
        return parts[0]
    return WindowMoments(
        np.concatenate([part.mean for part in parts]),
        np.concatenate([part.square for part in parts]),
        np.concatenate([part.cross for part in parts]),
    )


@one_blas_thread
def joint_covariance(
    fits: Sequence[FittedHazard], stratum: int, weights: Sequence[Matrix]
) -> Matrix:
    r"""Robust covariance (q, q) of sums of log increments and of coefficients of several fits.

    The fits are of the same rows, one for each cause. The q quantities are, fit by fit, the sums of
    log increments of a stratum at known coefficients with `weights` (r, M_s) and the coefficients.
    """
    n_rows, cluster = fits[0].loss.outcome.n_rows, fits[0].loss.outcome.cluster
    sizes = [
        n for f, w in zip(fits, weights, strict=True) for n in (w.shape[0], f.design.n_features)
    ]
    ends = np.cumsum(sizes)

    def covariance(chosen: Index) -> Matrix:
        moved = np.empty((n_rows, chosen.size))
        for k, (fit, weight) in enumerate(zip(fits, weights, strict=True)):
            for which, start in ((2 * k, ends[2 * k] - sizes[2 * k]), (2 * k + 1, ends[2 * k])):
                at = np.flatnonzero((chosen >= start) & (chosen < ends[which]))
                if at.size:
                    own = chosen[at] - start
                    moved[:, at] = (
                        fit.of_hazards({stratum: weight[own]})
                        if which % 2 == 0
                        else fit.of_coefficients(own)
                    )
        sums = cluster_sums(moved, cluster)
        return sums.T @ sums

    return in_blocks(n_rows, np.arange(int(ends[-1])), covariance)
