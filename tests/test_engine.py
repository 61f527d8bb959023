"""Replicates in processes of joblib, Dask and Ray have the bits of those in threads."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from joblib.externals.loky import get_reusable_executor
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import riskset as rs
from dask_cluster import LEAVES_SOCKETS, local_client
from parameters import rest_is_slow
from riskset import engine
from riskset.estimators import _inference

pytest.importorskip("distributed")
pytestmark = LEAVES_SOCKETS


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    """A client of two processes, current for the tests of this module."""
    with local_client(2) as client:
        yield client


@pytest.fixture(scope="module", params=rest_is_slow(["joblib", "dask", "ray"], 1))
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "dask":
        request.getfixturevalue("dask")
    if request.param == "ray":
        ray = pytest.importorskip("ray")
        with pytest.MonkeyPatch.context() as patch:
            # The workers import this module, and what it imports from here.
            patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
            ray.init(num_cpus=2, include_dashboard=False, logging_level=50)
        yield "ray"
        ray.shutdown()
        return
    yield request.param
    if request.param == "joblib":
        get_reusable_executor().shutdown(wait=True)


@pytest.fixture(scope="module")
def cohort() -> rs.Dataset:
    """Rows enough for lanes, with competing events and columns of every kind."""
    rng = np.random.default_rng(4)
    n = 6_000
    x = (rng.random((n, 12)) < 0.2).astype(float)
    x[:, 1] = rng.normal(size=n)
    x[:, 2] *= rng.normal(size=n)
    columns = {f"x{j}": x[:, j] for j in range(12)}
    risk = np.exp(x @ np.linspace(-0.5, 0.5, 12))
    columns["time"] = np.ceil(100 * rng.exponential(1 / risk))
    columns["event"] = rng.choice([0, 0, 1, 2], n)
    return rs.Dataset.from_frame(pa.table(columns), time="time", event="event", cause=1)


KIND = rs.L1(unpenalized=["x0"])


def same(a: rs.Bootstrap | rs.CrossValidation, b: Any) -> bool:
    fields = ("replicates",) if isinstance(a, rs.Bootstrap) else ("scores", "kkt", "n_iter")
    return all(np.array_equal(getattr(a, f), getattr(b, f), equal_nan=True) for f in fields)


@pytest.mark.parametrize("model", [rs.CoxCV, rs.FineGrayCV])
def test_cross_validation_and_bootstrap_have_the_same_bits(
    name: str, model: Callable[..., Any], cohort: rs.Dataset
) -> None:
    common: dict[str, Any] = {"folds": 3, "repeats": 3, "penalties": [10.0, 30.0], "n_threads": 2}
    here = model(KIND, **common).fit(cohort)
    there = model(KIND, **common, engine=name).fit(cohort)
    assert same(here.cross_validation_, there.cross_validation_)
    assert here.coef_.tobytes() == there.coef_.tobytes()
    assert same(here.bootstrap(12), here.bootstrap(12, engine=name))


@pytest.mark.slow
def test_small_data_clusters_and_retuning(dask: object) -> None:
    """Replicates one by one, and each with a cross-validation of its own."""
    name = "dask"
    data = rs.load_rhc()
    kind = rs.L1(unpenalized=["swang1"])
    rows = np.arange(0, data.n_rows, 12)
    X, outcome = data.design.take_rows(rows), data.outcome()
    y = rs.Surv(outcome.time[rows], outcome.event[rows])
    here = rs.CoxCV(kind, folds=3, repeats=1, penalties=[5.0, 15.0]).fit(X, y)
    cluster = np.arange(rows.size) // 2
    for options in ({"cluster": cluster}, {"retune": True}):
        found = [here.bootstrap(2, engine=e, **options) for e in (None, name)]
        assert same(*found)
        assert found[0].penalties == found[1].penalties
    model = rs.Cox(rs.L1(8.0))
    scored = [rs.cross_validate(model, X, y, folds=3, repeats=1, engine=e) for e in (None, name)]
    assert same(*scored)


@pytest.mark.slow
def test_a_design_is_written_once_and_one_in_a_file_never(
    tmp_path: Path, dask: object, cohort: rs.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    save = rs.Design.save

    def noted(self: rs.Design, path: Path, *args: Any) -> None:
        written.append(Path(path))
        save(self, path, *args)

    monkeypatch.setattr(rs.Design, "save", noted)
    options: dict[str, Any] = {"folds": 3, "repeats": 1, "penalties": [10.0, 30.0]}
    y = rs.Surv(cohort.outcome().time, cohort.outcome().event == 1)
    rs.CoxCV(KIND, **options, engine="dask").fit(cohort.design, y)
    assert len(written) == 1
    assert not written[0].exists()
    save(cohort.design, tmp_path / "x.rsd")
    rs.CoxCV(KIND, **options, engine="dask").fit(rs.Design.open(tmp_path / "x.rsd"), y)
    assert len(written) == 1


def test_several_models_of_the_same_data(name: str, cohort: rs.Dataset) -> None:
    cv = {"folds": 3, "repeats": 1, "penalties": [10.0, 30.0]}
    models = [
        rs.Cox(rs.L1(10.0)),
        rs.FineGray(KIND.with_strength(1.0), n_threads=2),
        rs.CoxCV(KIND, **cv),
    ]
    here = rs.fit_each(models, cohort)
    there = rs.fit_each(models, cohort, engine=name)
    for model, one, other in zip(models, here, there, strict=True):
        assert one.coef_.tobytes() == other.coef_.tobytes()
        assert one.status_ == other.status_ == "converged"
        assert str(other.get_params()) == str(model.get_params())
        assert not hasattr(model, "coef_")
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        rs.fit_each([rs.Cox(max_iter=1)], cohort, engine=name)
    with pytest.raises(rs.InputError, match="number 1 is a str"):
        rs.fit_each([rs.Cox(), "Cox"], cohort)  # type: ignore[list-item]


class _Deadly:
    """Workers of which one is killed at its first piece of work."""

    def __init__(self, workers: engine.Workers, flag: Path) -> None:
        self._workers, self._flag = workers, flag
        self.n_workers = workers.n_workers

    def map(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        flag = self._flag

        def dying(item: Any) -> Any:
            if item == items[-1]:
                try:
                    flag.touch(exist_ok=False)
                except FileExistsError:
                    pass
                else:
                    os.kill(os.getpid(), signal.SIGKILL)
            return task(item)

        return self._workers.map(dying, items)


@pytest.mark.slow
def test_a_killed_worker_costs_its_replicates_and_not_the_result(
    name: str, cohort: rs.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = rs.Cox(rs.L1(20.0, unpenalized=["x0"]), n_threads=2).fit(cohort)
    expected = model.bootstrap(24)

    @contextmanager
    def deadly(*args: Any) -> Iterator[Any]:
        with engine.workers(*args) as found:
            assert found is not None
            yield _Deadly(found, tmp_path / "killed")

    monkeypatch.setattr(_inference, "workers", deadly)
    assert same(model.bootstrap(24, engine=name), expected)
    assert (tmp_path / "killed").exists()


def _fails(item: int) -> None:
    raise rs.InputError("row 3 is wrong.", hint="correct it.")


def test_errors_of_the_work_come_back(name: str) -> None:
    with engine.workers(name, 2) as workers:
        assert workers is not None
        with pytest.raises(rs.InputError, match="row 3 is wrong.\nHint: correct it"):
            list(workers.map(_fails, [1]))
        assert list(workers.map(abs, [-3, 2, -1])) == [3, 2, 1]


class _Dying:
    """An engine whose workers all die."""

    n_workers = 1
    lost = (BrokenProcessPool,)
    attempts = 5
    n_begun = 0

    def submit(self, function: Callable[..., Any], *args: object) -> None:
        self.n_begun += 1

    def result(self, handle: None) -> None:
        raise BrokenProcessPool("killed")

    def is_lost(self, handle: None) -> bool:
        return True

    def cancel(self, handle: None) -> None:
        pass

    def close(self) -> None:
        pass


def test_work_that_kills_every_worker_is_given_up(tmp_path: Path) -> None:
    pool = _Dying()
    workers = engine.Workers(pool, tmp_path)
    with pytest.raises(rs.RisksetError, match="worker died at the same piece of work .*killed"):
        list(workers.map(abs, [1, 2]))
    assert pool.n_begun == 2 * 5


@pytest.mark.slow
def test_work_that_kills_its_workers_is_given_out_as_often_as_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray and Dask try again by themselves: that must not multiply."""
    if name == "dask":
        pytest.skip("its scheduler was told how often when it began")
    monkeypatch.setattr(engine, "MAX_ATTEMPTS", 2)

    def deadly(_: int) -> None:
        with (tmp_path / "tries").open("a") as stream:
            stream.write("x")
        os.kill(os.getpid(), signal.SIGKILL)

    with engine.workers(name, 2) as workers:
        assert workers is not None
        with pytest.raises(rs.RisksetError, match="worker after worker died at the same piece"):
            list(workers.map(deadly, [1]))
    assert (tmp_path / "tries").read_text() == "xx"


