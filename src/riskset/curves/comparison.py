"""Tests between groups: Gray's test of cumulative incidence and the log-rank test of hazards."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from riskset._errors import InputError
from riskset._types import Index, Rows, is_number
from riskset.curves.followup import Followup, own_cause, split
from riskset.curves.kaplan_meier import choose_variance
from riskset.curves.logrank import ComparedTimes, TimeWeight, Weighting, logrank_sums
from riskset.data.causes import cause_code
from riskset.data.checks import Places, are_counts, as_array, as_numbers, complain_rows, listed
from riskset.infer.variance import generalized_inverse

__all__ = [
    "ComparedRows",
    "GroupTest",
    "TestVariance",
    "checked_time_weight",
    "gray_test",
    "group_counts",
    "group_test",
    "logrank_test",
]

Square = NDArray[np.float64]
TestVariance = Literal["auto", "counts", "robust"]

MAX_GROUPS = 10_000
"""More groups have a matrix of variances that fills the memory."""

MAX_GROUPS_ROBUST = 1_000
"""The robust variance takes a time that grows with rows and the second power of their number."""

MAX_GROUPS_OF_GRAY = 1_000
"""Gray's variance takes a time that grows with the third power of their number at every event."""

EACH_GROUP = "give each group a score, such as its dose."

NO_DIFFERENCE = 1e-12
"""Incidences that differ by less are equal."""


@dataclass(frozen=True, eq=False)
class GroupTest:
    """Result of a test between groups.

    Attributes
    ----------
    statistic : float
        Chi-square with `df` degrees of freedom under the null hypothesis.
    df : int
        Number of groups that can be compared, minus one.
    groups : tuple
        Sorted labels.
    score : (n_groups,) float64
        Weighted observed minus expected events of each group. They sum to 0.
    variance : (n_groups, n_groups) float64
        Covariance of `score`. If the squares of weights are too large or too small for floats, both
        are those of the weights divided by a power of two.
    n_rows, n_events : (n_groups,) int64
        Rows and events of the cause in each group. A row of weight 2 counts as two, unless the
        variance is robust, which does not take weights for counts.
    method : str
        Name of the test, such as "log-rank test".
    is_robust : bool
        Whether the variance is that of influences of rows or clusters.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [True, True, True, True])
    >>> found = rs.logrank_test(y, ["a", "a", "b", "b"])
    >>> found.groups, found.score.round(4), found.df
    (('a', 'b'), array([ 1.1667, -1.1667]), 1)
    >>> round(found.p_value, 4)
    0.0896
    """

    statistic: float
    df: int
    groups: tuple[object, ...]
    score: NDArray[np.float64]
    variance: NDArray[np.float64]
    n_rows: NDArray[np.int64]
    n_events: NDArray[np.int64]
    method: str
    is_robust: bool = False

    @property
    def p_value(self) -> float:
        """Upper tail probability. NaN without degrees of freedom."""
        return float(chdtrc(self.df, self.statistic)) if self.df > 0 else float("nan")

    def trend(self, scores: object = None) -> "GroupTest":
        r"""Test for a trend over ordered groups, with one degree of freedom.

        .. math:: (a'z)^2 / a'Va

        with the scores a of the groups, z the `score` and V its `variance`.

        Parameters
        ----------
        scores : (n_groups,) numbers, optional
            Scores of `groups`, such as doses. Default: 1, 2, ..., in the order of `groups`. Their
            origin and unit do not matter.

        Returns
        -------
        GroupTest
            `statistic` and `df` are those of the trend, everything else is kept. Groups that cannot
            be compared have no degree of freedom.

        Raises
        ------
        InputError
            If there is not one score for each group, or all are equal.

        References
        ----------
        Tarone (1975), Biometrika 62, 679-682, doi:10.1093/biomet/62.3.679.

        Examples
        --------
        >>> import riskset as rs
        >>> y = rs.Surv([5.0, 6.0, 3.0, 4.0, 1.0, 2.0], [1, 1, 1, 1, 1, 1])
        >>> test = rs.logrank_test(y, ["0 mg", "0 mg", "10 mg", "10 mg", "50 mg", "50 mg"])
        >>> dose = test.trend([0, 10, 50])
        >>> dose.method, dose.df, round(dose.statistic, 4)
        ('log-rank test for trend', 1, 7.0313)
        """
        n_groups = len(self.groups)
        given = np.arange(n_groups) + 1.0
        if scores is not None:
            places = Places(row_name=lambda i: f"group {i}")
            given = as_array(scores, "`scores`", places)
            if given.shape != (n_groups,):
                raise InputError(
                    f"`scores` must have one number for each of the {n_groups:,} groups, but its "
                    f"shape is {given.shape}.",
                    hint=f"the groups are {listed(self.groups)}, in this order.",
                )
            given = as_numbers(given, "scores", n_groups, places, missing_hint=EACH_GROUP)
        if (given == given[0]).all():
            raise InputError(
                f"`scores` are all {given[0]:g}, so there is no trend over them.",
                hint="give the groups different scores, such as doses.",
            )
        a = (given - given.mean()) / np.abs(given - given.mean()).max()
        spread, size = float(a @ self.variance @ a), float(a**2 @ self.variance.diagonal())
        known = spread > NO_DIFFERENCE * size
        statistic = float(a @ self.score) ** 2 / spread if known else 0.0
        method = f"{self.method} for trend"
        return replace(self, statistic=statistic, df=int(known), method=method)


