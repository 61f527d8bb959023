"""CSV files as tables of the embedded database: read as text, and typed by riskset's rules.

The database never guesses. Each column has a few casts, tried in order; the first that fits every
value of the file decides its type, and a column that fits none stays text.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple, TextIO

import duckdb

from riskset._errors import InputError, counted
from riskset.data.checks import first_repeated
from riskset.data.database import Database, StoredTable, check_case, quoted, text
from riskset.data.dates import iso_day
from riskset.data.table import NUMBER

__all__ = ["CsvCast", "TextRules", "as_key", "open_csv"]

MISSING = ("", "na", "n/a", "#n/a", "nan", "null")
"""What stands for a missing value, in any case and between any blanks."""

OF_A_SPREADSHEET = re.compile(r"(?i:sep)=.?")
"""The line that declares the separator to Excel."""

ROWS_OF_FIRST_LOOK = 1000
"""Rows that rule readings out before the whole file is read."""

CsvCast = Callable[[str], str]
"""SQL of a text -> SQL of its value, NULL where the text does not fit."""


def _as_whole(sql: str) -> str:
    whole = f"TRY_CAST({sql} AS BIGINT)"
    return (
        # Most are written as programs write them, which this test finds sooner.
        f"(CASE WHEN CAST({whole} AS VARCHAR) = {sql} THEN {whole} "
        f"WHEN regexp_full_match(trim({sql}), '[-+]?(0|[1-9][0-9]*)') THEN {whole} END)"
    )


def _as_number(sql: str) -> str:
    number = f"TRY_CAST({sql} AS DOUBLE)"
    return (
        f"(CASE WHEN regexp_full_match(trim({sql}), {text(NUMBER.pattern)}) THEN {number} "
        f"WHEN lower(ltrim(trim({sql}), '+-')) IN ('inf', 'infinity') THEN {number} END)"
    )


def _as_logical(sql: str) -> str:
    # "Yes" and "t" are text: a column must not change its meaning with the format of the file.
    return f"(CASE lower({sql}) WHEN 'true' THEN true WHEN 'false' THEN false END)"


def _as_day(sql: str) -> str:
    return iso_day(f"trim({sql})")


USUAL: tuple[CsvCast, ...] = (_as_whole, _as_number, _as_logical, _as_day)


def as_key(sql: str) -> str:
    """Whole numbers as programs write them: 007 and 7 are different identifiers."""
    whole = f"TRY_CAST({sql} AS BIGINT)"
    return f"(CASE WHEN CAST({whole} AS VARCHAR) = trim({sql}) THEN {whole} END)"


@dataclass(frozen=True)
class TextRules:
    """How a CSV file is read.

    `casts` gets the names of the columns and returns the casts of those that do not have the
    usual ones (whole numbers, numbers, true and false, ISO dates); without any, a column is text.
    With `bare_tabs`, quotes in a file that is separated by tabs are ordinary letters, unless every
    name in its first line is in quotes.
    """

    casts: Callable[[Sequence[str]], Mapping[str, Sequence[CsvCast]]] = lambda names: {}
    bare_tabs: bool = False


class _Layout(NamedTuple):
    """What the first line says."""

    separator: str
    quoting: Literal[0, 3]
    names: list[str]


def open_csv(database: Database, path: Path, rules: TextRules) -> StoredTable:
    """A CSV file as a table of the database.

    Raises `InputError` if it is not text in UTF-8, or a line has too few or too many fields.
    """
    layout = _layout(path, rules.bare_tabs)
    check_case(layout.names, path.name)
    given = rules.casts(layout.names)
    casts = [list(given.get(name, USUAL)) for name in layout.names]
    with _explaining_lines(path, layout):
        columns, staged = _typed(database, _source(path, layout), casts)
    texts = [k for k, of_column in enumerate(casts) if not of_column]
    _refuse_nul(database, staged, path.name, {f"c{k}": layout.names[k] for k in texts})
    named = zip(columns, layout.names, strict=True)
    listed = ", ".join(f"{column} AS {quoted(name)}" for column, name in named)
    view = database.new_name()
    database.execute(f"CREATE TEMP VIEW {view} AS SELECT {listed} FROM {staged}")
    return database.stored(view, path.name)


def _refuse_nul(database: Database, staged: str, file: str, columns: Mapping[str, str]) -> None:
    """Refuse NUL bytes: they are never intended, and a number with one looks like text."""
    if not columns:
        return
    counts = ", ".join(f"count(*) FILTER (contains({column}, chr(0)))" for column in columns)
    for name, n in zip(
        columns.values(), database.row(f"SELECT {counts} FROM {staged}"), strict=True
    ):
        if n:
            raise InputError(
                f"{file} is damaged: {counted(n, 'value')} of column {name!r} "
                f"{'has' if n == 1 else 'have'} a NUL byte.",
                hint="copy the file again, or write it as text in UTF-8.",
            )


# -------------------------------------------------------------------- the first line


def _open_text(path: Path) -> TextIO:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _layout(path: Path, bare_tabs: bool) -> _Layout:
    """Separator, quotes and names of the columns, from the first line."""
    try:
        with _open_text(path) as lines:
            first = lines.readline()
            if first and not first.strip():
                raise InputError(
                    f"the first line of {path.name} is empty, and not the names of the columns.",
                    hint="delete the empty lines above the names.",
                )
            line = first.strip("\r\n")
            if OF_A_SPREADSHEET.fullmatch(line.strip('"')):
                raise InputError(
                    f"the first line of {path.name} is {line!r}, which only spreadsheets "
                    "understand, and not the names of the columns.",
                    hint="delete this line; riskset finds the separator by itself.",
                )
            tab = ".tsv" in path.name.lower()
            comma = max(",;|\t", key=first.count)  # the first of equals, so a comma by default
            separator = "\t" if tab else comma
            bare = bare_tabs and separator == "\t" and not _all_in_quotes(first)
            quoting: Literal[0, 3] = 3 if bare else 0  # csv.QUOTE_NONE, csv.QUOTE_MINIMAL
            lines.seek(0)
            names = next(csv.reader(lines, delimiter=separator, quoting=quoting))
            if path.name.lower().endswith(".gz"):
                # To the end, where the checksum stands: older databases read half a file silently.
                while lines.buffer.read(1 << 24):
                    pass
    except (UnicodeDecodeError, OSError, EOFError, zlib.error, csv.Error, StopIteration) as error:
        raise InputError(
            f"{path.name} could not be read as text: {error}.",
            hint="write it as CSV in UTF-8, with the names of the columns in the first line.",
        ) from None
    names = [name.strip() for name in names]
    for k, name in enumerate(names, start=1):
        if not name:
            raise InputError(
                f"column {k} of {path.name} has no name.",
                hint="give it one, or leave it out; R writes such a column unless row.names = "
                "FALSE, pandas unless index=False.",
            )
    again = first_repeated(names)
    if again is not None:
        raise InputError(
            f"{path.name} has two columns called {again!r}.", hint="rename one of them."
        )
    return _Layout(separator, quoting, names)


def _all_in_quotes(line: str) -> bool:
    fields = line.rstrip("\r\n").split("\t")
    return all(len(f) > 1 and f.startswith('"') and f.endswith('"') for f in fields)


@contextmanager
def _explaining_lines(path: Path, layout: _Layout) -> Iterator[None]:
    """Name the line of a CSV file that has too few or too many fields."""
    n_columns = len(layout.names)
    try:
        yield
    except duckdb.Error:
        try:
            with _open_text(path) as lines:
                rows = csv.reader(lines, delimiter=layout.separator, quoting=layout.quoting)
                odd = next((row for row in rows if row and len(row) != n_columns), None)
        except UnicodeDecodeError:
            raise InputError(
                f"{path.name} is not text in UTF-8.", hint="convert it to UTF-8."
            ) from None
        except (csv.Error, EOFError, OSError, zlib.error):
            odd = None
        if odd is None:
            raise
        raise InputError(
            f"line {rows.line_num} of {path.name} has {len(odd)} fields, but the first line names "
            f"{n_columns} columns.",
            hint="correct the line; a field that holds the separator must stand in quotes.",
        ) from None


# -------------------------------------------------------------------- text and types


def _source(path: Path, layout: _Layout) -> str:
    """The file as a table of text, with the columns c0, c1, ..."""
    quote = text("" if layout.quoting == csv.QUOTE_NONE else '"')
    options = {
        "header": "true",
        "delim": text(layout.separator),
        "quote": quote,
        "escape": quote,
        "skip": "0",
        "comment": "''",
        "names": f"[{', '.join(text(f'c{k}') for k in range(len(layout.names)))}]",
        "nullstr": f"[{', '.join(map(text, _in_any_case(MISSING)))}]",
        "all_varchar": "true",
        "null_padding": "false",
        "ignore_errors": "false",
    }
    listed = ", ".join(f"{option} = {value}" for option, value in options.items())
    return f"read_csv({text(str(path))}, {listed})"


def _in_any_case(words: Sequence[str]) -> list[str]:
    """All ways to write words in upper and lower case."""
    return [
        "".join(letters)
        for word in words
        for letters in product(*({c.lower(): 0, c.upper(): 0} for c in word))
    ]


def _is_present(sql: str) -> str:
    # The database takes these codes for missing only without blanks around them.
    return f"lower(trim({sql})) NOT IN ({', '.join(map(text, MISSING))})"


def _typed(
    database: Database, source: str, casts: Sequence[list[CsvCast]]
) -> tuple[list[str], str]:
    """SQL of the columns, of the types that their casts give, and the table that has them.

    One value that does not fit a cast rules it out, so the first rows may rule out, but only the
    whole file decides.
    """
    _rule_out(database, f"(SELECT * FROM {source} LIMIT {ROWS_OF_FIRST_LOOK})", casts)
    while True:
        staged = database.new_name()
        database.execute(f"CREATE TEMP TABLE {staged} AS {_first_cast(source, casts)}")
        counts = "".join(f", count(c{k})" for k in range(len(casts)))
        n_odd, *n = database.row(f"SELECT count(*) FILTER (is_odd){counts} FROM {staged}")
        if not n_odd:
            break
        database.execute(f"DROP TABLE {staged}")
        _rule_out(database, source, casts)
    columns = [
        f"c{k}"
        if of_column and n[k]
        else f"(CASE WHEN {_is_present(f'c{k}')} THEN c{k} END)"
        if not of_column
        else "CAST(NULL AS VARCHAR)"
        for k, of_column in enumerate(casts)
    ]
    return columns, staged


def _first_cast(source: str, casts: Sequence[list[CsvCast]]) -> str:
    """Query of the first cast of each column, with `is_odd` where a value does not fit it."""
    values = [f"{of_column[0](f'c{k}')} AS v{k}" for k, of_column in enumerate(casts) if of_column]
    odd = [
        f"(CASE WHEN v{k} IS NULL THEN coalesce({_is_present(f'c{k}')}, false) ELSE false END)"
        for k, of_column in enumerate(casts)
        if of_column
    ]
    listed = [f"{'v' if of_column else 'c'}{k} AS c{k}" for k, of_column in enumerate(casts)]
    return (
        f"SELECT {', '.join(listed)}, {' OR '.join(odd) or 'false'} AS is_odd "
        f"FROM (SELECT {', '.join(['*', *values])} FROM {source})"
    )


def _rule_out(database: Database, source: str, casts: Sequence[list[CsvCast]]) -> None:
    """Take out the casts that some value of the source does not fit."""
    tests = [
        f"count(*) FILTER ({_is_present(f'c{k}')} AND {one(f'c{k}')} IS NULL)"
        for k, of_column in enumerate(casts)
        for one in of_column
    ]
    if not tests:
        return
    n_unfit = iter(database.row(f"SELECT {', '.join(tests)} FROM {source}"))
    for of_column in casts:
        of_column[:] = [one for one in of_column if not next(n_unfit)]
