"""Controls of a study: known numbers reach the tables, and those that fail are set aside."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize

import riskset as rs
from cohort.golden import CONTROLS, table
from parameters import rest_is_slow
from riskset.results.column_groups import EffectColumns
from riskset.results.rows import EstimateRow
from riskset.study.steps.controls import calibrated
from study.small import people, run


@dataclass
class CalibratedOutcome:
    """What a run has of an outcome."""

    outcome_name: str
    true_hr: float | None
    rows: list
    passes: bool


def estimated(log_hr, se):
    """A main estimate."""
    effect = EffectColumns(log_hr=log_hr, se=se)
    return EstimateRow(role="main", model="cox", reading="marginal", status="ok", effect=effect)


def of_golden(first, last, true_hr):
    """Estimates of the golden file as those of outcomes."""
    own = table("negative_controls")
    found = []
    for k in np.flatnonzero((own["outcome_id"] >= first) & (own["outcome_id"] <= last)):
        row = estimated(float(own["log_rr"][k]), float(own["se"][k]))
        name = str(int(own["outcome_id"][k]))
        found.append(CalibratedOutcome(name, true_hr, [row], True))
    return found


def test_numbers_of_the_golden_controls():
    controls, interest = of_golden(1, 50, 1.0), of_golden(201, 206, None)
    rows, (summary,) = calibrated([*controls, *interest], "likelihood", 0.95)
    assert summary["null_mean"] == pytest.approx(CONTROLS["null"]["exact"]["mean"], rel=1e-8)
    assert summary["ease"] == pytest.approx(CONTROLS["ease"]["exact"], rel=1e-8)
    assert summary["coverage"] == CONTROLS["coverage"]["uncalibrated_95"]
    assert summary["calibrated_coverage"] == CONTROLS["coverage"]["calibrated_loo_95"]
    exact = CONTROLS["ci_from_null"]["exact"]
    for one, b, low, p in zip(
        interest, exact["log_rr"], exact["lb95"], CONTROLS["p"]["exact"]["two_sided"], strict=True
    ):
        assert one.rows[0]["calibrated_log_hr"] == pytest.approx(b, rel=1e-7)
        assert np.log(one.rows[0]["calibrated_hr_lower"]) == pytest.approx(low, rel=1e-7)
        assert one.rows[0]["calibrated_p"] == pytest.approx(p, rel=1e-7)
    own_p = [row["calibrated_p"] for row in rows]
    assert own_p == pytest.approx(CONTROLS["leave_one_out_p"], rel=1e-3)


def test_intervals_and_p_values_of_a_posterior_agree():
    controls, interest = of_golden(1, 50, 1.0), of_golden(201, 206, None)
    rows, (summary,) = calibrated([*controls, *interest], "posterior", 0.95)
    found = [one.rows[0] for one in interest]
    for row in found:
        holds = row["calibrated_hr_lower"] < 1 < row["calibrated_hr_upper"]
        assert holds == (row["calibrated_p"] > 0.05)
    assert [row["calibrated_p"] > 0.05 for row in found] == [True, True, True, False, False, True]
    # Integrated over the uncertainty of the systematic error, intervals are longer.
    exact = CONTROLS["ci_from_null"]["exact"]["se"]
    assert all(row["calibrated_se"] > se for row, se in zip(found, exact, strict=True))
    own = [row["calibrated_p"] for row in rows]
    assert summary["calibrated_coverage"] == np.mean(np.array(own) >= 0.05)
    assert own != pytest.approx(CONTROLS["leave_one_out_p"], rel=1e-3)


@pytest.mark.parametrize("method", rest_is_slow(["likelihood", "posterior"], 1))
def test_the_region_of_the_picture_is_where_the_calibrated_p_is_005(method):
    controls = of_golden(1, 50, 1.0)
    _, (summary,) = calibrated(controls, method, 0.95)
    assert summary["region_se"][0] == 0
    assert summary["region_se"][-1] == 2 * max(one.rows[0]["se"] for one in controls)
    for k in (5, 30, 60):
        for end, inwards in (("lower", 1e-6), ("upper", -1e-6)):
            p = []
            for away in (inwards, -inwards):
                row = estimated(summary[f"region_{end}"][k] + away, summary["region_se"][k])
                one = CalibratedOutcome("x", None, [row], True)
                calibrated([*controls, one], method, 0.95)
                p.append(one.rows[0]["calibrated_p"])
            assert p == pytest.approx([0.05, 0.05], abs=1e-4)
            assert p[0] > 0.05 > p[1]


def test_controls_whose_diagnostics_fail_are_set_aside():
    failing = [
        CalibratedOutcome(c.outcome_name, c.true_hr, c.rows, k >= 10)
        for k, c in enumerate(of_golden(1, 50, 1.0))
    ]
    rows, (summary,) = calibrated(failing, "likelihood", 0.95)
    assert summary["n_negative"] == 40
    assert [row["used"] for row in rows] == [False] * 10 + [True] * 40
    assert {row["reason"] for row in rows[:10]} == {"its diagnostics fail"}


def test_controls_of_a_study(tmp_path):
    columns = people(600)
    names = [f"control {k}" for k in range(6)]
    columns |= {name: people(600, seed=20 + k)["died"] for k, name in enumerate(names)}
    outcomes = {"death": {"time": "days", "event": "died"}} | {
        name: {"time": "days", "event": name, "kind": "negative control"} for name in names
    }
    data = {
        "people": "people.parquet",
        "treatment": "drug",
        "covariates": {"columns": ["x", "age"]},
    }
    found = run(tmp_path, columns, outcomes=outcomes, data=data, calibration="likelihood")
    (summary,) = found.rows("calibration", reading="stratified")
    assert summary["n_negative"] == 6
    (main,) = found.rows("estimates", outcome="death", role="main")
    # By hand: the null is the only difference between an estimate and its calibrated twin.
    gap = main["log_hr"] - main["calibrated_log_hr"]
    assert gap == pytest.approx(summary["null_mean"], abs=1e-12)
    assert main["calibrated_se"] == pytest.approx(np.hypot(main["se"], summary["null_sd"]))
    (ease,) = found.rows("diagnostics", outcome="death", name="ease")
    assert ease["value"] == summary["ease"]
    # Nobody draws curves of controls.
    assert {row["outcome"] for row in found.rows("curves")} == {"death"}


def with_prior_outcomes(n=600, n_covariates=40, n_controls=12):
    """Rare covariates, and controls that a third of the people had before, by chance."""
    rng = np.random.default_rng(5)
    columns = people(n, seed=3)
    names = [f"x{k}" for k in range(n_covariates)]
    columns |= {name: (rng.random(n) < 0.2).astype(int) for name in names}
    outcomes = {"death": {"time": "days", "event": "died"}}
    for k in range(n_controls):
        columns |= {f"c{k}": (rng.random(n) < 0.4).astype(int)}
        columns |= {f"had c{k}": (rng.random(n) < 0.35).astype(int)}
        outcomes[f"control {k}"] = {"time": "days", "event": f"c{k}", "prior": f"had c{k}"}
        outcomes[f"control {k}"]["kind"] = "negative control"
    data = {"people": "people.parquet", "treatment": "drug", "covariates": {"columns": names}}
    return columns, names, outcomes, data


def test_the_shared_balance_decides_about_controls(tmp_path):
    """Most controls are out of balance by chance alone, though the analysis is in balance."""
    columns, names, outcomes, data = with_prior_outcomes()
    analyses = {"overlap": {"weight": {"estimand": "ato"}}}
    found = run(tmp_path, columns, outcomes=outcomes, data=data, analyses=analyses)
    # Without the study: overlap weights of an unpenalised score balance all means exactly.
    x = np.column_stack([columns[name] for name in names]).astype(float)
    model = rs.cohort.propensity_score(columns["drug"], x, None)
    scored = model.population
    everybody = rs.cohort.balance(x, rs.cohort.weight(scored))
    assert np.abs(everybody.after.smd).max() < 1e-6
    own = []
    for k in range(12):
        left = rs.cohort.restrict(scored, columns[f"had c{k}"] == 0, "no prior outcome")
        own.append(np.abs(rs.cohort.balance(x, rs.cohort.weight(left)).after.smd).max())
    assert sum(size >= 0.1 for size in own) >= 9
    controls = found.rows("controls")
    assert [row["used"] for row in controls] == [True] * 12
    (summary,) = found.rows("calibration")
    assert (summary["status"], summary["n_negative"]) == ("ok", 12)
    for k in range(12):
        names = {"outcome": f"control {k}"}
        (balance,) = found.rows("diagnostics", name="balance", **names)
        assert (balance["value"], balance["verdict"]) == (None, "not_evaluated")
        (shared,) = found.rows("diagnostics", name="shared_balance", **names)
        assert shared["verdict"] == "pass"
        assert shared["value"] == pytest.approx(0, abs=1e-6)


def test_controls_are_set_aside_if_the_shared_balance_fails(tmp_path):
    columns, _, outcomes, data = with_prior_outcomes(n_controls=2)
    limits = {"max_smd": 10.0, "max_shared_smd": 1e-12}
    found = run(tmp_path, columns, outcomes=outcomes, data=data, diagnostics=limits)
    assert {row["reason"] for row in found.rows("controls")} == {"its diagnostics fail"}
    assert {row["verdict"] for row in found.rows("diagnostics", name="shared_balance")} == {"fail"}
    (balance,) = found.rows("diagnostics", name="balance", outcome="death")
    assert balance["verdict"] == "pass"
    assert not any(row["unblind"] for row in found.rows("runs"))


def test_the_shared_balance_is_among_the_results(tmp_path):
    """It is that of all; each outcome of interest has one of its own people, too."""
    columns, names, outcomes, data = with_prior_outcomes(n_controls=1)
    columns["had died"] = columns["had c0"]
    outcomes["death"]["prior"] = "had died"
    analyses = {"overlap": {"weight": {"estimand": "ato"}}, "crude": {}}
    found = run(tmp_path, columns, outcomes=outcomes, data=data, analyses=analyses)
    is_target = columns["drug"] == 1
    left = columns["had died"] == 0
    (death,) = found.rows("runs", outcome="death", analysis="crude")
    (control,) = found.rows("runs", outcome="control 0", analysis="crude")
    assert death["adjustment"] == control["adjustment"] != death["shared_adjustment"]
    assert control["shared_adjustment"] == death["shared_adjustment"]
    for number, those in ((death["shared_adjustment"], True), (death["adjustment"], left)):
        for row in found.rows("balance", adjustment=number):
            mean = columns[row["name"]][is_target & those].mean()
            assert row["after_mean_target"] == pytest.approx(mean, rel=1e-12)
        (made,) = found.rows("adjustments", adjustment=number)
        assert made["target_rows"] == np.count_nonzero(is_target & those)
        largest = max(abs(row["after_smd"]) for row in found.rows("balance", adjustment=number))
        assert made["after_max"] == largest
    sizes = {made["adjustment"]: made["after_max"] for made in found.rows("adjustments")}
    for name, number in (("balance", "adjustment"), ("shared_balance", "shared_adjustment")):
        (check,) = found.rows("diagnostics", outcome="death", analysis="crude", name=name)
        assert check["value"] == sizes[death[number]]
    # The general population is that of all outcomes.
    (check,) = found.rows("diagnostics", outcome="death", analysis="crude", name="generalisability")
    assert check["value"] == 0


def test_where_nobody_is_left_out_the_shared_balance_is_its_own(tmp_path):
    found = run(tmp_path)
    (row,) = found.rows("runs")
    assert row["adjustment"] == row["shared_adjustment"]
    assert len(found.rows("adjustments")) == 1
    assert sum(step["step"] == "balance" for step in found.run["steps"]) == 1


def test_small_counts_of_the_shared_balance_are_hidden(tmp_path):
    """By the same rule as those of an outcome."""
    columns, names, outcomes, data = with_prior_outcomes(n_controls=0)
    target = np.flatnonzero(columns["drug"] == 1)
    columns["x0"] = np.zeros(600, dtype=int)
    columns["x0"][target[:3]] = 1
    columns["had died"] = np.zeros(600, dtype=int)
    columns["had died"][target[3:30]] = 1
    outcomes["death"]["prior"] = "had died"
    changes = {"outcomes": outcomes, "data": data, "analyses": {"crude": {}}}
    private = run(tmp_path, columns, sharing={"blind": False}, **changes)
    shared = rs.study.StudyResults.open(tmp_path / "out")
    (row,) = private.rows("runs")
    for number in (row["adjustment"], row["shared_adjustment"]):
        (own,) = private.rows("balance", adjustment=number, name="x0")
        (shown,) = shared.rows("balance", adjustment=number, name="x0")
        assert own["after_count_target"] == 3
        for word in ("count", "mean", "sd"):
            assert shown[f"after_{word}_target"] is None
            assert f"after_{word}_target" in shown["suppressed"].split(", ")


def test_people_of_the_shared_adjustment_do_not_tell_a_few_who_were_left_out(tmp_path):
    """580 of all and 577 of the outcome would tell that 3 had it before."""
    columns, names, outcomes, data = with_prior_outcomes(n_controls=0)
    target = np.flatnonzero(columns["drug"] == 1)
    columns["had died"] = np.zeros(600, dtype=int)
    columns["had died"][target[:3]] = 1
    outcomes["death"]["prior"] = "had died"
    changes = {"outcomes": outcomes, "data": data, "analyses": {"crude": {}}}
    private = run(tmp_path, columns, sharing={"blind": False}, **changes)
    shared = rs.study.StudyResults.open(tmp_path / "out")
    number = private.rows("runs")[0]["shared_adjustment"]
    (own,) = private.rows("adjustments", adjustment=number)
    (shown,) = shared.rows("adjustments", adjustment=number)
    assert own["target_rows"] == own["target_effective"] == target.size
    assert shown["target_rows"] is shown["target_effective"] is None
    assert shown["suppressed"] == "target_effective, target_rows"
    assert shown["comparator_rows"] == own["comparator_rows"]
    assert shared.rows("attrition", adjustment=number) == []


def test_each_control_is_left_out():
    """Null distributions by a minimiser of SciPy; z tests with them, as EmpiricalCalibration's."""
    controls = of_golden(1, 50, 1.0)
    b = np.array([one.rows[0].effect.log_hr for one in controls])
    se = np.array([one.rows[0].effect.se for one in controls])
    rows, _ = calibrated(controls, "likelihood", 0.9)
    for k in (0, 8, 49):

        def loss(theta, k=k):
            variance = np.exp(2 * theta[1]) + np.delete(se, k) ** 2
            return 0.5 * np.sum(np.log(variance) + (np.delete(b, k) - theta[0]) ** 2 / variance)

        best = minimize(
            loss, [0.0, -1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
        )
        mean, sd = best.x[0], np.exp(best.x[1])
        row = rows[k]
        assert row.null_mean_without == pytest.approx(mean, abs=1e-5)
        assert row.null_sd_without == pytest.approx(sd, abs=1e-4)
        assert np.log(row.calibrated_hr) == pytest.approx(b[k] - mean, abs=1e-5)
        half = 1.6448536269514722 * np.hypot(sd, se[k])
        ends = np.log([row.calibrated_hr_lower, row.calibrated_hr_upper])
        assert ends == pytest.approx([b[k] - mean - half, b[k] - mean + half], abs=1e-3)
        assert row.calibrated_p == pytest.approx(CONTROLS["leave_one_out_p"][k], rel=1e-3)


def test_intervals_of_controls_that_are_left_out_agree_with_their_p():
    rows, _ = calibrated(of_golden(1, 50, 1.0), "posterior", 0.95)
    inside = [row.calibrated_hr_lower < 1 < row.calibrated_hr_upper for row in rows]
    assert inside == [row.calibrated_p > 0.05 for row in rows]
    assert 0 < sum(inside) < len(rows)
