"""Matching: the fast kernel forms the sets of the definition, in any order of rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from riskset.kernels import matching_cpu, matching_ref

NO_LIMIT = np.iinfo(np.int64).max


def draw(seed):
    """A problem with few or many ties, with and without blocks, with any ratio."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 45))
    score = rng.integers(-3, [3, 6, 25, 10**6][seed % 4], n)
    block = rng.integers(0, 3, n) if seed % 3 == 0 else np.zeros(n, dtype=np.int64)
    caliper = NO_LIMIT if seed % 7 == 0 else int(rng.integers(0, [3, 8, 60, 10**5][seed % 4]))
    person = rng.permutation(1000)[:n]
    return person, rng.integers(0, 2, n), score, block, caliper, int(rng.integers(0, 5))


def arguments(person, treated, score, block, caliper, ratio):
    order = np.lexsort((person, treated, score, block))
    arrays = [np.asarray(a, dtype=np.int64) for a in (order, person, treated, score, block)]
    for a in arrays:
        a.flags.writeable = False
    return *arrays, caliper, ratio


@pytest.mark.parametrize("seed", range(400))
def test_same_sets_as_the_definition(seed):
    args = arguments(*draw(seed))
    for got, expected in zip(
        matching_cpu.match_closest(*args), matching_ref.match_closest(*args), strict=True
    ):
        assert_array_equal(got, expected)


def test_all_treated_on_one_side_take_the_time_of_sorting():
    """The case in which repairing one entry for each treated person takes n^2 steps."""
    n = 200_000
    treated = np.arange(2 * n) < n
    score = np.concatenate([np.arange(n), 10 * n + np.arange(n)])
    args = arguments(np.arange(2 * n), treated, score, np.zeros(2 * n), NO_LIMIT, 1)
    target, distance = matching_cpu.match_closest(*args)
    # The last treated meets the first control, and so on outwards.
    assert_array_equal(target[n:], np.arange(n)[::-1])
    assert_array_equal(distance[n:], 9 * n + 1 + 2 * np.arange(n))
