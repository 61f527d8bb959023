"""``riskset predict``: survival or cumulative incidence of new rows from a fit."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import riskset as rs
from riskset._errors import InputError, counted
from riskset._messages import spoken
from riskset._types import AnyArray
from riskset.cli.input_options import TableOptions, check_readable
from riskset.cli.options import grouped, option
from riskset.cli.summary import print_written
from riskset.cli.terminal import hush_compiling, output, warn
from riskset.cli.wording import COMMAND_LINE
from riskset.data.writers import TABLE_SUFFIXES, check_target, write_table

__all__ = ["parsed_times", "predict"]

COLUMNS = (
    "time", "linear_predictor", "survival", "cumulative_hazard", "cumulative_incidence",
    "standard_error", "lower", "upper",
)  # fmt: skip


FitFile = Annotated[
    Path,
    typer.Argument(
        metavar="FIT",
        help="Fitted model, from `riskset fit` or from model.save(...) in Python.",
        show_default=False,
    ),
]
NewRows = Annotated[
    Path,
    typer.Argument(
        metavar="NEW", help="Table of new rows, with the columns of the fit.", show_default=False
    ),
]


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """What is predicted, and where the predictions go."""

    times: str | None = option(
        "Also predict survival (or incidence) at these times, in the time unit of the fit: "
        "365,730.",
        metavar="T,T,...",
    )
    interval: bool = option(
        "Also write standard errors and limits of the survival (or incidence), of a model fitted "
        "without a penalty and with `riskset fit --interval-times`.",
        False,
    )
    level: float | None = option("Confidence level of the limits; default: 0.95.", metavar="SHARE")
    out: Path = option("Write the predictions to this .csv or .parquet file.", ..., metavar="FILE")
    quiet: bool = option("Print no summary; warnings are still printed.", False)


@grouped
def predict(
    fit_file: FitFile, new: NewRows, *, options: PredictOptions, tables: TableOptions
) -> None:
    """Predict the linear predictor of new rows, and with --times survival or incidence.

    Columns, categories, covariate keys, strata and offsets are found by the names that they had in
    the fit, and a long table is read as it was then; other columns are ignored. The result has one
    row for each row of NEW, or for each row and time: survival and cumulative hazard, or cumulative
    incidence. These require a stratum of the fit, if the fit has strata; the linear predictor does
    not.
    """
    from riskset.estimators.saving import read_fit

    at = None if options.times is None else parsed_times("--times", options.times)
    if options.interval and at is None:
        raise InputError("--interval needs --times.", hint="for example --times 365,730.")
    if options.level is not None and not options.interval:
        raise InputError("--level is that of --interval.", hint="add --interval.")
    level = 0.95 if options.level is None else options.level
    check_target(options.out, suffixes=TABLE_SUFFIXES, inputs=[fit_file, *tables.inputs(new)])
    hush_compiling(options.quiet)
    check_readable(fit_file)
    model, schema = read_fit(fit_file)
    data = tables.read_new(schema, new)
    for note in data.notes:
        warn(spoken(note.message, COMMAND_LINE))
    columns = _predictions(model, data, at)
    if options.interval and at is not None:
        columns |= _limits(model, data, at, level)
    write_table(options.out, columns)
    if not options.quiet:
        when = "" if at is None else f" at {counted(at.size, 'time')}"
        output().print(f"predicted {counted(data.n_rows, 'row')}{when}")
        print_written(options.out)


def parsed_times(name: str, text: str) -> AnyArray:
    """Times from a list with commas, the value of an option."""
    try:
        times = [float(part) for part in text.split(",")]
    except ValueError:
        times = [math.nan]
    if not all(0 <= time < math.inf for time in times):
        raise InputError(
            f"{name} must be numbers of at least 0, separated by commas, but it is {text!r}.",
            hint=f"for example {name} 365,730.",
        )
    return np.array(times)


def _predictions(
    model: "rs.Cox | rs.FineGray", data: "rs.Dataset", times: AnyArray | None
) -> dict[str, AnyArray]:
    n_rows, n_times = data.n_rows, 1 if times is None else times.size
    keys = data.row_keys
    name = data.schema.roles.id if keys is not None else None
    if keys is None:
        keys = np.arange(1, n_rows + 1)
    # The key keeps its name, unless that is the name of a prediction.
    key = "row" if name is None else name if name not in COLUMNS else f"{name}_key"
    columns = {key: np.repeat(keys, n_times)}
    eta = np.repeat(model.predict(data), n_times)
    if times is None:
        return columns | {"linear_predictor": eta}
    columns |= {"time": np.tile(times, n_rows), "linear_predictor": eta}
    if isinstance(model, rs.FineGray):
        incidence = model.predict_cumulative_incidence(data, times)
        return columns | {"cumulative_incidence": incidence.ravel()}
    hazard = model.predict_cumulative_hazard_function(data, times)
    return columns | {"survival": np.exp(-hazard).ravel(), "cumulative_hazard": hazard.ravel()}


def _limits(
    model: "rs.Cox | rs.FineGray", data: "rs.Dataset", times: AnyArray, level: float
) -> dict[str, AnyArray]:
    """Standard errors and limits of the survival, or of the incidence."""
    columns = model.predict_interval(data, times, level=level).columns()
    return {name: columns[name] for name in ("standard_error", "lower", "upper")}
