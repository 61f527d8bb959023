"""One fitted model, one file: the document ``fit.json``, alone or in an archive with arrays.

The document holds the answer, how it was certified, and what predictions for new data need: how X
was read and the baseline hazard. It never holds data of single rows, except the event times of the
baseline. Every number is written with all its digits. `riskset fit` writes the document alone.
``model.save`` writes a zip archive of the document and one ``.npy`` file for each array that is
too large for it: variances, tests, and the replicates of a cross-validation. Both are readable by
anything that reads JSON and NumPy's format, and can never run code.
"""

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._messages import Note
from riskset._types import AnyArray, Features, is_count
from riskset._version import __version__
from riskset.data.covariate_labels import CovariateLabels
from riskset.data.documents import (
    DAMAGED_ARCHIVE,
    SEAL,
    check_form,
    content_checksum,
    is_sealed,
    parse_json,
)
from riskset.data.frame import FrameEncoder
from riskset.data.schema import Schema
from riskset.data.writers import check_target, replacing
from riskset.estimators._frailties import FRAILTY
from riskset.estimators._input import FittedColumns
from riskset.estimators._interval import ConfidenceInterval
from riskset.estimators.fit_form import (
    ArchiveForm,
    EstimatorForm,
    FitForm,
    PenaltyForm,
    PredictionForm,
)
from riskset.infer.crossval.result import CrossValidation
from riskset.model.penalty import L1, L2, ElasticNet, Penalty

__all__ = [
    "FACTS",
    "SavedFit",
    "blaming_file",
    "fit_document",
    "penalty_to_dict",
    "read_fit_file",
    "write_archive",
]

FORMAT = 2
"""Format 1 was the document of `riskset fit` alone; `model.save` had documents of its own."""
ARCHIVE_FORMAT = "riskset-fit"
"""The format that documents of archives had then, in versions up to `ARCHIVE_VERSION`."""
ARCHIVE_VERSION = 2
DOCUMENT = "fit.json"
SUFFIX = ".npy"
BASELINE, SEARCH, INTERVAL = "baseline_", "cv_", "interval_"
"""Prefixes of the arrays of a baseline, a cross-validation and intervals of predictions."""
INTERVAL_ARRAYS = ("times", "end", "mean", "square", "cross")
ERRORS = ("standard_error", "robust_standard_error")
"""Arrays of one number for each covariate, which the document holds."""
FACTS = {
    "status": "status_",
    "kkt": "kkt_",
    "log_likelihood": "log_likelihood_",
    "null_log_likelihood": "null_log_likelihood_",
    "objective": "objective_",
    "iterations": "n_iter_",
    "n_rows": "n_rows_",
    "n_events": "n_events_",
    "n_strata": "n_strata_",
    "n_dropped": "n_dropped_",
    "seconds": "seconds_",
}
"""Keys of the document, and the attributes of an estimator that they stand for."""
AGAIN = "write it again with `riskset fit --out` or model.save(...), or copy the file again."


@dataclass(frozen=True, kw_only=True)
class SavedFit:
    """A fitted estimator without its data.

    `facts` are attributes by their keys in `FACTS`; a file may lack some. `cause` is the event
    studied, also if it was left to the data. `arrays` are those of `Fitted.to_arrays`.
    """

    estimator: EstimatorForm
    cause: int | str | None
    facts: dict[str, Any]
    coef: Features
    names: tuple[str, ...]
    schema: Schema | None
    notes: tuple[Note, ...]
    arrays: dict[str, AnyArray]
    cross_validation: CrossValidation | None = None

    @property
    def penalty(self) -> Penalty | None:
        """The penalty that the estimator was made with."""
        return penalty_from_dict(self.estimator.penalty)

    @property
    def columns(self) -> FittedColumns:
        """What X looked like at the fit."""
        encoder, factors = self.estimator.encoder, self.estimator.factors
        return FittedColumns(
            self.names,
            None if encoder is None else FrameEncoder.from_dict(encoder.model_dump()),
            self.schema,
            tuple(map(tuple, factors)),
            CovariateLabels.read(self.estimator.parameters.get("covariate_labels")),
        )


# ------------------------------------------------------------------------------------- writing


