"""Fine and Gray's model with late entry against its definitions, built row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from estimators.finegray import TOL, fit
from estimators.late_entry import expanded, observed_before, problems, split
from riskset._runtime import Runtime
from riskset.infer.subdistribution import SubdistributionPieces
from riskset.model.censoring import CensoringDistribution
from riskset.model.finegray import FineGrayLoss
from storages import each_storage, given_stored

each_ties = pytest.mark.parametrize("ties", ["crr", "finegray"])


def loss_of(p, **options):
    outcome = p.outcome(p.stratum)
    return FineGrayLoss(outcome, CensoringDistribution.estimate(outcome, **options), Runtime(1))


@each_ties
@given(p=problems())
def test_it_is_weighted_cox_on_the_expanded_data(ties, p):
    model = fit(p.x, p.y, sample_weight=p.weight, censoring_ties=ties)
    row, start, stop, event, weight = expanded(p, ties)
    y = rs.Surv(stop, event, start)
    cox = rs.Cox(tol=TOL).fit(p.x[row], y, sample_weight=weight, cluster=row)
    assert_allclose(model.coef_, cox.coef_, rtol=1e-7, atol=1e-9)
    assert_allclose(model.log_likelihood_, cox.log_likelihood_, rtol=1e-11)
    assert_allclose(model.null_log_likelihood_, cox.null_log_likelihood_, rtol=1e-11)
    assert_allclose(model.variance_, cox.variance_, rtol=1e-7)
    assert_allclose(model.tests_.score.statistic, cox.tests_.score.statistic, rtol=1e-8)
    times = np.unique(stop)
    assert_allclose(
        model.predict_cumulative_incidence(p.x[:5], times),
        1 - cox.predict_survival_function(p.x[:5], times),
        atol=1e-9,
    )
    data = {"sample_weight": p.weight}
    one = model.test_proportionality(p.x, p.y, "identity", **data)
    other = cox.test_proportionality(p.x[row], y, "identity", sample_weight=weight)
    assert_allclose(one.statistic, other.statistic, rtol=1e-6, atol=1e-8)
    assert_allclose(one.global_statistic, other.global_statistic, rtol=1e-6)
    martingale = cox.residuals(p.x[row], y, sample_weight=weight) * weight
    want = np.bincount(row, martingale, p.time.size)
    assert_allclose(model.residuals(p.x, p.y, **data) * p.weight, want, atol=1e-8)
    score = cox.residuals(p.x[row], y, "score", sample_weight=weight) * weight[:, None]
    for j in range(2):
        got = model.residuals(p.x, p.y, "score", **data)[:, j] * p.weight
        assert_allclose(got, np.bincount(row, score[:, j], p.time.size), atol=1e-8)
    one = model.residuals(p.x, p.y, "schoenfeld", **data)
    other = cox.residuals(p.x[row], y, "schoenfeld", sample_weight=weight)
    assert_array_equal(one.row, row[other.row])
    assert_allclose(one.values, other.values, atol=1e-8)

    # With G and H as if they were known, the robust variance is that of the expanded data.
    own = observed_before(p, p.weight, p.time, ties)
    known = fit(p.x, p.y, sample_weight=p.weight, censoring_probability=own)
    assert_allclose(known.coef_, model.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(known.robust_variance_, cox.robust_variance_, rtol=1e-7)


@each_ties
@pytest.mark.parametrize("weights", ["case", "none"])
@given(p=problems(), stratified=st.booleans(), grouped=st.booleans())
def test_strata_and_groups(ties, weights, p, stratified, grouped):
    stratum, group = p.stratum if stratified else None, p.group if grouped else None
    model = fit(
        p.x, p.y, sample_weight=p.weight, strata=stratum, censoring_group=group,
        censoring_ties=ties, censoring_weights=weights,
    )  # fmt: skip
    in_g = p.weight if weights == "case" else np.ones(p.time.size)
    row, start, stop, event, weight = expanded(
        p, ties, weight_in_g=in_g, group=group, stratum=stratum
    )
    cox = rs.Cox(tol=TOL).fit(
        p.x[row], rs.Surv(stop, event, start), sample_weight=weight,
        strata=None if stratum is None else stratum[row],
    )  # fmt: skip
    if cox.status_ == model.status_ == "converged":
        assert_allclose(model.coef_, cox.coef_, rtol=1e-7, atol=1e-9)
    assert_allclose(model.log_likelihood_, cox.log_likelihood_, rtol=1e-10, atol=1e-10)
    assert_allclose(model.null_log_likelihood_, cox.null_log_likelihood_, rtol=1e-10, atol=1e-10)


@each_ties
@pytest.mark.parametrize("weights", ["case", "none"])
@given(p=problems(n=40), grouped=st.booleans())
def test_influence_by_five_points(ties, weights, p, grouped):
    """Derivatives of the score and of log hazards in a row's weight, and in that in G and H."""
    loss = loss_of(p, ties=ties, weights=weights, group=p.group if grouped else None)
    eta, case = 0.5 * p.rng.normal(size=40), p.weight
    in_g = case if weights == "case" else np.ones(40)
    pieces = SubdistributionPieces.at(loss, eta)
    used = loss.risk.group_events > 0
    counted = np.where(used, p.rng.random(used.size), 0.0)[:, None]
    got = np.hstack([pieces.contributions(p.x), pieces.hazard_influence(counted)])
    counting = loss.counting_draws()

    def score(w, v):
        now = counting.replicate(w, v).evaluate(eta)
        return np.append(now.residual @ p.x, counted[used, 0] @ now.log_hazard[used])

    assert_allclose(got[:, :2].sum(axis=0), score(case, in_g)[:2], atol=1e-8)
    step = 1e-3
    for i in range(0, 40, 3):
        e = np.zeros(40)
        e[i] = step
        want = np.zeros(3)
        for by_case, by_g in ((case, in_g * 0), (case * 0, in_g)):
            f = [score(case + k * e * by_case, in_g + k * e * by_g) for k in (-2, -1, 1, 2)]
            want += (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step)
        assert_allclose(got[i], want, atol=1e-7)


