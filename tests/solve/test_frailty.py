"""Shared frailties against dense matrices, numerical derivatives and integrals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import gammaln

from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.cluster_curvature import ClusterEntries, shared_variance
from riskset.model.cox import CoxLoss
from riskset.model.frailty import FRAILTIES, GammaFrailty
from riskset.solve import cluster_inverse, frailty_newton
from riskset.solve.cluster_inverse import invert, linked_clusters
from riskset.solve.fit import fit_by_newton
from riskset.solve.frailty import FrailtyFit, fit_shared_frailty

N_ROWS, N_CLUSTERS = 120, 15


def sample(
    *, late: bool = False, strata: int = 1, weighted: bool = False, seed: int = 0
) -> tuple[Outcome, np.ndarray, np.ndarray]:
    """Rows with tied times, their covariates and clusters, some of which have no event."""
    draw = np.random.default_rng(seed)
    time = draw.integers(2, 20, N_ROWS).astype(float)
    outcome = Outcome.build(
        time,
        draw.integers(0, 2, N_ROWS),
        entry=np.floor(time * draw.random(N_ROWS) * 0.9) if late else None,
        weight=draw.integers(0, 3, N_ROWS) if weighted else None,
        stratum=draw.integers(0, strata, N_ROWS),
    )
    return outcome, draw.normal(size=(N_ROWS, 2)), draw.integers(0, N_CLUSTERS, N_ROWS)


def row_curvature(outcome: Outcome, eta: np.ndarray, efron: bool) -> np.ndarray:
    """The negative second derivative (n, n) of the log partial likelihood, as the formula reads."""
    n = outcome.n_rows
    entry = np.full(n, -1.0) if outcome.entry is None else outcome.entry
    r, out = outcome.weight * np.exp(eta), np.zeros((n, n))
    is_event = outcome.is_event & (outcome.weight > 0)
    for s in np.unique(outcome.stratum):
        for t in np.unique(outcome.time[is_event & (outcome.stratum == s)]):
            there = (outcome.stratum == s) & (entry < t) & (outcome.time >= t)
            tied = is_event & (outcome.stratum == s) & (outcome.time == t)
            m, total = int(tied.sum()), float(outcome.weight[tied].sum())
            for k in range(m if efron else 1):
                p = there * r * np.where(tied & efron, 1.0 - k / m, 1.0)
                p = p / p.sum()
                out += total / (m if efron else 1) * (np.diag(p) - np.outer(p, p))
    return out


SAMPLES: dict[str, dict[str, Any]] = {
    "plain": {},
    "late": {"late": True},
    "strata": {"strata": 3},
    "all": {"late": True, "strata": 2, "weighted": True},
}


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("name", SAMPLES)
def test_shared_variance_of_clusters(name: str, ties: Any) -> None:
    outcome, x, cluster = sample(**SAMPLES[name])
    loss, eta = CoxLoss(outcome, ties, Runtime(1)), x[:, 0]
    z = np.eye(N_CLUSTERS)[cluster]
    dense = z.T @ row_curvature(outcome, eta, ties == "efron") @ z
    expected = np.bincount(cluster, loss.evaluate(eta).expected, N_CLUSTERS)
    entries = ClusterEntries.of(loss.risk, cluster, N_CLUSTERS)
    shared = shared_variance(loss, eta, entries)
    assert_allclose(expected - shared, dense.diagonal(), rtol=1e-9, atol=1e-12)


def fitted(
    outcome: Outcome, x: np.ndarray, cluster: np.ndarray, kind: Any, ties: Any, **options: Any
) -> FrailtyFit:
    design, loss = Design.from_dense(x), CoxLoss(outcome, ties, Runtime(1))
    zero = np.zeros(x.shape[1])
    base = fit_by_newton(design, loss, zero, zero, tol=1e-11)
    return fit_shared_frailty(design, loss, base, cluster, N_CLUSTERS, kind, tol=1e-11, **options)


@pytest.mark.parametrize("kind", FRAILTIES)
@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("name", SAMPLES)
def test_maximum_and_variances_by_dense_matrices(name: str, ties: Any, kind: Any) -> None:
    """Newton's method on all coefficients and frailties together, with the whole matrix."""
    outcome, x, cluster = sample(**SAMPLES[name])
    theta, distribution = 0.7, FRAILTIES[kind]
    loss = CoxLoss(outcome, ties, Runtime(1))
    columns = np.hstack([x, np.eye(N_CLUSTERS)[cluster]])
    b = np.zeros(2 + N_CLUSTERS)
    for _ in range(30):
        eta = columns @ b
        curvature = columns.T @ row_curvature(outcome, eta, ties == "efron") @ columns
        slope = columns.T @ loss.evaluate(eta).residual
        slope[2:] -= distribution.slope(b[2:], theta)
        penalty = np.zeros(b.size)
        penalty[2:] = distribution.curvature(b[2:], theta)
        whole = curvature + np.diag(penalty)
        b = b + np.linalg.solve(whole, slope)
    inverse = np.linalg.inv(whole)
    found = fitted(outcome, x, cluster, kind, ties, variance=theta)
    assert found.variances is not None
    assert_allclose(found.solution.coef, b[:2], rtol=1e-7, atol=1e-9)
    assert_allclose(found.w, b[2:], rtol=1e-7, atol=1e-9)
    assert_allclose(np.ptp(found.solution.eta - columns @ b), 0.0, atol=1e-8)
    assert_allclose(found.variances.covariance, inverse[:2, :2], rtol=1e-7, atol=1e-10)
    sandwich = inverse @ curvature @ inverse
    assert_allclose(found.variances.sandwich, sandwich[:2, :2], rtol=1e-7, atol=1e-10)
    assert_allclose(found.variances.w_variance, inverse.diagonal()[2:], rtol=1e-7)
    df = np.trace((curvature @ inverse)[2:, 2:])
    assert_allclose(found.variances.df, df, rtol=1e-8)
    assert_allclose(found.variances.trace, np.trace(inverse[2:, 2:]), rtol=1e-8)
    if kind == "lognormal":
        _, volume = np.linalg.slogdet(theta * whole[2:, 2:])
        value = loss.evaluate(columns @ b).log_likelihood - distribution.penalty(b[2:], theta)
        assert_allclose(found.integrated, value - volume / 2, rtol=1e-12)


