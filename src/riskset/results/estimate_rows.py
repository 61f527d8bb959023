"""Rows of estimates, of their models, of controls and calibration, and of diagnostics."""

from riskset.results.column_groups import (
    ArmColumns,
    EffectColumns,
    MultiplicityColumns,
    PenaltyColumns,
)
from riskset.results.columns import column, group, row_class
from riskset.results.run_rows import SUPPRESSED, OfComparison, OfRun

__all__ = [
    "CalibrationRow",
    "ControlRow",
    "DiagnosticRow",
    "EffectAtTimeRow",
    "EstimateRow",
    "IntervalRow",
    "OutcomeCoefficientRow",
    "OutcomePenaltyRow",
    "ProfilePointRow",
    "TimeEffectRow",
]


MODELS = '"cox", "cause-specific", "finegray", "logistic" or "poisson"'


@row_class
class EstimateRow(OfRun, table="estimates"):
    """An estimate, such as a hazard ratio; the first row with the role main is that of a run."""

    number: int = column("id", "order within the run")
    role: str = column(
        "id",
        '"main", "crude", "sensitivity", "model", "subgroup", or "weights": the main estimate with '
        "other weights for deviation",
    )
    label: str = column("id", "short description")
    model: str = column("id", MODELS)
    scale: str | None = column("id", 'what it is a ratio of: "hazard", "odds" or "rate"')
    reading: str = column("id", '"stratified", "marginal" or "pooled"')
    subgroup: str | None = column("id", "name of the subgroup variable")
    level: str | None = column("id", "level of the subgroup")
    interaction_p: float | None = column(
        "effect", "p of the hypothesis that the effect equals that at the first level", unit="p"
    )
    contrast: str | None = column(
        "setting",
        '"per-protocol": people are censored when they deviate from their treatment, with weights '
        'for it; "intention-to-treat": whatever they did later; none: the study does not say',
    )
    estimand: str | None = column("setting", "population of the effect")
    status: str = column("summary", '"ok", or why there is no estimate, such as "no_events"')
    note: str | None = column(
        "summary", 'codes of notes, such as "few_events", separated by semicolons'
    )
    effect: EffectColumns = group(EffectColumns)
    llr: float | None = column(
        "effect", "log likelihood minus the log likelihood with a ratio of 1"
    )
    interval: str | None = column(
        "setting", '"profile", "robust", "wald", "bootstrap" or "stacked"'
    )
    interval_level: float = column("setting", "confidence level, such as 0.95")
    ties: str | None = column(
        "setting", 'how a Cox model handles tied events: "breslow", "efron" or "exact"'
    )
    firth: bool | None = column(
        "setting", "whether a Cox model maximises Firth's penalised likelihood"
    )
    frailty: str | None = column(
        "setting", 'distribution of the frailties of a Cox model: "gamma" or "lognormal"'
    )
    cluster: str | None = column("setting", "variable of the clusters whose people share a frailty")
    n_clusters: int | None = column("derived", "number of these clusters")
    frailty_variance: float | None = column("derived", "variance of the frailties")
    frailty_p: float | None = column(
        "derived",
        "p of the hypothesis that there are no frailties; none if they have a given variance",
        unit="p",
    )
    n_imputations: int | None = column("setting", "number of data sets that it is pooled over")
    fraction_missing: float | None = column("summary", "missing share of information", unit="share")
    calibrated: EffectColumns = group(EffectColumns, "calibrated_", "calibrated ")
    multiplicity: MultiplicityColumns = group(MultiplicityColumns)
    calibrated_multiplicity: MultiplicityColumns = group(
        MultiplicityColumns, "calibrated_", "calibrated "
    )
    mdrr: float | None = column("derived", "minimum detectable ratio (power 0.8)")
    expected_se: float | None = column(
        "derived", "expected standard error if the ratio is 1; may be infinite"
    )
    e_value: float | None = column("effect", "E-value of the ratio; may be infinite")
    e_value_limit: float | None = column(
        "effect", "E-value of the limit closest to 1; 1 if the interval contains 1"
    )
    e_value_common: bool | None = column(
        "effect", "whether the E-values are by the approximation for common outcomes"
    )
    proportionality_p: float | None = column(
        "effect", "p of the hypothesis that the log hazard ratio is constant in log time", unit="p"
    )
    informative_strata: int | None = column(
        "count", "number of strata with both arms and an outcome"
    )
    informative_people: int | None = column("count", "number of people in these strata")
    n_covariates: int | None = column(
        "summary", "number of covariates in the model without the treatment"
    )
    n_used: int | None = column("summary", "number of non-zero coefficients")
    strength: PenaltyColumns = group(PenaltyColumns, of="their")
    kkt: float | None = column("summary", "largest relative violation of the optimality conditions")
    target_arm: ArmColumns = group(ArmColumns, "target_", "target")
    comparator_arm: ArmColumns = group(ArmColumns, "comparator_", "comparator")
    suppressed: str = column("summary", SUPPRESSED, "")
    blinded: bool = column("summary", "whether the effect is withheld", False)


