"""Sums over nested risk sets for all lanes, as the plain formulas: the specification.

Arrays (n, R), (G, R), (n_chunks, R) hold a row of lanes for each row, group or chunk. `place`,
`piece_ptr`, `group_piece`, `tied_piece`, `starts` and `chunk_ptr` are those of
`scan_plan.ScanPlan`. Outputs come last, and are changed in place where the text says so.
"""

import numpy as np

from riskset._types import AnyArray, Matrix, Rows

__all__ = [
    "add_nested",
    "add_tail",
    "carry",
    "hazards",
    "residuals",
    "risks",
    "seen_after",
    "seen_nested",
    "sum_chunks",
    "sum_events",
    "sum_pieces",
    "sum_tail_hazards",
    "tail_residuals",
]


def risks(
    eta: Matrix,
    shift: Rows,
    row: AnyArray,
    place: AnyArray,
    weight: Matrix,
    n_places: int,
    n_lanes: int,
    r: Matrix,
) -> None:
    r"""Risk of each row.

    .. math:: r_{p_i} = w_{p_i} \exp(\eta_{j_i} - s)

    with j the caller's `row`, in whose order eta (n, R) is, p the `place` where its weight and its
    risk are kept, and s the `shift` (R,), at least the largest eta of the lane.
    """
    r[place] = weight[place] * np.exp(eta[row] - shift)


def sum_pieces(
    r: Matrix, place: AnyArray, piece_ptr: AnyArray, n_pieces: int, n_lanes: int, sums: Matrix
) -> None:
    """Sum of the risks of each piece (n_pieces, R)."""
    for piece in range(n_pieces):
        sums[piece] = r[place[piece_ptr[piece] : piece_ptr[piece + 1]]].sum(axis=0)


def _running(values: Matrix, starts: AnyArray, before: Matrix | Rows) -> Matrix:
    """Sums up to each group since the last one that starts, from what came before the first."""
    out = np.empty_like(values)
    running = before
    for g in range(starts.size):
        running = values[g] + (0.0 if starts[g] else running)
        out[g] = running
    return out


def _running_back(values: Matrix, starts: AnyArray, after: Matrix | Rows) -> Matrix:
    """Sums from each group up to the next one that starts, then what comes after the last."""
    out = np.empty_like(values)
    running = after
    for g in range(starts.size - 1, -1, -1):
        running = values[g] + running
        out[g] = running
        running = np.zeros_like(running) if starts[g] else running
    return out


def _by_group(sums: Matrix, first: AnyArray, last: AnyArray) -> Matrix:
    pieces = [sums[a:b].sum(axis=0) for a, b in zip(first, last, strict=True)]
    return np.array(pieces).reshape(first.size, sums.shape[1])


def sum_chunks(
    sums: Matrix,
    group_piece: AnyArray,
    starts: AnyArray,
    chunk_ptr: AnyArray,
    n_chunks: int,
    is_backward: int,
    n_lanes: int,
    handed: Matrix,
) -> None:
    """What each chunk hands on: the sum of its groups since the last that starts.

    Backwards: of its groups up to, and without, the first that starts.
    """
    groups = _by_group(sums, group_piece[:-1], group_piece[1:])
    for c in range(n_chunks):
        own = slice(chunk_ptr[c], chunk_ptr[c + 1])
        zero = np.zeros(n_lanes)
        if not is_backward:
            handed[c] = _running(groups[own], starts[own], zero)[-1]
        elif starts[own].any():
            handed[c] = groups[own][: int(np.argmax(starts[own]))].sum(axis=0)
        else:
            handed[c] = groups[own].sum(axis=0)


def carry(
    has_start: AnyArray, n_chunks: int, is_backward: int, n_lanes: int, handed: Matrix
) -> None:
    """Replace what each chunk hands on by what it receives; one that has a start passes nothing."""
    order = range(n_chunks - 1, -1, -1) if is_backward else range(n_chunks)
    before = np.zeros(n_lanes)
    for c in order:
        own = handed[c].copy()
        handed[c] = before
        before = own + (0.0 if has_start[c] else before)


