"""The proof that estimates are finite: never given where they are not, always where they are."""

import itertools
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
from riskset.model.ordered_columns import OrderedColumns
from riskset.solve import aliasing, separation
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
from solve.verdict import is_infinite, pairs_of_survival


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


def test_numbers_of_rows_at_risk_are_within_their_range() -> None:
    """Whatever other rows have: bounds on rounding rest on it."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 2))
    stratum, time = rng.integers(0, 3, 60), rng.integers(1, 9, 60).astype(float)
    event = rng.random(60) < 0.4
    x[0] = 1e12
    weight = np.append(0.0, np.ones(59))
    data = Outcome.build(time, event, weight=weight, stratum=stratum)
    loss, design = CoxLoss(data, "breslow", RUNTIME), Design.from_dense(x)
    columns = np.arange(2)
    z = OrderedColumns(design, data, loss.risk).of(columns)[loss.risk.weight > 0]
    assert (np.abs(z).max(axis=0) <= extents(design, loss, columns)[0]).all()


@pytest.mark.portability
def test_a_column_that_differs_only_in_rows_that_count_for_nothing() -> None:
    """The last column goes to minus infinity, by rows that soon have no share of any risk set.

    What is left of its information is rounding, in any order of the columns.
    """
    x = np.array([
        [0, -.15, -.83, 0], [1, -1.05, 1.23, 0], [0, .14, -1.05, 0], [0, 1.22, -.44, -.56],
        [0, -.32, 1.14, 0], [1, -.14, 1.63, 0], [1, .71, -.72, 0], [0, -.01, 1.23, 0],
        [0, 1.1, .97, 1.4], [1, 1.25, 1.39, 0], [1, -1.42, 1.13, 0], [0, .68, -.91, .03],
        [0, -1.37, .17, 0], [0, -1.34, -2.4, 0], [0, -.34, .59, 0], [0, 0, .08, 0],
        [1, -.18, .43, 0], [1, -1.8, 1.08, 0], [0, -1.02, .46, 0], [1, -.52, -.13, 0],
        [0, .19, 2.35, 0],
    ])  # fmt: skip
    time = np.array([4.0, 1, 6, 2, 1, 3, 3, 3, 5, 9, 2, 3, 1, 8, 1, 10, 1, 2, 2, 1, 1])
    event = np.isin(np.arange(21), [0, 1, 2, 13, 14, 15, 16, 19, 20])
    stratum = np.array([2, 0, 2, 1, 1, 0, 1, 1, 2, 0, 2, 0, 0, 1, 0, 2, 0, 2, 1, 2, 2])
    offset = np.array([
        .29, -.1, .48, .12, -.26, .24, 1.54, -1.43, -.55, .52, .47, .26, .69, .52, -.66, -.45, .56,
        -.19, 1.28, .99, .23,
    ])  # fmt: skip
    pairs = pairs_of_survival(x, time, event, stratum=stratum)
    assert is_infinite(pairs)
    data = Outcome.build(time, event, stratum=stratum, offset=offset)
    none = np.zeros(4)
    for order in itertools.permutations(range(4)):
        design = Design.from_dense(x[:, order])
        found = fit_by_newton(design, CoxLoss(data, "efron", RUNTIME), none, none, tol=1e-10)
        assert found.status == "infinite_estimate", order
        assert found.infinite[order.index(3)] == -1
        assert np.isfinite(np.delete(found.coef, order.index(3))).all()


def test_a_score_of_zero_that_is_no_proof_leaves_the_estimate_undecided() -> None:
    """Both columns say the same, so that the information has no inverse."""
    data = Outcome.build(np.ones(2), np.ones(2, dtype=int))
    design = Design.from_dense(np.array([[0.0, 0.0], [1.0, 1.0]]))
    problem = Problem.prepare(design, CoxLoss(data, "breslow", RUNTIME))
    found = separation.find_recession(
        problem, np.ones(2, dtype=bool), np.zeros(2), hint=np.zeros(2), reached=None
    )
    assert found.direction is None
    assert not found.is_decided
