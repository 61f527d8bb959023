"""Levels of columns of text and categories, at the fit and after it.

A column of numbers that one odd value made text must never become categories without a word.
"""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from riskset._errors import InputError
from riskset._types import AnyArray
from riskset.data.table import Table, check_present, is_number, kind_of, type_words

__all__ = ["find_levels", "level_codes"]

MANY_LEVELS = 50
"""A column of text with more levels, and more than one for every two rows, is no characteristic."""

FEW_LEVELS = 10
"""Up to so many levels, whole numbers written as text are taken for codes."""

WHOLE = re.compile(r"-?[0-9]+")
LEADING_ZERO = re.compile(r"0[0-9]+")
COMMAS = re.compile(r"[-+]?[0-9]+(,[0-9]+)+(\.[0-9]+)?")
"""Numbers as people write them: 1,5 or 1,000."""


def _level_text(value: object) -> str:
    # A level is remembered as text, so that 1 and 1.0 from two file formats are one level.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def find_levels(table: Table, name: str, array: "pa.ChunkedArray") -> tuple[str, ...]:
    """All levels of a column of text or categories, sorted; () for a column of numbers.

    Raises
    ------
    InputError
        If a value is missing, or the column looks like an identifier or, being text, like numbers.
    """
    kind = kind_of(array.type)
    if kind not in ("text", "category"):
        return ()
    check_present(table, name, array)
    distinct = array.unique()
    if pa.types.is_dictionary(distinct.type):
        distinct = distinct.dictionary_decode()
    levels = tuple(map(_level_text, sorted(distinct.to_pylist())))
    if len(levels) > MANY_LEVELS and 2 * len(levels) > table.n_rows:
        raise InputError(
            f"{table.words.column(name)} has {len(levels):,} different values in "
            f"{table.n_rows:,} rows (such as {levels[0]!r}), so it looks like an identifier and "
            "not like a characteristic.",
            hint="name it with `id` or `cluster`, or leave it out with `drop`.",
        )
    if kind == "text":
        _check_no_numbers(table, name, array, levels)
    return levels


def _check_no_numbers(
    table: Table, name: str, array: "pa.ChunkedArray", levels: tuple[str, ...]
) -> None:
    """Raise if most levels of a column of text are numbers."""
    if len(levels) <= FEW_LEVELS and (
        all(map(WHOLE.fullmatch, levels)) or any(map(LEADING_ZERO.fullmatch, levels))
    ):
        return
    odd = [level for level in levels if not is_number(level)]
    others = sum(not COMMAS.fullmatch(level.strip()) for level in odd)
    # What is odd is rare: a misprint or two, or a few codes for what is missing.
    if others > max(2, len(levels) / 10) or len(levels) - others < max(1, 2 * others):
        return
    words = table.words.column(name)
    if not odd:
        raise InputError(
            f"{words} is text, but all of its {len(levels):,} different values are numbers "
            f"(such as {levels[0]!r}).",
            hint="convert it to numbers; if they are codes, give it a categorical type or put a "
            "letter before them.",
        )
    wanted = pa.array(odd, pa.large_string())
    first = int(np.argmax(pc.is_in(array.cast(pa.large_string()), value_set=wanted).to_numpy()))
    are = "is no number" if len(odd) == 1 else "are no numbers"
    raise InputError(
        f"{words} is text, because {len(odd):,} of its {len(levels):,} different values {are}: "
        f"{_listed(odd)} (first: {table.words.row(first)}, value {array[first].as_py()!r}).",
        hint="correct or recode such values, so that the column is numeric; if the numbers are "
        "codes, give it a categorical type or put a letter before them.",
    )


def level_codes(
    table: Table, name: str, array: "pa.ChunkedArray", levels: tuple[str, ...]
) -> AnyArray:
    """Number of the level of each row."""
    check_present(table, name, array)
    kind = kind_of(array.type)
    if kind == "category":
        known = {level: code for code, level in enumerate(levels)}
        found = [
            np.array(
                [known.get(_level_text(v), -1) for v in chunk.dictionary.to_pylist()], np.int32
            )[chunk.indices.to_numpy(zero_copy_only=False)]
            for chunk in array.chunks
        ]
        codes = np.concatenate(found) if found else np.zeros(0, np.int32)
    elif kind == "text" or pa.types.is_integer(array.type):
        text = array.cast(pa.large_string())
        at = pc.index_in(text, value_set=pa.array(levels, pa.large_string()))
        codes = pc.fill_null(at, -1).to_numpy()
    else:
        raise InputError(
            f"{table.words.column(name)} held categories at the fit "
            f"({_listed(levels)}), but now its type is {type_words(array.type)}.",
            hint="convert it to text.",
        )
    unknown = codes < 0
    if unknown.any():
        i = int(np.argmax(unknown))
        raise InputError(
            f"{table.words.column(name)} has a level that was not there at the fit, in "
            f"{int(unknown.sum()):,} of {table.n_rows:,} rows (first: {table.words.row(i)}, "
            f"value {array[i].as_py()!r}).",
            hint=f"known levels are {_listed(levels)}; recode these rows, or fit again with them.",
        )
    return codes


def _listed(levels: Sequence[str]) -> str:
    shown = ", ".join(map(repr, levels[:10]))
    return f"{shown} and {len(levels) - 10:,} more" if len(levels) > 10 else shown
