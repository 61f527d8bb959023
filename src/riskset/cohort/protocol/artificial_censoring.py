"""Inverse probability weights for people who are censored when they deviate from a strategy."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError
from riskset._keywords import takes
from riskset._messages import Note, Value
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustments.adjustment import effective_size
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.protocol.censoring_model import ArmModel, DeviationModel, log_survival
from riskset.cohort.protocol.censoring_settings import CensoringModel
from riskset.cohort.protocol.protocol_rows import ProtocolRows
from riskset.data.checks import Places, as_time_numbers
from riskset.data.design import Design
from riskset.data.frame import data_frame

__all__ = ["DeviationWeights", "censoring_weights"]

PERCENTILES = (0, 1, 5, 25, 50, 75, 95, 99, 100)
HEAVY = 20.0
"""A stabilised weight has a mean of about 1; one this large is worth a note."""


@dataclass(frozen=True, eq=False, repr=False)
class DeviationWeights:
    """Weights of start-stop rows, which the censoring at deviation makes necessary.

    Attributes
    ----------
    weight : (n,) float64
        Weight of each row; 0 for rows that are no part of the follow-up (``deviation_at="start"``).
    untruncated : (n,) float64
        The same before percentiles limit it.
    uncensored : (n,) float64
        Probability of having stayed uncensored up to the row, given the history.
    models : tuple of DeviationModel
        Of both arms; those of the numerator, if weights are stabilised, come last.
    limits : (float, float) or None
        Smallest and largest weight, from the percentiles of `truncate`.
    n_raised, n_lowered : int
        Rows whose weight was set to the smallest or the largest.
    settings : CensoringModel
    notes : tuple of Note
        "separated_deviation": covariates that determine who deviates. "one_interval": nobody
        has a row after another one. "not_followed_from_start": people who start later than others,
        or have gaps between rows. "tied_deviations": many deviate at one time of a Cox model.
        "large_weight": few people stand for many.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1, 1, 1, 1, 2, 2], [0, 0, 0, 0, 1, 0], entry=[0, 0, 0, 0, 1, 1])
    >>> person, leaves = [1, 2, 3, 4, 3, 4], [1, 1, 0, 0, 0, 0]
    >>> found = rs.cohort.censoring_weights(
    ...     y, [1] * 6, person=person, deviates=leaves, time_df=1, stabilise=False
    ... )
    >>> found
    DeviationWeights(6 rows, weights from 1.000 to 2.000)
    >>> found.weight.round(3)
    array([1., 1., 1., 1., 2., 2.])
    """

    weight: Rows
    untruncated: Rows
    uncensored: Rows
    models: tuple[DeviationModel, ...]
    limits: tuple[float, float] | None
    n_raised: int
    n_lowered: int
    settings: CensoringModel
    notes: tuple[Note, ...]
    rows: ProtocolRows = field(repr=False)
    parts: "WeightModels" = field(repr=False)

    def summary(self, library: str | None = None) -> Any:
        """Return the distribution of the weights, before and after truncation, by arm.

        Columns: ``arm``, ``weights`` ("untruncated" or "truncated"), ``rows``, ``mean``, ``sd``,
        and percentiles ``p0`` (the smallest) to ``p100`` (the largest) over rows.
        """
        lines: list[dict[str, object]] = []
        kinds = [("untruncated", self.untruncated)]
        if self.limits is not None:
            kinds.append(("truncated", self.weight))
        for arm, own in self._arms():
            for kind, weight in kinds:
                lines.append({"arm": arm, "weights": kind, **_described(weight[own])})
        return _frame(lines, library)

    def by_time(self, times: object = None, library: str | None = None) -> Any:
        r"""Return how weights develop: those of the rows followed just after given times, by arm.

        Columns: ``time``, ``arm``, ``at_risk`` (rows with :math:`start \le time < stop`),
        ``effective_size`` (:math:`(\sum w)^2 / \sum w^2`), ``mean``, ``largest``. Default times:
        the start, and nine that divide the time up to the last outcome evenly.
        """
        at = (
            self._default_times()
            if times is None
            else as_time_numbers(times, "times", None, Places())
        )
        lines: list[dict[str, object]] = []
        for time in at.tolist():
            under = (self.rows.entry <= time) & (time < self.rows.time)
            for arm, own in self._arms():
                weight = self.weight[own & under]
                lines.append(
                    {
                        "time": time,
                        "arm": arm,
                        "at_risk": int(weight.size),
                        "effective_size": effective_size(weight),
                        "mean": float(weight.mean()) if weight.size else np.nan,
                        "largest": float(weight.max()) if weight.size else np.nan,
                    }
                )
        return _frame(lines, library)

    def coefficients(self, library: str | None = None) -> Any:
        """Return a data frame of the coefficients of all models.

        Columns: ``arm``, ``part``, ``name`` and ``coef``; the intercept is a line.
        """
        lines = []
        for model in self.models:
            if model.coef is None:
                continue
            pairs = list(zip(model.names, model.coef.tolist(), strict=True))
            if not np.isnan(model.intercept):
                pairs.insert(0, ("intercept", model.intercept))
            lines += [
                {"arm": model.arm, "part": model.part, "name": n, "coef": b} for n, b in pairs
            ]
        return _frame(lines, library)

    def _arms(self) -> list[tuple[str, NDArray[np.bool_]]]:
        rows = self.rows
        return [
            (name, rows.followed & (rows.treatment == arm))
            for name, arm in (("target", 1), ("comparator", 0))
            if (rows.treatment == arm).any()
        ]

    def _default_times(self) -> Rows:
        rows = self.rows
        start = float(rows.entry.min())
        events = rows.time[(rows.status == 1) & rows.followed]
        end = float((events if events.size else rows.time).max())
        return np.linspace(start, end, 11)[:-1]

    def __repr__(self) -> str:
        own = self.weight[self.rows.followed]
        return (
            f"DeviationWeights({own.size:,} rows, weights from {own.min():.3f} to {own.max():.3f})"
        )


@dataclass(frozen=True, eq=False)
class WeightModels:
    """The models of the weights, which can be fitted with case weights."""

    rows: ProtocolRows
    settings: CensoringModel
    denominator: tuple[ArmModel, ...]
    numerator: tuple[ArmModel, ...]

    def fit(self, count: Index | None = None) -> "FittedWeights":
        """Weights of the rows; `count` (n,) says how often each of them stands in a resample."""
        rows, case = self.rows, None if count is None else count.astype(np.float64)
        stay, models, notes = log_survival(self.denominator, rows.n_rows, case)
        factor = -stay
        if self.settings.stabilise:
            above, more, _ = log_survival(self.numerator, rows.n_rows, case)
            factor, models = factor + above, models + more
        own = np.where(rows.followed, rows.survival(factor), 0.0)
        limits = None
        if self.settings.truncate is not None:
            times = np.ones(rows.n_rows, dtype=np.int64) if count is None else count
            shown = np.repeat(own[rows.followed], times[rows.followed])
            low, high = np.quantile(shown, np.array(self.settings.truncate) / 100)
            limits = (float(low), float(high))
        weight = own
        if limits is not None:
            weight = np.where(rows.followed, np.clip(own, *limits), 0.0)
        return FittedWeights(weight, own, rows.survival(stay), limits, models, notes)


@dataclass(frozen=True, eq=False)
class FittedWeights:
    """What the models say of all rows."""

    weight: Rows
    untruncated: Rows
    uncensored: Rows
    limits: tuple[float, float] | None
    models: tuple[DeviationModel, ...]
    notes: tuple[Note, ...]


@takes(CensoringModel)
def censoring_weights(
    y: object,
    treatment: object,
    X: object = None,
    *,
    person: object,
    deviates: object,
    settings: CensoringModel,
    baseline: object = None,
    at_risk: object = None,
    history: object = None,
    cause: int | str | None = None,
) -> DeviationWeights:
    r"""Weight start-stop rows by the inverse probability of not having deviated.

    In a per-protocol analysis, people are censored when they deviate from the treatment strategy
    of their arm. Those who stay then also stand for those who left and had the same history. A row
    k of a history has the weight

    .. math:: w_k = \prod_{j < k} \frac{1 - q_j}{1 - p_j}

    where :math:`p_j` is the probability to deviate at the end of row j, given that the person has
    not deviated before, by the time and the covariates of the row, and :math:`q_j` is the same by
    the time and the `baseline` covariates (``stabilise=True``), or 0. Each arm has its own models.

    ``kind="logistic"`` fits pooled logistic regressions of `deviates` on a natural cubic spline of
    the time at which a row starts and the covariates, in which each row at risk is a trial; rows
    should be about equally long, as `riskset.split` makes them, and so short that few people
    deviate within one, because a weight counts deviations before its row only. ``kind="cox"`` fits
    Cox models of the time of deviation, with :math:`1 - p_j = e^{-(H(t_j) - H(s_j))}` for a row at
    risk in :math:`(s_j, t_j]`. Both have no penalty. An event comes before a deviation of the same
    time: people who have one at the end of a row could not deviate there.

    Parameters
    ----------
    y : (n,) structured array
        ``riskset.Surv(time, event, entry=start)`` of the rows: 0 = no event, 1 = outcome, 2 =
        competing event.
    treatment : (n,) 0 or 1
        Arm whose strategy the person follows in the row: 1 = target, 0 = comparator. A person may
        have rows in both arms (`riskset.cohort.clone`); they are two histories.
    X : Design, data frame, matrix or array (n, p), optional
        Covariates of the rows, as of their start: those at baseline and those that change.
    person : (n,) whole numbers or text
    deviates : (n,) 0 or 1
        Whether the person deviates in the row, which is then the last one of the history.
    settings : CensoringModel
    baseline : Design, data frame, matrix or array (n, q), optional
        Covariates at baseline for the numerator of stabilised weights. The outcome model must then
        have them as well.
    at_risk : (n,) 0 or 1, optional
        Whether the person can deviate in the row. In other rows, p is 0. Default: in all.
    history : (n,) whole numbers or text, optional
        Which rows follow each other, of people who enter several times. Default: those of a person
        in an arm.
    cause : int or str, optional
        Code or label of the outcome in `y`, as of `fit_outcome`.

    Returns
    -------
    DeviationWeights

    Raises
    ------
    CohortError
        "BadDeviation", "BadOutcome", "BadCovariates", "BadTreatment" or "BadSetting"; "Positivity"
        if everybody at risk deviates, or a Cox model has infinite coefficients; "NotConverged".

    Notes
    -----
    With ``deviation_at="start"``, a person decides at the start of a row, after its covariates are
    known. The product then includes the row itself, rows with events are trials as all others, and
    the last row of a person who deviates does not belong to the follow-up.

    The weights remove the bias of censoring if all causes of both deviation and outcome are among
    the covariates, as they were before each deviation.

    References
    ----------
    Robins and Finkelstein (2000), Biometrics 56, 779-788, doi:10.1111/j.0006-341X.2000.00779.x.
    Hernan, Brumback and Robins (2000), Epidemiology 11, 561-570,
    doi:10.1097/00001648-200009000-00012.
    Cole and Hernan (2008), American Journal of Epidemiology 168, 656-664, doi:10.1093/aje/kwn164.
    Hernan and Robins (2016), American Journal of Epidemiology 183, 758-764,
    doi:10.1093/aje/kwv254.

    Examples
    --------
    Of four people who are sick, two leave after a month. Each of the other two stands for two in
    the second month:

    >>> import riskset as rs
    >>> y = rs.Surv([1, 1, 1, 1, 2, 2], [0, 0, 0, 0, 1, 0], entry=[0, 0, 0, 0, 1, 1])
    >>> found = rs.cohort.censoring_weights(
    ...     y,
    ...     [1] * 6,
    ...     person=[1, 2, 3, 4, 3, 4],
    ...     deviates=[1, 1, 0, 0, 0, 0],
    ...     time_df=1,
    ...     stabilise=False,
    ... )
    >>> found.weight.round(3)
    array([1., 1., 1., 1., 2., 2.])
    """
    rows = ProtocolRows.read(
        y,
        treatment,
        person,
        deviates,
        at_risk,
        cause,
        history=history,
        deviates_at_start=settings.deviation_at == "start",
    )
    if baseline is not None and not settings.stabilise:
        raise CohortError(
            "BadSetting",
            "`baseline` has the covariates of the numerator, but weights without `stabilise` have "
            "none.",
            hint="leave `baseline` out; covariates at baseline belong into `X`, too.",
        )
    full, first = (_design(x, rows) for x in (X, baseline))
    arms = np.unique(rows.treatment).tolist()
    parts = WeightModels(
        rows,
        settings,
        tuple(ArmModel.prepare(rows, full, arm, "denominator", settings) for arm in arms),
        tuple(ArmModel.prepare(rows, first, arm, "numerator", settings) for arm in arms)
        if settings.stabilise
        else (),
    )
    fit = parts.fit()
    low, high = (0, 0)
    if fit.limits is not None:
        shown = fit.untruncated[rows.followed]
        low = int(np.count_nonzero(shown < fit.limits[0]))
        high = int(np.count_nonzero(shown > fit.limits[1]))
    return DeviationWeights(
        fit.weight,
        fit.untruncated,
        fit.uncensored,
        fit.models,
        fit.limits,
        low,
        high,
        settings,
        (*fit.notes, *_notes(fit.weight, rows)),
        rows,
        parts,
    )


def _design(x: object, rows: ProtocolRows) -> Design | None:
    return None if x is None else as_design(x, rows.n_rows)


def _described(weight: Rows) -> dict[str, object]:
    line: dict[str, object] = {"rows": int(weight.size), "mean": np.nan, "sd": np.nan}
    if weight.size:
        line |= {"mean": float(weight.mean()), "sd": float(weight.std())}
    for p in PERCENTILES:
        line[f"p{p}"] = float(np.quantile(weight, p / 100)) if weight.size else np.nan
    return line


def _notes(weight: Rows, rows: ProtocolRows) -> list[Note]:
    notes = []
    n_late = rows.count_unobserved()
    if n_late:
        text = (
            "{n:person starts|people start} later than others or {n:?has|have} gaps between rows: "
            "weights cannot count deviations before and between their rows."
        )
        notes.append(Note("not_followed_from_start", (), text, {"n": Value("count", n_late)}))
    if rows.deviates.any() and not rows.deviates_at_start and not rows.follow_others.any():
        text = (
            "the follow-up of everybody is one row, so nobody has a weight for deviation: cut rows "
            "into intervals with `riskset.split`."
        )
        notes.append(Note("one_interval", (), text))
    largest = float(weight[rows.followed].max(initial=0.0))
    if largest < HEAVY:
        return notes
    text = (
        "the largest weight is {largest:.3g}: few people stand for many; consider `truncate` or "
        "fewer covariates."
    )
    return [*notes, Note("large_weight", (), text, {"largest": Value("measure", largest)})]


def _frame(lines: list[dict[str, object]], library: str | None) -> Any:
    columns: dict[str, AnyArray] = {
        name: np.array([line[name] for line in lines]) for name in (lines[0] if lines else ())
    }
    return data_frame(columns, library)
