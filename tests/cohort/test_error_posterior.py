"""Calibrated intervals and p values of a posterior: one distribution, exact limits, coverage."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import t

import riskset as rs
from parameters import rest_is_slow
from riskset.cohort.bias.calibration import leave_one_out
from riskset.cohort.bias.empirical_null.fit import fit_null
from riskset.cohort.bias.empirical_null.regression_posterior import error_posterior

EFFECTS = np.log([1.5, 2.0, 4.0])


def draw(rng, n, n_positive=0, sd=0.2):
    """Estimates of negative, and positive, controls with their standard errors and truths."""
    true = np.append(np.zeros(n), rng.choice(EFFECTS, n_positive))
    se = np.exp(rng.uniform(np.log(0.05), np.log(0.5), true.size))
    spread = np.hypot(sd + 0.05 * true, se)
    return 0.1 + 0.95 * true + spread * rng.normal(size=true.size), se, true


def posterior(rng, n, n_positive=0, **options):
    b, se, true = draw(rng, n, n_positive, **options)
    return error_posterior(b, se, true if n_positive else None)


@pytest.mark.parametrize("n_positive", [0, 12])
def test_the_interval_has_the_true_values_whose_p_is_above_its_share(n_positive):
    rng = np.random.default_rng(1)
    for _ in range(60 if n_positive == 0 else 12):
        own = posterior(rng, int(rng.integers(5, 40)), n_positive, sd=float(rng.choice([0, 0.3])))
        for _ in range(4):
            b, se, level = rng.normal(0, 1), np.exp(rng.uniform(-4, 0.5)), rng.uniform(0.5, 0.99)
            center, lower, upper = own.interval(b, se, level)
            assert lower < center < upper
            p = [own.p_values(b, se, theta)[0] for theta in (center, lower, upper)]
            is_open = np.isinf([center, lower, upper])
            expected = np.where(is_open, p, [1.0, 1 - level, 1 - level])
            assert_allclose(p, expected, rtol=0, atol=1e-8)
            # On the way out p falls, so that whatever is inside has a larger one.
            for end in (lower, upper):
                way = np.linspace(center, np.clip(end, -20, 20), 9)
                p = [own.p_values(b, se, theta)[0] for theta in way]
                assert (np.diff(p) < 1e-12).all()
            two, above = own.p_values(b, se)
            assert (two > 1 - level) == (lower < 0 < upper)
            assert_allclose(two, 2 * min(above, 1 - above), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_positive", rest_is_slow([0, 6], 1))
def test_calibrated_intervals_and_p_values_never_disagree(n_positive):
    rng = np.random.default_rng(2)
    for n in (5, 8, 20):
        b, se, true = draw(rng, n, n_positive)
        log_rr, error = rng.normal(0, 0.5, 15), rng.uniform(0.05, 0.5, 15)
        for level in (0.8, 0.95):
            own = rs.cohort.calibrate(rs.cohort.Controls(b, se, true), log_rr, error, level=level)
            holds = (own.lower < 0) & (own.upper > 0)
            assert holds.any()
            assert not holds.all()
            assert ((own.p > 1 - level) == holds).all()
            assert (own.lower < own.log_rr).all()
            assert (own.log_rr < own.upper).all()
            # The same posterior judges the controls.
            p = leave_one_out(own.controls)
            assert p.size == n
            assert own.calibrated_coverage == np.mean(p >= 1 - level)


def test_without_standard_errors_it_is_students_distribution():
    rng = np.random.default_rng(3)
    for n in (5, 10, 30):
        b = rng.normal(0.1, 0.2, n)
        own = error_posterior(b, np.full(n, 1e-6))
        scale = b.std(ddof=1) * np.sqrt(1 + 1 / n)
        z = (0.6 - b.mean()) / scale
        two, above = own.p_values(0.6, 1e-9)
        assert_allclose([two, above], [2 * t.sf(z, n - 1), t.sf(z, n - 1)], rtol=1e-7)
        half = t.ppf(0.975, n - 1) * scale
        expected = 0.6 - b.mean() + np.array([0, -half, half])
        assert_allclose(own.interval(0.6, 1e-9, 0.95), expected, rtol=0, atol=1e-8)
        assert_allclose(own.unremarkable(1e-9, 0.95), b.mean() + np.array([-half, half]), atol=1e-8)


@pytest.mark.parametrize("sd", [0.0, 0.25])
def test_many_controls_give_the_normal_interval(sd):
    rng = np.random.default_rng(4)
    n = 20_000
    se = rng.uniform(0.05, 0.3, n)
    b = 0.1 + np.hypot(sd, se) * rng.normal(size=n)
    own, null = error_posterior(b, se), fit_null(b, se)
    error = np.hypot(null.sd, 0.2)
    expected = 0.5 - null.mean + np.array([0, -1.959964, 1.959964]) * error
    assert_allclose(own.interval(0.5, 0.2, 0.95), expected, rtol=0, atol=5e-4)
    assert_allclose(own.p_values(0.5, 0.2)[0], 2 * ndtr(-expected[0] / error), rtol=0.01)


def test_it_is_the_integral_over_the_standard_deviation():
    rng = np.random.default_rng(5)
    b, se, _ = draw(rng, 8)

    def density(sd, chance):
        variance = sd**2 + se**2
        total = (1 / variance).sum()
        center = (b / variance).sum() / total
        prior = np.sqrt((sd**2 / variance**2).sum())
        likelihood = np.prod(variance**-0.5) / np.sqrt(total)
        likelihood *= np.exp(-0.5 * ((b - center) ** 2 / variance).sum())
        spread = np.sqrt(1 / total + sd**2 + 0.15**2)
        return prior * likelihood * (ndtr((center - 0.4) / spread) if chance else 1.0)

    pieces = [0.0, 0.05, 0.1, 0.2, 0.4, 1.0, 4.0, 50.0, np.inf]
    above, total = (
        sum(
            quad(density, low, high, (chance,), epsabs=0)[0]
            for low, high in itertools.pairwise(pieces)
        )
        for chance in (True, False)
    )
    assert_allclose(error_posterior(b, se).p_values(0.4, 0.15)[1], above / total, rtol=1e-6)


def test_positive_controls_by_brute_force():
    """Another grid, in the standard deviations themselves, and matrices as the formulas read."""
    rng = np.random.default_rng(6)
    b, se, true = draw(rng, 25, 25)
    x = np.column_stack([np.ones(50), true])
    far = true.max()
    share = np.column_stack([1 - true / far, true / far])
    above, total, at = 0.0, 0.0, np.array([1.0, 0.7])
    grid = np.arange(0.005, 1.2, 0.01)
    for sd_0 in grid:
        for sd_far in grid:
            sd = share @ [sd_0, sd_far]
            w = 1 / (sd**2 + se**2)
            covariance = np.linalg.inv(x.T * w @ x)
            mean = covariance @ (x.T * w @ b)
            prior = np.sqrt(np.linalg.det(share.T * (sd * w) ** 2 @ share))
            weight = prior * np.sqrt(np.prod(20 * w) * np.linalg.det(covariance))
            weight *= np.exp(-0.5 * (w * (b - x @ mean) ** 2).sum())
            own = sd_0 + (sd_far - sd_0) * at[1] / far
            spread = np.sqrt(at @ covariance @ at + own**2 + 0.2**2)
            above += weight * ndtr((at @ mean - 1.5) / spread)
            total += weight
    own = error_posterior(b, se, true)
    assert_allclose(own.p_values(1.5, 0.2, 0.7)[1], above / total, rtol=2e-3)


def test_an_end_that_positive_controls_leave_open_is_infinite():
    # Large effects are estimated as if they were anything.
    rng = np.random.default_rng(7)
    true = np.repeat([0.0, np.log(2)], 5)
    b = np.append(rng.normal(0, 0.02, 5), [-3.0, 4.0, 0.5, -2.0, 3.0])
    own = rs.cohort.calibrate(rs.cohort.Controls(b, np.full(10, 0.05), true), [0.2], [0.1])
    assert np.isinf(own.upper[0])
    assert own.lower[0] < own.log_rr[0]
    assert np.isinf(own.se[0])


@pytest.mark.parametrize("n", rest_is_slow([10, 20], 1))
def test_coverage(n):
    """Of 500 studies: by maximum likelihood 0.86 and 0.92 of the intervals hold the truth."""
    rng = np.random.default_rng([8, n])
    held = []
    for _ in range(500):
        b, se, _ = draw(rng, n + 1)
        _, lower, upper = error_posterior(b[:n], se[:n]).interval(b[n], se[n], 0.95)
        held.append(lower < 0 < upper)
    assert 0.935 < np.mean(held) < 0.985
