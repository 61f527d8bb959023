"""Which columns cannot be estimated: constant where it matters, or a combination of others."""

import numpy as np
from numpy.typing import NDArray

from riskset._messages import Note, Value
from riskset._types import Features, Index, Matrix
from riskset.model.risk_set_components import has_all_outcomes
from riskset.solve.optimality import NewtonProblem

__all__ = ["constant_note", "find_aliased", "listed", "pivots"]

SUSPECT_PIVOT = 1e-8
"""A column with less of its information left, given those before it, may repeat them."""
MAX_COLLINEAR_RANGE = 3e-6
"""It does if the rest of it ranges over less of its spread: about where R gives up, too."""
MAX_SEPARATE_NOTES = 10
"""If more columns than this repeat others, one note names them all."""
MAX_EXACT_WORK = 1e9
"""Above this many multiplications, n q^2, a sample finds the suspects."""


def find_aliased(
    problem: NewtonProblem, l1: Features, l2: Features
) -> tuple[NDArray[np.bool_], list[Note]]:
    """Columns that are left out with coefficient 0, and a note on each kind.

    A column that varies within no risk set is always left out. Among unpenalised columns the later
    one of a collinear set is left out, as R does; a penalty makes the answer unique by itself.
    """
    names = problem.design.names
    aliased = ~problem.informative
    notes: list[Note] = []
    if aliased.any() and not has_all_outcomes(problem.whole_loss):
        constant = tuple(names[j] for j in np.flatnonzero(aliased))
        notes.append(constant_note(constant))
    free = np.flatnonzero((l1 == 0) & (l2 == 0) & problem.informative)
    if free.size < 2:
        return aliased, notes
    # At eta = 0, without offset and weights: collinearity is a matter of columns and risk sets.
    is_cheap = float(problem.design.n_rows) * free.size**2 <= MAX_EXACT_WORK
    n_samples = None if is_cheap else 50 * max(free.size, 500)
    information = problem.information_at_rest(free, n_samples)
    repeats = pivots(information)
    found: list[Note] = []
    for k in np.flatnonzero(repeats):
        kept, share = _combination(information, repeats, int(k))
        used = kept[np.abs(share) > 1e-4 * np.abs(share).max(initial=0.0)]
        others, name = tuple(names[j] for j in free[used]), names[free[k]]
        if _is_constant(problem, free, int(k), kept, share):
            aliased[free[k]] = True
            code, what = "collinear", "is a linear combination of"
            ending = ": coefficient 0, the others as without it."
        else:
            repeats[k] = False
            if not used.size:
                continue
            code, what = "nearly_collinear", "is nearly a linear combination of"
            ending = "; their coefficients are uncertain, and may be large and of opposite sign."
        values = {
            "name": Value("name", repr(name)),
            "others": Value("name", listed(others)),
        }
        found.append(Note(code, (*others, name), f"{{name}} {what} {{others}}{ending}", values))
    return aliased, notes + (found if len(found) <= MAX_SEPARATE_NOTES else _together(found))


def not_estimable_note(problem: NewtonProblem, columns: Index) -> Note:
    """Says that no column has anything to be estimated from."""
    why = "no covariate varies within any risk set"
    if has_all_outcomes(problem.whole_loss):
        why = "all rows have the outcome"
    names = tuple(problem.design.names[j] for j in columns)
    return Note("not_estimable", names, f"{why}, so no coefficient can be estimated.")


def constant_note(names: tuple[str, ...]) -> Note:
    """Says that columns vary within no risk set."""
    return Note(
        "constant",
        names,
        "{names} constant{where} and cannot be estimated: coefficient 0.",
        {
            "names": Value("name", f"{listed(names)} {'is' if len(names) == 1 else 'are'}"),
            "where": Value("name", " within every risk set"),
        },
    )


def _together(found: list[Note]) -> list[Note]:
    """One note for each code, as where there are more columns than rows."""
    out = []
    for code, what in (
        ("collinear", "are linear combinations of other covariates: coefficients 0, the others as "
         "without them."),
        ("nearly_collinear", "are nearly linear combinations of other covariates; their "
         "coefficients are uncertain, and may be large."),
    ):  # fmt: skip
        names = tuple(note.columns[-1] for note in found if note.code == code)
        if names:
            values = {"names": Value("name", listed(names))}
            out.append(Note(code, names, f"{{names}} {what}", values))
    return out


def _is_constant(problem: NewtonProblem, free: Index, k: int, kept: Index, share: Features) -> bool:
    """Whether column k minus the combination varies nowhere but for rounding.

    The information only raises suspicion: a column may differ from others in one row that
    hardly counts.
    """
    weights = np.zeros(problem.design.n_features)
    weights[free[kept]] = -share
    weights[free[k]] = 1.0
    return not problem.varies(weights, MAX_COLLINEAR_RANGE * float(problem.spread[free[k]]))


def pivots(information: Matrix) -> NDArray[np.bool_]:
    """Columns whose pivot vanishes in a Cholesky factorisation in the given order."""
    q = information.shape[0]
    scale = np.sqrt(np.maximum(np.diag(information), 0.0))
    unseen = scale == 0
    scale[unseen] = 1.0
    a = information / np.outer(scale, scale)
    repeats = np.zeros(q, dtype=bool)
    factor = np.zeros((q, q))
    for j in range(q):
        pivot = a[j, j] - factor[j, :j] @ factor[j, :j]
        if pivot <= SUSPECT_PIVOT:
            repeats[j] = not unseen[j]
            factor[j:, j] = 0.0
            continue
        factor[j, j] = np.sqrt(pivot)
        factor[j + 1 :, j] = (a[j + 1 :, j] - factor[j + 1 :, :j] @ factor[j, :j]) / factor[j, j]
    return repeats


def _combination(information: Matrix, repeats: NDArray[np.bool_], k: int) -> tuple[Index, Features]:
    """The earlier columns that column k is made of, and how much of each."""
    kept = np.flatnonzero(~repeats[:k] & (np.diag(information)[:k] > 0))
    scale = np.sqrt(np.diag(information)[kept])
    a = information[np.ix_(kept, kept)] / np.outer(scale, scale)
    # Least squares: a column kept because it is only nearly a combination may leave `a` singular.
    return kept, np.linalg.lstsq(a, information[kept, k] / scale)[0] / scale


def listed(names: tuple[str, ...]) -> str:
    """Names for a message, the first five of many."""
    return ", ".join(map(repr, names[:5])) + (
        f" and {len(names) - 5} more" if len(names) > 5 else ""
    )
