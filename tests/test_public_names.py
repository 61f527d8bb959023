"""The public names: sorted, complete, importable, documented, and the same in every list."""

import ast
import sys
from pathlib import Path

import pytest

import riskset as rs

INIT = Path(rs.__file__).read_text("utf-8")


def test_all_is_sorted_and_matches_the_homes() -> None:
    assert rs.__all__ == sorted(rs._HOMES)
    assert list(rs._HOMES) == sorted(rs._HOMES)
    assert dir(rs) == rs.__all__


def test_type_checkers_see_the_same_names() -> None:
    block = next(node for node in ast.parse(INIT).body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == rs._HOMES


@pytest.mark.parametrize("name", rs.__all__)
def test_name_is_there_and_documented(name: str) -> None:
    value = getattr(rs, name)
    assert name in sys.modules[rs._HOMES[name]].__all__
    assert value.__doc__


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Coxx'"):
        _ = rs.Coxx
