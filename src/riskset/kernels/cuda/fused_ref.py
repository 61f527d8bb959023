r"""Derivatives of one coordinate by scans over all rows, as the plain formulas: the specification.

Rows stand in risk order. With the tuple :math:`v_i = (r_i, x_i r_i, x_i^2 r_i)` the sums over the
risk set of a group are those over the rows of its stratum up to the group's last row, which is
where `events` has the weighted number of its events N and is 0 elsewhere:

.. math::
    slope = \sum_g N_g \frac{S_g}{D_g}, \qquad
    bend = \sum_g N_g \left( \frac{Q_g}{D_g} - \left( \frac{S_g}{D_g} \right)^2 \right)

Both are added up tile by tile. The other outputs are how tiles talk to each other: `own`, what the
rows of a tile hand on, and `total`, what all rows up to its end do. Of a first tile, and of one in
which a stratum starts, only `total` is written.

References
----------
Yang, Schuemie, Ji & Suchard (2024), Journal of Computational and Graphical Statistics 33, 289-302,
doi:10.1080/10618600.2023.2213279, section 2.7 and figure 3. Merrill & Garland (2016), Single-pass
parallel prefix scan with decoupled look-back, NVIDIA technical report NVR-2016-002.
"""

import numpy as np

from riskset._types import AnyArray, Matrix, Rows
from riskset.kernels.cuda.launch import TILE_ROWS

__all__ = ["cox_fused", "efron_fused", "fg_fused"]

TOTAL = 2


def _tiles(n_rows: int) -> list[slice]:
    return [slice(a, min(a + TILE_ROWS, n_rows)) for a in range(0, n_rows, TILE_ROWS)]


def _scan(values: Matrix, starts: AnyArray) -> Matrix:
    """Sums up to each row, of its stratum."""
    out = np.empty_like(values)
    edges = [*np.flatnonzero(starts), starts.size]
    for a, b in zip(edges[:-1], edges[1:], strict=True):
        out[a:b] = np.cumsum(values[a:b], axis=0)
    return out


def _add_terms(tile: int, events: float, sums: Rows, slope: Rows, bend: Rows) -> None:
    d, s, q = sums
    slope[tile] += events * s / d
    bend[tile] += events * (q / d - (s / d) ** 2)


def cox_fused(
    r: Matrix,
    xr: Matrix,
    xxr: Matrix,
    events: Rows,
    starts: AnyArray,
    n_rows: int,
    n_tiles: int,
    ticket: AnyArray,
    status: AnyArray,
    own: AnyArray,
    total: AnyArray,
    slope: Rows,
    bend: Rows,
) -> None:
    """Breslow's method, on arrays (n, 1) and (n,).

    `starts` is 1 at the first row of each stratum. `ticket` (1,) and `status` (1, n_tiles) are 0
    before, `n_tiles` and 2 after. `own` and `total` are (1, n_tiles, 3), `slope` and `bend`
    (n_tiles,).
    """
    values = np.hstack([r, xr, xxr])
    at_risk = _scan(values, starts)
    slope[:], bend[:] = 0.0, 0.0
    for tile, rows in enumerate(_tiles(n_rows)):
        if not starts[rows].any():
            own[0, tile] = values[rows].sum(axis=0)
        total[0, tile] = at_risk[rows.stop - 1]
        for i in np.flatnonzero(events[rows]) + rows.start:
            _add_terms(tile, events[i], at_risk[i], slope, bend)
    ticket[0], status[:] = n_tiles, TOTAL


