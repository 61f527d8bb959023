"""Restricted means by hand, against R, by equivalence, and by differences of the estimate."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri
from scipy.stats import norm

import riskset as rs
from reference import GOLDEN, read_json, read_table
from riskset.curves.followup import Followup
from riskset.curves.life_table import LifeTable
from riskset.curves.restricted_areas import RestrictedCurves

R = read_json(GOLDEN / "restricted_mean.json")
EXACT = {"rtol": 1e-12}


def random_rows(seed, n=80, *, late=False):
    rng = np.random.default_rng(seed)
    time, event = rng.integers(1, 15, n).astype(float), rng.integers(0, 3, n)
    entry = None
    if late:
        entry = np.where(rng.random(n) < 0.4, time - rng.integers(1, 6, n), 0).clip(0)
        entry[: n // 4] = 0
    return time, event, entry, rng.integers(0, 2, n), rng.uniform(0.2, 3, n)


# ------------------------------------------------------------------------------------ by hand


def test_one_kind_of_event_by_hand():
    # At 2 one of 4 fails; at 3 one is censored; at 5 one of 2; at 7 the last is censored.
    found = rs.restricted_mean(rs.Surv([2.0, 3, 5, 7], [1, 0, 1, 0]), times=[1, 4, 6])["all"]
    # S is 1 to 2, 3/4 to 5 and 3/8 to 7.
    assert_allclose(found.mean, [1, 2 + 3 / 4 * 2, 2 + 3 / 4 * 3 + 3 / 8], rtol=1e-15)
    early, late = 1 / (4 * 3), 1 / (2 * 1)  # d / (Y (Y - d))
    variance = [0, (3 / 2) ** 2 * early, (9 / 4 + 3 / 8) ** 2 * early + (3 / 8) ** 2 * late]
    assert_allclose(found.standard_error, np.sqrt(variance), rtol=1e-14)
    half = ndtri(0.975) * np.sqrt(variance)
    assert_allclose(found.lower, found.mean - half)
    assert_allclose(found.upper, np.minimum(found.mean + half, found.times))
    assert_allclose(found.time_lost, [found.times - found.mean])
    assert_allclose(found.time_lost_standard_error, [found.standard_error])
    assert_array_equal(found.n_at_risk, [4, 2, 1])
    assert found.end == 7


def test_two_causes_by_hand():
    # At 1 one of 4 fails of cause 1, at 2 one of 3 of cause 2; at 3 one is censored; 4: cause 1.
    found = rs.restricted_mean(rs.Surv([1.0, 2, 3, 4], [1, 2, 0, 1]), times=[2.5, 4, 6])["all"]
    assert_array_equal(found.causes, [1, 2])
    lost = [[1.5 / 4, 3 / 4, 5 / 4 + 2 / 2], [0.5 / 4, 2 / 4, 4 / 4]]
    assert_allclose(found.time_lost, lost, rtol=1e-15)
    assert_allclose(found.mean, found.times - np.sum(lost, axis=0))
    assert found.end == np.inf


def test_without_censoring_it_is_a_mean():
    time, event, *_ = random_rows(5)
    event = np.maximum(event, 1)
    found = rs.restricted_mean(rs.Surv(time, event), times=[4.5, 20])["all"]
    for k, horizon in enumerate(found.times):
        free = np.minimum(time, horizon)
        lost = [(horizon - free) * (event == cause) for cause in (1, 2)]
        assert_allclose(found.mean[k], free.mean())
        assert_allclose(found.standard_error[k], free.std() / np.sqrt(time.size))
        assert_allclose(found.time_lost[:, k], np.mean(lost, axis=1))
        error = np.std(lost, axis=1) / np.sqrt(time.size)
        assert_allclose(found.time_lost_standard_error[:, k], error)


def test_difference_and_ratio_as_in_survrm2():
    # Uno's survRM2: normal interval of the difference, delta method on the log scale of the ratio.
    time, event, _, group, _ = random_rows(8)
    found = rs.restricted_mean(rs.Surv(time, event > 0), group, times=[6, 10], level=0.9)
    a, b = found[1], found[0]
    z = ndtri(0.95)
    difference = found.difference(1, 0)
    error = np.hypot(a.standard_error, b.standard_error)
    assert_allclose(difference.estimate, a.mean - b.mean)
    assert_allclose(difference.standard_error, error)
    assert_allclose(difference.lower, a.mean - b.mean - z * error)
    assert_allclose(difference.p_value, 2 * norm.sf(np.abs(difference.estimate) / error))
    for cause, x, y in (
        (None, a.mean, b.mean),
        ("any", a.times - a.mean, b.times - b.mean),
        (1, a.time_lost[0], b.time_lost[0]),
    ):
        ratio = found.ratio(1, 0, cause)
        log_error = np.sqrt((a.standard_error / x) ** 2 + (b.standard_error / y) ** 2)
        assert_allclose(ratio.estimate, x / y)
        assert_allclose(ratio.standard_error, log_error)
        assert_allclose(ratio.upper, np.exp(np.log(x / y) + z * log_error))
        assert_allclose(ratio.p_value, 2 * norm.sf(np.abs(np.log(x / y)) / log_error))
    lost = found.difference(1, 0, "any")
    assert_allclose(lost.estimate, -difference.estimate)
    assert_allclose(lost.lower, -difference.upper)
    assert list(lost.to_frame(library="pyarrow").column_names) == [
        *("time", "estimate", "standard_error", "lower", "upper", "p_value")
    ]
    assert "difference of time lost, 1 and 0 (90% intervals)" in repr(lost)


# ------------------------------------------------------------------------------------ against R


@pytest.mark.parametrize(
    ("name", "file", "group", "weights"),
    [
        ("lung_by_sex", "lung", "sex", None),
        ("lung_counts", "lung", "sex", lambda table: 1 + table["inst"] % 3),
        ("heart_late_entry", "heart", "transplant", None),
    ],
)
def test_one_kind_of_event_as_in_r(name, file, group, weights):
    table = read_table(GOLDEN / f"{file}.csv")
    end = "stop" if "stop" in table else "time"
    y = rs.Surv(table[end], table["event"].astype(int), table.get("start"))
    times = [row["time"] for row in R[name]]
    weight = None if weights is None else weights(table)
    found = rs.restricted_mean(y, table[group], weight, times=times)
    assert found.variance == "counts"
    for k, row in enumerate(R[name]):
        assert_allclose([one.mean[k] for one in found], row["mean"], **EXACT)
        assert_allclose([one.standard_error[k] for one in found], row["se"], **EXACT)


def cohort():
    table = read_table(GOLDEN / "cohort" / "cr_cohort.csv")
    treated = table["treat"] == 1
    weight = np.where(treated, 1 / table["ps"], 1 / (1 - table["ps"]))
    return table, np.where(treated, "target", "comparator"), weight, (table["id"] + 1) // 2


@pytest.mark.parametrize("has_clusters", [False, True])
def test_robust_variance_as_in_r(has_clusters):
    table, arm, weight, person = cohort()
    block = R["any_event_ate_cluster_person" if has_clusters else "any_event_ate"]
    found = rs.restricted_mean(
        rs.Surv(table["time"], (table["status"] > 0).astype(int)),
        arm,
        weight,
        times=[row["time"] for row in block],
        cluster=person if has_clusters else None,
    )
    assert found.variance == "robust"
    for k, row in enumerate(block):
        for name in ("target", "comparator"):
            assert_allclose(found[name].mean[k], row[name]["mean"], **EXACT)
            assert_allclose(found[name].standard_error[k], row[name]["se"], **EXACT)


@pytest.mark.parametrize("name", ["crude", "ate", "ate_cluster_person", "matched"])
def test_competing_events_as_in_r(name):
    table, arm, weight, person = cohort()
    block = R["competing"][name]
    rows = np.ones(arm.size, dtype=bool)
    clusters = person if "person" in name else None
    if name == "matched":
        rows = table["set"] != "NA"
        clusters = table["set"]
    found = rs.restricted_mean(
        rs.Surv(table["time"], table["status"].astype(int))[rows],
        arm[rows],
        weight[rows] if name.startswith("ate") else None,
        times=[row["time"] for row in block],
        cluster=None if clusters is None else clusters[rows],
    )
    for k, row in enumerate(block):
        for group in ("target", "comparator"):
            one = found[group]
            values = [one.mean[k], *one.time_lost[:, k]]
            errors = [one.standard_error[k], *one.time_lost_standard_error[:, k]]
            assert_allclose(values, row[group], **EXACT)
            assert_allclose(errors, row[f"{group}_se"], **EXACT)
        for q, cause in enumerate((None, 1, 2)):
            difference = found.difference("target", "comparator", cause)
            ratio = found.ratio("target", "comparator", cause)
            assert_allclose(difference.standard_error[k], row["difference_se"][q], **EXACT)
            assert_allclose(ratio.standard_error[k], row["log_ratio_se"][q], **EXACT)


# ------------------------------------------------------------------------------------ equivalences


@pytest.mark.parametrize("late", [False, True])
def test_variance_is_that_of_changes_of_each_weight(late):
    time, event, entry, _, weight = random_rows(11, 40, late=late)
    y = rs.Surv(time, event, entry)

    def values(weight):
        one = rs.restricted_mean(y, None, weight, times=[5.5, 9])["all"]
        return np.vstack([one.mean[None], one.time_lost])

    step, squares = 1e-5, 0.0
    for i in range(time.size):
        up, down = weight.copy(), weight.copy()
        up[i] *= 1 + step
        down[i] *= 1 - step
        squares = squares + ((values(up) - values(down)) / (2 * step)) ** 2
    found = rs.restricted_mean(y, None, weight, times=[5.5, 9])["all"]
    errors = np.vstack([found.standard_error[None], found.time_lost_standard_error])
    assert_allclose(errors**2, squares, rtol=1e-7)


def test_counted_variance_is_the_robust_one_without_weights_and_late_entry():
    time, event, _, group, _ = random_rows(12)
    y = rs.Surv(time, event)
    counts = rs.restricted_mean(y, group, times=[3.5, 9], variance="counts")
    robust = rs.restricted_mean(y, group, times=[3.5, 9], variance="robust")
    for a, b in zip(counts, robust, strict=True):
        assert_allclose(a.standard_error, b.standard_error)
        assert_allclose(a.time_lost_standard_error, b.time_lost_standard_error)


@pytest.mark.parametrize("late", [False, True])
def test_a_weight_of_two_is_a_row_twice(late):
    time, event, entry, group, _ = random_rows(13, late=late)
    weight = np.arange(time.size) % 3
    y = rs.Surv(time, event, entry)
    twice = np.repeat(np.arange(time.size), weight)
    a = rs.restricted_mean(y, group, weight, times=[4, 9])
    b = rs.restricted_mean(y[twice], group[twice], times=[4, 9])
    for one, other in zip(a, b, strict=True):
        for name, value in one.columns().items():
            assert_allclose(value, other.columns()[name], rtol=1e-12, err_msg=name)


def test_order_of_rows_and_scale_of_weights_do_not_matter():
    time, event, entry, group, weight = random_rows(14, late=True)
    y = rs.Surv(time, event, entry)
    cluster = np.arange(time.size) // 3
    order = np.random.default_rng(1).permutation(time.size)
    a = rs.restricted_mean(y, group, weight, times=[4, 9], cluster=cluster)
    for scale in (1.0, 1e-300, 1e200):
        b = rs.restricted_mean(
            y[order], group[order], scale * weight[order], times=[4, 9], cluster=cluster[order]
        )
        for kind in ("difference", "ratio"):
            for cause in (None, 1, 2, "any"):
                one, other = (getattr(r, kind)(1, 0, cause) for r in (a, b))
                assert_allclose(one.lower, other.lower, rtol=1e-10)
                assert_allclose(one.standard_error, other.standard_error, rtol=1e-10)


def test_means_are_the_areas_under_the_curves():
    time, event, entry, _, weight = random_rows(15, late=True)
    y = rs.Surv(time, event, entry)
    found = rs.restricted_mean(y, None, weight, times=11)["all"]
    fine = np.arange(0, 11, 1 / 64) + 1 / 128
    free = rs.kaplan_meier(y, None, weight, cause="any")["all"].at(fine)
    incidence = rs.aalen_johansen(y, None, weight)["all"].at(fine)
    assert_allclose(found.mean, free.sum() / 64)
    assert_allclose(found.time_lost[:, 0], incidence.sum(axis=1) / 64)


def test_clusters_of_one_row_and_clusters_within_a_group():
    time, event, _, group, weight = random_rows(16)
    y = rs.Surv(time, event)
    rows = rs.restricted_mean(y, group, weight, times=8)
    alone = rs.restricted_mean(y, group, weight, times=8, cluster=np.arange(time.size))
    assert_allclose(
        alone.difference(1, 0, 2).standard_error, rows.difference(1, 0, 2).standard_error
    )
    # A row twice in one cluster is that row with twice the weight.
    twice = np.repeat(np.arange(time.size), 2)
    pairs = rs.restricted_mean(y[twice], group[twice], weight[twice], times=8, cluster=twice)
    assert_allclose(pairs.ratio(1, 0).standard_error, rows.ratio(1, 0).standard_error, rtol=1e-12)


def test_influence_adds_up_to_nothing():
    time, event, entry, _, weight = random_rows(17, late=True)
    rows = Followup.read(rs.Surv(time, event, entry), None, weight)
    areas = RestrictedCurves.of(LifeTable.build(rows, np.array([1, 2]))).areas(9.0)
    total = sum(areas.influence(q) for q in range(3))
    assert_allclose(total, 0, atol=1e-13)  # the areas add up to the horizon
    for q in range(3):
        assert_allclose(areas.influence(q).sum(), 0, atol=1e-12)


# ------------------------------------------------------------------------------------ limits


def test_a_horizon_after_the_end_of_follow_up_is_not_known():
    y = rs.Surv([1.0, 4, 2, 6], [1, 0, 1, 0])
    found = rs.restricted_mean(y, ["a", "a", "b", "b"], times=[4, 5, 7])
    assert np.isnan(found["a"].mean).tolist() == [False, True, True]
    assert np.isnan(found["b"].time_lost[0]).tolist() == [False, False, True]
    difference = found.difference("a", "b")
    for name in ("estimate", "standard_error", "lower", "upper", "p_value"):
        assert np.isnan(getattr(difference, name)).tolist() == [False, True, True]
    assert [note.code for note in found.notes] == ["follow_up_ends"] * 2
    assert found.notes[0].message == (
        "the follow-up of group 'a' ends at 4, so restricted means up to 5, 7 are not known; 4 is "
        "the largest horizon."
    )
    assert "of group 'b' ends at 6" in repr(found)
    alone = rs.restricted_mean(y, times=9)
    assert alone.notes[0].message.startswith("the follow-up ends at 6, so")


def test_nobody_is_left():
    # Everybody has had the event at 2, so the mean stays what it is.
    found = rs.restricted_mean(rs.Surv([1.0, 2.0], [1, 1]), times=[2, 100])["all"]
    assert_allclose(found.mean, 1.5)
    assert_allclose(found.standard_error, 0.5 / np.sqrt(2))
    assert_allclose(found.time_lost, [[0.5, 98.5]])


def test_nobody_has_an_event():
    y = rs.Surv([5.0, 6.0, 7.0, 8.0], [0, 0, 1, 1])
    found = rs.restricted_mean(y, [0, 0, 1, 1], times=5)
    assert found[0].mean == found[1].mean == 5
    difference, ratio = found.difference(1, 0), found.ratio(1, 0, "any")
    assert (difference.lower, difference.upper) == (0, 0)
    assert np.isnan(difference.p_value).all()
    assert np.isnan(ratio.estimate).all()


def test_ties_at_the_horizon_and_time_zero():
    y = rs.Surv([0.0, 3.0, 3.0, 5.0], [1, 1, 0, 0])
    found = rs.restricted_mean(y, times=[3, 3.5])["all"]
    third = Fraction(3, 4) * Fraction(2, 3)
    assert_allclose(found.mean, [3 * 3 / 4, 3 * 3 / 4 + float(third) / 2], rtol=1e-15)


def test_labels_frames_and_outcomes():
    y = rs.Surv([1.0, 2, 3, 4], ["relapse", "death", "none", "death"], censored="none")
    found = rs.restricted_mean(y, ["b", "a", "b", "a"], times=[2, 3])
    assert found.groups == ("a", "b")
    assert len(found) == 2
    assert "a" in found
    assert [mean.label for mean in found] == ["a", "b"]
    frame = found.to_frame(library="pyarrow")
    assert frame.column("cause").to_pylist() == ["death"] * 2 + ["relapse"] * 2 + (
        ["death"] * 2 + ["relapse"] * 2
    )
    assert frame.column("time_lost").to_pylist()[:4] == [0, 0.5, 0, 0]
    assert found.difference("a", "b", "relapse").estimate.tolist() == [-0.5, -1.0]
    outcome = rs.Outcome.build([1.0, 2, 3], [1, 0, 1], weight=[1, 2, 1])
    assert rs.restricted_mean(outcome, times=2)["all"].mean == 1.75


def test_what_is_refused():
    y = rs.Surv([1.0, 2.0, 3.0], [1, 1, 0])
    for times in (0, [1, -1], np.inf, []):
        with pytest.raises(rs.InputError, match="`times` must be"):
            rs.restricted_mean(y, times=times)
    with pytest.raises(rs.InputError, match="takes rows for independent"):
        rs.restricted_mean(y, times=2, variance="counts", cluster=[1, 1, 2])
    with pytest.raises(rs.InputError, match="cluster"):
        rs.restricted_mean(y, times=2, cluster=[1, 1])
    with pytest.raises(rs.InputError, match="variance"):
        rs.restricted_mean(y, times=2, variance="greenwood")
    found = rs.restricted_mean(y, ["a", "b", "b"], times=1)
    with pytest.raises(rs.InputError, match="group 'c'"):
        found.difference("a", "c")
    with pytest.raises(rs.InputError, match="cause 2"):
        found.ratio("a", "b", 2)


def test_a_warning_where_a_curve_is_emptied():
    y = rs.Surv([1.0, 5.0, 6.0], [1, 1, 0], [0.0, 2.0, 2.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = rs.restricted_mean(y, times=4)
    assert "falls to 0 while others are still to enter" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert found["all"].mean == 1


def test_an_end_must_be_a_time():
    y = rs.Surv([1.0, 2.0], [1, 0])
    with pytest.raises(rs.InputError, match=r"inf is among them.\nHint: without an end"):
        rs.restricted_mean(y, times=np.inf)
    with pytest.raises(
        rs.InputError, match=r"-1 is among them.\nHint: the mean time is taken from 0"
    ):
        rs.restricted_mean(y, times=-1.0)
