"""Files for OHDSI's viewers: types, keys, joins, small counts, and the numbers in them."""

import csv
import json
import zipfile
from statistics import NormalDist

import pytest
from typer.testing import CliRunner

import riskset as rs
from ohdsi import results_files as files
from riskset.cli.main import app
from riskset.disclosure.rows import names_hidden
from riskset.ohdsi.results_ids import ResultNumbers, number_of_name
from study import small

TOY = """
title: Toy
data: {cdm: toy-cdm}
exposures:
  thiazides: {label: 'Thiazides, "new"', concepts: [974166, 1395058], ohdsi_id: 17}
  ACE inhibitors: {concepts: [1308216, 1341927]}
comparisons:
  - {target: thiazides, comparator: ACE inhibitors}
outcomes:
  heart failure: {concepts: [316139]}
  infarction: {concepts: [4329847], label: Infarkt (größer)}
negative_controls: {file: controls.csv}
defaults:
  eligibility: {washout_days: 0, restrict_to_common_period: false}
  covariates: {analyses: [DemographicsGender, DemographicsAgeGroup, ConditionEraLongTerm]}
  propensity: {penalty: l1, cross_validate: false, variance: 0.1}
analyses:
  matched: {match: {ratio: 1}, ohdsi_id: 1}
  overlap: {weight: {}, model: {level: 0.9}}
diagnostics: {max_smd: 1, max_ease: 10, min_equipoise: 0, max_mdrr: 100}
"""
CONTROLS = "cohort_id,cohort_name,outcome_concept_id\n501,Obesity,433736\n502,Rare,2000001001\n"


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder of a run."""
    place = tmp_path_factory.mktemp("toy")
    rs.simulate.toy_cdm(place / "toy-cdm", 3000, file_format="parquet")
    (place / "controls.csv").write_text(CONTROLS, encoding="utf-8")
    rs.study.run(rs.study.Study.parse(TOY, place), place / "out")
    return place / "out"


@pytest.fixture(scope="module")
def shared(out, tmp_path_factory):
    """The export of shared results."""
    folder = tmp_path_factory.mktemp("shared") / "ohdsi"
    rs.ohdsi.export_results(out, folder, database_id="toy")
    return folder


@pytest.fixture(scope="module")
def base(shared, tmp_path_factory):
    """All files as tables of a database."""
    return files.load(shared, tmp_path_factory.mktemp("tables"))


def rows(base, query):
    found = base.execute(query)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_every_table_is_a_file(shared):
    assert sorted(files.texts(shared)) == sorted(files.FACTS)
    names = {path.name for path in shared.iterdir()}
    assert names == {
        *("Results_toy.zip", "database_meta_data.csv", "cg_cohort_definition.csv"),
        "resultsDataModelSpecification.csv",
    }


@pytest.mark.parametrize("table", list(files.FACTS))
def test_types_and_required_values(shared, table):
    files.check_text(table, files.texts(shared)[table])


def test_tables_have_rows(base):
    empty = [t for t in files.FACTS if rows(base, f"SELECT count(*) AS n FROM {t}")[0]["n"] == 0]
    assert empty == ["cm_interaction_result"]


def test_keys_are_unique(base):
    files.check_keys(base)


def test_every_number_is_explained(base):
    files.check_joins(base)


def test_numbers_of_the_specification(base):
    names = {r["cohort_definition_id"]: r["cohort_name"] for r in rows(base, COHORTS)}
    assert names[17] == 'Thiazides, "new"'
    assert names[501] == "Obesity"
    assert names[502] == "Rare"
    assert names[number_of_name("outcome", "infarction")] == "Infarkt (größer)"
    (comparison,) = rows(base, "SELECT * FROM cm_target_comparator")
    assert comparison["target_id"] == 17
    assert comparison["comparator_id"] == number_of_name("exposure", "ACE inhibitors")


COHORTS = "SELECT * FROM cg_cohort_definition"


def test_a_viewer_finds_its_results(base):
    """The joins by which OHDSI's report generator asks for effects, of outcomes of interest."""
    found = rows(
        base,
        """
        SELECT t.cohort_name AS target, c.cohort_name AS comparator, o.cohort_name AS outcome,
               a.description AS analysis, d.cdm_source_abbreviation AS source, s.unblind, r.*
        FROM cm_result r
        JOIN cm_target_comparator tc USING (target_comparator_id)
        JOIN cm_target_comparator_outcome tco USING (target_comparator_id, outcome_id)
        JOIN cm_diagnostics_summary s
          USING (analysis_id, target_comparator_id, outcome_id, database_id)
        JOIN database_meta_data d USING (database_id)
        JOIN cg_cohort_definition t ON t.cohort_definition_id = tc.target_id
        JOIN cg_cohort_definition c ON c.cohort_definition_id = tc.comparator_id
        JOIN cg_cohort_definition o ON o.cohort_definition_id = r.outcome_id
        JOIN cm_analysis a USING (analysis_id)
        WHERE tco.outcome_of_interest = 1
        """,
    )
    assert len(found) == 4
    assert {row["outcome"] for row in found} == {"heart failure", "Infarkt (größer)"}
    assert {row["target"] for row in found} == {'Thiazides, "new"'}


