"""Results that hide nothing, as a study keeps them for itself, are shown without small counts."""

import pytest

from report.made import study, tables
from report.made_estimates import arms
from riskset._messages import Sentence, Value
from riskset.disclosure.engine import Disclosure, DisclosureError
from riskset.results.columns import ResultRow, column, row_class, sentence_columns
from riskset.results.rows import TABLES, YearRow


def asked_for(*covariates):
    about = study()
    return about | {"settings": about["settings"] | {"report": {"covariates": list(covariates)}}}


def three(template):
    return Sentence(template, {"n": Value("count", 3)})


def private(**changes):
    found = tables()
    main = next(r for r in found["estimates"] if r["role"] == "main")
    main |= arms((3, 47))
    found["arms"][1] |= arms((3, 47))
    return found | changes


def test_few_outcomes_are_not_told_by_any_number(report):
    made = report(private())
    row = next(
        r
        for r in made.part["result"]["tables"]["rates"]
        if (r["side"], r["arm"]) == ("after", "target")
    )
    assert row["outcomes"] is None
    assert row["rate"] is None
    assert row["weighted_rate_upper"] is None
    assert row["persons"] == 241
    main = next(r for r in made.part["result"]["tables"]["estimates"] if r["is_main"])
    assert main["target_outcomes"] is None
    assert main["mdrr"] is None
    assert main["hr"] == pytest.approx(0.5945, abs=1e-4)  # 50 outcomes in all
    assert "occurred in <5 of 241 people in the target group (thiazide) and in 47" in made.text
    cells = [e.text for e in made.page.all("td")]
    assert "<5" in cells
    assert "hidden" in cells


def test_a_count_is_called_small_only_where_it_is(report):
    """People before a step may be hidden because few were left out; outcomes are by themselves."""
    found = tables()
    before = found["arms"][0]
    names = ("target_persons", "target_exposures", "comparator_outcomes")
    before |= dict.fromkeys(names) | {"suppressed": ", ".join(names)}
    level = next(row for row in found["estimates"] if row["role"] == "subgroup")
    level |= {"target_outcomes": None, "suppressed": "target_outcomes"}
    made = report(found)
    assert (before["side"], level["target_persons"] is None) == ("before", False)
    rates = {(r["side"], r["arm"]): r for r in made.part["result"]["tables"]["rates"]}
    assert rates["before", "target"]["suppressed"]["persons"] == "hidden"
    assert rates["before", "comparator"]["suppressed"]["outcomes"] == "small"
    (hidden,) = [
        row["suppressed"]["target_outcomes"]
        for row in made.part["result"]["tables"]["estimates"]
        if "target_outcomes" in row["suppressed"]
    ]
    assert hidden == "hidden"  # it may be what the other levels are less than all


def test_few_outcomes_in_all_hide_the_effect(report):
    found = private()
    for row in found["estimates"]:
        row |= arms((1, 2))
    made = report(found)
    main = next(r for r in made.part["result"]["tables"]["estimates"] if r["is_main"])
    assert main["hr"] is None
    assert main["calibrated_hr_upper"] is None
    assert "not shown because too few outcomes" in made.text


def test_whoever_may_see_them_does(report):
    made = report(private(), study(min_cell_count=0), min_cell_count=0)
    rows = made.part["result"]["tables"]["rates"]
    assert [r["outcomes"] for r in rows if r["side"] == "after"] == [3, 47]
    assert "occurred in 3 of 241 people in the target group (thiazide) and in 47" in made.text


def test_another_minimum(report):
    made = report(private(), min_cell_count=10)
    assert "occurred in <10 of 241 people in the target group (thiazide) and in 47" in made.text


def test_attrition_hides_what_would_tell_a_small_count(report):
    """290 - 3 = 287: if 3 is hidden, so must be one of the others, the smaller 287."""
    found = tables()
    rows = found["attrition"]
    rows[3] |= {"target_persons": 287, "target_exposures": 287, "removed_target": 3}
    rows[4] |= {"removed_target": 46}
    shown = report(found).part["people"]["tables"]["attrition"]
    assert [r["removed_target"] for r in shown] == [0, 31, 90, None, None]
    assert [r["target_exposures"] for r in shown] == [411, 380, 290, None, 241]
    assert shown[3]["suppressed"]["removed_target"] == "hidden"
    assert shown[4]["suppressed"]["removed_target"] == "hidden"
    assert [r["removed_comparator"] for r in shown] == [0, 62, 100, 44, 57]


def test_ends_of_follow_up_hide_a_second_reason(report):
    found = tables()
    for row in found["follow_up_ends"]:
        if row["arm"] == "target" and row["reason"] == "outcome":
            row["count"] = 2
    rows = report(found).part["follow_up"]["tables"]["ends"]
    # Not 5, the competing events, which stand among the rates, too.
    assert [r["target"] for r in rows] == [None, 5, 170, None]
    assert [r["comparator"] for r in rows] == [47, 24, 260, 108]


def test_curves_end_where_few_are_left(report):
    found = tables()
    for row in found["numbers_at_risk"]:
        if row["time"] >= 500 and row["arm"] == "target":
            row["people"] = 4
    part = report(found).part["curves"]
    assert max(max(c["time"]) for c in part["curves"]) == 497
    assert all(row["time"] < 500 for row in part["tables"]["at_risk"])


