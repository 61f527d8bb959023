"""Effects that are functions of time, against R's tt() and against split rows."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from reference import GOLDEN, matrix, read_json, read_table
from riskset.model import time_effects
from riskset.model.time_effects import MAX_LEVELS
from storages import Store, each_storage

R = read_json(GOLDEN / "time_effects.json")
LUNG = pd.DataFrame(dict(read_table(GOLDEN / "lung.csv")))
Y = rs.Surv(LUNG["time"], LUNG["event"].astype(int))
TIES = pytest.mark.parametrize("ties", ["breslow", "efron"])


def check(model: rs.TimeEffectCox, golden: dict) -> None:
    assert model.status_ == "converged"
    assert_allclose(model.coef_, golden["coef"], rtol=1e-8)
    assert_allclose(model.variance_, golden["naive"], rtol=1e-7)
    both = [model.null_log_likelihood_, model.log_likelihood_]
    assert_allclose(both, golden["loglik"], rtol=1e-11)


@TIES
def test_effects_of_one_covariate_are_those_of_r(ties: str) -> None:
    model = rs.TimeEffectCox({"age": "log"}, ties=ties, tol=1e-11)
    check(model.fit(LUNG[["age", "sex"]], Y), R[ties]["log"])
    assert model.covariates_ == ("age", "sex", "age:log(t)")
    weight = np.resize([1, 2, 3], len(LUNG))
    model.fit(LUNG[["age", "sex"]], Y, weight, offset=0.1 * LUNG["ph.ecog"])
    check(model, R[ties]["weighted"])
    check(model.fit(LUNG[["age", "ph.ecog"]], Y, strata=LUNG["sex"]), R[ties]["strata"])


@TIES
def test_effects_of_two_covariates_are_those_of_r(ties: str) -> None:
    model = rs.TimeEffectCox({"age": "log", "sex": [365]}, ties=ties, tol=1e-11)
    check(model.fit(LUNG[["age", "sex", "ph.ecog"]], Y), R[ties]["two"])
    assert model.covariates_[3:] == ("age:log(t)", "sex:(365,inf)")


@TIES
def test_rows_that_enter_late_are_those_of_r(ties: str) -> None:
    heart = read_table(GOLDEN / "heart.csv")
    y = rs.Surv(heart["stop"], heart["event"].astype(int), entry=heart["start"])
    x = pd.DataFrame(matrix(heart, ["age", "surgery"]), columns=["age", "surgery"])
    check(rs.TimeEffectCox({"age": np.sqrt}, ties=ties, tol=1e-11).fit(x, y), R[ties]["late"])


@TIES
def test_the_clustered_variance_is_that_of_r(ties: str) -> None:
    model = rs.TimeEffectCox({"age": "log"}, ties=ties, tol=1e-11)
    model.fit(LUNG[["age", "sex"]], Y, cluster=LUNG["inst"])
    golden = R[ties]["cluster"]
    check(model, golden)
    assert model.is_robust_
    assert_allclose(model.robust_variance_, golden["variance"], rtol=1e-6)
    summary = model.summary()
    errors = np.sqrt(np.diag(golden["variance"]))
    assert_allclose(summary["robust_standard_error"], errors, rtol=1e-6)
    assert_allclose(summary["z"], golden["coef"] / errors, rtol=1e-6)


def draw(n: int, levels: int | None, seed: int = 1) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Covariates, and times with ties, entries, weights, strata and clusters."""
    rng = np.random.default_rng(seed)
    age = rng.normal(size=n) if levels is None else rng.integers(0, levels, n) / levels
    x = pd.DataFrame({"age": age, "drug": rng.integers(0, 2, n), "dose": rng.normal(size=n)})
    time = np.ceil(20 * rng.exponential(np.exp(-0.5 * age))) / 20
    return x, pd.DataFrame(
        {
            "time": time,
            "event": rng.integers(0, 2, n),
            "entry": np.where(rng.random(n) < 0.5, time * rng.random(n), 0.0),
            "weight": rng.integers(0, 4, n) / 2,
            "stratum": rng.integers(0, 3, n),
        }
    )


