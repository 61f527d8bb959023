"""Nonparametric cumulative incidence of competing causes."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError, counted
from riskset._types import AnyArray
from riskset.curves._result import GroupCurves, as_times, known_until, step_values
from riskset.curves.followup import Followup
from riskset.curves.intervals import (
    ProbabilityIntervalType,
    check_interval_type,
    probability_interval,
)
from riskset.curves.jackknife import jackknife_variance
from riskset.curves.kaplan_meier import choose_variance
from riskset.curves.life_table import LifeTable, TableSteps
from riskset.curves.variance import aalen_variance, delta_variance, survival_before
from riskset.data.causes import named_causes
from riskset.infer.wald import check_level

__all__ = ["AalenJohansen", "IncidenceCurve", "aalen_johansen"]

IncidenceVariance = Literal["auto", "counts", "robust", "aalen"]

_VARIANCES = {"counts": delta_variance, "robust": jackknife_variance, "aalen": aalen_variance}


@dataclass(frozen=True, eq=False, repr=False)
class IncidenceCurve:
    """Cumulative incidence of every cause in one group, at every distinct time in the data.

    Attributes
    ----------
    label : object
        The group.
    causes : (k,) int64 or text
        Event codes, or labels, ascending.
    time : (m,) float64, increasing
    incidence, standard_error, lower, upper : (k, m) float64
    survival : (m,) float64
        Probability of no event: 1 minus the sum of all incidences.
    n_at_risk, n_censored : (m,) float64
        Sums of weights: at risk just before the time, and censored at it.
    n_events : (k, m) float64
        Weight of the events of each cause at the time.

    Examples
    --------
    >>> import riskset as rs
    >>> curve = rs.aalen_johansen(rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 2, 0, 1]))["all"]
    >>> curve.causes
    array([1, 2])
    >>> curve.incidence
    array([[0.25, 0.25, 0.25, 0.75],
           [0.  , 0.25, 0.25, 0.25]])
    """

    label: object
    causes: AnyArray
    time: TableSteps
    incidence: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    survival: TableSteps
    n_at_risk: TableSteps
    n_events: NDArray[np.float64]
    n_censored: TableSteps
    _table: LifeTable

    def __repr__(self) -> str:
        ends = zip(self.causes, self.n_events.sum(axis=1), self.incidence[:, -1], strict=True)
        listed = "; ".join(
            f"cause {c}: {counted(n, 'event')}, incidence {f:.4g}" for c, n, f in ends
        )
        return (
            f"IncidenceCurve {self.label!r}: {listed}; {self.n_censored.sum():,g} censored, "
            f"up to time {self.time[-1]:g}"
        )

    def position(self, cause: int | str) -> int:
        """Return the row of a cause in the arrays.

        Raises
        ------
        InputError
            If the cause does not occur.
        """
        known = self.causes.tolist()
        if cause not in known:
            raise InputError(
                f"cause {cause!r} does not occur (causes: {', '.join(map(repr, known))}).",
                hint="pass one of these.",
            )
        return int(known.index(cause))

    @property
    def end(self) -> float:
        """Last time at which incidences are known.

        This is the end of follow-up. It is infinite if every row has had an event, because
        incidences are then constant.
        """
        return known_until(self.time, self.survival)

    def at(self, times: object) -> NDArray[np.float64]:
        """Return the incidence of each cause at given times, (k, n_times).

        It is 0 before the first event and constant after the last step.
        """
        return step_values(self.time, self.incidence, as_times(times), 0.0)

    def at_risk(self, times: object) -> NDArray[np.float64]:
        """Return the weighted number at risk just before each time."""
        return self._table.at_risk_before(as_times(times))

    def columns(self, times: NDArray[np.float64] | None) -> dict[str, AnyArray]:
        """Return the curve as columns of a table; NaN after its `end`."""
        values = {
            "incidence": self.incidence,
            "standard_error": self.standard_error,
            "lower": self.lower,
            "upper": self.upper,
        }
        at = self.time if times is None else times
        k = self.causes.size
        columns: dict[str, AnyArray] = {
            "cause": np.repeat(self.causes, at.size),
            "time": np.tile(at, k),
        }
        if times is None:
            columns["at_risk"] = np.tile(self.n_at_risk, k)
            columns["events"] = self.n_events.reshape(-1)
            columns["censored"] = np.tile(self.n_censored, k)
        else:
            columns["at_risk"] = np.tile(self.at_risk(times), k)
            values = {name: step_values(self.time, v, at, 0.0) for name, v in values.items()}
            for value in values.values():
                value[:, times > self.end] = np.nan
        return columns | {name: v.reshape(-1) for name, v in values.items()}


class AalenJohansen(GroupCurves[IncidenceCurve]):
    """Cumulative incidence of every cause by group, the result of `aalen_johansen`.

    Iteration gives an `IncidenceCurve` for each group, and ``result["treated"]`` that of a group.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 2, 1, 1])
    >>> curves = rs.aalen_johansen(y, group=["a", "a", "b", "b"])
    >>> curves["a"].at([2.0]), curves["b"].at([3.0])  # a row for each cause
    (array([[0.5],
           [0.5]]), array([[0.5],
           [0. ]]))
    """

    @property
    def causes(self) -> AnyArray:
        """Event codes or labels that occur in any group, ascending, (k,).

        Without any event, these are the known labels, or 1.
        """
        return self.curves[0].causes


def aalen_johansen(
    y: object,
    group: object = None,
    weight: object = None,
    level: float = 0.95,
    *,
    interval: ProbabilityIntervalType = "log-log",
    variance: IncidenceVariance = "auto",
    cluster: object = None,
) -> AalenJohansen:
    r"""Estimate the cumulative incidence of every cause, by group (Aalen-Johansen).

    .. math:: F_k(t) = \sum_{u \le t} S(u-) \frac{d_{ku}}{Y_u}, \qquad
        S(t) = \prod_{u \le t} \left(1 - \frac{\sum_k d_{ku}}{Y_u}\right)

    where :math:`d_{ku}` is the weight of the events of cause k at u, and :math:`Y_u` the weight at
    risk. S and all incidences add up to 1.

    Parameters
    ----------
    y : (n,) structured array, `Outcome` or `Dataset`
        `riskset.Surv` with events 0 (censored), 1, 2, ... or labels. With ``entry``, rows are at
        risk in (entry, time].
    group, weight, level
        As for `kaplan_meier`.
    interval : {"log-log", "log", "plain", "logit", "arcsine"}
        Scale on which the interval of the *incidence* is symmetric.
    variance : {"auto", "counts", "robust", "aalen"}
        "counts": the delta method (Dinse & Larson), in which a weight of 2 counts as two rows. It
        equals Greenwood's variance if there is one cause, and the binomial F (1 - F) / n without
        censoring. "robust": the infinitesimal jackknife over rows, as in R's survfit, for weights
        such as inverse probabilities of treatment (treated as known). Without weights and late
        entry it gives the same numbers. "aalen": a martingale estimate, as in cmprsk::cuminc, which
        is slightly larger in small samples. "auto": "robust" if there are clusters or a weight is
        not a whole number, otherwise "counts".
    cluster
        As for `kaplan_meier`.

    Returns
    -------
    AalenJohansen

    Raises
    ------
    InputError
        If values are missing or have the wrong length, a group has no weight, or `cluster` is given
        with a variance that has no clusters.

    Notes
    -----
    Time is O(n log n) per cause.

    References
    ----------
    Aalen & Johansen (1978), Scandinavian Journal of Statistics 5, 141-150.
    Dinse & Larson (1986), Biometrika 73, 379-386, doi:10.1093/biomet/73.2.379.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 2.0, 3.0], [1, 2, 0, 1])
    >>> curve = rs.aalen_johansen(y)["all"]
    >>> curve.incidence
    array([[0.25, 0.25, 0.75],
           [0.  , 0.25, 0.25]])
    """
    check_level(level)
    check_interval_type(interval)
    rows = Followup.read(y, group, weight, cluster)
    causes = np.unique(rows.event[rows.event > 0])
    if causes.size == 0:
        # Nobody has an event: the incidence is 0, of every cause that is known.
        causes = np.array(sorted(rows.causes) or [1], dtype=np.int64)
    names = named_causes(causes, rows.causes)
    kind = choose_variance(variance, rows, get_args(IncidenceVariance))
    curves = []
    for own in rows.by_group():
        table = LifeTable.build(own, causes)
        label = own.labels[int(own.group[0])]
        curves.append(_curve(table, names, label, kind, level, interval))
    return AalenJohansen(tuple(curves), level, interval, kind)


def _curve(
    table: LifeTable, names: AnyArray, label: object, variance: str, level: float, interval: str
) -> IncidenceCurve:
    at_risk = table.at_risk
    before, survival = survival_before(table)
    incidence = np.minimum(np.cumsum(before * table.events / at_risk, axis=1), 1.0)
    of = _VARIANCES[variance]
    used = table.squarable() if variance == "robust" else table
    squared = np.array([of(used, k, incidence[k]) for k in range(table.causes.size)])
    standard_error = np.sqrt(squared)
    lower, upper = probability_interval(incidence, standard_error, level, interval)
    return IncidenceCurve(
        label,
        names,
        table.time,
        incidence,
        standard_error,
        lower,
        upper,
        survival,
        at_risk,
        table.events,
        table.censored,
        table,
    )
