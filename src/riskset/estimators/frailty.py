"""The Cox model with a shared frailty of each cluster."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError, NotDefinedError, check_once
from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows, is_number
from riskset.data.checks import are_counts
from riskset.data.design import Design
from riskset.data.frame import data_frame
from riskset.data.outcome import Outcome
from riskset.estimators._base import HazardModelBase
from riskset.estimators._fitted import Fitted
from riskset.estimators._frailties import FrailtyVarianceTest, KeptFrailties
from riskset.estimators._input import ModelInput
from riskset.estimators._interval import ConfidenceInterval
from riskset.estimators._prediction import as_times
from riskset.estimators.fit_file import SavedFit
from riskset.infer.wald import (
    check_level,
    exponentials,
    normal_p_value,
    normal_quantile,
    wald_interval,
)
from riskset.model.cox import CoxLoss
from riskset.model.frailty import FrailtyName
from riskset.model.loss import Loss
from riskset.solve.block_join import Subdistribution
from riskset.solve.frailty import (
    MAX_VARIANCE,
    FrailtyFit,
    VarianceMethod,
    fit_shared_frailty,
)
from riskset.solve.prox_newton import ResidualReport
from riskset.solve.result import Solution

__all__ = ["CoxFrailty"]

FrailtyTies = ("breslow", "efron")

REMEDIES = {
    "infinite": "Leave the covariates out, or use `riskset.Cox` with `cluster` and a penalty or a "
    "profile-likelihood interval",
    "undecided": ", or use `riskset.Cox` with a penalty, which always gives a finite estimate",
}
"""Where an estimate is infinite, or may be: frailties have neither penalty nor profile."""


class CoxFrailty(HazardModelBase):
    r"""Cox regression with a shared frailty: a random effect of each cluster on the hazard.

    The hazard of a row with covariates x in cluster i and stratum s is
    :math:`\lambda_s(t) \, e^{w_i} \, e^{x'\beta + offset}`. The frailties :math:`e^{w_i}` of
    hospitals, families or people with several events are draws from a distribution with variance
    parameter :math:`\theta`. Coefficients and log frailties maximise

    .. math:: \ell(\beta, w) - \sum_i f(w_i), \qquad
        f(w) = \frac{e^w - 1 - w}{\theta} \text{ (gamma)}, \quad
        f(w) = \frac{w^2}{2 \theta} \text{ (log-normal)}

    with the log partial likelihood :math:`\ell`. A coefficient compares rows of the same cluster;
    `Cox` with `cluster` compares all rows and only widens the standard errors.

    Parameters
    ----------
    frailty : {"gamma", "lognormal"}
        "gamma": frailties have mean 1 and variance :math:`\theta`, as R's ``frailty(id)``.
        "lognormal": log frailties are normal with mean 0 and variance :math:`\theta`, as R's
        ``frailty(id, dist="gaussian")`` and ``coxme``.
    frailty_variance : number from 0 to 1,000,000, optional
        The variance :math:`\theta`. Default: it is estimated.
    frailty_method : {"ml", "reml"}
        How a variance is estimated. "ml": it maximises the likelihood that is integrated over the
        frailties, exactly for "gamma", as R does, and by Laplace's approximation for "lognormal",
        as ``coxme`` does. "reml", for "lognormal": Ripatti and Palmgren's estimate, as of R's
        ``frailty(id, dist="gaussian")``; see Notes.
    ties : {"breslow", "efron"}
        Method for tied events.
    cause, reference, covariate_labels, n_threads, tol, max_iter, progress
        As for `Cox`.
    device : {"auto", "cpu"}
        Only the model without frailties, from which the fit starts, can use a GPU.

    Attributes
    ----------
    coef_, covariates_, n_iter_, n_rows_, n_events_, n_strata_, n_dropped_, notes_, seconds_
        As for `Cox`.
    status_ : str
        As for `Cox`. Coefficients are infinite if those of the model without frailties are. It is
        "max_iter", too, if the likelihood keeps rising with the variance of the frailties.
    kkt_ : float
        Largest violation of the optimality conditions over all coefficients and frailties, relative
        to the gradients of the models without covariates and without frailties. The objective is
        convex, so 0 proves the maximum at this variance.
    log_likelihood_, null_log_likelihood_, objective_ : float
        Log partial likelihood at the estimates and without covariates and frailties, and minus the
        penalised log likelihood, :math:`-\ell + \sum_i f(w_i)`.
    frailty_variance_ : float
        The variance :math:`\theta`, estimated or given. 0: there is no frailty, and the estimates
        are those of `Cox`; `notes_` says so if it is estimated.
    integrated_log_likelihood_ : float
        Log likelihood integrated over the frailties, on the scale of the log partial likelihood:
        exact for "gamma", Laplace's approximation for "lognormal".
    frailty_test_ : FrailtyVarianceTest
        Likelihood-ratio test that the variance is 0: `statistic` and `p_value`.
    df_ : float
        Effective degrees of freedom of the frailties, between 0 and the number of clusters.
    n_clusters_ : int
    n_features_in_, feature_names_in_
        Columns of X at the fit.

    See Also
    --------
    Cox : with ``cluster=``, robust standard errors without frailties; with ``strata=``, a baseline
        hazard for each cluster.

    Notes
    -----
    The answer is the exact maximum for any number of clusters. R's ``coxph`` leaves out part of the
    second derivatives of more than five clusters (``sparse=TRUE``), which changes its standard
    errors, and its "reml" variance, but not its maximum; with ``sparse=FALSE`` it agrees.

    The variance :math:`\theta` of "reml" satisfies :math:`n \theta = \sum_i w_i^2 + \mathrm{tr} K`
    with n clusters and the part K of the inverse of all second derivatives that belongs to the
    frailties. With few events in each cluster, the variance of Laplace's approximation is somewhat
    too small, that of "reml" less so.

    Standard errors treat the variance as known, as in R.

    Memory and time grow with the number of clusters times that of the covariates: 100,000 clusters
    and 20 covariates need tens of megabytes.

    References
    ----------
    Therneau, Grambsch and Pankratz (2003), Journal of Computational and Graphical Statistics 12,
    156-175, doi:10.1198/1061860031365. Ripatti and Palmgren (2000), Biometrics 56, 1016-1022,
    doi:10.1111/j.0006-341X.2000.01016.x. Nielsen, Gill, Andersen and Sorensen (1992), Scandinavian
    Journal of Statistics 19, 25-43. Degrees of freedom and the second variance: Gray (1992),
    Journal of the American Statistical Association 87, 942-951,
    doi:10.1080/01621459.1992.10476248.

    Examples
    --------
    >>> import numpy as np
    >>> import riskset as rs
    >>> draw = np.random.default_rng(3)
    >>> site = np.repeat(np.arange(40), 10)
    >>> x = draw.normal(size=(400, 1))
    >>> time = draw.exponential(np.exp(-0.5 * x[:, 0]) / draw.gamma(2, 0.5, 40)[site])
    >>> y = rs.Surv(np.minimum(time, 2), time < 2)
    >>> model = rs.CoxFrailty(frailty="gamma").fit(x, y, cluster=site)
    >>> round(float(model.coef_[0]), 2), round(model.frailty_variance_, 2)
    (0.55, 0.71)
    """

    penalty = None
    solver = "newton"
    has_frailties = True

    frailty: FrailtyName
    frailty_variance: float | None
    frailty_method: VarianceMethod
    ties: str

    def __init__(
        self,
        frailty: FrailtyName = "gamma",
        *,
        frailty_variance: float | None = None,
        frailty_method: VarianceMethod = "ml",
        ties: str = "breslow",
        cause: int | str | None = None,
        reference: Mapping[str, object] | None = None,
        covariate_labels: object = None,
        device: str = "auto",
        n_threads: int | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        progress: bool | None = None,
    ) -> None:
        self._set(locals())

    # ------------------------------------------------------------------------------- fit

    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
        cluster: object = None,
        *,
        init: object = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X, y, strata, offset, init
            As for `Cox.fit`.
        sample_weight : (n,) whole numbers >= 0, optional
            A weight stands for as many equal rows of the same cluster.
        cluster : (n,) labels
            The cluster of each row, whose rows share a frailty. A `Dataset` contains it (read with
            `cluster`), and a formula names it by ``cluster(id)``.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If an argument or the data are not valid, there is no `cluster`, there are fewer than
            two clusters, all clusters have one row, or each stratum has one cluster, whose frailty
            is part of the baseline hazard then.

        Warns
        -----
        ConvergenceWarning
            If `status_` is not "converged".
        """
        return super().fit(X, y, sample_weight, strata, offset, cluster, init=init)

    def _options(self) -> dict[str, tuple[str, ...]]:
        return {
            **super()._options(),
            "device": ("auto", "cpu"),
            "frailty": get_args(FrailtyName),
            "frailty_method": get_args(VarianceMethod),
            "ties": FrailtyTies,
        }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = self.frailty_variance
        if given is not None and not (is_number(given) and 0.0 <= given <= MAX_VARIANCE):
            raise InputError(
                f"`frailty_variance` must be a number from 0 to {MAX_VARIANCE:,.0f}, but it is "
                f"{given!r}.",
                hint="leave it out to estimate it; use `Cox` with `strata` for a baseline hazard "
                "of each cluster.",
            )
        if self.frailty == "gamma" and self.frailty_method != "ml":
            raise InputError(
                f"`frailty_method={self.frailty_method!r}` is not defined for `frailty='gamma'`.",
                hint="leave it out, or use `frailty='lognormal'`.",
            )

    def _loss(self, data: ModelInput, runtime: Runtime) -> CoxLoss:
        return CoxLoss(data.outcome, self.ties, runtime)  # type: ignore[arg-type]

    def _block_censoring(self) -> Subdistribution | None:
        raise InputError("frailties do not fit in blocks.", hint="fit on one machine.")

    def _solve(
        self,
        design: Design,
        loss: Loss,
        l1: Features,
        l2: Features,
        start: Solution | None,
        report: ResidualReport,
    ) -> Solution:
        _check_clusters(loss.outcome, self.frailty_variance is None)
        base = super()._solve(design, loss, l1, l2, start, report)
        cluster, labels = loss.outcome.cluster, loss.outcome.clusters
        assert cluster is not None
        assert labels is not None
        found = fit_shared_frailty(
            design, loss, base, cluster, len(labels), self.frailty,
            variance=None if self.frailty_variance is None else float(self.frailty_variance),
            method=self.frailty_method, tol=self.tol, max_iter=self.max_iter, report=report,
        )  # fmt: skip
        self._kept = _kept(design, loss, base, found, self.frailty_variance is None)
        notes = tuple(
            note.with_values(remedy=REMEDIES[note.code]) if note.code in REMEDIES else note
            for note in found.solution.notes
        )
        return replace(found.solution, notes=notes)

    def _store(
        self, data: ModelInput, loss: Loss, solution: Solution, *, is_penalized: bool
    ) -> None:
        cluster = loss.outcome.cluster
        assert cluster is not None
        offset = loss.offset + self._kept.log[cluster]
        # Variances and tests of `Fitted` are those of a likelihood without frailties.
        super()._store(data, loss.shifted(offset, loss.runtime), solution, is_penalized=True)
        self._set_attributes()

    def _set_attributes(self) -> None:
        """The attributes about frailties."""
        self._distribution = self.frailty  # of the fit, whatever becomes of the parameter
        kept = self._kept
        self.frailty_variance_ = kept.variance
        self.integrated_log_likelihood_ = kept.integrated
        self.frailty_test_: FrailtyVarianceTest = kept.test
        self.df_ = kept.df
        self.n_clusters_ = kept.log.size

    def _defined(self, what: str) -> Fitted:
        check_is_fitted(self, "coef_")
        raise NotDefinedError(
            f"{what} is not available for a model with frailties.",
            hint="use `summary`, or `Cox` with `cluster`.",
        )

    def log_likelihood(
        self,
        coef: object,
        X: object,
        y: object = None,
        *,
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
    ) -> float:
        """Compute the log partial likelihood of given coefficients, with all frailties 1.

        Parameters and errors are those of `Cox.log_likelihood`. Frailties that differ go into the
        offset.
        """
        return super().log_likelihood(
            coef, X, y, sample_weight=sample_weight, strata=strata, offset=offset
        )

    # ------------------------------------------------------------------------- inference

    @property
    def variance_(self) -> Matrix:
        """Covariance of the coefficients (p, p): R's ``var``.

        The inverse of the second derivatives of the penalised likelihood in coefficients and
        frailties together. NaN for coefficients that are infinite or not identified.
        """
        check_is_fitted(self, "coef_")
        return self._kept.covariance

    @property
    def gray_variance_(self) -> Matrix:
        r"""Second covariance of the coefficients (p, p): R's ``var2``.

        :math:`K I K`, with the inverse K of the second derivatives of the penalised likelihood and
        those I of the likelihood: the variance of the estimates if the frailties are fixed. It is
        smaller than `variance_`. Gray (1992), doi:10.1080/01621459.1992.10476248.
        """
        check_is_fitted(self, "coef_")
        return self._kept.gray_covariance

    @property
    def standard_error_(self) -> Features:
        """Standard errors (p,) from `variance_`."""
        check_is_fitted(self, "coef_")
        return self._kept.standard_error

    @property
    def _not_estimated(self) -> NDArray[np.bool_]:
        """Coefficients (p,) that are 0 because nothing determines them."""
        return np.asarray((self.coef_ == 0) & np.isnan(self.standard_error_))

    def summary(self, *, level: float = 0.95) -> Any:
        """Return a data frame with one row per coefficient.

        Parameters
        ----------
        level : float
            Confidence level of the interval of the hazard ratio.

        Returns
        -------
        data frame
            As `Cox.summary`, with ``gray_standard_error`` (R's ``se2``) from `gray_variance_` after
            ``standard_error``. Interval, z and p use ``standard_error``.
        """
        check_is_fitted(self, "coef_")
        error = self.standard_error_
        coef = np.where(self._not_estimated, np.nan, self.coef_)
        lower, upper = wald_interval(self.coef_, error, level)
        columns = {"covariate": np.array(self.covariates_, dtype=object)}
        if self._columns.labels:
            texts = self._columns.texts(self.covariates_)
            columns["label"] = np.array(texts, dtype=object)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            z = self.coef_ / error
            columns |= {
                "coef": coef,
                "hazard_ratio": exponentials(coef),
                "hazard_ratio_lower": exponentials(lower),
                "hazard_ratio_upper": exponentials(upper),
                "standard_error": error,
                "gray_standard_error": np.sqrt(self.gray_variance_.diagonal()),
                "z": z,
                "p": normal_p_value(z),
            }
        if references := self._columns.references:
            compared = [references.get(name) for name in self.covariates_]
            columns["reference"] = np.array(compared, dtype=object)
        return data_frame(columns, self._library)

    def confidence_interval(
        self,
        parameters: str | Sequence[str] | None = None,
        *,
        method: str = "wald",
        level: float = 0.95,
    ) -> ConfidenceInterval:
        """Compute Wald intervals of log hazard ratios, from `standard_error_`.

        Parameters
        ----------
        parameters : str or sequence of str, optional
            Covariates. Default: all.
        method : {"wald"}
        level : float
            Coverage, if the variance of the frailties were known.

        Returns
        -------
        ConfidenceInterval
            ``interval["age"]`` is (lower, upper).

        Raises
        ------
        InputError
            If a name is unknown or given twice.
        """
        check_is_fitted(self, "coef_")
        if method != "wald":
            raise InputError.wrong_option("method", method, ("wald",))
        if parameters is None:
            parameters = self.covariates_
        is_one = isinstance(parameters, str) or not isinstance(parameters, Iterable)
        names = [str(parameters)] if is_one else list(parameters)
        for name in names:
            if name not in self.covariates_:
                raise InputError.unknown_name("covariate", str(name), self.covariates_)
        check_once("covariate", names)
        at = np.array([self.covariates_.index(name) for name in names], dtype=np.int64)
        lower, upper = wald_interval(self.coef_[at], self.standard_error_[at], level)
        return ConfidenceInterval("wald", level, tuple(names), lower, upper)

    def frailties(self, *, level: float = 0.95) -> Any:
        r"""Return a data frame with one row per cluster.

        Parameters
        ----------
        level : float
            Probability of the interval.

        Returns
        -------
        data frame
            Of the library of X. Columns: ``cluster``, ``rows``, ``events`` (weighted),
            ``log_frailty``, ``standard_error`` (of the log frailty, from the inverse of all second
            derivatives), ``frailty``, its exponential, ``frailty_lower`` and ``frailty_upper``
            (normal on the log scale), and ``posterior_mean``: the mean of the frailty given the
            data and the estimates, which is ``frailty`` for "gamma" and
            :math:`e^{w + se^2/2}`, Laplace's approximation, for "lognormal". Clusters whose rows
            all have weight 0 have frailty 1.
        """
        check_is_fitted(self, "coef_")
        check_level(level)
        kept = self._kept
        half = normal_quantile(level) * kept.error
        frailty = np.exp(kept.log)
        mean = frailty if self._distribution == "gamma" else np.exp(kept.log + 0.5 * kept.error**2)
        labels = np.empty(kept.log.size, dtype=object)
        labels[:] = kept.names
        columns: dict[str, AnyArray] = {
            "cluster": labels,
            "rows": kept.rows.astype(np.int64),
            "events": kept.events,
            "log_frailty": kept.log,
            "standard_error": kept.error,
            "frailty": frailty,
            "frailty_lower": exponentials(kept.log - half),
            "frailty_upper": exponentials(kept.log + half),
            "posterior_mean": mean,
        }
        return data_frame(columns, self._library)

    # ----------------------------------------------------------------------- predictions

    def predict(self, X: object, *, offset: object = None, cluster: object = None) -> Rows:
        """Return the linear predictor: the log hazard relative to a row with all covariates 0.

        Parameters
        ----------
        X : as for `fit` (k, p)
        offset : (k,) numbers, optional
            Added.
        cluster : (k,) labels, optional
            Clusters of the fit, whose log frailties are added. Default: frailties of 1.

        Returns
        -------
        (k,) float64
        """
        values = super().predict(X, offset=offset)
        return values if cluster is None else values + self._logs(cluster, values.size)

    def predict_survival_function(
        self,
        X: object,
        times: object = None,
        *,
        strata: object = None,
        offset: object = None,
        cluster: object = None,
    ) -> AnyArray:
        r"""Predict the probability of no event by given times.

        Parameters
        ----------
        X, times, strata, offset
            As for `Cox.predict_survival_function`.
        cluster : (k,) labels, optional
            Clusters of the fit: the prediction is for a member of that cluster, with its estimated
            frailty. Default: averaged over the distribution of the frailties, for a member of a
            cluster of which nothing is known, :math:`(1 + \theta H)^{-1/\theta}` for "gamma", with
            the cumulative hazard H of a frailty of 1.

        Returns
        -------
        (k, m) float64, or (k,) `riskset.StepFunction` without times.

        Raises
        ------
        InputError
            If a stratum or a cluster was not in the fit.
        """
        return self._at_times("survival", X, times, strata, offset, cluster)

    def predict_cumulative_hazard_function(
        self,
        X: object,
        times: object = None,
        *,
        strata: object = None,
        offset: object = None,
        cluster: object = None,
    ) -> AnyArray:
        """Predict the cumulative hazard at given times; see `predict_survival_function`.

        Without `cluster`, it is minus the log of the averaged survival.
        """
        return self._at_times("cumulative_hazard", X, times, strata, offset, cluster)

    def _at_times(
        self,
        method: str,
        X: object,
        times: object,
        strata: object,
        offset: object,
        cluster: object,
    ) -> AnyArray:
        eta, strata, places = self._read_centred(X, strata, offset)
        baseline = self._fitted.baseline
        if cluster is None:
            baseline = self._kept.marginal(baseline, self._distribution)
        else:
            eta = eta + self._logs(cluster, eta.size)
        if times is None:
            return baseline.functions(method, eta, strata, places)  # type: ignore[arg-type]
        return np.asarray(getattr(baseline, method)(eta, as_times(times), strata, places))

    def _logs(self, cluster: object, n_rows: int) -> Rows:
        return np.asarray(self._kept.log[self._kept.codes_of(cluster, n_rows)])

    # ---------------------------------------------------------------------------- saving

    def _saved(
        self, *, with_variances: bool = True, interval_times: Rows | None = None
    ) -> SavedFit:
        fit = super()._saved(with_variances=with_variances, interval_times=interval_times)
        parameters = fit.estimator.parameters | {"frailty": self._distribution}
        estimator = fit.estimator.model_copy(update={"parameters": parameters})
        return replace(fit, estimator=estimator, arrays=fit.arrays | self._kept.to_arrays())

    def _restore(self, fit: SavedFit) -> None:
        super()._restore(fit)
        self._kept = KeptFrailties.from_arrays(fit.arrays)
        self._set_attributes()


