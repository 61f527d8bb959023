"""Results of a fitted model: variances, tests, intervals, residuals."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError, NotDefinedError, check_once
from riskset._runtime import Runtime
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.design import Design
from riskset.data.frame import data_frame
from riskset.estimators._bootstraps import Bootstraps
from riskset.estimators._fitted import Fitted, ModelTests
from riskset.estimators._input import Columns, Data
from riskset.estimators._interval import Interval, check_used
from riskset.estimators.bootstrap import check_interval
from riskset.estimators.profiling import profiled_interval
from riskset.infer import residuals as residual
from riskset.infer.bootstrap_intervals import IntervalType
from riskset.infer.profile import Source
from riskset.infer.proportionality import ProportionalityTest, Transform, proportionality_test
from riskset.infer.residuals import SchoenfeldResiduals
from riskset.infer.wald import normal_p_value, wald_interval
from riskset.model.loss import Loss
from riskset.solve.result import Status

__all__ = ["Answers"]

METHODS = ("wald", "robust", "profile", "bootstrap")

ResidualKind = Literal["martingale", "deviance", "score", "schoenfeld"]


class Answers(Bootstraps):
    """Mixin with the results of a fit."""

    coef_: Features
    covariates_: tuple[str, ...]
    status_: Status
    _columns: Columns
    _fitted: Fitted
    _library: str | None
    _is_penalized: bool
    _is_robust: bool
    device: str
    n_threads: int | None
    tol: float
    max_iter: int
    progress: bool | None

    def _read(
        self,
        X: object,
        y: object,
        sample_weight: object,
        strata: object,
        offset: object,
        cluster: object,
        known: Columns | None,
    ) -> Data:
        raise NotImplementedError

    def _loss(self, data: Data, runtime: Runtime) -> Loss:
        raise NotImplementedError

    def _strengths(self, design: Design) -> tuple[Features, Features]:
        raise NotImplementedError

    # ------------------------------------------------------------------- standard errors

    def _defined(self, what: str) -> Fitted:
        check_is_fitted(self, "coef_")
        if self._is_penalized:
            raise NotDefinedError(
                f"{what} is not defined for a penalised fit: a penalty biases the estimates, so no "
                "variance of theirs gives intervals of the stated coverage.",
                hint="fit without a penalty, or with the covariates that a penalty chose.",
            )
        return self._fitted

    @property
    def variance_(self) -> Matrix:
        """Covariance of the coefficients, the inverse information (p, p).

        NaN for coefficients that are infinite or not identified, and for penalised fits.
        """
        check_is_fitted(self, "coef_")
        p = self.coef_.size
        return np.full((p, p), np.nan) if self._is_penalized else self._fitted.variance

    @property
    def robust_variance_(self) -> Matrix:
        """Robust covariance of the coefficients for independent rows or clusters (p, p).

        NaN for coefficients that are infinite or not identified, and for penalised fits. Source:
        Lin and Wei (1989), doi:10.1080/01621459.1989.10478874. For `FineGray`, it is that of
        cmprsk's ``crr`` and accounts for the estimation of the censoring distribution.
        """
        check_is_fitted(self, "coef_")
        p = self.coef_.size
        return np.full((p, p), np.nan) if self._is_penalized else self._fitted.robust_variance

    @property
    def standard_error_(self) -> Features:
        """Standard errors from the inverse information (p,). NaN as in `variance_`."""
        check_is_fitted(self, "coef_")
        p = self.coef_.size
        return np.full(p, np.nan) if self._is_penalized else self._fitted.standard_error

    @property
    def robust_standard_error_(self) -> Features:
        """Standard errors from the robust variance (p,). NaN as in `robust_variance_`."""
        check_is_fitted(self, "coef_")
        p = self.coef_.size
        return np.full(p, np.nan) if self._is_penalized else self._fitted.robust_standard_error

    @property
    def is_robust_(self) -> bool:
        """Whether `summary` and the Wald test use the robust variance.

        They do if clusters were given or a weight is not a whole number, as in R's ``coxph``, and
        always for `FineGray`, as in ``crr``.
        """
        check_is_fitted(self, "coef_")
        return self._is_robust

    @property
    def tests_(self) -> ModelTests:
        """Likelihood-ratio, score and Wald tests that all coefficients are 0."""
        return self._defined("a test of the coefficients").tests

    # --------------------------------------------------------------------------- summary

    def summary(self, *, level: float = 0.95) -> Any:
        """Return a data frame with one row per coefficient.

        Parameters
        ----------
        level : float
            Confidence level of the interval of the hazard ratio.

        Returns
        -------
        data frame
            Data frame of the library of X: pandas, polars or Arrow. For other input it is pandas if
            installed, otherwise Arrow. Columns: ``covariate`` (the index in pandas), ``coef``,
            ``hazard_ratio``, ``hazard_ratio_lower``, ``hazard_ratio_upper``, ``standard_error``,
            ``robust_standard_error`` (if `is_robust_`), ``z``, ``p``. Interval, z and p use the
            robust standard error if `is_robust_`, and are NaN if it is not defined.
        """
        check_is_fitted(self, "coef_")
        columns = {
            "covariate": np.array(self.covariates_, dtype=object),
            "coef": self.coef_,
            "hazard_ratio": _exp(self.coef_),
        }
        error = self.robust_standard_error_ if self._is_robust else self.standard_error_
        lower, upper = wald_interval(self.coef_, error, level)
        columns |= {"hazard_ratio_lower": _exp(lower), "hazard_ratio_upper": _exp(upper)}
        columns["standard_error"] = self.standard_error_
        if self._is_robust:
            columns["robust_standard_error"] = error
        with np.errstate(divide="ignore", invalid="ignore"):
            z = self.coef_ / error
        columns |= {"z": z, "p": normal_p_value(z)}
        return data_frame(columns, self._library)

    def confidence_interval(
        self,
        parameters: str | Sequence[str] | None = None,
        *,
        method: str = "wald",
        level: float = 0.95,
        penalized: bool = False,
        replicates: int | None = None,
        seed: int | None = None,
        type: IntervalType | None = None,
    ) -> Interval:
        r"""Compute confidence intervals of log hazard ratios.

        Parameters
        ----------
        parameters : str or sequence of str, optional
            Covariates. Default: all (for profile and bootstrap, all without a penalty).
        method : {"wald", "robust", "profile", "bootstrap"}
            "wald" and "robust": :math:`\hat\beta \pm z \, se` with the standard error from the
            inverse information or from the robust variance. "profile": :math:`\{b: 2
            (\ell_p(\hat\beta_j) - \ell_p(b)) \le \chi^2_{1, level}\}` with the profile likelihood
            :math:`\ell_p` of `riskset.profile`, also for infinite estimates and with penalised
            covariates in the model. It treats weights as numbers of rows; for other weights, use
            the robust interval. "bootstrap": from resamples of rows or of the clusters of the fit.
            The method `bootstrap` has more options.
        level : float
            Coverage.
        penalized : bool
            Allow profiles of penalised covariates, with their penalty.
        replicates, seed, type : optional
            Options of the bootstrap: the number of replicates (default: 200), the seed (default: 1)
            and the type of interval, "percentile" (default), "basic", "normal" or "bca".

        Returns
        -------
        Interval
            ``interval["age"]`` is (lower, upper).

        Raises
        ------
        InputError
            * If a name is unknown or given twice, the method does not exist, or the method does not
              use a given argument.
            * For Wald and robust intervals: if the fit is penalised.
            * For profile intervals: if a covariate is penalised, or if the model was pickled or
              saved and has no training data; use `riskset.profile` then.

        Notes
        -----
        Limits of profile intervals are exact to 1e-8 in the log likelihood, and infinite if the
        estimate is. They are NaN for covariates that are constant or repeat others, as for Wald
        intervals.
        """
        if method not in METHODS:
            raise InputError.wrong_option("method", method, METHODS)
        check_used(method, penalized, {"replicates": replicates, "seed": seed, "type": type})
        if method == "profile":
            return self._profiled(parameters, level, penalized)
        if method == "bootstrap":
            replicates = 200 if replicates is None else replicates
            kind: IntervalType = "percentile" if type is None else type
            check_interval(replicates, level, kind)
            found = self.bootstrap(replicates, 1 if seed is None else seed, parameters=parameters)
            return found.interval(level, kind)
        self._defined(f"a {method} interval" if method == "robust" else "a Wald interval")
        columns = self._positions(parameters)
        errors = self.standard_error_ if method == "wald" else self.robust_standard_error_
        lower, upper = wald_interval(self.coef_[columns], errors[columns], level)
        names = tuple(self.covariates_[j] for j in columns)
        return Interval(method, level, names, lower, upper)

    def _profiled(
        self, parameters: str | Sequence[str] | None, level: float, penalized: bool
    ) -> Interval:
        check_is_fitted(self, "coef_")
        columns = self._positions(parameters)
        if not self._fitted.has_training:
            raise NotDefinedError(
                "a profile interval needs the training data, which a model that was saved, "
                "pickled or fitted in blocks does not carry.",
                hint="use riskset.profile(model, X, y, parameter).interval() with the data.",
            )
        training = self._fitted.training
        l1, l2 = self._strengths(training.design)
        if parameters is None and not penalized:
            columns = np.flatnonzero((l1 == 0) & (l2 == 0))
            if not columns.size and l1.size:
                raise InputError(
                    "every covariate is penalised, so none has a profile interval.",
                    hint="fit with unpenalized=[...] for the covariate of interest.",
                )
        source = Source(
            training.design, training.loss, training.solution, l1, l2, max_iter=self.max_iter
        )
        lower, upper = profiled_interval(
            source, columns, level, tol=self.tol, penalized=penalized, progress=self.progress
        )
        names = tuple(self.covariates_[j] for j in columns)
        return Interval("profile", level, names, lower, upper)

    def _positions(self, parameters: str | Sequence[str] | None) -> Index:
        if parameters is None:
            return np.arange(self.coef_.size)
        one = isinstance(parameters, str) or not isinstance(parameters, Iterable)
        names = [str(parameters)] if one else list(parameters)
        where = {name: j for j, name in enumerate(self.covariates_)}
        for name in names:
            if name not in where:
                raise InputError.unknown_name("covariate", str(name), self.covariates_)
        check_once("covariate", names)
        return np.array([where[name] for name in names], dtype=np.int64)

    # ------------------------------------------------------------------------ diagnostics

    def residuals(
        self,
        X: object,
        y: object = None,
        kind: ResidualKind = "martingale",
        *,
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
        cluster: object = None,
    ) -> Rows | Matrix | SchoenfeldResiduals:
        """Compute residuals of rows, in their order.

        Parameters
        ----------
        X, y, sample_weight, strata, offset, cluster
            As for `fit`, usually the data of the fit. For other data, the coefficients are those of
            the fit, but the baseline hazard is estimated from the given data.
        kind : {"martingale", "deviance", "score", "schoenfeld"}

        Returns
        -------
        (n,) float64; (n, p) float64 for "score"; `SchoenfeldResiduals` (one row per event) for
        "schoenfeld". Residuals are not multiplied by the case weights. In the Fine-Gray model,
        means over risk sets and expected events include rows after a competing event, with the
        weight G(t-) / G(time-).

        Raises
        ------
        InputError
            If the kind is unknown.

        See Also
        --------
        riskset.infer.residuals : definitions and sources.
        """
        loss, design, eta = self._evaluated(X, y, sample_weight, strata, offset, cluster)
        if kind == "martingale":
            return residual.martingale_residuals(loss, eta)
        if kind == "deviance":
            return residual.deviance_residuals(loss, eta)
        if kind == "score":
            return residual.score_residuals(loss, design, eta)
        if kind == "schoenfeld":
            return residual.schoenfeld_residuals(loss, design, eta)
        raise InputError.wrong_option("kind", kind, get_args(ResidualKind))

    def test_proportionality(
        self,
        X: object,
        y: object = None,
        transform: Transform = "km",
        *,
        robust: bool = False,
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
        cluster: object = None,
    ) -> ProportionalityTest:
        """Test proportional hazards with the score test of R's ``cox.zph``.

        The null hypothesis is that the coefficients do not change with time. For the Fine-Gray
        model, the test of proportional subdistribution hazards uses the risk sets and weights of
        that model, with the censoring weights treated as known.

        Parameters
        ----------
        X, y, sample_weight, strata, offset, cluster
            The data of the fit.
        transform : {"km", "rank", "identity", "log"}
            Transformation of time.
        robust : bool
            Estimate the variance of the scores from their spread between clusters or rows. Use this
            for weights that are not numbers of people, and for clustered rows. `cox.zph` has no
            such option.

        Returns
        -------
        ProportionalityTest
            One test per covariate, and a global test.

        Raises
        ------
        InputError
            If the fit is penalised.

        References
        ----------
        Grambsch and Therneau (1994), Biometrika 81, 515-526, doi:10.1093/biomet/81.3.515.
        """
        self._defined("the test of proportional hazards")
        loss, design, eta = self._evaluated(X, y, sample_weight, strata, offset, cluster)
        return proportionality_test(loss, design, eta, transform, robust=robust)

    def _evaluated(
        self,
        X: object,
        y: object,
        sample_weight: object,
        strata: object,
        offset: object,
        cluster: object,
    ) -> tuple[Loss, Design, Rows]:
        """The likelihood of some data, and their linear predictors up to a constant."""
        check_is_fitted(self, "coef_")
        data = self._read(X, y, sample_weight, strata, offset, cluster, self._columns)
        runtime = Runtime.select(self.device, self.n_threads)
        coef = self._fitted.predicting(self.coef_)
        eta = data.design.product(coef * data.design.scale, runtime=runtime)
        return self._loss(data, runtime), data.design, eta + data.outcome.offset


def _exp(values: Features) -> Features:
    with np.errstate(over="ignore"):
        return np.exp(values)
