"""Fits with exact ties: the numbers of R, and verdicts on infinite estimates against fractions."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from parameters import rest_is_slow
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.exact_ties import ExactTiesLoss
from riskset.solve.fit import fit_by_newton
from riskset.solve.result import Solution
from solve.test_verdict import is_right
from solve.verdict import hard_problem, is_infinite

RUNTIME = Runtime(1)


def pairs_of_ties(h: dict[str, np.ndarray]) -> list[list[Fraction]]:
    """Differences of every event and every row at risk that has no event at its time."""
    time, event = h["time"], h["event"]
    exact = [[Fraction(float(v)) for v in row] for row in h["x"]]
    out: dict[tuple[Fraction, ...], None] = {}
    for i in np.flatnonzero(event):
        rivals = (time >= time[i]) & ~(event & (time == time[i]))
        if "entry" in h:
            rivals &= h["entry"] < time[i]
        if "stratum" in h:
            rivals &= h["stratum"] == h["stratum"][i]
        for j in np.flatnonzero(rivals):
            difference = tuple(a - b for a, b in zip(exact[i], exact[j], strict=True))
            if any(difference):
                out[difference] = None
    return [list(row) for row in out]


def loss_of(h: dict[str, np.ndarray], offset: np.ndarray | None = None) -> ExactTiesLoss:
    extra = {name: h[name] for name in ("entry", "stratum") if name in h}
    offset = h["offset"] if offset is None else offset
    outcome = Outcome.build(h["time"], h["event"], offset=offset, **extra)
    return ExactTiesLoss(outcome, "exact", RUNTIME)


def fitted(x: np.ndarray, loss: ExactTiesLoss) -> Solution:
    none = np.zeros(x.shape[1])
    return fit_by_newton(Design.from_dense(x), loss, none, none, tol=1e-10)


@pytest.mark.portability
@pytest.mark.parametrize("n", rest_is_slow([40, 120], 1))
def test_no_verdict_is_wrong_and_few_are_missing(n: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(n):
        h = hard_problem(seed)
        if not h["event"].any():
            continue
        solution, truth = fitted(h["x"], loss_of(h)), is_infinite(pairs_of_ties(h))
        assert is_right(solution.status, truth), (seed, solution.status, truth)
        counts[solution.status] += 1
    assert counts["infinite_estimate"] > n / 6
    assert counts["converged"] > n / 6
    assert counts["undecided"] <= n / 30
    assert counts["max_iter"] <= n / 24


def test_ties_are_separated_where_breslow_sees_none() -> None:
    # Both events of the first time have the larger values, and neither the largest of all at risk
    # in every pair of events: Breslow's estimate is finite, the conditional one is not.
    x = np.array([[3.0], [2.0], [1.0], [0.0]])
    outcome = Outcome.build([1.0, 1.0, 2.0, 2.0], [1, 1, 0, 0])
    solution = fitted(x, ExactTiesLoss(outcome, "exact", RUNTIME))
    assert solution.status == "infinite_estimate"
    assert solution.coef[0] == np.inf
    assert solution.log_likelihood == 0.0


def test_what_the_limit_leaves_is_fitted() -> None:
    # At time 1 two of three rows with x1 = 1 fail, and one with x1 = 2, which fails for sure as x1
    # goes to infinity; which two of the three do depends on x2.
    x = np.array([[2.0, 0.3], [1.0, 1.0], [1.0, 0.5], [1.0, 0.8], [0.0, 2.0], [0.0, 0.1]])
    outcome = Outcome.build(np.ones(6), [1, 1, 1, 0, 0, 0])
    solution = fitted(x, ExactTiesLoss(outcome, "exact", RUNTIME))
    assert solution.status == "infinite_estimate"
    assert solution.coef[0] == np.inf
    rest = Outcome.build(np.ones(3), [1, 1, 0])
    alone = fitted(x[1:4, 1:], ExactTiesLoss(rest, "exact", RUNTIME))
    assert alone.status == solution.status or alone.status == "converged"
    assert_allclose(solution.log_likelihood, alone.log_likelihood, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", rest_is_slow([30, 60], 1))
def test_the_limit_is_the_limit(n: int) -> None:
    # No point does better, and points far out along one covariate come near it.
    n_single = 0
    for seed in range(n):
        h = hard_problem(seed)
        if not h["event"].any():
            continue
        h["offset"] = np.round(h["offset"] / 100, 2)
        solution = fitted(h["x"], loss_of(h))
        infinite = ~np.isfinite(solution.coef)
        if solution.status != "infinite_estimate" or infinite.sum() != 1:
            continue
        n_single += 1
        far = h["offset"] + h["x"][:, infinite][:, 0] * np.sign(solution.coef[infinite]) * 1e4
        rest = h["x"][:, ~infinite]
        loss = loss_of(h, far)
        if rest.shape[1]:
            value = fitted(rest, loss).log_likelihood
        else:
            value = loss.evaluate(far).log_likelihood
        assert value <= solution.log_likelihood + 1e-7 * max(1, abs(value)), seed
        assert_allclose(value, solution.log_likelihood, rtol=1e-6, atol=1e-6, err_msg=str(seed))
    assert n_single >= n / 15


def test_columns_that_vary_only_where_all_fail_say_nothing() -> None:
    x = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.5]])
    outcome = Outcome.build([2.0, 2.0, 1.0, 1.0, 1.0], [1, 1, 1, 0, 0], stratum=[1, 1, 0, 0, 0])
    solution = fitted(x, ExactTiesLoss(outcome, "exact", RUNTIME))
    assert "constant" in {note.code for note in solution.notes}
    assert solution.coef[0] == 0.0
