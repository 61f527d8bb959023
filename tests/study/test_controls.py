"""Controls of a study: known numbers reach the tables, and those that fail are set aside."""

import numpy as np
import pytest

from cohort.golden import CONTROLS, table
from riskset.study.controls import Checked, calibrated
from study.small import people, run


def of_golden(first, last, true_hr):
    """Estimates of the golden file as those of outcomes."""
    own = table("negative_controls")
    found = []
    for k in np.flatnonzero((own["outcome_id"] >= first) & (own["outcome_id"] <= last)):
        row = {"role": "main", "model": "cox", "reading": "marginal", "status": "ok"}
        row |= dict.fromkeys(("hr", "hr_lower", "hr_upper", "p"))
        row |= {"log_hr": float(own["log_rr"][k]), "se": float(own["se"][k])}
        found.append(Checked(str(int(own["outcome_id"][k])), true_hr, [row], True))
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


def test_controls_whose_diagnostics_fail_are_set_aside():
    failing = [
        Checked(c.outcome, c.true_hr, c.rows, k >= 10) for k, c in enumerate(of_golden(1, 50, 1.0))
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
    found = run(tmp_path, columns, outcomes=outcomes, data=data)
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
