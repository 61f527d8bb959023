"""Curves and counts by arm: R's numbers under every adjustment, and by hand."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from cohort.golden import (
    COMPETING,
    CURVE,
    MATCHINGS,
    RHC,
    STRATA,
    TINY,
    TRIMS,
    WEIGHTS,
    rhc_matched,
    rhc_outcome,
    rhc_people,
    rhc_strata,
    rhc_trimmed,
    rhc_weighted,
    table,
)
from riskset.cohort.adjustments.adjustment import start
from riskset.cohort.outcomes import Outcomes, count_arms, poisson_interval


@functools.cache
def golden_curves():
    """Adjustment and golden block of every pair of curves."""
    found = {"before": (start(rhc_people()), RHC["before"]["km"])}
    for name, key in MATCHINGS.items():
        found[name] = (rhc_matched(name), RHC["match"][key]["km_att_weighted"])
    for name, (key, *_) in STRATA.items():
        found[name] = (rhc_strata(name), RHC["strata"][key]["km_weighted"])
    for name in WEIGHTS:
        found[name] = (rhc_weighted(name), RHC["weights"][name]["km"])
    for name in TRIMS:
        adjusted = rs.cohort.weight(rhc_trimmed(name), "ate", stabilise=True)
        found[f"trim {name}"] = (adjusted, RHC["trim"][name]["ate_stab_ps_kept"]["km"])
    return found


def check_survival(found, rows, arm):
    own = found["arm"] == arm
    assert_array_equal(found["time"][own], [row["time"] for row in rows])
    assert_array_equal(found["people_at_risk"][own], [row["at_risk"] for row in rows])
    weighted = [row["at_risk_weighted"] for row in rows]
    assert_allclose(found["at_risk"][own], weighted, rtol=1e-10)
    names = {
        "survival": "survival",
        "standard_error": "se",
        "lower": "lower_loglog",
        "upper": "upper_loglog",
    }
    for name, key in names.items():
        expected = [np.nan if row[key] is None else row[key] for row in rows]
        assert_allclose(found[name][own], expected, **CURVE)


@pytest.mark.parametrize("name", sorted(golden_curves()))
def test_golden_survival(name):
    adjustment, expected = golden_curves()[name]
    times = [row["time"] for row in expected["target"]]
    found = rs.cohort.survival(rhc_outcome(), adjustment).columns(times)
    for arm in ("target", "comparator"):
        check_survival(found, expected[arm], arm)


@pytest.mark.parametrize("key", ["unweighted", "weighted"])
def test_survival_by_hand(key):
    own = table("tiny_km")
    weight = own["weight"] if key == "weighted" else np.ones(6)
    # The same people twice, as both arms.
    people = rs.cohort.Population([1] * 6 + [0] * 6)
    adjustment = rs.cohort.Adjustment("weighting", "ate", people, np.tile(weight, 2))
    y = rs.Surv(np.tile(own["time"], 2), np.tile(own["event"], 2).astype(bool))
    found = rs.cohort.survival(y, adjustment).columns(range(6))
    for arm in ("target", "comparator"):
        check_survival(found, TINY["km"][key], arm)


def test_incidence_by_hand():
    own = table("tiny_aj")
    people = rs.cohort.Population([1] * 8 + [0] * 8)
    y = rs.Surv(np.tile(own["time"], 2), np.tile(own["status"], 2).astype(int))
    found = rs.cohort.incidence(y, start(people)).columns(range(1, 8))
    for cause in (1, 2):
        rows = (found["arm"] == "target") & (found["cause"] == cause)
        assert_allclose(found["incidence"][rows], TINY["aj"][f"cif{cause}"], **CURVE)
    # The package that made these variances takes martingales.
    aalen = rs.aalen_johansen(y[:8], variance="aalen")["all"].standard_error ** 2
    for k in (0, 1):
        assert_allclose(aalen[k], TINY["aj"][f"var{k + 1}_cmprsk"], rtol=1e-12)
    only = rs.kaplan_meier(y[:8], cause=1)["all"].at(TINY["aj"]["time"])
    assert_allclose(1 - only, TINY["aj"]["one_minus_km_cause1"], **CURVE)


# ------------------------------------------------------------------------ competing events


def competing_people():
    own = table("cr_cohort")
    return rs.cohort.Population(own["treat"], own["ps"], row_id=own["id"])


def competing_outcome():
    own = table("cr_cohort")
    return rs.Surv(own["time"], own["status"].astype(int))


def competing_adjustment(name):
    people = competing_people()
    if name == "crude":
        return start(people)
    if name == "matched":
        return rs.cohort.match(people)
    return rs.cohort.weight(people, "ate", stabilise=True)


@pytest.mark.parametrize("name", ["crude", "iptw_ate_stab", "matched"])
def test_golden_incidence(name):
    blocks = COMPETING["aalen_johansen"][name]
    found = rs.cohort.incidence(competing_outcome(), competing_adjustment(name))
    times = blocks["target"]["time"]
    columns = found.columns(times)
    for arm, expected in blocks.items():
        for cause in (1, 2):
            rows = (columns["arm"] == arm) & (columns["cause"] == cause)
            assert_allclose(columns["incidence"][rows], expected[f"cif{cause}"], **CURVE)
            assert_array_equal(columns["people_at_risk"][rows], expected["at_risk"])
        rows = (columns["arm"] == arm) & (columns["cause"] == 1)
        assert_allclose(columns["standard_error"][rows], expected["se1"], **CURVE)


def test_matched_pairs_are_those_of_the_golden_file():
    found = competing_adjustment("matched")
    own = table("cr_cohort")["set"]
    expected = np.array([-1 if v == "NA" else int(v) for v in own])
    assert_array_equal(found.set_id, expected)
    assert found.n_target == COMPETING["matched_pairs"]
    strata = rs.cohort.stratify(competing_people(), 5).set_id
    assert_array_equal(strata, table("cr_cohort")["stratum"])


def test_gray():
    found = rs.cohort.gray(competing_outcome(), competing_adjustment("crude"))
    assert_allclose(found.statistic, COMPETING["gray_test"]["stat"], rtol=1e-10)
    assert_allclose(found.p_value, COMPETING["gray_test"]["p"], rtol=1e-10)
    with pytest.raises(rs.InputError, match="takes no weights"):
        rs.cohort.gray(competing_outcome(), competing_adjustment("iptw_ate_stab"))
    with pytest.raises(rs.InputError, match="rows of a matched set belong together"):
        rs.cohort.gray(competing_outcome(), competing_adjustment("matched"))
    twice = rs.cohort.Population([1, 1, 0, 0], person_id=[1, 1, 2, 3])
    with pytest.raises(rs.InputError, match="rows of a person belong together"):
        rs.cohort.gray(rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 2, 1, 0]), twice)


def test_survival_is_refused_where_events_compete():
    with pytest.raises(rs.CohortError, match="use riskset.cohort.incidence") as caught:
        rs.cohort.survival(competing_outcome(), competing_adjustment("crude"))
    assert caught.value.code == "CompetingEvents"


# -------------------------------------------------------------------------------- counts


def test_follow_up():
    expected = RHC["follow_up"]
    everyone = start(rhc_people())
    found = rs.cohort.followup(rhc_outcome(), everyone)
    assert list(found.shares) == expected["quantiles"]
    assert_allclose(found.target, expected["target"], rtol=1e-14)
    assert_allclose(found.comparator, expected["comparator"], rtol=1e-14)
    target, comparator = count_arms(Outcomes.read(rhc_outcome(), everyone), everyone)
    days, events = expected["person_time"], expected["events"]
    assert (target.days, comparator.days) == (days["target"], days["comparator"])
    assert (found.days_target, found.days_comparator) == (days["target"], days["comparator"])
    assert found.ends_target == {}
    assert (target.outcomes, comparator.outcomes) == (events["target"], events["comparator"])


def test_reasons_for_the_end_of_follow_up():
    everyone = rs.cohort.Population([1, 1, 0, 0, 0])
    people = rs.cohort.restrict(everyone, np.arange(5) < 4, "the last leaves")
    y = rs.Surv([1.0, 2.0, 3.0, 4.0, 5.0], [1, 0, 1, 0, 0])
    words = ["outcome", "cohort end", "outcome", "outcome", "study end"]
    found = rs.cohort.followup(y, people, words)
    assert found.ends_target == {"cohort end": 1, "outcome": 1}
    assert found.ends_comparator == {"outcome": 2}
    assert (found.days_target, found.days_comparator) == (3, 7)
    with pytest.raises(rs.CohortError, match="one label for each of the 5 rows"):
        rs.cohort.followup(y, people, words[:4])


@pytest.mark.parametrize("block", TINY["mdrr"], ids=str)
def test_mdrr_by_hand(block):
    options = {k: block[k] for k in ("power", "alpha", "two_sided") if k in block}
    found = rs.cohort.mdrr(block["events"], block["p_target"], **options)
    assert_allclose(found, float(block["mdrr"]), rtol=1e-13)  # "Infinity" is a number, too


def test_golden_mdrr():
    share = RHC["ps"]["mean_treated"]
    assert_allclose(rs.cohort.mdrr(3722, share), RHC["before"]["mdrr"], rtol=1e-13)
    assert_allclose(rs.cohort.expected_se(3722, share), RHC["before"]["expected_se"], rtol=1e-13)
    for name, key in MATCHINGS.items():
        block, own = RHC["match"][key], rhc_matched(name)
        events = sum(block["events"].values())
        share = own.n_target / (own.n_target + own.n_comparator)
        assert_allclose(rs.cohort.mdrr(events, share), block["mdrr"], rtol=1e-13)


def test_mdrr_without_an_arm_is_infinite():
    assert rs.cohort.mdrr(10, 0.0) == np.inf
    with pytest.raises(rs.CohortError, match="`power` must be a number above 0 and below 1"):
        rs.cohort.mdrr(10, 0.5, power=1)


def test_poisson_interval_solves_its_equations():
    from scipy.stats import poisson

    lower, upper = poisson_interval(7)
    assert_allclose(poisson.sf(6, lower), 0.025, rtol=1e-10)
    assert_allclose(poisson.cdf(7, upper), 0.025, rtol=1e-10)
    assert_allclose(poisson_interval(0), (0.0, -np.log(0.025)), rtol=1e-12)


def test_rates():
    people = rs.cohort.Population([1, 1, 0, 0], person_id=[5, 5, 6, 7])
    y = rs.Surv([365.25, 365.25, 100.0, 100.0], [1, 0, 2, 0])
    everyone = start(people)
    target, comparator = count_arms(Outcomes.read(y, everyone), everyone)
    assert (target.persons, target.exposures, target.outcomes) == (1, 2, 1)
    assert target.rate == pytest.approx(500.0)
    assert_allclose([target.rate_lower, target.rate_upper], np.array(poisson_interval(1)) * 500)
    assert (comparator.outcomes, comparator.competing, comparator.rate) == (0, 1, 0.0)
    assert comparator.weighted_rate == 0.0
    assert np.isnan(comparator.weighted_rate_lower)


def test_weighted_rates():
    # Weights 1 and 3, one event in 4 weighted years. With r = 1/4 the row with the event has
    # 1 (1 - r), the other 3 (0 - r): the error of the logarithm is sqrt(9/16 + 9/16).
    people = rs.cohort.Population([1, 1, 0])
    adjustment = rs.cohort.Adjustment("weighting", "ate", people, np.array([1.0, 3.0, 1.0]))
    y = rs.Surv([365.25, 365.25, 5.0], [1, 0, 0])
    target, _ = count_arms(Outcomes.read(y, adjustment), adjustment)
    factor = np.exp(1.959963984540054 * np.sqrt(9 / 8))
    assert_allclose(target.weighted_rate, 250.0)
    assert_allclose(target.weighted_rate_lower, 250.0 / factor)
    assert_allclose(target.weighted_rate_upper, 250.0 * factor)


def test_curves_end_where_a_tenth_is_left():
    y = rs.Surv(np.arange(1.0, 12.0), [True] * 11)
    people = rs.cohort.Population([1, 0] * 5 + [1])
    assert rs.cohort.survival(y, start(people)).limit == 10.0


@pytest.mark.parametrize(
    ("y", "code", "words"),
    [
        (rs.Surv([1.0, 2.0], [1, 0]), "BadOutcome", "3 rows of the population"),
        (rs.Surv([1.0, 0.0, 2.0], [1, 0, 0]), "BadOutcome", "times must be positive.*row 1"),
        (rs.Surv([1.0, 1.0, 2.0], [1, 3, 0]), "BadOutcome", "row 1, time 1, status 3"),
        (rs.Surv([1.0, 1.0, 2.0], [1, 1, 0], [0.5, 0.0, 0.0]), "LateEntry", "from the start"),
    ],
)
def test_messages(y, code, words):
    with pytest.raises(rs.CohortError, match=words) as caught:
        rs.cohort.survival(y, start(rs.cohort.Population([1, 0, 0])))
    assert caught.value.code == code


def test_an_arm_without_people_has_no_curve():
    people = rs.cohort.Population([1, 0], [0.9, 0.1])
    nobody = rs.cohort.match(people, caliper=0.01)
    for make in (rs.cohort.survival, rs.cohort.incidence):
        with pytest.raises(rs.CohortError, match="status is 'no_matches'") as caught:
            make(rs.Surv([1.0, 2.0], [1, 0]), nobody)
        assert caught.value.code == "EmptyArm"


@pytest.mark.parametrize("of", ["survival", "incidence"])
def test_clustered_errors_take_a_matched_set_or_a_person_together(of):
    rng = np.random.default_rng(4)
    n = 300
    score, treatment = rng.uniform(0.2, 0.6, n), (np.arange(n) % 4 == 0).astype(int)
    people = rs.cohort.Population(treatment, score, person_id=np.arange(n) // 2)
    y = rs.Surv(
        rng.exponential(30, n).round() + 1, rng.integers(0, 2 if of == "survival" else 3, n)
    )
    estimate = getattr(rs.cohort, of)
    for adjusted, unit in (
        (rs.cohort.match(people, ratio=3), None),
        (rs.cohort.weight(people, "ate"), people.person_id),
    ):
        unit = adjusted.set_id if unit is None else unit
        found = estimate(y, adjusted, clustered=True).curves["comparator"]
        own = adjusted.kept & (treatment == 0)
        assert np.unique(unit[own]).size < own.sum()
        curve = rs.kaplan_meier if of == "survival" else rs.aalen_johansen
        alone = curve(y[own], weight=adjusted.weight[own], cluster=unit[own])["all"]
        assert_allclose(found.standard_error, alone.standard_error, rtol=1e-9)
        plain = estimate(y, adjusted).curves["comparator"]
        assert not np.allclose(
            plain.standard_error[..., 5], found.standard_error[..., 5], rtol=1e-3
        )
