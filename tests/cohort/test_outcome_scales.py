"""Logistic and Poisson outcome models against R's glm and clogit, and by equivalences."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.cohort import Population, fit_outcome, restrict
from riskset.cohort.effects.effect_scale import SCALES, Model
from storages import each_storage

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "outcome_models.json").read_text("utf-8"))
with (FOLDER / "veteran.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))
TABLE = {name: np.array([float(row[name]) for row in ROWS]) for name in ROWS[0]}
N = len(ROWS)
TIME = np.minimum(TABLE["time"], 60)
EVENT = (TABLE["event"] == 1) & (TABLE["time"] <= 60)
Y = rs.Surv(TIME, EVENT.astype(int))
X = np.column_stack([TABLE["karno"], TABLE["age"]])
WEIGHT = 0.5 + (np.arange(1, N + 1) % 4) / 2
PAIR = np.arange(N) // 2
STRATUM = (1 + TABLE["squamous"] + 2 * TABLE["smallcell"] + 3 * TABLE["adeno"]).astype(np.int64)
PEOPLE = Population(TABLE["trt"])
BOTH = ("logistic", "poisson")


def with_strata(strata, treatment=TABLE["trt"]):
    people = restrict(Population(treatment), np.ones(N, dtype=bool), "all")
    return replace(people, kind="stratification", estimand="ate", set_id=strata)


def check(found, expected, rtol=1e-9):
    assert found.status == "ok"
    assert_allclose(found.log_hr, expected["coef"], rtol=rtol)
    assert_allclose(found.se_model, expected["se"], rtol=rtol)
    assert_allclose(found.log_likelihood, expected["log_likelihood"], rtol=1e-9)


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("covariates", [None, X])
def test_glm(model, covariates):
    expected = GOLDEN[model if covariates is None else f"{model}_adjusted"]
    found = fit_outcome(Y, PEOPLE, model=model, interval="profile", covariates=covariates)
    check(found, expected, 1e-8)
    assert_allclose(found.se_robust, expected["se_robust"], rtol=1e-8)
    assert_allclose((found.lower, found.upper), expected["profile"], rtol=1e-6)
    assert_allclose(found.llr, expected["llr"], rtol=1e-8)
    if covariates is None:
        assert_allclose(found.log_likelihood - found.null_log_likelihood, found.llr, rtol=1e-9)


@pytest.mark.parametrize("model", BOTH)
def test_glm_with_clusters(model):
    people = Population(TABLE["trt"], person_id=PAIR)
    found = fit_outcome(Y, people, model=model)
    assert found.interval == "robust"
    assert_allclose(found.se, GOLDEN[model]["se_cluster"], rtol=1e-9)


@pytest.mark.parametrize("model", BOTH)
def test_glm_with_weights(model):
    everybody = restrict(PEOPLE, np.ones(N, dtype=bool), "all")
    weighted = replace(everybody, kind="weighting", estimand="ate", weight=WEIGHT)
    found = fit_outcome(Y, weighted, model=model)
    assert (found.interval, found.reading) == ("robust", "marginal")
    expected = GOLDEN[f"{model}_weighted"]
    check(found, expected)
    assert_allclose(found.se, expected["se_robust"], rtol=1e-9)


def test_poisson_with_an_intercept_for_each_stratum():
    found = fit_outcome(
        Y, with_strata(STRATUM), model="poisson", reading="stratified", interval="profile"
    )
    expected = GOLDEN["poisson_stratified"]
    check(found, expected)
    assert_allclose(found.se_robust, expected["se_robust"], rtol=1e-9)
    assert_allclose((found.lower, found.upper), expected["profile"], rtol=1e-6)


@pytest.mark.parametrize("covariates", [None, X[:, :1]])
def test_clogit(covariates):
    name = "logistic_stratified" if covariates is None else "logistic_stratified_adjusted"
    found = fit_outcome(
        Y, with_strata(STRATUM), model="logistic", reading="stratified", covariates=covariates
    )
    assert found.interval == "profile"
    check(found, GOLDEN[name], 1e-7)
    assert_allclose(found.null_log_likelihood, GOLDEN[name]["null_log_likelihood"], rtol=1e-9)


def test_clogit_of_pairs_has_all_intervals():
    pairs = with_strata(PAIR, np.arange(N) % 2)
    expected = GOLDEN["logistic_pairs"]
    for interval in ("profile", "robust", "bootstrap"):
        found = fit_outcome(
            Y, pairs, model="logistic", reading="stratified", interval=interval, replicates=40
        )
        check(found, expected)
        assert found.lower < found.log_hr < found.upper


def test_an_odds_and_a_rate_ratio_by_hand():
    target = TABLE["trt"] == 1
    cases = [EVENT[arm].sum() for arm in (target, ~target)]
    people = [arm.sum() for arm in (target, ~target)]
    days = [TIME[arm].sum() for arm in (target, ~target)]
    odds = [c / (n - c) for c, n in zip(cases, people, strict=True)]
    found = fit_outcome(Y, PEOPLE, model="logistic")
    assert_allclose(found.hr, odds[0] / odds[1], rtol=1e-9)
    assert (found.scale, found.effect_name) == ("odds", "odds ratio")
    assert "odds ratio" in repr(found)
    found = fit_outcome(Y, PEOPLE, model="poisson")
    assert_allclose(found.hr, cases[0] / days[0] / (cases[1] / days[1]), rtol=1e-9)
    assert (found.scale, found.effect_name) == ("rate", "rate ratio")
    assert_allclose(found.se_model, np.sqrt(1 / cases[0] + 1 / cases[1]), rtol=1e-9)


@pytest.mark.parametrize("model", BOTH)
@each_storage
def test_rows_in_another_order_and_other_storage(model, store):
    order = np.random.default_rng(3).permutation(N)
    one = fit_outcome(Y, PEOPLE, model=model, covariates=store(X), interval="robust")
    shuffled = fit_outcome(
        Y[order],
        Population(TABLE["trt"][order]),
        model=model,
        covariates=store(X[order]),
        interval="robust",
    )
    plain = fit_outcome(Y, PEOPLE, model=model, covariates=X, interval="robust")
    for other in (shuffled, plain):
        for name in ("log_hr", "se_model", "se_robust", "log_likelihood"):
            assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8)


@pytest.mark.parametrize("model", BOTH)
@each_storage
def test_a_weight_of_two_is_a_row_twice(model, store):
    everybody = restrict(PEOPLE, np.ones(N, dtype=bool), "all")
    twice = np.arange(N) % 3 == 0
    weighted = replace(
        everybody, kind="weighting", estimand="ate", weight=np.where(twice, 2.0, 1.0)
    )
    one = fit_outcome(Y, weighted, model=model, covariates=store(X), interval="wald")
    rows = np.concatenate([np.arange(N), np.flatnonzero(twice)])
    other = fit_outcome(
        Y[rows],
        Population(TABLE["trt"][rows]),
        model=model,
        covariates=store(X[rows]),
        interval="wald",
    )
    for name in ("log_hr", "se", "log_likelihood", "llr"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8)


@pytest.mark.parametrize("model", BOTH)
def test_the_unit_of_time_and_a_competing_event_do_not_matter(model):
    one = fit_outcome(Y, PEOPLE, model=model)
    in_years = rs.Surv(TIME / 365.25, np.where(EVENT, 1, 2 * (TABLE["event"] == 1)))
    other = fit_outcome(in_years, PEOPLE, model=model)
    assert_allclose(other.log_hr, one.log_hr, rtol=1e-10)
    assert_allclose(other.se, one.se, rtol=1e-10)


@pytest.mark.parametrize("model", BOTH)
def test_a_subgroup_is_its_own_fit(model):
    inside = X[:, :1] > 60
    found = fit_outcome(Y, PEOPLE, model=model, interactions=inside.astype(float), interval="wald")
    alone = restrict(PEOPLE, inside[:, 0], "inside")
    expected = fit_outcome(Y, alone, model=model, interval="wald")
    assert_allclose(found.subgroups[0].log_hr, expected.log_hr, rtol=1e-8)
    assert_allclose(found.subgroups[0].se_log_hr, expected.se, rtol=1e-8)


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("arm", [0, 1])
def test_without_outcomes_in_an_arm_the_ratio_is_infinite(model, arm):
    y = rs.Surv(TIME, (EVENT & (TABLE["trt"] == arm)).astype(int))
    found = fit_outcome(y, PEOPLE, model=model)
    assert found.status == "events_in_one_arm"
    assert found.log_hr == (np.inf if arm else -np.inf)
    assert np.isfinite(found.lower if arm else found.upper)


@pytest.mark.parametrize("model", BOTH)
def test_a_penalty_is_chosen_and_spares_the_treatment(model):
    noise = np.random.default_rng(1).normal(size=(N, 3))
    x = np.column_stack([X / 10, noise])
    found = fit_outcome(
        Y, PEOPLE, model=model, covariates=x, penalty="l1", folds=4, repeats=2, tidy=False
    )
    assert found.status == "ok"
    assert found.cross_validation is not None
    assert found.penalty.has_strength
    strength = rs.L1(found.penalty.l1)
    given = fit_outcome(Y, PEOPLE, model=model, covariates=x, penalty=strength)
    assert_allclose(given.log_hr, found.log_hr, rtol=1e-6)


def test_logistic_says_whom_it_takes_as_followed_to_the_end():
    (note,) = (n for n in fit_outcome(Y, PEOPLE, model="logistic").notes)
    assert note.code == "unequal_time_at_risk"
    assert note.values["n"].value == ((TIME < 60) & ~EVENT).sum()
    fixed = rs.Surv(np.where(EVENT, TIME, 60), EVENT.astype(int))
    assert not fit_outcome(fixed, PEOPLE, model="logistic").notes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ties": "efron"}, "`ties` belongs to the Cox model"),
        ({"time_intervals": 3}, "`time_intervals` belongs to a model of hazards"),
        ({"interval": "robust", "reading": "stratified"}, "has no robust interval"),
        ({"interval": "bootstrap", "reading": "stratified"}, "has no bootstrap interval"),
    ],
)
def test_refused(options, words):
    with pytest.raises(rs.InputError, match=words):
        fit_outcome(Y, with_strata(STRATUM), model="logistic", **options)


def test_every_model_has_a_scale():
    from typing import get_args

    assert set(SCALES) == set(get_args(Model))


@pytest.mark.parametrize("options", [{}, {"covariates": X}, {"penalty": rs.L2(1.0)}])
@pytest.mark.parametrize("interval", ["auto", "robust", "bootstrap"])
def test_odds_of_what_everybody_has(options, interval):
    if "penalty" in options:
        options = {**options, "covariates": X}
        interval = "auto"
    everybody = rs.Surv(np.ones(N), np.ones(N, dtype=int))
    found = fit_outcome(
        everybody, PEOPLE, model="logistic", interval=interval, replicates=40, **options
    )
    assert found.status == "not_estimable"
    assert [note.message for note in found.notes] == [
        "all rows have the outcome, so no coefficient can be estimated."
    ]


def test_sets_in_which_everybody_has_the_outcome_say_nothing_of_odds():
    sets = np.arange(N) // 4
    everybody = rs.Surv(np.ones(N), np.ones(N, dtype=int))
    some = rs.Surv(np.ones(N), (sets % 2).astype(int))
    for y in (everybody, some):
        options = {"model": "logistic", "reading": "stratified"}
        found = fit_outcome(y, with_strata(sets, np.arange(N) % 2), **options)
        assert (found.status, found.informative_strata) == ("no_informative_strata", 0)
    event = np.where(np.arange(N) < 4, np.arange(N) < 3, sets % 2 == 1)
    y = rs.Surv(np.ones(N), event.astype(int))
    found = fit_outcome(y, with_strata(sets, np.arange(N) % 2), **options)
    assert (found.informative_strata, found.informative_people) == (1, 4)
    # In the limit, one of the two of the target is the one without the outcome.
    assert_allclose(found.log_likelihood, np.log(0.5), rtol=1e-9)
    assert found.status == "events_in_one_arm"
    assert "everybody in one arm" in found.reason


def glm_log_likelihood(event, model):
    """That of an intercept and X, by Newton's method."""
    z = np.column_stack([np.ones(N), (X - X.mean(axis=0)) / X.std(axis=0)])
    b = np.array([np.log(event.mean()), 0.0, 0.0])
    if model == "poisson":
        b[0] -= np.log(TIME.mean())
    for _ in range(50):
        eta = z @ b
        if model == "poisson":
            mean = variance = TIME * np.exp(eta)
        else:
            mean = 1 / (1 + np.exp(-eta))
            variance = mean * (1 - mean)
        b += np.linalg.solve((z.T * variance) @ z, z.T @ (event - mean))
    if model == "poisson":
        return event @ np.log(mean) - mean.sum()
    return np.log(np.where(event, mean, 1 - mean)).sum()


