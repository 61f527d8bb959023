"""A cheap model of the curvature of the partial likelihood, for the steps of a Newton method.

The observed information is a sum over risk sets of the covariance of the covariates under the
risk-set distribution. Here risk sets are put in a few bins and a bin's covariance is taken over a
sample of its (row, group) pairs, about the bin's own mean. Every term is a covariance, so the model
is positive semidefinite whatever the sample, and spread within a bin only adds curvature: steps are
rather too short than too long. The gradient is exact, so only speed depends on any of this.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Matrix, RiskSets, Rows
from riskset.data.design import Design
from riskset.data.parts import BinaryPart
from riskset.kernels import gram_cpu as kernels
from riskset.kernels.risk_sets_cpu import SPAN
from riskset.model.cox import CoxLoss

__all__ = ["sampled_information"]

N_BINS = 32
MIN_BIN = 64
RARE = 200
"""Columns expected in fewer samples than this get their exact diagonal."""


def sampled_information(
    loss: CoxLoss,
    design: Design,
    eta: Rows,
    columns: Index,
    n_samples: int,
    *,
    raise_rare: bool = True,
) -> Matrix:
    """Positive semidefinite model of `CoxLoss.information`.

    Parameters
    ----------
    eta : (n,) float64
        Offset included.
    columns : (q,) int64
    n_samples : int
        Rows to draw, about 50 for each column or more.
    raise_rare : bool
        Give columns too rare for the sample a safe diagonal; not for judging collinearity.

    Returns
    -------
    (q, q) float64

    Notes
    -----
    O(non-zeros of the columns + n_samples q^2 / 64) for binary columns. Fixed points of
    low-discrepancy sequences take the place of random numbers: same input, same bits.
    """
    risk = loss.risk
    # Beyond SPAN below its maximum a row weighs nothing in the model, and exp is safe.
    eta = np.maximum(eta, eta.max() - 0.9 * SPAN)
    now = loss.evaluate(eta)
    hazard = np.exp(now.log_hazard - now.log_hazard.max())
    own, end = _ranges(risk)
    cumulative = np.append(0.0, np.cumsum(hazard))
    row, group = kernels.draw(now.expected_in_risk_order, own, end, cumulative, n_samples)
    bin_of = np.searchsorted(_bins(risk, n_samples), group, side="right")
    order = np.argsort(bin_of, kind="stable")
    counts = np.bincount(bin_of)
    counts = counts[counts > 0]

    # Bins start at whole words of 64 slots.
    words = -(-counts // 64)
    first_slot = np.repeat(64 * (np.cumsum(words) - words), counts)
    within = np.arange(n_samples) - np.repeat(np.cumsum(counts) - counts, counts)
    slot = np.empty(n_samples, dtype=np.int64)
    slot[order] = first_slot + within
    rows = risk.order[row]
    bin_word = np.append(0, np.cumsum(words))

    sample = _Sample(design, columns, rows, slot, counts, bin_word, loss)
    out = sample.gram() * (loss.n_events / n_samples)
    if raise_rare:
        _raise_rare(out, loss, design, columns, now.expected, n_samples)
    return out


class _Sample:
    """The sampled rows of the columns: bits for the binary ones, numbers for the others."""

    def __init__(
        self,
        design: Design,
        columns: Index,
        rows: Index,
        slot: Index,
        counts: Index,
        bin_word: Index,
        loss: CoxLoss,
    ) -> None:
        self.runtime = loss.runtime
        self.counts, self.bin_word, self.q = counts, bin_word, columns.size
        n_words = int(bin_word[-1])
        by_row = np.argsort(rows, kind="stable")
        copies = np.bincount(rows, minlength=design.n_rows)
        start = np.append(0, np.cumsum(copies))
        slot_by_row = slot[by_row]
        has_copy = (copies > 0).astype(np.uint8)
        self.binary_at = self.other_at = np.zeros(0, dtype=np.int64)
        self.bits = np.zeros((0, n_words), dtype=np.uint64)
        others: list[Matrix] = []
        for part, slots, at in design.select(columns):
            if isinstance(part, BinaryPart):
                self.binary_at = at
                self.bits = np.zeros((at.size, n_words), dtype=np.uint64)
                kernels.fill_bits(
                    part.block_ptr,
                    part.row,
                    part.shift,
                    slots,
                    has_copy,
                    start,
                    slot_by_row,
                    self.bits,
                    self.runtime,
                )
                continue
            block = np.zeros((64 * n_words, at.size))
            picked = np.zeros((rows.size, at.size))
            part.fill(slots, rows, picked)
            block[slot] = picked
            others.append(block)
            self.other_at = np.concatenate([self.other_at, at])
        self.z = np.concatenate(others, axis=1) if others else np.zeros((64 * n_words, 0))

    def gram(self) -> Matrix:
        """Sum over bins of the centred sums of squares."""
        out = np.empty((self.q, self.q))
        b, o = self.binary_at, self.other_at
        inverse = 1.0 / self.counts
        edges = self.bin_word[:-1]
        sums_o = np.add.reduceat(self.z, 64 * edges, axis=0)
        if b.size:
            sums_b = kernels.bin_counts(self.bits, self.bin_word)
            both = kernels.binary_gram(self.bits, self.runtime)
            out[np.ix_(b, b)] = both - sums_b.T @ (inverse[:, None] * sums_b)
        if o.size:
            out[np.ix_(o, o)] = self.z.T @ self.z - sums_o.T @ (inverse[:, None] * sums_o)
        if b.size and o.size:
            cross = self._cross() - sums_b.T @ (inverse[:, None] * sums_o)
            out[np.ix_(b, o)] = cross
            out[np.ix_(o, b)] = cross.T
        return out

    def _cross(self) -> Matrix:
        out = np.empty((self.binary_at.size, self.other_at.size))
        step = max(1, (1 << 24) // (64 * self.bits.shape[1]))
        for a in range(0, out.shape[0], step):
            chunk = self.bits[a : a + step].view(np.uint8)
            ones = np.unpackbits(chunk, axis=1, bitorder="little")
            out[a : a + step] = ones.astype(np.float64) @ self.z
        return out


def _ranges(risk: RiskSets) -> tuple[Index, Index]:
    if risk.own.size:
        return risk.own, risk.end
    n_groups = risk.group_events.size
    first = np.append(np.flatnonzero(risk.starts_stratum), n_groups)
    stop = np.repeat(first[1:], np.diff(first))
    rows = np.diff(risk.group_ptr)
    return np.repeat(np.arange(n_groups), rows), np.repeat(stop, rows)


def _bins(risk: RiskSets, n_samples: int) -> Index:
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
    least = MIN_BIN * events[-1] / n_samples
    kept: list[int] = []
    before = 0.0
    for edge in edges:
        if events[edge - 1] - before >= least and events[-1] - events[edge - 1] >= least:
            kept.append(int(edge))
            before = float(events[edge - 1])
    return np.array(kept, dtype=np.int64)


def _raise_rare(
    out: Matrix, loss: CoxLoss, design: Design, columns: Index, expected: Rows, n_samples: int
) -> None:
    """Raise the diagonal of columns too rare for the sample to their variance over all rows."""
    square = design.cross(expected, columns, runtime=loss.runtime, power=2)
    first: NDArray[np.float64] = design.cross(expected, columns, runtime=loss.runtime)
    events = loss.n_events
    rare = square * n_samples < RARE * events
    pooled = np.maximum(square - first**2 / events, 0.0)
    at = np.flatnonzero(rare)
    out[at, at] = np.maximum(out[at, at], 0.98 * pooled[at])
    diagonal = np.arange(columns.size)
    out[diagonal, diagonal] += 1e-9 * pooled + 1e-300
