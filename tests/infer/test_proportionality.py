"""The test of proportional hazards against the information matrix of the extended model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, rankdata

from infer.problems import PROBLEMS, RUNTIME, Steps, information, make, newton
from riskset._errors import InputError
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.infer.proportionality import proportionality_test, transformed_times
from riskset.model.cox import CoxLoss
from storages import each_storage

each_ties = pytest.mark.parametrize("ties", ["breslow", "efron"])
TRANSFORMS = ("km", "rank", "identity", "log")


def left_kaplan_meier(outcome, t):
    present = outcome.weight > 0
    time, event = outcome.time[present], outcome.is_event[present]
    entry = np.full(time.size, -np.inf) if outcome.entry is None else outcome.entry[present]
    survival = 1.0
    for u in np.unique(time[event]):
        if u < t:
            survival *= 1 - np.sum(event & (time == u)) / np.sum((entry < u) & (u <= time))
    return survival


def transformed(outcome, transform, t):
    time = outcome.time[outcome.weight > 0]
    return {
        "km": lambda: 1 - left_kaplan_meier(outcome, t),
        "rank": lambda: rankdata(time)[np.flatnonzero(time == t)[0]],
        "identity": lambda: t,
        "log": lambda: np.log(t),
    }[transform]()


def by_definition(problem, ties, transform):
    """Score and information of the model with the columns x and x g(t), step by step."""
    steps = Steps.of(problem, ties)
    g = np.array([transformed(problem.outcome, transform, t) for t in steps.time], dtype=float)
    v = [[information(steps, problem.x, g**k) for k in (0, 1)], None]
    v = np.block([[v[0][0], v[0][1]], [v[0][1], information(steps, problem.x, g**2)]]).astype(float)
    observed = (steps.is_own * problem.outcome.weight) @ problem.x
    gap = observed - steps.mass[:, None] * steps.mean
    u = np.concatenate([gap.sum(axis=0), g @ gap]).astype(float)
    p = u.size // 2

    def form(columns):
        return u[columns] @ np.linalg.solve(v[np.ix_(columns, columns)], u[columns])

    first = list(range(p))
    added = [*([p + j] for j in first), [p + j for j in first]]
    return np.array([form(first + columns) - form(first) for columns in added])


@each_ties
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", ["ties", "no_ties", "strata", "late_entry", "everything"])
def test_follows_the_definition(name, ties, transform):
    problem = PROBLEMS[name]
    got = proportionality_test(problem.loss(ties), problem.design, problem.eta, transform)
    want = by_definition(problem, ties, transform)
    np.testing.assert_allclose(np.append(got.statistic, got.global_statistic), want, rtol=1e-6)
    np.testing.assert_allclose(got.p_value, chi2.sf(got.statistic, 1), rtol=1e-12)
    assert got.global_p_value == pytest.approx(chi2.sf(got.global_statistic, 3), rel=1e-12)
    assert got.global_df == 3
    assert got.transform == transform


@each_storage
@each_ties
def test_row_order_inside_ties_does_not_matter(store, ties):
    problem = PROBLEMS["everything"].stored(store)
    a = proportionality_test(problem.loss(ties), problem.design, problem.eta)
    rows = np.random.default_rng(1).permutation(problem.outcome.n_rows)
    moved = problem.take(rows)
    b = proportionality_test(moved.loss(ties), moved.design, moved.eta)
    np.testing.assert_allclose(b.statistic, a.statistic, rtol=1e-9)
    assert b.global_statistic == pytest.approx(a.global_statistic, rel=1e-9)


@each_storage
@each_ties
def test_units_of_time_and_covariates_do_not_matter(store, ties):
    problem = PROBLEMS["strata"].stored(store)
    loss = problem.loss(ties)
    a = proportionality_test(loss, problem.design, problem.eta, "identity")
    o = problem.outcome
    days = replace(loss, outcome=Outcome.build(o.time * 365.25 + 9, o.event, stratum=o.stratum))
    scaled = store(problem.x * [1e5, 1e-4, 2.0] + [0.0, 1.0, -3.0])
    b = proportionality_test(days, scaled, problem.eta, "identity")
    np.testing.assert_allclose(b.statistic, a.statistic, rtol=1e-7)
    c = proportionality_test(loss, problem.design, problem.eta + 800.0, "identity")
    np.testing.assert_allclose(c.statistic, a.statistic, rtol=1e-7)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
@each_ties
def test_units_at_the_ends_of_floating_point(ties, size):
    """Of times, covariates and weights; powers of ten round, so equality is not exact."""
    problem = PROBLEMS["strata"]
    loss, o = problem.loss(ties), problem.outcome
    want = proportionality_test(loss, problem.design, problem.eta, "identity")
    of_time = replace(loss, outcome=Outcome.build(o.time * size, o.event, stratum=o.stratum))
    got = proportionality_test(of_time, problem.design, problem.eta, "identity")
    np.testing.assert_allclose(got.statistic, want.statistic, rtol=1e-7)
    np.testing.assert_allclose(got.global_statistic, want.global_statistic, rtol=1e-7)
    scaled = Design.from_dense(problem.x * [size, 1.0, 1 / size])
    got = proportionality_test(loss, scaled, problem.eta, "identity")
    np.testing.assert_allclose(got.statistic, want.statistic, rtol=1e-7)
    weighted = Outcome.build(o.time, o.event, stratum=o.stratum, weight=np.full(o.n_rows, size))
    got = proportionality_test(replace(loss, outcome=weighted), problem.design, problem.eta)
    plain = proportionality_test(loss, problem.design, problem.eta)
    np.testing.assert_allclose(got.statistic / size, plain.statistic, rtol=1e-7)


def test_a_missing_last_step_is_harmless():
    problem = make(300, seed=19, n_times=50)
    loss, design = problem.loss("efron"), problem.design
    coef = newton(loss, design)
    a = proportionality_test(loss, design, design.dot(coef))
    b = proportionality_test(loss, design, design.dot(coef * (1 + 1e-4)))
    np.testing.assert_allclose(b.statistic, a.statistic, rtol=1e-4)


def test_finds_an_effect_that_fades():
    rng = np.random.default_rng(5)
    n = 4000
    x = rng.normal(size=(n, 2))
    # Hazard exp(1.5 x0) before t = 0.3, 1 after: x0 fades, x1 never mattered.
    early = rng.exponential(size=n) * np.exp(-1.5 * x[:, 0])
    time = np.where(early < 0.3, early, 0.3 + rng.exponential(size=n))
    design, outcome = Design.from_dense(x), Outcome.build(time, np.ones(n))
    loss = CoxLoss(outcome, "efron", RUNTIME)
    got = proportionality_test(loss, design, design.dot(newton(loss, design)))
    assert got.p_value[0] < 1e-20
    assert got.p_value[1] > 1e-3


def test_columns_without_information():
    problem = make(60, seed=17)
    x = np.column_stack([problem.x[:, 0], np.full(60, 4.0), problem.x[:, 1]])
    got = proportionality_test(problem.loss("efron"), Design.from_dense(x), problem.eta)
    without = Design.from_dense(x[:, [0, 2]])
    want = proportionality_test(problem.loss("efron"), without, problem.eta)
    np.testing.assert_allclose(got.statistic[[0, 2]], want.statistic, rtol=1e-9)
    assert np.isnan(got.statistic[1])
    assert np.isnan(got.p_value[1])
    assert got.global_df == 2
    assert got.global_statistic == pytest.approx(want.global_statistic, rel=1e-9)


def test_one_event_says_nothing():
    outcome = Outcome.build([1.0, 2.0, 3.0], [0, 1, 0])
    loss = CoxLoss(outcome, "breslow", RUNTIME)
    design = Design.from_dense(np.array([[0.1], [0.7], [0.2]]))
    got = proportionality_test(loss, design, np.zeros(3))
    assert np.isnan(got.statistic).all()
    assert np.isnan(got.global_p_value)
    assert got.global_df == 0


@each_storage
def test_many_columns_are_taken_in_blocks(store):
    rng = np.random.default_rng(4)
    n, p = 300, 70
    problem = make(n, seed=18, n_times=40).stored(store)
    x = rng.normal(size=(n, p))
    problem = replace(problem, x=x, eta=0.05 * x.sum(axis=1))
    got = proportionality_test(problem.loss("breslow"), problem.design, problem.eta)
    want = by_definition(problem, "breslow", "km")
    np.testing.assert_allclose(np.append(got.statistic, got.global_statistic), want, rtol=1e-6)


def test_refuses_what_it_cannot_do():
    outcome = Outcome.build([0.0, 2.0], [1, 1])
    with pytest.raises(InputError, match="time 0"):
        transformed_times(outcome, "log")
    with pytest.raises(InputError, match="km"):
        transformed_times(outcome, "kn")


@each_storage
@each_ties
@pytest.mark.parametrize("far", [1e3, 1e5, 1e9])
def test_distance_between_strata_changes_nothing(store, far, ties):
    problem = make(80, seed=33, n_strata=4)
    loss = problem.loss(ties)
    x = np.round(problem.x * 2**20) / 2**20  # so that the sum is exact
    near = proportionality_test(loss, store(x), problem.eta)
    x = x + np.outer(problem.outcome.stratum, [far, 0.0, 0.0])
    got = proportionality_test(loss, store(x), problem.eta)
    assert got.global_df == 3
    np.testing.assert_allclose(got.p_value, near.p_value, rtol=1e-7)
    assert got.global_p_value == pytest.approx(near.global_p_value, rel=1e-7)
