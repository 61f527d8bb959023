"""What blocks of rows are told, and what they answer: short arrays, whatever the number of rows."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.curvature import BinSums

__all__ = [
    "OFFSET",
    "ZERO",
    "BlockBorder",
    "BlockFacts",
    "EtaUpdate",
    "StratumRanges",
    "BlockSample",
    "BlockSource",
    "CensoringTotals",
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

    Attributes
    ----------
    version : str
        Of riskset, where the block is.
    head : Design
        Without entries.
    strata : (k,) array
        Labels of the strata in the block.
    first, last : (k,) float64
        Latest and earliest time in each.
    has_events : (k,) bool
        Whether there is an event in each, in a row of positive weight.
    n_rows, n_absent, n_events, n_near_ties : int
        Rows, those of weight 0, those with an event, times that are nearly tied.
    has_counts : bool
        Whether all weights are whole numbers.
    has_entry, has_cluster : bool
        Late entry, clusters.
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
    """The first and the last time of a block in risk order, and the weight of the events at each.

    `is_one` says that it has no other.
    """

    first: float
    first_events: float
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
    """Ranges of columns within strata: the largest, and ends of those of first and last stratum.

    Attributes
    ----------
    largest : (q,) float64
    low, high : (1 or 2, q) float64
        One row if the block has one stratum.
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
