"""A cheap model of the curvature of the partial likelihood, for the steps of a Newton method.

The observed information is a sum over risk sets of the covariance of the covariates under the
risk-set distribution. Here risk sets are put in a few bins and a bin's covariance is taken over a
sample of its (row, group) pairs, about the bin's own mean. Every term is a covariance, so the model
is positive semidefinite whatever the sample, and spread within a bin only adds curvature: steps are
rather too short than too long. The gradient is exact, so only speed depends on any of this.

With too many columns for a matrix, `model.curvature_product` applies the curvature to vectors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import Features, Index, Matrix, RiskSets, Rows
from riskset.data.column_storage import BinaryColumns
from riskset.data.design import Design
from riskset.kernels import gram_cpu as kernels
from riskset.kernels.risk_sets_cpu import MAX_ETA_SPAN
from riskset.model.cox import Evaluation
from riskset.model.design_sums import DesignSums, HostSums
from riskset.model.loss import Loss, within_reach
from riskset.model.risk_set_limit import ranges_after, ranges_at_risk

__all__ = [
    "BinSums",
    "ExposedRows",
    "affordable",
    "bin_sums",
    "bins",
    "draw",
    "raise_diagonal",
    "ranges_after",
    "ranges_at_risk",
    "sampled_information",
]

N_BINS = 32
MIN_BIN_SAMPLES = 64
MIN_SAMPLED_ENTRIES = 200
"""Columns expected in fewer samples than this get their exact diagonal."""
MAX_DENSE_WORK = 1e10
"""Most multiplications for the sums of squares of columns with values."""


def sampled_information(
    loss: Loss,
    design: Design,
    eta: Rows,
    columns: Index,
    n_samples: int,
    *,
    raise_rare: bool = True,
    sums: DesignSums | None = None,
    now: Evaluation | None = None,
) -> Matrix:
    """Positive semidefinite model of `Loss.information`, from a sample of rows.

    About 50 rows for each column or more should be drawn. `raise_rare` gives columns that are too
    rare for the sample a safe diagonal; not for judging collinearity. `sums` reads the design, by
    default the host. `now` is the likelihood at `eta`, if it is known.

    Notes
    -----
    O(non-zeros of the columns + n_samples q^2 / 64) for binary columns. Fixed points of
    low-discrepancy sequences take the place of random numbers: same input, same bits.
    """
    if loss.approximation is not loss:
        loss, now = loss.approximation, None
    risk, sums = loss.risk, sums or HostSums(design, loss.runtime)
    # Beyond MAX_ETA_SPAN below the others a row weighs nothing in the model, and exp is safe.
    near = within_reach(loss, eta, 0.9 * MAX_ETA_SPAN)
    if now is None or near is not eta:
        eta, now = near, loss.evaluate(near)
    n_samples = affordable(design, columns, n_samples)
    row, group, mass = _draw(loss, now, n_samples)
    if np.count_nonzero(risk.starts_stratum) > N_BINS and not loss.tails:
        out = _pairs(loss, sums, eta, columns, row, group)
    else:
        out = _binned(loss, sums, columns, row, group)
    out *= mass / n_samples
    if raise_rare:
        first = sums.cross(now.expected, columns)
        square = first.copy()  # of binary columns
        others = np.flatnonzero(~design.is_binary[columns])
        square[others] = sums.cross(now.expected, columns[others], power=2)
        raise_diagonal(out, first, square, float(now.expected.sum()), n_samples)
    return out


def affordable(design: Design, columns: Index, n_samples: int) -> int:
    """Fewer samples where columns with values would make the sums of squares dear."""
    q = int(np.count_nonzero(~design.is_binary[columns]))
    return n_samples if q == 0 else int(np.clip(MAX_DENSE_WORK / q**2, 5_000, n_samples))


def _draw(loss: Loss, now: Evaluation, n_samples: int) -> tuple[Index, Index, float]:
    """Rows, in the caller's order, and groups of a sample of who is at risk when.

    And what the sample stands for: the events, of a logistic regression their variance.
    """
    risk = loss.risk
    hazard = np.exp(now.log_hazard - now.log_hazard.max())
    at_risk = partial(ranges_at_risk, risk)
    parts = [ExposedRows(risk, at_risk, now.expected_in_risk_order, hazard)]
    parts += [
        ExposedRows(tail.sets, partial(ranges_after, tail.sets), expected, tail.survival * hazard)
        for tail, expected in zip(now.tails, now.expected_tail, strict=True)
    ]
    total = sum(float(part.expected.sum()) for part in parts)
    return *draw(parts, n_samples), total


class ExposedRows(NamedTuple):
    """Rows, the groups [own, end) that each is at risk in, and what it is expected to fail in them.

    `ranges` gives the groups of some rows, by their places in `sets`; `hazard` is that of each
    group, in any unit.
    """

    sets: RiskSets
    ranges: Callable[[Index], tuple[Index, Index]]
    expected: Rows
    hazard: NDArray[np.float64]


def draw(parts: Sequence[ExposedRows], n_samples: int) -> tuple[Index, Index]:
    """Rows, in the caller's order, and groups, with the chance that the row is who fails there."""
    rows, groups = [], []
    left, mass = n_samples, sum(float(part.expected.sum()) for part in parts)
    for sets, ranges, expected, hazard in parts:
        share = float(expected.sum())
        count = left if mass <= share else round(left * share / mass)
        left, mass = left - count, mass - share
        if count:
            cumulative = np.append(0.0, np.cumsum(hazard))
            row = kernels.draw_rows(expected, count)
            groups.append(kernels.draw_groups(*ranges(row), cumulative))
            rows.append(sets.order[row])
    return np.concatenate(rows), np.concatenate(groups)


