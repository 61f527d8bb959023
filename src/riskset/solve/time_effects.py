"""Newton's method for effects that are functions of time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from riskset._runtime import one_blas_thread
from riskset._types import Features, Matrix, Rows
from riskset.model.time_effects import TimeEffectsLikelihood, TimeEffectsPass, TimeTerm
from riskset.solve.aliasing import pivots
from riskset.solve.result import Status

__all__ = ["TimeEffectsSolution", "fit_time_effects"]

MAX_HALVINGS = 40
NO_INFORMATION = 1e-12
"""Share of its second moment that is rounding: the column is constant in every risk set."""
ROUNDING = 1e-12
"""Changes of the log likelihood per event that may be rounding."""
BLURRED = 1e-6
"""The same where covariates with a few very large values take digits from the sums."""
FLATTER = 0.5
"""A step with a change so small is taken if it leaves at most this share of the slope along it."""
MIN_INFORMATION = 1e-10
"""Share of its information at 0 that a combination of coefficients keeps if its estimate is finite.

Where it is infinite, a relative slope of 1e-8 leaves a share of 1e-16.
"""
WHOLE = 0.1
"""A larger share is not fading; then a residual that stays where it is is rounding."""
FADING = 0.1
"""A step towards an infinite estimate leaves more than this share of the residual, about 0.6.

The first residual below the tolerance is hence more than 0.6 of it, and the next one than 0.3.
"""


class TimeEffectsSolution(NamedTuple):
    """Where the fit ended: coefficients (p + q,), and the likelihood there and at 0.

    `repeats` are columns that follow from others, or vary in no risk set; then there is no fit.
    """

    coef: Features
    status: Status
    kkt: float
    n_iter: int
    null_log_likelihood: float
    log_likelihood: float
    information: Matrix
    log_hazard: Rows
    repeats: NDArray[np.bool_]


@one_blas_thread
def fit_time_effects(
    likelihood: TimeEffectsLikelihood,
    terms: Sequence[TimeTerm],
    *,
    tol: float,
    max_iter: int,
) -> TimeEffectsSolution:
    """Maximise the partial likelihood, which is concave.

    The residual is the largest slope per root of its information, relative to that at 0, or to the
    root of the mean weight of an event if that is larger: with weights of 1, a coefficient is one
    standard error from where it ends if the slope is 1. OverflowError if offsets are too far apart.
    """
    p = likelihood.x.shape[1]
    coef = np.zeros(p + len(terms))
    now = null = _evaluated(likelihood, coef, terms)
    spread = np.sqrt(np.maximum(now.information.diagonal(), 0.0))
    constant = now.information.diagonal() <= NO_INFORMATION * now.moments
    repeats = pivots(now.information) | constant
    if repeats.any():
        return _ended(coef, "not_estimable", np.nan, 0, null, now, repeats)
    n_failed, weight = likelihood.failed.size, float(likelihood.failed_weight.sum())
    scale = max(float(np.sqrt(weight / n_failed)), float(np.abs(now.gradient / spread).max()))
    slack = ROUNDING * (abs(null.log_likelihood) + weight)
    reached = np.inf
    for n_iter in range(max_iter + 1):
        spread = np.sqrt(np.maximum(now.information.diagonal(), np.finfo(np.float64).tiny))
        kkt = float(np.abs(now.gradient / spread).max()) / scale
        # One more step makes the slope of a finite maximum vanish; that of an infinite one fades.
        share = _kept_information(now.information, null.information)
        fades = reached <= tol and kkt > max(FADING * tol, ROUNDING) and share <= WHOLE
        if fades or share <= MIN_INFORMATION:
            return _ended(coef, "max_iter", kkt, n_iter, null, now, repeats)
        if reached <= tol:
            return _ended(coef, "converged", kkt, n_iter, null, now, repeats)
        reached = kkt
        scaled = now.information / np.outer(spread, spread)
        move = np.linalg.lstsq(scaled, now.gradient / spread, rcond=None)[0] / spread
        made = _moved(likelihood, terms, coef, move, now, slack)
        if made is None:
            break
        coef, now = made
    status: Status = "converged" if kkt <= tol else "max_iter"
    return _ended(coef, status, kkt, n_iter, null, now, repeats)


def _kept_information(information: Matrix, at_null: Matrix) -> float:
    """The least share of its information at the start that a combination of coefficients keeps.

    Where an estimate is infinite, slope and information of its direction fade together. The slope
    is then below any tolerance, at a place that depends on rounding.
    """
    size = np.sqrt(at_null.diagonal())
    left, right = information / np.outer(size, size), at_null / np.outer(size, size)
    least = scipy.linalg.eigh(left, right, eigvals_only=True, subset_by_index=[0, 0])
    return float(least[0])


def _moved(
    likelihood: TimeEffectsLikelihood,
    terms: Sequence[TimeTerm],
    coef: Features,
    move: Features,
    now: TimeEffectsPass,
    slack: float,
) -> tuple[Features, TimeEffectsPass] | None:
    """The coefficients after a step, or a share of it, that does not lower the likelihood.

    Close to the maximum the slope along the step has more digits than the likelihood.
    """
    least, slope = now.log_likelihood - slack, float(move @ now.gradient)
    blur = slack * (BLURRED / ROUNDING)
    for halvings in range(MAX_HALVINGS):
        new = coef + 0.5**halvings * move
        try:
            found = _evaluated(likelihood, new, terms)
        except OverflowError:
            continue
        is_flatter = abs(float(move @ found.gradient)) <= FLATTER * slope <= FLATTER * blur
        if found.log_likelihood >= (now.log_likelihood - blur if is_flatter else least):
            return new, found
    return None


def _evaluated(
    likelihood: TimeEffectsLikelihood, coef: Features, terms: Sequence[TimeTerm]
) -> TimeEffectsPass:
    """A pass whose numbers are finite; OverflowError if they are not.

    Far out on the way to an infinite estimate, sums of hazards are below the least number.
    """
    p = likelihood.x.shape[1]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        found = likelihood.evaluate(coef[:p], coef[p:], terms)
    numbers = (found.log_likelihood, found.gradient, found.information)
    if not all(np.isfinite(one).all() for one in numbers):
        raise OverflowError
    return found


def _ended(
    coef: Features,
    status: Status,
    kkt: float,
    n_iter: int,
    null: TimeEffectsPass,
    now: TimeEffectsPass,
    repeats: NDArray[np.bool_],
) -> TimeEffectsSolution:
    return TimeEffectsSolution(
        coef, status, kkt, n_iter, null.log_likelihood, now.log_likelihood, now.information,
        now.log_hazard, repeats,
    )  # fmt: skip
