"""What happens to people: diagnoses, deaths, and records that another program has made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from riskset._errors import CohortError, counted
from riskset.omop.cdm import Cdm, Scratch
from riskset.omop.concepts import ConceptSet
from riskset.omop.exposures import as_sequence, read_cohort_table
from riskset.omop.periods import last_day, note_backward

__all__ = [
    "CohortRecords",
    "Diagnosis",
    "Event",
    "stage_deaths",
    "stage_events",
]

INPATIENT = (9201, 262)
"""Inpatient visits, and those of the emergency room that led to one."""


@dataclass(frozen=True)
class Diagnosis:
    """Records of a set of concepts in condition_occurrence, by the day they start.

    Parameters
    ----------
    concepts : ConceptSet
    inpatient : bool
        Only those within an inpatient visit (concepts 9201 and 262 with descendants).
    """

    concepts: ConceptSet
    inpatient: bool = False


@dataclass(frozen=True)
class CohortRecords:
    """The records of a cohort, by the day they start.

    Parameters
    ----------
    definition_id : int or None
        None: all records of the table.
    source : str, path or data frame
        A table of the CDM, a file or a frame in the layout of ``cohort``.
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
        return work.keep(
            "SELECT CAST(NULL AS BIGINT) AS person_id, CAST(NULL AS DATE) AS event_date WHERE false"
        )
    return work.keep(
        " UNION ".join(f"SELECT person_id, event_date FROM ({query})" for query in queries)
    )


def stage_deaths(cdm: Cdm, work: Scratch) -> str:
    """First recorded day of death of each person: ``person_id, event_date``."""
    view = cdm.view("death", ("person_id", "death_date"), needed=False)
    found = work.keep(
        "SELECT person_id, min(death_date) AS event_date, max(death_date) AS last_date "
        f"FROM {view} WHERE person_id IS NOT NULL AND death_date IS NOT NULL GROUP BY 1"
    )
    (n,) = work.row(f"SELECT count(*) FROM {found} WHERE last_date > event_date")
    if n:
        cdm.note(
            "several_deaths",
            f"{counted(n, 'person', 'people')} of table death {'has' if n == 1 else 'have'} "
            "several dates of death; the first counts.",
        )
    return found


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
    conditions = cdm.view(
        "condition_occurrence", ("person_id", "condition_concept_id", "condition_start_date")
    )
    concepts = diagnosis.concepts.stage(cdm, work)
    query = (
        f"SELECT x.person_id, x.condition_start_date AS event_date FROM {conditions} x "
        f"JOIN {concepts} k ON k.concept_id = x.condition_concept_id "
        "WHERE x.condition_start_date IS NOT NULL"
    )
    if not diagnosis.inpatient:
        return query
    visits = cdm.view(
        "visit_occurrence",
        ("person_id", "visit_concept_id", "visit_start_date"),
        ("visit_end_date",),
    )
    note_backward(cdm, work, visits, "visit_occurrence", "visit_start_date", "visit_end_date")
    known = cdm.n_rows("concept_ancestor") > 0
    inpatient = ConceptSet(INPATIENT, descendants=known).stage(cdm, work)
    return (
        f"{query} AND EXISTS (SELECT 1 FROM {visits} v JOIN {inpatient} i "
        "ON i.concept_id = v.visit_concept_id WHERE v.person_id = x.person_id "
        "AND x.condition_start_date BETWEEN v.visit_start_date AND "
        f"{last_day('v.visit_start_date', 'v.visit_end_date')})"
    )
