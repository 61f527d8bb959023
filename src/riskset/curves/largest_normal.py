r"""Probability that the largest of several correlated normal variables is far from 0.

Let :math:`Z_k = l_k^\top W` with standard normal W of as many dimensions as the correlations have
rank. The values of W with all :math:`|Z_k| \le c` are a polytope whose faces have the distance c
from 0. In up to three dimensions integrals over its faces have closed forms or one dimension; in
more, the probability is a mean over points that fill a cube evenly.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import tanhsinh
from scipy.special import chdtrc, ndtr, ndtri, owens_t
from scipy.stats.qmc import Sobol

__all__ = ["probability_of_largest"]

MIN_EIGENVALUE = 1e-13
"""Of a correlation matrix: those below are rounding errors."""
SAME = 1e-13
"""Variables with a correlation so close to 1 or -1 are one variable."""
ACCURACY = 1e-10
"""Relative error of the integrals over faces."""
N_POINTS = 1 << 17
"""Of a sequence without random numbers, in more than three dimensions."""


def probability_of_largest(c: float, correlation: NDArray[np.float64]) -> float:
    r"""Return :math:`P(\max_k |Z_k| \ge c)` for normal variables with these correlations.

    Parameters
    ----------
    c : float
        At least 0.
    correlation : (n, n) float64
        May be singular; n is at most 20.

    Returns
    -------
    float
        Of correlations of rank 3 or less with a relative error of at most 1e-8, otherwise of about
        1e-4. It is the same on every call.

    References
    ----------
    Owen (1956), Annals of Mathematical Statistics 27, 1075-1090, doi:10.1214/aoms/1177728074.
    """
    if not c > 0:
        return 1.0
    size, vectors = np.linalg.eigh(correlation)
    kept = size > MIN_EIGENVALUE * correlation.shape[0]
    lines = _distinct(vectors[:, kept] * np.sqrt(size[kept]))
    if lines.shape[0] == 1:
        return 2.0 * float(ndtr(-c))
    found = {2: _in_a_plane, 3: _in_space}.get(lines.shape[1], _in_many_dimensions)(c, lines)
    return min(found, 1.0)


def _distinct(lines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Directions (n, r) of length 1, of those that are the same, or opposite, the first."""
    lines = lines / np.linalg.norm(lines, axis=1)[:, None]
    is_same = np.abs(lines @ lines.T) > 1.0 - SAME
    return lines[~np.tril(is_same, -1).any(axis=1)]


def _in_a_plane(c: float, lines: NDArray[np.float64]) -> float:
    r"""By Owen's function T, for each half of each side of a polygon.

    The neighbour of a side with the correlation r meets it at :math:`c \sqrt{(1 - r) / (1 + r)}`
    from its foot.
    """
    total = 0.0
    for k, line in enumerate(lines):
        others = np.delete(lines, k, axis=0)
        r = others @ line
        along = others @ np.array([-line[1], line[0]])
        slope = np.sqrt((1.0 - r) / (1.0 + r))
        slope = np.where(along > 0, [slope, 1.0 / slope], [1.0 / slope, slope])
        total += 2.0 * float(owens_t(c, slope.min(axis=1)).sum())
    return total


def _in_space(c: float, lines: NDArray[np.float64]) -> float:
    r"""By an integral around the foot of each face.

    .. math:: 2 n \Phi(-c) - \frac{1}{\pi} \sum_k \int_0^{2 \pi} \frac{c}{t_k(\phi)}
        \Phi(-t_k(\phi)) \, d\phi

    where :math:`t_k` is the distance from 0 to the border of the face in the direction
    :math:`\phi` from its foot.
    """
    starts, ends, distances = (
        np.concatenate(parts)
        for parts in zip(*(_border(c, lines, k) for k in range(len(lines))), strict=True)
    )

    def height(angle: NDArray[np.float64], d: NDArray[np.float64]) -> NDArray[np.float64]:
        t = np.hypot(c, d / np.cos(angle))
        return np.asarray(c / t * ndtr(-t))

    beyond = tanhsinh(
        height,
        starts,
        ends,
        args=(distances,),
        minlevel=5,
        rtol=ACCURACY,
        atol=ACCURACY * float(ndtr(-c)),
    )
    return 2.0 * len(lines) * float(ndtr(-c)) - float(beyond.integral.sum()) / math.pi


def _border(
    c: float, lines: NDArray[np.float64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The border of a face, in pieces of one side each.

    Returns
    -------
    start, end : (m,) float64
        Angles from the nearest point of the line through the side.
    distance : (m,) float64
        Of that line from the foot of the face.
    """
    others = np.delete(lines, k, axis=0)
    others = np.concatenate([others, -others])
    r = others @ lines[k]
    plane = np.linalg.svd(lines[k][None])[2][1:]
    x, y = plane @ others.T
    distance, angle = c * np.sqrt((1.0 - r) / (1.0 + r)), np.arctan2(y, x)
    i, j = np.triu_indices(r.size, 1)
    # Two sides meet where distance_i cos(phi - angle_j) = distance_j cos(phi - angle_i).
    meet = np.arctan2(
        distance[j] * np.cos(angle[i]) - distance[i] * np.cos(angle[j]),
        distance[i] * np.sin(angle[j]) - distance[j] * np.sin(angle[i]),
    )
    cuts = np.unique(np.mod(np.concatenate([meet, meet + np.pi]), 2.0 * np.pi))
    start, end = cuts, np.append(cuts[1:], cuts[0] + 2.0 * np.pi)
    middle = 0.5 * (start + end)
    nearest = (np.cos(middle[:, None] - angle) / distance).argmax(axis=1)
    own = np.mod(middle - angle[nearest] + np.pi, 2.0 * np.pi) - np.pi
    half = 0.5 * (end - start)
    return own - half, own + half, distance[nearest]


def _in_many_dimensions(c: float, lines: NDArray[np.float64]) -> float:
    r"""By directions beyond each face.

    With :math:`q(t) = P(|W| > t)` and directions u of W given :math:`Z_k > c`,

    .. math:: 2 \Phi(-c) \sum_k E_k\left[\frac{\max_j q(c / |l_j^\top u|)}
        {\sum_j q(c / |l_j^\top u|)}\right]
    """
    n_dimensions = lines.shape[1]
    total = 0.0
    sobol = Sobol(n_dimensions, scramble=False)
    for _ in range(16):
        points = sobol.random(N_POINTS // 16) + 0.5 / N_POINTS
        above = -ndtri(points[:, 0] * ndtr(-c))
        across = ndtri(points[:, 1:])
        for line in lines:
            basis = np.linalg.svd(line[None])[2][1:]
            w = above[:, None] * line + across @ basis
            cosines = np.abs(w @ lines.T) / np.linalg.norm(w, axis=1)[:, None]
            beyond = chdtrc(n_dimensions, (c / np.maximum(cosines, 1e-300)) ** 2)
            total += float((beyond.max(axis=1) / beyond.sum(axis=1)).sum())
    return 2.0 * float(ndtr(-c)) * total / N_POINTS
