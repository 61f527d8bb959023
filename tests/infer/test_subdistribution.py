"""What residuals of Fine and Gray's model cost with many censoring groups.

Their values are held to the definitions in `tests/estimators/test_finegray_definitions.py`.
"""

import tracemalloc

import numpy as np
import pytest

from riskset._runtime import Runtime
from riskset.data.outcome import Outcome
from riskset.infer.subdistribution import SubdistributionPieces
from riskset.model.censoring import CensoringDistribution
from riskset.model.finegray import FineGrayLoss

N, K, Q, TIMES = 20_000, 250, 8, 50


@pytest.fixture
def pieces(rng) -> SubdistributionPieces:
    outcome = Outcome.build(rng.integers(1, TIMES + 1, N), rng.integers(0, 3, N), cause=1)
    censoring = CensoringDistribution.estimate(outcome, group=rng.integers(0, K, N))
    return SubdistributionPieces.at(FineGrayLoss(outcome, censoring, Runtime(1)), np.zeros(N))


def test_no_sum_over_all_rows_for_each_group(pieces, rng, monkeypatch):
    values, sums = rng.normal(size=(N, Q)), []
    plain = np.bincount

    def bincount(x, weights=None, minlength=0):
        sums.append(max(np.size(x), minlength))
        return plain(x, weights, minlength)

    monkeypatch.setattr(np, "bincount", bincount)
    pieces.contributions(values)
    pieces.expected_times(rng.normal(size=(pieces.log_hazard.size, Q)))
    # Of rows a few for each column; of the groups' times, not much more than once for each.
    assert sum(sums) < 10 * (N + K * TIMES) * Q  # a bincount for each group: 40 million and more
    assert 10 * (N + K * TIMES) * Q < K * N * Q / 10


def test_memory_does_not_grow_with_groups_times_times(rng):
    outcome = Outcome.build(rng.permutation(N) + 1, rng.integers(0, 3, N), cause=1)
    loss = FineGrayLoss(
        outcome, CensoringDistribution.estimate(outcome, group=rng.integers(0, 150, N)), Runtime(1)
    )
    pieces, values = SubdistributionPieces.at(loss, np.zeros(N)), rng.normal(size=(N, Q))
    tracemalloc.start()
    pieces.contributions(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * values.nbytes  # terms of all groups and times at once: 50 times as much
