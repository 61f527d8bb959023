"""Fits on blocks of rows that the workers of a Dask cluster hold."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from riskset._errors import InputError, RisksetError
from riskset._messages import Note
from riskset._runtime import available_threads
from riskset._types import AnyArray, Features, Index, is_count
from riskset.actors import Crew, DaskCrew, HomeCrew, LostBlock
from riskset.data.dataset import Dataset
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.estimators._fitted import KEEP_VARIANCE, ModelTests, tests_to_array
from riskset.estimators._input import as_outcome, read_covariates, refuse_beside
from riskset.infer.variance import Covariance, among, generalized_inverse, rounding_of
from riskset.infer.wald import ChiSquareTest, likelihood_ratio_test, wald_test
from riskset.kernels.means_cpu import cumulate
from riskset.model.baseline import Baseline
from riskset.model.block import RowBlock
from riskset.model.references import without_references
from riskset.solve.block_join import Joined, Subdistribution, join
from riskset.solve.block_rows import BlockEta, BlockRows
from riskset.solve.blocks import BlockMinimisation, BlockProblem
from riskset.solve.fit import minimise
from riskset.solve.optimality import in_stored_units
from riskset.solve.result import Solution

__all__ = ["NO_ROBUST", "Blocks", "fit_blocks"]

ENGINES = (None, "dask")
ARGUMENTS = ("X", "y", "sample_weight", "strata", "offset")


class Blocks:
    """Blocks of rows for one fit, each in the memory of a Dask worker.

    Pass it to `Cox.fit` and `FineGray.fit` instead of X and y. All blocks are processed in
    parallel, and only sums are sent over the network, so no machine ever holds all rows. The
    coefficients equal those of a fit on one machine.

    Parameters
    ----------
    read : callable
        ``read(item)`` returns the rows of a block: a `Dataset`, a pair (X, y), or a mapping with
        ``X``, ``y`` and optionally ``sample_weight``, ``strata`` and ``offset``, as for `Cox.fit`.
        It is called on the worker that holds the block, and again elsewhere if that worker dies.
        Events must be numbers.
    items : sequence
        One item per block, such as the path of its file, or a Dask future.
    engine : "dask" or None
        "dask": use the workers of the current ``distributed.Client``, of the scheduler in Dask's
        settings, or of a local cluster. None: keep the blocks in this process.

    absent : {"error", "zero"}
        "error": all blocks must have the same columns in the same order. "zero": a column that a
        block lacks is 0 there. Use "zero" for long tables only.

    Notes
    -----
    Rows within a block and the blocks may be in any order. A stratum in several blocks must be cut
    by time (without strata, all rows are one stratum): all times of one block must be equal to or
    later than those of the next. Both blocks may contain rows at the cut.

    Categories have no column for their first level, as without a penalty. For penalties with an L2
    part, set ``drop_first=True``.

    Late entry, Efron's ties, clusters, ``censoring_group``, ``censoring_probability``, ``person``
    and ``solver="ccd"`` raise an error. Like a saved model, a model fitted in blocks predicts, and
    has standard errors and tests from the inverse information. It has no robust variance.
    Residuals, profiles and the bootstrap need rows on one machine.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.load_rhc()
    >>> blocks = rs.Blocks.split(data, n_blocks=3, engine=None)
    >>> rs.Cox(rs.L1(20.0)).fit(blocks).status_
    'converged'
    """

    def __init__(
        self,
        read: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        engine: str | None = "dask",
        absent: str = "error",
    ) -> None:
        if engine not in ENGINES:
            raise InputError.wrong_option("engine", engine, ("None", "dask"))
        if absent not in ("error", "zero"):
            raise InputError.wrong_option("absent", absent, ("error", "zero"))
        self.absent = absent
        items = list(items)
        if not items:
            raise InputError("`items` is empty, so there are no blocks.", hint="check the paths.")
        self.names = [_name(k, item) for k, item in enumerate(items)]
        make = partial(_make, read)
        self.crew: Crew
        if engine is None:
            self.crew = HomeCrew(make, self.names, items)
        else:
            n_workers = min(len(items), available_threads())
            are_data = isinstance(items[0], _Packed)
            self.crew = DaskCrew(make, self.names, items, n_workers, are_data=are_data)

    @classmethod
    def split(
        cls,
        X: object,
        y: object = None,
        *,
        n_blocks: int,
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
        engine: str | None = "dask",
    ) -> "Blocks":
        """Split rows in memory into blocks of about equal size.

        For a `Design` opened from a file, only the path is sent, which all workers must be able to
        read.

        Parameters
        ----------
        X, y, sample_weight, strata, offset
            As for `Cox.fit`.
        n_blocks : int
        """
        if not (is_count(n_blocks)):
            raise InputError(
                f"`n_blocks` must be a whole number of at least 1, but it is {n_blocks!r}.",
                hint="about one for each worker.",
            )
        more = {"y": y, "sample_weight": sample_weight, "strata": strata, "offset": offset}
        if isinstance(X, Dataset):
            refuse_beside("a Dataset, which brings its own", **more)
        whole = _read(X if isinstance(X, Dataset) else {"X": X, **more})
        outcome = whole.outcome(1)
        order, n = outcome.risk.order, whole.design.n_rows
        edges = np.linspace(0, n, min(int(n_blocks), n) + 1).astype(int)
        cause = X.cause if isinstance(X, Dataset) else None
        parts = [
            _Packed.of(whole.design, outcome, np.sort(order[a:b]), cause)
            for a, b in pairwise(edges)
        ]
        return cls(_unpacked, parts, engine=engine)

    def close(self) -> None:
        """Release the rows, and a cluster that was started for them."""
        if isinstance(self.crew, DaskCrew):
            self.crew.close()

    def __enter__(self) -> "Blocks":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


# ------------------------------------------------------------------------------- in the workers


@dataclass(frozen=True)
class _BlockSource:
    """The rows of a block."""

    design: Design
    make: Callable[[int | str | None], Outcome]
    name: str = ""

    def outcome(self, cause: int | str | None) -> Outcome:
        """See `model.block.BlockSource`."""
        with _naming(self.name):
            outcome = self.make(cause)
            if outcome.labels:
                raise InputError(
                    "events of blocks must be numbers, because a block need not have all labels.",
                    hint="write them as 0 (censored), 1, 2, ...",
                )
            return outcome


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Errors about a block begin with its name."""
    try:
        yield
    except RisksetError as error:
        raise (InputError(f"{name}: {error}") if name else error) from None


