"""Records of a person by domain: what was recorded, from which day to which."""

from typing import NamedTuple

from riskset.omop.cdm import Cdm, Scratch
from riskset.omop.exposures import exposures, joined
from riskset.omop.groups import ancestors_known, concept_view, is_ingredient

__all__ = ["DOMAINS", "measurement_query", "record_query"]

ERA_GAP = 30


class _Table(NamedTuple):
    """Where the records of a domain are."""

    name: str
    concept: str
    start: str
    end: str | None = None


DOMAINS = {
    "condition": _Table(
        "condition_era",
        "condition_concept_id",
        "condition_era_start_date",
        "condition_era_end_date",
    ),
    "drug": _Table("drug_era", "drug_concept_id", "drug_era_start_date", "drug_era_end_date"),
    "procedure": _Table("procedure_occurrence", "procedure_concept_id", "procedure_date"),
    "measurement": _Table("measurement", "measurement_concept_id", "measurement_date"),
    "observation": _Table("observation", "observation_concept_id", "observation_date"),
}


def record_query(cdm: Cdm, work: Scratch, domain: str) -> str:
    """Query of the records of a domain: ``person_id, concept_id``, first day s and last day e.

    Eras that a CDM lacks are built from its records, 30 days apart at most.
    """
    if domain in ("condition", "drug") and not cdm.n_rows(DOMAINS[domain].name):
        return _built_eras(cdm, work, domain)
    name, concept, start, end = DOMAINS[domain]
    columns = ("person_id", concept, start)
    view = cdm.view(name, columns, () if end is None else (end,), needed=False)
    last = start if end is None else f"greatest(coalesce({end}, {start}), {start})"
    return (
        f"SELECT person_id, {concept} AS concept_id, {start} AS s, {last} AS e FROM {view} "
        f"WHERE {concept} > 0"
    )


def measurement_query(cdm: Cdm) -> str:
    """Query of measurements that have a value, with their unit (0 for none) and range."""
    view = cdm.view(
        "measurement",
        ("person_id", "measurement_concept_id", "measurement_date"),
        ("measurement_id", "value_as_number", "unit_concept_id", "range_low", "range_high"),
        needed=False,
    )
    return (
        "SELECT person_id, measurement_concept_id AS concept_id, measurement_date AS s, "
        "measurement_date AS e, measurement_id, value_as_number AS value, "
        f"coalesce(unit_concept_id, 0) AS unit, range_low, range_high FROM {view} "
        "WHERE measurement_concept_id > 0 AND value_as_number IS NOT NULL"
    )


def _built_eras(cdm: Cdm, work: Scratch, domain: str) -> str:
    source = "condition_occurrence" if domain == "condition" else "drug_exposure"
    if not cdm.n_rows(source):
        cdm.note("missing_table", f"the CDM has neither {DOMAINS[domain].name} nor {source}.")
        return (
            "SELECT NULL::BIGINT AS person_id, NULL::BIGINT AS concept_id, NULL::DATE AS s, "
            "NULL::DATE AS e WHERE false"
        )
    cdm.note("eras_built", f"{DOMAINS[domain].name} is empty; eras are built from {source}.")
    records = _conditions(cdm) if domain == "condition" else _ingredients(cdm)
    kept = work.keep(f"SELECT DISTINCT person_id, concept_id, s, e FROM ({records})")
    return joined(kept, "person_id, concept_id", ERA_GAP)


def _conditions(cdm: Cdm) -> str:
    start, end = "condition_start_date", "condition_end_date"
    columns = ("person_id", "condition_concept_id", start)
    view = cdm.view("condition_occurrence", columns, (end,))
    return (
        f"SELECT person_id, condition_concept_id AS concept_id, {start} AS s, "
        f"greatest(coalesce({end}, {start}), {start}) AS e FROM {view} "
        "WHERE condition_concept_id > 0"
    )


def _ingredients(cdm: Cdm) -> str:
    """Exposures to ingredients; to the drugs as they are if ingredients are not known."""
    own = exposures(cdm, "drug_exposure")
    if not ancestors_known(cdm):
        cdm.note(
            "no_ingredients",
            "concept_ancestor is empty, so drug eras are of the drugs as they were recorded, not "
            "of their ingredients.",
        )
        return own
    ancestors = cdm.view("concept_ancestor", ("ancestor_concept_id", "descendant_concept_id"))
    return (
        "SELECT x.person_id, a.ancestor_concept_id AS concept_id, x.s, x.e FROM "
        f"({own}) x JOIN {ancestors} a ON a.descendant_concept_id = x.concept_id "
        f"JOIN {concept_view(cdm)} c ON c.concept_id = a.ancestor_concept_id "
        f"WHERE {is_ingredient('c')}"
    )
