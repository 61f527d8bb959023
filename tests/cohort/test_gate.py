"""Attrition, the diagnostics gate, and what may be shared: by hand."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import riskset as rs
from cohort.golden import RHC, rhc_covariates, rhc_matched, rhc_outcome, rhc_trimmed, rhc_weighted
from riskset.cohort.diagnostics import Diagnostic, Diagnostics
from riskset.disclosure.small_cells import hide_attrition

# ------------------------------------------------------------------------------- attrition


def test_attrition_adds_up():
    matched = rs.cohort.match(rhc_trimmed("asymmetric_0.05"))
    table = rs.cohort.attrition(matched).columns()
    assert table["step"].tolist() == [
        "population",
        "overlap of the scores",
        "asymmetric trimming of 0.05",
        "matched",
    ]
    expected = RHC["trim"]["common_range"]
    assert table["target_exposures"][:2].tolist() == [2184, expected["n_target"]]
    for arm in ("target", "comparator"):
        left, gone = table[f"{arm}_exposures"], table[f"removed_{arm}"]
        assert_array_equal(left[:-1] - gone[1:], left[1:])
    assert table["target_exposures"][-1] == table["comparator_exposures"][-1] == matched.n_target


def test_attrition_hides_what_would_give_a_small_step_away():
    people = rs.cohort.Population([1] * 100 + [0] * 50)
    first = rs.cohort.restrict(people, np.arange(150) != 0, "one target leaves")
    last = rs.cohort.restrict(first, np.arange(150) > 40, "forty leave")
    found = rs.cohort.attrition(last)
    shown = found.columns(min_cell_count=5)
    # 100 - 1 = 99 and 99 - 40 = 59: the 1 is hidden, so is 99, so is 40.
    assert shown["target_exposures"].tolist() == [100, None, 59]
    assert shown["removed_target"].tolist() == [0, None, None]
    assert shown["target_persons"].tolist() == [100, None, 59]
    assert shown["removed_target_suppressed"].tolist() == [False, True, True]
    # Nothing is small among comparators.
    assert shown["comparator_exposures"].tolist() == [50, 50, 50]
    assert found.columns()["removed_target"].tolist() == [0, 1, 40]
    assert found.to_frame(5, library="pyarrow").column("removed_target").to_pylist()[1] is None
    assert "forty leave: 59 target, 50 comparator" in repr(found)


def test_attrition_hides_people_who_would_tell_it():
    # Exposures, persons and removed exposures of an arm. 4490 - 4488 = 2 are known by either.
    steps = [[5000, 4490, 4488, 2371], [4800, 4490, 4488, 2371], [0, 510, 2, 2117]]
    exposures, persons, removed = hide_attrition(steps, 5)
    assert_array_equal(exposures, [False, False, True, False])
    assert_array_equal(persons, [False, False, True, False])
    assert_array_equal(removed, [False, False, True, True])
    # Six exposures of two people leave: exposures may be seen, those of 80 - 78 people not.
    exposures, persons, removed = hide_attrition([[100, 94, 80], [80, 78, 60], [0, 6, 14]], 5)
    assert not exposures.any()
    assert not removed.any()
    assert_array_equal(persons, [False, True, False])


def brute_force(values, equations, hidden):
    """Positions of hidden counts that have one value in all whole solutions near the truth."""
    at = np.flatnonzero(hidden)
    solutions = []
    for change in itertools.product((-1, 0, 1), repeat=at.size):
        tried = np.array(values)
        tried[at] += change
        if all(tried[total] == sum(tried[list(parts)]) for total, parts in equations):
            solutions.append(tried[at])
    return at[np.ptp(np.array(solutions), axis=0) == 0]


@pytest.mark.parametrize("seed", range(30))
def test_no_hidden_count_follows_from_the_others(seed):
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.integers(1, 12, 4)
    # A table of two by two with all its margins.
    values = [a, b, c, d, a + b, c + d, a + c, b + d, a + b + c + d]
    equations = [(4, (0, 1)), (5, (2, 3)), (6, (0, 2)), (7, (1, 3)), (8, (4, 5)), (8, (6, 7))]
    hidden = rs.cohort.hide_small(values, equations)
    assert hidden[np.array(values) < 5].all()
    if hidden.any():
        assert brute_force(values, equations, hidden).size == 0
    else:
        assert min(values) >= 5


def test_zeros_are_shown_and_totals_hidden_with_their_only_part():
    assert rs.cohort.hide_small([0, 7, 3]).tolist() == [False, False, True]
    # A total of one part is that part.
    assert rs.cohort.hide_small([3, 3], [(0, (1,))]).tolist() == [True, True]
    # 3 = 3 + 0: the total is small itself; no zero need be hidden.
    assert rs.cohort.hide_small([3, 3, 0], [(0, (1, 2))]).tolist() == [True, True, False]
    assert not rs.cohort.hide_small([1, 2, 3], [(2, (0, 1))], min_cell_count=0).any()
    with pytest.raises(rs.CohortError, match="`min_cell_count`"):
        rs.cohort.hide_small([1], min_cell_count=-1)


# ------------------------------------------------------------------------------ diagnostics


def test_gate_of_the_matched_cohort():
    matched = rhc_matched("r1")
    found = rs.cohort.diagnose(
        balance=rs.cohort.balance(rhc_covariates(), matched),
        equipoise=rs.cohort.equipoise(matched.population),
        mdrr=RHC["match"]["ratio1"]["mdrr"],
        ease=0.1565,
        proportionality_p=0.2,
    )
    assert found.unblind
    verdicts = {check.name: check.verdict for check in found.checks}
    assert verdicts == {
        "balance": "pass",
        "shared_balance": "not_evaluated",
        "equipoise": "pass",
        "mdrr": "pass",
        "ease": "pass",
        "generalisability": "not_evaluated",
        "proportional_hazards": "not_evaluated",
    }
    expected = RHC["match"]["ratio1"]["smd_att_weighted"]["max_abs_before_sd"]
    assert found["balance"].value == pytest.approx(expected, abs=1e-10)
    assert found["proportional_hazards"].value == 0.2
    assert found["generalisability"].value > 0.1


@pytest.mark.parametrize(
    ("options", "failed"),
    [
        ({"equipoise": 0.2}, []),
        ({"equipoise": 0.19}, ["equipoise"]),
        ({"mdrr": 10.0}, ["mdrr"]),
        ({"mdrr": np.inf}, ["mdrr"]),
        ({"ease": 0.25}, ["ease"]),
        ({"ease": float("nan")}, []),
        ({"ease": 0.3, "max_ease": 0.4}, []),
        ({"proportionality_p": 1e-9}, []),
    ],
)
def test_limits(options, failed):
    found = rs.cohort.diagnose(**options)
    assert [check.name for check in found.checks if check.verdict == "fail"] == failed
    assert found.unblind is (not failed)


def test_gate_of_balance():
    x, people = rhc_covariates(), rhc_weighted("ate").population
    crude = rs.cohort.balance(x, people)
    assert rs.cohort.diagnose(balance=crude)["balance"].verdict == "fail"
    strict = rs.cohort.balance(x, people, alpha=0.05)
    assert rs.cohort.diagnose(balance=strict)["balance"].verdict == "fail"
    nobody = rs.cohort.match(rs.cohort.Population([1, 0], [0.9, 0.1]), caliper=0.01)
    unknown = rs.cohort.balance([[1.0], [2.0]], nobody)
    assert rs.cohort.diagnose(balance=unknown)["balance"].verdict == "not_evaluated"
    limited = rs.cohort.diagnose(
        balance=rs.cohort.balance(x, rhc_matched("r1")), max_generalisability=0.1
    )
    assert limited["generalisability"].verdict == "fail"


def test_gate_of_the_shared_balance():
    """Controls have it alone, and it has the generalisability of all outcomes."""
    x, matched = rhc_covariates(), rhc_matched("r1")
    fine, crude = rs.cohort.balance(x, matched), rs.cohort.balance(x, matched.population)
    control = rs.cohort.diagnose(shared_balance=crude, max_generalisability=0.1)
    assert control["balance"].verdict == "not_evaluated"
    assert control["shared_balance"].verdict == "fail"
    assert control["shared_balance"].value == np.abs(crude.before.smd).max()
    assert not control.unblind
    # Nobody was left out, so those analysed are all.
    assert (control["generalisability"].value, control["generalisability"].verdict) == (0.0, "pass")
    both = rs.cohort.diagnose(balance=crude, shared_balance=fine, max_generalisability=0.1)
    assert both["balance"].verdict == "fail"
    assert both["shared_balance"].verdict == "pass"
    assert both["generalisability"].verdict == "fail"


def test_limit_of_the_shared_balance():
    fine = rs.cohort.balance(rhc_covariates(), rhc_matched("r1"))
    size = np.abs(fine.after.smd).max()

    def verdict(**limits):
        return rs.cohort.diagnose(shared_balance=fine, **limits)["shared_balance"].verdict

    assert verdict(max_smd=size / 2) == "fail"
    assert verdict(max_smd=size / 2, max_shared_smd=size * 2) == "pass"
    assert verdict(max_smd=size * 2, max_shared_smd=size / 2) == "fail"


GATES = ("balance", "shared_balance", "equipoise", "generalisability", "ease", "mdrr")


@pytest.mark.parametrize("verdicts", list(itertools.product(("pass", "fail"), repeat=len(GATES))))
def test_what_may_be_seen_and_what_may_be_pooled(verdicts):
    """A failure forbids either; that of the detectable ratio forbids reading alone."""
    checks = [Diagnostic(n, 1.0, 1.0, v) for n, v in zip(GATES, verdicts, strict=True)]
    checks.append(Diagnostic("proportional_hazards", 0.01, None, "not_evaluated"))
    found = Diagnostics(tuple(checks))
    for_synthesis = "fail" not in verdicts[:5]
    assert found.unblind_for_evidence_synthesis is for_synthesis
    assert found.unblind is (for_synthesis and verdicts[5] != "fail")


def test_chance_imbalance_may_pass_by_its_p():
    rng = np.random.default_rng(2)
    people = rs.cohort.Population((np.arange(200) < 100).astype(int))
    x = rng.normal(size=(200, 30))
    assert rs.cohort.diagnose(balance=rs.cohort.balance(x, people))["balance"].verdict == "fail"
    tested = rs.cohort.balance(x, people, alpha=0.05)
    assert rs.cohort.diagnose(balance=tested)["balance"].verdict == "pass"


def test_words():
    found = rs.cohort.diagnose(ease=0.5)
    assert "blind: balance not_evaluated" in repr(found)
    assert found.to_frame("pyarrow").num_rows == 7
    with pytest.raises(rs.InputError, match="'eas' was not found"):
        found["eas"]
    with pytest.raises(rs.CohortError, match="`max_ease`"):
        rs.cohort.diagnose(max_ease=None)


# ---------------------------------------------------------------------------------- sharing


def shared(event, **options):
    n = len(event)
    people = rs.cohort.Population(np.arange(n) % 2)
    y = rs.Surv(np.arange(1.0, n + 1), event)
    return rs.cohort.share_estimate(rs.cohort.fit_outcome(y, people), **options)


def test_few_outcomes_in_an_arm_hide_what_tells_them():
    event = np.zeros(40, dtype=int)
    event[::2] = 1  # comparators
    event[1:7:2] = 1  # three targets
    row = shared(event)
    assert row["target_outcomes"] is None
    assert row["target_rate"] is None
    assert row["target_weighted_rate"] is None
    assert row["mdrr"] is None
    assert row["comparator_outcomes"] == 20
    assert row["comparator_rate"] > 0
    assert row["hr"] > 0
    assert "target_outcomes" in row["suppressed"]
    assert shared(event, min_cell_count=0)["target_outcomes"] == 3


def test_fewer_than_five_outcomes_hide_the_effect():
    event = np.zeros(40, dtype=int)
    event[:4] = 1
    row = shared(event)
    assert row["status"] == "ok"
    assert row["hr"] is None
    assert row["p"] is None


def test_failed_diagnostics_withhold_the_effect():
    event = np.ones(40, dtype=int)
    row = shared(event, blind=True)
    assert row["blinded"] is True
    assert row["hr"] is None
    assert row["hr_upper"] is None
    assert row["target_outcomes"] == 20
    assert shared(event)["hr"] > 0


def test_few_people_hide_both_their_counts():
    row = shared(np.ones(8, dtype=int))
    assert row["target_persons"] is None
    assert row["target_exposures"] is None


def test_balance_without_small_counts():
    x = np.zeros((40, 3))
    x[:6, 0] = 1  # three in each arm
    x[:20, 1] = 1
    x[:, 2] = np.arange(40)
    people = rs.cohort.Population(np.arange(40) % 2)
    found = rs.cohort.balance(x, people)
    columns = rs.cohort.share_balance(found)
    assert np.isnan(columns["before_mean_target"]).tolist() == [True, False, False]
    assert np.isnan(columns["after_count_comparator"]).tolist() == [True, False, True]
    assert columns["after_count_comparator_suppressed"].tolist() == [True, False, False]
    # 3 of 20 in each arm: the difference, with what else is known, would tell it.
    assert np.isnan(columns["after_smd"]).tolist() == [True, False, False]
    assert_array_equal(columns["after_smd"][1:], found.after.smd[1:])
    assert_array_equal(columns["after_balanced"], found.after.balanced)


def test_curves_end_where_an_arm_has_too_few():
    people = rs.cohort.Population([1] * 10 + [0] * 10)
    y = rs.Surv(np.concatenate([np.arange(1.0, 11), np.arange(11.0, 21)]), np.ones(20, dtype=bool))
    curves = rs.cohort.survival(y, people)
    shown = rs.cohort.share_curves(curves, np.arange(1, 11))
    # At 6 five targets are still at risk, at 7 four.
    assert shown["time"].max() == 6
    # Steps of the target are of one outcome each; at 5 it has had five, and five are left.
    is_target = shown["arm"] == "target"
    assert shown["time"][is_target].tolist() == [5]
    assert shown["time"][~is_target].tolist() == [1, 2, 3, 4, 5, 6]
    assert rs.cohort.share_curves(curves, [1, 7], min_cell_count=0)["time"].max() == 7


def test_proportionality_is_reported():
    found = rs.cohort.fit_outcome(rhc_outcome(), rhc_matched("r1").population)
    data = rs.Design.from_columns({"treatment": rhc_matched("r1").population.treatment * 1.0})
    model = rs.Cox().fit(data, rhc_outcome())
    expected = model.test_proportionality(data, rhc_outcome(), "log").p_value[0]
    assert found.proportionality_p == pytest.approx(expected, rel=1e-12)
    assert found.columns()["proportionality_p"] == found.proportionality_p


# ------------------------------------------------------------------- subgroups and risks


def with_subgroups():
    """100 targets and 100 comparators; a subgroup of 3 + 40, and one of all but 2 targets."""
    rng = np.random.default_rng(6)
    treat = np.repeat([1, 0], 100)
    small, large = np.zeros(200), np.ones(200)
    small[[0, 1, 2, *range(100, 140)]] = 1
    large[[5, 6]] = 0
    half = np.tile([1.0, 0.0], 100)
    y = rs.Surv(rng.exponential(size=200) + 0.01, np.tile([1, 1, 1, 0], 50))
    columns = {"small": small, "large": large, "half": half}
    return rs.cohort.fit_outcome(
        y, rs.cohort.Population(treat), interactions=rs.Design.from_columns(columns)
    )


def test_subgroups_are_shared_without_small_counts():
    estimate = with_subgroups()
    shown = rs.cohort.share_subgroups(estimate)
    # 3 targets are few, and so are the 2 beside the 98; of 100 comparators 0 are beside 100.
    assert shown["target_persons"].tolist() == [None, None, 50]
    assert shown["comparator_persons"].tolist() == [40, 100, 50]
    assert shown["target_persons_suppressed"].tolist() == [True, True, False]
    # All 3 targets of the small group have the outcome, and both outside the large one.
    assert shown["target_outcomes"][:2].tolist() == [None, None]
    inside = estimate.subgroups[0].target.outcomes + estimate.subgroups[0].comparator.outcomes
    assert inside >= 5
    # The standard error of a ratio tells how many outcomes the arm with few has.
    assert shown["log_ratio"][0] is shown["se"][0] is None
    assert shown["log_ratio"][1] is None  # 2 people with outcomes are left outside
    assert shown["p"][2] is not None
    blind = rs.cohort.share_subgroups(estimate, blind=True)
    assert blind["log_hr"].tolist() == [None] * 3
    assert blind["comparator_persons"].tolist() == [40, 100, 50]
    everything = rs.cohort.share_subgroups(estimate, min_cell_count=0)
    assert everything["target_persons"].tolist() == [3, 98, 50]


def test_risks_are_shared_without_few_people():
    time = np.r_[np.arange(1.0, 21), np.arange(1.0, 21)]
    event = np.r_[np.ones(20), np.tile([1, 0], 10)].astype(int)
    people = rs.cohort.Population(np.repeat([1, 0], 20))
    found = rs.cohort.risk_difference(rs.Surv(time, event), people, [0, 2, 10, 18], replicates=40)
    assert found.target_outcomes.tolist() == [0, 2, 10, 18]
    assert found.comparator_outcomes.tolist() == [0, 1, 5, 9]
    assert found.target_at_risk.tolist() == [20, 19, 11, 3]
    shown = rs.cohort.share_risks(found)
    assert shown["target"].tolist() == [0.0, None, pytest.approx(0.5), None]
    assert shown["difference"][[1, 3]].tolist() == [None, None]
    assert shown["difference"][2] == found.difference[2]
    # All but two have had the outcome.
    assert shown["target_outcomes"].tolist() == [0, None, 10, None]
    # One left by 2, and four by 10 who had no outcome.
    assert shown["comparator_at_risk"].tolist() == [20, None, None, None]
    blind = rs.cohort.share_risks(found, blind=True)
    assert blind["lower"].tolist() == [None] * 4
    assert blind["target"][2] == pytest.approx(0.5)


def test_adjustments_say_why_they_are_empty():
    people = rs.cohort.Population([1, 1, 0], [0.9, 0.8, 0.1])
    assert rs.cohort.weight(people).reason is None
    apart = rs.cohort.match(people, caliper=0.01)
    assert "no comparator is within the caliper" in repr(apart)
    assert "one arm" in rs.cohort.trim(people, symmetric=0.15).reason