def _name(k: int, item: object) -> str:
    return f"block {k}" + (f" ({str(item)!r})" if isinstance(item, str | os.PathLike) else "")


def _make(read: Callable[[Any], Any], name: str, item: object, n_threads: int) -> RowBlock:
    with _naming(name):
        found = read(item)
        source = found if isinstance(found, _BlockSource) else _read(found)
    return RowBlock(replace(source, name=name), n_threads)  # type: ignore[arg-type]


def _read(found: object) -> _BlockSource:
    """From what `read` may give."""
    if isinstance(found, Dataset):
        design = without_references(found.design, None)
        return _BlockSource(design, partial(_outcome_of, found))
    if isinstance(found, tuple) and len(found) == 2:
        found = {"X": found[0], "y": found[1]}
    if not isinstance(found, Mapping) or not {"X", "y"} <= set(found):
        raise InputError(
            f"`read` must give a Dataset, a pair (X, y) or a mapping with 'X' and 'y', but it gave "
            f"a {type(found).__name__}.",
            hint="for example lambda path: riskset.read_dataset(path, time=..., event=...).",
        )
    for name in found:
        if name not in ARGUMENTS:
            raise InputError.unknown_name(
                "argument", str(name), ARGUMENTS, place="what `read` gave"
            )
    design, _ = read_covariates(BaseEstimator(), found["X"], None)
    more = {name: found.get(name) for name in ARGUMENTS[2:]}
    make = partial(_outcome_from, found["y"], design.n_rows, more)
    return _BlockSource(design, make)


def _outcome_of(data: Dataset, cause: int | str | None) -> Outcome:
    return data.outcome_columns.outcome(
        data.schema.roles,
        data.words,
        cause=data.cause if cause is None else cause,
        is_part=True,
    )


def _outcome_from(
    y: object, n_rows: int, more: Mapping[str, Any], cause: int | str | None
) -> Outcome:
    return as_outcome(y, n_rows, **more, cause=cause, is_part=True)


# ------------------------------------------------------------------------------- cutting


@dataclass(frozen=True)
class _Packed:
    """Some rows, to be sent; where the design is in a file, `rows` are yet to be taken from it."""

    design: Design
    rows: Index | None
    outcome: Mapping[str, AnyArray]
    cause: int | str | None

    @classmethod
    def of(
        cls, design: Design, outcome: Outcome, rows: Index, cause: int | str | None
    ) -> "_Packed":
        columns = {
            "time": outcome.time[rows],
            "event": outcome.event[rows],
            "weight": outcome.weight[rows],
            "offset": outcome.offset[rows],
            "stratum": outcome.strata[outcome.stratum[rows]],
        }
        if design.source is not None:
            return cls(design, rows, columns, cause)
        return cls(design.take_rows(rows), None, columns, cause)


def _unpacked(packed: _Packed) -> _BlockSource:
    design = packed.design if packed.rows is None else packed.design.take_rows(packed.rows)
    return _BlockSource(design, partial(_outcome_again, packed))


def _outcome_again(packed: _Packed, cause: int | str | None) -> Outcome:
    chosen = packed.cause if cause is None else cause
    return Outcome.build(**packed.outcome, cause=chosen, is_part=True)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------- the fit


