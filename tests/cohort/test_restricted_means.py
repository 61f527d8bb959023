"""Restricted means of arms: R's areas and variances, by hand, strata, resamples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from cohort.golden import table
from cohort.test_curves import competing_outcome, competing_people
from reference import GOLDEN, read_json
from riskset.cohort.resampling import counts_of_resamples

R = read_json(GOLDEN / "restricted_mean.json")
EXACT = {"rtol": 1e-10}


def golden_adjustment(name):
    own = table("cr_cohort")
    person = (own["id"] + 1) // 2 if "person" in name else own["id"]
    people = rs.cohort.Population(own["treat"], own["ps"], row_id=own["id"], person_id=person)
    if name.startswith("ate"):
        return rs.cohort.weight(people, "ate")
    return rs.cohort.match(people) if name == "matched" else people


@pytest.mark.parametrize("name", ["crude", "ate", "ate_cluster_person", "matched"])
def test_competing_events_as_in_r(name):
    block = R["competing"][name]
    times = [row["time"] for row in block]
    found = rs.cohort.restricted_mean(competing_outcome(), golden_adjustment(name), times)
    assert found.measures == ("restricted_mean", "time_lost", "competing_time_lost")
    for k, row in enumerate(block):
        for arm in ("target", "comparator"):
            assert_allclose(getattr(found, arm)[:, k], row[arm], **EXACT)
            assert_allclose(getattr(found, f"{arm}_se")[:, k], row[f"{arm}_se"], **EXACT)
        assert_allclose(found.difference_se[:, k], row["difference_se"], **EXACT)
        assert_allclose(found.log_ratio_se[:, k], row["log_ratio_se"], **EXACT)
    assert_allclose(found.target.sum(axis=0), times)


def test_strata_as_in_r():
    own = table("cr_cohort")
    strata = rs.cohort.stratify(competing_people(), 5)
    assert_array_equal(strata.set_id, own["stratum"])
    y = rs.Surv(own["time"], (own["status"] > 0).astype(int))
    block = R["standardized"]
    times = [row["time"] for row in block]
    found = rs.cohort.restricted_mean(y, strata, times, reading="standardized")
    assert found.measures == ("restricted_mean", "time_lost")
    for k, row in enumerate(block):
        assert_allclose([found.target[0, k], found.comparator[0, k]], row["mean"], **EXACT)
        assert_allclose([found.target_se[0, k], found.comparator_se[0, k]], row["se"], **EXACT)
        assert_allclose(found.difference_se[0, k], row["difference_se"], **EXACT)
    assert_allclose(found.difference[1], -found.difference[0])


@pytest.mark.parametrize(
    ("weighting", "shares"),
    [(None, [5, 4]), ("att", [2, 3]), ("atu", [3, 1]), ("equal", [1, 1])],
)
def test_strata_by_hand(weighting, shares):
    treat = np.array([1, 1, 0, 0, 0, 1, 1, 1, 0])
    score = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9])
    time = np.array([2.0, 6, 1, 4, 9, 3, 5, 8, 7])
    people = rs.cohort.Population(treat, score)
    strata = rs.cohort.stratify(people, k=2, weighting=weighting)
    y = rs.Surv(time, np.ones(9, dtype=int))
    found = rs.cohort.restricted_mean(y, strata, 6, reading="standardized")
    share = np.array(shares) / sum(shares)
    free = np.minimum(time, 6)
    stratum = np.repeat([0, 1], [5, 4])
    means = [[free[(treat == a) & (stratum == s)].mean() for s in (0, 1)] for a in (1, 0)]
    assert_allclose([found.target[0, 0], found.comparator[0, 0]], means @ share)
    # Without censoring, a row moves its mean by its distance from it, and the shares.
    counts = {"att": treat == 1, "atu": treat == 0}.get(weighting, np.ones(9, dtype=bool))
    influence = []
    for a, of_arm in zip((1, 0), means, strict=True):
        moved = np.zeros(9)
        for s in (0, 1):
            own = (treat == a) & (stratum == s)
            moved[own] = share[s] * (free[own] - of_arm[s]) / own.sum()
            if weighting != "equal":
                here = counts & (stratum == s)
                moved[here] += (of_arm[s] - of_arm @ share) / counts.sum()
        influence.append(moved)
    assert_allclose(found.target_se[0, 0], np.sqrt((influence[0] ** 2).sum()))
    error = np.sqrt(((influence[0] - influence[1]) ** 2).sum())
    assert_allclose(found.difference_se[0, 0], error)


def simulated(seed=2, n=300):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.2, 0.8, n)
    treat = (rng.random(n) < score).astype(int)
    time = np.ceil(rng.exponential(40 + 40 * score))
    return rs.Surv(time, rng.integers(0, 3, n)), rs.cohort.Population(treat, score)


@pytest.mark.parametrize("reading", ["marginal", "standardized"])
def test_resamples_agree_with_the_robust_variance(reading):
    y, people = simulated()
    strata = rs.cohort.stratify(people, 3)
    ways = {"reading": reading, "times": [20, 60]}
    robust = rs.cohort.restricted_mean(y, strata, **ways)
    drawn = rs.cohort.restricted_mean(y, strata, **ways, interval="bootstrap", replicates=600)
    assert_allclose(drawn.difference, robust.difference, rtol=1e-12)
    assert_allclose(drawn.ratio, robust.ratio, rtol=1e-12)
    # The standard deviation of 600 resamples has an error of 3 %.
    assert_allclose(drawn.difference_se, robust.difference_se, rtol=0.15)
    assert_allclose(drawn.target_se, robust.target_se, rtol=0.15)
    assert_allclose(drawn.log_ratio_se, robust.log_ratio_se, rtol=0.2)
    error = robust.difference_se
    assert (np.abs(drawn.difference_lower - robust.difference_lower) < error / 2).all()
    assert (np.abs(drawn.difference_upper - robust.difference_upper) < error / 2).all()


def test_matched_sets_are_drawn_whole():
    people = rs.cohort.Population([1, 0, 1, 0, 1, 0], [0.2, 0.2, 0.5, 0.5, 0.8, 0.8])
    time = np.array([1.0, 5, 2, 5, 5, 3])
    matched = rs.cohort.match(people)
    y = rs.Surv(time, np.ones(6, dtype=int))
    found = rs.cohort.restricted_mean(y, matched, 4, interval="bootstrap", replicates=200, seed=4)
    of_pairs = np.minimum(time, 4)[::2] - np.minimum(time, 4)[1::2]
    rows = np.array(list(counts_of_resamples(matched.set_id, 200, 4)))
    means = rows[:, ::2] @ of_pairs / 3
    assert_allclose(found.difference[0], of_pairs.mean())
    assert_allclose(found.difference_se[0], means.std(ddof=1), rtol=1e-12)
    limits = [found.difference_lower[0, 0], found.difference_upper[0, 0]]
    assert_allclose(limits, np.quantile(means, [0.025, 0.975]))
    # The robust variance is that of the mean of the pairs, too.
    robust = rs.cohort.restricted_mean(y, matched, 4)
    assert_allclose(robust.difference_se[0], of_pairs.std() / np.sqrt(3))


def test_weights_made_anew():
    treat, x = np.tile([1, 1, 0, 0, 0], 20), np.tile([1, 0, 1, 0, 0], 20)
    y = rs.Surv(np.where(x == 1, 1.0, 4.0), np.ones(100, dtype=int))

    def readjust(rows):
        t, own = treat[rows], x[rows]
        score = np.where(own == 1, t[own == 1].mean(), t[own == 0].mean())
        return rs.cohort.weight(rs.cohort.Population(t, score), "ate")

    made = readjust(np.arange(100))
    options = {"interval": "bootstrap", "replicates": 40}
    found = rs.cohort.restricted_mean(y, made, 3, readjust=readjust, **options)
    # x alone decides, and every resample balances it exactly; fixed weights do not.
    for name in ("difference", "difference_se", "difference_lower", "log_ratio_se"):
        assert_allclose(getattr(found, name), 0, atol=1e-12)
    fixed = rs.cohort.restricted_mean(y, made, 3, **options)
    assert (fixed.difference_se > 0.05).all()


def test_a_person_with_several_rows_counts_once():
    y, people = simulated()
    twice = np.repeat(np.arange(people.n_rows), 2)
    again = rs.cohort.Population(people.treatment[twice], people.score[twice], person_id=twice)
    one = rs.cohort.restricted_mean(y, rs.cohort.weight(people, "ate"), [30, 60])
    two = rs.cohort.restricted_mean(y[twice], rs.cohort.weight(again, "ate"), [30, 60])
    for name in ("target_se", "difference_lower", "ratio_upper", "ratio_p"):
        assert_allclose(getattr(two, name), getattr(one, name), rtol=1e-10)


def test_order_of_rows_does_not_matter():
    y, people = simulated()
    order = np.random.default_rng(3).permutation(people.n_rows)
    other = rs.cohort.Population(people.treatment[order], people.score[order])
    for reading in ("marginal", "standardized"):
        found = [
            rs.cohort.restricted_mean(own, rs.cohort.stratify(who, 3), 30, reading=reading)
            for own, who in ((y, people), (y[order], other))
        ]
        for name in ("target", "comparator_se", "difference_lower", "ratio_p"):
            assert_allclose(getattr(found[1], name), getattr(found[0], name), rtol=1e-10)


def test_the_measures_are_those_of_the_curves():
    y, people = simulated()
    weighted = rs.cohort.weight(people, "ato")
    found = rs.cohort.restricted_mean(y, weighted, [30, 60])
    arm = np.where(people.is_target, "target", "comparator")
    means = rs.restricted_mean(y, arm, weighted.weight, times=[30, 60])
    assert_allclose(found.target[0], means["target"].mean)
    assert_allclose(found.comparator[1:], means["comparator"].time_lost)
    assert_allclose(found.target_se[1:], means["target"].time_lost_standard_error)
    for q, cause in enumerate((None, 1, 2)):
        for kind in ("difference", "ratio"):
            other = getattr(means, kind)("target", "comparator", cause)
            assert_allclose(getattr(found, kind)[q], other.estimate)
            assert_allclose(getattr(found, f"{kind}_upper")[q], other.upper)
            assert_allclose(getattr(found, f"{kind}_p")[q], other.p_value, atol=1e-12)


def test_a_horizon_after_the_end_of_follow_up_is_not_known():
    treat = np.repeat([1, 0], 3)
    y = rs.Surv([1.0, 2.0, 3.0, 4.0, 5.0, 9.0], [1, 0, 0, 1, 0, 0])
    people = rs.cohort.Population(treat)
    for interval in ("robust", "bootstrap"):
        found = rs.cohort.restricted_mean(y, people, [3, 5], interval=interval, replicates=40)
        assert_allclose(found.target[0], [1 + 2 * 2 / 3, np.nan])
        assert_allclose(found.comparator[0], [3, 4 + 2 / 3])
        for name in ("difference", "difference_se", "difference_lower", "ratio", "ratio_p"):
            assert np.isnan(getattr(found, name)[0, 1])
        assert (found.target_end, found.comparator_end) == (3, 9)
        assert found.notes[0].message == (
            "the follow-up of the target ends after 3 days, so its restricted means up to day 5 "
            "are not known; the largest possible horizon is 3 days."
        )
        assert found.notes[0].message in repr(found)
    assert_array_equal(found.target_at_risk, [1, 0])
    assert_array_equal(found.comparator_outcomes, [0, 1])


def test_a_stratum_that_ends_early_and_one_without_an_arm():
    y, people = simulated()
    strata = rs.cohort.stratify(people, 3)
    first = strata.set_id == 1
    time = np.where(first, np.minimum(y["time"], 25), y["time"])
    found = rs.cohort.restricted_mean(
        rs.Surv(time, np.where(first & (y["time"] > 25), 0, y["event"])),
        strata,
        [25, 30],
        reading="standardized",
    )
    assert np.isnan(found.target[0]).tolist() == [False, True]
    assert "of a stratum ends after 25 days" in found.notes[0].message
    some = rs.cohort.restrict(strata, ~(first & people.is_target), "no target in one stratum")
    found = rs.cohort.restricted_mean(y, some, 20, reading="standardized")
    assert found.notes[0].message == "1 stratum has people of one arm alone, and is left out."
    without = rs.cohort.restrict(strata, ~first, "without that stratum")
    other = rs.cohort.restricted_mean(y, without, 20, reading="standardized")
    assert_allclose(found.difference, other.difference)
    assert_allclose(found.difference_se, other.difference_se)


def test_resamples_that_lack_an_arm():
    people = rs.cohort.Population([1, 0, 0, 0])
    y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0])
    found = rs.cohort.restricted_mean(y, people, 3, interval="bootstrap", replicates=40)
    drawn = np.array(list(counts_of_resamples(np.arange(4), 40, 1)))
    lacking = (drawn[:, 0] == 0) | (drawn[:, 0] == 4)
    assert found.n_left_out == lacking.sum() > 0
    assert "resamples left out" in repr(found)
    frame = found.to_frame("pyarrow")
    assert frame.column("measure").to_pylist() == ["restricted_mean", "time_lost"]
    assert frame.column("target_outcomes").to_pylist() == [1, 1]


def test_what_is_refused():
    y = rs.Surv([1.0, 2.0], [1, 1])
    people = rs.cohort.Population([1, 0])
    with pytest.raises(rs.CohortError, match="cannot be compared"):
        rs.cohort.restricted_mean(y, rs.cohort.Population([1, 1]), 1)
    with pytest.raises(rs.CohortError, match="needs strata"):
        rs.cohort.restricted_mean(y, people, 1, reading="standardized")
    with pytest.raises(rs.InputError, match="does not use any"):
        rs.cohort.restricted_mean(y, people, 1, readjust=lambda rows: people)
    with pytest.raises(rs.InputError, match="`times` must be positive"):
        rs.cohort.restricted_mean(y, people, [0])
    with pytest.raises(rs.InputError, match="`interval`"):
        rs.cohort.restricted_mean(y, people, 1, interval="wald")


def test_what_may_be_shared():
    time = np.r_[np.arange(1.0, 21), np.arange(1.0, 21)]
    event = np.r_[np.ones(20), np.tile([1, 0], 10)].astype(int)
    people = rs.cohort.Population(np.repeat([1, 0], 20))
    found = rs.cohort.restricted_mean(rs.Surv(time, event), people, [2, 12, 18, 40])
    assert found.comparator_outcomes.tolist() == [1, 6, 9, 10]
    assert found.target_at_risk.tolist() == [19, 9, 3, 0]
    shown = rs.cohort.share_restricted_means(found)
    assert [value is None for value in shown["target"][:4]] == [True, False, True, True]
    assert [value is None for value in shown["difference"][:3]] == [True, False, True]
    assert np.isnan(shown["difference"][3])  # the comparator is not followed so long
    assert shown["ratio"][5] == found.ratio[1, 1]
    assert not any("at_risk" in name or "outcomes" in name for name in shown)
    blind = rs.cohort.share_restricted_means(found, blind=True)
    for name in ("target", "comparator_se", "difference", "ratio_p"):
        assert set(blind[name]) == {None}


def test_few_competing_events_hide_the_time_without_any_event():
    n = 60
    treat = np.tile([1, 0], n // 2)
    status = np.where(np.arange(n) % 4 < 2, 1, 0)
    status[np.arange(n) % 20 == 2] = 2  # 3 of the target
    y = rs.Surv(np.arange(1.0, n + 1), status)
    found = rs.cohort.restricted_mean(y, rs.cohort.Population(treat), 50)
    assert found.target_competing.tolist() == [3]
    shown = rs.cohort.share_restricted_means(found)
    assert [value is None for value in shown["target"]] == [True, False, True]
    assert [value is None for value in shown["comparator"]] == [False, False, False]
    assert [value is None for value in shown["difference"]] == [True, False, True]


def test_a_cause_that_nobody_has_is_noted():
    people = rs.cohort.Population([1, 1, 1, 0, 0, 0])
    y = rs.Surv([1.0, 2, 3, 2, 3, 4], [1, 2, 0, 1, 2, 0])
    for found in (
        rs.cohort.restricted_mean(y, people, 2, cause=9),
        rs.cohort.risk_difference(y, people, 2, cause=9, replicates=50),
    ):
        assert [note.code for note in found.notes] == ["no_outcome"]
        assert "nobody who is left has the outcome" in repr(found)
    assert rs.cohort.restricted_mean(y, people, 2, cause=1).notes == ()


@pytest.mark.parametrize("function", [rs.cohort.restricted_mean, rs.cohort.standardize])
def test_horizons_whose_square_is_no_number_are_refused(function):
    people = rs.cohort.Population([1, 1, 0, 0])
    y = rs.Surv([1e300, 3e300, 2e300, 4e300], [1, 0, 1, 0])
    more = [] if function is rs.cohort.restricted_mean else [[[0], [1], [0], [1]]]
    with pytest.raises(rs.InputError, match=r"at most 1e\+150, .*but 2e\+300 is among them"):
        function(y, people, *more, [1, 2e300])
    with pytest.raises(rs.InputError, match="at most"):
        rs.restricted_mean(y, times=[2e300])
