"""What became of one estimate that a study asks for, and of those of one analysis together."""

from dataclasses import dataclass, field

from riskset._messages import Note
from riskset.cohort.diagnostics import Diagnostics
from riskset.results.rows import CalibrationRow, ControlRow, EstimateRow
from riskset.study.adjustment_step import BalanceStep
from riskset.study.cache import StepResult
from riskset.study.sections import Analysis, Comparison, OutcomeDefinition

__all__ = ["AdjustedPeople", "AnalysisRuns", "EstimateRun"]


@dataclass(eq=False, kw_only=True)
class AdjustedPeople:
    """People of a comparison, made comparable by an analysis.

    Results are kept by the keys of their steps.

    Attributes
    ----------
    comparison : Comparison
    analysis_name : str
    analysis : Analysis
    status : str
    step, reason : str or None
        Where it stopped, and why.
    ps : str or None
        The key of the step of the propensity score.
    adjustment : str
        The key of its step.
    equipoise : float or None
    balance : BalanceStep or None
    notes : list of (step, note)
    """

    comparison: Comparison
    analysis_name: str
    analysis: Analysis
    status: str = "ok"
    step: str | None = None
    reason: str | None = None
    ps: str | None = None
    adjustment: str = ""
    equipoise: float | None = None
    balance: BalanceStep | None = None
    notes: list[tuple[str, Note]] = field(default_factory=list)

    @property
    def what(self) -> str:
        """Names for the record of times."""
        return f"{self.comparison.target}, {self.comparison.comparator}, {self.analysis_name}"

    def stop(self, step: str, status: str, reason: str | None) -> None:
        """Stop with a status, unless it is "ok" or an earlier step has stopped."""
        if self.status == "ok" and status != "ok":
            self.status, self.reason, self.step = status, reason, step

    def take(self, step: str, result: StepResult) -> None:
        """Take over the notes and the status of a step."""
        self.notes += [(step, note) for note in result.notes]
        self.stop(step, result.status, result.reason)


@dataclass(eq=False, kw_only=True)
class EstimateRun(AdjustedPeople):
    """One estimate that was asked for: of the people who are followed to an outcome.

    Attributes
    ----------
    outcome_name : str
    outcome : OutcomeDefinition
    shared : AdjustedPeople
        The same analysis before anybody is left out for an outcome.
    description, estimate : str or None
        Keys of steps.
    rows : list of EstimateRow
    diagnostics : Diagnostics
    """

    outcome_name: str
    outcome: OutcomeDefinition
    shared: AdjustedPeople
    description: str | None = None
    estimate: str | None = None
    rows: list[EstimateRow] = field(default_factory=list)
    diagnostics: Diagnostics = Diagnostics(())

    @property
    def names(self) -> dict[str, str]:
        """The columns that name it."""
        return {
            "target": self.comparison.target,
            "comparator": self.comparison.comparator,
            "outcome": self.outcome_name,
            "analysis": self.analysis_name,
        }

    @property
    def what(self) -> str:
        """Names for the record of times."""
        return ", ".join(self.names.values())

    @property
    def main(self) -> EstimateRow | None:
        """The main estimate."""
        return next((row for row in self.rows if row.role == "main"), None)

    @property
    def is_of_interest(self) -> bool:
        """Whether its outcome is not a control."""
        return self.outcome.kind == "outcome"

    @property
    def fails(self) -> bool:
        """Whether its effect is to be withheld, if any is. Effects of controls never are."""
        return self.is_of_interest and not self.diagnostics.unblind

    @property
    def fails_for_evidence_synthesis(self) -> bool:
        """Whether its likelihood profile is to be withheld, if any is."""
        return self.is_of_interest and not self.diagnostics.unblind_for_evidence_synthesis

    @property
    def true_hr(self) -> float | None:
        """Of a control."""
        return 1.0 if self.outcome.kind == "negative control" else self.outcome.true_hr


@dataclass(frozen=True, eq=False)
class AnalysisRuns:
    """The runs of one comparison and analysis.

    Attributes
    ----------
    runs : list of EstimateRun
    controls, calibration : list of rows
        Without the names of the analysis.
    """

    runs: list[EstimateRun]
    controls: list[ControlRow]
    calibration: list[CalibrationRow]
