"""Calibration by controls: exact optima, EmpiricalCalibration's numbers, integrals and statuses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

import riskset as rs
from cohort.golden import CONTROLS, table
from riskset.cohort.bias.calibration import leave_one_out
from riskset.cohort.bias.empirical_null.fit import expected_absolute_error, fit_null
from riskset.cohort.bias.empirical_null.posterior import null_posterior


def rows(first, last):
    own = table("negative_controls")
    chosen = (own["outcome_id"] >= first) & (own["outcome_id"] <= last)
    return {name: as_numbers(values[chosen]) for name, values in own.items()}


def as_numbers(values):
    return np.array([np.nan if v == "NA" else float(v) for v in values])


def controls(*ranges):
    parts = [rows(*r) for r in ranges]
    columns = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    return rs.cohort.Controls(
        columns["log_rr"], columns["se"], columns["true_log_rr"], columns["outcome_id"]
    )


NEGATIVE, POSITIVE, BAD = (1, 50), (101, 124), (901, 905)


def interest():
    own = rows(201, 206)
    return own["log_rr"], own["se"]


def found(*ranges, **options):
    return rs.cohort.calibrate(controls(*ranges), *interest(), **options)


# ------------------------------------------------------------------- maximum likelihood


def test_null_by_maximum_likelihood():
    own = found(NEGATIVE, BAD, method="likelihood")
    expected = CONTROLS["null"]["exact"]
    assert_allclose(own.null.mean, expected["mean"], rtol=1e-8)
    assert_allclose(own.null.sd, expected["sd"], rtol=1e-8)
    assert_allclose(own.null.log_likelihood, expected["loglik"], rtol=1e-12)
    assert_allclose(own.ease, CONTROLS["ease"]["exact"], rtol=1e-8)
    assert own.controls.set_aside.tolist() == CONTROLS["removed_before_fitting"]
    # The package stops early.
    for name, value in CONTROLS["null"]["empirical_calibration"].items():
        assert_allclose(getattr(own.null, name), value, rtol=1e-3)
    assert_allclose(own.ease, CONTROLS["ease"]["empirical_calibration"], rtol=1e-3)


def test_calibrated_p():
    own = found(NEGATIVE, method="likelihood")
    block = CONTROLS["p"]
    expected = block["exact"]
    assert_allclose(own.p, expected["two_sided"], rtol=1e-7)
    assert_allclose(own.one_sided_p, expected["one_sided_upper"], rtol=1e-7)
    assert_allclose(1 - own.one_sided_p, expected["one_sided_lower"], rtol=1e-7)
    assert_allclose(own.p, block["empirical_calibration"], rtol=2e-3)
    assert_allclose(own.one_sided_p, block["empirical_calibration_upper"], rtol=2e-3)
    log_rr, se = interest()
    assert_allclose(2 * ndtr(-np.abs(log_rr / se)), block["traditional"], rtol=1e-10)
    assert_array_equal(rows(201, 206)["outcome_id"], block["outcome_id"])


def test_calibrated_intervals_from_the_null():
    own = found(NEGATIVE, method="likelihood")
    expected = CONTROLS["ci_from_null"]["exact"]
    assert_allclose(own.log_rr, expected["log_rr"], rtol=0, atol=1e-9)
    assert_allclose(own.lower, expected["lb95"], rtol=0, atol=1e-8)
    assert_allclose(own.upper, expected["ub95"], rtol=0, atol=1e-8)
    assert_allclose(own.se, expected["se"], rtol=1e-8)
    package = CONTROLS["ci_from_null"]["empirical_calibration"]
    for name, key in {"log_rr": "logRr", "lower": "logLb95Rr", "upper": "logUb95Rr"}.items():
        assert_allclose(getattr(own, name), package[key], rtol=0, atol=1e-4)
    assert_allclose(own.se, package["seLogRr"], rtol=1e-3)


def test_error_model_with_positive_controls():
    own = found(NEGATIVE, POSITIVE, method="likelihood")
    block = CONTROLS["error_model"]
    model = own.error_model
    names = {
        "mean_intercept": "meanIntercept",
        "mean_slope": "meanSlope",
        "sd_intercept": "sdIntercept",
        "sd_slope": "sdSlope",
    }
    # The optimum is flat: R's gradient of 1e-12 leaves 1e-6 of the parameters.
    for name, key in names.items():
        assert_allclose(getattr(model, name), block["exact"][key], rtol=0, atol=1e-6)
        assert_allclose(getattr(model, name), block["empirical_calibration"][key], rtol=1e-3)
    at = list(names)
    for k, (lower, upper) in enumerate(zip(block["lb95"], block["ub95"], strict=True)):
        assert lower < getattr(model, at[k]) < upper
    assert -model.log_likelihood <= block["exact_negloglik"] + 1e-12
    assert_allclose(-model.log_likelihood, block["exact_negloglik"], rtol=1e-12)
    package = block["ci_empirical_calibration"]
    for name, key in {"log_rr": "logRr", "lower": "logLb95Rr", "upper": "logUb95Rr"}.items():
        assert_allclose(getattr(own, name), package[key], rtol=0, atol=1e-3)
    assert_allclose(own.se, package["seLogRr"], rtol=1e-3)
    # p values are still those of the negative controls.
    assert_allclose(own.p, CONTROLS["p"]["exact"]["two_sided"], rtol=1e-7)


def test_leave_one_out_and_coverage():
    own = leave_one_out(controls(NEGATIVE), "likelihood")
    assert_allclose(own, CONTROLS["leave_one_out_p"], rtol=1e-7)
    calibrated = found(NEGATIVE, method="likelihood")
    assert calibrated.coverage == CONTROLS["coverage"]["uncalibrated_95"]
    assert calibrated.calibrated_coverage == CONTROLS["coverage"]["calibrated_loo_95"]


def test_no_excess_is_exactly_0():
    own = table("negative_controls_boundary")
    null = fit_null(own["log_rr"], own["se"])
    expected = CONTROLS["boundary"]["exact"]
    assert null.sd == 0.0 == expected["sd"]
    assert_allclose(null.mean, expected["mean"], rtol=1e-10)
    assert_allclose(null.log_likelihood, expected["loglik"], rtol=1e-10)
    assert_allclose(null.ease, CONTROLS["boundary"]["ease_exact"], rtol=1e-10)
    package = CONTROLS["boundary"]["empirical_calibration"]
    assert_allclose([null.mean, null.sd], [package["mean"], package["sd"]], rtol=0, atol=2e-4)


def test_equal_standard_errors_have_a_closed_form():
    b = np.array([0.3, -0.2, 0.5, 0.1, -0.4])
    null = fit_null(b, np.full(5, 0.1))
    assert_allclose(null.mean, b.mean(), rtol=1e-14)
    assert_allclose(null.sd**2, b.var() - 0.01, rtol=1e-12)


@pytest.mark.parametrize(("mean", "sd"), [(0.1, 0.2), (-0.3, 0.05), (0.0, 1.0), (0.2, 0.0)])
def test_expected_absolute_error_is_an_integral(mean, sd):
    exact = abs(mean)
    if sd > 0:
        exact, _ = quad(
            lambda x: abs(x) * norm.pdf(x, mean, sd), mean - 12 * sd, mean + 12 * sd, points=[0.0]
        )
    assert_allclose(expected_absolute_error(np.array(mean), np.array(sd)), exact, rtol=1e-8)


# ------------------------------------------------------------------------------ posterior


def test_posterior():
    own = found(NEGATIVE).posterior
    # The stated numbers are points of a grid with steps of 0.00125 and 0.5 %.
    assert_allclose(own.mean[0], 0.1050, rtol=0, atol=0.00125 / 2)
    assert_allclose(own.precision[0], 39.802, rtol=0.0048 / 2)
    assert_allclose(own.ease, [0.1565, 0.1111, 0.2191], rtol=0, atol=1e-4)
    block = CONTROLS["mcmc"]
    assert_allclose(own.mean[0], block["mean"], rtol=0, atol=1e-3)
    assert_allclose(own.precision[0], block["precision"], rtol=1e-2)
    assert_allclose(own.sd[0], block["sd"], rtol=0, atol=1e-3)
    ease = block["ease"]
    assert_allclose(own.ease, [ease["ease"], ease["ciLb"], ease["ciUb"]], rtol=0, atol=2e-3)
    p = np.array([own.p_values(*pair)[0] for pair in zip(*interest(), strict=True)])
    assert_allclose(p[:, 0], block["p"], rtol=0, atol=0.01)
    assert_allclose(p[:, 1], block["p_lb"], rtol=0, atol=0.02)
    assert_allclose(p[:, 2], block["p_ub"], rtol=0, atol=0.02)


def test_posterior_by_brute_force():
    """The stated grid as the formulas read: at its points the stated numbers, between them ours."""
    own = rows(*NEGATIVE)
    mean = np.linspace(-0.4, 0.6, 801)
    # Precisions above 5000 have no weight.
    log_precision = np.linspace(np.log(0.5), np.log(1e8), 4001)[:1930]
    precision = np.exp(log_precision)[:, None]
    log_posterior = 1e-4 * np.log(precision) - 1e-4 * precision + np.zeros_like(mean)
    for b, s in zip(own["log_rr"], own["se"], strict=True):
        variance = 1 / precision + s**2
        log_posterior += -0.5 * np.log(variance) - 0.5 * (b - mean) ** 2 / variance
    weight = np.exp(log_posterior - log_posterior.max())
    weight /= weight.sum()
    assert weight[-1].sum() < 1e-12
    found = null_posterior(own["log_rr"], own["se"])
    axes = (
        (mean, weight.sum(axis=0), 0.1050, found.mean),
        (log_precision, weight.sum(axis=1), np.log(39.802), np.log(found.precision)),
    )
    for places, mass, stated, ours in axes:
        share = np.cumsum(mass)
        assert_allclose(places[np.searchsorted(share, 0.5)], stated, rtol=0, atol=5e-5)
        between = np.interp([0.5, 0.025, 0.975], share - mass / 2, places)
        assert_allclose(ours, between, rtol=0, atol=1e-4)
    b, se = 0.3, 0.15
    upper = norm.sf((b - mean) / np.sqrt(1 / precision + se**2))
    for values, p in zip(
        (2 * np.minimum(upper, 1 - upper), upper), found.p_values(b, se), strict=True
    ):
        order = np.argsort(values, axis=None)
        share = np.cumsum(weight.ravel()[order])
        between = np.interp([0.5, 0.025, 0.975], share, values.ravel()[order])
        assert_allclose(p, between, rtol=0, atol=1e-4)
    # Far away a p value is small, not nothing.
    assert 0 < found.p_values(-3.0, 0.05)[0][0] < 1e-20


# ---------------------------------------------------------------------- likelihood profiles


def profiles():
    own = rows(*NEGATIVE)
    grid = np.linspace(np.log(0.1), np.log(10), 1000)
    return [(grid, norm.logpdf(grid, b, s)) for b, s in zip(own["log_rr"], own["se"], strict=True)]


def test_null_of_profiles():
    null = rs.cohort.fit_null_profiles(profiles())
    expected = CONTROLS["null_grid_profiles"]
    assert_allclose([null.mean, null.sd], [expected["mean"], expected["sd"]], rtol=3e-3)
    # The profiles are normal, so this is the ordinary null; pieces of 0.005 err by little.
    exact = CONTROLS["null"]["exact"]
    assert_allclose([null.mean, null.sd], [exact["mean"], exact["sd"]], rtol=2e-4)
    # A chord lies below its arc by h^2 / (12 se^2) on average.
    h, se = np.diff(profiles()[0][0])[0], rows(*NEGATIVE)["se"]
    below = exact["loglik"] - (h**2 / 12 / se**2).sum()
    assert_allclose(null.log_likelihood, below, rtol=0, atol=2e-4)


def test_integral_of_a_piecewise_profile():
    from riskset.cohort.bias.empirical_null.fit import _log_integral, _pieces

    x, y = np.array([-1.0, 0.0, 0.5, 2.0]), np.array([-4.0, 0.0, -0.2, -30.0])

    def height(t):
        if t < x[0]:
            return y[0] + 4.0 * (t - x[0])
        if t > x[-1]:
            return y[-1] + (y[-1] - y[-2]) / 1.5 * (t - x[-1])
        return np.interp(t, x, y)

    for mean, sd in ((0.1, 0.3), (-0.8, 0.05), (1.5, 1.0), (4.0, 0.5)):
        exact = sum(
            quad(lambda t, m, s: np.exp(height(t)) * norm.pdf(t, m, s), a, b, (mean, sd), epsabs=0)[
                0
            ]
            for a, b in ((-15, -1), (-1, 0), (0, 0.5), (0.5, 2), (2, 9))
        )
        got = _log_integral(_pieces(0, x, y), mean, sd)
        assert_allclose(got, np.log(exact), rtol=1e-8)


def test_profiles_never_go_on_upwards():
    from riskset.cohort.bias.empirical_null.fit import _log_integral, _pieces

    x, y = np.array([0.0, 1.0]), np.array([0.0, 3.0])  # rises to its end, flat beyond
    exact = sum(
        quad(lambda t: np.exp(3 * min(t, 1.0)) * norm.pdf(t), a, b)[0] for a, b in ((-9, 1), (1, 9))
    )
    assert_allclose(_log_integral(_pieces(0, x, y), 0.0, 1.0), np.log(exact), rtol=1e-8)


def test_profiles_without_excess():
    own = table("negative_controls_boundary")
    grid = np.linspace(-3, 3, 2001)
    curves = [
        (grid, norm.logpdf(grid, b, s)) for b, s in zip(own["log_rr"], own["se"], strict=True)
    ]
    null = rs.cohort.fit_null_profiles(curves)
    assert_allclose(null.mean, CONTROLS["boundary"]["exact"]["mean"], rtol=0, atol=2e-3)
    assert null.sd < 0.01


def test_bad_profiles():
    for points, values in (([0.0, 0.0], [1.0, 1.0]), ([0.0], [1.0]), ([0.0, 1.0], [np.nan, 0.0])):
        with pytest.raises(rs.CohortError, match="profile 0 must be") as caught:
            rs.cohort.fit_null_profiles([(points, values)])
        assert caught.value.code == "BadProfile"


# -------------------------------------------------------------------------------- statuses


def test_too_few_controls():
    few = rs.cohort.Controls([0.1, 0.2, 0.0, -0.1, np.nan], [0.1] * 5)
    own = rs.cohort.calibrate(few, [0.5], [0.1])
    assert own.status == "too_few_controls"
    assert np.isnan(own.p).all()
    assert np.isnan(own.ease)
    assert [note.code for note in own.notes] == ["too_few_controls"]
    assert "4 negative controls: status 'too_few_controls'" in repr(own)


def test_none_at_all():
    own = rs.cohort.calibrate(rs.cohort.Controls([], []), [0.5], [0.1])
    assert own.status == "too_few_controls"


def test_controls_that_fail_their_diagnostics_are_set_aside():
    b = np.linspace(-0.2, 0.3, 8)
    usable = np.arange(8) != 3
    own = rs.cohort.Controls(b, np.full(8, 0.1), usable=usable)
    assert own.set_aside.tolist() == [3]
    found = rs.cohort.calibrate(own, [0.1], [0.1], method="likelihood")
    assert_allclose(found.null.mean, b[usable].mean(), rtol=1e-12)
    assert [note.code for note in found.notes] == ["few_controls"]


def test_missing_and_infinite_estimates_stay_missing():
    own = rs.cohort.calibrate(controls(NEGATIVE), [None, np.inf, 0.2], [0.1, 0.1, 0.1])
    for name in ("p", "one_sided_p", "log_rr", "lower", "upper"):
        assert np.isnan(getattr(own, name)).tolist() == [True, True, False]
    assert own.to_frame("pyarrow").num_rows == 3
    assert "expected absolute error 0.156" in repr(own)


def test_an_interval_without_an_end():
    from riskset.cohort.bias.empirical_null.regression import ErrorModel

    # The spread grows as fast as the mean, so the distance never reaches -1.96.
    model = ErrorModel(0.0, 1.0, 0.1, 1.0, 0.0)
    estimate, lower, upper = model.interval(0.2, 0.1, 0.95)
    assert_allclose(estimate, 0.2, atol=1e-10)
    assert np.isnan([lower, upper]).all()


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda c: c.Controls([1.0], [1.0, 2.0]), "BadControls"),
        (lambda c: c.Controls(["a"], [1.0]), "BadControls"),
        (lambda c: c.Controls([1.0], [1.0], outcome_id=[1, 2]), "BadControls"),
        (lambda c: c.calibrate([1.0], [1.0], [1.0]), "BadControls"),
        (lambda c: c.calibrate(controls(NEGATIVE), [1.0], [1.0, 2.0]), "BadEstimates"),
    ],
)
def test_messages(make, code):
    with pytest.raises(rs.CohortError, match="Hint: ") as caught:
        make(rs.cohort)
    assert caught.value.code == code
    with pytest.raises(rs.InputError, match="`method`"):
        found(NEGATIVE, method="mcmc")
