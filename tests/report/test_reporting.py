"""What a reviewer asks for: the target trial, checklists, definitions and provenance."""

import math

import pytest

import riskset as rs
from report.made import study, tables, two_outcomes
from riskset.report.sections.checklist import ITEMS
from riskset.report.sections.target_trial import PARTS
from riskset.report.translations import Translations
from riskset.study.specification.report_sections import TargetTrial


def trial(made):
    rows = made.part["target_trial"]["tables"]["target_trial"]
    assert [row["part"] for row in rows] == list(PARTS)
    return {row["part"]: row for row in rows}


def test_parts_of_the_trial_are_keys_of_the_specification():
    assert list(TargetTrial().__dataclass_fields__) == list(PARTS)


def test_the_trial_is_what_the_specification_says_and_nothing_else(report):
    about = study()
    about["settings"] = about["settings"] | {
        "target_trial": {
            "eligibility": "Adults with <new> hypertension",
            "time_zero": "randomisation",
        }
    }
    made = report(about=about)
    rows = trial(made)
    assert rows["eligibility"]["trial"] == "Adults with <new> hypertension"
    assert "Adults with <new> hypertension" in made.text
    assert {name for name, row in rows.items() if row["trial"] is not None} == {
        "eligibility",
        "time_zero",
    }
    assert made.text.count("not described in the specification") == len(PARTS) - 2


def test_the_emulation_is_what_was_done(whole):
    rows = trial(whole)
    assert rows["strategies"]["emulation"] == "thiazide – Any thiazide diuretic or ACE inhibitor"
    assert rows["assignment"]["emulation"].startswith("Not randomised")
    assert "caliper of 0.2 standard deviations" in rows["assignment"]["emulation"]
    assert "first exposure only; washout of 365 days" in rows["eligibility"]["emulation"]
    assert "original cohorts" not in rows["eligibility"]["emulation"]
    assert rows["follow_up"]["emulation"].startswith("From the day after the first prescription")
    assert rows["outcome"]["emulation"].endswith("Competing events: death")
    assert rows["analysis"]["emulation"].endswith("Sensitivity analyses: overlap weights")
    assert rows["time_zero"]["emulation"] == "Start of the target or the comparator (index date)"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "Start of the time at risk, as recorded in the data"),
        ({"index_date": "started"}, "The date in the column started"),
    ],
)
def test_time_zero_of_a_table_is_known_only_by_its_index_date(report, data, words):
    about = study()
    about["data"] = about["data"] | {"kind": "tables"}
    about["settings"] = about["settings"] | {"data": data}
    assert trial(report(about=about))["time_zero"]["emulation"] == words


def test_an_analysis_without_adjustment_says_so(report):
    about = study()
    for analysis in about["analyses"].values():
        analysis["words"] = analysis["words"] | {
            "adjustment": "none", "propensity_score": None, "estimand": None
        }  # fmt: skip
    found = tables()
    for row in found["runs"]:
        row["estimand"] = None
    rows = trial(report(found, about))
    assert rows["assignment"]["emulation"] == (
        "Not randomised: groups by the treatment in the data. No adjustment for covariates"
    )
    assert rows["estimand"]["emulation"] == "none, because the groups were not adjusted"


def test_a_specification_may_describe_the_trial_by_its_parts():
    text = rs.study.example() + "\ntarget_trial: {eligibility: Adults in intensive care}\n"
    settings = rs.study.Study.parse(text).settings["target_trial"]
    assert settings == dict.fromkeys(PARTS) | {"eligibility": "Adults in intensive care"}
    with pytest.raises(rs.InputError, match="unknown key 'eligible'"):
        rs.study.Study.parse(text.replace("{eligibility:", "{eligible:"))


def checklist(made):
    rows = made.content["checklist"]["tables"]["checklist"]
    return {(row["guideline"], row["item"]): row["sections"] for row in rows}


