"""Coefficients that are held at given values: their part of the linear predictor is an offset."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._messages import Note
from riskset._runtime import Runtime
from riskset._types import Features, Index, is_number
from riskset.data.column_statistics import emptied
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.solve.aliasing import constant_note
from riskset.solve.result import Solution

__all__ = ["FixedCoefficients", "checked_fixed", "refuse_fixed"]


def checked_fixed(fixed: object) -> dict[str, float]:
    """The argument `fixed` of a model: finite numbers by the names of covariates."""
    if fixed is None:
        return {}
    if not isinstance(fixed, Mapping):
        raise InputError(
            f"`fixed` must be a mapping of covariates to numbers, but it is {fixed!r}.",
            hint="for example fixed={'age': 0.05}.",
        )
    for name, value in fixed.items():
        if not isinstance(name, str):
            raise InputError(
                f"`fixed` must have names of covariates, but it has {name!r}.",
                hint="columns of an array are called 'x0', 'x1', and so on.",
            )
        if not (is_number(value) and np.isfinite(value)):
            raise InputError(
                f"the fixed coefficient of {name!r} must be a finite number, but it is {value!r}.",
                hint="it is a log hazard ratio, such as 0.05.",
            )
    return {name: float(value) for name, value in fixed.items()}


def refuse_fixed(fixed: object, names: Iterable[str]) -> None:
    """Refuse to say how uncertain a coefficient is that was not estimated."""
    held = checked_fixed(fixed)
    for name in names:
        if name in held:
            raise InputError(
                f"the coefficient of {name!r} is fixed at {held[name]:g}, so it is no estimate.",
                hint="leave it out of `parameters`, or out of `fixed`.",
            )


@dataclass(frozen=True, eq=False)
class FixedCoefficients:
    """Which coefficients (p,) are held, at what, and the center of their columns.

    `value` and `center` are 0 where a coefficient is free. The part of the linear predictor that is
    held is ``(x - center) @ value``.
    """

    is_fixed: NDArray[np.bool_]
    value: Features
    center: Features

    @classmethod
    def of(cls, fixed: Mapping[str, float], design: Design) -> "FixedCoefficients":
        """Those that are held, of the columns of a design."""
        columns = np.array([design.index_of(name) for name in fixed], dtype=np.int64)
        is_fixed = np.zeros(design.n_features, dtype=bool)
        is_fixed[columns] = True
        value = np.zeros(design.n_features)
        value[columns] = list(fixed.values())
        return cls(is_fixed, value, np.where(is_fixed, design.center, 0.0))

    @property
    def columns(self) -> Index:
        """The columns that are held."""
        return np.flatnonzero(self.is_fixed)

    def hold(self, design: Design, outcome: Outcome) -> tuple[Design, Outcome]:
        """The design with columns of zeros in their place, and the outcome with their offset.

        A column of zeros has no information, so every part of a fit leaves it out.
        """
        columns = self.columns
        if not columns.size:
            return design, outcome
        part = design.product(
            (self.value * design.scale)[columns], columns, runtime=Runtime.select()
        )
        return emptied(design, columns), outcome.replace(offset=outcome.offset + part)

    def check_agrees(self, given: object, coef: Features, names: tuple[str, ...]) -> None:
        """Refuse coefficients (p,) made from `given` that differ from those that are held."""
        for j in self.columns.tolist():
            is_named = not isinstance(given, Mapping) or names[j] in given
            if is_named and coef[j] != self.value[j]:
                raise InputError(
                    f"the coefficient of {names[j]!r} is fixed at {self.value[j]:g}, but `coef` "
                    f"has {coef[j]:g}.",
                    hint="leave it out, or change `fixed`.",
                )

    def settle(self, solution: Solution, names: tuple[str, ...]) -> Solution:
        """A solution that does not say of held columns that they cannot be estimated."""
        columns = self.columns
        if not columns.size:
            return solution
        held = {names[j] for j in columns}
        status, notes = solution.status, []
        if status == "not_estimable" and self.is_fixed.all():
            status = "converged"  # nothing was to be estimated
        for note in solution.notes:
            if not held.intersection(note.columns):
                notes.append(note)
            elif note.code != "not_estimable" or status == "not_estimable":
                notes += _without(note, held)
        return replace(solution, status=status, notes=tuple(notes))


def _without(note: Note, held: set[str]) -> list[Note]:
    """A note that does not name some columns; none if it named no others."""
    left = tuple(name for name in note.columns if name not in held)
    if not left:
        return []
    return [constant_note(left) if note.code == "constant" else replace(note, columns=left)]
