"""Inference of a fitted model: variances, intervals, tests, residuals and the bootstrap."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError, NotDefinedError, check_once
from riskset._progress import ProgressBar, time_left
from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows, is_count, is_number
from riskset.data.checks import Places
from riskset.data.design import Design
from riskset.data.frame import data_frame
from riskset.data.labels import as_clusters
from riskset.engine import check_engine, workers
from riskset.estimators._fitted import ModelTests, Training
from riskset.estimators._fixed import refuse_fixed
from riskset.estimators._interval import ConfidenceInterval
from riskset.estimators._prediction_intervals import PredictionIntervals
from riskset.estimators._residuals import (
    INFLUENCES,
    ResidualKind,
    check_residual,
    residuals_of_rows,
)
from riskset.estimators.bootstrap import FAILED, Bootstrap, check_interval, warn
from riskset.estimators.profiling import warned_intervals
from riskset.infer import residuals as residual
from riskset.infer.bootstrap import (
    ReplicateEstimate,
    ResampledUnits,
    acceleration,
    resample_estimates,
)
from riskset.infer.bootstrap_intervals import BootstrapIntervalType
from riskset.infer.bootstrap_with_tuning import check_divisible, retuned_estimates
from riskset.infer.firth_interval import firth_intervals
from riskset.infer.profile import ProfiledFit, check_unpenalized
from riskset.infer.proportionality import (
    ProportionalityTest,
    Transform,
    proportionality_test,
    scaled_schoenfeld_residuals,
)
from riskset.infer.residuals import SchoenfeldResiduals
from riskset.infer.scaled_residuals import ScaledSchoenfeldResiduals
from riskset.infer.wald import exponentials, normal_p_value, wald_interval
from riskset.model.loss import Loss
from riskset.solve.optimality import Problem

__all__ = ["HazardModel"]

METHODS = ("wald", "robust", "profile", "bootstrap")


class HazardModel(PredictionIntervals):
    """What a fitted estimator says about its coefficients; see `Cox` and `FineGray`."""

    # ------------------------------------------------------------------- standard errors

    @property
    def variance_(self) -> Matrix:
        """Covariance of the coefficients, the inverse information (p, p).

        NaN for coefficients that are infinite or not identified, and for penalised fits.
        """
        return self._spread("variance", 2)

    @property
    def robust_variance_(self) -> Matrix:
        """Robust covariance of the coefficients for independent rows or clusters (p, p).

        NaN for coefficients that are infinite or not identified, and for penalised fits. Source:
        Lin and Wei (1989), doi:10.1080/01621459.1989.10478874. For `FineGray`, it is that of
        cmprsk's ``crr`` and accounts for the estimation of the censoring distribution.
        """
        return self._spread("robust_variance", 2)

    @property
    def standard_error_(self) -> Features:
        """Standard errors from the inverse information (p,). NaN as in `variance_`."""
        return self._spread("standard_error", 1)

    @property
    def robust_standard_error_(self) -> Features:
        """Standard errors from the robust variance (p,). NaN as in `robust_variance_`."""
        return self._spread("robust_standard_error", 1)

    def _spread(self, name: str, n_dimensions: int) -> AnyArray:
        check_is_fitted(self, "coef_")
        if self._is_penalized:
            return np.full((self.coef_.size,) * n_dimensions, np.nan)
        return self._fitted.spread(name)

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

    @property
    def _not_estimated(self) -> NDArray[np.bool_]:
        """Coefficients (p,) that are 0 because nothing determines them."""
        if self._is_penalized:
            return np.zeros(self.coef_.size, dtype=bool)
        lost = (self.coef_ == 0) & np.isnan(self.standard_error_)
        return np.asarray(lost & ~self._is_fixed)

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
            installed, otherwise Arrow. Columns: ``covariate`` (the index in pandas), ``label`` (if
            covariates have labels), ``coef``, ``hazard_ratio``,
            ``hazard_ratio_lower``, ``hazard_ratio_upper``, ``standard_error``,
            ``robust_standard_error`` (if `is_robust_`), ``z``, ``p``, ``fixed`` (if any is):
            whether the coefficient was held at its value, and ``reference`` (if the data have
            columns of text or categories): the level with which a level is compared.
            Interval, z and p use the robust standard error if `is_robust_`, and are NaN if it is
            not defined. A coefficient that cannot be estimated, because its covariate is constant
            or follows from others, is NaN, too; in `coef_` it is 0.
        """
        check_is_fitted(self, "coef_")
        coef = np.where(self._not_estimated, np.nan, self.coef_)
        columns = {"covariate": np.array(self.covariates_, dtype=object)}
        if self._columns.labels:
            texts = self._columns.texts(self.covariates_)
            columns["label"] = np.array(texts, dtype=object)
        columns |= {"coef": coef, "hazard_ratio": exponentials(coef)}
        error = self.robust_standard_error_ if self._is_robust else self.standard_error_
        lower, upper = wald_interval(self.coef_, error, level)
        columns |= {"hazard_ratio_lower": exponentials(lower)}
        columns |= {"hazard_ratio_upper": exponentials(upper)}
        columns["standard_error"] = self.standard_error_
        if self._is_robust:
            columns["robust_standard_error"] = error
        with np.errstate(divide="ignore", invalid="ignore"):
            z = self.coef_ / error
        columns |= {"z": z, "p": normal_p_value(z)}
        if self._is_fixed.any():
            columns["fixed"] = self._is_fixed
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
        penalized: bool = False,
        replicates: int | None = None,
        seed: int | None = None,
        type: BootstrapIntervalType | None = None,
    ) -> ConfidenceInterval:
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
        ConfidenceInterval
            ``interval["age"]`` is (lower, upper).

        Raises
        ------
        InputError
            * If a name is unknown or given twice, the method does not exist, or the method does not
              use a given argument.
            * For Wald and robust intervals: if the fit is penalised.
            * For profile intervals: if a covariate is penalised, or if the model was pickled or
              saved and has no training data; use `riskset.profile` then.
        NotDefinedError
            For robust intervals of a `Cox` with ``ties="exact"`` or ``firth=True``.

        Notes
        -----
        Limits of profile intervals are exact to 1e-8 in the log likelihood, and infinite if the
        estimate is. They are NaN for covariates that are constant or repeat others, as for Wald
        intervals.
        """
        if method not in METHODS:
            raise InputError.wrong_option("method", method, METHODS)
        _check_used(method, penalized, {"replicates": replicates, "seed": seed, "type": type})
        if method == "profile":
            return self._profiled(parameters, level, penalized)
        if method == "bootstrap":
            replicates = 200 if replicates is None else replicates
            kind: BootstrapIntervalType = "percentile" if type is None else type
            check_interval(replicates, level, kind)
            found = self.bootstrap(replicates, 1 if seed is None else seed, parameters=parameters)
            return found.interval(level, kind)
        if method == "robust":
            self._check_has_robust("a robust interval")
        self._defined(f"a {method} interval" if method == "robust" else "a Wald interval")
        columns = self._positions(parameters)
        errors = self.standard_error_ if method == "wald" else self.robust_standard_error_
        lower, upper = wald_interval(self.coef_[columns], errors[columns], level)
        names = tuple(self.covariates_[j] for j in columns)
        return ConfidenceInterval(method, level, names, lower, upper)

    def _check_has_robust(self, what: str) -> None:
        """Raise an error if the model has no robust variance."""

    def _profiled(
        self, parameters: str | Sequence[str] | None, level: float, penalized: bool
    ) -> ConfidenceInterval:
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
            columns = np.flatnonzero((l1 == 0) & (l2 == 0) & ~self._is_fixed)
            if not columns.size and l1.size:
                raise InputError(
                    "every covariate is penalised, so none has a profile interval.",
                    hint="name the covariate of interest in `unpenalized`, and fit again.",
                )
        if not penalized:
            check_unpenalized(training.design, l1, l2, columns)
        names = tuple(self.covariates_[j] for j in columns)
        if training.solution.penalized_gain is not None:
            lower, upper = firth_intervals(
                training.design, training.loss, training.solution, self.standard_error_, columns,
                level, self.max_iter,
            )  # fmt: skip
            return ConfidenceInterval("profile", level, names, lower, upper)
        source = ProfiledFit(
            training.design, training.loss, training.solution, l1, l2, self.max_iter
        )
        source.check_certified(self.tol)
        lower, upper = warned_intervals(source, columns, level, self.progress)
        return ConfidenceInterval("profile", level, names, lower, upper)

    def _positions(self, parameters: str | Sequence[str] | None) -> Index:
        if parameters is None:
            return np.flatnonzero(~self._is_fixed)
        one = isinstance(parameters, str) or not isinstance(parameters, Iterable)
        names = [str(parameters)] if one else list(parameters)
        where = {name: j for j, name in enumerate(self.covariates_)}
        for name in names:
            if name not in where:
                raise InputError.unknown_name("covariate", str(name), self.covariates_)
        check_once("covariate", names)
        refuse_fixed(self.fixed, names)
        return np.array([where[name] for name in names], dtype=np.int64)

    # ------------------------------------------------------------------------- bootstrap

    def bootstrap(
        self,
        replicates: int = 200,
        seed: int = 1,
        cluster: object = None,
        retune: bool = False,
        *,
        parameters: str | Sequence[str] | None = None,
        within_strata: bool = False,
        engine: str | None = None,
    ) -> Bootstrap:
        """Fit the model to resamples of its data. The model is not changed.

        Each resample draws rows or whole clusters with replacement, as many as the data have. For
        the Fine-Gray model, each resample estimates its own censoring distribution.

        Parameters
        ----------
        replicates : int
            Number of replicates: 200 for standard errors, 1,000 or more for interval limits.
        seed : int
            Replicate k depends only on the seed and k, not on the number of replicates or threads.
        cluster : (n,) labels, optional
            Rows that are drawn together, such as the rows of one person (whose follow-up may be
            split into several rows), or matched sets. Default: the clusters of the fit, otherwise
            rows.
        retune : bool
            Choose the penalty again in each resample, as in the fit (`CoxCV` and `FineGrayCV`
            only). A row that is drawn twice is in one fold. If no penalty can be chosen, for
            example without events, the replicate has the status "no_penalty". Without `retune`, the
            penalty is fixed.
        parameters : str or sequence of str, optional
            Covariates. Default: all without a penalty.
        within_strata : bool
            Draw within the strata of the fit, so that every stratum keeps its size, as R's ``boot``
            with ``strata``. Use this if the design fixed the sizes.
        engine : {"joblib", "dask", "ray"} or None
            Where resamples are fitted; see `CoxCV`. Results are bit-identical.

        Returns
        -------
        Bootstrap

        Raises
        ------
        InputError
            If a covariate is unknown or given twice, if all covariates are penalised and
            `parameters` is not given, if clusters do not match the rows, if the model was pickled
            or saved and has no training data, or, with `retune`, if no resample can be divided into
            the folds of the fit.

        Warns
        -----
        RisksetWarning
            If replicates have no estimate.

        Notes
        -----
        Case weights apply in the resamples: a row of weight 2 is drawn as one row and counts twice
        wherever it is drawn. If weights are numbers of subjects, repeat the rows instead. Rows of
        weight 0 are never drawn. For Efron's method, a row drawn twice is one event of twice the
        weight. Estimates of penalised covariates are biased, so their intervals do not have the
        nominal coverage. The acceleration of BCa intervals uses the penalty of the fit.

        Examples
        --------
        >>> import riskset as rs
        >>> model = rs.Cox(rs.L1(20.0, unpenalized=["swang1"])).fit(rs.load_rhc())
        >>> found = model.bootstrap(replicates=100)
        >>> found
        Bootstrap(100 replicates of 'swang1': 100 converged; 5,735 rows drawn, seed 1)
        >>> lower, upper = found.interval()["swang1"]
        >>> round(lower, 2), round(float(found.coef[0]), 2), round(upper, 2)
        (0.06, 0.13, 0.22)
        """
        check_is_fitted(self, "coef_")
        self._check_can_repeat("a bootstrap")
        _check_numbers(replicates, seed)
        check_engine(engine)
        columns = self._positions(parameters)
        training = self._training_for_bootstrap(retune)
        l1, l2 = self._strengths(training.design)
        free = (l1 == 0) & (l2 == 0) & ~self._is_fixed
        if parameters is None:
            columns = np.flatnonzero(free)
        _check_chosen(columns, free)
        resampling, unit = _resampling(training, cluster, within_strata)
        problem, solution = Problem.prepare(training.design, training.loss), training.solution
        common: Any = {"replicates": int(replicates), "seed": int(seed)}
        choose = training.choose if retune else None
        if choose is not None:
            check_divisible(problem.loss.outcome, choose.divide, resampling, **common)
        common["max_iter"] = self.max_iter
        with workers(engine, problem.loss.runtime.n_threads) as common["workers"]:
            if choose is not None:
                found = retuned_estimates(problem, choose, resampling, columns, **common)
            else:
                found = resample_estimates(problem, solution, l1, l2, resampling, columns, **common)
            estimates = self._reported(found, int(replicates))
        names = tuple(training.design.names[j] for j in columns)
        result = Bootstrap(
            names=names,
            coef=np.where((solution.aliased & free)[columns], np.nan, solution.coef[columns]),
            replicates=np.array([e.coef for e in estimates]),
            statuses=tuple(e.status for e in estimates),
            seed=int(seed),
            n_units=resampling.n_units,
            unit=unit,
            penalties=tuple(e.penalty for e in estimates) if retune else None,
            reasons=tuple(e.reason for e in estimates),
            _accelerate=partial(acceleration, problem, solution, l2, free, resampling, columns),
            labels=self._columns.texts(names),
            _library=self._library,
        )
        _warn_of_failures(result)
        return result

    def _reported(
        self, estimates: Iterator[ReplicateEstimate], expected: int
    ) -> list[ReplicateEstimate]:
        """All of them, with a progress bar while they are made."""
        out: list[ReplicateEstimate] = []
        started = time.monotonic()
        with ProgressBar("Bootstrap", self.progress) as bar:
            for estimate in estimates:
                out.append(estimate)
                share = len(out) / expected
                left = time_left(started, share)
                bar.update(share, f"{len(out):,} of {expected:,}, about {left} left")
        return out

    def _training_for_bootstrap(self, retune: bool) -> Training:
        if not self._fitted.has_training:
            raise NotDefinedError(
                "a bootstrap needs the training data, which a model that was saved, pickled or "
                "fitted in blocks does not carry.",
                hint="fit again, and bootstrap before saving.",
            )
        if retune and self._fitted.training.choose is None:
            raise InputError(
                f"`retune=True` repeats how a penalty was chosen, but {type(self).__name__} was "
                "fitted with the penalty that it was given.",
                hint="use CoxCV or FineGrayCV, or leave it out.",
            )
        return self._fitted.training

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
        weighted: bool | None = None,
        collapse: bool = False,
    ) -> Rows | Matrix | SchoenfeldResiduals | ScaledSchoenfeldResiduals:
        r"""Compute residuals of rows or clusters, in their order.

        Parameters
        ----------
        X, y, sample_weight, strata, offset, cluster
            As for `fit`, usually the data of the fit. For other data, the coefficients are those of
            the fit, but the baseline hazard is estimated from the given data.
        kind : str
            "martingale": observed minus expected events of a row. "deviance": the same on a scale
            on which they are nearly symmetric. "score": the part of a row in the derivative of the
            log likelihood. "schoenfeld": the covariates of an event minus their mean in its risk
            set. "scaled_schoenfeld": :math:`\hat\beta + m V^{-1} (x_i - \bar x)`, what an event
            says about the coefficients at its time, as those of `test_proportionality` for the time
            as it is. "dfbeta": the change of the coefficients that a row makes, to first order.
            "dfbetas": the same in units of the standard errors from the inverse information.
        weighted : bool, optional
            Multiply by the case weights. Default: as in R, for "dfbeta" and "dfbetas" only.
        collapse : bool
            Sum over the rows of each cluster, such as the rows of a person, which `cluster` or the
            data name. Deviance residuals are then those of the events of a cluster together.

        Returns
        -------
        (n,) float64; (n, p) float64 for "score", "dfbeta" and "dfbetas"; `SchoenfeldResiduals` or
        `ScaledSchoenfeldResiduals` (one row per event) for "schoenfeld" and "scaled_schoenfeld".
        With `collapse`, there is one row per cluster, in the sorted order of their labels. In the
        Fine-Gray model, means over risk sets and expected events include rows after a competing
        event, with the weight G(t-) / G(time-), and "dfbeta" includes what a row does to the
        estimate of the censoring distribution.

        Raises
        ------
        InputError
            If the kind is unknown or does not go with `weighted` or `collapse`, there are no
            clusters to collapse, or the kind needs an unpenalised fit with finite estimates.

        References
        ----------
        Therneau, Grambsch & Fleming (1990), Biometrika 77, 147-160, doi:10.1093/biomet/77.1.147.
        Schoenfeld (1982), Biometrika 69, 239-241, doi:10.1093/biomet/69.1.239.
        """
        self._check_has_row_scores("a residual")
        check_residual(kind, weighted, collapse)
        if kind in ("scaled_schoenfeld", *INFLUENCES):
            self._defined(f"the residual {kind!r}")
            if not np.isfinite(self.coef_).all():
                raise NotDefinedError(
                    f"the residual {kind!r} is not defined for a fit with infinite estimates.",
                    hint="leave out the covariates whose estimates are infinite.",
                )
        loss, design, eta = self._evaluated(X, y, sample_weight, strata, offset, cluster)
        if kind == "schoenfeld":
            return residual.schoenfeld_residuals(loss, design, eta)
        if kind == "scaled_schoenfeld":
            coef = self.coef_.copy()
            return scaled_schoenfeld_residuals(loss, design, eta, coef, "identity")
        estimated = np.flatnonzero(~(self._not_estimated | self._is_fixed))
        return residuals_of_rows(kind, (loss, design, eta), estimated, weighted, collapse)

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
            One test per covariate, and a global test; `riskset.plot.schoenfeld` draws it.

        Raises
        ------
        InputError
            If the fit is penalised.

        References
        ----------
        Grambsch and Therneau (1994), Biometrika 81, 515-526, doi:10.1093/biomet/81.3.515.
        """
        self._defined("the test of proportional hazards")
        self._check_has_row_scores("the test of proportional hazards")
        loss, design, eta = self._evaluated(X, y, sample_weight, strata, offset, cluster)
        test = proportionality_test(loss, design, eta, transform, robust=robust)
        residuals = partial(
            scaled_schoenfeld_residuals, loss, design, eta, self.coef_.copy(), transform
        )
        return replace(test, labels=self._columns.texts(test.names), _residuals=residuals)

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


