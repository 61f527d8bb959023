"""Hazard ratios of adjusted cohorts: R's numbers, and by hand."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from cohort.golden import (
    COMPETING,
    EFFECTS,
    ERROR,
    HAZARD,
    MATCHINGS,
    RHC,
    STRATA,
    TRIMS,
    WEIGHTS,
    rhc_covariates,
    rhc_matched,
    rhc_outcome,
    rhc_people,
    rhc_strata,
    rhc_trimmed,
    rhc_weighted,
    table,
)
from cohort.test_curves import competing_outcome, competing_people
from reference import GOLDEN, read_json

TOL = 1e-11


def fit(adjustment, **options):
    return rs.cohort.fit_outcome(rhc_outcome(), adjustment, tol=TOL, **options)


def check(found, expected, *, robust="se_robust"):
    assert found.status == "ok"
    assert found.target.exposures + found.comparator.exposures == expected["n"]
    assert found.target.outcomes + found.comparator.outcomes == expected["events"]
    assert found.target.outcomes == expected["events_target"]
    assert_allclose(found.log_hr, expected["log_hr"], **HAZARD)
    assert_allclose(found.log_likelihood, expected["loglik"], **HAZARD)
    assert_allclose(found.null_log_likelihood, expected["loglik_null"], **HAZARD)
    assert_allclose(found.se_model, expected["se_model"], **ERROR)
    assert_allclose(found.se_robust, expected[robust], **ERROR)
    if found.interval == "robust":
        assert_allclose(found.se, expected[robust], **ERROR)


def check_profile(found, expected):
    assert found.interval == "profile"
    assert_allclose(found.lower, expected["log_lb95"], **ERROR)
    assert_allclose(found.upper, expected["log_ub95"], **ERROR)
    assert_allclose(found.se, expected["se_from_ci"], **ERROR)
    assert_allclose(found.llr, expected["llr_vs_null"], rtol=1e-6)


# ------------------------------------------------------------------------------- one cause


def test_before_adjustment():
    expected = RHC["before"]
    found = fit(rhc_people())
    check(found, expected["cox_breslow"])
    check_profile(found, expected["profile_ci"])
    check(fit(rhc_people(), ties="efron"), expected["cox_efron"])
    assert_allclose(found.mdrr, expected["mdrr"], rtol=1e-12)


@pytest.mark.parametrize("name", MATCHINGS)
def test_matched(name):
    adjustment, expected = rhc_matched(name), RHC["match"][MATCHINGS[name]]
    found = fit(adjustment)
    assert found.reading == "stratified"
    # The rows of a set are no independent pieces of its likelihood.
    of_sets = EFFECTS["matched_as_strata_se_robust_cluster"][f"set_{name}"]
    check(found, expected["cox_stratified_by_set"] | {"of_sets": of_sets}, robust="of_sets")
    check_profile(found, expected["profile_ci_stratified"])
    other = found.sensitivity
    assert (other.reading, other.interval, other.estimand) == ("marginal", "robust", "att")
    check(other, expected["cox_att_weighted_cluster_set"], robust="se_robust_cluster")
    pooled = fit(adjustment, reading="pooled")
    check(pooled, expected["cox_unweighted_cluster_set"], robust="se_robust_cluster")
    assert_allclose(found.mdrr, expected["mdrr"], rtol=1e-12)


@pytest.mark.parametrize("name", MATCHINGS)
def test_matched_without_clusters(name):
    """The sandwich by person instead of by set."""
    matched, expected = rhc_matched(name), RHC["match"][MATCHINGS[name]]
    people = rs.cohort.Adjustment("weighting", "att", matched.population, matched.weight)
    check(fit(people), expected["cox_att_weighted_cluster_set"])
    everyone = rs.cohort.restrict(matched.population, matched.kept, "matched")
    check(fit(everyone, interval="robust"), expected["cox_unweighted_cluster_set"])


def test_first_matching_of_the_other_file():
    expected = read_json(GOLDEN / "rhc.json")["match_1to1_closest_pair_first"]
    found = fit(rhc_matched("r1"))
    assert_allclose(found.log_hr, expected["coef_swang1_stratified_by_pair"], **HAZARD)
    assert_allclose(found.sensitivity.log_hr, expected["coef_swang1"], **HAZARD)
    assert_allclose(found.sensitivity.se_model, expected["se"], **ERROR)


@pytest.mark.parametrize("name", STRATA)
def test_strata(name):
    adjustment, expected = rhc_strata(name), RHC["strata"][STRATA[name][0]]
    found = fit(adjustment)
    check(found, expected["cox_stratified"])
    check_profile(found, expected["profile_ci"])
    check(found.sensitivity, expected["cox_weighted"])
    assert found.informative_strata == len(expected["n_target"])
    counts = adjustment.set_id, adjustment.population.is_target
    y = rhc_outcome()
    for s, (of_target, of_comparator) in enumerate(
        zip(
            expected["events_target"].values(),
            expected["events_comparator"].values(),
            strict=True,
        ),
        start=1,
    ):
        own = counts[0] == s
        assert y["event"][own & counts[1]].sum() == of_target
        assert y["event"][own & ~counts[1]].sum() == of_comparator


@pytest.mark.parametrize("name", STRATA)
def test_within_each_stratum(name):
    adjustment, expected = rhc_strata(name), RHC["strata"][STRATA[name][0]]
    for s, log_hr in enumerate(expected["mh_style_hr_within"], start=1):
        own = rs.cohort.restrict(rhc_people(), adjustment.set_id == s, f"stratum {s}")
        # One of them is 0.0001: R's fits are good to 1e-9.
        assert_allclose(fit(own, interval="wald").log_hr, log_hr, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", WEIGHTS)
def test_weighted(name):
    found = fit(rhc_weighted(name))
    assert (found.reading, found.interval, found.sensitivity) == ("marginal", "robust", None)
    check(found, RHC["weights"][name]["cox"])


@pytest.mark.parametrize("name", TRIMS)
def test_trimmed(name):
    expected = RHC["trim"][name]
    check(fit(rhc_trimmed(name)), expected["cox_unweighted"])
    weighted = rs.cohort.weight(rhc_trimmed(name), "ate", stabilise=True)
    check(fit(weighted), expected["ate_stab_ps_kept"]["cox"])


def test_two_blocks_of_the_other_file():
    file = read_json(GOLDEN / "rhc.json")
    expected = file["iptw_stabilised"]
    found = fit(rhc_weighted("ate_stab"))
    assert_allclose(found.log_hr, expected["coef"], **HAZARD)
    assert_allclose(found.se**2, expected["robust_var"], rtol=1e-6)
    expected = file["cox_all_covariates"]
    found = fit(rhc_people(), covariates=rhc_covariates())
    assert_allclose(found.log_hr, expected["coef_swang1"], **HAZARD)
    assert_allclose(found.se_model, expected["se_swang1"], **ERROR)
    assert_allclose(found.log_likelihood, expected["loglik"][1], rtol=1e-10)
    # The likelihood ratio is of the treatment alone.
    without = rs.Cox(tol=TOL).fit(rhc_covariates(), rhc_outcome()).log_likelihood_
    assert_allclose(found.llr, found.log_likelihood - without, rtol=1e-7)


# -------------------------------------------------------------------------- competing risks


@functools.cache
def competing(name):
    people = competing_people()
    if name == "matched":
        return rs.cohort.match(people)
    if name == "strata":
        return rs.cohort.stratify(people, 5)
    if name == "ato":
        return rs.cohort.weight(people, "ato")
    if name == "iptw":
        return rs.cohort.weight(people, "ate", stabilise=True)
    return people


FINE_GRAY = {
    "unadjusted": ("everybody", {}),
    "matched_1to1_cluster_set": ("matched", {"reading": "marginal"}),
    "ps_strata5_common_G": ("strata", {"reading": "stratified"}),
    "ps_strata5_G_by_stratum": (
        "strata",
        {"reading": "stratified", "censoring_group": "stratum"},
    ),
    "iptw_ate_stab_G_unweighted": ("iptw", {}),
    "iptw_ate_stab_G_weighted": ("iptw", {"censoring_weights": "case"}),
    "ato_G_unweighted": ("ato", {}),
}


@pytest.mark.parametrize("key", FINE_GRAY)
def test_fine_gray(key):
    name, options = FINE_GRAY[key]
    expected = COMPETING["fine_gray"][key]
    found = rs.cohort.fit_outcome(
        competing_outcome(), competing(name), "finegray", tol=TOL, **options
    )
    assert found.status == "ok"
    assert found.interval == "robust"
    assert_allclose(found.log_hr, expected["log_shr"], **HAZARD)
    assert_allclose(found.log_likelihood, expected["loglik"], **HAZARD)
    assert_allclose(found.null_log_likelihood, expected["loglik_null"], **HAZARD)
    assert_allclose(found.se_model, expected["se_model"], **ERROR)
    counts = (found.target, found.comparator)
    assert sum(arm.exposures for arm in counts) == expected["n"]
    assert sum(arm.outcomes for arm in counts) == expected["events"]
    assert sum(arm.competing for arm in counts) == expected["competing"]


def test_fine_gray_as_crr():
    expected = COMPETING["fine_gray"]["crr_unadjusted"]
    found = rs.cohort.fit_outcome(competing_outcome(), competing("everybody"), "finegray", tol=TOL)
    # crr stops early: the two programs differ by 5e-7.
    assert_allclose(found.log_hr, expected["log_shr"], rtol=0, atol=5e-7)
    assert_allclose(found.se, expected["se_crr"], **ERROR)
    assert_allclose(found.log_likelihood, expected["loglik"], **HAZARD)
    assert_allclose(found.null_log_likelihood, expected["loglik_null"], **HAZARD)


@pytest.mark.parametrize("key", FINE_GRAY)
def test_fine_gray_robust_errors_with_censoring_taken_as_known(key):
    """What R's coxph on expanded data gives, from the model's own score residuals."""
    name, options = FINE_GRAY[key]
    people = competing(name)
    adjustment = (
        rs.cohort.restrict(people, np.ones(800, bool), "x") if name == "everybody" else people
    )
    rows = np.flatnonzero(adjustment.kept)
    x = adjustment.population.treatment[rows, None].astype(float)
    y = competing_outcome()[rows]
    group = adjustment.set_id[rows] if "censoring_group" in options else None
    stratified = options.get("reading") == "stratified"
    arguments = {
        "sample_weight": None if stratified else adjustment.weight[rows],
        "strata": adjustment.set_id[rows] if stratified else None,
    }
    censoring = options.get("censoring_weights", "none")
    model = rs.FineGray(censoring_group=group, censoring_weights=censoring, tol=TOL)
    model.fit(x, y, **arguments)
    weight = np.ones(rows.size) if stratified else adjustment.weight[rows]
    score = model.residuals(x, y, "score", **arguments)[:, 0] * weight
    by_cluster = score
    if name == "matched":
        _, own = np.unique(adjustment.set_id[rows], return_inverse=True)
        by_cluster = np.bincount(own, score)
    error = model.variance_[0, 0] * np.sqrt((by_cluster**2).sum())
    expected = COMPETING["fine_gray"][key]["se_robust_cluster"]
    assert_allclose(error, expected, **ERROR)


@pytest.mark.parametrize(
    ("key", "name", "reading"),
    [
        ("unadjusted", "everybody", "auto"),
        ("ps_strata5", "strata", "stratified"),
        ("iptw_ate_stab", "iptw", "auto"),
    ],
)
def test_cause_specific(key, name, reading):
    found = rs.cohort.fit_outcome(
        competing_outcome(), competing(name), "cause-specific", reading=reading, tol=TOL
    )
    check(found, COMPETING["cause_specific_cox"][key])
    assert found.columns()["model"] == "cause-specific"


def test_numbers_by_status():
    found = rs.cohort.fit_outcome(competing_outcome(), competing("everybody"))
    expected = COMPETING["n_by_status"]
    assert found.target.outcomes + found.comparator.outcomes == expected["1"]
    assert found.target.competing + found.comparator.competing == expected["2"]
    assert (table("cr_cohort")["status"] == 0).sum() == expected["0"]


# ---------------------------------------------------------------------------------- by hand


def test_matched_pairs_have_a_closed_form():
    """In pairs the hazard ratio is the ratio of the pairs whose first event is in each arm."""
    time = np.array([1, 2, 1, 3, 2, 5, 4, 3, 1, 9], dtype=float)  # target, comparator, ...
    event = np.ones(10, dtype=int)
    treat = np.tile([1, 0], 5)
    score = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 2)
    pairs = rs.cohort.match(rs.cohort.Population(treat, score))
    found = rs.cohort.fit_outcome(rs.Surv(time, event), pairs, tol=TOL)
    # Targets are first in four pairs, comparators in one; the information is 5 (4/5) (1/5).
    assert_allclose(found.log_hr, np.log(4), rtol=1e-9)
    assert_allclose(found.se_model, np.sqrt(5 / 4), rtol=1e-9)
    assert_allclose(found.log_likelihood, 4 * np.log(0.8) + np.log(0.2), rtol=1e-9)
    assert (found.informative_strata, found.informative_people) == (5, 10)


def test_weights_of_two_are_people_twice():
    rng = np.random.default_rng(3)
    treat, time = rng.integers(0, 2, 40), rng.integers(1, 20, 40).astype(float)
    event, twice = rng.integers(0, 2, 40), rng.integers(1, 3, 40)
    weighted = rs.cohort.Adjustment(
        "weighting", "ate", rs.cohort.Population(treat), twice.astype(float)
    )
    found = rs.cohort.fit_outcome(rs.Surv(time, event), weighted)
    rows = np.repeat(np.arange(40), twice)
    many = rs.cohort.Population(treat[rows], person_id=rows)
    expected = rs.cohort.fit_outcome(rs.Surv(time[rows], event[rows]), many)
    assert_allclose(found.log_hr, expected.log_hr, rtol=1e-8)
    # The rows of one person belong together.
    assert expected.interval == "robust"
    assert_allclose(found.se, expected.se, rtol=1e-8)
    assert expected.target.persons == found.target.exposures


def test_penalised_covariates():
    penalty = rs.L1(20.0, unpenalized=["treatment"])
    found = fit(rhc_people(), covariates=rhc_covariates(), penalty=penalty)
    names = ["treatment", *rhc_covariates().names]
    x = np.column_stack([rhc_people().treatment, rhc_covariates().to_dense()])
    direct = rs.Cox(rs.L1(20.0, unpenalized=[0]), tol=TOL).fit(x, rhc_outcome())
    assert_allclose(found.log_hr, direct.coef_[0], rtol=1e-8)
    assert found.interval == "profile"
    assert len(names) == 71
    # The treatment is left alone in any case.
    again = fit(rhc_people(), covariates=rhc_covariates(), penalty=rs.L1(20.0))
    assert again.log_hr == found.log_hr
    assert again.penalty.unpenalized == ("treatment",)


def test_bootstrap_of_sets():
    found = fit(rhc_matched("r1"), reading="marginal", interval="bootstrap", replicates=60)
    assert found.interval == "bootstrap"
    # Twice the standard error of 60 replicates is about 20 % of the error.
    expected = RHC["match"]["ratio1"]["cox_att_weighted_cluster_set"]["se_robust_cluster"]
    assert_allclose(found.se, expected, rtol=0.25)


def test_frame_and_words():
    found = fit(rhc_matched("r1"))
    frame = found.to_frame("pyarrow")
    assert frame.column("reading").to_pylist() == ["stratified", "marginal"]
    assert frame.column("hr").to_pylist()[0] == pytest.approx(np.exp(0.194264739638129))
    assert "other reading" in repr(found)
