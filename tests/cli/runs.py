"""Words that the tests of the command line share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

GOLDEN = Path(__file__).parents[1] / "golden"
LUNG = json.loads((GOLDEN / "lung.json").read_text())
CASES = Path(__file__).parents[1] / "cases"


class Ended(NamedTuple):
    """How a run of the command line ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


def fit_json(path: Path = Path("fit.json")) -> dict:
    return json.loads(path.read_text())