class Counts(NamedTuple):
    """Times with an event (m,), and numbers then in each group (K,), as floats (m, K)."""

    time: Rows
    at_risk: NDArray[np.float64]
    events: NDArray[np.float64]
    others: NDArray[np.float64]


def gray_test(
    y: object,
    group: object,
    cause: int | str | None = None,
    *,
    weight: object = None,
    strata: object = None,
    rho: float = 0.0,
) -> GroupTest:
    r"""Perform Gray's test that the cumulative incidence of a cause is equal in all groups.

    Group g has the incidence :math:`F_g`, the event-free survival :math:`S_g`, and the modified
    risk set :math:`R_g(t) = Y_g(t) (1 - F_g(t-)) / S_g(t-)`, and

    .. math:: z_g = \sum_t (1 - F(t-))^\rho \left( d_g(t) - d(t) \frac{R_g(t)}{\sum_h R_h(t)}
        \right)

    compares observed with expected events of the cause, where F is the common incidence of all
    groups. The statistic is :math:`z' V^- z` with Gray's variance, corrected for ties, as in
    ``Tests`` of R's cmprsk::cuminc. Times at which only one group is at risk add nothing.

    Parameters
    ----------
    y : (n,) structured array, `Outcome` or `Dataset`
        `riskset.Surv` with events 0 (censored), 1, 2, ... or labels. The case weights of an
        `Outcome` or a `Dataset` are used; their strata only if passed as `strata`.
    group : (n,) labels
        Group of each row; at least two groups.
    cause : int or str, optional
        Code or label of the event to compare. Default: the cause of the `Outcome` or `Dataset`; for
        other `y`, code 1, or the only label.
    weight : (n,) whole numbers >= 0, optional
        Number of rows that each row represents; 0 removes it.
    strata : (n,) labels, or a sequence of label arrays, optional
        Compare groups within strata, and add up scores and variances. A stratum without an event of
        the cause adds nothing.
    rho : float
        Positive values give more weight to early differences, negative values to late ones.

    Returns
    -------
    GroupTest

    Raises
    ------
    InputError
        If there is only one group or more than 1,000, a weight is not a whole number, or no row has
        an event of the cause. Also if the test is not defined: if rows enter late; if F reaches 1
        while groups are still compared and rho is not positive; or if F exceeds 1, which is
        possible once a group is empty, and rho is not a whole number.

    Notes
    -----
    Time is O(n log n + m K^3) for K groups and m times with events. Without competing events, the
    scores equal those of the log-rank test. The variances differ in small samples, because Gray's
    variance allows a different survival in each group.

    References
    ----------
    Gray (1988), Annals of Statistics 16, 1141-1154, doi:10.1214/aos/1176350951.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1, 2, 1, 0, 1, 1])
    >>> test = rs.gray_test(y, ["a", "a", "a", "b", "b", "b"])
    >>> test.df, test.score.round(3).tolist()
    (1, [1.1, -1.1])
    """
    _check_power("rho", rho)
    rows, stratum = Followup.read_stratified(y, group, weight, strata)
    _check_groups(rows, MAX_GROUPS_OF_GRAY)
    _check_counts(
        rows,
        "for other weights, such as those of inverse probabilities, compare cause-specific hazards "
        "with `riskset.logrank_test`.",
    )
    if rows.entry is not None and rows.entry.max() >= rows.time.min():
        n_late = int(np.count_nonzero(rows.entry >= rows.time.min()))
        raise InputError(
            f"Gray's test is not defined for rows that enter late, but {n_late:,} of "
            f"{rows.time.size:,} rows enter when others have already left.",
            hint="compare cause-specific hazards with `riskset.logrank_test` instead.",
        )
    code = _check(rows, own_cause(y) if cause is None else cause)
    n_groups = len(rows.labels)
    score, variance = np.zeros(n_groups), np.zeros((n_groups, n_groups))
    for own in split(stratum, int(stratum.max()) + 1):
        if (rows.event[own] == code).any():
            more_score, more_variance = _gray(_count(rows.take(own), code), rho)
            score += more_score
            variance += more_variance
    inverse = generalized_inverse(variance)
    method = "Gray's test" if rho == 0 else f"Gray's test with rho = {rho:g}"
    compared = ComparedRows(rows, stratum, code, is_robust=False)
    return group_test(compared, (inverse.form(score), inverse.rank), (score, variance), method)


