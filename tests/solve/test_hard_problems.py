"""Problems whose answer is known from an easier one, and that floating point makes hard."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize_scalar
from scipy.special import softmax

import riskset as rs

pytestmark = pytest.mark.portability


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, rs.Surv]:
    """Two covariates that matter, and survival."""
    rng = np.random.default_rng(seed)
    x, u = rng.normal(size=(2, n))
    time = rng.exponential(np.exp(-0.5 * x - 0.5 * u))
    return x, u, rs.Surv(time, rng.random(n) < 0.8)


# ------------------------------------------------------------------------ infinite estimates


def test_infinite_in_stages() -> None:
    # The first direction tells the first event from the rest, the next one the second, and so on:
    # in the limit every event is certain, so the likelihood is 1 and no residual is left.
    x = np.array([[184.0, 148, 3], [22, 114, 131], [75, 88, 106], [160, 174, 8]])
    y = rs.Surv([1, 2, 3, 4], [1, 1, 1, 0])
    with pytest.warns(UserWarning, match="infinity"):
        model = rs.Cox().fit(x, y)
    assert model.status_ == "infinite_estimate"
    assert_allclose(model.log_likelihood_, 0.0, atol=1e-14)
    assert_allclose(model.residuals(x, y), 0.0, atol=1e-14)


def test_the_remark_on_several_infinite_coefficients_has_a_plural() -> None:
    y = rs.Surv([1, 2, 3, 4], [1, 1, 1, 0])
    x = np.array([[1.0, 1.0], [0, 1], [0, 0], [0, 0]])
    with pytest.warns(UserWarning, match="coefficients of 'x0', 'x1' go to .* estimates are"):
        assert np.isinf(rs.Cox().fit(x, y).coef_).all()
    with pytest.warns(UserWarning, match="coefficient of 'x0' goes to .* the estimate is"):
        rs.Cox().fit(x[:, :1], y)


def test_an_infinite_coefficient_beside_one_that_takes_longer() -> None:
    x = np.array([[1000.02, -0.9], [1000.01, -1.2], [0, -1.3], [0, 0.7], [0, -1.6]])
    with pytest.warns(UserWarning, match="infinity"):
        model = rs.Cox(tol=1e-12).fit(x, rs.Surv(np.arange(1.0, 6), np.ones(5)))

    # In the limit the first two events are certain; the others are told apart by the second column.
    def loss(b: float) -> float:
        risk = np.exp(b * x[2:, 1])
        return float(-np.log(risk / np.cumsum(risk[::-1])[::-1]).sum())

    least = minimize_scalar(loss, bracket=(0, 1), tol=1e-12)
    assert model.coef_[0] == np.inf
    assert_allclose(model.coef_[1], least.x, rtol=1e-6)
    assert_allclose(model.log_likelihood_, -least.fun, rtol=1e-12)


def test_infinite_parts_that_cancel_far_from_0() -> None:
    # x1 + x2 is the exposure without events: rows that share it differ by x1 - x2 alone.
    rng = np.random.default_rng(7)
    n = 200
    exposed, x = rng.random(n) < 0.3, rng.normal(size=n) + 1e6
    y = rs.Surv(rng.exponential(size=n), ~exposed)
    with pytest.warns(UserWarning, match="infinity"):
        model = rs.Cox(tol=1e-11).fit(np.c_[x, exposed - x], y)
    plain = rs.Cox(tol=1e-11).fit((x - 1e6)[~exposed][:, None], y[~exposed])
    assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-12)
    assert list(model.coef_) == [-np.inf, -np.inf]
    at = [0.5, 1.0]
    mine = model.predict_survival_function(np.c_[x, exposed - x], times=at)
    theirs = plain.predict_survival_function((x - 1e6)[:, None], times=at)
    assert_allclose(np.asarray(mine)[~exposed], np.asarray(theirs)[~exposed], rtol=1e-6)
    assert_allclose(np.asarray(mine)[exposed], 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_every_event_certain(seed: int) -> None:
    # The first row has the event and the larger covariate, whatever the offsets: the likelihood
    # tends to 1, and comes as near to it as floating point can tell.
    rng = np.random.default_rng(seed)
    x = np.sort(rng.normal(size=(2, 1)), axis=0)[::-1]
    with pytest.warns(UserWarning, match="infinity"):
        model = rs.Cox().fit(x, rs.Surv([1.0, 3.0], [True, False]), offset=rng.normal(size=2))
    assert model.coef_[0] == np.inf
    assert_allclose(model.log_likelihood_, 0.0, atol=1e-14)


@pytest.mark.parametrize(("n", "p"), [(80, 100), (300, 100)])
def test_events_that_many_columns_put_in_order(n: int, p: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, p))
    time = 100 - x @ rng.normal(size=p) if p < n else rng.exponential(size=n)
    with warnings.catch_warnings(action="ignore"):
        model = rs.Cox().fit(x, rs.Surv(time, np.ones(n)))
    assert model.status_ == "infinite_estimate"
    assert_allclose(model.log_likelihood_, 0.0, atol=1e-12)
    notes = [note for note in model.notes_ if note.code == "collinear"]
    assert len(notes) == (p >= n)  # one for all of them
    if p >= n:
        assert len(notes[0].columns) == p - n + 1


@pytest.mark.parametrize("n", [100, 20_000])
def test_an_order_of_values_close_to_each_other(n: int) -> None:
    x = np.random.default_rng(0).exponential(size=n)
    with pytest.warns(UserWarning, match="infinity"):
        model = rs.Cox().fit(-x[:, None], rs.Surv(x + 1, np.ones(n)))
    assert model.coef_[0] == np.inf
    assert model.log_likelihood_ == 0.0


def test_a_copy_of_an_infinite_column_is_told() -> None:
    rng = np.random.default_rng(0)
    z, time, event = rng.normal(size=40), rng.exponential(size=40), rng.random(40) < 0.6
    exposed = np.arange(40) < 5
    with warnings.catch_warnings(action="ignore"):
        model = rs.Cox().fit(np.c_[exposed, exposed, z], rs.Surv(time, event & ~exposed))
    assert model.coef_[:2].tolist() == [-np.inf, 0.0]
    assert {n.code: n.columns for n in model.notes_} == {
        "infinite": ("x0",),
        "collinear": ("x0", "x1"),
    }


def test_a_column_that_tells_nothing_in_the_limit() -> None:
    # x1 varies among the exposed only, and they have left every risk set in the limit.
    rng = np.random.default_rng(2)
    n = 60
    exposed, z, time = np.arange(n) < 12, rng.normal(size=n), rng.exponential(size=n)
    x1 = np.where(exposed, rng.normal(size=n), 0.0)
    with warnings.catch_warnings(action="ignore"):
        model = rs.Cox().fit(np.c_[exposed, x1, z], rs.Surv(time, ~exposed))
    plain = rs.Cox().fit(z[~exposed][:, None], rs.Surv(time[~exposed], np.ones(n - 12)))
    assert_allclose(model.coef_[2], plain.coef_[0], rtol=1e-6)
    (note,) = (n for n in model.notes_ if n.code == "constant")
    assert note.columns == ("x1",)
    assert "arbitrary" in note.message


# ---------------------------------------------------------------------- nearly equal columns


@pytest.mark.parametrize("difference", [1e-3, 5e-6])
def test_columns_that_nearly_repeat_another(difference: float) -> None:
    x, u, y = draw(300, 3)
    plain = rs.Cox(tol=1e-11).fit(np.c_[x, u], y)
    with warnings.catch_warnings(action="ignore"):
        model = rs.Cox(tol=1e-10).fit(np.c_[x, x + difference * u], y)
    assert model.status_ == "converged"
    assert [note.code for note in model.notes_] == ["nearly_collinear"] * (difference < 1e-4)
    assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-9)
    assert_allclose(model.coef_.sum(), plain.coef_[0], rtol=1e-4)
    assert_allclose(model.coef_[1] * difference, plain.coef_[1], rtol=1e-4)


@pytest.mark.parametrize("difference", [10**-5.5, 1e-6, 10**-6.5, 1e-7])
def test_fit_and_tests_agree_on_what_repeats(difference: float) -> None:
    x, u, y = draw(200, 0)
    with warnings.catch_warnings(action="ignore"):
        model = rs.Cox().fit(np.c_[x, x + difference * u], y)
    assert model.status_ == "converged"
    is_kept = np.count_nonzero(model.coef_) == 2
    plain = rs.Cox().fit(np.c_[x, u] if is_kept else x[:, None], y)
    assert [note.code for note in model.notes_] == ["nearly_collinear" if is_kept else "collinear"]
    for name in ("lr", "score", "wald"):
        mine, theirs = getattr(model.tests_, name), getattr(plain.tests_, name)
        assert mine.df == theirs.df
        assert_allclose(mine.statistic, theirs.statistic, rtol=0.01)
    assert np.isfinite(model.standard_error_[: mine.df]).all()


def test_a_rounded_copy() -> None:
    x, _, y = draw(200, 4)
    plain = rs.Cox().fit(x[:, None], y)
    with pytest.warns(UserWarning, match="linear combination"):
        model = rs.Cox().fit(np.c_[x, x.astype(np.float32)], y)
    assert model.status_ == "converged"
    assert_allclose(model.coef_, [plain.coef_[0], 0], rtol=1e-7)


def test_columns_that_differ_in_one_row() -> None:
    x, _, y = draw(20_000, 5)
    one = np.zeros(20_000)
    one[np.flatnonzero(y["event"])[0]] = 1.0
    plain = rs.Cox(tol=1e-10).fit(np.c_[x, one], y)
    model = rs.Cox(tol=1e-10).fit(np.c_[x, x + one], y)
    assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-12)
    assert_allclose(model.coef_[1], plain.coef_[1], rtol=1e-6)


# --------------------------------------------------------------------- extreme values and rows


@pytest.mark.parametrize("model", [rs.Cox(), rs.FineGray()], ids=["cox", "finegray"])
def test_offsets_that_leave_no_information_at_0(model: rs.Cox | rs.FineGray) -> None:
    # x0 -> inf makes the first event certain; x1 and x2 follow, so that rows 3 and 7 have each the
    # 1/7 of the chances that fits their event among the seven of time 3. Five rows share the rest.
    x = np.zeros((8, 3))
    x[[1, 3, 7], 0] = 0.1, 0.5, -0.2
    x[7, 1] = x[3, 2] = 1.0
    offset = np.array([33.0, -92, -55, 1, 32, -80, 19, 54])
    y = rs.Surv([3, 1, 3, 3, 3, 3, 3, 3], np.ones(8, int))
    with pytest.warns(UserWarning, match="infinity"):
        model.fit(x, y, offset=offset)
    rest = offset[[0, 2, 4, 5, 6]]
    total = np.logaddexp.reduce(rest)
    expected = rest.sum() + 2 * (total - np.log(5)) - 7 * (total + np.log(7 / 5))
    assert model.status_ == "infinite_estimate"
    assert model.coef_.tolist() == [np.inf, np.inf, -np.inf]
    assert_allclose(model.log_likelihood_, expected, rtol=1e-13)


def test_offsets_that_hide_the_curvature_at_0() -> None:
    # 2 log p(b - 40) + log p(-b - 80), p the logistic function: the last term is linear in b up to
    # rounding, so 2 (1 - p(b - 40)) = 1.
    x = np.array([[1.0], [0], [1], [0], [0], [1]])
    y = rs.Surv([1, 2, 1, 2, 1, 2], [1, 0, 1, 0, 1, 0])
    offset = np.array([-40.0, 0, -40, 0, -80, 0])
    model = rs.Cox().fit(x, y, strata=[1, 1, 2, 2, 3, 3], offset=offset)
    assert_allclose(model.coef_, 40, rtol=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_terms_that_cancel_do_not_stop_the_steps(seed: int) -> None:
    # Two rows have their events at once, so the likelihood is greatest where their predictors are
    # equal. The terms of all others are differences of two predictors of 100 or more, and 0.
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(12, 1))
    offset = np.append([99.0, 193.0], np.round(rng.normal(scale=120, size=10)))
    strata = np.append([0, 0], np.arange(1, 11))
    model = rs.Cox(tol=1e-12, ties="breslow")
    model.fit(x, rs.Surv(np.ones(12), np.ones(12, bool)), strata=strata, offset=offset)
    assert model.status_ == "converged"
    assert_allclose(model.coef_, 94 / (x[0] - x[1]), rtol=1e-12)


@pytest.mark.parametrize("model", [rs.Cox(rs.L2(0.7)), rs.FineGray(rs.L2(0.7))])
def test_a_row_that_alone_is_expected_to_fail(model: rs.Cox | rs.FineGray) -> None:
    # Every event is expected of the last row, so the score is the sum of their distances from it.
    rng = np.random.default_rng(0)
    x, event = rng.normal(size=(30, 3)), np.arange(30) % 5 < 2
    offset = np.where(np.arange(30) < 29, 0.0, 400.0)
    model.fit(x, rs.Surv(np.arange(1.0, 31), event), offset=offset)
    assert model.status_ == "converged"
    assert_allclose(model.coef_, (x[event] - x[-1]).sum(axis=0) / 0.7, rtol=1e-12)


@pytest.mark.parametrize("far", [62.5, 64.0, 90.0, 300.0])
def test_a_row_that_leaves_the_others_next_to_nothing(far: float) -> None:
    # Nothing of the column's spread is left among those expected to fail at 0. All fail at once:
    # the score is the sum of x less eight times its mean under exp(offset + x b).
    x = np.array([0.0, 0.3, -0.5, 0.7, 0, 0, 0.9, -0.2])
    offset = np.array([far, 0, 0, 0, 1, 2, 0, 0])

    def score(b: float) -> float:
        return float(x.sum() - 8 * softmax(offset + x * b) @ x)

    model = rs.Cox().fit(x[:, None], rs.Surv(np.ones(8), np.ones(8, int)), offset=offset)
    assert model.status_ == "converged"
    assert_allclose(model.coef_, brentq(score, 0.0, 500.0, xtol=1e-12), rtol=1e-8)


@pytest.mark.parametrize("exposure", [False, True])
def test_one_value_far_from_all_others(exposure: bool) -> None:
    # The row is always at risk; with a negative coefficient it counts for nothing.
    rng = np.random.default_rng(1)
    n = 60
    x, z = rng.normal(size=(2, n))
    time, event = rng.exponential(np.exp(0.7 * x)), rng.random(n) < 0.8
    x[0], time[0], event[0] = 1e10, 2 * time.max(), False
    exposed = np.arange(n) % 5 == 4
    left = np.arange(n) > 0
    columns = np.c_[x, z]
    if exposure:
        event &= ~exposed
        columns, left = np.c_[x, z, exposed], left & ~exposed
    plain = rs.Cox(tol=1e-11).fit(np.c_[x, z][left], rs.Surv(time[left], event[left]))
    with pytest.warns(UserWarning, match="infinity") if exposure else nullcontext():
        model = rs.Cox(tol=1e-11).fit(columns, rs.Surv(time, event))
    assert plain.coef_[0] < -0.1
    assert_allclose(model.coef_[:2], plain.coef_, rtol=1e-7)
    assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("far", [1e8, 1e13])
def test_a_censored_row_far_away(seed: int, far: float) -> None:
    rng = np.random.default_rng(seed)
    x, time, event = rng.normal(size=60), rng.exponential(size=60), rng.random(60) < 0.7
    x[7], event[7] = far, False
    rest = np.arange(60) != 7
    plain = rs.Cox(tol=1e-11).fit(x[rest][:, None], rs.Surv(time[rest], event[rest]))
    model = rs.Cox().fit(x[:, None], rs.Surv(time, event))
    assert model.status_ == "converged"
    if plain.coef_[0] < 0:  # without weight in the sums, where it is at risk
        assert_allclose(model.coef_, plain.coef_, rtol=1e-6)
    else:
        assert 0 >= model.coef_[0] > -100 / far


def test_weights_and_offsets_near_underflow() -> None:
    x, u, y = draw(100, 9)
    plain = rs.Cox(tol=1e-11).fit(np.c_[x, u], y)
    model = rs.Cox(tol=1e-11).fit(
        np.c_[x, u], y, sample_weight=np.full(100, 1e-120), offset=np.full(100, -490.0)
    )
    assert model.status_ == "converged"
    assert_allclose(model.coef_, plain.coef_, rtol=1e-9)


# -------------------------------------------------------------------------- levels of strata


@pytest.mark.parametrize("between", [1e3, 1e6])
def test_strata_far_apart(between: float) -> None:
    x, u, y = draw(200, 11)
    stratum = np.random.default_rng(0).integers(0, 5, 200)
    plain = rs.Cox(tol=1e-11).fit(np.c_[x, u], y, strata=stratum)
    model = rs.Cox(tol=1e-11).fit(np.c_[x + between * stratum, u], y, strata=stratum)
    assert_allclose(model.coef_, plain.coef_, rtol=1e-7)
    assert_allclose(model.standard_error_, plain.standard_error_, rtol=1e-7)
    for name in ("lr", "score", "wald"):
        mine, theirs = getattr(model.tests_, name), getattr(plain.tests_, name)
        assert_allclose(mine.statistic, theirs.statistic, rtol=1e-7)
        assert mine.df == theirs.df


def test_a_column_repeated_within_strata() -> None:
    x, _, y = draw(200, 13)
    stratum = np.random.default_rng(0).integers(0, 5, 200)
    plain = rs.Cox(tol=1e-10).fit(x[:, None], y, strata=stratum)
    with pytest.warns(UserWarning, match="linear combination"):
        model = rs.Cox(tol=1e-10).fit(np.c_[x + 1e4 * stratum, x], y, strata=stratum)
    assert model.status_ == "converged"
    assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-12)
    assert_allclose(model.coef_.sum(), plain.coef_[0], rtol=1e-7)


# ----------------------------------------------------------------------------- many columns


def test_ridge_on_more_columns_than_a_matrix_holds() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2500))
    time = rng.exponential(np.exp(-x[:, 0]))
    event = rng.random(300) < 0.7
    model = rs.Cox(rs.L2(1.0)).fit(x, rs.Surv(time, event))
    assert model.status_ == "converged"
    # The same by kernel: beta = X' a / strength with a the residuals, which sum to 0.
    residual = np.asarray(model.residuals(x, rs.Surv(time, event)))
    assert_allclose(model.coef_, x.T @ residual, atol=1e-6 * np.abs(model.coef_).max())


# ------------------------------------------------------------- rows that outweigh all others


def newton_in_long_double(
    x: np.ndarray, time: np.ndarray, event: np.ndarray, weight: np.ndarray, l2: float
) -> np.ndarray:
    """Breslow's likelihood as it reads, one term for each event; steps halved until it rises."""
    x, weight = x.astype(np.longdouble), weight.astype(np.longdouble)
    at_risk = (time >= time[:, None])[event]

    def terms(b: np.ndarray) -> tuple[np.longdouble, np.ndarray, np.ndarray]:
        eta = x @ b
        r = at_risk * (weight * np.exp(eta - eta.max()))
        own = (weight * (eta - eta.max()))[event]
        value = (own - weight[event] * np.log(r.sum(axis=1))).sum() - l2 / 2 * b @ b
        share = r / r.sum(axis=1, keepdims=True)
        apart = x - (share @ x)[:, None, :]
        information = np.einsum("e,ei,eij,eik->jk", weight[event], share, apart, apart)
        score = weight[event] @ (x[event] - share @ x)
        return value, score - l2 * b, information + l2 * np.eye(b.size)

    b = np.zeros(x.shape[1], dtype=np.longdouble)
    for _ in range(60):
        value, score, information = terms(b)
        step = np.linalg.solve(information.astype(float), score.astype(float))
        while terms(b + step)[0] < value and np.abs(step).max() > 1e-12:
            step = step / 2
        b = b + step
    return b.astype(float)


