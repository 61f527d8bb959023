"""Balance: R's numbers for 70 covariates at every step, by hand, and the variances row by row."""

import functools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from cohort.golden import (
    MATCHINGS,
    RHC,
    SMD,
    STRATA,
    TINY,
    TRIMS,
    WEIGHTS,
    rhc_covariates,
    rhc_matched,
    rhc_people,
    rhc_strata,
    rhc_trimmed,
    rhc_weighted,
    table,
)
from reference import GOLDEN, read_json
from riskset.cohort.adjustments.adjustment import start
from riskset.data.frame import FrameEncoder
from storages import each_storage

TRUNCATED = {"ate_stab_truncated_p99": "ate_stab_p99", "ate_stab_truncated_3": "ate_stab_3"}


@functools.cache
def adjustments():
    """Every step of the golden table: name -> adjustment, summary of the golden file."""
    found = {"before": (start(rhc_people()), RHC["before"]["smd"])}
    for name, key in MATCHINGS.items():
        found[name] = (rhc_matched(name), RHC["match"][key]["smd_att_weighted"])
    for name, (key, *_) in STRATA.items():
        found[name] = (rhc_strata(name), RHC["strata"][key]["smd_weighted"])
    for name in WEIGHTS:
        found[f"w_{TRUNCATED.get(name, name)}"] = (rhc_weighted(name), RHC["weights"][name]["smd"])
    for name, (column, _) in TRIMS.items():
        adjusted = rs.cohort.weight(rhc_trimmed(name), "ate", stabilise=True)
        found[f"trim_{column}"] = (adjusted, RHC["trim"][name]["ate_stab_ps_kept"]["smd"])
    return found


@functools.cache
def golden_rows(step):
    own = table("rhc_balance")
    rows = own["step"] == step
    return {name: values[rows] for name, values in own.items()}


def test_every_step_of_the_golden_table_is_here():
    assert set(adjustments()) == set(table("rhc_balance")["step"])


@pytest.mark.parametrize("step", sorted(adjustments()))
def test_golden_balance(step):
    adjustment, summary = adjustments()[step]
    expected = golden_rows(step)
    found = rs.cohort.balance(rhc_covariates(), adjustment, sd="current", variance="weights")
    assert list(found.names) == expected["covariate"].tolist()
    after = found.after
    # The table has 12 digits.
    for name in ("mean_target", "mean_comparator", "sd_target", "sd_comparator"):
        assert_allclose(getattr(after, name), expected[name], rtol=1e-11)
    assert_allclose(after.smd, expected["smd_current_sd"], **SMD)
    assert_allclose(after.smd_variance, expected["smd_current_variance"], rtol=1e-10)
    by_before = rs.cohort.balance(rhc_covariates(), adjustment)
    assert_allclose(by_before.after.smd, expected["smd_before_sd"], **SMD)
    assert_allclose(by_before.after.smd_current_sd, expected["smd_current_sd"], **SMD)
    assert_allclose(by_before.before.smd, golden_rows("before")["smd_before_sd"], **SMD)
    check_summary(by_before, found, summary)


def check_summary(by_before, by_current, expected):
    own = by_before.summary()
    assert_allclose(own["max"], expected["max_abs_before_sd"], **SMD)
    assert_allclose(by_current.summary()["max"], expected["max_abs_current_sd"], **SMD)
    assert own["n_above"] == expected["n_above_0.1_before_sd"]
    if own["max"] > 1e-9:  # for overlap weights all differences are rounding
        assert own["worst"] == expected["worst"]


@pytest.mark.parametrize("name", STRATA)
def test_weights_by_which_strata_count_alike(name):
    expected = RHC["strata"][STRATA[name][0]]["smd_cohortmethod_weight"]
    adjustment = rhc_strata(name, "equal")
    found = rs.cohort.balance(rhc_covariates(), adjustment)
    current = rs.cohort.balance(rhc_covariates(), adjustment, sd="current")
    check_summary(found, current, expected)


def test_overlap_weights_balance_every_mean():
    found = rs.cohort.balance(rhc_covariates(), rhc_weighted("ato"))
    assert found.summary()["max"] < 1e-7


