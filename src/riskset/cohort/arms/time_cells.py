"""Cells of time, within which hazards of very many times are spread evenly."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Rows

__all__ = ["are_many", "cell_edges", "per_cell"]

MOST_TIMES = 2000
"""With more distinct times of events and of censoring, hazards are spread over cells of time."""
N_CELLS = 250
"""Cells, if there are more times than that."""


def are_many(times: Rows) -> bool:
    """Whether there are so many times that cells of time are used."""
    return times.size > MOST_TIMES


def cell_edges(times: Rows, horizons: Rows) -> Rows:
    """Ends of cells with about equally many of the ascending times; horizons are among them."""
    if are_many(times):
        place = np.linspace(0, times.size - 1, N_CELLS).round().astype(np.int64)
        times = times[np.unique(place)]
    return np.unique(np.concatenate([times, horizons]))


def per_cell(edges: Rows, time: Rows, step: Rows) -> NDArray[np.float64]:
    """What a cumulative hazard rises by in each cell."""
    used = time <= edges[-1]
    place = np.searchsorted(edges, time[used])
    return np.bincount(place, step[used], minlength=edges.size).astype(np.float64, copy=False)
