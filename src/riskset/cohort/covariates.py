"""Covariates of a study as a `Design`, from whatever table the user has."""

import scipy.sparse as sp

from riskset._errors import CohortError
from riskset.data.dataset import Dataset
from riskset.data.design import Design
from riskset.data.frame import FrameEncoder

__all__ = ["as_design"]


def as_design(X: object, n_rows: int | None = None) -> Design:
    """The covariates of the rows of a population, in its order.

    Parameters
    ----------
    X : Design, Dataset, data frame, sparse matrix or array (n, p)
        Categories of a frame become ``column=level``, for every level but the first.
    n_rows : int, optional
        Default: any number.

    Raises
    ------
    CohortError
        "BadCovariates", if it has another number of rows.
    """
    if isinstance(X, Dataset):
        design = X.design
    elif isinstance(X, Design):
        design = X
    elif sp.issparse(X):
        design = Design.from_sparse(X)
    elif hasattr(X, "columns") or hasattr(X, "__arrow_c_stream__"):
        design = FrameEncoder.fit(X)[1]
    else:
        design = Design.from_dense(X)
    if n_rows is not None and design.n_rows != n_rows:
        raise CohortError(
            "BadCovariates",
            f"the covariates have {design.n_rows:,} rows, but the population has {n_rows:,}.",
            hint="pass the covariates of everybody, before trimming and matching, in the order of "
            "the population.",
        )
    return design
