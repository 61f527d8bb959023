"""Other programs: who is absent is named, who fails is a line, who answers is judged by us."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import riskset as rs
from riskset.bench.case import Case
from riskset.bench.dense import DenseCase
from riskset.bench.fixed import Fixed
from riskset.bench.peers import PEERS, Peers, hand_over

HERE = Path(__file__).parents[2] / "src" / "riskset" / "bench" / "peer_scripts"


@pytest.fixture(scope="module")
def case() -> Case:
    return Case.draw("fixed", "cox", 300, 8, 0.2, 3)


def answering(coef: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every Python peer answer these coefficients."""
    script = tmp_path / "peer_fits.py"
    script.write_text(
        "import sys, pathlib, array\n"
        "folder = pathlib.Path(sys.argv[2])\n"
        f"array.array('d', {coef}).tofile((folder / 'coef.bin').open('wb'))\n"
        'answer = \'{"prepare": 0.5, "seconds": 2.0, "peak_mb": 7}\'\n'
        "(folder / 'answer.json').write_text(answer)\n"
    )
    monkeypatch.setattr("riskset.bench.peers.HERE", tmp_path)


def test_absent_peers_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    empty = tmp_path / "peer_fits.py"
    empty.write_text("print('{}')")
    monkeypatch.setattr("riskset.bench.peers.HERE", tmp_path)
    peers = Peers.find()
    assert peers.versions == {}
    (line,) = peers.preface
    for name, peer in PEERS.items():
        reason = "not installed" if peer.language == "Python" else "Rscript was not found"
        assert f"{name} ({reason})" in line


def test_an_interpreter_that_does_not_run_has_no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert Peers.find(python="/no/such/python").versions == {}


