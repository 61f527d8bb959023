"""Levels of columns of text and categories, at the fit and after it.

A column of numbers that one odd value made text must never silently become categories.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from riskset._errors import InputError
from riskset._types import AnyArray
from riskset.data.checks import IN_DAYS, listed
from riskset.data.missing_values import (
    MISSING_LEVEL,
    MissingRule,
    empty_column,
    missing_rows_of,
)
from riskset.data.table import (
    DAYS,
    DURATION,
    Table,
    check_present,
    declared_values,
    has_decimal_comma,
    is_number,
    kind_of,
    plain_values,
    type_words,
)

__all__ = [
    "MANY_LEVELS",
    "check_references",
    "find_levels",
    "is_missing_code",
    "level_codes",
    "with_references",
]

MANY_LEVELS = 50
"""A column of text with more levels, and more than one for every two rows, is not a category."""

MIN_ROWS_ALL_DIFFERENT = 10
"""From this number of rows on, a column with a different level in every row is not a category."""

MAX_LEVELS_OF_CODES = 10
"""Up to so many levels, whole numbers written as text are taken for codes."""

MAX_SHARE_OF_MISPRINTS = 0.1
"""Share of the levels or of the rows up to which values of another kind are taken for misprints."""

WHOLE = re.compile(r"-?[0-9]+")
LEADING_ZERO = re.compile(r"0[0-9]+")
COMMAS = re.compile(r"[-+]?[0-9]+(,[0-9]+)+(\.[0-9]+)?")
"""Numbers as people write them: 1,5 or 1,000."""

PERCENT = re.compile(r"[-+]?[0-9]+([.,][0-9]+)? ?%")
"""One of many percentages is a number; 10% and 20% alone may be two doses."""

AMOUNT = re.compile(r"[-+]?[0-9]+([.,][0-9]+)? ?([^\W\d_]{1,12}\.?)")
"""A number and its unit, such as 45 y."""

MAX_UNITS = 3
"""Amounts have few units; codes such as 12B have many letters."""

DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?|[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{4}")
CLOCK = re.compile(r":|T")
BOOLEAN = re.compile(r"(?i:true|false)")
HINTS = {"date": DAYS, "duration": IN_DAYS}
MISSING_CODE = re.compile(r"(?i:#?n/?a|nan|null|<na>|nat|\.*|\?*|-*)")
"""What programs write for a missing value; in a column of words it may be a level."""


def is_missing_code(level: str) -> bool:
    """Whether programs write this for a missing value."""
    return MISSING_CODE.fullmatch(level.strip()) is not None


def _level_text(value: object) -> str:
    # A level is remembered as text, so that 1 and 1.0 from two file formats are one level.
    whole = isinstance(value, float | Decimal) and value % 1 == 0
    return str(int(value)) if whole else str(value)  # type: ignore[call-overload]


def find_levels(
    table: Table, name: str, array: "pa.ChunkedArray", missing: MissingRule = "error"
) -> tuple[str, ...]:
    """All levels that occur in a column of text or categories; () for a column of numbers.

    They have the order that a categorical type declares, and are sorted otherwise, as are whole
    numbers that were categories, of which a file does not keep the order. If missing
    values get an indicator, it is the last level.

    Raises `InputError` if a value is missing, all are, or the column looks like an identifier or,
    if it is text, like numbers, dates or booleans.
    """
    kind = kind_of(array.type)
    if kind not in ("text", "category") and name not in table.coded:
        return ()
    if missing == "error":
        check_present(table, name, array)
    every = plain_values(array.unique()).unique().to_pylist()
    distinct = [value for value in every if value is not None]
    if not distinct:
        raise empty_column(table, name)
    if kind == "category" and name not in table.unordered:
        declared = {value: place for place, value in enumerate(declared_values(array))}
        in_order = sorted(distinct, key=declared.__getitem__)
    else:
        in_order = sorted(distinct)
    levels = tuple(map(_level_text, in_order))
    if MISSING_LEVEL in levels and len(distinct) < len(every):
        raise InputError(
            f"{table.words.column(name)} has the level {MISSING_LEVEL!r} and missing values, "
            "which would get the same name.",
            hint="write one as the other.",
        )
    if kind == "text":
        _check_words(table, name, array, levels)
    n_levels, n_rows = len(levels), table.n_rows
    if (
        n_levels > MANY_LEVELS and 2 * n_levels > n_rows
    ) or MIN_ROWS_ALL_DIFFERENT <= n_rows == n_levels:
        raise InputError(
            f"{table.words.column(name)} has {len(levels):,} different values in "
            f"{table.n_rows:,} rows (such as {levels[0]!r}), so it looks like an identifier and "
            "not like a characteristic.",
            hint="name it with `id` or `cluster`, or leave it out with `drop`.",
        )
    return levels if len(distinct) == len(every) else (*levels, MISSING_LEVEL)


def check_references(reference: object) -> None:
    """Refuse what does not give levels by column."""
    if reference is not None and not isinstance(reference, Mapping):
        raise InputError(
            f"`reference` must give a level for each of its columns, but it is {reference!r}.",
            hint="for example reference={'sex': 'male'}.",
        )


def with_references(
    table: Table,
    columns: Sequence[str],
    levels: Mapping[str, tuple[str, ...]],
    reference: Mapping[str, object],
) -> dict[str, tuple[str, ...]]:
    """Levels by column, those that are to be references first.

    `columns` are all covariates of the table, and `levels` has those with levels.

    Raises
    ------
    InputError
        If a column is not a covariate or has no levels, or the level does not occur.
    """
    out = dict(levels)
    for name, value in reference.items():
        table.need(name)
        if name not in levels:
            why = "is not a covariate" if name not in columns else "holds numbers"
            raise InputError(
                f"`reference` gives a level of {table.words.column(name)}, which {why}.",
                hint="name a column of text or categories; if codes are levels, convert them to "
                "text.",
            )
        level = _level_text(value)
        if level not in levels[name]:
            place = table.words.column(name)
            raise InputError.unknown_name("level", level, levels[name], place=place)
        out[name] = (level, *(other for other in levels[name] if other != level))
    return out


def _check_words(
    table: Table, name: str, array: "pa.ChunkedArray", levels: tuple[str, ...]
) -> None:
    """Raise if a column of text is made of numbers, dates or booleans, but for a few odd values."""
    is_code = len(levels) <= MAX_LEVELS_OF_CODES and all(map(WHOLE.fullmatch, levels))
    if is_code or (len(levels) <= MAX_LEVELS_OF_CODES and any(map(LEADING_ZERO.fullmatch, levels))):
        return
    if (
        len(levels) > MAX_LEVELS_OF_CODES
        and sum(map(bool, map(PERCENT.fullmatch, levels))) > MAX_LEVELS_OF_CODES
    ):
        raise _wrong_kind(table, name, array, levels, "number")
    if _are_amounts(levels):
        raise _wrong_kind(table, name, array, levels, "number")
    count = dict(zip(*(part.to_pylist() for part in array.value_counts().flatten()), strict=True))
    for what, is_kind in _KINDS.items():
        of_kind = [level for level in levels if is_kind(level.strip())]
        words = [v for v in levels if not is_kind(v.strip()) and not is_missing_code(v)]
        n_words = sum(count[level] for level in words)
        if not of_kind or not (
            n_words <= MAX_SHARE_OF_MISPRINTS * table.n_rows
            # Three answers are three answers: true, false and unknown.
            or (what != "boolean" and _are_few(len(words), len(of_kind), len(levels)))
        ):
            continue
        if what != "boolean" or len(of_kind) < len(levels):
            raise _wrong_kind(table, name, array, levels, what)


_KINDS: dict[str, Callable[[str], object]] = {
    "number": lambda level: is_number(level) or COMMAS.fullmatch(level),
    "date": DATE.fullmatch,
    # 30 days and 90 days may be two groups, but a clock beside them makes a duration.
    "duration": lambda level: DURATION.fullmatch(level) and CLOCK.search(level),
    "boolean": BOOLEAN.fullmatch,
}


def _are_amounts(levels: tuple[str, ...]) -> bool:
    """Whether levels are numbers with units, or some with and some without, but for a few words."""
    found = [AMOUNT.fullmatch(level.strip()) for level in levels]
    units = {match[2].lower() for match in found if match is not None}
    n_numbers = sum(1 for level in levels if is_number(level.strip()))
    n_amounts = sum(1 for match in found if match is not None)
    n_words = len(levels) - n_numbers - n_amounts
    n_missing = sum(map(is_missing_code, levels))
    return (
        1 <= len(units) <= MAX_UNITS
        and n_numbers + n_amounts > MAX_LEVELS_OF_CODES
        and _are_few(n_words - n_missing, n_numbers + n_amounts, len(levels))
    )


def _are_few(n_words: int, n_of_kind: int, n_levels: int) -> bool:
    """A misprint or two, or a few codes for what is missing."""
    return n_words <= max(2, MAX_SHARE_OF_MISPRINTS * n_levels) and n_of_kind >= max(1, 2 * n_words)


def _wrong_kind(
    table: Table, name: str, array: "pa.ChunkedArray", levels: tuple[str, ...], what: str
) -> InputError:
    is_kind = is_number if what == "number" else _KINDS[what]
    odd = [level for level in levels if not is_kind(level.strip())]
    words = table.words.column(name)
    letter = "give it a categorical type or put a letter before them."
    if not odd:
        return InputError(
            f"{words} is text, but all of its {len(levels):,} different values are {what}s "
            f"(such as {levels[0]!r}).",
            hint=HINTS.get(what, f"convert it to numbers; if they are codes, {letter}"),
        )
    wanted = pa.array(odd, pa.large_string())
    first = int(np.argmax(pc.is_in(array.cast(pa.large_string()), value_set=wanted).to_numpy()))
    are = f"is not a {what}" if len(odd) == 1 else f"are not {what}s"
    correct = "correct or recode such values, so that the column"
    hints = HINTS | {
        "number": f"{correct} is numeric; if the numbers are codes, {letter}",
        "boolean": f"{correct} holds true and false only.",
    }
    if what == "number" and has_decimal_comma(array[first].as_py()):
        hints[what] = "write decimals with a point instead of a comma."
    return InputError(
        f"{words} is text, because {len(odd):,} of its {len(levels):,} different values {are}: "
        f"{listed(odd)} (first: {table.words.row(first)}, value {array[first].as_py()!r}).",
        hint=hints[what],
    )


def level_codes(
    table: Table, name: str, array: "pa.ChunkedArray", levels: tuple[str, ...]
) -> AnyArray:
    """Number of the level of each row."""
    if MISSING_LEVEL not in levels:
        check_present(table, name, array)
    kind = kind_of(array.type)
    if kind == "category":
        known = {level: code for code, level in enumerate(levels)}
        parts = []
        for chunk in array.chunks:
            values = chunk.dictionary.to_pylist()
            code = [*(known.get(_level_text(value), -1) for value in values), -1]
            place = chunk.indices.cast(pa.int64()).fill_null(len(values))
            parts.append(np.array(code, np.int32)[place.to_numpy()])
        codes = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    elif kind == "text" or pa.types.is_integer(array.type):
        text = array.cast(pa.large_string())
        at = pc.index_in(text, value_set=pa.array(levels, pa.large_string()))
        codes = pc.fill_null(at, -1).to_numpy()
    else:
        raise InputError(
            f"{table.words.column(name)} held categories at the fit "
            f"({listed(levels)}), but now its type is {type_words(array.type)}.",
            hint="convert it to text.",
        )
    if MISSING_LEVEL in levels:
        codes = np.where(missing_rows_of(array), levels.index(MISSING_LEVEL), codes)
    unknown = codes < 0
    if unknown.any():
        i = int(np.argmax(unknown))
        raise InputError(
            f"{table.words.column(name)} has a level that was not there at the fit, in "
            f"{int(unknown.sum()):,} of {table.n_rows:,} rows (first: {table.words.row(i)}, "
            f"value {array[i].as_py()!r}).",
            hint=f"known levels are {listed(levels)}; recode these rows, or fit again with them.",
        )
    return codes
