"""Selection of the study cohort: each step is a query of the episodes, with an attrition row.

No step uses outcomes, so one study cohort and its covariates serve all outcomes.
"""

import datetime
from collections.abc import Callable, Iterator
from typing import Literal

from riskset._errors import InputError, counted
from riskset._messages import Note
from riskset._settings import Settings, bad_setting, setting, settings
from riskset.cohort.adjustments.attrition_table import Attrition
from riskset.omop.cdm import Cdm
from riskset.omop.cdm_tables import ListedPeople
from riskset.omop.events import CohortRecords, stage_deaths
from riskset.omop.exposures import Cohorts, read_cohort_table
from riskset.omop.observation import date_sql, notes_on_periods, stage_periods
from riskset.omop.people import (
    BIRTH,
    AgeMethod,
    age_sql,
    check_ages,
    check_known,
)
from riskset.omop.scratch import Scratch
from riskset.omop.settings import plain
from riskset.omop.study_cohort import (
    StudyCohort,
    alive_at_index,
    count_step,
    refuse,
    status_of,
)

__all__ = ["Eligibility"]

OBSERVED = "observed at index"


@settings
class Eligibility(Settings):
    """Eligibility criteria, applied in this order.

    For people in both arms, "keep first, truncate to second" keeps the arm that they started first,
    with its episodes before the other arm began, and ends these the day before. "keep first" does
    not end them, "remove all" excludes these people, and "keep all" does nothing. People who start
    both on one day are excluded, except with "keep all". `first_exposure_only` keeps the first
    episode of an arm even if it is outside observation. The common period starts with the latest
    first start of the arms, and ends with the earliest last start.

    The criteria apply to all arms. If there are more than two, the first of all arms that somebody
    starts counts, and the attrition is that of target and comparator.

    Notes
    -----
    People who died before the index date are excluded after the step "observed at index", in a
    separate step if there are any.

    Examples
    --------
    >>> import riskset as rs
    >>> arms = [rs.omop.ConceptSet(ids) for ids in ([974166, 1395058], [1308216, 1341927])]
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(500)) as cdm:
    ...     cohorts = rs.omop.NewUserCohort(*arms).read(cdm)
    ...     rs.omop.Eligibility(washout_days=365, min_age=18).select(cdm, cohorts)
    StudyCohort(55 targets, 105 comparators)
    """

    remove_duplicates: Literal[
        "keep first, truncate to second", "keep first", "remove all", "keep all"
    ] = setting("what to do with people in several arms", "keep first, truncate to second")
    first_exposure_only: bool = setting("only the first episode of each arm", True)
    washout_days: int = setting(
        "the smallest number of days observed before the index date; 0: any", 365, least=0
    )
    restrict_to_common_period: bool = setting(
        "only index dates while all treatments were in use", True
    )
    min_age: int | None = setting("the smallest age at the index date, in years", None, least=0)
    max_age: int | None = setting("the largest age at the index date, in years", None, least=0)
    gender_concept_ids: tuple[int, ...] | None = setting("8507 = male, 8532 = female", None)
    nesting_cohort: int | CohortRecords | None = setting(
        "the cohort within whose records the index date must be", None
    )
    study_start: datetime.date | str | None = setting("the first index date", None)
    study_end: datetime.date | str | None = setting(
        "the last index date, and the end of follow-up", None
    )
    max_cohort_size: int | None = setting(
        "the largest size of each arm; a larger one is thinned evenly by person and date",
        None,
        least=1,
    )
    age_method: AgeMethod = setting(
        "ages are completed years, or the difference of the calendar years as in FeatureExtraction",
        "completed_years",
        only_python=True,
    )
    join_observation_periods: bool = setting(
        "join observation periods that follow each other without a gap", False
    )

    def contradictions(self) -> Iterator[InputError]:
        """Limits must leave somebody."""
        for first, last in (("min_age", "max_age"), ("study_start", "study_end")):
            least, most = getattr(self, first), getattr(self, last)
            if least is not None and most is not None and least > most:
                yield bad_setting(
                    last,
                    f"`{last}` ({most}) comes before `{first}` ({least}), so no person can enter.",
                    value=most,
                )

    def select(self, cdm: Cdm, cohorts: Cohorts, *, strict: bool = False) -> StudyCohort:
        """Select the study cohort.

        Parameters
        ----------
        strict : bool
            Raise an error instead of returning a status other than "ok".

        Raises
        ------
        CohortError
            "UnknownPerson" if a person has no row in table person; "BadBirthDate" if a required age
            is negative or above 125; and errors of reading tables.
        """
        cdm.about(ListedPeople(cohorts.table, "person_id", "start_date"))
        with cdm.noting() as heard, cdm.scratch() as work:
            own = "SELECT row_number() OVER (ORDER BY person_id, start_date, treatment DESC, "
            raw = work.keep(
                f"{own} end_date) AS key, treatment AS arm, person_id, start_date, end_date, "
                f"false AS is_cut FROM {work.add(cohorts.table)}"
            )
            check_known(cdm, work, raw)
            (n_arms,) = work.row(f"SELECT greatest(2, 1 + max(arm)) FROM {raw}")
            query = _Query(self, cdm, work, raw, "both" if (n_arms or 2) == 2 else "all")
            steps = [count_step(work, "original cohorts", raw)]
            table = raw
            for name, narrow in query.steps():
                table = work.keep(narrow(table))
                steps.append(count_step(work, name, table, steps[-1]))
                if name == OBSERVED:
                    deaths = stage_deaths(cdm, work)
                    table, dead = alive_at_index(work, table, deaths, "start_date", steps)
                    query.notes += dead
            end = date_sql(self.study_end)
            rows = work.arrow(
                "SELECT row_number() OVER (ORDER BY key) AS row_id, person_id, arm AS treatment, "
                "start_date AS index_date, "
                "CAST(start_date - obs_start AS INTEGER) AS days_from_obs_start, "
                "CAST(end_date - start_date AS INTEGER) AS days_to_cohort_end, "
                f"CAST(least(obs_end, {end}) - start_date AS INTEGER) AS days_to_obs_end, "
                "CASE WHEN is_cut THEN 'second cohort' ELSE 'cohort end' END AS cohort_end_reason, "
                f"CASE WHEN {end} < obs_end THEN 'study end' ELSE 'observation end' END "
                f"AS obs_end_reason FROM {table} ORDER BY row_id"
            )
        status = status_of(steps[-1])
        if strict:
            refuse(status, steps)
        return StudyCohort(
            rows,
            Attrition(tuple(steps)),
            status,
            tuple(dict.fromkeys((*cohorts.notes, *heard.values(), *query.notes))),
            cohorts.drugs,
            {**cohorts.settings, "eligibility": plain(self)},
        )


