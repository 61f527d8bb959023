"""Risk differences: R's curves, resamples by hand, competing events."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from cohort.golden import COMPETING, RHC, rhc_matched, rhc_outcome, rhc_people, rhc_weighted
from cohort.test_curves import competing_outcome, competing_people
from riskset.cohort.resampling import counts_of_resamples


@pytest.mark.parametrize(
    ("make", "block"),
    [
        (rhc_people, RHC["before"]["km"]),
        (lambda: rhc_matched("r4"), RHC["match"]["ratio4"]["km_att_weighted"]),
        (lambda: rhc_weighted("ate_stab"), RHC["weights"]["ate_stab"]["km"]),
    ],
)
def test_risks_as_in_r(make, block):
    times = [row["time"] for row in block["target"]]
    found = rs.cohort.risk_difference(rhc_outcome(), make(), times, replicates=40)
    for arm in ("target", "comparator"):
        expected = [1 - row["survival"] for row in block[arm]]
        assert_allclose(getattr(found, arm), expected, rtol=0, atol=1e-12)
    assert_allclose(found.difference, found.target - found.comparator)


@pytest.mark.parametrize("name", ["crude", "iptw_ate_stab", "matched"])
def test_competing_events_count_as_such(name):
    people = competing_people()
    adjustment = {
        "crude": lambda: people,
        "iptw_ate_stab": lambda: rs.cohort.weight(people, "ate", stabilise=True),
        "matched": lambda: rs.cohort.match(people),
    }[name]()
    block = COMPETING["aalen_johansen"][name]
    times = block["target"]["time"]
    found = rs.cohort.risk_difference(competing_outcome(), adjustment, times, replicates=40)
    for arm in ("target", "comparator"):
        assert_allclose(getattr(found, arm), block[arm]["cif1"], rtol=0, atol=1e-12)


def test_standard_error_of_two_shares():
    # Without censoring the risk is a share, of variance p (1 - p) / n.
    rng = np.random.default_rng(7)
    treat = np.repeat([1, 0], [300, 500])
    time = np.where(rng.random(800) < np.where(treat == 1, 0.3, 0.2), 1.0, 9.0)
    y = rs.Surv(time, np.ones(800, dtype=int))
    found = rs.cohort.risk_difference(y, rs.cohort.Population(treat), 5, replicates=1000)
    p1, p0 = (time[treat == a].tolist().count(1.0) / n for a, n in ((1, 300), (0, 500)))
    assert_allclose(found.difference, p1 - p0, rtol=1e-12)
    se = np.sqrt(p1 * (1 - p1) / 300 + p0 * (1 - p0) / 500)
    assert_allclose(found.se, se, rtol=0.07)  # three standard errors of 1000 resamples
    ends = p1 - p0 + np.array([-1.96, 1.96]) * se
    assert_allclose([found.lower[0], found.upper[0]], ends, rtol=0, atol=se / 4)


def test_matched_sets_are_drawn_whole():
    people = rs.cohort.Population([1, 0, 1, 0, 1, 0], [0.2, 0.2, 0.5, 0.5, 0.8, 0.8])
    y = rs.Surv([1.0, 5, 1, 5, 5, 1], [1, 0, 1, 0, 0, 1])
    matched = rs.cohort.match(people)
    found = rs.cohort.risk_difference(y, matched, [2.0], replicates=200, seed=4)
    # The difference of a pair is 1, 1 or -1, and that of a resample the mean of its pairs.
    of_pairs = np.array([1, 1, -1])
    rows = np.array(list(counts_of_resamples(matched.set_id, 200, 4)))
    means = rows[:, ::2] @ of_pairs / 3
    assert_allclose(found.se, means.std(ddof=1), rtol=1e-12)
    assert_allclose([found.lower[0], found.upper[0]], np.quantile(means, [0.025, 0.975]))
    assert found.difference[0] == pytest.approx(1 / 3)
    assert "by 2: 0.6667 - 0.3333 = 0.3333" in repr(found)


def test_weights_made_anew():
    treat, x = np.tile([1, 1, 0, 0, 0], 20), np.tile([1, 0, 1, 0, 0], 20)
    y = rs.Surv(np.where(x == 1, 1.0, 4.0), np.ones(100, dtype=int))

    def readjust(rows):
        t, own = treat[rows], x[rows]
        score = np.where(own == 1, t[own == 1].mean(), t[own == 0].mean())
        return rs.cohort.weight(rs.cohort.Population(t, score), "ate")

    made = readjust(np.arange(100))
    found = rs.cohort.risk_difference(y, made, 2, replicates=40, readjust=readjust)
    # x alone decides, and every resample balances it exactly; fixed weights do not.
    assert_allclose([found.difference[0], found.se[0], found.lower[0]], 0, atol=1e-12)
    fixed = rs.cohort.risk_difference(y, made, 2, replicates=40)
    assert fixed.se[0] > 0.05


def test_frames_and_resamples_that_lack_an_arm():
    people = rs.cohort.Population([1, 0, 0, 0])
    y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0])
    found = rs.cohort.risk_difference(y, people, [0.5, 2.5], replicates=40)
    drawn = np.array(list(counts_of_resamples(np.arange(4), 40, 1)))
    lacking = (drawn[:, 0] == 0) | (drawn[:, 0] == 4)
    assert found.n_left_out == lacking.sum() > 0
    assert found.to_frame("pyarrow").column("difference").to_pylist() == [0.0, pytest.approx(2 / 3)]
    assert "resamples left out" in repr(found)


def test_what_is_refused():
    y = rs.Surv([1.0, 2.0], [1, 1])
    with pytest.raises(rs.CohortError, match="cannot be compared") as caught:
        rs.cohort.risk_difference(y, rs.cohort.Population([1, 1]), 1)
    assert caught.value.code == "EmptyArm"
    with pytest.raises(rs.InputError, match="`replicates`"):
        rs.cohort.risk_difference(y, rs.cohort.Population([1, 0]), 1, replicates=1)
    pair = rs.cohort.Population([1, 0])
    with pytest.raises(rs.CohortError, match="at least 39 replicates, but there are 2"):
        rs.cohort.risk_difference(y, pair, 1, replicates=2)
    with pytest.raises(rs.CohortError, match="at least 39 replicates, but there are 2"):
        rs.cohort.restricted_mean(y, pair, 1, interval="bootstrap", replicates=2)
    rs.cohort.restricted_mean(y, pair, 1, replicates=2)  # robust: there are no percentiles
    with pytest.raises(rs.InputError, match="`level`"):
        rs.cohort.risk_difference(y, rs.cohort.Population([1, 0]), 1, level=95)


def ninety_days(last_event=False):
    """Both arms followed up to day 90 at most; on it some of the target may all have the event."""
    rng = np.random.default_rng(3)
    treat = np.repeat([1, 0], 200)
    time = np.minimum(rng.geometric(0.01, 400), 90)
    event = (time < 90).astype(int)
    if last_event:
        event[treat == 1] = 1
    return rs.Surv(time, event), rs.cohort.Population(treat)


def test_a_risk_after_the_end_of_follow_up_is_not_known():
    y, people = ninety_days()
    found = rs.cohort.risk_difference(y, people, [89, 90, 90.5, 365], replicates=50)
    for name in ("target", "comparator", "difference", "se", "lower", "upper"):
        assert np.isnan(getattr(found, name)).tolist() == [False, False, True, True]
    assert (found.target_at_risk[2:] == 0).all()
    assert found.n_left_out == 0
    # The last of nobody's events is at 89 or before.
    assert found.target[0] == found.target[1]
    assert [note.code for note in found.notes] == ["follow_up_ends"] * 2
    assert found.notes[0].message == (
        "the follow-up of the target ends after 90 days, so its risk by day 90.5, 365 is not known."
    )
    assert "comparator ends after 90 days" in repr(found)
    known = rs.cohort.risk_difference(y, people, [89, 90], replicates=50)
    assert known.notes == ()
    assert_allclose(known.lower, found.lower[:2])
    shared = rs.cohort.share_risks(found)
    assert np.isnan(shared["target"][3])
    assert shared["target_at_risk"][3] == 0


def test_a_risk_that_has_reached_1_stays_there():
    y, people = ninety_days(last_event=True)
    found = rs.cohort.risk_difference(y, people, [90, 365], replicates=50)
    assert_allclose(found.target, 1, rtol=1e-14)
    assert np.isnan(found.comparator).tolist() == np.isnan(found.difference).tolist()
    assert np.isnan(found.difference).tolist() == [False, True]
    (note,) = found.notes
    assert "comparator ends after 90 days" in note.message


def test_an_arm_that_ends_earlier_has_no_risk_alone():
    treat = np.repeat([1, 0], 3)
    y = rs.Surv([1.0, 2.0, 3.0, 4.0, 5.0, 9.0], [1, 0, 0, 1, 0, 0])
    found = rs.cohort.risk_difference(y, rs.cohort.Population(treat), [3, 5], replicates=40)
    assert_allclose(found.target, [1 / 3, np.nan])
    assert_allclose(found.comparator, [0, 1 / 3])
    assert_allclose(found.difference, [1 / 3, np.nan])
    # Curves of the arms, too.
    columns = rs.cohort.survival(y, rs.cohort.Population(treat)).columns([3, 5])
    assert_allclose(columns["survival"], [2 / 3, np.nan, 1, 2 / 3])
    assert np.isnan(columns["lower"]).tolist() == [False, True, False, False]


def test_nobody_has_any_event():
    y = rs.Surv([1.0, 2.0, 1.0, 3.0], [0, 0, 0, 0])
    people = rs.cohort.Population([1, 1, 0, 0])
    columns = rs.cohort.incidence(y, people).columns([1.0])
    assert columns["incidence"].tolist() == [0, 0]
    assert rs.cohort.survival(y, people).columns([1.0])["survival"].tolist() == [1, 1]


def test_robust_errors_are_those_of_the_curves():
    people = competing_people()
    y, times = competing_outcome(), np.array([100.0, 700.0])
    weighted = rs.cohort.weight(people, "ate")
    curves = rs.cohort.incidence(y, weighted)
    found = rs.cohort.risk_difference(y, weighted, times, interval="robust")
    at = [curves.curves[arm].columns(times) for arm in ("target", "comparator")]
    own = [c["standard_error"][c["cause"] == 1] for c in at]
    assert_allclose(found.se, np.hypot(*own))
    assert found.n_left_out == 0
    with pytest.raises(rs.InputError, match="does not use any"):
        rs.cohort.risk_difference(y, weighted, times, interval="robust", readjust=lambda rows: None)