@TIES
@pytest.mark.parametrize("levels", [2, MAX_LEVELS, MAX_LEVELS + 1, None])
def test_it_is_the_fit_to_split_rows(ties: str, levels: int | None) -> None:
    """Both ways to write exponentials: a term for each value, and polynomials."""
    x, rows = draw(250, levels)
    effects = {"age": "log", "drug": [0.3, 0.8]}
    y = rs.Surv(rows["time"], rows["event"], entry=rows["entry"])
    model = rs.TimeEffectCox(effects, ties=ties, tol=1e-12)
    given = {"sample_weight": rows["weight"], "strata": rows["stratum"]}
    model.fit(x, y, **given)
    frame = pd.concat([x, rows], axis=1)
    split = rs.time_interactions(
        frame, effects, time="time", event="event", entry="entry", strata="stratum"
    )
    names = list(model.covariates_)
    late = rs.Surv(split["time"], split["event"], entry=split["entry"])
    plain = rs.Cox(ties=ties, tol=1e-12).fit(
        split[names], late, sample_weight=split["weight"], strata=split["stratum"],
        cluster=split["row"],
    )  # fmt: skip
    assert_allclose(model.coef_, plain.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-12)
    assert_allclose(model.variance_, plain.variance_, rtol=1e-7, atol=1e-12)
    assert model.is_robust_
    assert_allclose(model.robust_variance_, plain.robust_variance_, rtol=1e-6, atol=1e-10)


@TIES
def test_hazards_are_sums_over_split_rows(ties: str) -> None:
    """A row's expected events are its hazard; the model of split rows has them as residuals."""
    x, rows = draw(200, None)
    rows = rows.drop(columns="entry")
    y = rs.Surv(rows["time"], rows["event"])
    effects = {"age": "identity", "drug": [0.5]}
    model = rs.TimeEffectCox(effects, ties=ties, tol=1e-12).fit(x, y, strata=rows["stratum"])
    split = rs.time_interactions(pd.concat([x, rows], axis=1), effects, strata="stratum")
    names = list(model.covariates_)
    plain = rs.Cox(ties=ties, tol=1e-12).fit(
        split[names], rs.Surv(split["time"], split["event"], entry=split["entry"]),
        strata=split["stratum"],
    )  # fmt: skip
    times = [0.1, 0.7, 2.0, 9.0]
    found = model.predict_cumulative_hazard_function(x, times, strata=rows["stratum"])
    jumps = plain.baseline_hazard()
    g = {"age:t": lambda t: t, "drug:(0.5,inf)": lambda t: t > 0.5}
    for j, until in enumerate(times):
        own = jumps.reset_index()
        expected = np.zeros(len(x))
        for step in own[own["time"] <= until].itertuples():
            terms = sum(
                x[name.split(":")[0]] * g[name](step.time) * plain.coef_[names.index(name)]
                for name in g
            )
            risk = step.hazard * np.exp(x.to_numpy() @ plain.coef_[:3] + terms)
            expected += np.where(rows["stratum"] == step.stratum, risk, 0.0)
        assert_allclose(found[:, j], expected, rtol=1e-8)
    survival = model.predict_survival_function(x, times, strata=rows["stratum"])
    assert_array_equal(survival, np.exp(-found))


@each_storage
def test_any_storage_and_any_units_give_the_same(store: Store) -> None:
    x, rows = draw(120, None)
    y = rs.Surv(rows["time"], rows["event"])
    plain = rs.TimeEffectCox({"x0": "log"}).fit(x.to_numpy(), y)
    moved = x.to_numpy() * [100.0, 1.0, 1e-3] + [5000.0, 0.0, 7.0]
    found = rs.TimeEffectCox({"x0": "log"}).fit(store(moved), y)
    assert_allclose(found.coef_ * [100.0, 1.0, 1e-3, 100.0], plain.coef_, rtol=1e-7)
    times = [0.2, 1.0]
    assert_allclose(
        found.predict_cumulative_hazard_function(store(moved[:5]), times),
        plain.predict_cumulative_hazard_function(x.to_numpy()[:5], times),
        rtol=1e-8,
    )


