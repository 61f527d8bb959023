"""The step that measures balance within the levels of a subgroup."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from riskset._types import AnyArray
from riskset.cohort.covariates.balance_within import balance_within
from riskset.disclosure.rows import known
from riskset.results.rows import SubgroupBalanceRow
from riskset.study.cache import StepResult
from riskset.study.sources.source import AnalysedPeople

__all__ = ["SubgroupBalanceStep", "subgroup_balance"]

MOST_COVARIATES = 1000
"""Of a subgroup: those whose largest difference after adjustment is the largest."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SubgroupBalanceStep(StepResult, step="balance in subgroups"):
    """Differences of covariates in each level of a subgroup; rows lack its name."""

    rows: list[SubgroupBalanceRow]


def subgroup_balance(people: AnalysedPeople, column: str) -> SubgroupBalanceStep:
    """Balance within the levels of a column of labels, of the people of an analysis."""
    labels = people.cohort.labels[column]
    levels = labels.present(people.people.kept)
    if len(levels) < 2 or people.people.status != "ok":
        return SubgroupBalanceStep(rows=[])
    return SubgroupBalanceStep(rows=list(_rows(people, labels.values, levels)))


def _rows(
    people: AnalysedPeople, labels: AnyArray, levels: list[object]
) -> Iterator[SubgroupBalanceRow]:
    design, sd = people.cohort.design, people.analysis.balance.sd
    found = [balance_within(design, people.people, labels == level, sd=sd) for level in levels]
    sizes = np.abs(np.array([one.after for one in found]))
    largest = np.where(np.isnan(sizes), -1.0, sizes).max(axis=0)
    order = np.argsort(-largest, kind="stable")[:MOST_COVARIATES]
    for level, one in zip(levels, found, strict=True):
        for k in order.tolist():
            yield SubgroupBalanceRow(
                level=str(level),
                covariate_id=str(design.keys[k]),
                name=str(design.names[k]),
                before_smd=known(float(one.before[k])),
                after_smd=known(float(one.after[k])),
                fewest=int(one.fewest[k]),
            )
