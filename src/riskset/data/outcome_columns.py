"""The outcome columns of a table: read and checked here one by one, and together by `Outcome`."""

from dataclasses import dataclass, field, replace

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray
from riskset.data.causes import CauseLabels, code_labels
from riskset.data.checks import Places
from riskset.data.column_roles import LABELS, NUMBERS, ColumnRoles
from riskset.data.outcome import Outcome, event_codes
from riskset.data.table import (
    Table,
    TableWords,
    check_present,
    finite_numbers,
    finite_times,
    keys,
    kind_of,
    labels,
    plain_values,
    refuse_empty,
)

__all__ = ["OutcomeColumns", "identified", "places_of"]

TIMES = ("time", "entry")
"""Roles of times, whose numbers are rounded to `ColumnRoles.time_digits`."""


@dataclass(frozen=True, eq=False)
class OutcomeColumns:
    """Columns of a table as arrays (n_rows,), free of gaps; None where the table has none.

    Time and entry are rounded if that was asked for. The combinations of the `strata` are the
    strata. Each `censoring_group` has a separate censoring distribution in Fine and Gray's model.
    `event_labels` are the labels of the codes of `event`, if it is a column of text.
    """

    time: AnyArray | None = None
    event: AnyArray | None = None
    entry: AnyArray | None = None
    weight: AnyArray | None = None
    offset: AnyArray | None = None
    cluster: AnyArray | None = None
    censoring_group: AnyArray | None = None
    strata: tuple[AnyArray, ...] = ()
    event_labels: CauseLabels = field(default_factory=dict)

    @classmethod
    def read(cls, table: Table, roles: ColumnRoles, *, is_new: bool = False) -> "OutcomeColumns":
        """All columns that have a role; `is_new` if a model was fitted before."""
        event, event_labels = _event(table, roles.event, roles.censored, is_new=is_new)
        arrays: dict[str, AnyArray] = {}
        for role in (*NUMBERS, *LABELS):
            name = getattr(roles, role)
            if name is None or role in ("event", "id"):
                continue
            read = finite_times if role in TIMES else finite_numbers if role in NUMBERS else labels
            arrays[role] = read(table, name, table.array(name))
            if role in TIMES and roles.time_digits is not None:
                arrays[role] = np.round(arrays[role], roles.time_digits)
        strata = _strata(table, roles)
        return cls(event=event, event_labels=event_labels, strata=strata, **arrays)

    @classmethod
    def read_for_prediction(cls, table: Table, roles: ColumnRoles) -> "OutcomeColumns":
        """The offset, which a prediction needs, and strata, which a linear predictor does not."""
        has_strata = all(name in table.columns for name in roles.stratum_columns)
        strata = _strata(table, roles) if has_strata else ()
        name = roles.offset
        offset = None if name is None else finite_numbers(table, name, table.array(name))
        return cls(offset=offset, strata=strata)

    def outcome(
        self,
        roles: ColumnRoles,
        words: TableWords,
        *,
        cause: int | str | None,
        is_part: bool = False,
    ) -> Outcome:
        """Validate and sort; messages name the columns of the table."""
        if self.time is None or self.event is None:
            raise InputError(
                "these data were read without their outcomes.",
                hint="read them with `outcome=True`.",
            )
        places = places_of(roles, words)
        return Outcome.of_numbers(
            self.time,
            event_codes(self.event, places),
            entry=self.entry,
            weight=self.weight,
            stratum=self.strata[0] if len(self.strata) == 1 else self.strata or None,
            offset=self.offset,
            cluster=self.cluster,
            cause=cause,
            labels=self.event_labels,
            places=places,
            is_part=is_part,
        )


def identified(table: Table, column: str | None, *, must_be_unique: bool) -> Table:
    """The table with the identifiers of its rows, for messages and for joins."""
    words = table.words
    refuse_empty(table.n_rows, words.place)
    if column is None:
        if must_be_unique:
            raise InputError(
                f"a long table of covariates was given, but it is not clear which column of "
                f"{words.place} identifies the rows.",
                hint="name it with `id`.",
            )
        return table
    row_keys = keys(table, column, table.array(column))
    if must_be_unique:
        _, first = np.unique(row_keys, return_index=True)
        if first.size < row_keys.size:
            again = int(np.setdiff1d(np.arange(row_keys.size), first)[0])
            before = int(np.flatnonzero(row_keys == row_keys[again])[0])
            raise InputError(
                f"{words.column(column)} must identify the rows, but "
                f"{row_keys.size - first.size:,} of {row_keys.size:,} rows repeat a key (first: "
                f"{words.row(again)}, as {words.row(before)}, value {row_keys[again]!s}).",
                hint="with a long table of covariates every row needs a different key.",
            )
    return replace(table, words=replace(words, id=column, row_keys=row_keys))


def _strata(table: Table, roles: ColumnRoles) -> tuple[AnyArray, ...]:
    return tuple(labels(table, name, table.array(name)) for name in roles.stratum_columns)


def _event(
    table: Table, name: str | None, censored: str | None, *, is_new: bool
) -> tuple[AnyArray | None, CauseLabels]:
    if name is None:
        return None, {}
    array, words = plain_values(table.array(name)), table.words
    if kind_of(array.type) == "text":
        check_present(table, name, array)
        text = labels(table, name, array)
        return code_labels(
            text, censored, words.column(name), Places(row_name=words.row), is_new=is_new
        )
    if censored is not None:
        raise InputError(
            f"`censored` is {censored!r}, but {words.column(name)} holds no text.",
            hint="leave it out; of numbers, 0 means censored.",
        )
    return finite_numbers(table, name, array), {}


def places_of(roles: ColumnRoles, words: TableWords) -> Places:
    """What messages call the columns that have a role, and their rows."""
    columns = {}
    for role in (*NUMBERS, "cluster"):
        name = getattr(roles, role)
        if name is not None:
            is_rounded = role in TIMES and roles.time_digits is not None
            note = f" (rounded to {roles.time_digits} decimals)" if is_rounded else ""
            columns[role] = words.column(name) + note
    if roles.stratum_columns:
        columns["strata"] = " and ".join(map(words.column, roles.stratum_columns))
    return Places(columns, words.row)
