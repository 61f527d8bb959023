"""Calls of every kernel on every hard problem, for both of its implementations."""

import functools
import importlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from kernels.problems import ALL_SCENES, TABLES, Scene, Table, frozen, make
from riskset._runtime import Runtime
from riskset._types import Tail
from riskset.kernels import (
    augmentation_ref,
    intervals_ref,
    life_table_ref,
    matrix_ref,
    risk_sets_ref,
    term_means_ref,
)
from riskset.kernels.replicates_ref import LaneTail

RUNTIME = Runtime(1)


@dataclass(frozen=True)
class Out:
    """An argument that the kernel fills: a copy for each call."""

    start: np.ndarray


@dataclass(frozen=True)
class Call:
    """A kernel and its arguments.

    `exact` are the arguments for the reference, where they can be given more digits; `finish`
    leaves of the results what is specified.
    """

    stem: str
    name: str
    args: tuple[object, ...]
    exact: tuple[object, ...] | None = None
    finish: Callable[[list[np.ndarray]], list[np.ndarray]] = list

    def fast(self, runtime: Runtime = RUNTIME) -> list[np.ndarray]:
        """Results of the fast kernel: what it returns, then what it fills."""
        args = tuple(runtime if isinstance(a, Runtime) else a for a in self.args)
        return self._run(importlib.import_module(f"riskset.kernels.{self.stem}_cpu"), args)

    def reference(self) -> list[np.ndarray]:
        module = importlib.import_module(f"riskset.kernels.{self.stem}_ref")
        return self._run(module, self.args if self.exact is None else self.exact)

    def _run(self, module: ModuleType, args: tuple[object, ...]) -> list[np.ndarray]:
        passed = [a.start.copy() if isinstance(a, Out) else a for a in args]
        result = flattened(getattr(module, self.name)(*passed))
        filled = [p for p, a in zip(passed, args, strict=True) if isinstance(a, Out)]
        returned = () if result is None else result if isinstance(result, tuple) else (result,)
        return self.finish([np.asarray(a) for a in (*returned, *filled)])


def flattened(result: object) -> object:
    """Results without tuples inside tuples."""
    if not isinstance(result, tuple):
        return result
    inside = (r if isinstance(r, tuple) else (r,) for r in result)
    return tuple(part for parts in inside for part in parts)


def on_risk_sets(s: Scene) -> Iterator[Call]:
    risk, (own, end) = s.risk, s.ranges
    x, r, z = s.columns(), positive(s), rounded(s)
    factor = frozen(np.linspace(1, 2, s.n_groups) * (risk.group_tied > 0))
    exact_eta = frozen(s.eta.astype(np.longdouble))
    nothing = Out(np.full(s.n_groups, np.nan))
    for efron in (False, True):
        every_group = risk._replace(chunk_ptr=frozen(np.arange(s.n_groups + 1)))
        for sets in (risk, every_group):
            args = (s.eta, sets, efron, RUNTIME)
            yield Call("risk_sets", "cox_pass", args, (exact_eta, *args[1:]))
        yield Call("term_means", "risk_set_means", (s.eta, risk, efron, x))
        if risk.own.size:
            yield Call("late_entry", "sum_at_risk", (r, risk, efron, nothing))
            yield from information_at_risk(s, efron)
        else:
            yield from deviations_nested(s, efron)
    if risk.own.size:
        seen = Out(np.full(r.size, np.nan))
        yield Call("late_entry", "sum_seen", (factor, frozen(factor / 2), risk, seen))
        args = (z, own, end, risk.level_rows, risk.level_ptr, s.n_groups)
        yield Call("separation", "peaks_cover", args, finish=functools.partial(any_row, s, z))
    else:
        args = (z, risk.group_ptr, risk.starts_stratum)
        yield Call("separation", "peaks_nested", args, finish=functools.partial(any_row, s, z))
    group = np.arange(s.n_groups)[:, None]
    peak = np.where((own <= group) & (group < end), z, -np.inf).max(axis=1)
    yield Call("separation", "attaining", (z, frozen(peak), own, end))

    cumulative = frozen(np.append(0.0, np.cumsum(factor)))
    drawable = frozen(np.where(end > own, r + 1e-9, 0.0))
    yield Call("gram", "draw_rows", (drawable, 300))
    row = frozen(np.flatnonzero(end > own))
    yield Call("gram", "draw_groups", (frozen(own[row]), frozen(end[row]), cumulative))
    args = (drawable, risk.group_ptr, risk.starts_stratum, frozen(end[row] - 1), own, end)
    yield Call("gram", "draw_mates", args)


