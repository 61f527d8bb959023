"""Residuals and influence of rows on a Fine-Gray fit; as `infer.residuals` for Cox's model.

A row with a competing event stays in the risk sets after it, with the weight G(t-) / G(time-). So
its residuals go on after its own time; and since G is estimated, each row also moves the estimates
through G, which the robust variance counts.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Matrix, RiskSets, Rows, Tail
from riskset.data.outcome import Outcome
from riskset.infer.observation import through_observation
from riskset.kernels import subdistribution_cpu as kernels
from riskset.model.censoring import ObservationTimes
from riskset.model.loss import Loss

__all__ = ["SubdistributionPieces", "below_highest"]


def below_highest(eta: Rows, outcome: Outcome) -> Rows:
    """Linear predictors (n,) less the largest of their stratum, a constant no likelihood sees.

    Sums over risk sets then keep their range for what differs within strata.
    """
    highest = np.full(outcome.n_strata, -np.inf)
    np.maximum.at(highest, outcome.stratum, eta)
    return np.asarray(eta - highest[outcome.stratum])


class _Part(NamedTuple):
    """Rows while they count alike: up to their own time with factor 1, after it with G(t-) (G,)."""

    sets: RiskSets
    factor: float | NDArray[np.float64]
    seen: Callable[[NDArray[np.float64], RiskSets], Rows]


class _Level(NamedTuple):
    """Groups whose hazards one exponent holds: hazards (G,) in units of exp(log_unit), else 0."""

    log_unit: float
    hazard: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SubdistributionPieces:
    """What every residual needs and no covariate changes, at one linear predictor.

    `eta` (n,) is in the caller's order, offset included, less the largest of the stratum;
    `log_hazard` (G,) are the log increments of the subdistribution hazard at eta = 0, -inf without
    events.

    A row's risk times a hazard it meets is at most the number of events, but either alone may be
    beyond floating point. So sums over groups go level by level, nearly always one, with risks in
    the inverse of its unit. Each of the K tails costs a pass over its rows and all groups, and none
    over all rows: with G groups q columns take O((n + K G) q) time.
    """

    loss: Loss
    eta: Rows
    log_hazard: NDArray[np.float64]

    @classmethod
    def at(cls, loss: Loss, eta: Rows) -> "SubdistributionPieces":
        """Pieces at `eta`, in the caller's order, offset included."""
        eta = below_highest(eta, loss.outcome)
        return cls(loss, eta, loss.evaluate(eta).log_hazard)

    @functools.cached_property
    def _levels(self) -> tuple[_Level, ...]:
        lowest = self.log_hazard[self.log_hazard > -np.inf].min(initial=0.0)
        level = np.floor((self.log_hazard - lowest) / kernels.LEVEL_SPAN)
        levels = []
        for k in np.unique(level[level > -np.inf]).tolist():
            log_unit = lowest + kernels.LEVEL_SPAN * k
            own = np.where(level == k, self.log_hazard - log_unit, -np.inf)
            levels.append(_Level(log_unit, np.exp(own)))
        return tuple(levels)

    def _risk_of(self, sets: RiskSets, weight: Rows, level: _Level) -> Rows:
        # Only rows that are at risk in no group of the level are cut, so that all sums are finite.
        return kernels.risk_below(kernels.LEVEL_SPAN, self.eta[sets.order] + level.log_unit, weight)

    @functools.cached_property
    def _parts(self) -> list[_Part]:
        """The risk sets up to each row's own time, and the tails."""
        tails = [_Part(tail.sets, tail.survival, kernels.seen_after) for tail in self.loss.tails]
        return [_Part(self.loss.risk, 1.0, kernels.seen_up_to), *tails]

    def _by_row(self, values: Sequence[Matrix]) -> Matrix:
        """Sums by row (n, q) of the values of each part: in limits a row stands in several places.

        All parts at once, for a sum over n rows for each tail would take O(K n q).
        """
        order = np.concatenate([part.sets.order for part in self._parts])
        joined = np.concatenate(values)
        out = np.empty((self.eta.size, joined.shape[1]))
        for j in range(joined.shape[1]):
            out[:, j] = np.bincount(order, joined[:, j], self.eta.size)
        return out

    @functools.cached_property
    def _group(self) -> Index:
        """Group of each place in risk order."""
        ptr = self.loss.risk.group_ptr
        return np.repeat(np.arange(ptr.size - 1), np.diff(ptr))

    # ------------------------------------------------------------------------- expectations

    def expected_times(self, powers: Matrix) -> Matrix:
        r"""Expected weighted events of rows (n, k), each group counted `powers` (G, k) times.

        .. math:: \sum_g powers_g \, h_g \, w_i e^{\eta_i} \, w_i(t_g)
        """
        values = [np.zeros((part.sets.order.size, powers.shape[1])) for part in self._parts]
        for level in self._levels:
            for (sets, factor, seen), out in zip(self._parts, values, strict=True):
                r, hazard = self._risk_of(sets, sets.weight, level), level.hazard * factor
                for k in range(powers.shape[1]):
                    out[:, k] += r * seen(hazard * powers[:, k], sets)
        return self._by_row(values)

    def log_expected_rows(self) -> Rows:
        """Log of the expected events of one such person (n,), in the caller's order.

        Of a row of weight 0, up to its own time only.
        """
        weight = self.loss.outcome.weight
        out = np.full(self.eta.size, -np.inf)
        with np.errstate(divide="ignore"):
            for log_unit, hazard in self._levels:
                for sets, factor, seen in self._parts:
                    log_seen = np.log(seen(hazard * factor, sets))
                    if sets is not self.loss.risk:
                        log_seen += np.log(sets.weight / weight[sets.order])
                    log_risk = self.eta[sets.order] + log_unit
                    np.logaddexp.at(out, sets.order, log_risk + log_seen)
        return out

    def event_means(self, values: Matrix) -> tuple[Matrix, Matrix]:
        """Mean over the risk set of each group (G, q), 0 without events; and 0: Breslow ties.

        `values` (n, q) stand in the caller's order.
        """
        risk = self.loss.risk
        means, _ = kernels.finegray_means(self.eta, risk, self.loss.tails, values)
        out = np.zeros((risk.group_events.size, values.shape[1]), order="F")  # read by columns
        out[risk.group_events > 0] = means
        return out, np.zeros_like(out)

    def hazard_means(self, values: Matrix) -> Matrix:
        """Mean over the risk set of each group (G, q); see `event_means`."""
        return self.event_means(values)[0]

    @property
    def spread(self) -> NDArray[np.float64]:
        """Variance over the steps of a tied group: there is one step."""
        return np.zeros(self.log_hazard.size)

    @property
    def hazard_variance(self) -> NDArray[np.float64]:
        """Variance of the log of each group's hazard (G,), as in `RiskSetPieces`; G(t) is known."""
        events = self.loss.risk.group_events
        return np.divide(1.0, events, out=np.zeros(events.size), where=events > 0)

    # ------------------------------------------------------------------------- contributions

    def score_residuals(self, values: Matrix, power: Rows | None = None) -> Matrix:
        r"""Each row's contribution (n, q) to the score of any columns, per unit of its weight.

        .. math:: \eta_i = d_i (x_i - \bar x(t_i))
                  - e^{\eta_i} \int w_i(t) \, (x_i - \bar x(t)) \, d\Lambda(t)

        with :math:`w_i(t) = 1` up to the row's own time, and :math:`G(t-) / G(time_i-)` after a
        competing event. `values` and `power` are as in `RiskSetPieces.score_residuals`.
        """
        weight = self.loss.outcome.weight
        mean, _ = self.event_means(values)
        if power is None:
            scores, _ = self._scores(values, mean)
        else:
            met = self.expected_times(np.column_stack([power, power[:, None] * mean]))
            scores = met[:, 1:] - values * met[:, :1] + self._observed(values, mean, power)
        return np.divide(
            scores, weight[:, None], out=np.zeros_like(scores), where=weight[:, None] > 0
        )

    def contributions(self, values: Matrix) -> Matrix:
        r"""Each row's influence (n, q) on the score, its own and that through the estimated G.

        .. math:: w_i \eta_i + v_i \psi_i, \qquad
                  \psi_i = \int \frac{q(u)}{\pi(u)} \, dM^c_i(u)

        where :math:`M^c_i` is the martingale of the row's censoring, :math:`\pi(u)` the weight at
        risk of it, v the weights in G, and

        .. math:: q(u) = \sum_j \int_{t \ge u > time_j} (x_j - \bar x(t)) \, w_j(t) \, r_j \,
                  d\Lambda(t)

        over rows with a competing event of the same censoring group. A G that was given adds
        nothing. These are the numbers of cmprsk's ``crr``, which takes O(n^2), in O(n log n + (n +
        K G) q) for K censoring groups and G times of events. One difference, if K > 1: ``crr``
        counts in q only events of the same group; here all count, as the derivative has it.

        With late entry, each row also moves the distribution of entry, and what it adds is the
        exact derivative in its weight, also where times are tied (`through_observation`).

        References
        ----------
        Fine and Gray (1999), Journal of the American Statistical Association 94, 496-509,
        doi:10.1080/01621459.1999.10474144.
        """
        mean, _ = self.event_means(values)
        out, begun = self._scores(values, mean)
        return self._with_censoring(out, begun, lambda tail: self._ended(tail, values, mean))

    def hazard_influence(self, weights: Matrix) -> Matrix:
        r"""Influence (n, k) of rows on sums of log hazards, each group counted `weights` (G, k).

        As `RiskSetPieces.hazard_influence`, and through the estimated G as in `contributions`: with
        :math:`q(u) = \sum_j \int_{t \ge u > time_j} \frac{weights(t)}{N(t)} \, w_j(t) \, r_j \,
        d\Lambda(t)`.
        """
        power = self.hazard_variance[:, None] * weights
        parts = [np.zeros((part.sets.order.size, weights.shape[1])) for part in self._parts]
        for level in self._levels:
            for (sets, factor, seen), out in zip(self._parts, parts, strict=True):
                r, hazard = self._risk_of(sets, sets.weight, level), level.hazard * factor
                for j in range(weights.shape[1]):
                    out[:, j] -= r * seen(hazard * power[:, j], sets)
        out = self._by_row(parts)
        risk = self.loss.risk
        events = np.flatnonzero(risk.event_weight > 0)
        terms = risk.event_weight[events, None] * power[self._group[events]]
        np.add.at(out, risk.order[events], terms)
        return self._with_censoring(out, parts[1:], lambda tail: self._ended_hazard(tail, power))

    def _ended_hazard(self, tail: Tail, power: Matrix) -> Matrix:
        """As `_ended`, for the hazard of each group counted `power` (G, k) times."""
        sets, out = tail.sets, np.zeros_like(power)
        for level in self._levels:
            u, hazard = self._risk_of(sets, sets.weight, level), level.hazard * tail.survival
            out += (hazard * kernels.sum_before(u, sets))[:, None] * power
        return out

    def _with_censoring(
        self, out: Matrix, begun: list[Matrix], ended: Callable[[Tail], Matrix]
    ) -> Matrix:
        """Add to each row's own influence that through the estimated G, in place."""
        censoring = self.loss.censoring
        assert censoring is not None
        weight = censoring.weight
        if weight is None:
            return out
        time, group_time = self.loss.outcome.time, self.loss.outcome.group_time
        if self.loss.outcome.entry is not None:
            return self._with_late_entry(out, begun, ended)
        for k, tail in enumerate(self.loss.tails):
            rows = np.flatnonzero((censoring.group == k) & (weight > 0))
            at = _Censorings.of(self.loss, rows)
            if not at.time.size:
                continue
            q = _sum_before_times(time[tail.sets.order], -begun[k], at.time)
            q -= _sum_before_times(group_time, ended(tail), at.time)
            out[rows] += weight[rows, None] * at.martingale_integral(q / at.at_risk[:, None])
        return out

    def _with_late_entry(
        self, out: Matrix, begun: list[Matrix], ended: Callable[[Tail], Matrix]
    ) -> Matrix:
        """As `_with_censoring`, also through the distribution of entry."""
        outcome, censoring = self.loss.outcome, self.loss.censoring
        assert censoring is not None
        assert censoring.weight is not None
        for k, (tail, times) in enumerate(
            zip(self.loss.tails, censoring.times_of(outcome), strict=True)
        ):
            assert isinstance(times, ObservationTimes)
            q = _sum_up_to_times(outcome.time[tail.sets.order], -begun[k], times.time)
            q -= _sum_up_to_times(outcome.group_time, ended(tail), times.time)
            moved = through_observation(times, censoring.weight, censoring.ties, q)
            out[times.rows] += censoring.weight[times.rows, None] * moved
        return out

    def _scores(self, values: Matrix, mean: Matrix) -> tuple[Matrix, list[Matrix]]:
        """Weighted score of each row, and of it what the rows of each tail get after their time.

        Minus the latter is what q of `contributions` takes up at that time.
        """
        parts = [np.zeros((part.sets.order.size, values.shape[1])) for part in self._parts]
        for level in self._levels:
            for (sets, factor, seen), out in zip(self._parts, parts, strict=True):
                r, hazard = self._risk_of(sets, sets.weight, level), level.hazard * factor
                cumulative = seen(hazard, sets)
                for j in range(values.shape[1]):
                    gap = seen(hazard * mean[:, j], sets) - values[sets.order, j] * cumulative
                    out[:, j] += r * gap
        return self._observed(values, mean) + self._by_row(parts), parts[1:]

    def _observed(self, values: Matrix, mean: Matrix, power: Rows | None = None) -> Matrix:
        """Of each row with an event, its weight times its values minus the mean of its risk set."""
        risk = self.loss.risk
        events = np.flatnonzero(risk.event_weight > 0)
        at, group = risk.order[events], self._group[events]
        weight = risk.event_weight[events]
        if power is not None:
            weight = weight * power[group]
        terms = weight[:, None] * (values[at] - mean[group])
        out = np.empty_like(values)
        for j in range(values.shape[1]):
            out[:, j] = np.bincount(at, terms[:, j], self.eta.size)
        return out

    def _ended(self, tail: Tail, values: Matrix, mean: Matrix) -> Matrix:
        """Terms of each group (G, q) of a tail, which q of `contributions` loses there."""
        sets, out = tail.sets, np.zeros_like(mean)
        for level in self._levels:
            u, hazard = self._risk_of(sets, sets.weight, level), level.hazard * tail.survival
            total = kernels.sum_before(u, sets)
            for j in range(values.shape[1]):
                sums = kernels.sum_before(u * values[sets.order, j], sets)
                out[:, j] += hazard * (sums - mean[:, j] * total)
        return out


