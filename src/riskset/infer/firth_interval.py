"""Intervals from the profile of Firth's penalised likelihood."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri

from riskset._types import Features, Index
from riskset.data.design import Design
from riskset.infer.wald import check_level
from riskset.model.loss import Loss
from riskset.solve.firth import FirthProblem
from riskset.solve.optimality import Problem
from riskset.solve.result import Solution

__all__ = ["firth_gain", "firth_intervals"]

INNER_TOL = 1e-9
MAX_DOUBLINGS = 60
ROOT_TOL = 1e-10
"""Of a limit, relative to the standard error."""


def firth_intervals(
    design: Design,
    loss: Loss,
    solution: Solution,
    error: Features,
    columns: Index,
    level: float,
    max_iter: int,
) -> tuple[Features, Features]:
    r"""Limits (k,) of some coefficients in the user's units; NaN for those left out of the fit.

    They are where twice the fall of :math:`\max_{\beta_{-j}} \ell^*(\beta)` is the quantile of
    chi-square. The determinant is of all columns, the one held fixed among them (Heinze & Schemper
    2001). `error` (p,) are standard errors.
    """
    check_level(level)
    kept = np.flatnonzero(~solution.aliased)
    firth = FirthProblem(Problem.prepare(design, loss), kept)
    beta = solution.coef[kept] * design.scale[kept]
    most, quantile = firth.value_at(beta), float(chdtri(1, 1.0 - level))
    limits = np.full((2, columns.size), np.nan)
    for k, j in enumerate(columns.tolist()):
        if solution.aliased[j]:
            continue
        for side, sign in enumerate((-1.0, 1.0)):
            step = sign * float(error[j])
            profile = _Profile(
                firth, beta, int(np.searchsorted(kept, j)), step * float(design.scale[j]),
                most - 0.5 * quantile, max_iter,
            )  # fmt: skip
            limits[side, k] = solution.coef[j] + step * _root(profile.below)
    return limits[0], limits[1]


def firth_gain(design: Design, loss: Loss, solution: Solution, column: int, max_iter: int) -> float:
    r"""The fall of the maximum of :math:`\ell^*` if one coefficient, which is estimated, is 0."""
    kept = np.flatnonzero(~solution.aliased)
    firth = FirthProblem(Problem.prepare(design, loss), kept)
    beta = solution.coef[kept] * design.scale[kept]
    place = int(np.searchsorted(kept, column))
    profile = _Profile(firth, beta, place, -float(beta[place]), firth.value_at(beta), max_iter)
    return profile.below(1.0)


class _Profile:
    """The profile of the coefficient at a place, along steps from its estimate."""

    def __init__(
        self, firth: FirthProblem, beta: Features, place: int, step: float, level: float,
        max_iter: int,
    ) -> None:  # fmt: skip
        self._firth, self._place, self._step = firth, place, step
        self._centre, self._level, self._max_iter = float(beta[place]), level, max_iter
        self._near = beta.copy()
        self._others = np.delete(np.arange(beta.size), place)

    def below(self, n_steps: float) -> float:
        """How far the profile is below the level; infinite where there is no information."""
        start = self._near.copy()
        start[self._place] = self._centre + n_steps * self._step
        found = self._firth.maximum(start, self._others, INNER_TOL, self._max_iter)
        if found is None:
            return np.inf
        self._near = found.beta
        return self._level - found.value


def _root(f: Callable[[float], float]) -> float:
    """Where a rising function that is negative at 0 is 0."""
    low, high = 0.0, 1.0
    for _ in range(MAX_DOUBLINGS):
        value = f(high)
        if value > 0:
            break
        low, high = high, 2.0 * high
    else:
        return np.inf
    while not np.isfinite(value):  # no information there: come nearer
        high = 0.5 * (low + high)
        value = f(high)
        if value <= 0:
            low, high = high, 2.0 * high - low
            value = np.inf
    return float(brentq(f, low, high, xtol=ROOT_TOL, rtol=1e-14))
