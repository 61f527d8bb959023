"""Rows in blocks elsewhere: the exchanges that sums over all of them take; see `solve.blocks`."""

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._types import Features, Index, Matrix, Rows
from riskset.actors import Crew
from riskset.data.design import Design
from riskset.data.risk_order import BlockBoundary
from riskset.kernels.risk_sets_cpu import MAX_ETA_SPAN, MIN_TOTAL
from riskset.model.block import OFFSET, ZERO, BlockSample, EtaUpdate, StratumRanges
from riskset.model.cox import in_blocks
from riskset.model.curvature import affordable, raise_diagonal
from riskset.solve.block_order import backwards, forwards
from riskset.solve.optimality import MIN_DIFFERENCE_SHARE, MIN_VARIANCE_SHARE

__all__ = ["BlockAlong", "BlockEta", "BlockEvaluation", "BlockRows"]

NO_COLUMNS = np.zeros(0, dtype=np.int64)


class _BlockVector:
    """A vector of numbers for the rows, which every block keeps until this is forgotten."""

    def __init__(self, rows: "BlockRows", key: int) -> None:
        self._rows, self.key = rows, key
        self.span = np.nan  # until it is made

    def __del__(self) -> None:
        if self.key >= 0:
            self._rows.forgotten.append(self.key)


class BlockAlong(_BlockVector):
    """X v for a step v, made when it is first needed."""

    def __init__(self, rows: "BlockRows", key: int, step: Features, columns: Index) -> None:
        super().__init__(rows, key)
        self.step, self.columns = step, columns


class BlockEta(_BlockVector):
    """A linear predictor: another one and a share of X v, made when it is first evaluated."""

    def __init__(
        self, rows: "BlockRows", key: int, base: "BlockEta | None", share: float, along: BlockAlong
    ):
        super().__init__(rows, key)
        self.base, self.share, self.along = base, share, along


class BlockEvaluation:
    """The likelihood at a linear predictor; the rest stays with the blocks."""

    def __init__(self, eta: BlockEta, log_likelihood: float, carried: Sequence[Any]) -> None:
        self.eta, self.log_likelihood, self.carried = eta, log_likelihood, carried
        self.has_residuals = False


