"""Every number in a table is that of `report.json`, and both are those of the results."""

import math

import pytest

import riskset as rs
from report.made import study, tables, two_outcomes
from report.made_estimates import arms
from report.parsed import numbers


def compare(words, keys, record):
    """A cell against the values that it claims to show."""
    hidden = record.get("suppressed") or {}
    values = [record.get(key) for key in keys if key not in hidden]
    values = [float(v) if v in ("inf", "-inf") else v for v in values]
    known = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if not known or any(key in hidden for key in keys):
        return 0
    plain = words.replace("\u202f", "")
    if plain.startswith("<"):
        assert known == [v for v in known if v < 0.001]
        return 1
    shown = numbers(words)
    assert len(shown) == len(known), (words, keys, record)
    for (value, slack), truth in zip(shown, known, strict=True):
        assert value == truth or abs(value - truth) <= slack, (words, keys, truth)
    return len(known)


def compare_all(report):
    """How many numbers of all tables were compared, and the names of the tables."""
    compared, names = 0, set()
    for table in report.page.all("table"):
        path = table.attrs["data-table"]
        records = report.content
        for step in path.split("/"):
            records = records[int(step)] if step.isdigit() else records[step]
        names.add(path.split("/")[-1])
        rows = [r for r in table.one("tbody").all("tr") if "data-row" in r.attrs]
        assert len(rows) == min(len(records), 200)
        for row, record in zip(rows, records, strict=False):
            for cell in row.all("th", "td"):
                keys = cell.attrs["data-keys"].split()
                if keys == ["rule"]:
                    continue
                assert set(keys) <= set(record), path
                text = [record[k] for k in keys if isinstance(record[k], str)]
                if len(keys) == 1 and text and text[0] == cell.text:
                    continue
                compared += compare(cell.text, keys, record)
    return compared, names


def test_tables_show_the_numbers_of_the_json(whole):
    compared, names = compare_all(whole)
    assert compared > 1000
    assert {"rates", "estimates", "risks", "worst_after", "table1", "controls"} <= names


def test_so_do_those_of_two_outcomes_with_small_counts(report):
    about, found = two_outcomes()
    for row in found["estimates"][:3]:
        row |= arms((3, 47))
    compared, names = compare_all(report(found, about))
    assert compared > 2000
    assert "runs" in names


def test_the_json_has_the_numbers_of_the_results(whole):
    made, part = tables(), whole.part
    (main,) = [r for r in part["result"]["tables"]["estimates"] if r["is_main"]]
    truth = next(r for r in made["estimates"] if r["role"] == "main")
    for key in ("hr", "hr_lower", "hr_upper", "p", "calibrated_hr", "mdrr", "target_outcomes"):
        assert main[key] == truth[key]
    after = [r for r in part["result"]["tables"]["rates"] if r["side"] == "after"]
    assert [r["persons"] for r in after] == [241, 439]
    assert after[0]["person_years"] == pytest.approx(241 * 500 / 365.25)
    assert part["controls"]["calibration"]["ease"] == 0.1565
    assert [r["target"] for r in part["people"]["tables"]["calendar"]] == list(range(22, 62, 5))


def test_number_needed(whole):
    """0.0394 - 0.0905 = -0.0511 with an interval of -0.0791 to -0.0231: 1 in 20 (13 to 44)."""
    row = next(r for r in whole.part["result"]["tables"]["risks"] if r["adjusted"])
    assert (row["nnt"], row["nnt_lower"], row["nnt_upper"]) == (20, 13, 44)
    assert "NNT 20 (13–44)" in whole.text


@pytest.mark.parametrize(
    ("difference", "numbers", "words"),
    [
        ((0.0125, 0.01, 0.05), (-80, -100, -20), "NNH 80 (20–100)"),
        ((-0.01, -0.03, 0.02), (100, 34, -50), "NNT 100 (NNT 34 to ∞ to NNH 50)"),
        ((0.01, -0.02, 0.03), (-100, 50, -34), "NNH 100 (NNH 34 to ∞ to NNT 50)"),
        ((-0.01, -0.02, 0.0), (100, 50, "inf"), "NNT 100 (50–∞)"),
        ((0.0, -0.02, 0.02), ("inf", 50, -50), "NNT ∞ (NNT 50 to ∞ to NNH 50)"),
    ],
)
def test_number_needed_by_its_name(report, difference, numbers, words):
    """As Altman (1998) writes it where the difference may be 0."""
    found = tables()
    names = ("difference", "difference_lower", "difference_upper")
    for row in found["absolute_risks"]:
        row |= dict(zip(names, difference, strict=True))
    made = report(found)
    for row in made.part["result"]["tables"]["risks"]:
        assert tuple(row[name] for name in ("nnt", "nnt_lower", "nnt_upper")) == numbers
    assert words in made.text