@row_class
class OutcomeCoefficientRow(OfRun, table="outcome_coefficients"):
    """A covariate of an outcome model with a non-zero coefficient, largest first."""

    number: int = column("id", "number of the estimate")
    rank: int = column("id", "1, 2, ... by absolute size")
    covariate_id: str = column("id", "key of the covariate")
    name: str = column("id", "name of the covariate")
    coef: float | None = column("derived", "log ratio per unit of the covariate; may be infinite")
    mean_target: float | None = column("derived", "mean in the target group after adjustment")
    mean_comparator: float | None = column(
        "derived", "mean in the comparator group; for a binary covariate, the prevalence"
    )
    is_binary: bool = column("id", "whether the covariate is binary")
    fixed: bool | None = column("setting", "whether the coefficient was given, and not estimated")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class OutcomePenaltyRow(OfRun, table="outcome_cross_validation"):
    """A penalty evaluated by the cross-validation of an outcome model."""

    number: int = column("id", "number of the estimate")
    l1: float = column("summary", "strength of the L1 penalty")
    l2: float = column("summary", "strength of the L2 penalty")
    variance: float | None = column("summary", "variance of the equivalent prior")
    mean: float = column("effect", "held-out log likelihood, mean over repetitions")
    se: float | None = column("effect", "standard error over repetitions")
    chosen: bool = column("summary", "whether this penalty was chosen")


@row_class
class ControlRow(OfComparison, table="controls"):
    """A control outcome in one model."""

    model: str = column("id", MODELS)
    reading: str = column("id", '"stratified", "marginal" or "pooled"')
    outcome: str = column("id", "name of the control")
    true_hr: float = column("setting", "true ratio; 1 for a negative control")
    status: str = column("summary", "status of its estimate")
    hr: float | None = column("effect", "hazard, odds or rate ratio")
    hr_lower: float | None = column("effect", "lower limit of its interval")
    hr_upper: float | None = column("effect", "upper limit")
    log_hr: float | None = column("effect", "logarithm of the ratio")
    se: float | None = column("effect", "standard error of the logarithm")
    p: float | None = column("effect", "two-sided p", unit="p")
    calibrated_p: float | None = column(
        "effect", "p after calibration with all other controls", unit="p"
    )
    calibrated_hr: float | None = column(
        "effect", "ratio after calibration with all other controls"
    )
    calibrated_hr_lower: float | None = column("effect", "lower limit of its interval")
    calibrated_hr_upper: float | None = column("effect", "upper limit")
    null_mean_without: float | None = column(
        "effect", "`null_mean` of the table `calibration` without this control"
    )
    null_sd_without: float | None = column("effect", "`null_sd` without this control")
    used: bool = column("summary", "whether it was used for calibration")
    reason: str | None = column("summary", "reason if it was not used")


@row_class
class CalibrationRow(OfComparison, table="calibration"):
    """Systematic error, estimated from the controls of one model."""

    model: str = column("id", MODELS)
    reading: str = column("id", '"stratified", "marginal" or "pooled"')
    status: str = column("summary", '"ok" or "too_few_controls"')
    n_negative: int = column("summary", "number of negative controls used")
    n_positive: int = column("summary", "number of positive controls used")
    null_mean: float | None = column("summary", "mean systematic error of log ratios")
    null_sd: float | None = column("summary", "standard deviation of the systematic error")
    posterior_mean: float | None = column("summary", "posterior median of the mean")
    posterior_mean_lower: float | None = column("summary", "lower limit of its 95 % interval")
    posterior_mean_upper: float | None = column("summary", "upper limit")
    posterior_sd: float | None = column("summary", "posterior median of the standard deviation")
    posterior_sd_lower: float | None = column("summary", "lower limit of its 95 % interval")
    posterior_sd_upper: float | None = column("summary", "upper limit")
    ease: float | None = column("summary", "expected absolute systematic error")
    ease_lower: float | None = column("summary", "lower limit of its 95 % interval")
    ease_upper: float | None = column("summary", "upper limit")
    coverage: float | None = column(
        "summary", "proportion of negative controls whose interval contains 1", unit="share"
    )
    calibrated_coverage: float | None = column(
        "summary", "the same, each calibrated with all others", unit="share"
    )
    error_mean_intercept: float | None = column(
        "summary", "intercept of the mean in the error model, if there are positive controls"
    )
    error_mean_slope: float | None = column(
        "summary", "slope of the mean per unit of the true log ratio"
    )
    error_sd_intercept: float | None = column(
        "summary", "intercept of the standard deviation in the error model"
    )
    error_sd_slope: float | None = column(
        "summary", "slope of the standard deviation per unit of the absolute true log ratio"
    )
    interval_level: float = column("setting", "confidence level, such as 0.95")
    region_se: list[float] | None = column("summary", "standard errors of the log ratio")
    region_lower: list[float] | None = column(
        "summary", "for each standard error, the lowest log ratio with a calibrated p of 0.05"
    )
    region_upper: list[float] | None = column(
        "summary", "for each standard error, the highest log ratio with a calibrated p of 0.05"
    )


