"""What an outcome model says where there is no number, and what it refuses."""

from typing import get_args

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.cohort.effects.estimate import REASONS, EstimateStatus


def small(treat, time, event, **options):
    people = rs.cohort.Population(treat, options.pop("score", None))
    return rs.cohort.fit_outcome(rs.Surv(time, event), people, **options)


def test_nobody_left():
    people = rs.cohort.match(rs.cohort.Population([1, 0], [0.9, 0.1]), caliper=0.01)
    found = rs.cohort.fit_outcome(rs.Surv([1.0, 2.0], [1, 1]), people)
    assert found.status == "no_people"
    assert found.sensitivity.status == "no_people"
    row = found.columns()
    assert row["hr"] is None
    assert row["target_persons"] == 0


def test_no_rows_at_all():
    people, nothing = rs.cohort.Population([], []), rs.Surv([], [])
    for model in ("cox", "finegray"):
        for options in ({}, {"covariates": np.zeros((0, 2))}, {"interval": "robust"}):
            found = rs.cohort.fit_outcome(nothing, people, model, **options)
            assert found.status == "no_people"
            assert (found.target.persons, found.comparator.outcomes) == (0, 0)
            assert found.columns()["hr"] is None
    for made in (rs.cohort.match(people), rs.cohort.weight(people), rs.cohort.stratify(people)):
        assert rs.cohort.fit_outcome(nothing, made).status == "no_people"
    with pytest.raises(rs.CohortError, match="no people are left") as caught:
        rs.cohort.fit_outcome(nothing, people, strict=True)
    assert caught.value.code == "no_people"
    for curves in (rs.cohort.survival, rs.cohort.incidence):
        with pytest.raises(rs.CohortError) as caught:
            curves(nothing, people)
        assert caught.value.code == "EmptyArm"
    assert np.isnan(rs.cohort.followup(nothing, people).target).all()
    # Rows on one side only are a mistake.
    with pytest.raises(rs.CohortError, match="must have the 0 rows"):
        rs.cohort.fit_outcome(rs.Surv([1.0], [1]), people)
    with pytest.raises(rs.InputError, match="`y` has no rows"):
        rs.cohort.fit_outcome(nothing, rs.cohort.Population([1, 0]))


def test_one_arm_empty():
    found = small([1, 1], [1.0, 2.0], [1, 1])
    assert found.status == "one_arm_empty"
    assert found.target.outcomes == 2


def test_no_events():
    found = small([1, 0], [1.0, 2.0], [0, 2])
    assert found.status == "no_events"
    assert found.mdrr == np.inf
    assert found.comparator.competing == 1


def test_events_in_one_arm_have_a_bound():
    found = small([1, 0, 1, 0], [1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0])
    assert found.status == "events_in_one_arm"
    assert found.log_hr == np.inf
    assert found.upper == np.inf
    assert np.isnan(found.se)
    assert np.isnan(found.p)
    # Likelihood of the two events at ratio r: r / (2r + 2) and r / (r + 1).
    r = np.exp(found.lower)
    fall = -np.log(r / (2 * r + 2) * r / (r + 1)) + np.log(1 / 2)
    assert_allclose(fall, 3.841458820694124 / 2, rtol=1e-6)
    weighted = rs.cohort.weight(rs.cohort.Population([1, 0, 1, 0], [0.5, 0.4, 0.3, 0.6]))
    other = rs.cohort.fit_outcome(rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0]), weighted)
    assert other.status == "events_in_one_arm"
    assert np.isnan(other.lower)


def test_no_stratum_with_events_and_both_arms():
    people = rs.cohort.Population([1, 0, 1, 0], [0.1, 0.2, 0.7, 0.8])
    # The event is in a stratum of its own: the pair has none.
    y = rs.Surv([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 1])
    matched = rs.cohort.restrict(people, [True, True, False, True], "x")
    strata = rs.cohort.Adjustment(
        "stratification", "ate", people, matched.weight, np.array([1, 1, -1, 2])
    )
    found = rs.cohort.fit_outcome(y, strata)
    assert found.status == "no_informative_strata"
    assert found.informative_strata == 0
    # There is a stratum with both, but only one of them was at risk at the event.
    late = rs.cohort.fit_outcome(
        rs.Surv([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 0]), rs.cohort.match(people, caliper=None)
    )
    assert late.status == "no_informative_strata"


def test_nobody_to_compare_at_the_events():
    found = small([1, 1, 0, 0], [1.0, 1.0, 2.0, 3.0], [0, 0, 1, 1])
    assert found.status == "not_estimable"


def test_not_converged(monkeypatch):
    import riskset.cohort.effects.outcome_data as outcome_data

    cox = rs.Cox
    monkeypatch.setattr(outcome_data, "Cox", lambda *a, **k: cox(*a, **k, max_iter=1))
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 1)) * 3
    found = small(
        np.arange(60) % 2,
        np.exp(-x[:, 0] + rng.normal(size=60)) + 0.01,
        np.ones(60, dtype=int),
        covariates=x,
        tol=1e-12,
    )
    assert found.status == "not_converged"
    assert np.isnan(found.log_hr)