ATTEMPTS = 3
"""Times that a fit is begun before the deaths of workers are taken for its fault."""
MAX_VARIANCE_WORK = 1e11
"""Variances are made where they take fewer multiplications, n p^2, in each block."""


class BlockFit(NamedTuple):
    """The answer, and all that predictions and tests need of the rows."""

    joined: Joined
    solution: Solution
    kept: dict[str, AnyArray]
    is_penalized: bool


def fit_blocks(
    blocks: Blocks,
    cause: Any,
    censoring: Subdistribution | None,
    strengths: Callable[[Design], tuple[Features, Features]],
    **options: Any,
) -> BlockFit:
    """Fit with `options` of the minimiser; begin anew if a worker dies and others have room."""
    absent_is_zero, attempt = blocks.absent == "zero", 0
    while True:
        attempt += 1
        try:
            joined = join(
                blocks.crew, blocks.names, cause, censoring, absent_is_zero=absent_is_zero
            )
            return _fit(joined, strengths, options)
        except LostBlock as error:
            if attempt == ATTEMPTS:
                raise RisksetError(
                    f"workers died in each of {ATTEMPTS} attempts ({error}).",
                    hint="they may have too little memory for their blocks: use more workers, or "
                    "more and smaller blocks.",
                ) from error
            blocks.crew.restore()


def _fit(
    joined: Joined,
    strengths: Callable[[Design], tuple[Features, Features]],
    options: dict[str, Any],
) -> BlockFit:
    rows = joined.rows
    l1, l2 = strengths(rows.head)
    problem = BlockProblem.of(rows)
    run, solution = minimise(
        problem, *in_stored_units(rows.head, l1, l2), method=BlockMinimisation, **options
    )
    kept = {"center": rows.head.center}
    rows.refresh(run.eta)
    kept |= {f"baseline_{k}": v for k, v in _baseline(joined).to_arrays().items()}
    is_penalized = bool(l1.any() or l2.any())
    if not is_penalized:
        kept |= _variances(problem, run.eta, solution)
    solution = replace(solution, curvature=None)
    return BlockFit(joined, solution, kept, is_penalized)


def _baseline(joined: Joined) -> Baseline:
    """Cumulative hazards at the linear predictor 0 of stored units."""
    place = {label: k for k, label in enumerate(joined.strata.tolist())}
    strata, times, hazards = [], [], []
    for labels, stratum, time, log_hazard in joined.rows.call("baseline"):
        codes = np.array([place[label] for label in labels.tolist()], dtype=np.int64)
        strata.append(codes[stratum])
        times.append(time)
        hazards.append(log_hazard)
    stratum, time, log_hazard = map(np.concatenate, (strata, times, hazards))
    latest_first = np.lexsort((-time, stratum))
    starts = np.append(True, np.diff(stratum[latest_first]) != 0)
    log_cumulative = np.empty(time.size)
    log_cumulative[latest_first] = cumulate(log_hazard[latest_first], starts)
    order = np.lexsort((time, stratum))
    ptr = np.searchsorted(stratum[order], np.arange(joined.strata.size + 1)).astype(np.int64)
    return Baseline(joined.strata, ptr, time[order], log_cumulative[order], 0.0)


def _variances(problem: BlockProblem, eta: BlockEta, solution: Solution) -> dict[str, AnyArray]:
    """Inverse information and tests of a fit without penalty; no robust variance."""
    head, rows = problem.design, problem.block_rows
    p = head.n_features
    if p > KEEP_VARIANCE or float(head.n_rows) * p**2 > MAX_VARIANCE_WORK * rows.crew.n_blocks:
        return {}
    covariance = _covariance(rows, eta, np.flatnonzero(~solution.aliased))
    null = _covariance(rows, rows.at_offset(), np.arange(p))
    none = ChiSquareTest(float("nan"), covariance.rank)
    score = ChiSquareTest(null.inverse.form(problem.gradient_at_zero), null.rank)
    ratio = likelihood_ratio_test(solution.log_likelihood, solution.null_log_likelihood, score.df)
    wald = wald_test(solution.coef, covariance) if np.isfinite(solution.coef).all() else none
    return {
        "variance": covariance.matrix,
        "standard_error": covariance.standard_error,
        "robust_variance": np.full((p, p), np.nan),
        "robust_standard_error": np.full(p, np.nan),
        "tests": tests_to_array(ModelTests(ratio, score, wald, None)),
    }


def _covariance(rows: BlockRows, eta: BlockEta, columns: AnyArray) -> Covariance:
    head = rows.head
    information = rows.information(eta, columns)
    inner = generalized_inverse(information, rounding_of(rows.second_moments(columns)))
    inverse = among(inner, columns, head.n_features)
    return Covariance("model", np.arange(head.n_features), inverse, inverse.matrix, head.scale)


NO_ROBUST = Note(
    "no_robust_variance",
    (),
    "a fit in blocks has no robust variance, which this model or its weights call for: z and p are "
    "NaN, and standard_error_ is that of the inverse information.",
)
