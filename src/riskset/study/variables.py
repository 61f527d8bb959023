"""Variables of people: what to look into as subgroups, and within what to match or stratify.

A name in `subgroups` or `within` is that of a variable, or of a column that the data have: of a
table of people any, of a CDM what is known of a person. A variable stands before a column of its
name, so that one may be called as the column that it cuts.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray
from riskset.data.design import Design
from riskset.omop.analyses import ANALYSES
from riskset.omop.characteristics import CHARACTERISTICS
from riskset.study.cdm_sections import CdmCovariates
from riskset.study.cdm_settings import covariate_settings
from riskset.study.data_sections import CdmData

if TYPE_CHECKING:
    from riskset.study.specification import Specification, Study, Variable

__all__ = ["YEAR", "Labels", "check_variables", "definitions", "label_people", "uses"]

YEAR = "year"
"""Of the start: a column that a table of people has by its dates."""

NUMBERS = ("age", YEAR)
"""Columns of a CDM that borders can part."""


@dataclasses.dataclass(frozen=True, eq=False)
class Labels:
    """A label of each row.

    Attributes
    ----------
    values : (n,) labels
    levels : tuple of str
        Their order, where it is not that of the labels.
    """

    values: AnyArray
    levels: tuple[str, ...] = ()

    def take(self, rows: AnyArray) -> "Labels":
        """Those of some rows."""
        return Labels(self.values[rows], self.levels)

    def found(self, kept: AnyArray) -> list[object]:
        """The levels that rows have, in their order."""
        present: list[object] = np.unique(self.values[kept]).tolist()
        return [level for level in self.levels if level in present] or present


def uses(own: "Specification") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names of columns or variables, and the keys of the specification that have them."""
    for name, analysis in own.analyses.items():
        for word, way in (("match", analysis.match), ("stratify", analysis.stratify)):
            for column in () if way is None else way.within:
                yield column, ("analyses", name, word, "within")
    for name, subgroup in own.subgroups.items():
        yield subgroup.column, ("subgroups", name, "column")


def definitions(own: "Specification", names: Iterable[str]) -> dict[str, object]:
    """What labels of these names depend on, beside the data."""
    return {n: dataclasses.asdict(own.variables[n]) for n in names if n in own.variables}


def check_variables(study: "Study") -> None:
    """Refuse variables that contradict themselves, and of a CDM names that it cannot have.

    Raises
    ------
    InputError
        Names the line.
    """
    own = study.specification
    is_cdm = isinstance(own.data, CdmData)
    for name, variable in own.variables.items():
        _check_one(study, name, variable)
        if is_cdm and variable.column is not None:
            place: tuple[str, ...] = ("variables", name, "column")
            if variable.column not in CHARACTERISTICS:
                raise _unknown(study, variable.column, place, ())
            if variable.borders and variable.column not in NUMBERS:
                message = f"`borders` part numbers, but {variable.column} is none."
                hint = f"numbers are {' and '.join(NUMBERS)}; leave `borders` out."
                raise study.fault("variables", name, "borders", message=message, hint=hint)
        if is_cdm and variable.covariate is not None and variable.covariate.isdigit():
            _check_id(study, name, variable.covariate)
    if is_cdm:
        for name, place in uses(own):
            if name not in CHARACTERISTICS and name not in own.variables:
                raise _unknown(study, name, place, own.variables)
            if place[0] == "subgroups" and name == "age" and name not in own.variables:
                message = "every year of age would be a subgroup."
                hint = "part it: `variables: {age: {column: age, borders: [50, 65]}}`."
                raise study.fault(*place, message=message, hint=hint)


def _check_one(study: "Study", name: str, own: "Variable") -> None:
    if (own.column is None) == (own.covariate is None):
        found = "neither" if own.column is None else "both"
        message = f"it needs one of column and covariate, but has {found}."
        raise study.fault("variables", name, message=message)
    if own.borders and own.covariate is not None:
        message = "`borders` part a column; of a covariate it counts who has it."
        raise study.fault("variables", name, "borders", message=message, hint="leave them out.")
    if list(own.borders) != sorted(set(own.borders)):
        message = f"borders must increase, but they are {', '.join(map(_plain, own.borders))}."
        raise study.fault("variables", name, "borders", message=message)


def _check_id(study: "Study", name: str, covariate: str) -> None:
    """An id ends in the number of its kind, which every analysis must make."""
    number = int(covariate) % 1000
    for called, analysis in study.specification.analyses.items():
        known = covariate_settings(analysis.covariates or CdmCovariates()).analyses
        if number in known:
            continue
        where = f"the analysis {called!r} makes no" if number in ANALYSES else "there are no"
        message = f"covariates of the kind {number}, by which this id ends: {where} such ones."
        kinds = ", ".join(map(str, known))
        raise study.fault(
            "variables", name, "covariate", message=message, hint=f"it makes the kinds {kinds}."
        )


def _unknown(
    study: "Study", name: str, place: tuple[str, ...], variables: Iterable[str]
) -> InputError:
    known = [*variables, *CHARACTERISTICS]
    what = "column" if place[0] == "variables" else "variable"
    return study.unknown(*place, what=what, name=name, known=known, place="a CDM")


def label_people(
    study: "Study",
    names: Iterable[str],
    column: Callable[[str, bool], AnyArray],
    design: Design,
    where: str,
) -> dict[str, Labels]:
    """Labels of people, by the names of columns and variables.

    Parameters
    ----------
    column : callable
        Values of a column by its name, as numbers if that is asked for.
    design : Design
        Covariates of the same people.
    where : str
        What messages call these covariates.

    Raises
    ------
    InputError
        If there is no such covariate, with the line.
    """
    variables, found = study.specification.variables, {}
    for name in dict.fromkeys((*names, *variables)):
        own = variables.get(name)
        if own is None:
            found[name] = Labels(column(name, False))
        elif own.covariate is not None:
            found[name] = _presence(study, name, own.covariate, design, where)
        elif own.borders:
            found[name] = _parted(column(str(own.column), True), own.borders)
        else:
            found[name] = Labels(column(str(own.column), False))
    return found


def _presence(study: "Study", name: str, covariate: str, design: Design, where: str) -> Labels:
    """Whether people have a covariate: a value other than 0."""
    place = {str(key): j for j, key in enumerate(design.keys)}
    place |= {own: j for j, own in enumerate(design.names)}
    has = np.zeros(design.n_rows, dtype=bool)
    if covariate in place:
        has = design.to_dense(np.array([place[covariate]]))[:, 0] != 0
    elif not (isinstance(study.specification.data, CdmData) and covariate.isdigit()):
        raise study.unknown(
            "variables",
            name,
            "covariate",
            what="covariate",
            name=covariate,
            known=design.names,
            place=where,
        )
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
