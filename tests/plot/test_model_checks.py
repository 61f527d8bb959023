"""Plots that judge a model: calibration, ROC curves, residuals over time."""

from io import BytesIO

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs


@pytest.fixture(scope="module")
def cohort():
    return rs.simulate_cox(400, 3, 0.5, seed=2)


@pytest.fixture(scope="module")
def y(cohort):
    return rs.Surv(cohort.time, cohort.event)


@pytest.fixture(scope="module")
def model(cohort, y):
    return rs.Cox().fit(cohort.X, y)


def test_calibration_shows_groups_and_curves(cohort, y, model):
    at = float(np.quantile(cohort.time, 0.6))
    survival = model.predict_survival_function(cohort.X, times=[at])[:, 0]
    groups = rs.metrics.calibration(y, survival, at, groups=5)
    smooth = rs.metrics.calibration(y, survival, at, groups="smooth")
    axes = rs.plot.calibration({"fifths": groups, "smooth": smooth})
    marks = next(line for line in axes.lines if line.get_marker() == "o")
    assert_array_equal(marks.get_xdata(), groups.predicted)
    assert_array_equal(marks.get_ydata(), groups.observed)
    curve = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert_array_equal(curve.get_ydata(), smooth.observed)
    bars = axes.collections[0].get_segments()
    assert_allclose([bar[:, 1] for bar in bars], np.column_stack([groups.lower, groups.upper]))
    legend = [t.get_text() for t in axes.get_legend().get_texts()]
    assert any(f"observed / predicted {groups.ratio:.2f}" in text for text in legend)
    diagonal = next(line for line in axes.lines if list(line.get_xdata())[:1] == [0])
    assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    with pytest.raises(rs.InputError, match=r"shows what riskset\.metrics\.calibration"):
        rs.plot.calibration({})


def test_roc_curves_are_drawn_with_their_areas(cohort, y, model):
    risk, times = model.predict(cohort.X), np.quantile(cohort.time, [0.3, 0.6])
    found = {f"time {t:.2f}": rs.metrics.roc(y, risk, t) for t in times}
    axes = rs.plot.roc(found)
    for line, one in zip(axes.lines[1:], found.values(), strict=True):
        assert_array_equal(line.get_xdata(), one.false_positive_rate)
        assert_array_equal(line.get_ydata(), one.true_positive_rate)
    area = rs.metrics.auc(y, risk, times).auc
    legend = [t.get_text() for t in axes.get_legend().get_texts()]
    assert all(f"AUC {a:.3f}" in text for a, text in zip(area, legend, strict=True))
    with pytest.raises(rs.InputError, match="room for 10 curves, but there are 11"):
        rs.plot.roc({str(k): next(iter(found.values())) for k in range(11)})


def test_residuals_are_drawn_with_curve_and_p(cohort, y, model):
    test = model.test_proportionality(cohort.X, y)
    residuals = test.scaled_residuals()
    axes = rs.plot.schoenfeld(test, "x1", level=0.9)
    points, curve, estimate, _ = axes.lines
    assert_array_equal(points.get_xdata(), residuals.transformed)
    assert_array_equal(points.get_ydata(), residuals.values[:, 1])
    smooth = residuals.smooth("x1", n_points=200, level=0.9)
    assert_array_equal(curve.get_ydata(), smooth.coef)
    (band,) = axes.collections
    edges = band.get_paths()[0].vertices[:, 1]
    assert_allclose([edges.min(), edges.max()], [smooth.lower.min(), smooth.upper.max()])
    assert_allclose(estimate.get_ydata(), model.coef_[1])
    (words,) = (t.get_text() for t in axes.texts)
    digits = 2 if test.p_value[1] >= 0.1 else 3
    assert words == f"proportional hazards: p = {test.p_value[1]:.{digits}f}"


@pytest.mark.parametrize("transform", ["km", "rank", "identity", "log"])
def test_ticks_are_times(cohort, y, model, transform):
    """A tick stands where events of about that time are drawn."""
    test = model.test_proportionality(cohort.X, y, transform)
    axes = rs.plot.schoenfeld(test)
    assert axes.get_ylabel() == f"log hazard ratio of {test.names[int(np.argmin(test.p_value))]}"
    residuals = test.scaled_residuals()
    axes.figure.savefig(BytesIO())
    order = np.argsort(residuals.time)
    labels = [(t.get_position()[0], t.get_text()) for t in axes.get_xticklabels()]
    shown = [(x, float(text.replace(",", ""))) for x, text in labels if text]
    assert len(shown) >= 3
    for x, time in shown:
        expected = np.interp(time, residuals.time[order], residuals.transformed[order])
        span = np.ptp(residuals.transformed)
        assert abs(x - expected) < 0.03 * span
