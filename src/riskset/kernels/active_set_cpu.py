"""Minimise a penalised quadratic by an active set. The specification is `active_set_ref`."""

import math

import numpy as np
from numpy.typing import NDArray

from riskset._types import Features, Index, Matrix, NewtonQuadratic
from riskset.kernels._jit import kernel
from riskset.kernels._vector import LANES
from riskset.kernels._vector_dots import dot
from riskset.kernels.active_set_ref import JOIN_SHARE, MIN_PIVOT

__all__ = ["exchange", "minimise_active", "update_factor"]


@kernel
def minimise_active(
    problem: NewtonQuadratic,
    tolerance: float,
    max_moves: int,
    active: Index,
    n_active: int,
    factor: Matrix,
    step: Features,
    image: Features,
) -> bool:
    curvature, gradient, beta, l1, l2, box = problem
    q, capacity = gradient.size, factor.shape[0]
    sign, pull, move = np.zeros(q), np.empty(capacity), np.empty(capacity)
    imaged = step.copy()
    is_free, is_out = np.zeros(q, dtype=np.bool_), np.zeros(q, dtype=np.bool_)
    for i in range(n_active):
        j = active[i]
        is_free[j] = True
        sign[j] = _sign(beta[j] + step[j])
    for i in range(n_active):
        j = active[i]
        pull[i] = _slope(j, problem, step, image) - l1[j] * sign[j]
    for _ in range(max_moves):
        _solve(factor, pull, n_active, move)
        for i in range(n_active):
            if not math.isfinite(move[i]):
                active[:] = -1
                return False
        hit, reach, to = -1, 1.0, 0.0
        for i in range(n_active):
            j, d = active[i], move[i]
            x = beta[j] + step[j]
            if l1[j] > 0.0 and (x + d) * sign[j] < 0.0 and abs(x) <= reach * abs(d):
                hit, reach, to = i, abs(x / d), -beta[j]
            if abs(step[j] + d) > box[j]:
                border = math.copysign(box[j], d)
                if (border - step[j]) / d < reach:
                    hit, reach, to = i, max((border - step[j]) / d, 0.0), border
        for i in range(n_active):
            step[active[i]] += reach * move[i]
            pull[i] *= 1.0 - reach
        if hit >= 0:
            j = active[hit]
            step[j] = to
            is_free[j] = False
            n_active = _leave(factor, active, pull, n_active, hit)
            continue
        _update_image(curvature, step, imaged, image)
        n_before = n_active
        n_active = _join(
            problem, tolerance, active, n_active, factor, step, image, sign, is_free, is_out
        )
        if n_active == n_before:
            active[n_active:] = -1
            return not is_out.any()
        for i in range(n_active):
            j = active[i]
            pull[i] = _slope(j, problem, step, image) - l1[j] * sign[j]
    _update_image(curvature, step, imaged, image)
    active[:] = -1
    return False


@kernel
def exchange(
    curvature: Matrix,
    l2: Features,
    active: Index,
    n_active: int,
    factor: Matrix,
    entering: Index,
) -> bool:
    n, capacity = n_active, factor.shape[0]
    nothing, column = np.zeros(capacity), np.empty(capacity)
    for i in range(n_active - 1, -1, -1):
        if active[i] < 0:
            n = _leave(factor, active, nothing, n, i)
    for j in entering:
        own = curvature[j]
        for i in range(n):
            column[i] = own[active[i]]
        if not _append(factor, column, own[j] + l2[j], n):
            return False
        active[n] = j
        n += 1
    active[n:] = -1
    return True


@kernel
def update_factor(factor: Matrix, n: int, plus: Features, minus: Features) -> bool:
    for i in range(n):
        row = factor[i]
        # A rotation adds, and a hyperbolic one takes off.
        length = math.hypot(row[i], plus[i])
        cosine, sine = row[i] / length, plus[i] / length
        left = (length - minus[i]) * (length + minus[i])
        if not left > MIN_PIVOT * length * length:
            return False
        row[i] = math.sqrt(left)
        ratio, shift = length / row[i], minus[i] / length
        share = row[i] / length
        for k in range(i + 1, n):
            raised = cosine * row[k] + sine * plus[k]
            plus[k] = cosine * plus[k] - sine * row[k]
            row[k] = (raised - shift * minus[k]) * ratio
            minus[k] = share * minus[k] - shift * row[k]
    return True


