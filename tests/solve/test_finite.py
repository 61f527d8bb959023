"""The proof that estimates are finite: never given where they are not, always where they are."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from parameters import rest_is_slow
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.cox import CoxLoss
from riskset.model.logistic import LogisticLoss
from riskset.model.loss import Loss
from riskset.solve import aliasing
from riskset.solve.finiteness import (
    FreeColumns,
    ProofFrame,
    RoundingBounds,
    ScoreAndInformation,
    extents,
)
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem
from solve.problems import RUNTIME, Random, random_problems, separated_problems


def problems() -> dict[int, Random]:
    """Those with columns that are not penalised."""
    return {seed: problem for seed, problem in random_problems().items() if problem.free.any()}


def finite_problems() -> list[Random]:
    return [p for seed, p in problems().items() if seed not in separated_problems()]


def span_at(problem: Random, coef: np.ndarray) -> float | None:
    """Of the Newton step of the free columns, in the user's units; None without information."""
    design, loss = problem.design, problem.loss
    prepared = Problem.prepare(design, loss)
    aliased, _ = aliasing.find_aliased(
        prepared, problem.l1 / design.scale, problem.l2 / design.scale / design.scale
    )
    columns = np.flatnonzero(problem.free & ~aliased)
    if columns.size == 0:
        return None
    eta = problem.x @ coef + loss.offset
    free = FreeColumns.at(design, loss, eta, columns)
    if not free.are_estimable(prepared.spread[columns], loss.n_events):
        return None
    gradient = design.cross(loss.evaluate(eta).residual, columns, runtime=loss.runtime)
    step = free.step(gradient)
    span = free.span(step, loss)
    ranges, _ = extents(design, loss, columns)
    rounding = RoundingBounds.of(loss, ranges)
    assert span <= free.most(np.abs(gradient), ranges, rounding) * (1 + 1e-9)
    return span


def test_one_column_by_hand() -> None:
    # One event among two rows at x = 1 and 0, at b: g = 1 - p, I = p (1 - p), so s = 1 / p > 1.
    x = np.array([[1.0], [0.0]])
    outcome = Outcome.build(np.array([1.0, 2.0]), np.array([1, 0]))
    problem = Random(x, outcome, "breslow", np.zeros(1), np.zeros(1))
    p = Fraction(3, 4)
    span = span_at(problem, np.array([np.log(3)]))
    assert span is not None
    assert_allclose(span, float(1 / p), rtol=1e-12)


def test_a_step_spans_at_least_one_wherever_an_estimate_is_infinite() -> None:
    for seed, problem in separated_problems().items():
        rng = np.random.default_rng(seed)
        for size in (0.0, 0.5, 2.0):
            span = span_at(problem, size * rng.normal(size=problem.spread.size) / problem.spread)
            assert span is None or span >= 1 - 1e-6, seed


def test_it_is_given_at_every_finite_solution() -> None:
    given = []
    for problem in finite_problems():
        solution = fit_by_newton(problem.design, problem.loss, problem.l1, problem.l2, tol=1e-9)
        if solution.status == "converged":
            span = span_at(problem, solution.coef)
            given.append(span is not None and span < 1e-2)
    assert len(given) > 100
    assert np.mean(given) > 0.95


@pytest.mark.parametrize("tol", rest_is_slow([0.3, 1e-3, 1e-6], 1))
def test_loose_fits_find_the_same_infinite_estimates(tol: float) -> None:
    for seed, problem in problems().items():
        tight = fit_by_newton(problem.design, problem.loss, problem.l1, problem.l2, tol=1e-10)
        loose = fit_by_newton(problem.design, problem.loss, problem.l1, problem.l2, tol=tol)
        if "max_iter" in (tight.status, loose.status):
            continue
        assert (loose.infinite == tight.infinite).all(), seed
        again = fit_by_newton(
            problem.design, problem.loss, problem.l1, problem.l2, tol=tol, start=loose
        )  # begins at its end
        assert (again.infinite == tight.infinite).all(), seed


def known_at(problem: Random, eta: np.ndarray) -> ScoreAndInformation | None:
    """Of all columns that vary, as a Newton step has them."""
    prepared = Problem.prepare(problem.design, problem.loss)
    columns = np.flatnonzero(prepared.informative)
    if not problem.free[columns].any():
        return None
    now = problem.loss.evaluate(eta)
    gradient = problem.design.cross(now.residual, columns, runtime=problem.loss.runtime)
    information = problem.loss.information(problem.design, eta, columns)
    return ScoreAndInformation(columns, information, gradient, problem.loss.intercept_drift(now))


def test_no_known_information_proves_an_infinite_estimate_to_be_finite() -> None:
    n_known = 0
    for seed, problem in separated_problems().items():
        rng = np.random.default_rng(seed)
        for size in (0.0, 0.5, 2.0, 10.0):
            coef = size * rng.normal(size=problem.spread.size) / problem.spread
            known = known_at(problem, problem.x @ coef + problem.loss.offset)
            if known is None:
                continue
            free = known.columns[problem.free[known.columns]]
            frame = ProofFrame.where_known(problem.design, problem.loss, known, free)
            assert frame is not None, seed
            assert not frame.is_proof(), seed
            n_known += 1
    assert n_known > 100, n_known


def test_known_information_of_other_columns_is_no_frame() -> None:
    problem = finite_problems()[0]
    known = known_at(problem, problem.loss.offset)
    assert known is not None
    fewer = known._replace(columns=known.columns + 1)
    assert ProofFrame.where_known(problem.design, problem.loss, fewer, known.columns) is None


def test_the_last_newton_step_is_proof_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=(400, 2)), rng.random((400, 2)) < 0.4])
    time = rng.exponential(np.exp(-x @ [0.5, -0.2, 0.3, 0.0]))
    stratum, event = rng.integers(0, 3, 400), rng.random(400) < 0.5
    late = Outcome.build(time, event, entry=time * rng.random(400), stratum=stratum)
    losses: list[Loss] = [
        CoxLoss(Outcome.build(time, event), "efron", RUNTIME),
        CoxLoss(late, "breslow", RUNTIME),
        LogisticLoss.of(event, RUNTIME, weight=rng.choice([0.5, 2.0], 400)),
    ]
    none = np.zeros(4)
    for loss in losses:
        expected = fit_by_newton(Design.from_dense(x), loss, none, none)
        with monkeypatch.context() as patch:
            patch.setattr(ProofFrame, "at", None)  # the proof that evaluates the likelihood anew
            found = fit_by_newton(Design.from_dense(x), loss, none, none)
        assert found.status == expected.status == "converged"
        assert_array_equal(found.coef, expected.coef)


def test_extents_are_those_of_the_rows_at_risk() -> None:
    x = np.array([[9.0], [1.0], [2.0], [-3.0], [5.0], [0.5]])
    time, stratum = np.array([1.0, 2, 3, 4, 5, 6]), np.array([0, 0, 0, 1, 1, 1])
    weight = np.array([0.0, 1, 1, 1, 1, 1])  # the first row is never at risk
    event = np.array([1, 1, 0, 1, 1, 0])
    for strata, range_, size in ((None, 8.0, 5.0), (stratum, 8.0, 5.0)):
        data = Outcome.build(time, event, weight=weight, stratum=strata)
        design = Design.from_dense(x)
        ranges, sizes = extents(design, CoxLoss(data, "breslow", RUNTIME), np.array([0]))
        stored = design.stored()[1:, 0] * design.scale[0]
        assert_allclose(ranges * design.scale, range_)
        assert_allclose(sizes * design.scale, np.abs(stored).max())
        assert size <= 9.0
