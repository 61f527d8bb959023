"""Brier score: by hand, by the formula, by scikit-survival, and what it cannot do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from metrics import by_formula as formula
from riskset import Outcome, Surv
from riskset._errors import InputError, RisksetWarning
from riskset.metrics import brier_score
from riskset.metrics._censored import CensoringCurve
from riskset.metrics._sample import Sample
from riskset.model.censoring import CensoringTimes

ONES = (1.0,)
WEIGHTS = (0.0, 0.5, 1.0, 2.5)

# Rows 1 and 3 have the event, row 4 a competing one; rows 2 and 5 are censored. G: 4 rows are at
# risk of being censored at 2, after the event there, and 2 at 4, so that it is 3/4 from 2 on and
# 3/8 from 4 on.
Y = Surv([1.0, 2.0, 2.0, 3.0, 4.0, 5.0], [1, 0, 1, 2, 0, 1])
AT_2 = [1 / 4, 1 / 4, 1 / 2, 0.0, 1 / 4, 0.0]
AT_3 = [1 / 2, 1 / 4, 3 / 4, 1 / 4, 1 / 2, 0.0]


def test_by_hand():
    got = brier_score(Y, np.column_stack([AT_2, AT_3]), [2.0, 3.0], cause=1)
    # t = 2: 9/16 and 1/4 for the events, row 2 is unknown, and of rows 4-6, which weigh 4/3, only
    # row 5 is off: 4/3 1/16. t = 3: 1/4 + 1/16 for the events; rows 4-6 weigh 4/3: 1/12 + 1/3 + 0.
    assert_allclose(got.score, [43 / 288, 35 / 288], rtol=1e-14)
    assert got.integrated == pytest.approx(39 / 288, rel=1e-14)
    # The event has happened to 2/6 at both times: 1/3 2/3.
    assert_allclose(got.reference, [2 / 9, 2 / 9], rtol=1e-14)
    assert_allclose(got.accuracy_index, [1 - 43 / 64, 1 - 35 / 64], rtol=1e-14)


def test_censored_at_the_time_by_hand():
    got = brier_score(Y, AT_2, 2.0, cause=1, censored_at_time="event_free")
    # Nobody is lost before 2: 9/16 + 1/16 + 1/4 + 0 + 1/16 + 0.
    assert_allclose(got.score, 15 / 96, rtol=1e-14)
    # Administrative end of follow-up: G(2) = 0, yet the state at 2 is known.
    y = Surv([1.0, 2.0, 2.0], [1, 0, 0])
    assert_allclose(
        brier_score(y, [0.5, 1.0, 1.0], 2.0, censored_at_time="event_free").score, 1 / 12
    )
    with pytest.raises(InputError, match=r"(?s)follow-up ends at 2.*censored_at_time='event_free'"):
        brier_score(y, [0.5, 1.0, 1.0], 2.0)


@pytest.mark.parametrize("n_causes", [1, 2, 3])
@pytest.mark.parametrize("weights", [ONES, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("at_time", ["unknown", "event_free"])
def test_equals_the_formula(n_causes, weights, at_time):
    case, score = formula.draw(70, n_causes, n_causes=n_causes, weights=weights)
    times = np.array([0.5, 3.0, 7.0, 11.5])
    incidence = np.outer(score, times / 12)
    kind = {"prediction_is": "incidence", "censored_at_time": at_time}
    got = brier_score(**case, prediction=incidence, times=times, **kind)
    w = case["sample_weight"]
    want = [
        formula.brier(case["y"], incidence[:, j], t, w, at_time=at_time)
        for j, t in enumerate(times)
    ]
    assert_allclose(got.score, want, rtol=1e-12)
    shares = [formula.aalen_johansen(case["y"], t, w) for t in times]
    assert_allclose(got.reference, [p * (1 - p) for p in shares], rtol=1e-12, atol=1e-15)
    assert got.integrated == pytest.approx(np.trapezoid(want, times) / 11, rel=1e-12)


def test_equals_scikit_survival():
    y, age = formula.lung()
    times = formula.LUNG_TIMES
    survival = np.exp(-np.outer(np.exp(age / 20 - 3), times) / 400)
    got = brier_score(y, survival, times)
    golden = [0.2159816210987353, 0.2658199447376949, 0.21231788810351104]
    assert_allclose(got.score, golden, rtol=1e-14)
    assert got.integrated == pytest.approx(0.24001029225965367, rel=1e-14)


def test_the_standard_error_is_the_jackknife_to_first_order():
    case, score = formula.draw(60, 7, weights=(0.5, 1.0, 2.0))
    y, times = case["y"], [3.0, 7.0]
    incidence = np.column_stack([score / 2, score])
    cluster = np.arange(60) // 3
    got = brier_score(**case, prediction=incidence, times=times, cluster=cluster)

    def at(j):
        return lambda w: formula.brier(y, incidence[:, j], times[j], w)

    errors = [formula.jackknife(at(j), case["sample_weight"], cluster) for j in range(2)]
    assert_allclose(got.standard_error, errors, rtol=1e-6)
    both = formula.jackknife(lambda w: (at(0)(w) + at(1)(w)) / 2, case["sample_weight"], cluster)
    assert got.integrated_standard_error == pytest.approx(both, rel=1e-6)


def test_without_censoring_it_is_the_mean_square():
    rng = np.random.default_rng(3)
    time, survival = rng.permutation(100) + 1.0, rng.random(100)
    got = brier_score(Surv(time, np.ones(100)), survival, 40.0)
    loss = ((time > 40) - survival) ** 2
    assert_allclose(got.score, loss.mean(), rtol=1e-14)
    assert_allclose(got.standard_error, loss.std() / 10, rtol=1e-12)


def test_without_competing_events_the_two_kinds_agree():
    case, score = formula.draw(80, 5, n_causes=1)
    a = brier_score(**case, prediction=1 - score, times=6.0)
    b = brier_score(**case, prediction=score, times=6.0, cause=1)
    c = brier_score(**case, prediction=score, times=6.0, prediction_is="incidence")
    assert a.score == pytest.approx(b.score, rel=1e-14) == c.score


def test_weight_two_is_the_row_twice_and_order_does_not_count():
    case, score = formula.draw(60, 6, weights=(0.0, 1.0, 2.0))
    w = case.pop("sample_weight")
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(60), w.astype(int)))
    a = brier_score(**case, prediction=score, times=6.0, sample_weight=w, cluster=np.arange(60))
    b = brier_score(case["y"][rows], score[rows], 6.0, cause=1, cluster=rows)
    assert_allclose(
        [a.score[0], a.standard_error[0], a.reference[0]],
        [b.score[0], b.standard_error[0], b.reference[0]],
        rtol=1e-12,
    )


def test_censoring_from_elsewhere():
    case, score = formula.draw(50, 8)
    y, train = case["y"], formula.draw(90, 9)[0]["y"]
    ones = np.ones(50)
    want = formula.brier(y, score, 6.0, ones, train=train)
    got = brier_score(y, score, 6.0, cause=1, y_train=train)
    assert_allclose(got.score, want, rtol=1e-12)
    outcome = Outcome.build(train["time"], train["event"], cause=1)
    assert brier_score(y, score, 6.0, cause=1, y_train=outcome).score == got.score
    g = [formula.chance(train, np.ones(90), t, before=True) for t in y["time"]]
    now = formula.chance(train, np.ones(90), 6.0, before=False)
    for at_times in ([now], np.full((50, 1), now)):
        given = brier_score(y, score, 6.0, cause=1, censoring=(g, at_times))
        assert_allclose(given.score, want, rtol=1e-12)
    # G is then known: the error is that of a mean.
    v = formula.known_weight(y, ones, 6.0, train=train)
    loss = v * (((y["time"] <= 6) & (y["event"] == 1)) - score) ** 2
    assert_allclose(got.standard_error, loss.std() / np.sqrt(50), rtol=1e-12)


def test_the_censoring_curve_is_that_of_the_models():
    case, _ = formula.draw(80, 10, weights=(0.0, 0.5, 3.0))
    y, w = case["y"], case["sample_weight"]
    got = CensoringCurve.estimate(Sample(y["time"], y["event"], w))
    times = CensoringTimes.of(np.arange(w.size), y["time"], y["event"])
    want, at = times.survival(w, "finegray"), times.n_before(got.time)
    assert_array_equal(times.time[at], got.time)
    assert_allclose(got.survival, np.append(1.0, want[at + 1]), rtol=1e-14)


def test_perfect_and_worst():
    y = Surv([1.0, 2.0, 3.0, 4.0], [1, 2, 1, 1])
    truth = [1.0, 0.0, 0.0, 0.0]
    assert brier_score(y, truth, 2.5, cause=1).score == 0
    assert brier_score(y, 1 - np.array(truth), 2.5, cause=1).score == 1
    early = brier_score(y, np.zeros(4), 0.0, cause=1)
    assert early.score == 0
    assert np.isnan(early.accuracy_index).all()


def test_frame():
    got = brier_score(Y, np.column_stack([AT_2, AT_3]), [2.0, 3.0], cause=1)
    frame = got.to_frame("polars")
    assert frame["score"].to_list() == got.score.tolist()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"prediction": AT_3[:5]}, "a row for each of the 6 rows of `y` and a column for each"),
        ({"prediction": ["low"] * 6}, "`prediction` must be numbers"),
        ({"prediction": [1.2, *AT_3[1:]]}, "must be a probability.*row 0"),
        ({"prediction": [np.nan, *AT_3[1:]]}, "must be a probability, not missing"),
        ({"cause": None}, "`cause` does not say which"),
        ({"cause": 0}, "positive whole number"),
        ({"times": []}, "`times` must be one or more"),
        ({"times": [3.0, 2.0], "prediction": np.zeros((6, 2))}, "each larger than the one before"),
        ({"prediction_is": "survival"}, "has competing events"),
        ({"prediction_is": "risk"}, "'risk' was not found"),
        ({"censored_at_time": "lost"}, "'lost' was not found"),
        ({"sample_weight": [-1.0] * 6}, "must not be negative"),
        ({"sample_weight": [0.0] * 6}, "every row has weight 0"),
        ({"censoring": [1.0] * 6}, "must be a pair"),
        ({"censoring": ([1.0] * 6, [1.0, 1.0])}, "must have the shape"),
        ({"censoring": ([1.0] * 6, [1.1])}, "must be a probability"),
        ({"censoring": ([0.0] * 6, [1.0])}, "must be positive for rows with an event"),
        ({"censoring": ([1.0] * 6, [0.0])}, "not known or 0"),
        ({"censoring": ([1.0] * 6, [1.0]), "y_train": Y}, "both say"),
        ({"y_train": Surv([1.0, 2.0], [0, 0])}, "must be positive for rows with an event"),
        ({"y_train": Surv([1.0, 2.0], [0, 1])}, r"follow-up ends at 2"),
        ({"y": Surv([2.0] * 6, [1] * 6, entry=[1.0] * 6)}, "enter late"),
        ({"y": np.zeros(6)}, "structured array"),
    ],
)
def test_what_is_refused(change, match):
    given = {"y": Y, "prediction": AT_3, "times": 3.0, "cause": 1} | change
    with pytest.raises(InputError, match=match):
        brier_score(**given)


def test_survival_given_for_incidence_is_noticed():
    with pytest.raises(InputError, match=r"(?s)taken for survival.*prediction_is='incidence'"):
        brier_score(
            Surv([1.0, 2.0, 3.0], [1, 0, 1]), [[0.1, 0.2], [0.3, 0.5], [0.2, 0.2]], [1.0, 2.0]
        )


def test_no_event_says_so():
    with pytest.warns(RisksetWarning, match="no row has an event of the cause 3"):
        got = brier_score(Y, np.zeros(6), 3.0, cause=3)
    assert got.score == 0
