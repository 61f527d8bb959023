"""Matching by propensity scores, closest pairs first."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError, InputError
from riskset._keywords import takes
from riskset._messages import Note
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustment import (
    Adjustment,
    People,
    effective_size,
    narrowed,
    start,
    without_set,
)
from riskset.cohort.covariates import as_design
from riskset.cohort.population import Population, block_codes, logit
from riskset.cohort.settings import Match
from riskset.kernels.matching_cpu import match_closest

__all__ = ["match"]

QUANTUM = 1e10
"""Scores are matched as whole numbers of 1e-10, so that distances and ties are exact."""

NO_LIMIT = int(np.iinfo(np.int64).max)

ROUNDING = 1e-12
"""Scores on a scale that differ by less, relative to the larger of the largest and 1, are equal."""

CONSTANT = "all scores are equal, so there is no standard deviation and no caliper was used."


@takes(Match, positional=2)
def match(people: People, settings: Match, *, within: object = (), X: object = None) -> Adjustment:
    r"""Match each target to up to `ratio` comparators without replacement, closest pairs first.

    Round r = 1, 2, ..., `ratio` considers all pairs of a target with r - 1 comparators and an
    unused comparator of its block within the caliper, in the order of (distance, row id of the
    target, row id of the comparator). A pair is accepted if neither was matched in this round.

    The scale is also the unit of the caliper: logits in units of their standard deviation, scores
    in units of their standard deviation, or scores. The standard deviation is that of all people,
    or :math:`\sqrt{(s_1^2 + s_0^2) / 2}` of the arms, without scores of 0 and 1. Without a caliper,
    OHDSI's CohortMethod always uses scores; "propensity score" gives its pairs.

    Parameters
    ----------
    people : Population or Adjustment
        People with scores. After trimming, the remaining people.
    settings : Match
    within : (n,) labels, or a sequence of label arrays
        Match only people with the same labels. Missing values form their own label.
    X : Design, data frame, matrix or array (n, p), optional
        Covariates of the population, for `exact_covariates`.

    Returns
    -------
    Adjustment
        The weight of a target is 1, and that of its n comparators 1 / n: the effect in the target
        ("att"; if reversed, "atu"). ``details``: ``caliper`` and ``sd`` on the scale of the
        distance, ``distance_sum``, ``distance_max``, ``sets`` (numbers of sets by number of
        members found), ``unmatched_target``, ``unmatched_comparator``, ``unmatched_blocks`` (people
        in blocks with an empty arm), ``effective_size``, ``reversed``.

    Raises
    ------
    CohortError
        "BadSetting" or "BadBlock".

    Notes
    -----
    Time is O(n log n) per round. Results do not depend on the order of rows. If no pair is within
    the caliper, `status` is "no_matches".

    References
    ----------
    Rassen et al. (2012), Pharmacoepidemiology and Drug Safety 21 S2, 69-80, doi:10.1002/pds.3263.
    Austin (2011), Pharmaceutical Statistics 10, 150-161, doi:10.1002/pst.433.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.50, 0.40, 0.49, 0.10])
    >>> matched = rs.cohort.match(people)
    >>> matched
    Adjustment(matching, att: 1 target, 1 comparator)
    >>> matched.set_id
    array([ 0, -1,  0, -1])
    """
    before = start(people)
    population = before.population
    rows = np.flatnonzero(before.kept)
    arm = population.treatment[rows]
    reverse = settings.allow_reverse and 2 * int(arm.sum()) > rows.size
    position = (
        logit(population.score) if settings.scale == "standardized logit" else population.score
    )
    limit, spread = _limit(population, rows, position[rows], settings)
    block = _blocks(within, settings.exact_covariates, X, population.n_rows)[rows]
    sets = _form_sets(
        _order_of(population.row_id)[rows],
        1 - arm if reverse else arm,
        position[rows],
        block,
        limit,
        settings.ratio,
    )
    weight, first = np.zeros(population.n_rows), np.full(population.n_rows, -1, dtype=np.int64)
    weight[rows] = sets.weight
    first[rows[sets.of >= 0]] = rows[sets.of[sets.of >= 0]]
    set_id = without_set(population.row_id[first], first < 0)
    is_constant = settings.caliper and spread == 0 and rows.size > 0
    notes = (Note("ps_constant", (), CONSTANT),) if is_constant and limit == NO_LIMIT else ()
    return narrowed(
        before,
        "matching",
        [("matched", weight > 0)],
        weight=weight,
        set_id=set_id,
        estimand="atu" if reverse else "att",
        status="ok" if sets.weight.any() else "no_matches",
        notes=notes,
        settings=settings.values(Match),
        details={
            **before.details,
            **_quality(sets, arm, block),
            "caliper": None if limit == NO_LIMIT else limit / QUANTUM,
            "sd": spread,
            "reversed": reverse,
        },
    )


def _blocks(within: object, exact_covariates: Sequence[int | str], X: object, n_rows: int) -> Index:
    """A number for each combination of labels and of values of covariates (n,)."""
    labels = block_codes(within, n_rows)[0]
    if not exact_covariates:
        return labels
    if X is None:
        raise CohortError(
            "BadSetting",
            f"`exact_covariates` names {exact_covariates[0]!r}, but `X` was not given.",
            hint="pass the covariates of the population as `X`, or labels as `within`.",
        )
    design = as_design(X, n_rows)
    place = {key: j for j, key in enumerate(design.keys)}
    for key in exact_covariates:
        if key not in place:
            raise InputError.unknown_name("covariate", key, design.keys)
    columns = np.array([place[key] for key in exact_covariates], dtype=np.int64)
    values = [np.unique(x, return_inverse=True)[1] for x in design.to_dense(columns).T]
    return block_codes([labels, *values], n_rows)[0]


def _order_of(row_id: AnyArray) -> Index:
    """Numbers in the order of the identities; they break ties."""
    numbers: Index = row_id
    if row_id.dtype.kind == "U":
        numbers = np.unique(row_id, return_inverse=True)[1].astype(np.int64)
    return numbers


class _Sets(NamedTuple):
    """Of the rows that were to be matched: `first` are those whose partners are sought.

    `of` is the first row of the set of each, -1 without a set.
    """

    first: NDArray[np.bool_]
    weight: Rows
    of: Index
    size: Index
    distance: Rows


def _form_sets(
    row_id: Index, first: Index, position: Rows, block: Index, limit: int, ratio: int
) -> _Sets:
    whole = np.rint(position * QUANTUM).astype(np.int64)
    order = np.lexsort((row_id, first, whole, block)).astype(np.int64)
    of, distance = match_closest(order, row_id, first, whole, block, limit, ratio)
    matched, partner = of >= 0, (of >= 0) & (first == 0)
    size = np.bincount(of[partner], minlength=of.size)
    weight = np.where(matched, 1.0, 0.0)
    weight[partner] = 1.0 / size[of[partner]]
    return _Sets(first == 1, weight, of, size.astype(np.int64), distance / QUANTUM)


def _quality(sets: _Sets, arm: Index, block: Index) -> dict[str, object]:
    """What was found: distances, sizes of sets, and who is left over."""
    partner = ~sets.first & (sets.weight > 0)
    sizes, numbers = np.unique(sets.size[sets.size > 0], return_counts=True)
    alone = sets.weight == 0
    per_arm = [
        np.bincount(block[arm == a], minlength=int(block.max(initial=0)) + 1) for a in (0, 1)
    ]
    lacks_arm = (per_arm[0] == 0) | (per_arm[1] == 0)
    return {
        "distance_sum": float(sets.distance[partner].sum()),
        "distance_max": float(sets.distance[partner].max(initial=0.0)),
        "sets": dict(zip(sizes.tolist(), numbers.tolist(), strict=True)),
        "unmatched_target": int(np.count_nonzero(alone & (arm == 1))),
        "unmatched_comparator": int(np.count_nonzero(alone & (arm == 0))),
        "unmatched_blocks": int(np.count_nonzero(lacks_arm[block])),
        "effective_size": effective_size(sets.weight[partner]),
    }


def _limit(
    population: Population,
    rows: Index,
    position: Rows,
    settings: Match,
) -> tuple[int, float]:
    """The caliper in quanta, and the standard deviation that it is counted in."""
    inside = (population.score[rows] > 0) & (population.score[rows] < 1)
    target = population.is_target[rows]
    if settings.caliper_sd == "within":
        squares = [_variance(position[inside & (target == a)]) for a in (True, False)]
        spread = float(np.sqrt(np.mean(squares)))
    else:
        spread = float(np.sqrt(_variance(position[inside])))
    if not settings.caliper:
        return NO_LIMIT, spread
    if settings.scale == "propensity score":
        return int(np.floor(settings.caliper * QUANTUM)), spread
    if not spread > 0:
        return NO_LIMIT, spread
    return int(np.floor(settings.caliper * spread * QUANTUM)), spread


def _variance(values: Rows) -> float:
    """Of n - 1; exactly 0 where values differ only by rounding."""
    if values.size < 2 or np.ptp(values) <= ROUNDING * max(1.0, float(np.abs(values).max())):
        return 0.0
    return float(values.var(ddof=1))
