"""Eight likelihoods at once are the eight likelihoods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from riskset._runtime import Runtime
from riskset.data.outcome import Outcome
from riskset.kernels._vector import lane_rows
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import CoxLoss
from riskset.model.finegray import FineGrayLoss
from riskset.model.loss import Loss
from riskset.model.replicates_likelihood import LANES, LaneLoss, ReplicateWeights

N = 300
KINDS = ("cox", "strata", "finegray", "groups", "full")


def whole(kind: str, seed: int) -> Loss:
    rng = np.random.default_rng(seed)
    outcome = Outcome.build(
        rng.integers(1, 30, N),
        rng.integers(0, 3, N),
        cause=1,
        weight=rng.choice([0.5, 1.0, 0.0], N),
        stratum=rng.integers(0, 4, N) if kind != "cox" else None,
        offset=rng.normal(size=N),
    )
    if kind in ("cox", "strata"):
        return CoxLoss(outcome, "breslow", Runtime(1))
    group = rng.integers(0, 2, N) if kind == "groups" else None
    return FineGrayLoss(outcome, CensoringDistribution.estimate(outcome, group=group), Runtime(1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_parts", [1, 5, 8])
@pytest.mark.parametrize("shares", [(0, 1, 2), (0, 0.3, 1), (0, 1, 300)])
def test_each_lane_is_its_replicate(kind: str, n_parts: int, shares: tuple[float, ...]) -> None:
    loss, rng = whole(kind, n_parts), np.random.default_rng(n_parts)
    parts = []
    for _ in range(n_parts):
        weight = loss.outcome.weight * rng.choice(shares, N)
        parts.append(ReplicateWeights(weight, None if kind == "full" else weight))
    assert LaneLoss.can_be_made(loss)
    lanes = LaneLoss.build(loss, parts)
    eta = rng.normal(size=(N, LANES)) * 3 + 700
    found = lanes.evaluate(eta)
    assert found.is_safe[:n_parts].all()
    for k, part in enumerate(parts):
        alone = loss.replicate(*part)
        exact = alone.evaluate(np.ascontiguousarray(eta[:, k]))
        assert_allclose(lanes.n_events[k], alone.n_events, rtol=1e-12)
        assert_allclose(found.log_likelihood[k], exact.log_likelihood, rtol=1e-12)
        assert_allclose(found.residual[:, k], exact.residual, rtol=1e-11, atol=1e-12)


def test_rows_are_whole_cache_lines() -> None:
    for n in range(1, 9):
        assert lane_rows(n).shape == (n, LANES)
        assert lane_rows(n).ctypes.data % 64 == 0


def test_a_span_too_wide_is_said() -> None:
    loss = whole("cox", 1)
    eta = np.zeros((N, LANES))
    eta[np.argmax(loss.outcome.weight), 2] = 600.0
    found = LaneLoss.build(loss, [ReplicateWeights(loss.outcome.weight)] * 8).evaluate(eta)
    assert found.is_safe.tolist() == [True, True, False, True, True, True, True, True]


def test_what_lanes_are_not_written_for() -> None:
    outcome = Outcome.build([1.0, 2, 3], [1, 1, 1], entry=[0.0, 1.5, 0])
    assert not LaneLoss.can_be_made(CoxLoss(outcome, "breslow", Runtime(1)))
    outcome = Outcome.build([1.0, 2, 3], [1, 1, 1])
    assert LaneLoss.can_be_made(CoxLoss(outcome, "breslow", Runtime(1)))
    assert not LaneLoss.can_be_made(CoxLoss(outcome, "efron", Runtime(1)))
