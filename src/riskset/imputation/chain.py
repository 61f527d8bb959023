"""Chained equations: each incomplete column is drawn given all others, over and over.

The columns with the fewest missing values come first in each cycle. Each completed data set has a
random stream of its own, so its values do not depend on the number of threads or of data sets.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from riskset._errors import InputError, counted
from riskset._runtime import Runtime
from riskset._types import Index, Matrix
from riskset.data.incomplete import Donors, IncompleteColumn
from riskset.imputation.conditional import level_draws, matched_donors
from riskset.imputation.settings import Imputation

__all__ = ["Chain", "CompletedColumns", "run_chains"]


@dataclass(frozen=True, eq=False)
class CompletedColumns:
    """One completed data set: who lends values to whom, and how the chain moved.

    `mean` and `sd` (cycles, columns) are those of the values that were drawn, for levels those of
    their numbers 0, 1, ...
    """

    donors: Donors
    mean: Matrix
    sd: Matrix


class Chain:
    """The columns of imputation models: covariates, and what the outcome gives (n, q)."""

    def __init__(
        self, columns: Sequence[IncompleteColumn], outcome: Matrix, settings: Imputation
    ) -> None:
        self.columns, self.settings = columns, settings
        parts = [*(_features(column) for column in columns), outcome]
        ends = np.cumsum([0, *(part.shape[1] for part in parts)])
        self._own = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        self._check_sizes(int(ends[-1]))
        center, scale = [], []
        missing = [*(column.missing for column in columns), np.zeros(len(outcome), dtype=bool)]
        for part, gaps in zip(parts, missing, strict=True):
            center.append(part[~gaps].mean(axis=0))
            scale.append(part[~gaps].std(axis=0))
        scales = np.concatenate(scale)
        scales[~(scales > 0)] = 1.0
        self._start = (np.column_stack(parts) - np.concatenate(center)) / scales

    @property
    def incomplete(self) -> list[int]:
        """Columns with missing values, those with the fewest first."""
        some = [k for k, column in enumerate(self.columns) if column.n_missing]
        return sorted(some, key=lambda k: (self.columns[k].n_missing, k))

    def _check_sizes(self, n_features: int) -> None:
        for k in self.incomplete:
            column = self.columns[k]
            own = self._own[k]
            n_known = column.missing.size - column.n_missing
            n_others = n_features - (own.stop - own.start)
            if n_known <= n_others + 1:
                raise InputError(
                    f"column {column.name!r} has {counted(n_known, 'known value')}, too few for an "
                    f"imputation model with {counted(n_others, 'column')}.",
                    hint="leave out this column, or columns that do not help, with `drop`.",
                )

    def completed(self, stream: np.random.SeedSequence) -> CompletedColumns:
        """One completed data set."""
        rng, n_cycles = np.random.default_rng(stream), self.settings.cycles
        x, incomplete = self._start.copy(), self.incomplete
        known = {k: np.flatnonzero(~self.columns[k].missing) for k in incomplete}
        gaps = {k: np.flatnonzero(self.columns[k].missing) for k in incomplete}
        donors = {k: rng.choice(known[k], gaps[k].size) for k in incomplete}
        for k in incomplete:
            x[gaps[k], self._own[k]] = x[donors[k], self._own[k]]
        mean, sd = (np.zeros((n_cycles, len(incomplete))) for _ in range(2))
        for cycle in range(n_cycles):
            for place, k in enumerate(incomplete):
                others = np.delete(x, self._own[k], axis=1)
                donors[k] = self._draw(k, known[k], others[known[k]], others[gaps[k]], rng)
                x[gaps[k], self._own[k]] = x[donors[k], self._own[k]]
                values = self.columns[k].values[donors[k]]
                mean[cycle, place], sd[cycle, place] = values.mean(), values.std()
        named = {self.columns[k].name: (gaps[k], donors[k]) for k in incomplete}
        return CompletedColumns(named, mean, sd)

    def _draw(
        self, k: int, known: Index, x: Matrix, x_new: Matrix, rng: np.random.Generator
    ) -> Index:
        """Donors of the rows without a value."""
        column = self.columns[k]
        values = column.values[known]
        if not column.n_levels:
            return known[matched_donors(x, values, x_new, self.settings.donors, rng)]
        drawn = level_draws(x, values, column.n_levels, x_new, rng)
        first = np.unique(values, return_index=True)[1]
        return known[first[drawn]]


def _features(column: IncompleteColumn) -> Matrix:
    """A column of numbers as it is, or an indicator of each level but the first."""
    if not column.n_levels:
        return np.asarray(column.values, dtype=np.float64)[:, None]
    return np.asarray(column.values[:, None] == np.arange(1, column.n_levels), dtype=np.float64)


def run_chains(chain: Chain, seed: int, runtime: Runtime) -> list[CompletedColumns]:
    """All completed data sets, which share the threads."""
    streams = [np.random.SeedSequence(seed, spawn_key=(k,)) for k in range(chain.settings.datasets)]
    with warnings.catch_warnings():
        # A logistic model that has not converged still gives a distribution to draw from.
        warnings.simplefilter("ignore")
        return runtime.map(chain.completed, streams)