def main_estimate(results, outcome, analysis):
    (row,) = results.rows("estimates", outcome=outcome, analysis=analysis, role="main")
    return row


def test_effects(out, base):
    """Of another level than 95 %, the interval is that of a normal logarithm."""
    results = rs.study.StudyResults.open(out)
    outcome = number_of_name("outcome", "heart failure")
    for analysis, number in (("matched", 1), ("overlap", number_of_name("analysis", "overlap"))):
        row = main_estimate(results, "heart failure", analysis)
        (own,) = rows(
            base, f"SELECT * FROM cm_result WHERE outcome_id={outcome} AND analysis_id={number}"
        )
        assert row["hr"] is not None, "this test needs an effect that is shown"
        assert (own["rr"], own["log_rr"]) == (row["hr"], row["log_hr"])
        z = own["log_rr"] / own["se_log_rr"]
        assert own["p"] == pytest.approx(2 * NormalDist().cdf(-abs(z)))
        assert own["one_sided_p"] == pytest.approx(NormalDist().cdf(-z))
        assert own["target_days"] == row["target_days"]
        if analysis == "matched":
            limits = (row["hr_lower"], row["hr_upper"])
        else:
            normal = NormalDist(own["log_rr"], own["se_log_rr"])
            limits = tuple(2.718281828459045 ** normal.inv_cdf(p) for p in (0.025, 0.975))
        assert (own["ci_95_lb"], own["ci_95_ub"]) == pytest.approx(limits)
    estimators = {r["target_estimator"] for r in rows(base, "SELECT * FROM cm_result")}
    assert estimators == {"att", "ato"}


def test_diagnostics(out, base):
    results = rs.study.StudyResults.open(out)
    found = rows(base, "SELECT * FROM cm_diagnostics_summary")
    assert len(found) == 8
    for run in results.rows("runs"):
        where = {n: run[n] for n in ("target", "comparator", "outcome", "analysis")}
        checks = {row["name"]: row for row in results.rows("diagnostics", **where)}
        (own,) = (
            row
            for row in found
            if row["outcome_id"] == numbers_of(results).outcomes[run["outcome"]]
            and row["analysis_id"] == numbers_of(results).analyses[run["analysis"]]
        )
        words = own["balance_diagnostic"].lower().replace(" ", "_")
        assert words == checks["balance"]["verdict"]
        assert own["max_sdm"] == checks["balance"]["value"]
        assert own["unblind"] == run["unblind"]
        assert own["attrition_diagnostic"] == "NOT EVALUATED"
        if run["outcome_kind"] == "negative control":
            assert own["balance_diagnostic"] == "NOT EVALUATED"


def numbers_of(results):
    return ResultNumbers(results.study)


