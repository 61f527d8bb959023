"""The emulator itself: right kernels run, and faulty ones are caught."""

import ctypes

import numpy as np
import pytest

from emulator.build import MISSING, Launch, compiler, library_of

pytestmark = pytest.mark.skipif(compiler is None, reason=MISSING)

SEEDS = range(1, 9)

REVERSE = """
KERNEL reverse(const int* x, int* out) {
  SHARED(int, kept, 64);
  kept[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = kept[63 - threadIdx.x];
}
"""
CHAIN = """
KERNEL chain(int* counter, int* flag, int* sum) {  // block k waits for block k - 1
  SHARED(int, own, 1);
  if (threadIdx.x == 0) own[0] = atomicAdd(counter, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    int k = own[0];
    if (k > 0) while (!load_acquire(&flag[k - 1])) {}
    sum[k] = k + (k > 0 ? sum[k - 1] : 0);
    store_release(&flag[k], 1);
  }
}
"""
NEIGHBOURS = """
KERNEL neighbours(int* out) {
  SHARED(int, kept, 64);
  kept[threadIdx.x] = threadIdx.x;
  __syncwarp();
  out[threadIdx.x] = kept[threadIdx.x ^ 1];
}
"""
VALUE, FLAG = "sum[k] = k + (k > 0 ? sum[k - 1] : 0);", "store_release(&flag[k], 1);"
FAULTY = """
KERNEL both_write(int* out) { SHARED(int, kept, 1); kept[0] = threadIdx.x; }
KERNEL beyond(int* out) { SHARED(int, kept, 8); kept[threadIdx.x] = 1; }
KERNEL some_leave(int* out) { if (threadIdx.x < 40) return; __syncthreads(); }
KERNEL some_leave_later(int* out) {
  __syncthreads();
  if (threadIdx.x < 40) return;
  __syncthreads();
}
KERNEL two_barriers(int* out) {
  if (threadIdx.x < 32) { __syncthreads(); }
  else { __syncthreads(); }
}
KERNEL one_leaves_a_warp(int* out) { if (threadIdx.x == 3) return; warp_sum(1.0); }
KERNEL two_shuffles(int* out) { if (threadIdx.x % 2) warp_sum(1.0); else warp_max(1.0); }
"""
SOURCE = "\n".join(
    [
        '#include "prelude.cuh"',
        REVERSE,
        REVERSE.replace("reverse", "reverse_at_once").replace("__syncthreads();", ""),
        CHAIN,
        CHAIN.replace("chain", "chain_too_early").replace(VALUE, "").replace(FLAG, FLAG + VALUE),
        CHAIN.replace("chain", "chain_to_the_last").replace("flag[k - 1])", "flag[8])"),
        NEIGHBOURS,
        NEIGHBOURS.replace("neighbours", "strangers").replace("^ 1]", "^ 32]"),
        """
KERNEL exchange(const double* x, double* out) {
  double v = x[threadIdx.x], up = __shfl_up_sync(WHOLE_WARP, v, 1);
  double sum = warp_sum(v);
  out[threadIdx.x] = up + 1000 * sum + 1e6 * __shfl_sync(WHOLE_WARP, v, 5);
}
""",
        FAULTY,
    ]
)


def run(
    name: str,
    *arrays: np.ndarray,
    grid: int = 3,
    block: int = 64,
    resident: int = 2,
    seed: int = 1,
) -> str:
    """Run a kernel; what the emulator found wrong."""
    launch = Launch((grid, 1, 1), (block, 1, 1), resident, seed)
    passed = [a.ctypes.data_as(ctypes.c_void_p) for a in arrays]
    return library_of(SOURCE).failure_of(name, launch, passed)


def none(n: int = 1) -> np.ndarray:
    return np.zeros(n, dtype=np.int32)


@pytest.mark.parametrize("seed", [0, *SEEDS])
@pytest.mark.parametrize("resident", [1, 3, 7])
def test_barriers_and_shared_memory(seed: int, resident: int) -> None:
    x, out = np.arange(320, dtype=np.int32), none(320)
    assert run("reverse", x, out, grid=5, seed=seed, resident=resident) == ""
    np.testing.assert_array_equal(out, x.reshape(5, 64)[:, ::-1].ravel())


@pytest.mark.parametrize("seed", [0, *SEEDS])
def test_a_missing_barrier_is_a_race_in_every_order(seed: int) -> None:
    found = run("reverse_at_once", none(192), none(192), seed=seed)
    assert found.startswith("race: shared memory `kept` is read")


def test_two_writers_of_one_cell() -> None:
    assert "`kept` is written twice" in run("both_write", none())


def test_shared_memory_has_an_end() -> None:
    assert run("beyond", none(), seed=0) == "shared memory `kept` has no element 8"


def test_a_warp_orders_its_own_threads_only() -> None:
    out = none(64)
    assert run("neighbours", out, grid=1) == ""
    np.testing.assert_array_equal(out, np.arange(64) ^ 1)
    assert "race" in run("strangers", out, grid=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_shuffles_exchange_values_within_a_warp(seed: int) -> None:
    x, out = np.arange(64.0), np.zeros(64)
    assert run("exchange", x, out, grid=1, seed=seed) == ""
    warps = x.reshape(2, 32)
    up = np.concatenate([warps[:, :1], warps[:, :-1]], axis=1)
    expected = up + 1000 * warps.sum(axis=1)[:, None] + 1e6 * warps[:, [5]]
    np.testing.assert_array_equal(out, expected.ravel())


@pytest.mark.parametrize(
    "name",
    ["some_leave", "some_leave_later", "two_barriers", "one_leaves_a_warp", "two_shuffles"],
)
def test_divergence_is_found(name: str) -> None:
    for seed in SEEDS:
        assert "divergence" in run(name, none(), seed=seed)


def test_a_shuffle_needs_a_whole_warp() -> None:
    assert "incomplete warp" in run("exchange", np.zeros(64), np.zeros(64), block=20)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("resident", [1, 2, 20])
def test_blocks_can_wait_for_blocks_before_them(seed: int, resident: int) -> None:
    sums = none(9)
    assert run("chain", none(), none(9), sums, grid=9, resident=resident, seed=seed) == ""
    np.testing.assert_array_equal(sums, np.cumsum(np.arange(9)))


def test_a_flag_set_too_early_shows_in_some_order() -> None:
    wrong = 0
    for seed in SEEDS:
        sums = none(9)
        assert run("chain_too_early", none(), none(9), sums, grid=9, resident=4, seed=seed) == ""
        wrong += not np.array_equal(sums, np.cumsum(np.arange(9)))
    assert wrong > 0


def test_waiting_for_a_block_that_is_not_there_is_a_deadlock() -> None:
    assert "deadlock" in run("chain_to_the_last", none(), none(9), none(9), grid=9)
