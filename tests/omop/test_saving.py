"""Populations and their settings on disk and back."""

import datetime

import pyarrow as pa
import pytest

import riskset as rs
from omop.toy import COMPETING, ELIGIBILITY, cohort, episodes, population, toy


def test_every_step_comes_back(tmp_path):
    for name, made in (("e", episodes()), ("c", cohort()), ("p", population())):
        rs.omop.save(made, tmp_path / name)
        found = rs.omop.load(tmp_path / name)
        assert type(found) is type(made)
        assert found.table.schema.equals(made.table.schema)
        assert found.table.equals(made.table)
        assert found.settings == made.settings
        assert found.notes == made.notes
        assert repr(found) == repr(made)
    assert found.attrition.steps == population().attrition.steps
    assert (found.outcome == population().outcome).all()
    assert (tmp_path / "p" / "table_1.parquet").is_file()


def test_covariates_in_a_database_come_back(tmp_path):
    made = rs.omop.Covariates.extract(toy(), cohort(), rs.omop.CovariateSettings((1, 3, 202)))
    rs.omop.save(made, tmp_path / "x")
    found = rs.omop.load(tmp_path / "x")
    assert found.table.equals(made.table)
    assert found.ref.equals(made.ref)
    assert (found.settings, found.notes, found.ids) == (made.settings, made.notes, made.ids)
    assert found.design(population()).to_dense().tobytes() == (
        made.design(population()).to_dense().tobytes()
    )


def test_settings_come_back(tmp_path):
    settings = [
        ELIGIBILITY,
        rs.omop.Eligibility(study_start=datetime.date(2015, 1, 1), min_age=18),
        rs.omop.TimeAtRisk(risk_end=None, end_anchor="observation end"),
        COMPETING,
        rs.omop.CovariateSettings(custom=[rs.omop.CustomCovariates(950, "SELECT 1")]),
        rs.omop.CohortRecords(7, "cohort"),
    ]
    rs.omop.save(settings, tmp_path / "s")
    assert rs.omop.load(tmp_path / "s") == settings


def test_results_of_both_are_read(tmp_path):
    people = rs.cohort.Population([1, 0])
    rs.cohort.save(people, tmp_path / "a")
    assert rs.omop.load(tmp_path / "a").n_rows == 2
    rs.omop.save(population(), tmp_path / "b")
    with pytest.raises(rs.InputError, match="'StudyPopulation' was not found"):
        rs.cohort.load(tmp_path / "b")
    (tmp_path / "b" / "table_1.parquet").write_bytes(b"")
    with pytest.raises(rs.InputError, match="is damaged"):
        rs.omop.load(tmp_path / "b")


def test_frames_in_settings_cannot_be_saved(tmp_path):
    frame = rs.omop.CohortRecords(1, pa.table({"a": [1]}))
    rs.omop.save(frame, tmp_path / "f")  # an Arrow table can
    assert rs.omop.load(tmp_path / "f").source.equals(frame.source)
    with pytest.raises(rs.InputError, match="source is a set, which cannot be saved"):
        rs.omop.save(rs.omop.CohortRecords(1, {1}), tmp_path / "g")
    assert not (tmp_path / "g").exists()
