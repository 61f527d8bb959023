"""From what a user passes as X and y to a `Design` and an `Outcome`, at the fit and after it.

Tables, arrays and sparse matrices come in here; below there are only validated types. What X looked
like at the fit is remembered, and later input is held against it.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from riskset._errors import InputError
from riskset._messages import Note
from riskset._types import AnyArray, Factors, Features, Rows, is_number
from riskset.data.causes import CauseLabels, cause_code, labels_of
from riskset.data.checks import (
    IN_DAYS,
    Places,
    as_array,
    as_numbers,
    as_time_numbers,
    complain_rows,
    is_missing,
    is_number_type,
)
from riskset.data.column_statistics import select_columns
from riskset.data.covariate_labels import CovariateLabels
from riskset.data.dataset import Dataset
from riskset.data.design import Design
from riskset.data.formula import FormulaEncoder
from riskset.data.frame import FrameEncoder, as_table, result_library
from riskset.data.levels import check_references
from riskset.data.outcome import Outcome, field_names
from riskset.data.schema import Schema
from riskset.estimators._fixed import FixedCoefficients
from riskset.model.penalty import Penalty, as_kind
from riskset.model.references import without_references

__all__ = [
    "FittedColumns",
    "ModelInput",
    "as_coefficients",
    "as_offset",
    "as_outcome",
    "as_surv",
    "frame_library",
    "lift",
    "output_library",
    "own_labels",
    "read_covariates",
    "refuse_reference",
    "refuse_beside",
]

FRAME_LIBRARIES = ("pandas", "polars", "pyarrow", "duckdb", "narwhals", "modin", "cudf", "ibis")


class _WrongTypeError(InputError, TypeError):
    """An object that no number can be made of, which to scikit-learn is an error of type."""


@dataclass(frozen=True)
class FittedColumns:
    """What X looked like at the fit: the covariates, one for each coefficient, and how to read it.

    X was a data frame if there is an encoder, and a `Dataset` if there is a schema. `factors` has
    for each category the columns of all its levels, those without a coefficient among them. `own`
    are the labels that the estimator was given.
    """

    names: tuple[str, ...]
    encoder: FrameEncoder | None = None
    schema: Schema | None = None
    factors: Factors = ()
    own: CovariateLabels = field(default_factory=CovariateLabels)

    @property
    def labels(self) -> CovariateLabels:
        """What readers call the covariates: by the estimator, or by a `Dataset` with labels."""
        return self.own if self.own or self.schema is None else self.schema.labels

    def texts(self, names: Sequence[str]) -> tuple[str, ...]:
        """What readers call some covariates; their names, without labels."""
        return self.labels.texts(names)

    @property
    def references(self) -> dict[str, str]:
        """Of each level with a coefficient, the level without one that it is compared with."""
        fitted = set(self.names)
        encoder = None if self.schema is None else self.schema.encoder
        found = encoder.references if isinstance(encoder, FormulaEncoder) else {}
        for factor in self.factors:
            absent = [name for name in factor if name not in fitted]
            if len(absent) == 1:
                found.update((name, absent[0]) for name in factor if name in fitted)
        return found


class ModelInput(NamedTuple):
    """Validated input of a fit, and what was said about it on the way.

    Coefficients that are `fixed` have columns of zeros in `design`, and their part of the linear
    predictor is in the offset of `outcome`; `covariates` are the columns as given.
    """

    design: Design
    outcome: Outcome
    columns: FittedColumns
    notes: tuple[Note, ...]
    n_dropped: dict[str, int]
    covariates: Design
    fixed: FixedCoefficients
    dataset: Dataset | None = None


def frame_library(X: object) -> str | None:
    """The library a data frame comes from, None if X is not a data frame."""
    module = type(X).__module__.split(".")[0].lstrip("_")
    if module in FRAME_LIBRARIES:
        return module
    return "pyarrow" if hasattr(X, "__arrow_c_stream__") else None


def output_library(X: object) -> str | None:
    """The library of the data frames of results for X: its own, or None for the default."""
    return result_library(frame_library(X))


def lift(X: object, known: FittedColumns, *, outcome: bool = False) -> object:
    """New data as a `Dataset`, if they are a frame and those of the fit were a `Dataset`."""
    if known.schema is None or isinstance(X, Dataset) or not _has_text_names(X):
        return X
    return Dataset.from_schema(known.schema, X, outcome=outcome)


def read_covariates(
    estimator: BaseEstimator, X: object, known: FittedColumns | None
) -> tuple[Design, FittedColumns]:
    """The covariates of X; `known` are those of the fit, or None during the fit.

    During the fit this sets ``n_features_in_`` and, if columns have names, ``feature_names_in_`` of
    the estimator, whose penalty says which first levels of categories have no column. Later it
    holds X against them, by scikit-learn's rules.
    """
    if known is not None:
        return _read(estimator, X, known)
    labels = own_labels(estimator)
    design, columns = _read(estimator, X, None)
    if not labels:
        return design, columns
    encoder = columns.encoder if columns.schema is None else columns.schema.encoder
    names = {name for factor in columns.factors for name in factor}
    names |= set() if encoder is None else set(encoder.columns)
    texts = () if encoder is None else tuple(encoder.levels)
    is_long = columns.schema is not None and columns.schema.long is not None
    labels.check(design, columns=names, texts=texts, has_long=is_long, place="X")
    return design, replace(columns, own=labels)


def own_labels(estimator: Any) -> CovariateLabels:
    """The labels that an estimator was given."""
    return CovariateLabels.read(getattr(estimator, "covariate_labels", None))


def _read(
    estimator: BaseEstimator, X: object, known: FittedColumns | None
) -> tuple[Design, FittedColumns]:
    """The covariates of X without what readers call them."""
    if known is None and not _has_text_names(X):
        refuse_reference(estimator, X)
    if isinstance(X, Dataset):
        design, columns = _read_design(estimator, X.design, known)
        return design, columns if known is not None else replace(columns, schema=X.schema)
    if isinstance(X, Design):
        return _read_design(estimator, X, known)
    if _has_text_names(X):
        return _read_frame(estimator, X, known)
    if known is not None and known.encoder is not None and known.encoder.levels:
        column = next(iter(known.encoder.levels))
        raise InputError(
            f"the model was fitted on a data frame whose column {column!r} held categories, but "
            f"now X is a {type(X).__name__}.",
            hint="pass a data frame with the columns of the fit.",
        )
    names = None if known is None else known.names
    matrix = X if sp.issparse(X) else _as_array(X)
    _check_features(estimator, matrix, is_fit=known is None)
    if sp.issparse(matrix):
        design = Design.from_sparse(matrix, names)
    else:
        design = Design.from_dense(matrix, names)
    return design, FittedColumns(design.names) if known is None else known


def _read_design(
    estimator: Any, X: Design, known: FittedColumns | None
) -> tuple[Design, FittedColumns]:
    if known is None:
        X = _for_model(estimator, X)
        estimator.n_features_in_ = X.n_features
        estimator.feature_names_in_ = np.array(X.names, dtype=object)
        return X, FittedColumns(X.names, factors=X.factors)
    X = _as_fitted(X, known)
    if X.names != known.names:
        absent = [name for name in known.names if name not in set(X.names)]
        what = f"{absent[0]!r} is absent" if absent else "they stand in another order"
        raise InputError(
            f"the covariates of X must be the {len(known.names):,} of the fit, but {what}.",
            hint="build the design in the way it was built for the fit.",
        )
    return X, known


def _read_frame(
    estimator: Any, X: object, known: FittedColumns | None
) -> tuple[Design, FittedColumns]:
    table = as_table(X)
    if known is None:
        given = _reference_of(estimator)
        reference = own_labels(estimator).references(given, table, table.data_columns)
        encoder, design = FrameEncoder.fit(table, reference=reference or None)
        design = _for_model(estimator, design)
        estimator.n_features_in_ = len(encoder.columns)
        estimator.feature_names_in_ = np.array(encoder.columns, dtype=object)
        return design, FittedColumns(design.names, encoder, factors=design.factors)
    if known.encoder is None:
        design = FrameEncoder.fit(table)[1]
        if hasattr(estimator, "feature_names_in_"):
            return _read_design(estimator, design, known)
        _check_features(estimator, X, is_fit=False)  # warns that names are not looked at
        return replace(without_references(design, None), names=known.names), known
    kept = set(known.encoder.columns)
    now = tuple(name for name in table.columns if name in kept or name not in table.index)
    _check_names(known.encoder.columns, now)
    return _as_fitted(known.encoder.transform(table), known), known


def refuse_reference(estimator: Any, X: object) -> None:
    """Refuse reference levels for an X that has its columns already."""
    if _reference_of(estimator):
        raise InputError(
            f"`reference` chooses levels of the columns of a data frame, but X is of type "
            f"{type(X).__name__}.",
            hint="choose them when the data are read, for example with "
            "Dataset.from_frame(frame, reference=...).",
        )


def _reference_of(estimator: Any) -> Mapping[str, object] | None:
    reference: Mapping[str, object] | None = getattr(estimator, "reference", None)
    check_references(reference)
    return reference


def _for_model(estimator: Any, design: Design) -> Design:
    """The columns of a model: without the first levels of categories that it cannot have."""
    several = getattr(estimator, "penalties", None)
    given = [
        as_kind(getattr(estimator, "penalty", None)),
        *(several if np.iterable(several) else ()),
    ]
    kinds = [one for one in given if isinstance(one, Penalty)]
    # Of several to choose from, the columns are those that all of them can have.
    first = next((kind for kind in kinds if kind.leaves_first_out), None)
    return without_references(design, first or next(iter(kinds), None))


def _as_fitted(design: Design, known: FittedColumns) -> Design:
    """New data without the levels that had no column at the fit."""
    fitted = set(known.names)
    if known.names == design.names or not fitted.issubset(design.names):
        return design
    references = {factor for factor in known.factors if not fitted.issuperset(factor)}
    for factor in design.factors:
        if references and fitted.intersection(factor) and factor not in {*known.factors}:
            raise InputError(
                f"the levels of a category differ from those of the fit: now they are "
                f"{', '.join(map(repr, factor))}.",
                hint="build the design in the way it was built for the fit.",
            )
    levels = {name for factor in design.factors for name in factor}
    kept = [j for j, n in enumerate(design.names) if n in fitted or n not in levels]
    return select_columns(design, np.array(kept, dtype=np.int64))


def _check_names(known: tuple[str, ...], now: tuple[str, ...]) -> None:
    """Refuse other columns, and columns in another order, in scikit-learn's words."""
    if now == known:
        return
    unseen, missing = sorted(set(now) - set(known)), sorted(set(known) - set(now))
    message = "The feature names should match those that were passed during fit.\n"
    if unseen:
        message += "Feature names unseen at fit time:\n" + _listed(unseen)
    if missing:
        message += "Feature names seen at fit time, yet now missing:\n" + _listed(missing)
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise InputError(message, hint="select the columns of the fit, in their order.")


