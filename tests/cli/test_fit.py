"""``riskset fit``: its numbers beside those of other programs, and the document it writes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import riskset as rs
from cli.runs import CASES, GOLDEN, LUNG, Run, fit_json
from riskset.datasets import rhc_path


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
    assert list(found["seconds"]) == ["read", "prepare", "fit", "interval"]
    assert "robust_standard_error" not in found


def test_coefficients_are_fixed(run: Run, lung: Path) -> None:
    fixed = ["--fixed", "ph.ecog=0.4", "--fixed", "age=0.01"]
    ended = run("fit", lung, "--id", "id", *fixed, "--out", "fit.json")
    assert ended.code == 0, ended.err
    frame = pd.read_csv(lung)
    names = LUNG["columns"]
    y = rs.Surv(frame["time"], frame["event"])
    expected = rs.Cox(fixed={"ph.ecog": 0.4, "age": 0.01}).fit(frame[names], y)
    found = fit_json()
    assert list(found["coef"].values()) == pytest.approx(expected.coef_.tolist(), rel=1e-7)
    assert found["fixed"] == {"ph.ecog": 0.4, "age": 0.01}
    assert found["standard_error"]["age"] is None
    assert "2 fixed" in ended.out
    shown = [line.split() for line in ended.out.splitlines() if line.split()[:1] == ["age"]]
    assert shown[0][-1] == "fixed"
    predicted = run("predict", "fit.json", lung, "--times", "365", "--out", "risk.csv")
    assert predicted.code == 0, predicted.err
    survival = expected.predict_survival_function(frame[names], 365.0)[:, 0]
    found = pd.read_csv("risk.csv")
    assert any(np.allclose(found[name], survival) for name in found.columns)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["age"], "NAME=VALUE"),
        (["age=much"], "NAME=VALUE"),
        (["age=1", "age=2"], "fixed twice"),
        (["height=1"], "height"),
    ],
)
def test_what_cannot_be_fixed_is_refused(run: Run, lung: Path, texts: list, words: str) -> None:
    options = [part for text in texts for part in ("--fixed", text)]
    ended = run("fit", lung, "--id", "id", *options, "--out", "fit.json")
    assert ended.code != 0
    assert words in ended.err


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
    refused = run("fit", "causes.csv", "--model", "finegray", "--cause", 5, "--out", "fit.json")
    assert "has code 5 (codes that occur: 0, 1, 2)" in refused.err
    assert "pass the event to study as --cause (one of 1, 2)" in refused.err
    frame["event"] = np.where(frame["event"] > 0, "dead", "alive")
    frame.to_csv("labelled.csv", index=False)
    assert run("fit", "labelled.csv", "--censored", "alive", "--out", "fit.json").code == 0
    assert fit_json()["cause"] == "dead"


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


def test_pictures(run: Run, lung: Path) -> None:
    run("fit", lung, "--id", "id", "--interval", "wald", "--out", "fit.json", "--plot", "p/q")
    run("path", lung, "--id", "id", "--n-penalties", 10, "--plot", "p/q")
    names = sorted(path.name for path in Path("p/q").iterdir())
    assert names == ["hazard_ratios.png", "path.png", "survival.png"]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in Path("p/q").iterdir())


def test_rounded_times(run: Run, lung: Path) -> None:
    frame = pd.read_csv(lung)
    rng = np.random.default_rng(1)
    jitter = rng.uniform(-1e-9, 1e-9, len(frame))
    frame.assign(time=frame["time"] + jitter).to_csv("near.csv", index=False)
    run("fit", lung, "--id", "id", "--out", "exact.json", "--quiet")
    rounded = ["--time-digits", 3, "--out", "near.json", "--quiet"]
    assert run("fit", "near.csv", "--id", "id", *rounded).code == 0
    assert fit_json(Path("near.json"))["coef"] == fit_json(Path("exact.json"))["coef"]


def test_dropping_twice_is_dropping(run: Run, lung: Path) -> None:
    options = ["--id", "id", "--drop", "age", "--drop", "age", "--out", "fit.json"]
    assert run("fit", lung, *options).code == 0
    assert "age" not in fit_json()["coef"]


def test_firth_is_that_of_python(run: Run, lung: Path) -> None:
    ended = run(
        "fit", lung, "--id", "id", "--firth", "--ties", "efron", "--interval", "profile",
        "--out", "fit.json",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert "Firth's penalised likelihood" in ended.out
    found = fit_json()
    assert (found["firth"], found["ties"]) == (True, "efron")
    frame = pd.read_csv(lung)
    x = frame[LUNG["columns"]]
    model = rs.Cox(firth=True, ties="efron").fit(x, rs.Surv(frame["time"], frame["event"]))
    np.testing.assert_allclose(list(found["coef"].values()), model.coef_, rtol=1e-10)
    ends = model.confidence_interval(method="profile")
    bounds = found["interval"]["bounds"]
    for k, name in enumerate(LUNG["columns"]):
        assert bounds[name]["lower"] == pytest.approx(ends.lower[k], rel=1e-8)
        assert bounds[name]["upper"] == pytest.approx(ends.upper[k], rel=1e-8)
    assert rs.load("fit.json").firth is True


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ties", "exact"], "--firth and --ties exact"),
        (["--model", "finegray", "--cause", "1"], "--firth needs --model cox"),
        (["--penalty", "l2", "--strength", "1"], "--firth cannot be combined with --penalty l2"),
        (["--interval", "robust"], "--interval robust is not available for --firth"),
        (["--interval", "bootstrap"], "--interval bootstrap is not available for --firth"),
        (["--solver", "ccd"], "--solver ccd does not fit --firth"),
        (["--cluster", "sex"], "no robust variance for --firth"),
    ],
)
def test_firth_refuses(run: Run, lung: Path, options: list[str], words: str) -> None:
    ended = run("fit", lung, "--id", "id", "--firth", "--out", "fit.json", *options)
    assert ended.code != 0
    assert words in " ".join(ended.err.replace("`", "").split())


def test_shared_frailties(run: Run, lung: Path) -> None:
    columns = ["--id", "id", "--cluster", "inst"]
    options = ["--frailty", "lognormal", "--frailty-method", "reml", "--ties", "efron"]
    frame = pd.read_csv(lung)
    frame["inst"] = frame["age"].astype(int) % 9
    frame.to_csv("clusters.csv", index=False)
    ended = run(
        "fit", "clusters.csv", *columns, *options, "--interval", "wald", "--out", "fit.json",
        "--plot", "pictures",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    names = LUNG["columns"]
    y = rs.Surv(frame["time"], frame["event"])
    expected = rs.CoxFrailty("lognormal", frailty_method="reml", ties="efron")
    expected.fit(frame[names], y, cluster=frame["inst"])
    found = fit_json()
    assert list(found["coef"].values()) == pytest.approx(expected.coef_.tolist(), rel=1e-6)
    errors = list(found["standard_error"].values())
    assert errors == pytest.approx(expected.standard_error_.tolist(), rel=1e-6)
    assert [float(label) for label in found["frailty"]["labels"]] == list(range(9))
    assert "lognormal of 9 clusters: variance" in ended.out
    predicted = run("predict", "fit.json", "clusters.csv", "--times", "365", "--out", "risk.csv")
    assert predicted.code == 0, predicted.err
    survival = expected.predict_survival_function(frame[names], 365.0)[:, 0]
    written = pd.read_csv("risk.csv")
    assert any(np.allclose(written[name], survival, rtol=1e-5) for name in written.columns)
    again = rs.load("fit.json")
    assert isinstance(again, rs.CoxFrailty)
    assert again.frailty_variance_ == pytest.approx(expected.frailty_variance_, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--frailty", "gamma"], "--cluster"),
        (["--frailty-variance", "1"], "--frailty-variance needs --frailty"),
        (
            ["--frailty", "gamma", "--ties", "exact"],
            "cannot be combined with --ties exact",
        ),
        (
            ["--frailty", "gamma", "--cv", "--penalty", "l1"],
            "cannot be combined with --penalty",
        ),
        (
            ["--frailty", "gamma", "--interval", "profile"],
            "cannot be combined with --interval",
        ),
        (["--frailty", "gamma", "--fixed", "age=1"], "cannot be combined with --fixed"),
        (["--frailty", "gamma", "--firth"], "cannot be combined with --firth"),
    ],
)
def test_what_frailties_do_not_go_with(
    run: Run, lung: Path, options: list[str], words: str
) -> None:
    ended = run("fit", lung, "--id", "id", *options, "--out", "fit.json")
    assert ended.code == 2
    assert words in ended.err
