"""What the variance of a predicted hazard needs of each event time of a fit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Matrix, Pointer, Rows
from riskset.data.design import Design
from riskset.infer.residuals import column_blocks, pieces_at
from riskset.model.baseline import Baseline, event_groups
from riskset.model.loss import Loss

__all__ = ["HazardSteps", "WindowMoments", "covariance_root", "window_moments"]


@dataclass(frozen=True, eq=False)
class HazardSteps:
    r"""The M event times of a fit by stratum, ascending, as `Baseline` has them.

    `group` (M,) is the group of the risk sets. `hazard` (M,) is the increment relative to the
    largest of its stratum. `mean` (M, p) is the mean of the covariates over the risk set, weighted
    by risk, in the user's units and relative to the center of the fit; by Efron's method, the mean
    over the steps of the time weighted by their hazards. `variance` (M,) is that of the log of the
    increment at known coefficients. `end` (S,) is the last time of follow-up of each stratum.
    """

    group: Index
    stratum_ptr: Pointer
    hazard: NDArray[np.float64]
    mean: Matrix
    variance: NDArray[np.float64]
    end: NDArray[np.float64]

    @classmethod
    def of(cls, loss: Loss, design: Design, eta: Rows, baseline: Baseline) -> "HazardSteps":
        """At the linear predictor `eta` (n,) of the fit, offset included; O(n p) time."""
        outcome, pieces = loss.outcome, pieces_at(loss, eta)
        group, stratum_ptr = event_groups(outcome)
        mean = np.empty((group.size, design.n_features))
        columns = np.arange(design.n_features)
        for block in column_blocks(design.n_rows, columns):
            of_groups = pieces.hazard_means(design.stored(columns[block]))
            mean[:, block] = of_groups[group] * design.scale[columns[block]]
        end = np.full(outcome.n_strata, -np.inf)
        counts = outcome.weight > 0
        np.maximum.at(end, outcome.stratum[counts], outcome.time[counts])
        log_hazard = baseline.steps(0.0)[1]
        largest = np.full(outcome.n_strata, -np.inf)
        of_stratum = np.repeat(np.arange(outcome.n_strata), np.diff(stratum_ptr))
        np.maximum.at(largest, of_stratum, log_hazard)
        hazard = np.exp(log_hazard - largest[of_stratum])
        return cls(group, stratum_ptr, hazard, mean, pieces.hazard_variance[group], end)

    def own(self, stratum: int) -> slice:
        """The event times of a stratum."""
        return slice(int(self.stratum_ptr[stratum]), int(self.stratum_ptr[stratum + 1]))


@dataclass(frozen=True, eq=False)
class WindowMoments:
    r"""What the variance of the log of cumulative hazards in r windows of time needs.

    For a row with covariates x, the variance is :math:`square + 2 (x - mean)' cross + (x - mean)' V
    (x - mean)`, V the covariance of the coefficients: `mean` (r, p) is that of the covariates over
    the risk sets of the window, weighted by its hazard, `square` (r,) the variance at known
    coefficients, and `cross` (r, p) the covariance with the coefficients.
    """

    mean: Matrix
    square: NDArray[np.float64]
    cross: Matrix

    def part(self, windows: slice) -> "WindowMoments":
        """The moments of some windows."""
        return WindowMoments(self.mean[windows], self.square[windows], self.cross[windows])

    def variance(self, rows: Matrix, root: Matrix) -> Matrix:
        """Variances (k, r) for the covariates of k rows; `root` (p, q) is that of V."""
        scores, of_mean = rows @ root, self.mean @ root
        shared = rows @ self.cross.T - np.einsum("rp,rp->r", self.mean, self.cross)
        out = self.square + 2.0 * shared
        with np.errstate(over="ignore"):  # far from all data, a variance may be infinite
            for j in range(self.square.size):
                out[:, j] += ((scores - of_mean[j]) ** 2).sum(axis=1)
        return np.asarray(np.maximum(out, 0.0))


def window_moments(steps: HazardSteps, stratum: int, first: Index, last: Index) -> WindowMoments:
    r"""Moments of windows of a stratum that hold its event times ``first`` to ``last - 1`` (r,).

    By the inverse information: `square` is :math:`\sum_g h_g^2 v_g / (\sum_g h_g)^2`, with v the
    variance of the log of an increment, 1 / N_g by Breslow's method, and `cross` is 0, because the
    estimates of the increments at known coefficients are uncorrelated with the coefficients.

    References
    ----------
    Tsiatis (1981), Annals of Statistics 9, 93-108, doi:10.1214/aos/1176345335.
    Link (1984), Biometrics 40, 601-610, doi:10.2307/2530904.
    """
    own = steps.own(stratum)
    hazard = steps.hazard[own]
    total = _between(hazard, first, last)
    safe = np.where(total > 0, total, 1.0)
    mean = _between(hazard[:, None] * steps.mean[own], first, last) / safe[:, None]
    square = _between(hazard**2 * steps.variance[own], first, last) / safe**2
    return WindowMoments(mean, square, np.zeros_like(mean))


def _between(values: NDArray[np.float64], first: Index, last: Index) -> NDArray[np.float64]:
    """Sums of the values from `first` up to `last`, which is not included."""
    sums = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
    return np.asarray(sums[last] - sums[first])


def covariance_root(covariance: Matrix) -> Matrix:
    """A matrix (p, q) whose product with its transpose is a covariance; NaN if that has any."""
    if np.isnan(covariance).any():
        return np.full((covariance.shape[0], 1), np.nan)
    size = np.sqrt(covariance.diagonal())
    live = np.flatnonzero(size > 0)
    scaled = covariance[np.ix_(live, live)] / size[live] / size[live, None]
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    keep = values > 0
    root = np.zeros((size.size, int(keep.sum())))
    root[live] = size[live, None] * vectors[:, keep] * np.sqrt(values[keep])
    return root
