"""Pictures hold what they were given, label without overlap, and never open a window."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

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


# ------------------------------------------------------------------------- curves by group


@pytest.fixture
def followup() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    y = rs.Surv(rng.integers(1, 40, 300), rng.integers(0, 3, 300))
    return y, rng.choice(["treated", "untreated"], 300)


def texts_below(figure: Figure) -> list[str]:
    return [t.get_text() for t in figure.axes[1].texts]


def test_survival_by_group_holds_the_curves(followup: tuple[np.ndarray, np.ndarray]) -> None:
    result = rs.kaplan_meier(*followup, cause=1)
    figure = rs.plot.survival_by_group(result, until=np.inf, ticks=[0, 10, 20, 30])
    above = figure.axes[0]
    for line, curve in zip(above.lines, result, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.append(0, curve.time))
        np.testing.assert_array_equal(line.get_ydata(), np.append(1, curve.survival))
    assert len({str(line.get_linestyle()) for line in above.lines}) == 2  # not by colour alone
    assert len(above.collections) == 2
    counts = result.at_risk([0, 10, 20, 30]).reshape(-1)
    assert texts_below(figure) == [f"{n:,.0f}" for n in counts] + ["at risk"]
    assert [t.get_text() for t in figure.axes[1].get_yticklabels()] == ["treated", "untreated"]


def test_numbers_at_risk_stand_under_their_ticks(
    followup: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    figure = rs.plot.survival_by_group(rs.kaplan_meier(*followup, cause=1))
    figure.savefig(tmp_path / "survival.png", dpi=100)
    above, below = figure.axes
    ticks = [label.get_window_extent() for label in above.get_xticklabels()]
    centres = [(box.x0 + box.x1) / 2 for box in ticks]
    row = [t.get_window_extent() for t in below.texts[: len(ticks)]]
    np.testing.assert_allclose([(box.x0 + box.x1) / 2 for box in row], centres, atol=1.5)
    first = below.texts[0].get_window_extent()
    assert all(label.get_window_extent().x1 < first.x0 for label in below.get_yticklabels())
    assert (
        max(t.get_window_extent().y1 for t in below.texts)
        < above.xaxis.label.get_window_extent().y0
    )


def test_incidence_by_group(followup: tuple[np.ndarray, np.ndarray]) -> None:
    result = rs.aalen_johansen(*followup)
    figure = rs.plot.incidence_by_group(
        result, 2, cause_names={2: "death"}, groups=["untreated", "treated"], at_risk=False
    )
    (axes,) = figure.axes
    assert axes.get_ylabel() == "cumulative incidence of death"
    end = axes.get_xlim()[1]
    left = [(c.n_at_risk[c.time <= end][-1], c.n_at_risk.max()) for c in result]
    assert all(n >= 0.1 * most for n, most in left)  # the tail that rests on few is left out
    drawn = axes.lines[0].get_ydata()
    curve = result["untreated"]
    np.testing.assert_array_equal(drawn[1:-1], curve.incidence[1][curve.time <= end])
    assert axes.get_ylim()[1] < 1


def test_all_causes_of_one_group(followup: tuple[np.ndarray, np.ndarray]) -> None:
    figure = rs.plot.incidence_by_group(rs.aalen_johansen(followup[0]), bands=False)
    assert {t.get_text() for t in figure.axes[0].texts} == {"cause 1", "cause 2"}
    assert len(figure.axes[0].collections) == 0
    assert figure.axes[1].get_yticklabels()[0].get_text() == "at risk"


def test_labels_of_many_curves_stay_on_the_axes(tmp_path: Path) -> None:
    """Ten curves that all end at 0."""
    time = np.arange(1.0, 101.0)
    y = rs.Surv(np.tile(time, 10), np.ones(1000, dtype=bool))
    result = rs.kaplan_meier(y, np.repeat(np.arange(10), 100))
    figure = rs.plot.survival_by_group(result, until=np.inf)
    figure.savefig(tmp_path / "many.png", dpi=100)
    axes = figure.axes[0]
    # The words alone: the extent of an annotation holds its line too.
    boxes = sorted((Text.get_window_extent(t) for t in axes.texts), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
    assert boxes[0].y0 > axes.xaxis.label.get_window_extent().y1


def test_long_curves_are_thinned_below_what_can_be_seen() -> None:
    y = rs.Surv(np.arange(1.0, 30001.0), np.ones(30000, dtype=bool))
    result = rs.kaplan_meier(y)
    (line,) = rs.plot.survival_by_group(result, until=np.inf).axes[0].lines
    times = np.asarray(line.get_xdata())
    assert times.size <= 4002
    assert np.diff(times).max() <= 2 * 30000 / 4000
    np.testing.assert_array_equal(line.get_ydata(), result.at(times)[0])


def test_late_entry_counts_who_enters_at_the_start() -> None:
    y = rs.Surv([5.0, 6.0, 7.0], [True, False, False], [0.0, 0.0, 2.0])
    figure = rs.plot.survival_by_group(rs.kaplan_meier(y), ticks=[0, 3], until=6)
    assert texts_below(figure) == ["2", "3"]


def test_pictures_that_cannot_be_drawn(followup: tuple[np.ndarray, np.ndarray]) -> None:
    result = rs.aalen_johansen(*followup)
    with pytest.raises(rs.InputError, match="2 causes and 2 groups, so say which cause"):
        rs.plot.incidence_by_group(result)
    with pytest.raises(rs.InputError, match="cause 5 does not occur"):
        rs.plot.incidence_by_group(result, 5)
    with pytest.raises(rs.InputError, match="the time axis would be empty"):
        rs.plot.incidence_by_group(result, 1, until=0)
    with pytest.raises(rs.InputError, match="did you mean 'treated'"):
        rs.plot.incidence_by_group(result, 1, groups=["treatet"])


@pytest.mark.parametrize("kind", ["survival", "incidence"])
def test_more_groups_than_fit_are_refused(kind: str) -> None:
    group = np.arange(62) % 31
    y = rs.Surv(np.arange(62) + 1.0, np.ones(62))
    result, draw = {
        "survival": (rs.kaplan_meier(y, group), rs.plot.survival_by_group),
        "incidence": (rs.aalen_johansen(y, group), rs.plot.incidence_by_group),
    }[kind]
    with pytest.raises(
        rs.InputError, match=r"(?s)31 groups do not fit one .* at most 30 .* `groups`"
    ):
        draw(result)  # type: ignore[operator]
    figure = draw(result, groups=range(30))  # type: ignore[operator]
    assert isinstance(figure, Figure)
