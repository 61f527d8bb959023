"""Variance ratios, Kolmogorov-Smirnov statistics, squares and products of covariates."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ks_2samp

import riskset as rs
from storages import each_storage


def draw(seed=1, n=120):
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [
            rng.normal(size=n).round(1),
            rng.integers(0, 2, n),
            np.where(rng.random(n) < 0.8, 0.0, rng.normal(size=n).round(1)),  # below and above 0
            np.full(n, 3.0),
        ]
    )
    return rs.cohort.Population(rng.integers(0, 2, n), rng.uniform(0.1, 0.9, n)), x


def largest_gap(x, arm, weight):
    """By the definition, at every value."""
    shares = [np.where(arm == a, weight, 0.0) / weight[arm == a].sum() for a in (1, 0)]
    return max(abs(shares[0][x <= v].sum() - shares[1][x <= v].sum()) for v in x)


@each_storage
def test_distances_of_distributions(store):
    people, x = draw()
    arm = people.treatment
    weighted = rs.cohort.weight(people, "ate")
    found = rs.cohort.balance(store(x), weighted)
    for j in range(4):
        scipys = ks_2samp(x[arm == 1, j], x[arm == 0, j]).statistic
        assert_allclose(found.before.ks[j], scipys, atol=1e-12)
        assert_allclose(found.after.ks[j], largest_gap(x[:, j], arm, weighted.weight), atol=1e-12)
    assert found.before.ks[3] == found.after.ks[3] == 0.0


@each_storage
def test_variance_ratios(store):
    people, x = draw(2)
    one, other = (x[people.treatment == a] for a in (1, 0))
    found = rs.cohort.balance(store(x), people)
    for j in (0, 2):
        assert_allclose(
            found.before.variance_ratio[j], one[:, j].var(ddof=1) / other[:, j].var(ddof=1)
        )
    assert np.isnan(found.before.variance_ratio[3])  # constant
    assert_array_equal(np.isnan(found.before.variance_ratio[:3]), found.is_binary[:3])


@each_storage
def test_a_weight_of_two_is_a_row_twice(store):
    people, x = draw(3)
    weight = np.where(people.treatment == 0, 1.0 + (x[:, 1] == 1), 1.0)
    doubled = rs.cohort.Adjustment("weighting", "att", people, weight)
    rows = np.repeat(np.arange(120), weight.astype(int))
    again = rs.cohort.Population(people.treatment[rows])
    found = rs.cohort.balance(store(x), doubled).after
    assert_allclose(found.ks, rs.cohort.balance(store(x[rows]), again).before.ks, atol=1e-12)


def test_squares_and_products_are_further_covariates():
    people, x = draw(4)
    names = ["age", "male", "visits", "site"]
    design = rs.Design.from_dense(x, names)
    pairs = [["age", "male"], ["male", "visits"]]
    found = rs.cohort.balance(design, people, squares=True, interactions=pairs)
    assert found.names == (*names, "age^2", "visits^2", "age * male", "male * visits")
    plain = np.column_stack([x, x[:, 0] ** 2, x[:, 2] ** 2, x[:, 0] * x[:, 1], x[:, 1] * x[:, 2]])
    expected = rs.cohort.balance(plain, people)
    assert_allclose(found.before.smd, expected.before.smd, atol=1e-12)
    assert_allclose(found.before.ks, expected.before.ks, atol=1e-12)
    twice = rs.cohort.balance(design, people, interactions=[["age", "male"], ["male", "age"]])
    assert twice.names == (*names, "age * male")
    with pytest.raises(rs.InputError, match="must be pairs"):
        rs.cohort.balance(design, people, interactions=[["age", "male", "site"]])
    with pytest.raises(rs.InputError, match="covariate 'weight' was not found"):
        rs.cohort.balance(design, people, interactions=[["age", "weight"]])


def test_effective_sizes():
    people, x = draw(5)
    weighted = rs.cohort.weight(people, "ate")
    sizes = rs.cohort.balance(x, weighted).effective_sizes
    arms = [int((people.treatment == a).sum()) for a in (1, 0)]
    assert (sizes["before", "target"], sizes["before", "comparator"]) == tuple(arms)
    after = (sizes["after", "target"], sizes["after", "comparator"])
    assert_allclose(after, weighted.effective_sizes())


def test_nobody_left():
    people = rs.cohort.Population([1, 1, 0, 0], [0.9, 0.8, 0.2, 0.1])
    found = rs.cohort.balance([[1.5], [2.0], [3.0], [1.0]], rs.cohort.match(people, caliper=0.05))
    assert np.isnan(found.after.ks).all()
    assert np.isnan(found.after.variance_ratio).all()


def test_shared_statistics_reveal_no_small_group():
    """Of a covariate that is not binary, the statistic may be the share of few people."""
    people, x = draw(6)
    shared = rs.cohort.share_balance(rs.cohort.balance(x, people))
    binary = np.array([False, True, False, False])
    assert_array_equal(np.isnan(shared["before_ks"]), ~binary)
    assert np.isfinite(shared["before_variance_ratio"][0])


@each_storage
def test_terms_of_missing_values_are_of_those_who_are_known(store):
    """Where age or visits is missing, their square and product are not 0, but not known."""
    people, x = draw(7)
    missing = np.arange(120) % 3 == 0
    x[missing, 0] = 0.0
    table = np.column_stack([x[:, :3], missing])
    names = ("age", "male", "visits", "age=(missing)")
    design = replace(store(table), names=names, keys=names)
    found = rs.cohort.balance(design, people, squares=True, interactions=[["age", "male"]])
    known = ~missing
    alone = rs.cohort.Population(people.treatment[known])
    expected = rs.cohort.balance(
        np.column_stack([x[known, 0] ** 2, x[known, 0] * x[known, 1]]), alone
    )
    own = [found.names.index(name) for name in ("age^2", "age * male")]
    assert_allclose(found.before.smd[own], expected.before.smd, atol=1e-12)
    assert_allclose(found.before.ks[own], expected.before.ks, atol=1e-12)
    assert_allclose(found.before.variance_ratio[own], expected.before.variance_ratio)
