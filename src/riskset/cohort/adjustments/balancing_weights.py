r"""Weights that balance covariates exactly: entropy balancing and balancing propensity scores.

Both are the minimum of a smooth convex function of as many numbers as there are covariates, which
Newton's method finds. Of weights u that add up to 1 and have given means :math:`m` of covariates,
those closest to base weights b in the sense of Kullback and Leibler are
:math:`u_i \propto b_i e^{z_i'\lambda}` with :math:`z_i = x_i - m`, where :math:`\lambda` minimises
:math:`\log \sum_i b_i e^{z_i'\lambda}`: its gradient is the weighted mean of z, and its second
derivative their weighted covariance. If all :math:`z_i'\lambda < 0` for one :math:`\lambda`, no
weights have these means.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError
from riskset._messages import Value
from riskset._runtime import Runtime
from riskset._types import Features, Matrix, Rows
from riskset.data.design import Design
from riskset.model.cox import in_blocks

__all__ = ["MOST_TERMS", "Standardised", "balancing_score", "means_of", "tilted"]

BALANCED = 1e-10
"""Differences of means, in standard deviations, that count as none."""

CLOSE = 1e-8
"""Differences that rounding may leave."""

NO_SPREAD = 1e-6
"""A standard deviation this far below the root of the mean square may be rounding."""

MOST_STEPS = 200
MOST_TERMS = 5000
"""Covariates and powers that can be balanced at once."""

RIDGE = 1e-10
FLAT, SHORTEST = 1e-14, 1e-12
"""A change of a function that rounding hides, and the smallest part of a step."""

MARGIN = 1e-7
NAMED = 5
STEEPEST = 700.0
"""Larger exponents overflow."""


@dataclass(frozen=True)
class Standardised:
    """Covariates z = (x - origin) / unit of some people, without a copy of x."""

    design: Design
    origin: Features
    unit: Features
    runtime: Runtime

    def product(self, coef: Features) -> Rows:
        """Z @ coef (n,)."""
        own = coef / self.unit
        centre = float(own @ (self.design.center - self.origin))
        return self.design.product(own * self.design.scale, runtime=self.runtime) + centre

    def sums(self, w: Rows) -> Features:
        """Z' w (q,)."""
        cross = self.design.cross(w, runtime=self.runtime) * self.design.scale
        return np.asarray((cross + (self.design.center - self.origin) * w.sum()) / self.unit)

    def covariance(self, w: Rows) -> Matrix:
        """Z' W Z less the product of means, for weights w that add up to 1."""
        columns = np.arange(self.design.n_features)

        def dense(some: NDArray[np.int64]) -> Matrix:
            z = self.design.stored(some)
            z -= w @ z
            z *= np.sqrt(w)[:, None]
            return np.asarray(z.T @ z)

        unit = self.design.scale / self.unit
        return in_blocks(self.design.n_rows, columns, dense) * np.outer(unit, unit)


def means_of(design: Design, weight: Rows, runtime: Runtime) -> tuple[Features, Features]:
    """Weighted means and standard deviations of all columns; 1 for those that do not vary."""
    u = weight / weight.sum()
    first, second = design.moments(u, runtime=runtime)
    spread = np.sqrt(np.maximum(second - first**2, 0.0))
    # Of a constant column only rounding is left.
    spread = np.where(spread > NO_SPREAD * np.sqrt(np.maximum(second, 0.0)), spread, 0.0)
    unit = spread * design.scale
    return first * design.scale + design.center, np.where(unit > 0, unit, 1.0)


def tilted(covariates: Standardised, base: Rows, who: str) -> tuple[Rows, Features]:
    """Weights (n,) that add up to 1 and have the means `origin`, and their coefficients.

    Impossible means raise "NoBalance".
    """
    coef = np.zeros(covariates.design.n_features)
    eta = np.zeros(base.size)
    value, u = _log_sum(eta, base)
    for _ in range(MOST_STEPS):
        gradient = covariates.sums(u)
        if np.abs(gradient).max(initial=0.0) <= BALANCED:
            return u, coef
        step = _newton(covariates.covariance(u), gradient)
        moved, slope, size = covariates.product(step), float(gradient @ step), 1.0
        while True:
            new, tried = _log_sum(eta + size * moved, base)
            if new <= value + size * (1e-4 * slope) + FLAT * abs(value) or size < SHORTEST:
                break
            size /= 2
        coef, eta, value, u = coef + size * step, eta + size * moved, new, tried
        top, low = float(eta[base > 0].max()), float(np.abs(eta).max())
        if top < -MARGIN * low:
            raise _impossible(covariates, base, coef, who)
        if size < SHORTEST:
            break
    left = covariates.sums(u)
    if np.abs(left).max() <= CLOSE:
        return u, coef
    raise _unfinished(covariates.design, left, who)


