"""Bootstrap of an estimator."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError, NotDefinedError
from riskset._progress import ProgressBar, time_left
from riskset._types import Features, Index, is_count, is_number
from riskset.data.checks import Places
from riskset.data.design import Design
from riskset.data.labels import as_codes
from riskset.engine import check_engine, workers
from riskset.estimators._fitted import Fitted, Training
from riskset.estimators.bootstrap import FAILED, Bootstrap, warn
from riskset.infer.bootstrap import (
    Estimate,
    Resampling,
    acceleration,
    resample_estimates,
)
from riskset.infer.retuning import check_divisible, retuned_estimates
from riskset.solve.optimality import Problem

__all__ = ["Bootstraps"]


class Bootstraps:
    """The part of an estimator that fits itself to resamples."""

    _fitted: Fitted
    _library: str | None
    max_iter: int
    solver: str
    progress: bool | None

    def _positions(self, parameters: str | Sequence[str] | None) -> Index:
        raise NotImplementedError

    def _strengths(self, design: Design) -> tuple[Features, Features]:
        raise NotImplementedError

    def _check_can_repeat(self, what: str) -> None:
        """Refuse many fits at once by a solver that makes one at a time."""
        if self.solver != "newton":
            raise InputError(
                f"{what} fits many replicates at once, for which `solver` must be 'newton', but "
                f"it is {self.solver!r}.",
                hint="leave `solver` out: both find the same minimum, to `tol`.",
            )

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
        free = (l1 == 0) & (l2 == 0)
        if parameters is None:
            columns = np.flatnonzero(free)
        _check_chosen(columns, free)
        resampling, unit = _resampling(training, cluster, within_strata)
        problem, solution = Problem.prepare(training.design, training.loss), training.solution
        common: Any = {
            "replicates": int(replicates),
            "seed": int(seed),
        }
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
        result = Bootstrap(
            names=tuple(training.design.names[j] for j in columns),
            coef=np.where((solution.aliased & free)[columns], np.nan, solution.coef[columns]),
            replicates=np.array([e.coef for e in estimates]),
            statuses=tuple(e.status for e in estimates),
            seed=int(seed),
            n_units=resampling.n_units,
            unit=unit,
            penalties=tuple(e.penalty for e in estimates) if retune else None,
            reasons=tuple(e.reason for e in estimates),
            _accelerate=partial(acceleration, problem, solution, l2, free, resampling, columns),
            _library=self._library,
        )
        _warn_of_failures(result)
        return result

    def _reported(self, estimates: Iterator[Estimate], expected: int) -> list[Estimate]:
        """All of them, with a progress bar while they are made."""
        out: list[Estimate] = []
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
                f"retune=True repeats how a penalty was chosen, but {type(self).__name__} was "
                "fitted with the penalty that it was given.",
                hint="use CoxCV or FineGrayCV, or leave it out.",
            )
        return self._fitted.training


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
            hint="fit with unpenalized=[...] for the covariate of interest, or name covariates "
            "with parameters=[...] to see how penalised estimates vary.",
        )


def _resampling(training: Training, cluster: object, within_strata: bool) -> tuple[Resampling, str]:
    outcome = training.loss.outcome
    codes = outcome.cluster
    if cluster is not None:
        codes = as_codes(cluster, "cluster", outcome.n_rows, Places({"cluster": "`cluster`"}))[0]
    resampling = Resampling.of(outcome, codes, within_strata=bool(within_strata))
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
