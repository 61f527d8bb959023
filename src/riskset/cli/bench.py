"""``riskset bench``: the experiments of the paper, as tables and pictures.

An experiment is a row of `COMMANDS`: where its class is, what its help says, and which options it
has, with their defaults; where there is none, the class has one.
"""

import importlib
import inspect
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from riskset._errors import InputError, counted
from riskset._progress import ProgressBar
from riskset.bench.works import DENSE, ESTIMANDS, SCALING, WorkKind, listed
from riskset.cli.options import for_typer, plain
from riskset.cli.terminal import output, plain_number
from riskset.cli.wording import COMMAND_LINE
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


class Flag(NamedTuple):
    """An option of experiments: its type, its help, and what the experiment calls it."""

    kind: Any
    about: str
    parameter: str
    flag: str


def _flag(name: str, kind: Any, about: str, parameter: str | None = None) -> Flag:
    return Flag(kind, about, parameter or name, f"--{name}")


def _about_works(kinds: Mapping[str, WorkKind], example: str) -> str:
    return (
        f"Measure this, such as {example}, or all sizes of a kind: {listed(kinds)}. May be "
        "repeated (default: everything)."
    )


FLAGS = {
    "model": _flag(
        "model",
        list[Literal["cox", "finegray"]] | None,
        "Fit this model. May be repeated (default: both).",
        "models",
    ),
    "sizes": _flag("rows", list[int] | None, "Draw this number of rows. May be repeated.", "rows"),
    "rows": _flag("rows", int, "Draw this number of rows."),
    "columns": _flag("columns", int, "Draw this number of covariates."),
    "density": _flag("density", float, "Set the share of ones in a column."),
    "strength": _flag(
        "strength",
        float | None,
        "Set the strength of the L1 penalty (default: sqrt(2 / 1.414)); 0 for no penalty.",
    ),
    "variance": _flag(
        "variance",
        list[float] | None,
        "Compare this Laplace variance, in place of a search. May be repeated.",
        "variances",
    ),
    "threads": _flag(
        "threads",
        list[int] | None,
        "Use this number of threads. May be repeated (default: one, two and all).",
    ),
    "cores": _flag("threads", int | None, "Use this number of threads (default: all).", "threads"),
    "solver": _flag(
        "solver",
        list[Literal["newton", "ccd"]] | None,
        "Fit by this solver. May be repeated (default: newton).",
        "solvers",
    ),
    "tol": _flag(
        "tol",
        list[float] | None,
        "Reach this relative KKT residual. May be repeated (default: 1e-4, 1e-6 and 1e-8).",
        "tols",
    ),
    "repeats": _flag("repeats", int, "Repeat each measurement this number of times."),
    "folds": _flag("folds", int, "Cross-validate with this number of folds."),
    "repetitions": _flag(
        "repeats", int, "Repeat the cross-validation this number of times.", "repeats"
    ),
    "replicates": _flag("replicates", int, "Draw this number of resamples."),
    "people": _flag("people", int, "Match this number of people."),
    "covariates": _flag("covariates", int, "Compute the balance of this number of covariates."),
    "dense_work": _flag(
        "work", list[str] | None, _about_works(DENSE, "path:300x2000x100"), "works"
    ),
    "estimand": _flag("work", list[str] | None, _about_works(ESTIMANDS, "logrank:100000"), "works"),
    "work": _flag("work", list[str] | None, _about_works(SCALING, "l1:100000x30000"), "works"),
    "tight": _flag(
        "tight",
        bool,
        "Also run the other programs at tight tolerances, for a KKT residual like riskset's.",
    ),
    "device": _flag("device", Literal["auto", "cpu", "cuda"], "Compute on this device."),
    "kernels_on": _flag("device", str, "Compute on this device: cpu or cuda."),
    "seed": _flag("seed", int, "Seed the random numbers of the data."),
    "peers": _flag("peers", bool, "Also let other installed programs solve the same problems."),
    "limit": _flag("limit", float, "Allow a fit of another program this number of seconds."),
    "python": _flag("python", str | None, "Run the other programs with this Python interpreter."),
    "out": _flag("out", Path, "Write NAME.csv, NAME.md and NAME.png to this folder."),
    "quiet": _flag("quiet", bool, "Print nothing."),
}

DATA = {"model": None, "sizes": None, "columns": 1000, "density": 0.05}
PEERS = {"peers": False, "limit": 600.0, "python": None}
EVERY = {"seed": 123, "out": Path("riskset-bench"), "quiet": False}
"""Options that every experiment has."""


@dataclass(frozen=True)
class Command:
    """One command; `experiment` has module and class, in `riskset.bench`."""

    name: str
    experiment: str
    about: str
    options: Mapping[str, object]


