"""A step that cannot be done is a status with a reason, and the rest of the study goes on."""

import numpy as np
import pytest

import riskset as rs
from study.small import people, run


def only(rows):
    (row,) = rows
    return row


def test_nobody_has_the_treatments(tmp_path):
    found = run(tmp_path, exposures={"new": {"value": 7}, "old": {"value": 8}})
    row = only(found.rows("runs"))
    assert row["status"] == "empty"
    assert "no one has `7` (new) or `8` (old) in the column 'drug'" in row["reason"]
    assert "whose values are `0`, `1`." in row["reason"]
    # Settings are no counts, and the values are arms: both stay as they are in what is shared.
    shared = rs.study.StudyResults.open(tmp_path / "out" / "results")
    assert only(shared.rows("runs"))["reason"] == row["reason"]
    assert only(found.rows("attrition"))["target_persons"] == 0
    assert found.rows("estimates") == []


def test_a_column_that_holds_no_treatments(tmp_path):
    found = run(
        tmp_path,
        data={"people": "people.parquet", "treatment": "age", "id": "id"},
        exposures={"new": {"value": 7}, "old": {"value": 8}},
    )
    n = np.unique(people()["age"]).size
    assert only(found.rows("runs"))["reason"] == (
        f"no one has `7` (new) or `8` (old) in the column 'age', which has {n} values."
    )


def test_one_arm_is_empty(tmp_path):
    found = run(tmp_path, exposures={"new": {"value": 1}, "old": {"value": "none"}})
    row = only(found.rows("runs"))
    assert (row["status"], row["step"]) == ("one_arm_empty", "population")
    counts = only(found.rows("arms", side="before"))
    assert counts["target_persons"] > 0
    assert counts["comparator_persons"] == 0
    assert only(found.rows("estimates"))["status"] == "one_arm_empty"


def test_no_comparator_is_within_the_caliper(tmp_path):
    columns = people()
    columns["score"] = np.where(columns["drug"] == 1, 0.8, 0.2)
    found = run(
        tmp_path,
        columns,
        data={"people": "people.parquet", "treatment": "drug", "id": "id", "score": "score"},
        analyses={
            "matched": {"match": {"scale": "propensity score", "caliper": 0.1}},
            "all": {"match": {"scale": "propensity score", "caliper": 0.7}},
        },
    )
    row = only(found.rows("runs", analysis="matched"))
    assert (row["status"], row["step"]) == ("no_matches", "adjustment")
    assert row["reason"].startswith(
        "no comparator is within the caliper of a target of the same block"
    )
    assert only(found.rows("runs", analysis="all"))["status"] == "ok"
    bars = found.rows("preference", adjustment=row["adjustment"])
    assert sum(bar["count"] for bar in bars) == 200
    assert sum(bar["kept"] for bar in bars) == 0
    roles = {r["analysis"]: r["role"] for r in found.rows("estimates", reading="marginal")}
    assert roles["matched"] == "crude"
    assert only(found.rows("ps"))["source"] == "given"


def test_outcomes_that_nobody_or_one_arm_has(tmp_path):
    columns = people()
    columns["never"] = np.zeros(200, dtype=int)
    columns["on_new"] = columns["died"] * columns["drug"]
    found = run(
        tmp_path,
        columns,
        outcomes={
            "death": {"time": "days", "event": "died"},
            "never": {"time": "days", "event": "never"},
            "on new": {"time": "days", "event": "on_new"},
        },
        analyses={"strata": {"stratify": {"k": 2}, "model": {"reading": "marginal"}}},
    )
    status = {row["outcome"]: row["status"] for row in found.rows("runs")}
    assert status == {"death": "ok", "never": "no_events", "on new": "events_in_one_arm"}
    never = only(found.rows("estimates", outcome="never", role="main"))
    assert never["hr"] is None
    assert never["mdrr"] == np.inf
    assert never["target_rate"] == 0
    assert only(found.rows("diagnostics", outcome="never", name="mdrr"))["verdict"] == "fail"
    on_new = only(found.rows("estimates", outcome="on new", role="main"))
    assert on_new["log_hr"] == on_new["hr"] == np.inf


def test_nothing_but_competing_events(tmp_path):
    columns = people()
    columns["died"] = 2 * columns["died"]
    found = run(tmp_path, columns, risk_times=[100])
    assert found.rows("runs")[0]["status"] == "no_events"
    for row in found.rows("absolute_risks"):
        assert row["target_risk"] == row["comparator_risk"] == row["difference"] == 0
    # What happened is there: deaths of other causes.
    (arms,) = found.rows("arms", side="before")
    assert arms["target_outcomes"] == arms["comparator_outcomes"] == 0
    assert arms["target_competing"] + arms["comparator_competing"] == (columns["died"] == 2).sum()
    rs.report.write(tmp_path / "out", tmp_path / "report.html")


