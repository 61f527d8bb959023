"""The results of a study: a folder that says all that may be shared, and nothing of single people.

::

    results/
        study.json        what was asked: names, words, settings; checksums of the tables
        run.json          when it was done, and how long each step took
        <table>.parquet   a file for each of `TABLES`, empty if there is nothing to say

``study.json`` and the tables are the same for the same data and settings, byte for byte; what may
differ is in ``run.json``. A row of a table has names or numbers that lead to its run, its
adjustment or its propensity score; `riskset.study.schema` explains which.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from riskset._errors import InputError
from riskset.data.documents import SEAL, checksum, is_sealed, parse_json, sealed
from riskset.data.typed_file import TypedTable, read_typed, stored_types, write_typed
from riskset.data.writers import write_json
from riskset.study.outcome_tables import OUTCOME_TABLES
from riskset.study.people_tables import PEOPLE_TABLES

__all__ = [
    "FORMAT",
    "RUN_KEYS",
    "STUDY_KEYS",
    "TABLES",
    "StudyResults",
    "check_replaceable",
    "write_results",
]

FORMAT = 1
"""Of the folder; a reader refuses another one."""

TABLES = {found.name: found for found in (*PEOPLE_TABLES, *OUTCOME_TABLES)}
"""Every table of a folder by its name."""

STUDY, RUN = "study.json", "run.json"

STUDY_KEYS = {
    "format": "version of this layout",
    "title": "of the study",
    "description": "of the study, may be empty",
    "targets": "name -> {label, description}",
    "comparators": "name -> {label, description}",
    "comparisons": "list of {target, comparator}, in the order asked for",
    "outcomes": "name -> {label, description, kind, true_hr}; kind as in the table `runs`",
    "competing": "label of the competing events, or null",
    "analyses": "name -> {label, words, settings}; words explains its parts to a reader: "
    "population, time_at_risk, washout, estimand, propensity_score, adjustment, model, covariates; "
    "each a sentence or null. settings are those of the analysis with all defaults",
    "subgroups": "name -> {label}",
    "data": "{name, description, kind, start, end, sources: [{name, fingerprint, rows}]}; kind is "
    '"tables" or "omop"; dates as YYYY-MM-DD or null; names of files without folders',
    "min_cell_count": "counts above 0 and below it are hidden",
    "blind": "whether effects that fail diagnostics are withheld",
    "settings": "the whole specification, with all defaults",
    "settings_hash": "SHA-256 of the settings",
    "versions": "name of a program -> version",
    "tables": "name of a table -> {rows, sha256}",
    "sha256": "checksum of the rest of this document",
}
"""What ``study.json`` holds."""

RUN_KEYS = {
    "study": "settings_hash of the study.json that it belongs to",
    "date": "day on which the run ended, YYYY-MM-DD",
    "seconds": "wall time of the run",
    "steps": "list of {step, what, seconds, reused}: wall time of each step, and whether an "
    "earlier run had done it",
    "sha256": "checksum of the rest of this document",
}
"""What ``run.json`` holds."""


@dataclass(frozen=True, eq=False, repr=False)
class StudyResults:
    """The results of a study; `StudyResults.open` makes it.

    Attributes
    ----------
    path : Path
        The folder of the tables.
    study, run : dict
        Contents of ``study.json`` and ``run.json``: `STUDY_KEYS` and `RUN_KEYS`.
    """

    path: Path
    study: dict[str, Any]
    run: dict[str, Any]
    _read: dict[str, TypedTable] = field(default_factory=dict)

    @classmethod
    def open(cls, path: str | Path) -> "StudyResults":
        """Open and check a folder of results.

        Parameters
        ----------
        path : str or Path
            The folder with ``study.json``, or the folder of a run, in which it is ``results``.

        Raises
        ------
        InputError
            If there are no results, or they are unfinished, damaged or of another version. Every
            table is read once to compare it with its checksum.
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
        return f"StudyResults({self.study['title']!r}: {self.table('runs').n_rows:,} estimates)"

    def table(self, name: str) -> TypedTable:
        """A table, read when it is first asked for.

        Raises
        ------
        InputError
            If there is no table of that name.
        """
        if name not in TABLES:
            raise InputError.unknown_name("table", name, TABLES)
        if name not in self._read:
            self._read[name] = read_typed(_file(self.path, name))
        return self._read[name]

    def rows(self, name: str, /, **where: object) -> list[dict[str, Any]]:
        """Rows of a table as dictionaries, in order; None where a value is missing.

        Parameters
        ----------
        name : str
        **where
            Columns and the values that the rows must have.
        """
        found = self.table(name)
        for column in where:
            if column not in TABLES[name].types:
                raise InputError.unknown_name("column", column, TABLES[name].types, place=name)
        return found.rows(**where)


