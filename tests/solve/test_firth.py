"""Firth's penalised likelihood in closed form and in many digits, where estimates are infinite."""

import warnings
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

import riskset as rs
from model.test_derivatives import slope
from riskset._errors import NotDefinedError, RisksetWarning
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.estimators.convergence import ConvergenceWarning
from riskset.model.cox import CoxLoss
from riskset.model.jeffreys import jeffreys_slope
from riskset.solve.firth import fit_by_firth
from storages import Store, each_storage

RUNTIME = Runtime(1)


def penalized(
    beta: list[Decimal], x: np.ndarray, data: dict[str, np.ndarray], efron: bool
) -> Decimal:
    """The penalised likelihood of two columns in 50 digits, from the formulas alone."""
    time, event, weight = data["time"], data["event"], data["weight"]
    z = [[Decimal(float(v)) for v in row] for row in x]
    shift = [Decimal(float(v)) for v in data.get("offset", np.zeros(len(z)))]
    eta = [beta[0] * row[0] + beta[1] * row[1] + o for row, o in zip(z, shift, strict=True)]
    r = [int(w) * e.exp() for w, e in zip(weight, eta, strict=True)]
    value, information = Decimal(0), [[Decimal(0)] * 2 for _ in range(2)]
    for s in np.unique(data["stratum"]):
        rows = data["stratum"] == s
        for t in np.unique(time[rows & event]):
            dead = np.flatnonzero(rows & event & (time == t))
            at_risk = np.flatnonzero(rows & (time >= t) & (data["entry"] < t))
            n_terms = dead.size if efron else 1
            step = Decimal(int(weight[dead].sum())) / n_terms
            value += sum(int(weight[i]) * eta[i] for i in dead)
            for k in range(n_terms):
                left = Decimal(k) / n_terms
                p = [r[i] * (1 - left if i in dead else 1) for i in at_risk]
                total = sum(p)
                value -= step * total.ln()
                mean = [
                    sum(a * z[i][j] for a, i in zip(p, at_risk, strict=True)) / total
                    for j in range(2)
                ]
                for j in range(2):
                    for h in range(2):
                        information[j][h] += (
                            step
                            / total
                            * sum(
                                a * (z[i][j] - mean[j]) * (z[i][h] - mean[h])
                                for a, i in zip(p, at_risk, strict=True)
                            )
                        )
    (a, b), (c, d) = information
    return value + (a * d - b * c).ln() / 2


