"""Where a study has failed, the report says why, shows what is left, and no number too many."""

import copy
import json
import math

import pytest

import riskset as rs
from report.conftest import read
from report.made import study, tables, two_outcomes, write_made
from report.made_estimates import arms, calibration, diagnostics

BELIEF = {
    "overlap", "balance", "generalisability", "characteristics", "controls", "unmeasured",
    "follow-up",
}  # fmt: skip
ALWAYS = {"index", "checklist", "reproduction"}
EVERY = {
    "question", "target-trial", "result", "curves", "belief", "people", "models", "methods",
} | BELIEF | ALWAYS  # fmt: skip


def with_status(status, step=None, reason=None, **changes):
    """Tables of a study whose runs have come to nothing."""
    found = tables()
    for row in found["runs"]:
        row |= {"status": status, "step": step, "reason": reason} | changes
    found["estimates"] = []
    return found


def without_numbers(found, status, events=(0, 0)):
    """No estimate, but people and follow-up."""
    for row in found["estimates"]:
        keys = [k for k in row if "hr" in k or k.endswith(("se", "_p")) or k in ("p", "llr")]
        row |= dict.fromkeys(keys) | arms(events) | {"status": status, "mdrr": math.inf}
    for row in found["arms"]:
        row |= arms(events)
    return found


def test_all_sections_where_nothing_failed(whole):
    assert set(whole.sections) == EVERY
    assert "estimate is withheld" not in whole.text
    assert "the result is withheld" not in whole.text


@pytest.mark.parametrize("status", ["empty", "one_arm_empty"])
def test_nobody_left(report, status):
    """The question and who was studied, nothing else; and which step emptied it."""
    found = with_status(status, "adjustment")
    last = found["attrition"][-1]
    last |= {"target_persons": 0, "target_exposures": 0, "removed_target": 268}
    made = report(found)
    assert set(made.sections) == {"question", "people"} | ALWAYS
    words = "the study population is empty" if status == "empty" else "one of the groups is empty"
    assert words in made.page.all("p")[4].text + made.text
    assert "matched within the caliper" in made.text
    assert "After adjustment" not in made.text


@pytest.mark.parametrize("status", ["high_correlation", "no_covariates", "not_converged"])
def test_no_propensity_score(report, status):
    """The question, who was studied, the covariates that are to blame, and advice."""
    made = report(with_status(status, "propensity score", "covariates decide who was treated."))
    assert set(made.sections) == {"question", "covariates", "people"} | ALWAYS
    assert "hydrochlorothiazide, days -30 to 0" in made.text
    assert "Exclude covariates that record the treatment itself" in made.text


def test_no_matches(report):
    made = report(with_status("no_matches", "adjustment"))
    assert set(made.sections) == {"question", "belief", "overlap", "people"} | ALWAYS
    assert "no comparator was within the caliper" in made.text
    assert made.page.by_id("figure-overlap-title")


def test_no_events(report):
    made = report(without_numbers(tables(), "no_events"))
    assert set(made.sections) == EVERY
    assert "figure-forest-title" not in {e.attrs.get("id") for e in made.page}
    assert "No estimate is available: the outcome did not occur." in made.text
    assert "Without outcomes, the study cannot detect a hazard ratio of any size" in made.text
    three = made.part["result"]["three"]
    assert [row["risk_bound"] for row in three] == [3 / 241, 3 / 439]
    assert "below 1.2 %" in made.text
    assert "below 0.68 %" in made.text


def test_events_in_one_arm(report):
    found = without_numbers(tables(), "events_in_one_arm", (0, 47))
    for row in found["estimates"]:
        row["mdrr"] = 2.35
    made = report(found)
    assert set(made.sections) == EVERY
    assert "the outcome occurred in one group only" in made.text
    assert [row["arm"] for row in made.part["result"]["three"]] == ["target"]
    assert "The outcome did not occur among the 241 people of this group: thiazide" in made.text
    assert "80 % to detect a hazard ratio of 2.35 or more" in made.text


def failed():
    found = tables()
    found["diagnostics"] = diagnostics(balance="fail")
    found["runs"][0]["unblind"] = False
    return found


def test_failed_diagnostics_withhold_the_result(report):
    made = report(failed())
    assert set(made.sections) == EVERY - {"result", "curves", "unmeasured"}
    assert "At least one diagnostic failed, so the result is withheld" in made.text
    row = next(r for r in failed()["estimates"] if r["role"] == "main")
    numbers = made.path.with_suffix(".json").read_text("utf-8")
    for key in ("hr", "hr_lower", "hr_upper", "calibrated_hr", "calibrated_hr_upper"):
        assert str(row[key]) not in numbers
    assert "0.595" not in made.text
    assert "0.305–1.16" not in made.text
    assert "✕ failed" in made.text
    assert "compatible with" not in made.text
    assert made.part["controls"]["estimate"] is None
    assert made.part["models"]["profile"] == []


def test_a_study_that_withholds_nothing_shows_what_failed_and_its_own_small_counts(report):
    made = report(failed(), about=study(blind=False, min_cell_count=10))
    assert "After adjustment, the hazard ratio was 0.595" in made.text
    assert "✕ failed" in made.text
    numbers = json.loads(made.path.with_suffix(".json").read_text("utf-8"))
    assert numbers["min_cell_count"] == 10
    assert "result" not in report(failed(), about=study(blind=False), blind=True).sections


def test_who_asks_for_it_sees_what_failed(report):
    made = report(failed(), blind=False)
    assert set(made.sections) == EVERY
    assert "After adjustment, the hazard ratio was 0.595" in made.text
    assert "✕ failed" in made.text