@given(p=problems())
def test_gradient_by_five_points(p):
    loss = loss_of(p, group=p.group)
    eta, step = p.rng.normal(size=60), 1e-3
    residual = loss.evaluate(eta).residual
    for i in range(0, 60, 7):
        e = np.zeros(60)
        e[i] = step
        f = [loss.evaluate(eta + k * e).log_likelihood for k in (-2, -1, 1, 2)]
        want = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step)
        assert_allclose(residual[i], want, atol=1e-8)


def test_the_product_of_both_is_the_share_at_risk_over_survival(rng):
    """Geskus (2011): without ties G(t-) H(t-) is proportional to Y(t) / S(t-), S of all events."""
    n = 300
    entry, latent = 0.5 * rng.exponential(size=n), rng.exponential(size=n)
    seen = latent > entry
    entry, latent = entry[seen], latent[seen]
    entry[0], latent[0] = 0.0, 9.0
    censored = entry + rng.exponential(size=entry.size)
    time = np.minimum(latent, censored)
    event = np.where(latent <= censored, rng.integers(1, 3, entry.size), 0)
    order = np.argsort(time)
    times, survival, want = time[order], 1.0, []
    for i in order:
        at_risk = np.count_nonzero((entry < time[i]) & (time[i] <= time))
        want.append(at_risk / survival)
        survival *= 1 - (event[i] > 0) / at_risk
    outcome = rs.Outcome.build(time, event, entry=entry, cause=1)
    own = CensoringDistribution.estimate(outcome).own[order]
    ratio = np.array(want) / own
    inside = times < time[event > 0].max()
    assert_allclose(ratio[inside], ratio[0], rtol=1e-10)