def test_prevalences_of_few_people_are_hidden(report):
    found = tables()
    found["balance"][1] |= {"before_count_target": 2, "before_mean_target": 2 / 268}
    found["ps_coefficients"][0]["mean_target"] = 3 / 268
    found["table1"][0]["covariate_id"] = "1210"
    made = report(found, asked_for("1210"))
    (row,) = made.part["balance"]["tables"]["asked_for"]
    assert row["before_mean_target"] is None
    assert row["after_mean_target"] is not None
    # Each difference, with the number in the other arm, would tell the 2.
    assert row["before_smd"] is row["after_smd"] is row["after_p"] is None
    assert all(r["covariate_id"] != "1210" for r in made.part["balance"]["tables"]["worst_after"])
    assert "The standardised differences of 1 covariate are hidden" in made.text
    positive = made.part["models"]["tables"]["positive"]
    assert "210" not in {r["covariate_id"] for r in positive}
    line = made.part["characteristics"]["tables"]["table1"][0]
    assert line["before_target"] is line["before_smd"] is None
    assert line["after_target"] is not None


def test_bars_of_few_people_are_joined(whole):
    """Of neither those kept nor those who went does a bar have 1 to 4."""
    made = sum(r["count"] for r in tables()["preference"])
    rows = whole.part["overlap"]["tables"]["preference"]
    assert sum(r["count"] for r in rows) == made
    for row in rows:
        for n in (row["kept"], row["count"] - row["kept"]):
            assert n == 0 or n >= 5


def test_hidden_results_stay_as_they_are(report):
    found = private()
    main = next(r for r in found["estimates"] if r["role"] == "main")
    keys = [k for k in main if k.startswith("target_") and ("rate" in k or "outcomes" in k)]
    for row in (main, found["arms"][1]):
        row |= dict.fromkeys(keys) | {"suppressed": ", ".join(keys)}
    made = report(found, min_cell_count=0)
    assert "occurred in <5 of 241 people in the target group (thiazide) and in 47" in made.text


def test_tables_of_scores_adjustments_runs_controls_and_remarks_hide_small_counts(report):
    """Each of five tables has a count of 3; neither the page nor its numbers may show one."""
    found = tables()
    found["ps"][0] |= {"n_target": 3}
    details = '{"caliper": 0.5, "uninformative_people": 3}'
    found["adjustments"][0] |= {"target_rows": 3, "target_effective": 3.0, "details": details}
    found["warnings"] = [
        {
            "step": "adjustment",
            "code": "left_out",
            "count": 1,
            "where": "thz, ace, hf, matched",
        }
        | sentence_columns("message", three("{n:person|people} of the target were left out."))
    ]
    reason = three("{n:person|people} have no comparator.")
    found["runs"][0] |= sentence_columns("reason", reason)
    control = found["controls"][0]
    keys = {key: control[key] for key in ("target", "comparator", "outcome", "analysis")}
    of = next(r for r in found["estimates"] if r["role"] == "main")
    found["estimates"].append(of | keys | arms((1, 2)))
    made = report(found)
    part = made.part
    assert part["models"]["score"]["n_target"] is None
    assert part["balance"]["summary"]["target_rows"] is None
    assert part["balance"]["summary"]["target_effective"] is None
    assert part["overlap"]["details"] == {"caliper": 0.5}
    (shown,) = [r for r in part["controls"]["tables"]["controls"] if r["outcome"] == "nc0"]
    assert shown["hr"] is shown["se"] is shown["p"] is None
    assert part["about"]["reason"] == "fewer than 5 people have no comparator."
    assert "3 people" not in made.text
    assert "fewer than 5 people of the target were left out" in made.text


@row_class
class NewRow(ResultRow, table="new"):
    """A new table."""

    people: int = column("count", "how many there are")


@row_class
class LongerYearRow(YearRow, table="calendar"):
    """A table with a new column."""

    ends: int | None = column("derived", "how many end")


def test_tables_and_columns_without_a_rule_are_refused():
    def source(name):
        return []

    with pytest.raises(DisclosureError, match="'new' has columns .* no rule for them: people"):
        Disclosure(source, TABLES | {"new": NewRow}, 5)
    with pytest.raises(DisclosureError, match="'calendar' has columns .* for them: ends"):
        Disclosure(source, TABLES | {"calendar": LongerYearRow}, 5)
    with pytest.raises(DisclosureError, match="no table 'new'"):
        Disclosure(source, TABLES, 5).shown(NewRow)


def test_a_field_without_a_kind_is_refused():
    with pytest.raises(ValueError, match=r"a column needs a kind, .* but it is 'how many'"):
        column("how many", "people")

    @row_class
    class PlainRow(ResultRow, table="plain"):
        """A field that is not a column."""

        people: int = 0

    with pytest.raises(TypeError, match=r"PlainRow.people is not a column"):
        Disclosure(lambda name: [], TABLES | {"plain": PlainRow}, 5)


def test_table1_has_both_groups_together_where_the_study_asks_for_them(report):
    found, about = tables(), study()
    found["table1"][2] |= {"before_overall": 71.31, "before_overall_sd": 6.98}
    heads = [e.text for e in report(found, about).page.all("th")]
    assert "Overall" not in heads
    about["settings"] = about["settings"] | {"report": {"overall": True}}
    made = report(found, about)
    (table,) = [e for e in made.page.all("table") if e.attrs["data-table"].endswith("/table1")]
    assert [e.text for e in table.one("thead").all("th")].count("Overall") >= 1
    assert "71.3 (7.0)" in table.one("tbody").text
