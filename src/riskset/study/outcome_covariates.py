"""What outcome models say of the covariates beside the treatment, as rows of the results."""

from typing import Any

import numpy as np

from riskset.cohort.adjustment import Adjustment
from riskset.cohort.covariate_filter import TidyInfo
from riskset.cohort.estimate import Estimate
from riskset.study.cohorts import Cohort
from riskset.study.scores import coefficient_rows, curve_rows, strengths
from riskset.study.sections import OutcomeModelSection

__all__ = ["covariate_columns", "covariate_tables"]

Row = dict[str, Any]
FITTED = ("ok", "events_in_one_arm")
"""Statuses of models whose covariates have coefficients, if that of the treatment is infinite."""


def covariate_columns(found: Estimate, own: OutcomeModelSection, seed: int) -> Row:
    """What the table of estimates says of the covariates of a model."""
    row: Row = {"n_covariates": len(found.names)}
    if found.names and found.status in FITTED:
        row["n_used"] = int(np.count_nonzero(found.coef))
    if found.penalty is not None:
        row |= strengths(found.penalty)
        row["chosen_by"] = "given" if found.cross_validation is None else "cross-validation"
    if found.cross_validation is not None:
        row |= {"folds": own.folds, "repeats": own.repeats, "seed": seed}
    return row


def covariate_tables(
    cohort: Cohort, made: Adjustment, found: Estimate, number: int, tidied: TidyInfo | None
) -> tuple[list[Row], list[Row]]:
    """Coefficients other than 0, and the penalties that were tried.

    Parameters
    ----------
    number : int
        Of the estimate within its run.
    tidied : TidyInfo or None
        What was done to the covariates before the model had them.
    """
    curve = found.cross_validation
    tried = [] if curve is None else curve_rows(curve)
    coefficients: list[Row] = []
    if found.status in FITTED:
        coef = found.coef
        if tidied is not None and coef.size:
            coef = tidied.original_coef(coef, found.keys)
        rows = np.flatnonzero(made.kept)
        coefficients = coefficient_rows(cohort.design, made.population, found.keys, coef, rows)
    return [row | {"number": number} for row in coefficients], [
        row | {"number": number} for row in tried
    ]
