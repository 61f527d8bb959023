"""A study of an OMOP CDM: people, follow-up and attrition as the queries of the golden file."""

import pytest

import riskset as rs
from omop.toy import ANALYSES
from reference import GOLDEN, read_json

EXPECTED = read_json(GOLDEN / "cohort" / "omop" / "expected.json")

TEXT = f"""
title: Toy
data: {{cdm: toy-cdm}}
exposures:
  thiazides: {{concepts: [974166, 1395058]}}
  ACE inhibitors: {{concepts: [1308216, 1341927]}}
comparisons:
  - {{target: thiazides, comparator: ACE inhibitors}}
outcomes:
  heart failure: {{concepts: [316139]}}
  infarction: {{concepts: [4329847], kind: negative control}}
competing_events:
  infarction: {{concepts: [4329847], label: Infarction}}
  death: {{death: true, label: Death}}
defaults:
  eligibility: {{restrict_to_common_period: false}}
  covariates: {{analyses: {ANALYSES}, age_method: completed_years}}
  propensity: {{penalty: l1, cross_validate: false, variance: 0.01}}
analyses:
  all: {{}}
  overlap: {{weight: {{}}}}
  day 0: {{time_at_risk: {{risk_start: 0}}, eligibility: {{washout_days: 0}}}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cdm")
    rs.simulate.toy_cdm(place / "toy-cdm", EXPECTED["n_persons"], file_format="parquet")
    return place


@pytest.fixture(scope="module")
def found(folder):
    rs.study.run(rs.study.Study.parse(TEXT, folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")


def test_follow_up_and_events_as_expected(found):
    names = {"outcome": "heart failure", "analysis": "all"}
    (row,) = found.rows("estimates", role="main", **names)
    for arm, code in (("target", "1"), ("comparator", "0")):
        by_status = EXPECTED["status_by_arm"][code]
        assert row[f"{arm}_persons"] == sum(by_status.values())
        assert row[f"{arm}_outcomes"] == by_status["1"]
        assert row[f"{arm}_competing"] == by_status["2"]
        assert row[f"{arm}_days"] == EXPECTED["survival_days_by_arm"][code]


def test_attrition_as_expected(found):
    (run,) = found.rows("runs", outcome="heart failure", analysis="all")
    steps = found.rows("attrition", adjustment=run["adjustment"])
    wanted = ("target_persons", "comparator_persons", "target_exposures", "comparator_exposures")
    for step, expected in zip(steps, EXPECTED["attrition"], strict=True):
        assert {name: step[name] for name in wanted} == {name: expected[name] for name in wanted}


def test_competing_events_make_incidences_and_words(found):
    assert {row["kind"] for row in found.rows("curves", analysis="all")} == {"incidence"}
    assert found.study["competing"] == "Infarction or Death"
    words = found.study["analyses"]["all"]["words"]
    assert words["time_at_risk"].startswith("on treatment: from 1 day after the start")
    assert words["washout"] == "at least 365 days of observation before the start of treatment"
    assert found.study["analyses"]["day 0"]["words"]["washout"] is None
    assert {row["name"] for row in found.rows("codes", list="thiazides")} == {
        "hydrochlorothiazide",
        "chlorthalidone",
    }


def test_analyses_that_enter_alike_share_cohort_and_score(found):
    steps = found.run["steps"]
    assert sum(step["step"] == "cohort" for step in steps) == 2
    assert sum(step["step"] == "propensity score" for step in steps) == 2
    score = {row["analysis"]: row["ps"] for row in found.rows("runs", outcome="heart failure")}
    assert score["all"] == score["overlap"] != score["day 0"]
    domains = {row["domain"] for row in found.rows("balance", adjustment=1)}
    assert {"condition", "drug", "sex"} <= domains


def test_weeks_about_the_index_date(found):
    names = {"outcome": "heart failure", "analysis": "all"}
    rows = found.rows("event_weeks", **names)
    assert [r["week"] for r in rows if r["arm"] == "target"] == list(range(-52, 52))
    first = {r["arm"]: r["people"] for r in rows if r["week"] == -52}
    steps = found.rows("attrition", adjustment=1)
    entered = next(s for s in steps if s["step"] == "365 days of prior observation")
    assert first == {arm: entered[f"{arm}_persons"] for arm in ("target", "comparator")}
    # Those who had the outcome within the year before are those who were left out, and more.
    before = sum(r["events"] for r in rows if r["week"] < 0)
    (prior,) = (s for s in steps if s["step"] == "no prior outcome")
    assert 0 < before <= prior["removed_target"] + prior["removed_comparator"]


def test_it_goes_on_with_what_it_has(folder, found):
    again = rs.study.run(rs.study.Study.parse(TEXT, folder), folder / "out")
    assert all(step["reused"] for step in again.run["steps"])


def test_a_study_that_nobody_enters(folder):
    text = TEXT.replace("washout_days: 0", "washout_days: 0, study_start: 2031-01-01")
    rs.study.run(rs.study.Study.parse(text, folder), folder / "empty")
    found = rs.study.StudyResults.open(folder / "empty" / "private")
    (run,) = found.rows("runs", outcome="heart failure", analysis="day 0")
    assert run["status"] == "empty"
    assert run["reason"] == "no people are left after the step 'study window'."


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "concepts: [316139]",
            "death: true, cohort: 4",
            "heart failure: it needs one of",
        ),
        (
            "concepts: [974166, 1395058]",
            "cohort: 3",
            "one arm is defined by concepts",
        ),
        (
            "concepts: [974166, 1395058]",
            "value: 3",
            "for a table of people, but the data are",
        ),
        ("concepts: [974166, 1395058]", "concepts: [0]", "thiazides.concepts: `concepts` must be"),
        (
            "concepts: [4329847], label: Infarction",
            "concepts: [7], exclude: [-7]",
            "competing_events.infarction.exclude: `exclude` must be concept ids",
        ),
        (
            "washout_days: 0",
            "min_age: 65, max_age: 64",
            "eligibility.max_age: `max_age` .64. comes before `min_age` .65.",
        ),
        (
            "washout_days: 0",
            "study_start: 2015-01-01, study_end: 2014-12-31",
            "study_end: `study_end` .2014-12-31. comes before `study_start` .2015-01-01.",
        ),
        (
            "risk_start: 0",
            "risk_start: 30, risk_end: 29, end_anchor: cohort start",
            "risk_end: no person can be at risk: the last day is 29 after the cohort start, and "
            "the",
        ),
        (
            "risk_start: 0",
            "max_days: 30, min_days_at_risk: 31",
            "min_days_at_risk: no person can be at risk: of at most 30 days there must be at "
            "least 31",
        ),
        (
            "all: {}",
            "all: {covariates: {analyses: [5, 5]}}",
            "covariates.analyses: `analyses`",
        ),
        (
            "all: {}",
            "all: {covariates: {analyses: [default, Charlson]}}",
            r"covariates.analyses: .*'Charlson' is unknown.\nHint: did you mean CharlsonIndex",
        ),
        (
            "all: {}",
            "all: {covariates: {exclude_analyses: [CharlsonIndex, 27]}}",
            "covariates.exclude_analyses: .* but 27 is unknown",
        ),
        ("all: {}", "all: {covariates: {end_day: 1}}", "covariates.end_day: `end_day` must not be"),
        ("cdm: toy-cdm", "cdm: toy", "data.cdm: there is no file or folder"),
    ],
)
def test_faults_have_their_line(folder, old, new, message):
    text = TEXT.replace(old, new)
    line = 1 + next(k for k, row in enumerate(text.splitlines()) if new in row)
    with pytest.raises(rs.InputError, match=message) as fault:
        rs.study.check_data(rs.study.Study.parse(text, folder))
    if "one arm" not in message:
        assert f"line {line}" in str(fault.value)


def test_the_shared_balance_is_of_those_with_a_time_at_risk(folder):
    """Whatever they had before: the people of the same study without that rule."""
    window = "{time_at_risk: {min_days_at_risk: 60%s}, propensity: none}"
    text = TEXT[: TEXT.rindex("analyses:")] + (
        f"analyses:\n  with: {window % ''}\n  without: {window % ', remove_prior_outcome: false'}\n"
    )
    rs.study.run(rs.study.Study.parse(text, folder), folder / "shared")
    found = rs.study.StudyResults.open(folder / "shared" / "private")
    runs = {run["analysis"]: run for run in found.rows("runs", outcome="heart failure")}

    def sizes(number):
        (row,) = found.rows("adjustments", adjustment=number)
        return row["target_rows"], row["comparator_rows"]

    everybody = sizes(runs["without"]["adjustment"])
    assert sizes(runs["with"]["shared_adjustment"]) == everybody
    assert sizes(runs["with"]["adjustment"]) < everybody
    steps = found.rows("attrition", adjustment=runs["with"]["adjustment"])
    assert (steps[0]["target_exposures"], steps[0]["comparator_exposures"]) > everybody
