"""Studies on files of CohortMethod: the results of the CDM that the files were made from."""

import numpy as np
import pyarrow as pa
import pytest

import riskset as rs
from gibleed import comparison, needs_gibleed
from ohdsi.andromeda_files import population, write_file
from omop.toy import AT_RISK, COMPARATOR, COMPETING, OUTCOME, TARGET, toy_tables

TEXT = """
title: A file of CohortMethod
data: {DATA}
exposures:
  new: {NEW}
  old: {OLD}
comparisons:
  - {target: new, comparator: old}
outcomes:
  failure: {FAILURE}
competing_events:
  others: {OTHERS}
MORE
defaults:
  time_at_risk: {risk_start: 1, risk_end: 0, min_days_at_risk: 1}
  propensity: {penalty: l1, variance: 0.1}
BOTH
analyses:
  matched: {match: {ratio: 1}, model: {kind: cox, also: [finegray], interval: wald}}
  weighted: {weight: {estimand: ato}}
  kept: {estimand: per-protocol, weight: {}, per_protocol: {over_time: false, every: 60}}
"""
FILE = {
    "DATA": "cohort_method_data: data.zip",
    "NEW": "cohort: 1",
    "OLD": "cohort: 2",
    "FAILURE": "cohort: 3",
    "OTHERS": "cohort: 4",
}


def _study(folder, **parts):
    text = TEXT
    for name, value in {"MORE": "", "BOTH": "", **FILE, **parts}.items():
        text = text.replace(name, value)
    return rs.study.Study.parse(text, folder)


def _as_r_keeps_it(cohort, covariates, events):
    """Tables of a file from a study cohort of riskset, with the outcomes within observation."""
    table = cohort.table
    columns = {
        "rowId": "row_id",
        "personSeqId": "person_id",
        "treatment": "treatment",
        "daysFromObsStart": "days_from_obs_start",
        "daysToCohortEnd": "days_to_cohort_end",
        "daysToObsEnd": "days_to_obs_end",
    }
    cohorts = {n: table.column(name).cast(pa.float64()) for n, name in columns.items()}
    cohorts["cohortStartDate"] = table.column("index_date")
    people = {}
    for row in table.to_pylist():
        people.setdefault(row["person_id"], []).append(row)
    outcomes = set()
    for number, frame in events.items():
        for event in frame.to_pylist():
            for row in people.get(event["person_id"], ()):
                day = (event["event_date"] - row["index_date"]).days
                if -row["days_from_obs_start"] <= day <= row["days_to_obs_end"]:
                    outcomes.add((row["row_id"], number, day))
    rows = np.array(sorted(outcomes), float).T
    entries, ref = covariates.table, covariates.ref
    return {
        "cohorts": pa.table(cohorts),
        "outcomes": pa.table(dict(zip(("rowId", "outcomeId", "daysToEvent"), rows, strict=True))),
        "covariates": pa.table(
            {
                "rowId": entries.column("row_id").cast(pa.float64()),
                "covariateId": entries.column("covariate_id").cast(pa.float64()),
                "covariateValue": entries.column("value").cast(pa.float64()),
            }
        ),
        "covariateRef": pa.table(
            {
                "covariateId": ref.column("covariate_id").cast(pa.float64()),
                "covariateName": ref.column("name"),
                "analysisId": ref.column("analysis_id").cast(pa.float64()),
                "conceptId": ref.column("concept_id").cast(pa.float64()),
            }
        ),
        "analysisRef": _analyses(ref),
    }


def _analyses(ref):
    found = {row["analysis_id"]: row for row in ref.to_pylist()}
    return pa.table(
        {
            "analysisId": pa.array(map(float, found)),
            "domainId": [row["domain"] for row in found.values()],
            "startDay": pa.array([row["start_day"] for row in found.values()], pa.float64()),
            "endDay": pa.array([row["end_day"] for row in found.values()], pa.float64()),
            "isBinary": ["Y" if row["is_binary"] else "N" for row in found.values()],
            "missingMeansZero": ["Y"] * len(found),
        }
    )


