"""Means of rows of results over completed data sets."""

import json
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from riskset._types import AnyArray, is_number
from riskset.results.columns import RowT

__all__ = ["matched_means", "mean_array", "mean_details", "mean_row", "total_variance"]


def mean_row(rows: Sequence[RowT], zeros: Mapping[str, int] | None = None) -> RowT:
    """The row of the means of each column, whole for counts; what is no number is the most common.

    Where all rows are equal, so is their mean, to the last bit. `zeros` has the number of rows in
    which a column is 0, in addition to those given.
    """
    columns = rows[0].columns()
    return rows[0].changed(
        {
            name: _mean([row[name] for row in rows], columns[name].type, (zeros or {}).get(name, 0))
            for name in columns
        }
    )


def _mean(values: list[Any], kind: str, n_zeros: int) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if not n_zeros and all(value == known[0] for value in known):
        return known[0]
    if kind in ("int", "number"):
        with np.errstate(invalid="ignore"):
            mean = float(np.sum(known)) / (len(known) + n_zeros)
        return round(mean) if kind == "int" else mean
    if kind == "numbers":
        alike = [value for value in known if len(value) == len(known[0])]
        return [float(mean) for mean in np.mean(alike, axis=0)]
    return Counter(known).most_common(1)[0][0]


def matched_means(
    tables: Sequence[Sequence[RowT]], keys: Sequence[str], zero: Sequence[str] = ()
) -> list[RowT]:
    """The means of the rows that agree in the columns `keys`, in the order in which they come.

    A table that lacks such a row counts as one with 0 in the columns `zero`, and not in others.
    """
    groups: dict[tuple[Hashable, ...], list[RowT]] = {}
    for rows in tables:
        for row in rows:
            groups.setdefault(tuple(row[name] for name in keys), []).append(row)
    return [
        mean_row(group, dict.fromkeys(zero, len(tables) - len(group))) for group in groups.values()
    ]


def total_variance(values: Any, variances: Any) -> Any:
    """Total variance by Rubin's rules, over the first axis."""
    between = np.var(values, axis=0, ddof=1)
    return np.mean(variances, axis=0) + (1 + 1 / len(values)) * between


def mean_array(arrays: Sequence[AnyArray]) -> AnyArray:
    """The mean of arrays of numbers, which is the first one where all are equal."""
    first = arrays[0]
    stacked = np.array(arrays)
    with np.errstate(invalid="ignore"):
        same = (stacked == first).all(axis=0)
        return np.asarray(np.where(same, first, stacked.mean(axis=0)))


def mean_details(texts: Sequence[str]) -> str:
    """The same for facts that are kept as JSON."""
    return json.dumps(_mean_fact([json.loads(text) for text in texts]), sort_keys=True)


def _mean_fact(values: Sequence[Any]) -> Any:
    first = values[0]
    if all(value == first for value in values):
        return first
    if all(is_number(value) for value in values):
        mean = float(np.mean(values))
        return round(mean) if all(isinstance(value, int) for value in values) else mean
    if all(isinstance(value, dict) for value in values):
        shared = [name for name in first if all(name in value for value in values)]
        return {name: _mean_fact([value[name] for value in values]) for name in shared}
    if all(isinstance(value, list) and len(value) == len(first) for value in values):
        return [_mean_fact(column) for column in zip(*values, strict=True)]
    return first
