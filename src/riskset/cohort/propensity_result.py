"""A fitted propensity score: the scores, the model behind them, and what was found on the way."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from riskset._messages import Note
from riskset._types import AnyArray, Features, Rows
from riskset.cohort.adjustment import Adjustment, People
from riskset.cohort.covariates import coefficient_frame
from riskset.cohort.population import Population
from riskset.cohort.propensity import preference_score
from riskset.cohort.propensity_checks import TreatmentCovariates
from riskset.data.output import data_frame
from riskset.infer.crossval.result import CrossValidation
from riskset.model.penalty import Penalty

__all__ = ["PropensityScore", "ScoreStatus"]

ScoreStatus = Literal[
    "ok", "one_arm_empty", "no_covariates", "ps_constant", "separated", "not_converged"
]


@dataclass(frozen=True, eq=False, repr=False)
class PropensityScore:
    """What `propensity_score` found.

    Attributes
    ----------
    people : Population or Adjustment
        Those given, with the scores, if there are any: for `trim`, `match`, `stratify`, `weight`
        and `balance`.
    status : str
        "ok", or why there are no scores ("one_arm_empty", "no_covariates"), or why they should not
        be used as they are ("ps_constant", "separated", "not_converged").
    logit : (n,) float64
        Log odds of the scores, at most 34.5 in size; NaN without scores.
    intercept : float
    coef : (p,) float64
        Of the covariates `names`, in the user's units; infinite where the estimate is.
    names, keys : tuple
        Covariates of the model, those excluded not among them.
    penalty : Penalty or None
        As chosen, or as given.
    cross_validation : CrossValidation or None
    log_likelihood, kkt : float
        Of the fit, and its certificate, the largest relative violation of the optimality
        conditions over all covariates.
    high_correlation : TreatmentCovariates
        Covariates that nearly determine the treatment.
    one_arm_only : TreatmentCovariates
        Covariates that at least 25 people have, all of one arm; they stay in the model.
    excluded : tuple of str
        Covariates left out because of `high_correlation`.
    notes : tuple of Note
    """

    people: People
    status: ScoreStatus
    logit: Rows
    intercept: float
    coef: Features
    names: tuple[str, ...]
    keys: tuple[int | str, ...]
    penalty: Penalty | None
    cross_validation: CrossValidation | None
    log_likelihood: float
    kkt: float
    high_correlation: TreatmentCovariates
    one_arm_only: TreatmentCovariates
    excluded: tuple[str, ...]
    notes: tuple[Note, ...]

    @property
    def population(self) -> Population:
        """All rows, those that were trimmed among them, with the scores."""
        return self.people.population if isinstance(self.people, Adjustment) else self.people

    @property
    def score(self) -> Rows:
        """Probability of the target given the covariates (n,)."""
        return self.population.score

    @property
    def preference(self) -> Rows:
        """See `preference_score` (n,)."""
        return preference_score(self.population)

    def columns(self) -> dict[str, AnyArray]:
        """The scores as columns of a table."""
        people = self.population
        return {
            "row_id": people.row_id,
            "person_id": people.person_id,
            "treatment": people.treatment,
            "ps": people.score,
            "logit": self.logit,
            "preference": self.preference,
        }

    def to_frame(self, library: str | None = None) -> Any:
        """A data frame with a row for each person; "pandas", "polars" or "pyarrow"."""
        return data_frame(self.columns(), library)

    def coefficients(self, library: str | None = None) -> Any:
        """A data frame of the coefficients other than 0, the largest in size first."""
        return coefficient_frame(self.keys, self.names, self.coef, library)

    def __repr__(self) -> str:
        chosen = f"{int(np.count_nonzero(self.coef)):,} of {len(self.names):,} covariates"
        noted = "".join(f"\n  {note.code}: {note.message}" for note in self.notes)
        return f"PropensityScore({self.status!r}, {chosen}, penalty {self.penalty!r}){noted}"
