"""Test of proportional hazards: whether coefficients change with time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from riskset._errors import InputError, NotDefinedError, counted
from riskset._runtime import one_blas_thread
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.infer.residuals import (
    RiskSetPieces,
    column_blocks,
    pieces_at,
    schoenfeld_residuals,
)
from riskset.infer.scaled_residuals import ScaledSchoenfeldResiduals, scaled
from riskset.infer.subdistribution import SubdistributionPieces
from riskset.infer.variance import cluster_sums, generalized_inverse
from riskset.model.loss import Loss
from riskset.model.ordered_columns import centred_at_risk

__all__ = [
    "ProportionalityTest",
    "Transform",
    "proportionality_test",
    "scaled_schoenfeld_residuals",
    "transformed_times",
]

Transform = Literal["km", "rank", "identity", "log"]


@dataclass(frozen=True, eq=False, repr=False)
class ProportionalityTest:
    """Score tests that coefficients do not change with (transformed) time.

    Attributes
    ----------
    names : tuple of str
    transform : str
    statistic, p_value : (p,) float64
        Chi-square with one degree of freedom for each covariate; NaN where there is no information.
    global_statistic, global_p_value : float
        All covariates at once.
    global_df : int
    labels : tuple of str
        What plots call the covariates: their labels, or names.

    Notes
    -----
    `scaled_residuals` gives the residuals that `riskset.plot.schoenfeld` shows.
    """

    names: tuple[str, ...]
    transform: str
    statistic: Features
    p_value: Features
    global_statistic: float
    global_df: int
    global_p_value: float
    labels: tuple[str, ...] = ()
    _residuals: Callable[[], ScaledSchoenfeldResiduals] | None = field(default=None, repr=False)

    def scaled_residuals(self) -> ScaledSchoenfeldResiduals:
        """Compute the scaled Schoenfeld residuals, with the times as transformed for the test.

        Raises
        ------
        NotDefinedError
            If the test was pickled, because the data are not pickled with it.
        """
        if self._residuals is None:
            raise NotDefinedError(
                "a test of proportional hazards that was pickled has no data to compute residuals "
                "from.",
                hint="call `test_proportionality` of the fit again.",
            )
        return self._residuals()

    def __getstate__(self) -> dict[str, Any]:
        """Without the data of the residuals."""
        return self.__dict__ | {"_residuals": None}

    def __repr__(self) -> str:
        return (
            f"ProportionalityTest(transform={self.transform!r}, "
            f"{counted(len(self.names), 'covariate')}, "
            f"global chi-square {self.global_statistic:.4g} on {self.global_df:,} df, "
            f"p = {self.global_p_value:.4g})"
        )


def transformed_times(outcome: Outcome, transform: Transform = "km") -> NDArray[np.float64]:
    """g(t) at the time of each group (G,), in risk order; NaN for a group without events.

    ``"km"``: 1 minus the left-continuous Kaplan-Meier estimate of all rows together; ``"rank"``:
    rank of the time among all rows, ties averaged; ``"identity"``; ``"log"``. Rows of weight 0 are
    absent; weights and strata are not used, as in R's `cox.zph`. Only events of the cause of
    interest count in the Kaplan-Meier estimate, all other rows being censored.
    """
    if transform not in get_args(Transform):
        raise InputError.wrong_option("transform", transform, get_args(Transform))
    at = outcome.group_time
    present = outcome.weight > 0
    time = outcome.time[present]
    if transform == "identity":
        return at
    if transform == "log":
        if (at == 0).any():
            raise InputError(
                "`transform='log'` needs positive event times, but there are events at time 0.",
                hint="use `transform='km'` or 'rank'.",
            )
        return np.log(at)
    found = np.isfinite(at)
    out = np.full(at.size, np.nan)
    if transform == "rank":
        times, count = np.unique(time, return_counts=True)
        rank = np.cumsum(count) - (count - 1) / 2
        out[found] = rank[np.searchsorted(times, at[found])]
        return out
    times, events = np.unique(time[outcome.is_event[present]], return_counts=True)
    at_risk = time.size - np.searchsorted(np.sort(time), times, side="left")
    if outcome.entry is not None:
        entry = np.sort(outcome.entry[present])
        at_risk = at_risk - (time.size - np.searchsorted(entry, times, side="left"))
    survival = np.append(1.0, np.cumprod(1.0 - events / at_risk))
    out[found] = 1.0 - survival[np.searchsorted(times, at[found])]
    return out


@one_blas_thread
def proportionality_test(
    loss: Loss, design: Design, eta: Rows, transform: Transform = "km", *, robust: bool = False
) -> ProportionalityTest:
    r"""Score test of proportional hazards, as R's `cox.zph` (survival 3).

    In Fine and Gray's model, of proportional subdistribution hazards: the same test, with the risk
    sets and weights of that model.

    The model is extended by the products :math:`x_j \, g(t)`; their score at the estimate is

    .. math:: u_j = \sum_i w_i d_i \, g(t_i) \, (x_{ij} - \bar x_j(t_i))

    and its information, given the coefficients already fitted,

    .. math:: S = V_{gg} - V_{g0} V_{00}^{-1} V_{0g}, \qquad
              V_{ab} = \sum_t a(t) b(t) V(t)

    with V(t) the covariance of the covariates over the risk set. The statistics are :math:`u_j^2 /
    S_{jj}` and :math:`u' S^{-1} u`; they depend neither on an added constant nor on the scale of g,
    nor on the order of rows with equal times. From u is taken :math:`V_{g0} V_{00}^{-1} u_0`, where
    :math:`u_0` is the score of the covariates themselves: 0 at the estimate, and what makes a last
    step that was not taken harmless (Neyman's C(alpha)). With `robust`, S is replaced by
    :math:`\sum_c u_c u_c'`, with :math:`u_c` the contribution of the rows of cluster c (of each row
    without clusters) to u, for clusters and for weights that are not numbers of people. `eta` (n,)
    is that of an unpenalised fit, offset included.

    Notes
    -----
    O(n p^2) time, and memory for a few blocks of columns; for all of them if robust.

    References
    ----------
    Grambsch and Therneau (1994), Biometrika 81, 515-526, doi:10.1093/biomet/81.3.515.
    Neyman (1959), in Probability and Statistics (ed. Grenander), Wiley, 213-234.
    Therneau and Grambsch (2000), Modeling Survival Data, Springer, section 6.2.
    """
    outcome = loss.outcome
    g = transformed_times(outcome, transform)
    events = loss.risk.group_events
    g = np.where(events > 0, g, 0.0)
    # The answer depends neither on origin nor scale, but squares of times may be beyond numbers.
    g = g / (np.abs(g).max(initial=0.0) or 1.0)
    g = np.where(events > 0, g - np.average(g, weights=events), 0.0)
    extended = _Extended.at(loss, eta, g)
    scores, (v00, v0g, vgg), size = extended.score_and_information(design)
    base = generalized_inverse(v00, size[0])
    carried = v0g.T @ base.basis
    left = vgg - carried @ carried.T
    score = scores[1] - carried @ (base.basis.T @ scores[0])
    reference = np.maximum(vgg.diagonal(), size[2])
    known = left.diagonal() > 1e-11 * reference
    if robust:
        left = extended.spread_of_clusters(design, base.basis @ carried.T)
        reference = np.where(known, left.diagonal(), np.inf)
    remaining = generalized_inverse(left, reference)
    own = left.diagonal()
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(known, (score / np.sqrt(own)) ** 2, np.nan)
    total = remaining.form(score)
    return ProportionalityTest(
        design.names,
        transform,
        statistic,
        np.asarray(chdtrc(1, statistic)),
        total if remaining.rank else float("nan"),
        remaining.rank,
        float(chdtrc(remaining.rank, total)) if remaining.rank else float("nan"),
    )


@one_blas_thread
def scaled_schoenfeld_residuals(
    loss: Loss, design: Design, eta: Rows, coef: Features, transform: Transform = "km"
) -> ScaledSchoenfeldResiduals:
    """The scaled residuals of a fit, as R's `cox.zph` has them in ``y``.

    `eta` (n,) includes the offset, and `coef` (p,) is in the user's units. O(n p^2) time.
    """
    outcome, risk = loss.outcome, loss.risk
    found = schoenfeld_residuals(loss, design, eta)
    nothing = np.zeros(risk.group_events.size)
    _, (information, _, _), _ = _Extended.at(loss, eta, nothing).score_and_information(design)
    information = information * np.outer(design.scale, design.scale)
    group = np.empty(outcome.n_rows, dtype=np.int64)
    group[risk.order] = risk.group
    weight = outcome.weight[found.row]
    varies = _varies(design, outcome)
    values, variance = scaled(found.values, found.stratum, weight, information, varies)
    return ScaledSchoenfeldResiduals(
        names=design.names,
        transform=transform,
        row=found.row,
        time=found.time,
        transformed=transformed_times(outcome, transform)[group[found.row]],
        weight=weight,
        coef=coef,
        values=values + coef,
        variance=variance,
    )


def _varies(design: Design, outcome: Outcome) -> NDArray[np.bool_]:
    """Whether each covariate takes several values in each stratum (n_strata, p)."""
    rows = np.flatnonzero(outcome.weight > 0)
    rows = rows[np.argsort(outcome.stratum[rows], kind="stable")]
    present, first = np.unique(outcome.stratum[rows], return_index=True)
    varies = np.zeros((outcome.n_strata, design.n_features), dtype=bool)
    columns = np.arange(design.n_features)
    for block in column_blocks(design.n_rows, columns):
        stored = design.stored(columns[block])[rows]
        ends = (np.maximum.reduceat(stored, first), np.minimum.reduceat(stored, first))
        varies[present, block] = ends[0] > ends[1]
    return varies


@dataclass(frozen=True, eq=False)
class _Extended:
    """The model with time-dependent products, at one linear predictor.

    `expected` (n, 3), in the caller's order: sums over follow-up of hazard times 1, g, g^2, times
    the row's risk. `powers` (G, 3): 1, g, g^2.
    """

    pieces: RiskSetPieces | SubdistributionPieces
    powers: NDArray[np.float64]
    expected: NDArray[np.float64]

    @classmethod
    def at(cls, loss: Loss, eta: Rows, g: NDArray[np.float64]) -> "_Extended":
        pieces = pieces_at(loss, eta)
        powers = np.column_stack([np.ones_like(g), g, g**2])
        return cls(pieces, powers, pieces.expected_times(powers))

    def score_and_information(
        self, design: Design
    ) -> tuple[Matrix, tuple[Matrix, Matrix, Matrix], Matrix]:
        """Scores (u_0, u); V_00, V_0g and V_gg; and second moments (3, p); in stored units.

        The information inherits the rounding errors of the moments whose difference it is.
        """
        p = design.n_features
        columns = np.arange(p)
        score = np.zeros((2, p))
        size = np.zeros((3, p))
        v = np.zeros((3, p, p))
        blocks = list(column_blocks(design.n_rows, columns))
        for b, block in enumerate(blocks):
            left = self._columns(design, columns[block])
            score[:, block] = self._score(left)
            size[:, block] = self.expected.T @ left[0] ** 2
            for other in blocks[: b + 1]:
                right = left if other is block else self._columns(design, columns[other])
                for k in range(3):
                    part = self._covariance(left, right, k)
                    v[k, block, other] = part
                    v[k, other, block] = part.T
        return score, (v[0], v[1], v[2]), size

    def spread_of_clusters(self, design: Design, carried: Matrix) -> Matrix:
        """Sum over clusters of the outer products of their shares (p, p) of the score u.

        `carried` (p, p) is :math:`V_{00}^{-1} V_{0g}`.
        """
        loss = self.pieces.loss
        outcome = loss.outcome
        rows = np.empty((design.n_rows, design.n_features))
        plain = np.empty_like(rows)
        columns = np.arange(design.n_features)
        for block in column_blocks(design.n_rows, columns):
            stored = centred_at_risk(design.stored(columns[block]), outcome, loss.risk, loss.tails)
            rows[:, block] = self.pieces.score_residuals(stored, self.powers[:, 1])
            plain[:, block] = self.pieces.score_residuals(stored)
        shares = (rows - plain @ carried) * outcome.weight[:, None]
        shares = cluster_sums(shares, outcome.cluster)
        return np.asarray(shares.T @ shares)

    def _columns(self, design: Design, columns: Index) -> tuple[Matrix, Matrix, Matrix]:
        # Values of rows (caller's order), of risk sets, and by how much tied rows differ; all
        # minus one number per column and stratum: the answer does not see it, but its digits do.
        loss = self.pieces.loss
        stored = centred_at_risk(design.stored(columns), loss.outcome, loss.risk, loss.tails)
        expected = self.expected[:, 0]
        stored -= expected @ stored / expected.sum()
        mean, gap = self.pieces.event_means(stored)
        return stored, mean, gap

    def _score(self, block: tuple[Matrix, Matrix, Matrix]) -> Matrix:
        stored, mean, _ = block
        risk = self.pieces.loss.risk
        at = np.flatnonzero(risk.event_weight > 0)
        group = np.searchsorted(risk.group_ptr, at, side="right") - 1
        weight = risk.event_weight[at] * self.powers[group, :2].T
        return np.asarray(weight @ (stored[risk.order[at]] - mean[group]))

    def _covariance(
        self,
        left: tuple[Matrix, Matrix, Matrix],
        right: tuple[Matrix, Matrix, Matrix],
        power: int,
    ) -> Matrix:
        # Over the steps of a tied group the risk-set mean is rest + q gap; the mean over steps of
        # its outer product is that of the mean q, plus the variance of q times that of the gap.
        weight = self.powers[:, power] * self.pieces.loss.risk.group_events
        spread = weight * self.pieces.spread
        rows = left[0].T @ (self.expected[:, power, None] * right[0])
        means = left[1].T @ (weight[:, None] * right[1])
        return np.asarray(rows - means - left[2].T @ (spread[:, None] * right[2]))
