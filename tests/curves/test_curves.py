"""Kaplan-Meier and Aalen-Johansen against fractions, R's numbers, differences and themselves."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

import riskset as rs
from reference import GOLDEN, read_json, read_table

# time, event; by hand: at 2 of 5 at risk one fails of 1; at 3 of 4 one of 2, and one is censored;
# at 5 of 2 one fails of 1; at 7 the last is censored.
TIME = [2.0, 3.0, 3.0, 5.0, 7.0]
EVENT = [1, 2, 0, 1, 0]


def random_followup(rng, n, *, n_causes=2, entry=False, largest=12):
    time = rng.integers(2, largest, n).astype(float)
    event = rng.integers(0, n_causes + 1, n)
    late = None
    if entry:
        late = np.where(rng.random(n) < 0.5, time - rng.integers(1, 5, n), 0).clip(0)
        late[: n // 4] = 0
    return rs.Surv(time, event, late)


def floats(*fractions):
    return np.array([float(Fraction(f)) for f in fractions])


# ------------------------------------------------------------------------------------ by hand


def test_kaplan_meier_by_hand():
    curve = rs.kaplan_meier(rs.Surv(TIME, EVENT), cause=1)["all"]
    np.testing.assert_array_equal(curve.time, [2, 3, 5, 7])
    np.testing.assert_array_equal(curve.n_at_risk, [5, 4, 2, 1])
    np.testing.assert_array_equal(curve.n_events, [1, 0, 1, 0])
    np.testing.assert_array_equal(curve.n_censored, [0, 2, 0, 1])
    survival = floats("4/5", "4/5", "2/5", "2/5")
    np.testing.assert_allclose(curve.survival, survival, rtol=1e-15)
    greenwood = floats("1/20", "1/20", Fraction(1, 20) + Fraction(1, 2))
    variance = survival**2 * greenwood[[0, 1, 2, 2]]
    np.testing.assert_allclose(curve.standard_error**2, variance, rtol=1e-14)
    np.testing.assert_allclose(curve.cumulative_hazard, floats("1/5", "1/5", "7/10", "7/10"))
    nelson_aalen = floats("1/25", "1/25", "29/100", "29/100")
    np.testing.assert_allclose(curve.cumulative_hazard_standard_error**2, nelson_aalen)
    # log-log: the interval of log(-log S) has half width z se / (S |log S|).
    half = ndtri(0.975) * np.sqrt(variance) / (survival * -np.log(survival))
    centre = np.log(-np.log(survival))
    np.testing.assert_allclose(curve.lower, np.exp(-np.exp(centre + half)), rtol=1e-13)
    np.testing.assert_allclose(curve.upper, np.exp(-np.exp(centre - half)), rtol=1e-13)


def test_aalen_johansen_by_hand():
    curve = rs.aalen_johansen(rs.Surv(TIME, EVENT))["all"]
    # S before: 1, 4/5, 3/5, 3/10.
    first = floats("1/5", "1/5", Fraction(1, 5) + Fraction(3, 5) / 2, "1/2")
    np.testing.assert_allclose(curve.incidence[0], first, rtol=1e-15)
    np.testing.assert_allclose(curve.incidence[1], floats(0, "1/5", "1/5", "1/5"), rtol=1e-15)
    np.testing.assert_allclose(curve.survival, floats("4/5", "3/5", "3/10", "3/10"), rtol=1e-15)
    # The delta method at 5 for cause 1: F(5) - F(u) is 3/10 at 2 and 3.
    variance = (
        Fraction(9, 100) * (Fraction(1, 20) + Fraction(1, 12))
        + Fraction(4, 125)
        + Fraction(9, 25) * Fraction(1, 8)
        - 2 * Fraction(3, 10) * Fraction(1, 25)
    )
    assert curve.standard_error[0, 2] ** 2 == pytest.approx(float(variance), rel=1e-14)


def test_late_entry_by_hand():
    """At risk on (entry, time]: who enters at the time of an event is not at risk of it."""
    y = rs.Surv([2.0, 4.0, 4.0, 6.0], [1, 1, 0, 1], [0.0, 0.0, 2.0, 3.0])
    curve = rs.kaplan_meier(y)["all"]
    np.testing.assert_array_equal(curve.n_at_risk, [2, 3, 1])
    np.testing.assert_allclose(curve.survival, floats("1/2", "1/3", 0))
    np.testing.assert_array_equal(
        curve.at_risk([0.0, 1.0, 2.0, 2.5, 3.5, 4.0, 6.0, 7.0]), [0, 2, 2, 2, 3, 3, 1, 0]
    )


@pytest.mark.parametrize(
    ("kind", "lower", "upper"),
    [
        ("plain", lambda s, e: max(s - e, 0), lambda s, e: min(s + e, 1)),
        ("log", lambda s, e: s * np.exp(-e / s), lambda s, e: min(s * np.exp(e / s), 1)),
    ],
)
def test_other_intervals(kind, lower, upper):
    curve = rs.kaplan_meier(rs.Surv(TIME, EVENT), cause=1, level=0.9, interval=kind)["all"]
    for k in range(4):
        e = ndtri(0.95) * curve.standard_error[k]
        assert curve.lower[k] == pytest.approx(lower(curve.survival[k], e))
        assert curve.upper[k] == pytest.approx(upper(curve.survival[k], e))


def test_reading_a_curve():
    result = rs.kaplan_meier(rs.Surv(TIME, EVENT), cause=1)
    at = result.at([7.0, 0.0, 2.0, 1.9, 100.0])
    np.testing.assert_allclose(at, [[0.4, 1.0, 0.8, 1.0, 0.4]])
    np.testing.assert_array_equal(result.at_risk([0, 2, 2.5, 3, 6, 8]), [[5, 5, 4, 4, 1, 0]])
    assert result.at(3.0).shape == (1, 1)
    incidence = rs.aalen_johansen(rs.Surv(TIME, EVENT))
    np.testing.assert_allclose(incidence.at([3.0, 1.0]), [[[0.2, 0.0], [0.2, 0.0]]])
    np.testing.assert_array_equal(incidence.causes, [1, 2])
    assert incidence["all"].position(2) == 1


def test_quantiles():
    y = rs.Surv(np.arange(1.0, 21.0), np.ones(20, dtype=bool))
    curve = rs.kaplan_meier(y)["all"]
    with pytest.raises(rs.InputError, match=r"`p` must be a number between 0 and 1"):
        curve.quantile([0.25, 0.5])
    median, lower, upper = curve.quantile()
    assert median == 10.0
    assert lower == curve.time[np.flatnonzero(curve.lower <= 0.5)[0]]
    assert upper == curve.time[np.flatnonzero(curve.upper <= 0.5)[0]]
    assert np.isnan(rs.kaplan_meier(rs.Surv(TIME, EVENT), cause=2)["all"].quantile(0.9)).all()


# ------------------------------------------------------------------------- other programs


def test_golden_aalen_johansen():
    table, golden = read_table(GOLDEN / "mgus2.csv"), read_json(GOLDEN / "mgus2.json")
    expected = golden["aalen_johansen"]
    y = rs.Surv(table["time"], table["event"].astype(int))
    found = rs.aalen_johansen(y).at(expected["times"])[0]
    np.testing.assert_allclose(found[0], expected["state1"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[1], expected["state2"], rtol=0, atol=1e-12)


def test_golden_censoring_survival():
    """The Kaplan-Meier curve of being censored, before the time of each of the first rows."""
    table, golden = read_table(GOLDEN / "mgus2.csv"), read_json(GOLDEN / "mgus2.json")
    expected = golden["censoring_survival_left_limit_head"]
    curve = rs.kaplan_meier(rs.Surv(table["time"], table["event"] == 0))["all"]
    before = np.nextafter(table["time"][: len(expected)], 0)
    np.testing.assert_allclose(curve.at(before), expected, rtol=1e-13)


def test_cuminc():
    """Estimates and variances that cmprsk::cuminc prints, to all printed digits."""
    golden = read_json(GOLDEN / "cmprsk_cuminc.json")
    y = rs.Surv(golden["time"], golden["event"])
    for name, group in (("cuminc", None), ("cuminc_by_group", golden["group"])):
        result = rs.aalen_johansen(y, group, variance="aalen")
        times = golden[name]["times"]
        est, var = np.array(golden[name]["est"]), np.array(golden[name]["var"])
        np.testing.assert_allclose(result.at(times).reshape(est.shape), est, atol=5.1e-8)
        squared = result.to_frame(times)["standard_error"].to_numpy() ** 2
        np.testing.assert_allclose(squared.reshape(var.shape), var, rtol=2e-7)


# -------------------------------------------------------------------------- equivalences


@pytest.mark.parametrize("variance", ["counts", "robust"])
def test_binomial_without_censoring(rng, variance):
    n = 60
    y = rs.Surv(rng.permutation(n) + 1.0, rng.integers(1, 4, n))
    curve = rs.aalen_johansen(y, variance=variance)["all"]
    for k, cause in enumerate([1, 2, 3]):
        by_time = y["event"][np.argsort(y["time"])] == cause
        share = np.cumsum(by_time) / n
        np.testing.assert_allclose(curve.incidence[k], share, rtol=1e-13)
        np.testing.assert_allclose(
            curve.standard_error[k] ** 2, share * (1 - share) / n, atol=1e-16
        )


def test_without_competing_events_it_is_kaplan_meier(rng):
    y = random_followup(rng, 200, n_causes=1, entry=True)
    survival = rs.kaplan_meier(y)["all"]
    for variance in ("counts", "robust"):
        incidence = rs.aalen_johansen(y, variance=variance)["all"]
        np.testing.assert_allclose(incidence.incidence[0], 1 - survival.survival, atol=1e-14)
        expected = rs.kaplan_meier(y, variance=variance)["all"].standard_error
        here = np.isfinite(expected)
        np.testing.assert_allclose(incidence.standard_error[0][here], expected[here], rtol=1e-11)


def test_incidences_and_survival_add_up(rng):
    y = random_followup(rng, 300, n_causes=3, entry=True)
    curve = rs.aalen_johansen(y, weight=rng.uniform(0.1, 3, 300))["all"]
    np.testing.assert_allclose(curve.incidence.sum(axis=0) + curve.survival, 1, rtol=1e-13)
    assert (np.diff(curve.incidence, axis=1) >= 0).all()
    assert (curve.lower <= curve.incidence).all()
    assert (curve.incidence <= curve.upper).all()
    assert (curve.lower >= 0).all()
    assert (curve.upper <= 1).all()


def test_jackknife_is_the_delta_method_without_weights(rng):
    y = random_followup(rng, 400)
    counts, robust = (rs.aalen_johansen(y, variance=v)["all"] for v in ("counts", "robust"))
    np.testing.assert_allclose(counts.standard_error, robust.standard_error, rtol=1e-10)


@pytest.mark.parametrize("entry", [False, True])
def test_jackknife_is_the_derivative_in_each_weight(rng, entry):
    n, step = 40, 1e-5
    y, weight = random_followup(rng, n, entry=entry), rng.uniform(0.3, 2, n)

    def estimates(w):
        survival = rs.kaplan_meier(y, weight=w, cause=1)["all"]
        incidence = rs.aalen_johansen(y, weight=w)["all"].incidence
        return np.vstack([incidence, survival.survival, survival.cumulative_hazard])

    expected = np.zeros_like(estimates(weight))
    for i in range(n):
        more, less = weight.copy(), weight.copy()
        more[i] *= 1 + step
        less[i] *= 1 - step
        expected += ((estimates(more) - estimates(less)) / (2 * step)) ** 2
    survival = rs.kaplan_meier(y, weight=weight, cause=1)["all"]
    found = np.vstack(
        [
            rs.aalen_johansen(y, weight=weight)["all"].standard_error,
            survival.standard_error,
            survival.cumulative_hazard_standard_error,
        ]
    )
    known = np.isfinite(found)
    np.testing.assert_allclose(found[known] ** 2, expected[known], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("entry", [False, True])
def test_whole_weights_are_replications(rng, entry):
    y, weight = random_followup(rng, 80, entry=entry), rng.integers(0, 4, 80)
    group = rng.integers(0, 2, 80)
    again = np.repeat(np.arange(80), weight)
    for of in (
        lambda *args: rs.kaplan_meier(*args, cause=2),
        rs.aalen_johansen,
        lambda *args: rs.aalen_johansen(*args, variance="aalen"),
    ):
        weighted, repeated = of(y, group, weight), of(y[again], group[again])
        np.testing.assert_allclose(
            weighted.to_frame().to_numpy(float), repeated.to_frame().to_numpy(float), rtol=1e-12
        )


def test_groups_are_separate_calls_in_any_order(rng):
    y, group = random_followup(rng, 150, entry=True), rng.choice(["b", "a", "c"], 150)
    result = rs.aalen_johansen(y, group)
    assert result.groups == ("a", "b", "c")
    assert len(result) == 3
    order = rng.permutation(150)
    shuffled = rs.aalen_johansen(y[order], group[order])
    for curve, other in zip(result, shuffled, strict=True):
        own = rs.aalen_johansen(y[group == curve.label])["all"]
        np.testing.assert_array_equal(curve.incidence, own.incidence)
        np.testing.assert_array_equal(curve.standard_error, own.standard_error)
        np.testing.assert_allclose(curve.incidence, other.incidence, rtol=1e-14)
    frame = result.to_frame([3.0, 6.0])
    assert list(frame.loc["b"].query("cause == 2")["time"]) == [3.0, 6.0]
    np.testing.assert_allclose(frame["incidence"], result.at([3.0, 6.0]).reshape(-1))


def test_weights_of_any_size_leave_no_rounding():
    """One early row of enormous weight does not blur those who stay."""
    y = rs.Surv([1.0, 2.0, 3.0, 4.0], [True, True, True, False])
    weight = [1e18, 0.1, 0.2, 0.3]
    curve = rs.kaplan_meier(y, weight=weight)["all"]
    np.testing.assert_allclose(curve.survival[1:3] / curve.survival[0], [5 / 6, 0.5], rtol=1e-14)


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.integers(0, 3), st.integers(0, 3)),
        min_size=1,
        max_size=25,
    )
)
def test_anything_goes(rows):
    time, event, lag = (np.array(column) for column in zip(*rows, strict=True))
    y = rs.Surv(time, event, np.where(lag > 0, (time - lag).clip(0), 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rs.RisksetWarning)
        curve = rs.kaplan_meier(y, cause="any")["all"]
    assert (np.diff(curve.survival) <= 0).all()
    at_risk = [((y["entry"] < t) & (time >= t)).sum() for t in curve.time]
    np.testing.assert_array_equal(curve.n_at_risk, at_risk)
    assert np.isnan(curve.standard_error[curve.survival == 0]).all()
    assert np.isfinite(curve.standard_error[curve.survival > 0]).all()
    if event.any():
        incidence = rs.aalen_johansen(y)["all"]
        np.testing.assert_allclose(incidence.survival, curve.survival)
        assert np.isfinite(incidence.standard_error).all()


# -------------------------------------------------------------------------------- messages


def test_nobody_fails():
    curve = rs.kaplan_meier(rs.Surv([1.0, 2.0], [False, False]))["all"]
    np.testing.assert_array_equal(curve.survival, [1, 1])
    np.testing.assert_array_equal(curve.lower, [1, 1])
    np.testing.assert_array_equal(curve.standard_error, [0, 0])
    result = rs.aalen_johansen(rs.Surv([1.0, 2.0], [False, False]))
    assert result.causes.tolist() == [1]
    for values in (result["all"].incidence, result["all"].standard_error, result["all"].upper):
        np.testing.assert_array_equal(values, [[0, 0]])
    np.testing.assert_array_equal(result["all"].survival, [1, 1])
    # Causes that are known by their labels are all there.
    y = rs.Surv([1.0, 2.0, 3.0], ["b", "a", "none"], censored="none")
    weights = [0.0, 0.0, 1.0]
    assert rs.aalen_johansen(y, weight=weights).causes.tolist() == ["a", "b"]


def test_after_the_follow_up_nothing_is_known():
    # Group a ends with a censoring at 4, group b with its last event at 3.
    y = rs.Surv([1.0, 4.0, 2.0, 3.0], [1, 0, 1, 1])
    group, times = ["a", "a", "b", "b"], [4.0, 3.0, 5.0]
    curves = rs.kaplan_meier(y, group)
    assert [curve.end for curve in curves] == [4.0, np.inf]
    frame = curves.to_frame(times)
    for name, after in (("survival", 0), ("cumulative_hazard", 1.5)):
        a, b = frame.loc["a"][name], frame.loc["b"][name]
        np.testing.assert_array_equal(a, [0.5, 0.5, np.nan])
        np.testing.assert_array_equal(b, [after] * 3)
    for name in ("standard_error", "lower", "upper"):
        assert np.isnan(frame.loc["a"][name]).tolist() == [False, False, True]
    assert frame.loc["a"]["at_risk"].tolist() == [1, 1, 0]
    # `at` is the step function, which goes on.
    np.testing.assert_array_equal(curves.at(times), [[0.5] * 3, [0.0] * 3])
    y = rs.Surv([1.0, 4.0, 2.0, 3.0], [1, 0, 1, 2])
    curves = rs.aalen_johansen(y, group)
    assert [curve.end for curve in curves] == [4.0, np.inf]
    frame = curves.to_frame(times)
    np.testing.assert_array_equal(frame.loc["a"]["incidence"], [0.5, 0.5, np.nan, 0, 0, np.nan])
    np.testing.assert_array_equal(frame.loc["b"]["incidence"], [0.5] * 6)
    assert np.isnan(frame.loc["a"]["upper"]).tolist() == [False, False, True] * 2


@pytest.mark.parametrize("names", [("status", "futime"), ("futime", "status")])
@pytest.mark.parametrize("kind", ["i8", "?"])
def test_one_rule_for_structured_arrays(names, kind):
    """The only boolean field is the event, or else the first of two."""
    rows = {"status": [1, 0, 0, 1], "futime": [11, 11, 26, 89]}
    if names[0] != "status" and kind != "?":
        names = names[::-1]
    y = np.empty(4, dtype=[(name, kind if name == "status" else "i8") for name in names])
    for name in names:
        y[name] = rows[name]
    by_hand = rs.Surv(rows["futime"], rows["status"])
    curve = rs.kaplan_meier(y)["all"]
    np.testing.assert_array_equal(curve.time, [11, 26, 89])
    np.testing.assert_array_equal(curve.survival, [0.75, 0.75, 0])
    np.testing.assert_array_equal(rs.aalen_johansen(y)["all"].incidence, [[0.25, 0.25, 1]])
    score = [4.0, 3.0, 2.0, 1.0]
    assert rs.metrics.concordance(y, score) == rs.metrics.concordance(by_hand, score)
    assert rs.metrics.concordance(y, score).concordance == 1
    x = np.arange(8.0).reshape(4, 2) % 3
    own, other = (rs.Cox(penalty=rs.L2(1.0)).fit(x, outcome).coef_ for outcome in (y, by_hand))
    np.testing.assert_array_equal(own, other)
    three = np.zeros(4, dtype=[("status", "?"), ("futime", "f8"), ("site", "i8")])
    for refuse in (
        lambda: rs.kaplan_meier(three),
        lambda: rs.metrics.concordance(three, score),
        lambda: rs.Cox().fit(x, three),
    ):
        with pytest.raises(rs.InputError, match="fields 'event' and 'time', but it has 'status'"):
            refuse()


def test_risk_set_that_empties_early_is_said():
    y = rs.Surv([1.0, 3.0, 4.0], [True, True, True], [0.0, 2.0, 2.0])
    with pytest.warns(rs.RisksetWarning, match="others are still to enter") as caught:
        rs.kaplan_meier(y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "several kinds of event .codes 0, 1, 2"),
        ({"cause": "both"}, "positive whole number or 'any'"),
        ({"cause": 1, "level": 95}, "`level` must be between 0 and 1"),
        ({"cause": 1, "interval": "loglog"}, "`interval` must be .*'arcsine', but it is 'loglog'"),
        ({"cause": 1, "variance": "greenwood"}, "`variance` must be .*, but it is 'greenwood'"),
        ({"cause": 1, "weight": [1, -1, 1, 1, 1]}, "`weight` must not be negative"),
        ({"cause": 1, "group": list("aaab")}, "`group` must have one label"),
        ({"cause": 1, "group": list("aaabb"), "weight": [1, 1, 1, 0, 0]}, "group 'b' has weight 0"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(rs.InputError, match=message):
        rs.kaplan_meier(rs.Surv(TIME, EVENT), **arguments)


def test_messages_about_y_and_groups():
    with pytest.raises(rs.InputError, match="structured array"):
        rs.kaplan_meier([1.0, 2.0])
    with pytest.raises(rs.InputError, match="fields 'event' and 'time'"):
        rs.kaplan_meier(np.zeros(3, dtype=[("a", float), ("b", float), ("c", float)]))
    with pytest.raises(rs.InputError, match="no rows"):
        rs.kaplan_meier(rs.Surv([], []))
    result = rs.aalen_johansen(rs.Surv(TIME, EVENT), list("aabbb"))
    with pytest.raises(rs.InputError, match="group 'c' was not found"):
        _ = result["c"]
    with pytest.raises(rs.InputError, match="cause 3 does not occur"):
        result["a"].position(3)
    with pytest.raises(rs.InputError, match="`times` must be finite"):
        result.at([np.nan])


def test_scikit_survivals_arrays():
    y = np.array([(True, 1.0), (False, 2.0)], dtype=[("dead", "?"), ("days", "f8")])
    np.testing.assert_array_equal(rs.kaplan_meier(y).at([1.0]), [[0.5]])


def test_results_show_what_they_are():
    shown = repr(rs.kaplan_meier(rs.Surv(TIME, EVENT), list("aabbb"), cause=1))
    assert shown.splitlines()[0] == ("KaplanMeier (95% log-log intervals, variance 'counts'):")
    assert "SurvivalCurve 'b': 1 event, 2 censored, 0.5 survive time 7" in shown
    shown = repr(rs.aalen_johansen(rs.Surv(TIME, EVENT))["all"])
    assert "cause 2: 1 event, incidence 0.2; 2 censored, up to time 7" in shown


def test_frames_of_other_libraries():
    result = rs.kaplan_meier(rs.Surv(TIME, EVENT), list("aabbb"), cause=1)
    table = result.to_frame([2.0], library="polars")
    assert table.columns[:3] == ["group", "time", "at_risk"]
    assert table["group"].to_list() == ["a", "b"]
    assert table["survival"].to_list() == [0.5, 1.0]
    assert result.to_frame(library="pyarrow").num_rows == sum(c.time.size for c in result)
    for wrong in ("polar", "duckdb", 3):
        with pytest.raises(rs.InputError, match="'pandas', 'polars' or 'pyarrow'"):
            result.to_frame(library=wrong)


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**-300, 2.0**500, 2.0**900])
def test_errors_of_counts_shrink_with_the_root_of_their_scale(scale: float) -> None:
    y = rs.Surv(np.arange(1.0, 11.0), [1, 0, 1, 1, 0, 1, 1, 0, 1, 0])
    weight = np.array([5.0, 12.0, 7.0, 20.0, 1.0, 5.0, 15.0, 2.0, 10.0, 7.0])
    wanted, found = (
        rs.kaplan_meier(y, weight=w, variance="counts")["all"] for w in (weight, scale * weight)
    )
    np.testing.assert_allclose(found.survival, wanted.survival, rtol=1e-14)
    for name in ("standard_error", "cumulative_hazard_standard_error"):
        error = getattr(found, name) * np.sqrt(scale)
        np.testing.assert_allclose(error, getattr(wanted, name), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-165, 1e160, 1e290])
@pytest.mark.parametrize("variance", ["robust", "xie-liu"])
def test_errors_do_not_depend_on_the_scale_of_weights(scale: float, variance: str) -> None:
    """Squares of very small weights are 0, and those of very large ones infinite."""
    y = rs.Surv(np.arange(1.0, 11.0), [1, 0, 1, 1, 0, 1, 1, 0, 1, 0])
    weight = np.array([0.5, 1.25, 0.75, 2.0, 1.0, 0.5, 1.5, 0.25, 1.0, 0.75])
    wanted, found = (
        rs.kaplan_meier(y, weight=w, variance=variance)["all"] for w in (weight, scale * weight)
    )
    for name in (
        "survival",
        "standard_error",
        "lower",
        "upper",
        "cumulative_hazard_standard_error",
    ):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-12)
    if variance == "robust":
        causes = rs.Surv(y["time"], y["event"] * np.where(np.arange(10) % 4, 1, 2))
        wanted, found = (
            rs.aalen_johansen(causes, weight=w, variance=variance)["all"]
            for w in (weight, scale * weight)
        )
        assert np.isfinite(found.standard_error).all()
        np.testing.assert_allclose(found.standard_error, wanted.standard_error, rtol=1e-12)
