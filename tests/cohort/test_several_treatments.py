"""Several treatments: weights by the definition, scores by their conditions, and two as before."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from cohort.lalonde import PUBLISHED, columns, covariates
from storages import each_storage


def draw(seed=1, n=400, k=3):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=n), rng.integers(0, 2, n), rng.exponential(1.0, n)])
    eta = np.column_stack([np.zeros(n), 0.5 * x[:, 0], 0.6 * x[:, 1] - 0.3 * x[:, 2]])[:, :k]
    odds = np.exp(eta)
    chance = odds / odds.sum(axis=1)[:, None]
    code = (rng.random(n)[:, None] > np.cumsum(chance, axis=1)).sum(axis=1)
    return np.array(["a", "b", "c"])[code], x, code


@each_storage
def test_scores_by_the_conditions_of_the_likelihood(store):
    """Residuals are orthogonal to covariates, and log ratios of scores are linear in them."""
    treatment, x, code = draw()
    found = rs.cohort.weight_treatments(treatment, store(x), estimand="ate")
    assert found.treatments == ("a", "b", "c")
    design = np.column_stack([np.ones(400), x])
    residual = (code[:, None] == np.arange(3)) - found.score
    assert np.abs(design.T @ residual).max() < 1e-4
    for k in (1, 2):
        ratio = np.log(found.score[:, k] / found.score[:, 0])
        fitted = design @ np.linalg.lstsq(design, ratio, rcond=None)[0]
        assert_allclose(fitted, ratio, atol=1e-8)
    assert_allclose(found.weight, 1 / found.score[np.arange(400), code])


def test_weights_by_their_definition():
    score = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    treatment = [10, 20, 30]
    found = rs.cohort.weight_treatments(treatment, score=score)
    inverse = 1 / score
    assert_allclose(found.weight, np.diag(inverse) / inverse.sum(axis=1))
    att = rs.cohort.weight_treatments(treatment, score=score, estimand="att", target=20)
    assert_allclose(att.weight, score[:, 1] / np.diag(score))
    assert att.weight[1] == 1.0
    assert_allclose(att.effective_sizes()[10], 1.0)


@pytest.mark.parametrize("estimand", ["ate", "att", "ato"])
def test_two_treatments_are_as_one_score(estimand):
    treatment, x, code = draw(2, k=2)
    options = {"target": "b"} if estimand == "att" else {}
    found = rs.cohort.weight_treatments(treatment, x, estimand=estimand, **options)
    people = rs.cohort.propensity_score(code, x, penalty=None, tol=1e-10).people
    plain = rs.cohort.weight(people, estimand)
    assert_allclose(found.weight, plain.weight, rtol=1e-5)
    both = found.pair("b", "a")
    assert_allclose(both.weight, found.weight)
    rng = np.random.default_rng(1)
    y = rs.Surv(rng.exponential(1.0, 400), rng.integers(0, 2, 400))
    one, other = (rs.cohort.fit_outcome(y, own) for own in (both, plain))
    assert_allclose(one.log_hr, other.log_hr, rtol=1e-4)


def test_pairs_and_their_balance():
    treatment, x, _ = draw(3)
    found = rs.cohort.weight_treatments(treatment, x)
    table = found.balance(x, library="pandas")
    assert len(table) == 9
    rows = found.rows("a", "c")
    assert set(treatment[rows]) == {"a", "c"}
    own = rs.cohort.balance(x[rows], found.pair("a", "c"))
    part = table[(table["target"] == "a") & (table["comparator"] == "c")]
    assert_allclose(part["after_smd"], own.after.smd)
    # Overlap weights balance the means of the covariates of the score better than none.
    assert np.abs(table["after_smd"]).max() < 0.3 * np.abs(table["before_smd"]).max()


@each_storage
@pytest.mark.parametrize("target", [None, "b"])
def test_entropy_balancing(store, target):
    treatment, x, code = draw(4)
    options = {"estimand": "ate"} if target is None else {"estimand": "att", "target": target}
    found = rs.cohort.weight_treatments(treatment, store(x), method="entropy", **options)
    like = np.ones(400, dtype=bool) if target is None else treatment == target
    for k in range(3):
        w = np.where(code == k, found.weight, 0.0)
        assert_allclose(w @ x / w.sum(), x[like].mean(axis=0), rtol=1e-8)
        assert_allclose(w.sum(), like.sum())


def test_what_weightit_publishes():
    x = covariates("age", "educ", "married", "nodegree", "re74")
    found = rs.cohort.weight_treatments(columns()["race"], x, method="entropy", estimand="ate")
    sizes = found.effective_sizes()
    for name, expected in PUBLISHED["ebal_race"]["effective"].items():
        assert_allclose(sizes[name], expected, atol=5.1e-3)


@pytest.mark.parametrize(
    ("treatment", "options", "message"),
    [
        (["a", "a"], {"X": [[1.0], [2.0]]}, "must have two or more levels, but it has 1"),
        (["a", None], {"X": [[1.0], [2.0]]}, "must not be missing, but it is in 1 row"),
        (["a", "b"], {}, "`X` was not given"),
        (["a", "b"], {"score": [[1.0, 0.0]]}, r"must have the shape \(2, 2\)"),
        (["a", "b"], {"score": [[0.7, 0.7], [0.5, 0.5]]}, "add up to 1"),
        (["a", "b"], {"score": [[1.0, 0.0], [0.5, 0.5]]}, "infinite or nearly so for 1 person"),
        (["a", "b"], {"score": [["x", "y"]] * 2}, "`score` must be a table of numbers"),
        (
            ["a", "b"],
            {"score": pa.table({"b": [0.4, 0.5], "a": [0.6, 0.5]}).to_pandas()},
            "the columns of `score` are 'b', 'a', in another order",
        ),
        ([["a", "b"], ["b", "a"]], {"X": [[1.0], [2.0]]}, "`treatment` must have one dimension"),
        (
            ["a", "b"],
            {"X": [[1.0], [2.0]], "method": "entropy", "estimand": "ate"},
            "no weights of the treatment 'a' can give 'x0' the means that are wanted",
        ),
        (["a", "b"], {"estimand": "att"}, "`target` is needed for the estimand att"),
        (["a", "b"], {"estimand": "att", "target": "z"}, "treatment 'z' was not found"),
        (["a", "b"], {"method": "entropy"}, "entropy balancing has no estimand 'ato'"),
    ],
)
def test_wrong_input(treatment, options, message):
    with pytest.raises(rs.InputError, match=message):
        rs.cohort.weight_treatments(treatment, **options)


def test_covariates_that_determine_the_treatment():
    treatment = np.repeat(["a", "b", "c"], 30)
    x = np.repeat([[0.0], [1.0], [2.0]], 30, axis=0)
    with pytest.raises(rs.CohortError) as caught:
        rs.cohort.weight_treatments(treatment, x)
    assert caught.value.code == "Positivity"
