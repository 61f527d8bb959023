"""What every plot does: draws into given Axes, returns Axes, is shown once in a notebook."""

import inspect
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import riskset as rs

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")


def results() -> dict[str, Any]:
    """A result for each plot."""
    cohort = rs.simulate_cox(300, 3, 0.5, seed=1)
    y = rs.Surv(cohort.time, cohort.event)
    model = rs.Cox().fit(cohort.X, y)
    people = rs.cohort.Population([1, 1, 0, 0], [0.6, 0.4, 0.5, 0.3])
    weighted = rs.cohort.weight(people)
    controls = rs.cohort.Controls([0.2, -0.1, 0.3, 0.1, 0.0, 0.25], [0.1] * 6)
    at = float(np.median(cohort.time))
    survival = model.predict_survival_function(cohort.X, times=[at])
    balance = rs.cohort.balance([[1.0], [3.0], [0.0], [2.0]], weighted)
    penalties = [2.0, 5.0]
    return {
        "arm_estimates": rs.cohort.standardize(
            y, rs.cohort.Population(np.arange(300) % 2), cohort.X, at
        ),
        "balance_scatter": balance,
        "bootstrap_distribution": model.bootstrap(60),
        "calibration": rs.metrics.calibration(y, survival, at),
        "coefficient_path": rs.path(rs.Cox(rs.L1(1.0)), cohort.X, y, n_penalties=3),
        "cross_validation": rs.CoxCV(rs.L1(), penalties=penalties, folds=3, repeats=1).fit(
            cohort.X, y
        ),
        "forest": model,
        "incidence_by_group": rs.aalen_johansen(y),
        "love_plot": balance,
        "negative_controls": rs.cohort.calibrate(controls, [0.5], [0.1], method="likelihood"),
        "predicted_curves": model.predict_survival_function(cohort.X)[:2],
        "profile_likelihood": rs.profile(model, cohort.X, y, parameter="x0"),
        "propensity_overlap": weighted,
        "roc": rs.metrics.roc(y, model.predict(cohort.X), at),
        "schoenfeld": model.test_proportionality(cohort.X, y),
        "survival_by_group": rs.kaplan_meier(y),
        "tipping_points": rs.cohort.tipping_points(
            1.5, 1.2, 1.8, scale="risk", difference=[0.2, 0.5]
        ),
    }


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return results()


def test_every_plot_is_tested(made: dict[str, Any]) -> None:
    assert sorted(made) == sorted(rs.plot.__all__)


@pytest.mark.parametrize("name", rs.plot.__all__)
def test_a_plot_draws_into_given_axes_or_new_ones(name: str, made: dict[str, Any]) -> None:
    draw = getattr(rs.plot, name)
    ax = inspect.signature(draw).parameters["ax"]
    assert (ax.kind, ax.default) == (inspect.Parameter.KEYWORD_ONLY, None)
    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    assert draw(made[name], ax=right) is right
    assert right.has_data()
    assert not left.has_data()
    figure.savefig(BytesIO(), format="pdf")
    own = draw(made[name])
    assert isinstance(own, Axes)
    assert own.figure is not figure
    assert plt.get_fignums() == []  # pyplot has nothing to close


@pytest.mark.parametrize("name", rs.plot.__all__)
@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_a_plot_is_saved(name: str, suffix: str, made: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / f"{name}.{suffix}"
    getattr(rs.plot, name)(made[name]).figure.savefig(path)
    head = path.read_bytes()[:200]
    assert {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix] in head


@pytest.mark.parametrize("name", rs.plot.__all__)
def test_words_are_inside_the_picture(name: str, made: dict[str, Any]) -> None:
    ax = getattr(rs.plot, name)(made[name])
    ax.figure.savefig(BytesIO())
    box = ax.figure.bbox
    legend = ax.get_legend()
    texts = [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label]
    texts += [*ax.get_xticklabels(), *ax.get_yticklabels()]
    texts += legend.get_texts() if legend else []
    for text in texts:
        own = text.get_window_extent()
        if text.get_visible() and text.get_text() and own.width:
            inside = min(own.x0, own.y0) >= -2 and own.x1 <= box.x1 + 2 and own.y1 <= box.y1 + 2
            assert inside or not _is_shown(ax, text), (text.get_text(), own, box)


def _is_shown(ax: Axes, text: Any) -> bool:
    """Labels of ticks beyond the ends of an axis are not drawn."""
    for axis, at, ends in (
        (ax.xaxis, 0, sorted(ax.get_xlim())),
        (ax.yaxis, 1, sorted(ax.get_ylim())),
    ):
        if text in axis.get_ticklabels():
            return bool(ends[0] <= text.get_position()[at] <= ends[1])
    return True


def test_wrong_arguments(made: dict[str, Any]) -> None:
    figure = Figure()
    with pytest.raises(rs.InputError, match="`ax` must be Axes of matplotlib, but it is ndarray"):
        rs.plot.roc(made["roc"], ax=figure.subplots(1, 2))
    for name in rs.plot.__all__:
        with pytest.raises(rs.InputError, match="riskset|CoxCV"):
            getattr(rs.plot, name)(object())


def test_a_picture_has_the_size_of_its_figure(made: dict[str, Any]) -> None:
    ax = rs.plot.roc(made["roc"])
    data, size = ax._repr_png_()
    width, height = Image.open(BytesIO(data)).size
    inches = ax.figure.get_size_inches()
    np.testing.assert_allclose([size["width"], size["height"]], 96 * inches, atol=1)
    np.testing.assert_allclose([width, height], 200 * inches, atol=1)


NOTEBOOK = """
import riskset as rs
y = rs.Surv([5.0, 8.0, 12.0, 3.0], [True, False, True, True])
curves = rs.kaplan_meier(y)
---
rs.plot.survival_by_group(curves)
---
rs.plot.survival_by_group(curves);
---
rs.plot.survival_by_group(curves).figure
---
import matplotlib.pyplot as plt
rs.plot.survival_by_group(curves)
---
figure, ax = plt.subplots(layout="constrained")
rs.plot.survival_by_group(curves, ax=ax)
---
plt.get_fignums()
"""


def test_a_notebook_shows_each_plot_once() -> None:
    """One picture for a plot, whether pyplot is loaded or not, and whether its axes are given."""
    cells = [nbformat.v4.new_code_cell(cell.strip()) for cell in NOTEBOOK.split("---")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300).execute()
    shown = [
        [out for out in cell.outputs if out.output_type in ("display_data", "execute_result")]
        for cell in notebook.cells
    ]
    pictures = [sum("image/png" in out.data for out in outs) for outs in shown]
    assert pictures == [0, 1, 0, 1, 1, 1, 0]
    assert shown[6][0].data["text/plain"] == "[]"
    for outs in shown:
        assert not any(re.match("<Figure", out.data.get("text/plain", "")) and len(out.data) == 1
                       for out in outs)  # fmt: skip
