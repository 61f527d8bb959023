"""The step of tests between the curves of both arms: log-rank, Gray's and max-combo tests."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._messages import Note
from riskset._types import AnyArray
from riskset.cohort.adjustments.adjustment import Adjustment
from riskset.cohort.effects.estimate import Reading
from riskset.cohort.effects.outcome_data import belong_together, has_weights
from riskset.cohort.effects.readings import readings_of
from riskset.curves.comparison import GroupTest, gray_test, logrank_test
from riskset.curves.max_combo import max_combo_test
from riskset.disclosure.rows import known
from riskset.results.rows import CurveTestRow
from riskset.study.cache import StepResult
from riskset.study.sources.source import AnalysedOutcome, Followed
from riskset.study.steps.data_set_means import mean_row
from riskset.study.steps.deviation_weights import WeightedRows
from riskset.study.steps.propensity_step import status_of

__all__ = ["CurveTestStep", "curve_tests", "pooled_curve_tests"]

KEYS = ("adjusted", "test")


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveTestStep(StepResult, step="tests of curves"):
    """Tests between the arms for one outcome, before and after adjustment."""

    rows: list[CurveTestRow]


@dataclass(frozen=True, eq=False)
class _Arms:
    """Rows of both arms (n,) as tests take them; `weight`, `strata` and `cluster` may be absent.

    `is_counted` says that rows are independent people, of whom no small sets are compared.
    """

    reading: Reading
    y: AnyArray
    arm: AnyArray
    weight: AnyArray | None
    strata: AnyArray | None
    cluster: AnyArray | None
    is_counted: bool

    @property
    def is_robust(self) -> bool:
        return self.weight is not None or self.cluster is not None

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the tests that rows with weights and clusters can have."""
        return {
            "weight": self.weight,
            "strata": self.strata,
            "cluster": self.cluster,
            "variance": "robust" if self.is_robust else "counts",
        }

    @property
    def can_be_compared(self) -> bool:
        """Whether there are two arms and an outcome."""
        return np.unique(self.arm).size > 1 and bool((self.y["event"] == 1).any())

    @property
    def has_competing(self) -> bool:
        return bool((self.y["event"] == 2).any())


def curve_tests(outcome: AnalysedOutcome, weighted: WeightedRows | None = None) -> CurveTestStep:
    """The tests that the model asks for, of everybody and of the adjusted people.

    If people are censored when they deviate, what is adjusted has the weights of `weighted`, and
    without these there is nothing adjusted.
    """
    followed, people = outcome.followed, outcome.people
    everybody = _arms(followed, followed.people, "marginal")
    sides = [(False, everybody, everybody)]
    if weighted is not None:
        own = _weighted_arms(people, weighted)
        sides.append((True, own, own))
    elif people.status == "ok" and followed.anyway is None:
        sides.append((True, *_adjusted_arms(outcome)))
    rows: list[CurveTestRow] = []
    notes: dict[Note, None] = {}
    for is_adjusted, within, across in sides:
        for test in outcome.analysis.model.curve_tests:
            arms = across if test == "max-combo" else within
            if not arms.can_be_compared:
                continue
            try:
                found = list(TESTS[test](arms))
            except InputError as error:
                reason = status_of(error)[1]
                notes[Note("no_curve_test", (), reason.template, reason.values)] = None
                continue
            about = {"adjusted": is_adjusted, "test": test, "reading": arms.reading}
            rows += [row.changed(about) for row in found]
    return CurveTestStep(rows=rows, notes=tuple(notes))


def _adjusted_arms(outcome: AnalysedOutcome) -> tuple[_Arms, _Arms]:
    """The adjusted people in the main reading, and for weights of time.

    These are powers of the survival in each stratum, which in a pair is 1 when both are at risk.
    Gray's variance is one of large strata, too. So small sets are compared within by the log-rank
    test alone.
    """
    followed, people = outcome.followed, outcome.people
    reading = _main_reading(outcome)
    has_small_sets = people.kind == "matching" or outcome.analysis.coarsen is not None
    within = _arms(followed, people, reading)
    if not has_small_sets:
        return within, within
    within = replace(within, is_counted=False)
    if reading != "stratified":
        return within, within
    return within, _arms(followed, people, "marginal")