@given_stored(p=problems(weighted=True), ties=st.sampled_from(["crr", "finegray"]))
def test_weight_two_is_the_row_twice_in_both(store, p, ties):
    rows = np.repeat(np.arange(60), p.weight.astype(int))
    one = fit(
        store(p.x), p.y, sample_weight=p.weight, censoring_ties=ties, cluster=np.arange(60),
        person="row",
    )  # fmt: skip
    two = fit(store(p.x[rows]), p.y[rows], censoring_ties=ties, cluster=rows, person="row")
    assert_allclose(one.coef_, two.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(one.log_likelihood_, two.log_likelihood_, rtol=1e-12)
    assert_allclose(one.variance_, two.variance_, rtol=1e-7)
    assert_allclose(one.robust_variance_, two.robust_variance_, rtol=1e-7)


@given_stored(p=problems())
def test_weight_zero_is_the_row_gone(store, p):
    weight = p.weight * (p.rng.random(60) < 0.8)
    weight[:10] = 1
    kept = weight > 0
    one = fit(store(p.x), p.y, sample_weight=weight)
    two = fit(store(p.x[kept]), p.y[kept], sample_weight=weight[kept])
    assert_allclose(one.coef_, two.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(one.log_likelihood_, two.log_likelihood_, rtol=1e-12)
    assert_allclose(one.robust_variance_, two.robust_variance_, rtol=1e-7)


@given_stored(p=problems())
def test_any_order_of_rows_and_any_monotone_time(store, p):
    def made(rows, change):
        y = rs.Surv(change(p.time[rows]), p.event[rows], change(p.entry[rows]))
        return fit(
            store(p.x[rows]), y, sample_weight=p.weight[rows], strata=p.stratum[rows],
            censoring_group=p.group[rows],
        )  # fmt: skip

    model = made(np.arange(60), lambda t: t)
    other = made(p.rng.permutation(60), lambda t: np.log(t + 2))
    assert model.status_ == other.status_
    assert_allclose(model.coef_, other.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(model.log_likelihood_, other.log_likelihood_, rtol=1e-12)
    assert_allclose(model.robust_variance_, other.robust_variance_, rtol=1e-7)


@given_stored(p=problems(), ties=st.sampled_from(["crr", "finegray"]))
def test_intervals_of_people_are_their_rows(store, p, ties):
    """Rows that are cut in pieces, in any order, of clusters that are people."""
    entry, time, event, row = split(p, p.rng)
    y = rs.Surv(time, event, entry)
    whole = fit(
        store(p.x), p.y, sample_weight=p.weight, cluster=np.arange(60), censoring_ties=ties,
        person="cluster",
    )  # fmt: skip
    pieces = fit(
        store(p.x[row]), y, sample_weight=p.weight[row], cluster=row, censoring_ties=ties,
        person="cluster",
    )  # fmt: skip
    assert_allclose(pieces.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(pieces.log_likelihood_, whole.log_likelihood_, rtol=1e-11)
    assert_allclose(pieces.variance_, whole.variance_, rtol=1e-7)
    assert_allclose(pieces.robust_variance_, whole.robust_variance_, rtol=1e-6)


@given_stored(p=problems())
def test_without_competing_events_it_is_cox(store, p):
    y = rs.Surv(p.time, p.event == 1, p.entry)
    data = {"sample_weight": p.weight, "strata": p.stratum}
    model, cox = fit(store(p.x), y, **data), rs.Cox(tol=TOL)
    cox.fit(store(p.x), y, **data)
    assert model.status_ == cox.status_
    assert_allclose(model.coef_, cox.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(model.log_likelihood_, cox.log_likelihood_, rtol=1e-13)
    assert_allclose(model.robust_variance_, cox.robust_variance_, rtol=1e-7)
    assert model.score(store(p.x), y) == cox.score(store(p.x), y)


@each_storage
def test_same_bits_for_any_number_of_threads(store, rng):
    n = 20_000
    x, entry = rng.normal(size=(n, 3)), np.floor(5 * rng.exponential(size=n))
    time = entry + np.ceil(10 * rng.exponential(np.exp(-0.7 * x[:, 0])))
    y = rs.Surv(time, rng.choice(3, size=n, p=[0.3, 0.4, 0.3]), entry)
    models = [fit(store(x), y, n_threads=k, cause=2) for k in (1, 2, 3)]
    for model in models[1:]:
        assert_array_equal(model.coef_, models[0].coef_)
        assert model.log_likelihood_ == models[0].log_likelihood_
        assert_array_equal(model.robust_variance_, models[0].robust_variance_)