def exact_ties(s: Scene) -> Iterator[Call]:
    """The exact conditional likelihood, where weights are numbers of rows."""
    counted = np.ceil(s.risk.event_weight)
    events = np.bincount(s.risk.group, counted, s.n_groups)
    risk = s.risk._replace(
        weight=frozen(np.ceil(s.risk.weight)),
        event_weight=frozen(counted),
        group_events=frozen(events),
    )
    exact_eta = frozen(s.eta.astype(np.longdouble))
    yield Call("exact_ties", "exact_pass", (s.eta, risk, RUNTIME), (exact_eta, risk, RUNTIME))
    mild = frozen(np.clip(s.eta - s.eta.max(), -30, 0))
    u = frozen(np.random.default_rng(s.eta.size).normal(size=(s.eta.size, 2)))
    if risk.order.size <= 50 or risk.own.size:
        exact_mild = frozen(mild.astype(np.longdouble))
        yield Call(
            "exact_ties", "exact_products", (mild, u, risk, RUNTIME), (exact_mild, u, risk, RUNTIME)
        )


def with_tails(s: Scene) -> Iterator[Call]:
    """Fine and Gray's kernels: rows that stay at risk after their time, by two censoring curves."""
    risk, rng = s.risk, np.random.default_rng(s.n_groups)
    tails = []
    for share in (0.4, 0.2, 0.0):
        picked = np.flatnonzero((rng.random(risk.order.size) < share) & (risk.event_weight == 0))
        survival = frozen(np.sort(rng.choice([0.0, 0.1, 0.5, 1.0], s.n_groups)))
        sets = risk._replace(
            order=frozen(risk.order[picked]),
            weight=frozen(2.5 * risk.weight[picked]),
            event_weight=frozen(np.zeros(picked.size)),
            group_ptr=frozen(np.searchsorted(picked, risk.group_ptr).astype(np.int64)),
            own=frozen(np.zeros(0, dtype=np.int64)),
            end=frozen(np.zeros(0, dtype=np.int64)),
        )
        tails.append(Tail(sets, survival))
    if risk.own.size:  # ranges of groups, as in the limit of an infinite estimate
        after = risk._replace(event_weight=frozen(np.zeros(risk.order.size)))
        tails[1] = Tail(after, tails[1].survival)
    x = frozen(s.columns()[np.argsort(risk.order)])
    for chosen in ((), tuple(tails[:1]), tuple(tails)):
        yield Call("subdistribution", "finegray_pass", (s.eta, risk, chosen, RUNTIME))
        yield Call("subdistribution", "finegray_means", (s.eta, risk, chosen, x))
        yield Call("subdistribution", "finegray_information", (s.eta, risk, chosen, x, RUNTIME))
    of_rows = frozen(np.flatnonzero(rng.random(s.eta.size) < 0.8))  # a group of censoring
    at = frozen(np.sort(rng.integers(0, s.n_groups, of_rows.size)))
    is_censored = frozen(rng.random(of_rows.size) < 0.5)
    weight = frozen(rng.choice([0.0, 0.5, 1.0, 3.0], s.eta.size))
    for crr in (True, False):
        args = (of_rows, at, s.n_groups, is_censored, weight, crr)
        yield Call("censoring", "survival", args)
    yield from at_risk_of_censoring(weight[of_rows] / 3, s.n_groups)
    mild = frozen(np.clip(s.eta - s.eta.max(), -30, 0))
    yield Call("risk_sets", "sum_totals", (mild, 0.5, risk, RUNTIME))
    factor, r = frozen(rng.random(s.n_groups)), frozen(rng.normal(size=risk.order.size))
    sets = tails[1].sets if risk.own.size else tails[0].sets
    yield Call("subdistribution", "sum_up_to", (r, risk))
    yield Call("subdistribution", "seen_up_to", (factor, risk))
    yield Call("subdistribution", "sum_before", (frozen(r[: sets.order.size]), sets))
    yield Call("subdistribution", "seen_after", (factor, sets))


