"""Shapes by hand: where a number lies on the page."""

import math
import re

import numpy as np
import pytest

from report.made import study, tables
from report.parsed import Element, _Builder
from riskset._ticks import log_ticks, nice_ticks, ratio_ticks
from riskset.report.axes import AxisScale
from riskset.report.figures.forest import ForestRow, forest
from riskset.report.figures.scatter import hexagons
from riskset.report.svg import band, fit, hexagon, mark, polyline, px, step, thin, wrap
from riskset.report.translations import Translations


def tree(markup) -> Element:
    builder = _Builder()
    builder.feed(str(markup))
    return builder.root


def test_places_are_rounded_to_a_tenth():
    assert [px(v) for v in (1.0, 2.25, 3.14159, -0.01, 1e3)] == ["1", "2.2", "3.1", "0", "1000"]


def test_scales():
    assert AxisScale(0, 10, 100, 200)(2.5) == 125
    assert AxisScale(0, 10, 200, 100)(2.5) == 175
    log = AxisScale(0.25, 4, 0, 80, is_log=True)
    assert [log(v) for v in (0.25, 0.5, 1, 4)] == pytest.approx([0, 20, 40, 80])
    assert log(9) == 80


def test_ticks():
    assert nice_ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert nice_ticks(-26, 27, 8) == [-20, -10, 0, 10, 20]
    assert nice_ticks(3, 3) == [3]
    assert ratio_ticks([0.9, math.inf]) == [0.9, 0.95, 1]
    assert ratio_ticks([]) == [0.5, 1, 2]
    assert ratio_ticks([1.02, 0.98]) == [0.95, 1, 1.05]
    assert ratio_ticks([0.59, 1.38]) == [0.5, 0.67, 0.8, 1, 1.25, 1.5]
    assert ratio_ticks([7, 0.9]) == [0.5, 1, 2, 4, 8]
    assert ratio_ticks([0.07, 0.9]) == [1 / 16, 1 / 8, 0.25, 0.5, 1]
    assert ratio_ticks([0.07, 2.5]) == [1 / 16, 0.25, 1, 4]
    assert ratio_ticks([1e-9, 1e9]) == [1 / 64, 1 / 8, 1, 8, 64]


@pytest.mark.parametrize("low", [1e-6, 0.3, 0.99, 7.0])
@pytest.mark.parametrize("ratio", [1.001, 1.5, 20.0, 1e5])
def test_ticks_of_a_logarithmic_axis(low, ratio):
    """At least three round numbers within the ends, and not too many to read."""
    ticks = log_ticks(low, low * ratio)
    assert 3 <= len(ticks) <= 9
    assert ticks == sorted(ticks)
    assert low <= ticks[0] * (1 + 1e-9)
    assert ticks[-1] <= low * ratio * (1 + 1e-9)


def test_a_step_function_goes_across_before_it_goes_up():
    assert tree(step([(0, 50), (10, 40), (30, 20)], "t")).one("path").attrs["d"] == (
        "M0 50H10V40H30V20"
    )


def test_a_band_is_closed():
    """Forward on the upper step function, back on the lower one."""
    drawn = tree(band([0, 10, 30], [50, 45, 30], [50, 35, 10], "b")).one("path")
    assert drawn.attrs["d"] == "M0 50H10V35H30V10V30H30V45H10V50H0Z"


def test_other_shapes():
    assert tree(polyline([(0, 0), (1.5, 2)], "x")).one("path").attrs["d"] == "M0 0L1.5 2"
    assert str(polyline([], "x")) == ""
    corners = tree(hexagon(100, 50, 10, "x")).one("polygon").attrs["points"].split()
    assert corners[0] == "100,40"
    assert len(corners) == 6
    tags = [
        tree(mark(k, 0, 0, 4, "x")).all("circle", "rect", "polygon", "path")[0].tag
        for k in ("circle", "square", "diamond", "cross")
    ]
    assert tags == ["circle", "rect", "polygon", "path"]


def test_words_are_broken_and_cut():
    assert wrap("one two three", 1000) == ["one two three"]
    lines = wrap("a covariate with a name that has no end whatever one does", 100, 13, 2)
    assert len(lines) == 2
    assert lines[1].endswith("…")
    assert wrap("x" * 200, 100, 13)[0].endswith("…")
    assert fit("one two three four five", 78, 13) == "one two t…"
    assert fit("one two", 78, 13) == "one two"


