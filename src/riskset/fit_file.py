"""``fit.json``: a fitted model as one readable document, and back again for predictions.

The document holds the answer, how it was certified, and what predictions for new data need: how the
table was read and the baseline hazard. It never holds data of single rows, except the event times
of the baseline. Every number is written with all its digits.
"""

import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Features
from riskset._version import __version__
from riskset.data.documents import SEAL, check_form, content_checksum, parse_json
from riskset.data.schema import Schema
from riskset.data.writers import write_json
from riskset.estimators._fitted import Fitted
from riskset.estimators._input import Columns
from riskset.estimators._interval import Interval
from riskset.estimators.cox import Cox
from riskset.estimators.crossval import CoxCV, FineGrayCV
from riskset.estimators.finegray import FineGray
from riskset.fit_form import FitForm

__all__ = ["read_fit", "to_dict", "write_fit"]

FORMAT = 1
CV = (CoxCV, FineGrayCV)


def to_dict(
    model: Cox | FineGray,
    *,
    interval: Interval | None = None,
    seconds: Mapping[str, float] | None = None,
) -> dict[str, object]:
    """A fitted model as JSON can hold it.

    Parameters
    ----------
    model : Cox or FineGray
        Fitted on a `Dataset` that was read from a table.
    interval : Interval, optional
        Confidence intervals to store.
    seconds : mapping, optional
        Times to report beside those of the fit.

    Returns
    -------
    dict
        Infinite numbers are the strings "inf" and "-inf"; numbers that are not defined are None.
    """
    names = model.covariates_
    document: dict[str, object] = {
        "riskset": __version__,
        "format": FORMAT,
        **_kind(model),
        "n_rows": model.n_rows_,
        "n_events": model.n_events_,
        "n_strata": model.n_strata_,
        "n_features": len(names),
        "n_dropped": dict(model.n_dropped_),
        "penalty": _penalty(model),
        "coef": _named(names, model.coef_),
        "status": model.status_,
        "kkt": _number(model.kkt_),
        "tol": model.tol,
        "log_likelihood": _number(model.log_likelihood_),
        "null_log_likelihood": _number(model.null_log_likelihood_),
        "objective": _number(model.objective_),
        "iterations": model.n_iter_,
    }
    if not model._is_penalized:
        document["standard_error"] = _named(names, model.standard_error_)
    if model.is_robust_ or (interval is not None and interval.method == "robust"):
        document["robust_standard_error"] = _named(names, model.robust_standard_error_)
    if interval is not None:
        document["interval"] = _interval(interval)
    if isinstance(model, CV):
        document["cross_validation"] = _cross_validation(model)
    document["warnings"] = [
        {"code": note.code, "columns": list(note.columns), "message": note.message}
        for note in model.notes_
    ]
    times = dict(seconds or {}) | model.seconds_
    document["seconds"] = {name: round(value, 6) for name, value in times.items()}
    document["prediction"] = _prediction(model)
    document[SEAL] = _seal(document)
    return document


def write_fit(
    path: Path,
    model: Cox | FineGray,
    *,
    interval: Interval | None = None,
    seconds: Mapping[str, float] | None = None,
) -> None:
    """Write ``fit.json``, whole or not at all; see `to_dict`."""
    write_json(path, to_dict(model, interval=interval, seconds=seconds))


