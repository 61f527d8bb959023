"""Negative controls of a list become outcomes of a study."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from riskset._errors import InputError
from riskset._settings import INVALID, Fault
from riskset.ohdsi.negative_controls import NegativeControl, read_negative_controls
from riskset.study.specification.codes import ControlList
from riskset.study.specification.data_sections import TableData
from riskset.study.specification.outcome_sections import CdmOutcome
from riskset.study.specification.sections import Specification

__all__ = ["with_controls"]

KEY = "negative_controls"


def with_controls(specification: Specification, folder: Path) -> tuple[Specification, list[Fault]]:
    """A specification whose outcomes include its list of controls, and what is wrong with that."""
    asked = specification.negative_controls
    if asked is None or asked is INVALID or specification.outcomes is INVALID:
        return specification, []
    if isinstance(specification.data, TableData):
        message = "a list of negative controls has concepts, but the data are a table of people."
        hint = "name the columns of each control among the outcomes, with its kind."
        return specification, [Fault((KEY,), message, hint)]
    try:
        controls = read_negative_controls(folder / asked.file)
    except InputError as error:
        return specification, [Fault((KEY, "file"), error.message, error.hint)]
    outcomes = dict(specification.outcomes)
    for control in controls:
        name = control.name
        if name in outcomes:
            name = f"{control.name} ({control.id})"
        if name in outcomes:
            message = f"an outcome is also called {name!r}."
            return specification, [Fault((KEY, "file"), message, "rename one of them.")]
        outcomes[name] = _outcome(control, asked)
    return dataclasses.replace(specification, outcomes=outcomes), []


def _outcome(control: NegativeControl, asked: ControlList) -> CdmOutcome:
    where: Mapping[str, object] = {"cohort": control.id}
    if not asked.cohorts:
        where = {
            "concepts": (control.concept,),
            "descendants": asked.descendants,
            "first": asked.occurrence == "first",
        }
    return CdmOutcome(kind="negative control", ohdsi_id=control.id, **where)  # type: ignore[arg-type]