def write_archive(path: str | os.PathLike[str], fit: SavedFit) -> None:
    """Write the document and the arrays that it does not hold, whole or not at all."""
    path = Path(path)
    check_target(path)
    arrays = {name: array for name, array in fit.arrays.items() if not _is_in_document(name)}
    if fit.cross_validation is not None:
        scores = fit.cross_validation.to_arrays()
        arrays |= {f"{SEARCH}{name}": array for name, array in scores.items()}
    packed = {name: _packed(array) for name, array in arrays.items()}
    document = fit_document(fit, checksums=_checksums(packed))
    with replacing(path) as (temporary,), temporary.open("wb") as stream:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(DOCUMENT, json.dumps(document, indent=1, allow_nan=False))
            for name, content in packed.items():
                archive.writestr(name + SUFFIX, content)
        stream.flush()
        os.fsync(stream.fileno())


def fit_document(
    fit: SavedFit,
    *,
    interval: ConfidenceInterval | None = None,
    seconds: Mapping[str, float] | None = None,
    checksums: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The content of ``fit.json``: a fitted model as JSON can hold it.

    Infinite numbers are the strings "inf" and "-inf"; numbers that are not defined are None.
    `seconds` are reported in addition to those of the fit. `checksums` are the SHA-256 of the
    arrays that are stored with the document.
    """
    names, parameters = fit.names, fit.estimator.parameters
    facts = {key: _plain_number(fit.facts[key]) for key in FACTS if key in fit.facts}
    document: dict[str, Any] = {
        "riskset": __version__,
        "format": FORMAT,
        **_kind(fit),
        "n_features": len(names),
        "penalty": _penalty(fit),
        "coef": _named(names, fit.coef),
        **({"fixed": fixed} if (fixed := parameters.get("fixed")) else {}),
        "tol": parameters["tol"],
        **facts,
    }
    document |= {key: _named(names, fit.arrays[key]) for key in ERRORS if key in fit.arrays}
    if interval is not None:
        document["interval"] = _interval(interval)
    if fit.cross_validation is not None:
        document["cross_validation"] = _cross_validation(fit.cross_validation, parameters)
    document["warnings"] = [
        {"code": note.code, "columns": list(note.columns), "message": note.message}
        for note in fit.notes
    ]
    document["seconds"] = dict(seconds or {}) | facts.get("seconds", {})
    document["estimator"] = _estimator(fit)
    document["prediction"] = _prediction(fit)
    frailty = {n.removeprefix(FRAILTY): a for n, a in fit.arrays.items() if n.startswith(FRAILTY)}
    if frailty:
        document["frailty"] = {name: array.tolist() for name, array in frailty.items()}
    if checksums is None and f"{INTERVAL}times" in fit.arrays:
        document["prediction"]["intervals"] = _prediction_intervals(fit.arrays)
    if checksums is not None:
        document["arrays"] = dict(checksums)
    return {**document, SEAL: _seal(document, FORMAT)}


def _kind(fit: SavedFit) -> dict[str, object]:
    """Which model it is, and what is special about it."""
    parameters, schema = fit.estimator.parameters, fit.schema
    if "ties" in parameters:
        firth = parameters.get("firth", False)
        return {"model": "cox", "ties": parameters["ties"], "firth": firth, "cause": fit.cause}
    named = parameters["censoring_group"]
    censoring = {
        "ties": parameters["censoring_ties"],
        "group": named
        if isinstance(named, str) or schema is None
        else schema.roles.censoring_group,
        "beyond": parameters["censoring_beyond"],
        "weights": parameters["censoring_weights"],
    }
    return {"model": "finegray", "ties": "breslow", "cause": fit.cause, "censoring": censoring}


def _estimator(fit: SavedFit) -> dict[str, object]:
    """The estimator, with what its cross-validation keeps in addition to arrays."""
    document = fit.estimator.model_dump(by_alias=True, warnings=False)
    search = fit.cross_validation
    if search is not None:
        document["search"] = {
            "penalties": [penalty_to_dict(penalty) for penalty in search.penalties],
            "score": search.score_name,
            "best": search.best,
            "chosen": search.chosen,
        }
    return document


def _prediction(fit: SavedFit) -> dict[str, object]:
    """How to read new data, and the baseline: log H at time, for a linear predictor `center`."""
    names, schema, arrays = fit.names, fit.schema, fit.arrays
    center = arrays["center"]
    limit, baseline = {}, None
    if "step" in arrays:
        limit = {
            name: [float(finite), float(step)]
            for name, finite, step in zip(names, arrays["finite"], arrays["step"], strict=True)
        }
    if "stages" not in arrays:
        baseline = {
            "center": float(arrays["baseline_center"]),
            "strata": [json.loads(str(label)) for label in arrays["baseline_strata"]],
            "stratum_ptr": arrays["baseline_stratum_ptr"].tolist(),
            "time": arrays["baseline_time"].tolist(),
            "log_cumulative": list(map(_number, arrays["baseline_log_cumulative"].tolist())),
        }
    return {
        "schema": None if schema is None else schema.to_dict(),
        # Linear predictors of the baseline are relative to these values; those not named are 0.
        "center": {names[j]: float(center[j]) for j in np.flatnonzero(center)},
        # See `Fitted.limit`; empty where all coefficients are finite.
        "limit": limit,
        "baseline": baseline,
        **({"stages": int(arrays["stages"])} if "stages" in arrays else {}),
    }


def _prediction_intervals(arrays: Mapping[str, AnyArray]) -> dict[str, object]:
    """Arrays that an archive stores with the document, for a document alone."""
    kept = {name: arrays[f"{INTERVAL}{name}"] for name in INTERVAL_ARRAYS}
    kept |= {name: arrays[name] for name in ("variance", "robust_variance")}
    return {name: _nested(array.tolist()) for name, array in kept.items()}


def _nested(values: Any) -> Any:
    """Numbers for JSON, in lists of lists."""
    return [_nested(part) for part in values] if isinstance(values, list) else _number(values)


def _penalty(fit: SavedFit) -> dict[str, object]:
    search, names = fit.cross_validation, fit.names
    penalty = fit.penalty if search is None else search.penalties[search.chosen]
    if penalty is None:
        return {"l1": 0.0, "l2": 0.0, "unpenalized": []}
    factors = penalty.factors(names)
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


def _cross_validation(found: CrossValidation, parameters: Mapping[str, Any]) -> dict[str, object]:
    """The curve, every replicate, and the choice."""
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


def _interval(interval: ConfidenceInterval) -> dict[str, object]:
    bounds = {
        name: {"lower": _number(lower), "upper": _number(upper)}
        for name, (lower, upper) in interval.bounds.items()
    }
    about = {"method": interval.method, "level": interval.level, **interval.details}
    return {**about, "bounds": bounds}


def _named(names: Iterable[str], values: Features) -> dict[str, object]:
    return dict(zip(names, map(_number, values.tolist()), strict=True))


def _plain_number(value: object) -> Any:
    return _number(value) if isinstance(value, float) else value


def _number(value: float) -> float | str | None:
    """A number for JSON, which has neither infinities nor NaN."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


def _is_in_document(array: str) -> bool:
    named = (*ERRORS, "center", "finite", "step", "stages")
    return array in named or array.startswith((BASELINE, FRAILTY))


def _seal(document: Mapping[str, Any], version: int) -> str:
    keys = FitForm.sealed_keys(version)
    return content_checksum({key: document[key] for key in keys if key in document})


def _checksums(packed: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in packed.items()}


def _packed(array: AnyArray) -> bytes:
    packed = io.BytesIO()
    np.save(packed, array, allow_pickle=False)
    return packed.getvalue()


# ------------------------------------------------------------------------------------- reading


def read_fit_file(path: str | os.PathLike[str]) -> SavedFit:
    """Read what `model.save` or ``riskset fit`` wrote, now or in an earlier version.

    The path may be that of a folder with a ``fit.json``. Raises InputError if the file is not one
    of ours, is damaged or was changed, or comes from a later version.
    """
    path = Path(path)
    if path.is_dir():
        path = path / DOCUMENT
        if not path.exists():
            raise InputError(f"{str(path.parent)!r} is a folder.", hint="name a file in it.")
    content = path.read_bytes()
    packed: dict[str, bytes] = {}
    is_archive = content.startswith(b"PK") or zipfile.is_zipfile(io.BytesIO(content))
    try:
        if is_archive:
            content, packed = _unzipped(content, path)
        arrays = {
            name: np.load(io.BytesIO(array), allow_pickle=False) for name, array in packed.items()
        }
    except InputError:
        raise
    except DAMAGED_ARCHIVE as error:
        raise _not_ours(path, f"it is damaged or cut short ({error})") from None
    try:
        document = parse_json(content)
    except ValueError as error:
        raise _not_ours(path, f"it is not valid JSON, or damaged ({error})") from None
    if not isinstance(document, dict) or "riskset" not in document:
        raise _not_ours(path, "it does not have the key 'riskset'")
    if is_archive and document.get("format") == ARCHIVE_FORMAT:
        _check_version(path, document, document.get("format_version"), ARCHIVE_VERSION)
        return _from_archive_form(path, document, packed, arrays)
    version = document.get("format", 1)
    if isinstance(version, int):
        _check_version(path, document, version, FORMAT)
    form = check_form(FitForm, document, file=path.name, hint=AGAIN)
    if form.sha256 != _seal(document, form.format) and (is_archive or form.sha256 is not None):
        raise _changed(path, "content")
    if is_archive:
        _check_arrays(path, form.arrays, packed)
    return _from_form(path, form, document["prediction"]["schema"], arrays)


def _unzipped(content: bytes, path: Path) -> tuple[bytes, dict[str, bytes]]:
    """The document and the arrays of an archive, packed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if DOCUMENT not in archive.namelist():
            raise _not_ours(path, f"it is a zip archive without {DOCUMENT}")
        arrays = {
            name.removesuffix(SUFFIX): archive.read(name)
            for name in archive.namelist()
            if name.endswith(SUFFIX)
        }
        return archive.read(DOCUMENT), arrays


def _check_version(
    path: Path, document: Mapping[str, object], version: object, largest: int
) -> None:
    if not is_count(version):
        raise _not_ours(path, f"its format version is {version!r}")
    if version > largest:
        raise InputError(
            f"{path.name} was written by riskset {document['riskset']} in format {version}, but "
            f"riskset {__version__} reads formats up to {largest}.",
            hint="upgrade riskset.",
        )


def _check_arrays(path: Path, known: Mapping[str, str], packed: Mapping[str, bytes]) -> None:
    differ = sorted({name for name, _ in _checksums(packed).items() ^ known.items()})
    if differ:
        raise _changed(path, f"array {differ[0]!r}")


def _changed(path: Path, what: str) -> InputError:
    return InputError(
        f"{path.name} is damaged or has changed since it was written: its {what} does not agree "
        "with its checksum.",
        hint="copy the file again, or fit again. To use a fit.json that was edited on purpose, "
        f"delete its key {SEAL!r}.",
    )


def _not_ours(path: Path, why: str) -> InputError:
    return InputError(
        f"{path.name} is not a fit saved by riskset: {why}.",
        hint="pass a file written by model.save(...) or by `riskset fit --out`.",
    )


def _from_form(
    path: Path, form: FitForm, schema: dict[str, Any] | None, arrays: dict[str, AnyArray]
) -> SavedFit:
    names, kept = tuple(form.coef), form.prediction
    estimator = _of_format_1(form) if form.estimator is None else form.estimator
    search = estimator.search
    if search is not None and not any(array.startswith(SEARCH) for array in arrays):
        # A document alone does not hold every replicate: the fit is that of the chosen penalty.
        name, penalty = estimator.name.removesuffix("CV"), search.penalties[search.chosen]
        chosen = {"name": name, "penalty": penalty, "search": None}
        estimator = estimator.model_copy(update=chosen)
    for key in ERRORS:
        errors = getattr(form, key)
        if errors is not None:
            arrays[key] = np.array(list(errors.values()), dtype=np.float64)
    if form.frailty is not None:
        arrays |= {f"{FRAILTY}{name}": np.array(values) for name, values in form.frailty}
    facts = {key: getattr(form, key) for key in FACTS if key in form.model_fields_set}
    with blaming_file(path):
        return SavedFit(
            estimator=estimator,
            cause=form.cause,
            facts={key: np.nan if value is None else value for key, value in facts.items()},
            coef=np.array(list(form.coef.values())),
            names=names,
            schema=None if schema is None else Schema.from_dict(schema),
            notes=tuple(Note(n.code, tuple(n.columns), n.message) for n in form.warnings),
            cross_validation=_take_search(estimator, arrays),
            arrays=arrays | _prediction_arrays(names, kept),
        )


def _prediction_arrays(names: tuple[str, ...], kept: PredictionForm) -> dict[str, AnyArray]:
    """As `Fitted.to_arrays` has them."""
    arrays: dict[str, AnyArray] = {
        "center": np.array([kept.center.get(name, 0.0) for name in names]),
    }
    if kept.limit:
        arrays["finite"], arrays["step"] = np.array(list(kept.limit.values())).T
    if kept.intervals is not None:
        found = {name: np.array(value, dtype=np.float64) for name, value in kept.intervals}
        arrays |= {
            f"{INTERVAL}{name}" if name in INTERVAL_ARRAYS else name: array
            for name, array in found.items()
        }
    if kept.baseline is None:
        return arrays | {"stages": np.array(kept.stages)}
    baseline = kept.baseline
    return arrays | {
        "baseline_strata": np.array([json.dumps(label) for label in baseline.strata]),
        "baseline_stratum_ptr": np.array(baseline.stratum_ptr, dtype=np.int64),
        "baseline_time": np.array(baseline.time, dtype=np.float64),
        "baseline_log_cumulative": np.array(baseline.log_cumulative, dtype=np.float64),
        "baseline_center": np.array(baseline.center),
    }


def _of_format_1(form: FitForm) -> EstimatorForm:
    """What a document does not say of its estimator, from what it says of its model."""
    parameters: dict[str, Any] = {"cause": form.cause}
    if form.censoring is None:
        parameters |= {"ties": form.ties, "firth": form.firth}
    else:
        parameters |= {f"censoring_{key}": value for key, value in form.censoring}
    penalty = _with_names(form.penalty)
    return EstimatorForm.model_validate(
        {
            "class": "Cox" if form.model == "cox" else "FineGray",
            "parameters": parameters,
            "penalty": penalty_to_dict(penalty),
            "search": None,
            "n_features_in": len(form.coef),
            "feature_names_in": list(form.coef),
            "encoder": None,
            "factors": [],
            "library": None,
            "is_penalized": penalty is not None,
            # It holds these where the variance, or an interval that was asked for, is robust.
            "is_robust": penalty is None and form.robust_standard_error is not None,
        }
    )


def _with_names(known: PenaltyForm | None) -> Penalty | None:
    if known is None or not (known.l1 or known.l2):
        return None
    more: dict[str, Any] = {"unpenalized": known.unpenalized, "factor": known.factor or None}
    if not known.l2:
        return L1(known.l1, **more)
    return ElasticNet(l1=known.l1, l2=known.l2, **more) if known.l1 else L2(known.l2, **more)


def _from_archive_form(
    path: Path, document: dict[str, Any], packed: dict[str, bytes], arrays: dict[str, AnyArray]
) -> SavedFit:
    """From an archive with a document of its own; that of version 1 had no checksums."""
    if (document["format_version"] > 1 or SEAL in document) and not is_sealed(document):
        raise _changed(path, DOCUMENT)
    if "arrays" in document:
        _check_arrays(path, document["arrays"], packed)
    form = check_form(ArchiveForm, document, file=path.name, hint="save the model again.")
    attributes, schema = form.attributes, document["schema"]
    with blaming_file(path):
        estimator = EstimatorForm.model_validate(
            {
                "class": form.model,
                "parameters": form.parameters,
                "penalty": form.penalty,
                "search": form.cross_validation,
                "n_features_in": attributes["n_features_in_"],
                "feature_names_in": form.feature_names_in_,
                "encoder": form.encoder,
                "factors": form.factors,
                "library": attributes["_library"],
                "is_penalized": attributes["_is_penalized"],
                "is_robust": attributes["_is_robust"],
            }
        )
        return SavedFit(
            estimator=estimator,
            cause=form.parameters["cause"],
            facts={key: attributes[name] for key, name in FACTS.items()},
            coef=arrays.pop("coef"),
            names=tuple(form.covariates),
            schema=None if schema is None else Schema.from_dict(schema),
            notes=tuple(Note(code, tuple(names), text) for code, names, text in document["notes"]),
            cross_validation=_take_search(estimator, arrays),
            arrays=arrays,
        )


def _take_search(estimator: EstimatorForm, arrays: dict[str, AnyArray]) -> CrossValidation | None:
    """Take the cross-validation out of the arrays."""
    names = [name for name in arrays if name.startswith(SEARCH)]
    taken: dict[str, Any] = {name.removeprefix(SEARCH): arrays.pop(name) for name in names}
    search = estimator.search
    if search is None:
        return None
    return CrossValidation(
        **taken,
        penalties=tuple(map(penalty_from_dict, search.penalties)),
        score_name=search.score,
        best=search.best,
        chosen=search.chosen,
        library=estimator.library,
    )


@contextmanager
def blaming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever is missing from a fit, or has a wrong type, is a fault of its file."""
    try:
        yield
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{os.path.basename(path)} is a riskset fit, but something in it is missing or "
            f"changed ({type(error).__name__}: {error}).",
            hint=AGAIN,
        ) from None


# ----------------------------------------------------------------------------------- penalties


def penalty_to_dict(penalty: Penalty | None) -> dict[str, object] | None:
    """The arguments of a penalty as JSON can hold them."""
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
    """The inverse of `penalty_to_dict`."""
    if state is None:
        return None
    pairs = state["factor_pairs"]
    common = {
        "unpenalized": state["unpenalized"],
        "factor": state["factor"] if pairs is None else dict(pairs),
        # Fits that do not have this key left first levels out.
        "drop_first": state.get("drop_first", True),
    }
    if state["type"] == "L1":
        return L1(state["l1"], **common)
    if state["type"] == "L2":
        return L2(state["l2"], **common)
    return ElasticNet(l1=state["l1"], l2=state["l2"], rescale=state["rescale"], **common)
