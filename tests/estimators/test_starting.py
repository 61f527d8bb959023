"""Starting coefficients, and the likelihood at coefficients that are given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from reference import GOLDEN, matrix, read_json, read_table
from storages import Store, each_storage

EXACT = read_json(GOLDEN / "exact_ties.json")
LUNG = read_table(GOLDEN / "lung.csv")
NAMES = ["age", "sex", "ph.ecog"]
KEPT = ~np.isnan(matrix(LUNG, ["time", "event", *NAMES])).any(axis=1)
X = matrix(LUNG, NAMES)[KEPT]
Y = rs.Surv(LUNG["time"][KEPT], LUNG["event"][KEPT])


def test_r_without_iterations() -> None:
    golden = EXACT["lung_quarters_at"]
    y = rs.Surv(np.ceil(Y["time"] / 90), Y["event"])
    found = rs.Cox(ties="exact").log_likelihood(golden["coef"], X, y)
    assert_allclose(found, golden["loglik"], rtol=1e-12)


def test_the_likelihood_of_a_fit_is_that_at_its_coefficients() -> None:
    offset, strata = np.sin(X[:, 0]), X[:, 1]
    model = rs.Cox(rs.L1(2.0), ties="efron").fit(X, Y, offset=offset, strata=strata)
    for one in (model, rs.Cox(ties="efron")):
        found = one.log_likelihood(model.coef_, X, Y, offset=offset, strata=strata)
        assert_allclose(found, model.log_likelihood_, rtol=1e-12)
    null = model.log_likelihood({}, X, Y, offset=offset, strata=strata)
    assert_allclose(null, model.null_log_likelihood_, rtol=1e-12)


@each_storage
@pytest.mark.parametrize("penalty", [None, rs.L1(5.0)])
def test_a_start_does_not_change_the_answer(store: Store, penalty: rs.L1 | None) -> None:
    y = rs.Surv(Y["time"], Y["event"])
    cold = rs.Cox(penalty, tol=1e-11).fit(store(X), y)
    for start in (cold.coef_, [5.0, -3.0, 2.0], {"x1": 0.4}, {"x0": -1e3}):
        model = rs.Cox(penalty, tol=1e-11).fit(store(X), y, init=start)
        assert model.status_ == "converged"
        assert_allclose(model.coef_, cold.coef_, rtol=1e-8)
    assert rs.Cox(penalty).fit(store(X), y, init=cold.coef_).n_iter_ < cold.n_iter_


def test_a_start_does_not_hide_an_infinite_estimate() -> None:
    x, y = [[0.0], [0.0], [1.0], [1.0]], rs.Surv([3, 4, 1, 2], [1, 1, 1, 1])
    for start in ([-2.0], [30.0]):
        with pytest.warns(rs.ConvergenceWarning):
            assert rs.Cox().fit(x, y, init=start).coef_[0] == np.inf
    assert_allclose(
        rs.Cox(firth=True, tol=1e-11).fit(x, y, init=[5.0]).coef_,
        rs.Cox(firth=True, tol=1e-11).fit(x, y).coef_,
        rtol=1e-7,
    )


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (
            [1.0],
            "`(init|coef)` must have one coefficient for each .* are 3, but it has 1",
        ),
        (0.3, "must be an array of coefficients, or a mapping .* but it is 0.3"),
        ({"smoking": 1.0}, "smoking"),
        ({"x0": np.inf}, "finite number"),
        ([0.0, np.nan, 1.0], "`(init|coef)` must be finite"),
    ],
)
def test_bad_coefficients_are_refused(start: object, words: str) -> None:
    with pytest.raises(rs.InputError, match=words):
        rs.Cox().fit(X, Y, init=start)
    with pytest.raises(rs.InputError, match=words):
        rs.Cox().log_likelihood(start, X, Y)


def test_cross_validation_has_no_start() -> None:
    with pytest.raises(rs.InputError, match="init"):
        rs.CoxCV().fit(X, Y, init=[0.0, 0.0, 0.0])
