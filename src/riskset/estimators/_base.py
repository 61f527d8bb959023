"""The fit of the estimators, whose parameters never change."""

import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError, NotDefinedError, RisksetWarning
from riskset._messages import Note, Value
from riskset._progress import ProgressBar
from riskset._runtime import Runtime
from riskset._types import Features, Rows, is_count, is_number
from riskset.data.checks import are_counts
from riskset.data.dataset import Dataset
from riskset.data.design import Design
from riskset.data.design_columns import column_names
from riskset.data.frame import result_library
from riskset.data.schema_form import EncoderForm
from riskset.estimators._fitted import Fitted, Training
from riskset.estimators._fixed import FixedCoefficients, checked_fixed
from riskset.estimators._formula import FormulaFits
from riskset.estimators._input import (
    FittedColumns,
    ModelInput,
    as_coefficients,
    as_outcome,
    lift,
    output_library,
    own_labels,
    read_covariates,
    refuse_beside,
    refuse_reference,
)
from riskset.estimators._prediction import HazardPredictions, checked_times
from riskset.estimators.blocks import NO_ROBUST, Blocks, fit_blocks
from riskset.estimators.convergence import ConvergenceWarning
from riskset.estimators.fit_file import FACTS, SavedFit, penalty_to_dict, write_archive
from riskset.estimators.fit_form import EstimatorForm
from riskset.kernels.cuda import device
from riskset.model.loss import Loss, common_offset
from riskset.model.penalty import Penalty
from riskset.solve import ccd
from riskset.solve.block_join import Subdistribution
from riskset.solve.fit import fit_by_newton
from riskset.solve.prox_newton import ResidualReport
from riskset.solve.result import Solution, Status

__all__ = ["SOLVERS", "HazardModelBase", "check_model"]

SOLVERS: dict[str, Callable[..., Solution]] = {"newton": fit_by_newton, "ccd": ccd.fit_by_ccd}


