"""Potential follow-up, against R and by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from reference import GOLDEN, read_json, read_table


def lung():
    table = read_table(GOLDEN / "lung.csv")
    return table, rs.Surv(table["time"], table["event"].astype(int))


def test_the_median_follow_up_of_groups_as_r_has_it():
    table, y = lung()
    expected = read_json(GOLDEN / "predictions.json")["follow_up"]
    curves = rs.reverse_kaplan_meier(y, table["sex"])
    found = [curve.quantile() for curve in curves]
    assert_allclose(np.array(found), np.array(expected["table"], dtype=float))
    assert_allclose([curve.quantile(0.25)[0] for curve in curves], expected["quartile"])


def test_weights_as_r_has_them():
    _, y = lung()
    expected = read_json(GOLDEN / "predictions.json")["follow_up_weighted"]
    found = rs.reverse_kaplan_meier(y, weight=np.resize([1, 2, 3], y.size))["all"].quantile()
    assert_allclose(found, [expected[name][0] for name in ("median", "lower", "upper")])


def test_events_of_every_cause_censor_the_follow_up():
    y = rs.Surv([1.0, 2.0, 3.0, 5.0, 6.0], [1, 0, 2, 0, 0])
    curve = rs.reverse_kaplan_meier(y)["all"]
    assert_allclose(curve.survival, [1, 3 / 4, 3 / 4, 3 / 8, 0])
    assert curve.quantile()[0] == 5
    named = rs.Surv(y["time"], ["a", "none", "b", "none", "none"], censored="none")
    assert_allclose(rs.reverse_kaplan_meier(named)["all"].survival, curve.survival)


def test_follow_up_of_the_arms_of_a_cohort():
    people = rs.cohort.Population([1, 1, 1, 0, 0])
    y = rs.Surv([1.0, 2.0, 4.0, 3.0, 5.0], [1, 0, 0, 0, 1])
    found = rs.cohort.followup(y, people)
    assert found.potential_target[found.shares.index(0.5)] == 2
    assert found.potential_comparator[found.shares.index(0.5)] == 3
    assert np.isnan(found.potential_comparator[found.shares.index(0.75)])


def test_an_unknown_interval_is_refused():
    with pytest.raises(rs.InputError, match="interval"):
        rs.reverse_kaplan_meier(lung()[1], interval="exact")
