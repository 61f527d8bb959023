"""The rows of every table of results.

Four names say which estimate a row belongs to: target, comparator, outcome and analysis, as the
specification calls them. What several estimates share has a number: `ps` a propensity score,
`adjustment` a set of weights. Counts that are too small to be shared are missing, and `suppressed`
names their columns; effects that failed diagnostics are missing, and `blinded` is true.
"""

from riskset.results.columns import ResultRow, column, group, row_class

SUPPRESSED = "columns hidden because of small counts, by commas"


@row_class
class ArmColumns:
    """Counts and rates of one arm."""

    persons: int | None = column("count", "people of the {of}")
    exposures: int | None = column("count", "rows of the {of}; people may enter twice")
    days: float | None = column("derived", "days at risk, first and last day counted")
    outcomes: int | None = column("count", "outcomes")
    competing: int | None = column("count", "competing events")
    rate: float | None = column("derived", "outcomes per 1000 person-years")
    rate_lower: float | None = column("derived", "lower end of its exact Poisson interval of 95 %")
    rate_upper: float | None = column("derived", "upper end")
    weighted_rate: float | None = column("derived", "with the weights of the adjustment")
    weighted_rate_lower: float | None = column("derived", "lower end of its interval of 95 %")
    weighted_rate_upper: float | None = column("derived", "upper end")


@row_class
class PenaltyColumns:
    """The penalty of the covariates of a model, and how it was chosen."""

    l1: float | None = column("summary", "strength of {of} L1 penalty on the total log likelihood")
    l2: float | None = column("summary", "strength of {of} L2 penalty")
    variance: float | None = column(
        "summary", "of the prior that the strength stands for (Cyclops)"
    )
    chosen_by: str | None = column("summary", '"cross-validation", or "given"')
    folds: int | None = column("summary", "of the cross-validation")
    repeats: int | None = column("summary", "its repetitions")
    seed: int | None = column("summary", "of the folds")


@row_class
class BalanceColumns:
    """A covariate in both arms, before or after an adjustment."""

    mean_target: float | None = column(
        "derived", "mean in the target; of zeros and ones, the share"
    )
    mean_comparator: float | None = column("derived", "mean in the comparator")
    sd_target: float | None = column("derived", "standard deviation in the target")
    sd_comparator: float | None = column("derived", "standard deviation in the comparator")
    count_target: int | None = column(
        "count", "people of the target who have it; zeros and ones only"
    )
    count_comparator: int | None = column("count", "people of the comparator who have it")
    smd: float | None = column("derived", "standardised difference of the means; may be infinite")
    smd_current_sd: float | None = column("derived", "by the standard deviation of the same side")
    smd_variance: float | None = column("derived", "variance of the standardised difference")
    p: float | None = column("derived", "p of one as large if the truth lies at the threshold")
    balanced: bool | None = column("derived", "within the threshold")


@row_class
class CharacteristicColumns:
    """A characteristic of both arms, before or after an adjustment."""

    target: float | None = column("derived", "{of}")
    comparator: float | None = column("derived", "in the comparator")
    target_sd: float | None = column("derived", "standard deviation, of a mean")
    comparator_sd: float | None = column("derived", "in the comparator")
    smd: float | None = column("derived", "standardised difference")


@row_class
class EffectColumns:
    """A hazard ratio with its interval and p values."""

    hr: float | None = column("effect", "{of}hazard ratio of target against comparator")
    hr_lower: float | None = column("effect", "lower end of its interval; may be 0")
    hr_upper: float | None = column("effect", "upper end; may be infinite")
    log_hr: float | None = column("effect", "its logarithm; infinite with events in one arm")
    se: float | None = column("effect", "standard error of the logarithm")
    p: float | None = column("effect", "two-sided p")
    one_sided_p: float | None = column("effect", "p for a ratio above 1")


