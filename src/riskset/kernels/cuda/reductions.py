"""Sums and extremes over all rows: the kernels of `sums`, launched until one row is left."""

import numpy as np

from riskset._types import Rows
from riskset.kernels.cuda.backend import FLOAT, Array, Backend
from riskset.kernels.cuda.launch import STRIDE, Launcher

__all__ = ["LaneReductions"]


class LaneReductions:
    """Sums and extremes over rows, lane by lane."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.launch = Launcher(backend)

    def _rows(self, n_rows: int, n_lanes: int) -> Array:
        return self.backend.empty((n_rows, n_lanes), FLOAT)

    def total(self, x: Array) -> Rows:
        """Sum over the rows of `x` (n, R)."""
        n_rows, n_lanes = x.shape
        if n_rows == 0:
            return np.zeros(n_lanes)
        while n_rows > 1:
            n_chunks = -(-n_rows // STRIDE)
            sums = self._rows(n_chunks, n_lanes)
            self.launch("add_up", x=x, n_rows=n_rows, n_lanes=n_lanes, sums=sums)
            x, n_rows = sums, n_chunks
        return np.asarray(self.backend.download(x)[0])

    def extremes(self, x: Array) -> tuple[Array, Array]:
        """Least and largest number of each lane of `x` (n, R), on the device (1, R)."""
        n_rows, n_lanes = x.shape
        low, high = x, x
        while n_rows > 1 or low is x:
            n_chunks = -(-n_rows // STRIDE)
            lowest, highest = self._rows(n_chunks, n_lanes), self._rows(n_chunks, n_lanes)
            self.launch(
                "extremes", low=low, high=high, n_rows=n_rows, n_lanes=n_lanes, lowest=lowest,
                highest=highest,
            )  # fmt: skip
            low, high, n_rows = lowest, highest, n_chunks
        return low, high

    def span(self, x: Array) -> Rows:
        """Range of each lane of `x` (n, R)."""
        low, high = map(self.backend.download, self.extremes(x))
        return np.asarray(high[0] - low[0])
