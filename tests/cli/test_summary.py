"""What is printed: the summary, notes, help and versions."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import riskset as rs
from cli.runs import Run, fit_json
from riskset.cli.terminal import plain_number
from riskset.kernels.cuda import device


def test_quiet_and_loud(run: Run, lung: Path) -> None:
    quiet = run("fit", lung, "--id", "id", "--out", "fit.json", "--quiet")
    assert (quiet.out, quiet.err) == ("", "")
    loud = run("fit", lung, "--id", "id", "--interval", "wald", "--out", "fit.json")
    assert "213 rows, 151 events" in loud.out
    assert "converged" in loud.out
    assert "written to fit.json" in loud.out
    assert max(map(len, loud.out.splitlines())) <= 80


def test_notes_reach_the_terminal(run: Run, lung: Path) -> None:
    frame = pd.read_csv(lung).assign(site="one", flat=3, weights=[0] + [1] * 212)
    frame = frame.rename(columns={"id": "rowId", "event": "y"})
    frame.to_csv("notes.csv", index=False)
    ended = run("fit", "notes.csv", "--out", "fit.json")
    assert ended.code == 0, ended.err
    said = " ".join((ended.out + ended.err).split())
    for note in fit_json()["warnings"]:
        assert note["message"] in said
    for word in ("'weights' as weight", "level 'one'", "flat"):
        assert word in said


def test_the_robust_error_stands_beside_its_interval(run: Run, lung: Path) -> None:
    options = ["--id", "id", "--interval", "robust", "--level", "0.995", "--out", "fit.json"]
    ended = run("fit", lung, *options)
    assert "robust se" in ended.out
    assert "99.5% interval" in ended.out
    error = fit_json()["robust_standard_error"]["age"]
    assert plain_number(error) in ended.out


def test_an_undefined_interval_is_a_dash(run: Run, lung: Path) -> None:
    frame = pd.read_csv(lung)
    frame["never"] = ((frame.event == 0) & (frame.index % 2 == 0)).astype(int)
    frame.to_csv("never.csv", index=False)
    ended = run("fit", "never.csv", "--id", "id", "--interval", "wald", "--out", "fit.json")
    assert ended.code == 0, ended.err
    (line,) = (line for line in ended.out.splitlines() if line.startswith("never"))
    assert line.split()[-1] == "-"


@pytest.mark.parametrize("columns", ["40", "60", "80"])
def test_numbers_are_never_cut(
    run: Run, lung: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    frame = pd.read_csv(lung)
    frame["a_very_long_name_of_a_covariate"] = frame.pop("age") * 1e9
    frame.to_csv("wide.csv", index=False)
    ended = run("fit", "wide.csv", "--id", "id", "--interval", "robust", "--out", "fit.json")
    assert ended.code == 0, ended.err
    rows = ended.out.split("interval\n")[1].splitlines()[1:6]
    for name, row in zip(fit_json()["coef"], rows, strict=False):
        for number in (fit_json()["coef"][name], fit_json()["robust_standard_error"][name]):
            assert plain_number(number) in row
        assert "…" not in row[10:]


def test_the_largest_come_first(run: Run) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, (600, 25))
    time = rng.exponential(size=600) * np.exp(-x @ np.linspace(0, 1.2, 25))
    frame = pd.DataFrame(x, columns=[f"x{j:02d}" for j in range(25)])
    frame.assign(time=time, event=1).to_csv("many.csv", index=False)
    ended = run("fit", "many.csv", "--out", "fit.json")
    assert ended.code == 0, ended.err
    shown = [line.split()[0] for line in ended.out.splitlines() if line.startswith("x")]
    found = fit_json()
    size = {name: abs(found["coef"][name] / found["standard_error"][name]) for name in shown}
    assert len(shown) == 20
    assert shown == sorted(shown, key=lambda name: -size[name])


def test_info_and_version(run: Run) -> None:
    assert run("--version").out == f"riskset {rs.__version__}\n"
    told = run("info").out
    for word in ("riskset", "Python", "numpy", "numba", "threads", "cpu", "GPU"):
        assert word in told
    reason = device.why_no_device()
    assert "GB free" in told if reason is None else f"not used: {reason.split()[0]}" in told


@pytest.mark.parametrize(
    "command", ["fit", "path", "predict", "curves", "simulate", "study", "bench", "demo", "info"]
)
def test_help(run: Run, command: str) -> None:
    ended = run(command, "--help")
    assert ended.code == 0
    assert f"riskset {command}" in ended.out


def test_help_is_quick() -> None:
    """Numba and scikit-learn take a second to load; a question about options does not wait."""
    code = (
        "import sys\nfrom riskset.cli.main import main\nsys.argv = ['riskset', 'fit', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numba', 'sklearn', 'matplotlib', 'duckdb') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "[]"
