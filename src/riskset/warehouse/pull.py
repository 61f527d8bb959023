"""Pulls: rows of a server as local Parquet files, each pulled once until it expires.

Every pull is one file, which appears when all its rows are there. A pull that was interrupted
therefore goes on after the last table that it finished.
"""

import datetime
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from riskset.data.database import Database
from riskset.data.row_stream import RowStream, chained
from riskset.data.table_store import CachedTable, TableStore, table_key
from riskset.warehouse.connection import Warehouse
from riskset.warehouse.keys import Keys
from riskset.warehouse.statements import KeyRows, ServerTable, whole_table

__all__ = ["PullProgress", "Puller", "PullListener"]

PARTS = 0.5
"""Seconds between two reports of a pull under way."""


@dataclass(frozen=True)
class PullProgress:
    """How far the pull of a table is: its rows and bytes so far, and seconds since it began.

    `made` is the time (UTC) at which the table was pulled, once that is done. `is_reused` says
    whether that was before, so that the server may have other rows by now.
    """

    table: str
    n_rows: int
    n_bytes: int
    seconds: float
    is_done: bool
    is_reused: bool = False
    made: datetime.datetime | None = None

    @property
    def words(self) -> str:
        """For people."""
        size = f"{self.table}: {self.n_rows:,} rows, {self.n_bytes / 1e6:,.1f} MB"
        if self.is_reused and self.made is not None:
            return f"{size}, pulled on {self.made.date()}"
        return size


PullListener = Callable[[PullProgress], None]


class Puller:
    """Pulls tables into a store; `scope` is what their content depends on beside the statement."""

    def __init__(
        self,
        warehouse: Warehouse,
        store: TableStore,
        database: Database,
        scope: str,
        listener: PullListener,
    ) -> None:
        self._warehouse, self._store, self._database = warehouse, store, database
        self._scope, self._listener = scope, listener

    def whole(
        self, table: ServerTable, columns: Sequence[str], usual: Mapping[str, str]
    ) -> CachedTable:
        """All rows of a small table; `usual` has types of columns, by name."""
        statement = whole_table(table, columns)
        key = table_key("pull", self._scope, statement)
        return self._pulled(key, table, lambda: iter([statement]), usual)

    def keyed(self, rows: KeyRows, keys: Keys, usual: Mapping[str, str]) -> CachedTable:
        """The rows of some keys."""
        facts = [rows.table.sql, *rows.columns, rows.key, repr(rows.limits), rows.where]
        key = table_key("pull", self._scope, facts, keys.digest)
        return self._pulled(key, rows.table, lambda: keys.statements(rows), usual)

    def _pulled(
        self,
        key: str,
        table: ServerTable,
        statements: Callable[[], Iterator[str]],
        usual: Mapping[str, str],
    ) -> CachedTable:
        started, name = time.monotonic(), table.name.lower()
        kept = self._store.find(key)
        if kept is None:
            moved = _Moved(name, started, self._listener)

            def write(path: Path) -> int:
                with closing(self._streams(statements(), table.words, usual)) as streams:
                    return self._database.write_stream(chained(streams), path, moved)

            kept = self._store.keep(key, table.words, write)
        seconds = time.monotonic() - started
        done = PullProgress(
            name, kept.n_rows, kept.n_bytes, seconds, True, kept.is_reused, kept.made
        )
        self._listener(done)
        return kept

    def _streams(
        self, statements: Iterator[str], what: str, usual: Mapping[str, str]
    ) -> Generator[RowStream, None, None]:
        """The answers, each of which is asked for when the one before was read."""
        for statement in statements:
            with self._warehouse.stream(statement, what, usual) as stream:
                yield stream


class _Moved:
    """Counts rows and bytes of a pull, and reports them now and then."""

    def __init__(self, table: str, started: float, listener: PullListener) -> None:
        self._table, self._started, self._listener = table, started, listener
        self._n_rows = self._n_bytes = 0
        self._next = started + PARTS

    def __call__(self, n_rows: int, n_bytes: int) -> None:
        self._n_rows, self._n_bytes = self._n_rows + n_rows, self._n_bytes + n_bytes
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PARTS
            seconds = now - self._started
            progress = PullProgress(self._table, self._n_rows, self._n_bytes, seconds, False)
            self._listener(progress)
