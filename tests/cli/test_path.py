"""``riskset path``: a table of certified solutions."""

from pathlib import Path

import pandas as pd
import pytest

import riskset as rs
from cli.runs import Run


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_path(run: Run, lung: Path, ending: str) -> None:
    ended = run(
        "path", lung, "--id", "id", "--unpenalized", "sex", "--n-penalties", 12, "--min-ratio",
        0.01, "--out", f"path.{ending}",
    )  # fmt: skip
    assert ended.code == 0
    assert "12 penalties" in ended.out
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    table = read(f"path.{ending}")
    assert len(table) == 12
    assert (table["l2"] == 0).all()
    assert table["l1"].iloc[-1] == pytest.approx(table["l1"].iloc[0] / 100)
    assert (table["status"] == "converged").all()
    assert (table["kkt"] <= 1e-8).all()
    assert table["n_nonzero"].iloc[0] == 1
    assert (table["coef:sex"] != 0).all()
    data = rs.read_dataset(lung, id="id")
    penalty = rs.L1(table["l1"].iloc[-1], unpenalized=["sex"])
    expected = rs.Cox(penalty, tol=1e-10).fit(data)
    assert table["coef:age"].iloc[-1] == pytest.approx(expected.coef_[0], rel=1e-6)


def test_path_needs_a_penalty(run: Run, lung: Path) -> None:
    ended = run("path", lung, "--id", "id", "--penalty", "none")
    assert ended.code == 2
    assert "a path needs a penalty" in ended.err
