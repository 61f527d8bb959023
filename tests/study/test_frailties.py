"""Frailties in studies: R's numbers, those of the functions, and what does not go with them."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from reference import GOLDEN, read_json
from study.small import content, hide, people, run

FOLDER = GOLDEN / "frailty"
R = read_json(FOLDER / "study.json")
RATS = read_json(FOLDER / "frailty.json")["rats_data"]
LOOSE = {"max_smd": 9.0, "max_mdrr": 90.0, "min_equipoise": 0.0}
SHARED = {"cluster": "hospital", "frailty": "gamma"}


def rats():
    """R's rats: three of each litter, one of them treated."""
    n = len(RATS["rx"])
    return {
        "id": np.arange(n),
        "drug": np.array(RATS["rx"]),
        "litter": np.array([f"litter {k}" for k in RATS["litter"]]),
        "female": np.array(RATS["female"]),
        "days": np.array(RATS["time"]),
        "died": np.array(RATS["status"]),
    }


def in_hospitals(n=400, seed=2, **changes):
    """People of 12 hospitals that differ."""
    rng = np.random.default_rng(seed)
    hospital = rng.integers(0, 12, n)
    columns = people(n, seed) | {"hospital": np.array([f"h{k}" for k in hospital])}
    risk = rng.gamma(2.0, 0.5, 12)[hospital]
    time = rng.exponential(300 / risk)
    columns |= {"days": np.ceil(np.minimum(time, 600)), "died": (time < 600) * 1}
    return columns | changes


@pytest.mark.parametrize(
    ("way", "model", "rtol"),
    [
        ("gamma_fixed", {"frailty": "gamma", "frailty_variance": 0.4}, 1e-8),
        ("lognormal_fixed", {"frailty": "lognormal", "frailty_variance": 0.4}, 1e-8),
        ("gamma", {"frailty": "gamma"}, 1e-5),  # found by comparing values of the likelihood
        ("lognormal_reml", {"frailty": "lognormal", "frailty_method": "reml"}, 1e-7),
    ],
)
def test_as_in_r(tmp_path, way, model, rtol):
    analyses = {"a": {"propensity": "none", "model": {**model, "cluster": "litter"}}}
    found = run(tmp_path, rats(), analyses=analyses, diagnostics=LOOSE)
    known = R[way]
    for role in ("main", "crude"):  # nothing is adjusted
        (row,) = found.rows("estimates", role=role)
        assert row["status"] == "ok"
        assert_allclose(row["log_hr"], known["coef"], rtol=rtol)
        assert_allclose(row["se"], known["se"], rtol=rtol)
        assert_allclose(row["frailty_variance"], known["theta"], rtol=rtol)
        half = 1.959963984540054 * row["se"]
        assert_allclose(np.log(row["hr_upper"]), row["log_hr"] + half, rtol=1e-9)
        assert (row["frailty"], row["cluster"], row["n_clusters"]) == (
            model["frailty"],
            "litter",
            100,
        )
        assert row["interval"] == "wald"
        assert (row["frailty_p"] is None) == ("frailty_variance" in model)


def test_strata_as_in_r(tmp_path):
    model = {"frailty": "gamma", "frailty_variance": 0.4, "cluster": "litter"}
    analyses = {"a": {"propensity": "none", "coarsen": {"within": ["female"]}, "model": model}}
    found = run(tmp_path, rats(), analyses=analyses, diagnostics=LOOSE)
    (row,) = found.rows("estimates", role="main")
    assert row["reading"] == "stratified"
    assert_allclose(row["log_hr"], R["strata"]["coef"], rtol=1e-8)
    assert_allclose(row["se"], R["strata"]["se"], rtol=1e-8)
    assert not found.rows("estimates", role="sensitivity")


