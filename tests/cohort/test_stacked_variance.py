"""Stacked intervals: derivatives of score, weights and outcome model together in case weights."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

import riskset as rs
from storages import each_storage

N = 60
STEP = 1e-4


def example(seed=3):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, 2, N), rng.normal(size=N), rng.integers(0, 3, N)])
    treat = (rng.random(N) < expit(0.6 * x[:, 0] - 0.5 * x[:, 1])).astype(int)
    hazard = np.exp(0.5 * x[:, 0] + 0.4 * x[:, 1] + 0.3 * treat)
    time, censored = rng.exponential(1 / hazard), rng.exponential(2.0, N)
    status = np.where(time < censored, np.where(rng.random(N) < 0.7, 1, 2), 0)
    return x, treat, np.minimum(time, censored), status


def logistic(x, treat, case):
    """Scores by Newton's method, each row `case` times."""
    z = np.column_stack([np.ones(len(x)), x])
    coef = np.zeros(z.shape[1])
    for _ in range(30):
        e = expit(z @ coef)
        coef += np.linalg.solve((z.T * (case * e * (1 - e))) @ z, z.T @ (case * (treat - e)))
    return expit(z @ coef)


def formula(e, treat, estimand):
    return {
        "ate": np.where(treat, 1 / e, 1 / (1 - e)),
        "att": np.where(treat, 1.0, e / (1 - e)),
        "atu": np.where(treat, (1 - e) / e, 1.0),
        "ato": np.where(treat, 1 - e, e),
        "matching": np.minimum(e, 1 - e) / np.where(treat, e, 1 - e),
    }[estimand]


def derivative_error(estimate, cluster=None):
    """Root of the sum of squares of the derivatives in the case weight of each row, or cluster."""
    cluster = np.arange(N) if cluster is None else cluster
    slopes = []
    for own in np.unique(cluster):
        change = STEP * (cluster == own)
        slopes.append((estimate(1 + change) - estimate(1 - change)) / (2 * STEP))
    return np.sqrt(np.square(slopes).sum(axis=0))


def weighted_people(x, treat, estimand, person=None, **options):
    found = rs.cohort.propensity_score(
        rs.cohort.Population(treat, person_id=person), x, penalty=None, tol=1e-12
    )
    return rs.cohort.weight(found.people, estimand, **options)


def cox_log_hr(y, treat, x, estimand, covariates=None):
    columns = treat[:, None] if covariates is None else np.column_stack([treat, covariates])

    def log_hr(case):
        weight = case * formula(logistic(x, treat, case), treat, estimand)
        return rs.Cox(tol=1e-13).fit(columns, y, sample_weight=weight).coef_[0]

    return log_hr


@each_storage
def test_cox_is_the_derivative_of_both_stages(store):
    x, treat, time, status = example()
    y, design = rs.Surv(time, (status == 1).astype(int)), store(x)
    people = weighted_people(design, treat, "ate")
    found = rs.cohort.fit_outcome(y, people, interval="stacked", score_covariates=design)
    assert found.interval == "stacked"
    assert_allclose(found.se, derivative_error(cox_log_hr(y, treat, x, "ate")), rtol=2e-5)
    assert_allclose(found.lower, found.log_hr - 1.959963984540054 * found.se)
    known = rs.cohort.fit_outcome(y, people, interval="robust")
    assert known.log_hr == found.log_hr
    assert found.se_robust == known.se
    assert abs(found.se / known.se - 1) > 1e-2


@pytest.mark.parametrize("estimand", ["att", "ato", "matching"])
def test_every_estimand(estimand):
    x, treat, time, status = example()
    y = rs.Surv(time, (status == 1).astype(int))
    people = weighted_people(x, treat, estimand)
    found = rs.cohort.fit_outcome(y, people, interval="stacked", score_covariates=x)
    assert_allclose(found.se, derivative_error(cox_log_hr(y, treat, x, estimand)), rtol=2e-5)


def test_rows_of_a_person_and_covariates_of_the_model():
    x, treat, time, status = example()
    y, person = rs.Surv(time, (status == 1).astype(int)), np.arange(N) // 2
    people = weighted_people(x, treat, "ato", person)
    found = rs.cohort.fit_outcome(
        y, people, interval="stacked", score_covariates=x, covariates=x[:, :1]
    )
    slopes = derivative_error(cox_log_hr(y, treat, x, "ato", x[:, :1]), person)
    assert_allclose(found.se, slopes, rtol=2e-5)