@pytest.mark.parametrize("kind", FRAILTIES)
def test_optimum_is_certified_by_its_slopes(kind: Any) -> None:
    """No step of coefficients or frailties is better, and `kkt` is the slope that is left."""
    outcome, x, cluster = sample(seed=4)
    found = fitted(outcome, x, cluster, kind, "breslow", variance=0.5)
    loss, distribution = CoxLoss(outcome, "breslow", Runtime(1)), FRAILTIES[kind]

    def value(beta: np.ndarray, w: np.ndarray) -> float:
        eta = x @ beta + w[cluster]
        return loss.evaluate(eta).log_likelihood - distribution.penalty(w, 0.5)

    best, beta = value(found.solution.coef, found.w), found.solution.coef
    assert_allclose(-found.solution.objective, best, rtol=1e-12)
    draw = np.random.default_rng(1)
    for _ in range(20):
        b, v = draw.normal(size=2), draw.normal(size=N_CLUSTERS)
        up, down = (value(beta + h * b, found.w + h * v) for h in (1e-4, -1e-4))
        assert up < best
        assert down < best
        assert abs(up - down) < 1e-9
    assert found.solution.kkt < 1e-11


@pytest.mark.parametrize("kind", FRAILTIES)
def test_derivatives_of_penalties(kind: str) -> None:
    distribution, w, h = FRAILTIES[kind], np.linspace(-2, 2, 7), 1e-6
    for theta in (0.1, 3.0):
        units = np.eye(w.size) * h
        slope = [
            (distribution.penalty(w + u, theta) - distribution.penalty(w - u, theta)) / (2 * h)
            for u in units
        ]
        bend = (distribution.slope(w + h, theta) - distribution.slope(w - h, theta)) / (2 * h)
        assert_allclose(distribution.slope(w, theta), slope, rtol=1e-6, atol=1e-6)
        assert_allclose(distribution.curvature(w, theta), bend, rtol=1e-7)
        assert distribution.penalty(np.zeros(3), theta) == 0.0


