"""Where the tables of a CDM are: a folder, a zip archive, a DuckDB file, or data frames.

Tables are found by their exact names, in any case, and opened when they are first used. Other
files are ignored.
"""

import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar

from riskset._errors import CohortError, InputError
from riskset.data.csv_file import TextRules
from riskset.data.database import Database, StoredTable, quoted, text
from riskset.data.files import FORMATS, has_zones, open_file
from riskset.omop.columns import text_casts

__all__ = ["Openers", "find_tables", "is_file_name", "open_table_file"]

Openers = Mapping[str, Callable[[], StoredTable]]
"""Name of a table, in lower case, also with its schema before a dot -> what opens it."""

TABLES = {
    "cdm_source",
    "cohort",
    "concept",
    "concept_ancestor",
    "concept_relationship",
    "condition_era",
    "condition_occurrence",
    "death",
    "device_exposure",
    "drug_era",
    "drug_exposure",
    "measurement",
    "observation",
    "observation_period",
    "person",
    "procedure_occurrence",
    "visit_detail",
    "visit_occurrence",
}
"""Of the CDM, as far as riskset reads them."""

VOCABULARY = {
    "concept",
    "concept_ancestor",
    "concept_class",
    "concept_relationship",
    "concept_synonym",
    "domain",
    "drug_strength",
    "relationship",
    "vocabulary",
}
"""Of these, Athena's files are separated by tabs, and quotes in them are parts of names."""

ENDINGS = tuple(e for name, endings in FORMATS.items() if name != "duckdb" for e in endings)


def find_tables(
    database: Database,
    source: object,
    schema: str | Sequence[str],
    scratch: Path,
) -> Openers:
    """The tables of a source; archives are unpacked into `scratch`, a table at a time."""
    if isinstance(source, Mapping):
        return _frames(database, source)
    if not isinstance(source, str | Path):
        raise InputError(
            "a CDM is read from a path or a mapping of table names to data frames, but this is "
            f"{type(source).__name__}.",
            hint="for example Cdm('folder'), or Cdm({'person': frame, ...}).",
        )
    path = Path(source)
    if not path.exists():
        raise InputError(
            f"there is no file or folder {str(path)!r}.", hint="check the path of the CDM."
        )
    if path.is_dir():
        return _folder(database, path)
    if path.suffix.lower() == ".zip":
        return _archive(database, path, scratch)
    if path.suffix.lower() in FORMATS["duckdb"]:
        return _attached(database, path, [schema] if isinstance(schema, str) else schema)
    raise InputError(
        f"{path.name} is one file, but a CDM has many tables.",
        hint="pass the folder it is in, a zip archive, or a DuckDB file "
        f"({', '.join(FORMATS['duckdb'])}).",
    )


def is_file_name(name: str) -> bool:
    """Whether a name ends like that of a file of a table."""
    return name.lower().endswith(ENDINGS)


def open_table_file(database: Database, path: Path, name: str = "") -> StoredTable:
    """A file as a table, which the CDM knows by `name`; raises CohortError "BadFile"."""
    try:
        return open_file(database, path, rules=TextRules(text_casts, name in VOCABULARY))
    except InputError as error:
        details = {"file": str(path)}
        raise CohortError("BadFile", error.message, hint=error.hint, details=details) from None


def _frames(database: Database, frames: Mapping[object, object]) -> Openers:
    given: dict[str, object] = {}
    for name in frames:
        other = given.setdefault(str(name).lower(), name)
        if other != name:
            raise CohortError(
                "AmbiguousTable",
                f"the mapping has two frames for the table {str(name).lower()}: {other!r} and "
                f"{name!r}.",
                hint="keep one of them.",
            )
    return {
        name: partial(open_table_file, database, Path(frame), name)
        if isinstance(frame := frames[key], str | Path)
        else partial(database.add, frame)
        for name, key in given.items()
    }


