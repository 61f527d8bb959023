"""Baseline hazard and survival against the definition, by hand, and at extremes."""

import json
from pathlib import Path

import numpy as np
import pytest

from infer.problems import LONG, PROBLEMS, RUNTIME, Problem, Steps, make, newton
from riskset._errors import InputError
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.baseline import Baseline
from riskset.model.cox import CoxLoss
from riskset.solve.fit import fit_by_newton as newton_fit

CASES = Path(__file__).parents[1] / "cases"

each_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
each_ties = pytest.mark.parametrize("ties", ["breslow", "efron"])


@each_ties
@each_problem
def test_follows_the_definition(problem, ties):
    baseline = Baseline.fit(problem.loss(ties), problem.eta)
    steps = Steps.of(problem, ties)
    stratum = problem.outcome.stratum
    times = np.array([0.0, 0.3, 1.0, 2.5, 7.0, 12.0, 1e6])
    eta = problem.eta[::-1]
    got = baseline.cumulative_hazard(eta, times, stratum)
    want = np.zeros(got.shape, dtype=LONG)
    for i, row in enumerate(eta):
        for k, t in enumerate(times):
            past = (steps.time <= t) & (steps.stratum == stratum[i])
            want[i, k] = np.exp(LONG(row)) * steps.hazard[past].sum()
    big = np.finfo(float).max
    assert (np.isinf(got) == (want > big)).all()
    finite = want < big
    np.testing.assert_allclose(got[finite], want[finite].astype(float), rtol=1e-10)
    survival = baseline.survival(eta, times, stratum)
    np.testing.assert_allclose(survival, np.exp(-want).astype(float), rtol=1e-9, atol=1e-300)
    assert (np.diff(survival, axis=1) <= 0).all()


def test_by_hand():
    # Hazards 1/3 at 1 and 2/2 at 2 (Breslow), 1/3 and 1/2 + 1 (Efron); nothing happens at 3.
    outcome = Outcome.build([1.0, 2.0, 2.0], [1, 1, 1])
    problem = Problem(outcome, np.zeros((3, 1)), np.zeros(3))
    times = [0.5, 1.0, 1.5, 2.0, 3.0]
    for ties, last in (("breslow", 4 / 3), ("efron", 11 / 6)):
        baseline = Baseline.fit(problem.loss(ties), problem.eta)
        got = baseline.cumulative_hazard(np.zeros(1), times)
        np.testing.assert_allclose(got, [[0.0, 1 / 3, 1 / 3, last, last]], rtol=1e-15)
        np.testing.assert_array_equal(baseline.time, [1.0, 2.0])


def test_times_may_come_in_any_order_and_repeat():
    problem = PROBLEMS["ties"]
    baseline = Baseline.fit(problem.loss("efron"), problem.eta)
    times = np.array([5.0, 1.0, 9.0, 5.0])
    got = baseline.survival(problem.eta, times)
    for k, t in enumerate(times):
        np.testing.assert_array_equal(got[:, k], baseline.survival(problem.eta, [t])[:, 0])


def test_late_entry_against_the_case():
    folder = CASES / "05-left-truncation-baseline"
    want = json.loads((folder / "expected.json").read_text())
    table = np.genfromtxt(folder / "input.csv", delimiter=",", names=True)
    names = table.dtype.names
    outcome = Outcome.build(table["time"], table["event"], entry=table["entry"])
    (x,) = [n for n in names if n not in ("time", "event", "entry", "id")]
    loss = CoxLoss(outcome, "breslow", RUNTIME)
    design = Design.from_dense(table[x][:, None])
    coef = newton(loss, design)
    np.testing.assert_allclose(coef, want["beta"], rtol=1e-12)
    baseline = Baseline.fit(loss, design.dot(coef))
    got = baseline.cumulative_hazard(np.zeros(1), want["H0_times"])[0]
    np.testing.assert_allclose(got, want["H0"], rtol=1e-12)


@pytest.mark.parametrize("shift", [800.0, -800.0, 1e5])
def test_covariates_far_from_zero(shift):
    problem = make(40, seed=3)
    near = Baseline.fit(problem.loss("efron"), problem.eta)
    far = Baseline.fit(problem.loss("efron"), problem.eta + shift)
    times = [2.0, 6.0, 11.0]
    np.testing.assert_allclose(
        far.survival(problem.eta + shift, times),
        near.survival(problem.eta, times),
        rtol=1e-9 if abs(shift) < 1e4 else 1e-7,
    )
    # At x = 0 the hazard leaves the range of floats one way or the other, without a warning.
    at_zero = far.cumulative_hazard(np.zeros(1), times)
    assert (at_zero == (0.0 if shift > 0 else np.inf)).all()


