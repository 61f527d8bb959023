"""``riskset path``: solutions for a range of penalty strengths."""

import time as clock
from typing import TYPE_CHECKING

import numpy as np

import riskset as rs
from riskset._errors import InputError
from riskset.cli import options as opt
from riskset.cli.estimation import Chosen, Running, Shape
from riskset.cli.groups import grouped
from riskset.cli.inputs import Columns, Tables
from riskset.cli.summary import print_path, print_written
from riskset.cli.terminal import announce_compiling
from riskset.data.writers import TABLE_SUFFIXES, check_folder, check_target, write_table

if TYPE_CHECKING:
    from riskset._types import AnyArray

__all__ = ["path"]


@grouped
def path(
    patients: opt.Patients,
    *,
    columns: Columns,
    tables: Tables,
    chosen: Chosen,
    shape: Shape,
    n_penalties: opt.PathLength = 100,
    min_ratio: opt.MinRatio = None,
    out: opt.PathOut = None,
    plot: opt.Plot = None,
    run: Running,
) -> None:
    """Fit a model for a range of penalty strengths, each solution certified.

    The first strength is the smallest that keeps every penalised coefficient at 0.
    """
    if shape.penalty is opt.PenaltyKind.none:
        raise InputError("a path needs a penalty.", hint="choose --penalty l1, l2 or elasticnet.")
    if out is not None:
        check_target(out, suffixes=TABLE_SUFFIXES, inputs=tables.inputs(patients))
    check_folder(plot)
    announce_compiling(run.quiet)
    started = clock.perf_counter()
    data = tables.read(patients, columns, chosen.censoring_group)
    read = clock.perf_counter() - started
    estimator = chosen.estimator(shape.at_strength(1.0), run)
    result = rs.path(estimator, data, n_penalties=n_penalties, min_ratio=min_ratio)
    if out is not None:
        write_table(out, _columns(result))
    if plot is not None:
        # Here, because it brings matplotlib.
        from riskset.cli.pictures import draw_path

        draw_path(plot, data, result)
    if not run.quiet:
        print_path(patients.name, data, estimator, result, read)
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
