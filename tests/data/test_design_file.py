"""A design in a file is the design in memory to the last bit, or an error that names the file."""

import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import riskset as rs
from riskset.data.column_storage import BinaryColumns, DenseColumns, ValuedColumns
from riskset.data.design_map import PREFIX, VERSION

N = 9_000


def matrix(n: int = N) -> NDArray[np.float64]:
    """Columns of every kind: of ones, of values, dense, of zeros, extreme, in a few blocks only."""
    rng = np.random.default_rng(7)
    x = (rng.random((n, 9)) < 0.1).astype(np.float64)
    x[:, 1] *= rng.normal(size=n)
    x[:, 3] = rng.normal(size=n) * 1e-3 + 70
    x[:, 4] *= 0.1
    x[:, 5] = rng.exponential(size=n) * (rng.random(n) < 0.6)
    x[4096:, 6] = 0
    x[:, 7] = 0
    x[:4096, 8] *= 1e100
    return x


def assert_same(a: rs.Design, b: rs.Design) -> None:
    assert (a.n_rows, a.names, a.keys) == (b.n_rows, b.names, b.keys)
    assert a.center.tobytes() == b.center.tobytes()
    assert a.scale.tobytes() == b.scale.tobytes()
    assert [type(part) for part in a.parts] == [type(part) for part in b.parts]
    for one, other in zip(a.parts, b.parts, strict=True):
        for name, value in vars(one).items():
            if isinstance(value, np.ndarray):
                found = getattr(other, name)
                assert (value.dtype, value.shape) == (found.dtype, found.shape)
                assert value.tobytes() == found.tobytes(), name
            else:
                assert value == getattr(other, name)


def test_saved_and_opened(tmp_path: Path) -> None:
    design = rs.Design.from_sparse(sp.csc_array(matrix()))
    assert {type(part) for part in design.parts} == {BinaryColumns, ValuedColumns, DenseColumns}
    design.save(tmp_path / "x.rsd")
    assert_same(rs.Design.open(tmp_path / "x.rsd"), design)


@pytest.mark.parametrize("cuts", [[N], [0, 1, 4096, 4097, 8192, N], [5000, 5001, N]])
def test_built_from_blocks_of_any_height(tmp_path: Path, cuts: list[int]) -> None:
    x = matrix()
    pieces = [x[a:b] for a, b in zip([0, *cuts[:-1]], cuts, strict=True)]
    blocks = (sp.csr_array(piece) if k % 2 else piece for k, piece in enumerate(pieces))
    built = rs.Design.from_blocks(blocks, tmp_path / "x.rsd", keys=[2**60 + j for j in range(9)])
    expected = rs.Design.from_sparse(sp.csc_array(x), keys=[2**60 + j for j in range(9)])
    assert_same(built, expected)
    assert os.listdir(tmp_path) == ["x.rsd"]


@pytest.mark.parametrize("duplicates", ["error", "sum", "max"])
@pytest.mark.parametrize("text", [False, True])
def test_built_from_a_long_table(tmp_path: Path, duplicates: str, text: bool) -> None:
    rng = np.random.default_rng(3)
    row, column = np.nonzero(matrix())
    value = matrix()[row, column]
    if duplicates != "error":  # among them some of a column of ones
        again = rng.integers(0, row.size, 300)
        row, column = np.append(row, row[again]), np.append(column, column[again])
        value = np.append(value, np.where(column[-300:] == 2, 1.0, value[again] * 3))
        value[5] = 0.0
    mixed = rng.permutation(row.size)
    key = row[mixed] * 3 + 2**55
    outcomes = {
        "rowId": np.arange(N) * 3 + 2**55,
        "time": rng.exponential(size=N),
        "y": rng.integers(0, 2, N),
        "age": rng.normal(size=N),
    }
    long = {"rowId": key, "covariateId": column[mixed] + 2**54, "covariateValue": value[mixed]}
    if text:
        outcomes["rowId"] = np.array([f"ü{key}" for key in outcomes["rowId"]])
        long["rowId"] = np.array([f"ü{key}" for key in key])
    pa.parquet.write_table(pa.table(outcomes), tmp_path / "o.parquet")
    pa.parquet.write_table(pa.table(long), tmp_path / "c.parquet")
    files = {"path": tmp_path / "o.parquet", "covariates": tmp_path / "c.parquet"}
    memory = rs.read_dataset(**files, duplicates=duplicates)
    built = rs.read_dataset(**files, duplicates=duplicates, design_file=tmp_path / "x.rsd")
    again = rs.read_dataset(tmp_path / "o.parquet", covariates=tmp_path / "x.rsd")
    for data in (built, again):
        assert_same(data.design, memory.design)
        assert data.schema == memory.schema
        assert data.n_dropped == memory.n_dropped
        assert data.notes == memory.notes
    assert bool(memory.n_dropped) == (duplicates != "error")
    if duplicates == "error":
        fits = [rs.Cox(rs.L1(2.0)).fit(data) for data in (memory, again)]
        assert fits[0].coef_.tobytes() == fits[1].coef_.tobytes()
        assert np.count_nonzero(fits[0].coef_) > 3


