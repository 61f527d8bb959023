"""The pages of the documentation: links lead somewhere, in the repository too, and code runs."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if "generated" not in path.parts
)
CODE = re.compile(r"^(```+|~~~+|:::+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the site give to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(target), link


FENCE = re.compile(r"^```(?:python|\{eval-rst\})\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_CODE = [
    page
    for page in PAGES
    if (page.parent.name in ("start", "guide", "migrate", "api", "about") or page.stem == "network")
    and FENCE.search(page.read_text("utf-8"))
]
COHORT = pytest.param(ROOT / "docs/cohort.md", id="docs/cohort", marks=pytest.mark.slow)
"""Its first block runs in test_readme.py, too, which is not slow."""
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize(
    "page", [*WITH_CODE, COHORT], ids=lambda page: f"{page.parent.name}/{page.stem}"
)
def test_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, code in enumerate(FENCE.findall(page.read_text("utf-8")), 1):
        where = f"block {number} of {page.name}"
        if ">>> " in code:
            test = doctest.DocTestParser().get_doctest(code, names, where, None, None)
            failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False).failed
            names.update(test.globs)
            assert not failed, capsys.readouterr().out
        elif not code.startswith(".. "):
            exec(compile(code, where, "exec"), names)
