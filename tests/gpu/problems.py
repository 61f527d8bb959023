"""Likelihoods, designs and quadratics that the kernels have to survive."""

from dataclasses import dataclass, replace

import numpy as np

from kernels.problems import TABLES, Table
from kernels.problems import table as make_table
from riskset._runtime import Runtime
from riskset._types import Index
from riskset.data.column_storage import BinaryColumns, DenseColumns, StoredColumns, ValuedColumns
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.kernels import matrix_ref
from riskset.model import replicates_likelihood
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import CoxLoss
from riskset.model.finegray import FineGrayLoss
from riskset.model.loss import Loss

RUNTIME = Runtime(1)


@dataclass(frozen=True)
class Likelihood:
    """A likelihood on the whole data, replicates of it, and a linear predictor of each."""

    loss: Loss
    parts: list[replicates_likelihood.ReplicateWeights]
    eta: np.ndarray

    def lane(self, k: int) -> tuple[Loss, np.ndarray]:
        """The likelihood of one replicate by itself."""
        return self.loss.replicate(*self.parts[k]), np.ascontiguousarray(self.eta[:, k])


def outcome(
    n: int,
    *,
    seed: int,
    n_times: int = 9,
    codes: tuple[int, ...] = (0, 1),
    n_strata: int = 1,
    late: bool = False,
) -> Outcome:
    rng = np.random.default_rng(seed)
    time = 1.0 + rng.integers(0, n_times, n)
    event = rng.choice(codes, n)
    event[0] = 1
    extra: dict[str, object] = {}
    if late:
        extra["entry"] = time - rng.choice([0.5, 1.0, 3.0, 20.0], n)
    if n_strata > 1:
        extra["stratum"] = rng.integers(0, n_strata, n)
    weight = np.append(1.0, rng.choice([0.0, 0.5, 1.0, 2.0], n - 1))
    return Outcome.build(time, event, cause=1, weight=weight, **extra)


