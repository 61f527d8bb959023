"""What the machine can do at most, and what riskset's kernels reach of it."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from riskset._runtime import Runtime, available_threads
from riskset._types import AnyArray, Rows
from riskset.bench import ceiling_kernels as kernels
from riskset.bench.case import Case
from riskset.bench.experiment import ProgressCall
from riskset.bench.measure import steady
from riskset.bench.record import BenchmarkRecord, grouped
from riskset.data.column_storage import BinaryColumns
from riskset.kernels._vector import lane_rows
from riskset.model.design_sums import HostSums
from riskset.model.replicates_likelihood import LANES, LaneLoss, ReplicateWeights
from riskset.plot.timings import Figure, time_bars

__all__ = ["Ceilings", "Work", "machine_work", "our_work"]

GATHERED = 1 << 20
"""Places that one call looks at in each thread."""
COUNTS_PER_CALL = 4096
"""How often words are counted in one call."""
TIMES, SLOW = 32, 1 << 24
"""How often other loops run in one call, but for tables of more bytes."""
MAX_BYTES_PER_THREAD = 1 << 20
"""Bytes of the largest table that each thread has one of."""
MIN_SECONDS_PER_REPETITION = 0.004
"""Seconds that one repetition takes at least: many short ones find a moment without disturbance."""
PER_COLUMN, MIN_SAMPLES = 50, 50_000
"""Rows sampled for the curvature of a working set, as `solve.curvature` does."""

NS, GB, GWORDS = "ns/number", "GB/s", "Gword/s"

READ, EXP, LOG, POPCOUNT = "read", "exp", "log", "popcount of AND"
GATHER, UPDATE = "gather of numbers", "update of numbers"
GATHER_EIGHT, UPDATE_EIGHT = "gather of eights", "update of eights"
LOOPS = {
    GATHER: kernels.gather,
    UPDATE: kernels.update,
    GATHER_EIGHT: kernels.gather_eight,
    UPDATE_EIGHT: kernels.update_eight,
}
EIGHTS = (GATHER_EIGHT, UPDATE_EIGHT)
BLOCK, BLOCK_OF_EIGHTS, ALL = "32 KiB", "256 KiB", "one a row"
SIZES = {BLOCK: 1 << 15, BLOCK_OF_EIGHTS: 1 << 18, "8 MiB": 1 << 23, "256 MiB": 1 << 28}
"""Bytes of tables."""
COLUMN = (BLOCK, BLOCK_OF_EIGHTS)
"""Tables for a block of 4096 rows of a design; places ascend, as in its columns."""
GAP = 16
"""Rows from one such place to the next, on average."""


@dataclass(frozen=True)
class Work:
    """One loop.

    Attributes
    ----------
    step, unit : str
    count : float
        Bytes, numbers or words that one call deals with, of all threads together.
    call : callable
    needs : mapping of str to float
        Ceilings by name, and how many times each is asked for by one byte, number or word.
    """

    step: str
    unit: str
    count: float
    call: Callable[[], object]
    needs: Mapping[str, float] = field(default_factory=dict)


def machine_work(runtime: Runtime, n_rows: int, most: int) -> Iterator[Work]:
    """The ceilings.

    Parameters
    ----------
    n_rows : int
        Size of the tables with a number, or eight, for each row.
    most : int
        Bytes of the largest table.
    """
    yield from _streams(runtime, most // 2)
    for kind in LOOPS:
        each = 8 * LANES if kind in EIGHTS else 8
        names = COLUMN if kind in (UPDATE, UPDATE_EIGHT) else (*SIZES, ALL)
        for name in names:
            size = each * n_rows if name == ALL else min(SIZES[name], most)
            yield _in_table(runtime, kind, name, max(1, size // each))
    yield from _arithmetic(runtime)


def _streams(runtime: Runtime, n_bytes: int) -> Iterator[Work]:
    threads, n = runtime.n_threads, n_bytes // 8
    x, y, z = np.ones((3, n))
    sums = np.empty(threads, np.int64)

    def run(kernel: Callable[..., None], *args: object) -> Callable[[], object]:
        return lambda: runtime.run(kernel, threads, threads, *args)

    yield Work(READ, GB, 8 * n, run(kernels.read, x.view(np.int64), sums))
    yield Work("copy", GB, 16 * n, run(kernels.copy, x, y))
    yield Work("triad", GB, 24 * n, run(kernels.triad, x, y, z))


def _in_table(runtime: Runtime, kind: str, name: str, size: int) -> Work:
    """Numbers, or eights, at some places of a table of so many."""
    threads, width = runtime.n_threads, LANES if kind in EIGHTS else 1
    is_private = 8 * width * size <= MAX_BYTES_PER_THREAD
    total, stride = (size * threads, size) if is_private else (size, 0)
    table: AnyArray = np.empty(total) if width == 1 else lane_rows(total)
    table[:] = 1.0
    rng = np.random.default_rng(1)
    if name in COLUMN:
        index = np.cumsum(rng.integers(1, 2 * GAP, (threads, GATHERED)), axis=1) % size
    else:
        index = rng.integers(0, size, (threads, GATHERED))
    index = index.astype(np.uint16 if size <= 1 << 16 else np.uint32)
    often = TIMES if 8 * width * size <= SLOW else 1
    other = np.zeros((threads * kernels.RUN, LANES))  # sums, or what is added
    return Work(
        f"{kind}, {name}",
        NS,
        often * index.size * width,
        lambda: runtime.run(
            kernels.repeated, threads, often, LOOPS[kind], index, table, stride, other
        ),
    )


def _arithmetic(runtime: Runtime) -> Iterator[Work]:
    threads, n = runtime.n_threads, 2048
    rng = np.random.default_rng(1)
    words = rng.integers(0, 1 << 63, (threads, n), dtype=np.uint64)
    mask, ones = np.uint64(0x5A5A5A5A5A5A5A5A), np.empty(threads, np.uint64)
    yield Work(
        POPCOUNT, GWORDS, words.size * COUNTS_PER_CALL,
        lambda: runtime.run(kernels.popcount, threads, words, mask, COUNTS_PER_CALL, ones),
    )  # fmt: skip
    x = rng.uniform(1, 5, (threads, 8 * n))
    out = np.empty_like(x)
    for step, function in ((EXP, np.exp), (LOG, np.log)):
        yield Work(
            step, NS, TIMES * x.size,
            functools.partial(
                runtime.run, kernels.repeated, threads, TIMES, kernels.elementary, function, x, out
            ),
        )  # fmt: skip


def our_work(case: Case, runtime: Runtime) -> Iterator[Work]:
    """The kernels of a fit and of its replicates, and what each of them needs of the machine."""
    design, loss = case.design, case.loss.shifted(case.loss.offset, runtime)
    n_entries, n_rows = case.cohort.indices.size, design.n_rows
    logs = loss.risk.group_events.size / n_rows
    eta = design.product(case.cohort.coef, runtime=runtime)
    r, v = loss.evaluate(eta).residual, np.linspace(0.5, 1.5, design.n_features)

    def cross() -> object:
        return design.cross(r, runtime=runtime)

    yield Work("Design.cross", NS, n_entries, cross, {f"{GATHER}, {BLOCK}": 1})
    yield Work("Design.cross, bytes", GB, design.nbytes, cross, {READ: 1})
    yield Work(
        "Design.product", NS, n_entries, lambda: design.product(v, runtime=runtime),
        {f"{UPDATE}, {BLOCK}": 1},
    )  # fmt: skip
    yield Work(
        "likelihood", NS, n_rows, lambda: loss.evaluate(eta),
        {EXP: 1, LOG: logs, f"{GATHER}, {ALL}": 2},
    )  # fmt: skip
    yield from _of_lanes(case, runtime, eta)
    yield from _of_samples(case, runtime)


def _of_lanes(case: Case, runtime: Runtime, eta: Rows) -> Iterator[Work]:
    """A bundle of eight resamples for each thread."""
    design, every = case.design, np.arange(case.design.n_features)
    n_rows, n_bundles = design.n_rows, range(runtime.n_threads)
    n_numbers, logs = LANES * len(n_bundles), case.loss.risk.group_events.size / n_rows
    rng = np.random.default_rng(1)
    losses = []
    for _ in n_bundles:
        parts = [
            ReplicateWeights(rng.poisson(1.0, n_rows).astype(np.float64)) for _ in range(LANES)
        ]
        losses.append(LaneLoss.build(case.loss, parts))
    etas = [lane_rows(n_rows) for _ in n_bundles]
    for one in etas:
        one[:] = eta[:, None]
    residuals = [loss.evaluate(one).residual for loss, one in zip(losses, etas, strict=True)]
    v = np.full((every.size, LANES), 1e-9)
    n_entries = case.cohort.indices.size
    yield Work(
        "lanes, cross", NS, n_numbers * n_entries,
        lambda: runtime.map(lambda k: design.cross_lanes(residuals[k]), n_bundles),
        {f"{GATHER_EIGHT}, {BLOCK_OF_EIGHTS}": 1},
    )  # fmt: skip
    yield Work(
        "lanes, product", NS, n_numbers * n_entries,
        lambda: runtime.map(lambda k: design.product_lanes(v, every, etas[k]), n_bundles),
        {f"{UPDATE_EIGHT}, {BLOCK_OF_EIGHTS}": 1},
    )  # fmt: skip
    yield Work(
        "lanes, likelihood", NS, n_numbers * n_rows,
        lambda: runtime.map(lambda k: losses[k].evaluate(etas[k]), n_bundles),
        {EXP: 1, LOG: logs, f"{GATHER_EIGHT}, {ALL}": 2},
    )  # fmt: skip


def _of_samples(case: Case, runtime: Runtime) -> Iterator[Work]:
    """The sample of rows that curvature is made of: its bits, and their products."""
    design, sums = case.design, HostSums(case.design, runtime)
    (part,) = design.parts
    assert isinstance(part, BinaryColumns)
    q = design.n_features
    n_samples = max(MIN_SAMPLES, PER_COLUMN * q)
    rows = np.sort(np.random.default_rng(1).integers(0, design.n_rows, n_samples))
    copies = np.bincount(rows, minlength=design.n_rows)
    start, is_drawn = np.append(0, np.cumsum(copies)), (copies > 0).astype(np.uint8)
    place, every, n_words = np.arange(n_samples), np.arange(q), -(-n_samples // 64)
    yield Work(
        "curvature, fill_bits", NS, case.cohort.indices.size,
        lambda: sums.bits(part, every, is_drawn, start, place, n_words), {f"{GATHER}, {BLOCK}": 1},
    )  # fmt: skip
    bits = sums.bits(part, every, is_drawn, start, place, n_words)
    yield Work(
        "curvature, binary_gram", GWORDS, q * (q + 1) / 2 * n_words,
        lambda: sums.binary_gram(bits), {POPCOUNT: 1},
    )  # fmt: skip


@dataclass(frozen=True)
class Ceilings:
    """The options of `ceilings`."""

    name: ClassVar[str] = "ceilings"
    title: ClassVar[str] = "What the machine can do, and what riskset's kernels reach"
    words: ClassVar[str] = (
        "Rates and shares are of the fastest repetition, which was disturbed least. 'machine': "
        "loops that do one thing. Numbers have 8 bytes, eights are rows of eight, 64 bytes; a "
        "gather adds up those at some places of a table of the size that is named, an update adds "
        "to them; tables 'one a row' are as long as the design. In tables of 32 and "
        "256 KiB places ascend by 16 on average, as in the columns of a block of rows; in larger "
        "ones they are random. Each thread has its own table up to 1 MiB. 'riskset': its "
        "kernels, counted in non-zeros (Design.cross, Design.product, fill_bits) or rows "
        "(likelihood), both times eight of lanes, in bytes of the design, or in words of 64 "
        "sampled rows for each pair of columns (binary_gram). With several threads what all of "
        "them do is counted. The note names the loops that make up a ceiling: for each row a "
        "likelihood takes an exponential and two places of all rows, for each group of events a "
        "logarithm."
    )

    rows: Sequence[int] = (100_000,)
    columns: int = 1000
    density: float = 0.05
    threads: Sequence[int] = ()
    repeats: int = 25
    seed: int = 123
    most: int = 1 << 28
    peers: ClassVar[None] = None

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """The machine, then riskset, with each number of threads."""
        every = tuple(self.threads) or tuple(sorted({1, available_threads()}))
        jobs = [(n, threads) for n in sorted(self.rows) for threads in every]
        case: Case | None = None
        for k, (n, threads) in enumerate(jobs):
            progress(k / len(jobs), f"{n:,} rows, {threads} threads: the machine")
            if case is None or case.cohort.time.size != n:
                case = Case.draw(self.name, "cox", n, self.columns, self.density, self.seed)
            runtime, known = Runtime(threads), dict[str, float]()
            for work in machine_work(runtime, n, self.most):
                yield self._record(case, runtime, work, known, tool="machine")
            progress((k + 0.5) / len(jobs), f"{n:,} rows, {threads} threads: riskset")
            for work in our_work(case, runtime):
                yield self._record(case, runtime, work, known)

    def _record(
        self,
        case: Case,
        runtime: Runtime,
        work: Work,
        known: dict[str, float],
        tool: str = "riskset",
    ) -> BenchmarkRecord:
        """Measure, and keep the seconds for each unit of work of a ceiling in `known`."""
        times = steady(work.call, self.repeats, MIN_SECONDS_PER_REPETITION)
        each = times["fastest"] / work.count  # what disturbs a loop only makes it slower
        facts: dict[str, Any] = {}
        if tool == "machine":
            known[work.step] = each
        else:
            least = sum(often * known[name] for name, often in work.needs.items())
            names = [
                name if often == 1 else f"{often:.2g} {name}" for name, often in work.needs.items()
            ]
            facts = {
                "ceiling": _rate(least, work.unit),
                "share": least / each,
                "note": " + ".join(names),
            }
        return case.record(
            tool=tool, threads=runtime.n_threads, step=work.step, rate=_rate(each, work.unit),
            unit=work.unit, **facts, **times,
        )  # fmt: skip

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """How much of its ceiling every kernel reaches."""
        groups = {}
        for (n, threads), found in grouped([r for r in records if r.share], "n_rows", "threads"):
            suffix = "" if threads == 1 else "s"
            title = f"{n:,} rows, {threads} thread{suffix}"
            groups[title] = {r.step: 100 * float(r.share or 0) for r in found}
        return time_bars(groups, xlabel="% of the ceiling")


def _rate(each: float, unit: str) -> float:
    """Seconds for each byte, number or word, in the unit of a table."""
    return 1e9 * each if unit == NS else 1e-9 / each
