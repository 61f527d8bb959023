"""Fitted models from files."""

import os

from riskset.estimators._base import HazardModel
from riskset.estimators._saved import load_into
from riskset.estimators.cox import Cox
from riskset.estimators.crossval import CoxCV, FineGrayCV
from riskset.estimators.finegray import FineGray

__all__ = ["load"]


def load(path: str | os.PathLike[str]) -> HazardModel:
    """Read a model written by the method `save`.

    Returns
    -------
    Cox, FineGray, CoxCV or FineGrayCV

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
    kinds = (Cox, FineGray, CoxCV, FineGrayCV)
    return load_into(path, {kind.__name__: kind for kind in kinds})
