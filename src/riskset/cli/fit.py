"""``riskset fit``: from a table on disk to ``fit.json``."""

import time as clock
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from riskset._errors import InputError, check_once
from riskset.cli import options as opt
from riskset.cli.crossval import CrossValidating, as_typed
from riskset.cli.estimation import Chosen, Running, Strength
from riskset.cli.groups import grouped
from riskset.cli.inputs import Columns, Tables
from riskset.cli.resampling import Resampling
from riskset.cli.summary import print_fit, print_written
from riskset.cli.terminal import announce_compiling
from riskset.data.writers import check_folder, check_target

if TYPE_CHECKING:
    import riskset as rs
    from riskset.data.design import Design
    from riskset.estimators._interval import Interval
    from riskset.model.penalty import Penalty

__all__ = ["fit"]

RESAMPLED_OR_PROFILED = (opt.Interval.profile, opt.Interval.bootstrap)


Penalized = Annotated[
    bool,
    typer.Option(
        "--penalized",
        help="profile, bootstrap: --parameter may name penalised covariates, whose intervals do "
        "not have the stated coverage.",
        rich_help_panel=opt.RESULT,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """Confidence intervals, if they are asked for."""

    interval: opt.IntervalKind = None
    parameter: opt.Parameter = None
    level: opt.Level = 0.95
    penalized: Penalized = False

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise InputError(
                f"--level must be between 0 and 1, but it is {self.level:g}.",
                hint="for example --level 0.95.",
            )
        if self.penalized and self.interval not in RESAMPLED_OR_PROFILED:
            raise InputError(
                "--penalized needs --interval profile or bootstrap.",
                hint="add one of them, or leave this out.",
            )
        if self.penalized and not self.parameter:
            raise InputError(
                "--penalized needs --parameter: it is for covariates that are named.",
                hint="for example --parameter age.",
            )
        if self.interval is not None:
            return
        for option, is_given in (
            ("--parameter", bool(self.parameter)),
            ("--level", self.level != 0.95),
        ):
            if is_given:
                raise InputError(f"{option} needs --interval.", hint="for example --interval wald.")

    def check_penalty(self, penalty: opt.PenaltyKind) -> None:
        """A penalty excludes the intervals that are made of a standard error."""
        if self.interval is None or self.interval in RESAMPLED_OR_PROFILED:
            return
        if penalty is not opt.PenaltyKind.none:
            raise InputError(
                f"--interval {self.interval} is not defined for a penalised fit: a penalty biases "
                "the estimates.",
                hint="leave --penalty out, refit with the covariates that a penalty chose, or use "
                "--interval profile or bootstrap for a covariate named by --unpenalized.",
            )

    def check_names(self, design: "Design", penalty: "Penalty | None") -> None:
        """Covariates that were asked for must be in the model, which shows before the fit."""
        from riskset.model.references import without_references

        names = without_references(design, penalty).names
        check_once("--parameter", self.parameter or ())
        for name in self.parameter or ():
            if name not in names:
                raise InputError.unknown_name("--parameter", name, names)
        if self.interval not in RESAMPLED_OR_PROFILED or penalty is None or self.penalized:
            return
        l1, l2 = penalty.arrays(names)
        free = {name for name, a, b in zip(names, l1, l2, strict=True) if not (a or b)}
        for name in self.parameter or (() if free else names[:1]):
            if name not in free:
                raise InputError(
                    f"--interval {self.interval} is for covariates without a penalty, but "
                    f"{name!r} is penalised, which biases its estimate.",
                    hint=f"name it by --unpenalized {name}; or by --parameter {name} --penalized "
                    "for an interval that does not have the stated coverage.",
                )

    def of(
        self, model: "rs.Cox | rs.FineGray", resampling: Resampling
    ) -> "tuple[Interval | None, rs.Bootstrap | None]":
        """The intervals of a fitted model, and the bootstrap that they are made of."""
        if self.interval is None:
            return None, None
        if self.interval is opt.Interval.bootstrap:
            found = resampling.of(model, self.parameter or None)
            return found.interval(self.level, resampling.type), found
        bounds = model.confidence_interval(
            self.parameter or None,
            method=self.interval.value,
            level=self.level,
            penalized=self.penalized,
        )
        return bounds, None


@grouped
def fit(
    patients: opt.Patients,
    *,
    columns: Columns,
    tables: Tables,
    chosen: Chosen,
    strength: Strength,
    crossval: CrossValidating,
    intervals: Intervals,
    resampling: Resampling,
    out: opt.FitOut,
    plot: opt.Plot = None,
    run: Running,
) -> None:
    """Fit a model to a table and write the answer as JSON.

    Every column of PATIENTS that no option names is a covariate. OHDSI's names (rowId, time, y,
    stratumId, weights; rowId, covariateId, covariateValue) need no options.
    """
    # Here and not above: they bring numba and scikit-learn, which `riskset --help` does not need.
    from riskset.cli.pictures import draw_bootstrap, draw_cross_validation, draw_fit, draw_profile
    from riskset.estimators.saving import write_fit

    strength.check(crossval.cv)
    intervals.check_penalty(strength.penalty)
    is_resampled = intervals.interval is opt.Interval.bootstrap
    crossval.check(
        strength.n_given,
        chosen.model,
        has_idle_seed=resampling.seed is not None and not is_resampled,
    )
    resampling.check(intervals.interval, intervals.level, is_cross_validated=crossval.cv)
    check_target(out, suffixes=(".json",), inputs=tables.inputs(patients))
    check_folder(plot)
    announce_compiling(run.quiet)
    started = clock.perf_counter()
    columns, labels = crossval.read(patients, columns, tables, chosen.censoring_group)
    data = tables.read(patients, columns, chosen.censoring_group)
    read = clock.perf_counter() - started
    penalties = strength.penalties_for(data)
    penalty = strength.at_strength(1.0) if crossval.cv else next(iter(penalties), None)
    intervals.check_names(data.design, penalty)
    estimator = chosen.estimator(penalty, run)
    if crossval.cv:
        estimator = crossval.estimator(estimator, penalties, labels, resampling)
    fitted = estimator.fit(data)
    if crossval.cv:
        as_typed(fitted, lambda found: strength.spelled(found, penalties))
    began = clock.perf_counter()
    bounds, bootstrap = intervals.of(fitted, resampling)
    seconds = {"read": read, **fitted.seconds_}
    if bounds is not None:
        seconds["interval"] = clock.perf_counter() - began
    write_fit(out, fitted, interval=bounds, seconds=seconds)
    if plot is not None:
        draw_fit(plot, fitted, bounds)
        if crossval.cv:
            draw_cross_validation(plot, fitted)
        if bootstrap is not None:
            draw_bootstrap(plot, bootstrap, bounds)
        if bounds is not None and intervals.interval is opt.Interval.profile:
            draw_profile(plot, data, fitted, bounds)
    if not run.quiet:
        print_fit(patients.name, data, fitted, bounds, seconds)
        print_written(out, plot)
