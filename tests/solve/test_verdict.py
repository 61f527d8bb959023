"""Verdicts on finiteness against fractions: never "converged" where an estimate is infinite."""

import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

import riskset as rs
from parameters import rest_is_slow
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.cox import CoxLoss
from riskset.model.logistic import LogisticLoss
from riskset.model.loss import Loss
from riskset.solve import ccd
from riskset.solve.fit import fit_by_newton
from riskset.solve.result import Solution
from solve.verdict import (
    hard_problem,
    is_infinite,
    pairs_of_logistic,
    pairs_of_survival,
    stratified_problem,
)

RUNTIME = Runtime(1)

KNOWN = (50, 85, 92, 178, 218, 354, 368, 391)
"""Problems whose infinite estimates rounding once proved to be finite."""


def cox(seed: int) -> tuple[np.ndarray, Loss, bool | None]:
    h = hard_problem(seed)
    extra = {name: h[name] for name in ("entry", "stratum", "weight") if name in h}
    outcome = Outcome.build(h["time"], h["event"], offset=h["offset"], **extra)
    extra.pop("weight", None)
    pairs = pairs_of_survival(h["x"], h["time"], h["event"], **extra)
    return h["x"], CoxLoss(outcome, "efron" if seed % 2 else "breslow", RUNTIME), is_infinite(pairs)


def logistic(seed: int) -> tuple[np.ndarray, Loss, bool | None]:
    h = hard_problem(seed)
    event = h["event"] & (np.arange(h["event"].size) > 0)
    event[-1] = True
    loss = LogisticLoss.of(event, RUNTIME, weight=h.get("weight"), offset=h["offset"])
    return h["x"], loss, is_infinite(pairs_of_logistic(h["x"], event))


def fitted(x: np.ndarray, loss: Loss, fit: object = fit_by_newton) -> Solution:
    none = np.zeros(x.shape[1])
    return fit(Design.from_dense(x), loss, none, none)  # type: ignore[operator]


def is_right(status: str, truth: bool | None) -> bool:
    """Whether a status is compatible with what fractions prove."""
    if truth:
        return status in ("infinite_estimate", "undecided", "max_iter")
    return truth is None or status in ("converged", "undecided", "max_iter", "not_estimable")


@pytest.mark.portability
@pytest.mark.parametrize("n", rest_is_slow([40, 120], 1))
@pytest.mark.parametrize("problem", [cox, logistic])
def test_no_verdict_is_wrong_and_few_are_missing(problem: object, n: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(n):
        if not hard_problem(seed)["event"].any():
            continue
        x, loss, truth = problem(seed)  # type: ignore[operator]
        solution = fitted(x, loss)
        assert is_right(solution.status, truth), (seed, solution.status, truth)
        codes = {note.code for note in solution.notes}
        assert ("undecided" in codes) <= (solution.status in ("undecided", "max_iter")), seed
        counts[solution.status] += 1
    assert counts["infinite_estimate"] > n * 25 / 120
    assert counts["converged"] > n * 25 / 120
    assert counts["undecided"] <= n / 60
    assert counts["max_iter"] <= n / 24


@pytest.mark.portability
@pytest.mark.parametrize("seeds", rest_is_slow([KNOWN, range(250)], 1), ids=str)
def test_rows_of_strata_that_count_for_nothing_prove_nothing(seeds: Sequence[int]) -> None:
    undecided = 0
    for seed in seeds:
        h = stratified_problem(seed)
        x, used = h.pop("x"), h["weight"] > 0
        known = {name: values[used] for name, values in h.items()}
        pairs = pairs_of_survival(
            x[used], known["time"], known["event"], entry=known.get("entry"),
            stratum=known["stratum"],
        )  # fmt: skip
        truth = is_infinite(pairs)
        outcome = Outcome.build(h.pop("time"), h.pop("event"), **h)
        for ties in ("breslow", "efron"):
            status = fitted(x, CoxLoss(outcome, ties, RUNTIME)).status
            assert is_right(status, truth), (seed, ties, status, truth)
            undecided += status == "undecided"
    assert undecided <= max(2, len(seeds) / 30)


@pytest.mark.parametrize("n", rest_is_slow([10, 30], 1))
def test_sweeps_come_to_the_same_verdicts(n: int) -> None:
    for seed in range(n):
        if hard_problem(seed)["event"].any():
            x, loss, truth = cox(seed)
            assert is_right(fitted(x, loss, ccd.fit_by_ccd).status, truth), seed


def competing(seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    h = hard_problem(seed)
    rng = np.random.default_rng(seed)
    other = ~h["event"] & (rng.random(h["event"].size) < 0.5)
    return h, np.where(h["event"], 1, np.where(other, 2, 0))


@pytest.mark.portability
@pytest.mark.parametrize("n", rest_is_slow([20, 60], 1))
def test_competing_risks(n: int) -> None:
    # Without censoring before the last event every weight after a competing event is positive.
    found: Counter[str] = Counter()
    for seed in range(n):
        h, status = competing(seed)
        if not h["event"].any():
            continue
        time = np.where(status == 0, h["time"].max() + 1, h["time"])  # censored at the end only
        stratum = {"strata": h["stratum"]} if "stratum" in h else {}
        pairs = pairs_of_survival(
            h["x"], time, status == 1, stratum=h.get("stratum"), stays=status == 2
        )
        with warnings.catch_warnings(action="ignore"):
            model = rs.FineGray(cause=1).fit(
                h["x"], rs.Surv(time, status), offset=h["offset"], **stratum
            )
            causes = rs.CauseSpecificCox(causes=[1]).fit(
                h["x"], rs.Surv(time, status), offset=h["offset"], **stratum
            )
        assert is_right(model.status_, is_infinite(pairs)), seed
        own = pairs_of_survival(h["x"], time, status == 1, stratum=h.get("stratum"))
        assert is_right(causes.status_[1], is_infinite(own)), seed
        found[model.status_] += 1
    assert found["infinite_estimate"] > n / 6
    assert found["converged"] > n / 6