def test_notes_of_few_events_and_one_stratum():
    people = rs.cohort.Population([1, 0, 1, 0], [0.5, 0.5, 0.5, 0.5])
    found = rs.cohort.fit_outcome(
        rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1]), rs.cohort.stratify(people, 2)
    )
    codes = [note.code for note in found.notes]
    assert "few_events" in codes
    assert "strata_merged" in codes
    assert found.status == "ok"


def test_strict_raises():
    with pytest.raises(rs.CohortError, match="status 'no_events'") as caught:
        small([1, 0], [1.0, 2.0], [0, 0], strict=True)
    assert caught.value.code == "no_events"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "probit"}, "`model`"),
        ({"reading": "crude"}, "`reading`"),
        ({"reading": "stratified"}, "needs sets"),
        ({"interval": "exact"}, "`interval`"),
        ({"censoring_group": "sex"}, "`censoring_group`"),
        ({"censoring_group": "stratum", "model": "finegray"}, "needs strata"),
        ({"level": 95}, "`level`"),
    ],
)
def test_messages(options, words):
    with pytest.raises(rs.InputError, match=words):
        small([1, 0], [1.0, 2.0], [1, 1], **options)


def test_a_broken_adjustment():
    people = rs.cohort.Population([1, 0])
    broken = rs.cohort.Adjustment("weighting", "ate", people, np.array([1.0, np.nan]))
    with pytest.raises(rs.CohortError, match="finite") as caught:
        rs.cohort.fit_outcome(rs.Surv([1.0, 2.0], [1, 1]), broken)
    assert caught.value.code == "BadAdjustment"


def test_every_status_has_a_reason():
    ok = small([1, 0, 1, 0], [1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    assert (ok.status, ok.reason) == ("ok", None)
    for status in get_args(EstimateStatus):
        assert status == "ok" or REASONS[status].endswith(".")
    assert "none of the people who are left has the outcome" in repr(
        small([1, 0], [1.0, 2.0], [0, 0])
    )


def test_what_cannot_be_told_apart_is_named():
    treat = np.array([1, 0] * 10)
    time, event = np.arange(1.0, 21), np.ones(20, dtype=int)
    # The covariate is the other arm.
    found = small(treat, time, event, covariates=np.c_[1.0 - treat])
    assert found.status == "not_estimable"
    assert [(n.code, n.columns) for n in found.notes] == [("collinear", ("treatment", "x0"))]
    assert "remove these covariates" in found.reason


def test_sets_with_two_targets():
    people = rs.cohort.Population([1, 1, 0, 0])
    y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    sets = np.array([7, 7, 7, 7])
    made = rs.cohort.Adjustment("matching", "att", people, np.ones(4), sets)
    with pytest.raises(rs.CohortError, match=r"1 matched set has more than one target .*set 7"):
        rs.cohort.fit_outcome(y, made)
    reverse = rs.cohort.Adjustment("matching", "atu", people, np.ones(4), sets)
    with pytest.raises(rs.CohortError, match="more than one comparator") as caught:
        rs.cohort.fit_outcome(y, reverse)
    assert caught.value.code == "BadAdjustment"
    assert caught.value.details == {"sets": [7], "count": 1}
    strata = rs.cohort.Adjustment("stratification", "ate", people, np.ones(4), sets)
    assert rs.cohort.fit_outcome(y, strata).status == "events_in_one_arm"  # and no error


def adjustments(people):
    yield people
    yield rs.cohort.match(people, ratio=2, caliper=None)
    yield rs.cohort.match(people, caliper=0.05)
    yield rs.cohort.stratify(people, 3)
    yield rs.cohort.weight(people, "ato")
    yield rs.cohort.weight(people, "ate", stabilise=True)
    yield rs.cohort.trim(people, symmetric=0.2)


@pytest.mark.parametrize("model", ["cox", "finegray"])
@pytest.mark.parametrize("seed", range(5))
def test_small_data_never_crash(model, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 14))
    treat = rng.integers(0, 2, n)
    people = rs.cohort.Population(treat, rng.uniform(0.1, 0.9, n))
    time = rng.integers(1, 1 + int(rng.integers(1, 8)), n).astype(float)
    y = rs.Surv(time, rng.choice(3, n, p=rng.dirichlet([1, 1, 0.5])))
    x = np.c_[rng.integers(0, 2, n), rng.normal(size=n)].astype(float)
    several = (
        {},
        {"interactions": x[:, :1]},
        {"covariates": x},
        {"covariates": x, "penalty": "l1", "folds": 2, "repeats": 1},
        {"covariates": x, "penalty": rs.L1(1.0), "profile": "grid"},
    )
    for k, adjustment in enumerate(adjustments(people)):
        options = several[(k + seed) % len(several)]
        found = rs.cohort.fit_outcome(y, adjustment, model, **options)
        for one in (found, found.sensitivity):
            if one is None:
                continue
            assert one.status in get_args(EstimateStatus)
            assert np.isfinite(one.log_hr) == (one.status == "ok")
            if one.status == "ok":
                assert one.lower <= one.log_hr + 1e-6 <= one.upper + 2e-6
            one.to_frame("pyarrow")
