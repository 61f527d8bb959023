"""Sampling weights: a weight of two is a row twice, in every step before the variance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from storages import each_storage


def draw(seed=1, n=150):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=n), rng.integers(0, 2, n), rng.exponential(1.0, n)])
    treatment = (rng.random(n) < 1 / (1 + np.exp(-0.6 * x[:, 0]))).astype(int)
    times = rng.integers(1, 4, n)
    return treatment, x, times, np.repeat(np.arange(n), times)


@each_storage
@pytest.mark.parametrize("penalty", [None, rs.L1(2.0)])
def test_the_score_of_rows_that_are_repeated(store, penalty):
    treatment, x, times, rows = draw()
    people = rs.cohort.Population(treatment, sampling_weight=times)
    found = rs.cohort.propensity_score(people, store(x), penalty=penalty, tol=1e-10)
    if penalty is not None:  # weights are divided by their mean, 2 or so
        penalty = rs.L1(2.0 * times.mean())
    again = rs.cohort.propensity_score(treatment[rows], store(x[rows]), penalty=penalty, tol=1e-10)
    assert_allclose(found.score[rows], again.score, rtol=1e-6)
    assert_allclose(found.preference[rows], again.preference, rtol=1e-6)


def scored(store=np.asarray):
    treatment, x, times, rows = draw()
    score = rs.cohort.propensity_score(treatment, x, penalty=None).score.round(2)
    people = rs.cohort.Population(treatment, score, sampling_weight=times)
    return people, rs.cohort.Population(treatment[rows], score[rows]), x, times, rows


@pytest.mark.parametrize("estimand", ["ate", "att", "atu", "ato", "matching"])
@pytest.mark.parametrize("options", [{}, {"stabilise": True}, {"truncate": 3.0}])
def test_weights_are_multiplied(estimand, options):
    people, again, _, times, rows = scored()
    found = rs.cohort.weight(people, estimand, **options).weight
    assert_allclose(found[rows] / times[rows], rs.cohort.weight(again, estimand, **options).weight)


@each_storage
@pytest.mark.parametrize("method", ["entropy", "cbps"])
@pytest.mark.parametrize("estimand", ["ate", "att", "atu"])
def test_weights_that_balance_covariates(store, method, estimand):
    people, again, x, times, rows = scored()
    options = {"estimand": estimand, "method": method}
    found = rs.cohort.weight(people, X=store(x), **options)
    other = rs.cohort.weight(again, X=store(x[rows]), **options)
    assert_allclose(found.weight[rows] / times[rows], other.weight, rtol=1e-7)
    if method == "cbps":
        assert_allclose(found.population.score[rows], other.population.score, rtol=1e-7)


@pytest.mark.parametrize("kind", ["stratify", "coarsen"])
def test_strata(kind):
    people, again, x, times, rows = scored()
    if kind == "stratify":
        label = (people.score > 0.5).astype(int)
        found, other = (
            rs.cohort.stratify(one, 2, within=own)
            for one, own in ((people, label), (again, label[rows]))
        )
        assert found.set_id is not None
        # Quantiles are of rows, so only the weights within the same strata are compared.
        sums = np.bincount(found.set_id[found.kept], found.weight[found.kept] / 1.0)
        arm = people.treatment == 1
        for s in np.unique(found.set_id[found.kept]):
            own = found.set_id == s
            assert_allclose(found.weight[own & arm].sum(), found.weight[own & ~arm].sum())
            assert_allclose(sums[s], 2 * times[own].sum())
        return
    options = {"covariates": ["x0", "x1"], "cuts": {"x0": [0.0]}, "estimand": "ate"}
    found = rs.cohort.coarsen(people, x, **options)
    other = rs.cohort.coarsen(again, x[rows], **options)
    assert_allclose(found.weight[rows] / times[rows], other.weight)


def test_matching():
    people, _, x, times, _ = scored()
    plain = rs.cohort.Population(people.treatment, people.score)
    for options in ({}, {"method": "full"}, {"replacement": True}, {"ratio": 3}):
        found, without = (rs.cohort.match(one, **options) for one in (people, plain))
        assert_allclose(found.weight, without.weight * times)


@each_storage
def test_balance(store):
    people, again, x, _, rows = scored()
    found = rs.cohort.balance(store(x), rs.cohort.weight(people, "ate"))
    other = rs.cohort.balance(store(x[rows]), rs.cohort.weight(again, "ate"))
    for side in ("before", "after"):
        one, two = getattr(found, side), getattr(other, side)
        assert_allclose(one.mean_target, two.mean_target)
        assert_allclose(one.ks, two.ks, atol=1e-12)
        assert_allclose(one.smd, two.smd, rtol=0.02)  # variances divide by n - 1
    counts = found.before.count_target[found.is_binary]
    assert_allclose(counts, [x[people.treatment == 1, 1].sum()] * counts.size)
    assert found.rows["before", "target"] == int(people.treatment.sum())
    assert found.effective_sizes["before", "target"] < people.treatment.sum()


def test_outcomes():
    people, _, _, times, rows = scored()
    rng = np.random.default_rng(3)
    y = rs.Surv(rng.exponential(1.0, 150), rng.integers(0, 2, 150))
    estimate = rs.cohort.fit_outcome(y, people)
    assert (estimate.reading, estimate.interval) == ("marginal", "robust")
    model = rs.Cox().fit(people.treatment[rows, None].astype(float), y[rows], cluster=rows)
    assert_allclose(estimate.log_hr, model.coef_[0], rtol=1e-7)
    assert_allclose(estimate.se, model.robust_standard_error_[0], rtol=1e-7)
    matched = rs.cohort.match(people)
    assert rs.cohort.fit_outcome(y, matched).reading == "marginal"
    with pytest.raises(rs.CohortError, match="a stratified reading has no weights"):
        rs.cohort.fit_outcome(y, matched, reading="stratified")


def test_trimming_keeps_them():
    people, _, _, times, _ = scored()
    trimmed = rs.cohort.trim(people, symmetric=0.3)
    assert_allclose(trimmed.weight, np.where(trimmed.kept, times, 0))
    assert_allclose(trimmed.population.with_score(None).sampling_weight, times)
    assert_allclose(people.take(np.array([3, 1])).sampling_weight, times[[3, 1]])


def test_they_are_saved(tmp_path):
    people, _, _, times, _ = scored()
    rs.cohort.save({"all": rs.cohort.weight(people, "ate")}, tmp_path / "saved")
    found = rs.cohort.load(tmp_path / "saved")["all"]
    assert_allclose(found.population.sampling_weight, times)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, 1e300], "must be from 1e-100 to 1e.100, but 1 of 2 rows is not .first: row 1"),
        ([1e-300, 1.0], "must be from 1e-100 to 1e.100, but 1 of 2 rows is not .first: row 0"),
        ([1.0, 0.0], "must be above 0, but 1 of 2 rows is not .first: row 1, value 0"),
        ([1.0], "sampling_weight"),
        ([1.0, np.nan], "sampling_weight"),
    ],
)
def test_wrong_weights(weight, message):
    with pytest.raises(rs.CohortError, match=message) as caught:
        rs.cohort.Population([1, 0], sampling_weight=weight)
    assert caught.value.code == "BadWeight"
