"""Restricted mean survival time, and time lost to each cause, by group."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._messages import Note, Value
from riskset._types import AnyArray, Index, Rows
from riskset.curves._result import GroupEstimates, as_times, group_frame
from riskset.curves.followup import EVERYBODY, Followup
from riskset.curves.kaplan_meier import choose_variance, warn_if_emptied
from riskset.curves.life_table import LifeTable
from riskset.curves.restricted_areas import RestrictedCurves
from riskset.curves.restricted_contrast import (
    ContrastKind,
    RestrictedMeanContrast,
    contrast,
)
from riskset.data.causes import named_causes
from riskset.data.checks import Places, as_array
from riskset.infer.wald import check_level, normal_quantile

__all__ = ["RestrictedMean", "RestrictedMeans", "as_horizons", "restricted_mean"]

RestrictedMeanVariance = Literal["auto", "counts", "robust"]

LONGEST = 1e150
"""The longest horizon, whose square is still a number."""


@dataclass(frozen=True, eq=False, repr=False)
class RestrictedMean:
    """Restricted mean of one group, and the time lost to each cause, up to h horizons.

    Attributes
    ----------
    label : object
        The group.
    times : (h,) float64
        The horizons.
    mean, standard_error, lower, upper : (h,) float64
        Mean time free of every event, from 0 to the horizon. NaN for horizons after `end`.
    causes : (k,) int64 or text
        Event codes, or labels, ascending.
    time_lost, time_lost_standard_error, time_lost_lower, time_lost_upper : (k, h) float64
        Mean time from an event of each cause to the horizon. The mean and all of these add up to
        the horizon.
    n_at_risk : (h,) float64
        Weight at risk just before each horizon.
    end : float
        The largest horizon: the end of follow-up. It is infinite if every row has had an event.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 2, 0, 1])
    >>> found = rs.restricted_mean(y, times=[2, 4])["all"]
    >>> found
    RestrictedMean 'all': 1.75 of 2, 2.75 of 4
    >>> found.time_lost
    array([[0.25, 0.75],
           [0.  , 0.5 ]])
    """

    label: object
    times: Rows
    mean: Rows
    standard_error: Rows
    lower: Rows
    upper: Rows
    causes: AnyArray
    time_lost: NDArray[np.float64]
    time_lost_standard_error: NDArray[np.float64]
    time_lost_lower: NDArray[np.float64]
    time_lost_upper: NDArray[np.float64]
    n_at_risk: Rows
    end: float

    def __repr__(self) -> str:
        listed = [f"{m:.6g} of {t:g}" for m, t in zip(self.mean[:8], self.times[:8], strict=True)]
        more = f", and {self.times.size - 8} more" if self.times.size > 8 else ""
        return f"RestrictedMean {self.label!r}: {', '.join(listed)}{more}"

    def columns(self) -> dict[str, AnyArray]:
        """Return one row per cause and horizon."""
        k, h = self.time_lost.shape
        columns: dict[str, AnyArray] = {
            "cause": np.repeat(self.causes, h),
            "time": np.tile(self.times, k),
            "at_risk": np.tile(self.n_at_risk, k),
        }
        for name in ("mean", "standard_error", "lower", "upper"):
            columns[name] = np.tile(getattr(self, name), k)
        for end in ("", "_standard_error", "_lower", "_upper"):
            columns[f"time_lost{end}"] = getattr(self, f"time_lost{end}").reshape(-1)
        return columns


class _Spread(NamedTuple):
    """Variances (1 + k, h) of a group, and what clusters add to each area (1 + k, h, c).

    Without clusters, `code` (c,) and `sums` are empty.
    """

    variance: NDArray[np.float64]
    code: Index
    sums: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class RestrictedMeans(GroupEstimates[RestrictedMean]):
    """Restricted means by group, the result of `restricted_mean`.

    Iteration gives a `RestrictedMean` for each group, and ``result["treated"]`` that of a group.

    Attributes
    ----------
    means : tuple of RestrictedMean
        One per group, in the order that a categorical type declares, otherwise sorted.
    level : float
        Coverage of the intervals.
    variance : str
        Method of the standard errors: "counts" or "robust".
    notes : tuple of Note
        "follow_up_ends": horizons after the end of follow-up of a group.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    >>> found = rs.restricted_mean(y, ["a", "a", "b", "b"], times=3)
    >>> found["a"].mean, found["b"].mean
    (array([1.5]), array([3.]))
    >>> found.ratio("b", "a").estimate
    array([2.])
    """

    means: tuple[RestrictedMean, ...]
    level: float
    variance: str
    notes: tuple[Note, ...]
    _spread: tuple[_Spread, ...]

    @property
    def _parts(self) -> tuple[RestrictedMean, ...]:
        return self.means

    def __repr__(self) -> str:
        lines = [f"  {mean!r}" for mean in self.means[:10]]
        lines += [f"  and {len(self) - 10} more"] if len(self) > 10 else []
        lines += [f"  {note.message}" for note in self.notes[:10]]
        head = f"RestrictedMeans ({self.level:.0%} intervals, variance {self.variance!r}):"
        return "\n".join([head, *lines])

    def difference(
        self, group: object, reference: object, cause: int | str | None = None
    ) -> RestrictedMeanContrast:
        """Return the difference of two groups, with a normal interval and a p value.

        Parameters
        ----------
        group, reference : object
            Labels of the groups: `group` minus `reference`.
        cause : int or str, optional
            A cause, or "any", compares the time lost to it; default: the restricted mean.

        Raises
        ------
        InputError
            If there is no such group or cause.
        """
        return self._compared("difference", group, reference, cause)

    def ratio(
        self, group: object, reference: object, cause: int | str | None = None
    ) -> RestrictedMeanContrast:
        """Return the ratio of two groups; its interval is symmetric on the scale of the logarithm.

        Parameters
        ----------
        group, reference, cause
            As for `difference`: `group` divided by `reference`.

        Raises
        ------
        InputError
            If there is no such group or cause.
        """
        return self._compared("ratio", group, reference, cause)

    def _compared(
        self, kind: ContrastKind, group: object, reference: object, cause: int | str | None
    ) -> RestrictedMeanContrast:
        a, b = self[group], self[reference]
        q = self._row(cause)
        spreads = [self._spread[self.groups.index(one.label)] for one in (a, b)]
        values, variances = [], []
        for one, spread in zip((a, b), spreads, strict=True):
            value = one.mean if q == 0 else one.time_lost[q - 1]
            values.append(one.times - one.mean if cause == "any" else value)
            variances.append(spread.variance[q])
        found = contrast(
            kind,
            (values[0], values[1]),
            (variances[0], variances[1]),
            _covariance(spreads[0], spreads[1], q),
            self.level,
        )
        return RestrictedMeanContrast(
            kind, a.label, b.label, cause, a.times, *found, level=self.level
        )

    def _row(self, cause: int | str | None) -> int:
        """0 for the restricted mean and all that is lost of it, else the number of the cause."""
        known = self.means[0].causes.tolist()
        if cause is None or cause == "any":
            return 0
        if isinstance(cause, bool) or cause not in known:
            raise InputError.unknown_name("cause", cause, [*known, "any"])
        return 1 + int(known.index(cause))

    def to_frame(self, *, library: str | None = None) -> Any:
        """Return all estimates as a data frame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            Default: pandas if it is installed, else Arrow.

        Returns
        -------
        data frame
            One row per group, cause and horizon; the restricted mean does not depend on the cause.
            In pandas, the group is the index.
        """
        return group_frame(self.groups, [mean.columns() for mean in self.means], library)


def restricted_mean(
    y: object,
    group: object = None,
    weight: object = None,
    level: float = 0.95,
    *,
    times: object,
    variance: RestrictedMeanVariance = "auto",
    cluster: object = None,
) -> RestrictedMeans:
    r"""Estimate restricted mean survival time, and time lost to each cause, by group.

    .. math:: RMST(\tau) = \int_0^\tau S(t) \, dt, \qquad
        RMTL_k(\tau) = \int_0^\tau F_k(t) \, dt, \qquad RMST + \sum_k RMTL_k = \tau

    where S is the Kaplan-Meier estimate of the survival free of every event, and :math:`F_k` the
    Aalen-Johansen estimate of the incidence of cause k. With one kind of event, the variance is

    .. math:: \sum_{u \le \tau} \left( \int_u^\tau S(t) \, dt \right)^2
        \frac{d_u}{Y_u (Y_u - d_u)}

    as in R's ``print(survfit(...), rmean=)``; with several, it is the same by the delta method.

    Parameters
    ----------
    y : (n,) structured array, `Outcome` or `Dataset`
        `riskset.Surv` with events 0 (censored), 1, 2, ... or labels. With ``entry``, rows are at
        risk in (entry, time].
    group : (n,) labels, optional
        Estimate the means of each group.
    weight : (n,) numbers >= 0, optional
        Case weights; 0 removes a row.
    level : float
        Confidence level. Intervals are normal, and end at 0 and at the horizon.
    times : number or (h,) numbers > 0
        The horizons, in the unit of `y`. Choose them before you look at the data.
    variance : {"auto", "counts", "robust"}
        "counts": a weight of 2 counts as two rows. "robust": the infinitesimal jackknife over rows
        or clusters, for weights such as inverse probabilities of treatment (treated as known).
        "auto": "robust" if there are clusters or a weight is not a whole number, otherwise
        "counts".
    cluster : (n,) labels, optional
        Rows that belong together, such as the rows of one person or the members of a matched set. A
        cluster with rows in several groups also counts in their covariance.

    Returns
    -------
    RestrictedMeans
        A horizon after the end of follow-up of a group gives NaN and a note, because the curve is
        not known there. If nobody of the group is left without an event, it is.

    Raises
    ------
    InputError
        If values are missing or have the wrong length, a group has no weight, a horizon is not a
        positive number, or `cluster` is given with `variance="counts"`.

    Notes
    -----
    Time is O(n log n), and O(n) for each horizon and cause.

    References
    ----------
    Irwin (1949), Journal of Hygiene 47, 188-189, doi:10.1017/S0022172400014443.
    Royston & Parmar (2013), BMC Medical Research Methodology 13, 152,
    doi:10.1186/1471-2288-13-152.
    Andersen (2013), Statistics in Medicine 32, 5278-5285, doi:10.1002/sim.5903, on time lost to
    causes.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 1])
    >>> found = rs.restricted_mean(y, times=[2, 4])["all"]
    >>> found.mean, found.standard_error.round(4)
    (array([1.75 , 2.875]), array([0.2165, 0.6027]))
    """
    check_level(level)
    at = as_horizons(times)
    rows = Followup.read(y, group, weight, cluster)
    kind = choose_variance(variance, rows, get_args(RestrictedMeanVariance))
    causes = np.unique(rows.event[rows.event > 0])
    if causes.size == 0:
        # Nobody has an event: no time is lost to any cause that is known.
        causes = np.array(sorted(rows.causes) or [1], dtype=np.int64)
    names = named_causes(causes, rows.causes)
    means, spreads = [], []
    notes: list[Note] = []
    for own in rows.by_group():
        curves = RestrictedCurves.of(LifeTable.build(own, causes))
        mean, spread = _of_group(curves, at, kind, level, names)
        means.append(mean)
        spreads.append(spread)
        notes += _end_notes(mean)
    return RestrictedMeans(tuple(means), level, kind, tuple(notes), tuple(spreads))


def as_horizons(times: object) -> Rows:
    """Horizons of restricted means, checked."""
    given = np.atleast_1d(as_array(times, "`times`", Places()))
    is_endless = given.dtype.kind == "f" and bool(np.isposinf(given).any())
    at = given if is_endless else as_times(given)
    wrong = ~((at > 0) & np.isfinite(at))
    if not at.size or wrong.any():
        found = f"{at[int(np.argmax(wrong))]:g} is among them" if at.size else "there is none"
        raise InputError(
            f"`times` must be positive and finite, but {found}.",
            hint="without an end, the mean time cannot be estimated, because follow-up ends; "
            "choose an end within it, such as `times=[365]`."
            if is_endless
            else "the mean time is taken from 0 to each of them, such as `times=[365]`.",
        )
    if at.max() > LONGEST:
        raise InputError(
            f"`times` must be at most {LONGEST:g}, because a variance is a square of time, but "
            f"{at.max():g} is among them.",
            hint="count time in a longer unit, such as years.",
        )
    return at


def _of_group(
    curves: RestrictedCurves,
    times: Rows,
    kind: str,
    level: float,
    names: AnyArray,
) -> tuple[RestrictedMean, _Spread]:
    shape = (1 + names.size, times.size)
    value, variance = np.full(shape, np.nan), np.full(shape, np.nan)
    code, cluster = np.zeros(0, dtype=np.int64), curves.table.rows.cluster
    if cluster is not None:
        code, cluster = np.unique(cluster, return_inverse=True)
    sums = np.full((*shape, code.size), np.nan)
    scaled = curves
    if kind == "robust":
        table = curves.table.squarable()
        scaled = curves if table is curves.table else RestrictedCurves.of(table)
    for k in np.flatnonzero(times <= curves.end):
        areas = scaled.areas(float(times[k]))
        value[:, k] = areas.value
        if kind == "counts":
            variance[:, k] = areas.counted_variance()
            continue
        for q in range(shape[0]):
            if q and shape[0] == 2:  # what is lost to the only cause is the rest of the horizon
                variance[q, k], sums[q, k] = variance[0, k], -sums[0, k]
                continue
            influence = areas.influence(q)
            if cluster is not None:
                influence = np.asarray(np.bincount(cluster, influence), dtype=np.float64)
                sums[q, k] = influence
            variance[q, k] = float(influence @ influence)
    error = np.sqrt(variance)
    half = normal_quantile(level) * error
    lower, upper = np.maximum(value - half, 0.0), np.minimum(value + half, times)
    label = curves.table.rows.labels[int(curves.table.rows.group[0])]
    warn_if_emptied(curves.after, curves.table.at_risk, label, stacklevel=4)
    mean = RestrictedMean(
        label,
        times,
        mean=value[0],
        standard_error=error[0],
        lower=lower[0],
        upper=upper[0],
        causes=names,
        time_lost=value[1:],
        time_lost_standard_error=error[1:],
        time_lost_lower=lower[1:],
        time_lost_upper=upper[1:],
        n_at_risk=curves.table.at_risk_before(times),
        end=curves.end,
    )
    return mean, _Spread(variance, code, sums)


def _covariance(a: _Spread, b: _Spread, q: int) -> Rows:
    """Covariance of area q of two groups (h,), from the clusters that both have."""
    if a is b:
        return np.asarray(a.variance[q])
    _, in_a, in_b = np.intersect1d(a.code, b.code, assume_unique=True, return_indices=True)
    return np.asarray((a.sums[q][:, in_a] * b.sums[q][:, in_b]).sum(axis=1))


def _end_notes(mean: RestrictedMean) -> Sequence[Note]:
    """That some horizons are after the end of follow-up of a group."""
    late = mean.times[mean.times > mean.end]
    if not late.size:
        return ()
    whose = "" if mean.label == EVERYBODY else " of group {group}"
    text = (
        f"the follow-up{whose} ends at {{end:g}}, so restricted means up to {{times}} are not "
        "known; {end:g} is the largest horizon."
    )
    values = {
        "group": Value("name", repr(mean.label)),
        "end": Value("count", mean.end),
        "times": Value("setting", ", ".join(f"{time:g}" for time in late)),
    }
    return (Note("follow_up_ends", (), text, values),)
