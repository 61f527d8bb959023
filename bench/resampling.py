"""Time of cross-validation and of the bootstrap on simulated data, beside the fit that they repeat.

The design is that of `fit.py`. Cross-validation compares five penalties, Laplace priors of variance
0.1, 0.01, 0.0042, 0.001 and 0.0001, and fits the best one to all rows; the bootstrap draws the rows
anew around the fit with variance 0.01.
"""

import argparse
import statistics
import time
from collections.abc import Callable

from rich import box
from rich.console import Console
from rich.table import Table

import riskset as rs
from fit import MODELS, spread
from riskset._runtime import available_threads

VARIANCES = (0.0001, 0.001, 0.0042, 0.01, 0.1)
OF_BOOTSTRAP = 0.01
CV = {"cox": rs.CoxCV, "finegray": rs.FineGrayCV}


def timed(work: Callable[[], object], times: int) -> tuple[list[float], object]:
    taken, result = [], None
    for _ in range(times):
        start = time.perf_counter()
        result = work()
        taken.append(time.perf_counter() - start)
    return taken, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="cox")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--replicates", type=int, default=200)
    options = parser.parse_args()

    estimator, simulate = MODELS[options.model]
    cohort = simulate(options.rows, options.columns, options.density)
    design, y = rs.Design.from_sparse(cohort.X), cohort.y
    penalties = [rs.L1.from_variance(v) for v in VARIANCES]

    def validate(repeats: int) -> rs.CoxCV | rs.FineGrayCV:
        return CV[options.model](penalties=penalties, search="grid", repeats=repeats).fit(design, y)

    model = estimator(rs.L1.from_variance(OF_BOOTSTRAP)).fit(design, y)
    validate(1)  # compiles
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title_justify="left",
        title=f"{estimator.__name__}: {options.rows:,} rows, {options.columns:,} columns, "
        f"{available_threads()} threads",
    )
    table.add_column("")
    table.add_column("seconds: median (range)")
    table.add_column("in fits", justify="right")
    table.add_column("largest KKT residual", justify="right")
    fitting, _ = timed(lambda: model.fit(design, y), options.repeats)
    unit = statistics.median(fitting)
    table.add_row("one fit", spread(fitting), "1.0", f"{model.kkt_:.1e}")
    for repeats, times in ((1, options.repeats), (10, 1)):
        taken, best = timed(lambda r=repeats: validate(r), times)
        kkt = float(best.cross_validation_.kkt.max())
        name = f"10 folds x {repeats}, 5 penalties, and the fit"
        table.add_row(name, spread(taken), f"{statistics.median(taken) / unit:.0f}", f"{kkt:.1e}")
    columns = list(design.names[:1])
    taken, _ = timed(
        lambda: model.bootstrap(replicates=options.replicates, parameters=columns, seed=1), 1
    )
    name = f"{options.replicates} bootstrap replicates"
    table.add_row(name, spread(taken), f"{statistics.median(taken) / unit:.0f}", "")
    console = Console(width=100)
    console.print(table)
    console.print(f"best penalty     {best.best_penalty_}")


if __name__ == "__main__":
    main()