def test_infinite_linear_predictors_give_their_limits():
    problem = PROBLEMS["ties"]
    baseline = Baseline.fit(problem.loss("breslow"), problem.eta)
    first = baseline.time[0]
    got = baseline.survival(np.array([np.inf, -np.inf]), [first / 2, first, 1e9])
    np.testing.assert_array_equal(got, [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_coefficient_at_infinity(sign):
    # No event among the exposed (-), or all events among them (+). Either way the limit is the
    # fit to those who stay at risk; the others have no hazard beside them.
    problem = make(80, seed=23, late=True)
    outcome = problem.outcome
    exposed = np.arange(80) % 2 == 0
    exposed = exposed & ~outcome.is_event if sign < 0 else exposed | outcome.is_event
    x = np.column_stack([problem.x[:, 0], exposed])
    loss, design = problem.loss("efron"), Design.from_dense(x)
    fit = newton_fit(design, loss, np.zeros(2), np.zeros(2), tol=1e-11)
    assert fit.status == "infinite_estimate"
    stays = np.flatnonzero(exposed == (sign > 0))
    part = problem.take(stays)
    eta = x[:, 0] * fit.coef[0]
    times = [2.0, 5.0, 12.0]
    want = Baseline.fit(part.loss("efron"), eta[stays]).survival(eta, times)
    limit = Baseline.fit(fit.loss, eta)
    np.testing.assert_allclose(limit.survival(eta, times), want, rtol=1e-9)
    far = eta + 1e4 * sign * exposed
    got = Baseline.fit(loss, far).survival(far, times)
    np.testing.assert_allclose(got[stays], want[stays], rtol=1e-9)
    np.testing.assert_array_equal(np.delete(got, stays, axis=0), 1.0)


def test_a_row_without_risk_is_as_good_as_absent():
    problem = PROBLEMS["ties"]
    censored = np.flatnonzero(~problem.outcome.is_event)[:5]
    eta = problem.eta.copy()
    eta[censored] = -np.inf
    others = np.setdiff1d(np.arange(40), censored)
    part = problem.take(others)
    a = Baseline.fit(problem.loss("efron"), eta)
    b = Baseline.fit(part.loss("efron"), part.eta)
    times = np.arange(13.0)
    np.testing.assert_allclose(
        a.cumulative_hazard(np.zeros(1), times), b.cumulative_hazard(np.zeros(1), times), rtol=1e-12
    )


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["north", "south", "west"])[np.arange(60) % 3],
        np.array([3, 10, 7])[np.arange(60) % 3],
        [np.array(["a", "b"])[np.arange(60) % 2], np.arange(60) % 3],
    ],
    ids=["text", "numbers", "two_columns"],
)
def test_strata_go_by_label_and_survive_storage(labels, tmp_path):
    problem = make(60, seed=6)
    o = problem.outcome
    outcome = Outcome.build(o.time, o.event, stratum=labels)
    loss = CoxLoss(outcome, "breslow", RUNTIME)
    baseline = Baseline.fit(loss, problem.eta)
    times = [2.0, 5.0, 20.0]
    got = baseline.survival(problem.eta, times, labels)
    for code in range(outcome.n_strata):
        rows = np.flatnonzero(outcome.stratum == code)
        part = problem.take(rows)
        alone = Baseline.fit(part.loss("breslow"), part.eta).survival(part.eta, times)
        np.testing.assert_allclose(got[rows], alone, rtol=1e-12)
    np.savez(tmp_path / "baseline.npz", **baseline.to_arrays())
    with np.load(tmp_path / "baseline.npz", allow_pickle=False) as arrays:
        again = Baseline.from_arrays(arrays)
    np.testing.assert_array_equal(again.survival(problem.eta, times, labels), got)


def test_a_stratum_without_events_has_no_hazard():
    outcome = Outcome.build([1.0, 2.0, 3.0], [1, 0, 0], stratum=["a", "b", "b"])
    baseline = Baseline.fit(CoxLoss(outcome, "efron", RUNTIME), np.zeros(3))
    got = baseline.survival(np.zeros(2), [1.0, 5.0], ["b", "a"])
    np.testing.assert_allclose(got, [[1.0, 1.0], [np.exp(-1), np.exp(-1)]])


def test_what_is_refused():
    problem = PROBLEMS["strata"]
    baseline = Baseline.fit(problem.loss("efron"), problem.eta)
    with pytest.raises(InputError, match="4 strata"):
        baseline.survival(np.zeros(2), [1.0])
    with pytest.raises(InputError, match=r"`strata` has 9 \(row 1\), a stratum that was not in"):
        baseline.survival(np.zeros(2), [1.0], [0, 9])
    with pytest.raises(InputError, match="one label for each of the 2 rows"):
        baseline.survival(np.zeros(2), [1.0], [0])
    with pytest.raises(InputError, match="times"):
        baseline.survival(np.zeros(2), [1.0, np.nan], [0, 1])


def test_no_new_rows():
    problem = PROBLEMS["ties"]
    baseline = Baseline.fit(problem.loss("efron"), problem.eta)
    assert baseline.survival(np.zeros(0), [1.0, 2.0]).shape == (0, 2)
