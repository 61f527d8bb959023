"""What may be shared: small counts and withheld effects are in the private tables alone."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from riskset.results.column_groups import BalanceColumns
from riskset.results.rows import AtRiskRow, AttritionRow, BalanceRow, CurveRow
from study.small import content, hide, people


def both(folder, columns, **changes):
    pq.write_table(pa.table(columns), folder / "people.parquet")
    found = rs.study.run(rs.study.Study(content(**changes), folder), folder / "out")
    return found, rs.study.StudyResults.open(folder / "out" / "private")


def test_few_outcomes_are_hidden_with_what_tells_them(tmp_path):
    columns = people()
    columns["died"] = np.zeros(200, dtype=int)
    columns["died"][np.flatnonzero(columns["drug"] == 1)[:3]] = 1
    columns["died"][np.flatnonzero(columns["drug"] == 0)[:9]] = 1
    shared, private = both(tmp_path, columns, analyses={"crude": {}}, sharing={"blind": False})
    (own,) = private.rows("estimates", role="main")
    (row,) = shared.rows("estimates", role="main")
    assert own["target_outcomes"] == 3
    assert row["comparator_outcomes"] == own["comparator_outcomes"] == 9
    for name in ("target_outcomes", "target_rate", "target_rate_upper", "mdrr", "expected_se"):
        assert row[name] is None
        assert name in row["suppressed"].split(", ")
    assert row["hr"] == own["hr"]
    (ends,) = shared.rows("follow_up_ends", arm="target", reason="outcome")
    assert (ends["count"], ends["suppressed"]) == (None, "count")
    # The other reason would give it away by the total.
    (others,) = shared.rows("follow_up_ends", arm="target", reason="end of follow-up")
    assert others["count"] is None


def test_an_arm_of_few_people_is_told_by_no_covariate(tmp_path):
    columns = people(600)
    columns["drug"] = (np.arange(600) < 3).astype(int)
    shared, private = both(tmp_path, columns)
    own, row = (found.rows("balance", covariate_id="age")[0] for found in (private, shared))
    # 1 / n + 1 / 597 + d^2 / (2 (n + 595)) with n = 3, by hand.
    expected = 1 / 3 + 1 / 597 + own["before_smd"] ** 2 / (2 * 598)
    assert own["before_smd_variance"] == pytest.approx(expected, rel=1e-12)
    names = ("before_mean_target", "before_sd_target", "after_mean_comparator")
    for name in (*names, "before_smd", "before_smd_variance", "after_smd_variance", "before_p"):
        assert own[name] is not None
        assert row[name] is None
    assert row["before_mean_comparator"] == own["before_mean_comparator"]
    # (3 x 59 + 597 x 65.248) / 600 tells 3 as well.
    own, row = (found.rows("table1", covariate_id="age")[0] for found in (private, shared))
    for name in ("before_target", "before_overall", "before_overall_sd", "after_comparator"):
        assert own[name] is not None
        assert row[name] is None
    # 485 of 600 are in equipoise; of 598, 599 and 601 people, it would be no whole number.
    (own,), (row,) = (found.rows("ps") for found in (private, shared))
    assert own["equipoise"] == pytest.approx(485 / 600, rel=1e-12)
    assert row["equipoise"] is None
    checks = {one["name"]: one["value"] for one in shared.rows("diagnostics")}
    assert checks["equipoise"] is None


def test_effects_that_fail_diagnostics_are_withheld(tmp_path):
    columns = people()
    limits = {"max_smd": 1e-9}
    shared, private = both(tmp_path, columns, diagnostics=limits)
    (run,) = shared.rows("runs")
    assert (run["unblind"], run["blinded"]) == (False, True)
    rows = shared.rows("estimates")
    assert rows
    assert all(row["hr"] is None and row["p"] is None and row["blinded"] for row in rows)
    assert all(row["target_outcomes"] is not None for row in rows)
    assert shared.rows("curves") == []
    assert all(
        row["target_risk"] is row["difference"] is None for row in shared.rows("absolute_risks")
    )
    assert all(row["hr"] is not None for row in private.rows("estimates"))
    assert private.rows("curves")


def test_effects_are_withheld_whatever_the_minimum(tmp_path):
    sharing = {"min_cell_count": 0, "blind": True}
    shared, private = both(tmp_path, people(), diagnostics={"max_smd": 1e-9}, sharing=sharing)
    assert shared.rows("estimates")
    assert shared.rows("arms")
    assert shared.rows("absolute_risks")
    assert all(row["hr"] is row["target_rate"] is None for row in shared.rows("estimates"))
    assert all(row["comparator_weighted_rate"] is None for row in shared.rows("arms"))
    assert all(row["difference"] is None for row in shared.rows("absolute_risks"))
    assert all(row["hr"] is not None for row in private.rows("estimates"))


def test_bars_with_few_people_are_joined():
    def bar(k, count, kept):
        own = {"adjustment": 1, "arm": "target", "lower": k / 100, "upper": (k + 1) / 100}
        return own | {"count": count, "kept": kept, "weight": float(kept)}

    bars = [bar(0, 10, 10), bar(1, 7, 5), bar(2, 6, 2), bar(3, 0, 0), bar(4, 8, 8), bar(5, 2, 2)]
    found = list(hide("preference", bars, 5))
    # 1 and 2 together: 7 kept, 6 gone. The last joins the one before it.
    assert [(b["lower"], b["upper"], b["count"], b["kept"]) for b in found] == [
        (0.0, 0.01, 10, 10),
        (0.01, 0.03, 13, 7),
        (0.03, 0.04, 0, 0),
        (0.04, 0.06, 10, 10),
    ]
    (alone,) = hide("preference", [bar(0, 3, 3)], 5)
    assert alone["count"] is None
    assert alone["suppressed"] == "count, kept, weight"


def test_results_that_are_shared_can_be_shared_again(tmp_path):
    """Numbers at risk that lie close together are hidden; curves do not end there."""
    shared, _ = both(tmp_path, people(1000), sharing={"blind": False, "min_cell_count": 5})
    at_risk = shared.rows("numbers_at_risk", adjusted=True, arm="target")
    known = [row["people"] for row in at_risk]
    known[1:-1] = [None] * (len(known) - 2)  # all but the first and the last
    assert known[-1] >= 5
    at_risk = [AtRiskRow(**(row | {"people": n})) for row, n in zip(at_risk, known, strict=True)]
    curves = [CurveRow(**row) for row in shared.rows("curves", adjusted=True, arm="target")]
    again = hide("curves", curves, 5, numbers_at_risk=at_risk)
    assert [row["time"] for row in again] == [row["time"] for row in curves]


def test_curves_end_where_an_arm_has_few_people(tmp_path):
    shared, private = both(tmp_path, people(120), sharing={"blind": False, "min_cell_count": 10})
    ends = [r.rows("curves", adjusted=True, arm="target")[-1]["time"] for r in (shared, private)]
    assert ends[0] < ends[1]
    at = [r for r in private.rows("numbers_at_risk", adjusted=True) if r["people"] < 10]
    assert at
    for row in at:
        names = {name: row[name] for name in ("arm", "time", "adjusted")}
        (hidden,) = shared.rows("numbers_at_risk", **names)
        assert row["people"] == 0 or hidden["people"] is hidden["weighted"] is None


def test_levels_of_a_subgroup_do_not_tell_each_other(tmp_path):
    """3 of 60 with x = 1, so 57 with x = 0 must not stand beside the 60 of all."""
    columns = people()
    new = columns["drug"] == 1
    columns["died"] = np.where(new, 0, columns["died"])
    columns["died"][np.flatnonzero(new & (columns["x"] == 1))[:3]] = 1
    columns["died"][np.flatnonzero(new & (columns["x"] == 0))[:20]] = 1
    changes = {"analyses": {"crude": {}}, "sharing": {"blind": False}}
    changes["subgroups"] = {"x": {"column": "x"}}
    shared, private = both(tmp_path, columns, **changes)
    own = [row["target_outcomes"] for row in private.rows("estimates", role="subgroup")]
    assert own == [20, 3]
    (main,) = shared.rows("estimates", role="main")
    assert main["target_outcomes"] == 23
    for row in shared.rows("estimates", role="subgroup"):
        for name in ("target_outcomes", "target_rate", "target_weighted_rate", "mdrr"):
            assert row[name] is None
            assert name in row["suppressed"].split(", ")
        assert row["comparator_outcomes"] is not None


def test_a_year_with_few_starts_does_not_follow_from_the_others():
    by = {"target": "a", "comparator": "b", "arm": "target"}
    rows = [by | {"year": 2000 + k, "starts": n} for k, n in enumerate((100, 3, 20))]
    assert [row["starts"] for row in hide("calendar", rows, 5)] == [100, None, None]


def test_generalisability_is_shown_with_the_shared_adjustment_that_it_comes_from():
    """Of the adjustment of one outcome alone it may be another number."""
    run = {"target": "a", "comparator": "b", "outcome": "death", "analysis": "matched"}
    runs = [run | {"adjustment": 1, "shared_adjustment": 2}]
    adjustments = [{"adjustment": k, "generalisability_max": 0.1 * k} for k in (1, 2)]
    covariate = {"covariate_id": "x", "name": "x", "is_binary": False}
    balance = [{"adjustment": k, "generalisability_both": 0.1 * k} | covariate for k in (1, 2)]
    rows = [run | {"name": "generalisability", "value": 0.2}]
    for known, expected in ((balance[:1], None), (balance[1:], 0.2)):
        others = {"runs": runs, "adjustments": adjustments, "balance": known}
        (row,) = hide("diagnostics", rows, 5, **others)
        assert row["value"] == expected


def test_few_outcomes_are_told_neither_by_controls_nor_by_risks(tmp_path):
    columns = people()
    columns["died"] = np.zeros(200, dtype=int)
    for drug in (0, 1):
        columns["died"][np.flatnonzero(columns["drug"] == drug)[:2]] = 1
    own = {"time": "days", "event": "died"}
    shared, private = both(
        tmp_path,
        columns,
        analyses={"crude": {}},
        outcomes={"death": own, "control": own | {"kind": "negative control"}},
        sharing={"blind": False},
    )
    # Profiles are shared whatever the number of outcomes: a meta-analysis needs them.
    for outcome in ("death", "control"):
        assert shared.rows("likelihood_profiles", outcome=outcome)
    assert private.rows("controls")[0]["log_hr"] is not None
    assert shared.rows("controls")[0]["log_hr"] is shared.rows("controls")[0]["hr_upper"] is None
    (risk,) = shared.rows("absolute_risks", adjusted=True)
    assert risk["target_risk"] is risk["difference"] is None
    assert private.rows("absolute_risks", adjusted=True)[0]["target_risk"] > 0


def test_rates_of_adjusted_people_do_not_tell_an_effect_that_is_withheld(tmp_path):
    changes = {"diagnostics": {"max_smd": 1e-9}, "subgroups": {"x": {"column": "x"}}}
    changes["analyses"] = {"weighted": {"weight": {"estimand": "ate"}}}
    shared, private = both(tmp_path, people(), **changes)
    for row in (*shared.rows("arms"), *shared.rows("estimates")):
        assert row["target_weighted_rate"] is row["comparator_rate"] is None
    assert all(r["interaction_p"] is None for r in shared.rows("estimates"))
    assert any(r["interaction_p"] is not None for r in private.rows("estimates"))
    made = rs.report.write(private.path, tmp_path / "page.html", blind=True, min_cell_count=0)
    text = made.with_suffix(".json").read_text()
    (after,) = private.rows("arms", side="after")
    assert repr(after["target_weighted_rate"]) not in text
    assert repr(after["target_rate"]) not in text


def test_levels_are_counted_among_the_people_who_have_covariates():
    """Attrition of a CDM begins with people who are not eligible: 60 + 38 + 2 are 100 of 500."""
    counts = {"young": (60, 50), "middle": (38, 30), "old": (2, 20)}
    rows = [
        BalanceRow(
            adjustment=1,
            covariate_id=name,
            name=f"age group: {name}",
            analysis_id=3,
            is_binary=True,
            before=BalanceColumns(
                mean_target=a / 100, mean_comparator=b / 100, count_target=a, count_comparator=b
            ),
        )
        for name, (a, b) in counts.items()
    ]
    first = AttritionRow(adjustment=1, number=1, target_exposures=500, comparator_exposures=500)
    shown = list(hide("balance", rows, 5, attrition=[first]))
    assert [row.before.count_target for row in shown] == [60, None, None]
