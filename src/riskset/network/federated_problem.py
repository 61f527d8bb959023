"""Rows at several sites, as `solve.prox_newton` asks for them: one question to all sites a step.

Every site is a stratum (or several), so the log likelihood of all rows is the sum of those of the
sites, and so are its gradient and its information. The minimiser and its certificate are those of
every other fit. A linear predictor is known by its coefficients alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.column_storage import SHIFT, BinaryColumns
from riskset.data.design import Design
from riskset.data.design_columns import power_of_two
from riskset.data.working_columns import WorkingColumns
from riskset.model.curvature_map import CurvatureMap
from riskset.model.design_sums import DesignSums
from riskset.solve.blocks import BlockMinimisation
from riskset.solve.optimality import MIN_SIGNAL_PER_EVENT, MIN_VARIANCE_SHARE, NewtonProblem

__all__ = ["Ask", "FederatedMinimisation", "FederatedProblem"]

Answer = dict[str, Any]
Ask = Callable[[dict[str, Any]], list[Answer]]
"""Ask all sites a question; raises where answers are still to come."""
MAX_FULL_INFORMATION = 256
"""With so many columns or fewer, every answer has the information of all of them."""
NO_COLUMNS = np.zeros(0, dtype=np.int64)


class SiteEvaluation:
    """The likelihood at coefficients, in stored units; `columns` are those of `information`."""

    def __init__(self, beta: Features, scale: Features, answers: Sequence[Answer], columns: Index):
        def total(name: str) -> Features:
            return np.asarray(np.sum([one[name] for one in answers], axis=0))

        self.beta, self.columns = beta, columns
        self.log_likelihood = float(sum(one["log_likelihood"] for one in answers))
        self.gradient = total("gradient") / scale
        self.expected = float(sum(one["expected"] for one in answers))
        self.expected_sums = total("expected_sums") / scale
        self.expected_squares = total("expected_squares") / scale**2
        self.information: Matrix = np.zeros((columns.size, columns.size))
        upper = np.triu_indices(columns.size)
        if columns.size:
            own = scale[columns]
            self.information[upper] = total("information")
            lower = np.tril_indices(columns.size, -1)
            self.information[lower] = self.information.T[lower]
            self.information /= np.outer(own, own)


@dataclass(frozen=True)
class SiteCrew:
    """How many sites there are, as `BlockMinimisation` asks."""

    n_blocks: int


class FederatedRows:
    """The rows of all sites as a `RowOperator`: linear predictors are coefficients (p,)."""

    has_last_word = True
    sums = None
    was_too_wide = False

    def __init__(self, ask: Ask, facts: Sequence[Answer], head: Design) -> None:
        self._ask, self.head = ask, head
        self.crew = SiteCrew(len(facts))
        self.n_events = float(sum(one["event_weight"] for one in facts))
        self.n_events_counted = int(sum(one["n_events"] for one in facts))
        self.reach = np.max([one["reach"] for one in facts], axis=0) / head.scale
        self._wanted = NO_COLUMNS
        if head.n_features <= MAX_FULL_INFORMATION:
            self._wanted = np.arange(head.n_features)

    def evaluate_at(self, beta: Features, columns: Index | None = None) -> SiteEvaluation:
        """Ask for the likelihood at coefficients, with the information of some columns."""
        wanted = self._wanted if columns is None else columns
        question = {
            "ask": "evaluation",
            "coef": (beta / self.head.scale).tolist(),
            "columns": wanted.tolist(),
        }
        return SiteEvaluation(beta, self.head.scale, self._ask(question), wanted)

    def information(self, beta: Features, columns: Index, now: object = None) -> Matrix:
        """The observed information of some columns; no question if `now` has it."""
        known = now if isinstance(now, SiteEvaluation) and now.beta is beta else None
        if known is None or not np.isin(columns, known.columns).all():
            if self.head.n_features > MAX_FULL_INFORMATION:
                self._wanted = columns
            known = self.evaluate_at(beta)
        at = np.searchsorted(known.columns, columns)
        return np.asarray(known.information[np.ix_(at, at)])

    def varies(self, weights: Features, tolerance: float) -> bool:
        """Whether a combination of stored columns varies by more at some site."""
        question = {
            "ask": "variation",
            "weights": (weights / self.head.scale).tolist(),
            "tolerance": tolerance,
        }
        return any(one["varies"] for one in self._ask(question))

    # ------------------------------------------------------------------------------- passes

    def at(self, beta: Features) -> Features:
        """See `RowOperator`."""
        return beta.copy()

    def known_at_zero(self) -> None:
        """See `RowOperator`; the answer at 0 is asked for once, as any other."""

    def evaluate(self, eta: Features) -> SiteEvaluation:
        """See `RowOperator`."""
        return self.evaluate_at(eta)

    def cross(self, now: SiteEvaluation, columns: Index | None = None) -> Features:
        """See `RowOperator`."""
        return now.gradient.copy() if columns is None else now.gradient[columns]

    def along(self, step: Features, columns: Index) -> Features:
        """See `RowOperator`."""
        out = np.zeros(self.head.n_features)
        out[columns] = step
        return out

    def span(self, vector: Features) -> float:
        """A bound: the sum of the ranges of the columns, times the coefficients."""
        return float(np.abs(vector) @ self.reach)

    def extent(self, step: Features, columns: Index) -> float:
        """The same for some columns."""
        return float(np.abs(step) @ self.reach[columns])

    def moved(self, eta: Features, share: float, along: Features) -> Features:
        """See `RowOperator`."""
        return eta + share * along

    def home(self, eta: Features) -> Rows:
        """See `RowOperator`: the rows never come here."""
        return np.zeros(0)

    def intercept_drift(self, now: SiteEvaluation) -> None:
        """See `RowOperator`: `BlockMinimisation` makes the proof."""


@dataclass(frozen=True)
class FederatedProblem(NewtonProblem):
    """Rows at several sites, and the names and units of their columns."""

    block_rows: FederatedRows

    @classmethod
    def of(cls, ask: Ask, names: Sequence[str]) -> "FederatedProblem":
        """Join what the sites say about their columns, and evaluate at 0."""
        facts = ask({"ask": "facts"})
        _check(facts, names)
        binary = np.all([one["is_binary"] for one in facts], axis=0)
        weight = float(sum(one["weight"] for one in facts))
        mean = np.sum([one["sums"] for one in facts], axis=0) / weight
        square = np.sum([one["squares"] for one in facts], axis=0) / weight
        deviation = _deviation(mean, square)
        scale = np.where(
            binary | (deviation == 0), 1.0, power_of_two(np.maximum(deviation, 1e-300))
        )
        head = _head(facts, binary, scale)
        rows = FederatedRows(ask, facts, head)
        spread = np.where(binary, 1.0, deviation / scale)
        informative = np.any([one["varies"] for one in facts], axis=0)
        spread[~informative | (spread <= 0)] = 1.0
        null = rows.evaluate_at(np.zeros(head.n_features))
        size = float(np.abs(null.gradient / spread)[informative].max(initial=0.0))
        unit = size if size > MIN_SIGNAL_PER_EVENT * rows.n_events else 1.0
        return cls(head, spread, informative, null, null.gradient, unit, rows)

    @property
    def n_events(self) -> float:
        """Weighted number of events."""
        return self.block_rows.n_events

    has_map = False
    """A product would take as long as a question for the information."""

    def rows(self) -> FederatedRows:
        """See `NewtonProblem`."""
        return self.block_rows

    def final_rows(self) -> FederatedRows:
        """See `NewtonProblem`."""
        return self.block_rows

    def weighted_deviation(
        self, now: SiteEvaluation, columns: Index, sums: DesignSums | None
    ) -> Features:
        """See `NewtonProblem`."""
        total = now.expected or 1.0
        mean, square = now.expected_sums[columns] / total, now.expected_squares[columns] / total
        return _deviation(mean, square)

    def information(self, eta: Features, columns: Index, now: object = None) -> Matrix:
        """See `NewtonProblem`."""
        return self.block_rows.information(eta, columns, now)

    def sampled_information(
        self, eta: Features, columns: Index, n_samples: int, now: object = None
    ) -> Matrix:
        """See `NewtonProblem`; exact, because sites share no sample."""
        return self.block_rows.information(eta, columns, now)

    def information_at_rest(self, columns: Index, n_samples: int | None) -> Matrix:
        """See `NewtonProblem`; weights stay."""
        null = self.null
        assert isinstance(null, SiteEvaluation)
        return self.block_rows.information(null.beta, columns, null)

    def working_columns(self, columns: Index) -> WorkingColumns:
        """See `NewtonProblem`; there is no map."""
        raise NotImplementedError

    def curvature_map(self, eta: Rows, columns: WorkingColumns) -> CurvatureMap:
        """See `NewtonProblem`; there is no map."""
        raise NotImplementedError

    def row_information(self, eta: Rows, now: Any = None) -> Matrix:
        """See `NewtonProblem`; there is no map."""
        raise NotImplementedError

    def varies(self, weights: Features, tolerance: float) -> bool:
        """See `NewtonProblem`."""
        return self.block_rows.varies(weights, tolerance)


class FederatedMinimisation(BlockMinimisation):
    """A minimisation over rows at sites, with the proof of finiteness of one over blocks."""

    problem: FederatedProblem  # type: ignore[assignment]


def _deviation(mean: Features, square: Features) -> Features:
    variance = square - mean**2
    seen = variance > MIN_VARIANCE_SHARE * square
    return np.asarray(np.sqrt(np.where(seen, variance, 0.0)))


def _head(facts: Sequence[Answer], binary: NDArray[np.bool_], scale: Features) -> Design:
    """Names and units of the columns, without entries."""
    columns = np.flatnonzero(binary)
    part = BinaryColumns(
        columns, np.zeros((1, columns.size + 1), np.int64), np.zeros(0, np.uint16), SHIFT
    )
    names = tuple(facts[0]["names"])
    n_rows = sum(one["n_rows"] for one in facts)
    return Design(n_rows, names, names, np.zeros(len(names)), scale, (part,))


def _check(facts: Sequence[Answer], names: Sequence[str]) -> None:
    """Refuse sites with other columns or another version than the first."""
    first = facts[0]
    for one, name in zip(facts, names, strict=True):
        if one["version"] != first["version"]:
            raise InputError(
                f"the site {name!r} has riskset {one['version']}, but {names[0]!r} has "
                f"{first['version']}.",
                hint="install the same version everywhere.",
            )
        if one["names"] != first["names"]:
            odd = sorted(set(one["names"]) ^ set(first["names"]))
            what = (
                f"{odd[0]!r} is only at {name if odd[0] in one['names'] else names[0]!r}"
                if odd
                else "they stand in another order"
            )
            raise InputError(
                f"the site {name!r} has other covariates than {names[0]!r}: {what}.",
                hint="give every site the same columns in the same order, or leave a column out "
                "at every site with `left_out`.",
            )
