"""Running sums and products that start anew with every segment of an array."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index

__all__ = ["first_of_segment", "running"]

Numbers = NDArray[np.float64]


def first_of_segment(starts: NDArray[np.bool_]) -> Index:
    """Position of the first member of the segment of each member (n,); `starts` marks them."""
    return np.maximum.accumulate(np.where(starts, np.arange(starts.size), 0))


def running(
    combine: Callable[[Numbers, Numbers], Numbers], values: Numbers, first: Index
) -> Numbers:
    """Combine each value (n, ...) with all before it in its segment: ``np.add``, ``np.multiply``.

    A segment never sees the numbers of another, as it would if its start were taken off a sum of
    everything. `first` (n,) are the positions of `first_of_segment`. Each pass doubles how far a
    value looks back: O(n log k) time for segments of at most k members.
    """
    out, place = values, np.arange(values.shape[0])
    reach, longest = 1, int((place - first).max(initial=0))
    while reach <= longest:
        late = np.flatnonzero(place - first >= reach)
        ahead = out.copy()
        ahead[late] = combine(out[late - reach], out[late])
        out, reach = ahead, 2 * reach
    return out
