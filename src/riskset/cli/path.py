"""``riskset path``: solutions for a range of penalty strengths."""

import time as clock
from typing import TYPE_CHECKING

import numpy as np

import riskset as rs
from riskset._errors import InputError
from riskset.cli import options as opt
from riskset.cli.request import Request
from riskset.cli.summary import print_path, print_written
from riskset.data.writers import TABLE_SUFFIXES, check_folder, check_target, write_table

if TYPE_CHECKING:
    from riskset._types import AnyArray

__all__ = ["path"]


def path(
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
    penalty: opt.PenaltyShape = opt.PenaltyKind.l1,
    l1_ratio: opt.L1Ratio = None,
    unpenalized: opt.Unpenalized = None,
    factor: opt.Factor = None,
    n_penalties: opt.PathLength = 100,
    min_ratio: opt.MinRatio = None,
    out: opt.PathOut = None,
    plot: opt.Plot = None,
    quiet: opt.Quiet = False,
    device: opt.DeviceName = opt.Device.auto,
    threads: opt.Threads = None,
    tol: opt.Tolerance = 1e-8,
    max_iter: opt.MaxIter = 200,
) -> None:
    """Fit a model for a range of penalty strengths, each solution certified.

    The first strength is the smallest that keeps every penalised coefficient at 0.
    """
    given = locals()
    request = Request(**{k: given[k] for k in Request.__dataclass_fields__ if k in given})
    if penalty is opt.PenaltyKind.none:
        raise InputError("a path needs a penalty.", hint="choose --penalty l1, l2 or elasticnet.")
    if out is not None:
        check_target(out, suffixes=TABLE_SUFFIXES, inputs=request.inputs)
    check_folder(plot)
    started = clock.perf_counter()
    data = request.read()
    read = clock.perf_counter() - started
    result = rs.path(
        request.estimator(request.at_strength(1.0)),
        data,
        n_penalties=n_penalties,
        min_ratio=min_ratio,
    )
    if out is not None:
        write_table(out, _columns(result))
    if plot is not None:
        # Here, because it brings matplotlib.
        from riskset.cli.pictures import draw_path

        draw_path(plot, data, result)
    if not quiet:
        print_path(patients.name, result, read)
        print_written(out, plot)


def _columns(result: "rs.PathResult") -> dict[str, "AnyArray"]:
    """One row a penalty; a column for each coefficient that is not 0 everywhere on the path."""
    columns: dict[str, AnyArray] = {
        "l1": np.array([penalty.l1 for penalty in result.penalties]),
        "l2": np.array([penalty.l2 for penalty in result.penalties]),
        "status": np.array(result.statuses, dtype=object),
        "kkt": result.kkt,
        "log_likelihood": result.log_likelihoods,
        "objective": result.objectives,
        "iterations": result.n_iter,
        "n_nonzero": result.n_nonzero,
    }
    for j in np.flatnonzero(result.coefs.any(axis=0)):
        columns[f"coef:{result.names[j]}"] = result.coefs[:, j]
    return columns