def _check_used(method: str, penalized: bool, resampling: Mapping[str, object]) -> None:
    """Refuse arguments that another method looks at."""
    given = [(name, "bootstrap") for name, value in resampling.items() if value is not None]
    given += [("penalized", "profile")] if penalized else []
    for name, user in given:
        if method != user:
            raise InputError(
                f"`{name}` was given, but it is for `method={user!r}` alone, and `method` is "
                f"{method!r}.",
                hint="leave one of them out.",
            )


def _check_numbers(replicates: object, seed: object) -> None:
    if not (is_count(replicates) and replicates >= 2):
        raise InputError(
            f"`replicates` must be a whole number of at least 2, but it is {replicates!r}.",
            hint="200 are enough for standard errors, 1,000 for intervals.",
        )
    if not (is_number(seed) and float(seed).is_integer() and seed >= 0):
        raise InputError(
            f"`seed` must be a whole number of at least 0, but it is {seed!r}.",
            hint="the same seed gives the same resamples.",
        )


def _check_chosen(columns: Index, free: Any) -> None:
    if not columns.size:
        what = "every covariate is penalised" if free.size else "there are no covariates"
        raise InputError(
            f"{what}, so there is no coefficient to bootstrap.",
            hint="name the covariate of interest in `unpenalized` and fit again, or name "
            "covariates in `parameters` to see how penalised estimates vary.",
        )