@pytest.mark.parametrize("kind", FRAILTIES)
def test_mean_survival_is_an_integral(kind: str) -> None:
    theta, hazard = 0.6, np.array([[0.0, 0.1, 2.0]])

    def density(z: float) -> float:
        if kind == "gamma":
            nu = 1 / theta
            return float(np.exp(nu * np.log(nu) + (nu - 1) * np.log(z) - nu * z - gammaln(nu)))
        return float(np.exp(-(np.log(z) ** 2) / 2 / theta) / z / np.sqrt(2 * np.pi * theta))

    for h, found in zip(hazard[0], FRAILTIES[kind].survival(hazard, theta)[0], strict=True):
        mean = quad(lambda z, h=h: density(z) * np.exp(-z * h), 0, np.inf, epsabs=1e-12)[0]
        assert_allclose(found, mean, rtol=1e-7)


@pytest.mark.parametrize("variance", [0.9, 1.1, 9.0, 100.0, 1e4])
def test_mean_survival_of_large_normal_variances(variance: float) -> None:
    deviation, hazard = np.sqrt(variance), np.array([[0.0, 1e-4, 0.5, 5.0, 1e4]])
    edges = np.linspace(-38.0, 38.0, 400)

    def density(x: float, h: float) -> float:
        log = min(deviation * x + np.log(h), 500.0)
        return float(np.exp(-np.exp(log) - x * x / 2) / np.sqrt(2 * np.pi))

    found = FRAILTIES["lognormal"].survival(hazard, variance)[0]
    assert_allclose(found[0], 1.0, rtol=1e-14)
    for h, mean in zip(hazard[0, 1:], found[1:], strict=True):
        parts = zip(edges[:-1], edges[1:], strict=True)
        known = sum(quad(density, a, b, (h,), epsabs=1e-14)[0] for a, b in parts)
        assert_allclose(mean, known, rtol=1e-9, atol=1e-12)


def integrated_by_quadrature(
    outcome: Outcome, x: np.ndarray, cluster: np.ndarray, found: FrailtyFit, theta: float
) -> float:
    """The likelihood of a step for the hazard at each event, integrated over each frailty."""
    nu, eta = 1 / theta, x @ found.solution.coef
    z = np.exp(found.w)[cluster]
    steps = {}
    for t in np.unique(outcome.time[outcome.is_event]):
        at_risk = outcome.time >= t
        n_events = np.count_nonzero(outcome.is_event & (outcome.time == t))
        steps[t] = n_events / float((z * np.exp(eta))[at_risk].sum())
    hazard = np.array([sum(v for t, v in steps.items() if t <= time) for time in outcome.time])
    jump = np.array([steps.get(t, 1.0) for t in outcome.time])
    total = 0.0
    for c in range(N_CLUSTERS):
        own = cluster == c
        d, risk = outcome.is_event[own].sum(), float((np.exp(eta) * hazard)[own].sum())
        term = float((np.log(jump) + eta)[own & outcome.is_event].sum())

        def density(u: float, d: float = d, risk: float = risk) -> float:
            log = nu * np.log(nu) + (nu - 1 + d) * np.log(u) - (nu + risk) * u - gammaln(nu)
            return float(np.exp(log))

        total += term + np.log(quad(density, 0, np.inf, epsabs=1e-13, limit=200)[0])
    # The partial likelihood leaves out a constant: of each event, its step in units of 1 / risk.
    counts = [np.count_nonzero(outcome.is_event & (outcome.time == t)) for t in steps]
    return total - float(sum(m * np.log(m) - m for m in counts))


def test_gamma_likelihood_is_an_integral_and_largest_at_the_estimate() -> None:
    draw = np.random.default_rng(5)
    cluster = np.repeat(np.arange(N_CLUSTERS), 8)
    x = draw.normal(size=(cluster.size, 2))
    rate = draw.gamma(2, 0.5, N_CLUSTERS)[cluster] * np.exp(0.4 * x[:, 0])
    time = np.ceil(10 * draw.exponential(1 / rate)) + 1
    outcome = Outcome.build(np.minimum(time, 25), (time < 25).astype(int))
    best = fitted(outcome, x, cluster, "gamma", "breslow")
    assert best.variance > 0
    known = integrated_by_quadrature(outcome, x, cluster, best, best.variance)
    assert_allclose(best.integrated, known, rtol=1e-9)
    for factor in (0.99, 1.01):
        beside = fitted(outcome, x, cluster, "gamma", "breslow", variance=factor * best.variance)
        assert beside.integrated < best.integrated


