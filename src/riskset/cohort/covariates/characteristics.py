"""Which lines a table of characteristics has: covariates, and categories with all their levels."""

import fnmatch
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from riskset.data.covariate_labels import CovariateLabels
from riskset.data.design import Design
from riskset.data.missing_values import MISSING_LEVEL

__all__ = [
    "OTHERS",
    "Characteristic",
    "Family",
    "Statistic",
    "find_characteristics",
    "matches",
    "named_by",
]

Statistic = Literal["mean", "median"]

Family = Mapping[int, tuple[str, str]]
"""Columns of covariates that are levels of a category without being declared as such -> the title
of the category and the level, such as ("Age group", "65 - 69")."""

OTHERS = "Other characteristics"
"""Section of covariates without a group, if others have one."""


@dataclass(frozen=True)
class Characteristic:
    """A characteristic: numbers, zeros and ones, or a category.

    `columns` are those of the design, one for each level of a category, or those of each level one
    after the other where `sizes` says how many each level joins. The column `missing` is 1 where
    the value is. `reference` is the word for the zeros of zeros and ones.
    """

    title: str
    kind: Literal["number", "share", "category"]
    columns: tuple[int, ...]
    levels: tuple[str, ...] = ()
    missing: int | None = None
    reference: str | None = None
    section: str | None = None
    statistic: Statistic = "mean"
    sizes: tuple[int, ...] = ()

    @property
    def of_levels(self) -> list[tuple[int, ...]]:
        """The columns of each level."""
        if not self.sizes:
            return [(column,) for column in self.columns]
        ends = list(itertools.accumulate(self.sizes))
        return [self.columns[end - n : end] for n, end in zip(self.sizes, ends, strict=True)]


def find_characteristics(
    design: Design, labels: CovariateLabels, family: Family | None = None
) -> list[Characteristic]:
    """All characteristics: in the order of the labels, then in that of the design.

    Keys of the design are the names by which `labels` knows its columns; the names of the design
    may be labels.
    """
    place = {name: j for j, name in enumerate(design.names)}
    category_of: dict[int, tuple[int, ...]] = {}
    for factor in design.factors:
        columns = tuple(place[name] for name in factor if name in place)
        category_of |= dict.fromkeys(columns, columns)
    originals = {_original(design, j): j for j in range(design.n_features)}
    indicator = {
        name: originals[f"{name}={MISSING_LEVEL}"]
        for name in originals
        if f"{name}={MISSING_LEVEL}" in originals
    }
    found: list[tuple[tuple[int, int], Characteristic]] = []
    done = set(indicator.values()) - set(category_of)
    order = {name: k for k, name in enumerate(labels.entries)}
    families: dict[str, list[int]] = {}
    for j, (title, _) in (family or {}).items():
        families.setdefault(title, []).append(j)
    for j in range(design.n_features):
        if j in done:
            continue
        name = _original(design, j)
        if j in category_of:
            one, named = _category(design, labels, category_of[j])
        elif family is not None and j in family:
            title = family[j][0]
            members = tuple(families[title])
            levels = tuple(family[k][1] for k in members)
            one, named = Characteristic(title, "category", members, levels), name
        else:
            one, named = _single(design, labels, j, indicator.get(name)), name
        done |= set(_columns(one))
        entry = labels.entry(named, design.keys[one.columns[0]])
        at = order.get(entry.name, len(order)) if entry is not None else len(order)
        section = None if entry is None else entry.group
        found.append(((at, len(found)), replace(one, section=section)))
    return _in_sections([one for _, one in sorted(found, key=lambda pair: pair[0])])


def _original(design: Design, column: int) -> str:
    """The name by which labels know a column."""
    key = design.keys[column]
    return key if isinstance(key, str) else design.names[column]


def _category(
    design: Design, labels: CovariateLabels, columns: tuple[int, ...]
) -> tuple[Characteristic, str]:
    """A category and the name of its column."""
    names = {j: _original(design, j) for j in columns}
    first = names[columns[0]]
    column = labels.parted(first)[0] or first.partition("=")[0]
    entry = labels.entries.get(column)
    missing = next((j for j in columns if names[j] == f"{column}={MISSING_LEVEL}"), None)
    known = tuple(j for j in columns if j != missing)
    levels = tuple(labels.level(names[j], names[j][len(column) + 1 :]) for j in known)
    title = column if entry is None or not entry.label else entry.label
    return Characteristic(title, "category", known, levels, missing), column


def _columns(one: Characteristic) -> tuple[int, ...]:
    """All columns of a characteristic, with that of its missing values."""
    return one.columns if one.missing is None else (*one.columns, one.missing)


def _single(
    design: Design, labels: CovariateLabels, column: int, missing: int | None
) -> Characteristic:
    name = _original(design, column)
    if not design.is_binary[column]:
        return Characteristic(design.names[column], "number", (column,), missing=missing)
    entry = labels.entry(name, design.keys[column])
    reference = None if entry is None else entry.reference
    title = design.names[column]
    return Characteristic(title, "share", (column,), missing=missing, reference=reference)


def _in_sections(found: list[Characteristic]) -> list[Characteristic]:
    """Characteristics of one section together, in the order in which sections begin."""
    if not any(one.section for one in found):
        return found
    sections: dict[str, list[Characteristic]] = {}
    for one in found:
        if one.section:
            sections.setdefault(one.section, []).append(one)
    rest = [replace(one, section=OTHERS) for one in found if not one.section]
    return [one for members in (*sections.values(), rest) for one in members]


def named_by(
    design: Design, one: Characteristic, patterns: Iterable[str], labels: CovariateLabels
) -> bool:
    """Whether a characteristic has one of these names, keys or titles; * is any characters."""
    words = {one.title, *(design.names[j] for j in _columns(one))}
    for j in _columns(one):
        words |= {str(design.keys[j]), _original(design, j)}
    if one.kind == "category":
        first = _original(design, one.columns[0])
        words.add(labels.parted(first)[0] or first.partition("=")[0])
    entries = [labels.entry(_original(design, j), design.keys[j]) for j in one.columns]
    words |= {entry.label for entry in entries if entry is not None and entry.label}
    return any(matches(word, patterns) for word in words)


def matches(word: str, patterns: Iterable[str]) -> bool:
    """Whether a word is one of the patterns, in which * stands for any characters."""
    return any(word == p or fnmatch.fnmatchcase(word, p) for p in patterns)
