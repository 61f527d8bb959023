"""Fits of other Python packages, in a process of their own: ``python peer_fits.py TOOL FOLDER``.

It imports nothing of riskset, because another environment may run it. FOLDER holds ``task.json``
and the arrays of `peers.hand_over`; it gets ``coef.bin`` and ``answer.json``: version, seconds to
convert the data and to fit, and the memory at the peak beyond that before, in MiB. Every tool gets
the penalty on its own scale: most divide the log likelihood by the number of rows. Tolerances are
tight, or the tool's own if the task says so.
"""

import importlib
import importlib.metadata
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


class Task:
    """The problem: minimise -loglik + l1 sum |beta_j|."""

    def __init__(self, folder: Path) -> None:
        task = json.loads((folder / "task.json").read_text())
        self.l1: float = task["l1"]
        self.threads: int = task["threads"]
        self.n: int = task["n_rows"]
        self.p: int = task["n_columns"]
        self.time = np.fromfile(folder / "time.bin")
        self.event = np.fromfile(folder / "event.bin", np.int32) == 1
        self.has_default_tolerance = bool(task.get("has_default_tolerance"))
        self.strengths = np.array([self.l1])
        if "n_strengths" in task:
            self.strengths = np.fromfile(folder / "strengths.bin")
        self.is_dense = bool(task.get("is_dense"))
        if self.is_dense:
            self._x = np.fromfile(folder / "x.bin").reshape(self.p, self.n).T
            return
        self._indptr = np.fromfile(folder / "indptr.bin").astype(np.int64)
        self._indices = np.fromfile(folder / "indices.bin", np.int32)

    def tolerance(self, name: str, tight: float) -> dict[str, float]:
        """The tolerance as an argument; none for the tool's own."""
        return {} if self.has_default_tolerance else {name: tight}

    def sparse(self) -> Any:
        """The covariates as a CSC matrix."""
        if self.is_dense:
            return sp.csc_matrix(self._x)
        ones, indptr = np.ones(self._indices.size), self._indptr.astype(np.int32)
        return sp.csc_matrix((ones, self._indices, indptr), shape=(self.n, self.p))

    def dense(self) -> Any:
        """The covariates as a dense array by columns."""
        if self.is_dense:
            return self._x
        x = np.zeros((self.n, self.p), order="F")
        for j in range(self.p):
            x[self._indices[self._indptr[j] : self._indptr[j + 1]], j] = 1.0
        return x


Fit = Callable[[], Any]
"""Gives the coefficients (p,)."""


def scikit_survival(task: Task) -> Fit:
    """Coordinate descent of glmnet, dense; without a penalty Newton's method."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis, CoxPHSurvivalAnalysis

    x = task.dense()
    y = np.empty(task.n, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = task.event, task.time
    if task.l1 == 0:
        newton = CoxPHSurvivalAnalysis(ties="breslow", **task.tolerance("tol", 1e-9))
        return lambda: newton.fit(x, y).coef_
    net = CoxnetSurvivalAnalysis(
        l1_ratio=1.0,
        alphas=task.strengths / task.n,
        max_iter=1_000_000,
        **task.tolerance("tol", 1e-9),
    )
    return lambda: net.fit(x, y).coef_.T


def skglm(task: Task) -> Fit:
    """Proximal Newton on working sets, sparse."""
    from skglm.estimators import CoxEstimator

    x, y = task.sparse(), np.column_stack([task.time, task.event.astype(float)])
    few = np.argsort(~task.event, kind="stable")[:500]
    small = CoxEstimator(alpha=1e-3, l1_ratio=1.0, method="breslow", max_iter=3)
    small.fit(sp.csc_matrix(x[few]), y[few])  # compiles
    model = CoxEstimator(
        alpha=task.l1 / task.n, l1_ratio=1.0, method="breslow", tol=1e-9, max_iter=200
    )
    return lambda: model.fit(x, y).coef_


def adelie(task: Task) -> Fit:
    """Proximal Newton with coordinate descent, on columns as they come."""
    import adelie as ad

    matrix = (
        np.asfortranarray(task.dense())
        if task.is_dense
        else ad.matrix.sparse(task.sparse(), method="naive", n_threads=task.threads)
    )
    glm = ad.glm.cox(
        start=np.full(task.n, task.time.min() - 1.0),
        stop=task.time,
        status=task.event.astype(float),
        tie_method="breslow",
    )
    return lambda: ad.grpnet(
        X=matrix,
        glm=glm,
        lmda_path=task.strengths / task.n,
        intercept=False,
        alpha=1,
        early_exit=False,
        progress_bar=False,
        n_threads=task.threads,
        **task.tolerance("tol", 1e-10),
    ).betas.toarray()[-task.strengths.size :]


def lifelines(task: Task) -> Fit:
    """Newton's method on a smoothed penalty of standardised columns, dense; Efron's ties."""
    import pandas as pd
    from lifelines import CoxPHFitter

    x = task.dense()
    scale = x.std(axis=0, ddof=1)
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(task.p)])
    frame["time"], frame["event"] = task.time, task.event
    model = CoxPHFitter(penalizer=task.l1 / task.n / scale, l1_ratio=1.0)
    if task.l1 == 0:
        model = CoxPHFitter()
    return lambda: model.fit(frame, "time", "event").params_.to_numpy()


def statsmodels(task: Task) -> Fit:
    """Coordinate-wise line searches, dense; without a penalty Newton's method."""
    from statsmodels.duration.hazard_regression import PHReg

    model = PHReg(task.time, task.dense(), status=task.event.astype(float), ties="breslow")
    if task.l1 == 0:
        return lambda: model.fit().params
    return lambda: (
        model.fit_regularized(
            method="elastic_net",
            alpha=task.l1 / task.n,
            L1_wt=1.0,
            maxiter=500,
            cnvrg_tol=1e-9,
            zero_tol=1e-12,
        ).params
    )


TOOLS: dict[str, tuple[str, Callable[[Task], Fit]]] = {
    "scikit-survival": ("sksurv.linear_model", scikit_survival),
    "skglm": ("skglm.estimators", skglm),
    "adelie": ("adelie", adelie),
    "lifelines": ("lifelines", lifelines),
    "statsmodels": ("statsmodels.duration.hazard_regression", statsmodels),
}
"""The module, imported before the clock starts, and who prepares the fit."""


def peak_mb() -> float:
    """Largest resident memory of this process so far, in MiB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (2**20 if sys.platform == "darwin" else 2**10)


def versions() -> dict[str, str]:
    """Those that are installed."""
    found = {}
    for package in TOOLS:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def main(arguments: list[str]) -> None:
    """Print the versions, or answer one task."""
    if arguments == ["--versions"]:
        print(json.dumps(versions()))
        return
    tool, folder = arguments[0], Path(arguments[1])
    warnings.simplefilter("ignore")
    module, prepare = TOOLS[tool]
    importlib.import_module(module)
    task = Task(folder)
    before, start = peak_mb(), time.perf_counter()
    fit = prepare(task)
    ready = time.perf_counter()
    coef = np.asarray(fit(), dtype=np.float64).ravel()
    done = time.perf_counter()
    coef.tofile(folder / "coef.bin")
    answer = {"prepare": ready - start, "seconds": done - ready, "peak_mb": peak_mb() - before}
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
