"""Entries of a long table into compressed sparse columns, a batch at a time."""

from riskset._types import AnyArray, Index, Rows
from riskset.kernels._jit import kernel

__all__ = ["append_entries"]


@kernel
def append_entries(
    row: AnyArray,
    column: AnyArray,
    value: Rows,
    next_slot: Index,
    first_value: int,
    indices: AnyArray,
    values: Rows,
) -> None:
    """Put each entry behind those that its column already has.

    `next_slot` (p,) is where the next entry of each column goes, and is moved on. Slots from
    `first_value` on have a value, kept at ``values[slot - first_value]``; without any, `value` is
    empty.
    """
    for k in range(row.size):
        slot = next_slot[column[k]]
        next_slot[column[k]] = slot + 1
        indices[slot] = row[k]
        if slot >= first_value:
            values[slot - first_value] = value[k]
