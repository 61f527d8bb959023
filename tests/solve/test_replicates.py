"""Replicates: the answers of separate fits on the rows of each."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from riskset._runtime import Runtime
from riskset._types import Rows
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import CoxLoss
from riskset.model.finegray import FineGrayLoss
from riskset.model.loss import Loss
from riskset.solve import curvature
from riskset.solve import replicates as engine
from riskset.solve import replicates_bundle as shared_lanes
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem
from riskset.solve.replicates import Replicate, ReplicateWeights, fit_replicates
from riskset.solve.replicates_host import HostLanes
from riskset.solve.result import Solution
from storages import Store, in_some_storage

N, P = 400, 12
KINDS = ("breslow", "efron", "entry", "finegray", "finegray-groups")


class Cohort:
    """Rows of which some can be taken."""

    def __init__(self, kind: str, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.kind = kind
        self.x = (rng.random((N, P)) < rng.uniform(0.05, 0.5, P)) * 1.0
        self.x[:, 9:] = rng.normal(size=(N, 3)) * [1, 10, 0.1] + [0, 100, 0]
        risk = np.exp(0.6 * self.x[:, 0] - 0.5 * self.x[:, 9])
        self.time = np.ceil(20 * rng.exponential(1 / risk))
        self.event = rng.choice([0, 1, 2] if kind.startswith("fine") else [0, 1, 1], N)
        self.stratum = rng.integers(0, 3, N)
        self.weight = rng.choice([0.5, 1.0, 2.0], N)
        self.offset = rng.normal(size=N) / 3
        self.entry = self.time - rng.integers(1, 20, N) if kind == "entry" else None
        self.group = rng.integers(0, 2, N)

    def loss(self, rows: np.ndarray, weight: Rows, runtime: Runtime | None = None) -> Loss:
        outcome = Outcome.build(
            self.time[rows],
            self.event[rows],
            weight=weight[rows],
            stratum=self.stratum[rows],
            offset=self.offset[rows],
            entry=None if self.entry is None else self.entry[rows],
            cause=1,
        )
        runtime = runtime or Runtime(1)
        if not self.kind.startswith("fine"):
            return CoxLoss(outcome, "efron" if self.kind == "efron" else "breslow", runtime)
        group = self.group[rows] if self.kind == "finegray-groups" else None
        return FineGrayLoss(outcome, CensoringDistribution.estimate(outcome, group=group), runtime)


def penalties(kind: str) -> tuple[np.ndarray, np.ndarray]:
    l1, l2 = np.full(P, 1.5), np.full(P, 0.5)
    l1[0] = l2[0] = 0.0
    return l1, l2


def replicates(
    cohort: Cohort,
    multipliers: list[Rows],
    runtime: Runtime,
    store: Store = Design.from_dense,
) -> list[Replicate]:
    loss = cohort.loss(np.arange(N), cohort.weight, runtime)
    l1, l2 = penalties(cohort.kind)
    problem = Problem.prepare(store(cohort.x), loss)
    whole = fit_by_newton(problem.design, loss, l1, l2, problem=problem)
    parts = [
        lambda m=m: ReplicateWeights(cohort.weight * m, cohort.weight * m) for m in multipliers
    ]
    return list(fit_replicates(problem, whole, l1, l2, parts, tol=1e-10, separation=True))


def multipliers(seed: int, n: int) -> list[Rows]:
    """Folds left out, and resamples."""
    rng = np.random.default_rng(seed)
    fold = rng.integers(0, n, N)
    folds = [(fold != k) * 1.0 for k in range(n)]
    return folds + [rng.multinomial(N, np.full(N, 1 / N)) * 1.0 for _ in range(n)]


@pytest.fixture(params=["alone", "lanes", "lanes with a curvature of their own"])
def lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether replicates are fitted eight at a time, although the data are small."""
    if request.param != "alone":
        monkeypatch.setattr(engine, "MIN_SHARED_ROWS", 1)
        monkeypatch.setattr(curvature, "EXACT_WORK", 0)
    if "own" in request.param:
        monkeypatch.setattr(shared_lanes, "MIN_STEPS_TO_JUDGE", 1)
        monkeypatch.setattr(shared_lanes, "MAX_STEPS_TO_GO", 1e-9)
    return request.param != "alone"