def test_differences_of_the_other_file():
    expected = read_json(GOLDEN / "rhc.json")
    found = rs.cohort.balance(rhc_covariates(), rhc_matched("r1"), sd="current")
    assert_allclose(found.before.smd, list(expected["smd_before"].values()), **SMD)
    after = expected["match_1to1_closest_pair_first"]["smd_after_max"]
    assert_allclose(found.summary()["max"], after, **SMD)


@pytest.mark.parametrize(
    ("key", "adjustment", "variance"),
    [
        ("before", lambda: start(rhc_people()), "auto"),
        ("iptw_ate_stab", lambda: rhc_weighted("ate_stab"), "auto"),
        ("strata10_cohortmethod_weight", lambda: rhc_strata("s10_all", "equal"), "auto"),
    ],
)
def test_golden_variances_and_p(key, adjustment, variance):
    block = RHC["balance_test"]
    expected = block[key]
    found = rs.cohort.balance(
        rhc_covariates(),
        adjustment(),
        sd="current",
        variance=variance,
        threshold=block["threshold"],
    )
    at = [found.names.index(name) for name in block["covariates"]]
    assert_allclose(found.after.smd[at], expected["smd"], **SMD)
    assert_allclose(found.after.smd_variance[at], expected["variance"], rtol=1e-10)
    assert_allclose(found.after.p[at], expected["p"], rtol=1e-8)


# ---------------------------------------------------------------------------------- by hand


def tiny():
    own = table("tiny_balance")
    people = rs.cohort.Population(own["treat"], row_id=own["id"])
    weight = np.where(np.isnan(own["set"]), 0.0, 1.0)
    weight[1:3] = 0.5
    matched = rs.cohort.Adjustment("matching", "att", people, weight)
    return np.column_stack([own["x_binary"], own["y"]]), matched


@pytest.mark.parametrize("make", [np.asarray, sp.csc_array, sp.coo_matrix])
def test_balance_by_hand(make):
    x, matched = tiny()
    assert matched.weight[matched.kept].tolist() == TINY["balance"]["after_weights"]
    found = rs.cohort.balance(make(x), matched, variance="weights", sd="current")
    for side, key in ((found.before, "before"), (found.after, "after")):
        for j, expected in enumerate(TINY["balance"][key]):
            for name in ("mean_target", "mean_comparator", "sd_target", "sd_comparator"):
                assert_allclose(getattr(side, name)[j], expected[name], rtol=1e-12)
            assert_allclose(side.smd_current_sd[j], expected["smd_current_sd"], **SMD)
    expected = TINY["balance"]["after"]
    assert_allclose(found.after.smd_variance, [e["smd_current_variance"] for e in expected], **SMD)
    usual = rs.cohort.balance(make(x), matched)
    assert_allclose(usual.after.smd, [e["smd_before_sd"] for e in expected], **SMD)
    expected = TINY["balance"]["before"]
    assert_allclose(usual.before.smd, [e["smd_before_sd"] for e in expected], **SMD)
    everybody = rs.cohort.balance(make(x), matched.population, variance="weights")
    variances = [e["smd_current_variance"] for e in expected]
    assert_allclose(everybody.after.smd_variance, variances, **SMD)
    assert found.before.count_target.tolist()[0] == 2
    assert found.after.count_comparator.tolist()[0] == 1
    assert np.isnan(found.after.count_comparator[1])


def by_rows(x, weight, arm):
    """Mean, variance and sum of u^2 (x - m)^2, as the formulas read."""
    u = weight[arm] / weight[arm].sum()
    m = (u * x[arm]).sum()
    spread = (u * (x[arm] - m) ** 2).sum() / (1 - (u**2).sum())
    return m, spread, (u**2 * (x[arm] - m) ** 2).sum()