def test_controls_have_profiles_and_true_effects(base):
    (tco,) = rows(base, "SELECT * FROM cm_target_comparator_outcome WHERE outcome_id = 501")
    assert (tco["outcome_of_interest"], tco["true_effect_size"]) == (0, 1.0)
    outcomes = {r["outcome_id"] for r in rows(base, "SELECT * FROM cm_likelihood_profile")}
    assert {501, 502} <= outcomes


def test_survival_does_not_increase_and_starts_at_1(base):
    runs = rows(base, "SELECT DISTINCT outcome_id, analysis_id FROM cm_kaplan_meier_dist")
    assert runs
    for run in runs:
        where = f"outcome_id={run['outcome_id']} AND analysis_id={run['analysis_id']}"
        steps = rows(base, f"SELECT * FROM cm_kaplan_meier_dist WHERE {where} ORDER BY time_day")
        assert steps[0]["time_day"] == 0
        for arm in ("target", "comparator"):
            values = [step[f"{arm}_survival"] for step in steps]
            assert values[0] == 1.0
            assert values == sorted(values, reverse=True)
            for step in steps:
                assert step[f"{arm}_survival_lb"] <= step[f"{arm}_survival"]
                assert step[f"{arm}_survival_ub"] >= step[f"{arm}_survival"]
        assert any(step["target_at_risk"] is not None for step in steps)


def test_densities_add_to_at_most_1(base):
    scores = rows(base, "SELECT * FROM cm_preference_score_dist WHERE analysis_id = 1 ORDER BY ALL")
    assert len(scores) == 100
    for arm in ("target", "comparator"):
        total = sum(row[f"{arm}_density"] for row in scores) / 99
        assert 0.95 < total < 1.02


def test_small_counts_are_hidden(base):
    """No count of any table is above 0 and below 5; hidden ones are -5."""
    n_hidden = 0
    for table, facts in files.FACTS.items():
        for fact in facts:
            name = fact["column"]
            if fact["small_cell"] == "no" or fact["type"] != "int":
                continue
            values = {r[name] for r in rows(base, f"SELECT DISTINCT {name} FROM {table}")}
            assert not values & {1, 2, 3, 4, -1, -2, -3, -4}, (table, name)
            assert all(v is None or v >= 0 or v == -5 for v in values)
            n_hidden += -5 in values
    assert n_hidden


def test_hidden_means_are_marked_and_their_differences_are_missing(out, base):
    results = rs.study.StudyResults.open(out)
    (run,) = results.rows("runs", outcome="heart failure", analysis="matched")
    outcome = number_of_name("outcome", "heart failure")
    query = f"SELECT * FROM cm_covariate_balance WHERE outcome_id={outcome} AND analysis_id=1"
    own = {str(row["covariate_id"]): row for row in rows(base, query)}
    theirs = results.rows("balance", adjustment=run["adjustment"])
    assert len(own) == len(theirs)
    n_hidden = 0
    for row in theirs:
        found, hidden = own[row["covariate_id"]], names_hidden(row)
        for side in ("before", "after"):
            for arm in ("target", "comparator"):
                mean = found[f"{arm}_mean_{side}"]
                if f"{side}_mean_{arm}" in hidden:
                    n_hidden += 1
                    assert mean is None or -1 < mean <= -0.001
                    assert found[f"mean_{side}"] is None or found[f"mean_{side}"] < 0
                    assert found["std_diff_before"] is None
                    assert found["std_diff_after"] is None
                    assert found[f"{arm}_std_diff"] is None
                else:
                    assert mean == pytest.approx(row[f"{side}_mean_{arm}"], abs=5e-4)
    assert n_hidden


def test_private_results_hide_the_same_counts(out, shared, tmp_path):
    """They also have effects that failed diagnostics, as CohortMethod's own files."""
    rs.ohdsi.export_results(out / "private", tmp_path / "ohdsi", database_id="toy")
    own, theirs = files.texts(tmp_path / "ohdsi"), files.texts(shared)
    for table, facts in files.FACTS.items():
        if table in ("cm_likelihood_profile", "cm_kaplan_meier_dist"):
            continue
        names = [f["column"] for f in facts if f["small_cell"] == "yes" or f["key"] == "yes"]
        pairs = zip(files.cells(own[table]), files.cells(theirs[table]), strict=True)
        for mine, other in pairs:
            assert [mine[n] for n in names] == [other[n] for n in names], table


