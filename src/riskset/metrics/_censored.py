r"""Weights that make up for censored rows, and how they depend on the rows they come from.

A row whose state at t is known stands for :math:`1 / G(\min(time_i-, t))` rows, G the Kaplan-Meier
estimate of the distribution of censoring. Events at a time come before the censorings at it, so
that G is read before the row's own time if its event is the reason that its state is known, and at
t, inclusive, if it is still under observation after t. A row censored at t itself is event-free at
t, yet the published formulas take its state for unknown: `AtTime` has both.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Rows
from riskset.data.checks import as_numbers, complain_rows
from riskset.data.outcome import Outcome
from riskset.metrics._sample import PLACES, Sample, any_by_row, as_table, distinct

__all__ = ["AtTime", "CensoringCurve", "Chances", "Known", "read_chances"]

AtTime = Literal["unknown", "event_free"]


@dataclass(frozen=True)
class CensoringCurve:
    r"""Kaplan-Meier estimate G of the distribution of censoring, events before censorings.

    It is `riskset.model.censoring.CensoringTimes.survival` with ``ties="finegray"``, and knows how
    G changes with the weight of a row. `time` (K,) are the times of censorings, `survival` (K + 1,)
    is G after 0, 1, ..., K of them, and `at_risk` (K,) the weight at risk of being censored: later
    times, and those censored now. `slope` (K + 1,) are sums of :math:`c_u / (Y_u (Y_u - c_u))`,
    :math:`-\partial \log G` by the weight of those at risk and not censored. Follow-up ends at
    `end`.
    """

    time: NDArray[np.float64]
    survival: NDArray[np.float64]
    at_risk: NDArray[np.float64]
    slope: NDArray[np.float64]
    end: float

    @classmethod
    def estimate(cls, sample: Sample) -> "CensoringCurve":
        """The curve of the rows with positive weight."""
        used = sample.weight > 0
        if not used.any():
            raise InputError("every row has weight 0.", hint="check the weights.")
        values, at = distinct(sample.time[used])
        weight, is_censored = sample.weight[used], sample.code[used] == 0
        leaving = np.bincount(at, weight, values.size)
        censored = np.bincount(at[is_censored], weight[is_censored], values.size)
        # Added up from the end: nothing is taken off.
        staying = np.append(np.cumsum(leaving[::-1])[::-1][1:], 0.0)
        steps = censored > 0
        censored, staying = censored[steps], staying[steps]
        at_risk = np.asarray(staying + censored, dtype=np.float64)
        rise = np.zeros(at_risk.size)
        # One after the other, as the product of two huge weights overflows.
        np.divide(censored / at_risk, staying, out=rise, where=staying > 0)
        return cls(
            time=values[steps],
            survival=np.append(1.0, np.cumprod(staying / at_risk)),
            at_risk=at_risk,
            slope=np.append(0.0, np.cumsum(rise)),
            end=float(values[-1]),
        )

    def influence(self, sample: Sample, own: Index, by_log: Rows, steps: Index) -> Rows:
        r"""What a quantity gains through G, for each unit of weight of each row of the sample (n,).

        .. math::
            \sum_j b_j \frac{\partial \log G_j}{\partial w_i}, \qquad
            \frac{\partial \log G_j}{\partial w_i}
            = \sum_{u < time_i, u \le s_j} \frac{c_u}{Y_u (Y_u - c_u)}
            - \frac{1\{i\text{ censored at } time_i \le s_j\}}{Y_{time_i}}

        with :math:`G_j` the value of G after `steps` times of censoring, up to :math:`s_j`, and b
        the derivative `by_log` of the quantity by :math:`\log G_j`. `own` is the number of times of
        censoring before each row's own time.
        """
        if self.time.size == 0:
            return np.zeros(sample.n_rows)
        b = np.bincount(steps, by_log, self.time.size + 1)
        later = np.append(np.cumsum(b[::-1])[::-1][1:], 0.0)
        up_to = np.cumsum(b * self.slope)
        drop = np.where(sample.code == 0, 1 / np.append(self.at_risk, np.inf)[own], 0.0)
        gained: Rows = up_to[own] + later[own] * (self.slope[own] - drop)
        return gained


@dataclass(frozen=True)
class Known:
    """Rows whose state at a time is known, and what they stand for; all (n,).

    `inverse` is 1 / chance that the state is known, 0 if it is not or the row has weight 0. `alive`
    are the rows known to be event-free at the time; `steps` are for `CensoringCurve.influence`.
    """

    inverse: Rows
    alive: NDArray[np.bool_]
    steps: Index


@dataclass(frozen=True)
class Chances:
    """Chance of each row that it is uncensored when that matters; `before_end` is G(time_i-).

    Without a curve, the chances were given for the `times` as `at_times`. The curve moves with the
    weights of the sample if it is estimated `from_sample`. `at_time` is the state of a row at the
    time at which it is censored.
    """

    sample: Sample
    before_end: Rows
    steps_before_end: Index
    curve: CensoringCurve | None
    from_sample: bool
    at_times: NDArray[np.float64] | None = None
    at_time: AtTime = "unknown"

    @classmethod
    def estimate(cls, sample: Sample, y_train: AnyArray | Outcome | None = None) -> "Chances":
        """From the training rows, if given, else from the sample itself."""
        own = y_train is None
        source = sample if y_train is None else Sample.read_train(y_train)
        curve = CensoringCurve.estimate(source)
        steps = np.searchsorted(curve.time, sample.time, side="left")
        return cls(sample, curve.survival[steps], steps, curve, own)

    @classmethod
    def given(cls, sample: Sample, censoring: object, n_times: int) -> "Chances":
        """From a pair: G before each row's own time (n,), and at the times (m,) or (n, m)."""
        if not isinstance(censoring, tuple) or len(censoring) != 2:
            raise InputError(
                "`censoring` must be a pair: the chance of each row of being uncensored just "
                "before its own time, and the chance of being uncensored at each of the `times`.",
                hint="pass (before_own_time, at_times), of shapes (n,) and (m,) or (n, m).",
            )
        n = sample.n_rows
        before = as_numbers(censoring[0], "censoring[0]", n, PLACES)
        at_times = as_table(censoring[1], "censoring[1]")
        if at_times.shape == (n_times,):
            at_times = np.broadcast_to(at_times, (n, n_times))
        if at_times.shape != (n, n_times):
            raise InputError(
                f"`censoring[1]` must have the shape ({n_times},) or ({n}, {n_times}), but it has "
                f"{at_times.shape}.",
                hint="one chance for each of the `times`, or for each row and each of them.",
            )
        for name, values in (("censoring[0]", before), ("censoring[1]", at_times)):
            complain_rows(
                any_by_row(~((values >= 0) & (values <= 1))),
                values,
                f"`{name}`",
                "must be a probability",
                PLACES,
                hint="1 where no row can be censored.",
            )
        return cls(sample, before, np.zeros(n, dtype=np.int64), None, False, at_times)

    @property
    def chance_before_end(self) -> Rows:
        """G(time_i-); 0 where it is not known, after the end of the follow-up (n,)."""
        if self.curve is None:
            return self.before_end
        # The last value of the curve says nothing about later times.
        return np.where(self.sample.time > self.curve.end, 0.0, self.before_end)

    def inverse_before_end(self, needed: NDArray[np.bool_], setting: str = "times") -> Rows:
        """1 / G(time_i-) if needed, else 0; `setting` is what can leave late events out."""
        needed = needed & (self.sample.weight > 0)
        chance = self.chance_before_end
        remedy = "no row is followed that long; choose earlier times."
        if self.curve is not None:
            remedy = f"follow-up ends at {self.curve.end:g}; choose `{setting}` up to then."
        complain_rows(
            needed & ~(chance > 0),
            self.sample.time,
            "the chance of being uncensored just before a row's own time",
            "must be positive for rows with an event",
            PLACES,
            hint=f"in the data that the distribution of censoring comes from {remedy}",
        )
        inverse = np.zeros(needed.size)
        np.divide(1.0, chance, out=inverse, where=needed)
        return inverse

    def known_at(self, time: float, column: int) -> Known:
        """Rows whose state at `time`, the number `column` of the times, is known."""
        sample = self.sample
        alive = sample.time > time
        if self.at_time == "event_free":
            alive |= (sample.time == time) & (sample.code == 0)
        inverse = self.inverse_before_end(~alive & (sample.code > 0))
        steps = self.steps_before_end
        present = alive & (sample.weight > 0)
        if self.at_times is not None:
            at = self.at_times[:, column]
            if not (at[present] > 0).all():
                raise _nobody(time, None, False)
            np.divide(1.0, at, out=inverse, where=present)
        elif self.curve is not None:
            counts_now = self.at_time == "unknown"
            step = int(
                np.searchsorted(self.curve.time, time, side="right" if counts_now else "left")
            )
            at_time = self.curve.survival[step]
            if not at_time > 0 or (time > self.curve.end and present.any()):
                raise _nobody(time, self.curve.end, time == self.curve.end)
            inverse[present] = 1.0 / at_time
            steps = np.where(alive, step, steps)
        return Known(inverse, alive, steps)

    def influence(self, direct: Rows, steps: Index) -> Rows:
        """Derivative by the weight of each row, if it is `direct` for a fixed G.

        The quantity depends on G through w_i / G alone, so its derivative by log G_i is -w_i
        direct_i.
        """
        return direct + self.through_curve(-self.sample.weight * direct, steps)

    def through_curve(self, by_log: Rows, steps: Index) -> Rows:
        """What the estimate of G adds to the derivative: see `CensoringCurve.influence`."""
        if self.curve is None or not self.from_sample:
            return np.zeros(self.sample.n_rows)
        return self.curve.influence(self.sample, self.steps_before_end, by_log, steps)


def _nobody(time: float, end: float | None, is_end: bool) -> InputError:
    until = "" if end is None else f" (follow-up ends at {end:g})"
    return InputError(
        f"the chance of being uncensored at time {time:g} is not known or 0{until}, so rows "
        "that are event-free then cannot be made up for.",
        hint="choose times before the end of the follow-up"
        + (", or pass `censored_at_time='event_free'`." if is_end else "."),
    )


def read_chances(
    sample: Sample,
    n_times: int,
    y_train: AnyArray | Outcome | None,
    censoring: object,
    at_time: AtTime,
) -> Chances:
    """Chances of being uncensored from the rows themselves, from others, or as given."""
    if at_time not in ("unknown", "event_free"):
        raise InputError.unknown_name("`censored_at_time`", at_time, ("unknown", "event_free"))
    if censoring is None:
        return replace(Chances.estimate(sample, y_train), at_time=at_time)
    if y_train is not None:
        raise InputError(
            "`y_train` and `censoring` both say what the distribution of censoring is.",
            hint="pass one of them.",
        )
    return replace(Chances.given(sample, censoring, n_times), at_time=at_time)
