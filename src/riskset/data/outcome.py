"""Times and events of all rows: validated and sorted into risk sets once, then immutable.

Nothing is guessed: no row is dropped, no code counts as an event unless it was chosen, and ties are
exactly equal times.
"""

import functools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, RiskSets, Rows
from riskset.data.causes import CauseLabels, choose_cause, code_labels, holds_text
from riskset.data.checks import EXACT, Places, as_array, as_numbers, as_time_numbers, complain_rows
from riskset.data.labels import as_clusters, code_columns
from riskset.data.risk_order import into_risk_sets, risk_order
from riskset.kernels.grouping_cpu import count_near_ties

__all__ = [
    "Outcome",
    "Surv",
    "check_times",
    "event_codes",
    "field_names",
    "read_events",
    "read_outcome",
]

MIN_SHARED_ROWS = 1 << 18
"""Fewer are fetched by one thread."""
NEAR_TIE_ULPS = 16
"""Times that differ by less were probably meant to be equal."""
WIDER = 64
"""Continuous times have so many times as many neighbours within a distance as wide."""
MORE_THAN_CHANCE = 4.0
"""Near ties are noted if there are so many times as many as continuous times have."""


def field_names(array: AnyArray, name: str = "y") -> tuple[str, str]:
    """Fields with the event and the time of a structured array.

    They are called so, or there are two: the only boolean one, or else the first, is the event, as
    scikit-survival writes them.
    """
    names = array.dtype.names
    if names is None:
        raise InputError(
            f"`{name}` must be a structured array of events and times.",
            hint="make it with riskset.Surv(time, event).",
        )
    if {"event", "time"} <= set(names):
        return "event", "time"
    if len(names) != 2:
        raise InputError(
            f"`{name}` must have the fields 'event' and 'time', but it has "
            f"{', '.join(map(repr, names))}.",
            hint="make it with riskset.Surv(time, event).",
        )
    flags = [field for field in names if array.dtype[field].kind == "b"]
    event = flags[0] if len(flags) == 1 else names[0]
    return event, names[1] if event == names[0] else names[0]


def Surv(  # noqa: N802
    time: object, event: object, entry: object = None, *, censored: str | None = None
) -> AnyArray:
    """Create a structured array of follow-up times and events, as in scikit-survival.

    Parameters
    ----------
    time : (n,) numbers
        End of follow-up, in any unit. Zero is allowed; negative is not.
    event : (n,) bool, int or text
        0 or False: censored; 1 or True: event; further codes: competing causes. Or text, such as
        "censored", "relapse" and "death", in which each label except the label of censoring is a
        cause.
    entry : (n,) numbers, optional
        Start of follow-up (left truncation): the row is at risk in (entry, time].
    censored : str, optional
        Label of censoring. Required for text, and only for text. The order of a categorical type
        has no meaning.

    Returns
    -------
    structured array (n,) with fields ``event``, ``time`` and, if given, ``entry``. For text,
    ``event`` is 0 for censored and 1, 2, ... for the labels in sorted order, and a field ``cause``
    contains the label, "" for censored. Select a cause by its label.

    Raises
    ------
    InputError
        If a value is missing, infinite, of the wrong type or out of range, or the label of
        censoring is missing or does not occur.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.Surv([5.0, 8.0], [True, False])["time"]
    array([5., 8.])
    >>> y = rs.Surv([5.0, 8.0, 6.0], ["relapse", "none", "death"], censored="none")
    >>> y["event"], y["cause"]
    (array([2, 0, 1]), array(['relapse', '', 'death'], dtype='<U7'))
    """
    times, codes, entries, labels = read_outcome(time, event, entry, censored, Places())
    fields: list[tuple[str, object]] = [
        ("event", np.int64 if labels or codes.max(initial=0) > 1 else np.bool_),
        ("time", np.float64),
    ]
    if entries is not None:
        fields.append(("entry", np.float64))
    names = np.array(["", *labels.values()])
    if labels:
        fields.append(("cause", names.dtype))
    y = np.empty(times.size, dtype=fields)
    y["event"], y["time"] = codes, times
    if entries is not None:
        y["entry"] = entries
    if labels:
        y["cause"] = names[codes]
    return y