class HazardModelBase(FormulaFits, HazardPredictions, ABC):
    """Parameters and fit of the estimators; see `Cox` and `FineGray`."""

    has_censoring: ClassVar[bool] = False
    """Whether the model estimates the distribution of censoring."""

    robust_by_default: ClassVar[bool] = False
    """Whether the variance of an unpenalised fit is the robust one, whatever the data."""

    has_frailties: ClassVar[bool] = False
    """Whether clusters share frailties, which the likelihood of rows does not have."""

    covariates_: tuple[str, ...]
    status_: Status
    _is_penalized: bool
    _is_robust: bool

    penalty: Penalty | None
    fixed: Mapping[str, float] | None = None
    tol: float
    max_iter: int
    solver: str
    progress: bool | None

    def _defined(self, what: str) -> Fitted:
        """What the fit left behind, unless it is penalised."""
        check_is_fitted(self, "coef_")
        if self._is_penalized:
            raise NotDefinedError(
                f"{what} is not defined for a penalised fit: a penalty biases the estimates, so "
                "intervals from their variance do not have the stated coverage.",
                hint="fit without a penalty, or with the covariates that a penalty chose.",
            )
        return self._fitted

    @property
    def _kind(self) -> Penalty | None:
        """The penalty, or the kind of the one that the model chooses."""
        return self.penalty

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
        X : array, sparse matrix, data frame, `Design`, `Dataset` or `Blocks` (n, p)
            Covariates. Text and categories of a data frame are encoded as ``column=level``, and
            booleans as 0 and 1. A `Dataset` contains all other arguments. So do `Blocks`, whose
            rows are on several machines.
        y : (n,) structured array
            Made by `riskset.Surv`, with events 0 (censored), 1, 2, ... (causes) or labels, or by
            scikit-survival, with fields (bool, float). Plain numbers are times at which every row
            has the event.
        sample_weight : (n,) numbers >= 0, optional
            Case weights; 0 removes a row. With Breslow ties, a weight of 2 counts as two rows.
        strata : (n,) labels, or a sequence of label arrays, optional
            Each stratum (or combination of labels) has its own baseline hazard.
        offset : (n,) numbers, optional
            Added to the linear predictor.
        cluster : (n,) labels, optional
            Clusters of rows. If given, the robust variance is used.
        init : (p,) numbers, or mapping of covariate to number, optional
            Coefficients to start at; covariates that a mapping does not name start at 0. A
            converged answer does not depend on them beyond `tol`: the objective is convex, and
            `kkt_` is about the conditions of its minimum. If 0 is better, the fit starts there.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If an argument or the data are not valid. The message gives the column, the row, the
            value and a remedy.

        Warns
        -----
        ConvergenceWarning
            If `status_` is not "converged".
        RisksetWarning
            For collinear covariates, and for times that are nearly tied.
        """
        if isinstance(X, Blocks):
            refuse_beside(
                "Blocks, which bring their own",
                y=y, sample_weight=sample_weight, strata=strata, offset=offset, cluster=cluster,
                init=init,
            )  # fmt: skip
            return self._fit_blocks(X)
        started = time.perf_counter()
        runtime = self._checked_runtime()
        data = self._read(X, y, sample_weight, strata, offset, cluster, None)
        l1, l2 = self._strengths(data.design)
        start = (
            None
            if init is None
            else Solution.starting_at(as_coefficients(init, "init", data.design))
        )
        loss = self._loss(data, runtime)
        _ = data.outcome.risk  # sorted here, so that the times below mean what they say
        prepared = time.perf_counter()
        with self._bar() as report:
            solution = self._solve_centred(data.design, loss, l1, l2, start, report)
        done = time.perf_counter()
        strength = (l1 + l2)[~data.fixed.is_fixed]
        self._store(data, loss, solution, is_penalized=bool(strength.any()))
        self._library = output_library(X)
        self.seconds_ = {"prepare": prepared - started, "fit": done - prepared}
        self._warn()
        return self

    def _solve_centred(
        self,
        design: Design,
        loss: Loss,
        l1: Features,
        l2: Features,
        start: Solution | None,
        report: ResidualReport,
    ) -> Solution:
        """The estimate, found without what the offsets of a stratum have in common."""
        common = common_offset(loss)
        if common is None:
            return self._solve(design, loss, l1, l2, start, report)
        centred = loss.shifted(loss.offset - common, loss.runtime)
        solution = self._solve(design, centred, l1, l2, start, report)
        reached = solution.loss
        if reached is not None:
            reached = reached.shifted(reached.offset + common, loss.runtime)
        return replace(solution, eta=solution.eta + common, loss=reached)

    def _solve(
        self,
        design: Design,
        loss: Loss,
        l1: Features,
        l2: Features,
        start: Solution | None,
        report: ResidualReport,
    ) -> Solution:
        """The estimate."""
        return SOLVERS[self.solver](
            design, loss, l1, l2, tol=self.tol, max_iter=self.max_iter, start=start, report=report
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
        """Compute the log likelihood of given coefficients, without a fit.

        Parameters
        ----------
        coef : (p,) numbers, or mapping of covariate to number
            Finite; covariates that a mapping does not name have the coefficient 0. Those of
            `fixed` have their fixed one.
        X, y, sample_weight, strata, offset
            As for `fit`. If the model is fitted, X must have the columns of the fit.

        Returns
        -------
        float
            Of the likelihood without the penalty; for `FineGray`, the log of the
            pseudo-likelihood.

        Raises
        ------
        InputError
            If an argument or the data are not valid.

        Examples
        --------
        >>> import riskset as rs
        >>> x, y = [[0.0], [1.0], [0.0]], rs.Surv([1.0, 2.0, 3.0], [1, 1, 0])
        >>> round(rs.Cox().log_likelihood([0.5], x, y), 6)
        -1.768454
        """
        known = getattr(self, "_columns", None)
        model = clone(self) if known is None else self
        runtime = model._checked_runtime()
        data = model._read(X, y, sample_weight, strata, offset, None, known)
        values = as_coefficients(coef, "coef", data.design)
        data.fixed.check_agrees(coef, values, data.design.names)
        eta = data.design.product(values * data.design.scale, runtime=runtime)
        return float(model._loss(data, runtime).evaluate(eta + data.outcome.offset).log_likelihood)

    @property
    def _is_fixed(self) -> NDArray[np.bool_]:
        """Coefficients (p,) of a fit that were held at a value."""
        held = checked_fixed(self.fixed)
        return np.array([name in held for name in self.covariates_], dtype=bool)

    def _fit_blocks(self, blocks: Blocks) -> Self:
        """Fit rows that lie elsewhere."""
        started = time.perf_counter()
        self._checked_runtime()
        for name, value in (("solver", "ccd"), ("device", "cuda")):
            if getattr(self, name) == value:
                raise InputError(
                    f"{name}={value!r} does not fit in blocks.", hint=f"leave out `{name}`."
                )
        refuse_reference(self, blocks)
        if self.fixed:
            raise InputError(
                "`fixed` does not fit in blocks.",
                hint="leave the covariates out, and give their part of the linear predictor as "
                "the offset of each block.",
            )
        censoring = self._block_censoring()
        with self._bar() as report:
            joined, solution, kept, is_penalized = fit_blocks(
                blocks, self.cause, censoring, self._block_strengths,
                tol=self.tol, max_iter=self.max_iter, report=report,
            )  # fmt: skip
        facts, names = joined.facts, joined.rows.head.names
        self.n_features_in_ = len(names)
        if names != column_names(None, None, len(names)):  # columns of an array have none
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        columns = FittedColumns(names, factors=joined.rows.head.factors, own=own_labels(self))
        self._keep(solution, columns, is_penalized, has_counts=joined.has_counts)
        self.n_rows_ = joined.rows.head.n_rows
        self.n_events_ = sum(fact.n_events for fact in facts)
        self.n_strata_ = len(joined.strata)
        self.n_dropped_ = joined.n_dropped
        notes = _notes_on(joined.n_near_ties, self.n_strata_, joined.n_strata_with_events)
        self.notes_ = [*notes, *solution.notes, *([NO_ROBUST] * self._is_robust)]
        self._fitted = Fitted(None, kept)
        self._library = None
        self.seconds_ = {"prepare": 0.0, "fit": time.perf_counter() - started}
        self._warn()
        return self

    def _block_strengths(self, head: Design) -> tuple[Features, Features]:
        """Strengths of the columns of blocks, which have no first levels of categories."""
        penalty = self.penalty
        if head.factors and penalty is not None and not penalty.leaves_first_out:
            raise InputError(
                f"with {penalty!r} a category has a column for every level, but rows in Blocks "
                f"have none for its first level (such as {head.factors[0][0]!r}).",
                hint="pass `drop_first=True` to the penalty, or fit on one machine.",
            )
        return self._strengths(head)

    @abstractmethod
    def _loss(self, data: ModelInput, runtime: Runtime) -> Loss:
        """The likelihood of some data."""

    @abstractmethod
    def _block_censoring(self) -> Subdistribution | None:
        """How to weight competing events in blocks; an error if this model does not fit there."""

    @contextmanager
    def _bar(self) -> Iterator[ResidualReport]:
        """A progress bar, as the report of a fit."""
        with ProgressBar(f"Fitting {type(self).__name__}", self.progress) as bar:
            yield lambda steps, kkt: bar.update(
                _share(kkt, self.tol), f"step {steps}, residual {kkt:.1e}"
            )

    def _options(self) -> dict[str, tuple[str, ...]]:
        """The values of each parameter that has a few."""
        return {"device": ("auto", "cpu", "cuda"), "solver": tuple(SOLVERS)}

    def _check_parameters(self) -> None:
        """Check the parameters that no other layer checks."""
        if self.penalty is not None and not isinstance(self._kind, Penalty):
            raise InputError(
                f"`penalty` must be None, L1, L2 or ElasticNet, but it is {self.penalty!r}.",
                hint="for example riskset.L1(1.0).",
            )
        if not (is_number(self.tol) and 0 < self.tol < 1):
            raise InputError(
                f"`tol` must be between 0 and 1, but it is {self.tol!r}.",
                hint="it bounds the relative KKT residual; the default is 1e-8.",
            )
        for name in ("max_iter", "n_threads"):
            value = getattr(self, name)
            if not (is_count(value) or (name == "n_threads" and value is None)):
                raise InputError(
                    f"`{name}` must be a whole number of at least 1, but it is {value!r}.",
                    hint="leave it out for the default.",
                )
        checked_fixed(self.fixed)
        if self.progress not in (None, False, True):
            raise InputError(
                f"`progress` must be True, False or None, but it is {self.progress!r}.",
                hint="leave it out for a bar where standard error is a terminal.",
            )
        for name, known in self._options().items():
            if getattr(self, name) not in known:
                raise InputError.wrong_option(name, getattr(self, name), known)

    def _checked_runtime(self) -> Runtime:
        """Where to fit; all parameters are checked first."""
        self._check_parameters()
        if self.device == "cuda":
            device.open_device()  # says now what is missing, not after the data were read
        return Runtime.select(self.device, self.n_threads)

    def _check_can_repeat(self, what: str) -> None:
        """Refuse many fits at once by a solver that makes one at a time."""
        if self.solver != "newton":
            raise InputError(
                f"{what} fits many replicates at once, for which `solver` must be 'newton', but "
                f"it is {self.solver!r}.",
                hint="leave `solver` out: both find the same minimum, to `tol`.",
            )

    @property
    def _likelihood_options(self) -> list[str]:
        """The options, as written, whose likelihood is not a sum over rows."""
        return []

    def _check_has_profile(self, what: str) -> None:
        """Refuse what goes on from the likelihood alone, if more was maximised."""

    def _read(
        self,
        X: object,
        y: object,
        sample_weight: object,
        strata: object,
        offset: object,
        cluster: object,
        known: FittedColumns | None,
    ) -> ModelInput:
        if isinstance(X, Blocks):
            raise InputError(
                "rows in Blocks can only be fitted, by Cox and FineGray.",
                hint="pass rows that are on this machine.",
            )
        given, X = X, X if known is None else lift(X, known, outcome=y is None)
        design, columns = read_covariates(self, X, known)
        notes: list[Note] = []
        n_dropped: dict[str, int] = {}
        beside: dict[str, Any] = {
            "sample_weight": sample_weight,
            "strata": strata,
            "offset": offset,
        }
        if isinstance(X, Dataset) and (X is given or y is None):
            refuse_beside("a Dataset, which brings its own", y=y, **beside, cluster=cluster)
            outcome = X.outcome(self.cause)
            notes += X.notes
            n_dropped |= X.n_dropped
        else:
            if isinstance(X, Dataset):  # a frame with the roles of the fit, its outcome beside it
                roles = X.outcome_columns
                beside["offset"] = roles.offset if offset is None else offset
                beside["strata"] = roles.strata or None if strata is None else strata
            outcome = as_outcome(y, design.n_rows, **beside, cluster=cluster, cause=self.cause)
        absent = int(np.count_nonzero(outcome.weight == 0))
        if absent:
            n_dropped["rows_of_weight_0"] = absent
        notes += _notes_on(outcome.n_near_ties, outcome.n_strata, int(outcome.has_events.sum()))
        dataset = X if isinstance(X, Dataset) else None
        fixed = FixedCoefficients.of(checked_fixed(self.fixed), design)
        held, outcome = fixed.hold(design, outcome)
        return ModelInput(held, outcome, columns, tuple(notes), n_dropped, design, fixed, dataset)

    def _strengths(self, design: Design) -> tuple[Features, Features]:
        if self.penalty is None:
            return np.zeros(design.n_features), np.zeros(design.n_features)
        return self.penalty.arrays(design.names)

    def _store(
        self, data: ModelInput, loss: Loss, solution: Solution, *, is_penalized: bool
    ) -> None:
        outcome, fixed = data.outcome, data.fixed
        solution = fixed.settle(solution, data.design.names)
        # Weights that are not counts (as of inverse probabilities) need the robust variance; R too.
        counts = bool(are_counts(outcome.weight).all())
        is_plain = counts and outcome.cluster is None
        self._keep(solution, data.columns, is_penalized, has_counts=is_plain)
        self.coef_ = self.coef_ + fixed.value
        self.n_rows_ = outcome.n_rows
        self.n_events_ = outcome.n_events
        self.n_strata_ = outcome.n_strata
        self.n_dropped_ = data.n_dropped
        self.notes_ = [*data.notes, *solution.notes]
        solution = replace(solution, curvature=None)  # a matrix that only a fit needs
        training = Training(data.design, loss, solution, is_penalized, self._is_robust, fixed)
        self._fitted = Fitted(training)

    def _keep(
        self, solution: Solution, columns: FittedColumns, is_penalized: bool, *, has_counts: bool
    ) -> None:
        self.coef_ = solution.coef
        self.covariates_ = columns.names
        self.status_ = solution.status
        self.kkt_ = solution.kkt
        self.log_likelihood_ = solution.log_likelihood
        self.null_log_likelihood_ = solution.null_log_likelihood
        self.objective_ = solution.objective
        self.n_iter_ = solution.n_iter
        self._columns = columns
        self._is_penalized = is_penalized
        self._is_robust = not is_penalized and (self.robust_by_default or not has_counts)

    def _warn(self) -> None:
        serious = {"infinite", "max_iter", "not_estimable", "undecided"}
        for note in self.notes_:
            if note.code in serious:
                warnings.warn(note.message, ConvergenceWarning, stacklevel=3)
            elif note.code in ("collinear", "near_ties"):
                warnings.warn(note.message, RisksetWarning, stacklevel=3)

    def save(self, path: str | os.PathLike[str], *, interval_times: object = None) -> None:
        """Write the fitted model to a file that `riskset.load` reads, without pickle.

        A zip archive with one JSON document, the ``fit.json`` of ``riskset fit``, and one ``.npy``
        file for each further array. It contains everything that predictions, `summary`, intervals
        and tests need, but not the training data. It stores variances for at most 2,000 covariates.
        `riskset predict` reads it if the model was fitted on a `Dataset`. The file is written
        atomically.

        Parameters
        ----------
        path : path
            For example ``"fit.riskset"``.
        interval_times : number or numbers, optional
            Times at which the loaded model can `predict_interval`. For each time and stratum, the
            file then contains the mean of the covariates over the risk sets until then; other
            intervals need the training data.

        Raises
        ------
        NotDefinedError
            With `interval_times`, if the fit is penalised.
        """
        check_is_fitted(self, "coef_")
        times = None if interval_times is None else checked_times(interval_times, "interval_times")
        if times is not None and not times.size:
            raise InputError("`interval_times` has no times.", hint="name them, or leave it out.")
        write_archive(path, self._saved(interval_times=times))

    def _saved(
        self, *, with_variances: bool = True, interval_times: Rows | None = None
    ) -> SavedFit:
        """All that a file keeps of a fit."""
        if interval_times is not None:
            self._defined("an interval of a prediction")
        parameters = self.get_params(deep=False)
        parameters.pop("penalty", None)
        # As plain values, whatever they were given as.
        rewritten: dict[str, Any] = {"covariate_labels": self._columns.own.to_list() or None}
        if "fixed" in parameters:
            rewritten["fixed"] = checked_fixed(self.fixed) or None
        cause = self.cause
        if self._fitted.has_training:  # which may have been left to the data
            outcome = self._fitted.training.loss.outcome
            cause = outcome.labels.get(outcome.cause, outcome.cause)
        names, columns = getattr(self, "feature_names_in_", None), self._columns
        encoder: Any = columns.encoder
        estimator: dict[str, Any] = {
            "class": type(self).__name__,
            "parameters": {name: _plain(value) for name, value in parameters.items()} | rewritten,
            "penalty": penalty_to_dict(self._kind),
            "search": None,
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else list(names),
            "encoder": None
            if encoder is None
            else EncoderForm.model_construct(**encoder.to_dict()),
            "factors": [list(factor) for factor in columns.factors],
            "library": self._library,
            "is_penalized": self._is_penalized,
            "is_robust": self._is_robust,
        }
        return SavedFit(
            estimator=EstimatorForm.model_construct(**estimator),
            cause=_plain(cause),
            facts={key: _plain(getattr(self, name)) for key, name in FACTS.items()},
            coef=self.coef_,
            names=columns.names,
            schema=columns.schema,
            notes=tuple(self.notes_),
            arrays=self._fitted.to_arrays(
                with_variances=with_variances, interval_times=interval_times
            ),
        )

    def _restore(self, fit: SavedFit) -> None:
        """Take back what `_saved` gave."""
        for key, name in FACTS.items():
            if key in fit.facts:
                setattr(self, name, fit.facts[key])
        estimator = fit.estimator
        self.coef_, self._columns = fit.coef, fit.columns
        self.covariates_ = fit.names
        if self.coef_.shape != (len(self.covariates_),):
            raise InputError(
                f"the file names {len(self.covariates_):,} covariates, but holds "
                f"{self.coef_.size:,} coefficients.",
                hint="save the model again.",
            )
        self.notes_ = list(fit.notes)
        self.n_features_in_ = estimator.n_features_in
        if estimator.feature_names_in is not None:
            self.feature_names_in_ = np.array(estimator.feature_names_in, dtype=object)
        self._is_penalized, self._is_robust = estimator.is_penalized, estimator.is_robust
        self._library = result_library(estimator.library)
        self._check_parameters()
        self._fitted = Fitted(None, fit.arrays)
        self._fitted.check()

    # ---------------------------------------------------------------------- scikit-learn

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags


def _plain(value: Any) -> Any:
    """What JSON can hold; a parameter with one value for each training row is left out."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value if isinstance(value, (str, dict)) or not hasattr(value, "__len__") else None