def test_a_covariate_that_is_the_treatment(tmp_path):
    columns = people()
    columns["again"] = columns["drug"]
    found = run(tmp_path, columns, outcomes={"death": {"time": "days", "event": "died"}})
    row = only(found.rows("runs"))
    assert (row["status"], row["step"]) == ("high_correlation", "propensity score")
    assert "'again'" in row["reason"]
    flagged = only(found.rows("ps_flagged"))
    assert (flagged["name"], flagged["kind"]) == ("again", "high_correlation")
    assert flagged["correlation"] == pytest.approx(1)
    assert flagged["mean_target"] == pytest.approx(1)
    assert only(found.rows("estimates"))["role"] == "crude"


def test_weights_that_are_infinite_and_trimming_that_leaves_nobody(tmp_path):
    columns = people()
    score = np.full(200, 0.5)
    score[np.flatnonzero(columns["drug"] == 0)[0]] = 1.0
    columns["score"] = score
    found = run(
        tmp_path,
        columns,
        data={"people": "people.parquet", "treatment": "drug", "score": "score"},
        analyses={
            "weighted": {"weight": {"estimand": "ate"}},
            "trimmed": {"trim": {"equipoise": [0.9, 0.95]}},
        },
    )
    weighted = only(found.rows("runs", analysis="weighted"))
    assert (weighted["status"], weighted["step"]) == ("positivity", "adjustment")
    trimmed = only(found.rows("runs", analysis="trimmed"))
    assert trimmed["status"] == "empty"
    assert trimmed["reason"].startswith("no people are left; the attrition shows")


def test_scores_that_cannot_be_fitted_again(tmp_path):
    columns = people(400)
    columns["x"] = np.repeat([0, 1], 200)
    columns["drug"] = np.where(columns["x"] == 1, np.arange(400) % 2, np.arange(400) % 20 == 0)
    found = run(
        tmp_path,
        columns,
        data={"people": "people.parquet", "treatment": "drug", "covariates": {"columns": ["x"]}},
        defaults={
            "propensity": {"penalty": "none", "cross_validate": False, "max_correlation": 0.9}
        },
        analyses={"trimmed": {"trim": {"symmetric": 0.1, "refit": True}, "weight": {}}},
    )
    # Trimming leaves those with x = 1 only, whom nothing tells apart.
    row = only(found.rows("runs"))
    assert (row["status"], row["step"]) == ("no_covariates", "adjustment")
    assert found.rows("attrition", adjustment=row["adjustment"])[-1]["target_persons"] == 100


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("days", 0, r"'days' of people.parquet must hold days above 0, but 1 row does not"),
        ("died", 3, r"'died' of people.parquet must hold 0, 1 or 2, .* row 5, id 14, value 3\)"),
        ("died", 0.5, r"'died' of people.parquet must hold 0, 1 or 2"),
    ],
)
def test_times_and_events_that_cannot_be(tmp_path, name, value, message):
    columns = people()
    columns[name] = np.where(np.arange(200) == 4, value, columns[name])
    with pytest.raises(rs.InputError, match=message):
        run(tmp_path, columns)


def test_bad_data_end_the_run_with_the_place(tmp_path):
    columns = people()
    columns["age"] = np.where(np.arange(200) == 3, np.nan, columns["age"])
    with pytest.raises(rs.InputError, match=r"column 'age' of people.parquet.*data row 4"):
        run(tmp_path, columns)
    assert not (tmp_path / "out" / "results").exists()


@pytest.mark.parametrize("interval", ["robust", "bootstrap"])
def test_a_single_pair_has_no_robust_interval(tmp_path, interval):
    drug = np.arange(200) % 2
    block = np.where(drug == 1, 2, 3)
    block[:2] = 1
    columns = people(drug=drug, block=block, died=np.ones(200, dtype=int))
    model = {"rmst": [5], "interval": interval, "replicates": 39}
    found = run(
        tmp_path,
        columns,
        data={"people": "people.parquet", "treatment": "drug", "id": "id"}
        | {"covariates": {"columns": ["x", "age"]}},
        analyses={
            "pair": {"match": {"within": ["block"], "caliper": 1e9}, "model": model},
            "all": {"model": {}},
        },
    )
    status = {row["analysis"]: row["status"] for row in found.rows("runs")}
    assert status == {"pair": "one_cluster", "all": "ok"}
    sizes = {row["kind"]: row["target_rows"] for row in found.rows("adjustments")}
    assert sizes["matching"] == 1
    for row in found.rows("restricted_means", analysis="pair", adjusted=True):
        assert row["difference_lower"] is None
    assert found.rows("estimates", analysis="all", role="main")[0]["hr"] > 0