@pytest.mark.parametrize("model", ["cox", *BOTH])
def test_the_gain_of_an_infinite_effect_is_over_the_covariates(model):
    event = EVENT & (TABLE["trt"] == 1)
    y = rs.Surv(TIME, event.astype(int))
    found = fit_outcome(y, PEOPLE, model=model, covariates=X)
    assert found.status == "events_in_one_arm"
    if model == "cox":
        none = rs.Cox(tol=1e-11).fit(X, y).log_likelihood_
    else:
        none = glm_log_likelihood(event, model)
    assert_allclose(found.llr, found.log_likelihood - none, rtol=1e-8)
    assert found.llr < found.log_likelihood - found.null_log_likelihood - 0.1


def test_resamples_without_an_estimate_are_counted():
    event = np.arange(N) >= 2  # two people without the outcome, whom many resamples lack
    y, people = rs.Surv(np.ones(N), event.astype(int)), Population(np.arange(N) % 2)
    found = fit_outcome(y, people, model="logistic", interval="bootstrap", replicates=400)
    note = next(note for note in found.notes if note.code == "replicates_left_out")
    lost = int(note.message.split()[0])
    share = (1 - 2 / N) ** N
    assert abs(lost - 400 * share) < 4 * np.sqrt(400 * share * (1 - share))
    assert any("no end on either side" in note.message for note in found.notes)


