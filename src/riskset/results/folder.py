"""The folder of results of a study, without individual-level data.

::

    results/
        study.json        what was asked: names, words, settings; checksums of the tables
        run.json          when it was done, and how long each step took
        <table>.parquet   a file for each of `riskset.results.rows.TABLES`

``study.json`` and the tables are the same for the same data and settings, byte for byte; only
``run.json`` may differ. A missing value is null, never NaN; NaN in a file means damage. Infinite
values are stored.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from riskset._errors import InputError
from riskset._messages import counted
from riskset.data.documents import SEAL, checksum, is_sealed, parse_json, sealed
from riskset.data.writers import replacing_folder, write_json
from riskset.results.columns import ResultRow, RowT
from riskset.results.rows import TABLES

__all__ = [
    "FORMAT",
    "RUN_KEYS",
    "STUDY",
    "STUDY_KEYS",
    "ResultTable",
    "StudyResults",
    "write_results",
    "write_rows",
]

FORMAT = 1
"""Of the folder; a reader refuses another one."""

STUDY, RUN = "study.json", "run.json"

STORED = {
    "text": pa.string(),
    "int": pa.int64(),
    "number": pa.float64(),
    "bool": pa.bool_(),
    "numbers": pa.list_(pa.field("element", pa.float64())),  # as Parquet calls it
}
"""Types of columns -> how they are stored."""

ROW_GROUP = 1 << 14

LATER_COLUMNS = frozenset(
    {"reason_values", "message_values", "outcomes", "null_mean_without", "null_sd_without"}
    | {"contrast"}
    | {f"calibrated_hr{end}" for end in ("", "_lower", "_upper")}  # of controls
    | {f"{of}{how}_p" for of in ("", "calibrated_") for how in ("holm", "fdr")}
)
"""Columns that results of earlier versions lack."""
LATER_TABLES = frozenset(
    {"subgroup_balance", "unmeasured_confounding", "bias_bounds"}
    | {"censoring_weights", "deviations"}
)
"""Tables that results of earlier versions lack, and which are then empty."""


STUDY_KEYS = {
    "format": "version of this layout",
    "title": "title of the study",
    "description": "description of the study; may be empty",
    "targets": "name -> {label, description}",
    "comparators": "name -> {label, description}",
    "comparisons": "list of {target, comparator}, in the order of the specification",
    "outcomes": "name -> {label, description, kind, true_hr}; kind as in the table `runs`",
    "competing": "label of the competing events, or null",
    "analyses": "name -> {label, words, settings}; words describe its parts for readers: "
    "population, time_at_risk, washout, contrast, estimand, propensity_score, adjustment, "
    "deviations, model, covariates; each is text or null; settings are the settings of the "
    "analysis with all defaults",
    "subgroups": "name -> {label}",
    "data": "{name, description, kind, start, end, sources: [{name, fingerprint, rows}], "
    'cdm_source}; kind is "tables" or "omop"; dates as YYYY-MM-DD or null; names of files without '
    "folders; cdm_source has what the table of that name says, such as vocabulary_version",
    "min_cell_count": "counts above 0 and below this number are hidden",
    "blind": "whether effects that fail diagnostics are withheld",
    "settings": "the whole specification, with all defaults",
    "settings_hash": "SHA-256 of the settings",
    "versions": "name of a package -> version",
    "tables": "name of a table -> {rows, sha256}",
    "sha256": "checksum of the rest of this document",
}
"""What ``study.json`` holds."""

RUN_KEYS = {
    "study": "settings_hash of the corresponding study.json",
    "date": "date on which the run ended, YYYY-MM-DD",
    "seconds": "wall time of the run",
    "steps": "list of {step, what, seconds, reused}: wall time of each step, and whether its "
    "result was reused from an earlier run; the step `pull` of a table of a database has also "
    "`pulled`, the date on which its rows were read, YYYY-MM-DD in UTC",
    "sha256": "checksum of the rest of this document",
}
"""What ``run.json`` holds."""


class ResultTable:
    """A table in memory, with values of Python."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._table.num_rows)

    def rows(self, /, **where: object) -> list[dict[str, Any]]:
        """Return rows with given values as dictionaries. Missing values are None."""
        table = self._table
        for name, value in where.items():
            keep = np.array([v == value for v in table.column(name).to_pylist()], dtype=bool)
            table = table.filter(pa.array(keep))
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows

    def columns(self) -> dict[str, list[Any]]:
        """Return columns as lists. Missing values are None."""
        columns: dict[str, list[Any]] = self._table.to_pydict()
        return columns