def at_risk_of_censoring(weight: np.ndarray, n_times: int) -> Iterator[Call]:
    """Rows that enter late, and some that go on where others end."""
    rng = np.random.default_rng(weight.size)
    since = frozen(rng.integers(0, n_times, weight.size))
    at = frozen(since + 1 + rng.integers(0, 9, weight.size))
    kind = rng.integers(0, 3, weight.size)
    kinds = (frozen(kind == 0), frozen(kind == 1), frozen(rng.random(weight.size) < 0.7))
    for crr in (True, False):
        yield Call("censoring", "observed", (since, at, n_times + 9, *kinds, frozen(weight), crr))


def in_lanes(s: Scene) -> Iterator[Call]:
    """Sums over nested risk sets for eight lanes with weights of their own."""
    if s.risk.own.size:
        return
    rng = np.random.default_rng(s.n_groups + 1)
    risk, n = s.risk, s.risk.order.size
    eta = frozen(np.clip(s.eta - s.eta.max(), -30, 0)[:, None] * rng.random(8))
    weight = frozen(risk.weight[:, None] * rng.integers(0, 3, (n, 8)))
    shift, hazard = frozen(rng.normal(size=8)), frozen(rng.random((s.n_groups, 8)))
    by_group, by_lane = (s.n_groups, 8), (s.eta.size, 8)
    yield Call("replicates", "bounds", (eta, Out(np.zeros(8)), Out(np.zeros(8))))
    unit = frozen(rng.choice([0.0, 0.1, 1.0, 3.0], s.eta.size))
    some = frozen(unit * rng.choice([0, 1, 2, 255], s.eta.size))
    yield Call("replicates", "counts", (some, unit, 3, Out(np.zeros(by_lane, np.uint8))))
    own = frozen(rng.random(n))
    events = frozen(own * (risk.event_weight > 0))
    sets = risk._replace(weight=own, event_weight=events)
    more = frozen(rng.random(by_group))
    for count in (rng.integers(0, 3, (n, 8)).astype(np.uint8), rng.random((n, 8))):
        for m in (None, more):
            outs = [Out(np.full(shape, np.nan)) for shape in ((n, 8), by_group, (8,), (8,))]
            yield Call("replicates", "sum_up_to", (eta, shift, sets, frozen(count), m, *outs))
        residual = Out(rng.normal(size=by_lane))
        args = (hazard, sets, frozen(count), weight, residual)
        yield Call("replicates", "residuals_up_to", args)
    outs = (Out(np.full((n, 8), np.nan)), Out(rng.random(by_group)))
    tail = LaneTail(risk.order, weight, risk.group_ptr, risk.starts_stratum, more)
    yield Call("replicates", "sum_after", (eta, shift, tail, *outs))
    args = (hazard, tail, weight, Out(rng.normal(size=by_lane)))
    yield Call("replicates", "residuals_of_tail", args)


def logistic(s: Scene) -> Iterator[Call]:
    """One logistic likelihood, and eight with weights of their own."""
    risk, n = s.risk, s.eta.size
    rng = np.random.default_rng(n + 2)
    sign = np.full(n, -1.0)
    sign[risk.order[risk.event_weight > 0]] = 1.0
    weight = np.zeros(n)
    weight[risk.order] = risk.weight
    # Where all rows are far from 1/2, many intercepts are as good as the best.
    numbers = operator.itemgetter(0, 1, 2)
    for some in (weight, np.where(sign > 0, weight, 0.0), np.where(sign > 0, 0.0, weight)):
        args = (s.eta, frozen(sign), frozen(some), RUNTIME)
        yield Call("logistic", "logistic_pass", args, finish=lambda found: list(numbers(found)))
    eta = frozen(np.clip(s.eta - s.eta.max(), -30, 0)[:, None] * rng.random(8) + rng.normal(size=8))
    b, by_lane = frozen(rng.normal(size=8)), (n, 8)
    for count in (rng.integers(0, 3, by_lane).astype(np.uint8), rng.random(by_lane)):
        args = (eta, frozen(sign), frozen(weight), frozen(count))
        yield Call("logistic", "fit_intercepts", (*args, Out(np.full(8, np.nan))))
        outs = (Out(np.full(by_lane, np.nan)), Out(np.full(8, np.nan)))
        yield Call("logistic", "residuals", (*args, b, *outs))
        yield Call("logistic", "log_likelihoods", (*args, b, outs[1]))


def positive(s: Scene) -> np.ndarray:
    """Weight times exp(eta) in risk order, without the extremes."""
    eta = s.eta[s.risk.order]
    return frozen(s.risk.weight * np.exp(np.clip(eta - eta.max(), -30, 0)))


