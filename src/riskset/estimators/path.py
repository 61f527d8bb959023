"""Warm-started solutions for many strengths of a penalty."""

import functools
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from riskset._errors import InputError, counted
from riskset._messages import Note
from riskset._progress import ProgressBar
from riskset._runtime import Runtime
from riskset._types import Features, Index, Matrix, is_count, is_number
from riskset.data.frame import data_frame
from riskset.engine import check_engine, workers
from riskset.estimators._base import SOLVERS, check_model
from riskset.estimators._inference import HazardModel
from riskset.estimators._input import ModelInput, output_library
from riskset.estimators.convergence import ConvergenceWarning
from riskset.model.loss import Loss
from riskset.model.penalty import Penalty
from riskset.solve.optimality import Problem
from riskset.solve.path import MaxStrength, iterate_path, strength_max
from riskset.solve.result import Solution, Status

__all__ = ["PathResult", "path"]

RIDGE_RATIO = 1e-3
"""Share of L1 by which the first strength of a pure ridge path is found, as in glmnet."""
PENALTIES_PER_PIECE = 5
"""Neighbouring penalties that a worker of an engine solves one after the other."""


class _Point(NamedTuple):
    """What is kept of a solution, which has a number for each row."""

    coef: Features
    status: Status
    kkt: float
    log_likelihood: float
    objective: float
    n_iter: int

    @classmethod
    def of(cls, solution: Solution) -> "_Point":
        return cls(*(getattr(solution, name) for name in cls._fields))


