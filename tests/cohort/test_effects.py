"""Adjusted models with covariates and clusters, and what goes beside them: the numbers of R."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from cohort.golden import (
    CURVE,
    EFFECTS,
    ERROR,
    HAZARD,
    rhc_covariates,
    rhc_outcome,
    rhc_people,
    table,
)
from riskset.cohort.outcomes import Outcomes, count_arms

TOL = 1e-11


def people(name="cr_cohort"):
    """Two rows a person."""
    own = table(name)
    person = (own["id"] + 1) // 2
    return rs.cohort.Population(own["treat"], own["ps"], row_id=own["id"], person_id=person)


def outcome(swapped=False):
    own = table("cr_cohort")
    status = own["status"].astype(int)
    return rs.Surv(own["time"], np.array([0, 2, 1])[status] if swapped else status)


def covariates(name, columns):
    return rs.Design.from_columns({column: table(name)[column] for column in columns})


def check(found, expected):
    assert found.status == "ok"
    assert_allclose(found.log_hr, expected["log_hr"], **HAZARD)
    assert_allclose(found.se_model, expected["se_model"], **ERROR)
    assert_allclose(found.se_robust, expected["se_robust"], **ERROR)
    assert_allclose(found.log_likelihood, expected["loglik"], **HAZARD)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_cox_with_covariates_weights_and_persons(ties):
    made = rs.cohort.weight(people("rhc_ps"), "ate", stabilise=True)
    x = covariates("rhc_ps", ["sex_male", "age65", "sepsis"])
    found = rs.cohort.fit_outcome(rhc_outcome(), made, covariates=x, ties=ties, tol=TOL)
    assert found.interval == "robust"
    check(found, EFFECTS["adjusted_iptw_ate_stab_cluster_person"][ties])


def matched():
    return rs.cohort.match(people())


def weighted(estimand):
    return rs.cohort.weight(people(), estimand)


FINE_GRAY = {
    "matched_cluster_set": (matched, {"reading": "marginal"}),
    "matched_censoring_by_arm": (matched, {"reading": "marginal", "censoring_group": "arm"}),
    "ato_adjusted_cluster_person": (lambda: weighted("ato"), {"covariates": ["x1", "x2"]}),
    "ate_censoring_weighted_by_arm": (
        lambda: weighted("ate"),
        {"censoring_group": "arm", "censoring_weights": "case"},
    ),
    "strata_censoring_by_stratum": (
        lambda: rs.cohort.stratify(people(), 5),
        {"reading": "stratified", "censoring_group": "stratum", "covariates": ["x1", "x2"]},
    ),
    "competing_cause": (lambda: weighted("ato"), {}),
}


@pytest.mark.parametrize("key", FINE_GRAY)
def test_fine_gray(key):
    make, options = FINE_GRAY[key]
    if "covariates" in options:
        options = options | {"covariates": covariates("cr_cohort", options["covariates"])}
    y = outcome(swapped=key == "competing_cause")
    found = rs.cohort.fit_outcome(y, make(), "finegray", tol=TOL, **options)
    check(found, EFFECTS["fine_gray"][key])
    assert found.se == found.se_robust


def test_fine_gray_with_covariates_as_crr():
    own = table("cr_cohort")
    everybody = rs.cohort.Population(own["treat"])
    x = covariates("cr_cohort", ["x1", "x2"])
    found = rs.cohort.fit_outcome(outcome(), everybody, "finegray", covariates=x, tol=TOL)
    check(found, EFFECTS["fine_gray"]["adjusted"])


@pytest.mark.parametrize("key", ["ato_adjusted", "matched"])
def test_second_cause(key):
    options = {"reading": "marginal"}
    if key == "ato_adjusted":
        options["covariates"] = covariates("cr_cohort", ["x1", "x2"])
    made = matched() if key == "matched" else weighted("ato")
    found = rs.cohort.fit_outcome(outcome(swapped=True), made, "cause-specific", tol=TOL, **options)
    check(found, EFFECTS["second_cause"][key])


@pytest.mark.parametrize("key", EFFECTS["proportionality_log_p"])
def test_proportional_hazards(key):
    own = table("cr_cohort")
    alone = rs.cohort.Population(own["treat"], own["ps"], row_id=own["id"])
    x = covariates("cr_cohort", ["x1", "x2"])
    made, options = {
        "crude": (alone, {}),
        "strata": (rs.cohort.stratify(alone, 5), {"reading": "stratified"}),
        "ate": (rs.cohort.weight(alone, "ate"), {}),
        "ate_persons_adjusted_efron": (weighted("ate"), {"covariates": x, "ties": "efron"}),
        "matched": (matched(), {"reading": "marginal"}),
    }[key]
    found = rs.cohort.fit_outcome(outcome(), made, tol=TOL, **options)
    expected = EFFECTS["proportionality_log_p"][key]
    assert_allclose(found.proportionality_p, expected, rtol=1e-7)


def test_robust_proportionality_does_not_see_the_scale_of_weights():
    own = table("cr_cohort")
    y, x = outcome(), np.column_stack([own["treat"], own["x1"]])
    for model in (rs.Cox(cause=1), rs.FineGray(cause=1, censoring_weights="none")):
        weight = np.where(own["treat"] == 1, 1 / own["ps"], 1 / (1 - own["ps"]))
        p = []
        for w in (weight, 5 * weight):
            model.fit(x, y, sample_weight=w)
            test = model.test_proportionality(x, y, sample_weight=w, robust=True)
            p.append([*test.p_value, test.global_p_value])
        assert_allclose(p[0], p[1], rtol=1e-6)


def test_incidence():
    expected = EFFECTS["incidence_ato"]
    found = rs.cohort.incidence(outcome(), weighted("ato")).columns(expected["time"])
    for arm in ("target", "comparator"):
        for cause in (1, 2):
            own, block = (found["arm"] == arm) & (found["cause"] == cause), expected[arm]
            block = block[f"cause{cause}"]
            assert_allclose(found["standard_error"][own], block["se"], **CURVE)
            assert_allclose(found["lower"][own], block["lower"], **CURVE)
            assert_allclose(found["upper"][own], block["upper"], **CURVE)


def test_rates_of_persons_with_several_rows():
    made = weighted("ato")
    arms = count_arms(Outcomes.read(outcome(), made), made)
    for name, arm in zip(("target", "comparator"), arms, strict=True):
        expected = EFFECTS["rates_ato"][name]
        plain = [arm.rate, arm.rate_lower, arm.rate_upper]
        assert_allclose(plain, expected["rate"], rtol=1e-10)
        own = [arm.weighted_rate, arm.weighted_rate_lower, arm.weighted_rate_upper]
        assert_allclose(own, expected["weighted"], rtol=1e-10)


def test_auc():
    found = rs.cohort.auc(rhc_people())
    assert_allclose(found.auc, EFFECTS["auc"]["auc"], rtol=1e-13)
    assert_allclose(found.interval(), EFFECTS["auc"]["interval"], rtol=1e-12)


def test_error_of_a_subgroup_beside_a_bootstrap():
    """Weights are no numbers of people there, either: the error of a level is the robust one."""
    options = {"interactions": covariates("cr_cohort", ["x1"]), "tol": TOL}
    made = rs.cohort.weight(people(), "ate")
    drawn, robust = (
        rs.cohort.fit_outcome(outcome(), made, interval=interval, **options).subgroups[0]
        for interval in ("bootstrap", "robust")
    )
    assert drawn.se_log_hr == robust.se_log_hr
    assert drawn.se != robust.se


# ---------------------------------------------------------------------- propensity scores


def penalised_score(**options):
    people = rs.cohort.Population(rhc_people().treatment)
    return rs.cohort.propensity_score(
        people, rhc_covariates(), rs.L1(20.0), on_high_correlation="warn", **options
    )


def test_penalised_score_as_glmnet():
    expected = EFFECTS["propensity_l1"]
    found = penalised_score(tol=1e-11)
    wanted = list(expected["coef_l1_20"].values())
    assert_allclose(found.coef, wanted, rtol=0, atol=1e-8)
    assert_allclose(found.intercept, expected["intercept"], rtol=0, atol=1e-7)
    assert_allclose(found.log_likelihood, expected["loglik_l1_20"], rtol=1e-10)
    assert np.count_nonzero(found.coef) == expected["nonzero"]


def test_penalty_of_a_score_in_given_folds():
    """The strength is that on the total log likelihood, in every fold, too."""
    expected = EFFECTS["propensity_l1"]
    fold = (table("rhc_ps")["id"] % 5).astype(int)
    people = rs.cohort.Population(rhc_people().treatment, person_id=np.arange(fold.size) // 2)
    found = rs.cohort.propensity_score(
        people,
        rhc_covariates(),
        rs.L1(),
        folds=fold,
        repeats=1,
        search="grid",
        on_high_correlation="warn",
    )
    cv = found.cross_validation
    assert_allclose([p.l1 for p in cv.penalties], expected["grid"], rtol=1e-9)
    assert_allclose(cv.scores, expected["held_out"], rtol=0, atol=2e-3)  # replicates stop at 1e-5
    assert cv.chosen == np.argmax(np.sum(expected["held_out"], axis=1))
