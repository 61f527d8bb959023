"""The bootstrap as users meet it: what it returns, says and refuses; it changes no model."""

import dataclasses
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

import riskset as rs
from estimators.samples import frame, frame_outcome, model_and_data, simulated, state
from riskset.estimators import _inference
from riskset.plot import bootstrap_distribution
from storages import each_storage


@pytest.fixture(scope="module")
def unpenalized():
    return model_and_data()


@pytest.fixture(scope="module")
def found(unpenalized):
    return unpenalized[0].bootstrap(60)


# ------------------------------------------------------------------------------- what it returns


def test_what_is_returned(unpenalized, found):
    model, *_ = unpenalized
    assert isinstance(found, rs.Bootstrap)
    assert found.names == model.covariates_
    assert found.replicates.shape == (60, 4)
    assert found.statuses == ("converged",) * 60
    assert found.n_failed == 0
    assert (found.seed, found.unit, found.n_units) == (1, "row", 120)
    assert_array_equal(found.coef, model.coef_)
    assert_allclose(found.bias, found.replicates.mean(axis=0) - model.coef_, rtol=1e-12)
    assert_allclose(found.standard_error, found.replicates.std(axis=0, ddof=1), rtol=1e-12)
    # Near the other estimates of the same thing.
    assert_allclose(found.standard_error, model.robust_standard_error_, rtol=0.35)
    assert repr(found) == (
        "Bootstrap(60 replicates of 'x0' and 3 more: 60 converged; 120 rows drawn, seed 1)"
    )


@pytest.mark.parametrize("kind", ["percentile", "basic", "normal", "bca"])
def test_intervals_are_bracketed_by_the_replicates(found, kind):
    interval = found.interval(0.8, kind)
    assert (interval.method, interval.level, interval.details["type"]) == ("bootstrap", 0.8, kind)
    assert (interval.lower < found.coef).all()
    assert (interval.upper > found.coef).all()
    inside = (found.replicates > interval.lower) & (found.replicates < interval.upper)
    assert (np.abs(inside.mean(axis=0) - 0.8) < 0.12).all()


def test_the_percentile_interval_by_order_statistics(found):
    ordered = np.sort(found.replicates[:, 0])
    lower, upper = found.interval(1 - 4 / 61)["x0"]  # 61 (1 - level) / 2 = 2
    assert_allclose([lower, upper], [ordered[1], ordered[58]], rtol=1e-12)


def test_the_interval_of_a_model_is_that_of_its_bootstrap(unpenalized):
    model, *_ = unpenalized
    one = model.confidence_interval("x1", method="bootstrap", replicates=45, seed=7, type="basic")
    assert one.bounds == model.bootstrap(45, 7, parameters=["x1"]).interval(type="basic").bounds
    assert list(one.bounds) == ["x1"]
    assert one.details["replicates"] == 45


def test_tables(found):
    table = found.to_frame("pandas").reset_index()
    assert list(table.columns) == ["replicate", "covariate", "coef", "status"]
    assert len(table) == 240
    assert_array_equal(table.coef, found.replicates.ravel())
    assert list(table.covariate[:5]) == ["x0", "x1", "x2", "x3", "x0"]
    assert_array_equal(table.replicate[:5], [0, 0, 0, 0, 1])
    summary = found.summary(level=0.9)
    assert_array_equal(summary["lower"], found.interval(0.9).lower)
    assert_array_equal(summary["failed"], 0)
    assert list(summary.index) == list(found.names)


def test_a_pickled_result_is_the_same_and_holds_no_data(found):
    again = pickle.loads(pickle.dumps(found))
    assert again.interval(0.8, "bca").bounds == found.interval(0.8, "bca").bounds
    assert_array_equal(again.acceleration, found.acceleration)
    assert len(pickle.dumps(found)) < 20_000


def test_the_library_of_the_data():
    model = rs.Cox().fit(pd.DataFrame(frame()), frame_outcome())
    assert isinstance(model.bootstrap(40).summary(), pd.DataFrame)
    assert "site=c" in model.bootstrap(2).names


# ------------------------------------------------------------------------- the model stays as it is


@pytest.mark.parametrize("penalty", [None, rs.L1(3.0, unpenalized=["x0"])])
def test_the_model_is_not_changed(penalty):
    model, *_ = model_and_data(penalty=penalty)
    before = state(model)
    model.bootstrap(5)
    model.confidence_interval("x0", method="bootstrap", replicates=40)
    assert state(model) == before


