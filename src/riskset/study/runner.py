"""The run of a study: every comparison, analysis and outcome, each step once."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from riskset._messages import Note
from riskset._progress import ProgressBar
from riskset._settings import as_dict
from riskset.cohort.adjustment import Adjustment
from riskset.cohort.diagnostics import Diagnostics
from riskset.results.rows import EstimateRow
from riskset.study.adjustment_step import AdjustmentStep, BalanceStep, adjust, balance_of
from riskset.study.cache import ResultT, StepCache, digest
from riskset.study.controls import CalibratedOutcome, calibrated, checks
from riskset.study.description_step import DescriptionStep, describe
from riskset.study.estimate_run import AdjustedPeople, AnalysisRuns, EstimateRun
from riskset.study.estimate_step import EstimateStep, crude, estimates, numbered, subgroup_estimates
from riskset.study.propensity_step import ScoreStep, fit_score, given_score
from riskset.study.sections import Analysis, Comparison
from riskset.study.source import ComparisonCohort, Followed, StudySource, people_key
from riskset.study.specification import Study

__all__ = ["StudyRunner"]

OF_CONTROLS = ("shared_balance", "equipoise", "generalisability")
"""A control that fails one of these diagnostics does not enter the calibration."""


@dataclass(eq=False)
class StudyRunner:
    """Computes everything that a study asks for.

    Attributes
    ----------
    study : Study
    source : StudySource
    cache : StepCache
    bar : ProgressBar
    n_done : int
        Estimates so far.
    """

    study: Study
    source: StudySource
    cache: StepCache
    bar: ProgressBar
    n_done: int = 0

    def run(self) -> Iterator[AnalysisRuns]:
        """Every analysis of every comparison, comparisons first: covariates are read once."""
        asked = self.study.specification
        total = len(asked.comparisons) * len(asked.analyses) * len(asked.outcomes)
        for comparison in asked.comparisons:
            for name, analysis in asked.analyses.items():
                shared = self._shared_people(comparison, name, analysis)
                runs = []
                for outcome_name, outcome in asked.outcomes.items():
                    run = EstimateRun(
                        comparison=comparison,
                        analysis_name=name,
                        analysis=analysis,
                        outcome_name=outcome_name,
                        outcome=outcome,
                        shared=shared,
                    )
                    self.bar.update(self.n_done / total, run.what)
                    self._run_outcome(run)
                    runs.append(run)
                    self.n_done += 1
                yield self._judge(runs, analysis)

    def _shared_people(
        self, comparison: Comparison, name: str, analysis: Analysis
    ) -> AdjustedPeople:
        """How alike the arms are before anybody is left out for an outcome."""
        shared = AdjustedPeople(comparison=comparison, analysis_name=name, analysis=analysis)
        cohort, people = self._start(shared)
        adjustment = self._adjust(shared, cohort, self._scored(shared, cohort, people))
        if shared.status == "ok":
            self._balance(shared, cohort, adjustment)
        return shared

    def _run_outcome(self, run: EstimateRun) -> None:
        """One estimate, with all that it needs and all that describes it."""
        specification, analysis = self.study.specification, run.analysis
        cohort, _ = self._start(run)
        followed = self.source.follow(run.comparison, analysis, run.outcome_name)
        run.notes += [("cohort", note) for note in cohort.notes]
        run.notes += [("follow-up", note) for note in followed.notes]
        followed = dataclasses.replace(followed, people=self._scored(run, cohort, followed.people))
        adjustment = self._adjust(run, cohort, followed.people)
        # Of many controls some would be out of balance by chance: the shared balance judges them.
        if run.status == "ok" and run.is_of_interest:
            self._balance(run, cohort, adjustment)
        if run.is_of_interest and run.status != "empty":
            model, times = analysis.model, specification.risk_times
            asked = (times, model.level, model.replicates, specification.seed)
            description = self.cache.get_or_compute(
                "follow-up",
                run.what,
                [run.adjustment, followed.key, *asked],
                DescriptionStep,
                lambda: describe(followed, adjustment, *asked),
            )
            run.description = description.key
            run.take("follow-up", description)
        self._estimate(run, cohort, followed, adjustment)

    def _start(self, run: AdjustedPeople) -> tuple[ComparisonCohort, Adjustment]:
        """The cohort of a run, which may have stopped it, and the people whom outcomes share."""
        cohort = self.source.cohort(run.comparison, run.analysis)
        if cohort.problem is not None:
            run.stop("population", *cohort.problem)
        return cohort, self.source.shared(run.comparison, run.analysis)

    def _scored(
        self, run: AdjustedPeople, cohort: ComparisonCohort, people: Adjustment
    ) -> Adjustment:
        """People with scores, if there can be any."""
        analysis, population = run.analysis, cohort.people.population
        given = population.has_score
        if run.status != "ok" or (analysis.propensity is None and not given):
            return people
        seed, step = self.study.specification.seed, "propensity score"
        if given:
            score = self.cache.get_or_compute(
                step, run.what, cohort.key, ScoreStep, lambda: given_score(cohort)
            )
        else:
            model = analysis.propensity
            assert model is not None
            key = [cohort.key, as_dict(analysis.tidy), as_dict(model), seed]
            compute = functools.partial(
                fit_score, cohort, cohort.people, model, analysis.tidy, seed
            )
            score = self._long(step, run.what, key, ScoreStep, compute)
        run.ps, run.equipoise = score.key, score.row.equipoise
        run.notes += [(step, note) for note in score.notes]
        if not score.is_usable:
            run.stop(step, score.status, score.reason)
        if score.score is None or given:
            return people
        return dataclasses.replace(people, population=population.with_score(score.score))

    def _adjust(
        self, run: AdjustedPeople, cohort: ComparisonCohort, people: Adjustment
    ) -> Adjustment:
        """Trimmed, matched, stratified or weighted; as they are, where that cannot be."""
        analysis, seed = run.analysis, self.study.specification.seed
        plain = dataclasses.replace(analysis, trim=None, match=None, stratify=None, weight=None)
        used = analysis if run.status == "ok" else plain
        ways = [getattr(used, name) for name in ("trim", "match", "stratify", "weight")]
        key: list[object] = [cohort.key, run.ps, people_key(people)]
        key += [None if way is None else as_dict(way) for way in ways]
        within = [name for way in ways for name in getattr(way, "within", ())]
        key.append(self.study.specification.definitions(within))
        if used.trim is not None and used.trim.refit:
            key += [as_dict(analysis.tidy), seed]
        step = self.cache.get_or_compute(
            "adjustment", run.what, key, AdjustmentStep, lambda: adjust(cohort, people, used, seed)
        )
        run.adjustment = step.key
        run.take("adjustment", step)
        return step.of(people.population)

    def _balance(
        self, run: AdjustedPeople, cohort: ComparisonCohort, adjustment: Adjustment
    ) -> None:
        sections, settings = self.study.specification.table1, run.analysis.balance
        key = [as_dict(settings), [as_dict(section) for section in sections]]
        step = self.cache.get_or_compute(
            "balance",
            run.what,
            [run.adjustment, *key],
            BalanceStep,
            lambda: balance_of(cohort, adjustment, settings, sections),
        )
        run.balance = dataclasses.replace(step, columns={})  # there may be many runs
        run.take("balance", step)

    def _estimate(
        self, run: EstimateRun, cohort: ComparisonCohort, followed: Followed, adjustment: Adjustment
    ) -> None:
        analysis, what, seed = run.analysis, run.what, self.study.specification.seed
        model = as_dict(analysis.model)
        steps: list[EstimateStep] = []
        if run.status != "empty":
            plain = {name: model[name] for name in ("kind", "interval", "level", "ties")}
            if model["interval"] == "bootstrap":
                plain |= {"replicates": model["replicates"], "seed": seed}
            if model["kind"] == "finegray":
                plain |= {"censoring_weights": model["censoring_weights"]}
            key: list[object] = [cohort.key, followed.key, plain]
            steps.append(
                self.cache.get_or_compute(
                    "crude estimate",
                    what,
                    key,
                    EstimateStep,
                    lambda: crude(followed, analysis.model, seed),
                )
            )
        if run.status == "ok":
            key = [run.adjustment, followed.key, model, as_dict(analysis.tidy), seed]
            key.append(run.is_of_interest)
            compute = functools.partial(
                estimates, cohort, followed, adjustment, analysis, seed, run.is_of_interest
            )
            main = self._long("estimate", what, key, EstimateStep, compute)
            run.estimate = main.key
            run.take("estimate", main)
            steps.insert(0, main)  # so that its rows have the numbers that it has given them
            if run.is_of_interest and main.rows:
                for step in self._subgroups(run, cohort, followed, adjustment, main.rows[0], key):
                    steps.append(step)
                    run.take("subgroups", step)
        run.rows += numbered(steps)

    def _long(
        self,
        step: str,
        what: str,
        key: list[object],
        kind: type[ResultT],
        compute: Callable[[Path], ResultT],
    ) -> ResultT:
        """A step whose cross-validations, if it was stopped, go on where they were."""
        replicates = self.cache.path("replicates", f"{digest(step, key)}.jsonl")
        result = self.cache.get_or_compute(step, what, key, kind, lambda: compute(replicates))
        for done in replicates.parent.glob(f"{replicates.stem}*"):
            done.unlink()
        return result

    def _subgroups(
        self,
        run: EstimateRun,
        cohort: ComparisonCohort,
        followed: Followed,
        adjustment: Adjustment,
        main: EstimateRow,
        key: list[object],
    ) -> Iterator[EstimateStep]:
        specification = self.study.specification
        for name, subgroup in specification.subgroups.items():
            compute = functools.partial(
                subgroup_estimates,
                cohort,
                followed,
                adjustment,
                run.analysis,
                subgroup.column,
                main,
                specification.seed,
            )
            column = [subgroup.column, specification.definitions([subgroup.column])]
            step = self.cache.get_or_compute(
                "subgroups", run.what, [*key, column], EstimateStep, compute
            )
            rows = [dataclasses.replace(row, subgroup=name) for row in step.rows]
            yield dataclasses.replace(step, rows=rows)

    def _judge(self, runs: list[EstimateRun], analysis: Analysis) -> AnalysisRuns:
        """Calibrate the estimates of an analysis by its controls, and check them all."""
        specification = self.study.specification

        def verdicts(run: EstimateRun, ease: float | None) -> Diagnostics:
            return checks(
                specification.diagnostics,
                balance=run.balance,
                shared_balance=run.shared.balance,
                equipoise=run.equipoise,
                main=run.main,
                ease=ease,
                by_significance=analysis.balance.alpha is not None,
            )

        outcomes = [
            CalibratedOutcome(
                run.outcome_name,
                run.true_hr,
                run.rows,
                not verdicts(run, None).fails_any(OF_CONTROLS),
            )
            for run in runs
        ]
        controls, calibration = calibrated(
            outcomes, specification.calibration, analysis.model.level
        )
        for run in runs:
            ease = [
                row.ease
                for row in calibration
                if run.main and (row.model, row.reading) == (run.main.model, run.main.reading)
            ]
            run.diagnostics = verdicts(run, ease[0] if ease else None)
            if run.shared.status != "ok" and run.status == "ok":
                text = f"the shared balance is not known: {run.shared.reason or run.shared.status}"
                run.notes.append(("balance", Note(run.shared.status, (), text)))
        return AnalysisRuns(runs, controls, calibration)