def rounded(s: Scene) -> np.ndarray:
    """Whole numbers, so that several rows attain a maximum; -inf for absent rows."""
    return frozen(np.where(s.risk.weight > 0, np.round(s.eta[s.risk.order]), -np.inf))


def any_row(s: Scene, z: np.ndarray, results: list[np.ndarray]) -> list[np.ndarray]:
    """Of a maximum over risk sets: its value, for the row given as for the maximum."""
    peak, at = results
    own, end = s.ranges
    group = np.flatnonzero(at >= 0)
    assert ((own[at[group]] <= group) & (group < end[at[group]])).all()
    return [peak, np.where(at >= 0, z[at], -np.inf)]


def deviations_nested(s: Scene, efron: bool) -> Iterator[Call]:
    """All groups at once, and the rest of them after the reference did the first half."""
    risk, x = s.risk, s.columns()
    with np.errstate(divide="ignore"):
        log_r = frozen(np.log(risk.weight) + s.eta[risk.order])
    expected = frozen(risk_sets_ref.cox_pass(s.eta, risk, efron, RUNTIME).expected)

    def args(first: int, last: int, state: np.ndarray, peak_total: np.ndarray) -> tuple:
        rows = slice(risk.group_ptr[first], risk.group_ptr[last])
        some = frozen(x[rows])
        before = (log_r, expected, some, int(rows.start), risk, efron, first, last)
        return *before, *map(Out, (state, peak_total, np.full(some.shape, np.nan)))

    def finish(filled: list[np.ndarray]) -> list[np.ndarray]:
        mean, (peak, total), distances = filled
        with np.errstate(divide="ignore"):
            return [distances, mean, peak + np.log(total)]

    whole = (s.eta, expected, frozen(x), risk, efron, RUNTIME)
    yield Call("term_means", "information_nested", whole)
    half = s.n_groups // 2
    state, peak_total = np.zeros(x.shape[1]), np.array([-np.inf, 0.0])
    name = "deviations_nested"
    yield Call("term_means", name, args(0, s.n_groups, state, peak_total), finish=finish)
    outs = [a.start if isinstance(a, Out) else a for a in args(0, half, state, peak_total)]
    term_means_ref.deviations_nested(*outs)
    rest = args(half, s.n_groups, outs[8], outs[9])
    yield Call("term_means", name, rest, finish=finish)


def random_table(rng: np.random.Generator, t: Table) -> np.ndarray:
    """A table by rows, some columns of which are 0 or 1 in every row."""
    x = rng.normal(size=(t.n_rows, t.n_columns))
    x[:, ::3] = x[:, ::3] > 0
    x[:, 1::3] *= rng.random((t.n_rows, x[:, 1::3].shape[1])) < 0.5
    return frozen(x)


def information_at_risk(s: Scene, efron: bool) -> Iterator[Call]:
    """In units of what its difference is one of."""
    x = frozen(s.columns())
    expected = frozen(risk_sets_ref.cox_pass(s.eta, s.risk, efron, RUNTIME).expected)
    size = np.sqrt(expected @ x**2 + 1.0)

    def finish(results: list[np.ndarray]) -> list[np.ndarray]:
        return [results[0] / size / size[:, None]]

    args = (s.eta, expected, x, s.risk, efron)
    yield Call("term_means", "information_at_risk", args, finish=finish)


