"""What readers call covariates: a table of labels, groups, units and reference levels.

A row is about a column of a table, a key of a long table, the id of a covariate of a CDM, or one
level of a column, ``column=level``. Labels are for people: models, files and arguments go on using
the names.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any

from riskset._errors import InputError
from riskset._messages import Note, Value
from riskset._settings import setting
from riskset.data.database import Database
from riskset.data.design import Design
from riskset.data.files import open_file
from riskset.data.frame import as_table
from riskset.data.missing_values import MISSING_LEVEL, indicators_of
from riskset.data.table import Table, plain_values

__all__ = ["CovariateLabel", "CovariateLabels"]

NAMES = ("name", "id", "covariate", "covariate_id", "covariateid")
"""Columns, in any case, that may hold what a row is about."""

OHDSI = {"covariateid": "name", "covariate_id": "name", "covariatename": "label"}
"""Columns of a table ``covariate_ref`` of FeatureExtraction, of which no other is read."""


@dataclass(frozen=True)
class CovariateLabel:
    """A row of a table of labels; its fields are the columns of the table."""

    name: str = setting(
        "a column of the table of people, a key of the long table or the id of a covariate, or a "
        "level as ``column=level`` (the column may also be called ``id``)"
    )
    label: str | None = setting("what readers call it", None)
    group: str | None = setting("the section of Table 1 in which it stands", None)
    unit: str | None = setting("the unit, such as years", None)
    reference: str | None = setting(
        "the reference level of a column of text or categories; of a column of zeros and ones, the "
        "word for 0",
        None,
    )

    @property
    def text(self) -> str:
        """The label with its unit, or the name."""
        words = self.label or self.name
        return f"{words}, {self.unit}" if self.unit else words


@dataclass(frozen=True, eq=False)
class CovariateLabels:
    """Labels by the name of a column, key or level.

    `place` is the file, or "the table of labels"; `rows` say where each entry stands in it.

    Examples
    --------
    >>> labels = CovariateLabels.read({"cat1": "Primary disease", "age": "Age"})
    >>> labels.text("cat1=CHF"), labels.text("age"), labels.text("sex")
    ('Primary disease: CHF', 'Age', None)
    """

    entries: Mapping[str, CovariateLabel] = field(default_factory=dict)
    place: str = "the table of labels"
    rows: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.entries)

    @classmethod
    def read(cls, source: object) -> "CovariateLabels":
        """Labels from a file, a data frame, a mapping of names to labels, rows, or None.

        A row is a mapping with the columns of the table, as `to_list` gives them.

        Raises
        ------
        InputError
            If the table has no column of names or an unknown column, or a name is missing or occurs
            twice. The message gives the file, the row and the value.
        """
        if source is None or isinstance(source, CovariateLabels):
            return source or cls()
        if isinstance(source, Mapping):
            return cls({str(n): CovariateLabel(str(n), str(text)) for n, text in source.items()})
        if isinstance(source, list | tuple) and all(isinstance(row, Mapping) for row in source):
            return cls._of_rows(source)
        if not isinstance(source, (str, PathLike)):
            return cls._of_table(as_table(source), "the table of labels")
        path = Path(source)
        with Database() as database:
            table = open_file(database, path, identifiers=lambda names: names).table()
            return cls._of_table(table, path.name)

    @classmethod
    def _of_rows(cls, rows: Sequence[Mapping[str, Any]]) -> "CovariateLabels":
        wanted = [one.name for one in fields(CovariateLabel)]
        for row in rows:
            unknown = [name for name in row if name not in wanted]
            if unknown or not row.get("name"):
                what = f"has {unknown[0]!r}" if unknown else "has no 'name'"
                raise InputError(
                    f"a row of `covariate_labels` {what}: {dict(row)!r}.",
                    hint=f"a row may have {', '.join(wanted)}.",
                )
        return cls.from_list(rows)

    @classmethod
    def _of_table(cls, table: Table, place: str) -> "CovariateLabels":
        found = _columns(table, place)
        columns = {name: _texts(table, name) for name in found.values()}
        entries: dict[str, CovariateLabel] = {}
        rows: dict[str, str] = {}
        for k in range(table.n_rows):
            values = {ours: columns[theirs][k] for ours, theirs in found.items()}
            name, row = values["name"], table.words.row(k)
            if name is None:
                raise InputError(
                    f"{place} has no name in {row}.",
                    hint=f"give the column {found['name']!r} the name of a covariate, or delete "
                    "the row.",
                )
            if name in entries:
                raise InputError(
                    f"{place} has two rows for {name!r}: {rows[name]} and {row}.",
                    hint="delete one of them.",
                )
            entries[name] = CovariateLabel(**values)  # type: ignore[arg-type]
            rows[name] = row
        return cls(entries, place, rows)

    def entry(self, name: str, key: int | str | None = None) -> CovariateLabel | None:
        """The row of a covariate, or of the column of which it is a level."""
        for words in (name, None if key is None else str(key)):
            if words is not None and words in self.entries:
                return self.entries[words]
        column, _ = self.parted(name)
        return None if column is None else self.entries.get(column)

    def parted(self, name: str) -> tuple[str | None, str]:
        """The labelled column of a covariate ``column=level``, and the words for the level."""
        at = name.find("=")
        while at >= 0:
            column, level = name[:at], name[at + 1 :]
            if column in self.entries:
                return column, self.level(name, level)
            at = name.find("=", at + 1)
        return None, name

    def level(self, name: str, level: str) -> str:
        """What readers call a level of a column, by the name ``column=level``."""
        own = self.entries.get(name)
        if own is not None and own.label:
            return own.label
        return "missing" if level == MISSING_LEVEL else level

    def text(self, name: str, key: int | str | None = None) -> str | None:
        """What readers call a covariate; None where the table has nothing about it."""
        column, level = self.parted(name)
        if column is not None:
            whole = self.entries[column]
            return f"{whole.label or whole.name}: {level}"
        own = self.entry(name, key)
        return None if own is None else own.text

    def texts(self, names: Sequence[str]) -> tuple[str, ...]:
        """What readers call each covariate: its label, or its name."""
        return tuple(self.text(name) or name for name in names)

    def labelled(self, design: Design) -> Design:
        """A design whose names are the labels; its keys stay.

        Where two columns would have one name, their keys are added.
        """
        if not self:
            return design
        pairs = list(zip(design.names, design.keys, strict=True))
        words = [self.text(name, key) or name for name, key in pairs]
        times: dict[str, int] = {}
        for text in words:
            times[text] = times.get(text, 0) + 1
        new = {
            name: text if times[text] == 1 else f"{text} [{key}]"
            for (name, key), text in zip(pairs, words, strict=True)
        }
        return design.renamed(new)

    def references(
        self, given: Mapping[str, object] | None, table: Table, columns: Collection[str]
    ) -> dict[str, object]:
        """Reference levels by column: those that are `given`, and those of the labels.

        Raises `InputError` if the two contradict each other, or no row has the level of a label.
        """
        known = dict(given or {})
        for name, entry in self.entries.items():
            if entry.reference is None:
                continue
            if name in known and _text(known[name]) != entry.reference:
                raise InputError(
                    f"{self._where(name)} gives column {name!r} the reference level "
                    f"{entry.reference!r}, but `reference` says {known[name]!r}.",
                    hint="correct one of them, or leave it out.",
                )
            if name not in table.texts or name not in columns:
                continue
            levels = {v for v in _texts(table, name) if v is not None}
            if entry.reference not in levels:
                place = table.words.column(name)
                error = InputError.unknown_name("level", entry.reference, sorted(levels))
                raise InputError(
                    f"{self._where(name)} gives {name!r} the reference level "
                    f"{entry.reference!r}, which {place} does not have.",
                    hint=error.hint,
                )
            known.setdefault(name, entry.reference)
        return known

    def check(
        self,
        design: Design,
        *,
        columns: Collection[str] = (),
        texts: Collection[str] = (),
        has_long: bool = False,
        imputed: Collection[str] = (),
        place: str = "the data",
    ) -> tuple[Note, ...]:
        """Refuse a row about nothing that the data have, and a reference of what has no levels.

        `columns` are those of the table of people, those of `texts` have levels, and those that are
        `imputed` will have no missing values. A key of a long
        table without entries may be a covariate that nobody has, so there is only a note if the
        data have such a table.
        """
        place_of = {str(key): j for j, key in enumerate(design.keys)}
        place_of |= {name: j for j, name in enumerate(design.names)}
        for name, entry in self.entries.items():
            at = place_of.get(name)
            if entry.reference is None or name in texts:
                continue
            is_level = (
                any(design.names[at] in f for f in design.factors) if at is not None else False
            )
            if at is not None and (is_level or not design.is_binary[at]):
                raise InputError(
                    f"{self._where(name)} gives {name!r} the reference level {entry.reference!r}, "
                    f"but it {'is itself a level' if is_level else 'holds numbers'}.",
                    hint="a column of text or categories has a reference level; of a column of "
                    "zeros and ones, it is the word for 0.",
                )
        names = {*columns, *place_of} - indicators_of(imputed)
        unknown = [name for name in self.entries if name not in names]
        if not unknown:
            return ()
        if has_long and len(unknown) < len(self.entries):
            values = {
                "place": Value("name", self.place),
                "n": Value("things", len(unknown)),
                "first": Value("name", repr(unknown[0])),
            }
            text = "{place} has {n:label|labels} for covariates that nobody has (first: {first})."
            return (Note("unknown_labels", (), text, values),)
        hint = InputError.unknown_name("covariate", unknown[0], sorted(names)).hint
        more = f", nor are {len(unknown) - 1:,} others" if len(unknown) > 1 else ""
        raise InputError(
            f"{self._where(unknown[0])} has a label for {unknown[0]!r}, which is not a covariate "
            f"of {place}{more}.",
            hint=f"{hint} Correct the name, or delete the row.",
        )

    def _where(self, name: str) -> str:
        row = self.rows.get(name)
        return f"{self.place}, {row}," if row else self.place

    def to_list(self) -> list[dict[str, str | None]]:
        """The rows as JSON can hold them."""
        names = [one.name for one in fields(CovariateLabel)]
        return [{n: getattr(entry, n) for n in names} for entry in self.entries.values()]

    @classmethod
    def from_list(cls, state: Iterable[Mapping[str, Any]]) -> "CovariateLabels":
        """The inverse of `to_list`."""
        return cls({row["name"]: CovariateLabel(**row) for row in state})


def _columns(table: Table, place: str) -> dict[str, str]:
    """Fields of a label -> the columns of the table that hold them."""
    lower = {name.lower(): name for name in table.data_columns}
    if "covariatename" in lower:
        found = {ours: lower[theirs] for theirs, ours in OHDSI.items() if theirs in lower}
        if "name" in found:
            return found
    wanted = [one.name for one in fields(CovariateLabel)]
    found, unknown = {}, []
    for small, name in lower.items():
        ours = "name" if small in NAMES else small
        if ours not in wanted:
            unknown.append(name)
        elif ours in found:
            raise InputError(
                f"{place} has two columns of names: {found[ours]!r} and {name!r}.",
                hint="keep one of them.",
            )
        else:
            found[ours] = name
    if unknown:
        raise InputError(
            f"{place} has a column {unknown[0]!r}, whose meaning is not known.",
            hint=f"its columns may be {', '.join(wanted)}.",
        )
    if "name" not in found:
        raise InputError(
            f"{place} has no column `name`, which says what each label is for.",
            hint=f"name the columns {', '.join(wanted)}.",
        )
    return found


def _texts(table: Table, name: str) -> list[str | None]:
    values: list[object] = plain_values(table.array(name)).to_pylist()
    return [None if value is None or _text(value) == "" else _text(value) for value in values]


def _text(value: object) -> str:
    whole = isinstance(value, float) and value % 1 == 0
    return str(int(value)) if whole else str(value).strip()  # type: ignore[call-overload]
