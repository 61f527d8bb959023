"""The command line: what it writes, what it says, and how it ends."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import riskset as rs
from riskset.cli.main import main
from riskset.cli.terminal import plain_number
from riskset.datasets import rhc_path
from riskset.fit_file import read_fit, to_dict

GOLDEN = Path(__file__).parent / "golden"
LUNG = json.loads((GOLDEN / "lung.json").read_text())
CASES = Path(__file__).parent / "cases"


class Ended(NamedTuple):
    """How a run of the command line ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


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


def fit_json(path: Path = Path("fit.json")) -> dict:
    return json.loads(path.read_text())


# -------------------------------------------------------------------------------------- fit


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_fit_agrees_with_r(run: Run, lung: Path, ties: str) -> None:
    ended = run("fit", lung, "--id", "id", "--ties", ties, "--out", "fit.json", "--tol", "1e-11")
    assert ended.code == 0
    assert ended.err == ""
    found, golden = fit_json(), LUNG[ties]
    assert list(found["coef"]) == LUNG["columns"]
    for name, value in golden["coef"].items():
        assert found["coef"][name] == pytest.approx(value, rel=1e-7)
    errors = np.sqrt(np.diag(golden["vcov_naive"]))
    np.testing.assert_allclose(list(found["standard_error"].values()), errors, rtol=1e-6)


def test_the_document(run: Run, lung: Path) -> None:
    run("fit", lung, "--id", "id", "--out", "fit.json", "--interval", "wald", "--parameter", "age")
    found = fit_json()
    assert found["riskset"] == rs.__version__
    assert (found["model"], found["ties"], found["cause"]) == ("cox", "breslow", 1)
    assert (found["n_rows"], found["n_events"], found["n_features"]) == (213, 151, 4)
    assert found["n_dropped"] == {}
    assert found["penalty"] == {"l1": 0.0, "l2": 0.0, "unpenalized": []}
    assert found["status"] == "converged"
    assert 0 <= found["kkt"] <= 1e-8
    assert found["objective"] == -found["log_likelihood"]
    assert found["null_log_likelihood"] < found["log_likelihood"]
    assert found["iterations"] >= 1
    assert found["interval"]["method"] == "wald"
    assert found["interval"]["level"] == 0.95
    bounds = found["interval"]["bounds"]
    assert list(bounds) == ["age"]
    middle = (bounds["age"]["lower"] + bounds["age"]["upper"]) / 2
    assert middle == pytest.approx(found["coef"]["age"])
    assert found["warnings"] == []
    assert set(found["seconds"]) == {"read", "prepare", "fit"}
    assert "robust_standard_error" not in found


