"""Times, events, entries, weights and groups of rows, as the curves take them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Rows
from riskset.data.causes import CauseLabels, labels_of
from riskset.data.checks import Places, as_array, as_numbers, complain_rows
from riskset.data.dataset import Dataset
from riskset.data.labels import as_clusters, as_group_codes, code_columns
from riskset.data.outcome import Outcome, field_names, read_outcome

__all__ = ["EVERYBODY", "Followup", "own_cause", "split"]

SMALL, LARGE = 1e-140, 1e140
"""Weights between these have squares, and sums of squares, that are numbers."""

EVERYBODY = "all"
"""Label of the only group where no groups were given."""


class Followup(NamedTuple):
    """Validated rows of positive weight; `event` is 0 for censored, else the cause; all (n,).

    `group` are codes of `labels`. `causes` has the label of each cause; empty if causes are
    numbers. Without `has_weights` all rows weigh 1. `cluster` are codes of the rows that belong
    together, if any do.
    """

    time: Rows
    event: Index
    entry: Rows | None
    weight: Rows
    group: Index
    labels: tuple[object, ...]
    causes: CauseLabels
    has_weights: bool = True
    cluster: Index | None = None

    @classmethod
    def read(
        cls, y: object, group: object = None, weight: object = None, cluster: object = None
    ) -> "Followup":
        """Check `y`, as made by `riskset.Surv` or scikit-survival, and what goes with it.

        An `Outcome` or a `Dataset` is read, too, with its case weights unless others are given.
        """
        return cls.read_stratified(y, group, weight, None, cluster)[0]

    @classmethod
    def read_stratified(
        cls, y: object, group: object, weight: object, strata: object, cluster: object = None
    ) -> tuple["Followup", Index]:
        """`read`, and the number of the stratum of each of its rows."""
        time, event, entry, own, causes = _fields(y)
        weight = own if weight is None else weight
        places = Places()
        times, events, entries, _ = read_outcome(time, event, entry, None, places)
        n_rows = times.size
        if n_rows == 0:
            raise InputError("`y` has no rows.", hint="check the filter before it.")
        weights = np.ones(n_rows)
        if weight is not None:
            weights = as_numbers(weight, "weight", n_rows, places)
            complain_rows(
                weights < 0,
                weights,
                "`weight`",
                "must not be negative",
                places,
                hint="a weight of 0 removes a row; check how the weights were made.",
            )
        codes = np.zeros(n_rows, dtype=np.int64)
        labels: tuple[object, ...] = (EVERYBODY,)
        if group is not None:
            codes, names = as_group_codes(group, "group", n_rows, places)
            labels = tuple(names.tolist())
        stratum = np.zeros(n_rows, dtype=np.int64)
        if strata is not None:
            stratum = code_columns(strata, "strata", n_rows, places)[0]
        units = None if cluster is None else as_clusters(cluster, n_rows, places)[0]
        every = weight is None
        used = weights > 0 if weight is not None else np.ones(n_rows, dtype=bool)
        if every and group is None:
            empty = np.zeros(0, dtype=np.int64)
        else:
            empty = np.flatnonzero(np.bincount(codes[used], minlength=len(labels)) == 0)
        if empty.size:
            whose = "every row" if group is None else f"every row of group {labels[empty[0]]!r}"
            raise InputError(
                f"{whose} has weight 0, so no rows are left.",
                hint="check how the weights were made, or drop the group.",
            )
        every = every or bool(used.all())
        late = entries if entries is not None and (entries > -np.inf).any() else None

        def kept(values: AnyArray) -> AnyArray:
            return np.ascontiguousarray(values) if every else values[used]

        found = cls(
            kept(times),
            kept(events),
            None if late is None else kept(late),
            kept(weights),
            kept(codes),
            labels,
            causes,
            weight is not None,
            None if units is None else kept(units),
        )
        return found, kept(stratum)

    def take(self, rows: Index) -> "Followup":
        """Some of the rows."""
        entry = None if self.entry is None else self.entry[rows]
        return self._replace(
            time=self.time[rows],
            event=self.event[rows],
            entry=entry,
            weight=self.weight[rows],
            group=self.group[rows],
            cluster=None if self.cluster is None else self.cluster[rows],
        )

    @property
    def exponent(self) -> int:
        """Of the power of two by which `squarable` multiplies the weights; usually 0."""
        largest = float(self.weight.max(initial=0.0)) if self.has_weights else 1.0
        return 0 if SMALL < largest < LARGE else -int(np.frexp(largest)[1])

    def squarable(self) -> "Followup":
        """The same rows, with weights of a size whose squares are numbers.

        Squares of weights below 1e-160 are 0, and those above 1e150 infinite. The scale is a power
        of two, so that nothing is rounded, and robust variances do not depend on it.
        """
        if self.exponent == 0:
            return self
        return self._replace(weight=np.ldexp(self.weight, self.exponent))

    def by_group(self) -> Iterator["Followup"]:
        """The rows of each group in turn."""
        if len(self.labels) == 1:
            yield self
            return
        for rows in split(self.group, len(self.labels)):
            yield self.take(rows)


def split(codes: Index, n_codes: int) -> list[Index]:
    """Rows of each code, in their order."""
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=n_codes))[:-1]
    return [rows.astype(np.int64) for rows in np.split(order, ends)]


def own_cause(y: object) -> int | str | None:
    """The cause that was chosen where an `Outcome` or a `Dataset` was made, by its label if any."""
    if isinstance(y, Outcome):
        return y.labels.get(y.cause, y.cause)
    return y.cause if isinstance(y, Dataset) else None


def _fields(
    y: object,
) -> tuple[AnyArray, AnyArray, AnyArray | None, AnyArray | None, CauseLabels]:
    """Times, events, entries, weights and the labels of causes."""
    if isinstance(y, Outcome):
        return y.time, y.event, y.entry, y.weight, y.labels
    if isinstance(y, Dataset):
        own = y.outcome_columns
        if own.time is None or own.event is None:
            raise InputError(
                "the Dataset has no outcome.",
                hint="name its `time` and `event` columns when it is read.",
            )
        return own.time, own.event, own.entry, own.weight, own.event_labels
    array = as_array(y, "`y`", Places())
    if array.dtype.names is None or array.ndim != 1:
        raise InputError(
            "`y` must be a structured array of events and times.",
            hint="make it with riskset.Surv(time, event).",
        )
    event_name, time_name = field_names(array)
    entry = array["entry"] if "entry" in array.dtype.names else None
    return array[time_name], array[event_name], entry, None, labels_of(array)
