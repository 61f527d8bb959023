"""The lines of Table 1 of a study: those that its specification lists, or all covariates."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from riskset.cohort.characteristic_values import characteristic_lines
from riskset.cohort.characteristics import (
    OTHERS,
    Characteristic,
    Family,
    find_characteristics,
    named_by,
)
from riskset.cohort.covariate_balance import Balance
from riskset.data.design import Design
from riskset.omop.analyses import ANALYSES
from riskset.results.rows import CharacteristicRow
from riskset.study.report_sections import Table1Section
from riskset.study.source import AnalysedPeople, ComparisonCohort

__all__ = ["describe_people"]

MOST = 100
"""Characteristics that are shown unless the study says which."""
DEMOGRAPHICS = "Demographics"
MARKS = (" = ", ": ")
"""Before the level, in the names of FeatureExtraction."""


def describe_people(
    people: AnalysedPeople, measured: Balance, sections: Sequence[Table1Section]
) -> tuple[list[CharacteristicRow], list[str]]:
    """The lines, and names in the specification that no covariate has."""
    cohort = people.cohort
    design, labels = cohort.design, cohort.covariate_labels
    family = _families(cohort)
    found = find_characteristics(design, labels, family)
    missing: list[str] = []
    if sections:
        chosen = []
        for section in sections:
            for pattern in section.covariates:
                of_it = [one for one in found if named_by(design, one, [pattern], labels)]
                missing += [] if of_it else [pattern]
                chosen += [
                    replace(one, section=section.section, statistic=section.statistic)
                    for one in of_it
                ]
        # A characteristic that several names of a section mean, such as two levels, stands once.
        chosen = list({(one.section, one.columns): one for one in chosen}.values())
    else:
        chosen = _unasked(found, design, measured, family)
    return characteristic_lines(design, people.people, measured, chosen), missing


def _families(cohort: ComparisonCohort) -> Family:
    """Groups of age, sexes and so on of a CDM, which are levels of one characteristic."""
    family = {}
    design = cohort.design
    for column, key in enumerate(design.keys):
        number, domain = cohort.analyses.get(key, (0, ""))
        analysis = ANALYSES.get(number)
        if analysis is None or analysis.kind != "person" or not design.is_binary[column]:
            continue
        if cohort.covariate_labels.entry(design.names[column], key) is not None:
            continue
        name = design.names[column]
        mark = next((mark for mark in MARKS if mark in name), None)
        if mark is not None:
            family[column] = (domain.capitalize(), name.split(mark, 1)[1])
    return family


def _unasked(
    found: Sequence[Characteristic], design: Design, measured: Balance, family: Family
) -> list[Characteristic]:
    """All characteristics, or the most common ones of more than can be read."""
    order = {a.domain.capitalize(): a.id for a in ANALYSES.values() if a.kind == "person"}
    people = [
        replace(one, section=DEMOGRAPHICS)
        for one in sorted(found, key=lambda one: order.get(one.title, 0))
        if one.kind == "category" and one.columns[0] in family
    ]
    rest = [one for one in found if not (one.kind == "category" and one.columns[0] in family)]
    if people and len(rest) <= MOST:
        rest = [replace(one, section=one.section or OTHERS) for one in rest]
    elif len(rest) > MOST:
        share = np.abs(measured.before.mean_target) + np.abs(measured.before.mean_comparator)
        share[~measured.is_binary] = np.inf  # such as age, of which there are few
        sizes = [float(share[list(one.columns)].max()) for one in rest]
        most = np.sort(np.argsort(-np.array(sizes), kind="stable")[:MOST])
        title = f"The {most.size} most common of {design.n_features:,} covariates"
        rest = [replace(rest[k], section=rest[k].section or title) for k in most]
    return [*people, *rest]
