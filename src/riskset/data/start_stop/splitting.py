"""Rows with follow-up as several rows, each for a part of it: R's `survSplit`."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Rows, is_number
from riskset.data.causes import CauseLabels, labels_of
from riskset.data.checks import (
    IN_DAYS,
    Places,
    are_counts,
    as_array,
    as_numbers,
    as_time_numbers,
    missing_rows,
)
from riskset.data.column_roles import ColumnRoles
from riskset.data.dataset import Dataset
from riskset.data.frame_rows import FrameRows
from riskset.data.outcome import check_times, event_codes, field_names
from riskset.data.outcome_columns import OutcomeColumns, places_of
from riskset.data.start_stop.episodes import Cuts, Pieces, cut_rows
from riskset.data.table import Table, kind_of, numbers, type_words

__all__ = ["FollowUp", "entries_of", "pieces_of", "split"]

T = TypeVar("T")

NEW_NAMES = "choose other names with `id` and `episode`, or None to leave them out."
"""What to do if a new column has the name of another one."""


def split(
    data: T,
    cuts: object,
    *,
    time: str | None = None,
    event: str | None = None,
    entry: str | None = None,
    censored: str | None = None,
    id: str | None = "row",
    episode: str | None = "episode",
    start: float = 0.0,
) -> T:
    r"""Split the follow-up of each row at given times, as R's `survSplit`.

    A row at risk in (entry, time] becomes one row for each part of it between the cuts

    .. math:: (entry, c_1], \; (c_1, c_2], \; \dots, \; (c_k, time],
        \qquad entry < c_1 < \dots < c_k < time.

    The last part keeps the event, with its cause; the others are censored. Estimates and standard
    errors of a Cox model are those of the unsplit rows, until covariates or strata depend on the
    episode.

    Parameters
    ----------
    data : data frame, structured array or `Dataset`
        A pandas, polars or Arrow frame (or any that narwhals reads), an array of `riskset.Surv`, or
        a `Dataset`.
    cuts : sequence of numbers or names, name, or (n, k) array
        Times in the unit of follow-up, in any order. Names are columns of a data frame with a time
        for each row. An array of two dimensions has k times for each row. A missing value (NaN) in
        a row is no cut. A cut at or outside the limits of a row does not split it.
    time, event, entry, censored : str, optional
        Columns of a data frame, and the label of censoring, as of `Dataset.from_frame`.
    id, episode : str or None
        Names of new columns or fields: the number of the row, from 0, and of the episode, which is
        1 before the first cut, 2 after it, and so on. None leaves them out. A `Dataset` has the
        number or the key of the row in `row_keys`.
    start : float
        Start of follow-up of data without entry.

    Returns
    -------
    the same kind as `data`
        Rows in the order of `data`, and those of a row by time. All other columns are repeated. A
        data frame without entry gets the column ``entry``. Times are float64. Lazy frames and
        DuckDB relations become Arrow tables. In a `Dataset` with weights that are not whole numbers
        and no clusters, each row of `data` becomes a cluster, as the robust variance needs.

    Raises
    ------
    InputError
        If a column does not exist, a new column exists already, a cut is not a finite number, or
        times and events are not valid.

    References
    ----------
    Therneau, Crowson and Atkinson, Using Time Dependent Covariates and Time Dependent Coefficients
    in the Cox Model, vignette of R's survival.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = pa.table({"days": [5, 12], "died": [1, 0], "age": [61, 70]})
    >>> rs.split(people, [3, 10], time="days", event="died").to_pandas()
       days  died  age  entry  row  episode
    0   3.0     0   61    0.0    0        1
    1   5.0     1   61    3.0    0        2
    2   3.0     0   70    0.0    1        1
    3  10.0     0   70    3.0    1        2
    4  12.0     0   70   10.0    1        3
    >>> y = rs.split(rs.Surv([5.0, 12.0], [True, False]), [3, 10])
    >>> y["row"], y["event"]
    (array([0, 0, 1, 1, 1]), array([False,  True, False, False, False]))
    """
    named = {"time": time, "event": event, "entry": entry, "censored": censored}
    if isinstance(data, Dataset):
        _refuse_names(named, "Dataset")
        return _split_dataset(data, cuts, start)  # type: ignore[return-value]
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        _refuse_names(named, "structured array")
        return _split_surv(data, cuts, id, episode, start)  # type: ignore[return-value]
    roles = ColumnRoles(time=time, event=event, entry=entry, censored=censored)
    follow_up = FollowUp.read(data, roles, start)
    pieces = follow_up.cut(cuts)
    rows: T = follow_up.pieces(pieces, _numbers_of(pieces, id, episode), NEW_NAMES)
    return rows


def _numbers_of(pieces: Pieces, id: str | None, episode: str | None) -> dict[str, AnyArray]:
    """New columns or fields: the number of the row and of the episode."""
    if id is not None and id == episode:
        raise InputError(
            f"`id` and `episode` name the same column, {id!r}.", hint="choose other names, or None."
        )
    named = {"id": (id, pieces.row), "episode": (episode, pieces.episode)}
    return {name: values for name, values in named.values() if name is not None}


@dataclass(frozen=True)
class FollowUp:
    """Times and events of a data frame, checked, and the frame.

    Attributes
    ----------
    entry, time : (n,) float64
    event : (n,) int64
        Codes, 0 for censored.
    """

    frame: FrameRows
    roles: ColumnRoles
    entry: Rows
    time: Rows
    event: Index
    labels: CauseLabels

    @classmethod
    def read(
        cls,
        data: object,
        asked: ColumnRoles,
        start: float,
        *,
        has_events: bool = True,
        name: str = "",
    ) -> "FollowUp":
        """Read and check the columns of a data frame, which messages call by `name`.

        Unless it `has_events`, a column of events is optional, and without one nobody has any.
        """
        frame = FrameRows(data, name)
        table = frame.table
        roles = _roles(asked, table, has_events=has_events)
        if roles.entry is None and "entry" in table.columns:
            raise InputError(
                f"{table.words.column('entry')} exists, but `entry` does not name it.",
                hint="name it with `entry`, or rename it if it is not the start of follow-up.",
            )
        event = roles.event if roles.event in table.columns else None
        only = ColumnRoles(time=roles.time, event=event, entry=roles.entry, censored=roles.censored)
        columns = OutcomeColumns.read(table, only)
        assert columns.time is not None
        places = places_of(only, table.words)
        codes = np.zeros(table.n_rows) if columns.event is None else columns.event
        entries = entries_of(columns.time, columns.entry, start, places)
        found = event_codes(codes, places)
        return cls(frame, only, entries, columns.time, found, columns.event_labels)

    @property
    def outcome_columns(self) -> tuple[str, ...]:
        """Columns of the result that have a role."""
        named = (self.roles.time, self.roles.event, self.roles.entry or "entry")
        return tuple(name for name in named if name is not None)

    def cut(self, cuts: object) -> Pieces:
        """Cut at common times, or at those of columns."""
        chosen, group = _read_cuts(cuts, self.time.size, self.frame.table)
        return cut_rows(self.entry, self.time, chosen, group)

    def pieces(self, pieces: Pieces, new: dict[str, AnyArray], remedy: str) -> Any:
        """The frame with a row for each piece, and new columns; see `refuse_taken`."""
        refuse_taken([*self.frame.table.columns, *self.outcome_columns], new, remedy)
        return self.outcome_rows(pieces.row, pieces.entry, pieces.time, pieces.is_last, new)

    def outcome_rows(
        self, row: Index, entry: Rows, time: Rows, has_event: AnyArray, new: Mapping[str, Any]
    ) -> Any:
        """Rows of the frame with other times, censored where they are said to have no event."""
        columns, same = self.event_of(row, has_event)
        columns[str(self.roles.time)] = time
        columns[self.roles.entry or "entry"] = entry
        return self.frame.take(row, {**columns, **new}, same)

    def event_of(
        self, row: Index, has_event: AnyArray
    ) -> tuple[dict[str, AnyArray], dict[str, Index]]:
        """Events of the given rows, censored where they are said to have none.

        The first mapping has values, the second the rows from which values are taken.
        """
        name = self.roles.event
        if name is None:
            return {}, {}
        if self.labels:
            is_censored = ~has_event | (self.event[row] == 0)
            first = int(np.argmax(self.event == 0))
            return {}, {name: np.where(is_censored, first, row)}
        table = self.frame.table
        own = numbers(table, name, table.array(name))[row]
        return {name: np.where(has_event, own, np.zeros(1, own.dtype))}, {}


def _roles(asked: ColumnRoles, table: Table, *, has_events: bool) -> ColumnRoles:
    try:
        return asked.find(table.columns, table.words.place)
    except InputError:
        if not has_events and asked.event is None and "event" not in table.columns:
            with suppress(InputError):
                return asked.find((*table.columns, "event"), table.words.place)
        raise


def entries_of(time: Rows, entry: Rows | None, start: float, places: Places) -> Rows:
    """Starts of follow-up: those given, or `start`, which must be before all times."""
    if not is_finite(start):
        raise InputError(
            f"`start` must be a finite number, but it is {start!r}.",
            hint="it is the time at which follow-up starts if there is no `entry`.",
        )
    if entry is not None:
        check_times(time, entry, places)
        return entry
    check_times(time, None, places)
    bad = time <= start
    if bad.any():
        first, n = int(np.argmax(bad)), int(bad.sum())
        raise InputError(
            f"{places.column('time')} must be after the start of follow-up, {start:g}, but "
            f"{n:,} of {time.size:,} rows {'is' if n == 1 else 'are'} not (first: "
            f"{places.row(first)}, value {time[first]:g}).",
            hint="pass a smaller `start`, such as `start=-1`, which keeps these rows at risk at "
            "their times, or drop these rows.",
            argument="start",
        )
    return np.full(time.size, float(start))


def is_finite(value: object) -> bool:
    """A finite real number of Python or NumPy."""
    return is_number(value) and bool(np.isfinite(value))


# ------------------------------------------------------------- structured arrays, data sets


def _refuse_names(named: Mapping[str, object], what: str) -> None:
    for name, value in named.items():
        if value is not None:
            raise InputError(
                f"`{name}` is for data frames, but `data` is a {what}, whose outcome is known.",
                hint=f"leave `{name}` out.",
            )


def _split_surv(
    y: AnyArray, cuts: object, id: str | None, episode: str | None, start: float
) -> AnyArray:
    """Pieces of an array of `Surv`, with all other fields repeated."""
    y = as_array(y, "`data`", Places())
    event, time = field_names(y, "data")
    names = y.dtype.names or ()
    places = Places({one: f"field {one!r} of `data`" for one in names})
    times = as_time_numbers(y[time], time, None, places)
    own = as_time_numbers(y["entry"], "entry", None, places) if "entry" in names else None
    event_codes(as_numbers(y[event], event, None, places), Places({"event": places.column(event)}))
    labels_of(y)
    named = Places({"time": places.column(time), "entry": places.column("entry")})
    entry = entries_of(times, own, start, named)
    pieces = cut_rows(entry, times, *_read_cuts(cuts, y.size, None))
    new = _numbers_of(pieces, id, episode)
    refuse_taken([*names, "entry"], new, NEW_NAMES)
    changed = {time: pieces.time, "entry": pieces.entry, **new}
    kinds = {name: y.dtype[name] for name in names} | {k: v.dtype for k, v in changed.items()}
    out = np.empty(pieces.row.size, dtype=list(kinds.items()))
    for name in kinds:
        out[name] = changed[name] if name in changed else y[name][pieces.row]
    for name in {event, "cause"} & set(names):
        out[name][~pieces.is_last] = np.zeros(1, y.dtype[name])[0]
    return out


def refuse_taken(names: Sequence[str], new: Iterable[str], remedy: str) -> None:
    """Refuse new columns with the names of others, and say what to do."""
    for name in new:
        if name in names:
            raise InputError(
                f"the new column {name!r} would have the name of another one.", hint=remedy
            )


def _split_dataset(data: Dataset, cuts: object, start: float) -> Dataset:
    """Pieces of a data set: its covariates, and all that belongs to its outcome."""
    known = data.outcome_columns
    if known.time is None or known.event is None:
        raise InputError(
            "these data were read without their outcomes.", hint="read them with `outcome=True`."
        )
    event_codes(known.event, data.places)
    entry = entries_of(known.time, known.entry, start, data.places)
    pieces = cut_rows(entry, known.time, *_read_cuts(cuts, data.n_rows, None))
    return pieces_of(data, pieces)


def pieces_of(data: Dataset, pieces: Pieces) -> Dataset:
    """A data set with a row for each piece of its rows."""
    known, row = data.outcome_columns, pieces.row
    weight, cluster = known.weight, known.cluster
    if cluster is None and weight is not None and not are_counts(weight).all():
        cluster = np.arange(data.n_rows)
    assert known.event is not None

    def taken(values: AnyArray | None) -> Any:
        return None if values is None else values[row]

    columns = replace(
        known,
        time=pieces.time,
        entry=pieces.entry,
        event=np.where(pieces.is_last, known.event[row], 0),
        weight=taken(weight),
        offset=taken(known.offset),
        cluster=taken(cluster),
        censoring_group=taken(known.censoring_group),
        strata=tuple(map(taken, known.strata)),
    )
    keys = np.arange(data.n_rows) if data.row_keys is None else data.row_keys
    words = replace(data.words, id=data.words.id or "row", row_keys=keys[row])
    design = data.design.repeat_rows(np.bincount(row, minlength=data.n_rows))
    return replace(data, design=design, words=words, outcome_columns=columns)


# ------------------------------------------------------------------------------------- cuts


def _read_cuts(cuts: object, n_rows: int, table: Table | None) -> tuple[Cuts, Index]:
    """The cuts, and the group of each row that has cuts of its own."""
    common, by_row = _listed_cuts(cuts, n_rows, table)
    if not by_row:
        return Cuts.common(common), np.zeros(n_rows, dtype=np.int64)
    every = np.arange(n_rows)
    group = np.concatenate([*(every for _ in by_row), np.repeat(every, common.size)])
    times = np.concatenate([*by_row, np.tile(common, n_rows)])
    given = ~np.isnan(times)
    return Cuts.by_group(group[given], times[given], n_rows), every


def _listed_cuts(cuts: object, n_rows: int, table: Table | None) -> tuple[Rows, list[Rows]]:
    """Cuts common to all rows, and columns with a cut for each row."""
    array = None if isinstance(cuts, str) else as_array(cuts, "`cuts`", Places())
    if array is not None and array.ndim == 2:
        if array.shape[0] != n_rows:
            raise InputError(
                f"`cuts` has {array.shape[0]:,} rows, but the data have {n_rows:,}.",
                hint="pass one row of times for each row, or one dimension of times for all.",
            )
        return np.empty(0), [_of_rows(column, "`cuts`") for column in array.T]
    if isinstance(cuts, str):
        listed: Sequence[object] = [cuts]
    elif isinstance(cuts, Iterable):
        listed = list(cuts)
    else:
        listed = [cuts]
    names = [one for one in listed if isinstance(one, str)]
    if names and table is None:
        raise InputError(
            f"`cuts` names the column {names[0]!r}, but only a data frame has columns.",
            hint="pass an array of two dimensions, with times for each row.",
        )
    rest = [one for one in listed if not isinstance(one, str)]
    hint = "leave missing times out."
    common = (
        as_time_numbers(rest, "cuts", None, Places(), missing_hint=hint) if rest else np.empty(0)
    )
    return common, [_column_of_cuts(table, name) for name in names if table is not None]


def _column_of_cuts(table: Table, name: str) -> Rows:
    """Times of a column; NaN where they are missing."""
    array = table.array(name)
    if kind_of(array.type) not in ("number", "missing"):
        raise InputError(
            f"{table.words.column(name)} must hold times to be one of the `cuts`, but its type is "
            f"{type_words(array.type)}.",
            hint=IN_DAYS
            if kind_of(array.type) == "duration"
            else "convert it to numbers; for dates, count the days since the start of follow-up.",
        )
    return _of_rows(np.asarray(array.to_numpy()), table.words.column(name))


def _of_rows(values: AnyArray, column: str) -> Rows:
    """Times of rows as float64; NaN where they are missing, and for times that are never."""
    missing = missing_rows(values)
    out = np.full(values.size, np.nan)
    out[~missing] = as_time_numbers(values[~missing], "cuts", None, Places({"cuts": column}))
    return out
