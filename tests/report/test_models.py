"""What the page says of the models: covariates, penalties, the course of the effect."""

import math

import pytest

from report.made import study, tables
from report.made_estimates import arms
from report.test_failures import failed
from report.test_numbers import compare_all


def test_an_outcome_model_shows_its_covariates(whole):
    """48 coefficients of turning sign, of which 20 of each are shown."""
    made = tables()
    fits = whole.part["models"]["fits"]
    assert [(fit["role"], fit["number"]) for fit in fits] == [("main", 2), ("model", 4)]
    for fit in fits:
        own = [r for r in made["outcome_coefficients"] if r["number"] == fit["number"]]
        coef = [r["coef"] for r in own]
        for sign, wanted in (("positive", coef[::2]), ("negative", coef[1::2])):
            assert [r["coef"] for r in fit["tables"][sign]] == wanted[:20]
        (chosen,) = [r for r in fit["tables"]["tried"] if r["chosen"]]
        assert chosen["mean"] == -31.5
    compared, names = compare_all(whole)
    assert compared > 1000
    assert {"positive", "negative", "tried"} <= names
    for name in ("score", "outcome-2", "outcome-4"):
        assert whole.page.by_id(f"figure-cross-validation-{name}-title")
    headings = [e.text for e in whole.page.all("h3")]
    assert "Outcome model: subdistribution, stratified" in headings
    assert whole.text.count("48 of 160 with a non-zero coefficient") == 2
    assert "a higher hazard of the outcome: heart failure" in whole.text


def test_covariates_are_withheld_with_the_effect(report):
    made = report(failed())
    for fit in made.part["models"]["fits"]:
        assert set(map(len, fit["tables"].values())) == {0}
    numbers = made.path.with_suffix(".json").read_text("utf-8")
    row = tables()["outcome_coefficients"][1]
    assert repr(row["coef"]) not in numbers
    assert "-31.5" not in numbers
    assert made.text.count("of this model are withheld.") == 2
    assert "48 of 160 with a non-zero coefficient" in made.text


def test_covariates_of_few_outcomes_are_hidden(report):
    found = tables()
    for row in found["estimates"]:
        row |= arms((1, 2))
    models = report(found).part["models"]
    assert models["profile"] == []
    assert all(not rows for fit in models["fits"] for rows in fit["tables"].values())


def test_shares_of_few_people_in_an_outcome_model(report):
    """3 of 241; a mean of 3 / 241 tells nothing."""
    found = tables()
    own = [r for r in found["outcome_coefficients"] if r["number"] == 2]
    own[0]["mean_target"] = own[2]["mean_target"] = 3 / 241
    own[2]["is_binary"] = False
    rows = report(found).part["models"]["fits"][0]["tables"]["positive"]
    # The coefficient of the first is hidden, too, so that it is not among the largest.
    assert [r["covariate_id"] for r in rows[:2]] == ["2210", "4210"]
    assert rows[0]["mean_target"] == 3 / 241
    whole = report(found, study(min_cell_count=0), min_cell_count=0)
    rows = whole.part["models"]["fits"][0]["tables"]["positive"]
    assert [r["covariate_id"] for r in rows[:2]] == ["210", "2210"]


def test_a_model_without_covariates_says_so(report):
    found = tables()
    for row in found["estimates"]:
        row |= {"n_covariates": 0, "n_used": None}
    made = report(found)
    assert made.part["models"]["fits"] == []
    assert "treatment only" in made.text


def test_a_given_penalty_has_no_curve(report):
    found = tables()
    found["outcome_cross_validation"] = []
    for row in found["estimates"]:
        row |= {"chosen_by": "given", "folds": None, "repeats": None, "seed": None}
    made = report(found)
    assert "48 of 160" in made.text
    assert "figure-cross-validation-outcome-2" not in made.html


def test_the_effect_over_time(whole):
    own = whole.part["models"]["proportionality"]
    rows = own["tables"]["over_time"]
    assert [r["hr"] for r in rows] == [r["hr"] for r in tables()["effect_over_time"]]
    assert own["constant"]["hr"] == pytest.approx(math.exp(-0.52))
    desc = whole.page.by_id("figure-over-time-desc").text
    # exp(-1.12) and exp(0.08), 1.96 * 0.34 * sqrt(5) to both sides on the log scale.
    assert "from 0.326 (0.0735–1.45) in the first to 1.08 (0.244–4.81) in the last" in desc
    assert "The constant hazard ratio is 0.595" in desc
    compared, names = compare_all(whole)
    assert {"over_time", "log_log"} <= names