@dataclass(frozen=True, eq=False, repr=False)
class StudyResults:
    """The results of a study, from `StudyResults.open`.

    Attributes
    ----------
    path : Path
        Folder of the tables.
    study, run : dict
        Contents of ``study.json`` and ``run.json``: `STUDY_KEYS` and `RUN_KEYS`.

    Examples
    --------
    >>> import tempfile
    >>> import riskset as rs
    >>> study = rs.study.Study.parse(rs.study.example())
    >>> with tempfile.TemporaryDirectory() as place:
    ...     rs.study.run(study, place)
    ...     found = rs.study.StudyResults.open(place)
    ...     counts, *_ = found.rows("arms", side="before")
    StudyResults('Right heart catheterisation and survival': 5 estimates)
    >>> counts["target_persons"], counts["comparator_persons"]
    (2184, 3551)
    """

    path: Path
    study: dict[str, Any]
    run: dict[str, Any]
    _read: dict[str, ResultTable] = field(default_factory=dict)

    @classmethod
    def open(cls, path: str | Path) -> "StudyResults":
        """Open and check a folder of results.

        Parameters
        ----------
        path : str or Path
            The folder with ``study.json``, or the folder of a run that contains ``results``.

        Raises
        ------
        InputError
            If there are no results, or they are incomplete, damaged or from another version. Every
            table is read once to verify its checksum.
        """
        folder = Path(path)
        if not (folder / STUDY).exists() and (folder / "results").is_dir():
            folder = folder / "results"
        if not folder.is_dir():
            raise InputError(
                f"there is no folder {str(folder)!r}.",
                hint="name the folder that was given to `riskset study run --out`.",
            )
        if not (folder / STUDY).is_file():
            raise InputError(
                f"{str(folder)!r} has no {STUDY}: it holds no results, or a run has not ended.",
                hint="run the study again: `riskset study run study.yaml --out DIR` goes on "
                "where it stopped.",
            )
        study, run = _document(folder / STUDY, STUDY_KEYS), _document(folder / RUN, RUN_KEYS)
        if study["format"] != FORMAT:
            raise InputError(
                f"{str(folder / STUDY)!r} has the format {study['format']!r}, but this version of "
                f"riskset reads format {FORMAT}.",
                hint="run the study again with this version.",
            )
        for name, document in ((STUDY, study), (RUN, run)):
            if not is_sealed(document):
                raise _damaged(folder / name, "it does not agree with its checksum")
            del document[SEAL]
        if run["study"] != study["settings_hash"]:
            raise _damaged(folder / RUN, "it belongs to other settings than study.json")
        for name in TABLES:
            _check(folder, name, study["tables"])
        return cls(folder, study, run)

    def __repr__(self) -> str:
        n_runs = counted(self.table("runs").n_rows, "estimate")
        return f"StudyResults({self.study['title']!r}: {n_runs})"

    def table(self, name: str) -> ResultTable:
        """Return a table, which is read at the first access.

        Raises
        ------
        InputError
            If the table does not exist.
        """
        if name not in TABLES:
            raise InputError.unknown_name("table", name, TABLES)
        if name not in self._read and name not in self.study["tables"]:
            schema = _schema(TABLES[name])
            self._read[name] = ResultTable(schema.empty_table())
        if name not in self._read:
            self._read[name] = ResultTable(pyarrow.parquet.read_table(_file(self.path, name)))
        return self._read[name]

    def rows(self, name: str, /, **where: object) -> list[dict[str, Any]]:
        """Return rows of a table as dictionaries, in order. Missing values are None.

        Parameters
        ----------
        name : str
        **where
            Required values of columns.
        """
        table, known = self.table(name), TABLES[name].columns()
        for column in where:
            if column not in known:
                raise InputError.unknown_name("column", column, known, place=name)
        return table.rows(**where)

    def read(self, kind: type[RowT]) -> list[RowT]:
        """Return rows of a table as objects of its row class."""
        return [kind.of(row) for row in self.rows(kind.table)]