def logrank_test(
    y: object,
    group: object,
    cause: int | str | None = None,
    *,
    weight: object = None,
    strata: object = None,
    rho: float = 0.0,
    gamma: float = 0.0,
    weighting: Weighting = "fleming-harrington",
    variance: TestVariance = "auto",
    cluster: object = None,
) -> GroupTest:
    r"""Perform the log-rank test of equal hazards, or one that weighs early or late times more.

    .. math:: z_g = \sum_t K(t) \left( d_g(t) - d(t) \frac{Y_g(t)}{Y(t)} \right), \qquad
        K(t) = S(t-)^\rho (1 - S(t-))^\gamma

    where S is the Kaplan-Meier curve of all groups together (in each stratum). rho = gamma = 0 is
    the log-rank test, and rho = 1 the Peto-Peto version of the Wilcoxon test, as in R's
    ``survdiff``.

    Parameters
    ----------
    y : (n,) structured array, `Outcome` or `Dataset`
        `riskset.Surv`. With ``entry``, rows are at risk in (entry, time]. The case weights of an
        `Outcome` or a `Dataset` are used; their strata and clusters only if passed.
    group : (n,) labels
        Group of each row; at least two groups.
    cause : int or str, optional
        Code or label of the event. All other events are censored, so with competing events the test
        compares cause-specific hazards. Default: as for `gray_test`.
    weight : (n,) numbers >= 0, optional
        Case weights: whole numbers of rows, or others such as inverse probabilities of treatment
        (treated as known). 0 removes a row.
    strata
        As for `gray_test`.
    rho, gamma : float
        Powers of K (Fleming & Harrington). A positive rho gives more weight to early differences, a
        positive gamma to late ones.
    weighting : {"fleming-harrington", "gehan-wilcoxon", "tarone-ware"}
        "gehan-wilcoxon": K(t) = Y(t). "tarone-ware": :math:`K(t) = \sqrt{Y(t)}`. Both depend on
        censoring. They take no powers.
    variance : {"auto", "counts", "robust"}
        "counts": hypergeometric, with a weight of 2 as two rows. "robust": the sum of squares of
        the influences of rows, or clusters, on the scores,
        :math:`w_i \int K (1_{i \in g} - Y_g / Y) \, dM_i`. Without weights of time this is the
        robust score test of a Cox model of the groups with Breslow ties (R's ``coxph``).
        "auto": "robust" if there are clusters or a weight is not a whole number, otherwise
        "counts".
    cluster : (n,) labels, optional
        Rows that belong together, such as the rows of one person or the members of a matched set.

    Returns
    -------
    GroupTest
        Its method `trend` tests for a trend over ordered groups.

    Raises
    ------
    InputError
        If there is only one group or more than 10,000 (1,000 with the robust variance), no row has
        an event of the cause, gamma is negative, arguments exclude each other, or "counts" is asked
        for with a weight that is not a whole number.

    Notes
    -----
    Time is O(n K + K^3) for n rows and K groups, and O(n K^2) with the robust variance.

    References
    ----------
    Harrington & Fleming (1982), Biometrika 69, 553-566, doi:10.1093/biomet/69.3.553.
    Tarone & Ware (1977), Biometrika 64, 156-160, doi:10.1093/biomet/64.1.156.
    Gehan (1965), Biometrika 52, 203-223, doi:10.1093/biomet/52.1-2.203.
    Lin & Wei (1989), Journal of the American Statistical Association 84, 1074-1078,
    doi:10.1080/01621459.1989.10478874.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [True, True, True, True])
    >>> round(rs.logrank_test(y, ["a", "b", "a", "b"]).statistic, 6)
    0.615385
    >>> late = rs.logrank_test(y, ["a", "b", "a", "b"], rho=0, gamma=1)
    >>> late.method, round(late.statistic, 6)
    ('Fleming-Harrington test with rho = 0, gamma = 1', 0.363636)
    """
    time_weight = checked_time_weight(rho, gamma, weighting)
    compared = ComparedRows.read(y, group, cause, (weight, strata, cluster), variance)
    rows, code = compared.rows, compared.cause
    times = ComparedTimes.build(rows, compared.stratum, code)
    sums = logrank_sums(times, len(rows.labels), time_weight, robust=compared.is_robust)
    found = sums.statistic()
    return group_test(compared, found, (sums.score, sums.variance), time_weight.name)


