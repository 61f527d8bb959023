"""A connection to a database: statements in its dialect, and errors that show no credentials."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

from riskset._errors import CohortError
from riskset.data.row_stream import RowStream, stream_of_arrow, stream_of_rows
from riskset.warehouse.address import REMEDY, Address, scrubbed
from riskset.warehouse.dialects import Dialect, dialect_of, translated
from riskset.warehouse.drivers import connect, kind_of_connection

__all__ = ["Warehouse"]

T = TypeVar("T")

BLOCK = 50_000
"""Rows that are fetched at once where a driver gives tuples of Python."""

NO_RIGHT = {"42501"}
NO_TABLE = {"42P01", "42S02", "3F000"}
LOST = ("08", "57P")
FAILED_TRANSACTION = "25P02"
CANCELLED = "57014"
"""SQLSTATE of a missing right, a missing table, (its beginning) a lost connection, of a transaction
in which a statement failed, and of a statement that took too long or was ended by someone."""


class Warehouse:
    """A database, for the statements of `riskset.warehouse.statements`.

    `shown` is its name in messages. `identity` tells it from other databases and accounts; it is ""
    for a connection that was given, of which that is not known. Connections that were made here are
    closed with it.
    """

    def __init__(
        self,
        connection: Any,
        dialect: Dialect,
        shown: str,
        secrets: Sequence[str] = (),
        *,
        identity: str = "",
    ) -> None:
        self._connection, self._secrets = connection, tuple(secrets)
        self.dialect, self.shown, self.identity = dialect, shown, identity

    def __repr__(self) -> str:
        return f"Warehouse({self.shown})"

    @classmethod
    def of(
        cls,
        connection: object,
        *,
        dialect: str | None = None,
        password_variable: str | None = None,
        keyring: str | None = None,
    ) -> Self:
        """Connect to a URL, or use a connection that exists.

        Raises CohortError "NotConnected" if the database does not let us in, and errors of
        `Address.of`.
        """
        if not isinstance(connection, str):
            return cls._given(connection, dialect)
        address = Address.of(connection, password_variable=password_variable, keyring=keyring)
        try:
            made = connect(address)
        except Exception as error:
            if not _is_of_a_driver(error):
                raise
            made, state = None, _sqlstate(error)
            failure = scrubbed(error, address.secrets)
        if made is None and state == CANCELLED:  # a driver asks for its types at once
            raise _ended(address.shown, "the types of the database", failure)
        if made is None:  # outside of the handler, as in `_do`
            raise CohortError(
                "NotConnected",
                f"no connection to {address.shown}: {failure}",
                hint=f"check host, database, user and network. For a password, {REMEDY}",
                details={"database": address.shown},
            )
        of_url = dialect_of(dialect or address.kind)
        return cls(made, of_url, address.shown, address.secrets, identity=address.identity)

    @classmethod
    def _given(cls, connection: Any, dialect: str | None) -> Self:
        """Use a connection that exists."""
        try:
            kind = dialect or kind_of_connection(connection)
            info = getattr(connection, "info", None)  # of psycopg
            password = getattr(info, "password", None)
        except Exception as error:
            if not _is_of_a_driver(error):
                raise
            failure = scrubbed(error, ())
        else:
            secrets = [password] if isinstance(password, str) and password else []
            words = f"the given connection to {kind}"
            return cls(connection, dialect_of(kind), words, secrets)
        raise CohortError(
            "NotConnected",
            f"the given connection does not answer: {failure}",
            hint="open it anew; after an error in a transaction, call its `rollback` first.",
        )

    def close(self) -> None:
        """Close the connection, if it was made here."""
        if self.identity:
            with suppress(Exception):  # it may be lost
                self._connection.close()

    def run(self, statement: str, what: str) -> None:
        """Run a statement that answers nothing."""

        def action() -> None:
            with self._cursor() as cursor:
                cursor.execute(translated(statement, self.dialect))
                self._settle("commit")

        self._do(what, action)

    def try_to_run(self, statement: str) -> None:
        """Run a statement that may fail, such as one that removes what the session ends with."""
        with suppress(Exception), self._cursor() as cursor:
            cursor.execute(translated(statement, self.dialect))
            self._settle("commit")

    def rows(self, statement: str, what: str) -> list[tuple[Any, ...]]:
        """The few rows of a statement."""

        def action() -> list[tuple[Any, ...]]:
            with self._cursor() as cursor:
                cursor.execute(translated(statement, self.dialect))
                return [*map(_values, cursor.fetchall())]

        return self._do(what, action)

    @contextmanager
    def stream(self, statement: str, what: str, usual: Mapping[str, str]) -> Iterator[RowStream]:
        """The rows of a statement as they come.

        `usual` has its columns, in their order, and the types of those without values.
        """
        sql = translated(statement, self.dialect)
        with self._cursor() as cursor:
            found = self._do(what, lambda: _stream(cursor, sql, usual))
            yield RowStream(found.schema, self._explained(found, what))

    def _explained(self, stream: RowStream, what: str) -> Iterator[Any]:
        """The batches; an error between two of them is explained as well."""
        while (batch := self._do(what, lambda: next(stream.batches, None))) is not None:
            yield batch

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        cursor = self._connection.cursor()
        try:
            yield cursor
        finally:
            with suppress(Exception):  # what went wrong before says more
                cursor.close()

    def _do(self, what: str, action: Callable[[], T]) -> T:
        """Act, and turn an error of the driver into one that names `what` was asked for.

        The new error is raised outside of the handler, so that the text of the driver, which may
        hold credentials, does not travel with it.
        """
        try:
            if hasattr(self._connection, "adbc_cancel"):
                return _interruptible(action, self._cancel)
            return action()
        except Exception as error:
            if not _is_of_a_driver(error):
                raise
            failure = error
        raise self._error(failure, what)

    def _cancel(self) -> None:
        """End the statement under way, where the connection can."""
        with suppress(Exception):
            self._connection.adbc_cancel()

    def _error(self, error: Exception, what: str) -> CohortError:
        state = _sqlstate(error)
        words = scrubbed(error, self._secrets)
        self._settle("rollback")
        if state == CANCELLED:
            return _ended(self.shown, what, words)
        details = {"database": self.shown, "what": what, "sqlstate": state}
        if state.startswith(LOST) or not self._is_alive():
            return CohortError(
                "LostConnection",
                f"the connection to {self.shown} was lost while {what} was read: {words}",
                hint="start again: what was read whole is kept, and the rest is read then.",
                details=details,
            )
        if state in NO_RIGHT:
            return CohortError(
                "MissingRight",
                f"the account may not read {what} of {self.shown}: {words}",
                hint=f"ask for the right to read it, in PostgreSQL: GRANT SELECT ON {what} TO ...; "
                "or treat the table as missing with `ignore`.",
                details=details,
            )
        if state in NO_TABLE:
            return CohortError(
                "MissingTable",
                f"{self.shown} has no {what}: {words}",
                hint="check the schemas of the connection.",
                details=details,
            )
        hint = "see what the database says."
        if state == FAILED_TRANSACTION:
            hint = "call `rollback` of the connection first: a statement before this one failed."
        return CohortError(
            "QueryFailed",
            f"{self.shown} could not answer for {what}: {words}",
            hint=hint,
            details=details,
        )

    def _is_alive(self) -> bool:
        try:
            with self._cursor() as cursor:
                cursor.execute("SELECT 1")
                return bool(cursor.fetchall())
        except Exception:
            return False

    def _settle(self, how: str) -> None:
        """Commit or roll back, where the connection does not do so by itself."""
        with suppress(Exception):  # some have no transactions
            getattr(self._connection, how)()


def _stream(cursor: Any, sql: str, usual: Mapping[str, str]) -> RowStream:
    """The answer in the best way that the driver has."""
    if hasattr(cursor, "stream"):  # of psycopg, which otherwise holds all rows in memory
        rows = iter(cursor.stream(sql))
        first = next(rows, None)
        blocks: Iterator[Sequence[Any]] = _blocks(first, rows)
    else:
        cursor.execute(sql)
        if hasattr(cursor, "fetch_record_batch"):
            return stream_of_arrow(cursor.fetch_record_batch())
        blocks = iter(lambda: [*map(_values, cursor.fetchmany(BLOCK))], [])
    return stream_of_rows(list(usual), blocks, usual)


def _values(row: Any) -> tuple[Any, ...]:
    """The values of a row; a connection of the user's may give mappings."""
    return tuple(row.values()) if isinstance(row, Mapping) else tuple(row)