def add_nested(
    sums: Matrix,
    group_piece: AnyArray,
    tied_piece: AnyArray,
    starts: AnyArray,
    chunk_ptr: AnyArray,
    carried: Matrix,
    n_chunks: int,
    is_efron: int,
    n_lanes: int,
    rest: Matrix,
    tied: Matrix,
) -> None:
    r"""Sums over nested risk sets (G, R).

    .. math:: rest_g = \sum_{\text{groups} \le g} r - tied_g

    with :math:`tied_g` the sum over the group's own rows with an event (kept for Efron only).
    `carried` comes from `carry`, forwards.
    """
    alive = _by_group(sums, group_piece[:-1], tied_piece)
    dead = _by_group(sums, tied_piece, group_piece[1:])
    for c in range(n_chunks):
        own = slice(chunk_ptr[c], chunk_ptr[c + 1])
        up_to = _running(alive[own] + dead[own], starts[own], carried[c])
        before = np.vstack([carried[c], up_to[:-1]])
        before[starts[own] > 0] = 0.0
        rest[own] = before + alive[own]
    if is_efron:
        tied[:] = dead


def add_tail(
    sums: Matrix,
    group_piece: AnyArray,
    starts: AnyArray,
    chunk_ptr: AnyArray,
    carried: Matrix,
    survival: Matrix,
    n_chunks: int,
    n_lanes: int,
    total: Matrix,
) -> None:
    r"""Add the rows of a tail, which are at risk in the groups before their own (G, R).

    .. math:: total_g \mathrel{+}= G_g \sum_{\text{groups} > g} r

    `carried` comes from `carry`, backwards.
    """
    groups = _by_group(sums, group_piece[:-1], group_piece[1:])
    for c in range(n_chunks):
        first, last = chunk_ptr[c], chunk_ptr[c + 1]
        after = np.vstack([groups[first + 1 : last], carried[c]])
        # Group g is followed by g + 1, unless that starts a stratum.
        stops = np.append(starts[first + 1 : last], 0)
        running = np.zeros(n_lanes)
        for g in range(last - 1, first - 1, -1):
            running = np.zeros(n_lanes) if stops[g - first] else after[g - first] + running
            total[g] += survival[g] * running


def sum_events(
    weight: Matrix,
    event_ptr: AnyArray,
    event_row: AnyArray,
    n_groups: int,
    is_efron: int,
    n_lanes: int,
    group_events: Matrix,
    group_tied: AnyArray,
) -> None:
    """Weight of the events of each group (G, R), and for Efron how many have a positive weight."""
    for g in range(n_groups):
        own = weight[event_row[event_ptr[g] : event_ptr[g + 1]]]
        group_events[g] = own.sum(axis=0)
        if is_efron:
            group_tied[g] = (own > 0).sum(axis=0)


def hazards(
    group_events: Matrix,
    group_tied: AnyArray,
    starts: AnyArray,
    chunk_ptr: AnyArray,
    n_chunks: int,
    is_efron: int,
    n_lanes: int,
    rest: Matrix,
    tied: Matrix,
    value: Matrix,
    least: Matrix,
    handed: Matrix,
) -> None:
    r"""From sums over risk sets to hazards, in place.

    .. math::
        h_g = \sum_{k<m} \frac{N_g / m}{rest_g + \frac{m-k}{m} tied_g}, \qquad
        h^{tied}_g = \sum_{k<m} \frac{m-k}{m} \frac{N_g / m}{rest_g + \frac{m-k}{m} tied_g}

    with m the number of tied events; Breslow: :math:`h_g = N_g / rest_g`. `value`, `least` and
    `handed` (n_chunks, R) are the chunk's part of the log likelihood (less that of
    `sums_ref.score`), its smallest risk set with events, and its hazards up to the first group that
    starts, without that.
    """
    for c in range(n_chunks):
        value[c], least[c], handed[c] = 0.0, np.inf, 0.0
        inside = True
        for g in range(chunk_ptr[c], chunk_ptr[c + 1]):
            inside = inside and not starts[g]
            for k in range(n_lanes):
                h, h_tied, part, low = _hazard(
                    float(group_events[g, k]),
                    int(group_tied[g, k]) if is_efron else 1,
                    float(rest[g, k]),
                    float(tied[g, k]) if is_efron else 0.0,
                )
                rest[g, k] = h
                if is_efron:
                    tied[g, k] = h_tied
                value[c, k] += part
                least[c, k] = min(least[c, k], low)
                handed[c, k] += h if inside else 0.0


