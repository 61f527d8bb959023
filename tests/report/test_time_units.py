"""A report in weeks, months or years has the times of the report in days, converted."""

import re

import numpy as np
import pytest

import riskset as rs
from report.conftest import DATE, read
from report.parsed import numbers
from riskset.report.content import collect
from riskset.report.html_page import page_of
from riskset.report.page import Page
from riskset.report.pictures import pictures
from riskset.report.source import ReportSource
from riskset.report.translations import Translations
from study.small import people, run

DAYS = {"days": 1, "weeks": 7, "months": 30.4375, "years": 365.25}
UNITS = ("weeks", "months", "years")
HORIZONS = (365.25, 730.5)
SHOWN = {"min_cell_count": 0, "blind": False}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Reports of the same times in days, by the unit of the report; the results by the same."""
    reports, results = {}, {}
    time = np.random.default_rng(3).integers(1, 1827, 400)
    for unit in DAYS:
        folder = tmp_path_factory.mktemp(unit)
        results[unit] = run(
            folder,
            people(400) | {"days": time},
            report={"time_unit": unit},
            risk_times=[days / DAYS[unit] for days in HORIZONS],
        )
        path = rs.report.write(results[unit], folder / "report.html", date=DATE, **SHOWN)
        reports[unit] = read(path)
    return reports, results


@pytest.mark.parametrize("unit", UNITS)
def test_times_are_converted_and_nothing_else_changes(made, unit):
    reports, _ = made
    compared = 0
    for name, times in (
        ("result/risks", {"time"}),
        ("follow_up/quantiles", {"q0", "q10", "q25", "q50", "q75", "q90", "q100", "potential"}),
        ("models/log_log", {"time"}),
        ("models/over_time", {"start", "end"}),
    ):
        section, _, rest = name.partition("/")
        pairs = [find(r.part[section], rest) for r in (reports["days"], reports[unit])]
        assert len(pairs[0]) == len(pairs[1]) > 0, name
        for days, own in zip(*pairs, strict=True):
            assert days.keys() == own.keys()
            for key, value in days.items():
                if key in times and value is not None:
                    assert own[key] * DAYS[unit] == pytest.approx(value, rel=1e-6, abs=1e-6), key
                    compared += 1
                else:
                    assert own[key] == pytest.approx(value, nan_ok=True), key
    assert compared > 50
    for days, own in zip(
        *(reports[u].part["curves"]["curves"] for u in ("days", unit)), strict=True
    ):
        assert days["risk"] == own["risk"]
        np.testing.assert_allclose(np.array(own["time"]) * DAYS[unit], days["time"], atol=1e-5)
    rates = [reports[u].part["result"]["tables"]["rates"] for u in ("days", unit)]
    assert rates[0] == rates[1]  # for 1,000 person-years


def find(content, name):
    """The table of this name, however deep it is."""
    if isinstance(content, dict):
        if name in content.get("tables", {}):
            return content["tables"][name]
        content = list(content.values())
    if isinstance(content, list):
        return next((rows for part in content if (rows := find(part, name))), None)
    return None


@pytest.mark.parametrize("unit", UNITS)
def test_tables_of_results_are_in_days(made, unit):
    _, results = made
    for name in ("absolute_risks", "curves", "follow_up", "effect_over_time"):
        assert results[unit].rows(name) == results["days"].rows(name)


STEPS = {"weeks": 50, "months": 12, "years": 1}


@pytest.mark.parametrize("unit", UNITS)
def test_axes_have_round_ticks_with_people_at_risk(made, unit):
    """Follow-up ends before 1,826 days, which are 260.9 weeks, 60 months or 5 years."""
    reports, _ = made
    part, page = reports[unit].part, reports[unit].page
    at_risk = part["curves"]["tables"]["at_risk"]
    expected = np.arange(0, part["curves"]["last"], STEPS[unit])
    assert [row["time"] for row in at_risk] == expected.tolist()
    assert len(expected) >= 4
    assert all(row["target_people"] > 0 for row in at_risk)
    drawn = next(e for e in page.all("figure") if "figure-curves" in str(e.attrs)).one("svg")
    texts = [e.text for e in drawn.all("text")]
    assert f"{unit.capitalize()} since the start of follow-up" in texts
    assert all(f"{tick:g}" in texts for tick in expected)
    bins = part["follow_up"]["tables"]["histogram"]
    width = bins[0]["end"]
    assert width == {"weeks": 10, "months": 2, "years": 0.2}[unit]
    for row in bins:
        assert row["end"] == pytest.approx(round(row["end"] / width) * width, abs=1e-8)


@pytest.mark.parametrize(
    ("unit", "horizons", "of_year"),
    [
        ("weeks", ["52.2 weeks", "104 weeks"], "7"),
        ("months", ["12 months", "24 months"], "30.4375"),
        ("years", ["1 year", "2 years"], "365.25"),
    ],
)
def test_words_have_the_unit(made, unit, horizons, of_year):
    reports, results = made
    text = " ".join(reports[unit].text.split())
    for words in horizons:
        assert words in text
    assert f"Times are in {unit} of {of_year} days." in text
    assert f"Follow-up time in {unit}" in text
    assert f"{unit.capitalize()} at risk of the people in the analysis" in text
    assert f"{unit.capitalize()} (logarithmic)" in text
    assert f"After {unit[:-1]}" in text
    (found,) = re.findall(r"Median follow-up: (\S+) (\w+) \(1?.*?\) and (\S+) (\w+) \(", text)
    medians = [r["days"] for r in results[unit].rows("follow_up") if r["share"] == 0.5]
    assert (found[1], found[3]) == (unit, unit)
    for shown, days in zip(found[::2], medians, strict=True):
        ((value, slack),) = numbers(shown)
        assert abs(value - days / DAYS[unit]) <= slack
    assert re.search(rf"After \S+ {unit[:-1]}s?, the risk is", text)
    # The column that the data have, and the length of the unit.
    without = re.sub(r"days at risk as recorded.*?last day|of [\d.]+ days", "", text, flags=re.I)
    assert not re.search(r"\d\s+days", without)


def test_days_are_the_default(made, tmp_path):
    assert "Times are in" not in made[0]["days"].text
    assert made[0]["days"].part["about"]["time_unit"] == "days"
    time = np.random.default_rng(3).integers(1, 200, 400)
    own = run(tmp_path, people(400) | {"days": time})
    source = ReportSource(own, Translations("en"), **SHOWN)
    assert source.time_unit == "days"
    assert {row["time"] for row in own.rows("absolute_risks")} == {365.0}


def test_the_unit_of_the_data_is_the_default(tmp_path):
    data = {"people": "people.parquet", "treatment": "drug", "id": "id", "time_unit": "months"}
    time = np.random.default_rng(3).integers(1, 61, 400)
    own = run(tmp_path, people(400) | {"days": time}, data=data)
    source = ReportSource(own, Translations("en"), **SHOWN)
    assert source.time_unit == "months"
    (part,) = collect(source)["parts"]
    assert {row["time"] for row in part["result"]["tables"]["risks"]} == {12.0}
    assert {row["time"] for row in own.rows("absolute_risks")} == {365.25}


def test_a_risk_after_the_end_is_named_in_the_unit(tmp_path):
    asked = {"report": {"time_unit": "years"}, "risk_times": [10]}
    notes = run(tmp_path, **asked).rows("warnings", code="follow_up_ends")
    assert notes
    assert all("so its risk at 10 years is not known" in row["message"] for row in notes)


@pytest.mark.parametrize("unit", UNITS)
def test_figures_for_articles_have_the_unit(made, unit):
    source = ReportSource(made[1][unit], Translations("en"), **SHOWN)
    (part,) = collect(source)["parts"]
    page = page_of(Page(source.say), 0, part["about"], False)
    axes = dict(pictures(page, part, 0.95))["curves"]
    assert axes.get_xlabel() == f"{unit.capitalize()} since the start of follow-up"
    ticks = [row["time"] for row in part["curves"]["tables"]["at_risk"]]
    np.testing.assert_allclose(axes.get_xticks(), ticks)