@pytest.mark.parametrize("model", [rs.Cox(rs.L2(0.1), ties="breslow"), rs.FineGray(rs.L2(0.1))])
@pytest.mark.parametrize("share", [1e8, 1e-12])
@pytest.mark.parametrize("seed", range(8))
def test_weights_far_apart(model: rs.Cox | rs.FineGray, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 20
    x = np.c_[rng.integers(0, 2, n), rng.normal(size=n).round(3)]
    time, event = rng.integers(1, 9, n).astype(float), rng.random(n) < 0.6
    weight = np.where(rng.random(n) < 0.25, share, 1.0)
    model.fit(x, rs.Surv(time, event), sample_weight=weight)
    assert model.status_ == "converged"
    assert model.n_iter_ <= 25
    exact = newton_in_long_double(x, time, event, weight, 0.1)
    assert_allclose(model.coef_, exact, atol=1e-3)  # a small share of a standard error


@pytest.mark.parametrize("model", [rs.Cox(rs.L2(0.1)), rs.FineGray(rs.L2(0.1))])
def test_events_of_huge_weight_alone_in_their_risk_sets(model: rs.Cox | rs.FineGray) -> None:
    # They add exactly 0 to the gradient; rounding of their weights would be 1e-7.
    rng = np.random.default_rng(0)
    x, time = rng.normal(size=25), np.arange(1.0, 26)
    event = np.arange(25) != 3
    alone = np.arange(25) >= 5
    weight = np.where(alone, 1e9 / (7 + np.arange(25)), 1.0)
    stratum = np.where(alone, np.arange(25), 0)
    model.fit(x[:, None], rs.Surv(time, event), sample_weight=weight, strata=stratum)
    assert model.status_ == "converged"
    assert model.n_iter_ <= 6
    exact = newton_in_long_double(x[:5, None], time[:5], event[:5], weight[:5], 0.1)
    assert_allclose(model.coef_, exact, rtol=1e-8)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("huge", [1e8, 1e12, 1e15])
def test_standard_error_beside_a_row_of_huge_weight(ties: str, huge: float) -> None:
    # With w the huge weight, w p (1 - p) at the first event is exp(-b) up to 1 / w, so the score is
    # exp(-b) - exp(b) / (1 + exp(b)) and exp(b) is the golden ratio.
    golden = (1 + np.sqrt(5)) / 2
    y = rs.Surv([1, 2, 3], [1, 1, 0])
    model = rs.Cox(ties=ties, tol=1e-12 / huge).fit([[1], [0], [1]], y, sample_weight=[huge, 1, 1])
    assert_allclose(model.coef_, np.log(golden), rtol=4 / huge + 1e-13)
    information = 1 / golden + 1 / golden**3
    assert_allclose(model.standard_error_, 1 / np.sqrt(information), rtol=4 / huge + 1e-13)


@pytest.mark.parametrize("seed", [18, 93, 105, 167, 268])
def test_many_nearly_equal_columns_of_weighted_rows(seed: int) -> None:
    # A few rows of huge weight leave little of most columns: several nearly repeat one another.
    rng = np.random.default_rng(seed)
    x, time = rng.normal(size=(18, 12)), rng.exponential(size=18)
    event, weight = rng.integers(0, 2, 18), 10.0 ** rng.uniform(-2, 6, 18)
    event[0] = 1
    with warnings.catch_warnings(action="ignore"):
        model = rs.Cox().fit(x, rs.Surv(time, event), sample_weight=weight)
    assert model.log_likelihood_ >= model.null_log_likelihood_


# ---------------------------------------------------------------------------- weak penalties


def test_a_weak_lasso_with_many_more_columns_than_events() -> None:
    # A few rows carry most of the risk, so that a sample of rows says little of the curvature.
    rng = np.random.default_rng(0)
    n, p = 2000, 600
    x = sp.random(n, p, 0.05, format="csc", random_state=1)
    x.data[:] = 1
    dead = np.zeros(n, int)
    dead[rng.permutation(n)[:50]] = 1
    y = rs.Surv(rng.exponential(size=n), dead)
    model = rs.Cox(rs.L1(0.03), max_iter=60).fit(x, y)
    assert model.status_ == "converged"
    score = x.T @ model.residuals(x, y)
    moved = model.coef_ != 0
    unit = np.abs(x.T @ rs.Cox(rs.L1(1e3)).fit(x, y).residuals(x, y)).max()
    assert_allclose(score[moved], 0.03 * np.sign(model.coef_[moved]), atol=2e-8 * unit)
    assert np.abs(score[~moved]).max() <= 0.03 + 2e-8 * unit
