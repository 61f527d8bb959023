"""The simulation behind docs/coverage.md runs, and the table there is one of its tables."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "bench" / "interval_coverage.py"


def rows(table: str) -> list[list[str]]:
    """Cells of the lines of a Markdown table."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line.startswith("|")
    ]


def test_coverage() -> None:
    command = [sys.executable, str(SCRIPT), "--cohorts", "2", "--replicates", "39"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    head, _, *body = rows(done.stdout)
    assert len(body) == 6
    for _, _, covered, below, above, width in body:
        assert {covered, below, above} <= {"0.0%", "50.0%", "100.0%"}
        assert float(width) > 0
    shown = rows((ROOT / "docs" / "coverage.md").read_text("utf-8"))
    without_error = re.compile(r" \(± .*\)")
    assert [without_error.sub("", cell) for cell in shown[0]] == [
        without_error.sub("", cell) for cell in head
    ]
    assert [row[:2] for row in shown[2:8]] == [row[:2] for row in body]
    for row in shown[2:8]:
        shares = [float(cell.rstrip("%")) for cell in row[2:5]]
        assert abs(sum(shares) - 100) < 0.2
