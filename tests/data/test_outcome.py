"""Outcomes are sorted into the right risk sets, and bad ones are named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riskset._errors import InputError
from riskset.data.checks import Places
from riskset.data.outcome import Outcome, Surv


def members(outcome: Outcome) -> dict[tuple[int, float], set[int]]:
    """Rows at risk at each (stratum, event time), from the risk sets' arrays."""
    risk = outcome.risk
    n_groups = risk.group_events.size
    group = np.repeat(np.arange(n_groups), np.diff(risk.group_ptr))
    first = np.maximum.accumulate(np.where(risk.starts_stratum, np.arange(n_groups), 0))
    sets = {}
    for g in range(n_groups):
        if risk.group_events[g] == 0:
            continue
        if risk.own.size:
            at_risk = (risk.own <= g) & (g < risk.end)
        else:
            at_risk = (group >= first[g]) & (group <= g)
        rows = risk.order[at_risk & (risk.weight > 0)]
        key = (int(outcome.group_stratum[g]), float(outcome.group_time[g]))
        sets[key] = set(rows.tolist())
    return sets


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_risk_sets_follow_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    time = rng.integers(0, 6, n).astype(float)
    entry = time - rng.integers(1, 5, n) if rng.random() < 0.5 else None
    weight = rng.choice([0.0, 1.0, 2.5], n) if rng.random() < 0.5 else np.ones(n)
    stratum = rng.choice(["b", "a", "c"], n) if rng.random() < 0.5 else np.full(n, "a")
    event = rng.random(n) < 0.6
    if not (event & (weight > 0)).any():
        return
    outcome = Outcome.build(time, event, entry=entry, weight=weight, stratum=stratum)
    start = np.full(n, -np.inf) if entry is None else entry
    labels = sorted(set(stratum))
    expected = {}
    for i in np.flatnonzero(event & (weight > 0)):
        same = (stratum == stratum[i]) & (weight > 0)
        rows = np.flatnonzero(same & (start < time[i]) & (time[i] <= time))
        expected[(labels.index(stratum[i]), time[i])] = set(rows.tolist())
    assert members(outcome) == expected
    risk = outcome.risk
    assert np.array_equal(np.sort(risk.order), np.arange(n))
    assert risk.group_events.sum() == pytest.approx(weight[event].sum())
    assert risk.chunk_ptr[-1] == risk.group_events.size


def test_chunks_depend_on_the_data_alone() -> None:
    n = 50_000
    rng = np.random.default_rng(0)
    outcome = Outcome.build(rng.random(n), rng.random(n) < 0.5)
    chunks = outcome.risk.chunk_ptr
    assert chunks.size == 1 + n // 8192
    rows = np.diff(outcome.risk.group_ptr[chunks])
    assert rows.max() < 1.01 * n / (chunks.size - 1)


def test_entry_before_every_event_is_no_entry() -> None:
    time, event = [3.0, 4, 5], [1, 0, 1]
    assert Outcome.build(time, event, entry=[0, 1, 2.5]).risk.own.size == 0
    assert Outcome.build(time, event, entry=[0, 1, 3]).risk.own.size == 3  # not at risk at t = 3


@pytest.mark.parametrize("kind", [str, object])
def test_combined_strata(kind: type) -> None:
    first = np.array(["x", "y", "x", "y"], dtype=kind)
    outcome = Outcome.build(np.ones(4), np.ones(4), stratum=[first, np.array([1, 1, 2, 1])])
    assert outcome.strata.tolist() == [("x", 1), ("x", 2), ("y", 1)]
    assert outcome.stratum.tolist() == [0, 2, 1, 2]


def test_a_chosen_cause() -> None:
    outcome = Outcome.build([1.0, 2, 3], [1, 2, 0], cause=2)
    assert outcome.is_event.tolist() == [False, True, False]
    assert outcome.n_events == 1


def test_near_ties_are_counted() -> None:
    assert Outcome.build([0.1 + 0.2, 0.3, 1.0], [1, 1, 1]).n_near_ties == 1
    assert Outcome.build([0.3, 0.3, 0.3 + 1e-9], [1, 1, 1]).n_near_ties == 0


def test_near_ties_by_chance_are_not_counted() -> None:
    rng = np.random.default_rng(3)
    units = rng.integers(0, 10**9, 200_000)  # of neighbouring numbers from 1 on
    time = 1.0 + units * np.spacing(1.0)
    gaps = np.diff(np.unique(units))
    assert np.count_nonzero(gaps <= 16) > 100
    status = np.ones(time.size)
    assert Outcome.build(time, status).n_near_ties == 0
    # The same with a thousand times that were computed in two ways.
    again = time[:1000] + np.spacing(1.0)
    both = Outcome.build(np.append(time, again), np.ones(time.size + 1000))
    assert both.n_near_ties == 0  # where every number is a neighbour, nobody can tell
    spread = np.arange(1.0, 3001.0)
    assert (
        Outcome.build(np.append(spread, np.nextafter(spread[:7], 9e9)), np.ones(3007)).n_near_ties
        == 7
    )


