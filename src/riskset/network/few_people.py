"""Where few people of a site would be seen in sums over all of them.

Sums hide people only if many have a share in them. The difference of two sums belongs to the rows
in which the columns differ, and a sum with very unequal weights to the rows with the largest.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Rows
from riskset.data.design import Design

__all__ = ["effective_people", "near_pairs", "rare_columns"]

CHUNK = 64
SAME = 1e-6
"""Values of two columns that differ by less than this share of their range are the same."""


def rare_columns(design: Design, least: int) -> list[int]:
    """Columns in which fewer rows than `least` differ from the most frequent value."""
    found = []
    for columns in _chunks(np.arange(design.n_features)):
        z = design.stored(columns)
        for k, j in enumerate(columns.tolist()):
            _, counts = np.unique(z[:, k], return_counts=True)
            if 0 < z.shape[0] - counts.max() < least:
                found.append(j)
    return found


def near_pairs(design: Design, least: int) -> list[tuple[int, int]]:
    """Pairs of columns that differ in fewer rows than `least`, but in some.

    Binary columns are also compared with the complements of others: their sum would differ from 1
    in few rows.
    """
    binary = np.flatnonzero(design.is_binary)
    others = np.flatnonzero(~design.is_binary)
    return sorted([*_near_binary(design, binary, least), *_near_others(design, others, least)])


def _near_binary(design: Design, columns: Index, least: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    parts = _chunks(columns)
    for k, left in enumerate(parts):
        a = _ones(design, left)
        for right in parts[k:]:
            b = a if right is left else _ones(design, right)
            differ = a.sum(axis=0)[:, None] + b.sum(axis=0) - 2 * (a.T @ b)
            fewer = np.minimum(differ, design.n_rows - differ)
            rows, cols = np.nonzero((fewer > 0) & (fewer < least))
            pairs = zip(left[rows].tolist(), right[cols].tolist(), strict=True)
            found.extend((i, j) for i, j in pairs if i < j)
    return found


def _near_others(design: Design, columns: Index, least: int) -> list[tuple[int, int]]:
    """Two columns that differ in fewer than `least` rows agree in one of `least` parts of them."""
    parts = np.array_split(np.arange(design.n_rows), max(least, 1))
    seen: dict[tuple[int, bytes], list[int]] = {}
    for j in columns.tolist():
        short = _values(design, j).astype(np.float32)
        for k, part in enumerate(parts):
            seen.setdefault((k, short[part].tobytes()), []).append(j)
    pairs = {(i, j) for group in seen.values() for i in group for j in group if i < j}
    found = []
    for i, j in sorted(pairs):
        x, y = _values(design, i), _values(design, j)
        n = int((np.abs(x - y) > SAME * max(float(np.ptp(x)), float(np.ptp(y)))).sum())
        if 0 < n < least:
            found.append((i, j))
    return found


def effective_people(shares: Rows) -> float:
    r"""As many people with equal shares as have the same sum and the same sum of squares.

    .. math:: \left(\sum_i e_i\right)^2 / \sum_i e_i^2

    It is 1 if one person has all, and n if n people have the same (Kish 1965, Survey Sampling).
    """
    top = float(shares.max(initial=0.0))
    if top <= 0:
        return float(shares.size)
    relative = shares / top
    return float(relative.sum() ** 2 / (relative @ relative))


def _chunks(columns: Index) -> list[Index]:
    return [columns[first : first + CHUNK] for first in range(0, columns.size, CHUNK)]


def _ones(design: Design, columns: Index) -> NDArray[np.float64]:
    """1 where a binary column is not 0."""
    return np.asarray(design.stored(columns) != 0, dtype=np.float64)


def _values(design: Design, column: int) -> Rows:
    """A column in the user's units."""
    z = design.stored_column(column)
    return np.asarray(z * design.scale[column] + design.center[column])
