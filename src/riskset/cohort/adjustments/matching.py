"""Matching by propensity scores and by distances of covariates."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError
from riskset._keywords import takes
from riskset._messages import Note
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustments.adjustment import (
    Adjustment,
    Estimand,
    People,
    effective_size,
    narrowed,
    start,
    without_set,
)
from riskset.cohort.adjustments.adjustment_settings import Match
from riskset.cohort.adjustments.matching_pairs import (
    NO_LIMIT,
    QUANTUM,
    ArmPairs,
    Candidates,
    mahalanobis_places,
)
from riskset.cohort.adjustments.optimal_matching import fullest_pairs, shortest_pairs
from riskset.cohort.adjustments.stratification import arm_weights
from riskset.cohort.covariates.covariate_design import as_design, columns_of
from riskset.cohort.population import Population, block_codes, logit
from riskset.data.design import Design
from riskset.kernels.matching_cpu import match_closest
from riskset.kernels.pair_matching_cpu import match_pairs

__all__ = ["match"]

ROUNDING = 1e-12
"""Scores on a scale that differ by less, relative to the larger of the largest and 1, are equal."""

MOST_DISTANCE = 100.0
"""Scores and logits differ by less."""

CONSTANT = "all scores are equal, so there is no standard deviation and no caliper was used."


@takes(Match, positional=2)
def match(people: People, settings: Match, *, within: object = (), X: object = None) -> Adjustment:
    r"""Match targets with comparators who are alike.

    A pair has one person of each arm, of the same block and within the caliper. With
    ``method="closest"``, round r = 1, 2, ..., `ratio` considers all pairs of a target with r - 1
    comparators and an unused comparator, in the order of (distance, row id of the target, row id of
    the comparator). A pair is accepted if neither was matched in this round. With `replacement`,
    each target has the `ratio` closest comparators, who may be used again.

    ``method="optimal"`` takes as many pairs, of as many targets, as possible and, among these
    choices, the one with the smallest sum of distances. ``method="full"`` puts everybody who has a
    pair into a set of one target and one or more comparators, or of one comparator and several
    targets, with the smallest sum of distances between the one and the others.

    The scale is also the unit of the caliper: logits in units of their standard deviation, scores
    in units of their standard deviation, or scores. The standard deviation is that of all people,
    or :math:`\sqrt{(s_1^2 + s_0^2) / 2}` of the arms, without scores of 0 and 1. Without a caliper,
    OHDSI's CohortMethod always uses scores; "propensity score" gives its pairs. With `mahalanobis`,
    the caliper is as before and the distance of two people is

    .. math:: d(x, z) = \sqrt{(x - z)' S^{-1} (x - z)}

    of these covariates, with their covariance S within the arms.

    Parameters
    ----------
    people : Population or Adjustment
        People with scores. After trimming, the remaining people. Scores are not needed for
        `mahalanobis` without a caliper.
    settings : Match
    within : (n,) labels, or a sequence of label arrays
        Match only people with the same labels. Missing values form their own label.
    X : Design, data frame, matrix or array (n, p), optional
        Covariates of the population, for `exact_covariates` and `mahalanobis`.

    Returns
    -------
    Adjustment
        The weight of a target is 1, and that of its n comparators 1 / n: the effect in the target
        ("att"; if reversed, "atu"). With replacement, a comparator has the sum of these weights,
        there are no sets, and the person is the cluster of the robust variance. In a set of a full
        matching with :math:`n_1` targets and :math:`n_0` comparators, the weights are 1 and
        :math:`n_1 / n_0` ("att"), :math:`n_0 / n_1` and 1 ("atu"), or :math:`(n_1 + n_0) / n_1` and
        :math:`(n_1 + n_0) / n_0` ("ate"). ``details``: ``method``; ``caliper`` and ``sd`` on the
        scale of the score; ``distance_sum`` and ``distance_max`` of the pairs; ``sets``, numbers of
        sets by number of members found (of a full matching by "targets:comparators"); ``max_uses``
        of a comparator; ``unmatched_target``, ``unmatched_comparator``, ``unmatched_blocks``
        (people in blocks with an empty arm), ``effective_size`` of the partners, ``reversed``.

    Raises
    ------
    CohortError
        "BadSetting" or "BadBlock"; "TooManyPairs" if more than 20 million pairs are within the
        caliper and have to be listed: for optimal matching, and for `mahalanobis`.

    Notes
    -----
    Time is O(n log n) per round for the closest pairs by score, with and without replacement. It is
    O(n log n) for full matching by score, too: in the order of scores, pairs join neighbouring runs
    of one arm (Colannino et al. 2007). Optimal matching and `mahalanobis` look at all pairs within
    the caliper. Optimal matching suits up to about 20,000 people (a minute), full matching by
    `mahalanobis` up to about 100,000; `within` makes problems smaller. Distances are compared to
    1e-10. Results do not depend on the order of rows. If no pair is within the caliper, `status` is
    "no_matches".

    References
    ----------
    Rassen et al. (2012), Pharmacoepidemiology and Drug Safety 21 S2, 69-80, doi:10.1002/pds.3263.
    Austin (2011), Pharmaceutical Statistics 10, 150-161, doi:10.1002/pst.433.
    Austin and Cafri (2020), Statistics in Medicine 39, 1623-1640, doi:10.1002/sim.8502, for
    replacement.
    Rosenbaum (1991), Journal of the Royal Statistical Society B 53, 597-610,
    doi:10.1111/j.2517-6161.1991.tb01848.x, and Hansen (2004), Journal of the American Statistical
    Association 99, 609-618, doi:10.1198/016214504000000647, for full matching.
    Colannino, Damian, Hurtado, Langerman, Meijer, Ramaswami, Souvaine and Toussaint (2007), Graphs
    and Combinatorics 23 S1, 169-178, doi:10.1007/s00373-007-0714-3, for its time.
    Rosenbaum and Rubin (1985), The American Statistician 39, 33-38,
    doi:10.1080/00031305.1985.10479383, for Mahalanobis's distance within calipers.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.50, 0.40, 0.49, 0.10])
    >>> matched = rs.cohort.match(people)
    >>> matched
    Adjustment(matching, att: 1 target, 1 comparator)
    >>> matched.set_id
    array([ 0, -1,  0, -1])
    >>> rs.cohort.match(people, caliper=None, replacement=True).weight
    array([1., 1., 2., 0.])
    >>> rs.cohort.match(people, caliper=None, method="full", estimand="ate").set_id
    array([0, 1, 0, 1])
    """
    before = start(people)
    population = before.population
    rows = _in_order(population.row_id, before.kept)
    arm = population.treatment[rows]
    reverse = settings.allow_reverse and 2 * int(arm.sum()) > rows.size
    position = _position(population, settings)[rows]
    limit, spread = _limit(population, rows, position, settings)
    design = _covariates(X, settings, population.n_rows)
    block = _blocks(within, settings.exact_covariates, design, population.n_rows)[rows]
    places = None
    if settings.mahalanobis:
        columns = columns_of(design, settings.mahalanobis)  # type: ignore[arg-type]
        names = tuple(map(str, settings.mahalanobis))
        places = mahalanobis_places(design.to_dense(columns, rows), arm, names)  # type: ignore[union-attr]
    whole = np.rint(position * QUANTUM).astype(np.int64)
    found = _found(Candidates(arm == (not reverse), whole, block, limit, places), settings)
    weight = np.zeros(population.n_rows)
    weight[rows] = found.weight * population.sampling_weight[rows]
    is_constant = bool(settings.caliper) and spread == 0 and rows.size > 0
    notes = (Note("ps_constant", (), CONSTANT),) if is_constant and limit == NO_LIMIT else ()
    estimand: Estimand = "atu" if reverse else "att"
    return narrowed(
        before,
        "matching",
        [("matched", weight > 0)],
        weight=weight,
        set_id=None if found.of is None else _set_ids(population.row_id, rows, found.of),
        estimand=settings.estimand or estimand,
        status="ok" if found.weight.any() else "no_matches",
        notes=notes,
        settings=settings.values(Match),
        details={
            **before.details,
            **found.details,
            **_left_over(found.weight, arm, block),
            "method": settings.method,
            "caliper": None if limit == NO_LIMIT else limit / QUANTUM,
            "sd": spread,
            "reversed": reverse,
        },
    )


class _Found(NamedTuple):
    """Weights (n,), and the first row of the set of each, -1 without a set; None: no sets."""

    weight: Rows
    of: Index | None
    details: dict[str, object]


def _found(people: Candidates, settings: Match) -> _Found:
    """What the method finds."""
    ratio, n = settings.ratio, people.first.size
    if settings.method == "full":
        return _full(fullest_pairs(people), people, settings.estimand or "att")
    if settings.replacement:
        return _reused(people.nearest(ratio), n)
    if settings.method == "optimal":
        chosen = shortest_pairs(people.pairs(), ratio)
        of = np.full(n, -1, dtype=np.int64)
        of[chosen.partner] = chosen.first
        return _sets(of, people, chosen.distance)
    if people.places is not None:
        pairs = people.pairs()
        of = match_pairs(pairs.closest_first, pairs.first, pairs.partner, n, ratio)
        return _sets(of, people, pairs.distance[of[pairs.partner] == pairs.first])
    order = np.lexsort((np.arange(n), people.first, people.line, people.block)).astype(np.int64)
    of, distance = match_closest(
        order,
        np.arange(n),
        people.first.astype(np.int64),
        people.line,
        people.block,
        people.limit,
        ratio,
    )
    return _sets(np.where(people.first, -1, of), people, distance[~people.first & (of >= 0)])


def _sets(of: Index, people: Candidates, distance: Index) -> _Found:
    """One first row and its partners, whose first row `of` has."""
    partner = of >= 0
    size = np.bincount(of[partner], minlength=of.size)
    weight = (size > 0).astype(np.float64)
    weight[partner] = 1.0 / size[of[partner]]
    sizes, numbers = np.unique(size[size > 0], return_counts=True)
    details = {
        **_distances(distance),
        "sets": dict(zip(sizes.tolist(), numbers.tolist(), strict=True)),
        "effective_size": effective_size(weight[~people.first]),
    }
    return _Found(weight, np.where(size > 0, np.arange(of.size), of), details)


def _reused(pairs: ArmPairs, n: int) -> _Found:
    """ArmPairs that share partners."""
    size = np.bincount(pairs.first, minlength=n)
    shared: Rows = np.bincount(pairs.partner, 1.0 / size[pairs.first], minlength=n).astype(
        np.float64
    )
    sizes, numbers = np.unique(size[size > 0], return_counts=True)
    details = {
        **_distances(pairs.distance),
        "sets": dict(zip(sizes.tolist(), numbers.tolist(), strict=True)),
        "effective_size": effective_size(shared),
        "max_uses": int(np.bincount(pairs.partner, minlength=1).max()),
    }
    return _Found(np.where(size > 0, 1.0, shared), None, details)


def _full(pairs: ArmPairs, people: Candidates, estimand: Estimand) -> _Found:
    """Sets of a full matching: stars around one person."""
    n = people.first.size
    of, arm = np.full(n, -1, dtype=np.int64), people.first.astype(np.int64)
    # The first target of a partner with several is the first row of them all.
    mine, at = np.unique(pairs.partner, return_index=True)
    of[mine] = pairs.first[at]
    of[pairs.first] = of[pairs.partner]
    several = np.bincount(pairs.first, minlength=n) > 1
    of[pairs.partner] = of[pairs.first]
    of[several] = np.flatnonzero(several)
    matched = np.flatnonzero(of >= 0)
    _, own = np.unique(of[matched], return_inverse=True)
    n_sets = int(own.max(initial=-1)) + 1
    counts = np.bincount(arm[matched] * n_sets + own, minlength=2 * n_sets).reshape(2, n_sets)
    weight = np.zeros(n)
    weight[matched] = arm_weights(counts, estimand)[arm[matched], own]
    kinds, numbers = np.unique(counts, axis=1, return_counts=True)
    details = {
        **_distances(pairs.distance),
        "sets": {f"{a}:{b}": k for b, a, k in zip(*kinds.tolist(), numbers.tolist(), strict=True)},
        "effective_size": effective_size(weight[~people.first]),
    }
    return _Found(weight, of, details)


def _distances(distance: Index) -> dict[str, object]:
    return {
        "distance_sum": float(distance.sum()) / QUANTUM,
        "distance_max": float(distance.max(initial=0)) / QUANTUM,
    }


def _left_over(weight: Rows, arm: Index, block: Index) -> dict[str, object]:
    """Who is left over."""
    alone = weight == 0
    per_arm = [
        np.bincount(block[arm == a], minlength=int(block.max(initial=0)) + 1) for a in (0, 1)
    ]
    lacks_arm = (per_arm[0] == 0) | (per_arm[1] == 0)
    return {
        "unmatched_target": int(np.count_nonzero(alone & (arm == 1))),
        "unmatched_comparator": int(np.count_nonzero(alone & (arm == 0))),
        "unmatched_blocks": int(np.count_nonzero(lacks_arm[block])),
    }


def _set_ids(row_id: AnyArray, rows: Index, of: Index) -> AnyArray:
    first = np.full(row_id.size, -1, dtype=np.int64)
    first[rows[of >= 0]] = rows[of[of >= 0]]
    return without_set(row_id[first], first < 0)


def _in_order(row_id: AnyArray, kept: NDArray[np.bool_]) -> Index:
    """The rows that are kept, in the order of their identities; it breaks ties."""
    rows = np.flatnonzero(kept)
    return rows[np.argsort(row_id[rows], kind="stable")]


def _position(population: Population, settings: Match) -> Rows:
    """The places of people on the scale."""
    if not settings.uses_score:
        return np.zeros(population.n_rows)
    score = population.score
    return logit(score) if settings.scale == "standardized logit" else score


def _covariates(X: object, settings: Match, n_rows: int) -> Design | None:
    """The covariates, if any are used."""
    for name in ("exact_covariates", "mahalanobis"):
        given = getattr(settings, name)
        if given and X is None:
            raise CohortError(
                "BadSetting",
                f"`{name}` names {given[0]!r}, but `X` was not given.",
                hint="pass the covariates of the population as `X`"
                + (", or labels as `within`." if name == "exact_covariates" else "."),
            )
    used = settings.exact_covariates or settings.mahalanobis
    return as_design(X, n_rows) if used else None


def _blocks(
    within: object, exact_covariates: Sequence[int | str], design: Design | None, n_rows: int
) -> Index:
    """A number for each combination of labels and of values of covariates (n,)."""
    labels = block_codes(within, n_rows)[0]
    if not exact_covariates or design is None:
        return labels
    columns = columns_of(design, exact_covariates)
    values = [np.unique(x, return_inverse=True)[1] for x in design.to_dense(columns).T]
    return block_codes([labels, *values], n_rows)[0]


def _limit(
    population: Population,
    rows: Index,
    position: Rows,
    settings: Match,
) -> tuple[int, float]:
    """The caliper in quanta, and the standard deviation that it is counted in."""
    if not settings.uses_score:
        return NO_LIMIT, 0.0
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
        return _quanta(settings.caliper), spread
    if not spread > 0:
        return NO_LIMIT, spread
    return _quanta(settings.caliper * spread), spread


def _quanta(limit: float) -> int:
    """A limit in quanta; a number above all distances means no limit."""
    return NO_LIMIT if limit > MOST_DISTANCE else int(np.rint(limit * QUANTUM))


def _variance(values: Rows) -> float:
    """Of n - 1; exactly 0 where values differ only by rounding."""
    if values.size < 2 or np.ptp(values) <= ROUNDING * max(1.0, float(np.abs(values).max())):
        return 0.0
    return float(values.var(ddof=1))
