"""Dates that are written as text: one rule for files, frames and tables of a CDM.

A date is the calendar day that is written: 2020-01-31, with or without a time and a zone after it,
or 20200131. Nothing else is a date; 01/02/2020 is January to some and February to others.
"""

import datetime
import re

from riskset.data.database import text

__all__ = ["COMPACT", "ISO", "iso_day", "read_day", "written_day"]

ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:.*)?"
COMPACT = r"[0-9]{8}(\.0*)?"
"""Numbers that have passed through floating point end in .0."""


def iso_day(sql: str) -> str:
    """SQL of the day of a text in ISO form; NULL where it is not."""
    day = f"TRY_CAST({sql} AS DATE)"
    return (
        # Most dates are ten characters and nothing else, which this test finds sooner.
        f"(CASE WHEN length({sql}) = 10 AND CAST({day} AS VARCHAR) = {sql} THEN {day} "
        f"WHEN regexp_full_match({sql}, {text(ISO)}) THEN TRY_CAST(left({sql}, 10) AS DATE) END)"
    )


def written_day(sql: str) -> str:
    """SQL of the day of a text in either form; NULL where it is neither."""
    compact = f"CAST(try_strptime(left({sql}, 8), '%Y%m%d') AS DATE)"
    return (
        f"coalesce({iso_day(sql)}, CASE WHEN regexp_full_match({sql}, {text(COMPACT)}) "
        f"THEN {compact} END)"
    )


def read_day(written: str) -> datetime.date | None:
    """The day of a text in either form, or None.

    Examples
    --------
    >>> read_day("2020-01-31T23:30:00-05:00")
    datetime.date(2020, 1, 31)
    >>> read_day("01/31/2020") is None
    True
    """
    written = written.strip()
    if re.fullmatch(COMPACT, written):
        written = f"{written[:4]}-{written[4:6]}-{written[6:8]}"
    if re.fullmatch(ISO, written) is None:
        return None
    try:
        return datetime.date.fromisoformat(written[:10])
    except ValueError:
        return None
