"""Compiled kernels on disk, so that only the first run of a new environment compiles.

numba finds the folder: beside the sources, or the user's cache folder if that cannot be written, or
``NUMBA_CACHE_DIR``. It also stores a kernel and restores it. This module gives each compiled kernel
a file of its own, whose name follows from all that it depends on. numba keeps an index of a
kernel's files instead, which several processes at once read, change and write, and it knows of no
source but the one of the kernel itself.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import serialize
from numba.core.caching import FunctionCache

from riskset._version import __version__

__all__ = ["NOT_KEPT", "KernelCache", "KernelFiles", "sources_digest"]

SUFFIX = ".kernel"
DIGEST_BYTES = hashlib.sha256().digest_size
IMPORT = re.compile(r"^(?:from|import) (riskset\.(?:kernels\.\w+|_types))", re.MULTILINE)
FROM_PACKAGE = re.compile(r"^from riskset\.kernels import (.+)$", re.MULTILINE)

NOT_KEPT: list[OSError] = []
"""Why compiled kernels of this process could not be kept."""


class KernelFiles:
    """The compiled forms of one kernel: files ``BASE.SOURCES.KEY.kernel`` in a folder.

    A file appears whole under its name, and begins with a checksum. So processes that compile the
    same kernel write the same file, and a damaged one is compiled again.
    """

    def __init__(self, folder: str, base: str, sources: str) -> None:
        self._folder = Path(folder)
        self._base = base
        self._start = f"{base}.{sources[:12]}."

    def load(self, key: object) -> Any:
        """What was saved under a key; None if there is nothing, or nothing whole."""
        try:
            stored = self._path(key).read_bytes()
        except OSError:
            return None
        check, data = stored[:DIGEST_BYTES], stored[DIGEST_BYTES:]
        if hashlib.sha256(data).digest() != check:
            return None
        return pickle.loads(data)

    def save(self, key: object, content: object) -> None:
        """Keep something under a key, if the disk has room; forms of other sources are deleted."""
        path = self._path(key)
        data = serialize.dumps(content)  # type: ignore[no-untyped-call]
        temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}")
        try:  # what was compiled works without being kept
            try:
                temporary.write_bytes(hashlib.sha256(data).digest() + data)
                os.replace(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as fault:
            NOT_KEPT.append(fault)
            return
        with contextlib.suppress(OSError):
            for other in self._folder.glob(f"{self._base}.*{SUFFIX}"):
                if not other.name.startswith(self._start):
                    other.unlink(missing_ok=True)

    def flush(self) -> None:
        """Delete everything."""
        for path in self._folder.glob(f"{self._base}.*{SUFFIX}"):
            path.unlink(missing_ok=True)

    def _path(self, key: object) -> Path:
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:24]
        return self._folder / f"{self._start}{name}{SUFFIX}"


class KernelCache(FunctionCache):
    """numba's cache of a function, in `KernelFiles`."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        path = Path(function.__code__.co_filename)
        self._cache_file = KernelFiles(  # type: ignore[assignment]
            self._cache_path, self._impl.filename_base, sources_digest(path)
        )


@functools.cache
def sources_digest(path: Path) -> str:
    """Identifies a source file with all kernels that it imports, numba and riskset."""
    texts = {path: path.read_text("utf-8")}
    left = [path]
    while left:
        for found in _imported(texts[left.pop()]):
            if found not in texts:
                texts[found] = found.read_text("utf-8")
                left.append(found)
    whole = hashlib.sha256(f"{numba.__version__} {__version__}".encode())
    for each in sorted(texts):
        whole.update(texts[each].encode())
    return whole.hexdigest()


def _imported(text: str) -> set[Path]:
    root = Path(__file__).parents[1]
    names = [name.removeprefix("riskset.") for name in IMPORT.findall(text)]
    for several in FROM_PACKAGE.findall(text):
        names += [f"kernels.{name.split()[0]}" for name in several.split(",")]
    files = (root.joinpath(*name.split(".")).with_suffix(".py") for name in names)
    return {file for file in files if file.exists()}
