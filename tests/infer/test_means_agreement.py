"""Fast risk-set means equal their formulas on every hard problem."""

import inspect

import numpy as np
import pytest

from infer.problems import PROBLEMS, make
from riskset.kernels import means_cpu, means_ref

TOLERANCE = {"rtol": 1e-12, "atol": 1e-13}

WIDE = PROBLEMS | {
    f"late_{seed}": make(90, seed=seed, late=True, n_strata=1 + seed % 5, n_times=3 * seed + 1)
    for seed in range(8)
}

each_problem = pytest.mark.parametrize("problem", WIDE.values(), ids=WIDE)


def in_risk_order(problem, q):
    risk = problem.outcome.risk
    x = np.ascontiguousarray(problem.x[risk.order][:, :q])
    return x, problem.eta[risk.order], risk


def same(fast, slow):
    assert len(fast) == len(slow)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, **TOLERANCE)


@pytest.mark.parametrize("q", [0, 1, 3])
@each_problem
def test_risk_set_means(problem, q):
    args = in_risk_order(problem, q)
    same(means_cpu.risk_set_means(*args), means_ref.risk_set_means(*args))


@pytest.mark.parametrize("efron", [False, True])
@each_problem
def test_tie_terms_and_follow_up(problem, efron):
    x, eta, risk = in_risk_order(problem, 2)
    sizes = means_ref.risk_set_means(x, eta, risk)
    args = (sizes.log_rest, sizes.log_tied, risk.group_events, risk.group_tied, efron)
    terms = means_ref.tie_terms(*args)
    same(means_cpu.tie_terms(*args), terms)
    args = (sizes.mean_rest, sizes.mean_tied, terms.log_hazard, terms.log_hazard_tied, risk)
    same(means_cpu.follow_up_means(*args), means_ref.follow_up_means(*args))
    args = (terms.log_hazard, risk.starts_stratum)
    same([means_cpu.cumulate(*args)], [means_ref.cumulate(*args)])


def test_a_row_without_risk_counts_for_nothing():
    x, eta, risk = in_risk_order(PROBLEMS["everything"], 3)
    rows = np.flatnonzero(risk.event_weight == 0)[:4]
    never = eta.copy()
    never[rows] = -np.inf
    weight = risk.weight.copy()
    weight[rows] = 0.0
    absent = means_cpu.risk_set_means(x, eta, risk._replace(weight=weight))
    same(means_cpu.risk_set_means(x, never, risk), absent)


def test_signatures_are_equal():
    assert means_cpu.__all__ == means_ref.__all__
    for name in means_ref.__all__:
        fast = getattr(means_cpu, name)
        fast = getattr(fast, "py_func", fast)
        assert inspect.signature(fast) == inspect.signature(getattr(means_ref, name))


def test_inputs_are_untouched_and_bits_repeat():
    x, eta, risk = in_risk_order(PROBLEMS["everything"], 3)
    before = x.copy(), eta.copy()
    first = means_cpu.risk_set_means(x, eta, risk)
    second = means_cpu.risk_set_means(x, eta, risk)
    assert np.array_equal(x, before[0])
    assert np.array_equal(eta, before[1])
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a, b)
