"""What is written, what is never replaced, and faults of disks."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from cli.runs import Run, fit_json
from parameters import rest_is_slow


def test_an_earlier_file_survives_a_failure(
    run: Run, lung: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("fit.json").write_text("earlier")

    def fail(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(Path, "replace", fail)
    ended = run("fit", lung, "--id", "id", "--out", "fit.json")
    assert ended.code == 1
    assert "No space left on device" in ended.err
    assert Path("fit.json").read_text() == "earlier"
    assert sorted(path.name for path in Path().iterdir()) == ["fit.json", "lung.csv"]


@pytest.mark.parametrize("kind", ["itself", "symbolic link", "hard link"])
def test_an_input_is_never_replaced(run: Run, lung: Path, kind: str) -> None:
    before = lung.read_bytes()
    out = lung if kind == "itself" else Path("alias.csv")
    if kind == "symbolic link":
        out.symlink_to(lung)
    elif kind == "hard link":
        out.hardlink_to(lung)
    ended = run("path", lung, "--id", "id", "--out", out)
    assert ended.code == 2
    assert "that is read" in ended.err
    run("fit", lung, "--id", "id", "--out", "fit.json")
    ended = run("predict", "fit.json", lung, "--times", "300", "--out", out)
    assert ended.code == 2
    assert lung.read_bytes() == before


def test_a_long_table_is_never_replaced(run: Run) -> None:
    pd.DataFrame({"rowId": [1, 2, 3], "time": [1, 2, 3], "y": [1, 1, 0]}).to_csv("o.csv")
    pd.DataFrame({"rowId": [1, 3], "covariateId": [7, 7]}).to_csv("l.csv", index=False)
    ended = run("path", "o.csv", "--covariates", "l.csv", "--out", "./l.csv")
    assert ended.code == 2
    assert "that is read" in ended.err


def test_links_stay_and_only_files_are_written(run: Run, lung: Path) -> None:
    Path("there").mkdir()
    Path("fit.json").symlink_to("there/target.json")
    assert run("fit", lung, "--id", "id", "--out", "fit.json").code == 0
    assert Path("fit.json").is_symlink()
    assert fit_json(Path("there/target.json"))["status"] == "converged"
    os.mkfifo("pipe.json")
    ended = run("fit", lung, "--id", "id", "--out", "pipe.json")
    assert ended.code == 2
    assert "a device or a pipe" in ended.err
    assert Path("pipe.json").is_fifo()


def test_a_fit_ends_in_json(run: Run, lung: Path) -> None:
    ended = run("fit", lung, "--id", "id", "--out", "fit.csv")
    assert ended.code == 2
    assert "must end in .json" in ended.err


def test_closed_files_and_folders(run: Run, lung: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pictures").mkdir()
    Path("long.csv").write_text("id,covariateId\n100,1\n")
    closed: list[str] = []
    usual = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path).name not in closed and usual(path, mode)
    )
    closed[:] = ["pictures"]
    ended = run("fit", lung, "--id", "id", "--out", "fit.json", "--plot", "pictures/new")
    assert ended.code == 2
    assert "no permission to write in" in ended.err
    assert not Path("fit.json").exists()
    closed[:] = ["long.csv"]
    ended = run("fit", lung, "--id", "id", "--covariates", "long.csv", "--out", "fit.json")
    assert ended.code == 2
    assert "cannot read 'long.csv': permission denied" in ended.err


def test_a_full_disk_is_named(run: Run, lung: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    ended = run("fit", lung, "--id", "id", "--out", "fit.json")
    assert ended.code == 1
    assert "fit.json: cannot be written: No space left on device." in ended.err
    assert not list(Path().glob(".fit*"))


STOPPED = """
import os, signal, sys, time
from pathlib import Path
import {module}
def stop(*arguments, **_):
    path = next(a for a in arguments if isinstance(a, Path))
    with open(path, "w") as half:
        half.write("half")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(30)
{module}.{name} = stop
from riskset.cli.main import main
sys.argv = ["riskset", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("module", "name", "command"),
    rest_is_slow(
        [
            ("pathlib", "Path.write_text", ["fit", "--out", "old.json"]),
            ("pyarrow.csv", "write_csv", ["path", "--n-penalties", "2", "--out", "old.csv"]),
            ("matplotlib.figure", "Figure.savefig", ["path", "--n-penalties", "2", "--plot", "."]),
        ],
        1,
    ),
)
def test_a_stopped_run_leaves_nothing(
    lung: Path, tmp_path: Path, module: str, name: str, command: list[str]
) -> None:
    for old in ("old.json", "old.csv", "path.png"):
        (tmp_path / old).write_text("earlier")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code = STOPPED.format(module=module, name=name)
    arguments = [command[0], str(lung), "--id", "id", "--quiet", *command[1:]]
    ended = subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, check=False)
    assert ended.returncode == 128 + signal.SIGTERM
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
