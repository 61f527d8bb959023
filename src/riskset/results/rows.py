"""The rows of every table of results.

Target, comparator, outcome and analysis identify the estimate of a row, by their names in the
specification. Results that several estimates share have a number: `ps` for a propensity score,
`adjustment` for a set of weights. Counts that are too small to be shared are missing, and
`suppressed` lists their columns. Effects that failed diagnostics are missing, with `blinded` true.
"""

from riskset.results.balance_rows import (
    AdjustmentRow,
    BalanceRow,
    CharacteristicRow,
    SubgroupBalanceRow,
)
from riskset.results.bias_rows import BiasBoundRow, ConfounderRow
from riskset.results.censoring_rows import CensoringWeightRow, DeviationRow
from riskset.results.columns import ResultRow, column, row_class
from riskset.results.estimate_rows import (
    CalibrationRow,
    ControlRow,
    DiagnosticRow,
    EffectAtTimeRow,
    EstimateRow,
    IntervalRow,
    OutcomeCoefficientRow,
    OutcomePenaltyRow,
    ProfilePointRow,
    TimeEffectRow,
)
from riskset.results.run_rows import VALUES, ArmRow, AttritionRow, OfComparison, OfRun, RunRow
from riskset.results.score_rows import (
    FlaggedCovariateRow,
    PreferenceRow,
    ScoreCoefficientRow,
    ScorePenaltyRow,
    ScoreRow,
)
from riskset.results.time_rows import (
    AtRiskRow,
    CurveRow,
    CurveTestRow,
    FollowUpBinRow,
    FollowUpEndRow,
    FollowUpRow,
    ModelledRiskRow,
    RestrictedMeanRow,
    RiskRow,
    WeekRow,
    YearRow,
)

__all__ = [
    "AdjustmentRow",
    "ArmRow",
    "AtRiskRow",
    "AttritionRow",
    "BalanceRow",
    "BiasBoundRow",
    "CalibrationRow",
    "CensoringWeightRow",
    "CharacteristicRow",
    "ConceptRow",
    "ConfounderRow",
    "ControlRow",
    "CurveRow",
    "CurveTestRow",
    "DeviationRow",
    "DiagnosticRow",
    "EffectAtTimeRow",
    "EstimateRow",
    "FlaggedCovariateRow",
    "FollowUpBinRow",
    "FollowUpEndRow",
    "FollowUpRow",
    "IntervalRow",
    "OfComparison",
    "OfRun",
    "ModelledRiskRow",
    "OutcomeCoefficientRow",
    "OutcomePenaltyRow",
    "PreferenceRow",
    "ProfilePointRow",
    "RemarkRow",
    "RestrictedMeanRow",
    "RiskRow",
    "RunRow",
    "ScoreCoefficientRow",
    "ScorePenaltyRow",
    "ScoreRow",
    "SubgroupBalanceRow",
    "TABLES",
    "TimeEffectRow",
    "WeekRow",
    "YearRow",
]


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
        ModelledRiskRow,
        RestrictedMeanRow,
        CurveRow,
        CurveTestRow,
        AtRiskRow,
        CensoringWeightRow,
        DeviationRow,
        ControlRow,
        CalibrationRow,
        ConfounderRow,
        BiasBoundRow,
        DiagnosticRow,
        FollowUpRow,
        FollowUpBinRow,
        FollowUpEndRow,
        ProfilePointRow,
        IntervalRow,
        TimeEffectRow,
        EffectAtTimeRow,
        WeekRow,
        YearRow,
        ConceptRow,
        RemarkRow,
    )
}
"""Every table of a folder of results by its name."""
