"""GiBleed, as CohortMethod has published it: see `golden/gibleed/README.md`."""

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

import riskset as rs
from gibleed import comparison, needs_gibleed
from ohdsi import results_files
from reference import GOLDEN, read_json, read_table

pytestmark = needs_gibleed
PUBLISHED = read_json(GOLDEN / "gibleed" / "cohortmethod.json")
ARMS = ("target", "comparator")

CONTROLS = """\
  bronchitis: {concepts: [260139], kind: negative control}
  pharyngitis: {concepts: [4112343], kind: negative control}
  concussion: {concepts: [378001], kind: negative control}
  sprain: {concepts: [81151], kind: negative control}
"""
STUDY = (
    comparison(CONTROLS, ", censor_at_new_risk_window: true")
    + """\
  balance: {sd: current}
  model: {interval: profile}
analyses:
  crude: {propensity: none}
  matched: {match: {ratio: 100}}
  weighted: {weight: {estimand: att, stabilise: cohortmethod, truncate: 10}}
  overlap: {weight: {estimand: ato}, propensity: {cross_validate: false, variance: 0.1}}
sharing: {blind: false}
"""
)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gibleed")
    rs.study.run(rs.study.Study.parse(STUDY, folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")


def estimate(found, analysis, outcome="bleeding"):
    (row,) = found.rows("estimates", analysis=analysis, outcome=outcome, role="main")
    return row


def diagnostic(found, name, analysis, outcome="bleeding"):
    (row,) = found.rows("diagnostics", analysis=analysis, outcome=outcome, name=name)
    return row


def test_people(found):
    number = found.rows("runs", analysis="crude", outcome="bleeding")[0]["adjustment"]
    steps = {row["step"]: row for row in found.rows("attrition", adjustment=number)}
    for name, persons in PUBLISHED["attrition"].items():
        assert [steps[name][f"{arm}_persons"] for arm in ARMS] == persons
    row = estimate(found, "crude")
    assert {name: row[name] for name in PUBLISHED["counts"]} == PUBLISHED["counts"]


@pytest.mark.parametrize("analysis", ["crude", "weighted"])
def test_estimates(found, analysis):
    row, expected = estimate(found, analysis), PUBLISHED[analysis]
    assert row["hr"] == pytest.approx(expected["hr"], rel=2e-8)
    assert row["llr"] == pytest.approx(expected["llr"], rel=2e-8)
    assert row["mdrr"] == pytest.approx(expected["mdrr"], rel=1e-12)
    for end in ("hr_lower", "hr_upper"):
        assert row[end] == pytest.approx(expected[end], rel=2e-4)


@pytest.mark.parametrize("analysis", ["crude", "weighted"])
def test_likelihood_profiles(found, analysis):
    """Between its points the profile is a cubic, as EvidenceSynthesis has it."""
    rows = found.rows("likelihood_profiles", analysis=analysis, outcome="bleeding")
    names = ("log_hr", "log_likelihood", "derivative")
    x, value, slope = (np.array([row[name] for row in rows]) for name in names)
    own, expected = CubicHermiteSpline(x, value, slope), PUBLISHED[analysis]["profile"]
    assert own(expected["log_rr"]) == pytest.approx(expected["log_likelihood"], abs=1e-3)
    for k in (0, -1):
        assert value[k] == pytest.approx(expected["log_likelihood"][k], rel=2e-7)
        assert slope[k] == pytest.approx(expected["gradient"][k], rel=3e-7)
    assert value.max() == 0


def test_propensity_score(found):
    for outcome in ("bleeding", "sprain"):
        row = diagnostic(found, "equipoise", "matched", outcome)
        assert row["value"] == pytest.approx(PUBLISHED["equipoise"], rel=1e-12)
        assert row["verdict"] == "pass"


def test_balance_of_every_covariate(found):
    (run,) = found.rows("runs", analysis="weighted", outcome="bleeding")
    rows = found.rows("balance", adjustment=run["shared_adjustment"])
    assert len(rows) == PUBLISHED["n_covariates"]
    table = read_table(GOLDEN / "gibleed" / "weighted_balance.csv")
    published = dict(zip(table["covariate_id"], table["std_diff_after"], strict=True))
    own = {float(row["covariate_id"]): row["after_smd"] for row in rows}
    assert own.keys() == published.keys()
    # Published with three decimals.
    assert max(abs(own[number] - published[number]) for number in own) < 0.0005 + 5e-6


def test_shared_balance(found):
    for outcome in ("bleeding", "sprain"):
        row = diagnostic(found, "shared_balance", "weighted", outcome)
        assert row["value"] == pytest.approx(PUBLISHED["weighted"]["shared_balance"], rel=3e-6)
        assert row["verdict"] == "fail"


def test_generalisability_of_the_matched_analysis(found):
    """Published 0.3433; equal scores decide which of them are matched, so not all digits agree."""
    for outcome in ("bleeding", "sprain"):
        row = diagnostic(found, "generalisability", "matched", outcome)
        assert round(row["value"], 3) == round(PUBLISHED["matched"]["generalisability"], 3) == 0.343


def test_generalisability_of_the_weighted_analysis(found):
    """The effect is in the target, whose weights are all the same."""
    assert diagnostic(found, "generalisability", "weighted")["value"] == 0


CONTROLS = ("bronchitis", "pharyngitis", "concussion", "sprain")


@pytest.mark.parametrize("analysis", ["matched", "weighted", "overlap"])
@pytest.mark.parametrize("control", CONTROLS)
def test_the_balance_of_controls_is_not_evaluated(found, analysis, control):
    row = diagnostic(found, "balance", analysis, control)
    assert (row["value"], row["verdict"]) == (None, "not_evaluated")


def test_controls_are_used_if_the_analysis_is_in_balance(found):
    """Only 338 to 1,998 people never had the control before; of them most differ by chance."""
    shared = diagnostic(found, "shared_balance", "overlap")
    assert (shared["verdict"], shared["value"] < 0.1) == ("pass", True)
    rows = found.rows("controls", analysis="overlap")
    assert {row["outcome"]: row["used"] for row in rows} == dict.fromkeys(CONTROLS, True)
    rows = found.rows("controls", analysis="weighted")
    assert {row["reason"] for row in rows} == {"its diagnostics fail"}


@pytest.mark.parametrize("control", CONTROLS)
def test_controls_with_few_outcomes_have_profiles(found, control):
    row = estimate(found, "overlap", control)
    assert 2 <= row["target_outcomes"] + row["comparator_outcomes"] <= 5
    rows = found.rows("likelihood_profiles", analysis="overlap", outcome=control)
    assert max(point["log_likelihood"] for point in rows) == 0
    assert [rows[k]["log_hr"] for k in (0, -1)] == [-np.log(10), np.log(10)]


def test_files_for_viewers(found, tmp_path):
    """People, days, outcomes, the crude effect and its profile as CohortMethod writes them."""
    rs.ohdsi.export_results(found, tmp_path / "ohdsi", min_cell_count=0)
    base = results_files.load(tmp_path / "ohdsi", tmp_path)
    results_files.check_keys(base)
    results_files.check_joins(base)
    effect = base.execute(
        "SELECT target_subjects, comparator_subjects, target_days, comparator_days, "
        "target_outcomes, comparator_outcomes, rr, llr FROM cm_result JOIN cm_analysis "
        "USING (analysis_id) JOIN cg_cohort_definition ON outcome_id = cohort_definition_id "
        "WHERE cm_analysis.description = 'crude' AND cohort_name = 'bleeding'"
    ).fetchone()
    assert effect[:6] == (1797, 830, 54388, 25102, 113, 46)
    assert effect[6:] == pytest.approx((1.134067, 0.26321403), rel=2e-6)
    slopes = base.execute(
        "SELECT log_likelihood, gradient FROM cm_likelihood_profile JOIN cm_analysis "
        "USING (analysis_id) JOIN cg_cohort_definition ON outcome_id = cohort_definition_id "
        "WHERE cm_analysis.description = 'crude' AND cohort_name = 'bleeding' "
        "ORDER BY log_rr LIMIT 1"
    ).fetchone()
    assert slopes == pytest.approx((-108.3817, 84.6907), rel=1e-5)
