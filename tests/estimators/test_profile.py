"""`rs.profile` and profile intervals of models: other programs' numbers, and what users meet."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import riskset as rs
from estimators.samples import frame, frame_outcome, simulated
from reference import CASES, GOLDEN, matrix, read_json, read_table
from storages import each_storage


def case(number, names):
    (folder,) = CASES.glob(f"{number}-*")
    table = read_table(folder / "input.csv")
    y = rs.Surv(table["time"], table["event"])
    return read_json(folder / "expected.json"), matrix(table, names), y, table.get("stratum")


# ------------------------------------------------------------------------------- known answers


def test_no_event_among_the_exposed():
    expected, x, y, _ = case("01", ["x"])
    with pytest.warns(ConvergenceWarning, match="infinity"):
        model = rs.Cox().fit(x, y)
    interval = model.confidence_interval("x0", method="profile")
    assert interval.method == "profile"
    lower, upper = interval["x0"]
    assert lower == -np.inf == float(expected["profile_lower_95"])
    assert_allclose(upper, expected["profile_upper_95"], rtol=1e-8)
    found = rs.profile(model, x, y, "x0")
    assert found.maximum == -np.inf
    assert_allclose(found.log_likelihood_maximum, expected["loglik_limit"], rtol=1e-10)
    assert found.interval() == (lower, upper)
    assert (np.diff(found.log_likelihood) < 0).all()


@pytest.mark.parametrize(("number", "names"), [("14", ["x"]), ("18", ["x"]), ("19", ["x", "z"])])
def test_intervals_of_the_cases(number, names):
    expected, x, y, stratum = case(number, names)
    model = rs.Cox().fit(x, y, strata=stratum)
    found = model.confidence_interval(["x0"], method="profile", level=0.95)["x0"]
    assert_allclose(found, expected["profile_95"], rtol=1e-8)
    again = rs.profile(rs.Cox(), x, y, "x0", grid=[0.0], strata=stratum)
    assert_allclose(again.interval(), expected["profile_95"], rtol=1e-8)


def test_grid_far_from_the_maximum():
    expected, x, y, _ = case("19", ["x", "z"])
    found = rs.profile(rs.Cox(), x, y, "x0", grid=expected["grid"])
    assert_array_equal(found.values, expected["grid"])
    assert_allclose(found.log_likelihood, expected["profile_loglik_x"], rtol=1e-12)
    assert_allclose(found.maximum, expected["beta"][0], rtol=1e-8)
    assert_allclose(found.log_likelihood_maximum, expected["loglik"], rtol=1e-12)
    alone = rs.profile(rs.Cox(), x[:, :1], y, "x0", grid=expected["grid"])
    assert_allclose(alone.log_likelihood, expected["loglik_with_z_fixed_at_0"], rtol=1e-12)
    wide = rs.profile(rs.Cox(), x, y, "x0", bounds=(-1000, 1000))
    assert np.isfinite(wide.log_likelihood).all()
    assert_array_equal(wide.values[[0, -1]], [-1000, 1000])
    assert_allclose(
        wide.log_likelihood[[0, -1]],
        np.array(expected["profile_loglik_x"])[[0, -1]],
        rtol=1e-12,
    )


def golden_profiles():
    """Every fit of another program with profile intervals."""
    for path in sorted(GOLDEN.glob("*.json")):
        for key, fit in read_json(path).items():
            if isinstance(fit, dict) and "profile_ci" in fit:
                yield pytest.param(path.stem, key, id=f"{path.stem}-{key}")


@pytest.mark.parametrize(("file", "key"), list(golden_profiles()))
def test_intervals_of_cyclops(file, key):
    document = read_json(GOLDEN / f"{file}.json")
    expected, table = document[key], read_table(GOLDEN / f"{file}.csv")
    assert (expected["model"], expected["prior"]) == ("cox", "laplace")
    names = document["columns"]
    free = [names[k - 1] for k in expected["exclude"]]
    data = pd.DataFrame({name: table[name] for name in names})
    penalty = rs.L1.from_variance(expected["variance"], unpenalized=free)
    model = rs.Cox(penalty).fit(data, rs.Surv(table["time"], table["event"]))
    assert_allclose(model.coef_, list(expected["coef"].values()), atol=5e-6)
    (parameter,) = (names[k - 1] for k in expected["profile_ci"]["parm"])
    asked = model.confidence_interval(
        parameter, method="profile", level=expected["profile_ci"]["level"], penalized=True
    )
    bounds = [expected["profile_ci"][side] for side in ("lower", "upper")]
    # Cyclops stops its search at 1e-3.
    assert_allclose(asked[parameter], bounds, atol=1e-3)


def test_there_are_golden_profiles():
    assert len(list(golden_profiles())) >= 1


def test_finegray_without_competing_events_has_the_profile_of_cox(rng):
    x, y = simulated(rng)
    cox, gray = (m.fit(x, y).confidence_interval("x1", method="profile")["x1"] for m in MODELS)
    assert_allclose(gray, cox, rtol=1e-8)


MODELS = (rs.Cox(), rs.FineGray())


# ------------------------------------------------------------------------------------ behaviour


def test_default_is_every_covariate_without_a_penalty(data):
    x, y = data
    interval = rs.Cox().fit(x, y).confidence_interval(method="profile")
    assert interval.names == ("x0", "x1", "x2", "x3")
    one = rs.Cox().fit(x, y).confidence_interval("x2", method="profile")
    assert one["x2"] == interval["x2"]
    model = rs.Cox(rs.L1(3.0, unpenalized=["x1", "x3"])).fit(x, y)
    assert model.confidence_interval(method="profile").names == ("x1", "x3")
    ratio = rs.Cox(rs.L1(3.0)).fit(x, y)
    with pytest.raises(rs.InputError, match="every covariate is penalised"):
        ratio.confidence_interval(method="profile")


def test_penalised_covariates_need_the_flag(data):
    x, y = data
    model = rs.Cox(rs.L2(3.0, unpenalized=["x1"])).fit(x, y)
    message = r"'x0' is penalised.*\nHint: .*unpenalized=\['x0'\]"
    with pytest.raises(rs.InputError, match=message):
        model.confidence_interval(["x1", "x0"], method="profile")
    with pytest.raises(rs.InputError, match=message):
        rs.profile(model, x, y, "x0")
    lower, upper = model.confidence_interval("x0", method="profile", penalized=True)["x0"]
    assert lower < model.coef_[0] < upper
    found = rs.profile(model, x, y, "x0", penalized=True)
    assert found.interval() == (lower, upper)
    assert_allclose(found.log_likelihood_maximum, -model.objective_, rtol=1e-12)


def test_profile_does_not_change_the_model_and_holds_data_against_the_fit(data):
    x, y = data
    model = rs.Cox().fit(x, y)
    before = pickle.dumps(model.get_params()), model.coef_.copy()
    assert (
        rs.profile(model, x, y, "x0").interval()
        == model.confidence_interval("x0", method="profile")["x0"]
    )
    assert (pickle.dumps(model.get_params()), model.coef_.tolist()) == (
        before[0],
        before[1].tolist(),
    )
    with pytest.raises(ValueError, match="features"):
        rs.profile(model, x[:, :2], y, "x0")
    fresh = rs.Cox()
    rs.profile(fresh, x, y, "x0", grid=[0.0])
    assert not hasattr(fresh, "coef_")


def test_after_a_save_the_data_are_named_as_missing(data, tmp_path):
    x, y = data
    model = rs.Cox().fit(x, y)
    expected = model.confidence_interval("x1", method="profile")["x1"]
    model.save(tmp_path / "fit.riskset")
    for other in (rs.load(tmp_path / "fit.riskset"), pickle.loads(pickle.dumps(model))):
        with pytest.raises(rs.InputError, match=r"training data.*\nHint: use riskset\.profile"):
            other.confidence_interval("x1", method="profile")
        assert rs.profile(other, x, y, "x1", grid=[0.0]).interval() == expected


def test_frames_datasets_and_result_frames():
    columns, y = frame(), frame_outcome()
    table = pd.DataFrame(columns)
    found = rs.profile(rs.Cox(), table, y, "site=c", bounds=(-1, 1), tolerance=0.01)
    shown = found.to_frame()
    assert shown.index.name == "coef"
    assert list(shown.columns) == ["log_likelihood", "derivative"]
    assert repr(found).startswith("Profile('site=c', ")
    assert found.error <= 0.01
    assert (np.diff(found.derivative) < 0).all()
    whole = table.assign(time=y["time"], event=y["event"].astype(int))
    data = rs.Dataset.from_frame(whole, time="time", event="event")
    again = rs.profile(rs.Cox(), data, parameter="site=c", bounds=(-1, 1), tolerance=0.01)
    assert_array_equal(again.log_likelihood, found.log_likelihood)


def test_aliased_covariates(data):
    x, y = data
    x = np.column_stack([x, x[:, 0] - x[:, 1], np.ones(len(x))])
    with pytest.warns(rs.RisksetWarning, match="linear combination"):
        model = rs.Cox().fit(x, y)
    interval = model.confidence_interval(method="profile")
    wald = model.confidence_interval()
    assert_array_equal(np.isnan(interval.lower), np.isnan(wald.lower))
    for name in ("x4", "x5"):
        with pytest.raises(rs.InputError, match=f"'{name}' is constant .* or repeats others"):
            rs.profile(rs.Cox(), x, y, name)


def test_fits_that_do_not_converge_say_so(data):
    x, y = data
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = rs.Cox(max_iter=1).fit(x, y)
    with pytest.raises(rs.InputError, match="did not converge .*no certified maximum"):
        model.confidence_interval("x0", method="profile")
    model = rs.Cox().fit(x, y).set_params(max_iter=1)
    with pytest.warns(ConvergenceWarning, match="an end that was not found"):
        interval = model.confidence_interval("x0", method="profile")
    assert np.isnan(interval["x0"]).all()


def test_too_few_points_are_told(data):
    with pytest.warns(rs.RisksetWarning, match="more than was asked for"):
        found = rs.profile(rs.Cox(), *data, "x0", tolerance=1e-6, max_points=10)
    assert found.values.size == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameter": "x9"}, "'x9' was not found"),
        ({"parameter": None}, "`parameter` must be the name of a covariate"),
        ({"parameter": "x0", "bounds": (1, -1)}, "lower one first"),
        ({"parameter": "x0", "bounds": (0, np.inf)}, "two finite numbers"),
        ({"parameter": "x0", "bounds": 3}, "two finite numbers"),
        ({"parameter": "x0", "grid": []}, "at least one number"),
        ({"parameter": "x0", "grid": [0.0, np.nan]}, "all must be finite"),
        ({"parameter": "x0", "grid": [0.0], "bounds": (0, 1)}, "given together"),
        ({"parameter": "x0", "tolerance": 0}, "`tolerance` must be a positive number"),
        ({"parameter": "x0", "max_points": 1}, "at least 2"),
    ],
)
def test_impossible_profiles(data, arguments, message):
    with pytest.raises(rs.InputError, match=message):
        rs.profile(rs.Cox(), *data, **arguments)


def test_impossible_levels(data):
    model = rs.Cox().fit(*data)
    for level in (0, 1, 95):
        with pytest.raises(rs.InputError, match="`level` must be between 0 and 1"):
            model.confidence_interval("x0", method="profile", level=level)


@each_storage
def test_same_bits_for_any_number_of_threads(store, data):
    x, y = data
    found = [
        rs.Cox(n_threads=n).fit(store(x), y).confidence_interval(method="profile")
        for n in (1, 2, 3)
    ]
    for other in found[1:]:
        assert_array_equal(other.lower, found[0].lower)
        assert_array_equal(other.upper, found[0].upper)


def test_no_warning_on_the_way(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rs.profile(rs.FineGray(), *data, "x0").interval()
