"""The reference of covariates: names for people, keys for programs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from riskset.data.writers import arrow_table
from riskset.omop.analyses import ANALYSES, AnalysisKind, CovariateAnalysis
from riskset.omop.cdm import Cdm
from riskset.omop.covariate_entries import EntryTable
from riskset.omop.covariate_settings import CovariateSettings
from riskset.omop.groups import concept_view
from riskset.omop.scores import SCORES
from riskset.omop.scratch import Scratch

__all__ = ["KNOWN_CONCEPTS", "concept_names", "reference"]

KNOWN_CONCEPTS = {
    8507: "MALE",
    8532: "FEMALE",
    8521: "OTHER",
    8551: "UNKNOWN",
    8570: "AMBIGUOUS",
    8515: "Asian",
    8516: "Black or African American",
    8522: "Other Race",
    8527: "White",
    8552: "Unknown",
    8557: "Native Hawaiian or Other Pacific Islander",
    8657: "American Indian or Alaska Native",
    38003563: "Hispanic or Latino",
    38003564: "Not Hispanic or Latino",
}
"""Sexes, races and ethnicities, which parts of the vocabulary often lack."""

SIDES = {1: "below", 2: "within", 3: "above"}

PERSON_WORDS = {
    "sex": "gender = {}",
    "age": "age in years",
    "age group": "age group: {from} - {to}",
    "race": "race = {}",
    "ethnicity": "ethnicity = {}",
    "index year": "index year: {number}",
    "index month": "index month: {number}",
    "prior observation": "observation time (days) prior to index",
    "post observation": "observation time (days) after index",
    "time in cohort": "time (days) between cohort start and end",
    "index year and month": "index year and month: {number}",
    "care site": "care site ID = {number}",
}
"""Characteristic of a person -> the name of its covariates."""

RECORD_WORDS: dict[AnalysisKind, str] = {
    "presence": "{table} {during}: {{}}",
    "group": "{table} group ({name}) {during}: {{}}",
    "range": "{table} {side} normal range {during}: {{}}",
    "value": "{table} value {during}: {{}} ({{second}})",
    "value as concept": "{table} {during}: {{}} = {{second}}",
    "distinct count": "{table} distinct concept count {during}",
    "count": "{table} concept count {during}",
    "count by concept": "{table} concept count {during}: {{}}",
}
"""Kind of analysis of records -> the name of its covariates."""

DIGITS: dict[AnalysisKind, int] = {"range": 10, "value": 1000}
"""Kind of analysis -> what the concept is multiplied by, to make room for a side or a unit."""


class _Parts(NamedTuple):
    """What the id of a covariate does not contain."""

    concept: int
    second: int
    collisions: int


def reference(cdm: Cdm, entries: EntryTable, settings: CovariateSettings) -> Any:
    """A row for each covariate that occurs, by id, as an Arrow table."""
    with cdm.scratch() as work:
        numbers = work.rows(f"SELECT DISTINCT covariate_id FROM {entries.name} ORDER BY 1")
        parts = {
            number: _Parts(*part)
            for number, *part in work.rows(
                f"SELECT covariate_id, concept_id, second_id, collisions FROM {entries.parts}"
            )
        }
        rows = [_Row.of(number, settings, parts.get(number)) for (number,) in numbers]
        seconds = {part.second for part in parts.values()}
        known = concept_names(cdm, work, {r.concept for r in rows} | seconds)
    labels = [row.label(known) for row in rows]
    times = Counter(labels)
    start, end = (
        np.ma.masked_array(
            np.array([row.days[k] or 0 for row in rows], np.int32),
            np.array([row.days[k] is None for row in rows], bool),
        )
        for k in (0, 1)
    )
    return arrow_table(
        {
            "covariate_id": np.array([row.number for row in rows], np.int64),
            "name": np.array(
                [
                    f"{label} [{row.number}]" if times[label] > 1 else label
                    for row, label in zip(rows, labels, strict=True)
                ],
                np.str_,
            ),
            "analysis_id": np.array([row.analysis for row in rows], np.int32),
            "concept_id": np.array([row.concept for row in rows], np.int64),
            "domain": np.array([row.domain for row in rows], np.str_),
            "start_day": start,
            "end_day": end,
            "is_binary": np.array([row.is_binary for row in rows], bool),
            "missing_means_zero": np.array([row.missing_means_zero for row in rows], bool),
            "column": np.arange(len(rows), dtype=np.int32),
            "value_as_concept_id": np.array([row.value_concept for row in rows], np.int64),
            "collisions": np.array([row.collisions for row in rows], np.int64),
        }
    )


@dataclass(frozen=True)
class _Row:
    """One covariate, taken apart; `words` is its name, with {} and {second} for concepts."""

    number: int
    analysis: int
    concept: int
    domain: str
    words: str
    days: tuple[int | None, int | None] = (None, None)
    is_binary: bool = True
    missing_means_zero: bool = True
    second: int = 0
    value_concept: int = 0
    collisions: int = 0

    @classmethod
    def of(cls, number: int, settings: CovariateSettings, parts: _Parts | None) -> "_Row":
        """The covariate of an id."""
        first, analysis_id = divmod(number, 1000)
        for custom in settings.custom:
            if custom.analysis_id == analysis_id:
                words = f"{custom.name} {{}}" if first else custom.name
                return cls(number, analysis_id, first, "custom", words, is_binary=custom.is_binary)
        analysis = ANALYSES[analysis_id]
        days = settings.window(analysis.window)
        concept, words = _described(analysis, first, days)
        row = cls(
            number,
            analysis_id,
            concept,
            analysis.domain,
            words,
            days,
            analysis.is_binary,
            analysis.missing_means_zero,
        )
        if parts is None:
            return row
        value = parts.second if analysis.kind == "value as concept" else 0
        return replace(
            row,
            concept=parts.concept,
            second=parts.second,
            value_concept=value,
            collisions=parts.collisions,
        )

    def label(self, known: Mapping[int, str]) -> str:
        """The name of the covariate."""
        # Names of concepts hold braces at times, so they must not be formatted again.
        start, *rest = _PLACE.split(self.words)
        names = {"{}": self.concept, "{second}": self.second}
        for place, text in zip(rest[::2], rest[1::2], strict=True):
            start += _named(names[place], known, is_unit=not self.value_concept) + text
        return start


_PLACE = re.compile(r"(\{\}|\{second\})")


def _named(concept: int, known: Mapping[int, str], *, is_unit: bool) -> str:
    if not concept and is_unit:
        return "Unknown unit"
    return known.get(concept, f"[unknown concept {concept}]")


def _described(
    analysis: CovariateAnalysis, first: int, days: tuple[int | None, int | None]
) -> tuple[int, str]:
    """The concept in an id without its last three digits, and the name, as FeatureExtraction's."""
    kind = analysis.kind
    if kind == "person":
        words = PERSON_WORDS[analysis.domain]
        ends = {"{number}": first, "{from}": 5 * first, "{to}": 5 * first + 4}
        for place, number in ends.items():
            words = words.replace(place, str(number))
        return (first if "{}" in words else 0), words
    if kind == "score":
        return 0, SCORES[analysis.id].label
    start = "any time prior" if days[0] is None else f"during day {days[0]}"
    concept, rest = divmod(first, DIGITS.get(kind, 1))
    words = RECORD_WORDS[kind].format(
        table=analysis.table,
        name=analysis.name,
        side=SIDES.get(rest),
        during=f"{start} through {days[1]} days relative to index",
    )
    words += " (inpatient)" if analysis.inpatient else ""
    return (concept if "{}" in words else 0), words


def concept_names(cdm: Cdm, work: Scratch, concepts: Iterable[int]) -> dict[int, str]:
    """Names of those that have one, in the vocabulary or here."""
    concepts = list(concepts)
    cdm.about_concepts(concepts)
    wanted = work.add(arrow_table({"concept_id": np.array(sorted(concepts), np.int64)}))
    rows = work.rows(
        # A vocabulary that was loaded twice may have two names for a concept.
        f"SELECT concept_id, min(concept_name) FROM {concept_view(cdm)} SEMI JOIN {wanted} "
        "USING (concept_id) WHERE concept_name IS NOT NULL GROUP BY 1"
    )
    return KNOWN_CONCEPTS | dict(rows)
