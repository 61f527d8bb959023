"""``riskset power``: events, people, power and detectable ratios of a planned study."""

import csv
import io
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import typer

from riskset._errors import InputError
from riskset.cli.options import MODEL, RESULT, grouped, option
from riskset.cli.terminal import facts, output, plain_number, plain_table

if TYPE_CHECKING:
    from riskset.cohort.planning.study_plan import StudyPlan

__all__ = ["power"]

STUDY = "Study"
FOLLOW_UP = "Follow-up"
TEST = "Test"
LARGE_COUNT = 1e8
"""Counts from here on are written with four digits, so that the table fits a terminal."""


@dataclass(frozen=True, kw_only=True)
class PlannedArms:
    """How large a study is, and how its arms compare."""

    hr: str | None = option(
        "Plan for these hazard ratios of the target versus the comparator, a line for each.",
        metavar="HR,HR,...",
        panel=STUDY,
    )
    share: float | None = option(
        "Put this proportion of the people in the target arm (default 0.5).",
        metavar="P",
        panel=STUDY,
    )
    ratio: float | None = option(
        "Plan this number of comparators for each person in the target arm, instead of --share.",
        metavar="R",
        panel=STUDY,
    )
    events: float | None = option(
        "Compute power and detectable ratios with this number of events in both arms.",
        metavar="N",
        panel=STUDY,
    )
    people: float | None = option(
        "Compute power and detectable ratios with this number of people in both arms.",
        metavar="N",
        panel=STUDY,
    )

    @property
    def target_share(self) -> float:
        """The proportion of the target."""
        if self.ratio is None:
            return 0.5 if self.share is None else self.share
        if self.share is not None:
            raise InputError("--share and --ratio were both given.", hint="leave one of them out.")
        if not 0 < self.ratio < math.inf:
            raise InputError(
                f"--ratio must be a positive number, but it is {self.ratio:g}.",
                hint="for example --ratio 4 for four comparators of each person.",
            )
        return 1 / (1 + self.ratio)

    @property
    def ratios(self) -> list[float | None]:
        """The hazard ratios, or None if there are none."""
        if self.hr is None:
            return [None]
        try:
            return [float(part) for part in self.hr.split(",")]
        except ValueError:
            raise InputError(
                f"--hr must be numbers, separated by commas, but it is {self.hr!r}.",
                hint="for example --hr 1.25,1.5,2.",
            ) from None


@dataclass(frozen=True, kw_only=True)
class PlannedFollowUp:
    """When events occur, and who is followed."""

    rate: float | None = option(
        "Assume this hazard of the outcome in the comparator arm, per unit of time.",
        metavar="RATE",
        panel=FOLLOW_UP,
    )
    followup: float | None = option(
        "Follow everybody for at least this time.", metavar="TIME", panel=FOLLOW_UP
    )
    accrual: float = option(
        "Assume that people enter at a constant rate over this time, before --followup begins.",
        0.0,
        metavar="TIME",
        panel=FOLLOW_UP,
    )
    dropout: float = option(
        "Assume this hazard of loss to follow-up.", 0.0, metavar="RATE", panel=FOLLOW_UP
    )
    competing: float = option(
        "Assume this hazard of competing events.", 0.0, metavar="RATE", panel=FOLLOW_UP
    )
    model: Literal["cox", "finegray"] = option(
        "Take the hazard ratio as that of the cause-specific (cox) or of the subdistribution "
        "hazard (finegray).",
        "cox",
        panel=MODEL,
    )


@dataclass(frozen=True, kw_only=True)
class PlannedTest:
    """The test, and what is printed."""

    alpha: float = option("Set the significance level.", 0.05, panel=TEST)
    power: float = option("Set the power to reach.", 0.8, panel=TEST)
    one_sided: bool = option(
        "Use a one-sided test, as for non-inferiority.", False, panel=TEST, also=("two_sided",)
    )
    margin: float = option(
        "Set the hazard ratio of the null hypothesis, such as a non-inferiority margin.",
        1.0,
        metavar="HR",
        panel=TEST,
    )
    outcomes: int = option(
        "Divide the level by this number of outcomes (Bonferroni).",
        1,
        metavar="N",
        panel=TEST,
        of="n_outcomes",
    )
    r_squared: float = option(
        "Assume that covariates explain this proportion of the variance of the treatment.",
        0.0,
        panel=TEST,
    )
    format: Literal["table", "csv", "json"] = option(
        "Print a table, or all digits as CSV or JSON.", "table", panel=RESULT
    )