def write_results(
    folder: Path,
    study: Mapping[str, object],
    run: Mapping[str, object],
    tables: Mapping[str, Iterable[Mapping[str, object]]],
) -> None:
    """Write a folder of results, whole or not at all; an older one is replaced.

    `study` has `STUDY_KEYS` without ``format`` and ``tables``, and `run` has `RUN_KEYS` without
    ``study``. The rows of `tables` are read once; an absent table is empty. A `ValueError` says
    which table, column or key is unknown, or which required value is missing.
    """
    _check_names("table", tables, TABLES)
    _check_names("key", [*study, "format", "tables"], STUDY_KEYS)
    known: dict[str, object] = {}
    with replacing_folder(folder) as temporary:
        for name in TABLES:
            path = _file(temporary, name)
            n_rows = _write(path, TABLES[name], tables.get(name, ()))
            known[name] = {"rows": n_rows, "sha256": checksum(path)}
        content = {"format": FORMAT, **study, "tables": known}
        ordered = {key: content[key] for key in STUDY_KEYS if key != SEAL}
        write_json(temporary / STUDY, sealed(ordered))
        write_json(temporary / RUN, sealed({"study": study["settings_hash"], **run}))


def _write(path: Path, table: type[ResultRow], rows: Iterable[Mapping[str, object]]) -> int:
    """Write rows, some at a time, and count them."""
    types = table.types()
    schema = _schema(table)
    left, n_rows = _checked(table, rows), 0
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while chunk := list(islice(left, ROW_GROUP)):
            arrays = [
                pa.array([_value(row.get(name), kind) for row in chunk], STORED[kind])
                for name, kind in types.items()
            ]
            writer.write_table(pa.table(arrays, schema=schema), row_group_size=ROW_GROUP)
            n_rows += len(chunk)
    return n_rows


def write_rows(path: Path, table: type[ResultRow], rows: Iterable[Mapping[str, object]]) -> None:
    """Write rows as one file, CSV or Parquet by the ending of its name."""
    if path.suffix == ".parquet":
        _write(path, table, rows)
        return
    known = list(_checked(table, rows))
    arrays = [
        pa.array([_value(row.get(name), kind) for row in known], STORED[kind])
        for name, kind in table.types().items()
    ]
    pyarrow.csv.write_csv(pa.table(arrays, schema=_schema(table)), path)


def _schema(table: type[ResultRow]) -> pa.Schema:
    return pa.schema([(name, STORED[kind]) for name, kind in table.types().items()])


def _checked(
    table: type[ResultRow], rows: Iterable[Mapping[str, object]]
) -> Iterator[Mapping[str, object]]:
    required = [name for name, one in table.columns().items() if not one.is_optional]
    for row in rows:
        _check_names(f"column of {table.table}", row, table.columns())
        for column in required:
            if row.get(column) is None:
                raise ValueError(f"{table.table}: column {column!r} is missing in {dict(row)!r}")
        yield row


def _value(value: object, kind: str) -> object:
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return None
    if kind == "text":
        return str(value)
    if kind == "numbers":
        return [float(v) for v in value]  # type: ignore[attr-defined]
    return {"int": int, "number": float, "bool": bool}[kind](value)


def _check_names(what: str, given: Iterable[str], known: Mapping[str, object]) -> None:
    unknown = set(given) - set(known)
    if unknown:
        raise ValueError(f"unknown {what}: {sorted(unknown)}")


def _check(folder: Path, name: str, known: Mapping[str, Any]) -> None:
    path = _file(folder, name)
    if name in LATER_TABLES and name not in known:
        return
    if not path.is_file():
        raise InputError(
            f"the table {path.name!r} of the results is missing in {str(folder)!r}.",
            hint="copy the whole folder, or run the study again.",
        )
    if name not in known or checksum(path) != known[name]["sha256"]:
        raise _damaged(path, "its checksum is not the one in study.json")
    try:
        types = _stored_types(path)
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    differ = sorted(set(types.items()) ^ set(TABLES[name].types().items()))
    if {column for column, _ in differ} - LATER_COLUMNS:
        raise _damaged(path, f"its columns are not those of this version (first: {differ[0][0]})")


def _stored_types(path: Path) -> dict[str, str]:
    """Name and type of every column of a file, without reading its rows."""
    names = {stored: name for name, stored in STORED.items()}
    schema = pyarrow.parquet.read_schema(path)
    return {field.name: names.get(field.type, str(field.type)) for field in schema}


def _document(path: Path, keys: Mapping[str, str]) -> dict[str, Any]:
    try:
        document = parse_json(path.read_bytes())
    except FileNotFoundError as error:
        raise InputError(
            f"the file {path.name!r} of the results is missing in {str(path.parent)!r}.",
            hint="copy the whole folder, or run the study again.",
        ) from error
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    missing = [key for key in keys if not isinstance(document, dict) or key not in document]
    if missing:
        raise _damaged(path, f"it lacks the key {missing[0]!r}")
    return dict(document)


def _damaged(path: Path, why: str) -> InputError:
    return InputError(
        f"{str(path)!r} is damaged: {why}.", hint="run the study again; finished steps are reused."
    )


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"
