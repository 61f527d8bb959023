"""Names of covariates in a specification: what they may name, and those that nothing has."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from riskset._settings import Fault, KeyPath
from riskset.cohort.covariates.characteristics import find_characteristics, named_by
from riskset.data.column_statistics import select_columns
from riskset.data.covariate_labels import CovariateLabels
from riskset.data.design import Design
from riskset.data.missing_values import indicators_of
from riskset.study.specification.covariate_lists import covariate_names
from riskset.study.specification.sections import Analysis, Specification
from riskset.study.specification.validation import name_fault

__all__ = ["unknown_covariates", "without_indicators"]


def without_indicators(design: Design, imputed: Collection[str]) -> Design:
    """The covariates that are left when the missing values of some columns are imputed."""
    gone = indicators_of(imputed)
    left = [j for j, key in enumerate(design.keys) if str(key) not in gone]
    return select_columns(design, np.array(left, dtype=np.int64)) if gone else design


def unknown_covariates(
    asked: Specification, design: Design, observed: Design, labels: CovariateLabels, where: str
) -> Iterator[Fault]:
    """Covariates to exclude, to adjust by or to show, that the data do not have.

    `observed` are the covariates of the table of characteristics, which has a line for missing
    values, and `design` those of the analyses. Patterns may match nothing.
    """
    known = {*design.names, *map(str, design.keys)}
    sections: list[tuple[KeyPath, Analysis]] = [(("defaults",), asked.defaults)]
    sections += [(("analyses", name), analysis) for name, analysis in asked.analyses.items()]
    listed: list[tuple[KeyPath, Sequence[int | str]]] = [
        ((*path, *place), names)
        for path, analysis in sections
        for place, names in covariate_names(analysis)
    ]
    listed.append((("report", "covariates"), asked.report.covariates))
    for path, names in listed:
        for k, name in enumerate(names):
            if str(name) not in known:
                yield name_fault((*path, str(k)), "covariate", str(name), design.names, where)
    for path, analysis in sections:
        for name in analysis.model.held:
            if name not in known:
                place = (*path, "model", "fixed", name)
                yield name_fault(place, "covariate", name, design.names, where)
    found = find_characteristics(observed, labels)
    titles = dict.fromkeys((*(one.title for one in found), *observed.names))
    for k, section in enumerate(asked.table1):
        for i, name in enumerate(section.covariates):
            if "*" in name or any(named_by(observed, one, [name], labels) for one in found):
                continue
            yield name_fault(
                ("table1", str(k), "covariates", str(i)), "covariate", name, titles, where
            )