def test_nothing_is_hidden_where_that_is_asked_for(out, tmp_path):
    """Then the mean of both groups is by hand that of the people of two matched groups."""
    rs.ohdsi.export_results(out / "private", tmp_path / "ohdsi", min_cell_count=0)
    base = files.load(tmp_path / "ohdsi", tmp_path)
    results = rs.study.StudyResults.open(out / "private")
    (run,) = results.rows("runs", outcome="heart failure", analysis="matched")
    (size,) = results.rows("adjustments", adjustment=run["adjustment"])
    n_after = size["target_rows"] + size["comparator_rows"]
    # The balance before the adjustment is that of all who start a treatment, as no one is left out
    # for an infarction.
    (before,) = results.rows("arms", outcome="infarction", analysis="matched", side="before")
    n_before = before["target_exposures"] + before["comparator_exposures"]
    outcome = number_of_name("outcome", "heart failure")
    query = f"SELECT * FROM cm_covariate_balance WHERE outcome_id={outcome} AND analysis_id=1"
    own = {str(row["covariate_id"]): row for row in rows(base, query)}
    for row in results.rows("balance", adjustment=run["adjustment"]):
        found = own[row["covariate_id"]]
        for side, n in (("before", n_before), ("after", n_after)):
            if found[f"mean_{side}"] is not None:
                count = row[f"{side}_count_target"] + row[f"{side}_count_comparator"]
                assert found[f"mean_{side}"] == pytest.approx(count / n, abs=5.1e-4)
        assert found["std_diff_before"] == pytest.approx(row["before_smd"], abs=5.1e-4)
    assert sum(row["mean_after"] is not None for row in own.values()) > len(own) / 2
    (result,) = rows(base, f"SELECT * FROM cm_result WHERE outcome_id={outcome} AND analysis_id=1")
    row = main_estimate(results, "heart failure", "matched")
    assert result["target_outcomes"] == row["target_outcomes"]


def test_follow_up_quantiles(out, base):
    """The third quartile is that; the ends, which are those of single people, are not written."""
    results = rs.study.StudyResults.open(out)
    outcome = number_of_name("outcome", "heart failure")
    (own,) = rows(
        base, f"SELECT * FROM cm_follow_up_dist WHERE outcome_id={outcome} AND analysis_id=1"
    )
    for arm in ("target", "comparator"):
        days = {
            row["share"]: row["days"]
            for row in results.rows(
                "follow_up", outcome="heart failure", analysis="matched", arm=arm
            )
        }
        assert own[f"{arm}_p_75_days"] == days[0.75] is not None
        assert own[f"{arm}_median_days"] == days[0.5]
        assert own[f"{arm}_min_days"] is None
        assert own[f"{arm}_max_days"] is None
        assert own[f"{arm}_min_date"] is None
        assert own[f"{arm}_max_date"] is None


def test_the_database(base):
    (row,) = rows(base, "SELECT * FROM database_meta_data")
    assert row["database_id"] == "toy"
    assert row["cdm_source_name"] == "Toy CDM"


def test_the_same_results_give_the_same_bytes(out, shared, tmp_path):
    rs.ohdsi.export_results(out, tmp_path / "ohdsi", database_id="toy")
    for path in shared.iterdir():
        assert (tmp_path / "ohdsi" / path.name).read_bytes() == path.read_bytes()


def test_definitions_are_json(base):
    for row in rows(base, "SELECT * FROM cm_analysis"):
        assert json.loads(row["definition"])["propensity"]["variance"] == 0.1