def on_matrices(t: Table) -> Iterator[Call]:
    rng = np.random.default_rng(t.n_rows)
    every = frozen(np.arange(t.n_columns))
    some = frozen(rng.permutation(t.n_columns)[: (t.n_columns + 1) // 2])
    none = frozen(np.zeros(0))
    r, start = frozen(rng.normal(size=t.n_rows)), Out(rng.normal(size=t.n_rows))
    sparse = (t.indptr, t.indices)
    for values in (none, t.values):
        yield Call("matrix", "sparse_layout", (*sparse, values, some, t.n_rows, t.shift, RUNTIME))
    layout = matrix_ref.sparse_layout(*sparse, t.values, every, t.n_rows, t.shift, RUNTIME)
    block_ptr, row, value = map(frozen, layout)
    blocks = frozen(dense_blocks(t))
    new_place, shuffled = frozen(np.arange(t.n_rows)[::-1].copy()), rng.permutation(t.n_rows)
    shuffled[rng.random(t.n_rows) < 0.4] = -1
    for slots in (every, some, every[:0]):
        v = frozen(rng.normal(size=slots.size) * rng.integers(0, 2, slots.size))
        tail = (slots, r, t.shift, RUNTIME)
        yield Call("matrix", "cross_binary", (block_ptr, row, *tail))
        yield Call("matrix", "cross_valued", (block_ptr, row, value, *tail))
        yield Call("matrix", "cross_valued", (block_ptr, row, value, *tail, 2))
        yield Call("matrix", "cross_dense", (blocks, slots, r, RUNTIME))
        yield Call("matrix", "cross_dense", (blocks, slots, r, RUNTIME, 2))
        yield Call("matrix", "cross_dense", (blocks, slots, r, RUNTIME, 0))
        yield Call("matrix", "moments_dense", (blocks, slots, r, RUNTIME))
        filled = Out(np.full((t.n_rows, slots.size), np.nan))
        yield Call("columns", "fill_dense", (blocks, slots, filled))
        for there in (new_place, shuffled):
            yield Call("columns", "place_dense", (blocks, slots, there, filled, RUNTIME))
        tail = (slots, v, t.shift, start, RUNTIME)
        yield Call("matrix", "product_binary", (block_ptr, row, *tail))
        yield Call("matrix", "product_valued", (block_ptr, row, value, *tail))
        yield Call("matrix", "product_dense", (blocks, slots, v, start, RUNTIME))
        for shift in (t.shift, t.shift + 2):
            args = (block_ptr, row, slots, t.shift, shift, RUNTIME)
            yield Call("matrix", "copy_slots", args)
        yield from lanes_of_matrix(rng, slots, t, block_ptr, row, value, blocks)

    yield Call("columns", "describe", (t.indptr, t.values, RUNTIME))
    for x in (r, np.full(t.n_rows, 0.5)):
        yield Call("columns", "size_about", (frozen(x), 0.5))
    yield Call("columns", "store_dense", (r, 0.3, 4.0, t.n_columns - 1, Out(blocks)))
    table = random_table(rng, t)
    center, scale = frozen(rng.normal(size=t.n_columns)), frozen(2.0 ** np.arange(t.n_columns))
    yield Call("columns", "table_sums", (table, center, RUNTIME))
    for columns in (every, frozen(np.sort(some))):
        part = Out(np.zeros_like(blocks))
        args = (table, columns, center[: columns.size], scale[: columns.size], part, RUNTIME)
        yield Call("columns", "store_table", args)
    yield Call("columns", "describe", (t.indptr, spoilt(t), RUNTIME))
    scale = frozen(2.0 ** rng.integers(-3, 4, t.n_columns))
    yield Call("columns", "divide", (block_ptr, Out(value), scale))
    place = rng.permutation(t.n_rows)
    place[rng.random(t.n_rows) < 0.4] = -1
    for values in (none, value):
        layout = (block_ptr, row, values, t.shift, frozen(place))
        yield Call("columns", "to_csc", layout)
        yield Call("matrix", "taken_layout", (*layout, t.n_rows, RUNTIME))

    picked = rng.integers(0, t.n_rows, 70)
    by_row = np.argsort(picked, kind="stable")
    copies = np.bincount(picked, minlength=block_ptr.shape[0] << t.shift)
    drawn = frozen(np.append(0, np.cumsum(copies)))
    bits = Out(np.zeros((some.size, 2), dtype=np.uint64))
    has = frozen((copies > 0).astype(np.uint8))
    tail = (t.shift, some, has, drawn, frozen(by_row), bits, RUNTIME)
    yield Call("gram", "fill_bits", (block_ptr, row, *tail))
    out = Out(np.zeros((70, some.size)))
    for values in (none, value):
        args = (block_ptr, row, values, t.shift, some, drawn, frozen(by_row), out)
        yield Call("gram", "fill_sparse", args)


def lanes_of_matrix(
    rng: np.random.Generator,
    slots: np.ndarray,
    t: Table,
    block_ptr: np.ndarray,
    row: np.ndarray,
    value: np.ndarray,
    blocks: np.ndarray,
) -> Iterator[Call]:
    r, sums = frozen(rng.normal(size=(t.n_rows, 8))), Out(rng.normal(size=(slots.size, 8)))
    v = frozen(rng.normal(size=(slots.size, 8)) * rng.integers(0, 2, (slots.size, 1)))
    out = Out(rng.normal(size=(t.n_rows, 8)))
    for name, args in (
        ("cross", (slots, r, t.shift, sums)),
        ("product", (slots, v, t.shift, out)),
    ):
        for values in (None, value):
            yield Call("replicates", f"{name}_sparse", (block_ptr, row, values, *args))
        dense = (slots, args[1], args[3])
        yield Call("replicates", f"{name}_dense", (blocks, *dense))


def dense_blocks(t: Table) -> np.ndarray:
    block_rows = 1 << t.shift
    n_blocks = -(-t.n_rows // block_rows)
    padded = np.zeros((n_blocks * block_rows, t.n_columns))
    padded[: t.n_rows] = t.dense()
    return np.ascontiguousarray(padded.reshape(n_blocks, block_rows, -1).transpose(0, 2, 1))


def spoilt(t: Table) -> np.ndarray:
    """The values with a zero, a NaN and an infinity among them."""
    values = t.values.copy()
    at = np.random.default_rng(0).permutation(values.size)[:3]
    values[at] = np.array([0.0, np.nan, -np.inf])[: at.size]
    return frozen(values)


def on_bits() -> Iterator[Call]:
    """Numbers of columns and words around the sizes of the tiles."""
    for q, n_words in ((1, 1), (3, 2), (16, 5), (37, 300)):
        rng = np.random.default_rng([q, n_words])
        bits = frozen(rng.integers(0, 2**64, (q, n_words), dtype=np.uint64))
        yield Call("gram", "binary_gram", (bits, RUNTIME))
        borders = np.unique(np.append(rng.integers(0, n_words, 3), [0, n_words]))
        yield Call("gram", "bin_counts", (bits, frozen(borders)))


def on_order() -> Iterator[Call]:
    """Numbers to be sorted, by each way; times in groups, and such that are nearly tied."""
    rng = np.random.default_rng(5)
    n = 20_000
    normal = rng.normal(size=n)
    cases = {
        "few": normal[:50],
        "days": np.round(100 * normal),
        "continuous": normal,
        "one far away": np.append(normal, 1e12),
        "two scales": np.append(1000 + 1e-9 * normal, 1e5 * normal),
        "infinite": np.append(normal, [np.inf, -np.inf, 0.0, -0.0] * 10),
        "largest": np.sign(normal) * 1e308 * rng.random(n),
        "smallest": 1e-309 * normal,
        "zeros": np.where(normal > 0, 0.0, -0.0),
        "halves of one place": np.where(normal > 0, 1.0, 1.0 + 2.0**-40 * rng.random(n)),
    }
    for values in cases.values():
        for name in ("stable_order", "distinct_in_order"):
            yield Call("sorting", name, (frozen(values), RUNTIME))
        word = np.abs(values).view(np.uint64)
        for few in (word, word >> np.uint64(57), word & np.uint64(1)):
            yield Call("sorting", "sorted_words", (frozen(few), RUNTIME))
    for time in (normal[:40], np.round(normal), np.round(3 * normal) + 1e-15 * rng.random(n)):
        size = time.size
        is_event, weight = rng.random(size) < 0.3, rng.choice([0.0, 1.0, 2.5], size)
        for n_strata in (1, 4):
            stratum = rng.integers(0, n_strata, size)
            order = np.lexsort((-time, stratum))
            args = map(frozen, (order, time, is_event, weight, stratum))
            yield Call("grouping", "cut_into_groups", (*args, RUNTIME))
        code = frozen(rng.integers(0, 3, size))
        args = (frozen(np.argsort(time, kind="stable")), frozen(time), code, frozen(weight))
        yield Call("grouping", "tally", (*args, 3, RUNTIME))
        yield Call(
            "grouping", "count_near_ties", (frozen(np.argsort(-time)), frozen(time), 16, RUNTIME)
        )


def on_life_tables() -> Iterator[Call]:
    """Rows that end at many times, at few, and at 0; times whose words have room for no code."""
    rng = np.random.default_rng(6)
    n = 20_000
    late = rng.exponential(100, n)
    for time in (late, late[:30], np.floor(late), np.where(late > 30, late * 1e300, 1e-300)):
        for n_codes in (2, 3, 9):
            code = frozen(rng.integers(0, n_codes, time.size).astype(np.int8))
            yield Call("life_table", "count_ends", (frozen(time), code, n_codes, RUNTIME))
    for m in (1, 700, 20_000):
        sums = frozen(rng.integers(0, 3, (3, m)) + (np.arange(m) == m - 1))
        sums = frozen(sums.astype(np.float64))
        yield Call("life_table", "sum_later", (sums, RUNTIME))
        for staying in (life_table_ref.sum_later(sums[1:], RUNTIME), np.zeros(m)):
            args = (sums[1], sums[2] + (staying == 0), frozen(staying), RUNTIME)
            yield Call("life_table", "survival_steps", args)
    zero = frozen(np.array([1.0, 2.0, 1.0, 0.0])), frozen(np.array([0.0, 0.0, 1.0, 1.0]))
    yield Call("life_table", "survival_steps", (*zero, frozen(np.zeros(4)), RUNTIME))


def on_intervals() -> Iterator[Call]:
    """Probabilities from 0 to 1, those that are nearly so, and errors from none to huge."""
    rng = np.random.default_rng(7)
    ends = [0.0, 1e-302, 1e-200, 0.5, 1 - 1e-9, 1 - 1e-13, 1.0]
    errors = [np.nan, 0.0, 1e-300, 1e-12, 1e-3, 0.3, 2.0, 1e3]
    for size in (0, 3, 1000, 40_000):
        p, error = rng.random(size), rng.random(size) * 0.2
        p[::50], error[::70] = rng.choice(ends, p[::50].size), rng.choice(errors, error[::70].size)
        corners = np.array([(a, b) for a in ends for b in errors]).T
        for few in ((p, error), (corners[0].copy(), corners[1].copy())):
            for kind in intervals_ref.KINDS:
                args = (*map(frozen, few), 1.96, kind, RUNTIME)
                yield Call("intervals", "probability_ends", args)


def on_augmentation() -> Iterator[Call]:
    """Rows that end within cells, at horizons and after; one cause, two, and a subdistribution."""
    rng = np.random.default_rng(8)
    n, n_cells = 2500, 12
    time = np.cumsum(rng.exponential(0.3, n_cells))
    until = np.array([3, 7, n_cells - 1])
    for n_models, is_subdistribution in ((1, False), (2, False), (2, True)):
        for at_end in (1.0, 0.5):
            step = rng.exponential(0.1, (n_models, n_cells)) * (rng.random(n_cells) < 0.7)
            cells = augmentation_ref.TimeCells(
                frozen(time), frozen(step), frozen(rng.exponential(0.1, n_cells)), until, at_end
            )
            cell, within = rng.integers(0, n_cells + 1, n), rng.random(n)
            within[rng.random(n) < 0.3] = 1.0
            # Nobody's time is within the cell of a horizon.
            within[np.isin(cell, until)] = 1.0
            edges = np.concatenate([[0.0], time, [time[-1] + 1.0]])
            end = edges[cell] + within * (edges[cell + 1] - edges[cell])
            there = np.minimum(cell, n_cells - 1)
            rows = augmentation_ref.FollowedRows(
                frozen(rng.exponential(1.0, (n_models, n))),
                frozen(rng.exponential(1.0, n)),
                frozen(np.where(rng.random(n) < 0.2, -1, cell)),
                frozen(end),
                frozen(rng.integers(0, 3 if n_models > 1 else 2, n)),
                frozen(step[:, there] * within),
                frozen(cells.censoring[there] * within),
            )
            args = (cells, rows, is_subdistribution, RUNTIME)
            yield Call("augmentation", "augmented", args)


CALLS = {
    f"{call.stem}.{call.name}-{name}-{k}": call
    for name, made in (
        [(name, on_risk_sets(s)) for name, s in ALL_SCENES.items()]
        + [(name, exact_ties(s)) for name, s in ALL_SCENES.items()]
        + [(name, with_tails(s)) for name, s in ALL_SCENES.items()]
        + [(name, in_lanes(s)) for name, s in ALL_SCENES.items()]
        + [(name, logistic(s)) for name, s in ALL_SCENES.items()]
        + [("many_rows", logistic(make(20_003, seed=30, weights=(0.0, 0.5, 2.0))))]
        + [(name, on_matrices(t)) for name, t in TABLES.items()]
        + [("bits", on_bits())]
        + [("order", on_order())]
        + [("life_table", on_life_tables())]
        + [("intervals", on_intervals())]
        + [("augmentation", on_augmentation())]
    )
    for k, call in enumerate(made)
}