def test_results_made_blind_have_nothing_to_show(report):
    found = failed()
    found["runs"][0]["blinded"] = True
    for row in found["estimates"][:-1]:
        row |= {k: None for k in row if "hr" in k or k in ("se", "p")} | {"blinded": True}
    for blind in (True, False):
        made = report(copy.deepcopy(found), blind=blind)
        assert "result" not in made.sections
        assert "the result is withheld" in made.text


def test_another_analysis_that_failed_is_withheld_by_itself(report):
    found = tables()
    found["runs"][1]["unblind"] = False
    made = report(found)
    rows = made.part["result"]["tables"]["estimates"]
    other = next(r for r in rows if r["analysis"] == "overlap weights")
    assert (other["hr"], other["calibrated_hr"], other["blinded"]) == (None, None, True)
    assert "withheld" in made.page.by_id("figure-forest-title").text + made.text
    assert rows[1]["hr"] == pytest.approx(math.exp(-0.52))


def test_controls_that_cannot_be_used(report):
    """The report does not say that a study whose controls failed has none."""
    found = tables()
    found["calibration"] = [calibration(status="too_few_controls", n_negative=0, ease=None)]
    for row in found["controls"]:
        row |= {"hr": None, "hr_lower": None, "hr_upper": None, "se": None, "used": False}
    found["runs"].append(found["runs"][0] | {"outcome": "x", "outcome_kind": "negative control"})
    for row in found["estimates"]:
        row |= {k: None for k in row if k.startswith("calibrated_")}
    made = report(found)
    text = made.text
    assert "Hazard ratio and standard error of each negative control" not in text
    assert "none of the negative controls can be used in this analysis" in text
    assert "the study has no negative controls" not in text


@pytest.mark.parametrize("n", [0, 4])
def test_too_few_controls(report, n):
    found = tables()
    found["calibration"] = [calibration(status="too_few_controls", n_negative=n, ease=None)]
    found["controls"] = found["controls"][:n]
    for row in found["estimates"]:
        row |= {k: None for k in row if k.startswith("calibrated_")}
    made = report(found)
    header = made.page.one("main").all("p")
    lead = next(p.text for p in header if p.attrs.get("class") == "lead")
    if n:
        assert "the analysis has only 4 usable negative controls" in lead
        assert "negative controls, but the analysis has 4 usable negative controls" in made.text
    else:
        assert "the study has no negative controls" in lead
        assert "The study has no control outcomes" in made.text
    assert "After calibration" not in lead
    heads = [e.text for e in made.page.all("th")]
    assert "Calibrated (CI)" not in heads


def test_absent_tables_are_told(report):
    found = tables()
    for name in ("curves", "event_weeks", "calendar", "table1", "balance", "preference", "ps"):
        found[name] = []
    words = report(found).text
    for sentence in (
        "Risk curves are not available",
        "Outcomes by week around the start of treatment are not available",
        "Calendar years of treatment start are not available",
        "A table of baseline characteristics is not available",
        "The balance of single covariates is not available",
        "The analysis uses no propensity score",
    ):
        assert sentence in words


def test_several_outcomes_have_an_index(report):
    about, found = two_outcomes()
    made = report(found, about)
    ids = [e.attrs["id"] for e in made.page if "id" in e.attrs]
    assert len(ids) == len(set(ids))
    assert made.page.one("h1").text == "Thiazides and ACE inhibitors"
    assert [e.text for e in made.page.all("h2")][1:] == [
        "All results",
        "Thiazide versus ACE inhibitor: heart failure",
        "Thiazide versus ACE inhibitor: myocardial infarction",
        "Reporting checklist",
        "Reproduction, references and glossary",
    ]
    links = [e.attrs["href"] for e in made.page.all("nav")[0].all("a")]
    assert links == ["#index", "#p1-part", "#p2-part", "#checklist", "#reproduction"]
    (index,) = [
        t for t in made.page.all("table") if t.attrs["data-table"].endswith("index/tables/runs")
    ]
    assert len(index.one("tbody").all("tr")) == 4
    levels = [int(e.tag[1]) for e in made.page if e.tag in ("h1", "h2", "h3", "h4", "h5", "h6")]
    assert all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False))


def test_what_is_too_large_becomes_a_file_for_each_outcome(report, monkeypatch):
    about, found = two_outcomes()
    monkeypatch.setattr("riskset.report.writing.LIMIT", 350_000)
    made = report(found, about)
    links = [e.attrs["href"] for e in made.page.all("nav")[0].all("a")]
    assert links == ["#index", "report-1.html", "report-2.html", "#checklist", "#reproduction"]
    assert "report-1.html#people" in {e.attrs["href"] for e in made.page.all("a")}
    assert made.path.stat().st_size < 100_000
    for k, outcome in ((1, "heart failure"), (2, "myocardial infarction")):
        own = read(made.path.with_name(f"report-{k}.html"))
        assert own.page.one("h1").text.endswith(outcome)
        assert set(own.sections) == EVERY
        assert len(own.content["parts"]) == 1


def test_one_outcome_that_is_too_large_names_the_biggest_blocks(report, monkeypatch, tmp_path):
    monkeypatch.setattr("riskset.report.writing.LIMIT", 50_000)
    with pytest.raises(rs.InputError, match=r"'report.html' would be 0\.\d MB.*curves \(0\.\d MB"):
        report()
    assert not (tmp_path / "report.html").exists()


def test_nothing_but_controls(tmp_path):
    found = tables()
    for row in found["runs"]:
        row["outcome_kind"] = "negative control"
    folder = write_made(tmp_path / "results", found)
    with pytest.raises(rs.InputError, match="no outcome of interest"):
        rs.report.write(folder, tmp_path / "report.html")
