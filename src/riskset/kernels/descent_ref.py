"""Minimise a penalised quadratic, written as the formulas read."""

import numpy as np

from riskset._types import Features, Index, Matrix, NewtonQuadratic

__all__ = ["add_products", "copy_block", "minimise_quadratic", "secant_update"]


def minimise_quadratic(
    problem: NewtonQuadratic,
    tolerance: float,
    max_sweeps: int,
    step: Features,
    image: Features,
) -> int:
    """Cyclic coordinate descent.

    A coordinate without curvature goes to the border of its box, or to 0. `step` d is the start and
    the result, and `image` B d is kept up to date. It ends when no coordinate changes its gradient
    by more than `tolerance`. Returns the number of sweeps, which is more than `max_sweeps` if it
    did not converge.
    """
    curvature, gradient, beta, l1, l2, box = problem
    for sweep in range(1, max_sweeps + 1):
        moved = 0.0
        for j in range(gradient.size):
            h = curvature[j, j] + l2[j]
            b = beta[j] + step[j]
            slope = gradient[j] - image[j] - l2[j] * b
            z = b * h + slope
            if h > 0.0:
                target = np.sign(z) * max(abs(z) - l1[j], 0.0) / h
            elif abs(slope) > l1[j] + tolerance:
                target = np.sign(slope) * np.inf
            else:
                target = 0.0 if b * slope < l1[j] * abs(b) else b
            new = min(max(target - beta[j], -box[j]), box[j])
            change = new - step[j]
            if change != 0.0:
                step[j] = new
                image += change * curvature[j]
                moved = max(moved, abs(change) * h if h > 0.0 else abs(slope))
        if moved <= tolerance:
            return sweep
    return max_sweeps + 1


def secant_update(curvature: Matrix, y: Features, image: Features, sy: float, sbs: float) -> None:
    r"""The BFGS update, in place.

    .. math:: B \mathrel{+}= \frac{yy'}{s'y} - \frac{Bs (Bs)'}{s'Bs}

    with y the change of the gradient of the negative log likelihood along the step s, `image` Bs,
    and both denominators positive.
    """
    curvature += np.outer(y, y) / sy - np.outer(image, image) / sbs


def copy_block(matrix: Matrix, rows: Index, out: Matrix, at: Index) -> None:
    """Copy the entries of all pairs of `rows` to those of all pairs of `at`, in the same order."""
    out[np.ix_(at, at)] = matrix[np.ix_(rows, rows)]


def add_products(matrix: Matrix, rows: Index, factor: Features, out: Features) -> None:
    """Add the sum of some rows of a matrix, each times its factor."""
    out += factor @ matrix[rows]
