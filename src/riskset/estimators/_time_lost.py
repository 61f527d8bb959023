"""Mean times lost to causes, and without any event, from the hazards of all causes."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from riskset._errors import InputError
from riskset._types import Features, Matrix, Rows
from riskset.data.checks import Places, as_numbers
from riskset.estimators._prediction import checked_times
from riskset.estimators.cox import Cox
from riskset.infer.functionals import AveragedFunctional, functional_predictions
from riskset.infer.hazard_sensitivities import JointHazards
from riskset.infer.predicted_hazard import PredictedRows

__all__ = ["averaged_areas", "checked_ends", "predicted_areas", "row_shares"]


def checked_ends(times: object) -> Rows:
    """The ends (m,) of restricted times."""
    at = checked_times(times)
    if (at < 0).any():
        raise InputError(
            f"`times` must not be negative, but one is {at.min():g}.",
            hint="mean times are counted from 0.",
        )
    return at


def row_shares(sample_weight: object, average: object, n_rows: int) -> Rows | None:
    """Shares (k,) of the rows in a mean; None without a mean."""
    if not isinstance(average, bool):
        raise InputError(
            f"`average` must be True or False, but it is {average!r}.",
            hint="give weights of the rows as `sample_weight`.",
        )
    if not average:
        if sample_weight is not None:
            raise InputError(
                "`sample_weight` was given, but there is a prediction for each row.",
                hint="add `average=True`, or leave it out.",
            )
        return None
    if sample_weight is None:
        return np.full(n_rows, 1.0 / max(1, n_rows))
    weight = as_numbers(sample_weight, "sample_weight", n_rows, Places())
    if not ((weight >= 0).all() and weight.any()):
        raise InputError(
            "`sample_weight` must not be negative, and some must be positive.",
            hint="they are the shares of the rows in the mean.",
        )
    return np.asarray(weight / weight.sum())


def _joint(
    models: Sequence[Cox], stratum: int, eta: Matrix, times: Rows
) -> tuple[JointHazards, int]:
    """The hazards from 0 to the last of the ends, and how many numbers a row needs."""
    baselines = [model._fitted.baseline for model in models]
    hazards = JointHazards.of(baselines, stratum, eta, -np.inf, times)
    return hazards, len(models) * hazards.grid.size * (times.size + 4)


def predicted_areas(
    models: Sequence[Cox],
    new: PredictedRows,
    eta: Matrix,
    times: Rows,
    cause: int | None,
    *,
    is_robust: bool,
) -> tuple[Matrix, Matrix]:
    """Mean times (k, m) of rows, lost to a cause or without any event (None), and their errors.

    `eta` (n_causes, k) are the linear predictors of the rows.
    """
    fits = [model._fitted.hazard for model in models]
    roots = [model._root(is_robust) for model in models]
    mean, error = np.full((2, new.eta.size, times.size), np.nan)
    for stratum in np.unique(new.stratum).tolist():
        hazards, size = _joint(models, stratum, eta, times)
        predict = partial(hazards.areas, cause=cause, until=times)
        for rows, found, errors in functional_predictions(
            fits, roots, stratum, predict, new.blocks(stratum, size), new.covariates,
            is_robust=is_robust,
        ):  # fmt: skip
            mean[rows], error[rows] = found, errors
    unknown = times > fits[0].steps.end[new.stratum][:, None]
    mean[unknown] = error[unknown] = np.nan
    return mean, error


def averaged_areas(
    models: Sequence[Cox],
    new: PredictedRows,
    eta: Matrix,
    times: Rows,
    cause: int | None,
    share: Features,
    *,
    is_robust: bool,
) -> tuple[Matrix, Matrix]:
    """The mean over rows with some shares (1, m), as `predicted_areas` has each."""
    fits = [model._fitted.hazard for model in models]
    made = AveragedFunctional(fits, times.size)
    strata = np.unique(new.stratum).tolist()
    for stratum in strata:
        hazards, size = _joint(models, stratum, eta, times)
        for rows in new.blocks(stratum, size):
            found = hazards.areas(rows, cause, times)
            made.add(stratum, share[rows], new.covariates(rows), found)
    error = made.standard_error([model._root(is_robust) for model in models], is_robust=is_robust)
    unknown = times > fits[0].steps.end[strata].min(initial=np.inf)
    return (
        np.where(unknown, np.nan, made.estimate)[None],
        np.where(unknown, np.nan, error)[None],
    )