def test_effects_over_time_and_their_test() -> None:
    model = rs.TimeEffectCox({"age": "log", "sex": [200, 400]}).fit(LUNG[["age", "sex"]], Y)
    found = model.effect("age", [10.0, 500.0], by=10.0).reset_index()
    contrast = 10 * np.array([[1, 0, np.log(t), 0, 0] for t in (10.0, 500.0)])
    assert_allclose(found["coef"], contrast @ model.coef_, rtol=1e-12)
    error = np.sqrt(np.diag(contrast @ model.variance_ @ contrast.T))
    assert_allclose(found["standard_error"], error, rtol=1e-12)
    upper = np.exp(contrast @ model.coef_ + 1.959963984540054 * error)
    assert_allclose(found["hazard_ratio_upper"], upper, rtol=1e-10)
    steps = model.effect("sex", [200.0, 200.1, 400.0, 400.1])["coef"].to_numpy()
    b = model.coef_
    assert_allclose(steps, [b[1], b[1] + b[3], b[1] + b[3], b[1] + b[4]], rtol=1e-12)
    test = model.test_constant_effects("sex")
    part = model.variance_[3:, 3:]
    assert test.df == 2
    assert_allclose(test.statistic, b[3:] @ np.linalg.inv(part) @ b[3:], rtol=1e-9)
    assert model.test_constant_effects().df == 3


def test_it_is_pickled_without_its_data() -> None:
    model = rs.TimeEffectCox({"age": "log"}).fit(LUNG[["age", "sex"]], Y)
    again = pickle.loads(pickle.dumps(model))
    new = LUNG[["age", "sex"]].iloc[:4]
    assert_array_equal(
        again.predict_survival_function(new, 300.0), model.predict_survival_function(new, 300.0)
    )
    with pytest.raises(rs.RisksetError, match="training data"):
        _ = again.robust_variance_


def test_an_infinite_estimate_is_not_called_converged() -> None:
    x = pd.DataFrame({"drug": [0, 0, 1, 1, 0, 1], "age": [1.0, 2.0, 0.0, 1.0, 3.0, 1.0]})
    y = rs.Surv([4, 5, 1, 2, 6, 3], [1, 1, 1, 1, 1, 1])
    with pytest.warns(rs.ConvergenceWarning, match="may be infinite"):
        model = rs.TimeEffectCox({"age": "log"}).fit(x, y)
    assert model.status_ == "max_iter"


@pytest.mark.parametrize("seed", range(40))
def test_no_infinite_estimate_is_called_converged(seed: int) -> None:
    """Who has the drug, or the lowest age, is the next with the event, so that slopes only fade."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 40))
    time = np.arange(1.0, n + 1)
    x = pd.DataFrame({"drug": (time <= n // 2) * 1.0, "age": rng.normal(size=n)})
    if seed % 2:
        x["age"] = np.sort(x["age"])
    scale = 10.0 ** (seed % 5 - 2)
    with pytest.warns(rs.ConvergenceWarning, match="may be infinite"):
        model = rs.TimeEffectCox({"age": "log"}, tol=1e-4 if seed % 3 else 1e-8).fit(
            x * scale, rs.Surv(time, np.ones(n))
        )
    assert model.status_ == "max_iter"


def with_information(information: np.ndarray, coef: list[float]) -> rs.TimeEffectCox:
    """A model of age and sex, whose effect depends on time, as if the fit had ended there."""
    model = rs.TimeEffectCox({"sex": "log"}).fit(LUNG[["age", "sex"]], Y)
    fitted = model._training[2]._replace(information=information, coef=np.array(coef))
    model._scale = np.ones(3)
    model._keep(fitted, model._training[0], model._values, model.covariates_)
    return model


def test_coefficients_that_are_not_identified_have_no_standard_errors() -> None:
    """By hand: the information of age is 4, and of both coefficients of sex only their sum's is."""
    singular = np.array([[4.0, 0.0, 0.0], [0.0, 2.0, 2.0], [0.0, 2.0, 2.0]])
    model = with_information(singular, [0.5, 0.3, 0.2])
    assert_allclose(model.standard_error_, [0.5, np.nan, np.nan])
    test = model.test_constant_effects()  # the other coefficient can make up for any gamma
    assert (test.statistic, test.df) == (0.0, 0)
    assert np.isnan(test.p_value)
    assert_allclose(model.effect("age", [3.0])["standard_error"], [0.5])
    # At the time 1, the logarithm is 0, so that the second coefficient has no part in the effect.
    assert np.isnan(model.effect("sex", [1.0, 3.0])["standard_error"]).all()


