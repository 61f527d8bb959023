"""Log-rank tests with weights of rows and of times, by hand, by definition, and against R.

The numbers of R are made by tests/golden/make_curves.R.
"""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import false_discovery_control

import riskset as rs
from reference import GOLDEN, read_json, read_table
from riskset.curves.pairwise import adjusted_p_values

R = read_json(GOLDEN / "curves.json")
RHO = {"zero": 0.0, "half": 0.5, "one": 1.0, "minus": -1.0}
FAMILY = [
    {"rho": 0.0, "gamma": 1.0},
    {"rho": 1.0, "gamma": 1.0},
    {"rho": 0.5, "gamma": 2.0},
    {"weighting": "gehan-wilcoxon"},
    {"weighting": "tarone-ware"},
]


def lung():
    d = read_table(GOLDEN / "lung.csv")
    ecog, weight = np.minimum(d["ph.ecog"], 2), 1 + (d["age"] % 7) / 3
    return d, rs.Surv(d["time"], d["event"]), ecog, weight


# ----------------------------------------------------------------------------- other programs


@pytest.mark.parametrize("name", RHO)
def test_survdiff(name):
    d, y, ecog, _ = lung()
    for kind, given in (("plain", {}), ("strata", {"strata": d["sex"]})):
        found, expected = rs.logrank_test(y, ecog, rho=RHO[name], **given), R["logrank"][kind][name]
        assert found.statistic == pytest.approx(expected["chisq"], rel=1e-12)
        score = np.subtract(expected["observed"], expected["expected"])
        assert_allclose(found.score, score, rtol=1e-10)
        assert_allclose(found.variance, expected["variance"], rtol=1e-10)


def test_robust_score_tests_of_coxph():
    d, y, ecog, weight = lung()
    given = {"cluster": {"cluster": d["inst"]}, "weights": {}}
    given["strata"] = given["cluster"] | {"strata": d["sex"]}
    for name, more in given.items():
        found = rs.logrank_test(y, ecog, weight=weight, **more)
        assert found.is_robust
        assert found.df == 2
        assert found.statistic == pytest.approx(R["robust"][name], rel=1e-11)
    heart = read_table(GOLDEN / "heart.csv")
    y = rs.Surv(heart["stop"], heart["event"], heart["start"])
    found = rs.logrank_test(y, heart["transplant"], cluster=heart["id"])
    assert found.statistic == pytest.approx(R["robust"]["start_stop"][0], rel=1e-11)


# ------------------------------------------------------------------------------------ by hand

# Events of a at 1 and 3, of b at 2 and 4; b has a row censored at 3. At risk (a, b): (2, 3),
# (1, 3), (1, 2), (0, 1). S before: 1, 4/5, 3/5, 2/5.
TIME, EVENT, GROUP = [1, 3, 2, 4, 3], [1, 1, 1, 1, 0], list("aabbb")
AT_RISK = [(2, 3), (1, 3), (1, 2), (0, 1)]
FAILS = [(1, 0), (0, 1), (1, 0), (0, 1)]
BEFORE = [Fraction(1), Fraction(4, 5), Fraction(3, 5), Fraction(2, 5)]


@pytest.mark.parametrize(
    ("given", "name", "of_time"),
    [
        ({}, "log-rank test", [Fraction(1)] * 4),
        ({"rho": 1}, "Peto-Peto test", BEFORE),
        (
            {"rho": 0, "gamma": 1},
            "Fleming-Harrington test with rho = 0, gamma = 1",
            [1 - s for s in BEFORE],
        ),
        (
            {"rho": 2, "gamma": 1},
            "Fleming-Harrington test with rho = 2, gamma = 1",
            [s * s * (1 - s) for s in BEFORE],
        ),
        (
            {"weighting": "gehan-wilcoxon"},
            "Gehan-Wilcoxon test",
            [Fraction(5), Fraction(4), Fraction(3), Fraction(1)],
        ),
    ],
)
def test_by_hand(given, name, of_time):
    score, variance = Fraction(0), Fraction(0)
    for k, (a, b), (d, e) in zip(of_time, AT_RISK, FAILS, strict=True):
        share = Fraction(a, a + b)
        score += k * (d - (d + e) * share)
        variance += k * k * share * (1 - share)  # one event at a time
    found = rs.logrank_test(rs.Surv(TIME, EVENT), GROUP, **given)
    assert found.method == name
    assert_allclose(found.score, [float(score), -float(score)], rtol=1e-14)
    assert found.variance[0, 0] == pytest.approx(float(variance), rel=1e-14)
    assert found.statistic == pytest.approx(float(score * score / variance), rel=1e-13)


