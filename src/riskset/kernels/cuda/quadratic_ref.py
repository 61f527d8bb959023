"""The penalised quadratic of a Newton step in every lane, as the plain formulas."""

import numpy as np

from riskset._types import AnyArray, Features, Matrix, NewtonQuadratic, Rows
from riskset.kernels import descent_ref

__all__ = ["minimise_quadratics"]


def minimise_quadratics(
    curvature: Matrix,
    scale: Rows,
    pairs: AnyArray,
    n_pairs: AnyArray,
    gradient: Matrix,
    beta: Matrix,
    l1: Features,
    l2: Features,
    box: Matrix,
    may_move: AnyArray,
    tolerance: Rows,
    n_columns: int,
    max_pairs: int,
    max_sweeps: int,
    n_lanes: int,
    size: Matrix,
    step: Matrix,
    image: Matrix,
) -> None:
    r"""`descent_ref.minimise_quadratic` in each lane, with a curvature of its own.

    .. math:: B_k = s_k B + \sum_{a < n_k} (-1)^a p_{ak} p_{ak}'

    B is `curvature` (q, q), s `scale` (R,), and p the vectors of the lane's secant updates, `pairs`
    (R, q, max_pairs), of which `n_pairs` (R,) count. A coordinate without curvature, or that may
    not move, keeps step 0. The step starts at 0, and its image is :math:`B_k d`. `size` (R, q) is
    scratch: the diagonal, kept from vanishing by rounding.
    """
    for k in range(n_lanes):
        vectors = pairs[k, :, : n_pairs[k]]
        sign = np.where(np.arange(vectors.shape[1]) % 2, -1.0, 1.0)
        own = scale[k] * curvature + (vectors * sign) @ vectors.T
        size[k] = np.maximum(np.diag(own), 1e-3 * scale[k] * np.diag(curvature))
        use = np.flatnonzero(may_move[k])
        d, b_d = np.zeros(use.size), np.zeros(use.size)
        problem = NewtonQuadratic(
            own[np.ix_(use, use)], gradient[k, use], beta[k, use], l1[use], l2[use], box[k, use]
        )
        descent_ref.minimise_quadratic(problem, float(tolerance[k]), max_sweeps, d, b_d)
        step[k] = 0.0
        step[k, use] = d
        image[k] = own @ step[k]
