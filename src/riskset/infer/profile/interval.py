"""Ends of profile-likelihood intervals, by a root search that concavity makes safe."""

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Features, Index
from riskset.infer.profile.curve import ProfileCurve, ProfiledFit
from riskset.infer.wald import normal_quantile

__all__ = ["interval_end", "profile_intervals"]

ACCURACY = 1e-8
"""An end of an interval is found where the profile is so near to its target."""
MAX_INNER_FITS = 200
"""Largest number of inner fits on the way to one end."""
USUAL_FITS = 5
"""How many are usual, for the progress bar."""
MAX_STEP_GROWTH = 4.0
"""How much farther each step may go as long as no point beyond the end is known."""


def profile_intervals(
    source: ProfiledFit, columns: Index, level: float, *, progress: bool | None = False
) -> tuple[Features, Features]:
    r"""Profile-likelihood intervals (q,) of some coefficients.

    .. math:: \{b: 2 (\ell_p(\hat b) - \ell_p(b)) \le \chi^2_{1, level}\}

    An end is infinite if the interval is; NaN if the coefficient carries no information or an inner
    fit did not converge. The threads share the 2 q ends; results do not depend on their number.
    """
    drop = 0.5 * normal_quantile(level) ** 2
    ends = np.full((columns.size, 2), np.nan)
    expected = USUAL_FITS * 2 * columns.size
    with source.reported("Profile intervals", expected, progress) as reporting:
        # Asked here, and not in the threads, because the answer takes threads of its own.
        estimable = np.flatnonzero([reporting.is_estimable(int(j)) for j in columns])
        tasks = [(k, side) for k in estimable.tolist() for side in (0, 1)]

        def one(task: tuple[int, int], runtime: Runtime) -> float:
            k, side = task
            # Made here and not before: each holds a number for every row.
            curve = reporting.curve(int(columns[k]), runtime)
            return interval_end(curve, (-1, 1)[side], drop, runtime)

        for task, value in zip(tasks, reporting.share(one, tasks), strict=True):
            ends[task] = value
    return ends[:, 0], ends[:, 1]


def interval_end(curve: ProfileCurve, side: int, drop: float, runtime: Runtime) -> float:
    """Where the profile has fallen by `drop` > 0, below (side -1) or above (side 1) the estimate.

    Infinite if the profile never falls so far; NaN if an inner fit did not converge.
    """
    top = curve.maximum
    if top.at == side * np.inf or curve.is_flat:
        return side * np.inf
    if curve.is_flat is None:
        return float("nan")
    accuracy = max(ACCURACY, 16 * np.finfo(np.float64).eps * abs(top.value))
    unit = 1.0 / (curve.problem.spread[curve.column] * curve.source.design.scale[curve.column])
    bracket = _Bracket(drop, unit)
    coef, trial = top.coef, 0.0
    if np.isfinite(top.at):
        bracket.add(side * top.at, drop, 0.0)
        trial = side * top.at + float(np.sqrt(2 * drop / max(curve.curvature, 1e-300)))
    for _ in range(MAX_INNER_FITS):
        point = curve.at(side * trial, coef, runtime)
        if not point.is_certified:
            break
        excess, slope = point.value - (top.value - drop), side * point.slope
        if abs(excess) <= accuracy:
            # One more step along the tangent costs nothing.
            return side * (trial - excess / slope if slope < 0 else trial)
        bracket.add(trial, excess, slope)
        following = bracket.next()
        if following is None:
            return side * trial  # neighbouring numbers: no better one exists
        coef, trial = point.coef, following
    return float("nan")


class _Bracket:
    """What is known about a root of a concave function, beyond its maximum, falling to the right.

    The root lies beyond the zero of the chord between two points around it, and not beyond the zero
    of any tangent. Within these bounds the next point is chosen as if the function were quadratic
    about its maximum: a Newton step for the root of twice the fall, which is nearly linear.
    """

    def __init__(self, drop: float, unit: float) -> None:
        self.drop = drop
        self.unit = unit
        self.first: float | None = None
        self.inside: tuple[float, float, float] | None = None
        self.outside: tuple[float, float, float] | None = None

    def add(self, u: float, excess: float, slope: float) -> None:
        """A point, how far the function is above its target there, and its slope."""
        self.first = u if self.first is None else self.first
        if excess > 0:
            self.inside = (u, excess, slope)
        else:
            self.outside = (u, excess, slope)

    def next(self) -> float | None:
        """The next point to look at; None if there is no number between those around the root."""
        known = [p for p in (self.inside, self.outside) if p is not None]
        high = min((u - f / g for u, f, g in known if g < 0), default=np.inf)
        low = -np.inf
        if self.inside is not None and self.outside is not None:
            (a, fa, _), (b, fb, _) = self.inside, self.outside
            low = a + (b - a) * fa / (fa - fb)
            if np.nextafter(a, b) >= b:
                return None
        elif self.inside is not None:
            low = self.inside[0]
            reached = low - (low if self.first is None else self.first)
            high = min(high, low + MAX_STEP_GROWTH * max(reached, self.unit))
        proposal = self._quadratic(*min(known, key=lambda p: abs(p[1])))
        trial = float(min(max(proposal, low), high))
        if self.inside is not None and self.outside is not None:
            a, b = self.inside[0], self.outside[0]
            if not a < trial < b:
                trial = 0.5 * (a + b)
        return trial

    def _quadratic(self, u: float, excess: float, slope: float) -> float:
        fall = self.drop - excess
        if fall <= 0 or slope >= 0:
            return np.inf
        r = np.sqrt(2 * fall)
        return float(u + (np.sqrt(2 * self.drop) - r) * r / -slope)
