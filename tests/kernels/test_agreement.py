"""Every fast kernel gives the numbers of its reference, writes to no input, and repeats its bits.

All inputs are read-only: a kernel that writes to one raises. `calls` says which kernel is called on
what; kernels that iterate are in `test_descent`.
"""

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset.kernels
from kernels.calls import CALLS, Call
from riskset._runtime import Runtime

FOLDER = Path(riskset.kernels.__file__).parent
STEMS = sorted(p.stem.removesuffix("_ref") for p in FOLDER.glob("*_ref.py"))
WITHOUT_REFERENCE = {
    "long_table",  # judged by the tests of the data layer
    "wide_range",  # second twins of `risk_sets_ref` and `subdistribution_ref`: test_risk_sets
}

TOLERANCE = {"rtol": 2e-12, "atol": 1e-13}
"""For float64: relative, and absolute where events and their expectations cancel."""


def kernels_of(stem: str) -> list[str]:
    module = importlib.import_module(f"riskset.kernels.{stem}_ref")
    return [n for n in module.__all__ if inspect.isroutine(getattr(module, n))]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_same_numbers(call: Call) -> None:
    results, expected = call.fast(), call.reference()
    assert len(results) == len(expected)
    for got, exact in zip(results, expected, strict=True):
        assert got.shape == exact.shape
        assert got.dtype.kind == exact.dtype.kind
        if got.dtype.kind == "f":
            assert_allclose(got, exact.astype(np.float64), **TOLERANCE)
        else:
            assert_array_equal(got, exact)


@pytest.mark.parametrize("kernel", sorted({name.split("-")[0] for name in CALLS}))
def test_same_bits_again_and_for_any_number_of_threads(kernel: str) -> None:
    for name, call in CALLS.items():
        if name.split("-")[0] == kernel:
            first = [a.tobytes() for a in call.fast()]
            for n_threads in (1, 2, 3, 5):
                assert [a.tobytes() for a in call.fast(Runtime(n_threads))] == first, name


@pytest.mark.parametrize(("stem", "name"), [(s, n) for s in STEMS for n in kernels_of(s)])
def test_same_signature(stem: str, name: str) -> None:
    slow = getattr(importlib.import_module(f"riskset.kernels.{stem}_ref"), name)
    fast = getattr(importlib.import_module(f"riskset.kernels.{stem}_cpu"), name)
    assert inspect.signature(getattr(fast, "py_func", fast)) == inspect.signature(slow)


def test_every_kernel_is_called() -> None:
    called = {(c.stem, c.name) for c in CALLS.values()}
    elsewhere = {
        "active_set",  # test_descent
        "ccd",  # test_ccd: its state is written to
        "concordance",  # tests/metrics
        "descent",  # test_descent: agrees on the optimum, not on the way to it
        "replicates",  # its descent, too
        "full_matching",  # test_full_matching
        "matching",  # test_matching
        "pair_matching",  # test_pair_matching
        "means",  # tests/infer/test_means_agreement
    }
    missing = {(s, n) for s in STEMS for n in kernels_of(s)} - called
    assert {stem for stem, _ in missing} == elsewhere


def test_every_public_function_has_a_reference() -> None:
    for path in FOLDER.glob("*_cpu.py"):
        stem = path.stem.removesuffix("_cpu")
        if stem in WITHOUT_REFERENCE:
            continue
        fast = importlib.import_module(f"riskset.kernels.{stem}_cpu")
        public = {n: getattr(fast, n) for n in fast.__all__}
        routines = {n for n, f in public.items() if callable(f) and not inspect.isclass(f)}
        assert routines == set(kernels_of(stem)), stem
