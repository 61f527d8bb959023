"""Resamples: who is drawn, what is estimated, and the acceleration of BCa intervals."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from parameters import rest_is_slow
from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.infer.bootstrap import (
    ReplicateEstimate,
    ResampledUnits,
    acceleration,
    resample_estimates,
)
from riskset.infer.bootstrap_with_tuning import TunedPenalty, retuned_estimates
from riskset.infer.crossval.evaluator import PenaltyEvaluator
from riskset.infer.crossval.folds import given_folds
from riskset.infer.crossval.scores import CensoringFrom, ScoreKind, Scorer
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import CoxLoss
from riskset.model.finegray import FineGrayLoss
from riskset.model.loss import Loss
from riskset.model.penalty import L2
from riskset.solve import replicates as engine
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem
from riskset.solve.result import Solution
from storages import Store, each_storage, in_some_storage

INF = np.inf

N, P = 120, 4


class Cohort:
    """Rows with every complication, of which some can be taken, repeatedly."""

    def __init__(self, kind: str = "breslow", seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.kind = kind
        self.x = rng.normal(size=(N, P))
        self.x[:, 0] = rng.random(N) < 0.4
        risk = np.exp(0.7 * self.x[:, 0] - 0.5 * self.x[:, 1])
        self.time = np.ceil(15 * rng.exponential(1 / risk)) + 1
        self.event = rng.choice([0, 1, 1, 2] if self.is_finegray else [0, 1, 1], N)
        self.stratum = rng.integers(0, 3, N)
        self.weight = rng.choice([0.0, 0.5, 1.0, 2.0], N)
        self.offset = rng.normal(size=N) / 3
        self.cluster = rng.integers(0, N // 3, N)

    @property
    def is_finegray(self) -> bool:
        return self.kind.startswith("finegray")

    @property
    def design(self) -> Design:
        return Design.from_dense(self.x)

    def loss(self, rows: np.ndarray, weight: np.ndarray, n_threads: int = 1) -> Loss:
        outcome = Outcome.build(
            self.time[rows],
            self.event[rows],
            weight=weight[rows],
            stratum=self.stratum[rows],
            offset=self.offset[rows],
            cause=1,
        )
        runtime = Runtime(n_threads)
        if not self.is_finegray:
            return CoxLoss(outcome, "efron" if self.kind == "efron" else "breslow", runtime)
        weights = "none" if self.kind == "finegray-unweighted" else "case"
        return FineGrayLoss(
            outcome, CensoringDistribution.estimate(outcome, weights=weights), runtime
        )

    def whole(self, n_threads: int = 1) -> Loss:
        return self.loss(np.arange(N), self.weight, n_threads)


PENALTIES = {
    "none": (np.zeros(P), np.zeros(P)),
    "l1": (np.array([0, 1.5, 1.5, 1.5]), np.zeros(P)),
    "l2": (np.zeros(P), np.array([0, 3.0, 3.0, 0.5])),
}


def strengths(design: Design, penalty: str) -> tuple[np.ndarray, np.ndarray]:
    l1, l2 = PENALTIES[penalty]
    return l1[: design.n_features], l2[: design.n_features]


def fitted(design: Design, loss: Loss, penalty: str = "none") -> tuple[Problem, Solution]:
    problem = Problem.prepare(design, loss)
    l1, l2 = strengths(design, penalty)
    return problem, fit_by_newton(design, loss, l1, l2, tol=1e-11, problem=problem)


def estimates(
    design: Design,
    loss: Loss,
    resampling: ResampledUnits,
    replicates: int = 6,
    seed: int = 3,
    penalty: str = "none",
    columns: np.ndarray | None = None,
) -> list[ReplicateEstimate]:
    problem, solution = fitted(design, loss, penalty)
    columns = np.arange(design.n_features) if columns is None else columns
    l1, l2 = strengths(design, penalty)
    found = resample_estimates(
        problem, solution, l1, l2, resampling, columns, replicates=replicates, seed=seed, tol=1e-10
    )
    return list(found)


def coefs(found: list[ReplicateEstimate]) -> np.ndarray:
    return np.array([estimate.coef for estimate in found])


@pytest.fixture(params=[False, True], ids=["alone", "lanes"])
def lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit replicates several at a time, too, although the data are small."""
    if request.param:
        monkeypatch.setattr(engine, "MIN_SHARED_ROWS", 1)


