"""The lines of Table 1 of a study: those that its specification lists, or all covariates."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from riskset.cohort.covariates.characteristic_values import characteristic_lines
from riskset.cohort.covariates.characteristics import (
    OTHERS,
    Characteristic,
    Family,
    find_characteristics,
    named_by,
)
from riskset.cohort.covariates.covariate_balance import Balance
from riskset.data.design import Design
from riskset.omop.analyses import ANALYSES
from riskset.results.rows import CharacteristicRow
from riskset.study.sources.source import AnalysedPeople, ComparisonCohort
from riskset.study.specification.report_sections import Table1Section

__all__ = ["describe_people"]

MOST = 100
"""Characteristics that are shown unless the study says which."""
DEMOGRAPHICS = "Demographics"
YEARS = ("index year", "index year and month")
"""Domains of the analyses whose covariates are calendar years, or months of years."""
FIRST_MONTH = 100000
"""Of the numbers that are months of years."""
MARKS = (" = ", ": ")
"""Before the level, in the names of FeatureExtraction."""


def describe_people(
    people: AnalysedPeople, measured: Balance, sections: Sequence[Table1Section], most_years: int
) -> tuple[list[CharacteristicRow], list[str]]:
    """The lines, and names in the specification that no covariate has.

    Calendar years have at most `most_years` lines.
    """
    cohort = people.cohort
    design, labels = cohort.design, cohort.covariate_labels
    family = _families(cohort)
    found = [
        with_year_ranges(one, most_years) if _counts_years(one, cohort) else one
        for one in find_characteristics(design, labels, family)
    ]
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


def _counts_years(one: Characteristic, cohort: ComparisonCohort) -> bool:
    """Whether the levels of a characteristic of a CDM are years, or months of years."""
    number, _ = cohort.analyses.get(cohort.design.keys[one.columns[0]], (0, ""))
    analysis = ANALYSES.get(number)
    of_years = analysis is not None and analysis.domain in YEARS
    return of_years and one.kind == "category" and all(level.isdigit() for level in one.levels)


def with_year_ranges(one: Characteristic, most: int) -> Characteristic:
    """With ranges of calendar years as its levels, if it has more than `most` of them.

    Ranges have the first width that gives at most that many lines, and begin at its multiples: of
    five years, 2010 to 2014. Levels are years, such as 2012, or months of years, such as 201203.

    >>> years = Characteristic("Year", "category", (0, 1, 2), ("2009", "2010", "2011"))
    >>> with_year_ranges(years, 2).levels
    ('2009', '2010\N{EN DASH}2011')
    """
    if len(one.levels) <= most:
        return one
    by_level = sorted(zip(map(int, one.levels), one.columns, strict=True))
    years = np.array([level if level < FIRST_MONTH else level // 100 for level, _ in by_level])
    first, last = int(years[0]), int(years[-1])
    widths = (n * 10**k for k in itertools.count() for n in (1, 2, 5))
    width = next(w for w in widths if last // w - first // w < most)
    starts, sizes = np.unique(years // width * width, return_counts=True)
    ends = [(max(int(s), first), min(int(s) + width - 1, last)) for s in starts]
    return replace(
        one,
        columns=tuple(column for _, column in by_level),
        levels=tuple(f"{a}" if a == b else f"{a}\N{EN DASH}{b}" for a, b in ends),
        sizes=tuple(sizes.tolist()),
    )


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
