"""A Dask cluster of this machine for the tests of a module."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

LEAVES_SOCKETS = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
"""For modules that use `local_client`: on a busy machine Dask may abandon a connection when it
replaces a dead worker or closes, and leave its socket to the garbage collection."""


@contextmanager
def local_client(n_workers: int) -> Iterator[Any]:
    """A client of some processes, which is the current one until the block ends."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",  # any free port: another cluster may have the usual one
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
    del client, cluster
    gc.collect()  # here, under the filter, and not in a later test of another module
