"""``riskset bias``: how strong an unmeasured confounder has to be to explain a ratio."""

import csv
import io
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import typer

from riskset._errors import InputError
from riskset.cli.options import RESULT, grouped, option
from riskset.cli.terminal import facts, output, plain_number, plain_table

if TYPE_CHECKING:
    from riskset.cohort.bias.unmeasured_confounder import ConfounderAdjusted, TippingPoints

__all__ = ["bias"]

ESTIMATE = "Estimate"
CONFOUNDER = "Confounder"
MOST_SHOWN = 60


@dataclass(frozen=True, kw_only=True)
class PublishedEstimate:
    """A ratio with its interval."""

    ratio: float = option("Use this ratio.", ..., metavar="RATIO", panel=ESTIMATE, of="estimate")
    lower: float | None = option(
        "Set the lower limit of its interval.", metavar="RATIO", panel=ESTIMATE
    )
    upper: float | None = option("Set the upper limit.", metavar="RATIO", panel=ESTIMATE)
    scale: Literal["hazard", "odds", "rate", "risk"] = option(
        "Say what it is a ratio of.", ..., panel=ESTIMATE
    )
    common: bool = option(
        "Convert hazard and odds ratios to risk ratios, because at least 15 % of an arm have the "
        "outcome.",
        False,
        panel=ESTIMATE,
    )

    @property
    def arguments(self) -> dict[str, Any]:
        """As functions of Python take them."""
        names = ("lower", "upper", "scale", "common")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class AssumedConfounder:
    """What is known of a confounder, and what is printed."""

    target_prevalence: str | None = option(
        "Use these prevalences of a binary confounder in the target arm.",
        metavar="P,P,...",
        panel=CONFOUNDER,
    )
    comparator_prevalence: str | None = option(
        "Use these prevalences in the comparator arm.", metavar="P,P,...", panel=CONFOUNDER
    )
    difference: str | None = option(
        "Use these differences of the means of a normal confounder (target minus comparator), in "
        "standard deviations.",
        metavar="D,D,...",
        panel=CONFOUNDER,
    )
    effect: str | None = option(
        "Use these risk ratios of the outcome: with versus without a binary confounder, or per "
        "standard deviation of a normal one.",
        metavar="RR,RR,...",
        panel=CONFOUNDER,
    )
    format: Literal["table", "csv", "json"] = option(
        "Print a table, or all digits as CSV or JSON.", "table", panel=RESULT
    )

    @property
    def arguments(self) -> dict[str, list[float]]:
        """Numbers by name."""
        names = ("target_prevalence", "comparator_prevalence", "difference", "effect")
        given = {name: getattr(self, name) for name in names}
        return {name: _numbers(name, text) for name, text in given.items() if text is not None}


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--{name.replace('_', '-')} must be numbers, separated by commas, but it is {text!r}.",
            hint="for example 0.1,0.25.",
        ) from None


@grouped
def bias(*, estimate: PublishedEstimate, confounder: AssumedConfounder) -> None:
    """Compute the E-value of a ratio and tipping points of an unmeasured confounder.

    Describe a binary confounder by its prevalences in both arms and its effect on the outcome, and
    a normal one by the difference of its means and its effect. If you leave one of these out, the
    command prints the value at which the interval reaches 1: the tipping point. If you give all of
    them, it prints the ratio without the bias of the confounder. If you give none, it prints only
    the E-value.
    """
    # Here, because they bring SciPy, which `riskset --help` does not wait for.
    from riskset.cohort.bias.e_values import e_value
    from riskset.cohort.bias.unmeasured_confounder import adjust_for_confounder, tipping_points

    given = confounder.arguments
    of_value = e_value(estimate.ratio, **estimate.arguments)
    about: dict[str, float] = {"e_value": of_value.estimate, "e_value_limit": of_value.limit}
    found: TippingPoints | ConfounderAdjusted | None = None
    needed = {"difference", "effect"}
    if given.keys() & {"target_prevalence", "comparator_prevalence"}:
        needed = {"target_prevalence", "comparator_prevalence", "effect"}
    if given:
        compute: Any = adjust_for_confounder if given.keys() >= needed else tipping_points
        found = compute(estimate.ratio, **estimate.arguments, **given)
    rows = [] if found is None else _rows(found)
    if confounder.format == "json":
        plain = {name: _plain(value) for name, value in about.items()}
        typer.echo(json.dumps(plain | {"confounders": rows}, indent=1))
    elif confounder.format == "csv":
        _print_csv(rows or [{name: _plain(value) for name, value in about.items()}])
    else:
        _print(of_value.risk_ratio if of_value.is_common else None, about, rows)


def _rows(found: "TippingPoints | ConfounderAdjusted") -> list[dict[str, Any]]:
    columns = {name: values.tolist() for name, values in found.columns().items()}
    return [
        {name: _plain(value) for name, value in zip(columns, values, strict=True)}
        for values in zip(*columns.values(), strict=True)
    ]


def _plain(value: Any) -> Any:
    """None for what is not defined; JSON has no infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf"
    return value


def _print_csv(rows: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow("" if value is None else value for value in row.values())
    typer.echo(text.getvalue(), nl=False)


HEADS = {
    "target_prevalence": "in target",
    "comparator_prevalence": "in comparator",
    "n_needed": "needed",
}
"""Columns with shorter titles."""
OF_ESTIMATE = "_of_estimate"
"""Ending of the column with the tipping point of the estimate itself."""


def _print(risk_ratio: float | None, about: dict[str, float], rows: list[dict[str, Any]]) -> None:
    table = facts()
    if risk_ratio is not None:
        table.add_row("risk ratio", f"{plain_number(risk_ratio, 3)} (approximate)")
    table.add_row("E-value", plain_number(about["e_value"], 3))
    if not math.isnan(about["e_value_limit"]):
        table.add_row("of the interval", plain_number(about["e_value_limit"], 3))
    console = output()
    console.print(table)
    if not rows:
        return
    shown = plain_table()
    rows = [_with_interval(row) for row in rows]
    for name in rows[0]:
        shown.add_column(_title(name, rows[0]), justify="right", no_wrap=True)
    for row in rows[:MOST_SHOWN]:
        shown.add_row(*(_cell(value) for value in row.values()))
    console.print()
    console.print(shown)
    if len(rows) > MOST_SHOWN:
        console.print(f"and {len(rows) - MOST_SHOWN:,} more; --format csv has all")


def _title(name: str, row: dict[str, Any]) -> str:
    """The title of a column; that of a tipping point says what it moves to 1."""
    known = name.removesuffix(OF_ESTIMATE)
    title = HEADS.get(known, known.replace("_", " "))
    if known + OF_ESTIMATE not in row:
        return title
    return f"{title} (interval at 1)" if name == known else f"{title} (estimate at 1)"


def _with_interval(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose adjusted ratio and limits stand in one column, and whose bias is left out."""
    if "ratio" not in row:
        return row
    own = {name: value for name, value in row.items() if name not in ("bias", "lower", "upper")}
    ends = [row.get(name) for name in ("lower", "upper")]
    if ends != [None, None]:
        own["ratio"] = "{} ({} to {})".format(*map(_cell, (row["ratio"], *ends)))
    return own


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else plain_number(value, 3)
