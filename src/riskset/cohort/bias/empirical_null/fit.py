"""Systematic error from negative controls, by maximum likelihood.

Estimates of controls vary around their true values by more than their standard errors. The excess
is the systematic error of the design, N(mean, sd^2). The error of the outcome of interest is a draw
from this distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import log_ndtr, ndtr

from riskset._errors import CohortError

__all__ = ["Null", "expected_absolute_error", "fit_null", "fit_null_profiles"]

Numbers = NDArray[np.float64]

GRID = 400
"""Places at which the score is looked at for changes of its sign."""


@dataclass(frozen=True)
class Null:
    """Null distribution: systematic error N(mean, sd^2) of a log ratio.

    Attributes
    ----------
    mean, sd : float
    log_likelihood : float
        Log likelihood of the controls.
    n_controls : int

    Examples
    --------
    >>> import riskset as rs
    >>> controls = rs.cohort.Controls([0.2, -0.1, 0.3, 0.1, 0.0, 0.25], [0.1] * 6)
    >>> null = rs.cohort.calibrate(controls, [0.5], [0.1], method="likelihood").null
    >>> round(null.mean, 3), round(null.sd, 3)
    (0.125, 0.099)
    """

    mean: float
    sd: float
    log_likelihood: float
    n_controls: int

    @property
    def ease(self) -> float:
        """Expected absolute systematic error."""
        return float(expected_absolute_error(np.array(self.mean), np.array(self.sd)))


def expected_absolute_error(mean: Numbers, sd: Numbers) -> Numbers:
    r"""Mean of :math:`|N(\mu, \sigma^2)|`.

    .. math:: \sigma \sqrt{2 / \pi} \, e^{-\mu^2 / (2 \sigma^2)}
        + \mu \left(1 - 2 \Phi(-\mu / \sigma)\right)

    and :math:`|\mu|` for :math:`\sigma = 0`.
    """
    safe = np.where(sd > 0, sd, 1.0)
    ratio = mean / safe
    with np.errstate(over="ignore"):
        value = safe * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + mean * (1 - 2 * ndtr(-ratio))
    return np.where(sd > 0, value, np.abs(mean))


def fit_null(log_rr: Numbers, se: Numbers) -> Null:
    r"""Maximum likelihood of :math:`b_i \sim N(\mu, \sigma^2 + se_i^2)`, to machine precision.

    With :math:`w_i = 1 / (\sigma^2 + se_i^2)` and :math:`\mu = \sum w b / \sum w`, a positive
    :math:`\sigma^2` solves :math:`\sum w^2 (b - \mu)^2 = \sum w`. Of all roots, and 0, the one of
    largest likelihood is taken.
    """

    def at(square: float) -> tuple[float, float, float]:
        """Mean, log likelihood and its derivative by sigma^2, twice."""
        w = 1 / (square + se**2)
        mean = float((w * log_rr).sum() / w.sum())
        away = (log_rr - mean) ** 2
        log_likelihood = -0.5 * float((np.log(2 * np.pi / w) + w * away).sum())
        return mean, log_likelihood, float((w**2 * away - w).sum())

    spread = float(np.ptp(log_rr)) ** 2 + float(se.max()) ** 2
    places = np.geomspace(1e-10 * float(se.min()) ** 2, 4 * spread, GRID)
    w = 1 / (places[:, None] + se**2)
    means = (w * log_rr).sum(axis=1) / w.sum(axis=1)
    scores = (w**2 * (log_rr - means[:, None]) ** 2 - w).sum(axis=1)
    candidates = [0.0]
    for k in np.flatnonzero(np.sign(scores[:-1]) != np.sign(scores[1:])):
        root = brentq(lambda s: at(s)[2], places[k], places[k + 1], xtol=1e-300, rtol=1e-15)
        candidates.append(float(root))
    best = max(candidates, key=lambda s: at(s)[1])
    mean, log_likelihood, _ = at(best)
    return Null(mean, float(np.sqrt(best)), log_likelihood, log_rr.size)


def fit_null_profiles(profiles: Sequence[tuple[object, object]]) -> Null:
    r"""Fit the null distribution to likelihood profiles instead of normal approximations.

    .. math:: \sum_i \log \int L_i(x) \, N(x; \mu, \sigma^2) \, dx

    The logarithm of a profile is linear between its points and continues beyond them with the last
    slope, but never upwards. Each piece has a closed form.

    Parameters
    ----------
    profiles : sequence of (points, log likelihoods)
        One pair per control, with ascending points.

    Returns
    -------
    Null
        Its log likelihood includes the constants of the given profiles.

    Raises
    ------
    CohortError
        "BadProfile".

    Examples
    --------
    >>> import numpy as np
    >>> import riskset as rs
    >>> points = np.linspace(-2, 2, 401)
    >>> estimates = (0.2, -0.1, 0.3, 0.1, 0.0, 0.25)
    >>> profiles = [(points, -0.5 * ((points - b) / 0.1) ** 2) for b in estimates]
    >>> null = rs.cohort.fit_null_profiles(profiles)
    >>> round(null.mean, 3), round(null.sd, 3)
    (0.125, 0.099)
    """
    pieces = [_pieces(k, *profile) for k, profile in enumerate(profiles)]

    def minus(parameters: Numbers) -> float:
        mean, sd = float(parameters[0]), float(np.exp(parameters[1]))
        return -sum(_log_integral(piece, mean, sd) for piece in pieces)

    def minus_at_zero(mean: Numbers) -> float:
        return -sum(float(_log_at(piece, float(mean[0]))) for piece in pieces)

    peaks = np.array([piece[0][np.argmax(piece[1])] for piece in pieces])
    start = float(np.median(peaks))
    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000}
    spread = max(float(peaks.std()), 0.05)
    free = minimize(minus, [start, np.log(spread)], method="Nelder-Mead", options=options)
    none = minimize(minus_at_zero, [start], method="Nelder-Mead", options=options)
    if none.fun <= free.fun:
        return Null(float(none.x[0]), 0.0, -float(none.fun), len(pieces))
    return Null(float(free.x[0]), float(np.exp(free.x[1])), -float(free.fun), len(pieces))


def _pieces(k: int, points: object, values: object) -> tuple[Numbers, Numbers, Numbers]:
    """Points, values, and slopes of all pieces, the two outer ones included."""
    x, y = np.asarray(points, dtype=np.float64), np.asarray(values, dtype=np.float64)
    fine = x.ndim == 1 and x.shape == y.shape and x.size > 1 and np.isfinite([x, y]).all()
    if not fine or not (np.diff(x) > 0).all():
        raise CohortError(
            "BadProfile",
            f"likelihood profile {k} must be two or more ascending points with finite values.",
            hint="leave out points without a value, and sort by the coefficient.",
        )
    inner = np.diff(y) / np.diff(x)
    slopes = np.concatenate([[max(inner[0], 0.0)], inner, [min(inner[-1], 0.0)]])
    return x, y, slopes


def _log_at(piece: tuple[Numbers, Numbers, Numbers], at: float) -> float:
    x, y, slopes = piece
    k = int(np.searchsorted(x, at))
    anchor = max(k - 1, 0)
    return float(y[anchor] + slopes[k] * (at - x[anchor]))


def _log_integral(piece: tuple[Numbers, Numbers, Numbers], mean: float, sd: float) -> float:
    x, y, slopes = piece
    anchor = np.concatenate([[0], np.arange(x.size)])
    low, high = np.concatenate([[-np.inf], x]), np.concatenate([x, [np.inf]])
    shift = mean + slopes * sd**2
    a, b = (low - shift) / sd, (high - shift) / sd
    # In the upper tail by its mirror image, where differences keep their digits.
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    upper, lower = log_ndtr(b), log_ndtr(a)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mass = upper + np.log1p(-np.exp(lower - upper))
    log_mass = np.where(np.isnan(log_mass), -np.inf, log_mass)
    log_height = y[anchor] + slopes * (mean - x[anchor]) + slopes**2 * sd**2 / 2
    terms = log_height + log_mass
    peak = terms.max()
    return float(peak + np.log(np.exp(terms - peak).sum()))
