"""Faults planted in the sources are found: tests that cannot fail would prove nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.backend import Emulator
from emulator.build import HERE, MISSING, compiler, libraries
from gpu.calls import NAMES, records
from gpu.test_kernels import SEEDS, compare
from parameters import rest_is_slow

pytestmark = pytest.mark.skipif(compiler is None, reason=MISSING)

BARRIER = "__syncthreads();"
FAULTS = {
    # A missing barrier.
    "carry_without_barrier": (
        "risk_sets",
        BARRIER + "\n  double before = 0.0;",
        "double before = 0.0;",
    ),
    "list_rows_before_the_count": (
        "matrix",
        "part_sum[t] = own;\n  " + BARRIER,
        "part_sum[t] = own;",
    ),
    "list_rows_out_of_order": (
        "matrix",
        "if (has_value) kept[to] = value[e];\n    }\n    " + BARRIER,
        "if (has_value) kept[to] = value[e];\n    }",
    ),
    "quadratic_moves_while_others_read": ("quadratic", BARRIER + "  // everybody has read", ""),
    "quadratic_reads_while_others_move": (
        "quadratic",
        "if (t == 0) step[own] = goal;\n      " + BARRIER,
        "if (t == 0) step[own] = goal;",
    ),
    "block_sum_reuses_its_memory": (
        "lane_steps",
        "sum += scratch[w];\n  " + BARRIER,
        "sum += scratch[w];",
    ),
    "learn_counts_while_others_read": (
        "lane_steps",
        BARRIER + "  // everybody has read the number",
        "",
    ),
    "gram_reads_the_next_tile": (
        "gram",
        "& right[x * TILE + k]);\n    " + BARRIER,
        "& right[x * TILE + k]);",
    ),
    "bits_before_they_are_cleared": ("gram", "own[w] = 0;\n  " + BARRIER, "own[w] = 0;"),
    # Off by one, or the wrong way round.
    "carry_without_the_last_chunk": (
        "risk_sets",
        "last = min(first + size, n_chunks);",
        "last = min(first + size, n_chunks - 1);",
    ),
    "carry_passes_through_a_start": (
        "risk_sets",
        "before = own_sum + (has_start[c] ? 0.0 : before);",
        "before = own_sum + before;",
    ),
    "tail_sees_its_own_group": (
        "risk_sets",
        "seen[own] = running;\n    running += survival[own] * hazard[own];",
        "running += survival[own] * hazard[own];\n    seen[own] = running;",
    ),
    "efron_share_from_one": ("risk_sets", "(double)(m - k) / m", "(double)(m - k - 1) / m"),
    "stratum_not_restarted": (
        "risk_sets",
        "if (starts[g] && is_backward) running = 0.0;",
        "",
    ),
    "level_not_mirrored": ("late_entry", "g & half ? g ^ (half - 1) : g", "g"),
    "level_residual_of_the_next_group": ("late_entry", "at(end[i] - 1,", "at(end[i],"),
    "last_row_of_a_chunk": (
        "sums",
        "(chunk + 1) * STRIDE; ++i)\n    sum += x",
        "(chunk + 1) * STRIDE - 1; ++i)\n    sum += x",
    ),
    "every_third_entry": ("matrix", "e += 4) sum +=", "e += 3) sum +="),
    "last_panel": ("matrix", "p < n_panels; ++p", "p < n_panels - 1; ++p"),
    "pairs_with_one_sign": ("quadratic", "own_pair & 1 ? -1.0 : 1.0", "1.0"),
}
"""Name -> topic, text, and what it is replaced by."""


@pytest.mark.parametrize("fault", rest_is_slow(FAULTS, 2))
def test_a_fault_is_found(fault: str) -> None:
    topic, old, new = FAULTS[fault]
    sources = libraries({topic: (old, new)})
    concerned = [r for name in NAMES for r in records(name) if r.kernel.topic == topic]
    for seed in SEEDS:
        backend = Emulator(seed, resident=3, sources=sources)
        try:
            for record in concerned:
                compare(record, backend)
        except (AssertionError, RuntimeError):
            return
    pytest.fail("every launch gave the right numbers")


@pytest.fixture(scope="module")
def sanitizer() -> str:
    """The run-time library of the address sanitizer."""
    command = [str(compiler), "-print-file-name=libasan.so"]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(path).is_absolute():
        pytest.skip("g++ has no address sanitizer here")
    return path


def run_watched(sanitizer: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """All launches under the address sanitizer, which must be there before Python is."""
    environment = {
        "LD_PRELOAD": sanitizer,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself never gives all its memory back
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path]),
    }
    return subprocess.run(
        [sys.executable, "-m", "gpu.watched", *options],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.slow
def test_no_access_beyond_an_array(sanitizer: str) -> None:
    done = run_watched(sanitizer)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "clean\n"


@pytest.mark.slow
def test_an_access_beyond_an_array_is_seen(sanitizer: str) -> None:
    done = run_watched(sanitizer, "--fault")
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
