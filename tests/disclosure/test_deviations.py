"""Weights for deviation and deviations by time, as they are shared."""

import itertools

import numpy as np
import pytest

import riskset as rs
from riskset.disclosure.engine import Disclosure
from riskset.results.rows import TABLES, CensoringWeightRow, DeviationRow
from study.protocol_study import run, simulated, specification

RUN = {"target": "new", "comparator": "old", "outcome": "death", "analysis": "pp"}
LEAST = 5


def shown(kind, rows, **tables):
    everything = {kind.table: rows} | tables
    return Disclosure(lambda name: everything.get(name, []), TABLES, LEAST).shown(kind)


def interval(start, end, deviations, others):
    values = {"arm": "target", "start": start, "end": end}
    return DeviationRow.of(RUN | values | {"deviations": deviations, "others": others})


def at_risk(*people):
    about = RUN | {"arm": "target", "adjusted": True, "suppressed": ""}
    return [about | {"time": 10.0 * k, "people": n} for k, n in enumerate(people)]


def test_intervals_are_joined_until_no_count_is_small():
    rows = [interval(0, 10, 20, 30), interval(10, 20, 3, 40), interval(20, 30, 6, 0)]
    rows.append(interval(30, None, 0, 11))
    found = shown(DeviationRow, rows, numbers_at_risk=at_risk(110, 60, 17, 11))
    counts = [(row.start, row.end, row.deviations, row.others) for row in found]
    assert counts == [(0, 10, 20, 30), (10, 30, 9, 40), (30, None, 0, 11)]
    # Few deviate in all: none of the counts is shown.
    few = shown(DeviationRow, [interval(0, None, 3, 107)], numbers_at_risk=at_risk(110))
    assert few[0].deviations is few[0].others is None
    assert few[0].suppressed == "deviations, others"


def test_no_interval_ends_where_the_number_at_risk_is_hidden():
    rows = [interval(0, 10, 20, 30), interval(10, 20, 10, 40), interval(20, None, 6, 6)]
    found = shown(DeviationRow, rows, numbers_at_risk=at_risk(112, None, 12))
    counts = [(row.start, row.end, row.deviations, row.others) for row in found]
    assert counts == [(0, 20, 30, 70), (20, None, 6, 6)]
    again = shown(DeviationRow, found, numbers_at_risk=at_risk(112, None, 12))
    assert [dict(row) for row in again] == [dict(row) for row in found]


@pytest.mark.parametrize(("people", "hidden"), [(4, "all"), (20, "p1 p5 p95 p99"), (2000, "")])
def test_percentiles_of_few_people_are_hidden(people, hidden):
    names = ("rows", "mean", "sd", *(f"p{p}" for p in (0, 1, 5, 25, 50, 75, 95, 99, 100)))
    row = CensoringWeightRow.of(
        RUN | {"arm": "target", "weights": "untruncated"} | dict.fromkeys(names, 1)
    )
    arms = [RUN | {"side": "after", "target_exposures": people, "target_persons": people}]
    (found,) = shown(CensoringWeightRow, [row], arms=arms)
    gone = set(names) if hidden == "all" else {"p0", "p100", *hidden.split()}
    assert {name for name in names if found[name] is None} == gone


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small study with few people who deviate."""
    place = tmp_path_factory.mktemp("few")
    people, long = simulated(260, 8)
    run(place, (people, long), **{"sharing": {"blind": False}} | of_few())
    return place / "out"


def of_few():
    return {"analyses": {"pp": specification()["analyses"]["pp"]}}


def test_no_small_count_follows_from_what_is_shared(folder):
    shared = rs.study.StudyResults.open(folder / "results")
    private = rs.study.StudyResults.open(folder / "private")
    rows = private.rows("deviations")
    assert any(0 < row[name] < LEAST for row in rows for name in ("deviations", "others"))
    for arm in ("target", "comparator"):
        rows = shared.rows("deviations", arm=arm)
        at = {
            row["time"]: row["people"]
            for row in shared.rows("numbers_at_risk", arm=arm, adjusted=True)
        }
        known = []
        for row in rows:
            for name in ("deviations", "others"):
                assert row[name] is None or not 0 < row[name] < LEAST
            known.append(at[row["start"]])
        # Differences of numbers at risk are the sums of both counts.
        for (row, n), (_, later) in itertools.pairwise(zip(rows, known, strict=True)):
            if row["deviations"] is not None:
                assert row["deviations"] + row["others"] == n - later
        assert all(a - b == 0 or a - b >= LEAST for a, b in itertools.pairwise(known))
    for row in shared.rows("censoring_weights"):
        assert row["p0"] is row["p100"] is row["p1"] is row["p99"] is None
        assert row["mean"] is not None
    assert np.isfinite([row["p100"] for row in private.rows("censoring_weights")]).all()
