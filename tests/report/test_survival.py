"""Curves of survival instead of risk, where nothing competes."""

import pytest

import riskset as rs
from report.made import study, tables, write_made
from report.made_estimates import RUN
from report.test_numbers import compare_all


def without_competing(rates=(0.1, 0.3)):
    """Survival that falls by a tenth and by three tenths in 500 days."""
    found = tables()
    found["curves"] = [
        {**RUN, "adjusted": adjusted, "kind": "survival", "arm": arm, "cause": 1}
        | {"time": 5.0 * k, "value": 1 - rate * k / 100, "standard_error": 0.01}
        | {"lower": 1 - 1.2 * rate * k / 100, "upper": 1 - 0.8 * rate * k / 100}
        for adjusted in (True, False)
        for arm, rate in zip(("target", "comparator"), rates, strict=True)
        for k in range(1, 101)
    ]
    return found


def test_survival(report):
    made = report(without_competing(), curves="survival")
    part = made.part["curves"]
    assert (part["kind"], part["shown"]) == ("survival", "survival")
    target = part["curves"][0]
    assert (target["time"][0], target["survival"][0], target["lower"][0]) == (0, 1, 1)
    assert target["survival"][-1] == pytest.approx(0.9)
    assert (target["lower"][-1], target["upper"][-1]) == pytest.approx((0.88, 0.92))
    desc = made.page.by_id("figure-curves-desc").text.replace("\u202f", " ")
    assert desc == (
        "After 500 days, 90.0 % of the target group (thiazide) and 70.0 % of the comparator "
        "group (ACE inhibitor) have not had the outcome."
    )
    assert "The axis does not start at 0." in made.text
    assert compare_all(made)[0] > 1000


def test_risk_is_what_survival_lacks(report):
    made = report(without_competing())
    part = made.part["curves"]
    assert part["shown"] == "risk"
    assert part["curves"][0]["risk"][-1] == pytest.approx(0.1)
    assert (part["curves"][0]["lower"][-1], part["curves"][0]["upper"][-1]) == pytest.approx(
        (0.08, 0.12)
    )
    assert "axis does not start" not in made.text


def test_an_axis_from_0_where_half_have_the_outcome(report):
    made = report(without_competing((0.4, 0.6)), curves="survival")
    assert "axis does not start" not in made.text


def test_survival_is_not_shown_beside_competing_events(report):
    made = report(curves="survival")
    assert made.part["curves"]["shown"] == "risk"
    assert "Survival curves were requested, but competing events occur" in made.text
    assert "Survival curves were requested" not in report().text


def test_the_specification_may_ask_for_it(report):
    about = study()
    about["settings"] = about["settings"] | {"report": {"curves": "survival"}}
    assert report(without_competing(), about).part["curves"]["shown"] == "survival"
    assert report(without_competing(), about, curves="risk").part["curves"]["shown"] == "risk"
    assert rs.study.Study.parse(rs.study.example()).settings["report"] == {
        "curves": "risk",
        "covariates": [],
        "time_unit": None,
        "overall": False,
        "year_lines": 10,
    }


def test_another_word_is_refused(tmp_path):
    folder = write_made(tmp_path / "results")
    words = "`curves` must be 'risk' or 'survival', but it is 'hazard'"
    with pytest.raises(rs.InputError, match=words):
        rs.report.write(folder, tmp_path / "report.html", curves="hazard")
