"""A fit of rows in blocks elsewhere has the answer of one machine, however the blocks are cut."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.linalg
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import riskset as rs
from dask_cluster import LEAVES_SOCKETS, local_client
from parameters import rest_is_slow
from riskset.estimators import blocks as blocks_module
from riskset.solve import curvature
from riskset.solve.block_rows import BlockRows as BlockRows
from storages import Store, each_storage

Rows = dict[str, Any]
Numbers = NDArray[Any]

TIGHT: dict[str, Any] = {"tol": 1e-12, "device": "cpu"}
PENALTIES = [None, rs.L1(4.0, unpenalized=["x0"]), rs.ElasticNet(l1=2.0, l2=3.0), rs.L2(5.0)]


def make(n: int, p: int = 6, seed: int = 1) -> Rows:
    """Columns of every kind, many ties, competing events, weights of 0, 1 and 2."""
    rng = np.random.default_rng(seed)
    x = (rng.random((n, p)) < 0.3).astype(float)
    x[:, 1] = 100 + 3 * rng.normal(size=n)
    x[:, 2] *= rng.normal(size=n)
    effect = (x - x.mean(axis=0)) @ np.linspace(-0.6, 0.6, p)
    return {
        "X": x,
        "time": np.ceil(25 * rng.exponential(np.exp(-effect))),
        "event": rng.choice([0, 1, 2], n, p=[0.3, 0.4, 0.3]),
        "sample_weight": rng.integers(0, 3, n).astype(float),
        "strata": rng.integers(0, 4, n),
        "offset": 0.3 * rng.normal(size=n),
    }


ROWS = make(700)
PLAIN = ("X", "time", "event")


def arguments(rows: Rows, at: Numbers | slice, model: type) -> Rows:
    """What `fit` takes, of some rows."""
    found = {name: column[at] for name, column in rows.items()}
    time, event = found.pop("time"), found.pop("event")
    return found | {"y": rs.Surv(time, event if model is rs.FineGray else event == 1)}


def cut(rows: Rows, edges: Sequence[int], model: type, *, seed: int = 0) -> list[Rows]:
    """Blocks by decreasing time within strata, in random order, their rows too."""
    rng = np.random.default_rng(seed)
    order = np.lexsort((-rows["time"], rows.get("strata", np.zeros(len(rows["time"])))))
    parts = [rng.permutation(part) for part in np.split(order, edges)]
    return [arguments(rows, parts[k], model) for k in rng.permutation(len(parts))]


def itself(item: Any) -> Any:
    return item


def stored(store: Store) -> Callable[[Rows], Rows]:
    return lambda item: item | {"X": store(item["X"])}


def fit_here(model: Any, rows: Rows) -> Any:
    return model.fit(**arguments(rows, slice(None), type(model)))


def check_same(blocks: Any, here: Any) -> None:
    size = np.abs(here.coef_).max()
    np.testing.assert_allclose(blocks.coef_, here.coef_, rtol=1e-10, atol=1e-10 * size)
    assert blocks.objective_ == pytest.approx(here.objective_, rel=1e-12)
    assert blocks.null_log_likelihood_ == pytest.approx(here.null_log_likelihood_, rel=1e-12)
    assert blocks.status_ == here.status_ == "converged"
    assert blocks.kkt_ <= blocks.tol
    for name in ("n_rows_", "n_events_", "n_strata_", "n_dropped_", "covariates_"):
        assert getattr(blocks, name) == getattr(here, name), name


@pytest.mark.parametrize("n_blocks", [1, 2, 5])
@pytest.mark.parametrize("columns", [PLAIN, tuple(ROWS)], ids=["plain", "weighted"])
@pytest.mark.parametrize("model", [rs.Cox, rs.FineGray])
def test_any_number_of_blocks_gives_the_answer_of_one_machine(
    model: Callable[..., Any], columns: tuple[str, ...], n_blocks: int
) -> None:
    rows = {name: ROWS[name] for name in columns}
    given = arguments(rows, slice(None), model)  # type: ignore[arg-type]
    for penalty in PENALTIES:
        blocks = rs.Blocks.split(**given, n_blocks=n_blocks, engine=None)
        found = model(penalty, **TIGHT).fit(blocks)
        here = fit_here(model(penalty, **TIGHT), rows)
        check_same(found, here)
        if penalty is None:
            np.testing.assert_allclose(found.standard_error_, here.standard_error_, rtol=1e-10)
            np.testing.assert_allclose(found.variance_, here.variance_, rtol=1e-9, atol=1e-15)
            for test in ("lr", "score"):
                a, b = (getattr(fit.tests_, test) for fit in (found, here))
                assert (a.df, a.statistic) == (b.df, pytest.approx(b.statistic, rel=1e-9))
        strata = rows.get("strata", [0])[:1] if "strata" in rows else None
        curves = [
            fit.predict_cumulative_hazard_function(rows["X"][:1], [3, 20, 60, 1e9], strata=strata)
            for fit in (found, here)
        ]
        np.testing.assert_allclose(*curves, rtol=1e-9)


@each_storage
@pytest.mark.parametrize("model", [rs.Cox, rs.FineGray])
def test_odd_borders(store: Store, model: Any) -> None:
    """One row, one time that fills blocks, blocks without events, borders within times."""
    rows = {name: ROWS[name] for name in PLAIN} | {"sample_weight": ROWS["sample_weight"]}
    rows["time"] = np.minimum(rows["time"], 40.0)  # half of the rows share the latest time
    latest = np.argsort(-rows["time"], kind="stable")
    rows["event"] = rows["event"].copy()
    rows["event"][latest[-60:]] = 0
    rows["event"][rows["time"] == 12] = np.where(rows["event"][rows["time"] == 12] == 1, 2, 0)
    same = np.flatnonzero(np.sort(-rows["time"]) == -12)[[0, -1]]
    edges = [1, 20, 40, 41, 90, int(same.mean()), int(same[1]) + 1, 500, 640, 699]
    here = fit_here(model(rs.L1(2.0), **TIGHT), rows)
    for seed in range(3):
        blocks = rs.Blocks(stored(store), cut(rows, sorted(edges), model, seed=seed), engine=None)
        check_same(model(rs.L1(2.0), **TIGHT).fit(blocks), here)


@pytest.mark.parametrize("model", [rs.Cox, rs.FineGray])
def test_events_of_one_time_in_three_blocks_of_which_the_last_has_none(model: Any) -> None:
    rows = {name: ROWS[name].copy() for name in PLAIN}
    rows["time"][:30] = 15.5
    rows["event"][:30] = np.repeat([1, 1, 0], 10)
    order = np.lexsort((np.arange(700) // 10, -rows["time"]))
    first = int(np.flatnonzero(rows["time"][order] == 15.5)[0])
    parts = np.split(order, [first + 10, first + 20, first + 25])
    blocks = rs.Blocks(itself, [arguments(rows, part, model) for part in parts], engine=None)
    found = model(**TIGHT).fit(blocks)
    check_same(found, fit_here(model(**TIGHT), rows))
    np.testing.assert_allclose(
        found.standard_error_, fit_here(model(**TIGHT), rows).standard_error_, rtol=1e-10
    )


@each_storage
@pytest.mark.parametrize("model", [rs.Cox, rs.FineGray])
def test_whole_strata_in_any_block_and_one_in_three(store: Store, model: Any) -> None:
    """As after a shuffle by stratum: the order of the strata themselves says nothing."""
    rows = ROWS | {"strata": np.array(["d", "a", "c", "b", "e"])[np.arange(700) % 5]}
    of = {label: np.flatnonzero(rows["strata"] == label) for label in "abcde"}
    long = of["c"][np.argsort(-rows["time"][of["c"]], kind="stable")]
    parts = [
        np.concatenate([long[100:], of["a"]]),
        np.concatenate([of["e"], of["b"]]),
        long[40:100],
        np.concatenate([of["d"], long[:40]]),
    ]
    blocks = rs.Blocks(stored(store), [arguments(rows, part, model) for part in parts], engine=None)
    found = model(rs.L1(2.0, unpenalized=["x0"]), **TIGHT).fit(blocks)
    here = fit_here(model(rs.L1(2.0, unpenalized=["x0"]), **TIGHT), rows)
    check_same(found, here)
    new: Rows = {"X": rows["X"][:5], "times": [5, 30], "strata": rows["strata"][:5]}
    np.testing.assert_allclose(
        found.predict_survival_function(**new), here.predict_survival_function(**new), rtol=1e-9
    )


@pytest.mark.parametrize(
    "options",
    [
        {"censoring_ties": "finegray"},
        {"censoring_beyond": "last"},
        {"censoring_weights": "none"},
        {"cause": 2},
    ],
    ids=lambda options: "-".join(map(str, *options.items())),
)
def test_censoring_is_estimated_from_all_blocks(options: Rows) -> None:
    rows = ROWS | {"event": np.where(ROWS["time"] > 60, 0, ROWS["event"])}
    here = fit_here(rs.FineGray(rs.L1(2.0), **options, **TIGHT), rows)
    blocks = rs.Blocks(itself, cut(rows, [3, 100, 101, 350], rs.FineGray), engine=None)
    check_same(rs.FineGray(rs.L1(2.0), **options, **TIGHT).fit(blocks), here)


def test_a_column_may_be_stored_otherwise_in_each_block() -> None:
    """Binary, constant, dense or sparse by block, and informative only between them."""
    rows = {name: ROWS[name].copy() for name in PLAIN}
    x, late = rows["X"], rows["time"] > 20
    x[:, 3] = np.where(late, x[:, 3], 10 + 5 * np.sin(np.arange(700)))
    x[:, 4] = np.where(late, 7.0, 8.0)
    x[:, 5] = np.where(late, x[:, 0], x[:, 2])
    n_late = int(late.sum())
    blocks = rs.Blocks(itself, cut(rows, [n_late, 600], rs.Cox), engine=None)
    for penalty in (rs.L2(3.0), rs.L1(3.0)):
        check_same(rs.Cox(penalty, **TIGHT).fit(blocks), fit_here(rs.Cox(penalty, **TIGHT), rows))


def test_long_tables_need_not_name_all_covariates_in_each_block() -> None:
    """Covariate 3 occurs in the first block only, 11 in the last, in another order."""
    order = np.argsort(-ROWS["time"], kind="stable")
    x = ROWS["X"][:, :4].copy()
    x[order[300:], 3] = 0
    x[order[:300], 0] = 0
    keys = np.array([11, 7, 2**60, 3])
    row, column = np.nonzero(x)
    patients = {"rowId": np.arange(700), "time": ROWS["time"], "y": ROWS["event"] == 1}
    entries = {"rowId": row, "covariateId": keys[column], "covariateValue": x[row, column]}

    def read(rows: Numbers) -> rs.Dataset:
        taken = np.isin(entries["rowId"], rows)
        return rs.Dataset.from_long(
            pa.table({name: column[rows] for name, column in patients.items()}),
            pa.table({name: column[taken] for name, column in entries.items()}),
        )

    here = rs.Cox(rs.L1(2.0), **TIGHT).fit(read(np.arange(700)))
    parts = np.split(order, [300, 500])
    with pytest.raises(rs.InputError, match="other covariates than block 0: .*\n.*absent='zero'"):
        rs.Cox().fit(rs.Blocks(read, parts, engine=None))
    for items in (parts, parts[::-1]):
        blocks = rs.Blocks(read, items, engine=None, absent="zero")
        found = rs.Cox(rs.L1(2.0), **TIGHT).fit(blocks)
        there = dict(zip(found.covariates_, found.coef_, strict=True))
        assert [there[name] for name in here.covariates_] == pytest.approx(here.coef_, rel=1e-10)


@pytest.mark.filterwarnings("ignore::riskset.RisksetWarning")
def test_what_cannot_be_estimated_is_found_across_blocks() -> None:
    rows = {name: ROWS[name].copy() for name in (*PLAIN, "strata")}
    rows["X"][:, 4] = rows["strata"]  # constant within strata
    rows["X"][:, 5] = 2 * rows["X"][:, 1] - rows["X"][:, 0] + rows["strata"]
    here = fit_here(rs.Cox(**TIGHT), rows)
    blocks = rs.Blocks(itself, cut(rows, [90, 200, 500], rs.Cox), engine=None)
    found = rs.Cox(**TIGHT).fit(blocks)
    check_same(found, here)
    assert [note.code for note in found.notes_] == ["constant", "collinear"]
    assert found.notes_[:2] == here.notes_[:2]
    np.testing.assert_allclose(found.standard_error_, here.standard_error_, rtol=1e-9)


@pytest.mark.parametrize("model", [rs.Cox, rs.FineGray])
def test_standard_errors_where_strata_begin_with_blocks(model: Any) -> None:
    """What hangs over a border is no part of the next block if that begins another stratum."""
    rows = {name: ROWS[name][:90] for name in (*PLAIN, "strata")} | {"X": ROWS["X"][:90, 1:3]}
    order = np.lexsort((-rows["time"], rows["strata"]))
    starts = np.flatnonzero(np.diff(rows["strata"][order])) + 1
    here = fit_here(model(**TIGHT), rows)
    expected = np.sqrt(np.diag(here.variance_))
    for edges in ([*starts], sorted({*starts, *(starts + 5)}), range(1, 90)):
        blocks = rs.Blocks(itself, cut(rows, [*edges], model), engine=None)
        found = model(**TIGHT).fit(blocks)
        check_same(found, here)
        np.testing.assert_allclose(found.standard_error_, expected, rtol=1e-9)


def test_a_dataset_that_is_split_keeps_its_cause_and_takes_nothing_beside() -> None:
    table = pa.table({"x": ROWS["X"][:, 1], "days": ROWS["time"], "event": ROWS["event"]})
    data = rs.Dataset.from_frame(table, time="days", event="event", cause=2)
    blocks = rs.Blocks.split(data, n_blocks=3, engine=None)
    check_same(rs.Cox(**TIGHT).fit(blocks), rs.Cox(**TIGHT).fit(data))
    with pytest.raises(rs.InputError, match="`sample_weight` was given together with a Dataset"):
        rs.Blocks.split(data, n_blocks=3, sample_weight=ROWS["sample_weight"], engine=None)


def test_strata_without_events_are_told() -> None:
    """As on one machine: one has no event in any of its blocks, one only in a row of weight 0."""
    rows = {name: ROWS[name].copy() for name in (*PLAIN, "sample_weight", "strata")}
    rows["event"][rows["strata"] <= 1] = 0
    first = int(np.flatnonzero(rows["strata"] == 1)[0])
    rows["event"][first], rows["sample_weight"][first] = 1, 0
    blocks = rs.Blocks(itself, cut(rows, [90, 200, 400], rs.Cox), engine=None)
    found = rs.Cox(rs.L2(1.0), **TIGHT).fit(blocks)
    (note,) = found.notes_
    assert note.message.startswith("2 of 4 strata have no event")
    assert found.notes_ == fit_here(rs.Cox(rs.L2(1.0), **TIGHT), rows).notes_


@pytest.mark.parametrize("model", [rs.Cox, rs.FineGray])
def test_a_column_may_vary_in_one_block_that_has_no_events(model: Any) -> None:
    """Among rows at risk of events in other blocks: later ones, or after a competing event."""
    rows = {name: ROWS[name].copy() for name in PLAIN}
    late, early = (np.flatnonzero(at) for at in (rows["time"] > 60, rows["time"] <= 3))
    between = np.flatnonzero((rows["time"] > 3) & (rows["time"] <= 60))
    rows["event"][late], rows["event"][early] = 0, 2
    rows["X"][:, 3:5] = 0
    rows["X"][late[::2], 3] = 1
    rows["X"][early[::2], 4] = 1
    here = fit_here(model(rs.L2(1.0), **TIGHT), rows)
    # A row after its competing event counts on; a censored one has left before the first event.
    assert (here.coef_[3:5] != 0).tolist() == [True, model is rs.FineGray]
    parts = (early, late, between)
    blocks = rs.Blocks(itself, [arguments(rows, part, model) for part in parts], engine=None)
    check_same(model(rs.L2(1.0), **TIGHT).fit(blocks), here)


@pytest.mark.parametrize("model", [rs.Cox, rs.FineGray])
def test_sampled_curvature_leads_to_the_same_answer(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is near the exact one, also where blocks store columns in units of their own."""
    rows = make(3_000, 20, seed=5)
    rows["X"][:, 3] = np.where(rows["time"] > 20, rows["X"][:, 3], 9 + np.sin(np.arange(3_000)))
    monkeypatch.setattr(curvature, "EXACT_WORK", 0)
    sampled, ratios = BlockRows.sampled_information, []

    def compared(self: BlockRows, eta: Any, columns: Any, *args: Any) -> Any:
        out = sampled(self, eta, columns, *args)
        exact = self.information(eta, columns)
        ratios.extend(scipy.linalg.eigh(out, exact, eigvals_only=True))
        return out

    monkeypatch.setattr(BlockRows, "sampled_information", compared)
    for names in (PLAIN, tuple(rows)):
        some = {name: rows[name] for name in names}
        blocks = rs.Blocks(itself, cut(some, [400, 1700], model), engine=None)
        found = model(rs.L1(2.0), **TIGHT).fit(blocks)
        check_same(found, fit_here(model(rs.L1(2.0), **TIGHT), some))
    assert 0.95 < min(ratios) <= max(ratios) < 1.05