def _kept(
    design: Design, loss: Loss, base: Solution, found: FrailtyFit, is_estimated: bool
) -> KeptFrailties:
    """What is kept of a fit, in the user's units."""
    outcome, n = loss.outcome, found.w.size
    assert outcome.cluster is not None
    assert outcome.clusters is not None
    p = design.n_features
    covariance, gray = np.full((p, p), np.nan), np.full((p, p), np.nan)
    columns = np.flatnonzero(~base.aliased & (base.infinite == 0))
    error, df = np.zeros(n), 0.0
    at = np.ix_(columns, columns)
    scale = design.scale[columns]
    if found.variances is None:
        covariance[at] = gray[at] = _plain_covariance(design, base, columns)
    else:
        covariance[at], gray[at] = found.variances.covariance, found.variances.sandwich
        error, df = np.sqrt(found.variances.w_variance), found.variances.df
    spread = np.full(p, np.nan)
    spread[columns] = np.sqrt(covariance[at].diagonal()) / scale
    with np.errstate(over="ignore"):
        covariance[at] = covariance[at] / scale / scale[:, None]
        gray[at] = gray[at] / scale / scale[:, None]
    rows = np.bincount(outcome.cluster, outcome.weight > 0, n).astype(np.float64)
    return KeptFrailties(
        labels=np.array([json.dumps(label, default=str) for label in outcome.clusters.tolist()]),
        log=found.w,
        error=error,
        rows=rows,
        events=found.events,
        variance=found.variance,
        is_estimated=is_estimated,
        integrated=found.integrated,
        without=base.log_likelihood,
        df=df,
        covariance=covariance,
        gray_covariance=gray,
        standard_error=spread,
    )


