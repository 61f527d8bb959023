"""Results as a folder: one JSON document, and Parquet files of the arrays in it.

The document shows the fields of a result, and of the results within it, under their names; an array
stands in it as the name of a column. Arrays of one length are columns of one file, so that those of
the rows of a population stand side by side for whoever reads them with other programs. Every value
comes back with the bits it had. Reading makes objects of classes that the caller names, from their
fields, and runs nothing.
"""

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from riskset._errors import InputError
from riskset._messages import Note
from riskset._types import AnyArray
from riskset._version import __version__
from riskset.data.database import StoredTable, batches
from riskset.data.design import Design
from riskset.data.documents import checksum, is_sealed, parse_json, sealed
from riskset.data.writers import check_replaceable, replacing_folder, write_json

__all__ = ["Classes", "classes_of", "read_object", "write_object"]

FORMAT, FORMAT_VERSION = "riskset-object", 2
DOCUMENT = "object.json"

Classes = dict[str, type]
"""Dataclasses and named tuples that a document may hold, by name."""


def classes_of(*roots: type) -> Classes:
    """The dataclasses and named tuples given, and those that their fields declare, at any depth."""
    classes: dict[str, type] = {}
    waiting = list(roots)
    while waiting:
        kind = waiting.pop()
        if not _is_record(kind) or classes.setdefault(kind.__name__, kind) is not kind:
            continue
        for declared in get_type_hints(kind).values():
            waiting += [part for part in _parts(declared) if classes.get(part.__name__) is not part]
    return classes


def _is_record(kind: type) -> bool:
    """Whether a document spells out the fields of a class; designs and tables have own files."""
    is_file = kind in (Design, StoredTable)
    is_concrete = not getattr(kind, "_is_protocol", False)
    return is_concrete and not is_file and (is_dataclass(kind) or hasattr(kind, "_fields"))


def _parts(declared: Any) -> Iterator[type]:
    """The classes in a type, such as those of a union and of a tuple."""
    if isinstance(declared, type) and get_origin(declared) is None:
        yield declared
    for inner in get_args(declared):
        yield from _parts(inner)


UNUSUAL = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
"""Numbers that JSON lacks."""


def write_object(folder: Path, value: object, classes: Classes) -> None:
    """Write a folder, whole or not at all; one that was written before is replaced.

    Raises `InputError` if the folder has other contents, or `value` holds what cannot be written.
    """
    check_replaceable(folder, "these results", DOCUMENT)
    with replacing_folder(folder) as temporary:
        writer = _Writer(temporary, classes)
        content = writer.plain(value, "")
        writer.finish()
        head = {"format": FORMAT, "format_version": FORMAT_VERSION, "riskset": __version__}
        files = {path.name: checksum(path) for path in sorted(temporary.iterdir())}
        document = sealed({**head, "files": files, "content": content})
        write_json(temporary / DOCUMENT, document)


