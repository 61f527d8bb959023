"""Histories as they are read: where they cut the follow-up, and their values at given times."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Rows
from riskset.data.checks import Places, complain_rows
from riskset.data.frame import as_table
from riskset.data.missing_values import missing_rows_of
from riskset.data.start_stop.episodes import Cuts, ranges, search_groups
from riskset.data.start_stop.histories import (
    EventTimes,
    ExposurePeriods,
    History,
    LastValue,
    RunningTotal,
)
from riskset.data.start_stop.history_records import FollowUpRows, HistoryRecords, PersonKeys, times
from riskset.data.start_stop.history_values import fill_with, ordered_column
from riskset.data.table import (
    Table,
    TableWords,
    check_present,
    finite_numbers,
    finite_times,
    kind_of,
    labels,
    numbers,
    plain_values,
)

__all__ = ["Timeline", "read_history"]

MAX_SEGMENTS = 1 << 22
"""Segments of periods with doses that are in memory at a time: 64 MB."""

SKIP = (
    "leave these rows out with `missing='skip'`, so that the value before stays, or correct them."
)


class Timeline(ABC):
    """A history of known people.

    Attributes
    ----------
    records : mapping of str to HistoryRecords
        The records that were read, by what they are called.
    """

    records: Mapping[str, HistoryRecords]

    @abstractmethod
    def values(self, person: Index, at: Rows) -> Any:
        """Values of people at given times, as an array of NumPy or Arrow."""


def read_history(
    name: str, history: History, people: PersonKeys, follow_up: FollowUpRows, id: str
) -> Timeline:
    """Read and check the table of a history; `id` is the column that identifies people."""
    kinds = {
        LastValue: _Values,
        RunningTotal: _Totals,
        EventTimes: _Events,
        ExposurePeriods: _Periods,
    }
    table = as_table(history.table)
    table = replace(table, words=TableWords(name=f"the table of history {name!r}"))
    made: Timeline = kinds[type(history)](name, history, table, people, follow_up, history.id or id)
    return made


class _Values(Timeline):
    def __init__(
        self,
        name: str,
        history: LastValue,
        table: Table,
        people: PersonKeys,
        follow_up: FollowUpRows,
        id: str,
    ) -> None:
        column, rule = history.value, history.same_time
        skip = _missing(table, column, history.missing)
        found = HistoryRecords.read(table, people, follow_up, id, history.time, skip)
        array = ordered_column(table, column)
        has_numbers = kind_of(array.type) in ("number", "bool", "missing")
        if not has_numbers and kind_of(array.type) not in ("text", "category"):
            labels(table, column, array)  # refuses dates and lists, with the reason
        if rule in ("min", "max", "mean") and not has_numbers:
            raise InputError(
                f"`same_time` is {rule!r}, but {table.words.column(column)} does not hold numbers.",
                hint="use `same_time='first'` or `same_time='last'`.",
            )
        self.records = {name: found}
        codes = _codes(array)[found.row]
        kept = found.chosen("first" if rule == "mean" else rule, codes, column, people)
        self._kept = kept
        self._before = history.before
        if rule == "mean":
            self._values: Any = pa.array(_means(found, codes))
            self._row = np.arange(kept.row.size)
        else:
            self._values, self._row = array.unify_dictionaries().combine_chunks(), kept.row

    def values(self, person: Index, at: Rows) -> Any:
        k = self._kept.before(person, at)
        row = self._row[k] if self._row.size else np.zeros(k.size, dtype=np.int64)
        taken = self._values.take(pa.array(row, mask=k < 0))
        return taken if self._before is None else fill_with(taken, self._before)


class _Totals(Timeline):
    def __init__(
        self,
        name: str,
        history: RunningTotal,
        table: Table,
        people: PersonKeys,
        follow_up: FollowUpRows,
        id: str,
    ) -> None:
        skip = None if history.value is None else _missing(table, history.value, history.missing)
        found = HistoryRecords.read(table, people, follow_up, id, history.time, skip)
        self.records = {name: found}
        if history.value is None:
            amount: AnyArray = np.ones(found.row.size, dtype=np.int64)
        else:
            amount = _amounts(table, history.value, found.row)
        self._total = running_totals(amount, found.ptr[found.person])
        self._before = np.asarray(history.before)

    def values(self, person: Index, at: Rows) -> AnyArray:
        k = self.records[next(iter(self.records))].before(person, at)
        if not self._total.size:
            return np.full(k.size, self._before)
        return np.where(k >= 0, self._total[k] + self._before, self._before)


class _Events(Timeline):
    def __init__(
        self,
        name: str,
        history: EventTimes,
        table: Table,
        people: PersonKeys,
        follow_up: FollowUpRows,
        id: str,
    ) -> None:
        found = HistoryRecords.read(table, people, follow_up, id, history.time)
        self.records = {name: found}
        self._kept = found
        if history.numbered:
            self._code = np.arange(found.row.size) - found.ptr[found.person] + 1
            return
        code = np.ones(table.n_rows, dtype=np.int64)
        if history.code is not None:
            code = _event_codes(table, history.code)
        self._kept = found.chosen(history.same_time, code[found.row], history.code or "", people)
        self._code = code[self._kept.row]

    def values(self, person: Index, at: Rows) -> AnyArray:
        """Codes of the events at these times; 0 where there is none."""
        k = self._kept.before(person, at)
        if not self._code.size:
            return np.zeros(k.size, dtype=np.int64)
        return np.where((k >= 0) & (self._kept.time[k] == at), self._code[k], 0)


class _Periods(Timeline):
    def __init__(
        self,
        name: str,
        history: ExposurePeriods,
        table: Table,
        people: PersonKeys,
        follow_up: FollowUpRows,
        id: str,
    ) -> None:
        start, end = (
            finite_times(table, column, table.array(column))
            for column in (history.start, history.end)
        )
        complain_rows(
            end < start,
            end,
            table.words.column(history.end),
            f"must be at least {table.words.column(history.start)}",
            Places(row_name=table.words.row),
            hint="a period ends before it starts; correct it or drop the row.",
        )
        first, last = (
            HistoryRecords.read(table, people, follow_up, id, column)
            for column in (history.start, history.end)
        )
        self.records = {f"{name}: start": first, f"{name}: end": last}
        row = first.row[start[first.row] < end[first.row]]
        person = people.of(table, id)[row]
        start, end = start[row], end[row]
        both = np.concatenate([person, person])
        self._limits = Cuts.by_group(both, np.concatenate([start, end]), people.n)
        at, until = (self._limit(person, time) for time in (start, end))
        change = np.bincount(at, minlength=self._limits.time.size)
        change -= np.bincount(until, minlength=self._limits.time.size)
        active = np.cumsum(change)  # of the segments from each limit to the next
        if history.value is None:
            self._value: AnyArray = (active > 0).astype(np.int64)
            return
        value = _amounts(table, history.value, row)
        if history.overlap == "error" and (active > 1).any():
            self._refuse_overlap(int(np.argmax(active > 1)), table, people, active)
        is_max = history.overlap == "max"
        self._value = (
            np.where(active > 0, -np.inf, 0.0) if is_max else np.zeros(active.size, value.dtype)
        )
        n = until - at
        for part in _parts(n):
            segment, amount = ranges(at[part], n[part]), np.repeat(value[part], n[part])
            (np.maximum if is_max else np.add).at(self._value, segment, amount)

    def _limit(self, person: Index, time: Rows) -> Index:
        limits = self._limits
        return search_groups(limits.time, limits.ptr, person, time, after_equal=False)

    def _refuse_overlap(self, k: int, table: Table, people: PersonKeys, active: AnyArray) -> None:
        person = int(np.searchsorted(self._limits.ptr, k, side="right")) - 1
        raise InputError(
            f"periods of one person in {table.words.place} overlap "
            f"{times(int(np.count_nonzero(active > 1)))} (first: person {people.name(person)!r}, "
            f"from {self._limits.time[k]:g}).",
            hint="correct them, or choose with `overlap='sum'` or `overlap='max'`.",
            argument="overlap",
        )

    def values(self, person: Index, at: Rows) -> AnyArray:
        limits = self._limits
        k = search_groups(limits.time, limits.ptr, person, at, after_equal=True) - 1
        if not self._value.size:
            return np.zeros(k.size, dtype=np.int64)
        return np.where(k >= limits.ptr[person], self._value[k], np.zeros(1, self._value.dtype))


def _parts(n_segments: Index) -> Iterator[slice]:
    """Parts of the periods, in their order, with about `MAX_SEGMENTS` segments each."""
    before = np.cumsum(n_segments) - n_segments
    first = np.flatnonzero(np.diff(before // MAX_SEGMENTS, prepend=-1))
    yield from map(slice, first.tolist(), [*first[1:].tolist(), n_segments.size])


def running_totals(amount: AnyArray, first: Index) -> AnyArray:
    """Sums within groups up to each place; `first` (n,) is where the group of a place begins.

    Each step doubles the number of places that are summed, and only adds.
    """
    total, place, reach = amount.copy(), np.arange(amount.size), 1
    longest = int((place - first).max(initial=0))
    while reach <= longest:
        at = place[place - reach >= first]
        total[at] = total[at] + total[at - reach]
        reach *= 2
    return total


def _means(found: HistoryRecords, values: AnyArray) -> Rows:
    """Mean of the values of each person and time."""
    start = np.flatnonzero(found.is_first)
    if not start.size:
        return np.empty(0)
    n = np.diff(np.append(start, values.size))
    return np.asarray(np.add.reduceat(values.astype(np.float64), start) / n)


def _missing(table: Table, name: str, rule: str) -> AnyArray | None:
    """Rows without a value that are left out; an error if they are not to be."""
    array = table.array(name)
    if rule == "skip":
        return np.asarray(missing_rows_of(array))
    bad = missing_rows_of(array)
    if bad.any():
        check_present(table, name, array, SKIP)
        complain_rows(
            bad,
            plain_values(array),
            table.words.column(name),
            "must not be missing",
            table.words.places(name),
            hint=SKIP,
        )
    return None


def _amounts(table: Table, name: str, row: Index) -> AnyArray:
    """Finite numbers of some rows, of which none is missing: whole ones as int64."""
    array = plain_values(table.array(name))
    missing = missing_rows_of(array)
    missing[row] = False
    if missing.any():  # rows that are left out
        array = pc.if_else(pa.array(missing), pa.scalar(0).cast(array.type), array)
    values = numbers(table, name, array)[row]
    return values.astype(np.int64 if values.dtype.kind in "bu" else values.dtype)


def _event_codes(table: Table, name: str) -> Index:
    code = finite_numbers(table, name, table.array(name))
    complain_rows(
        (code < 1) | (code != np.floor(code)),
        code,
        table.words.column(name),
        "must be a whole number of at least 1",
        Places(row_name=table.words.row),
        hint="0 means no event; drop rows that are no events.",
    )
    return code.astype(np.int64)


def _codes(array: Any) -> AnyArray:
    """Values to compare: numbers as they are, others as whole numbers without an order."""
    array = plain_values(array)
    if kind_of(array.type) in ("number", "bool"):
        decimal = pa.types.is_decimal(array.type)
        return np.asarray((array.cast(pa.float64()) if decimal else array).to_numpy())
    if kind_of(array.type) == "missing":
        return np.full(len(array), np.nan)
    encoded = array.combine_chunks().dictionary_encode()
    return np.asarray(pc.fill_null(encoded.indices, -1))
