"""The run of a study: every comparison, analysis and outcome, each step once."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar, cast

from riskset._messages import Note, Sentence, Value
from riskset._progress import ProgressBar
from riskset._settings import as_dict
from riskset.cohort.adjustments.adjustment import Adjustment
from riskset.cohort.population import Population
from riskset.cohort.settings import FRAILTY_SETTINGS
from riskset.results.rows import EstimateRow
from riskset.study.cache import StepCache
from riskset.study.sources.source import (
    AnalysedOutcome,
    AnalysedPeople,
    Followed,
    StudySource,
    people_key,
)
from riskset.study.specification.exposure_sections import strategies_of
from riskset.study.specification.sections import ADJUSTMENTS, Analysis, Comparison
from riskset.study.specification.study_definition import Study
from riskset.study.steps.adjustment_step import AdjustmentStep, BalanceStep, adjust, balance_of
from riskset.study.steps.controls import calibrated
from riskset.study.steps.curve_test_step import CurveTestStep, curve_tests
from riskset.study.steps.description_step import DescriptionStep, describe
from riskset.study.steps.deviation_step import (
    CensoringWeightStep,
    protocol_estimates,
    protocol_subgroups,
    weigh,
)
from riskset.study.steps.deviation_weights import (
    WeightedRows,
    followed_until_deviation,
    interval_days,
)
from riskset.study.steps.estimate_run import AdjustedPeople, AnalysisRuns, EstimateRun
from riskset.study.steps.estimate_step import EstimateStep, crude, estimates, subgroup_estimates
from riskset.study.steps.modelled_risk_step import ModelledRiskStep, modelled_risks
from riskset.study.steps.pooled_runs import pool_estimates, pool_people
from riskset.study.steps.propensity_step import ScoreStep, fit_score, given_score
from riskset.study.steps.restricted_mean_step import (
    RestrictedMeanStep,
    interval_of_means,
    restricted_means,
)
from riskset.study.steps.subgroup_balance import SubgroupBalanceStep, subgroup_balance
from riskset.study.steps.treatment_weight_step import (
    TreatmentWeightStep,
    weigh_treatments,
    weighted_pair,
)

__all__ = ["StudyRunner"]

PeopleT = TypeVar("PeopleT", bound=AnalysedPeople)
RunT = TypeVar("RunT", bound=AdjustedPeople)

OF_RISKS = ("risk_censoring", "risk_penalty", "risk_folds")
"""Keys of a model that are of doubly robust estimates alone."""
NO_ADJUSTMENT = dict.fromkeys(ADJUSTMENTS)


@dataclass(eq=False)
class StudyRunner:
    """Computes everything that a study asks for; `n_done` counts estimates."""

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
                both = strategies_of(asked.exposures, comparison.target, comparison.comparator)
                is_cloned = both is not None
                runs = []
                for outcome_name, outcome in asked.outcomes.items():
                    run = EstimateRun(
                        comparison=comparison,
                        analysis_name=name,
                        analysis=analysis,
                        outcome_name=outcome_name,
                        outcome=outcome,
                        shared=shared,
                        is_cloned=is_cloned,
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
        start = self._start(shared)

        def once(run: AdjustedPeople, start: AnalysedPeople) -> Population:
            people = self._adjust(run, self._scored(run, start))
            if run.status == "ok":
                self._balance(run, people)
            return people.people.population

        self._in_every_data_set(shared, start, once)
        return shared

    def _in_every_data_set(
        self,
        run: RunT,
        start: AnalysedPeople,
        once: Callable[[RunT, AnalysedPeople], Population],
    ) -> None:
        """Do it once, or if missing values are imputed, in each completed data set, and pool."""
        cohort = start.cohort
        if cohort.completed is None or run.status != "ok":
            once(run, start)
            return
        runs, populations = [], []
        for k in range(cohort.n_datasets):
            one = run.alone(k)
            populations.append(once(one, dataclasses.replace(start, cohort=cohort.completed(k))))
            runs.append(one)
        if isinstance(run, EstimateRun):
            pool_estimates(run, cast("list[EstimateRun]", runs), populations, self.cache)
        else:
            pool_people(run, runs, populations, self.cache)

    def _run_outcome(self, run: EstimateRun) -> None:
        """One estimate, with all that it needs and all that describes it."""
        start = self._start(run)
        followed = self.source.follow(run.comparison, run.analysis, run.outcome_name)
        if run.analysis.protocol is not None:
            deviations = self.source.deviations(run.comparison, run.analysis, run.outcome_name)
            followed = followed_until_deviation(followed, deviations)
        run.notes += [("cohort", note) for note in start.cohort.notes]
        run.notes += [("follow-up", note) for note in followed.notes]
        self._in_every_data_set(run, start, lambda one, own: self._outcome_of(one, own, followed))

    def _outcome_of(
        self, run: EstimateRun, start: AnalysedPeople, followed: Followed
    ) -> Population:
        """Score, adjustment, description and estimates of the data, or of a completed data set."""
        scored = self._scored(run, dataclasses.replace(start, people=followed.people))
        followed = dataclasses.replace(followed, people=scored.people)
        people = self._adjust(run, AnalysedOutcome(**vars(scored), followed=followed))
        # Of many controls some would be out of balance by chance: the shared balance judges them.
        if run.status == "ok" and run.is_of_interest:
            self._balance(run, people)
            self._balance_in_subgroups(run, people)
        weighted = self._weigh(run, people)
        if run.is_of_interest and run.status != "empty":
            model, asked = run.analysis.model, self.study.specification
            times, unit = asked.risk_days, asked.time_unit
            key = [run.adjustment, followed.key, times, model.level, model.replicates, people.seed]
            # Without weights, because their step failed, there are no adjusted curves.
            rows = weighted if run.status == "ok" else None
            of_weights = [run.weights, rows is None]
            if run.analysis.protocol is not None and model.interval == "bootstrap":
                of_weights.append("the intervals of risks are of a bootstrap")
            description = self.cache.get_or_compute(
                DescriptionStep,
                run.what,
                [*key, unit, *of_weights],
                lambda: describe(people, times, unit, rows),
            )
            run.description = description.key
            run.take(description)
            self._curve_tests(run, people, rows)
            self._restricted_means(run, people, rows)
            self._modelled_risks(run, people)
        self._estimate(run, people, weighted)
        return people.people.population

    def _weigh(self, run: EstimateRun, people: AnalysedOutcome) -> WeightedRows | None:
        """The weights for deviation of a per-protocol analysis."""
        protocol = run.analysis.protocol
        if protocol is None or run.status != "ok":
            return None
        of_score: list[str] = []
        if run.ps is not None:
            step = self.cache.load(ScoreStep, run.ps)
            of_score = [row.covariate_id for row in step.coefficients]
        every = interval_days(protocol, self.study.specification.data)
        weighted = WeightedRows(people, protocol, every, of_score)
        found = self.cache.get_or_compute(
            CensoringWeightStep,
            run.what,
            [run.adjustment, people.followed.key, as_dict(protocol), every],
            lambda: weigh(weighted),
        )
        run.weights = found.key
        run.take(found)
        return weighted

    def _curve_tests(
        self, run: EstimateRun, people: AnalysedOutcome, weighted: WeightedRows | None
    ) -> None:
        model = run.analysis.model
        if not model.curve_tests:
            return
        how = [*model.curve_tests, model.reading, model.model]
        step = self.cache.get_or_compute(
            CurveTestStep,
            run.what,
            [run.adjustment, people.followed.key, how, run.weights, weighted is None],
            functools.partial(curve_tests, people, weighted),
        )
        run.curve_tests = step.key
        run.take(step)

    def _restricted_means(
        self, run: EstimateRun, people: AnalysedOutcome, weighted: WeightedRows | None
    ) -> None:
        model, asked = run.analysis.model, self.study.specification
        horizons, unit = asked.horizon_days(run.analysis), asked.time_unit
        if not horizons:
            return
        interval = interval_of_means(model.interval)
        key = [run.adjustment, people.followed.key, horizons, unit, interval, model.level]
        key += [model.replicates, people.seed] if interval == "bootstrap" else []
        key += [] if run.analysis.protocol is None else [run.weights, weighted is None]
        step = self.cache.get_or_compute(
            RestrictedMeanStep,
            run.what,
            key,
            functools.partial(restricted_means, people, horizons, unit, weighted),
        )
        run.restricted_means = step.key
        run.take(step)

    def _modelled_risks(self, run: EstimateRun, people: AnalysedOutcome) -> None:
        model, asked = run.analysis.model, self.study.specification
        if run.status != "ok" or not (model.standardize or model.doubly_robust):
            return
        times = asked.days_of(model.standardize), asked.days_of(model.doubly_robust)
        how = {name: getattr(model, name) for name in (*OF_RISKS, "model", "ties", "level")}
        key = [run.adjustment, people.followed.key, *times, asked.time_unit, how, people.seed]
        key.append(as_dict(run.analysis.tidy))
        key.append([model.interval, model.replicates] if model.interval == "bootstrap" else None)
        step = self.cache.get_or_compute(
            ModelledRiskStep,
            run.what,
            key,
            functools.partial(modelled_risks, people, *times, asked.time_unit),
        )
        run.modelled_risks = step.key
        run.take(step)

    def _start(self, run: AdjustedPeople) -> AnalysedPeople:
        """The people whom outcomes share; what is wrong with their cohort stops the run."""
        cohort = self.source.cohort(run.comparison, run.analysis)
        if cohort.problem is not None:
            run.stop("population", *cohort.problem)
        people = self.source.shared(run.comparison, run.analysis)
        return AnalysedPeople(cohort, people, run.analysis, self.study.specification.seed)

    def _scored(self, run: AdjustedPeople, people: AnalysedPeople) -> AnalysedPeople:
        """People with scores, if there can be any."""
        analysis, cohort = run.analysis, people.cohort
        population = cohort.people.population
        given = population.has_score
        if run.status != "ok" or (analysis.propensity is None and not given):
            return people
        if given:
            score = self.cache.get_or_compute(
                ScoreStep, run.what, cohort.key, lambda: given_score(cohort)
            )
        else:
            key = [cohort.key, as_dict(analysis.tidy), as_dict(analysis.propensity), people.seed]
            everybody = dataclasses.replace(people, people=cohort.people)
            compute = functools.partial(fit_score, everybody)
            score = self.cache.get_or_resume(ScoreStep, run.what, key, compute)
        run.ps, run.equipoise = score.key, score.row.equipoise
        run.notes += [(score.step, note) for note in score.notes]
        if not score.is_usable:
            run.stop(score.step, score.status, score.reason)
        if score.score is None or given:
            return people
        with_score = dataclasses.replace(
            people.people, population=population.with_score(score.score)
        )
        return dataclasses.replace(people, people=with_score)

    def _adjust(self, run: AdjustedPeople, people: PeopleT) -> PeopleT:
        """Trimmed, matched, stratified or weighted; as they are, where that cannot be."""
        analysis = run.analysis
        if run.status != "ok":
            analysis = dataclasses.replace(analysis, **NO_ADJUSTMENT)  # type: ignore[arg-type]
        ways = [getattr(analysis, name) for name in ADJUSTMENTS]
        key: list[object] = [people.cohort.key, run.ps, people_key(people.people)]
        key += [None if way is None else as_dict(way) for way in ways]
        within = [name for way in ways for name in getattr(way, "within", ())]
        key.append(self.study.specification.definitions(within))
        if analysis.trim is not None and analysis.trim.refit:
            key += [as_dict(analysis.tidy), people.seed]
        weighted = self._weighted_treatments(run, people, analysis)
        if weighted is not None:
            key.append(weighted[0].key)
        used = dataclasses.replace(people, analysis=analysis)
        step = self.cache.get_or_compute(
            AdjustmentStep, run.what, key, lambda: adjust(used, weighted)
        )
        run.adjustment, run.pairwise_max = step.key, step.pairwise_max
        run.take(step)
        return dataclasses.replace(people, people=step.of(people.people.population))

    def _weighted_treatments(
        self, run: AdjustedPeople, people: AnalysedPeople, analysis: Analysis
    ) -> tuple[TreatmentWeightStep, Adjustment] | None:
        """The weights of several treatments, if there are any, and the comparison by them."""
        section, of_arms = analysis.weight_treatments, people.cohort.arms
        if section is None or of_arms is None:
            return None
        everybody = of_arms(section.arms)
        key = [everybody.key, *map(as_dict, (section, analysis.tidy, analysis.balance))]
        step = self.cache.get_or_resume(
            TreatmentWeightStep,
            f"{', '.join(section.arms)}, {run.analysis_name}{run.of_data_set}",
            [*key, people.seed],
            functools.partial(weigh_treatments, everybody, analysis, people.seed),
        )
        run.treatment_weights = step.key
        run.take(step)
        if step.weight is None:
            return None
        place = everybody.place
        return step, weighted_pair(people.people, step, place, analysis, run.comparison)

    def _balance(self, run: AdjustedPeople, people: AnalysedPeople) -> None:
        asked = self.study.specification
        sections, most_years = asked.table1, asked.report.year_lines
        settings = [as_dict(run.analysis.balance), [as_dict(one) for one in sections], most_years]
        step = self.cache.get_or_compute(
            BalanceStep,
            run.what,
            [run.adjustment, *settings],
            lambda: balance_of(people, sections, most_years),
        )
        run.balance = dataclasses.replace(step, columns={})  # there may be many runs
        run.take(step)

    def _balance_in_subgroups(self, run: EstimateRun, people: AnalysedPeople) -> None:
        specification = self.study.specification
        for name, subgroup in specification.subgroups.items():
            column = subgroup.column
            key = [run.adjustment, run.analysis.balance.sd, column]
            step = self.cache.get_or_compute(
                SubgroupBalanceStep,
                run.what,
                [*key, specification.definitions([column])],
                functools.partial(subgroup_balance, people, column),
            )
            run.subgroup_balance[name] = step.key

    def _estimate(
        self, run: EstimateRun, people: AnalysedOutcome, weighted: WeightedRows | None
    ) -> None:
        model, cohort, followed = as_dict(run.analysis.model), people.cohort, people.followed
        for name in ("rmst", "standardize", "doubly_robust", "curve_tests", *OF_RISKS):
            del model[name]  # they have steps of their own
        steps: list[EstimateStep] = []
        cluster = run.analysis.model.cluster
        clusters = [] if cluster is None else [self.study.specification.definitions([cluster])]
        if run.status != "empty":
            plain = {name: model[name] for name in ("kind", "interval", "level", "ties", "firth")}
            if model["interval"] == "bootstrap":
                plain |= {"replicates": model["replicates"], "seed": people.seed}
            if model["frailty"] is not None:
                plain |= {name: model[name] for name in (*FRAILTY_SETTINGS, "cluster")}
            if model["kind"] == "finegray":
                plain |= {"censoring_weights": model["censoring_weights"]}
            key: list[object] = [cohort.base or cohort.key, followed.key, plain, *clusters]
            compute = functools.partial(crude, people)
            steps.append(
                self.cache.get_or_compute(
                    EstimateStep, run.what, key, compute, step="crude estimate"
                )
            )
        if run.status == "ok":
            key = [run.adjustment, followed.key, model, as_dict(run.analysis.tidy), people.seed]
            key += [run.is_of_interest, *clusters]
            unit = self.study.specification.time_unit
            key.append(unit if run.analysis.model.time_effect is not None else None)
            if weighted is None:
                compute_main = functools.partial(estimates, people, run.is_of_interest, unit)
                main = self.cache.get_or_resume(EstimateStep, run.what, key, compute_main)
            else:
                compute = functools.partial(
                    protocol_estimates, people, run.is_of_interest, unit, weighted
                )
                main = self.cache.get_or_compute(
                    EstimateStep, run.what, [*key, run.weights], compute
                )
            run.estimate = main.key
            run.take(main)
            steps.insert(0, main)  # so that its rows have the numbers that it has given them
            if run.is_of_interest and main.rows:
                key.append(run.weights)
                for step in self._subgroups(run, people, main.rows[0], key, weighted):
                    steps.append(step)
                    run.take(step)
        rows = (row for step in steps for row in step.rows)
        run.rows = [dataclasses.replace(row, number=k) for k, row in enumerate(rows, start=1)]

    def _subgroups(
        self,
        run: EstimateRun,
        people: AnalysedOutcome,
        main: EstimateRow,
        key: list[object],
        weighted: WeightedRows | None,
    ) -> Iterator[EstimateStep]:
        specification = self.study.specification
        for name, subgroup in specification.subgroups.items():
            column = subgroup.column
            compute = functools.partial(subgroup_estimates, people, column, main)
            if weighted is not None:
                compute = functools.partial(protocol_subgroups, people, weighted, column)
            step = self.cache.get_or_compute(
                EstimateStep,
                run.what,
                [*key, [column, specification.definitions([column])]],
                compute,
                step="subgroups",
            )
            rows = [dataclasses.replace(row, subgroup=name) for row in step.rows]
            yield dataclasses.replace(step, rows=rows)

    def _judge(self, runs: list[EstimateRun], analysis: Analysis) -> AnalysisRuns:
        """Calibrate the estimates of an analysis by its controls, and check them all."""
        limits = self.study.specification.diagnostics
        for run in runs:
            run.diagnose(limits, None)  # a control that fails does not enter the calibration
        controls, calibration = calibrated(
            runs, self.study.specification.calibration, analysis.model.level
        )
        eases = {(row.model, row.reading): row.ease for row in calibration}
        for run in runs:
            run.diagnose(
                limits, eases.get((run.main.model, run.main.reading)) if run.main else None
            )
            if run.shared.status != "ok" and run.status == "ok":
                status = run.shared.status
                reason = Value("sentence", run.shared.reason or Sentence(status))
                text = "the shared balance is not known: {reason}"
                run.notes.append(("balance", Note(status, (), text, {"reason": reason})))
        return AnalysisRuns(runs, controls, calibration)