def test_entries_that_repeat_or_are_unknown_are_told_as_in_memory(tmp_path: Path) -> None:
    outcomes = pa.table({"rowId": [7, 8, 9], "time": [1, 2, 3], "y": [1, 1, 0]})
    pa.parquet.write_table(outcomes, tmp_path / "o.parquet")
    for rows in ([8, 9, 9, 7, 8, 7], [7, 8, 10, 9, 7, 11]):
        long = {"rowId": rows, "covariateId": [5, 5, 5, 4, 4, 4]}
        pa.parquet.write_table(pa.table(long), tmp_path / "c.parquet")
        told = []
        for file in (None, tmp_path / "x.rsd"):
            with pytest.raises(rs.InputError) as error:
                rs.read_dataset(
                    tmp_path / "o.parquet", covariates=tmp_path / "c.parquet", design_file=file
                )
            told.append(str(error.value))
        assert told[0] == told[1]
        assert not (tmp_path / "x.rsd").exists()


def test_rows_of_another_table_are_refused(tmp_path: Path) -> None:
    design = rs.Design.from_dense([[1.0], [0.0], [2.0]])
    design.save(tmp_path / "x.rsd", row_keys=np.array([1, 2, 3]))
    design.save(tmp_path / "anonymous.rsd")
    for keys, file, words in (
        ([1, 3, 2], "x.rsd", r"2 of 3 differ \(first: data row 2, rowId 3, where the file has 2"),
        ([1, 2], "x.rsd", r"x.rsd has 3 rows, but o.parquet has 2"),
        ([1, 2, 3], "anonymous.rsd", r"anonymous.rsd does not identify its rows"),
    ):
        table = {"rowId": keys, "time": [1.0] * len(keys), "y": [1] * len(keys)}
        pa.parquet.write_table(pa.table(table), tmp_path / "o.parquet")
        with pytest.raises(rs.InputError, match=words):
            rs.read_dataset(tmp_path / "o.parquet", covariates=tmp_path / file)


# ------------------------------------------------------------------ files that do not open


def _flip(place: int) -> Callable[[bytearray], bytes]:
    def change(data: bytearray) -> bytes:
        data[place] ^= 1
        return bytes(data)

    return change


def _newer(data: bytearray) -> bytes:
    magic, version, *rest = PREFIX.unpack(data[: PREFIX.size])
    assert version == VERSION
    return PREFIX.pack(magic, version + 1, *rest) + bytes(data[PREFIX.size :])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-1], r"is cut short: it has [\d,]+ of [\d,]+ bytes"),
        (lambda data: data[:20], r"is cut short: it has 20 bytes"),
        (lambda data: b"", "is not the file of a design"),
        (lambda data: data + b"x", "is damaged: its header"),
        (_flip(60), "is damaged: its header does not agree"),
        (_flip(-60), r"is damaged: the bytes of its array '\d\.\w+' have changed"),
        (lambda data: b"PAR1" + data[4:], "is not the file of a design"),
        (lambda data: bytes(PREFIX.size) + data[PREFIX.size :], "is incomplete"),
        (_newer, r"is of format 2, but riskset .* reads formats up to 1.\nHint: upgrade"),
    ],
    ids=["last byte", "prefix", "empty", "longer", "header", "array", "other", "killed", "newer"],
)
def test_what_is_not_whole_does_not_open(
    tmp_path: Path, change: Callable[[bytearray], bytes], words: str
) -> None:
    path = tmp_path / "cohort.rsd"
    rs.Design.from_dense(matrix(200)).save(path)
    path.write_bytes(change(bytearray(path.read_bytes())))
    with pytest.raises(rs.InputError, match=words) as error:
        rs.Design.open(path)
    assert str(path) in str(error.value)
    assert "\nHint: " in str(error.value)


