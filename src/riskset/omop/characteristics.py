"""What people of a study are when they enter it: sex, age, race, ethnicity, year, care site."""

from collections.abc import Sequence

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Index
from riskset.omop.cdm import Cdm
from riskset.omop.cdm_tables import ListedPeople
from riskset.omop.covariate_ref import concept_names
from riskset.omop.people import BIRTH, age_sql, check_ages
from riskset.omop.study_cohort import StudyCohort

__all__ = ["CHARACTERISTICS", "UNKNOWN", "characteristics"]

CHARACTERISTICS = ("sex", "age", "race", "ethnicity", "year", "care_site", "provider")
SEXES = {8507: "male", 8532: "female"}
CONCEPTS = {
    "sex": "gender_concept_id",
    "race": "race_concept_id",
    "ethnicity": "ethnicity_concept_id",
}
PLACES = {"care_site": "care_site_id", "provider": "provider_id"}
"""Where and by whom a person is cared for, by their ids."""
UNKNOWN = "unknown"
"""What the CDM says nothing of: concept 0, or none."""


def characteristics(cdm: Cdm, cohort: StudyCohort, names: Sequence[str]) -> dict[str, AnyArray]:
    """Characteristics of the rows of a cohort, in the order of ``row_id``.

    The calendar year of the index date and completed years of age are int64; names of concepts are
    text, "unknown" where there is none, "male" and "female", and so are ids of care sites and
    providers. Raises `InputError` if a name is
    unknown, and CohortError "MissingTable", "MissingColumn" or "BadBirthDate", if an age is
    impossible.
    """
    for name in names:
        if name not in CHARACTERISTICS:
            raise InputError.unknown_name("characteristic", name, CHARACTERISTICS)
    cdm.about(ListedPeople(cohort.table, "person_id", "index_date"))
    columns: dict[str, AnyArray] = {}
    for name in dict.fromkeys(names):
        if name == "year":
            days = cohort.table.column("index_date").to_numpy(zero_copy_only=False)
            columns[name] = days.astype("datetime64[Y]").astype(np.int64) + 1970
        elif name == "age":
            columns[name] = _ages(cdm, cohort)
        elif name in PLACES:
            codes, place = _codes(cdm, cohort, PLACES[name])
            columns[name] = np.array([str(code) if code else UNKNOWN for code in codes])[place]
        else:
            columns[name] = _concepts(cdm, cohort, name)
    return columns


def _ages(cdm: Cdm, cohort: StudyCohort) -> AnyArray:
    with cdm.scratch() as work:
        rows, person = work.add(cohort.table), cdm.view("person", *BIRTH)
        age = age_sql("p", "c.index_date", "completed_years")
        aged = work.keep(
            f"SELECT c.row_id, c.person_id, {age} AS age FROM {rows} c "
            f"LEFT JOIN {person} p USING (person_id)"
        )
        check_ages(work, aged)
        ages = work.arrow(f"SELECT age FROM {aged} ORDER BY row_id").column("age")
    return np.asarray(ages.to_numpy(zero_copy_only=False)).astype(np.int64)


def _codes(cdm: Cdm, cohort: StudyCohort, column: str) -> tuple[Index, Index]:
    """Different numbers in a column of `person`, 0 for none, and the place of that of each row."""
    with cdm.scratch() as work:
        rows, person = work.add(cohort.table), cdm.view("person", ("person_id", column))
        ids = work.arrow(
            f"SELECT coalesce(p.{column}, 0) AS id FROM {rows} c "
            f"LEFT JOIN {person} p USING (person_id) ORDER BY c.row_id"
        )
    codes, place = np.unique(ids.column("id").to_numpy(), return_inverse=True)
    return codes, place


def _concepts(cdm: Cdm, cohort: StudyCohort, name: str) -> AnyArray:
    codes, place = _codes(cdm, cohort, CONCEPTS[name])
    with cdm.scratch() as work:
        known = concept_names(cdm, work, codes.tolist()) | (SEXES if name == "sex" else {})
    known[0] = UNKNOWN
    labels = [known.get(int(code), f"[unknown concept {code}]") for code in codes]
    return np.array(labels, dtype=np.str_)[place] if labels else np.empty(0, dtype=np.str_)
