"""Rows of what happened by when: risks, curves, follow-up, weeks and years."""

from riskset.results.columns import ResultRow, column, row_class
from riskset.results.run_rows import SUPPRESSED, OfRun

__all__ = [
    "AtRiskRow",
    "CurveRow",
    "CurveTestRow",
    "FollowUpBinRow",
    "FollowUpEndRow",
    "FollowUpRow",
    "ModelledRiskRow",
    "RestrictedMeanRow",
    "RiskRow",
    "WeekRow",
    "YearRow",
]


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
class RestrictedMeanRow(OfRun, table="restricted_means"):
    """Mean time within a horizon: without an event, or lost to the outcome or to others."""

    adjusted: bool = column("id", "whether the weights of the adjustment apply")
    reading: str = column(
        "id",
        '"marginal", "standardized": the mean over the strata of the propensity score, or, as in '
        'the table `modelled_risks`, "outcome_models" or "doubly_robust"',
    )
    measure: str = column(
        "id",
        '"restricted_mean": mean time without any event, "time_lost": mean time from the outcome '
        'to the horizon, "competing_time_lost": the same from a competing event',
    )
    time: float = column(
        "id", "the horizon, in days since the start of the time at risk", unit="days"
    )
    target_mean: float | None = column("derived", "mean of the target group", unit="days")
    target_se: float | None = column("derived", "its standard error", unit="days")
    target_lower: float | None = column("derived", "lower limit of its interval", unit="days")
    target_upper: float | None = column("derived", "upper limit", unit="days")
    comparator_mean: float | None = column("derived", "mean of the comparator group", unit="days")
    comparator_se: float | None = column("derived", "its standard error", unit="days")
    comparator_lower: float | None = column("derived", "lower limit of its interval", unit="days")
    comparator_upper: float | None = column("derived", "upper limit", unit="days")
    difference: float | None = column(
        "derived", "mean of the target group minus mean of the comparator group", unit="days"
    )
    difference_se: float | None = column("derived", "its standard error", unit="days")
    difference_lower: float | None = column("derived", "lower limit of its interval", unit="days")
    difference_upper: float | None = column("derived", "upper limit", unit="days")
    difference_p: float | None = column("derived", "p value of no difference", unit="p")
    ratio: float | None = column(
        "derived", "mean of the target group divided by mean of the comparator group"
    )
    log_ratio_se: float | None = column("derived", "standard error of the logarithm of the ratio")
    ratio_lower: float | None = column("derived", "lower limit of its interval")
    ratio_upper: float | None = column("derived", "upper limit")
    ratio_p: float | None = column("derived", "p value of a ratio of 1", unit="p")
    interval: str = column(
        "setting", 'how intervals were computed: "robust", "bootstrap" or "stacked"'
    )
    interval_level: float = column("setting", "confidence level, such as 0.95")
    target_at_risk: int | None = column("private", "people of the target group at risk then")
    comparator_at_risk: int | None = column(
        "private", "people of the comparator group at risk then"
    )
    target_outcomes: int | None = column(
        "private", "people of the target group with the outcome by then"
    )
    comparator_outcomes: int | None = column(
        "private", "people of the comparator group with the outcome by then"
    )
    target_competing: int | None = column(
        "private", "people of the target group with a competing event by then"
    )
    comparator_competing: int | None = column(
        "private", "people of the comparator group with a competing event by then"
    )
    suppressed: str = column("summary", SUPPRESSED, "")
    blinded: bool = column("summary", "whether the means are withheld", False)