def test_an_answer_is_judged(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At coefficients 0 the objective is minus the null log likelihood, and the residual 1 - l1/g.

    The largest gradient at 0 is that strength of the penalty at which the first coefficient leaves.
    """
    answering([0.0] * 8, tmp_path, monkeypatch)
    peers = Peers({"skglm": "0.5"}, python=sys.executable)
    (record,) = peers.records(case, 2.0)
    model = rs.Cox().fit(case.cohort.X, case.y)
    assert record.objective == pytest.approx(-model.null_log_likelihood_, rel=1e-12)
    assert (record.tool, record.version, record.seconds, record.peak_mb) == ("skglm", "0.5", 2.0, 7)
    path = rs.path(rs.Cox(rs.L1(1.0)), case.cohort.X, case.y, n_penalties=2)
    assert record.kkt == pytest.approx(1 - 2.0 / path.strengths[0], rel=1e-6)
    assert record.n_nonzero == 0


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            "import sys; print('ValueError: no', file=sys.stderr); sys.exit(1)",
            "failed: ValueError: no",
        ),
        ("import sys; sys.exit(3)", "ended: 3"),
        ("import time; time.sleep(60)", "stopped after 1 s"),
    ],
)
def test_failures_are_lines(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    (tmp_path / "peer_fits.py").write_text(program)
    monkeypatch.setattr("riskset.bench.peers.HERE", tmp_path)
    peers = Peers({"skglm": "0.5"}, limit=1.0, python=sys.executable)
    (record,) = peers.records(case, 2.0)
    assert record.note == said
    assert record.seconds is None
    (again,) = peers.records(case, 2.0)
    is_slow = said.startswith("stopped")
    assert again.note == ("not tried: a smaller problem took too long" if is_slow else said)
    (smaller,) = peers.records(Case.draw("fixed", "cox", 400, 7, 0.2, 3), 2.0)
    assert smaller.note == said


def test_who_can_do_what(case: Case) -> None:
    versions = dict.fromkeys(PEERS, "1")
    able = {
        (model, l1): {n for n in versions if PEERS[n].refuses(model, l1) is None}
        for model in ("cox", "finegray")
        for l1 in (None, 0.0, 1.0)
    }
    assert able["finegray", 1.0] == {"fastcmprsk", "Cyclops"}
    assert able["finegray", 0.0] == {"Cyclops"}
    assert able["cox", None] == able["finegray", None] == {"Cyclops"}
    assert "survival" in able["cox", 0.0]
    assert "survival" not in able["cox", 1.0]
    assert "glmnet" in able["cox", 1.0]


@pytest.mark.parametrize(
    ("name", "l1", "l2", "needs", "said"),
    [
        ("glmnet", 0.0, 1.0, (), None),
        ("glmnet", 1.0, 1.0, ("paths", "late"), None),
        ("glmnet", 1.0, 0.0, ("efron",), "has no method of Efron for ties"),
        ("skglm", 1.0, 1.0, (), "has no elastic net penalty"),
        ("lifelines", 0.0, 0.0, ("breslow",), "has no method of Breslow for ties"),
        ("scikit-survival", 0.0, 0.0, ("late",), "has no late entry"),
        ("survival", 0.0, 0.0, ("efron", "late", "robust"), None),
        ("survival", 0.0, 1.0, (), "has no L2 penalty"),
    ],
)
def test_what_is_refused(
    name: str, l1: float, l2: float, needs: tuple[str, ...], said: str | None
) -> None:
    assert PEERS[name].refuses("cox", l1, l2, needs) == said


def test_a_dense_table_that_is_too_large_is_not_made(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("riskset.bench.peers._memory", lambda: 50_000)
    peers = Peers({"scikit-survival": "0.5"}, python="/no/such/python")
    (record,) = peers.records(case, 2.0)
    assert record.note == "not tried: a dense table has 0 GB"
    monkeypatch.setattr("riskset.bench.peers._memory", lambda: None)
    with pytest.raises(FileNotFoundError):
        peers.records(case, 2.0)


def test_values_are_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering([0.25, 0.5], tmp_path, monkeypatch)
    peers = Peers({"lifelines": "0.5", "skglm": "0.5"}, python=sys.executable)
    (found,) = peers.values("survival", {"time": np.ones(3)}, n_columns=2)
    assert found.values.tolist() == [0.25, 0.5]
    assert (found.known["tool"], found.known["seconds"]) == ("lifelines", 2.0)


def test_each_number_of_threads_is_used_by_who_can(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering([0.0] * 8, tmp_path, monkeypatch)
    peers = Peers({"skglm": "0.5", "adelie": "0.5"}, python=sys.executable)
    records = peers.records(case, 2.0, l2=1.0, threads=(1, 2))
    assert [(r.tool, r.threads, r.l1, r.l2) for r in records] == [
        ("adelie", 1, 2.0, 1.0), ("adelie", 2, 2.0, 1.0)
    ]  # fmt: skip


def test_late_entry_ties_and_ridge_are_handed_over(tmp_path: Path) -> None:
    case = DenseCase.normal("dense", 20, 2, 1, is_late=True, has_ties=True, ties="efron")
    hand_over(case, tmp_path, {"l1": 0.0, "l2": 2.0, "threads": 1})
    task = json.loads((tmp_path / "task.json").read_text())
    assert (task["late"], task["efron"], task["l2"]) == (1, 1, 2.0)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "entry.bin"), case.entry)


def test_what_is_handed_over(case: Case, tmp_path: Path) -> None:
    hand_over(case, tmp_path, {"l1": 1.5, "threads": 2})
    task = json.loads((tmp_path / "task.json").read_text())
    assert task == {"n_rows": 300, "n_columns": 8, "model": "cox", "l1": 1.5, "threads": 2}
    indptr = np.fromfile(tmp_path / "indptr.bin").astype(int)
    indices = np.fromfile(tmp_path / "indices.bin", np.int32)
    x = np.zeros((300, 8))
    for j in range(8):
        x[indices[indptr[j] : indptr[j + 1]], j] = 1
    np.testing.assert_array_equal(x, case.cohort.X.toarray())
    np.testing.assert_array_equal(np.fromfile(tmp_path / "time.bin"), case.cohort.time)
    event = np.fromfile(tmp_path / "event.bin", np.int32)
    np.testing.assert_array_equal(event, case.cohort.event)


def test_a_path_on_a_dense_table_is_handed_over_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = DenseCase.normal("dense", 50, 3, 1)
    strengths = np.array([8.0, 4.0, 2.0])
    hand_over(case, tmp_path, {"l1": 2.0, "threads": 1}, strengths)
    task = json.loads((tmp_path / "task.json").read_text())
    assert (task["is_dense"], task["n_strengths"]) == (1, 3)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "x.bin").reshape(3, 50).T, case.x)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "strengths.bin"), strengths)

    answering([0.0] * 6, tmp_path, monkeypatch)
    peers = Peers({"skglm": "0.5", "adelie": "1.1"}, python=sys.executable)
    (record,) = peers.records(case, 2.0, step="path", strengths=strengths)  # skglm has no paths
    assert (record.tool, record.l1) == ("adelie", 4.0)
    assert record.note == "ended after 2 of 3 strengths"
    assert record.kkt == case.judge_path(np.zeros((2, 3)), [rs.L1(8.0), rs.L1(4.0)]).kkt


def test_peers_that_are_here_agree() -> None:
    """Whoever is installed and quick reaches our objective: the penalty is on the right scale."""
    peers = Peers.find(limit=60.0)
    quick = {"scikit-survival", "glmnet", "Cyclops", "fastcmprsk"}
    peers.versions = {n: v for n, v in peers.versions.items() if n in quick}
    if not peers.versions:
        pytest.skip("none of the quick peers is installed")
    experiment = Fixed(rows=(400,), columns=6, density=0.2, repeats=1, threads=(1,), peers=peers)
    records = [r for r in experiment.records(lambda share, detail: None) if r.step == "fit"]
    for model in ("cox", "finegray"):
        ours, *theirs = [r for r in records if r.model == model]
        assert ours.kkt is not None
        assert ours.kkt <= 1e-8
        for record in theirs:
            assert record.objective == pytest.approx(ours.objective, abs=1e-3), record
