"""Pictures hold what they were given, label without overlap, and never open a window."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import riskset as rs
from riskset.plot import coefficient_path, survival_curves

NAMES = [f"covariate {j}" for j in range(40)] + ["a very long name of a covariate, indeed", "drug"]


@pytest.fixture
def figure() -> Figure:
    strength = np.geomspace(100, 0.1, 50)
    end = np.random.default_rng(1).normal(0, 0.3, len(NAMES))
    coef = end * np.clip(1 - strength[:, None] / 20, 0, None)
    coef[:, -1] = 0.2
    coef[:, 3] = np.inf
    return coefficient_path(strength, coef, NAMES, emphasised=["drug"], chosen=20, title="Path")


def test_path_is_drawn_from_strong_to_weak(figure: Figure) -> None:
    axes = figure.axes[0]
    left, right = axes.get_xlim()
    assert left > right
    assert axes.get_xscale() == "log"
    bold = [line for line in axes.lines if line.get_linewidth() > 2]
    assert len(bold) == 1
    np.testing.assert_array_equal(bold[0].get_ydata(), np.full(50, 0.2))
    assert np.argmax(bold[0].get_xdata()) == 0


def test_labels_do_not_overlap(figure: Figure, tmp_path: Path) -> None:
    figure.savefig(tmp_path / "path.png", dpi=100)
    assert (tmp_path / "path.png").stat().st_size > 5000
    texts = [t for t in figure.axes[0].texts if t.get_text() != "chosen"]
    assert len(texts) == 9
    assert "drug" in {t.get_text() for t in texts}
    boxes = sorted((t.get_window_extent() for t in texts), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)


def test_nothing_but_zeros_can_be_drawn() -> None:
    figure = coefficient_path(np.array([1.0]), np.zeros((1, 2)), ["a", "b"])
    figure.canvas.draw()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coef": np.zeros((2, 2))}, r"its shape is \(2, 2\)"),
        ({"strength": np.array([1.0, 0.0, 2.0])}, "must be positive"),
        ({"chosen": 3}, "`chosen` must be a row of `coef`, 0 to 2"),
        ({"emphasised": ["drugg"]}, "did you mean 'drug'"),
    ],
)
def test_bad_path(change: dict[str, object], message: str) -> None:
    given = {"strength": np.array([3.0, 2.0, 1.0]), "coef": np.zeros((3, 1)), "names": ["drug"]}
    with pytest.raises(rs.InputError, match=message):
        coefficient_path(**(given | change))


def test_survival_curves_step_at_their_times() -> None:
    times = np.array([0.0, 10.0, 30.0])
    curves = np.array([[1.0, 0.9, 0.6], [1.0, 0.8, 0.8]])
    figure = survival_curves(times, curves, ["no drug", "drug"], xlabel="days")
    figure.canvas.draw()
    first, second = figure.axes[0].lines
    assert first.get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(second.get_ydata(), curves[1])
    assert figure.axes[0].get_ylim() == (0, 1)


@pytest.mark.parametrize(
    ("times", "survival", "message"),
    [
        ([0.0, 1.0], [[1.0, 0.5, 0.2]], "its shape is"),
        ([1.0, 1.0], [[1.0, 0.5]], "must increase"),
    ],
)
def test_bad_curves(times: list[float], survival: list[list[float]], message: str) -> None:
    with pytest.raises(rs.InputError, match=message):
        survival_curves(np.array(times), np.array(survival), ["a"])
