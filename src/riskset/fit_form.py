"""The form of ``fit.json``: what `riskset.fit_file.read_fit` needs, and what must agree."""

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, field_validator, model_validator

from riskset.data.documents import Finite, Form, Numeral, check_ascending, check_label
from riskset.data.frame import FrameEncoder
from riskset.data.schema_form import SchemaForm
from riskset.model.censoring import CensoringTies
from riskset.model.cox import Ties
from riskset.model.finegray import Beyond, CensoringWeights
from riskset.solve.result import Status

__all__ = ["BaselineForm", "FitForm"]


def _check_stratum(label: object) -> object:
    """Several columns of strata give a list of labels for each stratum."""
    for part in label if isinstance(label, list) and label else [label]:
        check_label(part)
    return label


StratumLabel = Annotated[Any, AfterValidator(_check_stratum)]


class BaselineForm(Form):
    """The baseline hazard: event times of each stratum, and log of the cumulative hazard."""

    center: Finite
    strata: Annotated[list[StratumLabel], Field(min_length=1)]
    stratum_ptr: list[int]
    time: list[Finite]
    log_cumulative: list[Numeral]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        pointer, n_times = self.stratum_ptr, len(self.time)
        if len(pointer) != len(self.strata) + 1:
            raise ValueError(
                f"stratum_ptr: it must have {len(self.strata) + 1} numbers, one more than strata, "
                f"but it has {len(pointer)}"
            )
        if pointer[0] != 0 or pointer[-1] != n_times:
            raise ValueError(
                f"stratum_ptr: it must start with 0 and end with {n_times}, the number of times"
            )
        check_ascending([float(place) for place in pointer], strictly=False, what="stratum_ptr")
        if len(self.log_cumulative) != n_times:
            raise ValueError(
                f"log_cumulative: it must have {n_times} numbers, one for each time, but it has "
                f"{len(self.log_cumulative)}"
            )
        if np.inf in self.log_cumulative:
            raise ValueError("log_cumulative: its numbers must not be infinite upwards")
        for start, end in pairwise(pointer):
            check_ascending(self.time[start:end], strictly=True, what="time")
            check_ascending(self.log_cumulative[start:end], strictly=False, what="log_cumulative")
        labels = [str(label) for label in self.strata]
        if len(set(labels)) < len(labels):
            raise ValueError("strata: its labels must differ, but one is listed twice")
        return self


class PredictionForm(Form):
    """How to read new data, and what predictions are made of."""

    data: SchemaForm = Field(alias="schema")
    center: dict[str, Finite]
    limit: dict[str, Annotated[tuple[Finite, Finite], Field(strict=False)]]
    baseline: BaselineForm


class CensoringForm(Form):
    """The censoring distribution of a Fine-Gray model."""

    ties: CensoringTies
    group: str | None
    beyond: Beyond
    weights: CensoringWeights


class FitForm(Form):
    """What predictions need of ``fit.json``."""

    riskset: str
    format: int = Field(default=1, ge=1)
    model: Literal["cox", "finegray"]
    ties: Ties
    cause: int | str | None
    censoring: CensoringForm | None = None
    coef: dict[str, Numeral]
    status: Status
    prediction: PredictionForm
    sha256: str | None = None

    @field_validator("coef")
    @classmethod
    def _are_numbers(cls, coef: dict[str, float]) -> dict[str, float]:
        for name, value in coef.items():
            if np.isnan(value):
                raise ValueError(f"the coefficient of {name!r} is not a number")
        return coef

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.model == "finegray":
            for key in ("censoring", "cause"):
                if getattr(self, key) is None:
                    raise ValueError(f"{key}: it is missing, but the model is 'finegray'")
        self._check_names()
        kept = self.prediction
        for name in kept.center:
            if name not in self.coef:
                raise ValueError(f"prediction/center/{name}: no coefficient has that name")
        infinite = [name for name, value in self.coef.items() if np.isinf(value)]
        if kept.limit and list(kept.limit) != list(self.coef):
            raise ValueError("prediction/limit: its names must be those of coef, in the same order")
        if infinite and not kept.limit:
            raise ValueError(
                f"prediction/limit: it is empty, but the coefficient of {infinite[0]!r} is infinite"
            )
        return self

    def _check_names(self) -> None:
        """The coefficients must be those of the covariates that new data are read into.

        One level of a category may have none: see `riskset.model.references`.
        """
        schema = self.prediction.data
        encoder = FrameEncoder.from_dict(schema.encoder.model_dump())
        references: set[str] = set()
        for factor in encoder.factors:
            absent = [name for name in factor if name not in self.coef]
            if len(absent) > 1:
                raise ValueError(
                    f"coef: {' and '.join(map(repr, absent))} have no coefficient, but only one "
                    "level of a category can do without"
                )
            references.update(absent)
        wide = [name for name in encoder.feature_names if name not in references]
        keys = [] if schema.long is None else schema.long.keys
        n_read = len(wide) + len(keys)
        if n_read != len(self.coef):
            raise ValueError(
                f"coef: it has {len(self.coef)} coefficients, but prediction/schema describes "
                f"{n_read} covariates"
            )
        for name, coefficient in zip(wide, self.coef, strict=False):
            if name != coefficient:
                raise ValueError(
                    f"coef: {coefficient!r} stands where prediction/schema has {name!r}"
                )
