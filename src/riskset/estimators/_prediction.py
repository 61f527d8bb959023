"""Predictions of a fitted model for new rows."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Rows
from riskset.data.checks import Places, as_array, as_time_numbers
from riskset.data.dataset import Dataset
from riskset.data.design import Design
from riskset.data.frame import data_frame
from riskset.estimators._fitted import Fitted
from riskset.estimators._input import FittedColumns, as_offset, as_surv, lift, read_covariates
from riskset.estimators._parameters import PenaltyParameters
from riskset.metrics import concordance, concordance_of

__all__ = ["HazardPredictions", "as_times", "checked_times"]

STEP_ROUNDING = 1e-13
"""A sum along a step to infinity is 0 if it is less of what it is summed from."""


class HazardPredictions(PenaltyParameters):
    """What a fitted model says about new rows; see `Cox` and `FineGray`."""

    competing_never_fail: ClassVar[bool] = False
    """Whether `score` takes a competing event for no event ever, and not for censoring."""

    coef_: Features
    _columns: FittedColumns
    _fitted: Fitted
    _library: str | None

    cause: int | str | None
    reference: Mapping[str, object] | None
    covariate_labels: object
    device: str
    n_threads: int | None

    def predict(self, X: object, *, offset: object = None) -> Rows:
        """Return the linear predictor: the log hazard relative to a row with all covariates 0.

        Parameters
        ----------
        X : as for `fit` (k, p)
        offset : (k,) numbers, optional
            Added.

        Returns
        -------
        (k,) float64
            Infinite if infinite coefficients do not cancel for the covariates of a row.
        """
        design, _, offsets, _ = self._read_new(X, None, offset)
        limit, runtime = self._fitted.limit, Runtime.select(self.device, self.n_threads)
        if limit is None:
            return design.dot(self.coef_, runtime=runtime) + offsets
        finite, step = limit
        far = design.dot(step, runtime=runtime)
        near = design.dot(finite, runtime=runtime) + offsets
        summed = design.magnitude(step * design.scale, runtime=runtime)
        summed += float(np.abs(design.center * step).sum())
        return np.where(np.abs(far) > STEP_ROUNDING * summed, np.copysign(np.inf, far), near)

    def predict_survival_function(
        self, X: object, times: object = None, *, strata: object = None, offset: object = None
    ) -> AnyArray:
        """Predict the probability of no event by given times.

        For the Fine-Gray model, this is the probability of no event of its cause, 1 minus the
        cumulative incidence. It is not the probability of being alive.

        Parameters
        ----------
        X : as for `fit` (k, p)
        times : number or (m,) numbers, optional
            In the time unit of the fit, in any order. Default: functions of time.
        strata : (k,) labels, or a sequence of label arrays as at the fit
            Required if the model was fitted with strata.
        offset : (k,) numbers, optional

        Returns
        -------
        (k, m) float64
            From the Breslow baseline hazard (for Efron ties, from Efron's): 1 before the first
            event time (also at negative times), constant after the last. Without times, (k,)
            `riskset.StepFunction`, as scikit-survival's scorers expect them.

        Raises
        ------
        InputError
            If a stratum was not in the fit.
        """
        return self._over_time("survival", X, times, strata, offset)

    def predict_cumulative_hazard_function(
        self, X: object, times: object = None, *, strata: object = None, offset: object = None
    ) -> AnyArray:
        """Predict the cumulative hazard at given times; see `predict_survival_function`.

        For the Fine-Gray model, this is the cumulative subdistribution hazard.
        """
        return self._over_time("cumulative_hazard", X, times, strata, offset)

    def _over_time(
        self,
        method: Literal["survival", "cumulative_hazard", "incidence"],
        X: object,
        times: object,
        strata: object,
        offset: object,
    ) -> AnyArray:
        """What a method of the baseline gives at times (k, m), or as functions of time (k,)."""
        eta, strata, places = self._read_centred(X, strata, offset)
        baseline = self._fitted.baseline
        if times is None:
            return baseline.functions(method, eta, strata, places)
        return np.asarray(getattr(baseline, method)(eta, as_times(times), strata, places))

    def baseline_hazard(self) -> Any:
        """Return the baseline hazard at each event time, for all covariates 0.

        Returns
        -------
        data frame
            Columns ``stratum`` (of a fit with strata), ``time``, ``hazard`` (the jump at that
            time), ``cumulative_hazard``; for the Fine-Gray model, of the subdistribution. If
            covariates are far from 0, the numbers can be very large or small.
        """
        check_is_fitted(self, "coef_")
        coef, baseline = self._fitted.predicting(self.coef_), self._fitted.baseline
        at_zero = -float(self._fitted.center @ coef)
        times, log_jump, log_cumulative = baseline.steps(at_zero)
        columns: dict[str, AnyArray] = {}
        if baseline.n_strata > 1:
            columns["stratum"] = np.repeat(baseline.strata, np.diff(baseline.stratum_ptr))
        with np.errstate(over="ignore"):
            columns |= {
                "time": times,
                "hazard": np.exp(log_jump),
                "cumulative_hazard": np.exp(log_cumulative),
            }
        return data_frame(columns, self._library)

    def score(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
    ) -> float:
        """Compute the concordance of the linear predictor.

        It is the proportion of comparable pairs in which the row with the higher predictor fails
        first. In the Fine-Gray model, a row with a competing event never fails and is compared with
        every event of the cause of interest (Wolbers et al. 2009,
        doi:10.1097/EDE.0b013e3181a39056).

        Parameters
        ----------
        X, y, sample_weight, strata, offset
            As for `fit`. Pairs are compared within strata. Pairs with tied predictors count half.

        Returns
        -------
        float in [0, 1]
            NaN, with a warning, if no pair is comparable. See `riskset.metrics.concordance`.
        """
        check_is_fitted(self, "coef_")
        X = lift(X, self._columns, outcome=y is None)
        if isinstance(X, Dataset) and y is None:
            risk, *_ = self._read_centred(X, None, None)
            outcome = X.outcome(self.cause)
            stay = self.competing_never_fail
            return concordance_of(outcome, risk, competing_stay=stay).concordance
        surv = as_surv(y, self.cause, competing_never_fail=self.competing_never_fail)
        risk, strata, _ = self._read_centred(X, strata, offset)
        if risk.size != surv.size:
            raise InputError(
                f"X has {risk.size:,} rows, but `y` has {surv.size:,}.",
                hint="check that both come from the same table.",
            )
        return concordance(surv, risk, sample_weight, strata).concordance

    def _read_new(
        self, X: object, strata: object, offset: object
    ) -> tuple[Design, object, Rows, Places]:
        """Covariates, strata and offsets of new rows, and what messages call them.

        A `Dataset` brings strata and offsets with it.
        """
        check_is_fitted(self, "coef_")
        X = lift(X, self._columns)
        design, _ = read_covariates(self, X, self._columns)
        places = Places()
        if isinstance(X, Dataset):
            roles, places = X.outcome_columns, X.places
            offset = roles.offset if offset is None else offset
            if strata is None and roles.strata:
                strata = roles.strata if len(roles.strata) > 1 else roles.strata[0]
        return design, strata, as_offset(offset, design.n_rows), places

    def _read_centred(
        self, X: object, strata: object, offset: object
    ) -> tuple[Rows, object, Places]:
        """Linear predictors relative to the training means, which keep their digits."""
        design, strata, offsets, places = self._read_new(X, strata, offset)
        return self._centred(design, offsets), strata, places

    def _centred(self, design: Design, offsets: Rows) -> Rows:
        """Linear predictors relative to the training means, which keep their digits."""
        coef = self._fitted.predicting(self.coef_)
        runtime = Runtime.select(self.device, self.n_threads)
        eta = design.product(coef * design.scale, runtime=runtime)
        return np.asarray(eta + (float((design.center - self._fitted.center) @ coef) + offsets))


def as_times(times: object) -> AnyArray:
    """Times of a prediction as an array; one number is an array of one."""
    return np.atleast_1d(as_array(times, "`times`", Places()))


def checked_times(times: object, name: str = "times") -> Rows:
    """Times of predictions (m,), the argument `name`."""
    hint = "leave missing times out."
    return as_time_numbers(as_times(times), name, None, Places(), missing_hint=hint)
