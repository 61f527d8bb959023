"""Records with a first and a last day, and observation periods: when people are observed.

Contradictions in the dates are noted, never corrected in silence.
"""

import datetime

from riskset._messages import Note, Value
from riskset.omop.cdm import Cdm
from riskset.omop.scratch import Scratch

__all__ = [
    "date_sql",
    "joined",
    "last_day",
    "note_backward",
    "notes_on_periods",
    "stage_periods",
]

FIRST_KNOWN_DAY = datetime.date(1901, 1, 1)
LAST_KNOWN_DAY = datetime.date(2099, 1, 1)
"""Dates before the first, or from the last on, stand for one that is not known, as 9999-12-31."""


def date_sql(day: datetime.date | str | None) -> str:
    """A day as SQL, NULL for none."""
    return "NULL::DATE" if day is None else f"DATE '{day}'"


def last_day(start: str, end: str) -> str:
    """SQL of the last day of a record: the first one if there is no end, or one before it."""
    return f"greatest(coalesce({end}, {start}), {start})"


def note_backward(
    cdm: Cdm,
    work: Scratch,
    rows: str,
    what: str,
    start: str,
    end: str,
    *,
    count: bool = True,
) -> None:
    """Note how many of the rows, records of `what`, end before they start, and if these `count`."""
    (n,) = work.row(f"SELECT count(*) FROM {rows} WHERE {end} < {start}")
    if n:
        cdm.note(
            "end_before_start",
            "{n:record|records} of {what} {n:?ends|end} before {n:?it starts|they start}, and "
            + ("{n:?lasts|last} one day." if count else "{n:?does|do} not count."),
            n=Value("count", n),
            what=Value("name", what),
        )


def joined(records: str, keys: str, gap_days: int) -> str:
    """Query of episodes ``keys, s, e``: records join up to `gap_days` after the running end."""
    window = f"PARTITION BY {keys} ORDER BY s, e ROWS BETWEEN UNBOUNDED PRECEDING AND"
    return (
        f"SELECT {keys}, min(s) AS s, max(e) AS e FROM (SELECT *, sum(CASE WHEN before IS NULL "
        f"OR s > before + {gap_days} THEN 1 ELSE 0 END) OVER ({window} CURRENT ROW) AS episode "
        f"FROM (SELECT *, max(e) OVER ({window} 1 PRECEDING) AS before FROM {records})) "
        f"GROUP BY {keys}, episode"
    )


def stage_periods(cdm: Cdm, work: Scratch, *, join: bool) -> str:
    """Periods as a table ``person_id``, first day s and last day e.

    `join` joins periods that overlap, or that follow each other without a gap.
    """
    start, end = "observation_period_start_date", "observation_period_end_date"
    view = cdm.view("observation_period", ("person_id", start, end))
    note_backward(cdm, work, view, "observation_period", start, end, count=False)
    (n,) = work.row(f"SELECT count(*) FROM {view} WHERE {start} IS NULL OR {end} IS NULL")
    if n:
        cdm.note(
            "incomplete_period",
            "{n:record|records} of observation_period {n:?has|have} no first or no last day, and "
            "{n:?does|do} not count.",
            n=Value("count", n),
        )
    valid = f"SELECT person_id, {start} AS s, {end} AS e FROM {view} WHERE {start} <= {end}"
    return work.keep(joined(f"({valid})", "person_id", 1) if join else valid)


def notes_on_periods(
    work: Scratch, rows: str, periods: str, study_end: datetime.date | str | None
) -> tuple[Note, ...]:
    """Notes on the periods of exposures.

    `rows` is a table of exposures in each of their periods, with ``obs_start``, ``obs_end`` and
    ``choice``, which is 1 for the one that counts.
    """
    known_end = f"least(obs_end, {date_sql(study_end)})"
    follows = (
        f"FROM {rows} f JOIN {periods} o USING (person_id) WHERE f.choice = 1 "
        "AND (o.e + 1 = f.obs_start OR o.s = f.obs_end + 1)"
    )
    checks = (
        (
            "overlapping_observation_periods",
            f"count(*) FROM {rows} WHERE choice = 2",
            "in several observation periods; the one that began first counts, or the longest of "
            "several that began on the same day.",
        ),
        (
            "adjacent_observation_periods",
            f"count(DISTINCT f.key) {follows}",
            "in an observation period that follows or precedes another one of the person without "
            "a gap. Each counts by itself; `join_observation_periods` joins them.",
        ),
        (
            "end_not_known",
            f"count(*) FROM {rows} WHERE choice = 1 AND {known_end} >= {date_sql(LAST_KNOWN_DAY)}",
            "observed to {last_day} or later, which stands for an end that is not known; "
            "set `study_end` to the last day of the data.",
        ),
        (
            "start_not_known",
            f"count(*) FROM {rows} WHERE choice = 1 AND obs_start < {date_sql(FIRST_KNOWN_DAY)}",
            "observed from before {first_day}, which stands for a start that is not known; "
            "`washout_days` then counts days without observation.",
        ),
    )
    notes = []
    days = {
        "first_day": Value("setting", str(FIRST_KNOWN_DAY)),
        "last_day": Value("setting", str(LAST_KNOWN_DAY)),
    }
    for code, query, state in checks:
        (n,) = work.row(f"SELECT {query}")
        if n:
            text = f"{{n:exposure is|exposures are}} {state}"
            notes.append(Note(code, (), text, {"n": Value("count", n), **days}))
    return tuple(notes)
