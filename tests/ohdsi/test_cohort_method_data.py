"""Files of CohortMethod and FeatureExtraction in all their forms, worked out by hand."""

import builtins
import zipfile
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import brentq

import riskset as rs
from ohdsi.andromeda_files import day, population, with_column, write_file
from reference import GOLDEN
from riskset.ohdsi import CohortMethodData, CovariateData

FORMS = [
    ("duckdb", "date"),
    ("duckdb", "number"),
    ("duckdb", "text"),
    ("sqlite", "number"),
    ("sqlite", "text"),
]
AS_STARTED = rs.omop.TimeAtRisk(risk_end=None)
needs_rdata = pytest.mark.skipif(
    not __import__("importlib").util.find_spec("rdata"), reason="needs the package rdata"
)


def _people(found):
    names = ("row_id", "survival_time", "status")
    return list(zip(*(found.column(n).tolist() for n in names), strict=True))


@pytest.mark.parametrize(("kind", "dates"), FORMS)
def test_all_forms_by_hand(tmp_path, kind, dates):
    path = write_file(tmp_path / "data.zip", population(), kind, dates, None)
    with CohortMethodData(path) as data:
        table = data.cohort.table
        assert table.column("row_id").to_pylist() == list(range(1, 9))
        assert table.column("person_id").to_pylist() == [10 * k for k in range(1, 9)]
        assert table.column("treatment").to_pylist() == [1] * 4 + [0] * 4
        assert table.column("index_date").to_pylist() == [day(k) for k in range(1, 9)]
        assert data.outcome_ids == (3, 4)
        # From day 1 to day 400; rows 6 and 8 had the outcome before.
        expected = [(1, 400, 0), (2, 20, 1), (3, 400, 0), (4, 100, 1), (5, 400, 0), (7, 400, 0)]
        assert _people(data.follow(3, AS_STARTED)) == expected
        on_treatment = rs.omop.TimeAtRisk(risk_start=0, remove_prior_outcome=False)
        expected = [(1, 91, 0), (2, 21, 1), (3, 91, 0), (4, 91, 0)]
        expected += [(5, 91, 0), (6, 1, 1), (7, 91, 0), (8, 61, 1)]
        assert _people(data.follow(3, on_treatment)) == expected
        found = data.follow(3, on_treatment, competing=[4])
        assert _people(found)[4] == (5, 16, 2)
        design = data.covariates.design(data.follow(3, AS_STARTED))
        assert design.names == ("age in years", "gender = FEMALE")
        dense = [[51, 1], [52, 0], [53, 1], [54, 0], [55, 0], [57, 0]]
        assert design.to_dense().tolist() == dense
        ref = data.covariates.ref.to_pylist()
        wanted = ("covariate_id", "analysis_id", "concept_id", "is_binary")
        assert [[row[n] for n in wanted] for row in ref] == [
            [1002, 2, 0, False],
            [8532001, 1, 8532, True],
        ]
        assert not data.notes
        assert (data.target_id, data.comparator_id, data.metadata) == (None, None, {})


@needs_rdata
@pytest.mark.parametrize("name", ["attributes-2", "attributes-3", "attributes-xz"])
def test_attributes_that_r_has_saved(tmp_path, name):
    attributes = GOLDEN / "ohdsi" / f"{name}.rds"
    path = write_file(tmp_path / "data.zip", population(), attributes=attributes)
    with CohortMethodData(path) as data:
        assert (data.target_id, data.comparator_id) == (1, 2)
        assert data.outcome_ids == (3, 4, 5)
        assert data.metadata["populationSize"] == 8
        assert data.metadata["studyStartDate"] == "20100101"
        assert data.metadata["nestingCohortId"] is None
        steps = [
            (s.step, s.target_persons, s.comparator_exposures, s.removed_target)
            for s in data.cohort.attrition.steps
        ]
        assert steps == [
            ("Original cohorts", 6, 9, 0),
            ("First exp. only & 365 days of obs. prior", 4, 4, 4),
            ("given cohorts", 4, 4, 0),
        ]
        assert _people(data.follow(5, AS_STARTED)) == [(k, 400, 0) for k in range(1, 9)]


def test_without_rdata(tmp_path, monkeypatch):
    known = builtins.__import__

    def refuse(name, *rest):
        if name == "rdata":
            raise ImportError(name)
        return known(name, *rest)

    path = write_file(tmp_path / "data.zip", population())
    monkeypatch.setattr(builtins, "__import__", refuse)
    with CohortMethodData(path) as data:
        (note,) = data.notes
        assert note.code == "no_metadata"
        assert data.outcome_ids == (3, 4)