def test_an_interrupted_bootstrap_leaves_the_model(monkeypatch):
    model, *_ = model_and_data()
    before = state(model)
    whole = _inference.resample_estimates

    def interrupted(*args, **kwargs):
        for k, estimate in enumerate(whole(*args, **kwargs)):
            if k == 3:
                raise KeyboardInterrupt
            yield estimate

    monkeypatch.setattr(_inference, "resample_estimates", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.bootstrap(10)
    assert state(model) == before
    monkeypatch.undo()
    assert model.bootstrap(2).replicates.shape == (2, 4)


# --------------------------------------------------------------------------------- what is drawn


def test_replicates_depend_on_the_seed_and_their_number_alone(found):
    for n_threads in (1, 2, 3):
        model, *_ = model_and_data(n_threads=n_threads)
        assert_array_equal(model.bootstrap(80).replicates[:60], found.replicates)
    assert (model.bootstrap(5, seed=2).replicates != found.replicates[:5]).all()


def test_clusters_are_those_of_the_fit_or_given(unpenalized):
    model, x, y = unpenalized
    cluster = np.arange(120) // 3
    given = model.bootstrap(5, cluster=cluster)
    fitted = rs.Cox().fit(x, y, cluster=np.char.zfill(cluster.astype(str), 3)).bootstrap(5)
    assert (given.unit, given.n_units) == ("cluster", 40)
    assert_array_equal(given.replicates, fitted.replicates)
    alone = rs.Cox().fit(x, y, cluster=cluster).bootstrap(5, cluster=np.arange(120))
    assert_array_equal(alone.replicates, model.bootstrap(5).replicates)


@each_storage
def test_copies_of_a_row_in_one_cluster_are_drawn_as_the_row(store, unpenalized):
    """Each row twice, its copies in a cluster: the resamples of the rows, to Breslow's method."""
    _, x, y = unpenalized
    model = rs.Cox().fit(store(x), y)
    twice = np.repeat(np.arange(120), 2)
    doubled = rs.Cox().fit(store(x[twice]), y[twice], cluster=twice).bootstrap(5)
    assert_allclose(doubled.replicates, model.bootstrap(5).replicates, rtol=1e-4, atol=1e-5)


def test_a_matched_set_is_drawn_whole():
    """Pairs as strata and clusters: conditional likelihood of 1:1 pairs, exp(b) = n10 / n01."""
    n = 60
    rng = np.random.default_rng(3)
    pair = np.repeat(np.arange(n), 2)
    x = np.tile([0.0, 1.0], n)
    first = rng.random(n) < 0.6  # the exposed one fails first
    time = np.where(np.repeat(first, 2) == (x == 1), 1.0, 2.0)
    y = rs.Surv(time, np.ones(2 * n))
    model = rs.Cox().fit(x[:, None], y, strata=pair)
    found = model.bootstrap(30, cluster=pair)
    assert_allclose(model.coef_[0], np.log(first.sum() / (n - first.sum())), rtol=1e-6)
    drawn = np.exp(found.replicates[:, 0])
    wins = n * drawn / (1 + drawn)
    assert_allclose(wins, wins.round(), atol=1e-2)  # whole pairs
    assert np.unique(wins.round()).size > 5


def test_strata_keep_their_numbers(unpenalized):
    _, x, y = unpenalized
    stratum = np.arange(120) % 2
    model = rs.Cox().fit(x, y, strata=stratum)
    assert (
        model.bootstrap(3).replicates != model.bootstrap(3, within_strata=True).replicates
    ).all()


@each_storage
def test_rows_of_weight_0_are_as_if_they_were_not_there(store, unpenalized):
    _, x, y = unpenalized
    weight = np.where(np.arange(120) % 4 == 0, 0.0, 1.5)
    rows = weight > 0
    some = rs.Cox().fit(store(x), y, sample_weight=weight).bootstrap(5)
    alone = rs.Cox().fit(store(x[rows]), y[rows], sample_weight=weight[rows]).bootstrap(5)
    assert some.n_units == alone.n_units == 90
    assert_allclose(some.replicates, alone.replicates, rtol=1e-4, atol=1e-6)


@each_storage
@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_efron_is_breslow_without_ties(store, ties):
    x, y = simulated(np.random.default_rng(2))
    y["time"] += np.random.default_rng(1).random(120)
    replicates = [
        rs.Cox(ties=t).fit(store(x), y).bootstrap(3).replicates for t in (ties, "breslow")
    ]
    assert_allclose(*replicates, rtol=1e-6, atol=1e-8)


def test_finegray_without_competing_events_is_cox(unpenalized, found):
    _, x, y = unpenalized
    model = rs.FineGray().fit(x, y)
    assert_allclose(model.bootstrap(5).replicates, found.replicates[:5], rtol=1e-5, atol=1e-6)


# --------------------------------------------------------------------- infinite and lost estimates


def rare(n_exposed=2):
    """Few exposed rows, all of which fail: some resamples have none of them."""
    rng = np.random.default_rng(4)
    n = 50
    x = np.column_stack([np.arange(n) < n_exposed, rng.normal(size=n)]).astype(float)
    time = rng.exponential(size=n) + 0.1
    time[:n_exposed] = np.median(time)  # neither first nor last: the estimate is finite
    return x, rs.Surv(time, np.ones(n))


def test_lost_replicates_are_counted_and_told():
    x, y = rare()
    model = rs.Cox().fit(x, y)
    with pytest.warns(rs.RisksetWarning, match="replicates have no estimate of 'x0'") as record:
        found = model.bootstrap(100)
    lost = np.isnan(found.replicates[:, 0])
    # Each row is missing in (1 - 1/50)^50 of resamples, both in about 13 %.
    assert 5 <= lost.sum() <= 25
    assert found.n_failed == lost.sum() == found.status_counts["not_estimable"]
    assert f"{lost.sum()} of 100" in str(record[0].message)
    assert record[0].filename == __file__
    assert np.isfinite(found.replicates[:, 1]).all()
    assert found.summary()["failed"].tolist() == [lost.sum(), 0]
    kept = np.sort(found.replicates[~lost, 0])
    lower, _ = found.interval(0.9)["x0"]
    # Hyndman and Fan's type 6 has the order statistic (B + 1) p.
    assert_allclose(lower, np.quantile(kept, 0.05, method="weibull"), rtol=1e-10)


def infinite():
    """Two exposed rows, of which one fails: without that one the estimate is infinite."""
    rng = np.random.default_rng(6)
    n = 40
    x = np.column_stack([np.isin(np.arange(n), [3, 12]), rng.normal(size=n)]).astype(float)
    event = np.ones(n)
    event[12] = 0
    return x, rs.Surv(np.arange(1.0, n + 1), event)


def test_infinite_replicates_count_in_percentiles():
    x, y = infinite()
    model = rs.Cox().fit(x, y)
    with pytest.warns(rs.RisksetWarning, match="no estimate"):
        found = model.bootstrap(100)
    assert found.status_counts["infinite_estimate"] == np.isinf(found.replicates[:, 0]).sum() >= 5
    assert np.isnan(found.bias[0])
    assert np.isnan(found.standard_error[0])
    assert np.isfinite(found.standard_error[1])
    lower, upper = found.interval()["x0"]
    assert lower == -np.inf
    assert np.isfinite(upper)
    with pytest.warns(rs.RisksetWarning, match=r"normal interval of 'x0' is not defined") as record:
        interval = found.interval(type="normal")
    assert np.isnan(interval["x0"]).all()
    assert np.isfinite(interval["x1"]).all()
    assert "replicates are infinite" in str(record[0].message)
    assert record[0].filename == __file__


def test_an_infinite_estimate():
    x, y = rare()
    y["event"][:2] = 0
    with pytest.warns(UserWarning, match="infinity"):
        model = rs.Cox().fit(x, y)
    with pytest.warns(rs.RisksetWarning, match="no estimate"):
        found = model.bootstrap(60)
    assert set(found.replicates[~np.isnan(found.replicates[:, 0]), 0]) == {-np.inf}
    assert found.interval()["x0"] == (-np.inf, -np.inf)
    with pytest.warns(rs.RisksetWarning, match="its estimate is infinite"):
        assert np.isnan(found.interval(type="bca")["x0"]).all()


def test_a_covariate_that_repeats_another():
    model, x, y = model_and_data()
    with pytest.warns(rs.RisksetWarning, match="combination"):
        model = rs.Cox().fit(np.column_stack([x, x[:, 0]]), y)
    with pytest.warns(rs.RisksetWarning, match="40 of 40 replicates have no estimate of 'x4'"):
        found = model.bootstrap(40)
    assert np.isnan(found.replicates[:, 4]).all()
    assert np.isfinite(found.replicates[:, :4]).all()
    with pytest.warns(rs.RisksetWarning, match="it has no estimate"):
        interval = found.interval()
    assert np.isnan(interval["x4"]).all()
    assert np.isfinite(interval["x0"]).all()


# ---------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"replicates": 1}, "`replicates` must be a whole number of at least 2, but it is 1"),
        ({"replicates": 2.5}, "`replicates` must be a whole number"),
        ({"seed": -1}, "`seed` must be a whole number of at least 0, but it is -1"),
        ({"parameters": ["x9"]}, "covariate 'x9' was not found"),
        ({"parameters": ["x0", "x1", "x0"]}, "covariate 'x0' is named 2 times"),
        ({"cluster": np.arange(7)}, r"`cluster` must have one label for each of the 120 rows"),
        ({"cluster": [np.nan] * 120}, "must not be missing"),
        ({"cluster": np.zeros(120)}, "`cluster` has the same label in all rows"),
    ],
)
def test_what_cannot_be_meant(unpenalized, arguments, message):
    with pytest.raises(rs.InputError, match=message):
        unpenalized[0].bootstrap(**arguments)


