"""Weights of several treatments in a CDM: as the functions make them, of all arms at once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from omop.toy import ANALYSES

DRUGS = {"thiazides": [974166, 1395058], "lisinopril": [1308216], "enalapril": [1341927]}
LIST = "[thiazides, lisinopril, enalapril]"
TEXT = f"""
title: Toy
data: {{cdm: toy-cdm}}
exposures:
  thiazides: {{concepts: [974166, 1395058]}}
  lisinopril: {{concepts: [1308216]}}
  enalapril: {{concepts: [1341927]}}
comparisons:
  - {{target: thiazides, comparator: lisinopril}}
  - {{target: enalapril, comparator: thiazides}}
outcomes:
  heart failure: {{concepts: [316139]}}
defaults:
  covariates: {{analyses: {ANALYSES}, age_method: completed_years}}
diagnostics: {{max_smd: 9.0, max_mdrr: 90.0, min_equipoise: 0.0}}
analyses:
  common:
    propensity: none
    weight_treatments: {{arms: {LIST}, estimand: ate, strength: 8.0}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cdm")
    rs.simulate.toy_cdm(place / "toy-cdm", 2000, file_format="parquet")
    return place


@pytest.fixture(scope="module")
def found(folder):
    rs.study.run(rs.study.Study.parse(TEXT, folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")


@pytest.mark.parametrize(
    "names", [("thiazides", "lisinopril", "enalapril"), ("enalapril", "thiazides", "lisinopril")]
)
def test_they_are_those_of_the_functions(folder, found, names):
    sets = [rs.omop.ConceptSet(DRUGS[name]) for name in names]
    settings = rs.omop.CovariateSettings(analyses=ANALYSES, age_method="completed_years")
    with rs.omop.Cdm(folder / "toy-cdm") as cdm:
        episodes = rs.omop.NewUserCohort(*sets[:2], others=(sets[2],)).read(cdm)
        everybody = rs.omop.Eligibility().select(cdm, episodes)
        covariates = rs.omop.Covariates.extract(cdm, everybody, settings)
        pair = everybody.compared()
        left = rs.omop.TimeAtRisk().follow(cdm, pair, rs.omop.ConceptSet([316139]))
        design = covariates.design()
    code = everybody.table.column("treatment").to_numpy()
    analyses = dict(
        zip(
            covariates.ref.column("covariate_id").to_pylist(),
            covariates.ref.column("analysis_id").to_pylist(),
            strict=True,
        )
    )
    first = rs.cohort.Population(code == 1)
    weights = rs.cohort.weight_treatments(
        np.array([names[1], names[0], names[2]])[code],
        rs.cohort.tidy(design, first, analysis=analyses).design,
        estimand="ate",
        penalty=rs.L1(8.0),
    )
    own = weights.weight[weights.rows(*names[:2])]
    place = np.searchsorted(pair.table.column("row_id").to_numpy(), left.column("row_id"))
    treated = np.asarray(left.column("treatment"), dtype=float)
    y = rs.Surv(left.column("survival_time"), left.column("status"))
    model = rs.Cox().fit(treated[:, None], y, sample_weight=own[place])
    (main,) = found.rows("estimates", role="main", target=names[0], comparator=names[1])
    assert main["status"] == "ok"
    assert_allclose(main["log_hr"], model.coef_[0], rtol=1e-6)
    last = everybody.attrition.steps[-1]
    (run,) = found.rows("runs", target=names[0], comparator=names[1])
    steps = found.rows("attrition", adjustment=run["adjustment"])
    (step,) = (s for s in steps if s["step"] == "period common to all cohorts")
    assert [step["target_persons"], step["comparator_persons"]] == [
        last.target_persons, last.comparator_persons,
    ]  # fmt: skip


def test_one_score_serves_all_comparisons(found):
    steps = [step for step in found.run["steps"] if step["step"] == "weights of treatments"]
    assert len(steps) == 1
    largest = {row["pairwise_max"] for row in found.rows("adjustments")}
    assert len(largest - {None}) == 1


def test_it_goes_on_with_what_it_has(folder, found):
    again = rs.study.run(rs.study.Study.parse(TEXT, folder), folder / "out")
    assert all(step["reused"] for step in again.run["steps"])


def test_arms_are_defined_in_one_way():
    text = TEXT.replace("enalapril: {concepts: [1341927]}", "enalapril: {cohort: 3}")
    text = text.replace("  - {target: enalapril, comparator: thiazides}\n", "")
    with pytest.raises(rs.InputError, match="one of the `arms` is defined by concepts"):
        rs.study.Study.parse(text)
