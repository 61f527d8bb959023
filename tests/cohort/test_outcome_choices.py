"""Penalties by cross-validation, likelihood profiles and resamples of an outcome model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.cohort.resampling import counts_of_resamples


def simulated(n=400, p=6, seed=1):
    rng = np.random.default_rng(seed)
    x = (rng.random((n, p)) < 0.3).astype(float)
    treat = (rng.random(n) < 0.3 + 0.3 * x[:, 0]).astype(int)
    time = np.ceil(100 * rng.exponential(np.exp(-0.6 * x[:, 0] - 0.3 * treat)))
    event = (rng.random(n) < 0.7).astype(int)
    return x, treat, rs.Surv(time, event)


# ------------------------------------------------------------------------- cross-validation


@pytest.mark.parametrize("model", ["cox", "finegray"])
def test_the_penalty_is_that_of_the_estimator(model):
    x, treat, y = simulated()
    x = np.c_[x, np.zeros(400), 3 * x[:, 1]]  # empty, and not on the scale of the others
    found = rs.cohort.fit_outcome(
        y, rs.cohort.Population(treat), model, covariates=x, penalty="l1", folds=4, repeats=2
    )
    tidied = np.c_[treat, np.delete(x, 6, axis=1) / [1, 1, 1, 1, 1, 1, 3]]
    kind = rs.L1(unpenalized=[0])
    options = {"folds": 4, "repeats": 2, "seed": 1}
    direct = rs.CoxCV(kind, **options) if model == "cox" else rs.FineGrayCV(kind, **options)
    direct.fit(tidied, y)
    assert found.status == "ok"
    assert_allclose(found.penalty.l1, direct.best_penalty_.l1, rtol=1e-6)
    assert found.penalty.unpenalized == ("treatment",)
    assert_allclose(found.log_hr, direct.coef_[0], rtol=1e-6)
    assert_allclose(found.cross_validation.mean, direct.cross_validation_.mean, rtol=1e-6)
    assert found.interval == "profile"
    assert found.lower < found.log_hr < found.upper
    assert_allclose(found.coef, direct.coef_[1:] / [1, 1, 1, 1, 1, 1, 3], rtol=1e-5, atol=1e-9)


def excess(eta, y, column):
    """Observed less expected events, times a column: the slope of Breslow's log likelihood."""
    total = 0.0
    for i in np.flatnonzero(y["event"] == 1):
        risk = np.where(y["time"] >= y["time"][i], np.exp(eta), 0.0)
        total += column[i] - risk @ column / risk.sum()
    return total


def test_coefficients_are_those_of_the_covariates_as_they_came():
    """The slope is the penalty where a coefficient is not 0, in units of the largest value."""
    x, treat, y = simulated()
    age = np.random.default_rng(2).uniform(20, 80, 400)
    x = np.c_[x, np.zeros(400), age]
    found = rs.cohort.fit_outcome(
        y, rs.cohort.Population(treat), covariates=x, penalty="l1", folds=3, repeats=1
    )
    assert found.names == found.keys == ("x0", "x1", "x2", "x3", "x4", "x5", "x7")
    kept = np.delete(x, 6, axis=1)
    eta = found.log_hr * treat + kept @ found.coef
    assert abs(excess(eta, y, treat)) < 1e-4
    slopes = np.array([excess(eta, y, column / column.max()) for column in kept.T])
    used = found.coef != 0
    assert used.any()
    assert_allclose(slopes[used], found.penalty.l1 * np.sign(found.coef[used]), rtol=1e-4)
    assert (np.abs(slopes[~used]) < found.penalty.l1).all()
    assert 0 <= found.kkt <= 1e-8
    frame = found.coefficients("pandas")
    assert frame["coef"].tolist() == sorted(found.coef[used], key=abs, reverse=True)
    assert frame["coef"].to_dict() == {
        key: b for key, b in zip(found.keys, found.coef, strict=True) if b
    }


def test_interactions_are_no_covariates():
    x, treat, y = simulated()
    people = rs.cohort.Population(treat)
    covariates = rs.Design.from_dense(x[:, 1:3], ["a", "b"])
    found = rs.cohort.fit_outcome(y, people, covariates=covariates, interactions=x[:, :1])
    direct = rs.Cox().fit(np.c_[treat, treat * x[:, 0], x[:, 0], x[:, 1:3]], y)
    assert found.names == ("a", "b")
    assert_allclose(found.coef, direct.coef_[3:], rtol=1e-6)
    alone = rs.cohort.fit_outcome(y, people, interactions=x[:, :1])
    assert (alone.names, alone.coef.size) == ((), 0)


