"""Columns that belong together, such as the counts of one arm; tables have them under a prefix."""

from riskset.results.columns import column, row_class

__all__ = [
    "ArmColumns",
    "BalanceColumns",
    "CharacteristicColumns",
    "EffectColumns",
    "MultiplicityColumns",
    "PenaltyColumns",
]


@row_class
class ArmColumns:
    """Counts and rates of one arm."""

    persons: int | None = column("count", "people in the {of} group")
    exposures: int | None = column("count", "rows of the {of} group; people may enter twice")
    days: float | None = column("derived", "days at risk, including the first and the last day")
    outcomes: int | None = column("count", "outcomes")
    competing: int | None = column("count", "competing events")
    rate: float | None = column("derived", "outcomes per 1000 person-years")
    rate_lower: float | None = column("derived", "lower limit of its exact 95 % Poisson interval")
    rate_upper: float | None = column("derived", "upper limit")
    weighted_rate: float | None = column("derived", "rate with the weights of the adjustment")
    weighted_rate_lower: float | None = column("derived", "lower limit of its 95 % interval")
    weighted_rate_upper: float | None = column("derived", "upper limit")


@row_class
class PenaltyColumns:
    """The penalty of the covariates of a model, and how it was chosen."""

    l1: float | None = column("summary", "strength of {of} L1 penalty on the total log likelihood")
    l2: float | None = column("summary", "strength of {of} L2 penalty")
    variance: float | None = column("summary", "variance of the equivalent prior (Cyclops)")
    chosen_by: str | None = column("summary", '"cross-validation", or "given"')
    folds: int | None = column("summary", "number of folds of the cross-validation")
    repeats: int | None = column("summary", "number of repetitions")
    seed: int | None = column("summary", "seed of the folds")


@row_class
class BalanceColumns:
    """A covariate in both arms, before or after an adjustment."""

    mean_target: float | None = column(
        "derived", "mean in the target group; for a binary covariate, the proportion"
    )
    mean_comparator: float | None = column("derived", "mean in the comparator group")
    sd_target: float | None = column("derived", "standard deviation in the target group")
    sd_comparator: float | None = column("derived", "standard deviation in the comparator group")
    count_target: int | None = column(
        "count", "people of the target group with the covariate; binary covariates only"
    )
    count_comparator: int | None = column(
        "count", "people of the comparator group with the covariate"
    )
    smd: float | None = column("derived", "standardised mean difference; may be infinite")
    smd_current_sd: float | None = column(
        "derived", "the same, divided by the standard deviation of the same side"
    )
    variance_ratio: float | None = column(
        "derived",
        "variance in the target group, divided by that in the comparator group; not of binary "
        "covariates",
    )
    ks: float | None = column(
        "derived",
        "Kolmogorov-Smirnov statistic; results that are shared have it of binary covariates only",
    )
    smd_variance: float | None = column("derived", "variance of the standardised difference")
    p: float | None = column(
        "derived", "p of the null hypothesis that the difference is at the threshold", unit="p"
    )
    balanced: bool | None = column("derived", "whether the difference is within the threshold")


@row_class
class CharacteristicColumns:
    """A characteristic of both arms, before or after an adjustment."""

    target: float | None = column(
        "derived", "proportion, mean, median or effective number{of} in the target group"
    )
    comparator: float | None = column("derived", "the same in the comparator group")
    target_count: int | None = column(
        "count", "number of people in the target group; none if people have different weights"
    )
    comparator_count: int | None = column("count", "the same in the comparator group")
    target_sd: float | None = column("derived", "standard deviation of a mean")
    comparator_sd: float | None = column("derived", "the same in the comparator group")
    target_lower: float | None = column("derived", "first quartile beside a median")
    target_upper: float | None = column("derived", "third quartile")
    comparator_lower: float | None = column("derived", "first quartile in the comparator group")
    comparator_upper: float | None = column("derived", "third quartile")
    overall: float | None = column("derived", "the same of both groups together")
    overall_count: int | None = column("count", "number of people in both groups")
    overall_sd: float | None = column("derived", "standard deviation of a mean of both groups")
    overall_lower: float | None = column("derived", "first quartile in both groups")
    overall_upper: float | None = column("derived", "third quartile in both groups")
    smd: float | None = column("derived", "standardised difference; of a category, of all levels")


@row_class
class EffectColumns:
    """A ratio with its interval and p values."""

    hr: float | None = column("effect", "{of}hazard, odds or rate ratio, target versus comparator")
    hr_lower: float | None = column("effect", "lower limit of its interval; may be 0")
    hr_upper: float | None = column("effect", "upper limit; may be infinite")
    log_hr: float | None = column(
        "effect", "logarithm of the ratio; infinite with events in one arm only"
    )
    se: float | None = column("effect", "standard error of the logarithm")
    p: float | None = column("effect", "two-sided p", unit="p")
    one_sided_p: float | None = column("effect", "p for a ratio above 1", unit="p")


@row_class
class MultiplicityColumns:
    """The p of a main estimate, adjusted for the number of outcomes of interest.

    A family has the main estimates of one analysis, of all its comparisons. An estimate that is
    withheld or hidden counts as a test with p = 1.
    """

    holm_p: float | None = column(
        "effect", "{of}p of a main estimate, adjusted for several outcomes (Holm)", unit="p"
    )
    fdr_p: float | None = column(
        "effect", "the same by the false discovery rate (Benjamini and Hochberg)", unit="p"
    )
