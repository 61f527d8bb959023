"""What became of one estimate that a study asks for, and of those of one analysis together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from riskset.cohort.diagnostics import Diagnostics
from riskset.study.sections import Analysis, Comparison, OutcomeDefinition

__all__ = ["Adjusted", "AnalysisRuns", "Run"]

Row = dict[str, Any]


@dataclass(eq=False, kw_only=True)
class Adjusted:
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
    ps, balance : str or None
        Keys of steps.
    adjustment : str
        The key of its step.
    equipoise : float or None
    balance_facts : dict or None
    notes : list of (step, note)
    """

    comparison: Comparison
    analysis_name: str
    analysis: Analysis
    status: str = "ok"
    step: str | None = None
    reason: str | None = None
    ps: str | None = None
    adjustment: str | None = None
    balance: str | None = None
    equipoise: float | None = None
    balance_facts: dict[str, Any] | None = None
    notes: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def what(self) -> str:
        """Names for the record of times."""
        return f"{self.comparison.target}, {self.comparison.comparator}, {self.analysis_name}"

    def stop(self, step: str, facts: Mapping[str, Any]) -> None:
        """Take over the status of a step, unless an earlier one has stopped it."""
        self.notes += [(step, note) for note in facts.get("notes", ())]
        if self.status == "ok" and facts["status"] != "ok":
            self.status, self.reason, self.step = facts["status"], facts.get("reason"), step


@dataclass(eq=False, kw_only=True)
class Run(Adjusted):
    """One estimate that was asked for: of the people who are followed to an outcome.

    Attributes
    ----------
    outcome_name : str
    outcome : Outcome
    shared : Adjusted
        The same analysis before anybody is left out for an outcome.
    description, estimate : str or None
        Keys of steps.
    rows : list of dict
        Estimates.
    diagnostics : Diagnostics
    """

    outcome_name: str
    outcome: OutcomeDefinition
    shared: Adjusted
    description: str | None = None
    estimate: str | None = None
    rows: list[Row] = field(default_factory=list)
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
    runs : list of Run
    controls, calibration : list of dict
        Rows of these tables, without the names of the analysis.
    """

    runs: list[Run]
    controls: list[Row]
    calibration: list[Row]