def _binned(loss: Loss, sums: DesignSums, columns: Index, row: Index, group: Index) -> Matrix:
    """Sum of squares about the mean of each bin of risk sets."""
    bin_of = np.searchsorted(bins(loss.risk, row.size), group, side="right")
    found = bin_sums(sums, columns, row, bin_of)
    totals = found.totals * (1.0 / np.sqrt(found.counts)[:, None])
    return found.squares - totals.T @ totals


class BinSums(NamedTuple):
    """Of a sample: the bins that occur, rows and sums of columns in each, sums of all products."""

    bins: Index
    counts: Index
    totals: Matrix
    squares: Matrix


def bin_sums(sums: DesignSums, columns: Index, row: Index, bin_of: Index) -> BinSums:
    """Sums over sampled rows, each in a bin."""
    order = np.argsort(bin_of, kind="stable")
    counts = np.bincount(bin_of)
    occur = np.flatnonzero(counts)
    counts = counts[occur]
    # Bins start at whole words of 64 slots.
    words = -(-counts // 64)
    first_slot = np.repeat(64 * (np.cumsum(words) - words), counts)
    within = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts)
    slot = np.empty(row.size, dtype=np.int64)
    slot[order] = first_slot + within
    bin_word = np.append(0, np.cumsum(words))
    sample = _sample(sums, columns, row, slot, int(bin_word[-1]))

    totals = np.zeros((counts.size, columns.size))
    totals[:, sample.binary_at] = sums.bin_counts(sample.bits, bin_word)
    totals[:, sample.other_at] = np.add.reduceat(sample.z, 64 * bin_word[:-1], axis=0)
    return BinSums(occur, counts, totals, _squares(sample, sums))


