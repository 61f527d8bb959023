"""Standard errors and intervals of the predictions of a fitted model."""

from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError
from riskset._types import Index, Matrix, Rows
from riskset.curves.intervals import ProbabilityIntervalType
from riskset.data.checks import Places, as_array, as_numbers, as_time_numbers
from riskset.data.design import Design
from riskset.estimators._base import HazardModelBase
from riskset.estimators._prediction import checked_times
from riskset.estimators.predictions import (
    PredictedKind,
    Predictions,
    PredictionVariance,
    check_kind,
    check_variance,
    chosen_interval,
    limits,
    of_log_hazard,
)
from riskset.infer.functionals import functional_predictions
from riskset.infer.hazard_sensitivities import RestrictedMeanSlopes
from riskset.infer.predicted_hazard import PredictedRows, hazards_of_rows, predicted_hazards
from riskset.infer.wald import check_level

__all__ = ["CenteredCovariates", "PredictionIntervals", "given_times"]


QUANTILE_ROUNDING = 1e-12
"""A survival that a product or an exponential makes may miss 0.5 by its last digits."""


class PredictionIntervals(HazardModelBase):
    """What a fitted model says about new rows with standard errors; see `Cox` and `FineGray`."""

    default_kind: ClassVar[PredictedKind] = "survival"
    """What `predict_interval` predicts by default."""

    def predict_interval(
        self,
        X: object,
        times: object,
        kind: PredictedKind | None = None,
        *,
        level: float = 0.95,
        interval: ProbabilityIntervalType | None = None,
        variance: PredictionVariance = "auto",
        given: object = None,
        strata: object = None,
        offset: object = None,
    ) -> Predictions:
        r"""Predict survival, cumulative hazard or incidence with standard errors and limits.

        With the covariates x, their mean :math:`\bar x(u)` over the risk set at u, the covariance V
        of the coefficients and N(u) the weight of the events at u, the variance of the cumulative
        hazard :math:`H(t \mid x) = \int_0^t dH(u \mid x)` is

        .. math:: \int_0^t \frac{(dH(u \mid x))^2}{N(u)} + d' V d, \qquad
            d = \int_0^t (x - \bar x(u)) \, dH(u \mid x)

        (Breslow; by Efron's method, each of tied events has a step of its own), as in R's
        ``survfit``. The robust variance is the infinitesimal jackknife: the sum over rows, or
        clusters, of the square of what each adds to the estimate through the coefficients and
        through the hazard, in the Fine-Gray model also through the distribution of censoring. The
        standard error of the survival S is S times that of H.

        Parameters
        ----------
        X : as for `fit` (k, p)
        times : number or (m,) numbers
            In the time unit of the fit, in any order.
        kind : {"survival", "cumulative_hazard", "cumulative_incidence"}, optional
            Default: "survival"; of a Fine-Gray model, "cumulative_incidence". The incidence is 1
            minus the survival. If other causes compete, the risk by a Cox model of one cause is
            too large: use `CauseSpecificCox`.
        level : float
            Coverage of the pointwise intervals.
        interval : str, optional
            Scale on which the interval is symmetric. For probabilities, as in `kaplan_meier`:
            "log-log" (default), "log", "plain" and others. For cumulative hazards: "log" (default)
            or "plain".
        variance : {"auto", "model", "robust"}
            "model": from the inverse information; weights count equal rows. "robust": see above.
            "auto": "robust" if `is_robust_`, as in `summary`.
        given : number or (k,) numbers, optional
            Condition on no event by this time s: the survival is :math:`S(t) / S(s)`, and 1 until
            s. Not for the Fine-Gray model, in which no event of the cause does not mean no event.
        strata, offset
            As for `predict_survival_function`.

        Returns
        -------
        Predictions
            NaN after the last time of follow-up of the row's stratum. Standard errors and limits
            are NaN if an estimate is infinite.

        Raises
        ------
        NotDefinedError
            If the fit is penalised, or if the model was saved without `interval_times`.
        InputError
            If an argument is not valid, or a stratum was not in the fit.

        Notes
        -----
        O(n p) time for the risk sets once, then O(k m p); robust, O(n (p + m)) more for each
        call, and for the Fine-Gray model for each stratum. Nothing has n times k numbers.

        References
        ----------
        Tsiatis (1981), Annals of Statistics 9, 93-108, doi:10.1214/aos/1176345335.
        Link (1984), Biometrics 40, 601-610, doi:10.2307/2530904.
        Reid & Crepeau (1985), Biometrika 72, 1-9, doi:10.1093/biomet/72.1.1 (infinitesimal
        jackknife).
        """
        kind = self.default_kind if kind is None else kind
        check_kind(kind, ("survival", "cumulative_hazard", "cumulative_incidence"))
        interval_kind = chosen_interval(interval, kind)
        is_robust = self._checked(level, variance)
        at = checked_times(times)
        fitted = self._defined("an interval of a prediction")
        new = self._new_rows(X, strata, offset)
        after = None if given is None else self._given(given, new.eta.size)
        windows = fitted.windows(is_robust=is_robust)
        log_hazard, error = predicted_hazards(
            fitted.baseline, windows, self._root(is_robust), new, at, after
        )
        estimate, standard_error = of_log_hazard(kind, log_hazard, error)
        lower, upper = limits(
            estimate, standard_error, level, interval_kind,
            is_probability=kind != "cumulative_hazard",
        )  # fmt: skip
        return Predictions(
            kind, "time", at, estimate, standard_error, lower, upper, level, interval_kind,
            "robust" if is_robust else "model",
        )  # fmt: skip

    def predict_quantile(
        self,
        X: object,
        p: object = 0.5,
        *,
        level: float = 0.95,
        interval: ProbabilityIntervalType = "log-log",
        variance: PredictionVariance = "auto",
        strata: object = None,
        offset: object = None,
    ) -> Predictions:
        """Predict the time by which the event has happened with probability p, with its interval.

        It is the first event time at which the predicted survival is at most 1 - p, and its limits
        are the first times at which the limits of the survival are, as in R's
        ``quantile(survfit(fit, newdata))``.

        Parameters
        ----------
        X : as for `fit` (k, p)
        p : number or numbers in (0, 1)
            0.5 gives the median.
        level, variance, strata, offset
            As for `predict_interval`.
        interval : str
            Kind of the interval of the survival; see `kaplan_meier`.

        Returns
        -------
        Predictions
            One column for each p. NaN if the survival, or its limit, stays above 1 - p.

        Raises
        ------
        NotDefinedError
            If the fit is penalised, or the model was saved or pickled.

        Notes
        -----
        The robust variance takes O(n p) time; with late entry, and for the Fine-Gray model, O(n M)
        for M event times.

        References
        ----------
        Brookmeyer & Crowley (1982), Biometrics 38, 29-41, doi:10.2307/2530286.
        """
        interval_kind = chosen_interval(interval, "survival")
        is_robust = self._checked(level, variance)
        shares = _proportions(p)
        fitted = self._defined("an interval of a prediction")
        new = self._new_rows(X, strata, offset)
        _ = fitted.training
        root, baseline = self._root(is_robust), fitted.baseline
        windows = fitted.windows(is_robust=is_robust)
        found = np.full((3, new.eta.size, shares.size), np.nan)
        for stratum in np.unique(new.stratum).tolist():
            time = baseline.time[fitted.hazard.steps.own(stratum)]
            if not time.size:
                continue
            pairs = np.column_stack([np.full(time.size, -np.inf), time])
            moments = windows.moments({stratum: pairs})[stratum]
            for block in new.blocks(stratum, time.size):
                log_hazard, error = hazards_of_rows(
                    baseline, stratum, pairs, moments, root, new.eta[block], new.covariates(block)
                )
                curve, spread = of_log_hazard("survival", log_hazard, error)
                ends = limits(curve, spread, level, interval_kind, is_probability=True)
                for k, values in enumerate((curve, *ends)):
                    found[k, block] = _first_times(time, values, shares)
        return Predictions(
            "quantile", "proportion", shares, found[0], None, found[1], found[2], level,
            interval_kind, "robust" if is_robust else "model",
        )  # fmt: skip

    def predict_restricted_mean(
        self,
        X: object,
        times: object,
        *,
        level: float = 0.95,
        variance: PredictionVariance = "auto",
        strata: object = None,
        offset: object = None,
    ) -> Predictions:
        r"""Predict the mean survival time up to given times, with standard errors and limits.

        .. math:: \mu(\tau \mid x) = \int_0^\tau S(u \mid x) \, du

        For the Fine-Gray model, S is 1 minus the cumulative incidence of the cause, and
        :math:`\tau - \mu` is the mean time lost to it. Standard errors are those of the increments
        of the hazard and of the coefficients by the delta method; see `predict_interval`.

        Parameters
        ----------
        X : as for `fit` (k, p)
        times : number or (m,) numbers >= 0
            Ends of the restricted time, in the time unit of the fit.
        level, variance, strata, offset
            As for `predict_interval`. Limits are the estimate plus and minus a multiple of its
            standard error, within 0 and the end.

        Returns
        -------
        Predictions
            NaN after the last time of follow-up of the row's stratum.

        Raises
        ------
        NotDefinedError
            If the fit is penalised, or the model was saved or pickled.
        InputError
            If an argument is not valid, or a stratum was not in the fit.

        Notes
        -----
        O(k M p) time for M event times. The robust variance takes O(n (r + p)) more, where r, the
        dimension of the derivatives in the hazard over all new rows, is some tens at most.

        References
        ----------
        Karrison (1987), Journal of the American Statistical Association 82, 1169-1176,
        doi:10.1080/01621459.1987.10478555.
        Zucker (1998), Journal of the American Statistical Association 93, 702-709,
        doi:10.1080/01621459.1998.10473722.
        """
        is_robust = self._checked(level, variance)
        at = checked_times(times)
        if (at < 0).any():
            raise InputError(
                f"`times` must not be negative, but one is {at.min():g}.",
                hint="the mean survival time is counted from 0.",
            )
        fit = self._defined("an interval of a prediction").hazard
        new, baseline = self._new_rows(X, strata, offset), self._fitted.baseline
        root, log_jump = self._root(is_robust), baseline.steps(0.0)[1]
        mean, error = np.full((2, new.eta.size, at.size), np.nan)
        for stratum in np.unique(new.stratum).tolist():
            own = fit.steps.own(stratum)
            means = RestrictedMeanSlopes(baseline.time[own], log_jump[own], new.eta, at)
            blocks = new.blocks(stratum, means.time.size * at.size)
            for rows, estimate, found in functional_predictions(
                [fit], [root], stratum, means.predict, blocks, new.covariates, is_robust=is_robust
            ):
                mean[rows], error[rows] = estimate, found
        unknown = at > fit.steps.end[new.stratum][:, None]
        mean[unknown] = error[unknown] = np.nan
        lower, upper = limits(mean, error, level, "plain", is_probability=False)
        return Predictions(
            "restricted_mean", "time", at, mean, error, lower, np.minimum(upper, at), level,
            "plain", "robust" if is_robust else "model",
        )  # fmt: skip

    def _checked(self, level: float, variance: str) -> bool:
        """Whether to use the robust variance; options are checked first."""
        check_level(level)
        check_variance(variance)
        check_is_fitted(self, "coef_")
        is_robust = self._is_robust if variance == "auto" else variance == "robust"
        if is_robust:
            self._check_has_row_scores("a robust variance")
        return is_robust

    def _check_has_row_scores(self, what: str) -> None:
        """Refuse what is made of the parts that rows have in the derivative of the likelihood."""

    def _root(self, is_robust: bool) -> Matrix:
        """Root of the covariance of the coefficients; NaN if one is infinite."""
        if self._fitted.limit is not None:
            return np.full((self.coef_.size, 1), np.nan)
        estimates = np.where(self._is_fixed, 0.0, self.coef_)
        return self._fitted.coefficient_root(estimates, is_robust=is_robust)

    def _new_rows(self, X: object, strata: object, offset: object) -> PredictedRows:
        design, strata, offsets, places = self._read_new(X, strata, offset)
        stratum = self._fitted.baseline.codes_of(strata, design.n_rows, places)
        eta = self._centred(design, offsets)
        return PredictedRows(
            eta, stratum, CenteredCovariates(design, self._fitted.center), design.n_features
        )

    def _given(self, given: object, n_rows: int) -> Rows:
        """The time until which each row is known to have no event (k,)."""
        if self.has_censoring:
            raise InputError(
                "`given` is not for the Fine-Gray model: to have had no event of the cause by then "
                "does not mean to be alive without any event.",
                hint="use `CauseSpecificCox`, or fit the model to those without an event by then.",
            )
        return given_times(given, n_rows)


