"""What a solver returns: the answer, its certificate, and what there is to say about it."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from riskset._messages import Note
from riskset._types import Features, Rows
from riskset.model.loss import Loss
from riskset.solve.curvature import CurvatureModel
from riskset.solve.exact import Direction

__all__ = ["UNCERTIFIED", "Solution", "Status"]

Status = Literal["converged", "infinite_estimate", "undecided", "max_iter", "not_estimable"]
UNCERTIFIED = ("max_iter", "undecided")
"""Statuses of an answer that may not be the maximum of the likelihood."""


@dataclass(frozen=True)
class Solution:
    """A minimiser of ``-loglik + penalty`` with its certificate.

    Attributes
    ----------
    coef : (p,) float64
        In the user's units; +inf or -inf where the maximum lies at infinity.
    status : str
        "converged" means that `kkt` <= tol over all columns and, where separation was looked for,
        that the estimate is proven to be finite; "infinite_estimate" that it is proven not to be.
        "undecided": `kkt` <= tol, but there is a proof of neither (`solve.separation`).
    kkt, kkt_absolute, kkt_column
        Largest violation of the optimality conditions, relative to the gradient at 0, and as is
        (mathematics in `solve.optimality`); its column, -1 without columns.
    log_likelihood, null_log_likelihood, objective
        The limit of the log likelihood where the estimate is infinite.
    n_iter, n_passes
        Newton steps, of all stages where the estimate is infinite, and evaluations.
    gradient, gradient_at_zero : (p,) float64
        Of the log likelihood, in stored units; `gradient` is empty in a start at other
        coefficients.
    eta : (n,) float64
        Linear predictor of the training rows up to a constant, offset included, without the
        infinite part; empty where `gradient` is, or if the rows are elsewhere.
    infinite : (p,) int8
        Sign of each infinite coefficient, 0 for the finite ones.
    directions
        In stored units, one for each stage of an infinite estimate, which is
        ``finite_part + t_1 d_1 + t_2 d_2 + ...`` as all t go to infinity, each beyond all bounds
        that those after it set.
    finite_part : (p,) float64
        `coef` where it is finite; what an infinite coefficient adds beside `directions`.
    aliased : (p,) bool
        Columns that carry no information or repeat others; their coefficient is 0.
    loss
        The likelihood that the finite coefficients maximise: restricted to the limiting risk sets
        where the estimate is infinite. None if the rows are elsewhere.
    curvature
        What the last step worked with, for those who go on from here.
    penalized_gain
        Of Firth's penalised likelihood (`solve.firth`): what it gained from coefficients 0.
    """

    coef: Features
    status: Status
    kkt: float
    kkt_absolute: float
    kkt_column: int
    log_likelihood: float
    null_log_likelihood: float
    objective: float
    n_iter: int
    n_passes: int
    gradient: Features
    gradient_at_zero: Features
    eta: Rows
    infinite: NDArray[np.int8]
    directions: tuple[Direction, ...]
    finite_part: Features
    aliased: NDArray[np.bool_]
    loss: Loss | None
    notes: tuple[Note, ...] = ()
    curvature: CurvatureModel | None = None
    penalized_gain: float | None = None

    def moved_to(self, coef: Features) -> "Solution":
        """A start with other coefficients: what holds only where the fit ended is left out."""
        return replace(self, coef=coef, gradient=self.gradient[:0], eta=self.eta[:0])

    @classmethod
    def starting_at(cls, coef: Features) -> "Solution":
        """Nothing but coefficients to start a fit at."""
        none, nan = np.zeros(0), float("nan")
        return cls(
            coef, "max_iter", nan, nan, -1, nan, nan, nan, 0, 0, none, none, none,
            np.zeros(coef.size, dtype=np.int8), (), coef, np.zeros(coef.size, dtype=bool), None,
        )  # fmt: skip

    @property
    def likelihood(self) -> Loss:
        """`loss`, of a fit whose rows are on this machine."""
        assert self.loss is not None
        return self.loss
