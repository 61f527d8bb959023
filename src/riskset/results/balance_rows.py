"""Rows of adjustments, of the balance after them, and of Table 1."""

from riskset.results.column_groups import BalanceColumns, CharacteristicColumns
from riskset.results.columns import ResultRow, column, group, row_class
from riskset.results.run_rows import SUPPRESSED

__all__ = ["JOINED", "AdjustmentRow", "BalanceRow", "CharacteristicRow", "SubgroupBalanceRow"]

JOINED = ";"
"""Between the keys of covariates that a line of Table 1 joins."""


@row_class
class AdjustmentRow(ResultRow, table="adjustments"):
    """An adjustment: its people, weights and balance."""

    adjustment: int = column("id", "number of the adjustment")
    target: str = column("id", "name of the target")
    comparator: str = column("id", "name of the comparator")
    ps: int | None = column("id", "number of the propensity score")
    kind: str = column("setting", '"none", "trimming", "matching", "stratification", "weighting"')
    estimand: str | None = column("setting", "population of the effect")
    sampled: bool | None = column("setting", "whether people have sampling weights")
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
    pairwise_max: float | None = column(
        "derived",
        "of the weights of several treatments: largest absolute standardised difference between "
        "any two of them after adjustment",
    )
    pairwise_worst: str | None = column("summary", "covariate of that difference")
    pairwise_between: str | None = column("summary", "names of these two treatments")
    threshold: float | None = column("setting", "threshold of balance, usually 0.1")
    sd: str | None = column(
        "setting", '"before" or "current": standard deviation in the denominator'
    )
    has_balance: bool = column("summary", "whether the table `balance` contains its covariates")
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
    joined: str | None = column(
        "id", "keys of the covariates that a line joins, such as years, separated by semicolons"
    )
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
