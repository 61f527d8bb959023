"""Simulated data with known truth: designs of the paper, claims data, a toy OMOP CDM."""

from riskset.simulate.cohort import CohortDesign, simulate_cohort
from riskset.simulate.drawing import Drawing, Simulation, save_cohort
from riskset.simulate.paper import CoxDesign, FineGrayDesign, simulate_cox, simulate_finegray
from riskset.simulate.toy_cdm import toy_cdm, toy_tables

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
