"""Outcome models of one arm, or of both, from which risks are predicted."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError
from riskset._messages import Note, Value
from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Matrix, Rows
from riskset.cohort.adjustments.adjustment import Adjustment
from riskset.cohort.arms.curves import ARMS
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.effects.outcome_data import TREATMENT
from riskset.cohort.outcomes import Outcomes
from riskset.data.design import Design
from riskset.data.outcome import Surv
from riskset.estimators._parameters import shared_parameters
from riskset.estimators.cox import Cox
from riskset.estimators.crossval import CoxCV, FineGrayCV
from riskset.estimators.finegray import FineGray
from riskset.model.penalty import Penalty
from riskset.model.risk_set_components import varying

__all__ = [
    "RiskModel",
    "ModelKind",
    "ModelsOfOutcome",
    "checked_covariates",
    "fitted_model",
    "last_times",
    "linear_predictors",
    "listed_infinite",
    "notes_of_constants",
    "with_treatment",
]

RiskModel = Cox | FineGray
ModelKind = Literal["cox", "cause-specific", "finegray"]


@dataclass(frozen=True)
class ModelsOfOutcome:
    """How the models of the outcome, and of competing events, are fitted.

    A penalty without a strength has it chosen by cross-validation. Without an arm, they are models
    of both.
    """

    model: ModelKind
    ties: Literal["breslow", "efron"]
    penalty: Penalty | None
    tol: float
    arm: str | None
    seed: int = 1

    def fitted(
        self, design: Design, outcomes: Outcomes, weight: Rows, unit: Index | None = None
    ) -> list[RiskModel]:
        """The model of each cause, that of the outcome first, in rows with weights.

        Rows of one `unit` stay in one fold of a cross-validation.
        """
        status = outcomes.status
        if not (status == 1).any():
            who = "the people have" if self.arm is None else f"the {self.arm} has"
            raise CohortError(
                "NoEvents",
                f"{who} no outcome, so there is no model of its risk.",
                hint="use `riskset.cohort.incidence`.",
            )
        if self.model == "finegray":
            models: list[RiskModel] = [FineGray(self.penalty, cause=1, tol=self.tol)]
        else:
            causes = (1, 2) if self.model == "cause-specific" and (status == 2).any() else (1,)
            models = [Cox(self.penalty, ties=self.ties, cause=c, tol=self.tol) for c in causes]
        y, words = Surv(outcomes.time, status), f"outcome model of {_of(self.arm)}"
        return [fitted_model(m, design, y, weight, words, unit, self.seed) for m in models]


def checked_covariates(X: object, n_rows: int, outcomes: Outcomes, model: ModelKind) -> Design:
    """Covariates of all rows, where a model of this kind has a risk of the outcome."""
    design = as_design(X, n_rows)
    if TREATMENT in design.names:
        raise CohortError(
            "BadCovariates",
            f"a covariate is called {TREATMENT!r}, which is the name of the treatment in the "
            "model.",
            hint="rename it, or leave it out if it is the treatment itself.",
        )
    if model == "cox" and (outcomes.status == 2).any():
        raise CohortError(
            "CompetingEvents",
            "there are competing events, so a Cox model of the outcome alone gives no risk.",
            hint="use `model='cause-specific'` or `model='finegray'`.",
        )
    return design


def last_times(outcomes: Outcomes, adjustment: Adjustment) -> Rows:
    """When the follow-up of the target and of the comparator ends; models say nothing later (2,).

    A curve is known for ever if the last people have an event, but a model of the hazard is not.
    """
    return np.array([outcomes.time[arm].max() for arm in adjustment.arms])


def with_treatment(design: Design, treatment: Rows) -> Design:
    """Covariates after the treatment."""
    return Design.stack([Design.from_columns({TREATMENT: treatment}), design])


def notes_of_constants(design: Design, arms: Sequence[NDArray[np.bool_]]) -> tuple[Note, ...]:
    """A note for each arm whose models count 0 for covariates that vary in both arms together.

    `arms` are the rows of the target and of the comparator (n,), to each of which a model is
    fitted.
    """
    runtime, everybody = Runtime.select(), np.flatnonzero(arms[0] | arms[1])
    vary = varying(design, everybody, np.zeros(everybody.size, dtype=np.int64), runtime)
    notes = []
    for name, of_arm in zip(ARMS, arms, strict=True):
        own = np.flatnonzero(of_arm)
        within = varying(design, own, np.zeros(own.size, dtype=np.int64), runtime)
        lost = [design.names[j] for j in np.flatnonzero(vary & ~within)]
        if not lost:
            continue
        text = (
            "{names} {n:?is|are} constant in the {arm}, so the outcome model of this arm counts 0 "
            "for {n:?it|them}: the risk if everybody had been in the {arm} rests on the other "
            "covariates."
        )
        more = f" and {len(lost) - 5:,} more" if len(lost) > 5 else ""
        values = {
            "names": Value("name", f"{', '.join(map(repr, lost[:5]))}{more}"),
            "n": Value("things", len(lost)),
            "arm": Value("name", name),
        }
        notes.append(Note("constant_in_arm", tuple(lost), text, values))
    return tuple(notes)


def linear_predictors(models: Sequence[RiskModel], new: Design) -> Matrix:
    """Of the rows of a design, by each model, relative to its means (J, n)."""
    designs = [model._read_new(new, None, None)[0] for model in models]
    zero = np.zeros(new.n_rows)
    return np.array([m._centred(d, zero) for m, d in zip(models, designs, strict=True)])


def _of(arm: str | None) -> str:
    return "both arms" if arm is None else f"the {arm}"


def fitted_model(
    model: RiskModel,
    design: Design,
    y: AnyArray,
    weight: Rows,
    words: str,
    unit: Index | None = None,
    seed: int = 1,
) -> RiskModel:
    """RiskModel a model that must have a finite estimate; errors call it by `words`.

    A penalty without a strength has it chosen by cross-validation, in which rows of one `unit` stay
    together.
    """
    given = None if (weight == 1).all() else weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the errors of `_check_estimate` say it
        if model.penalty is not None and not model.penalty.has_strength:
            several = unit is not None and np.unique(unit).size < unit.size
            kind: Any = FineGrayCV if isinstance(model, FineGray) else CoxCV
            chooser = kind(
                **shared_parameters(model, kind),
                repeats=1,
                groups=unit if several else None,
                seed=seed,
            )
            chooser.fit(design, y, sample_weight=given)
            model.set_params(penalty=chooser.best_penalty_)
        model.fit(design, y, sample_weight=given)
    _check_estimate(model, words)
    return model


def listed_infinite(names: Sequence[str], coef: Rows) -> str:
    """The end of a message: the first covariates whose coefficient is infinite."""
    infinite = [name for name, b in zip(names, coef, strict=True) if np.isinf(b)]
    more = f" and {len(infinite) - 5:,} more" if len(infinite) > 5 else ""
    return f": {', '.join(map(repr, infinite[:5]))}{more}" if infinite else ""


def _check_estimate(model: RiskModel, words: str) -> None:
    if model.status_ in ("converged", "not_estimable"):
        return  # without a covariate that varies, the risk of everybody is that of the arm
    is_infinite = model.status_ == "infinite_estimate"
    listed = listed_infinite(model.covariates_, model.coef_)
    raise CohortError(
        "InfiniteEstimate" if is_infinite else "NotConverged",
        f"the {words} has no finite estimate (status {model.status_!r}){listed}.",
        hint="compare the arms by `riskset.cohort.incidence`: only one of them has the event."
        if listed == f": {TREATMENT!r}"
        else "leave out covariates that few people with the event have, or use a `penalty`.",
    )
