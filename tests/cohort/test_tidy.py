"""Tidying covariates: the worked example, and every rule by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from cohort.golden import TINY, table

EXPECTED = TINY["tidy"]


def tiny():
    """The covariates of the example as a design, its stored zeros among them, and analyses."""
    entries, ref = table("tiny_tidy"), table("tiny_tidy_ref")
    keys = [int(key) for key in ref["covariate_id"]]
    column = {key: j for j, key in enumerate(keys)}
    x = sp.csc_array(
        (
            entries["covariate_value"],
            (
                entries["row_id"].astype(int) - 1,
                [column[int(key)] for key in entries["covariate_id"]],
            ),
        ),
        shape=(EXPECTED["n"], len(keys)),
    )
    assert (x.data == 0).sum() == 3
    design = rs.Design.from_sparse(x, keys=keys)
    return design, dict(zip(keys, ref["analysis_id"].astype(int).tolist(), strict=True))


def tidied(**options):
    design, analysis = tiny()
    options = {"analysis": analysis, "min_fraction": EXPECTED["min_fraction"]} | options
    return rs.cohort.tidy(design, **options)


def test_the_example():
    found = tidied()
    assert set(found.kept) == set(EXPECTED["kept"])
    assert found.kept == found.design.keys
    assert set(found.removed_redundant) == set(EXPECTED["removed_redundant"])
    assert found.removed_rare == (EXPECTED["removed_rare"],)
    assert found.removed_empty == (EXPECTED["removed_empty"],)
    assert {str(k): f for k, f in found.norm_factors.items()} == EXPECTED["norm_factor"]
    given = dict(zip(tiny()[0].keys, tiny()[0].to_dense().T, strict=True))
    for j, key in enumerate(found.kept):
        factor = EXPECTED["norm_factor"].get(str(key), 1)
        assert_array_equal(found.design.to_dense()[:, j], given[key] / factor)
    assert found.aliases == {}
    # The ids themselves tell the analyses of this example.
    assert tidied(analysis="ohdsi").kept == found.kept
    assert "6 covariates kept; removed: 1 empty, 2 redundant, 1 rare, 0 copies" in repr(found)


def test_the_count_that_counts_is_the_larger_one():
    assert EXPECTED["min_count"] == np.floor(EXPECTED["min_fraction"] * EXPECTED["n"])
    assert tidied(min_fraction=0, min_count=2).kept == tidied().kept
    # 2001, with 4, is one of a partition and stays.
    found = tidied(min_count=5)
    assert set(found.removed_rare) == {4003, 5003, 2004}
    assert 2001 in found.kept
    assert tidied(min_fraction=0.0).removed_rare == ()


def test_each_step_can_be_left_out_or_overruled():
    found = tidied(remove_redundant=False)
    assert found.removed_redundant == ()
    assert {1001, 2001, 3002} <= set(found.kept)
    assert tidied(normalise=False).norm_factors == {}
    assert_array_equal(
        tidied(normalise=False).design.to_dense()[:, tidied().kept.index(1004)],
        [30, 35, 40, 45, 50, 55, 60, 65, 70, 80],
    )
    found = tidied(keep_ids=[1001, 3002, 4003])
    assert found.removed_redundant == (2001,)  # the next most frequent
    assert found.removed_rare == ()
    assert tidied(keep_ids=[1001, 2001]).removed_redundant == (3002,)
    # Without analyses there are no partitions, and 2001 is not exempt.
    assert tidied(analysis=None, min_count=5).removed_redundant == (3002,)
    assert 2001 in tidied(analysis=None, min_count=5).removed_rare


def test_of_equally_frequent_columns_the_smallest_key_goes():
    x = np.array([[1, 0], [0, 1]] * 3)
    for keys, gone in (([20, 3], 3), ([3, 20], 3), (["b", "a"], "a")):
        design = rs.Design.from_dense(x, keys=keys)
        assert rs.cohort.tidy(design, analysis=[0, 0]).removed_redundant == (gone,)


def test_partitions_by_brute_force(rng):
    for _ in range(30):
        n, p = int(rng.integers(2, 8)), 6
        x = (rng.random((n, p)) < 0.4).astype(float)
        group = rng.integers(0, 2, p)
        if rng.random() < 0.7:  # one of the columns of each row
            own = np.flatnonzero(group == 0)
            x[:, own] = 0
            if own.size:
                x[np.arange(n), rng.choice(own, n)] = 1
        found = rs.cohort.tidy(x, analysis=group)
        count, gone = x.sum(axis=0), set()
        everybody = count == n
        gone |= set(np.flatnonzero(everybody))
        for g in (0, 1):
            own = [j for j in np.flatnonzero(group == g) if 0 < count[j] < n]
            if own and (x[:, own].sum(axis=1) == 1).all():
                gone.add(max(own, key=lambda j: (count[j], -j)))
        assert {int(key[1:]) for key in found.removed_redundant} == gone


def test_copies():
    rng = np.random.default_rng(4)
    ones = (rng.random((50, 2)) < 0.3).astype(float)
    some = np.where(rng.random((50, 2)) < 0.3, rng.normal(size=(50, 2)), 0)
    many = rng.normal(size=(50, 2))
    x = np.c_[ones, some, many]
    near = x.copy()
    near[np.flatnonzero(near[:, 3])[0], 3] += 1e-9
    both = np.c_[x, near, x[:, [2]]]
    keys = [100 + j for j in range(6)] + [50 + j for j in range(6)] + [7]
    design = rs.Design.from_dense(both, keys=keys)
    assert rs.cohort.tidy(design).aliases == {}
    found = rs.cohort.tidy(design, remove_duplicates=True)
    assert found.aliases == {100: 50, 101: 51, 102: 7, 52: 7, 104: 54, 105: 55}
    assert found.kept == (103, 50, 51, 53, 54, 55, 7)
    found = rs.cohort.tidy(design, remove_duplicates=True, keep_ids=[52, 104])
    assert found.aliases == {100: 50, 101: 51, 102: 52, 7: 52, 54: 104, 105: 55}


def test_a_column_of_values_may_be_a_copy_of_zeros_and_ones_among_some_people():
    x = np.array([[1, 1], [0, 0], [1, 1], [0, 0], [0, 3.0]])
    people = rs.cohort.restrict(rs.cohort.Population([1, 0, 1, 0, 1]), x[:, 1] < 2, "without")
    assert rs.cohort.tidy(x, remove_duplicates=True).aliases == {}
    found = rs.cohort.tidy(x, people, remove_duplicates=True)
    assert found.aliases == {"x1": "x0"}
    assert found.design.n_rows == 5


def test_everything_is_counted_among_the_people_kept():
    x = np.c_[np.ones(8), [1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1], np.arange(8.0)]
    x[7, 0] = 0
    people = rs.cohort.Population([1, 0] * 4)
    some = rs.cohort.restrict(people, np.arange(8) < 7, "the last leaves")
    whole, part = rs.cohort.tidy(x, people), rs.cohort.tidy(x, some)
    assert whole.kept == ("x0", "x1", "x2", "x3")
    assert (part.removed_redundant, part.removed_empty) == (("x0",), ("x2",))
    assert (whole.norm_factors, part.norm_factors) == ({"x3": 7.0}, {"x3": 6.0})
    assert part.design.to_dense()[7, 1] == pytest.approx(7 / 6)


def test_columns_of_every_kind_on_one_scale(rng):
    n = 9000  # more than a block of rows
    sparse = np.where(rng.random((n, 3)) < 0.05, rng.normal(size=(n, 3)) * [1e-6, 1, 1e6], 0)
    dense = rng.normal(size=(n, 2)) * [1e-3, 1e3] + [5, 1e5]
    x = np.c_[sparse, dense, -np.abs(sparse[:, 0]), rng.random(n) < 0.2]
    found = rs.cohort.tidy(x)
    expected = x / np.abs(x).max(axis=0)
    assert_allclose(found.design.to_dense(), expected, rtol=1e-14, atol=0)
    # Sparse values are divided with one rounding.
    assert_array_equal(found.design.to_dense()[:, [0, 1, 2, 5, 6]], expected[:, [0, 1, 2, 5, 6]])
    coef = rng.normal(size=7)
    assert_allclose(found.design.dot(coef), x @ found.original_coef(coef), rtol=1e-10, atol=1e-10)


def test_new_people_on_the_same_scale(rng):
    pl = pytest.importorskip("polars")
    x = pl.DataFrame({"age": [30.0, 80, 50], "none": [0, 0, 0], "ill": [1, 0, 0]})
    found = rs.cohort.tidy(x)
    new = pl.DataFrame({"ill": [0, 1], "more": [3, 4], "age": [40.0, 100]})
    assert found.kept == ("age", "ill")
    assert_array_equal(found.apply(new).to_dense(), [[0.5, 0], [1.25, 1]])
    assert found.apply(new).names == ("age", "ill")
    with pytest.raises(rs.InputError, match="covariate 'age' was not found"):
        found.apply(new.drop("age"))


def test_fits_do_not_depend_on_it():
    cohort = rs.load_rhc()
    found = rs.cohort.tidy(cohort, min_fraction=0)
    assert rs.cohort.tidy(cohort).removed_rare == ("fac_cat2_Colon_Cancer",)  # of 2 people
    y = rs.Surv(cohort.outcome().time, cohort.outcome().event)
    ours, theirs = rs.Cox().fit(found.design, y), rs.Cox().fit(cohort.design, y)
    assert_allclose(found.original_coef(ours.coef_), theirs.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"min_fraction": 1}, "`min_fraction` must be"),
        ({"min_count": -1}, "`min_count` must be"),
        ({"keep_ids": ["x9"]}, "covariate 'x9' was not found"),
        ({"analysis": [1]}, "one label for each of the 2 covariates, but it has 1"),
        ({"analysis": {"x0": 1}}, "covariate 'x1' was not found"),
        ({"analysis": "ohdsi"}, "whole numbers, but there is 'x0'"),
        ({"analysis": "omop"}, "`analysis` must be 'ohdsi'"),
        ({"people": rs.cohort.Population([1, 0, 1])}, "2 rows, but the population has 3"),
    ],
)
def test_messages(options, words):
    with pytest.raises(rs.InputError, match=words):
        rs.cohort.tidy([[1.0, 2.0], [0.0, 1.0]], **options)


def test_missing_values_are_refused():
    with pytest.raises(rs.CohortError, match="'x0' contains NaN: 1 of 2 rows") as caught:
        rs.cohort.tidy([[np.nan], [1.0]])
    assert caught.value.code == "BadCovariates"
