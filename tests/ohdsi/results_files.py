"""Files of OHDSI's results data model, read and checked as viewers read them.

`FACTS` is a copy of the tables of OHDSI's specifications, made by hand and not from riskset.
"""

import csv
import io
import re
import zipfile
from collections import defaultdict

import duckdb

from reference import GOLDEN

FACTS = defaultdict(list)
with (GOLDEN / "ohdsi" / "results_model.csv").open(newline="", encoding="utf-8") as _file:
    for _row in csv.DictReader(_file):
        FACTS[_row["table"]].append(_row)

TYPES = {"int": "INTEGER", "bigint": "BIGINT", "float": "DOUBLE", "date": "DATE"}
INTERCEPT = 0
ROUNDED = re.compile(r"NA|-?Inf|-?\d+\.\d{1,3}")
SHAPES = {
    "int": re.compile(r"NA|-?\d+"),
    "bigint": re.compile(r"NA|-?\d+"),
    "float": re.compile(r"NA|-?Inf|-?\d+\.\d+(e[-+]\d+)?|-?\d+e[-+]\d+"),
    "date": re.compile(r"NA|\d{4}-\d{2}-\d{2}"),
}

JOINS = [
    ("analysis_id", "cm_analysis", "analysis_id"),
    ("target_comparator_id", "cm_target_comparator", "target_comparator_id"),
    ("target_comparator_id, outcome_id", "cm_target_comparator_outcome", None),
    ("target_id", "cg_cohort_definition", "cohort_definition_id"),
    ("comparator_id", "cg_cohort_definition", "cohort_definition_id"),
    ("nesting_cohort_id", "cg_cohort_definition", "cohort_definition_id"),
    ("exposure_id", "cg_cohort_definition", "cohort_definition_id"),
    ("outcome_id", "cg_cohort_definition", "cohort_definition_id"),
    ("database_id", "database_meta_data", "database_id"),
    ("covariate_id, analysis_id, database_id", "cm_covariate", None),
    ("covariate_analysis_id, analysis_id", "cm_covariate_analysis", None),
]
"""Columns that other tables resolve, these tables, and the names of the columns there."""


def texts(folder):
    """Text of every file by the name of its table."""
    (archive,) = folder.glob("Results_*.zip")
    with zipfile.ZipFile(archive) as files:
        found = {n.removesuffix(".csv"): files.read(n).decode("utf-8") for n in files.namelist()}
    beside = ("database_meta_data", "cg_cohort_definition")
    return found | {n: (folder / f"{n}.csv").read_text("utf-8") for n in beside}


def cells(text):
    """Rows of a file as mappings of texts."""
    return list(csv.DictReader(io.StringIO(text)))


def check_text(table, text):
    """Every column is there, every cell has the type of its column, and what must be there is."""
    reader = csv.reader(io.StringIO(text))
    assert sorted(next(reader)) == sorted(fact["column"] for fact in FACTS[table]), table
    assert "\r" not in text
    for row in cells(text):
        for fact in FACTS[table]:
            name, cell = fact["column"], row[fact["column"]]
            shape = SHAPES.get(fact["type"].lower())
            assert shape is None or shape.fullmatch(cell), (table, name, cell)
            assert fact["required"] == "no" or cell not in ("", "NA"), (table, name, row)
            if "balance" in table and ("mean" in name or name.endswith("std_diff")):
                assert ROUNDED.fullmatch(cell), (table, name, cell)


def load(folder, place):
    """A database with all files as tables of the types of the facts, as a viewer has them."""
    base = duckdb.connect()
    for table, text in texts(folder).items():
        path = place / f"{table}.csv"
        path.write_text(text, encoding="utf-8")
        known = {f["column"]: TYPES.get(f["type"].lower(), "VARCHAR") for f in FACTS[table]}
        types = {name: known[name] for name in text.splitlines()[0].split(",")}
        base.execute(
            f"CREATE TABLE {table} AS SELECT * FROM read_csv(?, header=true, nullstr='NA', "
            f"auto_detect=false, delim=',', quote='\"', escape='\"', columns={types})",
            [str(path)],
        )
    return base


def check_keys(base):
    """No two rows have the same primary key."""
    for table, facts in FACTS.items():
        keys = ", ".join(fact["column"] for fact in facts if fact["key"] == "yes")
        (twice,) = base.execute(
            f"SELECT count(*) FROM (SELECT {keys} FROM {table} GROUP BY ALL HAVING count(*) > 1)"
        ).fetchone()
        assert twice == 0, table


def check_joins(base):
    """Every number and name that a table has is explained by another one."""
    n_checked = 0
    for table, facts in FACTS.items():
        own = {fact["column"] for fact in facts}
        for columns, other, theirs in JOINS:
            if table == other or not set(columns.split(", ")) <= own:
                continue
            n_checked += 1
            where = " AND ".join(f"{c} IS NOT NULL" for c in columns.split(", "))
            if table == "cm_propensity_model" and "covariate_id" in columns:
                where += f" AND covariate_id <> {INTERCEPT}"
            lost = base.execute(
                f"SELECT {columns} FROM {table} WHERE {where} "
                f"EXCEPT SELECT {theirs or columns} FROM {other}"
            ).fetchall()
            assert lost == [], (table, columns)
    assert n_checked > 50
