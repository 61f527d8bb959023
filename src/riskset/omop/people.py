"""Ages of people, and checks of table person."""

from typing import Literal

from riskset._errors import CohortError, counted
from riskset.omop.cdm import Cdm
from riskset.omop.scratch import Scratch

__all__ = ["BIRTH", "AgeMethod", "age_sql", "check_ages", "check_known"]

AgeMethod = Literal["completed_years", "year_difference"]

BIRTH = (("person_id", "year_of_birth"), ("month_of_birth", "day_of_birth"))
"""Columns of table person that ages need, and those that they use."""
MAX_AGE = 125


def age_sql(person: str, day: str, method: AgeMethod) -> str:
    """Age in years on a day, of the row `person` of table person.

    Completed years by default, with January and the first for missing months and days; else the
    difference of the calendar years.
    """
    years = f"CAST(year({day}) - {person}.year_of_birth AS INTEGER)"
    if method == "year_difference":
        return years
    birthday = f"(coalesce({person}.month_of_birth, 1), coalesce({person}.day_of_birth, 1))"
    return f"({years} - CAST((month({day}), day({day})) < {birthday} AS INTEGER))"


def check_ages(work: Scratch, table: str) -> None:
    """Raise CohortError "BadBirthDate" for impossible values of the column ``age``."""
    bad = f"age IS NULL OR age < 0 OR age > {MAX_AGE}"
    (n,) = work.row(f"SELECT count(DISTINCT person_id) FROM {table} WHERE {bad}")
    if not n:
        return
    examples = work.rows(
        f"SELECT DISTINCT person_id, age FROM {table} WHERE {bad} ORDER BY ALL LIMIT 3"
    )
    listed = ", ".join(f"person {p}: {'no year' if age is None else age}" for p, age in examples)
    raise CohortError(
        "BadBirthDate",
        f"at index {counted(n, 'person', 'people')} would be younger than 0 or older than "
        f"{MAX_AGE} ({listed}).",
        hint="correct year_of_birth in table person, or leave these people out of the cohorts.",
        details={"count": n, "ids": [p for p, _ in examples]},
    )


def check_known(cdm: Cdm, work: Scratch, table: str) -> None:
    """Raise CohortError "UnknownPerson" if somebody is not in table person, if there is one."""
    if "person" not in cdm.tables:
        cdm.note("missing_table", "the CDM has no table person; ages and sexes are not known.")
        return
    person = cdm.view("person", ("person_id",))
    strangers = (
        f"FROM (SELECT DISTINCT person_id FROM {table}) t ANTI JOIN {person} USING (person_id)"
    )
    (n,) = work.row(f"SELECT count(*) {strangers}")
    if n:
        ids = [p for (p,) in work.rows(f"SELECT person_id {strangers} ORDER BY 1 LIMIT 3")]
        raise CohortError(
            "UnknownPerson",
            f"{counted(n, 'person', 'people')} of the cohorts {'has' if n == 1 else 'have'} no row "
            f"in table person (such as {', '.join(map(str, ids))}).",
            hint="check that the cohorts come from this CDM.",
            details={"count": n, "ids": ids},
        )