def test_too_few_sets_or_people_for_the_folds():
    x, treat, y = simulated(60)
    people = rs.cohort.Population(treat, np.full(60, 0.5))
    options = {"covariates": x, "penalty": "l1", "repeats": 1}
    pairs = rs.cohort.match(people)
    found = rs.cohort.fit_outcome(y, pairs, folds=40, **options)
    assert found.informative_strata < 40
    assert found.status == "too_few_strata_for_cv"
    assert "fewer informative strata or people" in found.reason
    assert rs.cohort.fit_outcome(y, pairs, folds=3, **options).status == "ok"
    assert rs.cohort.fit_outcome(y, people, folds=61, **options).status == "too_few_strata_for_cv"


def test_matched_sets_and_persons_stay_in_one_fold():
    x, treat, y = simulated(200)
    pairs = rs.cohort.match(rs.cohort.Population(treat, np.full(200, 0.5)))
    found = rs.cohort.fit_outcome(
        y, pairs, reading="marginal", covariates=x, penalty="l1", folds=5, repeats=1
    )
    rows = np.flatnonzero(pairs.kept)
    kind = rs.L1(unpenalized=[0])
    direct = rs.CoxCV(kind, folds=5, repeats=1, groups=pairs.set_id[rows], seed=1)
    direct.fit(np.c_[treat, x][rows], y[rows])
    assert_allclose(found.cross_validation.mean, direct.cross_validation_.mean, rtol=1e-12)


def test_no_covariate_is_left():
    _, treat, y = simulated(100)
    people = rs.cohort.Population(treat)
    alone = rs.cohort.fit_outcome(y, people)
    for covariates, code in ((np.zeros((100, 2)), "no_covariates"), (np.ones((100, 1)), None)):
        found = rs.cohort.fit_outcome(y, people, covariates=covariates, penalty="l1")
        assert (found.log_hr, found.lower, found.penalty) == (alone.log_hr, alone.lower, None)
        assert code is None or code in {note.code for note in found.notes}


def test_weights_beside_a_penalty_are_told_of():
    x, treat, y = simulated(100)
    weighted = rs.cohort.weight(rs.cohort.Population(treat, np.linspace(0.2, 0.8, 100)))
    found = rs.cohort.fit_outcome(y, weighted, covariates=x, penalty=rs.L1(3.0))
    assert "weights_as_counts" in {note.code for note in found.notes}
    # Without covariates a penalty has nothing to do.
    assert rs.cohort.fit_outcome(y, weighted, penalty=rs.L1(3.0)).interval == "robust"


# ----------------------------------------------------------------------- likelihood profile


def test_profile_of_matched_pairs_by_hand():
    # Targets fail first in four pairs of five: 4 b - 5 log(1 + e^b).
    time = np.array([1, 2, 1, 3, 2, 5, 4, 3, 1, 9], dtype=float)
    people = rs.cohort.Population(np.tile([1, 0], 5), np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 2))
    y = rs.Surv(time, np.ones(10, dtype=int))
    pairs = rs.cohort.match(people)
    grid = rs.cohort.fit_outcome(y, pairs, profile="grid").profile
    ends = np.log([0.1, 10])
    assert_allclose(grid.log_hr, ends[0] + (ends[1] - ends[0]) * np.arange(8) / 7, atol=1e-12)
    fine = rs.cohort.fit_outcome(y, pairs, profile="adaptive").profile
    assert_allclose([fine.log_hr[0], fine.log_hr[-1]], ends)
    for own in (grid, fine):
        b = own.log_hr
        assert_allclose(own.log_likelihood, 4 * b - 5 * np.log1p(np.exp(b)), rtol=1e-9)
        assert_allclose(own.derivative, 4 - 5 / (1 + np.exp(-b)), rtol=0, atol=1e-8)
    assert rs.cohort.fit_outcome(y, pairs).profile is None


def test_profile_of_an_infinite_estimate():
    people = rs.cohort.Population([1, 0, 1, 0])
    y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0])
    found = rs.cohort.fit_outcome(y, people, profile="grid")
    assert found.status == "events_in_one_arm"
    r = np.exp(found.profile.log_hr)
    assert_allclose(found.profile.log_likelihood, np.log(r**2 / (2 * (r + 1) ** 2)), rtol=1e-9)


# -------------------------------------------------------------------------------- resamples


def test_units_are_drawn_whole():
    unit = np.array([5, 9, 5, 7, 9, 2])
    drawn = np.array(list(counts_of_resamples(unit, 4000, 3)))
    assert (drawn[:, 0] == drawn[:, 2]).all()
    assert (drawn[:, 1] == drawn[:, 4]).all()
    units = drawn[:, [0, 1, 3, 5]]
    assert (units.sum(axis=1) == 4).all()
    # Each count is binomial (4, 1/4).
    assert_allclose(units.mean(axis=0), 1, atol=4 * np.sqrt(0.75 / 4000))
    assert_allclose(units.var(axis=0), 0.75, rtol=0.15)