def test_far_from_zero_and_nearly_constant_columns():
    """Sums of squares lose all digits of the spread; it is found all the same."""
    rng = np.random.default_rng(5)
    n = 400
    treat = rng.integers(0, 2, n)
    x = np.zeros((n, 3))
    x[:, 0] = 1e9 + rng.normal(size=n)
    x[:, 1] = np.where(rng.random(n) < 0.9, 1e7 + rng.normal(size=n), 0.0)
    x[:, 1][treat == 1] = 1e7 + rng.normal(size=(treat == 1).sum())  # dense in one arm
    x[:, 2] = 5.0
    weight = rng.random(n) + 0.1
    people = rs.cohort.Population(treat)
    adjustment = rs.cohort.Adjustment("weighting", "ate", people, weight)
    for make in (np.asarray, sp.csc_array):
        found = rs.cohort.balance(make(x), adjustment, sd="current", variance="weights").after
        for j in range(2):
            m1, v1, s1 = by_rows(x[:, j], weight, treat == 1)
            m0, v0, s0 = by_rows(x[:, j], weight, treat == 0)
            assert_allclose(found.sd_target[j], np.sqrt(v1), rtol=1e-6)
            assert_allclose(found.smd[j], (m1 - m0) / np.sqrt((v1 + v0) / 2), rtol=1e-6)
            assert_allclose(found.smd_variance[j], (s1 + s0) / ((v1 + v0) / 2), rtol=1e-6)
        assert found.smd[2] == 0.0
        assert found.sd_target[2] == 0.0


def test_a_covariate_that_separates_the_arms_is_infinite():
    treat = np.array([1, 1, 0, 0])
    x = np.column_stack([treat, 1 - treat, np.ones(4), np.zeros(4), 3.0 * treat])
    found = rs.cohort.balance(x, start(rs.cohort.Population(treat)))
    assert_array_equal(found.after.smd, [np.inf, -np.inf, 0, 0, np.inf])
    assert_array_equal(found.after.balanced, [False, False, True, True, False])
    assert found.summary()["max"] == np.inf
    assert found.summary()["n_above"] == 3


def test_generalisability_by_hand():
    x = np.array([[0.0], [2.0], [4.0], [1.0], [3.0]])
    people = rs.cohort.Population([1, 1, 1, 0, 0])
    kept = rs.cohort.restrict(people, [True, True, False, True, True], "x")
    found = rs.cohort.balance(x, kept)
    # Target: mean 2 of variance 4, then mean 1 of variance 2.
    assert_allclose(found.generalisability_target, 1 / np.sqrt(3), rtol=1e-14)
    assert_allclose(found.generalisability_comparator, 0.0, atol=1e-15)
    # Both: mean 2 of variance 2.5, then mean 1.5. As CohortMethod, by the deviation before.
    assert_allclose(found.generalisability_both, 0.5 / np.sqrt(2.5), rtol=1e-14)


def columns_without_variance(n, kept):
    """Columns that do not vary: in nobody, or in nobody who is kept."""
    rng = np.random.default_rng(n)
    flag = np.ones(n)
    flag[~kept] = rng.random(np.count_nonzero(~kept)) < 0.5
    lab = np.where(kept, 0.1, rng.random(n))
    dose = np.where(kept | (rng.random(n) < 0.2), 0.3, 0.0)
    return np.column_stack([np.ones(n), np.full(n, 0.1), flag, lab, dose])


@pytest.mark.parametrize("n", [7, 100, 4096, 10_007])
@pytest.mark.parametrize("estimand", ["ate", "att", "atu", "ato", "matching"])
def test_what_does_not_vary_differs_by_exactly_nothing(n, estimand):
    rng = np.random.default_rng(n)
    treat, score = np.arange(n) % 3 == 0, rng.uniform(0.05, 0.95, n)
    kept = rng.random(n) < 0.9
    kept[:4] = True
    people = rs.cohort.Population(treat, score)
    weighted = rs.cohort.weight(rs.cohort.restrict(people, kept, "kept"), estimand)
    found = rs.cohort.balance(columns_without_variance(n, kept), weighted)
    assert_array_equal(found.after.smd, 0.0)
    for arm in ("target", "comparator"):
        assert_array_equal(getattr(found.after, f"sd_{arm}"), 0.0)
        assert_array_equal(getattr(found.after, f"mean_{arm}"), [1, 0.1, 1, 0.1, 0.3])
    # Those that never vary; the others did before.
    for group in ("target", "comparator", "both"):
        assert_array_equal(getattr(found, f"generalisability_{group}")[:2], 0.0)
    strata = rs.cohort.stratify(people, 2)
    assert_array_equal(rs.cohort.balance(np.ones((n, 1)), strata).generalisability_both, 0.0)


