r"""The file of a `Design`: a header and arrays that are mapped into memory, not read.

::

    prefix   magic (16 bytes), version (uint32), CRC-32 of the header (uint32), its length and that
             of the whole file (uint64), all little-endian
    header   JSON: names and keys of the columns, and of each array its type, shape, place, CRC-32
    arrays   the first at a multiple of 4096 bytes, each at a multiple of 64 from there

The prefix is written last, into a file with a temporary name: what a killed build leaves behind
does not open.
"""

import json
import mmap
import os
import struct
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Factors, Features
from riskset._version import __version__
from riskset.data.column_storage import BinaryColumns, DenseColumns, StoredColumns, ValuedColumns
from riskset.data.writers import check_target, replacing

__all__ = [
    "Contents",
    "Draft",
    "Section",
    "as_arrays",
    "drafting",
    "head_of",
    "is_design_file",
    "read_contents",
    "write_contents",
]

SUFFIX = ".rsd"
MAGIC = b"riskset design\r\n"  # a transfer as text changes the end of the line
VERSION = 1
PREFIX = struct.Struct("<16sIIQQ")
PAGE, ALIGNED = 4096, 64
STEP = 1 << 24
"""Bytes that are read or written at a time."""
KINDS: dict[str, tuple[type[StoredColumns], tuple[str, ...], tuple[str, ...]]] = {
    "binary": (BinaryColumns, ("columns", "block_ptr", "row"), ("shift",)),
    "valued": (ValuedColumns, ("columns", "block_ptr", "row", "value"), ("shift",)),
    "dense": (DenseColumns, ("columns", "blocks"), ("n_rows",)),
}
"""Of each kind of part: its class, its arrays, its numbers."""


