"""The fast twin of `augmentation_ref`: a pass forwards and one backwards over time for each row.

What is expected of somebody without an event by the start of a cell follows from what is expected
at its end, so that nothing is divided by a small probability.
"""

import math

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, Matrix, Rows
from riskset.kernels._exponential import exp_block
from riskset.kernels._jit import kernel
from riskset.kernels.augmentation_ref import LARGEST, FollowedRows, TimeCells

__all__ = ["LARGEST", "FollowedRows", "TimeCells", "augmented"]

CHUNK = 1024
LEAST = 1e-300
Three = tuple[float, float, float]


def augmented(
    cells: TimeCells, rows: FollowedRows, is_subdistribution: bool, runtime: Runtime
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n, k = rows.end.size, cells.until.size
    predicted, completed = np.empty((n, 3, k)), np.full((n, 3, k), np.nan)
    work = _of_subdistribution if is_subdistribution else _of_causes
    runtime.run(work, -(-n // CHUNK), cells, rows, predicted, completed)
    return predicted, completed


@kernel
def _inverse_uncensored(
    cells: TimeCells, factor: float, n_cells: int, inverse: Rows, power: Index
) -> None:
    """1 / G before each of the first cells, and after the last."""
    hazard = 0.0
    inverse[0] = 0.0
    for c in range(n_cells):
        hazard += factor * cells.censoring[c]
        inverse[c + 1] = min(hazard, LARGEST)
    exp_block(inverse[: n_cells + 1], power[: n_cells + 1])


@kernel
def _finish(
    rows: FollowedRows, i: int, t: float, before: float, reached: float, at_end: float,
    start: Three, there: Three, out: Rows,
) -> None:  # fmt: skip
    """The completed outcome of a row that ends by the horizon, without the integral up to its cell.

    1 / G is `before` at the start of its cell and `reached` at its end, where `start` and `there`
    are expected.
    """
    status, end = rows.status[i], rows.end[i]
    for q in range(3):
        known = there[q]
        if status > 0 and q == 1:
            known = end
        elif status > 0:
            known = 0.0 if status != 1 else (1.0 if q == 0 else t - end)
        mean = at_end * there[q] + (1.0 - at_end) * start[q]
        out[q] = known * reached - mean * (reached - before)


@kernel
def _of_causes(
    first: int, last: int, cells: TimeCells, rows: FollowedRows,
    predicted: NDArray[np.float64], completed: NDArray[np.float64],
) -> None:  # fmt: skip
    n_cells, k = cells.time.size, cells.until.size
    stays, rises, inverse = np.empty(n_cells), np.empty(n_cells), np.empty(n_cells + 1)
    power, out = np.empty(n_cells + 1, dtype=np.int64), np.empty(3)
    for i in range(first * CHUNK, min(last * CHUNK, rows.end.size)):
        _steps(cells, rows, i, stays, rises, power)
        _forwards(cells, i, stays, rises, predicted)
        own = rows.cell[i]
        if own < 0:
            continue
        reached = 1.0
        _inverse_uncensored(cells, rows.censoring_factor[i], min(own, n_cells), inverse, power)
        if own < n_cells:
            step = rows.censoring_factor[i] * rows.rest_censoring[i]
            reached = min(inverse[own] * math.exp(min(step, LARGEST)), math.exp(LARGEST))
        for h in range(k):
            _backwards(cells, rows, i, h, stays, rises, inverse, reached, out)
            for q in range(3):
                completed[i, q, h] = out[q]


@kernel
def _steps(
    cells: TimeCells, rows: FollowedRows, i: int, stays: Rows, rises: Rows, power: Index
) -> None:
    """Probabilities of no event within each cell, and of the outcome, if there was none before."""
    n_cells, n_causes = cells.time.size, cells.step.shape[0]
    stays[:] = 0.0
    for j in range(n_causes):
        factor = rows.factor[j, i]
        for c in range(n_cells):
            stays[c] -= factor * cells.step[j, c]
    factor = rows.factor[0, i]
    for c in range(n_cells):
        hazard = -stays[c]
        # The share of the outcome in all hazards.
        rises[c] = 1.0 if n_causes == 1 else factor * cells.step[0, c] / max(hazard, LEAST)
        stays[c] = max(stays[c], -LARGEST)
    exp_block(stays, power[:n_cells])
    for c in range(n_cells):
        rises[c] *= 1.0 - stays[c]


@kernel
def _forwards(
    cells: TimeCells, i: int, stays: Rows, rises: Rows, predicted: NDArray[np.float64]
) -> None:
    """S, F and their areas from time 0 on: what is expected up to each horizon."""
    at_end, k = cells.at_end, cells.until.size
    free, risk, area_free, area_risk, start = 1.0, 0.0, 0.0, 0.0, 0.0
    for c in range(cells.time.size):
        width = cells.time[c] - start
        start = cells.time[c]
        rise = free * rises[c]
        area_risk += width * (risk + (1.0 - at_end) * rise)
        area_free += width * free * (at_end + (1.0 - at_end) * stays[c])
        risk += rise
        free *= stays[c]
        for h in range(k):
            if cells.until[h] == c:
                predicted[i, 0, h], predicted[i, 1, h] = risk, area_free
                predicted[i, 2, h] = area_risk


@kernel
def _backwards(
    cells: TimeCells, rows: FollowedRows, i: int, h: int, stays: Rows, rises: Rows, inverse: Rows,
    reached: float, out: Rows,
) -> None:  # fmt: skip
    """From horizon h to time 0: what is expected at the ends of cells, and the integral over it."""
    later, last, own = 1.0 - cells.at_end, cells.until[h], rows.cell[i]
    t, at_end = cells.time[last], cells.at_end
    is_followed = own > last or (own == last and rows.status[i] == 0)
    risk, time, lost = 0.0, t, 0.0
    total_risk, total_time, total_lost = 0.0, 0.0, 0.0
    out[0], out[1], out[2] = 0.0, t * inverse[last] if is_followed else 0.0, 0.0
    ends_at = -1 if is_followed else own
    for c in range(last, -1, -1):
        start, stop = cells.time[c - 1] if c > 0 else 0.0, cells.time[c]
        width, s, f = stop - start, stays[c], rises[c]
        risk_before = f + s * risk
        time_before = start + width * (at_end + later * s) + s * (time - stop)
        lost_before = f * (t - stop + later * width) + s * lost
        if c == ends_at:
            _within(cells, rows, i, t, (risk, time, lost), (risk_before, time_before, lost_before),
                    inverse[c], reached, out)  # fmt: skip
        elif c < own and c < last:
            jump = inverse[c + 1] - inverse[c]
            total_risk += (at_end * risk + later * risk_before) * jump
            total_time += (at_end * time + later * time_before) * jump
            total_lost += (at_end * lost + later * lost_before) * jump
        risk, time, lost = risk_before, time_before, lost_before
    out[0] -= total_risk
    out[1] -= total_time
    out[2] -= total_lost


@kernel
def _within(
    cells: TimeCells, rows: FollowedRows, i: int, t: float, after: Three, before: Three,
    inverse: float, reached: float, out: Rows,
) -> None:  # fmt: skip
    """The part of the completed outcome in the cell of the end of a row.

    `before` and `after` are expected at the start and at the end of the cell.
    """
    c, end = rows.cell[i], rows.end[i]
    at_end, stop = cells.at_end, cells.time[c]
    hazard, of_outcome = 0.0, 0.0
    for j in range(cells.step.shape[0]):
        own = rows.factor[j, i] * max(cells.step[j, c] - rows.rest[j, i], 0.0)
        hazard += own
        if j == 0:
            of_outcome = own
    s, width = math.exp(-hazard), stop - end
    f = -math.expm1(-hazard) * of_outcome / hazard if hazard > 0.0 else 0.0
    there = (
        f + s * after[0],
        end + width * (at_end + (1.0 - at_end) * s) + s * (after[1] - stop),
        f * (t - stop + (1.0 - at_end) * width) + s * after[2],
    )
    _finish(rows, i, t, inverse, reached, at_end, before, there, out)


@kernel
def _of_subdistribution(
    first: int, last: int, cells: TimeCells, rows: FollowedRows,
    predicted: NDArray[np.float64], completed: NDArray[np.float64],
) -> None:  # fmt: skip
    n_cells, k = cells.time.size, cells.until.size
    path, inverse = np.empty((4, n_cells + 1)), np.empty(n_cells + 1)
    power, out = np.empty(n_cells + 1, dtype=np.int64), np.empty(3)
    for i in range(first * CHUNK, min(last * CHUNK, rows.end.size)):
        _walk(cells, rows, i, path)
        own = rows.cell[i]
        reached = 1.0
        if own >= 0:
            _inverse_uncensored(cells, rows.censoring_factor[i], min(own, n_cells), inverse, power)
            if own < n_cells:
                step = rows.censoring_factor[i] * rows.rest_censoring[i]
                reached = min(inverse[own] * math.exp(min(step, LARGEST)), math.exp(LARGEST))
        for h in range(k):
            end = cells.until[h]
            at_start = _expected(cells, path, end, (1.0, 0.0, 0.0, 0.0), 0.0)
            for q in range(3):
                predicted[i, q, h] = at_start[q]
            if own >= 0:
                _complete(cells, rows, i, end, path, inverse, reached, out)
                for q in range(3):
                    completed[i, q, h] = out[q]


@kernel
def _complete(
    cells: TimeCells, rows: FollowedRows, i: int, last: int, path: Matrix, inverse: Rows,
    reached: float, out: Rows,
) -> None:  # fmt: skip
    """The completed outcome of a row up to the end of a cell, with a subdistribution."""
    own, at_end, t = rows.cell[i], cells.at_end, cells.time[last]
    is_followed = own > last or (own == last and rows.status[i] == 0)
    total_risk, total_time, total_lost = 0.0, 0.0, 0.0
    before = _expected(cells, path, last, (1.0, 0.0, 0.0, 0.0), 0.0)
    for c in range(last if is_followed else own):
        now = _expected(
            cells, path, last, (path[0, c + 1], path[1, c + 1], path[2, c + 1], path[3, c + 1]),
            cells.time[c],
        )  # fmt: skip
        jump = inverse[c + 1] - inverse[c]
        total_risk += (at_end * now[0] + (1.0 - at_end) * before[0]) * jump
        total_time += (at_end * now[1] + (1.0 - at_end) * before[1]) * jump
        total_lost += (at_end * now[2] + (1.0 - at_end) * before[2]) * jump
        before = now
    if is_followed:
        out[0], out[1], out[2] = 0.0, t * inverse[last], 0.0
    else:
        there = _there(cells, rows, i, path, last)
        _finish(rows, i, t, inverse[own], reached, at_end, before, there, out)
    out[0] -= total_risk
    out[1] -= total_time
    out[2] -= total_lost


@kernel
def _walk(cells: TimeCells, rows: FollowedRows, i: int, path: Matrix) -> None:
    """S, F and their areas at time 0 and at the end of each cell."""
    path[0, 0], path[1, 0], path[2, 0], path[3, 0] = 1.0, 0.0, 0.0, 0.0
    of_outcome, of_any = 0.0, 0.0
    for c in range(cells.time.size):
        of_outcome += rows.factor[0, i] * cells.step[0, c]
        of_any += rows.factor[1, i] * cells.step[1, c]
        path[0, c + 1] = math.exp(-of_any)
        path[1, c + 1] = -math.expm1(-of_outcome)
        width = cells.time[c] - (cells.time[c - 1] if c > 0 else 0.0)
        for v in range(2):
            mean = cells.at_end * path[v, c] + (1.0 - cells.at_end) * path[v, c + 1]
            path[v + 2, c + 1] = path[v + 2, c] + width * mean


@kernel
def _expected(
    cells: TimeCells, path: Matrix, last: int, at_u: tuple[float, float, float, float], u: float
) -> Three:
    """M from S, F and their areas at u."""
    free, risk, area_free, area_risk = at_u
    t = cells.time[last]
    free = max(free, LEAST)
    lost = (path[3, last + 1] - area_risk - risk * (t - u)) / free
    return (
        min(max((path[1, last + 1] - risk) / free, 0.0), 1.0),
        u + (path[2, last + 1] - area_free) / free,
        min(max(lost, 0.0), t - u),
    )


@kernel
def _there(cells: TimeCells, rows: FollowedRows, i: int, path: Matrix, last: int) -> Three:
    """What is expected at the end of a row."""
    c, at_end = rows.cell[i], cells.at_end
    of_outcome, of_any = rows.rest[0, i], rows.rest[1, i]
    for b in range(c):
        of_outcome += cells.step[0, b]
        of_any += cells.step[1, b]
    free = math.exp(-rows.factor[1, i] * of_any)
    risk = -math.expm1(-rows.factor[0, i] * of_outcome)
    width = rows.end[i] - (cells.time[c - 1] if c > 0 else 0.0)
    area_free = path[2, c] + width * (at_end * path[0, c] + (1.0 - at_end) * free)
    area_risk = path[3, c] + width * (at_end * path[1, c] + (1.0 - at_end) * risk)
    return _expected(cells, path, last, (free, risk, area_free, area_risk), rows.end[i])