def _pairs(
    loss: Loss, sums: DesignSums, eta: Rows, columns: Index, row: Index, group: Index
) -> Matrix:
    """Half the squared differences of two rows of the same risk set: right for tiny strata.

    With a, b the two samples, sum (a - b)(a - b)' = a'a + b'b - a'b - b'a.
    """
    risk = loss.risk
    r = risk.weight * np.exp(eta[risk.order] - eta.max())
    mate = kernels.draw_mates(r, risk.group_ptr, risk.starts_stratum, group, *ranges_at_risk(risk))
    mate = np.where(mate < 0, row, risk.order[mate])
    slot = np.arange(row.size)
    n_words = -(-row.size // 64)
    a = _sample(sums, columns, row, slot, n_words)
    b = _sample(sums, columns, mate, slot, n_words)
    both = _Sample(
        np.concatenate([a.binary_at, a.binary_at + columns.size]),
        np.concatenate([a.other_at, a.other_at + columns.size]),
        np.concatenate([a.bits, b.bits]),
        np.concatenate([a.z, b.z], axis=1),
    )
    squares = _squares(both, sums)
    q = columns.size
    cross = squares[:q, q:]
    return (squares[:q, :q] + squares[q:, q:] - cross - cross.T) / 2


@dataclass(frozen=True)
class _Sample:
    """Sampled rows of some columns: bits for the binary ones, numbers for the others.

    Column `binary_at[k]` is ``bits[k]``, one bit a slot; column `other_at[k]` is ``z[:, k]``.
    """

    binary_at: Index
    other_at: Index
    bits: NDArray[np.uint64]
    z: Matrix


def _sample(sums: DesignSums, columns: Index, rows: Index, slot: Index, n_words: int) -> _Sample:
    design = sums.design
    by_row = np.argsort(rows, kind="stable")
    copies = np.bincount(rows, minlength=design.n_rows)
    start = np.append(0, np.cumsum(copies))
    slot_by_row = slot[by_row]
    has_copy = (copies > 0).astype(np.uint8)
    none = np.zeros(0, dtype=np.int64)
    binary_at, other_at = [none], [none]
    bits, z = [np.zeros((0, n_words), dtype=np.uint64)], [np.zeros((64 * n_words, 0))]
    for part, slots, at in design.select(columns):
        if isinstance(part, BinaryColumns):
            binary_at.append(at)
            bits.append(sums.bits(part, slots, has_copy, start, slot_by_row, n_words))
            continue
        picked = np.zeros((rows.size, at.size))
        part.fill(slots, rows, picked)
        other_at.append(at)
        z.append(np.zeros((64 * n_words, at.size)))
        z[-1][slot] = picked
    return _Sample(
        np.concatenate(binary_at),
        np.concatenate(other_at),
        np.concatenate(bits),
        np.concatenate(z, axis=1),
    )


def _squares(sample: _Sample, sums: DesignSums) -> Matrix:
    """Sums over the slots of the products of all pairs of columns."""
    b, o = sample.binary_at, sample.other_at
    if o.size == 0 and (np.diff(b) == 1).all():
        return sums.binary_gram(sample.bits)
    out = np.empty((b.size + o.size, b.size + o.size))
    if b.size:
        out[np.ix_(b, b)] = sums.binary_gram(sample.bits)
    if o.size:
        out[np.ix_(o, o)] = sums.gram(sample.z)
    if b.size and o.size:
        cross = sums.mixed_gram(sample.bits, sample.z)
        out[np.ix_(b, o)] = cross
        out[np.ix_(o, b)] = cross.T
    return out


def bins(risk: RiskSets, n_samples: int) -> Index:
    """First groups of all bins but the first.

    Equal shares of the events, and, because the first risk sets are small and differ most,
    logarithmic steps of the number of rows; strata are kept apart while they are few.
    """
    events = np.cumsum(risk.group_events)
    share = np.linspace(0.0, events[-1], N_BINS * 2 // 3 + 1)[1:-1]
    by_event = np.searchsorted(events, share) + 1
    n_rows = max(int(risk.group_ptr[-1]), 8)
    by_rows = np.searchsorted(risk.group_ptr, np.geomspace(4, n_rows, N_BINS // 3))
    strata = np.flatnonzero(risk.starts_stratum)
    strata = strata if strata.size <= N_BINS else strata[:0]
    edges = np.unique(np.concatenate([by_event, by_rows, strata]))
    edges = edges[(edges > 0) & (edges < risk.group_events.size)]
    least = MIN_BIN_SAMPLES * events[-1] / n_samples
    kept: list[int] = []
    before = 0.0
    for edge in edges:
        if events[edge - 1] - before >= least and events[-1] - events[edge - 1] >= least:
            kept.append(int(edge))
            before = float(events[edge - 1])
    return np.array(kept, dtype=np.int64)


def raise_diagonal(
    out: Matrix, first: Features, square: Features, events: float, n_samples: int
) -> None:
    """Raise the diagonal of columns too rare for the sample to their variance over all rows.

    `first` and `square` (q,) are the sums of each column and of its square over those expected to
    fail, of whom there are `events`.
    """
    rare = square * n_samples < MIN_SAMPLED_ENTRIES * events
    pooled = np.maximum(square - first**2 / events, 0.0)
    at = np.flatnonzero(rare)
    out[at, at] = np.maximum(out[at, at], 0.98 * pooled[at])
    diagonal = np.arange(out.shape[0])
    out[diagonal, diagonal] += 1e-9 * pooled + 1e-300
