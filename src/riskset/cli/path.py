"""``riskset path``: solutions for a range of penalty strengths."""

import time as clock
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import riskset as rs
from riskset._errors import InputError
from riskset._types import AnyArray
from riskset.cli.input_options import ColumnOptions, PatientsFile, TableOptions
from riskset.cli.model_options import ComputeOptions, ModelOptions, PenaltyShapeOptions
from riskset.cli.options import PENALTY, RESULT, grouped, option
from riskset.cli.summary import print_path, print_written
from riskset.cli.terminal import hush_compiling
from riskset.data.writers import TABLE_SUFFIXES, check_folder, check_target, write_table

__all__ = ["path"]


@dataclass(frozen=True, kw_only=True)
class PathOptions:
    """The penalties of a path, and where the results go."""

    n_penalties: int = option("Fit this number of penalties.", 100, metavar="K", panel=PENALTY)
    min_ratio: float | None = option(
        "Set the ratio of the weakest strength to the strongest.", metavar="R", panel=PENALTY
    )
    out: Path | None = option(
        "Write a table with one row per penalty to this .csv or .parquet file.",
        metavar="FILE",
        panel=RESULT,
    )
    plot: Path | None = option("Draw a picture in this folder.", metavar="DIR", panel=RESULT)


@grouped
def path(
    patients: PatientsFile,
    *,
    columns: ColumnOptions,
    tables: TableOptions,
    model: ModelOptions,
    shape: PenaltyShapeOptions,
    options: PathOptions,
    compute: ComputeOptions,
) -> None:
    """Fit a model at a range of penalty strengths, and certify each solution.

    The first strength is the smallest at which every penalised coefficient is 0.
    """
    if shape.penalty == "none":
        raise InputError("a path needs a penalty.", hint="choose --penalty l1, l2 or elasticnet.")
    model.check_likelihood(shape.penalty)
    if options.out is not None:
        check_target(options.out, suffixes=TABLE_SUFFIXES, inputs=tables.inputs(patients))
    check_folder(options.plot)
    hush_compiling(compute.quiet)
    started = clock.perf_counter()
    data = tables.read(patients, columns, model.censoring_group)
    read = clock.perf_counter() - started
    estimator = model.estimator(shape.at_strength(1.0), compute)
    result = rs.path(estimator, data, n_penalties=options.n_penalties, min_ratio=options.min_ratio)
    if options.out is not None:
        write_table(options.out, _columns(result))
    if options.plot is not None:
        # Here, because it brings matplotlib.
        from riskset.cli.pictures import draw_path

        draw_path(options.plot, data, result)
    if not compute.quiet:
        print_path(patients.name, data, estimator, result, read)
        print_written(options.out, options.plot)


def _columns(result: "rs.PathResult") -> dict[str, AnyArray]:
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
