"""E-values in the results of a study and in its report."""

import pytest

import riskset as rs
from parameters import rest_is_slow
from study.small import content, hide, people, run


def test_estimates_have_e_values_and_the_report_explains_them(tmp_path):
    found = run(tmp_path)
    rows = [row for row in found.rows("estimates") if row["hr"] is not None]
    assert rows
    for row in rows:
        limits = (row["hr"], row["hr_lower"], row["hr_upper"])
        expected = rs.cohort.e_value(*limits, scale="hazard", common=True)
        assert row["e_value_common"]
        assert row["e_value"] == pytest.approx(expected.estimate, rel=1e-12)
        assert row["e_value_limit"] == pytest.approx(expected.limit, rel=1e-12)
    report = rs.report.write(tmp_path / "out", tmp_path / "report.html")
    text = report.read_text("utf-8")
    assert "The E-value is" in text
    assert "An E-value does not say whether such a confounder exists." in text


@pytest.mark.parametrize("analyses", rest_is_slow([{"a": {"match": {}}}, {"a": {"weight": {}}}], 1))
def test_pooled_estimates_have_the_e_value_of_the_pooled_ratio(tmp_path, analyses):
    columns = people()
    columns["age"] = [None if k % 9 == 0 else float(a) for k, a in enumerate(columns["age"])]
    covariates = {"missing": "impute", "impute": {"datasets": 2, "cycles": 2}}
    data = content()["data"] | {"covariates": covariates}
    found = run(tmp_path, columns, analyses=analyses, data=data)
    (row,) = found.rows("estimates", role="main")
    limits = (row["hr"], row["hr_lower"], row["hr_upper"])
    expected = rs.cohort.e_value(*limits, scale="hazard", common=True)
    assert row["e_value"] == pytest.approx(expected.estimate, rel=1e-12)


def test_e_values_are_hidden_with_the_outcomes_that_they_would_bound(tmp_path):
    (row,) = run(tmp_path, analyses={"a": {"match": {}}}).rows("estimates", role="main")
    small = row | {"target_outcomes": 3}
    (hidden,) = hide("estimates", [small], 5)
    assert hidden["hr"] is not None
    assert all(hidden[name] is None for name in ("e_value", "e_value_limit", "e_value_common"))
