"""Cox regression with effects that are functions of time."""

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError, NotDefinedError, counted
from riskset._types import Features, Index, Matrix, Rows, is_count, is_number
from riskset.data.checks import are_counts
from riskset.data.design import Design
from riskset.data.frame import data_frame
from riskset.data.outcome import Outcome
from riskset.data.start_stop.time_interactions import TimeFunction, settled, time_functions
from riskset.estimators._input import output_library
from riskset.estimators._prediction import checked_times
from riskset.estimators.convergence import ConvergenceWarning
from riskset.estimators.cox import Cox
from riskset.infer.variance import cluster_sums, generalized_inverse
from riskset.infer.wald import ChiSquareTest, exponentials, normal_p_value, wald_interval
from riskset.model.baseline import Baseline
from riskset.model.time_effects import TimeEffectsLikelihood, TimeTerm
from riskset.solve.result import Status
from riskset.solve.time_effects import TimeEffectsSolution, fit_time_effects

__all__ = ["TimeEffectCox"]

MAX_DENSE_NUMBERS = 1 << 28
"""Covariates are dense here: 2 GB at most."""
MAX_PREDICTED_NUMBERS = 1 << 22
"""Hazard increments of new rows that are held at a time (32 MB)."""
TIES = ("breslow", "efron")