@kernel
def _sign(x: float) -> float:
    return 0.0 if x == 0.0 else math.copysign(1.0, x)


@kernel
def _slope(j: int, problem: NewtonQuadratic, step: Features, image: Features) -> float:
    ridge = problem.l2[j] * (problem.beta[j] + step[j])
    slope: float = problem.gradient[j] - image[j] - ridge
    return slope


@kernel
def _update_image(curvature: Matrix, step: Features, imaged: Features, image: Features) -> None:
    for j in range(step.size):
        change = step[j] - imaged[j]
        if change != 0.0:
            imaged[j] = step[j]
            row = curvature[j]
            for k in range(image.size):
                image[k] += change * row[k]


@kernel
def _excess(j: int, slope: float, problem: NewtonQuadratic, step: Features) -> float:
    """How far the slope at a coordinate that is not free exceeds what holds it, with its sign."""
    x, l1 = problem.beta[j] + step[j], problem.l1[j]
    if x == 0.0:
        pull = 0.0 if abs(slope) <= l1 else slope - math.copysign(l1, slope)
    else:
        pull = slope - math.copysign(l1, x)
    if abs(step[j]) >= problem.box[j] and pull * step[j] >= 0.0:
        return 0.0
    return pull


@kernel
def _join(
    problem: NewtonQuadratic,
    tolerance: float,
    active: Index,
    n_active: int,
    factor: Matrix,
    step: Features,
    image: Features,
    sign: Features,
    is_free: NDArray[np.bool_],
    is_out: NDArray[np.bool_],
) -> int:
    q, capacity = problem.gradient.size, factor.shape[0]
    excess, column, worst = np.zeros(q), np.empty(capacity), tolerance
    for j in range(q):
        if not is_free[j] and not is_out[j]:
            slope = _slope(j, problem, step, image)
            excess[j] = _excess(j, slope, problem, step)
            worst = max(worst, abs(excess[j]))
    for j in range(q):
        if abs(excess[j]) <= tolerance or abs(excess[j]) < JOIN_SHARE * worst:
            continue
        if n_active == capacity:
            is_out[j] = True
            break
        x, own = problem.beta[j] + step[j], problem.curvature[j]
        for i in range(n_active):
            column[i] = own[active[i]]
        if not _append(factor, column, own[j] + problem.l2[j], n_active):
            is_out[j] = True
            continue
        active[n_active] = j
        is_free[j] = True
        sign[j] = _sign(x) if x != 0.0 else _sign(excess[j])
        n_active += 1
    return n_active


@kernel
def _append(factor: Matrix, column: Features, diagonal: float, n: int) -> bool:
    """Give the factor the column of one more coordinate; False if the others leave it nothing."""
    left = diagonal
    for i in range(n):
        value = column[i] / factor[i, i]
        left -= value * value
        factor[i, n] = value
        row = factor[i]
        for k in range(i + 1, n):
            column[k] -= value * row[k]
    if left <= MIN_PIVOT * diagonal:
        return False
    factor[n, n] = math.sqrt(left)
    return True


@kernel
def _leave(factor: Matrix, active: Index, pull: Features, n: int, at: int) -> int:
    """Take a coordinate out; rotations make the factor triangular again."""
    for k in range(at, n - 1):
        active[k], pull[k] = active[k + 1], pull[k + 1]
    for r in range(n):
        row = factor[r]
        for k in range(max(at, r - 1), n - 1):
            row[k] = row[k + 1]
    for r in range(at, n - 1):
        upper, lower = factor[r], factor[r + 1]
        length = math.hypot(upper[r], lower[r])
        cosine, sine = upper[r] / length, lower[r] / length
        upper[r] = length
        for k in range(r + 1, n - 1):
            first = cosine * upper[k] + sine * lower[k]
            lower[k] = cosine * lower[k] - sine * upper[k]
            upper[k] = first
    return n - 1


@kernel
def _solve(factor: Matrix, right: Features, n: int, out: Features) -> None:
    """The solution of R'R x = right."""
    lanes = np.empty(2 * LANES)
    for i in range(n):
        out[i] = right[i]
    for i in range(n):
        out[i] /= factor[i, i]
        value, row = out[i], factor[i]
        for k in range(i + 1, n):
            out[k] -= value * row[k]
    for i in range(n - 1, -1, -1):
        row = factor[i]
        total = dot(row[i + 1 :], out[i + 1 : n], lanes)
        out[i] = (out[i] - total) / row[i]
