"""The median follow-up by the reverse Kaplan-Meier estimate: results, what is shared, report."""

import numpy as np

from riskset.cohort.adjustments.adjustment import start
from riskset.cohort.population import Population
from riskset.study.sources.source import Followed
from riskset.study.steps.description_step import _follow_up
from study.small import hide

RUN = {"target": "a", "comparator": "b", "outcome": "c", "analysis": "d"}


def test_an_outcome_does_not_end_the_potential_follow_up():
    people = start(Population([1, 1, 1, 1, 0]))
    time, status = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1, 0, 2, 0, 1])
    rows = {
        (r["arm"], r["share"]): r for r in _follow_up(Followed("key", people, time, status), people)
    }
    # Survival of the follow-up: 2/3 from 2 on, 0 from 4 on.
    assert rows["target", 0.25]["potential_days"] == 2
    assert rows["target", 0.5]["potential_days"] == 4
    assert rows["target", 0.5]["potential_people"] == 1
    assert rows["target", 0.5]["days"] == 2.5
    assert rows["target", 1.0]["potential_days"] is None
    assert rows["comparator", 0.5]["potential_days"] is None


def test_a_quantile_needs_people_who_are_still_followed():
    arms = [RUN | {"side": "after", "target_exposures": 40}]
    rows = [
        RUN | {"arm": "target", "share": share, "days": 50.0, "potential_days": 80.0,
               "potential_people": n}
        for share, n in ((0.1, 30), (0.5, 20), (0.5, 3), (0.9, 3))
    ]  # fmt: skip
    found = hide("follow_up", rows, 5, arms=arms)
    assert [r["days"] for r in found] == [None, 50, 50, None]
    assert [r["potential_days"] for r in found] == [None, 80, None, None]
    assert all(r["potential_people"] is None for r in found)
