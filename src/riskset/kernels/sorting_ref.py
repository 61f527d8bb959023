"""Sorting, as NumPy does it. The fast twin is `sorting_cpu`."""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, Rows

__all__ = ["sorted_words", "stable_order"]


def stable_order(values: Rows, runtime: Runtime) -> Index:
    """Order in which numbers rise; equal ones (0 and -0 are) stay in theirs. No number is NaN."""
    return np.argsort(values, kind="stable").astype(np.int64)


def sorted_words(word: NDArray[np.uint64], runtime: Runtime) -> NDArray[np.uint64]:
    """Whole numbers in order."""
    return np.sort(word)
