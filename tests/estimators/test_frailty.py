"""`CoxFrailty` against R's coxph and coxme, and what must hold whatever the data."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

import riskset as rs
from reference import GOLDEN, read_json
from riskset._errors import NotDefinedError
from storages import Store, each_storage

R = read_json(GOLDEN / "frailty" / "frailty.json")
COLUMNS = {
    "kidney": ["age", "female", "pkd"],
    "rats": ["rx", "female"],
    "lung": ["age", "sex", "ecog"],
    "sim": ["x", "z"],
}
CLUSTER = {"kidney": "id", "rats": "litter", "lung": "inst", "sim": "site"}
SAMPLES = ("kidney", "rats", "lung", "sim", "strata", "late")
TIES = ("breslow", "efron")


def golden_data(name: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    home = name if name in COLUMNS else "sim"
    data = {k: np.array(v, dtype=float) for k, v in R[f"{home}_data"].items()}
    x = np.column_stack([data[c] for c in COLUMNS[home]])
    entry = data["entry"] if name == "late" else None
    extra: dict[str, Any] = {"cluster": data[CLUSTER[home]].astype(int)}
    if name == "strata":
        extra["strata"] = data["group"].astype(int)
    return x, rs.Surv(data["time"], data["status"] == 1, entry), extra


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("kind", ["gamma", "lognormal"])
def test_given_variance_as_in_r(name: str, ties: Any, kind: Any) -> None:
    x, y, extra = golden_data(name)
    model = rs.CoxFrailty(kind, frailty_variance=0.4, ties=ties, tol=1e-11).fit(x, y, **extra)
    golden = R[f"{name}_{ties}"][f"{'gamma' if kind == 'gamma' else 'gaussian'}_fixed"]
    assert model.status_ == "converged"
    assert_allclose(model.coef_, golden["coef"], rtol=1e-9)
    assert_allclose(model.variance_, golden["var"], rtol=1e-9, atol=1e-13)
    assert_allclose(model.gray_variance_, golden["var2"], rtol=1e-9, atol=1e-13)
    found = model.frailties()
    assert_allclose(found["log_frailty"], golden["frail"], rtol=1e-8, atol=1e-10)
    assert_allclose(found["standard_error"] ** 2, golden["fvar"], rtol=1e-8)
    assert_allclose(model.log_likelihood_, golden["loglik"][1], rtol=1e-11)
    assert_allclose(model.df_, golden["df"][-1], rtol=1e-8)
    if kind == "gamma":
        assert_allclose(-model.objective_, golden["loglik"][1] - gamma_penalty(golden), rtol=1e-10)
        assert_allclose(model.integrated_log_likelihood_, golden["c_loglik"], rtol=1e-10)
        assert_allclose(found["posterior_mean"], np.exp(golden["frail"]), rtol=1e-8)
    else:
        mixed = R[f"{name}_{ties}"]["coxme_fixed"]
        assert_allclose(model.coef_, mixed["coef"], rtol=1e-9)
        assert_allclose(model.variance_, mixed["var"], rtol=1e-9, atol=1e-13)
        assert_allclose(model.integrated_log_likelihood_, mixed["loglik"][1], rtol=1e-11)
        assert_allclose(-model.objective_, mixed["loglik"][2], rtol=1e-11)
    # A matrix without the pairs of clusters has the same maximum and other standard errors.
    sparse = R[f"{name}_{ties}"][f"{'gamma' if kind == 'gamma' else 'gaussian'}_fixed_sparse"]
    assert_allclose(model.coef_, sparse["coef"], rtol=1e-6)
    assert_allclose(model.standard_error_, np.sqrt(np.diag(sparse["var"])), rtol=0.05)


def gamma_penalty(golden: dict[str, Any]) -> float:
    """R's penalty of mean 1: the frailties sum to their number."""
    w = np.array(golden["frail"])
    assert_allclose(np.exp(w).mean(), 1.0, rtol=1e-9)
    assert_allclose(golden["penalty"], -w.sum() / golden["theta"], rtol=1e-9)
    return float(golden["penalty"])


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("name", SAMPLES)
def test_estimated_variance_as_in_r(name: str, ties: Any) -> None:
    """R stops when the likelihood rises by less than a share of it, so its variance has 5 digits.

    That of "reml" solves an equation, and has more.
    """
    x, y, extra = golden_data(name)
    golden = R[f"{name}_{ties}"]
    for way, kind, method, rtol in (
        ("gamma", "gamma", "ml", 1e-4),
        ("gaussian_reml", "lognormal", "reml", 1e-7),
        ("coxme", "lognormal", "ml", 2e-5),
    ):
        model = rs.CoxFrailty(kind, frailty_method=method, ties=ties).fit(x, y, **extra)
        known = golden[way]
        assert model.status_ == "converged"
        assert_allclose(model.frailty_variance_, known["theta"], rtol=rtol, atol=1e-7)
        assert_allclose(model.coef_, known["coef"], rtol=rtol, atol=rtol / 10)
        assert_allclose(model.variance_, known["var"], rtol=rtol, atol=1e-8)
        assert_allclose(model.frailties()["log_frailty"], known["frail"], rtol=rtol, atol=rtol)
        if way == "coxme":
            assert_allclose(model.integrated_log_likelihood_, known["loglik"][1], rtol=1e-9)
        if way == "gamma":
            assert_allclose(model.integrated_log_likelihood_, known["c_loglik"], rtol=2e-8)
        statistic = 2 * (model.integrated_log_likelihood_ - golden["plain"]["loglik"][1])
        if method == "ml":
            assert statistic > -1e-6
        assert_allclose(model.frailty_test_.statistic, max(statistic, 0.0), atol=1e-6)


