"""Large artificial cohorts with known truth: the paper's designs, and one like its real study."""

from riskset.simulate.cohort import CohortDesign, simulate_cohort
from riskset.simulate.drawing import Drawing, Simulation, save_cohort
from riskset.simulate.paper import CoxDesign, FineGrayDesign, simulate_cox, simulate_finegray

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
]
