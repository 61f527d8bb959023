"""Per-protocol analyses of a CDM: deviations and covariates over time, by hand from its tables."""

import datetime
from collections import defaultdict

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from omop.toy import ANALYSES
from riskset.omop.treatment_changes import as_of_days, days_to_change
from riskset.study.sources.records_over_time import RecordsOverTime
from riskset.study.specification.sections import CovariateSection

DRUGS = {1: (974166, 1395058), 0: (1308216, 1341927)}
GAP = 30
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
defaults:
  eligibility: {{restrict_to_common_period: false}}
  covariates: {{analyses: {ANALYSES}, age_method: completed_years}}
  propensity: {{penalty: l1, cross_validate: false, variance: 0.2}}
analyses:
  itt: {{estimand: intention-to-treat, time_at_risk: {{risk_end: none}}}}
  pp: {{estimand: per-protocol, time_at_risk: {{risk_end: none}}}}
  treated: {{estimand: per-protocol}}
  baseline: {{estimand: per-protocol, per_protocol: {{over_time: false}}}}
sharing: {{blind: false}}
"""


@pytest.fixture(scope="module")
def tables():
    return rs.simulate.toy_tables(1500)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cdm")
    rs.simulate.toy_cdm(place / "toy-cdm", 1500, file_format="parquet")
    return place


@pytest.fixture(scope="module")
def found(folder):
    rs.study.run(rs.study.Study.parse(TEXT, folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")


def select(cdm, **rules):
    arms = [rs.omop.ConceptSet(DRUGS[arm]) for arm in (1, 0)]
    episodes = rs.omop.NewUserCohort(*arms).read(cdm)
    rules = {"restrict_to_common_period": False} | rules
    return rs.omop.Eligibility(**rules).select(cdm, episodes), episodes


def episodes_by_hand(tables):
    """First and last days of episodes by person and arm, from the drug records."""
    ancestors = tables["concept_ancestor"].to_pylist()
    arm_of = {
        row["descendant_concept_id"]: arm
        for row in ancestors
        for arm, concepts in DRUGS.items()
        if row["ancestor_concept_id"] in concepts
    }
    records = defaultdict(list)
    for row in tables["drug_exposure"].to_pylist():
        if row["drug_concept_id"] in arm_of:
            start, end = row["drug_exposure_start_date"], row.get("drug_exposure_end_date")
            if end is None:
                supply = max(row.get("days_supply") or 1, 1)
                end = start + datetime.timedelta(supply - 1)
            records[row["person_id"], arm_of[row["drug_concept_id"]]].append(
                (start, max(start, end))
            )
    joined = {}
    for key, own in records.items():
        own.sort()
        parts = [list(own[0])]
        for start, end in own[1:]:
            if (start - parts[-1][1]).days <= GAP:
                parts[-1][1] = max(parts[-1][1], end)
            else:
                parts.append([start, end])
        joined[key] = parts
    return joined


def expected_days(cohort, tables):
    """The last day of the exposure, or the first of the other one, by hand."""
    joined, found = episodes_by_hand(tables), []
    for row in cohort.table.to_pylist():
        index, arm = row["index_date"], row["treatment"]
        own = next(p for p in joined[row["person_id"], arm] if p[0] == index)
        end, last = (own[1] - index).days, row["days_to_obs_end"]
        others = [p[0] for p in joined.get((row["person_id"], 1 - arm), []) if p[0] >= index]
        switch = (min(others) - index).days if others else np.inf
        if row["cohort_end_reason"] == "second cohort":
            end = min(end, switch - 1)
        found.append(min(end if end < last else np.inf, switch))
    return np.array(found)


@pytest.mark.parametrize("rule", ["keep first, truncate to second", "keep first", "keep all"])
def test_people_deviate_when_exposure_ends_or_the_other_one_starts(tables, rule):
    with rs.omop.Cdm(tables) as cdm:
        cohort, episodes = select(cdm, remove_duplicates=rule, washout_days=0)
        day = days_to_change(cdm, cohort, episodes.table)
        alone = days_to_change(cdm, cohort)
    assert day.size > 500
    assert_allclose(day, expected_days(cohort, tables))
    assert np.isinf(day).any()
    assert (day <= alone).all()
    within = day < cohort.table.column("days_to_obs_end").to_numpy()
    assert (day < alone)[within].any() == (rule != "keep first, truncate to second")


def test_the_study_counts_them(found, tables):
    with rs.omop.Cdm(tables) as cdm:
        cohort, _ = select(cdm)
        window = rs.omop.TimeAtRisk(risk_end=None)
        left = window.follow(cdm, cohort, rs.omop.ConceptSet([316139]))
    days = dict(
        zip(cohort.table.column("row_id").to_pylist(), expected_days(cohort, tables), strict=True)
    )
    time, status = left.column("survival_time"), left.column("status")
    at = np.array([days[row] for row in left.column("row_id").tolist()])
    assert (at > 0).all()
    leaves = (at < time) | ((at == time) & (status == 0))
    for arm, code in (("target", 1), ("comparator", 0)):
        own = left.column("treatment") == code
        (main,) = found.rows("estimates", analysis="pp", role="main")
        assert main[f"{arm}_exposures"] == own.sum()
        assert main[f"{arm}_outcomes"] == (own & ~leaves & (status == 1)).sum()
        assert main[f"{arm}_days"] == np.where(leaves, at, time)[own].sum()
        rows = found.rows("deviations", analysis="pp", arm=arm)
        assert sum(row["deviations"] for row in rows) == (own & leaves).sum()
    # It does not matter whether the time at risk would go on.
    (treated,) = found.rows("estimates", analysis="treated", role="main")
    for name in ("target_outcomes", "comparator_days", "log_hr", "se"):
        assert_allclose(treated[name], main[name], rtol=1e-9)
    (itt,) = found.rows("estimates", analysis="itt", role="main")
    assert itt["target_days"] > main["target_days"]
    assert {row["contrast"] for row in found.rows("estimates", analysis="pp")} == {"per-protocol"}


def test_covariates_are_as_of_the_start_of_intervals(tables):
    """Conditions of the 30 days up to a day, and all earlier ones, from the records by hand."""
    settings = CovariateSection(analyses=(202, 204, 1, 2), exclude_arms=False)
    eras = defaultdict(list)
    for row in tables["condition_era"].to_pylist():
        eras[row["person_id"]].append(
            (
                row["condition_concept_id"],
                row["condition_era_start_date"],
                row["condition_era_end_date"],
            )
        )
    with rs.omop.Cdm(tables) as cdm:
        cohort, _ = select(cdm)
        rows = np.repeat(np.arange(40), 3)
        time = np.tile([0.0, 30.0, 90.5], 40)
        never = np.full(cohort.table.num_rows, np.inf)
        records = RecordsOverTime(cdm, lambda: cohort, settings, 0, never)
        people = cohort.table.to_pylist()
        concepts = sorted({era[0] for own in eras.values() for era in own})
        keys = [c * 1000 + analysis for c in concepts for analysis in (202, 204)]
        design = records.design(rows, time, keys)
        fewer = records.design(rows[::2], time[::2], keys)  # of what is remembered
        assert_allclose(fewer.to_dense(), design.to_dense()[::2])
        moved = as_of_days(cdm, cohort, rows, time.astype(int))
    dense = dict(zip(design.keys, design.to_dense().T, strict=True))
    assert len(dense) > 4
    for key in keys:
        concept, analysis = divmod(key, 1000)
        wanted = []
        for row, at in zip(rows, np.floor(time).astype(int), strict=True):
            person = people[row]
            day = person["index_date"] + datetime.timedelta(int(at))
            first = day - datetime.timedelta({202: 365, 204: 30}[analysis])
            own = [era for era in eras[person["person_id"]] if era[0] == concept]
            wanted.append(float(any(s <= day and e >= first for _, s, e in own)))
        assert_allclose(dense.get(key, np.zeros(rows.size)), wanted, err_msg=str(key))
    assert records.changes(keys[0])
    assert not records.changes(1001)  # the gender is what a person is
    assert moved.table.column("days_from_obs_start").to_pylist()[1] == (
        people[0]["days_from_obs_start"] + 30
    )


def test_a_remark_says_that_covariates_are_of_baseline(found):
    rows = [r for r in found.rows("warnings") if r["code"] == "baseline_covariates_only"]
    assert [row["where"].split(", ")[-1] for row in rows] == ["baseline"]
    over, fixed = (
        found.rows("censoring_weights", analysis=name)[0]["sd"] for name in ("pp", "baseline")
    )
    assert over != fixed


def test_it_goes_on_with_what_it_has(folder, found):
    again = rs.study.run(rs.study.Study.parse(TEXT, folder), folder / "out")
    assert all(step["reused"] for step in again.run["steps"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "over_time: false",
            "deviation: stopped",
            "`deviation` names a column of a table of people",
        ),
        (
            "time_at_risk: {risk_end: none}}\n  pp",
            "time_at_risk: {risk_end: 0}}\n  pp",
            "the time at risk ends when the treatment ends",
        ),
        (
            "treated: {estimand: per-protocol}",
            "treated: {estimand: per-protocol, time_at_risk: {start_anchor: cohort end, "
            "risk_end: none}}",
            "the time at risk starts when the treatment ends",
        ),
    ],
)
def test_faults(folder, old, new, message):
    assert old in TEXT
    with pytest.raises(rs.InputError, match=message):
        rs.study.Study.parse(TEXT.replace(old, new), folder)


def with_covariates(covariates):
    line = "  baseline: {estimand: per-protocol, per_protocol: {over_time: false}}"
    changed = line.replace("over_time: false", f"covariates: [{covariates}]")
    return TEXT.replace(line, changed)


def test_covariates_have_ids_or_names(folder, found, tmp_path):
    """The id of a covariate, as text in a file, is the same as its name."""
    (of_pp,) = found.rows("runs", analysis="pp")
    rows = found.rows("ps_coefficients", ps=of_pp["ps"])
    row = next(one for one in rows if one["covariate_id"].isdigit())
    hazards = []
    for k, given in enumerate((row["covariate_id"], repr(row["name"]))):
        study = rs.study.Study.parse(with_covariates(given), folder)
        rs.study.run(study, tmp_path / str(k))
        results = rs.study.StudyResults.open(tmp_path / str(k) / "private")
        (run,) = results.rows("runs", analysis="baseline")
        assert (run["status"], run["reason"]) == ("ok", None)
        (main,) = results.rows("estimates", analysis="baseline", role="main")
        hazards.append(main["log_hr"])
    assert hazards[0] == hazards[1]


def test_ids_that_no_analysis_extracts_are_found_before_the_run(folder):
    with pytest.raises(rs.InputError) as caught:
        rs.study.Study.parse(with_covariates("1002, 316139211"), folder)
    text = str(caught.value)
    assert "the id ends in 2, so" in text
    assert "the id ends in 211, so" in text
