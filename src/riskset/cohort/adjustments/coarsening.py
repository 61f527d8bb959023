"""Coarsened exact matching: strata of people who share coarsened covariates."""

import numpy as np

from riskset._errors import CohortError
from riskset._keywords import takes
from riskset._settings import bad_setting
from riskset._types import Index, Rows
from riskset.cohort.adjustments.adjustment import (
    Adjustment,
    People,
    effective_size,
    narrowed,
    start,
)
from riskset.cohort.adjustments.adjustment_settings import Coarsen
from riskset.cohort.adjustments.stratification import arm_sums, arm_weights
from riskset.cohort.covariates.covariate_design import as_design, columns_of
from riskset.cohort.population import block_codes

__all__ = ["coarsen"]


@takes(Coarsen)
def coarsen(
    people: People, X: object = None, *, settings: Coarsen, within: object = ()
) -> Adjustment:
    r"""Match people exactly on coarsened covariates.

    The people who have the same intervals of all `covariates`, and the same labels of `within`, are
    a stratum. Strata that lack an arm are left out. `cuts` are the limits of the intervals of a
    covariate, and a limit is the start of an interval. A covariate without `cuts` has `bins`
    intervals of equal width between the smallest and the largest value of the people, by default
    :math:`\lceil \log_2 n + 1 \rceil` for n people (Sturges's rule). Zeros and ones are thus
    matched exactly. A covariate with as many limits as values is, too.

    With :math:`n_{s1}` targets and :math:`n_{s0}` comparators of a stratum, the weights are 1 and
    :math:`n_{s1} / n_{s0}` ("att"), :math:`n_{s0} / n_{s1}` and 1 ("atu"), or
    :math:`(n_{s1} + n_{s0}) / n_{s1}` and :math:`(n_{s1} + n_{s0}) / n_{s0}` ("ate").

    Parameters
    ----------
    people : Population or Adjustment
        Scores are not needed.
    X : Design, data frame, matrix or array (n, p), optional
        Covariates of the population, for `covariates`.
    settings : Coarsen
    within : (n,) labels, or a sequence of label arrays
        Labels that people of a stratum share. Missing values form their own label.

    Returns
    -------
    Adjustment
        Of the kind "stratification", with strata 1, 2, ... ``details``: ``strata`` that occur,
        ``matched_strata``, which have both arms, ``unmatched_target``, ``unmatched_comparator``,
        and ``effective_size`` of the comparators.

    Raises
    ------
    CohortError
        "BadSetting", "BadBlock" or "BadCovariates".

    Notes
    -----
    O(n log n) for each covariate: a million people take a second.

    References
    ----------
    Iacus, King and Porro (2012), Political Analysis 20, 1-24, doi:10.1093/pan/mpr013.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0, 0])
    >>> x = [[31, 0], [68, 1], [35, 0], [39, 0], [68, 0]]
    >>> found = rs.cohort.coarsen(people, x, covariates=["x0", "x1"], cuts={"x0": [40, 60]})
    >>> found.set_id, found.weight
    (array([ 1, -1,  1,  1, -1]), array([1. , 0. , 0.5, 0.5, 0. ]))
    """
    before = start(people)
    population = before.population
    rows = np.flatnonzero(before.kept)
    code = block_codes(within, population.n_rows)[0][rows]
    for own in _intervals(X, settings, population.n_rows, rows, _has_labels(within)):
        code = np.unique(code * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1]
        code = code.reshape(-1).astype(np.int64)
    arm = population.treatment[rows]
    n_strata = int(code.max(initial=-1)) + 1
    base = population.sampling_weight[rows]
    counts = arm_sums(arm, code, base, n_strata)
    weight = np.zeros(population.n_rows)
    weight[rows] = base * arm_weights(counts, settings.estimand)[arm, code]
    number = np.cumsum((counts > 0).all(axis=0))  # of strata with both arms
    set_id = np.full(population.n_rows, -1, dtype=np.int64)
    set_id[rows] = number[code]
    set_id[weight == 0] = -1
    alone = rows[weight[rows] == 0]
    return narrowed(
        before,
        "stratification",
        [("strata with both arms", weight > 0)],
        weight=weight,
        set_id=set_id,
        estimand=settings.estimand,
        status="ok" if weight.any() else "no_matches",
        settings=settings.values(Coarsen),
        details={
            **before.details,
            "strata": n_strata,
            "matched_strata": int(number[-1]) if n_strata else 0,
            "unmatched_target": int(population.treatment[alone].sum()),
            "unmatched_comparator": int((1 - population.treatment[alone]).sum()),
            "effective_size": effective_size(weight[~population.is_target]),
        },
    )


def _has_labels(within: object) -> bool:
    """Whether there are labels."""
    return not (isinstance(within, (list, tuple)) and not within)


def _intervals(
    X: object, settings: Coarsen, n_rows: int, rows: Index, has_labels: bool
) -> list[Index]:
    """The number of the interval of each row, by covariate."""
    wanted = settings.covariates
    if not wanted and not has_labels:
        raise bad_setting(
            "covariates",
            "`covariates` is empty, and there are no labels to match on.",
            hint="name covariates of `X`, or pass labels as `within`.",
        )
    if not wanted:
        return []
    if X is None:
        raise CohortError(
            "BadSetting",
            f"`covariates` names {wanted[0]!r}, but `X` was not given.",
            hint="pass the covariates of the population as `X`.",
        )
    design = as_design(X, n_rows)
    cuts = {str(name): limits for name, limits in (settings.cuts or {}).items()}
    found = []
    for name, column in zip(wanted, columns_of(design, wanted).tolist(), strict=True):
        x = design.to_dense(np.array([column]), rows)[:, 0]
        limits = cuts.get(str(name))
        edges = _equal_width(x, settings.bins) if limits is None else np.array(limits)
        found.append(np.searchsorted(edges, x, side="right"))
    return found


def _equal_width(x: Rows, bins: int | None) -> Rows:
    """The inner limits of intervals of equal width."""
    if not x.size:
        return np.zeros(0)
    number = int(np.ceil(np.log2(x.size) + 1)) if bins is None else bins
    return np.linspace(x.min(), x.max(), number + 1)[1:-1]
