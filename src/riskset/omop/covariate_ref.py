"""What covariates are: names for people, keys for programs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskset.data.writers import arrow_table
from riskset.omop.analyses import ANALYSES
from riskset.omop.cdm import Cdm, Scratch
from riskset.omop.covariate_entries import EntryTable
from riskset.omop.covariate_settings import CovariateSettings
from riskset.omop.groups import concept_view

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
OF_CONCEPTS = ("sex", "race", "ethnicity")
"""What is said of a person by a concept."""


def reference(cdm: Cdm, entries: EntryTable, settings: CovariateSettings) -> Any:
    """A row for each covariate that occurs, by id, as an Arrow table."""
    with cdm.scratch() as work:
        found = work.rows(f"SELECT DISTINCT covariate_id FROM {entries.name} ORDER BY 1")
        units = dict(work.rows(f"SELECT covariate_id, unit FROM {entries.units}"))
        rows = [_Row.of(number, settings, units.get(number)) for (number,) in found]
        known = concept_names(cdm, work, {r.concept for r in rows} | set(units.values()))
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
        }
    )


@dataclass(frozen=True)
class _Row:
    """One covariate, taken apart; `label` puts it into words, with {} for the concept."""

    number: int
    analysis: int
    concept: int
    domain: str
    words: str
    days: tuple[int | None, int | None] = (None, None)
    is_binary: bool = True
    missing_means_zero: bool = True
    unit: int | None = None

    @classmethod
    def of(cls, number: int, settings: CovariateSettings, unit: int | None) -> "_Row":
        """The covariate of an id."""
        first, analysis_id = divmod(number, 1000)
        for custom in settings.custom:
            if custom.analysis_id == analysis_id:
                words = f"{custom.name} {{}}" if first else custom.name
                return cls(number, analysis_id, first, "custom", words, is_binary=custom.is_binary)
        analysis = ANALYSES[analysis_id]
        kind, domain = analysis.kind, analysis.domain
        words = f"{domain} {{}}"
        concept = first if kind != "person" or domain in OF_CONCEPTS else 0
        if kind == "group":
            words = f"{domain} group {{}}"
        elif kind == "range":
            concept, side = divmod(first, 10)
            words = f"{domain} {{}} {SIDES[side]} range"
        elif kind == "value":
            concept = first // 1000
            words = f"{domain} value {{}} ({{unit}})"
        elif domain == "age group":
            words = f"age group {5 * first}-{5 * first + 4}"
        elif domain == "age":
            words = "age in years"
        elif domain not in OF_CONCEPTS and kind == "person":
            words = f"{domain} {first}"
        start, end = settings.window(analysis.window)
        if start is not None:
            words += f", days {start} to {end}"
        return cls(
            number,
            analysis_id,
            concept,
            domain,
            words,
            (start, end),
            analysis.is_binary,
            analysis.missing_means_zero,
            unit,
        )

    def label(self, known: Mapping[int, str]) -> str:
        """The name of the covariate."""
        unit = "no unit" if not self.unit else known.get(self.unit, f"unit {self.unit}")
        concept = known.get(self.concept, f"[unknown concept {self.concept}]")
        # Names of concepts hold braces at times, so they must not be formatted again.
        return self.words.replace("{unit}", unit).replace("{}", concept)


def concept_names(cdm: Cdm, work: Scratch, concepts: Iterable[int]) -> dict[int, str]:
    """Names of those that have one, in the vocabulary or here."""
    wanted = work.add(arrow_table({"concept_id": np.array(sorted(concepts), np.int64)}))
    found = work.rows(
        f"SELECT concept_id, concept_name FROM {concept_view(cdm)} SEMI JOIN {wanted} "
        "USING (concept_id) WHERE concept_name IS NOT NULL"
    )
    return KNOWN_CONCEPTS | dict(found)
