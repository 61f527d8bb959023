"""Cohort definitions of ATLAS: single files, and folders as CohortGenerator keeps them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from riskset._errors import CohortError
from riskset.data.documents import parse_json
from riskset.ohdsi.circe import cohort_table, statements_of
from riskset.ohdsi.csv_rows import csv_rows, whole_number
from riskset.omop.cdm import Cdm
from riskset.omop.concept_set_file import written_sets
from riskset.omop.concepts import ConceptSet

__all__ = ["CohortDefinition", "generate_cohorts", "read_cohort_definitions"]

COHORTS_FILE = "cohorts.csv"
FOLDER_HINT = (
    "CohortGenerator keeps a folder with Cohorts.csv (`cohort_id`, `cohort_name`) and with "
    "cohorts/<id or name>.json for each of them."
)
ATLAS = "ATLAS exports definitions as JSON, in the tab Export."
CIRCE_KEYS = ("PrimaryCriteria", "primaryCriteria")


@dataclass(frozen=True)
class CohortDefinition:
    """A cohort definition of ATLAS, as Circe's JSON.

    Parameters
    ----------
    id : int
        ``cohort_definition_id`` of the records.
    name : str
        Name for reports.
    expression : str
        The JSON.

    Raises
    ------
    CohortError
        "BadCohortDefinition" if the JSON is not a cohort definition.

    Examples
    --------
    >>> import riskset as rs
    >>> definition = rs.ohdsi.CohortDefinition.from_json(
    ...     {
    ...         "ConceptSets": [
    ...             {
    ...                 "id": 0,
    ...                 "name": "heart failure",
    ...                 "expression": {"items": [{"concept": {"CONCEPT_ID": 316139}}]},
    ...             }
    ...         ],
    ...         "PrimaryCriteria": {
    ...             "CriteriaList": [{"ConditionOccurrence": {"CodesetId": 0}}],
    ...             "ObservationWindow": {"PriorDays": 0, "PostDays": 0},
    ...             "PrimaryCriteriaLimit": {"Type": "First"},
    ...         },
    ...     },
    ...     id=3,
    ...     name="heart failure",
    ... )
    >>> definition
    CohortDefinition(id=3, name='heart failure')
    >>> [concepts.concepts for concepts in definition.concept_sets.values()]
    [(316139,)]
    """

    id: int
    name: str
    expression: str = field(repr=False)

    def __post_init__(self) -> None:
        _check(self._content(), self.place)

    @property
    def place(self) -> str:
        """What messages call the definition."""
        return f"the definition of {repr(self.name) if self.name else f'cohort {self.id}'}"

    def _content(self) -> Any:
        try:
            return parse_json(self.expression)
        except ValueError as error:
            raise CohortError(
                "BadCohortDefinition", f"{self.place} is not valid JSON: {error}.", hint=ATLAS
            ) from None

    @classmethod
    def from_json(
        cls, source: str | Path | object, *, id: int = 1, name: str = ""
    ) -> "CohortDefinition":
        """Read a cohort definition from a file, or from what JSON holds.

        Parameters
        ----------
        source : path, or what JSON holds
            What ATLAS exports, alone or as the ``expression`` of what WebAPI answers.
        id : int
            ``cohort_definition_id`` of its records.
        name : str
            Name for reports. Default: the name or title in the file, or the name of the file.

        Raises
        ------
        CohortError
            "BadCohortDefinition" if the file cannot be read or is not a cohort definition.
        """
        place = "the definition"
        if isinstance(source, str | Path):
            path = Path(source)
            place, source = path.name, _read(path)
            name = name or _name_of(source) or path.stem
        expression = _expression(source, place)
        _check(expression, place)
        return cls(id, name or _name_of(source), json.dumps(expression))

    @property
    def concept_sets(self) -> dict[str, ConceptSet]:
        """The concept sets of the definition by name."""
        content = self._content()
        if not content.get("ConceptSets"):
            return {}
        found, _ = written_sets(content)
        return {
            one.name or str(one.id): ConceptSet.from_json(content, member=one.id)  # type: ignore[arg-type]
            for one in found
        }

    def check(self) -> None:
        """Check that duckcdm understands the definition.

        Raises
        ------
        MissingDependencyError
            If duckcdm is not installed.
        CohortError
            "BadCohortDefinition".
        """
        statements_of(self.id, self.place, self.expression, "checked")

    def generate(self, cdm: Cdm) -> Any:
        """Return the records of the cohort; see `generate_cohorts`."""
        return generate_cohorts(cdm, [self])


def generate_cohorts(cdm: Cdm, definitions: Iterable[CohortDefinition]) -> Any:
    """Find the records of cohort definitions in a CDM.

    The package duckcdm translates each definition into SQL, as ATLAS does, and the database of the
    CDM runs it.

    Parameters
    ----------
    cdm : Cdm
    definitions : iterable of CohortDefinition

    Returns
    -------
    Arrow table
        ``cohort_definition_id``, ``subject_id``, ``cohort_start_date``, ``cohort_end_date``,
        sorted: a source for `riskset.omop.CohortTable` and `riskset.omop.CohortRecords`.

    Raises
    ------
    MissingDependencyError
        If duckcdm is not installed: ``pip install 'riskset[ohdsi]'``.
    CohortError
        "BadCohortDefinition" if a definition is not understood or its SQL fails, "DuplicateId" if
        two definitions have one id, "PartialCdm" if the CDM is in a database, of which only the
        records of some people are pulled, and errors of reading tables.

    Examples
    --------
    >>> import riskset as rs
    >>> def first(concept, domain="ConditionOccurrence"):
    ...     item = {"concept": {"CONCEPT_ID": concept}, "includeDescendants": True}
    ...     return {
    ...         "ConceptSets": [{"id": 0, "name": "it", "expression": {"items": [item]}}],
    ...         "PrimaryCriteria": {
    ...             "CriteriaList": [{domain: {"CodesetId": 0, "First": True}}],
    ...             "ObservationWindow": {"PriorDays": 0, "PostDays": 0},
    ...             "PrimaryCriteriaLimit": {"Type": "First"},
    ...         },
    ...     }
    >>> arms = [first(974166, "DrugExposure"), first(1308216, "DrugExposure")]
    >>> definitions = [
    ...     rs.ohdsi.CohortDefinition.from_json(content, id=k)
    ...     for k, content in enumerate([*arms, first(316139)], start=1)
    ... ]
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(500)) as cdm:
    ...     records = rs.ohdsi.generate_cohorts(cdm, definitions)
    ...     cohorts = rs.omop.CohortTable(1, 2, records).read(cdm)
    ...     cohort = rs.omop.Eligibility().select(cdm, cohorts)
    ...     outcome = rs.omop.CohortRecords(3, records)
    ...     population = rs.omop.TimeAtRisk(risk_end=None).follow(cdm, cohort, outcome)
    >>> population.status
    'ok'
    """
    listed = list(definitions)
    if not cdm.is_whole:
        raise CohortError(
            "PartialCdm",
            f"cohort definitions need the records of everybody, but of {cdm.source} only the "
            "records that a question needs are pulled.",
            hint="ATLAS or CohortGenerator can make the cohorts there; read their table with "
            "`CohortTable` and `CohortRecords`.",
        )
    seen: dict[int, str] = {}
    for one in listed:
        if one.id in seen:
            raise CohortError(
                "DuplicateId",
                f"two cohort definitions have the id {one.id}: {seen[one.id]!r} and {one.name!r}.",
                hint="give each its own id.",
                details={"cohort_definition_id": one.id},
            )
        seen[one.id] = one.name
    return cohort_table(cdm, [(one.id, one.place, one.expression) for one in listed])


def read_cohort_definitions(folder: str | Path) -> tuple[CohortDefinition, ...]:
    r"""Read a folder of cohort definitions, as CohortGenerator keeps them.

    Parameters
    ----------
    folder : path
        Folder with ``Cohorts.csv`` (``cohort_id`` and ``cohort_name``, in any case) and with a file
        ``cohorts/<id or name>.json`` for each of them. Other columns and files are ignored.

    Raises
    ------
    CohortError
        "BadCohortDefinition" if a file is missing or is not a cohort definition, or "DuplicateId".

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import riskset as rs
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "cohorts").mkdir()
    >>> _ = (folder / "Cohorts.csv").write_text("cohort_id,cohort_name\n7,deaths\n")
    >>> death = {
    ...     "PrimaryCriteria": {
    ...         "CriteriaList": [{"Death": {}}],
    ...         "ObservationWindow": {"PriorDays": 0, "PostDays": 0},
    ...         "PrimaryCriteriaLimit": {"Type": "First"},
    ...     }
    ... }
    >>> _ = (folder / "cohorts" / "7.json").write_text(json.dumps(death))
    >>> rs.ohdsi.read_cohort_definitions(folder)
    (CohortDefinition(id=7, name='deaths'),)
    """
    place = Path(folder)
    listing = _inside(place, COHORTS_FILE)
    if listing is None:
        raise CohortError(
            "BadCohortDefinition", f"{str(place)!r} has no file Cohorts.csv.", hint=FOLDER_HINT
        )
    files = {path.stem.lower(): path for path in _json_files(place)}
    found: dict[int, CohortDefinition] = {}
    for place_of_row, row in csv_rows(listing):
        number = whole_number(row.get("cohortid", ""), "cohort_id", place_of_row)
        name = row.get("cohortname", "")
        keys = [str(number), name.lower(), row.get("atlasid", "").lower()]
        file = next((files[key] for key in keys if key and key in files), None)
        if file is None:
            raise CohortError(
                "BadCohortDefinition",
                f"{place_of_row}: {place.name} has no file cohorts/{number}.json for "
                f"the cohort {name!r}.",
                hint=FOLDER_HINT,
                details={"cohort_definition_id": number},
            )
        if number in found:
            raise CohortError(
                "DuplicateId",
                f"{place_of_row}: the cohort {number} is listed twice.",
                hint="keep it once.",
                details={"cohort_definition_id": number},
            )
        found[number] = CohortDefinition.from_json(file, id=number, name=name)
    if not found:
        raise CohortError("BadCohortDefinition", f"{listing.name} has no rows.", hint=FOLDER_HINT)
    return tuple(found.values())


def _inside(folder: Path, name: str) -> Path | None:
    """A file or folder of a folder, in any case, or in its folder ``settings``."""
    for place in (folder, folder / "settings"):
        if place.is_dir():
            for path in sorted(place.iterdir()):
                if path.name.lower() == name:
                    return path
    return None


def _json_files(folder: Path) -> list[Path]:
    inner = _inside(folder, "cohorts")
    return sorted((folder if inner is None else inner).glob("*.json"))


def _read(path: Path) -> object:
    try:
        return parse_json(path.read_bytes())
    except OSError as error:
        raise CohortError(
            "BadCohortDefinition",
            f"the cohort definition {str(path)!r} cannot be read: {error.strerror}.",
        ) from None
    except ValueError as error:
        raise CohortError(
            "BadCohortDefinition", f"{path.name} is not valid JSON: {error}.", hint=ATLAS
        ) from None


def _expression(source: object, place: str) -> object:
    """Circe's expression within what WebAPI answers, where it may be the text of its JSON."""
    while isinstance(source, str) or (isinstance(source, Mapping) and "expression" in source):
        if isinstance(source, Mapping):
            source = source["expression"]
        try:
            source = parse_json(source) if isinstance(source, str) else source
        except ValueError as error:
            raise CohortError(
                "BadCohortDefinition",
                f"{place}: its `expression` is a text that is not valid JSON: {error}.",
                hint=ATLAS,
            ) from None
    return source


def _check(content: object, place: str) -> None:
    if not isinstance(content, Mapping) or not any(key in content for key in CIRCE_KEYS):
        raise CohortError(
            "BadCohortDefinition",
            f"{place} is not a cohort definition: it has no `PrimaryCriteria`.",
            hint=ATLAS,
        )


def _name_of(content: object) -> str:
    if not isinstance(content, Mapping):
        return ""
    return str(content.get("name") or content.get("Title") or "")
