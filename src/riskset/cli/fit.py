"""``riskset fit``: from a table on disk to ``fit.json``."""

import time as clock
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from riskset._errors import InputError
from riskset._types import AnyArray
from riskset.cli.crossval_options import CrossValidationOptions, as_typed
from riskset.cli.input_options import ColumnOptions, PatientsFile, TableOptions
from riskset.cli.interval_options import BootstrapOptions, IntervalOptions
from riskset.cli.model_options import (
    ComputeOptions,
    FrailtyOptions,
    ModelOptions,
    PenaltyOptions,
)
from riskset.cli.options import RESULT, grouped, option
from riskset.cli.predict import parsed_times
from riskset.cli.summary import print_fit, print_written
from riskset.cli.terminal import hush_compiling
from riskset.data.writers import check_folder, check_target

__all__ = ["fit"]


@dataclass(frozen=True, kw_only=True)
class FitFiles:
    """Where the results go."""

    out: Path = option(
        "Write the fitted model to this JSON file.", ..., metavar="FILE", panel=RESULT
    )
    plot: Path | None = option("Draw pictures in this folder.", metavar="DIR", panel=RESULT)
    interval_times: str | None = option(
        "Also store what `riskset predict --interval` needs at these times: 365,730. For each time "
        "and stratum, this includes the mean covariates of those at risk until then.",
        metavar="T,T,...",
        panel=RESULT,
    )

    def times(self, penalty: str) -> AnyArray | None:
        """The times of intervals of predictions, which a penalised fit does not have."""
        if self.interval_times is None:
            return None
        if penalty != "none":
            raise InputError(
                "--interval-times is not defined for a penalised fit, because a penalty biases the "
                "estimates.",
                hint="leave --penalty out, or refit with the covariates that a penalty chose.",
            )
        return parsed_times("--interval-times", self.interval_times)


@grouped
def fit(
    patients: PatientsFile,
    *,
    columns: ColumnOptions,
    tables: TableOptions,
    model: ModelOptions,
    frailty: FrailtyOptions,
    penalty: PenaltyOptions,
    crossval: CrossValidationOptions,
    intervals: IntervalOptions,
    bootstrap: BootstrapOptions,
    files: FitFiles,
    compute: ComputeOptions,
) -> None:
    """Fit a Cox or Fine-Gray model to a table and write the result as JSON.

    Every column of PATIENTS that is not named by an option is a covariate. Columns with the names
    of OHDSI (rowId, time, y, stratumId, weights; rowId, covariateId, covariateValue) are recognised
    without options.
    """
    # Here and not above: they bring numba and scikit-learn, which `riskset --help` does not need.
    from riskset.cli.pictures import draw_bootstrap, draw_cross_validation, draw_fit, draw_profile
    from riskset.estimators.saving import write_fit

    frailty.check(model, compute, _beside_frailties(penalty, crossval, intervals, files))
    penalty.check(crossval.cv)
    intervals.check_penalty(penalty.penalty)
    model.check_likelihood(penalty.penalty, intervals.interval)
    is_resampled = intervals.interval == "bootstrap"
    crossval.check(
        penalty.n_given,
        model.model,
        has_idle_seed=bootstrap.seed is not None and not is_resampled,
    )
    bootstrap.check(intervals.interval, intervals.level, is_cross_validated=crossval.cv)
    check_target(files.out, suffixes=(".json",), inputs=tables.inputs(patients))
    check_folder(files.plot)
    at = files.times(penalty.penalty)
    hush_compiling(compute.quiet)
    started = clock.perf_counter()
    columns, labels = crossval.read(patients, columns, tables, model.censoring_group)
    data = tables.read(patients, columns, model.censoring_group)
    read = clock.perf_counter() - started
    penalties = penalty.penalties_for(data)
    kind = (
        penalty.at_strength(1.0).without_strength() if crossval.cv else next(iter(penalties), None)
    )
    intervals.check_names(data.design, kind)
    fitted: Any
    if frailty.frailty is not None:
        fitted = frailty.estimator(model, compute).fit(data)
    else:
        estimator = model.estimator(kind, compute)
        if crossval.cv:
            estimator = crossval.estimator(estimator, penalties, labels, bootstrap)
        fitted = estimator.fit(data)
    if crossval.cv:
        as_typed(fitted, lambda best: penalty.spelled(best, penalties))
    began = clock.perf_counter()
    bounds, resampled = intervals.of(fitted, bootstrap)
    seconds = {"read": read, **fitted.seconds_}
    if bounds is not None:
        seconds["interval"] = clock.perf_counter() - began
    write_fit(files.out, fitted, interval=bounds, interval_times=at, seconds=seconds)
    if files.plot is not None:
        draw_fit(files.plot, fitted, bounds)
        if crossval.cv:
            draw_cross_validation(files.plot, fitted)
        if resampled is not None:
            draw_bootstrap(files.plot, resampled, bounds)
        if bounds is not None and intervals.interval == "profile":
            draw_profile(files.plot, data, fitted, bounds)
    if not compute.quiet:
        print_fit(patients.name, data, fitted, bounds, seconds)
        print_written(files.out, files.plot)


def _beside_frailties(
    penalty: PenaltyOptions,
    crossval: CrossValidationOptions,
    intervals: IntervalOptions,
    files: FitFiles,
) -> dict[str, bool]:
    """Options that a model with frailties does not have, and whether they were given."""
    return {
        f"--penalty {penalty.penalty}": penalty.penalty != "none",
        "--cv": crossval.cv,
        f"--interval {intervals.interval}": intervals.interval not in (None, "wald"),
        "--interval-times": files.interval_times is not None,
    }
