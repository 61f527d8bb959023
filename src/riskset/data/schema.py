"""How a data set was read, so that new data are read alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from riskset._errors import InputError
from riskset.data.column_roles import ColumnRoles
from riskset.data.covariate_labels import CovariateLabels
from riskset.data.formula import FormulaEncoder, encoder_from_dict
from riskset.data.frame import FrameEncoder
from riskset.data.long_query import LongColumns
from riskset.data.long_table import find_columns
from riskset.data.table_files import Duplicates, LongTableFormat, UnknownRows

__all__ = ["LongOptions", "Schema"]


@dataclass(frozen=True)
class LongOptions:
    """How a long table is read; see `long_table.long_design`.

    `keys` are the covariates of the fit, in order; None while they are still to be found.
    """

    columns: LongColumns
    duplicates: Duplicates = "error"
    unknown_rows: UnknownRows = "error"
    keys: tuple[int | str, ...] | None = None

    @classmethod
    def find(
        cls, asked: LongTableFormat, columns: Sequence[str], place: str, row: str | None
    ) -> "LongOptions":
        """How the long table of a fit is read; `row` identifies the rows of the outcomes."""
        return cls(
            find_columns(columns, place, asked.covariate_columns, row),
            asked.duplicates or "error",
            asked.unknown_rows or "error",
        )


@dataclass(frozen=True)
class Schema:
    """How a data set was read, so that new data can be read alike.

    `roles` has all columns that have a role, without `cause`, `reference` and `covariate_labels`.
    The covariates of the long table stand behind those of the wide table, which `encoder` reads.
    `labels` are what readers call them.
    """

    roles: ColumnRoles
    encoder: FrameEncoder | FormulaEncoder
    long: LongOptions | None = None
    labels: CovariateLabels = field(default_factory=CovariateLabels, compare=False)

    def long_options(
        self, columns: Sequence[str], place: str, asked: LongTableFormat
    ) -> LongOptions:
        """How to read the long table of new data: as at the fit, unless `asked` differs."""
        if self.long is None:
            raise InputError(
                "the model was fitted without a long table of covariates, but one was given.",
                hint="leave `covariates` out.",
            )
        old = self.long.columns
        same = old.row in columns and old.covariate in columns and old.value in (None, *columns)
        if asked.covariate_columns is not None or not same:
            old = find_columns(columns, place, asked.covariate_columns, self.roles.id)
        return replace(
            self.long,
            columns=old,
            duplicates=asked.duplicates or self.long.duplicates,
            unknown_rows=asked.unknown_rows or self.long.unknown_rows,
        )

    def to_dict(self) -> dict[str, object]:
        """The schema as JSON can hold it; 64-bit keys stay exact."""
        long = self.long
        return {
            "roles": self.roles.to_dict(),
            "encoder": self.encoder.to_dict(),
            "time_digits": self.roles.time_digits,
            "censored": self.roles.censored,
            **({"labels": self.labels.to_list()} if self.labels else {}),
            "long": None
            if long is None
            else {
                "columns": [long.columns.row, long.columns.covariate, long.columns.value],
                "duplicates": long.duplicates,
                "unknown_rows": long.unknown_rows,
                "keys": list(long.keys or ()),
            },
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "Schema":
        """The inverse of `to_dict`."""
        settings = {name: state.get(name) for name in ("time_digits", "censored")}
        if long := state["long"]:
            columns, keys = LongColumns(*long["columns"]), tuple(long["keys"])
            long = LongOptions(columns, long["duplicates"], long["unknown_rows"], keys)
        return cls(
            ColumnRoles.from_dict(state["roles"], **settings),
            encoder_from_dict(state["encoder"]),
            long,
            CovariateLabels.from_list(state.get("labels") or ()),
        )
