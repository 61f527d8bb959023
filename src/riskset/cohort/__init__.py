"""Comparative cohort studies: from propensity scores to a hazard ratio one can defend.

Every step takes a `Population`, or what an earlier step made of it, and gives an `Adjustment`,
whose weights balance, curves and models then share.
"""

from riskset.cohort.adjustment import Adjustment, Step, restrict
from riskset.cohort.matching import match
from riskset.cohort.population import Population
from riskset.cohort.propensity import Discrimination, auc, equipoise, preference_score
from riskset.cohort.stratification import stratify
from riskset.cohort.trimming import trim
from riskset.cohort.weighting import weight

__all__ = [
    "Adjustment",
    "Discrimination",
    "Population",
    "Step",
    "auc",
    "equipoise",
    "match",
    "preference_score",
    "restrict",
    "stratify",
    "trim",
    "weight",
]
