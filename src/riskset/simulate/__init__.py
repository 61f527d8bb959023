"""Simulated data with known truth: designs of the paper, claims data, a toy OMOP CDM."""

import importlib
from typing import TYPE_CHECKING

from riskset.simulate.cohort import CohortDesign, simulate_cohort
from riskset.simulate.drawing import Drawing, Simulation, save_cohort
from riskset.simulate.paper import CoxDesign, FineGrayDesign, simulate_cox, simulate_finegray

if TYPE_CHECKING:
    from riskset.simulate.toy_database import toy_cdm, toy_tables

__all__ = [
    "CohortDesign",
    "CoxDesign",
    "Drawing",
    "FineGrayDesign",
    "Simulation",
    "save_cohort",
    "simulate_cohort",
    "simulate_cox",
    "simulate_finegray",
    "toy_cdm",
    "toy_tables",
]


def __getattr__(name: str) -> object:
    """The toy CDM, which is imported when it is first used."""
    if name not in ("toy_cdm", "toy_tables"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module("riskset.simulate.toy_database"), name)
    globals()[name] = value
    return value
