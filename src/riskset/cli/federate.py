"""``riskset federate``: one model over several sites, by files that go back and forth."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from riskset._errors import InputError
from riskset.cli.input_options import ColumnOptions, TableOptions
from riskset.cli.model_options import as_cause
from riskset.cli.options import grouped, require
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
    ties: Annotated[
        Literal["breslow", "efron"] | None,
        typer.Option(help="cox: treat tied event times by this method (default breslow)."),
    ] = None,
    cause: Annotated[
        str | None,
        typer.Option(
            metavar="CODE",
            help="Model this event code; other events count as censored (cox) or as competing "
            "(finegray).",
        ),
    ] = None,
    penalty: Annotated[
        Literal["none", "l1", "l2", "elasticnet"], typer.Option(help="Choose the penalty.")
    ] = "none",
    l1_ratio: Annotated[
        float | None,
        typer.Option(metavar="R", help="Give L1 this share of an elastic net, between 0 and 1."),
    ] = None,
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
    tol: Annotated[
        float, typer.Option(help="Stop when the relative KKT residual is at most this.")
    ] = 1e-8,
    max_iter: Annotated[
        int, typer.Option(metavar="N", help="Stop after this number of Newton steps.")
    ] = 200,
    secret: SecretFile = None,
) -> None:
    """Begin a fit, and write the first question for the sites.

    Send round-001/question.json to every site, and copy each answer beside it.
    """
    # Here, because it brings numba, which `riskset --help` does not wait for.
    from riskset.network import start_federation

    options: dict[str, Any] = {}
    if ties is not None:
        require(["--ties"] if model == "finegray" else [], "--model cox", "leave it out.")
        options["ties"] = ties
    if cause is not None:
        options["cause"] = as_cause(cause)
    values = [_number(word) for word in _words(strengths)]
    now = start_federation(
        folder,
        _words(sites),
        model=model,
        penalty=_penalty(penalty, l1_ratio, values, _words(unpenalized)),
        strengths=values,
        left_out=_words(left_out),
        tol=tol,
        max_iter=max_iter,
        secret=secret,
        **options,
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
    secret: SecretFile = None,
) -> None:
    """Answer a question at a site, with sums over all its rows."""
    # Here, because it brings numba and DuckDB, which `riskset --help` does not wait for.
    from riskset.network import answer_question

    data = tables.read(patients, columns, None)
    written = answer_question(
        question, data, site=site, out=out, min_cell_count=min_cell_count, secret=secret
    )
    output().print(short(str(written), 500), soft_wrap=True)


@federate.command("next")
@grouped
def next_(folder: Annotated[Path, FOLDER], secret: SecretFile = None) -> None:
    """Read the answers of all sites, and write the next question or the result."""
    # Here, because it brings numba, which `riskset --help` does not wait for.
    from riskset.network import next_round

    _show(folder, next_round(folder, secret=secret))


def _penalty(
    kind: str, l1_ratio: float | None, strengths: list[float], unpenalized: list[str]
) -> "rs.L1 | rs.L2 | rs.ElasticNet | None":
    """The penalty that was asked for, at the first strength."""
    from riskset.model.penalty import L1, L2, ElasticNet

    asked = {"--l1-ratio": l1_ratio is not None, "--unpenalized": bool(unpenalized)}
    given = [flag for flag, is_given in asked.items() if is_given]
    if kind == "none":
        require(given, "a penalty", "choose --penalty l1, l2 or elasticnet, or leave it out.")
        return None
    if not strengths:
        raise InputError("a penalty needs --strengths.", hint="such as --strengths 20,10,5.")
    if kind == "elasticnet":
        require(
            ["--penalty elasticnet"] if l1_ratio is None else [],
            "--l1-ratio",
            "0.5 is half and half.",
        )
        return ElasticNet(strength=strengths[0], l1_ratio=l1_ratio, unpenalized=unpenalized)
    require(given if l1_ratio is not None else [], "--penalty elasticnet", "leave it out.")
    return (L1 if kind == "l1" else L2)(strengths[0], unpenalized=unpenalized)


def _words(written: str | None) -> list[str]:
    return [word.strip() for word in (written or "").split(",") if word.strip()]


def _number(word: str) -> float:
    try:
        number = float(word)
        if not 0 <= number < math.inf:
            raise ValueError
    except ValueError:
        raise InputError(
            f"--strengths must be finite numbers of at least 0, but one is {word!r}.",
            hint="such as 20,10,5.",
        ) from None
    return number


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
