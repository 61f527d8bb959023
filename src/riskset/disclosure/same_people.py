"""What several analyses of a study say of the same people: their numbers may differ by few.

The follow-up of a per-protocol analysis ends when people deviate. So its outcomes less those of
the intention-to-treat analysis are the outcomes after deviation. The same holds for times at risk
one of which contains the other. Of numbers that differ by few, that of the earlier analysis is
shown.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from riskset.disclosure.rows import ARMS, Named, Results, keys_of
from riskset.disclosure.small_cells import is_small
from riskset.results.rows import ArmRow, RunRow

__all__ = ["QUESTION", "ShownBefore", "analyses_of", "side_of"]

QUESTION = ("target", "comparator", "outcome")
SIZES = tuple(f"{arm}_{name}" for arm in ARMS for name in ("persons", "exposures"))


def side_of(row: Named) -> str:
    """Whether a row is of the people "before" or "after" the adjustment."""
    if "side" in row:
        return str(row["side"])
    if "adjusted" in row:
        return "after" if row["adjusted"] else "before"
    return "before" if row.get("role") == "crude" else "after"


def _people_of(row: Named, results: Results) -> tuple[Any, ...] | None:
    """What two analyses have in common if a row of each is of the same people; None: not known.

    That is the numbers of people before an adjustment, and after one that keeps everybody. After
    any other it is the number of the adjustment.
    """
    question = keys_of(row, QUESTION)
    keys = {"analysis": row["analysis"], **_named(question)}
    everybody = _sizes("before", keys, results)
    if side_of(row) == "before":
        return None if everybody is None else (*question, *everybody)
    if everybody is not None and everybody == _sizes("after", keys, results):
        return (*question, *everybody)
    run = next(iter(results.raw(RunRow, **keys)), None)
    return None if run is None or run.adjustment is None else (*question, run.adjustment)


def _sizes(side: str, keys: Mapping[str, Any], results: Results) -> tuple[Any, ...] | None:
    """Numbers of people of both arms before or after the adjustment, if they are known."""
    arms = next(iter(results.raw(ArmRow, side=side, **keys)), None)
    sizes = keys_of(ArmRow() if arms is None else arms, SIZES)
    return None if None in sizes else sizes


def _named(question: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(QUESTION, question, strict=True))


def analyses_of(row: Named, results: Results) -> list[str]:
    """Names of the other analyses of the people of a row, for the same outcome."""
    own = _people_of(row, results)
    if own is None:
        return []
    runs = results.raw(RunRow, **_named(keys_of(row, QUESTION)))
    others = [run.analysis for run in runs if run.analysis != row["analysis"]]
    about = {"side": side_of(row), **_named(keys_of(row, QUESTION))}
    return [name for name in others if _people_of({**about, "analysis": name}, results) == own]


class ShownBefore:
    """Numbers that earlier analyses have shown of the same people."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._numbers: dict[tuple[Any, ...], list[float]] = defaultdict(list)

    def numbers(self, row: Named, *of: object) -> list[float]:
        """Those of one kind, that `of` names, shown before."""
        people = _people_of(row, self._results)
        return [] if people is None else self._numbers[(people, *of)]

    def near(self, row: Named, columns: Iterable[str], *of: object) -> set[str]:
        """Columns whose number differs by few from one that was shown before."""
        found = set()
        for name in columns:
            value, shown = row.get(name), self.numbers(row, name, *of)
            if value is not None and shown:
                away = np.abs(np.array(shown) - value)
                found |= {name} if is_small(away, self._results.least).any() else set()
        return found

    def add(self, row: Named, values: Mapping[str, float | None], *of: object) -> None:
        """Remember numbers that are shown, by the names of their columns."""
        for name, value in values.items():
            if value is not None:
                self.numbers(row, name, *of).append(float(value))
