"""The tables of a CDM in a database, as far as questions need them, pulled to local files.

First the people are found whom questions are about. Then each table is pulled when it is needed:
the columns that are read, of these people, and of the days that matter. Of the vocabulary, the
concepts are pulled that occur in these records or were named, and what they descend from. What was
pulled for other people, fewer columns or fewer days is pulled again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from riskset._errors import CohortError, InputError
from riskset._progress import ProgressBar
from riskset._types import AnyArray
from riskset.data.database import StoredTable
from riskset.data.files import open_file
from riskset.data.table_store import CachedTable, TableStore
from riskset.omop.cdm_tables import (
    ALL_DAYS,
    DayRange,
    ListedPeople,
    Needs,
    RecordedPeople,
    SoughtPeople,
)
from riskset.omop.columns import cast
from riskset.omop.pulled_columns import (
    SMALL,
    VOCABULARY,
    PulledTable,
    pulled_table,
    usual_types,
)
from riskset.omop.record_tables import ERAS
from riskset.omop.server_vocabulary import ServerVocabulary
from riskset.omop.sources import FileOpener, is_file_name
from riskset.warehouse.connection import Warehouse
from riskset.warehouse.keys import PeopleKeys
from riskset.warehouse.pull import Puller, PullListener, PullProgress
from riskset.warehouse.statements import (
    KeyRows,
    RowLimits,
    ServerTable,
    catalogue,
    count_rows,
    first_row,
    people_with_records,
)

__all__ = ["ServerTables", "pull_listener"]

DAY = "index_date"
"""A name of a column that says that it holds a date."""


@dataclass(frozen=True)
class _Held:
    """What was pulled of a table, for which `state` of what questions are about."""

    stored: StoredTable
    kept: CachedTable
    columns: frozenset[str]
    days: DayRange
    state: str


class ServerTables:
    """The tables of some schemas of a database; each comes from the first schema that has it."""

    def __init__(
        self,
        opener: FileOpener,
        warehouse: Warehouse,
        schemas: Sequence[str],
        store: TableStore,
        listener: PullListener,
    ) -> None:
        self._opener, self._warehouse = opener, warehouse
        scope = f"{warehouse.dialect.kind} {warehouse.identity}"
        self._puller = Puller(warehouse, store, opener.database, scope, listener)
        self._tables = _found(warehouse, schemas)
        self._held: dict[str, _Held] = {}
        self._asked: list[SoughtPeople] = []
        self._keys: PeopleKeys | None = None
        self._vocabulary = ServerVocabulary(
            opener.database,
            self._puller,
            self._tables,
            lambda: [held.stored for name, held in self._held.items() if name not in SMALL],
        )
        self._n_rows: dict[str, int] = {}
        self._has_rows: dict[str, bool] = {}

    # ---------------------------------------------------------------- as `CdmTables`

    @property
    def names(self) -> Iterable[str]:
        """The tables that there are."""
        return self._tables.keys()

    def ignore(self, name: str) -> None:
        """Treat a table as missing."""
        del self._tables[name]

    def columns(self, name: str) -> Sequence[str]:
        """The columns of a table, in lower case."""
        return tuple(self._tables[name].columns)

    def n_rows(self, name: str) -> int:
        """Number of rows of a table, of everybody."""
        if name not in self._n_rows:
            table = self._tables[name]
            ((n,),) = self._warehouse.rows(count_rows(table), table.words)
            self._n_rows[name] = int(n)
        return self._n_rows[name]

    def has_rows(self, name: str) -> bool:
        """Whether a table has any row, of whomever."""
        if name not in self._has_rows:
            table = self._tables[name]
            self._has_rows[name] = bool(self._warehouse.rows(first_row(table), table.words))
        return self._has_rows[name]

    def open(
        self, name: str, columns: Sequence[str] | None = (), days: DayRange = ALL_DAYS
    ) -> StoredTable:
        """What questions need of a table: at least these columns, and records of these days."""
        if name in VOCABULARY:
            return self._vocabulary.open(name)
        table = self._tables[name]
        wanted = tuple(table.columns) if columns is None else tuple(columns)
        if name in SMALL:
            return self._hold(name, tuple(table.columns), ALL_DAYS, "")
        how = pulled_table(name, tuple(table.columns))
        if how is None:
            raise CohortError(
                "NotPulled",
                f"table {table.words} has no column that says whose its rows are, so it is not "
                "pulled.",
                hint="pass what you need of it as a data frame.",
                details={"table": name},
            )
        listed = [c for c in dict.fromkeys((*how.columns, *wanted)) if c in table.columns]
        return self._hold(name, listed, days if how.start else ALL_DAYS, self._people(name).digest)

    def fetch(self, needs: Needs) -> None:
        """Pull what will be needed; where there are no eras, the records that they are made of."""
        for name, days in needs.items():
            if name in ERAS and not (name in self._tables and self.has_rows(name)):
                name, days = ERAS[name], ALL_DAYS
            if name in self._tables:
                self.open(name, (), days)

    def about(self, people: Iterable[SoughtPeople]) -> None:
        """Add people whom questions are about."""
        for some in people:
            is_known = (
                self._has_all(some) if isinstance(some, ListedPeople) else some in self._asked
            )
            if not is_known:
                self._asked.append(some)
                self._forget_people()

    def about_concepts(self, concepts: Iterable[int], *, descendants: bool) -> None:
        """Add concepts that questions name."""
        self._vocabulary.name(concepts, descendants=descendants)

    def close(self) -> None:
        """Remove the temporary table, and close the connection if it was made here."""
        self._forget_people()
        self._warehouse.close()

    @property
    def pulled(self) -> dict[str, CachedTable]:
        """What was pulled of each table, with the checksums of the files."""
        own = {name: held.kept for name, held in self._held.items()}
        return own | self._vocabulary.pulled

    # ---------------------------------------------------------------- people

    def _forget_people(self) -> None:
        if self._keys is not None:
            self._keys.drop()
        self._keys = None

    def _people(self, name: str) -> PeopleKeys:
        """Whom questions are about, found when a table is first needed."""
        if self._keys is None:
            if not self._asked:
                raise CohortError(
                    "NoPeople",
                    f"table {name} of a database is pulled only for the people of a cohort, but "
                    "no cohort was read yet.",
                    hint="read one first, for example with `NewUserCohort.read` or "
                    "`CohortTable.read`.",
                    details={"table": name},
                )
            self._keys = self._find_people()
        return self._keys

    def _find_people(self) -> PeopleKeys:
        database, queries, parts = self._opener.database, [], []
        for some in self._asked:
            if isinstance(some, ListedPeople):
                parts.append(self._listed(some))
                continue
            query = self._query(some)
            queries.append(query)
            what = f"the people of {self._tables[some.table].words}"
            usual = {"id": "int64", "first_day": "date32", "last_day": "date32"}
            with self._warehouse.stream(query, what, usual) as stream:
                parts.append(_people_of(database.add_stream(stream)))
        listed = " UNION ALL ".join(f"SELECT * FROM ({part})" for part in parts)
        found = database.sql(
            "SELECT id, min(first_day) AS first_day, max(last_day) AS last_day "
            f"FROM ({listed}) WHERE id IS NOT NULL AND first_day IS NOT NULL GROUP BY 1 ORDER BY 1"
        ).fetchnumpy()
        ids, first, last = _arrays(found, "id", "first_day", "last_day")
        is_listed = any(isinstance(some, ListedPeople) for some in self._asked)
        return PeopleKeys(self._warehouse, ids, first, last, () if is_listed else queries)

    def _query(self, some: RecordedPeople) -> str:
        """The statement that finds people; raises `CohortError` if their table is not there."""
        table = self._tables.get(some.table.lower())
        if table is None:
            known = sorted(name for name in self._tables if "." not in name)
            raise CohortError(
                "MissingTable",
                f"{self._warehouse.shown} has no table {some.table}.",
                hint=f"there are: {', '.join(known) or 'none'}.",
                details={"table": some.table},
            )
        for column in (some.column, some.person, some.day):
            if column not in table.columns:
                raise CohortError(
                    "MissingColumn",
                    f"table {table.words} has no column {column}.",
                    hint=f"it has {', '.join(table.columns)}.",
                    details={"table": some.table, "column": column},
                )
        return people_with_records(table, some.column, some.values, some.person, some.day)

    def _listed(self, some: ListedPeople) -> str:
        """Query of the people of a frame or a file."""
        frame = some.frame
        is_file = isinstance(frame, Path) or (isinstance(frame, str) and is_file_name(frame))
        opener = self._opener
        stored = opener.open(Path(str(frame))) if is_file else opener.database.add(frame)
        there = {column.lower(): column for column in stored.columns}
        who, day = (
            cast(f'"{there[name]}"', stored.types[there[name]], name).value
            for name in (some.person, some.day)
        )
        return f"SELECT {who} AS id, {day} AS first_day, {day} AS last_day FROM {stored.view}"

    def _has_all(self, some: ListedPeople) -> bool:
        """Whether people, with their days, are among those whom questions are about anyway."""
        if not self._asked:
            return False
        keys, database = self._people("person"), self._opener.database
        query = self._listed(some)
        found = database.sql(
            "SELECT id, min(first_day) AS first_day, max(last_day) AS last_day "
            f"FROM ({query}) WHERE id IS NOT NULL AND first_day IS NOT NULL GROUP BY 1"
        ).fetchnumpy()
        return keys.has_all(*_arrays(found, "id", "first_day", "last_day"))

    # ---------------------------------------------------------------- pulls

    def _hold(self, name: str, columns: Sequence[str], days: DayRange, state: str) -> StoredTable:
        held = self._held.get(name)
        if held is not None and held.state == state:
            if held.columns >= {*columns} and days in held.days:
                return held.stored
            columns = [c for c in self._tables[name].columns if c in held.columns or c in columns]
            days = held.days | days
        kept = self._pull(name, columns, days)
        file = open_file(self._opener.database, kept.path)
        stored = replace(file, file=self._tables[name].words)
        self._held[name] = _Held(stored, kept, frozenset(columns), days, state)
        return stored

    def _pull(self, name: str, columns: Sequence[str], days: DayRange) -> CachedTable:
        table, usual = self._tables[name], usual_types(columns)
        if name in SMALL:
            return self._puller.whole(table, columns, usual)
        how = pulled_table(name, tuple(table.columns))
        assert how is not None, "it was opened"
        rows = KeyRows(table, tuple(columns), how.key, _limits(how, days, table))
        return self._puller.keyed(rows, self._people(name), usual)


def _limits(how: PulledTable, days: DayRange, table: ServerTable) -> RowLimits | None:
    """Limits of the days of records; none if all are wanted, or the table does not say."""
    if days == ALL_DAYS or how.start is None or how.start not in table.columns:
        return None
    end = how.end if how.end in table.columns else None
    return RowLimits(how.start, end, days.first, days.last)


def _arrays(found: Mapping[str, AnyArray], who: str, *days: str) -> tuple[AnyArray, ...]:
    """Ids and days of a query."""
    ids = np.asarray(found[who], dtype=np.int64)
    return ids, *(np.asarray(found[day]).astype("datetime64[D]") for day in days)


def _people_of(stored: StoredTable) -> str:
    """Query of people as a statement gave them, with days of whatever type."""
    columns = [
        f"{cast(name, stored.types[name], kind).value} AS {name}"
        for name, kind in (("id", "person_id"), ("first_day", DAY), ("last_day", DAY))
    ]
    return f"SELECT {', '.join(columns)} FROM {stored.view}"


def _found(warehouse: Warehouse, schemas: Sequence[str]) -> dict[str, ServerTable]:
    """The tables of some schemas by name in lower case."""
    tables: dict[str, ServerTable] = {}
    for wanted in schemas:
        catalog, _, schema = wanted.rpartition(".")
        statement = catalogue(warehouse.dialect, catalog, schema)
        rows = warehouse.rows(statement, f"the catalogue of schema {wanted}")
        # A database may have schemas whose names differ in case only; the one as written counts.
        rows = [row for row in rows if row[0] == schema] or rows
        if not rows:
            raise InputError(
                f"{warehouse.shown} has no schema {wanted!r} with tables that the account may see.",
                hint="check `schema`; names match in any case.",
            )
        for name, columns in _columns(rows, f"{warehouse.shown}, schema {wanted},").items():
            of_schema = str(rows[0][0])
            table = ServerTable(catalog, of_schema, name, columns)
            tables.setdefault(name.lower(), table)
            tables[f"{wanted}.{name}".lower()] = table  # as cohort tables are named
    return tables


def _columns(rows: Sequence[Sequence[object]], place: str) -> dict[str, dict[str, str]]:
    """Table -> its columns, by their names in lower case."""
    tables: dict[str, dict[str, str]] = {}
    for _, table, column in rows:
        tables.setdefault(str(table), {})[str(column).lower()] = str(column)
    names: dict[str, str] = {}
    for name in tables:
        other = names.setdefault(name.lower(), name)
        if other != name:
            raise CohortError(
                "AmbiguousTable",
                f"{place} has two tables whose names differ in case only: {other!r} and {name!r}.",
                hint="rename one of them, or treat both as missing with `ignore`.",
                details={"table": name},
            )
    return tables


def pull_listener(progress: bool | PullListener | None) -> PullListener:
    """What shows how far pulls are: a function, or a bar where one is wanted."""
    if callable(progress):
        return progress
    bar = ProgressBar("pull", progress)

    def show(pull: PullProgress) -> None:
        bar.update(0.0, pull.words)
        if pull.is_done:
            bar.stop()

    return show
