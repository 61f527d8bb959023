"""``riskset simulate``: data with known truth, in files."""

import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from riskset._errors import InputError
from riskset.cli.terminal import facts, output
from riskset.data.writers import check_folder

__all__ = ["simulate"]

SEED = 123
TOY_PERSONS = 2000


class Kind(StrEnum):
    """Which of the designs."""

    cox = "cox"
    finegray = "finegray"
    cohort = "cohort"
    toy_cdm = "toy-cdm"


def simulate(
    kind: Annotated[Kind, typer.Argument(help="What is drawn.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the files.")],
    rows: Annotated[
        int | None,
        typer.Option("--rows", help=f"Rows of the cohort; people of toy-cdm ({TOY_PERSONS})."),
    ] = None,
    columns: Annotated[int | None, typer.Option("--columns", help="Binary covariates.")] = None,
    density: Annotated[
        float | None,
        typer.Option(
            "--density", help="Mean share of ones in a column (default 0.05, in a cohort 0.0289)."
        ),
    ] = None,
    competing: Annotated[
        float | None,
        typer.Option("--competing", help="Of `cohort`: share of rows with a competing event (0)."),
    ] = None,
    treated: Annotated[
        float | None,
        typer.Option("--treated", help="Of `cohort`: about the share with the treatment (0.5)."),
    ] = None,
    confounding: Annotated[
        float | None,
        typer.Option(
            "--confounding",
            help="Of `cohort`: how much those at risk rather have the treatment (0.1; 1 is a lot).",
        ),
    ] = None,
    treatment_apart: Annotated[
        bool,
        typer.Option(
            "--treatment-apart",
            help="Of `cohort`: the treatment is a column of outcomes.parquet, as a study wants it.",
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help=f"The same seed, the same cohort ({SEED}); toy-cdm has none."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Draw a cohort with known coefficients, or a toy OMOP CDM, into Parquet files.

    `cox` has one kind of event and columns of equal density, `finegray` a competing event too;
    `cohort` is like claims data: columns from rare to common, few events, the treatment last.
    OUT gets outcomes.parquet (rowId, time, y), covariates.parquet (rowId, covariateId) and
    truth.parquet (covariateId, coef), which `riskset fit` reads without further options. With
    --treatment-apart, `riskset study run` reads them as `riskset study example paper` says.

    `toy-cdm` makes a file of each table of a small OMOP CDM 5.4, the same one every time.
    """
    if kind is Kind.toy_cdm:
        _refuse(kind, {"--columns": columns, "--density": density, "--seed": seed})
    of_cohort = {"competing": competing, "treated": treated, "confounding": confounding}
    if kind is not Kind.cohort:
        _refuse(kind, {f"--{name}": value for name, value in of_cohort.items()})
        _refuse(kind, {"--treatment-apart": treatment_apart or None})
    if kind is Kind.toy_cdm:
        _toy_cdm(TOY_PERSONS if rows is None else rows, out, quiet)
        return
    if rows is None or columns is None:
        missing = "--rows" if rows is None else "--columns"
        raise InputError(f"{kind.value} needs {missing}.", hint="for example 1000.")
    options = {"density": density, "seed": SEED if seed is None else seed, **of_cohort}
    given = {name: value for name, value in options.items() if value is not None}
    _cohort(kind, rows, columns, given, treatment_apart, out, quiet)


def _refuse(kind: Kind, given: Mapping[str, object]) -> None:
    """Options that are of other kinds."""
    for option, value in given.items():
        if value is not None:
            raise InputError(f"{kind.value} has no {option}.", hint="leave it out.")


def _cohort(
    kind: Kind,
    rows: int,
    columns: int,
    options: Mapping[str, Any],
    treatment_apart: bool,
    out: Path,
    quiet: bool,
) -> None:
    # Here, because it brings NumPy and pyarrow, which `riskset --help` does not wait for.
    from riskset.simulate import CohortDesign, CoxDesign, FineGrayDesign, save_cohort

    kinds = {Kind.cox: CoxDesign, Kind.finegray: FineGrayDesign, Kind.cohort: CohortDesign}
    design = kinds[kind](rows, columns, **options)
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    n_entries = save_cohort(design, out, treatment_apart=treatment_apart)
    if quiet:
        return
    table = facts()
    table.add_row("rows", f"{rows:,}")
    table.add_row("covariates", f"{columns:,}, {(design.coef != 0).sum():,} with an effect")
    table.add_row("entries", f"{n_entries:,}")
    table.add_row("written to", str(out))
    table.add_row("seconds", f"{time.perf_counter() - start:.1f}")
    output().print(table)


def _toy_cdm(persons: int, out: Path, quiet: bool) -> None:
    from riskset.simulate import toy_cdm

    start = time.perf_counter()
    written = toy_cdm(out, persons, file_format="parquet")
    if quiet:
        return
    table = facts()
    for name, n_rows in written.items():
        table.add_row(name, f"{n_rows:,}")
    table.add_row("written to", str(out))
    table.add_row("seconds", f"{time.perf_counter() - start:.1f}")
    output().print(table)
