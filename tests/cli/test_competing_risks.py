"""Fine and Gray's model from a table to predictions."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import riskset as rs
from cli.runs import GOLDEN, Run
from riskset.estimators.saving import read_fit


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


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Plasma cell malignancy and death by name."""
    frame = pd.read_csv(GOLDEN / "mgus2.csv")
    names = np.array(["alive", "progression", "death of other"])
    path = tmp_path / "labelled.csv"
    frame.assign(event=names[frame["event"]]).to_csv(path, index=False)
    return path


def test_the_model_is_told_with_its_cause(run: Run, labelled: Path) -> None:
    options = ["--censored", "alive", "--cause", "death of other"]
    cox = run("fit", labelled, *options, "--out", "fit.json").out
    assert "Cox, Breslow ties, cause 'death of other', other causes censored" in cox
    options += ["--model", "finegray", "--n-penalties", "2"]
    path = run("path", labelled, *options).out
    assert "Fine-Gray, cause 'death of other', Breslow ties" in path


@pytest.mark.parametrize("model", ["cox", "finegray"])
def test_several_labels_need_a_cause(run: Run, labelled: Path, model: str) -> None:
    ended = run("fit", labelled, "--censored", "alive", "--model", model, "--out", "fit.json")
    assert ended.code == 2
    causes = "the events have the causes 'death of other', 'progression'"
    assert f"{causes}, but --cause does not name the one to study" in ended.err


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


def test_late_entry_of_people(run: Run) -> None:
    table = GOLDEN / "late" / "pbcseq.csv"
    roles = ("--time", "stop", "--entry", "start", "--cluster", "id")
    options = (*roles, "--model", "finegray", "--cause", "2", "--censoring-ties", "finegray")
    ended = run("fit", table, *options, "--out", "fit.json")
    assert ended.code == 2
    assert "use --person cluster if the clusters are people" in ended.err
    assert run("fit", table, *options, "--person", "cluster", "--out", "fit.json").code == 0
    wanted = json.loads((GOLDEN / "late" / "finegray_late.json").read_text())["pbcseq_2"]
    document = json.loads(Path("fit.json").read_text())
    np.testing.assert_allclose(list(document["coef"].values()), wanted["coef"], rtol=1e-6)
    again, _ = read_fit(Path("fit.json"))
    assert isinstance(again, rs.FineGray)
    assert again.person == "cluster"
    ended = run("fit", table, *roles, "--person", "cluster", "--cause", "2", "--out", "fit.json")
    assert "--person needs --model finegray" in ended.err
