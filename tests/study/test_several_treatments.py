"""Weights of several treatments in studies: as the functions make them, shared by all pairs."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from study.small import people, run

ARMS = ("new", "old", "rest")
LOOSE = {"max_smd": 9.0, "max_mdrr": 90.0, "min_equipoise": 0.0}
BALANCED = {"method": "entropy", "estimand": "ate"}
DESIGN = {
    "exposures": {name: {"value": k} for k, name in enumerate(ARMS)},
    "comparisons": [
        {"target": "new", "comparator": "old"},
        {"target": "new", "comparator": "rest"},
        {"target": "rest", "comparator": "old"},
    ],
    "sharing": {"blind": False},
}


def three(n=450, seed=11):
    rng = np.random.default_rng(seed)
    columns = people(n)
    return columns | {"drug": rng.integers(0, 3, n) * (columns["x"] | rng.integers(0, 2, n))}


def analysed(**settings):
    score = {} if settings.get("method") == "entropy" else {"penalty": "none"}
    settings = {"arms": list(ARMS)} | score | settings
    return {"common": {"propensity": "none", "weight_treatments": settings}}


def by_hand(columns, penalty=None, **settings):
    """The weights, the covariates and the outcome."""
    x = rs.Design.from_columns({"x": columns["x"] * 1.0, "age": columns["age"] * 1.0})
    names = np.array(ARMS)[columns["drug"]]
    tidied = rs.cohort.tidy(x, rs.cohort.Population(columns["drug"] == 0)).design
    if settings.get("method") != "entropy":
        settings = settings | {"penalty": penalty}
    found = rs.cohort.weight_treatments(names, tidied, **settings)
    return found, x, rs.Surv(columns["days"], columns["died"])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"estimand": "ate"},
        {"estimand": "att", "target": "rest"},
        {"estimand": "ate", "method": "entropy"},
    ],
    ids=str,
)
def test_they_are_those_of_the_functions(tmp_path, settings):
    columns = three()
    found = run(tmp_path, columns, analyses=analysed(**settings), **DESIGN, diagnostics=LOOSE)
    weights, x, y = by_hand(columns, **settings)
    largest = []
    for one, other in itertools.combinations(ARMS, 2):
        rows, pair = weights.rows(one, other), weights.pair(one, other)
        largest.append(np.abs(rs.cohort.balance(x.take_rows(rows), pair).after.smd).max())
    for pair in DESIGN["comparisons"]:
        own = weights.pair(pair["target"], pair["comparator"])
        rows = weights.rows(pair["target"], pair["comparator"])
        wanted = rs.cohort.fit_outcome(y[rows], own)
        (main,) = found.rows("estimates", role="main", **pair)
        assert main["status"] == "ok"
        assert main["interval"] == "robust"
        for name in ("log_hr", "se", "hr_lower"):
            assert_allclose(main[name], getattr(wanted, name), rtol=1e-10)
        (place,) = found.rows("runs", **pair)
        (adjustment,) = found.rows("adjustments", adjustment=place["shared_adjustment"])
        assert_allclose(adjustment["target_effective"], own.effective_sizes()[0], rtol=1e-10)
        assert_allclose(adjustment["pairwise_max"], max(largest), rtol=1e-10)
        balance = rs.cohort.balance(x.take_rows(rows), own)
        smd = [r["after_smd"] for r in found.rows("balance", adjustment=adjustment["adjustment"])]
        assert_allclose(smd, balance.after.smd, rtol=1e-8, atol=1e-12)
        (curve,) = found.rows("absolute_risks", adjusted=True, **pair)
        risk = rs.cohort.risk_difference(y[rows], own, curve["time"])
        assert_allclose(curve["difference"], risk.difference[0], rtol=1e-10)


def test_entropy_balancing_leaves_covariates_out(tmp_path):
    """`exclude` is the one key of the regression that it has."""
    columns = three()
    analyses = analysed(**BALANCED, exclude=["age"])
    found = run(tmp_path, columns, analyses=analyses, **DESIGN, diagnostics=LOOSE)
    names = np.array(ARMS)[columns["drug"]]
    x = (columns["x"] * 1.0)[:, None]
    weights = rs.cohort.weight_treatments(names, x, **BALANCED)
    y = rs.Surv(columns["days"], columns["died"])
    wanted = rs.cohort.fit_outcome(y[weights.rows("new", "old")], weights.pair("new", "old"))
    (main,) = found.rows("estimates", role="main", target="new", comparator="old")
    assert_allclose([main["log_hr"], main["se"]], [wanted.log_hr, wanted.se], rtol=1e-8)


def test_the_target_is_the_name_of_an_exposure(tmp_path):
    """Also where the name is a number."""
    columns, names = three(), ("1", "2", "3")
    design = {
        "exposures": {name: {"value": k} for k, name in enumerate(names)},
        "comparisons": [{"target": "1", "comparator": "3"}],
        "sharing": {"blind": False},
    }
    settings = {"arms": [1, 2, 3], "estimand": "att", "target": 3, "penalty": "none"}
    analyses = {"common": {"propensity": "none", "weight_treatments": settings}}
    found = run(tmp_path, columns, analyses=analyses, **design, diagnostics=LOOSE)
    weights, _, y = by_hand(columns, estimand="att", target="rest")
    wanted = rs.cohort.fit_outcome(y[weights.rows("new", "rest")], weights.pair("new", "rest"))
    (main,) = found.rows("estimates", role="main")
    assert main["estimand"] == "atu"
    assert_allclose(main["log_hr"], wanted.log_hr, rtol=1e-10)


def test_estimands_of_pairs(tmp_path):
    settings = {"estimand": "att", "target": "rest"}
    found = run(tmp_path, three(), analyses=analysed(**settings), **DESIGN, diagnostics=LOOSE)
    estimands = {
        (row["target"], row["comparator"]): row["estimand"]
        for row in found.rows("estimates", role="main")
    }
    assert estimands == {("new", "old"): None, ("new", "rest"): "atu", ("rest", "old"): "att"}


def test_the_weights_are_computed_once_and_again_with_other_settings(tmp_path):
    columns = three()
    found = run(tmp_path, columns, analyses=analysed(), **DESIGN)
    steps = [step for step in found.run["steps"] if step["step"] == "weights of treatments"]
    assert [step["reused"] for step in steps] == [False]
    found = run(tmp_path, columns, analyses=analysed(), **DESIGN)
    assert all(step["reused"] for step in found.run["steps"])
    before = found.rows("estimates", role="main")
    other = run(tmp_path, columns, analyses=analysed(estimand="ate"), **DESIGN)
    assert before != other.rows("estimates", role="main")


def test_the_largest_difference_decides_and_the_report_has_it(tmp_path):
    columns = three()
    settings = {"estimand": "att", "target": "rest"}
    found = run(tmp_path, columns, analyses=analysed(**settings), **DESIGN)
    (run_row, *_) = found.rows("runs")
    (adjustment,) = found.rows("adjustments", adjustment=run_row["shared_adjustment"])
    gate = found.rows("diagnostics", name="shared_balance")
    assert {row["value"] for row in gate} == {adjustment["pairwise_max"]}
    page = rs.report.write(found, tmp_path / "report.html").read_text("utf-8")
    assert "Between any two of these" in page
    assert "generalised propensity scores" in page
    assert "in every comparison" in page
    shared = rs.study.StudyResults.open(tmp_path / "out" / "results")
    shown = {abs(row["after_smd"]) for row in shared.rows("balance") if row["after_smd"]}
    for row in shared.rows("adjustments"):
        assert row["pairwise_max"] is None or row["pairwise_max"] in shown


def test_a_treatment_that_covariates_determine(tmp_path):
    columns = three()
    columns["x"] = (columns["drug"] == 1).astype(int)
    found = run(tmp_path, columns, analyses=analysed(), **DESIGN)
    (row, *_) = found.rows("runs")
    assert row["status"] == "high_correlation"
    found = run(tmp_path, columns, analyses=analysed(on_high_correlation="warn"), **DESIGN)
    (row, *_) = found.rows("runs")
    assert row["status"] == "positivity"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight_treatments": {"arms": ["new", "old"]}}, "three or more different exposures"),
        ({"weight_treatments": {"arms": ["new", "old", "res"]}}, "did you mean .rest."),
        ({"weight": {}}, "weight and weight_treatments exclude each other"),
        ({"trim": {"symmetric": 0.1}, "propensity": {"penalty": "none"}}, "two treatments"),
        ({"weight_treatments": {"arms": list(ARMS), "estimand": "att"}}, "`target` is needed"),
        (
            {"weight_treatments": {"arms": list(ARMS), "estimand": "att", "target": "x"}},
            "not one of the `arms`",
        ),
        (
            {"weight_treatments": {"arms": list(ARMS), **BALANCED, "strength": 2.0}},
            "`strength` belongs to the regression of the scores, which entropy balancing does not",
        ),
        (
            {"weight_treatments": {"arms": list(ARMS), **BALANCED, "penalty": "none"}},
            "`penalty` belongs to the regression",
        ),
        ({"model": {"firth": True}}, "takes no weights, but `weight_treatments`"),
        ({"model": {"interval": "stacked"}}, "stacked interval needs weights"),
        ({"model": {"standardize": [100]}}, "does not use the weights of several treatments"),
    ],
)
def test_checks(tmp_path, changes, message):
    analysis = analysed()["common"] | changes
    with pytest.raises(rs.InputError, match=message):
        run(tmp_path, three(), analyses={"common": analysis}, **DESIGN)


def test_files_of_two_arms_are_refused():
    text = """
