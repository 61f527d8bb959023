"""Tables that the command line reads: long ones, and those in a database."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import riskset as rs
from cli.runs import CASES, Run, fit_json


def test_toy_cdm(run: Run) -> None:
    drawn = run("simulate", "toy-cdm", "--rows", 30, "--out", "toy")
    assert drawn.code == 0
    assert "person                30" in drawn.out
    with rs.omop.Cdm("toy") as cdm:
        assert cdm.arrow("death").equals(rs.simulate.toy_tables(30)["death"])


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


LONG = """person,concept,amount
10,7,2
12,7,1
12,8,0
12,8,3
99,7,1
"""
ROWS = "pid,days,died,w\n10,5,1,1\n11,8,0,1\n12,2,1,1\n13,9,1,1\n14,3,0,0\n"
COLUMNS = ["--covariate-columns", "person,concept,amount"]
ENTRIES = [*COLUMNS, "--unknown-rows", "drop", "--duplicates", "sum"]
ROLES = ["--time", "days", "--event", "died", "--id", "pid", "--weight", "w"]
RIDGE = ["--penalty", "l2", "--strength", 1, "--tol", "1e-12"]


def write_tables() -> None:
    Path("rows.csv").write_text(ROWS)
    Path("long.csv").write_text(LONG)
    with duckdb.connect("study.duckdb") as database:
        database.execute("create table rows as from 'rows.csv'")
        database.execute("create schema big")
        database.execute("create table big.long as from 'long.csv'")


# Every way to the same entries: (10, 7) = 2, (12, 7) = 1, (12, 8) = 3.
PLACES = [
    ["rows.csv", "--covariates", "long.csv"],
    ["rows.csv", "--covariates", "study.duckdb", "--covariates-table", "big.long"],
    ["study.duckdb", "--table", "rows", "--covariates-table", "big.long"],
    ["study.duckdb", "--table", "rows", "--covariates", "big.long"],
    ["study.duckdb", "--table", "rows", "--covariates-query", "from big.long"],
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: " ".join(place))
def test_long_tables_with_names_of_their_own(run: Run, place: list[str]) -> None:
    write_tables()
    ended = run("fit", *place, *ENTRIES, *ROLES, *RIDGE, "--out", "fit.json")
    assert ended.code == 0, ended.err
    X = np.array([[2.0, 0], [0, 0], [1, 3], [0, 0]])
    expected = rs.Cox(rs.L2(1.0), tol=1e-12).fit(X, rs.Surv([5, 8, 2, 9], [1, 0, 1, 1]))
    assert fit_json()["coef"] == pytest.approx(
        dict(zip(["7", "8"], expected.coef_, strict=True)), abs=1e-10
    )
    said = " ".join(ended.out.split())
    for count in (
        "unknown rows: 1;", "entries merged with another of their row and covariate: 1;",
        "rows of weight 0: 1",
    ):  # fmt: skip
        assert count in said
    # The file remembers how the long table is read.
    ended = run("predict", "fit.json", *place, "--times", "5", "--out", "p.csv")
    assert ended.code == 0, ended.err
    predicted = pd.read_csv("p.csv")
    assert predicted["pid"].tolist() == [10, 11, 12, 13, 14]
    np.testing.assert_allclose(
        predicted["linear_predictor"], np.append(X @ expected.coef_, 0), atol=1e-10
    )
    ended = run("path", *place, *ENTRIES, *ROLES, "--n-penalties", 3)
    assert ended.code == 0, ended.err
    assert "rows of weight 0: 1" in " ".join(ended.out.split())


def test_predictions_may_read_a_long_table_otherwise(run: Run) -> None:
    write_tables()
    known = LONG.replace("99,7,1\n", "").replace("12,8,0\n", "")
    Path("clean.csv").write_text(known)
    clean = ["--covariates", "clean.csv", *COLUMNS]
    run("fit", "rows.csv", *clean, *ROLES, *RIDGE, "--out", "fit.json")
    new = ["predict", "fit.json", "rows.csv", "--covariates", "long.csv", "--times", "5"]
    refused = run(*new, "--out", "p.csv")
    assert refused.code == 2
    assert "--unknown-rows drop" in refused.err
    allowed = ["--unknown-rows", "drop", "--duplicates", "max", "--out", "p.csv"]
    assert run(*new, *allowed).code == 0
    Path("other.csv").write_text(LONG.replace("person,concept,amount", "who,what,much"))
    new[4] = "other.csv"
    assert run(*new, "--covariate-columns", "who,what,much", *allowed[:-1], "q.csv").code == 0
    assert Path("p.csv").read_text() == Path("q.csv").read_text()


def test_reference_levels(run: Run) -> None:
    Path("rows.csv").write_text(
        "time,event,sex,site\n5,1,m,b\n4,0,f,a\n3,1,m,b\n2,1,f,c\n1,0,m,a\n"
    )
    ended = run("fit", "rows.csv", "--penalty", "l1", "--strength", 0.1, "--out", "fit.json")
    assert "sex f, site a" in ended.out
    penalty = ["--penalty", "l1", "--strength", 0.1, "--out", "fit.json"]
    ended = run("fit", "rows.csv", *penalty, "--reference", "site=c", "--reference", "sex=m")
    assert "sex m, site c" in ended.out
    assert list(json.loads(Path("fit.json").read_text())["coef"]) == ["sex=f", "site=a", "site=b"]
    for option, message in {
        "site": "--reference must be COL=LEVEL, but it is 'site'",
        "site=d": "level 'd' was not found in column 'site' of rows.csv",
        "place=a": "column 'place' was not found in rows.csv",
    }.items():
        ended = run("fit", "rows.csv", *penalty, "--reference", option)
        assert ended.code == 2
        assert message in ended.err
    # With a ridge penalty every level has a coefficient.
    ended = run("fit", "rows.csv", "--penalty", "l2", "--strength", 1, "--out", "fit.json")
    assert "reference levels" not in ended.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--covariate-columns", "a,b"], "--covariate-columns needs --covariates"),
        (["--unknown-rows", "drop"], "--unknown-rows needs --covariates"),
        (["--covariates", "long.csv", "--covariate-columns", "person"], "two or three columns"),
        (["--covariates", "long.csv", "--covariate-columns", "person,"], "two or three columns"),
        (["--covariates", "long.csv", "--covariate-columns", "persn,concept"], "mean 'person'"),
        (
            ["--covariates", "long.csv", "--covariates-table", "t"],
            "--covariates-table is for a DuckDB file",
        ),
        (["--covariates-table", "t"], "but rows.csv is not one"),
        (["--covariates", "study.duckdb"], "choose one with --covariates-table"),
        (
            ["--covariates", "study.duckdb", "--covariates-table", "lng"],
            "'lng' was not found in study.duckdb",
        ),
    ],
)
def test_bad_long_tables(run: Run, options: list[str], message: str) -> None:
    write_tables()
    ended = run("fit", "rows.csv", *ROLES, *options, "--out", "fit.json")
    assert ended.code == 2
    assert message in ended.err
    assert not Path("fit.json").exists()


def test_covariates_in_a_design_file(run: Run) -> None:
    run("simulate", "cox", "--rows", 5000, "--columns", 20, "--seed", 5, "--out", "cohort")
    fit = ("--penalty", "l1", "--strength", 3, "--out", "fit.json", "--quiet")
    long = ("fit", "cohort/outcomes.parquet", "--covariates", "cohort/covariates.parquet")
    found = []
    for args in (long, (*long, "--design-file", "c.rsd"), (*long[:3], "c.rsd")):
        ended = run(*args, *fit)
        assert (ended.code, ended.err) == (0, "")
        found.append(fit_json())
    assert found[0]["coef"] == found[1]["coef"] == found[2]["coef"]
    assert found[0]["prediction"] == found[2]["prediction"]
    ended = run(*long[:3], "c.rsd", "--design-file", "d.rsd", *fit)
    assert ended.code == 2
    assert "--design-file belongs to a long table, but c.rsd is a design in a file" in ended.err
    ended = run(*long, "--design-file", "cohort/covariates.parquet", *fit)
    assert ended.code == 2
    assert "its name must end in .rsd" in ended.err
    ended = run(
        "predict", "fit.json", "cohort/outcomes.parquet", "--covariates", "c.rsd",
        "--times", "50", "--out", "p.parquet",
    )  # fmt: skip
    assert ended.code == 2
    assert "c.rsd is a design in a file, which serves for fits" in ended.err