def _main_reading(outcome: AnalysedOutcome) -> Reading:
    """The reading of the main estimate; sampling weights have the marginal one."""
    people = outcome.people
    is_sampled = people.population.has_sampling_weight
    sets = None if people.set_id is None else people.kind
    reading = readings_of(outcome.analysis.model, sets, is_sampled=is_sampled)[0]
    return "marginal" if is_sampled or (sets is None and reading == "stratified") else reading


def _arms(followed: Followed, people: Adjustment, reading: Reading) -> _Arms:
    rows = np.flatnonzero(people.kept)
    together = belong_together(people, rows, reading)
    weight = people.weight[rows] if has_weights(people, reading) else None
    strata = None
    if reading == "stratified":
        assert people.set_id is not None
        strata = people.set_id[rows]
    return _Arms(
        reading,
        followed.outcomes.take(rows).y,
        people.population.treatment[rows],
        weight,
        strata,
        people.cluster[rows] if together else None,
        weight is None and not together and followed.entry is None,
    )


def _weighted_arms(people: Adjustment, weighted: WeightedRows) -> _Arms:
    """Rows whose weights change with time, several of a person."""
    weight = weighted.whole_weight
    used = np.flatnonzero(weight > 0)
    person = weighted.person[used]
    return _Arms(
        "marginal",
        weighted.outcome[used],
        people.population.treatment[person],
        weight[used],
        None,
        people.population.person_id[person],
        is_counted=False,
    )


def _logrank(arms: _Arms) -> Iterator[CurveTestRow]:
    yield from _of_group_test(logrank_test(arms.y, arms.arm, 1, **arms.arguments))


def _gray(arms: _Arms) -> Iterator[CurveTestRow]:
    """Only where the curves are incidences, and the test counts what it is given."""
    if arms.has_competing and arms.is_counted:
        yield from _of_group_test(gray_test(arms.y, arms.arm, 1, strata=arms.strata))


def _of_group_test(found: GroupTest) -> Iterator[CurveTestRow]:
    """No row where the arms are never compared."""
    if found.df > 0:
        yield CurveTestRow(
            statistic=found.statistic,
            p=known(found.p_value),
            variance="robust" if found.is_robust else "counts",
        )


def _max_combo(arms: _Arms) -> Iterator[CurveTestRow]:
    found = max_combo_test(arms.y, arms.arm, 1, **arms.arguments)
    rho, gamma = found.weights[int(np.argmax(np.abs(found.z)))]
    yield CurveTestRow(
        statistic=found.statistic,
        p=known(found.p_value),
        rho=rho,
        gamma=gamma,
        variance="robust" if arms.is_robust else "counts",
    )


TESTS: dict[str, Callable[[_Arms], Iterator[CurveTestRow]]] = {
    "logrank": _logrank,
    "gray": _gray,
    "max-combo": _max_combo,
}


def pooled_curve_tests(steps: Sequence[CurveTestStep]) -> CurveTestStep:
    """Tests that all data sets have, with the median of their p values.

    Rubin's rules pool estimates by their standard errors, which a test has not. A statistic that is
    not the same in all of them is missing, as are powers of a largest test.
    """
    groups: dict[tuple[Any, ...], list[CurveTestRow]] = {}
    for step in steps:
        for row in step.rows:
            groups.setdefault(tuple(row[name] for name in KEYS), []).append(row)
    return CurveTestStep(
        rows=[_pooled(rows) for rows in groups.values() if len(rows) == len(steps)]
    )


def _pooled(rows: Sequence[CurveTestRow]) -> CurveTestRow:
    changes: dict[str, float | None] = {}
    for name in ("statistic", "rho", "gamma"):
        changes[name] = rows[0][name] if len({row[name] for row in rows}) == 1 else None
    values = [row.p for row in rows if row.p is not None]
    changes["p"] = float(np.median(values)) if len(values) == len(rows) else None
    return mean_row(rows).changed(changes)
