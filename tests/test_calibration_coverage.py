"""The simulation of calibrated intervals runs, and docs/coverage.md has one of its tables."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "bench" / "calibration_coverage.py"


def rows(table: str) -> list[list[str]]:
    """Cells of the lines of a Markdown table."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line.startswith("|")
    ]


def test_coverage() -> None:
    command = [sys.executable, str(SCRIPT), "--studies", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    head, _, *body = rows(done.stdout)
    assert len(body) == 14
    for _, _, *coverage in body:
        assert set(coverage) <= {"0.0%", "50.0%", "100.0%"}
    shown = rows((ROOT / "docs" / "coverage.md").read_text("utf-8").split("## Calibrated")[1])
    without_error = re.compile(r" \(± .*\)")
    assert [without_error.sub("", cell) for cell in shown[0]] == [
        without_error.sub("", cell) for cell in head
    ]
    assert [row[:2] for row in shown[2:]] == [row[:2] for row in body]
    for row in shown[2:]:
        assert all(0 <= float(cell.rstrip("%")) <= 100 for cell in row[2:])
