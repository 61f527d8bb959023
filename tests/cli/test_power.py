"""``riskset power``: the numbers of `riskset.cohort.plan_study`, as a table, CSV and JSON."""

import csv
import io
import json

import pytest

import riskset as rs


def rows(ended):
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)


def test_events_and_people_that_are_needed(run):
    words = ["--hr", "0.5,1.5", "--rate", 0.035, "--followup", 10, "--accrual", 20, "--power", 0.9]
    found = rows(run("power", *words, "--format", "json"))
    # The published design of `riskset.cohort.required_people`.
    assert found[0]["people"] == 224
    plans = [
        rs.cohort.plan_study(hr, rate=0.035, followup=10, accrual=20, power=0.9)
        for hr in (0.5, 1.5)
    ]
    assert found == [plan.columns() for plan in plans]
    ended = run("power", *words)
    assert "two-sided, level 0.05" in ended.out
    assert "10 after an accrual of 20" in ended.out
    line = next(line for line in ended.out.splitlines() if line.split()[:1] == ["0.5"])
    assert line.split() == ["0.5", "87.5", "224", "112", "112", "0.900"]
    assert max(map(len, ended.out.splitlines())) <= 80


def test_csv_has_all_digits(run):
    ended = run("power", "--hr", 1.5, "--events", 100, "--ratio", 3, "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(ended.out))
    plan = rs.cohort.plan_study(1.5, 0.25, events=100)
    assert float(row["share"]) == 0.25
    for name in ("power", "detectable_above", "detectable_below"):
        assert float(row[name]) == getattr(plan, name)
    assert row["people"] == ""


def test_every_option_arrives(run):
    found = rows(
        run(
            "power", "--hr", 1.3, "--people", 9000, "--share", 0.4, "--rate", 0.02, "--followup", 2,
            "--accrual", 1, "--dropout", 0.1, "--competing", 0.05, "--model", "finegray",
            "--alpha", 0.025, "--power", 0.7, "--one-sided", "--margin", 1.1, "--outcomes", 2,
            "--r-squared", 0.1, "--format", "json",
        )
    )  # fmt: skip
    plan = rs.cohort.plan_study(
        1.3, 0.4, people=9000, rate=0.02, followup=2, accrual=1, dropout=0.1, competing=0.05,
        model="finegray", alpha=0.025, power=0.7, two_sided=False, margin=1.1, n_outcomes=2,
        r_squared=0.1,
    )  # fmt: skip
    assert found == [plan.columns()]


def test_a_table_of_what_can_be_detected(run):
    ended = run(
        "power", "--events", 100, "--margin", 1.3, "--one-sided", "--outcomes", 4, "--competing",
        0.1, "--rate", 0.2, "--followup", 1,
    )  # fmt: skip
    assert ended.code == 0
    assert "one-sided, level 0.05 for 4 outcomes, margin 1.3" in ended.out
    assert "outcome 0.2, competing events 0.1" in ended.out
    assert "detectable" in ended.out
    plan = rs.cohort.plan_study(None, events=100, margin=1.3, two_sided=False, n_outcomes=4)
    assert f"{plan.detectable_below:.4g}, {plan.detectable_above:.4g}" in ended.out


def test_hardly_any_events_detect_nothing(run):
    (found,) = rows(run("power", "--events", 1e-300, "--format", "json"))
    assert (found["detectable_above"], found["detectable_below"]) == (None, None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--hr is missing"),
        (["--hr", "1.2;1.5"], "--hr must be numbers, separated by commas"),
        (["--hr", 1.5, "--share", 0.5, "--ratio", 1], "--share and --ratio were both given"),
        (["--hr", 1.5, "--ratio", 0], "--ratio must be a positive number"),
        (["--hr", 1.5, "--people", 10], "--rate is missing"),
        (["--hr", 1.5, "--events", 10, "--people", 10], "--events and --people were both given"),
        (["--hr", 1.5, "--alpha", 2], "--alpha must be a number above 0 and below 1"),
        (["--hr", 1.5, "--outcomes", 0], "--outcomes must be a whole number of at least 1"),
        (["--events", 0], "--events must be a positive number, but it is 0"),
        (["--hr", 1.5, "--dropout", 0.1], "--dropout has no effect without --rate and --followup"),
        (["--hr", -1], "--hr must be a positive number"),
    ],
)
def test_refused(run, words, message):
    ended = run("power", *words)
    assert ended.code == 2
    assert message in ended.err
    assert ended.out == ""


def test_very_many_people_fit_the_table(run):
    # 4 * 7.849 / log(1.5)^2 = 191 events, at a mean probability of 1.25e-12.
    ended = run("power", "--hr", 1.5, "--rate", 1e-12, "--followup", 1)
    assert ended.code == 0, ended.err
    assert "1.528e+14" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80
