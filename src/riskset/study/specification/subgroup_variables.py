"""Variables of people: subgroups, and groups within which people are matched or stratified.

A name in `subgroups` or `within` is that of a variable, or of a column of the data: any column of a
table of people, and what a CDM has about a person. A variable hides a column of the same name, so
it may be called as the column that it splits.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from riskset._types import AnyArray
from riskset.data.design import Design
from riskset.study.specification.data_sections import TableData
from riskset.study.specification.study_definition import Study
from riskset.study.specification.validation import name_fault

__all__ = ["Labels", "label_people"]


@dataclasses.dataclass(frozen=True, eq=False)
class Labels:
    """A label of each row; `levels` are in their order, where it is not that of the labels."""

    values: AnyArray
    levels: tuple[str, ...] = ()

    def take(self, rows: AnyArray) -> "Labels":
        """Those of some rows."""
        return Labels(self.values[rows], self.levels)

    def present(self, kept: AnyArray) -> list[object]:
        """The levels that the kept rows have, in their order."""
        present: list[object] = np.unique(self.values[kept]).tolist()
        return [level for level in self.levels if level in present] or present


def label_people(
    study: Study,
    names: Iterable[str],
    column: Callable[[str, bool], AnyArray],
    design: Design,
    where: str,
    orders: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, Labels]:
    """Labels of people, by the names of columns and variables.

    `column` gives the values of a column by its name, as numbers if that is asked for. Messages
    call the covariates in `design` by `where`, and raise `InputError` with the line of a covariate
    that does not exist. `orders` has the levels that a categorical type of a column declares.
    """
    known = orders or {}
    variables, labels = study.specification.variables, {}
    for name in dict.fromkeys((*names, *variables)):
        variable = variables.get(name)
        if variable is None:
            labels[name] = Labels(column(name, False), known.get(name, ()))
        elif variable.covariate is not None:
            labels[name] = _presence(study, name, variable.covariate, design, where)
        elif variable.borders:
            labels[name] = _parted(column(str(variable.column), True), variable.borders)
        else:
            of = str(variable.column)
            labels[name] = Labels(column(of, False), known.get(of, ()))
    return labels


def _presence(study: Study, name: str, covariate: str, design: Design, where: str) -> Labels:
    """Whether people have a covariate: a value other than 0."""
    place = {str(key): j for j, key in enumerate(design.keys)}
    place |= {named: j for j, named in enumerate(design.names)}
    has = np.zeros(design.n_rows, dtype=bool)
    if covariate in place:
        has = design.to_dense(np.array([place[covariate]]))[:, 0] != 0
    elif not (not isinstance(study.specification.data, TableData) and covariate.isdigit()):
        path = ("variables", name, "covariate")
        study.refuse([name_fault(path, "covariate", covariate, design.names, where)])
    return Labels(np.where(has, "yes", "no"))


def _parted(values: AnyArray, borders: tuple[float, ...]) -> Labels:
    """The level of each number; a level begins with its border."""
    shown = [_plain(border) for border in borders]
    between = [f"{a} to below {b}" for a, b in zip(shown, shown[1:], strict=False)]
    levels = (f"below {shown[0]}", *between, f"{shown[-1]} or more")
    place = np.searchsorted(np.array(borders), values, side="right")
    return Labels(np.array(levels)[place], levels)


def _plain(value: float) -> str:
    return f"{value:.15g}"
