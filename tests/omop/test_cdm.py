"""Reading a CDM: every kind of source, loose types, and the faults with their words."""

import datetime
import zipfile
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from omop.toy import COMPARATOR, TARGET, rows, toy_tables

PERIODS = {
    "person_id": [1, 2],
    "observation_period_start_date": ["2010-01-01", "2011-01-01"],
    "observation_period_end_date": ["2019-12-31", "2019-12-31"],
}


def periods_of(cdm):
    view = cdm.view("observation_period", tuple(PERIODS))
    with cdm.scratch() as work:
        return work.rows(f"SELECT * FROM {view} ORDER BY 1")


def day(text):
    return datetime.date.fromisoformat(text)


CLEAN = [
    (1, day("2010-01-01"), day("2019-12-31")),
    (2, day("2011-01-01"), day("2019-12-31")),
]


# -------------------------------------------------------------------- sources


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cdm")
    for name, table in toy_tables().items():
        pq.write_table(table, place / f"{name.upper()}.parquet")
    (place / "._person.parquet").write_bytes(b"\0" * 163)
    (place / "notes.txt").write_text("no table")
    return place


def new_users(cdm):
    with cdm:
        return rs.omop.NewUserCohort(TARGET, COMPARATOR).read(cdm).table


@pytest.fixture(scope="module")
def expected():
    return new_users(rs.omop.Cdm(toy_tables()))


def test_folder(folder, expected):
    assert new_users(rs.omop.Cdm(folder)).equals(expected)
    assert new_users(rs.omop.Cdm(str(folder.parent) + f"/{folder.name}")).equals(expected)


def test_archive(folder, expected, tmp_path):
    with zipfile.ZipFile(tmp_path / "cdm.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"toy/{file.name}")
        archive.write(folder / "._person.parquet", "__MACOSX/toy/person.parquet")
    assert new_users(rs.omop.Cdm(tmp_path / "cdm.zip")).equals(expected)


def test_tables_in_parts(expected, tmp_path):
    for name, own in toy_tables().items():
        (tmp_path / name).mkdir()
        half = own.num_rows // 2
        for k, part in enumerate((own.slice(0, half), own.slice(half))):
            pq.write_table(part, tmp_path / name / f"part-{k}.parquet")
    with rs.omop.Cdm(tmp_path) as cdm:
        assert (repr(cdm), cdm.tables[0]) == (
            "Cdm(2,000 persons, version 5.4, 13 tables)",
            "cdm_source",
        )
    assert new_users(rs.omop.Cdm(tmp_path)).equals(expected)
    (tmp_path / "drug_exposure" / "part-1.parquet").write_bytes(b"PAR1")
    with pytest.raises(rs.CohortError, match=r"part-1\.parquet is not a complete Parquet"):
        new_users(rs.omop.Cdm(tmp_path))
    for part in (tmp_path / "drug_exposure").iterdir():
        part.unlink()
    with pytest.raises(rs.CohortError, match="folder drug_exposure of .* holds no Parquet file"):
        new_users(rs.omop.Cdm(tmp_path))


def test_duckdb_schemas(expected, tmp_path):
    tables = toy_tables()
    with duckdb.connect(tmp_path / "data.duckdb") as connection:
        connection.execute("CREATE SCHEMA cdm; CREATE SCHEMA Vocab")
        for name, table in tables.items():
            schema = "Vocab" if name.startswith("concept") else "cdm"
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {schema}.{name.upper()} AS SELECT * FROM given")
            connection.unregister("given")
    source = tmp_path / "data.duckdb"
    assert new_users(rs.omop.Cdm(source, schema=("CDM", "vocab"))).equals(expected)
    with pytest.raises(rs.InputError, match="schema 'cmd' was not found") as raised:
        rs.omop.Cdm(source, schema="cmd")
    assert "did you mean 'cdm'" in str(raised.value)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "csv"])
def test_frames(library, tmp_path):
    frame = pa.table({k.upper(): v for k, v in PERIODS.items()})
    if library == "csv":
        frame.to_pandas().to_csv(tmp_path / "Observation_Period.csv", index=False)
        source = tmp_path
    else:
        own = {"pandas": frame.to_pandas, "polars": lambda: pl.from_arrow(frame)}
        source = {"observation_period": own.get(library, lambda: frame)()}
    with rs.omop.Cdm(source) as cdm:
        assert periods_of(cdm) == CLEAN
        assert repr(cdm) == "Cdm(0 persons, unknown version, 1 table)"