def test_curves_are_thinned_within_a_thousandth_of_the_axis():
    rng = np.random.default_rng(1)
    y = np.cumsum(rng.exponential(1, 50_000))
    y /= y[-1]
    kept = thin([y.tolist()], 1.0)
    assert len(kept) <= 1001
    assert (kept[0], kept[-1]) == (0, y.size - 1)
    at = np.searchsorted(kept, np.arange(y.size), side="right") - 1
    assert np.abs(y - y[np.array(kept)[at]]).max() < 0.0011
    assert len(thin([rng.uniform(size=5000).tolist()], 1.0)) <= 1000
    assert thin([[0.0] * 9], 0.0) == [0, 8]


def test_hexagons_hold_every_point_once_and_the_nearest():
    rng = np.random.default_rng(2)
    points = [{"before": a, "after": b} for a, b in rng.uniform(0, 0.5, (4000, 2))]
    found = hexagons(points, (0.5, 0.5))
    assert sum(n for *_, n in found) == 4000
    middles = np.array([(a, b) for a, b, _ in found])
    counts = np.zeros(len(found), dtype=int)
    for p in points:
        counts[np.argmin(((middles - [p["before"], p["after"]]) ** 2).sum(axis=1))] += 1
    assert counts.tolist() == [n for *_, n in found]


def test_boxes_of_the_forest_plot_are_as_large_as_the_information():
    """Four times the information is twice the side."""
    rows = [
        ForestRow("one", 1.0, 0.5, 2.0, 0.2, "main"),
        ForestRow("two", 0.5, 0.1, 20.0, 0.4),
        ForestRow("none", None, None, None, None, instead="withheld"),
    ]
    drawn = tree(forest(rows, Translations("en")).content)
    sides = [float(e.attrs["width"]) for e in drawn.all("rect")]
    assert sides == [16, 8]
    texts = [e.text for e in drawn.all("text")]
    assert "1.00 (0.500–2.00)" in texts
    assert "withheld" in texts


def test_a_curve_has_at_most_a_thousand_points(report):
    from report.made import tables
    from report.made_estimates import RUN

    found = tables()
    found["curves"] = [
        {**RUN, "adjusted": True, "kind": "survival", "arm": arm, "cause": 1, "time": float(k)}
        | {"value": 1 - rate * k / 5000, "standard_error": 0.01, "lower": 0.9, "upper": 1.0}
        for arm, rate in (("target", 0.1), ("comparator", 0.3))
        for k in range(5000)
    ]
    made = report(found)
    for curve in made.part["curves"]["curves"]:
        assert 100 < len(curve["time"]) <= 1001
    paths = [e.attrs["d"] for e in made.page.all("path") if e.attrs.get("class") == "t"]
    assert max(len(re.findall("H", d)) for d in paths) <= 1001
    last = made.part["curves"]["curves"][0]
    assert last["risk"][-1] == pytest.approx(0.1 * 4999 / 5000)
    assert (last["lower"][-1], last["upper"][-1]) == pytest.approx((0.0, 0.1))


def test_thousands_of_covariates(report):
    from report.made import tables

    found = tables(4000)
    for k, row in enumerate(found["balance"]):
        row |= {"before_smd": 0.3 * math.sin(k) ** 8, "after_smd": 0.06 * math.sin(7 * k) ** 2}
    made = report(found)
    part = made.part["balance"]
    assert len(part["points"]) <= 3000
    assert len(part["points"]) + sum(r["count"] for r in part["rest"]) == 4000
    assert made.path.stat().st_size < 900_000
    assert "Hexagons represent the other" in made.text