def test_few_messages_for_each_step() -> None:
    blocks = rs.Blocks(itself, cut(ROWS, [200, 400], rs.Cox), engine=None)
    model = rs.Cox(rs.L1(2.0), **TIGHT).fit(blocks)
    steps = model.n_iter_
    # Three a step for the gradient, two for the curvature and one for spreads; some to begin.
    assert blocks.crew.n_messages <= 3 * (20 + 7 * steps)


def test_what_blocks_are_not_for() -> None:
    rows = {name: ROWS[name] for name in PLAIN}
    blocks = rs.Blocks(itself, cut(rows, [300], rs.FineGray), engine=None)
    wrong: list[tuple[Any, str]] = [
        (rs.Cox(ties="efron"), "ties='efron' does not fit in blocks"),
        (rs.Cox(solver="ccd"), "solver='ccd' does not fit in blocks"),
        (rs.FineGray(censoring_group="x0"), "`censoring_group` does not fit in blocks"),
        (rs.CoxCV(rs.L1(), cause=1), "can only be fitted, by Cox and FineGray"),
        (rs.Cox(), "must be 0 .* or 1 .*, but .* \\(first: row"),
        (rs.Cox(cause=7), "none of the 2 blocks has an event"),
    ]
    for model, message in wrong:
        with pytest.raises(rs.InputError, match=message):
            model.fit(blocks)
    with pytest.raises(rs.InputError, match="`strata` was given together with Blocks, which bring"):
        rs.Cox(cause=1).fit(blocks, strata=np.zeros(700))
    model = rs.FineGray().fit(blocks)
    assert "no_robust_variance" in [note.code for note in model.notes_]
    assert np.isnan(model.summary()["p"]).all()
    assert np.isfinite(model.standard_error_).all()
    with pytest.raises(AttributeError, match="fitted in blocks does not carry"):
        model.bootstrap(2)