def test_every_item_of_the_statements_has_words():
    """The published numbers: 22 items of STROBE in 34 parts, 13 of RECORD and 15 of RECORD-PE."""
    parts = {1: "ab", 6: "ab", 12: "abcde", 13: "abc", 14: "abc", 16: "abc"}
    strobe = [f"{k}{part}" for k in range(1, 23) for part in parts.get(k, ("",))]
    assert list(ITEMS["STROBE"]) == strobe
    assert len(strobe) == 34
    record = "1.1 1.2 1.3 6.1 6.2 6.3 7.1 12.1 12.2 12.3 13.1 19.1 22.1"
    assert " ".join(ITEMS["RECORD"]) == record
    drugs = "4.a 4.b 6.1.a 7.1.a 7.1.b 7.1.c 7.1.d 7.1.e 7.1.f 7.1.g 8.a 12.1.a 12.1.b 19.1.a 20.a"
    assert " ".join(ITEMS["RECORD-PE"]) == drugs
    say = Translations("en")
    for guideline, items in ITEMS.items():
        for item in items:
            key = f"checklist_{guideline.lower().replace('-', '_')}.{item.replace('.', '_')}"
            assert key in say, key


def test_items_lead_to_their_sections_or_to_the_authors(whole):
    (table,) = [e for e in whole.page.all("table") if e.attrs["data-table"].endswith("/checklist")]
    rows = [row for row in table.one("tbody").all("tr") if "data-row" in row.attrs]
    assert len(rows) == len(checklist(whole)) > 50
    for row, sections in zip(rows, checklist(whole).values(), strict=True):
        links = [e.attrs["href"][1:] for e in row.all("a")]
        assert len(links) == len(sections)
        assert all(whole.page.by_id(link) for link in links)
        assert ("to be written by the authors" in row.text) == (not sections)
    for part in "abc":
        assert checklist(whole)["STROBE", f"13{part}"] == ["people"]
    assert checklist(whole)["STROBE", "14c"] == ["follow_up"]
    assert checklist(whole)["STROBE", "22"] == []


def test_an_item_is_not_answered_by_what_the_report_lacks(report):
    found = tables()
    for row in found["runs"]:
        row |= {"status": "no_matches", "step": "adjustment"}
    seen = checklist(report(found))
    assert seen["STROBE", "16a"] == []
    assert seen["STROBE", "9"] == ["overlap"]
    about = study(subgroups={})
    about["data"] = about["data"] | {"start": None}
    about["settings"] = about["settings"] | {"analyses": {"matched": {"weight": {}}}}
    seen = checklist(report(about=about))
    assert (seen["STROBE", "5"], seen["STROBE", "6b"], seen["STROBE", "12b"]) == ([], [], [])


def test_items_lead_to_the_first_of_several_outcomes(report):
    about, found = two_outcomes()
    made = report(found, about)
    hrefs = {e.attrs["href"] for e in made.page.all("a")}
    assert "#p1-target-trial" in hrefs
    assert "#definitions" in hrefs


def definitions(made):
    rows = made.content["reproduction"]["tables"]["definitions"]
    return {row["label"]: (row["role"], row["definition"]) for row in rows}


def test_definitions_of_a_table_are_columns_and_values(report):
    about = study()
    about["settings"] = about["settings"] | {
        "data": {"treatment": "drug"},
        "exposures": {"thz": {"label": "thiazide", "value": "HCT"}, "ace": {"value": "ACE"}},
        "outcomes": {
            "hf": {"label": "heart failure", "kind": "outcome", "time": "t", "event": "e"}
            | {"prior": "had"},
            "nc0": {"kind": "negative control", "time": "t0", "event": "e0"},
        },
    }
    made = report(about=about)
    assert definitions(made) == {
        "thiazide": ("target", [["value", "drug", "HCT"]]),
        "ace": ("comparator", [["value", "drug", "ACE"]]),
        "heart failure": ("outcome", [["time", "t"], ["event", "e"], ["prior", "had"]]),
        "nc0": ("negative_control", [["time", "t0"], ["event", "e0"]]),
    }
    assert "drug = HCT" in made.text
    assert "time at risk: t; event: e; left out if they had it before: had" in made.text
    assert "negative control" in made.text


