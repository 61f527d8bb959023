"""Sorting, as NumPy does it. The fast twin is `sorting_cpu`."""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, Rows

__all__ = ["distinct_in_order", "sorted_words", "stable_order"]


def stable_order(values: Rows, runtime: Runtime) -> Index:
    """Order in which numbers rise; equal ones (0 and -0 are) stay in theirs. No number is NaN."""
    return np.argsort(values, kind="stable").astype(np.int64)


def distinct_in_order(values: Rows, runtime: Runtime) -> tuple[Index, Rows, Index]:
    """`stable_order` (n,), the distinct numbers (k,), and their places (n,) in that order."""
    order = np.argsort(values, kind="stable")
    distinct, place = np.unique(values, return_inverse=True)
    return order, distinct, place.reshape(-1)[order]


def sorted_words(word: NDArray[np.uint64], runtime: Runtime) -> NDArray[np.uint64]:
    """Whole numbers in order."""
    return np.sort(word)