def test_blocks_that_do_not_fit_together_are_named() -> None:
    rows = {name: ROWS[name] for name in PLAIN}
    early, late = (np.flatnonzero(k) for k in (rows["time"] < 20, rows["time"] >= 18))

    def fit(*items: Any, read: Any = itself, model: Any = None) -> None:
        (model or rs.Cox()).fit(rs.Blocks(read, items, engine=None))

    a, b = (arguments(rows, part, rs.Cox) for part in (early, late))
    overlap = "block 1 and block 0 overlap in time: block 1 has times from 18 to .* block 0 from"
    with pytest.raises(rs.InputError, match=rf"{overlap} 1 to 19.\nHint: sort all rows by stratum"):
        fit(a, b)
    strata = [{"strata": np.arange(len(x["y"])) % 2} for x in (a, b)]
    with pytest.raises(rs.InputError, match=r"overlap in time.* in stratum [01]"):
        fit(a | strata[0], b | strata[1])
    with pytest.raises(rs.InputError, match=r"block 1 has other covariates than block 0: 'x5'"):
        fit(a, b | {"X": b["X"][:, :5]})
    entry = rs.Surv(b["y"]["time"], b["y"]["event"], np.ones(len(late)))
    with pytest.raises(rs.InputError, match="block 1 has late entry"):
        fit(a, b | {"y": entry})
    with pytest.raises(rs.InputError, match=r"block 1: .*'x0' contains NaN"):
        fit(a, b | {"X": np.full((len(late), 6), np.nan)})
    with pytest.raises(rs.InputError, match="block 0: `read` must give a Dataset.*gave a float"):
        fit(1.5)
    with pytest.raises(rs.InputError, match=r"block 0 \('a.csv'\): argument 'weight' was"):
        fit("a.csv", read=lambda path: a | {"weight": 1})
    text = rs.Surv(a["y"]["time"], np.where(a["y"]["event"], "dead", "alive"), censored="alive")
    with pytest.raises(rs.InputError, match="block 0: events of blocks must be numbers"):
        fit(a | {"y": text})
    with pytest.raises(rs.InputError, match="the offsets span 500 or more"):
        fit(a | {"offset": np.linspace(0, 900, len(early))})
    with pytest.raises(rs.InputError, match="`items` is empty"):
        fit()


