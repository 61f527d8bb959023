"""Nonparametric survival."""

import warnings
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError, RisksetWarning, counted
from riskset._runtime import Runtime
from riskset._types import AnyArray, is_number
from riskset.curves._result import GroupCurves, as_times, known_until, step_values
from riskset.curves.bands import BandRange, BandType, ConfidenceBand, band_of, checked_band
from riskset.curves.followup import Followup
from riskset.curves.intervals import (
    ProbabilityIntervalType,
    check_interval_type,
    probability_interval,
)
from riskset.curves.jackknife import jackknife_hazard_variance, jackknife_variance
from riskset.curves.life_table import LifeTable, TableSteps
from riskset.curves.variance import effective_at_risk, xie_liu_variance
from riskset.data.causes import cause_code
from riskset.data.checks import are_counts
from riskset.infer.wald import check_level
from riskset.kernels.life_table_cpu import survival_steps

__all__ = [
    "KaplanMeier",
    "SurvivalCurve",
    "SurvivalVariance",
    "choose_variance",
    "curves_of",
    "kaplan_meier",
    "warn_if_emptied",
]

SurvivalVariance = Literal["auto", "counts", "robust", "xie-liu"]


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalCurve:
    """Survival of one group, at every distinct time in the data.

    Attributes
    ----------
    label : object
        The group.
    time : (m,) float64, increasing
    survival, standard_error, lower, upper : (m,) float64
        Standard errors and intervals are NaN if the survival is 0.
    cumulative_hazard, cumulative_hazard_standard_error : (m,) float64
        The Nelson-Aalen estimate.
    n_at_risk, n_events, n_censored : (m,) float64
        Sums of weights: at risk just before the time, and with an event or censored at it.
    band : ConfidenceBand or None
        What `lower` and `upper` are, if they are a simultaneous band and not pointwise intervals.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [True, False, True, True])
    >>> curve = rs.kaplan_meier(y)["all"]
    >>> curve
    SurvivalCurve 'all': 3 events, 1 censored, 0 survive time 4
    >>> curve.at([0.5, 1.0, 3.5])
    array([1.   , 0.75 , 0.375])
    >>> curve.quantile(0.5)[0]
    3.0
    """

    label: object
    time: TableSteps
    survival: TableSteps
    standard_error: TableSteps
    lower: TableSteps
    upper: TableSteps
    cumulative_hazard: TableSteps
    cumulative_hazard_standard_error: TableSteps
    n_at_risk: TableSteps
    n_events: TableSteps
    n_censored: TableSteps
    _table: LifeTable
    band: ConfidenceBand | None = None

    def __repr__(self) -> str:
        return (
            f"SurvivalCurve {self.label!r}: {counted(self.n_events.sum(), 'event')}, "
            f"{self.n_censored.sum():,g} censored, {self.survival[-1]:.4g} survive time "
            f"{self.time[-1]:g}"
        )

    @property
    def end(self) -> float:
        """Last time at which survival is known.

        This is the end of follow-up. It is infinite if survival has reached 0.
        """
        return known_until(self.time, self.survival)

    def at(self, times: object) -> NDArray[np.float64]:
        """Return survival at given times: 1 before the first step, constant after the last."""
        return step_values(self.time, self.survival, as_times(times), 1.0)

    def at_risk(self, times: object) -> NDArray[np.float64]:
        """Return the weighted number at risk just before each time."""
        return self._table.at_risk_before(as_times(times))

    def quantile(self, p: float = 0.5) -> tuple[float, float, float]:
        """Return the time by which a proportion p has had the event, with its interval.

        Parameters
        ----------
        p : float in (0, 1)
            0.5 gives the median.

        Returns
        -------
        estimate, lower, upper : float
            The first times at which the survival and the limits of its interval are at most 1 - p.
            NaN if they never are.

        References
        ----------
        Brookmeyer & Crowley (1982), Biometrics 38, 29-41, doi:10.2307/2530286.
        """
        if not is_number(p) or not 0 < p < 1:
            raise InputError(
                f"`p` must be a number between 0 and 1, but it is {p!r}.", hint="0.5: median."
            )
        # Survival 0.5 computed as a product may miss 0.5 in its last digits.
        limit = (1 - p) * (1 + 1e-12)
        found = []
        for curve in (self.survival, self.lower, self.upper):
            where = np.flatnonzero(curve <= limit)
            found.append(float(self.time[where[0]]) if where.size else float("nan"))
        return found[0], found[1], found[2]

    def columns(self, times: NDArray[np.float64] | None) -> dict[str, AnyArray]:
        """Return the curve as columns of a table; NaN after its `end`."""
        values: dict[str, AnyArray] = {
            "survival": self.survival,
            "standard_error": self.standard_error,
            "lower": self.lower,
            "upper": self.upper,
            "cumulative_hazard": self.cumulative_hazard,
        }
        if times is None:
            counts = {
                "at_risk": self.n_at_risk,
                "events": self.n_events,
                "censored": self.n_censored,
            }
            return {"time": self.time, **counts, **values}
        end = 1.0 if self.band is None else float("nan")
        first = {"survival": 1.0, "lower": end, "upper": end}
        at = {
            name: step_values(self.time, v, times, first.get(name, 0.0))
            for name, v in values.items()
        }
        for column in at.values():
            column[times > self.end] = np.nan
        return {"time": times, "at_risk": self.at_risk(times), **at}


