"""Rows of the requested estimates: their statuses, the people and outcomes of both arms."""

from riskset.results.column_groups import ArmColumns
from riskset.results.columns import ResultRow, column, group, row_class

__all__ = ["ArmRow", "AttritionRow", "OfComparison", "OfRun", "RunRow", "SUPPRESSED", "VALUES"]

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
    true_hr: float | None = column("setting", "true ratio of a control, 1 for a negative control")
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
    cloned: bool = column(
        "setting",
        "whether the groups are strategies that all people follow at the start: everybody is in "
        "both, as a clone in each, and counts once in each",
        False,
    )


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
