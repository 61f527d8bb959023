"""Adjustments in studies: the same weights as in Python, words for readers, and refusals."""

import pytest

import riskset as rs
from riskset.report import write
from study.small import content, run

ANALYSES = {
    "again": ({"match": {"replacement": True, "ratio": 2}}, "with replacement"),
    "optimal": ({"match": {"method": "optimal"}}, "matched optimally 1 to 1"),
    "full": ({"match": {"method": "full", "estimand": "ate"}}, "(full matching)"),
    "near": (
        {"match": {"mahalanobis": ["age", "x"], "within": ["x"]}},
        "on Mahalanobis's distance of age, x, within a caliper of 0.2",
    ),
    "entropy": (
        {"weight": {"method": "entropy", "estimand": "att", "moments": 2}},
        "entropy balancing (ATT weights) of all covariates, with powers up to 2",
    ),
    "cbps": (
        {"weight": {"method": "cbps", "estimand": "ate", "covariates": ["age"]}},
        "a covariate-balancing propensity score (ATE weights) of age",
    ),
    "coarse": (
        {"coarsen": {"covariates": ["age"], "within": ["x"], "cuts": {"age": [50, 70]}}},
        "matched exactly on coarsened covariates (x, age)",
    ),
}


def test_adjustments_in_a_study(tmp_path):
    analyses = {name: given for name, (given, _) in ANALYSES.items()}
    study = {"data": content()["data"] | {"covariates": {"columns": ["x", "age"]}}}
    found = run(tmp_path, **study, analyses=analyses)
    for name, (_, words) in ANALYSES.items():
        (row,) = found.rows("estimates", analysis=name, role="main")
        assert row["status"] == "ok"
        (run_row,) = [r for r in found.rows("runs") if r["analysis"] == name][:1]
        (adjusted,) = found.rows("adjustments", adjustment=run_row["adjustment"])
        assert adjusted["target_rows"] > 20
        assert words in found.study["analyses"][name]["words"]["adjustment"]
        readings = {r["reading"] for r in found.rows("estimates", analysis=name)}
        assert ("stratified" in readings) == (name not in ("again", "entropy", "cbps"))
    full = found.study["analyses"]["full"]["words"]
    assert "ATE" in full["estimand"]
    assert "stratified by matched set" in full["model"]
    assert "stratified" not in found.study["analyses"]["again"]["words"]["model"]


def test_balance_beyond_the_mean(tmp_path):
    """In tables, in the report, and of what is shared without statistics that few people may be."""
    analyses = {
        "matched": {"match": {}, "balance": {"squares": True, "interactions": [["age", "x"]]}}
    }
    study = {"data": content()["data"] | {"covariates": {"columns": ["x", "age"]}}}
    found = run(tmp_path, **study, analyses=analyses)
    rows = {row["name"]: row for row in found.rows("balance", adjustment=1)}
    assert set(rows) == {"x", "age", "age^2", "age * x"}
    assert rows["x"]["before_variance_ratio"] is None
    assert 0.2 < rows["age"]["after_variance_ratio"] < 5
    assert all(0 <= row[f"{side}_ks"] <= 1 for row in rows.values() for side in ("before", "after"))
    shared = rs.study.StudyResults.open(tmp_path / "out" / "results")
    kept = {row["name"]: row for row in shared.rows("balance", adjustment=1)}
    assert kept["age"]["before_ks"] is None
    assert kept["age"]["before_variance_ratio"] == rows["age"]["before_variance_ratio"]
    assert kept["x"]["before_ks"] == rows["x"]["before_ks"]
    write(tmp_path / "out" / "results", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "Variance ratio" in text
    assert "Kolmogorov-Smirnov statistic" in text
    assert "Hainmueller (2012)" not in text


def test_the_report_cites_the_methods_of_the_study(tmp_path):
    analyses = {"full": {"match": {"method": "full"}}, "coarse": {"coarsen": {"within": ["x"]}}}
    run(tmp_path, analyses=analyses)
    write(tmp_path / "out" / "results", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "Hansen (2004)" in text
    assert "Iacus, King and Porro (2012)" in text
    assert "Austin and Cafri" not in text


@pytest.mark.parametrize(
    ("analysis", "message"),
    [
        ({"match": {"replacement": True}, "model": {"reading": "stratified"}}, "needs sets"),
        ({"coarsen": {}}, "there is nothing to match on"),
        ({"coarsen": {"covariates": ["x"]}, "match": {}}, "match and coarsen exclude each other"),
        ({"match": {"method": "full", "ratio": 3}}, "`ratio` does not belong to full matching"),
    ],
)
def test_refusals(tmp_path, analysis, message):
    (tmp_path / "people.parquet").touch()
    with pytest.raises(rs.InputError, match=message):
        rs.study.Study(content(analyses={"one": analysis}), tmp_path)


def test_no_score_is_needed(tmp_path):
    """Exact matching, and Mahalanobis's distance without a caliper, use none."""
    (tmp_path / "people.parquet").touch()
    analyses = {
        "coarse": {"propensity": "none", "coarsen": {"covariates": ["x"]}},
        "near": {"propensity": "none", "match": {"mahalanobis": ["x"], "caliper": "none"}},
    }
    assert rs.study.Study(content(analyses=analyses), tmp_path)
