"""What a solver asks of a likelihood."""

from typing import Protocol

from riskset._runtime import Runtime
from riskset._types import Index, Matrix, RiskSets, Rows, Tail
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.cox import Evaluation

__all__ = ["Loss"]


class Loss(Protocol):
    """A log partial likelihood of the linear predictor: `CoxLoss` or `FineGrayLoss`."""

    @property
    def outcome(self) -> Outcome:
        """Times, events, weights, strata."""

    @property
    def runtime(self) -> Runtime:
        """Where kernels run."""

    @property
    def risk(self) -> RiskSets:
        """Who is at risk when, up to the row's own time."""

    @property
    def tails(self) -> tuple[Tail, ...]:
        """Who stays in the risk sets after it."""

    @property
    def efron(self) -> bool:
        """Whether ties are treated by Efron's method."""

    @property
    def offset(self) -> Rows:
        """Part of the linear predictor that is not estimated (n,)."""

    @property
    def n_events(self) -> float:
        """Weighted number of events."""

    def evaluate(self, eta: Rows) -> Evaluation:
        """Likelihood and residuals at `eta`, offset included."""

    def information(self, design: Design, eta: Rows, columns: Index) -> Matrix:
        """Observed information of some columns, exact, in stored units."""

    def restricted(self, risk: RiskSets, tails: tuple[Tail, ...]) -> "Loss":
        """The same likelihood on other risk sets."""

    @property
    def whole(self) -> "Loss":
        """The same likelihood on all risk sets."""