def given_times(given: object, n_rows: int) -> Rows:
    """Times to condition on (k,), of one for all rows or one for each; None is no condition."""
    if given is None:
        return np.full(n_rows, -np.inf)
    values = np.atleast_1d(as_array(given, "`given`", Places()))
    if values.size == 1:
        values = np.repeat(values, n_rows)
    return as_time_numbers(
        values, "given", n_rows, Places(), missing_hint="use 0 for no condition."
    )


class CenteredCovariates:
    """Covariates of new rows as dense numbers, relative to the center of a fit."""

    def __init__(self, design: Design, center: Rows) -> None:
        self._design, self._shift = design, design.center - center

    def __call__(self, rows: Index) -> Matrix:
        """Those of some rows (b, p)."""
        return np.asarray(self._design.stored(rows=rows) * self._design.scale + self._shift)


def _proportions(p: object) -> Rows:
    shares = as_numbers(np.atleast_1d(as_array(p, "`p`", Places())), "p", None, Places())
    if not ((shares > 0) & (shares < 1)).all():
        raise InputError(
            f"`p` must be between 0 and 1, but it is {p!r}.", hint="0.5 is the median."
        )
    return shares


def _first_times(time: Rows, survival: Matrix, shares: Rows) -> Matrix:
    """First time (k, m) at which curves (k, M) are at most 1 - each share; NaN if never."""
    out = np.full((survival.shape[0], shares.size), np.nan)
    for j, share in enumerate(shares.tolist()):
        below = survival <= (1 - share) * (1 + QUANTILE_ROUNDING)
        reached = below.any(axis=1)
        out[reached, j] = time[below[reached].argmax(axis=1)]
    return out