def test_the_effect_as_a_function_of_time(whole, report):
    own = whole.part["models"]["proportionality"]
    rows = own["tables"]["at_times"]
    assert [r["hr"] for r in rows] == [r["hr"] for r in tables()["effect_at_times"]]
    # exp(0.2), exp(0.8 - 0.6 log10 500) and 1.96 * 0.3 to both sides on the log scale.
    desc = whole.page.by_id("figure-time-effect-desc").text
    assert "changes from 1.22 (0.678–2.20) (day 10) to 0.441 (0.245–0.793) (day 500)" in desc
    assert "a linear function of the logarithm of time, with pointwise" in whole.text
    assert "χ² = 4.21, df = 1, p = 0.040" in whole.text
    assert "A further model let the hazard ratio change with time" in whole.text
    compared, names = compare_all(whole)
    assert "at_times" in names
    found = tables()
    found["time_effects"][0] |= {"function": "steps", "df": 2, "statistic": None}
    counts = {"target_outcomes": 9, "comparator_outcomes": 11}
    for k, row in enumerate(found["effect_at_times"]):
        row |= {"start": (0.0, 10.0, 100.0)[k], **counts}
    steps = report(found)
    assert "its logarithm is constant within each step of time" in steps.text
    assert "df = 2, p = 0.040 (median over the completed data sets)" in steps.text
    found["time_effects"][0] |= {"p": 2e-5}
    found["estimates"][0] |= {"proportionality_p": 3e-4}
    small = report(found).text
    assert "df = 2, p < 0.001 (median" in small
    assert "= <" not in small


def test_curves_are_parallel_where_hazards_are_proportional(whole):
    """Cox's model has the cause-specific hazard.

    Made are F1 = 1 - exp(-r t) and F2 = 0.6 F1, so that 1 of 1.6 events is the outcome, and its
    cumulative hazard is the part 1 / 1.6 of -log(1 - 1.6 F1).
    """
    rows = whole.part["models"]["proportionality"]["tables"]["log_log"]
    for arm, rate in (("target", 0.00011), ("comparator", 0.00026)):
        own = [r for r in rows if r["arm"] == arm]
        assert 20 < len(own) <= 61
        for row in own:
            left = 1 - 1.6 * (1 - math.exp(-rate * row["time"]))
            assert row["log_log"] == pytest.approx(math.log(-math.log(left) / 1.6), abs=1e-9)
    assert "cumulative cause-specific hazard" in whole.text
    assert "log(−log(1 − F))" not in whole.text


def test_subdistribution_hazards_are_parallel_where_the_model_has_them(report):
    """1 - F = exp(-r t), so log(-log) is log r + log t."""
    found = tables()
    for row in found["estimates"]:
        row["model"] = "finegray"
    made = report(found)
    rows = made.part["models"]["proportionality"]["tables"]["log_log"]
    for arm, rate in (("target", 0.00011), ("comparator", 0.00026)):
        own = [r for r in rows if r["arm"] == arm]
        assert len(own) > 20
        for row in own:
            assert row["log_log"] == pytest.approx(math.log(rate * row["time"]), abs=1e-9)
    assert "log(−log(1 − F))" in made.text


def test_no_log_log_plot_without_the_competing_events_that_it_needs(report):
    found = tables()
    found["curves"] = [row for row in found["curves"] if row["cause"] == 1]
    made = report(found)
    assert made.part["models"]["proportionality"]["tables"]["log_log"] == []
    assert made.part["models"]["proportionality"]["tables"]["over_time"]


def test_the_course_of_the_effect_is_withheld_with_it(report):
    made = report(failed())
    assert set(map(len, made.part["models"]["proportionality"]["tables"].values())) == {0}
    assert "These figures show how far the effect changes over time" not in made.text


def test_few_outcomes_in_an_interval_hide_its_course(report):
    found = tables()
    found["effect_over_time"][3]["target_outcomes"] = 4
    tables_shown = report(found).part["models"]["proportionality"]["tables"]
    assert tables_shown["over_time"] == []
    assert tables_shown["log_log"]
    whole_shown = report(found, study(min_cell_count=0), min_cell_count=0)
    assert len(whole_shown.part["models"]["proportionality"]["tables"]["over_time"]) == 5


@pytest.mark.parametrize("interval", ["profile", "robust"])
def test_a_profile_says_which_interval_it_shows(report, interval):
    found = tables()
    for row in found["estimates"]:
        row["interval"] = interval
    text = report(found).text
    assert ("The 95 % confidence interval is the range" in text) == (interval == "profile")
    other = "The reported interval has another method (robust variance)."
    assert (other in text) == (interval == "robust")


@pytest.mark.parametrize(("model", "heading"), [("cox", "Hazard ratios"), ("logistic", "Ratios")])
def test_estimates_stand_below_what_they_are_ratios_of(report, model, heading):
    found = tables()
    others = [row for row in found["estimates"] if row["role"] == "sensitivity"]
    assert others
    for row in found["estimates"]:
        row["model"] = model if row["role"] == "sensitivity" else "cox"
    made = report(found)
    headings = [e.text for e in made.page.all("h3")]
    assert heading in headings
    assert len({"Hazard ratios", "Ratios"} & set(headings)) == 1
