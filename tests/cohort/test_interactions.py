"""Effects that differ between subgroups: R's numbers, exact identities, and what is left out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from cohort.golden import (
    ERROR,
    HAZARD,
    INTERACTIONS,
    rhc_matched,
    rhc_outcome,
    rhc_people,
    rhc_strata,
    rhc_weighted,
    table,
)
from cohort.test_curves import competing_outcome, competing_people

TOL = 1e-11


def groups():
    own = table("rhc_ps")
    return rs.Design.from_columns({"sex_male": own["sex_male"], "sepsis": own["sepsis"]})


READINGS = {
    "plain": (rhc_people, "marginal", "profile"),
    "matched_r1_cluster_set": (lambda: rhc_matched("r1"), "marginal", "robust"),
    "iptw_ate_stab": (lambda: rhc_weighted("ate_stab"), "marginal", "robust"),
    "strata5": (lambda: rhc_strata("s5_all"), "stratified", "wald"),
}


@pytest.mark.parametrize("key", READINGS)
def test_as_in_r(key):
    make, reading, interval = READINGS[key]
    expected = INTERACTIONS[key]
    found = rs.cohort.fit_outcome(
        rhc_outcome(), make(), reading=reading, interactions=groups(), interval=interval, tol=TOL
    )
    assert found.status == "ok"
    assert_allclose(found.log_hr, expected["coef"]["treat"], **HAZARD)
    assert_allclose(found.se_model, expected["se_model"]["treat"], **ERROR)
    assert_allclose(found.se_robust, expected["se_robust"]["treat"], **ERROR)
    loglik = [found.null_log_likelihood, found.log_likelihood]
    assert_allclose(loglik, expected["loglik"], **HAZARD)
    for own in found.subgroups:
        name = f"treat:{own.name}"
        assert_allclose(own.log_ratio, expected["coef"][name], rtol=0, atol=2e-9)
        if interval == "profile":
            continue
        kind = "se_robust" if interval == "robust" else "se_model"
        assert_allclose(own.se, expected[kind][name], **ERROR)
        ends = own.log_ratio + np.array([-1, 1]) * 1.959963984540054 * own.se
        assert_allclose([own.lower, own.upper], ends, rtol=1e-9)
    sex = found.subgroups[0]
    assert_allclose(sex.log_hr, found.log_hr + sex.log_ratio, rtol=1e-12)
    if interval == "robust":
        se = [expected["se_robust"][name] for name in ("treat", "treat:sex_male")]
        both = np.sqrt(se[0] ** 2 + se[1] ** 2 + 2 * expected["cov_robust_treat_sex"])
        assert_allclose(sex.se_log_hr, both, **ERROR)


def test_profile_interval_of_an_interaction():
    found = rs.cohort.fit_outcome(rhc_outcome(), rhc_people(), interactions=groups(), tol=TOL)
    own, expected = found.subgroups[0], INTERACTIONS["profile_treat_sex"]
    assert_allclose([own.lower, own.upper], [expected["lower"], expected["upper"]], **ERROR)


def test_fine_gray_as_crr():
    x1 = table("cr_cohort")["x1"]
    found = rs.cohort.fit_outcome(
        competing_outcome(),
        competing_people(),
        "finegray",
        interactions=rs.Design.from_columns({"x1": x1}),
        tol=TOL,
    )
    expected, own = INTERACTIONS["fine_gray_crr"], found.subgroups[0]
    assert_allclose(found.log_hr, expected["coef"]["treat"], rtol=0, atol=1e-6)
    assert_allclose(found.se, expected["se"]["treat"], **ERROR)
    assert_allclose(own.log_ratio, expected["coef"]["inter"], rtol=0, atol=1e-6)
    assert_allclose(own.se, expected["se"]["inter"], **ERROR)
    assert_allclose(found.log_likelihood, expected["loglik"], **HAZARD)


def test_sets_within_the_subgroups_are_two_fits():
    """Matched within sex, nothing ties the sexes together: exactly the two separate answers."""
    matched = rhc_matched("r1_sex_age65")
    male = table("rhc_ps")["sex_male"]
    y = rhc_outcome()
    both = rs.cohort.fit_outcome(
        y, matched, reading="stratified", interactions=rs.Design.from_columns({"m": male}), tol=TOL
    )
    alone = [
        rs.cohort.fit_outcome(
            y, rs.cohort.restrict(matched, male == sex, "sex"), reading="stratified", tol=TOL
        )
        for sex in (0, 1)
    ]
    own = both.subgroups[0]
    assert_allclose(both.log_hr, alone[0].log_hr, rtol=1e-8)
    assert_allclose(own.log_hr, alone[1].log_hr, rtol=1e-8)
    assert_allclose([own.target.outcomes], [alone[1].target.outcomes])
    assert_allclose(
        both.log_likelihood, alone[0].log_likelihood + alone[1].log_likelihood, rtol=1e-10
    )


def test_subgroups_keep_weights_and_sets():
    matched = rhc_matched("r4")
    male = table("rhc_ps")["sex_male"] == 1
    part = rs.cohort.restrict(matched, male, "men")
    assert (part.kind, part.estimand) == ("matching", "att")
    np.testing.assert_array_equal(part.weight, np.where(male, matched.weight, 0))
    np.testing.assert_array_equal(part.set_id, np.where(male, matched.set_id, -1))
    assert part.attrition[-1].step == "men"
    x = male[:, None].astype(float)
    found = rs.cohort.balance(x, part)  # everybody left is a man
    assert_allclose([found.after.mean_target[0], found.after.mean_comparator[0]], 1, rtol=1e-12)


def test_interactions_without_an_outcome_are_left_out():
    rng = np.random.default_rng(8)
    n = 200
    treat, rare, half = rng.integers(0, 2, (3, n)).astype(float)
    rare[rng.random(n) < 0.85] = 0
    event = (rng.random(n) < 0.6).astype(int)
    event[(treat == 1) & (rare == 1)] = 0
    y = rs.Surv(rng.exponential(size=n) + 0.01, event)
    people = rs.cohort.Population(treat)
    columns = {"rare": rare, "half": half, "none": np.zeros(n)}
    found = rs.cohort.fit_outcome(y, people, interactions=rs.Design.from_columns(columns))
    assert found.status == "ok"
    by_name = {own.name: own for own in found.subgroups}
    assert by_name["rare"].is_separable
    assert by_name["none"].is_separable
    assert np.isnan(by_name["rare"].log_ratio)
    assert by_name["rare"].target.outcomes == 0
    assert by_name["rare"].target.persons == int(((treat == 1) & (rare == 1)).sum())
    note = next(note for note in found.notes if note.code == "separable_interaction")
    assert set(note.columns) == {"rare", "none"}
    # What is left is the model without the product; main effects stay.
    x = np.c_[treat, treat * half, rare, half]
    direct = rs.Cox(tol=1e-10).fit(x, y)
    assert_allclose(found.log_hr, direct.coef_[0], rtol=1e-7)
    assert_allclose(by_name["half"].log_ratio, direct.coef_[1], rtol=1e-7)
    frame = found.subgroup_frame("pyarrow")
    assert frame.column("is_separable").to_pylist() == [True, False, True]
    assert frame.column("log_ratio").to_pylist()[0] is None
    assert "3 interactions" in repr(found)


def test_interactions_beside_penalised_covariates():
    rng = np.random.default_rng(2)
    n = 300
    x = (rng.random((n, 4)) < 0.4).astype(float)
    treat = (rng.random(n) < 0.5).astype(float)
    time = rng.exponential(np.exp(-0.4 * x[:, 0] - 0.5 * treat * x[:, 1])) + 0.01
    y = rs.Surv(time, np.ones(n, dtype=int))
    design = rs.Design.from_dense(x)
    found = rs.cohort.fit_outcome(
        y,
        rs.cohort.Population(treat),
        covariates=design,
        interactions=rs.Design.from_columns({"x1": x[:, 1]}),
        penalty=rs.L1(5.0),
        tol=1e-10,
    )
    full = np.c_[treat, treat * x[:, 1], x]
    direct = rs.Cox(rs.L1(5.0, unpenalized=[0, 1, 3]), tol=1e-10).fit(full, y)
    assert_allclose(found.log_hr, direct.coef_[0], rtol=1e-6)
    assert_allclose(found.subgroups[0].log_ratio, direct.coef_[1], rtol=1e-6)
    assert np.isnan(found.subgroups[0].se_log_hr)
    assert found.subgroups[0].lower < found.subgroups[0].log_ratio < found.subgroups[0].upper


def test_one_name_for_two_covariates_is_refused():
    """Matrices without names call theirs x0, x1, ..."""
    rng = np.random.default_rng(1)
    people = rs.cohort.Population(rng.integers(0, 2, 80), rng.random(80))
    y = rs.Surv(rng.integers(1, 50, 80), rng.integers(0, 2, 80))
    a, b = rng.integers(0, 2, (2, 80, 1))
    with pytest.raises(rs.InputError, match="both have a covariate 'x0', but not the same one"):
        rs.cohort.fit_outcome(y, people, covariates=a, interactions=b)
    once = rs.cohort.fit_outcome(y, people, interactions=b)
    same = rs.cohort.fit_outcome(y, people, covariates=b * 3.0, interactions=b)
    assert same.log_hr == pytest.approx(once.log_hr, rel=1e-7)
    named = [rs.Design.from_dense(x, [name]) for x, name in ((a, "a"), (b, "b"))]
    both = rs.cohort.fit_outcome(y, people, covariates=named[0], interactions=named[1])
    assert abs(both.log_hr - once.log_hr) > 1e-4
