r"""Numbers of a table of characteristics: shares, means, quartiles and standardised differences.

With weights u that add to 1 in an arm, shares and means are :math:`\sum u x`, and standard
deviations :math:`\sqrt{\sum u (x - m)^2 / (1 - \sum u^2)}`, as those of `riskset.cohort.balance`.
Those of both arms together have the same weights, divided by the sum over both arms.

The quantile of a probability p is the smallest value x with :math:`F(x) \ge p`, where F is the
weighted distribution function; if :math:`F(x) = p`, it is the mean of x and the next larger value.
Without weights this is type 2 of Hyndman and Fan, the default of SAS and Stata.

The standardised difference of a category with shares :math:`p_1, p_0` of its levels in the arms is

.. math:: \sqrt{(p_1 - p_0)^T S^{-1} (p_1 - p_0)}

for all levels but one, where S is the mean of the covariance matrices of both arms,
:math:`(diag(p) - p p^T) / (1 - \sum u^2)`. With two levels it is the size of the usual one.

All of these are of the people whose value is known. Missing values are counted on a line of their
own, as a share of everybody.

References
----------
Hyndman and Fan (1996), The American Statistician 50, 361-365. Yang and Dalton (2012), SAS Global
Forum, paper 335, for categories.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._types import Features, Matrix, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, effective_size
from riskset.cohort.covariates.characteristics import Characteristic
from riskset.cohort.covariates.covariate_balance import Balance, Side
from riskset.data.design import Design
from riskset.results.balance_rows import JOINED
from riskset.results.column_groups import CharacteristicColumns
from riskset.results.rows import CharacteristicRow

__all__ = ["characteristic_lines", "quantiles"]

ARMS = ("target", "comparator")
OVERALL = "overall"
"""Both arms together."""
GROUPS = (*ARMS, OVERALL)
QUARTILES = (0.25, 0.5, 0.75)
SAME = 1e-12
"""A cumulative weight this close to a probability, relative to all weight, is equal to it."""
EMPTY = 1e-9
"""A share of people below which no level is left."""


def quantiles(x: Rows, weight: Rows, shares: Sequence[float]) -> Features:
    """Weighted quantiles of some values; NaN without weight.

    >>> quantiles(np.array([1.0, 2.0, 4.0, 8.0]), np.ones(4), (0.25, 0.5, 0.9))
    array([1.5, 3. , 8. ])
    """
    used = weight > 0
    if not used.any():
        return np.full(len(shares), np.nan)
    values, place = np.unique(x[used], return_inverse=True)
    below = np.cumsum(np.bincount(place, weights=weight[used]))
    total = below[-1]
    out = np.empty(len(shares))
    for k, share in enumerate(shares):
        at = int(np.searchsorted(below, share * total - SAME * total))
        is_at_step = abs(below[at] - share * total) <= SAME * total and at + 1 < values.size
        out[k] = (values[at] + values[at + 1]) / 2 if is_at_step else values[at]
    return out


@dataclass(frozen=True, eq=False)
class _Weights:
    """Weights of both arms on one side, and the balance of that side."""

    side: Side
    arms: tuple[Rows, Rows]
    is_weighted: bool

    @property
    def groups(self) -> tuple[Rows, Rows, Rows]:
        """Weights of both arms, and of all people."""
        return (*self.arms, self.arms[0] + self.arms[1])

    def counts(
        self, columns: CharacteristicColumns, counts: Sequence[float]
    ) -> CharacteristicColumns:
        """With the numbers of people, unless these have different weights."""
        if self.is_weighted:
            return columns
        known = [*counts, sum(counts)]
        made = {f"{name}_count": round(n) for name, n in zip(GROUPS, known, strict=True)}
        return replace(columns, **made)


@dataclass(frozen=True, eq=False)
class _Lines:
    """Makes the lines of characteristics of one design."""

    design: Design
    balance: Balance
    sides: tuple[_Weights, ...]

    def people(self) -> Iterator[CharacteristicRow]:
        """Numbers of people, and effective sample sizes if they have different weights."""
        counts = [[int(np.count_nonzero(w)) for w in one.groups] for one in self.sides]
        sides = [CharacteristicColumns(**_groups(some, "_count")) for some in counts]
        yield self._row("people", "", sides)
        if any(one.is_weighted for one in self.sides):
            sizes = [[effective_size(w) for w in one.groups] for one in self.sides]
            sides = [CharacteristicColumns(**_groups(some)) for some in sizes]
            yield self._row("effective", "", sides)

    def of(self, one: Characteristic) -> Iterator[CharacteristicRow]:
        """All lines of a characteristic."""
        (first, *_) = one.columns
        if one.kind == "category":
            measured = self._levels(one)
            smd = [self._category_smd(one, measured, k) for k in range(len(self.sides))]
            yield self._row("category", one.title, [CharacteristicColumns(smd=d) for d in smd])
            for columns, level, of_level in zip(one.of_levels, one.levels, measured, strict=True):
                sides = [replace(side, smd=None) for side in of_level]
                yield self._row("level", level, sides, *columns)
        elif one.kind == "share":
            (sides,) = self._levels(one)
            yield self._row("share", one.title, sides, first)
            if one.reference is not None:
                rest = [self._rest(one, side, s) for side, s in zip(sides, self.sides, strict=True)]
                yield self._row("share", one.reference, rest, first)
        else:
            yield self._row(one.statistic, one.title, self._numbers(one), first)
        if one.missing is not None:
            every = np.ones(self.design.n_rows, dtype=bool)
            sides = [replace(self._share(s, every, one.missing), smd=None) for s in self.sides]
            yield self._row("missing", "", sides, one.missing)

    def _row(
        self,
        kind: str,
        label: str,
        sides: Sequence[CharacteristicColumns],
        *columns: int,
    ) -> CharacteristicRow:
        keys = [str(self.design.keys[column]) for column in columns]
        names: dict[str, Any] = dict(zip(("before", "after"), sides, strict=False))
        if len(keys) > 1:
            names["joined"] = JOINED.join(keys)
        elif keys:
            names["covariate_id"] = keys[0]
        return CharacteristicRow(kind=kind, label=label, **names)

    def _share(
        self, of: _Weights, known: NDArray[np.bool_], *columns: int
    ) -> CharacteristicColumns:
        """Shares of ones among the known rows (n,), in any of the columns, of which one is 1."""
        of_columns = list(columns)
        shares = [float(getattr(of.side, f"mean_{arm}")[of_columns].sum()) for arm in ARMS]
        counts = [float(getattr(of.side, f"count_{arm}")[of_columns].sum()) for arm in ARMS]
        smd = float(of.side.smd[columns[0]]) if len(columns) == 1 else None
        target, comparator = (float(w[known].sum()) for w in of.arms)
        shares.append(_joined(shares, (target, comparator)))
        return of.counts(CharacteristicColumns(**_groups(shares), smd=smd), counts)

    def _rest(
        self, one: Characteristic, ones: CharacteristicColumns, of: _Weights
    ) -> CharacteristicColumns:
        """Those who have a 0."""
        known = self._known(one)
        shares = [max(1.0 - getattr(ones, group), 0.0) for group in GROUPS]
        counts = [
            float(np.count_nonzero(known & (w > 0))) - (getattr(ones, f"{arm}_count") or 0.0)
            for arm, w in zip(ARMS, of.arms, strict=True)
        ]
        return of.counts(CharacteristicColumns(**_groups(shares)), counts)

    def _known(self, one: Characteristic) -> NDArray[np.bool_]:
        """Rows (n,) in which the characteristic is known."""
        if one.missing is None:
            return np.ones(self.design.n_rows, dtype=bool)
        return np.asarray(self.design.to_dense(np.array([one.missing]))[:, 0] == 0)

    def _levels(self, one: Characteristic) -> list[list[CharacteristicColumns]]:
        """Shares of ones, or of each level of a category, on every side."""
        known = self._known(one)
        return [[self._share(of, known, *own) for of in self.sides] for own in one.of_levels]

    def _numbers(self, one: Characteristic) -> list[CharacteristicColumns]:
        """Means with standard deviations, or medians with quartiles, of the known numbers."""
        (column,) = one.columns
        known = self._known(one)
        x = self.design.to_dense(np.array([column]))
        out = []
        for of in self.sides:
            weights = [np.where(known, w, 0.0) for w in of.groups]
            smd = float(of.side.smd[column])
            if one.statistic == "mean":
                means = [float(getattr(of.side, f"mean_{arm}")[column]) for arm in ARMS]
                sds = [float(getattr(of.side, f"sd_{arm}")[column]) for arm in ARMS]
                mean, sd = _mean_and_sd(x[:, 0], weights[-1])
                made = _groups((*means, mean)) | _groups((*sds, sd), "_sd")
            else:
                made = {}
                for name, w in zip(GROUPS, weights, strict=True):
                    low, middle, high = quantiles(x[:, 0], w, QUARTILES).tolist()
                    made |= {name: middle, f"{name}_lower": low, f"{name}_upper": high}
            out.append(CharacteristicColumns(**made, smd=smd))
        return out

    def _category_smd(
        self, one: Characteristic, levels: Sequence[Sequence[CharacteristicColumns]], k: int
    ) -> float:
        # The side whose covariance divides the difference.
        spread = 0 if self.balance.sd == "before" else k
        known = self._known(one)
        p1, p0, q1, q0 = (
            np.array([getattr(sides[side], arm) for sides in levels])
            for side in (k, spread)
            for arm in ARMS
        )
        p1, p0 = _all_levels([p1, p0])
        q1, q0 = _all_levels([q1, q0])
        if p1.size != q1.size:  # people without any level on one side only
            rest = max(p1.size, q1.size)
            p1, p0, q1, q0 = (np.pad(p, (0, rest - p.size)) for p in (p1, p0, q1, q0))
        arms = [np.where(known, w, 0.0) for w in self.sides[spread].arms]
        both = (_covariance(q, w) for q, w in zip((q1, q0), arms, strict=True))
        return _mahalanobis(p1 - p0, sum(both) / 2)  # type: ignore[arg-type]


def _groups(values: Sequence[float], end: str = "") -> dict[str, Any]:
    """Values of both arms and of all people by the names of their columns."""
    return {f"{name}{end}": value for name, value in zip(GROUPS, values, strict=True)}


def _joined(shares: Sequence[float], totals: tuple[float, float]) -> float:
    """The share of both arms together; NaN without people."""
    known = [(p, total) for p, total in zip(shares, totals, strict=True) if total > 0]
    if not known:
        return float("nan")
    return sum(p * total for p, total in known) / sum(total for _, total in known)


def _mean_and_sd(x: Rows, weight: Rows) -> tuple[float, float]:
    """Weighted mean and standard deviation."""
    total = float(weight.sum())
    if total <= 0:
        return float("nan"), float("nan")
    u = weight / total
    mean = float(u @ x)
    rest = 1.0 - float(u @ u)
    spread = float(u @ (x - mean) ** 2)
    return mean, float(np.sqrt(spread / rest)) if rest > 0 else float("nan")


def _all_levels(shares: list[Features]) -> tuple[Features, Features]:
    """Shares of all levels in both arms, with one more level for people who have none of them."""
    rest = [max(1.0 - float(p.sum()), 0.0) for p in shares]
    if max(rest) > EMPTY:
        shares = [np.append(p, r) for p, r in zip(shares, rest, strict=True)]
    return shares[0], shares[1]


def _covariance(p: Features, weight: Rows) -> Matrix:
    u = weight / weight.sum() if weight.any() else weight
    with np.errstate(invalid="ignore", divide="ignore"):
        return (np.diag(p) - np.outer(p, p)) / (1.0 - float(u @ u))


def _mahalanobis(gap: Features, covariance: Matrix) -> float:
    """The size of a difference relative to a covariance; infinite where the latter is 0."""
    if np.isnan(gap).any() or not np.isfinite(covariance).all():
        return float("nan")
    gap = np.where(np.abs(gap) > SAME, gap, 0.0)
    has_spread: NDArray[np.bool_] = np.diag(covariance) > SAME
    if gap[~has_spread].any():
        return float("inf")
    # Without the last level, which follows from the others.
    gap, covariance = gap[has_spread][:-1], covariance[np.ix_(has_spread, has_spread)][:-1, :-1]
    if not gap.any():
        return 0.0
    solved = np.linalg.lstsq(covariance, gap, rcond=None)[0]
    return float(np.sqrt(gap @ solved))


def characteristic_lines(
    design: Design,
    adjustment: Adjustment,
    balance: Balance,
    chosen: Sequence[Characteristic],
) -> list[CharacteristicRow]:
    """All lines, numbered: people, then the characteristics that were chosen.

    There is no side after an adjustment that is none.
    """
    is_target = adjustment.population.is_target
    people = adjustment.population
    both = [(balance.before, people.sampling_weight, people.has_sampling_weight)]
    if adjustment.kind != "none":
        both.append((balance.after, adjustment.weight, adjustment.is_weighted))
    sides = tuple(
        _Weights(side, (np.where(is_target, w, 0.0), np.where(is_target, 0.0, w)), weighted)
        for side, w, weighted in both
    )
    lines = _Lines(design, balance, sides)
    rows = [replace(row, item=0) for row in lines.people()]
    for k, one in enumerate(chosen, start=1):
        rows += [replace(row, item=k, section=one.section) for row in lines.of(one)]
    return [_known(replace(row, number=k)) for k, row in enumerate(rows, start=1)]


def _known(row: CharacteristicRow) -> CharacteristicRow:
    """Without numbers that are not known."""
    unknown = {n: None for n, v in row.items() if isinstance(v, float) and np.isnan(v)}
    return row.changed(unknown) if unknown else row
