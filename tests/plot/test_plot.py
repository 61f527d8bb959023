"""Plots of curves and paths hold what they were given, label without overlap, open no window."""

import dataclasses
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

import riskset as rs
from riskset.model.step_function import StepFunction

NAMES = [f"covariate {j}" for j in range(40)] + ["a very long name of a covariate, indeed", "drug"]


def made_path(strength: np.ndarray, coef: np.ndarray, names: list[str]) -> rs.PathResult:
    """A path with given solutions."""
    cohort = rs.simulate_cox(60, 1, 0.9, seed=1)
    found = rs.path(rs.Cox(rs.L1(1.0)), cohort.X, rs.Surv(cohort.time, cohort.event), n_penalties=3)
    penalties = tuple(rs.L1(float(s), unpenalized=["drug"]) for s in strength)
    return dataclasses.replace(
        found,
        penalties=penalties,
        strengths=strength,
        coefs=coef,
        names=tuple(names),
        labels=tuple(names),
    )


@pytest.fixture(scope="module")
def path() -> rs.PathResult:
    strength = np.geomspace(100, 0.1, 50)
    end = np.random.default_rng(1).normal(0, 0.3, len(NAMES))
    coef = end * np.clip(1 - strength[:, None] / 20, 0, None)
    coef[:, -1] = 0.2
    coef[:, 3] = np.inf
    return made_path(strength, coef, NAMES)


def test_path_is_drawn_from_strong_to_weak(path: rs.PathResult) -> None:
    axes = rs.plot.coefficient_path(path, chosen=20, title="Path")
    left, right = axes.get_xlim()
    assert left > right
    assert axes.get_xscale() == "log"
    bold = [line for line in axes.lines if line.get_linewidth() > 2]  # the one without a penalty
    assert len(bold) == 1
    np.testing.assert_array_equal(bold[0].get_ydata(), np.full(50, 0.2))
    assert np.argmax(bold[0].get_xdata()) == 0


def test_labels_do_not_overlap(path: rs.PathResult, tmp_path: Path) -> None:
    axes = rs.plot.coefficient_path(path, chosen=20, title="Path")
    axes.figure.savefig(tmp_path / "path.png", dpi=100)
    assert (tmp_path / "path.png").stat().st_size > 5000
    texts = [t for t in axes.texts if t.get_text() != "chosen"]
    assert len(texts) == 9
    assert "drug" in {t.get_text() for t in texts}
    boxes = sorted((t.get_window_extent() for t in texts), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
    assert all(box.x1 <= axes.figure.bbox.x1 for box in boxes)


def test_coefficients_are_scaled(path: rs.PathResult) -> None:
    scale = np.arange(len(NAMES)) + 1.0
    axes = rs.plot.coefficient_path(path, scale=scale)
    bold = [line for line in axes.lines if line.get_linewidth() > 2]
    np.testing.assert_allclose(bold[0].get_ydata(), 0.2 * scale[-1])


def test_zeros_can_be_drawn() -> None:
    path = made_path(np.array([1.0, 0.0]), np.zeros((2, 2)), ["a", "b"])
    axes = rs.plot.coefficient_path(path)
    axes.figure.savefig(BytesIO())
    assert all(len(line.get_xdata()) == 1 for line in axes.lines[1:])  # strength 0 has no place


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": [1.0]}, r"`scale` must have one number for each of the 42 covariates"),
        ({"chosen": 50}, "`chosen` must be a position on the path, 0 to 49"),
        ({"emphasised": ["drugg"]}, "did you mean 'drug'"),
    ],
)
def test_bad_path(path: rs.PathResult, change: dict[str, object], message: str) -> None:
    with pytest.raises(rs.InputError, match=message):
        rs.plot.coefficient_path(path, **change)  # type: ignore[arg-type]


def step(times: list[float], values: list[float]) -> StepFunction:
    at, y = np.array(times), np.append(1.0, values)
    return StepFunction(at, lambda t: y[np.searchsorted(at, t, side="right")])