def check_replaceable(folder: Path) -> None:
    """Refuse to replace a folder of something else.

    Raises
    ------
    InputError
        If the folder is there, holds something, and no results.
    """
    if folder.is_dir() and not (folder / STUDY).is_file() and any(folder.iterdir()):
        raise InputError(
            f"{str(folder)!r} is there, but holds no results of a study: a run would replace it.",
            hint="name another folder for the run, or move it away.",
        )


def write_results(
    folder: Path,
    study: Mapping[str, object],
    run: Mapping[str, object],
    tables: Mapping[str, Iterable[Mapping[str, object]]],
) -> None:
    """Write a folder of results, whole or not at all; an older one is replaced.

    Parameters
    ----------
    folder : Path
    study, run : mapping
        `STUDY_KEYS` but for ``format`` and ``tables``, `RUN_KEYS` but for ``study``.
    tables : mapping
        Rows of the tables, read once; a table that is absent is empty, and a column that a row
        lacks is missing.

    Raises
    ------
    ValueError
        If a table, a column or a key does not belong here, or a required value is missing.
    """
    _check_names("table", tables, TABLES)
    _check_names("key", [*study, "format", "tables"], STUDY_KEYS)
    temporary = folder.with_name(f".{folder.name}-unfinished")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    known: dict[str, object] = {}
    for name in TABLES:
        path = _file(temporary, name)
        n_rows = write_typed(path, TABLES[name].types, _checked(name, tables.get(name, ())))
        known[name] = {"rows": n_rows, "sha256": checksum(path)}
    content = {"format": FORMAT, **study, "tables": known}
    ordered = {key: content[key] for key in STUDY_KEYS if key != SEAL}
    write_json(temporary / STUDY, sealed(ordered))
    write_json(temporary / RUN, sealed({"study": study["settings_hash"], **run}))
    old = folder.with_name(f".{folder.name}-old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    temporary.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _checked(name: str, rows: Iterable[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    columns = TABLES[name].columns
    required = [column.name for column in columns if not column.is_optional]
    for row in rows:
        _check_names(f"column of {name}", row, TABLES[name].types)
        for column in required:
            if row.get(column) is None:
                raise ValueError(f"{name}: column {column!r} is missing in {row!r}")
        yield row


def _check_names(what: str, given: Iterable[str], known: Mapping[str, object]) -> None:
    unknown = set(given) - set(known)
    if unknown:
        raise ValueError(f"unknown {what}: {sorted(unknown)}")


def _check(folder: Path, name: str, known: Mapping[str, Any]) -> None:
    path = _file(folder, name)
    if not path.is_file():
        raise InputError(
            f"the table {path.name!r} of the results is missing in {str(folder)!r}.",
            hint="copy the whole folder, or run the study again.",
        )
    if name not in known or checksum(path) != known[name]["sha256"]:
        raise _damaged(path, "its checksum is not the one in study.json")
    try:
        types = stored_types(path)
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    if types != TABLES[name].types:
        differ = sorted(set(types.items()) ^ set(TABLES[name].types.items()))
        raise _damaged(path, f"its columns are not those of this version (first: {differ[0][0]})")


def _document(path: Path, keys: Mapping[str, str]) -> dict[str, Any]:
    try:
        found = parse_json(path.read_bytes())
    except FileNotFoundError as error:
        raise InputError(
            f"the file {path.name!r} of the results is missing in {str(path.parent)!r}.",
            hint="copy the whole folder, or run the study again.",
        ) from error
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    missing = [key for key in keys if not isinstance(found, dict) or key not in found]
    if missing:
        raise _damaged(path, f"it lacks the key {missing[0]!r}")
    return dict(found)


def _damaged(path: Path, why: str) -> InputError:
    return InputError(
        f"{str(path)!r} is damaged: {why}.",
        hint="run the study again; finished steps are reused.",
    )


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"
