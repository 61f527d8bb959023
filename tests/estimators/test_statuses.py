"""What a fit says about itself."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import riskset as rs


def test_statuses_are_warnings(data):
    x, y = data
    with pytest.warns(ConvergenceWarning, match="stopped after 1 step with"):
        model = rs.Cox(max_iter=1).fit(x, y)
    assert model.status_ == "max_iter"
    assert model.kkt_ > 1e-8
    assert model.notes_[-1].code == "max_iter"
    with pytest.warns(rs.ConvergenceWarning, match="stopped after 1 step with") as caught:
        rs.Cox(max_iter=1).fit(x, y)
    assert issubclass(caught[0].category, rs.RisksetWarning)


def test_all_zero_is_an_answer(data):
    x, y = data
    model = rs.Cox(rs.L1(1e6)).fit(x, y)
    assert model.status_ == "converged"
    assert not model.coef_.any()
    assert model.kkt_ == 0
    assert model.log_likelihood_ == model.null_log_likelihood_ == -model.objective_
    assert model.score(x, y) == 0.5


def test_no_covariates(data):
    _, y = data
    for x in (np.empty((120, 0)), sparse.csr_array((120, 0)), pd.DataFrame(index=range(120))):
        model = rs.Cox().fit(x, y)
        assert (model.status_, model.kkt_) == ("converged", 0.0)
        assert model.log_likelihood_ == model.null_log_likelihood_
        assert model.variance_.shape == (0, 0)
        assert model.tests_.lr.df == 0
        assert len(model.summary()) == 0
    survival = model.predict_survival_function(np.empty((1, 0)), np.sort(y["time"]))
    assert_allclose(survival[0], nelson_aalen_survival(y), rtol=1e-12)


def nelson_aalen_survival(y):
    time = np.sort(y["time"])
    hazard = [
        sum(
            (y["time"][y["event"]] == t).sum() / (y["time"] >= t).sum()
            for t in np.unique(y["time"][y["event"]])
            if t <= s
        )
        for s in time
    ]
    return np.exp(-np.array(hazard))


def test_near_ties_are_pointed_out():
    time = np.array([0.3, 0.1 + 0.2, 1.0, 2.0, 3.0, 4.0])
    with pytest.warns(rs.RisksetWarning, match="1 neighbouring times.*time_digits"):
        model = rs.Cox().fit(np.array([[0.0], [1], [0], [1], [1], [0]]), time)
    assert [note.code for note in model.notes_] == ["near_ties"]


def test_coefficients_that_nothing_determines_are_not_ratios_of_1():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(80, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "sum": x.sum(axis=1), "one": 1.0})
    y = rs.Surv(rng.integers(1, 40, 80), rng.integers(0, 2, 80))
    with pytest.warns(rs.RisksetWarning):
        table = rs.Cox().fit(frame, y).summary()
    lost = table.loc[["sum", "one"]]
    assert lost.isna().all(axis=None)
    assert table.loc[["a", "b"]].notna().all(axis=None)
    # A penalty determines every coefficient.
    assert rs.Cox(rs.L2(1.0)).fit(frame, y).summary()["coef"].notna().all()
