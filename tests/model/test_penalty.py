"""Penalties: scales of other programs, unpenalised columns, factors, and what is refused."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from reference import CASES, matrix, read_table

NAMES = ["treatment", "age", "sex"]


def test_strengths_of_every_column():
    for penalty, l1, l2 in [
        (rs.L1(2.0), 2.0, 0.0),
        (rs.L2(3.0), 0.0, 3.0),
        (rs.ElasticNet(l1=2.0, l2=3.0), 2.0, 3.0),
    ]:
        found = penalty.arrays(NAMES)
        assert_array_equal(found, [[l1] * 3, [l2] * 3])
        assert penalty.strength == l1 + l2
        assert penalty.l1_ratio == l1 / (l1 + l2)


def test_unpenalised_by_name_position_or_both():
    expected = [0.0, 2.0, 0.0]
    for unpenalized in (["treatment", "sex"], [0, 2], ("treatment", 2), np.array([0, 2])):
        assert_array_equal(rs.L1(2.0, unpenalized=unpenalized).arrays(NAMES)[0], expected)
    assert_array_equal(rs.L1(2.0, unpenalized="age").arrays(NAMES)[0], [2.0, 0.0, 2.0])


def test_factors_by_name_or_for_all_columns():
    by_name = rs.ElasticNet(l1=2.0, l2=4.0, factor={"age": 0.5, 2: 3})
    in_order = rs.ElasticNet(l1=2.0, l2=4.0, factor=np.array([1, 0.5, 3]))
    for penalty in (by_name, in_order):
        assert_array_equal(penalty.arrays(NAMES), [[2, 1, 6], [4, 2, 12]])
    free = rs.L2(1.0, unpenalized=["age"], factor={"age": 7.0, "sex": 2.0})
    assert_array_equal(free.arrays(NAMES)[1], [1, 0, 2])


def test_scales_of_other_programs():
    assert_allclose(rs.L1.from_variance(1.414).strength, 1.1893, rtol=1e-4)
    assert_allclose(rs.L1.from_variance(0.01).strength, 14.1421356, rtol=1e-8)
    assert rs.L2.from_variance(0.25).strength == 4.0
    net = rs.ElasticNet.from_glmnet(0.1, 0.25, 200.0)
    assert_allclose((net.l1, net.l2), (5.0, 15.0))


@pytest.mark.parametrize(
    ("penalty", "coef"),
    [
        # scikit-survival 0.28.0, on the data of case 22 (n = 30):
        # CoxnetSurvivalAnalysis(alphas=[2 / n], l1_ratio=0.5, normalize=False, tol=1e-16)
        (
            rs.ElasticNet(l1=30 * (2 / 30) * 0.5, l2=30 * (2 / 30) * 0.5),
            [1.0564147978, -0.166407684009, 0.596319987475, 0.0, -0.080101109425],
        ),
        # the same with penalty_factor=[1, 0, 1, 3, 1]
        (
            rs.ElasticNet.from_glmnet(2 / 30, 0.5, 30, [1, 0, 1, 3, 1]),
            [1.14651512445, -0.373028136126, 0.625673281704, 0.0, -0.149453256806],
        ),
        # CoxPHSurvivalAnalysis(alpha=2, tol=1e-15)
        (
            rs.L2(2.0),
            [1.00420535405, -0.321578837986, 0.627927320506, 0.153186382233, -0.23935047241],
        ),
    ],
)
def test_scales_of_scikit_survival(penalty, coef):
    table = read_table(CASES / "22-lasso-scale-conventions" / "input.csv")
    x, y = matrix(table, [f"x{j}" for j in range(1, 6)]), rs.Surv(table["time"], table["event"])
    model = rs.Cox(penalty, tol=1e-11).fit(x, y)
    assert_allclose(model.coef_, coef, rtol=1e-7)


def test_glmnet_rescales_factors_to_mean_one():
    net = rs.ElasticNet.from_glmnet(0.5, 1.0, 10, [1, 0, 1, 3])
    assert_allclose(net.factors("abcd"), [0.8, 0, 0.8, 2.4])
    assert_allclose(net.with_strength(10.0).arrays("abcd")[0], [8, 0, 8, 24])
    named = rs.ElasticNet.from_glmnet(0.5, 1.0, 10, {"d": 3.0}, unpenalized=["b"])
    assert_allclose(named.factors("abcd"), [0.8, 0, 0.8, 2.4])
    with pytest.raises(rs.InputError, match="all are 0"):
        rs.ElasticNet.from_glmnet(0.5, 1.0, 10, [0, 0]).factors("ab")


@pytest.mark.parametrize(
    "penalty", [rs.L1(0.0), rs.L2(0.0), rs.ElasticNet(l1=1.0, l2=3.0)], ids=repr
)
def test_other_strengths_keep_the_kind(penalty):
    other = penalty.with_strength(8.0)
    assert type(other) is type(penalty)
    assert other.strength == 8.0
    assert other.l1_ratio == penalty.l1_ratio


def test_penalties_are_values():
    penalty = rs.L1(2.0, unpenalized=["a"], factor={"b": 2.0})
    assert penalty == rs.L1(2.0, unpenalized=["a"], factor={"b": 2.0})
    assert penalty != rs.L1(2.0, unpenalized=["a"])
    assert rs.L1(2.0) != rs.L2(2.0)
    assert copy.deepcopy(penalty) == pickle.loads(pickle.dumps(penalty)) == penalty
    assert repr(penalty) == "L1(2.0, unpenalized=('a',), factor={'b': 2.0})"
    assert repr(rs.ElasticNet(l1=1, l2=2)) == "ElasticNet(l1=1.0, l2=2.0)"
    with pytest.raises(AttributeError, match="cannot assign"):
        penalty.l1 = 3.0


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, "1", [1.0, 2.0]])
def test_impossible_strengths(bad):
    makers = [
        rs.L1,
        rs.L2,
        lambda s: rs.ElasticNet(l1=s, l2=0),
        lambda s: rs.ElasticNet(l1=0, l2=s),
    ]
    for make in makers:
        with pytest.raises(rs.InputError, match="must be a finite number, at least 0"):
            make(bad)
    with pytest.raises(rs.InputError, match="greater than 0"):
        rs.L1.from_variance(bad)


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_impossible_variances(bad):
    for kind in (rs.L1, rs.L2):
        with pytest.raises(rs.InputError, match="`variance` must be finite and greater than 0"):
            kind.from_variance(bad)


def test_impossible_glmnet_arguments():
    with pytest.raises(rs.InputError, match="`alpha` must lie between 0 and 1"):
        rs.ElasticNet.from_glmnet(0.1, 1.1, 10)
    with pytest.raises(rs.InputError, match="`sum_of_weights` must be finite and greater"):
        rs.ElasticNet.from_glmnet(0.1, 1.0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"unpenalized": ["tretment"]}, "'tretment' was not found.*\n.*did you mean 'treatment'"),
        ({"unpenalized": [3]}, "3 columns are numbered from 0 to 2"),
        ({"unpenalized": [-1]}, "3 columns are numbered from 0 to 2"),
        ({"factor": {"agee": 2.0}}, "'agee' was not found.*`factor`.*\n.*'age'"),
        ({"factor": [1.0, 2.0]}, "one number for each of the 3 columns, but it has 2"),
    ],
)
def test_unknown_columns(arguments, message):
    with pytest.raises(rs.InputError, match=message):
        rs.L1(1.0, **arguments).arrays(NAMES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"factor": [[1.0, 2.0]]}, "one dimension"),
        ({"factor": [1.0, -2.0]}, "`factor` of column 1 must be a finite number"),
        ({"factor": {"a": np.nan}}, "`factor` of column 'a' must be a finite number"),
        ({"unpenalized": [1.5]}, "1.5 is neither"),
        ({"unpenalized": [True]}, "True is neither"),
    ],
)
def test_impossible_columns_and_factors(arguments, message):
    with pytest.raises(rs.InputError, match=message):
        rs.L1(1.0, **arguments)


def test_a_number_is_never_silently_a_name():
    keys = ["1", "2", "3"]
    assert_array_equal(rs.L1(1.0, unpenalized=["1"]).factors(keys), [0, 1, 1])
    assert_array_equal(rs.L1(1.0, unpenalized=[0]).factors(keys), [0, 1, 1])
    with pytest.raises(rs.InputError, match="position 1 or the column named '1'"):
        rs.L1(1.0, unpenalized=[1]).factors(keys)
    assert_array_equal(rs.L1(1.0, unpenalized=[1]).factors(["0", "1", "2"]), [1, 0, 1])