def test_roles_reach_the_model(run: Run) -> None:
    lung = GOLDEN / "lung.csv"
    ended = run(
        "fit", lung, "--weight", "weight", "--strata", "sex", "--cluster", "inst",
        "--ties", "efron", "--interval", "robust", "--level", "0.9", "--out", "fit.json",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    frame = pd.read_csv(lung)
    expected = rs.Cox(ties="efron").fit(
        frame[["age", "ph.ecog", "wt.loss"]].to_numpy(),
        rs.Surv(frame["time"], frame["event"]),
        sample_weight=frame["weight"],
        strata=frame["sex"],
        cluster=frame["inst"],
    )
    found = fit_json()
    assert list(found["coef"].values()) == pytest.approx(expected.coef_.tolist(), rel=1e-9)
    errors = expected.robust_standard_error_.tolist()
    assert list(found["robust_standard_error"].values()) == pytest.approx(errors, rel=1e-9)
    assert found["n_strata"] == 2
    assert found["interval"]["level"] == 0.9


def test_strengths_on_three_scales(run: Run, lung: Path) -> None:
    common = ["fit", lung, "--id", "id", "--penalty", "l1", "--unpenalized", "sex", "--out"]
    run(*common, "a.json", "--strength", 2)
    run(*common, "b.json", "--variance", 0.5)
    a, b = fit_json(Path("a.json")), fit_json(Path("b.json"))
    assert a["coef"] == b["coef"]
    assert a["penalty"] == b["penalty"] == {"l1": 2.0, "l2": 0.0, "unpenalized": ["sex"]}
    assert "standard_error" not in a
    for key, value in zip(LUNG["columns"], LUNG["cyclops_l1"]["coef"].values(), strict=True):
        assert a["coef"][key] == pytest.approx(value, abs=5e-6)


@pytest.mark.parametrize("name", ["glmnet_l1", "glmnet_enet", "glmnet_ridge", "glmnet_factor"])
def test_glmnet_scale_agrees_with_glmnet(run: Run, lung: Path, name: str) -> None:
    golden = LUNG[name]
    frame = pd.read_csv(lung).assign(time=LUNG["time_untied"])
    frame.to_parquet("untied.parquet")
    kind = {1: "l1", 0: "l2"}.get(golden["alpha_l1_ratio"], "elasticnet")
    options = ["--penalty", kind, "--glmnet-lambda", golden["lambda_per_row"]]
    if kind == "elasticnet":
        options += ["--l1-ratio", golden["alpha_l1_ratio"]]
    for column, factor in zip(LUNG["columns"], golden["penalty_factor"], strict=True):
        if factor != 1:
            options += ["--factor", f"{column}={factor}"]
    ended = run("fit", "untied.parquet", "--id", "id", *options, "--out", "fit.json")
    assert ended.code == 0, ended.err
    for column, value in golden["coef"].items():
        assert fit_json()["coef"][column] == pytest.approx(value, abs=2e-7)


def test_cause_of_death(run: Run) -> None:
    frame = pd.read_csv(GOLDEN / "lung.csv")
    frame["event"] = frame["event"] * (1 + (frame.index % 3 == 0))
    frame.to_csv("causes.csv", index=False)
    refused = run("fit", "causes.csv", "--out", "fit.json")
    assert refused.code == 2
    assert "cause" in refused.err
    assert run("fit", "causes.csv", "--cause", 2, "--out", "fit.json").code == 0
    assert fit_json()["cause"] == 2
    assert fit_json()["n_events"] == (frame["event"] == 2).sum()


def test_infinite_estimate(run: Run) -> None:
    ended = run("fit", CASES / "01-no-events-in-exposed" / "input.csv", "--out", "fit.json")
    assert ended.code == 0
    assert ended.err.startswith("Warning: ")
    assert "'x'" in ended.err
    found = fit_json()
    assert found["status"] == "infinite_estimate"
    assert found["coef"] == {"x": "-inf"}
    assert found["standard_error"] == {"x": None}
    assert [w["code"] for w in found["warnings"]] == ["infinite"]
    Path("new.csv").write_text("x\n0\n1\n")
    assert run("predict", "fit.json", "new.csv", "--times", "8", "--out", "p.csv").code == 0
    table = pd.read_csv("p.csv")
    assert table["linear_predictor"].tolist() == [0, -np.inf]
    assert table["survival"][0] < 1
    assert table["survival"][1] == 1
    assert table["cumulative_hazard"][1] == 0


def test_the_answer_does_not_depend_on_threads(run: Run) -> None:
    for threads in (1, 2):
        run("fit", rhc_path(), "--id", "id", "--threads", threads, "--out", f"{threads}.json")
    one, two = fit_json(Path("1.json")), fit_json(Path("2.json"))
    del one["seconds"], two["seconds"]
    assert one == two


def test_quiet_and_loud(run: Run, lung: Path) -> None:
    quiet = run("fit", lung, "--id", "id", "--out", "fit.json", "--quiet")
    assert (quiet.out, quiet.err) == ("", "")
    loud = run("fit", lung, "--id", "id", "--interval", "wald", "--out", "fit.json")
    assert "213 rows, 151 events" in loud.out
    assert "converged" in loud.out
    assert "written to fit.json" in loud.out
    assert max(map(len, loud.out.splitlines())) <= 80


def test_pictures(run: Run, lung: Path) -> None:
    run("fit", lung, "--id", "id", "--interval", "wald", "--out", "fit.json", "--plot", "p/q")
    run("path", lung, "--id", "id", "--n-penalties", 10, "--plot", "p/q")
    names = sorted(path.name for path in Path("p/q").iterdir())
    assert names == ["hazard_ratios.png", "path.png", "survival.png"]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in Path("p/q").iterdir())