def read_outcome(
    time: object, event: object, entry: object, censored: object, places: Places
) -> tuple[Rows, Index, Rows | None, CauseLabels]:
    """Times, codes of events, entries if any, and the labels of events if they are text."""
    times = as_time_numbers(time, "time", None, places)
    codes, labels = read_events(event, times.size, places, censored)
    check_times(times, None, places)
    if entry is None:
        return times, codes, None, labels
    entries = as_time_numbers(entry, "entry", times.size, places)
    check_times(times, entries, places)
    return times, codes, entries, labels


def read_events(
    event: object, n_rows: int, places: Places, censored: object = None
) -> tuple[Index, CauseLabels]:
    """Codes of the events, and their labels if they are text."""
    column = places.column("event")
    array = as_array(event, column, places)
    if array.ndim == 1 and array.size == n_rows and holds_text(array):
        return code_labels(array, censored, column, places)
    if censored is not None:
        raise InputError(
            f"`censored` is {censored!r}, but {column} holds no text.",
            hint="leave it out; of numbers, 0 means censored.",
        )
    if array.ndim == 1 and array.size == n_rows and array.dtype == np.bool_:
        return array.astype(np.int64), {}
    return event_codes(as_numbers(event, "event", n_rows, places), places), {}


def event_codes(event: AnyArray, places: Places) -> Index:
    """Codes of events, checked to be whole numbers from 0 on."""
    complain_rows(
        (event < 0) | (event != np.floor(event)) | (event >= EXACT),
        event,
        places.column("event"),
        "must be 0 (censored), 1 (event) or a further whole number for a competing cause",
        places,
        hint="recode it; a survival package's 1/2 coding becomes 0/1 by subtracting 1.",
    )
    return event.astype(np.int64)


def check_times(time: Rows, entry: Rows | None, places: Places) -> None:
    """Refuse negative times, and rows that end before or when they enter."""
    complain_rows(
        time < 0,
        time,
        places.column("time"),
        "must not be negative",
        places,
        hint="check the start of follow-up, or pass `entry` if these rows enter late.",
    )
    if entry is not None:
        complain_rows(
            entry >= time,
            entry,
            places.column("entry"),
            f"must be smaller than {places.column('time')}",
            places,
            hint="a row is at risk on (entry, time], which must not be empty; drop such rows "
            "or correct their times.",
        )


