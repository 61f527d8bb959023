"""Resamples of the people of a study: of matched sets, else of persons with all their rows."""

from collections.abc import Callable, Iterator

import numpy as np

from riskset._errors import CohortError
from riskset._types import Index
from riskset.cohort.adjustments.adjustment import Adjustment, People, are_of_one, start

__all__ = ["Readjust", "counts_of_resamples", "readjusted"]

Readjust = Callable[[Index], People]
"""Rows of a resample of the population -> the adjustment of these rows."""


def counts_of_resamples(unit: Index, replicates: int, seed: int) -> Iterator[Index]:
    """How often each row is drawn (n,); rows of one unit are drawn together.

    There are no resamples of one unit with several rows.
    """
    _, code = np.unique(unit, return_inverse=True)
    if are_of_one(code):
        return
    n = int(code.max(initial=-1)) + 1
    rng = np.random.default_rng(seed)
    for _ in range(replicates):
        yield np.bincount(rng.integers(0, n, n), minlength=n)[code].astype(np.int64)


def readjusted(
    adjustment: Adjustment, readjust: Readjust, replicates: int, seed: int
) -> Iterator[tuple[Index, Adjustment]]:
    """Rows of each resample of the whole population, and what the caller makes of them."""
    person = adjustment.population.person_id
    for counts in counts_of_resamples(person, replicates, seed):
        rows = np.repeat(np.arange(person.size), counts)
        made = start(readjust(rows), allow_weights=True)
        if made.weight.size != rows.size:
            raise CohortError(
                "BadAdjustment",
                f"`readjust` was given {rows.size:,} rows, but its adjustment has "
                f"{made.weight.size:,}.",
                hint="make the population of treatment[rows] and adjust that; do not set row_id.",
            )
        yield rows, made