# --------------------------------------------------------------------------- other formats


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


def test_rounded_times(run: Run, lung: Path) -> None:
    frame = pd.read_csv(lung)
    rng = np.random.default_rng(1)
    jitter = rng.uniform(-1e-9, 1e-9, len(frame))
    frame.assign(time=frame["time"] + jitter).to_csv("near.csv", index=False)
    run("fit", lung, "--id", "id", "--out", "exact.json", "--quiet")
    rounded = ["--time-digits", 3, "--out", "near.json", "--quiet"]
    assert run("fit", "near.csv", "--id", "id", *rounded).code == 0
    assert fit_json(Path("near.json"))["coef"] == fit_json(Path("exact.json"))["coef"]


# ------------------------------------------------------------------------------------- path


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


# ---------------------------------------------------------------------------------- predict


def test_predictions_survive_the_file(run: Run) -> None:
    raw = rhc_path(categories=True)
    run(
        "fit", raw, "--id", "id", "--strata", "fac_sex", "--penalty", "elasticnet", "--strength",
        30, "--l1-ratio", 0.7, "--out", "fit.json", "--quiet",
    )  # fmt: skip
    columns = pq.read_table(raw).drop_columns(["time", "event"]).slice(17, 40)
    # The columns may stand in any order, and further ones do not matter.
    shuffled = columns.select(columns.column_names[::-1]).append_column("more", columns["num_age"])
    pq.write_table(shuffled, "new.parquet")
    ended = run("predict", "fit.json", "new.parquet", "--times", "30, 365", "--out", "p.csv")
    assert (ended.code, ended.err) == (0, "")
    table = pd.read_csv("p.csv")
    data = rs.read_dataset(raw, id="id", strata="fac_sex")
    model = rs.Cox(rs.ElasticNet(l1=21.0, l2=9.0)).fit(data)
    rows = slice(17, 57)
    hazard = model.predict_cumulative_hazard_function(data, [30, 365])[rows]
    assert table["id"].tolist() == np.repeat(np.arange(17, 57), 2).tolist()
    np.testing.assert_allclose(table["linear_predictor"][::2], model.predict(data)[rows], rtol=1e-9)
    np.testing.assert_allclose(table["cumulative_hazard"], hazard.ravel(), rtol=1e-9)
    np.testing.assert_allclose(table["survival"], np.exp(-hazard).ravel(), rtol=1e-9)


def test_rows_without_a_key_are_counted(run: Run, lung: Path) -> None:
    pd.read_csv(lung).drop(columns="id").to_csv("plain.csv", index=False)
    run("fit", "plain.csv", "--out", "fit.json", "--quiet")
    run("predict", "fit.json", "plain.csv", "--times", "100", "--out", "p.csv", "--quiet")
    assert pd.read_csv("p.csv")["row"].tolist() == list(range(1, 214))


def test_a_level_that_was_not_in_the_fit(run: Run) -> None:
    raw = rhc_path(categories=True)
    run("fit", raw, "--id", "id", "--penalty", "l2", "--strength", 9, "--out", "f.json", "--quiet")
    frame = pd.read_parquet(raw).head(3)
    frame.loc[1, "fac_cat1"] = "Flu"
    frame.to_csv("new.csv", index=False)
    ended = run("predict", "f.json", "new.csv", "--times", "30", "--out", "p.csv")
    assert ended.code == 2
    for words in ("fac_cat1", "new.csv", "Flu"):
        assert words in ended.err
    assert not Path("p.csv").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file"),
        ("{", "it is no JSON"),
        ('{"a": 1}', "does not have the key 'riskset'"),
        ('{"riskset": "0.1.0", "coef": {}}', "missing or changed"),
        ('{"riskset": "9.0.0", "format": 99}', "upgrade riskset"),
    ],
)
def test_files_that_are_no_fit(run: Run, lung: Path, content: str | None, message: str) -> None:
    if content is not None:
        Path("fit.json").write_text(content)
    ended = run("predict", "fit.json", lung, "--times", "3", "--out", "p.csv")
    assert ended.code == 2
    assert message in ended.err
    assert not Path("p.csv").exists()


