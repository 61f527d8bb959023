"""Read and write fitted models: `load`, and the files of the command line."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from riskset._errors import InputError
from riskset._types import Rows
from riskset.data.schema import Schema
from riskset.data.writers import write_json
from riskset.estimators._inference import HazardModel
from riskset.estimators._interval import ConfidenceInterval
from riskset.estimators.cox import Cox
from riskset.estimators.crossval import CoxCV, CrossValidated, FineGrayCV
from riskset.estimators.finegray import FineGray
from riskset.estimators.fit_file import blaming_file, fit_document, read_fit_file
from riskset.estimators.frailty import CoxFrailty

__all__ = ["load", "read_fit", "to_dict", "write_fit"]

CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Cox, FineGray, CoxCV, FineGrayCV, CoxFrailty)
}

ANY_MACHINE = {"device": "auto", "n_threads": None}
"""Parameters that a ``fit.json`` alone does not keep: another machine may read it."""


def load(path: str | os.PathLike[str]) -> HazardModel | CoxFrailty:
    """Read a fitted model from a file.

    Parameters
    ----------
    path : path
        A file from the method `save` or from ``riskset fit --out``, or a folder with a
        ``fit.json``.

    Returns
    -------
    Cox, FineGray, CoxCV, FineGrayCV or CoxFrailty
        For a ``fit.json`` with a cross-validation, this is the `Cox` or `FineGray` model of the
        chosen penalty, because only `save` stores the replicates. A ``fit.json`` contains standard
        errors but no covariances and tests.

    Raises
    ------
    FileNotFoundError
    InputError
        If the file is not a saved fit, is damaged, or was written by a later version.

    Examples
    --------
    >>> import tempfile
    >>> import riskset as rs
    >>> model = rs.Cox(rs.L2(10.0)).fit(rs.load_rhc())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/fit.riskset")
    ...     again = rs.load(f"{folder}/fit.riskset")
    >>> bool((again.coef_ == model.coef_).all())
    True
    """
    fit = read_fit_file(path)
    with blaming_file(path):
        name = fit.estimator.name
        kind = CLASSES[name]
        # From a document alone a cross-validated fit comes back as the model that it chose.
        tuned = CLASSES.get(f"{name}CV", kind)
        dropped = set(tuned._get_param_names()) - set(kind._get_param_names())
        parameters = {k: v for k, v in fit.estimator.parameters.items() if k not in dropped}
        penalty: object = fit.penalty
        if issubclass(kind, CrossValidated):  # files say nothing of the missing strength
            penalty = "l1" if fit.penalty is None else fit.penalty.without_strength()
        own = {} if kind is CoxFrailty else {"penalty": penalty}
        model: HazardModel | CoxFrailty = kind(**own, **parameters)
        model._restore(fit)
        return model


def to_dict(
    model: HazardModel | CoxFrailty,
    *,
    interval: ConfidenceInterval | None = None,
    interval_times: Rows | None = None,
    seconds: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """The content of the ``fit.json`` of a model that was fitted on a `Dataset`."""
    if model._columns.schema is None:
        raise InputError(
            "the model was not fitted on a Dataset, so it is not known how to read new data.",
            hint="use model.save(...), or fit on what riskset.read_dataset returns.",
        )
    fit = model._saved(with_variances=False, interval_times=interval_times)
    errors = {} if model._is_penalized else {"standard_error": model.standard_error_}
    if isinstance(model, CoxFrailty):  # what it keeps has its standard errors
        pass
    elif model.is_robust_ or (interval is not None and interval.method == "robust"):
        errors["robust_standard_error"] = model.robust_standard_error_
    parameters = fit.estimator.parameters | ANY_MACHINE
    estimator = fit.estimator.model_copy(update={"parameters": parameters})
    anywhere = replace(fit, arrays=fit.arrays | errors, estimator=estimator)
    return fit_document(anywhere, interval=interval, seconds=seconds)


def write_fit(
    path: Path,
    model: HazardModel | CoxFrailty,
    *,
    interval: ConfidenceInterval | None = None,
    interval_times: Rows | None = None,
    seconds: Mapping[str, float] | None = None,
) -> None:
    """Write ``fit.json`` alone, whole or not at all; see `to_dict`."""
    content = to_dict(model, interval=interval, interval_times=interval_times, seconds=seconds)
    write_json(path, content)


def read_fit(path: Path) -> tuple[HazardModel | CoxFrailty, Schema]:
    """A model that predicts here, and how to read new data for it."""
    try:
        model = load(path)
    except FileNotFoundError:
        raise InputError(
            f"there is no file {str(path)!r}.",
            hint="pass what `riskset fit --out` or model.save(...) wrote.",
        ) from None
    schema = model._columns.schema
    if schema is None:
        raise InputError(
            f"{path.name} holds a model that was not fitted on a Dataset, so it is not known how "
            "to read new data.",
            hint="use riskset.load(...) in Python, or fit on what riskset.read_dataset returns.",
        )
    model.set_params(**ANY_MACHINE)
    group = schema.roles.censoring_group
    if group is not None and getattr(model, "censoring_group", group) is None:
        model.set_params(censoring_group=group)  # the fit took it from the roles of its Dataset
    return model, schema
