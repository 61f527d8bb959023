"""Frailties of care sites and providers of a CDM."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from omop.toy import EXPECTED, SETTINGS, population

TEXT = f"""
title: Toy
data: {{cdm: toy-cdm}}
exposures:
  thiazides: {{concepts: {SETTINGS["target"]}}}
  ACE inhibitors: {{concepts: {SETTINGS["comparator"]}}}
comparisons:
  - {{target: thiazides, comparator: ACE inhibitors}}
outcomes:
  heart failure: {{concepts: [316139]}}
competing_events:
  infarction: {{concepts: [4329847]}}
  death: {{death: true}}
defaults:
  eligibility: {{restrict_to_common_period: false}}
  covariates: {{analyses: [1], age_method: completed_years}}
  propensity: none
analyses:
  site: {{model: {{frailty: gamma, frailty_variance: 0.4, cluster: care_site}}}}
  provider: {{model: {{frailty: gamma, cluster: provider}}}}
"""


def sites(person):
    """Care sites 101 to 110; every eleventh person has none."""
    return [None if p % 11 == 0 else 100 + p % 11 for p in person]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    place = tmp_path_factory.mktemp("sites")
    rs.simulate.toy_cdm(place / "toy-cdm", EXPECTED["n_persons"], file_format="parquet")
    file = place / "toy-cdm" / "person.parquet"
    people = pq.read_table(file)
    person = people.column("person_id").to_pylist()
    columns = {"care_site_id": sites(person), "provider_id": [7] * len(person)}
    for name, values in columns.items():
        people = people.append_column(name, pa.array(values, pa.int64()))
    pq.write_table(people, file)
    rs.study.run(rs.study.Study.parse(TEXT, place), place / "out")
    return rs.study.StudyResults.open(place / "out" / "private")


def test_care_sites_share_a_frailty(found):
    people = population()
    site = [0 if k is None else k for k in sites(people.column("person_id").tolist())]
    y = rs.Surv(people.column("survival_time"), people.column("status"))
    x = people.column("treatment")[:, None] * 1.0
    own = rs.CoxFrailty(frailty_variance=0.4, cause=1).fit(x, y, cluster=site)
    (row,) = found.rows("estimates", analysis="site", role="main")
    assert (row["status"], row["cluster"], row["n_clusters"]) == ("ok", "care_site", 11)
    wanted = [own.coef_[0], own.standard_error_[0]]
    assert_allclose([row["log_hr"], row["se"]], wanted, rtol=1e-8)


def test_people_without_a_site_are_counted(found):
    site = np.array(sites(population().column("person_id").tolist()), dtype=object)
    (note,) = found.rows("warnings", code="unknown_cluster")
    n = np.count_nonzero(site == None)  # noqa: E711
    assert note["message"] == f"{n} people have the care_site 'unknown', and share a frailty."


def test_one_provider_has_no_frailty(found):
    (run,) = found.rows("runs", analysis="provider")
    assert (run["status"], run["step"]) == ("bad_input", "estimate")
    assert "`cluster` has the same label in all rows" in run["reason"]
    assert "leave out `cluster` and any frailty" in run["reason"]
