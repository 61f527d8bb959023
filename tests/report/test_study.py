"""The report of a study that was done: nothing between the two gets lost."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from report.conftest import read

TEXT = """
title: Two treatments
data: {name: Made-up people, people: people.parquet, treatment: arm, id: id, index_date: start,
       start: 2012-01-01, end: 2016-12-31, covariates: {columns: [age, male, x1, x2, x3]}}
exposures:
  new: {value: 1, label: the new drug}
  old: {value: 0, label: the old drug}
comparisons: [{target: new, comparator: old}]
competing: death
outcomes:
  fall: {time: time, event: event, label: a fall}
CONTROLS
defaults:
  tidy: {min_fraction: 0}
  propensity: {penalty: none, cross_validate: false}
  model: {also: [finegray]}
analyses:
  matched: {match: {ratio: 2}}
  weighted: {weight: {estimand: ato}}
subgroups: {male: {column: male, label: Male}}
risk_times: [100, 300]
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    rng = np.random.default_rng(5)
    n, folder = 600, tmp_path_factory.mktemp("study")
    columns = {"id": np.arange(n), "age": rng.normal(65, 8, n).round()}
    columns |= {name: rng.integers(0, 2, n) for name in ("male", "x1", "x2", "x3")}
    chance = 1 / (1 + np.exp(-(columns["x1"] - 0.6 * columns["x2"] - 0.2)))
    columns["arm"] = (rng.uniform(size=n) < chance).astype(int)
    start = np.datetime64("2012-01-01") + rng.integers(0, 1500, n).astype("timedelta64[D]")
    columns["start"] = start
    for k, name in enumerate(["", *range(5)]):
        risk = np.exp(0.4 * columns["x1"] - (0.5 * columns["arm"] if k == 0 else 0))
        times = rng.exponential(400 / risk), rng.exponential(900, n), rng.uniform(20, 500, n)
        columns[f"time{name}"] = np.ceil(np.minimum.reduce(times)).astype(int)
        columns[f"event{name}"] = (np.argmin(times, axis=0) + 1) % 3
    pq.write_table(pa.table(columns), folder / "people.parquet")
    controls = "\n".join(
        f"  c{k}: {{time: time{k}, event: event{k}, kind: negative control}}" for k in range(5)
    )
    study = rs.study.Study.parse(TEXT.replace("CONTROLS", controls), folder)
    rs.study.run(study, folder / "out", progress=False)
    return folder / "out"


def test_its_numbers_are_those_of_the_study(out, tmp_path):
    made = read(rs.report.write(out, tmp_path / "report.html", blind=False))
    results = rs.study.StudyResults.open(out)
    (main,) = results.rows("estimates", outcome="fall", analysis="matched", role="main")
    found = made.part["header"]["estimate"]
    for key in ("hr", "hr_lower", "hr_upper", "calibrated_hr", "target_persons"):
        assert found[key] == main[key]
    assert made.part["header"]["controls"] == 5
    roles = {row["role"] for row in made.part["result"]["tables"]["estimates"]}
    assert roles == {"main", "crude", "sensitivity", "model", "subgroup"}
    assert {c["cause"] for c in made.part["curves"]["curves"]} == {1, 2}
    curve = results.rows("curves", outcome="fall", analysis="matched", adjusted=True, arm="target")
    last = [row for row in curve if row["cause"] == 1][-1]
    shown = next(
        c
        for c in made.part["curves"]["curves"]
        if (c["adjusted"], c["cause"], c["arm"]) == (True, 1, "target")
    )
    assert shown["risk"][-1] == last["value"]
    assert len(made.part["people"]["tables"]["calendar"]) == 5
    assert "Competing events: death" in made.text
    assert "Male: no" in made.text
    for absent in ("not available", "Risk curves are"):
        assert absent not in made.text.replace(
            "Outcomes by week around the start of treatment are not available", ""
        )


def test_what_a_study_keeps_for_itself_is_shown_without_small_counts(out, tmp_path):
    shared = read(rs.report.write(out / "results", tmp_path / "a.html", date="x"))
    private = read(rs.report.write(out / "private", tmp_path / "b.html", date="x"))
    for part in ("result", "people", "follow_up"):
        if part in shared.part:
            for name, rows in shared.part[part]["tables"].items():
                for ours, theirs in zip(rows, private.part[part]["tables"][name], strict=True):
                    for key, value in ours.items():
                        if value is None:
                            assert theirs[key] is None, (part, name, key)
