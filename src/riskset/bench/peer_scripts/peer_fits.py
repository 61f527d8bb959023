"""Fits of other Python packages, in a process of their own: ``python peer_fits.py TOOL FOLDER``.

It imports nothing of riskset, because another environment may run it. FOLDER holds ``task.json``
and the arrays of `peers.hand_over`; it gets ``coef.bin`` and ``answer.json``: version, seconds to
convert the data and to fit, and the memory at the peak beyond that before, in MiB. Every tool gets
the penalty on its own scale: most divide the log likelihood by the number of rows. Tolerances are
tight, or the tool's own if the task says so. A task with a ``value`` asks for something else than a
fit, see `VALUES`.
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
    """The problem: minimise -loglik + l1 sum |beta_j| + l2 sum beta_j^2 / 2.

    `strengths` are l1 + l2, of a path several, and `l1_ratio` is the share of l1.
    """

    def __init__(self, folder: Path) -> None:
        task = json.loads((folder / "task.json").read_text())
        self.l1, self.l2 = float(task["l1"]), float(task.get("l2", 0.0))
        self.strength = self.l1 + self.l2
        self.l1_ratio = self.l1 / self.strength if self.strength > 0 else 1.0
        self.threads: int = task["threads"]
        self.n: int = task["n_rows"]
        self.p: int = task["n_columns"]
        self.time = np.fromfile(folder / "time.bin")
        self.event = np.fromfile(folder / "event.bin", np.int32) == 1
        self.entry = np.fromfile(folder / "entry.bin") if "late" in task else None
        self.ties = "efron" if "efron" in task else "breslow"
        self.is_robust = bool(task.get("robust"))
        self.has_default_tolerance = bool(task.get("has_default_tolerance"))
        self.tol: float | None = None
        self.strengths = np.array([self.strength])
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
        if self.has_default_tolerance:
            return {}
        self.tol = tight
        return {name: tight}

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


TIGHT = 1e-12
"""Of programs that go by coordinates and stop where the objective hardly falls."""

Fit = Callable[[], Any]
"""Gives the coefficients (p,)."""


def scikit_survival(task: Task) -> Fit:
    """Coordinate descent of glmnet, dense; without a penalty Newton's method."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis, CoxPHSurvivalAnalysis

    x = task.dense()
    y = np.empty(task.n, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = task.event, task.time
    if task.strength == 0:
        newton = CoxPHSurvivalAnalysis(ties=task.ties, **task.tolerance("tol", 1e-9))
        return lambda: newton.fit(x, y).coef_
    net = CoxnetSurvivalAnalysis(
        l1_ratio=task.l1_ratio,
        alphas=task.strengths / task.n,
        max_iter=1_000_000,
        **task.tolerance("tol", TIGHT),
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
        alpha=task.l1 / task.n,
        l1_ratio=1.0,
        method="breslow",
        max_iter=200,
        **task.tolerance("tol", 1e-9),
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
        start=np.full(task.n, task.time.min() - 1.0) if task.entry is None else task.entry,
        stop=task.time,
        status=task.event.astype(float),
        tie_method=task.ties,
    )
    return lambda: ad.grpnet(
        X=matrix,
        glm=glm,
        lmda_path=task.strengths / task.n,
        intercept=False,
        alpha=task.l1_ratio,
        early_exit=False,
        progress_bar=False,
        n_threads=task.threads,
        **task.tolerance("tol", TIGHT),
        **task.tolerance("irls_tol", TIGHT),
    ).betas.toarray()[-task.strengths.size :]


def lifelines(task: Task) -> Fit:
    """Newton's method on a smoothed penalty of standardised columns, dense; Efron's ties."""
    import pandas as pd
    from lifelines import CoxPHFitter

    x = task.dense()
    scale = x.std(axis=0, ddof=1)
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(task.p)])
    frame["time"], frame["event"] = task.time, task.event
    known = {"duration_col": "time", "event_col": "event", "robust": task.is_robust}
    if task.entry is not None:
        frame["entry"] = task.entry
        known["entry_col"] = "entry"
    model = CoxPHFitter(penalizer=task.l1 / task.n / scale, l1_ratio=1.0)
    if task.l1 == 0:
        model = CoxPHFitter()
    return lambda: model.fit(frame, **known).params_.to_numpy()