def test_what_is_not_there_is_told(cohort: rs.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(rs.InputError, match="`engine` must be 'None', 'joblib', 'dask' or 'ray'"):
        rs.CoxCV(engine="spark").fit(cohort)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(rs.MissingDependencyError, match=r"pip install \"riskset\[dask\]\""):
        rs.CoxCV(engine="dask").fit(cohort)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(rs.MissingDependencyError, match="`engine='ray'` needs ray"):
        rs.CoxCV(engine="ray").fit(cohort)


@pytest.mark.parametrize("model", [rs.Cox(KIND), rs.FineGray(KIND.with_strength(1.0), n_threads=2)])
def test_a_path_in_pieces(name: str, cohort: rs.Dataset, model: Any) -> None:
    settings = {"n_penalties": 12, "min_ratio": 1e-2}
    whole = rs.path(model, cohort, **settings)
    pieces = rs.path(model, cohort, engine=name, **settings)
    assert_array_equal(pieces.strengths, whole.strengths)
    assert_allclose(pieces.coefs, whole.coefs, rtol=1e-5, atol=1e-7)
    assert (pieces.kkt <= 1e-8).all()
    assert set(pieces.statuses) == {"converged"}
    assert_allclose(pieces.model(7).coef_, whole.coefs[7], rtol=1e-5, atol=1e-7)
    with pytest.raises(rs.InputError, match="`engine` must be"):
        rs.path(model, cohort, engine="spark", **settings)
