"""Intervals of resampled estimates: by hand, and those of SciPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from riskset.infer.bootstrap_intervals import (
    BootstrapInterval,
    bca_levels,
    interval_ends,
    least_replicates,
    order_quantile,
)

INF = np.inf


def test_order_statistics() -> None:
    ordered = np.arange(1.0, 40.0)  # 39 replicates
    assert order_quantile(ordered, 0.025, -1) == 1.0
    assert order_quantile(ordered, 0.975, 1) == 39.0
    assert order_quantile(ordered, 0.5, 1) == 20.0
    assert_allclose(order_quantile(ordered, 0.26, 1), 10.4, rtol=1e-14)
    assert order_quantile(ordered, 0.001, -1) == 1.0
    assert order_quantile(ordered, 0.999, 1) == 39.0


def test_infinite_order_statistics() -> None:
    ordered = np.array([-INF, -INF, 0.0, 1.0, 2.0, 3.0, INF, INF, INF])
    assert order_quantile(ordered, 0.1, -1) == -INF
    assert order_quantile(ordered, 0.25, -1) == -INF  # between -inf and 0
    assert order_quantile(ordered, 0.35, -1) == 0.5
    assert order_quantile(ordered, 0.65, 1) == INF  # between 3 and inf
    assert order_quantile(ordered, 0.6, 1) == 3.0
    both = np.array([-INF, INF])
    assert [order_quantile(both, 0.5, side) for side in (-1, 1)] == [-INF, INF]


@pytest.mark.parametrize(("level", "least"), [(0.95, 39), (0.99, 199), (0.9, 19), (0.2, 2)])
def test_least_number_of_replicates(level: float, least: int) -> None:
    assert least_replicates(level) == least


def test_intervals_by_hand() -> None:
    """39 replicates 1..39 in any order about an estimate of 18."""
    replicates = np.random.default_rng(1).permutation(np.arange(1.0, 40.0))
    assert interval_ends("percentile", 18.0, replicates) == BootstrapInterval(1.0, 39.0, False)
    assert interval_ends("basic", 18.0, replicates) == BootstrapInterval(-3.0, 35.0, False)
    normal = interval_ends("normal", 18.0, replicates)
    # The mean is 20, so the bias 2; the variance of 1..n is n (n + 1) / 12.
    half = 1.959963984540054 * np.sqrt(39 * 40 / 12)
    assert_allclose([normal.lower, normal.upper], [16 - half, 16 + half], rtol=1e-12)
    # 17 replicates below the estimate and one equal: z0 = ndtri(17.5 / 39).
    z0 = stats.norm.ppf(17.5 / 39)
    low, high = stats.norm.cdf(2 * z0 - 1.2815515655), stats.norm.cdf(2 * z0 + 1.2815515655)
    bca = interval_ends("bca", 18.0, replicates, 0.8)
    assert_allclose([bca.lower, bca.upper], [40 * low, 40 * high], rtol=1e-8)


def test_failed_replicates_are_left_out() -> None:
    values = np.append(np.arange(1.0, 40.0), [np.nan] * 5)
    assert interval_ends("percentile", 18.0, values) == BootstrapInterval(1.0, 39.0, False)
    lost = interval_ends("percentile", 18.0, values[1:])
    assert np.isnan(lost.lower)
    assert np.isnan(lost.upper)


def test_infinite_replicates_take_part() -> None:
    values = np.append(np.arange(1.0, 38.0), [INF, INF])
    assert interval_ends("percentile", 18.0, values) == BootstrapInterval(1.0, INF, False)
    assert interval_ends("basic", 18.0, values) == BootstrapInterval(-INF, 35.0, False)
    assert np.isnan(interval_ends("normal", 18.0, values).lower)
    assert interval_ends("percentile", INF, values) == BootstrapInterval(1.0, INF, False)
    for kind in ("basic", "normal", "bca"):
        assert np.isnan(interval_ends(kind, INF, values).lower)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
def test_bca_is_scipys(seed: int) -> None:
    """The same distribution, and the jackknife of a mean, give the same levels."""
    x = np.random.default_rng(seed).lognormal(size=25)
    theirs = stats.bootstrap(
        (x,), np.mean, method="BCa", n_resamples=999, rng=np.random.default_rng(seed)
    )
    u = x - x.mean()
    a = (u**3).sum() / (6 * (u**2).sum() ** 1.5)
    low, high = bca_levels(x.mean(), theirs.bootstrap_distribution, 0.95, a)
    assert abs(a) > 0.01
    assert_allclose(
        np.quantile(theirs.bootstrap_distribution, [low, high]),
        theirs.confidence_interval,
        rtol=1e-12,
    )


def test_bca_of_an_estimate_beyond_all_replicates_is_not_defined() -> None:
    assert np.isnan(bca_levels(0.0, np.arange(1.0, 100.0), 0.95, 0.0)).all()
    assert np.isnan(interval_ends("bca", 0.0, np.arange(1.0, 100.0)).lower)


def test_bca_may_reach_beyond_the_replicates() -> None:
    values = np.arange(1.0, 100.0)
    found = interval_ends("bca", 95.5, values)
    assert found.is_extreme
    assert found.upper == 99.0
