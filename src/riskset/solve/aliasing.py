"""Which columns cannot be estimated: constant where it matters, or a combination of others."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Features, Index, Matrix
from riskset.solve.optimality import Problem
from riskset.solve.result import Note

__all__ = ["find", "pivots"]

RANK_TOLERANCE = 1e-10
"""A column with less of its information left, given those before it, repeats them."""
MAX_WORK = 2e10
"""Larger sets of unpenalised columns, n q^2, are not searched."""


def find(problem: Problem, l1: Features, l2: Features) -> tuple[NDArray[np.bool_], list[Note]]:
    """Columns that are left out with coefficient 0, and a note on each kind.

    A column that varies within no risk set is always left out. Among unpenalised columns the later
    one of a collinear set is left out, as R does; a penalty makes the answer unique by itself.
    """
    names = problem.design.names
    aliased = ~problem.informative
    notes: list[Note] = []
    if aliased.any():
        constant = tuple(names[j] for j in np.flatnonzero(aliased))
        notes.append(
            Note(
                "constant",
                constant,
                f"{_listed(constant)} {'is' if len(constant) == 1 else 'are'} constant within "
                "every risk set and cannot be estimated: coefficient 0.",
            )
        )
    free = np.flatnonzero((l1 == 0) & (l2 == 0) & problem.informative)
    if free.size < 2 or float(problem.design.n_rows) * free.size**2 > MAX_WORK:
        return aliased, notes
    # At eta = 0, without the offset: collinearity is a matter of the columns and the risk sets.
    information = problem.loss.information(problem.design, np.zeros(problem.design.n_rows), free)
    repeats = pivots(information)
    for k in np.flatnonzero(repeats):
        aliased[free[k]] = True
        others = _combination(information, repeats, int(k))
        involved = tuple(names[free[i]] for i in [*others, k])
        notes.append(
            Note(
                "collinear",
                involved,
                f"{names[free[k]]!r} is a linear combination of "
                f"{_listed(involved[:-1])}: coefficient 0, the others as without it.",
            )
        )
    return aliased, notes


def pivots(information: Matrix) -> NDArray[np.bool_]:
    """Columns whose pivot vanishes in a Cholesky factorisation in the given order."""
    q = information.shape[0]
    scale = np.sqrt(np.maximum(np.diag(information), 0.0))
    scale[scale == 0] = 1.0
    a = information / np.outer(scale, scale)
    repeats = np.zeros(q, dtype=bool)
    factor = np.zeros((q, q))
    for j in range(q):
        pivot = a[j, j] - factor[j, :j] @ factor[j, :j]
        if pivot <= RANK_TOLERANCE:
            repeats[j] = True
            factor[j:, j] = 0.0
            continue
        factor[j, j] = np.sqrt(pivot)
        factor[j + 1 :, j] = (a[j + 1 :, j] - factor[j + 1 :, :j] @ factor[j, :j]) / factor[j, j]
    return repeats


def _combination(information: Matrix, repeats: NDArray[np.bool_], k: int) -> Index:
    """The earlier columns that column k is made of."""
    kept = np.flatnonzero(~repeats[:k])
    scale = np.sqrt(np.diag(information))
    a = information[np.ix_(kept, kept)] / np.outer(scale[kept], scale[kept])
    share = np.linalg.solve(a, information[kept, k] / (scale[kept] * scale[k]))
    return kept[np.abs(share) > 1e-4]


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names[:5])) + (
        f" and {len(names) - 5} more" if len(names) > 5 else ""
    )