@pytest.mark.parametrize(
    ("adjust", "group"),
    [
        (lambda p: rs.cohort.match(p, caliper=None), "target"),
        (lambda p: rs.cohort.weight(p, "att"), "target"),
        (lambda p: rs.cohort.weight(p, "atu"), "comparator"),
        (lambda p: rs.cohort.weight(p, "ate"), "both"),
        (lambda p: rs.cohort.weight(p, "ato"), "both"),
        (lambda p: rs.cohort.restrict(p, p.score < 0.6, "low"), "both"),
    ],
)
def test_generalisability_is_of_those_the_effect_is_about(adjust, group):
    rng = np.random.default_rng(3)
    people = rs.cohort.Population(np.arange(60) < 20, rng.uniform(0.1, 0.8, 60))
    found = rs.cohort.balance(rng.normal(size=(60, 3)), adjust(people))
    expected = np.abs(getattr(found, f"generalisability_{group}")).max()
    assert found.generalises_to == group
    assert found.max_generalisability == expected
    gate = rs.cohort.diagnose(balance=found, max_generalisability=1.0)
    assert gate["generalisability"].value == expected


def test_pairs_have_the_variance_of_counts_and_sets_that_of_weights():
    x = rhc_covariates()
    found = rs.cohort.balance(x, rhc_matched("r1"))
    assert found.variance == "counts"
    n, smd = 1515, found.after.smd
    assert_allclose(found.after.smd_variance, 2 / n + smd**2 / (2 * (2 * n - 2)), rtol=1e-12)
    assert rs.cohort.balance(x, rhc_matched("r4")).variance == "weights"


def test_counts_are_of_people_whatever_their_weights():
    x = (np.arange(12) % 3 == 0).astype(float)[:, None]
    people = rs.cohort.Population(np.arange(12) < 5, np.linspace(0.2, 0.7, 12))
    for adjusted in (
        rs.cohort.weight(people),
        rs.cohort.match(people, caliper=None),
        rs.cohort.stratify(people, 2),
    ):
        found = rs.cohort.balance(x, adjusted)
        target = people.is_target
        assert found.before.count_target[0] == x[target].sum() == 2
        assert found.before.count_comparator[0] == x[~target].sum() == 2
        assert found.after.count_target[0] == x[target & adjusted.kept].sum()
        assert found.after.count_comparator[0] == x[~target & adjusted.kept].sum()


def test_family_wise_decision():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 30))
    x[:100, 0] += 1.5
    people = rs.cohort.Population((np.arange(200) < 100).astype(int))
    found = rs.cohort.balance(x, start(people), alpha=0.05)
    # Chance differences of about 0.14 exceed 0.1, but not significantly so.
    assert found.summary()["n_above"] > 3
    assert_array_equal(found.after.balanced, [False] + [True] * 29)
    assert found.summary()["min_p"] == pytest.approx(30 * found.after.p[0])


@each_storage
def test_the_bits_do_not_depend_on_threads(store):
    rng = np.random.default_rng(3)
    x = store((rng.random((3000, 300)) < 0.05) * rng.choice([1.0, 1.0, 2.5], 300))
    people = rs.cohort.Population(np.arange(3000) % 2)
    columns = [
        rs.cohort.balance(x, start(people), n_threads=k).after.smd.tobytes() for k in (1, 2, 3)
    ]
    assert columns[0] == columns[1] == columns[2]


def test_frames_and_what_they_look_like():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [50, 60, 55, 70], "sex": ["f", "m", "m", "f"]})
    found = rs.cohort.balance(frame, start(rs.cohort.Population([1, 1, 0, 0])))
    assert found.names == ("age", "sex=f", "sex=m")
    out = found.to_frame()
    assert out.shape[0] == 3
    assert list(out["name"]) == ["age", "sex=f", "sex=m"]
    assert "largest difference" in repr(found)


def test_without_matches_the_side_after_is_unknown():
    people = rs.cohort.Population([1, 0, 0], [0.9, 0.1, 0.1])
    nobody = rs.cohort.match(people, caliper=0.01)
    found = rs.cohort.balance([[1.0], [2.0], [4.0]], nobody)
    assert found.status == "no_matches"
    assert np.isnan(found.after.smd).all()
    assert found.summary()["max"] is None
    assert "not known (status 'no_matches')" in repr(found)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sd": "after"}, "`sd`"),
        ({"variance": "none"}, "`variance`"),
        ({"variance": "strata"}, "needs strata"),
        ({"threshold": 0}, "`threshold`"),
        ({"alpha": 2}, "`alpha`"),
    ],
)
def test_messages(options, words):
    people = rs.cohort.Population([1, 0])
    with pytest.raises(rs.InputError, match=words):
        rs.cohort.balance([[1.0], [2.0]], start(people), **options)
    with pytest.raises(rs.CohortError, match="have 3 rows, but the population has 2"):
        rs.cohort.balance([[1.0], [2.0], [3.0]], start(people))