def test_they_are_those_of_the_function(tmp_path):
    columns = in_hospitals()
    model = {"frailty": "gamma", "cluster": "hospital", "also": ["finegray"]}
    found = run(
        tmp_path,
        columns,
        analyses={"a": {"propensity": "none", "model": model}},
        subgroups={"x": {"column": "x"}},
        diagnostics=LOOSE,
    )
    y, arms = rs.Surv(columns["days"], columns["died"]), rs.cohort.Population(columns["drug"])
    own = rs.cohort.fit_outcome(y, arms, frailty="gamma", cluster=columns["hospital"])
    (row,) = found.rows("estimates", role="main")
    for name in ("log_hr", "se", "p", "llr", "frailty_variance", "frailty_p"):
        assert_allclose(row[name], getattr(own, name), rtol=1e-9, err_msg=name)
    plain = rs.CoxFrailty().fit(
        columns["drug"][:, None] * 1.0, y, cluster=np.array(columns["hospital"])
    )
    assert_allclose(own.log_hr, plain.coef_[0], rtol=1e-9)
    assert_allclose(own.frailty_p, plain.frailty_test_.p_value, rtol=1e-9)
    names = {row["covariate_id"] for row in found.rows("balance")}
    assert names == {"x", "age"}  # hospitals are no covariates
    (other,) = found.rows("estimates", role="model")
    assert (other["frailty"], other["cluster"], other["n_clusters"]) == (None, None, None)
    levels = found.rows("estimates", role="subgroup")
    assert [level["status"] for level in levels] == ["ok", "ok"]
    inside = rs.cohort.fit_outcome(
        y, arms, frailty="gamma", cluster=columns["hospital"],
        interactions=rs.Design.from_columns({"x": columns["x"] * 1.0}),
    )  # fmt: skip
    assert_allclose(
        [level["log_hr"] for level in levels], [inside.log_hr, inside.subgroups[0].log_hr]
    )
    assert_allclose(levels[0]["interaction_p"], inside.subgroups[0].p, rtol=1e-8)


def test_the_log_likelihood_ratio_is_that_of_integrated_likelihoods():
    columns = in_hospitals()
    y, arms = rs.Surv(columns["days"], columns["died"]), rs.cohort.Population(columns["drug"])
    z = columns["x"][:, None] * 1.0
    both = rs.cohort.fit_outcome(
        y, arms, frailty="lognormal", cluster=columns["hospital"], covariates=z
    )
    extra = {"cluster": columns["hospital"]}
    with_it = rs.CoxFrailty("lognormal").fit(np.column_stack([columns["drug"], z]), y, **extra)
    without = rs.CoxFrailty("lognormal").fit(z, y, **extra)
    wanted = with_it.integrated_log_likelihood_ - without.integrated_log_likelihood_
    assert_allclose(both.llr, wanted, rtol=1e-7)


def test_report_and_methods(tmp_path):
    model = {"frailty": "lognormal", "frailty_method": "reml", "cluster": "hospital"}
    analyses = {"a": {"propensity": "none", "model": model}}
    found = run(tmp_path, in_hospitals(), analyses=analyses, diagnostics=LOOSE)
    report = rs.report.write(found, tmp_path / "report.html")
    page = report.read_text("utf-8")
    assert "with a log-normal frailty that people with the same <code>hospital</code> share" in page
    assert "log-normal, shared by people with the same hospital; 12 clusters; variance" in page
    facts = json.loads(report.with_suffix(".json").read_text("utf-8"))["parts"][0]["models"]
    assert facts["outcome"]["n_clusters"] == 12


def test_a_run_goes_on(tmp_path):
    analyses = {"a": {"propensity": "none", "model": dict(SHARED)}}
    run(tmp_path, in_hospitals(), analyses=analyses)
    found = run(tmp_path, in_hospitals(), analyses=analyses)
    assert all(step["reused"] for step in found.run["steps"])
    analyses["a"]["model"]["frailty_variance"] = 0.5
    found = run(tmp_path, in_hospitals(), analyses=analyses)
    again = {step["step"] for step in found.run["steps"] if not step["reused"]}
    assert again == {"crude estimate", "estimate"}
    words = found.study["analyses"]["a"]["words"]["model"]
    assert words.endswith(
        "with a gamma frailty that people with the same `hospital` share, whose variance is 0.5"
    )


def test_imputed_data_sets_are_pooled(tmp_path):
    columns = in_hospitals()
    columns["age"] = [None if k % 9 == 0 else float(v) for k, v in enumerate(columns["age"])]
    data = {"people": "people.parquet", "treatment": "drug", "id": "id"}
    data["covariates"] = {"missing": "impute", "impute": {"datasets": 2, "cycles": 2}}
    analyses = {"a": {"match": {}, "model": dict(SHARED)}}
    found = run(tmp_path, columns, data=data, analyses=analyses, diagnostics=LOOSE)
    (main,) = found.rows("estimates", role="main")
    assert (main["status"], main["interval"], main["n_imputations"]) == ("ok", "wald", 2)
    assert main["frailty_variance"] > 0


def row_of(**changes):
    """A row of estimates with many people and outcomes."""
    counts = {"persons": 100, "exposures": 100, "outcomes": 40, "competing": 0}
    arms = {f"{arm}_{n}": v for arm in ("target", "comparator") for n, v in counts.items()}
    frailties = {"n_clusters": 12, "frailty_variance": 0.3, "frailty_p": 0.01}
    names = {"target": "a", "comparator": "b", "analysis": "m", "outcome": "o"}
    return names | {"number": 1, "role": "main", "hr": 1.5} | arms | frailties | changes


