"""Kinds of residuals of a fit, their case weights and their sums over clusters."""

from typing import Literal, get_args

import numpy as np

from riskset._errors import InputError
from riskset._types import Index, Matrix, Rows
from riskset.data.design import Design
from riskset.infer import residuals as residual
from riskset.infer.dfbeta import dfbeta_residuals
from riskset.infer.variance import cluster_sums
from riskset.model.loss import Loss

__all__ = ["INFLUENCES", "ResidualKind", "check_residual", "residuals_of_rows"]

ResidualKind = Literal[
    "martingale", "deviance", "score", "schoenfeld", "scaled_schoenfeld", "dfbeta", "dfbetas"
]
INFLUENCES = ("dfbeta", "dfbetas")
OF_EVENTS = ("schoenfeld", "scaled_schoenfeld")


def check_residual(kind: str, weighted: bool | None, collapse: bool) -> None:
    """Refuse kinds that do not exist, and options that a kind does not have."""
    if not isinstance(kind, str) or kind not in get_args(ResidualKind):
        raise InputError.wrong_option("kind", kind, get_args(ResidualKind))
    if not isinstance(collapse, bool | np.bool_):
        raise InputError(
            f"`collapse` must be True or False, but its type is {type(collapse).__name__}.",
            hint="pass the labels over which to sum as `cluster`, with `collapse=True`.",
        )
    if kind in OF_EVENTS and (weighted or collapse):
        raise InputError(
            f"residuals of kind {kind!r} have one row per event, so `weighted` and `collapse` "
            "do not apply.",
            hint="leave them out; `row` says which row of the data has the event.",
        )
    if kind == "deviance" and weighted:
        raise InputError(
            "deviance residuals are roots, so multiplying them by weights says nothing.",
            hint="leave `weighted` out.",
        )


def residuals_of_rows(
    kind: str,
    at: tuple[Loss, Design, Rows],
    estimated: Index,
    weighted: bool | None,
    collapse: bool,
) -> Rows | Matrix:
    """Residuals (n,) or (n, p) of rows, or sums of clusters, at a linear predictor.

    Influences concern the columns that are `estimated`.
    """
    loss, _, eta = at
    units = loss.outcome.cluster
    if collapse and units is None:
        raise InputError(
            "`collapse` sums over clusters, but the data have none.", hint="pass `cluster`."
        )
    if not collapse or units is None:
        return _of_rows(kind, at, estimated, weighted)
    if kind == "deviance":
        return residual.collapsed_deviance_residuals(loss, eta, units)
    found = _of_rows(kind, at, estimated, weighted)
    columns = found if found.ndim == 2 else found[:, None]
    return cluster_sums(columns, units).reshape(-1, *found.shape[1:])


def _of_rows(
    kind: str, at: tuple[Loss, Design, Rows], estimated: Index, weighted: bool | None
) -> Rows | Matrix:
    """Residuals with the case weights if wanted."""
    loss, design, eta = at
    weight = loss.outcome.weight
    if kind in INFLUENCES:
        found = dfbeta_residuals(loss, design, eta, estimated, standardized=kind == "dfbetas")
        if weighted is False:
            found /= np.where(weight > 0, weight, 1.0)[:, None]
        return found
    if kind == "deviance":
        return residual.deviance_residuals(loss, eta)
    plain = (
        residual.martingale_residuals(loss, eta)
        if kind == "martingale"
        else residual.score_residuals(loss, design, eta)
    )
    if not weighted:
        return plain
    by_row = weight if plain.ndim == 1 else weight[:, None]
    return np.asarray(np.where(by_row > 0, plain, 0.0) * by_row)
