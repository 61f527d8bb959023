"""``riskset fit --interval profile``: intervals beside those of other programs, and in the file."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.runs import CASES, LUNG, Run, fit_json


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