@grouped
def power(*, arms: PlannedArms, times: PlannedFollowUp, test: PlannedTest) -> None:
    """Compute the events and people that a study needs, or the power that it has.

    With --hr, the command prints the events that are needed for --power. With --rate and
    --followup, it also prints the people. With --events, or with --people, --rate and --followup,
    it prints the power for --hr, and the hazard ratios closest to 1 (or to --margin) that can be
    detected. Rates and times have the same unit of time. All hazards are assumed to be constant.
    """
    # Here, because it brings SciPy, which `riskset --help` does not wait for.
    from riskset.cohort.planning.study_plan import plan_study

    share = arms.target_share
    plans = [
        plan_study(
            hr,
            share,
            events=arms.events,
            people=arms.people,
            rate=times.rate,
            followup=times.followup,
            accrual=times.accrual,
            dropout=times.dropout,
            competing=times.competing,
            model=times.model,
            alpha=test.alpha,
            power=test.power,
            two_sided=not test.one_sided,
            margin=test.margin,
            n_outcomes=test.outcomes,
            r_squared=test.r_squared,
        )
        for hr in arms.ratios
    ]
    if test.format == "table":
        _print(plans, share, times, test)
    elif test.format == "json":
        typer.echo(json.dumps([plan.columns() for plan in plans], indent=1))
    else:
        typer.echo(_csv(plans), nl=False)


def _csv(plans: "list[StudyPlan]") -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(plans[0].columns())
    for plan in plans:
        writer.writerow("" if value is None else repr(value) for value in plan.columns().values())
    return text.getvalue()


def _print(
    plans: "list[StudyPlan]", share: float, times: PlannedFollowUp, test: PlannedTest
) -> None:
    about = facts()
    sides = "one-sided" if test.one_sided else "two-sided"
    about.add_row("test", f"{sides}, level {test.alpha:g}{_further(test)}")
    about.add_row("power", f"{100 * test.power:g} %")
    about.add_row("target", f"{100 * share:.3g} % of the people")
    if times.rate is not None:
        about.add_row("hazards", _hazards(times))
        about.add_row("follow-up", _follow_up(times))
    table = plain_table()
    for title in ("hazard ratio", "events", "people", "target", "comparator", "power"):
        table.add_column(title, justify="right", no_wrap=True)
    has_ratios = any(plan.detectable_above is not None for plan in plans)
    if has_ratios:
        table.add_column("detectable", justify="right", no_wrap=True)
    for plan in plans:
        cells = ["-" if plan.hr is None else f"{plan.hr:g}", _count(plan.events)]
        cells += [_count(n) for n in (plan.people, plan.target, plan.comparator)]
        cells.append("-" if plan.power is None else f"{plan.power:.3f}")
        if has_ratios:
            cells.append(f"{_number(plan.detectable_below)}, {_number(plan.detectable_above)}")
        table.add_row(*cells)
    console = output()
    console.print(about)
    console.print()
    console.print(table)


def _further(test: PlannedTest) -> str:
    """What the test has beyond its level."""
    words = "" if test.outcomes == 1 else f" for {test.outcomes:,} outcomes"
    return words if test.margin == 1 else f"{words}, margin {test.margin:g}"


def _hazards(times: PlannedFollowUp) -> str:
    words = [f"outcome {times.rate:g}"]
    words += [f"dropout {times.dropout:g}"] if times.dropout else []
    words += [f"competing events {times.competing:g}"] if times.competing else []
    return ", ".join(words)


def _follow_up(times: PlannedFollowUp) -> str:
    words = f"{times.followup:g}"
    return f"{words} after an accrual of {times.accrual:g}" if times.accrual else words


def _number(value: float | None) -> str:
    return "-" if value is None else plain_number(value, 4)


def _count(value: float | None) -> str:
    """Of people or events: whole numbers, and others with one decimal; very many as 1.234e+09."""
    if value is None:
        return "-"
    if value >= LARGE_COUNT:
        return f"{value:.4g}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
