"""``riskset fit --cv``: the same as in Python, from columns of a table."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from cli.runs import CASES, Run, fit_json

COMMON = ("--time", "time", "--event", "event", "--penalty", "l2", "--out", "fit.json")
CASE = CASES / "20-cv-folds-without-events"


def test_case_20_from_a_column_of_folds(run: Run) -> None:
    expected = json.loads((CASE / "expected.json").read_text())["results"]
    strengths = [f"--strength={row['l2']}" for row in expected]
    ended = run(
        *("fit", CASE / "input.csv", *COMMON, "--cv", "--fold", "fold"),
        *("--drop", "fold_all_events_in_1", "--score", "difference", *strengths, "--plot", "."),
    )
    assert ended.code == 0, ended.err
    found = fit_json()
    assert list(found["coef"]) == ["x1", "x2"]
    found = found["cross_validation"]
    curve = {point["l2"]: point for point in found["curve"]}
    for row in expected:
        point = curve[row["l2"]]
        values = [both[0] for both in row["per_fold_vvh_and_heldout"]]
        assert_allclose(point["scores"], values, atol=1e-4)
        assert_allclose(point["mean"], np.mean(values), atol=1e-4)
    best = max(expected, key=lambda row: row["vvh_total"])
    assert found["best"] == {"l1": 0.0, "l2": best["l2"]}
    assert fit_json()["penalty"]["l2"] == best["l2"]
    assert found["fold_of_replicate"] == [1, 2, 3, 4, 5]
    assert (found["folds"], found["repeats"], found["score"]) == (5, 1, "difference")
    assert "by cross-validation" in ended.out
    assert Path("cross_validation.png").stat().st_size > 5000


def test_it_is_what_python_does(run: Run, lung: Path) -> None:
    frame = pd.read_csv(lung).dropna()
    frame["site"] = np.arange(len(frame)) % 12
    frame.to_csv("clean.csv", index=False)
    columns = ("--time", "time", "--event", "event", "--id", "id", "--out", "fit.json")
    ended = run(
        *("fit", "clean.csv", *columns, "--penalty", "l1", "--unpenalized", "sex", "--cv"),
        *("--folds", 4, "--repeats", 2, "--groups", "site", "--rule", "1se", "--seed", 3),
        *("--checkpoint", "work.jsonl"),
    )
    assert ended.code == 0, ended.err
    data = rs.Dataset.from_frame(frame.drop(columns="site"), time="time", event="event", id="id")
    kind = rs.L1(unpenalized=["sex"])
    site = frame["site"].to_numpy()
    model = rs.CoxCV(kind, folds=4, repeats=2, groups=site, rule="1se", seed=3).fit(data)
    found = fit_json()
    assert_allclose(found["penalty"]["l1"], model.best_penalty_.l1, rtol=1e-12)
    assert "site" not in found["coef"]
    assert_allclose(list(found["coef"].values()), model.coef_, rtol=1e-10, atol=1e-12)
    means = [point["mean"] for point in found["cross_validation"]["curve"]]
    assert_allclose(means, model.cross_validation_.mean, rtol=1e-12)
    kept = len(Path("work.jsonl").read_text().splitlines()) - 1
    assert kept == model.cross_validation_.scores.size
    predicted = run("predict", "fit.json", "clean.csv", "--times", "100", "--out", "p.csv")
    assert predicted.code == 0, predicted.err


def test_what_is_told_of_the_search(run: Run) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=300)
    table = {"x": x, "time": rng.exponential(np.exp(-x)), "event": 1}
    pd.DataFrame(table).to_csv("strong.csv", index=False)  # the weaker the penalty, the better
    ended = run(
        *("fit", "strong.csv", "--out", "fit.json", "--penalty", "l1", "--cv", "--folds", 3),
        *("--repeats", 1, "--strength", 90, "--strength", 10.00012),
    )
    assert ended.code == 0, ended.err
    told = " ".join(ended.out.split())
    assert "(tolerance 1e-05)" in told
    assert "the weakest penalty that was tried (--strength 10.00012)" in told
    (note,) = [w for w in fit_json()["warnings"] if w["code"] == "edge_of_search"]
    assert "(--strength 10.00012)" in note["message"]
    seconds = fit_json()["seconds"]
    assert list(seconds) == ["read", "prepare", "cross_validation", "fit"]
    assert f"cross-validation {seconds['cross_validation']:.2f}, fit" in told


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--penalty", "l1", "--glmnet-lambda", "0.05", "--glmnet-lambda", "0.9"], "0.05"),
        (["--penalty", "l2", "--variance", "0.001", "--variance", "0.25"], "0.25"),
        (
            ["--penalty", "elasticnet", "--l1-ratio", "0.5"]
            + ["--glmnet-lambda", "0.05", "--glmnet-lambda", "0.9"],
            "0.05",
        ),
    ],
)
def test_penalties_are_told_as_they_were_typed(run: Run, given: list[str], words: str) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=300)
    table = {"x": x, "time": rng.exponential(np.exp(-x)), "event": 1}
    pd.DataFrame(table).to_csv("t.csv", index=False)
    ended = run(
        *("fit", "t.csv", "--out", "fit.json", "--cv", "--folds", 3),
        *("--repeats", 1, *given),
    )
    assert ended.code == 0, ended.err
    option = given[-2]
    assert f"penalty that was tried ({option} {words}):" in " ".join(ended.out.split())


def test_events_are_spread_over_the_folds(run: Run, lung: Path) -> None:
    asked = ("--penalty", "l1", "--strength", 5, "--cv", "--folds", 7, "--repeats", 1)
    ended = run("fit", lung, "--id", "id", *asked, "--stratify", "--out", "fit.json")
    assert ended.code == 0, ended.err
    data = rs.read_dataset(lung, time="time", event="event", id="id")
    model = rs.CoxCV(penalties=[5.0], folds=7, repeats=1, stratify=True).fit(data)
    scores = fit_json()["cross_validation"]["curve"][0]["scores"]
    assert_allclose(scores, model.cross_validation_.scores[0], rtol=1e-10)


def test_fine_gray_on_a_grid(run: Run) -> None:
    rng = np.random.default_rng(2)
    table = {f"x{j}": rng.normal(size=150) for j in range(4)}
    table |= {"time": rng.exponential(size=150), "event": rng.choice([0, 1, 2], 150)}
    pd.DataFrame(table).to_parquet("t.parquet")
    ended = run(
        *("fit", "t.parquet", *COMMON, "--model", "finegray", "--cause", 2, "--cv", "--quiet"),
        *("--search", "grid", "--n-penalties", 5, "--folds", 3, "--repeats", 1),
        *("--censoring", "full"),
    )
    assert ended.code == 0, ended.err
    found = fit_json()["cross_validation"]
    assert len(found["curve"]) == 5
    assert found["censoring"] == "full"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--folds", "5"], "--folds needs --cv"),
        (["--strength", "1", "--strength", "2"], "--strength was given 2 times"),
        (["--strength", "1", "--seed", "1"], "--seed needs --interval bootstrap or --cv"),
        (["--cv", "--strength", "1", "--variance", "2"], "were given together"),
        (["--cv", "--fold", "fold", "--folds", "5"], "--folds and --fold were given together"),
        (["--stratify", "--strength", "1"], "--stratify needs --cv"),
        (["--cv", "--fold", "fold", "--stratify"], "--stratify and --fold were given together"),
        (["--cv", "--fold", "foldd"], "--fold column 'foldd' was not found in input.csv"),
        (["--cv", "--groups", "zz"], "--groups column 'zz' was not found in input.csv"),
        (["--cv", "--fold", "one"], "fold ids must have at least two different values"),
        (
            ["--cv", "--strength", "3", "--search", "grid"],
            "--search and 1 penalty to score were given together",
        ),
        (
            ["--cv", "--strength", "3", "--strength", "5", "--n-penalties", "7"],
            "--n-penalties and 2 penalties to score",
        ),
        (
            ["--cv", "--variance", "3", "--min-ratio", "0.1"],
            "--min-ratio and 1 penalty to score were given",
        ),
        (["--cv", "--strength", "3", "--rule", "1se"], "--rule chooses among penalties"),
        (["--cv", "--n-penalties", "7"], "--n-penalties needs --search grid"),
        (["--cv", "--censoring", "full"], "--censoring needs --model finegray"),
        (["--cv", "--fold", "fold", "--seed", "3"], "--seed and --fold were given together"),
        (["--cv", "--folds", "20"], "take fewer folds, or --score difference"),
        (["--cv", "--folds", "50"], "20 rows of positive weight, too few for 50 folds"),
        (["--cv", "--penalty", "none"], "--cv needs a penalty"),
    ],
)
def test_what_does_not_go_together(run: Run, options: list[str], message: str) -> None:
    frame = pd.read_csv(CASE / "input.csv")
    frame.assign(one=1).to_csv("input.csv", index=False)
    ended = run("fit", "input.csv", *COMMON, *options)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())
    assert not Path("fit.json").exists()


def test_an_engine_gives_the_same_answer(run: Run) -> None:
    fit = ("fit", CASE / "input.csv", *COMMON, "--drop", "fold_all_events_in_1", "--drop", "fold")
    options = ("--cv", "--folds", 3, "--repeats", 1, "--strength", 1, "--strength", 4)
    found = []
    for engine in ((), ("--engine", "joblib")):
        ended = run(*fit, *options, *engine)
        assert ended.code == 0, ended.err
        found.append(fit_json()["cross_validation"]["curve"])
    assert found[0] == found[1]
    ended = run(*fit, "--strength", 1, "--engine", "dask")
    assert ended.code == 2
    assert "--engine needs --interval bootstrap or --cv" in ended.err


def test_one_penalty_is_scored_not_chosen(run: Run, lung: Path) -> None:
    asked = ("--penalty", "l1", "--cv", "--folds", 3, "--repeats", 1, "--out", "fit.json")
    one = run("fit", lung, "--id", "id", *asked, "--strength", 5)
    two = run("fit", lung, "--id", "id", *asked, "--strength", 5, "--strength", 9)
    assert "l2 = 0, given, and scored by cross-validation" in one.out
    assert "l2 = 0, chosen by cross-validation" in two.out


def test_a_column_of_groups_keeps_its_other_role(run: Run, lung: Path) -> None:
    """Also one that OHDSI's names give it, or that concerns censoring."""
    frame = pd.read_csv(lung).dropna()
    site = np.arange(len(frame)) % 5
    frame = frame.rename(columns={"id": "rowId"}).assign(stratumId=site, site=site % 3)
    frame.to_csv("ohdsi.csv", index=False)
    asked = ("fit", "ohdsi.csv", "--penalty", "l1", "--cv", "--folds", 3, "--repeats", 1)
    ended = run(
        *asked, "--strength", 5, "--groups", "stratumId", "--out", "fit.json", "--drop", "site"
    )
    assert ended.code == 0, ended.err
    assert "5 strata" in ended.out
    options = ("--groups", "site", "--censoring-group", "site", "--model", "finegray")
    ended = run(*asked, "--strength", 5, *options, "--out", "fit.json")
    assert ended.code == 0, ended.err
    assert "site" not in fit_json()["coef"]


def test_a_gradient_of_0_is_the_null_model_and_no_mistake(run: Run) -> None:
    rows = [f"{t},{t % 2},{x}" for t in range(1, 31) for x in (1, -1)]
    Path("t.csv").write_text("time,event,x\n" + "\n".join(rows) + "\n")
    ended = run("fit", "t.csv", *COMMON, "--cv", "--folds", "5", "--repeats", "1")
    assert ended.code == 0, ended.err
    assert "no penalised covariate improves the likelihood" in " ".join(ended.out.split())
    assert abs(fit_json()["coef"]["x"]) < 1e-12