def scores(x, t):
    """Shares of the target by the first covariate: a score that every resample has anew."""
    return np.where(x[:, 0] == 1, t[x[:, 0] == 1].mean(), t[x[:, 0] == 0].mean())


def test_scores_are_made_anew_in_each_resample():
    x, treat, y = simulated()

    def readjust(rows):
        people = rs.cohort.Population(treat[rows], scores(x[rows], treat[rows]))
        return rs.cohort.weight(people, "ate")

    everyone = readjust(np.arange(400))
    options = {"interval": "bootstrap", "replicates": 79, "seed": 5}
    found = rs.cohort.fit_outcome(y, everyone, readjust=readjust, **options)
    draws = []
    for counts in counts_of_resamples(np.arange(400), 79, 5):
        rows = np.repeat(np.arange(400), counts)
        weight = readjust(rows).weight
        model = rs.Cox().fit(treat[rows, None].astype(float), y[rows], sample_weight=weight)
        draws.append(model.coef_[0])
    # The (B + 1) p-th of the ordered draws, as of resamples that are not adjusted anew.
    ordered = np.sort(draws)
    assert_allclose([found.lower, found.upper], ordered[[1, 77]], rtol=1e-6)
    assert_allclose(found.se, (ordered[77] - ordered[1]) / (2 * 1.959963984540054), rtol=1e-6)
    plain = rs.cohort.fit_outcome(y, everyone)
    assert (found.log_hr, found.se_robust) == (plain.log_hr, plain.se_robust)
    # Estimated scores take noise away, which the sandwich with known scores does not see.
    assert 0.5 * plain.se < found.se < 1.2 * plain.se


def test_resamples_without_an_estimate_are_counted():
    treat, time = np.array([1, 0, 0, 0, 0, 0, 0]), np.arange(1.0, 8)
    y = rs.Surv(time[::-1].copy(), np.ones(7, dtype=int))
    found = rs.cohort.fit_outcome(
        rs.Surv(np.array([4.0, 1, 2, 3, 5, 6, 7]), y["event"]),
        rs.cohort.Population(treat),
        interval="bootstrap",
        replicates=40,
        readjust=lambda rows: rs.cohort.Population(treat[rows]),
    )
    note = next(note for note in found.notes if note.code == "replicates_left_out")
    lacking = sum(not counts[0] for counts in counts_of_resamples(np.arange(7), 40, 1))
    assert lacking > 1
    assert int(note.message.split()[0]) >= lacking
    # Fewer than 39 are left, and the ends of an interval would lie beyond all of them.
    assert np.isnan([found.lower, found.upper, found.se]).all()
    assert "no_interval" in [note.code for note in found.notes]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"readjust": lambda rows: None}, "add `interval='bootstrap'`"),
        ({"profile": "fine"}, "`profile`"),
        ({"folds": 1}, "`folds`"),
        ({"repeats": 0.5}, "`repeats`"),
        ({"replicates": 1}, "`replicates`"),
        ({"interval": "bootstrap", "replicates": 38}, "needs at least 39 replicates"),
        ({"censoring_group": "arm"}, "`censoring_group` belongs to Fine and Gray's model"),
        ({"censoring_weights": "case"}, "`censoring_weights` belongs to Fine and Gray's model"),
        (
            {"interval": "bootstrap", "readjust": lambda rows: None, "covariates": np.ones((4, 1))},
            "have no covariates",
        ),
        (
            {
                "interval": "bootstrap",
                "replicates": 39,
                "readjust": lambda rows: rs.cohort.Population([1, 0, 1]),
            },
            "was given 4 rows, but its adjustment has 3",
        ),
    ],
)
def test_messages(options, words):
    y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1])
    with pytest.raises(rs.InputError, match=words):
        rs.cohort.fit_outcome(y, rs.cohort.Population([1, 0, 0, 1]), **options)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"checkpoint": "no/such/folder/work"}, "does not exist"),
        ({"seed": -1}, "`seed` must be a whole number of at least 0"),
        ({"penalty": rs.L1(unpenalized=["zz"])}, "zz"),
        ({"penalty": rs.L1(factor={"nope": 2.0})}, "nope"),
    ],
)
def test_mistakes_are_no_reason_to_leave_the_covariates_out(wrong, words):
    rng = np.random.default_rng(3)
    x = (rng.random((120, 3)) < 0.4).astype(float)
    people = rs.cohort.Population(rng.integers(0, 2, 120), np.full(120, 0.5))
    y = rs.Surv(rng.integers(1, 90, 120), rng.integers(0, 2, 120))
    options = {"covariates": x, "penalty": "l1", "folds": 3, "repeats": 1}
    with pytest.raises(rs.InputError, match=words):
        rs.cohort.fit_outcome(y, people, **options | wrong)