def test_poisson_models_of_matched_sets_are_marginal():
    """Follow-up ends with the outcome, which biases intercepts of pairs: here from 2 to 2.4."""
    rng = np.random.default_rng(8)
    n = 8000
    treatment = np.tile([1, 0], n)
    time = rng.exponential(1 / np.where(treatment == 1, 2.0, 1.0))
    y = rs.Surv(np.minimum(time, 1.0), time <= 1.0)
    pairs = rs.cohort.match(Population(treatment, np.repeat(rng.uniform(0.3, 0.7, n), 2)))
    assert pairs.n_target > 0.99 * n
    found = fit_outcome(y, pairs, model="poisson")
    assert (found.reading, found.interval, found.sensitivity) == ("marginal", "robust", None)
    assert_allclose(found.hr, 2.0, rtol=0.04)
    assert not found.notes
    stratified = fit_outcome(y, pairs, model="poisson", reading="stratified")
    assert stratified.hr > 2.3
    assert "poisson_sets" in [note.code for note in stratified.notes]
    assert fit_outcome(y, pairs).reading == "stratified"


def test_strata_that_say_nothing_are_counted_in_the_words_of_the_model():
    """Two sets have the outcome in everybody, and one in nobody."""
    sets = np.repeat(np.arange(6), 4)
    treatment = np.tile([1, 0, 1, 0], 6)
    event = np.array([1] * 8 + [0] * 4 + [1, 0, 0, 0] + [0, 1, 0, 0] + [1, 0, 0, 1])
    people = restrict(Population(treatment), np.ones(24, dtype=bool), "all")
    people = replace(people, kind="stratification", estimand="ate", set_id=sets)
    y = rs.Surv(np.full(24, 10.0), event)
    found = fit_outcome(y, people, model="logistic", reading="stratified")
    (note,) = [note for note in found.notes if note.code == "strata_without_events"]
    assert note.message == (
        "3 of 6 strata contribute nothing to the estimates: nobody has the outcome in 1 of them, "
        "and everybody in 2."
    )


def test_one_set_alone_has_no_robust_interval():
    people = replace(
        restrict(Population([1, 0, 1, 0]), np.ones(4, dtype=bool), "all"),
        kind="matching", estimand="att", set_id=np.zeros(4, dtype=np.int64),
        details={"method": "full"},
    )  # fmt: skip
    y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    assert fit_outcome(y, people, reading="marginal").status == "one_cluster"
    assert np.isnan(fit_outcome(y, people, reading="marginal").hr)
    for interval in ("robust", "bootstrap"):
        risk = rs.cohort.risk_difference(y, people, times=2.0, interval=interval)
        assert np.isfinite(risk.difference).all()
        assert np.isnan(risk.se).all()
        mean = rs.cohort.restricted_mean(y, people, times=2.0, interval=interval).columns()
        assert np.isnan(mean["difference_lower"]).all()
    plain = fit_outcome(y, people, reading="marginal", interval="wald")
    alone = fit_outcome(y, Population([1, 0, 1, 0]), interval="wald")
    assert_allclose((plain.log_hr, plain.se), (alone.log_hr, alone.se), rtol=1e-12)
