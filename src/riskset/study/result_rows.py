"""The rows of every table of results, from what the steps of a run have found."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from riskset._settings import as_dict
from riskset.results.columns import ResultRow, sentence_columns
from riskset.results.rows import (
    AdjustmentRow,
    AttritionRow,
    BalanceRow,
    BiasBoundRow,
    CensoringWeightRow,
    CharacteristicRow,
    ConfounderRow,
    CurveTestRow,
    DiagnosticRow,
    EstimateRow,
    ModelledRiskRow,
    PreferenceRow,
    RemarkRow,
    RestrictedMeanRow,
    RunRow,
    ScoreRow,
    SubgroupBalanceRow,
    YearRow,
)
from riskset.study.cache import StepCache
from riskset.study.sources.source import StudySource
from riskset.study.specification.keys import KEYS
from riskset.study.specification.study_definition import Study
from riskset.study.steps.adjustment_step import (
    AdjustmentStep,
    BalanceStep,
    balance_rows,
)
from riskset.study.steps.bias_rows import bias_bound_rows, confounder_rows
from riskset.study.steps.curve_test_step import CurveTestStep
from riskset.study.steps.description_step import DescriptionStep
from riskset.study.steps.deviation_step import CensoringWeightStep
from riskset.study.steps.estimate_run import AnalysisRuns, EstimateRun
from riskset.study.steps.estimate_step import EstimateStep
from riskset.study.steps.modelled_risk_step import ModelledRiskStep
from riskset.study.steps.propensity_step import ScoreStep
from riskset.study.steps.restricted_mean_step import RestrictedMeanStep
from riskset.study.steps.subgroup_balance import SubgroupBalanceStep

__all__ = ["ResultRows"]

DESCRIPTIONS = {
    "arms": "arms",
    "absolute_risks": "risks",
    "curves": "curves",
    "numbers_at_risk": "at_risk",
    "follow_up": "follow_up",
    "follow_up_histogram": "bins",
    "follow_up_ends": "ends",
    "event_weeks": "weeks",
    "deviations": "deviations",
}
OF_SCORES = {
    "ps_coefficients": "coefficients",
    "ps_cross_validation": "tried",
    "ps_flagged": "flagged",
}
OF_MODELS = {
    "outcome_coefficients": "coefficients",
    "outcome_cross_validation": "tried",
    "likelihood_profiles": "profile",
    "effect_over_time": "over_time",
    "time_effects": "time_effect",
    "effect_at_times": "at_times",
}
"""Tables -> the fields of the steps that have their rows."""


class ResultRows:
    """The rows of every table, before anything is hidden.

    With `blind`, rows of effects that fail diagnostics say so, and what reveals these is left out.
    """

    def __init__(
        self,
        study: Study,
        source: StudySource,
        cache: StepCache,
        analyses: list[AnalysisRuns],
        *,
        blind: bool,
    ) -> None:
        self._study, self._source, self._cache = study, source, cache
        self._analyses, self._blind = analyses, blind
        self._runs = [run for analysis in analyses for run in analysis.runs]
        self._ps = _numbers(run.ps for run in self._runs)
        shared = {id(run.shared): run.shared for run in self._runs}.values()
        everything = [*self._runs, *shared]
        self._adjustments = _numbers(people.adjustment for people in everything)
        # The first with a balance, if any of them has one.
        balanced = sorted(everything, key=lambda people: people.balance is None)
        self._balanced = {people.adjustment: people for people in reversed(balanced)}
        self._score = {run.ps: run for run in reversed(self._runs)}

    def rows(self, name: str) -> Iterable[ResultRow]:
        """Rows of a table."""
        if name in DESCRIPTIONS:
            return self._described(name)
        if name == "restricted_means":
            return self._restricted_means()
        if name == "modelled_risks":
            return self._modelled_risks()
        if name in OF_SCORES:
            return self._of_scores(OF_SCORES[name])
        if name in OF_MODELS:
            return self._of_models(OF_MODELS[name])
        makers: dict[str, Callable[[], Iterable[ResultRow]]] = {
            "runs": self._of_runs,
            "attrition": self._attrition,
            "ps": self._scores,
            "adjustments": self._of_adjustments,
            "preference": self._preference,
            "balance": self._balance,
            "subgroup_balance": self._subgroup_balance,
            "table1": self._characteristics,
            "estimates": self._estimates,
            "curve_tests": self._curve_tests,
            "censoring_weights": self._censoring_weights,
            "controls": lambda: self._of_analyses("controls"),
            "calibration": lambda: self._of_analyses("calibration"),
            "unmeasured_confounding": self._confounders,
            "bias_bounds": self._bias_bounds,
            "diagnostics": self._diagnostics,
            "calendar": self._calendar,
            "codes": self._source.codes,
            "warnings": self._remarks,
        }
        return makers[name]()

    def _is_blinded(self, run: EstimateRun) -> bool:
        return self._blind and run.fails

    def _adjustment(self, key: str) -> AdjustmentStep:
        return self._cache.load(AdjustmentStep, key)

    def _of_runs(self) -> Iterator[RunRow]:
        for run in self._runs:
            step = self._adjustment(run.adjustment)
            row = RunRow(
                **run.names,
                outcome_kind=run.outcome.kind,
                true_hr=run.true_hr,
                status=run.status,
                step=run.step,
                estimand=step.estimand,
                adjustment_kind=step.kind,
                ps=self._ps.get(run.ps or ""),
                adjustment=self._adjustments[run.adjustment],
                shared_adjustment=self._adjustments[run.shared.adjustment],
                unblind=run.diagnostics.unblind,
                unblind_for_evidence_synthesis=run.diagnostics.unblind_for_evidence_synthesis,
                blinded=self._is_blinded(run),
                cloned=run.is_cloned,
            )
            yield row.changed(sentence_columns("reason", run.reason))

    def _of_outcomes(self) -> Iterator[tuple[int, str]]:
        """Numbers and keys of the adjustments of runs, without those that outcomes only share."""
        keys = {run.adjustment for run in self._runs}
        return ((number, key) for key, number in self._adjustments.items() if key in keys)

    def _attrition(self) -> Iterator[AttritionRow]:
        for adjustment, key in self._of_outcomes():
            for k, step in enumerate(self._adjustment(key).attrition, start=1):
                yield AttritionRow(adjustment=adjustment, number=k, **dataclasses.asdict(step))

    def _scores(self) -> Iterator[ScoreRow]:
        for key, number in self._ps.items():
            names = as_dict(self._score[key].comparison)
            yield self._cache.load(ScoreStep, key).row.changed({"ps": number, **names})

    def _of_scores(self, field: str) -> Iterator[ResultRow]:
        for key, number in self._ps.items():
            for row in getattr(self._cache.load(ScoreStep, key), field):
                yield dataclasses.replace(row, ps=number)

    def _of_adjustments(self) -> Iterator[AdjustmentRow]:
        for key, number in self._adjustments.items():
            people = self._balanced[key]
            population = self._source.cohort(people.comparison, people.analysis).people.population
            if people.ps is not None and not population.has_score:
                population = population.with_score(self._cache.load(ScoreStep, people.ps).score)
            row = self._adjustment(key).row(population)
            if people.balance is not None:
                summary = people.balance.row.items()
                row = row.changed({name: value for name, value in summary if value is not None})
            yield dataclasses.replace(
                row,
                adjustment=number,
                **as_dict(people.comparison),
                ps=self._ps.get(people.ps or ""),
                has_balance=people.balance is not None,
            )

    def _is_listed(self, key: str) -> bool:
        """The people of adjustments for controls alone are not described: there may be many."""
        return any(run.is_of_interest for run in self._runs if run.adjustment == key)

    def _preference(self) -> Iterator[PreferenceRow]:
        for number, key in self._of_outcomes():
            if self._is_listed(key):
                for row in self._adjustment(key).preference:
                    yield dataclasses.replace(row, adjustment=number)

    def _balance(self) -> Iterator[BalanceRow]:
        for key, number in self._adjustments.items():
            people = self._balanced[key]
            if people.balance is not None:
                analyses = self._source.cohort(people.comparison, people.analysis).analyses
                step = self._cache.load(BalanceStep, people.balance.key)
                yield from balance_rows(step, analyses, number)

    def _subgroup_balance(self) -> Iterator[SubgroupBalanceRow]:
        done: set[tuple[str, str]] = set()
        for run in self._runs:
            for subgroup, key in run.subgroup_balance.items():
                if (run.adjustment, subgroup) not in done:
                    done.add((run.adjustment, subgroup))
                    number = self._adjustments[run.adjustment]
                    for row in self._cache.load(SubgroupBalanceStep, key).rows:
                        yield row.changed({"adjustment": number, "subgroup": subgroup})

    def _characteristics(self) -> Iterator[CharacteristicRow]:
        for number, key in self._of_outcomes():
            balance = self._balanced[key].balance
            if balance is not None and self._is_listed(key):
                for row in self._cache.load(BalanceStep, balance.key).characteristics:
                    yield dataclasses.replace(row, adjustment=number)

    def _described(self, table: str) -> Iterator[ResultRow]:
        for run in self._runs:
            is_blinded = self._is_blinded(run)
            if run.description is None or (table == "curves" and is_blinded):
                continue
            step = self._cache.load(DescriptionStep, run.description)
            blinded = {"blinded": is_blinded} if table == "absolute_risks" else {}
            for row in getattr(step, DESCRIPTIONS[table]):
                yield row.changed(run.names | blinded)

    def _curve_tests(self) -> Iterator[CurveTestRow]:
        for run in self._runs:
            if run.curve_tests is not None:
                for row in self._cache.load(CurveTestStep, run.curve_tests).rows:
                    yield row.changed({**run.names, "blinded": self._is_blinded(run)})

    def _restricted_means(self) -> Iterator[RestrictedMeanRow]:
        for run in self._runs:
            if run.restricted_means is not None:
                for row in self._cache.load(RestrictedMeanStep, run.restricted_means).rows:
                    yield row.changed({**run.names, "blinded": self._is_blinded(run)})
            if run.modelled_risks is not None:
                for row in self._cache.load(ModelledRiskStep, run.modelled_risks).means:
                    yield row.changed({**run.names, "blinded": self._is_blinded(run)})

    def _modelled_risks(self) -> Iterator[ModelledRiskRow]:
        for run in self._runs:
            if run.modelled_risks is not None:
                for row in self._cache.load(ModelledRiskStep, run.modelled_risks).risks:
                    yield row.changed({**run.names, "blinded": self._is_blinded(run)})

    def _estimates(self) -> Iterator[EstimateRow]:
        for run in self._runs:
            about = {**run.names, "contrast": run.analysis.estimand}
            for row in run.rows:
                yield row.changed({**about, "blinded": self._is_blinded(run)})

    def _censoring_weights(self) -> Iterator[CensoringWeightRow]:
        for run in self._runs:
            if run.weights is not None and run.is_of_interest:
                for row in self._cache.load(CensoringWeightStep, run.weights).rows:
                    yield row.changed(run.names)

    def _of_analyses(self, field: str) -> Iterator[ResultRow]:
        for analysis in self._analyses:
            names = dict(analysis.runs[0].names)
            del names["outcome"]
            for row in getattr(analysis, field):
                yield row.changed(names)

    def _answers(self) -> Iterator[tuple[AnalysisRuns, EstimateRun, EstimateRow]]:
        """The main estimates of outcomes of interest that are not withheld."""
        for analysis in self._analyses:
            for run in analysis.runs:
                if run.is_of_interest and run.main is not None and not self._is_blinded(run):
                    yield analysis, run, run.main

    def _confounders(self) -> Iterator[ConfounderRow]:
        asked = self._study.specification.unmeasured
        for _, run, main in self._answers():
            for row in confounder_rows(main, asked):
                yield row.changed(run.names)

    def _bias_bounds(self) -> Iterator[BiasBoundRow]:
        level = self._study.specification.unmeasured.bias_level
        for analysis, run, main in self._answers():
            for row in bias_bound_rows(main, analysis.controls, level):
                yield row.changed(run.names)

    def _diagnostics(self) -> Iterator[DiagnosticRow]:
        for run in self._runs:
            for check in run.diagnostics.checks:
                yield DiagnosticRow.of(run.names | dataclasses.asdict(check))

    def _of_models(self, field: str) -> Iterator[ResultRow]:
        """Rows that reveal an effect; without a number, that of the main estimate."""
        for run in self._runs:
            # A meta-analysis needs the profiles of imprecise estimates and of controls, too.
            fails = run.fails_for_evidence_synthesis if field == "profile" else run.fails
            if run.estimate is not None and not (self._blind and fails):
                for row in getattr(self._cache.load(EstimateStep, run.estimate), field):
                    yield row.changed(run.names)

    def _calendar(self) -> Iterator[YearRow]:
        for comparison in self._study.specification.comparisons:
            analysis = next(iter(self._study.specification.analyses.values()))
            cohort = self._source.cohort(comparison, analysis)
            if cohort.years is None:
                continue
            is_target = cohort.people.population.is_target
            for arm, of_arm in (("target", is_target), ("comparator", ~is_target)):
                years, counts = np.unique(cohort.years[of_arm], return_counts=True)
                for year, n in zip(years.tolist(), counts.tolist(), strict=True):
                    yield YearRow(**as_dict(comparison), arm=arm, year=year, starts=n)

    def _remarks(self) -> Iterator[RemarkRow]:
        remarks: dict[tuple[str, str, str], RemarkRow] = {}
        outcomes: dict[tuple[str, str, str], dict[str, None]] = {}
        for run in self._runs:
            for step, note in run.notes:
                sentence = note.sentence.spoken(KEYS)
                where = ", ".join(run.names.values())
                first = RemarkRow(step=step, code=note.code, count=0, where=where)
                first = first.changed(sentence_columns("message", sentence))
                key = (step, note.code, str(sentence))
                row = remarks.get(key, first)
                remarks[key] = dataclasses.replace(row, count=row.count + 1)
                outcomes.setdefault(key, {})[run.outcome_name] = None
        for key, row in remarks.items():
            yield dataclasses.replace(row, outcomes=json.dumps(list(outcomes[key])))


def _numbers(keys: Iterable[str | None]) -> dict[str, int]:
    """1, 2, ... for each key in the order in which they come."""
    numbers: dict[str, int] = {}
    for key in keys:
        if key is not None:
            numbers.setdefault(key, len(numbers) + 1)
    return numbers