def test_definitions_of_a_cdm_are_concepts_cohorts_and_deaths(report):
    about = study()
    about["settings"] = about["settings"] | {
        "exposures": {"thz": {"concepts": [1, 2], "descendants": False}, "ace": {"cohort": 7}},
        "outcomes": {"hf": {"kind": "outcome", "concepts": [3], "inpatient": True}},
        "competing_events": {"dead": {"label": "Death", "death": True}},
    }
    made = report(about=about)
    assert definitions(made) == {
        "thz": ("target", [["concepts_alone", "2"]]),
        "ace": ("comparator", [["cohort", "7"]]),
        "hf": ("outcome", [["concepts", "1"], ["inpatient"]]),
        "Death": ("competing", [["death"]]),
    }
    assert "hydrochlorothiazide" in made.text  # of the list of concepts


def test_provenance(report):
    about = study()
    about["data"] = about["data"] | {
        "cdm_source": {"cdm_source_name": "Claims of a country", "vocabulary_version": "v5.0 1-JAN"}
    }
    made = report(about=about)
    origin = made.content["reproduction"]["origin"]
    assert origin["vocabulary_version"] == "v5.0 1-JAN"
    assert origin["settings_hash"] == "0f" * 32
    assert origin["versions"] == "riskset 0.1.0, python 3.12.1, numpy 2.1.0"
    for words in ("Claims of a country", "Version of the vocabulary", "ab" * 32):
        assert words in made.text


def test_a_cdm_says_what_it_is():
    made = rs.simulate.toy_tables(100)
    with rs.omop.Cdm(made) as cdm:
        facts = cdm.source_facts()
    assert (facts["cdm_source_name"], facts["vocabulary_version"]) == ("Toy CDM", "toy")
    assert "cdm_etl_reference" not in facts  # it is empty
    del made["cdm_source"]
    with rs.omop.Cdm(made) as cdm:
        assert "cdm_source_name" not in cdm.source_facts()


def test_coverage_by_level(report):
    """By hand, of 4 controls: |z| of 0.5, 1, 1.8 and 3, and calibrated p of 0.8, 0.5, 0.2, 0.02."""
    found = tables()
    found["controls"] = [
        row
        | {"used": True, "hr": math.exp(z * 0.2), "log_hr": z * 0.2, "se": 0.2, "calibrated_p": p}
        for row, z, p in zip(
            found["controls"], (-0.5, 1.0, 1.8, -3.0), (0.8, 0.5, 0.2, 0.02), strict=False
        )
    ]
    options = {"min_cell_count": 0, "about": study(min_cell_count=0)}
    rows = report(found, **options).part["controls"]["tables"]["coverage"]
    at = {row["level"]: (row["before"], row["after"]) for row in rows}
    # The normal intervals of these levels reach to |z| of 0.126, 0.674, 1.645, 1.96 and 2.576.
    assert at[0.1] == (0.0, 0.0)
    assert at[0.5] == (0.25, 0.5)
    assert at[0.9] == (0.5, 0.75)
    assert at[0.95] == (0.75, 0.75)
    assert at[0.99] == (0.75, 1.0)


def test_controls_left_out(report):
    options = {"min_cell_count": 0, "about": study(min_cell_count=0)}
    made = report(tables(), **options)
    words = (
        "the mean of the systematic error is between 0.104 and 0.133, and its standard deviation"
    )
    assert words in made.text
    assert "between 0.131 and 0.160" in made.text
    (row, *_) = made.part["controls"]["tables"]["controls"]
    assert row["calibrated_hr"] == pytest.approx(row["hr"] * math.exp(-0.1))
    assert "Calibrated by all other controls" in made.text


def test_controls_of_few_outcomes_are_not_known_by_those_left_out(report):
    """Estimates of controls are not in the made-up results, so that all of them are hidden."""
    rows = report().part["controls"]["tables"]["controls"]
    assert {row["null_mean_without"] for row in rows} == {None}
    assert {row["calibrated_hr_lower"] for row in rows} == {None}
