"""``riskset simulate``: data with known truth, in files."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from riskset._errors import InputError
from riskset.cli.options import chosen, given, grouped, option
from riskset.cli.terminal import facts, output
from riskset.data.writers import check_folder

__all__ = ["simulate"]

COHORT = "Options of cohort"
DesignKind = Literal["cox", "finegray", "cohort", "toy-cdm"]
SEED = 123
TOY_PERSONS = 2000


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """What is drawn, and where it goes."""

    out: Path = option("Write the files to this folder.", ..., metavar="DIR")
    rows: int | None = option(
        f"Draw this number of rows; toy-cdm: of people (default {TOY_PERSONS}).",
        of="n_rows",
        also=("n_persons",),
    )
    columns: int | None = option("Draw this number of binary covariates.", of="n_covariates")
    density: float | None = option(
        "Set the mean share of ones in a column (default 0.05; of `cohort` 0.0289)."
    )
    competing: float | None = option(
        "cohort: give this share of rows a competing event (default 0).", panel=COHORT
    )
    treated: float | None = option(
        "cohort: give about this share of rows the treatment (default 0.5).", panel=COHORT
    )
    confounding: float | None = option(
        "cohort: set the strength of confounding, which is the effect of the baseline risk on the "
        "treatment (default 0.1; 1 is strong).",
        panel=COHORT,
    )
    treatment_apart: bool = option(
        "cohort: write the treatment as a column of outcomes.parquet, as `riskset study` needs it.",
        False,
        panel=COHORT,
    )
    seed: int | None = option(f"Seed the random numbers (default {SEED}); toy-cdm has no seed.")
    quiet: bool = option("Print nothing.", False)


@grouped
def simulate(
    kind: Annotated[DesignKind, typer.Argument(help="Draw from this design.")],
    *,
    options: SimulateOptions,
) -> None:
    """Draw a cohort with known coefficients, or a toy OMOP CDM, into Parquet files.

    `cox` has one kind of event and columns of equal density, and `finegray` also has a competing
    event. `cohort` resembles claims data: columns from rare to common, few events, and the
    treatment as the last column. DIR gets outcomes.parquet (rowId, time, y), covariates.parquet
    (rowId, covariateId) and truth.parquet (covariateId, coef), which `riskset fit` reads without
    further options. With --treatment-apart, `riskset study run` reads them with the specification
    that `riskset study example paper` prints.

    `toy-cdm` writes one file per table of a small OMOP CDM 5.4, always the same.
    """
    if kind == "toy-cdm":
        _refuse(kind, given(options, "columns", "density", "seed"))
    if kind != "cohort":
        _refuse(kind, given(options, "competing", "treated", "confounding", "treatment_apart"))
    if kind == "toy-cdm":
        _toy_cdm(TOY_PERSONS if options.rows is None else options.rows, options)
        return
    for flag, number in (("--rows", options.rows), ("--columns", options.columns)):
        if number is None:
            raise InputError(f"{kind} needs {flag}.", hint="for example 1000.")
    _cohort(kind, options)


def _refuse(kind: str, flags: list[str]) -> None:
    """Options that belong to other kinds."""
    for flag in flags[:1]:
        raise InputError(f"{kind} does not have the option {flag}.", hint="leave it out.")


def _cohort(kind: str, options: SimulateOptions) -> None:
    # Here, because it brings NumPy and pyarrow, which `riskset --help` does not wait for.
    from riskset.simulate import CohortDesign, CoxDesign, FineGrayDesign, save_cohort

    arguments = {"seed": SEED} | chosen(options)
    for name in ("out", "quiet", "treatment_apart"):
        del arguments[name]
    kinds = {"cox": CoxDesign, "finegray": FineGrayDesign, "cohort": CohortDesign}
    design: Any = kinds[kind](**arguments)
    check_folder(options.out)
    options.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    n_entries = save_cohort(design, options.out, treatment_apart=options.treatment_apart)
    rows = {
        "rows": f"{options.rows:,}",
        "covariates": f"{options.columns:,}, {(design.coef != 0).sum():,} with an effect",
        "entries": f"{n_entries:,}",
    }
    _print(rows, options, time.perf_counter() - start)


def _toy_cdm(persons: int, options: SimulateOptions) -> None:
    from riskset.simulate import toy_cdm

    start = time.perf_counter()
    written = toy_cdm(options.out, persons, file_format="parquet")
    rows = {name: f"{n_rows:,}" for name, n_rows in written.items()}
    _print(rows, options, time.perf_counter() - start)


def _print(rows: Mapping[str, str], options: SimulateOptions, seconds: float) -> None:
    if options.quiet:
        return
    table = facts()
    more = {"written to": str(options.out), "seconds": f"{seconds:.1f}"}
    for name, words in {**rows, **more}.items():
        table.add_row(name, words)
    output().print(table)
