"""``riskset bench``: the experiments of the paper, as tables and pictures."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from riskset._errors import InputError
from riskset._progress import ProgressBar
from riskset.cli import options as opt
from riskset.cli.terminal import output, plain_number
from riskset.data.writers import check_folder

if TYPE_CHECKING:
    from riskset.bench.experiment import Experiment
    from riskset.bench.peers import Peers
    from riskset.bench.record import BenchmarkRecord

__all__ = ["bench"]

bench = typer.Typer(
    help="Reproduce the experiments of the paper, each as a table and a picture.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


class Solver(StrEnum):
    """How the minimum is found."""

    newton = "newton"
    ccd = "ccd"


Models = Annotated[
    list[opt.Model] | None, typer.Option("--model", help="cox or finegray; repeat (default both).")
]
Rows = Annotated[
    list[int] | None, typer.Option("--rows", help="Sizes; repeat (default those of the paper).")
]
Columns = Annotated[int, typer.Option("--columns", help="Covariates.")]
Density = Annotated[float, typer.Option("--density", help="Share of ones in a column.")]
Threads = Annotated[
    list[int] | None,
    typer.Option("--threads", help="Numbers of threads; repeat (default one, two and all)."),
]
Repeats = Annotated[int, typer.Option("--repeats", help="Repetitions of each measurement.")]
Folds = Annotated[int, typer.Option("--folds", help="Folds of the cross-validation.")]
Repetitions = Annotated[int, typer.Option("--repeats", help="Repetitions of the cross-validation.")]
Device = Annotated[opt.Device, typer.Option("--device", help="Where riskset computes.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed, the same data.")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for NAME.csv, .md, .png.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing.")]
AskPeers = Annotated[
    bool,
    typer.Option("--peers", help="Let other programs that are installed solve the same problems."),
]
Limit = Annotated[float, typer.Option("--limit", help="Seconds that a fit of a peer may take.")]
Interpreter = Annotated[
    str | None,
    typer.Option("--python", metavar="PATH", help="Interpreter whose packages are the peers."),
]

OUT = Path("riskset-bench")
LIMIT = 600.0
PLURALS = ("model", "solver", "tol", "variance")
"""Options that may be repeated, and that experiments call by their plural."""


@bench.command()
def fixed(
    model: Models = None,
    rows: Rows = None,
    columns: Columns = 1000,
    density: Density = 0.05,
    strength: Annotated[
        float | None,
        typer.Option("--strength", help="L1 strength (default sqrt(2 / 1.414)); 0: no penalty."),
    ] = None,
    threads: Threads = None,
    solver: Annotated[
        list[Solver] | None, typer.Option("--solver", help="newton or ccd; repeat.")
    ] = None,
    repeats: Repeats = 3,
    peers: AskPeers = False,
    limit: Limit = LIMIT,
    python: Interpreter = None,
    device: Device = opt.Device.cpu,
    seed: Seed = 123,
    out: Out = OUT,
    quiet: Quiet = False,
) -> None:
    """One fit with a fixed L1 penalty, over numbers of rows (section 3.2)."""
    check_folder(out)
    # Here and below, because it brings everything.
    from riskset.bench.fixed import Fixed

    given = _given(
        model=model, rows=rows, threads=threads, strength=strength, solver=solver,
        columns=columns, repeats=repeats,
    )  # fmt: skip
    found = _peers(peers, limit, python)
    experiment = Fixed(density=density, device=device.value, seed=seed, peers=found, **given)
    _run(experiment, out, quiet)


@bench.command()
def crossval(
    model: Models = None,
    rows: Rows = None,
    columns: Columns = 1000,
    density: Density = 0.05,
    folds: Folds = 10,
    repeats: Repetitions = 10,
    variance: Annotated[
        list[float] | None,
        typer.Option("--variance", help="Laplace variances to compare, instead of a search."),
    ] = None,
    threads: Threads = None,
    peers: AskPeers = False,
    limit: Limit = LIMIT,
    python: Interpreter = None,
    device: Device = opt.Device.cpu,
    seed: Seed = 123,
    out: Out = OUT,
    quiet: Quiet = False,
) -> None:
    """Cross-validation of the L1 penalty, over rows and threads (section 3.3)."""
    check_folder(out)
    from riskset.bench.crossval import CrossValidate

    given = _given(
        model=model, rows=rows, threads=threads, variance=variance, columns=columns, folds=folds,
        repeats=repeats,
    )  # fmt: skip
    found = _peers(peers, limit, python)
    experiment = CrossValidate(
        density=density, device=device.value, seed=seed, peers=found, **given
    )
    _run(experiment, out, quiet)


@bench.command()
def bootstrap(
    model: Models = None,
    rows: Annotated[
        list[int] | None, typer.Option("--rows", help="Sizes; repeat (default 100,000).")
    ] = None,
    columns: Columns = 1000,
    density: Density = 0.05,
    replicates: Annotated[int, typer.Option("--replicates", help="Resamples.")] = 200,
    device: Device = opt.Device.cpu,
    seed: Seed = 123,
    out: Out = OUT,
    quiet: Quiet = False,
) -> None:
    """Bootstrap replicates of a fit with a fixed L1 penalty, beside that fit."""
    check_folder(out)
    from riskset.bench.bootstrap import Resample

    given = _given(model=model, rows=rows, columns=columns, replicates=replicates)
    _run(Resample(density=density, device=device.value, seed=seed, **given), out, quiet)


@bench.command()
def solvers(
    model: Models = None,
    rows: Annotated[
        list[int] | None, typer.Option("--rows", help="Sizes; repeat (default 100,000).")
    ] = None,
    columns: Columns = 1000,
    density: Density = 0.05,
    tol: Annotated[
        list[float] | None, typer.Option("--tol", help="KKT residuals; repeat (1e-4, 1e-6, 1e-8).")
    ] = None,
    repeats: Repeats = 1,
    seed: Seed = 123,
    out: Out = OUT,
    quiet: Quiet = False,
) -> None:
    """Coordinate descent, proximal gradient, Newton: passes, time, memory (section 2.9)."""
    check_folder(out)
    from riskset.bench.solvers import Solvers

    given = _given(model=model, rows=rows, tol=tol, columns=columns, repeats=repeats)
    _run(Solvers(density=density, seed=seed, **given), out, quiet)


@bench.command()
def fusion(
    rows: Rows = None,
    device: Annotated[str, typer.Option("--device", help="Where: cpu or cuda.")] = "cpu",
    repeats: Repeats = 5,
    seed: Seed = 123,
    out: Out = OUT,
    quiet: Quiet = False,
) -> None:
    """Scans, transformation and reductions, apart and fused (section 3.1)."""
    check_folder(out)
    from riskset.bench.fusion import Fusion

    _run(Fusion(device=device, seed=seed, **_given(rows=rows, repeats=repeats)), out, quiet)


@bench.command()
def cohort(
    model: Models = None,
    rows: Annotated[int, typer.Option("--rows", help="Rows of the cohort.")] = 434_866,
    columns: Columns = 9_811,
    folds: Folds = 10,
    repeats: Repetitions = 10,
    replicates: Annotated[
        int, typer.Option("--replicates", help="Of the bootstrap of the treatment.")
    ] = 200,
    threads: Annotated[int | None, typer.Option("--threads", help="Default: every core.")] = None,
    device: Device = opt.Device.cpu,
    seed: Seed = 123,
    out: Out = OUT,
    quiet: Quiet = False,
) -> None:
    """A cohort of the size of the real study, from the penalty to intervals (section 3.4)."""
    check_folder(out)
    from riskset.bench.cohort import CohortBenchmark

    given = _given(
        model=model, rows=rows, columns=columns, folds=folds, repeats=repeats,
        replicates=replicates, threads=threads,
    )  # fmt: skip
    _run(CohortBenchmark(device=device.value, seed=seed, **given), out, quiet)


@bench.command()
def study(
    rows: Annotated[
        int, typer.Option("--rows", help="People whose propensity score is estimated.")
    ] = 434_866,
    columns: Annotated[int, typer.Option("--columns", help="Covariates of that score.")] = 9_811,
    folds: Folds = 10,
    repeats: Repetitions = 1,
    people: Annotated[
        int, typer.Option("--people", help="People who are matched, and whose balance is sought.")
    ] = 1_000_000,
    covariates: Annotated[
        int, typer.Option("--covariates", help="Covariates whose balance is sought.")
    ] = 10_000,
    threads: Annotated[int | None, typer.Option("--threads", help="Default: every core.")] = None,
    seed: Seed = 123,
    out: Out = OUT,
    quiet: Quiet = False,
) -> None:
    """Propensity score, matching and balance, at the sizes of claims data."""
    check_folder(out)
    from riskset.bench.study import StudyBenchmark

    given = _given(
        rows=rows, columns=columns, folds=folds, repeats=repeats, people=people,
        covariates=covariates, threads=threads,
    )  # fmt: skip
    _run(StudyBenchmark(seed=seed, **given), out, quiet)


@bench.command()
def scaling(
    model: Models = None,
    rows: Annotated[int, typer.Option("--rows", help="Rows in the middle of the plot.")] = 100_000,
    columns: Columns = 1000,
    density: Density = 0.05,
    repeats: Repeats = 3,
    seed: Seed = 123,
    out: Out = OUT,
    quiet: Quiet = False,
) -> None:
    """Cost of a fit against threads, rows, columns, density and events."""
    check_folder(out)
    from riskset.bench.scaling import Scaling

    given = _given(model=model, rows=rows, columns=columns, repeats=repeats)
    _run(Scaling(density=density, seed=seed, **given), out, quiet)


@bench.command()
def ceilings(
    rows: Annotated[
        list[int] | None, typer.Option("--rows", help="Sizes; repeat (default 100,000).")
    ] = None,
    columns: Columns = 1000,
    density: Density = 0.05,
    threads: Threads = None,
    repeats: Repeats = 25,
    seed: Seed = 123,
    out: Out = OUT,
    quiet: Quiet = False,
) -> None:
    """What the machine can do at most, and what the kernels of riskset reach of it."""
    check_folder(out)
    from riskset.bench.ceilings import Ceilings

    given = _given(rows=rows, columns=columns, threads=threads, repeats=repeats)
    _run(Ceilings(density=density, seed=seed, **given), out, quiet)


def _given(**options: Any) -> dict[str, Any]:
    """What was not left to its default, by the names of the experiments; all are checked."""
    given = {}
    for name, value in options.items():
        if value is None or value == []:
            continue
        several = tuple(value) if isinstance(value, list) else (value,)
        for one in several:
            may_be_zero = name == "strength"
            if not isinstance(one, str) and (one < 0 or (one == 0 and not may_be_zero)):
                must = "not be negative" if may_be_zero else "be positive"
                raise InputError(
                    f"--{name} must {must}, but {one} was given.",
                    hint="leave it out for the default.",
                )
        words = tuple(one.value if isinstance(one, StrEnum) else one for one in several)
        plural = f"{name}s" if name in PLURALS else name
        given[plural] = words if isinstance(value, list) else words[0]
    return given


def _peers(is_wanted: bool, limit: float, python: str | None) -> "Peers | None":
    if not is_wanted:
        return None
    from riskset.bench.peers import Peers

    return Peers.find(limit, python)


def _run(experiment: "Experiment", out: Path, quiet: bool) -> None:
    from riskset.bench.experiment import run

    console = output()

    def show(record: "BenchmarkRecord") -> None:
        if quiet:
            return
        size = "" if record.n_rows is None else f"{record.n_rows:,} rows, "
        time = "" if record.seconds is None else f"{plain_number(record.seconds, 3)} s"
        kkt = "" if record.kkt is None else f"KKT {record.kkt:.0e}"
        rate = "" if record.rate is None else f"{plain_number(record.rate, 3)} {record.unit}"
        threads = "" if record.threads is None else f"{record.threads} threads"
        words = (f"{record.tool} {record.step}", threads, time, rate, kkt, record.note)
        said = "; ".join(word for word in words if word)
        console.print(f"{record.model} {size}{said}".strip(), markup=False, soft_wrap=True)

    with ProgressBar(experiment.name, False if quiet else None) as bar:
        written = run(experiment, out, bar.update, show)
    if quiet:
        return
    if experiment.peers is not None:
        for line in experiment.peers.preface:
            console.print(line, markup=False, soft_wrap=True)
    console.print(f"written to {written.csv}, {written.markdown.name}, {written.picture.name}")
