"""The code of docs/ohdsi.md runs."""

import doctest
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "ohdsi.md"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("duckcdm")
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        test = doctest.DocTestParser().get_doctest(code, names, PAGE.name, None, None)
        failed = doctest.DocTestRunner(optionflags=flags).run(test, clear_globs=False).failed
        names.update(test.globs)
        assert not failed, capsys.readouterr().out
