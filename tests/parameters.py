"""Parameters of tests of which `make test` takes the first few, and `make test-all` every one."""

from collections.abc import Iterable
from typing import Any

import pytest


def rest_is_slow(values: Iterable[Any], n_quick: int) -> list[Any]:
    """The values, all but the first `n_quick` marked `slow`; a tuple has several parameters."""
    return [
        value if number < n_quick else _slow(*value if isinstance(value, tuple) else (value,))
        for number, value in enumerate(values)
    ]


def _slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)
