"""Coarsened exact matching, against strata that are formed row by row."""

import collections
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from storages import each_storage


def draw(seed, n=80):
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [rng.integers(0, 2, n), rng.normal(60, 10, n), rng.choice([0.0, 1.5, 4.0], n)]
    )
    return rng.integers(0, 2, n), x, rng.choice(["a", "b"], n), rng


def by_hand(treatment, cells, estimand):
    counts = collections.Counter(zip(cells, treatment.tolist(), strict=True))
    weight = []
    for cell, arm in zip(cells, treatment.tolist(), strict=True):
        n = [counts[cell, 0], counts[cell, 1]]
        wanted = {"ate": sum(n), "att": n[1], "atu": n[0]}[estimand]
        weight.append(wanted / n[arm] if min(n) else 0.0)
    return np.array(weight)


@each_storage
@pytest.mark.parametrize("estimand", ["ate", "att", "atu"])
def test_strata_by_hand(store, estimand):
    treatment, x, label, _ = draw(1)
    people = rs.cohort.Population(treatment)
    found = rs.cohort.coarsen(
        people, store(x), covariates=["x0", "x1", "x2"], cuts={"x1": [50, 65], "x2": [1.5]},
        within=label, estimand=estimand,
    )  # fmt: skip
    cells = [
        (a, b >= 50, b >= 65, c >= 1.5, d) for (a, b, c), d in zip(x.tolist(), label, strict=True)
    ]
    assert_allclose(found.weight, by_hand(treatment, cells, estimand))
    kept = found.kept
    assert len({*zip(found.set_id[kept], [cells[k] for k in np.flatnonzero(kept)], strict=True)})
    own = {(s, cells[k]) for k, s in enumerate(found.set_id) if kept[k]}
    assert len(own) == len({s for s, _ in own}) == len({c for _, c in own})
    assert sorted({s for s, _ in own}) == list(range(1, found.details["matched_strata"] + 1))
    assert (found.set_id[~kept] == -1).all()
    assert found.details["strata"] == len(set(cells))
    assert (found.kind, found.estimand) == ("stratification", estimand)


@pytest.mark.parametrize("bins", [None, 1, 3, 7])
def test_intervals_of_equal_width(bins):
    treatment, x, _, _ = draw(2)
    found = rs.cohort.coarsen(
        rs.cohort.Population(treatment), x, covariates=["x1"], bins=bins, estimand="ate"
    )
    number = math.ceil(math.log2(80) + 1) if bins is None else bins
    low, high = x[:, 1].min(), x[:, 1].max()
    cells = [min(int((v - low) / (high - low) * number), number - 1) for v in x[:, 1].tolist()]
    assert_allclose(found.weight, by_hand(treatment, cells, "ate"))


def test_results_do_not_depend_on_the_order_of_rows():
    treatment, x, label, rng = draw(3)
    order = rng.permutation(80)
    one = rs.cohort.coarsen(
        rs.cohort.Population(treatment), x, covariates=["x0", "x1"], within=label
    )
    other = rs.cohort.coarsen(
        rs.cohort.Population(treatment[order]), x[order], covariates=["x0", "x1"],
        within=label[order],
    )  # fmt: skip
    assert_array_equal(other.weight, one.weight[order])
    assert_array_equal(other.set_id, one.set_id[order])


def test_labels_alone_are_exact_matching():
    people = rs.cohort.Population([1, 0, 1, 0, 0])
    found = rs.cohort.coarsen(people, within=["a", "a", "b", "b", "b"])
    assert_allclose(found.weight, [1, 1, 1, 0.5, 0.5])
    nobody = rs.cohort.coarsen(people, within=[1, 2, 3, 4, 5])
    assert nobody.status == "no_matches"
    y = rs.Surv([3, 5, 8, 2, 9], [1, 1, 0, 1, 1])
    assert rs.cohort.fit_outcome(y, found).reading == "stratified"


def test_cuts_of_a_covariate_named_by_its_number():
    people = rs.cohort.Population([1, 0, 0])
    x = rs.Design.from_columns({"7": [41.0, 45.0, 62.0]})
    found = rs.cohort.coarsen(people, x, covariates=["7"], cuts={7: [50.0]})
    assert_array_equal(found.set_id, [1, 1, -1])


def test_too_many_intervals_are_refused():
    people = rs.cohort.Population([1, 0])
    with pytest.raises(rs.CohortError, match="at least 1 and at most 100000"):
        rs.cohort.coarsen(people, [[1.0], [2.0]], covariates=["x0"], bins=10**9)


def test_trimmed_people_do_not_count():
    people = rs.cohort.Population([1, 0, 1, 0, 0], [0.5, 0.5, 0.99, 0.5, 0.5])
    x = np.array([[1.0], [2.0], [900.0], [8.0], [9.0]])
    trimmed = rs.cohort.trim(people, symmetric=0.1)
    found = rs.cohort.coarsen(trimmed, x, covariates=["x0"], bins=2)
    assert_array_equal(found.set_id, [1, 1, -1, -1, -1])


def test_balance_of_many_strata_goes_by_weights():
    treatment, x, _, _ = draw(4, n=400)
    people = rs.cohort.Population(np.tile([1, 0], 200))
    pairs = np.repeat(np.arange(200), 2)
    found = rs.cohort.coarsen(people, within=pairs)
    assert rs.cohort.balance(x, found).variance == "weights"
    few = rs.cohort.coarsen(people, within=pairs // 2)
    assert rs.cohort.balance(x, few).variance == "strata"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "`covariates` is empty, and there are no labels"),
        ({"covariates": ["x0"], "X": None}, "`covariates` names 'x0', but `X` was not given"),
        ({"covariates": ["x0"], "cuts": {"x1": [2]}}, "limits of 'x1', which is not one of"),
        ({"covariates": ["x0"], "cuts": {"x0": [2, 1]}}, "`cuts` must increase.*'x0' are 2, 1"),
        ({"covariates": ["x7"]}, "covariate 'x7' was not found"),
    ],
)
def test_wrong_settings(options, message):
    people = rs.cohort.Population([1, 0])
    given = {"X": [[1.0, 2.0], [3.0, 4.0]]} | options
    with pytest.raises(rs.InputError, match=message):
        rs.cohort.coarsen(people, **given)
