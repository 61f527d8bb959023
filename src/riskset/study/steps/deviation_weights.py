"""The weighted rows of a per-protocol analysis: from people who deviate to `censoring_weights`."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._messages import Note, Value
from riskset._time_units import DAYS_IN
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustments.adjustment import restrict
from riskset.cohort.arms.curves import ARMS
from riskset.cohort.covariates.covariate_design import columns_of
from riskset.cohort.protocol.artificial_censoring import DeviationWeights, censoring_weights
from riskset.cohort.protocol.censoring_model import DeviationModel, is_of_time
from riskset.cohort.protocol.deviations import censor_deviations
from riskset.data.column_statistics import select_columns
from riskset.data.design import Design
from riskset.data.frame import arrow_table
from riskset.data.outcome import Surv
from riskset.data.start_stop.histories import LastValue
from riskset.data.start_stop.history_merge import merge_histories
from riskset.data.start_stop.splitting import split
from riskset.data.start_stop.time_interactions import free_memory
from riskset.study.cache import digest
from riskset.study.sources.source import (
    AnalysedOutcome,
    CovariateRecords,
    Deviations,
    Followed,
    FollowedAnyway,
    Measurements,
)
from riskset.study.specification.data_sections import Data, TableData
from riskset.study.specification.per_protocol_section import INTERVAL_DAYS, PerProtocol
from riskset.study.steps.strategy_plan import StrategyPlan

__all__ = ["DEVIATION", "WeightedRows", "followed_until_deviation", "interval_days"]

DEVIATION = "deviation"
"""The reason for the end of follow-up of people who deviate."""
ROUNDING = 1e-9
BYTES_OF_A_ROW = 500
"""Memory of an interval of a person at least, with the columns of few covariates."""


def interval_days(protocol: PerProtocol, data: Data) -> float:
    """The length of the intervals of the follow-up."""
    if protocol.every is None:
        return INTERVAL_DAYS
    unit = data.time_unit if isinstance(data, TableData) else "days"
    return protocol.every * DAYS_IN[unit]


def followed_until_deviation(followed: Followed, deviations: Deviations) -> Followed:
    """The follow-up until people deviate; those who deviate before it starts leave."""
    time, status, at = followed.time, followed.status, deviations.time
    starts = at > 0
    people = followed.people
    if (people.kept & ~starts).any():
        people = restrict(people, starts, "no deviation before the time at risk")
    is_first = starts & ((at < time) | ((at == time) & (status == 0)))
    reasons = followed.reasons
    if reasons is None:
        reasons = np.array(["end of follow-up", "outcome", "competing event"])[status]
    return replace(
        followed,
        key=digest(followed.key, deviations.key),
        people=people,
        time=np.where(is_first, at, time),
        status=np.where(is_first, 0, status),
        reasons=np.where(is_first, DEVIATION, reasons),
        notes=(*followed.notes, *deviations.notes),
        anyway=FollowedAnyway(time, status, deviations),
    )


class WeightedRows:
    """Rows with start and stop of the people of an outcome, and their weights.

    `every` is the length of intervals in days; `of_score` are the covariates that a propensity
    score uses. The weights are computed when they are first needed.
    """

    def __init__(
        self, outcome: AnalysedOutcome, protocol: PerProtocol, every: float, of_score: Sequence[str]
    ) -> None:
        assert outcome.followed.anyway is not None
        self._outcome, self._protocol = outcome, protocol
        self._every, self._of_score = every, of_score
        self._anyway = outcome.followed.anyway

    @functools.cached_property
    def _made(self) -> "_Rows":
        """Rows of people who are kept, until they deviate, in intervals."""
        kept, every = np.flatnonzero(self._outcome.people.kept), self._every
        anyway = self._anyway
        time, at = (
            _on_borders(times[kept], every) for times in (anyway.time, anyway.deviations.time)
        )
        n = _checked_intervals(np.minimum(time, at), every)
        columns: dict[str, AnyArray] = {
            "row": kept,
            "time": time,
            "event": anyway.status[kept],
            "deviation": np.where(np.isfinite(at), at, np.nan),
        }
        measured = anyway.deviations.histories if self._protocol.over_time else {}
        # Each row is a trial of a logistic model: values that change in it count from the next on.
        step = every if self._protocol.kind == "logistic" else None
        column_of = {name: f"covariate {k}" for k, name in enumerate(measured)}
        histories = {
            column_of[name]: _history(one._replace(time=_on_borders(one.time, every)), step)
            for name, one in measured.items()
        }
        rows: Any = arrow_table(columns | self._first_values(kept, column_of))
        entry = None
        if histories:
            rows = merge_histories(rows, histories, id="row", time="time", event="event").rows
            entry = "entry"
        cuts, plan = every * np.arange(1, n), self._plan
        if plan is not None:
            cuts = np.union1d(cuts, plan.borders)
        rows = split(rows, cuts, time="time", event="event", entry=entry, id=None, episode=None)
        rows = censor_deviations(rows, "deviation", time="time", event="event", entry="entry")
        found = {
            name: np.asarray(rows.column(name).to_numpy())
            for name in ("row", "time", "event", "entry", "deviates", *histories)
        }
        values = {name: found.pop(own).astype(np.float64) for name, own in column_of.items()}
        at_risk = None
        if plan is not None:
            at_risk = plan.can_deviate(
                found["row"], found["entry"], found["time"], found["event"] > 0
            )
        return _Rows(**found, values=values, at_risk=at_risk)

    @functools.cached_property
    def _plan(self) -> StrategyPlan | None:
        """The plan of strategies, with times that are borders but for rounding on them."""
        plan = self._anyway.deviations.plan
        return None if plan is None else plan.moved(lambda at: _on_borders(at, self._every))

    def _first_values(self, kept: Index, column_of: Mapping[str, str]) -> dict[str, AnyArray]:
        """Covariates at baseline that have the names of histories: values until the first one."""
        design = self._outcome.cohort.design
        names = [name for name in column_of if name in design.names]
        if not names:
            return {}
        columns = np.array([design.index_of(name) for name in names], dtype=np.int64)
        values = design.to_dense(columns, kept)
        return {column_of[name]: values[:, j] for j, name in enumerate(names)}

    @property
    def person(self) -> Index:
        """The row of the cohort that each row belongs to (m,)."""
        return self._made.row

    @property
    def sample_weight(self) -> Rows:
        """The weight of the adjustment (m,)."""
        return self._outcome.people.weight[self.person]

    @property
    def whole_weight(self) -> Rows:
        """The weight for deviation times that of the adjustment (m,)."""
        return self.weights.weight * self.sample_weight

    @functools.cached_property
    def baseline(self) -> Design | None:
        """Covariates of the numerator of the weights and of the outcome model (m, q)."""
        if not self._protocol.baseline:
            return None
        design = self._outcome.cohort.design
        chosen = select_columns(design, columns_of(design, self._protocol.baseline))
        return self._repeated(chosen)

    @functools.cached_property
    def weights(self) -> DeviationWeights:
        """The weights; raises `CohortError`, as `censoring_weights` does."""
        return self._with(self._protocol)

    @functools.cached_property
    def _covariates(self) -> Design | None:
        """Covariates of the models of deviation: at the start of rows, as far as they are known."""
        rows, design, records = self._made, self._outcome.cohort.design, self._records
        fixed, changing = self._fixed_and_changing
        fixed = np.union1d(fixed, columns_of(design, self._protocol.baseline))
        parts: list[Design] = []
        if fixed.size:
            parts.append(self._repeated(select_columns(design, fixed)))
        if records is not None and changing.size:
            keys = [design.keys[j] for j in changing.tolist()]
            now = records.design(rows.row, rows.entry, keys)
            parts.append(now.renamed({name: _over_time(name) for name in now.names}))
        if rows.values:
            parts.append(Design.from_columns({_over_time(n): x for n, x in rows.values.items()}))
        return Design.stack(parts) if parts else None

    @functools.cached_property
    def _fixed_and_changing(self) -> tuple[Index, Index]:
        """Columns of covariates at baseline, and of those that the data have over time."""
        design, records = self._outcome.cohort.design, self._records
        chosen = self._chosen(design)
        if records is None:
            return chosen, chosen[:0]
        changes = np.array([records.changes(design.keys[j]) for j in chosen.tolist()], dtype=bool)
        return chosen[~changes], chosen[changes]

    @property
    def _records(self) -> CovariateRecords | None:
        return self._anyway.deviations.records if self._protocol.over_time else None

    def _repeated(self, design: Design) -> Design:
        """Covariates of people in each of their rows, which follow each other in their order."""
        return design.repeat_rows(np.bincount(self.person, minlength=design.n_rows))

    def _chosen(self, design: Design) -> Index:
        """Numbers of the columns of the models."""
        if self._protocol.covariates is not None:
            return columns_of(design, self._protocol.covariates)
        if self._outcome.cohort.analyses:  # those of records may be many thousands
            of_score = set(self._of_score)
            at = [j for j, key in enumerate(design.keys) if str(key) in of_score]
            return np.array(at, dtype=np.int64)
        return np.arange(design.n_features)

    def without_truncation(self) -> DeviationWeights:
        """The same rows with weights that are not truncated."""
        return self._with(replace(self._protocol, truncate=None))

    def without_weights(self) -> DeviationWeights:
        """The same rows, all of which have the weight 1: as if nobody could deviate."""
        return self._with(self._protocol, at_risk=np.zeros(self.person.size))

    def _with(self, protocol: PerProtocol, at_risk: Rows | None = None) -> DeviationWeights:
        rows, population = self._made, self._outcome.people.population
        return censoring_weights(
            self.outcome,
            population.treatment[rows.row],
            None if at_risk is not None else self._covariates,
            person=population.person_id[rows.row],
            history=rows.row,
            deviates=rows.deviates if at_risk is None else np.zeros(rows.row.size),
            at_risk=rows.at_risk if at_risk is None else at_risk,
            settings=protocol.model,
            baseline=None if at_risk is not None else self.baseline,
        )

    def notes(self) -> tuple[Note, ...]:
        """What readers of the weights should know of the covariates."""
        if not self._made.deviates.any():
            text = "nobody deviates, so nobody needs a weight for deviation."
            return (Note("no_deviations", (), text),)
        return (*self._notes_on_arms(), *self._notes_on_rows())

    def _notes_on_arms(self) -> tuple[Note, ...]:
        """That nobody deviates in an arm, as with a grace period longer than the follow-up."""
        is_target = self._outcome.people.population.is_target[self.person]
        text = "nobody deviates in the {arm}, so its people need no weights for deviation."
        return tuple(
            Note("no_deviations_in_arm", (), text, {"arm": Value("name", arm)})
            for arm, own in zip(ARMS, (is_target, ~is_target), strict=True)
            if own.any() and not self._made.deviates[own].any()
        )

    def _notes_on_rows(self) -> tuple[Note, ...]:
        """Why weights may leave bias: there are no intervals, or covariates do not change."""
        if not self._made.entry.any():
            text = (
                "the follow-up of everybody is one interval, so nobody has a weight for deviation: "
                "choose a smaller `every`."
            )
            return (Note("one_interval", (), text),)
        if all(model.part != "denominator" or not _covariates_of(model) for model in self._models):
            text = "the models of deviation have no covariates but the time: see `per_protocol`."
            return (Note("no_deviation_covariates", (), text),)
        if self._made.values or self._fixed_and_changing[1].size:
            return ()
        text = (
            "the models of deviation have only covariates at baseline: bias remains if covariates "
            "that influence deviation change over time."
        )
        return (Note("baseline_covariates_only", (), text),)

    @property
    def _models(self) -> tuple[DeviationModel, ...]:
        return self.weights.models

    @property
    def outcome(self) -> AnyArray:
        """Start, stop and status of the rows, as from `riskset.Surv`."""
        rows = self._made
        return Surv(rows.time, rows.event, entry=rows.entry)

    def at_risk(self, time: float) -> NDArray[np.bool_]:
        """The rows of people who are at risk just before a time (m,)."""
        rows = self._made
        has_begun = (rows.entry < time) | ((time == 0) & (rows.entry == 0))
        return np.asarray(has_begun & (time <= rows.time))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Columns of rows with start and stop (m,), and the covariates that change.

    `at_risk` says in which of them people can deviate; None: in all.
    """

    row: Index
    time: Rows
    event: Index
    entry: Rows
    deviates: Index
    values: dict[str, Rows]
    at_risk: AnyArray | None = None