def test_predicted_curves_step_at_their_times() -> None:
    curves = {"no drug": step([10.0, 30.0], [0.9, 0.6]), "drug": step([10.0, 30.0], [0.8, 0.8])}
    axes = rs.plot.predicted_curves(curves, xlabel="days")
    axes.figure.savefig(BytesIO())
    first, second = axes.lines
    assert first.get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(second.get_xdata(), [0, 10, 30])
    np.testing.assert_array_equal(second.get_ydata(), [1, 0.8, 0.8])
    assert axes.get_ylim() == (0, 1)
    assert first.get_linestyle() != second.get_linestyle()


def test_predictions_of_a_model_are_drawn() -> None:
    cohort = rs.simulate_cox(200, 3, 0.5, 1)
    model = rs.Cox().fit(cohort.X, rs.Surv(cohort.time, cohort.event))
    functions = model.predict_survival_function(cohort.X)[:2]
    axes = rs.plot.predicted_curves(functions)
    for line, function in zip(axes.lines, functions, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), function(line.get_xdata()))
    assert {t.get_text() for t in axes.texts} == {"row 0", "row 1"}


def test_bad_predictions() -> None:
    one = step([1.0], [0.5])
    with pytest.raises(rs.InputError, match="there are 2 curves, but 1 label"):
        rs.plot.predicted_curves([one, one], labels=["a"])
    with pytest.raises(rs.InputError, match="1 to 30 curves, but there are 31"):
        rs.plot.predicted_curves([one] * 31)
    with pytest.raises(rs.InputError, match="shows what model.predict_survival_function"):
        rs.plot.predicted_curves(np.ones((2, 2)))  # type: ignore[arg-type]


# ------------------------------------------------------------------------- curves by group


@pytest.fixture
def followup() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    y = rs.Surv(rng.integers(1, 40, 300), rng.integers(0, 3, 300))
    return y, rng.choice(["treated", "untreated"], 300)


def below(axes: Axes) -> list[Text]:
    """What stands below the axis: the annotations that hang from it."""
    return [t for t in axes.texts if getattr(t, "xyann", (0, 1))[1] < -20]


def rows_below(axes: Axes) -> list[list[str]]:
    """The lines below the axis from top to bottom, each with its label first."""
    lines: dict[float, list[Text]] = {}
    for text in below(axes):
        lines.setdefault(text.xyann[1], []).append(text)  # type: ignore[attr-defined]
    return [[t.get_text() for t in lines[at]] for at in sorted(lines, reverse=True)]


def test_survival_by_group_holds_the_curves(followup: tuple[np.ndarray, np.ndarray]) -> None:
    result = rs.kaplan_meier(*followup, cause=1)
    axes = rs.plot.survival_by_group(result, until=np.inf, ticks=[0, 10, 20, 30])
    for line, curve in zip(axes.lines, result, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.append(0, curve.time))
        np.testing.assert_array_equal(line.get_ydata(), np.append(1, curve.survival))
    assert len({str(line.get_linestyle()) for line in axes.lines}) == 2  # not by colour alone
    assert len(axes.collections) == 2


def test_numbers_below_are_counts_of_rows(followup: tuple[np.ndarray, np.ndarray]) -> None:
    y, group = followup
    ticks = [0, 10, 20, 30]
    axes = rs.plot.survival_by_group(rs.kaplan_meier(y, group, cause=1), until=35, ticks=ticks)
    time, happened = y["time"], y["event"] == 1
    expected = [["at risk"], ["events"]]
    for name in ("untreated", "treated"):
        own = group == name
        at_risk = [str(int((own & (time >= t)).sum())) for t in ticks]
        events = [str(int((own & happened & (time <= t)).sum())) for t in ticks]
        expected.insert(1, [name, *at_risk])
        expected.insert(len(expected) - (name == "treated"), [name, *events])
    assert rows_below(axes) == expected
    plain = rs.plot.survival_by_group(rs.kaplan_meier(y, cause=1), events=False, at_risk=False)
    assert rows_below(plain) == []