def test_variance_at_its_boundary() -> None:
    """Without variation between clusters the answer is that of `Cox`, and a note says so."""
    x, y, extra = golden_data("kidney")
    model, plain = rs.CoxFrailty().fit(x, y, **extra), rs.Cox().fit(x, y)
    assert model.frailty_variance_ == 0.0
    assert [note.code for note in model.notes_] == ["no_frailty"]
    assert (model.coef_ == plain.coef_).all()
    assert_allclose(model.variance_, plain.variance_, rtol=1e-9)
    assert model.integrated_log_likelihood_ == plain.log_likelihood_
    assert (model.frailty_test_.statistic, model.frailty_test_.p_value) == (0.0, 1.0)
    assert model.df_ == 0.0
    assert (model.frailties()["frailty"] == 1.0).all()
    assert_allclose(
        model.predict_survival_function(x[:3], [50.0]),
        plain.predict_survival_function(x[:3], [50.0]),
    )


@pytest.mark.parametrize("kind", ["gamma", "lognormal"])
def test_small_variances_approach_the_model_without(kind: Any) -> None:
    x, y, extra = golden_data("sim")
    plain = rs.Cox(ties="efron").fit(x, y)
    gaps = []
    for variance in (0.0, 1e-6, 1e-4):
        model = rs.CoxFrailty(kind, frailty_variance=variance, ties="efron").fit(x, y, **extra)
        gaps.append(np.abs(model.coef_ - plain.coef_).max())
        assert_allclose(
            model.integrated_log_likelihood_, plain.log_likelihood_, atol=200 * variance + 1e-9
        )
        assert_allclose(model.standard_error_, plain.standard_error_, atol=variance * 10 + 1e-9)
        assert np.isnan(model.frailty_test_.p_value)
    assert gaps[0] == 0.0
    assert_allclose(gaps[2] / gaps[1], 100.0, rtol=0.02)


def test_tail_of_the_mixture() -> None:
    from riskset.estimators._frailties import FrailtyVarianceTest

    assert_allclose(FrailtyVarianceTest(2.705543).p_value, 0.05, rtol=1e-5)
    assert FrailtyVarianceTest(0.0).p_value == 1.0


@each_storage
@pytest.mark.parametrize("kind", ["gamma", "lognormal"])
def test_equivalent_rows(kind: Any, store: Store) -> None:
    """A weight of two is a row twice, 0 is no row, and the order of rows is nothing."""
    x, y, extra = golden_data("late")
    cluster = extra["cluster"]
    x = np.column_stack([x, x[:, 1] * np.round(x[:, 0])])
    draw = np.random.default_rng(0)
    weight = draw.integers(0, 3, len(x))
    weight[cluster == 3] = 0
    options: dict[str, Any] = {"frailty_variance": 0.3} if kind == "lognormal" else {}
    model = rs.CoxFrailty(kind, tol=1e-10, **options).fit(store(x), y, weight, cluster=cluster)
    again = np.repeat(draw.permutation(len(x)), 1)
    again = np.repeat(again, weight[again])
    other = rs.CoxFrailty(kind, tol=1e-10, **options).fit(
        store(x[again]), y[again], cluster=cluster[again]
    )
    assert_allclose(model.coef_, other.coef_, rtol=1e-7, atol=1e-9)
    assert_allclose(model.variance_, other.variance_, rtol=1e-6, atol=1e-9)
    assert_allclose(model.frailty_variance_, other.frailty_variance_, rtol=1e-6)
    if kind == "gamma":  # a cluster without rows changes no likelihood
        assert_allclose(
            model.integrated_log_likelihood_, other.integrated_log_likelihood_, rtol=1e-9
        )
    kept = model.frailties()
    kept = kept[kept["rows"] > 0]
    assert_allclose(kept["log_frailty"], other.frailties()["log_frailty"], atol=1e-7)


