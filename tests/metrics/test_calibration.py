"""Calibration: by hand, by Kaplan-Meier and Aalen-Johansen, and what it cannot do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from metrics import by_formula as formula
from riskset import Surv
from riskset._errors import InputError, RisksetWarning
from riskset.curves.aalen_johansen import aalen_johansen
from riskset.curves.kaplan_meier import kaplan_meier
from riskset.metrics import calibration

TIME = [1.0, 2.0, 2.0, 3.0, 4.0, 5.0]
Y = Surv(TIME, [1, 0, 1, 2, 0, 1])
PREDICTED = [1 / 2, 1 / 4, 3 / 4, 1 / 4, 1 / 2, 0.0]


def test_by_hand():
    # The event of rows 1 and 3 comes before any censoring: 2/6 by 3. Predicted: 9/4 of 6.
    got = calibration(Y, PREDICTED, 3.0, cause=1, groups=1)
    assert_allclose([got.mean_observed, got.observed[0]], 1 / 3, rtol=1e-14)
    assert_allclose([got.mean_predicted, got.predicted[0]], 3 / 8, rtol=1e-14)
    assert got.ratio == pytest.approx(8 / 9, rel=1e-14)
    assert got.mean_distance == pytest.approx(1 / 24, rel=1e-13)
    assert (got.n_rows[0], got.n_events[0]) == (6, 2)


def test_greenwood_by_hand():
    # Row 4 now has the event: S(3) = 5/6 4/5 2/3 = 4/9, Greenwood's variance
    # (4/9)^2 (1/(6 5) + 1/(5 4) + 1/(3 2)) = 4/81.
    got = calibration(Surv(TIME, [1, 0, 1, 1, 0, 1]), PREDICTED, 3.0, groups=1)
    assert_allclose([got.observed[0], got.standard_error[0]], [5 / 9, 2 / 9], rtol=1e-14)
    z = norm.ppf(0.975) * (2 / 9) / (4 / 9 * np.log(9 / 4))
    assert_allclose(got.lower, 1 - (4 / 9) ** np.exp(-z), rtol=1e-12)
    assert_allclose(got.upper, 1 - (4 / 9) ** np.exp(z), rtol=1e-12)
    # With `cause`, on the scale of the incidence, as for the Aalen-Johansen estimate.
    by_cause = calibration(Surv(TIME, [1, 0, 1, 1, 0, 1]), PREDICTED, 3.0, groups=1, cause=1)
    z = norm.ppf(0.975) * (2 / 9) / (5 / 9 * np.log(9 / 5))
    assert_allclose(by_cause.lower, (5 / 9) ** np.exp(z), rtol=1e-12)
    assert_allclose(by_cause.upper, (5 / 9) ** np.exp(-z), rtol=1e-12)
    factor = np.exp(norm.ppf(0.975) * (2 / 9) / (5 / 9))
    assert_allclose([got.ratio_lower, got.ratio_upper], [got.ratio / factor, got.ratio * factor])


@pytest.mark.parametrize("n_causes", [1, 3])
@pytest.mark.parametrize("weights", [(1.0,), (0.0, 0.5, 1.0, 2.5)], ids=["plain", "weighted"])
def test_each_group_is_its_own_curve(n_causes, weights):
    case, score = formula.draw(200, n_causes, n_causes=n_causes, weights=weights, n_scores=4)
    got = calibration(**case, prediction=score, time=7.0, groups=4, prediction_is="incidence")
    y, w = case["y"], case["sample_weight"]
    assert_allclose(got.predicted, np.unique(score), rtol=1e-12)
    for g, value in enumerate(np.unique(score)):
        rows = score == value
        want = formula.aalen_johansen(y[rows], 7.0, w[rows])
        assert got.observed[g] == pytest.approx(want, rel=1e-12)
        assert got.n_rows[g] == np.count_nonzero(rows & (w > 0))
    everybody = formula.aalen_johansen(y, 7.0, w)
    assert got.mean_observed == pytest.approx(everybody, rel=1e-12)
    assert got.ratio == pytest.approx(everybody / np.average(score, weights=w), rel=1e-12)


def test_the_standard_error_is_the_jackknife_to_first_order():
    case, score = formula.draw(60, 7, weights=(0.5, 1.0, 2.0))
    cluster = np.arange(60) // 3
    got = calibration(**case, prediction=score, time=7.0, groups=1, cluster=cluster)
    want = formula.jackknife(
        lambda w: formula.aalen_johansen(case["y"], 7.0, w), case["sample_weight"], cluster
    )
    assert got.standard_error[0] == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("n_causes", [1, 2])
def test_a_group_is_shown_as_its_curve(n_causes):
    case, score = formula.draw(300, 3, n_causes=n_causes)
    got = calibration(
        **case, prediction=score, time=7.0, groups=1, prediction_is="incidence", level=0.9
    )
    numbers = np.array([got.observed[0], got.standard_error[0], got.lower[0], got.upper[0]])
    if n_causes == 1:
        frame = kaplan_meier(case["y"], level=0.9).to_frame([7.0], library="polars")
        columns = ["survival", "standard_error", "upper", "lower"]
        want = np.array([frame[name][0] for name in columns])
        want[[0, 2, 3]] = 1 - want[[0, 2, 3]]
    else:
        frame = aalen_johansen(case["y"], level=0.9).to_frame([7.0], library="polars")
        columns = ["incidence", "standard_error", "lower", "upper"]
        want = np.array([frame[name][0] for name in columns])
    assert_allclose(numbers, want, rtol=1e-12)


def test_groups_are_quantiles_and_ties_stay_together():
    y = Surv(np.arange(1.0, 101), np.ones(100))
    p = np.linspace(0.99, 0.01, 100)
    got = calibration(y, p, 50.0, prediction_is="incidence")
    assert got.n_rows.tolist() == [10] * 10
    assert np.diff(got.predicted).min() > 0
    tied = np.where(p < 0.7, 0.2, p)
    few = calibration(y, tied, 50.0, prediction_is="incidence")
    assert few.n_rows.tolist()[0] == np.count_nonzero(p < 0.7)
    assert few.n_rows.sum() == 100


@pytest.mark.parametrize("groups", [3, "smooth"])
def test_weight_two_is_the_row_twice_and_order_does_not_count(groups):
    case, _ = formula.draw(80, 6, weights=(0.0, 1.0, 2.0))
    w, score = case.pop("sample_weight"), np.random.default_rng(1).random(80)
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(80), w.astype(int)))
    a = calibration(
        **case, prediction=score, time=6.0, sample_weight=w, cluster=np.arange(80), groups=groups
    )
    b = calibration(case["y"][rows], score[rows], 6.0, cause=1, cluster=rows, groups=groups)
    for name in ("predicted", "observed", "standard_error", "lower", "upper", "mean_distance"):
        assert_allclose(getattr(b, name), getattr(a, name), rtol=1e-9)
    assert (b.ratio, b.ratio_lower) == pytest.approx((a.ratio, a.ratio_lower), rel=1e-12)


def test_survival_and_incidence_agree():
    case, score = formula.draw(60, 5, n_causes=1)
    a = calibration(**case, prediction=1 - score, time=6.0, groups=3)
    b = calibration(**case, prediction=score, time=6.0, groups=3, prediction_is="incidence")
    assert_allclose(a.observed, b.observed, rtol=1e-12)
    assert_allclose(a.predicted, b.predicted, rtol=1e-12)


def test_smooth_without_censoring_is_local_regression():
    rng = np.random.default_rng(2)
    p, time = rng.random(150), rng.permutation(150) + 1.0
    got = calibration(Surv(time, np.ones(150)), p, 60.0, prediction_is="incidence", groups="smooth")
    happened = (time <= 60).astype(float)
    for point, value in zip(got.predicted, got.observed, strict=True):
        d = np.abs(p - point)
        h = np.sort(d)[int(np.ceil(0.75 * 150)) - 1]
        root = np.sqrt((1 - np.minimum(d / h, 1) ** 3) ** 3)
        line = np.linalg.lstsq(
            np.column_stack([np.ones(150), p - point]) * root[:, None], happened * root
        )[0]
        assert value == pytest.approx(line[0].clip(0, 1), rel=1e-9, abs=1e-12)
    assert got.predicted[0] == p.min()
    assert got.predicted[-1] == p.max()


def test_a_true_prediction_is_calibrated():
    rng = np.random.default_rng(8)
    n = 20_000
    rate = np.exp(rng.normal(size=n)) / 10
    fails, other = rng.exponential(1 / rate), rng.exponential(10.0, n)
    lost = rng.exponential(15.0, n)
    time = np.minimum(np.minimum(fails, other), lost)
    event = np.select([fails == time, other == time], [1, 2], 0)
    total = rate + 0.1
    truth = rate / total * -np.expm1(-total * 5.0)
    for groups in (10, "smooth"):
        got = calibration(Surv(time, event), truth, 5.0, cause=1, groups=groups, level=0.999)
        assert (got.lower < got.predicted).all()
        assert (got.predicted < got.upper).all()
        assert got.ratio_lower < 1 < got.ratio_upper
        assert got.mean_distance < 0.015
        half = calibration(Surv(time, event), truth / 2, 5.0, cause=1, groups=groups)
        assert half.ratio == pytest.approx(2 * got.ratio)
        assert (half.lower > half.predicted).mean() > 0.9


def test_equal_predictions():
    for groups, value in ((10, 0.25), ("smooth", 0.25)):
        got = calibration(Y, np.full(6, value), 3.0, cause=1, groups=groups)
        assert_allclose(got.observed, [1 / 3], rtol=1e-12)
        assert got.mean_distance == pytest.approx(1 / 12, rel=1e-12)


def test_nothing_observed():
    got = calibration(Y, PREDICTED, 0.5, cause=1, groups=2)
    assert_allclose(got.observed, 0)
    assert np.isnan(got.lower).all()
    assert got.ratio == 0
    assert np.isnan(got.ratio_upper)


def test_a_group_that_is_not_followed_so_long_is_nan_and_says_so():
    y = Surv([1.0, 2.0, 9.0, 9.0], [1, 0, 1, 0])
    with pytest.warns(RisksetWarning, match="of the 2 rows of a group nobody is followed"):
        got = calibration(y, [0.1, 0.2, 0.8, 0.9], 5.0, prediction_is="incidence", groups=2)
    assert np.isnan(got.observed[0])
    assert got.observed[1] == 0


def test_frame():
    got = calibration(Y, PREDICTED, 3.0, cause=1, groups=2)
    frame = got.to_frame("polars")
    assert frame["predicted"].to_list() == got.predicted.tolist()
    assert frame["group"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"groups": 0}, "`groups` must be a number of groups or 'smooth'"),
        ({"groups": "ten"}, "`groups` must be a number of groups or 'smooth'"),
        ({"span": 0.0, "groups": "smooth"}, "`span` must be a share"),
        ({"level": 95}, "`level` must be a share"),
        ({"prediction": np.zeros((6, 2))}, "a column for each of the 1 times"),
        ({"prediction": [2.0] * 6}, "must be a probability"),
        ({"cause": None}, "`cause` does not say which"),
        ({"y": Surv(TIME, [1, 0, 1, 2, 1, 0]), "time": 6.0}, "follow-up ends at 5"),
        ({"sample_weight": np.zeros(6)}, "every row has weight 0"),
    ],
)
def test_what_is_refused(change, match):
    given = {"y": Y, "prediction": PREDICTED, "time": 3.0, "cause": 1} | change
    with pytest.raises(InputError, match=match):
        calibration(**given)