def test_slope_of_the_gamma_likelihood_is_its_derivative() -> None:
    outcome, x, cluster = sample(seed=2)
    kind, h = GammaFrailty(), 1e-4
    for theta in (0.05, 0.9):
        up, down = (
            fitted(outcome, x, cluster, "gamma", "efron", variance=theta * np.exp(s)).integrated
            for s in (h, -h)
        )
        at = fitted(outcome, x, cluster, "gamma", "efron", variance=theta)
        slope = kind.integrated_slope(at.w, at.events, theta)
        assert_allclose(slope, (up - down) / (2 * h), rtol=1e-5, atol=1e-7)


def test_many_events_of_a_cluster() -> None:
    """The series of many events continues the sums of few."""
    events, kind = np.array([9_990.0]), GammaFrailty()
    w, more = np.zeros(1), np.array([10_010.0])
    for found in (kind.integrated_slope, lambda w, d, t: kind.integrated(0.0, w, d, t)):
        low, high = found(w, events, 0.3), found(w, more, 0.3)
        # Both are smooth in the number of events: about 20 / 10,000 of a change of about a log.
        assert abs(high - low) < 0.05


@pytest.mark.parametrize("method", ["ml", "reml"])
def test_lognormal_variance_satisfies_its_equation(method: Any) -> None:
    draw = np.random.default_rng(8)
    cluster = np.repeat(np.arange(N_CLUSTERS), 8)
    x = draw.normal(size=(cluster.size, 2))
    rate = np.exp(draw.normal(0, 0.8, N_CLUSTERS)[cluster] + 0.4 * x[:, 0])
    time = np.ceil(10 * draw.exponential(1 / rate)) + 1
    outcome = Outcome.build(np.minimum(time, 25), (time < 25).astype(int))
    best = fitted(outcome, x, cluster, "lognormal", "efron", method=method)
    assert best.variance > 0
    assert best.variances is not None
    if method == "reml":
        found = (float(best.w @ best.w) + best.variances.trace) / N_CLUSTERS
        assert_allclose(best.variance, found, rtol=1e-7)
        return
    for factor in (0.98, 1.02):
        beside = fitted(outcome, x, cluster, "lognormal", "efron", variance=factor * best.variance)
        assert beside.integrated < best.integrated


def random_curvature(n: int) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray, np.ndarray]:
    """Part B of a curvature, as a map and as a matrix, and a D that is larger."""
    draw = np.random.default_rng(0)
    shares = draw.dirichlet(np.full(n, 0.5), size=40)
    b = (shares.T * draw.uniform(1, 20, 40)) @ shares
    diagonal = b.sum(axis=1) * 1.02 + draw.uniform(0.1, 1, n)
    return lambda v: b @ v, b, diagonal