COMMANDS = (
    Command(
        "fixed",
        "fixed.Fixed",
        "Measure one fit with a fixed L1 penalty at several numbers of rows (section 3.2).",
        {**DATA, "strength": None, "threads": None, "solver": None, "repeats": 3, **PEERS,
         "device": "cpu"},
    ),
    Command(
        "crossval",
        "crossval.CrossValidate",
        "Measure cross-validation of the L1 penalty over rows and threads (section 3.3).",
        {**DATA, "folds": 10, "repetitions": 10, "variance": None, "threads": None, **PEERS,
         "device": "cpu"},
    ),
    Command(
        "bootstrap",
        "bootstrap.Resample",
        "Measure bootstrap replicates of a fit with a fixed L1 penalty, and that fit.",
        {**DATA, "replicates": 200, "device": "cpu"},
    ),
    Command(
        "solvers",
        "solvers.Solvers",
        "Compare passes, time and memory of coordinate descent, proximal gradient and Newton "
        "(section 2.9).",
        {**DATA, "tol": None, "repeats": 1},
    ),
    Command(
        "fusion",
        "fusion.Fusion",
        "Compare scans, transformation and reductions as separate and as fused kernels "
        "(section 3.1).",
        {"sizes": None, "kernels_on": "cpu", "repeats": 5},
    ),
    Command(
        "cohort",
        "cohort.CohortBenchmark",
        "Measure a cohort of the size of the real study, from the penalty to intervals "
        "(section 3.4).",
        {"model": None, "rows": 434_866, "columns": 9_811, "folds": 10, "repetitions": 10,
         "replicates": 200, "cores": None, "device": "cpu"},
    ),
    Command(
        "study",
        "study.StudyBenchmark",
        "Measure propensity score, matching and balance at the sizes of claims data.",
        {"rows": 434_866, "columns": 9_811, "folds": 10, "repetitions": 1, "people": 1_000_000,
         "covariates": 10_000, "cores": None},
    ),
    Command(
        "scaling",
        "scaling.Scaling",
        "Measure sparse tables with many rows and columns, curves of many rows, and how the cost "
        "of a fit grows.",
        {"work": None, "threads": None, "density": 0.05, "repeats": 3, **PEERS, "tight": False},
    ),
    Command(
        "dense",
        "dense.Dense",
        "Measure fits without a penalty, paths and cross-validation on dense tables.",
        {"dense_work": None, "threads": None, "repeats": 3, **PEERS, "tight": False},
    ),
    Command(
        "estimands",
        "estimands.Estimands",
        "Measure what is estimated beside the hazard ratio: predictions, restricted means, tests, "
        "curves, rows with start and stop, adjustment.",
        {"estimand": None, "rows": 1_000_000, "repeats": 3, **PEERS},
    ),
    Command(
        "ceilings",
        "ceilings.Ceilings",
        "Measure the limits of this machine, and how close the kernels of riskset come to them.",
        {"sizes": None, "columns": 1000, "density": 0.05, "threads": None, "repeats": 25},
    ),
)  # fmt: skip


def _as_function(command: Command) -> Callable[..., None]:
    """What typer calls: a function that has the options of a command as parameters."""
    options = {**command.options, **EVERY}

    def call(**values: Any) -> None:
        COMMAND_LINE.options = {FLAGS[name].parameter: FLAGS[name].flag for name in options}
        given = {name: plain(value) for name, value in values.items()}
        out, quiet = given.pop("out"), given.pop("quiet")
        check_folder(out)
        module, kind = command.experiment.split(".")
        # Here, because it brings everything.
        made = getattr(importlib.import_module(f"riskset.bench.{module}"), kind)
        peers = _peers(given)
        if command.options.keys() & PEERS.keys():
            given["peers"] = peers
        _run(made(**_checked(given)), out, quiet)

    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[
                for_typer(FLAGS[name].kind),
                typer.Option(FLAGS[name].flag, help=FLAGS[name].about),
            ],
        )
        for name, default in options.items()
    ]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__doc__ = command.about
    return call


for one in COMMANDS:
    bench.command(one.name)(_as_function(one))


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an experiment: what was not left to its default, all numbers positive."""
    arguments = {}
    for name, value in given.items():
        if value is None or value == []:
            continue
        if name == "density" and value > 1:
            raise InputError(
                f"--density must be at most 1, but {value} was given.",
                hint="it is the share of ones in a column.",
            )
        may_be_zero = name == "strength"
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, bool) or not isinstance(number, int | float) or number > 0:
                continue
            if number < 0 or not may_be_zero:
                must = "not be negative" if may_be_zero else "be positive"
                raise InputError(
                    f"{FLAGS[name].flag} must {must}, but {number} was given.",
                    hint="leave it out for the default.",
                )
        arguments[FLAGS[name].parameter] = tuple(value) if isinstance(value, list) else value
    return arguments


def _peers(given: dict[str, Any]) -> "Peers | None":
    """Other programs, if they are asked for; takes their options away."""
    is_wanted, limit, python = (given.pop(name, None) for name in PEERS)
    _checked({"limit": limit})
    if not is_wanted:
        return None
    if python is not None and shutil.which(python) is None:
        raise InputError(
            f"--python {python!r} is not a program that can be run.",
            hint="name the interpreter of the environment that has the other programs.",
        )
    from riskset.bench.peers import Peers

    return Peers.find(limit, python)


def _run(experiment: "Experiment", out: Path, quiet: bool) -> None:
    from riskset.bench.experiment import run

    console = output()

    def show(record: "BenchmarkRecord") -> None:
        if quiet:
            return
        size = "" if record.n_rows is None else f"{counted(record.n_rows, 'row')}, "
        time = "" if record.seconds is None else f"{plain_number(record.seconds, 3)} s"
        kkt = "" if record.kkt is None else f"KKT {record.kkt:.0e}"
        rate = "" if record.rate is None else f"{plain_number(record.rate, 3)} {record.unit}"
        threads = "" if record.threads is None else counted(record.threads, "thread")
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
