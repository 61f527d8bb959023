"""A study on a CDM in PostgreSQL: the results of files, byte for byte, and nothing secret."""

import datetime
import json
import subprocess
import sys

import duckdb
import pytest
import yaml

import riskset as rs
from omop.toy import toy_tables
from postgres_server import PASSWORD
from riskset.warehouse.connection import Warehouse
from study.test_cdm import TEXT
from study.test_resume import written

EXTENDED = TEXT.replace(
    "overlap: {weight: {}}",
    "overlap: {weight: {}, covariates: {analyses: [3, 101, 105, 702, 920]}}",
)


def connected(postgres, text=TEXT, **changes):
    given = {"connection": postgres.url("analyst", None), "schema": ["cdm", "vocabulary"]}
    given |= {"password_variable": "CDM_PASSWORD"} | changes
    assert "data: {cdm: toy-cdm}" in text
    return text.replace(
        "data: {cdm: toy-cdm}", f"data: {json.dumps({'name': 'Toy', 'cdm': given})}"
    )


def tables(folder):
    return {name: content for name, content in written(folder).items() if name.endswith(".parquet")}


@pytest.fixture(autouse=True)
def _password(monkeypatch):
    monkeypatch.setenv("CDM_PASSWORD", PASSWORD)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same study on files."""
    place = tmp_path_factory.mktemp("files")
    rs.simulate.toy_cdm(place / "toy-cdm", 2000, file_format="parquet")
    rs.study.run(rs.study.Study.parse(EXTENDED, place), place / "out")
    return place / "out"


def test_the_same_results_byte_for_byte_and_no_secret(postgres, tmp_path, files, capfd):
    file = tmp_path / "study.yaml"
    file.write_text(connected(postgres, EXTENDED))
    command = [sys.executable, "-m", "riskset", "study", "run", str(file), "--out"]
    done = subprocess.run(
        [*command, str(tmp_path / "out"), "--quiet"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert tables(tmp_path / "out") == tables(files)
    for path in tmp_path.rglob("*"):
        if path.is_file() and path != file:
            content = path.read_bytes()
            assert PASSWORD.encode() not in content, path
            assert b"127.0.0.1" not in content, path
    found = rs.study.StudyResults.open(tmp_path / "out")
    assert found.study["settings"]["data"]["cdm"] == "postgres"
    assert {"person", "measurement"} <= {one["name"] for one in found.study["data"]["sources"]}
    pulls = [step for step in found.run["steps"] if step["step"] == "pull"]
    assert {"measurement", "concept"} <= {step["what"] for step in pulls}

    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    assert pulls[0]["pulled"] <= today
    assert "database" not in done.stdout

    # Again: pulls and steps are there, and it is said how old the tables are.
    again = rs.study.run(rs.study.Study.read(file), tmp_path / "out", progress="steps")
    assert all(step["reused"] for step in again.run["steps"])
    assert capfd.readouterr().err == ""
    done = subprocess.run(
        [*command, str(tmp_path / "out")], capture_output=True, text=True, check=True
    )
    assert f"tables of {pulls[0]['pulled']} (`cache_days: 0` reads them anew)" in done.stdout


def test_it_shows_rows_and_megabytes(postgres, tmp_path, capfd):
    study = rs.study.Study.parse(connected(postgres), tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        # The pulls are what is looked at.
        patch.setattr("riskset.study.execution.StudyRunner.run", lambda self: iter(()))
        rs.study.run(study, tmp_path / "out", progress="steps")
    lines = [line for line in capfd.readouterr().err.splitlines() if "measurement" in line]
    assert len(lines) == 1
    # Those of the users of a drug of the arms, from a year before the first to the last record.
    with duckdb.connect() as connection:
        for name, table in toy_tables().items():
            connection.register(name, table)
        (n,) = connection.execute(
            "SELECT count(*) FROM measurement m JOIN (SELECT person_id, "
            "min(drug_exposure_start_date) AS first, max(drug_exposure_start_date) AS last FROM "
            "drug_exposure JOIN concept_ancestor ON descendant_concept_id = drug_concept_id "
            "WHERE ancestor_concept_id IN (974166, 1395058, 1308216, 1341927) GROUP BY 1) u "
            "USING (person_id) WHERE measurement_date BETWEEN first - 365 AND last"
        ).fetchone()
    assert lines[0].startswith(f"study: pull (measurement: {n:,} rows, 0.0 MB), ")


def test_an_interrupted_study_goes_on_after_the_last_table(postgres, tmp_path, monkeypatch):
    study = rs.study.Study.parse(connected(postgres), tmp_path)
    real = Warehouse.stream

    def cut(self, statement, what, usual):
        if what == "cdm.measurement":
            postgres.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'analyst'"
            )
        return real(self, statement, what, usual)

    monkeypatch.setattr(Warehouse, "stream", cut)
    with pytest.raises(rs.InputError) as caught:
        rs.study.run(study, tmp_path / "out")
    assert caught.value.code == "LostConnection"
    kept = {path.name for path in (tmp_path / "out" / "steps" / "tables").glob("*.parquet")}
    assert kept
    monkeypatch.undo()
    monkeypatch.setenv("CDM_PASSWORD", PASSWORD)
    found = rs.study.run(study, tmp_path / "out")
    steps = {s["what"]: s["reused"] for s in found.run["steps"] if s["step"] == "pull"}
    assert not steps["measurement"]
    assert steps["person"]


def test_faults_have_their_line(postgres, tmp_path):
    def refused(text, error=rs.InputError):
        with pytest.raises(error) as caught:
            rs.study.check_data(rs.study.Study.parse(text, tmp_path))
        return str(caught.value)

    rs.study.check_data(rs.study.Study.parse(connected(postgres), tmp_path))
    literal = connected(postgres, connection=postgres.url())
    message = refused(literal)
    assert "line 3" in message
    assert "the URL holds a password or a token as it is." in message
    assert "${NAME}" in message
    assert "s3cret" not in message
    token = connected(postgres, connection="databricks://host/main?access_token=s3cret")
    assert "the URL holds a password" in refused(token)
    both = connected(postgres, keyring="cdm")
    assert "`password_variable` and `keyring` were both given" in refused(both)
    url = TEXT.replace("toy-cdm", "postgresql://u:s3cret@host/cdm")
    assert "a database needs its schemas beside its URL" in refused(url)
    assert "s3cret" not in refused(url)
    missing = connected(postgres).replace("{death: true", "{cohort: 3")
    assert "has no table cohort" in refused(missing)
    slash = connected(postgres, connection="postgresql://me:ge/heim@host/cdm")
    assert "the URL holds a password" in refused(slash)
    assert "heim" not in refused(slash)
    nothing = connected(postgres, connection="oracle://host/cdm")
    assert "known scheme" in refused(nothing)
    definition = connected(postgres).replace("{concepts: [316139]}", "{definition: hf.json}")
    assert "cohorts of a database are made there, and not from definitions." in refused(definition)
    assert "`cohort_table`" in refused(definition)
    assert "line 10" in refused(definition)
    folder = yaml.safe_load(connected(postgres))
    folder["data"]["cohort_definitions"] = "made"
    assert "and not from definitions." in refused(json.dumps(folder))
    assert yaml.safe_load(literal)["data"]["cdm"]["connection"] == postgres.url()
