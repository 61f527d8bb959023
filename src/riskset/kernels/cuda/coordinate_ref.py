"""The entries of one coordinate and its step, as the plain formulas: the specification.

One fit, one coordinate at a time: its entries are spread over rows in risk order, a kernel of
`fused` makes derivatives of them, the step is taken, and the entries move along it.
"""

import numpy as np

from riskset._types import AnyArray, Features, Matrix, Rows
from riskset.kernels.ccd_ref import coordinate_step

__all__ = ["move_column", "spread_column", "take_step"]


def spread_column(
    r: Matrix,
    place: AnyArray,
    value: Rows,
    first: int,
    n_entries: int,
    is_binary: int,
    xr: Matrix,
    xxr: Matrix,
) -> None:
    """``x r`` and ``x^2 r`` at the entries of a column (n, 1); elsewhere they are 0 and stay so.

    Rows are in risk order. `place` and `value` are those of many columns; the entries of this one
    are ``first`` up to ``first + n_entries``. Of a column of zeros and ones `xr` and `xxr` may be
    one array.
    """
    rows, x = _entries(place, value, first, n_entries, is_binary)
    xr[rows, 0], xxr[rows, 0] = x * r[rows, 0], x**2 * r[rows, 0]


def move_column(
    row: AnyArray,
    weight: Matrix,
    shift: Matrix,
    place: AnyArray,
    value: Rows,
    step: Rows,
    first: int,
    n_entries: int,
    is_binary: int,
    eta: Matrix,
    r: Matrix,
    xr: Matrix,
    xxr: Matrix,
) -> None:
    r"""Add the step of a column to eta and renew :math:`r = w e^{\eta - s}`; clear its entries.

    `eta` (n, 1) is in the caller's order, and `row` gives the caller's row of each place in risk
    order.
    """
    rows, x = _entries(place, value, first, n_entries, is_binary)
    xr[rows] = xxr[rows] = 0.0
    if step[0] != 0.0:
        eta[row[rows], 0] += step[0] * x
        r[rows] = weight[rows] * np.exp(eta[row[rows]] - shift)


def take_step(
    slope: Rows,
    bend: Rows,
    score: Features,
    l1: Features,
    l2: Features,
    column: int,
    n_tiles: int,
    n_status: int,
    ticket: AnyArray,
    status: AnyArray,
    beta: Features,
    width: Features,
    curvature: Features,
    step: Rows,
) -> None:
    """Add up the derivatives of a column and take its step (`ccd_ref.coordinate_step`).

    `slope` and `bend` (n_tiles,) come from a kernel of `fused`, whose `ticket` and `status` become
    0 for the next one. `score` (p,) is the sum of the covariate over all events, of which `slope`
    is the expectation.
    """
    gradient, hessian = score[column] - slope.sum(), float(bend.sum())
    step[0], width[column] = coordinate_step(
        gradient, hessian, beta[column], l1[column], l2[column], width[column]
    )
    beta[column] += step[0]
    curvature[column] = hessian
    ticket[0], status[:] = 0, 0


def _entries(
    place: AnyArray, value: Rows, first: int, n_entries: int, is_binary: int
) -> tuple[AnyArray, Rows]:
    own = slice(first, first + n_entries)
    return place[own], np.ones(n_entries) if is_binary else value[own]
