"""Rows of propensity scores."""

from riskset.results.column_groups import PenaltyColumns
from riskset.results.columns import ResultRow, column, group, row_class
from riskset.results.run_rows import SUPPRESSED, VALUES

__all__ = [
    "FlaggedCovariateRow",
    "PreferenceRow",
    "ScoreCoefficientRow",
    "ScorePenaltyRow",
    "ScoreRow",
]


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
