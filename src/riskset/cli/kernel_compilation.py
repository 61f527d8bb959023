"""``riskset compile``: kernels compiled ahead, for images, clusters and shared environments."""

import multiprocessing
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from riskset._errors import InputError
from riskset._runtime import available_threads
from riskset.cli.terminal import output

__all__ = ["compile_kernels"]

N_ROWS = 300


class _Drawn:
    """Rows with all that the works need."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.dense = rng.normal(size=(N_ROWS, 3))
        self.ones = (rng.random((N_ROWS, 40)) < 0.1).astype(float)
        self.time = np.ceil(rng.exponential(100.0, N_ROWS))
        self.event = rng.integers(0, 2, N_ROWS)
        self.cause = rng.integers(0, 3, N_ROWS)
        self.entry = self.time * rng.uniform(0.0, 0.5, N_ROWS)
        score = 1.0 / (1.0 + np.exp(1.0 - 2.0 * self.ones[:, :5].sum(axis=1)))
        self.treatment = (rng.random(N_ROWS) < score).astype(int)
        self.many = rng.normal(size=(N_ROWS, 200))

    @property
    def sparse(self) -> Any:
        from scipy.sparse import csc_array

        return csc_array(self.ones)


def _dense(drawn: _Drawn) -> None:
    import riskset as rs

    y = rs.Surv(drawn.time, drawn.event)
    rs.Cox().fit(drawn.dense, y)
    rs.Cox(ties="efron").fit(drawn.dense, y, cluster=drawn.time)
    rs.path(rs.Cox(penalty=rs.L1()), drawn.ones, y)
    rs.path(rs.Cox(penalty=rs.L1()), drawn.many, y, n_penalties=20, min_ratio=0.01)


def _sparse(drawn: _Drawn) -> None:
    import riskset as rs

    y = rs.Surv(drawn.time, drawn.event)
    rs.Cox(penalty=rs.L1(2.0)).fit(drawn.sparse, y)
    rs.CoxCV(penalty=rs.L1(), folds=3).fit(drawn.sparse, y)


def _competing(drawn: _Drawn) -> None:
    import riskset as rs

    y = rs.Surv(drawn.time, drawn.cause)
    rs.FineGray().fit(drawn.dense, y)
    rs.FineGray(penalty=rs.L1(2.0)).fit(drawn.sparse, y)
    rs.aalen_johansen(y)


def _late(drawn: _Drawn) -> None:
    import riskset as rs

    y = rs.Surv(drawn.time, drawn.event, entry=drawn.entry)
    rs.Cox().fit(drawn.dense, y)
    rs.Cox(penalty=rs.L1(2.0)).fit(drawn.sparse, y)


def _curves(drawn: _Drawn) -> None:
    import riskset as rs
    from riskset import metrics

    y = rs.Surv(drawn.time, drawn.event)
    rs.kaplan_meier(y)
    rs.logrank_test(y, drawn.treatment)
    metrics.concordance(y, drawn.dense[:, 0])


def _study(drawn: _Drawn) -> None:
    import riskset as rs
    from riskset import cohort

    y = rs.Surv(drawn.time, drawn.event)
    score = cohort.propensity_score(drawn.treatment, drawn.sparse, folds=3)
    matched = cohort.match(cohort.Population(drawn.treatment, score.score))
    cohort.balance(drawn.sparse, matched)
    cohort.fit_outcome(y, matched)


WORKS: Mapping[str, Callable[[_Drawn], None]] = {
    "dense tables": _dense,
    "sparse tables": _sparse,
    "competing risks": _competing,
    "late entry": _late,
    "curves": _curves,
    "studies": _study,
}
"""What compiles the kernels of common tasks."""


def compile_kernels(
    processes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Compile in this number of processes; left out: one for each core."
        ),
    ] = None,
) -> None:
    """Compile the kernels of common tasks for this processor, and keep them.

    Without this, riskset compiles each kernel when it is first needed, and the first fit takes some
    seconds longer. Run it after the installation in images, on clusters, and in environments that
    people share.
    """
    console = output()
    folder, begin = _folder(), time.perf_counter()
    before = _kernels(folder)
    n_processes = min(processes or available_threads(), len(WORKS))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes, mp_context=context) as pool:
        running = {name: pool.submit(_work, name) for name in WORKS}
        for name, answer in running.items():
            seconds, fault = _answer(name, answer)
            if fault is not None:
                raise InputError(
                    f"compiled kernels cannot be kept in {str(folder)!r}: {fault}.",
                    hint="make room there and let this account write to it, or set "
                    "`NUMBA_CACHE_DIR` to another folder.",
                )
            console.print(f"{name}: {seconds:.1f} s")
    new = len(_kernels(folder) - before)
    whole = time.perf_counter() - begin
    console.print(f"compiled {new} kernels in {whole:.0f} s and kept them in {folder}")


def _work(name: str) -> tuple[float, str | None]:
    """Do one of the works in this process: its seconds, and why kernels were not kept."""
    from riskset.kernels._jit_cache import NOT_KEPT

    begin = time.perf_counter()
    WORKS[name](_Drawn())
    fault = None if not NOT_KEPT else NOT_KEPT[0].strerror or str(NOT_KEPT[0])
    return time.perf_counter() - begin, fault


def _answer(name: str, running: "Future[tuple[float, str | None]]") -> tuple[float, str | None]:
    try:
        return running.result()
    except BrokenProcessPool:
        raise InputError(
            f"a process ended while it compiled the kernels for {name}; the system may have been "
            "short of memory.",
            hint="compile one after the other with `--processes 1`.",
        ) from None


def _folder() -> Path:
    """Where kernels are kept; raises `InputError` if they are not, or not where they should."""
    from riskset.kernels._jit import CACHE, folder_of
    from riskset.kernels.descent_cpu import minimise_quadratic

    found, given = folder_of(minimise_quadratic), os.environ.get("NUMBA_CACHE_DIR")
    is_other = given and not (found and found.resolve().is_relative_to(Path(given).resolve()))
    reasons = (
        (
            os.environ.get("NUMBA_DISABLE_JIT", "0") != "0",
            "`NUMBA_DISABLE_JIT` is set, so nothing is compiled",
            "unset it.",
        ),
        (not CACHE, "`RISKSET_JIT_CACHE` is not 1", "unset it, or set it to 1."),
        (
            is_other,
            f"the folder {given!r}, which `NUMBA_CACHE_DIR` names, cannot be written to",
            "let this account write to it, or name another folder.",
        ),
        (
            found is None,
            "neither the folder of riskset nor your cache folder can be written to",
            "set `NUMBA_CACHE_DIR` to a folder that can be written to.",
        ),
    )
    for holds, reason, hint in reasons:
        if holds:
            raise InputError(f"compiled kernels cannot be kept: {reason}.", hint=hint)
    assert found is not None
    return found


def _kernels(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.kernel")}