title: Two
data: {cohort_method_data: some.zip}
exposures: {new: {cohort: 1}, old: {cohort: 2}, rest: {cohort: 3}}
comparisons: [{target: new, comparator: old}]
outcomes: {death: {cohort: 4}}
analyses:
  common:
    propensity: none
    weight_treatments: {arms: [new, old, rest]}
"""
    with pytest.raises(rs.InputError, match="each file of CohortMethod has those of two"):
        rs.study.Study.parse(text)


def test_with_a_penalty_that_cross_validation_chooses(tmp_path):
    columns = three()
    settings = {"estimand": "ate", "penalty": "l1", "folds": 4, "repeats": 1}
    analyses = analysed(**settings)
    found = run(tmp_path, columns, analyses=analyses, **DESIGN, diagnostics=LOOSE)
    weights, _, y = by_hand(columns, estimand="ate", penalty="l1", folds=4, repeats=1)
    own, rows = weights.pair("new", "old"), weights.rows("new", "old")
    wanted = rs.cohort.fit_outcome(y[rows], own)
    (main,) = found.rows("estimates", role="main", target="new", comparator="old")
    assert_allclose(main["log_hr"], wanted.log_hr, rtol=1e-10)
    page = rs.report.write(found, tmp_path / "report.html").read_text("utf-8")
    assert "with an L1 penalty chosen by 4-fold cross-validation" in page


def test_with_sampling_weights(tmp_path):
    columns = three() | {"w": np.random.default_rng(2).uniform(0.5, 4.0, 450)}
    data = {"people": "people.parquet", "treatment": "drug", "id": "id", "sampling_weight": "w"}
    for settings in ({"estimand": "ate"}, {"estimand": "ate", "method": "entropy"}):
        found = run(
            tmp_path, columns, data=data, analyses=analysed(**settings), **DESIGN,
            diagnostics=LOOSE,
        )  # fmt: skip
        x = rs.Design.from_columns({"x": columns["x"] * 1.0, "age": columns["age"] * 1.0})
        names = np.array(ARMS)[columns["drug"]]
        first = rs.cohort.Population(columns["drug"] == 0, sampling_weight=columns["w"])
        x, score = (
            rs.cohort.tidy(x, first).design,
            {} if "method" in settings else {"penalty": None},
        )
        weights = rs.cohort.weight_treatments(
            names, x, sampling_weight=columns["w"], **settings, **score
        )
        y = rs.Surv(columns["days"], columns["died"])
        rows = weights.rows("new", "old")
        wanted = rs.cohort.fit_outcome(y[rows], weights.pair("new", "old"))
        (main,) = found.rows("estimates", role="main", target="new", comparator="old")
        assert_allclose([main["log_hr"], main["se"]], [wanted.log_hr, wanted.se], rtol=1e-10)


def test_imputed_covariates(tmp_path):
    """Weights in each completed data set, and the effects by Rubin's rules."""
    columns = three()
    gaps = np.random.default_rng(5).random(450) < 0.2
    columns["age"] = pa.array(columns["age"].astype(float), mask=gaps)
    data = {
        "people": "people.parquet", "treatment": "drug", "id": "id",
        "covariates": {"missing": "impute", "impute": {"datasets": 3}},
    }  # fmt: skip
    found = run(
        tmp_path, columns, data=data, analyses=analysed(estimand="ate"), **DESIGN,
        diagnostics=LOOSE,
    )  # fmt: skip
    y = rs.Surv(columns["days"], columns["died"])
    table = pa.table({name: columns[name] for name in ("drug", "x", "age")})
    table = table.set_column(0, "drug", [pa.array(columns["drug"].astype(str))])  # as levels
    estimates, sizes = [], []
    for one in rs.impute(table, y, datasets=3, seed=1):
        x = np.column_stack([one["x"].to_numpy(), one["age"].to_numpy()]).astype(float)
        names = np.array(ARMS)[columns["drug"]]
        weights = rs.cohort.weight_treatments(names, x, estimand="ate", penalty=None)
        pair, rows = weights.pair("new", "old"), weights.rows("new", "old")
        estimates.append(rs.cohort.fit_outcome(y[rows], pair))
        sizes.append(
            [
                rs.cohort.balance(x[weights.rows(*two)], weights.pair(*two)).after.smd
                for two in itertools.combinations(ARMS, 2)
            ]
        )
    wanted = rs.pool(estimates)
    (main,) = found.rows("estimates", role="main", target="new", comparator="old")
    pooled = [wanted.coef_[0], wanted.standard_error_[0]]
    assert_allclose([main["log_hr"], main["se"]], pooled, rtol=1e-6)
    (row,) = found.rows("runs", target="new", comparator="old")
    (adjustment,) = found.rows("adjustments", adjustment=row["shared_adjustment"])
    assert_allclose(adjustment["pairwise_max"], np.abs(np.mean(sizes, axis=0)).max(), rtol=1e-6)


def test_coarsening_is_not_the_adjustment_of_another_analysis(tmp_path):
    analyses = {
        "crude": {"propensity": "none"},
        "coarse": {"propensity": "none", "coarsen": {"covariates": ["age"]}},
    }
    found = run(tmp_path, analyses=analyses)
    (first, second) = found.rows("runs")
    assert first["adjustment"] != second["adjustment"]
    (row,) = found.rows("estimates", analysis="coarse", role="main")
    assert row["reading"] == "stratified"
