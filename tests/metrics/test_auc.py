"""Time-dependent AUC: by hand, by the formula, by scikit-survival, and what it cannot do."""

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from metrics import by_formula as formula
from riskset import Outcome, Surv
from riskset._errors import InputError, RisksetWarning
from riskset.metrics import auc

CONTROLS = ("event_free", "event_free_or_competing")

# G is 3/4 from 2 on and 3/8 from 4 on (see test_brier).
Y = Surv([1.0, 2.0, 2.0, 3.0, 4.0, 5.0], [1, 0, 1, 2, 0, 1])
SCORE = [1 / 2, 1 / 4, 3 / 4, 1 / 4, 1 / 2, 0.0]


def test_by_hand():
    # Cases rows 1 and 3, both of weight 1. Controls rows 5 and 6, both of weight 4/3: row 1 ties
    # with the one and beats the other, row 3 beats both.
    free = auc(Y, SCORE, 3.0, cause=1, controls="event_free")
    assert_allclose(free.auc, (3 / 2 + 2) / 4, rtol=1e-14)
    assert (free.n_cases[0], free.n_controls[0]) == (2, 2)
    # Row 4, with a competing event and G(3-) = 3/4, is a third control, beaten by both.
    both = auc(Y, SCORE, 3.0, cause=1)
    assert_allclose(both.auc, 11 / 12, rtol=1e-14)
    assert (both.n_cases[0], both.n_controls[0]) == (2, 3)
    # By 2.5 it is a control anyway. Row 2, censored at 2, is one at 2 if it counts as event-free;
    # all weights are then 1: row 1 beats rows 2, 4, 6 and ties with 5; row 3 beats all four.
    at_2 = auc(Y, SCORE, 2.0, cause=1, censored_at_time="event_free")
    assert_allclose(at_2.auc, 7.5 / 8, rtol=1e-14)


@pytest.mark.parametrize("controls", CONTROLS)
@pytest.mark.parametrize("n_causes", [1, 3])
@pytest.mark.parametrize("weights", [(1.0,), (0.0, 0.5, 1.0, 2.5)], ids=["plain", "weighted"])
@pytest.mark.parametrize("at_time", ["unknown", "event_free"])
def test_equals_the_formula(controls, n_causes, weights, at_time):
    case, score = formula.draw(70, n_causes, n_causes=n_causes, weights=weights)
    times = [2.0, 6.5, 11.0]
    scores = np.column_stack([score, -(score**2), score % 0.5])
    options = {"times": times, "controls": controls, "censored_at_time": at_time}
    one, several = (
        auc(**case, risk_score=score, **options),
        auc(**case, risk_score=scores, **options),
    )
    for j, t in enumerate(times):
        given = (t, case["sample_weight"], controls)
        for got, marker in ((one, score), (several, scores[:, j])):
            want = formula.area(case["y"], marker, *given, at_time=at_time)
            assert got.auc[j] == pytest.approx(want, rel=1e-12)


def test_equals_scikit_survival():
    y, age = formula.lung()
    got = auc(y, age, formula.LUNG_TIMES)
    golden = [0.5929734597887663, 0.5429693116146386, 0.554622242912591]
    assert_allclose(got.auc, golden, rtol=1e-14)


