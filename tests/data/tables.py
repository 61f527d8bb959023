"""Small tables in every format, and the matrix that each must become."""

import itertools
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

Writer = Callable[[pa.Table, Path], Path]


def _csv(table: pa.Table, stem: Path) -> Path:
    path = stem.with_suffix(".csv")
    table.to_pandas().to_csv(path, index=False)
    return path


def _csv_gz(table: pa.Table, stem: Path) -> Path:
    path = stem.with_suffix(".csv.gz")
    table.to_pandas().to_csv(path, index=False)
    return path


def _tsv(table: pa.Table, stem: Path) -> Path:
    path = stem.with_suffix(".tsv")
    table.to_pandas().to_csv(path, index=False, sep="\t")
    return path


def _semicolons(table: pa.Table, stem: Path) -> Path:
    path = stem.with_name(stem.name + "_semicolons.csv")
    table.to_pandas().to_csv(path, index=False, sep=";")
    return path


def _parquet(table: pa.Table, stem: Path) -> Path:
    path = stem.with_suffix(".parquet")
    pa.parquet.write_table(table, path, row_group_size=max(2, len(table) // 5))
    return path


def _feather(table: pa.Table, stem: Path) -> Path:
    path = stem.with_suffix(".feather")
    pa.feather.write_feather(table, path, compression="zstd")
    return path


def _arrow(table: pa.Table, stem: Path) -> Path:
    path = stem.with_suffix(".arrow")
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(2, len(table) // 5))
    return path


def _stream(table: pa.Table, stem: Path) -> Path:
    path = stem.with_suffix(".ipc")
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return path


def _duckdb(table: pa.Table, stem: Path) -> Path:
    path = stem.with_suffix(".duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", table)
        connection.execute("CREATE TABLE patients AS SELECT * FROM frame")
    return path


WRITERS: dict[str, Writer] = {
    "csv": _csv,
    "csv.gz": _csv_gz,
    "tsv": _tsv,
    "semicolons": _semicolons,
    "parquet": _parquet,
    "feather": _feather,
    "arrow": _arrow,
    "stream": _stream,
    "duckdb": _duckdb,
}


COUNT = itertools.count()


def _relation(table: pa.Table) -> duckdb.DuckDBPyRelation:
    view = f"frame_{next(COUNT)}"  # a relation is a query, asked when it is read
    duckdb.register(view, table)
    return duckdb.sql(f"SELECT * FROM {view}")


FRAMES: dict[str, Callable[[pa.Table], object]] = {
    "pandas": lambda t: t.to_pandas(),
    "pandas nullable": lambda t: t.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas objects": lambda t: t.to_pandas().astype(object),
    "pandas categories": lambda t: t.to_pandas().astype(
        {f.name: "category" for f in t.schema if f.type == pa.string()}
    ),
    "polars": lambda t: pl.from_arrow(t),
    "polars lazy": lambda t: pl.from_arrow(t).lazy(),
    "polars categories": lambda t: pl.from_arrow(t).cast({pl.String: pl.Categorical}),
    "arrow": lambda t: t,
    "arrow chunks": lambda t: pa.concat_tables([t.slice(0, 2), t.slice(2)]),
    "arrow batch": lambda t: t.combine_chunks().to_batches()[0],
    "arrow dictionaries": lambda t: pa.table(
        {
            name: t[name].dictionary_encode() if t[name].type == pa.string() else t[name]
            for name in t.column_names
        }
    ),
    "duckdb": _relation,
}


BIG = 2**53
OUTCOMES = pa.table(
    {"rowId": [7, 8, 9, 10], "time": [5.0, 8.0, 2.0, 8.0], "y": [1, 0, 1, 0], "age": [1, 2, 3, 4]}
)


def long(rows: object, keys: object, values: object = None) -> pa.Table:
    """A long table of covariates beside `OUTCOMES`."""
    columns = {"rowId": rows, "covariateId": keys}
    return pa.table(columns if values is None else columns | {"covariateValue": values})


def write_text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
