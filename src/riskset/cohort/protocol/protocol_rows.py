"""Start-stop rows of people who may deviate from their treatment strategy, checked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError, InputError
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.outcomes import as_status
from riskset.cohort.population import Population
from riskset.curves.followup import Followup
from riskset.data.checks import Places, as_array, as_numbers, complain_rows

__all__ = ["ProtocolRows", "flags"]

ROUNDING = 1e-9
"""Times that differ by a smaller share are equal, as 0.1 + 0.2 and 0.3."""


@dataclass(frozen=True, eq=False)
class ProtocolRows:
    """Rows at risk in (entry, time], by history: those of one entry of a person in one arm.

    Attributes
    ----------
    entry, time : (n,) float64
    status : (n,) int64
        0 = censored or no event yet, 1 = outcome, 2 = competing event.
    treatment : (n,) int64
    person, history : (n,) int64
        Codes.
    deviates, at_risk : (n,) bool
        Whether the person deviates in the row, and could have.
    order : (n,) int64
        Rows by history and time.
    deviates_at_start : bool
        Whether deviations are at the start of their row, which is then no part of the follow-up.
    """

    entry: Rows
    time: Rows
    status: Index
    treatment: Index
    person: Index
    history: Index
    deviates: NDArray[np.bool_]
    at_risk: NDArray[np.bool_]
    order: Index
    deviates_at_start: bool

    @classmethod
    def read(
        cls,
        y: object,
        treatment: object,
        person: object,
        deviates: object,
        at_risk: object,
        cause: int | str | None,
        *,
        history: object = None,
        deviates_at_start: bool,
    ) -> "ProtocolRows":
        """Check the columns, and that they describe histories."""
        follow_up = Followup.read(y)
        n = follow_up.time.size
        if (follow_up.weight != 1).any():
            raise CohortError(
                "BadOutcome",
                "`y` has case weights, but rows of a per-protocol analysis have none.",
                hint="pass riskset.Surv(time, event, entry=entry), and the weights of people as "
                "`sample_weight` of `riskset.cohort.fit_per_protocol`.",
            )
        people = Population(treatment, person_id=person)
        if people.n_rows != n:
            raise _wrong_length("treatment", people.n_rows, n)
        own = np.unique(people.person_id, return_inverse=True)[1].reshape(-1).astype(np.int64)
        units = own if history is None else _codes(history, n)
        histories = 2 * units + people.treatment
        if follow_up.entry is None or np.isinf(follow_up.entry).any():
            raise CohortError(
                "BadOutcome",
                "`y` must say when each row starts, but it has no `entry`.",
                hint="pass riskset.Surv(time, event, entry=start); the follow-up usually starts "
                "at 0.",
            )
        leaves = flags(deviates, "deviates", n)
        exposed = np.ones(n, dtype=bool) if at_risk is None else flags(at_risk, "at_risk", n)
        found = cls(
            follow_up.entry,
            follow_up.time,
            _status(follow_up, cause),
            people.treatment,
            own,
            histories,
            leaves,
            exposed,
            np.lexsort((follow_up.entry, histories)).astype(np.int64),
            deviates_at_start,
        )
        found._check(people.person_id)
        return found

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.time.size)

    @property
    def followed(self) -> NDArray[np.bool_]:
        """Rows that belong to the follow-up of the strategy (n,)."""
        return ~self.deviates if self.deviates_at_start else np.ones(self.n_rows, dtype=bool)

    @property
    def follow_others(self) -> NDArray[np.bool_]:
        """Whether a row follows another one of its history (n - 1,), in their order."""
        history = self.history[self.order]
        return np.asarray(history[1:] == history[:-1])

    def in_time_of_risk(self, arm: int) -> NDArray[np.bool_]:
        """Rows that decide, at their end or start, while somebody of an arm can deviate (n,)."""
        own = np.flatnonzero(self.at_risk & (self.treatment == arm))
        if own.size == np.count_nonzero(self.treatment == arm):
            return self.at_risk
        if own.size and not self.deviates_at_start:
            latest = self.time[own].max()
            if self.time[own].min() == latest:  # as at the end of a grace period
                return np.asarray(self.time == latest)
        begin, end = np.sort(self.entry[own]), np.sort(self.time[own])
        if self.deviates_at_start:  # in [entry, time)
            begun = np.searchsorted(begin, self.entry, side="right")
            gone = np.searchsorted(end, self.entry, side="right")
        else:  # in (entry, time]
            begun = np.searchsorted(begin, self.time, side="left")
            gone = np.searchsorted(end, self.time, side="left")
        return np.asarray(begun > gone)

    def survival(self, log_factor: Rows) -> Rows:
        """Products of exp(`log_factor`) over the rows of a history up to each row (n,).

        The row itself counts if deviations are at its start. Factors are finite; those of rows in
        which people deviate do not matter, as no row of a history follows.
        """
        logs = np.where(self.deviates, 0.0, log_factor)[self.order]
        history = self.history[self.order]
        first = np.flatnonzero(np.append(True, history[1:] != history[:-1]))
        before = np.append(0.0, np.cumsum(logs)[:-1])
        total = before - np.repeat(before[first], np.diff(np.append(first, history.size)))
        out = np.empty(logs.size)
        out[self.order] = np.exp(total + logs if self.deviates_at_start else total)
        return out

    def count_unobserved(self) -> int:
        """People who start later than others, or whose rows do not follow each other."""
        order = self.order
        entry, time = self.entry[order], self.time[order]
        expected = np.append(entry.min(), np.where(self.follow_others, time[:-1], entry.min()))
        is_late = entry - expected > ROUNDING * np.maximum(np.abs(expected), np.abs(entry))
        return int(np.unique(self.person[order][is_late]).size)

    def _check(self, names: AnyArray) -> None:
        order = self.order
        same = self.follow_others

        def place(k: int) -> str:
            return f"rows {order[k]} and {order[k + 1]} of person {_shown(names[order[k]])}"

        overlaps = same & (self.entry[order][1:] < self.time[order][:-1])
        if overlaps.any():
            raise CohortError(
                "BadOutcome",
                "the rows of a person in one arm must not overlap, but "
                f"{place(int(np.argmax(overlaps)))} do ({int(overlaps.sum()):,} such pairs).",
                hint="make rows with start and stop by riskset.merge_histories or riskset.split.",
            )
        goes_on = same & self.deviates[order][:-1]
        if goes_on.any():
            raise CohortError(
                "BadDeviation",
                "a person who deviates leaves the follow-up, but "
                f"{place(int(np.argmax(goes_on)))} go on after it ({int(goes_on.sum()):,} such "
                "pairs).",
                hint="leave out the rows after a deviation, as "
                "`riskset.cohort.censor_deviations` does.",
            )
        had_event = same & (self.status[order][:-1] > 0)
        if had_event.any():
            raise CohortError(
                "BadOutcome",
                "the first event ends the follow-up, but "
                f"{place(int(np.argmax(had_event)))} go on after one "
                f"({int(had_event.sum()):,} such pairs).",
                hint="leave out the rows after the first event.",
            )
        for bad, problem, hint in (
            (
                self.deviates & ~self.at_risk,
                "deviates but is not at risk of it",
                "correct `at_risk`, which says in which rows people can deviate.",
            ),
            (
                self.deviates & (self.status > 0) & (not self.deviates_at_start),
                "ends with an event and with a deviation",
                "an event at the time of a deviation comes first: `deviates` is then 0.",
            ),
        ):
            if bad.any():
                k = int(np.argmax(bad))
                raise CohortError(
                    "BadDeviation",
                    f"row {k} (person {_shown(names[k])}) {problem} ({int(bad.sum()):,} such "
                    "rows).",
                    hint=hint,
                )


def flags(values: object, name: str, n_rows: int) -> NDArray[np.bool_]:
    """A column of zeros and ones, or booleans."""
    try:
        column = as_numbers(values, name, n_rows, Places())
        complain_rows(
            (column != 0) & (column != 1), column, f"`{name}`", "must be 0 or 1", Places(), hint=""
        )
    except InputError as error:
        hint = error.hint or "1 = yes, 0 = no."
        raise CohortError("BadDeviation", error.message, hint=hint) from None
    return np.equal(column, 1)


def _codes(history: object, n_rows: int) -> Index:
    """Numbers of the histories of people who enter several times."""
    values = as_array(history, "`history`", Places())
    if values.shape != (n_rows,):
        raise _wrong_length("history", values.size, n_rows)
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _status(follow_up: Followup, cause: int | str | None) -> Index:
    """0 = no event, 1 = outcome, 2 = competing event."""
    if cause is not None or follow_up.causes:
        return as_status(follow_up, cause)
    bad = follow_up.event > 2
    if bad.any():
        k = int(np.argmax(bad))
        raise CohortError(
            "BadOutcome",
            "events must be 0 (none), 1 (outcome) or 2 (competing event), but row "
            f"{k} has {follow_up.event[k]}.",
            hint="name the outcome with `cause`; all other events then compete with it.",
        )
    return follow_up.event


def _wrong_length(name: str, has: int, n: int) -> CohortError:
    return CohortError(
        "BadOutcome",
        f"`{name}` has {has:,} rows, but `y` has {n:,}.",
        hint="pass one value for each row with start and stop.",
    )


def _shown(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
