"""Rows of the toy CDM: draws without a generator, tables that fill up, and eras.

Days are whole numbers since 1970-01-01 until a table is finished.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray, Index, Rows

__all__ = ["ToyColumns", "Draws", "TableRows", "day", "eras", "missing", "whole"]

ToyColumns: TypeAlias = dict[str, AnyArray]

SEED = 54
FNV_START, FNV_PRIME = 0xCBF29CE484222325, np.uint64(0x100000001B3)
ERA_GAP = 30


def day(text: str) -> int:
    """Days since 1970-01-01."""
    return int(np.datetime64(text, "D").astype(np.int64))


def missing(n: int, dtype: object) -> AnyArray:
    """So many missing values."""
    return np.ma.masked_array(np.zeros(n, dtype), True)  # type: ignore[call-overload]


def whole(values: Rows) -> Index:
    """Numbers cut to whole ones."""
    return values.astype(np.int64)


class Draws:
    r"""Uniform numbers of all persons by the name of a draw.

    .. math:: u(person, key) = \lfloor splitmix64(FNV1a64(\text{"54|person|key"})) / 2^{11} \rfloor
        / 2^{53}

    There is no state: any draw of any person can be made alone, in any order and any language. See
    Fowler, Noll and Vo, the FNV non-cryptographic hash algorithm, RFC 9923; Steele, Lea and Flood
    (2014), OOPSLA, 453-472, doi:10.1145/2660193.2660195 (splitmix64).
    """

    def __init__(self, person: Index) -> None:
        start = np.full(person.size, FNV_START, np.uint64)
        digits = person.astype(np.bytes_)
        width = digits.dtype.itemsize
        self._state = _hashed(start, f"{SEED}|".encode())
        for column in digits.view(np.uint8).reshape(person.size, width).T:
            # Shorter numbers are padded with zero bytes, which do not belong to them.
            self._state = np.where(column > 0, _next(self._state, column), self._state)
        self._state = _hashed(self._state, b"|")

    def __call__(self, key: str) -> Rows:
        """One number in [0, 1) for each person."""
        h = _hashed(self._state, key.encode()) + np.uint64(0x9E3779B97F4A7C15)
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        uniform: Rows = ((h ^ (h >> np.uint64(31))) >> np.uint64(11)) / 2.0**53
        return uniform


def _next(state: NDArray[np.uint64], byte: AnyArray | int) -> NDArray[np.uint64]:
    return (state ^ np.asarray(byte, np.uint64)) * FNV_PRIME


def _hashed(state: NDArray[np.uint64], text: bytes) -> NDArray[np.uint64]:
    for byte in text:
        state = _next(state, byte)
    return state


class TableRows:
    """A table that is filled some rows of many persons at a time.

    The finished table has the rows of a person together, in the order in which they were added,
    and numbers them in its first column.
    """

    def __init__(self, name: str, person: Index) -> None:
        self._name, self._person = name, person
        self._added: list[dict[str, AnyArray]] = []

    def add(self, who: NDArray[np.bool_], **columns: AnyArray | float | None) -> None:
        """A row for each of `who`; columns have a value for every person, or one for all.

        None is a missing number.
        """
        rows = {"person_id": self._person[who]}
        for column, value in columns.items():
            if value is None:
                rows[column] = missing(rows["person_id"].size, np.float64)
            else:
                data, mask = (
                    np.broadcast_to(part, self._person.shape)[who]
                    for part in (np.ma.getdata(value), np.ma.getmaskarray(value))
                )
                rows[column] = np.ma.masked_array(data, mask)
        self._added.append(rows)

    def columns(self) -> ToyColumns:
        """The table: dates as dates, masked where values are missing."""
        concatenate: Callable[[list[AnyArray]], AnyArray] = np.ma.concatenate
        together = {n: concatenate([rows[n] for rows in self._added]) for n in self._added[0]}
        order = np.argsort(np.ma.getdata(together["person_id"]), kind="stable")
        key = {f"{self._name}_id": np.arange(1, order.size + 1)}
        return key | {
            name: column[order].astype("datetime64[D]" if name.endswith("_date") else column.dtype)
            for name, column in together.items()
        }


def eras(
    domain: str, person: AnyArray, concept: AnyArray, start: AnyArray, end: AnyArray
) -> ToyColumns:
    """Classic eras: records join when the next one starts within 30 days of the running end.

    A missing end is the start; concept 0 has no eras.
    """
    concepts, mapped = np.ma.getdata(concept), np.ma.getdata(concept) > 0
    first = np.ma.getdata(start).astype(np.int64)
    last = np.where(np.ma.getmaskarray(end), first, np.ma.getdata(end).astype(np.int64))
    first, last, concepts = first[mapped], last[mapped], concepts[mapped]
    persons = np.ma.getdata(person)[mapped]
    order = np.lexsort((last, first, concepts, persons))
    first, last, concepts, persons = (x[order] for x in (first, last, concepts, persons))
    changes = np.append(True, (persons[1:] != persons[:-1]) | (concepts[1:] != concepts[:-1]))
    # Far apart by group, so that one running maximum serves all of them.
    shift = np.cumsum(changes) * (1 << 32)
    running = np.maximum.accumulate(last + shift) - shift
    opens = np.flatnonzero(changes | np.append(True, first[1:] > running[:-1] + ERA_GAP))
    ptr = np.append(opens, first.size)
    return {
        f"{domain}_era_id": np.arange(1, opens.size + 1),
        "person_id": persons[opens],
        f"{domain}_concept_id": concepts[opens],
        f"{domain}_era_start_date": first[opens].astype("datetime64[D]"),
        f"{domain}_era_end_date": running[ptr[1:] - 1].astype("datetime64[D]"),
        f"{domain}_{'occurrence' if domain == 'condition' else 'exposure'}_count": np.diff(ptr),
    }