def read_fit(path: Path) -> tuple[Cox | FineGray, Schema]:
    """A model that predicts, and how to read new data for it.

    The model has coefficients, status and baseline hazard. It has no standard errors of its own and
    none of the training data.

    Raises
    ------
    InputError
        If there is no such file, or it is not one that `write_fit` wrote.
    """
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder.", hint="name the file of a fit in it.")
    try:
        document = parse_json(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"there is no file {str(path)!r}.", hint="it is what `riskset fit --out` writes."
        ) from None
    except ValueError as error:
        if zipfile.is_zipfile(path):
            raise InputError(
                f"{path.name} is not what `riskset fit` wrote, but a zip archive.",
                hint="a model saved by model.save(...) is for riskset.load(...) in Python.",
            ) from None
        raise _not_ours(path, f"it is not valid JSON ({error})") from None
    if not isinstance(document, dict) or "riskset" not in document:
        raise _not_ours(path, "it does not have the key 'riskset'")
    written = document.get("format", FORMAT)
    if isinstance(written, int) and written > FORMAT:
        raise InputError(
            f"{path.name} was written by riskset {document['riskset']}, whose format is newer than "
            f"that of riskset {__version__}.",
            hint="upgrade riskset.",
        )
    fit = check_form(
        FitForm,
        document,
        file=path.name,
        hint="write it again with `riskset fit --out`, or copy the file again.",
    )
    if fit.sha256 not in (None, _seal(document)):
        raise InputError(
            f"{path.name} has changed since it was written: it does not agree with its checksum.",
            hint="copy the file again, or fit again. To predict from a file that was edited on "
            f"purpose, delete its key {SEAL!r}.",
        )
    return _restore(fit, Schema.from_dict(document["prediction"]["schema"]))


def _seal(document: Mapping[str, object]) -> str:
    """Checksum of what predictions are made of; times and standard errors do not count."""
    read = [field.alias or name for name, field in FitForm.model_fields.items()]
    return content_checksum({key: document[key] for key in read if key in document and key != SEAL})


def _not_ours(path: Path, why: str) -> InputError:
    return InputError(
        f"{path.name} is not a fit written by riskset: {why}.",
        hint="pass the file that `riskset fit --out` wrote.",
    )


def _restore(fit: FitForm, schema: Schema) -> tuple[Cox | FineGray, Schema]:
    names, kept = tuple(fit.coef), fit.prediction
    model = _estimator(fit)
    model.coef_ = np.array(list(fit.coef.values()))
    model.covariates_ = names
    model.n_features_in_ = len(names)
    model.feature_names_in_ = np.array(names, dtype=object)
    model.status_ = fit.status
    model._columns = Columns(names, schema=schema)
    baseline = kept.baseline
    arrays: dict[str, AnyArray] = {
        "center": np.array([kept.center.get(name, 0.0) for name in names]),
        "baseline_strata": np.array([json.dumps(label) for label in baseline.strata]),
        "baseline_stratum_ptr": np.array(baseline.stratum_ptr, dtype=np.int64),
        "baseline_time": np.array(baseline.time, dtype=np.float64),
        "baseline_log_cumulative": np.array(baseline.log_cumulative, dtype=np.float64),
        "baseline_center": np.array(baseline.center),
    }
    if kept.limit:
        arrays["finite"], arrays["step"] = np.array(list(kept.limit.values())).T
    model._fitted = Fitted(None, arrays)
    return model, schema


def _kind(model: Cox | FineGray) -> dict[str, object]:
    """Which model it is, and what is special about it."""
    cause: object = model.cause
    if model._fitted.has_training:  # which may have been left to the data
        outcome = model._fitted.training.loss.outcome
        cause = outcome.labels.get(outcome.cause, outcome.cause)
    if isinstance(model, Cox):
        return {"model": "cox", "ties": model.ties, "cause": cause}
    schema, named = model._columns.schema, model.censoring_group
    role = None if schema is None else schema.roles.censoring_group
    censoring = {
        "ties": model.censoring_ties,
        "group": named if isinstance(named, str) else role,
        "beyond": model.censoring_beyond,
        "weights": model.censoring_weights,
    }
    return {"model": "finegray", "ties": "breslow", "cause": cause, "censoring": censoring}


def _estimator(fit: FitForm) -> Cox | FineGray:
    if fit.model == "cox" or fit.censoring is None or fit.cause is None:
        return Cox(ties=fit.ties, cause=fit.cause)
    return FineGray(
        cause=fit.cause,
        censoring_ties=fit.censoring.ties,
        censoring_group=fit.censoring.group,
        censoring_beyond=fit.censoring.beyond,
        censoring_weights=fit.censoring.weights,
    )