def _events(tables, concepts):
    """Diagnoses with one of some concepts."""
    wanted, table = set(concepts), tables["condition_occurrence"]
    records = table.rename_columns([name.lower() for name in table.column_names]).to_pylist()
    found = [
        (r["person_id"], r["condition_start_date"])
        for r in records
        if r["condition_concept_id"] in wanted
    ]
    return pa.table({"person_id": [p for p, _ in found], "event_date": [d for _, d in found]})


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The estimates of one study from a CDM without deaths, and from a file made from it."""
    folder = tmp_path_factory.mktemp("both")
    tables = {name: table for name, table in toy_tables().items() if name != "death"}
    others = [c for c in COMPETING if c != "death"]
    settings = rs.omop.CovariateSettings([1, 3, 202, 402])
    with rs.omop.Cdm(tables) as cdm:
        cohort = rs.omop.Eligibility().select(
            cdm, rs.omop.NewUserCohort(TARGET, COMPARATOR).read(cdm)
        )
        covariates = rs.omop.Covariates.extract(cdm, cohort, settings)
        ids = {3: OUTCOME.ids(cdm), 4: others[0].ids(cdm)}
        events = {k: _events(tables, wanted) for k, wanted in ids.items()}
        write_file(folder / "data.zip", _as_r_keeps_it(cohort, covariates, events), attributes=None)
        people = AT_RISK.follow(cdm, cohort, OUTCOME, others[0])
        with rs.ohdsi.CohortMethodData(folder / "data.zip") as data:
            again = data.follow(3, AT_RISK, competing=[4])
    (folder / "cdm").mkdir()
    for name, table in tables.items():
        pa.parquet.write_table(table, folder / "cdm" / f"{name}.parquet")
    listed = {
        "NEW": f"concepts: {list(TARGET.concepts)}",
        "OLD": f"concepts: {list(COMPARATOR.concepts)}",
        "FAILURE": f"concepts: {list(OUTCOME.concepts)}",
        "OTHERS": f"concepts: {list(others[0].concepts)}",
        "DATA": "cdm: cdm",
        "BOTH": "  covariates: {analyses: [1, 3, 202, 402]}",
    }
    results = []
    for name, parts in (("a", listed), ("b", {})):
        rs.study.run(_study(folder, **parts), folder / name)
        results.append(rs.study.StudyResults.open(folder / name / "private"))
    return people, again, results


def test_the_population_is_the_same(both):
    people, again, _ = both
    names = ("row_id", "treatment", "survival_time", "status", "end_reason")
    assert people.table.num_rows > 100
    for name in names[:-1]:
        assert people.column(name).tolist() == again.column(name).tolist()


def test_all_results_are_the_same(both):
    _, _, (by_cdm, by_file) = both
    tables = ("estimates", "balance", "ps", "ps_coefficients", "absolute_risks", "curves")
    tables += ("censoring_weights", "deviations")
    for table in (*tables, "likelihood_profiles", "follow_up", "calendar", "diagnostics"):
        assert by_file.rows(table) == by_cdm.rows(table), table
    assert len(by_file.rows("estimates", role="main")) >= 2
    assert all(row["status"] == "ok" for row in by_file.rows("runs"))


def test_what_the_results_say(both):
    _, _, (_, by_file) = both
    data = by_file.study["data"]
    assert data["kind"] == "omop"
    assert [source["name"] for source in data["sources"]] == ["data.zip"]
    assert by_file.study["settings"]["data"]["cohort_method_data"] == ["data.zip"]
    assert by_file.study["analyses"]["matched"]["words"]["washout"] is None
    words = by_file.study["analyses"]["kept"]["words"]["deviations"]
    assert "(when their exposure ended)" in words
    assert sum(row["deviations"] for row in by_file.rows("deviations")) > 50


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"DATA": "cohort_method_data: none.zip"}, "line 3.*there is no file or folder"),
        (
            {"FAILURE": "cohort: 9"},
            "line 10, outcomes.failure.cohort: outcome 9 was not found in data",
        ),
        ({"FAILURE": "concepts: [1]"}, "line 10.*files of CohortMethod have cohorts"),
        ({"FAILURE": "cohort: 3, inpatient: true"}, "`inpatient` applies to a CDM"),
        ({"BOTH": "  eligibility: {washout_days: 3}"}, "R has selected the people"),
        ({"BOTH": "  covariates: {analyses: [1]}"}, "R has selected the people"),
        ({"MORE": "subgroups: {sex: {column: sex}}"}, "variable 'sex' was not found"),
        (
            {"NEW": "cohort: 2", "OLD": "cohort: 1"},
            "no file has the cohorts 2 and 1; there are: 1 and 2",
        ),
    ],
)
def test_faults(tmp_path, parts, message):
    pytest.importorskip("rdata")
    write_file(tmp_path / "data.zip", population())
    with pytest.raises(rs.InputError, match=message):
        rs.study.check_data(_study(tmp_path, **parts))


def test_files_of_several_comparisons(tmp_path):
    """Each comparison takes the file whose cohorts are its own."""
    pytest.importorskip("rdata")
    write_file(tmp_path / "data.zip", population())
    write_file(tmp_path / "other.zip", population(), attributes=None)
    rs.study.check_data(_study(tmp_path, DATA="cohort_method_data: [other.zip, data.zip]"))


def test_a_damaged_file_is_named_with_its_line(tmp_path):
    (tmp_path / "data.zip").write_bytes(b"nothing")
    with pytest.raises(rs.InputError, match="line 3, data.cohort_method_data: data.zip is not"):
        rs.study.check_data(_study(tmp_path))


@needs_gibleed
def test_gibleed_by_a_file(tmp_path):
    """The crude hazard ratio that CohortMethod published, from a file in its own format."""
    text = comparison().split("defaults:")[0]
    study = rs.study.Study.parse(text + "analyses: {a: {propensity: none}}")
    cdm_path = study.specification.data.cdm
    with rs.omop.Cdm(cdm_path) as cdm:
        arms = [rs.omop.ConceptSet([c]) for c in (1118084, 1124300)]
        eligibility = rs.omop.Eligibility(washout_days=183, remove_duplicates="remove all")
        cohort = eligibility.select(cdm, rs.omop.NewUserCohort(*arms).read(cdm))
        covariates = rs.omop.Covariates.extract(cdm, cohort, rs.omop.CovariateSettings([1]))
        bleeding = rs.omop.ConceptSet([192671]).ids(cdm)
        events = _events({"condition_occurrence": cdm.arrow("condition_occurrence")}, bleeding)
        tables = _as_r_keeps_it(cohort, covariates, {3: events})
    for kind in ("duckdb", "sqlite"):
        path = write_file(tmp_path / f"{kind}.zip", tables, kind, "number", None)
        window = rs.omop.TimeAtRisk(risk_start=0, risk_end=30)
        with rs.ohdsi.CohortMethodData(path) as data:
            fit = rs.Cox().fit(data.dataset(3, window, covariates=False))
        assert np.exp(fit.coef_[0]) == pytest.approx(1.134067, abs=5e-7)