def likelihood(loss: Loss, n_lanes: int, seed: int) -> Likelihood:
    """Weights 0, 1 and 2 times those of the whole data; in the first lane, these themselves."""
    rng = np.random.default_rng(seed)
    n = loss.outcome.n_rows
    parts = [replicates_likelihood.ReplicateWeights(loss.outcome.weight, None)]
    for k in range(1, n_lanes):
        weight = loss.outcome.weight * rng.integers(0, 3, n)
        parts.append(replicates_likelihood.ReplicateWeights(weight, weight if k % 2 else None))
    n_lanes = n_lanes if n_lanes < 2 else -(-n_lanes // 4) * 4
    return Likelihood(loss, parts, 3 * rng.normal(size=(n, n_lanes)) + 700)


def cox(
    n: int, *, ties: str = "breslow", n_lanes: int = 5, seed: int, **extra: object
) -> Likelihood:
    data = outcome(n, seed=seed, **extra)
    return likelihood(CoxLoss(data, ties, RUNTIME), n_lanes, seed)


def finegray(
    n: int, *, n_lanes: int = 5, groups: int = 1, seed: int, **extra: object
) -> Likelihood:
    data = outcome(n, seed=seed, codes=(0, 1, 2), **extra)
    group = np.random.default_rng(seed).integers(0, groups, n) if groups > 1 else None
    return likelihood(
        FineGrayLoss(data, CensoringDistribution.estimate(data, group=group), RUNTIME),
        n_lanes,
        seed,
    )


def late_gap() -> Likelihood:
    """Everybody leaves before others enter, and one row is at risk at no event at all."""
    time = np.array([2, 3, 4, 9, 10, 12, 7.0])
    entry = np.array([0, 1, 0, 8, 8, 9, 5.0])
    data = Outcome.build(time, np.array([1, 1, 0, 1, 0, 1, 0]), entry=entry)
    return likelihood(CoxLoss(data, "efron", RUNTIME), 3, 1)


def empty_strata() -> Likelihood:
    """A stratum without events, one without anybody of positive weight, one of a single row."""
    stratum = np.array([0, 0, 0, 1, 1, 2, 2, 3, 4, 4, 4])
    time = np.array([5, 3, 4, 2, 6, 1, 7, 3, 2, 2, 9.0])
    event = np.array([1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0])
    weight = np.where(stratum == 2, 0.0, 1.0)
    data = Outcome.build(time, event, stratum=stratum, weight=weight)
    return likelihood(CoxLoss(data, "breslow", RUNTIME), 3, 2)


LIKELIHOODS = {
    "one_row": cox(1, n_lanes=1, seed=1),
    "one_event": cox(25, codes=(0,), seed=2),
    "all_tied": cox(90, n_times=1, ties="efron", seed=3),
    "no_ties": cox(150, n_times=10**6, n_lanes=9, seed=4),
    "tied": cox(131, seed=5),
    "everybody_has_the_event": cox(40, codes=(1,), n_times=3, ties="efron", seed=6),
    "strata": cox(170, n_strata=5, seed=7),
    "strata_of_many_chunks": cox(300, n_times=10**6, n_strata=6, ties="efron", seed=14),
    "strata_of_one": cox(40, n_strata=200, ties="efron", seed=8),
    "empty_strata": empty_strata(),
    "late": cox(150, late=True, n_times=40, seed=9),
    "late_gap": late_gap(),
    "late_strata_efron": cox(120, late=True, n_strata=3, ties="efron", seed=10),
    "finegray": finegray(140, seed=11),
    "finegray_groups": finegray(130, groups=3, n_strata=3, n_times=30, seed=12),
    "finegray_many_chunks": finegray(320, n_times=10**6, n_strata=5, n_lanes=3, seed=15),
    "finegray_late": finegray(150, groups=2, n_strata=2, late=True, n_times=40, seed=16),
    "finegray_no_ties": finegray(100, n_times=10**6, n_lanes=1, seed=13),
}


# ------------------------------------------------------------------------------------- designs


def parts_of(t: Table, first: int, kind: str) -> StoredColumns:
    columns = np.arange(first, first + t.n_columns)
    every = np.arange(t.n_columns)
    if kind == "dense":
        block_rows = 1 << t.shift
        n_blocks = -(-t.n_rows // block_rows)
        padded = np.zeros((n_blocks * block_rows, t.n_columns))
        padded[: t.n_rows] = t.dense()
        blocks = padded.reshape(n_blocks, block_rows, -1).transpose(0, 2, 1)
        return DenseColumns(columns, np.ascontiguousarray(blocks), t.n_rows)
    values = np.zeros(0) if kind == "binary" else t.values
    ptr, row, value = matrix_ref.sparse_layout(
        t.indptr, t.indices, values, every, t.n_rows, t.shift, RUNTIME
    )
    if kind == "binary":
        return BinaryColumns(columns, ptr, row, t.shift)
    return ValuedColumns(columns, ptr, row, t.shift, value)


def design_of(t: Table) -> Design:
    """Binary, valued and dense columns of the same entries, in blocks of few rows."""
    q = t.n_columns
    parts = tuple(parts_of(t, k * q, kind) for k, kind in enumerate(("binary", "valued", "dense")))
    names = tuple(f"x{j}" for j in range(3 * q))
    return Design(t.n_rows, names, names, np.zeros(3 * q), np.ones(3 * q), parts)


@dataclass(frozen=True)
class Products:
    """A design, all or some of its columns, and vectors to multiply it with."""

    design: Design
    columns: Index
    r: np.ndarray
    v: np.ndarray


def products(t: Table, n_lanes: int) -> Products:
    design, rng = design_of(t), np.random.default_rng(t.n_rows)
    p = design.n_features
    columns = np.sort(rng.permutation(p)[: (p + 2) // 2])
    v = rng.normal(size=(n_lanes, columns.size)) * rng.integers(0, 2, columns.size)
    return Products(design, columns, rng.normal(size=(t.n_rows, n_lanes)), v)


DESIGNS = {
    name: products(t, n_lanes)
    for (name, t), n_lanes in zip(TABLES.items(), (1, 12, 4, 1, 20, 8), strict=True)
} | {"several_hundred_rows": products(make_table(700, 11, shift=6, seed=47, binary=False), 4)}


# ---------------------------------------------------------------------------------- quadratics


@dataclass(frozen=True)
class Quadratic:
    """A penalised quadratic for each lane."""

    curvature: np.ndarray
    scale: np.ndarray
    pairs: np.ndarray
    n_pairs: np.ndarray
    gradient: np.ndarray
    beta: np.ndarray
    l1: np.ndarray
    l2: np.ndarray
    box: np.ndarray
    may_move: np.ndarray


def quadratic(q: int, n_lanes: int, seed: int, movable: float = 0.8) -> Quadratic:
    rng, max_pairs = np.random.default_rng(seed), 6
    a = np.eye(q) + rng.normal(size=(q, q)) / (4 * np.sqrt(q))
    n_pairs = 2 * rng.integers(0, max_pairs // 2 + 1, n_lanes)
    pairs = np.zeros((n_lanes, q, max_pairs))
    pairs[:, :, 0::2] = rng.normal(size=(n_lanes, q, max_pairs // 2)) / np.sqrt(q)
    pairs[:, :, 1::2] = 0.3 * pairs[:, :, 0::2]  # so that every curvature stays positive
    beta = rng.normal(size=(n_lanes, q)) * rng.integers(0, 2, (n_lanes, q))
    return Quadratic(
        a.T @ a,
        rng.uniform(0.5, 1.5, n_lanes),
        pairs,
        n_pairs.astype(np.int32),
        rng.normal(size=(n_lanes, q)) * 3,
        beta,
        rng.choice([0.0, 0.4, 1.0], q),
        rng.choice([0.0, 0.2], q),
        rng.choice([0.1, 2.0, 100.0], (n_lanes, q)),
        (rng.random((n_lanes, q)) < movable).astype(np.uint8),
    )


QUADRATICS = {
    "one_coordinate": quadratic(1, 1, 61),
    "few": quadratic(7, 4, 62),
    "more_than_a_block": quadratic(260, 1, 63, movable=0.1),
    "without_pairs": replace(quadratic(20, 4, 65), n_pairs=np.zeros(4, np.int32)),
}