def _resampling(
    training: Training, cluster: object, within_strata: bool
) -> tuple[ResampledUnits, str]:
    outcome = training.loss.outcome
    codes = outcome.cluster
    if cluster is not None:
        places = Places({"cluster": "`cluster`"})
        codes = as_clusters(cluster, outcome.n_rows, places, outcome.weight)[0]
    resampling = ResampledUnits.of(outcome, codes, within_strata=bool(within_strata))
    return resampling, "row" if codes is None else "cluster"


def _warn_of_failures(result: Bootstrap) -> None:
    if not result.n_failed:
        return
    lost = np.isnan(result.replicates).sum(axis=0)
    worst = int(np.argmax(lost))
    counts = [f"{n:,} {s}" for s, n in result.status_counts.items() if s in FAILED]
    first = next((k for k, reason in enumerate(result.reasons) if reason), None)
    why = "" if first is None else f" No penalty can be chosen in replicate {first}, for example: "
    warn(
        f"{lost[worst]:,} of {len(result.statuses):,} replicates have no estimate of "
        f"{result.names[worst]!r} ({', '.join(counts)}); bias, standard error and intervals are "
        f"made of the others.{why}{'' if first is None else result.reasons[first]}",
        "a covariate that resamples often lose has too few subjects for a bootstrap; a penalty or "
        "a profile-likelihood interval does not have this problem."
        if first is None
        else "fewer folds leave fewer out; without `retune` the penalty of the fit is kept.",
    )
