"""Tipping points against published values, exact fractions, and data with a known confounder."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from riskset.cohort import adjust_for_confounder, covariate_strengths, tipping_points

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/confounders.json").read_text("utf-8"))
OF_15 = {"lower": 1.2, "upper": 1.8, "scale": "risk"}


def test_published_values_of_tipr():
    # README of the R package tipr (D'Agostino McGowan 2022, doi:10.21105/joss.04495), versions 0.4
    # and 1.0: a risk ratio of 1.5 (1.2 to 1.8).
    found = tipping_points(1.5, **OF_15, effect=1.5)
    assert round(float(found.difference[0]), 7) == 0.4496603
    found = tipping_points(1.5, **OF_15, target_prevalence=0.25, comparator_prevalence=0.10)
    assert round(float(found.effect[0]), 2) == 2.54
    found = adjust_for_confounder(1.5, **OF_15, difference=0.25, effect=1.05)
    assert round(float(found.n_needed[0]), 1) == 14.9


def test_a_published_hazard_ratio():
    # Course "Causal Inference in R" (D'Agostino McGowan and Barrett), adjust_hr_with_binary and
    # tip_hr_with_binary of tipr: alcohol and lung cancer, hazard ratio 0.87 (0.79 to 0.96).
    interval = {"lower": 0.79, "upper": 0.96, "scale": "hazard", "common": False}
    shares = {"target_prevalence": 0.04, "comparator_prevalence": 0.06}
    found = adjust_for_confounder(0.87, **interval, **shares, effect=2)
    published = (0.887, 0.805, 0.978)
    assert tuple(round(float(v[0]), 3) for v in (found.ratio, found.lower, found.upper)) == (
        published
    )
    assert not found.tips[0]
    assert round(float(tipping_points(0.87, **interval, **shares).effect[0]), 2) == 3.27


@pytest.mark.parametrize("case", GOLDEN["binary"] + GOLDEN["normal"])
def test_the_estimate_of_a_model_with_the_confounder_in_r(case):
    values = {name: case[name] for name in case if name not in ("crude", "adjusted")}
    found = adjust_for_confounder(case["crude"], scale="risk", **values)
    assert_allclose(found.ratio, case["adjusted"], rtol=1e-9)


@pytest.mark.parametrize("case", GOLDEN["tipping"])
def test_effects_that_explain_a_ratio_in_r(case):
    values = {name: case[name] for name in case if name not in ("limit", "effect")}
    found = tipping_points(case["limit"], scale="risk", **values)
    assert_allclose(found.of_estimate, case["effect"], rtol=1e-9)


def exact(p1, p0, effect):
    """The bias of a binary confounder as a fraction: mean risk with it over mean risk without."""
    return (p1 * effect + 1 - p1) / (p0 * effect + 1 - p0)


@pytest.mark.parametrize(
    ("p1", "p0", "effect"),
    [
        (Fraction(1, 4), Fraction(1, 10), Fraction(5, 2)),
        (Fraction(1, 10), Fraction(1, 2), Fraction(3)),
        (Fraction(3, 5), Fraction(1, 5), Fraction(1, 3)),
        (Fraction(1), Fraction(0), Fraction(2)),
    ],
)
def test_exact_fractions_and_all_three_inverses(p1, p0, effect):
    bias = exact(p1, p0, effect)
    given = {"target_prevalence": float(p1), "comparator_prevalence": float(p0)}
    adjusted = adjust_for_confounder(3.0, 2.0, 4.5, scale="risk", **given, effect=float(effect))
    assert_allclose(adjusted.bias, float(bias), rtol=1e-14)
    assert_allclose(adjusted.ratio, float(3 / bias), rtol=1e-14)
    assert_allclose(adjusted.lower, float(2 / bias), rtol=1e-14)
    assert_allclose(adjusted.upper, float(Fraction(9, 2) / bias), rtol=1e-14)
    # An interval whose limit is the bias is tipped by this confounder, whatever is left out.
    values = given | {"effect": float(effect)}
    limit = float(bias)
    ends = (limit, 9.0) if limit > 1 else (0.01, limit)
    for name, value in values.items():
        others = {key: one for key, one in values.items() if key != name}
        found = tipping_points(2 * limit if limit > 1 else limit / 2, *ends, scale="risk", **others)
        assert found.unknown == name
        assert_allclose(getattr(found, name), value, rtol=1e-12, atol=1e-14)


def test_a_normal_confounder_in_closed_form():
    found = tipping_points(2.0, 1.5, 2.6, scale="rate", difference=[0.5, -0.25])
    assert_allclose(found.effect, [1.5**2, 1.5**-4], rtol=1e-14)
    assert_allclose(found.of_estimate, [4.0, 1 / 16], rtol=1e-14)
    adjusted = adjust_for_confounder(2.0, 1.5, 2.6, scale="rate", difference=0.5, effect=2.25)
    assert_allclose(adjusted.lower, 1.0, rtol=1e-14)
    assert_allclose(adjusted.n_needed, 1.0, rtol=1e-12)


def test_a_grid_has_every_combination_in_order():
    found = adjust_for_confounder(
        2.0, 1.5, 2.6, scale="risk", target_prevalence=[0.2, 0.4],
        comparator_prevalence=[0.1, 0.3], effect=[2, 5],
    )  # fmt: skip
    columns = found.columns()
    assert list(columns)[:3] == ["target_prevalence", "comparator_prevalence", "effect"]
    assert_array_equal(columns["target_prevalence"], [0.2] * 4 + [0.4] * 4)
    assert_array_equal(columns["comparator_prevalence"], [0.1, 0.1, 0.3, 0.3] * 2)
    assert_array_equal(columns["effect"], [2, 5] * 4)
    assert "difference" not in columns
    frame = found.to_frame("pandas")
    assert list(frame["tips"]) == list(found.tips)
    # Less common in the target, it makes the ratio too small.
    assert found.bias[2] < 1
    assert np.isnan(found.n_needed[2])
    points = tipping_points(
        2.0, 1.5, 2.6, scale="risk", target_prevalence=0.2, comparator_prevalence=0.1
    )
    assert list(points.columns()) == [
        "target_prevalence", "comparator_prevalence", "effect", "effect_of_estimate",
    ]  # fmt: skip


def test_tips_is_whether_the_interval_reaches_1():
    for ratio, lower, upper in ((1.5, 1.2, 1.8), (1 / 1.5, 1 / 1.8, 1 / 1.2)):
        sign = 1 if ratio > 1 else -1
        point = tipping_points(ratio, lower, upper, scale="risk", difference=0.3 * sign).effect[0]
        found = adjust_for_confounder(
            ratio, lower, upper, scale="risk", difference=0.3 * sign,
            effect=[0.999 * point, 1.001 * point, 100.0],
        )  # fmt: skip
        assert found.tips.tolist() == [False, True, True]


def test_a_ratio_and_its_reciprocal_have_mirrored_confounders():
    one = tipping_points(2.0, 1.5, 2.6, scale="risk", target_prevalence=0.6,
                         comparator_prevalence=0.2)  # fmt: skip
    other = tipping_points(0.5, 1 / 2.6, 1 / 1.5, scale="risk", target_prevalence=0.2,
                           comparator_prevalence=0.6)  # fmt: skip
    assert_allclose(one.effect, other.effect, rtol=1e-13)
    assert_allclose(one.of_estimate, other.of_estimate, rtol=1e-13)


def test_where_no_confounder_is_enough():
    # The bias is below p1 / p0 for any effect.
    found = tipping_points(2.5, 2.1, 3.0, scale="risk", target_prevalence=0.4,
                           comparator_prevalence=0.2)  # fmt: skip
    assert np.isnan(found.effect[0])
    assert np.isnan(found.of_estimate[0])
    found = tipping_points(2.5, 2.1, 3.0, scale="risk", comparator_prevalence=0.5, effect=2)
    assert np.isnan(found.target_prevalence[0])
    assert np.isnan(tipping_points(2.5, 2.1, 3.0, scale="risk", difference=0.0).effect[0])
    assert np.isnan(tipping_points(2.5, 2.1, 3.0, scale="risk", effect=1.0).difference[0])


def test_an_interval_that_contains_1_needs_no_confounder():
    interval = (1.2, 0.9, 1.6)
    found = tipping_points(*interval, scale="risk", difference=[0.2, -0.2])
    assert_array_equal(found.effect, 1.0)
    assert_allclose(found.of_estimate, [1.2**5, 1.2**-5], rtol=1e-12)
    assert_array_equal(tipping_points(*interval, scale="risk", effect=2).difference, 0.0)
    found = tipping_points(*interval, scale="risk", comparator_prevalence=0.3, effect=2)
    assert_array_equal(found.target_prevalence, 0.3)
    found = adjust_for_confounder(*interval, scale="risk", difference=0.2, effect=2)
    assert found.tips[0]
    assert found.n_needed[0] == 0


def test_unknown_limits_and_infinite_estimates():
    found = tipping_points(2.0, scale="risk", difference=0.5)
    assert np.isnan(found.effect[0])
    assert_allclose(found.of_estimate, 4.0)
    found = tipping_points(0.5, 0.0, 0.8, scale="risk", difference=-0.5)
    assert_allclose(found.effect, 0.8**-2)


def test_without_a_limit_the_ratio_tips():
    of_normal = {"scale": "risk", "difference": 1.0, "effect": [1.25, 2.0]}
    for ends in ((), (1.2,), (None, 1.8)):
        found = adjust_for_confounder(1.5, *ends, **of_normal)
        # 1.5 / 1.25 > 1 > 1.5 / 2, but 1.2 / 1.25 < 1.
        assert found.tips.tolist() == [ends == (1.2,), True]
    found = adjust_for_confounder(1 / 1.5, **of_normal | {"difference": -1.0})
    assert found.tips.tolist() == [False, True]


def test_what_only_an_infinite_effect_would_do():
    """The bias is below 1.01 for any effect; a tiny effect takes away a confounder of everybody."""
    shares = {"target_prevalence": 0.2121, "comparator_prevalence": 0.21}
    assert 0.2121 - 1.01 * 0.21 != 0  # rounding
    found = tipping_points(1.01, 1.01, 1.01, scale="risk", **shares)
    assert np.isnan(found.effect[0])
    for p1, p0 in ((0.3, 0.1), (0.7, 0.2), (0.9, 0.6)):
        limit = (1 - p1) / (1 - p0)  # the bias of an effect of 0
        shares = {"target_prevalence": p1, "comparator_prevalence": p0}
        assert np.isnan(tipping_points(limit, 0.01, limit, scale="risk", **shares).effect[0])
    # (1 + 0.6 p) / (1 + 0.6 * 0.3) is 1.6 / 1.18 for the largest prevalence, which is 1.
    limit = 1.6 / 1.18
    found = tipping_points(
        2.0, limit, 3.0, scale="risk", comparator_prevalence=0.3, effect=[1.6, 1.6 - 1e-9]
    )
    assert_allclose(found.target_prevalence, [1.0, np.nan], rtol=1e-13)
    found = adjust_for_confounder(
        1.5, 1.2, 1.8, scale="risk", target_prevalence=1.0, comparator_prevalence=[0.0, 0.5, 1.0],
        effect=1e-300,
    )  # fmt: skip
    assert_allclose(found.bias, [1e-300, 2e-300, 1.0], rtol=1e-14)
    assert found.tips.tolist() == [False, False, False]


def test_common_may_be_a_comparison_of_numpy():
    share = np.array([0.2])
    found = tipping_points(4.0, scale="odds", common=(share >= 0.15)[0], difference=1)
    assert found.observed.is_common is True


def test_common_outcomes_are_converted_first():
    interval = {"lower": 2.25, "upper": 9.0, "scale": "odds", "common": True}
    found = tipping_points(4.0, **interval, difference=1)
    assert (found.observed.ratio, found.observed.limit, found.observed.is_common) == (2, 1.5, True)
    assert_allclose(found.effect, 1.5)
    assert_allclose(found.of_estimate, 2.0)


def draw(rng, n, kind):
    """A treatment without effect, and a rare outcome that depends on a confounder alone."""
    treated = rng.random(n) < 0.5
    if kind == "binary":
        u = (rng.random(n) < np.where(treated, 0.5, 0.2)).astype(float)
        risk = 0.02 * np.where(u == 1, 3.0, 1.0)
    else:
        u = rng.normal(np.where(treated, 0.3, 0.0), 1.0)
        risk = 0.01 * 1.5**u
    return treated, rng.random(n) < risk


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("binary", {"target_prevalence": 0.5, "comparator_prevalence": 0.2, "effect": 3.0}),
        ("normal", {"difference": 0.3, "effect": 1.5}),
    ],
)
def test_data_with_a_known_confounder_are_adjusted_to_the_truth(kind, values):
    treated, sick = draw(np.random.default_rng(7), 1_000_000, kind)
    risks = [float(sick[treated == arm].mean()) for arm in (True, False)]
    se = np.sqrt(sum((1 - risk) / (risk * 500_000) for risk in risks))
    ratio = risks[0] / risks[1]
    ends = (ratio * np.exp(-1.96 * se), ratio * np.exp(1.96 * se))
    found = adjust_for_confounder(ratio, *ends, scale="risk", **values)
    assert ratio > 1.1
    assert abs(np.log(found.ratio[0])) < 3 * se
    # The tipping point of the estimate is the effect that made the data, up to chance.
    point = tipping_points(ratio, *ends, scale="risk", **(values | {"effect": None}))
    assert_allclose(point.of_estimate, values["effect"], rtol=0.08)


def test_of_an_estimate_and_strengths_of_its_covariates():
    rng = np.random.default_rng(1)
    n = 600
    age = rng.normal(size=n)
    sex = (rng.random(n) < 0.4).astype(float)
    treated = rng.random(n) < 1 / (1 + np.exp(-age))
    y = rs.Surv(rng.exponential(np.exp(-0.8 * age)), np.ones(n, dtype=int))
    people = rs.cohort.Population(treated)
    x = rs.Design.from_columns({"age": age * 10, "sex": sex})
    estimate = rs.cohort.fit_outcome(y, people, covariates=x)
    found = tipping_points(estimate, difference=0.5)
    assert found.observed.is_common
    expected = rs.cohort.e_value(estimate).risk_ratio
    assert_allclose(found.of_estimate, expected**2, rtol=1e-12)
    strengths = covariate_strengths(estimate, rs.cohort.balance(x, people))
    assert list(strengths) == ["age", "sex"]
    # By hand: means and variances of both arms, and the coefficient per unit.
    one, other = age[treated] * 10, age[~treated] * 10
    spread = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 2)
    assert_allclose(strengths["age"][0], (one.mean() - other.mean()) / spread, rtol=1e-10)
    assert_allclose(np.log(strengths["age"][1]), estimate.coef[0] * spread, rtol=1e-10)
    plain = rs.cohort.fit_outcome(y, people)
    with pytest.raises(rs.CohortError, match="no covariate of the balance"):
        covariate_strengths(plain, rs.cohort.balance(x, people))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"target_prevalence": 1.2, "comparator_prevalence": 0.1}, "`target_prevalence` must be"),
        ({"target_prevalence": 0.2, "difference": 0.1}, "describes a binary and `difference`"),
        ({"difference": 0.2, "effect": 2}, "exactly one of `difference`, `effect`"),
        ({"target_prevalence": 0.2}, "must be left out, but 2 are"),
        ({}, "must be left out, but 2 are"),
        ({"effect": 0.0}, "`effect` must be above 0"),
        ({"effect": "two"}, "`effect`"),
        ({"difference": [0.2, np.inf]}, "`difference` must be finite"),
        ({"difference": []}, "`difference` has no value"),
        ({"effect": [2, -1.5]}, "`effect` must be above 0, but -1.5 is among them"),
        ({"effect": 2, "difference": 1}, "Hint: use `riskset.cohort.adjust_for_confounder`"),
    ],
)
def test_refused(values, words):
    with pytest.raises(rs.CohortError) as caught:
        tipping_points(1.5, **OF_15, **values)
    assert words in str(caught.value)
    assert caught.value.code == "BadConfounder"


def test_adjustment_needs_everything():
    with pytest.raises(rs.CohortError, match="`difference` is missing"):
        adjust_for_confounder(1.5, **OF_15, effect=2)
    with pytest.raises(rs.CohortError, match="`target_prevalence` is missing"):
        adjust_for_confounder(1.5, **OF_15, comparator_prevalence=0.1, effect=2)
    with pytest.raises(rs.CohortError, match="`common` is missing"):
        adjust_for_confounder(1.5, 1.2, 1.8, scale="hazard", difference=0.1, effect=2)
