"""Replacement, optimal and full matching and Mahalanobis's distance, against brute force."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from scipy.spatial.distance import mahalanobis

import riskset as rs
from riskset.cohort.adjustments import matching_pairs
from storages import each_storage


def draw(seed, n=9, grid=None):
    """A small population; on a coarse grid many distances are equal."""
    rng = np.random.default_rng(seed)
    treatment = np.append([1, 0], rng.integers(0, 2, n - 2))
    score = rng.integers(1, grid, n) / grid if grid else rng.uniform(0.05, 0.95, n)
    ids = rng.permutation(100)[:n]
    return treatment, score, ids, rng


def by_score(treatment, score, ids, **options):
    people = rs.cohort.Population(treatment, score, row_id=ids)
    return rs.cohort.match(people, scale="propensity score", **options)


def distances(treatment, score):
    """Targets, comparators, and their distances (n1, n0)."""
    t, c = np.flatnonzero(treatment == 1), np.flatnonzero(treatment == 0)
    return t, c, np.rint(np.abs(score[t][:, None] - score[c]) * 1e10) / 1e10


# ---------------------------------------------------------------------------- replacement


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("ratio", [0, 1, 2, 3])
def test_replacement_takes_the_closest(seed, ratio):
    treatment, score, ids, rng = draw(seed, n=14, grid=[None, 8][seed % 2])
    label = rng.integers(0, 2, 14) if seed % 3 else np.zeros(14, dtype=int)
    caliper = 0.25
    weight = np.zeros(14)
    t, c, d = distances(treatment, score)
    for i, row in zip(t, d, strict=True):
        near = sorted(
            (gap, ids[j], j)
            for j, gap in zip(c, row, strict=True)
            if gap <= caliper and label[i] == label[j]
        )[: ratio or None]
        weight[i] = bool(near)
        for _, _, j in near:
            weight[j] += 1 / len(near)
    found = by_score(
        treatment, score, ids, ratio=ratio, caliper=caliper, replacement=True, within=label
    )
    assert_allclose(found.weight, weight, rtol=1e-12)
    assert found.set_id is None
    assert found.estimand == "att"


def test_a_comparator_who_is_used_twice_counts_twice():
    people = rs.cohort.Population([1, 1, 1, 0, 0], [0.5, 0.5, 0.3, 0.5, 0.3])
    found = rs.cohort.match(people, replacement=True, caliper=None)
    assert_array_equal(found.weight, [1, 1, 1, 2, 1])
    assert (found.details["max_uses"], found.details["sets"]) == (2, {1: 3})
    reverse = rs.cohort.match(people, replacement=True, caliper=None, allow_reverse=True)
    assert reverse.estimand == "atu"
    assert_array_equal(reverse.weight, [1, 0, 1, 1, 1])


def test_the_robust_variance_with_replacement_is_by_person():
    """The same as of rows that are repeated as often as they are used, with persons as clusters."""
    rng = np.random.default_rng(2)
    n = 300
    score = rng.uniform(0.1, 0.9, n)
    treatment = (rng.random(n) < score).astype(int)
    y = rs.Surv(rng.exponential(1.0, n), rng.integers(0, 2, n))
    found = rs.cohort.match(rs.cohort.Population(treatment, score), replacement=True)
    estimate = rs.cohort.fit_outcome(y, found)
    assert (estimate.reading, estimate.interval) == ("marginal", "robust")
    times = found.weight.astype(int)
    assert times.max() > 1
    rows = np.repeat(np.arange(n), times)
    model = rs.Cox().fit(treatment[rows, None].astype(float), y[rows], cluster=rows)
    assert_allclose(estimate.log_hr, model.coef_[0], rtol=1e-8)
    assert_allclose(estimate.se, model.robust_standard_error_[0], rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_mahalanobis_distances_do_not_depend_on_the_unit(unit):
    treatment, score, ids, rng = draw(3, n=12)
    x = rng.normal(size=(12, 2))
    people = rs.cohort.Population(treatment, score, row_id=ids)
    options = {"mahalanobis": ["x0", "x1"], "caliper": None}
    plain = rs.cohort.match(people, X=x, **options)
    scaled = rs.cohort.match(people, X=x * [unit, 1.0], **options)
    assert_array_equal(scaled.set_id, plain.set_id)
    assert_allclose(scaled.details["distance_sum"], plain.details["distance_sum"], rtol=1e-9)


# -------------------------------------------------------------------------------- optimal


def best_assignment(d, caliper, ratio):
    """The most pairs and targets, and the smallest sum of distances, by all choices."""
    seats = np.repeat(np.arange(d.shape[0]), ratio)
    best = (0, 0, 0.0)
    for size in range(min(len(seats), d.shape[1]), 0, -1):
        totals = [
            (-len(set(rows)), sum(d[i, j] for i, j in zip(rows, columns, strict=True)))
            for rows in set(itertools.combinations(seats.tolist(), size))
            for columns in itertools.permutations(range(d.shape[1]), size)
            if all(d[i, j] <= caliper for i, j in zip(rows, columns, strict=True))
        ]
        if totals:
            best = (size, -min(totals)[0], min(totals)[1])
            break
    return best


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(("ratio", "caliper"), [(1, 0.2), (1, None), (2, 0.3)])
def test_optimal_matching_by_brute_force(seed, ratio, caliper):
    treatment, score, ids, _ = draw(seed, n=7, grid=[None, 10][seed % 2])
    found = by_score(treatment, score, ids, ratio=ratio, caliper=caliper, method="optimal")
    _, _, d = distances(treatment, score)
    number, n_targets, total = best_assignment(d, np.inf if caliper is None else caliper, ratio)
    partner = found.kept & (treatment == 0)
    assert np.count_nonzero(partner) == number
    assert found.n_target == n_targets
    assert_allclose(found.details["distance_sum"], total, atol=1e-8)
    # The distances are those of the sets that are returned.
    place = {row: k for k, row in enumerate(ids.tolist())}
    own = [abs(score[j] - score[place[found.set_id[j]]]) for j in np.flatnonzero(partner)]
    assert_allclose(sum(own), total, atol=1e-8)
    sizes = np.unique(found.set_id[partner], return_counts=True)[1]
    assert sizes.max(initial=0) <= ratio
    assert_allclose(found.weight[partner].sum(), found.n_target)


def test_more_comparators_for_each_target_leave_no_target_without_one():
    # Both comparators are closest to the first target, and the second one accepts them as well.
    people = rs.cohort.Population([1, 1, 0, 0], [0.50, 0.40, 0.49, 0.48])
    options = {"caliper": 0.2, "scale": "propensity score", "method": "optimal"}
    for ratio in (1, 2, 3):
        found = rs.cohort.match(people, ratio=ratio, **options)
        assert_array_equal(found.set_id, [0, 1, 0, 1])


def test_optimal_matching_keeps_more_people_than_the_closest_pairs():
    """0.50 and 0.51 are closest, and leave 0.40 without anybody within 0.1."""
    people = rs.cohort.Population([1, 1, 0, 0], [0.50, 0.60, 0.51, 0.42])
    options = {"caliper": 0.1, "scale": "propensity score"}
    assert rs.cohort.match(people, **options).n_target == 1
    assert_array_equal(rs.cohort.match(people, **options, method="optimal").set_id, [0, 1, 1, 0])


# ----------------------------------------------------------------------------------- full


def smallest_cover(d, caliper):
    """The smallest total distance of pairs that leave nobody out, by linear programming."""
    inside = d <= caliper
    i, j = np.nonzero(inside)
    rows = [i == k for k in np.flatnonzero(inside.any(axis=1))]
    rows += [j == k for k in np.flatnonzero(inside.any(axis=0))]
    answer = linprog(
        d[i, j], A_ub=-np.array(rows, dtype=float), b_ub=-np.ones(len(rows)), bounds=(0, 1)
    )
    return answer.fun, inside


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("caliper", [0.1, 0.3, None])
def test_full_matching_is_the_smallest_cover(seed, caliper):
    n = 6 + seed % 30
    treatment, score, ids, _ = draw(seed, n=n, grid=[None, 6, 40][seed % 3])
    found = by_score(treatment, score, ids, caliper=caliper, method="full")
    t, c, d = distances(treatment, score)
    limit = np.inf if caliper is None else caliper + 1e-12
    if not (d <= limit).any():
        assert found.status == "no_matches"
        return
    total, inside = smallest_cover(d, limit)
    assert_allclose(found.details["distance_sum"], total, atol=1e-7)
    assert_array_equal(found.kept[t], inside.any(axis=1))
    assert_array_equal(found.kept[c], inside.any(axis=0))
    own = 0.0
    for one in np.unique(found.set_id[found.kept]):
        targets, comparators = t[found.set_id[t] == one], c[found.set_id[c] == one]
        assert min(targets.size, comparators.size) == 1
        assert one == ids[targets].min()
        own += np.abs(score[targets][:, None] - score[comparators]).sum()
        assert_allclose(found.weight[comparators], targets.size / comparators.size)
    assert_allclose(own, total, atol=1e-7)
    assert_array_equal(found.weight[t], inside.any(axis=1))


def test_weights_of_a_full_matching():
    people = rs.cohort.Population([1, 1, 1, 0, 0, 0], [0.1, 0.11, 0.8, 0.12, 0.79, 0.81])
    sets = np.array([0, 0, 2, 0, 2, 2])
    for estimand, weight in (
        ("att", [1, 1, 1, 2, 0.5, 0.5]),
        ("atu", [0.5, 0.5, 2, 1, 1, 1]),
        ("ate", [1.5, 1.5, 3, 3, 1.5, 1.5]),
    ):
        found = rs.cohort.match(people, caliper=None, method="full", estimand=estimand)
        assert_array_equal(found.set_id, sets)
        assert_allclose(found.weight, weight)
        assert found.estimand == estimand
        assert_array_equal(found.cluster, sets)
    assert found.details["sets"] == {"2:1": 1, "1:2": 1}


def test_an_outcome_model_accepts_sets_with_several_targets():
    rng = np.random.default_rng(5)
    n = 200
    score = rng.uniform(0.3, 0.7, n)
    people = rs.cohort.Population(rng.integers(0, 2, n), score)
    found = rs.cohort.match(people, method="full")
    y = rs.Surv(rng.exponential(1.0, n), rng.integers(0, 2, n))
    estimate = rs.cohort.fit_outcome(y, found)
    assert (estimate.status, estimate.reading) == ("ok", "stratified")
    assert estimate.sensitivity.interval == "robust"


# --------------------------------------------------------------------------- Mahalanobis


@each_storage
@pytest.mark.parametrize("seed", range(10))
def test_mahalanobis_within_calipers_by_brute_force(seed, store):
    treatment, score, ids, rng = draw(seed, n=24)
    x = np.column_stack([rng.normal(50, 9, 24), rng.integers(0, 2, 24), rng.normal(0, 1, 24)])
    x[:2, 1] = 0, 1
    residual = x.copy()
    for a in (0, 1):
        residual[treatment == a] -= x[treatment == a].mean(axis=0)
    inverse = np.linalg.inv(residual[:, :2].T @ residual[:, :2] / 22)
    t, c, gap = distances(treatment, score)
    d = {(i, j): mahalanobis(x[i, :2], x[j, :2], inverse) for i in t for j in c}
    pairs = sorted(
        (d[i, j], ids[i], ids[j], i, j)
        for a, i in enumerate(t)
        for b, j in enumerate(c)
        if gap[a, b] <= 0.2
    )
    expected, total = np.full(24, -1), 0.0
    for distance, identity, _, i, j in pairs:
        if expected[i] < 0 and expected[j] < 0:
            expected[[i, j]] = identity
            total += distance
    options = {"caliper": 0.2, "mahalanobis": ["x0", "x1"], "X": store(x)}
    found = by_score(treatment, score, ids, **options)
    assert_array_equal(found.set_id, expected)
    assert_allclose(found.details["distance_sum"], total, rtol=1e-7)
    best = by_score(treatment, score, ids, **options, method="optimal")
    assert best.n_target >= found.n_target
    whole = by_score(treatment, score, ids, **options, method="full")
    matrix = np.array([[d[i, j] for j in c] for i in t])
    cover, _ = smallest_cover(np.where(gap <= 0.2, matrix, np.inf), 1e9)
    assert_allclose(whole.details["distance_sum"], cover, atol=1e-6)


def test_mahalanobis_without_a_caliper_needs_no_score():
    x = np.array([[0.0], [5.0], [4.5], [0.2], [9.0]])
    people = rs.cohort.Population([1, 1, 0, 0, 0])
    found = rs.cohort.match(people, caliper=None, mahalanobis=["x0"], X=x)
    assert_array_equal(found.set_id, [0, 1, 1, 0, -1])
    with pytest.raises(rs.CohortError, match="needs propensity scores"):
        rs.cohort.match(people, mahalanobis=["x0"], X=x)


# -------------------------------------------------------------------------------- all of them

METHODS = [
    {"replacement": True, "ratio": 2},
    {"method": "optimal"},
    {"method": "optimal", "ratio": 2},
    {"method": "full", "estimand": "ate"},
    {"mahalanobis": ["x0"], "ratio": 2},
    {"mahalanobis": ["x0", "x1"], "method": "optimal"},
    {"mahalanobis": ["x0", "x1"], "replacement": True},
]


@pytest.mark.parametrize("options", METHODS)
def test_results_do_not_depend_on_the_order_of_rows(options):
    treatment, score, ids, rng = draw(7, n=60, grid=12)
    x = rng.integers(0, 4, (60, 2)).astype(float)
    found = by_score(treatment, score, ids, **options, X=x)
    order = rng.permutation(60)
    again = by_score(treatment[order], score[order], ids[order], **options, X=x[order])
    assert_array_equal(again.weight, found.weight[order])
    if found.set_id is not None:
        assert_array_equal(again.set_id, found.set_id[order])


@pytest.mark.parametrize("options", METHODS)
def test_blocks_are_matched_apart(options):
    treatment, score, ids, rng = draw(8, n=60)
    x, label = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    together = rs.cohort.match(
        rs.cohort.Population(treatment, score, row_id=ids), within=label, X=x, caliper=None,
        **options | {"mahalanobis": ()},
    )  # fmt: skip
    for one in range(3):
        own = label == one
        alone = rs.cohort.match(
            rs.cohort.Population(treatment[own], score[own], row_id=ids[own]), X=x[own],
            caliper=None, **options | {"mahalanobis": ()}, scale="propensity score",
        )  # fmt: skip
        by_scale = rs.cohort.match(
            rs.cohort.Population(treatment, score, row_id=ids), within=label, X=x, caliper=None,
            **options | {"mahalanobis": ()}, scale="propensity score",
        )  # fmt: skip
        assert_allclose(by_scale.weight[own], alone.weight)
    assert together.kept.any()


@pytest.mark.parametrize("method", ["closest", "optimal", "full"])
def test_huge_calipers_are_no_limit_and_a_caliper_is_inclusive(method):
    people = rs.cohort.Population([1, 1, 0, 0], [0.5, 0.4, 0.93, 0.97])
    for caliper in (1e300, np.inf):
        matched = rs.cohort.match(people, caliper=caliper, method=method)
        none = rs.cohort.match(people, caliper=None, method=method)
        assert_array_equal(matched.set_id, none.set_id)
    people = rs.cohort.Population([1, 0], [0.82, 0.0])  # 0.82 * 1e10 is below a whole number
    matched = rs.cohort.match(people, caliper=0.82, scale="propensity score", method=method)
    assert matched.kept.all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replacement": True, "method": "full"}, "full matching uses everybody once"),
        ({"method": "full", "ratio": 2}, "`ratio` does not belong to full matching"),
        ({"method": "full", "allow_reverse": True}, "`allow_reverse` does not belong"),
        ({"method": "optimal", "ratio": 0}, "`ratio` is 0, but optimal matching needs a number"),
        ({"estimand": "ate"}, "`estimand` belongs to full matching"),
        ({"mahalanobis": ["x0"]}, "`mahalanobis` names 'x0', but `X` was not given"),
        ({"mahalanobis": ["x9"], "X": np.ones((4, 1))}, "covariate 'x9' was not found"),
        ({"mahalanobis": ["x0"], "X": np.ones((4, 1))}, "does not vary within the arms"),
        (
            {"mahalanobis": ["x0", "x1"], "X": np.array([[1.0, 2], [2, 4], [3, 6], [5, 10]])},
            "which follows from the other covariates",
        ),
    ],
)
def test_wrong_settings(options, message):
    people = rs.cohort.Population([1, 1, 0, 0], [0.5, 0.4, 0.5, 0.4])
    with pytest.raises(rs.InputError, match=message):
        rs.cohort.match(people, **options)


def test_too_many_pairs(monkeypatch):
    monkeypatch.setattr(matching_pairs, "MOST_PAIRS", 3)
    people = rs.cohort.Population([1, 1, 0, 0], [0.5, 0.4, 0.5, 0.4])
    with pytest.raises(rs.CohortError, match="more than 3 pairs of people") as caught:
        rs.cohort.match(people, method="optimal", caliper=None)
    assert caught.value.code == "TooManyPairs"