def test_inverse_from_leading_eigenvectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as from the whole matrix, whatever is left of B."""
    n = 300
    product, b, diagonal = random_curvature(n)
    part = np.zeros(n, dtype=np.int64)
    matrix = np.diag(diagonal) - b
    inverse = np.linalg.inv(matrix)
    weight = np.random.default_rng(1).uniform(0.5, 1.5, n)
    right = np.random.default_rng(2).normal(size=(n, 3))
    dense = invert(product, diagonal, b.diagonal(), part, n_rows=10)
    monkeypatch.setattr(cluster_inverse, "MAX_BLOCK", 0)
    monkeypatch.setattr(cluster_inverse, "MAX_LARGE_BLOCK", 0)
    led = invert(product, diagonal, b.diagonal(), part, n_rows=10)
    assert type(led) is not type(dense)
    for found, rtol in ((dense, 1e-12), (led, 1e-8)):
        assert_allclose(found.solve(right), np.linalg.solve(matrix, right), rtol=1e-8, atol=1e-10)
        assert_allclose(found.trace(weight), float(weight @ inverse.diagonal()), rtol=rtol)
        assert_allclose(found.log_determinant, np.linalg.slogdet(matrix)[1], rtol=rtol)
        assert_allclose(found.diagonal, inverse.diagonal(), rtol=1e-6)
    assert led.trace_error == dense.trace_error == 0.0
    # With few eigenvectors the rest is a mean over random signs.
    monkeypatch.setattr(cluster_inverse, "MAX_VECTORS", 12)
    rough = invert(product, diagonal, b.diagonal(), part, n_rows=10)
    assert 0.0 < rough.trace_error < 1e-3 * float(inverse.trace())
    trace = rough.trace(np.ones(n))
    assert abs(trace - float(inverse.trace())) < 4.0 * rough.trace_error
    assert_allclose(rough.log_determinant, np.linalg.slogdet(matrix)[1], rtol=1e-4)
    assert_allclose(rough.solve(right), np.linalg.solve(matrix, right), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", FRAILTIES)
def test_clusters_within_strata(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters that share no stratum are apart: blocks, in as many products as the largest has."""
    draw = np.random.default_rng(6)
    cluster = draw.integers(0, N_CLUSTERS, N_ROWS)
    time = draw.integers(2, 20, N_ROWS).astype(float)
    outcome = Outcome.build(time, draw.integers(0, 2, N_ROWS), stratum=cluster // 4)
    x = draw.normal(size=(N_ROWS, 2))
    part = linked_clusters(cluster, outcome.stratum, N_CLUSTERS)
    assert np.bincount(part).tolist() == [4, 4, 4, 3]
    apart = fitted(outcome, x, cluster, kind, "efron", variance=0.4)
    whole = np.zeros(N_CLUSTERS, dtype=np.int64)
    monkeypatch.setattr("riskset.solve.frailty.linked_clusters", lambda *_: whole)
    together = fitted(outcome, x, cluster, kind, "efron", variance=0.4)
    assert apart.variances is not None
    assert together.variances is not None
    assert_allclose(apart.variances.covariance, together.variances.covariance, rtol=1e-9)
    assert_allclose(apart.variances.df, together.variances.df, rtol=1e-10)
    assert_allclose(apart.variances.w_variance, together.variances.w_variance, rtol=1e-9)
    assert_allclose(apart.integrated, together.integrated, rtol=1e-12)


def test_traces_from_random_signs_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, x, cluster = sample(strata=3, seed=7)
    exact = fitted(outcome, x, cluster, "lognormal", "breslow", variance=0.4)
    for name, value in (("MAX_BLOCK", 0), ("MAX_LARGE_BLOCK", 0), ("MAX_VECTORS", 2)):
        monkeypatch.setattr(cluster_inverse, name, value)
    drawn = fitted(outcome, x, cluster, "lognormal", "breslow", variance=0.4)
    assert not exact.solution.notes
    assert [note.code for note in drawn.solution.notes] == ["drawn_trace"]
    assert exact.variances is not None
    assert drawn.variances is not None
    error = drawn.variances.inverse.trace_error / 0.4
    assert abs(drawn.variances.df - exact.variances.df) < 4.0 * error
    assert_allclose(drawn.variances.covariance, exact.variances.covariance, rtol=1e-7)


@pytest.mark.parametrize("kind", FRAILTIES)
def test_many_clusters_by_eigenvectors(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit whose matrix of clusters is never made has the same answers."""
    outcome, x, cluster = sample(late=True, strata=2, seed=7)
    dense = fitted(outcome, x, cluster, kind, "efron", variance=0.4)
    monkeypatch.setattr(cluster_inverse, "MAX_BLOCK", 0)
    monkeypatch.setattr(cluster_inverse, "MAX_LARGE_BLOCK", 0)
    led = fitted(outcome, x, cluster, kind, "efron", variance=0.4)
    assert dense.variances is not None
    assert led.variances is not None
    assert_allclose(led.solution.coef, dense.solution.coef, rtol=1e-9)
    assert_allclose(led.variances.covariance, dense.variances.covariance, rtol=1e-7)
    assert_allclose(led.variances.df, dense.variances.df, rtol=1e-7)
    assert_allclose(led.integrated, dense.integrated, rtol=1e-10)


def test_pieces_of_another_point_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps end at the maximum although their preconditioner is made anew each time."""
    outcome, x, cluster = sample(seed=3)
    known = fitted(outcome, x, cluster, "gamma", "breslow", variance=2.0)
    monkeypatch.setattr(frailty_newton, "STALE_PRODUCTS", 0)
    again = fitted(outcome, x, cluster, "gamma", "breslow", variance=2.0)
    assert_allclose(again.solution.coef, known.solution.coef, rtol=1e-9)
    assert again.solution.status == "converged"