@row_class
class ModelledRiskRow(OfRun, table="modelled_risks"):
    """Risk of the outcome by a time, in one population, by outcome models."""

    reading: str = column(
        "id",
        '"outcome_models": predictions averaged over the covariates of the population, '
        '"doubly_robust": corrected by weighted residuals',
    )
    time: float = column("id", "days since the start of the time at risk", unit="days")
    model: str = column("setting", 'outcome models: "cox", "cause-specific" or "finegray"')
    estimand: str = column("setting", 'population: "ate", "att", "atu", "ato" or "matching"')
    target_risk: float | None = column("derived", "risk if everybody had the target", unit="share")
    target_se: float | None = column("derived", "its standard error", unit="share")
    target_lower: float | None = column("derived", "lower limit of its interval", unit="share")
    target_upper: float | None = column("derived", "upper limit", unit="share")
    comparator_risk: float | None = column(
        "derived", "risk if everybody had the comparator", unit="share"
    )
    comparator_se: float | None = column("derived", "its standard error", unit="share")
    comparator_lower: float | None = column("derived", "lower limit of its interval", unit="share")
    comparator_upper: float | None = column("derived", "upper limit", unit="share")
    difference: float | None = column(
        "derived", "risk with the target minus risk with the comparator", unit="share"
    )
    difference_se: float | None = column("derived", "its standard error", unit="share")
    difference_lower: float | None = column("derived", "lower limit of its interval", unit="share")
    difference_upper: float | None = column("derived", "upper limit", unit="share")
    difference_p: float | None = column("derived", "p value of no difference", unit="p")
    ratio: float | None = column(
        "derived", "risk with the target divided by risk with the comparator"
    )
    log_ratio_se: float | None = column("derived", "standard error of the logarithm of the ratio")
    ratio_lower: float | None = column("derived", "lower limit of its interval")
    ratio_upper: float | None = column("derived", "upper limit")
    ratio_p: float | None = column("derived", "p value of a ratio of 1", unit="p")
    interval: str = column("setting", 'how intervals were computed: "robust" or "bootstrap"')
    interval_level: float = column("setting", "confidence level, such as 0.95")
    target_at_risk: int | None = column("private", "people of the target group at risk then")
    comparator_at_risk: int | None = column(
        "private", "people of the comparator group at risk then"
    )
    target_outcomes: int | None = column(
        "private", "people of the target group with the outcome by then"
    )
    comparator_outcomes: int | None = column(
        "private", "people of the comparator group with the outcome by then"
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
class CurveTestRow(OfRun, table="curve_tests"):
    """A test between the curves of both arms."""

    adjusted: bool = column("id", "whether the weights of the adjustment apply")
    test: str = column(
        "id",
        '"logrank": of equal hazards of the outcome, "gray": of equal incidences with competing '
        'events, "max-combo": the largest of log-rank tests with weights of time',
    )
    reading: str = column(
        "setting",
        'as of estimates; "stratified": within matched sets or strata, "marginal": with the '
        'weights of the adjustment, "pooled": without either',
    )
    statistic: float | None = column(
        "effect",
        "chi-square with one degree of freedom; of the max-combo test, the largest absolute "
        "standardised score; none if completed data sets differ",
    )
    p: float | None = column(
        "effect", "its p value; of several completed data sets, the median", unit="p"
    )
    rho: float | None = column(
        "effect", "of the largest test of the max-combo test, the power of the survival"
    )
    gamma: float | None = column("effect", "the power of one minus the survival")
    variance: str = column(
        "setting",
        '"counts": that of independent people, "robust": that of influences of people or matched '
        "sets",
    )
    suppressed: str = column("summary", SUPPRESSED, "")
    blinded: bool = column("summary", "whether the test is withheld", False)


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
class FollowUpRow(OfRun, table="follow_up"):
    """A quantile of the days at risk of the people kept by the adjustment."""

    arm: str = column("id", '"target" or "comparator"')
    share: float = column("id", "probability of the quantile: 0, 0.1, 0.25, 0.5, 0.75, 0.9 or 1")
    days: float | None = column("derived", "days at risk", unit="days")
    entry_days: float | None = column(
        "derived",
        "the same quantile of the days after which people come under observation; none if all do "
        "at the start",
        None,
        unit="days",
    )
    potential_days: float | None = column(
        "derived",
        "the same quantile of the days until the end of follow-up if nobody had an event, by the "
        "reverse Kaplan-Meier estimate; that of 0.5 is the median follow-up",
        None,
        unit="days",
    )
    potential_people: int | None = column("private", "people of the arm at risk then", None)


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
