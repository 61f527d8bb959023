"""Gray's test and the log-rank test against cmprsk, a plain version, and each other."""

import numpy as np
import pandas as pd
import pytest

import riskset as rs
from reference import GOLDEN, read_json


def plain_gray(time, event, group, rho):
    """Gray (1988), one time, one group and one pair after the other; no strata."""
    labels = np.unique(group)
    k_all = range(labels.size)
    before, after = np.ones(labels.size), np.ones(labels.size)
    own = np.zeros(labels.size)  # incidence before the time
    common, score = 0.0, np.zeros(labels.size)
    path = []
    for t in np.unique(time[event > 0]):
        y = np.array([np.sum((group == g) & (time >= t)) for g in labels])
        d1 = np.array([np.sum((group == g) & (time == t) & (event == 1)) for g in labels])
        d2 = np.array([np.sum((group == g) & (time == t) & (event == 2)) for g in labels])
        h = np.array([y[k] / before[k] if y[k] else 0.0 for k in k_all])
        r = h * (1 - own)
        weight = (1 - common) ** rho
        for k in k_all:
            if y[k]:
                score[k] += weight * (d1[k] - d1.sum() * r[k] / r.sum())
                after[k] = before[k] * (y[k] - d1[k] - d2[k]) / y[k]
                own[k] += before[k] * d1[k] / y[k]
        a = np.array([[weight * h[i] * ((i == k) - h[k] / h.sum()) for k in k_all] for i in k_all])
        now = common + d1.sum() / h.sum()
        path.append((y, d1, d2, h.sum(), before.copy(), after.copy(), common, now, a))
        before, common = after.copy(), now
    return score, plain_variance(path, labels.size)


def plain_variance(path, n_groups):
    variance = np.zeros((n_groups, n_groups))
    for u, (y, d1, d2, total, before, after, _, now, a) in enumerate(path):
        later = np.zeros((n_groups, n_groups))
        for _, events, _, sum_h, _, _, common, _, a_later in path[u + 1 :]:
            later += a_later * events.sum() / (sum_h * (1 - common))
        for k in range(n_groups):
            if not y[k]:
                continue
            rest = (1 - now) / after[k] if after[k] > 0 else 0.0
            if n := d1.sum():
                tie = 1 - (n - 1) / (total * before[k] - 1) if n > 1 else 1.0
                v = tie * before[k] * n / (total * y[k])
                b = a[:, k] + (1 - rest) * later[:, k]
                variance += v * np.outer(b, b)
            if d2[k] and after[k] > 0:
                tie = 1 - (d2[k] - 1) / (y[k] - 1) if d2[k] > 1 else 1.0
                v = tie * before[k] ** 2 * d2[k] / y[k] ** 2
                variance += v * rest**2 * np.outer(later[:, k], later[:, k])
    return variance


def test_cmprsk_prints_the_same():
    golden = read_json(GOLDEN / "cmprsk_cuminc.json")
    y = rs.Surv(golden["time"], golden["event"])
    group, stratum = np.array(golden["group"]), np.array(golden["stratum"])
    for k, cause in enumerate([1, 2]):
        test = rs.gray_test(y, group, cause, strata=stratum)
        expected = golden["gray_stratified"]
        assert test.statistic == pytest.approx(expected["stat"][k], abs=5.1e-7)
        assert test.p_value == pytest.approx(expected["pv"][k], abs=5.1e-8)
        assert test.df == expected["df"]
        part = golden["gray_stratified_subset"]
        kept = np.delete(np.arange(part["first"]), part["without"])
        test = rs.gray_test(y[kept], group[kept], cause, strata=stratum[kept])
        assert test.statistic == pytest.approx(part["stat"][k], abs=5.1e-7)
        assert test.p_value == pytest.approx(part["pv"][k], abs=5.1e-8)


