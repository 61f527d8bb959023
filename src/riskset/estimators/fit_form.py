"""The form of ``fit.json``: what riskset reads of it, and what must agree."""

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, field_validator, model_validator

from riskset.data.documents import Finite, Form, Numeral, check_ascending, check_label
from riskset.data.formula import encoder_from_dict
from riskset.data.schema_form import EncoderForm, SchemaForm
from riskset.infer.crossval.scores import ScoreKind
from riskset.model.censoring import BeyondSupport, CensoringTies, CensoringWeights
from riskset.model.cox import Ties
from riskset.solve.result import Status

__all__ = ["ArchiveForm", "FitForm"]

Count = Annotated[int, Field(ge=0)]
Number = Numeral | None
"""A number; None stands for NaN."""


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


class PredictionIntervalForm(Form):
    """What intervals of predictions need: see `Fitted.windows`.

    `mean` and `cross` are by stratum, time and covariate; `square` by variance, stratum and time.
    """

    times: list[Finite]
    end: list[Finite]
    mean: list[list[list[Number]]]
    square: list[list[list[Number]]]
    cross: list[list[list[Number]]]
    variance: list[list[Number]]
    robust_variance: list[list[Number]]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        n_strata, n_times, p = len(self.end), len(self.times), len(self.variance)
        for name, shape in (
            ("mean", (n_strata, n_times, p)),
            ("square", (2, n_strata, n_times)),
            ("cross", (n_strata, n_times, p)),
            ("variance", (p, p)),
            ("robust_variance", (p, p)),
        ):
            if not _has_shape(getattr(self, name), shape):
                raise ValueError(f"{name}: it must have {' x '.join(map(str, shape))} numbers")
        return self


def _has_shape(values: Any, shape: tuple[int, ...]) -> bool:
    """Whether nested lists have a shape."""
    if not shape:
        return not isinstance(values, list)
    return len(values) == shape[0] and all(_has_shape(part, shape[1:]) for part in values)


class PredictionForm(Form):
    """How to read new data, and what predictions are made of.

    Only a model fitted on a `Dataset` has a schema. An estimate that is infinite in too many stages
    for floating point has the number of its stages in place of a baseline.
    """

    data: SchemaForm | None = Field(alias="schema")
    center: dict[str, Finite]
    limit: dict[str, Annotated[tuple[Finite, Finite], Field(strict=False)]]
    baseline: BaselineForm | None
    stages: Count | None = None
    intervals: PredictionIntervalForm | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.baseline is None) == (self.stages is None):
            raise ValueError("baseline: there must be either a baseline or a number of stages")
        return self


class CensoringForm(Form):
    """The censoring distribution of a Fine-Gray model."""

    ties: CensoringTies
    group: str | None
    beyond: BeyondSupport
    weights: CensoringWeights


class PenaltyForm(Form):
    """The penalty of the fit, with the names of columns: of a cross-validation the chosen one."""

    l1: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    l2: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    unpenalized: list[str]
    factor: dict[str, Finite] = {}


class FrailtyForm(Form):
    """The frailties of the clusters, whose `labels` are texts of JSON; see `KeptFrailties`."""

    labels: Annotated[list[str], Field(min_length=2)]
    log: list[Finite]
    error: list[Finite]
    rows: list[Finite]
    events: list[Finite]
    numbers: list[Finite]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name in ("log", "error", "rows", "events"):
            if len(getattr(self, name)) != len(self.labels):
                raise ValueError(f"{name}: it must have {len(self.labels)} numbers, as labels")
        return self


class NoteForm(Form):
    """A note about the data or the answer."""

    code: str
    columns: list[str]
    message: str


class SearchForm(Form):
    """What a cross-validation keeps in addition to its arrays."""

    penalties: list[dict[str, Any] | None]
    score: ScoreKind
    best: Count
    chosen: Count

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if max(self.best, self.chosen) >= len(self.penalties):
            raise ValueError("best and chosen must be positions in penalties")
        return self


class EstimatorForm(Form):
    """What an estimator was made with, and what X looked like at the fit."""

    name: Literal["Cox", "FineGray", "CoxCV", "FineGrayCV", "CoxFrailty"] = Field(alias="class")
    parameters: dict[str, Any]
    penalty: dict[str, Any] | None
    search: SearchForm | None
    n_features_in: Count
    feature_names_in: list[Any] | None
    encoder: EncoderForm | None
    factors: list[list[str]]
    library: str | None
    is_penalized: bool
    is_robust: bool


class FitForm(Form):
    """What riskset reads of ``fit.json``; predictions need the keys without a default."""

    riskset: str
    format: int = Field(default=1, ge=1)
    model: Literal["cox", "finegray"]
    ties: Ties
    firth: bool = False
    cause: int | str | None
    censoring: CensoringForm | None = None
    coef: dict[str, Numeral]
    status: Status
    prediction: PredictionForm
    n_rows: Count | None = None
    n_events: Count | None = None
    n_strata: Count | None = None
    n_dropped: dict[str, Count] = {}
    penalty: PenaltyForm | None = None
    kkt: Number = None
    log_likelihood: Number = None
    null_log_likelihood: Number = None
    objective: Number = None
    iterations: Count | None = None
    standard_error: dict[str, Number] | None = None
    robust_standard_error: dict[str, Number] | None = None
    warnings: list[NoteForm] = []
    estimator: EstimatorForm | None = None
    frailty: FrailtyForm | None = None
    arrays: dict[str, str] = {}
    seconds: dict[str, Finite] = {}
    sha256: str | None = None

    @classmethod
    def sealed_keys(cls, version: int) -> tuple[str, ...]:
        """Keys of a document of some format that its checksum covers: all that matter.

        The checksum of format 1 covers what predictions need; times never count.
        """
        names = tuple(cls.model_fields)
        last = "prediction" if version == 1 else "arrays"
        return names[: names.index(last) + 1]

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
        if infinite and not kept.limit and kept.baseline is not None:
            raise ValueError(
                f"prediction/limit: it is empty, but the coefficient of {infinite[0]!r} is infinite"
            )
        for key in ("standard_error", "robust_standard_error"):
            errors = getattr(self, key)
            if errors is not None and list(errors) != list(self.coef):
                raise ValueError(f"{key}: its names must be those of coef, in the same order")
        intervals = kept.intervals
        if intervals is not None and len(intervals.variance) != len(self.coef):
            raise ValueError("prediction/intervals/variance: it must have a row per coefficient")
        if self.estimator is not None and self.model not in self.estimator.name.lower():
            raise ValueError(f"estimator/class: it does not fit the model {self.model!r}")
        named = self.estimator is not None and self.estimator.name == "CoxFrailty"
        if named != (self.frailty is not None):
            raise ValueError("frailty: it must be there for CoxFrailty, and for no other class")
        return self

    def _check_names(self) -> None:
        """The coefficients must be those of the covariates that new data are read into.

        One level of a category may have none: see `riskset.model.references`.
        """
        schema = self.prediction.data
        if schema is None:
            return
        encoder = encoder_from_dict(schema.encoder.model_dump())
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


class ArchiveForm(Form):
    """The document of the archives that riskset wrote before ``fit.json`` was part of them."""

    model: Literal["Cox", "FineGray", "CoxCV", "FineGrayCV"]
    parameters: dict[str, Any]
    penalty: dict[str, Any] | None
    attributes: dict[str, Any]
    notes: list[list[str | list[str]]]
    feature_names_in_: list[Any] | None
    covariates: list[str]
    encoder: EncoderForm | None
    data: SchemaForm | None = Field(alias="schema")
    factors: list[list[str]] = []
    cross_validation: SearchForm | None = None
