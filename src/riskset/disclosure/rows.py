"""Rows of tables, what belongs together in them, and how a rule hides a number."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = [
    "ARMS",
    "RUN",
    "Results",
    "Row",
    "Rule",
    "grouped",
    "keys_of",
    "known",
    "names_hidden",
    "number",
    "without",
]

Row = dict[str, Any]
ARMS = ("target", "comparator")
RUN = ("target", "comparator", "outcome", "analysis")


class Results(Protocol):
    """All tables of the results that a rule decides about."""

    @property
    def least(self) -> int:
        """Counts above 0 and below it are small."""

    def raw(self, name: str, /, **where: object) -> Sequence[Row]:
        """Rows of a table before anything is hidden here."""

    def shown(self, name: str, /, **where: object) -> Sequence[Row]:
        """Rows of a table as they are shared."""


@dataclass(frozen=True)
class Rule:
    """How a table is shared.

    Attributes
    ----------
    apply : callable
        From the rows of a table and the results that it belongs to, the rows that may be shared.
    columns : frozenset of str
        The guarded columns that the rule decides about; others are refused.
    """

    apply: Callable[[Sequence[Row], Results], Iterable[Row]]
    columns: frozenset[str]


def without(row: Row, names: Iterable[str]) -> Row:
    """The row with columns hidden; ``suppressed`` names them, and those hidden before."""
    hidden = {name for name in names if row.get(name) is not None}
    shown = row | dict.fromkeys(hidden)
    if "suppressed" in row:
        shown["suppressed"] = ", ".join(sorted(hidden | names_hidden(row)))
    return shown


def names_hidden(row: Mapping[str, Any]) -> set[str]:
    """Columns of a row that ``suppressed`` names."""
    return {name.strip() for name in (row.get("suppressed") or "").split(",")} - {""}


def known(value: Any) -> Any:
    """A value, or None for NaN, which results never hold."""
    return None if isinstance(value, float) and value != value else value


def number(value: float | None) -> float:
    """A value of a table as a number; NaN if it is missing."""
    return float("nan") if value is None else float(value)


def keys_of(row: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    """The values that lead to what a row belongs to."""
    return tuple(row.get(name) for name in names)


def grouped(rows: Sequence[Row], names: Sequence[str]) -> Iterator[list[int]]:
    """Places of the rows that agree in some columns, wherever they stand."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for k, row in enumerate(rows):
        found.setdefault(keys_of(row, names), []).append(k)
    yield from found.values()