@pytest.mark.parametrize(
    "dates",
    [
        ["2010-01-01", "2011-01-01"],
        [" 2010-01-01 00:00:00", "2011-01-01T10:30:00Z"],
        ["20100101", "2011-01-01"],
        [20100101, 20110101],
        [20100101.0, 20110101.0],
        [day("2010-01-01"), day("2011-01-01")],
        np.array(["2010-01-01", "2011-01-01T23:59"], "datetime64[us]"),
        pa.array(np.array(["2010-01-01", "2011-01-01T23:59"], "datetime64[us]")).cast(
            pa.timestamp("us", "UTC")
        ),
        pa.array(["20100101", "20110101"]).dictionary_encode(),
    ],
    ids=lambda dates: str(getattr(dates, "type", dates))[:40].replace("/", "-"),
)
@pytest.mark.parametrize(
    "ids",
    [
        ["1", "2"],
        [1.0, 2.0],
        [Decimal("1.000"), Decimal("2.000")],
        pa.array([1, 2], pa.int32()),
        pa.array([1, 2], pa.uint64()),
    ],
    ids=lambda ids: str(getattr(ids, "type", type(ids[0]).__name__)),
)
def test_types(dates, ids):
    own = {"person_id": ids, "observation_period_start_date": dates}
    with rs.omop.Cdm({"observation_period": pa.table(PERIODS | own)}) as cdm:
        assert periods_of(cdm) == CLEAN


def test_missing_values_stay_missing():
    frame = pd.DataFrame(
        {
            "person_id": [1.0, np.nan],
            "observation_period_start_date": ["2010-01-01", ""],
            "observation_period_end_date": [pd.NaT, pd.Timestamp("2019-12-31")],
        }
    )
    with rs.omop.Cdm({"observation_period": frame}) as cdm:
        assert periods_of(cdm) == [(1, day("2010-01-01"), None), (None, None, day("2019-12-31"))]


def test_large_ids_are_exact():
    with rs.omop.Cdm(
        {"observation_period": pa.table(PERIODS | {"person_id": [2**53 + 1, 7]})}
    ) as cdm:
        assert [row[0] for row in periods_of(cdm)] == [7, 2**53 + 1]


# -------------------------------------------------------------------- faults


def code_of(raised):
    return raised.value.code


@pytest.mark.parametrize(
    ("column", "values", "code", "words"),
    [
        ("person_id", ["1", "abc"], "BadId", "1 value is not one (such as 'abc')"),
        ("person_id", [1.5, 2.0], "BadId", "'1.5'"),
        ("person_id", [2.0**53, 2.0], "BadId", "whole number of 64 bits"),
        ("person_id", pa.array([2**63, 1], pa.uint64()), "BadId", "9223372036854775808"),
        ("person_id", [Decimal("1.5"), Decimal("2.0")], "BadId", "1.5"),
        ("observation_period_end_date", ["31.12.2019"] * 2, "BadDate", "2 values are not one"),
        ("observation_period_end_date", ["2019-02-30", "2019-12-31"], "BadDate", "2019-02-30"),
        ("observation_period_end_date", [20191331, 20191231], "BadDate", "20191331"),
        ("observation_period_end_date", ["12/31/19", None], "BadDate", "as 2020-01-31 or 20200131"),
        ("observation_period_end_date", [True, False], "BadDate", "true"),
    ],
)
def test_bad_values(column, values, code, words):
    table = pa.table(PERIODS | {column: values})
    with (
        rs.omop.Cdm({"observation_period": table}) as cdm,
        pytest.raises(rs.CohortError) as raised,
    ):
        periods_of(cdm)
    assert code_of(raised) == code
    assert words in str(raised.value)
    assert f"column {column} of table observation_period" in str(raised.value)
    assert raised.value.details["column"] == column
    assert 1 <= len(raised.value.details["examples"]) <= 3


def test_bad_values_name_the_file(tmp_path):
    (tmp_path / "death.csv").write_text("person_id,death_date\n1,soon\n")
    with rs.omop.Cdm(tmp_path) as cdm, pytest.raises(rs.CohortError, match=r"\(death\.csv\)"):
        cdm.view("death", ("person_id", "death_date"))


