"""``riskset demo``: a whole study of the bundled cohort, from a file to a report."""

from pathlib import Path
from typing import Annotated

import typer

from riskset.cli.study import show_estimates
from riskset.cli.terminal import facts, output, progress_of, short

__all__ = ["demo"]


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Write the results to this folder.")
    ] = Path("riskset-demo"),
) -> None:
    """Estimate a treatment effect in a real cohort, in five ways, with a report.

    The cohort has 5,735 critically ill patients of the SUPPORT study (Connors et al. 1996), of whom
    2,184 had a right heart catheter within the first day. Does it change survival? DIR keeps all
    steps, so a second run is quick. `riskset study example` prints the specification.
    """
    console = output()
    console.print("[bold]Does a right heart catheter change the survival of the critically ill?[/]")
    console.print("[dim]SUPPORT study; Connors et al. (1996), JAMA 276, 889-897[/]\n")
    # Two moving displays at once would overwrite each other.
    progress = False if console.is_terminal else progress_of(is_quiet=False)
    with console.status("compiling (once on a machine), reading, fitting"):
        # Here, because they bring numba, scikit-learn and DuckDB.
        from riskset.report import write
        from riskset.study import Study, StudyResults, example, run

        study = Study.parse(example())
        results = run(study, out, progress=progress)
        report = write(results, out / "report.html")
    console.print("Hazard ratio of death, with a catheter compared to without\n")
    show_estimates(results)
    (score,) = results.rows("ps")[:1]
    # The largest difference is of a covariate that few people have, so `results` hide it.
    private = StudyResults.open(out / "private")
    (matched,) = private.rows("adjustments", adjustment=private.rows("runs")[0]["adjustment"])
    table = facts()
    table.add_row(
        ("people"), (f"{score['n_target']:,} with a catheter, {score['n_comparator']:,} without")
    )
    table.add_row(
        "score",
        f"logistic regression, {score['n_used']} of {score['n_covariates']} covariates chosen by "
        f"cross-validation; area under the curve {score['auc']:.2f}",
    )
    table.add_row(
        "balance",
        f"after matching, the largest difference is {matched['after_max']:.2f} standard "
        f"deviations; before, it was {matched['before_max']:.2f} "
        f"({short(matched['before_worst'], 24)})",
    )
    table.add_row("seconds", f"{results.run['seconds']:.1f}")
    table.add_row("report", short(str(report), 200))
    console.print(table)
    console.print("\n[dim]A causal interpretation needs assumptions that data cannot check.[/]")
