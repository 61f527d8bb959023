"""Studies impute missing covariates, do each step in each completed data set, and pool."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.cohort.covariates.balance_within import balance_within
from riskset.cohort.covariates.covariate_design import as_design
from study.small import content, people, run
from study.test_resume import finished, written

N = 400
DATASETS = 4
DATA = {
    "people": "people.parquet",
    "treatment": "drug",
    "id": "id",
    "covariates": {"missing": "impute", "impute": {"datasets": DATASETS}},
}
COVARIATES = ["x", "age", "stage"]


def incomplete(with_gaps=True):
    """People of whom some have no age or stage, the more often if x is 1."""
    rng = np.random.default_rng(3)
    own = people(N)
    age_gaps = rng.random(N) < 0.1 + 0.2 * own["x"]
    stage_gaps = rng.random(N) < 0.15
    stage = np.array(["a", "b", "c"])[rng.integers(0, 3, N)]
    if not with_gaps:
        return own | {"stage": stage}
    age = pa.array(own["age"].astype(float), mask=age_gaps)
    return own | {"age": age, "stage": pa.array(stage, mask=stage_gaps)}


def study_content(**changes):
    return content(data=DATA, **changes)


def completed():
    """The completed data sets, made in Python from the treatment, all covariates and outcome."""
    table = pa.table(incomplete())
    y = rs.Surv(table["days"].to_numpy(), table["died"].to_numpy())
    return rs.impute(table.select(["drug", *COVARIATES]), y, datasets=DATASETS, seed=1), y


def by_hand(adjust, **model):
    """Score, adjustment and effect in each, pooled in Python."""
    frames, y = completed()
    estimates, balances = [], []
    for one in frames:
        covariates = one.select(COVARIATES)
        scored = rs.cohort.propensity_score(
            rs.cohort.Population(one["drug"].to_numpy()), covariates, penalty=None
        ).population
        adjusted = adjust(scored)
        balances.append(rs.cohort.balance(covariates, adjusted))
        estimates.append(rs.cohort.fit_outcome(y, adjusted, **model))
    return rs.pool(estimates), balances, estimates


WAYS = {
    "att": ({"weight": {"estimand": "att"}}, lambda p: rs.cohort.weight(p, estimand="att"), {}),
    "strata": ({"stratify": {"k": 4}}, lambda p: rs.cohort.stratify(p, k=4), {"interval": "wald"}),
    "matched": ({"match": {}}, rs.cohort.match, {"interval": "wald"}),
    "finegray": (
        {"weight": {"estimand": "ate"}, "model": {"kind": "finegray"}},
        lambda p: rs.cohort.weight(p, estimand="ate"),
        {"model": "finegray"},
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_the_pooled_effect_is_that_of_the_functions_of_python(tmp_path, name):
    section, adjust, model = WAYS[name]
    found = run(tmp_path, incomplete(), data=DATA, analyses={name: section})
    (row,) = found.rows("estimates", role="main")
    pooled, balances, estimates = by_hand(adjust, **model)
    answer = pooled.summary(level=0.95)
    for ours, theirs in (
        ("log_hr", "coef"),
        ("hr", "hazard_ratio"),
        ("hr_lower", "hazard_ratio_lower"),
        ("hr_upper", "hazard_ratio_upper"),
        ("se", "standard_error"),
        ("p", "p"),
        ("fraction_missing", "fraction_missing"),
    ):
        assert_allclose(row[ours], answer[theirs].to_numpy()[0], rtol=1e-8, err_msg=ours)
    assert row["n_imputations"] == DATASETS
    assert len({one.log_hr for one in estimates}) > 1, "the data sets do not differ"
    after = {r["name"]: r["after_smd"] for r in found.rows("balance")}
    means = np.mean([one.after.smd for one in balances], axis=0)
    assert_allclose([after[name] for name in balances[0].names], means, rtol=1e-6, atol=1e-9)
    events = [one.target.outcomes for one in estimates]
    assert row["target_outcomes"] == round(np.mean(events))


def test_variances_of_differences_follow_rubins_rules(tmp_path):
    found = run(tmp_path, incomplete(), data=DATA, analyses={"att": WAYS["att"][0]})
    balances = by_hand(WAYS["att"][1])[1]
    apart = np.array([one.after.smd for one in balances])
    within = np.mean([one.after.smd_variance for one in balances], axis=0)
    total = within + (1 + 1 / DATASETS) * apart.var(axis=0, ddof=1)
    ours = {r["name"]: r["after_smd_variance"] for r in found.rows("balance")}
    assert_allclose([ours[name] for name in balances[0].names], total, rtol=1e-6)
    (adjustment,) = found.rows("adjustments")
    assert_allclose(adjustment["after_max"], np.abs(apart.mean(axis=0)).max(), rtol=1e-6)


def test_risks_are_pooled(tmp_path):
    found = run(tmp_path, incomplete(), data=DATA, analyses={"att": WAYS["att"][0]})
    frames, y = completed()
    curves = []
    for one in frames:
        scored = rs.cohort.propensity_score(
            rs.cohort.Population(one["drug"].to_numpy()), one.select(COVARIATES), penalty=None
        ).population
        curves.append(rs.cohort.survival(y, rs.cohort.weight(scored, estimand="att")))
    columns = [one.columns([365.0]) for one in curves]
    at = [c["arm"] == "comparator" for c in columns]
    risk = [1 - c["survival"][k][0] for c, k in zip(columns, at, strict=True)]
    error = [c["standard_error"][k][0] for c, k in zip(columns, at, strict=True)]
    (row,) = found.rows("absolute_risks", adjusted=True)
    assert_allclose(row["comparator_risk"], np.mean(risk), rtol=1e-8)
    assert row["comparator_lower"] < np.mean(risk) < row["comparator_upper"]
    curve = found.rows("curves", adjusted=True, arm="comparator")
    last = max((r for r in curve if r["time"] <= 365), key=lambda r: r["time"])
    total = np.mean(np.square(error)) + (1 + 1 / DATASETS) * np.var(risk, ddof=1)
    assert_allclose(last["value"], 1 - np.mean(risk), rtol=1e-8)
    assert_allclose(last["standard_error"], np.sqrt(total), rtol=1e-8)


def test_without_missing_values_imputation_changes_nothing(tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "imputed").mkdir()
    plain = {name: value for name, value in DATA.items() if name != "covariates"}
    analyses = {"matched": {"match": {}}, "att": {"weight": {"estimand": "att"}}}
    a = run(tmp_path / "plain", incomplete(with_gaps=False), data=plain, analyses=analyses)
    b = run(tmp_path / "imputed", incomplete(with_gaps=False), data=DATA, analyses=analyses)
    for table in ("estimates", "balance", "adjustments", "table1", "absolute_risks", "warnings"):
        assert a.rows(table) == b.rows(table), table
    assert "No covariate had missing values" in report_of(b, tmp_path)


def report_of(found, folder):
    return rs.report.write(found.path, folder / "report.html").read_text("utf-8")


def test_the_report_says_how_values_were_imputed(tmp_path):
    found = run(tmp_path, incomplete(), data=DATA, analyses={"att": WAYS["att"][0]})
    page = report_of(found, tmp_path)
    assert "4 completed data sets, each after 10 cycles" in page
    assert "pooled over 4 data sets" in page
    assert "Missing infor" in page


def test_table1_shows_what_was_missing(tmp_path):
    own = incomplete()
    found = run(tmp_path, own, data=DATA, analyses={"att": WAYS["att"][0]})
    (line,) = found.rows("table1", covariate_id="age=(missing)")
    gaps = np.array([value is None for value in own["age"].to_pylist()])
    target = own["drug"] == 1
    assert line["kind"] == "missing"
    assert line["before_target_count"] == np.count_nonzero(gaps & target)
    assert line["before_comparator_count"] == np.count_nonzero(gaps & ~target)
    (age,) = found.rows("table1", covariate_id="age")
    known = np.array([v for v, t in zip(own["age"].to_pylist(), target, strict=True) if t and v])
    assert_allclose(age["before_target"], known.mean())
    names = {row["name"] for row in found.rows("balance")}
    assert "age=(missing)" not in names


def test_shared_lines_of_table1_go_by_what_was_recorded(tmp_path):
    """The balance has those to whom a value was imputed, too, and no count of missing values."""
    own = incomplete()
    target = np.flatnonzero(own["drug"] == 1)
    stage = own["stage"].to_pylist()
    for row in target[:100]:
        stage[row] = None
    for row in target[100:103]:
        stage[row] = "d"
    for row in np.flatnonzero(own["drug"] == 0)[:12]:
        stage[row] = "d"
    own |= {"stage": pa.array(stage)}
    run(tmp_path, own, data=DATA, analyses={"matched": WAYS["matched"][0]})
    shared = rs.study.StudyResults.open(tmp_path / "out")
    (level,) = shared.rows("table1", covariate_id="stage=d")
    (missing,) = shared.rows("table1", covariate_id="stage=(missing)")
    assert level["before_target_count"] is level["before_target"] is None
    assert level["before_comparator_count"] >= 12
    assert missing["before_comparator_count"] == sum(
        value is None for value, drug in zip(stage, own["drug"], strict=True) if drug == 0
    )
    # The sum of the others would tell how many have d.
    levels = [row for row in shared.rows("table1") if row["item"] == level["item"]]
    parts = [row for row in levels if row["kind"] in ("level", "missing")]
    assert sum(row["before_target_count"] is None for row in parts) >= 2
    (age,) = shared.rows("table1", covariate_id="age")
    assert age["before_target"] is not None


def test_subgroups_and_further_models_are_pooled(tmp_path):
    found = run(
        tmp_path,
        incomplete(),
        data=DATA,
        analyses={"att": {"weight": {"estimand": "att"}, "model": {"also": ["finegray"]}}},
        subgroups={"x": {"column": "x"}},
    )
    pooled = [row for row in found.rows("estimates") if row["role"] != "crude"]
    assert {row["role"] for row in pooled} == {"main", "model", "subgroup"}
    assert all(row["n_imputations"] == DATASETS and row["hr"] for row in pooled)
    (crude,) = found.rows("estimates", role="crude")
    y = rs.Surv(people(N)["days"], people(N)["died"])
    alone = rs.cohort.fit_outcome(y, rs.cohort.Population(people(N)["drug"]))
    assert_allclose(crude["hr"], alone.hr, rtol=1e-8)
    assert crude["n_imputations"] is None
    frames, _ = completed()
    inside = people(N)["x"] == 1
    differences = []
    for one in frames:
        covariates = one.select(COVARIATES)
        scored = rs.cohort.propensity_score(
            rs.cohort.Population(one["drug"].to_numpy()), covariates, penalty=None
        ).population
        weighted = rs.cohort.weight(scored, estimand="att")
        differences.append(balance_within(as_design(covariates, N), weighted, inside))
    ours = {r["name"]: r["after_smd"] for r in found.rows("subgroup_balance", level="1")}
    means = np.mean([one.after for one in differences], axis=0)
    theirs = dict(zip(rs.cohort.balance(covariates, weighted).names, means, strict=True))
    assert_allclose(ours["age"], theirs["age"], rtol=1e-6)


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tmp_path):
    pq.write_table(pa.table(incomplete()), tmp_path / "people.parquet")
    specification = tmp_path / "study.json"
    analyses = {"matched": {"match": {}}, "att": {"weight": {"estimand": "att"}}}
    specification.write_text(json.dumps(study_content(analyses=analyses)))
    study = rs.study.Study.read(specification)
    rs.study.run(study, tmp_path / "whole")
    total = finished(tmp_path / "whole" / "steps")
    command = [sys.executable, "-m", "riskset", "study", "run", str(specification)]
    child = subprocess.Popen([*command, "--out", str(tmp_path / "killed"), "--quiet"])
    steps = tmp_path / "killed" / "steps"
    while finished(steps) < 12:
        assert child.poll() is None, "it ended before it could be killed"
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not (tmp_path / "killed" / "results").exists()
    assert 12 <= finished(steps) < total
    rs.study.run(study, tmp_path / "killed")
    assert written(tmp_path / "killed") == written(tmp_path / "whole")


FAULTS = {
    "long table": ({"missing": "impute", "table": "long.csv"}, {}, "needs all covariates"),
    "settings": ({"missing": "indicator", "impute": {"datasets": 5}}, {}, "`missing` is indicator"),
    "too few": ({"missing": "impute", "impute": {"datasets": 1}}, {}, "datasets"),
    "profile": ({"missing": "impute"}, {"interval": "profile"}, "a profile interval cannot"),
    "bootstrap": ({"missing": "impute"}, {"interval": "bootstrap"}, "a bootstrap interval cannot"),
    "penalty": ({"missing": "impute"}, {"covariates": "all"}, "no standard errors to pool"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_cannot_be_pooled_is_a_fault(name):
    covariates, model, words = FAULTS[name]
    own = content(
        data=DATA | {"covariates": covariates}, analyses={"a": {"match": {}, "model": model}}
    )
    with pytest.raises(rs.InputError, match=words):
        rs.study.Study(own)


def test_given_scores_are_a_fault_with_its_line():
    text = json.dumps(study_content(), indent=1).replace('"id": "id"', '"id": "id", "score": "ps"')
    with pytest.raises(rs.InputError, match="do not use the imputed covariates") as caught:
        rs.study.Study.parse(text)
    line = next(k for k, own in enumerate(text.splitlines(), 1) if '"score"' in own)
    assert f"line {line}" in str(caught.value)


def test_check_finds_columns_with_too_few_values(tmp_path):
    own = incomplete()
    own["rare"] = pa.array(np.arange(N, dtype=float), mask=np.arange(N) > 3)
    pq.write_table(pa.table(own), tmp_path / "people.parquet")
    with pytest.raises(rs.InputError, match="'rare' has 4 known values, too few"):
        rs.study.check_data(rs.study.Study(study_content(), tmp_path))


ABSENT = {
    "variables": (
        {"variables": {"k": {"covariate": "stage=(missing)"}}},
        "variables.k.covariate: covariate 'stage=(missing)' was not found",
    ),
    "reference": (
        {"data": {"covariates": {"missing": "impute", "reference": {"stage": "(missing)"}}}},
        "data.covariates.reference.stage: the missing values of 'stage' are imputed, so no one",
    ),
    "exclude": (
        {"defaults": {"propensity": {"exclude": ["stage=(missing)"]}}},
        "defaults.propensity.exclude.0: covariate 'stage=(missing)' was not found",
    ),
    "labels": (
        {"data": {"covariate_labels": "labels.csv"}},
        "has a label for 'stage=(missing)', which is not a covariate",
    ),
}


@pytest.mark.parametrize("key", ABSENT)
def test_a_level_of_missing_values_that_are_imputed_is_a_fault(tmp_path, key):
    changes, words = ABSENT[key]
    pq.write_table(pa.table(incomplete()), tmp_path / "people.parquet")
    (tmp_path / "labels.csv").write_text("name,label\nage,Age\nstage=(missing),No stage\n")
    text = json.dumps(content(**changes | {"data": DATA | changes.get("data", {})}), indent=1)
    file = tmp_path / "study.json"
    file.write_text(text)
    with pytest.raises(rs.InputError) as caught:
        rs.study.check_data(rs.study.Study.read(file))
    assert words in str(caught.value)
    assert "(missing)" not in str(caught.value.hint)
    if key != "labels":
        places = [k for k, own in enumerate(text.splitlines(), 1) if "(missing)" in own]
        assert f"line {places[0]}," in str(caught.value)


@pytest.mark.parametrize("kind", [pa.float64(), pa.string()])
@pytest.mark.parametrize("rule", ["impute", "indicator"])
def test_a_column_without_any_value_has_the_line_of_the_rule(tmp_path, kind, rule):
    own = incomplete() | {"nothing": pa.nulls(N, kind)}
    pq.write_table(pa.table(own), tmp_path / "people.parquet")
    text = json.dumps(content(data=DATA | {"covariates": {"missing": rule}}), indent=1)
    file = tmp_path / "study.json"
    file.write_text(text)
    with pytest.raises(rs.InputError, match="'nothing' of people.parquet has no value in") as error:
        rs.study.check_data(rs.study.Study.read(file))
    line = next(k for k, own in enumerate(text.splitlines(), 1) if '"missing"' in own)
    assert f"line {line}, data.covariates.missing: " in str(error.value)


def test_a_data_set_that_cannot_be_analysed_gives_the_status(tmp_path):
    own = incomplete() | {"died": np.zeros(N, dtype=int)}
    found = run(tmp_path, own, data=DATA, analyses={"matched": {"match": {}}})
    (row,) = found.rows("runs")
    assert row["status"] == "no_events"
    assert row["reason"] == "none of the people who are left has the outcome."
    assert any(r["code"] == "data_set_failed" for r in found.rows("warnings"))
    assert found.rows("estimates", role="main")[0]["hr"] is None
