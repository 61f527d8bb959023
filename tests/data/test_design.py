"""Every way to build a design gives the same matrix, and every operation is the dense one."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset.data.checks import Places, as_numbers
from riskset.data.column_storage import BinaryColumns, DenseColumns, ValuedColumns
from riskset.data.design import Design
from riskset.data.labels import as_codes
from storages import STORAGES, Store, each_storage

RNG = np.random.default_rng(0)
RUNTIME = Runtime(2)


def table(n: int) -> np.ndarray:
    """Binary, valued sparse, dense, badly scaled, constant and empty columns."""
    rng = np.random.default_rng(n)
    binary = (rng.random((n, 5)) < [0.02, 0.2, 0.5, 0.9, 1.0]) * 1.0
    valued = (rng.random((n, 3)) < 0.1) * rng.normal(size=(n, 3)) * [1e5, 1, 1e-5]
    dense = rng.normal(size=(n, 4)) * [1e-9, 1, 1e8, 5] + [0, 3, 1e9, -2]
    return np.c_[binary, valued, dense, np.full(n, 7.0), np.zeros(n)]


BUILDERS = {
    "C": Design.from_dense,
    "Fortran": lambda x: Design.from_dense(np.asfortranarray(x)),
    "read only": lambda x: Design.from_dense(np.lib.stride_tricks.as_strided(x, writeable=False)),
    "objects": lambda x: Design.from_dense(x.astype(object)),
    "csr": lambda x: Design.from_sparse(sp.csr_array(x)),
    "csc matrix": lambda x: Design.from_sparse(sp.csc_matrix(x)),
    "coo": lambda x: Design.from_sparse(sp.coo_array(x)),
    "csc unsorted": lambda x: Design.from_csc(*_unsorted(x), len(x)),
    "csc int64": lambda x: Design.from_csc(*_unsorted(x, np.int64), len(x)),
    "columns": lambda x: Design.from_columns({f"x{j}": x[:, j] for j in range(x.shape[1])}),
    "side by side": lambda x: Design.stack(
        [
            Design.from_dense(x[:, :3], [f"x{j}" for j in range(3)]),
            Design.from_sparse(sp.csc_array(x[:, 3:]), [f"x{j}" for j in range(3, x.shape[1])]),
        ]
    ),
    **{f"stored {name}": store for name, store in STORAGES.items()},
}


def _unsorted(x: np.ndarray, kind: type = np.int32) -> tuple:
    columns = [np.random.default_rng(1).permutation(np.flatnonzero(c)) for c in x.T]
    indptr = np.append(0, np.cumsum([c.size for c in columns]))
    values = np.concatenate([x[c, j] for j, c in enumerate(columns)])
    return indptr, np.concatenate(columns).astype(kind), values


@pytest.mark.parametrize("n", [1, 7, 4096, 9001])
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_all_operations(build, n: int) -> None:
    x = table(n)
    design = build(x)
    p = x.shape[1]
    assert design.n_rows == n
    assert design.names == tuple(f"x{j}" for j in range(p))
    # Centring rounds in the last place of the column's largest value.
    size = np.maximum(np.abs(x).max(axis=0), 1e-300)
    assert_allclose(design.to_dense() / size, x / size, rtol=0, atol=5e-16)
    columns = np.array([7, 0, 9, 12, 3])
    rows = RNG.integers(0, n, 11)
    assert np.array_equal(design.to_dense(columns, rows), design.to_dense()[np.ix_(rows, columns)])
    stored = design.stored()
    v, r = RNG.normal(size=p), RNG.normal(size=n)
    assert_allclose(design.product(v, runtime=RUNTIME), stored @ v, rtol=1e-12, atol=1e-11)
    assert_allclose(
        design.product(v[:5], columns, runtime=RUNTIME), stored[:, columns] @ v[:5], atol=1e-11
    )
    assert_allclose(design.cross(r, runtime=RUNTIME), r @ stored, rtol=1e-10, atol=1e-9)
    assert_allclose(
        design.cross(r, columns, runtime=RUNTIME, power=2), r @ stored[:, columns] ** 2, atol=1e-9
    )
    coef = v / np.maximum(np.abs(x).max(axis=0), 1e-300)
    assert_allclose(design.dot(coef), x @ coef, rtol=1e-12, atol=1e-12)
    keep = np.random.default_rng(2).permutation(n)[: max(1, n // 2)]
    assert np.array_equal(design.take_rows(keep).to_dense(), design.to_dense(rows=keep))


@each_storage
def test_operations_have_the_same_bits_for_any_number_of_threads(store: Store) -> None:
    n = 9001
    x, r = table(n), RNG.normal(size=n)
    design, v = store(x), RNG.normal(size=x.shape[1])

    def answers(runtime: Runtime) -> list[bytes]:
        found = [design.cross(r, runtime=runtime, power=power) for power in (1, 2)]
        found += [design.moments(r, runtime=runtime), design.product(v, runtime=runtime)]
        return [a.tobytes() for a in (*found, design.magnitude(v, runtime=runtime))]

    one = answers(Runtime(1))
    assert all(answers(Runtime(n_threads)) == one for n_threads in (2, 3, 5))


def test_kinds_of_storage() -> None:
    design = Design.from_dense(table(9001))
    kinds = {type(part): list(part.columns) for part in design.parts}
    assert kinds == {
        BinaryColumns: [0, 1, 2, 3, 4, 13],
        ValuedColumns: [5, 6, 7],
        DenseColumns: [8, 9, 10, 11, 12],
    }
    ones = int(table(9001)[:, [0, 1, 2, 3, 4, 13]].sum())
    binary = next(part for part in design.parts if isinstance(part, BinaryColumns))
    assert binary.nbytes == 2 * ones + binary.block_ptr.nbytes  # no values
    assert (np.log2(design.scale) % 1 == 0).all()
    assert design.is_binary.tolist() == [True] * 5 + [False] * 8 + [True]


def test_small_integers_do_not_wrap() -> None:
    x = np.array([[100, 1], [-128, 0], [127, 1]], dtype=np.int8)
    assert_allclose(Design.from_dense(x).to_dense(), x.astype(float))
    assert_allclose(Design.from_sparse(sp.csc_array(x)).to_dense(), x.astype(float))
    assert_allclose(Design.from_dense(x[:, 1:].astype(bool)).to_dense(), [[1], [0], [1]])


@given(
    st.integers(1, 30),
    st.integers(0, 6),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None)
def test_sparse_is_dense(n: int, p: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, (n, p)) * (rng.random((n, p)) < 0.5)
    dense, sparse = Design.from_dense(x), Design.from_sparse(sp.csr_array(x))
    assert np.array_equal(dense.to_dense(), x)
    assert np.array_equal(sparse.to_dense(), x)


def test_a_design_without_columns_is_legal() -> None:
    design = Design.from_dense(np.zeros((4, 0)))
    assert design.to_dense().shape == (4, 0)
    assert design.dot(np.zeros(0)).tolist() == [0, 0, 0, 0]
    assert Design.from_columns({}, n_rows=3).n_features == 0


def test_keys_are_exact() -> None:
    keys = [2**53, 2**53 + 1, "age"]
    design = Design.from_dense(np.eye(3), keys=keys)
    assert design.keys == (2**53, 2**53 + 1, "age")
    assert design.names == ("9007199254740992", "9007199254740993", "age")
    assert design.index_of("9007199254740993") == 1


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Design.from_dense([1.0, 2.0]), ["two dimensions", "(2,)", "reshape"]),
        (lambda: Design.from_dense([["a", 1]]), ["row 0, column 0", "'a'"]),
        (lambda: Design.from_dense([[1.0], [np.nan]]), ["'x0'", "row 1", "nan", "drop or impute"]),
        (lambda: Design.from_dense([[1.0, np.inf]], ["a", "b"]), ["'b'", "infinity", "row 0"]),
        (lambda: Design.from_dense([[1j]]), ["numeric", "complex"]),
        (lambda: Design.from_dense(np.eye(2), ["a", "a"]), ["two covariates", "'a'", "rename"]),
        (lambda: Design.from_dense(np.eye(2), ["a"]), ["2 columns", "1 name."]),
        (
            lambda: Design.from_sparse(sp.coo_array(([1, 2.0], ([3, 3], [0, 0])), shape=(5, 2))),
            ["row 3", "column 0", "sum_duplicates"],
        ),
        (
            lambda: Design.from_sparse(sp.csc_array(([1.0, np.nan], ([0, 4], [1, 1])))),
            ["'x1'", "row 4", "nan"],
        ),
        (
            lambda: Design.from_columns({"a": np.zeros(2), "b": np.zeros(3)}),
            ["'b'", "2 rows", "(3,)"],
        ),
        (
            lambda: Design.from_dense(np.eye(2), ["age", "sex"]).index_of("agee"),
            ["'agee'", "'age'"],
        ),
        (
            lambda: Design.stack([Design.from_dense(np.eye(2)), Design.from_dense(np.eye(3))]),
            ["2, 3"],
        ),
    ],
)
def test_errors_name_the_place_and_the_remedy(build, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        build()
    for word in words:
        assert word in str(caught.value)


def test_repeated_entries_in_compressed_columns_are_found() -> None:
    x = sp.csc_array((np.ones(3), np.array([0, 2, 2]), np.array([0, 1, 3])), shape=(3, 2))
    with pytest.raises(InputError, match=r"row 2, column 1"):
        Design.from_sparse(x)


def test_input_is_not_changed_and_explicit_zeros_vanish() -> None:
    x = sp.csc_array(
        (np.array([1.0, 0.0, 1.0]), np.array([0, 1, 2]), np.array([0, 3])), shape=(3, 1)
    )
    data, indices = x.data.copy(), x.indices.copy()
    design = Design.from_sparse(x)
    assert np.array_equal(x.data, data)
    assert np.array_equal(x.indices, indices)
    assert design.is_binary[0]
    assert design.to_dense().ravel().tolist() == [1, 0, 1]


def test_masked_values_are_missing() -> None:
    x = np.ma.masked_array([[1.0], [2.0], [3.0]], mask=[[0], [1], [0]])
    with pytest.raises(InputError, match=r"1 of 3 rows are masked \(first: row 1\)"):
        Design.from_dense(x)
    with pytest.raises(InputError, match="`time` must not have missing"):
        as_numbers(x[:, 0], "time", 3, Places())
    with pytest.raises(InputError, match="`strata` must not have missing"):
        as_codes(x[:, 0], "strata", 3, Places())
    assert Design.from_dense(np.ma.masked_array(np.eye(2))).n_features == 2


def test_sparse_vectors_are_no_matrices() -> None:
    with pytest.raises(InputError, match="two dimensions"):
        Design.from_sparse(sp.coo_array(np.array([1.0, 2.0])))


@pytest.mark.parametrize("dtype", ["float32", ">f8", "longdouble", ">i4", "uint8", "int64"])
@pytest.mark.parametrize("layout", ["csc", "csr", "coo", "dia"])
def test_any_numeric_type_and_byte_order(dtype: str, layout: str) -> None:
    x = np.array([[0, 3, 1], [2, 0, 0], [0, 0, 1], [5, 7, 0]])
    for index in (np.int32, np.int64):
        sparse = sp.csc_array(x).asformat(layout)
        if layout in ("csc", "csr"):
            sparse.indices, sparse.indptr = (
                sparse.indices.astype(index),
                sparse.indptr.astype(index),
            )
        sparse.data = sparse.data.astype(dtype)
        for flag in (True, False):
            sparse.data.flags.writeable = flag
            assert (Design.from_sparse(sparse).to_dense() == x).all()
    dense = np.asfortranarray(x.astype(dtype))[::-1][::-1]
    assert (Design.from_dense(dense).to_dense() == x).all()


def test_a_design_is_called_by_its_size():
    """One of ten thousand columns is not to be printed whole."""
    design = Design.from_dense(np.eye(3))
    assert repr(design).startswith("<Design: 3 rows, 3 columns, ")
    assert len(repr(Design.from_dense(np.eye(50)))) < 60


@pytest.mark.parametrize("shape", [(50, 1), (1, 50), (9000, 3)])
def test_a_table_stays_as_it_was_given(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).normal(size=shape)
    before = x.copy()
    design = Design.from_dense(x)
    assert np.array_equal(x, before)
    assert np.allclose(design.to_dense(), x)
    by_columns = Design.from_dense(np.asfortranarray(x))
    assert np.array_equal(design.stored(), by_columns.stored())
