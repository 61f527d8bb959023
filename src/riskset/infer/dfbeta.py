"""How much each row, or cluster of rows, moves the coefficients of a fit."""

import numpy as np

from riskset._runtime import one_blas_thread
from riskset._types import Index, Matrix, Rows
from riskset.data.design import Design
from riskset.infer.variance import Covariance, influence, information_inverse
from riskset.model.loss import Loss

__all__ = ["dfbeta_residuals"]


@one_blas_thread
def dfbeta_residuals(
    loss: Loss, design: Design, eta: Rows, estimated: Index, *, standardized: bool
) -> Matrix:
    r"""Change of the coefficients (n, p) that a row makes, to first order, its weight included.

    .. math:: w_i U_i \, I^{-1}

    with the score residuals U and the information I of the data. `standardized` divides by the
    standard errors of I. Columns that are not `estimated` are held fixed; they, and coefficients
    that are not identified, have NaN. `eta` is that of an unpenalised fit, offset included.

    References
    ----------
    Therneau and Grambsch (2000), Modeling Survival Data, Springer, section 7.1.
    """
    columns = np.arange(design.n_features)
    inverse = information_inverse(loss, design, eta, estimated)
    model = Covariance("model", columns, inverse, inverse.matrix, design.scale)
    out = influence(loss, design, eta, inverse, columns) / design.scale
    out[:, ~model.identified] = np.nan
    return out / model.standard_error if standardized else out
