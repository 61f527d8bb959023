"""Records of the cohorts that a study names: of a cohort table, or made from definitions."""

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from riskset._settings import INVALID
from riskset.ohdsi.cohort_definitions import (
    CohortDefinition,
    generate_cohorts,
    read_cohort_definitions,
)
from riskset.omop.cdm import Cdm
from riskset.omop.events import CohortRecords
from riskset.study.specification.codes import Codes
from riskset.study.specification.data_sections import CdmData
from riskset.study.specification.sections import Analysis, Specification

__all__ = ["StudyCohorts", "defined_cohorts", "nesting_cohorts"]


def defined_cohorts(data: CdmData, folder: Path) -> dict[int, CohortDefinition]:
    """The definitions of the folder of the data, by number; none without such a folder."""
    if data.cohort_definitions is None:
        return {}
    found = read_cohort_definitions(folder / data.cohort_definitions)
    return {definition.id: definition for definition in found}


def nesting_cohorts(analyses: Mapping[str, Analysis]) -> dict[str, int]:
    """The cohorts within which people of an analysis must be; analyses at fault have none."""
    found = {
        name: analysis.eligibility.nesting_cohort
        for name, analysis in (analyses.items() if analyses is not INVALID else ())
        if analysis is not INVALID and analysis.eligibility not in (None, INVALID)
    }
    return {name: number for name, number in found.items() if isinstance(number, int)}


class StudyCohorts:
    """The cohorts of a study; those of definitions are made when one of them is first needed.

    Definitions in files of their own have the numbers after those of the folder.
    """

    def __init__(self, specification: Specification, folder: Path, cdm: Cdm, table: object) -> None:
        data = specification.data
        assert isinstance(data, CdmData)
        self._cdm, self._table = cdm, table
        self._known = defined_cohorts(data, folder)
        self._has_folder = data.cohort_definitions is not None
        self._number_of: dict[str, int] = {}
        self._used = (
            set(nesting_cohorts(specification.analyses).values()) if self._has_folder else set()
        )
        for codes in _codes(specification):
            if codes.definition is not None and codes.definition not in self._number_of:
                number = 1 + max(self._known, default=0)
                definition = codes.cohort_definition(folder, number)
                assert definition is not None
                self._known[number] = definition
                self._number_of[codes.definition] = number
            if codes.is_cohort and (codes.definition is not None or self._has_folder):
                self._used.add(self.number(codes))

    def number(self, codes: Codes) -> int:
        """The cohort_definition_id of an exposure or outcome that is a cohort."""
        if codes.definition is not None:
            return self._number_of[codes.definition]
        assert codes.cohort is not None
        return codes.cohort

    def source(self, codes: Codes) -> object:
        """Where its records are."""
        return self._made if codes.definition is not None or self._has_folder else self._table

    def records(self, codes: Codes) -> CohortRecords:
        """Its records."""
        return CohortRecords(self.number(codes), self.source(codes))

    def nesting(self, number: int) -> CohortRecords:
        """The records of a nesting cohort."""
        return CohortRecords(number, self._made if self._has_folder else self._table)

    def definition(self, codes: Codes) -> CohortDefinition | None:
        """Its definition, if the study has one."""
        return self._known.get(self.number(codes)) if codes.is_cohort else None

    def expression(self, number: int) -> str | None:
        """The definition of a number as text, if the study has one."""
        definition = self._known.get(number)
        return None if definition is None else definition.expression

    @functools.cached_property
    def _made(self) -> object:
        return generate_cohorts(self._cdm, [self._known[number] for number in sorted(self._used)])


def _codes(specification: Specification) -> Iterator[Codes]:
    groups = (specification.exposures, specification.outcomes, specification.competing_events)
    for group in groups:
        yield from (member for member in group.values() if isinstance(member, Codes))
