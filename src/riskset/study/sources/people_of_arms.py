"""Everybody who has one of several treatments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray, Index, Rows
from riskset.data.design import Design

__all__ = ["PeopleOfArms"]


@dataclass(frozen=True, eq=False)
class PeopleOfArms:
    """Everybody who has one of several treatments (n,), with the covariates.

    `key` identifies what they depend on, `treatment` are names of exposures, and `place` says where
    the people of a comparison are among them. `analyses` has analysis id and domain of each
    covariate, where these are known.
    """

    key: str
    treatment: AnyArray
    place: Index
    design: Callable[[], Design]
    person_id: AnyArray | None = None
    sampling_weight: Rows | None = None
    analyses: Mapping[int | str, tuple[int, str]] = field(default_factory=dict)

    @classmethod
    def of_rows(
        cls,
        key: str,
        arms: Mapping[str, NDArray[np.bool_]],
        rows: Index,
        design: Design,
        *,
        person_id: AnyArray | None,
        sampling_weight: Rows | None,
    ) -> "PeopleOfArms":
        """Those of a table that have one of the `arms`; `rows` are those of two of them."""
        code = np.full(design.n_rows, -1, dtype=np.int64)
        for k, has in enumerate(arms.values()):
            code[has] = k
        everybody = np.flatnonzero(code >= 0)
        return cls(
            key,
            np.array(list(arms))[code[everybody]],
            np.searchsorted(everybody, rows),
            lambda: design.take_rows(everybody),
            None if person_id is None else person_id[everybody],
            None if sampling_weight is None else sampling_weight[everybody],
        )