def test_numbers_at_risk_stand_under_their_ticks(
    followup: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    axes = rs.plot.survival_by_group(rs.kaplan_meier(*followup, cause=1), events=False)
    axes.figure.savefig(tmp_path / "survival.png", dpi=100)
    ticks = [label.get_window_extent() for label in axes.get_xticklabels()]
    centres = [(box.x0 + box.x1) / 2 for box in ticks]
    _, label, *row = below(axes)
    row = row[: len(ticks)]
    boxes = [t.get_window_extent() for t in row]
    np.testing.assert_allclose([(box.x0 + box.x1) / 2 for box in boxes], centres, atol=1.5)
    assert label.get_window_extent().x1 < boxes[0].x0
    title = axes.xaxis.label.get_window_extent().y0
    assert max(t.get_window_extent().y1 for t in below(axes)) < title
    assert min(t.get_window_extent().y0 for t in below(axes)) >= 0  # on the picture
    assert min(t.get_window_extent().x0 for t in below(axes)) >= 0


def test_medians_are_those_of_the_curves(followup: tuple[np.ndarray, np.ndarray]) -> None:
    result = rs.kaplan_meier(*followup, cause="any")
    axes = rs.plot.survival_by_group(result, medians=True)
    upright = [line.get_xdata()[0] for line in axes.lines if len(set(line.get_xdata())) == 1]
    assert upright == [curve.quantile(0.5)[0] for curve in result]
    few = rs.kaplan_meier(rs.Surv([1.0, 2.0, 3.0], [True, False, False]))
    assert len(rs.plot.survival_by_group(few, medians=True).lines) == 1  # no median


def test_censored_rows_are_marked_on_the_curve(followup: tuple[np.ndarray, np.ndarray]) -> None:
    y, group = followup
    result = rs.kaplan_meier(y, group, cause=1)
    axes = rs.plot.survival_by_group(result, censor_marks=True, until=np.inf)
    marks = [line for line in axes.lines if line.get_marker() == "|"]
    for mark, curve in zip(marks, result, strict=True):
        own = (group == curve.label) & (y["event"] != 1)
        np.testing.assert_array_equal(mark.get_xdata(), np.unique(y["time"][own]))
        np.testing.assert_array_equal(mark.get_ydata(), curve.at(mark.get_xdata()))


def test_tests_are_written_with_their_names(followup: tuple[np.ndarray, np.ndarray]) -> None:
    y, group = followup
    test = rs.logrank_test(y, group, 1)
    axes = rs.plot.survival_by_group(rs.kaplan_meier(y, group, cause=1), test=test)
    assert f"log-rank test: p = {test.p_value:.2f}" in {t.get_text() for t in axes.texts}
    gray = rs.gray_test(y, group, 1)
    axes = rs.plot.incidence_by_group(rs.aalen_johansen(y, group), 1, test=gray)
    assert f"Gray's test: p = {gray.p_value:.2f}" in {t.get_text() for t in axes.texts}
    with pytest.raises(rs.InputError, match="`test` must be a GroupTest"):
        rs.plot.survival_by_group(rs.kaplan_meier(y, group, cause=1), test=0.03)  # type: ignore[arg-type]


def test_incidence_by_group(followup: tuple[np.ndarray, np.ndarray]) -> None:
    result = rs.aalen_johansen(*followup)
    axes = rs.plot.incidence_by_group(
        result, 2, cause_names={2: "death"}, groups=["untreated", "treated"], at_risk=False
    )
    assert axes.get_ylabel() == "cumulative incidence of death"
    end = axes.get_xlim()[1]
    left = [(c.n_at_risk[c.time <= end][-1], c.n_at_risk.max()) for c in result]
    assert all(n >= 0.1 * most for n, most in left)  # the tail that rests on few is left out
    drawn = axes.lines[0].get_ydata()
    curve = result["untreated"]
    np.testing.assert_array_equal(drawn[1:-1], curve.incidence[1][curve.time <= end])
    assert axes.get_ylim()[1] < 1


def test_all_causes_of_one_group(followup: tuple[np.ndarray, np.ndarray]) -> None:
    y = followup[0]
    axes = rs.plot.incidence_by_group(rs.aalen_johansen(y), bands=False, ticks=[20])
    assert len(axes.collections) == 0
    by = [str(int(((y["event"] == c) & (y["time"] <= 20)).sum())) for c in (1, 2)]
    at_risk = str(int((y["time"] >= 20).sum()))
    assert rows_below(axes) == [
        ["at risk", at_risk],
        ["events"],
        ["cause 1", by[0]],
        ["cause 2", by[1]],
    ]


def test_curves_of_arms_count_people() -> None:
    """Weights belong to curves; below them stand people."""
    rng = np.random.default_rng(3)
    treated = rng.random(300) < 0.4
    people = rs.cohort.Population(treated, np.where(rng.random(300) < 0.5, 0.3, 0.6))
    y = rs.Surv(rng.exponential(10, 300), rng.random(300) < 0.7)
    curves = rs.cohort.survival(y, rs.cohort.weight(people, "ato"))
    axes = rs.plot.survival_by_group(curves, labels={"target": "new drug"}, ticks=[5])
    time, happened = y["time"], y["event"]
    count = {
        arm: (int((own & (time >= 5)).sum()), int((own & happened & (time <= 5)).sum()))
        for arm, own in (("new drug", treated), ("comparator", ~treated))
    }
    rows = rows_below(axes)
    assert rows[1:3] == [[arm, str(count[arm][0])] for arm in ("new drug", "comparator")]
    assert rows[4:6] == [[arm, str(count[arm][1])] for arm in ("new drug", "comparator")]
    assert axes.get_xlim()[1] == pytest.approx(curves.limit)
    risks = rs.cohort.incidence(y, rs.cohort.weight(people, "ato"))
    assert rows_below(rs.plot.incidence_by_group(risks, 1, ticks=[5]))[1][1] == rows[1][1]
    with pytest.raises(
        rs.InputError, match=r"riskset\.aalen_johansen or riskset\.cohort\.incidence"
    ):
        rs.plot.incidence_by_group(curves)
    with pytest.raises(rs.InputError, match="group 'targett' was not found"):
        rs.plot.survival_by_group(curves, labels={"targett": "new drug"})


def test_labels_of_many_curves_stay_on_the_axes(tmp_path: Path) -> None:
    """Ten curves that all end at 0."""
    time = np.arange(1.0, 101.0)
    y = rs.Surv(np.tile(time, 10), np.ones(1000, dtype=bool))
    result = rs.kaplan_meier(y, np.repeat(np.arange(10), 100))
    axes = rs.plot.survival_by_group(result, until=np.inf, at_risk=False, events=False)
    axes.figure.savefig(tmp_path / "many.png", dpi=100)
    # The words alone: the extent of an annotation holds its line too.
    boxes = sorted((Text.get_window_extent(t) for t in axes.texts), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
    assert boxes[0].y0 > axes.xaxis.label.get_window_extent().y1


def test_long_curves_are_thinned_below_what_can_be_seen() -> None:
    y = rs.Surv(np.arange(1.0, 30001.0), np.ones(30000, dtype=bool))
    result = rs.kaplan_meier(y)
    (line,) = rs.plot.survival_by_group(result, until=np.inf).lines
    times = np.asarray(line.get_xdata())
    assert times.size <= 4002
    assert np.diff(times).max() <= 2 * 30000 / 4000
    np.testing.assert_array_equal(line.get_ydata(), result.at(times)[0])


def test_late_entry_counts_who_enters_at_the_start() -> None:
    y = rs.Surv([5.0, 6.0, 7.0], [True, False, False], [0.0, 0.0, 2.0])
    axes = rs.plot.survival_by_group(rs.kaplan_meier(y), ticks=[0, 3], until=6, events=False)
    assert rows_below(axes) == [["at risk", "2", "3"]]


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
    axes = draw(result, groups=range(30))  # type: ignore[operator]
    assert isinstance(axes, Axes)
