"""Minimise a penalised quadratic on the CPU. The specification is `descent_ref`."""

import math

from riskset._types import Features, Index, Matrix, NewtonQuadratic
from riskset.kernels._jit import kernel

__all__ = ["add_products", "copy_block", "minimise_quadratic", "secant_update"]


@kernel
def minimise_quadratic(
    problem: NewtonQuadratic,
    tolerance: float,
    max_sweeps: int,
    step: Features,
    image: Features,
) -> int:
    curvature, gradient, beta, l1, l2, box = problem
    q = gradient.size
    # Sweeps over the coordinates that are not at zero, and a full one before it may end.
    full = True
    for sweep in range(1, max_sweeps + 1):
        moved = 0.0
        for j in range(q):
            b = beta[j] + step[j]
            if not full and b == 0.0:
                continue
            h = curvature[j, j] + l2[j]
            pull = gradient[j] - image[j]
            z = b * curvature[j, j] + pull
            target = 0.0
            if h <= 0.0:
                # No curvature that floating point can see: as far as the slope and the box lead.
                target = b
                if abs(pull) > l1[j] + tolerance:
                    target = math.copysign(math.inf, pull)
                elif b * pull < l1[j] * abs(b):
                    target = 0.0
            elif z > l1[j]:
                target = (z - l1[j]) / h
            elif z < -l1[j]:
                target = (z + l1[j]) / h
            new = min(max(target - beta[j], -box[j]), box[j])
            change = new - step[j]
            if change != 0.0:
                step[j] = new
                row = curvature[j]
                for k in range(q):
                    image[k] += change * row[k]
                moved = max(moved, abs(change) * h if h > 0.0 else abs(pull))
        if moved <= tolerance:
            if full:
                return sweep
            full = True
        else:
            full = False
    return max_sweeps + 1


@kernel
def secant_update(curvature: Matrix, y: Features, image: Features, sy: float, sbs: float) -> None:
    q = y.size
    for j in range(q):
        a, b = y[j] / sy, image[j] / sbs
        for k in range(q):
            curvature[j, k] += a * y[k] - b * image[k]


@kernel
def copy_block(matrix: Matrix, rows: Index, out: Matrix, at: Index) -> None:
    for i in range(rows.size):
        source, target = matrix[rows[i]], out[at[i]]
        for k in range(rows.size):
            target[at[k]] = source[rows[k]]


@kernel
def add_products(matrix: Matrix, rows: Index, factor: Features, out: Features) -> None:
    for i in range(rows.size):
        row, x = matrix[rows[i]], factor[i]
        for k in range(out.size):
            out[k] += x * row[k]
