"""The numbers of docs/scale.md: what the passes and the exchanges of a fit in blocks cost.

    python bench/exchanges.py [ROWS [COLUMNS]]

Local work is timed in this process, one block and one thread, in seconds of the processor;
messages, with their bytes, between this process and three workers on this machine, by the clock.
"""

import pickle
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import distributed
import numpy as np

import riskset as rs
from riskset.actors import DaskCrew

DENSITY = 0.05
PENALTY = rs.L1(1.1893)


def best(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Least and median seconds."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds), float(np.median(seconds))


class Counted:
    """A crew that notes the seconds, calls and bytes of each method."""

    def __init__(self, crew: Any) -> None:
        self.crew = crew
        self.now = time.perf_counter if isinstance(crew, DaskCrew) else time.process_time
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.sent: dict[str, list[int]] = defaultdict(list)
        self.received: dict[str, list[int]] = defaultdict(list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.crew, name)

    def call(self, method: str, *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        began = self.now()
        found: list[Any] = self.crew.call(method, *common, each=each)
        self.seconds[method].append(self.now() - began)
        self.sent[method].append(len(pickle.dumps((common, None if each is None else each[0]), 5)))
        self.received[method].append(len(pickle.dumps(found[0], 5)))
        return found

    def table(self) -> None:
        """Print what was counted, one block."""
        print(
            f"{'method':16} {'calls':>5} {'least ms':>9} {'median ms':>9} {'sent':>9} {'back':>9}"
        )
        for method, seconds in self.seconds.items():
            sent, back = max(self.sent[method]), max(self.received[method])
            milli = 1e3 * np.array(seconds)
            print(
                f"{method:16} {len(seconds):5} {milli.min():9.2f} {np.median(milli):9.2f} "
                f"{sent:9,} {back:9,}"
            )


def fit(model: Any, blocks: rs.Blocks) -> None:
    """Fit and print what it took."""
    blocks.crew = counted = Counted(blocks.crew)  # type: ignore[assignment]
    began = counted.now()
    model.fit(blocks)
    print(f"{type(model).__name__}: {counted.now() - began:.2f} s, {model.n_iter_} steps")
    counted.table()
    blocks.crew = counted.crew


class Echo:
    """An object that gives back what it is told."""

    def __init__(self, name: str, item: int, n_threads: int) -> None:
        pass

    def echo(self, x: np.ndarray) -> np.ndarray:
        """As it came."""
        return x


def echoes(n_blocks: int) -> None:
    """Messages without work: of a few numbers, and of vectors of a length each way."""
    crew = DaskCrew(Echo, [""] * n_blocks, range(n_blocks), 3)
    for size in (1, 1_000, 10_000, 1_000_000):
        x = np.zeros(size)
        least, median = best(partial(crew.call, "echo", x), 300 if size < 1e5 else 10)
        print(
            f"{n_blocks} blocks, {size:>9,} numbers each way: {1e3 * least:.2f} ms "
            f"(median {1e3 * median:.2f})"
        )


def main(n_rows: int, n_columns: int) -> None:
    """Everything."""
    drawn = rs.simulate_finegray(n_rows, n_columns, DENSITY, 123)
    design = rs.Design.from_csc(drawn.indptr, drawn.indices, None, n_rows)
    y = rs.Surv(drawn.time, drawn.event)
    only = rs.Surv(drawn.time, drawn.event == 1)
    print(
        f"{n_rows:,} rows, {n_columns:,} columns, design {design.nbytes / n_rows:.0f} bytes a row"
    )
    for model, outcome in ((rs.Cox(PENALTY), only), (rs.FineGray(PENALTY), y)):
        print("\n-- one block in this process, one thread")
        fit(model, rs.Blocks.split(design, outcome, n_blocks=1, engine=None))
        began = time.process_time()
        here = type(model)(PENALTY, n_threads=1, device="cpu").fit(design, outcome)
        spent = time.process_time() - began
        print(f"one machine, one thread: {spent:.2f} s, {here.n_iter_} steps, "
              f"differs by {np.abs(here.coef_ - model.coef_).max():.1e}")  # fmt: skip
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as made,
        distributed.Client(made),
    ):
        for n_blocks in (3, 12, 48):
            echoes(n_blocks)
        small = design.take_rows(np.arange(0, n_rows, max(1, n_rows // 30_000)))
        rows = np.arange(0, n_rows, max(1, n_rows // 30_000))
        print("\n-- 30,000 rows in three workers: messages, with little work")
        fit(rs.Cox(PENALTY), rs.Blocks.split(small, only[rows], n_blocks=3))
        fit(rs.FineGray(PENALTY), rs.Blocks.split(small, y[rows], n_blocks=3))
        print("\n-- all rows in three workers")
        fit(rs.Cox(PENALTY), rs.Blocks.split(design, only, n_blocks=3))


if __name__ == "__main__":
    main(*(int(size.replace("_", "")) for size in [*sys.argv[1:], "1_000_000", "1_000"][:2]))