class TimeEffectCox(BaseEstimator):  # type: ignore[misc]
    r"""Cox regression in which effects of covariates are functions of time.

    The hazard of a row with covariates x in stratum s is

    .. math:: \lambda_s(t) \, \exp\Big(x'\beta + offset + \sum_m x_{j_m} g_m(t) \, \gamma_m\Big)

    so that the log hazard ratio of the covariate j at time t is :math:`\beta_j + g(t) \gamma`. The
    estimate is exact, as that of R's ``coxph`` with ``tt``, but no row is split at the event times:
    a million rows take seconds.

    Parameters
    ----------
    effects : mapping of str to function
        Covariates, and how their effects depend on time: ``"log"``, ``"identity"``, a callable that
        takes an array of times and returns one of the same shape, or a sequence of times at which
        the effect changes, as for `time_interactions`.
    ties : {"breslow", "efron"}
        Method for tied events.
    cause, reference, covariate_labels
        As for `Cox`.
    tol : float
        Upper bound of `kkt_`.
    max_iter : int
        Maximum number of Newton steps.

    Attributes
    ----------
    coef_ : (p + q,) float64
        Coefficients of the covariates, and of their products with functions of time.
    covariates_ : tuple of str
        Their names, such as ``age`` and ``age:log(t)``.
    status_ : {"converged", "max_iter"}
    kkt_ : float
        Largest slope of the log likelihood, each divided by the root of its information, relative
        to the largest at 0 (or to the root of the mean weight of an event, if that is larger).
    log_likelihood_, null_log_likelihood_ : float
        Log likelihood at the estimate, and with all coefficients 0.
    n_iter_, n_rows_, n_events_ : int
    variance_, standard_error_
        From the inverse information.
    is_robust_ : bool
        Whether `summary` and tests use the robust variance: with clusters, and with weights that
        are not whole numbers.

    Notes
    -----
    Sums over risk sets take O(n K p) time for n rows and p covariates. K is the number of values of
    a covariate with up to 24 values, and about 20 polynomials otherwise, whose error is below the
    rounding of numbers. If several covariates have effects that change, their K are multiplied:
    three covariates with many values have thousands of terms, and are refused if the sums would not
    fit into memory. If the hazard ratio between the ends of the range of a covariate exceeds 6e7 at
    some time, the range is cut into pieces with 20 polynomials each, because a single sum would
    lose half of its digits.

    Penalties, residuals and tests of proportional hazards are not available. Infinite estimates are
    not proven: the fit ends with "max_iter". For these, fit `Cox` to the rows of
    `time_interactions`, which suit thousands of people. There is no `save`, but a pickled model can
    predict. It has the robust variance only if that was computed before pickling. A lambda cannot
    be pickled; other functions can.

    See Also
    --------
    riskset.time_interactions : rows with covariates times functions of time.

    References
    ----------
    Cox (1972), Journal of the Royal Statistical Society B 34, 187-220.
    Therneau and Grambsch (2000), Modeling Survival Data, section 6.5,
    doi:10.1007/978-1-4757-3294-8.

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.simulate_cox(500, 2, 0.5, 1)
    >>> y = rs.Surv(cohort.time, cohort.event)
    >>> model = rs.TimeEffectCox({"x0": "log"}).fit(cohort.X, y)
    >>> model.status_, model.covariates_
    ('converged', ('x0', 'x1', 'x0:log(t)'))
    """

    def __init__(
        self,
        effects: Mapping[str, TimeFunction],
        *,
        ties: str = "breslow",
        cause: int | str | None = None,
        reference: Mapping[str, object] | None = None,
        covariate_labels: object = None,
        tol: float = 1e-8,
        max_iter: int = 50,
    ) -> None:
        self.effects = effects
        self.ties = ties
        self.cause = cause
        self.reference = reference
        self.covariate_labels = covariate_labels
        self.tol = tol
        self.max_iter = max_iter

    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
        cluster: object = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X, y, sample_weight, strata, offset, cluster
            As for `Cox.fit`.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If an argument or the data are not valid, a function of time is not finite at a time of
            an event, or a covariate or its product follows from others.

        Warns
        -----
        ConvergenceWarning
            If `status_` is not "converged".
        """
        self._check()
        reader = Cox(
            cause=self.cause, reference=self.reference, covariate_labels=self.covariate_labels
        )
        data = reader._read(X, y, sample_weight, strata, offset, cluster, None)
        design, outcome = data.design, data.outcome
        effects = {name: settled(name, g) for name, g in self.effects.items()}
        functions = [
            (design.index_of(name), f"{name}:{label}", g)
            for name, function in effects.items()
            for label, g in time_functions(name, function)
        ]
        x, center, scale = _standardized(design, outcome)
        likelihood = TimeEffectsLikelihood(outcome, x, efron=self.ties == "efron")
        values = [g(likelihood.time) for _, _, g in functions]
        size = np.array([_size(one) for one in values])
        terms = [
            TimeTerm(column, one / unit)
            for (column, _, _), one, unit in zip(functions, values, size, strict=True)
        ]
        names = (*design.names, *(label for _, label, _ in functions))
        _refuse_shared_names(names)
        try:
            solution = fit_time_effects(
                likelihood, terms, tol=self.tol, max_iter=int(self.max_iter)
            )
        except OverflowError as error:
            raise InputError(
                "the offsets or weights of rows are too far apart: beside the largest hazard, "
                "the others are lost to rounding.",
                hint="an offset is on the scale of the log hazard; check the units.",
                argument="offset",
            ) from error
        _refuse_repeats(solution, names)
        columns = np.array([column for column, _, _ in functions], dtype=np.int64)
        self._scale = np.concatenate([scale, scale[columns] * size])
        self._columns_of_terms, self._names = columns, design.names
        self._effects = effects
        self._reader, self._center = reader, center
        reader.coef_ = solution.coef[: design.n_features] / scale
        reader._columns = data.columns
        self._keep(solution, likelihood, values, names)
        is_count_weight = bool(are_counts(outcome.weight).all())
        self.is_robust_ = outcome.cluster is not None or not is_count_weight
        self._training = likelihood, terms, solution, outcome.cluster, outcome.n_rows
        self._strata, self._library = outcome.strata, output_library(X)
        self.n_rows_, self.n_events_ = outcome.n_rows, outcome.n_events
        self.n_features_in_ = reader.n_features_in_
        self._warn(stacklevel=3)
        return self

    def _check(self) -> None:
        """Check the parameters that no other layer checks."""
        if not isinstance(self.effects, Mapping) or not self.effects:
            raise InputError(
                "`effects` must be a mapping of covariates to functions of time, but it is "
                f"{self.effects!r}.",
                hint="for example {'age': 'log'}; without any, use `riskset.Cox`.",
            )
        if self.ties not in TIES:
            raise InputError.wrong_option("ties", self.ties, TIES)
        if not (is_number(self.tol) and 0 < self.tol < 1):
            raise InputError(f"`tol` must be between 0 and 1, but it is {self.tol!r}.")
        if not is_count(self.max_iter):
            raise InputError(
                f"`max_iter` must be a whole number of at least 1, but it is {self.max_iter!r}."
            )

    def _warn(self, stacklevel: int) -> None:
        """Warn if the fit did not converge."""
        if self.status_ == "converged":
            return
        reached = (
            f"{self.kkt_:.2g} > tol {self.tol:.2g}"
            if self.kkt_ > self.tol
            else f"{self.kkt_:.2g}, which keeps falling as on the way to an infinite estimate"
        )
        warnings.warn(
            f"stopped after {counted(self.n_iter_, 'step')} with relative residual {reached}. An "
            "estimate may be infinite.\n"
            "Hint: fit `riskset.Cox` to rows of `riskset.time_interactions`, which proves "
            "infinite estimates.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )

    def _keep(
        self,
        solution: TimeEffectsSolution,
        likelihood: TimeEffectsLikelihood,
        values: list[Rows],
        names: tuple[str, ...],
    ) -> None:
        self.coef_ = solution.coef / self._scale
        self.covariates_ = names
        self.status_: Status = solution.status
        self.kkt_, self.n_iter_ = solution.kkt, solution.n_iter
        self.log_likelihood_ = solution.log_likelihood
        self.null_log_likelihood_ = solution.null_log_likelihood
        self._information = solution.information
        inverse = generalized_inverse(solution.information)
        self._is_identified = inverse.identified
        self.variance_: Matrix = self._in_units(inverse.matrix)
        self._inverse = inverse.matrix
        self._robust: Matrix | None = None
        self._log_hazard = solution.log_hazard
        self._time, self._stratum_ptr = likelihood.time, likelihood.stratum_ptr
        self._values = values

    def _in_units(self, variance: Matrix) -> Matrix:
        """A variance of the fit in the user's units; NaN where the data determine no estimate."""
        with np.errstate(over="ignore"):
            found = variance / self._scale / self._scale[:, None]
        lost = ~self._is_identified
        found[lost] = found[:, lost] = np.nan
        return np.asarray(found)

    def _error_in_units(self, variance: Matrix) -> Features:
        """Roots of its diagonal in these units, in which the squares may be beyond any number."""
        found = np.sqrt(variance.diagonal()) / self._scale
        found[~self._is_identified] = np.nan
        return np.asarray(found)

    def _error_of(self, contrast: Matrix, variance: Matrix) -> Rows:
        """Standard errors of combinations (m, p + q); NaN where one has no estimate."""
        moved = contrast / self._scale
        size = np.abs(moved).max(axis=1, initial=0.0)
        moved /= np.where(size > 0.0, size, 1.0)[:, None]
        error = size * np.sqrt(np.einsum("mp,pq,mq->m", moved, variance, moved).clip(0.0))
        error[(contrast[:, ~self._is_identified] != 0).any(axis=1)] = np.nan
        return np.asarray(error)

    # ------------------------------------------------------------------------- inference

    @property
    def standard_error_(self) -> Features:
        """Standard errors from the inverse information (p + q,)."""
        check_is_fitted(self, "coef_")
        return self._error_in_units(self._inverse)

    @property
    def robust_variance_(self) -> Matrix:
        """Robust covariance (p + q, p + q) for independent rows or clusters; see `Cox`.

        NotDefinedError if the model was pickled.
        """
        return self._in_units(self._robust_variance)

    @property
    def _robust_variance(self) -> Matrix:
        """The robust variance of the standardised covariates; of estimable directions alone."""
        check_is_fitted(self, "coef_")
        if self._robust is None:
            if self._training is None:
                raise NotDefinedError(
                    "the robust variance needs the training data, which a pickled model does not "
                    "carry.",
                    hint="ask for it before pickling, or fit again.",
                )
            likelihood, terms, solution, cluster, n_rows = self._training
            p = likelihood.x.shape[1]
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                rows, scores = likelihood.scores(solution.coef[:p], solution.coef[p:], terms)
            whole = np.zeros((n_rows, scores.shape[1]))
            whole[rows] = scores
            moved = cluster_sums(whole, cluster) @ generalized_inverse(solution.information).matrix
            self._robust = moved.T @ moved
        return np.asarray(self._robust)

    @property
    def robust_standard_error_(self) -> Features:
        """Standard errors from the robust variance (p + q,)."""
        return self._error_in_units(self._robust_variance)

    def _uses_robust(self, robust: bool | None) -> bool:
        check_is_fitted(self, "coef_")
        return self.is_robust_ if robust is None else robust

    def summary(self, *, level: float = 0.95) -> Any:
        """Return a data frame with one row per coefficient, with the columns of `Cox.summary`.

        Parameters
        ----------
        level : float
            Confidence level of the intervals of hazard ratios.
        """
        robust = self._uses_robust(None)
        error = self.robust_standard_error_ if robust else self.standard_error_
        lower, upper = wald_interval(self.coef_, error, level)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = self.coef_ / error
        columns = {
            "covariate": np.array(self.covariates_, dtype=object),
            "coef": self.coef_,
            "hazard_ratio": exponentials(self.coef_),
            "hazard_ratio_lower": exponentials(lower),
            "hazard_ratio_upper": exponentials(upper),
            "standard_error": self.standard_error_,
        }
        if robust:
            columns["robust_standard_error"] = error
        return data_frame(columns | {"z": z, "p": normal_p_value(z)}, self._library)

    def effect(
        self,
        covariate: str,
        times: object,
        *,
        by: float = 1.0,
        level: float = 0.95,
        robust: bool | None = None,
    ) -> Any:
        r"""Return the effect of a covariate at given times, with its interval.

        Parameters
        ----------
        covariate : str
            One of the covariates.
        times : number or (m,) numbers
            In the time unit of the fit.
        by : float
            Difference of the covariate that is compared.
        level : float
            Coverage of the pointwise intervals.
        robust : bool, optional
            Use the robust variance; default: `is_robust_`.

        Returns
        -------
        data frame
            Columns ``time``, ``coef``, :math:`by \, (\beta_j + \sum_m g_m(t) \gamma_m)`,
            ``standard_error``, ``hazard_ratio``, ``hazard_ratio_lower``, ``hazard_ratio_upper``.

        Examples
        --------
        >>> import riskset as rs
        >>> model = rs.TimeEffectCox({"swang1": [30]}).fit(rs.load_rhc())
        >>> found = model.effect("swang1", [10, 100])
        >>> found["hazard_ratio"].round(2).tolist()  # the first 30 days, and later
        [1.33, 1.02]
        """
        uses_robust = self._uses_robust(robust)
        if covariate not in self._names:
            raise InputError.unknown_name("covariate", str(covariate), self._names)
        if not (is_number(by) and np.isfinite(by)):
            raise InputError(f"`by` must be a finite number, but it is {by!r}.")
        at = checked_times(times)
        j, p = self._names.index(covariate), len(self._names)
        contrast = np.zeros((at.size, self.coef_.size))
        contrast[:, j] = by
        place = p
        for name, function in self._effects.items():
            for _, g in time_functions(name, function):
                if name == covariate:
                    contrast[:, place] = by * g(at)
                place += 1
        with np.errstate(over="ignore", invalid="ignore"):
            coef = contrast @ self.coef_
        error = self._error_of(contrast, self._robust_variance if uses_robust else self._inverse)
        lower, upper = wald_interval(coef, error, level)
        columns = {
            "time": at,
            "coef": coef,
            "standard_error": error,
            "hazard_ratio": exponentials(coef),
            "hazard_ratio_lower": exponentials(lower),
            "hazard_ratio_upper": exponentials(upper),
        }
        return data_frame(columns, self._library)

    def test_constant_effects(
        self, covariate: str | None = None, *, robust: bool | None = None
    ) -> ChiSquareTest:
        r"""Test that effects do not depend on time, of one covariate or of all (Wald).

        .. math:: \gamma' (I_{\gamma\gamma} - I_{\gamma\beta} I_{\beta\beta}^- I_{\beta\gamma})
            \gamma

        is chi-square with as many degrees of freedom as the matrix has rank, where
        :math:`\beta` are all other coefficients. The robust test has the robust variance of the
        same combinations of :math:`\gamma`.

        Parameters
        ----------
        covariate : str, optional
            Default: all covariates whose effects are functions of time.
        robust : bool, optional
            Use the robust variance; default: `is_robust_`.
        """
        check_is_fitted(self, "coef_")
        own, p = np.arange(self._columns_of_terms.size), len(self._names)
        if covariate is not None:
            if covariate not in self._effects:
                raise InputError.unknown_name("covariate", str(covariate), list(self._effects))
            own = np.flatnonzero(self._columns_of_terms == self._names.index(covariate))
        own = p + own
        gamma = self.coef_[own] * self._scale[own]
        inverse = generalized_inverse(*_left_of(self._information, own))
        value = inverse.contrasts.T @ gamma
        if not self._uses_robust(robust):
            return ChiSquareTest(float(value @ value), inverse.rank)
        part = self._robust_variance[np.ix_(own, own)]
        inverse = generalized_inverse(inverse.contrasts.T @ part @ inverse.contrasts)
        return ChiSquareTest(inverse.form(value), inverse.rank)

    # ----------------------------------------------------------------------- predictions

    def predict_cumulative_hazard_function(
        self, X: object, times: object, *, strata: object = None, offset: object = None
    ) -> Matrix:
        r"""Predict the cumulative hazard at given times.

        .. math:: H(t \mid x) = \sum_{u \le t} d\hat\Lambda_s(u) \,
            \exp\Big(x'\beta + offset + \sum_m x_{j_m} g_m(u) \gamma_m\Big)

        Parameters
        ----------
        X : as for `fit` (k, p)
        times : number or (m,) numbers
            In the time unit of the fit, in any order.
        strata, offset
            As for `Cox.predict_survival_function`.

        Returns
        -------
        (k, m) float64
            0 before the first event time of the stratum, constant after the last.
        """
        check_is_fitted(self, "coef_")
        at = checked_times(times)
        design, strata, offsets, places = self._reader._read_new(X, strata, offset)
        log_steps = self._log_hazard
        base = Baseline(self._strata, self._stratum_ptr, self._time, log_steps, 0.0)
        codes = base.codes_of(strata, design.n_rows, places)
        out = np.zeros((design.n_rows, at.size))
        by_stratum = np.argsort(codes, kind="stable")
        present, begins = np.unique(codes[by_stratum], return_index=True)
        parts = np.split(by_stratum, begins)[1:]
        for code, rows in zip(present.tolist(), parts, strict=True):
            own = slice(int(self._stratum_ptr[code]), int(self._stratum_ptr[code + 1]))
            seen = np.searchsorted(self._time[own], at, side="right")
            size = max(1, MAX_PREDICTED_NUMBERS // max(1, own.stop - own.start))
            for block in (rows[a : a + size] for a in range(0, rows.size, size)):
                x = design.to_dense(rows=block) - self._center
                exponent = (x @ self.coef_[: x.shape[1]] + offsets[block])[:, None] + log_steps[own]
                of_terms = zip(
                    self._columns_of_terms, self.coef_[x.shape[1] :], self._values, strict=True
                )
                for column, gamma, values in of_terms:
                    exponent += np.outer(x[:, column], gamma * values[own])
                hazard = np.cumsum(exponentials(exponent), axis=1)
                out[block] = np.column_stack([np.zeros(block.size), hazard])[:, seen]
        return out

    def predict_survival_function(
        self, X: object, times: object, *, strata: object = None, offset: object = None
    ) -> Matrix:
        """Predict the probability (k, m) of no event by given times.

        The arguments are those of `predict_cumulative_hazard_function`.
        """
        hazard = self.predict_cumulative_hazard_function(X, times, strata=strata, offset=offset)
        return np.asarray(np.exp(-hazard))

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_training" in state:
            state["_training"] = None
        return state


def _standardized(design: Design, outcome: Outcome) -> tuple[Matrix, Features, Features]:
    """Dense columns with mean 0 and deviation 1 over the rows with weight, and what was taken."""
    if design.n_rows * design.n_features > MAX_DENSE_NUMBERS:
        raise InputError(
            f"{design.n_rows:,} rows of {design.n_features:,} covariates are too many for effects "
            f"that are functions of time, which need them as {MAX_DENSE_NUMBERS:,} numbers at "
            "most.",
            hint="leave covariates out, or give their part of the linear predictor as `offset`.",
        )
    x = design.to_dense()
    counts = outcome.weight > 0
    center = x[counts].mean(axis=0)
    x -= center
    largest = np.abs(x[counts]).max(axis=0, initial=0.0)
    largest = np.where(largest > 0, largest, 1.0)
    deviation = np.sqrt(((x[counts] / largest) ** 2).mean(axis=0)) * largest
    scale = np.where(deviation > 0, deviation, 1.0)
    x /= scale
    return x, center, scale


def _refuse_shared_names(names: tuple[str, ...]) -> None:
    """Refuse a covariate with the name of a product."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"{name!r} is a covariate, and what its product with a function of time would be "
                "called.",
                hint="rename or leave out the covariate.",
            )


def _refuse_repeats(solution: TimeEffectsSolution, names: tuple[str, ...]) -> None:
    """Refuse coefficients that the data do not determine."""
    if not solution.repeats.any():
        return
    lost = [names[j] for j in np.flatnonzero(solution.repeats)]
    raise InputError(
        f"{', '.join(map(repr, lost[:5]))} cannot be estimated: constant within every risk set, or "
        "a combination of the others.",
        hint="leave out covariates or functions; for example, a step needs events up to its time "
        "and after it.",
    )


def _size(values: Rows) -> float:
    """The largest size of a function of time, by which it is divided for the fit."""
    return float(np.abs(values).max(initial=0.0)) or 1.0


def _left_of(information: Matrix, own: Index) -> tuple[Matrix, Features]:
    """Information of some coefficients if the others are estimated too, and what it is less than.

    That is a Schur complement.
    """
    other = np.setdiff1d(np.arange(information.shape[0]), own)
    whole, cross = information[np.ix_(own, own)], information[np.ix_(other, own)]
    lost = generalized_inverse(information[np.ix_(other, other)]).basis.T @ cross
    return whole - lost.T @ lost, whole.diagonal()
