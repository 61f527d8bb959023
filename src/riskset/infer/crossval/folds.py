"""Which rows are left out in each replicate: drawn from a seed, or given."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import AnyArray, Index, is_count, is_number
from riskset.data.checks import Places
from riskset.data.labels import as_codes
from riskset.data.outcome import Outcome

__all__ = ["Folds", "check_comparable", "deal_units", "draw_folds", "given_folds"]

NO_FOLD = -1
"""Fold of a row of weight 0."""


@dataclass(frozen=True)
class Folds:
    """A partition of the rows for each repetition.

    `assigned` (repeats, n) is the number of the fold that leaves each row out, from 0; -1 for rows
    of weight 0, which are in no fold and no training set. `labels` are the names of the folds of
    each repetition: their numbers, or the ids that were given.
    """

    assigned: Index
    labels: tuple[AnyArray, ...]

    def __len__(self) -> int:
        return sum(len(labels) for labels in self.labels)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Repetition and fold of each replicate, in order."""
        for repeat, labels in enumerate(self.labels):
            yield from ((repeat, fold) for fold in range(len(labels)))

    @property
    def repeats(self) -> Index:
        """Repetition of each replicate."""
        return np.array([repeat for repeat, _ in self], dtype=np.int64)

    def held_out(self, repeat: int, fold: int) -> NDArray[np.bool_]:
        """Rows that a replicate leaves out (n,)."""
        return np.asarray(self.assigned[repeat] == fold)


def draw_folds(
    outcome: Outcome,
    folds: int,
    repeats: int,
    seed: int,
    *,
    groups: Index | None = None,
    stratify: bool = False,
) -> Folds:
    """Random folds whose sizes, in rows or in groups by codes (n,), differ by at most one.

    Every row of positive weight is in one fold of each repetition. Repetition r depends on the seed
    and r alone, so that more repetitions begin with those of fewer. With `stratify`, the numbers of
    events of interest and of competing events in two folds differ by at most one, if each unit is
    one row; groups are dealt out by their numbers of events.
    """
    _check_counts(folds, repeats, seed)
    present = outcome.weight > 0
    codes = np.arange(outcome.n_rows) if groups is None else groups
    kept, unit = np.unique(codes[present], return_inverse=True)
    _check_size(int(folds), kept.size, "row" if groups is None else "group")
    events = np.bincount(unit, outcome.is_event[present])
    others = np.bincount(unit, (outcome.event != 0)[present]) - events
    assigned = np.full((repeats, outcome.n_rows), NO_FOLD, dtype=np.int64)
    by = (-others, -events) if stratify else ()
    dealt = deal_units(kept.size, folds, repeats, seed, by)
    assigned[:, present] = dealt[:, unit]
    return Folds(assigned, (np.arange(folds),) * repeats)


def deal_units(n: int, folds: int, repeats: int, seed: int, by: Sequence[AnyArray] = ()) -> Index:
    """Folds (repeats, n) of units that are dealt out in random order, or sorted by keys (n,).

    The last key decides first, as in `np.lexsort`; units that are equal in all keys come in random
    order.
    """
    out = np.empty((repeats, n), dtype=np.int64)
    for r, child in enumerate(np.random.SeedSequence(int(seed)).spawn(repeats)):
        order = np.random.default_rng(child).permutation(n)
        if by:
            order = order[np.lexsort([key[order] for key in by])]
        out[r, order] = np.arange(n) % folds
    return out


def given_folds(ids: object, outcome: Outcome) -> Folds:
    """Folds by ids (n,), or by one row of ids for each repetition (repeats, n)."""
    array = np.asarray(ids)
    n = outcome.n_rows
    if array.ndim not in (1, 2) or array.shape[-1] != n or array.size == 0:
        raise InputError(
            f"`folds` must be a number, or fold ids of shape ({n:,},) or (repeats, {n:,}), but "
            f"their shape is {array.shape}.",
            hint="give one id for each row; ids of several repetitions stand below each other.",
        )
    present = outcome.weight > 0
    assigned = np.full((np.atleast_2d(array).shape[0], n), NO_FOLD, dtype=np.int64)
    labels = []
    for r, row in enumerate(np.atleast_2d(array)):
        codes, names = as_codes(row, "folds", n, Places())
        used, assigned[r, present] = np.unique(codes[present], return_inverse=True)
        if used.size < 2:
            where = f" in repetition {r}" if array.ndim == 2 else ""
            raise InputError(
                "fold ids must have at least two different values, but all rows of positive "
                f"weight have {names[used][0].item()!r}{where}.",
                hint="the rows of one id are left out together.",
            )
        labels.append(names[used])
    return Folds(assigned, tuple(labels))


def check_comparable(folds: Folds, outcome: Outcome) -> None:
    """Complain if no fold has two rows of one stratum, so that none has a risk set of two.

    The partial likelihood of such a fold by itself is 1, whatever the coefficients.
    """
    present, n_strata = outcome.weight > 0, outcome.n_strata
    stratum = outcome.stratum[present]
    for assigned, labels in zip(folds.assigned, folds.labels, strict=True):
        cell = assigned[present] * n_strata + stratum
        if cell.size > len(labels) * n_strata or np.unique(cell).size < cell.size:
            return
    rows = "at most one row of each stratum" if n_strata > 1 else "a single row"
    raise InputError(
        f"every fold has {rows}, to be compared with no other, so that `score='held_out'` is 0 for "
        "every penalty.",
        hint="take fewer folds, or `score='difference'`, which compares with the training rows, "
        "too.",
    )


def _check_size(folds: int, n_units: int, unit: str) -> None:
    if n_units == 1:
        raise InputError(
            f"there is only one sample, a single {unit} of positive weight, to be divided into "
            f"{folds:,} folds.",
            hint="cross-validation needs at least two.",
        )
    if folds > n_units:
        raise InputError(
            f"there are {n_units:,} {unit}s of positive weight, too few for {folds:,} folds.",
            hint="5 or 10 folds are usual; every fold needs rows to compare with each other, "
            "unless `score='difference'`.",
        )


def _check_counts(folds: int, repeats: int, seed: int) -> None:
    if not is_count(folds) or folds < 2:
        raise InputError(
            f"`folds` must be a whole number of at least 2, or fold ids, but it is {folds!r}.",
            hint="10 is usual.",
        )
    if not is_count(repeats):
        raise InputError(
            f"`repeats` must be a whole number of at least 1, but it is {repeats!r}.",
            hint="each repetition divides the rows anew.",
        )
    if not (is_number(seed) and float(seed).is_integer() and seed >= 0):
        raise InputError(
            f"`seed` must be a whole number of at least 0, but it is {seed!r}.",
            hint="the same seed gives the same folds.",
        )