def test_missing_tables_and_columns():
    with rs.omop.Cdm({"Person": pa.table({"person_id": [1]})}) as cdm:
        with pytest.raises(rs.CohortError, match="has no table observation_period") as raised:
            periods_of(cdm)
        assert code_of(raised) == "MissingTable"
        assert "there are: person" in str(raised.value)
        with pytest.raises(rs.CohortError, match="has no column gender_concept_id") as raised:
            cdm.view("person", ("person_id", "gender_concept_id"))
        assert code_of(raised) == "MissingColumn"
        assert "it has person_id" in str(raised.value)
        empty = cdm.view("death", ("person_id", "death_date"), needed=False)
        with cdm.scratch() as work:
            assert work.rows(f"SELECT * FROM {empty}") == []
        assert [(n.code, "death" in n.message) for n in cdm.notes] == [("missing_table", True)]


def test_bad_files(tmp_path):
    (tmp_path / "person.parquet").write_bytes(b"\0" * 163)
    (tmp_path / "death.csv").write_bytes(b"")
    with rs.omop.Cdm(tmp_path) as cdm:
        for table, words in (("person", "not a complete Parquet file"), ("death", "is empty")):
            with pytest.raises(rs.CohortError, match=words) as raised:
                cdm.n_rows(table)
            assert code_of(raised) == "BadFile"
            assert raised.value.details["file"].startswith(str(tmp_path / table))
    (tmp_path / "cdm.zip").write_bytes(b"PK")
    with pytest.raises(rs.CohortError, match=r"cdm\.zip is not a complete zip") as raised:
        rs.omop.Cdm(tmp_path / "cdm.zip")
    assert code_of(raised) == "BadFile"


def test_two_files_for_one_table(tmp_path):
    for name in ("person.csv", "PERSON.csv.gz"):
        (tmp_path / name).write_text("person_id\n1\n")
    with pytest.raises(rs.CohortError, match="two files for the table person") as raised:
        rs.omop.Cdm(tmp_path)
    assert code_of(raised) == "AmbiguousTable"


def test_sources_that_are_none(tmp_path):
    with pytest.raises(rs.InputError, match="there is no file or folder"):
        rs.omop.Cdm(tmp_path / "nowhere")
    with pytest.raises(rs.InputError, match="mapping of table names to data frames"):
        rs.omop.Cdm(pa.table(PERIODS))
    (tmp_path / "person.csv").write_text("person_id\n1\n")
    with pytest.raises(rs.InputError, match="one file, but a CDM has many tables"):
        rs.omop.Cdm(tmp_path / "person.csv")


@pytest.mark.parametrize(
    ("written", "version"), [("v5.4", "5.4"), ("5.4", "5.4"), ("CDM v5.3.1", "5.3")]
)
def test_versions(written, version):
    with rs.omop.Cdm({"cdm_source": pa.table({"cdm_version": [written]})}) as cdm:
        assert (cdm.version, cdm.notes) == (version, ())


def test_unknown_version():
    with pytest.warns(rs.RisksetWarning, match=r"version '6\.0', but riskset knows 5\.3 and 5\.4"):
        cdm = rs.omop.Cdm({"cdm_source": pa.table({"cdm_version": ["6.0"]})})
    assert [note.code for note in cdm.notes] == ["unknown_version"]
    cdm.close()


# -------------------------------------------------------------------- concepts, cohorts


def test_concept_sets():
    heart = rs.omop.ConceptSet([321588], exclude=[4329847])
    with rs.omop.Cdm(toy_tables()) as cdm:
        assert heart.ids(cdm) == (313217, 316139, 317576, 321588)
        assert rs.omop.ConceptSet([321588], descendants=False).ids(cdm) == (321588,)
        assert rs.omop.ConceptSet([99], descendants=True).ids(cdm) == (99,)
        assert rs.omop.ConceptSet([]).ids(cdm) == ()


@pytest.mark.parametrize("bad", [0, -1, 1.5, "316139", True])
def test_bad_concepts(bad):
    with pytest.raises(rs.CohortError, match="whole numbers above 0") as raised:
        rs.omop.ConceptSet([316139, bad])
    assert code_of(raised) == "BadConcept"


