"""Sampling weights in studies: every step as the functions do it, checks, and what is shared."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.cohort.adjustments.adjustment import start
from study.small import people, run

LOOSE = {"max_smd": 9.0, "max_mdrr": 90.0, "min_equipoise": 0.0}
DATA = {
    "people": "people.parquet",
    "treatment": "drug",
    "id": "id",
    "sampling_weight": "w",
}
ANALYSES = {
    "crude": {"propensity": "none"},
    "weighted": {"weight": {"estimand": "ate"}, "model": {"rmst": [300], "also": ["finegray"]}},
    "matched": {"match": {"ratio": 2, "caliper": 0.5}},
    "strata": {"stratify": {"k": 3}},
}


def sampled(n=300, seed=1):
    rng = np.random.default_rng(7)
    columns = people(n, seed)
    return columns | {"w": rng.uniform(0.5, 4.0, n), "died": rng.integers(0, 3, n)}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sampled")
    return run(
        folder, sampled(), data=DATA, analyses=ANALYSES, diagnostics=LOOSE,
        subgroups={"x": {"column": "x"}},
    )  # fmt: skip


@pytest.fixture(scope="module")
def by_hand():
    """The adjustments of the analyses, and the outcome."""
    columns = sampled()
    x = rs.Design.from_columns({"x": columns["x"] * 1.0, "age": columns["age"] * 1.0})
    crude = rs.cohort.Population(
        columns["drug"], row_id=columns["id"], sampling_weight=columns["w"]
    )
    score = rs.cohort.propensity_score(crude, rs.cohort.tidy(x, crude).design, penalty=None)
    made = {
        "crude": start(crude, allow_weights=True),
        "weighted": rs.cohort.weight(score.people, "ate"),
        "matched": rs.cohort.match(score.people, ratio=2, caliper=0.5),
        "strata": rs.cohort.stratify(score.people, 3),
    }
    return made, rs.Surv(columns["days"], columns["died"]), x


def test_estimates(found, by_hand):
    made, y, _ = by_hand
    for name, adjusted in made.items():
        own = rs.cohort.fit_outcome(y, adjusted)
        (main,) = found.rows("estimates", analysis=name, role="main")
        assert (main["reading"], main["interval"]) == ("marginal", "robust")
        assert not found.rows("estimates", analysis=name, role="sensitivity")
        for key in ("log_hr", "se", "hr_lower", "llr"):
            assert_allclose(main[key], getattr(own, key), rtol=1e-10, err_msg=name)
        assert_allclose(main["target_weighted_rate"], own.target.weighted_rate, rtol=1e-10)
        (crude,) = found.rows("estimates", analysis=name, role="crude")
        raw = rs.cohort.fit_outcome(y, made["crude"])
        assert_allclose(crude["log_hr"], raw.log_hr, rtol=1e-10)
        assert_allclose(crude["se"], raw.se_robust, rtol=1e-10)
    (other,) = found.rows("estimates", analysis="weighted", role="model")
    own = rs.cohort.fit_outcome(y, made["weighted"], model="finegray")
    assert_allclose(other["log_hr"], own.log_hr, rtol=1e-10)


def test_balance_and_table_1(found, by_hand):
    made, _, x = by_hand
    for name, adjusted in made.items():
        (run_row,) = found.rows("runs", analysis=name)
        own = rs.cohort.balance(x, adjusted)
        rows = found.rows("balance", adjustment=run_row["shared_adjustment"])
        for side in ("before", "after"):
            for key in ("mean_target", "smd", "count_comparator"):
                wanted = getattr(getattr(own, side), key)
                have = np.array([r[f"{side}_{key}"] for r in rows], dtype=float)
                assert_allclose(have, wanted, rtol=1e-10, err_msg=name)
        (adjustment,) = found.rows("adjustments", adjustment=run_row["shared_adjustment"])
        assert adjustment["sampled"]
        assert_allclose(adjustment["target_effective"], adjusted.effective_sizes()[0], rtol=1e-10)
        (line,) = found.rows("table1", adjustment=run_row["shared_adjustment"], kind="effective")
        size = made["crude"].effective_sizes()[1]
        assert_allclose(line["before_comparator"], size, rtol=1e-10)


def test_curves_risks_and_restricted_means(found, by_hand):
    made, y, _ = by_hand
    for name in ("crude", "weighted"):
        curves = rs.cohort.incidence(y, made[name])
        rows = found.rows("curves", analysis=name, adjusted=True, arm="target", cause=1)
        at = [row["time"] for row in rows]
        wanted = curves.columns(at)
        here = (wanted["arm"] == "target") & (wanted["cause"] == 1)
        for key in ("standard_error", "lower"):
            assert_allclose([row[key] for row in rows], wanted[key][here], rtol=1e-10)
        assert_allclose([row["value"] for row in rows], wanted["incidence"][here], rtol=1e-10)
        (risk,) = found.rows("absolute_risks", analysis=name, adjusted=True)
        own = rs.cohort.risk_difference(y, made[name], risk["time"])
        assert_allclose(risk["difference"], own.difference[0], rtol=1e-10)
        assert_allclose(risk["difference_lower"], own.lower[0], rtol=1e-10)
    means = rs.cohort.restricted_mean(y, made["weighted"], 300)
    rows = found.rows("restricted_means", analysis="weighted", adjusted=True)
    assert_allclose([row["difference_se"] for row in rows], means.difference_se[:, 0], rtol=1e-10)


def test_the_report_says_so(found, tmp_path):
    page = rs.report.write(found, tmp_path / "report.html")
    text = page.read_text("utf-8")
    assert "as its sampling weight" in text
    assert "weighted by the sampling weights" in text
    assert "Weighted rate" in text
    content = json.loads(page.with_suffix(".json").read_text("utf-8"))
    assert content["parts"][0]["characteristics"]["weighted"] == "sampled"


def test_shared_numbers_hide_few_people_with_large_weights(tmp_path):
    columns = sampled()
    few = np.zeros(300)
    few[np.flatnonzero(columns["drug"] == 1)[:3]] = 1.0
    columns |= {"few": few, "w": np.where(few == 1, 500.0, columns["w"])}
    found = run(tmp_path, columns, data=DATA, analyses={"crude": {"propensity": "none"}})
    shared = rs.study.StudyResults.open(tmp_path / "out" / "results")
    rows = {row["name"]: row for row in shared.rows("balance")}
    assert rows["few"]["before_mean_target"] is None
    assert rows["few"]["before_smd"] is None
    assert rows["x"]["before_mean_target"] is not None
    assert {row["name"]: row for row in found.rows("balance")}["few"]["before_count_target"] == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"analyses": {"a": {"match": {}, "model": {"reading": "stratified"}}}}, "use marginal"),
        ({"analyses": {"a": {"match": {}, "model": {"firth": True}}}}, "takes no weights"),
        ({"data": {**DATA, "sampling_weight": "weights"}}, "did you mean 'w'|column 'weights'"),
        ({"data": {**DATA, "sampling_weight": "drug"}}, "already used"),
    ],
)
def test_checks(tmp_path, changes, message):
    with pytest.raises(rs.InputError, match=message):
        run(tmp_path, sampled(), **{"data": DATA, **changes})


def test_weights_are_above_0(tmp_path):
    columns = sampled()
    columns["w"][4] = 0.0
    with pytest.raises(rs.InputError, match=r"column 'w' of people.parquet must be above 0.*row 5"):
        run(tmp_path, columns, data=DATA)


def test_completed_data_sets_have_the_weights(tmp_path):
    columns = sampled()
    columns["age"] = [None if k % 9 == 0 else float(v) for k, v in enumerate(columns["age"])]
    data = {**DATA, "covariates": {"missing": "impute", "impute": {"datasets": 2, "cycles": 2}}}
    analyses = {"weighted": {"weight": {"estimand": "ate"}}}
    found = run(tmp_path, columns, data=data, analyses=analyses, diagnostics=LOOSE)
    (main,) = found.rows("estimates", role="main")
    assert (main["status"], main["interval"]) == ("ok", "robust")
    assert main["n_imputations"] == 2
    assert all(row["sampled"] for row in found.rows("adjustments"))
    raw = rs.cohort.Population(columns["drug"], sampling_weight=columns["w"])
    crude = rs.cohort.fit_outcome(rs.Surv(columns["days"], columns["died"]), raw)
    (row,) = found.rows("estimates", role="crude")
    assert_allclose(row["log_hr"], crude.log_hr, rtol=1e-10)
