"""The options that commands share: each is declared once, with its help."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

DATA = "Data"
MODEL = "Model"
PENALTY = "Penalty"
RESULT = "Result"
RUN = "Run"


class Model(StrEnum):
    """The regression model."""

    cox = "cox"
    finegray = "finegray"


class Ties(StrEnum):
    """How tied event times are treated."""

    breslow = "breslow"
    efron = "efron"


class CensoringTies(StrEnum):
    """Whether events count as at risk of the censorings at their time."""

    crr = "crr"
    finegray = "finegray"


class Beyond(StrEnum):
    """The censoring distribution after the last time of a group."""

    zero = "zero"
    last = "last"


class PenaltyKind(StrEnum):
    """The shape of the penalty."""

    none = "none"
    l1 = "l1"
    l2 = "l2"
    elasticnet = "elasticnet"


class Duplicates(StrEnum):
    """What repeated (row, covariate) entries of a long table mean."""

    error = "error"
    sum = "sum"
    max = "max"


class UnknownRows(StrEnum):
    """What entries of a long table mean whose row is not among the patients."""

    error = "error"
    drop = "drop"


class Interval(StrEnum):
    """The method of a confidence interval."""

    wald = "wald"
    robust = "robust"
    profile = "profile"
    bootstrap = "bootstrap"


class Device(StrEnum):
    """Where to compute."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


