"""The likelihood of a logistic regression on the CPU. The specification is `logistic_ref`.

The profiled intercept is found by Halley's method from a start that two moments of eta give: three
or four passes over the rows, each an exponential a row in vector code. Eight rows make a vector, or
eight replicates. `exp` is taken of negative numbers only, so nothing overflows.
"""

import math

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Matrix, Pointer, Rows
from riskset.kernels import _vector_logistic as vector
from riskset.kernels._jit import kernel
from riskset.kernels._vector import LANES
from riskset.kernels.logistic_ref import LogisticPass

__all__ = [
    "LogisticPass",
    "fit_intercepts",
    "log_likelihoods",
    "logistic_pass",
    "residuals",
]

CHUNK = 1024
"""Vectors of a chunk, at least; threads share chunks, which depend on the number of rows alone."""
MAX_CHUNKS = 32
MAX_MOVES = 200
LAST_STEP_SIZE = 1e-5
"""After a step of this size the next would be its third power, and is not made."""
FIRST_MAX_STEP = 4.0
"""Steps are no longer than this at first, then twice as long each time."""
MAX_PLAIN_MOVES = 6
"""After so many every other move halves the bounds, or goes as far as it may to find one."""


@kernel
def _start(sums: Matrix, intercept: Rows, state: Matrix) -> None:
    """First guess of each intercept.

    `state` (5, lanes) has its bounds, the longest step, whether it moves, and how often it did.
    """
    for k in range(intercept.size):
        ones, zeros = sums[0, k], sums[1, k]
        state[0, k], state[1, k], state[2, k], state[3, k] = -np.inf, np.inf, FIRST_MAX_STEP, 1.0
        state[4, k] = 0.0
        if ones == 0.0 or zeros == 0.0:
            intercept[k] = 0.0 if ones == zeros else math.copysign(np.inf, ones - zeros)
            state[3, k] = 0.0
            continue
        mean = sums[2, k] / (ones + zeros)
        variance = sums[3, k] / (ones + zeros) - mean * mean
        level = math.log(ones / zeros)
        # A logistic curve averaged over a normal distribution is nearly one of a gentler slope.
        wide = level * math.sqrt(1.0 + 0.346 * max(variance, 0.0)) - mean
        intercept[k] = wide if math.isfinite(wide) else 0.0


@kernel
def _advance(sums: Matrix, intercept: Rows, state: Matrix) -> bool:
    """One step of each intercept that still moves; whether any does after it."""
    any_moves = False
    for k in range(intercept.size):
        if state[3, k] == 0.0:
            continue
        f, v, c = sums[0, k], sums[1, k], sums[2, k]
        b = intercept[k]
        if f == 0.0:
            state[3, k] = 0.0
            continue
        if f > 0.0:
            state[0, k] = b
        else:
            state[1, k] = b
        bend = 2.0 * v * v + c * f
        cap = state[2, k]
        move = 2.0 * f * v / bend if bend > v * v else (f / v if v > 0.0 else math.copysign(cap, f))
        state[2, k], state[4, k] = 2.0 * cap, state[4, k] + 1.0
        is_close = abs(move) <= LAST_STEP_SIZE
        is_slow = state[4, k] > MAX_PLAIN_MOVES and state[4, k] % 2.0 == 0.0 and not is_close
        move = math.copysign(cap, f) if is_slow else min(max(move, -cap), cap)
        new = b + move
        has_bounds = state[1, k] - state[0, k] < np.inf
        if (is_slow and has_bounds) or not state[0, k] <= new <= state[1, k]:
            new = 0.5 * (state[0, k] + state[1, k])
            is_close = False
        intercept[k] = new
        if is_close or new == b:
            state[3, k] = 0.0
        else:
            any_moves = True
    return any_moves