def statsmodels(task: Task) -> Fit:
    """Coordinate-wise line searches, dense; without a penalty Newton's method."""
    from statsmodels.duration.hazard_regression import PHReg

    model = PHReg(
        task.time, task.dense(), status=task.event.astype(float), ties=task.ties, entry=task.entry
    )
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


class Observed:
    """Times and events, with what else a value needs: a score, times, or covariates."""

    def __init__(self, folder: Path) -> None:
        self.task = json.loads((folder / "task.json").read_text())
        self.time = np.fromfile(folder / "time.bin")
        self.event = np.fromfile(folder / "event.bin", np.int32) == 1
        self._folder = folder

    def array(self, name: str) -> Any:
        """One more array."""
        return np.fromfile(self._folder / f"{name}.bin")


def sksurv_concordance(rows: Observed) -> Fit:
    """Harrell's, by the score."""
    from sksurv.metrics import concordance_index_censored

    score = rows.array("score")
    return lambda: concordance_index_censored(rows.event, rows.time, score)[:1]


def lifelines_concordance(rows: Observed) -> Fit:
    """Harrell's, by the score."""
    from lifelines.utils import concordance_index

    score = rows.array("score")
    return lambda: [concordance_index(rows.time, -score, rows.event)]


def sksurv_kaplan_meier(rows: Observed) -> Fit:
    """The curve and its intervals, then its values at some times."""
    from sksurv.nonparametric import kaplan_meier_estimator

    times = rows.array("times")

    def curve() -> Any:
        at, survival, _ = kaplan_meier_estimator(rows.event, rows.time, conf_type="log-log")
        return survival[np.searchsorted(at, times, side="right") - 1]

    return curve


def lifelines_kaplan_meier(rows: Observed) -> Fit:
    """The curve and its intervals, then its values at some times."""
    from lifelines import KaplanMeierFitter

    times = rows.array("times")

    def curve() -> Any:
        fitted = KaplanMeierFitter().fit(rows.time, rows.event)
        return fitted.survival_function_at_times(times).to_numpy()

    return curve


def lifelines_survival(rows: Observed) -> Fit:
    """Survival of every row at some times; the model is fitted before the clock starts."""
    import pandas as pd
    from lifelines import CoxPHFitter

    times, p = rows.array("times"), rows.task["n_columns"]
    frame = pd.DataFrame(rows.array("x").reshape(p, -1).T, columns=[f"x{j}" for j in range(p)])
    frame["time"], frame["event"] = rows.time, rows.event
    model = CoxPHFitter().fit(frame, "time", "event")
    return lambda: model.predict_survival_function(frame, times=times).to_numpy().mean(axis=1)


VALUES: dict[tuple[str, str], Callable[[Observed], Fit]] = {
    ("scikit-survival", "concordance"): sksurv_concordance,
    ("scikit-survival", "kaplan-meier"): sksurv_kaplan_meier,
    ("lifelines", "concordance"): lifelines_concordance,
    ("lifelines", "kaplan-meier"): lifelines_kaplan_meier,
    ("lifelines", "survival"): lifelines_survival,
}
"""Who prepares what else is computed; of survival, the means over all rows are given back."""


def peak_mb() -> float:
    """Largest resident memory of this process so far, in MiB.

    That of `getrusage` has what was before this program began: the memory of who started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
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
    value = json.loads((folder / "task.json").read_text()).get("value")
    task = Task(folder) if value is None else None
    rows = None if value is None else Observed(folder)
    before, start = peak_mb(), time.perf_counter()
    if task is not None:
        fit = prepare(task)
    else:
        assert rows is not None
        fit = VALUES[tool, value](rows)
    ready, before_cpu = time.perf_counter(), time.process_time()
    coef = np.asarray(fit(), dtype=np.float64).ravel()
    done, cpu = time.perf_counter(), time.process_time() - before_cpu
    coef.tofile(folder / "coef.bin")
    answer = {"prepare": ready - start, "seconds": done - ready, "cpu": cpu}
    answer["peak_mb"] = peak_mb() - before
    if task is not None and task.tol is not None:
        answer["tol"] = task.tol
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
