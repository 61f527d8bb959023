"""``riskset fit --interval bootstrap``: in the file, on the terminal and in pictures."""

from pathlib import Path

import pytest

import riskset as rs
from cli.runs import Run, fit_json

ASKED = ["--interval", "bootstrap", "--replicates", 60]


def test_the_file_holds_the_intervals_of_the_model(run: Run, lung: Path) -> None:
    ended = run(
        "fit", lung, "--id", "id", *ASKED, "--interval-type", "bca", "--seed", 7,
        "--parameter", "age", "--level", "0.9", "--plot", "p", "--out", "fit.json",
    )  # fmt: skip
    assert (ended.code, ended.err) == (0, "")
    model = rs.Cox().fit(rs.read_dataset(lung, time="time", event="event", id="id"))
    expected = model.bootstrap(60, 7, parameters="age").interval(0.9, "bca")
    lower, upper = expected["age"]
    assert fit_json()["interval"] == {
        "method": "bootstrap",
        "level": 0.9,
        "type": "bca",
        "replicates": 60,
        "seed": 7,
        "unit": "row",
        "statuses": {"converged": 60},
        "retuned": False,
        "bounds": {"age": {"lower": lower, "upper": upper}},
    }
    assert "90% interval" in ended.out
    assert Path("p/bootstrap.png").stat().st_size > 5000
    assert Path("p/hazard_ratios.png").exists()


def test_beside_a_penalty(run: Run, lung: Path) -> None:
    penalty = ["--penalty", "l1", "--strength", 5]
    ended = run(
        "fit", lung, "--id", "id", *penalty, "--unpenalized", "sex", *ASKED, "--out", "fit.json"
    )
    assert (ended.code, ended.err) == (0, "")
    interval = fit_json()["interval"]
    assert list(interval["bounds"]) == ["sex"]
    assert interval["bounds"]["sex"]["lower"] < fit_json()["coef"]["sex"]
    ended = run("fit", lung, "--id", "id", *penalty, *ASKED, "--out", "other.json")
    assert ended.code == 2
    assert "--interval bootstrap is for covariates without a penalty" in ended.err
    assert not Path("other.json").exists()


def test_several_covariates_have_one_picture(run: Run, lung: Path) -> None:
    ended = run("fit", lung, "--id", "id", *ASKED, "--plot", "p", "--out", "fit.json")
    assert ended.code == 0
    assert "bootstrap.png shows" in ended.err
    assert "--parameter" in ended.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--interval", "bootstrap", "--replicates", 38], "needs at least 39 replicates"),
        (["--interval", "bootstrap", "--level", "0.99", "--replicates", 100], "at least 199"),
        (["--interval", "bootstrap", "--seed", -1], "--seed must be a whole number"),
        (["--replicates", 100], "--replicates needs --interval bootstrap"),
        (["--interval", "wald", "--interval-type", "bca"], "--interval-type needs --interval boot"),
        (["--interval", "bootstrap", "--retune"], "--retune needs --cv"),
        (["--interval", "wald", "--retune"], "--retune needs --interval bootstrap"),
        (["--interval", "wald", "--seed", 3], "--seed needs --interval bootstrap"),
    ],
)
def test_what_cannot_be_meant(run: Run, lung: Path, options: list, message: str) -> None:
    ended = run("fit", lung, "--id", "id", *options, "--out", "fit.json")
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert not Path("fit.json").exists()


@pytest.mark.slow
def test_the_choice_of_the_penalty_repeated(run: Run, lung: Path) -> None:
    chosen = [
        "--penalty", "l1", "--unpenalized", "sex", "--cv", "--folds", 3, "--repeats", 1,
        "--strength", 2, "--strength", 10,
    ]  # fmt: skip
    asked = ["--interval", "bootstrap", "--replicates", 39, "--retune", "--quiet"]
    ended = run("fit", lung, "--id", "id", *chosen, *asked, "--out", "fit.json")
    assert (ended.code, ended.out) == (0, "")
    interval = fit_json()["interval"]
    assert interval["retuned"] is True
    data = rs.read_dataset(lung, time="time", event="event", id="id")
    kind = rs.L1(unpenalized=["sex"])
    model = rs.CoxCV(kind, penalties=[2.0, 10.0], folds=3, repeats=1).fit(data)
    found = model.bootstrap(39, retune=True)
    assert len({penalty.l1 for penalty in found.penalties or ()}) == 2
    assert tuple(interval["bounds"]["sex"].values()) == found.interval()["sex"]