@row_class
class OfRun(ResultRow):
    """A row that belongs to one estimate that was asked for."""

    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    outcome: str = column("id", "name of the outcome")
    analysis: str = column("id", "name of the analysis")


@row_class
class OfComparison(ResultRow):
    """A row that belongs to one analysis of a comparison."""

    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    analysis: str = column("id", "name of the analysis")


@row_class
class RunRow(OfRun, table="runs"):
    """An estimate that was asked for: what became of it."""

    outcome_kind: str = column("setting", '"outcome", "negative control" or "positive control"')
    true_hr: float | None = column("setting", "hazard ratio of a control, 1 for a negative one")
    status: str = column("summary", '"ok", or why there is no estimate, such as "no_matches"')
    step: str | None = column(
        "summary", 'the step that has this status, such as "propensity score"'
    )
    reason: str | None = column("text", "the status in a sentence")
    estimand: str | None = column(
        "setting", 'whom it is about: "ate", "att", "atu", "ato", "matching"'
    )
    adjustment_kind: str | None = column(
        "setting", '"none", "trimming", "matching", "stratification", "weighting"'
    )
    ps: int | None = column("id", "number of the propensity score")
    adjustment: int | None = column("id", "number of the adjustment")
    shared_adjustment: int | None = column("id", "number of the adjustment that all outcomes share")
    unblind: bool = column("summary", "no diagnostic failed")
    unblind_for_evidence_synthesis: bool = column(
        "summary", 'no diagnostic failed, except perhaps "mdrr"'
    )
    blinded: bool = column("summary", "effects are withheld in these tables", False)


@row_class
class AttritionRow(ResultRow, table="attrition"):
    """A step that made the people of an adjustment; the first is what was read."""

    adjustment: int = column("id", "number of the adjustment")
    number: int = column("id", "1, 2, ...")
    step: str = column("setting", "what was done")
    target_persons: int | None = column("count", "people of the target left")
    comparator_persons: int | None = column("count", "people of the comparator left")
    target_exposures: int | None = column("count", "rows of the target left")
    comparator_exposures: int | None = column("count", "rows of the comparator left")
    removed_target: int | None = column("count", "rows of the target that it removed")
    removed_comparator: int | None = column("count", "rows of the comparator that it removed")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ArmRow(OfRun, table="arms"):
    """One side of an estimate: who was followed, for how long, and what happened."""

    side: str = column("id", '"before" or "after" adjustment')
    target_arm: ArmColumns = group(ArmColumns, "target_", "target")
    comparator_arm: ArmColumns = group(ArmColumns, "comparator_", "comparator")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ScoreRow(ResultRow, table="ps"):
    """A propensity score."""

    ps: int = column("id", "its number")
    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    status: str = column("summary", '"ok", or why there is none, or none to use')
    reason: str | None = column("text", "the status in a sentence")
    source: str = column("setting", '"fitted", or "given" with the data')
    n_target: int | None = column("count", "rows of the target that it was fitted for")
    n_comparator: int | None = column("count", "rows of the comparator")
    auc: float | None = column(
        "summary", "chance that a target has a higher score than a comparator"
    )
    auc_lower: float | None = column("summary", "lower end of its interval of 95 % (DeLong)")
    auc_upper: float | None = column("summary", "upper end")
    equipoise: float | None = column(
        "derived", "share of people with a preference score of 0.3 to 0.7"
    )
    n_covariates: int | None = column("summary", "covariates after tidying")
    n_used: int | None = column("summary", "those with a coefficient other than 0")
    n_excluded: int | None = column(
        "summary", "those left out because they determine the treatment"
    )
    penalty: str | None = column("summary", '"none", "l1", "l2" or "elasticnet"')
    strength: PenaltyColumns = group(PenaltyColumns, of="the")
    intercept: float | None = column("derived", "of the model")
    log_likelihood: float | None = column("derived", "of the model")
    kkt: float | None = column("summary", "largest relative violation of the optimality conditions")
    removed_empty: int | None = column("summary", "covariates that nobody has")
    removed_redundant: int | None = column("summary", "covariates that follow from others")
    removed_rare: int | None = column("summary", "covariates too rare")
    removed_duplicate: int | None = column("summary", "covariates equal to another one")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ScoreCoefficientRow(ResultRow, table="ps_coefficients"):
    """A covariate of a propensity score with a coefficient other than 0, the largest first."""

    ps: int = column("id", "number of the propensity score")
    rank: int = column("id", "1, 2, ... by size")
    covariate_id: str = column("id", "key of the covariate")
    name: str = column("id", "its name")
    coef: float | None = column(
        "derived", "log odds ratio per unit of the covariate; may be infinite"
    )
    mean_target: float | None = column(
        "derived", "mean in the target; of zeros and ones the prevalence"
    )
    mean_comparator: float | None = column("derived", "mean in the comparator")
    is_binary: bool | None = column("id", "zeros and ones")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ScorePenaltyRow(ResultRow, table="ps_cross_validation"):
    """A penalty that the cross-validation of a propensity score has tried."""

    ps: int = column("id", "number of the propensity score")
    l1: float = column("summary", "strength of the L1 penalty")
    l2: float = column("summary", "strength of the L2 penalty")
    variance: float | None = column("summary", "of the prior that it stands for")
    mean: float = column("summary", "log likelihood of people left out, mean over repetitions")
    se: float | None = column("summary", "its standard error over repetitions")
    chosen: bool = column("summary", "the one in use")


