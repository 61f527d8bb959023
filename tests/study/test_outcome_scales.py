"""Odds and rate ratios in the results of a study and in its report."""

import numpy as np
import pytest

import riskset as rs
from study.small import people, run

LOOSE = {"max_smd": 9.0, "max_mdrr": 90.0, "min_equipoise": 0.0}


def written(folder):
    """The report with all effects."""
    place = rs.report.write(folder / "out", folder / "report.html", blind=False)
    return place.read_text("utf-8")


@pytest.mark.parametrize(("kind", "name"), [("logistic", "odds"), ("poisson", "rate")])
def test_the_effect_has_its_name(tmp_path, kind, name):
    columns = people()
    found = run(tmp_path, columns, analyses={"a": {"model": {"kind": kind}}}, diagnostics=LOOSE)
    (main,) = found.rows("estimates", role="main")
    y = rs.Surv(columns["days"], columns["died"])
    expected = rs.cohort.fit_outcome(y, rs.cohort.Population(columns["drug"]), model=kind)
    assert (main["model"], main["scale"]) == (kind, name)
    for key in ("log_hr", "se", "expected_se", "mdrr"):
        assert main[key] == pytest.approx(getattr(expected, key), rel=1e-8)
    assert main["e_value"] == pytest.approx(rs.cohort.e_value(expected).estimate, rel=1e-8)
    assert not found.rows("effect_over_time")
    report = written(tmp_path)
    assert f"the {name} ratio was" in report
    assert f"{name.capitalize()} ratios, target versus comparator" in report
    assert f"{name} ratio {{" not in report
    assert "log hazard" not in report
    assert f"the average absolute error of the log {name} ratio" in report
    # Proportional hazards: a diagnostic of models of hazards, and of no use for odds.
    assert "Proportional hazards (p for change over time)" not in report
    assert ('id="proportional-hazards"' in report) == (kind == "poisson")


@pytest.mark.parametrize(
    ("kind", "words"), [("logistic", "risks over the whole"), ("poisson", "averages over")]
)
def test_restricted_means_are_compared_with_the_ratio(tmp_path, kind, words):
    analyses = {"a": {"model": {"kind": kind, "rmst": [200]}}}
    run(tmp_path, people(), analyses=analyses, diagnostics=LOOSE)
    report = written(tmp_path)
    assert words in report
    assert "hazard ratio changes over time" not in report


def test_an_index_of_several_scales_has_no_name_of_one(tmp_path):
    kinds = {kind: {"model": {"kind": kind}} for kind in ("cox", "logistic")}
    run(tmp_path, people(), analyses=kinds, diagnostics=LOOSE)
    index = written(tmp_path).split('id="index"')[1].split("</section>")[0]
    assert ">Ratio (CI)<" in index
    assert "Hazard ratio" not in index


def test_models_of_different_scales_share_a_table(tmp_path):
    models = {"kind": "cox", "also": ["logistic", "poisson"]}
    found = run(tmp_path, analyses={"a": {"match": {}, "model": models}}, diagnostics=LOOSE)
    # A Poisson model of matched sets is marginal.
    rows = found.rows("estimates", reading="stratified")
    rows += found.rows("estimates", model="poisson")
    assert [row["scale"] for row in rows] == ["hazard", "odds", "rate"]
    assert all(np.isfinite(row["log_hr"]) for row in rows)
    assert [row["label"] for row in rows[1:]] == ["odds, stratified", "rate, marginal"]
    report = written(tmp_path)
    assert "the hazard ratio was" in report
    assert "Ratios, target versus comparator" in report
