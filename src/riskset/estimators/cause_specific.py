"""Cox models of all causes, and the cumulative incidence that follows from them."""

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError
from riskset._types import AnyArray, Matrix
from riskset.curves.followup import Followup
from riskset.curves.intervals import ProbabilityIntervalType, check_interval_type
from riskset.data.causes import named_causes
from riskset.data.checks import Places
from riskset.data.dataset import Dataset
from riskset.data.frame import data_frame
from riskset.estimators._input import lift, output_library, read_covariates
from riskset.estimators._parameters import PenaltyParameters
from riskset.estimators._prediction import checked_times
from riskset.estimators._prediction_intervals import CenteredCovariates, given_times
from riskset.estimators._time_lost import (
    averaged_areas,
    checked_ends,
    predicted_areas,
    row_shares,
)
from riskset.estimators.cox import Cox
from riskset.estimators.predictions import (
    Predictions,
    PredictionVariance,
    check_kind,
    check_variance,
    limits,
)
from riskset.infer.functionals import functional_predictions
from riskset.infer.hazard_sensitivities import JointHazards
from riskset.infer.predicted_hazard import PredictedRows
from riskset.infer.wald import check_level
from riskset.model.baseline import Baseline
from riskset.model.cox import Ties
from riskset.model.incidence import (
    functions_of_time,
    incidence_from_hazards,
    without_event,
)
from riskset.model.penalty import Penalty

__all__ = ["CauseSpecificCox"]

CauseSpecificKind = Literal["cumulative_incidence", "survival"]


