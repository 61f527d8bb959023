"""What the doubly robust estimates of each arm are made of: models, weights, completed outcomes."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from riskset._errors import CohortError
from riskset._runtime import Runtime
from riskset._types import Index, Rows
from riskset.cohort.adjustments.weighting import weight as weighted
from riskset.cohort.arms.arm_models import (
    ModelsOfOutcome,
    RiskModel,
    fitted_model,
    linear_predictors,
    listed_infinite,
    with_treatment,
)
from riskset.cohort.arms.augmentation_settings import DoublyRobustOptions
from riskset.cohort.arms.censoring_curves import CensoringHazard, cox_hazard, product_limit_hazard
from riskset.cohort.arms.curves import ARMS
from riskset.cohort.arms.time_cells import are_many, cell_edges, per_cell
from riskset.cohort.effects.outcome_data import TREATMENT, sparing
from riskset.cohort.outcomes import Outcomes
from riskset.cohort.population import Population
from riskset.cohort.propensity.propensity_model import propensity_score
from riskset.cohort.settings import PropensityModel
from riskset.data.design import Design
from riskset.data.outcome import Surv
from riskset.estimators.cox import Cox
from riskset.kernels.augmentation_cpu import FollowedRows, TimeCells, augmented
from riskset.model.incidence import hazard_increments
from riskset.model.penalty import Penalty

__all__ = ["Augmented", "AugmentedArms"]


class Augmented(NamedTuple):
    """Values of both arms (2, 3, k), and what each row adds to them (n, 2, 3, k)."""

    value: NDArray[np.float64]
    moved: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AugmentedArms:
    """The n people kept, and what is known before any model is fitted.

    Attributes
    ----------
    people : Population
        Of the n rows.
    design, score_design, censoring_design : Design
        Covariates of the outcome models, of the score, and of the model of censoring.
    outcomes : Outcomes
    unit : (n,) float64
        How much each row counts in the population of the estimand, or None if that depends on the
        score that is estimated here.
    weight : (n,) float64 or None
        Weights of the residuals in their arm; None: of the score that is estimated here.
    is_scaled : bool
        Whether weights are divided by their sum in the arm instead of by that of `unit`.
    cluster : (n,) int64
        Codes of rows that belong together: they are resampled together, and stay in one fold.
    """

    people: Population
    design: Design
    score_design: Design
    censoring_design: Design
    outcomes: Outcomes
    unit: Rows
    weight: Rows | None
    is_scaled: bool
    cluster: Index
    estimand: str
    at: Rows
    settings: DoublyRobustOptions

    def estimated(self, counts: Index | None = None) -> Augmented:
        """The estimates with rows counted once, or so often."""
        n, k = self.unit.size, self.at.size
        often = np.ones(n) if counts is None else counts.astype(np.float64)
        folds = list(self._folds(often > 0))
        weight = self.weight if self.weight is not None else self._score_weights(folds, often)
        unit, weight = self.unit * often, weight * often
        value, moved = np.empty((2, 3, k)), np.zeros((n, 2, 3, k))
        for arm in (0, 1):
            own = self.people.is_target == (arm == 0)
            predicted, completed = self._completed(arm, folds, often)
            total = float(unit.sum())
            mean = np.tensordot(unit, predicted, 1) / total
            rows = np.flatnonzero(own & (weight > 0))
            residual = completed[rows] - predicted[rows]
            scale = float(weight[rows].sum()) if self.is_scaled else total
            extra = np.tensordot(weight[rows], residual, 1) / scale
            value[arm] = mean + extra
            # Divided by their own sum, residuals count relative to their mean.
            center = (mean, extra) if self.is_scaled else (mean + extra, 0.0)
            moved[:, arm] = (unit / total)[:, None, None] * (predicted - center[0])
            moved[rows, arm] += (weight[rows] / scale)[:, None, None] * (residual - center[1])
        return Augmented(value, moved)

    def _folds(self, drawn: NDArray[np.bool_]) -> Iterator[tuple[Index, Index]]:
        """Rows that models are fitted to, and rows that they predict."""
        everybody = np.flatnonzero(drawn)
        if self.settings.folds is None:
            yield everybody, everybody
            return
        n_units = int(self.cluster.max(initial=-1)) + 1
        n_folds = self.settings.folds
        if n_units < n_folds:
            raise CohortError(
                "BadSetting",
                f"there are {n_folds} folds, but only {n_units:,} people or sets.",
                hint="choose fewer `folds`.",
            )
        rank = np.random.default_rng(self.settings.seed).permutation(n_units)
        fold = (rank % n_folds)[self.cluster]
        for code in range(n_folds):
            yield np.flatnonzero(drawn & (fold != code)), np.flatnonzero(drawn & (fold == code))

    def _score_weights(self, folds: list[tuple[Index, Index]], often: Rows) -> Rows:
        """Weights by scores that are estimated in the rows of folds."""
        score = np.full(often.size, np.nan)
        for fitted, new in folds:
            score[new] = self._scores(fitted, new, often)
        weight, known = np.zeros(often.size), np.flatnonzero(np.isfinite(score))
        people = self.people.take(known).with_score(score[known])
        weight[known] = weighted(people, self.estimand).weight
        return weight

    def _scores(self, fitted: Index, new: Index, often: Rows) -> Rows:
        people, own = self.people, self.settings
        treatment = people.treatment[fitted]
        if (treatment == treatment[0]).all():
            raise CohortError(
                "EmptyArm",
                "an arm has no people to estimate the propensity score in.",
                hint="choose fewer `folds`.",
            )
        population = Population(
            treatment,
            person_id=self.cluster[fitted],
            sampling_weight=people.sampling_weight[fitted] * often[fitted],
        )
        how = PropensityModel(
            penalty=own.score_kind,
            on_high_correlation=own.on_high_correlation,
            max_correlation=own.max_correlation,
            repeats=1,
            seed=own.seed,
            tol=own.tol,
        )
        part = self.score_design.take_rows(fitted)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the error says it
            found = propensity_score(population, part, how)
        if found.status in ("separated", "not_converged"):
            raise CohortError(
                "InfiniteEstimate" if found.status == "separated" else "NotConverged",
                f"the propensity score has no finite estimate (status {found.status!r})"
                f"{listed_infinite(found.names, found.coef)}.",
                hint="leave covariates out that determine the treatment, or use `score_penalty`.",
            )
        if found.status == "no_covariates":
            return np.full(new.size, np.average(treatment, weights=population.sampling_weight))
        whole = self.score_design
        known = {name: j for j, name in enumerate(whole.names)}
        used = np.flatnonzero(found.coef)
        columns = np.array([known[found.names[j]] for j in used], dtype=np.int64)
        return np.asarray(expit(found.intercept + whole.dot(found.coef[used], columns)[new]))

    def _completed(
        self, arm: int, folds: list[tuple[Index, Index]], often: Rows
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predictions of everybody if in this arm, and completed outcomes of those who are."""
        shape = (often.size, 3, self.at.size)
        predicted, completed = np.zeros(shape), np.full(shape, np.nan)
        for fitted, new in folds:
            models = self._outcome_models(arm, fitted, often)
            censoring = self._censoring(arm, fitted, new, often)
            predicted[new], completed[new] = self._augmented(arm, models, censoring, new)
        return predicted, completed

    def _rows_of(self, arm: int, fitted: Index) -> Index:
        """Those rows to which the models of an arm are fitted."""
        if not self.settings.by_arm:
            return fitted
        return np.asarray(fitted[self.people.is_target[fitted] == (arm == 0)])

    def _outcome_models(self, arm: int, fitted: Index, often: Rows) -> list[RiskModel]:
        """The models of the outcome; with a subdistribution, that of any event is the second."""
        rows, own = self._rows_of(arm, fitted), self.settings
        design, outcomes = self._part(self.design, rows), self.outcomes.take(rows)
        weight, unit = self.people.sampling_weight[rows] * often[rows], self.cluster[rows]
        name = ARMS[arm] if own.by_arm else None
        how = ModelsOfOutcome(own.model, own.ties, self._penalty, own.tol, name, own.seed)
        models = how.fitted(design, outcomes, weight, unit)
        if own.model == "finegray":
            any_event = Surv(outcomes.time, np.minimum(outcomes.status, 1))
            model = Cox(self._penalty, ties=own.ties, tol=own.tol)
            words = f"model of any event in {'both arms' if name is None else f'the {name}'}"
            models.append(fitted_model(model, design, any_event, weight, words, unit, own.seed))
        return models

    def _censoring(self, arm: int, fitted: Index, new: Index, often: Rows) -> CensoringHazard:
        own = self.settings
        base = self.people.sampling_weight * often
        if own.censoring == "kaplan-meier":
            rows = fitted[self.people.is_target[fitted] == (arm == 0)]
            return product_limit_hazard(self.outcomes, rows, base[rows], new.size)
        rows = self._rows_of(arm, fitted)
        who = f"the {ARMS[arm]}" if own.by_arm else "both arms"
        return cox_hazard(
            Cox(self._penalty, tol=own.tol),
            self._part(self.censoring_design, rows),
            self.outcomes,
            rows,
            base[rows],
            self._part(self.censoring_design, new, arm),
            f"model of being censored in {who}",
            self.cluster[rows],
            own.seed,
            float(self.at.max()),
        )

    @property
    def _penalty(self) -> Penalty | None:
        kind = self.settings.kind
        return kind if self.settings.by_arm else sparing(kind, [TREATMENT])

    def _part(self, whole: Design, rows: Index, arm: int | None = None) -> Design:
        """Covariates of a model; with an arm, those of people who are all in it."""
        design = whole.take_rows(rows) if rows.size < whole.n_rows else whole
        if self.settings.by_arm:
            return design
        treatment = self.people.treatment[rows].astype(np.float64)
        return with_treatment(design, treatment if arm is None else np.full(rows.size, 1.0 - arm))

    def _augmented(
        self, arm: int, models: list[RiskModel], censoring: CensoringHazard, new: Index
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        eta = linear_predictors(models, self._part(self.design, new, arm))
        middle = np.median(eta, axis=1, keepdims=True) if new.size else np.zeros((len(models), 1))
        baselines = [model._fitted.baseline for model in models]
        time, log_step = hazard_increments(baselines, 0, float(self.at.max()))
        step = np.exp(np.minimum(log_step + middle, 300.0))
        outcomes = self.outcomes.take(new)
        end = outcomes.time
        own = self.people.is_target[new] == (arm == 0)
        edges, at_end = _edges(self.at, time, censoring.time, end[own])
        cells = TimeCells(
            time=edges,
            step=np.array([per_cell(edges, time, one) for one in step]),
            censoring=per_cell(edges, censoring.time, censoring.step),
            until=np.searchsorted(edges, self.at),
            at_end=at_end,
        )
        cell = np.searchsorted(edges, end)
        start = np.append(0.0, edges)[cell]
        is_censored = outcomes.status == 0
        rows = FollowedRows(
            factor=np.exp(np.clip(eta - middle, -300.0, 300.0)),
            censoring_factor=censoring.factor,
            cell=np.where(own, cell, -1),
            end=end,
            status=outcomes.status,
            rest=np.array([_risen(time, one, start, end, np.ones_like(own)) for one in step]),
            rest_censoring=_risen(censoring.time, censoring.step, start, end, is_censored),
        )
        is_subdistribution = self.settings.model == "finegray"
        return augmented(cells, rows, is_subdistribution, Runtime.select())


def _edges(at: Rows, events: Rows, censored: Rows, ends: Rows) -> tuple[Rows, float]:
    """Ends of the cells of time, and where hazards rise in them.

    Nobody's time is within the cell of a horizon, other than at its end.
    """
    horizons = np.unique(at)
    jumps = np.unique(np.concatenate([events, censored]))
    jumps = jumps[jumps <= horizons[-1]]
    known = np.unique(ends)
    before = np.searchsorted(known, horizons)
    last = known[before[before > 0] - 1]
    return cell_edges(jumps, np.append(horizons, last)), 0.5 if are_many(jumps) else 1.0


def _risen(time: Rows, step: Rows, start: Rows, end: Rows, is_included: NDArray[np.bool_]) -> Rows:
    """What a cumulative hazard rises by after a start, before an end, or up to one included."""
    total = np.append(0.0, np.cumsum(step))
    until = np.where(
        is_included, np.searchsorted(time, end, side="right"), np.searchsorted(time, end)
    )
    return np.asarray(
        np.maximum(total[until] - total[np.searchsorted(time, start, side="right")], 0.0)
    )
