"""No two numbers of people that are shown, at two steps, differ by a small one."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from parameters import rest_is_slow
from riskset.disclosure.small_cells import hide_totals
from study.small import content, people

LEAST = 5
ARMS = ("target", "comparator")
COUNTS = ("persons", "exposures")


def shared(folder, columns, **changes):
    pq.write_table(pa.table(columns), folder / "people.parquet")
    rs.study.run(rs.study.Study(content(**changes), folder), folder / "out")
    return [rs.study.StudyResults.open(folder / "out" / name) for name in ("results", "private")]


def totals(found, analysis, arm):
    """What is shown of a run's people: numbers of rows and of persons."""
    (run,) = found.rows("runs", analysis=analysis)
    shown = {name: set() for name in COUNTS}
    rows = [
        *found.rows("arms", analysis=analysis),
        *(r for r in found.rows("estimates", analysis=analysis) if r["role"] != "subgroup"),
        *found.rows("attrition", adjustment=run["adjustment"]),
    ]
    for row, name in itertools.product(rows, COUNTS):
        shown[name].add(row.get(f"{arm}_{name}"))
    for row in found.rows("ps", ps=run["ps"]):
        shown["exposures"].add(row[f"n_{arm}"])
    for row in found.rows("adjustments", adjustment=run["adjustment"]):
        shown["exposures"].add(row[f"{arm}_rows"])
    return {name: sorted(own - {None}) for name, own in shown.items()}


def differences(shown):
    return {
        (name, low, high)
        for name, own in shown.items()
        for low, high in itertools.combinations(own, 2)
        if 0 < high - low < LEAST
    }


@pytest.fixture(scope="module", params=rest_is_slow([range(2), range(2, 6)], 1))
def found(request, tmp_path_factory):
    """Three people had the outcome before, trimming takes few, and matching nearly all the rest."""
    made = []
    for seed in request.param:
        columns = people(150, seed)
        columns["had"] = np.isin(np.arange(150), [5, 60, 100]).astype(int)
        columns["died"] = np.random.default_rng(seed).integers(0, 3, 150)
        analyses = {
            "pairs": {"match": {"caliper": None}},
            "many": {"trim": {"symmetric": 0.3}, "match": {"ratio": 0, "caliper": 0.5}},
            "weighted": {"trim": {"overlap": True}, "weight": {}},
        }
        outcomes = {"death": {"time": "days", "event": "died", "prior": "had"}}
        data = content()["data"] | {"covariates": {"drop": ["had"]}}
        changes = {"analyses": analyses, "outcomes": outcomes, "sharing": {"blind": False}}
        made.append(shared(tmp_path_factory.mktemp("study"), columns, data=data, **changes))
    return made


@pytest.mark.parametrize("analysis", ["pairs", "many", "weighted"])
@pytest.mark.parametrize("arm", ARMS)
def test_no_small_count_is_a_difference_of_shown_ones(found, analysis, arm):
    told = set()
    for results, private in found:
        assert differences(totals(results, analysis, arm)) == set()
        told |= differences(totals(private, analysis, arm))
        # The people of the answer are shown.
        (row,) = results.rows("estimates", analysis=analysis, role="main")
        assert row[f"{arm}_exposures"] is not None
    assert told, "the data have nothing to hide"


def test_a_report_with_a_larger_minimum_hides_as_much(tmp_path):
    columns = people(300)
    columns["group"] = np.where(np.arange(300) < 14, "few", "most")
    changes = {"subgroups": {"g": {"column": "group"}}, "analyses": {"crude": {}}}
    changes["sharing"] = {"blind": False, "min_cell_count": 2}
    results, private = shared(tmp_path, columns, **changes)
    (own,) = private.rows("estimates", level="few")
    (other,) = private.rows("estimates", level="most")
    assert 2 <= own["target_outcomes"] < 10 <= other["target_outcomes"]
    path = rs.report.write(results, tmp_path / "page.html", min_cell_count=10)
    text = path.with_suffix(".json").read_text()
    # The level with many has the total less that with few, which the total would tell.
    assert f'"target_outcomes": {other["target_outcomes"]},' not in text
    (main,) = private.rows("estimates", role="main")
    assert f'"target_outcomes": {main["target_outcomes"]},' in text


@pytest.mark.parametrize(
    ("counts", "hidden"),
    [
        ([100, 97, 60], [False, True, False]),
        ([100, 97], [True, False]),
        ([100, 100, 97], [True, True, False]),
        ([100, 98, 96, 94], [False, True, True, False]),
        ([100, 97, 97, 60], [False, True, True, False]),
        ([8, 3], [False, True]),
        ([100, 60, 60, 20], [False, False, False, False]),
    ],
)
def test_totals_that_are_too_close(counts, hidden):
    assert hide_totals(counts, LEAST).tolist() == hidden