def test_the_worst_covariates_come_first(whole):
    made = tables()["balance"]
    for side in ("before", "after"):
        rows = whole.part["balance"]["tables"][f"worst_{side}"]
        sizes = sorted((abs(r[f"{side}_smd"]) for r in made), reverse=True)[:20]
        assert [abs(r[f"{side}_smd"]) for r in rows] == sizes


def test_covariates_that_the_specification_lists(report):
    about = study()
    about["settings"] = about["settings"] | {"report": {"covariates": ["150210"]}}
    rows = report(None, about).part["balance"]["tables"]["asked_for"]
    assert [r["name"] for r in rows] == ["condition number 150, days -365 to 0"]


def test_long_tables_say_how_much_they_leave_out(report):
    found = tables()
    one = found["controls"][0]
    found["controls"] = [one | {"outcome": f"nc{k}"} for k in range(230)]
    made = report(found)
    (table,) = [t for t in made.page.all("table") if t.attrs["data-table"].endswith("controls")]
    assert len(table.one("tbody").all("tr")) == 200
    assert (
        "The table shows the first 200 rows. The Parquet files of the results contain 30 more."
        in made.text
    )


SENTENCES = {
    (-0.52, 0.34): "effects from a reduction of the hazard by 69 % to an increase by 16 %",
    (-0.9, 0.2): "a reduction of the hazard by 40 % to 73 %",
    (0.9, 0.2): "an increase of the hazard by 66 % to 264 %",
}


@pytest.mark.parametrize("effect", SENTENCES)
def test_words_follow_the_interval(report, effect):
    """exp(-0.52 - 1.96 0.34) = 0.305 and so on; without calibration, so that both are the same."""
    log_hr, se = effect
    found = tables()
    main = next(r for r in found["estimates"] if r["role"] == "main")
    ends = [math.exp(log_hr + z * se) for z in (-1.96, 0, 1.96)]
    main |= dict(zip(("hr_lower", "hr", "hr_upper"), ends, strict=True))
    main |= {k: None for k in main if k.startswith("calibrated_")}
    words = report(found).text
    assert f"This is compatible with {SENTENCES[effect]}." in words
    assert "no effect" not in words


def test_an_interval_without_end(report):
    found = tables()
    main = next(r for r in found["estimates"] if r["role"] == "main")
    main |= {"hr_lower": 0.8, "hr": 4.0, "hr_upper": math.inf}
    main |= {k: None for k in main if k.startswith("calibrated_")}
    made = report(found)
    assert "a reduction of the hazard by 20 % to an increase without limit" in made.text
    row = next(r for r in made.part["result"]["tables"]["estimates"] if r["is_main"])
    assert row["hr_upper"] == "inf"


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.5, math.inf, "an increase of the hazard by 50 % to an increase without limit"),
        (0.0, 0.8, "in the target group to a reduction of the hazard by 20 %"),
        (0.0, 1.5, "in the target group to an increase of the hazard by 50 %"),
    ],
)
def test_words_of_intervals_with_one_end(report, low, high, words):
    found = tables()
    main = next(r for r in found["estimates"] if r["role"] == "main")
    main |= {"hr_lower": low, "hr": 4.0 if low else 0.2, "hr_upper": high}
    main |= {k: None for k in main if k.startswith("calibrated_")}
    assert words in report(found).text


def test_the_first_sentence_says_what_was_estimated(report):
    """No adjustment, and the model of Fine and Gray, whose hazard is another one."""
    found = tables()
    main = next(r for r in found["estimates"] if r["role"] == "main")
    main |= {k: None for k in main if k.startswith("calibrated_")} | {
        "model": "finegray",
        "n_covariates": 0,
    }
    for run in found["runs"]:
        run["adjustment_kind"] = "none"
    words = report(found).text
    assert "Without adjustment, the subdistribution hazard ratio was 0.595" in words
    assert "a reduction of the subdistribution hazard by" in words


