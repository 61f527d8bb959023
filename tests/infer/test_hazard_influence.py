"""Robust moments of hazards from the start, against those from the influence of each row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.infer import hazard_influence as influence


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("clusters", [None, 2, 150])
@pytest.mark.parametrize("n_strata", [1, 3])
def test_sums_at_the_ends_of_rows_are_those_over_all_rows(
    ties: str, clusters: int | None, n_strata: int
) -> None:
    rng = np.random.default_rng(0)
    n = 400
    x = rng.normal(size=(n, 3))
    time = np.ceil(30 * rng.exponential(np.exp(-0.3 * x[:, 0]))) / 30
    cluster = None if clusters is None else rng.integers(0, clusters, n)
    model = rs.Cox(ties=ties, tol=1e-11).fit(
        x, rs.Surv(time, rng.integers(0, 2, n)), sample_weight=rng.integers(0, 5, n) / 2,
        strata=rng.integers(0, n_strata, n), cluster=cluster,
    )  # fmt: skip
    fit = model._fitted.hazard
    for stratum in range(n_strata):
        n_times = fit.steps.hazard[fit.steps.own(stratum)].size
        last = np.arange(n_times + 1)[::-1]
        pair = np.zeros_like(last), last
        found = influence.robust_window_moments(fit, {stratum: pair})[stratum]
        expected = influence._moments_in_batches(fit, {stratum: pair})[stratum]
        assert_allclose(found.mean, expected.mean, rtol=1e-12)
        # Scores of few clusters cancel.
        few = 1e-13 * expected.square.max()
        assert_allclose(found.square, expected.square, rtol=1e-10, atol=few)
        assert_allclose(found.cross, expected.cross, rtol=1e-9, atol=1e-13)


def test_many_times_of_many_rows_take_no_pass_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The influence of rows on hazards is asked for once, not once for each event time."""
    asked = []
    plain = influence.FittedHazard.of_hazards

    def counted(fit, weights):  # type: ignore[no-untyped-def]
        asked.append(sum(each.shape[0] for each in weights.values()))
        return plain(fit, weights)

    monkeypatch.setattr(influence.FittedHazard, "of_hazards", counted)
    rng = np.random.default_rng(1)
    x, time = rng.normal(size=(300, 2)), rng.exponential(size=300)
    model = rs.Cox().fit(x, rs.Surv(time, rng.integers(0, 2, 300)))
    found = model.predict_quantile(x[:2], 0.3, variance="robust")
    assert np.isfinite(found.estimate).all()
    assert asked == [1]
