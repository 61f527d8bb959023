"""Records of people by table: what was recorded, from which day to which."""

from collections.abc import Sequence

from riskset._messages import Value
from riskset.omop.cdm import Cdm
from riskset.omop.cdm_tables import ALL_DAYS, DayRange
from riskset.omop.concepts import ConceptSet
from riskset.omop.exposures import exposures
from riskset.omop.groups import ancestors_known, concept_view, is_ingredient
from riskset.omop.observation import joined, last_day, note_backward
from riskset.omop.record_tables import CONDITIONS, ERAS, TABLES, RecordColumns
from riskset.omop.scratch import Scratch

__all__ = ["inpatient_query", "record_query"]

ERA_GAP = 30

INPATIENT = (9201, 38004311, 8920, 262)
"""Kinds of inpatient visits, with those of an emergency room that led to one."""


def record_query(
    cdm: Cdm,
    work: Scratch,
    table: str,
    values: Sequence[str] = (),
    days: DayRange = ALL_DAYS,
) -> str:
    """Query of the records of a table: ``person_id, concept_id``, first day s and last day e.

    Eras that a CDM lacks are built from its records, 30 days apart at most. `values` are more
    columns of the table; a note names those that it lacks. Records of other than these `days` may
    be missing.
    """
    if table in ERAS and not cdm.has_rows(table):
        return _built_eras(cdm, work, table)
    cdm.note_absent(table, values)
    return _query(cdm, work, table, TABLES[table], values, days=days)


def _query(
    cdm: Cdm,
    work: Scratch,
    table: str,
    columns: RecordColumns,
    values: Sequence[str] = (),
    *,
    needed: bool = False,
    days: DayRange = ALL_DAYS,
) -> str:
    concept, start, end = columns
    optional = (*([] if end is None else [end]), *values)
    view = cdm.view(table, ("person_id", concept, start), optional, needed=needed, days=days)
    last = start
    if end is not None:
        note_backward(cdm, work, view, table, start, end)
        last = last_day(start, end)
    more = "".join(f", {column}" for column in values)
    return (
        f"SELECT person_id, {concept} AS concept_id, {start} AS s, {last} AS e{more} FROM {view} "
        f"WHERE {concept} > 0"
    )


def inpatient_query(cdm: Cdm, work: Scratch, records: str, days: DayRange = ALL_DAYS) -> str:
    """Those of some records, of these `days`, that start within an inpatient visit."""
    visits = record_query(cdm, work, "visit_occurrence", days=days)
    inpatient = ConceptSet(INPATIENT, descendants=ancestors_known(cdm)).stage(cdm, work)
    return (
        f"SELECT * FROM ({records}) r SEMI JOIN (SELECT v.* FROM ({visits}) v JOIN {inpatient} i "
        "USING (concept_id)) v ON v.person_id = r.person_id AND r.s BETWEEN v.s AND v.e"
    )


def _built_eras(cdm: Cdm, work: Scratch, table: str) -> str:
    source = ERAS[table]
    names = {"table": Value("name", table), "source": Value("name", source)}
    if not cdm.has_rows(source):
        cdm.note("missing_table", "the CDM has neither {table} nor {source}.", **names)
        return (
            "SELECT NULL::BIGINT AS person_id, NULL::BIGINT AS concept_id, NULL::DATE AS s, "
            "NULL::DATE AS e WHERE false"
        )
    cdm.note("eras_built", "{table} is empty; eras are built from {source}.", **names)
    records = (
        _query(cdm, work, source, CONDITIONS, needed=True)
        if table == "condition_era"
        else _ingredients(cdm)
    )
    kept = work.keep(f"SELECT DISTINCT person_id, concept_id, s, e FROM ({records})")
    return joined(kept, "person_id, concept_id", ERA_GAP)


def _ingredients(cdm: Cdm) -> str:
    """Exposures to ingredients; to the drugs as they are if ingredients are not known."""
    drugs = exposures(cdm, "drug_exposure")
    if not ancestors_known(cdm):
        cdm.note(
            "no_ingredients",
            "concept_ancestor is empty, so drug eras are of the drugs as they were recorded, not "
            "of their ingredients.",
        )
        return drugs
    ancestors = cdm.view("concept_ancestor", ("ancestor_concept_id", "descendant_concept_id"))
    return (
        "SELECT x.person_id, a.ancestor_concept_id AS concept_id, x.s, x.e FROM "
        f"({drugs}) x JOIN {ancestors} a ON a.descendant_concept_id = x.concept_id "
        f"JOIN {concept_view(cdm)} c ON c.concept_id = a.ancestor_concept_id "
        f"WHERE {is_ingredient('c')}"
    )
