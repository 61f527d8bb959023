"""Cohorts of a study: exposure episodes of two treatments, from drug records or a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from riskset._errors import CohortError, counted
from riskset._messages import Note, Value
from riskset._settings import Settings, setting, settings
from riskset.omop.cdm import Cdm
from riskset.omop.cdm_tables import ListedPeople, RecordedPeople, SoughtPeople
from riskset.omop.concepts import ConceptSet
from riskset.omop.observation import joined, last_day, note_backward
from riskset.omop.scratch import Scratch
from riskset.omop.settings import plain
from riskset.omop.sources import is_file_name

__all__ = [
    "CohortTable",
    "Cohorts",
    "NewUserCohort",
    "as_sequence",
    "cohort_members",
    "drug_users",
    "exposures",
    "read_cohort_table",
]

LONG_SUPPLY = 365
EARLY_DAYS = 30
"""Somebody who starts so soon after observation began may have used the drug before."""


@dataclass(frozen=True, eq=False, repr=False)
class Cohorts:
    """Exposure episodes of two arms, or more, before any exclusion.

    Attributes
    ----------
    table : Arrow table
        ``treatment`` (1 = target, 0 = comparator, 2, 3, ... = others), ``person_id``,
        ``start_date``, ``end_date``; sorted by person and date.
    drugs : tuple of ConceptSet
        Drugs of the arms, if known. They are excluded from the covariates.
    early : mapping
        Proportion, by arm, of first exposures within 30 days after observation began. It indicates
        use before observation. NaN for an empty arm.
    notes : tuple of Note
    settings : mapping

    Examples
    --------
    >>> import riskset as rs
    >>> arms = [rs.omop.ConceptSet(ids) for ids in ([974166, 1395058], [1308216, 1341927])]
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(500)) as cdm:
    ...     cohorts = rs.omop.NewUserCohort(*arms).read(cdm)
    >>> cohorts
    Cohorts(113 target exposures, 208 comparator exposures)
    >>> cohorts.table.column_names
    ['treatment', 'person_id', 'start_date', 'end_date']
    """

    table: Any
    drugs: tuple[ConceptSet, ...] = ()
    early: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    def __repr__(self) -> str:
        arm = self.table.column("treatment").to_numpy()
        target, comparator = (int(np.count_nonzero(arm == code)) for code in (1, 0))
        parts = [counted(target, "target exposure"), counted(comparator, "comparator exposure")]
        if others := arm.size - target - comparator:
            parts.append(counted(others, "other exposure"))
        return f"Cohorts({', '.join(parts)})"


@settings
class NewUserCohort(Settings):
    """Exposure episodes of two drugs, or drug classes, or more, from the drug records of a CDM.

    All records of a class count as one drug. A record belongs to the current episode if it starts
    at most `gap_days` after the last day so far. A record ends on its end date, otherwise after its
    days of supply, otherwise on its first day.

    Examples
    --------
    >>> import riskset as rs
    >>> new_users = rs.omop.NewUserCohort(
    ...     target=rs.omop.ConceptSet([974166, 1395058]),
    ...     comparator=rs.omop.ConceptSet([1308216, 1341927]),
    ... )
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(2000)) as cdm:
    ...     new_users.read(cdm)
    Cohorts(503 target exposures, 835 comparator exposures)
    """

    target: ConceptSet = setting("the drugs of the target", only_python=True)
    comparator: ConceptSet = setting("the drugs of the comparator", only_python=True)
    gap_days: int = setting(
        "the largest number of days between two records of one episode", 30, least=0
    )
    end_extension_days: int = setting(
        "the number of days added to the end of an episode, at most up to the next one",
        0,
        least=0,
    )
    source: Literal["drug_exposure", "drug_era"] = setting(
        "the table of the records", "drug_exposure"
    )
    others: tuple[ConceptSet, ...] = setting(
        "the drugs of further arms, to which the criteria of `Eligibility` apply as well",
        (),
        only_python=True,
    )

    def read(self, cdm: Cdm) -> Cohorts:
        """Read the episodes of all arms.

        Raises
        ------
        CohortError
            "MissingTable", "MissingColumn", "EmptyConceptAncestor", and errors of reading tables.
        """
        notes: list[Note] = []
        with cdm.noting() as heard, cdm.scratch() as work:
            drugs = (self.target, self.comparator, *self.others)
            arms = work.keep(
                " UNION ALL ".join(
                    f"SELECT {arm} AS arm, concept_id FROM {drug.stage(cdm, work)}"
                    for arm, drug in zip(_arms(self.others), drugs, strict=True)
                )
            )
            self._note_concepts(work, arms, notes)
            cdm.about(
                drug_users(
                    self.source,
                    [c for (c,) in work.rows(f"SELECT DISTINCT concept_id FROM {arms} ORDER BY 1")],
                )
            )
            exposed = work.keep(
                f"SELECT x.*, a.arm FROM ({exposures(cdm, self.source)}) x "
                f"JOIN {arms} a USING (concept_id)"
            )
            note_backward(cdm, work, exposed, f"{self.source} of the arms", "s", "given_end")
            records = work.keep(f"SELECT DISTINCT person_id, arm, s, e FROM {exposed}")
            (long,) = work.row(f"SELECT count(*) FROM {records} WHERE e - s >= {LONG_SUPPLY}")
            if long:
                notes.append(
                    Note(
                        "long_exposures",
                        (),
                        "{n:exposure|exposures} of the arms {n:?lasts|last} more than {days} days; "
                        "check the days of supply.",
                        {"n": Value("count", long), "days": Value("setting", LONG_SUPPLY)},
                    )
                )
            episodes = joined(records, "person_id, arm", self.gap_days)
            more = self.end_extension_days
            table = work.arrow(
                f"SELECT CAST(arm AS TINYINT) AS treatment, person_id, s AS start_date, "
                f"greatest(e, least(e + {more}, lead(s) OVER (PARTITION BY person_id, arm "
                f"ORDER BY s) - 1)) AS end_date FROM ({episodes}) "
                "ORDER BY person_id, start_date, treatment DESC"
            )
            early = _early_starts(cdm, work, table)
        said = (*heard.values(), *notes)
        return Cohorts(table, drugs, early, said, {"new_users": plain(self)})

    def _note_concepts(self, work: Scratch, arms: str, notes: list[Note]) -> None:
        (shared,) = work.row(
            f"SELECT count(*) FROM (SELECT concept_id FROM {arms} GROUP BY 1 HAVING count(*) > 1)"
        )
        if shared:
            notes.append(
                Note(
                    "shared_concepts",
                    (),
                    "{n:concept belongs|concepts belong} to "
                    f"{'several' if self.others else 'both'} arms, such as combinations of "
                    "their drugs: whoever takes one starts "
                    f"{'these' if self.others else 'both'} arms on one day.",
                    {"n": Value("things", shared)},
                )
            )


@dataclass(frozen=True)
class CohortTable:
    """Cohorts of ATLAS or another program.

    Parameters
    ----------
    target, comparator : int
        ``cohort_definition_id`` of the arms.
    source : str, path or data frame
        A table of the CDM, such as "cohort" or "results.my_cohort", a file, or a frame, with
        ``cohort_definition_id, subject_id, cohort_start_date, cohort_end_date``. A missing end, or
        an end before the start, counts as the start. Repeated records count once.
    drugs : sequence of ConceptSet
        Drugs of the arms, which are excluded from the covariates.
    others : sequence of int
        ``cohort_definition_id`` of further arms, to which the criteria of `Eligibility` apply as
        well.

    Examples
    --------
    >>> import datetime
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> names = ["cohort_definition_id", "subject_id", "cohort_start_date", "cohort_end_date"]
    >>> first, last = datetime.date(2015, 5, 1), datetime.date(2015, 6, 30)
    >>> table = pa.Table.from_pylist([dict(zip(names, (k, k, first, last))) for k in (1, 2)])
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(20)) as cdm:
    ...     rs.omop.CohortTable(target=1, comparator=2, source=table).read(cdm)
    Cohorts(1 target exposure, 1 comparator exposure)
    """

    target: int
    comparator: int
    source: object = "cohort"
    drugs: tuple[ConceptSet, ...] = ()
    others: tuple[int, ...] = ()

    def read(self, cdm: Cdm) -> Cohorts:
        """Read the records of all arms.

        Raises
        ------
        CohortError
            "BadCohort" if a record has no person or start, and errors of reading tables.
        """
        numbers = (self.target, self.comparator, *self.others)
        again = [number for k, number in enumerate(numbers) if number in numbers[:k]]
        if again:
            arms = "several arms are" if self.others else "target and comparator are both"
            raise CohortError(
                "BadCohort",
                f"{arms} cohort {again[0]}.",
                hint="name different values of cohort_definition_id.",
            )
        cdm.about(cohort_members(self.source, numbers))
        with cdm.noting() as heard, cdm.scratch() as work:
            both = work.keep(
                " UNION ALL ".join(
                    f"SELECT {arm} AS arm, * FROM "
                    f"{read_cohort_table(cdm, work, self.source, number)}"
                    for arm, number in zip(_arms(self.others), numbers, strict=True)
                )
            )
            once = work.keep(f"SELECT DISTINCT * FROM {both}")
            _note_repeated(cdm, work, both, once)
            table = work.arrow(
                "SELECT CAST(arm AS TINYINT) AS treatment, person_id, start_date, end_date "
                f"FROM {once} ORDER BY person_id, start_date, treatment DESC, end_date"
            )
            early = _early_starts(cdm, work, table)
        notes = tuple(heard.values())
        return Cohorts(table, tuple(self.drugs), early, notes, {"cohort_table": plain(self)})


def _arms(others: Sequence[object]) -> list[int]:
    """Codes of the target, the comparator and others."""
    return [1, 0, *range(2, 2 + len(others))]


def _note_repeated(cdm: Cdm, work: Scratch, records: str, once: str) -> None:
    """Say so of records that are there again, or begin within another one."""
    (n,) = work.row(f"SELECT (SELECT count(*) FROM {records}) - (SELECT count(*) FROM {once})")
    if n:
        cdm.note(
            "repeated_records",
            "{n:record|records} of the cohorts {n:?is there again and counts|are there again and "
            "count} once.",
            n=Value("count", n),
        )
    (n,) = work.row(
        f"SELECT count(*) FROM (SELECT start_date, max(end_date) OVER (PARTITION BY person_id, arm "
        "ORDER BY start_date, end_date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before "
        f"FROM {once}) WHERE start_date <= before"
    )
    if n:
        cdm.note(
            "overlapping_records",
            "{n:record|records} of the cohorts {n:?begins|begin} before an earlier one of the same "
            "person and cohort has ended; each counts as a separate exposure.",
            n=Value("count", n),
        )


def read_cohort_table(cdm: Cdm, work: Scratch, source: object, number: int | None) -> str:
    """Records of a cohort as ``person_id, start_date, end_date``; None: of all cohorts.

    A record that ends before it starts ends on its first day, with a note.
    """
    definition = () if number is None else ("cohort_definition_id",)
    columns = (*definition, "subject_id", "cohort_start_date")
    view = cdm.view(source, columns, ("cohort_end_date",))
    where = "" if number is None else f" WHERE cohort_definition_id = {int(number)}"
    of = "the cohort table" if number is None else f"cohort `{number}`"
    given = work.keep(f"SELECT * FROM {view}{where}")
    note_backward(cdm, work, given, of, "cohort_start_date", "cohort_end_date")
    name = work.keep(
        "SELECT subject_id AS person_id, cohort_start_date AS start_date, "
        f"{last_day('cohort_start_date', 'cohort_end_date')} AS end_date FROM {given}"
    )
    (missing,) = work.row(
        f"SELECT count(*) FROM {name} WHERE person_id IS NULL OR start_date IS NULL"
    )
    if missing:
        raise CohortError(
            "BadCohort",
            f"{counted(missing, 'record')} of {of} {'has' if missing == 1 else 'have'} no "
            "subject_id or no cohort_start_date.",
            hint="every record needs both; complete or remove these.",
            details={"count": missing},
        )
    return name


def drug_users(source: str, concepts: Sequence[int]) -> SoughtPeople:
    """SoughtPeople with a drug record of some concepts."""
    start = f"{source}_start_date"
    return RecordedPeople(source, "drug_concept_id", tuple(concepts), "person_id", start)


def cohort_members(source: object, numbers: Sequence[int]) -> SoughtPeople:
    """SoughtPeople in some cohorts, of a table of the CDM or of a frame or file of cohorts."""
    if isinstance(source, str) and not is_file_name(source):
        definition, start = "cohort_definition_id", "cohort_start_date"
        return RecordedPeople(source, definition, tuple(numbers), "subject_id", start)
    return ListedPeople(source, "subject_id", "cohort_start_date")


def exposures(cdm: Cdm, source: str) -> str:
    """Query of the drug records: ``person_id, concept_id``, first day s, last day e, `given_end`.

    The last day is the given end, else the last day of supply, and never before the first.
    """
    start, given = f"{source}_start_date", f"{source}_end_date"
    columns = ("person_id", "drug_concept_id", start)
    if source == "drug_era":
        view, end = cdm.view(source, (*columns, given)), given
    else:
        view = cdm.view(source, columns, (given, "days_supply"))
        # greatest() passes over NULL: without days of supply the record ends where it starts.
        supply = f"{start} + CAST(greatest(days_supply, 1) - 1 AS INTEGER)"
        end = f"coalesce({given}, {supply})"
    return (
        f"SELECT person_id, drug_concept_id AS concept_id, {start} AS s, "
        f"{last_day(start, end)} AS e, {given} AS given_end FROM {view} WHERE drug_concept_id <> 0 "
        f"AND person_id IS NOT NULL AND {start} IS NOT NULL"
    )


def _early_starts(cdm: Cdm, work: Scratch, table: object) -> dict[str, float]:
    """Share of the first exposures of each arm soon after observation began."""
    columns = ("person_id", "observation_period_start_date", "observation_period_end_date")
    periods = cdm.view("observation_period", columns)
    by_arm = work.rows(
        "SELECT treatment, avg(CAST(first - observed < "
        f"{EARLY_DAYS + 1} AS INTEGER)) FROM (SELECT f.treatment, f.first, "
        f"min(o.observation_period_start_date) AS observed FROM (SELECT treatment, person_id, "
        f"min(start_date) AS first FROM {work.add(table)} GROUP BY ALL) f JOIN {periods} o "
        "ON o.person_id = f.person_id AND f.first BETWEEN o.observation_period_start_date AND "
        "o.observation_period_end_date GROUP BY f.treatment, f.person_id, f.first) GROUP BY 1"
    )
    shares = {"target": float("nan"), "comparator": float("nan")}
    names = {1: "target", 0: "comparator"}
    return shares | {names[arm]: float(share) for arm, share in by_arm if arm in names}


def as_sequence(value: object) -> Sequence[object]:
    """One or several of something as a sequence."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)
