"""The rows of every table of results.

Target, comparator, outcome and analysis identify the estimate of a row, by their names in the
specification. Results that several estimates share have a number: `ps` for a propensity score,
`adjustment` for a set of weights. Counts that are too small to be shared are missing, and
`suppressed` lists their columns. Effects that failed diagnostics are missing, with `blinded` true.
"""

from riskset.results.column_groups import (
    ArmColumns,
    BalanceColumns,
    CharacteristicColumns,
    EffectColumns,
    MultiplicityColumns,
    PenaltyColumns,
)
from riskset.results.columns import ResultRow, column, group, row_class

SUPPRESSED = "columns hidden because of small counts, separated by commas"
VALUES = "{} as a template and its values with their kinds, as JSON, if it has values"


@row_class
class OfRun(ResultRow):
    """A row of one estimate."""

    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    outcome: str = column("id", "name of the outcome")
    analysis: str = column("id", "name of the analysis")


@row_class
class OfComparison(ResultRow):
    """A row of one analysis of a comparison."""

    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    analysis: str = column("id", "name of the analysis")


@row_class
class RunRow(OfRun, table="runs"):
    """One row per requested estimate, with its status."""

    outcome_kind: str = column("setting", '"outcome", "negative control" or "positive control"')
    true_hr: float | None = column(
        "setting", "true hazard ratio of a control, 1 for a negative control"
    )
    status: str = column("summary", '"ok", or why no estimate is available, such as "no_matches"')
    step: str | None = column("summary", 'step that set this status, such as "propensity score"')
    reason: str | None = column("text", "reason for the status, as a sentence")
    reason_values: str | None = column("text", VALUES.format("reason"))
    estimand: str | None = column("setting", '"ate", "att", "atu", "ato" or "matching"')
    adjustment_kind: str | None = column(
        "setting", '"none", "trimming", "matching", "stratification", "weighting"'
    )
    ps: int | None = column("id", "number of the propensity score")
    adjustment: int | None = column("id", "number of the adjustment")
    shared_adjustment: int | None = column("id", "number of the adjustment for the shared balance")
    unblind: bool = column("summary", "whether no diagnostic failed")
    unblind_for_evidence_synthesis: bool = column(
        "summary", 'whether no diagnostic failed, except perhaps "mdrr"'
    )
    blinded: bool = column("summary", "whether the effects are withheld in these tables", False)


