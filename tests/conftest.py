"""Fixtures and settings that all tests share."""

import gc
from collections.abc import Generator

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("riskset", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("riskset")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from the modules and tests, which stay to the end.

    There are nearly a million objects, and it would walk over all of them again and again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(20260)


@pytest.fixture(autouse=True)
def _no_cache_of_the_user(tmp_path_factory, monkeypatch) -> None:
    """Tests leave nothing in the folder where programs of the user keep what they make again."""
    monkeypatch.setenv("RISKSET_CACHE", str(tmp_path_factory.getbasetemp() / "riskset-cache"))


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server with the toy CDM."""
    pytest.importorskip("adbc_driver_postgresql")
    import postgres_server

    if postgres_server.binaries() is None:
        pytest.skip("there is no PostgreSQL: make postgresql installs it")
    server = postgres_server.start()
    yield server
    server.stop()
