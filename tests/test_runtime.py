"""Work that is shared out by work that is shared out itself."""

import threading

import numpy as np
import pytest

import riskset as rs
from riskset._runtime import Runtime


def add_one(first: int, last: int, out: np.ndarray) -> None:
    out[first:last] += 1


def within(seconds: float, call) -> object:
    """What a call returns; a call that never ends fails and does not stop all other tests."""
    results = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it waits for ever"
    return results[0]


@pytest.mark.parametrize("n_threads", [2, 3])
def test_tasks_may_share_out_their_work(n_threads: int) -> None:
    runtime = Runtime(n_threads)

    def task(k: int) -> float:
        out = np.zeros(100 + k)
        runtime.run(add_one, out.size, out)
        return sum(runtime.map(float, out))

    assert within(30, lambda: runtime.map(task, range(20))) == [100.0 + k for k in range(20)]


def test_profiles_of_dense_tables_of_many_rows() -> None:
    # Each point of a profile is a task, and reads columns in an order that threads make.
    rng = np.random.default_rng(3)
    x = rng.normal(size=(10_000, 3))
    y = rs.Surv(rng.exponential(np.exp(-0.3 * x[:, 0])), rng.random(10_000) < 0.05)

    def points(n_threads: int) -> np.ndarray:
        model = rs.Cox(rs.L2(1.0, unpenalized=[0]), n_threads=n_threads)
        return rs.profile(model, x, y, parameter="x0", grid=np.linspace(-1, 1, 6)).log_likelihood

    assert within(60, lambda: points(2)).tobytes() == points(1).tobytes()
