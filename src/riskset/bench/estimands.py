"""The answers beside the hazard ratio, each of many rows: time, CPU seconds and memory."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from riskset._types import AnyArray, Index, Matrix, Rows
from riskset.bench.experiment import WorkExperiment, dots
from riskset.bench.record import BenchmarkRecord
from riskset.bench.rows import Asked, values
from riskset.bench.works import ESTIMANDS, ChosenWork
from riskset.cohort.adjustments.coarsening import coarsen
from riskset.cohort.adjustments.matching import match
from riskset.cohort.adjustments.weighting import weight
from riskset.cohort.arms.augmented_estimates import doubly_robust
from riskset.cohort.arms.restricted_means import restricted_mean as arm_restricted_mean
from riskset.cohort.population import Population
from riskset.curves.comparison import logrank_test
from riskset.curves.kaplan_meier import kaplan_meier
from riskset.curves.max_combo import max_combo_test
from riskset.curves.pairwise import PairwiseTests, pairwise_logrank_test
from riskset.curves.restricted_mean import restricted_mean
from riskset.data.frame import data_frame
from riskset.data.outcome import Surv
from riskset.data.start_stop.histories import LastValue
from riskset.data.start_stop.history_merge import merge_histories
from riskset.data.start_stop.landmark import landmark
from riskset.data.start_stop.splitting import split
from riskset.estimators.cause_specific import CauseSpecificCox
from riskset.estimators.cox import Cox
from riskset.estimators.finegray import FineGray
from riskset.estimators.frailty import CoxFrailty
from riskset.plot.timings import Figure

__all__ = ["ESTIMAND_VALUES", "Estimands"]

N_COLUMNS = 10
N_NEW = 10
"""People for whom something is predicted."""
QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Of the times; those at which predictions are asked for."""
N_GROUPS = 4
N_STRATA = 50
ROWS_OF_CLUSTER = 2
ROWS_OF_SET = 5
ROWS_OF_HOSPITAL = 10
N_CUTS = 10
RECORDS_OF_PERSON = 3


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows with everything that a work may need.

    Attributes
    ----------
    x : (n, 10) float64
        Independent standard normal covariates.
    treatment : (n,) int64
        0 or 1, with the probability `score`, which depends on the first five covariates.
    time : (n,) float64
    event : (n,) int64
        0 if censored, 1, or 2 for a competing event.
    weight : (n,) float64
        Inverse probabilities of the treatment.
    """

    x: Matrix
    score: Rows
    treatment: Index
    time: Rows
    event: Index
    entry: Rows
    weight: Rows

    @classmethod
    @functools.lru_cache(maxsize=2)
    def of(cls, n: int, seed: int) -> "DrawnRows":
        """Draw n rows."""
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((n, N_COLUMNS))
        score = 1.0 / (1.0 + np.exp(-0.4 * x[:, :5].sum(axis=1)))
        treatment = (rng.random(n) < score).astype(np.int64)
        coef = np.linspace(-0.3, 0.3, N_COLUMNS)
        death = rng.exponential(np.exp(-x @ coef + 0.2 * treatment))
        other, end = rng.exponential(3.0, n), rng.exponential(2.0, n)
        time = np.minimum(np.minimum(death, other), end)
        event = np.where(time == death, 1, np.where(time == other, 2, 0))
        weight = np.where(treatment == 1, 1.0 / score, 1.0 / (1.0 - score))
        entry = time * rng.uniform(0, 0.5, n)
        return cls(x, score, treatment, time, event, entry, weight)

    @property
    def n(self) -> int:
        """Rows."""
        return self.time.size

    @property
    def has_event(self) -> Index:
        """The event of cause 1, others being censored."""
        return np.asarray(self.event == 1, dtype=np.int64)

    @property
    def y(self) -> AnyArray:
        """One kind of event."""
        return Surv(self.time, self.has_event)

    @property
    def competing(self) -> AnyArray:
        """Two kinds of events."""
        return Surv(self.time, self.event)

    @property
    def times(self) -> Rows:
        """Those at which predictions are asked for."""
        return np.quantile(self.time, QUANTILES)

    @property
    def horizon(self) -> float:
        """Of restricted means."""
        return float(self.times[-1])

    @property
    def group(self) -> Index:
        """One of four groups."""
        return np.arange(self.n) % N_GROUPS

    @property
    def stratum(self) -> Index:
        """One of fifty strata."""
        return np.arange(self.n) // N_GROUPS % N_STRATA

    @property
    def cluster(self) -> Index:
        """Clusters of two rows."""
        return np.arange(self.n) // ROWS_OF_CLUSTER

    @property
    def matched_set(self) -> Index:
        """Sets of five rows, of which the rows with a treatment are cases."""
        return np.arange(self.n) // ROWS_OF_SET

    @property
    def hospital(self) -> Index:
        """Clusters of ten rows with a common frailty."""
        return np.arange(self.n) // ROWS_OF_HOSPITAL

    @property
    def y_of_hospitals(self) -> AnyArray:
        """One kind of event, whose time has the frailty of a hospital with the variance 0.5."""
        rng = np.random.default_rng(self.n)
        frailty = rng.gamma(2.0, 0.5, self.n // ROWS_OF_HOSPITAL + 1)[self.hospital]
        return Surv(self.time / frailty, self.has_event)

    @property
    def people(self) -> Population:
        """With their true propensity scores."""
        return Population(self.treatment, self.score)

    def asked(self, compute: Callable[[], Any], **arrays: AnyArray) -> Asked:
        """A computation and what other programs need for it; the first numbers are compared."""
        known: dict[str, AnyArray] = {
            "time": self.time,
            "event": self.event.astype(np.int32),
            "times": self.times,
        }
        facts = {"n_columns": N_COLUMNS} if "x" in arrays else {}
        return Asked(compute, known | arrays, facts)

    @property
    def columns(self) -> dict[str, AnyArray]:
        """The covariates, as other programs read them."""
        return {"x": self.x.ravel(order="F")}


AskedOfRows = Callable[[DrawnRows], Asked]


def _interval(name: str, variance: str) -> AskedOfRows:
    """Of ten people at five times; the numbers are those of the first one in the middle."""

    def ask(rows: DrawnRows) -> Asked:
        made: Any = {
            "cox": Cox, "finegray": FineGray, "cause-specific": CauseSpecificCox
        }[name]()  # fmt: skip
        model = made.fit(rows.x, rows.y if name == "cox" else rows.competing)
        given: Any = {"interval": "log"} if name == "cox" else {}
        given |= {"cause": 1} if name == "cause-specific" else {}
        new, times = rows.x[:N_NEW], rows.times

        def predicted() -> Rows:
            found = model.predict_interval(new, times, variance=variance, **given)
            return _of_first(found)

        return rows.asked(predicted, **rows.columns)

    return ask


def _of_first(found: Any) -> Rows:
    """Estimate and limits of the first person at the time in the middle."""
    parts = (np.ravel(part) for part in (found.estimate, found.lower, found.upper))
    return np.array([part[min(len(QUANTILES) // 2, part.size - 1)] for part in parts])


def _quantile(rows: DrawnRows) -> Asked:
    model = Cox().fit(rows.x, rows.y)
    new = rows.x[:N_NEW]
    return rows.asked(lambda: _first(model.predict_quantile(new, interval="log")), **rows.columns)


def _predicted_mean(rows: DrawnRows) -> Asked:
    model = Cox().fit(rows.x, rows.y)
    new, horizon = rows.x[:N_NEW], rows.horizon
    return rows.asked(lambda: _first(model.predict_restricted_mean(new, horizon)), **rows.columns)


def _first(found: Any) -> Rows:
    return np.array([np.ravel(part)[0] for part in (found.estimate, found.lower, found.upper)])


def _means(**names: str) -> AskedOfRows:
    def ask(rows: DrawnRows) -> Asked:
        given: dict[str, Any] = {name: getattr(rows, of) for name, of in names.items()}
        y, group, horizon = rows.y, rows.treatment, rows.horizon

        def means() -> Rows:
            found = restricted_mean(y, group, times=horizon, **given)
            return np.array([[one.mean[0], one.standard_error[0]] for one in found]).ravel()

        return rows.asked(means, group=group.astype(np.int32), **given)

    return ask


def _arm_means(rows: DrawnRows) -> Asked:
    people = weight(rows.people, estimand="ate")
    y, horizon = rows.y, rows.horizon

    def means() -> Rows:
        found = arm_restricted_mean(y, people, horizon)
        parts = (found.difference, found.difference_lower, found.difference_upper)
        return np.array([part[0, 0] for part in parts])

    return rows.asked(means)


def _doubly_robust(rows: DrawnRows) -> Asked:
    people, y, x, horizon = rows.people, rows.y, rows.x, rows.horizon

    def risks() -> Rows:
        found = doubly_robust(y, people, x, horizon)
        parts = (found.difference, found.difference_lower, found.difference_upper)
        return np.array([part[0, 0] for part in parts])

    return rows.asked(risks, **rows.columns)


def _test(test: Callable[..., Any], group: str, **names: str) -> AskedOfRows:
    """A test between groups; the numbers are its statistic and its p value."""

    def ask(rows: DrawnRows) -> Asked:
        given: dict[str, Any] = {name: getattr(rows, of) for name, of in names.items()}
        y, labels = rows.y, getattr(rows, group)

        def tested() -> Rows:
            found = test(y, labels, **given)
            one = found.tests[0] if isinstance(found, PairwiseTests) else found
            return np.array([one.statistic, one.p_value])

        arrays: dict[str, AnyArray] = {
            name: array.astype(np.float64 if name == "weight" else np.int32)
            for name, array in given.items()
        }
        return rows.asked(tested, group=labels.astype(np.int32), **arrays)

    return ask


def _clustered_curve(rows: DrawnRows) -> Asked:
    y, cluster, times = rows.y, rows.cluster, rows.times

    def curve() -> Rows:
        found = kaplan_meier(y, cluster=cluster, interval="log").curves[0].columns(times)
        return np.array([found[name][2] for name in ("survival", "lower", "upper")])

    return rows.asked(curve, cluster=cluster.astype(np.int32))


def _band(rows: DrawnRows) -> Asked:
    curves, horizon = kaplan_meier(rows.y), rows.horizon

    def band() -> Rows:
        found = curves.confidence_band("hall-wellner", end=horizon).curves[0].band
        return np.array([np.nan if found is None else found.critical_value])

    return rows.asked(band)


def _split(rows: DrawnRows) -> Asked:
    y, cuts = rows.y, np.quantile(rows.time, np.arange(1, N_CUTS + 1) / (N_CUTS + 1))
    return rows.asked(lambda: np.array([float(split(y, cuts).size)]), cuts=cuts)


def _histories(rows: DrawnRows) -> tuple[Any, Any]:
    """People, and three measurements of each within their follow-up."""
    rng = np.random.default_rng(rows.n)
    person = np.arange(rows.n)
    people = data_frame({"id": person, "time": rows.time, "event": rows.has_event}, "pyarrow")
    n_records = RECORDS_OF_PERSON * rows.n
    again = np.tile(person, RECORDS_OF_PERSON)
    at = rows.time[again] * rng.random(n_records)
    return people, data_frame(
        {"id": again, "time": at, "value": rng.standard_normal(n_records)}, "pyarrow"
    )


def _merge(rows: DrawnRows) -> Asked:
    people, records = _histories(rows)

    def merged() -> Rows:
        history = {"value": LastValue(records, "value")}
        found = merge_histories(people, history, id="id", time="time", event="event")
        return np.array([float(len(found.rows))])

    person = np.asarray(records["id"], dtype=np.int32)
    record, value = (np.asarray(records[name]) for name in ("time", "value"))
    return rows.asked(merged, record_id=person, record_time=record, record_value=value)


def _landmark(rows: DrawnRows) -> Asked:
    people, records = _histories(rows)
    marks = rows.times[:3].tolist()

    def taken() -> Rows:
        history = {"value": LastValue(records, "value")}
        found = landmark(people, marks, history, id="id", time="time", event="event")
        return np.array([float(len(found.rows))])

    return rows.asked(taken)


def _late_entry(rows: DrawnRows) -> Asked:
    y = Surv(rows.time, rows.event, rows.entry)
    x = rows.x
    return rows.asked(
        lambda: np.asarray(FineGray().fit(x, y).coef_[:2]), entry=rows.entry, **rows.columns
    )


def _exact_ties(rows: DrawnRows) -> Asked:
    y, strata, x = Surv(np.ones(rows.n), rows.treatment), rows.matched_set, rows.x
    return rows.asked(
        lambda: np.asarray(Cox(ties="exact").fit(x, y, strata=strata).coef_[:2]),
        case=rows.treatment.astype(np.int32), set=strata.astype(np.int32), **rows.columns,
    )  # fmt: skip


def _firth(rows: DrawnRows) -> Asked:
    x, y = rows.x, rows.y
    return rows.asked(lambda: np.asarray(Cox(firth=True).fit(x, y).coef_[:2]))


def _frailty(kind: Literal["gamma", "lognormal"]) -> AskedOfRows:
    """With its variance estimated; the numbers are two coefficients and the variance."""

    def ask(rows: DrawnRows) -> Asked:
        x, y, hospital = rows.x, rows.y_of_hospitals, rows.hospital

        def fitted() -> Rows:
            model = CoxFrailty(kind).fit(x, y, cluster=hospital)
            return np.array([*model.coef_[:2], model.frailty_variance_])

        arrays = {"time": y["time"], "cluster": hospital.astype(np.int32)}
        return rows.asked(fitted, **arrays, **rows.columns)

    return ask


def _adjusted(adjust: Callable[[DrawnRows, Any], Any]) -> AskedOfRows:
    """An adjustment; the number is the sum of its weights."""

    def ask(rows: DrawnRows) -> Asked:
        people = rows.people
        return rows.asked(lambda: np.array([float(np.sum(adjust(rows, people).weight))]))

    return ask


ESTIMAND_VALUES: Mapping[str, AskedOfRows] = {
    "cox-interval": _interval("cox", "model"),
    "cox-interval-robust": _interval("cox", "robust"),
    "finegray-interval": _interval("finegray", "model"),
    "finegray-interval-robust": _interval("finegray", "robust"),
    "cause-specific-interval": _interval("cause-specific", "model"),
    "cause-specific-interval-robust": _interval("cause-specific", "robust"),
    "quantile": _quantile,
    "predicted-mean": _predicted_mean,
    "mean": _means(),
    "mean-weights": _means(weight="weight"),
    "mean-clusters": _means(cluster="cluster"),
    "mean-arms": _arm_means,
    "doubly-robust": _doubly_robust,
    "logrank": _test(logrank_test, "group"),
    "logrank-robust": _test(logrank_test, "group", weight="weight"),
    "logrank-strata": _test(logrank_test, "group", strata="stratum"),
    "pairwise": _test(pairwise_logrank_test, "group"),
    "max-combo": _test(max_combo_test, "treatment"),
    "curve-clusters": _clustered_curve,
    "band": _band,
    "split": _split,
    "merge": _merge,
    "landmark": _landmark,
    "finegray-late": _late_entry,
    "exact-ties": _exact_ties,
    "firth": _firth,
    "frailty-gamma": _frailty("gamma"),
    "frailty-lognormal": _frailty("lognormal"),
    "match-replacement": _adjusted(lambda _, p: match(p, replacement=True)),
    "match-full": _adjusted(lambda _, p: match(p, method="full")),
    "coarsen": _adjusted(
        lambda rows, p: coarsen(p, rows.x[:, :3], covariates=("x0", "x1", "x2"), bins=8)
    ),
    "entropy": _adjusted(lambda rows, p: weight(p, method="entropy", estimand="att", X=rows.x)),
}
"""What each kind of work computes."""


@dataclass(frozen=True)
class Estimands(WorkExperiment):
    """The options of `estimands`; `rows` are those of works without a size."""

    name: ClassVar[str] = "estimands"
    title: ClassVar[str] = "Estimands beside the hazard ratio"
    words: ClassVar[str] = (
        f"Simulated rows with {N_COLUMNS} standard normal covariates, a treatment that depends on "
        "five of them, and two kinds of events. Models of predictions, propensity scores and "
        "curves of bands are there before the clock starts, and 'peak' is memory beyond them. The "
        "note has numbers of the result, which those of other programs must repeat. The works are "
        "explained in docs/benchmarks.md."
    )
    kinds = ESTIMANDS

    rows: int = 1_000_000

    @property
    def texts(self) -> Sequence[str]:
        """See `WorkExperiment.texts`."""
        named = tuple(self.works) or tuple(self.kinds)
        return [f"{one}:{self.rows}" if one in self.kinds else one for one in named]

    def warm_up(self) -> None:
        """Each work compiles by itself, of few rows."""

    def measured(self, work: ChosenWork) -> Iterator[BenchmarkRecord]:
        """See `WorkExperiment.measured`."""

        def ask(sizes: tuple[int, ...], seed: int) -> Asked:
            return ESTIMAND_VALUES[work.kind](DrawnRows.of(sizes[0], seed))

        return values(self, work, ask)

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Seconds of each program on each work."""
        return dots(records)
