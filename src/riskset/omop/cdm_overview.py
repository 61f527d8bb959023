"""Overview of the records of a CDM by table.

Read it before a study: people can be observed for decades before the first procedure was recorded,
and a washout by observation does not detect this.
"""

from typing import Any

from riskset.omop.cdm import Cdm
from riskset.omop.record_tables import TABLES

__all__ = ["overview"]

NAMES = (
    "condition_occurrence",
    "drug_exposure",
    "procedure_occurrence",
    "measurement",
    "observation",
    "visit_occurrence",
)
DATES = {name: TABLES[name][:2] for name in NAMES} | {"death": ("cause_concept_id", "death_date")}
"""Table -> its columns of the concept and of the first day."""


def overview(cdm: Cdm) -> Any:
    """Return an overview of the record tables as an Arrow table.

    Returns
    -------
    Arrow table
        ``table``, ``rows``, ``persons``, ``first_date``, ``last_date``, ``unmapped`` (rows with
        concept 0 or without a concept) and ``outside_observation`` (rows outside all observation
        periods of the person). Missing tables have 0 rows.

    Examples
    --------
    >>> import riskset as rs
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(200)) as cdm:
    ...     found = rs.omop.overview(cdm)
    >>> found.column("table").to_pylist()[0], found.column("outside_observation").to_pylist()[0]
    ('condition_occurrence', 46)
    """
    start, end = "observation_period_start_date", "observation_period_end_date"
    periods = cdm.view("observation_period", ("person_id", start, end))
    queries = []
    for k, (name, (concept, date)) in enumerate(DATES.items()):
        view = cdm.view(name, ("person_id", date), (concept,), needed=False)
        inside = (
            f"EXISTS (SELECT 1 FROM {periods} o WHERE o.person_id = x.person_id "
            f"AND x.{date} BETWEEN o.{start} AND o.{end})"
        )
        queries.append(
            f"SELECT {k} AS k, '{name}' AS \"table\", count(*) AS rows, "
            f"count(DISTINCT person_id) AS persons, min({date}) AS first_date, "
            f"max({date}) AS last_date, count(*) FILTER (coalesce({concept}, 0) = 0) AS unmapped, "
            "count(*) FILTER (NOT is_inside) AS outside_observation "
            f"FROM (SELECT x.*, {inside} AS is_inside FROM {view} x)"
        )
    with cdm.scratch() as work:
        return work.arrow(f"SELECT * EXCLUDE (k) FROM ({' UNION ALL '.join(queries)}) ORDER BY k")
