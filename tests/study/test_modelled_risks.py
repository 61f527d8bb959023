"""Standardised and doubly robust risks of studies: computed, shared, pooled, in the report."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.disclosure.engine import Disclosure
from riskset.results.rows import TABLES, ModelledRiskRow
from riskset.study.steps.modelled_risk_step import ModelledRiskStep, pooled_modelled_risks
from study.small import people, run

TIMES = [100, 300]
MODEL = {"standardize": TIMES, "doubly_robust": TIMES}
CROSSED = {"risk_folds": 2, "risk_penalty": "l2", "risk_censoring": "kaplan-meier"}
ANALYSES = {
    "crude": {"propensity": "none"},
    "matched": {"match": {}, "model": {**MODEL, "risk_censoring": "kaplan-meier"}},
    "crossed": {"weight": {"estimand": "att"}, "model": {"doubly_robust": TIMES, **CROSSED}},
}


def competing(n=400):
    columns = people(n)
    return columns | {"died": np.random.default_rng(5).integers(0, 3, n)}


def small_study(folder, columns=None, **changes):
    defaults = {"propensity": {"penalty": "none", "cross_validate": False}, "model": MODEL}
    return run(
        folder,
        competing() if columns is None else columns,
        **{"defaults": defaults, "analyses": ANALYSES, "sharing": {"blind": False}} | changes,
    )


def test_they_are_those_of_the_functions(tmp_path):
    found = small_study(tmp_path)
    columns = competing()
    y = rs.Surv(columns["days"], columns["died"])
    x = rs.Design.from_dense(np.column_stack([columns["x"], columns["age"]]), ["x", "age"])
    crude = rs.cohort.Population(columns["drug"], row_id=columns["id"])
    x = rs.cohort.tidy(x, crude).design
    score = rs.cohort.propensity_score(crude, x, penalty=None).population
    matched = rs.cohort.match(score)
    kept = rs.cohort.restrict(crude, matched.kept, "matched")
    cause = {"model": "cause-specific"}
    curve = {**cause, "censoring": "kaplan-meier"}
    crossed = {"folds": 2, "penalty": "l2", "score_penalty": "l2", "estimand": "att"}
    expected = {
        ("crude", "outcome_models"): rs.cohort.standardize(y, crude, x, TIMES, **cause),
        ("crude", "doubly_robust"): rs.cohort.doubly_robust(y, crude, x, TIMES, **cause),
        ("matched", "outcome_models"): rs.cohort.standardize(
            y, kept, x, TIMES, estimand="att", **cause
        ),
        ("matched", "doubly_robust"): rs.cohort.doubly_robust(y, matched, x, TIMES, **curve),
        ("crossed", "doubly_robust"): rs.cohort.doubly_robust(
            y, crude, x, TIMES, **curve, **crossed
        ),
    }
    for (analysis, reading), one in expected.items():
        risks = found.rows("modelled_risks", analysis=analysis, reading=reading)
        means = found.rows("restricted_means", analysis=analysis, reading=reading)
        wanted = one.columns()
        is_risk = wanted["measure"] == "risk"
        for rows, part, value in ((risks, is_risk, "risk"), (means, ~is_risk, "mean")):
            for name in ("time", "difference", "difference_se", "difference_p", "ratio_lower"):
                of_rows = [row[name] for row in rows]
                assert_allclose(of_rows, wanted[name][part], rtol=1e-5, err_msg=name)
            of_target = [row[f"target_{value}"] for row in rows]
            assert_allclose(of_target, wanted["target"][part], rtol=1e-6)
            assert [row["target_outcomes"] for row in rows] == wanted["target_outcomes"][
                part
            ].tolist()
            assert {row["interval"] for row in rows} == {"robust"}
        assert {row["model"] for row in risks} == {"cause-specific"}
        assert {row["estimand"] for row in risks} == {one.estimand}
        assert {row["measure"] for row in means} == {"restricted_mean", "time_lost"}
    assert len(found.rows("modelled_risks")) == 5 * len(TIMES)
    page = rs.report.write(tmp_path / "out" / "results", tmp_path / "report.html")
    text = page.read_text("utf-8")
    for words in (
        "Risks by outcome models",
        "Doubly robust",
        "Standardised by outcome models",
        "augmented inverse probability weighting",
        "averaged over all people (standardisation)",
    ):
        assert words in text
    content = json.loads(page.with_suffix(".json").read_text("utf-8"))
    rows = content["parts"][0]["result"]["modelled_risks"]["tables"]["risks"]
    assert [row["time"] for row in rows] == TIMES * 2


def test_bootstrap_intervals(tmp_path):
    """Those of the functions with the seed of the study, with the weights of the adjustment."""
    how = {"interval": "bootstrap", "replicates": 40}
    model = MODEL | how | {"rmst": [300], "curve_tests": ["logrank", "max-combo"]}
    weighted = {"weight": {"estimand": "ate"}, "model": model}
    found = small_study(tmp_path, analyses={"weighted": weighted}, seed=4)
    columns = competing()
    y = rs.Surv(columns["days"], columns["died"])
    x = rs.Design.from_dense(np.column_stack([columns["x"], columns["age"]]), ["x", "age"])
    crude = rs.cohort.Population(columns["drug"], row_id=columns["id"])
    x = rs.cohort.tidy(x, crude).design
    made = rs.cohort.weight(rs.cohort.propensity_score(crude, x, penalty=None).population, "ate")
    how |= {"seed": 4}
    kept = rs.cohort.restrict(crude, made.kept, "adjusted")
    more = how | {"model": "cause-specific"}
    wanted = {
        "outcome_models": rs.cohort.standardize(y, kept, x, TIMES, estimand="ate", **more),
        "doubly_robust": rs.cohort.doubly_robust(y, made, x, TIMES, **more),
    }
    names = ("difference", "difference_se", "difference_lower", "difference_upper")
    for reading, one in wanted.items():
        columns_of = one.columns()
        of_risk = columns_of["measure"] == "risk"
        rows = found.rows("modelled_risks", reading=reading)
        assert {row["interval"] for row in rows} == {"bootstrap"}
        for name in names:
            assert_allclose([row[name] for row in rows], columns_of[name][of_risk], rtol=1e-5)
    for adjusted, people_of in ((True, made), (False, crude)):
        one = rs.cohort.restricted_mean(y, people_of, [300], **how).columns()
        rows = [
            row
            for row in found.rows("restricted_means", adjusted=adjusted)
            if row["reading"] == "marginal"
        ]
        assert {row["interval"] for row in rows} == {"bootstrap"}
        for name in names:
            assert_allclose([row[name] for row in rows], one[name], rtol=1e-6)
    for adjusted, people_of in ((True, made), (False, crude)):  # tests have no intervals
        weight = made.weight if adjusted else None
        variance = "robust" if adjusted else "counts"
        test = rs.logrank_test(
            y,
            people_of.population.treatment if adjusted else crude.treatment,
            cause=1,
            weight=weight,
            variance=variance,
        )
        (row,) = found.rows("curve_tests", adjusted=adjusted, test="logrank")
        assert_allclose(row["p"], test.p_value, rtol=1e-6)
    text = rs.report.write(found, tmp_path / "report.html").read_text("utf-8")
    assert "weights of an adjustment count as known" in text


def test_other_times_fit_no_hazard_ratio_again(tmp_path):
    crude = {"propensity": "none"}
    small_study(tmp_path, analyses={"crude": crude})
    small_study(tmp_path, analyses={"crude": crude | {"model": {"doubly_robust": [50]}}})
    steps = rs.study.StudyResults.open(tmp_path / "out" / "private").run["steps"]
    assert {step["step"] for step in steps if not step["reused"]} == {"risks by outcome models"}


def test_a_time_after_the_follow_up_and_a_model_without_an_estimate(tmp_path):
    columns = competing()
    columns["died"][columns["days"] > 200] = 0
    columns["days"] = np.minimum(columns["days"], 200)
    analyses = {"crude": {"propensity": "none", "model": {"standardize": [100, 365]}}}
    found = small_study(tmp_path, columns, analyses=analyses)
    for row in found.rows("modelled_risks"):
        for name in ("target_risk", "comparator_lower", "difference", "ratio_p"):
            assert (row[name] is None) == (row["time"] == 365)
    (message, _) = [
        row["message"] for row in found.rows("warnings") if row["step"] == "risks by outcome models"
    ]
    assert message == (
        "the follow-up of the target ends after 200 days, so its risk by day 365 is not known. "
        "Choose earlier times in `standardize`."
    )
    columns["died"][columns["drug"] == 1] = 0
    folder = tmp_path / "none"
    folder.mkdir()
    found = small_study(folder, columns, analyses={"crude": {"propensity": "none"}})
    assert found.rows("modelled_risks") == []
    codes = {row["code"] for row in found.rows("warnings")}
    assert {"no_outcome_models", "no_doubly_robust"} <= codes


def test_hints_name_the_key_of_the_penalty(tmp_path):
    columns = competing()
    columns["sign"] = (columns["died"] == 1).astype(int)  # it determines the outcome
    model = {"standardize": [100], "doubly_robust": [100]}
    analyses = {"crude": {"propensity": "none", "model": model}}
    found = small_study(tmp_path, columns, analyses=analyses)
    notes = {row["code"]: row["message"] for row in found.rows("warnings")}
    assert "or use a `risk_penalty` of `doubly_robust`." in notes["no_outcome_models"]
    assert "use a `risk_penalty`." in notes["no_doubly_robust"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"standardize": [0]}, "standardize"),
        ({"risk_folds": 3}, "doubly robust estimates"),
        ({"risk_penalty": "l1", "standardize": [50]}, "doubly robust estimates"),
    ],
)
def test_what_is_refused(tmp_path, model, words):
    with pytest.raises(rs.InputError, match=words):
        small_study(tmp_path, defaults={"model": model}, analyses={"crude": {"propensity": "none"}})


def test_their_score_keeps_the_covariates_that_that_of_the_study_keeps(tmp_path):
    columns = competing()
    drug, x = columns["drug"], columns["x"]
    columns["x"] = np.where(np.arange(drug.size) % 8 < 6, drug, x)
    score = {"penalty": "none", "cross_validate": False, "on_high_correlation": "warn"}
    found = small_study(
        tmp_path,
        columns,
        defaults={"propensity": score},
        analyses={"a": {"weight": {}, "model": {"doubly_robust": TIMES, **CROSSED}}},
    )
    assert [row["time"] for row in found.rows("modelled_risks")] == TIMES


def test_a_time_is_estimated_once_and_hints_name_the_keys_of_risks(tmp_path):
    analyses = {
        "twice": {"propensity": "none", "model": {"standardize": [100, 100]}},
        "folds": {"propensity": "none", "model": {"doubly_robust": [100], "risk_folds": 5000}},
    }
    found = small_study(tmp_path, defaults={}, analyses=analyses)
    assert [row["time"] for row in found.rows("modelled_risks", analysis="twice")] == [100]
    (message,) = [w["message"] for w in found.rows("warnings") if w["code"] == "no_doubly_robust"]
    assert message.endswith("Hint: choose fewer `risk_folds`.")


def row(**changes):
    values = {f"{arm}_{end}": 0.2 for arm in ("target", "comparator") for end in ENDS}
    values |= {f"difference{end}": 0.1 for end in ("", "_se", "_lower", "_upper", "_p")}
    values |= dict.fromkeys(("ratio", "log_ratio_se", "ratio_lower", "ratio_upper", "ratio_p"), 1.0)
    counts = {"outcomes": 20, "at_risk": 50}
    values |= {f"{arm}_{n}": k for arm in ("target", "comparator") for n, k in counts.items()}
    about = {"target": "new", "comparator": "old", "outcome": "death", "analysis": "a"}
    about |= {"reading": "doubly_robust", "time": 100.0, "model": "cox", "estimand": "ate"}
    about |= {"interval": "robust", "interval_level": 0.95}
    return ModelledRiskRow.of(values | about | changes)


ENDS = ("risk", "se", "lower", "upper")


def shared(*rows, least=5):
    tables = {"modelled_risks": list(rows)}
    return Disclosure(lambda name: tables.get(name, []), TABLES, least).shown(ModelledRiskRow)


@pytest.mark.parametrize(
    ("changes", "is_hidden"),
    [
        ({}, False),
        ({"target_outcomes": 3}, True),
        ({"target_outcomes": 0}, False),
        ({"target_at_risk": 4}, True),
    ],
)
def test_few_people_hide_a_risk(changes, is_hidden):
    (one,) = shared(row(**changes))
    assert (one.target_risk is None) == is_hidden
    assert (one.difference is None) == (one.ratio_p is None) == is_hidden
    assert one.comparator_risk == 0.2
    assert one.target_outcomes is None
    assert one.target_at_risk is None
    early, late = shared(row(time=90.0, target_outcomes=17), row())
    assert (early.target_risk is None, late.target_risk is None) == (False, True)


def test_blinded_risks_are_withheld(tmp_path):
    small_study(
        tmp_path,
        analyses={"crude": {"propensity": "none"}},
        diagnostics={"max_mdrr": 1.0001},
        sharing={"blind": True},
    )
    found = rs.study.StudyResults.open(tmp_path / "out" / "results")
    rows = found.rows("modelled_risks")
    assert rows
    for one in rows:
        assert one["blinded"]
        assert one["target_risk"] is one["difference"] is one["ratio"] is None
    text = rs.report.write(found.path, tmp_path / "report.html").read_text("utf-8")
    assert "Risks by outcome models</h" not in text


def test_rubins_rules():
    steps = [
        ModelledRiskStep(risks=[row(target_risk=a, difference=a - 0.2)], means=[])
        for a in (0.2, 0.3, 0.4)
    ]
    (one,) = pooled_modelled_risks(steps).risks
    assert_allclose(one.target_risk, 0.3)
    between = 0.01 * (1 + 1 / 3)
    assert_allclose(one.target_se, np.sqrt(0.04 + between))
    assert_allclose(one.difference_se, np.sqrt(0.01 + between))
    assert one.target_lower == 0.0
    assert_allclose(one.target_upper, 0.3 + 1.959963984540054 * one.target_se)