GOOD = {"time": [1.0, 2.0, 3.0], "event": [1, 0, 1]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"time": [1.0, -2.0, 3.0]}, ["`time`", "negative", "1 of 3", "row 1", "-2.0", "entry"]),
        ({"time": [1.0, np.nan, np.inf]}, ["`time`", "finite", "2 of 3", "row 1", "nan"]),
        ({"time": ["1", "2", "x"]}, ["`time`", "numeric"]),
        ({"time": np.array([1.0, "x", None], dtype=object)}, ["`time`", "row 1", "'x'"]),
        ({"time": np.array(["2020-01-01"] * 3, "datetime64[D]")}, ["`time`", "count the days"]),
        ({"time": np.ones((2, 3))}, ["`time`", "one dimension", "(2, 3)"]),
        ({"time": [], "event": []}, ["no rows"]),
        ({"event": [1, 0]}, ["`event`", "3 rows", "has 2"]),
        ({"event": [1, 2, 0]}, ["`event`", "row 1", "value 2", "cause"]),
        ({"event": [1, -1, 0]}, ["`event`", "row 1", "-1"]),
        ({"event": [1, 0.5, 0]}, ["`event`", "row 1", "0.5"]),
        ({"event": ["dead", "alive", "dead"]}, ["`event`", "labels", "'dead'"]),
        (
            {"event": [0, 0, 0]},
            ["no events", "3 rows", "codes that occur: 0)", "check the coding and the filters"],
        ),
        (
            {"event": [5, 7, 0], "cause": 1},
            ["no events", "code 1 (codes that occur: 0, 5, 7)", "as `cause` (one of 5, 7)"],
        ),
        (
            {"event": [1, 2, 0], "cause": "a", "weight": [0, 1, 1], "labels": {1: "a", 2: "b"}},
            ["has 'a' (labels that occur: 'b')", "as `cause` (one of 'b')"],
        ),
        (
            {"event": [1, 2, 0], "cause": "a", "weight": [0, 0, 1], "labels": {1: "a", 2: "b"}},
            ["has 'a' (labels that occur: only that of censoring)", "check the coding"],
        ),
        ({"cause": 0}, ["`cause`", "0", "0, 1"]),
        ({"cause": True}, ["`cause`", "True"]),
        ({"entry": [0, 2.0, 1]}, ["`entry`", "smaller than `time`", "row 1", "2.0"]),
        ({"weight": [1, -0.5, 1]}, ["`weight`", "negative", "row 1", "-0.5"]),
        ({"weight": [0, 0, 0]}, ["every row has weight 0"]),
        ({"weight": [0, 1, 0]}, ["no events"]),
        ({"offset": [0, np.inf, 0]}, ["`offset`", "finite", "row 1", "inf"]),
        ({"stratum": ["a", None, "b"]}, ["`strata`", "missing", "row 1"]),
        ({"stratum": [1.0, np.nan, 2.0]}, ["`strata`", "missing", "row 1"]),
        ({"cluster": [1, 2]}, ["`cluster`", "3 rows", "(2,)"]),
    ],
)
def test_errors_name_the_place_and_the_remedy(change: dict, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        Outcome.build(**(GOOD | change))
    for word in [*words, "Hint: "]:
        assert word in str(caught.value)


def test_errors_use_the_callers_words() -> None:
    places = Places({"time": "column 'futime' of lung.csv"}, lambda i: f"row {i + 1} (id {i * 7})")
    with pytest.raises(InputError) as caught:
        Outcome.build([1.0, 2.0, -1.0], [1, 0, 1], places=places)
    assert str(caught.value).startswith(
        "column 'futime' of lung.csv must not be negative, but 1 of 3 rows is "
        "(first: row 3 (id 14), value -1.0)."
    )


@pytest.mark.parametrize(
    ("change", "ending"),
    [
        ({"time": [-5, -1, 4, 6]}, "must not be negative, but 2 of 4 rows are (first"),
        ({"weight": [1, -1, 1, -2]}, "must not be negative, but 2 of 4 rows are (first"),
        ({"time": [5, np.nan, 4, 6]}, "must be finite, but 1 of 4 rows is not (first"),
        ({"event": [1, -1, -1, 0]}, "competing cause, but 2 of 4 rows are not (first"),
        ({"event": [1, 2, 2, 0]}, "0 (censored) or 1 (event), but 2 of 4 rows are not (first"),
        ({"entry": [0, 9, 9, 1]}, "smaller than `time`, but 2 of 4 rows are not (first"),
        ({"stratum": [1.0, np.nan, np.nan, 2]}, "must not be missing, but 2 of 4 rows are (first"),
    ],
    ids=["time", "weight", "finite", "code", "one cause", "entry", "stratum"],
)
def test_a_sentence_about_rows_ends_by_its_beginning(change: dict, ending: str) -> None:
    rows = {"time": [5, 3, 4, 6], "event": [1, 0, 1, 0]}
    with pytest.raises(InputError) as caught:
        Outcome.build(**(rows | change))
    assert ending in str(caught.value)


def test_surv_is_a_structured_array() -> None:
    y = Surv([1, 2], [True, False], entry=[0, 1])
    assert y.dtype.names == ("event", "time", "entry")
    assert y["event"].dtype == bool
    assert Surv([1, 2], [2, 0])["event"].tolist() == [2, 0]
    with pytest.raises(InputError, match="negative"):
        Surv([-1.0], [1])


@pytest.mark.parametrize("type_", [np.str_, object])
def test_text_events_get_no_guess(type_: type) -> None:
    event = np.array(["alive", "dead"], dtype=type_)
    with pytest.raises(
        InputError, match=r"labels 'alive', 'dead', but it is not known which .*\n.*`censored`"
    ):
        Surv([1, 2], event)
