"""A fitted propensity score: the scores, the model, and its diagnostics."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from riskset._messages import Note
from riskset._types import AnyArray, Features, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, People
from riskset.cohort.covariates.covariate_design import coefficient_frame
from riskset.cohort.population import Population
from riskset.cohort.propensity.overlap import preference_score
from riskset.cohort.propensity.propensity_checks import TreatmentCovariates
from riskset.data.frame import data_frame
from riskset.infer.crossval.result import CrossValidation
from riskset.model.penalty import Penalty

__all__ = ["PropensityScore", "ScoreStatus"]

ScoreStatus = Literal[
    "ok", "one_arm_empty", "no_covariates", "ps_constant", "separated", "not_converged"
]


@dataclass(frozen=True, eq=False, repr=False)
class PropensityScore:
    """Result of `propensity_score`.

    Attributes
    ----------
    people : Population or Adjustment
        The given people with their scores, if available, for `trim`, `match`, `stratify`, `weight`
        and `balance`.
    status : str
        "ok", the reason why there are no scores ("one_arm_empty", "no_covariates"), or the reason
        why they should not be used ("ps_constant", "separated", "not_converged").
    logit : (n,) float64
        Log odds of the scores, at most 34.5 in size; NaN without scores.
    intercept : float
    coef : (p,) float64
        Coefficients of the covariates `names` in the user's units. They may be infinite.
    names, keys : tuple
        Covariates of the model, without the excluded ones.
    penalty : Penalty or None
        Penalty, chosen or given.
    cross_validation : CrossValidation or None
    log_likelihood, kkt : float
        Log likelihood of the fit, and the largest relative violation of the optimality conditions
        over all covariates.
    high_correlation : TreatmentCovariates
        Covariates that nearly determine the treatment.
    one_arm_only : TreatmentCovariates
        Covariates of at least 25 people, all in one arm. They stay in the model.
    excluded : tuple of str
        Covariates excluded because of `high_correlation`.
    notes : tuple of Note

    Examples
    --------
    >>> import riskset as rs
    >>> treatment = [1, 1, 0, 0, 0, 0] + [1, 1, 1, 0, 0, 0]
    >>> found = rs.cohort.propensity_score(treatment, [[0]] * 6 + [[1]] * 6, penalty=None)
    >>> found
    PropensityScore('ok', 1 of 1 covariates, penalty None)
    >>> found.preference.round(3).tolist()[5:7]
    [0.412, 0.583]
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
        """All rows with the scores, including trimmed ones."""
        return self.people.population if isinstance(self.people, Adjustment) else self.people

    @property
    def score(self) -> Rows:
        """Probability of the target given the covariates (n,)."""
        return self.population.score

    @property
    def preference(self) -> Rows:
        """Preference scores (n,); see `preference_score`."""
        return preference_score(self.population)

    def columns(self) -> dict[str, AnyArray]:
        """Return the scores as columns of a table."""
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
        """Return a data frame with one row per person; "pandas", "polars" or "pyarrow"."""
        return data_frame(self.columns(), library)

    def coefficients(self, library: str | None = None) -> Any:
        """Return a data frame of the non-zero coefficients, largest first."""
        return coefficient_frame(self.keys, self.names, self.coef, library)

    def __repr__(self) -> str:
        chosen = f"{int(np.count_nonzero(self.coef)):,} of {len(self.names):,} covariates"
        noted = "".join(f"\n  {note.code}: {note.message}" for note in self.notes)
        return f"PropensityScore({self.status!r}, {chosen}, penalty {self.penalty!r}){noted}"
