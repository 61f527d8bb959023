"""Score residuals of a logistic regression."""

from dataclasses import dataclass

from riskset._types import Matrix, Rows
from riskset.model.loss import Loss

__all__ = ["LogisticPieces"]


@dataclass(frozen=True, eq=False)
class LogisticPieces:
    r"""What the score residuals need and no covariate changes, at one linear predictor.

    `residual` :math:`w_i (y_i - p_i)` and `variance` :math:`w_i p_i (1 - p_i)` are (n,).
    """

    residual: Rows
    variance: Rows

    @classmethod
    def at(cls, loss: Loss, eta: Rows) -> "LogisticPieces":
        """Pieces at `eta`, offset included."""
        now = loss.evaluate(eta)
        return cls(now.residual, now.expected)

    def contributions(self, values: Matrix) -> Matrix:
        r"""Each row's influence on the score of columns z (n, q).

        .. math:: w_i (y_i - p_i) (z_i - \bar z)

        The mean with the weights `variance` is what the estimate of the intercept takes away.
        """
        centre = (self.variance @ values) / max(float(self.variance.sum()), 1e-300)
        out = values - centre
        out *= self.residual[:, None]
        return out