class CauseSpecificCox(PenaltyParameters):
    r"""Cause-specific Cox regression: one Cox model per cause, on the same covariates.

    The hazard of cause k is :math:`\lambda_k(t) \, e^{x'\beta_k}`. Its likelihood censors other
    causes. A coefficient describes the rate among rows without any event so far. The risk of a
    cause depends on the hazards of all causes; `predict_cumulative_incidence` computes it.

    Parameters
    ----------
    penalty : L1, L2, ElasticNet, None, or dict of cause to any of these
        One penalty for all causes, or one per cause.
    ties : {"breslow", "efron", "exact"}
    causes : sequence of int or str, optional
        Event codes or labels. Default: all that occur. Predicted risks are correct only if all
        causes are included.
    reference, covariate_labels, device, n_threads, tol, max_iter, solver, progress
        As in `Cox`.

    Attributes
    ----------
    causes_ : (n_causes,) int64 or text
        Event codes, or labels, ascending.
    models_ : dict of int or str to Cox
        The fitted model of each cause.
    status_ : dict of int or str to str
        Status of each cause; see `Cox`.
    n_features_in_, feature_names_in_
        Columns of X at the fit.

    See Also
    --------
    riskset.FineGray : a model of the cumulative incidence.

    References
    ----------
    Prentice et al. (1978), Biometrics 34, 541-554, doi:10.2307/2530374.

    Examples
    --------
    >>> import numpy as np
    >>> import riskset as rs
    >>> X = np.array([[0.0], [1.0], [0.5], [2.0], [1.5], [0.2]])
    >>> y = rs.Surv([3.0, 1.0, 4.0, 2.0, 5.0, 6.0], [1, 2, 2, 1, 1, 0])
    >>> model = rs.CauseSpecificCox(rs.L2(1.0)).fit(X, y)
    >>> model.status_
    {1: 'converged', 2: 'converged'}
    >>> model.predict_cumulative_incidence(X[:2], [2.0, 5.0], cause=1).shape
    (2, 2)
    """

    causes: Any

    def __init__(
        self,
        penalty: Penalty | Mapping[int | str, Penalty | None] | None = None,
        *,
        ties: Ties = "breslow",
        causes: Any = None,
        reference: Mapping[str, object] | None = None,
        covariate_labels: object = None,
        device: str = "auto",
        n_threads: int | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        solver: str = "newton",
        progress: bool | None = None,
    ) -> None:
        self._set(locals())

    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
        cluster: object = None,
    ) -> Self:
        """Fit the model of each cause.

        Parameters
        ----------
        X, y, sample_weight, strata, offset, cluster
            As for `Cox.fit`. `y` is 0 for censored and a whole number for each cause.

        Returns
        -------
        self

        Raises
        ------
        InputError
            As for `Cox.fit`, or if there are no events, or `penalty` contains other causes.
        """
        design, columns = read_covariates(self, X, None)
        causes = _causes(*_events(X, y, sample_weight), self.causes)
        penalties = self._penalties(causes)
        models = {}
        for cause in causes.tolist():
            model = self._model(penalties[cause], cause)
            # The covariates were read once, and all causes share them.
            table = X if isinstance(X, Dataset) else design
            model.fit(table, y, sample_weight, strata, offset, cluster)
            # Each takes new rows in the form of X.
            model._columns, model._library = columns, output_library(X)
            model._take_feature_names(self)
            models[cause] = model
        self.causes_ = causes
        self.models_ = models
        self.status_ = {cause: model.status_ for cause, model in models.items()}
        self._columns = columns
        self._library = output_library(X)
        return self

    def _model(self, penalty: Penalty | None, cause: int | str) -> Cox:
        shared = self.get_params(deep=False)
        for name in ("causes", "reference", "covariate_labels"):  # the covariates have been read
            del shared[name]
        return Cox(**(shared | {"penalty": penalty, "cause": cause}))

    def _penalties(self, causes: AnyArray) -> dict[int | str, Penalty | None]:
        if not isinstance(self.penalty, Mapping):
            return dict.fromkeys(causes.tolist(), self.penalty)
        if set(self.penalty) != set(causes.tolist()):
            raise InputError(
                f"`penalty` must have one entry for each cause ({_listed(causes)}), but it has "
                f"{', '.join(map(repr, self.penalty)) or 'none'}.",
                hint="give None to a cause that is not to be penalised.",
            )
        return {cause: self.penalty[cause] for cause in causes.tolist()}

    def predict_cumulative_incidence(
        self,
        X: object,
        times: object = None,
        cause: int | str | None = None,
        *,
        strata: object = None,
        offset: object = None,
    ) -> AnyArray:
        r"""Predict the cumulative incidence of a cause, with all causes competing.

        .. math:: F_k(t \mid x) = \int_0^t e^{-\sum_j H_j(u- \mid x)} \, dH_k(u \mid x)

        is the product integral over the jumps of the Breslow (or Efron) hazards, as in R's survfit
        for multi-state Cox models. For any covariates, it is in [0, 1], increases with t, and adds
        up to 1 with the survival and the other causes.

        Parameters
        ----------
        X : as for `fit` (k, p)
        times : number or (m,) numbers, optional
            In the time unit of the fit, in any order. Default: functions of time.
        cause : int or str, optional
            Default: all of `causes_`.
        strata, offset
            As for `Cox.predict_survival_function`.

        Returns
        -------
        (k, m) float64, or (n_causes, k, m) for all causes
            Without times, (k,) or (n_causes, k) `riskset.StepFunction`.

        Raises
        ------
        InputError
            If the cause or a stratum was not in the fit.
        """
        check_is_fitted(self, "models_")
        position = None if cause is None else self._position(cause)
        baselines, eta, strata, places = self._read_new(X, strata, offset)
        if times is None:
            wanted = range(len(baselines)) if position is None else [position]
            found = [functions_of_time(baselines, eta, k, strata, places) for k in wanted]
            return np.array(found) if position is None else found[0]
        at = checked_times(times)
        incidence = incidence_from_hazards(baselines, eta, at, strata, places)
        return incidence if position is None else incidence[position]

    def _read_new(
        self, X: object, strata: object, offset: object
    ) -> tuple[list[Baseline], NDArray[np.float64], object, Places]:
        """Baselines of all causes, linear predictors (n_causes, k), strata, and their words."""
        first = next(iter(self.models_.values()))
        design, strata, offsets, places = first._read_new(lift(X, self._columns), strata, offset)
        models = self.models_.values()
        eta = np.array([model._read_centred(design, strata, offsets)[0] for model in models])
        return [model._fitted.baseline for model in models], eta, strata, places

    def predict_survival_function(
        self, X: object, times: object = None, *, strata: object = None, offset: object = None
    ) -> AnyArray:
        """Predict the probability (k, m) of no event of any cause by each time.

        Without times, the result is (k,) `riskset.StepFunction`.
        """
        if times is None:
            check_is_fitted(self, "models_")
            baselines, eta, strata, places = self._read_new(X, strata, offset)
            return functions_of_time(baselines, eta, None, strata, places)
        incidence = self.predict_cumulative_incidence(X, times, strata=strata, offset=offset)
        return without_event(incidence)

    def predict_interval(
        self,
        X: object,
        times: object,
        cause: int | str | None = None,
        kind: CauseSpecificKind = "cumulative_incidence",
        *,
        level: float = 0.95,
        interval: ProbabilityIntervalType = "log-log",
        variance: PredictionVariance = "auto",
        given: object = None,
        strata: object = None,
        offset: object = None,
    ) -> Predictions:
        r"""Predict the incidence of a cause, or survival, with standard errors and limits.

        By the delta method of the product integral, with the derivatives of the prediction in every
        increment of every hazard and in the coefficients of all causes. By the inverse information,
        causes are uncorrelated; the robust variance adds up what each row, or cluster, does to the
        models of all causes before it squares.

        Parameters
        ----------
        X : as for `fit` (k, p)
        times : number or (m,) numbers
            In the time unit of the fit, in any order.
        cause : int or str
            One of `causes_`, for the incidence.
        kind : {"cumulative_incidence", "survival"}
            The survival is the probability of no event of any cause.
        level : float
            Coverage of the pointwise intervals.
        interval : str
            Kind of the interval; see `kaplan_meier`.
        variance : {"auto", "model", "robust"}
            As in `Cox.predict_interval`.
        given : number or (k,) numbers, optional
            Condition on no event of any cause by this time.
        strata, offset
            As for `predict_cumulative_incidence`.

        Returns
        -------
        Predictions
            NaN after the last time of follow-up of the row's stratum. Standard errors and limits
            are NaN if an estimate is infinite.

        Raises
        ------
        NotDefinedError
            If a cause is penalised, or the model was pickled.
        InputError
            If an argument is not valid, or a stratum was not in the fit.

        References
        ----------
        Cheng, Fine & Wei (1998), Biometrics 54, 219-228, doi:10.2307/2534009.
        """
        check_kind(kind, get_args(CauseSpecificKind))
        check_interval_type(interval)
        check_level(level)
        check_variance(variance)
        check_is_fitted(self, "models_")
        position = self._asked(cause, kind)
        is_robust = self._checked_variance(variance)
        at = checked_times(times)
        estimate, error = self._with_errors(
            self._new_rows(X, strata, offset), at, position, given, is_robust
        )
        lower, upper = limits(estimate, error, level, interval, is_probability=True)
        return Predictions(
            kind, "time", at, estimate, error, lower, upper, level, interval,
            "robust" if is_robust else "model",
        )  # fmt: skip

    def _asked(self, cause: int | str | None, kind: str) -> int | None:
        """Position of the cause whose incidence is asked for, or None for the survival."""
        if kind == "survival":
            if cause is not None:
                raise InputError(
                    "the survival is that without an event of any cause, but `cause` was given.",
                    hint="leave it out, or ask for kind='cumulative_incidence'.",
                )
            return None
        if cause is None:
            raise InputError(
                f"`cause` is missing (causes: {_listed(self.causes_)}).",
                hint="intervals are predicted for one cause at a time.",
            )
        return self._position(cause)

    def _new_rows(
        self, X: object, strata: object, offset: object
    ) -> tuple[PredictedRows, AnyArray]:
        """New rows, and their linear predictors for each cause (n_causes, k)."""
        models = list(self.models_.values())
        design, strata, offsets, places = models[0]._read_new(
            lift(X, self._columns), strata, offset
        )
        stratum = models[0]._fitted.baseline.codes_of(strata, design.n_rows, places)
        eta = np.array([model._centred(design, offsets) for model in models])
        covariates = CenteredCovariates(design, models[0]._fitted.center)
        return PredictedRows(eta[0], stratum, covariates, design.n_features), eta

    def _with_errors(
        self,
        rows: tuple[PredictedRows, AnyArray],
        times: AnyArray,
        position: int | None,
        given: object,
        is_robust: bool,
    ) -> tuple[Matrix, Matrix]:
        """Estimates and standard errors (k, m)."""
        new, eta = rows
        models = list(self.models_.values())
        fits = [model._fitted.hazard for model in models]
        roots = [model._root(is_robust) for model in models]
        after = given_times(given, new.eta.size)
        estimate, error = np.full((2, new.eta.size, times.size), np.nan)
        for stratum in np.unique(new.stratum).tolist():
            for start in np.unique(after[new.stratum == stratum]).tolist():
                hazards = JointHazards.of(
                    [model._fitted.baseline for model in models], stratum, eta, start, times
                )
                size = len(models) * hazards.grid.size * (times.size + 4)
                blocks = [rows[after[rows] == start] for rows in new.blocks(stratum, size)]
                predict = partial(hazards.predict, cause=position)
                for block, found, errors in functional_predictions(
                    fits, roots, stratum, predict, blocks, new.covariates, is_robust=is_robust
                ):
                    estimate[block], error[block] = found, errors
        unknown = times > fits[0].steps.end[new.stratum][:, None]
        estimate[unknown] = error[unknown] = np.nan
        return estimate, error

    def predict_time_lost(
        self,
        X: object,
        times: object,
        cause: int | str,
        *,
        average: bool = False,
        level: float = 0.95,
        variance: PredictionVariance = "auto",
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
    ) -> Predictions:
        r"""Predict the mean time lost to a cause up to given times (years of life lost).

        .. math:: L_k(\tau \mid x) = \int_0^\tau F_k(u \mid x) \, du

        with the cumulative incidence :math:`F_k`: the mean time from an event of the cause to
        :math:`\tau`. The times lost to all causes and `predict_restricted_mean` add up to
        :math:`\tau`. Standard errors are those of the delta method; see `predict_interval`.

        Parameters
        ----------
        X : as for `fit` (k, p)
        times : number or (m,) numbers >= 0
            Ends :math:`\tau`, in the time unit of the fit.
        cause : int or str
            One of `causes_`.
        average : bool
            Predict the mean over the rows of X. Their covariates count as known.
        level, variance
            As for `predict_interval`. Limits are the estimate plus and minus a multiple of its
            standard error, within 0 and the end.
        sample_weight : (k,) numbers >= 0, optional
            Weights of the rows in the mean; for `average` only.
        strata, offset
            As for `predict_cumulative_incidence`.

        Returns
        -------
        Predictions
            Of the kind "time_lost", with a row for each row of X, or one row for their mean. NaN
            after the last time of follow-up of the row's stratum (for a mean, of any of them).
            Standard errors and limits are NaN if an estimate is infinite.

        Raises
        ------
        NotDefinedError
            If a cause is penalised, or the model was pickled.
        InputError
            If an argument is not valid, or the cause or a stratum was not in the fit.

        Notes
        -----
        O(k M p) time for M event times of any cause. The robust variance takes O(n p) more for a
        mean, and O(n (r + p)) for rows, where r, the dimension of the derivatives in the hazards
        over all new rows, is some tens at most.

        References
        ----------
        Andersen (2013), Statistics in Medicine 32, 5278-5285, doi:10.1002/sim.5903.

        Examples
        --------
        >>> import numpy as np
        >>> import riskset as rs
        >>> rng = np.random.default_rng(1)
        >>> x, time = rng.normal(size=(200, 1)), rng.exponential(size=200)
        >>> model = rs.CauseSpecificCox().fit(x, rs.Surv(time, rng.integers(0, 3, 200)))
        >>> lost = model.predict_time_lost(x, [0.5, 1.0], cause=1, average=True)
        >>> lost.estimate.round(3), lost.standard_error.round(3)
        (array([[0.036, 0.138]]), array([[0.007, 0.021]]))
        """
        check_is_fitted(self, "models_")
        position = self._position(cause)
        return self._mean_times(
            X, times, position, "time_lost", average, level, variance, sample_weight, strata, offset
        )

    def predict_restricted_mean(
        self,
        X: object,
        times: object,
        *,
        average: bool = False,
        level: float = 0.95,
        variance: PredictionVariance = "auto",
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
    ) -> Predictions:
        r"""Predict the mean time without an event of any cause up to given times.

        .. math:: \mu(\tau \mid x) = \int_0^\tau S(u \mid x) \, du

        Parameters
        ----------
        X, times, average, level, variance, sample_weight, strata, offset
            As for `predict_time_lost`.

        Returns
        -------
        Predictions
            Of the kind "restricted_mean"; otherwise as of `predict_time_lost`.

        Raises
        ------
        NotDefinedError, InputError
            As by `predict_time_lost`.

        References
        ----------
        Karrison (1987), Journal of the American Statistical Association 82, 1169-1176,
        doi:10.1080/01621459.1987.10478555.
        """
        check_is_fitted(self, "models_")
        return self._mean_times(
            X, times, None, "restricted_mean", average, level, variance, sample_weight, strata,
            offset,
        )  # fmt: skip

    def _mean_times(
        self,
        X: object,
        times: object,
        position: int | None,
        kind: str,
        average: bool,
        level: float,
        variance: PredictionVariance,
        sample_weight: object,
        strata: object,
        offset: object,
    ) -> Predictions:
        """Mean times lost to the cause at a position, or without any event (None)."""
        check_level(level)
        is_robust = self._checked_variance(variance)
        at, models = checked_ends(times), list(self.models_.values())
        new, eta = self._new_rows(X, strata, offset)
        share = row_shares(sample_weight, average, new.eta.size)
        if share is None:
            mean, error = predicted_areas(models, new, eta, at, position, is_robust=is_robust)
        else:
            mean, error = averaged_areas(models, new, eta, at, position, share, is_robust=is_robust)
        lower, upper = limits(mean, error, level, "plain", is_probability=False)
        return Predictions(
            kind, "time", at, mean, error, lower, np.minimum(upper, at), level, "plain",
            "robust" if is_robust else "model",
        )  # fmt: skip

    def _checked_variance(self, variance: PredictionVariance) -> bool:
        """Whether to use the robust variance, which must be defined for all causes."""
        check_variance(variance)
        models = list(self.models_.values())
        for model in models:
            model._defined("an interval of a prediction")
        is_robust = variance == "robust"
        if variance == "auto":
            is_robust = any(model.is_robust_ for model in models)
        for model in models if is_robust else ():
            model._check_has_row_scores("a robust variance")
        return is_robust

    def predict(self, X: object, cause: int | str, *, offset: object = None) -> NDArray[np.float64]:
        """Return the linear predictor for a cause; see `Cox.predict`."""
        check_is_fitted(self, "models_")
        self._position(cause)
        eta: NDArray[np.float64] = self.models_[cause].predict(X, offset=offset)
        return eta

    def summary(self, *, level: float = 0.95) -> Any:
        """Return the coefficients of all causes as a data frame with the columns of `Cox.summary`.

        Parameters
        ----------
        level : float
            Coverage of the intervals.

        Returns
        -------
        data frame
            Data frame of the library of X, with one row per cause and covariate.
        """
        check_is_fitted(self, "models_")
        parts = {cause: _summary(model, level) for cause, model in self.models_.items()}
        names = max(parts.values(), key=len).keys()  # a robust error may be there for some causes
        n_rows = next(iter(self.models_.values())).coef_.size
        absent = np.full(n_rows, np.nan)
        columns = {"cause": np.repeat(self.causes_, n_rows)}
        for name in names:
            columns[name] = np.concatenate([part.get(name, absent) for part in parts.values()])
        return data_frame(columns, self._library)

    def _position(self, cause: int | str) -> int:
        if cause not in self.models_:
            raise InputError(
                f"cause {cause!r} was not fitted (causes: {_listed(self.causes_)}).",
                hint="pass one of the causes of the fit.",
            )
        return list(self.models_).index(cause)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