def test_constant_effects_are_tested_by_the_rank_of_the_information() -> None:
    """Two functions of time of which only the sum has information, by hand."""
    model = rs.TimeEffectCox({"sex": [200, 400]}).fit(LUNG[["sex"]], Y)
    model._scale = np.ones(3)
    singular = np.array([[4.0, 1.0, 1.0], [1.0, 2.0, 2.0], [1.0, 2.0, 2.0]])
    fitted = model._training[2]._replace(information=singular, coef=np.array([0.1, 0.5, 0.7]))
    model._keep(fitted, model._training[0], model._values, model.covariates_)
    test = model.test_constant_effects()
    # With the first coefficient estimated, the information of the sum 1.2 is 2 - 1 / 4.
    assert test.df == 1
    assert_allclose(test.statistic, 1.2**2 * 1.75, rtol=1e-12)


def test_the_robust_test_of_constant_effects_is_that_of_the_robust_variance() -> None:
    model = rs.TimeEffectCox({"age": "log", "sex": [200, 400]})
    model.fit(LUNG[["age", "sex"]], Y, cluster=LUNG["inst"])
    gamma, part = model.coef_[2:], model.robust_variance_[2:, 2:]
    test = model.test_constant_effects()
    assert_allclose(test.statistic, gamma @ np.linalg.solve(part, gamma), rtol=1e-8)
    plain = model.test_constant_effects(robust=False)
    part = model.variance_[2:, 2:]
    assert_allclose(plain.statistic, gamma @ np.linalg.solve(part, gamma), rtol=1e-8)
    errors = model.effect("age", [100.0], robust=False)["standard_error"]
    contrast = np.array([1, 0, np.log(100.0), 0, 0])
    assert_allclose(errors, np.sqrt(contrast @ model.variance_ @ contrast), rtol=1e-10)


@TIES
def test_exponents_of_any_size_are_those_of_split_rows(ties: str) -> None:
    """The range of a covariate is cut into pieces where sums would lose their digits."""
    rng = np.random.default_rng(5)
    n = 150
    x = pd.DataFrame({"age": rng.normal(size=n), "dose": rng.normal(size=n)})
    slope = 0.5 * x["age"] + 1  # the log hazard ratio of age is log(t + 1) / 2
    drawn = np.maximum(1 + slope * rng.exponential(2.0, n), 0.0)
    time = np.ceil(50 * np.where(slope > 0.1, drawn ** (1 / np.maximum(slope, 0.1)) - 1, 9)) / 50
    rows = pd.DataFrame({"time": np.minimum(time, 9.0), "event": (time < 9.0).astype(int)})
    x.loc[:1, "age"], rows.loc[:1, "time"], rows.loc[:1, "event"] = [40.0, -40.0], [0.02, 9.0], 0
    effects = {"age": lambda t: np.log(t + 1)}
    model = rs.TimeEffectCox(effects, ties=ties).fit(x, rs.Surv(rows["time"], rows["event"]))
    exponents = np.outer(x["age"], model.coef_[2] * np.log(rows["time"] + 1))
    assert np.abs(exponents).max() > 20
    split = rs.time_interactions(pd.concat([x, rows], axis=1), effects, id="row")
    plain = rs.Cox(ties=ties, tol=1e-11).fit(
        split[list(model.covariates_)],
        rs.Surv(split["time"], split["event"], entry=split["entry"]),
        cluster=split["row"],
    )
    assert model.status_ == "converged"
    assert_allclose(model.coef_, plain.coef_, rtol=1e-7)
    assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-11)
    assert_allclose(model.robust_variance_, plain.robust_variance_, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-250, 1e250])