def _prediction(model: Cox | FineGray) -> dict[str, object]:
    """How to read new data, and the baseline: log H at time, for a linear predictor `center`."""
    schema = model._columns.schema
    if schema is None:
        raise InputError(
            "the model was not fitted on a Dataset, so it is not known how to read new data.",
            hint="use model.save(...), or fit on what riskset.read_dataset returns.",
        )
    arrays = model._fitted.baseline.to_arrays()
    center, limit = model._fitted.center, model._fitted.limit
    return {
        "schema": schema.to_dict(),
        # Linear predictors of the baseline are relative to these values; those not named are 0.
        "center": {model.covariates_[j]: float(center[j]) for j in np.flatnonzero(center)},
        # See `Fitted.limit`; empty where all coefficients are finite.
        "limit": {}
        if limit is None
        else {
            name: [float(finite), float(step)]
            for name, finite, step in zip(model.covariates_, *limit, strict=True)
        },
        "baseline": {
            "center": float(arrays["center"]),
            "strata": [json.loads(str(label)) for label in arrays["strata"]],
            "stratum_ptr": arrays["stratum_ptr"].tolist(),
            "time": arrays["time"].tolist(),
            "log_cumulative": [_number(value) for value in arrays["log_cumulative"].tolist()],
        },
    }


def _penalty(model: Cox | FineGray) -> dict[str, object]:
    penalty = model.best_penalty_ if isinstance(model, CV) else model.penalty
    if penalty is None:
        return {"l1": 0.0, "l2": 0.0, "unpenalized": []}
    factors = penalty.factors(model.covariates_)
    names = model.covariates_
    unpenalized = [
        column if isinstance(column, str) else names[column] for column in penalty.unpenalized
    ]
    other = {names[j]: float(factors[j]) for j in np.flatnonzero((factors != 1) & (factors != 0))}
    return {
        "l1": penalty.l1,
        "l2": penalty.l2,
        "unpenalized": unpenalized,
        **({"factor": other} if other else {}),
    }


def _cross_validation(model: CoxCV | FineGrayCV) -> dict[str, object]:
    """The curve, every replicate, and the choice."""
    found, parameters = model.cross_validation_, model.get_params(deep=False)
    curve = [
        {
            "l1": float(l1),
            "l2": float(l2),
            "mean": _number(float(mean)),
            "se": _number(float(se)),
            "n_nonzero": int(n_nonzero),
            "scores": [_number(score) for score in scores[:count].tolist()],
            "largest_kkt": float(kkt[:count].max()),
        }
        for l1, l2, mean, se, n_nonzero, count, scores, kkt in zip(
            found.l1,
            found.l2,
            found.mean,
            found.se,
            found.n_nonzero,
            found.n_replicates,
            found.scores,
            found.kkt,
            strict=True,
        )
    ]
    return {
        "score": found.score_name,
        "rule": parameters["rule"],
        "folds": int(np.count_nonzero(found.repeats == 0)),
        "repeats": int(found.repeats.max()) + 1,
        "seed": parameters["seed"],
        "censoring": parameters["censoring"],
        "n_failed": found.n_failed,
        "n_infinite": int(np.count_nonzero(found.statuses == "infinite_estimate")),
        "n_left_out": int(found.n_left_out.sum()),
        "repeat_of_replicate": found.repeats.tolist(),
        "fold_of_replicate": found.folds.tolist(),
        "curve": curve,
        "best": {"l1": float(found.l1[found.chosen]), "l2": float(found.l2[found.chosen])},
    }


def _interval(interval: Interval) -> dict[str, object]:
    bounds = {
        name: {"lower": _number(lower), "upper": _number(upper)}
        for name, (lower, upper) in interval.bounds.items()
    }
    about = {"method": interval.method, "level": interval.level, **interval.details}
    return {**about, "bounds": bounds}


def _named(names: Sequence[str], values: Features) -> dict[str, object]:
    numbers = [_number(value) for value in cast("list[float]", values.tolist())]
    return dict(zip(names, numbers, strict=True))


def _number(value: float) -> float | str | None:
    """A number for JSON, which has neither infinities nor NaN."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)