# ---------------------------------------------------------------------------------- resampling


def test_as_many_rows_are_drawn_as_there_are_and_none_of_weight_0() -> None:
    cohort = Cohort()
    resampling = ResampledUnits.of(cohort.whole().outcome)
    absent = cohort.weight == 0
    assert 0 < absent.sum() < N
    counts = np.array([resampling.counts(1, k) for k in range(2000)])
    assert resampling.n_units == N - absent.sum()
    assert_array_equal(counts.sum(axis=1), resampling.n_units)
    assert not counts[:, absent].any()
    # Multinomial: mean 1, variance 1 - 1/m, within four standard errors of 2000 draws.
    m = resampling.n_units
    assert np.abs(counts[:, ~absent].mean(axis=0) - 1).max() < 4.5 / np.sqrt(2000)
    assert_allclose(counts[:, ~absent].var(axis=0).mean(), 1 - 1 / m, rtol=0.02)


def test_clusters_are_drawn_whole() -> None:
    cohort = Cohort()
    resampling = ResampledUnits.of(cohort.whole().outcome, cohort.cluster)
    counts = resampling.counts(1, 0)
    drawn = 0
    for c in np.unique(cohort.cluster[cohort.weight > 0]):
        rows = (cohort.cluster == c) & (cohort.weight > 0)
        assert np.unique(counts[rows]).size == 1
        drawn += counts[rows][0]
    assert drawn == resampling.n_units == np.unique(cohort.cluster[cohort.weight > 0]).size


def test_strata_keep_their_sizes() -> None:
    cohort = Cohort()
    present = cohort.weight > 0
    resampling = ResampledUnits.of(cohort.whole().outcome, within_strata=True)
    counts = [resampling.counts(1, k) for k in range(20)]
    for s in range(3):
        rows = present & (cohort.stratum == s)
        assert {int(c[rows].sum()) for c in counts} == {int(rows.sum())}
    assert len({tuple(c) for c in counts}) == 20


def test_clusters_across_strata_cannot_be_drawn_within_them() -> None:
    cohort = Cohort()
    outcome = cohort.whole().outcome
    with pytest.raises(InputError, match="has rows in more than one"):
        ResampledUnits.of(outcome, cohort.cluster, within_strata=True)
    own = cohort.stratum * N + cohort.cluster  # clusters of their own in each stratum
    counts = ResampledUnits.of(outcome, own, within_strata=True).counts(1, 0)
    for s in range(3):
        rows = (cohort.weight > 0) & (cohort.stratum == s)
        first = np.unique(own[rows], return_index=True)[1]
        assert counts[rows][first].sum() == first.size


def test_one_row_is_nothing_to_draw_from() -> None:
    outcome = Outcome.build([1.0, 2.0], [1, 1], weight=[1.0, 0.0])
    with pytest.raises(InputError, match="only one row of positive weight"):
        ResampledUnits.of(outcome)


