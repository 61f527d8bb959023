"""The observed outcomes that a prediction is judged by: read and checked once."""

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Rows
from riskset.data.causes import CauseLabels, cause_code, labels_of
from riskset.data.checks import Places, as_array, as_numbers, as_time_numbers, complain_rows
from riskset.data.labels import as_clusters
from riskset.data.outcome import Outcome, field_names
from riskset.kernels.sorting_cpu import distinct_in_order

__all__ = [
    "Sample",
    "any_by_row",
    "as_table",
    "choose_cause",
    "distinct",
    "read_fields",
    "read_score",
    "read_times",
    "read_weight",
]

PLACES = Places()


@dataclass(frozen=True)
class Sample:
    """Rows with a time, a code (0 = censored, otherwise the cause) and a weight; all (n,).

    `cause` is the code whose events are predicted.
    """

    time: Rows
    code: Index
    weight: Rows
    cause: int = 1
    cluster: Index | None = None

    @classmethod
    def read(
        cls,
        y: AnyArray,
        cause: int | str | None,
        sample_weight: object = None,
        cluster: object = None,
        *,
        name: str = "y",
    ) -> "Sample":
        """Check outcomes that are followed from time 0."""
        code, time, entry = read_fields(y, name)
        if entry is not None and bool((entry > 0).any()):
            raise InputError(
                f"`{name}` has rows that enter late, and inverse probability of censoring weights "
                "need follow-up from time 0.",
                hint="use the rows that are followed from the start.",
            )
        complain_rows(
            (code < 0) | (code != np.floor(code)),
            code,
            f"the event of `{name}`",
            "must be 0 (censored), 1 (event) or a further whole number for a competing cause",
            PLACES,
            hint="recode it.",
        )
        weight = read_weight(sample_weight, time.size)
        if not (weight > 0).any():
            raise InputError("every row has weight 0.", hint="check the weights.")
        codes = None if cluster is None else as_clusters(cluster, time.size, PLACES, weight)[0]
        causes = code.astype(np.int64)
        return cls(time, causes, weight, choose_cause(cause, causes, name, labels_of(y)), codes)

    @classmethod
    def read_train(cls, y: AnyArray | Outcome) -> "Sample":
        """Training rows, from which the distribution of censoring is estimated."""
        if not isinstance(y, Outcome):
            return cls.read(y, next(iter(labels_of(y).values()), 1), name="y_train")
        if y.entry is not None and bool((y.entry > 0).any()):
            raise InputError(
                "`y_train` has rows that enter late, and the distribution of censoring needs "
                "follow-up from time 0.",
                hint="use the rows that are followed from the start.",
            )
        return cls(y.time, y.event, y.weight)

    @property
    def n_rows(self) -> int:
        """Number of rows, those of weight 0 included."""
        return self.time.size

    @functools.cached_property
    def is_case(self) -> NDArray[np.bool_]:
        """Rows with an event of the cause."""
        return np.equal(self.code, self.cause)

    @functools.cached_property
    def is_competing(self) -> NDArray[np.bool_]:
        """Rows with an event of another cause."""
        return (self.code > 0) & ~self.is_case

    def rows(self, rows: Index) -> "Sample":
        """Some of the rows."""
        cluster = None if self.cluster is None else self.cluster[rows]
        return replace(
            self,
            time=self.time[rows],
            code=self.code[rows],
            weight=self.weight[rows],
            cluster=cluster,
        )

    def standard_error(self, influence: Rows) -> float:
        """Root of the sum of squares of w_i times the derivative in w_i, added up in clusters."""
        change = influence * self.weight
        if self.cluster is not None:
            change = np.bincount(self.cluster, change).astype(np.float64)
        return float(np.sqrt(np.sum(change**2)))


