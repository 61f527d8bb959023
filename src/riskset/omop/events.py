"""Events of people: diagnoses, deaths, and records of cohort tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from riskset._errors import CohortError, InputError
from riskset._messages import Value
from riskset.omop.cdm import Cdm
from riskset.omop.concepts import ConceptSet
from riskset.omop.exposures import as_sequence, read_cohort_table
from riskset.omop.record_tables import TABLES
from riskset.omop.records import inpatient_query, record_query
from riskset.omop.scratch import Scratch

__all__ = ["CONDITIONS", "CohortRecords", "Diagnosis", "Event", "stage_deaths", "stage_events"]

CONDITIONS = ("condition_occurrence",)
"""Where diagnoses are looked for by default."""


@dataclass(frozen=True)
class Diagnosis:
    """Records of a concept set, dated by their start.

    Parameters
    ----------
    concepts : ConceptSet
    inpatient : bool
        Only records that start within an inpatient visit.
    tables : str or sequence of str
        Tables of the CDM to search: condition_occurrence, condition_era, drug_exposure, drug_era,
        procedure_occurrence, device_exposure, measurement, observation or visit_occurrence. If the
        CDM lacks some of them, they count as empty, with a note.
    first : bool
        Only the first record of a person, whether it is within observation or not.

    Raises
    ------
    InputError
        If a table is not one of these.

    Examples
    --------
    >>> import riskset as rs
    >>> heart_failure = rs.omop.Diagnosis(rs.omop.ConceptSet([316139]), inpatient=True)
    >>> arms = [rs.omop.ConceptSet(ids) for ids in ([974166, 1395058], [1308216, 1341927])]
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(500)) as cdm:
    ...     cohort = rs.omop.Eligibility().select(cdm, rs.omop.NewUserCohort(*arms).read(cdm))
    ...     population = rs.omop.TimeAtRisk(risk_end=None).follow(cdm, cohort, heart_failure)
    >>> population.status
    'ok'
    """

    concepts: ConceptSet
    inpatient: bool = False
    tables: str | Sequence[str] = CONDITIONS
    first: bool = False

    def __post_init__(self) -> None:
        tables = (self.tables,) if isinstance(self.tables, str) else tuple(self.tables)
        for table in tables:
            if table not in TABLES:
                raise InputError.wrong_option("tables", table, tuple(TABLES))
        if not tables:
            raise InputError("`tables` is empty.", hint="name at least one table of events.")
        object.__setattr__(self, "tables", tables)


@dataclass(frozen=True)
class CohortRecords:
    """Records of a cohort, dated by their start.

    Parameters
    ----------
    definition_id : int or None
        None selects all records of the table.
    source : str, path or data frame
        A table of the CDM, a file or a frame in the layout of ``cohort``.

    Examples
    --------
    >>> import datetime
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> record = {
    ...     "cohort_definition_id": 3,
    ...     "subject_id": 1,
    ...     "cohort_start_date": datetime.date(2015, 5, 1),
    ...     "cohort_end_date": datetime.date(2015, 5, 9),
    ... }
    >>> outcome = rs.omop.CohortRecords(3, pa.Table.from_pylist([record]))
    >>> outcome.definition_id
    3
    """

    definition_id: int | None
    source: object = "cohort"


Event: TypeAlias = ConceptSet | Diagnosis | CohortRecords | int | Literal["death"] | object
"""A kind of event: a `ConceptSet` (its diagnoses), a `Diagnosis`, "death", the definition of a
cohort, its `CohortRecords`, or a data frame with ``person_id`` and ``event_date``."""


def stage_events(cdm: Cdm, work: Scratch, events: Event | Sequence[Event]) -> str:
    """Events of one or several kinds as a temporary table ``person_id, event_date``."""
    queries = [_query(cdm, work, event) for event in as_sequence(events)]
    if not queries:
        return work.values("person_id,event_date", (), ("BIGINT", "DATE"))
    return work.keep(
        " UNION ".join(f"SELECT person_id, event_date FROM ({query})" for query in queries)
    )


def stage_deaths(cdm: Cdm, work: Scratch) -> str:
    """First recorded day of death of each person: ``person_id, event_date``."""
    view = cdm.view("death", ("person_id", "death_date"), needed=False)
    deaths = work.keep(
        "SELECT person_id, min(death_date) AS event_date, max(death_date) AS last_date "
        f"FROM {view} WHERE person_id IS NOT NULL AND death_date IS NOT NULL GROUP BY 1"
    )
    (n,) = work.row(f"SELECT count(*) FROM {deaths} WHERE last_date > event_date")
    if n:
        cdm.note(
            "several_deaths",
            "{n:person|people} of table death {n:?has|have} several dates of death; the first "
            "counts.",
            n=Value("count", n),
        )
    return deaths


def _query(cdm: Cdm, work: Scratch, event: Event) -> str:
    if isinstance(event, ConceptSet):
        event = Diagnosis(event)
    if isinstance(event, Diagnosis):
        return _diagnoses(cdm, work, event)
    if isinstance(event, str):
        if event != "death":
            raise CohortError(
                "BadEvent",
                f"the only event with a name is 'death', but one is {event!r}.",
                hint="pass a ConceptSet, a Diagnosis, a cohort_definition_id or a data frame.",
            )
        return f"SELECT person_id, event_date FROM {stage_deaths(cdm, work)}"
    if isinstance(event, int):
        event = CohortRecords(event)
    if isinstance(event, CohortRecords):
        name = read_cohort_table(cdm, work, event.source, event.definition_id)
        return f"SELECT person_id, start_date AS event_date FROM {name}"
    view = cdm.view(event, ("person_id", "event_date"))
    return f"SELECT * FROM {view} WHERE person_id IS NOT NULL AND event_date IS NOT NULL"


def _diagnoses(cdm: Cdm, work: Scratch, diagnosis: Diagnosis) -> str:
    concepts = diagnosis.concepts.stage(cdm, work)
    check_any_table(cdm, diagnosis.tables)
    queries = [
        f"SELECT x.person_id, x.concept_id, x.s FROM ({record_query(cdm, work, table)}) x "
        f"SEMI JOIN {concepts} k USING (concept_id) "
        "WHERE x.person_id IS NOT NULL AND x.s IS NOT NULL"
        for table in diagnosis.tables
    ]
    records = " UNION ALL ".join(queries)
    if diagnosis.inpatient:
        records = inpatient_query(cdm, work, records)
    if diagnosis.first:
        return f"SELECT person_id, min(s) AS event_date FROM ({records}) GROUP BY 1"
    return f"SELECT person_id, s AS event_date FROM ({records})"


def check_any_table(cdm: Cdm, tables: Sequence[str]) -> None:
    """Raise CohortError "MissingTable" if a CDM has none of some tables."""
    if not {*tables} & {*cdm.tables}:
        raise CohortError(
            "MissingTable",
            f"{cdm.source} has no table {' or '.join(tables)}, in which events are looked for.",
            hint=f"there are: {', '.join(cdm.tables) or 'none'}.",
            details={"table": tables[0]},
        )
