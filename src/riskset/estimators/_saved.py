"""A fitted estimator as a JSON document and arrays, and back."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError
from riskset._messages import Note
from riskset._types import AnyArray
from riskset.data.documents import Form, check_form
from riskset.data.frame import FrameEncoder
from riskset.data.schema import Schema
from riskset.data.schema_form import EncoderForm, SchemaForm
from riskset.estimators._fitted import Fitted
from riskset.estimators._input import Columns
from riskset.model.penalty import L1, L2, ElasticNet, Penalty
from riskset.persistence import read_archive, write_archive

if TYPE_CHECKING:
    from riskset.estimators._base import HazardModel

__all__ = ["load_into", "penalty_from_dict", "penalty_to_dict", "save"]

PLAIN = (
    "status_",
    "kkt_",
    "log_likelihood_",
    "null_log_likelihood_",
    "objective_",
    "n_iter_",
    "n_rows_",
    "n_events_",
    "n_strata_",
    "n_dropped_",
    "n_features_in_",
    "seconds_",
    "_is_penalized",
    "_is_robust",
    "_library",
)
"""Attributes that JSON holds as they are."""


class SavedForm(Form):
    """What a saved model says of itself, as far as it has one form for all models."""

    model: str
    parameters: dict[str, Any]
    penalty: dict[str, Any] | None
    attributes: dict[str, Any]
    notes: list[list[str | list[str]]]
    feature_names_in_: list[Any] | None
    covariates: list[str]
    encoder: EncoderForm | None
    data: SchemaForm | None = Field(alias="schema")


def save(model: "HazardModel", path: str | os.PathLike[str]) -> None:
    """See `Cox.save`."""
    check_is_fitted(model, "coef_")
    parameters = {k: _plain(v) for k, v in model.get_params(deep=False).items() if k != "penalty"}
    columns, names = model._columns, getattr(model, "feature_names_in_", None)
    document = {
        "model": type(model).__name__,
        "parameters": parameters,
        "penalty": penalty_to_dict(model.penalty),
        "attributes": {name: _plain(getattr(model, name)) for name in PLAIN},
        "notes": [[n.code, list(n.columns), n.message] for n in model.notes_],
        "feature_names_in_": None if names is None else list(names),
        "covariates": list(model.covariates_),
        "encoder": None if columns.encoder is None else columns.encoder.to_dict(),
        "schema": None if columns.schema is None else columns.schema.to_dict(),
        "factors": [list(factor) for factor in columns.factors],
    }
    more, arrays = model._to_save()
    arrays |= {"coef": model.coef_, **model._fitted.to_arrays()}
    write_archive(path, document | more, arrays)


def load_into(
    path: str | os.PathLike[str], models: "dict[str, type[HazardModel]]"
) -> "HazardModel":
    """Read a saved fit; `models` are the classes that it may be of, by name."""
    document, arrays = read_archive(path)
    file = os.path.basename(path)
    check_form(SavedForm, document, file=file, hint="save the model again.")
    try:
        kind = document["model"]
        if kind not in models:
            raise InputError.unknown_name("model", str(kind), models, place=os.fspath(path))
        return _restore(models[kind], document, arrays)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{file} is a riskset fit, but something in it is missing or "
            f"changed ({type(error).__name__}: {error}).",
            hint="save the model again.",
        ) from None


def _restore(
    kind: "type[HazardModel]", document: dict[str, Any], arrays: dict[str, AnyArray]
) -> "HazardModel":
    model = kind(penalty=penalty_from_dict(document["penalty"]), **document["parameters"])
    for name in PLAIN:
        setattr(model, name, document["attributes"][name])
    model.coef_ = arrays.pop("coef")
    model.covariates_ = tuple(document["covariates"])
    if model.coef_.shape != (len(model.covariates_),):
        raise InputError(
            f"the file names {len(model.covariates_):,} covariates, but holds "
            f"{model.coef_.size:,} coefficients.",
            hint="save the model again.",
        )
    model.notes_ = [Note(code, tuple(names), text) for code, names, text in document["notes"]]
    if document["feature_names_in_"] is not None:
        model.feature_names_in_ = np.array(document["feature_names_in_"], dtype=object)
    encoder, schema = document["encoder"], document["schema"]
    model._columns = Columns(
        model.covariates_,
        None if encoder is None else FrameEncoder.from_dict(encoder),
        None if schema is None else Schema.from_dict(schema),
        tuple(map(tuple, document.get("factors", ()))),
    )
    model._restore(document, arrays)
    model._fitted = Fitted(None, arrays)
    model._fitted.check()
    return model


def _plain(value: object) -> object:
    """What JSON can hold; a parameter with one value for each training row is left out."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value if isinstance(value, (str, dict)) or not hasattr(value, "__len__") else None


def penalty_to_dict(penalty: Penalty | None) -> dict[str, object] | None:
    if penalty is None:
        return None
    factor = penalty.factor
    return {
        "type": type(penalty).__name__,
        "l1": penalty.l1,
        "l2": penalty.l2,
        "unpenalized": list(penalty.unpenalized),
        # Pairs, because keys of JSON objects are text and columns may be numbers.
        "factor_pairs": [list(p) for p in factor.items()] if isinstance(factor, dict) else None,
        "factor": list(factor) if isinstance(factor, tuple) else None,
        "rescale": penalty.rescale,
        "drop_first": penalty.drop_first,
    }


def penalty_from_dict(state: dict[str, Any] | None) -> Penalty | None:
    if state is None:
        return None
    pairs = state["factor_pairs"]
    common = {
        "unpenalized": state["unpenalized"],
        "factor": state["factor"] if pairs is None else dict(pairs),
        # Fits that do not say it left first levels out.
        "drop_first": state.get("drop_first", True),
    }
    if state["type"] == "L1":
        return L1(state["l1"], **common)
    if state["type"] == "L2":
        return L2(state["l2"], **common)
    return ElasticNet(l1=state["l1"], l2=state["l2"], rescale=state["rescale"], **common)
