"""Files as R's Andromeda writes them, made in both of its forms, and a small population."""

import datetime
import sqlite3
import zipfile
from contextlib import closing

import duckdb
import pyarrow as pa

from reference import GOLDEN

ATTRIBUTES = GOLDEN / "ohdsi" / "attributes-3.rds"
"""Made by R: tests/golden/ohdsi/make_attributes.R."""

START = datetime.date(2015, 1, 1)
EPOCH = datetime.date(1970, 1, 1)


def day(number):
    return START + datetime.timedelta(days=number)


def population():
    """Eight people, of whom 1 to 4 are of the target; all are observed for 400 days.

    Row 2 has outcome 3 on day 20 and again on day 50, row 4 on day 100, row 6 on day 0 and 30, and
    row 8 on day -10 and 60. Row 5 has outcome 4 on day 15. Nobody has outcome 5.
    """
    rows = range(1, 9)
    return {
        "cohorts": pa.table(
            {
                "rowId": pa.array(map(float, rows)),
                "personSeqId": pa.array([10.0 * k for k in rows]),
                "personId": [str(1000 + k) for k in rows],
                "treatment": pa.array([1.0] * 4 + [0.0] * 4),
                "cohortStartDate": [day(k) for k in rows],
                "daysFromObsStart": pa.array([500.0] * 8),
                "daysToCohortEnd": pa.array([90.0] * 8),
                "daysToObsEnd": pa.array([400.0] * 8),
            }
        ),
        "outcomes": pa.table(
            {
                "rowId": pa.array([2.0, 2.0, 4.0, 5.0, 6.0, 6.0, 8.0, 8.0]),
                "outcomeId": pa.array([3.0, 3.0, 3.0, 4.0, 3.0, 3.0, 3.0, 3.0]),
                "daysToEvent": pa.array([20.0, 50.0, 100.0, 15.0, 0.0, 30.0, -10.0, 60.0]),
            }
        ),
        "covariates": pa.table(
            {
                "rowId": pa.array([*map(float, rows), 1.0, 3.0, 6.0]),
                "covariateId": pa.array([1002.0] * 8 + [8532001.0] * 3),
                "covariateValue": pa.array([50.0 + k for k in rows] + [1.0] * 3),
            }
        ),
        "covariateRef": pa.table(
            {
                "covariateId": pa.array([8532001.0, 1002.0]),
                "covariateName": ["gender = FEMALE", "age in years"],
                "analysisId": pa.array([1.0, 2.0]),
                "conceptId": pa.array([8532.0, 0.0]),
            }
        ),
        "analysisRef": pa.table(
            {
                "analysisId": pa.array([1.0, 2.0]),
                "analysisName": ["DemographicsGender", "DemographicsAge"],
                "domainId": ["Demographics", "Demographics"],
                "startDay": pa.array([None, None], pa.float64()),
                "endDay": pa.array([None, None], pa.float64()),
                "isBinary": ["Y", "N"],
                "missingMeansZero": ["Y", "Y"],
            }
        ),
    }


def with_column(table, name, values):
    return table.set_column(table.column_names.index(name), name, values)


def dates_as(table, form):
    """The dates of a table as Andromeda has kept them: DATE, numbers of days, or text."""
    for field in table.schema:
        if pa.types.is_date(field.type) and form != "date":
            days = table.column(field.name).to_pylist()
            made = [str(d) if form == "text" else float((d - EPOCH).days) for d in days]
            table = with_column(table, field.name, pa.array(made))
    return table


def write_file(path, tables, kind="duckdb", dates="date", attributes=ATTRIBUTES):
    """Write an archive with a database of this kind, and attributes if there are any."""
    base = path.with_name(f"file{path.stem}.{kind}")
    tables = {name: dates_as(table, dates) for name, table in tables.items()}
    (_write_duckdb if kind == "duckdb" else _write_sqlite)(base, tables)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(base, base.name)
        if attributes is not None:
            archive.write(attributes, "attributes1a2b.rds")
    base.unlink()
    return path


def _write_duckdb(path, tables):
    with duckdb.connect(str(path)) as connection:
        for name, table in tables.items():
            connection.register("given", table)
            connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
            connection.unregister("given")


def _write_sqlite(path, tables):
    with closing(sqlite3.connect(path)) as connection:
        for name, table in tables.items():
            types = ["TEXT" if pa.types.is_string(f.type) else "REAL" for f in table.schema]
            listed = ", ".join(f"{n} {t}" for n, t in zip(table.column_names, types, strict=True))
            connection.execute(f"CREATE TABLE {name} ({listed})")
            marks = ", ".join("?" * table.num_columns)
            rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        connection.commit()


def write_example(path):
    """The file of `riskset.datasets.cohort_method_path`."""
    return write_file(path, population(), "sqlite", "number")
