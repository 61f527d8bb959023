"""Covariates from what a person is at the index date: demographics, observation, care site."""

from collections.abc import Callable, Iterator, Mapping

from riskset._errors import CohortError, counted
from riskset._messages import Note, Value
from riskset.omop.cdm import Cdm
from riskset.omop.groups import concept_view
from riskset.omop.people import BIRTH, AgeMethod, age_sql, check_ages
from riskset.omop.scratch import Scratch

__all__ = ["SCALAR", "person_queries", "stage_ages"]

SCALAR = 1000
"""A covariate without a concept has the id 1000 + analysis."""

LARGEST_SITE = 2**53 // 1000
"""The ids of covariates of a larger care site would not be exact in other programs."""

DATES = {
    "index year": "year(index_date)",
    "index month": "month(index_date)",
    "index year and month": "year(index_date) * 100 + month(index_date)",
}
DAYS = {
    "prior observation": "days_from_obs_start",
    "post observation": "days_to_obs_end",
    "time in cohort": "days_to_cohort_end",
}
"""Characteristic -> column of the study cohort."""

CLASSES = {"race": "race_concept_id", "ethnicity": "ethnicity_concept_id"}
"""Characteristic, which is also a class of concepts -> column of table person."""


def person_queries(
    cdm: Cdm,
    work: Scratch,
    cohort: str,
    wanted: Mapping[str, int],
    ages: Callable[[], str],
    note: Callable[[Note], None],
) -> Iterator[str]:
    """Queries of ``row_id, covariate_id, value``.

    `wanted` maps a characteristic to the number of its analysis; `ages` gives the table of
    `stage_ages`.
    """
    for what, analysis in wanted.items():
        if what in DATES:
            group = f"CAST({DATES[what]} AS BIGINT)"
            yield f"SELECT row_id, {group} * 1000 + {analysis}, 1 FROM {cohort}"
        elif what in DAYS:
            yield f"SELECT row_id, {SCALAR + analysis}, {DAYS[what]} FROM {cohort}"
        elif what == "age":
            yield f"SELECT row_id, {SCALAR + analysis}, age FROM {ages()}"
        elif what == "age group":
            yield f"SELECT row_id, CAST(age // 5 AS BIGINT) * 1000 + {analysis}, 1 FROM {ages()}"
        elif what == "sex":
            person = cdm.view("person", ("person_id", "gender_concept_id"))
            yield (
                f"SELECT c.row_id, p.gender_concept_id * 1000 + {analysis}, 1 FROM {cohort} c "
                f"JOIN {person} p USING (person_id) WHERE p.gender_concept_id > 0"
            )
        elif what in CLASSES:
            yield _of_class(cdm, work, cohort, what, analysis, note)
        elif what == "care site":
            yield _care_sites(cdm, work, cohort, analysis)


def stage_ages(cdm: Cdm, work: Scratch, cohort: str, method: AgeMethod) -> str:
    """Table ``row_id, person_id, gender_concept_id, age`` of everybody, checked by `check_ages`."""
    columns, optional = BIRTH
    person = cdm.view("person", columns, (*optional, "gender_concept_id"))
    aged = work.keep(
        "SELECT c.row_id, c.person_id, p.gender_concept_id, "
        f"{age_sql('p', 'c.index_date', method)} AS age FROM {cohort} c "
        f"JOIN {person} p USING (person_id)"
    )
    check_ages(work, aged)
    return aged


def _of_class(
    cdm: Cdm, work: Scratch, cohort: str, what: str, analysis: int, note: Callable[[Note], None]
) -> str:
    """Race or ethnicity, where table concept says that the concept is one."""
    person = cdm.view("person", ("person_id", CLASSES[what]))
    known = f"SELECT concept_id FROM {concept_view(cdm)} WHERE lower(concept_class_id) = '{what}'"
    coded = work.keep(
        f"SELECT c.row_id, p.{CLASSES[what]} AS concept_id, k.concept_id IS NOT NULL AS is_known "
        f"FROM {cohort} c JOIN {person} p USING (person_id) LEFT JOIN "
        f"(SELECT DISTINCT * FROM ({known})) k ON k.concept_id = p.{CLASSES[what]} "
        f"WHERE p.{CLASSES[what]} > 0"
    )
    (strange,) = work.row(f"SELECT count(*) FROM {coded} WHERE NOT is_known")
    if strange:
        text = (
            "{n:row|rows} of the cohort {n:?has|have} a {column} that table concept does not list "
            f"as {what}; they have no covariate of {what}."
        )
        values = {"n": Value("count", strange), "column": Value("name", CLASSES[what])}
        note(Note(f"unknown_{what}", (), text, values))
    return f"SELECT row_id, concept_id * 1000 + {analysis}, 1 FROM {coded} WHERE is_known"


def _care_sites(cdm: Cdm, work: Scratch, cohort: str, analysis: int) -> str:
    """The site of a visit that includes the index date, else the person's own.

    Details of visits come before visits; of several, the one that ends first counts.
    """
    for table in ("person", "visit_detail", "visit_occurrence"):
        cdm.note_absent(table, ["care_site_id"])
    person = cdm.view("person", ("person_id",), ("care_site_id",))
    sources = [
        f"SELECT c.row_id, 3 AS place, NULL::DATE AS last, p.care_site_id FROM {cohort} c "
        f"JOIN {person} p USING (person_id)"
    ]
    for place, table in ((1, "visit_detail"), (2, "visit_occurrence")):
        prefix = "visit_detail" if place == 1 else "visit"
        start, end = f"{prefix}_start_date", f"{prefix}_end_date"
        view = cdm.view(table, ("person_id", start), (end, "care_site_id"), needed=False)
        sources.append(
            f"SELECT c.row_id, {place} AS place, v.{end} AS last, v.care_site_id FROM {cohort} c "
            f"JOIN {view} v ON v.person_id = c.person_id AND v.{start} <= c.index_date "
            f"AND coalesce(v.{end}, v.{start}) >= c.index_date"
        )
    sites = work.keep(
        f"SELECT row_id, care_site_id FROM ({' UNION ALL '.join(sources)}) "
        "WHERE care_site_id IS NOT NULL QUALIFY row_number() OVER "
        "(PARTITION BY row_id ORDER BY place, last NULLS LAST, care_site_id) = 1"
    )
    bad = f"care_site_id < 0 OR care_site_id > {LARGEST_SITE}"
    n, example = work.row(f"SELECT count(*), min(care_site_id) FROM {sites} WHERE {bad}")
    if n:
        raise CohortError(
            "BadId",
            f"{counted(n, 'row')} of the cohort {'has' if n == 1 else 'have'} a care_site_id that "
            f"is negative or above {LARGEST_SITE} (such as {example}), too large for the id of a "
            "covariate.",
            hint="leave out the analysis CareSiteId, or number the care sites anew.",
            details={"count": n, "ids": [example]},
        )
    return f"SELECT row_id, care_site_id * 1000 + {analysis}, 1 FROM {sites}"