Narrow = Callable[[str], str]
"""The name of a table -> the query of those left."""


class _Query:
    """The steps of one selection as queries."""

    def __init__(
        self, rules: Eligibility, cdm: Cdm, work: Scratch, raw: str, arms: Literal["both", "all"]
    ) -> None:
        self._rules, self._cdm, self._work, self._raw, self._arms = rules, cdm, work, raw, arms
        self.notes: list[Note] = []

    def steps(self) -> Iterator[tuple[str, Narrow]]:
        """Name and query of every step that applies, in order."""
        rules = self._rules
        yield f"{self._arms} cohorts: {rules.remove_duplicates}", self._duplicates
        if rules.first_exposure_only:
            yield "first exposure only", _first_exposure
        yield OBSERVED, self._observed
        if rules.washout_days:
            days = counted(rules.washout_days, "day")
            yield (
                f"{days} of prior observation",
                lambda t: f"SELECT * FROM {t} WHERE start_date - obs_start >= {rules.washout_days}",
            )
        if rules.restrict_to_common_period:
            yield f"period common to {self._arms} cohorts", self._common_period
        if rules.min_age is not None or rules.max_age is not None:
            yield _age_name(rules.min_age, rules.max_age), self._age
        if rules.gender_concept_ids is not None:
            yield "sex", self._sex
        if rules.nesting_cohort is not None:
            yield "within the nesting cohort", self._nested
        if rules.study_start is not None or rules.study_end is not None:
            yield "study window", self._window
        if rules.max_cohort_size is not None:
            yield f"sample of at most {rules.max_cohort_size:,} an arm", self._sample

    def _duplicates(self, table: str) -> str:
        how = self._rules.remove_duplicates
        if how == "keep all":
            return f"SELECT * FROM {table}"
        firsts = self._work.keep(
            f"SELECT person_id, arm, min(start_date) AS first FROM {table} GROUP BY ALL"
        )
        others = self._work.keep(
            f"SELECT m.person_id, m.arm, min(o.first) AS first FROM {firsts} m JOIN {firsts} o "
            "ON o.person_id = m.person_id AND o.arm <> m.arm GROUP BY ALL"
        )
        joined = (
            f"FROM {table} e JOIN {firsts} m ON m.person_id = e.person_id AND m.arm = e.arm "
            f"LEFT JOIN {others} o ON o.person_id = e.person_id AND o.arm = e.arm "
            "WHERE o.first IS NULL"
        )
        if how == "remove all":
            return f"SELECT e.* {joined}"
        kept = f"{joined} OR (m.first < o.first AND e.start_date < o.first)"
        if how == "keep first":
            return f"SELECT e.* {kept}"
        is_cut = "coalesce(o.first <= e.end_date, false)"
        end = f"CASE WHEN {is_cut} THEN o.first - 1 ELSE e.end_date END"
        return f"SELECT e.* REPLACE ({end} AS end_date, {is_cut} AS is_cut) {kept}"

    def _observed(self, table: str) -> str:
        rules = self._rules
        periods = stage_periods(self._cdm, self._work, join=rules.join_observation_periods)
        observed = self._work.keep(
            "SELECT t.*, o.s AS obs_start, o.e AS obs_end, "
            "row_number() OVER (PARTITION BY t.key ORDER BY o.s, o.e DESC) AS choice "
            f"FROM {table} t JOIN {periods} o ON o.person_id = t.person_id "
            "AND t.start_date BETWEEN o.s AND o.e"
        )
        self.notes += notes_on_periods(self._work, observed, periods, rules.study_end)
        return f"SELECT * EXCLUDE (choice) FROM {observed} WHERE choice = 1"

    def _common_period(self, table: str) -> str:
        return (
            f"SELECT t.* FROM {table} t, (SELECT max(first) AS first, min(last) AS last FROM "
            f"(SELECT min(start_date) AS first, max(start_date) AS last FROM {self._raw} "
            "GROUP BY arm)) p WHERE t.start_date BETWEEN p.first AND p.last"
        )

    def _age(self, table: str) -> str:
        rules = self._rules
        person = self._cdm.view("person", *BIRTH)
        age = age_sql("p", "t.start_date", rules.age_method)
        aged = self._work.keep(
            f"SELECT t.*, {age} AS age FROM {table} t JOIN {person} p USING (person_id)"
        )
        check_ages(self._work, aged)
        low = 0 if rules.min_age is None else rules.min_age
        high = "" if rules.max_age is None else f" AND age <= {int(rules.max_age)}"
        return f"SELECT * EXCLUDE (age) FROM {aged} WHERE age >= {int(low)}{high}"

    def _sex(self, table: str) -> str:
        chosen = ", ".join(str(int(c)) for c in self._rules.gender_concept_ids or ())
        person = self._cdm.view("person", ("person_id", "gender_concept_id"))
        return (
            f"SELECT t.* FROM {table} t SEMI JOIN (SELECT person_id FROM {person} "
            f"WHERE gender_concept_id IN ({chosen or 'NULL'})) USING (person_id)"
        )

    def _nested(self, table: str) -> str:
        nesting = self._rules.nesting_cohort
        records = nesting if isinstance(nesting, CohortRecords) else CohortRecords(nesting)
        name = read_cohort_table(self._cdm, self._work, records.source, records.definition_id)
        return (
            f"SELECT t.* FROM {table} t WHERE EXISTS (SELECT 1 FROM {name} n WHERE "
            "n.person_id = t.person_id AND t.start_date BETWEEN n.start_date AND n.end_date)"
        )

    def _window(self, table: str) -> str:
        start, end = self._rules.study_start, self._rules.study_end
        tests = [] if start is None else [f"start_date >= {date_sql(start)}"]
        tests += [] if end is None else [f"start_date <= {date_sql(end)}"]
        return f"SELECT * FROM {table} WHERE {' AND '.join(tests)}"

    def _sample(self, table: str) -> str:
        """Positions 1 + k (n - 1) / (m - 1), rounded down, for k = 0, ..., m - 1."""
        m = int(self._rules.max_cohort_size or 0)
        placed = (
            "SELECT *, row_number() OVER (PARTITION BY arm ORDER BY key) AS place, "
            f"count(*) OVER (PARTITION BY arm) AS n FROM {table}"
        )
        chosen = self._work.keep(
            f"SELECT a.arm, 1 + (k.range * (a.n - 1)) // {max(m - 1, 1)} AS place FROM "
            f"(SELECT arm, count(*) AS n FROM {table} GROUP BY 1) a, range({m}) k WHERE a.n > {m}"
        )
        return (
            f"SELECT t.* EXCLUDE (place, n) FROM ({placed}) t WHERE t.n <= {m} OR EXISTS "
            f"(SELECT 1 FROM {chosen} c WHERE c.arm = t.arm AND c.place = t.place)"
        )


def _first_exposure(table: str) -> str:
    return (
        f"SELECT * FROM {table} "
        "QUALIFY row_number() OVER (PARTITION BY person_id, arm ORDER BY key) = 1"
    )


def _age_name(low: int | None, high: int | None) -> str:
    if high is None:
        return f"age of at least {low}"
    return f"age of at most {high}" if low is None else f"age {low} to {high}"
