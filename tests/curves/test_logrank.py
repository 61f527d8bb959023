"""The log-rank test of weighted rows, of many groups, and of groups that never meet."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs

TESTS = (rs.gray_test, rs.logrank_test)


def plain_logrank(time, event, group, entry, rho):
    """Score and variance by their definition, one time after the other."""
    labels = np.unique(group)
    score, variance, survival = np.zeros(labels.size), np.zeros((labels.size,) * 2), 1.0
    for t in np.unique(time[event == 1]):
        there = (time >= t) & (entry < t)
        y = np.array([np.sum(there & (group == g)) for g in labels])
        d = np.array([np.sum((time == t) & (event == 1) & (group == g)) for g in labels])
        n, fails, share = y.sum(), d.sum(), y / y.sum()
        weight = survival**rho
        score += weight * (d - fails * share)
        if n > 1:
            factor = weight**2 * fails * (n - fails) / (n - 1)
            variance += factor * (np.diag(share) - np.outer(share, share))
        survival *= 1 - fails / n
    return score, variance


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("n_groups", [2, 7, 40])
@pytest.mark.parametrize("rho", [0.0, 1.0, -0.5])
def test_plain_version(rng, n_groups, rho, late):
    n = 150
    entry = rng.integers(0, 5, n) * late
    time = entry + rng.integers(1, 12, n)
    event = rng.integers(0, 3, n)
    group = np.append(np.arange(n_groups), rng.integers(0, n_groups, n - n_groups))
    entry[:10], time[:10], event[:10] = 0, 17, 0  # so that somebody is always left
    y = rs.Surv(time, event, entry) if late else rs.Surv(time, event)
    test = rs.logrank_test(y, group, rho=rho)
    score, variance = plain_logrank(time, event, group, entry, rho)
    assert_allclose(test.score, score, rtol=1e-10, atol=1e-12)
    assert_allclose(test.variance, variance, rtol=1e-10, atol=1e-13)
    values, vectors = np.linalg.eigh(variance)
    kept = values > 1e-10 * values.max()
    assert test.df == kept.sum()
    expected = np.sum((vectors[:, kept].T @ score) ** 2 / values[kept])
    assert test.statistic == pytest.approx(expected, rel=1e-9)


def test_groups_in_pieces_have_the_same_sums(rng, monkeypatch):
    y, group = rs.Surv(rng.integers(1, 30, 200), rng.integers(0, 2, 200)), rng.integers(0, 50, 200)
    whole = rs.logrank_test(y, group)
    monkeypatch.setattr("riskset.curves.logrank.MAX_CELLS", 100)  # three groups at a time
    pieces = rs.logrank_test(y, group)
    assert_array_equal(pieces.variance, whole.variance)
    assert pieces.statistic == whole.statistic


# Counts of rows by time, event and group; the statistics of the repeated rows are those of R's
# survdiff (survival 3.x) with rho = 0 and 1.
COUNTED = pd.DataFrame(
    [
        (1, 0, 0, 1), (1, 0, 1, 3), (1, 1, 0, 4), (1, 1, 1, 2), (2, 0, 0, 11), (2, 0, 1, 5),
        (2, 1, 0, 4), (2, 1, 1, 5), (3, 0, 0, 3), (3, 0, 1, 5), (3, 1, 0, 5), (3, 1, 1, 5),
        (4, 0, 0, 3), (4, 1, 0, 4), (4, 1, 1, 8), (5, 0, 0, 3), (5, 0, 1, 4), (5, 1, 0, 4),
        (5, 1, 1, 3), (6, 0, 0, 4), (6, 0, 1, 4), (6, 1, 0, 4), (6, 1, 1, 3), (7, 0, 0, 6),
        (7, 0, 1, 5), (7, 1, 0, 3), (7, 1, 1, 4), (8, 0, 1, 3), (8, 1, 1, 2),
    ],
    columns=["time", "event", "g", "n"],
)  # fmt: skip


@pytest.mark.parametrize(("rho", "statistic"), [(0.0, 0.155516), (1.0, 0.103024)])
def test_a_weight_counts_rows_as_r_counts_them(rho, statistic):
    data = rs.Dataset.from_frame(COUNTED, weight="n")
    plain = rs.Surv(COUNTED["time"], COUNTED["event"])
    for test in (
        rs.logrank_test(data, COUNTED["g"], rho=rho),
        rs.logrank_test(data.outcome(), COUNTED["g"], rho=rho),
        rs.logrank_test(plain, COUNTED["g"], weight=COUNTED["n"], rho=rho),
    ):
        assert test.statistic == pytest.approx(statistic, abs=5e-7)
        assert test.n_rows.tolist() == [59, 61]
        assert test.n_events.tolist() == [28, 32]


@pytest.mark.parametrize("of", TESTS)
def test_a_weight_of_two_is_the_row_twice(rng, of):
    n = 90
    y = rs.Surv(rng.integers(1, 9, n), rng.integers(0, 3, n))
    group, strata, weight = rng.integers(0, 3, n), rng.integers(0, 2, n), rng.integers(0, 4, n)
    counted = of(y, group, weight=weight, strata=strata)
    rows = np.repeat(np.arange(n), weight)
    repeated = of(y[rows], group[rows], strata=strata[rows])
    assert_array_equal(counted.n_rows, repeated.n_rows)
    assert_array_equal(counted.n_events, repeated.n_events)
    assert_allclose(counted.score, repeated.score, rtol=1e-12)
    assert_allclose(counted.variance, repeated.variance, rtol=1e-12)
    assert counted.statistic == pytest.approx(repeated.statistic, rel=1e-12)


@pytest.mark.parametrize("of", TESTS)
def test_weights_that_count_nothing_are_refused(of):
    y, group = rs.Surv([1, 2, 3, 4], [1, 1, 0, 1]), list("abab")
    counts = {"variance": "counts"} if of is rs.logrank_test else {}
    with pytest.raises(rs.InputError, match=r"`weight` must be whole.*1 of 4 rows is not.*0\.5"):
        of(y, group, weight=[1, 0.5, 2, 1], **counts)
    data = rs.Dataset.from_frame(
        pd.DataFrame({"time": [1, 2, 3], "event": [1, 1, 0], "w": [0.5, 1, 2]}), weight="w"
    )
    with pytest.raises(rs.InputError, match="must be whole"):
        of(data, list("aba"), **counts)
    with pytest.raises(rs.InputError, match="must not be negative"):
        of(y, group, weight=[1, -1, 2, 1])
    # Every float above 2**53 is whole, and none is a number of rows.
    with pytest.raises(rs.InputError, match=r"below 2\*\*53.*4 of 4 rows are not.*1e.300"):
        of(y, group, weight=[1e300] * 4, **counts)


def test_weights_too_large_to_count_have_the_robust_variance():
    y, group, w = rs.Surv([1, 2, 3, 4, 5.0], [1, 1, 0, 1, 1]), list("ababb"), np.full(5, 1e300)
    own = rs.logrank_test(y, group, variance="robust")
    assert rs.logrank_test(y, group, weight=w).is_robust
    assert rs.logrank_test(y, group, weight=w).p_value == pytest.approx(own.p_value, rel=1e-12)
    means = rs.restricted_mean(y, group, times=3, variance="robust").difference("a", "b")
    heavy = rs.restricted_mean(y, group, times=3, weight=w).difference("a", "b")
    assert_allclose(heavy.standard_error, means.standard_error, rtol=1e-12)
    one = rs.kaplan_meier(y, variance="robust")["all"]
    assert_allclose(rs.kaplan_meier(y, weight=w)["all"].standard_error, one.standard_error)


@pytest.mark.parametrize("of", TESTS)
def test_strata_may_be_several_columns(rng, of):
    n = 120
    y = rs.Surv(rng.integers(1, 9, n), rng.integers(0, 3, n))
    group, a, b = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.choice(["x", "y"], n)
    one = of(y, group, strata=[f"{i} {j}" for i, j in zip(a, b, strict=True)])
    for strata in ([a, b], (a, list(b)), pd.DataFrame({"a": a, "b": b})):
        assert_array_equal(of(y, group, strata=strata).variance, one.variance)


def test_groups_that_never_meet_are_not_compared():
    """a and b are at risk together, and c and d, but no group of one pair with one of the other."""
    time, entry = [1, 2, 3, 4, 11, 12, 13, 14], [0, 0, 0, 0, 9, 9, 9, 9]
    group = list("ababcdcd")
    both = rs.logrank_test(rs.Surv(time, np.ones(8), entry), group)
    parts = [
        rs.logrank_test(rs.Surv(time[k : k + 4], np.ones(4)), group[k : k + 4]) for k in (0, 4)
    ]
    assert both.df == 2
    assert both.statistic == pytest.approx(sum(part.statistic for part in parts), rel=1e-12)
    # A stratum that has groups of both links them.
    linked = rs.logrank_test(
        rs.Surv([*time, 1, 2], np.ones(10), [*entry, 0, 0]),
        [*group, "a", "c"],
        strata=[0] * 8 + [1] * 2,
    )
    assert linked.df == 3
    # A group that left before anybody failed is compared with nobody.
    early = rs.logrank_test(rs.Surv([0.5, 1, 2, 3, 4], [0, 1, 1, 1, 1]), list("zabab"))
    assert early.df == 1
    assert early.groups == ("a", "b", "z")
    nobody = rs.logrank_test(rs.Surv([1, 2], [1, 0], [0, 1]), list("ab"))
    assert (nobody.df, nobody.statistic) == (0, 0.0)
    assert np.isnan(nobody.p_value)


def test_a_tiny_group_is_a_degree_of_freedom():
    """One row among a million others: its variance is 1e-6, and it is compared all the same."""
    weight = [10**6, 10**6, 1]
    test = rs.logrank_test(rs.Surv([1, 2, 3], [1, 0, 0]), list("abc"), weight=weight)
    assert test.df == 2


def test_many_groups_have_the_statistic_of_the_definition(rng):
    n, n_groups = 1500, 300
    time, event = rng.integers(1, 40, n), rng.integers(0, 2, n)
    group = np.append(np.arange(n_groups), rng.integers(0, n_groups, n - n_groups))
    test = rs.logrank_test(rs.Surv(time, event), group)
    score, variance = plain_logrank(time, event, group, np.full(n, -1), 0.0)
    reduced = score[:-1] @ np.linalg.solve(variance[:-1, :-1], score[:-1])
    assert test.statistic == pytest.approx(reduced, rel=1e-9)
    assert test.df == n_groups - 1


def test_messages():
    y = rs.Surv([1, 2, 3, 4], [1, 1, 1, 1], [0, 0, 2.5, 3.5])
    with pytest.raises(rs.InputError, match=r"rho = -1 .* before time 3, while .* still to enter"):
        rs.logrank_test(y, list("abab"), rho=-1)
    assert np.isfinite(rs.logrank_test(y, list("abab"), rho=1).statistic)
    ids = np.arange(10_001)
    every = rs.Surv(ids + 1, np.ones(ids.size))
    with pytest.raises(rs.InputError, match="10,001 different labels in 10,001 rows, .* 10,000"):
        rs.logrank_test(every, ids)
    with pytest.raises(rs.InputError, match="at most 1,000 groups"):
        rs.gray_test(every[:1001], ids[:1001])
