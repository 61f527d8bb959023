"""The fit of an estimator to `Blocks`, and what it leaves behind."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from riskset._errors import RisksetError
from riskset._messages import Note
from riskset._types import AnyArray, Features
from riskset.actors import LostBlock
from riskset.data.design import Design
from riskset.estimators._fitted import KEEP_VARIANCE, ModelTests, tests_to_array
from riskset.estimators.blocks import Blocks
from riskset.infer.variance import Covariance, among, generalized_inverse, rounding_of
from riskset.infer.wald import ChiSquareTest, likelihood_ratio_test, wald_test
from riskset.kernels.means_cpu import cumulate
from riskset.model.baseline import Baseline
from riskset.solve.block_join import Joined, Subdistribution, join
from riskset.solve.block_rows import BlockEta, BlockRows
from riskset.solve.blocks import BlockMinimisation, BlockProblem
from riskset.solve.fit import minimise
from riskset.solve.optimality import in_stored_units
from riskset.solve.prox_newton import ResidualReport
from riskset.solve.result import Solution

__all__ = ["BlockFit", "fit_blocks"]

ATTEMPTS = 3
"""Times that a fit is begun before the deaths of workers are taken for its fault."""
MOST_WORK = 1e11
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
    tol: float,
    max_iter: int,
    report: ResidualReport,
) -> BlockFit:
    """Fit; begins anew where a worker died and others can take its blocks.

    Raises
    ------
    RisksetError
        If workers die again and again.
    """
    attempt = 0
    while True:
        attempt += 1
        try:
            return _fit(blocks, cause, censoring, strengths, tol, max_iter, report)
        except LostBlock as error:
            if attempt == ATTEMPTS:
                raise RisksetError(
                    f"workers died in each of {ATTEMPTS} attempts ({error}).",
                    hint="they may have too little memory for their blocks: use more workers, or "
                    "more and smaller blocks.",
                ) from error
            blocks.crew.restore()


def _fit(
    blocks: Blocks,
    cause: Any,
    censoring: Subdistribution | None,
    strengths: Callable[[Design], tuple[Features, Features]],
    tol: float,
    max_iter: int,
    report: ResidualReport,
) -> BlockFit:
    joined = join(
        blocks.crew, blocks.names, cause, censoring, absent_is_zero=blocks.absent == "zero"
    )
    rows = joined.rows
    l1, l2 = strengths(rows.head)
    problem = BlockProblem.of(rows)
    run, solution = minimise(
        problem, *in_stored_units(rows.head, l1, l2), tol=tol, max_iter=max_iter, report=report,
        method=BlockMinimisation,
    )  # fmt: skip
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
    if p > KEEP_VARIANCE or float(head.n_rows) * p**2 > MOST_WORK * rows.crew.n_blocks:
        return {}
    found = _covariance(rows, eta, np.flatnonzero(~solution.aliased))
    null = _covariance(rows, rows.at_offset(), np.arange(p))
    none = ChiSquareTest(float("nan"), found.rank)
    score = ChiSquareTest(null.inverse.form(problem.gradient_at_zero), null.rank)
    ratio = likelihood_ratio_test(solution.log_likelihood, solution.null_log_likelihood, score.df)
    wald = wald_test(solution.coef, found) if np.isfinite(solution.coef).all() else none
    return {
        "variance": found.matrix,
        "standard_error": found.standard_error,
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
