"""The rows of every table of a network, each column declared once with its type and meaning."""

from riskset.results.columns import ResultRow, column, row_class

__all__ = ["NETWORK_TABLES", "HeterogeneityRow", "OfEstimate", "PooledRow", "SiteRow"]


@row_class
class OfEstimate(ResultRow):
    """A row of one estimate."""

    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    outcome: str = column("id", "name of the outcome")
    analysis: str = column("id", "name of the analysis")


@row_class
class SiteRow(OfEstimate, table="sites"):
    """An estimate of a site, before and after the correction by its negative controls."""

    site: str = column("id", "name of the site")
    status: str = column(
        "summary",
        '"ok", or why it is not pooled: a status of the study, "diagnostics" (some '
        'failed), "no_profile" or "absent"',
    )
    target_outcomes: int | None = column("count", "outcomes of the target group, if shared")
    comparator_outcomes: int | None = column("count", "outcomes of the comparator group, if shared")
    hr: float | None = column(
        "effect",
        "hazard, odds or rate ratio by the profile; 0 or infinite without an outcome in one arm",
    )
    hr_lower: float | None = column("effect", "lower limit of its likelihood-ratio interval")
    hr_upper: float | None = column("effect", "upper limit")
    log_hr: float | None = column("effect", "logarithm of the ratio; may be infinite")
    se: float | None = column(
        "effect", "standard error as shared by the site; missing where the ratio is 0 or infinite"
    )
    n_controls: int = column("summary", "negative controls with a profile")
    bias_mean: float | None = column("summary", "mean systematic error of log ratios")
    bias_sd: float | None = column("summary", "standard deviation of the systematic error")
    corrected_hr: float | None = column("effect", "ratio without the systematic error")
    corrected_hr_lower: float | None = column("effect", "lower limit of its interval")
    corrected_hr_upper: float | None = column("effect", "upper limit")


@row_class
class PooledRow(OfEstimate, table="pooled"):
    """A pooled hazard, odds or rate ratio."""

    method: str = column(
        "id",
        '"fixed" or "random" (by profiles), "inverse variance", "DerSimonian-Laird", "REML" '
        'or "Hartung-Knapp" (by normal approximations; the last with the REML variance)',
    )
    corrected: bool = column("id", "whether the systematic error of the sites is taken out")
    left_out: str | None = column("id", "the site that is left out, if one is")
    n_sites: int = column("summary", "number of sites that are pooled")
    sites_left_out: str = column(
        "summary", "sites that the method cannot use, separated by semicolons", ""
    )
    hr: float | None = column("effect", "ratio; of random effects, the posterior median")
    hr_lower: float | None = column(
        "effect",
        "lower limit of its interval; of random effects, of the central posterior interval",
    )
    hr_upper: float | None = column("effect", "upper limit")
    log_hr: float | None = column("effect", "logarithm of the ratio; may be infinite")
    se: float | None = column(
        "effect",
        "standard error of the logarithm; of random effects, the posterior standard deviation",
    )
    p: float | None = column("effect", "two-sided p; none for random effects by profiles", unit="p")
    tau: float | None = column(
        "effect",
        "standard deviation of the log ratios of sites; of random "
        "effects by profiles, the posterior median",
    )
    tau_lower: float | None = column("effect", "lower limit of its posterior interval")
    tau_upper: float | None = column("effect", "upper limit")
    predicted_hr_lower: float | None = column("effect", "lower limit for the ratio at a new site")
    predicted_hr_upper: float | None = column("effect", "upper limit")
    level: float = column("setting", "level of all intervals, such as 0.95")


@row_class
class HeterogeneityRow(OfEstimate, table="heterogeneity"):
    """How much the effects of the sites differ."""

    corrected: bool = column("id", "whether the systematic error of the sites is taken out")
    n_sites: int = column("summary", "number of sites with a profile")
    ratio: float | None = column(
        "effect",
        "twice the sum of the maxima of the sites minus the maximum of the sum",
    )
    ratio_p: float | None = column("effect", "its p, by a chi-square distribution", unit="p")
    n_normal: int = column("summary", "number of sites with a normal approximation")
    q: float | None = column("effect", "Cochran's Q of the normal approximations")
    q_df: int = column("summary", "its degrees of freedom")
    q_p: float | None = column("effect", "its p", unit="p")
    i2: float | None = column("effect", "I2, the share of the variance between sites", unit="share")
    i2_lower: float | None = column("effect", "lower limit of its 95 % interval", unit="share")
    i2_upper: float | None = column("effect", "upper limit", unit="share")


NETWORK_TABLES: dict[str, type[ResultRow]] = {
    row.table: row for row in (SiteRow, PooledRow, HeterogeneityRow)
}
"""Every table of a network by its name."""
