"""Matching among listed pairs: the fast kernel forms the sets of the definition."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from riskset.kernels import pair_matching_cpu, pair_matching_ref


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("ratio", [0, 1, 3])
def test_same_sets_as_the_definition(seed, ratio):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    border = int(rng.integers(1, n))
    first, partner = np.meshgrid(np.arange(border), np.arange(border, n), indexing="ij")
    some = rng.random(first.size) < rng.random()
    first, partner = first.ravel()[some], partner.ravel()[some]
    distance = rng.integers(0, 6, first.size)
    order = np.lexsort((partner, first, distance))
    args = order, first, partner, n, ratio
    assert_array_equal(pair_matching_cpu.match_pairs(*args), pair_matching_ref.match_pairs(*args))