def test_equals_timeroc():
    # Printed by R's timeROC with weighting = "marginal" and iid = TRUE for death in survival::pbc
    # (n = 418) and the marker bili. At 1095 days the row that dies on that day counts neither as a
    # case nor as a control there, but in G.
    with (Path(__file__).parents[1] / "golden" / "pbc.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    bili = np.array([round(np.exp(float(row["log_bili"])), 1) for row in rows])
    # The file leaves out the rows 359 and 368, whose prothrombin time is missing.
    time = np.array([float(row["time"]) for row in rows] + [2534, 43])
    death = np.array([row["event"] == "2" for row in rows] + [False, True])
    y, bili = Surv(time, death), np.append(bili, [0.8, 13.8])
    got = auc(y, bili, [365, 1825])
    assert_allclose(100 * got.auc, [82.30, 86.23], atol=0.005)
    assert_allclose(100 * got.standard_error, [3.64, 2.15], atol=0.005)
    assert (got.n_cases.tolist(), got.n_controls.tolist()) == ([30, 115], [388, 197])
    others = time != 1095
    got = auc(y[others], bili[others], 1095, y_train=y)
    assert_allclose(100 * got.auc, 83.42, atol=0.005)
    assert (got.n_cases[0], got.n_controls[0]) == (81, 312)


@pytest.mark.parametrize("controls", CONTROLS)
def test_the_standard_error_is_the_jackknife_to_first_order(controls):
    case, score = formula.draw(45, 7, weights=(0.5, 1.0, 2.0))
    cluster = np.arange(45) // 3
    for groups in (None, cluster):
        got = auc(**case, risk_score=score, times=7.0, controls=controls, cluster=groups)
        want = formula.jackknife(
            lambda w: formula.area(case["y"], score, 7.0, w, controls),
            case["sample_weight"],
            groups,
        )
        assert got.standard_error[0] == pytest.approx(want, rel=1e-6)


def test_without_censoring_it_is_the_area_under_the_curve():
    rng = np.random.default_rng(4)
    time, score = rng.permutation(80) + 1.0, rng.normal(size=80)
    got = auc(Surv(time, np.ones(80)), score, 30.0)
    wins = score[time <= 30][:, None] > score[time > 30]
    assert_allclose(got.auc, wins.mean(), rtol=1e-14)
    # DeLong's variance, with the number of rows for the number less one.
    want = wins.mean(axis=1).var() / 30 + wins.mean(axis=0).var() / 50
    assert_allclose(got.standard_error, np.sqrt(want), rtol=1e-12)


def test_only_the_order_of_scores_and_rows_counts():
    case, score = formula.draw(60, 6, weights=(0.0, 1.0, 2.0))
    w = case.pop("sample_weight")
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(60), w.astype(int)))
    a = auc(**case, risk_score=score, times=6.0, sample_weight=w, cluster=np.arange(60))
    b = auc(case["y"][rows], np.exp(5 * score[rows]) - 1e6, 6.0, cause=1, cluster=rows)
    assert_allclose([b.auc[0], b.standard_error[0]], [a.auc[0], a.standard_error[0]], rtol=1e-12)
    c = auc(**case, risk_score=-score, times=6.0, sample_weight=w)
    assert c.auc[0] == pytest.approx(1 - a.auc[0], rel=1e-12)


def test_extreme_scores_and_weights():
    y = Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    assert auc(y, [np.inf, 1e308, -0.0, -np.inf], 2.0).auc == 1
    assert auc(y, [0.0, -0.0, 0.0, 0.0], 2.0).auc == 0.5
    censored = Surv([1.0, 1.5, 2.0, 3.0, 4.0], [1, 0, 1, 1, 0])
    plain = auc(censored, [3.0, 1.0, 1.0, 2.0, 1.0], 2.0)
    # The case at 2 weighs 1 / G(2-) = 4/3: (2 + 4/3 1/2) of 2 (1 + 4/3).
    assert_allclose(plain.auc, 4 / 7, rtol=1e-14)
    for scale in (1e-300, 1e300):
        got = auc(censored, [3.0, 1.0, 1.0, 2.0, 1.0], 2.0, sample_weight=np.full(5, scale))
        assert_allclose(got.auc, plain.auc, rtol=1e-14)
        assert_allclose(got.standard_error, plain.standard_error, rtol=1e-12)


def test_censoring_from_elsewhere():
    case, score = formula.draw(50, 8)
    y, train = case["y"], formula.draw(90, 9)[0]["y"]
    want = formula.area(y, score, 6.0, np.ones(50), CONTROLS[1], train=train)
    outcome = Outcome.build(train["time"], train["event"], cause=1)
    for y_train in (train, outcome):
        assert_allclose(auc(y, score, 6.0, cause=1, y_train=y_train).auc, want, rtol=1e-12)


def test_no_case_or_no_control_is_nan_and_says_so():
    with pytest.warns(RisksetWarning, match=r"at time 0.5 there are 0 cases and 6 controls"):
        early = auc(Y, SCORE, 0.5, cause=1)
    assert np.isnan([early.auc, early.standard_error]).all()


def test_frame():
    got = auc(Y, SCORE, [2.5, 3.0], cause=1)
    assert got.to_frame("polars")["auc"].to_list() == got.auc.tolist()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"risk_score": SCORE[:5]}, "`risk_score` must have one number for each of the 6 rows"),
        ({"risk_score": np.zeros((6, 3)), "times": [1.0, 2.0]}, "or for each of the 2 times"),
        ({"risk_score": ["high"] * 6}, "`risk_score` must be numbers"),
        ({"risk_score": [np.nan, *SCORE[1:]]}, "must not be missing"),
        ({"controls": "all"}, "'all' was not found"),
        ({"cause": None}, "`cause` does not say which"),
        ({"times": 5.0, "y": Surv([5.0, 1, 1, 1, 1, 1], [0] + [1] * 5)}, "follow-up ends at 5"),
        ({"times": -1.0}, "`times` must be one or more"),
        ({"y": Surv([2.0] * 6, [1] * 6, entry=[1.0] * 6)}, "enter late"),
    ],
)
def test_what_is_refused(change, match):
    given = {"y": Y, "risk_score": SCORE, "times": 3.0, "cause": 1} | change
    with pytest.raises(InputError, match=match):
        auc(**given)