@in_some_storage("kind", KINDS)
@pytest.mark.usefixtures("lanes")
def test_a_replicate_is_a_fit_on_its_rows(store: Store, kind: str) -> None:
    cohort = Cohort(kind)
    l1, l2 = penalties(kind)
    chosen = multipliers(3, 4)
    for m, found in zip(chosen, replicates(cohort, chosen, Runtime(2), store), strict=True):
        rows = np.flatnonzero(m)
        alone = fit_by_newton(
            store(cohort.x[rows]),
            cohort.loss(rows, cohort.weight * m),
            l1,
            l2,
            tol=1e-11,
        )
        assert found.status == alone.status == "converged"
        assert found.kkt <= 1e-10
        assert_allclose(found.coef, alone.coef, rtol=1e-6, atol=1e-9)
        assert_allclose(found.log_likelihood, alone.log_likelihood, rtol=1e-10)


@in_some_storage("kind", KINDS)
@pytest.mark.usefixtures("lanes")
def test_any_number_of_threads_gives_the_same_bits(store: Store, kind: str) -> None:
    cohort = Cohort(kind)
    chosen = multipliers(5, 5)
    one = replicates(cohort, chosen, Runtime(1), store)
    three = replicates(cohort, chosen, Runtime(3), store)
    few = replicates(cohort, chosen[:3], Runtime(2), store)
    for a, b in zip(one, three, strict=True):
        assert_array_equal(a.coef, b.coef)
        assert a.log_likelihood == b.log_likelihood
    for a, b in zip(one, few, strict=False):
        assert_array_equal(a.coef, b.coef)


@pytest.mark.usefixtures("lanes")
def test_infinite_estimates_are_found_where_asked_for() -> None:
    cohort = Cohort("breslow")
    never = (cohort.x[:, 0] == 0) | (cohort.event == 0)
    found, _ = replicates(cohort, [never * 1.0, np.ones(N)], Runtime(1))
    assert found.status == "infinite_estimate"
    assert found.coef[0] == -np.inf
    assert np.isfinite(found.coef[1:]).all()


def test_censoring_of_all_rows_or_of_the_part() -> None:
    cohort = Cohort("finegray")
    loss = cohort.loss(np.arange(N), cohort.weight)
    assert isinstance(loss, FineGrayLoss)
    m = np.arange(N) % 3 != 0
    full = loss.replicate(cohort.weight * m)
    own = loss.replicate(cohort.weight * m, cohort.weight * m)
    assert_array_equal(full.censoring.own, loss.censoring.own)
    rows = np.flatnonzero(m)
    alone = cohort.loss(rows, cohort.weight)
    assert isinstance(alone, FineGrayLoss)
    assert_array_equal(own.censoring.own[rows], alone.censoring.own)
    assert not np.array_equal(own.censoring.own, full.censoring.own)


def test_g_is_carried_on_where_the_part_has_ended() -> None:
    time = np.array([1.0, 2, 3, 4, 5, 6])
    event = np.array([1, 0, 0, 2, 1, 1])
    outcome = Outcome.build(time, event, cause=1)
    loss = FineGrayLoss(outcome, CensoringDistribution.estimate(outcome), Runtime(1))
    part = np.array([1.0, 1, 1, 0, 0, 0])
    # Of the first three rows: G = 1/2 after t = 2, and 0 after t = 3.
    cut = loss.replicate(1 - part, part).censoring
    on = loss.replicate(1 - part, part, carry_on=True).censoring
    assert_array_equal(cut.own, [1, 1, 0.5, 0, 0, 0])
    assert_array_equal(on.own, [1, 1, 0.5, 0.5, 0.5, 0.5])
    assert_array_equal(on.at_events[0], [0.5, 0.5, 0.0])  # the last group closes the stratum


