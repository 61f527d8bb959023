"""Curvature of the likelihood over nested risk sets, written as the formula reads."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Pointer, Rows

__all__ = ["nested_pull"]


def nested_pull(
    ru: Rows,
    factor: NDArray[np.float64],
    group_ptr: Pointer,
    starts: NDArray[np.bool_],
) -> Rows:
    r"""Sums over later groups of sums over risk sets.

    .. math:: p_i = \sum_{g \ge g(i)} f_g \sum_{k: g(k) \le g} (ru)_k

    within the stratum of row i.

    Parameters
    ----------
    ru : (n,) float64
        In risk order.
    factor : (G,) float64
        f, 0 for groups without events.

    Returns
    -------
    (n,) float64
    """
    group = np.repeat(np.arange(starts.size), np.diff(group_ptr))
    stratum = np.cumsum(starts)
    same = stratum[:, None] == stratum[group][None, :]
    within = same & (group[None, :] <= np.arange(starts.size)[:, None])
    pull: Rows = (factor * (within @ ru)) @ within.astype(np.float64)
    return pull
