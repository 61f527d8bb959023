"""Sums and extremes over rows, lane by lane, as the plain formulas: the specification."""

import numpy as np

from riskset._types import AnyArray, Matrix, Rows
from riskset.kernels.cuda.launch import STRIDE

__all__ = [
    "add_up",
    "expected_rows",
    "extremes",
    "fill",
    "move_rows",
    "repeat_rows",
    "score",
]


def _chunks(n_rows: int) -> list[slice]:
    return [slice(a, min(a + STRIDE, n_rows)) for a in range(0, n_rows, STRIDE)]


def add_up(x: Matrix, n_rows: int, n_lanes: int, sums: Matrix) -> None:
    """Sums over `STRIDE` rows at a time."""
    for c, own in enumerate(_chunks(n_rows)):
        sums[c] = x[own].sum(axis=0)


def extremes(
    low: Matrix, high: Matrix, n_rows: int, n_lanes: int, lowest: Matrix, highest: Matrix
) -> None:
    """Least of `low` and largest of `high` over `STRIDE` rows at a time."""
    for c, own in enumerate(_chunks(n_rows)):
        lowest[c], highest[c] = low[own].min(axis=0), high[own].max(axis=0)


def score(
    eta: Matrix,
    shift: Rows,
    weight: Matrix,
    event_row: AnyArray,
    n_events: int,
    n_lanes: int,
    sums: Matrix,
) -> None:
    """``sum_i w_i (eta_i - shift)`` over `STRIDE` rows with an event at a time."""
    for c, own in enumerate(_chunks(n_events)):
        rows = event_row[own]
        sums[c] = (weight[rows] * (eta[rows] - shift)).sum(axis=0)


def move_rows(
    eta: Matrix, along: Matrix, share: Rows, n_rows: int, n_lanes: int, moved: Matrix
) -> None:
    """``eta + share along``."""
    moved[:] = eta + share * along


def fill(value: float, n_rows: int, n_lanes: int, x: Matrix) -> None:
    """Set every number."""
    x[:] = value


def repeat_rows(x: Rows, n_rows: int, n_lanes: int, out: Matrix) -> None:
    """The same for every lane."""
    out[:] = x[:, None]


def expected_rows(
    weight: Matrix,
    is_event: AnyArray,
    residual: Matrix,
    n_rows: int,
    n_lanes: int,
    expected: Matrix,
) -> None:
    """Expected events of each row: the observed ones less the residual, not below 0."""
    expected[:] = np.maximum(weight * is_event[:, None] - residual, 0.0)
