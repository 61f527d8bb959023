"""``riskset bench`` on the command line."""

import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import typer

from riskset.bench.record import read_csv
from riskset.bench.works import DENSE, ESTIMANDS, SCALING, WorkKind, reference
from riskset.cli.bench import bench as bench_app
from riskset.cli.main import main


@pytest.fixture
def bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["riskset", "bench", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return call


def test_one_command(
    bench: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "Rscript" else name)
    code, out, err = bench(
        "fixed", "--rows", 200, "--columns", 4, "--density", 0.2, "--model", "cox", "--threads", 1,
        "--repeats", 1, "--peers", "--python", "true",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "riskset fit; 1 thread;" in out
    assert "Absent: scikit-survival (not installed)" in out
    records = read_csv(Path("riskset-bench/fixed.csv"))
    assert {r.model for r in records} == {"cox"}
    assert "Absent: scikit-survival" in Path("riskset-bench/fixed.md").read_text()
    assert Path("riskset-bench/fixed.png").exists()


def test_quiet(bench: Callable[..., tuple[int, str, str]]) -> None:
    assert bench("fusion", "--rows", 50, "--repeats", 1, "--out", "o", "--quiet") == (0, "", "")
    assert len(read_csv(Path("o/fusion.csv"))) == 8


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fixed", "--rows", 0), "--rows must be positive, but 0 was given"),
        (("fixed", "--strength", -1), "--strength must not be negative, but -1.0 was given"),
        (("solvers", "--tol", -1), "--tol must be positive, but -1.0 was given"),
        (("scaling", "--density", 2), "--density must be at most 1, but 2.0 was given"),
        (("dense", "--limit", -1), "--limit must be positive, but -1.0 was given"),
        (("dense", "--peers", "--python", "/no/python"), "'/no/python' is not a program that can"),
        (("fusion", "--device", "tpu"), "--device must be 'cpu' or 'cuda', but it is 'tpu'"),
        (("cohort", "--columns", 0), "--columns must be"),
        (("fixed", "--out", "file"), "it is a file"),
        (
            ("dense", "--work", "fit:10"),
            "--work has 'fit:10', but its form must be fit:ROWSx",
        ),
    ],
)
def test_refusals(
    bench: Callable[..., tuple[int, str, str]], arguments: tuple[object, ...], said: str
) -> None:
    Path("file").write_text("")
    code, out, err = bench(*arguments)
    assert code == 2
    assert said in err
    assert out == ""
    assert [p.name for p in Path().iterdir()] == ["file"]


@pytest.mark.parametrize(
    "kinds", [DENSE, SCALING, ESTIMANDS], ids=["dense", "scaling", "estimands"]
)
def test_the_page_lists_every_kind_of_work(kinds: Mapping[str, WorkKind]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text("utf-8")
    assert reference(kinds) in page


def test_works_are_chosen(bench: Callable[..., tuple[int, str, str]]) -> None:
    work = ("--work", "fit:200x3", "--work", "path:30x40x3")
    code, out, err = bench("dense", *work, "--threads", 1, "--repeats", 1)
    assert (code, err) == (0, "")
    assert "riskset path; 1 thread;" in out
    assert [r.step for r in read_csv(Path("riskset-bench/dense.csv"))] == ["fit", "path"]


def test_estimands_of_chosen_rows(bench: Callable[..., tuple[int, str, str]]) -> None:
    works = ("--work", "logrank:150", "--work", "split")
    code, out, err = bench("estimands", *works, "--rows", 200, "--repeats", 1)
    assert (code, err) == (0, "")
    assert "riskset split;" in out
    found = [(r.step, r.n_rows) for r in read_csv(Path("riskset-bench/estimands.csv"))]
    assert found == [("logrank", 150), ("split", 200)]


def test_the_page_names_every_experiment_and_option() -> None:
    group = typer.main.get_command(bench_app)
    commands = group.commands  # type: ignore[attr-defined]
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text("utf-8")
    assert set(re.findall(r"`riskset bench ([a-z]+)`", page)) == set(commands)
    known = {name for command in commands.values() for o in command.params for name in o.opts} | {
        "--help"
    }
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page)) <= known