def read_fields(y: AnyArray, name: str = "y") -> tuple[Rows, Rows, Rows | None]:
    """Event codes, times and entries of a structured array, as it is."""
    event_name, time_name = field_names(np.asarray(y), name)
    time = as_time_numbers(y[time_name], "time", None, PLACES)
    if time.size == 0:
        raise InputError(f"`{name}` has no rows.", hint="check the filter before it.")
    code = as_numbers(y[event_name], "event", time.size, PLACES)
    has_entry = "entry" in (y.dtype.names or ())
    entry = as_time_numbers(y["entry"], "entry", time.size, PLACES) if has_entry else None
    return code, time, entry


def read_weight(sample_weight: object, n_rows: int) -> Rows:
    """Case weights, 1 where none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = as_numbers(sample_weight, "sample_weight", n_rows, PLACES)
    complain_rows(
        weight < 0,
        weight,
        "`sample_weight`",
        "must not be negative",
        PLACES,
        hint="a weight of 0 removes a row.",
    )
    return weight


def read_score(risk_score: object, n_rows: int, n_times: int = 1) -> NDArray[np.float64]:
    """Risk scores, (n,) or where there are several times also (n, n_times); may be infinite."""
    score = as_table(risk_score, "risk_score") + 0.0  # -0.0 and 0.0 are one score
    if score.shape != (n_rows,) and (n_times == 1 or score.shape != (n_rows, n_times)):
        for_each = "" if n_times == 1 else f" (or for each of the {n_times} times)"
        raise InputError(
            f"`risk_score` must have one number for each of the {n_rows:,} rows{for_each}, but its "
            f"shape is {score.shape}.",
            hint="check that all arguments come from the same table.",
        )
    complain_rows(
        any_by_row(np.isnan(score)),
        score,
        "`risk_score`",
        "must not be missing",
        PLACES,
        hint="leave out the rows without a score.",
    )
    return score


def as_table(values: object, name: str) -> NDArray[np.float64]:
    """Numbers in one or two dimensions, missing and infinite ones included."""
    try:
        return as_array(values, f"`{name}`", PLACES).astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`{name}` must be numbers, but they cannot be read as such ({error}).",
            hint="pass an array of numbers, one row for each row of `y`.",
        ) from None


def any_by_row(bad: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows, of a vector or a table, in which anything is bad."""
    return np.asarray(bad.reshape(bad.shape[0], -1).any(axis=1), dtype=np.bool_)


def read_times(times: object) -> NDArray[np.float64]:
    """Times at which a prediction is judged: one or more, increasing."""
    values = as_time_numbers(
        np.atleast_1d(as_array(times, "`times`", PLACES)), "times", None, PLACES
    )
    if values.size == 0 or values[0] < 0 or bool((np.diff(values) <= 0).any()):
        raise InputError(
            "`times` must be one or more numbers >= 0, each larger than the one before, but they "
            f"are {values.tolist()}.",
            hint="sort them, and the columns of the prediction with them.",
        )
    return values


def choose_cause(
    cause: int | str | None, code: Index, name: str = "y", labels: CauseLabels | None = None
) -> int:
    """The cause that is predicted; 1 if there is no other."""
    present = np.unique(code)
    chosen = cause_code(cause, labels or {})
    if chosen is None:
        if present[-1] > 1:
            raise InputError(
                f"`{name}` has the causes {', '.join(map(str, present[present > 0]))}, and `cause` "
                "does not say which of them is predicted.",
                hint="pass `cause`; events of the other causes then count as competing.",
            )
        return 1
    if isinstance(chosen, bool) or not isinstance(chosen, (int, np.integer)) or chosen < 1:
        raise InputError(
            f"`cause` must be a positive whole number, but it is {cause!r}.",
            hint=f"the codes that occur are {', '.join(map(str, present))}.",
        )
    return int(chosen)


def distinct(values: Rows) -> tuple[NDArray[np.float64], Index]:
    """Distinct numbers (k,) in order, and the place among them of each of `values` (n,)."""
    order, found, at = distinct_in_order(values, Runtime.select())
    place = np.empty(values.size, dtype=np.int64)
    place[order] = at
    return found, place
