"""``riskset bias``: E-values and tipping points of published ratios, as table, CSV and JSON."""

import csv
import io
import json

import pytest

import riskset as rs

OF_15 = ("--ratio", 1.5, "--lower", 1.2, "--upper", 1.8, "--scale", "risk")


def test_published_tipping_points(run):
    # README of the R package tipr: 0.45, and 2.54.
    ended = run("bias", *OF_15, "--effect", 1.5, "--format", "json")
    found = json.loads(ended.out)
    assert round(found["confounders"][0]["difference"], 7) == 0.4496603
    shares = ("--target-prevalence", 0.25, "--comparator-prevalence", "0.1,0.2")
    ended = run("bias", *OF_15, *shares)
    assert ended.code == 0, ended.err
    assert "2.54" in ended.out
    line = next(line for line in ended.out.splitlines() if line.split()[:2] == ["0.250", "0.200"])
    assert line.split()[2:] == ["21.0", "-"]  # the estimate is beyond any effect
    assert max(map(len, ended.out.splitlines())) <= 80


def test_published_e_values(run):
    # VanderWeele and Ding (2017): 7.26 and 3.0.
    ended = run("bias", "--ratio", 3.9, "--lower", 1.8, "--upper", 8.7, "--scale", "risk")
    assert "7.26" in ended.out
    assert "3.00" in ended.out
    alone = run("bias", "--ratio", 3.9, "--scale", "risk", "--format", "json")
    assert json.loads(alone.out)["e_value_limit"] is None


def test_the_ratio_without_the_bias(run):
    words = ("--ratio", 0.87, "--lower", 0.79, "--upper", 0.96, "--scale", "hazard")
    shares = ("--target-prevalence", 0.04, "--comparator-prevalence", 0.06, "--effect", "2,4")
    ended = run("bias", *words, *shares, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    found = rs.cohort.adjust_for_confounder(
        0.87, 0.79, 0.96, scale="hazard", common=False, target_prevalence=0.04,
        comparator_prevalence=0.06, effect=[2, 4],
    )  # fmt: skip
    for name in ("ratio", "lower", "upper"):
        assert [float(row[name]) for row in rows] == getattr(found, name).tolist()
    ended = run("bias", *words, *shares)
    assert "0.887" in ended.out
    assert "0.978" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "cell"),
    [
        (["--ratio", 1.5, "--lower", 1.2, "--difference", 1], "0.750 (0.600 to -)"),
        (["--ratio", 0.5, "--upper", 0.8, "--difference", -1], "1.00 (- to 1.60)"),
        (["--ratio", 1.5, "--difference", 1], "0.750    yes"),
    ],
)
def test_one_limit(run, words, cell):
    ended = run("bias", *words, "--scale", "risk", "--effect", 2)
    assert ended.code == 0, ended.err
    assert cell in ended.out


def test_common_outcomes_are_converted(run):
    words = ("--ratio", 4, "--lower", 2.25, "--upper", 9, "--scale", "odds", "--common")
    ended = run("bias", *words, "--difference", 1)
    assert "2.00 (approximate)" in ended.out
    assert "1.50" in ended.out
    (row,) = csv.DictReader(io.StringIO(run("bias", *words, "--format", "csv").out))
    assert float(row["e_value"]) == pytest.approx(2 + 2**0.5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--effect", "two"], "--effect must be numbers, separated by commas"),
        (["--effect", 0], "--effect must be above 0"),
        (["--target-prevalence", 0.2], "must be left out, but 2 are"),
        (["--target-prevalence", 0.2, "--difference", 0.1], "describes a binary and --difference"),
        (["--lower", 1.6], "is outside of its interval"),
    ],
)
def test_refused(run, words, message):
    ended = run("bias", *OF_15, *words)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())
    assert ended.out == ""