def made(seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Few rows whose first column separates, with weights, strata and late entry."""
    rng = np.random.default_rng(seed)
    n = 24
    time, event = rng.integers(1, 9, n).astype(float), rng.random(n) < 0.5
    event[:2] = True
    x = np.column_stack([rng.random(n) < 0.4, rng.normal(size=n)])
    x[event, 0] = 1.0
    data = {
        "time": time,
        "event": event,
        "weight": rng.integers(1, 4, n).astype(float),
        "stratum": rng.integers(0, 2, n),
        "entry": time - rng.choice([1.5, 20.0], n),
    }
    return x, data


def fit(x: np.ndarray, data: dict[str, np.ndarray], ties: Any) -> rs.Cox:
    y = rs.Surv(data["time"], data["event"], data["entry"])
    return rs.Cox(firth=True, ties=ties, tol=1e-12, max_iter=1000).fit(
        x, y, sample_weight=data["weight"], strata=data["stratum"], offset=data.get("offset")
    )


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("per_time", [-400.0, -60.0])
def test_risk_sets_that_one_exponent_does_not_hold(per_time: float, late: bool, ties: str) -> None:
    # exp(eta) of the last risk set is 0 beside that of the first.
    x, data = made(1)
    data["offset"] = per_time * data["time"]
    if not late:
        data["entry"] = np.full(24, -1.0)
    model = fit(x, data, ties)
    assert model.status_ == "converged"
    with localcontext(prec=50):
        at = [Decimal(float(b)) for b in model.coef_]
        h = Decimal(10) ** -12
        for j in range(2):
            up, down = list(at), list(at)
            up[j] += h
            down[j] -= h
            ends = [penalized(b, x, data, ties == "efron") for b in (up, down)]
            assert abs(float((ends[0] - ends[1]) / (2 * h))) < 1e-8


def test_a_fit_without_information_says_so() -> None:
    # One row outweighs all others of each risk set.
    x, data = made(1)
    data["offset"] = 1000.0 * np.arange(24)
    with pytest.warns(ConvergenceWarning, match="the fit cannot start"):
        assert fit(x, data, "breslow").status_ == "max_iter"


def test_without_columns_to_estimate_it_is_the_plain_fit() -> None:
    x, data = made(1)
    y = rs.Surv(data["time"], data["event"])
    for columns, fixed in ((x[:, :0], None), (x, {"x0": 0.5, "x1": -1.0})):
        with warnings.catch_warnings(action="error"):
            model = rs.Cox(firth=True, fixed=fixed).fit(columns, y)
        plain = rs.Cox(fixed=fixed).fit(columns, y)
        assert model.status_ == plain.status_ == "converged"
        assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-12)


def test_there_is_no_robust_variance() -> None:
    x, data = made(1)
    model = fit(x, data, "efron")
    assert np.isnan(model.robust_standard_error_).all()
    with pytest.raises(NotDefinedError, match="robust interval is not defined for `firth=True`"):
        model.confidence_interval(method="robust")


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_slope_in_many_digits_is_zero(seed: int, ties: str) -> None:
    x, data = made(seed)
    model = fit(x, data, ties)
    assert model.status_ == "converged"
    with warnings.catch_warnings(action="ignore"):
        plain = rs.Cox(ties=ties).fit(
            x, rs.Surv(data["time"], data["event"], data["entry"]), strata=data["stratum"]
        )
    assert plain.status_ == "infinite_estimate"
    with localcontext(prec=50):
        at = [Decimal(float(b)) for b in model.coef_]
        top = penalized(at, x, data, ties == "efron")
        assert_allclose(-model.objective_, float(top), rtol=1e-12)
        zero = penalized([Decimal(0)] * 2, x, data, ties == "efron")
        assert_allclose(model.tests_.lr.statistic, float(2 * (top - zero)), rtol=1e-9)
        h = Decimal(10) ** -12
        for j in range(2):
            up, down = list(at), list(at)
            up[j] += h
            down[j] -= h
            ends = [penalized(b, x, data, ties == "efron") for b in (up, down)]
            assert abs(float((ends[0] - ends[1]) / (2 * h))) < 1e-8
            assert ends[0] + ends[1] < 2 * top


@pytest.mark.parametrize("is_event_exposed", [True, False])
def test_one_event_in_closed_form(is_event_exposed: bool) -> None:
    # With p the share of the exposed in the risk set, l* is 1.5 log p + 0.5 log(1 - p) + constant
    # if an exposed row has the event: largest at p = 3/4, where the likelihood has no maximum.
    n, k = 7, 3
    x = (np.arange(n) < k) * 1.0
    event = np.arange(n) == (0 if is_event_exposed else n - 1)
    y = rs.Surv(np.where(event, 1.0, 2.0), event)
    model = rs.Cox(firth=True, tol=1e-12).fit(x[:, None], y)
    share = 0.75 if is_event_exposed else 0.25
    expected = np.log(share / (1 - share) * (n - k) / k)
    assert_allclose(model.coef_[0], expected, rtol=1e-9)
    assert_allclose(model.standard_error_[0], 1 / np.sqrt(share * (1 - share)), rtol=1e-9)
    a, b = (1.5, 0.5) if is_event_exposed else (0.5, 1.5)

    def fall(beta: float) -> float:
        p = 1 / (1 + np.exp(-beta) * (n - k) / k)
        most = a * np.log(share) + b * np.log(1 - share)
        return 2 * (most - a * np.log(p) - b * np.log(1 - p)) - 3.841458820694124

    lower, upper = model.confidence_interval(method="profile")["x0"]
    assert_allclose(lower, brentq(fall, expected - 20, expected), rtol=1e-8)
    assert_allclose(upper, brentq(fall, expected, expected + 20), rtol=1e-8)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_limits_of_intervals_are_where_the_profile_falls_enough(ties: str) -> None:
    x, data = made(1)
    model = fit(x, data, ties)
    low, high = model.confidence_interval("x0", method="profile")["x0"]
    for end in (low, high):
        with localcontext(prec=30):

            def at(b: float, end: float = end) -> float:
                return float(penalized([Decimal(end), Decimal(float(b))], x, data, ties == "efron"))

            ends = np.array([at(b) for b in np.linspace(-3, 3, 13)])
            best = np.linspace(-3, 3, 13)[ends.argmax()]
            for width in (0.25, 0.02, 0.002, 0.0002):
                near = best + width * np.array([-1.0, 0.0, 1.0])
                a, b, c = (at(v) for v in near)
                best += 0.5 * width * (a - c) / (a - 2 * b + c)
        fall = 2 * (-model.objective_ - at(best))
        assert_allclose(fall, 3.841458820694124, rtol=1e-6)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("late", [False, True])
def test_the_slope_of_jeffreys_prior(late: bool, ties: Any) -> None:
    rng = np.random.default_rng(5)
    n = 30
    time = rng.integers(1, 9, n).astype(float)
    outcome = Outcome.build(
        time, rng.random(n) < 0.5, entry=time - rng.choice([1.5, 20.0], n) if late else None,
        weight=rng.integers(1, 4, n), stratum=rng.integers(0, 2, n),
    )  # fmt: skip
    x, eta = rng.normal(size=(n, 3)), rng.normal(size=n)
    design, loss, columns = Design.from_dense(x), CoxLoss(outcome, ties, RUNTIME), np.arange(3)

    def half_log_determinant(at: np.ndarray) -> float:
        return 0.5 * float(np.linalg.slogdet(loss.information(design, at, columns))[1])

    root = np.linalg.inv(np.linalg.cholesky(loss.information(design, eta, columns)))
    found = jeffreys_slope(loss, eta, (design.product(a, columns, runtime=RUNTIME) for a in root))
    for i in range(0, n, 3):
        expected = slope(half_log_determinant, eta, np.eye(n)[i], 2e-3)
        assert_allclose(found[i], expected, rtol=1e-7, atol=1e-8)


@each_storage
def test_rows_twice_and_units_change_nothing(store: Store) -> None:
    x, data = made(3)
    rows = np.repeat(np.arange(24), data["weight"].astype(int))
    names = ("entry", "stratum")
    once = Outcome.build(
        data["time"], data["event"], weight=data["weight"], **{n: data[n] for n in names}
    )
    often = Outcome.build(
        data["time"][rows], data["event"][rows], **{n: data[n][rows] for n in names}
    )
    one = fit_by_firth(store(x), CoxLoss(once, "breslow", RUNTIME), tol=1e-12)
    many = fit_by_firth(store(x[rows]), CoxLoss(often, "breslow", RUNTIME), tol=1e-12)
    scaled = fit_by_firth(store(x * [1.0, 1000.0]), CoxLoss(once, "breslow", RUNTIME), tol=1e-12)
    assert one.status == many.status == "converged"
    assert_allclose(one.coef, many.coef, rtol=1e-8)
    assert_allclose(one.objective, many.objective, rtol=1e-10)
    assert_allclose(one.coef, scaled.coef * [1.0, 1000.0], rtol=1e-8)


def test_columns_that_cannot_be_estimated_are_left_out() -> None:
    x, data = made(1)
    with pytest.warns(RisksetWarning, match="linear combination"):
        model = fit(np.column_stack([x, np.ones(24), x[:, 0] + x[:, 1]]), data, "breslow")
    assert_allclose(model.coef_[:2], fit(x, data, "breslow").coef_, rtol=1e-9)
    assert model.coef_[2:].tolist() == [0.0, 0.0]
    assert {"constant", "collinear"} <= {note.code for note in model.notes_}
    assert np.isnan(model.confidence_interval(method="profile")["x2"]).all()


def test_what_does_not_fit_is_refused(tmp_path: Any) -> None:
    x, data = made(1)
    y = rs.Surv(data["time"], data["event"])
    for parameters, words in (
        ({"penalty": rs.L2(1.0)}, "penalty itself"),
        ({"ties": "exact"}, "ties='exact'"),
        ({"solver": "ccd"}, "solver='ccd'"),
        ({"firth": 1}, "True or False"),
    ):
        with pytest.raises(rs.InputError, match=words):
            rs.Cox(**{"firth": True, **parameters}).fit(x, y)
    with pytest.raises(rs.InputError, match="whole numbers"):
        rs.Cox(firth=True).fit(x, y, sample_weight=np.full(24, 0.5))
    with pytest.raises(rs.InputError, match="cluster"):
        rs.Cox(firth=True).fit(x, y, cluster=np.arange(24))
    model = rs.Cox(firth=True).fit(x, y)
    with pytest.raises(rs.InputError, match="bootstrap"):
        model.bootstrap(10)
    with pytest.raises(rs.InputError, match="profile"):
        rs.profile(model, x, y, parameter="x0")
    model.save(tmp_path / "fit.riskset")
    again = rs.load(tmp_path / "fit.riskset")
    assert again.firth
    assert_allclose(again.standard_error_, model.standard_error_)
    with pytest.raises(NotDefinedError, match="training data"):
        again.confidence_interval(method="profile")
