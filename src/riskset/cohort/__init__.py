"""Comparative cohort studies: propensity scores, balance, outcome models and diagnostics.

Each function takes a `Population`, or the result of an earlier step. Adjustments return an
`Adjustment`, whose weights apply to balance, curves and models.
"""

from riskset.cohort.adjustment import Adjustment, Step, restrict
from riskset.cohort.artificial_censoring import DeviationWeights, censoring_weights
from riskset.cohort.attrition_table import Attrition, attrition
from riskset.cohort.baseline_table import Table1, table1
from riskset.cohort.calibration import CalibratedEstimates, Controls, calibrate
from riskset.cohort.censoring_model import DeviationModel
from riskset.cohort.censoring_settings import CensoringModel
from riskset.cohort.coarsening import coarsen
from riskset.cohort.covariate_balance import Balance, balance
from riskset.cohort.covariate_filter import TidyInfo, tidy
from riskset.cohort.curves import ArmCurves, gray, incidence, survival
from riskset.cohort.deviations import censor_deviations, clone
from riskset.cohort.diagnostics import Diagnostic, Diagnostics, diagnose
from riskset.cohort.e_values import EValue, e_value
from riskset.cohort.empirical_null.fit import Null, fit_null_profiles
from riskset.cohort.empirical_null.posterior import NullPosterior
from riskset.cohort.empirical_null.regression import ErrorModel
from riskset.cohort.empirical_null.regression_posterior import ErrorPosterior
from riskset.cohort.estimate import Estimate, LikelihoodProfile, Subgroup
from riskset.cohort.matching import match
from riskset.cohort.outcome_model import fit_outcome
from riskset.cohort.outcomes import followup
from riskset.cohort.overlap import Discrimination, auc, equipoise, preference_score
from riskset.cohort.per_protocol import fit_per_protocol
from riskset.cohort.population import Population
from riskset.cohort.propensity_model import propensity_score
from riskset.cohort.propensity_result import PropensityScore
from riskset.cohort.reporting import report
from riskset.cohort.restricted_means import ArmRestrictedMeans, restricted_mean
from riskset.cohort.risks import RiskDifference, risk_difference
from riskset.cohort.sample_size import (
    RequiredPeople,
    event_probability,
    expected_se,
    mdrr,
    power,
    required_events,
    required_people,
)
from riskset.cohort.saving import load, save
from riskset.cohort.settings import (
    BalanceOptions,
    Coarsen,
    DiagnosticLimits,
    Match,
    OutcomeModel,
    PropensityModel,
    SeveralTreatments,
    Stratify,
    Table1Options,
    Tidy,
    Trim,
    Weight,
)
from riskset.cohort.several_treatments import TreatmentWeights, weight_treatments
from riskset.cohort.sharing import (
    share_balance,
    share_curves,
    share_estimate,
    share_restricted_means,
    share_risks,
    share_subgroups,
    share_table1,
)
from riskset.cohort.standardization import StandardizedEstimates, standardize
from riskset.cohort.stratification import stratify
from riskset.cohort.trimming import trim
from riskset.cohort.weighting import weight
from riskset.disclosure.small_cells import hide_small

__all__ = [
    "Adjustment",
    "ArmCurves",
    "ArmRestrictedMeans",
    "Attrition",
    "Balance",
    "BalanceOptions",
    "CalibratedEstimates",
    "CensoringModel",
    "Coarsen",
    "Controls",
    "Diagnostic",
    "DeviationModel",
    "DeviationWeights",
    "DiagnosticLimits",
    "Diagnostics",
    "Discrimination",
    "EValue",
    "ErrorModel",
    "ErrorPosterior",
    "Estimate",
    "LikelihoodProfile",
    "Match",
    "Null",
    "NullPosterior",
    "OutcomeModel",
    "Population",
    "PropensityModel",
    "PropensityScore",
    "RequiredPeople",
    "RiskDifference",
    "SeveralTreatments",
    "StandardizedEstimates",
    "Step",
    "Stratify",
    "Subgroup",
    "Table1",
    "Table1Options",
    "Tidy",
    "TidyInfo",
    "TreatmentWeights",
    "Trim",
    "Weight",
    "attrition",
    "auc",
    "balance",
    "calibrate",
    "censor_deviations",
    "censoring_weights",
    "clone",
    "coarsen",
    "diagnose",
    "e_value",
    "equipoise",
    "event_probability",
    "expected_se",
    "fit_null_profiles",
    "fit_outcome",
    "fit_per_protocol",
    "followup",
    "gray",
    "hide_small",
    "incidence",
    "load",
    "match",
    "mdrr",
    "power",
    "preference_score",
    "propensity_score",
    "report",
    "required_events",
    "required_people",
    "restrict",
    "restricted_mean",
    "risk_difference",
    "save",
    "share_balance",
    "share_curves",
    "share_estimate",
    "share_restricted_means",
    "share_risks",
    "share_subgroups",
    "share_table1",
    "standardize",
    "stratify",
    "survival",
    "table1",
    "tidy",
    "trim",
    "weight",
    "weight_treatments",
]
