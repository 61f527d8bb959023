"""Mean times lost to causes by Cox models of all causes, with their standard errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from riskset._errors import NotDefinedError

TIMES = [0.0, 0.4, 1.0]
NEW = np.array([[0.3, -1.0], [-0.5, 0.4], [1.2, 0.0]])


def draw(n: int, seed: int, *, rounded: bool = True) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    first, second, end = (
        rng.exponential(np.exp(-0.5 * x[:, 0])),
        rng.exponential(1.5 * np.exp(0.4 * x[:, 1])),
        rng.uniform(0.5, 2.0, n),
    )
    time = np.minimum(np.minimum(first, second), end)
    event = np.where(time == end, 0, np.where(first < second, 1, 2))
    return x, rs.Surv(np.ceil(time * 8) / 8 if rounded else time, event)


def integral(model: rs.CauseSpecificCox, new: np.ndarray, until: float, cause: int) -> np.ndarray:
    """Of the incidence, which is constant between event times, at the middle of each step."""
    jumps = [step.x for step in model.predict_cumulative_incidence(new, cause=cause)]
    grid = np.unique(np.concatenate([[0.0, until], *jumps]))
    grid = grid[grid <= until]
    middle = (grid[1:] + grid[:-1]) / 2
    return model.predict_cumulative_incidence(new, middle, cause) @ np.diff(grid)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_it_is_the_area_under_the_incidence(ties: str) -> None:
    x, y = draw(150, 1)
    model = rs.CauseSpecificCox(ties=ties, tol=1e-11).fit(x, y)
    lost = {cause: model.predict_time_lost(NEW, TIMES, cause) for cause in (1, 2)}
    for cause, found in lost.items():
        assert (found.kind, found.at.tolist()) == ("time_lost", TIMES)
        for j, until in enumerate(TIMES[1:], start=1):
            expected = integral(model, NEW, until, cause)
            assert_allclose(found.estimate[:, j], expected, rtol=1e-12)
        assert_array_equal(found.estimate[:, 0], 0.0)
        assert_array_equal(found.standard_error[:, 0], 0.0)
    without = model.predict_restricted_mean(NEW, TIMES)
    total = lost[1].estimate + lost[2].estimate + without.estimate
    assert_allclose(total, np.tile(TIMES, (3, 1)), rtol=1e-13)


@pytest.mark.parametrize("strata", [False, True])
def test_robust_errors_are_sums_of_numerical_influences(strata: bool) -> None:
    """What a little more weight of a row does to the estimate, added up in clusters."""
    n, step = 36, 1e-5
    x, y = draw(n, 2)
    cluster = np.arange(n) // 2
    group, new_group = np.arange(n) % 2, np.array([0, 1, 1])
    share = np.array([1.0, 2.0, 0.5])

    def predictions(weight: np.ndarray) -> list[rs.Predictions]:
        """Of three rows and their mean: time lost to both causes, and without either."""
        model = rs.CauseSpecificCox(tol=1e-12, n_threads=1)
        given = {"cluster": cluster, "sample_weight": weight}
        model.fit(x, y, strata=group if strata else None, **given)
        out = []
        for options in ({}, {"average": True, "sample_weight": share}):
            options |= {"strata": new_group if strata else None}
            out += [model.predict_time_lost(NEW, TIMES[1:], k, **options) for k in (1, 2)]
            out.append(model.predict_restricted_mean(NEW, TIMES[1:], **options))
        return out

    def estimates(weight: np.ndarray) -> np.ndarray:
        return np.concatenate([found.estimate for found in predictions(weight)])

    found = predictions(np.ones(n))
    assert {one.variance for one in found} == {"robust"}
    for rows, mean in zip(found[:3], found[3:], strict=True):
        assert mean.estimate.shape == (1, 2)
        assert_allclose(mean.estimate[0], share @ rows.estimate / share.sum(), rtol=1e-13)
    moved = []
    for row in np.eye(n):
        more, less = (estimates(1 + sign * step * row) for sign in (1, -1))
        moved.append((more - less) / (2 * step))
    sums = np.array(moved).reshape(n // 2, 2, 12, 2).sum(axis=1)
    errors = np.concatenate([one.standard_error for one in found])
    assert_allclose(errors, np.sqrt((sums**2).sum(axis=0)), rtol=1e-5)


def test_one_cause_is_what_a_cox_model_says() -> None:
    x, y = draw(150, 3)
    y = rs.Surv(y["time"], y["event"] == 1)
    for variance in ("model", "robust"):
        joint = rs.CauseSpecificCox(tol=1e-12).fit(x, y)
        lost = joint.predict_time_lost(NEW, TIMES[1:], 1, variance=variance)
        plain = rs.Cox(tol=1e-12).fit(x, y)
        found = plain.predict_restricted_mean(NEW, TIMES[1:], variance=variance)
        assert_allclose(lost.estimate, np.array(TIMES[1:]) - found.estimate, rtol=1e-10)
        assert_allclose(lost.standard_error, found.standard_error, rtol=1e-9)


def test_errors_are_those_of_new_samples() -> None:
    """The spread of estimates over samples; 250 of them know it to 5 %."""
    found, errors = [], {"model": [], "robust": []}
    for seed in range(250):
        x, y = draw(150, 1000 + seed, rounded=False)
        model = rs.CauseSpecificCox(n_threads=1).fit(x, y)
        for variance, own in errors.items():
            one = model.predict_time_lost(NEW, 1.0, 1, variance=variance, average=True)
            own.append(one.standard_error[0, 0])
        found.append(one.estimate[0, 0])
    for own in errors.values():
        assert_allclose(np.mean(own), np.std(found), rtol=0.13)


def test_the_mean_of_one_row_is_that_row() -> None:
    x, y = draw(100, 4)
    model = rs.CauseSpecificCox().fit(x, y, strata=x[:, 1] > 0)
    for variance in ("model", "robust"):
        for row in range(3):
            options = {"strata": NEW[[row], 1] > 0, "variance": variance}
            one = model.predict_time_lost(NEW[[row]], TIMES, 2, **options)
            mean = model.predict_time_lost(NEW[[row]], TIMES, 2, average=True, **options)
            assert_allclose(mean.estimate, one.estimate, rtol=1e-13)
            assert_allclose(mean.standard_error, one.standard_error, rtol=1e-8)
            assert_allclose(mean.upper, one.upper, rtol=1e-8)


def test_it_is_unknown_after_the_follow_up() -> None:
    x, y = draw(100, 5)
    end = float(y["time"].max())
    model = rs.CauseSpecificCox().fit(x, y)
    found = model.predict_time_lost(NEW, [end, end + 0.1], 1)
    assert np.isfinite(found.estimate[:, 0]).all()
    assert np.isnan([found.estimate[:, 1], found.standard_error[:, 1], found.upper[:, 1]]).all()
    mean = model.predict_restricted_mean(NEW, [end, end + 0.1], average=True)
    assert np.isnan(mean.estimate).tolist() == [[False, True]]


def test_what_is_refused() -> None:
    x, y = draw(60, 6)
    model = rs.CauseSpecificCox().fit(x, y)
    for options, words in (
        ({"cause": 3}, "cause 3 was not fitted"),
        ({"times": -1.0}, "must not be negative"),
        ({"sample_weight": [1, 1, 1]}, "average=True"),
        ({"average": 1}, "must be True or False"),
        ({"average": True, "sample_weight": [1, -1, 1]}, "must not be negative"),
        ({"average": True, "sample_weight": [0, 0, 0]}, "some must be positive"),
        ({"level": 95}, "level"),
        ({"variance": "counts"}, "variance"),
    ):
        with pytest.raises(rs.InputError, match=words):
            model.predict_time_lost(NEW, **({"times": 1.0, "cause": 1} | options))
    with pytest.raises(NotDefinedError, match="penalised"):
        rs.CauseSpecificCox(rs.L2(1.0)).fit(x, y).predict_time_lost(NEW, 1.0, 1)
