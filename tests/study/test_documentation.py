"""The documentation of studies names every key and every column, and its examples run."""

import re
from pathlib import Path
from typing import get_args

import pytest

import riskset as rs
from riskset.study.examples import Example
from riskset.study.reference import keys_in_markdown, tables_in_markdown

DOCS = Path(__file__).parents[2] / "docs"


def test_every_key_and_every_column_is_documented():
    assert (DOCS / "study.md").read_text("utf-8").endswith("## Every key\n\n" + keys_in_markdown())
    assert (DOCS / "results.md").read_text("utf-8").endswith("\n\n" + tables_in_markdown())


@pytest.mark.slow  # tests/cli/test_demo.py runs the same study
def test_the_example_in_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "study.md").read_text("utf-8"), re.DOTALL)
    seen: dict[str, object] = {}
    exec(compile(code, "docs/study.md", "exec"), seen)
    assert isinstance(seen["found"], rs.study.StudyResults)


def test_examples_are_whole():
    for name in get_args(Example):
        assert rs.study.Study.parse(rs.study.example(name)).settings
