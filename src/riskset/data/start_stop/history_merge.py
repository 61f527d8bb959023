"""Rows with start and stop from the histories of people: R's `tmerge`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from riskset._errors import InputError, counted
from riskset._messages import Note, Value
from riskset._types import AnyArray, Index
from riskset.data.column_roles import ColumnRoles
from riskset.data.start_stop.episodes import Cuts, cut_rows, sort_groups
from riskset.data.start_stop.histories import EventTimes, History, LastValue, checked_histories
from riskset.data.start_stop.history_columns import Timeline, read_history
from riskset.data.start_stop.history_records import PLACES, FollowUpRows, PersonKeys
from riskset.data.start_stop.history_values import fill_with_column, ordered_column
from riskset.data.start_stop.splitting import FollowUp

__all__ = ["FollowedPeople", "StartStopRows", "merge_histories"]

PEOPLE = "the table of people"
"""How messages call the table that tells who is followed."""


@dataclass(frozen=True, eq=False, repr=False)
class StartStopRows:
    """Rows with start and stop, and what was counted when they were made.

    Attributes
    ----------
    rows : data frame
        Of the library of the table of people.
    counts : data frame
        What was counted, by history or landmark.
    notes : tuple of Note
        What was left out, with numbers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = pa.table({"id": [1], "time": [10], "event": [1]})
    >>> labs = pa.table({"id": [1, 2], "time": [4, 5], "value": [2.2, 3.1]})
    >>> found = rs.merge_histories(people, {"x": rs.LastValue(labs, "value")}, id="id")
    >>> for note in found.notes:
    ...     print(note.message)
    history 'x': 1 record of people who are not in the table of people left out.
    history 'x': 1 row has no value yet.
    """

    rows: Any
    counts: Any
    notes: tuple[Note, ...]

    def __repr__(self) -> str:
        return f"<StartStopRows: {len(self.rows):,} rows, {len(self.notes)} notes>"


def merge_histories(
    people: object,
    histories: Mapping[str, History],
    *,
    id: str,
    time: str | None = None,
    event: str | None = None,
    entry: str | None = None,
    censored: str | None = None,
    start: float = 0.0,
) -> StartStopRows:
    """Make rows with start and stop from people and their histories, as R's `tmerge`.

    The follow-up of each person is cut wherever a history changes, in one step. A covariate that
    changes at time t has its new value in the rows that start at t or later, never in the row that
    ends at t, so that it is known before the events that it is related to.

    Parameters
    ----------
    people : data frame
        One row for each person, of any library; or several with intervals that do not overlap.
    histories : mapping of str to history
        New columns: `LastValue`, `RunningTotal`, `EventTimes` or `ExposurePeriods` by name.
    id : str
        Column that identifies people: whole numbers or text.
    time, event, entry, censored : str, optional
        Columns of the follow-up, as of `split`. Without a column of events there is none.
    start : float
        Start of follow-up of people without entry.

    Returns
    -------
    StartStopRows
        `rows` by person, in the order in which they appear, and time. `counts` has a line for each
        history: records before the follow-up (``early``), at its start (``leading``), within it,
        between two rows (``boundary``), at its end (``trailing``), in a gap, after it (``late``),
        several of one person at one time (``tied``, all but the first), of unknown people and
        without a value. `tmerge` counts alike, but compares with the rows that earlier histories
        have made.

    Raises
    ------
    InputError
        If identifiers, times or values are missing or of the wrong type, intervals overlap, a
        period ends before it starts, or records of one time contradict each other and the history
        does not say which of them to take.

    Notes
    -----
    Records of people who are not in the table are left out and counted. n rows with m records take
    time O((n + m) log(n + m)), and m periods with doses of which up to k overlap O(k m) more.

    References
    ----------
    Therneau, Crowson and Atkinson, Using Time Dependent Covariates and Time Dependent Coefficients
    in the Cox Model, vignette of R's survival.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = pa.table({"person": [1, 2], "days": [10, 7], "died": [1, 0]})
    >>> labs = pa.table({"person": [1, 1, 2], "time": [0, 6, 9], "value": [1.4, 2.2, 0.8]})
    >>> drug = pa.table({"person": [2], "start": [3], "end": [30]})
    >>> found = rs.merge_histories(
    ...     people,
    ...     {"bilirubin": rs.LastValue(labs, "value"), "drug": rs.ExposurePeriods(drug)},
    ...     id="person",
    ...     time="days",
    ...     event="died",
    ... )
    >>> found.rows.to_pandas()
       person  days  died  entry  bilirubin  drug
    0       1   6.0     0    0.0        1.4     0
    1       1  10.0     1    6.0        2.2     0
    2       2   3.0     0    0.0        NaN     0
    3       2   7.0     0    3.0        NaN     1
    """
    roles = ColumnRoles(time=time, event=event, entry=entry, censored=censored)
    histories = checked_histories(histories)
    base = FollowedPeople.read(people, roles, id, start)
    base.refuse_taken(histories)
    lines = base.timelines(histories)
    cuts = [one.within for line in lines.values() for one in line.records.values()]
    interval = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in cuts)])
    times = np.concatenate([np.empty(0), *(at for _, at in cuts)])
    n_rows = base.order.size
    pieces = cut_rows(
        base.rows.entry,
        base.rows.time,
        Cuts.by_group(interval, times, n_rows),
        np.arange(n_rows),
    )
    row = base.order[pieces.row]
    person = base.keys.codes[row]
    new = {
        name: line.values(
            person, pieces.time if isinstance(histories[name], EventTimes) else pieces.entry
        )
        for name, line in lines.items()
    }
    new = {name: base.with_first(name, values, row) for name, values in new.items()}
    counts = {label: one.counts for line in lines.values() for label, one in line.records.items()}
    notes = [note for name, line in lines.items() for note in _notes(name, histories[name], line)]
    notes += [_no_value(name, n) for name, n in map(_without_value, new.items()) if n]
    frame = base.follow_up.outcome_rows(row, pieces.entry, pieces.time, pieces.is_last, new)
    return StartStopRows(frame, base.table_of("history", counts, PLACES), tuple(notes))


@dataclass(frozen=True, eq=False)
class FollowedPeople:
    """The table of people: their follow-up, and who they are.

    Attributes
    ----------
    order : (n_rows,) int64
        Rows of the table by person and time.
    rows : FollowUpRows
        Their intervals in this order.
    """

    follow_up: FollowUp
    id: str
    keys: PersonKeys
    order: Index
    rows: FollowUpRows

    @classmethod
    def read(cls, people: object, roles: ColumnRoles, id: str, start: float) -> "FollowedPeople":
        """Read the table, and check that intervals of a person do not overlap."""
        follow_up = FollowUp.read(people, roles, start, has_events=False, name=PEOPLE)
        table = follow_up.frame.table
        keys = PersonKeys(table, id)
        order = np.lexsort((follow_up.entry, keys.codes))
        entry, time, person = follow_up.entry[order], follow_up.time[order], keys.codes[order]
        overlaps = (person[1:] == person[:-1]) & (entry[1:] < time[:-1])
        if overlaps.any():
            k = int(np.argmax(overlaps))
            raise InputError(
                f"the follow-up of a person must not overlap, but {table.words.row(order[k])} and "
                f"{table.words.row(order[k + 1])} of person {keys.name(person[k])!r} do "
                f"({counted(int(overlaps.sum()), 'such pair of rows', 'such pairs of rows')}).",
                hint="pass one row for each person, or intervals one after the other, whose starts "
                "are named by `entry`.",
            )
        ptr = sort_groups(person, keys.n)[1]
        return cls(follow_up, id, keys, order, FollowUpRows(ptr, entry, time))

    def refuse_taken(self, histories: Mapping[str, History]) -> None:
        """Refuse histories with the names of columns, except first values."""
        for name, history in histories.items():
            has_roles = name in (*self.follow_up.outcome_columns, self.id)
            is_first = isinstance(history, LastValue) and name in self.follow_up.frame.table.columns
            if is_first and isinstance(history, LastValue) and history.before is not None:
                raise InputError(
                    f"history {name!r} has `before`, but the table of people has a column "
                    f"{name!r}, which has the value until the first record.",
                    hint="leave `before` out, or rename the column.",
                )
            if has_roles or (name in self.follow_up.frame.table.columns and not is_first):
                raise InputError(
                    f"history {name!r} would replace the column {name!r} of the table of people.",
                    hint="give the history another name.",
                )

    def timelines(self, histories: Mapping[str, History]) -> dict[str, Timeline]:
        """All histories, read."""
        return {
            name: read_history(name, history, self.keys, self.rows, self.id)
            for name, history in histories.items()
        }

    def with_first(self, name: str, values: Any, row: Index) -> Any:
        """Values of a history, with those of the table of people where there is none."""
        table = self.follow_up.frame.table
        if name not in table.columns:
            return values
        first = ordered_column(table, name).unify_dictionaries().take(pa.array(row))
        return fill_with_column(values, first.combine_chunks(), table.words.column(name))

    def table_of(
        self, label: str, counts: Mapping[Any, Mapping[str, int]], columns: tuple[str, ...]
    ) -> Any:
        """A data frame with a line for each label, of the library of the table of people."""
        made: dict[str, AnyArray] = {label: np.array(list(counts))}
        made |= {
            name: np.array([one[name] for one in counts.values()], dtype=np.int64)
            for name in columns
        }
        return self.follow_up.frame.of_columns(made)


def _without_value(named: tuple[str, Any]) -> tuple[str, int]:
    name, values = named
    return name, int(values.null_count) if hasattr(values, "null_count") else 0


def _no_value(name: str, n: int) -> Note:
    return Note(
        "no_value",
        (name,),
        "history {name}: {n:row has|rows have} no value yet.",
        {"name": Value("name", repr(name)), "n": Value("count", n)},
    )


_SENTENCES = {
    "unknown_id": "of people who are not in the table of people left out",
    "missing": "without a value left out",
    "late": "after the follow-up left out",
    "early": "before the follow-up left out",
    "leading": "at the start of the follow-up left out",
    "gap": "in a gap of the follow-up left out",
    "tied": "at the same time as another one of the person",
}


def _notes(name: str, history: History, line: Timeline) -> Iterator[Note]:
    """What was left out of a history."""
    noted = ["unknown_id", "missing", "tied"]
    if isinstance(history, EventTimes):
        noted += ["early", "leading", "gap", "late"]
    elif isinstance(history, LastValue):
        noted += ["late"]
    first = next(iter(line.records.values()))
    for place in noted:
        n = first.counts[place]
        if n:
            values = {"name": Value("name", repr(name)), "n": Value("count", n)}
            text = f"history {{name}}: {{n:record|records}} {_SENTENCES[place]}."
            yield Note(f"history_{place}", (name,), text, values)
