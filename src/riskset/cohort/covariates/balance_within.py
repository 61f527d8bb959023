"""Balance of every covariate among some of the people, such as a subgroup."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Features
from riskset.cohort.adjustments.adjustment import Adjustment
from riskset.cohort.covariates.covariate_balance import known_parts, standardised_gap
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.covariates.covariate_moments import arm_moments
from riskset.data.column_statistics import select_columns
from riskset.data.design import Design

__all__ = ["BalanceWithin", "balance_within"]


@dataclass(frozen=True, eq=False)
class BalanceWithin:
    """Differences among some of the people: before and after, and the fewest people with a value.

    `fewest` (p,) is the smallest number above 0 of people of an arm, before or after, who have a
    covariate of zeros and ones, do not have it, or whose value is missing. For other covariates it
    is the smallest number of people whose value is known, or missing.
    """

    before: Features
    after: Features
    fewest: NDArray[np.int64]


def balance_within(
    X: object, adjustment: Adjustment, inside: NDArray[np.bool_], *, sd: str = "before"
) -> BalanceWithin:
    """Standardised differences among the people of a mask (n,), with weights as they are.

    They are divided by the standard deviation of these people. As in `balance`, people whose value
    is missing are left out.
    """
    design = as_design(X, adjustment.population.n_rows)
    found = _measured(design, adjustment, inside, sd)
    for columns, known in known_parts(design):
        part = select_columns(design, columns)
        own = _measured(part, adjustment, inside & known, sd)
        rest = _measured(part, adjustment, inside & ~known, sd)
        found.before[columns], found.after[columns] = own.before, own.after
        found.fewest[columns] = np.minimum(own.fewest, rest.fewest)
    return found


def _measured(
    design: Design, adjustment: Adjustment, inside: NDArray[np.bool_], sd: str
) -> BalanceWithin:
    runtime = Runtime.select("auto", None)
    is_target = adjustment.population.is_target
    arms = [is_target & inside, ~is_target & inside]
    masks = [
        np.where(arm, w, 0.0)
        for w in (np.ones(inside.size), adjustment.weight, adjustment.kept.astype(np.float64))
        for arm in arms
    ]
    t0, c0, t1, c1 = arm_moments(design, np.column_stack(masks[:4]), runtime)
    t2, c2 = arm_moments(design, np.column_stack(masks[4:]), runtime)
    units = (t0, c0) if sd == "before" else (t1, c1)
    fewest = np.full(design.n_features, np.iinfo(np.int64).max)
    for moments, mask in zip((t0, c0, t2, c2), (*masks[:2], *masks[4:]), strict=True):
        n = int(mask.sum())
        ones = np.rint(np.nan_to_num(moments.mean) * n).astype(np.int64)
        for counts in (ones, n - ones):
            counts = np.where(design.is_binary, counts, n)
            fewest = np.where(counts > 0, np.minimum(fewest, counts), fewest)
    return BalanceWithin(standardised_gap(t0, c0, t0, c0), standardised_gap(t1, c1, *units), fewest)