def test_predictions_by_hand() -> None:
    """Of a cluster by its frailty, and over all by the integral, from Breslow's hazard."""
    x, y, extra = golden_data("sim")
    cluster, new, times = extra["cluster"], np.array([[0.5, 1.0], [-1.0, 0.0]]), [20.0, 90.0]
    for kind in ("gamma", "lognormal"):
        model = rs.CoxFrailty(kind, frailty_variance=0.4).fit(x, y, **extra)
        w = model.frailties()["log_frailty"].to_numpy()
        r = np.exp(x @ model.coef_ + w[cluster - 1])
        steps = {
            t: y["event"][y["time"] == t].sum() / r[y["time"] >= t].sum()
            for t in np.unique(y["time"])
        }
        base = np.array([sum(v for t, v in steps.items() if t <= time) for time in times])
        hazard = np.exp(new @ model.coef_)[:, None] * base
        found = model.predict_survival_function(new, times, cluster=[7, 30])
        assert_allclose(found, np.exp(-hazard * np.exp(w[[6, 29]])[:, None]), rtol=1e-8)
        assert_allclose(
            model.predict_cumulative_hazard_function(new, times, cluster=[7, 30]),
            -np.log(found),
            rtol=1e-8,
        )
        mean = model.predict_survival_function(new, times)
        if kind == "gamma":
            known = (1 + 0.4 * hazard) ** (-1 / 0.4)
        else:
            known = np.vectorize(lognormal_survival)(hazard, 0.4)
        assert_allclose(mean, known, rtol=1e-7)
        assert_allclose(
            model.predict_cumulative_hazard_function(new, times), -np.log(known), rtol=1e-7
        )
        steps_of_time = model.predict_survival_function(new)
        assert_allclose([f(times) for f in steps_of_time], mean, rtol=1e-12)
        assert_allclose(
            model.predict(new, cluster=[7, 30]), new @ model.coef_ + w[[6, 29]], rtol=1e-9
        )
        assert_allclose(model.predict(new), new @ model.coef_, rtol=1e-12)


def lognormal_survival(hazard: float, variance: float) -> float:
    def density(z: float) -> float:
        return float(np.exp(-0.5 * z * z / variance) / np.sqrt(2 * np.pi * variance))

    return float(quad(lambda z: density(z) * np.exp(-hazard * np.exp(z)), -9, 9)[0])


def frame() -> pd.DataFrame:
    x, y, extra = golden_data("sim")
    site = [f"site {c}" for c in extra["cluster"]]
    sex = np.where(x[:, 1] > 0, "m", "f")
    return pd.DataFrame(
        {"x": x[:, 0], "sex": sex, "time": y["time"], "died": y["event"] * 1, "site": site}
    )


