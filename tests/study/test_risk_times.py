"""Risks at times to which nobody is followed: empty, with a note, and not hidden."""

import json

import numpy as np

import riskset as rs
from study.small import run


def ninety_days(n=400):
    """People who are followed for 90 days at most."""
    rng = np.random.default_rng(3)
    days = np.minimum(rng.geometric(0.01, n), 90)
    return {
        "row_id": np.arange(n),
        "drug": np.repeat([1, 0], n // 2),
        "age": rng.integers(40, 80, n).astype(float),
        "days": days.astype(float),
        "died": (days < 90).astype(int),
    }


def test_risks_after_the_follow_up(tmp_path):
    data = {"people": "people.parquet", "treatment": "drug", "id": "row_id"}
    data["covariates"] = {"columns": ["age"]}
    private = run(
        tmp_path,
        ninety_days(),
        data=data,
        analyses={"crude": {"propensity": "none"}},
        risk_times=[30, 365],
        sharing={"blind": False},
    )
    shared = rs.study.StudyResults.open(tmp_path / "out" / "results")
    numbers = ("target_risk", "target_lower", "comparator_risk", "comparator_upper")
    numbers += ("difference", "difference_lower", "difference_upper")
    for found in (private, shared):
        rows = {(row["adjusted"], row["time"]): row for row in found.rows("absolute_risks")}
        assert len(rows) == 4
        for (_, time), row in rows.items():
            assert {row[name] is None for name in numbers} == {time == 365}
            assert (row["target_at_risk"] == row["comparator_at_risk"] == 0) == (time == 365)
            # Few have the outcome on day 30 itself, when they still are at risk.
            few = {"target_at_risk", "comparator_at_risk"} if time == 30 else set()
            assert set(row["suppressed"].split(", ")) <= few | {""}
        (message, other) = [
            row["message"] for row in found.rows("warnings") if row["code"] == "follow_up_ends"
        ]
        # The last day is that of a single person, so it is not shared.
        days = "90" if found is private else "about 90"
        assert message == (
            f"the follow-up of the target ends after {days} days, so its risk by day 365 is not "
            "known. Choose earlier `risk_times`."
        )
        assert "comparator" in other
    for place in ("results", "private"):
        page = rs.report.write(tmp_path / "out" / place, tmp_path / f"{place}.html")
        text = page.read_text("utf-8")
        assert text.count("beyond follow-up") >= 3 * 2
        content = json.loads(page.with_suffix(".json").read_text("utf-8"))
        assert '"unfollowed"' in json.dumps(content)


def test_a_curve_ends_where_its_arm_does(tmp_path):
    columns = ninety_days()
    is_a = columns["drug"] == 1
    columns["died"][is_a & (columns["days"] >= 20)] = 0
    columns["days"][is_a] = np.minimum(columns["days"][is_a], 20)
    data = {"people": "people.parquet", "treatment": "drug", "id": "row_id"}
    data["covariates"] = {"columns": ["age"]}
    found = run(
        tmp_path,
        columns,
        data=data,
        analyses={"crude": {"propensity": "none"}},
        risk_times=[20, 30],
    )
    rows = found.rows("curves")
    assert max(row["time"] for row in rows if row["arm"] == "target") == 20
    assert max(row["time"] for row in rows if row["arm"] == "comparator") <= 20
    assert all(row["value"] is not None and np.isfinite(row["value"]) for row in rows)
    early, late = found.rows("absolute_risks", adjusted=True)
    assert None not in (early["target_risk"], early["comparator_risk"], early["difference_upper"])
    assert late["target_risk"] is late["difference"] is late["difference_lower"] is None
    assert late["comparator_risk"] > 0
