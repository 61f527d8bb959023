"""``riskset federate``: one model over several sites, by files that go back and forth."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from riskset._errors import InputError
from riskset.cli.input_options import ColumnOptions, TableOptions
from riskset.cli.options import grouped
from riskset.cli.terminal import facts, output, plain_number, plain_table, short

if TYPE_CHECKING:
    import riskset as rs

__all__ = ["federate"]

MAX_LINES = 40

federate = typer.Typer(
    help="Fit one Cox or Fine-Gray model over several sites, whose rows stay where they are.",
    no_args_is_help=True,
)

SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file",
        metavar="FILE",
        help="Read the secret that signs messages from this file (default: the variable "
        "RISKSET_NETWORK_SECRET).",
    ),
]
FOLDER = typer.Argument(metavar="FOLDER", help="Folder of the fit, with all its messages.")


@federate.command()
@grouped
def start(
    folder: Annotated[Path, FOLDER],
    sites: Annotated[
        str, typer.Option(metavar="NAME,NAME,...", help="Name the sites, separated by commas.")
    ],
    model: Annotated[Literal["cox", "finegray"], typer.Option(help="Choose the model.")] = "cox",
    penalty: Annotated[
        Literal["none", "l1", "l2"], typer.Option(help="Choose the penalty.")
    ] = "none",
    strengths: Annotated[
        str | None,
        typer.Option(metavar="S,S,...", help="Set the strengths of the penalty, strongest first."),
    ] = None,
    unpenalized: Annotated[
        str | None, typer.Option(metavar="COL,COL,...", help="Name covariates without a penalty.")
    ] = None,
    left_out: Annotated[
        str | None,
        typer.Option(metavar="COL,COL,...", help="Name covariates that no site uses."),
    ] = None,
    secret_file: SecretFile = None,
) -> None:
    """Begin a fit, and write the first question for the sites.

    Send round-001/question.json to every site, and copy each answer beside it.
    """
    # Here, because they bring numba, which `riskset --help` does not wait for.
    from riskset.model.penalty import L1, L2
    from riskset.network import start_federation

    values = [_number(word) for word in _words(strengths)]
    kind = None
    if penalty != "none":
        if not values:
            raise InputError("a penalty needs `--strengths`.", hint="such as --strengths 20,10,5.")
        kind = (L1 if penalty == "l1" else L2)(values[0], unpenalized=_words(unpenalized))
    now = start_federation(
        folder,
        _words(sites),
        model=model,
        penalty=kind,
        strengths=values,
        left_out=_words(left_out),
        secret=secret_file,
    )
    _show(folder, now)


@federate.command()
@grouped
def answer(
    question: Annotated[Path, typer.Argument(metavar="QUESTION", help="File of the question.")],
    patients: Annotated[
        Path, typer.Argument(metavar="PATIENTS", help="Table with one row per patient.")
    ],
    *,
    columns: ColumnOptions,
    tables: TableOptions,
    site: Annotated[str, typer.Option(metavar="NAME", help="Name this site.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write the answer to this file (default: NAME.json beside the question).",
        ),
    ] = None,
    min_cell_count: Annotated[
        int, typer.Option(min=0, help="Refuse to answer if fewer people are behind a sum.")
    ] = 5,
    secret_file: SecretFile = None,
) -> None:
    """Answer a question at a site, with sums over all its rows."""
    # Here, because it brings numba and DuckDB, which `riskset --help` does not wait for.
    from riskset.network import answer_question

    data = tables.read(patients, columns, None)
    written = answer_question(
        question, data, site=site, out=out, min_cell_count=min_cell_count, secret=secret_file
    )
    output().print(short(str(written), 500), soft_wrap=True)


@federate.command("next")
@grouped
def next_(folder: Annotated[Path, FOLDER], secret_file: SecretFile = None) -> None:
    """Read the answers of all sites, and write the next question or the result."""
    # Here, because it brings numba, which `riskset --help` does not wait for.
    from riskset.network import next_round

    _show(folder, next_round(folder, secret=secret_file))


def _words(written: str | None) -> list[str]:
    return [word.strip() for word in (written or "").split(",") if word.strip()]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InputError(
            f"`--strengths` must be numbers, but {word!r} is none.", hint="such as 20,10,5."
        ) from None


def _show(folder: Path, now: "rs.network.FederatedRound") -> None:
    console = output()
    if now.result is None:
        console.print(
            f"round {now.number}: waiting for {short(', '.join(now.waiting), 200)}", soft_wrap=True
        )
        console.print(short(str(now.question), 500), soft_wrap=True)
        return
    found = now.result
    console.print(_coefficients(found))
    table = facts()
    table.add_row("status", ", ".join(dict.fromkeys(found.status)))
    table.add_row("rows, events", f"{found.n_rows:,}, {found.n_events:,}")
    table.add_row("rounds", f"{found.n_rounds:,}")
    table.add_row("bytes", f"{found.n_bytes:,}")
    table.add_row("result", short(str(folder / "result.json"), 200))
    console.print(table)


def _coefficients(found: "rs.network.FederatedFit") -> Any:
    """Those at the last strength, the largest first where there are many."""
    table = plain_table()
    table.add_column("covariate")
    for title in ("coefficient", "standard error"):
        table.add_column(title, justify="right")
    coef = found.coef[-1]
    order = sorted(range(len(coef)), key=lambda j: -abs(coef[j]))
    chosen = range(len(coef)) if len(coef) <= MAX_LINES else order[:MAX_LINES]
    for j in chosen:
        se = None if found.standard_error is None else found.standard_error[j]
        words = "" if se is None else plain_number(se, 3)
        table.add_row(short(found.covariates[j], 40), plain_number(coef[j], 4), words)
    return table
