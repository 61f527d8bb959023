"""Propensity scores: R's, and what is said where covariates determine the treatment."""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit

import riskset as rs
from cohort.golden import (
    ERROR,
    HAZARD,
    RHC,
    SMD,
    TRIMS,
    WEIGHTS,
    rhc_covariates,
    rhc_outcome,
    rhc_people,
    rhc_trimmed,
    rhc_weighted,
    table,
)
from reference import GOLDEN, read_json
from riskset.cohort.propensity.propensity_checks import correlations, one_arm_only
from storages import each_storage

BY_R = read_json(GOLDEN / "rhc.json")


def score(t, x, penalty=None, **options):
    return rs.cohort.propensity_score(t, x, penalty, **options)


@pytest.fixture(scope="module")
def fitted():
    return score(rhc_people(), rhc_covariates())


def test_maximum_likelihood_as_in_r(fitted):
    by_r = BY_R["ps_logistic_mle"]
    assert fitted.status == "ok"
    assert fitted.kkt <= 1e-8
    assert_allclose(fitted.intercept, by_r["(Intercept)"], rtol=1e-9)
    assert_allclose(fitted.coef, [by_r[name] for name in fitted.names], rtol=1e-8)
    assert_allclose(fitted.score, table("rhc_ps")["ps"], rtol=1e-9)
    assert_allclose(fitted.preference[:5], RHC["ps"]["preference_head"], rtol=1e-9)
    assert_allclose(rs.cohort.auc(fitted.population).auc, BY_R["ps_auc"], rtol=1e-12)
    assert_allclose(fitted.logit, logit(table("rhc_ps")["ps"]), atol=1e-10)


def test_its_scores_lead_to_the_same_study(fitted):
    for ratio in (1, 2):
        ours = rs.cohort.match(fitted.population, ratio=ratio)
        theirs = rs.cohort.match(rhc_people(), ratio=ratio)
        assert_array_equal(ours.set_id, theirs.set_id)
    for name in ("ate", "ato"):
        ours = rs.cohort.weight(fitted.population, **WEIGHTS[name])
        assert_allclose(ours.weight, rhc_weighted(name).weight, rtol=1e-9)


def test_overlap_weights_balance_every_mean(fitted):
    # An identity of maximum likelihood: sum of w x is the same in both arms.
    x, t = rhc_covariates().to_dense(), fitted.population.is_target
    w = np.where(t, 1 - fitted.score, fitted.score)
    difference = w[t] @ x[t] / w[t].sum() - w[~t] @ x[~t] / w[~t].sum()
    assert np.abs(difference / x.std(axis=0)).max() < SMD["atol"]


def test_lasso_as_in_glmnet():
    by_r = BY_R["ps_lasso"]
    n = rhc_people().n_rows
    found = score(rhc_people(), rhc_covariates(), rs.L1(by_r["lambda"] * n))
    coef = by_r["coef"]
    assert_allclose(found.intercept, coef["(Intercept)"], atol=1e-6)
    assert_allclose(found.coef, [coef.get(name, 0.0) for name in found.names], atol=1e-7)
    assert set(np.array(found.names)[found.coef != 0]) | {"(Intercept)"} == set(coef)
    listed = found.coefficients("polars")
    assert listed.height == len(coef) - 1
    assert listed["name"][0] == "fac_cat1_MOSF_w.Sepsis"


