"""Going through a study: every comparison, analysis and outcome, each step once."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from riskset._progress import ProgressBar
from riskset._settings import as_dict
from riskset.cohort.adjustment import Adjustment
from riskset.cohort.diagnostics import Diagnostics
from riskset.study.adjusting import adjust, adjustment_of, balance_of
from riskset.study.cohorts import Cohort, Followed, Source, people_key
from riskset.study.controls import Checked, calibrated, checks
from riskset.study.effects import crude, estimates, numbered
from riskset.study.estimate_run import Adjusted, AnalysisRuns, Run
from riskset.study.following import describe
from riskset.study.scores import USABLE, fit_score, given_score
from riskset.study.sections import Analysis, Comparison
from riskset.study.specification import Study
from riskset.study.steps import Result, Steps, digest
from riskset.study.subgroup_effects import subgroup_estimates
from riskset.study.variables import definitions

__all__ = ["Doing"]

OF_CONTROLS = ("shared_balance", "equipoise", "generalisability")
"""A control that fails one of these diagnostics does not enter the calibration."""


@dataclass(eq=False)
class Doing:
    """A run of a study.

    Attributes
    ----------
    study : Study
    source : Source
    steps : Steps
    bar : ProgressBar
    done : int
        Estimates so far.
    """

    study: Study
    source: Source
    steps: Steps
    bar: ProgressBar
    done: int = 0

    def all(self) -> Iterator[AnalysisRuns]:
        """Every analysis of every comparison, comparisons first: covariates are read once."""
        own = self.study.specification
        total = len(own.comparisons) * len(own.analyses) * len(own.outcomes)
        for comparison in own.comparisons:
            for name, analysis in own.analyses.items():
                shared = self.shared(comparison, name, analysis)
                found = []
                for outcome_name, outcome in own.outcomes.items():
                    run = Run(
                        comparison=comparison,
                        analysis_name=name,
                        analysis=analysis,
                        outcome_name=outcome_name,
                        outcome=outcome,
                        shared=shared,
                    )
                    self.bar.update(self.done / total, run.what)
                    self.one(run)
                    found.append(run)
                    self.done += 1
                yield self.judge(found, analysis)

    def shared(self, comparison: Comparison, name: str, own: Analysis) -> Adjusted:
        """How alike the arms are before anybody is left out for an outcome."""
        run = Adjusted(comparison=comparison, analysis_name=name, analysis=own)
        cohort, people = self._start(run)
        made = self._adjust(run, cohort, self._scored(run, cohort, people))
        if run.status == "ok":
            self._balance(run, cohort, made)
        return run

    def one(self, run: Run) -> None:
        """One estimate, with all that it needs and all that describes it."""
        specification, own = self.study.specification, run.analysis
        cohort, _ = self._start(run)
        followed = self.source.follow(run.comparison, own, run.outcome_name)
        for step, notes in (("cohort", cohort.notes), ("follow-up", followed.notes)):
            run.notes += [(step, {"code": code, "message": text}) for code, text in notes]
        followed = dataclasses.replace(followed, people=self._scored(run, cohort, followed.people))
        made = self._adjust(run, cohort, followed.people)
        # Of many controls some would be out of balance by chance: the shared balance judges them.
        if run.status == "ok" and run.is_of_interest:
            self._balance(run, cohort, made)
        if run.is_of_interest and run.status != "empty":
            model, times = own.model, specification.risk_times
            asked = (times, model.level, model.replicates, specification.seed)
            found = self.steps.do(
                "follow-up",
                run.what,
                [run.adjustment, followed.key, *asked],
                lambda: describe(followed, made, *asked),
            )
            run.description = found.key
            run.notes += [("follow-up", note) for note in found.facts.get("notes", ())]
        self._estimate(run, cohort, followed, made)

    def _start(self, run: Adjusted) -> tuple[Cohort, Adjustment]:
        """The cohort of a run, which may have stopped it, and the people whom outcomes share."""
        cohort = self.source.cohort(run.comparison, run.analysis)
        if cohort.problem is not None:
            run.stop("population", dict(zip(("status", "reason"), cohort.problem, strict=True)))
        return cohort, self.source.shared(run.comparison, run.analysis)

    def _scored(self, run: Adjusted, cohort: Cohort, people: Adjustment) -> Adjustment:
        """People with scores, if there can be any."""
        own, population = run.analysis, cohort.people.population
        given = population.has_score
        if run.status != "ok" or (own.propensity is None and not given):
            return people
        seed = self.study.specification.seed
        if given:
            found = self.steps.do(
                "propensity score", run.what, cohort.key, lambda: given_score(cohort)
            )
        else:
            model = own.propensity
            assert model is not None
            key = [cohort.key, as_dict(own.tidy), as_dict(model), seed]
            compute = functools.partial(fit_score, cohort, cohort.people, model, own.tidy, seed)
            found = self._long("propensity score", run.what, key, compute)
        run.ps, run.equipoise = found.key, found.facts["row"].get("equipoise")
        usable = found.facts["status"] in USABLE
        run.stop("propensity score", found.facts | ({"status": "ok"} if usable else {}))
        if "score" not in found.arrays or given:
            return people
        return dataclasses.replace(people, population=population.with_score(found.arrays["score"]))

    def _adjust(self, run: Adjusted, cohort: Cohort, people: Adjustment) -> Adjustment:
        """Trimmed, matched, stratified or weighted; as they are, where that cannot be."""
        own, seed = run.analysis, self.study.specification.seed
        plain = dataclasses.replace(own, trim=None, match=None, stratify=None, weight=None)
        used = own if run.status == "ok" else plain
        ways = [getattr(used, name) for name in ("trim", "match", "stratify", "weight")]
        key: list[object] = [cohort.key, run.ps, people_key(people)]
        key += [None if way is None else as_dict(way) for way in ways]
        within = [name for way in ways for name in getattr(way, "within", ())]
        key.append(definitions(self.study.specification, within))
        if used.trim is not None and used.trim.refit:
            key += [as_dict(own.tidy), seed]
        found = self.steps.do(
            "adjustment",
            run.what,
            key,
            lambda: adjust(cohort, people, used, seed),
        )
        run.adjustment = found.key
        run.stop("adjustment", found.facts)
        return adjustment_of(found, people.population)

    def _balance(self, run: Adjusted, cohort: Cohort, made: Adjustment) -> None:
        sections, options = self.study.specification.table1, run.analysis.balance
        settings = as_dict(options)
        found = self.steps.do(
            "balance",
            run.what,
            [run.adjustment, settings, [as_dict(section) for section in sections]],
            lambda: balance_of(cohort, made, options, sections),
        )
        run.balance, run.balance_facts = found.key, found.facts
        run.notes += [("balance", note) for note in found.facts.get("notes", ())]

    def _estimate(self, run: Run, cohort: Cohort, followed: Followed, made: Adjustment) -> None:
        own, what, seed = run.analysis, run.what, self.study.specification.seed
        model = as_dict(own.model)
        parts: list[Result] = []
        if run.status != "empty":
            plain = {name: model[name] for name in ("kind", "interval", "level", "ties")}
            if model["interval"] == "bootstrap":
                plain |= {"replicates": model["replicates"], "seed": seed}
            if model["kind"] == "finegray":
                plain |= {"censoring_weights": model["censoring_weights"]}
            key: list[object] = [cohort.key, followed.key, plain]
            parts.append(
                self.steps.do("crude estimate", what, key, lambda: crude(followed, own.model, seed))
            )
        if run.status == "ok":
            is_of_interest = run.is_of_interest
            key = [run.adjustment, followed.key, model, as_dict(own.tidy), seed]
            key.append(is_of_interest)
            compute = functools.partial(
                estimates, cohort, followed, made, own, seed, is_of_interest
            )
            main = self._long("estimate", what, key, compute)
            run.estimate = main.key
            run.stop("estimate", main.facts)
            parts.insert(0, main)  # so that its rows have the numbers that it has given them
            if is_of_interest and main.facts["rows"]:
                row = main.facts["rows"][0]
                for found in self._subgroups(cohort, followed, made, own, row, key, what):
                    parts.append(found)
                    run.notes += [("subgroups", note) for note in found.facts["notes"]]
        run.rows += numbered(parts)

    def _long(
        self, step: str, what: str, key: list[object], compute: Callable[[Path], Result]
    ) -> Result:
        """A step whose cross-validations, if it was stopped, go on where they were."""
        replicates = self.steps.path("replicates", f"{digest(step, key)}.jsonl")
        found = self.steps.do(step, what, key, lambda: compute(replicates))
        for done in replicates.parent.glob(f"{replicates.stem}*"):
            done.unlink()
        return found

    def _subgroups(
        self,
        cohort: Cohort,
        followed: Followed,
        made: Adjustment,
        own: Analysis,
        main: dict[str, Any],
        key: list[object],
        what: str,
    ) -> Iterator[Result]:
        specification = self.study.specification
        for name, subgroup in specification.subgroups.items():
            compute = functools.partial(
                subgroup_estimates,
                cohort,
                followed,
                made,
                own,
                subgroup.column,
                main,
                specification.seed,
            )
            column = [subgroup.column, definitions(specification, [subgroup.column])]
            found = self.steps.do("subgroups", what, [*key, column], compute)
            rows = [row | {"subgroup": name} for row in found.facts["rows"]]
            yield dataclasses.replace(found, facts=found.facts | {"rows": rows})

    def judge(self, found: list[Run], own: Analysis) -> AnalysisRuns:
        """Calibrate the estimates of an analysis by its controls, and check them all."""
        specification = self.study.specification

        def verdicts(run: Run, ease: float | None) -> Diagnostics:
            main = next((row for row in run.rows if row["role"] == "main"), {})
            return checks(
                specification.diagnostics,
                balance=run.balance_facts,
                shared_balance=run.shared.balance_facts,
                equipoise=run.equipoise,
                mdrr=main.get("mdrr"),
                ease=ease,
                proportionality_p=main.get("proportionality_p"),
                by_significance=own.balance.alpha is not None,
            )

        of_controls, summaries = calibrated(
            [
                Checked(
                    run.outcome_name,
                    run.true_hr,
                    run.rows,
                    not verdicts(run, None).fails_any(OF_CONTROLS),
                )
                for run in found
            ],
            specification.calibration,
            own.model.level,
        )
        for run in found:
            main = next((row for row in run.rows if row["role"] == "main"), None)
            kind = None if main is None else (main["model"], main["reading"])
            ease = [row["ease"] for row in summaries if (row["model"], row["reading"]) == kind]
            run.diagnostics = verdicts(run, ease[0] if ease else None)
            if run.shared.status != "ok" and run.status == "ok":
                text = f"the shared balance is not known: {run.shared.reason or run.shared.status}"
                run.notes.append(("balance", {"code": run.shared.status, "message": text}))
        return AnalysisRuns(found, of_controls, summaries)
