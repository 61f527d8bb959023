"""Logistic regression on the solver and with the certificate of `Cox`, for outcome models."""

import numpy as np

from riskset._runtime import Runtime
from riskset.estimators._input import ModelInput
from riskset.estimators.cox import Cox
from riskset.estimators.crossval import CoxCV
from riskset.model.logistic import LogisticLoss
from riskset.model.loss import Loss

__all__ = ["Logistic", "LogisticCV"]


class Logistic(Cox):
    """Logistic regression of the events of an outcome, whose times are all equal.

    The intercept is profiled (`riskset.model.logistic`), so that coefficients, variances,
    intervals and resamples are those of a model with an intercept.
    """

    def _loss(self, data: ModelInput, runtime: Runtime) -> Loss:  # type: ignore[override]
        assert np.unique(data.outcome.time).size <= 1
        return LogisticLoss(data.outcome, runtime)


class LogisticCV(CoxCV, Logistic):
    """Logistic regression with a penalty chosen by cross-validation."""
