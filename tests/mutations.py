"""Damaged versions of documents and files, for tests of what reads them."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

VALUES = (None, True, -1, 0, 3, 10**30, 0.5, -1e300, "", "x", "inf", [], {}, [[]], {"x": 1})
"""What a value is replaced by."""


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all values inside a document, containers too."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def _parent(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def mutated(document: Any) -> Iterator[tuple[str, Any]]:
    """Copies of a document with one value replaced, deleted, doubled or swapped with the next."""
    for path in places(document):
        name = "/".join(map(str, path))
        for value in VALUES:
            changed = copy.deepcopy(document)
            _parent(changed, path)[path[-1]] = value
            yield f"{name} = {value!r}", changed
        changed = copy.deepcopy(document)
        del _parent(changed, path)[path[-1]]
        yield f"{name} deleted", changed
        siblings = _parent(document, path)
        if isinstance(siblings, list):
            changed = copy.deepcopy(document)
            _parent(changed, path).insert(path[-1], copy.deepcopy(siblings[path[-1]]))
            yield f"{name} doubled", changed
        keys = list(siblings) if isinstance(siblings, dict) else list(range(len(siblings)))
        if path[-1] != keys[-1]:
            changed = copy.deepcopy(document)
            both, after = _parent(changed, path), keys[keys.index(path[-1]) + 1]
            both[path[-1]], both[after] = both[after], both[path[-1]]
            yield f"{name} swapped with {after}", changed


def flipped(content: bytes, n: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Copies of a file with one byte changed, cut off or put in."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        place, byte = int(rng.integers(len(content))), int(rng.integers(256))
        yield (
            f"byte {place} = {byte}",
            content[:place] + bytes([byte]) + content[place + 1 :],
        )
        yield f"cut at byte {place}", content[:place]
        yield f"byte {byte} put in at {place}", content[:place] + bytes([byte]) + content[place:]
