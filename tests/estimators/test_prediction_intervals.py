"""Standard errors and limits of predictions, against R and against numerical derivatives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from reference import GOLDEN, matrix, read_json, read_table
from riskset._errors import NotDefinedError
from storages import each_storage

TIMES = {"lung": [5, 100, 365, 700], "heart": [10, 100, 500, 1000]}
LUNG = ("age", "sex", "ph.ecog", "wt.loss")
NEW = np.array([[50.0, 1.0, 0.0, 0.0], [70.0, 2.0, 2.0, 10.0]])
TIES = pytest.mark.parametrize("ties", ["breslow", "efron"])


def golden(*path):
    found = read_json(GOLDEN / "predictions.json")
    for key in path:
        found = found[key]
    return found


def lung():
    table = read_table(GOLDEN / "lung.csv")
    return table, matrix(table, LUNG), rs.Surv(table["time"], table["event"].astype(int))


def competing(n, seed, *, rounded=True):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    time = rng.exponential(np.exp(-0.5 * x[:, 0]))
    censored = rng.exponential(1.5, n)
    event = np.where(time <= censored, rng.integers(1, 3, n), 0)
    time = np.minimum(time, censored)
    return x, np.ceil(time * 8) / 8 if rounded else time, event


def assert_like_r(found, expected):
    assert_allclose(found.estimate, expected["surv"], rtol=1e-9)
    assert_allclose(found.standard_error, expected["std_err"], rtol=1e-8)
    assert_allclose(found.lower, expected["lower"], rtol=1e-8)
    assert_allclose(found.upper, expected["upper"], rtol=1e-8)


@TIES
@pytest.mark.parametrize("interval", ["log-log", "log", "plain", "logit", "arcsine"])
def test_survival_of_a_cox_model_as_r_has_it(ties, interval):
    _, x, y = lung()
    model = rs.Cox(ties=ties, tol=1e-12).fit(x, y)
    found = model.predict_interval(NEW, TIMES["lung"], interval=interval)
    expected = golden("lung", ties, "arcsin" if interval == "arcsine" else interval)
    assert_like_r(found, expected)
    hazard = model.predict_interval(NEW, TIMES["lung"], "cumulative_hazard")
    assert_allclose(hazard.estimate, expected["chaz"], rtol=1e-9)
    assert_allclose(hazard.standard_error, expected["std_chaz"], rtol=1e-8)


@TIES
def test_weights_offsets_and_strata_as_r_has_them(ties):
    table, x, y = lung()
    times = TIMES["lung"]
    model = rs.Cox(ties=ties, tol=1e-12)
    model.fit(x, y, sample_weight=np.resize([1, 2, 3], y.size))
    assert_like_r(model.predict_interval(NEW, times), golden("lung", f"{ties}_weighted"))
    model.fit(x[:, 1:3], y, offset=table["age"] / 50)
    found = model.predict_interval(NEW[:, 1:3], times, offset=NEW[:, 0] / 50)
    assert_like_r(found, golden("lung", f"{ties}_offset"))
    model.fit(x[:, [0, 3, 2]], y, strata=table["sex"])
    for sex in (1, 2):
        found = model.predict_interval(NEW[:, [0, 3, 2]], times, strata=[sex, sex])
        assert_like_r(found, golden("lung", f"{ties}_stratum_{sex}"))


def test_exact_ties_as_r_has_them():
    table, x, _ = lung()
    y = rs.Surv(np.ceil(table["time"] / 30), table["event"].astype(int))
    model = rs.Cox(ties="exact", tol=1e-12).fit(x, y)
    assert_like_r(model.predict_interval(NEW, [3, 12, 24]), golden("lung", "exact"))
    with pytest.raises(
        NotDefinedError, match="a robust variance is not defined for `ties='exact'`"
    ):
        model.predict_interval(NEW, [3], variance="robust")


@TIES
def test_late_entry_as_r_has_it(ties):
    table = read_table(GOLDEN / "heart.csv")
    x = matrix(table, ("age", "year", "surgery", "transplant"))
    y = rs.Surv(table["stop"], table["event"].astype(int), entry=table["start"])
    new = np.array([[-5.0, 2.0, 1.0, 0.0], [5.0, 5.0, 0.0, 1.0]])
    model = rs.Cox(ties=ties, tol=1e-12).fit(x, y)
    assert_like_r(model.predict_interval(new, TIMES["heart"]), golden("heart", ties))


@TIES
@pytest.mark.parametrize("interval", ["log-log", "plain"])
def test_quantiles_as_r_has_them(ties, interval):
    _, x, y = lung()
    found = (
        rs.Cox(ties=ties, tol=1e-12).fit(x, y).predict_quantile(NEW, [0.25, 0.5], interval=interval)
    )
    expected = golden("lung", ties, interval)
    assert_array_equal(found.estimate, np.array(expected["quantile"], float))
    assert_array_equal(found.lower, np.array(expected["quantile_lower"], float))
    assert_array_equal(found.upper, np.array(expected["quantile_upper"], float))
    assert found.standard_error is None
    assert list(found.columns()) == ["row", "proportion", "estimate", "lower", "upper"]


@pytest.mark.parametrize("clusters", [False, True])
def test_robust_variance_without_an_effect_is_that_of_nelson_and_aalen(clusters):
    _, _, y = lung()
    weight = np.resize([0.5, 1.5, 1.0, 2.25], y.size)
    cluster = np.resize(np.arange(60), y.size) if clusters else None
    with pytest.warns(rs.ConvergenceWarning, match="no covariate varies"):
        model = rs.Cox().fit(np.zeros((y.size, 1)), y, sample_weight=weight, cluster=cluster)
    found = model.predict_interval([[0.0]], [50, 200, 365, 700], "cumulative_hazard")
    expected = golden("nelson_aalen" if clusters else "nelson_aalen_rows")
    assert found.variance == "robust"
    assert_allclose(found.estimate[0], expected["chaz"], rtol=1e-10)
    assert_allclose(found.standard_error[0], expected["std_chaz"], rtol=1e-10)


def derivatives(predict, weight):
    """Change of predictions with the log of each case weight, by central differences."""
    out = []
    for row in range(weight.size):
        ends = []
        for step in (-1e-5, 1e-5):
            moved = weight.copy()
            moved[row] *= 1 + step
            ends.append(predict(moved))
        out.append([(b - a) / 2e-5 for a, b in zip(*ends, strict=True)])
    return [np.array(one) for one in zip(*out, strict=True)]


@TIES
@pytest.mark.parametrize("late", [False, True])
def test_robust_variance_is_the_infinitesimal_jackknife(ties, late):
    x, time, event = competing(40, 1)
    rng = np.random.default_rng(2)
    weight, strata = rng.uniform(0.5, 2, 40), rng.integers(0, 2, 40)
    cluster = rng.integers(0, 15, 40)
    entry = (time * rng.uniform(-1, 0.8, 40)).clip(0) if late else None
    y = rs.Surv(time, event > 0, entry=entry)
    new, at, own = np.array([[1.0, 0.0], [-1.0, 0.5]]), [0.375, 0.75], [0, 1]

    def predictions(w):
        model = rs.Cox(ties=ties, tol=1e-13)
        model.fit(x, y, sample_weight=w, strata=strata, cluster=cluster)
        return [
            model.predict_interval(new, at, strata=own),
            model.predict_interval(new, at, strata=own, given=[0.1, 0.25]),
            model.predict_restricted_mean(new, at, strata=own),
        ]

    found = predictions(weight)
    moved = derivatives(lambda w: [one.estimate for one in predictions(w)], weight)
    for one, by_row in zip(found, moved, strict=True):
        sums = np.array([by_row[cluster == c].sum(axis=0) for c in range(15)])
        expected = np.sqrt((sums**2).sum(axis=0))
        assert one.variance == "robust"
        assert_allclose(one.standard_error, expected, rtol=1e-6, atol=1e-9)


def test_cause_specific_robust_variance_is_the_infinitesimal_jackknife():
    x, time, event = competing(40, 5)
    rng = np.random.default_rng(6)
    weight, strata = rng.uniform(0.5, 2, 40), rng.integers(0, 2, 40)
    cluster, y = rng.integers(0, 15, 40), rs.Surv(time, event)
    new, at, own = np.array([[1.0, 0.0], [-1.0, 0.5], [0.0, 0.0]]), [0.375, 0.75], [0, 1, 0]

    def predictions(w):
        model = rs.CauseSpecificCox(ties="efron", tol=1e-13)
        model.fit(x, y, sample_weight=w, strata=strata, cluster=cluster)
        return [
            model.predict_interval(new, at, 1, strata=own),
            model.predict_interval(new, at, kind="survival", strata=own),
            model.predict_interval(new, at, 2, given=[0, 0.25, 0.3], strata=own),
        ]

    found = predictions(weight)
    moved = derivatives(lambda w: [one.estimate for one in predictions(w)], weight)
    for one, by_row in zip(found, moved, strict=True):
        sums = np.array([by_row[cluster == c].sum(axis=0) for c in range(15)])
        expected = np.sqrt((sums**2).sum(axis=0))
        assert one.variance == "robust"
        assert_allclose(one.standard_error, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_influence_on_a_fine_gray_prediction_counts_the_estimate_of_censoring(grouped):
    # The influence on G(t) is that of crr, which is the derivative but for 1 / n.
    n = 3000
    x, time, event = competing(n, 3, rounded=False)
    rng = np.random.default_rng(4)
    weight, strata = rng.uniform(0.5, 2, n), rng.integers(0, 2, n)
    group = rng.integers(0, 2, n) if grouped else None
    new, at, own, y = np.array([[1.0, 0.0]]), [0.2, 0.5, 1.0], [1], rs.Surv(time, event)

    def fit(w):
        model = rs.FineGray(tol=1e-13, censoring_group=group)
        return model.fit(x, y, sample_weight=w, strata=strata)

    model = fit(weight)
    source = model._fitted.hazard
    last = np.searchsorted(model._fitted.baseline.time[source.steps.own(1)], at, side="right")
    weights = source.windows(1, np.zeros_like(last), last)
    mean = weights @ source.steps.mean[source.steps.own(1)]
    influence = source.of_hazards({1: weights})
    influence += source.of_coefficients(np.arange(2)) @ (new - model._fitted.center - mean).T
    squares = np.sqrt((influence**2).sum(axis=0))
    found = model.predict_interval(new, at, "cumulative_hazard", strata=own)
    assert_allclose(found.standard_error / found.estimate, squares[None], rtol=1e-9)
    for rows in (event >= 0, event == 0, event == 2):
        direction = rng.normal(size=n) * rows
        ends = [
            np.log(
                fit(weight * (1 + step * direction)).predict_cumulative_hazard_function(
                    new, at, strata=own
                )
            )
            for step in (-1e-5, 1e-5)
        ]
        expected = (ends[1] - ends[0])[0] / 2e-5
        size = np.sqrt((influence**2 * direction[:, None] ** 2).sum(axis=0))
        assert (np.abs(direction @ influence - expected) < 2e-3 * size).all()


def test_a_fine_gray_model_without_competing_events_is_a_cox_model():
    x, time, event = competing(80, 7)
    y, at = rs.Surv(time, event > 0), [0.25, 0.5, 1.0]
    cox, gray = rs.Cox().fit(x, y), rs.FineGray().fit(x, y)
    for variance in ("model", "robust"):
        a = cox.predict_interval(x[:5], at, "cumulative_incidence", variance=variance)
        b = gray.predict_interval(x[:5], at, variance=variance)
        assert_allclose(b.estimate, a.estimate, rtol=1e-9)
        assert_allclose(b.standard_error, a.standard_error, rtol=1e-6)
        assert_allclose(b.upper, a.upper, rtol=1e-6)


@pytest.mark.parametrize("variance", ["model", "robust"])
def test_one_cause_is_a_cox_model(variance):
    x, time, event = competing(60, 8)
    y, at = rs.Surv(time, event > 0), [0.25, 0.5, 1.0]
    cox = rs.Cox().fit(x, y).predict_interval(x[:4], at, variance=variance)
    one = rs.CauseSpecificCox().fit(x, y)
    survival = one.predict_interval(x[:4], at, kind="survival", variance=variance)
    assert_allclose(survival.standard_error, cox.standard_error, rtol=1e-7)
    incidence = one.predict_interval(x[:4], at, 1, variance=variance)
    assert_allclose(incidence.standard_error, cox.standard_error, rtol=1e-7)
    assert_allclose(incidence.estimate, one.predict_cumulative_incidence(x[:4], at, 1))


@each_storage
def test_weight_2_counts_as_a_row_twice_and_order_does_not_count(store):
    x, time, event = competing(50, 9)
    weight = np.random.default_rng(10).integers(1, 3, 50)
    twice = np.repeat(np.arange(50), weight)
    shuffled = np.random.default_rng(11).permutation(twice)
    y, at, new = rs.Surv(time, event > 0), [0.25, 0.5, 1.0], store(x[:5])
    once = rs.Cox(tol=1e-12).fit(store(x), y, sample_weight=weight)
    again = rs.Cox(tol=1e-12).fit(store(x[shuffled]), y[shuffled])
    names = ("estimate", "standard_error", "lower", "upper")
    for a, b in (
        [model.predict_interval(new, at) for model in (once, again)],
        [model.predict_restricted_mean(new, at) for model in (once, again)],
    ):
        for name in names:
            assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-7)
    clustered = rs.Cox(tol=1e-12).fit(store(x[twice]), y[twice], cluster=twice)
    a = once.predict_interval(new, at, variance="robust")
    b = clustered.predict_interval(new, at)
    assert_allclose(a.standard_error, b.standard_error, rtol=1e-7)


def test_conditional_survival():
    x, time, event = competing(80, 12)
    model = rs.Cox().fit(x, rs.Surv(time, event > 0))
    at, given = [0.25, 0.75, 1.0], np.array([0.5, 0.0, 0.25])
    found = model.predict_interval(x[:3], at, given=given)
    survival = model.predict_survival_function(x[:3], at)
    for row, start in enumerate(given):
        alone = model.predict_survival_function(x[row : row + 1], [start])[0, 0]
        assert_allclose(found.estimate[row], np.minimum(survival[row] / alone, 1), rtol=1e-12)
    assert found.estimate[0, 0] == found.lower[0, 0] == found.upper[0, 0] == 1
    assert found.standard_error[0, 0] == 0
    with pytest.raises(rs.InputError, match="`given` is not for the Fine-Gray model"):
        rs.FineGray().fit(x, rs.Surv(time, event)).predict_interval(x, at, given=0.5)


def test_restricted_mean_is_the_area_under_the_survival():
    x, time, event = competing(80, 13)
    model = rs.Cox().fit(x, rs.Surv(time, event > 0))
    end = 0.9
    found = model.predict_restricted_mean(x[:3], [0.0, end])
    for row, function in enumerate(model.predict_survival_function(x[:3])):
        edges = np.concatenate([[0.0], function.x[function.x < end], [end]])
        area = (function(edges[:-1]) * np.diff(edges)).sum()
        assert_allclose(found.estimate[row], [0.0, area], rtol=1e-12)
    assert_array_equal(found.standard_error[:, 0], 0)
    assert ((found.lower < found.estimate) & (found.estimate < found.upper))[:, 1].all()


def test_nothing_is_known_after_the_end_of_follow_up():
    x, time, event = competing(60, 14)
    strata = np.arange(60) % 2
    time[strata == 1] /= 2
    model = rs.Cox().fit(x, rs.Surv(time, event > 0), strata=strata)
    end = [time[strata == s].max() for s in (0, 1)]
    at = [end[1], end[0], end[0] + 1]
    for found in (
        model.predict_interval(x[:2], at, strata=[0, 1]),
        model.predict_restricted_mean(x[:2], at, strata=[0, 1]),
    ):
        known = np.array([[True, True, False], [True, False, False]])
        for name in ("estimate", "standard_error", "lower", "upper"):
            assert_array_equal(np.isfinite(getattr(found, name)), known)


def test_a_stratum_without_events_has_no_hazard():
    x, time, event = competing(60, 20)
    strata = np.arange(60) % 2
    y = rs.Surv(time, np.where(strata == 1, 0, event > 0))
    model = rs.Cox().fit(x, y, strata=strata)
    for variance in ("model", "robust"):
        found = model.predict_interval(x[:1], [0.25], variance=variance, strata=[1])
        assert found.estimate == found.lower == found.upper == 1
        assert found.standard_error == 0
        found = model.predict_restricted_mean(x[:1], [0.25], variance=variance, strata=[1])
        assert found.estimate == found.lower == found.upper == 0.25
        assert np.isnan(model.predict_quantile(x[:1], variance=variance, strata=[1]).estimate)


def test_infinite_estimates_have_no_standard_errors():
    x, time, event = competing(60, 15)
    never = np.column_stack([x, (np.arange(60) < 8) * 1.0])
    y = rs.Surv(time, np.where(never[:, 2] == 1, 0, event > 0))
    with pytest.warns(rs.ConvergenceWarning):
        model = rs.Cox().fit(never, y)
    found = model.predict_interval(never[[0, 40]], [0.5])
    assert_allclose(found.estimate, model.predict_survival_function(never[[0, 40]], [0.5]))
    assert np.isnan(found.standard_error).any()


def test_covariates_far_from_all_data_predict_limits(rng):
    x = rng.normal(size=(40, 1))
    model = rs.Cox().fit(x, rs.Surv(rng.exponential(size=40), rng.integers(0, 2, 40)))
    far = np.array([[1e300], [-1e300]]) * np.sign(model.coef_)
    with np.errstate(all="raise", under="ignore"):
        found = model.predict_interval(far, 0.5)
    assert_array_equal(found.estimate, [[0.0], [1.0]])


def test_a_saved_model_knows_the_times_that_it_was_saved_with(tmp_path):
    x, time, event = competing(60, 16)
    strata, at = np.arange(60) % 2, [0.5, 0.25]
    for kind in (rs.Cox, rs.FineGray):
        y = rs.Surv(time, event if kind is rs.FineGray else event > 0)
        model = kind().fit(x, y, strata=strata)
        model.save(tmp_path / "fit", interval_times=[0.25, 0.5, 0.75])
        again = rs.load(tmp_path / "fit")
        for variance in ("auto", "model", "robust"):
            a = model.predict_interval(x[:3], at, variance=variance, strata=[0, 1, 1])
            b = again.predict_interval(x[:3], at, variance=variance, strata=[0, 1, 1])
            for name in ("estimate", "standard_error", "lower", "upper"):
                assert_allclose(getattr(b, name), getattr(a, name), rtol=1e-9)
        with pytest.raises(NotDefinedError, match="0.25, 0.5, 0.75, which .* time 0.3"):
            again.predict_interval(x[:3], [0.3], strata=[0, 1, 1])
        with pytest.raises(NotDefinedError, match="training data"):
            again.predict_quantile(x[:3], strata=[0, 1, 1])
        rs.Cox().fit(x, rs.Surv(time, event > 0)).save(tmp_path / "all", interval_times=0.5)
        unstratified = rs.load(tmp_path / "all")
        with pytest.raises(NotDefinedError, match="conditional survival") as caught:
            unstratified.predict_interval(x[:3], [0.5], given=0.25)
        assert caught.value.hint == "predict before saving."
        with pytest.raises(rs.InputError, match="`interval_times` has no times"):
            model.save(tmp_path / "fit", interval_times=[])
        with pytest.raises(rs.InputError, match="`interval_times` must be numeric"):
            model.save(tmp_path / "fit", interval_times="0.5")
        for one in (model, again):
            for variance in ("model", "robust"):
                none = one.predict_interval(x[:3], [], variance=variance, strata=[0, 1, 1])
                assert none.estimate.shape == none.upper.shape == (3, 0)
        model.save(tmp_path / "fit")
        with pytest.raises(NotDefinedError, match="intervals of predictions"):
            rs.load(tmp_path / "fit").predict_interval(x[:3], at, strata=[0, 1, 1])


def test_a_penalised_fit_and_bad_arguments_are_refused():
    x, time, event = competing(60, 17)
    y = rs.Surv(time, event > 0)
    with pytest.raises(NotDefinedError, match="not defined for a penalised fit"):
        rs.Cox(rs.L2(1.0)).fit(x, y).predict_interval(x, [0.5])
    model = rs.Cox().fit(x, y)
    for arguments, message in (
        ({"kind": "risk"}, "`kind`"),
        ({"interval": "exact"}, "interval"),
        ({"kind": "cumulative_hazard", "interval": "log-log"}, "`interval`"),
        ({"variance": "counts"}, "`variance`"),
        ({"level": 1.5}, "`level`"),
        ({"given": [0.1, 0.2]}, "given"),
    ):
        with pytest.raises(rs.InputError, match=message):
            model.predict_interval(x[:3], [0.5], **arguments)
    with pytest.raises(rs.InputError, match="`p` must be between 0 and 1"):
        model.predict_quantile(x[:3], 1.0)
    with pytest.raises(rs.InputError, match="must not be negative"):
        model.predict_restricted_mean(x[:3], [-1.0])
    causes = rs.CauseSpecificCox().fit(x, rs.Surv(time, event))
    with pytest.raises(rs.InputError, match="`cause` is missing"):
        causes.predict_interval(x[:3], [0.5])
    with pytest.raises(rs.InputError, match="any cause, but `cause` was given"):
        causes.predict_interval(x[:3], [0.5], 1, "survival")


@pytest.mark.slow
def test_cause_specific_standard_errors_agree_with_the_bootstrap():
    x, time, event = competing(400, 18, rounded=False)
    y, new, at = rs.Surv(time, event), np.array([[0.5, -0.5], [-1.0, 1.0]]), [0.4, 0.9]
    model = rs.CauseSpecificCox().fit(x, y)
    rng = np.random.default_rng(19)
    draws = []
    for _ in range(400):
        rows = rng.integers(0, 400, 400)
        again = rs.CauseSpecificCox().fit(x[rows], y[rows])
        draws.append(again.predict_cumulative_incidence(new, at, 1))
    spread = np.std(draws, axis=0, ddof=1)
    for variance in ("model", "robust"):
        found = model.predict_interval(new, at, 1, variance=variance)
        assert_allclose(found.standard_error, spread, rtol=0.15)
