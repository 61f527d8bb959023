"""The tutorial: its boxes run, print what it says, and its numbers are those of its studies."""

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import riskset as rs
from riskset._errors import InputError
from tutorial import TUTORIAL, Reader

WORDS = " ".join(TUTORIAL.split())


def one_space(text: str) -> str:
    return " ".join(text.split())


def interval(row: dict[str, Any], digits: int = 2, prefix: str = "") -> str:
    hr, low, high = (f"{row[prefix + name]:.{digits}f}" for name in ("hr", "hr_lower", "hr_upper"))
    return f"{hr} ({low} to {high})"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The reader's folder after the last line, with the results of the plan that was changed."""
    folder = tmp_path_factory.mktemp("tutorial")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for language, text, printed in Reader().steps():
            if language == "text":
                shown = _told_of_a_mistake() if text.startswith("Error") else printed
                for line in text.splitlines():
                    assert one_space(line) in one_space(shown), line
            if language == "sh" and not Path("first").exists() and Path("rhc").exists():
                Path("rhc/results").rename("first")
    return folder


def _told_of_a_mistake() -> str:
    """What is said of the file as it is, with the mistake that the text speaks of."""
    path = Path("rhc.yaml")
    whole = path.read_text("utf-8")
    path.write_text(whole.replace("caliper", "calipper"), "utf-8")
    with pytest.raises(InputError) as told:
        rs.study.Study.read("rhc.yaml")
    path.write_text(whole, "utf-8")
    return f"Error: {told.value}"


def rows(folder, *where, **conditions):
    return rs.study.StudyResults.open(folder).rows(*where, **conditions)


@pytest.mark.slow
def test_the_first_plan_is_withheld(folder):
    (run,) = rows(folder / "first", "runs")
    assert run["blinded"]
    (balance,) = rows(folder / "first", "diagnostics", name="balance")
    (equipoise,) = rows(folder / "first", "diagnostics", name="equipoise")
    (made,) = rows(folder / "first", "adjustments")
    (ps,) = rows(folder / "first", "ps")
    assert f"The largest, {balance['value']:.3f}, is `{made['after_worst']}`" in WORDS
    assert f"{made['after_above']} of {made['n_covariates']} covariates differ" in WORDS
    assert f"Here {equipoise['value']:.1%}".replace("%", " %") in WORDS
    assert f"AUC of {ps['auc']:.3f}" in WORDS


@pytest.mark.slow
def test_numbers_of_the_first_study(folder):
    found = {row["analysis"]: row for row in rows(folder / "rhc", "estimates", role="main")}
    (crude,) = rows(folder / "rhc", "estimates", analysis="matched", role="crude")
    (other,) = rows(folder / "rhc", "estimates", analysis="matched", role="sensitivity")
    matched = found["matched"]
    assert f"the hazard ratio is {interval(matched)}" in WORDS
    assert f"without any adjustment: {crude['hr']:.2f}." in WORDS
    assert f"as two groups: {interval(other)}. Within pairs it is {matched['hr']:.2f}." in WORDS
    assert f"As two groups, the same pairs give {interval(other)}" in WORDS
    assert f"The result is {interval(found['adjusted'])}" in WORDS
    assert f"({found['adjusted']['l1']:.2f} here)" in WORDS
    made = {row["adjustment"]: row for row in rows(folder / "rhc", "adjustments")}
    for row in rows(folder / "rhc", "runs"):
        own = made[row["adjustment"]]
        n = [f"{own[f'{arm}_rows']:,}" for arm in ("target", "comparator")]
        effective = [f"{own[f'{arm}_effective']:,.0f}" for arm in ("target", "comparator")]
        shown = " and ".join(n)
        if effective != n:
            shown += f" ({' and '.join(effective)})"
        ratio = interval(found[row["analysis"]])
        assert f"| {shown} | {ratio}" in WORDS or row["analysis"] == "adjusted"
    left = rows(folder / "rhc", "attrition", adjustment=1)
    assert f"{left[1]['removed_target']} of {left[0]['target_persons']:,} people" in WORDS
    diagnostics = {
        row["name"]: row["value"]
        for row in rows(folder / "rhc" / "private", "diagnostics", analysis="matched")
    }
    assert f"standardised difference is now {diagnostics['balance']:.3f}" in WORDS
    assert f"(p = {diagnostics['proportional_hazards']:.2f} within pairs)" in WORDS
    assert "has p < 0.001" in WORDS
    assert other["proportionality_p"] < 0.001
    intervals = rows(folder / "rhc", "effect_over_time", analysis="matched")
    month, last = intervals[2], intervals[-1]
    assert f"{interval(month)} from day {month['start']:.0f} to day {month['end']:.0f}" in WORDS
    assert f"and {interval(last)} after day {last['start']:.0f}" in WORDS
    assert f"power of 80 %, here {diagnostics['mdrr']:.2f}" in WORDS
    (risk, _) = rows(folder / "rhc", "absolute_risks", analysis="matched", adjusted=True)
    risks = [f"{100 * risk[name]:.1f} %" for name in ("target_risk", "comparator_risk")]
    gap, low, high = (100 * risk[f"difference{end}"] for end in ("", "_lower", "_upper"))
    assert f"{risks[0]} with and {risks[1]} without a catheter" in WORDS
    assert f"of {gap:.2f} percentage points ({low:.2f} to {high:.2f})" in WORDS
    levels = rows(folder / "rhc", "estimates", analysis="matched", role="subgroup")
    assert f"interaction ({levels[0]['interaction_p']:.2f})" in WORDS
    remarks = [row["message"] for row in rows(folder / "rhc", "warnings")]
    (quoted,) = re.findall(r'notes: "(.*?)"', WORDS)
    assert any(remark.startswith(quoted) for remark in remarks)


