"""What became of one estimate that a study asks for, and of those of one analysis together."""

import dataclasses
from dataclasses import dataclass, field
from typing import Self

from riskset._messages import Note, Sentence
from riskset.cohort.diagnostics import BalanceFacts, Diagnostics, gate
from riskset.cohort.settings import DiagnosticLimits
from riskset.results.rows import CalibrationRow, ControlRow, EstimateRow
from riskset.study.cache import StepResult
from riskset.study.specification.outcome_sections import OutcomeDefinition
from riskset.study.specification.sections import Analysis, Comparison
from riskset.study.steps.adjustment_step import BalanceStep

__all__ = ["AdjustedPeople", "AnalysisRuns", "EstimateRun"]

OF_CONTROLS = ("shared_balance", "equipoise", "generalisability")
"""A control that fails one of these diagnostics does not enter the calibration."""


@dataclass(eq=False, kw_only=True)
class AdjustedPeople:
    """People of a comparison, made comparable by an analysis.

    `step` and `reason` say where and why the run stopped, if its `status` is not "ok". Steps are
    kept by their keys: `ps` is that of the propensity score, and `treatment_weights` that of the
    weights that several treatments share. `notes` are pairs (step, note). `pairwise_max` is the
    largest difference between any two of these treatments. `data_set` is that of an analysis of one
    completed data set, from which others are pooled.
    """

    comparison: Comparison
    analysis_name: str
    analysis: Analysis
    status: str = "ok"
    step: str | None = None
    reason: Sentence | None = None
    ps: str | None = None
    adjustment: str = ""
    equipoise: float | None = None
    balance: BalanceStep | None = None
    pairwise_max: float | None = None
    treatment_weights: str | None = None
    notes: list[tuple[str, Note]] = field(default_factory=list)
    data_set: int | None = None

    @property
    def what(self) -> str:
        """Names for the record of times."""
        return f"{self.comparison.names}, {self.analysis_name}{self.of_data_set}"

    @property
    def of_data_set(self) -> str:
        """The same of the completed data set, if it is one."""
        return "" if self.data_set is None else f", data set {self.data_set + 1}"

    def alone(self, data_set: int) -> Self:
        """The same in one completed data set, without notes."""
        return dataclasses.replace(self, data_set=data_set, notes=[])

    def stop(self, step: str, status: str, reason: Sentence | None) -> None:
        """Stop with a status, unless it is "ok" or an earlier step has stopped."""
        if self.status == "ok" and status != "ok":
            self.status, self.reason, self.step = status, reason, step

    def take(self, result: StepResult) -> None:
        """Take over the notes and the status of a step."""
        self.notes += [(result.step, note) for note in result.notes]
        self.stop(result.step, result.status, result.reason)


@dataclass(eq=False, kw_only=True)
class EstimateRun(AdjustedPeople):
    """One estimate that was asked for: of the people who are followed to an outcome.

    `shared` is the same analysis before anybody is left out for an outcome. With `is_cloned`,
    everybody is in both arms, so that balance says nothing about the adjustment. `weights` (for
    deviation), `description`, `curve_tests`, `restricted_means`, `modelled_risks` and
    `estimate` are keys of steps; `subgroup_balance` has such keys by the names of subgroups.
    """

    outcome_name: str
    outcome: OutcomeDefinition
    shared: AdjustedPeople
    is_cloned: bool
    weights: str | None = None
    description: str | None = None
    curve_tests: str | None = None
    restricted_means: str | None = None
    modelled_risks: str | None = None
    estimate: str | None = None
    subgroup_balance: dict[str, str] = field(default_factory=dict)
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
        return ", ".join(self.names.values()) + self.of_data_set

    def alone(self, data_set: int) -> Self:
        """The same in one completed data set, without notes and results."""
        return dataclasses.replace(super().alone(data_set), rows=[], subgroup_balance={})

    @property
    def main(self) -> EstimateRow | None:
        """The main estimate."""
        return next((row for row in self.rows if row.role == "main"), None)

    @property
    def is_of_interest(self) -> bool:
        """Whether its outcome is not a control."""
        return self.outcome.kind == "outcome"

    @property
    def true_hr(self) -> float | None:
        """The true ratio of a control."""
        return 1.0 if self.outcome.kind == "negative control" else self.outcome.true_hr

    def diagnose(self, limits: DiagnosticLimits, ease: float | None) -> None:
        """Compare its diagnostics with their limits."""
        main, shared = self.main, self.shared
        self.diagnostics = gate(
            None if self.is_cloned else self._balance_facts(self.balance),
            None if self.is_cloned else self._balance_facts(shared.balance, shared.pairwise_max),
            equipoise=self.equipoise,
            mdrr=None if main is None else main.mdrr,
            ease=ease,
            proportionality_p=None if main is None else main.proportionality_p,
            limits=limits,
        )

    def _balance_facts(
        self, balance: BalanceStep | None, pairwise_max: float | None = None
    ) -> BalanceFacts:
        """The largest difference is that between any two of several treatments, if there are."""
        if balance is None:
            return BalanceFacts()
        by_significance = self.analysis.balance.alpha is not None
        is_balanced = balance.is_balanced if by_significance else None
        largest = max(
            (size for size in (balance.row.after_max, pairwise_max) if size is not None),
            default=None,
        )
        return BalanceFacts(largest, is_balanced, balance.row.generalisability_max)

    @property
    def passes(self) -> bool:
        """Whether it passes the diagnostics that do not depend on the controls."""
        return not self.diagnostics.fails_any(OF_CONTROLS)

    @property
    def fails(self) -> bool:
        """Whether its effect is to be withheld, if any is. Effects of controls never are."""
        return self.is_of_interest and not self.diagnostics.unblind

    @property
    def fails_for_evidence_synthesis(self) -> bool:
        """Whether its likelihood profile is to be withheld, if any is."""
        return self.is_of_interest and not self.diagnostics.unblind_for_evidence_synthesis


@dataclass(frozen=True, eq=False)
class AnalysisRuns:
    """The runs of one comparison and analysis; rows of its tables lack the names of these."""

    runs: list[EstimateRun]
    controls: list[ControlRow]
    calibration: list[CalibrationRow]
