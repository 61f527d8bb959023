"""What is known of the columns of a `Design` one by one, and designs of some of them."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Rows
from riskset.data.column_storage import (
    BinaryColumns,
    DenseColumns,
    SparseColumns,
    StoredColumns,
    ValuedColumns,
)
from riskset.data.design import Design
from riskset.data.design_columns import power_of_two, take_columns
from riskset.kernels import columns_cpu

__all__ = [
    "digests",
    "divided",
    "emptied",
    "entry_counts",
    "largest_values",
    "select_columns",
    "standard_deviations",
]


def select_columns(design: Design, columns: Index) -> Design:
    """A design of some columns, in the order given."""
    where = np.argsort(columns)
    if columns.size == design.n_features and (columns == where).all():
        return design
    parts = take_columns(design.parts, columns[where], design.n_rows)
    return replace(
        design,
        names=tuple(design.names[j] for j in columns),
        keys=tuple(design.keys[j] for j in columns),
        center=design.center[columns],
        scale=design.scale[columns],
        parts=tuple(part.renumbered(where[part.columns]) for part in parts),
    )


def emptied(design: Design, columns: Index) -> Design:
    """The same columns, of which some are columns of zeros."""
    kept = np.setdiff1d(np.arange(design.n_features), columns)
    ordered = np.setdiff1d(columns, kept)
    none = np.zeros(ordered.size + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    every = np.arange(ordered.size)
    zeros = BinaryColumns.laid_out(ordered, none, every, design.n_rows, Runtime.select())
    parts = take_columns(design.parts, kept, design.n_rows)
    center, scale = design.center.copy(), design.scale.copy()
    center[ordered], scale[ordered] = 0.0, 1.0
    return replace(
        design,
        center=center,
        scale=scale,
        parts=(*(part.renumbered(kept[part.columns]) for part in parts), zeros),
    )


def entry_counts(design: Design) -> Index:
    """Rows in which each column is other than 0 (p,)."""
    every = np.ones(design.n_rows)
    counts = design.cross(every, runtime=Runtime.select(), power=0).astype(np.int64)
    for j, x in _dense_columns(design):
        counts[j] = np.count_nonzero(x)
    return counts


def largest_values(design: Design) -> Features:
    """Largest size of a value of each column (p,); 0 for a column of zeros."""
    largest = np.zeros(design.n_features)
    for part in design.parts:
        if isinstance(part, BinaryColumns):
            largest[part.columns] = np.diff(part.block_ptr, axis=1).any(axis=0)
        elif isinstance(part, ValuedColumns):
            size = np.abs(part.value)
            for pointer in part.block_ptr:
                slots = np.flatnonzero(np.diff(pointer))
                if slots.size:
                    inside = size[: pointer[-1]]
                    peak = np.maximum.reduceat(inside, pointer[slots])
                    at = part.columns[slots]
                    largest[at] = np.maximum(largest[at], peak * design.scale[at])
    for j, x in _dense_columns(design):
        largest[j] = np.abs(x).max(initial=0.0)
    return largest


def standard_deviations(design: Design, runtime: Runtime) -> Features:
    r"""Standard deviation of each column in the user's units (p,); 1 if binary or constant.

    A coefficient times this is the log hazard ratio of one standard deviation, or of having
    a characteristic at all. As a penalty factor it makes an L1 penalty independent of the units.
    """
    deviations = np.ones(design.n_features)
    others = np.flatnonzero(~design.is_binary)
    if others.size:
        ones = np.ones(design.n_rows)
        mean = design.cross(ones, others, runtime=runtime) / design.n_rows
        square = design.cross(ones, others, runtime=runtime, power=2) / design.n_rows
        # Stored columns have a mean near 0 and a deviation near 1, so that nothing cancels.
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0)) * design.scale[others]
        deviations[others] = np.where(deviation > 0, deviation, 1.0)
    return deviations


def divided(design: Design, by: Features) -> Design:
    """Columns divided by positive numbers; those of zeros and ones must have 1."""
    scale = power_of_two(design.scale / by)
    parts: list[StoredColumns] = []
    for part in design.parts:
        if isinstance(part, BinaryColumns):
            parts.append(part)
            continue
        at = part.columns
        # Scales are powers of two, so that this is the one rounding of x / by.
        step = by[at] / design.scale[at] * scale[at]
        if isinstance(part, DenseColumns):
            parts.append(DenseColumns(at, part.blocks / step[:, None], part.n_rows))
        else:
            assert isinstance(part, ValuedColumns)
            value = np.array(part.value)
            columns_cpu.divide(part.block_ptr, value, step)
            parts.append(replace(part, value=value))
    return replace(design, center=design.center / by, scale=scale, parts=tuple(parts))


def digests(design: Design) -> list[bytes]:
    """A fingerprint of the rows and values of each column: equal ones are equal columns."""
    fingerprints = [b""] * design.n_features
    every = np.arange(design.n_rows)
    for part in design.parts:
        if not isinstance(part, SparseColumns):
            continue
        indptr, row, values = part.to_csc(every)
        for s, j in enumerate(part.columns.tolist()):
            entries = slice(indptr[s], indptr[s + 1])
            fingerprints[j] = _digest(row[entries], values[entries] * design.scale[j])
    for j, x in _dense_columns(design):
        at = np.flatnonzero(x)
        fingerprints[j] = _digest(at, x[at])
    return fingerprints


def _digest(rows: Index, values: Rows) -> bytes:
    digest = hashlib.blake2b(np.ascontiguousarray(rows, dtype=np.int64).tobytes(), digest_size=16)
    if (values != 1).any():  # however its zeros and ones are stored
        digest.update(b"values" + np.ascontiguousarray(values).tobytes())
    return digest.digest()


def _dense_columns(design: Design) -> Iterator[tuple[int, AnyArray]]:
    """Each column that is stored dense, in the user's units."""
    for part in design.parts:
        if isinstance(part, DenseColumns):
            for s, j in enumerate(part.columns.tolist()):
                yield j, part.column(s) * design.scale[j] + design.center[j]