def _checked_intervals(time: Rows, every: float) -> int:
    """The number of intervals of the longest follow-up, if memory holds those of everybody."""
    intervals = np.ceil(time / every)
    free = free_memory()
    if free is not None and intervals.sum() * BYTES_OF_A_ROW > free:
        raise InputError(
            "the intervals of the follow-up of everybody need more memory than is free.",
            hint="choose a larger `every`, and check `time_unit` of the data.",
        )
    return int(intervals.max(initial=0.0))


def _on_borders(time: Rows, every: float) -> Rows:
    """Times; those that are a border between intervals but for rounding, as that border is.

    In months or years, the same time may have other last digits where it was divided.
    """
    finite = np.isfinite(time)
    number = np.round(np.where(finite, time, 0.0) / every)
    # A short follow-up has not ended at the start.
    is_border = finite & (number != 0) & (np.abs(time - every * number) < ROUNDING * every)
    return np.where(is_border, every * number, time)


def _history(measured: Measurements, step: float | None) -> LastValue:
    """Measurements as a history; those within a step count from its end on."""
    order = np.argsort(measured.time, kind="stable")
    row, time, value = (column[order] for column in measured)
    if step is not None:
        time = np.where(time > 0, step * np.ceil(time / step - ROUNDING), time)
    table = arrow_table({"row": row, "time": time, "value": value})
    return LastValue(table, "value", same_time="last")


def _over_time(name: str) -> str:
    return f"{name} over time"


def _covariates_of(model: DeviationModel) -> list[str]:
    return [name for name in model.names if not is_of_time(name)]
