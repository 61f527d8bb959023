"""The demo: a study of the bundled cohort on a page of 80 columns, with a report."""

import re
from pathlib import Path

import pytest

from riskset.cli.main import main
from riskset.study import StudyResults


def test_what_the_demo_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["riskset", "demo", "--out", str(tmp_path / "demo")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    told = capsys.readouterr()
    steps = told.err.splitlines()
    assert all(re.fullmatch(r"study: .+, \d+\.\d s", step) for step in steps)
    assert any("estimate" in step for step in steps)
    text = re.sub(r"\s+", " ", told.out)
    assert "2,184 with a catheter, 3,551 without" in text
    assert "1,486/2,236" in text
    assert max(map(len, told.out.splitlines())) <= 80
    found = StudyResults.open(tmp_path / "demo")
    assert {row["status"] for row in found.rows("runs")} == {"ok"}
    rows = found.rows("estimates", role="main")
    assert len(rows) == 5
    for row in rows:
        # Published analyses of these data find 1.1 to 1.3 (Connors et al. 1996: 1.24). The ratio
        # within pairs is larger, and depends on who is matched to whom.
        assert 1.05 < row["hr"] < 1.4
        assert f"{row['hr']:.2f}" in text
    page = (tmp_path / "demo" / "report.html").read_text("utf-8")
    assert "Right heart catheter versus No catheter" in page