def _interruptible(action: Callable[[], T], cancel: Callable[[], None]) -> T:
    """Act in another thread, so that Ctrl-C ends the action as KeyboardInterrupt.

    In the main thread drivers of ADBC take Ctrl-C for a wish to cancel the statement alone.
    """
    if threading.current_thread() is not threading.main_thread():
        return action()
    with ThreadPoolExecutor(1) as other:
        future = other.submit(action)
        try:
            wait([future])
        except KeyboardInterrupt:
            cancel()
            raise
        return future.result()


def _sqlstate(error: Exception) -> str:
    return str(getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or "")


def _ended(shown: str, what: str, words: str) -> CohortError:
    """The error for a statement that the server ended."""
    return CohortError(
        "QueryFailed",
        f"{shown} ended the statement that read {what}: {words}",
        hint="raise the limit of time of the account (in PostgreSQL: ALTER ROLE ... SET "
        "statement_timeout = '1h', or options=-c%20statement_timeout%3D1h in the URL), or ask "
        "whoever ended it.",
        details={"database": shown, "what": what, "sqlstate": CANCELLED},
    )


DRIVER_ERRORS = {"Error", "ArrowException"}
"""Names of the base classes of what drivers raise: of DBAPI, and of streams of Arrow."""


def _is_of_a_driver(error: Exception) -> bool:
    """Whether a driver raised it."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, OSError) or bool(names & DRIVER_ERRORS)


def _blocks(first: Any, rows: Iterator[Any]) -> Iterator[list[Any]]:
    block = [] if first is None else [_values(first)]
    for row in rows:
        block.append(_values(row))
        if len(block) == BLOCK:
            yield block
            block = []
    if block:
        yield block
