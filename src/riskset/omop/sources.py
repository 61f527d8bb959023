"""Where the tables of a CDM are: a folder, a zip archive, a DuckDB file, or data frames.

Tables are found by their exact names, in any case, and opened when they are first used. Other
files are ignored.

A large file of text is parsed once: its values are kept as Parquet in a store, under a key made of
the path, the size and the times of the last changes of the file. Such a copy reads ten times as
fast.
"""

import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar

from riskset._errors import CohortError, InputError
from riskset.data.csv_file import TextRules
from riskset.data.database import Database, StoredTable, quoted, text
from riskset.data.files import FORMATS, has_zones, open_file
from riskset.data.table_store import TableStore, table_key, user_cache
from riskset.omop.columns import text_casts

__all__ = ["FileOpener", "Openers", "find_tables", "is_file_name", "text_store"]

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


LEAST_COPIED = 8 << 20
"""Bytes of a file of text from which a copy is worth its place."""


def find_tables(opener: "FileOpener", source: object, schema: str | Sequence[str]) -> Openers:
    """The tables of a source."""
    if isinstance(source, Mapping):
        return _frames(opener, source)
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
        return _folder(opener, path)
    if path.suffix.lower() == ".zip":
        return _archive(opener, path)
    if path.suffix.lower() in FORMATS["duckdb"]:
        schemas = [schema] if isinstance(schema, str) else schema
        return _attached(opener.database, path, schemas)
    raise InputError(
        f"{path.name} is one file, but a CDM has many tables.",
        hint="pass the folder it is in, a zip archive, or a DuckDB file "
        f"({', '.join(FORMATS['duckdb'])}).",
    )


def is_file_name(name: str) -> bool:
    """Whether a name ends like that of a file of a table."""
    return name.lower().endswith(ENDINGS)


@dataclass(frozen=True)
class FileOpener:
    """Opens files as tables of a database.

    Archives are unpacked into `scratch`, a table at a time. `store` gives the store that keeps
    copies of large files of text, if there is one.
    """

    database: Database
    scratch: Path
    store: Callable[[], TableStore | None]

    def open(self, path: Path, name: str = "") -> StoredTable:
        """A file as a table, which the CDM knows by `name`; raises CohortError "BadFile"."""
        if not path.is_file() or not _is_text(path.name):
            return _opened(self.database, path, name)
        facts = path.stat()
        # Programs that copy or unpack files set the time of the last change to that of the
        # original. The other one, of the last change of name, rights or content, they cannot set.
        key = [str(path.resolve()), facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]
        return self._copied(path.name, name, facts.st_size, key, lambda: path)

    def unpack(self, archive: Path, member: str, name: str) -> StoredTable:
        """A file of a zip archive as a table."""

        def unpacked() -> Path:
            with zipfile.ZipFile(archive) as content:
                return Path(content.extract(member, self.scratch))

        file = PurePosixPath(member).name
        if not _is_text(file):
            return _opened(self.database, unpacked(), name)
        with zipfile.ZipFile(archive) as content:
            facts = content.getinfo(member)
        changed = archive.stat().st_mtime_ns
        key = [str(archive.resolve()), changed, member, facts.file_size, facts.CRC]
        return self._copied(file, name, facts.file_size, key, unpacked)

    def _copied(
        self, file: str, name: str, size: int, parts: Sequence[object], path: Callable[[], Path]
    ) -> StoredTable:
        """The copy of a file of text, made if there is none yet; the file, if it is small."""
        store = self.store() if size >= LEAST_COPIED else None
        if store is None:
            return _opened(self.database, path(), name)
        key = table_key("text", name in VOCABULARY, *parts)

        def parse(target: Path) -> int:
            with self.database.apart() as other:
                stored = _opened(other, path(), name)
                return other.write_parquet(f"SELECT * FROM {stored.view}", target)

        kept = store.find_or_make(key, file, parse)
        return replace(_opened(self.database, kept.path, name), file=file)


def text_store(folder: str | Path | None, days: int) -> TableStore | None:
    """The store of the copies of files of text; None if they shall not be kept, or cannot be.

    Raises `InputError` if a folder was named that cannot be written to.
    """
    if days == 0:
        return None
    if folder is not None:
        return TableStore(Path(folder), days)
    try:
        return TableStore(user_cache(), days)
    except (InputError, OSError):  # an account without a home
        return None


def _is_text(name: str) -> bool:
    return name.lower().endswith(FORMATS["csv"])


def _opened(database: Database, path: Path, name: str) -> StoredTable:
    try:
        return open_file(database, path, rules=TextRules(text_casts, name in VOCABULARY))
    except InputError as error:
        details = {"file": str(path)}
        raise CohortError("BadFile", error.message, hint=error.hint, details=details) from None


def _frames(opener: FileOpener, frames: Mapping[object, object]) -> Openers:
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
        name: partial(opener.open, Path(frame), name)
        if isinstance(frame := frames[key], str | Path)
        else partial(opener.database.add, frame)
        for name, key in given.items()
    }


def _folder(opener: FileOpener, folder: Path) -> Openers:
    entries = sorted(p for p in folder.iterdir() if not _is_hidden(p.name))
    files = [p for p in entries if p.is_file() and is_file_name(p.name)]
    inner = [p for p in entries if p.is_dir()]
    in_parts = [p for p in inner if p.name.lower() in TABLES]
    if not files and not in_parts and len(inner) == 1:
        return _folder(opener, inner[0])
    named = _by_table([*files, *in_parts], str(folder))
    return {
        name: partial(_open_parts, opener.database, path)
        if path.is_dir()
        else partial(opener.open, path, name)
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
    parts = [_opened(database, file, "").view for file in files]  # names a damaged one
    view = database.new_name()
    listed = ", ".join(text(str(file)) for file in files)
    rows = (
        f"SELECT * FROM read_parquet([{listed}], hive_partitioning = false, union_by_name = true)"
    )
    if any(map(has_zones, files)):
        rows = " UNION ALL BY NAME ".join(f"SELECT * FROM {part}" for part in parts)
    database.execute(f"CREATE TEMP VIEW {view} AS {rows}")
    return database.stored(view, folder.name)


def _archive(opener: FileOpener, path: Path) -> Openers:
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

    return {name: partial(opener.unpack, path, str(member), name) for name, member in named.items()}


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
