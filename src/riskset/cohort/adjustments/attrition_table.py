"""Attrition by arm, as a table that may be shared."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from riskset._types import AnyArray
from riskset.cohort.adjustments.adjustment import People, Step, start
from riskset.data.frame import data_frame
from riskset.disclosure.small_cells import hide_attrition

__all__ = ["Attrition", "attrition"]

ARMS = ("target", "comparator")


@dataclass(frozen=True, eq=False, repr=False)
class Attrition:
    """Attrition: one row per step, starting with the population.

    Attributes
    ----------
    steps : tuple of Step

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0], [0.99, 0.6, 0.5])
    >>> steps = rs.cohort.attrition(rs.cohort.trim(people, symmetric=0.05)).steps
    >>> [(step.step, step.removed_target) for step in steps]
    [('population', 0), ('score above 0.05 and below 0.95', 1)]
    """

    steps: tuple[Step, ...]

    def columns(self, min_cell_count: int = 0) -> dict[str, AnyArray]:
        """The table.

        Parameters
        ----------
        min_cell_count : int
            Hide counts above 0 and below this number, and counts from which they follow. Hidden
            counts are None, and True in the column with the suffix ``_suppressed``. 0 hides
            nothing.

        Returns
        -------
        dict
            ``step``, and ``target_exposures``, ``target_persons`` and ``removed_target`` for each
            arm.
        """
        columns: dict[str, AnyArray] = {
            "step": np.array([s.step for s in self.steps], dtype=object)
        }
        for arm in ARMS:
            names = (f"{arm}_exposures", f"{arm}_persons", f"removed_{arm}")
            counts = [[getattr(step, name) for step in self.steps] for name in names]
            hidden = hide_attrition(counts, min_cell_count)
            for name, own, mask in zip(names, counts, hidden, strict=True):
                shown = [None if h else n for n, h in zip(own, mask, strict=True)]
                columns[name] = np.array(shown, dtype=object)
                if min_cell_count:
                    columns[f"{name}_suppressed"] = mask
        return columns

    def to_frame(self, min_cell_count: int = 0, *, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(min_cell_count), library)

    def __repr__(self) -> str:
        lines = [
            f"  {s.step}: {s.target_exposures:,} target, {s.comparator_exposures:,} comparator"
            for s in self.steps
        ]
        return "\n".join(["Attrition", *lines])


def attrition(people: People) -> Attrition:
    """Return the attrition of a population or an adjustment.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0], [0.99, 0.6, 0.5])
    >>> rs.cohort.attrition(rs.cohort.trim(people, symmetric=0.05))
    Attrition
      population: 2 target, 1 comparator
      score above 0.05 and below 0.95: 1 target, 1 comparator
    """
    return Attrition(start(people, allow_weights=True).attrition)
