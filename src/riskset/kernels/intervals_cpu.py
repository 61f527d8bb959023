"""Confidence intervals in one pass: logarithms and exponentials in vector code, block by block.

The specification is `intervals_ref`. Vector code has no limits and no infinite numbers, so the few
probabilities that need those (of 0 and 1, or with a huge standard error) are done one by one, and
so are all of the scales that are seldom used.
"""

import math

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Matrix, Rows
from riskset.kernels._jit import kernel
from riskset.kernels._vector import LANES
from riskset.kernels._vector_functions import exponentials, logarithms
from riskset.kernels.intervals_ref import CERTAINTY_GAP, KINDS

__all__ = ["CERTAINTY_GAP", "KINDS", "probability_ends"]

CHUNK = 8192
MAX_CHUNKS = 32
BLOCK = 64
"""Vectors of a block."""
FAR = 700.0
"""Numbers of this size have no exponential in vector code."""
LEAST = 1e-300
LOG_LOG, LOG, PLAIN, LOGIT = 0, 1, 2, 3


@kernel
def _exp(x: float) -> float:
    return math.exp(x) if x < FAR else np.inf


@kernel
def _ends(p: float, error: float, z: float, kind: int) -> tuple[float, float]:
    """Ends of one probability, by the formula."""
    if np.isnan(error):
        return np.nan, np.nan
    if not 0.0 < p < 1.0 - CERTAINTY_GAP:
        return p, p
    if kind == LOG_LOG:
        log_p = math.log(p)
        factor = _exp(z * error / (p * -log_p))
        return math.exp(log_p * factor), math.exp(log_p / factor)
    if kind == LOG:
        return p * math.exp(-z * error / p), min(p * _exp(z * error / p), 1.0)
    if kind == PLAIN:
        return max(p - z * error, 0.0), min(p + z * error, 1.0)
    if kind == LOGIT:
        factor = _exp(z * error / (p * (1.0 - p)))
        return p / (p + (1.0 - p) * factor), p / (p + (1.0 - p) / factor)
    angle, half = math.asin(math.sqrt(p)), z * error / 2.0 / math.sqrt(p * (1.0 - p))
    lower, upper = max(angle - half, 0.0), min(angle + half, math.pi / 2)
    return math.sin(lower) ** 2, math.sin(upper) ** 2


@kernel
def _log_log(p: Rows, error: Rows, z: float, work: Matrix, n_vectors: int) -> None:
    """Fill rows of `work` with lower end, upper end, and logarithm of the lower end."""
    logs, factor, low, safe = work[0], work[1], work[2], work[3]
    n = p.size
    for j in range(n):
        safe[j] = p[j] if LEAST < p[j] < 1.0 - CERTAINTY_GAP else 0.5
    rows, powers = logs.reshape(-1, LANES), factor.reshape(-1, LANES)
    logarithms(safe.reshape(-1, LANES), 0, n_vectors, rows)
    for j in range(n):
        power = z * error[j] / (safe[j] * -logs[j])
        factor[j] = power if power < FAR else FAR
    exponentials(powers, 0, n_vectors, powers)
    for j in range(n):
        high, far = logs[j] / factor[j], logs[j] * factor[j]
        factor[j] = high if high > -FAR else -FAR
        low[j] = far if far > -FAR else -FAR
    exponentials(low.reshape(-1, LANES), 0, n_vectors, rows)
    exponentials(powers, 0, n_vectors, powers)


@kernel
def _log(p: Rows, error: Rows, z: float, work: Matrix, n_vectors: int) -> None:
    """Fill rows of `work` as `_log_log` does."""
    lower, upper, low = work[0], work[1], work[2]
    for j in range(p.size):
        safe = p[j] if p[j] > LEAST else 0.5
        low[j] = max(-z * error[j] / safe, -FAR)
        lower[j], upper[j] = low[j], -low[j]
    rows, powers = lower.reshape(-1, LANES), upper.reshape(-1, LANES)
    exponentials(rows, 0, n_vectors, rows)
    exponentials(powers, 0, n_vectors, powers)
    for j in range(p.size):
        lower[j], upper[j] = p[j] * lower[j], min(p[j] * upper[j], 1.0)


@kernel
def _fill(
    first: int, last: int, n_chunks: int, p: Rows, error: Rows, z: float, kind: int,
    lower: Rows, upper: Rows,
) -> None:  # fmt: skip
    m, size = p.size, BLOCK * LANES
    work = np.full((4, size), 0.5)
    for begin in range(m * first // n_chunks, m * last // n_chunks, size):
        end = min(begin + size, m * last // n_chunks)
        some, errors = p[begin:end], error[begin:end]
        n_vectors = (end - begin + LANES - 1) // LANES
        if kind == LOG_LOG:
            _log_log(some, errors, z, work, n_vectors)
        elif kind == LOG:
            _log(some, errors, z, work, n_vectors)
        for j in range(end - begin):
            is_inner = LEAST < some[j] < 1.0 - CERTAINTY_GAP
            if kind <= LOG and is_inner and work[2, j] > -FAR:
                lower[begin + j], upper[begin + j] = work[0, j], work[1, j]
            else:
                lower[begin + j], upper[begin + j] = _ends(some[j], errors[j], z, kind)


def probability_ends(
    p: Rows, error: Rows, z: float, kind: str, runtime: Runtime
) -> tuple[Rows, Rows]:
    n_chunks = max(1, min(MAX_CHUNKS, p.size // CHUNK))
    lower, upper = np.empty(p.size), np.empty(p.size)
    runtime.run(_fill, n_chunks, n_chunks, p, error, z, KINDS.index(kind), lower, upper)
    return lower, upper
