"""The command line of studies: an example that runs, estimates, faults with their line."""

import json
import re
from pathlib import Path

import pytest

from cli.runs import Run
from riskset.cli.study import DIAGNOSTICS, _failure
from riskset.cli.terminal import plain_number
from riskset.study import StudyResults

TEXT = """
title: Catheters
data: {people: PATH, treatment: swang1, covariates: {columns: [num_age, num_aps1]}}
exposures: {catheter: {value: 1}, none: {value: 0}}
comparisons: [{target: catheter, comparator: none}]
outcomes: {death: {time: time, event: event, label: Death}}
analyses:
  overlap:
    propensity: {penalty: none, cross_validate: false}
    weight: {}
"""


def test_run_check_and_example(run: Run, tmp_path: Path) -> None:
    told = run("study", "example")
    assert told.code == 0
    Path("study.yaml").write_text(told.out)
    told = run("study", "check", "study.yaml")
    assert told.code == 0
    assert "1 comparison x 1 outcome x 5 analyses" in told.out
    (place,) = re.findall(r"people: (\S+)", Path("study.yaml").read_text())
    Path("small.yaml").write_text(TEXT.replace("PATH", place))
    told = run("study", "run", "small.yaml", "--out", "out")
    assert told.code == 0, told.err
    assert all(line.startswith("study: ") for line in told.err.splitlines())
    assert max(map(len, told.out.splitlines())) <= 80
    found = StudyResults.open("out")
    (row,) = found.rows("estimates", role="main")
    assert f"{row['hr']:.2f}" in told.out
    assert "1,486/2,236" in told.out
    assert run("study", "run", "small.yaml", "--out", "out", "--quiet").out == ""
    told = run("study", "report", "out", "--curves", "survival")
    assert told.code == 0, told.err
    assert "Proportion without the outcome" in Path("out/report.html").read_text("utf-8")


def test_why_there_is_no_estimate_is_told(run: Run) -> None:
    (place,) = re.findall(r"people: (\S+)", run("study", "example").out)
    limits = "diagnostics: {max_mdrr: 1.0001}\n"
    Path("study.yaml").write_text(TEXT.replace("PATH", place) + limits)
    told = " ".join(run("study", "run", "study.yaml", "--out", "withheld").out.split())
    (check,) = StudyResults.open("withheld").rows("diagnostics", verdict="fail")
    assert check["name"] == "mdrr"
    why = "withheld, because the smallest detectable hazard ratio is"
    assert f"Death, overlap: {why} {plain_number(check['value'], 3)} (limit 1.00)." in told
    Path("study.yaml").write_text(TEXT.replace("PATH", place).replace("value: 1", "value: yes"))
    told = " ".join(run("study", "run", "study.yaml", "--out", "empty").out.split())
    assert "Death, overlap: no one has `yes` (catheter) in the column 'swang1'" in told
    assert "'nowhere' is not a folder." in run("study", "report", "nowhere").err


def test_a_failed_diagnostic_may_have_a_hidden_value() -> None:
    check = {"name": "mdrr", "value": 12.3, "limit": 10.0}
    known, hidden = (_failure(check | {"value": value}, "odds ratio") for value in (12.3, None))
    assert known == "smallest detectable odds ratio is 12.3 (limit 10.0)"
    assert hidden == "smallest detectable odds ratio is beyond its limit (limit 10.0)"
    assert set(DIAGNOSTICS) >= {"balance", "ease", "mdrr"}


@pytest.mark.parametrize(
    ("kinds", "name"), [(["logistic"], "odds ratio"), (["poisson", "cox"], "ratio")]
)
def test_the_effect_has_the_name_of_its_model(run: Run, kinds: list[str], name: str) -> None:
    (place,) = re.findall(r"people: (\S+)", run("study", "example").out)
    own = [f"  {kind}:\n    propensity: none\n    model: {{kind: {kind}}}\n" for kind in kinds]
    text = TEXT.replace("PATH", place).split("analyses:\n")[0] + "analyses:\n" + "".join(own)
    Path("study.yaml").write_text(text + "diagnostics: {min_equipoise: 0, max_smd: 9}\n")
    told = run("study", "run", "study.yaml", "--out", "out")
    assert told.code == 0, told.err
    head = next(line for line in told.out.splitlines() if "95% interval" in line)
    assert re.split(r" {2,}", head.strip())[:4] == ["outcome", "analysis", "outcomes", name]
    assert "hazard" not in told.out


def test_faults_end_with_2_and_write_nothing(run: Run) -> None:
    Path("study.yaml").write_text(TEXT.replace("weight: {}", "wieght: {}"))
    for command in (("run", "study.yaml", "--out", "out"), ("check", "study.yaml")):
        told = run("study", *command)
        assert told.code == 2
        assert "study.yaml, line 10, analyses.overlap: unknown key 'wieght'." in told.err
        assert "did you mean 'weight'?" in told.err
    assert not Path("out").exists()
    told = run("study", "check", "nowhere.yaml")
    assert told.code == 2
    assert "riskset study example" in told.err


def test_an_imported_specification(run: Run, tmp_path: Path) -> None:
    one = {
        "analysisId": 1,
        "description": "Crude",
        "getDbCohortMethodDataArgs": {"unheardOf": 3},
        "fitOutcomeModelArgs": {"modelType": "cox"},
    }
    comparison = {"targetId": 1, "comparatorId": 2, "outcomes": [{"outcomeId": 3}]}
    content = {"cmAnalysisList": [one], "targetComparatorOutcomesList": [comparison]}
    (tmp_path / "spec.json").write_text(json.dumps(content))
    told = run("study", "import", str(tmp_path / "spec.json"), "--out", str(tmp_path / "out"))
    assert told.code == 0
    assert "study.yaml" in told.out
    assert "1 setting has no counterpart" in told.out
    assert "getDbCohortMethodDataArgs.unheardOf: riskset does not know" in " ".join(
        told.out.split()
    )
    told = run("study", "import", str(tmp_path / "none.json"), "--out", str(tmp_path / "out"))
    assert told.code == 2
    assert "cannot be read" in told.err
