"""What became of one estimate that a study asks for, and of those of one analysis together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from riskset.cohort.diagnostics import Diagnostic
from riskset.study.analysis_sections import Analysis
from riskset.study.data_sections import Outcome
from riskset.study.specification import Comparison

__all__ = ["AnalysisRuns", "Run"]

Row = dict[str, Any]


@dataclass(eq=False)
class Run:
    """What became of one estimate that was asked for; results are kept by the keys of their steps.

    Attributes
    ----------
    comparison : Comparison
    outcome_name, analysis_name : str
    outcome : Outcome
    analysis : Analysis
    status : str
    step, reason : str or None
        Where it stopped, and why.
    ps, balance, description, estimate : str or None
        Keys of steps.
    adjustment : str
        The key of its step.
    rows : list of dict
        Estimates.
    notes : list of (step, note)
    """

    comparison: Comparison
    outcome_name: str
    outcome: Outcome
    analysis_name: str
    analysis: Analysis
    status: str = "ok"
    step: str | None = None
    reason: str | None = None
    ps: str | None = None
    adjustment: str | None = None
    balance: str | None = None
    description: str | None = None
    estimate: str | None = None
    equipoise: float | None = None
    balance_facts: dict[str, Any] | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

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
    def unblind(self) -> bool:
        """Whether no diagnostic failed."""
        return all(found.verdict != "fail" for found in self.diagnostics)

    @property
    def fails(self) -> bool:
        """Whether its effect is to be withheld, if any is; those of controls never are."""
        return not self.unblind and self.outcome.kind == "outcome"

    @property
    def true_hr(self) -> float | None:
        """Of a control."""
        return 1.0 if self.outcome.kind == "negative control" else self.outcome.true_hr

    def stop(self, step: str, facts: Mapping[str, Any]) -> None:
        """Take over the status of a step, unless an earlier one has stopped it."""
        self.notes += [(step, note) for note in facts.get("notes", ())]
        if self.status == "ok" and facts["status"] != "ok":
            self.status, self.reason, self.step = facts["status"], facts.get("reason"), step


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
