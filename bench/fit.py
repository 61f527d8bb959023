"""Time and memory of one penalised fit on simulated data, beside one product X' r of scipy.

The problem is the fixed-penalty experiment of Yang, Schuemie, Ji and Suchard (2024): binary
covariates with 5 % ones and the L1 strength sqrt(2 / 1.414), a Laplace prior of variance 1.414.
Reading the covariates once is the least that any first-order method does per step, which makes the
product a unit of time that moves with the machine.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.base import clone

import riskset as rs
from riskset._runtime import available_threads

STRENGTH = math.sqrt(2 / 1.414)
TOLERANCE = 1e-8
MODELS = {
    "cox": (rs.Cox, rs.simulate_cox),
    "finegray": (rs.FineGray, rs.simulate_finegray),
}
STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def seconds(work: Callable[[], object], repeats: int) -> list[float]:
    """Wall-clock time of each call."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def memory(field: str) -> float | None:
    """Resident memory of this process in megabytes, now (VmRSS) or at its peak (VmHWM)."""
    if not STATUS.exists():
        return None
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def forget_peak() -> bool:
    """Let VmHWM start from the present (Linux only)."""
    try:
        CLEAR.write_text("5")
    except OSError:
        return False
    return True


def spread(taken: list[float]) -> str:
    middle = statistics.median(taken)
    if len(taken) == 1:
        return f"{middle:.3f}"
    return f"{middle:.3f}  ({min(taken):.3f} to {max(taken):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="cox")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--solver", choices=["newton", "ccd"], default="newton")
    options = parser.parse_args()

    estimator, simulate = MODELS[options.model]
    newton = estimator(penalty=rs.L1(STRENGTH), tol=TOLERANCE, n_threads=options.threads)
    model = clone(newton).set_params(solver=options.solver, max_iter=1000)
    small = simulate(2000, 40)
    compiling = seconds(lambda: model.fit(small.X, small.y), 1)

    cohort = simulate(options.rows, options.columns, options.density)
    X, y = cohort.X, cohort.y
    residual = np.random.default_rng(1).normal(size=options.rows)

    before = memory("VmRSS")
    is_reset = forget_peak()
    design = rs.Design.from_sparse(X)
    model.fit(design, y)
    peak = memory("VmHWM")

    product = seconds(lambda: X.T @ residual, options.repeats)
    building = seconds(lambda: rs.Design.from_sparse(X), options.repeats)
    fitting = seconds(lambda: model.fit(design, y), options.repeats)

    unit = statistics.median(product)
    threads = options.threads or available_threads()
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title_justify="left",
        title=f"{estimator.__name__}: {options.rows:,} rows, {options.columns:,} columns, "
        f"{X.nnz:,} entries",
    )
    table.add_column("")
    table.add_column("seconds: median (range)")
    table.add_column("in products", justify="right")
    rows = [
        ("X.T @ r, scipy, 1 thread", product),
        ("Design.from_sparse(X)", building),
        (f"{estimator.__name__}.fit(design, y), {threads} threads", fitting),
    ]
    if options.solver != "newton":
        newton.fit(design, y)
        rows.append(("the same, solver='newton'", seconds(lambda: newton.fit(design, y), 5)))
    for name, taken in rows:
        table.add_row(name, spread(taken), f"{statistics.median(taken) / unit:.1f}")
    table.add_row("kernels, first call", spread(compiling), "")
    console = Console(width=80)
    console.print(table)
    console.print(f"objective        {-model.objective_:.7f}  (log likelihood minus penalty)")
    unit_of_work = "steps" if options.solver == "newton" else "sweeps"
    done = f"{model.status_}, {model.n_iter_} {unit_of_work}"
    console.print(f"KKT residual     {model.kkt_:.1e}  {done}")
    if options.solver != "newton":
        ratio = statistics.median(fitting) / statistics.median(rows[-1][1])
        gap = abs(model.objective_ - newton.objective_) / abs(newton.objective_)
        console.print(
            f"beside Newton    {ratio:.0f} times its time; its KKT residual {newton.kkt_:.1e}, "
            f"{newton.n_iter_} steps; objectives differ by {gap:.0e}"
        )
    console.print(f"non-zero         {np.count_nonzero(model.coef_):,} of {options.columns:,}")
    input_size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    if before is not None and peak is not None and is_reset:
        console.print(
            f"peak memory      {peak - before:,.0f} MB beyond the input of {input_size:,.0f}"
        )


if __name__ == "__main__":
    main()
