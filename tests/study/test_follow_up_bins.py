"""Days at risk in bins: every person once, and no bin with few."""

import numpy as np
import pytest

from riskset.cohort.adjustments.adjustment import start
from riskset.cohort.population import Population
from riskset.study.sources.source import Followed
from riskset.study.steps.description_step import _breaks, follow_up_bins
from study.small import hide


def bins(time, treatment):
    people = start(Population(treatment))
    own = Followed("key", people, np.array(time, dtype=float), np.zeros(len(time), dtype=np.int64))
    return follow_up_bins(own, people)


def test_a_bin_holds_its_end():
    """Days 1 to 80 need bins of 2 days: 40 of them."""
    rows = bins([1, 2, 3, 80, 2, 79], [1, 1, 1, 1, 0, 0])
    assert [(r["start"], r["end"]) for r in rows[:2]] == [(0, 2), (2, 4)]
    assert len(rows) == 80
    found = {(r["arm"], r["end"]): r["people"] for r in rows if r["people"]}
    assert found == {
        ("target", 2): 2, ("target", 4): 1, ("target", 80): 1,
        ("comparator", 2): 1, ("comparator", 80): 1,
    }  # fmt: skip


def test_the_width_follows_the_longest_follow_up():
    rows = bins([1, 4000], [1, 0])
    assert rows[0]["end"] == 250 / 2.5 == 100
    assert rows[-1]["end"] == 4000
    assert sum(r["people"] for r in rows) == 2


@pytest.mark.parametrize("last", [1e-300, 0.25, 1e300])
def test_very_short_and_very_long_follow_up(last):
    rows = bins([last, last], [1, 0])
    assert rows[-1]["end"] >= last
    assert sum(r["people"] for r in rows) == 2
    assert len(_breaks(last)) <= 9
    assert len(_breaks(last, "months")) <= 9


def test_bins_with_few_people_are_joined():
    run = {"target": "a", "comparator": "b", "outcome": "c", "analysis": "d", "arm": "target"}
    counts = (7, 2, 0, 1, 9, 3)
    rows = [run | {"start": k, "end": k + 1, "people": n} for k, n in enumerate(counts)]
    found = [(r["start"], r["end"], r["people"]) for r in hide("follow_up_histogram", rows, 5)]
    # 2 + 0 + 1 are 3, so 9 joins them; the last 3 joins those.
    assert found == [(0, 1, 7), (1, 6, 15)]
    (alone,) = hide("follow_up_histogram", rows[1:2], 5)
    assert (alone["people"], alone["suppressed"]) == (None, "people")


@pytest.mark.parametrize(
    ("limit", "step"),
    [(7, 1), (60, 10), (365, 50), (730.5, 100), (731, 182.625), (1500, 365.25), (9000, 1826.25)],
)
def test_numbers_at_risk_stand_at_round_times(limit, step):
    """In days up to two years, then in years or halves, as the axis counts."""
    breaks = _breaks(limit)
    assert breaks[0] == 0
    assert np.diff(breaks) == pytest.approx(step)
    assert len(breaks) <= 9