# ----------------------------------------------------------------------------------- estimates


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("kind", ["breslow", "finegray", "finegray-unweighted"])
@pytest.mark.parametrize("by_cluster", [False, True])
def test_a_replicate_is_the_fit_of_the_rows_drawn(
    kind: str, penalty: str, by_cluster: bool
) -> None:
    """Repeated literally, with their weights; in Fine and Gray's model G is estimated from them."""
    cohort = Cohort(kind)
    loss = cohort.whole()
    resampling = ResampledUnits.of(loss.outcome, cohort.cluster if by_cluster else None)
    found = estimates(cohort.design, loss, resampling, 3, penalty=penalty)
    for k, estimate in enumerate(found):
        rows = np.repeat(np.arange(N), resampling.counts(3, k))
        _, alone = fitted(
            Design.from_dense(cohort.x[rows]), cohort.loss(rows, cohort.weight), penalty
        )
        assert estimate.status == alone.status == "converged"
        assert_allclose(estimate.coef, alone.coef, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("censoring", ["training", "full"])
@pytest.mark.parametrize("score", ["held_out", "difference"])
@pytest.mark.parametrize("kind", ["breslow", "finegray", "finegray-unweighted"])
def test_folds_of_a_resample_are_those_of_the_rows_drawn(
    kind: str, score: ScoreKind, censoring: CensoringFrom
) -> None:
    """Repeated literally, all copies of a row in one fold; draws count in the censoring as rows."""
    cohort, fold, penalty = Cohort(kind), np.arange(N) % 3, L2(2.0)
    loss = cohort.whole()
    resampling = ResampledUnits.of(loss.outcome)

    def scores(problem: Problem, ids: np.ndarray) -> list[float]:
        folds = given_folds(ids, problem.loss.outcome)
        scorer = Scorer(problem.design, problem.loss, folds, score, censoring)
        scored = PenaltyEvaluator(problem, scorer, 1e-11, 200).score(penalty)
        return [replicate.score for replicate in scored.replicates]

    found = []

    def choose(problem: Problem) -> TunedPenalty:
        found.append(scores(problem, fold))
        return TunedPenalty(penalty, None)

    problem = Problem.prepare(cohort.design, loss)
    list(retuned_estimates(problem, choose, resampling, np.arange(P), replicates=3, seed=3))
    for k in range(3):
        rows = np.repeat(np.arange(N), resampling.counts(3, k))
        design = Design.from_dense(cohort.x[rows])
        alone = Problem.prepare(design, cohort.loss(rows, cohort.weight))
        assert_allclose(found[k], scores(alone, fold[rows]), rtol=1e-7)


@each_storage
def test_a_row_drawn_twice_is_one_event_of_twice_the_weight_to_efron(store: Store) -> None:
    cohort = Cohort("efron")
    resampling = ResampledUnits.of(cohort.whole().outcome)
    (estimate, *_) = estimates(store(cohort.x), cohort.whole(), resampling, 2)
    weight = cohort.weight * resampling.counts(3, 0)
    rows = np.flatnonzero(weight)
    _, alone = fitted(store(cohort.x[rows]), cohort.loss(rows, weight))
    assert_allclose(estimate.coef, alone.coef, rtol=1e-6, atol=1e-8)


@in_some_storage("kind", ["breslow", "finegray"])
@pytest.mark.usefixtures("lanes")
def test_same_bits_for_any_number_of_threads_and_replicates(store: Store, kind: str) -> None:
    cohort = Cohort(kind)
    resampling = ResampledUnits.of(cohort.whole().outcome)
    many = coefs(estimates(store(cohort.x), cohort.whole(1), resampling, 80))
    for n_threads in (2, 3):
        few = coefs(estimates(store(cohort.x), cohort.whole(n_threads), resampling, 50))
        assert_array_equal(few, many[:50])
    other = coefs(estimates(store(cohort.x), cohort.whole(1), resampling, 5, seed=4))
    assert (other != many[:5]).all()


def test_estimates_may_be_infinite_or_absent() -> None:
    """Two exposed rows, one with an event: a resample may hold either alone, or neither."""
    rng = np.random.default_rng(5)
    n = 40
    time = np.arange(1.0, n + 1)
    x = np.zeros((n, 2))
    x[:, 1] = rng.normal(size=n)
    x[[10, 20], 0] = 1
    event = np.ones(n, dtype=int)
    event[20] = 0
    loss = CoxLoss(Outcome.build(time, event), "breslow", Runtime(1))
    resampling = ResampledUnits.of(loss.outcome)
    found = estimates(Design.from_dense(x), loss, resampling, 60, seed=1)
    seen = set()
    for k, estimate in enumerate(found):
        counts = resampling.counts(1, k)
        failing, censored = counts[10] > 0, counts[20] > 0
        assert np.isfinite(estimate.coef[1])
        if not failing and not censored:
            assert estimate.status == "not_estimable"
            assert np.isnan(estimate.coef[0])
        elif not failing:
            assert estimate.status == "infinite_estimate"
            assert estimate.coef[0] == -INF
        else:
            assert estimate.status == "converged"
            assert np.isfinite(estimate.coef[0])
        seen.add((failing, censored))
    assert len(seen) == 4


def test_a_resample_without_events_has_no_estimate() -> None:
    loss = CoxLoss(Outcome.build([1.0, 2.0, 3.0], [1, 0, 0]), "breslow", Runtime(1))
    resampling = ResampledUnits.of(loss.outcome)
    found = estimates(Design.from_dense([[1.0], [0.5], [1.5]]), loss, resampling, 30)
    without = np.array([resampling.counts(3, k)[0] == 0 for k in range(30)])
    assert 0 < without.sum() < 30
    assert_array_equal(np.isnan(coefs(found)[without, 0]), True)
    assert {found[k].status for k in np.flatnonzero(without)} == {"not_estimable"}


# -------------------------------------------------------------------------------- acceleration


def by_differences(
    fit: Callable[[np.ndarray], np.ndarray], unit: np.ndarray, pool: np.ndarray
) -> np.ndarray:
    """Acceleration from refits with the weight of one unit a little up and down."""
    h, units = 1e-4, np.unique(unit[unit >= 0])
    u = []
    for c in units:
        shift = h * (unit == c)
        u.append((fit(1 + shift) - fit(1 - shift)) / (2 * h))
    values = np.array(u)
    for s in np.unique(pool):
        values[pool == s] -= values[pool == s].mean(axis=0)
    return np.asarray((values**3).sum(axis=0) / (6 * (values**2).sum(axis=0) ** 1.5))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("kind", ["breslow", "efron", "finegray"])
@pytest.mark.parametrize("drawn", rest_is_slow(["clusters", "rows", "strata"], 1))
def test_acceleration_is_the_skewness_of_derivatives(kind: str, penalty: str, drawn: str) -> None:
    cohort = Cohort(kind)
    if kind == "efron":
        # Its number of tied events ignores weights, so that they are smooth in them all the same.
        cohort.weight = np.maximum(cohort.weight, 0.5)
    loss = cohort.whole()
    problem, solution = fitted(cohort.design, loss, penalty)
    l1, l2 = PENALTIES[penalty]
    resampling = ResampledUnits.of(
        loss.outcome,
        cohort.cluster if drawn == "clusters" else None,
        within_strata=drawn == "strata",
    )

    def fit(factor: np.ndarray) -> np.ndarray:
        changed = cohort.loss(np.arange(N), cohort.weight * factor)
        return fit_by_newton(cohort.design, changed, l1, l2, tol=1e-13, start=solution).coef

    active = solution.coef != 0
    assert active.sum() >= 2
    found = acceleration(problem, solution, l2, (l1 == 0) & (l2 == 0), resampling, np.arange(P))
    pool = resampling.first
    expected = by_differences(fit, resampling.unit, pool)
    # crr's influence of a row on G neglects that censorings are tied, as here.
    near = 1e-3 if cohort.is_finegray else 1e-7
    assert_allclose(found[active], expected[active], rtol=1e-4, atol=near)
    assert_array_equal(found[~active], 0.0)


def test_acceleration_of_what_has_no_estimate() -> None:
    cohort = Cohort()
    cohort.x[:, 2] = cohort.x[:, 1]  # repeats another
    cohort.x[:, 3] = (cohort.event == 0) * 1.0  # never fails
    loss = cohort.whole()
    problem, solution = fitted(cohort.design, loss)
    assert solution.aliased[2]
    assert solution.coef[3] == -INF
    found = acceleration(
        problem, solution, np.zeros(P), np.ones(P, dtype=bool),
        ResampledUnits.of(loss.outcome), np.arange(P),
    )  # fmt: skip
    assert_array_equal(np.isnan(found), [False, False, True, True])