class ComparedRows(NamedTuple):
    """Rows of positive weight in several groups, with their strata and the cause to compare."""

    rows: Followup
    stratum: Index
    cause: int
    is_robust: bool

    @classmethod
    def read(
        cls,
        y: object,
        group: object,
        cause: int | str | None,
        about: tuple[object, object, object],
        variance: str,
    ) -> "ComparedRows":
        """Check what a log-rank test takes; `about` are weights, strata and clusters."""
        weight, strata, cluster = about
        rows, stratum = Followup.read_stratified(y, group, weight, strata, cluster)
        kind = choose_variance(variance, rows, get_args(TestVariance))
        _check_groups(rows, MAX_GROUPS if kind == "counts" else MAX_GROUPS_ROBUST)
        if kind == "counts":
            _check_counts(
                rows,
                "pass variance='robust' for other weights, such as those of inverse probabilities.",
            )
        else:
            rows = rows.squarable()
        return cls(
            rows, stratum, _check(rows, own_cause(y) if cause is None else cause), kind != "counts"
        )


def checked_time_weight(rho: float, gamma: float, weighting: str) -> TimeWeight:
    """How times are weighted, if the arguments say so without contradiction."""
    for name, power in (("rho", rho), ("gamma", gamma)):
        _check_power(name, power)
    for kind in get_args(Weighting):
        if kind != weighting:
            continue
        if kind != "fleming-harrington" and (rho != 0 or gamma != 0):
            raise InputError(
                f"`weighting` is {kind!r}, which has no powers, but `rho` is {rho:g} and `gamma` "
                f"is {gamma:g}.",
                hint="leave `weighting` out for the tests of Fleming and Harrington.",
            )
        if gamma < 0:
            raise InputError(
                f"`gamma` must not be negative, but it is {gamma:g}: nobody has had the event "
                "before the first one, so its power would be infinite.",
                hint="a positive `rho` gives more weight to early differences.",
            )
        return TimeWeight(rho, gamma, kind)
    raise InputError.wrong_option("weighting", weighting, get_args(Weighting))


def _check_power(name: str, power: object) -> None:
    if not is_number(power) or not np.isfinite(power):
        raise InputError(
            f"`{name}` must be a finite number, but it is {power!r}.",
            hint="0 weighs all times alike; 1 is usual for early (`rho`) or late (`gamma`) "
            "differences.",
        )