@functools.cache
def refitted(name):
    """The model of those whom trimming left, by maximum likelihood."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rs.RisksetWarning)  # rare covariates of one arm
        return score(rhc_trimmed(name), rhc_covariates())


@pytest.mark.parametrize("name", TRIMS)
def test_a_model_of_those_left_by_trimming(name):
    expected, found = RHC["trim"][name], refitted(name)
    trimmed = rhc_trimmed(name)
    kept = trimmed.kept
    own = found.score[kept]
    assert_allclose([own.min(), own.max()], expected["ps_refit_range"], rtol=1e-7, atol=1e-9)
    assert_array_equal(found.people.kept, kept)
    assert found.people.attrition == trimmed.attrition
    weighted = rs.cohort.weight(found.people, "ate", stabilise=True)
    result = rs.cohort.fit_outcome(rhc_outcome(), weighted, tol=1e-11)
    by_r = expected["ate_stab_ps_refitted"]
    assert result.target.exposures + result.comparator.exposures == by_r["n"]
    assert result.target.outcomes + result.comparator.outcomes == by_r["events"]
    assert result.target.outcomes == by_r["events_target"]
    assert_allclose(result.log_hr, by_r["log_hr"], **HAZARD)
    assert_allclose(result.log_likelihood, by_r["loglik"], **HAZARD)
    assert_allclose(result.null_log_likelihood, by_r["loglik_null"], **HAZARD)
    assert_allclose(result.se_model, by_r["se_model"], **ERROR)
    assert_allclose(result.se_robust, by_r["se_robust"], **ERROR)


def test_scores_of_people_beside_the_model():
    found = refitted("symmetric_0.1")
    kept = rhc_trimmed("symmetric_0.1").kept
    x, t = rhc_covariates().to_dense(), rhc_people().is_target
    assert np.isfinite(found.coef).all()
    assert_allclose(found.score, expit(found.intercept + x @ found.coef), rtol=1e-9)
    # The equations of maximum likelihood hold for those left alone.
    assert abs((t - found.score)[kept].sum()) < 1e-6
    assert abs((t - found.score).sum()) > 1
    share = t[kept].mean()
    assert found.population.share == share
    assert_allclose(found.preference, expit(found.logit - logit(share)), rtol=1e-12)


def test_a_model_of_a_sample():
    t, x = simulated(3000, seed=2)
    ids = np.random.default_rng(0).permutation(3000)
    people = rs.cohort.Population(t, row_id=ids)
    found = score(people, x, max_rows=400)
    rows = []
    for arm in (0, 1):
        own = np.flatnonzero(t == arm)
        own = own[np.argsort(ids[own])]
        # Position 1 + k (n - 1) / (m - 1), rounded down and counted from 1.
        rows += [own[k * (own.size - 1) // 399] for k in range(400)]
    rows = np.sort(rows)
    alone = score(t[rows], x[rows])
    assert_allclose(found.coef, alone.coef, rtol=1e-6)
    assert_allclose(found.intercept, alone.intercept + logit(t.mean()), rtol=1e-9)
    assert_allclose(found.score, expit(found.intercept + x @ found.coef), rtol=1e-9)
    assert found.population.share == t.mean()
    # As many as there are: the same as without a limit.
    assert score(people, x, max_rows=3000).score.tobytes() == score(people, x).score.tobytes()
    with pytest.raises(rs.CohortError, match="`max_rows` must be"):
        score(people, x, max_rows=1)


def test_nobody_left_to_model():
    t, x = simulated(100)
    empty = rs.cohort.restrict(rs.cohort.Population(t, np.full(100, 0.5)), t == 1, "target")
    with pytest.warns(rs.RisksetWarning, match="one arm has no people"):
        found = score(empty, x)
    assert found.status == "one_arm_empty"
    with pytest.raises(rs.CohortError, match="scores"):
        _ = found.score  # the old ones are gone


def simulated(n, p=6, seed=0):
    rng = np.random.default_rng(seed)
    x = (rng.random((n, p)) < 0.3).astype(float)
    t = (rng.random(n) < expit(x[:, 0] + x[:, 1] - 1)).astype(int)
    return t, x


def test_the_penalty_is_chosen_by_the_people_left_out():
    t, x = simulated(900)
    found = rs.cohort.propensity_score(t, x, folds=5, repeats=2)
    cv = found.cross_validation
    assert found.status == "ok"
    assert found.penalty is cv.penalties[cv.chosen]
    assert cv.mean[cv.chosen] == cv.mean.max()
    assert cv.scores.shape[1] == 10
    again = rs.cohort.propensity_score(t, x, folds=5, repeats=2, n_threads=1)
    assert again.score.tobytes() == found.score.tobytes()
    alone = score(t, x, found.penalty)
    assert_allclose(alone.score, found.score, rtol=1e-6)


def test_an_unpenalised_covariate_and_a_checkpoint(tmp_path):
    t, x = simulated(6000, seed=9)
    options = {"folds": 4, "repeats": 1, "checkpoint": tmp_path / "ps.jsonl"}
    found = rs.cohort.propensity_score(t, x, rs.L1(unpenalized=["x5"]), **options)
    assert found.penalty.unpenalized == ("x5",)
    strongest = score(t, x, rs.L1(1e5, unpenalized=["x5"]))
    assert np.flatnonzero(strongest.coef).tolist() == [5]
    # One covariate of zeros and ones, no penalty: the shares of its two groups.
    for value in (0, 1):
        group = x[:, 5] == value
        assert_allclose(strongest.score[group], t[group].mean(), rtol=1e-8)
    again = rs.cohort.propensity_score(t, x, rs.L1(unpenalized=["x5"]), **options)
    assert again.score.tobytes() == found.score.tobytes()


def test_rows_of_a_person_stay_together():
    t, x = simulated(400)
    persons = np.repeat(np.arange(200), 2)
    people = rs.cohort.Population(t, person_id=persons)
    found = rs.cohort.propensity_score(people, x, folds=200, repeats=1, stratify=False)
    assert found.cross_validation.scores.shape[1] == 200
    with pytest.raises(rs.InputError, match="200 groups"):
        rs.cohort.propensity_score(people, x, folds=201, repeats=1, stratify=False)


@each_storage
def test_kinds_of_tables_give_the_same(store):
    t, x = simulated(300)
    names = [f"x{j}" for j in range(6)]
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    frames = (
        sp.csr_array(x),
        pl.DataFrame(x, schema=names),
        pd.DataFrame(x, columns=names),
        store(x),
    )
    expected = score(t, x, rs.L2(1.0)).score
    for frame in frames:
        assert_allclose(score(t, frame, rs.L2(1.0)).score, expected, rtol=1e-12)


def test_correlations_by_numpy():
    rng = np.random.default_rng(3)
    t = rng.random(500) < 0.3
    sparse = (rng.random((500, 2)) < 0.2) * rng.exponential(size=(500, 2))
    x = np.c_[t | (rng.random(500) < 0.1), rng.normal(5, 1e-3, 500), sparse, np.full(500, 2.0)]
    found = correlations(rs.Design.from_dense(x), t)
    expected = [np.corrcoef(t, x[:, j])[0, 1] for j in range(4)]
    assert_allclose(found[:4], expected, rtol=1e-9)
    assert found[4] == 0


def near_treatment():
    t, x = simulated(400, seed=4)
    x[:, 2] = np.where(np.arange(400) % 10 == 0, 1 - t, t)
    return t, x


def test_covariates_that_determine_the_treatment_are_named():
    t, x = near_treatment()
    with pytest.raises(
        rs.CohortError, match=r"1 covariate has a correlation .* 'x2' \(0\."
    ) as info:
        score(t, x)
    r = np.corrcoef(t, x[:, 2])[0, 1]
    assert f"'x2' ({r:.2f})" in str(info.value)
    assert info.value.code == "HighCorrelation"
    assert_allclose(info.value.details["correlation"], [r], rtol=1e-12)
    assert_allclose(info.value.details["mean_target"], [x[t == 1, 2].mean()], rtol=1e-12)
    assert_allclose(info.value.details["mean_comparator"], [x[t == 0, 2].mean()], rtol=1e-12)

    found = score(t, x, on_high_correlation="exclude")
    assert found.excluded == ("x2",)
    assert found.high_correlation.names == ("x2",)
    assert found.names == ("x0", "x1", "x3", "x4", "x5")
    assert_allclose(found.score, score(t, np.delete(x, 2, axis=1)).score, rtol=1e-9)

    with pytest.warns(rs.RisksetWarning, match="kept in the model"):
        kept = score(t, x, on_high_correlation="warn")
    assert kept.excluded == ()
    assert kept.coef[2] > 3
    assert score(t, x, max_correlation=0.999).high_correlation.names == ()


def test_columns_of_every_kind_can_be_left_out():
    t, x = near_treatment()
    rng = np.random.default_rng(5)
    valued = (rng.random((400, 2)) < 0.1) * rng.exponential(size=(400, 2))
    dense = rng.normal(size=(400, 2))
    x = np.c_[x, valued, valued[:, 0] + 9 * t * (rng.random(400) < 0.9), dense, dense[:, 0] + 5 * t]
    found = score(t, x, on_high_correlation="exclude")
    assert found.excluded == ("x2", "x8", "x11")
    assert_allclose(found.score, score(t, np.delete(x, [2, 8, 11], axis=1)).score, rtol=1e-9)


def test_rare_covariates_of_one_arm_are_listed():
    t, x = simulated(4000, seed=6)
    x[:, 3] = 0
    x[np.flatnonzero(t == 0)[:30], 3] = 1
    x[:, 4] = 0
    x[np.flatnonzero(t == 1)[:24], 4] = 1
    assert one_arm_only(rs.Design.from_dense(x), t == 1).tolist() == [3]
    found = score(t, x, rs.L1(1.0))
    assert found.one_arm_only.names == ("x3",)
    assert_allclose(found.one_arm_only.mean_comparator, 30 / np.sum(t == 0))
    assert "x3" in found.names
    assert any(note.code == "one_arm_only" for note in found.notes)


def test_separation_is_a_status():
    t, x = simulated(4000, seed=7)
    x[:, 3] = 0
    x[np.flatnonzero(t == 0)[:30], 3] = 1
    with pytest.warns(rs.RisksetWarning, match="with certainty"):
        found = score(t, x)
    assert found.status == "separated"
    assert found.coef[3] == -np.inf
    assert np.all(found.score[x[:, 3] == 1] == 0)
    assert np.all(found.logit[x[:, 3] == 1] == -34.5)
    rest = x[:, 3] == 0
    alone = score(t[rest], np.delete(x, 3, axis=1)[rest])
    assert_allclose(found.score[rest], alone.score, rtol=1e-7)
    assert score(t, x, rs.L1(1.0)).status == "ok"


def test_a_constant_score_is_a_status():
    t, x = simulated(300, seed=8)
    with pytest.warns(rs.RisksetWarning, match="proportion of the target"):
        found = score(t, x, rs.L1(1e4))
    assert found.status == "ps_constant"
    assert_allclose(found.score, t.mean(), rtol=1e-14)
    assert_allclose(found.preference, 0.5, rtol=1e-12)


def test_covariates_that_say_nothing_at_all():
    # Both arms have the same people: no gradient, and no penalty to choose.
    x = np.tile([[0.0], [1.0]], (20, 1))
    with pytest.warns(rs.RisksetWarning, match="proportion of the target"):
        found = rs.cohort.propensity_score(np.repeat([0, 1], 20), x)
    assert found.status == "ps_constant"
    assert found.cross_validation is None


@pytest.mark.parametrize(
    ("t", "x", "status"),
    [
        ([1, 1, 1], [[0], [1], [0]], "one_arm_empty"),
        ([0, 0, 0], [[0], [1], [0]], "one_arm_empty"),
        ([0, 1, 0], [[2], [2], [2]], "no_covariates"),
        ([0, 1, 0], np.zeros((3, 0)), "no_covariates"),
    ],
)
def test_nothing_to_fit(t, x, status):
    with pytest.warns(rs.RisksetWarning, match="so there is no score"):
        found = rs.cohort.propensity_score(t, np.array(x, dtype=float))
    assert found.status == status
    assert np.isnan(found.logit).all()
    with pytest.raises(rs.CohortError, match="scores"):
        _ = found.score


def test_not_converged_is_a_status():
    t, x = simulated(300)
    with pytest.warns(rs.RisksetWarning, match="did not converge"):
        assert score(t, x, max_iter=1).status == "not_converged"


def test_tables_and_words():
    t, x = simulated(100)
    people = rs.cohort.Population(t, row_id=np.arange(100) + 7)
    found = score(people, np.c_[x, np.ones(100)], rs.L2(1.0))
    frame = found.to_frame("polars")
    assert frame.columns == ["row_id", "person_id", "treatment", "ps", "logit", "preference"]
    assert frame["row_id"].to_list() == list(range(7, 107))
    assert_allclose(frame["ps"], expit(frame["logit"].to_numpy()), rtol=1e-13)
    assert "'x6' is constant and cannot be estimated" in repr(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_high_correlation": "drop"}, "'error', 'exclude' or 'warn'"),
        ({"max_correlation": 0}, "above 0 and at most 1"),
        ({"folds": 1}, "at least 2"),
        ({"search": "best"}, "'auto' or 'grid'"),
    ],
)
def test_wrong_options(options, message):
    t, x = simulated(50)
    with pytest.raises(rs.InputError, match=message):
        rs.cohort.propensity_score(t, x, **options)


def test_nothing_is_said_where_all_is_well():
    t, x = simulated(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert score(t, x).notes == ()