class BlockRows:
    """All rows, by block in risk order, as a `RowOperator`, and the exchanges that it takes.

    The blocks of the `crew` are joined, and `head` has the names and common units of the columns.
    The most rows of a block are `most_rows`; `was_too_wide` says whether a linear predictor could
    not be evaluated.
    """

    has_last_word = True
    sums = None

    def __init__(
        self, crew: Crew, head: Design, order: Sequence[int], links: Sequence[BlockBoundary]
    ) -> None:
        self.crew, self.head, self.order = crew, head, list(order)
        self.opens = [not link.continues for link in links]
        self.forgotten: list[int] = []
        self.was_too_wide = False
        self._keys = count()
        self._latest: BlockEvaluation | None = None
        found = self.call("events")
        self.has_start = [bool(one[0]) for one in found]
        self._ahead = backwards([one[1] for one in found], self.has_start)
        self._behind = forwards([one[2] for one in found], self.has_start)
        self.n_events = float(sum(one[3] for one in found))
        self.most_rows = max(one[4] for one in found)

    def call(self, method: str, *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """As `Crew.call`, in risk order."""
        if each is not None:
            given = dict(zip(self.order, each, strict=True))
            each = [given[b] for b in range(len(self.order))]
        found = self.crew.call(method, *common, each=each)
        return [found[b] for b in self.order]

    # ------------------------------------------------------------------------------- vectors

    def along(self, step: Features, columns: Index) -> BlockAlong:
        """X v, of some columns."""
        used = np.flatnonzero(step)
        return BlockAlong(self, next(self._keys), step[used], columns[used])

    def moved(self, eta: BlockEta | None, share: float, along: BlockAlong) -> BlockEta:
        """A linear predictor from another one; None: the offset."""
        return BlockEta(self, next(self._keys), eta, share, along)

    def extent(self, step: Features, columns: Index) -> float:
        """Range of X v over all rows."""
        found = np.array(self.call("extent", step, columns))
        return float(found[:, 1].max() - found[:, 0].min())

    def at(self, beta: Features) -> BlockEta:
        return self.moved(None, 1.0, self.along(beta, np.arange(beta.size)))

    def span(self, vector: BlockAlong | BlockEta) -> float:
        return float(vector.span)

    def home(self, eta: BlockEta) -> Rows:
        """See `RowOperator`: linear predictors stay where they are."""
        return np.zeros(0)

    def at_offset(self) -> BlockEta:
        """The offset."""
        return self.moved(None, 0.0, self.along(np.zeros(0), NO_COLUMNS))

    def at_rest(self) -> BlockEta:
        """0 for every row."""
        return BlockEta(self, ZERO, None, 0.0, self.along(np.zeros(0), NO_COLUMNS))

    # ------------------------------------------------------------------------------- passes

    def evaluate(self, eta: BlockEta) -> BlockEvaluation:
        """The likelihood; -inf where linear predictors span more than one exponent can hold."""
        base = OFFSET if eta.base is None else eta.base.key
        along, forget = eta.along, tuple(self.forgotten)
        del self.forgotten[: len(forget)]
        move = EtaUpdate(eta.key, base, eta.share, along.key, along.columns, along.step, forget)
        found = self.call("risks", move)
        along.span = max(high for _, high, _ in found) - min(low for low, _, _ in found)
        sums = [risk for _, _, risk in found]
        high = max(one.high for one in sums)
        eta.span = high - min(one.low for one in sums)
        eta.base = None  # its blocks have it now
        self._latest = None
        if eta.span >= MAX_ETA_SPAN:
            self.was_too_wide = True
            return BlockEvaluation(eta, -np.inf, [])
        units = [np.exp(one.high - high) for one in sums]
        ahead = forwards([s.after * u for s, u in zip(sums, units, strict=True)], self.has_start)
        behind = backwards([s.before * u for s, u in zip(sums, units, strict=True)], self.has_start)
        hazards = self.call("hazards", high, each=list(zip(ahead, behind, strict=True)))
        if min(one.least for one in hazards) < np.log(MIN_TOTAL):
            self.was_too_wide = True
            return BlockEvaluation(eta, -np.inf, [])
        after = backwards([one.before for one in hazards], self.has_start)
        before = forwards([one.after for one in hazards], self.has_start)
        carried = list(zip(after, before, strict=True))
        self._latest = BlockEvaluation(eta, float(sum(one.value for one in hazards)), carried)
        return self._latest

    def _again(self, now: BlockEvaluation) -> BlockEvaluation:
        """What the blocks evaluated last, made to be `now`."""
        return now if self._latest is now else self.evaluate(now.eta)

    def known_at_zero(self) -> None:
        """See `RowOperator`: blocks keep the residuals of one evaluation alone."""

    def intercept_drift(self, now: BlockEvaluation) -> None:
        """See `RowOperator`: `BlockMinimisation` makes the proof."""

    def cross(self, now: BlockEvaluation, columns: Index | None = None) -> Features:
        now = self._again(now)
        now.has_residuals = True
        return np.asarray(np.sum(self.call("gradient", columns, each=now.carried), axis=0))

    def refresh(self, eta: BlockEta) -> None:
        """Let the blocks have evaluated a linear predictor last, with residuals."""
        now = self._latest
        if now is None or now.eta is not eta:
            now = self.evaluate(eta)
        if not now.has_residuals:
            self.cross(now, NO_COLUMNS)

    def deviation(self, columns: Index, of: BlockEvaluation | None = None) -> Features:
        """Standard deviation of columns, weighted by case weights or by expected events."""
        if of is not None:
            self.refresh(of.eta)
        total, first, square = self._moments(of is not None, columns, None)
        mean, square = first / total, square / total
        variance = square - mean**2
        few = np.flatnonzero(variance < MIN_DIFFERENCE_SHARE * square)
        if few.size:
            # About the mean, and corrected for what that is off by.
            _, rest, exact = self._moments(of is not None, columns[few], mean[few])
            variance[few] = exact / total - (rest / total) ** 2
        seen = variance > MIN_VARIANCE_SHARE * square
        return np.asarray(np.sqrt(np.where(seen, variance, 0.0)))

    def second_moments(self, columns: Index) -> Features:
        """Sums of squares of columns over those expected to fail, where it was evaluated last."""
        return self._moments(True, columns, None)[2]

    def _moments(
        self, of_expected: bool, columns: Index, mean: Features | None
    ) -> tuple[float, Features, Features]:
        found = self.call("moments", of_expected, columns, mean)
        total, first, square = (sum(part) for part in zip(*found, strict=True))
        return float(total) or 1.0, np.asarray(first), np.asarray(square)

    # ------------------------------------------------------------------------------- columns

    def varying(self) -> NDArray[np.bool_]:
        """Columns (p,) that vary within some stratum, among rows at risk of an event."""
        found = self.call("varying", each=list(zip(self._ahead, self._behind, strict=True)))
        out = np.asarray(np.any(found, axis=0))
        suspects = np.flatnonzero(~out)
        if suspects.size:
            out[suspects] = self._largest(self.call("column_ranges", suspects)) > 0
        return out

    def range_of(self, weights: Features) -> float:
        """Largest range of a combination of columns (p,) within a stratum."""
        return float(self._largest(self.call("combination_range", weights))[0])

    def _largest(self, pieces: Sequence[StratumRanges]) -> Features:
        """Ranges within strata, those that lie in several blocks being put together."""
        out = np.asarray(np.max([one.largest for one in pieces], axis=0))
        low, high = pieces[0].low[0], pieces[0].high[0]
        for one, starts in zip(pieces, self.opens, strict=True):
            low = one.low[0] if starts else np.minimum(low, one.low[0])
            high = one.high[0] if starts else np.maximum(high, one.high[0])
            out = np.maximum(out, high - low)
            if one.low.shape[0] > 1:
                low, high = one.low[1], one.high[1]
        return out

    # ------------------------------------------------------------------------------- curvature

    def information(self, eta: BlockEta, columns: Index) -> Matrix:
        """Observed information, exact; see `CoxLoss.information`."""
        self.refresh(eta)
        out = in_blocks(self.most_rows, columns, self._information)
        return np.asarray((out + out.T) / 2)

    def _information(self, columns: Index) -> Matrix:
        found = self.call("risk_moments", columns)
        before = forwards([one[0] for one in found], self.has_start)
        after = backwards([one[1] for one in found], self.has_start)
        carried = list(zip(before, after, strict=True))
        return np.asarray(np.sum(self.call("information", columns, each=carried), axis=0))

    def sampled_information(
        self, eta: BlockEta, columns: Index, n_samples: int, rare: bool
    ) -> Matrix:
        """See `model.curvature.sampled_information`: the bins lie within blocks."""
        self.refresh(eta)
        n_samples = affordable(self.head, columns, n_samples)
        found = self.call("bin_hazards", max(1, n_samples // len(self.order)))
        mass = np.array([share for share, _, _ in found])
        edges = np.append(0, np.cumsum([head.shape[1] for _, head, _ in found]))

        def spread(part: Matrix, b: int) -> Matrix:
            out = np.zeros((part.shape[0], edges[-1]))
            out[:, edges[b] : edges[b + 1]] = part
            return out

        later = backwards([spread(one[1], b) for b, one in enumerate(found)], self.has_start)
        earlier = forwards([spread(one[2], b) for b, one in enumerate(found)], self.has_start)
        draws = np.where(mass > 0, np.ceil(n_samples * mass / mass.sum()), 0).astype(int).tolist()
        each = list(zip(later, earlier, edges[:-1].tolist(), draws, strict=True))
        parts = [one for one in self.call("sample", columns, each=each) if one is not None]
        out = _about_bins(parts, int(edges[-1]))
        if rare:
            first, square = (np.sum(x, axis=0) for x in zip(*(p[2:] for p in parts), strict=True))
            raise_diagonal(out, first, square, float(mass.sum()), n_samples)
        return out


def _about_bins(parts: Sequence[BlockSample], n_bins: int) -> Matrix:
    """Sum of squares about the mean of each bin, from the sums of all blocks."""
    q = parts[0].first.size
    squares, totals, size = np.zeros((q, q)), np.zeros((n_bins, q)), np.zeros(n_bins)
    for weight, sums, _, _ in parts:
        squares += weight * sums.squares
        totals[sums.bins] += weight * sums.totals
        size[sums.bins] += weight * sums.counts
    totals /= np.sqrt(np.where(size > 0, size, 1.0))[:, None]
    return np.asarray(squares - totals.T @ totals)