def _listed(names: list[str]) -> str:
    shown = "".join(f"- {name}\n" for name in names[:5])
    return shown + ("- ...\n" if len(names) > 5 else "")


def _has_text_names(X: Any) -> bool:
    """Whether X is a data frame with columns called by text."""
    library = frame_library(X)
    if library is None:
        return False
    # pandas numbers the columns of a frame made from an array; such a frame is taken as an array.
    return library != "pandas" or (
        getattr(X, "ndim", 0) == 2 and any(isinstance(name, str) for name in X.columns)
    )


def _as_array(X: object) -> AnyArray:
    array = as_array(X, "X", Places())
    if array.dtype.kind == "c":
        raise InputError(
            f"Complex data not supported: X must hold real numbers, but its type is {array.dtype}."
        )
    if array.ndim != 2:
        raise InputError(
            f"X must have two dimensions (rows, columns), but its shape is {array.shape}.",
            hint="Reshape your data: X.reshape(-1, 1) makes one column of a vector, "
            "X.reshape(1, -1) one row.",
        )
    if array.dtype == object:
        types = {type(value) for value in array.flat if not is_missing(value)}
        known = {t for t in types if is_number_type(t) or issubclass(t, str | bytes)}
        other = next(iter(types - known), None)
        if other is not None:
            raise _WrongTypeError(
                f"X must be numeric, but it holds an object of type {other.__name__} (the argument "
                "must be a string or a real number).",
                hint=IN_DAYS
                if issubclass(other, datetime.timedelta | np.timedelta64)
                else "encode it as numbers.",
            )
    return array


