"""The rows of every table of results, from what the steps of a run have found."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from riskset._messages import spoken
from riskset.results.columns import ResultRow
from riskset.results.rows import (
    AdjustmentRow,
    AttritionRow,
    BalanceRow,
    CharacteristicRow,
    DiagnosticRow,
    EstimateRow,
    PreferenceRow,
    ProfilePointRow,
    RemarkRow,
    RunRow,
    ScoreRow,
    YearRow,
)
from riskset.study.adjustment_step import (
    AdjustmentStep,
    BalanceStep,
    balance_rows,
    characteristic_rows,
)
from riskset.study.cache import StepCache
from riskset.study.description_step import DescriptionStep
from riskset.study.estimate_run import AnalysisRuns
from riskset.study.estimate_step import EstimateStep
from riskset.study.keys import KEYS
from riskset.study.propensity_step import ScoreStep
from riskset.study.source import StudySource
from riskset.study.specification import Study

__all__ = ["ResultRows"]


class ResultRows:
    """The rows of every table, before anything is hidden.

    Parameters
    ----------
    study : Study
    source : StudySource
    cache : StepCache
    analyses : list of AnalysisRuns
    """

    def __init__(
        self, study: Study, source: StudySource, cache: StepCache, analyses: list[AnalysisRuns]
    ) -> None:
        self._study, self._source, self._cache = study, source, cache
        self._analyses = analyses
        self._runs = [run for analysis in analyses for run in analysis.runs]
        self._ps = _numbers(run.ps for run in self._runs)
        shared = {id(run.shared): run.shared for run in self._runs}.values()
        everything = [*self._runs, *shared]
        self._adjustments = _numbers(people.adjustment for people in everything)
        # The first with a balance, if any of them has one.
        balanced = sorted(everything, key=lambda people: people.balance is None)
        self._balanced = {people.adjustment: people for people in reversed(balanced)}
        self._score = {run.ps: run for run in reversed(self._runs)}

    def rows(self, name: str, blind: bool) -> Iterable[ResultRow]:
        """Rows of a table; `blind`: those of effects that fail diagnostics say so."""
        makers: dict[str, Callable[[bool], Iterable[ResultRow]]] = {
            "runs": self._of_runs,
            "attrition": self._attrition,
            "arms": self._described("arms"),
            "ps": self._scores,
            "ps_coefficients": self._of_score("coefficients"),
            "ps_cross_validation": self._of_score("tried"),
            "ps_flagged": self._of_score("flagged"),
            "adjustments": self._of_adjustments,
            "preference": self._preference,
            "balance": self._balance,
            "table1": self._characteristics,
            "estimates": self._estimates,
            "outcome_coefficients": self._of_model("coefficients"),
            "outcome_cross_validation": self._of_model("tried"),
            "absolute_risks": self._described("risks"),
            "curves": self._described("curves"),
            "numbers_at_risk": self._described("at_risk"),
            "controls": self._of_analyses("controls"),
            "calibration": self._of_analyses("calibration"),
            "diagnostics": self._diagnostics,
            "follow_up": self._described("follow_up"),
            "follow_up_histogram": self._described("bins"),
            "follow_up_ends": self._described("ends"),
            "event_weeks": self._described("weeks"),
            "likelihood_profiles": self._profiles,
            "effect_over_time": self._of_model("over_time"),
            "calendar": self._calendar,
            "codes": lambda blind: self._source.codes(),
            "warnings": self._remarks,
        }
        return makers[name](blind)

    def _adjustment(self, key: str) -> AdjustmentStep:
        return self._cache.load("adjustment", key, AdjustmentStep)

    def _of_runs(self, blind: bool) -> Iterator[RunRow]:
        for run in self._runs:
            step = self._adjustment(run.adjustment)
            yield RunRow(
                **run.names,
                outcome_kind=run.outcome.kind,
                true_hr=run.true_hr,
                status=run.status,
                step=run.step,
                reason=run.reason,
                estimand=step.estimand,
                adjustment_kind=step.kind,
                ps=self._ps.get(run.ps or ""),
                adjustment=self._adjustments[run.adjustment],
                shared_adjustment=self._adjustments[run.shared.adjustment],
                unblind=run.diagnostics.unblind,
                unblind_for_evidence_synthesis=run.diagnostics.unblind_for_evidence_synthesis,
                blinded=blind and run.fails,
            )

    def _of_outcomes(self) -> Iterator[tuple[int, str]]:
        """Numbers and keys of the adjustments of runs, without those that outcomes only share."""
        keys = {run.adjustment for run in self._runs}
        return ((number, key) for key, number in self._adjustments.items() if key in keys)

    def _attrition(self, blind: bool) -> Iterator[AttritionRow]:
        for adjustment, key in self._of_outcomes():
            for k, step in enumerate(self._adjustment(key).attrition, start=1):
                yield AttritionRow(adjustment=adjustment, number=k, **dataclasses.asdict(step))

    def _scores(self, blind: bool) -> Iterator[ScoreRow]:
        for key, number in self._ps.items():
            comparison = self._score[key].comparison
            row = self._cache.load("propensity score", key, ScoreStep).row
            names = {"target": comparison.target, "comparator": comparison.comparator}
            yield row.changed({"ps": number, **names})

    def _of_score(self, name: str) -> Callable[[bool], Iterator[ResultRow]]:
        def rows(blind: bool) -> Iterator[ResultRow]:
            for key, number in self._ps.items():
                step = self._cache.load("propensity score", key, ScoreStep)
                for row in getattr(step, name):
                    yield dataclasses.replace(row, ps=number)

        return rows

    def _of_adjustments(self, blind: bool) -> Iterator[AdjustmentRow]:
        for key, number in self._adjustments.items():
            people = self._balanced[key]
            population = self._source.cohort(people.comparison, people.analysis).people.population
            if people.ps is not None and not population.has_score:
                score = self._cache.load("propensity score", people.ps, ScoreStep).score
                population = population.with_score(score)
            row = self._adjustment(key).row(population)
            if people.balance is not None:
                summary = people.balance.row.items()
                row = row.changed({name: value for name, value in summary if value is not None})
            yield dataclasses.replace(
                row,
                adjustment=number,
                target=people.comparison.target,
                comparator=people.comparison.comparator,
                ps=self._ps.get(people.ps or ""),
                has_balance=people.balance is not None,
            )

    def _is_listed(self, key: str) -> bool:
        """The people of adjustments for controls alone are not described: there may be many."""
        return any(run.is_of_interest for run in self._runs if run.adjustment == key)

    def _preference(self, blind: bool) -> Iterator[PreferenceRow]:
        for number, key in self._of_outcomes():
            if self._is_listed(key):
                for row in self._adjustment(key).preference:
                    yield dataclasses.replace(row, adjustment=number)

    def _balance(self, blind: bool) -> Iterator[BalanceRow]:
        for key, number in self._adjustments.items():
            people = self._balanced[key]
            if people.balance is not None:
                analyses = self._source.cohort(people.comparison, people.analysis).analyses
                step = self._cache.load("balance", people.balance.key, BalanceStep)
                yield from balance_rows(step, analyses, number)

    def _characteristics(self, blind: bool) -> Iterator[CharacteristicRow]:
        for number, key in self._of_outcomes():
            balance = self._balanced[key].balance
            if balance is not None and self._is_listed(key):
                step = self._cache.load("balance", balance.key, BalanceStep)
                yield from characteristic_rows(step, number)

    def _described(self, name: str) -> Callable[[bool], Iterator[ResultRow]]:
        def rows(blind: bool) -> Iterator[ResultRow]:
            for run in self._runs:
                is_blinded = blind and run.fails
                if run.description is None or (name == "curves" and is_blinded):
                    continue
                step = self._cache.load("follow-up", run.description, DescriptionStep)
                blinded = {"blinded": is_blinded} if name == "risks" else {}
                for row in getattr(step, name):
                    yield row.changed(run.names | blinded)

        return rows

    def _estimates(self, blind: bool) -> Iterator[EstimateRow]:
        for run in self._runs:
            for row in run.rows:
                yield row.changed({**run.names, "blinded": blind and run.fails})

    def _of_analyses(self, name: str) -> Callable[[bool], Iterator[ResultRow]]:
        def rows(blind: bool) -> Iterator[ResultRow]:
            for analysis in self._analyses:
                names = dict(analysis.runs[0].names)
                del names["outcome"]
                for row in getattr(analysis, name):
                    yield row.changed(names)

        return rows

    def _diagnostics(self, blind: bool) -> Iterator[DiagnosticRow]:
        for run in self._runs:
            for check in run.diagnostics.checks:
                yield DiagnosticRow(
                    **run.names,
                    name=check.name,
                    value=check.value,
                    limit=check.limit,
                    verdict=check.verdict,
                )

    def _of_model(self, name: str) -> Callable[[bool], Iterator[ResultRow]]:
        """Rows that reveal an effect; without a number, that of the main estimate."""

        def rows(blind: bool) -> Iterator[ResultRow]:
            for run in self._runs:
                if run.estimate is not None and not (blind and run.fails):
                    step = self._cache.load("estimate", run.estimate, EstimateStep)
                    for row in getattr(step, name):
                        yield row.changed(run.names)

        return rows

    def _profiles(self, blind: bool) -> Iterator[ProfilePointRow]:
        """Of every outcome, and of controls: a meta-analysis needs imprecise estimates, too."""
        for run in self._runs:
            if run.estimate is not None and not (blind and run.fails_for_evidence_synthesis):
                for row in self._cache.load("estimate", run.estimate, EstimateStep).profile:
                    yield row.changed(run.names)

    def _calendar(self, blind: bool) -> Iterator[YearRow]:
        for comparison in self._study.specification.comparisons:
            analysis = next(iter(self._study.specification.analyses.values()))
            cohort = self._source.cohort(comparison, analysis)
            if cohort.years is None:
                continue
            is_target = cohort.people.population.is_target
            for arm, of_arm in (("target", is_target), ("comparator", ~is_target)):
                years, counts = np.unique(cohort.years[of_arm], return_counts=True)
                for year, n in zip(years, counts, strict=True):
                    yield YearRow(
                        target=comparison.target,
                        comparator=comparison.comparator,
                        arm=arm,
                        year=int(year),
                        starts=int(n),
                    )

    def _remarks(self, blind: bool) -> Iterator[RemarkRow]:
        remarks: dict[tuple[str, str, str], RemarkRow] = {}
        for run in self._runs:
            for step, note in run.notes:
                message = spoken(note.message, KEYS)
                where = ", ".join(run.names.values())
                first = RemarkRow(step=step, code=note.code, message=message, count=0, where=where)
                key = (step, note.code, message)
                row = remarks.get(key, first)
                remarks[key] = dataclasses.replace(row, count=row.count + 1)
        yield from remarks.values()


def _numbers(keys: Iterable[str | None]) -> dict[str, int]:
    """1, 2, ... for each key in the order in which they come."""
    numbers: dict[str, int] = {}
    for key in keys:
        if key is not None:
            numbers.setdefault(key, len(numbers) + 1)
    return numbers
