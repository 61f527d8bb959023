"""What the curves of several groups have in common."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import AnyArray
from riskset.data.checks import Places, as_array, as_numbers
from riskset.data.output import data_frame

__all__ = ["C", "Curve", "Curves", "as_times", "step_values"]


class Curve(Protocol):
    """Estimates of one group."""

    @property
    def label(self) -> object:
        """The group."""

    @property
    def end(self) -> float:
        """Time up to which the estimate is known."""

    def at(self, times: object) -> NDArray[np.float64]:
        """The estimate at times."""

    def at_risk(self, times: object) -> NDArray[np.float64]:
        """Weighted number under observation just before each time."""

    def columns(self, times: NDArray[np.float64] | None) -> dict[str, AnyArray]:
        """The curve as columns of a table, at its own or at other times."""


C = TypeVar("C", bound=Curve)


@dataclass(frozen=True, eq=False, repr=False)
class Curves(Generic[C]):
    """One curve for each group: look one up by its label, or go through them in sorted order.

    Attributes
    ----------
    curves : tuple
        One for each group, in the sorted order of their labels.
    level : float
        Coverage of the intervals.
    interval : str
        Their kind.
    variance : str
        How standard errors were found: "counts", "robust" or "aalen".
    """

    curves: tuple[C, ...]
    level: float
    interval: str
    variance: str

    @property
    def groups(self) -> tuple[object, ...]:
        """Labels of the groups; ("all",) without groups."""
        return tuple(curve.label for curve in self.curves)

    def __repr__(self) -> str:
        lines = "".join(f"\n  {curve!r}" for curve in self.curves[:10])
        more = f"\n  and {len(self) - 10} more" if len(self) > 10 else ""
        return (
            f"{type(self).__name__} ({self.level:.0%} {self.interval} intervals, "
            f"variance {self.variance!r}):{lines}{more}"
        )

    def __getitem__(self, group: object) -> C:
        for curve in self.curves:
            if curve.label == group:
                return curve
        raise InputError.unknown_name("group", group, self.groups)

    def __iter__(self) -> Iterator[C]:
        return iter(self.curves)

    def __len__(self) -> int:
        return len(self.curves)

    def at(self, times: object) -> NDArray[np.float64]:
        """The estimates of all groups at times, in any order: groups first, times last.

        Constant between the steps and after the last of them, also after the follow-up of a group
        has ended (``curve.end``), where nobody is at risk and `to_frame` has no values.
        """
        return np.array([curve.at(times) for curve in self.curves])

    def at_risk(self, times: object) -> NDArray[np.float64]:
        """Weighted number under observation just before each time, (n_groups, n_times)."""
        return np.array([curve.at_risk(times) for curve in self.curves])

    def to_frame(self, times: object = None, *, library: str | None = None) -> Any:
        """All estimates as a long data frame.

        Parameters
        ----------
        times : numbers, optional
            Rows for these times only; default: for every step of each curve. After the follow-up of
            a group has ended the estimates are not known and NaN, as R's ``summary.survfit`` leaves
            these times out; a survival that has reached 0 stays 0.
        library : {"pandas", "polars", "pyarrow"}, optional
            Default: pandas if it is installed, else Arrow.

        Returns
        -------
        data frame
            A row for each group (and cause) and time; in pandas the group is the index.
        """
        at = None if times is None else as_times(times)
        parts = [curve.columns(at) for curve in self.curves]
        sizes = [next(iter(part.values())).size for part in parts]
        labels = np.empty(len(parts), dtype=object)
        labels[:] = self.groups
        columns: dict[str, AnyArray] = {"group": np.repeat(labels, sizes)}
        columns |= {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        return data_frame(columns, library)


def as_times(times: object) -> NDArray[np.float64]:
    """Times to read a curve at, checked."""
    return as_numbers(
        np.atleast_1d(as_array(times, "`times`", Places())),
        "times",
        None,
        Places(),
        missing_hint="leave missing times out.",
    )


def known_until(time: NDArray[np.float64], survival: NDArray[np.float64]) -> float:
    """Time up to which a curve is known: the end of the follow-up, or for ever if nobody is left.

    Parameters
    ----------
    time, survival : (m,) float64
        Times at which follow-up ends, and the share that is then free of every event.
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