@pytest.mark.parametrize("weigh", ["none", "weights", "strata", "pairs"])
def test_missing_values_are_left_out_as_if_their_rows_were_not_there(rng, weigh):
    n = 400
    treated = rng.random(n) < 0.5
    score = np.where(treated, 0.5, 0.35) + 0.25 * rng.random(n)
    gap, gap_of_text = rng.random(n) < 0.2, rng.random(n) < 0.1
    columns = {
        "flag": (rng.random(n) < 0.4).astype(float),
        "dose": rng.normal(5, 2, n) + treated,
        "stage": rng.choice(["I", "II", "III"], n),
    }
    mask = {"flag": gap, "dose": gap, "stage": gap_of_text}
    frame = pa.table({k: pa.array(v, mask=mask[k]) for k, v in columns.items()})
    people = rs.cohort.Population(treated, score)
    adjusted = {
        "none": lambda: rs.cohort.trim(people, symmetric=0.4),
        "weights": lambda: rs.cohort.weight(people, estimand="att"),
        "strata": lambda: rs.cohort.stratify(people, k=4),
        "pairs": lambda: rs.cohort.match(people),
    }[weigh]()
    encoded = FrameEncoder.fit(frame, None, None, "indicator")[1]
    found = rs.cohort.balance(encoded, adjusted)
    for name, values in columns.items():
        known = ~mask[name]
        own = replace(
            adjusted,
            population=rs.cohort.Population(treated[known], score[known]),
            weight=adjusted.weight[known],
            set_id=None if adjusted.set_id is None else adjusted.set_id[known],
        )
        alone = rs.cohort.balance(pa.table({name: values[known]}), own, variance=found.variance)
        places = [found.names.index(one) for one in alone.names]
        for side in ("before", "after"):
            for statistic in rs.cohort.Balance.columns(alone):
                if statistic.startswith(side) and statistic != f"{side}_balanced":
                    there = found.columns()[statistic][places]
                    assert_allclose(there, alone.columns()[statistic], rtol=1e-10, atol=1e-12)
        for group in ("target", "comparator", "both"):
            there = getattr(found, f"generalisability_{group}")[places]
            here = getattr(alone, f"generalisability_{group}")
            assert_allclose(there, here, rtol=1e-9, atol=1e-10)
        at = found.names.index(f"{name}=(missing)")
        assert found.before.mean_target[at] == pytest.approx(mask[name][treated].mean())


def test_the_balance_and_table_1_leave_out_the_same_missing_values():
    # By hand: 1 of 2 known against 2 of 3, with variances 1/2 and 1/3.
    frame = pa.table({"g": [0, 1, None, 0, 1, 1]})
    people = rs.cohort.Population([1, 1, 1, 0, 0, 0])
    made = rs.cohort.table1(frame, people)
    (line,) = [row for row in made.rows if row.kind == "share"]
    smd = (1 / 2 - 2 / 3) / np.sqrt((1 / 2 + 1 / 3) / 2)
    assert line.before.smd == pytest.approx(smd)
    assert made.balance.before.smd[0] == pytest.approx(smd)
    assert made.balance.before.mean_target[0] == 0.5
    assert made.balance.before.count_target[0] == 1


def test_few_missing_values_hide_the_share_and_count_of_their_covariate():
    n = 40
    flag = [1] * 20 + [0] * 17 + [None] * 3 + [1, 0] * 20
    frame = pa.table({"flag": flag, "other": [1, 0] * n})
    people = rs.cohort.Population([1] * n + [0] * n)
    measured = rs.cohort.balance(FrameEncoder.fit(frame, None, None, "indicator")[1], people)
    shared = rs.cohort.share_balance(measured)
    assert measured.names == ("flag", "flag=(missing)", "other")
    assert np.isnan(shared["before_count_target"]).tolist() == [True, True, False]
    assert np.isnan(shared["before_mean_target"]).tolist() == [True, True, False]
    assert np.isnan(shared["before_smd"]).tolist() == [True, True, False]