def _plain_covariance(design: Design, base: Solution, columns: Index) -> Matrix:
    """Inverse information without frailties, in stored units."""
    information = base.likelihood.information(design, base.eta, columns)
    size = np.sqrt(information.diagonal())
    return np.asarray(np.linalg.inv(information / size / size[:, None]) / size / size[:, None])


def _check_clusters(outcome: Outcome, is_estimated: bool) -> None:
    """Refuse clusters whose frailties are not identified, and weights that are not counts."""
    fractions = np.flatnonzero(~are_counts(outcome.weight))
    if fractions.size:
        row = int(fractions[0])
        raise InputError(
            f"the weight of row {row:,} is {outcome.weight[row]:g}, but with frailties weights "
            "must be whole numbers below 2**53.",
            hint="there, a weight stands for as many equal rows of a cluster.",
        )
    if outcome.cluster is None:
        raise InputError(
            "a frailty needs the cluster of each row, but `cluster` is missing.",
            hint="pass `cluster`, the labels of what groups the rows.",
        )
    there = outcome.weight > 0
    cluster, stratum = outcome.cluster[there], outcome.stratum[there]
    sizes = np.bincount(cluster, outcome.weight[there])
    n_clusters = int(np.count_nonzero(sizes))
    pairs = np.unique(np.column_stack([cluster, stratum]), axis=0)
    if n_clusters < 2:
        raise InputError(
            "all rows are in one cluster, so its frailty is part of the baseline hazard.",
            hint="use `Cox`.",
        )
    if sizes.max() <= 1 and is_estimated:
        raise InputError(
            f"each of the {n_clusters:,} clusters has one row, so no rows share a frailty, and its "
            "variance cannot be estimated.",
            hint="pass the groups of rows as `cluster`, or fix `frailty_variance`.",
        )
    if len(pairs) == len(np.unique(pairs[:, 1])):
        raise InputError(
            "each stratum has rows of one cluster alone, so its frailty is part of the baseline "
            "hazard.",
            hint="leave out `strata`, or use `Cox`.",
        )
