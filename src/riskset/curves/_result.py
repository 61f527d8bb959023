"""Base classes of the curves of several groups."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import AnyArray
from riskset.data.checks import Places, as_array, as_time_numbers
from riskset.data.frame import data_frame

__all__ = [
    "C",
    "GroupCurve",
    "GroupCurves",
    "GroupEstimates",
    "as_times",
    "group_frame",
    "known_until",
    "step_values",
]


class Labelled(Protocol):
    """Estimates of one group."""

    @property
    def label(self) -> object:
        """The group."""


class GroupCurve(Labelled, Protocol):
    """A curve of one group."""

    @property
    def end(self) -> float:
        """Last time at which the estimate is known."""

    def at(self, times: object) -> NDArray[np.float64]:
        """Return the estimate at given times."""

    def at_risk(self, times: object) -> NDArray[np.float64]:
        """Return the weighted number at risk just before each time."""

    def columns(self, times: NDArray[np.float64] | None) -> dict[str, AnyArray]:
        """Return the curve as columns of a table, at its steps or at given times."""


C = TypeVar("C", bound=GroupCurve)
L = TypeVar("L", bound=Labelled)


class GroupEstimates(Generic[L]):
    """Estimates of groups, which are found by the labels of the groups."""

    @property
    def _parts(self) -> tuple[L, ...]:
        """The estimates of each group, in the order of the groups."""
        raise NotImplementedError

    @property
    def groups(self) -> tuple[object, ...]:
        """Labels of the groups; ("all",) without groups."""
        return tuple(part.label for part in self._parts)

    def __getitem__(self, group: object) -> L:
        for part in self._parts:
            if part.label == group:
                return part
        raise InputError.unknown_name("group", group, self.groups)

    def __contains__(self, group: object) -> bool:
        return any(part.label == group for part in self._parts)

    def __iter__(self) -> Iterator[L]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


@dataclass(frozen=True, eq=False, repr=False)
class GroupCurves(GroupEstimates[C]):
    """Curves of groups, in the order of the groups.

    Iteration gives the curves. ``result["treated"]`` looks one up by the label of its group, and
    ``"treated" in result`` says whether there is that group.

    Attributes
    ----------
    curves : tuple
        One curve per group, in the order that a categorical type declares, otherwise sorted.
    level : float
        Coverage of the intervals.
    interval : str
        Kind of the intervals.
    variance : str
        Method of the standard errors: "counts", "robust" or "aalen".
    """

    curves: tuple[C, ...]
    level: float
    interval: str
    variance: str

    @property
    def _parts(self) -> tuple[C, ...]:
        return self.curves

    def __repr__(self) -> str:
        lines = "".join(f"\n  {curve!r}" for curve in self.curves[:10])
        more = f"\n  and {len(self) - 10} more" if len(self) > 10 else ""
        return (
            f"{type(self).__name__} ({self.level:.0%} {self._limits}, "
            f"variance {self.variance!r}):{lines}{more}"
        )

    @property
    def _limits(self) -> str:
        """What the limits of the curves are."""
        return f"{self.interval} intervals"

    def at(self, times: object) -> NDArray[np.float64]:
        """Return the estimates of all groups at given times: groups first, times last.

        Times may be in any order. Curves are constant between steps and after the last step, also
        after the end of follow-up of a group (``curve.end``), where `to_frame` has no values.
        """
        return np.array([curve.at(times) for curve in self.curves])

    def at_risk(self, times: object) -> NDArray[np.float64]:
        """Return the weighted number at risk just before each time, (n_groups, n_times)."""
        return np.array([curve.at_risk(times) for curve in self.curves])

    def to_frame(self, times: object = None, *, library: str | None = None) -> Any:
        """Return all estimates as a long data frame.

        Parameters
        ----------
        times : numbers, optional
            Return rows for these times only; default: for every step of each curve. Estimates after
            the end of follow-up of a group are NaN (R's ``summary.survfit`` omits these times). A
            survival that has reached 0 stays 0.
        library : {"pandas", "polars", "pyarrow"}, optional
            Default: pandas if it is installed, else Arrow.

        Returns
        -------
        data frame
            One row per group (and cause) and time. In pandas, the group is the index.
        """
        at = None if times is None else as_times(times)
        return group_frame(self.groups, [curve.columns(at) for curve in self.curves], library)


def group_frame(
    groups: Sequence[object], parts: Sequence[Mapping[str, AnyArray]], library: str | None
) -> Any:
    """The columns of each group as one data frame, with the label of the group in each row."""
    sizes = [next(iter(part.values())).size for part in parts]
    labels = np.empty(len(parts), dtype=object)
    labels[:] = groups
    columns: dict[str, AnyArray] = {"group": np.repeat(labels, sizes)}
    columns |= {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    return data_frame(columns, library)


def as_times(times: object) -> NDArray[np.float64]:
    """Times to read a curve at, checked."""
    return as_time_numbers(
        np.atleast_1d(as_array(times, "`times`", Places())),
        "times",
        None,
        Places(),
        missing_hint="leave missing times out.",
    )


def known_until(time: NDArray[np.float64], survival: NDArray[np.float64]) -> float:
    """Time up to which a curve is known: the end of the follow-up, or for ever if nobody is left.

    `survival` (m,) is the share that is free of every event at the `time` (m,) of each end.
    """
    return float("inf") if survival[-1] == 0 else float(time[-1])


def step_values(
    time: NDArray[np.float64],
    values: NDArray[np.float64],
    at: NDArray[np.float64],
    first: float,
) -> NDArray[np.float64]:
    """Right-continuous step functions (..., m) at times, `first` before the first step."""
    start = np.full((*values.shape[:-1], 1), first)
    seen = np.searchsorted(time, at, side="right")
    return np.asarray(np.concatenate([start, values], axis=-1)[..., seen])
