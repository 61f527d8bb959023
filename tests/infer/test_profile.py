"""Profile likelihoods against 80-bit sums, and what concavity promises of them."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq, minimize

from cases import brute_force as exact
from parameters import rest_is_slow
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.infer.profile import (
    ProfiledFit,
    adaptive_grid,
    fixed_grid,
    interval_end,
    profile_intervals,
)
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import CoxLoss
from riskset.model.finegray import FineGrayLoss
from riskset.solve.fit import fit_by_newton
from storages import each_storage

DROP = 3.841458820694124 / 2


def source_of(x, loss, l1=0.0, l2=0.0, store=Design.from_dense):
    design = store(x)
    l1, l2 = (np.broadcast_to(np.asarray(v, dtype=float), x.shape[1]) for v in (l1, l2))
    solution = fit_by_newton(design, loss, l1, l2, tol=1e-10)
    return ProfiledFit(design, loss, solution, l1, l2)


def cox_source(
    x, time, event, ties="breslow", threads=1, l1=0.0, l2=0.0, store=Design.from_dense, **outcome
):
    loss = CoxLoss(Outcome.build(time, event, **outcome), ties, Runtime(threads))
    return source_of(x, loss, l1, l2, store)


def sample(seed, n=40):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=n), rng.random(n) < 0.4, 30 + 5 * rng.normal(size=n)])
    time = np.ceil(8 * rng.exponential(np.exp(-0.6 * x[:, 0])))
    return rng, x, time, (rng.random(n) < 0.6).astype(int)


def extras(rng, n):
    """Everything a likelihood can have, by name."""
    return {
        "plain": {},
        "strata": {"stratum": rng.integers(0, 3, n)},
        "weights": {"weight": rng.choice([0.5, 1.0, 2.0], n)},
        "entry": {"entry": rng.integers(-3, 1, n).astype(float)},
        "offset": {"offset": rng.normal(size=n)},
        "all": {
            "stratum": rng.integers(0, 2, n),
            "weight": rng.choice([0.5, 1.0, 3.0], n),
            "entry": rng.integers(-3, 2, n).astype(float),
            "offset": rng.normal(size=n),
        },
    }


def by_definition(x, time, event, ties="breslow", **given):
    """The log likelihood, its gradient and information in 80-bit floats."""
    names = {"stratum": "strata", "weight": "w", "entry": "start", "offset": "offset"}
    other = {names[k]: v for k, v in given.items()}
    return lambda b: exact.cox(b, x, time, event, ties=ties, **other)


# ----------------------------------------------------------------------- against brute force


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize(
    "kind", rest_is_slow(["all", "plain", "strata", "weights", "entry", "offset"], 1)
)
def test_ends_and_values_in_80_bits(kind, ties):
    rng, x, time, event = sample(3)
    given = extras(rng, time.size)[kind]
    time = time + 2.0
    source = cox_source(x, time, event, ties, **given)
    likelihood = by_definition(x, time, event, ties, **given)
    beta, top = exact.fit(likelihood, 3)
    lower, upper = profile_intervals(source, np.arange(3), 0.95)
    for j in range(3):
        for side, found in ((-1, lower[j]), (1, upper[j])):
            bound = exact.profile_bound(likelihood, 3, j, beta[j], top[0], side)
            assert_allclose(found, float(bound), rtol=1e-7, atol=1e-9)
        curve = source.curve(j, Runtime(1))
        values = [float(beta[j]) + shift for shift in (-0.7, 0.0, 0.1, 2.0)]
        for b, point in zip(values, fixed_grid(curve, values).points, strict=True):
            inner, (value, gradient, _) = exact.fit(likelihood, 3, fixed={j: b})
            assert_allclose(point.value, float(value), rtol=1e-12)
            assert_allclose(point.slope, float(gradient[j]), rtol=1e-6, atol=1e-6)
            others = np.arange(3) != j
            assert_allclose(point.coef[others], inner[others].astype(float), rtol=1e-6, atol=1e-8)


def test_finegray_in_80_bits():
    rng, x, time, _ = sample(5, 50)
    status = rng.choice(3, time.size, p=[0.25, 0.45, 0.3])
    outcome = Outcome.build(time, status, cause=1)
    source = source_of(
        x, FineGrayLoss(outcome, CensoringDistribution.estimate(outcome), Runtime(2))
    )
    event, groups, wmat = exact.fg_setup(time, status)

    def likelihood(b):
        return exact.cox(b, x, time, event, wmat=wmat, groups=groups)

    beta, top = exact.fit(likelihood, 3)
    lower, upper = profile_intervals(source, np.arange(3), 0.95)
    for j in range(3):
        for side, found in ((-1, lower[j]), (1, upper[j])):
            bound = exact.profile_bound(likelihood, 3, j, beta[j], top[0], side)
            assert_allclose(found, float(bound), rtol=1e-7, atol=1e-9)


def test_ridge_on_the_other_coefficients():
    _, x, time, event = sample(6)
    l2 = np.array([0.0, 2.0, 0.5])
    source = cox_source(x, time, event, l2=l2)
    likelihood = by_definition(x, time, event)
    beta, top = exact.fit(likelihood, 3, l2=l2)
    lower, upper = profile_intervals(source, np.array([0]), 0.95)
    for side, found in ((-1, lower[0]), (1, upper[0])):
        bound = exact.profile_bound(likelihood, 3, 0, beta[0], top[0], side, l2=l2)
        assert_allclose(found, float(bound), rtol=1e-7)


def lasso(likelihood, l1, fixed, b):
    """Maximum over the other coefficients of log likelihood less an L1 penalty, by scipy."""
    others = [k for k in range(len(l1)) if k != fixed]
    q = len(others)

    def whole(parts):
        beta = np.zeros(len(l1))
        beta[fixed], beta[others] = b, parts[:q] - parts[q:]
        return beta

    def cost(parts):
        value, gradient, _ = likelihood(whole(parts))
        slope = gradient[others].astype(float)
        strength = np.concatenate([l1[others], l1[others]])
        return float(-value) + strength @ parts, np.concatenate([-slope, slope]) + strength

    found = minimize(
        cost,
        np.zeros(2 * q),
        jac=True,
        bounds=[(0, None)] * (2 * q),
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000},
    )
    return -found.fun


def test_lasso_on_the_other_coefficients():
    _, x, time, event = sample(7)
    x[:, 2] = (x[:, 2] - 30) / 5
    l1 = np.array([0.0, 1.5, 1.0])
    source = cox_source(x, time, event, l1=l1)
    likelihood = by_definition(x, time, event)
    curve = source.curve(0, Runtime(1))
    values = np.linspace(-1.0, 2.5, 8)
    found = fixed_grid(curve, values).points
    assert {float(p.coef[1] == 0) + float(p.coef[2] == 0) for p in found} != {0.0}
    for b, point in zip(values, found, strict=True):
        assert_allclose(point.value, lasso(likelihood, l1, 0, b), rtol=1e-9)
    lower, upper = profile_intervals(source, np.array([0]), 0.95)
    target = -source.solution.objective - DROP
    for first, last, end_found in (
        (lower[0] - 1, curve.maximum.at, lower[0]),
        (curve.maximum.at, upper[0] + 1, upper[0]),
    ):
        root = brentq(lambda b: lasso(likelihood, l1, 0, b) - target, first, last, xtol=1e-10)
        assert_allclose(end_found, root, atol=2e-6)


def test_a_penalty_of_its_own_counts_where_it_is_allowed():
    _, x, time, event = sample(8)
    x = x[:, :1]
    source = cox_source(x, time, event, l1=2.0, l2=1.0)
    likelihood = by_definition(x, time, event)

    def height(b):
        return float(likelihood([b])[0]) - 2 * abs(b) - b * b / 2

    lower, upper = profile_intervals(source, np.array([0]), 0.9)
    top = minimize(lambda b: -height(b[0]), [0.5], method="Nelder-Mead", tol=1e-12)
    for found in (lower[0], upper[0]):
        assert_allclose(height(found), -top.fun - 2.705543454095404 / 2, atol=1e-8)
    assert lower[0] < top.x[0] < upper[0]


# --------------------------------------------------------------------------- infinite ends


def test_one_end_is_infinite_with_the_estimate_and_the_other_by_hand():
    # Two events, both of exposed rows, each with both rows of its stratum at risk: the log
    # likelihood is -2 log(1 + exp(-b)), its supremum 0.
    time, event = np.array([1.0, 2.0, 1.0, 2.0]), np.array([1, 0, 1, 0])
    x = np.array([[1.0], [0.0], [1.0], [0.0]])
    for sign in (1, -1):
        source = cox_source(sign * x, time, event, stratum=np.array([0, 0, 1, 1]))
        lower, upper = profile_intervals(source, np.array([0]), 0.95)
        near = -np.log(np.exp(DROP / 2) - 1)
        expected = (near, np.inf) if sign > 0 else (-np.inf, -near)
        assert_allclose((lower[0], upper[0]), expected, rtol=1e-9)


def test_ends_are_finite_wherever_the_estimate_is():
    # One event against its pair and one the other way round: log-likelihood -2 log(2 cosh(b / 2)).
    # A concave function with a finite maximum falls at least linearly, so even two events suffice.
    time, event = np.array([1.0, 2.0, 1.0, 2.0]), np.array([1, 0, 1, 0])
    x = np.array([[1.0], [0.0], [0.0], [1.0]])
    source = cox_source(x, time, event, stratum=np.array([0, 0, 1, 1]))
    lower, upper = profile_intervals(source, np.array([0]), 0.95)
    expected = 2 * np.arccosh(np.exp(DROP / 2))
    assert_allclose((lower[0], upper[0]), (-expected, expected), rtol=1e-8)
    far = profile_intervals(source, np.array([0]), 1 - 1e-12)
    assert np.isfinite(far).all()
    assert far[1][0] > 20


def test_ends_beside_an_infinite_coefficient():
    # x1 separates: the rows with x1 = 1 never fail, so in the limit they are gone.
    _, x, time, event = sample(9)
    x[:, 1] = np.arange(time.size) % 3 == 0
    event[x[:, 1] == 1] = 0
    source = cox_source(x, time, event)
    assert source.solution.infinite.tolist() == [0, -1, 0]
    kept = x[:, 1] == 0
    without = cox_source(x[kept][:, [0, 2]], time[kept], event[kept])
    lower, upper = profile_intervals(source, np.arange(3), 0.95)
    expected = profile_intervals(without, np.arange(2), 0.95)
    assert_allclose((lower[[0, 2]], upper[[0, 2]]), expected, rtol=1e-8)
    assert lower[1] == -np.inf
    likelihood = by_definition(x, time, event)
    _, (value, _, _) = exact.fit(likelihood, 3, fixed={1: upper[1]})
    assert_allclose(float(value), -source.solution.objective - DROP, atol=2e-8)


def test_profile_that_is_flat_beside_infinite_coefficients():
    # The event of a row is against rows that differ from it in x0 + x1 and in x0 - x1 alike, so
    # that x1 can go anywhere while x0 goes to infinity.
    time, event = np.array([1.0, 2.0, 3.0]), np.array([1, 0, 0])
    x = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    source = cox_source(x, time, event)
    assert source.solution.infinite[0] == 1
    lower, upper = profile_intervals(source, np.arange(2), 0.95)
    # x0 may be as low as it likes? No: x1 cannot make up for both rivals at once.
    assert_allclose(lower[0], -np.log(np.expm1(DROP) / 2), rtol=1e-8)
    assert upper[0] == np.inf
    # Every value of x1 reaches the supremum.
    assert (lower[1], upper[1]) == (-np.inf, np.inf)
    points = fixed_grid(source.curve(1, Runtime(1)), [-5.0, 0.0, 5.0]).points
    assert_allclose([p.value for p in points], 0.0, atol=1e-12)


def test_profile_that_is_flat_because_columns_are_collinear_in_the_limit():
    # In the first stratum x2 goes to infinity, and its rivals are gone. In the others x0 is -x1, so
    # that x1 makes up for any x0, though the fit reports a finite x0 and leaves x1 out.
    x = [[0, 0, 1], [1, 1, 0], [-1, -1, 0], [1, -1, 0], [0, 0, 0], [0, 0, 0], [1, -1, 0]]
    time, event = np.array([1.0, 2, 3, 1, 2, 1, 2]), np.array([1, 0, 0, 1, 0, 1, 0])
    source = cox_source(np.array(x, float), time, event, stratum=np.array([0, 0, 0, 1, 1, 2, 2]))
    assert source.solution.infinite.tolist() == [0, 0, 1]
    assert source.solution.aliased.tolist() == [False, True, False]
    lower, upper = profile_intervals(source, np.arange(3), 0.95)
    assert_allclose(lower, [-np.inf, -np.inf, -np.log(np.expm1(DROP) / 2)], rtol=1e-8)
    assert_array_equal(upper, np.inf)
    for b in (-3.0, 4.0):
        (point,) = fixed_grid(source.curve(0, Runtime(1)), [b]).points
        assert_allclose(point.value, -2 * np.log(2), rtol=1e-9)
        assert_allclose(point.coef[1], b, atol=1e-6)


def test_columns_without_information_have_no_interval():
    _, x, time, event = sample(11)
    x = np.column_stack([x, x[:, 0] + x[:, 1], np.full(time.size, 3.0)])
    source = cox_source(x, time, event)
    lower, upper = profile_intervals(source, np.arange(5), 0.95)
    assert_array_equal(np.isnan(lower), [False, False, False, True, True])
    assert_array_equal(np.isnan(upper), np.isnan(lower))
    kept = profile_intervals(cox_source(x[:, :3], time, event), np.arange(3), 0.95)
    assert_allclose((lower[:3], upper[:3]), kept, rtol=1e-8)


# ------------------------------------------------------------------------------------- grids


def test_profile_is_concave_and_its_slope_falls():
    _, x, time, event = sample(12)
    curve = cox_source(x, time, event, l1=[0.0, 1.0, 0.1]).curve(0, Runtime(1))
    values = np.linspace(-6, 6, 61)
    points = fixed_grid(curve, values).points
    height, slope = (np.array([getattr(p, k) for p in points]) for k in ("value", "slope"))
    assert (np.diff(height, 2) <= 1e-9).all()
    assert (np.diff(slope) <= 1e-9).all()
    assert height.max() <= curve.maximum.value + 1e-12
    # Tangents lie above the profile everywhere.
    tangents = height[:, None] + slope[:, None] * (values - values[:, None])
    assert (tangents >= height - 1e-9).all()


@pytest.mark.parametrize("tolerance", rest_is_slow([1e-2, 1e-4], 1))
def test_adaptive_grid_keeps_its_tolerance(tolerance):
    _, x, time, event = sample(13)
    curve = cox_source(x, time, event).curve(0, Runtime(1))
    grid = adaptive_grid(curve, -3.0, 4.0, tolerance, 5000)
    at, value = (np.array([getattr(p, k) for p in grid.points]) for k in ("at", "value"))
    assert (np.diff(at) > 0).all()
    assert (at[0], at[-1]) == (-3.0, 4.0)
    assert curve.maximum.at in at
    assert grid.is_fine
    assert grid.error <= tolerance
    between = np.random.default_rng(0).uniform(-3, 4, 200)
    true = np.array([p.value for p in fixed_grid(curve, between).points])
    error = true - np.interp(between, at, value)
    assert error.min() > -1e-10
    assert error.max() <= grid.error
    # An optimal grid of a quadratic has the spacing sqrt(8 tolerance / curvature).
    least = np.sqrt(curve.curvature / (8 * tolerance))
    assert at.size < 7 * least * 2 + 20


def test_too_few_points_are_told():
    _, x, time, event = sample(13)
    curve = cox_source(x, time, event).curve(0, Runtime(1))
    grid = adaptive_grid(curve, -3.0, 4.0, 1e-6, 20)
    assert len(grid.points) == 20
    assert not grid.is_fine
    assert grid.error > 1e-6


@each_storage
def test_same_bits_for_any_number_of_threads(store):
    _, x, time, event = sample(14, 300)
    l1 = [0.0, 1.0, 0.05]
    seen = []
    for threads in (1, 2, 3):
        source = cox_source(x, time, event, threads=threads, l1=l1, store=store)
        curve = source.curve(0, Runtime(threads))
        grid = adaptive_grid(curve, -1.0, 2.0, 1e-2, 500)
        given = fixed_grid(curve, np.linspace(-2, 2, 40)[::-1].copy())
        ends = profile_intervals(
            cox_source(x, time, event, threads=threads, store=store), np.arange(3), 0.9
        )
        points = [(p.at, p.value, p.slope) for p in (*grid.points, *given.points)]
        seen.append(np.concatenate([np.ravel(points), np.ravel(ends)]))
    for a, b in itertools.pairwise(seen):
        assert_array_equal(a, b)


def test_ends_reach_the_target_to_1e_8():
    _, x, time, event = sample(15, 200)
    source = cox_source(x, time, event)
    curve = source.curve(0, Runtime(1))
    for side, drop in itertools.product((-1, 1), (1e-6, 0.1, 5.0, 400.0)):
        b = interval_end(curve, side, drop, Runtime(1))
        (point,) = fixed_grid(curve, [b]).points
        assert abs(curve.maximum.value - drop - point.value) <= 1e-8
