"""Full matching on a line: the fast kernel finds the pairs of the definition, which cost least."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import linprog

from riskset.kernels import full_matching_cpu, full_matching_ref

NO_LIMIT = np.iinfo(np.int64).max


def people(seed):
    """Sorted people in blocks, with ties, runs of very different length and a limit or none."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 40))
    position = rng.integers(0, [8, 60, 10**12][seed % 3], n)
    arm = (rng.random(n) < rng.uniform(0.05, 0.95)).astype(np.int64)
    block = rng.integers(0, rng.integers(1, 4), n)
    if seed % 5 == 0:  # arms apart from each other
        position = position + arm * position.max(initial=0)
    width = int(position.max(initial=0)) + 1
    limit = [NO_LIMIT, width // 3, width // 8][seed % 4 % 3]
    order = np.lexsort((np.arange(n), arm, position, block))
    return position[order], arm[order], block[order], limit


@pytest.mark.parametrize("seed", range(400))
def test_same_pairs_as_the_definition(seed):
    args = people(seed)
    found = full_matching_cpu.cover_line(*args)
    expected = full_matching_ref.cover_line(*args)
    assert_array_equal(found[0], expected[0])
    assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("seed", range(1500))
def test_pairs_are_the_smallest_cover(seed):
    x, arm, block, limit = people(seed)
    left, right = full_matching_cpu.cover_line(x, arm, block, limit)
    assert (arm[left] != arm[right]).all()
    assert (block[left] == block[right]).all()
    assert (np.abs(x[right] - x[left]) <= limit).all()
    far = (block[:, None] != block) | (np.abs(x[:, None] - x) > limit)
    i, j = np.nonzero((arm[:, None] > arm) & ~far)
    has_partner = np.zeros(x.size, dtype=bool)
    has_partner[i] = has_partner[j] = True
    assert_array_equal(np.unique(np.append(left, right)), np.flatnonzero(has_partner))
    if not i.size:
        return
    rows = [(i == k) | (j == k) for k in np.flatnonzero(has_partner)]
    cost = np.abs(x[i] - x[j]) + 1.0  # a pair costs one quantum beyond its distance
    total = linprog(
        cost, A_ub=-np.array(rows, dtype=float), b_ub=-np.ones(len(rows)), bounds=(0, 1)
    ).fun
    cost_found = (np.abs(x[right] - x[left]) + 1).sum()
    shared = len({*zip(block[arm == 0], x[arm == 0], strict=True)}
                 & {*zip(block[arm == 1], x[arm == 1], strict=True)})  # fmt: skip
    assert total * (1 - 1e-9) - 1e-6 <= cost_found <= total * (1 + 1e-9) + 1e-6 + shared
    # Each set is one person with those of the other arm.
    degree = np.bincount(np.append(left, right), minlength=x.size)
    assert not ((degree[left] > 1) & (degree[right] > 1)).any()


def test_many_people_of_one_arm_share_one_person():
    n = 3000
    position = np.append(np.arange(n) * 10, 10 * n)
    arm = np.append(np.zeros(n, dtype=np.int64), 1)
    left, right = full_matching_cpu.cover_line(position, arm, np.zeros_like(arm), NO_LIMIT)
    assert_array_equal(left, np.arange(n))
    assert_array_equal(right, np.full(n, n))
