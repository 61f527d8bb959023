"""What a row of results is: its columns, each declared once with type, kind and meaning.

A row class lists its columns as fields. Their annotations are the types; `column` adds the kind,
which decides how much of a value is shared, and the meaning. The schema of the Parquet file, the
tables of docs/results.md and the checks of `riskset.disclosure` are all made from these fields.

Columns that belong together, such as those of one arm, are a class of their own (a group), whose
fields appear in a table under a prefix. So `EstimateRow.target_arm.outcomes` is the column
``target_outcomes``.
"""

import dataclasses
import json
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, Self, TypeVar, dataclass_transform

from riskset._messages import Sentence

__all__ = [
    "GUARDED",
    "KINDS",
    "ResultColumn",
    "DisclosureKind",
    "ResultRow",
    "RowT",
    "column",
    "columns_of",
    "group",
    "row_class",
    "sentence_columns",
    "stored_sentence",
]

DisclosureKind = Literal[
    "id", "setting", "summary", "count", "derived", "effect", "text", "private"
]

KINDS: dict[DisclosureKind, str] = {
    "id": "a name, or a number that identifies a row",
    "setting": "a setting of the study",
    "summary": "a result from which no count of people can be derived",
    "count": "a number of people, rows or events",
    "derived": "a number from which such a count can be derived",
    "effect": "an effect, or a number from which an effect can be derived",
    "text": "a sentence or a document that may contain numbers",
    "private": "a number for disclosure control, which is never shared",
}
"""Every kind -> what it is."""

GUARDED: frozenset[DisclosureKind] = frozenset({"count", "derived", "effect", "text", "private"})
"""Kinds whose columns need a rule of `riskset.disclosure`."""

Unit = Literal["", "p", "share", "days"]
ClassT = TypeVar("ClassT")

TYPES = {str: "text", int: "int", float: "number", bool: "bool", list[float]: "numbers"}
"""Annotations of fields -> types of columns."""


@dataclass(frozen=True)
class ResultColumn:
    """A column of a table, whose values may be missing if it `is_optional`.

    `type` is one of `TYPES`; `path` has the field of the row, and of the group if it is in one.
    `unit` is how readers see a number: as a number (""), a p value ("p"), in per cent ("share"), or
    as a time in the unit of the report, if it is a number of days ("days").
    """

    name: str
    type: str
    is_optional: bool
    kind: DisclosureKind
    about: str
    unit: Unit
    path: tuple[str, ...]


def column(kind: DisclosureKind, about: str, default: object = None, unit: Unit = "") -> Any:
    """Declare a field that is a column. In a group, ``{of}`` in `about` names what the group is of.

    Every field has a default, None, because steps of a study fill a row in turn; a required value
    that is still missing when the table is written raises an error.
    """
    if kind not in KINDS:
        raise ValueError(f"a column needs a kind, one of {', '.join(KINDS)}, but it is {kind!r}")
    return dataclasses.field(default=default, metadata={"kind": kind, "about": about, "unit": unit})


def group(columns: type[Any], prefix: str = "", of: str = "") -> Any:
    """Declare a field that holds several columns, whose names begin with a prefix."""
    return dataclasses.field(default=columns(), metadata={"prefix": prefix, "of": of})


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
def row_class(cls: type[ClassT]) -> type[ClassT]:
    """Decorator of row classes and of groups."""
    return dataclass(frozen=True, eq=False, kw_only=True)(cls)


class ResultRow(Mapping[str, Any]):
    """A row of a table of results, whose name is `table`.

    Fields have types; as a mapping, a row has the names of the columns, for code that treats all
    columns alike.
    """

    table: ClassVar[str]

    def __init_subclass__(cls, table: str = "") -> None:
        cls.table = table

    @classmethod
    def columns(cls) -> Mapping[str, ResultColumn]:
        """Every column by its name, in the order of the file."""
        return columns_of(cls)

    @classmethod
    def types(cls) -> dict[str, str]:
        """Type of each column."""
        return {name: one.type for name, one in cls.columns().items()}

    @classmethod
    def about(cls) -> str:
        """What a row is."""
        return " ".join(str(cls.__doc__).split())

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """A row from values by column; columns that are absent keep their defaults."""
        unknown = [] if type(values) is cls else sorted(set(values) - set(cls.columns()))
        if unknown:
            raise ValueError(f"unknown column of {cls.table}: {unknown}")
        return cls().changed(values)

    def changed(self, values: Mapping[str, Any]) -> Self:
        """A copy with other values of some columns."""
        columns = self.columns()
        changes: dict[str, Any] = {}
        inside: dict[str, dict[str, Any]] = {}
        for name, value in values.items():
            field, *rest = columns[name].path
            if rest:
                inside.setdefault(field, {})[rest[0]] = value
            else:
                changes[field] = value
        for field, values in inside.items():
            changes[field] = dataclasses.replace(getattr(self, field), **values)
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def __getitem__(self, name: str) -> Any:
        value: Any = self
        for field in self.columns()[name].path:
            value = getattr(value, field)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns())

    def __len__(self) -> int:
        return len(self.columns())


RowT = TypeVar("RowT", bound=ResultRow)


def sentence_columns(name: str, sentence: Sentence | None) -> dict[str, str | None]:
    """The two columns of a sentence: its text, and its template with its values as JSON."""
    if sentence is None:
        return {name: None, f"{name}_values": None}
    values = json.dumps(sentence.to_list()) if sentence.values else None
    return {name: str(sentence), f"{name}_values": values}


def stored_sentence(row: Mapping[str, Any], name: str) -> Sentence:
    """The sentence of two columns; that of an earlier version has no values."""
    values = row[f"{name}_values"]
    return Sentence(row[name]) if values is None else Sentence.from_list(json.loads(values))


@cache
def columns_of(cls: type[Any]) -> dict[str, ResultColumn]:
    """Columns of a row class or a group."""
    hints = typing.get_type_hints(cls)
    known: dict[str, ResultColumn] = {}
    for field in dataclasses.fields(cls):
        if "prefix" in field.metadata:
            for name, inner in columns_of(hints[field.name]).items():
                whole = field.metadata["prefix"] + name
                about = inner.about.format(of=field.metadata["of"])
                path = (field.name, *inner.path)
                known[whole] = dataclasses.replace(inner, name=whole, about=about, path=path)
            continue
        if "kind" not in field.metadata:
            raise TypeError(
                f"{cls.__name__}.{field.name} is not a column: declare it with `column`"
            )
        kind, is_optional = hints[field.name], False
        if isinstance(kind, types.UnionType):
            (kind,) = set(typing.get_args(kind)) - {type(None)}
            is_optional = True
        known[field.name] = ResultColumn(
            field.name, TYPES[kind], is_optional, **field.metadata, path=(field.name,)
        )
    return known
