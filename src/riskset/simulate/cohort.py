"""A cohort like claims data: covariates from rare to common, few events, a treatment."""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import Features, Index, Rows
from riskset.simulate.drawing import (
    Simulation,
    as_count,
    as_finite,
    as_seed,
    as_share,
    collect,
)

__all__ = ["CohortDesign", "simulate_cohort"]

SD_OF_LOG_PREVALENCE = 2.0
"""Of log prevalences: half of the covariates are rarer than a seventh of the mean."""
MAX_SHARE = 0.5
MIN_ROWS_OF_COVARIATE = 20
"""The prevalence of the rarest covariates, in rows."""
SD_OF_LOG_BURDEN = 0.5
"""Standard deviation among rows of the logarithm of how much they have recorded."""
SD_OF_EFFECTS = 0.5
MIN_PREVALENCE_WITH_EFFECT = 0.002
"""Covariates with an effect are at least as prevalent, if so many are."""
BISECTIONS = 60


class CohortDesign:
    """A cohort drawn step by step; see `simulate_cohort` for the distributions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import riskset as rs
    >>> design = rs.simulate.CohortDesign(500, 30, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n_entries = rs.simulate.save_cohort(design, Path(folder))
    >>> float(design.coef[-1])
    -0.2
    """

    def __init__(
        self,
        n_rows: int,
        n_covariates: int,
        *,
        density: float = 0.0289,
        events: float = 0.015,
        competing: float = 0.0,
        n_effects: int = 200,
        treatment: float = -0.2,
        confounding: float = 0.1,
        treated: float = 0.5,
        seed: int = 123,
    ) -> None:
        self.n_rows = as_count("n_rows", n_rows)
        self.n_covariates = as_count("n_covariates", n_covariates)
        self.events = as_share("events", events)
        self.competing = as_share("competing", competing, zero_allowed=True)
        if self.events + self.competing > MAX_SHARE:
            raise InputError(
                f"`events` and `competing` must not add up to more than {MAX_SHARE}, but they are "
                f"{events!r} and {competing!r}.",
                hint="they are shares of the rows, most of which are censored.",
            )
        self._rng = np.random.default_rng(as_seed(seed))
        if n_effects < 0:
            raise InputError(f"`n_effects` must not be negative, but it is {n_effects!r}.")
        rare = self.n_covariates - 1  # the treatment is not one of them
        self._prevalence = _prevalences(self._rng, rare, as_share("density", density), self.n_rows)
        self.coef: Features = np.zeros(self.n_covariates)
        self.coef[-1] = as_finite("treatment", treatment)
        self.confounding = as_finite("confounding", confounding)
        self.treated = as_share("treated", treated)
        if self.treated == 1:
            raise InputError(
                "`treated` must be smaller than 1: every person would be treated.",
                hint="it is the share of the rows that have it.",
            )
        common = np.flatnonzero(self._prevalence >= MIN_PREVALENCE_WITH_EFFECT)
        chosen = common if common.size >= n_effects else np.arange(rare)
        chosen = self._rng.choice(chosen, min(n_effects, chosen.size), replace=False)
        self.coef[chosen] = self._rng.normal(0, SD_OF_EFFECTS, chosen.size)
        self._eta: Rows = np.zeros(self.n_rows)

    def columns(self) -> Iterator[NDArray[np.int32]]:
        """Row numbers of the ones of each covariate, increasing; to be run through once."""
        burden = np.exp(self._rng.normal(0, SD_OF_LOG_BURDEN, self.n_rows))
        ends = np.cumsum(burden)
        # The share of rows with a covariate, for rates on a grid to look the rate up in.
        rates = np.geomspace(1e-7, 1e2, 400)
        sample = np.quantile(burden, (np.arange(1000) + 0.5) / 1000)
        shares = -np.expm1(-rates[:, None] * sample).mean(axis=1)
        for share, coef in zip(self._prevalence, self.coef[:-1], strict=True):
            rate = np.exp(np.interp(np.log(share), np.log(shares), np.log(rates)))
            rows = _hit(self._rng, ends, float(rate))
            if coef != 0:
                self._eta[rows] += coef
            yield rows
        risk = self._eta - self._eta.mean()
        risk /= risk.std() or 1.0
        odds = self.treated / (1 - self.treated) * np.exp(self.confounding * risk)
        treated = np.flatnonzero(self._rng.random(self.n_rows) < odds / (1 + odds))
        self._eta[treated] += self.coef[-1]
        yield treated.astype(np.int32)

    def outcomes(self) -> tuple[Rows, Index]:
        """Times and events of all rows; to be drawn once, after the columns."""
        rng, n = self._rng, self.n_rows
        ratio = np.exp(self._eta)
        end = rng.exponential(1.0, n) + 0.02
        seen = -np.expm1(-end)
        p = _solve(
            lambda p: -np.expm1(ratio * np.log1p(-p * seen)).mean(), self.events, 1e-12, 1 - 1e-12
        )
        # Solves F(time) = u, see `simulate_cohort`; those with u above F(infinity) never have it.
        u = rng.random(n)
        reached = -np.expm1(np.log1p(-u) / ratio) / p
        time = np.full(n, np.inf)
        np.log1p(-reached, out=time, where=reached < 1)
        time = np.abs(time)
        event = np.where(time <= end, 1, 0)
        if self.competing > 0:
            others = np.flatnonzero(np.isinf(time))
            their_end, target = end[others], self.competing * n / others.size
            hazard = _solve(lambda h: -np.expm1(-h * their_end).mean(), target, 1e-9, 1e9)
            time[others] = rng.exponential(1 / hazard, others.size)
            event[others] = np.where(time[others] <= their_end, 2, 0)
        return np.ceil(365 * np.minimum(time, end)), event.astype(np.int64)


