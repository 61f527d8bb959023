r"""What the rows left out say of a model that was fitted without them.

With b the coefficients of the training rows, two criteria:

* ``held_out``: the log partial likelihood at b of the held-out rows alone, their risk sets
  restricted to them;
* ``difference``: :math:`\ell_{all}(b) - \ell_{train}(b)`, the contribution of the held-out rows
  among all (Verweij and van Houwelingen).

Both keep strata, late entry, offsets and case weights. In Fine and Gray's model only events of the
cause of interest are scored, a row with a competing event goes on being at risk after it, and one
distribution of censoring serves every term: that of the training rows, its last positive value
being carried on, or that of all rows.

References
----------
Verweij and van Houwelingen (1993), Statistics in Medicine 12, 2305-2314,
doi:10.1002/sim.4780122407.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Matrix, Rows, is_number
from riskset.infer.crossval.folds import Folds
from riskset.model.lanes import LANES, LaneLoss, Part
from riskset.model.loss import Loss
from riskset.solve.replicates import Replicate
from riskset.solve.result import Status

__all__ = ["CensoringFrom", "ReplicateScore", "Score", "Scorer"]

Score = Literal["held_out", "difference"]
CensoringFrom = Literal["training", "full"]


class ReplicateScore(NamedTuple):
    """What is kept of a replicate.

    Attributes
    ----------
    score : float
        Log likelihood that the rows left out add: larger is better.
    log_likelihood : float
        Of the training rows.
    status, kkt, n_iter
        As of a `Solution`.
    n_nonzero : int
        Coefficients other than 0.
    """

    score: float
    log_likelihood: float
    status: Status
    kkt: float
    n_iter: int
    n_nonzero: int

    @classmethod
    def of(cls, done: Replicate) -> "ReplicateScore":
        """From the answer of a replicate."""
        return cls(
            float(done.measured),
            float(done.log_likelihood),
            done.status,
            float(done.kkt),
            int(done.n_iter),
            int(np.count_nonzero(done.coef)),
        )

    @classmethod
    def read(cls, record: dict[str, Any]) -> "ReplicateScore":
        """From a record of a checkpoint; ValueError or TypeError if it is none."""
        found = cls(**record)
        if not (
            all(map(is_number, (found.score, found.log_likelihood, found.kkt)))
            and all(type(count) is int and count >= 0 for count in (found.n_iter, found.n_nonzero))
            and found.status in get_args(Status)
        ):
            raise ValueError("no replicate")
        return found


@dataclass(frozen=True)
class Scorer:
    """The rows of every replicate, and the score of a fit on them.

    Attributes
    ----------
    loss : Loss
        Of all rows.
    folds : Folds
    score : {"held_out", "difference"}
    censoring : {"training", "full"}
        Fine-Gray: which rows estimate the distribution of censoring.
    """

    loss: Loss
    folds: Folds
    score: Score = "held_out"
    censoring: CensoringFrom = "training"

    def part(self, repeat: int, fold: int) -> Part:
        """The training rows of a replicate."""
        out = self.folds.held_out(repeat, fold)
        weight = np.where(out, 0.0, self.loss.outcome.weight)
        return Part(weight, weight if self.censoring == "training" else None)

    def measure(self, parts: Sequence[Part], eta: Matrix) -> list[float]:
        """Scores of linear predictors of all rows (n, m), each made without the rows left out."""
        weight = self.loss.outcome.weight
        if self.score == "held_out":
            return self._log_likelihoods([weight - part.weight for part in parts], parts, eta)
        of_all = self._log_likelihoods([weight] * len(parts), parts, eta)
        of_training = self._log_likelihoods([part.weight for part in parts], parts, eta)
        return [a - b for a, b in zip(of_all, of_training, strict=True)]

    def _log_likelihoods(
        self, weights: list[Rows], parts: Sequence[Part], eta: Matrix
    ) -> list[float]:
        rows = [Part(w, part.censoring) for w, part in zip(weights, parts, strict=True)]
        if not LaneLoss.can_be_made(self.loss):
            return [self._alone(part, eta[:, k]) for k, part in enumerate(rows)]
        lanes = LaneLoss.build(self.loss, rows, carry_on=self.censoring == "training")
        padded = np.zeros((eta.shape[0], LANES))
        padded[:, : eta.shape[1]] = eta
        values, is_safe = lanes.log_likelihood(padded)
        return [
            float(values[k]) if is_safe[k] else self._alone(part, eta[:, k])
            for k, part in enumerate(rows)
        ]

    def _alone(self, part: Part, eta: Rows) -> float:
        loss = self.loss.replicate(*part, carry_on=self.censoring == "training", runtime=Runtime(1))
        return loss.evaluate(np.ascontiguousarray(eta)).log_likelihood
