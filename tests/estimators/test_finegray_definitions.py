"""Fine and Gray's model against its definitions.

The expanded data set of survival's `finegray` and the robust variance of cmprsk's `crr` are built
here row by row.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from estimators.finegray import TOL, expanded, fit, problems, simulated, survival_before
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.infer import residuals
from riskset.model.baseline import Baseline
from riskset.model.censoring import CensoringDistribution
from riskset.model.finegray import FineGrayLoss


@pytest.mark.parametrize("ties", ["crr", "finegray"])
@given(p=problems())
def test_it_is_weighted_cox_on_the_expanded_data(ties, p):
    model = fit(p.x, p.y, sample_weight=p.weight, censoring_ties=ties)
    row, entry, stop, event, weight = expanded(p, ties)
    y = rs.Surv(stop, event, np.where(entry == 0, -1.0, entry))
    cox = rs.Cox(tol=TOL).fit(p.x[row], y, sample_weight=weight, cluster=row)
    assert_allclose(model.coef_, cox.coef_, rtol=1e-7, atol=1e-9)
    assert_allclose(model.log_likelihood_, cox.log_likelihood_, rtol=1e-12)
    assert_allclose(model.null_log_likelihood_, cox.null_log_likelihood_, rtol=1e-12)
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

    # With G as if it were known, the robust variance is that of the expanded data by subject.
    own = survival_before(p.time, p.event, p.weight, p.time, ties)
    known = fit(p.x, p.y, sample_weight=p.weight, censoring_probability=own)
    assert_allclose(known.coef_, model.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(known.robust_variance_, cox.robust_variance_, rtol=1e-7)


def influence(p, x, eta, ties, weight_in_g, stratum, group):
    """Each row's influence on the score with G estimated, by the double sums of crr."""
    n, kinds = p.time.size, np.unique(group)
    r = p.weight * np.exp(eta)
    own = np.ones(n)
    for k in kinds:
        of = group == k
        own[of] = survival_before(p.time[of], p.event[of], weight_in_g[of], p.time[of], ties)
    out, terms = np.zeros_like(x), []
    for s in np.unique(stratum):
        for t in np.unique(p.time[(p.event == 1) & (stratum == s)]):
            at = np.ones(n)
            for k in kinds:
                of = group == k
                at[of] = survival_before(p.time[of], p.event[of], weight_in_g[of], [t], ties)
                at[of] *= t <= p.time[of].max() or kinds.size == 1
            late = (p.time < t) & (p.event == 2)
            share = np.where(p.time >= t, 1.0, np.where(late, at / own, 0.0)) * r * (stratum == s)
            mean = share @ x / share.sum()
            is_event = (p.time == t) & (p.event == 1) & (stratum == s)
            change = share * p.weight[is_event].sum() / share.sum()
            out += ((is_event * p.weight) - change)[:, None] * (x - mean)
            terms.append((t, mean, change))
    for k in kinds:
        for u in np.unique(p.time[(p.event == 0) & (group == k)]):
            q = np.zeros(x.shape[1])
            before = np.flatnonzero((p.time < u) & (p.event == 2) & (group == k))
            for t, mean, change in terms:
                q += (t >= u) * (change[before] @ (x[before] - mean))
            at_risk = (p.time >= u) & (group == k)
            if ties == "finegray":
                at_risk &= ~((p.time == u) & (p.event != 0))
            total = weight_in_g[at_risk].sum()
            censored = (p.time == u) & (p.event == 0) & (group == k)
            drift = weight_in_g[censored].sum() / total
            out += (weight_in_g * (censored - at_risk * drift))[:, None] * q / total
    return out


@pytest.mark.parametrize("ties", ["crr", "finegray"])
@pytest.mark.parametrize("weights", ["case", "none"])
@given(p=problems(n=40), stratified=st.booleans(), grouped=st.booleans())
def test_robust_variance_by_double_sums(ties, weights, p, stratified, grouped):
    parameters = {"censoring_ties": ties, "censoring_weights": weights}
    none = np.zeros(p.time.size, dtype=int)
    stratum, group = p.stratum if stratified else none, p.group if grouped else none
    data = {"sample_weight": p.weight, "strata": stratum, "censoring_group": group}
    model = fit(p.x, p.y, **data, **parameters)
    if model.status_ != "converged":
        return
    in_g = p.weight if weights == "case" else np.ones(p.time.size)
    rows = influence(p, p.x, p.x @ model.coef_, ties, in_g, stratum, group)
    assert_allclose(rows.sum(axis=0), 0, atol=1e-7)
    bread = model.variance_
    want = bread @ rows.T @ rows @ bread
    assert_allclose(model.robust_variance_, want, rtol=1e-6, atol=1e-9 * want.max())
    label = p.rng.integers(0, 9, p.time.size)
    sums = np.array([rows[label == k].sum(axis=0) for k in np.unique(label)])
    clustered = fit(p.x, p.y, cluster=label, **data, **parameters)
    want = bread @ sums.T @ sums @ bread
    assert_allclose(clustered.robust_variance_, want, rtol=1e-6, atol=1e-9 * want.max())