@row_class
class DiagnosticRow(OfRun, table="diagnostics"):
    """A diagnostic required before unblinding."""

    name: str = column("id", '"balance", "shared_balance", "equipoise", "mdrr", ...')
    value: float | None = column("derived", "value of the diagnostic; may be infinite")
    limit: float | None = column("setting", "limit; none if the diagnostic is reported only")
    verdict: str = column("summary", '"pass", "fail" or "not_evaluated"')


@row_class
class ProfilePointRow(OfRun, table="likelihood_profiles"):
    """A point of the profile log likelihood of the main estimate of an outcome or a control."""

    log_hr: float = column("effect", "log ratio, from log 0.1 to log 10")
    log_likelihood: float = column(
        "effect", "log likelihood minus the largest of the profile, so at most 0"
    )
    derivative: float | None = column("effect", "derivative of the profile by the log ratio")


@row_class
class IntervalRow(OfRun, table="effect_over_time"):
    """The main effect in a time interval; intervals have equal numbers of outcomes."""

    interval: int = column("id", "1, 2, ...")
    start: float = column(
        "id", "day after which the interval begins, since the start of follow-up", unit="days"
    )
    end: float = column("id", "last day of the interval", unit="days")
    target_outcomes: int | None = column("count", "outcomes of the target group in the interval")
    comparator_outcomes: int | None = column(
        "count", "outcomes of the comparator group in the interval"
    )
    hr: float = column("effect", "hazard ratio in the interval, from scaled Schoenfeld residuals")
    hr_lower: float = column("effect", "lower limit of its normal interval")
    hr_upper: float = column("effect", "upper limit")
    log_hr: float = column("effect", "logarithm of the ratio")
    se: float = column("effect", "standard error of the logarithm")
    interval_level: float = column("setting", "confidence level, such as 0.95")


@row_class
class TimeEffectRow(OfRun, table="time_effects"):
    """A model in which the main hazard ratio is a function of time, and the test that it is not.

    It maximises the likelihood. The table `effect_over_time` needs no function: its intervals are
    one step from the constant ratio.
    """

    function: str = column("setting", 'function of time: "log", "identity" or "steps"')
    interval: str = column("setting", '"robust" or "wald": variance of its test and intervals')
    df: int = column("summary", "degrees of freedom of the test that the hazard ratio is constant")
    statistic: float | None = column(
        "effect", "Wald statistic; missing if it is pooled over data sets"
    )
    p: float | None = column("effect", "p of the test", unit="p")


@row_class
class EffectAtTimeRow(OfRun, table="effect_at_times"):
    """The hazard ratio at a time, or in a step, by the model in the table `time_effects`."""

    number: int = column("id", "1, 2, ... by time")
    start: float | None = column(
        "id", "day after which a step begins; none for a smooth function", unit="days"
    )
    time: float = column("id", "day, or last day of a step, since the start", unit="days")
    target_outcomes: int | None = column("count", "outcomes of the target group in the step")
    comparator_outcomes: int | None = column(
        "count", "outcomes of the comparator group in the step"
    )
    hr: float = column("effect", "hazard ratio")
    hr_lower: float = column("effect", "lower limit of its pointwise interval")
    hr_upper: float = column("effect", "upper limit")
    log_hr: float = column("effect", "logarithm of the ratio")
    se: float = column("effect", "standard error of the logarithm")
    interval_level: float = column("setting", "confidence level, such as 0.95")
