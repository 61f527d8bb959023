"""Going through a study: every comparison, analysis and outcome, each step once."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from riskset._progress import ProgressBar
from riskset.cohort.adjustment import Adjustment
from riskset.cohort.diagnostics import Diagnostic
from riskset.study.adjusting import adjust, adjustment_of, balance_of
from riskset.study.analysis_sections import Analysis
from riskset.study.cohorts import Cohort, Followed, Source
from riskset.study.controls import Checked, calibrated, checks
from riskset.study.data_sections import Outcome
from riskset.study.effects import crude, estimates, numbered
from riskset.study.estimate_run import AnalysisRuns, Run
from riskset.study.following import describe
from riskset.study.scores import USABLE, fit_score, given_score
from riskset.study.specification import Comparison, Study
from riskset.study.steps import Result, Steps, digest
from riskset.study.subgroup_effects import subgroup_estimates
from riskset.study.variables import definitions

__all__ = ["Doing"]


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
                found = []
                for outcome_name, outcome in own.outcomes.items():
                    what = f"{comparison.target}, {comparison.comparator}, {outcome_name}, {name}"
                    self.bar.update(self.done / total, what)
                    found.append(self.one(comparison, outcome_name, outcome, name, analysis))
                    self.done += 1
                yield self.judge(found, analysis)

    def one(
        self, comparison: Comparison, outcome_name: str, outcome: Outcome, name: str, own: Analysis
    ) -> Run:
        """One estimate, with all that it needs and all that describes it."""
        run = Run(comparison, outcome_name, outcome, name, own)
        what = ", ".join(run.names.values())
        cohort = self.source.cohort(comparison, own)
        followed = self.source.follow(comparison, own, outcome_name)
        for step, notes in (("cohort", cohort.notes), ("follow-up", followed.notes)):
            run.notes += [(step, {"code": code, "message": text}) for code, text in notes]
        if cohort.problem is not None:
            run.stop("population", dict(zip(("status", "reason"), cohort.problem, strict=True)))
        followed = self._scored(run, cohort, followed, own, what)
        made = self._adjust(run, cohort, followed, own, what)
        if run.status == "ok":
            self._balance(run, cohort, made, own, what)
        specification = self.study.specification
        if outcome.kind == "outcome" and run.status != "empty":
            model, times = own.model, specification.risk_times
            asked = (times, model.level, model.replicates, specification.seed)
            found = self.steps.do(
                "follow-up",
                what,
                [run.adjustment, followed.key, *asked],
                lambda: describe(followed, made, *asked),
            )
            run.description = found.key
            run.notes += [("follow-up", note) for note in found.facts.get("notes", ())]
        self._estimate(run, cohort, followed, made, own, what)
        return run

    def _scored(
        self, run: Run, cohort: Cohort, followed: Followed, own: Analysis, what: str
    ) -> Followed:
        """Those who are followed, with scores if there can be any."""
        population = cohort.people.population
        given = population.has_score
        if run.status != "ok" or (own.propensity is None and not given):
            return followed
        seed = self.study.specification.seed
        if given:
            found = self.steps.do("propensity score", what, cohort.key, lambda: given_score(cohort))
        else:
            model = own.propensity
            assert model is not None
            key = [cohort.key, dataclasses.asdict(own.tidy), dataclasses.asdict(model), seed]
            compute = functools.partial(fit_score, cohort, cohort.people, model, own.tidy, seed)
            found = self._long("propensity score", what, key, compute)
        run.ps, run.equipoise = found.key, found.facts["row"].get("equipoise")
        usable = found.facts["status"] in USABLE
        run.stop("propensity score", found.facts | ({"status": "ok"} if usable else {}))
        if "score" not in found.arrays or given:
            return followed
        scored = population.with_score(found.arrays["score"])
        people = dataclasses.replace(followed.people, population=scored)
        return dataclasses.replace(followed, people=people)

    def _adjust(
        self, run: Run, cohort: Cohort, followed: Followed, own: Analysis, what: str
    ) -> Adjustment:
        """Trimmed, matched, stratified or weighted; as they are, where that cannot be."""
        seed = self.study.specification.seed
        plain = dataclasses.replace(own, trim=None, match=None, stratify=None, weight=None)
        used = own if run.status == "ok" else plain
        ways = [getattr(used, name) for name in ("trim", "match", "stratify", "weight")]
        key: list[object] = [cohort.key, run.ps, followed.people_key]
        key += [None if way is None else dataclasses.asdict(way) for way in ways]
        within = [name for way in ways for name in getattr(way, "within", ())]
        key.append(definitions(self.study.specification, within))
        if used.trim is not None and used.trim.refit:
            key += [dataclasses.asdict(own.tidy), seed]
        found = self.steps.do(
            "adjustment",
            what,
            key,
            lambda: adjust(cohort, followed.people, used, seed),
        )
        run.adjustment = found.key
        run.stop("adjustment", found.facts)
        return adjustment_of(found, followed.people.population)

    def _balance(
        self, run: Run, cohort: Cohort, made: Adjustment, own: Analysis, what: str
    ) -> None:
        sections = self.study.specification.table1
        settings = dataclasses.asdict(own.balance)
        found = self.steps.do(
            "balance",
            what,
            [run.adjustment, settings, [dataclasses.asdict(section) for section in sections]],
            lambda: balance_of(cohort, made, own.balance, sections),
        )
        run.balance, run.balance_facts = found.key, found.facts
        run.notes += [("balance", note) for note in found.facts.get("notes", ())]

    def _estimate(
        self,
        run: Run,
        cohort: Cohort,
        followed: Followed,
        made: Adjustment,
        own: Analysis,
        what: str,
    ) -> None:
        seed = self.study.specification.seed
        model = dataclasses.asdict(own.model)
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
            is_of_interest = run.outcome.kind == "outcome"
            key = [run.adjustment, followed.key, model, dataclasses.asdict(own.tidy), seed]
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
        limits = specification.diagnostics

        def verdicts(run: Run, ease: float | None) -> list[Diagnostic]:
            main = next((row for row in run.rows if row["role"] == "main"), {})
            return checks(
                limits,
                balance=run.balance_facts,
                equipoise=run.equipoise,
                mdrr=main.get("mdrr"),
                ease=ease,
                proportionality_p=main.get("proportionality_p"),
                by_significance=own.balance.alpha is not None,
            )

        def passes(run: Run) -> bool:
            named = ("balance", "equipoise", "generalisability")
            return all(v.verdict != "fail" for v in verdicts(run, None) if v.name in named)

        of_controls, summaries = calibrated(
            [Checked(r.outcome_name, r.true_hr, r.rows, passes(r)) for r in found],
            specification.calibration,
            own.model.level,
        )
        for run in found:
            main = next((row for row in run.rows if row["role"] == "main"), None)
            kind = None if main is None else (main["model"], main["reading"])
            ease = [row["ease"] for row in summaries if (row["model"], row["reading"]) == kind]
            run.diagnostics = verdicts(run, ease[0] if ease else None)
        return AnalysisRuns(found, of_controls, summaries)
