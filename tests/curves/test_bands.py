"""Simultaneous bands: critical values against tables, exact cases and paths; coverage of curves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import kolmogorov, ndtr, ndtri
from scipy.stats import norm

import riskset as rs
from riskset.curves.band_limits import (
    equal_precision_limit,
    hall_wellner_limit,
    stays_in_strip,
    stays_in_tube,
)

KINDS = ("equal-precision", "hall-wellner")


def ratio(a: float, b: float) -> float:
    """Of the standard errors of log S at two times of the bridge."""
    return float(np.sqrt(b * (1 - a) / (a * (1 - b))))


def test_from_0_to_1_the_strip_has_kolmogorovs_distribution() -> None:
    for k in (0.6, 1.0, 1.3581, 2.0):
        assert stays_in_strip(k, 0.0, 1.0) == pytest.approx(1 - kolmogorov(k), abs=1e-14)
    # Kolmogorov's critical values, and k of Klein & Moeschberger (2003), table C.4, of their
    # example 4.2: from 0.1 to 0.6.
    assert hall_wellner_limit(0, 1, 0.95) == pytest.approx(1.3581, abs=5e-5)
    assert hall_wellner_limit(0, 1, 0.99) == pytest.approx(1.6276, abs=5e-5)
    assert hall_wellner_limit(0.1, 0.6, 0.95) == pytest.approx(1.3211, abs=5e-5)


def test_from_0_to_a_the_strip_has_the_series_of_hall_and_wellner() -> None:
    r"""P = 1 - 2 Phi(-k / s) + 2 sum (-1)^j e^(-2 j^2 k^2) (Phi(r (2j + d)) - Phi(r (2j - d)))."""
    for k, a in ((1.0, 0.3), (1.3, 0.7), (0.8, 0.95)):
        s, r, d = np.sqrt(a * (1 - a)), k * np.sqrt((1 - a) / a), 1 / (1 - a)
        j = np.arange(1, 40)
        parts = (
            (-1.0) ** j
            * np.exp(-2 * (j * k) ** 2)
            * (ndtr(r * (2 * j + d)) - ndtr(r * (2 * j - d)))
        )
        expected = 1 - 2 * ndtr(-k / s) + 2 * parts.sum()
        assert stays_in_strip(k, 0.0, a) == pytest.approx(expected, abs=1e-12)


def test_the_tube_loses_paths_at_rates_that_are_known() -> None:
    """The first even function with eigenvalue 2 is 1 - x^2, and that with 4 is 3 - 6 x^2 + x^4."""
    for c, rate in ((1.0, 2.0), (np.sqrt(3 - np.sqrt(6)), 4.0)):
        found = np.log(stays_in_tube(c, 5.0) / stays_in_tube(c, 7.0)) / 2
        assert found == pytest.approx(rate, rel=1e-12)
    assert stays_in_tube(1.96, 0.0) == pytest.approx(1 - 2 * ndtr(-1.96), abs=1e-3)


def test_the_tube_against_steps_of_the_process() -> None:
    """The density of the paths that have stayed, carried over many short steps on a fine grid.

    The limit moves by 0.5826 standard deviations of a step (Chernoff 1965; Siegmund 1985).
    """
    c, length, n_steps = 2.9, 1.3, 400
    step = length / n_steps
    spread = np.sqrt(1 - np.exp(-2 * step))
    inner = c - 0.5826 * spread
    edges = np.linspace(-inner, inner, 401)
    x = (edges[1:] + edges[:-1]) / 2
    kernel = norm.pdf(x[:, None], np.exp(-step) * x[None, :], spread) * (x[1] - x[0])
    density = norm.pdf(x)
    for _ in range(n_steps):
        density = kernel @ density
    assert density.sum() * (x[1] - x[0]) == pytest.approx(stays_in_tube(c, length), abs=2e-4)


def test_equal_precision_against_tables() -> None:
    """Nair's values solve an approximation to the tail; Andrews' (1993) are simulated."""

    def tail(c: float, a: float, b: float) -> float:
        return 4 * norm.pdf(c) / c + norm.pdf(c) * (c - 1 / c) * 2 * np.log(ratio(a, b))

    # 2.8826: example 4.2 of Klein & Moeschberger (2003).
    assert tail(2.8826, 0.1, 0.6) == pytest.approx(0.05, abs=1e-5)
    exact = equal_precision_limit(ratio(0.1, 0.6), 0.95)
    assert exact == pytest.approx(2.8826, abs=6e-3)
    assert 1 - stays_in_tube(exact, np.log(ratio(0.1, 0.6))) == pytest.approx(0.05, abs=1e-11)
    # Table 1 of Andrews (1993) for one parameter: the square, from 0.15 to 0.85 and 0.05 to 0.95.
    for level, squares in ((0.9, (7.17, 8.19)), (0.95, (8.85, 9.84)), (0.99, (12.35, 13.01))):
        for a, square in zip((0.15, 0.05), squares, strict=True):
            assert equal_precision_limit(ratio(a, 1 - a), level) ** 2 == pytest.approx(
                square, rel=0.04
            )


def test_a_range_of_one_time_has_the_pointwise_interval() -> None:
    z = ndtri(0.975)
    assert equal_precision_limit(1.0, 0.95) == z
    assert hall_wellner_limit(0.3, 0.3, 0.95) == pytest.approx(z * np.sqrt(0.21), rel=1e-14)
    assert equal_precision_limit(1 + 1e-7, 0.95) == pytest.approx(z, abs=2e-3)
    assert hall_wellner_limit(0.3, 0.3 + 1e-6, 0.95) == pytest.approx(z * np.sqrt(0.21), abs=2e-3)


def sample(rng, n: int = 150):
    time, censoring = rng.exponential(10, n), rng.uniform(0, 30, n)
    return rs.Surv(np.minimum(time, censoring), time <= censoring)


@pytest.mark.parametrize("scale", ["plain", "log-log", "arcsine", "log", "logit"])
def test_limits_by_the_formulas(rng, scale: str) -> None:
    """Klein & Moeschberger (2003), section 4.4; on other scales by the delta method."""
    curves = rs.kaplan_meier(sample(rng), interval=scale)
    curve, n = curves["all"], 150
    a, b = np.searchsorted(curve.time, [2.0, 12.0], side="right") - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (curve.standard_error / curve.survival) ** 2
    bridge = n * variance / (1 + n * variance)
    for kind in KINDS:
        made = curves.confidence_band(kind, start=2.0, end=12.0)
        found = made["all"]
        limit = (
            hall_wellner_limit(bridge[a], bridge[b], 0.95)
            if kind == "hall-wellner"
            else equal_precision_limit(np.sqrt(variance[b] / variance[a]), 0.95)
        )
        assert found.band.critical_value == pytest.approx(limit, rel=1e-9)
        assert (found.band.start, found.band.end) == (curve.time[a], curve.time[b])
        assert np.isnan(found.lower[:a]).all()
        assert np.isnan(found.upper[b + 1 :]).all()
        k = np.arange(a, b + 1)
        s = curve.survival[k]
        half = limit * (
            s * (1 + n * variance[k]) / np.sqrt(n)
            if kind == "hall-wellner"
            else curve.standard_error[k]
        )
        if scale == "plain":
            expected = (s - half).clip(0), (s + half).clip(0, 1)
        elif scale == "log-log":
            theta = np.exp(half / (s * np.log(s)))
            expected = s ** (1 / theta), s**theta
        elif scale == "arcsine":
            angle, half = np.arcsin(np.sqrt(s)), half / (2 * np.sqrt(s * (1 - s)))
            expected = (
                np.sin((angle - half).clip(0)) ** 2,
                np.sin((angle + half).clip(0, np.pi / 2)) ** 2,
            )
        elif scale == "log":
            expected = s * np.exp(-half / s), (s * np.exp(half / s)).clip(0, 1)
        else:
            odds, half = np.log(s / (1 - s)), half / (s * (1 - s))
            expected = 1 / (1 + np.exp(half - odds)), 1 / (1 + np.exp(-half - odds))
        assert_allclose(found.lower[k], expected[0], rtol=1e-9)
        assert_allclose(found.upper[k], expected[1], rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_band_contains_the_whole_curve_as_often_as_it_says(kind: str) -> None:
    """Of 250 samples of 150 rows, between the times at which 95 % and 30 % survive.

    The standard deviation of the share is 1.4 %.
    """
    rng, times = np.random.default_rng(11), -10 * np.log([0.95, 0.3])
    inside = 0
    for _ in range(250):
        band = rs.kaplan_meier(sample(rng)).confidence_band(
            kind, interval="arcsine", start=times[0], end=times[1]
        )["all"]
        k = np.flatnonzero(np.isfinite(band.lower))
        until = np.append(band.time, np.inf)[k + 1].clip(max=times[1])
        truth = np.exp(-np.maximum(band.time[k], times[0]) / 10), np.exp(-until / 10)
        inside += bool(((band.lower[k] <= truth[1]) & (truth[0] <= band.upper[k])).all())
    assert 0.905 <= inside / 250 <= 0.985


def test_counts_order_and_groups(rng) -> None:
    y, weight = sample(rng, 60), rng.integers(1, 4, 60)
    band = rs.kaplan_meier(y, weight=weight).confidence_band("hall-wellner")["all"]
    rows = rng.permutation(np.repeat(np.arange(60), weight))
    again = rs.kaplan_meier(y[rows]).confidence_band("hall-wellner")["all"]
    assert_allclose(again.lower, band.lower, rtol=1e-11)
    group = np.arange(60) % 2
    both = rs.kaplan_meier(y, group).confidence_band(level=0.9)
    assert both.level == 0.9
    alone = rs.kaplan_meier(y[group == 1]).confidence_band(level=0.9)["all"]
    assert_allclose(both[1].upper, alone.upper, rtol=1e-12)


def test_reading_a_band() -> None:
    y = rs.Surv([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1, 1, 0, 1, 1, 1])
    band = rs.kaplan_meier(y).confidence_band(start=2.5)
    assert "95% log-log equal-precision band" in repr(band)
    frame = band.to_frame([0.5, 1.5, 2.7, 5.5, 6.0])
    # From the step in force at 2.5, which is that of 2, until nobody survives.
    assert np.isfinite(frame["lower"]).tolist() == [False, False, True, True, False]
    assert frame["survival"].round(4).tolist() == [1.0, 0.8333, 0.6667, 0.2222, 0.0]
    assert band["all"].band.start == 2.0
    rs.plot.survival_by_group(band)


def test_refusals() -> None:
    y = rs.Surv([1.0, 2.0, 3.0], [1, 1, 1])
    curves = rs.kaplan_meier(y)
    with pytest.raises(rs.InputError, match="did you mean 'hall-wellner'"):
        curves.confidence_band("hallwellner")
    with pytest.raises(rs.InputError, match="needs Greenwood's variance, .* 'robust'"):
        rs.kaplan_meier(y, weight=[0.5, 1, 1]).confidence_band()
    with pytest.raises(rs.InputError, match="there is no band: between 0 and 0.5"):
        curves.confidence_band(start=0, end=0.5)
    with pytest.raises(rs.InputError, match="there is no band: between"):
        rs.kaplan_meier(rs.Surv([1.0, 2.0], [0, 0])).confidence_band()
    with pytest.raises(rs.InputError, match="`start` must not be after `end`"):
        curves.confidence_band(start=2.5, end=1.5)
    with pytest.raises(rs.InputError, match="`end` must be a number, but it is nan"):
        curves.confidence_band(end=np.nan)


def test_a_picture_of_a_band_has_the_p_value_of_a_max_combo_test(rng) -> None:
    y, group = sample(rng, 80), np.arange(80) % 2
    curves, test = rs.kaplan_meier(y, group), rs.max_combo_test(y, group)
    axes = rs.plot.survival_by_group(curves.confidence_band("hall-wellner"), test=test)
    assert any(text.get_text().startswith("max-combo test: p") for text in axes.texts)
