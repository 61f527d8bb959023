"""Rows censored at deviation, and clones for grace periods, worked out by hand."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import riskset as rs

PEOPLE = {
    "id": ["a", "b", "c", "d", "e", "f", "g"],
    "days": [100, 20, 60, 90, 30, 100, 50],
    "died": [0, 1, 1, 0, 1, 0, 1],
    "surgery": [10.0, None, 40.0, 30.0, None, 0.0, 25.0],
}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
KEYS = {"time": "days", "event": "died"}


def lines(frame, *names):
    """Rows as tuples, whatever the library."""
    if hasattr(frame, "to_pydict"):
        columns = frame.to_pydict()
    else:
        columns = (
            frame.to_dict(orient="list") if isinstance(frame, pd.DataFrame) else frame.to_dict()
        )
    return list(zip(*(list(columns[name]) for name in names), strict=True))


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_follow_up_ends_with_the_deviation(make):
    found = rs.cohort.censor_deviations(make(PEOPLE), "surgery", **KEYS)
    assert lines(found, "id", "entry", "days", "died", "deviates") == [
        ("a", 0, 10, 0, 1),
        ("b", 0, 20, 1, 0),
        ("c", 0, 40, 0, 1),
        ("d", 0, 30, 0, 1),
        ("e", 0, 30, 1, 0),
        ("g", 0, 25, 0, 1),  # f deviates at once and has no follow-up
    ]


def test_rows_after_a_deviation_are_left_out_and_events_come_first():
    rows = pd.DataFrame(
        {
            "id": [1, 1, 1, 2, 2],
            "start": [0, 5, 8, 0, 5],
            "days": [5, 8, 12, 5, 9],
            "died": [0, 0, 1, 0, 1],
        }
    )
    found = rs.cohort.censor_deviations(rows, [5, 5, 5, 9, 9], entry="start", **KEYS)
    assert lines(found, "id", "start", "days", "died", "deviates") == [
        (1, 0, 5, 0, 1),
        (2, 0, 5, 0, 0),
        (2, 5, 9, 1, 0),
    ]


EXPECTED_TREATED = [
    ("a", 0, 30, 0, 1, 0, 1),
    ("a", 30, 100, 0, 1, 0, 0),
    ("b", 0, 20, 1, 1, 0, 0),  # died within the grace period: in both arms
    ("c", 0, 30, 0, 1, 1, 1),  # starts too late
    ("d", 0, 30, 0, 1, 0, 1),  # starts on the last day
    ("d", 30, 90, 0, 1, 0, 0),
    ("e", 0, 30, 1, 1, 0, 0),  # died on the last day: the event comes first
    ("f", 0, 30, 0, 1, 0, 0),  # started at once, and could not deviate
    ("f", 30, 100, 0, 1, 0, 0),
    ("g", 0, 30, 0, 1, 0, 1),
    ("g", 30, 50, 1, 1, 0, 0),
]
EXPECTED_OTHERS = [
    ("a", 0, 10, 0, 0, 1, 1),
    ("b", 0, 20, 1, 0, 0, 1),
    ("c", 0, 30, 0, 0, 0, 1),
    ("c", 30, 60, 1, 0, 0, 0),  # surgery on day 40 is after the grace period
    ("d", 0, 30, 0, 0, 1, 1),
    ("e", 0, 30, 1, 0, 0, 1),
    ("g", 0, 25, 0, 0, 1, 1),
]
NAMES = ("id", "entry", "days", "died", "arm", "deviates", "at_risk")


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_clones_deviate_at_the_end_of_the_grace_period_or_when_they_start(make):
    found = rs.cohort.clone(make(PEOPLE), "surgery", grace=30, **KEYS)
    assert lines(found, *NAMES) == EXPECTED_TREATED + EXPECTED_OTHERS


def test_comparators_who_never_start():
    found = rs.cohort.clone(pd.DataFrame(PEOPLE), "surgery", grace=30, comparator="never", **KEYS)
    others = [line for line in lines(found, *NAMES) if line[4] == 0]
    at = EXPECTED_OTHERS.index(("c", 30, 60, 1, 0, 0, 0))
    assert others == [
        *EXPECTED_OTHERS[:at],
        ("c", 30, 40, 0, 0, 1, 1),
        *EXPECTED_OTHERS[at + 1 :],
    ]


def test_only_the_window_before_the_deadline_decides():
    found = rs.cohort.clone(pd.DataFrame(PEOPLE), "surgery", grace=30, window=10, **KEYS)
    treated = [line for line in lines(found, *NAMES) if line[4] == 1]
    assert [line[0] for line in treated if line[6]] == ["c", "d", "g"]  # a started on day 10
    assert {line[1] for line in treated if line[6]} == {20}


def test_weights_of_clones_by_hand():
    """Of a, c, d and g, who could start until day 30, one does not: weights 4/3 after it.

    Each time someone starts before, those who wait stand for one more: a on day 10, g on 25, d on
    30. The logistic models of time have a parameter for each of these trials if they are at
    separate times.
    """
    found = rs.cohort.clone(pd.DataFrame(PEOPLE), "surgery", grace=30, **KEYS)
    weights = rs.cohort.censoring_weights(
        rs.Surv(found["days"], found["died"], entry=found["entry"]),
        found["arm"],
        person=found["id"],
        deviates=found["deviates"],
        at_risk=found["at_risk"],
        stabilise=False,
        time_df=0,
    )
    after = (found["arm"] == 1) & (found["entry"] == 30)
    by_person = dict(zip(found["id"][after], weights.weight[after], strict=True))
    expected = {"a": 4 / 3, "d": 4 / 3, "f": 1, "g": 4 / 3}
    assert by_person == pytest.approx(expected, rel=1e-6)
    # In the other arm, three of the four rows of survivors end with a start: c stands for four.
    last = (found["arm"] == 0) & (found["entry"] == 30)
    assert weights.weight[last] == pytest.approx([4], rel=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"grace": 0}, "`grace` must be a time after the start"),
        ({"grace": float("nan")}, "`grace`"),
        ({"grace": 30, "window": 31}, "`window`"),
        ({"grace": 30, "window": 0}, "`window`"),
        ({"grace": 30, "comparator": "later"}, "comparator"),
        ({"grace": 30, "arm": "id"}, "'id'"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(rs.InputError, match=words):
        rs.cohort.clone(pd.DataFrame(PEOPLE), "surgery", **KEYS, **options)


def test_bad_times_are_refused():
    people = pd.DataFrame(PEOPLE)
    with pytest.raises(rs.InputError, match="one time for each of the 7 rows"):
        rs.cohort.censor_deviations(people, [1, 2], **KEYS)
    with pytest.raises(rs.InputError, match="column 'id' must be numeric"):
        rs.cohort.censor_deviations(people, "id", **KEYS)
    with pytest.raises(rs.InputError, match="'operation'"):
        rs.cohort.censor_deviations(people, "operation", **KEYS)
    with pytest.raises(rs.InputError, match="'died'"):
        rs.cohort.censor_deviations(people, "surgery", deviates="died", **KEYS)


def test_a_window_opens_at_the_decimal_difference():
    """0.3 - 0.1 is less than 0.2 in binary numbers: who starts at 0.2 starts before the window."""
    people = {"id": ["a", "b"], "days": [1.0, 1.0], "died": [0, 0], "surgery": [0.2, 0.25]}
    rows = rs.split(pd.DataFrame(people), [0.2], **KEYS, id=None, episode=None)
    found = rs.cohort.clone(rows, "surgery", grace=0.3, window=0.1, entry="entry", **KEYS)
    treated = found[found["arm"] == 1]
    assert lines(treated, "id", "entry", "days", "at_risk") == [
        ("a", 0, 0.2, 0),
        ("a", 0.2, 0.3, 0),
        ("a", 0.3, 1, 0),
        ("b", 0, 0.2, 0),
        ("b", 0.2, 0.3, 1),
        ("b", 0.3, 1, 0),
    ]


def test_the_window_may_be_the_whole_period_of_follow_up_that_starts_late():
    """The period from 0.1 to 0.3 has the length 0.2, and no row is cut a last digit after 0.1."""
    people = {"id": ["a"], "days": [1.0], "died": [0], "surgery": [0.15]}
    whole = rs.cohort.clone(pd.DataFrame(people), "surgery", grace=0.3, start=0.1, **KEYS)
    given = rs.cohort.clone(
        pd.DataFrame(people), "surgery", grace=0.3, window=0.2, start=0.1, **KEYS
    )
    names = ("entry", "days", "arm", "deviates", "at_risk")
    assert lines(given, *names) == lines(whole, *names)
    assert lines(whole, *names)[:2] == [(0.1, 0.3, 1, 0, 1), (0.3, 1, 1, 0, 0)]


@pytest.mark.parametrize(
    "call",
    [
        lambda people, at: rs.cohort.clone(people, at, grace=30, **KEYS),
        lambda people, at: rs.cohort.censor_deviations(people, at, **KEYS),
    ],
)
def test_times_before_the_follow_up_are_refused(call):
    people = pd.DataFrame(PEOPLE)
    with pytest.raises(
        rs.InputError, match="before the start of follow-up, 0, but 1 of 7"
    ) as error:
        call(people, [-5.0, *PEOPLE["surgery"][1:]])
    assert "row 0, value -5" in str(error.value)
