"""``riskset fit``: from a table on disk to ``fit.json``."""

import time as clock

from riskset._errors import InputError
from riskset.cli import options as opt
from riskset.cli.request import Request
from riskset.cli.summary import print_fit, print_written
from riskset.data.writers import check_folder, check_target

__all__ = ["fit"]


def fit(
    patients: opt.Patients,
    *,
    covariates: opt.Covariates = None,
    table: opt.TableName = None,
    query: opt.Query = None,
    time: opt.Time = None,
    event: opt.Event = None,
    id: opt.Id = None,
    entry: opt.Entry = None,
    strata: opt.Strata = None,
    weight: opt.Weight = None,
    cluster: opt.Cluster = None,
    offset: opt.Offset = None,
    drop: opt.Drop = None,
    duplicates: opt.DuplicateEntries = opt.Duplicates.error,
    time_digits: opt.TimeDigits = None,
    model: opt.ModelKind = opt.Model.cox,
    cause: opt.Cause = None,
    ties: opt.TieMethod = opt.Ties.breslow,
    censoring_ties: opt.CensoringTieMethod = None,
    censoring_group: opt.CensoringGroup = None,
    censoring_beyond: opt.CensoringBeyond = None,
    penalty: opt.PenaltyShape = opt.PenaltyKind.none,
    strength: opt.Strength = None,
    variance: opt.Variance = None,
    glmnet_lambda: opt.GlmnetLambda = None,
    l1_ratio: opt.L1Ratio = None,
    unpenalized: opt.Unpenalized = None,
    factor: opt.Factor = None,
    interval: opt.IntervalKind = None,
    parameter: opt.Parameter = None,
    level: opt.Level = 0.95,
    out: opt.FitOut,
    plot: opt.Plot = None,
    quiet: opt.Quiet = False,
    device: opt.DeviceName = opt.Device.auto,
    threads: opt.Threads = None,
    tol: opt.Tolerance = 1e-8,
    max_iter: opt.MaxIter = 200,
) -> None:
    """Fit a model to a table and write the answer as JSON.

    Every column of PATIENTS that no option names is a covariate. OHDSI's names (rowId, time, y,
    stratumId, weights; rowId, covariateId, covariateValue) need no options.
    """
    # Here and not above: they bring numba and scikit-learn, which `riskset --help` does not need.
    from riskset.cli.pictures import draw_fit
    from riskset.fit_file import write_fit

    given = locals()
    request = Request(**{name: given[name] for name in Request.__dataclass_fields__})
    request.check_strength()
    _check_interval(request, interval, parameter, level)
    check_target(out, suffixes=(".json",), inputs=request.inputs)
    check_folder(plot)
    started = clock.perf_counter()
    data = request.read()
    seconds = {"read": clock.perf_counter() - started}
    _check_names(parameter, data.design.names)
    fitted = request.estimator(request.penalty_for(data)).fit(data)
    bounds = None
    if interval is not None:
        bounds = fitted.confidence_interval(parameter or None, method=interval.value, level=level)
    write_fit(out, fitted, interval=bounds, seconds=seconds)
    if plot is not None:
        draw_fit(plot, fitted, bounds)
    if not quiet:
        print_fit(patients.name, fitted, bounds, seconds["read"])
        print_written(out, plot)


def _check_interval(
    request: Request,
    interval: opt.Interval | None,
    parameter: list[str] | None,
    level: float,
) -> None:
    if not 0 < level < 1:
        raise InputError(
            f"--level must be between 0 and 1, but it is {level:g}.",
            hint="for example --level 0.95.",
        )
    if interval is None:
        for option, is_given in (("--parameter", bool(parameter)), ("--level", level != 0.95)):
            if is_given:
                raise InputError(f"{option} needs --interval.", hint="for example --interval wald.")
    elif request.penalty is not opt.PenaltyKind.none:
        raise InputError(
            f"--interval {interval} is not defined for a penalised fit: a penalty biases the "
            "estimates.",
            hint="leave --penalty out, or refit with the covariates that a penalty chose.",
        )


def _check_names(parameter: list[str] | None, names: tuple[str, ...]) -> None:
    for name in parameter or ():
        if name not in names:
            raise InputError.unknown_name("--parameter", name, names)