def test_data_frames_formulas_and_files(tmp_path: Path) -> None:
    """Clusters of a `Dataset` and of a formula, and what files keep."""
    pytest.importorskip("formulaic")
    table = frame()
    data = rs.Dataset.from_frame(table, time="time", event="died", cluster="site")
    model = rs.CoxFrailty("lognormal").fit(data)
    formula = "Surv(time, died) ~ x + sex + cluster(site)"
    other = rs.CoxFrailty.from_formula(formula, table, frailty="lognormal")
    assert_allclose(model.coef_, other.coef_, rtol=1e-9)
    summary = model.summary()
    assert list(summary.columns)[:3] == ["coef", "hazard_ratio", "hazard_ratio_lower"]
    assert summary.loc["sex=m", "reference"] == "sex=f"
    assert_allclose(summary["gray_standard_error"] ** 2, np.diag(model.gray_variance_))
    assert (summary["gray_standard_error"] < summary["standard_error"]).all()
    lower, upper = model.confidence_interval("x", level=0.9)["x"]
    assert_allclose(upper - lower, 2 * 1.6448536 * model.standard_error_[0], rtol=1e-7)
    new, times = table.head(4), [10.0, 60.0]
    model.save(tmp_path / "fit.riskset")
    for again in (rs.load(tmp_path / "fit.riskset"), pickle.loads(pickle.dumps(model))):
        assert isinstance(again, rs.CoxFrailty)
        for name in ("coef_", "frailty_variance_", "df_", "variance_", "gray_variance_"):
            assert_allclose(getattr(again, name), getattr(model, name), rtol=0, atol=0)
        assert again.frailty_test_ == model.frailty_test_
        assert again.frailties().equals(model.frailties())
        assert again.summary().equals(summary)
        for cluster in (None, new["site"]):
            assert_allclose(
                again.predict_survival_function(new, times, cluster=cluster),
                model.predict_survival_function(new, times, cluster=cluster),
                rtol=1e-13,
            )


def test_infinite_estimates() -> None:
    """A covariate without events: its limit, with the frailties of the others."""
    x, y, extra = golden_data("sim")
    safe = np.zeros(len(x))
    safe[np.flatnonzero(~y["event"])[:10]] = 1.0
    with pytest.warns(rs.ConvergenceWarning, match="infinite"):
        model = rs.CoxFrailty(frailty_variance=0.3).fit(np.column_stack([x, safe]), y, **extra)
    far = rs.CoxFrailty(frailty_variance=0.3).fit(x, y, offset=-60.0 * safe, **extra)
    assert model.status_ == "infinite_estimate"
    assert model.coef_[2] == -np.inf
    assert_allclose(model.coef_[:2], far.coef_, rtol=1e-7)
    assert_allclose(model.standard_error_[:2], far.standard_error_, rtol=1e-7)
    assert np.isnan(model.standard_error_[2])
    assert_allclose(model.integrated_log_likelihood_, far.integrated_log_likelihood_, rtol=1e-9)
    new = np.array([[0.5, 1.0, 0.0], [0.5, 1.0, 1.0]])
    found = model.predict_survival_function(new, [40.0], cluster=[3, 3])
    known = far.predict_survival_function(new[:1, :2], [40.0], cluster=[3])
    assert_allclose(found[:, 0], [known[0, 0], 1.0], rtol=1e-7)


def test_column_that_repeats_others() -> None:
    x, y, extra = golden_data("sim")
    with pytest.warns(rs.RisksetWarning, match="linear combination"):
        model = rs.CoxFrailty().fit(np.column_stack([x, x[:, 0]]), y, **extra)
    alone = rs.CoxFrailty().fit(x, y, **extra)
    assert_allclose(model.coef_, [*alone.coef_, 0.0], rtol=1e-7)
    assert np.isnan(model.summary()["coef"].iloc[2])


def test_steps_that_end_too_early() -> None:
    x, y, extra = golden_data("sim")
    with pytest.warns(rs.ConvergenceWarning, match="stopped after"):
        model = rs.CoxFrailty(frailty_variance=0.4, max_iter=2, tol=1e-13).fit(x, y, **extra)
    assert model.status_ == "max_iter"
    assert model.kkt_ > 1e-13