class KaplanMeier(GroupCurves[SurvivalCurve]):
    """Survival curves by group, the result of `kaplan_meier`.

    Iteration gives a `SurvivalCurve` for each group, and ``result["treated"]`` that of a group.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [True, True, True, False])
    >>> curves = rs.kaplan_meier(y, group=["a", "a", "b", "b"])
    >>> [curve.label for curve in curves]
    ['a', 'b']
    >>> curves["b"].at([3.0])
    array([0.5])
    """

    def confidence_band(
        self,
        kind: BandType = "equal-precision",
        *,
        interval: ProbabilityIntervalType | None = None,
        level: float | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> "KaplanMeier":
        r"""Return the same curves with bands that contain the whole true curve.

        Pointwise intervals contain the true survival at one time; a band contains it at all times
        of a range. With n rows, the standard error s of the survival,
        :math:`\sigma^2 = (s / S)^2` and :math:`a = n \sigma^2 / (1 + n \sigma^2)` at both ends of
        the range, limits are c standard errors from S ("equal-precision"), or k times
        :math:`S (1 + n \sigma^2) / \sqrt n` ("hall-wellner"), on the scale of `interval`, where

        .. math:: P\left(\sup_{a_1 \le u \le a_2} \frac{|B(u)|}{\sqrt{u (1 - u)}} \le c\right) =
            P\left(\sup_{a_1 \le u \le a_2} |B(u)| \le k\right) = level

        for a Brownian bridge B. Critical values are computed from series, not read from a table.

        Parameters
        ----------
        kind : {"equal-precision", "hall-wellner"}
            Limits that are as many standard errors wide at all times (Nair), or that are narrow
            where many are at risk (Hall and Wellner).
        interval : {"log-log", "log", "plain", "logit", "arcsine"}, optional
            Scale. Default: that of the curves. The band is more reliable in small samples on the
            scales "log-log" and "arcsine".
        level : float, optional
            Probability that the band contains the curve of a group. Default: that of the curves.
        start, end : float, optional
            Range of the band. Default: from the first event to the last time at which somebody
            survives. A narrower range gives a narrower band; choose it before seeing the data.

        Returns
        -------
        KaplanMeier
            ``lower`` and ``upper`` of its curves are the band, and NaN outside of the range; their
            `band` says what it is. The other numbers are those of the curves.

        Raises
        ------
        InputError
            If the curves have robust or other variances that are not Greenwood's, as with weights
            that are not counts: increments of the curve then depend on each other. Or if a group
            has no event in the range before which and after which somebody survives.

        References
        ----------
        Hall & Wellner (1980), Biometrika 67, 133-143, doi:10.1093/biomet/67.1.133.
        Nair (1984), Technometrics 26, 265-275, doi:10.1080/00401706.1984.10487969.
        Borgan & Liestol (1990), Scandinavian Journal of Statistics 17, 35-41.

        Examples
        --------
        >>> import riskset as rs
        >>> curves = rs.kaplan_meier(rs.load_rhc().outcome())
        >>> band = curves.confidence_band("hall-wellner", start=30, end=180)
        >>> band
        KaplanMeier (95% log-log hall-wellner band, variance 'counts'):
          SurvivalCurve 'all': 3,722 events, 2,013 censored, 0 survive time 1943
        >>> band.to_frame([90.0])[["survival", "lower", "upper"]].round(3).values.tolist()
        [[0.562, 0.546, 0.578]]
        """
        kind, scale = checked_band(kind), self.interval if interval is None else interval
        check_interval_type(scale)
        level = self.level if level is None else level
        check_level(level)
        if self.variance != "counts":
            raise InputError(
                "a simultaneous band needs Greenwood's variance, but these curves have the "
                f"variance {self.variance!r}.",
                hint="pass variance='counts' to `riskset.kaplan_meier` if weights count rows.",
            )
        curves = []
        for curve in self.curves:
            lower, upper, band = band_of(
                (curve.time, curve.survival, curve.standard_error),
                float(curve.n_events.sum() + curve.n_censored.sum()),
                BandRange(start, end, curve.label),
                (kind, scale, level),
            )
            curves.append(replace(curve, lower=lower, upper=upper, band=band))
        return KaplanMeier(tuple(curves), level, scale, self.variance)

    @property
    def _limits(self) -> str:
        band = self.curves[0].band
        return super()._limits if band is None else f"{band.interval} {band.kind} band"


def kaplan_meier(
    y: object,
    group: object = None,
    weight: object = None,
    level: float = 0.95,
    *,
    interval: ProbabilityIntervalType = "log-log",
    variance: SurvivalVariance = "auto",
    cause: int | str | None = None,
    cluster: object = None,
) -> KaplanMeier:
    r"""Estimate survival by group, with intervals and numbers at risk (Kaplan-Meier).

    .. math:: S(t) = \prod_{u \le t} \left(1 - \frac{d_u}{Y_u}\right), \qquad
        var = S(t)^2 \sum_{u \le t} \frac{d_u}{Y_u (Y_u - d_u)}

    where :math:`d_u` is the weight of the events at u, and :math:`Y_u` the weight at risk: rows
    that entered before u and did not end before it. The result also contains the Nelson-Aalen
    cumulative hazard :math:`\sum d_u / Y_u` with variance :math:`\sum d_u / Y_u^2`.

    Parameters
    ----------
    y : (n,) structured array, `Outcome` or `Dataset`
        Made by `riskset.Surv`, or by scikit-survival. With ``entry``, rows are at risk in (entry,
        time].
    group : (n,) labels, optional
        Estimate one curve per group.
    weight : (n,) numbers >= 0, optional
        Case weights; 0 removes a row.
    level : float
        Confidence level of the pointwise intervals.
    interval : {"log-log", "log", "plain", "logit", "arcsine"}
        Scale on which the interval is symmetric.
    variance : {"auto", "counts", "robust", "xie-liu"}
        "counts": Greenwood's formula, in which a weight of 2 counts as two rows. "robust": the
        infinitesimal jackknife over rows, for weights such as inverse probabilities of treatment
        (treated as known). "xie-liu": Greenwood's formula with effective numbers at risk,
        :math:`(\sum w)^2 / \sum w^2`. "auto": "robust" if there are clusters or a weight is not a
        whole number, otherwise "counts".
    cause : int, str or "any", optional
        Code of the event; all other events are censored. "any" gives survival free of every event.
        Optional if codes are 0 and 1. With competing events, 1 - survival is not the risk of an
        event; use `aalen_johansen`.
    cluster : (n,) labels, optional
        Rows that belong together, such as the rows of one person (whose follow-up may be split) or
        the members of a matched set. The robust variance then squares the influence of all rows of
        a cluster together, as R's ``survfit`` with ``cluster`` or ``id``. A cluster with rows in
        several groups counts in the curve of each.

    Returns
    -------
    KaplanMeier

    Raises
    ------
    InputError
        If values are missing or have the wrong length, if there are codes above 1 but no `cause`,
        if a group has no weight, or if `cluster` is given with a variance that has no clusters.

    Warns
    -----
    RisksetWarning
        If, with late entry, every row at risk has an event before others enter. The estimate is 0
        from then on.

    Notes
    -----
    Time is O(n log n).

    References
    ----------
    Kaplan & Meier (1958), Journal of the American Statistical Association 53, 457-481,
    doi:10.1080/01621459.1958.10501452.
    Greenwood (1926), Reports on Public Health and Medical Subjects 33, 1-26.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 2.0, 3.0], [True, True, False, True])
    >>> curve = rs.kaplan_meier(y)["all"]
    >>> curve.survival
    array([0.75, 0.5 , 0.  ])
    >>> curve.at_risk([0.0, 2.0])
    array([4., 3.])
    """
    rows = Followup.read(y, group, weight, cluster)
    return curves_of(rows._replace(event=_chosen(rows, cause)), level, interval, variance)


def curves_of(rows: Followup, level: float, interval: str, variance: str) -> KaplanMeier:
    """The curves of rows whose event, if any, has code 1."""
    check_level(level)
    check_interval_type(interval)
    kind = choose_variance(variance, rows, get_args(SurvivalVariance))
    curves = []
    for own in rows.by_group():
        table = LifeTable.build(own, np.array([1]))
        label = own.labels[int(own.group[0])]
        curves.append(_curve(table, label, kind, level, interval))
    return KaplanMeier(tuple(curves), level, interval, kind)


def choose_variance(variance: str, rows: Followup, known: tuple[str, ...]) -> str:
    """The kind of variance, "auto" being resolved by the weights."""
    if variance not in known:
        raise InputError.wrong_option("variance", variance, known)
    if rows.cluster is not None and variance not in ("auto", "robust"):
        raise InputError(
            f"`cluster` was given, but the variance {variance!r} takes rows for independent.",
            hint="pass variance='robust', or leave `cluster` out.",
        )
    if variance != "auto":
        return variance
    if rows.cluster is not None:
        return "robust"
    if not rows.has_weights or are_counts(rows.weight).all():
        return "counts"
    return "robust"


def _chosen(rows: Followup, cause: object) -> NDArray[np.int64]:
    """1 for the event that counts, else 0."""
    highest = rows.event.max()
    if rows.causes and cause != "any":
        cause = cause_code(cause, rows.causes)
    if cause is None:
        if highest > 1:
            listed = ", ".join(map(str, np.unique(rows.event)))
            raise InputError(
                f"`y` has several kinds of event (codes {listed}), so say which of them counts.",
                hint="pass `cause`, a code or 'any'; for the risk of one cause among several use "
                "`riskset.aalen_johansen`.",
            )
        cause = 1
    if cause == "any":
        return rows.event if highest <= 1 else (rows.event > 0).astype(np.int64)
    if isinstance(cause, bool) or not isinstance(cause, (int, np.integer)) or cause < 1:
        raise InputError(
            f"`cause` must be a positive whole number or 'any', but it is {cause!r}.",
            hint=f"the codes that occur are {', '.join(map(str, np.unique(rows.event)))}.",
        )
    if cause == 1 and highest <= 1:
        return rows.event
    return np.equal(rows.event, cause).astype(np.int64)


def _curve(
    table: LifeTable, label: object, variance: str, level: float, interval: str
) -> SurvivalCurve:
    events = table.n_events
    at_risk, survival, standard_error, hazard, hazard_error = survival_steps(
        events, table.censored, table.staying, Runtime.select()
    )
    if variance != "counts":
        scaled = table.squarable()
        if variance == "xie-liu":
            hazard_variance = np.cumsum(events / at_risk / effective_at_risk(scaled))
            squared = xie_liu_variance(scaled, survival)
        else:
            hazard_variance = jackknife_hazard_variance(scaled)
            squared = jackknife_variance(scaled, 0, 1.0 - survival)
        standard_error = np.where(survival > 0, np.sqrt(squared), np.nan)
        hazard_error = np.sqrt(hazard_variance)
    lower, upper = probability_interval(survival, standard_error, level, interval)
    warn_if_emptied(survival, at_risk, label, stacklevel=5)
    return SurvivalCurve(
        label,
        table.time,
        survival,
        standard_error,
        lower,
        upper,
        hazard,
        hazard_error,
        at_risk,
        events,
        table.censored,
        table,
    )


def warn_if_emptied(
    survival: TableSteps, at_risk: TableSteps, label: object, stacklevel: int
) -> None:
    """Warn that a curve is 0 while others are still to enter, at the caller's line."""
    zero = np.flatnonzero(survival[-2:] == 0)
    if zero.size > 1:
        zero = np.flatnonzero(survival == 0)
        warnings.warn(
            f"the curve of group {label!r} falls to 0 while others are still to enter "
            f"({at_risk[zero[0]]:g} at risk then), and stays there. "
            "Start the curve later, when more have entered.",
            RisksetWarning,
            stacklevel=stacklevel,
        )
