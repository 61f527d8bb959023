"""Comparative cohort studies: propensity scores, balance, outcome models and diagnostics.

Each function takes a `Population`, or the result of an earlier step. Adjustments return an
`Adjustment`, whose weights apply to balance, curves and models.
"""

from riskset.cohort.adjustments.adjustment import Adjustment, Step, restrict
from riskset.cohort.adjustments.adjustment_settings import (
    Coarsen,
    Match,
    SeveralTreatments,
    Stratify,
    Trim,
    Weight,
)
from riskset.cohort.adjustments.attrition_table import Attrition, attrition
from riskset.cohort.adjustments.coarsening import coarsen
from riskset.cohort.adjustments.matching import match
from riskset.cohort.adjustments.several_treatments import TreatmentWeights, weight_treatments
from riskset.cohort.adjustments.stratification import stratify
from riskset.cohort.adjustments.trimming import trim
from riskset.cohort.adjustments.weighting import weight
from riskset.cohort.arms.augmented_estimates import DoublyRobustEstimates, doubly_robust
from riskset.cohort.arms.curves import ArmCurves, gray, incidence, survival
from riskset.cohort.arms.restricted_means import ArmRestrictedMeans, restricted_mean
from riskset.cohort.arms.risks import RiskDifference, risk_difference
from riskset.cohort.arms.standardization import StandardizedEstimates, standardize
from riskset.cohort.bias.calibration import CalibratedEstimates, Controls, calibrate
from riskset.cohort.bias.control_bounds import BiasBounds, bias_bounds
from riskset.cohort.bias.e_values import EValue, e_value
from riskset.cohort.bias.empirical_null.fit import Null, fit_null_profiles
from riskset.cohort.bias.empirical_null.posterior import NullPosterior
from riskset.cohort.bias.empirical_null.regression import ErrorModel
from riskset.cohort.bias.empirical_null.regression_posterior import ErrorPosterior
from riskset.cohort.bias.risk_ratios import RiskRatio
from riskset.cohort.bias.unmeasured_confounder import (
    ConfounderAdjusted,
    TippingPoints,
    adjust_for_confounder,
    covariate_strengths,
    tipping_points,
)
from riskset.cohort.covariates.baseline_table import Table1, table1
from riskset.cohort.covariates.covariate_balance import Balance, balance
from riskset.cohort.covariates.covariate_filter import TidyInfo, tidy
from riskset.cohort.diagnostics import Diagnostic, Diagnostics, diagnose
from riskset.cohort.effects.estimate import Estimate, LikelihoodProfile, Subgroup
from riskset.cohort.effects.outcome_model import fit_outcome
from riskset.cohort.effects.time_effect import TimeEffect
from riskset.cohort.outcomes import followup
from riskset.cohort.planning.sample_size import (
    ConstantHazards,
    PoweredTest,
    RatioTest,
    StudyDesign,
    event_probability,
    expected_se,
    mdrr,
    power,
    required_events,
)
from riskset.cohort.planning.study_plan import StudyPlan, plan_study, required_people
from riskset.cohort.population import Population
from riskset.cohort.propensity.overlap import Discrimination, auc, equipoise, preference_score
from riskset.cohort.propensity.propensity_model import propensity_score
from riskset.cohort.propensity.propensity_result import PropensityScore
from riskset.cohort.protocol.artificial_censoring import DeviationWeights, censoring_weights
from riskset.cohort.protocol.censoring_model import DeviationModel
from riskset.cohort.protocol.censoring_settings import CensoringModel
from riskset.cohort.protocol.deviations import censor_deviations, clone
from riskset.cohort.protocol.per_protocol import fit_per_protocol
from riskset.cohort.reporting import report
from riskset.cohort.saving import load, save
from riskset.cohort.settings import (
    BalanceOptions,
    DiagnosticLimits,
    OutcomeModel,
    PropensityModel,
    Table1Options,
    Tidy,
)
from riskset.cohort.sharing import (
    share_balance,
    share_curves,
    share_estimate,
    share_restricted_means,
    share_risks,
    share_standardized,
    share_subgroups,
    share_table1,
)
from riskset.disclosure.small_cells import hide_small

__all__ = [
    "Adjustment",
    "ArmCurves",
    "ArmRestrictedMeans",
    "Attrition",
    "Balance",
    "BalanceOptions",
    "BiasBounds",
    "CalibratedEstimates",
    "CensoringModel",
    "Coarsen",
    "ConfounderAdjusted",
    "Controls",
    "Diagnostic",
    "DeviationModel",
    "DeviationWeights",
    "DiagnosticLimits",
    "Diagnostics",
    "Discrimination",
    "DoublyRobustEstimates",
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
    "PoweredTest",
    "RatioTest",
    "ConstantHazards",
    "StudyDesign",
    "RiskDifference",
    "RiskRatio",
    "SeveralTreatments",
    "StandardizedEstimates",
    "Step",
    "Stratify",
    "StudyPlan",
    "Subgroup",
    "Table1",
    "Table1Options",
    "Tidy",
    "TidyInfo",
    "TimeEffect",
    "TippingPoints",
    "TreatmentWeights",
    "Trim",
    "Weight",
    "adjust_for_confounder",
    "attrition",
    "auc",
    "balance",
    "bias_bounds",
    "calibrate",
    "censor_deviations",
    "censoring_weights",
    "clone",
    "coarsen",
    "covariate_strengths",
    "diagnose",
    "doubly_robust",
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
    "plan_study",
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
    "share_standardized",
    "share_subgroups",
    "share_table1",
    "standardize",
    "stratify",
    "survival",
    "table1",
    "tidy",
    "tipping_points",
    "trim",
    "weight",
    "weight_treatments",
]
