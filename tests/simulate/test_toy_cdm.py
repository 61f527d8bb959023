"""The toy CDM has the rows that another program, which knows no arrays, makes of its rules."""

import numpy as np
import pytest

import riskset as rs
from omop.toy import EXPECTED, checksum, rows, toy_tables
from riskset.simulate.toy_rows import Draws


@pytest.mark.parametrize("name", EXPECTED["rows"])
def test_rows(name):
    table = toy_tables()[name]
    assert table.num_rows == EXPECTED["rows"][name]
    assert checksum(rows(table)) == EXPECTED["sha256"][name]


def test_tables():
    assert set(toy_tables()) == set(EXPECTED["rows"])


def test_draws():
    """FNV-1a by its definition, and the first number of splitmix64 from it."""

    def by_definition(text):
        h = 0xCBF29CE484222325
        for byte in text.encode():
            h = ((h ^ byte) * 0x100000001B3) % 2**64
        h = (h + 0x9E3779B97F4A7C15) % 2**64
        h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) % 2**64
        return ((h ^ (h >> 31)) >> 11) / 2**53

    persons = np.array([1, 9, 10, 123456])
    assert Draws(persons)("sex").tolist() == [by_definition(f"54|{p}|sex") for p in persons]


def test_a_larger_set_holds_the_smaller():
    few = rs.simulate.toy_tables(1)
    for name in ("person", "drug_exposure", "condition_occurrence"):
        whole = [row for row in rows(toy_tables()[name]) if row[1 if name != "person" else 0] == 1]
        assert rows(few[name]) == whole


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_files(tmp_path, file_format):
    n_rows = rs.simulate.toy_cdm(tmp_path / "new" / "toy", 60, file_format=file_format)
    assert n_rows["person"] == 60
    assert len(list((tmp_path / "new" / "toy").glob(f"*.{file_format}"))) == 13
    with rs.omop.Cdm(tmp_path / "new" / "toy") as cdm:
        assert {name: cdm.n_rows(name) for name in cdm.tables} == n_rows
        memory = rs.simulate.toy_tables(60)
        columns = ("person_id", "drug_concept_id", "drug_exposure_start_date")
        assert rows(cdm.arrow("drug_exposure"), *columns) == rows(memory["drug_exposure"], *columns)


def test_messages(tmp_path):
    with pytest.raises(rs.InputError, match="'csv' or 'parquet', but it is 'xlsx'"):
        rs.simulate.toy_cdm(tmp_path, file_format="xlsx")
    with pytest.raises(rs.InputError, match="n_persons"):
        rs.simulate.toy_cdm(tmp_path, 0)
