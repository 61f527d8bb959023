"""The same table of covariates, stored in every way: what a test of an equivalence runs on.

A `Design` goes by the values of a column: columns of zeros and ones and columns that are mostly
zero are sparse, others dense. Parts of a design, blocks of rows and resamples keep the storage of
the whole whatever their values are. So any column may be stored in any way, and no answer may
depend on it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from riskset._runtime import Runtime
from riskset.data.column_storage import BinaryColumns, StoredColumns, ValuedColumns
from riskset.data.design import Design
from riskset.data.design_columns import dense_part, power_of_two

Store = Callable[[np.ndarray], Design]


def as_dense(x: np.ndarray) -> Design:
    """Every column dense, those of zeros and ones too."""
    return _stored(x, np.ones(x.shape[1], dtype=bool))


def as_sparse(x: np.ndarray) -> Design:
    """Every column as compressed sparse columns."""
    return _stored(x, np.zeros(x.shape[1], dtype=bool))


def as_mixed(x: np.ndarray) -> Design:
    """Columns of zeros and ones sparse, and of the others every second, from the second on."""
    is_dense = ~((x == 0) | (x == 1)).all(axis=0)
    is_dense[np.flatnonzero(is_dense)[1::2]] = False
    return _stored(x, is_dense)


STORAGES: Mapping[str, Store] = {"dense": as_dense, "sparse": as_sparse, "mixed": as_mixed}

each_storage = pytest.mark.parametrize("store", STORAGES.values(), ids=STORAGES)

EXAMPLES = 15
"""In each storage: together half as many again as a test has elsewhere."""


def given_stored(*args: Any, **kwargs: Any) -> Callable[[Callable[..., None]], Any]:
    """`hypothesis.given`, for a test that runs in every storage."""

    def decorate(test: Callable[..., None]) -> Any:
        return each_storage(settings(max_examples=EXAMPLES)(given(*args, **kwargs)(test)))

    return decorate


def in_some_storage(name: str, values: Sequence[Any]) -> pytest.MarkDecorator:
    """Each value in one storage, and in the others in tests that are slow."""
    pairs = [
        (value, store, (k + at) % len(STORAGES) == 0)
        for k, value in enumerate(values)
        for at, store in enumerate(STORAGES)
    ]
    return pytest.mark.parametrize(
        (name, "store"),
        [
            pytest.param(
                value,
                STORAGES[store],
                id=f"{value}-{store}",
                marks=() if is_quick else pytest.mark.slow,
            )
            for value, store, is_quick in pairs
        ],
    )


def _stored(x: np.ndarray, is_dense: np.ndarray) -> Design:
    n, p = x.shape
    x = np.asarray(x, dtype=np.float64)
    center, scale, names = np.zeros(p), np.ones(p), tuple(f"x{j}" for j in range(p))
    is_binary = ~is_dense & ((x == 0) | (x == 1)).all(axis=0)
    is_valued = ~is_dense & ~is_binary
    scale[is_valued] = power_of_two(np.sqrt((x[:, is_valued] ** 2).sum(axis=0) / max(1, n)))
    parts: list[StoredColumns] = []
    for kind, chosen in ((BinaryColumns, is_binary), (ValuedColumns, is_valued)):
        columns = np.flatnonzero(chosen)
        csc = sparse.csc_array(x[:, columns] / scale[columns])
        values = csc.data if kind is ValuedColumns else np.zeros(0)
        known = (csc.indptr.astype(np.int64), csc.indices.astype(np.int64), values)
        if columns.size:
            every = np.arange(columns.size, dtype=np.int64)
            parts.append(kind.laid_out(columns, known, every, n, Runtime(1)))
    columns = np.flatnonzero(is_dense)
    if columns.size:
        parts.append(dense_part(columns, list(x[:, columns].T.copy()), n, center, scale))
    return Design(n, names, names, center, scale, tuple(parts))
