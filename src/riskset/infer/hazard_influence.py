"""Robust variance of predictions: the infinitesimal jackknife over rows or clusters.

A row moves a prediction through the coefficients and through the increments of the hazard; in Fine
and Gray's model also through the estimated distribution of censoring. Both are added up for each
row, or cluster, before they are squared.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

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
    and with G(t) estimated as often as there are strata.
    """
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