def test_tarone_and_ware_by_hand():
    found = rs.logrank_test(rs.Surv(TIME, EVENT), GROUP, weighting="tarone-ware")
    parts = [(a + b, Fraction(a, a + b), d) for (a, b), (d, _) in zip(AT_RISK, FAILS, strict=True)]
    score = sum(np.sqrt(n) * float(d - share) for n, share, d in parts)
    variance = sum(n * float(share * (1 - share)) for n, share, _ in parts)
    assert found.statistic == pytest.approx(score**2 / variance, rel=1e-13)


def test_robust_variance_by_hand():
    """Weights 2, 1/2 in a and 1, 1, 3 in b; influences by their definition in fractions."""
    weight = [Fraction(2), Fraction(1, 2), Fraction(1), Fraction(1), Fraction(3)]
    total = [
        (Fraction(5, 2), Fraction(5)),
        (Fraction(1, 2), Fraction(5)),
        (Fraction(1, 2), Fraction(4)),
        (Fraction(0), Fraction(1)),
    ]
    failing = [Fraction(2), Fraction(1), Fraction(1, 2), Fraction(1)]
    influence = []
    for time, event, group, w in zip(TIME, EVENT, GROUP, weight, strict=True):
        parts = Fraction(0)
        for t, (a, b), d in zip([1, 2, 3, 4], total, failing, strict=True):
            if time >= t:
                away = int(group == "a") - a / (a + b)
                parts += away * (int(event and time == t) - d / (a + b))
        influence.append(w * parts)
    y, numbers = rs.Surv(TIME, EVENT), [float(w) for w in weight]
    found = rs.logrank_test(y, GROUP, weight=numbers)
    assert found.score[0] == pytest.approx(float(sum(influence)), rel=1e-13)
    assert found.variance[0, 0] == pytest.approx(float(sum(u * u for u in influence)), rel=1e-13)
    assert found.n_rows.tolist() == [2, 3]
    pairs = [influence[0] + influence[2], influence[1] + influence[3], influence[4]]
    found = rs.logrank_test(y, GROUP, weight=numbers, cluster=[1, 2, 1, 2, 3])
    assert found.variance[0, 0] == pytest.approx(float(sum(u * u for u in pairs)), rel=1e-13)


# ------------------------------------------------------------------------------- equivalences


def sample(rng, n, n_groups, *, late=True):
    entry = rng.integers(0, 5, n) * late
    time = entry + rng.integers(1, 12, n)
    event, group = rng.integers(0, 3, n), rng.integers(0, n_groups, n)
    entry[:10], time[:10], event[:10] = 0, 17, 0  # so that somebody is always left
    return rs.Surv(time, event, entry), group, rng.uniform(0.2, 3, n)


