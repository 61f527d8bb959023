"""Exact ties and Firth's likelihood in studies: as the functions compute them, and their limits."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from study.small import people, run

LOOSE = {"max_smd": 9.0, "max_mdrr": 90.0, "min_equipoise": 0.0}
NAMES = ("log_hr", "se", "p", "llr")
ENDS = {"hr_lower": "lower", "hr_upper": "upper"}


def rounded(**changes):
    """People whose times are tied."""
    columns = people(**changes)
    return columns | {"days": (columns["days"] // 60 + 1) * 60}


def compare(row, estimate):
    for name in NAMES:
        assert_allclose(row[name], getattr(estimate, name), rtol=1e-10, err_msg=name)
    for name, end in ENDS.items():
        assert_allclose(np.log(row[name]), getattr(estimate, end), rtol=1e-10, err_msg=name)


@pytest.mark.parametrize("model", [{"ties": "exact"}, {"firth": True}])
def test_they_are_those_of_the_functions(tmp_path, model):
    columns = rounded()
    analyses = {
        "crude": {"propensity": "none", "model": model},
        "within": {"stratify": {"k": 3}, "model": {**model, "also": ["finegray", "poisson"]}},
    }
    found = run(
        tmp_path,
        columns,
        analyses=analyses,
        subgroups={"x": {"column": "x"}},
        diagnostics=LOOSE,
    )
    y = rs.Surv(columns["days"], columns["died"])
    crude = rs.cohort.Population(columns["drug"], row_id=columns["id"])
    own = rs.cohort.fit_outcome(y, crude, **model)
    (main,) = found.rows("estimates", analysis="crude", role="main")
    compare(main, own)
    assert (main["ties"], main["firth"]) == (model.get("ties", "breslow"), "firth" in model)
    assert main["interval"] == "profile"
    covariates = rs.Design.from_columns({"x": columns["x"] * 1.0, "age": columns["age"] * 1.0})
    tidy = rs.cohort.tidy(covariates, crude)
    score = rs.cohort.propensity_score(crude, tidy.design, penalty=None)
    strata = rs.cohort.stratify(score.people, 3)
    (main,) = found.rows("estimates", analysis="within", role="main")
    assert main["reading"] == "stratified"
    for name in NAMES:  # the score is fitted to a tolerance
        wanted = getattr(rs.cohort.fit_outcome(y, strata, **model), name)
        assert_allclose(main[name], wanted, rtol=1e-10)
    assert not found.rows("estimates", analysis="within", role="sensitivity")
    others = found.rows("estimates", analysis="within", role="model")
    assert {row["model"] for row in others} == {"finegray", "poisson"}
    assert all(row["ties"] is None and row["firth"] is None for row in others)
    levels = found.rows("estimates", analysis="crude", role="subgroup")
    assert [row["status"] for row in levels] == ["ok", "ok"]
    assert {row["firth"] for row in levels} == {"firth" in model}
    assert bool(found.rows("likelihood_profiles")) == ("firth" not in model)
    assert not found.rows("effect_over_time")


def separated(n=60):
    """Nobody of the target has the outcome."""
    columns = people(n)
    return columns | {"died": np.where(columns["drug"] == 1, 0, columns["died"])}


def test_a_finite_estimate_where_one_arm_has_the_outcome(tmp_path):
    columns = separated()
    analyses = {
        "firth": {"propensity": "none", "model": {"firth": True}},
        "plain": {"propensity": "none"},
    }
    found = run(tmp_path, columns, analyses=analyses, diagnostics=LOOSE)
    (plain,) = found.rows("estimates", analysis="plain", role="main")
    (row,) = found.rows("estimates", analysis="firth", role="main")
    assert plain["status"] == "events_in_one_arm"
    assert row["status"] == "ok"
    assert "finite_by_penalty" in row["note"].split("; ")
    y = rs.Surv(columns["days"], columns["died"])
    compare(row, rs.cohort.fit_outcome(y, rs.cohort.Population(columns["drug"]), firth=True))
    report = rs.report.write(found, tmp_path / "report.html")
    page = report.read_text("utf-8")
    assert "profile of Firth" in page
    assert "whose estimate is finite under separation" in page
    content = json.loads(report.with_suffix(".json").read_text("utf-8"))
    assert content["parts"][0]["models"]["outcome"]["firth"] is True


def test_a_run_goes_on(tmp_path):
    analyses = {"a": {"propensity": "none", "model": {"firth": True}}}
    run(tmp_path, analyses=analyses)
    found = run(tmp_path, analyses=analyses)
    assert all(step["reused"] for step in found.run["steps"])
    analyses["a"]["model"] = {"ties": "efron"}
    found = run(tmp_path, analyses=analyses)
    again = {step["step"] for step in found.run["steps"] if not step["reused"]}
    assert again == {"crude estimate", "estimate"}


def test_imputed_data_sets_are_pooled(tmp_path):
    columns = people()
    columns["age"] = [None if k % 9 == 0 else float(v) for k, v in enumerate(columns["age"])]
    data = {"people": "people.parquet", "treatment": "drug", "id": "id"}
    data["covariates"] = {"missing": "impute", "impute": {"datasets": 2, "cycles": 2}}
    analyses = {"a": {"match": {}, "model": {"firth": True}}}
    found = run(tmp_path, columns, data=data, analyses=analyses, diagnostics=LOOSE)
    (main,) = found.rows("estimates", role="main")
    assert main["status"] == "ok"
    assert (main["interval"], main["n_imputations"]) == ("wald", 2)


@pytest.mark.parametrize(
    ("analysis", "message"),
    [
        ({"weight": {}, "model": {"firth": True}}, "`firth: true` takes no weights, but `weight`"),
        (
            {"stratify": {}, "model": {"ties": "exact", "reading": "marginal"}},
            "`ties: exact` takes no weights, but `stratify`",
        ),
        (
            {"match": {"ratio": 3}, "model": {"firth": True, "reading": "marginal"}},
            "reading: stratified",
        ),
        ({"model": {"firth": True, "ties": "exact"}}, "`firth: true` does not fit `ties: exact`"),
        ({"model": {"firth": True, "interval": "robust"}}, "no robust interval for `firth: true`"),
        ({"model": {"ties": "exact", "interval": "bootstrap"}}, "no bootstrap interval"),
        ({"model": {"firth": True, "kind": "finegray"}}, "`firth` belongs to the Cox model"),
        ({"model": {"ties": "exact", "kind": "poisson"}}, "`ties` belongs to the Cox model"),
        ({"model": {"firth": True, "covariates": "all"}}, "which `firth: true` excludes"),
        ({"model": {"ties": "exact", "covariates": "all"}}, "`strength`"),
    ],
)
def test_what_does_not_go_together(tmp_path, analysis, message):
    with pytest.raises(rs.InputError, match=message.replace("`", ".")):
        run(tmp_path, analyses={"a": analysis})


def test_risks_by_outcome_models_keep_their_own_likelihood(tmp_path):
    found = []
    for ties in ("exact", "efron"):
        model = {"ties": ties, "standardize": [200]}
        place = tmp_path / ties
        place.mkdir()
        found.append(run(place, rounded(), analyses={"a": {"propensity": "none", "model": model}}))
    exact, efron = (one.rows("modelled_risks") for one in found)
    assert exact
    assert [row["difference"] for row in exact] == [row["difference"] for row in efron]
