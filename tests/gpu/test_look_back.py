"""Tiles that look back: any window, one block at a time, and what goes wrong unless they wait."""

import functools
import re
from collections.abc import Iterable

import numpy as np
import pytest
import scipy.sparse as sp

from emulator.backend import Emulator, Recorded, Recorder
from emulator.build import MISSING, Library, compiler, library_of, source_of
from gpu.calls import records
from gpu.coordinates import COORDINATES, Visits, visit
from gpu.problems import cox
from gpu.test_kernels import SEEDS, compare
from parameters import rest_is_slow
from riskset.data.design import Design
from riskset.kernels.cuda.compile import program

pytestmark = pytest.mark.skipif(compiler is None, reason=MISSING)


def launches(topic: str) -> list[Recorded]:
    return [r for name in COORDINATES for r in records(name) if r.kernel.topic == topic]


def in_tiles() -> list[Recorded]:
    """One launch for each problem of several tiles: that of a column with entries."""
    found = {}
    for r in launches("fused"):
        if r.grid[0] > 1:
            found[r.kernel.name, r.before[0].size] = r
    return list(found.values())


def library(*edits: tuple[str, str]) -> dict[str, Library]:
    """The kernels of `fused` with several edits."""
    text = source_of("fused")
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return {"fused": library_of(text)}


SHORT = ("#define WINDOW 32", "#define WINDOW 2")


@pytest.mark.parametrize("seed", SEEDS)
def test_one_block_at_a_time_gets_on(seed: int) -> None:
    for record in in_tiles():
        compare(record, Emulator(seed, resident=1))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_short_window(seed: int) -> None:
    backend = Emulator(seed, (1, 2, 4, 9)[seed % 4], library(SHORT))
    for record in in_tiles():
        compare(record, backend)


@functools.cache
def many_tiles() -> Recorded:
    """More tiles than a window has."""
    n = 36_000
    loss = cox(n, n_times=10**6, n_lanes=1, seed=33).loss
    x = np.random.default_rng(33).random((n, 1)) < 0.2
    recorder = Recorder()
    visit(recorder, Visits(Design.from_sparse(sp.csc_array(x * 1.0)), loss, np.zeros(n)))
    (record,) = (r for r in recorder.records if r.kernel.name == "cox_fused")
    return record


@pytest.mark.parametrize(("seed", "resident"), [(1, 1), (2, 5), (3, 40)])
def test_more_tiles_than_the_window(seed: int, resident: int) -> None:
    compare(many_tiles(), Emulator(seed, resident))


def test_bits_do_not_depend_on_who_was_early() -> None:
    found = {
        tuple(a.tobytes() for a in many_tiles().again(Emulator(seed, resident)).values())
        for seed, resident in ((0, 1), (4, 6), (5, 36))
    }
    assert len(found) == 1


def test_flags_are_read_and_written_in_order() -> None:
    """A plain access to a flag would let numbers be seen before or after it: a missing fence."""
    text = source_of("fused")
    accesses = re.findall(r"(\w+)\(&(?:chain\.)?status\[", text)
    assert set(accesses) == {"load_acquire", "store_release"}
    assert len(accesses) == len(re.findall(r"status\[", text))
    fences = re.findall(r'"(\w+\.\w+\.gpu\.global\.s32)', program())
    assert set(fences) == {"ld.acquire.gpu.global.s32", "st.release.gpu.global.s32"}


# ---------------------------------------------------------------------------------- faults

FAULTS = {
    "flag_before_its_numbers": (
        "  put(run, numbers, tile);\n  store_release(&status[tile], what);",
        "  store_release(&status[tile], what);\n  put(run, numbers, tile);",
    ),
    "any_flag_will_do": (
        "while (load_acquire(&chain.status[tile]) != TOTAL) {}",
        "while (load_acquire(&chain.status[tile]) == NONE) {}",
    ),
    "window_is_read_at_once": (
        "other), window, lane);\n  __syncwarp();",
        "other), window, lane);",
    ),
    "others_do_not_wait_for_what_is_received": (
        "  }\n  __syncthreads();\n  return get<N>(window, 0);",
        "  }\n  return get<N>(window, 0);",
    ),
    "groups_do_not_close": ("  b.closed |= a.closed;", ""),
}


def check_found(backends: Iterable[Emulator], some: list[Recorded]) -> None:
    for backend in backends:
        try:
            for record in some:
                compare(record, backend)
        except (AssertionError, RuntimeError):
            return
    pytest.fail("every launch gave the right numbers")


@pytest.mark.parametrize("fault", rest_is_slow(FAULTS, 1))
def test_a_fault_is_found(fault: str) -> None:
    sources = library(FAULTS[fault])
    check_found((Emulator(seed, 3, sources) for seed in SEEDS), in_tiles())


def test_not_waiting_for_the_farthest_is_found() -> None:
    hasty = ("while (lane == nearest && load_acquire(&chain.status[other]) != TOTAL) {}", "")
    check_found((Emulator(seed, 4, library(SHORT, hasty)) for seed in SEEDS), in_tiles())


def test_tiles_by_number_of_block_may_wait_forever() -> None:
    numbered = ("kept[0] = atomicAdd(ticket, 1);", "kept[0] = blockIdx.x; atomicAdd(ticket, 1);")
    backend = Emulator(1, resident=1, sources=library(numbered))
    with pytest.raises(RuntimeError, match="deadlock"):
        many_tiles().again(backend)


COORDINATE_FAULTS = {
    "flags_are_not_cleared": ("status[k] = 0;", ";"),
    "steps_across_0": ("if (l1[column] > 0.0 && b * (b + d) < 0.0) d = -b;", ""),
    "squares_are_left": ("  xr[i] = 0.0;\n  xxr[i] = 0.0;", "  xr[i] = 0.0;"),
}


@pytest.mark.parametrize("fault", rest_is_slow(COORDINATE_FAULTS, 1))
def test_a_fault_of_a_coordinate_is_found(fault: str) -> None:
    sources = {"coordinate": library_of(source_of("coordinate", COORDINATE_FAULTS[fault]))}
    check_found((Emulator(seed, 3, sources) for seed in SEEDS), launches("coordinate"))
