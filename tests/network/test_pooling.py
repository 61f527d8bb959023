"""Pooled estimates against R, closed forms and independent integration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import dblquad, quad
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.stats import chi2, norm

import riskset as rs
from network.simulated import N_SITES, of_site, people, profile, profile_of_r
from riskset.network import Site, SiteLikelihood
from riskset.network.bias import corrected, site_bias
from riskset.network.fixed_effect import fixed_effect
from riskset.network.normal_pooling import heterogeneity_of, pooled_normal
from riskset.network.random_effects import effect_distribution
from riskset.network.synthesis import likelihood_ratio

# coxph(Surv(time, event) ~ x + strata(site), ties = "breslow") of survival 3.5-3 on all people, and
# its profile-likelihood interval; inverse variance of the fits of the three sites that have one.
POOLED = (-0.961406942, -1.618872843, -0.375055955)
INVERSE_VARIANCE = (-0.196952009, 0.348288219)

B = np.array([0.2, -0.1, 0.4, 0.3, 0.05])
SE = np.array([0.1, 0.2, 0.15, 0.3, 0.05])


def curves():
    return [profile(k) for k in range(1, N_SITES + 1)]


def test_the_sum_of_profiles_is_the_pooled_fit_of_all_people():
    found = fixed_effect(curves())
    assert_allclose([found.log_hr, found.lower, found.upper], POOLED, atol=2e-4)


def test_with_profiles_of_nine_points_too():
    found = fixed_effect([profile_of_r(k) for k in range(1, N_SITES + 1)])
    assert_allclose([found.log_hr, found.lower, found.upper], POOLED, atol=2e-3)


def test_inverse_variance_is_wrong_where_cells_are_zero():
    """Sites 1 and 4 have 16 and 7 outcomes, all of them in the comparator group."""
    network = rs.network.meta({f"site {k}": Site.of_profile("", profile(k)) for k in range(1, 6)})
    (row,) = network.rows("pooled", method="inverse variance")
    assert row["n_sites"] == 3
    assert row["sites_left_out"] == "site 1;site 4"
    assert_allclose([row["log_hr"], row["se"]], INVERSE_VARIANCE, atol=2e-3)
    (fixed,) = network.rows("pooled", method="fixed", left_out=None)
    assert fixed["n_sites"] == 5
    assert row["hr"] > 0.8 > 0.4 > fixed["hr"]
    assert fixed["hr_upper"] < 0.7 < row["hr"]


def test_the_pooled_fit_of_riskset_agrees():
    data = people()
    model = rs.Cox().fit(
        data["x"][:, None], rs.Surv(data["time"], data["event"].astype(int)), strata=data["site"]
    )
    assert_allclose(model.coef_[0], POOLED[0], atol=1e-8)


def test_of_normal_curves_the_sum_is_inverse_variance():
    found = fixed_effect([SiteLikelihood.normal(b, s) for b, s in zip(B, SE, strict=True)])
    w = 1 / SE**2
    assert_allclose([found.log_hr, found.se], [w @ B / w.sum(), w.sum() ** -0.5], rtol=1e-9)
    assert_allclose(found.p, 2 * norm.sf(found.log_hr / found.se), rtol=1e-7)


def test_all_sites_without_outcomes_in_an_arm_give_an_interval_with_one_end():
    found = fixed_effect([profile(1), profile(4)])
    assert found.log_hr == found.lower == -np.inf
    assert found.upper < 0.5
    # By hand: the sum has fallen by 1.92 from its supremum, which the shared ratio gives.
    given = [
        SiteLikelihood(c.points, c.values, c.derivatives, float(c(0.0)) + extra)
        for c, extra in ((profile(1), 8.0), (profile(4), 4.0))
    ]
    found = fixed_effect(given)
    fallen = sum(c.top - float(c(found.upper)) for c in given)
    assert_allclose(fallen, 3.841458820694124 / 2, atol=1e-8)


def test_without_a_shared_ratio_the_supremum_is_found_from_the_end_of_the_profile():
    """The interval by hand: 16 log(1 + e^x) has risen by 1.92 from 0, its limit."""
    x = np.linspace(-2.3, 2.3, 24)
    one = SiteLikelihood(x, -8 * np.log1p(np.exp(x)), -8 / (1 + np.exp(-x)))
    exact = np.log(np.expm1(3.841458820694124 / 2 / 16))
    found = fixed_effect([one, one])
    assert exact <= found.upper < exact + 0.05  # the slope at the end is a bound
    exact_p = chi2.sf(2 * 16 * np.log(2), 1)
    assert exact_p <= found.p < 1.3 * exact_p


def test_likelihoods_that_say_nothing_have_no_estimate():
    x = np.linspace(-2.3, 2.3, 24)
    found = fixed_effect([SiteLikelihood(x, np.full(24, 3.0), np.zeros(24))] * 2)
    assert np.isnan(found.log_hr)
    assert (found.lower, found.upper, found.p) == (-np.inf, np.inf, 1.0)


def closed_form(b, se, prior=(2.0, 0.5), n=20001):
    """Posterior of mu and tau of normal estimates: mu is integrated by hand, tau over a grid."""
    high = min(8 * prior[1], 8 * (np.ptp(b) + np.max(se)))  # nothing of the posterior lies beyond
    tau = np.linspace(0, high, n)
    v = se**2 + tau[:, None] ** 2
    precision = (1 / v).sum(axis=1) + 1 / prior[0] ** 2
    mean = (b / v).sum(axis=1) / precision
    away = (b**2 / v).sum(axis=1) - precision * mean**2
    log_w = -0.5 * (tau / prior[1]) ** 2 - 0.5 * (np.log(v).sum(axis=1) + np.log(precision) + away)
    w = np.exp(log_w - log_w.max())
    w[[0, -1]] /= 2
    return tau, w / w.sum(), mean, 1 / np.sqrt(precision)


@pytest.mark.parametrize(
    ("b", "se"),
    [
        (B, SE),
        (np.array([-1.0, 1.0, 0.2]), np.array([0.02, 0.02, 0.01])),
        (np.full(20, 0.1), np.full(20, 0.01)),
        (np.array([0.5, -0.7]), np.array([1.5, 2.5])),
    ],
    ids=["usual", "conflict", "equal", "vague"],
)
def test_random_effects_of_normal_curves(b, se):
    found = effect_distribution([SiteLikelihood.normal(*one) for one in zip(b, se, strict=True)])
    tau, w, mean, sd = closed_form(b, se)
    centre = w @ mean
    assert_allclose(found.mean, centre, atol=2e-6)
    assert_allclose(found.sd, np.sqrt(w @ (sd**2 + mean**2) - centre**2), rtol=1e-5)
    assert_allclose(found.mean_tau, w @ tau, rtol=2e-4)
    for share in (0.025, 0.5, 0.975):
        at = found.mu_quantile(share)
        assert_allclose(w @ norm.cdf((at - mean) / sd), share, atol=1e-5)
        at = found.predicted_quantile(share)
        assert_allclose(w @ norm.cdf((at - mean) / np.hypot(sd, tau)), share, atol=1e-5)
        at = found.tau_quantile(share)
        assert_allclose(w[tau <= at].sum(), share, atol=2e-3)


def test_random_effects_of_profiles_by_scipy():
    """The same integral by adaptive quadrature, two sites, one without outcomes in an arm."""
    two = [profile(1), profile(2)]
    shift = [one.top for one in two]

    def marginal(one, top, mu, tau):
        return quad(
            lambda z: np.exp(one(mu + tau * z) - top - 0.5 * z**2), -9, 9, limit=200, epsrel=1e-7
        )[0]

    def density(mu, tau):
        log_prior = -0.5 * (mu / 2) ** 2 - 0.5 * (tau / 0.5) ** 2
        both = [marginal(one, top, mu, tau) for one, top in zip(two, shift, strict=True)]
        return np.exp(log_prior) * both[0] * both[1]

    options = {"epsrel": 2e-3, "epsabs": 0.0}
    total = dblquad(density, 0, 2.5, -6, 3, **options)[0]
    mean = dblquad(lambda mu, tau: mu * density(mu, tau), 0, 2.5, -6, 3, **options)[0] / total
    found = effect_distribution(two)
    assert_allclose(found.mean, mean, atol=3e-3)


def test_random_effects_of_profiles_without_derivatives():
    """Independent: convolutions of the linear curves on a grid of 0.001, tau on 400 points."""
    x = np.linspace(-2.3, 2.3, 10)
    line = SiteLikelihood(x, -0.5 * ((x - 0.3) / 0.4) ** 2)
    curves_of_sites = [line, line, SiteLikelihood.normal(0.0, 0.2)]
    theta = np.linspace(-6, 6, 12001)
    step = theta[1] - theta[0]
    nodes, weights = np.polynomial.legendre.leggauss(400)
    masses = [np.exp(one(theta) - one.top) for one in curves_of_sites]
    posterior = np.zeros(theta.size)
    for tau, weight in zip(1.25 * (nodes + 1), weights, strict=True):
        density = np.exp(-0.5 * (theta / 2) ** 2 - 0.5 * (tau / 0.5) ** 2)
        half = int(min(8 * tau, 5.9) / step) + 1
        kernel = np.exp(-0.5 * (step * np.arange(-half, half + 1) / tau) ** 2)
        for mass in masses:
            density = density * fftconvolve(mass, kernel / kernel.sum(), mode="same")
        posterior += weight * density
    below = np.cumsum(posterior) / posterior.sum()
    found = effect_distribution(curves_of_sites)
    for share in (0.025, 0.5, 0.975):
        at = np.interp(share, below, theta + step / 2)
        assert_allclose(found.mu_quantile(share), at, atol=3e-5)


def test_the_same_result_in_every_run():
    first, second = (effect_distribution(curves()) for _ in range(2))
    assert first.mu_quantile(0.025) == second.mu_quantile(0.025)


def test_normal_approximations_as_metafor():
    """The trials of the BCG vaccine of Colditz et al. (1994).

    The numbers are those of Viechtbauer (2010), Journal of Statistical Software 36(3),
    doi:10.18637/jss.v036.i03, page 13 and following, and of `rma` with method = "DL".
    """
    cases = np.array([4, 6, 3, 62, 33, 180, 8, 505, 29, 17, 186, 5, 27])
    others = np.array([
        119, 300, 228, 13536, 5036, 1361, 2537, 87886, 7470, 1699, 50448, 2493, 16886,
    ])  # fmt: skip
    cases_0 = np.array([11, 29, 11, 248, 47, 372, 10, 499, 45, 65, 141, 3, 29])
    others_0 = np.array([
        128, 274, 209, 12619, 5761, 1079, 619, 87892, 7232, 1600, 27197, 2338, 17825,
    ])  # fmt: skip
    n, n_0 = cases + others, cases_0 + others_0
    b = np.log(cases / n) - np.log(cases_0 / n_0)
    se = np.sqrt(1 / cases - 1 / n + 1 / cases_0 - 1 / n_0)
    found = heterogeneity_of(b, se)
    assert_allclose(found.q, 152.2330, atol=5e-5)
    assert found.df == 12
    assert_allclose(found.tau_reml**2, 0.3132, atol=5e-5)
    assert_allclose(found.tau_dl**2, 0.3088, atol=5e-5)
    assert_allclose(found.i2, 0.9212, atol=5e-5)
    reml = pooled_normal(b, se, found.tau_reml)
    assert_allclose(
        [reml.log_hr, reml.se, reml.lower, reml.upper], [-0.7145, 0.1798, -1.0669, -0.3622],
        atol=5e-5,
    )  # fmt: skip


def test_reml_and_hartung_knapp_as_optimize_of_r():
    """`optimize` of R 4.2 on the restricted likelihood, with t quantiles."""
    found = heterogeneity_of(B, SE)
    assert_allclose(found.tau_reml, 0.11273191, atol=1e-6)
    pooled = pooled_normal(B, SE, found.tau_reml, hartung_knapp=True)
    expected = [0.14667153, 0.07687875, -0.06677809, 0.36012115]
    assert_allclose([pooled.log_hr, pooled.se, pooled.lower, pooled.upper], expected, atol=1e-6)


def test_one_site_has_no_heterogeneity():
    found = heterogeneity_of(B[:1], SE[:1])
    assert np.isnan([found.q, found.i2, found.tau_reml]).all()
    assert np.isnan(pooled_normal(B[:1], SE[:1], hartung_knapp=True).se)


CONTROLS = (np.array([0.3, 0.1, 0.4, -0.1, 0.2, 0.35, 0.05]), np.full(7, 0.12))


def bias_of(b, se):
    return site_bias([SiteLikelihood.normal(*one) for one in zip(b, se, strict=True)])


def test_the_corrected_profile_is_the_convolution_with_the_predicted_error():
    """Of normal curves: a mixture of normal distributions, whose parts are known by hand."""
    curve = corrected(SiteLikelihood.normal(0.6, 0.1), bias_of(*CONTROLS))
    tau, w, mean, sd = closed_form(*CONTROLS)

    def density(theta):
        return w @ norm.pdf(theta, 0.6 - mean, np.sqrt(0.1**2 + sd**2 + tau**2))

    at = np.linspace(-0.6, 1.4, 9)
    expected = np.log([density(x) for x in at])
    assert_allclose(curve(at) - curve(0.4), expected - np.log(density(0.4)), atol=2e-4)


def test_correction_moves_and_widens_the_interval():
    bias = bias_of(*CONTROLS)
    found = fixed_effect([corrected(SiteLikelihood.normal(0.6, 0.1), bias)])
    assert_allclose(found.log_hr, 0.6 - bias.mean, atol=0.01)
    plain = fixed_effect([SiteLikelihood.normal(0.6, 0.1)])
    assert found.upper - found.lower > 1.5 * (plain.upper - plain.lower)


def test_few_controls_give_no_correction():
    assert bias_of(CONTROLS[0][:4], CONTROLS[1][:4]) is None


def test_precise_controls_without_error_change_little():
    curve = corrected(SiteLikelihood.normal(0.5, 0.2), bias_of(np.zeros(60), np.full(60, 0.001)))
    found = fixed_effect([curve])
    assert_allclose([found.log_hr, found.se], [0.5, 0.2], atol=2e-3)


def test_the_likelihood_ratio_of_heterogeneity_is_q_of_normal_curves():
    sites = {str(k): Site.of_profile("", SiteLikelihood.normal(B[k], SE[k])) for k in range(5)}
    (row,) = rs.network.meta(sites).rows("heterogeneity")
    assert_allclose(row["ratio"], heterogeneity_of(B, SE).q, atol=1e-3)


def test_the_likelihood_ratio_counts_sites_that_share_no_ratio():
    """One site says 0, the other 3, and their curves meet nowhere near: Q = 9 / (2 * 0.05^2)."""
    apart = [SiteLikelihood.normal(b, 0.05) for b in (0.0, 3.0)]
    assert_allclose(likelihood_ratio(apart), 1800.0, rtol=1e-6)


def test_leaving_a_site_out_is_pooling_the_others():
    names = [f"site {k}" for k in range(1, 6)]
    sites = [Site.of_profile(name, profile(k)) for k, name in enumerate(names, 1)]
    all_rows = rs.network.meta(sites).rows("pooled", left_out="site 2", method="random")
    others = rs.network.meta([s for s in sites if s.name != "site 2"])
    expected = others.rows("pooled", left_out=None, method="random")
    assert [r["hr"] for r in all_rows] == [r["hr"] for r in expected]


def test_events_are_where_the_tests_say():
    assert [of_site(k)[1]["event"].sum() for k in (1, 4)] == [16, 7]
    assert brentq(lambda b: profile(2).derivative(b), -1, 1) == pytest.approx(-0.0935344, abs=1e-3)
