"""Times in weeks, months or years give the results of the same times in days."""

import numpy as np
import pytest

from study.small import people, run

DATA = {"people": "people.parquet", "treatment": "drug", "id": "id"}
DAYS = {"weeks": 7, "months": 365.25 / 12, "years": 365.25}


def found(folder, days, unit, died=None):
    folder.mkdir()
    columns = people(400) | {"days": days}
    if died is not None:
        columns["died"] = died
    # Else `risk_times` would be in the unit of the data.
    asked = {"report": {"time_unit": "days"}, "risk_times": [100, 200]}
    return run(folder, columns, data=DATA | {"time_unit": unit}, **asked)


@pytest.mark.parametrize("unit", ["months", "years"])
def test_units(tmp_path, unit):
    times = np.random.default_rng(2).integers(1, 60, 400)
    given = found(tmp_path / unit, times, unit)
    expected = found(tmp_path / "days", times * DAYS[unit], "days")
    for table in ("estimates", "absolute_risks", "curves", "follow_up"):
        for one, other in zip(given.rows(table), expected.rows(table), strict=True):
            for name, value in one.items():
                if isinstance(value, float):
                    assert value == pytest.approx(other[name], rel=1e-9, nan_ok=True), name
                else:
                    assert value == other[name], name
    (crude, *_) = given.rows("estimates", role="crude")
    n_days = crude["target_days"] + crude["comparator_days"]
    assert n_days == pytest.approx(times.sum() * DAYS[unit])
    words = given.study["analyses"]["matched"]["words"]["time_at_risk"]
    one = {"months": "a month being 30.4375 days", "years": "a year being 365.25 days"}[unit]
    assert words == f"{unit} at risk as recorded in the data, {one}"


@pytest.mark.parametrize(
    ("longest", "unit", "words"),
    [
        (120, "days", "if the times are not in days, set `time_unit`"),
        (3650, "days", None),
        (120, "months", None),
        (3650, "months", "the longest follow-up is 304 years with `time_unit` 'months'"),
        (3650, "years", "the longest follow-up is 3,650 years with `time_unit` 'years'"),
    ],
)
def test_implausible_times(tmp_path, longest, unit, words):
    """As of NHEFS, where 318 of 1,566 people died within 120 months."""
    rng = np.random.default_rng(1)
    times = np.append(rng.integers(longest // 3, longest, 399), longest)
    results = found(tmp_path / "study", times, unit, (rng.random(400) < 0.2).astype(int))
    notes = [row["message"] for row in results.rows("warnings", code="implausible_times")]
    assert len(notes) == (words is not None)
    assert all(words in note for note in notes)


def test_rare_outcomes_in_days_are_plausible(tmp_path):
    rng = np.random.default_rng(1)
    died = (rng.random(400) < 0.03).astype(int)
    results = found(tmp_path / "study", rng.integers(60, 360, 400), "days", died)
    assert not results.rows("warnings", code="implausible_times")