@pytest.mark.slow
def test_how_much_the_penalty_moves_matched_and_weighted_estimates(folder):
    (ps,) = rows(folder / "rhc", "ps", ps=1)
    data = rs.read_dataset(
        folder / "rhc.parquet", time="time", event="event", id="id", drop="fac_swang1"
    )
    treatment = pq.read_table(folder / "rhc.parquet")["fac_swang1"].to_numpy() == "RHC"
    y = rs.Surv(data.outcome().time, data.outcome().event)
    tidy = rs.cohort.tidy(data.design, min_count=10).design
    pairs, weights = [], []
    for percent in range(-10, 11):
        penalty = rs.L1(ps["l1"] * (1 + percent / 100))
        score = rs.cohort.propensity_score(treatment, tidy, penalty=penalty).people
        pairs.append(rs.cohort.fit_outcome(y, rs.cohort.match(score, caliper=0.2)).hr)
        weights.append(rs.cohort.fit_outcome(y, rs.cohort.weight(score, "ato")).hr)
    assert f"from {min(pairs):.2f} to {max(pairs):.2f} within pairs" in WORDS
    (weighted,) = {f"{hr:.2f}" for hr in weights}
    assert f"and {weighted} with overlap weights each time" in WORDS
    assert f"The main result, {max(pairs):.2f}, is by chance the largest" in WORDS


@pytest.mark.slow
def test_numbers_of_the_study_on_a_cdm(folder):
    estimates = rows(folder / "cdm", "estimates", outcome="heart failure", analysis="on treatment")
    main, other = (
        next(r for r in estimates if r["role"] == role and r["reading"] == "marginal")
        for role in ("main", "model")
    )
    calibrated = interval(main, prefix="calibrated_")
    assert f"{calibrated} after {interval(main)}" in WORDS
    assert f"hazard ratio on treatment is {main['hr']:.3f} and" in WORDS
    assert f"the subdistribution hazard ratio {other['hr']:.3f}" in WORDS
    (ease,) = rows(
        folder / "cdm", "diagnostics", outcome="heart failure", analysis="on treatment", name="ease"
    )
    assert f"summarises this: {ease['value']:.3f} on treatment" in WORDS
    (after,) = rows(
        folder / "cdm", "arms", outcome="heart failure", analysis="on treatment", side="after"
    )
    deaths = f"{after['target_competing']} and {after['comparator_competing']} deaths"
    assert f"({deaths})" in WORDS
    steps = rows(folder / "cdm", "attrition", adjustment=1)
    first, last = steps[0]["target_persons"], steps[-1]["target_persons"]
    assert f"from {first:,} people who ever got a thiazide to the {last:,}" in WORDS
    (made,) = rows(folder / "cdm", "adjustments", adjustment=1)
    assert f"among {made['n_covariates']} covariates" in WORDS
    # The truth of the toy, and the limit that was put into the file last.
    assert main["hr_lower"] < 0.70 < main["hr_upper"]
    about = rs.study.StudyResults.open(folder / "cdm")
    assert about.study["min_cell_count"] == 11
    assert all(step["reused"] for step in about.run["steps"])
