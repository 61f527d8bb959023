"""Lists of negative controls, as CohortGenerator and CohortMethod read them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from riskset._errors import CohortError
from riskset.ohdsi.csv_rows import csv_rows, whole_number
from riskset.omop.concepts import ConceptSet
from riskset.omop.events import CONDITIONS, Diagnosis

__all__ = ["CONTROL_TABLES", "NegativeControl", "Occurrence", "read_negative_controls"]

CONTROL_TABLES = (*CONDITIONS, "observation")
"""Where CohortGenerator looks for the concepts of controls."""

Occurrence = Literal["all", "first"]


@dataclass(frozen=True)
class NegativeControl:
    """A negative control of a list: a concept that the treatments do not cause.

    Parameters
    ----------
    id : int
        ``cohort_id`` of its records.
    name : str
    concept : int
        ``outcome_concept_id``.

    Examples
    --------
    >>> import riskset as rs
    >>> control = rs.ohdsi.NegativeControl(101, "Ingrowing nail", 139099)
    >>> control.diagnosis(occurrence="first").tables
    ('condition_occurrence', 'observation')
    """

    id: int
    name: str
    concept: int

    def diagnosis(self, *, occurrence: Occurrence = "all", descendants: bool = False) -> Diagnosis:
        """Return the records of the control, as CohortGenerator finds them.

        Parameters
        ----------
        occurrence : {"all", "first"}
            All records of a person, or only the first one.
        descendants : bool
            Whether records of descendants of the concept count, too.
        """
        concepts = ConceptSet([self.concept], descendants=descendants, name=self.name)
        return Diagnosis(concepts, tables=CONTROL_TABLES, first=occurrence == "first")


def read_negative_controls(path: str | Path) -> tuple[NegativeControl, ...]:
    r"""Read a list of negative controls.

    Parameters
    ----------
    path : path
        CSV file with ``outcome_concept_id`` and ``cohort_name``, and optionally ``cohort_id``
        (default: the number of the row), in any case and with or without underscores.

    Raises
    ------
    CohortError
        "BadFile", or "DuplicateId" if a ``cohort_id`` is repeated.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import riskset as rs
    >>> file = Path(tempfile.mkdtemp()) / "controls.csv"
    >>> _ = file.write_text("cohort_id,cohort_name,outcome_concept_id\n101,a nail,139099\n")
    >>> rs.ohdsi.read_negative_controls(file)
    (NegativeControl(id=101, name='a nail', concept=139099),)
    """
    found: dict[int, NegativeControl] = {}
    for k, (place, row) in enumerate(csv_rows(Path(path)), start=1):
        concept = whole_number(row.get("outcomeconceptid", ""), "outcome_concept_id", place)
        number = whole_number(row["cohortid"], "cohort_id", place) if "cohortid" in row else k
        name = row.get("cohortname") or row.get("outcomename") or f"concept {concept}"
        if number in found:
            raise CohortError(
                "DuplicateId",
                f"{place}: the cohort_id {number} is also that of {found[number].name!r}.",
                hint="give each control its own id.",
                details={"cohort_definition_id": number},
            )
        found[number] = NegativeControl(number, name, concept)
    if not found:
        raise CohortError(
            "BadFile",
            f"{Path(path).name} has no rows.",
            hint="it needs the columns outcome_concept_id and cohort_name.",
        )
    return tuple(found.values())
