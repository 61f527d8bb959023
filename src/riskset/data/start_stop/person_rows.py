"""Several rows of one person that follow each other, where the clusters are people.

The person is not censored at the end of a row that another one continues, and does not enter with
that one. Rows of one person that overlap or leave a gap are errors.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import Index
from riskset.data.checks import Places, complain_rows
from riskset.data.outcome import Outcome

__all__ = ["PersonRows", "person_rows", "refuse_rows_from_the_start", "refuse_unclear_people"]


class PersonRows(NamedTuple):
    """Which rows (n,) are the first of a person, and which the last."""

    is_first: NDArray[np.bool_]
    is_last: NDArray[np.bool_]

    def taken(self, rows: Index) -> "PersonRows":
        """Of some rows, or of all in another order."""
        return PersonRows(self.is_first[rows], self.is_last[rows])

    @classmethod
    def alone(cls, n_rows: int) -> "PersonRows":
        """Every row is the whole follow-up of a person."""
        return cls(np.ones(n_rows, dtype=bool), np.ones(n_rows, dtype=bool))


def person_rows(outcome: Outcome, places: Places) -> PersonRows:
    """The rows of people, who are the clusters of an outcome with entries.

    Rows of weight 0 are absent: they are both first and last.

    Raises
    ------
    InputError
        If a row does not begin where the one before it ends, or has an event and is not the last.
    """
    entry, cluster = outcome.entry, outcome.cluster
    assert entry is not None
    assert cluster is not None
    rows = np.flatnonzero(outcome.weight > 0)
    rows = rows[np.lexsort((outcome.time[rows], cluster[rows]))]
    follows = np.append(False, cluster[rows[1:]] == cluster[rows[:-1]])[: rows.size]
    later, earlier = rows[follows], rows[np.append(follows[1:], False)[: rows.size]]
    bad = np.zeros(outcome.n_rows, dtype=bool)
    bad[later] = entry[later] != outcome.time[earlier]
    complain_rows(
        bad,
        entry,
        places.column("entry"),
        "must be the time at which the row before it of the same person ends",
        places,
        hint="with `person='cluster'`, the rows of a cluster are intervals of one person without "
        "gaps; use `person='row'` if every row is another person.",
    )
    bad[later] = False
    bad[earlier] = outcome.event[earlier] != 0
    complain_rows(
        bad,
        outcome.event,
        places.column("event"),
        "must be 0 in every row of a person but the last",
        places,
        hint="with `person='cluster'`, the rows of a cluster are intervals of one person; drop "
        "what comes after the first event, or use `person='row'`.",
    )
    out = PersonRows.alone(outcome.n_rows)
    out.is_first[later] = False
    out.is_last[earlier] = False
    return out


def refuse_rows_from_the_start(outcome: Outcome) -> None:
    """Refuse people with several rows that are all at risk from the start, so they overlap."""
    if outcome.cluster is None:
        return
    rows = np.flatnonzero(outcome.weight > 0)
    rows = rows[np.argsort(outcome.cluster[rows], kind="stable")]
    again = np.flatnonzero(outcome.cluster[rows[1:]] == outcome.cluster[rows[:-1]])
    if again.size:
        row, other = rows[again[0]], rows[again[0] + 1]
        raise InputError(
            f"rows {row} and {other} of one cluster overlap: both are at risk from the start. With "
            "`person='cluster'`, the rows of a cluster are intervals of one person.",
            hint="pass the start of each interval as `entry` of `riskset.Surv`, or use "
            "`person='row'` if every row is another person.",
        )


def _follow_on(outcome: Outcome) -> tuple[int, int] | None:
    """A row without an event, and one of its cluster that begins where it ends; None: none does."""
    entry, cluster = outcome.entry, outcome.cluster
    if entry is None or cluster is None:
        return None
    present = outcome.weight > 0
    ends, begins = np.flatnonzero(present & (outcome.event == 0)), np.flatnonzero(present)
    times = np.unique(outcome.time[ends])
    at = np.searchsorted(times, entry[begins])
    begins, at = begins[at < times.size], at[at < times.size]
    begins, at = begins[times[at] == entry[begins]], at[times[at] == entry[begins]]
    of_begin = cluster[begins] * times.size + at
    of_end = cluster[ends] * times.size + np.searchsorted(times, outcome.time[ends])
    _, one, other = np.intersect1d(of_end, of_begin, return_indices=True)
    if not one.size:
        return None
    first = int(np.argmin(ends[one]))
    return int(ends[one[first]]), int(begins[other[first]])


def refuse_unclear_people(outcome: Outcome) -> None:
    """Refuse clusters with rows that follow each other, because they may be people or not."""
    found = _follow_on(outcome)
    if found is not None:
        row, other = found
        raise InputError(
            f"rows {row} and {other} of one cluster follow each other (at time "
            f"{outcome.time[row]:g}), and it is not clear whether they are one person, who is not "
            "censored in between.",
            hint="use `person='cluster'` if the clusters are people, or `person='row'` if every "
            "row is another person.",
        )
