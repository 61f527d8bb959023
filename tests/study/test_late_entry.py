"""Late entry in studies: results as the functions compute them, checks, sharing and the report."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from study.small import people, run

LOOSE = {"max_smd": 9.0, "max_mdrr": 90.0, "min_equipoise": 0.0}
OUTCOMES = {"death": {"time": "days", "event": "died", "entry": "seen"}}


def late(n=400, **changes):
    rng = np.random.default_rng(3)
    columns = people(n)
    days = rng.integers(2, 500, n)
    seen = np.where(rng.random(n) < 0.5, 0, np.floor(rng.uniform(0, 0.9, n) * (days - 1)))
    return columns | {"days": days, "seen": seen, "died": rng.integers(0, 3, n)} | changes


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("late")
    model = {"rmst": [300], "also": ["finegray", "poisson"]}
    return run(
        folder, late(), outcomes=OUTCOMES, diagnostics=LOOSE,
        analyses={
            "weighted": {"weight": {"estimand": "ate"}, "model": model},
            "crude": {"propensity": "none"},
        },
    )  # fmt: skip


@pytest.fixture(scope="module")
def by_hand():
    columns = late()
    x = rs.Design.from_columns({"x": columns["x"] * 1.0, "age": columns["age"] * 1.0})
    crude = rs.cohort.Population(columns["drug"], row_id=columns["id"])
    score = rs.cohort.propensity_score(crude, rs.cohort.tidy(x, crude).design, penalty=None)
    y = rs.Surv(columns["days"], columns["died"], columns["seen"])
    return rs.cohort.weight(score.people, "ate"), crude, y, columns


def test_estimates(found, by_hand):
    weighted, crude, y, _ = by_hand
    for row, kind, adjusted in (
        (found.rows("estimates", analysis="weighted", role="main")[0], "cox", weighted),
        (found.rows("estimates", analysis="weighted", model="finegray")[0], "finegray", weighted),
        (found.rows("estimates", analysis="weighted", model="poisson")[0], "poisson", weighted),
        (found.rows("estimates", analysis="crude", role="main")[0], "cox", crude),
    ):
        own = rs.cohort.fit_outcome(y, adjusted, model=kind)
        for name in ("log_hr", "se", "hr_upper"):
            assert_allclose(row[name], getattr(own, name), rtol=1e-10, err_msg=kind)
        assert row["target_days"] == own.target.days
        assert_allclose(row["comparator_weighted_rate"], own.comparator.weighted_rate, rtol=1e-10)


def test_curves_risks_and_means(found, by_hand):
    weighted, _, y, columns = by_hand
    curves = rs.cohort.incidence(y, weighted)
    rows = found.rows("curves", analysis="weighted", adjusted=True, arm="target", cause=1)
    wanted = curves.columns([row["time"] for row in rows])
    here = (wanted["arm"] == "target") & (wanted["cause"] == 1)
    assert_allclose([row["value"] for row in rows], wanted["incidence"][here], rtol=1e-10)
    assert_allclose([row["upper"] for row in rows], wanted["upper"][here], rtol=1e-10)
    (risk,) = found.rows("absolute_risks", analysis="weighted", adjusted=True)
    own = rs.cohort.risk_difference(y, weighted, risk["time"])
    assert_allclose(risk["difference"], own.difference[0], rtol=1e-10)
    assert_allclose(risk["difference_upper"], own.upper[0], rtol=1e-10)
    assert risk["target_at_risk"] == own.target_at_risk[0]
    means = rs.cohort.restricted_mean(y, weighted, 300)
    rows = found.rows("restricted_means", analysis="weighted", adjusted=True)
    for name in ("difference", "difference_se", "ratio"):
        assert_allclose([r[name] for r in rows], getattr(means, name)[:, 0], rtol=1e-10)
    for row in found.rows("numbers_at_risk", analysis="crude", adjusted=True, arm="target"):
        from_start = np.where(columns["seen"] > 0, columns["seen"], -1)
        inside = (from_start < row["time"]) & (columns["days"] >= row["time"])
        assert row["people"] == np.count_nonzero(inside & (columns["drug"] == 1))


def test_follow_up(found, by_hand):
    _, crude, y, columns = by_hand
    own = rs.cohort.followup(y, crude)
    rows = found.rows("follow_up", analysis="crude", arm="target")
    assert_allclose([row["days"] for row in rows], own.target)
    assert_allclose([row["entry_days"] for row in rows], own.entry_target)
    bins = found.rows("follow_up_histogram", analysis="crude", arm="target")
    assert sum(row["people"] for row in bins) == np.count_nonzero(columns["drug"] == 1)
    (weeks,) = (found.rows("event_weeks", analysis="crude", arm="target"),)
    target = columns["drug"] == 1
    for row in weeks[::9]:
        start = 7 * row["week"]
        begun = (columns["seen"] <= start) | ((columns["days"] - 1) // 7 == row["week"])
        inside = target & begun & ((columns["days"] - 1) // 7 >= row["week"])
        assert row["people"] == np.count_nonzero(inside)


def test_the_report_says_so(found, tmp_path):
    page = rs.report.write(found, tmp_path / "report.html")
    text = page.read_text("utf-8")
    assert "left truncation" in text
    assert "Late entry: days from the start" in text
    content = json.loads(page.with_suffix(".json").read_text("utf-8"))
    assert len(content["parts"][0]["follow_up"]["tables"]["entries"]) == 2


def test_units_and_resumption(tmp_path):
    columns = late()
    months = {**columns, "days": columns["days"] / 30.4375, "seen": columns["seen"] / 30.4375}
    analyses = {"crude": {"propensity": "none"}}
    data = {"people": "people.parquet", "treatment": "drug", "id": "id"}
    found = run(
        tmp_path, months, outcomes=OUTCOMES, data={**data, "time_unit": "months"},
        analyses=analyses,
    )  # fmt: skip
    y = rs.Surv(columns["days"], columns["died"], columns["seen"])
    own = rs.cohort.fit_outcome(y, rs.cohort.Population(columns["drug"]))
    (main,) = found.rows("estimates", role="main")
    assert_allclose(main["target_days"], own.target.days, rtol=1e-10)
    found = run(tmp_path, months, data={**data, "time_unit": "months"}, analyses=analyses)
    assert any(not step["reused"] for step in found.run["steps"])
    (plain,) = found.rows("estimates", role="main")
    assert plain["target_days"] > main["target_days"]


def test_curves_that_are_not_known_are_left_out_with_their_reason(tmp_path):
    columns = late()
    columns["seen"] = np.where(
        columns["drug"] == 1, np.maximum(columns["seen"], 1), columns["seen"]
    )
    analyses = {"crude": {"propensity": "none", "model": {"rmst": [200]}}}
    found = run(tmp_path, columns, outcomes=OUTCOMES, analyses=analyses)
    assert not found.rows("curves")
    assert not found.rows("restricted_means")
    assert np.isfinite(found.rows("estimates", role="main")[0]["log_hr"])
    messages = {row["message"] for row in found.rows("warnings")}
    assert any("nobody in the target is under observation from the start" in m for m in messages)


def test_imputation_knows_the_entry(tmp_path):
    columns = late(200)
    columns["age"] = [None if k % 9 == 0 else float(v) for k, v in enumerate(columns["age"])]
    data = {"people": "people.parquet", "treatment": "drug", "id": "id"}
    data["covariates"] = {"missing": "impute", "impute": {"datasets": 2, "cycles": 2}}
    found = run(
        tmp_path, columns, data=data, outcomes=OUTCOMES, analyses={"a": {"match": {}}},
        diagnostics=LOOSE,
    )  # fmt: skip
    (main,) = found.rows("estimates", role="main")
    assert main["status"] == "ok"


@pytest.mark.parametrize(
    ("columns", "outcomes", "message"),
    [
        (late(), {"death": {**OUTCOMES["death"], "entry": "sen"}}, "did you mean 'seen'"),
        (late(), {"death": {**OUTCOMES["death"], "entry": "days"}}, "already used"),
        (late(seen=np.full(400, -1)), OUTCOMES, "'seen' of people.parquet must be at least 0"),
        (late(seen=np.full(400, 600)), OUTCOMES, "must be before 'days', the end of follow-up"),
    ],
)
def test_checks(tmp_path, columns, outcomes, message):
    with pytest.raises(rs.InputError, match=message):
        run(tmp_path, columns, outcomes=outcomes)


def test_shared_numbers_are_of_enough_people(tmp_path):
    columns = late()
    columns["seen"] = np.where(np.arange(400) < 380, np.maximum(columns["seen"], 3), 0)
    columns["days"] = np.maximum(columns["days"], columns["seen"] + 1)
    model = {"rmst": [200]}
    analyses = {"crude": {"propensity": "none", "model": model}}
    found = run(tmp_path, columns, outcomes=OUTCOMES, analyses=analyses, sharing={"blind": False})
    raw = found.rows("numbers_at_risk", adjusted=True)
    assert min(row["people"] for row in raw if row["time"] == 0) < 20
    shared = rs.study.StudyResults.open(tmp_path / "out" / "results")
    for row in shared.rows("numbers_at_risk"):
        assert row["people"] is None or row["people"] == 0 or row["people"] >= 5
    fewest = {
        (row["adjusted"], row["arm"], row["cause"], row["time"]): row["people"]
        for row in found.rows("curves")
    }
    curves = shared.rows("curves")
    assert curves
    for row in curves:
        assert fewest[row["adjusted"], row["arm"], row["cause"], row["time"]] >= 5
    quantiles = shared.rows("follow_up")
    assert any(row["entry_days"] is not None for row in quantiles)
    assert all(row["entry_days"] is None for row in quantiles if row["share"] in (0.0, 1.0))


@pytest.mark.parametrize("key", ["standardize", "doubly_robust"])
def test_predictions_of_outcome_models_need_the_start(tmp_path, key):
    analyses = {"a": {"propensity": "none", "model": {key: [100]}}}
    with pytest.raises(rs.InputError, match="needs people who are followed from the start"):
        run(tmp_path, late(), outcomes=OUTCOMES, analyses=analyses)