def test_data_of_a_model(tmp_path):
    path = write_file(tmp_path / "data.zip", population(), attributes=None)
    with CohortMethodData(path) as data:
        both = data.dataset(3, AS_STARTED)
        alone = data.dataset(3, AS_STARTED, covariates=False)
        competing = data.dataset(3, rs.omop.TimeAtRisk(remove_prior_outcome=False), competing=[4])
    assert both.design.to_dense()[:, 0].tolist() == [1, 1, 1, 1, 0, 0]
    assert both.design.to_dense()[:, 1].tolist() == [51, 52, 53, 54, 55, 57]
    assert alone.design.names == ("treatment",)
    outcome = both.outcome()
    assert outcome.time.tolist() == [400, 20, 400, 100, 400, 400]
    assert competing.outcome(cause=2).n_events == 1


def test_a_hazard_ratio_by_hand(tmp_path):
    """The first outcomes are at days 0 (6), 20 (2), 60 (8) and 100 (4).

    With r the hazard ratio, the partial likelihood is r^2 / ((4r + 4)(4r + 3)(3r + 3)(3r + 2)).
    """
    path = write_file(tmp_path / "data.zip", population(), attributes=None)
    window = rs.omop.TimeAtRisk(risk_start=0, risk_end=None, remove_prior_outcome=False)
    with CohortMethodData(path) as data:
        fit = rs.Cox().fit(data.dataset(3, window, covariates=False))

    def score(r):
        return 2 - 2 * r / (r + 1) - 4 * r / (4 * r + 3) - 3 * r / (3 * r + 2)

    assert np.exp(fit.coef_[0]) == pytest.approx(brentq(score, 0.01, 100), rel=1e-8)


def test_people_without_covariates(tmp_path):
    tables = population()
    tables["covariates"] = tables["covariates"].slice(8)
    path = write_file(tmp_path / "data.zip", tables)
    with CohortMethodData(path) as data:
        assert data.covariates.row_id.size == 8
        assert data.covariates.design().to_dense().sum() == 3
    with CovariateData(path) as data:
        assert data.covariates.row_id.tolist() == [1, 3, 6]
    with CovariateData(path, row_id=range(1, 9)) as data:
        assert data.covariates.design().to_dense().ravel().tolist() == [1, 0, 1, 0, 0, 1, 0, 0]


def test_newer_columns_and_names_twice(tmp_path):
    tables = population()
    ref = tables["covariateRef"]
    ref = with_column(ref, "covariateName", pa.array(["same", "same"]))
    ref = ref.append_column("valueAsConceptId", pa.array([None, 7.0]))
    tables["covariateRef"] = ref.append_column("collisions", pa.array([None, 2.0]))
    with CovariateData(write_file(tmp_path / "data.zip", tables)) as data:
        assert data.covariates.names == ("same [1002]", "same [8532001]")
        assert data.covariates.ref.column("collisions").to_pylist() == [2, 0]
        assert data.covariates.ref.column("value_as_concept_id").to_pylist() == [7, 0]


def test_large_ids_are_kept_exactly(tmp_path):
    large = float(2**53 - 1)
    for kind in ("duckdb", "sqlite"):
        tables = population()
        ids = tables["covariates"].column("covariateId").to_pylist()
        made = pa.array([large if k == 1002 else k for k in ids])
        tables["covariates"] = with_column(tables["covariates"], "covariateId", made)
        ref = with_column(tables["covariateRef"], "covariateId", pa.array([8532001.0, large]))
        tables["covariateRef"] = ref
        with CovariateData(write_file(tmp_path / f"{kind}.zip", tables, kind)) as data:
            assert data.covariates.ids == (8532001, 2**53 - 1)


def _changed(table, column, values):
    def change(tables):
        tables[table] = with_column(tables[table], column, pa.array(values))

    return change


def _without(table, column=None):
    def change(tables):
        if column is None:
            del tables[table]
        else:
            tables[table] = tables[table].drop_columns([column])

    return change


