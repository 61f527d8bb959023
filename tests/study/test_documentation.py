"""The documentation of studies names every key and every column, and its examples run."""

import re
from pathlib import Path
from typing import get_args

import pytest

import riskset as rs
from riskset.study.examples import Example
from riskset.study.specification.reference import keys_in_markdown, tables_in_markdown

DOCS = Path(__file__).parents[2] / "docs"


def test_every_key_and_every_column_is_documented():
    assert (DOCS / "study.md").read_text("utf-8").endswith("## Every key\n\n" + keys_in_markdown())
    assert (DOCS / "results.md").read_text("utf-8").endswith("\n\n" + tables_in_markdown())


def test_the_page_of_the_specification_has_an_index_of_its_sections_by_key():
    before, *sections = re.split(
        r"^## ", (DOCS / "specification.md").read_text("utf-8"), flags=re.M
    )
    anchors = [section.split("\n")[0].lower().replace(" ", "-") for section in sections]
    contents, index = before.split("| key | explained in |")
    assert re.findall(r"\(#([^)]*)\)", contents) == anchors
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", index, re.M))
    assert list(listed) == sorted(listed)
    for key, links in listed.items():
        assert f"| `{key}` |" in keys_in_markdown()
        for anchor in re.findall(r"\(#([^)]*)\)", links):
            assert f"{key}" in sections[anchors.index(anchor)]


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