def _check_groups(rows: Followup, most: int) -> None:
    """Refuse labels that are no groups."""
    if len(rows.labels) > most:
        raise InputError(
            f"`group` has {len(rows.labels):,} different labels in {rows.time.size:,} rows, but "
            f"this test compares at most {most:,} groups.",
            hint="`group` must hold groups, not identifiers or measurements.",
        )


def _check_counts(rows: Followup, hint: str) -> None:
    """Refuse weights that are not numbers of rows."""
    complain_rows(
        ~are_counts(rows.weight),
        rows.weight,
        "`weight`",
        "must be whole and below 2**53, because this test counts rows",
        Places(row_name=lambda i: f"row {i} of those with positive weight"),
        hint=hint,
    )


def _check(rows: Followup, cause: object) -> int:
    """The code of the cause; 1 where events are numbers and none was named."""
    if len(rows.labels) < 2:
        raise InputError(
            f"a comparison needs at least two groups, but every row has {rows.labels[0]!r}.",
            hint="check `group`.",
        )
    code = cause_code(1 if cause is None else cause, rows.causes)
    if isinstance(code, bool) or not isinstance(code, int | np.integer) or code < 1:
        raise InputError(
            f"`cause` must be a positive whole number or a label, but it is {code!r}.",
            hint="pass the code of the event to compare, 1, 2, ...",
        )
    if not (rows.event > 0).any():
        raise InputError(
            f"`y` has no events: all {rows.event.size:,} rows of positive weight are censored.",
            hint="a test of groups needs at least one event; 0 is censored, 1, 2, ... are causes.",
        )
    if not (rows.event == code).any():
        codes = np.unique(rows.event[rows.event > 0]).tolist()
        found = ", ".join(repr(rows.causes.get(other, other)) for other in codes)
        raise InputError(
            f"`y` has no event of cause {rows.causes.get(int(code), code)!r} "
            f"(causes that occur: {found}).",
            hint="pass the code or the label of the event to compare.",
        )
    return int(code)


def _count(rows: Followup, cause: int) -> Counts:
    """Whole numbers, so that sums and differences are exact."""
    n_groups = len(rows.labels)
    fails = rows.event == cause
    competes = (rows.event > 0) & ~fails
    time = np.unique(rows.time[rows.event > 0])

    def table(place: Index, own: NDArray[np.bool_]) -> Square:
        """Rows at each place, the last being beyond all times, in each group."""
        cells = place[own] * n_groups + rows.group[own]
        n_cells = (time.size + 1) * n_groups
        counts: Square = np.bincount(cells, rows.weight[own], n_cells).astype(np.float64)
        return counts.reshape(-1, n_groups)

    def reaching(times: Rows) -> Square:
        """Rows whose own time is not before each time, in each group."""
        place = np.searchsorted(time, times, side="right")
        return np.cumsum(table(place, np.ones(place.size, bool))[:0:-1], axis=0)[::-1]

    at_risk = reaching(rows.time)
    if rows.entry is not None:
        at_risk = at_risk - reaching(rows.entry)
    place = np.searchsorted(time, rows.time)
    events, others = (table(place, own)[:-1] for own in (fails, competes))
    return Counts(time, at_risk, events, others)


def _gray(counts: Counts, rho: float) -> tuple[Rows, NDArray[np.float64]]:
    """Score and variance of one stratum, section 3 of Gray (1988)."""
    time, at_risk, events, others = counts
    is_there = at_risk > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.where(is_there, 1.0 - (events + others) / at_risk, 1.0)
        after = np.cumprod(factor, axis=0).astype(np.float64)
        before = np.vstack([np.ones(after.shape[1]), after[:-1]])
        jumps = np.where(is_there, before * events / at_risk, 0.0)
        h = np.where(is_there, at_risk / before, 0.0)
    incidence = np.cumsum(jumps, axis=0)
    modified = h * (1.0 - np.vstack([np.zeros(h.shape[1]), incidence[:-1]]))
    failed, total = events.sum(axis=1), h.sum(axis=1)
    common = np.cumsum(failed / total)
    common_before = np.append(0.0, common[:-1])
    compared = (failed > 0) & (np.count_nonzero(is_there, axis=1) > 1)
    weight, hazard = _weights(time, common_before, failed / total, compared, rho)
    expected = failed[:, None] * modified / modified.sum(axis=1)[:, None]
    score = weight @ (events - np.where(is_there, expected, 0.0))

    variance = np.zeros((score.size, score.size))
    for k in range(score.size):
        # How the score of each group moves with an event of group k, now and later.
        a = -weight[:, None] * h * (h[:, k] / total)[:, None]
        a[:, k] += weight * h[:, k]
        later = np.cumsum(a * hazard[:, None], axis=0)
        later = later[-1] - later
        own = _tie_terms(at_risk[:, k], before[:, k], after[:, k], others[:, k], failed, total)
        left = np.where(after[:, k] > 0, after[:, k], np.inf)
        rest = (1.0 - common) / left
        b = a + np.where(after[:, k] > 0, 1.0 - rest, 1.0)[:, None] * later
        c = rest[:, None] * later
        variance += (b * own[0][:, None]).T @ b + (c * own[1][:, None]).T @ c
    return score, variance