FAULTS = {
    "BadFile": (
        _changed("cohorts", "rowId", [1.5, *range(2, 9)]),
        "rowId of table cohorts of data.zip",
    ),
    "BadFile 2": (_changed("cohorts", "rowId", [2.0**53, *range(2, 9)]), "below 2\\^53"),
    "BadFile 3": (
        _changed("outcomes", "daysToEvent", [None, *[1.0] * 7]),
        "daysToEvent of table outcomes",
    ),
    "BadFile 4": (_changed("cohorts", "cohortStartDate", ["31.12.2015"] * 8), "must hold a date"),
    "DuplicateId": (_changed("cohorts", "rowId", [1.0, 1.0, *range(3, 9)]), "row_id"),
    "BadTreatment": (_changed("cohorts", "treatment", [2.0, *[0.0] * 7]), "must be 1 or 0"),
    "BadCohort": (_changed("cohorts", "daysToObsEnd", [-1.0, *[400.0] * 7]), "at least 0"),
    "UnknownRow": (_changed("outcomes", "rowId", [*[2.0] * 7, 99.0]), "has the row 99"),
    "DuplicateId 2": (_changed("covariates", "rowId", [1.0] * 11), "more than once"),
    "MissingTable": (_without("outcomes"), "no table outcomes; it has"),
    "MissingColumn": (_without("cohorts", "daysToCohortEnd"), "no column daysToCohortEnd"),
    "AggregatedCovariates": (_without("covariates", "rowId"), "aggregated = FALSE"),
}


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
@pytest.mark.parametrize("name", FAULTS)
def test_faults_name_their_place(tmp_path, name, kind):
    change, message = FAULTS[name]
    tables = population()
    change(tables)
    path = write_file(tmp_path / "data.zip", tables, kind, "text")
    with pytest.raises(rs.CohortError, match=message) as caught:
        CohortMethodData(path)
    assert caught.value.code == name.split()[0]
    assert caught.value.hint


def test_what_is_not_such_a_file(tmp_path):
    path = tmp_path / "data.zip"
    with pytest.raises(rs.CohortError, match="there is no file"):
        CohortMethodData(path)
    path.write_bytes(b"no archive")
    with pytest.raises(rs.CohortError, match="data.zip is not a complete zip archive"):
        CohortMethodData(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(rs.CohortError, match="data.zip has 0 databases in it"):
        CohortMethodData(path)
    for kind in ("duckdb", "sqlite"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"file.{kind}", b"nothing that a database reads" * 1000)
        message = f"the database in data.zip is damaged: file.{kind} cannot be"
        with pytest.raises(rs.CohortError, match=message) as caught:
            CohortMethodData(path)
        assert caught.value.code == "BadFile"


NAMES = ["..\\file.duckdb", ".duckdb", "Fälle 女.DUCKDB", 'it\'s "x".duckdb']


@pytest.mark.parametrize("name", NAMES)
def test_names_of_members_lead_nowhere(tmp_path, name):
    """DuckDB takes a backslash for a step between folders."""
    path = write_file(tmp_path / "data.zip", population(), attributes=None)
    with zipfile.ZipFile(path) as archive:
        content = archive.read("filedata.duckdb")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
        archive.writestr("._" + name, b"a note of macOS")
        archive.writestr("../file.duckdb", b"not this one")
    with CohortMethodData(path) as data:
        assert data.cohort.table.num_rows == 8


def test_an_archive_that_would_fill_the_disk(tmp_path, monkeypatch):
    path = write_file(tmp_path / "data.zip", population())
    free = SimpleNamespace(free=1000)
    monkeypatch.setattr("riskset.ohdsi.andromeda.disk_usage", lambda _: free)
    with pytest.raises(rs.CohortError, match=r"data.zip needs 0.0 GB on the disk") as caught:
        CohortMethodData(path)
    assert "spill_folder" in caught.value.hint


@needs_rdata
def test_damaged_attributes(tmp_path):
    broken = tmp_path / "broken.rds"
    broken.write_bytes(b"not of R")
    path = write_file(tmp_path / "data.zip", population(), attributes=broken)
    with pytest.raises(rs.CohortError, match="cannot be read as a file of R") as caught:
        CohortMethodData(path)
    assert caught.value.code == "BadFile"


def test_an_outcome_that_is_not_there():
    from riskset.datasets import cohort_method_path

    with CohortMethodData(cohort_method_path()) as data, pytest.raises(rs.InputError, match="9"):
        data.follow(9)


def test_the_bundled_example_is_that_of_the_tests(tmp_path):
    from riskset.datasets import cohort_method_path

    path = write_file(tmp_path / "data.zip", population(), "sqlite", "number")
    with CohortMethodData(path) as made, CohortMethodData(cohort_method_path()) as bundled:
        assert made.cohort.table.equals(bundled.cohort.table)
        assert made.outcomes.equals(bundled.outcomes)
        assert np.array_equal(
            made.covariates.design().to_dense(), bundled.covariates.design().to_dense()
        )
