"""A small study whose data each test changes as it needs."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import riskset as rs
from riskset.disclosure.engine import Disclosure
from riskset.results.rows import TABLES


def people(n=200, seed=1, **changes):
    """Columns of a table: a treatment that depends on x, and an outcome that depends on neither."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, n)
    columns = {
        "id": np.arange(n) + 10,
        "drug": rng.integers(0, 2, n) | (x & rng.integers(0, 2, n)),
        "x": x,
        "age": rng.integers(40, 90, n),
        "days": rng.integers(1, 500, n),
        "died": rng.integers(0, 2, n),
    }
    return columns | changes


def content(**changes):
    """A specification as a mapping."""
    return {
        "title": "Small",
        "data": {"people": "people.parquet", "treatment": "drug", "id": "id"},
        "exposures": {"new": {"value": 1}, "old": {"value": 0}},
        "comparisons": [{"target": "new", "comparator": "old"}],
        "outcomes": {"death": {"time": "days", "event": "died"}},
        "defaults": {"propensity": {"penalty": "none", "cross_validate": False}},
        "analyses": {"matched": {"match": {}}},
    } | changes


def run(folder, columns=None, **changes):
    """Results of a study, with what is private."""
    pq.write_table(pa.table(people() if columns is None else columns), folder / "people.parquet")
    rs.study.run(rs.study.Study(content(**changes), folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")


def hide(name, rows, least, **others):
    """Rows of a table as they may be shared; the tables beside it have the rows given."""
    tables = {name: rows} | others
    return Disclosure(lambda table: tables.get(table, []), TABLES, least).shown(TABLES[name])
