"""The simulations behind docs/coverage.md run, and its tables are tables of theirs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ERROR = re.compile(r" \(± .*\)")


def rows(table: str) -> list[list[str]]:
    """Cells of the lines of a Markdown table; what a head says of the error is left out."""
    return [
        [ERROR.sub("", cell.strip()) for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line.startswith("|")
    ]


def run(script: str, *options: str) -> list[list[str]]:
    """The table that a simulation prints."""
    command = [sys.executable, str(ROOT / "bench" / script), *options]
    return rows(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def documented(n: int, title: str = "") -> list[list[str]]:
    """The first n lines of a table of docs/coverage.md."""
    text = (ROOT / "docs" / "coverage.md").read_text("utf-8")
    return rows(text.split(title)[1] if title else text)[:n]


@pytest.mark.slow
def test_intervals() -> None:
    made = run("interval_coverage.py", "--cohorts", "2", "--replicates", "39")
    head, _, *body = made
    assert len(body) == 6
    for _, _, covered, below, above, width in body:
        assert {covered, below, above} <= {"0.0%", "50.0%", "100.0%"}
        assert float(width) > 0
    shown = documented(len(made))
    assert shown[0] == head
    assert [row[:2] for row in shown[2:]] == [row[:2] for row in body]
    for row in shown[2:]:
        shares = [float(cell.rstrip("%")) for cell in row[2:5]]
        assert abs(sum(shares) - 100) < 0.2


@pytest.mark.slow
def test_calibrated_intervals() -> None:
    made = run("calibration_coverage.py", "--studies", "2")
    head, _, *body = made
    assert len(body) == 14
    for _, _, *coverage in body:
        assert set(coverage) <= {"0.0%", "50.0%", "100.0%"}
    shown = documented(len(made), "## Calibrated")
    assert shown[0] == head
    assert [row[:2] for row in shown[2:]] == [row[:2] for row in body]
    for row in shown[2:]:
        assert all(0 <= float(cell.rstrip("%")) <= 100 for cell in row[2:])


@pytest.mark.slow
def test_restricted_means() -> None:
    options = ("--cohorts", "2", "--people", "80", "--replicates", "39")
    made = run("restricted_mean_coverage.py", *options)
    head, _, *body = made
    assert len(body) == 20
    for *_, covered, below, above, width in body:
        assert {covered, below, above} <= {"0.0%", "50.0%", "100.0%"}
        assert float(width) > 0
    shown = documented(len(made), "## Intervals of restricted means")
    assert shown[0] == head
    assert [row[:3] for row in shown[2:]] == [row[:3] for row in body]
    for row in shown[2:]:
        shares = [float(cell.rstrip("%")) for cell in row[3:6]]
        assert abs(sum(shares) - 100) < 0.2


@pytest.mark.slow
def test_intervals_of_predictions() -> None:
    made = run("prediction_coverage.py", "--cohorts", "2")
    head, _, *body = made
    assert len(body) == 12
    for _, _, covered, below, above, ratio in body:
        assert {covered, below, above} <= {"0.0%", "50.0%", "100.0%"}
        assert float(ratio) > 0
    shown = documented(len(made), "## Intervals of predictions")
    assert shown[0] == head
    assert [row[:2] for row in shown[2:]] == [row[:2] for row in body]
    for row in shown[2:]:
        shares = [float(cell.rstrip("%")) for cell in row[2:5]]
        assert abs(sum(shares) - 100) < 0.2


@pytest.mark.slow
def test_adjusted_risks() -> None:
    made = run("adjusted_risk_coverage.py", "--cohorts", "2")
    head, _, *body = made
    assert len(body) == 8
    for _, _, covered, below, above, _, width in body:
        assert {covered, below, above} <= {"0.0%", "50.0%", "100.0%"}
        assert float(width) > 0
    shown = documented(len(made), "## Intervals of adjusted risks")
    assert shown[0] == head
    assert [row[:2] for row in shown[2:]] == [row[:2] for row in body]
    for row in shown[2:]:
        shares = [float(cell.rstrip("%")) for cell in row[2:5]]
        assert abs(sum(shares) - 100) < 0.2


@pytest.mark.slow
def test_doubly_robust_estimates() -> None:
    made = run("doubly_robust_coverage.py", "--cohorts", "2")
    head, _, *body = made
    assert len(body) == 16
    for _, _, covered, _, varies, error in body:
        assert covered in {"0.0%", "50.0%", "100.0%"}
        assert float(varies) > 0
        assert float(error) > 0
    shown = documented(len(made), "## Doubly robust intervals")
    assert shown[0] == head
    assert [row[:2] for row in shown[2:]] == [row[:2] for row in body]


@pytest.mark.slow
def test_clones_of_a_grace_period() -> None:
    made = run("per_protocol_coverage.py", "--cohorts", "2", "--true-people", "10000")
    head, _, *body = made
    assert len(body) == 4
    for _, _, covered, _, varies, error in body:
        assert covered in {"0.0%", "50.0%", "100.0%"}
        assert float(varies) > 0
        assert float(error) > 0
    shown = documented(len(made), "## Clones of a grace period")
    assert shown[0][3:] == head[3:]
    assert [row[:2] for row in shown[2:]] == [row[:2] for row in body]


@pytest.mark.slow
def test_late_entry() -> None:
    made = run("late_entry_coverage.py", "--cohorts", "2", "--rows", "800")
    head, _, *body = made
    assert len(body) == 3
    for _, coverage, *numbers in body:
        assert coverage in {"0.0%", "50.0%", "100.0%"}
        assert all(float(number) > 0 for number in numbers)
    # The same estimates, with other standard errors.
    assert body[0][2:4] == body[1][2:4] != body[2][2:4]
    shown = documented(len(made), "## Fine and Gray's model with late entry")
    assert shown[0] == head
    assert [row[0] for row in shown[2:]] == [row[0] for row in body]


@pytest.mark.slow
def test_shared_frailties() -> None:
    made = run("frailty_coverage.py", "--cohorts", "2")
    head, _, *body = made
    assert len(body) == 20
    for _, method, within, first, between, second, variance in body:
        assert {within, between} <= {"0.0%", "50.0%", "100.0%"}
        assert float(first) > 0
        assert float(second) != 0
        assert (variance != "") == ("CoxFrailty" in method)
    shown = documented(len(made), "## Shared frailties")
    assert shown[0] == head
    assert [row[:2] for row in shown[2:]] == [row[:2] for row in body]