def test_units_of_covariates_and_functions_do_not_matter(unit: float) -> None:
    x = LUNG[["age", "sex"]]
    plain = rs.TimeEffectCox({"age": "log"}).fit(x, Y)
    own = rs.TimeEffectCox({"age": lambda t: unit * np.log(t)}).fit(x, Y)
    assert_allclose(own.coef_[2] * unit, plain.coef_[2], rtol=1e-9)
    assert_allclose(own.test_constant_effects().p_value, plain.test_constant_effects().p_value)
    far = rs.TimeEffectCox({"age": "log"}).fit(x * [unit, 1.0], Y)
    assert_allclose(far.coef_ * [unit, 1.0, unit], plain.coef_, rtol=1e-9)
    assert_allclose(
        far.predict_survival_function(x.iloc[:5] * [unit, 1.0], [100.0, 500.0]),
        plain.predict_survival_function(x.iloc[:5], [100.0, 500.0]),
    )


def test_offsets_move_the_baseline_alone() -> None:
    """The baseline hazard is as small as no number can be, but hazards of people are not."""
    x = LUNG[["age", "sex"]]
    plain = rs.TimeEffectCox({"age": "log"}).fit(x, Y)
    moved = rs.TimeEffectCox({"age": "log"}).fit(x, Y, offset=np.full(len(x), 800.0))
    assert_allclose(
        moved.predict_survival_function(x.iloc[:5], 300.0, offset=np.full(5, 800.0)),
        plain.predict_survival_function(x.iloc[:5], 300.0),
        rtol=1e-9,
    )


