"""Files of likelihoods in the forms of EvidenceSynthesis, which it tells apart by their columns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._types import Rows
from riskset.data.database import Database
from riskset.data.files import open_file
from riskset.network.likelihood import SiteLikelihood

__all__ = ["read_likelihoods"]

Row = Mapping[str, Any]
NAMES = ("site", "database_id", "databaseId", "database", "label")
"""Columns that name the site of a row."""
PARAMETRIC: dict[tuple[str, ...], Callable[..., SiteLikelihood]] = {
    ("logRr", "seLogRr"): SiteLikelihood.normal,
    ("mu", "sigma", "gamma"): SiteLikelihood.custom,
    ("mu", "sigma", "alpha"): SiteLikelihood.skew_normal,
}
"""Columns of a table with a row for each site, and what makes a likelihood of them."""
FEWEST_POINTS = 2


def read_likelihoods(path: Path) -> list[tuple[str, SiteLikelihood]]:
    """Names and likelihoods of the sites of a file, CSV or Parquet.

    With the columns ``point``, ``value`` and perhaps ``derivative``, a file is the profile of one
    site, whose name is that of the file. Else each row is a site: ``logRr``, ``seLogRr``; ``mu``,
    ``sigma`` and ``gamma`` or ``alpha``; or a column for each point, whose name is the log ratio.
    """
    rows = _rows(path)
    if not rows:
        raise InputError(f"{path.name} has no rows.", hint="check how the file was written.")
    columns = list(rows[0])
    if {"point", "value"} <= set(columns):
        return [(path.stem, _profile(rows, "derivative" in columns, path))]
    for names, make in PARAMETRIC.items():
        if set(names) <= set(columns):
            return [
                (name, make(*(_finite(row, one, path) for one in names)))
                for name, row in _named(rows, path)
            ]
    grid = _grid(columns)
    if len(grid) < FEWEST_POINTS:
        raise InputError(
            f"the columns of {path.name} do not describe a likelihood: {', '.join(columns[:8])}.",
            hint="EvidenceSynthesis' forms have point, value and derivative; logRr and seLogRr; "
            "mu, sigma and gamma or alpha; or columns named by log ratios.",
        )
    points = np.array([x for x, _ in grid])
    return [
        (name, SiteLikelihood(points, np.array([_finite(row, one, path) for _, one in grid])))
        for name, row in _named(rows, path)
    ]


def _rows(path: Path) -> list[Row]:
    with Database() as database:
        stored = open_file(
            database, path, identifiers=lambda names: [n for n in names if n in NAMES]
        )
        found: list[Row] = stored.fetch(stored.columns).to_pylist()
        return found


def _named(rows: Sequence[Row], path: Path) -> Iterator[tuple[str, Row]]:
    """Each row with the name of its site."""
    for k, row in enumerate(rows, start=1):
        named = next((str(row[name]) for name in NAMES if row.get(name) is not None), None)
        yield named or (path.stem if len(rows) == 1 else f"{path.stem} {k}"), row


def _profile(rows: Sequence[Row], has_slopes: bool, path: Path) -> SiteLikelihood:
    ordered = sorted(rows, key=lambda row: _finite(row, "point", path))

    def column(name: str) -> Rows:
        return np.array([_finite(row, name, path) for row in ordered])

    slopes = column("derivative") if has_slopes else None
    return SiteLikelihood(column("point"), column("value"), slopes)


def _grid(columns: Sequence[str]) -> list[tuple[float, str]]:
    """Log ratios and names of the columns that are named by numbers."""
    found = []
    for name in columns:
        try:
            found.append((float(name), name))
        except ValueError:
            continue
    return sorted(found)


def _finite(row: Row, name: str, path: Path) -> float:
    try:
        value = float(row[name])
    except (TypeError, ValueError):
        value = float("nan")
    if np.isnan(value):
        raise InputError(
            f"column {name!r} of {path.name} has a value that is not a number: {row[name]!r}.",
            hint="leave out sites and points without a likelihood.",
        )
    return value