@pytest.mark.parametrize(
    ("changes", "is_shown"),
    [
        ({}, True),
        ({"n_clusters": 40}, True),  # five people on average
        ({"n_clusters": 41}, False),
        ({"target_persons": 3, "target_exposures": 3, "target_outcomes": 0}, False),
        ({"target_outcomes": 2, "comparator_outcomes": 1}, False),
    ],
)
def test_disclosure(changes, is_shown):
    (row,) = hide("estimates", [row_of(**changes)], 5)
    shown = [row[name] is not None for name in ("n_clusters", "frailty_variance", "frailty_p")]
    assert shown == [is_shown] * 3


@pytest.mark.parametrize(
    ("analysis", "message"),
    [
        ({"model": {"frailty": "gamma"}}, "`frailty` needs `cluster`, which is missing"),
        ({"model": {"cluster": "hospital"}}, "`cluster` needs `frailty`"),
        ({"model": SHARED | {"cluster": "hospitl"}}, "hospitl"),
        ({"model": SHARED | {"cluster": "days"}}, "already used as outcomes.death.time"),
        ({"model": SHARED | {"cluster": "id"}}, "already used as data.id"),
        ({"weight": {}, "model": SHARED}, "`frailty: gamma` takes no weights, but `weight` has"),
        ({"match": {"ratio": 3}, "model": SHARED | {"reading": "marginal"}}, "takes no weights"),
        ({"match": {"within": ["hospital"]}, "model": SHARED}, "`match` makes sets within"),
        (
            {"model": SHARED | {"interval": "bootstrap"}},
            "no bootstrap interval for",
        ),
        ({"model": SHARED | {"interval": "profile"}}, "no profile interval for `frailty: gamma`"),
        ({"model": SHARED | {"ties": "exact"}}, "`ties: exact` does not fit `frailty: gamma`"),
        ({"model": SHARED | {"firth": True}}, "`firth: true` does not fit `frailty: gamma`"),
        ({"model": SHARED | {"kind": "finegray"}}, "`frailty` belongs to the Cox model"),
        ({"model": SHARED | {"covariates": "all"}}, "`covariates: all` adds a penalty, which"),
        ({"model": SHARED | {"frailty_method": "reml"}}, "not defined for `frailty: gamma`"),
        ({"model": SHARED | {"frailty_variance": 1e7}}, "1000000"),
        ({"model": {"frailty_variance": 1.0}}, "`frailty_variance` belongs to frailties"),
    ],
)
def test_what_does_not_go_together(tmp_path, analysis, message):
    with pytest.raises(rs.InputError, match=message.replace("`", ".")):
        run(tmp_path, in_hospitals(60), analyses={"a": analysis})


def test_a_listed_covariate_is_no_cluster(tmp_path):
    data = content()["data"] | {"covariates": {"columns": ["x", "hospital"]}}
    with pytest.raises(rs.InputError, match="already used as data.covariates.columns"):
        run(tmp_path, in_hospitals(60), data=data, analyses={"a": {"model": SHARED}})


@pytest.mark.parametrize("column", ["days", "died", "drug", "id"])
def test_outcomes_treatments_and_ids_are_no_covariates(column):
    asked = content()
    asked["data"] = asked["data"] | {"covariates": {"columns": ["x", column]}}
    message = f"data.covariates.columns: column '{column}' is already used as"
    with pytest.raises(rs.InputError, match=message):
        rs.study.Study(asked)


def test_a_deviation_of_another_analysis_is_no_cluster():
    other = {"estimand": "per-protocol", "per_protocol": {"deviation": "hospital"}}
    asked = content() | {"analyses": {"a": {"model": SHARED}, "b": other}}
    message = (
        "model.cluster: column 'hospital' is already used as analyses.b.per_protocol.deviation"
    )
    with pytest.raises(rs.InputError, match=message):
        rs.study.Study(asked)


def test_missing_clusters_are_refused(tmp_path):
    columns = in_hospitals(60)
    hospital = [None, *columns["hospital"][1:]]
    with pytest.raises(rs.InputError, match="hospital"):
        run(tmp_path, columns | {"hospital": hospital}, analyses={"a": {"model": SHARED}})


def test_sampling_weights_are_refused(tmp_path):
    columns = in_hospitals(60) | {"share": np.full(60, 2.0)}
    data = content()["data"] | {"sampling_weight": "share"}
    with pytest.raises(rs.InputError, match="takes no weights, but the data have"):
        run(tmp_path, columns, data=data, analyses={"a": {"model": SHARED}})