def test_too_few_replicates_for_a_level(unpenalized, found, monkeypatch):
    with pytest.raises(rs.InputError, match=r"level=0\.99 needs at least 199 replicates"):
        found.interval(0.99)
    with pytest.raises(rs.InputError, match="must be 'percentile', 'basic', 'bca' or 'normal'"):
        found.interval(type="bcas")
    with pytest.raises(rs.InputError, match="`level` must be between 0 and 1"):
        found.interval(95)
    # Before anything is fitted.
    monkeypatch.setattr(_inference, "resample_estimates", None)
    for options, message in (
        ({"replicates": 38}, "needs at least 39 replicates"),
        ({"replicates": "many"}, "must be a whole number of at least 39, but it is 'many'"),
        ({"type": "student"}, "must be 'percentile', 'basic', 'bca' or 'normal'"),
    ):
        with pytest.raises(rs.InputError, match=message):
            unpenalized[0].confidence_interval(method="bootstrap", **options)


def test_models_without_data(unpenalized, tmp_path):
    model, *_ = unpenalized
    with pytest.raises(NotFittedError):
        rs.Cox().bootstrap()
    model.save(tmp_path / "fit.riskset")
    for other in (pickle.loads(pickle.dumps(model)), rs.load(tmp_path / "fit.riskset")):
        with pytest.raises(rs.InputError, match="a bootstrap needs the training data"):
            other.bootstrap()


