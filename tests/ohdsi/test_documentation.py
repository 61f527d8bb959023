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
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        test = doctest.DocTestParser().get_doctest(code, {}, PAGE.name, None, None)
        failed = doctest.DocTestRunner(optionflags=flags).run(test).failed
        assert not failed, capsys.readouterr().out
