"""How the hazard ratio of the treatment changes with time, by a chosen function of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from riskset._errors import InputError
from riskset._messages import Note, Value
from riskset._ticks import log_ticks, nice_ticks
from riskset._types import Features
from riskset.data.frame import data_frame
from riskset.infer.wald import ChiSquareTest, exponentials, normal_quantile

__all__ = [
    "TimeDependence",
    "TimeEffect",
    "beyond_outcomes",
    "function_name",
    "no_time_effect",
    "round_times",
    "steps_of",
]

TimeDependence: TypeAlias = Literal["log", "identity"] | tuple[float, ...]
FunctionName: TypeAlias = Literal["log", "identity", "steps"]


@dataclass(frozen=True, eq=False)
class TimeEffect:
    r"""The hazard ratio of the treatment as a function of time.

    It is :math:`e^{\beta + g(t) \gamma}` at the time t, where g is the logarithm, t itself, or a
    step function with a coefficient for each step; see `riskset.TimeEffectCox`.

    Attributes
    ----------
    function : {"log", "identity", "steps"}
    start, time : (k,) float64
        Times t. For steps, these are the intervals from `start` (excluded) to `time`, whose last
        one ends at the last outcome; otherwise both are equal.
    log_hr, se : (k,) float64
        Log hazard ratio and its standard error.
    interval : {"robust", "wald"}
        Whether standard errors and test are by the robust variance.
    level : float
        Coverage of the intervals.
    constancy : ChiSquareTest
        Wald test that all :math:`\gamma` are 0: that hazards are proportional.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.load_rhc()
    >>> people = rs.cohort.Population(data.design.to_dense()[:, data.design.index_of("swang1")])
    >>> y = rs.Surv(data.outcome().time, data.outcome().event)
    >>> found = rs.cohort.fit_outcome(y, people, time_effect=[30]).time_effect
    >>> found.time, found.hr.round(2)
    (array([  30., 1943.]), array([1.3 , 1.03]))
    >>> found.constancy.df, round(found.constancy.p_value, 4)
    (1, 0.0004)
    """

    function: FunctionName
    start: Features
    time: Features
    log_hr: Features
    se: Features
    interval: Literal["robust", "wald"]
    level: float
    constancy: ChiSquareTest

    @property
    def hr(self) -> Features:
        """Hazard ratio (k,)."""
        return exponentials(self.log_hr)

    @property
    def hr_lower(self) -> Features:
        """Lower limit of its pointwise interval (k,)."""
        return exponentials(self.log_hr - normal_quantile(self.level) * self.se)

    @property
    def hr_upper(self) -> Features:
        """Upper limit (k,)."""
        return exponentials(self.log_hr + normal_quantile(self.level) * self.se)

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with a row for each time."""
        names = ("start", "time", "hr", "hr_lower", "hr_upper", "log_hr", "se")
        return data_frame({name: getattr(self, name) for name in names}, library)


def function_name(dependence: TimeDependence) -> FunctionName:
    """What a function of time is called."""
    return dependence if isinstance(dependence, str) else "steps"


def round_times(function: FunctionName, first: float, last: float) -> Sequence[float]:
    """Round times from the first to the last outcome, at which a smooth effect is reported.

    >>> round_times("identity", 3, 430), round_times("log", 3, 430)
    ([50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0], [5.0, 10.0, 20.0, 50.0, 100.0, 200.0])
    """
    if function == "log" and first > 0:
        return log_ticks(first, last)
    return [time for time in nice_ticks(first, last, 10) if time > 0]


def no_time_effect(error: InputError | None = None) -> Note:
    """That an effect over time was asked for, and why there is none."""
    if error is None:
        text = (
            "there is no effect over time: its estimate does not converge, as where an arm has no "
            "outcome in an interval of time."
        )
        return Note("no_time_effect", (), text)
    text = "there is no effect over time: {reason}"
    return Note("no_time_effect", (), text, {"reason": Value("sentence", error.sentence)})


def beyond_outcomes(times: Features, at: Features) -> tuple[Note, ...]:
    """A note if a smooth effect is reported at times without outcomes, whose times are `at`."""
    n = int(np.count_nonzero((times < at.min()) | (times > at.max())))
    if not n:
        return ()
    text = (
        "{n:reported time|reported times} of the effect over time {n:?lies|lie} before the first "
        "or after the last outcome, where the ratio follows the chosen function and not data."
    )
    return (Note("effect_beyond_outcomes", (), text, {"n": Value("things", n)}),)


def steps_of(times: Sequence[float], last: float) -> tuple[Features, Features]:
    """Starts and ends of the intervals between steps, from 0 to the last outcome."""
    ends = np.array([*times, max(last, *times)])
    return np.array([0.0, *times]), ends
