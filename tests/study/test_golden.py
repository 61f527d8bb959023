"""A study of the bundled cohort by its specification gives the numbers that R gave."""

import json

import numpy as np
import pytest
from scipy.special import ndtr

import riskset as rs
from cohort.golden import RHC, sets, table
from study.rhc import TEXT, write_rhc

HAZARD = {"rel": 1e-5}  # the score is fitted here, not read from R
ERROR = {"rel": 1e-5}


# `tests/cohort` compares the same steps with R, one by one.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rhc")
    write_rhc(folder)
    study = rs.study.Study.parse(TEXT, folder)
    rs.study.run(study, folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def private(out):
    return rs.study.StudyResults.open(out / "private")


def estimate(results, analysis, role="main", **more):
    (row,) = results.rows("estimates", analysis=analysis, outcome="death", role=role, **more)
    return row


def adjustment(results, analysis):
    (run,) = results.rows("runs", analysis=analysis, outcome="death")
    return run["adjustment"]


def test_one_to_one_matching(private):
    golden = RHC["match"]["ratio1"]
    main = estimate(private, "one to one")
    stratified, marginal = golden["cox_stratified_by_set"], golden["cox_unweighted_cluster_set"]
    assert main["reading"] == "stratified"
    assert main["target_exposures"] == main["comparator_exposures"] == 1515
    assert main["log_hr"] == pytest.approx(stratified["log_hr"], **HAZARD)
    other = estimate(private, "one to one", "sensitivity")
    assert other["log_hr"] == pytest.approx(marginal["log_hr"], **HAZARD)
    assert other["se"] == pytest.approx(marginal["se_robust_cluster"], **ERROR)


def test_matching_within_blocks_shares_the_caliper(private):
    matched = sets("rhc_sets", "set_r4_sex_age65") >= 0
    (after,) = private.rows("arms", analysis="four", outcome="death", side="after")
    assert after["target_persons"] + after["comparator_persons"] == matched.sum()


def test_weights_strata_and_trimming(private):
    for analysis, golden in (
        ("overlap weights", RHC["weights"]["ato"]["cox"]),
        ("trimmed", RHC["trim"]["symmetric_0.1"]["ate_stab_ps_refitted"]),
    ):
        row = estimate(private, analysis)
        assert row["log_hr"] == pytest.approx(golden["log_hr"], **HAZARD)
        assert row["se"] == pytest.approx(golden["se_robust"], **ERROR)
    golden = RHC["strata"]["all10"]["cox_stratified"]
    row = estimate(private, "deciles")
    assert row["log_hr"] == pytest.approx(golden["log_hr"], **HAZARD)
    assert row["informative_strata"] == 10


def test_scores_and_balance(private):
    (score,) = private.rows("ps")
    assert score["auc"] == pytest.approx(0.803667, abs=1e-6)
    assert score["equipoise"] == pytest.approx(0.439407, abs=1e-6)
    assert score["n_used"] == score["n_covariates"] == 70
    number = adjustment(private, "overlap weights")
    rows = private.rows("balance", adjustment=number)
    assert len(rows) == 70
    # An identity of overlap weights under an unpenalised logistic model.
    assert max(abs(row["after_smd"]) for row in rows) < 1e-6


def test_curves_and_risks(private):
    golden = RHC["weights"]["ato"]["km"]
    (risk,) = private.rows(
        "absolute_risks", analysis="overlap weights", outcome="death", adjusted=True, time=30.0
    )
    for arm in ("target", "comparator"):
        (at,) = (point for point in golden[arm] if point["time"] == 30)
        assert 1 - risk[f"{arm}_risk"] == pytest.approx(at["survival"], rel=1e-6)
        assert 1 - risk[f"{arm}_upper"] == pytest.approx(at["lower_loglog"], rel=1e-6)
        assert risk[f"{arm}_at_risk"] == at["at_risk"]


def test_steps_are_shared_between_outcomes_and_analyses(out):
    run = json.loads((out / "results" / "run.json").read_text())
    count = {}
    for step in run["steps"]:
        count[step["step"]] = count.get(step["step"], 0) + 1
    # Two outcomes leave different people; five analyses share one score and the crude estimate.
    assert count["propensity score"] == 1
    assert count["crude estimate"] == 2
    assert count["adjustment"] == count["balance"] == count["estimate"] == 10
    assert count["subgroups"] == 10


def test_people_with_the_outcome_before_are_left_out(private):
    (run,) = private.rows("runs", analysis="overlap weights", outcome="later death")
    steps = private.rows("attrition", adjustment=run["adjustment"])
    assert [s["step"] for s in steps] == ["population", "no prior outcome"]
    assert steps[1]["target_persons"] + steps[1]["comparator_persons"] == 2868


def test_subgroups_are_interactions(private):
    rows = private.rows("estimates", analysis="deciles", outcome="death", role="subgroup")
    assert [row["level"] for row in rows] == ["0", "1"]
    main = estimate(private, "deciles")
    assert sum(row["target_persons"] for row in rows) == main["target_persons"]
    # The same model written out.
    own, stratum = table("rhc_ps"), sets("rhc_strata", "s10_all")
    x = np.column_stack([own["treat"], own["sex_male"], own["treat"] * own["sex_male"]])
    model = rs.Cox().fit(x, rs.Surv(own["time"], own["event"] == 1), strata=stratum)
    effect, _, product = model.coef_
    assert [row["log_hr"] for row in rows] == pytest.approx([effect, effect + product], rel=1e-5)
    assert [row["interaction_p"] for row in rows] == pytest.approx(
        [2 * ndtr(-abs(product / model.standard_error_[2]))] * 2, rel=1e-2
    )


def test_profiles_of_the_main_estimate(private):
    rows = private.rows("likelihood_profiles", analysis="one to one", outcome="death")
    golden = RHC["match"]["ratio1"]["profile_ci_stratified"]
    b, value = (np.array([row[name] for row in rows]) for name in ("log_hr", "log_likelihood"))
    ends = [np.interp(end, b, value) for end in (golden["log_lb95"], golden["log_ub95"])]
    assert ends == pytest.approx([-1.9207294] * 2, abs=1e-3)
