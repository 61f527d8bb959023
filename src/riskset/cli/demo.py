"""``riskset demo``: the main job on the bundled cohort, from a file to a hazard ratio."""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.table import Table

from riskset.cli.terminal import facts, output, plain_number, plain_table, ratio, short
from riskset.data.writers import check_folder

if TYPE_CHECKING:
    import riskset as rs
    from riskset.demo import Choice

__all__ = ["demo"]

SHOWN = 5

HOW = (
    "Kept: of the {n_sets} different sets of covariates on the path, each refitted without a "
    "penalty, the one with the smallest Akaike criterion. Its interval takes that choice as given; "
    "the last line makes no choice. None of this is causal without assumptions that data cannot "
    "check."
)


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the picture.")
    ] = Path("riskset-demo"),
) -> None:
    """Estimate a treatment effect in a real cohort, with 70 covariates to adjust for.

    5,735 critically ill patients of the SUPPORT study (Connors et al. 1996), of whom 2,184 had a
    right heart catheter within the first day: does it change survival?
    """
    started = time.perf_counter()
    check_folder(out)
    console = output()
    console.print("[bold]Does a right heart catheter change the survival of the critically ill?[/]")
    console.print("[dim]SUPPORT study; Connors et al. (1996), JAMA 276, 889-897[/]\n")
    with console.status("compiling (once on a machine), reading, fitting"):
        # Here, because they bring numba, scikit-learn and matplotlib.
        import riskset as rs
        from riskset.cli.pictures import save
        from riskset.datasets import rhc_path
        from riskset.demo import TREATMENT, choose, draw, fit_on, fit_path

        loaded = time.perf_counter()
        cohort = rs.load_rhc()
        read = time.perf_counter()
        result = fit_path(cohort)
        solved = time.perf_counter()
        choice = choose(cohort, result)
        everything = fit_on(cohort, cohort.design.names)
        nothing = fit_on(cohort, (TREATMENT,))
        fitted = time.perf_counter()
        out.mkdir(parents=True, exist_ok=True)
        save(out / "path.png", draw(cohort, result, choice))
    models = {"nothing": nothing, "what the path kept": choice.model, "everything": everything}
    console.print(_facts(rhc_path().name, cohort, result, choice))
    console.print("\n[bold]Hazard ratio of death, catheter against none[/]\n")
    console.print(_estimates(models, TREATMENT))
    console.print(f"\n[dim]{HOW.format(n_sets=choice.n_sets)}[/]\n")
    table = facts()
    table.add_row("certificate", _certificate(result, list(models.values())))
    table.add_row(
        "seconds",
        f"load {loaded - started:.1f}, read {read - loaded:.1f}, path {solved - read:.1f}, "
        f"refits {fitted - solved:.1f}, in all {time.perf_counter() - started:.1f}",
    )
    table.add_row("picture", short(str(out / "path.png"), 200))
    console.print(table)


def _certificate(result: "rs.PathResult", models: Sequence["rs.Cox"]) -> str:
    kkt = max(result.kkt.max(), *(model.kkt_ for model in models))
    statuses = sorted({*result.statuses, *(model.status_ for model in models)})
    return (
        f"path and the three fits above: {', '.join(statuses)}; "
        f"relative KKT residual at most {kkt:.1e}"
    )


def _facts(file: str, cohort: "rs.Dataset", result: "rs.PathResult", choice: "Choice") -> Table:
    from riskset.demo import TREATMENT

    outcome = cohort.outcome()
    column = np.array([cohort.design.index_of(TREATMENT)])
    treated = int(cohort.design.to_dense(column).sum())
    table = facts()
    table.add_row(
        "read",
        f"{file}: {outcome.n_rows:,} patients, {outcome.n_events:,} deaths, "
        f"{cohort.design.n_features} columns",
    )
    table.add_row(
        "treatment", f"{TREATMENT}: a catheter within the first day, {treated:,} patients"
    )
    table.add_row(
        "model",
        f"Cox, Breslow ties; {len(result)} L1 penalties from "
        f"{plain_number(result.strengths[0])} down to {plain_number(result.strengths[-1])} on "
        f"{len(result.names) - 1} covariates, none on the treatment",
    )
    kept = [name for name in choice.model.covariates_ if name != TREATMENT]
    table.add_row("kept", f"{len(kept)} covariates, first {', '.join(_first(result, kept))}")
    return table


def _first(result: "rs.PathResult", kept: Sequence[str]) -> list[str]:
    """The covariates that entered the path first."""
    entered = {
        name: int(np.argmax(result.coefs[:, result.names.index(name)] != 0)) for name in kept
    }
    return [short(name, 24) for name in sorted(kept, key=entered.__getitem__)[:SHOWN]]


def _estimates(models: Mapping[str, "rs.Cox"], treatment: str) -> Table:
    table = plain_table()
    table.add_column("adjusted for")
    for title in ("covariates", "hazard ratio", "95% interval"):
        table.add_column(title, justify="right", no_wrap=True)
    for words, model in models.items():
        lower, upper = model.confidence_interval(treatment)[treatment]
        coef = float(model.coef_[model.covariates_.index(treatment)])
        assert math.isfinite(coef)
        table.add_row(
            words,
            str(len(model.covariates_) - 1),
            f"[bold]{ratio(coef)}[/]",
            f"{ratio(lower)} to {ratio(upper)}",
        )
    return table