@row_class
class FlaggedCovariateRow(ResultRow, table="ps_flagged"):
    """A covariate that nearly determines the treatment, or that one arm alone has."""

    ps: int = column("id", "number of the propensity score")
    kind: str = column("id", '"high_correlation" or "one_arm_only"')
    covariate_id: str = column("id", "key of the covariate")
    name: str = column("id", "its name")
    correlation: float | None = column("derived", "with the treatment")
    mean_target: float | None = column("derived", "mean in the target")
    mean_comparator: float | None = column("derived", "mean in the comparator")
    excluded: bool = column("summary", "left out of the model")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class AdjustmentRow(ResultRow, table="adjustments"):
    """An adjustment: who is compared with which weights, and how alike the arms then are."""

    adjustment: int = column("id", "its number")
    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    ps: int | None = column("id", "number of the propensity score")
    kind: str = column("setting", '"none", "trimming", "matching", "stratification", "weighting"')
    estimand: str | None = column("setting", "whom the effect is about")
    status: str = column("summary", '"ok", "empty", "one_arm_empty" or "no_matches"')
    target_rows: int | None = column("count", "rows kept of the target")
    comparator_rows: int | None = column("count", "rows kept of the comparator")
    target_effective: float | None = column("derived", "effective size with weights (Kish)")
    comparator_effective: float | None = column("derived", "of the comparator")
    stratum_borders: list[float] | None = column(
        "summary", "borders of strata, as preference scores"
    )
    caliper: float | None = column("summary", "largest distance of matched people")
    details: str = column("text", "what the step found, as JSON")
    n_covariates: int | None = column("summary", "covariates whose balance was looked at")
    before_max: float | None = column("derived", "largest size of a standardised difference before")
    before_worst: str | None = column("summary", "its covariate")
    before_above: int | None = column("summary", "differences above the threshold before")
    after_max: float | None = column("derived", "largest size after")
    after_worst: str | None = column("summary", "its covariate")
    after_above: int | None = column("summary", "differences above the threshold after")
    after_min_p: float | None = column("derived", "smallest p of a difference, times their number")
    generalisability_of: str | None = column(
        "setting", '"target", "comparator" or "both": whom the effect is about'
    )
    generalisability_max: float | None = column(
        "derived", "their largest standardised difference before and after"
    )
    threshold: float | None = column("setting", "of balance, 0.1 as a rule")
    sd: str | None = column("setting", '"before" or "current": whose standard deviation divides')
    has_balance: bool = column("summary", "whether the table `balance` has its covariates")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class PreferenceRow(ResultRow, table="preference"):
    """A bar of the histogram of preference scores of an arm; bars with few people are joined."""

    adjustment: int = column("id", "number of the adjustment")
    arm: str = column("id", '"target" or "comparator"')
    lower: float = column("id", "lower end, a multiple of 0.01")
    upper: float = column("id", "upper end")
    count: int | None = column("count", "rows before adjustment")
    kept: int | None = column("count", "those that the adjustment keeps")
    weight: float | None = column("derived", "sum of their weights")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class BalanceRow(ResultRow, table="balance"):
    """A covariate before and after an adjustment."""

    adjustment: int = column("id", "number of the adjustment")
    covariate_id: str = column("id", "key of the covariate")
    name: str = column("id", "its name")
    analysis_id: int | None = column(
        "id", "how it was made (OMOP), such as 210 for groups of conditions"
    )
    domain: str | None = column("id", 'such as "condition"')
    is_binary: bool = column("id", "zeros and ones")
    category: int | None = column(
        "id", "number of its category; everybody has exactly one level of it"
    )
    before: BalanceColumns = group(BalanceColumns, "before_")
    after: BalanceColumns = group(BalanceColumns, "after_")
    generalisability_target: float | None = column(
        "derived", "difference of the target before and after"
    )
    generalisability_comparator: float | None = column(
        "derived", "difference of the comparator before and after"
    )
    generalisability_both: float | None = column(
        "derived", "difference of both arms before and after"
    )
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class CharacteristicRow(ResultRow, table="table1"):
    """A line of the table of characteristics."""

    adjustment: int = column("id", "number of the adjustment")
    number: int = column("id", "order of the lines")
    section: str = column("id", 'such as "Medical history"')
    covariate_id: str | None = column("id", "key of the covariate")
    label: str = column("id", "the characteristic")
    kind: str = column("id", '"share" or "mean"')
    before: CharacteristicColumns = group(
        CharacteristicColumns, "before_", "share or mean in the target"
    )
    after: CharacteristicColumns = group(
        CharacteristicColumns, "after_", "after adjustment, weighted"
    )
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class EstimateRow(OfRun, table="estimates"):
    """A hazard ratio; the first of a run with the role main is its answer."""

    number: int = column("id", "order within the run")
    role: str = column("id", '"main", "crude", "sensitivity", "model" or "subgroup"')
    label: str = column("id", "what it is, in a few words")
    model: str = column("id", '"cox", "cause-specific" or "finegray"')
    reading: str = column("id", '"stratified", "marginal" or "pooled"')
    subgroup: str | None = column("id", "name of the subgroup variable")
    level: str | None = column("id", "level of the subgroup")
    interaction_p: float | None = column("effect", "p that the effect is that at the first level")
    estimand: str | None = column("setting", "whom the effect is about")
    status: str = column("summary", '"ok", or why there is no number, such as "no_events"')
    note: str | None = column("summary", 'codes of remarks, such as "few_events", by semicolons')
    effect: EffectColumns = group(EffectColumns)
    llr: float | None = column("effect", "log likelihood less that with a ratio of 1")
    interval: str | None = column("setting", '"profile", "robust", "wald" or "bootstrap"')
    interval_level: float = column("setting", "such as 0.95")
    calibrated: EffectColumns = group(EffectColumns, "calibrated_", "calibrated ")
    mdrr: float | None = column("derived", "smallest ratio the study would detect (power 0.8)")
    expected_se: float | None = column(
        "derived", "standard error to expect of a ratio of 1; may be infinite"
    )
    proportionality_p: float | None = column(
        "effect", "p that the log hazard ratio does not change with log time"
    )
    informative_strata: int | None = column("count", "strata with both arms and an outcome")
    informative_people: int | None = column("count", "people in them")
    n_covariates: int | None = column("summary", "covariates in the model beside the treatment")
    n_used: int | None = column("summary", "those with a coefficient other than 0")
    strength: PenaltyColumns = group(PenaltyColumns, of="their")
    kkt: float | None = column("summary", "largest relative violation of the optimality conditions")
    target_arm: ArmColumns = group(ArmColumns, "target_", "target")
    comparator_arm: ArmColumns = group(ArmColumns, "comparator_", "comparator")
    suppressed: str = column("summary", SUPPRESSED, "")
    blinded: bool = column("summary", "the effect is withheld", False)