@pytest.mark.parametrize("n_groups", [2, 4])
@pytest.mark.parametrize("rho", [0.0, 1.0, -0.5])
def test_plain_version(rng, n_groups, rho):
    n = 120
    time = rng.integers(1, 15, n).astype(float)
    event, group = rng.integers(0, 3, n), rng.integers(0, n_groups, n)
    time[group == 0] = np.minimum(time[group == 0], 9)  # one group is gone before the others
    test = rs.gray_test(rs.Surv(time, event), group, rho=rho)
    score, variance = plain_gray(time, event, group, rho)
    np.testing.assert_allclose(test.score, score, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(test.variance, variance, rtol=1e-10, atol=1e-12)
    reduced = score[:-1] @ np.linalg.solve(variance[:-1, :-1], score[:-1])
    assert test.statistic == pytest.approx(reduced, rel=1e-9)
    assert test.df == n_groups - 1
    assert abs(test.score.sum()) < 1e-11


def test_scores_are_those_of_the_logrank_without_competing_events(rng):
    n = 2000
    y, group = rs.Surv(rng.integers(1, 30, n), rng.random(n) < 0.5), rng.integers(0, 3, n)
    gray, logrank = rs.gray_test(y, group), rs.logrank_test(y, group)
    np.testing.assert_allclose(gray.score, logrank.score, rtol=1e-10)
    # Gray's variance allows each group a survival of its own: equal in large samples only.
    assert gray.statistic == pytest.approx(logrank.statistic, rel=0.05)


def test_without_censoring_it_is_a_logrank_of_those_who_never_fail(rng):
    """Everybody followed up: who fails of another cause stays at risk to the end."""
    n = 200
    time, event = rng.permutation(n) + 1.0, rng.integers(1, 3, n)
    group = rng.integers(0, 2, n)
    # One of each group is left in the end: a group that is used up counts no more.
    time, event = np.append(time, [n + 1, n + 1]), np.append(event, [0, 0])
    group = np.append(group, [0, 1])
    never = rs.Surv(np.where(event == 1, time, n + 1.0), event == 1)
    gray, logrank = rs.gray_test(rs.Surv(time, event), group), rs.logrank_test(never, group)
    np.testing.assert_allclose(gray.score, logrank.score, rtol=1e-10)
    assert gray.statistic == pytest.approx(logrank.statistic, rel=0.05)


def test_level_of_the_test(rng):
    """Under equal incidence the p values are uniform."""
    p = []
    for _ in range(300):
        y = rs.Surv(rng.exponential(size=120), rng.integers(0, 3, 120))
        p.append(rs.gray_test(y, rng.integers(0, 3, 120)).p_value)
    assert abs(np.mean(np.array(p) < 0.1) - 0.1) < 0.06
    assert abs(np.mean(p) - 0.5) < 0.06


def test_logrank_by_hand():
    # a at 1 and 3, b at 2 and 4: expected in a 1/2, 1/3, 1/2, 0.
    y = rs.Surv([1.0, 2.0, 3.0, 4.0], [True, True, True, True])
    test = rs.logrank_test(y, ["a", "b", "a", "b"])
    np.testing.assert_allclose(test.score, [2 - 4 / 3, 4 / 3 - 2])
    assert test.variance[0, 0] == pytest.approx(1 / 4 + 2 / 9 + 1 / 4)
    assert test.statistic == pytest.approx((2 / 3) ** 2 / (1 / 4 + 2 / 9 + 1 / 4))
    weighted = rs.logrank_test(y, ["a", "b", "a", "b"], rho=1)
    score = 1 * (1 - 1 / 2) + 3 / 4 * (0 - 1 / 3) + 1 / 2 * (1 - 1 / 2) + 0
    assert weighted.score[0] == pytest.approx(score)


def test_logrank_is_the_score_test_of_cox(rng):
    """Exactly, without ties; with late entry and strata too."""
    n = 300
    entry = rng.uniform(0, 1, n)
    y = rs.Surv(entry + rng.exponential(size=n), rng.random(n) < 0.7, entry)
    group, strata = rng.integers(0, 3, n), rng.integers(0, 4, n)
    test = rs.logrank_test(y, group, strata=strata)
    X = np.column_stack([group == 1, group == 2]).astype(float)
    score = rs.Cox().fit(X, y, strata=strata).tests_.score
    assert test.statistic == pytest.approx(score.statistic, rel=1e-9)
    assert test.df == score.df == 2


def test_strata_add_up_and_order_does_not_matter(rng):
    n = 200
    y = rs.Surv(rng.integers(1, 20, n), rng.integers(0, 3, n))
    group, strata = rng.choice(["x", "y", "z"], n), rng.choice(["k", "l"], n)
    for of in (rs.gray_test, rs.logrank_test):
        both = of(y, group, strata=strata)
        parts = [of(y[strata == s], group[strata == s]) for s in ("k", "l")]
        np.testing.assert_allclose(both.score, sum(p.score for p in parts), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(both.variance, sum(p.variance for p in parts), rtol=1e-12)
        order = rng.permutation(n)
        again = of(y[order], group[order], strata=strata[order])
        assert again.statistic == pytest.approx(both.statistic, rel=1e-12)
        assert both.groups == ("x", "y", "z")
        np.testing.assert_array_equal(both.n_rows, [(group == g).sum() for g in both.groups])
        assert both.n_events.sum() == (y["event"] == 1).sum()


def test_messages():
    y = rs.Surv([1.0, 2.0, 3.0], [1, 2, 0])
    with pytest.raises(rs.InputError, match="at least two groups, but every row has 'a'"):
        rs.gray_test(y, ["a", "a", "a"])
    with pytest.raises(rs.InputError, match=r"no event of cause 3 \(causes that occur: 1, 2\)"):
        rs.gray_test(y, ["a", "b", "a"], cause=3)
    for test in (rs.gray_test, rs.logrank_test):
        for cause in (0, True, 1.5):
            with pytest.raises(rs.InputError, match="must be a positive whole number or a label"):
                test(y, ["a", "b", "a"], cause=cause)
        with pytest.raises(rs.InputError, match="no events: all 3 rows of positive weight are"):
            test(rs.Surv([1.0, 2.0, 3.0], [0, 0, 0]), ["a", "b", "a"])
    frame = pd.DataFrame({"time": [1.0, 2, 3], "event": list("xyc"), "w": [0, 1, 1], "a": 0.5})
    labelled = rs.Dataset.from_frame(frame, weight="w", censored="c", cause="y")
    with pytest.raises(rs.InputError, match=r"no event of cause 'x' \(causes that occur: 'y'\)"):
        rs.logrank_test(labelled, ["a", "b", "a"], cause="x")
    with pytest.raises(rs.InputError, match="`strata` must have one label"):
        rs.logrank_test(y, ["a", "b", "a"], strata=[1])
    with pytest.raises(rs.InputError, match="1 of 2 rows enter when others have already left"):
        rs.gray_test(rs.Surv([1.0, 2.0], [1, 1], [0.5, 1.0]), ["a", "b"])


def test_incidence_of_exactly_one():
    """F is 1 when only a is left: the comparison is over, whatever a's last row does."""
    time, group = [1.0, 5.0, 8.0, 2.0, 3.0], list("aaabb")
    for last in (2, 0):
        test = rs.gray_test(rs.Surv(time, [0, 1, last, 1, 1]), group)
        # By hand: h = (3, 2) and (2, 2) at 2 and 3, F = 1/4 and 1/2.
        np.testing.assert_allclose(test.score, [-7 / 6, 7 / 6], rtol=1e-14)
        assert test.statistic == pytest.approx(2.81508079, abs=5e-9)
        assert test.variance[0, 0] == pytest.approx(0.48350694, abs=5e-9)
        assert test.df == 1


def test_incidence_beyond_one():
    """c fails first, then a and b by turns; groups are compared up to time 4."""
    event, steps = [1, 1, 1, 1], np.array([-1 / 2, 1 / 2, -1 / 3, 1 / 2])  # of a's score
    for n_first, incidence in [(4, "1"), (6, "1.1")]:
        y = rs.Surv([*[1.0] * n_first, 2, 3, 4, 5], [*[1] * n_first, *event])
        group = [*["c"] * n_first, *"abab"]
        first = n_first / (n_first + 4)
        left = 1 - np.array([0, first, first + 1 / 4, first + 1 / 2])
        steps[0] = -2 * n_first / (n_first + 4)
        is_one = incidence == "1"
        for rho in (0.0, 1.0, 0.5, -1.0, -0.5):
            if (is_one and rho <= 0) or (not is_one and rho % 1):
                wants = "positive" if is_one else "whole"
                message = rf"at time 4, but .* common to them, F, is {incidence} .* a {wants} rho"
                with pytest.raises(rs.InputError, match=message):
                    rs.gray_test(y, group, rho=rho)
                continue
            test = rs.gray_test(y, group, rho=rho)
            np.testing.assert_allclose(test.score[0], left**rho @ steps, rtol=1e-12)
            assert np.isfinite(test.statistic)


def test_a_stratum_without_events_adds_nothing():
    y, group = rs.Surv([1.0, 2, 3, 4, 5, 6, 7, 8], [1, 2, 1, 1, 2, 1, 0, 0]), list("abababab")
    for of in (rs.gray_test, rs.logrank_test):
        both = of(y, group, strata=[0] * 6 + [1] * 2)
        alone = of(y[:6], group[:6])
        assert both.statistic == alone.statistic > 0
        np.testing.assert_array_equal(both.variance, alone.variance)
        assert both.n_rows.tolist() == [4, 4]


def test_entry_before_anybody_leaves_changes_nothing(rng):
    time, event, group = rng.integers(3, 20, 80), rng.integers(0, 3, 80), rng.integers(0, 2, 80)
    early = rs.Surv(time, event, rng.uniform(0, 2.9, 80))
    for of in (rs.gray_test, rs.logrank_test):
        assert of(early, group).statistic == of(rs.Surv(time, event), group).statistic