@pytest.mark.usefixtures("lanes")
def test_a_constant_column_alone_is_not_estimable() -> None:
    outcome = Outcome.build(np.arange(1.0, 41), np.ones(40))
    loss = CoxLoss(outcome, "breslow", Runtime(1))
    zero = np.zeros(1)
    problem = Problem.prepare(Design.from_dense(np.ones((40, 1))), loss)
    whole = fit_by_newton(problem.design, loss, zero, zero, problem=problem)
    parts = [lambda k=k: ReplicateWeights((np.arange(40) % 4 != k) * 1.0) for k in range(4)]
    found = fit_replicates(problem, whole, zero, zero, parts)
    assert {replicate.status for replicate in found} == {"not_estimable"}


def test_company_changes_no_bit_where_some_are_done_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With a loose tolerance the whole data's own weights need no step, others do.
    monkeypatch.setattr(engine, "MIN_SHARED_ROWS", 1)
    monkeypatch.setattr(
        shared_lanes, "STRONG_RULE_SHARE", 1.0
    )  # so that lanes find columns on their way
    monkeypatch.setattr(shared_lanes, "MAX_FULL_WORKING_SET", 1)
    cohort = Cohort("breslow")
    loss = cohort.loss(np.arange(N), cohort.weight)
    l1, l2 = np.full(P, 4.0), np.zeros(P)
    problem = Problem.prepare(Design.from_dense(cohort.x), loss)
    whole = fit_by_newton(problem.design, loss, l1, l2, problem=problem)
    chosen = [np.ones(N), *multipliers(9, 6)]
    makers = [lambda m=m: ReplicateWeights(cohort.weight * m) for m in chosen]
    for tol in (0.3, 0.03, 1e-4):
        together = list(fit_replicates(problem, whole, l1, l2, makers, tol=tol))
        for maker, found in zip(makers, together, strict=True):
            (alone,) = fit_replicates(problem, whole, l1, l2, [maker], tol=tol)
            assert_array_equal(alone.coef, found.coef)
            assert alone.n_iter == found.n_iter