@row_class
class OutcomeCoefficientRow(OfRun, table="outcome_coefficients"):
    """A covariate of an outcome model with a coefficient other than 0, the largest first."""

    number: int = column("id", "number of the estimate")
    rank: int = column("id", "1, 2, ... by size")
    covariate_id: str = column("id", "key of the covariate")
    name: str = column("id", "its name")
    coef: float | None = column(
        "derived", "log hazard ratio per unit of the covariate; may be infinite"
    )
    mean_target: float | None = column(
        "derived", "mean in the target, of people whom the adjustment keeps"
    )
    mean_comparator: float | None = column(
        "derived", "mean in the comparator; of zeros and ones the prevalence"
    )
    is_binary: bool = column("id", "zeros and ones")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class OutcomePenaltyRow(OfRun, table="outcome_cross_validation"):
    """A penalty that the cross-validation of an outcome model has tried."""

    number: int = column("id", "number of the estimate")
    l1: float = column("summary", "strength of the L1 penalty")
    l2: float = column("summary", "strength of the L2 penalty")
    variance: float | None = column("summary", "of the prior that it stands for")
    mean: float = column("effect", "log likelihood of people left out, mean over repetitions")
    se: float | None = column("effect", "its standard error over repetitions")
    chosen: bool = column("summary", "the one in use")


