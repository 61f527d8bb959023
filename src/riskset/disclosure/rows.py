"""Rows of tables, which rows belong together, and how a rule hides a number."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from riskset.results.columns import ResultRow, RowT

__all__ = [
    "ARMS",
    "RUN",
    "Named",
    "Results",
    "RowT",
    "SharingRule",
    "grouped",
    "keys_of",
    "known",
    "names_hidden",
    "number",
    "run_of",
    "without",
]

Named = Mapping[str, Any]
"""A row by the names of its columns: a `ResultRow`, or what `riskset.cohort` has in memory."""
ARMS = ("target", "comparator")
RUN = ("target", "comparator", "outcome", "analysis")


class Results(Protocol):
    """All tables of the results that a rule decides about."""

    @property
    def least(self) -> int:
        """Counts above 0 and below it are small."""

    def raw(self, kind: type[RowT], /, **where: object) -> Sequence[RowT]:
        """Rows of a table before anything is hidden here."""

    def shown(self, kind: type[RowT], /, **where: object) -> Sequence[RowT]:
        """Rows of a table as they are shared."""


@dataclass(frozen=True)
class SharingRule:
    """How a table is shared: `apply` makes rows that may be shared from all rows of the table.

    `columns` are the guarded columns that the rule decides about; others are refused.
    """

    apply: Callable[[Sequence[Any], Results], Iterable[ResultRow]]
    columns: frozenset[str]


def without(row: RowT, names: Iterable[str]) -> RowT:
    """The row with columns hidden; ``suppressed`` names them, and those hidden before."""
    hidden = {name for name in names if row[name] is not None}
    if not hidden:
        return row
    values: dict[str, object] = dict.fromkeys(hidden)
    if "suppressed" in row:
        values["suppressed"] = ", ".join(sorted(hidden | names_hidden(row)))
    return row.changed(values)


def names_hidden(row: Named) -> set[str]:
    """Columns of a row that ``suppressed`` names."""
    return {name.strip() for name in (row.get("suppressed") or "").split(",")} - {""}


def known(value: Any) -> Any:
    """A value, or None for NaN, which results never hold."""
    return None if isinstance(value, float) and value != value else value


def number(value: float | None) -> float:
    """A value of a table as a number; NaN if it is missing."""
    return float("nan") if value is None else float(value)


def keys_of(row: Named, names: Sequence[str]) -> tuple[Any, ...]:
    """The values that lead to what a row belongs to."""
    return tuple(row.get(name) for name in names)


def run_of(row: Named) -> dict[str, Any]:
    """The columns that name the run of a row."""
    return {name: row[name] for name in RUN}


def grouped(rows: Sequence[Named], names: Sequence[str]) -> Iterator[list[int]]:
    """Places of the rows that agree in some columns, wherever they stand."""
    places: dict[tuple[Any, ...], list[int]] = {}
    for k, row in enumerate(rows):
        places.setdefault(keys_of(row, names), []).append(k)
    yield from places.values()
