"""Entropy balancing and covariate-balancing scores: the conditions that have one solution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import riskset as rs
from storages import each_storage


def draw(seed=1, n=300):
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [rng.normal(60, 10, n), rng.integers(0, 2, n), rng.exponential(2.0, n), np.ones(n)]
    )
    odds = np.exp(0.04 * (x[:, 0] - 60) + 0.7 * x[:, 1] - 0.2 * x[:, 2])
    return (rng.random(n) < odds / (1 + odds)).astype(int), x, rng


def is_linear(values, x):
    """Whether values are a linear function of the columns and 1."""
    design = np.column_stack([np.ones(len(x)), x - x.mean(axis=0)])
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return np.abs(fitted - values).max() < 1e-8


@each_storage
@pytest.mark.parametrize("estimand", ["att", "atu", "ate"])
def test_entropy_balancing_by_its_conditions(store, estimand):
    """Log weights are linear in covariates and means are as wanted: of one set of weights alone."""
    treatment, x, _ = draw()
    people = rs.cohort.Population(treatment)
    found = rs.cohort.weight(people, estimand, method="entropy", X=store(x))
    like = {"att": treatment == 1, "atu": treatment == 0, "ate": treatment >= 0}[estimand]
    for arm in (0, 1):
        own = treatment == arm
        w = found.weight[own]
        assert is_linear(np.log(w), x[own, :3])
        assert_allclose(w @ x[own] / w.sum(), x[like].mean(axis=0), rtol=1e-9)
        assert_allclose(w.sum(), like.sum())
    smd = rs.cohort.balance(store(x), found).after.smd
    assert np.abs(smd).max() < 1e-8


def test_entropy_balancing_by_another_program():
    treatment, x, _ = draw(2, n=40)
    own, target = x[treatment == 0, :2], x[treatment == 1, :2].mean(axis=0)
    n = len(own)
    scale = own.std(axis=0)
    conditions = [
        {"type": "eq", "fun": lambda w: w.sum() - 1},
        {"type": "eq", "fun": lambda w: (w @ own - target) / scale},
    ]
    answer = minimize(
        lambda w: (w * np.log(w)).sum(), np.full(n, 1 / n), jac=lambda w: np.log(w) + 1,
        constraints=conditions, bounds=[(1e-9, 1)] * n, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert answer.success
    people = rs.cohort.Population(treatment)
    found = rs.cohort.weight(people, "att", method="entropy", X=x, covariates=["x0", "x1"])
    w = found.weight[treatment == 0]
    assert_allclose(w / w.sum(), answer.x, atol=1e-6)
    twice = rs.cohort.weight(people, "att", method="entropy", X=x, covariates=["x0", "x1", "x0"])
    assert_allclose(twice.weight, found.weight, rtol=1e-12)


@each_storage
@pytest.mark.parametrize("estimand", ["att", "atu", "ate"])
def test_balancing_scores_by_their_conditions(store, estimand):
    treatment, x, _ = draw(3)
    people = rs.cohort.Population(treatment)
    found = rs.cohort.weight(people, estimand, method="cbps", X=store(x))
    score = found.population.score
    assert is_linear(np.log(score / (1 - score)), x[:, :3])
    by_score = rs.cohort.weight(found.population, estimand)
    assert_allclose(found.weight, by_score.weight, rtol=1e-8)
    one, other = (found.weight * (treatment == arm) for arm in (0, 1))
    assert_allclose(one @ x, other @ x, rtol=1e-9)
    if estimand != "ate":
        entropy = rs.cohort.weight(people, estimand, method="entropy", X=store(x))
        assert_allclose(found.weight, entropy.weight, rtol=1e-8)


@each_storage
def test_moments_and_interactions(store):
    treatment, x, _ = draw(4)
    people = rs.cohort.Population(treatment)
    found = rs.cohort.weight(
        people, "att", method="entropy", X=store(x), covariates=["x0", "x1", "x2"], moments=2,
        interactions=[["x0", "x1"], ["x1", "x3"]],
    )  # fmt: skip
    terms = np.column_stack([x[:, :3], x[:, 0] ** 2, x[:, 2] ** 2, x[:, 0] * x[:, 1]])
    assert found.details["terms"] == 7
    own = treatment == 0
    w = found.weight[own]
    assert_allclose(w @ terms[own] / w.sum(), terms[~own].mean(axis=0), rtol=1e-8)
    assert is_linear(np.log(w), terms[own] / np.abs(terms).max(axis=0))


@pytest.mark.parametrize("method", ["entropy", "cbps"])
def test_order_of_rows_and_trimming(method):
    treatment, x, rng = draw(5)
    order = rng.permutation(300)
    people = rs.cohort.Population(treatment, rng.uniform(0.02, 0.98, 300))
    found = rs.cohort.weight(people, "ate", method=method, X=x)
    again = rs.cohort.Population(treatment[order])
    again = rs.cohort.weight(again, "ate", method=method, X=x[order])
    assert_allclose(again.weight, found.weight[order], rtol=1e-8)
    trimmed = rs.cohort.trim(people, symmetric=0.2)
    kept = trimmed.kept
    part = rs.cohort.weight(trimmed, "ate", method=method, X=x)
    alone = rs.cohort.weight(rs.cohort.Population(treatment[kept]), "ate", method=method, X=x[kept])
    assert_allclose(part.weight[kept], alone.weight, rtol=1e-8)
    assert not part.weight[~kept].any()


def test_collinear_covariates_change_nothing():
    treatment, x, _ = draw(6)
    people = rs.cohort.Population(treatment)
    more = np.column_stack([x, x[:, 0] - 2 * x[:, 2], 1 - x[:, 1]])
    for method in ("entropy", "cbps"):
        one, other = (rs.cohort.weight(people, "ate", method=method, X=z) for z in (x, more))
        assert_allclose(one.weight, other.weight, rtol=1e-6)


def test_people_who_can_only_weigh_nothing():
    """Nobody of the target has the covariate: comparators with it weigh nothing."""
    x = np.array([[0.0], [0.0], [1.0], [0.0], [0.0]])
    people = rs.cohort.Population([1, 1, 0, 0, 0])
    found = rs.cohort.weight(people, "att", method="entropy", X=x)
    assert_allclose(found.weight, [1, 1, 0, 1, 1], atol=1e-7)


@each_storage
def test_means_that_no_weights_have(store):
    x = np.array([[9.0, 1], [8, 0], [1, 0], [2, 1], [3, 1]])
    people = rs.cohort.Population([1, 1, 0, 0, 0])
    with pytest.raises(
        rs.CohortError, match=r"of the comparator can give 'x0' the means that are wanted\."
    ) as caught:
        rs.cohort.weight(people, "att", method="entropy", X=store(x))
    assert caught.value.code == "NoBalance"
    # Each mean is within the range, but comparators with one of both never lack the other.
    x = np.array([[1.0, 0], [1, 0], [0, 0], [1, 1], [0, 0], [1, 1]])
    people = rs.cohort.Population([1, 1, 0, 0, 0, 0])
    x[1] = 0, 0
    with pytest.raises(
        rs.CohortError, match="can give 'x0', 'x1' the means that are wanted, all of them at once"
    ):
        rs.cohort.weight(people, "att", method="entropy", X=store(x))


def test_scores_that_covariates_determine():
    x = np.array([[9.0], [8], [1], [2], [3]])
    people = rs.cohort.Population([1, 1, 0, 0, 0])
    with pytest.raises(rs.CohortError, match="no weights of the arms were found .* 'x0'"):
        rs.cohort.weight(people, "ate", method="cbps", X=x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "entropy"}, "the method entropy has no estimand 'ato'"),
        ({"method": "cbps", "estimand": "att", "truncate": 10}, "`truncate` would change weights"),
        ({"method": "entropy", "estimand": "ate", "stabilise": True}, "`stabilise` would change"),
        ({"moments": 2}, "`moments` belongs to weights that balance covariates"),
        ({"method": "entropy", "estimand": "att", "X": None}, "but `X` was not given"),
        (
            {"method": "entropy", "estimand": "att", "interactions": [["x0"]]},
            "must be pairs of covariates, but one has 1 name",
        ),
        ({"method": "entropy", "estimand": "att", "covariates": ["x7"]}, "'x7' was not found"),
    ],
)
def test_wrong_settings(options, message):
    people = rs.cohort.Population([1, 0, 0], [0.5, 0.5, 0.5])
    with pytest.raises(rs.InputError, match=message):
        rs.cohort.weight(people, **{"X": [[1.0], [0.0], [2.0]]} | options)