def test_strata_that_no_order_of_blocks_puts_in_a_row() -> None:
    """Each of two blocks has the later times of one stratum and the earlier ones of another."""
    rows = {name: ROWS[name] for name in PLAIN} | {"strata": np.arange(700) % 2}
    late = rows["time"] > 20
    crossed = [np.flatnonzero(late == (rows["strata"] == k)) for k in (0, 1)]
    with pytest.raises(rs.InputError, match="shares strata with other blocks in more ways"):
        rs.Cox().fit(
            rs.Blocks(itself, [arguments(rows, part, rs.Cox) for part in crossed], engine=None)
        )


def test_an_estimate_that_may_be_infinite_is_told() -> None:
    rows = {name: ROWS[name].copy() for name in PLAIN}
    rows["X"][:, 0] = rows["event"] != 1  # nobody with a 1 ever has the event
    blocks = rs.Blocks(itself, cut(rows, [300], rs.Cox), engine=None)
    with pytest.warns(ConvergenceWarning, match="could not be decided whether"):
        model = rs.Cox().fit(blocks)
    assert model.status_ == "undecided"


def test_linear_predictors_too_far_apart_for_one_exponent_are_told() -> None:
    """They span 1,000, as one machine finds."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(500, 1))
    x[:2, 0] = 300, -300
    log_time = -1.2 * x[:, 0] + 0.4 * rng.gumbel(size=500)
    y = rs.Surv(np.argsort(np.argsort(log_time)) + 1.0, np.ones(500, dtype=bool))
    assert np.ptp(x @ rs.Cox().fit(x, y).coef_) > 500
    blocks = rs.Blocks.split(x, y, n_blocks=2, engine=None)
    with pytest.warns(ConvergenceWarning) as told:
        model = rs.Cox(max_iter=30).fit(blocks)
    assert model.status_ == "max_iter"
    assert "span 500 or more, which a fit in blocks cannot hold" in str(told[-1].message)


# ------------------------------------------------------------------------------- on a cluster

pytest.importorskip("distributed")
pytestmark = LEAVES_SOCKETS


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    """A client of three processes, current for the tests that follow."""
    with local_client(3) as client:
        yield client


@pytest.mark.parametrize("model", rest_is_slow([rs.Cox, rs.FineGray], 1))
def test_on_a_cluster(model: Any, dask: Any) -> None:
    with rs.Blocks(itself, cut(ROWS, [100, 150, 500], model)) as blocks:
        assert blocks.crew.n_workers == 3  # type: ignore[attr-defined]
        for penalty in (None, rs.L1(3.0, unpenalized=["x0"])):
            found = model(penalty, **TIGHT).fit(blocks)
            check_same(found, fit_here(model(penalty, **TIGHT), ROWS))


@pytest.mark.slow
def test_files_that_never_meet_on_one_machine(tmp_path: Path, dask: Any) -> None:
    """Each worker reads its part of a table; one design in a file is cut by the workers."""
    columns = {f"c{j}": ROWS["X"][:, j] for j in range(6)}
    table = pa.table(columns | {"days": ROWS["time"], "died": (ROWS["event"] == 1).astype(int)})
    table = table.sort_by([("days", "descending")])
    paths = [str(tmp_path / f"{k}.parquet") for k in range(3)]
    for k, path in enumerate(paths):
        pq.write_table(table.slice(k * 250, 250), path)

    def read(path: str) -> rs.Dataset:
        return rs.read_dataset(path, time="days", event="died")

    here = rs.Cox(rs.L1(3.0), **TIGHT).fit(rs.Dataset.from_frame(table, time="days", event="died"))
    with rs.Blocks(read, paths) as blocks:
        found = rs.Cox(rs.L1(3.0), **TIGHT).fit(blocks)
    check_same(found, here)
    found.save(tmp_path / "fit.riskset")
    again = rs.load(tmp_path / "fit.riskset")
    new = table.select(list(columns))
    np.testing.assert_array_equal(
        again.predict_survival_function(new, [9, 30]), found.predict_survival_function(new, [9, 30])
    )
    pq.write_table(table.slice(0, 300), paths[1])
    with pytest.raises(rs.InputError, match=r"block . \('.*parquet'\) .*overlap in time"):
        rs.Cox().fit(rs.Blocks(read, paths))

    rs.Design.from_dense(ROWS["X"]).save(tmp_path / "x.rsd")
    y = rs.Surv(ROWS["time"], ROWS["event"] == 1)
    design = rs.Design.open(tmp_path / "x.rsd")
    found = rs.Cox(rs.L1(3.0), **TIGHT).fit(rs.Blocks.split(design, y, n_blocks=4))
    np.testing.assert_allclose(found.coef_, here.coef_, rtol=1e-10)


class _Deadly:
    """Kills a worker at one of the calls of a crew, as often as it is told."""

    def __init__(self, crew: Any, client: Any, at: int, times: int) -> None:
        self._crew, self._client, self._at, self._left = crew, client, at, times
        self._n = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._crew, name)

    def call(self, *args: Any, **options: Any) -> Any:
        self._n += 1
        if self._left and self._n >= self._at:
            self._left, self._n = self._left - 1, 0
            pid = self._client.run(os.getpid, workers=[self._crew._where[1]])
            os.kill(*pid.values(), signal.SIGKILL)
        return self._crew.call(*args, **options)


@pytest.mark.slow
def test_a_worker_that_dies_costs_time_and_not_the_answer(
    dask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = rs.Blocks(itself, cut(ROWS, [100, 150, 500], rs.Cox))
    here = fit_here(rs.Cox(rs.L1(3.0), **TIGHT), ROWS)
    crew = blocks.crew
    blocks.crew = _Deadly(crew, dask, 20, 1)
    check_same(rs.Cox(rs.L1(3.0), **TIGHT).fit(blocks), here)
    monkeypatch.setattr(blocks_module, "ATTEMPTS", 1)
    blocks.crew = _Deadly(crew, dask, 20, 1)
    with pytest.raises(rs.RisksetError, match=r"workers died .*\(the worker tcp.* is gone"):
        rs.Cox(rs.L1(3.0)).fit(blocks)