def test_a_table_of_people(tmp_path):
    """Names of covariates become numbers, and what a CDM would say is not known."""
    small.run(tmp_path)
    facts = {"cdm_holder": "A hospital", "cdm_release_date": "2025-01-31"}
    written = rs.ohdsi.export_results(tmp_path / "out", tmp_path / "ohdsi", database=facts)
    assert written[0].name == "Results_people.parquet.zip"
    for table, text in files.texts(tmp_path / "ohdsi").items():
        files.check_text(table, text)
    base = files.load(tmp_path / "ohdsi", tmp_path)
    files.check_keys(base)
    files.check_joins(base)
    names = {
        r["covariate_name"]: r["covariate_id"] for r in rows(base, "SELECT * FROM cm_covariate")
    }
    assert names["age"] == number_of_name("covariate", "age", 53)
    (row,) = rows(base, "SELECT * FROM database_meta_data")
    assert row["cdm_holder"] == "A hospital"
    assert row["vocabulary_version"] == "unknown"
    assert row["cdm_release_date"].isoformat() == "2025-01-31"


def test_estimates_that_are_not_possible(tmp_path):
    """A run without an estimate has diagnostics, and one without outcomes has counts."""
    columns = small.people(died=0 * small.people()["died"])
    small.run(tmp_path, columns)
    rs.ohdsi.export_results(tmp_path / "out", tmp_path / "ohdsi")
    base = files.load(tmp_path / "ohdsi", tmp_path)
    for table, text in files.texts(tmp_path / "ohdsi").items():
        files.check_text(table, text)
    (row,) = rows(base, "SELECT * FROM cm_result")
    assert row["rr"] is None
    assert row["target_outcomes"] == 0
    assert len(rows(base, "SELECT * FROM cm_diagnostics_summary")) == 1


def test_competing_events_have_no_survival(tmp_path):
    columns = small.people()
    columns["died"][:40] = 2
    small.run(tmp_path, columns)
    rs.ohdsi.export_results(tmp_path / "out", tmp_path / "ohdsi")
    base = files.load(tmp_path / "ohdsi", tmp_path)
    assert rows(base, "SELECT * FROM cm_kaplan_meier_dist") == []
    assert len(rows(base, "SELECT * FROM cm_result")) == 1


def test_a_folder_with_files_is_not_replaced(out, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(rs.InputError, match="has files"):
        rs.ohdsi.export_results(out, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["", "a b", "../a", ".hidden"])
def test_names_of_databases(out, tmp_path, name):
    with pytest.raises(rs.InputError, match="database_id"):
        rs.ohdsi.export_results(out, tmp_path / "ohdsi", database_id=name)


def test_unknown_columns_of_the_database(out, tmp_path):
    with pytest.raises(rs.InputError, match="cdm_holders"):
        rs.ohdsi.export_results(out, tmp_path / "ohdsi", database={"cdm_holders": "A"})


def test_command_line(out, tmp_path):
    done = CliRunner().invoke(app, ["study", "export", str(out), "--ohdsi", str(tmp_path / "new")])
    assert done.exit_code == 0, done.output
    (archive,) = (tmp_path / "new").glob("Results_*.zip")
    assert len(zipfile.ZipFile(archive).namelist()) == 16
    done = CliRunner().invoke(app, ["study", "export", str(out)])
    assert done.exit_code == 2
    assert "--ohdsi" in done.output


def test_the_command_line_names_the_database(out, tmp_path):
    call = CliRunner().invoke
    words = ["study", "export", str(out), "--ohdsi", str(tmp_path / "new")]
    named = ["--database-id", "hospital", "--database", "cdm_holder=A = B"]
    done = call(app, [*words, *named])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "new" / "Results_hospital.zip").exists()
    with (tmp_path / "new" / "database_meta_data.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["database_id"], row["cdm_holder"]) == ("hospital", "A = B")
    for options, message in (
        (["--database-id", "a/b"], "--database-id is part of the name of a file"),
        (["--database", "cdm_holder"], "--database must be COLUMN=VALUE"),
        (["--database", "holder=A"], "cdm_holder"),
    ):
        done = call(app, ["study", "export", str(out), "--ohdsi", str(tmp_path / "x"), *options])
        assert done.exit_code == 2
        assert message in " ".join(done.output.split())
    done = call(app, ["study", "export", str(out), "--out", str(tmp_path / "y"), *named])
    assert done.exit_code == 2
    assert "--database-id needs --ohdsi" in done.output
