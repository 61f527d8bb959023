"""The ids of which rows are wanted: people in a temporary table of the server, or lists of ids."""

import datetime
import hashlib
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from riskset._errors import CohortError
from riskset._types import AnyArray
from riskset.warehouse.connection import Warehouse
from riskset.warehouse.statements import (
    KeyRows,
    batches_of,
    drop_temporary,
    keyed_by_list,
    keyed_by_table,
    merged,
    temporary_table,
)

__all__ = ["IdKeys", "Keys", "PeopleKeys"]

TEMPORARY = "riskset_people"


class Keys(Protocol):
    """Ids, and the statements that read their rows."""

    @property
    def digest(self) -> str:
        """The same for the same ids."""

    def statements(self, rows: KeyRows) -> Iterator[str]:
        """Statements that together give the rows of all of them."""


class IdKeys:
    """A few thousand ids, such as concepts, which go into the statements."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = sorted(set(ids))
        self.digest = hashlib.sha256(repr(self.ids).encode()).hexdigest()

    def statements(self, rows: KeyRows) -> Iterator[str]:
        """A statement for each part of the list."""
        for some in batches_of(self.ids):
            yield keyed_by_list(rows, some)


class PeopleKeys:
    """People with the first and the last day of their exposures, sorted by `ids`.

    `queries` are statements that find them on the server. With these a temporary table is made when
    rows are first read. Without, or where the account may not make one, lists of ids are sent.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        ids: AnyArray,
        first_days: AnyArray,
        last_days: AnyArray,
        queries: Sequence[str],
    ) -> None:
        self._warehouse, self._queries = warehouse, tuple(queries)
        self.ids, self.first_days, self.last_days = ids, first_days, last_days
        content = hashlib.sha256()
        for part in (ids, first_days.astype(np.int64), last_days.astype(np.int64)):
            content.update(np.ascontiguousarray(part).tobytes())
        self.digest = content.hexdigest()
        self.has_temporary: bool | None = None
        """Whether there is a temporary table; None: it was not tried yet."""

    def statements(self, rows: KeyRows) -> Iterator[str]:
        """One statement, or one for each part of the list."""
        if self._has_table():
            prefix = self._warehouse.dialect.temporary_prefix
            yield keyed_by_table(rows, prefix + TEMPORARY)
            return
        for places in batches_of(range(len(self.ids))):
            if not places:
                yield keyed_by_list(rows, ())
                continue
            part = slice(places[0], places[-1] + 1)
            days = self.first_days[part].min(), self.last_days[part].max()
            yield keyed_by_list(rows, self.ids[part].tolist(), *map(_date, days))

    def has_all(self, ids: AnyArray, first_days: AnyArray, last_days: AnyArray) -> bool:
        """Whether people are among these, and their days between the first and the last one."""
        if not len(ids):
            return True
        if not len(self.ids):
            return False
        place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        is_inside = (first_days >= self.first_days[place]) & (last_days <= self.last_days[place])
        return bool(np.all((self.ids[place] == ids) & is_inside))

    def drop(self) -> None:
        """Remove the temporary table, if there is one."""
        if self.has_temporary:
            self.has_temporary = None
            self._warehouse.try_to_run(drop_temporary(self._warehouse.dialect, TEMPORARY))

    def _has_table(self) -> bool:
        if self.has_temporary is None:
            self.has_temporary = False
            if self._queries and len(self.ids) and self._warehouse.dialect.has_temporary:
                self.has_temporary = self._make()
        return self.has_temporary

    def _make(self) -> bool:
        statement = temporary_table(TEMPORARY, merged(self._queries))
        try:
            self._warehouse.run(statement, "a temporary table")
        except CohortError as error:
            if error.code == "LostConnection":
                raise
            return False  # an account that may read only
        return True


def _date(day: np.datetime64) -> datetime.date:
    made: datetime.date = day.astype("datetime64[D]").item()
    return made
