"""A damaged checkpoint is refused, or loses the replicates that were cut off; nothing else."""

import json

import pytest

from mutations import flipped, mutated
from riskset.infer.crossval.checkpoint import Checkpoint, CheckpointError
from riskset.infer.crossval.scores import ReplicateScore

BELONGS_TO = {"data": "a", "folds": "b", "settings": "c"}
SCORES = {
    ("k", replicate): ReplicateScore(
        score=-3.25 - replicate,
        log_likelihood=-40.5,
        kkt=1e-9,
        status="converged",
        n_iter=4,
        n_nonzero=2,
        n_left_out=0,
        infinite=(),
    )
    for replicate in range(4)
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "work.jsonl"
    with Checkpoint(path, BELONGS_TO) as checkpoint:
        for (key, replicate), score in SCORES.items():
            checkpoint.add(key, replicate, score)
    return path


def _check(path, what):
    try:
        with Checkpoint(path, BELONGS_TO) as checkpoint:
            for name, score in SCORES.items():
                assert checkpoint.get(*name) in (None, score), what
    except CheckpointError:
        pass


def test_damaged_bytes(path):
    content = path.read_bytes()
    for what, damaged in flipped(content, 200, seed=3):
        path.write_bytes(damaged)
        _check(path, what)


def test_damaged_values(path):
    lines = path.read_text().splitlines()
    for k in range(2):
        for what, damaged in mutated(json.loads(lines[k])):
            line = json.dumps(damaged)
            if line == lines[k]:
                continue
            path.write_text("\n".join([*lines[:k], line, *lines[k + 1 :], ""]))
            with pytest.raises(CheckpointError), Checkpoint(path, BELONGS_TO):
                pytest.fail(what)
