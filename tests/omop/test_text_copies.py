"""Large files of text are parsed once: their Parquet copies give the same tables."""

import os
import zipfile

import pytest

import riskset as rs
from omop.toy import AT_RISK, COMPARATOR, ELIGIBILITY, OUTCOME, TARGET
from riskset.omop import sources


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A CDM in files of text, of which those of 100 kB or more are copied."""
    monkeypatch.setattr(sources, "LEAST_COPIED", 100_000)
    rs.simulate.toy_cdm(tmp_path / "cdm", 500, file_format="csv")
    return tmp_path / "cdm"


def answers(source, **options):
    with rs.omop.Cdm(source, **options) as cdm:
        cohort = ELIGIBILITY.select(cdm, rs.omop.NewUserCohort(TARGET, COMPARATOR).read(cdm))
        covariates = rs.omop.Covariates.extract(cdm, cohort)
        followed = AT_RISK.follow(cdm, cohort, OUTCOME)
        tables = {name: cdm.arrow(name) for name in cdm.tables}
        return tables, covariates.table, covariates.ref, followed.table, covariates.notes


def copies(place):
    return sorted(path.name for path in place.glob("*.parquet"))


def test_a_copy_is_the_same_table(folder, tmp_path):
    plain = answers(folder, cache_days=0)
    place = tmp_path / "copies"
    assert answers(folder, cache_folder=place) == plain
    n_large = sum(file.stat().st_size >= 100_000 for file in folder.iterdir())
    assert len(copies(place)) == n_large > 2
    times = {path: path.stat().st_mtime_ns for path in place.iterdir()}
    assert answers(folder, cache_folder=place) == plain
    assert {path: path.stat().st_mtime_ns for path in place.iterdir()} == times


def test_a_changed_file_is_parsed_again(folder, tmp_path):
    place, file = tmp_path / "copies", folder / "measurement.csv"
    before = answers(folder, cache_folder=place)
    known = copies(place)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], *lines[2:]]))
    after = answers(folder, cache_folder=place)
    assert after[0]["measurement"].num_rows == before[0]["measurement"].num_rows - 1
    assert len(copies(place)) == len(known) + 1
    os.utime(file, ns=(0, 0))
    answers(folder, cache_folder=place)
    assert len(copies(place)) == len(known) + 2


def test_a_changed_file_of_the_same_size_and_time_is_parsed_again(folder, tmp_path):
    """As `cp -p` and `tar` leave one."""
    file, time = folder / "measurement.csv", (folder / "measurement.csv").stat().st_mtime_ns
    before = answers(folder, cache_folder=tmp_path / "copies")[0]["measurement"]
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], *reversed(lines[1:])]))
    os.utime(file, ns=(time, time))
    after = answers(folder, cache_folder=tmp_path / "copies")[0]["measurement"]
    assert after != before
    assert after.to_pylist() == before.to_pylist()[::-1]


def test_an_archive_is_unpacked_once(folder, tmp_path, monkeypatch):
    archive, place = tmp_path / "cdm.zip", tmp_path / "copies"
    with zipfile.ZipFile(archive, "w") as content:
        for file in folder.iterdir():
            content.write(file, file.name)
    plain = answers(archive, cache_days=0)
    assert answers(archive, cache_folder=place) == plain
    unpacked = []
    real = zipfile.ZipFile.extract
    monkeypatch.setattr(
        zipfile.ZipFile,
        "extract",
        lambda self, name, *rest: (unpacked.append(name), real(self, name, *rest))[1],
    )
    assert answers(archive, cache_folder=place) == plain
    sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    assert unpacked
    assert all(sizes[name] < 100_000 for name in unpacked)


def test_faults_are_those_of_the_file(folder, tmp_path):
    file = folder / "measurement.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, lines[-1].replace("20", "x", 1).rsplit(",", 1)[0] + "\n"]))
    for options in ({"cache_days": 0}, {"cache_folder": tmp_path / "copies"}):
        with pytest.raises(rs.CohortError, match="of measurement.csv has") as caught:
            answers(folder, **options)
        assert caught.value.code == "BadFile"
    file.write_text("".join(lines).replace("2015-", "15/"))
    for options in ({"cache_days": 0}, {"cache_folder": tmp_path / "copies"}) * 2:
        match = r"column measurement_date of table measurement \(measurement.csv\) must hold a date"
        with pytest.raises(rs.CohortError, match=match) as caught:
            answers(folder, **options)
        assert caught.value.code == "BadDate"


def test_by_default_copies_are_in_the_users_cache(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("RISKSET_CACHE", str(tmp_path / "cache"))
    answers(folder)
    assert copies(tmp_path / "cache")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RISKSET_CACHE", str(tmp_path / "file"))
    assert answers(folder) == answers(folder, cache_days=0)  # nothing can be kept: it works
    with pytest.raises(rs.InputError, match="is a file"):
        answers(folder, cache_folder=tmp_path / "file")


def test_a_study_keeps_copies_and_spills_beside_its_steps(folder, tmp_path, monkeypatch):
    seen = []
    real = rs.omop.Cdm.__init__

    def init(self, *arguments, **options):
        seen.append(options)
        real(self, *arguments, **options)

    monkeypatch.setattr(rs.omop.Cdm, "__init__", init)
    text = """
title: Copies
data: {cdm: cdm}
exposures: {a: {concepts: [974166, 1395058]}, b: {concepts: [1308216, 1341927]}}
comparisons: [{target: a, comparator: b}]
outcomes: {heart failure: {concepts: [316139]}}
analyses: {crude: {propensity: none, covariates: {analyses: [1, 3]}}}
"""
    steps = tmp_path / "out" / "steps"
    (steps / "spill" / "left by a killed run").mkdir(parents=True)
    rs.study.run(rs.study.Study.parse(text, tmp_path), tmp_path / "out")
    assert copies(steps / "tables")
    assert seen[0]["spill_folder"] == steps / "spill"
    assert list((steps / "spill").iterdir()) == []
