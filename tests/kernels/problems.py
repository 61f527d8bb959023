"""The hard problems that every kernel has to survive, as arrays that cannot be written to."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from riskset._types import RiskSets
from riskset.data.outcome import Outcome


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, or a copy of it, without permission to write."""
    array = np.array(array)
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class Scene:
    """Risk sets and a linear predictor in the caller's order."""

    risk: RiskSets
    eta: np.ndarray

    @property
    def n_groups(self) -> int:
        return self.risk.group_events.size

    @property
    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Groups in which each row is at risk, also without late entry: [own, end)."""
        risk = self.risk
        if risk.own.size:
            return risk.own, risk.end
        own = np.repeat(np.arange(self.n_groups), np.diff(risk.group_ptr))
        stratum = np.cumsum(risk.starts_stratum)
        end = np.searchsorted(stratum, stratum[own], side="right")
        return frozen(own), frozen(end)

    def columns(self, q: int = 3) -> np.ndarray:
        """Covariates in risk order: any numbers, a constant, zeros and ones."""
        rng = np.random.default_rng(self.eta.size)
        x = rng.normal(size=(self.risk.order.size, q))
        x[:, 1 % q] = 7.0
        x[:, 2 % q] = x[:, 2 % q] > 0
        return frozen(x)


def scene(outcome: Outcome, eta: np.ndarray) -> Scene:
    return Scene(RiskSets(*map(frozen, outcome.risk)), frozen(np.asarray(eta, dtype=float)))


def make(
    n: int,
    *,
    seed: int,
    n_times: int = 9,
    events: float = 0.5,
    late: bool = False,
    n_strata: int = 1,
    weights: tuple[float, ...] = (),
    eta: Callable[[np.random.Generator, int], np.ndarray] = lambda rng, n: rng.normal(size=n),
) -> Scene:
    rng = np.random.default_rng(seed)
    time = 1.0 + rng.integers(0, n_times, n)
    event = rng.random(n) < events
    event[0] = True
    extra: dict[str, object] = {}
    if late:
        extra["entry"] = time - rng.choice([0.5, 1.0, 3.0, 20.0], n)
    if n_strata > 1:
        extra["stratum"] = rng.integers(0, n_strata, n)
    if weights:
        extra["weight"] = np.append(1.0, rng.choice(weights, n - 1))
    return scene(Outcome.build(time, event, **extra), eta(rng, n))


def spread(rng: np.random.Generator, n: int) -> np.ndarray:
    return 700 * rng.normal(size=n) + 800


def early_peak() -> Scene:
    """One row at eta = 2000 that leaves before all others: only the last risk set knows it."""
    rng = np.random.default_rng(31)
    time = np.arange(1.0, 41.0)
    eta = rng.normal(size=40)
    eta[0] = 2000.0
    return scene(Outcome.build(time, rng.random(40) < 0.7, entry=None), eta)


def tiny_weights() -> Scene:
    """The last to fail have weights and hazards whose product no exponent of one shift can hold."""
    time = np.arange(1.0, 21.0)
    late = time > 14
    weight, eta = np.where(late, 1e-120, 1.0), np.where(late, -480.0, 0.0) + np.sin(time)
    return scene(Outcome.build(time, time % 3 != 0, weight=weight), eta)


def absent_peak() -> Scene:
    """A row of weight 0 far above everybody; it is in no sum, but has a residual of 0."""
    rng = np.random.default_rng(32)
    weight = np.ones(30)
    weight[[3, 8]] = 0.0
    eta = rng.normal(size=30)
    eta[3] = 3000.0
    event = rng.random(30) < 0.6
    event[3], event[8] = False, True
    return scene(Outcome.build(rng.integers(1, 8, 30), event, weight=weight), eta)


def empty_strata() -> Scene:
    """A stratum without events, one without anybody of positive weight, one of a single row."""
    stratum = np.array([0, 0, 0, 1, 1, 2, 2, 3, 4, 4, 4])
    time = np.array([5, 3, 4, 2, 6, 1, 7, 3, 2, 2, 9.0])
    event = np.array([1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0])
    weight = np.where(stratum == 2, 0.0, 1.0)
    eta = np.linspace(-2, 3, 11)[::-1]
    return scene(Outcome.build(time, event, stratum=stratum, weight=weight), eta)


def late_gap() -> Scene:
    """Everybody leaves before others enter, and one row is at risk at no event at all."""
    time = np.array([2, 3, 4, 9, 10, 12, 7.0])
    entry = np.array([0, 1, 0, 8, 8, 9, 5.0])
    event = np.array([1, 1, 0, 1, 0, 1, 0])
    return scene(Outcome.build(time, event, entry=entry), np.linspace(2, -2, 7))


def pieces(source: Scene) -> Scene:
    """Every row's range cut in two: a caller's row stands in two places, as in a limit."""
    risk = source.risk
    own, end = source.ranges
    middle = (own + end + 1) // 2
    first, second = np.flatnonzero(own < end), np.flatnonzero(middle < end)
    place = np.concatenate([first, second])
    begin = np.concatenate([own[first], middle[second]])
    stop = np.concatenate([middle[first], end[second]])
    is_first = np.arange(place.size) < first.size
    order = np.argsort(begin, kind="stable")
    place, begin, stop, is_first = place[order], begin[order], stop[order], is_first[order]
    level = np.array([int(a ^ (b - 1)).bit_length() for a, b in zip(begin, stop, strict=True)])
    rows = np.argsort(level, kind="stable")
    risk = risk._replace(
        order=risk.order[place],
        weight=risk.weight[place],
        event_weight=np.where(is_first, risk.event_weight[place], 0.0),
        group_ptr=np.searchsorted(begin, np.arange(source.n_groups + 1)),
        own=begin,
        end=stop,
        level_rows=rows,
        level_ptr=np.searchsorted(level[rows], np.arange(source.n_groups.bit_length() + 2)),
    )
    return Scene(RiskSets(*map(frozen, risk)), source.eta)


HALVES = (0.0, 1.0, 2.0, 0.5)

SCENES = {
    "one_row": make(1, seed=1),
    "one_event": make(25, seed=2, events=0.0),
    "all_tied": make(20, seed=3, n_times=1, events=0.6),
    "no_ties": make(50, seed=4, n_times=10**6),
    "tied": make(60, seed=5),
    "everybody_has_the_event": make(30, seed=6, n_times=3, events=1.0),
    "weights": make(60, seed=7, weights=HALVES),
    "strata": make(80, seed=8, n_strata=5),
    "strata_of_one": make(30, seed=9, n_strata=200),
    "empty_strata": empty_strata(),
    "extreme_eta": make(50, seed=10, eta=spread),
    "extreme_eta_strata": make(60, seed=11, eta=spread, n_strata=3, weights=HALVES),
    "early_peak": early_peak(),
    "tiny_weights": tiny_weights(),
    "absent_peak": absent_peak(),
    "constant_eta": make(40, seed=12, eta=lambda rng, n: np.full(n, -900.0)),
}
LATE_SCENES = {
    "late": make(60, seed=21, late=True),
    "late_gap": late_gap(),
    "late_no_ties": make(50, seed=22, late=True, n_times=10**6),
    "late_strata_weights": make(90, seed=23, late=True, n_strata=4, weights=HALVES),
    "late_extreme_eta": make(50, seed=24, late=True, eta=spread),
    "late_extreme_eta_strata": make(70, seed=25, late=True, eta=spread, n_strata=3, weights=HALVES),
    "late_all_tied": make(20, seed=26, late=True, n_times=1, events=0.6),
    "late_pieces": pieces(make(60, seed=27, late=True, n_strata=2, weights=(1.0, 2.0, 0.5))),
    "pieces": pieces(make(40, seed=28)),
}
ALL_SCENES = SCENES | LATE_SCENES


@dataclass(frozen=True)
class Table:
    """Sparse columns, compressed, and blocks of ``2**shift`` rows to store them in."""

    n_rows: int
    shift: int
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @property
    def n_columns(self) -> int:
        return self.indptr.size - 1

    def dense(self) -> np.ndarray:
        x = np.zeros((self.n_rows, self.n_columns))
        for j in range(self.n_columns):
            entries = slice(self.indptr[j], self.indptr[j + 1])
            x[self.indices[entries], j] = self.values[entries]
        return x


def table(n: int, q: int, *, shift: int, seed: int, binary: bool, index: type = np.int64) -> Table:
    """Columns of every density, one without entries and one full, rows in no order."""
    rng = np.random.default_rng(seed)
    density = rng.uniform(0.0, 0.9, q)
    density[0] = 0.0
    density[-1] = 1.0
    rows = [rng.permutation(np.flatnonzero(rng.random(n) < d)) for d in density]
    indices = np.concatenate(rows).astype(index)
    values = np.ones(indices.size) if binary else rng.normal(size=indices.size)
    indptr = np.append(0, np.cumsum([r.size for r in rows])).astype(np.int64)
    return Table(n, shift, frozen(indptr), frozen(indices), frozen(values))


TABLES = {
    "one_row": table(1, 3, shift=2, seed=41, binary=True),
    "one_column": table(20, 1, shift=3, seed=42, binary=False),
    "less_than_a_block": table(13, 6, shift=5, seed=43, binary=True),
    "whole_blocks": table(64, 7, shift=4, seed=44, binary=False),
    "ragged_blocks": table(203, 9, shift=3, seed=45, binary=True, index=np.int32),
    "more_blocks_than_chunks": table(151, 21, shift=1, seed=46, binary=False, index=np.int32),
}