@row_class
class RiskRow(OfRun, table="absolute_risks"):
    """Risk of the outcome up to a time."""

    adjusted: bool = column("id", "with the weights of the adjustment")
    time: float = column("id", "days since the start of the time at risk")
    target_risk: float | None = column("derived", "in the target")
    target_lower: float | None = column("derived", "lower end of its interval")
    target_upper: float | None = column("derived", "upper end")
    comparator_risk: float | None = column("derived", "in the comparator")
    comparator_lower: float | None = column("derived", "lower end of its interval")
    comparator_upper: float | None = column("derived", "upper end")
    difference: float | None = column("derived", "target less comparator")
    difference_lower: float | None = column("derived", "lower end of its interval")
    difference_upper: float | None = column("derived", "upper end")
    interval: str = column("setting", 'of the difference: "normal" or "bootstrap"')
    interval_level: float = column("setting", "such as 0.95")
    target_at_risk: int | None = column("count", "people of the target still followed")
    comparator_at_risk: int | None = column("count", "people of the comparator still followed")
    target_outcomes: int | None = column("count", "people of the target with the outcome by then")
    comparator_outcomes: int | None = column(
        "count", "people of the comparator with the outcome by then"
    )
    suppressed: str = column("summary", SUPPRESSED, "")
    blinded: bool = column("summary", "the risks are withheld", False)


@row_class
class CurveRow(OfRun, table="curves"):
    """A step of a curve: the value from a time on. It ends where an arm has few people left."""

    adjusted: bool = column("id", "with the weights of the adjustment")
    kind: str = column("id", '"survival", or "incidence" if there are competing events')
    arm: str = column("id", '"target" or "comparator"')
    cause: int = column("id", "1 = outcome, 2 = competing event")
    time: float = column("id", "days since the start of the time at risk")
    value: float = column("derived", "survival, or cumulative incidence")
    standard_error: float | None = column("derived", "of the value")
    lower: float | None = column("derived", "lower end of its interval")
    upper: float | None = column("derived", "upper end")
    people: int | None = column("private", "people at risk in the arm with fewer")
    events: int | None = column("private", "people of the arm with an event of this cause by then")


