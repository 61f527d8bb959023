"""Fit several models of the same data, optionally in other processes."""

import functools
import warnings
from collections.abc import Iterable

from sklearn.base import clone

from riskset._errors import InputError
from riskset._runtime import available_threads
from riskset.engine import check_engine, workers
from riskset.estimators._inference import HazardModel

__all__ = ["fit_each"]

IN_WORKERS = {"n_threads": 1, "progress": False, "engine": None}
"""Parameters that have these values where a model is fitted in a worker; no answer depends on
them."""


def fit_each(
    models: Iterable[HazardModel],
    X: object,
    y: object = None,
    *,
    engine: str | None = None,
    sample_weight: object = None,
    strata: object = None,
    offset: object = None,
    cluster: object = None,
) -> list[HazardModel]:
    """Fit several models to the same data.

    Parameters
    ----------
    models : iterable of Cox, FineGray, CoxCV or FineGrayCV
        The models. They are not changed.
    X, y, sample_weight, strata, offset, cluster
        As for `Cox.fit`. A `Design` or `Dataset` is sent to the workers once, as a file that they
        map.
    engine : {"joblib", "dask", "ray"} or None
        Fit each model in a separate process; see `CoxCV`. None: fit them one after the other in
        this process.

    Returns
    -------
    list of models
        The fitted models, in order, with bit-identical coefficients for any engine. Like a pickled
        model, a model from another process has its results but not the training data, so residuals
        or a bootstrap need a fit in this process.

    Warns
    -----
    ConvergenceWarning, RisksetWarning
        As for the fits.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.load_rhc()
    >>> models = rs.fit_each([rs.Cox(rs.L1(strength)) for strength in (40.0, 400.0)], data)
    >>> [int((model.coef_ != 0).sum()) for model in models]
    [33, 12]
    """
    if isinstance(models, HazardModel):
        raise InputError(
            f"`models` must be a list of models, but it is one {type(models).__name__} model.",
            hint="pass [model], or call model.fit(X, y).",
        )
    models = list(models)
    for k, model in enumerate(models):
        if not isinstance(model, HazardModel):
            raise InputError(
                f"`models` must hold Cox or Fine-Gray models, but number {k} is a "
                f"{type(model).__name__}.",
                hint="for example [riskset.Cox(riskset.L1(s)) for s in (1.0, 10.0)].",
            )
    check_engine(engine)
    outcome = {
        "sample_weight": sample_weight,
        "strata": strata,
        "offset": offset,
        "cluster": cluster,
    }
    chosen: list[HazardModel] = [clone(model) for model in models]
    with workers(engine, available_threads()) as processes:
        if processes is None:
            return [model.fit(X, y, **outcome) for model in chosen]
        fitted = list(processes.map(functools.partial(_fit, X=X, y=y, outcome=outcome), chosen))
    for model in fitted:
        model._warn()
    return fitted


def _fit(model: HazardModel, X: object, y: object, outcome: dict[str, object]) -> HazardModel:
    """Fit in a worker; warnings are given where the model was asked for."""
    own = {name: getattr(model, name) for name in IN_WORKERS if hasattr(model, name)}
    model.set_params(**{name: IN_WORKERS[name] for name in own})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, **outcome)
    fitted: HazardModel = model.set_params(**own)
    return fitted