def _hazard(events: float, m: int, rest: float, tied: float) -> tuple[float, float, float, float]:
    if events <= 0.0:
        return 0.0, 0.0, 0.0, np.inf
    share = (m - np.arange(m)) / m
    d = rest + share * tied
    each = events / m
    with np.errstate(divide="ignore", invalid="ignore"):
        h, h_tied = (each / d).sum(), (share * each / d).sum()
        return float(h), float(h_tied), float(-each * np.log(d).sum()), rest + tied


def seen_nested(
    starts: AnyArray,
    chunk_ptr: AnyArray,
    carried: Matrix,
    n_chunks: int,
    is_efron: int,
    n_lanes: int,
    hazard: Matrix,
    hazard_tied: Matrix,
) -> None:
    r"""What the rows of a group see of the hazard, in place.

    .. math:: \sum_{\text{groups} \ge g} h, \qquad h^{tied}_g + \sum_{\text{groups} > g} h
    """
    for c in range(n_chunks):
        own = slice(chunk_ptr[c], chunk_ptr[c + 1])
        seen = _running_back(hazard[own], starts[own], carried[c])
        if is_efron:
            hazard_tied[own] += seen - hazard[own]
        hazard[own] = seen


def sum_tail_hazards(
    hazard: Matrix,
    survival: Matrix,
    starts: AnyArray,
    chunk_ptr: AnyArray,
    n_chunks: int,
    n_lanes: int,
    handed: Matrix,
) -> None:
    """Sum of G h over the groups of a chunk since the last that starts."""
    for c in range(n_chunks):
        own = slice(chunk_ptr[c], chunk_ptr[c + 1])
        values = survival[own] * hazard[own]
        handed[c] = _running(values, starts[own], np.zeros(n_lanes))[-1]


def seen_after(
    hazard: Matrix,
    survival: Matrix,
    starts: AnyArray,
    chunk_ptr: AnyArray,
    carried: Matrix,
    n_chunks: int,
    n_lanes: int,
    seen: Matrix,
) -> None:
    r"""What the rows of a tail see of the hazard: :math:`\sum_{\text{groups} < g} G h`."""
    for c in range(n_chunks):
        own = slice(chunk_ptr[c], chunk_ptr[c + 1])
        up_to = _running(survival[own] * hazard[own], starts[own], carried[c])
        before = np.vstack([carried[c], up_to[:-1]])
        before[starts[own] > 0] = 0.0
        seen[own] = before


def residuals(
    weight: Matrix,
    is_event: AnyArray,
    group: AnyArray,
    seen: Matrix,
    seen_tied: Matrix,
    n_rows: int,
    is_efron: int,
    n_lanes: int,
    residual: Matrix,
) -> None:
    """Observed less expected events of each row; `residual` holds its risk before.

    `group` (n,) is that of each of the caller's rows.
    """
    hazard = seen[group]
    if is_efron:
        hazard = np.where(is_event[:, None] > 0, seen_tied[group], hazard)
    residual[:] = weight * is_event[:, None] - residual * hazard


def tail_residuals(
    row: AnyArray,
    group: AnyArray,
    r: Matrix,
    seen: Matrix,
    n_places: int,
    n_lanes: int,
    residual: Matrix,
) -> None:
    """Take off the events expected of the rows of a tail after their own time."""
    residual[row] -= r * seen[group]