@given(p=problems())
def test_gradient_by_five_points(p):
    outcome = p.outcome(stratum=p.stratum)
    loss = FineGrayLoss(outcome, CensoringDistribution.estimate(outcome, group=p.group), Runtime(1))
    eta, step = p.rng.normal(size=60), 1e-3
    residual = loss.evaluate(eta).residual
    for i in range(0, 60, 7):
        e = np.zeros(60)
        e[i] = step
        f = [loss.evaluate(eta + k * e).log_likelihood for k in (-2, -1, 1, 2)]
        want = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step)
        assert_allclose(residual[i], want, atol=1e-8)


# ------------------------------------------------------------------ more than one exponent can hold

LONG = np.longdouble
long_exponents = pytest.mark.skipif(
    np.finfo(LONG).maxexp < 10_000, reason="no long double with exponents beyond exp(2000)"
)


def by_risk_sets(p, eta):
    """Mean, information and hazard at each event time, and expected events of each row."""
    x, own = p.x.astype(LONG), survival_before(p.time, p.event, p.weight, p.time, "crr")
    risk, expected = np.exp(eta), np.zeros(p.time.size, dtype=LONG)
    means, information, hazards = {}, np.zeros((2, 2), dtype=LONG), {}
    for t in np.unique(p.time[p.event == 1]):
        at = survival_before(p.time, p.event, p.weight, [t], "crr")
        late = (p.time < t) & (p.event == 2)
        share = np.where(p.time >= t, 1.0, np.where(late, at / own, 0.0)) * risk
        total, n = p.weight @ share, p.weight[(p.time == t) & (p.event == 1)].sum()
        means[t], hazards[t] = (p.weight * share) @ x / total, n / total
        expected += share * hazards[t]
        d = x - means[t]
        information += n * (d.T @ ((p.weight * share / total)[:, None] * d))
    return means, information, hazards, expected


@long_exponents
@pytest.mark.parametrize("kind", ["first row far above", "any", "rising", "falling"])
@given(p=problems(n=30))
def test_a_wide_range_of_linear_predictors(kind, p):
    """Residuals, variances and incidence against sums in long double."""
    n, order = p.time.size, np.argsort(np.argsort(p.time))
    offset = {
        "first row far above": np.where(order == 0, 2000.0, 0.0),
        "any": p.rng.uniform(0, 2000, n),
        "rising": 2000.0 / n * order,
        "falling": -2000.0 / n * order,
    }[kind]
    outcome = p.outcome()
    loss = FineGrayLoss(outcome, CensoringDistribution.estimate(outcome), Runtime(1))
    eta = p.x @ [0.5, -1.0] + offset
    means, information, hazards, expected = by_risk_sets(p, eta.astype(LONG))
    design, rows = Design.from_dense(p.x), np.flatnonzero(p.event == 1)
    scale = design.scale

    martingale = residuals.martingale_residuals(loss, eta)
    assert_allclose(martingale, ((p.event == 1) - expected).astype(float), rtol=1e-9, atol=1e-10)
    schoenfeld = residuals.schoenfeld_residuals(loss, design, eta)
    want = {i: (p.x[i] - means[p.time[i]]).astype(float) for i in rows}
    assert set(schoenfeld.row.tolist()) == set(want)
    assert_allclose(schoenfeld.values, [want[i] for i in schoenfeld.row], atol=1e-10)
    none = np.zeros(n, dtype=int)
    wide = influence(p, p.x.astype(LONG), eta.astype(LONG), "crr", p.weight, none, none)
    got = residuals.score_contributions(loss, design, eta)
    assert_allclose(got, wide.astype(float), atol=1e-9)
    got = loss.information(design, eta, np.arange(2)) * np.outer(scale, scale)
    assert_allclose(got, information.astype(float), atol=1e-9)
    baseline = Baseline.fit(loss, eta)
    cumulative = np.log(np.cumsum(np.array(list(hazards.values()))))
    assert_allclose(baseline.log_cumulative - baseline.center, cumulative.astype(float), atol=1e-9)


@long_exponents
def test_one_early_row_of_enormous_risk_changes_no_variance(rng):
    """It leaves before anybody else, censored: the answer is that without it."""
    x, y = simulated(rng, 200)
    y["time"][0], y["event"][0] = 0.5, 0
    offset = np.zeros(200)
    offset[0] = 2000.0
    model = rs.FineGray(tol=TOL).fit(x, y, offset=offset)
    alone = rs.FineGray(tol=TOL).fit(x[1:], y[1:])
    assert_allclose(model.coef_, alone.coef_, rtol=1e-8)
    assert_allclose(model.standard_error_, alone.standard_error_, rtol=1e-8)
    assert_allclose(model.robust_standard_error_, alone.robust_standard_error_, rtol=1e-8)
    for kind in ("martingale", "score"):
        got = model.residuals(x, y, kind, offset=offset)
        assert_allclose(got[1:], alone.residuals(x[1:], y[1:], kind), atol=1e-7)
    got = model.test_proportionality(x, y, offset=offset)
    want = alone.test_proportionality(x[1:], y[1:])
    assert_allclose(got.statistic, want.statistic, rtol=1e-6)
    got = model.predict_cumulative_incidence(x[1:4], [3.0, 30.0])
    assert_allclose(got, alone.predict_cumulative_incidence(x[1:4], [3.0, 30.0]), rtol=1e-8)