Patients = Annotated[
    Path,
    typer.Argument(
        metavar="PATIENTS",
        help="One row a subject: CSV, Parquet, Arrow or DuckDB file.",
        show_default=False,
    ),
]
Covariates = Annotated[
    str | None,
    typer.Option(
        metavar="LONG",
        help="Long table of covariates beside it: row key, covariate key, value (1 if absent).",
        rich_help_panel=DATA,
    ),
]
CovariatesTable = Annotated[
    str | None,
    typer.Option(
        "--covariates-table",
        metavar="NAME",
        help="Long table in a DuckDB file: LONG, or without --covariates that of the rows.",
        rich_help_panel=DATA,
    ),
]
CovariatesQuery = Annotated[
    str | None,
    typer.Option(
        "--covariates-query",
        metavar="SQL",
        help="Query that gives the long table, instead.",
        rich_help_panel=DATA,
    ),
]
CovariateColumns = Annotated[
    str | None,
    typer.Option(
        "--covariate-columns",
        metavar="ROW,COV[,VALUE]",
        help="Columns of the long table, if not rowId, covariateId, covariateValue.",
        rich_help_panel=DATA,
    ),
]
TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="Table of a DuckDB file.", rich_help_panel=DATA),
]
Query = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="Query of a DuckDB file, instead.", rich_help_panel=DATA),
]
Time = Annotated[
    str | None,
    typer.Option(metavar="COL", help="End of follow-up.", rich_help_panel=DATA),
]
Event = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="0 = censored, 1, 2, ... = cause; or text.", rich_help_panel=DATA
    ),
]
Censored = Annotated[
    str | None,
    typer.Option(
        "--censored",
        metavar="LABEL",
        help="The label of censoring, if events are text; the others are causes.",
        rich_help_panel=DATA,
    ),
]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="COL", help="A curve for each value.", rich_help_panel=DATA),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COL", help="Row key; needed with --covariates.", rich_help_panel=DATA
    ),
]
Entry = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Late entry: at risk on (entry, time].", rich_help_panel=DATA),
]
Strata = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL", help="A baseline for each value; may be repeated.", rich_help_panel=DATA
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Case weights >= 0.", rich_help_panel=DATA),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Rows of one person or site, for robust standard errors.",
        rich_help_panel=DATA,
    ),
]
Offset = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Added to the linear predictor.", rich_help_panel=DATA),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="Not a covariate; may be repeated.", rich_help_panel=DATA),
]
DuplicateEntries = Annotated[
    Duplicates | None,
    typer.Option(
        "--duplicates",
        help="Repeated entries of the long table; an error by default.",
        rich_help_panel=DATA,
    ),
]
UnknownEntries = Annotated[
    UnknownRows | None,
    typer.Option(
        "--unknown-rows",
        help="Entries of the long table of no row; an error by default.",
        rich_help_panel=DATA,
    ),
]
TimeDigits = Annotated[
    int | None,
    typer.Option(
        metavar="K", help="Round times to K decimals, to merge near ties.", rich_help_panel=DATA
    ),
]
ModelKind = Annotated[
    Model,
    typer.Option("--model", help="Hazard, or subdistribution hazard.", rich_help_panel=MODEL),
]
Cause = Annotated[
    str | None,
    typer.Option(
        "--cause",
        metavar="CODE",
        help="The event code to study; others count as censored, or as competing events.",
        rich_help_panel=MODEL,
    ),
]
CurveCause = Annotated[
    str | None,
    typer.Option(
        "--cause",
        metavar="CODE",
        help="The event code whose incidence is wanted; all of them if not given.",
        rich_help_panel=RESULT,
    ),
]
CurveTimes = Annotated[
    str | None,
    typer.Option(
        "--times",
        metavar="T,T,...",
        help="Lines for these times only, not for every step.",
        rich_help_panel=RESULT,
    ),
]
TieMethod = Annotated[Ties, typer.Option("--ties", help="Tied event times.", rich_help_panel=MODEL)]
CensoringTieMethod = Annotated[
    CensoringTies | None,
    typer.Option(
        "--censoring-ties",
        help="finegray: censorings tied with events, as R's crr (default) or finegray.",
        rich_help_panel=MODEL,
    ),
]
CensoringGroup = Annotated[
    str | None,
    typer.Option(
        "--censoring-group",
        metavar="COL",
        help="finegray: groups with a censoring distribution each.",
        rich_help_panel=MODEL,
    ),
]
CensoringBeyond = Annotated[
    Beyond | None,
    typer.Option(
        "--censoring-beyond",
        help="finegray: after a group's last time, drop (zero, default) or carry on (last).",
        rich_help_panel=MODEL,
    ),
]
PenaltyShape = Annotated[
    PenaltyKind, typer.Option("--penalty", help="Shape of the penalty.", rich_help_panel=PENALTY)
]
Strength = Annotated[
    list[float] | None,
    typer.Option(
        metavar="S",
        help="l1 = S or l2 = S on the total log likelihood; elastic net: l1 = S R, l2 = S (1 - R); "
        "may be repeated with --cv.",
        rich_help_panel=PENALTY,
    ),
]
Variance = Annotated[
    list[float] | None,
    typer.Option(
        metavar="V",
        help="Instead: prior variance, as Cyclops; may be repeated with --cv.",
        rich_help_panel=PENALTY,
    ),
]
GlmnetLambda = Annotated[
    list[float] | None,
    typer.Option(
        metavar="L",
        help="Instead: lambda, as glmnet (standardize=FALSE); may be repeated with --cv.",
        rich_help_panel=PENALTY,
    ),
]
L1Ratio = Annotated[
    float | None,
    typer.Option(metavar="R", help="Share of L1 in an elastic net.", rich_help_panel=PENALTY),
]
Unpenalized = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A covariate without penalty: the treatment; may be repeated.",
        rich_help_panel=PENALTY,
    ),
]
Factor = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Multiplies the penalty of a covariate; may be repeated.",
        rich_help_panel=PENALTY,
    ),
]
PathLength = Annotated[
    int,
    typer.Option("--n-penalties", metavar="K", help="Points of the path.", rich_help_panel=PENALTY),
]
MinRatio = Annotated[
    float | None,
    typer.Option(metavar="R", help="Weakest strength over the strongest.", rich_help_panel=PENALTY),
]
IntervalKind = Annotated[
    Interval | None,
    typer.Option("--interval", help="Confidence intervals.", rich_help_panel=RESULT),
]
Parameter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Covariate of an interval (all if not given); may be repeated.",
        rich_help_panel=RESULT,
    ),
]
Level = Annotated[float, typer.Option(help="Confidence level.", rich_help_panel=RESULT)]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder for pictures.", rich_help_panel=RESULT),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", help="No summary; warnings stay.", rich_help_panel=RESULT),
]
DeviceName = Annotated[
    Device, typer.Option("--device", help="Where to compute.", rich_help_panel=RUN)
]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Threads; the answer does not depend on it.", rich_help_panel=RUN
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        "--tol", help="Relative KKT residual that counts as converged.", rich_help_panel=RUN
    ),
]
MaxIter = Annotated[
    int,
    typer.Option(metavar="N", help="Limit of Newton steps, or of sweeps.", rich_help_panel=RUN),
]
FitOut = Annotated[
    Path, typer.Option("--out", metavar="FILE", help="fit.json to write.", rich_help_panel=RESULT)
]
PathOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Table to write, .csv or .parquet, one row a penalty.",
        rich_help_panel=RESULT,
    ),
]
CurvesOut = Annotated[
    Path,
    typer.Option(
        "--out", metavar="FILE", help="Table to write, .csv or .parquet.", rich_help_panel=RESULT
    ),
]
CurvesPlot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Picture with intervals and numbers at risk, up to the time when 10 % are still at "
        "risk: .png, .pdf or .svg.",
        rich_help_panel=RESULT,
    ),
]
