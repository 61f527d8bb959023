"""What all simulated cohorts have in common: they are drawn a column at a time, and kept or saved.

The covariates are 0 or 1 and sparse. A table can be written to disk while it is drawn, in memory
that does not depend on the number of columns.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from riskset._errors import InputError, counted
from riskset._types import AnyArray, Features, Index, Pointer, Rows
from riskset.data.outcome import Surv
from riskset.data.writers import replacing, write_pairs, write_table

__all__ = [
    "Drawing",
    "Simulation",
    "as_count",
    "as_finite",
    "as_seed",
    "as_share",
    "collect",
    "save_cohort",
]

BLOCK_ENTRIES = 1 << 21


class Drawing(Protocol):
    """A cohort drawn step by step: first the columns, one after the other, then the outcomes.

    Examples
    --------
    >>> import riskset as rs
    >>> drawing = rs.simulate.CoxDesign(100, 3, density=0.1, seed=1)
    >>> drawing.n_rows, drawing.n_covariates, drawing.coef.size
    (100, 3, 3)
    """

    n_rows: int
    n_covariates: int
    coef: Features
    """True log hazard ratios (n_covariates,)."""

    def columns(self) -> Iterator[NDArray[np.int32]]:
        """Row numbers of the ones of each covariate, increasing; to be run through once."""

    def outcomes(self) -> tuple[Rows, Index]:
        """Times and events of all rows; to be drawn once, after the columns."""


@dataclass(frozen=True, repr=False)
class Simulation:
    """A simulated cohort and the coefficients it was drawn with.

    Attributes
    ----------
    indptr, indices : (n_covariates + 1,) int64, (n_entries,) int32
        Row numbers, increasing, of the ones of covariate j: ``indices[indptr[j]:indptr[j + 1]]``.
    time : (n_rows,) float64
        End of follow-up.
    event : (n_rows,) int64
        0 = censored, 1 = the event, 2 = the competing event.
    coef : (n_covariates,) float64
        True log (subdistribution) hazard ratios for cause 1.

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.simulate_cox(1000, 20, density=0.1, seed=1)
    >>> cohort
    <Simulation: 1,000 rows, 20 covariates, 2,000 ones>
    >>> rs.Cox(rs.L1(5.0)).fit(cohort.X, cohort.y).status_
    'converged'
    """

    indptr: Pointer
    indices: NDArray[np.int32]
    time: Rows
    event: Index
    coef: Features

    def __repr__(self) -> str:
        return (
            f"<Simulation: {counted(self.time.size, 'row')}, "
            f"{counted(self.coef.size, 'covariate')}, {counted(self.indices.size, 'one')}>"
        )

    @functools.cached_property
    def X(self) -> scipy.sparse.csc_array:
        """The covariates, (n_rows, n_covariates), sparse by columns, float64."""
        shape = (self.time.size, self.coef.size)
        ones = np.ones(self.indices.size)
        return scipy.sparse.csc_array((ones, self.indices, self.indptr), shape=shape)

    @property
    def y(self) -> AnyArray:
        """Times and events, as `Surv` makes them."""
        return Surv(self.time, self.event)


def save_cohort(design: Drawing, folder: Path, *, treatment_apart: bool = False) -> int:
    """Draw a cohort into three Parquet files, in memory that does not grow with its columns.

    ``outcomes.parquet`` (rowId, time, y), ``covariates.parquet`` (rowId, covariateId; an absent
    value means 1) and ``truth.parquet`` (covariateId, coef). All three appear together at the end.
    With `treatment_apart` the last covariate, the treatment, is a column of the outcomes instead, 1
    or 0, as a study wants it. Returns the number of entries of ``covariates.parquet``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import riskset as rs
    >>> design = rs.simulate.CoxDesign(1000, 20, density=0.1, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n_entries = rs.simulate.save_cohort(design, Path(folder))
    ...     files = sorted(path.name for path in Path(folder).iterdir())
    >>> n_entries, files
    (2000, ['covariates.parquet', 'outcomes.parquet', 'truth.parquet'])
    """
    sizes: list[int] = []
    names = ("outcomes.parquet", "covariates.parquet", "truth.parquet")
    with replacing(*(folder / name for name in names)) as (outcomes, covariates, truth):
        columns = iter(design.columns())
        others = itertools.islice(columns, design.n_covariates - treatment_apart)
        write_pairs(covariates, ("rowId", "covariateId"), _blocks(others, sizes))
        people = {"rowId": np.arange(1, design.n_rows + 1)}
        if treatment_apart:
            people["treatment"] = np.zeros(design.n_rows, dtype=np.int64)
            people["treatment"][next(columns)] = 1
        time, event = design.outcomes()
        write_table(outcomes, people | {"time": time, "y": event})
        covariate_id = np.arange(1, design.n_covariates + 1)
        write_table(truth, {"covariateId": covariate_id, "coef": design.coef})
    return sum(sizes)


def _blocks(
    columns: Iterable[NDArray[np.int32]], sizes: list[int]
) -> Iterator[tuple[Index, Index]]:
    """(row, covariate) keys, counted from 1, of several columns at a time; notes their sizes."""
    block: list[AnyArray] = []
    for rows in columns:
        block.append(rows)
        sizes.append(rows.size)
        if sum(rows.size for rows in block) >= BLOCK_ENTRIES:
            yield _pairs(block, len(sizes))
            block = []
    if block:
        yield _pairs(block, len(sizes))


def _pairs(block: list[AnyArray], last: int) -> tuple[Index, Index]:
    sizes = [rows.size for rows in block]
    keys = np.arange(last - len(block), last, dtype=np.int64) + 1
    return np.concatenate(block).astype(np.int64) + 1, np.repeat(keys, sizes)


def collect(design: Drawing) -> Simulation:
    """Draw a cohort into memory: four bytes an entry, and while it grows at most a quarter more."""
    indptr = np.zeros(design.n_covariates + 1, dtype=np.int64)
    indices = np.empty(1024, dtype=np.int32)
    for j, rows in enumerate(design.columns()):
        end = indptr[j + 1] = indptr[j] + rows.size
        if end > indices.size:
            indices.resize(end + end // 4, refcheck=False)
        indices[indptr[j] : end] = rows
    indices.resize(indptr[-1], refcheck=False)
    time, event = design.outcomes()
    return Simulation(indptr, indices, time, event, design.coef)


def as_count(name: str, value: int) -> int:
    """Check a size of a cohort."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(
            f"`{name}` must be a whole number of at least 1, but it is {value!r}.",
            hint="it is the size of the cohort to draw.",
        )
    if value >= 2**31:
        raise InputError(
            f"`{name}` must be smaller than 2^31, but it is {value:,}.",
            hint="draw several cohorts with different seeds.",
        )
    return int(value)


def as_share(name: str, value: float, *, zero_allowed: bool = False) -> float:
    """Check a share of rows or columns."""
    low = "[0" if zero_allowed else "(0"
    if not (0 <= value <= 1) or (value == 0 and not zero_allowed):
        raise InputError(
            f"`{name}` must be in {low}, 1], but it is {value!r}.",
            hint="it is a share, not a percentage.",
        )
    return float(value)


def as_finite(name: str, value: float) -> float:
    """Check an effect."""
    if not math.isfinite(value):
        raise InputError(
            f"`{name}` must be a finite number, but it is {value!r}.", hint="0 means no effect."
        )
    return float(value)


def as_seed(value: int) -> int:
    """Check a seed."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(
            f"`seed` must be a whole number of at least 0, but it is {value!r}.",
            hint="any such number will do; the same one gives the same cohort.",
        )
    return int(value)
