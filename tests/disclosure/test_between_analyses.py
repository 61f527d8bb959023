"""An attacker who compares the analyses of one study finds no few people between their numbers."""

import itertools

import numpy as np
import pytest

import riskset as rs
from study.protocol_study import run, simulated, specification
from study.small import people
from study.test_differences import shared

LEAST = 5
ARMS = ("target", "comparator")


@pytest.fixture(scope="module", params=[(8, "ate"), (9, "ate"), (8, "ato")])
def protocol(request, tmp_path_factory):
    """Intention-to-treat and per-protocol analyses of people of whom few deviate.

    Their weights keep everybody, whether they are the same or not.
    """
    seed, estimand = request.param
    people, long = simulated(300, seed)
    keeps = np.random.default_rng(seed).random(300) < 0.85
    people["stopped"] = np.where(keeps, np.nan, people["stopped"])
    place = tmp_path_factory.mktemp("protocol")
    analyses = specification()["analyses"]
    analyses["pp"]["weight"] = {"estimand": estimand}
    times = [60, 120, 180, 240, 360]
    run(place, (people, long), risk_times=times, analyses=analyses)
    return [rs.study.StudyResults.open(place / "out" / name) for name in ("results", "private")]


def events(found, analysis, arm, adjusted):
    """Outcomes of an arm in all or by some time, as the tables show them."""
    side = "after" if adjusted else "before"
    rows = [
        *found.rows("arms", analysis=analysis, side=side),
        *(
            row
            for row in found.rows("estimates", analysis=analysis)
            if row["role"] == ("main" if adjusted else "crude")
        ),
        *found.rows("absolute_risks", analysis=analysis, adjusted=adjusted),
    ]
    numbers = {row[f"{arm}_outcomes"] for row in rows}
    if adjusted:
        ends = found.rows("follow_up_ends", analysis=analysis, arm=arm, reason="outcome")
        numbers |= {row["count"] for row in ends}
    numbers |= {
        row["events"]
        for row in found.rows("curves", analysis=analysis, arm=arm, adjusted=adjusted, cause=1)
    }
    return numbers - {None}


def at_risk(found, analysis, arm, adjusted):
    """People of an arm at some time."""
    rows = found.rows("numbers_at_risk", analysis=analysis, arm=arm, adjusted=adjusted)
    risks = found.rows("absolute_risks", analysis=analysis, adjusted=adjusted)
    return ({row["people"] for row in rows} | {row[f"{arm}_at_risk"] for row in risks}) - {None}


def near(one, other):
    return {(a, b) for a, b in itertools.product(one, other) if 0 < abs(a - b) < LEAST}


@pytest.mark.parametrize("adjusted", [True, False])
@pytest.mark.parametrize("arm", ARMS)
def test_few_outcomes_or_people_after_deviation(protocol, arm, adjusted):
    results, private = protocol
    for numbers in (events, at_risk):
        pair = [numbers(results, name, arm, adjusted) for name in ("itt", "pp")]
        assert near(*pair) == set()
        assert pair[0], "the earlier analysis is shown"
        hidden = [numbers(private, name, arm, adjusted) for name in ("itt", "pp")]
        assert near(*hidden), "the data have nothing to hide"


def test_what_reveals_the_hidden_outcomes_goes_with_them(protocol):
    results, private = protocol
    (row,) = results.rows("estimates", analysis="pp", role="main")
    (whole,) = private.rows("estimates", analysis="pp", role="main")
    hidden = [arm for arm in ARMS if row[f"{arm}_outcomes"] is None]
    assert hidden
    for arm in hidden:
        assert f"{arm}_outcomes" in row["suppressed"]
        assert row[f"{arm}_rate"] is None
        assert row["mdrr"] is None
    assert row["hr"] == whole["hr"]  # the answer
    ends = results.rows("follow_up_ends", analysis="pp", arm=hidden[0])
    assert sum(row["count"] is None for row in ends) != 1  # not the total less the others


def test_people_before_one_adjustment_and_after_another(tmp_path_factory):
    """One trimming leaves out few, which the people before another one would reveal."""
    n_near = 0
    for seed in range(4):
        analyses = {
            "narrow": {"trim": {"equipoise": [0.45, 0.55]}, "weight": {}},
            "wide": {"trim": {"overlap": True}, "weight": {}},
        }
        folder = tmp_path_factory.mktemp("study")
        changes = {"analyses": analyses, "sharing": {"blind": False}}
        results, private = shared(folder, people(150, seed), **changes)
        for arm, name in itertools.product(ARMS, ("persons", "exposures")):
            found = [numbers_before(results, arm, name), answers(results, arm, name)]
            assert near(*found) == set()
            n_near += len(near(numbers_before(private, arm, name), answers(private, arm, name)))
    assert n_near, "the data have nothing to hide"


def numbers_before(found, arm, name):
    rows = [*found.rows("arms", side="before"), *found.rows("estimates", role="crude")]
    for run_row in found.rows("runs"):
        steps = found.rows("attrition", adjustment=run_row["adjustment"])
        rows += sorted(steps, key=lambda row: row["number"])[:-1]
    return {row[f"{arm}_{name}"] for row in rows} - {None}


def answers(found, arm, name):
    return {row[f"{arm}_{name}"] for row in found.rows("estimates", role="main")} - {None}
