r"""One coordinate of the partial likelihood, and a sweep over many, written as the formulas read.

The coordinate descent of Yang, Schuemie, Ji and Suchard takes, one coordinate after the other, a
Newton step from the exact first and second derivative. Both follow from

.. math::
    D_g = \sum_{i \in R_g} r_i, \qquad S_g = \sum_{i \in R_g} x_i r_i, \qquad
    Q_g = \sum_{i \in R_g} x_i^2 r_i, \qquad r_i = w_i e^{\eta_i - s},

the tuple that the paper scans. A column is given by the places of its entries in risk order and
their values. Here everything starts from the table of who is at risk when; `ccd_cpu` keeps sums of
hazards up to date, so that the derivatives of a column cost as much as it has entries.

Rows enter no risk set late and stand in one place; `solve.ccd` says what becomes of the others.

In Fine and Gray's model (``fg_*``) rows up to their time are scanned forwards, and rows with a
competing event, which stay at risk after it, backwards.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray, Features, Index, Matrix, RiskSets, Rows
from riskset.kernels.risk_sets_ref import _at_risk

__all__ = [
    "CompetingStay",
    "CoxState",
    "FineGrayState",
    "coordinate_step",
    "cox_fused",
    "cox_move",
    "cox_state",
    "cox_sweep",
    "fg_fused",
    "fg_move",
    "fg_state",
    "fg_sweep",
]


class CoxState(NamedTuple):
    r"""What the derivatives of every coordinate are made of; written to by a move.

    Attributes
    ----------
    r : (n,) float64
        :math:`w_i e^{\eta_i - s}` in risk order.
    own : (n,) int
        Group of each row; 32 bits in `ccd_cpu`, where every row costs a load.
    first, end : (G,) int64
        Groups of the stratum of each group.
    alive, tied : (G,) float64
        Sum of r over the group's own rows: without and with an event (Efron; 0 for Breslow).
    total : (G,) float64
        D.
    hazard : (G,) float64
        Sum of the increments of the hazard over the groups of the stratum from g on: what a row of
        group g is exposed to.
    hazard_tied : (G,) float64
        Efron: the same for a row with an event in g.
    square : (G,) float64
        Sum over the same groups, and over the events k of each in Efron's method, of N / D^2.
    square_shared, square_tied : (G,) float64
        Efron: sum over the events k = 0..m-1 of the group of N/m (k/m)^p / D_k^2, p = 1 and 2.
    """

    r: Rows
    own: AnyArray
    first: Index
    end: Index
    alive: NDArray[np.float64]
    tied: NDArray[np.float64]
    total: NDArray[np.float64]
    hazard: NDArray[np.float64]
    hazard_tied: NDArray[np.float64]
    square: NDArray[np.float64]
    square_shared: NDArray[np.float64]
    square_tied: NDArray[np.float64]


def coordinate_step(
    gradient: float, hessian: float, beta: float, l1: float, l2: float, width: float
) -> tuple[float, float]:
    r"""Step of one coefficient within its trust region, and the width of the next one.

    With :math:`u = g - \lambda_2 \beta` the slope towards larger :math:`\beta` is :math:`u -
    \lambda_1` to the right of 0 and :math:`u + \lambda_1` to its left. A coefficient at 0 moves
    only if it gains in one direction, and no step goes across 0:

    .. math::
        d = \mathrm{sgn}(\delta) \min(|\delta|, \Delta), \quad
        \delta = \frac{u \mp \lambda_1}{h + \lambda_2}, \qquad
        \Delta \leftarrow \max(2 |d|, \Delta / 2)

    with g and h the first derivative of the log likelihood and minus the second. A curvature h that
    rounding made negative leads to the border of the region.

    References
    ----------
    Genkin, Lewis & Madigan (2007), Technometrics 49, 291-304, doi:10.1198/004017007000000245.
    Wu & Lange (2008), Annals of Applied Statistics 2, 224-244, doi:10.1214/07-AOAS147.
    """
    slope = gradient - l2 * beta
    if beta > 0.0 or (beta == 0.0 and slope > l1):
        slope -= l1
    elif beta < 0.0 or (beta == 0.0 and slope < -l1):
        slope += l1
    else:
        slope = 0.0
    curvature = max(hessian, 0.0) + l2
    step = np.sign(slope) * width if abs(slope) >= curvature * width else slope / curvature
    if slope == 0.0:
        step = 0.0
    if l1 > 0.0 and beta * (beta + step) < 0.0:
        step = -beta
    return float(step), max(2.0 * abs(step), width / 2.0)


def _bounds(risk: RiskSets) -> tuple[Index, Index, Index]:
    stratum = np.cumsum(risk.starts_stratum)
    first = np.searchsorted(stratum, stratum, side="left")
    return risk.group, first, np.searchsorted(stratum, stratum, side="right")


def _terms(r: Rows, risk: RiskSets, efron: bool) -> list[tuple[int, float, Rows]]:
    """For each term of the likelihood its group, its weight, and the share of each row in it."""
    at_risk, own = _at_risk(risk), risk.group
    terms = []
    for g in range(risk.group_events.size):
        dead = (risk.event_weight > 0) & (own == g)
        m = int(risk.group_tied[g])
        for k in range(m if efron else min(m, 1)):
            share = np.where(dead & efron, (m - k) / m, 1.0) * at_risk[g]
            terms.append((g, risk.group_events[g] / (m if efron else 1), share))
    return terms


def cox_state(eta: Rows, shift: float, risk: RiskSets, efron: bool) -> CoxState:
    """The state at a linear predictor (n,) in the caller's order.

    `shift` is at least the largest eta, which is less than `risk_sets_cpu.MAX_ETA_SPAN` above the
    least.
    """
    n_groups = risk.group_events.size
    state = CoxState(
        risk.weight * np.exp(eta[risk.order] - shift),
        *_bounds(risk),
        *(np.zeros(n_groups) for _ in range(8)),
    )
    _sum_cox(state, risk, efron)
    return state


def _sum_cox(state: CoxState, risk: RiskSets, efron: bool) -> None:
    """Every sum of a state, from r."""
    r, own, n_groups = state.r, state.own, state.total.size
    is_tied = efron & (risk.event_weight > 0)
    state.alive[:] = np.bincount(own, r * ~is_tied, n_groups)
    state.tied[:] = np.bincount(own, r * is_tied, n_groups)
    state.total[:] = _at_risk(risk) @ r
    hazard, at_own, square, shared, tied = np.zeros((5, n_groups))
    for g, step, share in _terms(r, risk, efron):
        d, lost = share @ r, 1.0 - share[is_tied & (own == g)].min(initial=1.0)
        hazard[g] += step / d
        at_own[g] += step * (1.0 - lost) / d
        square[g] += step / d**2
        shared[g] += step * lost / d**2
        tied[g] += step * lost**2 / d**2
    state.square_shared[:], state.square_tied[:] = shared, tied
    for g in range(n_groups):
        end = state.end[g]
        state.hazard[g] = hazard[g:end].sum()
        state.hazard_tied[g] = efron * (hazard[g + 1 : end].sum() + at_own[g])
        state.square[g] = square[g:end].sum()


def cox_fused(
    place: AnyArray, value: Rows, state: CoxState, risk: RiskSets, efron: bool
) -> tuple[float, float]:
    r"""First derivative of the log likelihood in one coefficient, and minus the second.

    .. math::
        g = \sum_i x_i w_i d_i - \sum_g N_g \frac{S_g}{D_g}, \qquad
        h = \sum_g N_g \left( \frac{Q_g}{D_g} - \left( \frac{S_g}{D_g} \right)^2 \right)

    and for Efron's method the same over the events k of each group, in whose sums its own events
    count :math:`1 - k/m`. `place` (m,) are the entries of the column in ascending risk order; an
    empty `value` means that all are 1.

    Notes
    -----
    `ccd_cpu` sums by parts: with :math:`\Lambda` and A the sums of N / D and of N / D^2 over the
    groups from that of row i on, and P the sum of x r over the entries before it,

    .. math:: h = \sum_i x_i r_i \left( x_i \Lambda_i - (2 P_i + x_i r_i) A_i \right)

    O(m) for Breslow's method and Efron's.

    References
    ----------
    Suchard, Simpson, Zorych, Ryan & Madigan (2013), ACM Transactions on Modeling and Computer
    Simulation 23(1), 10, doi:10.1145/2414416.2414791. Yang, Schuemie, Ji & Suchard (2024), Journal
    of Computational and Graphical Statistics 33, 289-302, doi:10.1080/10618600.2023.2213279.
    """
    x = _column(place, value, state.r.size)
    gradient, hessian = float(risk.event_weight @ x), 0.0
    for _, step, share in _terms(state.r, risk, efron):
        p = share * state.r / (share @ state.r)
        gradient -= step * float(p @ x)
        hessian += step * float(p @ x**2 - (p @ x) ** 2)
    return gradient, hessian


def cox_move(
    place: AnyArray, value: Rows, step: float, state: CoxState, risk: RiskSets, efron: bool
) -> None:
    """Bring the state to where a coefficient has moved by `step`: only entries change their r.

    `ccd_cpu` takes O(m + groups of the strata with entries).
    """
    state.r[:] *= np.exp(step * _column(place, value, state.r.size))
    _sum_cox(state, risk, efron)


def cox_sweep(
    columns: Index,
    begin: Index,
    stop: Index,
    place: AnyArray,
    value: Rows,
    l1: Features,
    l2: Features,
    beta: Features,
    width: Features,
    curvature: Features,
    state: CoxState,
    risk: RiskSets,
    efron: bool,
) -> None:
    """One step of each of some columns in turn; brings coefficients, regions and state up to date.

    The entries of column ``columns[k]`` are ``begin[k]`` up to ``stop[k]`` of `place` and `value`,
    which are as in `cox_fused`. `curvature` (p,) takes the second derivatives.
    """
    for k, j in enumerate(columns):
        entries = slice(begin[k], stop[k])
        rows, x = place[entries], value[entries]
        gradient, curvature[j] = cox_fused(rows, x, state, risk, efron)
        step, width[j] = coordinate_step(gradient, curvature[j], beta[j], l1[j], l2[j], width[j])
        if step != 0.0:
            beta[j] += step
            cox_move(rows, x, step, state, risk, efron)


def _column(place: AnyArray, value: Rows, n_rows: int) -> Rows:
    x = np.zeros(n_rows)
    x[place] = value if value.size else 1.0
    return x


# ------------------------------------------------------------------------------------- Fine-Gray


class CompetingStay(NamedTuple):
    """Rows with a competing event, which stay in the risk sets of Fine and Gray's model.

    `later` (n,) is 1 / G(time-) of such rows in risk order and 0 for the others, `curve` (n,) their
    censoring curve, and `survival` (K, G) is G(t-) of each curve at the time of each group.
    """

    later: Rows
    curve: AnyArray
    survival: Matrix


class FineGrayState(NamedTuple):
    """As `CoxState`, for the subdistribution hazard.

    Attributes
    ----------
    alive : (G,) float64
        Sum of r over the group's own rows.
    leaving : (K, G) float64
        Sum of r / G(time-) over its rows with a competing event, by curve.
    total, hazard : (G,) float64
    hazard_after : (K, G) float64
        Sum of G(t-) N / D over the groups of the stratum before g, which are later in time.
    square : (G,) float64
        N / D^2 of the group itself.
    sums, sums_after : (G,), (K, G) float64
        Scratch, zero between calls.
    """

    r: Rows
    own: AnyArray
    first: Index
    end: Index
    alive: NDArray[np.float64]
    leaving: Matrix
    total: NDArray[np.float64]
    hazard: NDArray[np.float64]
    hazard_after: Matrix
    square: NDArray[np.float64]
    sums: NDArray[np.float64]
    sums_after: Matrix


def _risks(r: Rows, risk: RiskSets, stay: CompetingStay) -> Matrix:
    """What each row counts in each risk set (G, n)."""
    own, group = risk.group, np.arange(risk.group_events.size)[:, None]
    stratum = np.cumsum(risk.starts_stratum)
    after = (group < own) & (stratum[own] == stratum[:, None])
    weights = stay.survival[stay.curve].T * stay.later if len(stay.survival) else 0.0
    return np.asarray((_at_risk(risk) + after * weights) * r)


def fg_state(eta: Rows, shift: float, risk: RiskSets, stay: CompetingStay) -> FineGrayState:
    """The state at a linear predictor; see `cox_state`."""
    n_groups, n_curves = risk.group_events.size, len(stay.survival)
    alive, total, hazard, square, sums = np.zeros((5, n_groups))
    leaving, after, sums_after = np.zeros((3, n_curves, n_groups))
    state = FineGrayState(
        risk.weight * np.exp(eta[risk.order] - shift), *_bounds(risk), alive, leaving, total,
        hazard, after, square, sums, sums_after,
    )  # fmt: skip
    _sum_fg(state, risk, stay)
    return state


def _sum_fg(state: FineGrayState, risk: RiskSets, stay: CompetingStay) -> None:
    n_groups = state.total.size
    state.alive[:] = np.bincount(state.own, state.r, n_groups)
    state.total[:] = _risks(state.r, risk, stay).sum(axis=1)
    used = risk.group_events > 0
    increment = np.zeros(n_groups)
    increment[used] = risk.group_events[used] / state.total[used]
    state.square[:] = 0.0
    state.square[used] = increment[used] / state.total[used]
    for g in range(n_groups):
        state.hazard[g] = increment[g : state.end[g]].sum()
        for k, survival in enumerate(stay.survival):
            before = slice(state.first[g], g)
            state.hazard_after[k, g] = survival[before] @ increment[before]
            mine = (state.own == g) & (stay.curve == k)
            state.leaving[k, g] = (state.r * stay.later)[mine].sum()


def fg_fused(
    place: AnyArray, value: Rows, state: FineGrayState, risk: RiskSets, stay: CompetingStay
) -> tuple[float, float]:
    """Derivatives of Fine and Gray's likelihood in one coefficient; see `cox_fused`.

    The sums over a risk set are those over rows up to their time, scanned forwards, and
    :math:`G(t_g-)` times those of :math:`r_i / G(time_i-)` over earlier competing events, scanned
    backwards. `ccd_cpu` takes O(m + K groups of the strata with entries), K the number of curves.
    """
    x = _column(place, value, state.r.size)
    gradient, hessian = float(risk.event_weight @ x), 0.0
    for events, row in zip(risk.group_events, _risks(state.r, risk, stay), strict=True):
        if events > 0.0:
            p = row / row.sum()
            gradient -= events * float(p @ x)
            hessian += events * float(p @ x**2 - (p @ x) ** 2)
    return gradient, hessian


def fg_move(
    place: AnyArray,
    value: Rows,
    step: float,
    state: FineGrayState,
    risk: RiskSets,
    stay: CompetingStay,
) -> None:
    """See `cox_move`."""
    state.r[:] *= np.exp(step * _column(place, value, state.r.size))
    _sum_fg(state, risk, stay)


def fg_sweep(
    columns: Index,
    begin: Index,
    stop: Index,
    place: AnyArray,
    value: Rows,
    l1: Features,
    l2: Features,
    beta: Features,
    width: Features,
    curvature: Features,
    state: FineGrayState,
    risk: RiskSets,
    stay: CompetingStay,
) -> None:
    """See `cox_sweep`."""
    for k, j in enumerate(columns):
        entries = slice(begin[k], stop[k])
        rows, x = place[entries], value[entries]
        gradient, curvature[j] = fg_fused(rows, x, state, risk, stay)
        step, width[j] = coordinate_step(gradient, curvature[j], beta[j], l1[j], l2[j], width[j])
        if step != 0.0:
            beta[j] += step
            fg_move(rows, x, step, state, risk, stay)
