"""What cannot be done ends with one message that names the place, and nothing is written."""

from pathlib import Path

import pandas as pd
import pytest

from cli.runs import Run
from riskset.kernels.cuda import device

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
    (
        ["--penalty", "elasticnet", "--variance", "1", "--l1-ratio", "0.5"],
        "--variance needs --penalty l1",
    ),
    (["--penalty", "l1", "--strength", "1", "--l1-ratio", "0.5"], "--l1-ratio needs"),
    (["--penalty", "l1", "--strength", "1", "--unpenalized", "sx"], "did you mean 'sex'"),
    (["--penalty", "l1", "--strength", "1", "--factor", "sex"], "must be NAME=VALUE"),
    (["--penalty", "l1", "--strength", "1", "--factor", "sex=big"], "must be NAME=VALUE"),
    (["--penalty", "l1", "--strength", "1", "--interval", "wald"], "not defined for a penalised"),
    (["--strength", "1"], "but --penalty is none"),
    (["--unpenalized", "sex"], "but --penalty is none"),
    (["--interval", "wald", "--parameter", "agee"], "did you mean 'age'"),
    (
        ["--penalty", "l1", "--strength", "1", "--interval", "profile", "--parameter", "age"],
        "'age' is penalised",
    ),
    (["--penalty", "l2", "--strength", "1", "--interval", "profile"], "'age' is penalised"),
    (["--parameter", "age"], "--parameter needs --interval"),
    (
        ["--interval", "wald", "--parameter", "age", "--parameter", "age"],
        "--parameter 'age' is named 2 times",
    ),
    (["--level", "0.9"], "--level needs --interval"),
    (["--interval", "wald", "--level", "95"], "--level must be between 0 and 1"),
    (["--interval", "bootstraps"], "bootstrap"),
    (["--duplicates", "sum"], "--duplicates needs --covariates"),
    (["--time", "tme"], "did you mean 'time'"),
    (["--strata", "hospital"], "'hospital' was not found in lung.csv"),
    (["--table", "t"], "lung.csv"),
    (["--covariates", "absent.parquet"], "absent.parquet"),
    (["--tol", "0"], "--tol must be between 0 and 1"),
    (["--max-iter", "0"], "--max-iter must be"),
    (["--threads", "0"], "--threads must be"),
    (["--cv"], "--cv needs a penalty"),
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


def test_no_graphics_card(run: Run, lung: Path) -> None:
    if device.why_no_device() is None:
        pytest.skip("there is a GPU")
    ended = run("fit", lung, "--id", "id", "--device", "cuda", "--out", "fit.json")
    assert ended.code == 1
    assert "Hint: " in ended.err
    assert "--device cpu" in ended.err or "riskset[cuda]" in ended.err


def test_a_fault_of_ours_says_so(run: Run, lung: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("really")

    monkeypatch.setattr("riskset.estimators.saving.write_fit", fail)
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


@pytest.mark.parametrize("digits", ["99999999999999999999", "400", "-1"])
def test_decimals_are_bounded(run: Run, lung: Path, digits: str) -> None:
    ended = run("fit", lung, "--id", "id", "--time-digits", digits, "--out", "fit.json")
    assert ended.code == 2
    assert "--time-digits must be between 0 and 15" in ended.err


@pytest.mark.parametrize("again", [["--factor", "age=2"], ["--unpenalized", "age"]])
def test_a_penalty_is_given_once(run: Run, lung: Path, again: list[str]) -> None:
    common = ["fit", lung, "--id", "id", "--penalty", "l1", "--strength", 1, "--out", "fit.json"]
    ended = run(*common, "--factor", "age=3", *again)
    assert ended.code == 2
    assert "the penalty of 'age' was given twice" in ended.err


def test_toy_cdm_has_no_columns(run: Run) -> None:
    ended = run("simulate", "toy-cdm", "--columns", 3, "--out", "toy")
    assert (ended.code, Path("toy").exists()) == (2, False)
    assert "toy-cdm does not have the option --columns" in ended.err
    ended = run("simulate", "toy-cdm", "--rows", 0, "--out", "toy")
    assert "--rows must be a whole number of at least 1" in ended.err
    of_cohort = (("--competing", 0.1), ("--treated", 0.2), ("--confounding", 1))
    for option in (*of_cohort, ("--treatment-apart",)):
        ended = run("simulate", "cox", "--rows", 9, "--columns", 3, *option, "--out", "x")
        assert ended.code == 2
        assert f"cox does not have the option {option[0]}" in ended.err
    assert "cox needs --columns" in run("simulate", "cox", "--rows", 5, "--out", "cohort").err
