"""Time at risk: from a study cohort to a population with outcomes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from riskset._errors import InputError, counted
from riskset._messages import Note, Value
from riskset._settings import Settings, bad_setting, setting, settings
from riskset._types import AnyArray
from riskset.cohort.adjustments.adjustment import Adjustment
from riskset.cohort.adjustments.attrition_table import Attrition
from riskset.cohort.population import Population
from riskset.data.outcome import Surv
from riskset.omop.cdm import Cdm
from riskset.omop.cdm_tables import ListedPeople
from riskset.omop.events import Event, stage_deaths, stage_events
from riskset.omop.scratch import Scratch
from riskset.omop.settings import plain
from riskset.omop.study_cohort import (
    StudyCohort,
    StudyStatus,
    alive_at_index,
    count_step,
    described,
    refuse,
    status_of,
)

__all__ = ["StudyPopulation", "TimeAtRisk"]

REASONS = (
    "outcome",
    "competing event",
    "cohort end",
    "observation end",
    "study end",
    "second cohort",
    "maximum days",
    "new time at risk",
    "death",
)


@dataclass(frozen=True, eq=False, repr=False)
class StudyPopulation:
    """Study population with follow-up.

    Attributes
    ----------
    table : Arrow table
        The remaining rows of the study cohort, with ``risk_start`` and ``risk_end`` (days relative
        to index), ``time_at_risk`` (days, both included), ``status`` (0 = censored, 1 = outcome, 2
        = competing event), ``survival_time`` (days, at least 1) and ``end_reason``.
    attrition : Attrition
        Attrition from the original cohorts on.
    status : {"ok", "empty", "one_arm_empty"}
    notes : tuple of Note
    events_outside_observation : int
        Number of events after death, outside the observation period or after the end of the study.
        They do not count.
    settings : mapping

    Examples
    --------
    >>> import riskset as rs
    >>> arms = [rs.omop.ConceptSet(ids) for ids in ([974166, 1395058], [1308216, 1341927])]
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(500)) as cdm:
    ...     cohort = rs.omop.Eligibility().select(cdm, rs.omop.NewUserCohort(*arms).read(cdm))
    ...     found = rs.omop.TimeAtRisk().follow(cdm, cohort, rs.omop.ConceptSet([316139]))
    >>> found.status
    'ok'
    >>> found.people
    Adjustment(none: 51 targets, 105 comparators)
    >>> len(found.outcome) == found.table.num_rows
    True
    """

    table: Any
    attrition: Attrition
    status: StudyStatus
    notes: tuple[Note, ...] = ()
    events_outside_observation: int = 0
    settings: Mapping[str, object] = field(default_factory=dict)

    def column(self, name: str) -> AnyArray:
        """Return a column of the table as an array."""
        array: AnyArray = self.table.column(name).to_numpy(zero_copy_only=False)
        return array

    @property
    def people(self) -> Adjustment:
        """Arms and identifiers for `riskset.cohort`, with the attrition so far."""
        population = Population(
            self.column("treatment"),
            row_id=self.column("row_id"),
            person_id=self.column("person_id"),
        )
        return Adjustment(
            "none",
            None,
            population,
            np.ones(population.n_rows),
            status=self.status,
            notes=self.notes,
            attrition=self.attrition.steps,
            settings=self.settings,
        )

    @property
    def outcome(self) -> AnyArray:
        """Survival times and status of the rows, as from `riskset.Surv`."""
        return Surv(self.column("survival_time"), self.column("status"))

    def __repr__(self) -> str:
        return described("StudyPopulation", self.attrition.steps[-1], self.status)


@settings
class TimeAtRisk(Settings):
    """The time at risk of an outcome, in days after the index date (day 0).

    ``risk_end = min(anchor + risk_end, end of observation, end of study, day of death, risk_start +
    max_days - 1)`` and ``time_at_risk = risk_end - risk_start + 1``: the first and the last day
    count. An event on day d has the survival time ``d - risk_start + 1``. On one day, the outcome
    comes before the competing event.

    By default, the time at risk starts on day 1, because diagnoses on the day of the first
    prescription are usually its reason and not its effect. By default, people are followed while on
    treatment; ``risk_end=None`` follows them as started, independently of later treatments. People
    who die before `min_days_at_risk` are kept, because selection of survivors would cause bias.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.omop.TimeAtRisk(risk_end=None).words
    'as started: from 1 day after the start of exposure to the end of observation'
    """

    risk_start: int = setting("the first day at risk, counted from its anchor", 1)
    start_anchor: Literal["cohort start", "cohort end"] = setting(
        "what the first day is counted from", "cohort start"
    )
    risk_end: int | None = setting(
        "the last day at risk, counted from its anchor; none: the end of observation", 0
    )
    end_anchor: Literal["cohort end", "cohort start", "observation end"] = setting(
        "what the last day is counted from; cohort end follows people while on treatment",
        "cohort end",
    )
    max_days: int | None = setting("the largest number of days at risk", None, least=1)
    min_days_at_risk: int = setting(
        "the smallest number of planned days at risk; a death does not shorten the plan",
        1,
        least=1,
    )
    remove_prior_outcome: bool = setting(
        "leave out people who had the outcome before, while they were observed", True
    )
    prior_outcome_lookback: int | None = setting(
        "leave out only people who had the outcome less than this number of days before the index "
        "date; none: at any time before",
        None,
        least=0,
    )
    censor_at_new_risk_window: bool = setting(
        "end when the next time at risk of the person begins", False
    )

    def contradictions(self) -> Iterator[InputError]:
        """Somebody must be able to be at risk."""
        is_same = self.start_anchor == self.end_anchor
        if is_same and self.risk_end is not None and self.risk_end < self.risk_start:
            yield bad_setting(
                "risk_end",
                f"no person can be at risk: the last day is {self.risk_end} after the "
                f"{self.end_anchor}, and the first one {self.risk_start}.",
                value=self.risk_end,
            )
        if self.max_days is not None and self.max_days < self.min_days_at_risk:
            yield bad_setting(
                "min_days_at_risk",
                f"no person can be at risk: of at most {self.max_days} days there must be at least "
                f"{self.min_days_at_risk}.",
                value=self.min_days_at_risk,
            )

    @property
    def words(self) -> str:
        """Description of the time at risk, for reports."""
        on_treatment = self.risk_end is not None and self.end_anchor == "cohort end"
        start = _after(self.risk_start, self.start_anchor)
        end = "the end of observation"
        if self.risk_end is not None:
            end = _after(self.risk_end, self.end_anchor)
        most = "" if self.max_days is None else f", at most {counted(self.max_days, 'day')}"
        return f"{'on treatment' if on_treatment else 'as started'}: from {start} to {end}{most}"

    def follow(
        self,
        cdm: Cdm,
        cohort: StudyCohort,
        outcome: Event | Sequence[Event],
        competing: Event | Sequence[Event] = (),
        *,
        strict: bool = False,
    ) -> StudyPopulation:
        """Follow the study cohort to an outcome.

        Parameters
        ----------
        outcome, competing : event or sequence of events
            A `ConceptSet` of diagnoses, a `Diagnosis`, "death", a ``cohort_definition_id`` of the
            CDM's cohort table, `CohortRecords`, or a data frame with ``person_id`` and
            ``event_date``.
        strict : bool
            Raise an error instead of returning a status other than "ok".

        Raises
        ------
        CohortError
            Errors of reading tables; with `strict`, a status other than "ok".
        """
        cdm.about(ListedPeople(cohort.table, "person_id", "index_date"))
        with cdm.noting() as heard, cdm.scratch() as work:
            rows = work.keep(f"SELECT *, treatment AS arm FROM {work.add(cohort.table)}")
            deaths = stage_deaths(cdm, work)
            steps = list(cohort.attrition.steps)
            rows, dead = alive_at_index(work, rows, deaths, "index_date", steps)
            events = _Events(cdm, work, rows, deaths, outcome, competing)
            table = work.keep(self._windows(rows, deaths))
            late = _note_on_deaths(work, table)
            if self.remove_prior_outcome:
                table = work.keep(self._without_prior(table, events.inside))
                steps.append(count_step(work, "no prior outcome", table, steps[-1]))
            if self.censor_at_new_risk_window:
                table = work.keep(_until_next(table))
                steps.append(count_step(work, "new time at risk", table, steps[-1]))
            least = self.min_days_at_risk
            # Death must not be what leaves people out: only those who live on would be kept.
            table = work.keep(
                f"SELECT * FROM {table} WHERE planned_end - risk_start + 1 >= {least} "
                "AND risk_end >= risk_start"
            )
            name = f"at least {counted(least, 'day')} at risk"
            steps.append(count_step(work, name, table, steps[-1]))
            followed = work.arrow(_outcomes(table, events.inside))
        status = status_of(steps[-1])
        if strict:
            refuse(status, steps)
        return StudyPopulation(
            followed,
            Attrition(tuple(steps)),
            status,
            tuple(dict.fromkeys((*cohort.notes, *heard.values(), *dead, *late, *events.notes()))),
            events.n_outside,
            {
                **cohort.settings,
                "time_at_risk": plain(self),
                "outcome": plain(outcome),
                "competing": plain(competing),
            },
        )

    def _windows(self, rows: str, deaths: str) -> str:
        """Rows with the days and the reason of the end of their time at risk."""
        anchors = {"cohort start": "0", "cohort end": "days_to_cohort_end"}
        start = f"{anchors[self.start_anchor]} + {self.risk_start}"
        reason = {
            "cohort start": "'maximum days'",
            "cohort end": "cohort_end_reason",
            "observation end": "obs_end_reason",
        }[self.end_anchor]
        last = "NULL::INTEGER"
        if self.risk_end is not None:
            anchor = {**anchors, "observation end": "days_to_obs_end"}[self.end_anchor]
            last = f"{anchor} + {self.risk_end}"
        most = "NULL" if self.max_days is None else f"risk_start + {self.max_days} - 1"
        # least() passes over NULL.
        return (
            "SELECT *, CASE WHEN risk_end = death_day THEN 'death' "
            "WHEN risk_end = own_end THEN own_reason "
            "WHEN risk_end = most_end THEN 'maximum days' ELSE obs_end_reason END AS base_reason "
            "FROM (SELECT *, least(planned_end, death_day) AS risk_end FROM "
            "(SELECT *, least(own_end, most_end, days_to_obs_end) AS planned_end FROM "
            f"(SELECT *, CAST({most} AS INTEGER) AS most_end FROM "
            f"(SELECT *, CAST({start} AS INTEGER) AS risk_start, "
            f"CAST({last} AS INTEGER) AS own_end, {reason} AS own_reason FROM (SELECT r.*, "
            "CAST(d.event_date - r.index_date AS INTEGER) AS death_day FROM "
            f"{rows} r LEFT JOIN {deaths} d USING (person_id))))))"
        )

    def _without_prior(self, table: str, events: str) -> str:
        back = ""
        if self.prior_outcome_lookback is not None:
            back = f" AND e.day > {-self.prior_outcome_lookback}"
        return (
            f"SELECT t.* FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM {events} e "
            f"WHERE e.row_id = t.row_id AND e.kind = 1 AND e.day < t.risk_start{back})"
        )


class _Events:
    """Outcomes (kind 1) and competing events (2) of rows by day; those that count are inside."""

    def __init__(
        self,
        cdm: Cdm,
        work: Scratch,
        rows: str,
        deaths: str,
        outcome: Event | Sequence[Event],
        competing: Event | Sequence[Event],
    ) -> None:
        outcomes, rivals = (stage_events(cdm, work, events) for events in (outcome, competing))
        both = f"(SELECT 1 AS kind, * FROM {outcomes} UNION ALL SELECT 2, * FROM {rivals})"
        everything = work.keep(
            "SELECT row_id, kind, day, day BETWEEN -days_from_obs_start AND days_to_obs_end "
            "AND is_alive AS is_inside FROM (SELECT DISTINCT c.row_id, c.days_from_obs_start, "
            "c.days_to_obs_end, x.kind, CAST(x.event_date - c.index_date AS INTEGER) AS day, "
            "x.event_date <= coalesce(d.event_date, x.event_date) AS is_alive "
            f"FROM {rows} c JOIN {both} x USING (person_id) LEFT JOIN {deaths} d USING (person_id))"
        )
        self.inside = work.keep(f"SELECT row_id, kind, day FROM {everything} WHERE is_inside")
        (self.n_outside,) = work.row(f"SELECT count(*) FROM {everything} WHERE NOT is_inside")

    def notes(self) -> tuple[Note, ...]:
        """That some do not count."""
        if not self.n_outside:
            return ()
        text = (
            "{n:event|events} outside observation or the study, or after death, {n:?does|do} not "
            "count."
        )
        values = {"n": Value("count", self.n_outside)}
        return (Note("events_outside_observation", (), text, values),)


def _note_on_deaths(work: Scratch, table: str) -> tuple[Note, ...]:
    """That observation goes on after death, which ends follow-up."""
    (n,) = work.row(f"SELECT count(*) FROM {table} WHERE death_day < days_to_obs_end")
    if not n:
        return ()
    text = (
        "{n:exposure is|exposures are} observed after the death of the person; follow-up ends with "
        "the day of death."
    )
    return (Note("observed_after_death", (), text, {"n": Value("count", n)}),)


def _until_next(table: str) -> str:
    """Time at risk that ends before the next row of the person begins; rows without any are out."""
    following = (
        f"SELECT *, lead(index_date + risk_start) OVER (PARTITION BY person_id "
        f"ORDER BY index_date + risk_start, row_id) - 1 - index_date AS last FROM {table}"
    )
    cut = ", ".join(
        f"CAST(least({end}, last) AS INTEGER) AS {end}" for end in ("risk_end", "planned_end")
    )
    return (
        f"SELECT * EXCLUDE (last) REPLACE ({cut}, "
        "CASE WHEN last < risk_end THEN 'new time at risk' ELSE base_reason END AS base_reason) "
        f"FROM ({following}) WHERE least(risk_end, last) >= risk_start OR risk_end < risk_start"
    )


def _outcomes(table: str, events: str) -> str:
    reasons = ", ".join(f"'{reason}'" for reason in REASONS)
    firsts = (
        "SELECT t.row_id, min(e.day) FILTER (e.kind = 1) AS first, min(e.day) FILTER (e.kind = 2) "
        f"AS other FROM {table} t JOIN {events} e USING (row_id) "
        "WHERE e.day BETWEEN t.risk_start AND t.risk_end GROUP BY 1"
    )
    return (
        "SELECT row_id, person_id, treatment, index_date, days_from_obs_start, days_to_cohort_end, "
        "days_to_obs_end, risk_start, risk_end, risk_end - risk_start + 1 AS time_at_risk, "
        "CAST(status AS TINYINT) AS status, "
        "coalesce(least(first, other), risk_end) - risk_start + 1 AS survival_time, "
        "CAST(CASE status WHEN 1 THEN 'outcome' WHEN 2 THEN 'competing event' ELSE base_reason END "
        f"AS ENUM({reasons})) AS end_reason FROM (SELECT t.*, f.first, f.other, CASE "
        "WHEN f.first <= coalesce(f.other, f.first) THEN 1 WHEN f.other IS NOT NULL THEN 2 ELSE 0 "
        f"END AS status FROM {table} t LEFT JOIN ({firsts}) f USING (row_id)) ORDER BY row_id"
    )


def _after(days: int, anchor: str) -> str:
    point = {
        "cohort start": "the start of exposure",
        "cohort end": "the end of exposure",
        "observation end": "the end of observation",
    }[anchor]
    if days == 0:
        return point
    return f"{counted(abs(days), 'day')} {'after' if days > 0 else 'before'} {point}"