def _check_features(estimator: BaseEstimator, matrix: object, *, is_fit: bool) -> None:
    try:
        validate_data(estimator, matrix, reset=is_fit, skip_check_array=True)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from None


# ------------------------------------------------------------------------------------ outcomes


def _followup(y: object) -> tuple[AnyArray, AnyArray, AnyArray | None, CauseLabels, Places]:
    """Times, events, entries and labels of any accepted `y`, and what messages call them.

    Accepted are `riskset.Surv`, scikit-survival's arrays of one boolean and one number, and plain
    numbers: times at which everybody had the event.
    """
    if y is None:
        raise InputError(
            "this estimator requires y to be passed, but the target y is None.",
            hint="make it with riskset.Surv(time, event).",
        )
    array = as_array(y, "`y`", Places())
    names = array.dtype.names
    if names is None:
        return _plain_times(array)
    event, time = field_names(array)
    entry = array["entry"] if "entry" in names else None
    places = {"time": f"`y[{time!r}]`", "event": f"`y[{event!r}]`", "entry": "`y['entry']`"}
    return array[time], array[event], entry, labels_of(array), Places(places | _ARGUMENTS)


_ARGUMENTS = {"weight": "`sample_weight`"}


def _plain_times(array: AnyArray) -> tuple[AnyArray, AnyArray, None, CauseLabels, Places]:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: `y` must hold times and events.")
    if array.ndim != 1:
        raise InputError(
            f"`y` must hold one time and event for each row, but its shape is {array.shape}.",
            hint="make it with riskset.Surv(time, event).",
        )
    if array.dtype.kind == "b":
        raise InputError(
            "`y` holds only True and False, so there are no times.",
            hint="make it with riskset.Surv(time, event).",
        )
    return array, np.ones(array.shape, dtype=bool), None, {}, Places({"time": "`y`"} | _ARGUMENTS)


