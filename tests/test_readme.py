"""What the README shows runs as it stands."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

import riskset as rs
from parameters import rest_is_slow
from riskset.cli.main import main
from riskset.omop.analyses import analyses_in_markdown

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    """Code blocks marked with a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_python_examples() -> None:
    (example,) = blocks("python")
    seen: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), seen)
    assert seen["model"].status_ == "converged"
    assert seen["adjusted"].status_ == "converged"
    assert len(seen["path"]) == 20
    assert seen["resampled"].n_failed == 0


def test_the_example_for_users_of_cyclops() -> None:
    (example,) = blocks("python", (ROOT / "docs/cyclops.md").read_text("utf-8"))
    seen: dict[str, object] = {}
    exec(compile(example, "docs/cyclops.md", "exec"), seen)
    model, variance = seen["model"], seen["variance"]
    assert rs.L1.from_variance(variance).l1 == pytest.approx(model.best_penalty_.l1, rel=1e-12)


def test_the_example_of_a_cohort_study() -> None:
    example, *_ = blocks("python", (ROOT / "docs/cohort.md").read_text("utf-8"))
    seen: dict[str, object] = {}
    exec(compile(example, "docs/cohort.md", "exec"), seen)
    for name in ("estimate", "by_weights", "by_sex"):
        assert seen[name].status == "ok"
    assert seen["matched"].n_target > 1500
    assert seen["risks"].difference.min() > 0


def test_the_example_on_an_omop_cdm() -> None:
    text = (ROOT / "docs/omop.md").read_text("utf-8")
    seen: dict[str, object] = {}
    for example in blocks("python", text):
        exec(compile(example, "docs/omop.md", "exec"), seen)
    seen["cdm"].close()
    assert seen["population"].status == seen["scores"].status == seen["effect"].status == "ok"
    assert text.endswith("### All analyses\n\n" + analyses_in_markdown())


FITS = {
    *("cohort", "path.csv", "fit.json", "predictions.parquet", "survival.csv", "survival.png"),
    *("chosen.json", "resampled.json", "work.jsonl", "pictures"),
}
STUDIES = {"study.yaml", "study", "riskset-demo"}


@pytest.mark.parametrize(
    ("is_study", "written"),
    rest_is_slow([(False, FITS), (True, STUDIES)], 1),  # tests/cli/test_demo.py runs a study
)
def test_command_line_examples(
    is_study: bool,
    written: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("riskset ")]
    for line in commands:
        if (line[1] in ("study", "demo")) != is_study:
            continue
        command, target = (line[:-2], line[-1]) if ">" in line else (line, None)
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        assert not ended.value.code, (command, told.err)
        if target is not None:
            (tmp_path / target).write_text(told.out)
    assert {path.name for path in tmp_path.iterdir()} == written


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    targets = {line.split()[1] for line in lines if line.startswith("make ")}
    assert {"demo", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_a_source_distribution_has_what_its_pages_and_tests_use() -> None:
    """The readme builds an image from it, and CONTRIBUTING runs its checks."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    included = build["targets"]["sdist"]["include"]
    needed = {"src", "tests", "bench", "docs", "Makefile", "Dockerfile", ".dockerignore", ".ci"}
    assert needed <= set(included)
    assert [name for name in included if not (ROOT / name).exists()] == []
