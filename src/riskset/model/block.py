"""The rows of one block, where they live: what `solve.blocks` asks of each of them.

Only short arrays go in and come out: sums over the rows of the block, and what hangs over its ends.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime, one_blas_thread
from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset._version import __version__
from riskset.data.aligned_design import AlignedDesign, aligned
from riskset.data.checks import are_counts
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.data.risk_order import BlockBoundary, joined
from riskset.kernels.subdistribution_cpu import RowsBefore, nested_information
from riskset.model.block_scan import BlockScan, HazardSums, RiskSums, StratumEnds
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import CoxLoss
from riskset.model.curvature import (
    BinSums,
    ExposedRows,
    bin_sums,
    bins,
    draw,
)
from riskset.model.design_sums import HostSums
from riskset.model.finegray import FineGrayLoss
from riskset.model.loss import Loss
from riskset.model.risk_set_components import varying
from riskset.model.risk_set_limit import ranges_after, ranges_at_risk

__all__ = [
    "OFFSET",
    "ZERO",
    "BlockBorder",
    "BlockFacts",
    "BlockSample",
    "BlockSource",
    "CensoringTotals",
    "EtaUpdate",
    "RowBlock",
    "StratumRanges",
]


OFFSET, ZERO = -1, -2
"""Keys of linear predictors that are always there."""


class BlockSource(Protocol):
    """Covariates and outcomes as they were read."""

    design: Design

    def outcome(self, cause: int | None) -> Outcome:
        """Times, events, ... of a cause."""


class BlockFacts(NamedTuple):
    """A block before it is joined to the others.

    `version` is that of riskset where the block is, and `head` the design without entries. Each of
    the k `strata` has its latest (`first`) and earliest time (`last`), and whether a row of
    positive weight has an event in it. `n_absent` counts rows of weight 0, `n_near_ties` times that
    are nearly tied; `has_counts` says whether all weights are whole numbers.
    """

    version: str
    head: Design
    strata: AnyArray
    first: Rows
    last: Rows
    has_events: NDArray[np.bool_]
    n_rows: int
    n_absent: int
    n_events: int
    n_near_ties: int
    has_counts: bool
    has_entry: bool
    has_cluster: bool


class BlockBorder(NamedTuple):
    """First and last time of a block in risk order, and the weight of the events at the last.

    `is_one` says that it has no other.
    """

    first: float
    last: float
    last_events: float
    is_one: bool


class CensoringTotals(NamedTuple):
    """Distinct times, and the weights that are censored at each and that leave otherwise."""

    time: Rows
    censored: Rows
    others: Rows


class EtaUpdate(NamedTuple):
    """How a linear predictor is made: another one and a share of X v. Numbers are kept by key."""

    key: int
    base: int
    share: float
    along: int
    columns: Index
    step: Features
    forget: tuple[int, ...]


class StratumRanges(NamedTuple):
    """Ranges of columns within strata: the largest (q,), and the ends of first and last stratum.

    `low` and `high` have one row if the block has one stratum, else two.
    """

    largest: Features
    low: Matrix
    high: Matrix


class BlockSample(NamedTuple):
    """Sums over a sample of a block, each row standing for `weight`; and exact sums of columns."""

    weight: float
    sums: BinSums
    first: Features
    square: Features


class RowBlock:
    """The rows of one block and what was made of them last.

    Methods are called in the order in which they stand here; those from `risks` on any number of
    times.
    """

    def __init__(self, source: BlockSource, n_threads: int) -> None:
        self._source, self._design = source, source.design
        self._runtime = Runtime(n_threads)
        self._vectors: dict[int, Rows] = {}
        self._key: int | None = None

    # ------------------------------------------------------------------------------- joining

    def columns(self) -> tuple[tuple[str, ...], tuple[int | str, ...]]:
        """Names and keys of the columns as they were read."""
        return self._source.design.names, self._source.design.keys

    def align(self, names: tuple[str, ...], keys: tuple[int | str, ...]) -> None:
        """Take these columns in this order, those that are absent being 0."""
        self._design = aligned(self._source.design, names, keys)

    def facts(self, cause: int | None) -> BlockFacts:
        """What the block is."""
        self._outcome = outcome = self._source.outcome(cause)
        first = np.full(outcome.n_strata, -np.inf)
        last = np.full(outcome.n_strata, np.inf)
        np.maximum.at(first, outcome.stratum, outcome.time)
        np.minimum.at(last, outcome.stratum, outcome.time)
        weight, design = outcome.weight, self._design
        known = (design.n_rows, design.names, design.keys, design.center, design.scale)
        head = Design(*known, (), design.factors)
        head.__dict__["is_binary"] = design.is_binary
        return BlockFacts(
            __version__,
            head,
            outcome.strata,
            first,
            last,
            outcome.has_events,
            outcome.n_rows,
            int(np.count_nonzero(weight == 0)),
            outcome.n_events,
            outcome.n_near_ties,
            bool(are_counts(weight).all()),
            outcome.entry is not None,
            outcome.cluster is not None,
        )

    def arrange(self, ends: tuple[int | None, int | None]) -> BlockBorder:
        """Put a stratum in front of all others, and one behind them."""
        (first, last), outcome = ends, self._outcome
        place = np.arange(outcome.n_strata, dtype=np.float64)
        if last is not None:
            place[last] = np.inf
        if first is not None:
            place[first] = -np.inf
        order = np.argsort(place, kind="stable")
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = np.arange(order.size)
        self._outcome = outcome = replace(
            outcome, stratum=rank[outcome.stratum], strata=outcome.strata[order]
        )
        rows = outcome.risk.order
        time, stratum = outcome.time[rows], outcome.stratum[rows]
        event = outcome.risk.event_weight
        is_first = (time == time[0]) & (stratum == stratum[0])
        is_last = (time == time[-1]) & (stratum == stratum[-1])
        self._n_first = int(np.count_nonzero(is_first))
        return BlockBorder(
            float(time[0]),
            float(time[-1]),
            float(event[is_last].sum()),
            bool(is_first[-1]),
        )

    def times(self, counts_weights: bool) -> CensoringTotals:
        """For the distribution of censoring."""
        outcome = self._outcome
        weight = outcome.weight
        weight = weight if counts_weights else (weight > 0).astype(np.float64)
        time, self._at = np.unique(outcome.time, return_inverse=True)
        is_censored = outcome.event == 0
        return CensoringTotals(
            time,
            np.bincount(self._at, np.where(is_censored, weight, 0.0), time.size).astype(np.float64),
            np.bincount(self._at, np.where(is_censored, 0.0, weight), time.size).astype(np.float64),
        )

    def join(self, own: tuple[BlockBoundary, Rows | None], head: Design, least: float) -> None:
        """Take the common units, and G(t-) at each distinct time; `least` stands for 0 of it."""
        link, survival = own
        outcome = replace(self._outcome)
        outcome.__dict__["risk"] = risk = joined(self._outcome.risk, self._n_first, link)
        self._ends = StratumEnds.of(risk, link.continues)
        self._columns = AlignedDesign.of(self._design, head, self._runtime)
        self._vectors = {ZERO: np.zeros(outcome.n_rows), OFFSET: outcome.offset}
        self._key = None
        if survival is None:
            self._loss: Loss = CoxLoss(outcome, "breslow", self._runtime)
            return
        at_events = np.zeros((1, risk.group_events.size))
        used = risk.group_events > 0
        last = risk.order[risk.group_ptr[1:] - 1]
        found = survival[self._at[last[used]]]
        at_events[0, used] = np.where(found > 0, found, least)
        group = np.zeros(outcome.n_rows, dtype=np.int64)
        censoring = CensoringDistribution(group, survival[self._at], at_events)
        self._loss = FineGrayLoss(outcome, censoring, self._runtime)

    def events(self) -> tuple[bool, Features, Features, float, int]:
        """Whether a stratum begins; events for who is before, and in tails after; of all; rows."""
        events = self._loss.risk.group_events
        ahead = np.array([events[: self._ends.head].sum()])
        behind = [(events * (t.survival > 0))[self._ends.end :].sum() for t in self._loss.tails]
        outcome = self._loss.outcome
        return (
            self._ends.has_start, ahead, np.array(behind), outcome.sum_events, outcome.n_rows
        )  # fmt: skip

    def varying(self, carried: tuple[Features, Features]) -> NDArray[np.bool_]:
        """Columns that vary among rows of a stratum that are ever at risk of an event.

        `carried` is what `events` of the blocks after and before add up to.
        """
        ahead, behind = carried
        risk, n_rows = self._loss.risk, self._loss.outcome.n_rows
        used = np.zeros(n_rows, dtype=bool)
        parts = [(risk, ranges_at_risk(risk), risk.group_events, ahead[0], self._ends.of_end(risk))]
        parts += [
            (t.sets, ranges_after(t.sets), risk.group_events * (t.survival > 0), more,
             self._ends.of_head(t.sets))
            for t, more in zip(self._loss.tails, behind, strict=True)
        ]  # fmt: skip
        for sets, (own, end), events, more, open_rows in parts:
            before = np.append(0.0, np.cumsum(events > 0))
            sees = before[end] > before[own]
            if more > 0:
                sees[open_rows] = True
            used[sets.order[sees & (sets.weight > 0)]] = True
        self._used = np.flatnonzero(used)
        self._stratum = self._loss.outcome.stratum[self._used]
        return varying(self._design, self._used, self._stratum, self._runtime)

    def column_ranges(self, columns: Index) -> StratumRanges:
        """Ranges of columns."""
        return self._pieces(self._columns.stored(columns, self._used))

    def combination_range(self, weights: Features) -> StratumRanges:
        """Range of a combination of columns (p,)."""
        return self._pieces(self._columns.product(weights)[self._used, None])

    def _pieces(self, x: Matrix) -> StratumRanges:
        n_strata = self._loss.outcome.n_strata
        low = np.full((n_strata, x.shape[1]), np.inf)
        np.minimum.at(low, self._stratum, x)
        high = np.full((n_strata, x.shape[1]), -np.inf)
        np.maximum.at(high, self._stratum, x)
        ends = [0] if n_strata == 1 else [0, n_strata - 1]
        return StratumRanges((high - low).max(axis=0), low[ends], high[ends])

    def moments(
        self, of_expected: bool, columns: Index, mean: Features | None
    ) -> tuple[float, Features, Features]:
        """Sums of weights or of expected events, and of columns and their squares with these.

        With a `mean`, of distances from it, one column after the other.
        """
        w = self._scan.by_row if of_expected else self._loss.outcome.weight
        if mean is None:
            first = self._columns.cross(w, columns)
            return float(w.sum()), first, self._columns.cross(w, columns, power=2)
        out = np.empty((2, columns.size))
        for k in range(columns.size):
            z = self._columns.stored(columns[k : k + 1])[:, 0] - mean[k]
            out[:, k] = w @ z, w @ z**2
        return float(w.sum()), out[0], out[1]

    def extent(self, step: Features, columns: Index) -> tuple[float, float]:
        """Range of X v over the rows."""
        x = self._columns.product(step, columns)
        return float(x.min()), float(x.max())

    # ------------------------------------------------------------------------------- a pass

    def risks(self, move: EtaUpdate) -> tuple[float, float, RiskSums]:
        """Make a linear predictor and begin to evaluate it; the range of X v, and sums."""
        for key in move.forget:
            self._vectors.pop(key, None)
        if move.along not in self._vectors:
            self._vectors[move.along] = self._columns.product(move.step, move.columns)
        along = self._vectors[move.along]
        if move.key not in self._vectors:
            self._vectors[move.key] = self._vectors[move.base] + move.share * along
        self._scan = BlockScan(self._loss, self._ends, self._vectors[move.key])
        return float(along.min()), float(along.max()), self._scan.risks()

    def hazards(self, carried: tuple[Features, Features], shift: float) -> HazardSums:
        """Go on with what other blocks hand on; see `BlockScan.hazards`."""
        return self._scan.hazards(shift, *carried)

    def gradient(self, carried: tuple[Features, Features], columns: Index | None) -> Features:
        """Finish it, and sum over columns; see `BlockScan.residuals`."""
        if self._scan.residual is None:
            self._scan.residuals(*carried)
        assert self._scan.residual is not None
        return self._columns.cross(self._scan.residual, columns)

    # ------------------------------------------------------------------------------- curvature

    def risk_moments(self, columns: Index) -> tuple[Matrix, Matrix]:
        """Sums of r and r z for the blocks after (1, 1 + q), of u and u z for those before."""
        scan, ends = self._scan, self._ends

        def of(sets_order: Index, part: slice, r: Rows) -> Features:
            w = np.zeros(scan.eta.size)
            w[sets_order[part]] = r[part]
            return np.append(w.sum(), self._columns.cross(w, columns))

        risk = scan.risk
        after = of(risk.order, ends.of_end(risk), scan.r)[None]
        before = [
            of(t.sets.order, ends.of_head(t.sets), u)
            for t, u in zip(scan.tails, scan.tail_r, strict=True)
        ]
        return after, np.array(before).reshape(len(before), 1 + columns.size)

    @one_blas_thread
    def information(self, carried: tuple[Matrix, Matrix], columns: Index) -> Matrix:
        """The block's part of the observed information, exact."""
        scan = self._scan
        ahead, behind = carried
        if scan.ends.head == 0:  # the end of the block before is of another stratum
            ahead = np.zeros_like(ahead)
        before = []
        for total, *sums in np.concatenate([ahead, behind]):
            known = total > 0
            mean = np.array(sums) / total if known else np.zeros(columns.size)
            before.append(RowsBefore(mean, np.log(total) + scan.shift if known else -np.inf))
        z = self._columns.stored(columns)
        return nested_information(scan.eta, scan.risk, scan.tails, z, scan.as_pass(), before)

    def bin_hazards(self, n_samples: int) -> tuple[float, Matrix, Matrix]:
        """Expected events, and hazards of bins of groups as other blocks' rows are exposed to them.

        Those of the head (1, bins) for the blocks before, of the end, times G, (K, bins) for those
        after.
        """
        scan, ends = self._scan, self._ends
        risk = scan.risk
        share = scan.expected.sum() + sum(float(e.sum()) for e in scan.tail_expected)
        n_groups = risk.group_events.size
        self._bin = np.zeros(n_groups, dtype=np.int64)
        if risk.group_events.any():
            edges = bins(risk, max(1, n_samples))
            self._bin = np.searchsorted(edges, np.arange(n_groups), side="right")
        n_bins = int(self._bin[-1]) + 1
        head = np.bincount(self._bin[: ends.head], scan.hazard[: ends.head], n_bins)
        end = [
            np.bincount(self._bin[ends.end :], (t.survival * scan.hazard)[ends.end :], n_bins)
            for t in scan.tails
        ]
        ends_of = np.array(end, dtype=np.float64).reshape(len(end), n_bins)
        return float(share), head[None].astype(np.float64), ends_of

    @one_blas_thread
    def sample(
        self, carried: tuple[Matrix, Matrix, int, int], columns: Index
    ) -> BlockSample | None:
        """Draw rows and bins of groups that they are at risk in; None if there is nothing to draw.

        `carried` are hazards of all bins in blocks after (1, bins) and before (K, bins), the number
        of the block's first bin, and how many to draw.
        """
        later, earlier, first_bin, n_samples = carried
        scan, ends, n_bins = self._scan, self._ends, later.shape[1]
        if n_samples == 0:
            return None
        by_row = scan.by_row
        n_groups = scan.hazard.size
        bin_of = np.concatenate([np.arange(n_bins), first_bin + self._bin, np.arange(n_bins)])
        none = np.zeros(n_bins)
        own, end = (x + n_bins for x in ranges_at_risk(scan.risk))
        end[ends.of_end(scan.risk)] = n_bins + n_groups + n_bins
        hazard = np.concatenate([none, scan.hazard, later[0]])
        parts = [ExposedRows(scan.risk, _picking(own, end), scan.expected, hazard)]
        for k, tail in enumerate(scan.tails):
            own, end = (x + n_bins for x in ranges_after(tail.sets))
            own[ends.of_head(tail.sets)] = 0
            hazard = np.concatenate([earlier[k], tail.survival * scan.hazard, none])
            ranges = _picking(own, end)
            parts.append(ExposedRows(tail.sets, ranges, scan.tail_expected[k], hazard))
        row, group = draw([part for part in parts if part.expected.any()], n_samples)
        found = bin_sums(HostSums(self._design, self._runtime), columns, row, bin_of[group])
        totals, squares = self._columns.sums(columns, found.counts, found.totals, found.squares)
        return BlockSample(
            float(by_row.sum()) / n_samples,
            found._replace(totals=totals, squares=squares),
            self._columns.cross(by_row, columns),
            self._columns.cross(by_row, columns, power=2),
        )

    def baseline(self) -> tuple[AnyArray, Index, Rows, Rows]:
        """Labels of the strata; stratum, time and log hazard at 0 of each group with events."""
        risk, outcome = self._scan.risk, self._loss.outcome
        used = np.flatnonzero(risk.group_events > 0)
        last = risk.order[risk.group_ptr[used + 1] - 1]
        log_hazard = np.log(self._scan.hazard[used]) - self._scan.shift
        return outcome.strata, outcome.stratum[last], outcome.time[last], log_hazard


def _picking(own: Index, end: Index) -> Callable[[Index], tuple[Index, Index]]:
    """The ranges of some rows out of those of all."""
    return lambda rows: (own[rows], end[rows])