@row_class
class AttritionRow(ResultRow, table="attrition"):
    """One row per exclusion step of an adjustment; the first row is the population as read."""

    adjustment: int = column("id", "number of the adjustment")
    number: int = column("id", "1, 2, ...")
    step: str = column("setting", "description of the step")
    target_persons: int | None = column("count", "people remaining in the target group")
    comparator_persons: int | None = column("count", "people remaining in the comparator group")
    target_exposures: int | None = column("count", "rows remaining in the target group")
    comparator_exposures: int | None = column("count", "rows remaining in the comparator group")
    removed_target: int | None = column("count", "rows of the target group removed by the step")
    removed_comparator: int | None = column(
        "count", "rows of the comparator group removed by the step"
    )
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ArmRow(OfRun, table="arms"):
    """People, days, outcomes and rates of an estimate, before or after adjustment."""

    side: str = column("id", '"before" or "after" adjustment')
    target_arm: ArmColumns = group(ArmColumns, "target_", "target")
    comparator_arm: ArmColumns = group(ArmColumns, "comparator_", "comparator")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ScoreRow(ResultRow, table="ps"):
    """A propensity score."""

    ps: int = column("id", "number of the propensity score")
    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    status: str = column("summary", '"ok", or why there is no usable score')
    reason: str | None = column("text", "reason for the status, as a sentence")
    reason_values: str | None = column("text", VALUES.format("reason"))
    source: str = column("setting", '"fitted", or "given" (supplied with the data)')
    n_target: int | None = column("count", "rows of the target group for which it was fitted")
    n_comparator: int | None = column("count", "rows of the comparator group")
    auc: float | None = column(
        "summary", "probability that a target has a higher score than a comparator"
    )
    auc_lower: float | None = column("summary", "lower limit of its 95 % interval (DeLong)")
    auc_upper: float | None = column("summary", "upper limit")
    equipoise: float | None = column(
        "derived", "proportion of people with a preference score of 0.3 to 0.7", unit="share"
    )
    n_covariates: int | None = column("summary", "number of covariates after tidying")
    n_used: int | None = column("summary", "number of non-zero coefficients")
    n_excluded: int | None = column(
        "summary", "covariates excluded because they nearly determine the treatment"
    )
    penalty: str | None = column("summary", '"none", "l1", "l2" or "elasticnet"')
    strength: PenaltyColumns = group(PenaltyColumns, of="the")
    intercept: float | None = column("derived", "intercept of the model")
    log_likelihood: float | None = column("derived", "log likelihood of the model")
    kkt: float | None = column("summary", "largest relative violation of the optimality conditions")
    removed_empty: int | None = column("summary", "number of covariates without any value")
    removed_redundant: int | None = column("summary", "number of redundant covariates")
    removed_rare: int | None = column("summary", "number of rare covariates")
    removed_duplicate: int | None = column("summary", "number of copies of other covariates")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ScoreCoefficientRow(ResultRow, table="ps_coefficients"):
    """A covariate of a propensity score with a non-zero coefficient, largest first."""

    ps: int = column("id", "number of the propensity score")
    rank: int = column("id", "1, 2, ... by absolute size")
    covariate_id: str = column("id", "key of the covariate")
    name: str = column("id", "name of the covariate")
    coef: float | None = column(
        "derived", "log odds ratio per unit of the covariate; may be infinite"
    )
    mean_target: float | None = column(
        "derived", "mean in the target group; for a binary covariate, the prevalence"
    )
    mean_comparator: float | None = column("derived", "mean in the comparator group")
    is_binary: bool | None = column("id", "whether the covariate is binary")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ScorePenaltyRow(ResultRow, table="ps_cross_validation"):
    """A penalty evaluated by the cross-validation of a propensity score."""

    ps: int = column("id", "number of the propensity score")
    l1: float = column("summary", "strength of the L1 penalty")
    l2: float = column("summary", "strength of the L2 penalty")
    variance: float | None = column("summary", "variance of the equivalent prior")
    mean: float = column("summary", "held-out log likelihood, mean over repetitions")
    se: float | None = column("summary", "standard error over repetitions")
    chosen: bool = column("summary", "whether this penalty was chosen")