@pytest.mark.parametrize("seed", [9, 16])
def test_a_step_that_is_halved_changes_no_bit_of_others(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some rows of forty times their weight: curvature of the whole data is far too small there.
    monkeypatch.setattr(engine, "MIN_SHARED_ROWS", 1)
    cohort, rng = Cohort("breslow"), np.random.default_rng(seed)
    loss = cohort.loss(np.arange(N), cohort.weight)
    l1, l2 = np.full(P, 0.5), np.zeros(P)
    problem = Problem.prepare(Design.from_dense(cohort.x), loss)
    whole = fit_by_newton(problem.design, loss, l1, l2, problem=problem)
    chosen = [
        np.where(rng.random(N) < 0.5, 0.0, 1.0) * np.where(rng.random(N) < 0.03, 40.0, 1.0)
        for _ in range(4)
    ]
    makers = [lambda m=m: ReplicateWeights(cohort.weight * m) for m in chosen]
    together = list(fit_replicates(problem, whole, l1, l2, makers, tol=1e-4))
    for maker, found in zip(makers, together, strict=True):
        (alone,) = fit_replicates(problem, whole, l1, l2, [maker], tol=1e-4)
        assert_array_equal(alone.coef, found.coef)


@pytest.mark.parametrize("seed", [20, 36, 44])
def test_company_changes_no_bit_where_a_lane_rests_and_goes_on(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It waits for the others until columns that it misses are looked for; its pace is still its
    # own, by which it is decided whether it gets a curvature of its own.
    monkeypatch.setattr(engine, "MIN_SHARED_ROWS", 1)
    monkeypatch.setattr(shared_lanes, "STRONG_RULE_SHARE", 1.0)
    monkeypatch.setattr(shared_lanes, "MAX_FULL_WORKING_SET", 1)
    rng = np.random.default_rng(seed)
    p = int(rng.choice([12, 30, 60]))
    x = rng.normal(size=(N, p)) + rng.choice([0.0, 1.0]) * rng.normal(size=(N, 1))
    time = np.ceil(30 * rng.exponential(np.exp(-0.4 * x[:, 0])))
    outcome = Outcome.build(time, rng.integers(0, 2, N), cause=1)
    loss = CoxLoss(outcome, "breslow", Runtime(1))
    l1, l2 = np.full(p, float(rng.choice([3, 6, 10]))), np.zeros(p)
    problem = Problem.prepare(Design.from_dense(x), loss)
    whole = fit_by_newton(problem.design, loss, l1, l2, problem=problem)
    chosen = [rng.multinomial(N, np.full(N, 1 / N)) * 1.0 for _ in range(6)]
    makers = [lambda m=m: ReplicateWeights(m) for m in [*chosen, (np.arange(N) % 5 != 0) * 1.0]]
    together = list(fit_replicates(problem, whole, l1, l2, makers, tol=1e-2))
    for maker, found in zip(makers, together, strict=True):
        (alone,) = fit_replicates(problem, whole, l1, l2, [maker], tol=1e-2)
        assert_array_equal(alone.coef, found.coef)
        assert alone.n_iter == found.n_iter


def test_a_lane_with_a_residual_near_the_largest_number_warns_of_nothing() -> None:
    bundle = object.__new__(shared_lanes.ReplicateBundle)
    bundle.tol, bundle.n_iter = 1e-9, np.full(8, shared_lanes.MIN_STEPS_TO_JUDGE)
    residual = np.full(8, 1e302)
    with np.errstate(all="raise"):
        assert bundle._is_slow(residual, residual).all()


def test_a_bad_start_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = Cohort("efron")
    m = multipliers(2, 1)[1]
    (good,) = replicates(cohort, [m], Runtime(1))
    fit = fit_by_newton

    def stuck(*args: object, start: Solution | None = None, **options: object) -> Solution:
        return fit(*args, start=start, **options | ({"max_iter": 1} if start else {}))

    monkeypatch.setattr(engine, "fit_by_newton", stuck)
    (found,) = replicates(cohort, [m], Runtime(1))
    assert found.status == "converged"
    assert_allclose(found.coef, good.coef, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["breslow", "finegray", "finegray-groups"])
def test_lanes_know_the_information_of_columns(kind: str) -> None:
    cohort, chosen = Cohort(kind), multipliers(3, 4)
    loss = cohort.loss(np.arange(N), cohort.weight)
    problem = Problem.prepare(Design.from_dense(cohort.x), loss)
    l1, l2 = penalties(kind)
    whole = fit_by_newton(problem.design, loss, l1, l2, problem=problem)
    parts = [ReplicateWeights(cohort.weight * m, cohort.weight * m) for m in chosen]
    shared = shared_lanes.BundleStart.prepare(problem, whole, l1, l2)
    lanes = HostLanes(shared, parts)
    found = shared_lanes.ReplicateBundle(shared, lanes, 1e-6, 50).solve()
    columns = np.array([0, 3, 10])
    ranges = np.ptp(problem.design.stored(columns), axis=0)
    information = lanes.information(columns, ranges)
    assert information is not None
    for k, part in enumerate(parts):
        own = loss.replicate(part.weight, part.censoring, runtime=Runtime(1))
        exact = own.information(problem.design, found.eta[:, k].copy(), columns)
        assert_allclose(information[k], exact, rtol=1e-5, atol=1e-5 * np.diag(exact).min())
    # Differences would lack digits where a value lies very far away, and be slow for many columns.
    assert lanes.information(columns, 1e6 * ranges) is None
    assert lanes.information(np.zeros(17, dtype=np.int64), np.ones(17)) is None