def _weights(
    time: Rows, incidence: Rows, jump: Rows, compared: NDArray[np.bool_], rho: float
) -> tuple[Rows, Rows]:
    """(1 - F)^rho and the subdistribution hazard, where groups are compared and it counts; else 0.

    `incidence` is F before each time, `jump` its increment then.
    """
    left = 1.0 - incidence
    # Rounding must not decide whether F is 1.
    left[np.abs(left) < NO_DIFFERENCE] = 0.0
    weight, hazard = np.zeros_like(left), np.zeros_like(left)
    with np.errstate(invalid="ignore", divide="ignore"):
        np.power(left, rho, out=weight, where=compared)
        # cmprsk 2.2-12, too, takes nothing times infinity as nothing.
        np.divide(jump, left, out=hazard, where=compared & (weight != 0))
    undefined = ~np.isfinite(weight + hazard)
    if undefined.any():
        k = int(np.argmax(undefined))
        value, wants = ("1", "positive") if left[k] == 0 else (f"{incidence[k]:.4g}", "whole")
        raise InputError(
            f"Gray's test with rho = {rho:g} is not defined here: groups are compared at time "
            f"{time[k]:g}, but the incidence common to them, F, is {value} before it, and "
            f"(1 - F)^rho dF / (1 - F) needs a {wants} rho then.",
            hint="F passes 1 once no row of a group is at risk; end follow-up where the first "
            "group does, pass rho=1, or compare cause-specific hazards with "
            "`riskset.logrank_test`.",
        )
    return weight, hazard


def _tie_terms(
    at_risk: Rows, before: Rows, after: Rows, others: Rows, failed: Rows, total: Rows
) -> tuple[Rows, Rows]:
    """Variance of the increments of one group's two incidences, with Gray's factors for ties."""
    with np.errstate(invalid="ignore", divide="ignore"):
        tied = np.where(failed > 1, 1.0 - (failed - 1) / (total * before - 1), 1.0)
        own = tied * before * failed / (total * at_risk)
        tied = np.where(others > 1, 1.0 - (others - 1) / (at_risk - 1), 1.0)
        competing = tied * before**2 * others / at_risk**2
    is_there = at_risk > 0
    return np.where(is_there & (failed > 0), own, 0.0), np.where(
        is_there & (after > 0) & (others > 0), competing, 0.0
    )


def group_test(
    compared: ComparedRows, found: tuple[float, int], sums: tuple[Rows, Square], method: str
) -> GroupTest:
    """The result: chi-square and degrees of freedom, and score and variance of the groups."""
    counts = group_counts(compared)
    return GroupTest(*found, compared.rows.labels, *sums, *counts, method, compared.is_robust)


def group_counts(compared: ComparedRows) -> tuple[Index, Index]:
    """Rows and events of the cause in each group; weights count if they are numbers of rows."""
    rows, n_groups = compared.rows, len(compared.rows.labels)
    fails = rows.event == compared.cause
    weight = np.ones_like(rows.weight) if compared.is_robust else rows.weight
    everybody = np.bincount(rows.group, weight, n_groups)
    failing = np.bincount(rows.group[fails], weight[fails], n_groups)
    return np.rint(everybody).astype(np.int64), np.rint(failing).astype(np.int64)
