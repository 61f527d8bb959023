"""p values adjusted for the number of outcomes, from those that are shown.

They are made last, after everything else is hidden: an adjusted p may equal a multiple of the p of
another estimate, and would reveal it.
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import false_discovery_control

from riskset._types import Rows
from riskset.disclosure.rows import RUN, grouped, keys_of
from riskset.results.rows import EstimateRow, RunRow

__all__ = ["ADJUSTED_P", "holm", "with_adjusted_p"]

ADJUSTED_P = tuple(f"{of}{how}_p" for of in ("", "calibrated_") for how in ("holm", "fdr"))
"""Columns of the estimates."""


def with_adjusted_p(rows: Sequence[EstimateRow], runs: Sequence[RunRow]) -> list[EstimateRow]:
    """Estimates with the p of main estimates adjusted within each analysis.

    A family has the main estimates of all comparisons and of all outcomes that are no controls. An
    estimate that is withheld or hidden is a test that is not rejected: its p counts as 1. One that
    does not exist is no test.
    """
    of_interest = {keys_of(run, RUN) for run in runs if run.outcome_kind == "outcome"}
    adjusted = [row.changed(dict.fromkeys(ADJUSTED_P)) for row in rows]
    is_test = [
        row.role == "main"
        and keys_of(row, RUN) in of_interest
        and (row.effect.p is not None or row.status == "ok")
        for row in rows
    ]
    tests = [k for k, is_one in enumerate(is_test) if is_one]
    for places in grouped([rows[k] for k in tests], ("analysis",)):
        family = [tests[j] for j in places]
        for of in ("", "calibrated_"):
            values = [rows[k][f"{of}p"] for k in family]
            if all(p is None for p in values):
                continue
            p = np.array([1.0 if p is None else p for p in values])
            found = {"holm": holm(p), "fdr": false_discovery_control(p, method="bh")}
            for j, k in enumerate(family):
                if values[j] is not None:
                    changes = {f"{of}{how}_p": float(own[j]) for how, own in found.items()}
                    adjusted[k] = adjusted[k].changed(changes)
    return adjusted


def holm(p: Rows) -> Rows:
    """Values of p (n,) adjusted by Holm's step-down method.

    The smallest is multiplied by n, the next by n - 1, and so on; none is below one before it, or
    above 1 (Holm 1979).

    >>> holm(np.array([0.01, 0.04, 0.03])).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    steps = p[order] * np.arange(p.size, 0, -1)
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