def test_days_at_risk_are_steps_of_equal_area(report):
    """A bar of twice the width is as high as the mean: 20 of 100 in two bins are 10 in each."""
    from report.made import tables
    from report.made_estimates import RUN

    found = tables() | {"numbers_at_risk": []}  # these are of other people
    found["follow_up_histogram"] = [
        {**RUN, "arm": arm, "start": float(a), "end": float(b), "people": n, "suppressed": ""}
        for arm in ("target", "comparator")
        for a, b, n in ((0, 10, 60), (10, 20, 20), (20, 40, 20))
    ]
    made = report(found)
    rows = made.part["follow_up"]["tables"]["histogram"]
    assert [r["share"] for r in rows[:3]] == [0.6, 0.2, 0.2]
    figure = made.page.by_id("figure-follow-up-title")
    (svg,) = [e for e in made.page.all("svg") if figure in list(e)]
    for letter, sign in (("t", -1), ("c", 1)):
        path = next(e.attrs["d"] for e in svg.all("path") if e.attrs["class"] == letter)
        tops = [sign * (float(v) - 190) for v in re.findall(r"V([\d.]+)", path)]
        assert tops[1] == pytest.approx(tops[0] / 3, abs=0.2)
        assert tops[2] == pytest.approx(tops[0] / 6, abs=0.2)
        assert tops[3] == 0


def test_the_median_of_the_potential_follow_up_is_a_sentence(report):
    from report.made import tables

    found = tables()
    assert "reverse Kaplan-Meier" not in report(found).page.text
    for row in found["follow_up"]:
        row["potential_days"] = 700.0 if row["arm"] == "target" else 650.0
        row["potential_people"] = 100
    text = report(found).page.text
    assert re.search(r"reverse Kaplan-Meier estimate.*: 700 days .* and 650 days", text)
    columns = report(found).part["follow_up"]["tables"]["quantiles"]
    assert [row["potential"] for row in columns] == [700, 650]


def test_bins_of_few_people_are_joined_on_the_page(report):
    from report.made import tables

    found = tables()
    own = [r for r in found["follow_up_histogram"] if r["arm"] == "target"]
    rows = [
        r for r in report(found).part["follow_up"]["tables"]["histogram"] if r["arm"] == "target"
    ]
    assert sum(r["people"] for r in rows) == sum(r["people"] for r in own)
    assert min(r["people"] for r in rows if r["people"]) >= 5
    assert len(rows) < len(own)


def test_words_of_a_wide_axis_of_ratios_do_not_touch():
    """At most 6 words, which have 298 px in a forest plot; a digit is 7 px wide at 12.5 px."""
    for low in range(-7, 1):
        for high in range(8):
            ticks = ratio_ticks([2.0**low, 2.0**high])
            assert 1 in ticks
            assert ticks[0] <= max(2.0**low, 1 / 64)
            assert ticks[-1] >= min(2.0**high, 64)
            rows = [ForestRow("one", 1.0, 2.0**low, 2.0**high, 0.2)]
            drawn = tree(forest(rows, Translations("en")).content)
            labels = [e for e in drawn.all("text") if e.attrs["class"] == "tick"]
            assert len(labels) == len(ticks) <= 6
            ends = [(float(e.attrs["x"]), 3.5 * len(e.text)) for e in labels]
            for (a, half), (b, other) in zip(ends, ends[1:], strict=False):
                assert a + half < b - other, [e.text for e in labels]


def weeks_of(events):
    """Outcomes of the target in weeks from 0 on; the comparator has 9 in each."""
    from report.made_estimates import RUN

    return [
        {**RUN, "arm": arm, "week": week, "events": n if arm == "target" else 9}
        | {"people": 400, "suppressed": ""}
        for arm in ("target", "comparator")
        for week, n in enumerate(events)
    ]


@pytest.mark.parametrize(
    ("events", "is_drawn"),
    [
        ([0, 7, 3, 7, 7, 0, 0], True),  # 1 of 4 weeks with outcomes
        ([0, 7, 3, 7, 4, 0, 0], False),  # 2 of 4
        ([0, 7, 7, 7, 0, 4, 4], False),  # 2 of 5, the last ones
        ([1, 1, 1], False),
        ([0, 0, 0], True),
    ],
)
def test_weeks_are_not_drawn_where_many_are_hidden(report, events, is_drawn):
    made = report(tables() | {"event_weeks": weeks_of(events)})
    ids = {e.attrs.get("id") for e in made.page}
    assert ("figure-weeks-title" in ids) == is_drawn
    assert ("more than a quarter of the weeks" in made.text) != is_drawn


def test_weeks_are_drawn_for_whoever_may_see_all(report):
    made = report(
        tables() | {"event_weeks": weeks_of([1, 1, 1])}, study(min_cell_count=0), min_cell_count=0
    )
    assert made.page.by_id("figure-weeks-title")