def balancing_score(
    covariates: Standardised, target: NDArray[np.bool_], base: Rows
) -> tuple[float, Features]:
    r"""Intercept and coefficients of the log odds whose inverse weights balance both arms.

    They minimise :math:`\sum_t b (e^{-\eta} - \eta) + \sum_c b (e^{\eta} + \eta)`, whose gradient
    is the difference of the weighted sums of the arms.
    """
    sign = np.where(target, -1.0, 1.0)
    share = float(base[target].sum() / base.sum())
    coef, alpha = np.zeros(covariates.design.n_features), np.log(share / (1 - share))
    eta = np.full(base.size, alpha)
    value = _tailored(eta, sign, base)
    for _ in range(MOST_STEPS):
        odds = base * np.exp(sign * eta)
        pull = sign * (base + odds)
        total, h = float(np.abs(pull).sum()) / 2, float(odds.sum())
        gradient = np.append(pull.sum(), covariates.sums(pull)) / total
        if np.abs(gradient).max() <= BALANCED:
            return float(alpha), coef
        mean = covariates.sums(odds) / h
        inner = covariates.covariance(odds / h) + np.outer(mean, mean)
        curvature = np.block([[np.ones((1, 1)), mean[None, :]], [mean[:, None], inner]]) * h / total
        step = _newton(curvature, gradient)
        moved, slope, size = step[0] + covariates.product(step[1:]), float(gradient @ step), 1.0
        while size >= SHORTEST:
            new = _tailored(eta + size * moved, sign, base)
            if new <= value + size * (1e-4 * slope * total) + FLAT * abs(value):
                break
            size /= 2
        alpha, coef = alpha + size * step[0], coef + size * step[1:]
        eta, value = eta + size * moved, new
        if size < SHORTEST or eta[target].min() > eta[~target].max():  # the arms are separated
            break
    odds = base * np.exp(np.clip(sign * eta, -STEEPEST, STEEPEST))
    pull = sign * (base + odds)
    left = covariates.sums(pull) / (np.abs(pull).sum() / 2)
    if np.abs(left).max(initial=0.0) <= CLOSE:
        return float(alpha), coef
    raise _unfinished(covariates.design, left, "the arms")


def _log_sum(eta: Rows, base: Rows) -> tuple[float, Rows]:
    """Log sum b exp(eta), and the weights, which add up to 1."""
    top = float(eta.max(initial=-np.inf))
    weight = base * np.exp(eta - top)
    total = float(weight.sum())
    return top + float(np.log(total)), weight / total


def _tailored(eta: Rows, sign: Rows, base: Rows) -> float:
    steep = sign * eta
    if steep.max(initial=0.0) > STEEPEST:
        return np.inf
    return float(base @ (np.exp(steep) + steep))


def _newton(curvature: Matrix, gradient: Features) -> Features:
    """The step; directions without curvature are held back."""
    ridge = RIDGE * max(float(np.diag(curvature).max()), RIDGE)
    step = np.linalg.solve(curvature + ridge * np.eye(gradient.size), -gradient)
    return step.astype(np.float64)


def _impossible(covariates: Standardised, base: Rows, coef: Features, who: str) -> CohortError:
    """No weights have these means; the covariates that show it."""
    design, names = covariates.design, covariates.design.names
    outside = []
    for j in range(design.n_features):
        x = design.to_dense(np.array([j]))[base > 0, 0]
        low, high = float(x.min(initial=np.inf)), float(x.max(initial=-np.inf))
        gap = MARGIN * covariates.unit[j]
        if covariates.origin[j] < low - gap or covariates.origin[j] > high + gap:
            outside.append(j)
    together = np.argsort(-np.abs(coef), kind="stable")[:NAMED].tolist()
    shown = ", ".join(repr(names[j]) for j in (outside or together)[:NAMED])
    ending = "." if outside else ", all of them at once."
    return CohortError(
        "NoBalance",
        f"no weights of {who} can give {{names}} the means that are wanted{ending}",
        hint="trim people who have no like in the other arm, or balance fewer covariates.",
        values={"names": Value("name", shown)},
    )


def _unfinished(design: Design, left: Features, who: str) -> CohortError:
    worst = np.argsort(-np.abs(left), kind="stable")[:NAMED].tolist()
    shown = ", ".join(repr(design.names[j]) for j in worst)
    return CohortError(
        "NoBalance",
        f"no weights of {who} were found that balance the covariates; the largest differences are "
        "left in {names}.",
        hint="these covariates may determine the treatment of some people: trim, or balance fewer.",
        values={"names": Value("name", shown)},
    )
