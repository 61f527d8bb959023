"""``riskset simulate``: a cohort with known truth, in files."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from riskset.cli.terminal import facts, output
from riskset.data.writers import check_folder

__all__ = ["simulate"]


class Kind(StrEnum):
    """Which of the designs."""

    cox = "cox"
    finegray = "finegray"
    cohort = "cohort"


def simulate(
    kind: Annotated[Kind, typer.Argument(help="What is drawn.")],
    rows: Annotated[int, typer.Option("--rows", help="Rows of the cohort.")],
    columns: Annotated[int, typer.Option("--columns", help="Binary covariates.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the three files.")],
    density: Annotated[
        float | None,
        typer.Option(
            "--density", help="Mean share of ones in a column (default 0.05, in a cohort 0.0289)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed, the same cohort.")] = 123,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Draw a cohort with known coefficients into Parquet files.

    `cox` has one kind of event and columns of equal density, `finegray` a competing event too;
    `cohort` is like claims data: columns from rare to common, few events, the treatment last.

    OUT gets outcomes.parquet (rowId, time, y), covariates.parquet (rowId, covariateId) and
    truth.parquet (covariateId, coef), which `riskset fit` reads without further options.
    """
    # Here, because it brings NumPy and pyarrow, which `riskset --help` does not wait for.
    from riskset.simulate import CohortDesign, CoxDesign, FineGrayDesign, save_cohort

    kinds = {Kind.cox: CoxDesign, Kind.finegray: FineGrayDesign, Kind.cohort: CohortDesign}
    options = {} if density is None else {"density": density}
    design = kinds[kind](rows, columns, seed=seed, **options)
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    n_entries = save_cohort(design, out)
    if quiet:
        return
    table = facts()
    table.add_row("rows", f"{rows:,}")
    table.add_row("covariates", f"{columns:,}, {(design.coef != 0).sum():,} with an effect")
    table.add_row("entries", f"{n_entries:,}")
    table.add_row("written to", str(out))
    table.add_row("seconds", f"{time.perf_counter() - start:.1f}")
    output().print(table)