@dataclass(frozen=True, eq=False)
class _Censorings:
    """Times (m,) at which rows of one group are censored, increasing, and the weight at risk of it.

    `own` (k,) is the position in `time` of each censored row of the group, -1 for the others, and
    `last` (k,) the number of times at which each row of the group is at risk.
    """

    time: Rows
    at_risk: Rows
    censored: Rows
    own: Index
    last: Index

    @classmethod
    def of(cls, loss: Loss, rows: Index) -> "_Censorings":
        outcome, censoring = loss.outcome, loss.censoring
        assert censoring is not None
        assert censoring.weight is not None
        time, weight = outcome.time[rows], censoring.weight[rows]
        is_censored = outcome.event[rows] == 0
        times = np.unique(time[is_censored])
        found = np.searchsorted(times, time)
        censored = np.bincount(found[is_censored], weight[is_censored], times.size).astype(float)
        # With ties as finegray has them a row with an event leaves before the censorings then.
        last = np.searchsorted(times, time, side="right")
        if censoring.ties == "finegray":
            last = np.where(is_censored, last, found)
        # Row i is at risk at the first `last` times: sum from the end.
        leaving = np.bincount(last, weight, times.size + 1).astype(float)
        at_risk = np.cumsum(leaving[::-1])[::-1][1:]
        return cls(times, at_risk, censored, np.where(is_censored, found, -1), last)

    def martingale_integral(self, values: Matrix) -> Matrix:
        """Integral of `values` (m, q) over each row's censoring martingale (k, q)."""
        drift = values * (self.censored / self.at_risk)[:, None]
        cumulative = np.vstack([np.zeros((1, values.shape[1])), np.cumsum(drift, axis=0)])
        jump = np.where((self.own >= 0)[:, None], values[self.own], 0.0)
        return np.asarray(jump - cumulative[self.last])


def _sum_before_times(time: Rows, values: Matrix, at: Rows) -> Matrix:
    """Sum of the values whose time is before each of `at` (increasing): (m, q); NaN never is."""
    return _sums_to(np.searchsorted(at, time, side="right"), values, at)


def _sum_up_to_times(time: Rows, values: Matrix, at: Rows) -> Matrix:
    """Sum of the values whose time is at most each of `at` (increasing): (m, q); NaN never is."""
    return _sums_to(np.searchsorted(at, time, side="left"), values, at)


def _sums_to(place: Index, values: Matrix, at: Rows) -> Matrix:
    """Sums of the values up to each place (m, q)."""
    out = np.empty((at.size, values.shape[1]))
    for j in range(values.shape[1]):
        out[:, j] = np.cumsum(np.bincount(place, values[:, j], at.size + 1))[:-1]
    return out
