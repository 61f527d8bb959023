r"""The scans of one evaluation over one block of rows: three steps, an exchange between them.

As in `kernels.subdistribution_cpu`, of which Cox's likelihood is the case without tails, with what
other blocks hand on. A block's *head* are the groups of the stratum that began in a block before,
its *end* those of its last stratum, which may go on in the next. Then

.. math::
    D_g = \Big(\sum_{i \le g} r_i + c\Big) + G_g \Big(\sum_{i > g} u_i + c'\Big), \qquad
    L_i = \sum_{g \ge i} N_g / D_g + b, \qquad L'_i = \sum_{g < i} G_g N_g / D_g + b'

with c and b' sums over the blocks before, for the head, and c' and b over those after it, for the
end. All sums are in units of ``exp(shift)``, shift the largest linear predictor of all rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import RiskSets, Rows, Tail
from riskset.kernels.risk_sets_cpu import sum_totals
from riskset.kernels.subdistribution_cpu import seen_after, seen_up_to, sum_before
from riskset.kernels.subdistribution_ref import FineGrayPass
from riskset.model.loss import Loss

__all__ = ["StratumEnds", "HazardSums", "RiskSums", "BlockScan"]

_GroupSums = NDArray[np.float64]


class StratumEnds(NamedTuple):
    """Where the first stratum of a block ends, and its last begins, in groups.

    `head` are the groups of the stratum that began in a block before, 0 if none did, and `end` is
    the first group of the last stratum. `has_start` says whether a stratum begins in the block:
    then nothing is handed through it.
    """

    head: int
    end: int
    has_start: bool

    @classmethod
    def of(cls, risk: RiskSets, continues: bool) -> "StratumEnds":
        """Of the risk sets of a block, and whether its first stratum began in a block before."""
        starts = np.flatnonzero(risk.starts_stratum)
        if not continues:
            return cls(0, int(starts[-1]), True)
        head = int(starts[1]) if starts.size > 1 else risk.starts_stratum.size
        return cls(head, int(starts[-1]), starts.size > 1)

    def of_head(self, sets: RiskSets) -> slice:
        """Rows of the head."""
        return slice(0, int(sets.group_ptr[self.head]))

    def of_end(self, sets: RiskSets) -> slice:
        """Rows of the end."""
        return slice(int(sets.group_ptr[self.end]), int(sets.group_ptr[-1]))


class RiskSums(NamedTuple):
    """What a block hands on of its risks, in units of the exponential of its own `high`.

    `low` and `high` are the range of the linear predictors; `after` (1,) is the sum of r over the
    end, for the blocks after it, and `before` (K,) are the sums of u over the head, one for each
    tail.
    """

    low: float
    high: float
    after: _GroupSums
    before: _GroupSums


class HazardSums(NamedTuple):
    """What a block hands on of its hazards, and its part of the likelihood, `value`.

    `least` is the log of the smallest sum over a risk set with events, in the common units;
    `before` (1,) is the sum of N/D over the head, and `after` (K,) are the sums of G N/D over the
    end, one for each tail.
    """

    value: float
    least: float
    before: _GroupSums
    after: _GroupSums


@dataclass
class BlockScan:
    """One evaluation, which `hazards` and `residuals` complete."""

    loss: Loss
    ends: StratumEnds
    eta: Rows
    shift: float = field(init=False)
    r: Rows = field(init=False)
    tail_r: list[Rows] = field(init=False)
    total: _GroupSums = field(init=False)
    tail_total: list[_GroupSums] = field(init=False)
    score: float = field(init=False)
    hazard: _GroupSums = field(init=False)
    expected: Rows = field(init=False)
    tail_expected: list[Rows] = field(init=False)
    residual: Rows | None = None

    @property
    def risk(self) -> RiskSets:
        """Of the block."""
        return self.loss.risk

    @property
    def tails(self) -> Sequence[Tail]:
        """Of the block."""
        return self.loss.tails

    def risks(self) -> RiskSums:
        """Sums of the rows at hand."""
        self.shift = float(self.eta.max())
        done = sum_totals(self.eta, self.shift, self.risk, self.loss.runtime)
        self.r, self.score, self.total = done
        self.tail_r, self.tail_total = [], []
        for tail in self.tails:
            u = tail.sets.weight * np.exp(self.eta[tail.sets.order] - self.shift)
            self.tail_r.append(u)
            self.tail_total.append(sum_before(u, tail.sets))
        head = [
            float(u[self.ends.of_head(tail.sets)].sum())
            for u, tail in zip(self.tail_r, self.tails, strict=True)
        ]
        return RiskSums(float(self.eta.min()), self.shift, self.total[-1:].copy(), np.array(head))

    def hazards(self, shift: float, before: _GroupSums, after: _GroupSums) -> HazardSums:
        """Complete the sums over risk sets by those of the blocks before and after."""
        risk, ends, unit = self.risk, self.ends, np.exp(self.shift - shift)
        for array in (self.r, self.total, *self.tail_r, *self.tail_total):
            array *= unit
        self.score += (self.shift - shift) * float(risk.event_weight.sum())
        self.shift = shift
        self.total[: ends.head] += before[0]
        for sums, tail, more in zip(self.tail_total, self.tails, after, strict=True):
            sums[ends.end :] += more
            self.total += tail.survival * sums
        used = risk.group_events > 0
        self.hazard = np.zeros(used.size)
        with np.errstate(divide="ignore"):
            log_total = np.log(self.total[used])
            np.divide(risk.group_events, self.total, out=self.hazard, where=used)
        handed = [float((tail.survival * self.hazard)[ends.end :].sum()) for tail in self.tails]
        return HazardSums(
            self.score - float(risk.group_events[used] @ log_total),
            float(log_total.min(initial=np.inf)),
            np.array([self.hazard[: ends.head].sum()]),
            np.array(handed),
        )

    def residuals(self, after: _GroupSums, before: _GroupSums) -> None:
        """Complete what rows see of the hazard by that of the blocks after and before."""
        risk, ends = self.risk, self.ends
        self.expected = seen_up_to(self.hazard, risk)
        self.expected[ends.of_end(risk)] += after[0]
        self.expected *= self.r
        self.residual = np.empty(self.r.size)
        self.residual[risk.order] = risk.event_weight - self.expected
        self.tail_expected = []
        for tail, u, more in zip(self.tails, self.tail_r, before, strict=True):
            seen = seen_after(tail.survival * self.hazard, tail.sets)
            seen[ends.of_head(tail.sets)] += more
            seen *= u
            self.residual[tail.sets.order] -= seen
            self.tail_expected.append(seen)

    @property
    def by_row(self) -> Rows:
        """Expected events of each row, in the order of the block's rows."""
        assert self.residual is not None
        out = np.empty(self.eta.size)
        out[self.risk.order] = self.expected
        for tail, seen in zip(self.tails, self.tail_expected, strict=True):
            out[tail.sets.order] += seen
        return out

    def as_pass(self) -> FineGrayPass:
        """The parts that the information is made of."""
        assert self.residual is not None
        with np.errstate(divide="ignore"):
            log_total, log_hazard = np.log(self.total), np.log(self.hazard)
        return FineGrayPass(
            0.0,
            self.residual,
            self.expected,
            log_total + self.shift,
            log_hazard - self.shift,
            tuple(self.tail_expected),
        )