def test_the_header_is_what_the_format_says(tmp_path: Path) -> None:
    """Read by hand, as a program that knows only the description of the format would."""
    x = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    rs.Design.from_dense(x, names=["a", "b"]).save(tmp_path / "x.rsd")
    data = (tmp_path / "x.rsd").read_bytes()
    magic, version, crc, length, size = struct.unpack("<16sIIQQ", data[:40])
    assert (magic, version, size) == (b"riskset design\r\n", 1, len(data))
    header = data[40 : 40 + length]
    assert zlib.crc32(header) == crc
    head = json.loads(header)
    row = head["arrays"]["0.row"]
    place = 4096 + row["offset"]  # the header is shorter than a page
    assert np.frombuffer(data[place : place + 6], "<u2").tolist() == [1, 0, 2]
    assert zlib.crc32(data[place : place + 6]) == int(row["crc32"], 16)


def test_a_killed_build_leaves_nothing_that_opens(tmp_path: Path) -> None:
    """Killed by SIGKILL, with all but the prefix written."""
    program = f"""
import os, signal
import numpy as np
import riskset as rs
from riskset.data import design_map
real = design_map._to_disk
def killed(stream):
    real(stream)
    os.kill(os.getpid(), signal.SIGKILL)
design_map._to_disk = killed
rs.Design.from_blocks([np.eye(300)], {str(tmp_path / "x.rsd")!r})
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, env=os.environ)
    assert ended.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name != "x.rsd"
    with pytest.raises(rs.InputError, match="is incomplete: the run that wrote it did not end"):
        rs.Design.open(left)


def test_a_failed_build_leaves_the_old_file(tmp_path: Path) -> None:
    rs.Design.from_dense(np.eye(3)).save(tmp_path / "x.rsd")
    for bad, words in (
        ([np.eye(2), np.ones((1, 3))], "block 1 has 3 columns, but block 0 has 2"),
        ([np.eye(2), [[1, np.nan]]], r"block 1 are missing.*row 2 of all, column 'x1', value nan"),
        ([], "there are no blocks"),
        ([np.eye(2), [["a", "b"]]], "X must be numeric, but row 0, column 0 has 'a'"),
    ):
        with pytest.raises(rs.InputError, match=words):
            rs.Design.from_blocks(iter(bad), tmp_path / "x.rsd")
        assert rs.Design.open(tmp_path / "x.rsd").n_rows == 3
        assert os.listdir(tmp_path) == ["x.rsd"]


# ------------------------------------------------------------------ what it costs


def test_a_pickled_design_is_its_path(tmp_path: Path) -> None:
    design = rs.Design.from_blocks([matrix()], tmp_path / "x.rsd")
    pickled = pickle.dumps(design)
    assert len(pickled) < 500
    assert_same(pickle.loads(pickled), design)
    rs.Design.from_dense(np.eye(3)).save(tmp_path / "x.rsd")
    with pytest.raises(rs.InputError, match="holds another design than when"):
        pickle.loads(pickled)


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """NumPy tells tracemalloc what it allocates; 100 columns are 25 MB of entries here."""
    rng = np.random.default_rng(1)

    def blocks(n: int) -> Iterator[sp.csr_array]:
        for _ in range(n):
            x = (rng.random((4096, 100)) < 0.2) * rng.normal(size=(4096, 100))
            x[:, :50] = x[:, :50] != 0
            yield sp.csr_array(x)

    peaks = []
    for n in (4, 40):
        tracemalloc.start()
        design = rs.Design.from_blocks(blocks(n), tmp_path / f"{n}.rsd")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert design.nbytes > 15e6
    assert peaks[1] < peaks[0] + 2e6
    runtime = rs.Cox()._checked_runtime()
    r = rng.normal(size=design.n_rows)
    tracemalloc.start()
    square = design.cross(r, runtime=runtime, power=2)
    size = design.magnitude(np.ones(100), runtime=runtime)
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()
    x = design.stored()
    np.testing.assert_allclose(square, r @ x**2, atol=1e-9)
    np.testing.assert_allclose(size, np.abs(x).sum(axis=1), atol=1e-12)