def test_what_is_left_of_infinite_estimates_has_no_warning_of_numpy() -> None:
    """Effects and hazards beyond floating point are infinite, and survival is between 0 and 1."""
    n = 60
    time = np.arange(1.0, n + 1)
    x = pd.DataFrame({"drug": 0.01 * (time <= n // 2), "age": np.cos(time)})
    with pytest.warns(rs.ConvergenceWarning, match="may be infinite"):
        model = rs.TimeEffectCox({"drug": "identity"}).fit(x, rs.Surv(time, np.ones(n)))
    assert model.status_ == "max_iter"
    assert np.isinf(model.summary()["hazard_ratio_upper"]).any()
    model.effect("drug", [1.0, 1e300])
    model.test_constant_effects()
    survival = model.predict_survival_function(1e4 * x, [0.0, 5.0, 1e9])
    assert ((survival >= 0) & (survival <= 1)).all()


def test_weights_of_any_unit_give_the_same() -> None:
    """Weights whose sum is 1 have small slopes, which are no sign of convergence."""
    x, weight = LUNG[["age", "sex"]], np.resize([1.0, 2.0, 0.5], len(LUNG))
    whole = rs.TimeEffectCox({"age": "log"}).fit(x, Y, sample_weight=weight)
    for unit in (1e-14, 1e-6, 1e6):
        model = rs.TimeEffectCox({"age": "log"}).fit(x, Y, sample_weight=unit * weight)
        assert_allclose(model.coef_, whole.coef_, rtol=1e-9)


@pytest.mark.parametrize(("is_late", "size"), [(True, 40.0), (True, 900.0), (False, 900.0)])
def test_sums_that_rounding_has_spoilt_are_refused(is_late: bool, size: float) -> None:
    """The largest hazard is taken off sums, or the others are below the smallest number."""
    one = np.arange(len(LUNG)) == 0
    entry = np.where(one, 200.0, 0.0) if is_late else None
    y = rs.Surv(np.where(one, 300.0, LUNG["time"]), LUNG["event"].astype(int), entry)
    offset = np.where(one, size, 0.0)
    with pytest.raises(rs.InputError, match="are too far apart"):
        rs.TimeEffectCox({"age": "log"}).fit(LUNG[["age", "sex"]], y, offset=offset)


def test_terms_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    x = LUNG[["age", "sex"]]
    monkeypatch.setattr(time_effects, "free_memory", lambda: 100_000)
    with pytest.raises(rs.InputError, match="effects of 2 covariates .* GB of memory, but 0 GB"):
        rs.TimeEffectCox({"age": "log", "sex": "log"}).fit(x, Y)


@pytest.mark.parametrize("unit", [0.3, 1.0, 7.0])
def test_a_product_that_is_constant_in_every_risk_set_is_refused(unit: float) -> None:
    """After the time 15 nobody with the drug is at risk, whatever digits rounding leaves of 0."""
    time = np.arange(1.0, 31.0)
    x = pd.DataFrame({"drug": unit * (time <= 15) * (time % 3 > 0), "age": np.cos(time)})
    with pytest.raises(rs.InputError, match=r"'drug:\(20,inf\)' cannot be estimated"):
        rs.TimeEffectCox({"drug": [20]}).fit(x, rs.Surv(time, np.ones(30)))


def test_a_covariate_with_the_name_of_a_product_is_refused() -> None:
    x = LUNG[["age", "sex"]].assign(**{"age:log(t)": LUNG["sex"] ** 2})
    with pytest.raises(rs.InputError, match="'age:log.t.' is a covariate, and what its product"):
        rs.TimeEffectCox({"age": "log"}).fit(x, Y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"effects": {"age": None}}, "must be 'log', 'identity', a sequence of times or a call"),
        ({"effects": {}}, "must be a mapping"),
        ({"effects": ["age"]}, "must be a mapping"),
        ({"effects": {"height": "log"}}, "height"),
        ({"effects": {"age": "square"}}, "square"),
        ({"effects": {"age": lambda t: 1 / (t - t)}}, "not finite"),
        ({"effects": {"age": [0]}}, "cannot be estimated"),
        ({"ties": "exact"}, "ties"),
        ({"tol": 2.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_what_is_refused(options: dict, words: str) -> None:
    with pytest.raises(rs.InputError, match=words):
        rs.TimeEffectCox(**({"effects": {"age": "log"}} | options)).fit(LUNG[["age", "sex"]], Y)


@TIES
def test_matched_pairs_are_a_logistic_regression_of_their_first_events(ties: str) -> None:
    """A pair has a term where both are at risk: the odds of whose event it is, at its time."""
    rng = np.random.default_rng(5)
    pairs = np.repeat(np.arange(2000), 2)
    treated = np.tile([0.0, 1.0], 2000)
    time, event = rng.exponential(1.0, 4000), rng.random(4000) < 0.6
    mixed = rng.permutation(4000)
    model = rs.TimeEffectCox({"x0": "log"}, ties=ties, tol=1e-11)
    y = rs.Surv(time[mixed], event[mixed])
    model.fit(treated[mixed, None], y, strata=pairs[mixed])
    first = time.reshape(-1, 2).argmin(axis=1) + 2 * np.arange(2000)
    first = first[event[first]]
    sign, log_time = 2 * treated[first] - 1, np.log(time[first])
    odds = np.exp(sign * (model.coef_[0] + model.coef_[1] * log_time))
    left, share = sign / (1 + odds), odds / (1 + odds) ** 2
    assert_allclose([left.sum(), left @ log_time], 0.0, atol=1e-9)
    assert_allclose(model.log_likelihood_, np.log(odds / (1 + odds)).sum(), rtol=1e-12)
    functions = np.stack([np.ones(first.size), log_time])
    assert_allclose(model.variance_, np.linalg.inv((functions * share) @ functions.T), rtol=1e-9)
    hazard = model.predict_cumulative_hazard_function(
        treated[mixed, None], [100.0], strata=pairs[mixed]
    )
    both = np.empty((2000, 2))
    both.reshape(-1)[mixed] = hazard[:, 0]
    # The sum of the martingale residuals of each pair is 0, but rows leave before the last event.
    last = time.reshape(-1, 2).argmax(axis=1)
    is_one = event.reshape(-1, 2).sum(axis=1) == 1
    is_first = is_one & event.reshape(-1, 2)[np.arange(2000), 1 - last]
    assert_allclose(both[is_first].sum(axis=1), 1.0, rtol=1e-12)
    assert (both[event.reshape(-1, 2).sum(axis=1) == 0] == 0).all()


def test_a_function_may_write_into_its_argument() -> None:
    def doubled(times: np.ndarray) -> np.ndarray:
        times *= 2.0
        return times

    x = LUNG[["age", "sex"]]
    plain = rs.TimeEffectCox({"age": "identity"}).fit(x, Y)
    model = rs.TimeEffectCox({"age": doubled}).fit(x, Y)
    assert_allclose(model.coef_ * [1.0, 1.0, 2.0], plain.coef_, rtol=1e-9)
    at = [100.0, 500.0]
    assert_allclose(
        model.predict_survival_function(x[:5], at), plain.predict_survival_function(x[:5], at)
    )
    assert_allclose(model.effect("age", at)["coef"], plain.effect("age", at)["coef"])


@pytest.mark.parametrize("unit", [1e-200, 1e200])
@pytest.mark.parametrize("is_robust", [False, True])
def test_standard_errors_have_units_of_any_size(unit: float, is_robust: bool) -> None:
    """The square of a standard error may be beyond the largest number."""
    x = LUNG[["age", "sex"]]
    extra = {"cluster": np.arange(len(x)) // 2} if is_robust else {}
    plain = rs.TimeEffectCox({"age": "log"}).fit(x, Y, **extra)
    model = rs.TimeEffectCox({"age": "log"}).fit(x * unit, Y, **extra)
    assert_allclose(model.standard_error_ * unit, plain.standard_error_, rtol=1e-9)
    assert_allclose(model.robust_standard_error_ * unit, plain.robust_standard_error_, rtol=1e-9)
    assert_allclose(model.summary()["p"], plain.summary()["p"], rtol=1e-8)
    found = model.effect("age", [100.0, 500.0], by=10.0 * unit)
    known = plain.effect("age", [100.0, 500.0], by=10.0)
    share = found["standard_error"] / found["coef"]
    assert_allclose(share, known["standard_error"] / known["coef"], rtol=1e-8)


def test_log_likelihoods_of_any_size_end() -> None:
    x = LUNG[["age", "sex"]]
    weight = np.full(len(x), 1e300)  # log likelihoods of 1e302 do not show a small step
    model = rs.TimeEffectCox({"age": "log"}).fit(x, Y, sample_weight=weight)
    assert model.status_ == "converged"
    assert_allclose(model.coef_, rs.TimeEffectCox({"age": "log"}).fit(x, Y).coef_, rtol=1e-6)


@pytest.mark.parametrize("seed", [5, 17, 20])
def test_a_few_very_large_values_do_not_keep_a_fit_from_its_end(seed: int) -> None:
    """They take digits from the likelihood, so that its changes do not show small steps."""
    draw = np.random.default_rng(seed)
    x = np.exp(draw.normal(size=150) * 2.0)
    z = draw.normal(size=150)
    time = draw.exponential(size=150) * np.exp(-0.3 * np.minimum(x, 5.0)) * 365
    limit = draw.exponential(size=150) * np.median(time) * 2
    people = pd.DataFrame({"x": x, "z": z, "time": np.minimum(time, limit), "event": time < limit})
    people["event"] = people["event"].astype(int)
    y = rs.Surv(people["time"], people["event"])
    model = rs.TimeEffectCox({"x": "identity"}).fit(people[["x", "z"]], y)
    assert model.status_ == "converged"
    split = rs.time_interactions(people, {"x": "identity"})
    plain = rs.Cox().fit(
        split[["x", "z", "x:t"]], rs.Surv(split["time"], split["event"], split["entry"])
    )
    assert_allclose(model.coef_, plain.coef_, atol=1e-5 * plain.standard_error_.min(), rtol=1e-5)
    assert_allclose(model.standard_error_, plain.standard_error_, rtol=1e-5)
