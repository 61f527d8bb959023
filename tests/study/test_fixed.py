"""Coefficients of outcome models that are held: R's offset(), Cox(fixed=) and score equations."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from study.small import content, people, run
from study.test_time_effect import AT, WEIGHTED, R, check, veteran

FIXED = {"karno": -0.03, "age": 0.01}


@pytest.mark.parametrize("part", ["plain", "weighted", "strata"])
def test_estimates_are_those_of_r(tmp_path, part):
    others = {"weighted": WEIGHTED, "strata": {"coarsen": {"within": ["stratum"]}}, "plain": {}}
    interval = "robust" if part == "weighted" else "wald"
    found = veteran(tmp_path, {"fixed": FIXED, "interval": interval}, **others[part])
    (main,) = found.rows("estimates", role="main")
    golden = R["fixed"][part]
    assert main["log_hr"] == pytest.approx(golden["log_hr"], rel=1e-7)
    assert main["se"] == pytest.approx(golden["se"], rel=1e-6)
    if part == "plain":  # R takes no offset off the log likelihood at 0 either
        assert main["llr"] == pytest.approx(golden["loglik"][1] - golden["loglik"][0], rel=1e-6)
    (crude,) = found.rows("estimates", role="crude")
    assert crude["log_hr"] != pytest.approx(golden["log_hr"], rel=1e-3)
    rows = found.rows("outcome_coefficients", number=main["number"])
    assert [(r["name"], r["coef"], r["fixed"]) for r in rows] == [
        ("karno", -0.03, True),
        ("age", 0.01, True),
    ]
    assert main["n_covariates"] == 0
    words = found.study["analyses"]["main"]["words"]["covariates"]
    assert words == "the coefficients of these covariates were held at given log ratios: " + (
        "karno (-0.03), age (0.01)"
    )


def test_the_effect_over_time_keeps_them(tmp_path):
    model = {"fixed": FIXED, "interval": "wald", "time_effect": "log", **AT}
    found = veteran(tmp_path, model)
    check(found, R["fixed"]["log"], "wald")
    # The mean of the intervals, weighted by their information, is the constant ratio.
    rows = found.rows("effect_over_time")
    mean = np.average([r["log_hr"] for r in rows], weights=[r["se"] ** -2 for r in rows])
    assert mean == pytest.approx(R["fixed"]["plain"]["log_hr"], abs=1e-8)


@pytest.mark.parametrize("model", ["cox", "finegray"])
def test_it_is_what_fixed_of_an_estimator_is(model):
    """With other covariates, weights and a category of which one level is held."""
    rng = np.random.default_rng(2)
    n = 300
    frame = pd.DataFrame(
        {
            "age": rng.normal(60, 9, n),
            "dose": rng.normal(size=n),
            "site": pd.Categorical(rng.choice(["a", "b", "c"], n)),
        }
    )
    arm = rng.integers(0, 2, n)
    y = rs.Surv(rng.integers(1, 80, n), rng.integers(0, 3, n))
    group = rs.cohort.Population(arm, rng.uniform(0.3, 0.7, n))
    weighted = rs.cohort.weight(group, "ate")
    fixed = {"age": 0.02, "site=c": -0.4}
    found = rs.cohort.fit_outcome(y, weighted, model=model, covariates=frame, fixed=fixed)
    kind = {"cox": rs.Cox(), "finegray": rs.FineGray(censoring_weights="none")}[model]
    plain = kind.set_params(cause=1, fixed=fixed).fit(
        frame.assign(treatment=arm.astype(float)), y, sample_weight=weighted.weight
    )
    names = list(plain.covariates_) if hasattr(plain, "covariates_") else plain._columns.names
    assert found.log_hr == pytest.approx(plain.coef_[names.index("treatment")], rel=1e-7)
    assert found.names == ("dose", "site=b")
    assert found.coef[1] == pytest.approx(plain.coef_[names.index("site=b")], rel=1e-6)


def test_score_equations_of_odds_and_rates_hold():
    rng = np.random.default_rng(4)
    n = 400
    age, arm = rng.normal(size=n), rng.integers(0, 2, n)
    time = np.full(n, 90.0)
    died = (rng.random(n) < 1 / (1 + np.exp(1 - 0.7 * age - 0.3 * arm))).astype(int)
    y, group = rs.Surv(time, died), rs.cohort.Population(arm)
    given = {"covariates": age[:, None], "fixed": {"x0": 0.7}}
    odds = rs.cohort.fit_outcome(y, group, model="logistic", **given).log_hr
    # At the estimate of the odds ratio, some intercept solves both score equations.
    low, high = -9.0, 9.0
    for _ in range(80):
        middle = (low + high) / 2
        p = 1 / (1 + np.exp(-(middle + odds * arm + 0.7 * age)))
        low, high = (middle, high) if p.sum() < died.sum() else (low, middle)
    assert arm @ (died - p) == pytest.approx(0, abs=1e-5)
    rate = rs.cohort.fit_outcome(y, group, model="poisson", **given).log_hr
    risk = np.exp(0.7 * age)
    by_hand = [died[arm == k].sum() / risk[arm == k].sum() for k in (0, 1)]
    assert rate == pytest.approx(np.log(by_hand[1] / by_hand[0]), rel=1e-7)


def test_penalised_covariates_beside_them(tmp_path):
    model = {"reading": "marginal", "covariates": "all", "strength": 2.0, "fixed": {"age": 0.01}}
    data = {"people": "people.parquet", "treatment": "drug", "id": "id",
            "covariates": {"columns": ["age", "x"]}}  # fmt: skip
    found = run(tmp_path, data=data, analyses={"crude": {"model": model}})
    columns = people()
    x = columns["x"][:, None] / columns["x"].max()
    plain = rs.Cox(rs.L1(2.0, unpenalized=["x0"])).fit(
        np.column_stack([columns["drug"], x]).astype(float),
        rs.Surv(columns["days"], columns["died"]),
        offset=0.01 * columns["age"],
    )
    (main,) = found.rows("estimates", role="main")
    assert main["log_hr"] == pytest.approx(plain.coef_[0], rel=1e-5)
    rows = found.rows("outcome_coefficients", number=main["number"])
    assert {r["name"]: r["fixed"] for r in rows if r["name"] == "age"} == {"age": True}
    assert main["n_covariates"] == 1


def test_levels_of_subgroups_keep_them(tmp_path):
    """Each level alone would have the same fixed part."""
    data = {"people": "people.parquet", "treatment": "drug", "id": "id",
            "covariates": {"columns": ["age"]}}  # fmt: skip
    model = {"reading": "marginal", "fixed": {"age": 0.05}}
    found = run(tmp_path, data=data, analyses={"crude": {"model": model}},
                subgroups={"x": {"column": "x"}}, sharing={"blind": False})  # fmt: skip
    columns = people()
    both = np.column_stack([columns["drug"], columns["drug"] * columns["x"], columns["x"]])
    plain = rs.Cox().fit(
        both.astype(float),
        rs.Surv(columns["days"], columns["died"]),
        offset=0.05 * columns["age"],
    )
    rows = {r["level"]: r["log_hr"] for r in found.rows("estimates", role="subgroup")}
    assert rows["0"] == pytest.approx(plain.coef_[0], rel=1e-6)
    assert rows["1"] == pytest.approx(plain.coef_[0] + plain.coef_[1], rel=1e-6)


@pytest.mark.parametrize(
    ("analysis", "words"),
    [
        ({"model": {"fixed": {"height": 0.1}}}, "analyses.crude.model.fixed.height: "),
        ({"model": {"fixed": {"age": "much"}}}, "expected a number"),
        ({"model": {"fixed": {"age": 0.1}, "standardize": [100]}}, "estimate all coefficients"),
    ],
)
def test_what_is_refused(tmp_path, analysis, words):
    pq.write_table(pa.table(people()), tmp_path / "people.parquet")
    data = {"people": "people.parquet", "treatment": "drug", "id": "id",
            "covariates": {"columns": ["age"]}}  # fmt: skip
    with pytest.raises(rs.InputError) as error:
        _check(content(data=data, analyses={"crude": analysis}), tmp_path)
    assert words in str(error.value)


def _check(made, folder):
    rs.study.check_data(rs.study.Study(made, folder))


def test_what_python_refuses():
    y, group = rs.Surv([3, 5, 8, 2], [1, 1, 0, 1]), rs.cohort.Population([1, 0, 1, 0])
    with pytest.raises(rs.InputError, match="holds coefficients of `covariates`, but there are"):
        rs.cohort.fit_outcome(y, group, fixed={"age": 0.1})
    with pytest.raises(rs.InputError, match="must be finite"):
        rs.cohort.fit_outcome(y, group, covariates=np.ones((4, 1)), fixed={"x0": np.inf})
    with pytest.raises(rs.InputError, match="'age'"):
        rs.cohort.fit_outcome(y, group, covariates=np.ones((4, 1)), fixed={"age": 0.1})
    keyed = rs.Design.from_dense(np.ones((4, 2)), names=["age", "sex"], keys=[1002, 8507])
    with pytest.raises(rs.CohortError, match="two coefficients of 'age', by its name and by its k"):
        rs.cohort.fit_outcome(y, group, covariates=keyed, fixed={"age": 0.1, "1002": 0.2})
