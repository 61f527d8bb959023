"""The form of a `Schema` in a document: what a saved fit says of how its data were read."""

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator

from riskset.data.documents import Form, GroupLabel
from riskset.data.table_files import Duplicates, UnknownRows

__all__ = ["EncoderForm", "SchemaForm"]

CovariateKey = Annotated[int, Field(ge=-(2**63), lt=2**63)]


def _check_one_kind(values: list[GroupLabel], what: str) -> None:
    kinds = {float if type(value) is int else type(value) for value in values}
    if len(kinds) > 1:
        raise ValueError(f"{what} must be all text, all numbers or all truth values")


def _check_unique(values: list[GroupLabel], what: str) -> None:
    # 1, 1.0 and True are equal, but different levels.
    seen = {(type(value), value) for value in values}
    if len(seen) < len(values):
        raise ValueError(f"{what} must differ, but one is listed twice")


class RolesForm(Form):
    """`ColumnRoles.to_dict`: any other key is a role of one column, which may be null."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str | None]

    strata: list[str]
    drop: list[str]


class FormulaForm(Form):
    """What a `FormulaEncoder` adds to the columns that it reads."""

    covariates: str
    transforms: dict[str, Any]
    categories: dict[str, list[GroupLabel]]
    names: list[str]


class EncoderForm(Form):
    """`FrameEncoder.to_dict` or `FormulaEncoder.to_dict`."""

    columns: list[str]
    levels: dict[str, list[GroupLabel]]
    fills: dict[str, float] = {}
    formula: FormulaForm | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _check_unique(list(self.columns), "columns")
        for name, levels in self.levels.items():
            if name not in self.columns:
                raise ValueError(f"levels/{name}: no column has that name")
            if not levels:
                raise ValueError(f"levels/{name}: it must have at least one level")
            _check_one_kind(levels, f"levels/{name}")
            _check_unique(levels, f"levels/{name}")
        for name in self.fills:
            if name not in self.columns or name in self.levels:
                raise ValueError(f"fills/{name}: no column of numbers has that name")
        return self


class LongForm(Form):
    """The long table of covariates."""

    columns: tuple[str, str, str | None] = Field(strict=False)
    duplicates: Duplicates
    unknown_rows: UnknownRows
    keys: list[CovariateKey | str]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _check_one_kind(list(self.keys), "keys")
        _check_unique(list(self.keys), "keys")
        return self


class LabelForm(Form):
    """A row of `CovariateLabels.to_list`."""

    name: str
    label: str | None = None
    group: str | None = None
    unit: str | None = None
    reference: str | None = None


class SchemaForm(Form):
    """`Schema.to_dict`."""

    roles: RolesForm
    encoder: EncoderForm
    time_digits: int | None
    censored: str | None = None
    long: LongForm | None
    labels: list[LabelForm] = []