def simulate_cohort(
    n_rows: int,
    n_covariates: int,
    density: float = 0.0289,
    seed: int = 123,
    *,
    events: float = 0.015,
    competing: float = 0.0,
    n_effects: int = 200,
    treatment: float = -0.2,
    confounding: float = 0.1,
    treated: float = 0.5,
) -> Simulation:
    r"""Simulate a cohort like claims data: mostly rare covariates, few events, and a treatment.

    The last covariate is the treatment. About a share `treated` of the rows receive it, rows with a
    higher risk more often. The prevalences of the other covariates are log-normal with mean
    `density`, at most 0.5. Row i has covariate j with probability :math:`1 - \exp(-c_j b_i)`, where
    the burden :math:`\log b_i \sim N(0, 0.5^2)` makes all covariates correlated. `n_effects`
    covariates have a log hazard ratio from :math:`N(0, 0.5^2)`. The cumulative incidence of the
    event is

    .. math:: F_1(t | x) = 1 - (1 - p (1 - e^{-t}))^{\exp(x'\beta)}

    in years t, as in `simulate_finegray`. p is such that a share `events` of the rows has the event
    before follow-up ends, after 0.02 years and an exponential time of mean 1. Without competing
    events this is a proportional hazards model. With competing events, rows that would never have
    the event have the competing event with a constant hazard. Times are whole days, so there are
    ties.

    Parameters
    ----------
    n_rows, n_covariates : int
        Size of the cohort, including the treatment.
    density : float in (0, 0.5)
        Share of ones in all covariates except the treatment.
    seed : int
        The same seed gives the same cohort.
    events, competing : float
        Expected shares of rows with the event and with the competing event.
    n_effects : int
        Number of covariates with an effect, without the treatment.
    treatment : float
        Log (subdistribution) hazard ratio of the treatment.
    confounding : float
        Strength of confounding: increase of the log odds of treatment per standard deviation of the
        baseline log risk. The default is weak, as may remain after matching; 1 is strong.
    treated : float in (0, 1)
        Share of treated rows at mean risk.

    Returns
    -------
    Simulation
        Times, events, the sparse covariates `X` and the true `coef`.

    Raises
    ------
    InputError
        If an argument is outside its range.

    Notes
    -----
    Memory: four bytes per entry and ten numbers per row.

    References
    ----------
    The size by default of the study of Yang, Schuemie, Ji and Suchard (2024), Journal of
    Computational and Graphical Statistics 33, 289-302, doi:10.1080/10618600.2023.2213279:
    434,866 rows after matching, 9,811 covariates; before it 1,014,618, of whom 24.2 % had the
    treatment.

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.simulate_cohort(5000, 50, seed=1)
    >>> cohort.X.shape, int(cohort.event.sum())
    ((5000, 50), 84)
    """
    design = CohortDesign(
        n_rows,
        n_covariates,
        density=density,
        events=events,
        competing=competing,
        n_effects=n_effects,
        treatment=treatment,
        confounding=confounding,
        treated=treated,
        seed=seed,
    )
    return collect(design)


def _prevalences(rng: np.random.Generator, p: int, density: float, n_rows: int) -> Features:
    """Log-normal, with the mean that is asked for as far as the bounds allow."""
    if density >= MAX_SHARE:
        raise InputError(
            f"`density` must be smaller than {MAX_SHARE}, but it is {density!r}.",
            hint="most covariates of such a cohort are rare.",
        )
    free = np.exp(rng.normal(0, SD_OF_LOG_PREVALENCE, p))
    least = min(MIN_ROWS_OF_COVARIATE / n_rows, density)
    if p == 0:
        return free
    scale = _solve(lambda s: np.clip(s * free, least, MAX_SHARE).mean(), density, 1e-9, 1e9)
    return np.asarray(np.clip(scale * free, least, MAX_SHARE))


def _hit(rng: np.random.Generator, ends: Rows, rate: float) -> NDArray[np.int32]:
    """Rows with at least one point of a Poisson process; each owns a piece of the line.

    Sums of exponential gaps are points in order, so nothing is sorted, and their rows come in
    order, too.
    """
    m = rng.poisson(rate * ends[-1])
    place = np.cumsum(rng.standard_exponential(m + 1))
    place *= ends[-1] / place[-1]
    rows = np.searchsorted(ends, place[:-1], side="right").astype(np.int32)
    is_first = np.ones(m, dtype=bool)
    np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
    return rows[is_first]


def _solve(share: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where an increasing function has a value, by bisection on a logarithmic scale."""
    for _ in range(BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if share(middle) < target else (low, middle)
    return math.sqrt(low * high)
