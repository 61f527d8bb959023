"""Covariates of a study: a `Design` from whatever table the user has, and what models say."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from riskset._errors import CohortError, InputError
from riskset._types import AnyArray, Features, Index
from riskset.data.dataset import Dataset
from riskset.data.design import Design
from riskset.data.frame import FrameEncoder, data_frame

__all__ = ["as_design", "coefficient_frame", "columns_of"]


def as_design(X: object, n_rows: int | None = None) -> Design:
    """A Design from any table of covariates; categories become ``column=level``, for every level.

    The covariates of a `Dataset` with labels have these for names, and their own names for keys.

    None, another number of rows, and missing or infinite values raise "BadCovariates".
    """
    if X is None:
        raise CohortError(
            "BadCovariates",
            "the covariates are None.",
            hint="pass a Design, a data frame, a matrix or an array with a row for each row of the "
            "population.",
        )
    try:
        design = _design(X)
    except InputError as error:  # such as missing values
        raise CohortError("BadCovariates", error.message, hint=error.hint) from None
    if n_rows is not None and design.n_rows != n_rows:
        raise CohortError(
            "BadCovariates",
            f"the covariates have {design.n_rows:,} rows, but the population has {n_rows:,}.",
            hint="pass the covariates of everybody, before trimming and matching, in the order of "
            "the population.",
        )
    return design


def columns_of(design: Design, wanted: Sequence[int | str]) -> Index:
    """Numbers of the columns with these keys, or else names; files have ids as text."""
    place: dict[int | str, int] = {name: j for j, name in enumerate(design.names)}
    place |= {str(key): j for j, key in enumerate(design.keys)}
    place |= {key: j for j, key in enumerate(design.keys)}
    for one in wanted:
        if one not in place:
            raise InputError.unknown_name("covariate", one, design.keys)
    return np.array([place[one] for one in wanted], dtype=np.int64)


def _design(X: object) -> Design:
    if isinstance(X, Dataset):
        return X.labels.labelled(X.design)
    if isinstance(X, Design):
        return X
    if sp.issparse(X):
        return Design.from_sparse(X)
    if hasattr(X, "columns") or hasattr(X, "__arrow_c_stream__"):
        return FrameEncoder.fit(X)[1]
    return Design.from_dense(X)


def coefficient_frame(
    keys: Sequence[Any], names: Sequence[str], coef: Features, library: str | None
) -> Any:
    """Return a data frame of the non-zero coefficients, largest first."""
    used = np.flatnonzero(coef)
    used = used[np.argsort(-np.abs(coef[used]), kind="stable")]
    columns: dict[str, AnyArray] = {
        "covariate_id": np.array([keys[j] for j in used.tolist()], dtype=object),
        "name": np.array([names[j] for j in used.tolist()], dtype=object),
        "coef": coef[used],
    }
    return data_frame(columns, library)
