"""The hazard of being censored, by the curve of an arm or by a Cox model."""

from typing import NamedTuple

import numpy as np

from riskset._types import Index, Rows
from riskset.cohort.arms.arm_models import fitted_model, linear_predictors
from riskset.cohort.outcomes import Outcomes
from riskset.data.design import Design
from riskset.data.outcome import Surv
from riskset.estimators.cox import Cox
from riskset.model.incidence import hazard_increments

__all__ = ["CensoringHazard", "cox_hazard", "product_limit_hazard"]


class CensoringHazard(NamedTuple):
    r"""Increments of the cumulative hazard of censoring at some times (m,), and factors of rows.

    The probability of not being censored by u is :math:`\exp(-f \sum_{t \le u} h_t)`, which for the
    curve of an arm is the product-limit estimate.
    """

    time: Rows
    step: Rows
    factor: Rows


def product_limit_hazard(
    outcomes: Outcomes, rows: Index, weight: Rows, n_new: int
) -> CensoringHazard:
    """The reverse Kaplan-Meier curve of some rows with weights (m,), for `n_new` people.

    Those with an event at a time are not at risk of being censored then. Where everybody who is
    left is censored, the curve stays.
    """
    time, place = np.unique(outcomes.time[rows], return_inverse=True)
    is_censored = outcomes.status[rows] == 0
    left = np.bincount(place, weight, minlength=time.size)
    censored = np.bincount(place, weight * is_censored, minlength=time.size)
    later = np.append(np.cumsum(left[::-1])[::-1][1:], 0.0)
    at_risk = later + censored
    with np.errstate(divide="ignore", invalid="ignore"):
        step = -np.log1p(-censored / at_risk)
    used = (censored > 0) & (later > 0)
    return CensoringHazard(time[used], step[used], np.ones(n_new))


def cox_hazard(
    model: Cox,
    design: Design,
    outcomes: Outcomes,
    rows: Index,
    weight: Rows,
    new: Design,
    words: str,
    unit: Index,
    seed: int,
    last: float,
) -> CensoringHazard:
    """A Cox model of being censored in some rows with weights (m,), for the rows of `new`.

    Without anybody who is censored before the `last` time, there is no model to fit.
    """
    time, place = np.unique(outcomes.time[rows], return_inverse=True)
    is_censored = outcomes.status[rows] == 0
    if not is_censored[outcomes.time[rows] < last].any():
        return CensoringHazard(np.zeros(0), np.zeros(0), np.ones(new.n_rows))
    # Of one time, events go first: who has one is not at risk of being censored then.
    order = 2 * place + 1 + is_censored
    fitted_model(
        model, design, Surv(order.astype(np.float64), is_censored), weight, words, unit, seed
    )
    at, log_step = hazard_increments([model._fitted.baseline], 0, np.inf)
    eta = linear_predictors([model], new)[0]
    middle = float(np.median(eta)) if eta.size else 0.0
    factor = np.exp(np.clip(eta - middle, -300.0, 300.0))
    own = time[(at.astype(np.int64) - 1) // 2]
    return CensoringHazard(own, np.exp(log_step[0] + middle), factor)