def test_stabilised_and_cut_weights():
    x, treat, time, status = example()
    y = rs.Surv(time, (status == 1).astype(int))
    people = weighted_people(x, treat, "ate", stabilise=True, truncate=1.3)
    assert people.details["n_truncated"] > 5

    def log_hr(case):
        share = np.average(treat, weights=case)
        own = formula(logistic(x, treat, case), treat, "ate") * np.where(treat, share, 1 - share)
        weight = case * np.minimum(own, 1.3)
        return rs.Cox(tol=1e-13).fit(treat[:, None], y, sample_weight=weight).coef_[0]

    found = rs.cohort.fit_outcome(y, people, interval="stacked", score_covariates=x)
    assert_allclose(found.se, derivative_error(log_hr), rtol=2e-5)


@pytest.mark.parametrize("weights", ["case", "none"])
def test_fine_and_gray_is_the_derivative_of_all_stages(weights):
    x, treat, time, status = example()
    y = rs.Surv(time, status)
    people = weighted_people(x, treat, "ate")
    order = np.argsort(time)

    def log_shr(case):
        weight = case * formula(logistic(x, treat, case), treat, "ate")
        given = {}
        if weights == "none":  # the distribution of censoring has the case weights alone
            at_risk = np.cumsum(case[order][::-1])[::-1]
            left = 1 - np.where(status[order] == 0, case[order] / at_risk, 0.0)
            before = np.empty(N)
            before[order] = np.append(1.0, np.cumprod(left)[:-1])
            given = {"censoring_probability": before}
        model = rs.FineGray(tol=1e-13, cause=1, **given)
        return model.fit(treat[:, None], y, sample_weight=weight).coef_[0]

    found = rs.cohort.fit_outcome(
        y, people, model="finegray", censoring_weights=weights, interval="stacked",
        score_covariates=x,
    )  # fmt: skip
    assert_allclose(found.log_hr, log_shr(np.ones(N)), rtol=1e-7)
    # The part through G is that of cmprsk::crr, whose sums differ from derivatives by O(1 / n).
    exact = derivative_error(log_shr)
    assert_allclose(found.se, exact, rtol=4e-3)
    assert abs(found.se_robust / exact - 1) > 3e-2


def test_categories_and_copies_of_covariates_change_nothing():
    x, treat, time, status = example()
    y = rs.Surv(time, (status == 1).astype(int))
    people = weighted_people(x, treat, "ate")
    wide = np.column_stack([x, 1 - x[:, 0], x[:, 1] * 3, np.ones(N)])
    plain, other = (
        rs.cohort.fit_outcome(y, people, interval="stacked", score_covariates=own)
        for own in (x, wide)
    )
    assert_allclose(other.se, plain.se, rtol=1e-8)


def test_what_is_refused():
    x, treat, time, status = example()
    y = rs.Surv(time, (status == 1).astype(int))
    people = weighted_people(x, treat, "ate")

    def refused(message, people=people, x=x, **changes):
        settings = {"interval": "stacked", "score_covariates": x} | changes
        with pytest.raises(rs.InputError, match=message):
            rs.cohort.fit_outcome(y, people, **settings)

    refused("needs the covariates", x=None)
    refused("stacked intervals alone", interval="robust")
    refused("with a penalty", penalty=rs.L1(1.0), covariates=x)
    refused("interactions", interactions=x[:, :1])
    refused("standard errors away", x=x[:, :2] + time[:, None])
    # Scores of more covariates fulfil the equations of the model of some.
    refused("standard errors away", x=x[:, :2])
    refused("standard errors away", x=x[:, :0])
    refused("percentile", weighted_people(x, treat, "ate", truncate="p90"))
    refused("by matching", rs.cohort.match(people.population))
    refused("by cbps", rs.cohort.weight(people.population, "ate", method="cbps", X=x))
    penalised = rs.cohort.propensity_score(treat, x, penalty=rs.L2(5.0)).people
    refused("unpenalised logistic", rs.cohort.weight(penalised, "ate"))
    some = rs.cohort.restrict(people, x[:, 0] == 1, "some")
    stable = replace(some, settings={**some.settings, "stabilise": True})
    refused("stabilised weights", stable)


def test_the_score_of_everybody_and_the_effect_in_some():
    x, treat, time, status = example()
    y, keep = rs.Surv(time, (status == 1).astype(int)), np.arange(N) % 5 > 0
    people = weighted_people(x, treat, "ate")
    some = rs.cohort.restrict(people, keep, "no prior outcome")

    def log_hr(case):
        weight = case * keep * formula(logistic(x, treat, case), treat, "ate")
        return rs.Cox(tol=1e-13).fit(treat[:, None], y, sample_weight=weight).coef_[0]

    found = rs.cohort.fit_outcome(y, some, interval="stacked", score_covariates=x)
    assert_allclose(found.se, derivative_error(log_hr), rtol=2e-5)
    means = rs.cohort.restricted_mean(y, some, 0.9, interval="stacked", score_covariates=x)

    def mean(case):
        weight = case * keep * formula(logistic(x, treat, case), treat, "ate")
        return rs.cohort.restricted_mean(y, replace(some, weight=weight), 0.9).difference.ravel()

    assert_allclose(means.difference_se.ravel(), derivative_error(mean), rtol=1e-6)


