"""Arguments of penalties: columns, factors and strengths, checked."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np

from riskset._errors import InputError
from riskset._types import Features

__all__ = [
    "Column",
    "Factor",
    "as_positive",
    "as_share",
    "as_strength",
    "checked_choice",
    "checked_factor",
    "columns",
    "position",
]

Column: TypeAlias = str | int
"""A column by its name or by its position."""

Factor: TypeAlias = Mapping[Column, float] | Sequence[float] | Features
"""Relative strengths: of some columns by name, or of all columns in order."""


def columns(chosen: object) -> tuple[Column, ...]:
    """Columns given as one name, one position, or a sequence of them."""
    if isinstance(chosen, (str, int, np.integer)):
        chosen = (chosen,)
    return tuple(_plain(c) for c in cast(Iterable[object], chosen))


def checked_choice(drop_first: object) -> bool | None:
    """Whether first levels are left out."""
    if drop_first is None or isinstance(drop_first, bool | np.bool_):
        return None if drop_first is None else bool(drop_first)
    raise InputError(
        f"`drop_first` must be True, False or None, but it is {drop_first!r}.",
        hint="leave it out for the usual choice.",
    )


def checked_factor(factor: Factor | None) -> Factor | None:
    """Factors as a plain dict or tuple of floats."""
    if factor is None:
        return None
    if isinstance(factor, Mapping):
        return {_plain(c): _factor_value(v, c) for c, v in factor.items()}
    values = np.asarray(factor)
    if values.ndim != 1:
        raise InputError(
            f"`factor` must have one dimension, but its shape is {values.shape}.",
            hint="pass one number for each column, or a mapping from names to numbers.",
        )
    return tuple(_factor_value(v, j) for j, v in enumerate(values.tolist()))


def _plain(column: object) -> Column:
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        return int(column)
    if isinstance(column, str):
        return str(column)
    raise InputError(
        f"a column must be given by its name or its position, but {column!r} is neither.",
        hint="the covariates of a long table are called by their key as text, such as '1001'.",
    )


def _number(value: object, name: str, must: str, hint: str) -> float:
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise InputError(f"{name} must be {must}, but it is {value!r}.", hint=hint)
    return number


def as_strength(value: object, name: str) -> float:
    """A finite number, at least 0."""
    return _number(
        value,
        f"`{name}`",
        "a finite number, at least 0",
        "strengths are stated on the total log likelihood; see L1.from_variance and "
        "ElasticNet.from_glmnet for other scales.",
    )


def as_share(value: object, name: str) -> float:
    """A number between 0 and 1."""
    share = as_strength(value, name)
    if share > 1:
        raise InputError(
            f"`{name}` must lie between 0 and 1, but it is {value!r}.",
            hint="1 is the lasso, 0 is ridge.",
        )
    return share


def as_positive(value: object, name: str, hint: str) -> float:
    """A finite number greater than 0."""
    must = "finite and greater than 0"
    number = _number(value, f"`{name}`", must, hint)
    if number == 0:
        raise InputError(f"`{name}` must be {must}, but it is 0.", hint=hint)
    return number


def _factor_value(value: object, column: object) -> float:
    return _number(
        value,
        f"`factor` of column {column!r}",
        "a finite number, at least 0",
        "0 leaves a column without a penalty.",
    )


def position(column: Column, where: Mapping[str, int], names: Sequence[str], what: str) -> int:
    """Index of a column; a number is a position and never silently a name."""
    if isinstance(column, str):
        if column not in where:
            raise InputError.unknown_name("column", column, names, place=f"the data (`{what}`)")
        return where[column]
    named = where.get(str(column))
    if named is not None and named != column:
        raise InputError(
            f"`{what}` has {column}, which could be the column at position {column} or the column "
            f"named '{column}'.",
            hint=f"write '{column}' to mean the name, or the name of the other column.",
        )
    if not 0 <= column < len(names):
        raise InputError(
            f"`{what}` has column {column}, but the {len(names):,} columns are numbered from 0 "
            f"to {len(names) - 1}.",
            hint="give columns by name to be safe.",
        )
    return column
