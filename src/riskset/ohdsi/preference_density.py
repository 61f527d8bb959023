"""The density of preference scores, from the bars of a histogram."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from riskset._types import Rows

__all__ = ["DensityBars", "density_of_bars"]


@dataclass(frozen=True, eq=False)
class DensityBars:
    """Bars of a histogram in order: limits (k,) and numbers of people (k,)."""

    lower: Rows
    upper: Rows
    count: Rows

    @property
    def n(self) -> float:
        """Number of people."""
        return float(self.count.sum())

    def quantile(self, share: float) -> float:
        """Score below which a share of the people are, as if they were even within each bar."""
        filled = np.flatnonzero(self.count > 0)
        ends = np.cumsum(self.count[filled])
        at = min(int(np.searchsorted(ends, share * self.n)), filled.size - 1)
        bar = filled[at]
        inside = 1.0 - (ends[at] - share * self.n) / self.count[bar]
        return float(self.lower[bar] + inside * (self.upper[bar] - self.lower[bar]))

    @property
    def sd(self) -> float:
        """Standard deviation, as if people were even within each bar."""
        middle, width = (self.lower + self.upper) / 2, self.upper - self.lower
        mean = float((self.count * middle).sum()) / self.n
        spread = float((self.count * ((middle - mean) ** 2 + width**2 / 12)).sum())
        return float(np.sqrt(spread / (self.n - 1)))

    @property
    def bandwidth(self) -> float:
        """Silverman's rule of thumb, 0.9 min(sd, IQR / 1.34) / n^0.2, which R calls nrd0."""
        spread = min(self.sd, (self.quantile(0.75) - self.quantile(0.25)) / 1.34)
        return float(0.9 * spread * self.n**-0.2)


def density_of_bars(bars: DensityBars, at: Rows) -> Rows:
    r"""Gaussian kernel density (m,) at scores `at` (m,), of people who are even within each bar.

    With people :math:`n_k` between :math:`a_k` and :math:`b_k`, and the bandwidth h,

    .. math::
        f(x) = \sum_k \frac{n_k}{n (b_k - a_k)}
               \left(\Phi\frac{x - a_k}{h} - \Phi\frac{x - b_k}{h}\right)

    This is what R's ``density`` estimates from single scores, as far as bars tell them.

    Examples
    --------
    >>> import numpy as np
    >>> edges = np.linspace(0, 1, 11)
    >>> bars = DensityBars(edges[:-1], edges[1:], np.full(10, 1e6))
    >>> density_of_bars(bars, np.array([0.0, 0.5])).round(2)
    array([0.5, 1. ])

    References
    ----------
    Silverman (1986), Density Estimation for Statistics and Data Analysis, equation 3.31.
    """
    h = bars.bandwidth
    below = ndtr((at[:, None] - bars.lower) / h) - ndtr((at[:, None] - bars.upper) / h)
    return np.asarray((below * bars.count / (bars.upper - bars.lower)).sum(axis=1) / bars.n)
