"""Tables that the command line reads: long ones, and those in a database."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq

import riskset as rs
from cli.runs import CASES, Run, fit_json


def test_simulated_cohort_needs_no_options(run: Run) -> None:
    drawn = run("simulate", "cox", "--rows", 2000, "--columns", 30, "--seed", 5, "--out", "cohort")
    assert drawn.code == 0
    assert "covariates  30" in drawn.out
    ended = run(
        "fit", "cohort/outcomes.parquet", "--covariates", "cohort/covariates.parquet",
        "--penalty", "l1", "--strength", 3, "--out", "fit.json", "--quiet",
    )  # fmt: skip
    assert (ended.code, ended.err) == (0, "")
    cohort = rs.simulate_cox(2000, 30, seed=5)
    expected = rs.Cox(rs.L1(3.0)).fit(cohort.X, cohort.y)
    found = fit_json()
    assert list(found["coef"]) == [str(j) for j in range(1, 31)]
    np.testing.assert_allclose(list(found["coef"].values()), expected.coef_, atol=1e-9)
    ended = run(
        "predict", "fit.json", "cohort/outcomes.parquet", "--covariates",
        "cohort/covariates.parquet", "--times", "50,200", "--out", "p.parquet",
    )  # fmt: skip
    assert ended.code == 0
    table = pq.read_table("p.parquet").to_pandas()
    assert list(table) == [
        "rowId", "time", "linear_predictor", "survival", "cumulative_hazard"
    ]  # fmt: skip
    assert table["rowId"].tolist()[:4] == [1, 1, 2, 2]
    survival = expected.predict_survival_function(cohort.X, [50, 200])
    np.testing.assert_allclose(table["survival"], survival.ravel(), rtol=1e-7)


def test_database(run: Run, lung: Path) -> None:
    with duckdb.connect("lung.duckdb") as database:
        database.execute(f"create table patients as from '{lung}'")
        database.execute("create table other as select 1 as x")
    run("fit", lung, "--id", "id", "--out", "file.json", "--quiet")
    run("fit", "lung.duckdb", "--table", "patients", "--id", "id", "--out", "t.json", "--quiet")
    query = "select * from patients where age > 0"
    run("fit", "lung.duckdb", "--query", query, "--id", "id", "--out", "q.json", "--quiet")
    first, second, third = (fit_json(Path(f"{n}.json")) for n in ("file", "t", "q"))
    assert first["coef"] == second["coef"] == third["coef"]


def test_duplicate_entries(run: Run) -> None:
    case = CASES / "15-duplicate-row-covariate-entries"
    common = [
        "fit", case / "outcomes.csv", "--covariates", case / "input.csv", "--out", "fit.json",
        "--quiet",
    ]  # fmt: skip
    refused = run(*common)
    assert refused.code == 2
    assert not Path("fit.json").exists()
    ended = run(*common, "--duplicates", "max")
    assert ended.code == 0, ended.err
    assert fit_json()["n_dropped"]["repeated_entries"] > 0
    assert any(w["code"] == "dropped" for w in fit_json()["warnings"])