def efron_fused(
    r: Matrix,
    xr: Matrix,
    xxr: Matrix,
    events: Rows,
    starts: AnyArray,
    is_tied: AnyArray,
    n_tied: AnyArray,
    n_rows: int,
    n_tiles: int,
    ticket: AnyArray,
    status: AnyArray,
    own: AnyArray,
    total: AnyArray,
    slope: Rows,
    bend: Rows,
) -> None:
    """Efron's method: in the k-th of m terms the events of the group count 1 - k/m.

    `is_tied` (n,) marks rows with an event, and `n_tied` (n,) is m at the last row of a group with
    events. `own` and `total` (1, n_tiles, 7) are sums of rows that count in full, of events of a
    group that is not over, and for `own`, whether a group closed in the tile.
    """
    values = np.hstack([r, xr, xxr])
    slope[:], bend[:] = 0.0, 0.0
    all_rows, closes = _scan(values, starts), events > 0.0
    first = 0  # row of the open group
    open_tied = np.empty_like(values)
    for i in range(n_rows):
        if i == 0 or starts[i] or closes[i - 1]:
            first = i
        of_group = slice(first, i + 1)
        open_tied[i] = (values[of_group] * is_tied[of_group, None]).sum(axis=0)
    for tile, rows in enumerate(_tiles(n_rows)):
        last = rows.stop - 1
        left = np.zeros(3) if closes[last] else open_tied[last]
        total[0, tile] = [*(all_rows[last] - left), *left, 0.0]
        if not starts[rows].any():
            after = np.flatnonzero(closes[rows])
            begin = rows.start + (after[-1] + 1 if after.size else 0)
            mine = (values[begin : rows.stop] * is_tied[begin : rows.stop, None]).sum(axis=0)
            own[0, tile] = [*(values[rows].sum(axis=0) - mine), *mine, float(after.size > 0)]
        for i in np.flatnonzero(closes[rows]) + rows.start:
            m = n_tied[i]
            for k in range(m):
                sums = all_rows[i] - k / m * open_tied[i]
                _add_terms(tile, events[i] / m, sums, slope, bend)
    ticket[0], status[:] = n_tiles, TOTAL


def fg_fused(
    r: Matrix,
    xr: Matrix,
    xxr: Matrix,
    events: Rows,
    starts: AnyArray,
    later: Rows,
    curve: AnyArray,
    survival: Matrix,
    n_rows: int,
    n_tiles: int,
    n_curves: int,
    ticket: AnyArray,
    status: AnyArray,
    own: AnyArray,
    total: AnyArray,
    slope: Rows,
    bend: Rows,
) -> None:
    r"""Fine and Gray's model: sums up to a row meet those over rows after it with another event.

    .. math:: D_g = \sum_{i \le g} r_i + \sum_c G_c(t_g-) \sum_{i > g, c_i = c} r_i / G_c(t_i-)

    `later` (n,) is 1 / G(time-) of rows with a competing event and 0 for others, `curve` (n,) the
    censoring curve c of each row, and `survival` (n_curves, n) is G(t-) of each curve, read where
    `events` is not 0. `status`, `own` and `total` have a row for the sums up to each tile, and one
    for those of each curve from the end, whose first tile is the last. `slope` and `bend` are by
    ticket: the tile of that number and the one as far from the end, by the later ticket.
    """
    values, tiles = np.hstack([r, xr, xxr]), _tiles(n_rows)
    at_risk = _scan(values, starts)
    last = np.append(starts[1:], 1)[::-1]  # backwards a stratum starts with its last row
    chains = [(values, at_risk)]
    for c in range(n_curves):
        mine = values * (later * (curve == c))[:, None]
        after = _scan(mine[::-1], last)[::-1]
        chains.append((mine, after))
        at_risk = at_risk + survival[c][:, None] * (after - mine)
    for c, (mine, scanned) in enumerate(chains):
        for k in range(n_tiles):
            rows = tiles[k] if c == 0 else tiles[-1 - k]
            if k and not starts[rows].any():
                own[c, k] = mine[rows].sum(axis=0)
            end = rows.stop - 1 if c == 0 else rows.start
            total[c, k] = 0.0 if c and starts[end] else scanned[end]
    slope[:], bend[:] = 0.0, 0.0
    for tile, rows in enumerate(tiles):
        for i in np.flatnonzero(events[rows]) + rows.start:
            _add_terms(max(tile, n_tiles - 1 - tile), events[i], at_risk[i], slope, bend)
    ticket[0], status[:] = n_tiles, TOTAL
