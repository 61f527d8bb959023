"""Fixtures of the command line: a run of it, and a table to read."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.runs import GOLDEN, Ended, Run
from riskset.cli.main import main


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `riskset` with arguments, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["riskset", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return Ended(int(code or 0), *capsys.readouterr())

    return call


@pytest.fixture
def lung(tmp_path: Path) -> Path:
    """Lung cancer survival without the columns that are no covariates, and with a key."""
    frame = pd.read_csv(GOLDEN / "lung.csv").drop(columns=["inst", "weight"])
    path = tmp_path / "lung.csv"
    frame.assign(id=np.arange(len(frame)) + 100).to_csv(path, index=False)
    return path