def _events(X: object, y: object, sample_weight: object) -> tuple[AnyArray, int]:
    """The causes that occur, ascending, and the number of rows that count."""
    rows = Followup.read(X if isinstance(X, Dataset) else y, weight=sample_weight)
    return named_causes(np.unique(rows.event[rows.event > 0]), rows.causes), rows.event.size


def _causes(found: AnyArray, n_rows: int, chosen: object) -> AnyArray:
    if found.size == 0:
        raise InputError(
            f"there are no events: all {n_rows:,} rows are censored.",
            hint="check the coding; 0 is censored, 1, 2, ... are causes.",
        )
    if chosen is None:
        return found
    asked = list(dict.fromkeys(np.asarray(chosen).reshape(-1).tolist()))
    absent = [cause for cause in asked if cause not in found.tolist()]
    if absent or not asked:
        what = f"{absent[0]} does not occur" if absent else "it is empty"
        raise InputError(
            f"`causes` must be event codes that occur ({_listed(found)}), but {what}.",
            hint="leave it out to take all of them.",
        )
    return np.array([cause for cause in found.tolist() if cause in asked], dtype=found.dtype)


def _listed(causes: AnyArray) -> str:
    return ", ".join(map(str, causes.tolist()))


def _summary(model: Cox, level: float) -> dict[str, AnyArray]:
    """The summary of one cause as columns."""
    twin = copy.copy(model)
    twin._library = "pyarrow"
    return {
        name: np.array(values) for name, values in twin.summary(level=level).to_pydict().items()
    }
