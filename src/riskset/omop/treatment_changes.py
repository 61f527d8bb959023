"""When people of a study cohort leave their treatment, and the cohort as of later days."""

from dataclasses import replace
from typing import Any

import numpy as np

from riskset._types import Index, Rows
from riskset.data.frame import arrow_table
from riskset.omop.cdm import Cdm
from riskset.omop.study_cohort import StudyCohort

__all__ = ["as_of_days", "days_to_change"]


def days_to_change(cdm: Cdm, cohort: StudyCohort, episodes: Any = None) -> Rows:
    """Day after index on which each row leaves its treatment (n,); infinite if it never does.

    It is the last day of the exposure, unless observation ends first, or the first day of an
    episode of the other arm, if that is earlier. `episodes` is the table of `Cohorts`; without it,
    only the end of the exposure counts.
    """
    with cdm.scratch() as work:
        rows = work.add(cohort.table)
        other = "SELECT NULL::BIGINT AS row_id, NULL::INTEGER AS day WHERE false"
        if episodes is not None:
            other = (
                "SELECT c.row_id, CAST(min(e.start_date - c.index_date) AS INTEGER) AS day "
                f"FROM {rows} c JOIN {work.add(episodes)} e ON e.person_id = c.person_id AND "
                "e.treatment <> c.treatment AND e.start_date >= c.index_date GROUP BY 1"
            )
        # least() passes over NULL.
        table = work.arrow(
            "SELECT least(CASE WHEN days_to_cohort_end < days_to_obs_end THEN days_to_cohort_end "
            f"END, o.day) AS day FROM {rows} c LEFT JOIN ({other}) o USING (row_id) ORDER BY row_id"
        )
    day = np.asarray(table.column("day").to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.where(np.isnan(day), np.inf, day)


def as_of_days(cdm: Cdm, cohort: StudyCohort, rows: Index, days: Index) -> StudyCohort:
    """The cohort as it is some days after index: rows (m,) of it, numbered 1, 2, ..., m.

    Covariates of it are those that are known on that day.
    """
    number = np.arange(1, rows.size + 1)
    row_id = np.asarray(cohort.table.column("row_id").to_numpy())[rows]
    moved = arrow_table({"number": number, "row_id": row_id, "moved": days})
    with cdm.scratch() as work:
        table = work.arrow(
            "SELECT m.number AS row_id, c.person_id, c.treatment, "
            "c.index_date + CAST(m.moved AS INTEGER) AS index_date, "
            "CAST(c.days_from_obs_start + m.moved AS INTEGER) AS days_from_obs_start, "
            "CAST(greatest(c.days_to_cohort_end - m.moved, 0) AS INTEGER) AS days_to_cohort_end, "
            "CAST(greatest(c.days_to_obs_end - m.moved, 0) AS INTEGER) AS days_to_obs_end, "
            f"c.cohort_end_reason, c.obs_end_reason FROM {work.add(moved)} m "
            f"JOIN {work.add(cohort.table)} c USING (row_id) ORDER BY m.number"
        )
    return replace(cohort, table=table)
