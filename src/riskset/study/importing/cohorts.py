"""Cohorts of a specification: their names, definitions, and the concepts of negative controls."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from riskset._errors import InputError
from riskset.study.importing.given import Given, LostSetting

__all__ = ["KnownCohorts"]


@dataclass
class KnownCohorts:
    """What a specification says of its cohorts, by their numbers."""

    names: dict[int, str] = field(default_factory=dict)
    definitions: dict[int, str] = field(default_factory=dict)
    concepts: dict[int, int] = field(default_factory=dict)
    occurrence: str = "all"
    descendants: bool = False

    @classmethod
    def of(cls, resources: Sequence[Any], lost: list[LostSetting]) -> "KnownCohorts":
        """The cohorts of the shared resources of a Strategus specification."""
        known = cls()
        for k, resource in enumerate(resources):
            if not isinstance(resource, Mapping):
                raise InputError(f"sharedResources.{k} must be a section of settings.")
            given = Given(resource, f"sharedResources.{k}", lost)
            for one in given.sections("cohortDefinitions"):
                known._define(one)
            controls = given.section("negativeControlOutcomes")
            if controls is not None:
                known._control(controls)
            reason = "riskset makes no subsets of cohorts; make them in ATLAS or CohortGenerator."
            for key in ("subsetDefs", "cohortSubsets"):
                given.lose(key, reason)
            given.rest()
        return known

    def _define(self, one: Given) -> None:
        number = one.whole("cohortId")
        if number is None:
            raise one.fault("cohortId", "a number")
        self._name(number, one, f"cohort {number}")
        if one.has("cohortDefinition"):
            written = one.take("cohortDefinition")
            self.definitions[number] = written if isinstance(written, str) else json.dumps(written)

    def _control(self, controls: Given) -> None:
        self.occurrence = controls.word("occurrenceType", "all").strip().lower()
        if self.occurrence not in ("all", "first"):
            raise controls.fault("occurrenceType", "'all' or 'first'")
        self.descendants = controls.flag("detectOnDescendants", False)
        for one in controls.sections("negativeControlOutcomeCohortSet"):
            number, concept = one.whole("cohortId"), one.whole("outcomeConceptId")
            if number is None or concept is None:
                raise one.fault("outcomeConceptId", "a number")
            self._name(number, one, f"concept {concept}")
            self.concepts[number] = concept
        controls.rest()

    def _name(self, number: int, one: Given, default: str) -> None:
        if number in self.names:
            raise one.fault("cohortId", "a number that no other cohort has")
        self.names[number] = str(one.take("cohortName", default))

    def name(self, number: int) -> str:
        """The name of a cohort; if another one is called the same, with its number."""
        name = self.names.get(number, f"cohort {number}")
        is_shared = sum(other == name for other in self.names.values()) > 1
        return f"{name} ({number})" if is_shared else name

    def control(self, number: int) -> dict[str, Any] | None:
        """How records of a negative control are found, if its concept is known."""
        if number not in self.concepts:
            return None
        found: dict[str, Any] = {"concepts": [self.concepts[number]]}
        found["descendants"] = self.descendants
        return found | ({"first": True} if self.occurrence == "first" else {})
