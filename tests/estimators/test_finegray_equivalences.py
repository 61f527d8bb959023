"""Fine and Gray's model: what it must equal, and what it must not change by, in every storage."""

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import riskset as rs
from estimators.finegray import TOL, fit, problems, simulated
from riskset._runtime import Runtime
from riskset.model.censoring import CensoringDistribution
from riskset.model.finegray import FineGrayLoss
from storages import each_storage, given_stored


@given_stored(p=problems(), stratified=st.booleans())
def test_without_competing_events_it_is_cox(store, p, stratified):
    x, y = store(p.x), rs.Surv(p.time, p.event == 1)
    data = {"sample_weight": p.weight, "strata": p.stratum if stratified else None}
    model, cox = fit(x, y, **data), rs.Cox(tol=TOL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cox.fit(x, y, **data)
    assert model.status_ == cox.status_
    assert_allclose(model.coef_, cox.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(model.log_likelihood_, cox.log_likelihood_, rtol=1e-13)
    assert_allclose(model.variance_, cox.variance_, rtol=1e-8)
    assert_allclose(model.robust_variance_, cox.robust_variance_, rtol=1e-7)
    times = np.unique(p.time)
    strata = None if not stratified else p.stratum
    assert_allclose(
        model.predict_cumulative_incidence(x, times, strata=strata),
        1 - cox.predict_survival_function(x, times, strata=strata),
        atol=1e-12,
    )
    for kind in ("martingale", "deviance", "score"):
        one, other = (m.residuals(x, y, kind, **data) for m in (model, cox))
        assert_allclose(one, other, atol=1e-8)
    one, other = (m.test_proportionality(x, y, **data) for m in (model, cox))
    assert_allclose(one.statistic, other.statistic, rtol=1e-6, atol=1e-9)
    assert model.score(x, y) == cox.score(x, y)


@given_stored(p=problems(weighted=True), ties=st.sampled_from(["crr", "finegray"]))
def test_weight_two_is_the_row_twice_in_g_too(store, p, ties):
    rows = np.repeat(np.arange(p.time.size), p.weight.astype(int))
    one = fit(store(p.x), p.y, sample_weight=p.weight, censoring_ties=ties, cluster=np.arange(60))
    two = fit(store(p.x[rows]), p.y[rows], censoring_ties=ties, cluster=rows)
    assert_allclose(one.coef_, two.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(one.log_likelihood_, two.log_likelihood_, rtol=1e-12)
    assert_allclose(one.variance_, two.variance_, rtol=1e-7)
    assert_allclose(one.robust_variance_, two.robust_variance_, rtol=1e-7)


@given_stored(p=problems())
def test_weight_zero_is_the_row_gone(store, p):
    weight = p.weight * (p.rng.random(60) < 0.8)
    weight[:6] = 1
    kept = weight > 0
    one = fit(store(p.x), p.y, sample_weight=weight)
    two = fit(store(p.x[kept]), p.y[kept], sample_weight=weight[kept])
    assert_allclose(one.coef_, two.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(one.log_likelihood_, two.log_likelihood_, rtol=1e-12)
    assert_allclose(one.robust_variance_, two.robust_variance_, rtol=1e-7)


@given_stored(p=problems())
def test_any_order_of_rows_and_any_monotone_time(store, p):
    model = fit(store(p.x), p.y, sample_weight=p.weight, strata=p.stratum, censoring_group=p.group)
    order = p.rng.permutation(60)
    other = fit(
        store(p.x[order]),
        rs.Surv(np.log1p(p.time[order]), p.event[order]),
        sample_weight=p.weight[order],
        strata=p.stratum[order],
        censoring_group=p.group[order],
    )
    assert_allclose(model.coef_, other.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(model.log_likelihood_, other.log_likelihood_, rtol=1e-12)
    assert_allclose(model.robust_variance_, other.robust_variance_, rtol=1e-7)
    times = np.arange(1.0, 12.0)
    assert_allclose(
        model.predict_cumulative_incidence(store(p.x[order]), times, strata=p.stratum[order]),
        other.predict_cumulative_incidence(
            store(p.x[order]), np.log1p(times), strata=p.stratum[order]
        ),
        rtol=1e-8,
        atol=1e-12,
    )


@given(p=problems())
def test_strata_add_up(p):
    """Risk sets within strata, G of all rows; with G by stratum, each stratum by itself."""
    outcome = p.outcome(stratum=p.stratum)
    eta = p.rng.normal(size=60)
    groups = [np.flatnonzero(p.stratum == s) for s in range(3)]
    groups = [rows for rows in groups if (p.event[rows] == 1).any()]

    pooled = CensoringDistribution.estimate(outcome)
    whole = FineGrayLoss(outcome, pooled, Runtime(1)).evaluate(eta)
    by_stratum = FineGrayLoss(
        outcome, CensoringDistribution.estimate(outcome, group=p.stratum), Runtime(1)
    ).evaluate(eta)
    total = alone = 0.0
    for rows in groups:
        part = p.outcome(rows)
        given_g = FineGrayLoss(
            part, CensoringDistribution.given(part, pooled.own[rows]), Runtime(1)
        )
        total += given_g.evaluate(eta[rows]).log_likelihood
        assert_allclose(given_g.evaluate(eta[rows]).residual, whole.residual[rows], atol=1e-12)
        own_g = FineGrayLoss(part, CensoringDistribution.estimate(part), Runtime(1)).evaluate(
            eta[rows]
        )
        alone += own_g.log_likelihood
        assert_allclose(own_g.residual, by_stratum.residual[rows], atol=1e-12)
    assert_allclose(whole.log_likelihood, total, rtol=1e-12)
    assert_allclose(by_stratum.log_likelihood, alone, rtol=1e-12)


@each_storage
def test_same_bits_for_any_number_of_threads(store, rng):
    x, y = simulated(rng, 20_000)
    group = rng.integers(0, 3, len(y))
    models = [fit(store(x), y, n_threads=k, censoring_group=group) for k in (1, 2, 3)]
    for model in models[1:]:
        assert_array_equal(model.coef_, models[0].coef_)
        assert model.log_likelihood_ == models[0].log_likelihood_
        assert_array_equal(model.robust_variance_, models[0].robust_variance_)