def test_empty_concept_ancestor():
    ancestors = toy_tables()["concept_ancestor"].slice(0, 0)
    for tables, word in (({}, "missing"), ({"concept_ancestor": ancestors}, "empty")):
        with (
            rs.omop.Cdm(tables) as cdm,
            pytest.raises(
                rs.CohortError, match=f"concept_ancestor of data frames is {word}"
            ) as raised,
        ):
            rs.omop.ConceptSet([974166]).ids(cdm)
        assert code_of(raised) == "EmptyConceptAncestor"
        assert "descendants=False" in str(raised.value)


def cohort_table(**columns):
    given = {
        "cohort_definition_id": [1, 2],
        "subject_id": [1, 3],
        "cohort_start_date": ["2015-01-01", "2015-01-02"],
        "cohort_end_date": ["2014-12-31", None],
    }
    return pa.table(given | columns)


def test_cohorts_in_a_file(tmp_path):
    pq.write_table(cohort_table(), tmp_path / "cohorts.parquet")
    with rs.omop.Cdm({"observation_period": pa.table(PERIODS)}) as cdm:
        for source in (tmp_path / "cohorts.parquet", str(tmp_path / "cohorts.parquet")):
            assert rs.omop.CohortTable(1, 2, source).read(cdm).table.num_rows == 2


def test_ends_before_starts_are_counted():
    tables = {"observation_period": pa.table(PERIODS), "cohort": cohort_table()}
    with rs.omop.Cdm(tables) as cdm:
        found = rs.omop.CohortTable(1, 2).read(cdm)
    starts = rows(found.table, "start_date")
    assert rows(found.table, "end_date") == starts == [(day("2015-01-01"),), (day("2015-01-02"),)]
    assert [note.message for note in found.notes] == [
        "1 record of the cohorts ended before the start, and now end on it."
    ]


def test_bad_cohorts():
    with rs.omop.Cdm({"observation_period": pa.table(PERIODS)}) as cdm:
        incomplete = cohort_table(subject_id=[1, None])
        with pytest.raises(
            rs.CohortError, match="1 record of cohort 2 has no subject_id"
        ) as raised:
            rs.omop.CohortTable(1, 2, incomplete).read(cdm)
        assert code_of(raised) == "BadCohort"
        with pytest.raises(rs.CohortError, match="both cohort 1"):
            rs.omop.CohortTable(1, 1).read(cdm)
        with pytest.raises(rs.CohortError, match="no table cohort"):
            rs.omop.CohortTable(1, 2).read(cdm)


def test_unknown_persons():
    tables = {"observation_period": pa.table(PERIODS), "person": pa.table({"person_id": [1, 2]})}
    with rs.omop.Cdm(tables) as cdm:
        both = rs.omop.CohortTable(1, 2, cohort_table()).read(cdm)
        with pytest.raises(rs.CohortError, match=r"1 person of the cohorts has no row") as raised:
            rs.omop.Eligibility().select(cdm, both)
    assert code_of(raised) == "UnknownPerson"
    assert raised.value.details == {"count": 1, "ids": [3]}


def test_bad_birth_dates():
    person = pa.table({"person_id": [1, 3], "year_of_birth": [1880, 2016]})
    tables = {"observation_period": pa.table(PERIODS | {"person_id": [1, 3]}), "person": person}
    with rs.omop.Cdm(tables) as cdm:
        both = rs.omop.CohortTable(1, 2, cohort_table()).read(cdm)
        with pytest.raises(rs.CohortError, match="2 people would be younger") as raised:
            rs.omop.Eligibility(min_age=18, restrict_to_common_period=False).select(cdm, both)
    assert code_of(raised) == "BadBirthDate"
    assert "person 1: 135, person 3: -1" in str(raised.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rs.omop.Eligibility(washout_days=-1), "whole number of days of at least 0"),
        (lambda: rs.omop.Eligibility(remove_duplicates="keep frist"), "did you mean 'keep first'"),
        (lambda: rs.omop.Eligibility(study_start="01/02/2015"), "must be a date"),
        (lambda: rs.omop.Eligibility(max_cohort_size=0), "at least 1"),
        (lambda: rs.omop.Eligibility(age_method="years"), "age_method"),
        (lambda: rs.omop.TimeAtRisk(min_days_at_risk=0), "of at least 1, but it is 0"),
        (lambda: rs.omop.TimeAtRisk(risk_start=0.5), "`risk_start` must be a whole number"),
        (lambda: rs.omop.TimeAtRisk(end_anchor="cohort_end"), "did you mean 'cohort end'"),
        (lambda: rs.omop.TimeAtRisk(start_anchor="index"), "start_anchor"),
        (lambda: rs.omop.NewUserCohort(TARGET, COMPARATOR, gap_days=-1), "gap_days"),
        (lambda: rs.omop.NewUserCohort(TARGET, COMPARATOR, source="drugs"), "'drug_exposure'"),
    ],
)
def test_bad_settings(make, words):
    with pytest.raises(rs.InputError, match=words):
        make()


