"""What a mask hides is missing, wherever an array comes in."""

from collections.abc import Callable

import numpy as np
import pytest

import riskset as rs
from riskset._errors import InputError
from riskset._types import AnyArray

Y = rs.Surv([5.0, 8.0, 2.0, 9.0, 4.0, 7.0], [1, 0, 1, 1, 0, 1])
GROUP = np.array(["a", "b", "a", "b", "a", "b"])
SCORE = np.linspace(0.9, 0.1, 6)
TIMES = np.array([4.5, 6.5])
PREDICTION = np.column_stack([SCORE, SCORE / 2])

Call = Callable[[AnyArray], object]
CALLS: dict[str, tuple[Call, AnyArray, str]] = {
    "Surv, event": (lambda e: rs.Surv(Y["time"], e), Y["event"], "event"),
    "Surv, text": (lambda e: rs.Surv(Y["time"], e), GROUP, "event"),
    "curve, y": (rs.kaplan_meier, Y, "y"),
    "curve, group": (lambda g: rs.kaplan_meier(Y, group=g), GROUP, "group"),
    "curve, weight": (lambda w: rs.kaplan_meier(Y, weight=w), np.ones(6), "weight"),
    "curve, times": (rs.kaplan_meier(Y).at, TIMES, "times"),
    "curve, frame": (lambda t: rs.kaplan_meier(Y).to_frame(times=t), TIMES, "times"),
    "incidence, y": (rs.aalen_johansen, Y, "y"),
    "test, y": (lambda y: rs.logrank_test(y, group=GROUP), Y, "y"),
    "concordance, y": (lambda y: rs.metrics.concordance(y, SCORE), Y, "time"),
    "concordance, score": (lambda s: rs.metrics.concordance(Y, s), SCORE, "risk_score"),
    "auc, score": (lambda s: rs.metrics.auc(Y, s, TIMES), SCORE, "risk_score"),
    "auc, times": (lambda t: rs.metrics.auc(Y, SCORE, t), TIMES, "times"),
    "brier, y": (lambda y: rs.metrics.brier_score(y, PREDICTION, TIMES), Y, "time"),
    "brier, prediction": (
        lambda p: rs.metrics.brier_score(Y, p, TIMES, prediction_is="survival"),
        PREDICTION,
        "prediction",
    ),
    "calibration, prediction": (
        lambda p: rs.metrics.calibration(Y, p, 6.5, groups=2),
        SCORE,
        "prediction",
    ),
}


@pytest.mark.parametrize(("call", "values", "name"), CALLS.values(), ids=CALLS)
def test_masked_values_are_missing(call: Call, values: AnyArray, name: str) -> None:
    masked = np.ma.masked_array(values.copy())
    masked[1] = np.ma.masked
    with pytest.raises(
        InputError, match=rf"`{name}` must not have missing.* masked \(first: row 1\)"
    ):
        call(masked)


def test_a_mask_that_hides_nothing_is_no_matter() -> None:
    score = np.ma.masked_array(SCORE)
    assert rs.metrics.concordance(Y, score) == rs.metrics.concordance(Y, SCORE)
