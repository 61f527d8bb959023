"""How exposures and outcomes are found in a CDM: by concepts, or as cohorts."""

from pathlib import Path

from riskset._settings import setting, settings
from riskset.ohdsi.cohort_definitions import CohortDefinition
from riskset.ohdsi.negative_controls import Occurrence
from riskset.omop.concepts import ConceptItem, ConceptSet

__all__ = ["Codes", "ControlList"]


@settings
class Codes:
    """Concepts of a CDM, or the records of a cohort that exists already."""

    concepts: tuple[int | ConceptItem, ...] = setting("ids of concepts, or concepts with flags", ())
    concept_set: str | None = setting(
        "a file of a concept set that ATLAS exported, instead of concepts", None
    )
    concept_set_member: str | None = setting(
        "the id or the name of the concept set, where the file has several", None
    )
    descendants: bool = setting("whether descendants of the ids count, too", True)
    exclude: tuple[int, ...] = setting(
        "ids of concepts that are left out, with their descendants", ()
    )
    cohort: int | None = setting(
        "the cohort_definition_id in the cohort table or in the cohort definitions, instead of "
        "concepts",
        None,
    )
    definition: str | None = setting(
        "a file of a cohort definition that ATLAS exported, instead of concepts", None
    )

    @property
    def is_cohort(self) -> bool:
        """Whether records of a cohort count instead of concepts."""
        return self.cohort is not None or self.definition is not None

    def as_set(self, folder: Path, name: str = "") -> ConceptSet:
        """The concepts; the path of a file is relative to `folder`."""
        if self.concept_set is not None:
            return ConceptSet.from_json(
                folder / self.concept_set, name=name, member=self.concept_set_member
            )
        return ConceptSet(
            self.concepts, descendants=self.descendants, exclude=self.exclude, name=name
        )

    def cohort_definition(self, folder: Path, number: int) -> CohortDefinition | None:
        """The cohort definition of the file, if there is one, as the cohort with this number."""
        if self.definition is None:
            return None
        return CohortDefinition.from_json(folder / self.definition, id=number)


@settings
class ControlList:
    """A list of negative controls, as CohortGenerator reads it, in addition to the outcomes."""

    file: str = setting(
        "a CSV file with outcome_concept_id, cohort_name and, unless it is the number of the row, "
        "cohort_id"
    )
    occurrence: Occurrence = setting(
        "whether all records of a person count, or only the first one", "all"
    )
    descendants: bool = setting("whether descendants of the concepts count, too", False)
    cohorts: bool = setting(
        "take the records of each cohort_id from the cohorts of the data, not those of the concept",
        False,
    )
