"""Overlap of two arms by their propensity scores.

The functions accept any probabilities, not only scores from `propensity_score`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri
from scipy.stats import rankdata

from riskset._types import Index, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, People, start
from riskset.cohort.adjustments.adjustment_settings import wrong_range
from riskset.cohort.population import Population, logit

__all__ = [
    "Discrimination",
    "ScoreBars",
    "auc",
    "check_range",
    "equipoise",
    "in_range",
    "preference_score",
    "score_bars",
]

ROUNDING = 1e-12
"""A preference score is computed, so one that should equal a bound may lie this far outside it."""


@dataclass(frozen=True)
class Discrimination:
    """Discrimination of scores between the arms, the result of `auc`.

    Attributes
    ----------
    auc : float
        0.5 means no discrimination, 1 perfect discrimination. NaN if an arm is empty.
    standard_error : float
        Standard error by DeLong's method. NaN with fewer than two rows in an arm.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.9, 0.4, 0.5, 0.1])
    >>> found = rs.cohort.auc(people)
    >>> found.auc, round(found.standard_error, 3)
    (0.75, 0.354)
    """

    auc: float
    standard_error: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the normal confidence interval, not cut at 0 and 1."""
        half = float(ndtri(0.5 + level / 2)) * self.standard_error
        return self.auc - half, self.auc + half


def auc(people: People) -> Discrimination:
    r"""Compute the probability that a target has a higher score than a comparator.

    .. math:: AUC = \frac{R_1 - n_1 (n_1 + 1) / 2}{n_1 n_0}, \qquad
        se^2 = \frac{s^2(V_{10})}{n_1} + \frac{s^2(V_{01})}{n_0}

    where :math:`R_1` is the sum of the mid-ranks of the target. The placements :math:`V_{10}` are
    the proportions of comparators below each target (ties count one half), and :math:`V_{01}` the
    proportions of targets above each comparator.

    Parameters
    ----------
    people : Population or Adjustment
        People with scores. For an adjustment, each kept row counts once.

    Returns
    -------
    Discrimination

    Notes
    -----
    O(n log n).

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44, 837-845, doi:10.2307/2531595.
    Sun and Xu (2014), IEEE Signal Processing Letters 21, 1389-1393, doi:10.1109/LSP.2014.2337313.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.cohort.auc(rs.cohort.Population([1, 1, 0, 0], [0.9, 0.4, 0.5, 0.1])).auc
    0.75
    """
    begun = start(people, allow_weights=True)
    kept = begun.kept
    score = begun.population.score[kept]
    target = begun.population.is_target[kept]
    n1, n0 = int(target.sum()), int((~target).sum())
    if not n1 or not n0:
        return Discrimination(np.nan, np.nan)
    rank = rankdata(score)
    above = (rank[target] - rankdata(score[target])) / n0
    below = 1.0 - (rank[~target] - rankdata(score[~target])) / n1
    area = float(above.mean())
    if min(n1, n0) < 2:
        return Discrimination(area, np.nan)
    error = np.sqrt(above.var(ddof=1) / n1 + below.var(ddof=1) / n0)
    return Discrimination(area, float(error))


def preference_score(population: Population) -> Rows:
    r"""Compute preference scores (n,): propensity scores corrected for the target's proportion.

    .. math:: logit(F) = logit(e) - logit(p)

    where p is the proportion of the target among the people for whom the scores were estimated.
    Later trimming or matching does not change it. NaN if an arm is empty.

    Parameters
    ----------
    population : Population

    References
    ----------
    Walker et al. (2013), Comparative Effectiveness Research 3, 11-20, doi:10.2147/CER.S40357.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 0, 0], [0.25, 0.25, 0.1, 0.5])
    >>> rs.cohort.preference_score(people).round(3)
    array([0.5 , 0.5 , 0.25, 0.75])
    """
    share, score = population.share, population.score
    if not 0 < share < 1:
        return np.full(score.size, np.nan)
    return np.asarray(expit(logit(score) - logit(np.array([share]))[0]))


class ScoreBars(NamedTuple):
    """Rows of an arm by their score, in bars of equal width from 0 to 1; all (k,).

    `all_rows` are all of the arm, `kept` those whom the adjustment keeps, and `weight` their sums
    of weights.
    """

    all_rows: Index
    kept: Index
    weight: Rows


def score_bars(adjustment: Adjustment, score: Rows, n_bars: int) -> dict[str, ScoreBars]:
    """Bars of both arms; a score of 1 is in the last bar."""
    people = adjustment.population
    place = np.minimum((score * n_bars).astype(np.int64), n_bars - 1)
    bars = {}
    for arm, is_of_arm in (("target", people.is_target), ("comparator", ~people.is_target)):
        own, kept = place[is_of_arm], place[is_of_arm & adjustment.kept]
        bars[arm] = ScoreBars(
            np.bincount(own, minlength=n_bars),
            np.bincount(kept, minlength=n_bars),
            np.bincount(own, adjustment.weight[is_of_arm], minlength=n_bars).astype(np.float64),
        )
    return bars


def equipoise(people: People, bounds: tuple[float, float] = (0.3, 0.7)) -> float:
    """Compute the proportion of people whose preference score is within bounds, inclusive.

    Parameters
    ----------
    people : Population or Adjustment
        For an adjustment, the kept rows count, with the preference scores of its whole population.
    bounds : (float, float)

    Returns
    -------
    float
        NaN if no row is left, or an arm of the population is empty.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.9, 0.6, 0.5, 0.4])
    >>> rs.cohort.equipoise(people)
    0.75
    """
    low, high = check_range("bounds", bounds)
    begun = start(people, allow_weights=True)
    preference = preference_score(begun.population)[begun.kept]
    if not preference.size or np.isnan(preference).any():
        return float("nan")
    return float(in_range(preference, low, high).mean())


def in_range(preference: Rows, low: float, high: float) -> NDArray[np.bool_]:
    """Preference scores between two bounds, inclusive up to rounding."""
    return (preference >= low - ROUNDING) & (preference <= high + ROUNDING)


def check_range(name: str, bounds: tuple[float, float]) -> tuple[float, float]:
    """Two numbers in [0, 1], the lower first."""
    try:
        low, high = (float(b) for b in bounds)
    except (TypeError, ValueError):
        raise wrong_range(name, bounds) from None
    if not 0 <= low < high <= 1:
        raise wrong_range(name, bounds)
    return low, high
