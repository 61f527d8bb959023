"""The gradient is the slope of the likelihood, and the information the slope of the gradient."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from model.cohorts import COHORTS, RUNTIME, Cohort
from riskset.model.cox import Ties
from riskset.model.curvature_product import MAX_PRODUCT_SPAN, curvature_product

each_ties = pytest.mark.parametrize("ties", ["breslow", "efron"])
each_cohort = pytest.mark.parametrize("c", COHORTS.values(), ids=COHORTS)


def slope(
    f: Callable[[np.ndarray], np.ndarray | float], eta: np.ndarray, along: np.ndarray, h: float
) -> np.ndarray:
    """Five-point difference of f along a direction: error O(h^4)."""
    two_back, back, on, two_on = (np.asarray(f(eta + k * h * along)) for k in (-2, -1, 1, 2))
    return (two_back - 8 * back + 8 * on - two_on) / (12 * h)


def likelihood(c: Cohort, ties: Ties) -> Callable[[np.ndarray], float]:
    return lambda eta: c.loss(ties).evaluate(eta).log_likelihood


@each_ties
@each_cohort
def test_residuals_are_the_slope_in_eta(c: Cohort, ties: Ties, rng: np.random.Generator) -> None:
    residual = c.loss(ties).evaluate(c.eta).residual
    for _ in range(5):
        along = rng.normal(size=c.eta.size)
        found = slope(likelihood(c, ties), c.eta, along, 2e-3)
        assert_allclose(residual @ along, found, rtol=1e-7, atol=1e-7)


@each_ties
@each_cohort
def test_each_residual_is_a_partial_derivative(c: Cohort, ties: Ties) -> None:
    residual = c.loss(ties).evaluate(c.eta).residual
    for i in range(0, c.eta.size, 7):
        found = slope(likelihood(c, ties), c.eta, np.eye(c.eta.size)[i], 5e-3)
        assert_allclose(residual[i], found, rtol=1e-7, atol=1e-8)


@each_ties
@each_cohort
def test_products_are_the_slope_of_the_residuals(c: Cohort, ties: Ties) -> None:
    loss = c.loss(ties)
    if np.ptp(c.eta) > MAX_PRODUCT_SPAN:
        pytest.skip("products are for steps with linear predictors that lie closer")
    product = curvature_product(loss, c.eta)
    for along in np.random.default_rng(4).normal(size=(5, c.eta.size)):
        found = -slope(lambda eta: loss.evaluate(eta).residual, c.eta, along, 1e-3)
        assert_allclose(product(along), found, rtol=1e-6, atol=1e-7)


@each_ties
@each_cohort
def test_information_is_the_slope_of_the_gradient(c: Cohort, ties: Ties) -> None:
    information = c.loss(ties).information(c.design, c.eta, c.columns)
    # A risk set that one row dominates has no variance left: digits are those of the squares.
    size = np.sqrt(c.loss(ties).evaluate(c.eta).expected @ c.design.stored() ** 2)
    for j in c.columns:
        along = c.design.product(np.eye(c.columns.size)[j], runtime=RUNTIME)
        found = -slope(lambda eta: c.gradient(ties, eta), c.eta, along, 1e-3)
        assert (np.abs(information[j] - found) <= 1e-8 * size[j] * size + 1e-11).all()
