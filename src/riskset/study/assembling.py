"""The tables of results, row by row, from what the steps of a run have stored."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from riskset.study.adjusting import adjustment_of, balance_rows, summary_row, table1_rows
from riskset.study.cohorts import Source
from riskset.study.estimate_run import AnalysisRuns
from riskset.study.specification import Study
from riskset.study.steps import Steps

__all__ = ["Tables"]

Row = dict[str, Any]


class Tables:
    """The rows of every table, before anything is hidden.

    Rows may have further columns, which `riskset.disclosure.engine.Disclosure` takes away.

    Parameters
    ----------
    study : Study
    source : Source
    steps : Steps
    analyses : list of AnalysisRuns
    """

    def __init__(
        self, study: Study, source: Source, steps: Steps, analyses: list[AnalysisRuns]
    ) -> None:
        self._study, self._source, self._steps = study, source, steps
        self._analyses = analyses
        self._runs = [run for own in analyses for run in own.runs]
        self._ps = _numbers(run.ps for run in self._runs)
        shared = {id(run.shared): run.shared for run in self._runs}.values()
        everything = [*self._runs, *shared]
        self._adjustments = _numbers(made.adjustment for made in everything)
        # The first with a balance, if any of them has one.
        balanced = sorted(everything, key=lambda made: made.balance is None)
        self._balanced = {made.adjustment: made for made in reversed(balanced)}
        self._score = {run.ps: run for run in reversed(self._runs)}

    def rows(self, name: str, blind: bool) -> Iterator[Row]:
        """Rows of a table; `blind`: those of effects that fail diagnostics say so."""
        makers: dict[str, Callable[[bool], Iterator[Row]]] = {
            "runs": self._of_runs,
            "attrition": self._attrition,
            "arms": self._described("arms"),
            "ps": self._scores,
            "ps_coefficients": self._of_score("coefficients"),
            "ps_cross_validation": self._of_score("cross_validation"),
            "ps_flagged": self._of_score("flagged"),
            "adjustments": self._of_adjustments,
            "preference": self._preference,
            "balance": self._balance,
            "table1": self._table1,
            "estimates": self._estimates,
            "outcome_coefficients": self._of_model("coefficients"),
            "outcome_cross_validation": self._of_model("cross_validation"),
            "absolute_risks": self._described("risks"),
            "curves": self._described("curves"),
            "numbers_at_risk": self._described("at_risk"),
            "controls": self._controls,
            "calibration": self._calibration,
            "diagnostics": self._diagnostics,
            "follow_up": self._described("follow_up"),
            "follow_up_histogram": self._described("bins"),
            "follow_up_ends": self._described("ends"),
            "event_weeks": self._described("weeks"),
            "likelihood_profiles": self._profiles,
            "effect_over_time": self._of_model("over_time"),
            "calendar": self._calendar,
            "codes": lambda blind: iter(self._source.codes()),
            "warnings": self._warnings,
        }
        return makers[name](blind) if name in makers else iter(())

    def _of_runs(self, blind: bool) -> Iterator[Row]:
        for run in self._runs:
            facts = {} if run.adjustment is None else self._facts("adjustment", run.adjustment)
            yield run.names | {
                "outcome_kind": run.outcome.kind,
                "true_hr": run.true_hr,
                "status": run.status,
                "step": run.step,
                "reason": run.reason,
                "estimand": facts.get("estimand"),
                "adjustment_kind": facts.get("kind"),
                "ps": self._ps.get(run.ps or ""),
                "adjustment": self._adjustments.get(run.adjustment or ""),
                "shared_adjustment": self._adjustments.get(run.shared.adjustment or ""),
                "unblind": run.diagnostics.unblind,
                "unblind_for_evidence_synthesis": run.diagnostics.unblind_for_evidence_synthesis,
                "blinded": blind and run.fails,
            }

    def _facts(self, step: str, key: str) -> dict[str, Any]:
        return self._steps.again(step, key).facts

    def _of_outcomes(self) -> Iterator[tuple[int, str]]:
        """Numbers and keys of the adjustments of runs, without those that outcomes only share."""
        own = {run.adjustment for run in self._runs}
        for key, number in self._adjustments.items():
            if key in own:
                yield number, key

    def _attrition(self, blind: bool) -> Iterator[Row]:
        for number, key in self._of_outcomes():
            for k, step in enumerate(self._facts("adjustment", key)["attrition"], start=1):
                yield {"adjustment": number, "number": k} | step

    def _scores(self, blind: bool) -> Iterator[Row]:
        for key, number in self._ps.items():
            comparison = self._score[key].comparison
            row = {"ps": number, "target": comparison.target, "comparator": comparison.comparator}
            yield row | self._facts("propensity score", key)["row"]

    def _of_score(self, name: str) -> Callable[[bool], Iterator[Row]]:
        def rows(blind: bool) -> Iterator[Row]:
            for key, number in self._ps.items():
                facts = self._facts("propensity score", key)
                for row in facts[name]:
                    yield {"ps": number} | row

        return rows

    def _of_adjustments(self, blind: bool) -> Iterator[Row]:
        for key, number in self._adjustments.items():
            own = self._balanced[key]
            cohort = self._source.cohort(own.comparison, own.analysis)
            population = cohort.people.population
            if own.ps is not None and not population.has_score:
                score = self._steps.again("propensity score", own.ps).arrays.get("score")
                population = population.with_score(score)
            found = self._steps.again("adjustment", key)
            row = {
                "adjustment": number,
                "target": own.comparison.target,
                "comparator": own.comparison.comparator,
                "ps": self._ps.get(own.ps or ""),
                "has_balance": own.balance is not None,
            }
            yield row | summary_row(adjustment_of(found, population)) | (own.balance_facts or {})

    def _is_listed(self, key: str) -> bool:
        """The people of adjustments for controls alone are not described: there may be many."""
        return any(run.is_of_interest for run in self._runs if run.adjustment == key)

    def _preference(self, blind: bool) -> Iterator[Row]:
        for number, key in self._of_outcomes():
            if self._is_listed(key):
                for row in self._facts("adjustment", key)["preference"]:
                    yield {"adjustment": number} | row

    def _balance(self, blind: bool) -> Iterator[Row]:
        for key, number in self._adjustments.items():
            own = self._balanced[key]
            if own.balance is None:
                continue
            analyses = self._source.cohort(own.comparison, own.analysis).analyses
            for row in balance_rows(self._steps.again("balance", own.balance), analyses):
                yield {"adjustment": number} | row

    def _table1(self, blind: bool) -> Iterator[Row]:
        for number, key in self._of_outcomes():
            balance = self._balanced[key].balance
            if balance is None or not self._is_listed(key):
                continue
            for row in table1_rows(self._steps.again("balance", balance)):
                yield {"adjustment": number} | row

    def _described(self, name: str) -> Callable[[bool], Iterator[Row]]:
        def rows(blind: bool) -> Iterator[Row]:
            for run in self._runs:
                if run.description is None:
                    continue
                for row in self._facts("follow-up", run.description)[name]:
                    if name != "curves" or not (blind and run.fails):
                        yield run.names | {"blinded": blind and run.fails} | row

        return rows

    def _estimates(self, blind: bool) -> Iterator[Row]:
        for run in self._runs:
            for row in run.rows:
                yield run.names | row | {"blinded": blind and run.fails}

    def _controls(self, blind: bool) -> Iterator[Row]:
        for own in self._analyses:
            for row in own.controls:
                yield own.runs[0].names | row

    def _calibration(self, blind: bool) -> Iterator[Row]:
        for own in self._analyses:
            for row in own.calibration:
                yield own.runs[0].names | row

    def _diagnostics(self, blind: bool) -> Iterator[Row]:
        for run in self._runs:
            for check in run.diagnostics.checks:
                yield run.names | {
                    "name": check.name,
                    "value": check.value,
                    "limit": check.limit,
                    "verdict": check.verdict,
                }

    def _of_model(self, name: str) -> Callable[[bool], Iterator[Row]]:
        """What goes with an effect and tells it; without a number it is the main one."""

        def rows(blind: bool) -> Iterator[Row]:
            for run in self._runs:
                if run.estimate is None or (blind and run.fails):
                    continue
                for row in self._facts("estimate", run.estimate).get(name, ()):
                    yield run.names | row

        return rows

    def _profiles(self, blind: bool) -> Iterator[Row]:
        """Of every outcome, and of controls: a meta-analysis needs imprecise estimates, too."""
        for run in self._runs:
            if run.estimate is None or (blind and run.fails_for_evidence_synthesis):
                continue
            for row in self._facts("estimate", run.estimate).get("profile", ()):
                yield run.names | row

    def _calendar(self, blind: bool) -> Iterator[Row]:
        for comparison in self._study.specification.comparisons:
            analysis = next(iter(self._study.specification.analyses.values()))
            cohort = self._source.cohort(comparison, analysis)
            if cohort.years is None:
                continue
            is_target = cohort.people.population.is_target
            for arm, own in (("target", is_target), ("comparator", ~is_target)):
                for year, n in zip(*np.unique(cohort.years[own], return_counts=True), strict=True):
                    yield {
                        "target": comparison.target,
                        "comparator": comparison.comparator,
                        "arm": arm,
                        "year": int(year),
                        "starts": int(n),
                    }

    def _warnings(self, blind: bool) -> Iterator[Row]:
        found: dict[tuple[str, str, str], Row] = {}
        for run in self._runs:
            for step, note in run.notes:
                where = ", ".join(run.names.values())
                key = (step, note["code"], note["message"])
                found.setdefault(key, {"count": 0, "where": where})["count"] += 1
        for (step, code, message), row in found.items():
            yield {"step": step, "code": code, "message": message} | row


def _numbers(keys: Iterator[str | None]) -> dict[str, int]:
    """1, 2, ... for each key in the order in which they come."""
    found: dict[str, int] = {}
    for key in keys:
        if key is not None:
            found.setdefault(key, len(found) + 1)
    return found