@row_class
class FlaggedCovariateRow(ResultRow, table="ps_flagged"):
    """A covariate that nearly determines the treatment, or occurs in one arm only."""

    ps: int = column("id", "number of the propensity score")
    kind: str = column("id", '"high_correlation" or "one_arm_only"')
    covariate_id: str = column("id", "key of the covariate")
    name: str = column("id", "name of the covariate")
    correlation: float | None = column("derived", "correlation with the treatment")
    mean_target: float | None = column("derived", "mean in the target group")
    mean_comparator: float | None = column("derived", "mean in the comparator group")
    excluded: bool = column("summary", "whether it was excluded from the model")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class AdjustmentRow(ResultRow, table="adjustments"):
    """An adjustment: its people, weights and balance."""

    adjustment: int = column("id", "number of the adjustment")
    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    ps: int | None = column("id", "number of the propensity score")
    kind: str = column("setting", '"none", "trimming", "matching", "stratification", "weighting"')
    estimand: str | None = column("setting", "population of the effect")
    status: str = column("summary", '"ok", "empty", "one_arm_empty" or "no_matches"')
    target_rows: int | None = column("count", "rows kept in the target group")
    comparator_rows: int | None = column("count", "rows kept in the comparator group")
    target_effective: float | None = column(
        "derived", "effective sample size of the target group (Kish)"
    )
    comparator_effective: float | None = column(
        "derived", "effective sample size of the comparator group"
    )
    stratum_borders: list[float] | None = column(
        "summary", "limits of the strata, as preference scores"
    )
    caliper: float | None = column("summary", "largest distance of matched people")
    details: str = column("text", "facts about the adjustment, as JSON")
    n_covariates: int | None = column("summary", "number of covariates in the balance")
    before_max: float | None = column(
        "derived", "largest absolute standardised difference before adjustment"
    )
    before_worst: str | None = column("summary", "covariate of that difference")
    before_above: int | None = column(
        "summary", "number of differences above the threshold before adjustment"
    )
    after_max: float | None = column(
        "derived", "largest absolute standardised difference after adjustment"
    )
    after_worst: str | None = column("summary", "covariate of that difference")
    after_above: int | None = column(
        "summary", "number of differences above the threshold after adjustment"
    )
    after_min_p: float | None = column(
        "derived", "smallest p of a difference, multiplied by their number", unit="p"
    )
    generalisability_of: str | None = column(
        "setting", '"target", "comparator" or "both": the group of the estimand'
    )
    generalisability_max: float | None = column(
        "derived", "largest standardised difference of this group between before and after"
    )
    threshold: float | None = column("setting", "threshold of balance, usually 0.1")
    sd: str | None = column(
        "setting", '"before" or "current": standard deviation in the denominator'
    )
    has_balance: bool = column("summary", "whether the table `balance` contains its covariates")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class PreferenceRow(ResultRow, table="preference"):
    """A bar of the preference score histogram of an arm; bars with few people are merged."""

    adjustment: int = column("id", "number of the adjustment")
    arm: str = column("id", '"target" or "comparator"')
    lower: float = column("id", "lower limit, a multiple of 0.01")
    upper: float = column("id", "upper limit")
    count: int | None = column("count", "rows before adjustment")
    kept: int | None = column("count", "rows kept by the adjustment")
    weight: float | None = column("derived", "sum of the weights")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class BalanceRow(ResultRow, table="balance"):
    """A covariate before and after an adjustment."""

    adjustment: int = column("id", "number of the adjustment")
    covariate_id: str = column("id", "key of the covariate")
    name: str = column("id", "name of the covariate")
    analysis_id: int | None = column("id", "analysis (OMOP), such as 210 for groups of conditions")
    domain: str | None = column("id", 'domain, such as "condition"')
    is_binary: bool = column("id", "whether the covariate is binary")
    category: int | None = column(
        "id", "number of its category; every person has exactly one level"
    )
    before: BalanceColumns = group(BalanceColumns, "before_")
    after: BalanceColumns = group(BalanceColumns, "after_")
    generalisability_target: float | None = column(
        "derived", "standardised difference of the target group between before and after"
    )
    generalisability_comparator: float | None = column(
        "derived", "standardised difference of the comparator group between before and after"
    )
    generalisability_both: float | None = column(
        "derived", "standardised difference of both groups between before and after"
    )
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class SubgroupBalanceRow(ResultRow, table="subgroup_balance"):
    """A covariate in a level of a subgroup; of many, those with the largest differences."""

    adjustment: int = column("id", "number of the adjustment")
    subgroup: str = column("id", "name of the subgroup variable")
    level: str = column("id", "level of the subgroup")
    covariate_id: str = column("id", "key of the covariate")
    name: str = column("id", "name of the covariate")
    before_smd: float | None = column("derived", "standardised difference; may be infinite")
    after_smd: float | None = column("derived", "the same after adjustment")
    fewest: int | None = column("private", "fewest people of an arm with or without it, above 0")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class CharacteristicRow(ResultRow, table="table1"):
    """A line of the table of baseline characteristics."""

    adjustment: int = column("id", "number of the adjustment")
    number: int = column("id", "order of the lines")
    item: int = column("id", "number of the characteristic; its lines stand together")
    section: str | None = column("id", 'section, such as "Medical history"')
    covariate_id: str | None = column("id", "key of the covariate")
    label: str = column("id", "the characteristic, or a level of the category above it")
    kind: str = column(
        "id",
        '"people", "effective" (sample size), "share", "mean", "median", "category" (a heading), '
        '"level" or "missing"',
    )
    before: CharacteristicColumns = group(CharacteristicColumns, "before_", " of people")
    after: CharacteristicColumns = group(
        CharacteristicColumns, "after_", " of people, weighted, after adjustment"
    )
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class EstimateRow(OfRun, table="estimates"):
    """A hazard ratio; the main result of a run is its first row with the role main."""

    number: int = column("id", "order within the run")
    role: str = column("id", '"main", "crude", "sensitivity", "model" or "subgroup"')
    label: str = column("id", "short description")
    model: str = column("id", '"cox", "cause-specific" or "finegray"')
    reading: str = column("id", '"stratified", "marginal" or "pooled"')
    subgroup: str | None = column("id", "name of the subgroup variable")
    level: str | None = column("id", "level of the subgroup")
    interaction_p: float | None = column(
        "effect", "p of the hypothesis that the effect equals that at the first level", unit="p"
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
    interval: str | None = column("setting", '"profile", "robust", "wald" or "bootstrap"')
    interval_level: float = column("setting", "confidence level, such as 0.95")
    n_imputations: int | None = column("setting", "number of data sets that it is pooled over")
    fraction_missing: float | None = column("summary", "missing share of information", unit="share")
    calibrated: EffectColumns = group(EffectColumns, "calibrated_", "calibrated ")
    multiplicity: MultiplicityColumns = group(MultiplicityColumns)
    calibrated_multiplicity: MultiplicityColumns = group(
        MultiplicityColumns, "calibrated_", "calibrated "
    )
    mdrr: float | None = column("derived", "minimum detectable hazard ratio (power 0.8)")
    expected_se: float | None = column(
        "derived", "expected standard error if the ratio is 1; may be infinite"
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
    coef: float | None = column(
        "derived", "log hazard ratio per unit of the covariate; may be infinite"
    )
    mean_target: float | None = column("derived", "mean in the target group after adjustment")
    mean_comparator: float | None = column(
        "derived", "mean in the comparator group; for a binary covariate, the prevalence"
    )
    is_binary: bool = column("id", "whether the covariate is binary")
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
class RiskRow(OfRun, table="absolute_risks"):
    """Risk of the outcome by a time."""

    adjusted: bool = column("id", "whether the weights of the adjustment apply")
    time: float = column("id", "days since the start of the time at risk", unit="days")
    target_risk: float | None = column("derived", "risk in the target group", unit="share")
    target_lower: float | None = column("derived", "lower limit of its interval", unit="share")
    target_upper: float | None = column("derived", "upper limit", unit="share")
    comparator_risk: float | None = column("derived", "risk in the comparator group", unit="share")
    comparator_lower: float | None = column("derived", "lower limit of its interval", unit="share")
    comparator_upper: float | None = column("derived", "upper limit", unit="share")
    difference: float | None = column(
        "derived", "risk in the target group minus risk in the comparator group", unit="share"
    )
    difference_lower: float | None = column("derived", "lower limit of its interval", unit="share")
    difference_upper: float | None = column("derived", "upper limit", unit="share")
    interval: str = column("setting", 'interval of the difference: "normal" or "bootstrap"')
    interval_level: float = column("setting", "confidence level, such as 0.95")
    target_at_risk: int | None = column("count", "people of the target group at risk")
    comparator_at_risk: int | None = column("count", "people of the comparator group at risk")
    target_outcomes: int | None = column(
        "count", "people of the target group with the outcome by then"
    )
    comparator_outcomes: int | None = column(
        "count", "people of the comparator group with the outcome by then"
    )
    suppressed: str = column("summary", SUPPRESSED, "")
    blinded: bool = column("summary", "whether the risks are withheld", False)


@row_class
class CurveRow(OfRun, table="curves"):
    """A step of a curve: its value from a time on. Curves end when an arm has few people left."""

    adjusted: bool = column("id", "whether the weights of the adjustment apply")
    kind: str = column("id", '"survival", or "incidence" if there are competing events')
    arm: str = column("id", '"target" or "comparator"')
    cause: int = column("id", "1 = outcome, 2 = competing event")
    time: float = column("id", "days since the start of the time at risk", unit="days")
    value: float = column("derived", "survival, or cumulative incidence")
    standard_error: float | None = column("derived", "standard error of the value")
    lower: float | None = column("derived", "lower limit of its interval")
    upper: float | None = column("derived", "upper limit")
    people: int | None = column("private", "people at risk in the smaller arm")
    events: int | None = column("private", "people of the arm with an event of this cause by then")


@row_class
class AtRiskRow(OfRun, table="numbers_at_risk"):
    """Number of people of an arm at risk just before a time."""

    adjusted: bool = column("id", "whether only people kept by the adjustment count")
    arm: str = column("id", '"target" or "comparator"')
    time: float = column("id", "days since the start of the time at risk", unit="days")
    people: int | None = column("count", "number of people")
    weighted: float | None = column("derived", "sum of the weights")
    effective: float | None = column("derived", "effective sample size (Kish)")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ControlRow(OfComparison, table="controls"):
    """A control outcome in one model."""

    model: str = column("id", '"cox", "cause-specific" or "finegray"')
    reading: str = column("id", '"stratified", "marginal" or "pooled"')
    outcome: str = column("id", "name of the control")
    true_hr: float = column("setting", "true hazard ratio; 1 for a negative control")
    status: str = column("summary", "status of its estimate")
    hr: float | None = column("effect", "hazard ratio")
    hr_lower: float | None = column("effect", "lower limit of its interval")
    hr_upper: float | None = column("effect", "upper limit")
    log_hr: float | None = column("effect", "logarithm of the ratio")
    se: float | None = column("effect", "standard error of the logarithm")
    p: float | None = column("effect", "two-sided p", unit="p")
    calibrated_p: float | None = column(
        "effect", "p after calibration with all other controls", unit="p"
    )
    calibrated_hr: float | None = column(
        "effect", "hazard ratio after calibration with all other controls"
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

    model: str = column("id", '"cox", "cause-specific" or "finegray"')
    reading: str = column("id", '"stratified", "marginal" or "pooled"')
    status: str = column("summary", '"ok" or "too_few_controls"')
    n_negative: int = column("summary", "number of negative controls used")
    n_positive: int = column("summary", "number of positive controls used")
    null_mean: float | None = column("summary", "mean systematic error of log hazard ratios")
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
    region_se: list[float] | None = column("summary", "standard errors of the log hazard ratio")
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
class FollowUpRow(OfRun, table="follow_up"):
    """A quantile of the days at risk of the people kept by the adjustment."""

    arm: str = column("id", '"target" or "comparator"')
    share: float = column("id", "probability of the quantile: 0, 0.1, 0.25, 0.5, 0.75, 0.9 or 1")
    days: float | None = column("derived", "days at risk", unit="days")


@row_class
class FollowUpBinRow(OfRun, table="follow_up_histogram"):
    """A bin of the days at risk of the people kept; bins with few people are merged."""

    arm: str = column("id", '"target" or "comparator"')
    start: float = column("id", "days at risk are above this number", unit="days")
    end: float = column("id", "days at risk are at most this number", unit="days")
    people: int | None = column("count", "number of people")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class FollowUpEndRow(OfRun, table="follow_up_ends"):
    """Reasons for the end of follow-up of the people kept by the adjustment."""

    arm: str = column("id", '"target" or "comparator"')
    reason: str = column("id", 'reason, such as "outcome", "competing event" or "observation end"')
    count: int | None = column("count", "number of people")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ProfilePointRow(OfRun, table="likelihood_profiles"):
    """A point of the profile log likelihood of the main estimate of an outcome or a control."""

    log_hr: float = column("effect", "log hazard ratio, from log 0.1 to log 10")
    log_likelihood: float = column(
        "effect", "log likelihood minus the largest of the profile, so at most 0"
    )
    derivative: float | None = column("effect", "derivative of the profile by the log hazard ratio")


@row_class
class IntervalRow(OfRun, table="effect_over_time"):
    """The main effect in a time interval; intervals have equal numbers of outcomes."""

    interval: int = column("id", "1, 2, ...")
    start: float = column(
        "id", "day after which the interval begins, since the start of follow-up", unit="days"
    )
    end: float = column("id", "last day of the interval", unit="days")
    target_outcomes: int = column("count", "outcomes of the target group in the interval")
    comparator_outcomes: int = column("count", "outcomes of the comparator group in the interval")
    hr: float = column("effect", "hazard ratio in the interval, from scaled Schoenfeld residuals")
    hr_lower: float = column("effect", "lower limit of its normal interval")
    hr_upper: float = column("effect", "upper limit")
    log_hr: float = column("effect", "logarithm of the ratio")
    se: float = column("effect", "standard error of the logarithm")
    interval_level: float = column("setting", "confidence level, such as 0.95")


@row_class
class WeekRow(OfRun, table="event_weeks"):
    """A week around the index date: first outcomes of people under observation."""

    arm: str = column("id", '"target" or "comparator"')
    week: int = column("id", "week w begins 7 w days after the index date")
    events: int | None = column(
        "count", "people whose first outcome within the window is in this week"
    )
    people: int | None = column(
        "count", "people under observation without an outcome at the start of the week"
    )
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class YearRow(ResultRow, table="calendar"):
    """A calendar year of treatment start."""

    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    arm: str = column("id", '"target" or "comparator"')
    year: int = column("id", "calendar year of the index date")
    starts: int | None = column("count", "number of rows")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ConceptRow(ResultRow, table="codes"):
    """A concept of a code list."""

    list: str = column("id", "name of the code list, such as a target or an outcome")
    concept_id: int = column("id", "id in the vocabulary")
    name: str = column("id", "name of the concept")
    vocabulary: str | None = column("id", 'vocabulary, such as "RxNorm"')
    excluded: bool = column("setting", "whether the concept is excluded")


@row_class
class RemarkRow(ResultRow, table="warnings"):
    """A note of a step, once for all estimates to which it applies."""

    step: str = column("id", 'step, such as "propensity score"')
    code: str = column("id", 'short name of the note, such as "high_correlation"')
    message: str = column("text", "text of the note")
    message_values: str | None = column("text", VALUES.format("message"))
    count: int = column("summary", "number of estimates to which it applies")
    where: str = column("id", "first of these estimates: target, comparator, outcome, analysis")
    outcomes: str | None = column("id", "names of the outcomes of these estimates, as JSON")


TABLES: dict[str, type[ResultRow]] = {
    row.table: row
    for row in (
        RunRow,
        AttritionRow,
        ArmRow,
        ScoreRow,
        ScoreCoefficientRow,
        ScorePenaltyRow,
        FlaggedCovariateRow,
        AdjustmentRow,
        PreferenceRow,
        BalanceRow,
        SubgroupBalanceRow,
        CharacteristicRow,
        EstimateRow,
        OutcomeCoefficientRow,
        OutcomePenaltyRow,
        RiskRow,
        CurveRow,
        AtRiskRow,
        ControlRow,
        CalibrationRow,
        DiagnosticRow,
        FollowUpRow,
        FollowUpBinRow,
        FollowUpEndRow,
        ProfilePointRow,
        IntervalRow,
        WeekRow,
        YearRow,
        ConceptRow,
        RemarkRow,
    )
}
"""Every table of a folder of results by its name."""
