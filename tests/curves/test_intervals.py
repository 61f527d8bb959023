"""Intervals of curves on every scale, against R's `conf.type` and by hand.

The numbers of R are made by tests/golden/make_curves.R.
"""

import numpy as np
import pytest
from scipy.special import ndtri

import riskset as rs
from reference import GOLDEN, read_json, read_table
from riskset.curves.intervals import probability_interval

R = read_json(GOLDEN / "curves.json")["intervals"]
KINDS = ("log-log", "log", "plain", "logit", "arcsine")


@pytest.mark.parametrize("kind", KINDS)
def test_survival_has_the_intervals_of_r(kind: str) -> None:
    table, expected = read_table(GOLDEN / "lung.csv"), R["survival"][kind.replace("-", "")]
    curves = rs.kaplan_meier(rs.Surv(table["time"], table["event"]), interval=kind)
    found = curves.to_frame(R["times"])
    for end in ("lower", "upper"):
        np.testing.assert_allclose(found[end], expected[end], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_incidence_has_the_intervals_of_r(kind: str) -> None:
    table, expected = read_table(GOLDEN / "mgus2.csv"), R["incidence"][kind.replace("-", "")]
    y = rs.Surv(table["time"], table["event"].astype(int))
    found = rs.aalen_johansen(y, interval=kind).to_frame(R["incidence_times"])
    found = found[found["cause"] == 1]
    for end in ("lower", "upper"):
        np.testing.assert_allclose(found[end], expected[end], rtol=1e-11)


def test_logit_and_arcsine_by_hand() -> None:
    # p = 1/4 with standard error 0.03: on the logit scale 0.03 / (3/16) = 0.16, on that of the
    # arcsine pi/6 with 0.03 / (2 sqrt(3)/4).
    z = ndtri(0.95)
    p, error = np.array([0.25]), np.array([0.03])
    odds = np.exp(np.log(1 / 3) + np.array([-1, 1]) * 0.16 * z)
    found = np.concatenate(probability_interval(p, error, 0.9, "logit"))
    np.testing.assert_allclose(found, odds / (1 + odds), rtol=1e-14)
    angle = np.pi / 6 + np.array([-1, 1]) * z * 0.03 / (np.sqrt(3) / 2)
    found = np.concatenate(probability_interval(p, error, 0.9, "arcsine"))
    np.testing.assert_allclose(found, np.sin(angle) ** 2, rtol=1e-14)


@pytest.mark.parametrize("kind", ["logit", "arcsine"])
def test_survival_and_its_complement_have_the_same_interval(kind: str) -> None:
    """Unlike the other scales that stay within 0 and 1, both treat p and 1 - p alike."""
    p, error = np.array([0.03, 0.5, 0.9]), np.array([0.02, 0.1, 0.04])
    lower, upper = probability_interval(p, error, 0.95, kind)
    other = probability_interval(1 - p, error, 0.95, kind)
    np.testing.assert_allclose(other, [1 - upper, 1 - lower], atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_ends_of_certain_and_unknown_probabilities(kind: str) -> None:
    p, error = np.array([0.0, 1.0, 0.4, 0.4]), np.array([0.1, 0.1, np.nan, 1e6])
    lower, upper = probability_interval(p, error, 0.95, kind)
    np.testing.assert_array_equal(lower[:3], [0, 1, np.nan])
    np.testing.assert_array_equal(upper[:3], [0, 1, np.nan])
    np.testing.assert_allclose([lower[3], upper[3]], [0, 1], atol=1e-12)


def test_an_unknown_kind_lists_the_others() -> None:
    y = rs.Surv([1, 2], [1, 0])
    with pytest.raises(rs.InputError, match="did you mean 'arcsine'"):
        rs.kaplan_meier(y, interval="arcsin")
