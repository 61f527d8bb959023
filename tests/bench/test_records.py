"""Tables of measurements: CSV parses back, Markdown tells what varies and what is not as good."""

from pathlib import Path

import pytest

from riskset.bench.record import BenchmarkRecord, markdown, read_csv, with_gaps, write_csv


def records() -> list[BenchmarkRecord]:
    known = {"experiment": "fixed", "model": "cox", "n_rows": 1000, "n_columns": 3}
    return with_gaps(
        [
            BenchmarkRecord(
                **known, tool="a", seconds=1 / 3, objective=12.5, kkt=1e-9, n_nonzero=2
            ),
            BenchmarkRecord(
                **known, tool="b, c", seconds=0.1, objective=12.75, kkt=0.2, note='"no" | yes'
            ),
            BenchmarkRecord(**known, tool="d", note="stopped after 600 s"),
            BenchmarkRecord(**(known | {"n_rows": 2000}), tool="a", seconds=2.0, objective=99.0),
        ]
    )


def test_csv_parses_back(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", records())
    assert read_csv(tmp_path / "t.csv") == records()


def test_gaps_are_to_the_best_on_the_same_problem() -> None:
    assert [record.gap for record in records()] == [0.0, 0.25, None, 0.0]
    assert [record.is_as_good for record in records()] == [True, False, True, True]


def test_markdown() -> None:
    text = markdown("Title", records(), ["Words."])
    head, rule, *body = [line for line in text.splitlines() if line.startswith("|")]
    cells = [c.strip() for c in head.strip("|").split("|")]
    assert cells == [
        "rows", "tool", "seconds", "objective", "above the best", "KKT residual", "not 0", "note"
    ]  # fmt: skip
    assert rule.count("|") == head.count("|")
    assert len(body) == 4
    assert "All rows: model cox, columns 3." in text
    assert "| [0.1] |" in body[1]
    assert '"no" \\| yes' in body[1]
    assert "stopped after 600 s" in body[2]
    assert "In brackets" in text
    assert "In brackets" not in markdown("Title", records()[:1])


def test_range_of_times_is_shown_where_there_is_one() -> None:
    one = BenchmarkRecord(experiment="x", seconds=1.0, fastest=1.0, slowest=1.0)
    several = BenchmarkRecord(experiment="x", seconds=1.0, fastest=0.5, slowest=2.0)
    text = markdown("", [one, several])
    assert "1 (0.5 to 2)" in text
    assert text.count("(") == 1


@pytest.mark.parametrize("text", ["1e-08", "0.1"])
def test_numbers_keep_their_digits(tmp_path: Path, text: str) -> None:
    write_csv(tmp_path / "t.csv", [BenchmarkRecord(experiment="x", tol=float(text))])
    assert text in (tmp_path / "t.csv").read_text()
