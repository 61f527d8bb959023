"""The vocabulary of a CDM in a database, as far as concepts need it.

Let C be the concepts that occur in the records that were pulled, and those that questions name. Of
``concept_ancestor`` the rows are pulled whose descendant is in C or is an ancestor of one in C, so
that groups of diseases and drugs can be found; and all rows below a concept whose descendants are
asked for. Of ``concept_relationship`` the rows "Maps to" these concepts are pulled, and of
``concept`` the rows of all of these.
"""

from collections.abc import Callable, Iterable, Sequence

from riskset.data.database import Database, StoredTable, quoted, text
from riskset.data.table_store import CachedTable, table_key
from riskset.omop.pulled_columns import pulled_table, usual_types
from riskset.warehouse.keys import IdKeys
from riskset.warehouse.pull import Puller
from riskset.warehouse.statements import KeyRows, ServerTable

__all__ = ["ServerVocabulary"]

MAPS_TO = "Maps to"
ANCESTOR, DESCENDANT = "ancestor_concept_id", "descendant_concept_id"

Records = Callable[[], Iterable[StoredTable]]
"""The tables of records that were pulled so far."""


class ServerVocabulary:
    """Tables of `VOCABULARY`, pulled again whenever records or questions bring new concepts."""

    def __init__(
        self, database: Database, puller: Puller, tables: dict[str, ServerTable], records: Records
    ) -> None:
        self._database, self._puller, self._tables = database, puller, tables
        self._records = records
        self._named: set[int] = set()
        self._expanded: set[int] = set()
        self._above: set[int] = set()
        self._has_mapped = False
        self._occurring: dict[str, frozenset[int]] = {}
        self._state = ""
        self._kept: dict[str, list[CachedTable]] = {}
        self._stored: dict[str, StoredTable] = {}

    @property
    def pulled(self) -> dict[str, CachedTable]:
        """Every file that counts now, by the table and a number."""
        return {
            f"{name} {k}": kept
            for name, files in self._kept.items()
            for k, kept in enumerate(files)
        }

    def name(self, concepts: Iterable[int], *, descendants: bool) -> None:
        """Add concepts that questions name, or these and all their descendants."""
        (self._expanded if descendants else self._named).update(map(int, concepts))

    def open(self, name: str) -> StoredTable:
        """A table of the vocabulary."""
        self._has_mapped |= name == "concept_relationship"
        # Of a concept that is an ancestor of others all rows are there.
        known = sorted(self._concepts() - self._above)
        state = table_key(known, sorted(self._expanded), self._has_mapped)
        if state != self._state:
            self._state, self._kept, self._stored, self._above = state, {}, {}, set()
            self._pull(known)
        if name not in self._stored:
            self._stored[name] = self._together(name)
        return self._stored[name]

    def _concepts(self) -> set[int]:
        found = self._named | self._expanded
        for stored in self._records():
            if stored.view not in self._occurring:
                self._occurring[stored.view] = self._of(stored)
            found |= self._occurring[stored.view]
        return found

    def _of(self, stored: StoredTable) -> frozenset[int]:
        """Every concept in a table of records."""
        columns = [column for column in stored.columns if column.endswith("_concept_id")]
        return frozenset(self._distinct(stored.view, columns))

    def _distinct(self, view: str, columns: Sequence[str]) -> list[int]:
        parts = [
            f"SELECT TRY_CAST({quoted(column)} AS BIGINT) AS id FROM {view}" for column in columns
        ]
        if not parts:
            return []
        union = " UNION ".join(parts)
        rows = self._database.sql(f"SELECT id FROM ({union}) WHERE id > 0").fetchall()
        return [int(id_) for (id_,) in rows]

    def _pull(self, known: Sequence[int]) -> None:
        """All tables of the vocabulary, ancestors first: they say which concepts there are."""
        concepts = set(known)
        if "concept_ancestor" in self._tables:
            own = self._keyed("concept_ancestor", DESCENDANT, known)
            above = {*self._values(own, ANCESTOR)} - concepts
            upper = self._keyed("concept_ancestor", DESCENDANT, sorted(above))
            below = self._keyed("concept_ancestor", ANCESTOR, sorted(self._expanded))
            self._kept["concept_ancestor"] = [own, upper, below]
            self._above = above
            concepts |= {*above, *self._values(upper, ANCESTOR), *self._values(below, DESCENDANT)}
        if "concept_relationship" in self._tables and self._has_mapped:
            mapped = self._keyed("concept_relationship", "concept_id_2", sorted(concepts))
            self._kept["concept_relationship"] = [mapped]
            concepts |= {*self._values(mapped, "concept_id_1")}
        if "concept" in self._tables:
            wanted = sorted(concepts | {0})
            self._kept["concept"] = [self._keyed("concept", "concept_id", wanted)]

    def _keyed(self, name: str, key: str, ids: Sequence[int]) -> CachedTable:
        table = self._tables[name]
        how = pulled_table(name, tuple(table.columns))
        assert how is not None, "a table of the vocabulary always has a key"
        columns = tuple(column for column in how.columns if column in table.columns)
        where = ""
        if name == "concept_relationship":
            where = f"{table.column('relationship_id')} = {text(MAPS_TO)}"
        rows = KeyRows(table, columns, key, where=where)
        return self._puller.keyed(rows, IdKeys(ids), usual_types(columns))

    def _values(self, kept: CachedTable, column: str) -> list[int]:
        return self._distinct(f"read_parquet({text(str(kept.path))})", [column])

    def _together(self, name: str) -> StoredTable:
        """The files of a table as one, each row once."""
        files = ", ".join(text(str(one.path)) for one in self._kept[name])
        view = self._database.new_name()
        rows = f"SELECT DISTINCT * FROM read_parquet([{files}], hive_partitioning = false)"
        self._database.execute(f"CREATE TEMP VIEW {view} AS {rows}")
        return self._database.stored(view, self._tables[name].words)
