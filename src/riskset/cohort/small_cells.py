"""Small counts, and those that would give them away, are not shown.

A count n with 0 < n < 5 can identify people. Hiding it alone does not help where a total and the
other parts are shown, so further counts are hidden until no hidden one follows from those shown.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError
from riskset._types import is_number

__all__ = ["Mask", "hide_small", "hide_totals", "is_small"]

Mask = NDArray[np.bool_]

TOLERANCE = 1e-9
"""Of null vectors: coefficients of equations are 1 and -1."""


def is_small(counts: object, min_cell_count: int = 5) -> Mask:
    """Counts above 0 and below the minimum; NaN is none.

    Raises
    ------
    CohortError
        "BadSetting", if the minimum is no whole number of at least 0.
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


def hide_small(
    counts: object,
    equations: Sequence[tuple[int, Sequence[int]]] = (),
    min_cell_count: int = 5,
) -> Mask:
    """Which counts to hide, the small ones and those that give one away.

    Parameters
    ----------
    counts : (n,) numbers
        NaN is one that is hidden already.
    equations : sequence of (total, parts)
        Positions of a count and of those that add up to it, where readers can know both.
    min_cell_count : int
        Counts above 0 and below it are hidden.

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
    system = np.zeros((len(equations), values.size))
    for row, (total, parts) in zip(system, equations, strict=True):
        row[total] -= 1.0
        np.add.at(row, list(parts), 1.0)
    while True:
        known = _determined(system, hidden)
        beside = (system[(system[:, known] != 0).any(axis=1)] != 0).any(axis=0) & ~hidden
        choices = np.flatnonzero(beside)
        if not known.any() or not choices.size:
            return hidden
        order = np.lexsort((choices, values[choices], values[choices] == 0))
        hidden[choices[order[0]]] = True


def hide_totals(totals: object, min_cell_count: int = 5, known: Sequence[float] = ()) -> Mask:
    """Which totals to hide, so that no two that are shown differ by a small count.

    Parameters
    ----------
    totals : (n,) numbers
        Of people left after each step. NaN is one hidden already.
    min_cell_count : int
    known : sequence of numbers
        Totals that are rather shown than others, because they stand elsewhere, too.

    Returns
    -------
    (n,) bool
        The last one, which further results are of, is hidden only if it is small itself; of the
        others those that are known come first, and then the earlier ones.

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
    for k in (values.size - 1, *np.flatnonzero(first), *np.flatnonzero(~first)[:-1]):
        if k >= 0 and not hidden[k]:
            hidden[k] = is_small(np.abs(np.array(shown) - values[k]), min_cell_count).any()
            shown += [] if hidden[k] else [float(values[k])]
    return hidden


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
