"""At an infinite estimate everything is that of the limiting likelihood.

With no event among the exposed the coefficient is -inf, and the limit is the fit to the others.
"""

import numpy as np
import pytest

from infer.problems import make
from riskset.data.design import Design
from riskset.infer import proportionality, residuals, variance, wald
from riskset.solve.fit import fit_by_newton


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_no_event_among_the_exposed(ties, late):
    problem = make(120, seed=51, n_times=25, late=late, n_strata=2)
    outcome = problem.outcome
    exposed = ~outcome.is_event & (np.arange(120) % 2 == 0)
    x = np.column_stack([problem.x[:, 0], exposed, problem.x[:, 1]])
    others = np.flatnonzero(~exposed)
    part = problem.take(others)

    loss, design = problem.loss(ties), Design.from_dense(x)
    fit = fit_by_newton(design, loss, np.zeros(3), np.zeros(3), tol=1e-11)
    assert fit.status == "infinite_estimate"
    assert fit.loss.limit is not None
    alone, small = part.loss(ties), Design.from_dense(x[np.ix_(others, [0, 2])])
    eta = small.dot(fit.coef[[0, 2]])

    got = variance.model_covariance(fit.loss, design, fit.eta)
    want = variance.model_covariance(alone, small, eta)
    np.testing.assert_array_equal(got.identified, [True, False, True])
    finite = np.array([0, 2])
    np.testing.assert_allclose(got.matrix[np.ix_(finite, finite)], want.matrix, rtol=1e-8)
    robust = variance.robust_covariance(fit.loss, design, fit.eta, got.inverse, finite)
    want_robust = variance.robust_covariance(alone, small, eta, want.inverse)
    np.testing.assert_allclose(robust.matrix, want_robust.matrix, rtol=1e-7)

    for kind in (residuals.martingale_residuals, residuals.deviance_residuals):
        rows = kind(fit.loss, fit.eta)
        np.testing.assert_allclose(rows[others], kind(alone, eta), atol=1e-8)
        np.testing.assert_array_equal(rows[exposed], 0.0)
    a = residuals.schoenfeld_residuals(fit.loss, design, fit.eta)
    b = residuals.schoenfeld_residuals(alone, small, eta)
    np.testing.assert_array_equal(a.row, others[b.row])
    np.testing.assert_allclose(a.values[:, finite], b.values, rtol=1e-8, atol=1e-9)

    a = proportionality.proportionality_test(fit.loss, design, fit.eta, "identity")
    b = proportionality.proportionality_test(alone, small, eta, "identity")
    np.testing.assert_allclose(a.statistic[finite], b.statistic, rtol=1e-6)
    assert np.isnan(a.statistic[1])
    assert a.global_df == 2
    # The tests of the null hypothesis look at all rows: there the exposure does carry information.
    assert wald.score_tests(fit.loss, design).score.df == 3
