"""The time-dependent ROC curve against its formula, row by row, and against the AUC."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    n = 150
    time = rng.integers(1, 30, n).astype(float)
    event = rng.integers(0, 3, n)
    score = rng.integers(0, 12, n) / 4.0  # ties
    return time, event, score


def weights(time, event, at, cause, event_free):
    """Weights of cases and controls, from a Kaplan-Meier estimate of the censoring."""

    def g(t, before):
        value = 1.0
        for u in np.unique(time[event == 0]):
            if u < t or (u == t and not before):
                # Events come before censorings at one time.
                at_risk = ((time > u) | ((time == u) & (event == 0))).sum()
                value *= 1 - ((time == u) & (event == 0)).sum() / at_risk
        return value

    case, control = np.zeros(time.size), np.zeros(time.size)
    for i, (t, e) in enumerate(zip(time, event, strict=True)):
        if t <= at and e == cause:
            case[i] = 1 / g(t, before=True)
        elif t <= at and e > 0 and not event_free:
            control[i] = 1 / g(t, before=True)
        elif t > at:
            control[i] = 1 / g(at, before=False)
    return case, control


@pytest.mark.parametrize("controls", ["event_free", "event_free_or_competing"])
def test_curve_is_that_of_the_formula(data, controls):
    time, event, score = data
    found = rs.metrics.roc(rs.Surv(time, event), score, 12.0, cause=1, controls=controls)
    case, control = weights(time, event, 12.0, 1, controls == "event_free")
    assert_array_equal(found.threshold, np.append(np.inf, np.unique(score)[::-1]))
    for k, threshold in enumerate(found.threshold):
        above = score >= threshold
        assert_allclose(found.true_positive_rate[k], case[above].sum() / case.sum())
        assert_allclose(found.false_positive_rate[k], control[above].sum() / control.sum())
    assert (found.n_cases, found.n_controls) == ((case > 0).sum(), (control > 0).sum())


def test_area_is_the_auc(data):
    time, event, score = data
    y = rs.Surv(time, event)
    found = rs.metrics.roc(y, score, 12.0, cause=1)
    area = np.trapezoid(found.true_positive_rate, found.false_positive_rate)
    other = rs.metrics.auc(y, score, 12.0, cause=1)
    assert_allclose([area, found.auc], other.auc[0], rtol=1e-12)
    assert_allclose(found.standard_error, other.standard_error[0])
    frame = found.to_frame()
    assert [frame.index.name, *frame] == ["threshold", "true_positive_rate", "false_positive_rate"]


def test_without_censoring_it_is_the_plain_curve():
    time, score = np.arange(1.0, 41.0), np.random.default_rng(1).normal(size=40)
    found = rs.metrics.roc(rs.Surv(time, np.ones(40, dtype=bool)), score, 15.0)
    metrics = pytest.importorskip("sklearn.metrics")
    fpr, tpr, _ = metrics.roc_curve(time <= 15, score, drop_intermediate=False)
    assert_allclose(found.false_positive_rate, fpr, atol=1e-12)
    assert_allclose(found.true_positive_rate, tpr, atol=1e-12)


def test_refusals(data):
    time, event, score = data
    with pytest.raises(rs.InputError, match="at time 0 there are 0 cases"):
        rs.metrics.roc(rs.Surv(time, event), score, 0.0, cause=1)
    with pytest.raises(rs.InputError, match="`controls`"):
        rs.metrics.roc(rs.Surv(time, event), score, 12.0, cause=1, controls="alive")