def _folder(database: Database, folder: Path) -> Openers:
    entries = sorted(p for p in folder.iterdir() if not _is_hidden(p.name))
    files = [p for p in entries if p.is_file() and is_file_name(p.name)]
    inner = [p for p in entries if p.is_dir()]
    in_parts = [p for p in inner if p.name.lower() in TABLES]
    if not files and not in_parts and len(inner) == 1:
        return _folder(database, inner[0])
    named = _by_table([*files, *in_parts], str(folder))
    return {
        name: partial(_open_parts, database, path)
        if path.is_dir()
        else partial(open_table_file, database, path, name)
        for name, path in named.items()
    }


def _open_parts(database: Database, folder: Path) -> StoredTable:
    """A folder of Parquet files with the same columns, as Spark writes a table."""
    files = [p for p in sorted(folder.rglob("*.parquet")) if not _is_hidden(p.name)]
    if not files:
        raise CohortError(
            "BadFile",
            f"the folder {folder.name} of {folder.parent} holds no Parquet file.",
            hint="a table is one file, or a folder of Parquet files.",
            details={"file": str(folder)},
        )
    parts = [open_table_file(database, file).view for file in files]  # names a damaged one
    view = database.new_name()
    listed = ", ".join(text(str(file)) for file in files)
    rows = (
        f"SELECT * FROM read_parquet([{listed}], hive_partitioning = false, union_by_name = true)"
    )
    if any(map(has_zones, files)):
        rows = " UNION ALL BY NAME ".join(f"SELECT * FROM {part}" for part in parts)
    database.execute(f"CREATE TEMP VIEW {view} AS {rows}")
    return database.stored(view, folder.name)


def _archive(database: Database, path: Path, scratch: Path) -> Openers:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [PurePosixPath(name) for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError) as error:
        raise CohortError(
            "BadFile",
            f"{path.name} is not a complete zip archive: {error}",
            hint="download it again.",
            details={"file": str(path)},
        ) from None
    tables = [m for m in members if not any(map(_is_hidden, m.parts))]
    named = _by_table([m for m in tables if is_file_name(m.name)], path.name)

    def unpack(name: str, member: PurePosixPath) -> StoredTable:
        with zipfile.ZipFile(path) as archive:
            place = Path(archive.extract(str(member), scratch))
        return open_table_file(database, place, name)

    return {name: partial(unpack, name, member) for name, member in named.items()}


def _is_hidden(name: str) -> bool:
    """Apple's archiver adds files such as ._person.parquet, which are not tables."""
    return name.startswith(".") or name == "__MACOSX"


Place = TypeVar("Place", Path, PurePosixPath)


def _by_table(paths: Iterable[Place], place: str) -> dict[str, Place]:
    tables: dict[str, Place] = {}
    for path in paths:
        name = path.name.split(".")[0].lower()
        if name in tables:
            raise CohortError(
                "AmbiguousTable",
                f"{place} has two files for the table {name}: {str(tables[name])!r} and "
                f"{str(path)!r}.",
                hint="keep one of them.",
            )
        tables[name] = path
    return tables


def _attached(database: Database, path: Path, schemas: Sequence[str]) -> Openers:
    """Tables and views of some schemas of a DuckDB file; the first that has a table counts."""
    alias = database.attach(path)
    rows = database.tables_of(alias)
    known = {schema.lower(): schema for schema, _ in rows}
    openers: dict[str, Callable[[], StoredTable]] = {}
    for wanted in schemas:
        if wanted.lower() not in known:
            raise InputError.unknown_name("schema", wanted, known.values(), place=path.name)
        for schema, name in rows:
            if schema.lower() == wanted.lower():
                view = ".".join(map(quoted, (alias, schema, name)))
                openers.setdefault(name.lower(), partial(database.stored, view, path.name))
    for schema, name in rows:  # cohort tables are often in a schema of their own
        view = ".".join(map(quoted, (alias, schema, name)))
        openers[f"{schema}.{name}".lower()] = partial(database.stored, view, path.name)
    return openers