# -------------------------------------------------------------------- study cohorts, statuses


def given_cohort(**columns):
    given = {
        "person_id": [7, 3],
        "treatment": [1, 0],
        "index_date": ["2015-01-01", "20150301"],
        "days_from_obs_start": [400, 500],
        "days_to_cohort_end": [9, 0],
        "days_to_obs_end": [99, 0],
    }
    return pa.table(given | columns)


def test_study_cohorts_from_tables():
    given = rs.omop.StudyCohort.from_table(given_cohort())
    names = ("row_id", "person_id", "treatment", "index_date", "days_to_obs_end", "obs_end_reason")
    assert rows(given.table, *names) == [
        (1, 3, 0, day("2015-03-01"), 0, "observation end"),
        (2, 7, 1, day("2015-01-01"), 99, "observation end"),
    ]
    assert given.attrition.steps[0].target_persons == 1
    again = rs.omop.StudyCohort.from_table(given.table)
    assert again.table.equals(given.table)


@pytest.mark.parametrize(
    ("column", "values", "code", "words"),
    [
        ("days_to_obs_end", [99, -1], "BadCohort", r"in 1 row it is not \(such as of person 3\)"),
        ("days_to_cohort_end", [None, 1], "BadCohort", "must be at least 0"),
        ("treatment", [1, 2], "BadTreatment", "must be 1 or 0"),
        ("index_date", [None, None], "BadCohort", "in 2 rows"),
    ],
)
def test_bad_study_cohorts(column, values, code, words):
    with pytest.raises(rs.CohortError, match=words) as raised:
        rs.omop.StudyCohort.from_table(given_cohort(**{column: values}))
    assert code_of(raised) == code


@pytest.mark.parametrize(("washout", "status"), [(1461, "one_arm_empty"), (1523, "empty")])
def test_statuses(washout, status):
    """Person 1 is observed for 1460 days before index, person 3 for 1522."""
    periods = PERIODS | {
        "person_id": [1, 3],
        "observation_period_start_date": ["2011-01-01", "2011-01-01"],
    }
    tables = {"observation_period": pa.table(periods), "death": death_table(), "cohort": late()}
    rules = rs.omop.Eligibility(washout_days=washout, restrict_to_common_period=False)
    with rs.omop.Cdm(tables) as cdm:
        both = rs.omop.CohortTable(1, 2).read(cdm)
        found = rules.select(cdm, both)
        assert found.status == status
        with pytest.raises(
            rs.CohortError, match=f"{washout:,} days of prior observation"
        ) as raised:
            rules.select(cdm, both, strict=True)
        assert code_of(raised) == status
        followed = rs.omop.TimeAtRisk().follow(cdm, found, "death")
        assert (followed.status, followed.table.num_rows) == (status, int(status != "empty"))
        with pytest.raises(rs.CohortError):
            rs.omop.TimeAtRisk().follow(cdm, found, "death", strict=True)
        covariates = rs.omop.Covariates.extract(cdm, found, rs.omop.CovariateSettings((6, 202)))
        assert covariates.design().n_rows == found.table.num_rows


def death_table():
    return pa.table(
        {"person_id": pa.array([], pa.int64()), "death_date": pa.array([], pa.date32())}
    )


def late():
    return cohort_table(
        cohort_start_date=["2014-12-31", "2015-03-03"], cohort_end_date=["2015-02-01", "2015-04-01"]
    )
