"""Paths: every point certified, the first at the edge of zero."""

import numpy as np
from numpy.testing import assert_allclose

from riskset.solve.fit import fit_by_newton
from riskset.solve.path import iterate_path, strength_max
from solve.problems import sparse_problem


def test_strength_max_is_the_edge_of_zero() -> None:
    problem = sparse_problem(1)
    factor = np.ones(problem.l1.size)
    factor[[3, 9]] = 0.0
    factor[4] = 2.5
    top, at_top, _ = strength_max(problem.design, problem.loss, factor)
    assert at_top.coef[factor == 0].all()
    assert not at_top.coef[factor > 0].any()
    none = np.zeros(factor.size)
    above = fit_by_newton(problem.design, problem.loss, 1.0001 * top * factor, none)
    below = fit_by_newton(problem.design, problem.loss, 0.9999 * top * factor, none)
    assert not above.coef[factor > 0].any()
    assert np.count_nonzero(below.coef[factor > 0]) == 1


def test_every_point_is_optimal_by_itself() -> None:
    problem = sparse_problem(2)
    none = np.zeros(problem.l1.size)
    factor = problem.spread
    top = strength_max(problem.design, problem.loss, factor).strength
    strengths = top * np.geomspace(1, 0.01, 25)
    path = list(iterate_path(problem.design, problem.loss, [(s * factor, none) for s in strengths]))
    sizes = [int(np.count_nonzero(point.coef)) for point in path]
    assert sizes[0] == 0
    assert sizes[-1] > 20
    for s, point in zip(strengths, path, strict=True):
        problem.l1 = s * factor
        assert point.status == "converged"
        assert problem.kkt(point.coef) <= 1e-7
    problem.l1 = strengths[12] * factor
    alone = fit_by_newton(problem.design, problem.loss, problem.l1, none)
    assert_allclose(path[12].objective, alone.objective, rtol=1e-12)