def test_numbers_are_read_as_they_are_written():
    from riskset.report.number_format import interval, p_value, percent, significant, whole

    assert significant(1234.5) == "1\u202f234"
    assert significant(-0.05678) == "−0.0568"
    assert significant(9.996) == "10.0"
    assert significant(2.5e-9, 2) == "2.5\u202f×\u202f10⁻⁹"
    assert significant(math.inf) == "∞"
    assert whole(999999.6) == "1\u202f000\u202f000"
    assert percent(0.12345) == "12.3\u202f%"
    assert p_value(0.0009) == "<\u202f0.001"
    assert interval("1.2", "0.9", "1.6") == "1.2 (0.9–1.6)"
    assert interval("0.1", "−0.2", "0.4") == "0.1 (−0.2 to 0.4)"


def test_the_rule_of_balance_is_the_one_in_force(report):
    about = study()
    for analysis in about["analyses"].values():
        analysis["settings"] = {"balance": {"alpha": 0.05}}
    found = tables()
    found["diagnostics"][0]["value"] = 0.203
    words = report(found, about).text
    assert "0.203not significantly above 0.1✓ passed" in words


def test_every_status_has_words():
    from typing import get_args

    from riskset.cohort.adjustments.adjustment import AdjustmentStatus
    from riskset.cohort.effects.estimate import EstimateStatus
    from riskset.cohort.propensity.propensity_result import ScoreStatus
    from riskset.report.translations import Translations

    say = Translations("en")
    for statuses in (AdjustmentStatus, EstimateStatus, ScoreStatus):
        for code in get_args(statuses):
            assert f"status.{code}" in say
            assert len(say.label("instead", code)) <= 21
            assert f"instead.{code}" in say


def test_report_is_a_module_and_knows_its_languages():
    from riskset.report.translations import languages

    assert rs.report.__all__ == ["export", "write"]
    assert languages() == ("en",)


def heads(report):
    (table,) = [e for e in report.page.all("table") if e.attrs["data-table"].endswith("/estimates")]
    titles = [e.text.replace("\u00ad", "") for e in table.one("thead").all("tr")[-1].all("th")]
    return titles, table


def test_columns_of_the_estimates_have_something_to_say(report):
    found = tables()
    titles, _ = heads(report(found))
    assert "Interaction p" in titles
    assert "Detectable HR" in titles
    assert "Model" in titles  # Cox and Fine-Gray
    assert "Status" not in titles
    for row in found["estimates"]:
        row |= {"interaction_p": None, "mdrr": None, "model": "cox"}
    found["estimates"][2]["status"] = "no_informative_strata"
    titles, table = heads(report(found))
    assert "Interaction p" not in titles
    assert "Detectable HR" not in titles
    assert "Model" not in titles
    rows = table.one("tbody").all("tr")
    cells = [row.all("th", "td")[titles.index("Status")].text for row in rows]
    assert sorted(cells) == [""] * 6 + ["no informative strata"]


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        (("0", "1"), ["Sex: no", "Sex: yes"]),
        (("1", "2"), ["Sex: 1", "Sex: 2"]),
        (("0", "10"), ["Sex: 0", "Sex: 10"]),
    ],
)
def test_levels_0_and_1_are_no_and_yes(report, levels, words):
    found = tables()
    own = [row for row in found["estimates"] if row["role"] == "subgroup"]
    for row, level in zip(own, levels, strict=True):
        row["level"] = level
    rows = report(found).part["result"]["tables"]["estimates"]
    assert [r["label"] for r in rows if r["role"] == "subgroup"] == words
    assert [r["level"] for r in rows if r["role"] == "subgroup"] == list(levels)


def test_a_third_level_keeps_the_others_as_they_are(report):
    found = tables()
    own = [row for row in found["estimates"] if row["role"] == "subgroup"]
    found["estimates"].append(own[0] | {"number": 7})
    for row, level in zip((*own, found["estimates"][-1]), ("0", "1", "2"), strict=True):
        row["level"] = level
    rows = report(found).part["result"]["tables"]["estimates"]
    assert [r["label"] for r in rows if r["role"] == "subgroup"] == ["Sex: 0", "Sex: 1", "Sex: 2"]


def test_words_on_balance(report):
    found = tables()
    found["adjustments"][0] |= {"after_above": 0, "before_above": 1}
    made = report(found)
    assert (
        "After adjustment, the absolute standardised difference exceeds 0.1 for 0 of 160 covariates"
        in made.text
    )
    assert "Before adjustment, it exceeds 0.1 for 1; the largest is" in made.text
    keeps = "keeps 241 people in the target group and 439 people in the comparator group"
    assert f"{keeps}. The effective sample sizes are 241 and 402." in made.text


