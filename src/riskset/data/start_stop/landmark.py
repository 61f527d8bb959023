"""Landmark analyses: people at risk at given times, with the covariates of those times."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from riskset._errors import InputError
from riskset._messages import Note, Value
from riskset._types import Index, Rows
from riskset.data.checks import Places, as_time_numbers
from riskset.data.column_roles import ColumnRoles
from riskset.data.start_stop.histories import EventTimes, History, checked_histories
from riskset.data.start_stop.history_merge import FollowedPeople, StartStopRows
from riskset.data.start_stop.splitting import is_finite, refuse_taken

__all__ = ["landmark"]

Clock = Literal["keep", "restart"]


def landmark(
    people: object,
    at: float | Sequence[float],
    histories: Mapping[str, History] | None = None,
    *,
    id: str,
    time: str | None = None,
    event: str | None = None,
    entry: str | None = None,
    censored: str | None = None,
    start: float = 0.0,
    horizon: float | None = None,
    clock: Clock = "keep",
    name: str = "landmark",
) -> StartStopRows:
    r"""Take the people at risk at landmark times, with covariates as of these times.

    At landmark s, the people with :math:`entry \le s < time` have a row for their follow-up after
    s, which is

    .. math:: (s, \min(time, s + h)],

    and their events after the horizon s + h are censored. What happens after the landmark is no
    part of the covariates, so that groups which are formed at the landmark have no immortal time.
    Rows of several landmarks are stacked: fit them with the landmark as a stratum, or as a
    covariate, and with people as clusters (van Houwelingen 2007).

    Parameters
    ----------
    people : data frame
        One row for each person, of any library.
    at : number or sequence of numbers
        The landmarks, on the clock of the follow-up.
    histories : mapping of str to history, optional
        Covariates as of the landmark: `LastValue`, `RunningTotal` or `ExposurePeriods` by name. A
        record at the landmark itself counts; a period that starts there counts as well, and one
        that ends there does not.
    id : str
        Column that identifies people: whole numbers or text.
    time, event, entry, censored : str, optional
        Columns of the follow-up, as of `split`.
    start : float
        Start of follow-up of people without entry.
    horizon : float, optional
        Length of the follow-up after a landmark. Default: all of it.
    clock : {"keep", "restart"}
        Whether times stay on their clock, with the landmark as entry, or count from the landmark,
        with 0 as entry.
    name : str
        New column with the landmark.

    Returns
    -------
    StartStopRows
        `rows` by landmark, and in the order of `people`. `counts` has a line for each landmark:
        people at risk, those who had not entered, those whose follow-up had ended (at the landmark
        or before), and events in the rows.

    Raises
    ------
    InputError
        As of `merge_histories`, and if a person has several rows, nobody is at risk at a landmark,
        or a history has events.

    References
    ----------
    Anderson, Cain and Gelber (1983), Journal of Clinical Oncology 1, 710-719,
    doi:10.1200/JCO.1983.1.11.710. van Houwelingen (2007), Scandinavian Journal of Statistics 34,
    70-85, doi:10.1111/j.1467-9469.2006.00529.x.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = pa.table({"id": [1, 2, 3], "time": [400, 20, 90], "event": [1, 1, 0]})
    >>> labs = pa.table({"id": [1, 1, 3], "time": [0, 45, 10], "value": [1.4, 2.2, 0.8]})
    >>> found = rs.landmark(
    ...     people, [30, 60], {"x": rs.LastValue(labs, "value")}, id="id", horizon=365
    ... )
    >>> found.rows.to_pandas()
       id   time  event  entry  landmark    x
    0   1  395.0      0   30.0      30.0  1.4
    1   3   90.0      0   30.0      30.0  0.8
    2   1  400.0      1   60.0      60.0  2.2
    3   3   90.0      0   60.0      60.0  0.8
    """
    marks = _read_marks(at, horizon, clock)
    roles = ColumnRoles(time=time, event=event, entry=entry, censored=censored)
    base = FollowedPeople.read(people, roles, id, start)
    given = checked_histories({} if histories is None else histories)
    _check(base, given, name)
    row, mark, counts = _at_risk(base, marks)
    frame = base.follow_up
    person = base.keys.codes[row]
    new = {
        label: base.with_first(label, line.values(person, mark), row)
        for label, line in base.timelines(given).items()
    }
    ends = [_end(frame.time, s, horizon) for s in marks.tolist()]
    end = np.repeat(ends, [count["at_risk"] for count in counts.values()])
    until, has_event = np.minimum(frame.time[row], end), frame.time[row] <= end
    for s, count in counts.items():
        own = (mark == s) & has_event
        count["events"] = int(np.count_nonzero(frame.event[row[own]]))
    shift = mark if clock == "restart" else np.zeros(mark.size)
    rows = frame.outcome_rows(row, mark - shift, until - shift, has_event, {name: mark, **new})
    columns = ("at_risk", "not_entered", "ended", "events")
    return StartStopRows(rows, base.table_of(name, counts, columns), tuple(_notes(counts)))


def _read_marks(at: object, horizon: object, clock: str) -> Rows:
    if clock not in get_args(Clock):
        raise InputError.wrong_option("clock", clock, get_args(Clock))
    if horizon is not None and not (is_finite(horizon) and horizon > 0):  # type: ignore[operator]
        raise InputError(
            f"`horizon` must be a positive number, but it is {horizon!r}.",
            hint="it is the length of the follow-up after a landmark.",
        )
    many = at if isinstance(at, Iterable) and not isinstance(at, str) else [at]
    hint = "leave missing landmarks out."
    marks = np.unique(as_time_numbers(many, "at", None, Places(), missing_hint=hint))
    if not marks.size:
        raise InputError("`at` has no landmarks.", hint="for example `at=[30, 60]`.")
    return marks


def _end(time: Rows, mark: float, horizon: float | None) -> float:
    """End of the follow-up after a landmark, which a time equals that only rounding tells apart.

    0.7 + 0.1 is less than 0.8, but an event at 0.8 is within 0.1 of a landmark at 0.7.
    """
    if horizon is None:
        return np.inf
    end = mark + float(horizon)
    reach = 2 * np.finfo(np.float64).eps * max(abs(mark), horizon, abs(end))
    return float(time[np.abs(time - end) <= reach].max(initial=end))


def _check(base: FollowedPeople, histories: Mapping[str, History], name: str) -> None:
    table = base.follow_up.frame.table
    if base.keys.n < base.order.size:
        person = int(np.argmax(np.bincount(base.keys.codes)))
        raise InputError(
            f"a landmark analysis needs one row for each person, but person "
            f"{base.keys.name(person)!r} has several in {table.words.place}.",
            hint="pass the table of people, and what changes as `histories`.",
        )
    for label, history in histories.items():
        if isinstance(history, EventTimes):
            raise InputError(
                f"history {label!r} has events, but a landmark has covariates only.",
                hint="count events before the landmark with riskset.RunningTotal.",
            )
    base.refuse_taken(histories)
    names = [*table.columns, *base.follow_up.outcome_columns, *histories]
    refuse_taken(names, [name], "choose another name of the landmarks with `name`.")


def _at_risk(base: FollowedPeople, marks: Rows) -> tuple[Index, Rows, dict[float, dict[str, int]]]:
    """Rows at risk at each landmark, the landmark of each, and counts."""
    frame = base.follow_up
    rows: list[Index] = []
    counts: dict[float, dict[str, int]] = {}
    for s in marks.tolist():
        late, ended = frame.entry > s, frame.time <= s
        own = np.flatnonzero(~late & ~ended)
        if not own.size:
            raise InputError(
                f"nobody is at risk at the landmark {s:g}: {int(late.sum()):,} enter later and the "
                f"follow-up of {int(ended.sum()):,} ended before.",
                hint="choose landmarks within the follow-up, in its unit.",
                argument="at",
            )
        rows.append(own)
        counts[s] = {
            "at_risk": own.size,
            "not_entered": int(np.count_nonzero(late)),
            "ended": int(np.count_nonzero(ended)),
        }
    return np.concatenate(rows), np.repeat(marks, [own.size for own in rows]), counts


def _notes(counts: Mapping[float, Mapping[str, int]]) -> list[Note]:
    return [
        Note(
            "landmark_left_out",
            (),
            "landmark {at}: {n:person|people} whose follow-up had not begun, or had ended, left "
            "out.",
            {
                "at": Value("setting", f"{s:g}"),
                "n": Value("count", one["not_entered"] + one["ended"]),
            },
        )
        for s, one in counts.items()
        if one["not_entered"] + one["ended"]
    ]