@pytest.mark.parametrize("estimand", ["ate", "atu"])
def test_risks_and_restricted_means_are_derivatives_of_both_stages(estimand):
    x, treat, time, status = example()
    y, at, person = rs.Surv(time, status), [0.4, 0.9], np.arange(N) // 2
    people = weighted_people(x, treat, estimand, person)

    def estimates(case):
        weight = case * formula(logistic(x, treat, case), treat, estimand)
        made = replace(people, weight=weight)
        means = rs.cohort.restricted_mean(y, made, at)
        risks = rs.cohort.risk_difference(y, made, at, interval="robust")
        return np.concatenate([means.difference.ravel(), np.log(means.ratio[0]), risks.difference])

    exact = derivative_error(estimates, person)
    options = {"interval": "stacked", "score_covariates": x}
    means = rs.cohort.restricted_mean(y, people, at, **options)
    risks = rs.cohort.risk_difference(y, people, at, **options)
    found = np.concatenate([means.difference_se.ravel(), means.log_ratio_se[0], risks.se])
    assert_allclose(found, exact, rtol=1e-6)
    assert_allclose(risks.upper, risks.difference + 1.959963984540054 * risks.se)
    assert risks.interval == means.interval == "stacked"
    known = rs.cohort.restricted_mean(y, people, at)
    assert_allclose(known.difference, means.difference)
    assert (np.abs(known.difference_se / means.difference_se - 1) > 5e-3).all()
    with pytest.raises(rs.InputError, match="stacked intervals alone"):
        rs.cohort.restricted_mean(y, people, at, score_covariates=x)
    with pytest.raises(rs.InputError, match="needs the covariates"):
        rs.cohort.risk_difference(y, people, at, interval="stacked")


@pytest.mark.slow
def test_it_is_the_spread_of_resamples_with_new_scores():
    rng = np.random.default_rng(8)
    n = 600
    x = rng.normal(size=(n, 2))
    treat = (rng.random(n) < expit(x @ [0.8, -0.5])).astype(int)
    time = rng.exponential(np.exp(-x @ [0.9, 0.7]))
    y = rs.Surv(np.minimum(time, 2.0), (time < 2.0).astype(int))

    def weighted(rows):
        people = rs.cohort.propensity_score(treat[rows], x[rows], penalty=None).people
        return rs.cohort.weight(people, "ate")

    found = rs.cohort.fit_outcome(y, weighted(np.arange(n)), interval="stacked", score_covariates=x)
    drawn = []
    for _ in range(150):
        rows = rng.integers(0, n, n)
        drawn.append(rs.cohort.fit_outcome(y[rows], weighted(rows), interval="wald").log_hr)
    assert_allclose(found.se, np.std(drawn), rtol=0.15)
    assert found.se_robust > 1.3 * found.se


def test_sampling_weights_are_in_both_stages():
    x, treat, time, status = example()
    y = rs.Surv(time, (status == 1).astype(int))
    sampled = np.random.default_rng(2).uniform(0.5, 2.0, N)
    score = rs.cohort.propensity_score(
        rs.cohort.Population(treat, sampling_weight=sampled), x, penalty=None, tol=1e-12
    )
    people = rs.cohort.weight(score.people, "ate", truncate=2.5)
    assert people.details["n_truncated"] > 3

    def log_hr(case):
        weight = formula(logistic(x, treat, case * sampled), treat, "ate")
        weight = case * sampled * np.minimum(weight, 2.5)
        return rs.Cox(tol=1e-13).fit(treat[:, None], y, sample_weight=weight).coef_[0]

    found = rs.cohort.fit_outcome(y, people, interval="stacked", score_covariates=x)
    assert_allclose(found.se, derivative_error(log_hr), rtol=2e-5)


@pytest.mark.parametrize("model", ["logistic", "poisson"])
def test_odds_and_rates(model):
    x, treat, time, status = example()
    event = (status == 1).astype(int)
    y, people = rs.Surv(time, event), weighted_people(x, treat, "ate")

    def log_ratio(case):
        weight = case * formula(logistic(x, treat, case), treat, "ate")
        had = [weight[treat == a] @ event[treat == a] for a in (1, 0)]
        rest = time if model == "poisson" else 1 - event
        others = [weight[treat == a] @ rest[treat == a] for a in (1, 0)]
        return np.log(had[0] / others[0]) - np.log(had[1] / others[1])

    found = rs.cohort.fit_outcome(y, people, model, interval="stacked", score_covariates=x)
    assert_allclose(found.log_hr, log_ratio(np.ones(N)), rtol=1e-7)
    assert_allclose(found.se, derivative_error(log_ratio), rtol=1e-5)
