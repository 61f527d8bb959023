"""What is computed for each of very many rows: concordance, survival, curves."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from riskset._runtime import available_threads
from riskset._types import AnyArray, Rows
from riskset._version import __version__
from riskset.bench.case import WARM_UP_ROWS, Case
from riskset.bench.experiment import TOL, WorkExperiment
from riskset.bench.measure import measure, processor
from riskset.bench.record import BenchmarkRecord
from riskset.bench.works import ChosenWork
from riskset.curves.kaplan_meier import kaplan_meier
from riskset.data.outcome import Surv
from riskset.metrics import concordance

__all__ = ["VALUES", "Asked", "values"]

QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Of the times; those at which survival is asked for."""


class Asked(NamedTuple):
    """A computation, and what other programs need for the same."""

    compute: Callable[[], Rows]
    arrays: dict[str, AnyArray]
    facts: dict[str, Any]


Ask = Callable[[tuple[int, ...], int], Asked]
"""A computation of a size, with data from a seed."""


def values(
    experiment: WorkExperiment, work: ChosenWork, ask: Ask | None = None
) -> Iterator[BenchmarkRecord]:
    """The time of one computation, ours and then those of the peers, with what came of it."""
    ask = VALUES[work.kind] if ask is None else ask
    asked = ask(work.sizes, experiment.seed)
    few = ask((WARM_UP_ROWS, *work.sizes[1:]), 1)
    few.compute()  # compiles
    done = measure(asked.compute, **experiment.timing)
    known: dict[str, Any] = {
        "experiment": experiment.name,
        "n_rows": work.sizes[0],
        "n_events": int((asked.arrays["event"] == 1).sum()),
        "step": work.kind,
        "processor": processor(),
        **asked.facts,
    }
    ours = {"version": __version__, "threads": available_threads(), "note": _said(done.result)}
    yield BenchmarkRecord(**(known | ours | done.times))
    if experiment.peers is None:
        return
    for found in experiment.peers.values(work.kind, asked.arrays, **asked.facts):
        note = {"note": _said(found.values)} if found.values.size else {}
        yield BenchmarkRecord(**(known | found.known | note))


def _said(numbers: Rows) -> str:
    return ", ".join(f"{number:.6f}" for number in numbers)


def _observed(n: int, seed: int) -> dict[str, AnyArray]:
    """Times, events of about two thirds, and a score of which the risk is the exponential."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 0.5, n)
    death, end = rng.exponential(np.exp(-score)), rng.exponential(2.0, n)
    event = (death <= end).astype(np.int32)
    return {"time": np.minimum(death, end), "event": event, "score": score}


def _concordance(sizes: tuple[int, ...], seed: int) -> Asked:
    rows = _observed(sizes[0], seed)
    y = Surv(rows["time"], rows["event"])
    return Asked(lambda: np.array([float(concordance(y, rows["score"]))]), rows, {})


def _kaplan_meier(sizes: tuple[int, ...], seed: int) -> Asked:
    rows = _observed(sizes[0], seed)
    y, times = Surv(rows["time"], rows["event"]), np.quantile(rows["time"], QUANTILES)
    del rows["score"]
    return Asked(lambda: kaplan_meier(y).curves[0].at(times), rows | {"times": times}, {})


def _survival(sizes: tuple[int, ...], seed: int) -> Asked:
    case = Case.draw("", "cox", sizes[0], sizes[1], 0.2, seed)
    model = case.estimator(tol=TOL).fit(case.X, case.y)
    times = np.quantile(case.cohort.time, QUANTILES)
    arrays: dict[str, AnyArray] = {
        "time": case.cohort.time,
        "event": case.cohort.event.astype(np.int32),
        "times": times,
        "x": case.cohort.X.toarray(order="F").ravel(order="K").astype(np.float64),
    }

    def means() -> Rows:
        return np.asarray(model.predict_survival_function(case.X, times).mean(axis=0))

    return Asked(means, arrays, {"n_columns": sizes[1], "n_entries": case.n_entries})


VALUES: dict[str, Ask] = {
    "concordance": _concordance,
    "survival": _survival,
    "kaplan-meier": _kaplan_meier,
}
