r"""What the rows left out say of a model that was fitted without them.

With b the coefficients of the training rows, two criteria:

* ``held_out``: the log partial likelihood at b of the held-out rows alone, their risk sets
  restricted to them;
* ``difference``: :math:`\ell_{all}(b) - \ell_{train}(b)`, the contribution of the held-out rows
  among all (Verweij and van Houwelingen).

If estimates are infinite on the training rows, as that of a treatment without events there, both
are taken in the limit: along each direction of the solution in turn a risk set keeps the rows that
attain its maximum of x'd (`solve.limit`). An event left out of the training that does not attain it
has likelihood 0 there; so may one of the training rows among all. Such an event leaves the sum, of
``difference`` both of its terms, and is counted. Directions of recession need the training rows and
the unpenalised covariates alone (of up to 60), so that the same events are left out at every
penalty, and scores of penalties can be compared.

Both keep strata, late entry, offsets and case weights. In Fine and Gray's model only events of the
cause of interest are scored, a row with a competing event goes on being at risk after it, and one
distribution of censoring serves every term: that of the training rows, its last positive value
being carried on, or that of all rows.

The rows of a logistic regression are independent, so that both criteria are the log likelihood of
the rows left out, at the intercept of the training rows.

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
from riskset.data.design import Design
from riskset.infer.crossval.folds import Folds
from riskset.kernels.cuda.backend import Backend
from riskset.model.device import DeviceLoss
from riskset.model.loss import Loss
from riskset.model.replicates_likelihood import LANES, LaneLoss, LogisticLanes, ReplicateWeights
from riskset.solve.exact import Direction
from riskset.solve.limit import events_lost_in_limit, log_likelihood_without, restrict_to_limit
from riskset.solve.replicates import Replicate
from riskset.solve.result import Status

__all__ = ["CensoringFrom", "HeldOutScore", "ReplicateScore", "ScoreKind", "Scorer"]

ScoreKind = Literal["held_out", "difference"]
CensoringFrom = Literal["training", "full"]


class ReplicateScore(NamedTuple):
    """What is kept of a replicate.

    `score` is the log likelihood that the held-out rows add, `log_likelihood` that of the training
    rows, `n_left_out` the number of events of likelihood 0 in the limit of infinite estimates, and
    `infinite` are the columns of these.
    """

    score: float
    log_likelihood: float
    status: Status
    kkt: float
    n_iter: int
    n_nonzero: int
    n_left_out: int
    infinite: tuple[int, ...]

    @classmethod
    def of(cls, done: Replicate) -> "ReplicateScore":
        """From the answer of a replicate."""
        return cls(
            float(done.measured.score),
            float(done.log_likelihood),
            done.status,
            float(done.kkt),
            int(done.n_iter),
            int(np.count_nonzero(done.coef)),
            int(done.measured.n_left_out),
            tuple(np.flatnonzero(np.isinf(done.coef)).tolist()),
        )

    @classmethod
    def read(cls, record: dict[str, Any]) -> "ReplicateScore":
        """From a record of a checkpoint; ValueError or TypeError if it is none."""
        found = cls(**record)
        found = found._replace(infinite=tuple(found.infinite))
        counts = (found.n_iter, found.n_nonzero, found.n_left_out, *found.infinite)
        if not (
            all(map(is_number, (found.score, found.log_likelihood, found.kkt)))
            and all(type(count) is int and count >= 0 for count in counts)
            and found.status in get_args(Status)
        ):
            raise ValueError("no replicate")
        return found


class HeldOutScore(NamedTuple):
    """A score, and the number of events that it leaves out."""

    score: float
    n_left_out: int = 0


@dataclass(frozen=True)
class Scorer:
    """The rows of every replicate, and the score of a fit on them; `loss` is that of all rows.

    `censoring` says which rows estimate the distribution of censoring of a Fine-Gray model.
    """

    design: Design
    loss: Loss
    folds: Folds
    score: ScoreKind = "held_out"
    censoring: CensoringFrom = "training"

    def part(self, repeat: int, fold: int) -> ReplicateWeights:
        """The training rows of a replicate."""
        out = self.folds.held_out(repeat, fold)
        weight = np.where(out, 0.0, self.loss.outcome.weight)
        if self.censoring == "full":
            return ReplicateWeights(weight)
        curve = self.loss.censoring
        counting = None if curve is None else curve.weight
        return ReplicateWeights(
            weight, weight if counting is None else np.where(out, 0.0, counting)
        )

    def measure(
        self,
        parts: Sequence[ReplicateWeights],
        eta: Matrix,
        directions: Sequence[Direction] = (),
        backend: Backend | None = None,
    ) -> list[HeldOutScore]:
        """Scores of linear predictors of all rows (n, m), each made without the rows left out.

        `directions` are those of a `Solution`, of one replicate alone. Without a `backend`, the
        host evaluates them, at most eight.
        """
        if directions:
            return [self._in_limit(part, eta[:, k], directions) for k, part in enumerate(parts)]
        weight = self.loss.outcome.weight
        if self.loss.has_intercept:
            return self._at_training_intercept(parts, eta)
        at = (parts, eta, backend)
        if self.score == "held_out":
            weights = [weight - part.weight for part in parts]
            return [HeldOutScore(value) for value in self._log_likelihoods(weights, *at)]
        of_all = self._log_likelihoods([weight] * len(parts), *at)
        of_training = self._log_likelihoods([part.weight for part in parts], *at)
        return [HeldOutScore(a - b) for a, b in zip(of_all, of_training, strict=True)]

    def _at_training_intercept(
        self, parts: Sequence[ReplicateWeights], eta: Matrix
    ) -> list[HeldOutScore]:
        weight = self.loss.outcome.weight
        training = LaneLoss.build(self.loss, parts)
        left_out = LaneLoss.build(
            self.loss, [ReplicateWeights(weight - part.weight) for part in parts]
        )
        assert isinstance(training, LogisticLanes)
        assert isinstance(left_out, LogisticLanes)
        padded = _padded(eta)
        values, _ = left_out.log_likelihood(padded, training.intercepts(padded))
        return [HeldOutScore(float(values[k])) for k in range(len(parts))]

    def _in_limit(
        self, part: ReplicateWeights, eta: Rows, directions: Sequence[Direction]
    ) -> HeldOutScore:
        eta, weight = np.ascontiguousarray(eta), self.loss.outcome.weight
        held_out = self.score == "held_out"
        terms = [weight - part.weight] if held_out else [weight, part.weight]
        losses = [self._loss(ReplicateWeights(w, part.censoring)) for w in terms]
        for direction in directions:
            losses = [restrict_to_limit(self.design, loss, direction) for loss in losses]
        left_out = np.any([events_lost_in_limit(loss) for loss in losses], axis=0)
        values = [log_likelihood_without(loss, eta, left_out) for loss in losses]
        return HeldOutScore(values[0] - sum(values[1:]), int(np.count_nonzero(left_out)))

    def _log_likelihoods(
        self,
        weights: list[Rows],
        parts: Sequence[ReplicateWeights],
        eta: Matrix,
        backend: Backend | None,
    ) -> list[float]:
        rows = [ReplicateWeights(w, part.censoring) for w, part in zip(weights, parts, strict=True)]
        carry_on = self.censoring == "training"
        if backend is not None:
            on_device = DeviceLoss(self.loss, rows, backend, carry_on=carry_on)
            values, _, is_safe = on_device.evaluate(backend.upload(_padded(eta, on_device.n_lanes)))
        elif LaneLoss.can_be_made(self.loss):
            lanes = LaneLoss.build(self.loss, rows, carry_on=carry_on)
            values, is_safe = lanes.log_likelihood(_padded(eta))
        else:
            return [self._alone(part, eta[:, k]) for k, part in enumerate(rows)]
        return [
            float(values[k]) if is_safe[k] else self._alone(part, eta[:, k])
            for k, part in enumerate(rows)
        ]

    def _alone(self, part: ReplicateWeights, eta: Rows) -> float:
        return self._loss(part).evaluate(np.ascontiguousarray(eta)).log_likelihood

    def _loss(self, part: ReplicateWeights) -> Loss:
        carry_on = self.censoring == "training"
        return self.loss.replicate(*part, carry_on=carry_on, runtime=Runtime(1))


def _padded(eta: Matrix, n_lanes: int = LANES) -> Matrix:
    """With lanes of zeros, so that there are as many; itself if there are."""
    if eta.shape[1] == n_lanes:
        return np.ascontiguousarray(eta)
    out = np.zeros((eta.shape[0], n_lanes))
    out[:, : eta.shape[1]] = eta
    return out
