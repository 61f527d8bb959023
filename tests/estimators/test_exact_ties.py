"""`Cox(ties="exact")` against R's coxph and clogit, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from reference import GOLDEN, matrix, read_json, read_table
from riskset._errors import NotDefinedError, RisksetWarning
from riskset._runtime import Runtime
from riskset.data.outcome import Outcome
from riskset.model.exact_ties import ExactTiesLoss

EXACT = read_json(GOLDEN / "exact_ties.json")


def cases() -> dict[str, tuple[np.ndarray, np.ndarray, dict[str, Any]]]:
    lung, veteran = read_table(GOLDEN / "lung.csv"), read_table(GOLDEN / "veteran.csv")
    columns = ["time", "event", "age", "sex", "ph.ecog"]
    kept = ~np.isnan(matrix(lung, columns)).any(axis=1)
    time, event, x = (np.array(lung[c][kept]) for c in ("time", "event", "age"))
    x = matrix({c: lung[c][kept] for c in columns[2:]}, columns[2:])
    quarter, sex = np.ceil(time / 90), lung["sex"][kept]
    entry = np.maximum(0, time - 1 - 7 * (np.arange(1, time.size + 1) % 40))
    week = np.ceil(veteran["time"] / 7)
    infert = {name: np.array(v, float) for name, v in EXACT["infert_data"].items()}
    z = matrix(infert, ["spontaneous", "induced"])
    y = rs.Surv(np.ones(len(z)), infert["case"] == 1)
    return {
        "lung": (x, rs.Surv(time, event), {}),
        "lung_quarters": (x, rs.Surv(quarter, event), {}),
        "lung_strata": (x[:, [0, 2]], rs.Surv(quarter, event), {"strata": sex}),
        "lung_late": (x, rs.Surv(time, event, entry), {}),
        "veteran_weeks": (
            matrix(veteran, ["karno", "age", "diagtime"]),
            rs.Surv(week, veteran["event"]),
            {},
        ),
        "infert": (z, y, {"strata": infert["stratum"]}),
        "infert_education": (z, y, {"strata": infert["education"]}),
    }


@pytest.mark.parametrize("name", list(cases()))
def test_r(name: str) -> None:
    x, y, extra = cases()[name]
    model, golden = rs.Cox(ties="exact", tol=1e-11).fit(x, y, **extra), EXACT[name]
    assert model.status_ == "converged"
    assert_allclose(model.coef_, golden["coef"], rtol=2e-7)
    assert_allclose(model.variance_, golden["vcov"], rtol=2e-6, atol=1e-12)
    assert_allclose(model.log_likelihood_, golden["loglik"][1], rtol=1e-10)
    assert_allclose(model.null_log_likelihood_, golden["loglik"][0], rtol=1e-10)
    assert_allclose(model.tests_.score.statistic, golden["score"], rtol=1e-8)
    assert_allclose(model.tests_.wald.statistic, golden["wald"], rtol=1e-6)
    if "survival" in golden:
        found = model.predict_survival_function([[60.0, 1.0, 1.0]], golden["times"])
        assert_allclose(found[0], golden["survival"], rtol=1e-6)
    assert np.isnan(model.robust_standard_error_).all()


def test_penalties_keep_their_conditions() -> None:
    x, y, _ = cases()["lung_quarters"]
    model = rs.Cox(rs.ElasticNet(strength=3.0, l1_ratio=0.5), ties="exact", tol=1e-10).fit(x, y)
    assert model.status_ == "converged"
    l1, l2 = model.penalty.arrays(model.covariates_)
    free = rs.Cox(ties="exact").fit(x, y)

    def value(b: np.ndarray) -> float:
        moved = rs.Cox(rs.L2(1e12), ties="exact", tol=1e-6).fit(x, y, offset=x @ b)
        return float(l1 @ np.abs(b) + l2 @ b**2 / 2) - moved.null_log_likelihood_

    assert_allclose(value(model.coef_), model.objective_, rtol=1e-12)
    for other in (free.coef_, model.coef_ + [0.01, 0, 0], model.coef_ - [0, 0.05, 0.01]):
        assert value(other) > model.objective_


def test_profile_intervals_are_where_the_likelihood_falls_enough() -> None:
    x, y, extra = cases()["infert"]
    model = rs.Cox(ties="exact").fit(x, y, **extra)
    interval = model.confidence_interval("x0", method="profile")
    for end in interval["x0"]:
        rest = rs.Cox(ties="exact").fit(x[:, 1:], y, offset=end * x[:, 0], **extra)
        fall = 2 * (model.log_likelihood_ - rest.log_likelihood_)
        assert_allclose(fall, 3.841458820694124, rtol=1e-6)


def test_a_column_that_is_constant_in_the_limit_has_no_standard_error() -> None:
    # The events are the rows with x = 1: in the limit only these are at risk.
    time = np.array([1.0, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5])
    event = np.array([1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0], dtype=bool)
    for x in (event * 1.0, event * 0.3 + 0.1):
        with pytest.warns(RisksetWarning, match="infinity"):
            model = rs.Cox(ties="exact").fit(x[:, None], rs.Surv(time, event))
        assert model.coef_[0] == np.inf
        assert np.isnan(model.standard_error_[0])


def test_what_no_machine_gets_through_is_refused() -> None:
    x, y, _ = cases()["lung"]
    first = np.arange(len(x)) == int(np.flatnonzero(y["event"])[0])
    with pytest.raises(rs.InputError, match=r"about 1e\+14 multiplications"):
        rs.Cox(ties="exact").fit(x, y, sample_weight=np.where(first, 1e7, 1.0))
    model = rs.Cox(ties="exact").fit(x, y, sample_weight=np.where(first, 100.0, 1.0))
    rows = np.repeat(np.arange(len(x)), np.where(first, 100, 1))
    assert_allclose(model.coef_, rs.Cox(ties="exact").fit(x[rows], y[rows]).coef_, rtol=1e-7)


def test_rows_without_events_of_large_weights_are_refused() -> None:
    """Each costs as much as so many rows: with 10,000,000, a fit took minutes."""
    x, y, _ = cases()["lung"]
    last = np.arange(len(x)) == int(np.flatnonzero(~y["event"])[-1])
    with pytest.raises(rs.InputError, match=r"is 10,000,000, but .*at most 1,000,000"):
        rs.Cox(ties="exact").fit(x, y, sample_weight=np.where(last, 1e7, 1.0))


def test_the_work_is_that_of_the_shorter_way() -> None:
    # Two strata: risk sets of 3 and 2 rows with 1 and 2 events, and of 2 rows with 1 event.
    outcome = Outcome.build(
        np.array([1.0, 2, 2, 1, 2]), np.array([1, 1, 1, 1, 0], bool), stratum=[0, 0, 0, 1, 1]
    )
    assert ExactTiesLoss(outcome, "exact", Runtime(1)).work == min(3 + 4, 3 * 2) + 2
    late = Outcome.build(
        np.array([1.0, 2, 2]), np.ones(3, dtype=bool), entry=np.array([0.0, 0.0, 1.5])
    )
    assert ExactTiesLoss(late, "exact", Runtime(1)).work == 2 * 1 + 2 * 2


def test_a_saved_model_says_the_same(tmp_path) -> None:
    x, y, extra = cases()["infert"]
    model = rs.Cox(ties="exact").fit(x, y, **extra)
    model.save(tmp_path / "fit.riskset")
    again = rs.load(tmp_path / "fit.riskset")
    assert_allclose(again.standard_error_, model.standard_error_)
    assert again.ties == "exact"


def fit(**parameters: Any) -> Any:
    x, y, _ = cases()["lung"]
    extra = {k: parameters.pop(k) for k in ("sample_weight", "cluster") if k in parameters}
    return rs.Cox(ties="exact", **parameters).fit(x, y, **extra)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"sample_weight": np.append(np.ones(212), 0.5)}, "weight of row 212 is 0.5"),
        ({"cluster": np.arange(213)}, "no robust variance for `ties='exact'`"),
        ({"solver": "ccd"}, "solver='ccd'"),
        ({"device": "cuda"}, "device='cuda'"),
    ],
)
def test_what_does_not_fit_is_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(rs.InputError, match=words):
        fit(**parameters)


def test_what_is_not_defined_is_refused() -> None:
    x, y, _ = cases()["lung"]
    model = fit()
    with pytest.raises(NotDefinedError, match="robust interval is not defined"):
        model.confidence_interval(method="robust")
    with pytest.raises(NotDefinedError, match="residual"):
        model.residuals(x, y)
    with pytest.raises(NotDefinedError, match="proportional"):
        model.test_proportionality(x, y)
    with pytest.raises(rs.InputError, match="bootstrap"):
        model.bootstrap(10)
    with pytest.raises(rs.InputError, match="cross-validation"):
        rs.CoxCV(ties="exact").fit(x, y)
