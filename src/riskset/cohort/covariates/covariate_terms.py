"""Powers and products of covariates, as further columns."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from riskset._errors import counted
from riskset._settings import bad_setting
from riskset._types import Index, Rows
from riskset.cohort.covariates.covariate_design import columns_of
from riskset.data.column_statistics import select_columns
from riskset.data.design import Design

__all__ = ["with_terms"]


class Terms(NamedTuple):
    """Covariates and terms, and the columns of the covariates that each term is made of."""

    design: Design
    sources: dict[int, tuple[int, ...]]


def with_terms(
    design: Design,
    columns: Index | None,
    powers: int,
    interactions: Sequence[tuple[int | str, ...]],
) -> Terms:
    """Some covariates, the powers 2, ... of those with more than two values, and some products.

    They are called ``age^2`` and ``age * sex``.
    """
    made: dict[str, Rows] = {}
    sources: list[tuple[int, ...]] = []
    products: list[set[int]] = []
    own = np.arange(design.n_features) if columns is None else columns
    for j in own[~design.is_binary[own]].tolist() if powers > 1 else ():
        x = _column(design, j)
        if np.unique(x).size > 2:
            made |= {f"{design.names[j]}^{k}": x**k for k in range(2, powers + 1)}
            sources += [(j,)] * (powers - 1)
    for pair in interactions:
        if len(pair) != 2:
            raise bad_setting(
                "interactions",
                f"`interactions` must be pairs of covariates, but one has "
                f"{counted(len(pair), 'name')}.",
                hint="for example [['age', 'sex']].",
            )
        a, b = columns_of(design, pair).tolist()
        if {a, b} not in products:
            products.append({a, b})
            name = f"{design.names[a]} * {design.names[b]}"
            made[name] = _column(design, a) * _column(design, b)
            sources.append((a, b))
    again = sorted({*made} & {*design.names})
    if again:
        raise bad_setting(
            "interactions", f"a covariate is called {again[0]!r} already.", hint="rename it."
        )
    chosen = design if columns is None else select_columns(design, own)
    if not made:
        return Terms(chosen, {})
    return Terms(
        Design.stack([chosen, Design.from_columns(made)]),
        dict(enumerate(sources, start=chosen.n_features)),
    )


def _column(design: Design, j: int) -> Rows:
    return np.asarray(design.to_dense(np.array([j]))[:, 0])