class Section(NamedTuple):
    """Type and shape of an array of the file."""

    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: AnyArray) -> "Section":
        """As an array has them."""
        return cls(array.dtype.str, array.shape)

    @property
    def nbytes(self) -> int:
        """Bytes it takes."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Contents:
    """What the file of a design holds: the fields of a `Design`, and where they come from.

    `row_keys` (n_rows,) identify the rows, so that a table of outcomes can be compared with them.
    `about` is what JSON can hold of the source of the covariates. `checksum` is that of the header,
    and so of everything; 0 before there is a file. Files written before designs had factors have
    none.
    """

    n_rows: int
    names: tuple[str, ...]
    keys: tuple[int | str, ...]
    center: Features
    scale: Features
    parts: tuple[StoredColumns, ...]
    row_keys: AnyArray | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    checksum: int = 0
    factors: Factors = ()


# -------------------------------------------------------------------------------------- writing


def write_contents(path: Path, contents: Contents) -> None:
    """Write what is in memory; raises `InputError` if the path cannot be written."""
    keys = as_arrays(contents.row_keys, contents.n_rows)
    arrays = {"center": contents.center, "scale": contents.scale, **keys}
    parts = []
    for k, part in enumerate(contents.parts):
        kind = next(name for name, (type_, *_) in KINDS.items() if isinstance(part, type_))
        _, names, numbers = KINDS[kind]
        arrays |= {f"{k}.{name}": np.ascontiguousarray(getattr(part, name)) for name in names}
        parts.append({"kind": kind, **{name: getattr(part, name) for name in numbers}})
    head = head_of(contents.n_rows, contents.names, contents.keys, parts, contents.about)
    if contents.factors:
        head["factors"] = [list(factor) for factor in contents.factors]
    with drafting(path, head, {name: Section.of(a) for name, a in arrays.items()}) as draft:
        for name, array in arrays.items():
            draft.write(name, 0, array)


def head_of(
    n_rows: int,
    names: Sequence[str],
    keys: Sequence[int | str],
    parts: Sequence[Mapping[str, object]],
    about: Mapping[str, Any],
) -> dict[str, object]:
    """The header but for the arrays."""
    head: dict[str, object] = {
        "riskset": __version__,
        "n_rows": n_rows,
        "keys": list(keys),
        "parts": list(parts),
        "about": dict(about),
    }
    if list(names) != [str(key) for key in keys]:
        head["names"] = list(names)
    return head


def as_arrays(row_keys: AnyArray | None, n_rows: int) -> dict[str, AnyArray]:
    """Keys as arrays of numbers: text as the bytes of all keys and where each ends."""
    if row_keys is None:
        return {}
    row_keys = np.asarray(row_keys)
    if row_keys.shape != (n_rows,) or row_keys.dtype.kind not in "iuOU":
        raise InputError(
            f"`row_keys` must hold one whole number or text for each of the {n_rows:,} rows, but "
            f"its shape is {row_keys.shape} and its type {row_keys.dtype}."
        )
    if row_keys.dtype.kind in "iu":
        return {"row_keys": row_keys.astype(np.int64)}
    texts = [str(key).encode() for key in row_keys]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return {"row_text": np.frombuffer(b"".join(texts), np.uint8), "row_ends": ends}


class Draft:
    """A file that is being written; its arrays may be filled in any order, by the piece."""

    def __init__(
        self, stream: BinaryIO, head: dict[str, object], sections: Mapping[str, Section]
    ) -> None:
        self._stream, self._head = stream, head
        self._places: dict[str, int] = {}
        end = 0
        for name, section in sections.items():
            self._places[name] = end
            end = _aligned(end + section.nbytes, ALIGNED)
        self._sections = dict(sections)
        self._start = _aligned(PREFIX.size + len(self._header({})), PAGE)
        self._size = self._start + end
        stream.truncate(self._size)

    def _header(self, checksums: Mapping[str, int]) -> bytes:
        arrays = {
            name: {
                "dtype": section.dtype,
                "shape": list(section.shape),
                "offset": self._places[name],
                "crc32": f"{checksums.get(name, 0):08x}",
            }
            for name, section in self._sections.items()
        }
        return json.dumps({**self._head, "arrays": arrays}, ensure_ascii=False).encode()

    def write(self, name: str, first: int, values: AnyArray) -> None:
        """Write elements of an array from number `first` on, counted along its memory."""
        section = self._sections[name]
        dtype = np.dtype(section.dtype)
        self._stream.seek(self._start + self._places[name] + first * dtype.itemsize)
        data = np.ascontiguousarray(values, dtype).reshape(-1).view(np.uint8)
        for begin in range(0, data.size, STEP):
            self._stream.write(data[begin : begin + STEP].data)

    def read(self, name: str, first: int, count: int) -> AnyArray:
        """Elements that were written."""
        dtype = np.dtype(self._sections[name].dtype)
        self._stream.seek(self._start + self._places[name] + first * dtype.itemsize)
        return np.frombuffer(self._stream.read(count * dtype.itemsize), dtype)

    def finish(self) -> None:
        """Make it a file that opens, on disk before its prefix is."""
        self._stream.flush()
        checksums = {
            name: _checksum(self._stream, self._start + self._places[name], section.nbytes)
            for name, section in self._sections.items()
        }
        header = self._header(checksums)
        self._stream.seek(PREFIX.size)
        self._stream.write(header)
        _to_disk(self._stream)
        self._stream.seek(0)
        prefix = (MAGIC, VERSION, zlib.crc32(header), len(header), self._size)
        self._stream.write(PREFIX.pack(*prefix))
        _to_disk(self._stream)


@contextmanager
def drafting(
    path: Path, head: dict[str, object], sections: Mapping[str, Section]
) -> Iterator[Draft]:
    """A draft of the file `path`, which appears when the block ends well."""
    check_target(path)
    with replacing(path) as (temporary,), temporary.open("w+b") as stream:
        draft = Draft(stream, head, sections)
        yield draft
        draft.finish()


def _aligned(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _to_disk(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _checksum(stream: BinaryIO, start: int, size: int) -> int:
    """CRC-32 of bytes of a file; the checksum of a file cut short is another one."""
    stream.seek(start)
    crc = 0
    while size and (piece := stream.read(min(STEP, size))):
        crc, size = zlib.crc32(piece, crc), size - len(piece)
    return crc


# -------------------------------------------------------------------------------------- reading


def is_design_file(path: Path) -> bool:
    """Whether a path is, or by its name should be, the file of a design."""
    if path.suffix.lower() == SUFFIX:
        return True
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def read_contents(path: Path, *, verify: bool = True) -> Contents:
    """Open a file; its arrays are pages of the file, read when they are used.

    To `verify` compares all bytes with their checksums, which reads the file once. An `InputError`
    if the file is absent, incomplete, damaged, another kind of file or of a later version.
    """
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder.", hint="name a file in it.")
    if not path.exists():
        raise InputError(
            f"there is no file {str(path)!r}.",
            hint="correct the path, or build the file: see riskset.Design.save and from_blocks.",
        )
    with path.open("rb") as stream:
        checksum, head, start = _read_header(stream, path)
        if verify:
            for name, about in head["arrays"].items():
                size = Section(about["dtype"], tuple(about["shape"])).nbytes
                crc = _checksum(stream, start + about["offset"], size)
                if f"{crc:08x}" != about["crc32"]:
                    _complain_damaged(path, f"the bytes of its array {name!r} have changed")
        pages = _mapped(stream)

    def array(name: str) -> AnyArray:
        about = head["arrays"][name]
        count = int(np.prod(about["shape"], dtype=np.int64))
        place = start + about["offset"]
        if count == 0:
            return np.zeros(about["shape"], about["dtype"])
        return np.frombuffer(pages, about["dtype"], count, place).reshape(about["shape"])

    parts = []
    for k, about in enumerate(head["parts"]):
        type_, names, numbers = KINDS[about["kind"]]
        fields = {name: array(f"{k}.{name}") for name in names}
        parts.append(type_(**fields, **{name: about[name] for name in numbers}))
    keys = tuple(head["keys"])
    return Contents(
        head["n_rows"],
        tuple(head.get("names") or map(str, keys)),
        keys,
        array("center").copy(),
        array("scale").copy(),
        tuple(parts),
        _row_keys(head["arrays"], array),
        head["about"],
        checksum,
        tuple(tuple(factor) for factor in head.get("factors", ())),
    )


def _row_keys(arrays: Mapping[str, object], array: Any) -> AnyArray | None:
    if "row_keys" in arrays:
        return np.array(array("row_keys"))
    if "row_text" not in arrays:
        return None
    data, ends = array("row_text").tobytes(), array("row_ends")
    borders = [0, *ends.tolist()]
    texts = [data[a:b].decode() for a, b in zip(borders[:-1], borders[1:], strict=True)]
    return np.array(texts, dtype=object)


def _read_header(stream: BinaryIO, path: Path) -> tuple[int, dict[str, Any], int]:
    """Checksum of the header, the header, and where the arrays start."""
    prefix = stream.read(PREFIX.size)
    size = os.fstat(stream.fileno()).st_size
    if prefix and not prefix.strip(b"\0"):
        raise InputError(
            f"{str(path)!r} is incomplete: the run that wrote it did not end.",
            hint="delete it, and build it again.",
        )
    if not prefix.startswith(MAGIC[: len(prefix)]) or not prefix:
        raise InputError(
            f"{str(path)!r} is not the file of a design.",
            hint="name a file that riskset.Design.save or from_blocks wrote, or "
            "riskset.read_dataset with `design_file`.",
        )
    if len(prefix) < PREFIX.size:
        _complain_short(path, size, None)
    _, version, checksum, length, whole = PREFIX.unpack(prefix)
    if version > VERSION:
        raise InputError(
            f"{str(path)!r} is of format {version}, but riskset {__version__} reads formats up to "
            f"{VERSION}.",
            hint="upgrade riskset, or build the file again with this version.",
        )
    header = stream.read(min(length, size))
    if size < whole:
        _complain_short(path, size, whole)
    if size > whole or len(header) < length or zlib.crc32(header) != checksum:
        _complain_damaged(path, "its header does not agree with its checksum")
    return checksum, json.loads(header), _aligned(PREFIX.size + length, PAGE)


def _complain_short(path: Path, size: int, whole: int | None) -> NoReturn:
    should = "" if whole is None else f" of {whole:,}"
    raise InputError(
        f"{str(path)!r} is cut short: it has {size:,}{should} bytes.",
        hint="copy it again, or build it again.",
    )


def _complain_damaged(path: Path, why: str) -> NoReturn:
    raise InputError(f"{str(path)!r} is damaged: {why}.", hint="copy it again, or build it again.")


def _mapped(stream: BinaryIO) -> mmap.mmap:
    """The pages of a file, shared by all processes that map it while none of them writes.

    They look writable, because compiled kernels know arrays that are read only as another type and
    would be compiled anew; what would be written stays in the process. No memory is set aside for
    that, or a file larger than memory could not be mapped.
    """
    if sys.platform == "win32":
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    reserve_nothing = 0x4000 if sys.platform == "linux" else 0  # MAP_NORESERVE, new in Python 3.13
    flags, prot = mmap.MAP_PRIVATE | reserve_nothing, mmap.PROT_READ | mmap.PROT_WRITE
    return mmap.mmap(stream.fileno(), 0, flags=flags, prot=prot)
