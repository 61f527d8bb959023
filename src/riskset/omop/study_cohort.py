"""The people of a study at its start, and what a step of selecting them left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from riskset._errors import CohortError, counted
from riskset._messages import Note, Value
from riskset.cohort.adjustments.adjustment import Step
from riskset.cohort.adjustments.attrition_table import Attrition
from riskset.omop.cdm import Cdm
from riskset.omop.concepts import ConceptSet
from riskset.omop.scratch import Scratch

__all__ = [
    "StudyCohort",
    "StudyStatus",
    "alive_at_index",
    "count_step",
    "described",
    "refuse",
    "status_of",
]

StudyStatus = Literal["ok", "empty", "one_arm_empty"]
DAYS = ("days_from_obs_start", "days_to_cohort_end", "days_to_obs_end")


@dataclass(frozen=True, eq=False, repr=False)
class StudyCohort:
    """Study cohort at the index date, before follow-up.

    Attributes
    ----------
    table : Arrow table
        One row per exposure, in the order of ``row_id`` (1, 2, ... by person and date): ``row_id``,
        ``person_id``, ``treatment`` (1 = target, 0 = comparator; 2, 3, ... = others, which only
        `compared` leaves out for further steps), ``index_date``, days relative to it
        ``days_from_obs_start``, ``days_to_cohort_end``, ``days_to_obs_end``, and
        ``cohort_end_reason`` ("cohort end" or "second cohort") and ``obs_end_reason`` ("observation
        end" or "study end").
    attrition : Attrition
    status : {"ok", "empty", "one_arm_empty"}
    notes : tuple of Note
    drugs : tuple of ConceptSet
        Drugs of the arms, if known.
    settings : mapping

    Examples
    --------
    >>> import riskset as rs
    >>> arms = [rs.omop.ConceptSet(ids) for ids in ([974166, 1395058], [1308216, 1341927])]
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(500)) as cdm:
    ...     cohort = rs.omop.Eligibility().select(cdm, rs.omop.NewUserCohort(*arms).read(cdm))
    >>> cohort.status
    'ok'
    >>> cohort.attrition
    Attrition
      original cohorts: 113 target, 208 comparator
      both cohorts: keep first, truncate to second: 100 target, 196 comparator
      first exposure only: 90 target, 181 comparator
      observed at index: 84 target, 169 comparator
      365 days of prior observation: 55 target, 105 comparator
      period common to both cohorts: 55 target, 105 comparator
    """

    table: Any
    attrition: Attrition
    status: StudyStatus
    notes: tuple[Note, ...] = ()
    drugs: tuple[ConceptSet, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def from_table(cls, frame: object, *, keep_row_ids: bool = False) -> "StudyCohort":
        """Create a study cohort that was selected before, or by another program.

        Parameters
        ----------
        frame : data frame
            ``person_id``, ``treatment``, ``index_date``, ``days_from_obs_start``,
            ``days_to_cohort_end``, ``days_to_obs_end``, and optionally the two reasons.
        keep_row_ids : bool
            Keep the column ``row_id``, and sort by it, rather than number the rows again.

        Raises
        ------
        CohortError
            "BadTreatment" (neither 1 nor 0), "BadCohort" (missing or negative days, or a missing
            person or date), "DuplicateId" (two rows with one person, treatment and index date, or
            with one ``row_id``).
        """
        reasons = ("cohort_end_reason", "obs_end_reason")
        row_id = ("row_id",) if keep_row_ids else ()
        with Cdm({"study cohort": frame}) as cdm, cdm.scratch() as work:
            view = cdm.view(
                "study cohort", (*row_id, "person_id", "treatment", "index_date", *DAYS), reasons
            )
            _check_table(work, view)
            if keep_row_ids:
                _check_row_ids(work, view)
            _check_once(work, view)
            days = ", ".join(f"CAST({d} AS INTEGER) AS {d}" for d in DAYS)
            number = (
                "row_number() OVER (ORDER BY person_id, index_date, treatment DESC, "
                "days_to_cohort_end) AS row_id"
            )
            rows = work.keep(
                f"SELECT {'row_id' if keep_row_ids else number}, person_id, "
                f"CAST(treatment AS TINYINT) AS treatment, index_date, {days}, "
                "coalesce(cohort_end_reason, 'cohort end') AS cohort_end_reason, "
                f"coalesce(obs_end_reason, 'observation end') AS obs_end_reason FROM {view}"
            )
            arms = f"(SELECT *, treatment AS arm FROM {rows})"
            first = count_step(work, "given cohorts", arms)
            table = work.arrow(f"SELECT * FROM {rows} ORDER BY row_id")
        return cls(table, Attrition((first,)), status_of(first))

    def compared(self) -> "StudyCohort":
        """Return the rows of target and comparator, numbered again.

        Examples
        --------
        >>> import riskset as rs
        >>> drugs = [[974166], [1308216], [1341927]]
        >>> target, comparator, other = (rs.omop.ConceptSet(ids) for ids in drugs)
        >>> with rs.omop.Cdm(rs.simulate.toy_tables(500)) as cdm:
        ...     new_users = rs.omop.NewUserCohort(target, comparator, others=(other,))
        ...     cohort = rs.omop.Eligibility().select(cdm, new_users.read(cdm))
        >>> sorted(set(cohort.table.column("treatment").to_pylist()))
        [0, 1, 2]
        >>> sorted(set(cohort.compared().table.column("treatment").to_pylist()))
        [0, 1]
        """
        kept = np.flatnonzero(self.table.column("treatment").to_numpy() < 2)
        if kept.size == self.table.num_rows:
            return self
        table = self.table.take(kept)
        table = table.set_column(0, "row_id", [np.arange(1, kept.size + 1)])
        return replace(self, table=table)

    def __repr__(self) -> str:
        return described("StudyCohort", self.attrition.steps[-1], self.status)


def count_step(work: Scratch, name: str, table: str, before: Step | None = None) -> Step:
    """What a step left, from a table with ``arm`` and ``person_id``."""
    counts = work.row(
        "SELECT count(DISTINCT person_id) FILTER (arm = 1), "
        "count(DISTINCT person_id) FILTER (arm = 0), count(*) FILTER (arm = 1), "
        f"count(*) FILTER (arm = 0) FROM {table}"
    )
    *persons, target, comparator = map(int, counts)
    if before is None:
        return Step(name, persons[0], persons[1], target, comparator)
    removed = before.target_exposures - target, before.comparator_exposures - comparator
    return Step(name, persons[0], persons[1], target, comparator, *removed)


def alive_at_index(
    work: Scratch, table: str, deaths: str, day: str, steps: list[Step]
) -> tuple[str, tuple[Note, ...]]:
    """Those whose `day` is not after their death; a step and a note where others are left out."""
    alive = work.keep(
        f"SELECT t.* FROM {table} t LEFT JOIN {deaths} d USING (person_id) "
        f"WHERE d.event_date IS NULL OR d.event_date >= t.{day}"
    )
    step = count_step(work, "alive at index", alive, steps[-1])
    n = (step.removed_target or 0) + (step.removed_comparator or 0)
    if not n:
        return table, ()
    steps.append(step)
    text = (
        "Exposures that start after the death of the person are left out ({n:exposure|exposures})."
    )
    return alive, (Note("death_before_index", (), text, {"n": Value("tabulated", n)}),)


def status_of(last: Step) -> StudyStatus:
    """Whether anybody is left in both arms."""
    if not last.target_exposures and not last.comparator_exposures:
        return "empty"
    return "ok" if last.target_exposures and last.comparator_exposures else "one_arm_empty"


def refuse(status: StudyStatus, steps: Sequence[Step]) -> None:
    """Raise for a status other than "ok", with the step after which no person was left."""
    if status == "ok":
        return
    step = next(s for s in steps if status_of(s) != "ok")
    who = "the cohorts are" if status_of(step) == "empty" else "an arm is"
    raise CohortError(
        status,
        f"{who} empty after the step {{step}}.",
        hint="look at the attrition; leave `strict` out to get it all the same.",
        details={"step": step.step},
        values={"step": Value("name", repr(step.step))},
    )


def _check_table(work: Scratch, view: str) -> None:
    """Refuse arms that are neither 1 nor 0, and days that are missing or negative."""
    tests = {
        "treatment": ("BadTreatment", "treatment IS NULL OR treatment NOT IN (0, 1)", "1 or 0"),
        "person_id": ("BadCohort", "person_id IS NULL", "an id"),
        "index_date": ("BadCohort", "index_date IS NULL", "a date"),
        **{d: ("BadCohort", f"{d} IS NULL OR {d} < 0", "at least 0") for d in DAYS},
    }
    for column, (code, bad, must) in tests.items():
        n, person = work.row(f"SELECT count(*), min(person_id) FROM {view} WHERE {bad}")
        if n:
            raise CohortError(
                code,
                f"column {column} of the study cohort must be {must}, but in {counted(n, 'row')} "
                f"it is not (such as of person {person}).",
                hint="days are counted from index: index must lie within observation and exposure.",
                details={"column": column, "count": n},
            )


def _check_row_ids(work: Scratch, view: str) -> None:
    """Refuse rows without an id, or with that of another one."""
    n, example = work.row(
        f"SELECT count(*), min(row_id) FROM (SELECT row_id FROM {view} GROUP BY 1 "
        "HAVING count(*) > 1 OR row_id IS NULL)"
    )
    if n:
        raise CohortError(
            "DuplicateId",
            f"column row_id of the study cohort must have another id in each row, but "
            f"{counted(n, 'id')} {'is' if n == 1 else 'are'} missing or repeated (such as "
            f"{example}).",
            hint="number the rows.",
            details={"column": "row_id", "count": n},
        )


def _check_once(work: Scratch, view: str) -> None:
    """Refuse an exposure that is there twice."""
    again = (
        f"SELECT person_id FROM {view} GROUP BY person_id, treatment, index_date "
        "HAVING count(*) > 1"
    )
    n, person = work.row(f"SELECT count(*), min(person_id) FROM ({again})")
    if n:
        raise CohortError(
            "DuplicateId",
            "the study cohort must have one row for each person, treatment and index date, but "
            f"{counted(n, 'exposure')} {'is' if n == 1 else 'are'} there more than once (such as "
            f"of person {person}).",
            hint="keep one row for each.",
            details={"count": n},
        )


def described(what: str, last: Step, status: StudyStatus) -> str:
    """One line for people."""
    suffix = "" if status == "ok" else f", status {status!r}"
    return (
        f"{what}({counted(last.target_exposures, 'target')}, "
        f"{counted(last.comparator_exposures, 'comparator')}{suffix})"
    )
