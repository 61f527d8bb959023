r"""Directions of recession in exact arithmetic: x'd without rounding, and its order over the rows.

A stored column consists of floating-point numbers, which are whole numbers times a power of two. A
direction d is kept as whole numbers as well, so :math:`x_i'd` is one, too, and Python's integers
order the rows exactly, whatever their size. Only rows that floating point cannot order are compared
in this way: the error of a computed sum of k products is at most
:math:`\gamma_{k+1} \sum_j |x_{ij} d_j|` with :math:`\gamma_k = k u / (1 - k u)`.

References
----------
Higham (2002), Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.1,
doi:10.1137/1.9780898718027.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.design import Design

__all__ = ["Direction", "on_face", "order_of", "whole_rows"]

EPSILON = float(np.finfo(np.float64).eps)
"""Twice the unit roundoff."""
MAX_EXACT_INTEGER = 2.0**53
"""Sums of whole numbers up to this are exact in floating point."""
MAX_DENSE_NUMBERS = 1 << 22
"""Numbers that are made dense at once."""


@dataclass(frozen=True, eq=False)
class Direction:
    """A direction d with whole components, in stored units.

    `whole` are the components of `columns` (k,), which are not 0, in any common unit. `is_rounded`:
    columns were rounded in their last place, as sums and differences of others are, and what they
    hide by that is equal.
    """

    columns: Index
    whole: tuple[int, ...]
    n_features: int
    is_rounded: bool = False

    @classmethod
    def of(cls, n_features: int, columns: Index, values: Iterable[Fraction]) -> "Direction":
        """From a fraction for each of some columns."""
        found = [(int(j), v) for j, v in zip(columns, values, strict=True) if v]
        common = math.lcm(*(v.denominator for _, v in found))
        whole = [int(v * common) for _, v in found]
        shared = math.gcd(*whole) or 1
        return cls(
            np.array([j for j, _ in found], dtype=np.int64),
            tuple(w // shared for w in whole),
            n_features,
        )

    @property
    def value(self) -> Features:
        """The direction (p,) rounded to floating point, largest component 1 in size."""
        out = np.zeros(self.n_features)
        most = max(map(abs, self.whole), default=1)
        out[self.columns] = [w / most for w in self.whole]
        return out


def order_of(design: Design, direction: Direction, runtime: Runtime) -> Rows:
    """Numbers (n,) in the order of x'd, equal where x'd is equal: no rounding decides.

    O(n log n), and Python's integers for each kind of row among those that floating point cannot
    order.
    """
    columns = direction.columns
    if columns.size == 1:  # rounding keeps the order of a column
        return design.product(np.array([np.sign(direction.whole[0])], float), columns,
                              runtime=runtime)  # fmt: skip
    if design.is_binary[columns].all() and sum(map(abs, direction.whole)) < MAX_EXACT_INTEGER:
        return design.product(np.array(direction.whole, float), columns, runtime=runtime)
    v = direction.value[columns]
    z = design.product(v, columns, runtime=runtime)
    size = design.magnitude(v, columns, runtime=runtime)
    if direction.is_rounded:
        size = size + float(np.abs(design.center[columns] / design.scale[columns]) @ np.abs(v))
    error = (columns.size + 8) * EPSILON * size
    cluster = _clusters(z, error)
    if direction.is_rounded:
        return cluster.astype(np.float64)
    shared = np.flatnonzero(np.bincount(cluster)[cluster] > 1)
    rank = np.zeros(z.size, dtype=np.int64)
    if shared.size:
        rank[shared] = _exact_ranks(design, direction, shared)
    by = np.lexsort((rank, cluster))
    rises = (np.diff(cluster[by]) != 0) | (np.diff(rank[by]) != 0)
    out = np.zeros(z.size)
    out[by] = np.concatenate([[0.0], np.cumsum(rises)])[: z.size]
    return out


def _clusters(z: Rows, error: Rows) -> Index:
    """Number (n,) of the group of each row: intervals of different groups do not meet."""
    by = np.argsort(z - error, kind="stable")
    low, high = (z - error)[by], np.maximum.accumulate((z + error)[by])
    number = np.zeros(z.size, dtype=np.int64)
    number[by] = np.concatenate([[0], np.cumsum(low[1:] > high[:-1])])[: z.size]
    return number


def _exact_ranks(design: Design, direction: Direction, rows: Index) -> Index:
    """Rank of x'd of some rows among them, by kinds of rows."""
    columns = direction.columns
    step = max(1, MAX_DENSE_NUMBERS // columns.size)
    kinds: dict[bytes, int] = {}
    kind = np.zeros(rows.size, dtype=np.int64)
    for a in range(0, rows.size, step):
        x = np.ascontiguousarray(design.stored(columns, rows[a : a + step]) + 0.0)  # no minus zeros
        found, back = np.unique(x.view(f"V{x[0].nbytes}").ravel(), return_inverse=True)
        numbers = [kinds.setdefault(one.tobytes(), len(kinds)) for one in found]
        kind[a : a + step] = np.array(numbers, dtype=np.int64)[back]
    patterns = [np.frombuffer(key, dtype=np.float64) for key in kinds]
    values = [
        sum(m * w for m, w in zip(row, direction.whole, strict=True))
        for row in whole_rows(np.array(patterns))
    ]
    place = {value: k for k, value in enumerate(sorted(set(values)))}
    return np.array([place[value] for value in values], dtype=np.int64)[kind]


def whole_rows(x: Matrix) -> list[list[int]]:
    """Finite numbers (m, k) as whole numbers of one common power of two."""
    mantissa, exponent = np.frexp(x)
    mantissa = (mantissa * MAX_EXACT_INTEGER).astype(np.int64)
    least = int(exponent[mantissa != 0].min(initial=0))
    shift = np.where(mantissa != 0, exponent - least, 0)
    return [
        [m << s for m, s in zip(row, shifts, strict=True)]
        for row, shifts in zip(mantissa.tolist(), shift.tolist(), strict=True)
    ]


def on_face(conditions: Sequence[Sequence[int]], near: Features) -> list[Fraction] | None:
    """The d near another one for which all conditions ``a'd = 0`` hold exactly; None: only 0 does.

    Gauss-Jordan elimination in fractions: the columns without a pivot keep the value that they
    have, and the others follow.
    """
    basis: dict[int, list[Fraction]] = {}
    for condition in conditions:
        row = [Fraction(a) for a in condition]
        for pivot, known in basis.items():
            if row[pivot]:
                factor = row[pivot]
                row = [a - factor * b for a, b in zip(row, known, strict=True)]
        sizes = [abs(a) for a in row]
        largest = max(sizes, default=Fraction(0))
        if not largest:
            continue
        pivot = sizes.index(largest)
        row = [a / row[pivot] for a in row]
        for other, known in basis.items():
            if known[pivot]:
                factor = known[pivot]
                basis[other] = [a - factor * b for a, b in zip(known, row, strict=True)]
        basis[pivot] = row
    if len(basis) == near.size:
        return None
    out = [Fraction(0) if j in basis else Fraction(float(v)) for j, v in enumerate(near)]
    for pivot, row in basis.items():
        out[pivot] = -sum((a * v for a, v in zip(row, out, strict=True) if v and a), Fraction(0))
    return out if any(out) else None
