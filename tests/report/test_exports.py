"""Exported figures and tables have what the report shows, and nothing that it hides."""

import csv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from docx import Document
from matplotlib.axes import Axes
from PIL import Image
from typer.testing import CliRunner

import riskset as rs
from report.made import study, tables, write_made
from report.made_estimates import arms
from riskset.cli.main import app
from riskset.report.exports import FORMATS
from riskset.report.page import Page
from riskset.report.pictures import pictures
from riskset.report.translations import Translations

FIGURES = (
    "forest", "subgroups", "curves", "curves-competing", "effect-over-time", "overlap", "roc",
    "love",
    "balance",
)  # fmt: skip


def made(folder: Path, found: dict | None = None, about: dict | None = None) -> Path:
    return write_made(folder / "results", found or tables(), about or study())


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    written = rs.report.export(made(folder), folder / "out", FORMATS)
    assert set(written) == {path for path in (folder / "out").rglob("*") if path.is_file()}
    return folder / "out"


def cells(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text("utf-8").splitlines()))


def everything(folder: Path) -> str:
    """All texts of the tables."""
    out = [p.read_text("utf-8") for p in folder.rglob("*") if p.suffix in (".csv", ".tex")]
    for path in folder.rglob("*.docx"):
        with zipfile.ZipFile(path) as archive:
            out.append(archive.read("word/document.xml").decode())
    return "\n".join(out)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_pictures(exported: Path, name: str) -> None:
    with Image.open(exported / "figures" / f"{name}.png") as picture:
        assert min(picture.size) > 600
        assert round(picture.info["dpi"][0]) == 300
        assert np.asarray(picture.convert("L")).std() > 10  # not blank
    assert (exported / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    assert "<svg" in (exported / "figures" / f"{name}.svg").read_text("utf-8")[:2000]


def test_private_files_have_small_counts(tmp_path: Path) -> None:
    found = tables()
    next(row for row in found["estimates"] if row["role"] == "main").update(arms((3, 47)))
    found["arms"][1].update(arms((3, 47)))
    for name in ("results", "private"):
        write_made(tmp_path / "study" / name, found, study())
    written = {}
    for option in ("", "--private"):
        out = tmp_path / f"out{option}"
        command = ["study", "export", str(tmp_path / "study"), "--out", str(out), "--format", "csv"]
        done = CliRunner().invoke(app, [*command, *filter(None, [option])])
        assert done.exit_code == 0, done.output
        written[option] = [
            cell for path in out.rglob("*.csv") for row in cells(path) for cell in row
        ]
    assert "<5" in written[""]
    assert "<5" not in written["--private"]
    assert "3" in written["--private"]
    evidence = ["--evidence", str(tmp_path / "evidence"), "--private"]
    done = CliRunner().invoke(app, ["study", "export", str(tmp_path / "study"), *evidence])
    assert done.exit_code == 2
    assert "--evidence and --ohdsi write what is shared" in " ".join(done.output.split())


def test_controls_are_drawn_where_their_estimates_are_shown() -> None:
    ratios = {"true_hr": 1.0, "used": True}
    rows = [ratios | {"hr": 1.1, "se": 0.2}, ratios | {"hr": None, "se": None}]
    region = {"region_se": [0.0, 0.5], "region_lower": [-0.1, -1.0], "region_upper": [0.1, 1.0]}
    content = {
        "calibration": {"status": "ok", **region},
        "estimate": {"hr": 0.7, "se": 0.1},
        "tables": {"controls": rows},
    }
    page = Page(Translations("en"))
    ((name, axes),) = pictures(page, {"controls": content}, 0.95)
    assert name == "controls"
    (points,) = (line for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_allclose(points.get_xydata(), [[1.1, 0.2]])
    (own,) = (line for line in axes.lines if line.get_marker() == "D")
    np.testing.assert_allclose(own.get_xydata(), [[0.7, 0.1]])
    hidden = content | {"tables": {"controls": rows[1:]}}
    assert list(pictures(page, {"controls": hidden}, 0.95)) == []


def test_the_forest_has_numbers_of_people(tmp_path: Path) -> None:
    rs.report.export(made(tmp_path), tmp_path / "out", "svg")
    found = (tmp_path / "out/figures/forest.svg").read_text("utf-8")
    rows = [r for r in tables()["estimates"] if r["role"] == "main"]
    row = next(r for r in rows if r["analysis"] == "matched")
    assert f"{row['target_outcomes']} / {row['target_exposures']}" in found.replace(",", "")


def test_a_roc_curve_has_the_shares_above_each_border() -> None:
    """Half of the target, and a fifth of the comparator group have a score above 0.5."""
    shares = {"target": (0.5, 0.5), "comparator": (0.8, 0.2)}
    rows = [
        {"arm": arm, "lower": lower, "upper": lower + 0.5, "share": share, "kept_share": share}
        for arm, of_arm in shares.items()
        for lower, share in zip((0.0, 0.5), of_arm, strict=True)
    ]
    score = {"auc": 0.65, "auc_lower": 0.6, "auc_upper": 0.7}
    content = {"tables": {"preference": rows}, "score": score, "borders": []}
    page = Page(Translations("en"), about={"target": "new", "comparator": "old"})
    found = dict(pictures(page, {"overlap": content}, 0.95))
    curve = found["roc"].lines[1].get_xydata()
    np.testing.assert_allclose(curve, [[1, 1], [1, 1], [0.2, 0.5], [0, 0], [0, 0]])
    assert "0.650" in found["roc"].get_legend().get_texts()[0].get_text()


def test_coverage_and_the_effect_over_time_are_drawn() -> None:
    coverage = [{"level": k / 10, "before": k / 20, "after": k / 10} for k in range(1, 10)]
    rows = [
        {"start": 0.0, "end": 5.0, "hr": 0.5, "hr_lower": 0.2, "hr_upper": 1.0},
        {"start": 5.0, "end": 9.0, "hr": 2.0, "hr_lower": 1.0, "hr_upper": 4.0},
    ]
    controls = {"tables": {"controls": [], "coverage": coverage}, "calibration": None}
    over_time = {"tables": {"over_time": rows}, "constant": {"hr": 1.1}}
    page = Page(Translations("en"), about={"time_unit": "days"})
    part = {"controls": controls, "models": {"proportionality": over_time}}
    found = dict(pictures(page, part, 0.95))
    assert set(found) == {"calibration", "effect-over-time"}
    before, after = found["calibration"].lines[1:3]
    np.testing.assert_allclose(before.get_xydata(), [[r["level"], r["before"]] for r in coverage])
    np.testing.assert_allclose(after.get_xydata(), [[r["level"], r["after"]] for r in coverage])
    ratios = [line.get_ydata()[0] for line in found["effect-over-time"].lines]
    assert {0.5, 2.0, 1.1} <= set(ratios)
    at_times = [{"time": t, "hr": t / 10, "hr_lower": t / 20, "hr_upper": t / 5} for t in (5, 9)]
    smooth = over_time | {"tables": {"over_time": [], "at_times": at_times}}
    smooth["time_effect"] = {"function": "log"}
    ((name, axes),) = pictures(page, {"models": {"proportionality": smooth}}, 0.95)
    assert name == "time-effect"
    np.testing.assert_allclose(axes.lines[1].get_xydata(), [[5, 0.5], [9, 0.9]])
    unknown = over_time | {"tables": {"over_time": [rows[0] | {"hr_upper": None}]}}
    assert list(pictures(page, {"models": {"proportionality": unknown}}, 0.95)) == []


def test_tables_say_what_the_report_says(exported: Path, report) -> None:
    page = report().page
    rows = cells(exported / "tables/result-estimates.csv")
    (table,) = [
        t for t in page.all("table") if t.attrs["data-table"].endswith("result/tables/estimates")
    ]
    body = [[c.text for c in row.all("th") + row.all("td")] for row in table.one("tbody").all("tr")]

    def plain(cells: list[str]) -> list[str]:
        return [c.replace("\u202f", " ").replace("\u00ad", "").strip() for c in cells]

    assert [plain(row) for row in rows[1:]] == [plain(row) for row in body]
    assert not any("\u00ad" in cell for row in rows for cell in row)
    document = Document(str(exported / "tables.docx"))
    files = list((exported / "tables").glob("*.csv"))
    assert len(document.tables) == len(files) == len(list((exported / "latex").glob("*.tex")))


def test_withheld_effects_are_in_no_file(tmp_path: Path) -> None:
    found = tables()
    main = next(row for row in found["estimates"] if row["role"] == "main")
    shown = f"{main['hr']:.3f}"
    found["runs"][0]["unblind"] = False
    results = made(tmp_path, found)
    written = rs.report.export(results, tmp_path / "out", FORMATS)
    names = {path.stem for path in written}
    assert not names & {"forest", "curves", "result-estimates", "result-risks"}
    assert "love" in names
    assert shown not in everything(tmp_path / "out")
    rs.report.export(results, tmp_path / "open", FORMATS, blind=False)
    assert shown in everything(tmp_path / "open")
    assert (tmp_path / "open/figures/forest.png").exists()


def test_small_counts_are_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tables()
    for row in (*found["estimates"], *found["arms"]):
        row["target_outcomes"] = 4
    results = made(tmp_path, found)
    written: list[str] = []
    text = Axes.text
    annotate = Axes.annotate
    monkeypatch.setattr(
        Axes, "text", lambda ax, x, y, s, *a, **k: written.append(s) or text(ax, x, y, s, *a, **k)
    )
    monkeypatch.setattr(
        Axes, "annotate", lambda ax, s, *a, **k: written.append(s) or annotate(ax, s, *a, **k)
    )
    rs.report.export(results, tmp_path / "out", ["csv", "svg"])
    rows = cells(tmp_path / "out/tables/result-estimates.csv")
    column = next(k for k, title in enumerate(rows[0]) if title.startswith("Outcomes"))
    assert {row[column] for row in rows[1:]} == {"<5", "hidden"}
    counts = [words.split(" / ")[0] for words in map(str, written)]
    assert "<5" in counts  # beside the marks of the forest plot
    assert "4" not in counts


def test_several_outcomes_have_folders_of_their_own(tmp_path: Path) -> None:
    about, found = study(), tables()
    about["outcomes"]["mi"] = about["outcomes"]["hf"] | {"label": "heart attack"}
    for name in ("runs", "estimates", "arms", "curves", "numbers_at_risk"):
        found[name] = [*found[name], *({**row, "outcome": "mi"} for row in found[name])]
    rs.report.export(made(tmp_path, found, about), tmp_path / "out", ["svg", "csv", "docx"])
    folders = sorted(path.name for path in (tmp_path / "out/figures").iterdir())
    assert [name[0] for name in folders] == ["1", "2"]
    assert "heart-failure" in folders[0]
    assert "heart-attack" in folders[1]
    assert (tmp_path / "out/tables/index-runs.csv").exists()
    documents = sorted(path.name for path in (tmp_path / "out").glob("*.docx"))
    assert documents == [f"tables-{name}.docx" for name in folders]


def test_refusals(tmp_path: Path) -> None:
    results = made(tmp_path)
    with pytest.raises(rs.InputError, match="'gif' is not a format"):
        rs.report.export(results, tmp_path / "out", ["png", "gif"])
    with pytest.raises(rs.InputError, match="`formats` is empty"):
        rs.report.export(results, tmp_path / "out", [])
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").write_text("mine")
    with pytest.raises(rs.InputError, match="has files, which an export would replace"):
        rs.report.export(results, tmp_path / "full")
    assert (tmp_path / "full/notes.txt").read_text() == "mine"
    with pytest.raises(rs.InputError, match="has no study"):
        rs.report.export(tmp_path / "full", tmp_path / "out")
    assert not (tmp_path / "out").exists()