@dataclass(frozen=True)
class Outcome:
    """Times, events, weights and strata of all rows, and their risk sets.

    All arrays of length ``n_rows`` are in the caller's order, except `risk`.

    Attributes
    ----------
    time : (n,) float64
        End of follow-up.
    event : (n,) int64
        0 = censored, 1, 2, ... = cause.
    cause : int
        Cause that counts as the event.
    entry : (n,) float64 or None
        Rows are at risk in (entry, time].
    weight : (n,) float64, >= 0
        Case weights. 0 removes the row.
    offset : (n,) float64
        Added to the linear predictor.
    stratum : (n,) int64
        Codes 0..n_strata-1, in the sorted order of `strata`.
    strata : (n_strata,) array
        The labels.
    cluster : (n,) int64 or None
        Codes of the clusters, such as persons or sites, in the sorted order of `clusters`.
    clusters : (n_clusters,) array or None
        The labels.
    labels : mapping of int to str
        The label of each cause; empty if causes are numbers.

    Examples
    --------
    >>> import riskset as rs
    >>> outcome = rs.load_rhc().outcome()
    >>> outcome.n_rows, outcome.n_events
    (5735, 3722)
    >>> rs.Outcome.build([5.0, 8.0, 6.0], [1, 0, 2], cause=2).n_events
    1
    """

    time: Rows
    event: Index
    cause: int
    entry: Rows | None
    weight: Rows
    offset: Rows
    stratum: Index
    strata: AnyArray
    cluster: Index | None = None
    clusters: AnyArray | None = None
    has_weights: bool = False
    n_near_ties: int = field(default=0, compare=False)
    labels: CauseLabels = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        time: object,
        event: object,
        *,
        entry: object = None,
        weight: object = None,
        stratum: object = None,
        offset: object = None,
        cluster: object = None,
        cause: int | str | None = None,
        labels: CauseLabels | None = None,
        places: Places | None = None,
        is_part: bool = False,
    ) -> "Outcome":
        """Validate and sort columns of any numeric type.

        Parameters
        ----------
        stratum
            Labels of any type, or a sequence of label arrays whose combinations are the strata.
        cause
            Code or label of the event of interest. Optional if the codes are 0 and 1.
        labels
            The label of each code.
        places
            How messages call columns and rows.
        is_part
            Whether these are only some of the rows, without a check for events.

        Raises
        ------
        InputError
            The message gives the column, the row, the value, what was expected, and a remedy.
        """
        places = places or Places()
        times = as_time_numbers(time, "time", None, places)
        n_rows = times.size
        if n_rows == 0:
            raise InputError(
                "the table has no rows.", hint="check the file, the query or the filter before it."
            )

        def numbers(values: object, name: str) -> Rows | None:
            read = as_time_numbers if name == "entry" else as_numbers
            return None if values is None else read(values, name, n_rows, places)

        return cls.of_numbers(
            times,
            read_events(event, n_rows, places)[0],
            entry=numbers(entry, "entry"),
            weight=numbers(weight, "weight"),
            stratum=stratum,
            offset=numbers(offset, "offset"),
            cluster=cluster,
            cause=cause,
            labels=labels or {},
            places=places,
            is_part=is_part,
        )

    @classmethod
    def of_numbers(
        cls,
        time: Rows,
        event: Index,
        *,
        entry: Rows | None,
        weight: Rows | None,
        stratum: object,
        offset: Rows | None,
        cluster: object,
        cause: int | str | None,
        labels: CauseLabels,
        places: Places,
        is_part: bool,
    ) -> "Outcome":
        """As `build`, from columns of finite numbers and codes of events, which are checked."""
        n_rows = time.size
        check_times(time, entry, places)
        if entry is not None and not (entry > -np.inf).any():
            entry = None
        weights = np.ones(n_rows) if weight is None else weight
        complain_rows(
            weights < 0,
            weights,
            places.column("weight"),
            "must not be negative",
            places,
            hint="a weight of 0 removes a row; check how the weights were made.",
        )
        strata, stratum_labels = _strata(stratum, n_rows, places)
        by_time = risk_order(time, strata, 1)
        grouped = None if cluster is None else as_clusters(cluster, n_rows, places, weights)
        outcome = cls(
            time=time,
            event=event,
            cause=choose_cause(event, weights, cause, labels, places, is_part=is_part),
            entry=entry,
            weight=weights,
            offset=np.zeros(n_rows) if offset is None else offset,
            stratum=strata,
            strata=stratum_labels,
            cluster=None if grouped is None else grouped[0],
            clusters=None if grouped is None else grouped[1],
            has_weights=weight is not None,
            n_near_ties=_near_ties(by_time, time),
            labels=labels,
        )
        if len(stratum_labels) == 1:
            outcome.__dict__["_order"] = by_time
        return outcome

    @property
    def n_rows(self) -> int:
        """Number of rows, including rows of weight 0."""
        return self.time.size

    @property
    def n_strata(self) -> int:
        """Number of strata."""
        return len(self.strata)

    @functools.cached_property
    def is_event(self) -> NDArray[np.bool_]:
        """Rows with an event of the chosen cause."""
        return np.equal(self.event, self.cause)

    @property
    def n_events(self) -> int:
        """Number of rows with an event and positive weight (unweighted count)."""
        return int(np.count_nonzero(self.is_event & (self.weight > 0)))

    @property
    def has_events(self) -> NDArray[np.bool_]:
        """Whether a stratum has an event in a row of positive weight (n_strata,)."""
        out = np.zeros(self.n_strata, dtype=bool)
        out[self.stratum[self.is_event & (self.weight > 0)]] = True
        return out

    @functools.cached_property
    def sum_events(self) -> float:
        """Weighted number of events."""
        return float(self.risk.event_weight.sum())

    def replace(self, **changes: object) -> "Outcome":
        """Return the same rows with other weights, offsets, ..., and new risk sets."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def reweighted(self, weight: Rows) -> "Outcome":
        """Return the same rows with other weights, without sorting again."""
        other = replace(self, weight=weight)
        other.__dict__["_order"] = self._order
        return other

    def shifted(self, offset: Rows) -> "Outcome":
        """Return the same rows with another offset and the same risk sets."""
        other = replace(self, offset=offset)
        other.__dict__["risk"] = self.risk
        return other

    def in_risk_order(self) -> "Outcome":
        """Return the rows in the order of the risk sets, `risk.order`."""
        every = np.arange(self.n_rows)
        other = self.of_rows(self.risk.order)
        other.__dict__["_order"], other.__dict__["risk"] = every, self.risk._replace(order=every)
        return other

    def of_rows(self, rows: Index) -> "Outcome":
        """Return some of the rows, in the given order; strata keep their codes."""

        def taken(values: AnyArray | None) -> Any:
            return None if values is None else _fetched(values, rows)

        constant = slice(0, rows.size)
        return replace(
            self,
            time=taken(self.time),
            event=taken(self.event),
            entry=taken(self.entry),
            weight=taken(self.weight),
            offset=taken(self.offset) if self.offset.any() else self.offset[constant],
            stratum=taken(self.stratum) if self.n_strata > 1 else self.stratum[constant],
            cluster=taken(self.cluster),
        )

    @functools.cached_property
    def _order(self) -> Index:
        return risk_order(self.time, self.stratum, self.n_strata)

    @functools.cached_property
    def risk(self) -> RiskSets:
        """The rows in risk order, with group pointers: see `RiskSets`."""
        return into_risk_sets(
            self._order, self.time, self.is_event, self.weight, self.entry, self.stratum
        )

    @functools.cached_property
    def group_time(self) -> NDArray[np.float64]:
        """Time of each group (G,); NaN for the group that closes a stratum without events."""
        risk = self.risk
        last = risk.group_ptr[1:] - 1
        return np.where(risk.group_events > 0, self.time[risk.order[last]], np.nan)

    @functools.cached_property
    def group_stratum(self) -> Index:
        """Stratum of each group (G,)."""
        risk = self.risk
        return self.stratum[risk.order[risk.group_ptr[1:] - 1]]


def _fetched(values: AnyArray, rows: Index) -> AnyArray:
    """Some values; of many rows in threads, because each waits for memory."""
    if rows.size < MIN_SHARED_ROWS:
        return values[rows]
    out = np.empty(rows.size, values.dtype)

    def fetch(first: int) -> None:
        part = slice(first, first + MIN_SHARED_ROWS)
        np.take(values, rows[part], out=out[part], mode="clip")  # other modes buffer

    Runtime.select().map(fetch, range(0, rows.size, MIN_SHARED_ROWS))
    return out


def _strata(stratum: object, n_rows: int, places: Places) -> tuple[Index, AnyArray]:
    if stratum is None:
        return np.zeros(n_rows, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return code_columns(stratum, "strata", n_rows, places)


def _near_ties(order: Index, time: Rows) -> int:
    """Neighbouring times that differ only in their last digits, if chance does not explain them.

    Times that should be equal, but were computed in different ways, differ so. Of many continuous
    times some do, too; then times that are a little farther apart are as frequent.
    """
    runtime = Runtime.select()
    near = count_near_ties(order, time, NEAR_TIE_ULPS, runtime)
    if not near:
        return 0
    within = count_near_ties(order, time, NEAR_TIE_ULPS * WIDER, runtime)
    return near if near * WIDER > MORE_THAN_CHANCE * within else 0
