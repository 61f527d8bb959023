"""Stacked intervals of studies: those of the functions, and what they need."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from study.small import people, run

PLAIN = {"propensity": {"penalty": "none", "cross_validate": False}}
WEIGHTED = {"weight": {"estimand": "ate"}, "model": {"interval": "stacked", "rmst": [300]}}


def test_they_are_those_of_the_functions(tmp_path):
    columns = people(400)
    columns["x"] = np.where(columns["x"] == 1, "a", "b")
    found = run(
        tmp_path,
        columns,
        analyses={"weighted": WEIGHTED},
        defaults=PLAIN,
        subgroups={"sex": {"column": "x"}},
        sharing={"blind": False},
    )
    covariates = np.column_stack([columns["x"] == "a", columns["age"]]).astype(float)
    score = rs.cohort.propensity_score(
        rs.cohort.Population(columns["drug"], row_id=columns["id"]), covariates, penalty=None
    )
    weighted = rs.cohort.weight(score.people, "ate")
    y = rs.Surv(columns["days"], columns["died"])
    options = {"interval": "stacked", "score_covariates": covariates}
    wanted = rs.cohort.fit_outcome(y, weighted, **options)
    rows = {row["role"]: row for row in found.rows("estimates") if row["role"] != "subgroup"}
    assert rows["main"]["interval"] == "stacked"
    for name in ("hr", "hr_lower", "hr_upper", "se"):
        assert_allclose(rows["main"][name], getattr(wanted, name), rtol=1e-5)
    assert rows["crude"]["interval"] == "profile"
    assert len([row for row in found.rows("estimates") if row["role"] == "subgroup"]) == 2
    means = rs.cohort.restricted_mean(y, weighted, 300, **options)
    after = found.rows("restricted_means", adjusted=True)
    assert_allclose([row["difference_se"] for row in after], means.difference_se[:, 0], rtol=1e-5)
    assert {row["interval"] for row in after} == {"stacked"}
    before = found.rows("restricted_means", adjusted=False)
    assert {row["interval"] for row in before} == {"robust"}
    page = rs.report.write(found, tmp_path / "report.html").read_text("utf-8")
    assert "with the estimation of the propensity score" in page


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight": None, "match": {}}, "weights by a propensity score"),
        ({"weight": {"truncate": "p99"}}, "not cut at a percentile"),
        ({"propensity": {"penalty": "l1", "cross_validate": True}}, "without a penalty"),
        ({"trim": {"symmetric": 0.1}}, "everybody's weights"),
    ],
)
def test_what_they_need(tmp_path, changes, message):
    analysis = {**PLAIN, **WEIGHTED, **changes}
    analysis = {name: value for name, value in analysis.items() if value is not None}
    with pytest.raises(rs.InputError, match=message):
        run(tmp_path, analyses={"weighted": analysis})