@row_class
class AtRiskRow(OfRun, table="numbers_at_risk"):
    """People of an arm who are still followed just before a time."""

    adjusted: bool = column("id", "whether only people whom the adjustment keeps count")
    arm: str = column("id", '"target" or "comparator"')
    time: float = column("id", "days since the start of the time at risk")
    people: int | None = column("count", "number of people")
    weighted: float | None = column("derived", "sum of their weights")
    effective: float | None = column("derived", "effective number (Kish)")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ControlRow(OfComparison, table="controls"):
    """A control outcome in one model."""

    model: str = column("id", '"cox", "cause-specific" or "finegray"')
    reading: str = column("id", '"stratified", "marginal" or "pooled"')
    outcome: str = column("id", "name of the control")
    true_hr: float = column("setting", "1 for a negative control")
    status: str = column("summary", "of its estimate")
    hr: float | None = column("effect", "hazard ratio")
    hr_lower: float | None = column("effect", "lower end of its interval")
    hr_upper: float | None = column("effect", "upper end")
    log_hr: float | None = column("effect", "logarithm of the ratio")
    se: float | None = column("effect", "its standard error")
    p: float | None = column("effect", "two-sided p")
    calibrated_p: float | None = column("effect", "calibrated by all other controls")
    used: bool = column("summary", "went into the calibration")
    reason: str | None = column("summary", "why it did not")


@row_class
class CalibrationRow(OfComparison, table="calibration"):
    """Systematic error as the controls of one model show it."""

    model: str = column("id", '"cox", "cause-specific" or "finegray"')
    reading: str = column("id", '"stratified", "marginal" or "pooled"')
    status: str = column("summary", '"ok" or "too_few_controls"')
    n_negative: int = column("summary", "negative controls in use")
    n_positive: int = column("summary", "positive controls in use")
    null_mean: float | None = column("summary", "mean systematic error of log hazard ratios")
    null_sd: float | None = column("summary", "its standard deviation")
    posterior_mean: float | None = column("summary", "median of the posterior of the mean")
    posterior_mean_lower: float | None = column("summary", "lower end of its interval of 95 %")
    posterior_mean_upper: float | None = column("summary", "upper end")
    posterior_sd: float | None = column(
        "summary", "median of the posterior of the standard deviation"
    )
    posterior_sd_lower: float | None = column("summary", "lower end of its interval of 95 %")
    posterior_sd_upper: float | None = column("summary", "upper end")
    ease: float | None = column("summary", "expected absolute systematic error")
    ease_lower: float | None = column("summary", "lower end of its interval of 95 %")
    ease_upper: float | None = column("summary", "upper end")
    coverage: float | None = column("summary", "share of negative controls whose interval holds 1")
    calibrated_coverage: float | None = column("summary", "the same, each calibrated by all others")
    error_mean_intercept: float | None = column(
        "summary", "of the model of error, if there are positive controls"
    )
    error_mean_slope: float | None = column("summary", "by the true log ratio")
    error_sd_intercept: float | None = column("summary", "of its standard deviation")
    error_sd_slope: float | None = column("summary", "by the size of the true log ratio")
    interval_level: float = column("setting", "such as 0.95")
    region_se: list[float] | None = column("summary", "standard errors of the log hazard ratio")
    region_lower: list[float] | None = column(
        "summary", "at each, the lowest log ratio with a calibrated p of 0.05"
    )
    region_upper: list[float] | None = column(
        "summary", "at each, the highest log ratio with a calibrated p of 0.05"
    )