def read_object(folder: Path, classes: Classes) -> Any:
    """What was written to a folder.

    Raises `InputError` if the folder does not exist, is damaged, or of a later version, or holds an
    unknown class.
    """
    document = _document(folder)
    try:
        return _Reader(folder, classes).value(document["content"])
    except (OSError, ValueError, KeyError, TypeError, IndexError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        raise _damaged(folder, f"{type(error).__name__}: {error}") from None


class _Writer:
    """Values as JSON can hold them, arrays set apart by their length."""

    def __init__(self, folder: Path, classes: Classes) -> None:
        self._folder, self._names = folder, {kind: name for name, kind in classes.items()}
        self._arrays: dict[int, dict[str, AnyArray]] = {}
        self._known: dict[int, tuple[AnyArray, dict[str, object]]] = {}
        self._n_files = 0

    def plain(self, value: Any, path: str) -> Any:
        """A value whose field is called `path`."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {"number": str(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, Design):
            return {"design": self._apart("design", "riskset", value.save)}
        if isinstance(value, pa.Table):
            return {"table": self._apart("table", "parquet", lambda path: _write(value, path))}
        if isinstance(value, StoredTable):
            return {"table": self._apart("table", "parquet", lambda path: _copy(value, path))}
        if isinstance(value, datetime.date):
            return {"date": value.isoformat()}
        if type(value) in self._names:
            content = {n: self.plain(v, _join(path, n)) for n, v in _fields_of(value).items()}
            return {"class": self._names[type(value)], "fields": content}
        if isinstance(value, (tuple, list)):
            items = [self.plain(v, _join(path, str(k))) for k, v in enumerate(value)]
            return {"tuple": items} if isinstance(value, tuple) else items
        if isinstance(value, Mapping):
            pairs = [
                [self.plain(k, path), self.plain(v, _join(path, str(k)))] for k, v in value.items()
            ]
            return {"mapping": pairs}
        raise InputError(
            f"{path or 'the object'} is a {type(value).__name__}, which cannot be saved.",
            hint="what riskset.cohort and riskset.omop make can be saved.",
        )

    def _array(self, array: AnyArray, path: str) -> dict[str, object]:
        if id(array) in self._known:
            return self._known[id(array)][1]
        if array.dtype == object:
            items = [self.plain(v, path) for v in array.ravel().tolist()]
            return {"objects": items, "shape": list(array.shape)}
        columns = self._arrays.setdefault(array.size, {})
        name = path or "value"
        columns[name] = array.ravel()
        about: dict[str, object] = {
            "column": name,
            "rows": array.size,
            "shape": list(array.shape),
            "dtype": array.dtype.str,
        }
        # The array is kept, so that no other can get its id.
        self._known[id(array)] = array, about
        return about

    def _apart(self, kind: str, suffix: str, write: Callable[[Path], None]) -> str:
        """Write a separate file, and return its name."""
        self._n_files += 1
        name = f"{kind}_{self._n_files}.{suffix}"
        write(self._folder / name)
        return name

    def finish(self) -> None:
        """Write the arrays."""
        for rows, columns in self._arrays.items():
            table = pa.table({name: pa.array(array) for name, array in columns.items()})
            _write(table, self._folder / _file(rows))


class _Reader:
    """Values of a document."""

    def __init__(self, folder: Path, classes: Classes) -> None:
        self._folder, self._classes = folder, classes
        self._tables: dict[int, pa.Table] = {}
        self._known: dict[tuple[int, str], AnyArray] = {}

    def value(self, content: Any) -> Any:
        """The value that `_Writer.plain` was given."""
        if isinstance(content, list):
            return [self.value(item) for item in content]
        if not isinstance(content, dict):
            return content
        if "number" in content:
            return UNUSUAL[content["number"]]
        if "tuple" in content:
            return tuple(self.value(item) for item in content["tuple"])
        if "mapping" in content:
            return {self.value(key): self.value(item) for key, item in content["mapping"]}
        if "objects" in content:
            array = np.empty(len(content["objects"]), dtype=object)
            array[:] = [self.value(item) for item in content["objects"]]
            return array.reshape(content["shape"])
        if "design" in content:
            return Design.open(self._folder / content["design"])
        if "table" in content:
            return _read(self._folder / content["table"])
        if "date" in content:
            return datetime.date.fromisoformat(content["date"])
        if "column" in content:
            return self._array(content)
        return self._object(content)

    def _array(self, about: dict[str, Any]) -> AnyArray:
        rows, name = about["rows"], about["column"]
        if (rows, name) not in self._known:
            if rows not in self._tables:
                self._tables[rows] = _read(self._folder / _file(rows))
            column = self._tables[rows].column(name)
            values = column.to_numpy() if column.null_count == 0 else None
            if values is None or values.size != rows:
                raise ValueError(f"the column {name!r} is incomplete")
            array = np.array(values).astype(about["dtype"]).reshape(about["shape"])
            self._known[rows, name] = array
        return self._known[rows, name]

    def _object(self, content: dict[str, Any]) -> Any:
        name = content["class"]
        if name not in self._classes:
            raise InputError.unknown_name(
                "class", str(name), self._classes, place=str(self._folder)
            )
        kind, given = self._classes[name], content["fields"]
        values = {key: self.value(item) for key, item in given.items()}
        if kind is Note:
            return Note.from_fields(values)
        if not is_dataclass(kind):
            return kind(**values)
        result = object.__new__(kind)
        for field in fields(kind):
            if field.name in values:
                value = values.pop(field.name)
            elif field.default is not MISSING:
                value = field.default
            elif field.default_factory is not MISSING:
                value = field.default_factory()
            else:
                raise ValueError(f"{name} lacks {field.name!r}")
            object.__setattr__(result, field.name, value)  # they may be frozen
        if values:
            raise ValueError(f"{name} has no {next(iter(values))!r}")
        return result


def _fields_of(value: Any) -> dict[str, Any]:
    if isinstance(value, Note):
        return value.to_fields()
    names = [f.name for f in fields(value)] if is_dataclass(value) else value._fields
    return {name: getattr(value, name) for name in names}


def _write(table: pa.Table, path: Path) -> None:
    pyarrow.parquet.write_table(table, path, compression="zstd", write_page_checksum=True)


def _copy(stored: StoredTable, path: Path) -> None:
    """Write a table of a database, which may be larger than memory."""
    query = f"SELECT * FROM {stored.view}"
    schema = stored.database.sql(f"{query} LIMIT 0").to_arrow_table().schema
    with (
        batches(stored.database.sql(query)) as stream,
        pyarrow.parquet.ParquetWriter(
            path, schema, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        for batch in stream:
            writer.write_batch(batch)


def _read(path: Path) -> pa.Table:
    return pyarrow.parquet.read_table(path, page_checksum_verification=True)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _file(rows: int) -> str:
    return f"rows_{rows}.parquet"


def _document(folder: Path) -> dict[str, Any]:
    path = folder / DOCUMENT
    if not path.is_file():
        raise InputError(
            f"{str(folder)!r} holds nothing that riskset has saved.",
            hint=f"name a folder with a file {DOCUMENT}.",
        )
    try:
        document = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _damaged(folder, f"{DOCUMENT} is not valid JSON ({error})") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _damaged(folder, f"{DOCUMENT} does not say {FORMAT!r}")
    if document.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"{str(folder)!r} was written by riskset {document.get('riskset')} in format "
            f"{document.get('format_version')!r}, but riskset {__version__} reads format "
            f"{FORMAT_VERSION}.",
            hint="use a version of riskset that reads it.",
        )
    if not is_sealed(document):
        raise _damaged(folder, f"{DOCUMENT} does not agree with its checksum")
    for name, known in document["files"].items():
        if not (folder / name).is_file():
            raise _damaged(folder, f"the file {name} is missing")
        if checksum(folder / name) != known:
            raise _damaged(folder, f"the file {name} does not agree with its checksum")
    return document


def _damaged(folder: Path, why: str) -> InputError:
    return InputError(
        f"{str(folder)!r} is damaged: {why}.", hint="copy the whole folder again, or save it anew."
    )
