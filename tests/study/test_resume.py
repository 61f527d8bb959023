"""A run that was killed goes on where it stopped, and ends with the same results."""

import json
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from parameters import rest_is_slow
from riskset.study.cache import StepCache, _save
from study.small import content, people

OUTCOMES = {f"outcome {k}": {"time": "days", "event": f"event{k}"} for k in range(4)}
ANALYSES = {"matched": {"match": {}}, "strata": {"stratify": {"k": 4}}}


def written(folder):
    """Contents of all results but the times of the run."""
    return {
        f"{part}/{path.name}": path.read_bytes()
        for part in ("results", "private")
        for path in (folder / part).iterdir()
        if path.name != "run.json"
    }


def finished(steps):
    """Number of steps under their own name."""
    return len(list(steps.glob("[!.]*.npz")))


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tmp_path):
    own = people(400)
    own |= {f"event{k}": people(400, seed=k + 5)["died"] for k in range(4)}
    pq.write_table(pa.table(own), tmp_path / "people.parquet")
    specification = tmp_path / "study.json"
    specification.write_text(json.dumps(content(outcomes=OUTCOMES, analyses=ANALYSES)))
    study = rs.study.Study.read(specification)
    rs.study.run(study, tmp_path / "whole")

    command = [sys.executable, "-m", "riskset", "study", "run", str(specification)]
    child = subprocess.Popen([*command, "--out", str(tmp_path / "killed"), "--quiet"])
    steps = tmp_path / "killed" / "steps"
    while finished(steps) < 5:
        assert child.poll() is None, "it ended before it could be killed"
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not (tmp_path / "killed" / "results").exists()
    done = finished(steps)
    assert 5 <= done < finished(tmp_path / "whole" / "steps")

    found = rs.study.run(study, tmp_path / "killed")
    assert sum(step["reused"] for step in found.run["steps"]) == done
    assert written(tmp_path / "killed") == written(tmp_path / "whole")


@pytest.mark.parametrize(
    ("step", "fits"), rest_is_slow([("propensity-score", 1), ("estimate", 4)], 1)
)
def test_replicates_are_kept_until_their_step_is_done(tmp_path, monkeypatch, step, fits):
    pq.write_table(pa.table(people()), tmp_path / "people.parquet")
    own = {"covariates": "all", "also": ["finegray"], "folds": 2, "repeats": 2}
    defaults = {
        "propensity": {"folds": 2, "repeats": 2},
        "model": {**own, "folds": 2, "repeats": 2},
    }
    study = rs.study.Study(content(defaults=defaults), tmp_path)
    rs.study.run(study, tmp_path / "whole")
    assert not list((tmp_path / "whole" / "steps").glob("*.jsonl"))

    save = _save

    def stop(path, result):
        if path.name.startswith(step):
            raise KeyboardInterrupt
        return save(path, result)

    with monkeypatch.context() as patched:
        patched.setattr("riskset.study.cache._save", stop)
        with pytest.raises(KeyboardInterrupt):
            rs.study.run(study, tmp_path / "stopped")
    kept = sorted((tmp_path / "stopped" / "steps").glob("*.jsonl"))
    assert len(kept) == fits  # two models, two readings each
    assert all(len(path.read_text().splitlines()) > 4 for path in kept)
    damaged = kept[0].read_text()
    kept[0].write_text("nonsense\n")
    with pytest.raises(rs.InputError, match="is not a checkpoint"):
        rs.study.run(study, tmp_path / "stopped")
    kept[0].write_text(damaged)
    rs.study.run(study, tmp_path / "stopped")
    assert not list((tmp_path / "stopped" / "steps").glob("*.jsonl"))
    assert written(tmp_path / "stopped") == written(tmp_path / "whole")


def test_only_what_depends_on_a_change_is_done_again(tmp_path):
    pq.write_table(pa.table(people()), tmp_path / "people.parquet")

    def done(**changes):
        study = rs.study.Study(content(**changes), tmp_path)
        steps = rs.study.run(study, tmp_path / "out").run["steps"]
        return sorted({step["step"] for step in steps if not step["reused"]})

    first = [
        "adjustment",
        "balance",
        "covariates",
        "crude estimate",
        "estimate",
        "follow-up",
        "propensity score",
        "tests of curves",
    ]
    assert done() == first
    assert done() == []
    assert done(risk_times=[100]) == ["follow-up"]
    assert done(diagnostics={"max_smd": 0.2}) == []
    assert done(analyses={"matched": {"match": {"ratio": 2}}}) == [
        "adjustment",
        "balance",
        "estimate",
        "follow-up",
        "tests of curves",
    ]
    pq.write_table(pa.table(people(seed=2)), tmp_path / "people.parquet")
    assert done() == first


def test_a_damaged_step_is_done_again(tmp_path):
    pq.write_table(pa.table(people()), tmp_path / "people.parquet")
    study = rs.study.Study(content(), tmp_path)
    rs.study.run(study, tmp_path / "out")
    before = written(tmp_path / "out")
    (score,) = (tmp_path / "out" / "steps").glob("propensity-score*.npz")
    score.write_bytes(score.read_bytes()[:100])
    found = rs.study.run(study, tmp_path / "out")
    assert [s["step"] for s in found.run["steps"] if not s["reused"]] == ["propensity score"]
    assert written(tmp_path / "out") == before


@pytest.mark.parametrize("name", ["results", "private"])
def test_a_folder_of_something_else_is_never_replaced(tmp_path, name):
    pq.write_table(pa.table(people()), tmp_path / "people.parquet")
    precious = tmp_path / "out" / name / "thesis.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("years of work")
    with pytest.raises(rs.InputError, match=f"{name}' has files, which a run would replace"):
        rs.study.run(rs.study.Study(content(), tmp_path), tmp_path / "out")
    assert precious.read_text() == "years of work"


def test_two_runs_at_once_do_not_share_a_folder(tmp_path):
    pq.write_table(pa.table(people()), tmp_path / "people.parquet")
    study = rs.study.Study(content(), tmp_path)
    first = StepCache(tmp_path / "out" / "steps")
    (tmp_path / "out" / "steps" / ".gitignore").write_text("*")
    with pytest.raises(rs.InputError, match="another run writes into"):
        rs.study.run(study, tmp_path / "out")
    first.close()
    rs.study.run(study, tmp_path / "out")
    assert (tmp_path / "out" / "steps" / ".gitignore").exists()


def test_a_run_that_goes_on_keeps_its_notes_on_covariates(tmp_path):
    own = people(200)
    own["weight"] = [None if k % 50 == 0 else float(k % 7) for k in range(200)]
    pq.write_table(pa.table(own), tmp_path / "people.parquet")
    asked = content()
    asked["data"]["covariates"] = {"columns": ["age", "weight"], "missing": "indicator"}
    specification = tmp_path / "study.json"
    specification.write_text(json.dumps(asked))
    study = rs.study.Study.read(specification)
    first = rs.study.run(study, tmp_path / "study")
    for path in (tmp_path / "study" / "steps").glob("*.npz"):
        if not path.name.startswith("covariates"):
            path.unlink()
    again = rs.study.run(study, tmp_path / "study")
    assert "missing_values" in again.table("warnings").columns()["code"]
    assert again.table("warnings").rows() == first.table("warnings").rows()