@pytest.mark.parametrize(
    ("options", "extra", "message"),
    [
        ({}, {}, "a frailty needs the cluster of each row"),
        (
            {},
            {"cluster": np.zeros(300)},
            "same label in all rows.*\n.*leave out `cluster` and any frailty",
        ),
        ({}, {"cluster": np.arange(300)}, "each of the 300 clusters has one row"),
        ({}, {"cluster": np.arange(300) // 9, "strata": np.arange(300) // 9}, "each stratum has"),
        ({}, {"cluster": np.arange(300) // 9, "sample_weight": np.full(300, 0.5)}, "whole numbers"),
        ({"frailty": "weibull"}, {"cluster": np.arange(300) // 9}, "`frailty` must be"),
        ({"frailty_variance": -1.0}, {"cluster": np.arange(300) // 9}, "from 0 to 1,000,000"),
        ({"frailty_variance": 1e7}, {"cluster": np.arange(300) // 9}, "`Cox` with `strata`"),
        ({"frailty_method": "reml"}, {"cluster": np.arange(300) // 9}, "not defined for"),
        ({"ties": "exact"}, {"cluster": np.arange(300) // 9}, "`ties` must be"),
        ({"device": "cuda"}, {"cluster": np.arange(300) // 9}, "`device` must be"),
    ],
)
def test_refusals(options: dict[str, Any], extra: dict[str, Any], message: str) -> None:
    x, y, _ = golden_data("sim")
    with pytest.raises(rs.InputError, match=message):
        rs.CoxFrailty(**options).fit(x, y, **extra)


def test_likelihoods_without_frailties_are_refused() -> None:
    """Profiles and held-out scores of a fit with frailties would be those of `Cox`."""
    x, y, extra = golden_data("sim")
    model = rs.CoxFrailty(frailty_variance=0.4).fit(x, y, **extra)
    for refused in (
        lambda: rs.profile(model, x, y, "x0", **extra),
        lambda: rs.path(model, x, y, **extra),
        lambda: rs.cross_validate(rs.CoxFrailty(), x, y, **extra),
    ):
        with pytest.raises(rs.InputError, match="not available for a model with frailties"):
            refused()


def test_the_largest_likelihood_may_be_away_from_a_falling_start() -> None:
    """The likelihood falls from a variance of 0 on, and rises again before its maximum."""
    cluster = [1, 0, 5, 7, 4, 5, 7, 4, 1, 4, 7, 1, 5, 1, 5, 6]
    time = [390, 15, 3199, 7, 13, 378, 27, 8, 104, 5, 16, 143, 1212, 755, 110, 491]
    event = [1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1]

    def fit(variance: float | None) -> rs.CoxFrailty:
        model = rs.CoxFrailty(frailty_variance=variance)
        return model.fit(np.zeros((16, 0)), rs.Surv(time, event), cluster=cluster)

    best = fit(None)
    assert best.frailty_test_.statistic > 0
    for variance in (0.0, 0.01, 0.1, 0.2, 0.25, 0.3, 1.0, 10.0):
        assert fit(variance).integrated_log_likelihood_ < best.integrated_log_likelihood_
    at_zero, near = fit(0.0), fit(1e-3)
    assert near.integrated_log_likelihood_ < at_zero.integrated_log_likelihood_


@pytest.mark.parametrize(
    ("at_fit", "later"),
    [
        ([1, 2, 3], ["1", "2", "3"]),
        (["1", "2", "3"], [1, 2, 3]),
        ([1, 2, 3], [1.0, 2.0, 3.0]),
        ([(1, "a"), (1, "b"), (2, "a")], [(1, "a"), (1, "b"), (2, "a")]),
    ],
)
def test_labels_of_clusters_in_predictions(at_fit: list[Any], later: list[Any]) -> None:
    """Tuples, and labels of which one file has numbers and the other texts."""
    x, y, _ = golden_data("sim")
    place = np.arange(300) % 3
    labels, few = np.empty(3, dtype=object), np.empty(3, dtype=object)
    labels[:], few[:] = at_fit, later
    model = rs.CoxFrailty(frailty_variance=0.4).fit(x, y, cluster=labels[place])
    expected = model.frailties()["log_frailty"].to_numpy()
    found = model.predict(x[:3], cluster=few) - model.predict(x[:3])
    assert_allclose(found, expected, rtol=1e-12)


def test_refusals_of_fitted_models(tmp_path: Path) -> None:
    x, y, extra = golden_data("sim")
    model = rs.CoxFrailty(frailty_variance=0.4).fit(x, y, **extra)
    with pytest.raises(rs.InputError, match="cluster that was not in the fit"):
        model.predict(x[:1], cluster=[99])
    with pytest.raises(rs.InputError, match="covariate"):
        model.confidence_interval("age")
    with pytest.raises(rs.InputError, match="covariate '3'"):
        model.confidence_interval(3)  # type: ignore[arg-type]
    with pytest.raises(NotDefinedError, match="not available for a model with frailties"):
        model.save(tmp_path / "fit.riskset", interval_times=[10.0])


def test_one_row_of_each_cluster_with_a_given_variance() -> None:
    """A frailty of each row is a model of its own: the marginal hazard falls with time."""
    x, y, _ = golden_data("sim")
    model = rs.CoxFrailty(frailty_variance=0.5).fit(x, y, cluster=np.arange(300))
    plain = rs.Cox().fit(x, y)
    assert model.status_ == "converged"
    assert abs(model.coef_[0]) > abs(plain.coef_[0])


def clustered(seed: int = 3, n: int = 400) -> tuple[np.ndarray, Any, np.ndarray]:
    """Rows of clusters of ten with gamma frailties."""
    draw = np.random.default_rng(seed)
    site = np.arange(n) // 10
    x = draw.normal(size=(n, 1))
    time = draw.exponential(np.exp(-0.5 * x[:, 0]) / draw.gamma(2, 0.5, n)[site])
    return x, rs.Surv(np.minimum(time, 2), time < 2), site


@pytest.mark.parametrize(
    ("kind", "method"), [("gamma", "ml"), ("lognormal", "ml"), ("lognormal", "reml")]
)
def test_constant_offsets_change_nothing(kind: Any, method: Any) -> None:
    x, y, site = clustered()
    half = site % 2
    for offset, strata in ((np.full(400, 1e8), None), (1e8 * half - 3.0, half)):
        extra = {"cluster": site, "strata": strata}
        plain = rs.CoxFrailty(kind, frailty_method=method).fit(x, y, **extra)
        moved = rs.CoxFrailty(kind, frailty_method=method).fit(x, y, offset=offset, **extra)
        assert moved.status_ == "converged"
        assert_allclose(moved.frailty_variance_, plain.frailty_variance_, rtol=1e-12)
        assert_allclose(moved.coef_, plain.coef_, rtol=1e-12)
        assert_allclose(moved.variance_, plain.variance_, rtol=1e-12)
        assert_allclose(moved.log_likelihood_, plain.log_likelihood_, rtol=1e-12)


@pytest.mark.parametrize("make", [rs.Cox, rs.FineGray])
def test_constant_offsets_change_nothing_without_frailties(make: Any) -> None:
    x, y, _ = clustered()
    plain = make().fit(x, y)
    moved = make().fit(x, y, offset=np.full(400, 1e12))
    assert moved.status_ == "converged"
    assert_allclose(moved.coef_, plain.coef_, rtol=1e-12)
    assert_allclose(moved.log_likelihood_, plain.log_likelihood_, rtol=1e-12)


def test_the_variance_does_not_depend_on_the_order_of_rows() -> None:
    x, y, site = clustered()
    order = np.random.default_rng(1).permutation(400)
    found = rs.CoxFrailty("lognormal").fit(x, y, cluster=site)
    other = rs.CoxFrailty("lognormal").fit(x[order], y[order], cluster=site[order])
    assert_allclose(other.frailty_variance_, found.frailty_variance_, rtol=1e-9)
    assert_allclose(other.coef_, found.coef_, rtol=1e-9)


def test_the_log_normal_variance_is_where_the_likelihood_is_flat() -> None:
    """By differences of integrated log likelihoods of given variances, far apart."""
    x, y, site = clustered()
    variance = rs.CoxFrailty("lognormal").fit(x, y, cluster=site).frailty_variance_

    def value(log_variance: float) -> float:
        given = float(np.exp(log_variance))
        model = rs.CoxFrailty("lognormal", frailty_variance=given, tol=1e-11)
        return model.fit(x, y, cluster=site).integrated_log_likelihood_

    at, h = np.log(variance), 0.03
    low, high, lower, higher = (value(at + k * h) for k in (-1, 1, -2, 2))
    slope = (8 * (high - low) - (higher - lower)) / (12 * h)
    bend = (high + low - 2 * value(at)) / h**2
    assert abs(slope / bend) < 1e-7  # the error of the logarithm of the variance


def test_a_fit_that_stops_early_says_so_once() -> None:
    x, y, site = clustered()
    for kind in ("gamma", "lognormal"):
        with pytest.warns(rs.ConvergenceWarning) as seen:
            model = rs.CoxFrailty(kind, max_iter=1).fit(x, y, cluster=site)
        assert model.status_ == "max_iter"
        assert [note.code for note in model.notes_] == ["max_iter"]
        assert len(seen) == 1


def test_a_variance_beyond_all_bounds_is_not_converged(monkeypatch: Any) -> None:
    """All events of a cluster come before those of the next; the variance would be near 16,000."""
    monkeypatch.setattr("riskset.solve.frailty.MAX_VARIANCE", 1e3)
    draw = np.random.default_rng(1)
    cluster = np.arange(120) // 4
    y = rs.Surv(cluster + draw.random(120) / 2 + 1, np.ones(120))
    with pytest.warns(rs.ConvergenceWarning, match="no estimate"):
        model = rs.CoxFrailty("lognormal").fit(draw.normal(size=(120, 1)), y, cluster=cluster)
    assert model.status_ == "max_iter"
    assert model.frailty_variance_ == 1e3
    (note,) = model.notes_
    assert note.code == "max_iter"
    assert "up to a variance of 1,000, which the fit has" in note.message
    assert "`riskset.Cox` with the clusters as `strata`" in note.message


def test_infinite_estimates_suggest_what_there_is() -> None:
    x, y, site = clustered()
    never = (y["time"] == 2) * 1.0
    with pytest.warns(rs.ConvergenceWarning) as seen:
        model = rs.CoxFrailty().fit(np.column_stack([x, never]), y, cluster=site)
    assert model.status_ == "infinite_estimate"
    (message,) = [str(one.message) for one in seen]
    assert "Leave the covariates out, or use `riskset.Cox`" in message
    assert ". A penalty" not in message


@pytest.mark.parametrize("kind", ["gamma", "lognormal"])
@pytest.mark.parametrize("far", [1e3, 1e6])
def test_rows_in_no_likelihood_have_no_say(kind: Any, far: float) -> None:
    """Rows of weight 0, and rows that leave before the first event, may have any covariates."""
    x, y, site = clustered()
    plain = rs.CoxFrailty(kind).fit(x, y, cluster=site)
    time = np.append(y["time"], [1.0, y["time"].min() / 2])
    more = rs.Surv(time, np.append(y["event"], [1, 0]))
    weight = np.append(np.ones(len(x)), [0.0, 1.0])
    model = rs.CoxFrailty(kind).fit(
        np.vstack([x, [[far]], [[-far]]]), more, weight, cluster=np.append(site, site[:2])
    )
    assert model.status_ == "converged"
    assert_allclose(model.coef_, plain.coef_, rtol=1e-8)
    assert_allclose(model.standard_error_, plain.standard_error_, rtol=1e-8)
    assert_allclose(model.frailty_variance_, plain.frailty_variance_, rtol=1e-7)
    assert_allclose(model.df_, plain.df_, rtol=1e-7)


@pytest.mark.parametrize("kind", ["gamma", "lognormal"])
def test_hazards_too_far_apart_are_refused(kind: Any) -> None:
    """Where large hazards leave first, small ones are compared, and frailties follow offsets."""
    draw = np.random.default_rng(0)
    site = np.repeat(np.arange(12), 5)
    x, time = draw.normal(size=(60, 2)), draw.exponential(size=60)
    time *= np.exp(-0.5 * x[:, 0] - 0.8 * draw.normal(size=12)[site])
    y = rs.Surv(time, draw.random(60) < 0.7)
    offset = np.where(np.arange(60) % 2, 500.0, -500.0)
    with pytest.raises(rs.InputError, match="too far apart"):
        rs.CoxFrailty(kind).fit(x, y, cluster=site, offset=offset)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_units_do_not_matter(unit: float, tmp_path: Path) -> None:
    """The square of a standard error may be beyond the largest number."""
    x, y, site = clustered()
    plain = rs.CoxFrailty().fit(x, y, cluster=site)
    model = rs.CoxFrailty().fit(x * unit, y, cluster=site)
    model.save(tmp_path / "fit.json")
    for one in (model, rs.load(tmp_path / "fit.json")):
        assert_allclose(one.standard_error_ * unit, plain.standard_error_, rtol=1e-9)
        assert_allclose(one.summary()["p"], plain.summary()["p"], rtol=1e-8)


def test_the_note_says_which_fit_stopped_early() -> None:
    x, y, site = clustered()
    with pytest.warns(rs.ConvergenceWarning, match="the model without frailties"):
        model = rs.CoxFrailty("lognormal", max_iter=1).fit(x, y, cluster=site)
    assert model.status_ == "max_iter"
    assert model.kkt_ <= model.tol  # its own steps start again at each variance


@pytest.mark.filterwarnings("ignore::riskset.ConvergenceWarning")
@pytest.mark.parametrize("method", ["ml", "reml"])
def test_clusters_that_share_no_risk_set_show_no_frailty(method: Any) -> None:
    """Each risk set has rows of one cluster, or its hazards are infinitely far apart."""
    entry = np.array([0.0, 0.0, 0.0, 9.0, 9.0, 9.0])
    y = rs.Surv(np.array([1.0, 2.0, 3.0, 10.0, 11.0, 12.0]), [1, 1, 0, 1, 1, 0], entry)
    x, weight = np.array([[0.3], [-1.0], [0.5], [1.0], [-0.4], [0.1]]), [1, 2, 1, 1, 1, 3]
    plain = rs.Cox().fit(x, y, weight)
    for kind in ("gamma", "lognormal") if method == "ml" else ("lognormal",):
        model = rs.CoxFrailty(kind, frailty_method=method).fit(
            x, y, weight, cluster=[0, 0, 0, 1, 1, 1]
        )
        assert model.frailty_variance_ == 0.0
        assert "no_frailty" in [note.code for note in model.notes_]
        assert_allclose(model.coef_, plain.coef_)


FAR_MAXIMUM = [
    (0.4, 0, 1.85, 5, 1, 0), (0.8, 0, 6.75, 9, 0, 1), (-0.5, 1, 4.29, 8, 0, 2),
    (-0.9, 1, 0.52, 1, 0, 3), (-0.2, 1, 0.06, 6, 1, 4), (-1.7, 0, 6.58, 22, 0, 5),
    (2.2, 0, 6.07, 9, 0, 2), (-0.9, 1, 47.07, 68, 1, 1), (0.3, 1, 2.52, 10, 0, 1),
    (1.9, 0, 0.42, 1, 0, 3), (1.2, 1, 1.13, 2, 0, 0), (1.3, 1, 0.1, 3, 0, 3),
    (-2.5, 1, 83.85, 176, 1, 3), (1.2, 0, 0.62, 7, 1, 4), (0.5, 1, 11.43, 24, 0, 5),
    (2, 1, 0.46, 1, 0, 1), (-1.1, 1, 0.81, 2, 0, 4), (0.5, 0, 3.04, 7, 0, 4),
    (1.4, 0, 1.1, 4, 0, 0), (1, 0, 0.23, 1, 0, 5), (-0.2, 1, 12.39, 34, 0, 2),
    (-0.3, 0, 1.59, 6, 0, 0), (-0.9, 0, 3.05, 4, 0, 1), (0.2, 0, 2.2, 12, 0, 3),
    (0.5, 1, 0.42, 3, 0, 4),
]  # fmt: skip
"""Two covariates, entry, time, event and cluster of each row."""


def test_a_high_maximum_far_away_is_found() -> None:
    """At a variance of 0 the likelihood falls; it rises again beyond 2, to its largest value."""
    rows = np.array(FAR_MAXIMUM)
    x, (entry, time, event), site = rows[:, :2], rows[:, 2:5].T, rows[:, 5].astype(int)
    y = rs.Surv(time, event, entry)

    def value(variance: float | None) -> float:
        model = rs.CoxFrailty("lognormal", frailty_variance=variance).fit(x, y, cluster=site)
        return model.integrated_log_likelihood_

    assert value(2.0) < value(0.0) < value(200.0)
    assert value(None) >= value(200.0)


def test_a_parameter_that_is_set_later_does_not_change_a_fit(tmp_path: Path) -> None:
    x, y, site = clustered()
    model = rs.CoxFrailty("gamma").fit(x, y, cluster=site)
    survival, frailties = model.predict_survival_function(x[:3], [0.5]), model.frailties()
    model.set_params(frailty="lognormal")
    model.save(tmp_path / "fit.json")
    for one in (model, rs.load(tmp_path / "fit.json")):
        assert_allclose(one.predict_survival_function(x[:3], [0.5]), survival)
        assert frailties.equals(one.frailties())


@pytest.mark.parametrize("frailty", ["gamma", "lognormal"])
def test_strata_may_be_far_apart(frailty: str) -> None:
    """A number that is added to all offsets of a stratum changes its baseline alone."""
    x, y, site = clustered()
    stratum = np.arange(site.size) % 2
    offset = np.random.default_rng(1).normal(size=site.size)
    near, far = (
        rs.CoxFrailty(frailty).fit(
            x, y, cluster=site, strata=stratum, offset=offset + size * stratum
        )
        for size in (0.0, 400.0)
    )
    assert far.status_ == near.status_ == "converged"
    assert_allclose(far.coef_, near.coef_, rtol=1e-6)
    assert_allclose(far.standard_error_, near.standard_error_, rtol=1e-6)
    assert_allclose(far.frailty_variance_, near.frailty_variance_, rtol=1e-4)
