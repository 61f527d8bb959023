"""Probabilities of the largest of normal variables, against formulas with one integral."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

import riskset as rs
from riskset.curves.largest_normal import probability_of_largest

FAR = (0.3, 1.5, 2.2, 4.0, 7.0)


def of_one_factor(c, loadings):
    """That of a_k X + sqrt(1 - a_k^2) E_k, which are independent given X."""
    a = np.array(loadings)
    spread = np.sqrt(1 - a**2)

    def beyond(x):
        each = norm.sf((c - a * x) / spread) + norm.cdf((-c - a * x) / spread)
        return norm.pdf(x) * (1 - np.prod(1 - each) if each.max() > 0.1 else _any_of(each))

    return quad(beyond, -12, 12, epsabs=0, epsrel=1e-12, limit=500, points=[-3, 0, 3])[0]


def _any_of(each):
    return -np.expm1(np.log1p(-each).sum())


def correlation(loadings):
    out = np.outer(loadings, loadings)
    np.fill_diagonal(out, 1.0)
    return out


@pytest.mark.parametrize(
    "loadings",
    [(0.9, 0.7), (0.5, -0.3), (0.9, 0.8, 0.5), (0.99, 0.95, 0.9), (0.3, -0.2, 0.0),
     (0.9999, 0.999, 0.5)],
)  # fmt: skip
def test_two_and_three_variables(loadings):
    for c in FAR:
        expected = of_one_factor(c, loadings)
        assert_allclose(probability_of_largest(c, correlation(loadings)), expected, rtol=1e-9)


@pytest.mark.parametrize("loadings", [(0.9, 0.8, 0.5, 0.3), (0.9,) * 5])
def test_more_variables(loadings):
    for c in (0.5, 2.2, 7.0):
        expected = of_one_factor(c, loadings)
        assert_allclose(probability_of_largest(c, correlation(loadings)), expected, rtol=2e-4)


@pytest.mark.parametrize(("n", "within"), [(1, 1e-12), (2, 1e-12), (3, 1e-12), (4, 1e-4)])
def test_independent_variables(n, within):
    for c in FAR:
        expected = -np.expm1(n * np.log1p(-2 * norm.sf(c)))
        assert_allclose(probability_of_largest(c, np.eye(n)), expected, rtol=within)


def test_variables_that_determine_each_other():
    """X, Y, (X + Y) / sqrt(2) and an independent Z have rank 3; the first three have rank 2."""
    root = np.sqrt(0.5)
    lines = np.array([[1, 0, 0], [0, 1, 0], [root, root, 0], [0, 0, 1]])
    for c in FAR[:4]:

        def inside(x, c=c):
            low, high = max(-c, -2 * root * c - x), min(c, 2 * root * c - x)
            return norm.pdf(x) * (norm.cdf(high) - norm.cdf(low))

        cut = (2 * root - 1) * c
        plane = 1 - quad(inside, -c, c, points=[-cut, cut], epsabs=1e-14)[0]
        few = lines[:3]
        assert probability_of_largest(c, few @ few.T) == pytest.approx(plane, abs=1e-13)
        expected = 1 - (1 - plane) * (1 - 2 * norm.sf(c))
        found = probability_of_largest(c, lines @ lines.T)
        assert found == pytest.approx(expected, abs=1e-13)
        # A variable that occurs again, or with the other sign, changes nothing.
        again = np.concatenate([lines, lines[:2], -lines[2:]])
        assert probability_of_largest(c, again @ again.T) == pytest.approx(found, rel=1e-9)
        order = [2, 0, 3, 1]
        mixed = (lines @ lines.T)[np.ix_(order, order)]
        assert probability_of_largest(c, mixed) == pytest.approx(found, rel=1e-9)


def test_no_distance_has_probability_1():
    assert probability_of_largest(0.0, np.eye(3)) == 1.0


@pytest.mark.parametrize("robust", [False, True])
def test_the_default_weights_have_three_dimensions_with_many_rows_too(rng, robust):
    """The first score is the sum of the next two, whatever the rounding of sums of many rows."""
    n = 100_000
    y = rs.Surv(rng.exponential(size=n), rng.random(n) < 0.5)
    weight = rng.uniform(0.5, 2, n) if robust else None
    found = rs.max_combo_test(y, rng.integers(0, 2, n), weight=weight)
    sizes = np.linalg.eigvalsh(found.correlation)
    assert sizes[0] < 1e-13
    assert sizes[1] > 1e-4
