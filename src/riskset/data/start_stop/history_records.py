"""Records of a long table by person and time, and where they lie in the follow-up."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Pointer, Rows
from riskset.data.labels import OWN_KEY
from riskset.data.start_stop.episodes import search_groups, sort_groups
from riskset.data.table import (
    Table,
    check_present,
    finite_times,
    keys,
    kind_of,
    plain_values,
)

__all__ = ["PLACES", "FollowUpRows", "HistoryRecords", "PersonKeys", "times"]

PLACES = (
    *("early", "leading", "within", "boundary", "trailing", "gap", "late"),
    *("tied", "unknown_id", "missing"),
)
"""Where a record can lie in the follow-up of its person, as R's `tmerge` counts it."""


class PersonKeys:
    """Identifiers of people as whole numbers 0, 1, ... in the order in which they appear."""

    def __init__(self, table: Table, name: str) -> None:
        self._words, self._name = table.words, name
        self._values, self._is_text = _key_values(table, name)
        encoded = self._values.dictionary_encode()
        self._known = encoded.dictionary
        self.codes: Index = np.asarray(encoded.indices).astype(np.int64)

    @property
    def n(self) -> int:
        """Number of people."""
        return len(self._known)

    def of(self, table: Table, name: str) -> Index:
        """Numbers of the people of another table; -1 for those who are not known."""
        values, is_text = _key_values(table, name)
        if is_text != self._is_text and len(values):
            kinds = {True: "text", False: "numbers"}
            raise InputError(
                f"{table.words.column(name)} holds {kinds[is_text]}, but "
                f"{self._words.column(self._name)} holds {kinds[self._is_text]}.",
                hint="write identifiers in the same way in all tables.",
            )
        found = pc.index_in(values, value_set=self._known)
        return np.asarray(found.fill_null(-1)).astype(np.int64)

    def name(self, person: int) -> object:
        """The identifier of a person."""
        return self._known[int(person)].as_py()


def times(n: int) -> str:
    """How often something happened."""
    return "once" if n == 1 else f"{n:,} times"


def _key_values(table: Table, name: str) -> tuple["pa.Array", bool]:
    column = table.array(name)
    array = plain_values(column)
    if kind_of(array.type) == "text":
        check_present(table, name, array, OWN_KEY)
        return array.cast(pa.large_string()).combine_chunks(), True
    return pa.array(keys(table, name, column)), False


class FollowUpRows(NamedTuple):
    """Intervals of people who are sorted by number, and of a person by time.

    Attributes
    ----------
    ptr : (n_people + 1,) int64
        Intervals of person p are those from ``ptr[p]`` up to ``ptr[p + 1]``.
    entry, time : (n,) float64
    """

    ptr: Pointer
    entry: Rows
    time: Rows

    def place(self, person: Index, at: Rows) -> tuple[Mapping[str, AnyArray], Index]:
        """Which times lie where, and the interval that a time is within."""
        ptr, entry, time = self
        first, end = ptr[person], ptr[person + 1]
        k = search_groups(time, ptr, person, at, after_equal=False)
        is_late = k == end
        k = np.minimum(k, end - 1)
        is_end = ~is_late & (time[k] == at)
        following = np.minimum(k + 1, time.size - 1)
        goes_on = is_end & (k + 1 < end) & (entry[following] == at)
        is_before = ~is_late & (at < entry[k])
        places = {
            "early": is_before & (k == first),
            "leading": ~is_late & (at == entry[k]),
            "within": ~is_late & (entry[k] < at) & (at < time[k]),
            "boundary": goes_on,
            "trailing": is_end & ~goes_on,
            "gap": is_before & (k > first),
            "late": is_late,
        }
        return places, k


@dataclass(frozen=True, eq=False)
class HistoryRecords:
    """Records of known people, sorted by person and time; those of one time keep their order.

    Attributes
    ----------
    row : (n,) int64
        Row of the table of each record.
    ptr : (n_people + 1,) int64
    is_first : (n,) bool
        The record is the first of its person and time.
    counts : dict
        Records by `PLACES`.
    """

    table: Table
    row: Index
    person: Index
    time: Rows
    ptr: Pointer
    is_first: AnyArray
    counts: dict[str, int]
    within: tuple[Index, Rows]

    @classmethod
    def read(
        cls,
        table: Table,
        people: PersonKeys,
        follow_up: FollowUpRows,
        id: str,
        time: str,
        skip: AnyArray | None = None,
    ) -> "HistoryRecords":
        """Read the identifiers and times of a table, without the rows to `skip`."""
        person = people.of(table, id)
        at = finite_times(table, time, table.array(time))
        is_kept = person >= 0
        counts = {"unknown_id": int(np.count_nonzero(~is_kept)), "missing": 0}
        if skip is not None:
            counts["missing"] = int(np.count_nonzero(is_kept & skip))
            is_kept &= ~skip
        row = np.flatnonzero(is_kept)
        row = row[np.lexsort((at[row], person[row]))]
        person, at = person[row], at[row]
        ptr = sort_groups(person, people.n)[1]
        is_first = np.ones(row.size, dtype=bool)
        is_first[1:] = (person[1:] != person[:-1]) | (at[1:] != at[:-1])
        places, interval = follow_up.place(person, at)
        counts |= {name: int(np.count_nonzero(where)) for name, where in places.items()}
        counts["tied"] = int(np.count_nonzero(~is_first))
        within = np.asarray(places["within"])
        cuts = interval[within], at[within]
        return cls(table, row, person, at, ptr, is_first, counts, cuts)

    def before(self, person: Index, at: Rows) -> Index:
        """Of each person the last record at a time or earlier; -1 if there is none."""
        k = search_groups(self.time, self.ptr, person, at, after_equal=True) - 1
        return np.where(k >= self.ptr[person], k, -1)

    def chosen(
        self, rule: str, values: AnyArray, name: str, people: PersonKeys
    ) -> "HistoryRecords":
        """One record for each person and time, by a rule; `values` (n,) are those of the records.

        Raises `InputError` if the rule is "error" and values of one time differ.
        """
        if self.is_first.all():
            return self
        group = np.cumsum(self.is_first) - 1
        start = np.flatnonzero(self.is_first)
        if rule in ("min", "max"):
            order = np.lexsort((values, group))
            taken = order[start if rule == "min" else np.append(start[1:], group.size) - 1]
        elif rule == "last":
            taken = np.append(start[1:], group.size) - 1
        else:
            taken = start
        if rule == "error":
            self._refuse_contradictions(values, start[group], name, people)
        return self.of(taken)

    def of(self, taken: Index) -> "HistoryRecords":
        """Some of the records, one for each person and time."""
        person = self.person[taken]
        ptr = sort_groups(person, self.ptr.size - 1)[1]
        known = self.row[taken], person, self.time[taken], ptr
        return HistoryRecords(
            self.table, *known, np.ones(taken.size, dtype=bool), self.counts, self.within
        )

    def _refuse_contradictions(
        self, values: AnyArray, first: Index, name: str, people: PersonKeys
    ) -> None:
        differs = values != values[first]
        if not differs.any():
            return
        k = int(np.argmax(differs))
        n = np.unique(first[differs]).size
        raise InputError(
            f"{self.table.words.column(name)} has several values of one person at one time that "
            f"differ, {times(n)} (first: person {people.name(self.person[k])!r}, time "
            f"{self.time[k]:g}, rows {self.row[first[k]]} and {self.row[k]}).",
            hint="correct the table, or choose with `same_time`, for example `same_time='last'`.",
            argument="same_time",
        )