def test_fit_file_keeps_every_digit(tmp_path: Path) -> None:
    model = rs.Cox().fit(rs.load_rhc())
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(to_dict(model), allow_nan=False))
    again, _ = read_fit(path)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    data = rs.load_rhc()
    times = [1, 30, 5000]
    np.testing.assert_array_equal(
        again.predict_survival_function(data, times), model.predict_survival_function(data, times)
    )


def test_a_fit_without_a_table_has_no_file() -> None:
    model = rs.Cox(rs.L2(1.0)).fit(np.arange(4.0)[:, None], rs.Surv([1, 2, 3, 4], [1, 1, 0, 1]))
    with pytest.raises(rs.InputError, match="not fitted on a Dataset"):
        to_dict(model)


# ----------------------------------------------------------------------------- competing risks


def test_finegray_from_table_to_predictions(run: Run) -> None:
    table = GOLDEN / "mgus2.csv"
    crr = json.loads((GOLDEN / "mgus2.json").read_text())["crr_cause2"]
    options = ("--model", "finegray", "--cause", "2", "--plot", "pictures")
    ended = run("fit", table, *options, "--out", "fit.json")
    assert ended.code == 0
    assert "Fine-Gray, cause 2" in ended.out
    assert Path("pictures/cumulative_incidence.png").exists()
    document = json.loads(Path("fit.json").read_text())
    assert document["model"] == "finegray"
    assert document["cause"] == 2
    censoring = {"ties": "crr", "group": None, "beyond": "zero", "weights": "case"}
    assert document["censoring"] == censoring
    assert document["coef"] == pytest.approx(crr["coef"], rel=1e-7)
    robust = np.sqrt(np.diag(crr["vcov_robust"]))
    errors = list(document["robust_standard_error"].values())
    np.testing.assert_allclose(errors, robust, rtol=1e-6)

    new = pd.DataFrame(crr["predict"]["newx"])
    new.to_csv("new.csv", index=False)
    times = ",".join(map(str, crr["predict"]["times"]))
    assert run("predict", "fit.json", "new.csv", "--times", times, "--out", "p.csv").code == 0
    got = pd.read_csv("p.csv")
    assert list(got) == ["row", "time", "linear_predictor", "cumulative_incidence"]
    want = np.transpose(crr["predict"]["cif"]).ravel()
    np.testing.assert_allclose(got["cumulative_incidence"], want, rtol=1e-7)


def test_finegray_with_its_censoring_options(run: Run) -> None:
    frame = pd.read_csv(GOLDEN / "mgus2.csv")
    frame["site"] = np.where(np.arange(len(frame)) % 3 == 0, "a", "b")
    frame.to_csv("patients.csv", index=False)
    options = ("--censoring-ties", "finegray", "--censoring-group", "site")
    common = ("--model", "finegray", "--quiet", *options, "--censoring-beyond", "last")
    assert run("fit", "patients.csv", *common, "--out", "fit.json").code == 0
    document = json.loads(Path("fit.json").read_text())
    censoring = {"ties": "finegray", "group": "site", "beyond": "last", "weights": "case"}
    assert document["censoring"] == censoring
    model = rs.FineGray(
        censoring_ties="finegray", censoring_group=frame["site"], censoring_beyond="last"
    ).fit(frame[["age", "male", "hgb", "mspike"]], rs.Surv(frame["time"], frame["event"]))
    np.testing.assert_allclose(list(document["coef"].values()), model.coef_, rtol=1e-12)
    assert document["log_likelihood"] == pytest.approx(model.log_likelihood_, rel=1e-13)
    again, _ = read_fit(Path("fit.json"))
    assert isinstance(again, rs.FineGray)
    assert again.censoring_group == "site"

    ended = run("path", "patients.csv", *common, "--n-penalties", "4", "--out", "path.csv")
    assert ended.code == 0
    assert (pd.read_csv("path.csv")["status"] == "converged").all()


# ------------------------------------------------------------------------------ bad requests