def test_a_hidden_statistic_of_distributions_has_its_reason(report):
    found = tables()
    for row in found["balance"]:
        row |= {"before_ks": 0.125, "after_ks": 0.0625}
    reason = "each is the difference between the proportions of people up to a value"
    assert reason not in report(found).text
    found["balance"][1]["is_binary"] = False
    made = report(found)
    worst = made.part["balance"]["tables"]["worst_before"]
    assert [row["before_ks"] for row in worst if "before_ks" in row["suppressed"]] == [None]
    assert reason in made.text
    assert reason not in report(found, min_cell_count=0).text


def test_words_on_the_shared_balance(report):
    """Of people whom all outcomes share, unless they are those of this outcome."""
    assert "The shared balance is the same for all outcomes" not in report().text
    found = tables()
    shared = found["adjustments"][0] | {"adjustment": 2, "after_max": 0.0725, "after_above": 0}
    found["adjustments"].append(shared | {"after_worst": "condition number 7"})
    # The largest difference is shared if the covariate that has it is.
    (worst,) = (row for row in found["balance"] if row["name"].startswith("condition number 7,"))
    found["balance"].append(worst | {"adjustment": 2, "after_smd": 0.0725})
    for run in found["runs"]:
        run["shared_adjustment"] = 2
    found["diagnostics"] += [
        found["diagnostics"][0] | {"name": "shared_balance", "value": 0.0725, "verdict": "pass"}
    ]
    text = report(found).text
    assert "difference after adjustment exceeds 0.1 for 0 of 160 covariates" in text
    assert "the largest is 0.0725 (condition number 7)" in text
    assert (
        "Largest standardised difference before exclusions for the outcome (shared balance)" in text
    )


@pytest.mark.parametrize("may_be_pooled", [True, False])
def test_a_profile_for_a_meta_analysis_is_mentioned(report, may_be_pooled):
    found = tables()
    for run in found["runs"]:
        run |= {"unblind": False, "unblind_for_evidence_synthesis": may_be_pooled}
    text = report(found).text
    assert "the result is withheld" in text
    assert ("A meta-analysis may therefore use the likelihood profile" in text) is may_be_pooled


def test_effective_numbers_are_told_if_they_differ(report):
    found = tables()
    found["adjustments"][0]["comparator_effective"] = 439.0
    text = report(found).text
    assert "241 people in the target group and 439 people in the comparator group." in text
    assert "effective sample sizes" not in text


def test_formats_of_columns_follow_their_declarations():
    from riskset.report.page import Page
    from riskset.report.translations import Translations
    from riskset.results.rows import EstimateRow, RiskRow

    page = Page(Translations("en", {"target": "new", "comparator": "old"}))
    hr, p, outcomes, label = page.columns(EstimateRow, "hr", "p", "target_outcomes", "label")
    assert hr.keys == ("hr", "hr_lower", "hr_upper")
    assert hr.show(0.5, 0.25, 1.0) == "0.500 (0.250–1.00)"
    assert p.show(0.00001) == "<\u202f0.001"
    assert outcomes.show(12345) == "12\u202f345"
    assert (label.is_number, label.show("crude")) == (False, "crude")
    (difference,) = page.columns(RiskRow, "difference")
    assert difference.show(0.1, 0.05, 0.2) == "10.0\u202f% (5.00–20.0)"


def test_adjusted_p_of_a_blind_report_do_not_depend_on_what_it_withholds(report):
    """The family has two tests, of which one is withheld, so the other p is doubled."""
    seen = []
    for p in (1e-9, 0.5):
        about, found = two_outcomes()
        for row in found["runs"]:
            row["unblind"] = row["outcome"] == "hf"
        for row in found["estimates"]:
            row["p"] = p if row["outcome"] == "mi" else 0.02
        rows = report(found, about).content["index"]["tables"]["runs"]
        hf, mi = (
            next(row for row in rows if row["outcome"] == name)
            for name in ("heart failure", "myocardial infarction")
        )
        assert mi["p"] is mi["holm_p"] is mi["fdr_p"] is None
        seen.append((hf["p"], hf["holm_p"], hf["fdr_p"]))
    assert seen[0] == seen[1] == pytest.approx((0.02, 0.04, 0.04))


def test_one_control_left_out(report):
    found = tables()
    text = "If one control is left out, the mean of the systematic error is between 0.104 and 0.133"
    assert text in report(found, min_cell_count=0).text
    rows = [row | {"null_sd_without": 0.0} for row in found["controls"]]
    text = report(found | {"controls": rows}, min_cell_count=0).text
    assert ", and its standard deviation 0 (" in text