@row_class
class DiagnosticRow(OfRun, table="diagnostics"):
    """A check that decides whether the estimate may be looked at."""

    name: str = column("id", '"balance", "shared_balance", "equipoise", "mdrr", ...')
    value: float | None = column("derived", "what was found; may be infinite")
    limit: float | None = column("setting", "None: reported only")
    verdict: str = column("summary", '"pass", "fail" or "not_evaluated"')


@row_class
class FollowUpRow(OfRun, table="follow_up"):
    """A quantile of the days at risk, of people whom the adjustment keeps."""

    arm: str = column("id", '"target" or "comparator"')
    share: float = column("id", "of the quantile: 0, 0.1, 0.25, 0.5, 0.75, 0.9 or 1")
    days: float | None = column("derived", "days at risk")


@row_class
class FollowUpBinRow(OfRun, table="follow_up_histogram"):
    """A bin of the days at risk, of people whom the adjustment keeps; bins with few are joined."""

    arm: str = column("id", '"target" or "comparator"')
    start: float = column("id", "days at risk, more than")
    end: float = column("id", "and up to")
    people: int | None = column("count", "people")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class FollowUpEndRow(OfRun, table="follow_up_ends"):
    """Why follow-up ended, of people whom the adjustment keeps."""

    arm: str = column("id", '"target" or "comparator"')
    reason: str = column("id", 'such as "outcome", "competing event" or "observation end"')
    count: int | None = column("count", "people")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ProfilePointRow(OfRun, table="likelihood_profiles"):
    """A point of the profile log likelihood of the main estimate of an outcome or a control."""

    log_hr: float = column("effect", "log hazard ratio, from log 0.1 to log 10")
    log_likelihood: float = column("effect", "less the largest of the profile, so at most 0")
    derivative: float | None = column("effect", "of the profile by the log hazard ratio")


@row_class
class IntervalRow(OfRun, table="effect_over_time"):
    """A run's main effect in an interval of time; intervals have equal numbers of outcomes."""

    interval: int = column("id", "1, 2, ...")
    start: float = column("id", "day after which it begins, since the start of follow-up")
    end: float = column("id", "last day of the interval")
    target_outcomes: int = column("count", "outcomes of the target in it")
    comparator_outcomes: int = column("count", "outcomes of the comparator in it")
    hr: float = column("effect", "hazard ratio in it, by scaled Schoenfeld residuals")
    hr_lower: float = column("effect", "lower end of its normal interval")
    hr_upper: float = column("effect", "upper end")
    log_hr: float = column("effect", "its logarithm")
    se: float = column("effect", "standard error of the logarithm")
    interval_level: float = column("setting", "such as 0.95")


@row_class
class WeekRow(OfRun, table="event_weeks"):
    """A week about the index date: first outcomes of people under observation."""

    arm: str = column("id", '"target" or "comparator"')
    week: int = column("id", "week w begins 7 w days after the index date")
    events: int | None = column(
        "count", "people whose first outcome within these weeks is in this one"
    )
    people: int | None = column("count", "people under observation without one when it begins")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class YearRow(ResultRow, table="calendar"):
    """A year in which people of a comparison started."""

    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    arm: str = column("id", '"target" or "comparator"')
    year: int = column("id", "calendar year of the index date")
    starts: int | None = column("count", "rows")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class ConceptRow(ResultRow, table="codes"):
    """A concept of a definition."""

    list: str = column("id", "what is defined, such as the name of a target or an outcome")
    concept_id: int = column("id", "of the vocabulary")
    name: str = column("id", "its name")
    vocabulary: str | None = column("id", 'such as "RxNorm"')
    excluded: bool = column("setting", "taken out of the definition")


@row_class
class RemarkRow(ResultRow, table="warnings"):
    """A remark of a step, once for all estimates it concerns."""

    step: str = column("id", 'such as "propensity score"')
    code: str = column("id", 'a short name, such as "high_correlation"')
    message: str = column("text", "in a sentence")
    count: int = column("summary", "how many estimates it concerns")
    where: str = column("id", "the first of them: target, comparator, outcome, analysis")


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
