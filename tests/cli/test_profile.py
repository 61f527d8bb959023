"""``riskset fit --interval profile``: intervals beside those of other programs, and in the file."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import riskset as rs
from cli.runs import CASES, LUNG, Run, fit_json
from riskset.plot import profile_likelihood


def test_profile_beside_a_penalty_agrees_with_cyclops(run: Run, lung: Path) -> None:
    golden = LUNG["cyclops_l1"]
    options = ["--penalty", "l1", "--variance", golden["variance"], "--unpenalized", "sex"]
    ended = run("fit", lung, "--id", "id", *options, "--interval", "profile", "--out", "fit.json")
    assert (ended.code, ended.err) == (0, "")
    interval = fit_json()["interval"]
    assert (interval["method"], interval["level"]) == ("profile", 0.95)
    bounds = interval["bounds"]
    assert list(bounds) == ["sex"]  # the others have a penalty
    for side in ("lower", "upper"):  # Cyclops stops its search at 1e-3
        assert bounds["sex"][side] == pytest.approx(golden["profile_ci"][side], abs=1e-3)
    ratios = np.exp([bounds["sex"]["lower"], bounds["sex"]["upper"]])
    assert f"{ratios[0]:.3f} to {ratios[1]:.3f}" in ended.out


def test_infinite_ends(run: Run) -> None:
    (table,) = CASES.glob("01-*/input.csv")
    ended = run("fit", table, "--interval", "profile", "--parameter", "x", "--out", "fit.json")
    assert ended.code == 0
    bounds = fit_json()["interval"]["bounds"]["x"]
    assert bounds["lower"] == "-inf"
    assert bounds["upper"] == pytest.approx(-0.5907028712016905, rel=1e-8)
    assert f"0 to {np.exp(-0.5907028712016905):.3f}" in ended.out


def test_level_and_several_parameters(run: Run, lung: Path) -> None:
    asked = ["--interval", "profile", "--parameter", "age", "--parameter", "sex"]
    run("fit", lung, "--id", "id", *asked, "--out", "wide.json")
    run("fit", lung, "--id", "id", *asked, "--level", "0.5", "--plot", "p", "--out", "thin.json")
    wide, thin = (fit_json(Path(name))["interval"] for name in ("wide.json", "thin.json"))
    assert thin["level"] == 0.5
    assert list(wide["bounds"]) == list(thin["bounds"]) == ["age", "sex"]
    for name, (lower, upper) in ((n, b.values()) for n, b in thin["bounds"].items()):
        assert wide["bounds"][name]["lower"] < lower < upper < wide["bounds"][name]["upper"]
    assert Path("p/hazard_ratios.png").exists()
    assert Path("p/profile.png").stat().st_size > 5000


def test_the_picture_is_that_of_the_first_interval(
    run: Run, lung: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict = {}

    def record(profile: rs.Profile, **words: Any) -> Axes:
        drawn.update(words, profile=profile)
        return profile_likelihood(profile, **words)

    monkeypatch.setattr("riskset.cli.pictures.profile_likelihood", record)
    asked = ["--interval", "profile", "--plot", "p", "--out", "fit.json"]
    ended = run("fit", lung, "--id", "id", *asked)
    assert ended.code == 0
    assert "profile.png shows 'age' of 4 covariates" in ended.err
    assert drawn["profile"].parameter == "age"
    found = fit_json()
    estimate, bounds = found["coef"]["age"], found["interval"]["bounds"]["age"]
    assert drawn["interval"] == pytest.approx((bounds["lower"], bounds["upper"]))
    profile = drawn["profile"]
    assert profile.maximum == pytest.approx(estimate)
    assert profile.log_likelihood_maximum == pytest.approx(found["log_likelihood"], rel=1e-12)
    # Far enough on both sides that the curve leaves the picture, which is three cuts deep.
    ends = profile.log_likelihood[[0, -1]]
    assert ends.max() < profile.log_likelihood_maximum - 3 * 3.8415 / 2
    (table,) = CASES.glob("01-*/input.csv")
    ended = run("fit", table, "--interval", "profile", "--plot", "q", "--out", "inf.json")
    assert (drawn["profile"].maximum, drawn["interval"][0]) == (-np.inf, -np.inf)
    assert Path("q/profile.png").stat().st_size > 5000


def test_a_penalised_covariate_needs_the_flag(run: Run, lung: Path) -> None:
    penalty = ["--penalty", "l1", "--strength", 5, "--unpenalized", "sex"]
    asked = ["--interval", "profile", "--parameter", "age", "--plot", "p", "--out", "fit.json"]
    ended = run("fit", lung, "--id", "id", *penalty, *asked)
    assert ended.code == 2
    assert "'age' is penalised" in ended.err
    assert "--parameter age --penalized" in ended.err
    ended = run("fit", lung, "--id", "id", *penalty, *asked, "--penalized")
    assert (ended.code, ended.err) == (0, "")
    data = rs.read_dataset(lung, time="time", event="event", id="id")
    model = rs.Cox(rs.L1(5.0, unpenalized=["sex"])).fit(data)
    expected = model.confidence_interval("age", method="profile", penalized=True)["age"]
    assert tuple(fit_json()["interval"]["bounds"]["age"].values()) == pytest.approx(expected)
    # The interval of a coefficient at 0 is shown, too.
    far = ["--penalty", "l1", "--strength", 500, "--unpenalized", "sex"]
    ended = run("fit", lung, "--id", "id", *far, *asked[:4], "--penalized", "--out", "far.json")
    assert fit_json(Path("far.json"))["coef"]["age"] == 0
    lower, upper = fit_json(Path("far.json"))["interval"]["bounds"]["age"].values()
    assert f"{np.exp(lower):.3f} to {np.exp(upper):.3f}" in ended.out
    boot = ["--interval", "bootstrap", "--replicates", 39, "--parameter", "age", "--penalized"]
    ended = run("fit", lung, "--id", "id", *penalty, *boot, "--out", "boot.json")
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--penalized"], "--penalized needs --interval profile or bootstrap"),
        (["--interval", "wald", "--penalized"], "--penalized needs --interval profile"),
        (["--interval", "profile", "--penalized"], "--penalized needs --parameter"),
    ],
)
def test_the_flag_alone_means_nothing(run: Run, lung: Path, options: list, message: str) -> None:
    ended = run("fit", lung, "--id", "id", *options, "--out", "fit.json")
    assert ended.code == 2
    assert message in ended.err


def test_finegray(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=200)
    time = np.ceil(20 * rng.exponential(np.exp(-0.5 * x)))
    frame = pd.DataFrame({"time": time, "event": rng.choice(3, 200), "x": x})
    frame.to_csv(tmp_path / "d.csv", index=False)
    ended = run(
        "fit", "d.csv", "--model", "finegray", "--cause", "1", "--interval", "profile",
        "--out", "fit.json",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    found = fit_json()
    assert found["interval"]["bounds"]["x"]["lower"] < found["coef"]["x"]
