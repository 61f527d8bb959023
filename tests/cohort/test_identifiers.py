"""Persons, rows and sets by whatever identifies them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import riskset as rs

N = 60


def made(text: bool):
    """A population whose ids are numbers, or the same numbers as text of the same order."""
    rng = np.random.default_rng(3)
    treatment = rng.integers(0, 2, N)
    score = rng.uniform(0.2, 0.8, N)
    row, person = np.arange(N) + 100, 500 + np.arange(N) // 2
    if text:
        row, person = (np.array([f"r{k}" for k in ids]) for ids in (row, person))
    people = rs.cohort.Population(treatment, score, row_id=row, person_id=person)
    y = rs.Surv(rng.integers(1, 30, N), rng.integers(0, 3, N))
    return people, y


def test_text_identifies_as_numbers_do(tmp_path: Path):
    (numbers, y), (text, _) = made(text=False), made(text=True)
    assert text.person_id[:3].tolist() == ["r500", "r500", "r501"]
    one, other = (rs.cohort.match(people, ratio=2) for people in (numbers, text))
    assert_array_equal(one.weight, other.weight)
    named = np.where(one.kept, [f"r{k}" for k in one.set_id], "")
    assert_array_equal(other.set_id, named)
    kept = np.arange(N) % 3 > 0
    both = (rs.cohort.restrict(found, kept, "x") for found in (one, other))
    narrow, narrow_text = both
    assert_array_equal(narrow_text.set_id == "", narrow.set_id == -1)
    for people, same in ((one, other), (numbers, text)):
        found, again = (rs.cohort.fit_outcome(y, who) for who in (people, same))
        assert (found.log_hr, found.se, found.target) == (again.log_hr, again.se, again.target)
        risks = [
            rs.cohort.risk_difference(y, who, [10, 20], replicates=40) for who in (people, same)
        ]
        assert_array_equal(risks[0].se, risks[1].se)
        x = pd.DataFrame({"x": np.arange(N) % 7})
        smd = [rs.cohort.balance(x, who).after.smd for who in (people, same)]
        assert_array_equal(smd[0], smd[1])
    scores = [rs.cohort.propensity_score(who, x, rs.L2(1.0)) for who in (numbers, text)]
    assert_array_equal(scores[0].score, scores[1].score)
    rs.cohort.save(other, tmp_path / "kept")
    loaded = rs.cohort.load(tmp_path / "kept")
    assert_array_equal(loaded.set_id, other.set_id)
    assert_array_equal(loaded.population.person_id, text.person_id)


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (
            lambda c: c.Population([1, 0], person_id=np.array([2**63, 1], dtype=np.uint64)),
            "BadId",
            "value 9223372036854775808",
        ),
        (lambda c: c.Population([1, 0], person_id=[2.0**53, 1.0]), "BadId", r"below 2\*\*53"),
        (lambda c: c.Population([1, 0], person_id=["a", None]), "BadId", "1 of 2 rows is .*row 1"),
        (lambda c: c.Population([1, 0], person_id=[1]), "BadId", r"each of the 2 rows"),
        (lambda c: c.Population([1, 0], row_id=["a", "a"]), "DuplicateId", "first: a"),
        (lambda c: c.Population(["1", "0"]), "BadTreatment", "first: row 0, value '1'"),
        (
            lambda c: c.Population(pd.array([True, None], dtype="boolean")),
            "BadTreatment",
            r"must not be missing, but 1 of 2 rows is \(first: row 1",
        ),
        (lambda c: c.Population([1.0, np.nan]), "BadTreatment", "1 of 2 rows is .*row 1"),
        (
            lambda c: c.stratify(c.Population([1, 0], [0.5, 0.5]), within=[1, "1"]),
            "BadBlock",
            "mixes numbers and text",
        ),
    ],
)
def test_messages(make, code, words):
    with pytest.raises(rs.CohortError, match=words) as caught:
        make(rs.cohort)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize(
    "within",
    [
        np.array([1, 2, 1.0, 2.0], dtype=object),
        [1, 2, 1.0, 2.0],
        pd.DataFrame({"a": [1, 2, 1.0, 2.0], "b": ["x"] * 4}),
        [pd.Series([1, 2, 1, 2]), ["x"] * 4],
    ],
)
def test_blocks_of_equal_labels(within):
    people = rs.cohort.Population([1, 1, 0, 0], [0.5] * 4)
    assert_array_equal(rs.cohort.match(people, within=within).set_id, [0, 1, 0, 1])


def test_big_covariates_are_matched_exactly():
    people = rs.cohort.Population([1, 1, 0, 0], [0.5] * 4)
    x = np.array([[1e20], [2.5e20], [1e20], [2.5e20]])
    found = rs.cohort.match(people, exact_covariates=["x0"], X=x)
    assert_array_equal(found.set_id, [0, 1, 0, 1])


def test_a_missing_reason_is_no_reason_called_none():
    people, y = rs.cohort.Population([1, 0, 1]), rs.Surv([1, 2, 3], [1, 0, 0])
    assert rs.cohort.followup(y, people, ["end", "death", "end"]).ends_target == {"end": 2}
    for reasons in (["end", None, "death"], np.array(["end", np.nan, "death"], dtype=object)):
        with pytest.raises(rs.CohortError, match="`end_reason` must not be missing, but 1 of 3"):
            rs.cohort.followup(y, people, reasons)
    with pytest.raises(rs.CohortError, match="one label for each of the 3 rows"):
        rs.cohort.followup(y, people, ["end"])
