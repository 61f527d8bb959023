"""Hiding of small counts, and of counts from which they follow.

A count n with 0 < n < 5 can identify people. It also follows from a total and the other parts.
Further counts are therefore hidden until no hidden count follows from the shown ones.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError
from riskset._types import is_number

__all__ = [
    "Mask",
    "hide_attrition",
    "hide_small",
    "hide_totals",
    "is_near",
    "is_near_shown",
    "is_small",
]

Mask = NDArray[np.bool_]

TOLERANCE = 1e-9
"""Of null vectors: coefficients of equations are 1 and -1."""


def is_small(counts: object, min_cell_count: int = 5) -> Mask:
    """Whether counts are above 0 and below the minimum; NaN is not.

    Raises
    ------
    CohortError
        "BadSetting", if the minimum is not a whole number of at least 0.
    """
    whole = is_number(min_cell_count) and float(min_cell_count).is_integer()
    if not whole or min_cell_count < 0:
        raise CohortError(
            "BadSetting",
            f"`min_cell_count` must be a whole number of at least 0, but it is {min_cell_count!r}.",
            hint="5 is usual; 0 hides nothing.",
        )
    values = np.asarray(counts, dtype=np.float64)
    return np.asarray((values > 0) & (values < min_cell_count))


def is_near(counts: object, totals: object, min_cell_count: int = 5) -> Mask:
    """Counts of a part that reveal a small count: the part itself, or the rest of the total.

    Examples
    --------
    >>> is_near([0, 3, 50, 97, 100], 100).tolist()
    [False, True, False, True, False]
    """
    parts, wholes = (np.asarray(value, dtype=np.float64) for value in (counts, totals))
    return is_small(parts, min_cell_count) | is_small(wholes - parts, min_cell_count)


def hide_small(
    counts: object,
    equations: Sequence[tuple[int, Sequence[int]]] = (),
    min_cell_count: int = 5,
    known: Sequence[int] = (),
    also: Sequence[int] = (),
) -> Mask:
    """Return which counts to hide: small counts, and counts from which a small one follows.

    Parameters
    ----------
    counts : (n,) numbers
        Counts. NaN is a hidden count.
    equations : sequence of (total, parts)
        Positions of a total and of its parts, if readers can know both.
    min_cell_count : int
        Hide counts above 0 and below this number.
    known : sequence of int
        Positions of counts that readers know from other sources, so that hiding them has no effect.
    also : sequence of int
        Positions of counts to hide for another reason.

    Returns
    -------
    (n,) bool
        As long as a hidden count follows from those shown, the smallest positive one that shares
        an equation with it is hidden, too; a count of 0 only if there is no other.

    Examples
    --------
    >>> hide_small([100, 97, 3], [(0, (1, 2))])
    array([False,  True,  True])
    """
    values = np.asarray(counts, dtype=np.float64)
    hidden = is_small(values, min_cell_count) | np.isnan(values)
    hidden[list(also)] = True
    system = np.zeros((len(equations), values.size))
    for row, (total, parts) in zip(system, equations, strict=True):
        row[total] -= 1.0
        np.add.at(row, list(parts), 1.0)
    is_known = np.zeros(values.size, dtype=bool)
    is_known[list(known)] = True
    while True:
        derivable = _determined(system, hidden) | _tight(system, values, hidden, min_cell_count)
        linked = (system[(system[:, derivable] != 0).any(axis=1)] != 0).any(axis=0)
        choices = np.flatnonzero(linked & ~hidden & ~is_known)
        if not derivable.any() or not choices.size:
            return hidden
        order = np.lexsort((choices, values[choices], values[choices] == 0))
        hidden[choices[order[0]]] = True


def hide_totals(
    totals: object,
    min_cell_count: int = 5,
    known: Sequence[float] = (),
    others: Sequence[float] = (),
) -> Mask:
    """Which totals of people left after each step to hide, so that no two differ by a small count.

    NaN is hidden already. The last total is hidden only if it is small itself, because further
    results are about these people. Of the others, `known` ones, which appear elsewhere, are shown
    first, and then earlier ones. `others` are shown elsewhere, and are numbers of some or all of
    these people.

    Examples
    --------
    >>> hide_totals([100, 98, 60, 57]).tolist()
    [False, True, True, False]
    >>> hide_totals([100, 98, 60, 57], known=[98]).tolist()
    [True, False, True, False]
    """
    values = np.asarray(totals, dtype=np.float64)
    hidden = is_small(values, min_cell_count) | np.isnan(values)
    first = np.isin(values, known)
    first[-1:] = False
    shown: list[float] = []
    elsewhere = sorted(others)
    for k in (values.size - 1, *np.flatnonzero(first), *np.flatnonzero(~first)[:-1]):
        if k >= 0 and not hidden[k]:
            near = is_near_shown(float(values[k]), shown, min_cell_count)
            if k != values.size - 1:
                near = near or is_near_shown(float(values[k]), elsewhere, min_cell_count)
            hidden[k] = near
            if not near:
                insort(shown, float(values[k]))
    return hidden


def is_near_shown(count: float, shown: Sequence[float], min_cell_count: int) -> bool:
    """Whether a count differs by a small one from some that are shown, which are sorted.

    Examples
    --------
    >>> is_near_shown(98, [60, 100], 5), is_near_shown(100, [60, 100], 5)
    (True, False)
    """
    first = bisect_right(shown, count - min_cell_count)
    last = bisect_left(shown, count + min_cell_count)
    n_equal = bisect_right(shown, count) - bisect_left(shown, count)
    return min_cell_count > 0 and last - first > n_equal


def hide_attrition(
    counts: Sequence[Sequence[float | None]],
    min_cell_count: int,
    known: Sequence[float] = (),
    others: Sequence[Sequence[float]] = ((), ()),
) -> list[Mask]:
    """Masks of exposures, persons and removed; None is hidden already.

    No two totals that are shown differ by a small count, whatever steps are between them, and what
    a step removed is shown if it is what two of these differ by. Totals that are `known` are rather
    shown than others. `others` are exposures and persons that other adjustments have left.
    """
    exposures, persons = (
        hide_totals(np.array(own, dtype=np.float64), min_cell_count, known, elsewhere)
        for own, elsewhere in zip(counts[:2], others, strict=True)
    )
    # Rows less people are those who entered twice.
    together = np.array(counts[0], dtype=np.float64) - np.array(counts[1], dtype=np.float64)
    persons = persons | is_small(together, min_cell_count)
    removed = exposures.copy()
    removed[1:] |= exposures[:-1]
    zero = np.array(counts[2], dtype=np.float64) == 0
    return [exposures, persons, removed & ~zero]


def _tight(
    system: NDArray[np.float64], values: NDArray[np.float64], hidden: Mask, min_cell_count: int
) -> Mask:
    """Hidden parts whose sum is known, and leaves them no choice as counts of at least 1.

    If two hidden counts are 2 together, both are 1. If all are small, the largest sum that small
    counts can have reveals them, too.
    """
    found = np.zeros(hidden.size, dtype=bool)
    for row in system:
        at = np.flatnonzero((row != 0) & hidden)
        if not at.size or (row[at] < 0).any() or np.isnan(values[at]).any():
            continue
        total, most = values[at].sum(), (min_cell_count - 1) * at.size
        all_small = is_small(values[at], min_cell_count).all()
        if total == at.size or (all_small and total >= most):
            found[at] = True
    return found


def _determined(system: NDArray[np.float64], hidden: Mask) -> Mask:
    """Hidden counts that the equations and the counts shown determine.

    Those that are 0 in every solution of the homogeneous equations among the hidden ones.
    """
    at = np.flatnonzero(hidden)
    found = np.zeros(hidden.size, dtype=bool)
    if not at.size or not system.shape[0]:
        return found
    own = system[:, at]
    _, singular, rows = np.linalg.svd(own)
    rank = int(np.count_nonzero(singular > TOLERANCE))
    free = rows[rank:]
    found[at] = (np.abs(free) < TOLERANCE).all(axis=0)
    return found