@pytest.mark.parametrize("given", FAMILY)
def test_strata_add_up(rng, given):
    y, group, weight = sample(rng, 200, 3)
    strata = rng.integers(0, 6, 200)
    for robust in (False, True):
        more = {"weight": weight} if robust else {}
        whole = rs.logrank_test(y, group, strata=strata, **given, **more)
        score, variance = 0.0, 0.0
        for s in range(6):
            own = strata == s
            part = {"weight": weight[own]} if robust else {}
            alone = rs.logrank_test(y[own], group[own], **given, **part)
            at = np.ix_(alone.groups, alone.groups)
            padded = np.zeros((3, 3))
            padded[at] = alone.variance
            score, variance = score + np.bincount(alone.groups, alone.score, 3), variance + padded
        assert_allclose(whole.score, score, rtol=1e-9, atol=1e-11)
        assert_allclose(whole.variance, variance, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("given", [{}, *FAMILY])
def test_order_of_rows_and_scale_of_weights_do_not_matter(rng, given):
    y, group, weight = sample(rng, 150, 4)
    cluster, rows = rng.integers(0, 60, 150), rng.permutation(150)
    one = rs.logrank_test(y, group, weight=weight, cluster=cluster, **given)
    other = rs.logrank_test(
        y[rows], group[rows], weight=1e3 * weight[rows], cluster=cluster[rows], **given
    )
    assert one.df == other.df == 3
    assert other.statistic == pytest.approx(one.statistic, rel=1e-9)


@pytest.mark.parametrize("given", [{}, *FAMILY])
def test_a_row_that_is_cut_is_one_cluster(rng, given):
    """Splitting the follow-up of persons changes nothing if their rows are a cluster."""
    y, group, weight = sample(rng, 120, 2, late=False)
    cut = y["time"] / 3
    first = rs.Surv(cut, np.zeros(120, dtype=int), np.zeros(120))
    second = rs.Surv(y["time"], y["event"], cut)
    whole = rs.logrank_test(y, group, weight=weight, **given)
    split = rs.logrank_test(
        np.concatenate([first, second]),
        np.tile(group, 2),
        weight=np.tile(weight, 2),
        cluster=np.tile(np.arange(120), 2),
        **given,
    )
    assert split.statistic == pytest.approx(whole.statistic, rel=1e-9)


def test_influences_in_pieces_have_the_same_sums(rng, monkeypatch):
    y, group, weight = sample(rng, 200, 30)
    whole = rs.logrank_test(y, group, weight=weight)
    monkeypatch.setattr("riskset.curves.logrank.MAX_INFLUENCES", 1400)  # seven groups at a time
    pieces = rs.logrank_test(y, group, weight=weight)
    assert_allclose(pieces.variance, whole.variance, rtol=1e-12, atol=1e-14)
    assert_allclose(whole.variance.sum(axis=0), 0, atol=1e-10)
    assert_allclose(pieces.score.sum(), 0, atol=1e-10)


def test_both_variances_agree_in_large_samples_under_the_null():
    rng = np.random.default_rng(3)
    n = 20_000
    time, censoring = rng.exponential(1.0, n), rng.exponential(2.0, n)
    y, group = rs.Surv(np.minimum(time, censoring), time <= censoring), rng.integers(0, 3, n)
    for given in FAMILY:
        counts = rs.logrank_test(y, group, **given)
        robust = rs.logrank_test(y, group, variance="robust", **given)
        assert_allclose(robust.variance, counts.variance, rtol=0.05)


def test_few_clusters_have_few_degrees_of_freedom():
    y = rs.Surv([1, 2, 3, 4, 5, 6, 7, 8], [1] * 8)
    found = rs.logrank_test(y, list("abcdabcd"), cluster=[1, 1, 1, 1, 2, 2, 2, 2])
    assert found.df == 2


# ----------------------------------------------------------------------------- trend, pairs


def test_trend_by_hand():
    """Tarone (1975): with scores a, (a'z)^2 / a'Va."""
    y, group, _ = sample(np.random.default_rng(5), 90, 3)
    test = rs.logrank_test(y, group)
    a = np.array([0.0, 1.0, 4.0])
    found = test.trend(a)
    expected = (a @ test.score) ** 2 / (a @ test.variance @ a)
    assert found.statistic == pytest.approx(expected, rel=1e-12)
    assert found.df == 1
    assert_allclose([test.trend(3 - 2 * a).statistic, test.trend(a * 1e200).statistic], expected)
    assert test.trend().statistic == pytest.approx(test.trend([0, 1, 2]).statistic, rel=1e-14)
    # Of two groups, every trend is the test itself.
    two = rs.logrank_test(y, group == 1)
    assert two.trend().statistic == pytest.approx(two.statistic, rel=1e-12)
    with pytest.raises(rs.InputError, match="`scores` are all 2"):
        test.trend([2, 2, 2])
    for wrong in ([1, 2], {0: 0.0, 1: 1.0, 2: 4.0}):
        with pytest.raises(rs.InputError, match=r"number for each of the 3 groups[^$]*0, 1, 2"):
            test.trend(wrong)
    with pytest.raises(rs.InputError, match=r"group 1, value nan[^$]*give each group a score"):
        test.trend([1, np.nan, 2])


def test_trend_is_the_score_test_of_a_cox_model_with_the_scores(rng):
    """With Breslow ties and distinct times, that of the numbers as a covariate."""
    n = 80
    y = rs.Surv(rng.permutation(n) + 1.0, rng.integers(0, 2, n))
    dose = rng.choice([0.0, 10.0, 50.0], n)
    found = rs.logrank_test(y, dose).trend([0, 10, 50])
    model = rs.Cox().fit(dose[:, None], y)
    assert found.statistic == pytest.approx(model.tests_.score.statistic, rel=1e-9)


@pytest.mark.parametrize("given", [{}, *FAMILY])
@pytest.mark.parametrize("robust", [False, True])
def test_a_pair_is_the_test_of_its_rows_alone(rng, given, robust):
    y, group, weight = sample(rng, 160, 4)
    strata, cluster = rng.integers(0, 3, 160), rng.integers(0, 70, 160)
    more = {"strata": strata} | ({"weight": weight, "cluster": cluster} if robust else {})
    found = rs.pairwise_logrank_test(y, group, **given, **more)
    assert [t.groups for t in found] == [(j, k) for j in range(4) for k in range(j + 1, 4)]
    for test in found:
        own = np.isin(group, test.groups)
        part = {name: values[own] for name, values in more.items()}
        alone = rs.logrank_test(y[own], group[own], **given, **part)
        assert test.statistic == pytest.approx(alone.statistic, rel=1e-10)
        assert_array_equal(test.n_events, alone.n_events)
        assert found[test.groups[::-1]] is test
    frame = found.to_frame(library="pandas")
    assert len(frame) == 6


def test_adjusted_p_values_by_hand():
    """The p values of R's p.adjust: 0.01, 0.02, 0.03, 0.04, 0.05."""
    p = np.array([0.03, 0.01, np.nan, 0.05, 0.02, 0.04])
    expected = {
        "holm": [0.09, 0.05, np.nan, 0.09, 0.08, 0.09],
        "bonferroni": [0.15, 0.05, np.nan, 0.25, 0.1, 0.2],
        "benjamini-hochberg": [0.05, 0.05, np.nan, 0.05, 0.05, 0.05],
        "none": p,
    }
    for adjust, values in expected.items():
        assert_allclose(adjusted_p_values(p, adjust), values, rtol=1e-14)
    rng = np.random.default_rng(0)
    some = rng.random(50) ** 3
    found = adjusted_p_values(some, "benjamini-hochberg")
    assert_allclose(found, false_discovery_control(some))
    assert (adjusted_p_values(some, "holm") <= adjusted_p_values(some, "bonferroni")).all()


def test_pairs_without_events_do_not_count():
    y = rs.Surv([1, 2, 3, 4, 5, 6], [1, 1, 0, 0, 0, 0])
    found = rs.pairwise_logrank_test(y, list("aabbcc"))
    assert np.isnan(found["b", "c"].p_value)
    assert np.isnan(found.adjusted_p_value[2])
    expected = 2 * np.array([found["a", "b"].p_value, found["a", "c"].p_value])
    assert_allclose(found.adjusted_p_value[:2], np.minimum(expected, 1).max())


# --------------------------------------------------------------------------------- max-combo


@pytest.mark.parametrize("robust", [False, True])
def test_max_combo_is_made_of_the_tests(rng, robust):
    y, group, weight = sample(rng, 200, 2)
    more = {"strata": rng.integers(0, 2, 200)} | ({"weight": weight} if robust else {})
    found = rs.max_combo_test(y, group, **more)
    for (rho, gamma), z in zip(found.weights, found.z, strict=True):
        alone = rs.logrank_test(y, group, rho=rho, gamma=gamma, **more)
        assert z**2 == pytest.approx(alone.statistic, rel=1e-10)
        assert np.sign(z) == np.sign(alone.score[0])
    assert found.statistic == np.abs(found.z).max()
    assert found.p_value == rs.max_combo_test(y, group, **more).p_value
    # S + (1 - S) = 1, so three of the four scores determine each other.
    assert np.linalg.eigvalsh(found.correlation)[0] == pytest.approx(0, abs=1e-9)


def test_p_value_of_max_combo_against_draws():
    d, y, _, _ = lung()
    found = rs.max_combo_test(y, d["sex"])
    rng = np.random.default_rng(0)
    values, vectors = np.linalg.eigh(found.correlation)
    draws = rng.normal(size=(400_000, 4)) * np.sqrt(values.clip(0)) @ vectors.T
    share = (np.abs(draws).max(axis=1) >= found.statistic).mean()
    assert found.p_value == pytest.approx(share, abs=4 * np.sqrt(share / 400_000))


# ---------------------------------------------------------------------------------- messages


def test_messages():
    y, group = rs.Surv([1, 2, 3, 4], [1, 1, 0, 1]), list("abab")
    with pytest.raises(rs.InputError, match="`gamma` must not be negative, but it is -1"):
        rs.logrank_test(y, group, gamma=-1)
    with pytest.raises(rs.InputError, match="did you mean 'tarone-ware'"):
        rs.logrank_test(y, group, weighting="tarone")
    with pytest.raises(
        rs.InputError, match="'gehan-wilcoxon', which has no powers, but `rho` is 1"
    ):
        rs.logrank_test(y, group, weighting="gehan-wilcoxon", rho=1)
    with pytest.raises(rs.InputError, match="takes rows for independent"):
        rs.logrank_test(y, group, cluster=[1, 1, 2, 2], variance="counts")
    with pytest.raises(rs.InputError, match="did you mean 'holm'"):
        rs.pairwise_logrank_test(y, group, adjust="holms")
    with pytest.raises(rs.InputError, match="no comparison|unknown pair|pair"):
        rs.pairwise_logrank_test(y, group)["a", "z"]
    with pytest.raises(rs.InputError, match="compares two groups, but `group` has 3"):
        rs.max_combo_test(y, list("abca"))
    with pytest.raises(rs.InputError, match="`weights` must be 1 to 20 different pairs"):
        rs.max_combo_test(y, group, weights=[(0, 0), (0, 0)])
    with pytest.raises(rs.InputError, match="never at risk together"):
        rs.max_combo_test(rs.Surv([1, 2], [1, 1], [0, 1]), list("ab"))
    ids = np.arange(1001)
    with pytest.raises(rs.InputError, match="at most 1,000 groups"):
        rs.logrank_test(rs.Surv(ids + 1, np.ones(1001)), ids, variance="robust")


@pytest.mark.parametrize("power", [float("nan"), float("inf"), "late", True, None])
@pytest.mark.parametrize("name", ["rho", "gamma"])
def test_powers_are_finite_numbers(name, power):
    y, group = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1]), list("abab")
    with pytest.raises(rs.InputError, match=f"`{name}` must be a finite number, but it is"):
        rs.logrank_test(y, group, **{name: power})
    if name == "rho":
        with pytest.raises(rs.InputError, match="`rho` must be a finite number"):
            rs.gray_test(y, group, rho=power)


@pytest.mark.parametrize("size", [2.0**-1000, 2.0**-500, 2.0**500, 2.0**1000])
def test_the_unit_of_weights_does_not_matter(rng, size):
    """Weights whose squares are 0 or infinite, as numbers of floating point."""
    time, event = rng.integers(1, 20, 60), rng.integers(0, 2, 60)
    y, group, weight = rs.Surv(time, event), rng.choice(list("abc"), 60), rng.uniform(0.5, 2, 60)
    two = group != "c"
    one, other = (
        (
            rs.logrank_test(y, group, weight=w, gamma=1, variance="robust"),
            rs.logrank_test(y, group, weight=w, variance="robust").trend(),
            *rs.pairwise_logrank_test(y, group, weight=w, rho=1, variance="robust"),
            rs.max_combo_test(y[two], group[two], weight=w[two], variance="robust"),
        )
        for w in (weight, weight * size)
    )
    for a, b in zip(one, other, strict=True):
        assert b.statistic == pytest.approx(a.statistic, rel=1e-9)
        assert b.p_value == pytest.approx(a.p_value, rel=1e-9)