def _share(kkt: float, tol: float) -> float:
    """Part of the way from a residual of 1 to the tolerance, on a log scale."""
    return float(np.clip(np.log(max(kkt, 1e-300)) / np.log(tol), 0.0, 1.0))


def _notes_on(n_near_ties: int, n_strata: int, n_with_events: int) -> list[Note]:
    notes = []
    if n_near_ties:
        notes.append(
            Note(
                "near_ties",
                (),
                "{n:,} neighbouring times differ only in their last digits and count as different. "
                "If they should be equal, round them by `time_digits` when the data are read.",
                {"n": Value("count", n_near_ties)},
            )
        )
    without = n_strata - n_with_events
    if n_strata > 1 and without:
        notes.append(
            Note(
                "strata_without_events",
                (),
                "{without:,} of {n:,} strata have no event and contribute nothing to the "
                "estimates.",
                {"without": Value("count", without), "n": Value("count", n_strata)},
            )
        )
    return notes


def check_model(model: object, caller: str) -> None:
    """Refuse what is not one Cox or Fine-Gray model."""
    if isinstance(model, HazardModelBase):
        if model.has_frailties:
            raise InputError(
                f"{caller} is not available for a model with frailties.",
                hint="use riskset.Cox, and with `cluster` its robust standard errors.",
            )
        return
    is_class = isinstance(model, type)
    given = f"the class {model.__name__}" if is_class else f"an object of {type(model).__name__}"  # type: ignore[attr-defined]
    raise InputError(
        f"{caller} takes a Cox or a Fine-Gray model first, but it was given {given}.",
        hint="the models of several causes are fitted one by one, as riskset.Cox(cause=...)."
        if hasattr(model, "fit") and not is_class
        else "pass a model, such as riskset.Cox(), and then the data.",
    )