@dataclass(frozen=True, eq=False, repr=False)
class PathResult:
    """Certified solutions along a path of penalties.

    Attributes
    ----------
    penalties : tuple of Penalty
        Strongest first, or as given.
    strengths : (k,) float64
        l1 + l2 of each penalty.
    coefs : (k, p) float64
        Coefficients in the user's units.
    names : tuple of str
        The covariates.
    labels : tuple of str
        What plots call them: their labels, or names.
    statuses : tuple of str
        As `Cox.status_`.
    kkt : (k,) float64
        Relative KKT residual of each solution.
    log_likelihoods, objectives : (k,) float64
    n_iter : (k,) int64
        Newton steps.
    seconds : float
        Time for the whole path, without reading the data.
    notes : tuple of Note
        Notes on the data, and "no_signal" if no penalised covariate improves the likelihood.

    Examples
    --------
    >>> import riskset as rs
    >>> path = rs.path(rs.Cox(rs.L1(1.0)), rs.load_rhc(), n_penalties=5, min_ratio=0.1)
    >>> path
    PathResult(5 penalties, strength 2.695e+04 to 2695; 71 covariates, 0 to 8 not 0; 5 converged)
    >>> (path.coefs != 0).sum(axis=1)
    array([0, 3, 4, 6, 8])
    >>> float(path.kkt.max()) <= 1e-8
    True
    """

    penalties: tuple[Penalty, ...]
    strengths: Features
    coefs: Matrix
    names: tuple[str, ...]
    labels: tuple[str, ...]
    statuses: tuple[Status, ...]
    kkt: Features
    log_likelihoods: Features
    objectives: Features
    n_iter: Index
    seconds: float
    notes: tuple[Note, ...]
    _source: "_PathProblem" = field(repr=False)
    _last: Solution = field(repr=False)

    def __repr__(self) -> str:
        done = sum(status == "converged" for status in self.statuses)
        return (
            f"PathResult({counted(len(self), 'penalty', 'penalties')}, strength "
            f"{self.strengths[0]:.4g} to {self.strengths[-1]:.4g}; "
            f"{counted(len(self.names), 'covariate')}, "
            f"{self.n_nonzero[0]:,} to {self.n_nonzero[-1]:,} not 0; {done:,} converged)"
        )

    def __len__(self) -> int:
        return len(self.penalties)

    @property
    def n_nonzero(self) -> Index:
        """Number of coefficients other than 0 (k,), fixed ones included."""
        return np.asarray(np.count_nonzero(self.coefs, axis=1), dtype=np.int64)

    def model(self, index: int) -> HazardModel:
        """Return the fitted estimator at one penalty.

        Parameters
        ----------
        index : int
            Position on the path; negative counts from the end.

        Returns
        -------
        estimator
            Fitted with ``penalties[index]``. The fit starts from the solution and is therefore
            fast.
        """
        start = self._last.moved_to(self.coefs[index])
        return self._source.fit(self.penalties[index], start)

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with one row per penalty, without the coefficients."""
        columns = {
            "strength": self.strengths,
            "l1": np.array([p.l1 for p in self.penalties]),
            "l2": np.array([p.l2 for p in self.penalties]),
            "n_nonzero": self.n_nonzero,
            "log_likelihood": self.log_likelihoods,
            "objective": self.objectives,
            "kkt": self.kkt,
            "n_iter": self.n_iter,
            "status": np.array(self.statuses, dtype=object),
        }
        return data_frame(columns, library or self._source.library)


@dataclass(frozen=True, eq=False)
class _PathProblem:
    """What a path is computed from."""

    template: HazardModel
    data: ModelInput
    loss: Loss
    problem: Problem
    library: str | None

    def first_strength(self, kind: Penalty) -> MaxStrength:
        """Smallest strength that keeps every penalised coefficient at 0, and that solution."""
        model, design = self.template, self.data.design
        found = strength_max(
            design,
            self.loss,
            kind.factors(design.names),
            tol=model.tol,
            max_iter=model.max_iter,
            problem=self.problem,
        )
        if found.strength == 0:
            raise InputError(
                "no penalised covariate carries information, so there is no path of penalties.",
                hint="check `unpenalized` and the covariates, or choose the penalties yourself.",
            )
        ratio = kind.l1_ratio if kind.l1_ratio > 0 else RIDGE_RATIO
        return found._replace(strength=found.strength / ratio)

    def solve(
        self, chosen: Sequence[Penalty], start: Solution | None
    ) -> tuple[list[_Point], Solution]:
        """One solution after the other; and the last one whole."""
        points = []
        with self._bar() as bar:
            for solution in iterate_path(
                self.data.design,
                self.loss,
                self._arrays(chosen),
                start=start,
                problem=self.problem,
                report=lambda k, _steps, _kkt: bar.update(*_progress(k, chosen)),
                **self._settings(),
            ):
                points.append(_Point.of(solution))
        return points, solution

    def solve_in_pieces(
        self, chosen: Sequence[Penalty], start: Solution | None, engine: str
    ) -> tuple[list[_Point], Solution]:
        """As `solve`, pieces apart from each other by the workers of an engine."""
        problem = self.problem.shifted(self.loss.offset, Runtime(1))
        task = functools.partial(_solve_piece, problem, self._settings())
        arrays = self._arrays(chosen)
        pieces = [
            arrays[k : k + PENALTIES_PER_PIECE] for k in range(0, len(arrays), PENALTIES_PER_PIECE)
        ]
        points: list[_Point] = []
        with workers(engine, self.loss.runtime.n_threads) as found, self._bar() as bar:
            assert found is not None
            for piece in found.map(task, pieces):
                points += piece
                bar.update(*_progress(len(points), chosen))
        start = None if start is None else start.moved_to(points[-1].coef)
        _, last = self.solve(chosen[-1:], start)
        return points, last

    def _arrays(self, chosen: Sequence[Penalty]) -> list[tuple[Features, Features]]:
        return [penalty.arrays(self.data.design.names) for penalty in chosen]

    def _settings(self) -> dict[str, Any]:
        model = self.template
        minimise = None if model.solver == "newton" else SOLVERS[model.solver]
        return {"tol": model.tol, "max_iter": model.max_iter, "minimise": minimise}

    def _bar(self) -> ProgressBar:
        return ProgressBar("Path of penalties", self.template.progress)

    def fit(self, penalty: Penalty, start: Solution) -> HazardModel:
        """An estimator as if fitted, from data that are read already."""
        model: HazardModel = clone(self.template).set_params(penalty=penalty)
        started = time.perf_counter()
        l1, l2 = penalty.arrays(self.data.design.names)
        solution = SOLVERS[self.template.solver](
            self.data.design,
            self.loss,
            l1,
            l2,
            tol=model.tol,
            max_iter=model.max_iter,
            start=start,
            problem=self.problem,
        )
        self.problem.leave_device()
        model._store(self.data, self.loss, solution, is_penalized=bool(l1.any() or l2.any()))
        model._library = self.library
        model._take_feature_names(self.template)
        model.seconds_ = {"prepare": 0.0, "fit": time.perf_counter() - started}
        return model


def _progress(done: int, chosen: Sequence[Penalty]) -> tuple[float, str]:
    return done / len(chosen), f"{done} of {len(chosen)} penalties"


def _solve_piece(
    problem: Problem, settings: dict[str, Any], penalties: list[tuple[Features, Features]]
) -> list[_Point]:
    """In a worker: neighbouring penalties, the first from 0."""
    solutions = iterate_path(problem.design, problem.loss, penalties, problem=problem, **settings)
    return [_Point.of(solution) for solution in solutions]


def path(
    model: HazardModel,
    X: object,
    y: object = None,
    *,
    n_penalties: int = 100,
    min_ratio: float | None = None,
    penalties: Sequence[Penalty] | Sequence[float] | None = None,
    sample_weight: object = None,
    strata: object = None,
    offset: object = None,
    cluster: object = None,
    engine: str | None = None,
) -> PathResult:
    r"""Compute certified solutions for a decreasing sequence of penalties, warm-started.

    Parameters
    ----------
    model : Cox or FineGray
        Model with ties, tolerance and other options. Its penalty sets the type (L1, L2, the ratio
        of an elastic net), the unpenalised columns and the factors. Its strength, if any, is not on
        the path.
        The model is not changed.
    X, y, sample_weight, strata, offset, cluster
        As for `Cox.fit`.
    n_penalties : int
        Number of strengths, equally spaced on a log scale.
    min_ratio : float, optional
        Last strength divided by the first. Default: 1e-4, or 0.01 with more columns than rows. The
        first strength is the smallest at which every penalised coefficient is 0 (for L2: for an
        elastic net with 0.1 % L1).
    penalties : sequence of Penalty or of float, optional
        Penalties, or strengths of the model's penalty, in the order of solution. Strongest first is
        fastest.
    engine : {"joblib", "dask", "ray"}, optional
        Solve pieces of neighbouring penalties in parallel, as for `CoxCV`. Each piece starts at 0,
        so coefficients agree with a path in one process up to the tolerance.

    Returns
    -------
    PathResult

    Raises
    ------
    InputError
        If the data are not valid, or no penalised covariate has information and `penalties` is not
        given.

    Warns
    -----
    ConvergenceWarning
        Once, if any solution is not "converged"; see `PathResult.statuses`.

    References
    ----------
    Simon, Friedman, Hastie and Tibshirani (2011), Journal of Statistical Software 39(5), 1-13,
    doi:10.18637/jss.v039.i05.

    Examples
    --------
    >>> import riskset as rs
    >>> result = rs.path(rs.Cox(rs.L1(unpenalized=["swang1"])), rs.load_rhc(), n_penalties=5)
    >>> result.coefs.shape, int(result.n_nonzero[0])
    ((5, 71), 1)
    """
    check_engine(engine)
    check_model(model, "`riskset.path`")
    model = clone(model)
    runtime = model._checked_runtime()
    data = model._read(X, y, sample_weight, strata, offset, cluster, None)
    loss = model._loss(data, runtime)
    started = time.perf_counter()
    problem = Problem.prepare(data.design, loss)
    source = _PathProblem(model, data, loss, problem, output_library(X))
    kind = model.penalty
    start: Solution | None = None
    notes = list(data.notes)
    if penalties is None:
        first = source.first_strength(_needed(kind))
        start, notes = first.solution, [*notes, *first.notes()]
        ratio = _min_ratio(min_ratio, data)
        chosen = [
            _needed(kind).with_strength(s) for s in _geometric(first.strength, ratio, n_penalties)
        ]
    else:
        if not isinstance(penalties, Iterable):
            raise InputError(
                f"`penalties` must be a sequence of penalties or strengths, not {penalties!r}.",
                hint="for one penalty fit the model itself.",
            )
        chosen = [
            p if isinstance(p, Penalty) else _needed(kind).with_strength(p) for p in penalties
        ]
        if not chosen:
            raise InputError("`penalties` is empty.", hint="leave it out for a path of 100.")
    if engine is None:
        found = source.solve(chosen, start)
    else:
        found = source.solve_in_pieces(chosen, start, engine)
    result = _collect(source, chosen, notes, *found, started)
    problem.leave_device()  # the result may live long
    _warn(result)
    return result


def _needed(kind: Penalty | None) -> Penalty:
    """The kind of penalty whose strengths a path goes through."""
    if kind is None:
        raise InputError(
            "the model has no penalty, so there is no path of strengths.",
            hint="give it one, such as riskset.Cox(riskset.L1()).",
        )
    return kind


def _min_ratio(min_ratio: float | None, data: ModelInput) -> float:
    if min_ratio is None:
        return 1e-4 if data.design.n_rows >= data.design.n_features else 1e-2
    if not (is_number(min_ratio) and 0 < min_ratio < 1):
        raise InputError(f"`min_ratio` must be between 0 and 1, but it is {min_ratio!r}.")
    return float(min_ratio)


def _geometric(first: float, ratio: float, n_penalties: int) -> list[float]:
    if not is_count(n_penalties):
        raise InputError(
            f"`n_penalties` must be a whole number of at least 1, but it is {n_penalties!r}."
        )
    return list((first * ratio ** np.linspace(0.0, 1.0, int(n_penalties))).tolist())


def _collect(
    source: _PathProblem,
    chosen: Sequence[Penalty],
    notes: Sequence[Note],
    points: list[_Point],
    last: Solution,
    started: float,
) -> PathResult:
    coefs, statuses, kkt, log_likelihoods, objectives, n_iter = zip(*points, strict=True)
    return PathResult(
        penalties=tuple(chosen),
        strengths=np.array([p.strength for p in chosen]),
        coefs=np.array(coefs) + source.data.fixed.value,
        names=source.data.design.names,
        labels=source.data.columns.texts(source.data.design.names),
        statuses=statuses,
        kkt=np.array(kkt),
        log_likelihoods=np.array(log_likelihoods),
        objectives=np.array(objectives),
        n_iter=np.array(n_iter, dtype=np.int64),
        seconds=time.perf_counter() - started,
        notes=tuple(notes),
        _source=source,
        _last=last,
    )


def _warn(result: PathResult) -> None:
    bad = [k for k, status in enumerate(result.statuses) if status != "converged"]
    if not bad:
        return
    k = bad[0]
    warnings.warn(
        f"{len(bad)} of {len(result)} solutions are not 'converged' (first: number {k}, strength "
        f"{result.strengths[k]:.4g}, status {result.statuses[k]!r}, relative KKT residual "
        f"{result.kkt[k]:.1e}).\nHint: raise `max_iter`, or stop the path earlier.",
        ConvergenceWarning,
        stacklevel=3,
    )