# ----------------------------------------------------------------------------------------- pictures


def test_picture(found, tmp_path):
    interval = found.interval()
    lost = np.repeat([[np.inf], [np.inf], [-np.inf], [np.nan]], found.coef.size, axis=1)
    more = dataclasses.replace(found, replicates=np.concatenate([found.replicates, lost]))
    axes = bootstrap_distribution(more, interval=interval)
    assert axes.get_title(loc="left") == "x0"
    assert sum(bar.get_height() for bar in axes.containers[0]) == 60
    lines = sorted(line.get_xdata()[0] for line in axes.lines)
    assert_allclose(lines, sorted([*interval["x0"], found.coef[0]]))
    texts = " ".join(text.get_text() for text in axes.texts)
    assert "2 at +∞" in texts
    assert "1 at −∞" in texts
    assert axes.get_ylabel() == "replicates (of 64, 1 without an estimate)"
    axes.figure.savefig(tmp_path / "bootstrap.png")
    boxes = [text.get_window_extent() for text in axes.texts]
    for line in (*axes.lines, *axes.containers[0]):
        assert not any(box.overlaps(line.get_window_extent()) for box in boxes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        beyond = dataclasses.replace(found, coef=np.full(found.coef.size, np.inf))
        bootstrap_distribution(beyond).figure.canvas.draw()


def test_nothing_to_draw(found):
    none = dataclasses.replace(found, replicates=np.full((3, found.coef.size), np.inf))
    with pytest.raises(rs.InputError, match="0 of 3 are"):
        bootstrap_distribution(none)
    with pytest.raises(rs.InputError, match="x9"):
        bootstrap_distribution(found, "x9")
