"""Rows of what biases would do to the main estimates: confounders, and errors of the controls."""

from riskset.results.columns import column, row_class
from riskset.results.run_rows import OfRun

__all__ = ["BiasBoundRow", "ConfounderRow"]


@row_class
class ConfounderRow(OfRun, table="unmeasured_confounding"):
    """An unmeasured confounder of assumed strength, and the main estimate without its bias."""

    number: int = column("id", "1, 2, ...")
    kind: str = column("id", '"binary" or "normal"')
    target_prevalence: float | None = column(
        "setting", "prevalence of a binary confounder in the target group", unit="share"
    )
    comparator_prevalence: float | None = column(
        "setting", "prevalence in the comparator group", unit="share"
    )
    difference: float | None = column(
        "setting",
        "mean of a normal confounder in the target group minus that in the comparator group, in "
        "standard deviations",
    )
    effect: float = column(
        "setting",
        "risk ratio of the outcome with a binary confounder versus without it, or per standard "
        "deviation of a normal one",
    )
    bias: float = column("setting", "factor by which it makes the ratio too large")
    ratio: float | None = column("effect", "the main estimate divided by the bias, as a risk ratio")
    ratio_lower: float | None = column("effect", "lower limit of its interval")
    ratio_upper: float | None = column("effect", "upper limit")
    common: bool | None = column(
        "effect", "whether the ratio was converted by the approximation for common outcomes"
    )
    tips: bool | None = column(
        "effect", "whether the interval contains 1 or lies on the other side of it"
    )
    n_needed: float | None = column(
        "effect", "number of independent confounders of this kind that move the interval to 1"
    )
    tipping_effect: float | None = column(
        "effect",
        "effect with which the interval reaches 1, with these prevalences or this difference; "
        "missing if none is enough",
    )
    tipping_effect_of_estimate: float | None = column(
        "effect", "effect with which the estimate itself is 1"
    )


@row_class
class BiasBoundRow(OfRun, table="bias_bounds"):
    """The main estimate if its systematic error is as large as that of the negative controls."""

    basis: str = column(
        "id",
        '"null": the central range of the null distribution, or "largest": the range of the '
        "estimates of the controls",
    )
    direction: str = column(
        "id", '"seen": the range as it is, or "either": as large in both directions'
    )
    bias_lower: float | None = column("effect", "lowest systematic error, as a factor of the ratio")
    bias_upper: float | None = column("effect", "highest systematic error")
    ratio_lower: float | None = column("effect", "lowest ratio without such an error")
    ratio_upper: float | None = column("effect", "highest ratio")
    limit_lower: float | None = column("effect", "lowest limit of the intervals of these ratios")
    limit_upper: float | None = column("effect", "highest limit")
    includes_1: bool | None = column("effect", "whether 1 is between these limits")
    e_value: float | None = column("effect", "E-value of the larger systematic error")
    beyond: float | None = column(
        "effect",
        "probability (null) or proportion of controls (largest) of errors that alone move the "
        "interval to 1; 1 if it contains 1",
        unit="share",
    )
    n_controls: int = column("summary", "number of negative controls used")
    range_level: float = column("setting", "probability of the range of the null distribution")