def as_outcome(
    y: object,
    n_rows: int,
    *,
    sample_weight: object = None,
    strata: object = None,
    offset: object = None,
    cluster: object = None,
    cause: int | str | None = None,
    is_part: bool = False,
) -> Outcome:
    """The outcome of rows given by `y` and the arguments of ``fit``."""
    time, event, entry, labels, places = _followup(y)
    if len(time) != n_rows:
        raise InputError(
            f"X has {n_rows:,} rows, but `y` has {len(time):,}.",
            hint="check that both come from the same table.",
        )
    if sample_weight is not None:
        weight = as_numbers(sample_weight, "weight", n_rows, places)
        if n_rows and not weight.any() and not is_part:
            raise InputError(
                "`sample_weight` is zero for every row, so no rows are left.",
                hint="a weight of zero removes a row; check how the weights were made.",
            )
    return Outcome.build(
        time,
        event,
        entry=entry,
        weight=sample_weight,
        stratum=strata,
        offset=offset,
        cluster=cluster,
        cause=cause,
        labels=labels,
        places=places,
        is_part=is_part,
    )


def as_surv(y: object, cause: int | str | None, *, competing_never_fail: bool = False) -> AnyArray:
    """`y` as a structured array of time, event (of the cause) and, if given, entry."""
    time, event, entry, labels, places = _followup(y)
    times = as_time_numbers(time, "time", None, places)
    codes = as_numbers(event, "event", times.size, places)
    if cause is None and not labels:
        complain_rows(
            codes > 1,
            codes,
            places.column("event"),
            "must be 0 (censored) or 1 (event)",
            places,
            hint="the model was fitted without a `cause`; recode the column as for the fit.",
        )
    chosen = _code_of_fit(cause, labels, has_events=bool(codes.any()))
    events = codes == chosen
    if competing_never_fail:  # their times are beyond all others
        competing = (codes != 0) & ~events
        times = np.where(competing, np.nextafter(times.max(initial=0.0), np.inf), times)
    fields: list[tuple[str, type]] = [("event", np.bool_), ("time", np.float64)]
    surv = np.empty(times.size, dtype=fields + [("entry", np.float64)] * (entry is not None))
    surv["event"], surv["time"] = events, times
    if entry is not None:
        surv["entry"] = as_time_numbers(entry, "entry", times.size, places)
    return surv


def _code_of_fit(cause: int | str | None, labels: CauseLabels, *, has_events: bool) -> int:
    """Code of the cause of the fit in later rows, none of which need have had the event."""
    if isinstance(cause, str) and cause not in labels.values() and (labels or not has_events):
        return max(labels, default=0) + 1
    code = cause_code(cause, labels)
    return 1 if code is None or not isinstance(code, int | np.integer) else int(code)


def as_offset(offset: object, n_rows: int) -> Rows:
    """Offsets of new rows; 0 where there are none."""
    return np.zeros(n_rows) if offset is None else as_numbers(offset, "offset", n_rows, Places())


def refuse_beside(what: str, **given: object) -> None:
    """Refuse arguments next to an X that contains them; `given` by name."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"`{name}` was given together with {what}.",
                hint="name the column when the data are read.",
            )


def as_coefficients(values: object, argument: str, design: Design) -> Features:
    """One coefficient for each column (p,), from an array or a mapping of names to numbers."""
    if not isinstance(values, Mapping):
        if np.ndim(values) == 0:  # type: ignore[arg-type]
            raise InputError(
                f"`{argument}` must be an array of coefficients, or a mapping of covariates to "
                f"coefficients, but it is {values!r}.",
                hint="for example {'age': 0.05}.",
            )
        numbers = as_numbers(values, argument, None, Places())
        if numbers.size != design.n_features:
            raise InputError(
                f"`{argument}` must have one coefficient for each covariate, of which there are "
                f"{design.n_features:,}, but it has {numbers.size:,}.",
                hint="an array has them in the order of the columns, a mapping by their names.",
            )
        return numbers
    out = np.zeros(design.n_features)
    for name, value in values.items():
        if name not in design.names:
            raise InputError.unknown_name("covariate", str(name), design.names)
        if not (is_number(value) and np.isfinite(value)):
            raise InputError(
                f"the coefficient of {name!r} must be a finite number, but it is {value!r}.",
                hint="leave it out for 0.",
            )
        out[design.names.index(name)] = value
    return out