@kernel
def fit_intercepts(eta: Matrix, sign: Rows, unit: Rows, count: AnyArray, intercept: Rows) -> None:
    n = eta.shape[0]
    sums, state = np.empty((4, LANES)), np.empty((5, LANES))
    vector.moments(eta, sign, unit, count, 0, n, sums)
    _start(sums, intercept, state)
    for _ in range(MAX_MOVES):
        vector.slopes(eta, sign, unit, count, 0, n, intercept, sums)
        if not _advance(sums, intercept, state):
            break


@kernel
def residuals(
    eta: Matrix,
    sign: Rows,
    unit: Rows,
    count: AnyArray,
    intercept: Rows,
    residual: Matrix,
    value: Rows,
) -> None:
    n = eta.shape[0]
    vector.residuals(eta, sign, unit, count, 0, n, intercept, residual, None, value)


@kernel
def log_likelihoods(
    eta: Matrix, sign: Rows, unit: Rows, count: AnyArray, intercept: Rows, value: Rows
) -> None:
    n = eta.shape[0]
    vector.residuals(eta, sign, unit, count, 0, n, intercept, None, None, value)


# ------------------------------------------------------------------------------ one likelihood


@kernel
def _moments(
    first: int, last: int, ptr: Pointer, eta: Matrix, sign: Matrix, weight: Matrix, out: AnyArray
) -> None:
    for c in range(first, last):
        vector.moments(eta, sign, None, weight, ptr[c], ptr[c + 1], out[c])


@kernel
def _slopes(
    first: int,
    last: int,
    ptr: Pointer,
    eta: Matrix,
    sign: Matrix,
    weight: Matrix,
    intercept: Rows,
    out: AnyArray,
) -> None:
    for c in range(first, last):
        vector.slopes(eta, sign, None, weight, ptr[c], ptr[c + 1], intercept, out[c])


@kernel
def _residuals(
    first: int,
    last: int,
    ptr: Pointer,
    eta: Matrix,
    sign: Matrix,
    weight: Matrix,
    intercept: Rows,
    residual: Matrix,
    variance: Matrix,
    value: Matrix,
) -> None:
    for c in range(first, last):
        vector.residuals(
            eta, sign, None, weight, ptr[c], ptr[c + 1], intercept, residual, variance, value[c]
        )


def _vectors(x: Rows, filling: float = 0.0) -> Matrix:
    """Eight rows in a vector; the last is filled up."""
    m = -(-x.size // LANES)
    if x.size == m * LANES:
        return x.reshape(m, LANES)
    out = np.full((m, LANES), filling)
    out.reshape(-1)[: x.size] = x
    return out


def logistic_pass(eta: Rows, sign: Rows, weight: Rows, runtime: Runtime) -> LogisticPass:
    rows = _vectors(eta), _vectors(sign, 1.0), _vectors(weight)
    m = rows[0].shape[0]
    n_chunks = max(1, min(MAX_CHUNKS, m // CHUNK))
    ptr = np.linspace(0, m, n_chunks + 1).astype(np.int64)

    sums = np.empty((n_chunks, 4, LANES))
    runtime.run(_moments, n_chunks, ptr, *rows, sums)
    intercept, state = np.empty(1), np.empty((5, 1))
    _start(_total(sums), intercept, state)
    sums = sums[:, :3].copy()
    for _ in range(MAX_MOVES):
        runtime.run(_slopes, n_chunks, ptr, *rows, np.repeat(intercept, LANES), sums)
        if not _advance(_total(sums), intercept, state):
            break

    residual, variance = np.empty((m, LANES)), np.empty((m, LANES))
    value = np.empty((n_chunks, LANES))
    at = np.repeat(intercept, LANES)
    runtime.run(_residuals, n_chunks, ptr, *rows, at, residual, variance, value)
    n = eta.size
    return LogisticPass(
        float(value.sum()),
        residual.reshape(-1)[:n],
        variance.reshape(-1)[:n],
        float(intercept[0]),
    )


def _total(sums: AnyArray) -> Matrix:
    """Over chunks and the eight rows of a vector."""
    return np.ascontiguousarray(sums.sum(axis=(0, 2))[:, None])
