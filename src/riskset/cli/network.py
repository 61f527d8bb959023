"""``riskset network``: the results of several databases together."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from riskset._errors import InputError
from riskset.cli.options import grouped
from riskset.cli.terminal import facts, output, plain_number, plain_table, short

if TYPE_CHECKING:
    import riskset as rs

__all__ = ["network"]

MAX_LINES = 40

network = typer.Typer(
    help="Pool the shared results of several databases.",
    no_args_is_help=True,
)


@network.callback()
def _group() -> None:
    """Pool the shared results of several databases."""


@network.command()
@grouped
def meta(
    sites: Annotated[
        list[str],
        typer.Argument(
            metavar="SITE...",
            help="Folders of `riskset study run --out` or `riskset study export --evidence`, or "
            "files of likelihood profiles. NAME=SITE gives a site another name.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Write the results to this folder.")
    ],
    level: Annotated[float, typer.Option(help="Set the level of the intervals.")] = 0.95,
    prior_sd: Annotated[
        str,
        typer.Option(
            metavar="MU,TAU",
            help="Set the standard deviations of the priors of the mean effect and of tau.",
        ),
    ] = "2,0.5",
) -> None:
    """Pool the estimates of several databases by their likelihood profiles.

    The sites must have run the same study. FOLDER gets the tables as CSV and Parquet, forest plots,
    and the report network.html.
    """
    # Here, because it brings SciPy, which `riskset --help` does not wait for.
    from riskset.cohort.effects.effect_scale import effect_name
    from riskset.network import meta as pool
    from riskset.network.effect_words import models_of

    priors = tuple(_number(word) for word in prior_sd.split(","))
    named = [_named(one) for one in sites]
    found = pool(_given(named), level=level, prior_sd=priors)  # type: ignore[arg-type]
    found.save(out)
    _show(found)
    table = facts()
    table.add_row("effect", effect_name(models_of(found, found.keys())))
    table.add_row("sites", short(", ".join(site.name for site in found.sites), 200))
    table.add_row("results", short(str(out), 200))
    table.add_row("report", short(str(out / "network.html"), 200))
    output().print(table)


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InputError(
            f"--prior-sd must be two numbers, but {word!r} is not a number.", hint="such as 2,0.5."
        ) from None


def _named(word: str) -> tuple[str | None, Path]:
    """NAME=SITE, unless there is a folder or a file of the whole name."""
    name, sign, place = word.partition("=")
    if not sign or Path(word).exists():
        return None, Path(word)
    return name, Path(place)


def _given(named: list[tuple[str | None, Path]]) -> object:
    """Paths, or sites where some have a name of their own."""
    # Here, as above.
    from riskset.network.sites import read_site

    return [site for name, path in named for site in read_site(path, name)]


def _show(found: "rs.network.NetworkResults") -> None:
    """The pooled estimates as a table."""
    table = plain_table()
    for title in ("outcome", "analysis"):
        table.add_column(title)
    for title in ("sites", "fixed effect", "random effects"):
        table.add_column(title, justify="right", no_wrap=True)
    keys = found.keys()
    for key in keys[:MAX_LINES]:
        cells = []
        n_sites = 0
        for method in ("fixed", "random"):
            (row,) = found.rows(
                "pooled", **key._asdict(), method=method, corrected=False, left_out=None
            )
            values = (row[f"hr{end}"] for end in ("_lower", "", "_upper"))
            low, mid, high = ("none" if v is None else plain_number(v, 3) for v in values)
            cells.append(f"[bold]{mid}[/] ({low} to {high})")
            n_sites = row["n_sites"]
        words = [short(found.label(n, getattr(key, n)), 28) for n in ("outcome", "analysis")]
        table.add_row(*words, f"{n_sites:,}", *cells)
    console = output()
    console.print(table)
    if len(keys) > MAX_LINES:
        console.print(f"[dim]and {len(keys) - MAX_LINES:,} more in pooled.csv[/]")
    console.print()