BAD = [
    (["--model", "finegray", "--ties", "efron"], "--ties efron needs --model cox"),
    (["--model", "finegray", "--cause", "3"], "code 3"),
    (["--model", "finegray", "--censoring-group", "hospital"], "'hospital' was not found"),
    (["--model", "finegray", "--entry", "age"], "must be smaller than"),
    (["--censoring-ties", "crr"], "--censoring-ties needs --model finegray"),
    (["--censoring-group", "sex"], "--censoring-group needs --model finegray"),
    (["--censoring-beyond", "last"], "--censoring-beyond needs --model finegray"),
    (["--penalty", "l1"], "needs one of --strength, --variance and --glmnet-lambda"),
    (["--penalty", "l1", "--strength", "1", "--variance", "1"], "together"),
    (["--penalty", "l1", "--strength", "-1"], "--strength must be a finite number"),
    (["--penalty", "l1", "--strength", "nan"], "--strength must be a finite number"),
    (["--penalty", "l1", "--variance", "0"], "--variance must be"),
    (["--penalty", "elasticnet", "--strength", "1"], "needs --l1-ratio"),
    (["--penalty", "elasticnet", "--strength", "1", "--l1-ratio", "2"], "between 0 and 1"),
    (["--penalty", "elasticnet", "--variance", "1", "--l1-ratio", "0.5"], "--variance goes with"),
    (["--penalty", "l1", "--strength", "1", "--l1-ratio", "0.5"], "--l1-ratio needs"),
    (["--penalty", "l1", "--strength", "1", "--unpenalized", "sx"], "did you mean 'sex'"),
    (["--penalty", "l1", "--strength", "1", "--factor", "sex"], "must be NAME=VALUE"),
    (["--penalty", "l1", "--strength", "1", "--factor", "sex=big"], "must be NAME=VALUE"),
    (["--penalty", "l1", "--strength", "1", "--interval", "wald"], "not defined for a penalised"),
    (["--strength", "1"], "but --penalty is none"),
    (["--unpenalized", "sex"], "but --penalty is none"),
    (["--interval", "wald", "--parameter", "agee"], "did you mean 'age'"),
    (["--parameter", "age"], "--parameter needs --interval"),
    (["--level", "0.9"], "--level needs --interval"),
    (["--interval", "wald", "--level", "95"], "--level must be between 0 and 1"),
    (["--interval", "bootstrap"], "bootstrap"),
    (["--duplicates", "sum"], "--duplicates needs --covariates"),
    (["--time", "tme"], "did you mean 'time'"),
    (["--strata", "hospital"], "'hospital' was not found in lung.csv"),
    (["--table", "t"], "lung.csv"),
    (["--covariates", "absent.parquet"], "absent.parquet"),
    (["--tol", "0"], "--tol must be between 0 and 1"),
    (["--max-iter", "0"], "--max-iter must be"),
    (["--threads", "0"], "--threads must be"),
    (["--cv"], "No such option"),
    (["--out", "absent/fit.json"], "does not exist"),
    (["--out", "."], "it is a folder"),
    (["--plot", "lung.csv"], "it is a file"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[" ".join(o) for o, _ in BAD])
def test_bad_requests(run: Run, lung: Path, options: list[str], message: str) -> None:
    before = {path: path.read_bytes() for path in Path().iterdir()}
    out = [] if "--out" in options else ["--out", "fit.json"]
    ended = run("fit", lung, "--id", "id", *out, *options)
    assert ended.code == 2
    assert ended.out == ""
    assert message in " ".join(ended.err.replace("│", " ").split())
    assert "Traceback" not in ended.err
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_bad_data_name_the_place(run: Run, lung: Path) -> None:
    frame = pd.read_csv(lung)
    frame.loc[4, "time"] = -3
    frame.to_csv("bad.csv", index=False)
    ended = run("fit", "bad.csv", "--id", "id", "--out", "fit.json")
    assert ended.code == 2
    for words in ("column 'time' of bad.csv", "row 5", "104", "-3", "Hint:"):
        assert words in ended.err
    assert not Path("fit.json").exists()


def test_no_file(run: Run) -> None:
    ended = run("fit", "nothing.csv", "--out", "fit.json")
    assert ended.code == 2
    assert "there is no file 'nothing.csv'" in ended.err


@pytest.mark.parametrize("times", ["", "a", "1,,2", "-1", "nan", "inf"])
def test_bad_times(run: Run, lung: Path, times: str) -> None:
    ended = run("predict", "fit.json", lung, f"--times={times}", "--out", "p.csv")
    assert ended.code == 2
    assert "--times must be numbers" in ended.err


def test_predictions_need_a_known_ending(run: Run, lung: Path) -> None:
    ended = run("predict", "fit.json", lung, "--times", "1", "--out", "p.xlsx")
    assert ended.code == 2
    assert "must end in .csv or .parquet" in ended.err


def test_path_needs_a_penalty(run: Run, lung: Path) -> None:
    ended = run("path", lung, "--id", "id", "--penalty", "none")
    assert ended.code == 2
    assert "a path needs a penalty" in ended.err


def test_no_graphics_card(run: Run, lung: Path) -> None:
    ended = run("fit", lung, "--id", "id", "--device", "cuda", "--out", "fit.json")
    assert ended.code == 1
    assert "CPU only" in ended.err


# -------------------------------------------------------------------------- files and faults


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


def test_a_fault_of_ours_says_so(run: Run, lung: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("really")

    monkeypatch.setattr("riskset.fit_file.write_fit", fail)
    ended = run("fit", lung, "--id", "id", "--out", "fit.json")
    assert ended.code == 1
    assert "fault of riskset" in ended.err
    assert "ZeroDivisionError: really" in ended.err
    assert "Traceback" not in ended.err
    monkeypatch.setenv("RISKSET_TRACEBACK", "1")
    assert "Traceback" in run("fit", lung, "--id", "id", "--out", "fit.json").err


def test_bad_simulations(run: Run) -> None:
    ended = run("simulate", "cox", "--rows", 0, "--columns", 3, "--out", "cohort")
    assert ended.code == 2
    assert "--rows must be a whole number of at least 1" in ended.err
    assert not Path("cohort").exists()
    Path("file").write_text("")
    assert run("simulate", "cox", "--rows", 5, "--columns", 3, "--out", "file").code == 2


def test_info_and_version(run: Run) -> None:
    assert run("--version").out == f"riskset {rs.__version__}\n"
    told = run("info").out
    for word in ("riskset", "Python", "numpy", "numba", "threads", "cpu"):
        assert word in told


@pytest.mark.parametrize("command", ["fit", "path", "predict", "simulate", "demo", "info"])
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


# ------------------------------------------------------------------------- what is overwritten


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


# --------------------------------------------------------------------------------- faults of disks


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
    assert "cannot read 'long.csv': no permission" in ended.err


def test_a_full_disk_is_named(run: Run, lung: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    ended = run("fit", lung, "--id", "id", "--out", "fit.json")
    assert ended.code == 1
    assert "fit.json: cannot be written: No space left on device." in ended.err
    assert not list(Path().glob(".fit*"))


# ----------------------------------------------------------------------------- what is printed


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


@pytest.mark.parametrize("digits", ["99999999999999999999", "400", "-1"])
def test_decimals_are_bounded(run: Run, lung: Path, digits: str) -> None:
    ended = run("fit", lung, "--id", "id", "--time-digits", digits, "--out", "fit.json")
    assert ended.code == 2
    assert "--time-digits must lie between 0 and 15" in ended.err


@pytest.mark.parametrize("again", [["--factor", "age=2"], ["--unpenalized", "age"]])
def test_a_penalty_is_given_once(run: Run, lung: Path, again: list[str]) -> None:
    common = ["fit", lung, "--id", "id", "--penalty", "l1", "--strength", 1, "--out", "fit.json"]
    ended = run(*common, "--factor", "age=3", *again)
    assert ended.code == 2
    assert "the penalty of 'age' was given twice" in ended.err


def test_dropping_twice_is_dropping(run: Run, lung: Path) -> None:
    options = ["--id", "id", "--drop", "age", "--drop", "age", "--out", "fit.json"]
    assert run("fit", lung, *options).code == 0
    assert "age" not in fit_json()["coef"]


def test_a_format_that_is_no_number(run: Run, lung: Path) -> None:
    Path("bad.json").write_text('{"riskset": "1", "format": "x"}')
    ended = run("predict", "bad.json", lung, "--times", "1", "--out", "p.csv")
    assert ended.code == 2
    assert "is not a fit written by riskset" in ended.err
