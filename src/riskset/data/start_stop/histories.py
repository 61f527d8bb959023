"""What a long table says about people over time: values, counts, events and periods of exposure."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeAlias, get_args

from riskset._errors import InputError
from riskset._types import is_number

__all__ = [
    "EventTimes",
    "ExposurePeriods",
    "History",
    "LastValue",
    "RunningTotal",
    "checked_histories",
]

SameTime = Literal["error", "first", "last", "min", "max", "mean"]
SameEvent = Literal["error", "first", "last", "min", "max"]
MissingValues = Literal["error", "skip"]
Overlap = Literal["error", "sum", "max"]


def _check_options(history: Any, **known: Any) -> None:
    for name, options in known.items():
        if getattr(history, name) not in get_args(options):
            raise InputError.wrong_option(name, getattr(history, name), get_args(options))


@dataclass(frozen=True, eq=False)
class LastValue:
    """A covariate with the last value that was measured: `tdc` of R's `tmerge`.

    A value of time t holds from just after t until just after the next one: rows that start at t or
    later have it. Values before the follow-up hold at its start.

    Parameters
    ----------
    table : data frame
        One row for each measurement, in any order, of any library.
    value : str
        Column of the values: numbers, booleans, text or categories.
    time : str
        Column of the times, in the unit and on the clock of the follow-up.
    id : str, optional
        Column of the identifiers of people. Default: the name it has in the table of people.
    before : number or text, optional
        Value until the first one. Default: missing, or, if the table of people has a column with
        the name of the covariate, its value.
    same_time : {"error", "first", "last", "min", "max", "mean"}
        What to do with several values of a person at one time that differ: refuse them, or take the
        first or last of the table, the smallest, the largest or the mean.
    missing : {"error", "skip"}
        What to do with missing values: refuse them, or leave them out, so that the value before
        stays.

    See Also
    --------
    riskset.merge_histories, riskset.landmark

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = pa.table({"id": [1], "time": [10], "event": [1]})
    >>> labs = pa.table({"id": [1, 1], "time": [-2, 4], "bilirubin": [1.4, 2.2]})
    >>> history = rs.LastValue(labs, "bilirubin")
    >>> rs.merge_histories(people, {"bilirubin": history}, id="id").rows.to_pandas()
       id  time  event  entry  bilirubin
    0   1   4.0      0    0.0        1.4
    1   1  10.0      1    4.0        2.2
    """

    table: object
    value: str
    time: str = "time"
    id: str | None = None
    before: object = None
    same_time: SameTime = "error"
    missing: MissingValues = "error"

    def __post_init__(self) -> None:
        _check_options(self, same_time=SameTime, missing=MissingValues)


@dataclass(frozen=True, eq=False)
class RunningTotal:
    """A covariate that counts or adds up what has happened so far: `cumtdc` of R's `tmerge`.

    Rows that start at t or later have what happened at t or before, also before the follow-up.

    Parameters
    ----------
    table : data frame
        One row for each occurrence, in any order, of any library. All rows count, also those of
        one person at one time.
    value : str, optional
        Column of the numbers to add. Default: 1 for each row.
    time, id : str
        As of `LastValue`.
    before : number
        The total before the first occurrence.
    missing : {"error", "skip"}
        What to do with missing values: refuse them, or leave them out.

    See Also
    --------
    riskset.merge_histories, riskset.landmark

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = pa.table({"id": [1], "time": [10], "event": [1]})
    >>> visits = pa.table({"id": [1, 1], "time": [4, 4]})
    >>> rows = rs.merge_histories(people, {"visits": rs.RunningTotal(visits)}, id="id").rows
    >>> rows.to_pydict()["visits"]
    [0, 2]
    """

    table: object
    value: str | None = None
    time: str = "time"
    id: str | None = None
    before: float = 0
    missing: MissingValues = "error"

    def __post_init__(self) -> None:
        _check_options(self, missing=MissingValues)
        if not (is_number(self.before) and math.isfinite(self.before)):
            raise InputError(
                f"`before` must be a finite number, but it is {self.before!r}.",
                hint="it is the total before the first occurrence.",
            )


@dataclass(frozen=True, eq=False)
class EventTimes:
    """Events of people, such as repeated infections: `event` and `cumevent` of R's `tmerge`.

    The row that ends at the time of an event has its code in a new column, and other rows have 0.
    Events at the start of the follow-up, before it, after it or in a gap of it belong to no row.

    Parameters
    ----------
    table : data frame
        One row for each event, in any order, of any library.
    code : str, optional
        Column of the codes, whole numbers of at least 1. Default: 1 for each event.
    time, id : str
        As of `LastValue`.
    same_time : {"error", "first", "last", "min", "max"}
        What to do with several events of a person at one time whose codes differ.
    numbered : bool
        Number the events of a person 1, 2, ... instead, those before the follow-up included. Events
        of one time count separately, and the row has the last number.

    See Also
    --------
    riskset.merge_histories

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = pa.table({"id": [1], "time": [10], "event": [1]})
    >>> infections = pa.table({"id": [1, 1], "time": [4, 7]})
    >>> history = {"infection": rs.EventTimes(infections, numbered=True)}
    >>> rows = rs.merge_histories(people, history, id="id").rows
    >>> rows.to_pydict()["time"], rows.to_pydict()["infection"]
    ([4.0, 7.0, 10.0], [1, 2, 0])
    """

    table: object
    code: str | None = None
    time: str = "time"
    id: str | None = None
    same_time: SameEvent = "error"
    numbered: bool = False

    def __post_init__(self) -> None:
        _check_options(self, same_time=SameEvent)
        if self.numbered and self.code is not None:
            raise InputError(
                "`numbered` was given together with `code`.", hint="leave one of them out."
            )


@dataclass(frozen=True, eq=False)
class ExposurePeriods:
    """A covariate for periods, such as those of a drug: 1 within a period and 0 outside.

    A row has the value of a period (start, end] if it lies within. Exposure thus counts from just
    after the start to the end, included.

    Parameters
    ----------
    table : data frame
        One row for each period, in any order, of any library.
    start, end : str
        Columns of the times, in the unit and on the clock of the follow-up. A period may go on
        after the follow-up. Periods of length 0 have no effect.
    value : str, optional
        Column of numbers, such as doses. Default: 1 for each period, and periods may overlap.
    id : str, optional
        As of `LastValue`.
    overlap : {"error", "sum", "max"}
        What to do where periods of a person with a `value` overlap: refuse them, or take the sum or
        the largest.

    See Also
    --------
    riskset.merge_histories, riskset.landmark

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = pa.table({"id": [1], "time": [10], "event": [1]})
    >>> statins = pa.table({"id": [1], "start": [3], "end": [8]})
    >>> rows = rs.merge_histories(people, {"statin": rs.ExposurePeriods(statins)}, id="id").rows
    >>> rows.to_pydict()["time"], rows.to_pydict()["statin"]
    ([3.0, 8.0, 10.0], [0, 1, 0])
    """

    table: object
    # `value` comes second in other histories, so that a position would not say what is meant.
    _: KW_ONLY
    start: str = "start"
    end: str = "end"
    value: str | None = None
    id: str | None = None
    overlap: Overlap = "error"

    def __post_init__(self) -> None:
        _check_options(self, overlap=Overlap)


History: TypeAlias = LastValue | RunningTotal | EventTimes | ExposurePeriods


def checked_histories(histories: object) -> dict[str, History]:
    """Histories by name; raises `InputError` if they are something else."""
    example = "for example {'bilirubin': riskset.LastValue(table, 'value')}."
    if not isinstance(histories, Mapping):
        raise InputError(
            "`histories` must be a mapping of names of new columns to histories, but it is of type "
            f"{type(histories).__name__}.",
            hint=example,
        )
    for name, history in histories.items():
        if not isinstance(name, str):
            raise InputError(
                f"the names of `histories` must be text, but one is {name!r}.", hint=example
            )
        if not isinstance(history, get_args(History)):
            raise InputError(
                f"history {name!r} must be a LastValue, RunningTotal, EventTimes or "
                f"ExposurePeriods, but it is of type {type(history).__name__}.",
                hint=example,
            )
    return dict(histories)
