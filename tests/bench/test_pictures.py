"""Pictures of times: every line can be told from the others, and nonsense is refused."""

import pytest

import riskset as rs
from riskset.plot.timings import Panel, time_bars, time_curves, time_dots


def test_every_line_looks_different() -> None:
    lines = {f"tool {k}": ([1e5, 1e6], [1.0 + k, 20.0 + k]) for k in range(12)}
    (axes,) = time_curves([Panel("Cox", "rows", lines)]).axes
    looks = {(line.get_color(), line.get_marker()) for line in axes.get_lines()}
    assert len(looks) == 12
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert [t.get_text() for t in axes.get_xticklabels()] == ["100k", "1M"]


def test_a_name_has_one_colour_in_all_panels() -> None:
    one, other = ([1.0, 10.0], [1.0, 2.0]), ([1.0, 10.0], [3.0, 4.0])
    panels = [Panel("", "", {"a": one, "b": other}), Panel("", "", {"b": one})]
    first, second = time_curves(panels).axes
    assert first.get_lines()[1].get_color() == second.get_lines()[0].get_color()


def test_small_differences_stay_small() -> None:
    (axes,) = time_curves([Panel("", "", {"a": ([1.0, 2.0], [1.0, 1.01])})]).axes
    low, high = axes.get_ylim()
    assert high / low == pytest.approx(5)


def test_growth_in_proportion_is_shown() -> None:
    panel = Panel("", "columns", {"a": ([10.0, 100.0, 1000.0], [1.0, 2.0, 50.0])}, is_linear=True)
    (axes,) = time_curves([panel]).axes
    found, reference = axes.get_lines()
    assert reference.get_label() == "in proportion"
    assert reference.get_xydata().tolist() == [[10.0, 0.5], [1000.0, 50.0]]
    assert reference.get_linestyle() == "--"


def test_bars_carry_their_numbers() -> None:
    figure = time_bars({"Cox": {"fit": 1.25, "bootstrap": 300.0}, "Fine-Gray": {"fit": 2.0}})
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert texts == ["1.25", "300", "2"]


def test_dots_are_open_where_a_program_stopped_early() -> None:
    works = {"fit": {"a": 0.1, "b": 3.0}, "path": {"b": 0.4}}
    (axes,) = time_dots(works, unfinished=[("path", "b")]).axes
    drawn = [line for line in axes.get_lines() if len(line.get_xdata())]
    assert [float(line.get_xdata()[0]) for line in drawn] == [0.1, 3.0, 0.4]
    assert [line.get_markerfacecolor() == "white" for line in drawn] == [False, False, True]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["fit", "path"]
    with pytest.raises(rs.InputError, match="no times to draw"):
        time_dots({})


def test_groups_of_bars_stand_below_each_other_on_one_scale() -> None:
    steps = {f"step {k}": 10.0 + k for k in range(9)}
    figure = time_bars({"one": steps, "other": {k: v / 5 for k, v in steps.items()}})
    figure.draw_without_rendering()
    first, second = figure.axes
    assert second.get_position().y1 < first.get_position().y0
    assert first.get_xlim() == second.get_xlim()
    assert first.get_xlim()[1] > 18


def test_nothing_to_draw_and_numbers_that_are_not_positive() -> None:
    with pytest.raises(rs.InputError, match="no times to draw"):
        time_curves([Panel("", "", {})])
    with pytest.raises(rs.InputError, match="no times to draw"):
        time_bars({"Cox": {}})
    with pytest.raises(rs.InputError, match="line 'a' of 'Cox' has a value that is not positive"):
        time_curves([Panel("Cox", "rows", {"a": ([1.0], [0.0])})])
