"""Impossible data, parameters and arguments are refused in words."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import riskset as rs


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones(5), "two dimensions.*shape is .5,."),
        (np.array([[1.0], [2], [np.nan], [4], [5]]), "'x0' contains NaN.*row 2"),
        (np.array([[1.0], [2], [np.inf], [4], [5]]), "'x0' contains infinity.*row 2"),
        (np.array([["a"], ["b"], ["c"], ["d"], ["e"]]), "row 0, column 0 has .*'a'"),
        (np.eye(5) * 1j, "Complex data not supported"),
        (pd.DataFrame({"a": [1.0, 2, None, 4, 5]}), "column 'a'.*row 2"),
    ],
)
def test_impossible_covariates(x, message):
    with pytest.raises(rs.InputError, match=message):
        rs.Cox().fit(x, np.arange(1.0, 6.0))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": 1.0}, "`penalty` must be None, L1, L2 or ElasticNet"),
        ({"penalty": rs.L1(1.0, unpenalized=["x9"])}, "'x9' was not found"),
        (
            {"ties": "efrom"},
            "`ties` must be 'breslow', 'efron' or 'exact', but it is 'efrom'.\n.*'efron'",
        ),
        (
            {"ties": ["efron"]},
            r"`ties` must be 'breslow', 'efron' or 'exact', but it is \['efron'\]",
        ),
        ({"tol": 0.0}, "`tol` must be between 0 and 1"),
        ({"tol": None}, "`tol` must be between 0 and 1"),
        ({"tol": "1e-8"}, "`tol` must be between 0 and 1"),
        ({"tol": np.nan}, "`tol` must be between 0 and 1"),
        ({"max_iter": np.nan}, "`max_iter` must be a whole number"),
        ({"max_iter": None}, "`max_iter` must be a whole number"),
        ({"max_iter": 0}, "`max_iter` must be a whole number"),
        ({"max_iter": 2.5}, "`max_iter` must be a whole number"),
        ({"solver": "cdd"}, "`solver` must be 'newton' or 'ccd', but it is 'cdd'.\n.*'ccd'"),
        ({"device": "tpu"}, "`device` must be 'auto', 'cpu' or 'cuda', but it is 'tpu'"),
        ({"n_threads": 0}, "`n_threads` must be"),
        ({"n_threads": np.nan}, "`n_threads` must be a whole number"),
        ({"n_threads": np.inf}, "`n_threads` must be a whole number"),
        ({"n_threads": "2"}, "`n_threads` must be a whole number"),
        ({"progress": "yes"}, "`progress` must be True, False or None, but it is 'yes'"),
        ({"cause": 2}, "has code 2"),
    ],
)
def test_impossible_parameters(data, parameters, message):
    with pytest.raises(rs.InputError, match=message):
        rs.Cox(**parameters).fit(*data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_weight": -np.ones(120)}, "`sample_weight` must not be negative"),
        ({"sample_weight": np.zeros(120)}, "`sample_weight` is zero for every row"),
        ({"sample_weight": np.ones(119)}, "`sample_weight` must have one value for each"),
        ({"strata": np.ones(119)}, "`strata` must have one label for each"),
        ({"offset": np.full(120, np.nan)}, "`offset` must be finite"),
        ({"cluster": [None] * 120}, "`cluster` must not be missing"),
    ],
)
def test_impossible_arguments(data, arguments, message):
    with pytest.raises(rs.InputError, match=message):
        rs.Cox().fit(*data, **arguments)


def test_nothing_works_before_the_fit(data):
    x, y = data
    model = rs.Cox()
    calls = [
        lambda: model.predict(x),
        lambda: model.score(x, y),
        lambda: model.predict_survival_function(x, [1]),
        lambda: model.summary(),
        lambda: model.confidence_interval(),
        lambda: model.residuals(x, y),
        lambda: model.standard_error_,
        lambda: model.tests_,
        lambda: model.save("nowhere"),
    ]
    for call in calls:
        with pytest.raises(NotFittedError):
            call()
