"""Several treatments: weights by the definition, scores by their conditions, and two as before."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

import riskset as rs
from cohort.lalonde import PUBLISHED, columns, covariates
from riskset.cohort.propensity.generalised_score import TreatedPeople, assign_folds
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
    found = rs.cohort.weight_treatments(treatment, store(x), estimand="ate", penalty=None)
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
    options |= {"penalty": None, "tol": 1e-10}
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
    found = rs.cohort.weight_treatments(treatment, x, penalty=None)
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
        (
            ["a", "b"],
            {"method": "entropy", "estimand": "ate", "penalty": None},
            "`penalty` belongs to the regression of the scores, which entropy balancing does not",
        ),
        (
            ["a", "b"],
            {"method": "entropy", "estimand": "ate", "folds": np.array([0, 1])},
            "`folds` belongs to the regression",
        ),
        (
            ["a", "b"],
            {"method": "entropy", "estimand": "ate", "score": [[0.5, 0.5]] * 2},
            "entropy balancing does not use `score`",
        ),
        (["a", "b"], {"score": [[0.5, 0.5]] * 2, "max_rows": 5}, "`score` gives them"),
        (["a", "b"], {"score": [[0.5, 0.5]] * 2, "X": [[1.0], [2.0]]}, "`X` has no use"),
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
    assert caught.value.code == "HighCorrelation"
    with pytest.raises(rs.CohortError, match="with certainty") as caught:
        rs.cohort.weight_treatments(treatment, x, penalty=None, on_high_correlation="warn")
    assert caught.value.code == "Positivity"


def for_glmnet():
    """Treatments of 400 people, 12 covariates, and weights."""
    rng = np.random.default_rng(20)
    x = np.column_stack([rng.normal(size=(400, 2)), (rng.random((400, 10)) < 0.3) * 1.0])
    eta = np.column_stack([0.8 * x[:, 2], 0.5 * x[:, 0] - 0.5 * x[:, 3], 0 * x[:, 0]])
    chance = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    code = (rng.random(400)[:, None] > np.cumsum(chance, axis=1)).sum(axis=1)
    return np.array(list("abc"))[code], x, rng.integers(1, 4, 400)


# Scores of the rows 0, 1, 2 and 399 by glmnet 4.1 in R: glmnet(x, y, family = "multinomial",
# alpha, standardize = FALSE, lambda = c(80, 40, 20, 10, 5) / 400, weights, thresh = 1e-14).
GLMNET = {
    "l1, 20": [
        [0.438336039951, 0.248118277126, 0.313545682923],
        [0.328069371812, 0.423523714378, 0.248406913810],
        [0.384996251155, 0.323493053866, 0.291510694978],
        [0.353025702171, 0.379670999482, 0.267303298347],
    ],
    "l1, 5": [
        [0.592443186865, 0.184771063696, 0.222785749439],
        [0.247264130238, 0.522902349529, 0.229833520233],
        [0.311056434127, 0.356741016648, 0.332202549225],
        [0.272726234023, 0.448111956284, 0.279161809693],
    ],
    "l1, 10, weighted": [
        [0.537281471131, 0.206028996397, 0.256689532472],
        [0.276991599219, 0.495098129465, 0.227910271317],
        [0.349264335202, 0.342729313971, 0.308006350828],
        [0.307837280538, 0.426381761567, 0.265780957895],
    ],
    "net, 10": [
        [0.569282248187, 0.203929185685, 0.226788566128],
        [0.265117406990, 0.498966842730, 0.235915750280],
        [0.323743978316, 0.346803958403, 0.329452063281],
        [0.288173058363, 0.430356580269, 0.281470361369],
    ],
}


@each_storage
def test_penalised_scores_are_those_of_glmnet(store):
    treatment, x, weight = for_glmnet()
    models = {
        "l1, 20": {"penalty": rs.L1(20.0)},
        "l1, 5": {"penalty": rs.L1(5.0)},
        "l1, 10, weighted": {"penalty": rs.L1(10.0), "sampling_weight": weight},
        "net, 10": {"penalty": rs.ElasticNet(l1=5.0, l2=5.0)},
    }
    for name, options in models.items():
        found = rs.cohort.weight_treatments(treatment, store(x), tol=1e-10, **options)
        assert_allclose(found.score[[0, 1, 2, 399]], GLMNET[name], atol=2e-7)


def test_the_penalty_has_the_best_likelihood_of_people_left_out():
    """Half and twice the strength predict those left out no better; names may change places."""
    treatment, x, _ = for_glmnet()
    found = rs.cohort.weight_treatments(treatment, x, folds=4, repeats=2, seed=3)
    people = TreatedPeople(
        np.unique(treatment, return_inverse=True)[1], 3, np.ones(400), np.arange(400)
    )
    settings = rs.cohort.SeveralTreatments(folds=4, repeats=2, seed=3)
    assigned = assign_folds(people, settings)
    for fold in range(4):
        parts = np.bincount(people.code[assigned[0] == fold], minlength=3)
        assert np.all(np.abs(parts - np.bincount(people.code) / 4) <= 1)
    strengths = found.penalty.strength * np.array([0.5, 1.0, 2.0])
    scores = [held_out(x, people.code, assigned, strength) for strength in strengths]
    assert np.argmax(scores) == 1
    turned = rs.cohort.weight_treatments(
        np.array(["c", "a", "b"])[people.code], x, penalty=rs.L1(5.0), tol=1e-10
    )
    plain = rs.cohort.weight_treatments(treatment, x, penalty=rs.L1(5.0), tol=1e-10)
    assert_allclose(turned.score, plain.score[:, [1, 2, 0]], atol=1e-8)


def held_out(x, code, assigned, strength):
    """The likelihood of the people left out, by scikit-learn's multinomial regression."""
    total = 0.0
    for folds in assigned:
        for fold in np.unique(folds):
            out = folds == fold
            model = LogisticRegression(
                l1_ratio=1.0, C=1 / strength, solver="saga", tol=1e-6, max_iter=5000
            ).fit(x[~out], code[~out])
            total += np.log(model.predict_proba(x[out])[np.arange(out.sum()), code[out]]).sum()
    return total


@each_storage
def test_weights_of_two_are_rows_twice(store):
    treatment, x, weight = for_glmnet()
    twice = np.repeat(np.arange(400), weight)
    for options in ({"penalty": None}, {"method": "entropy"}):
        options |= {"estimand": "ate"}
        found = rs.cohort.weight_treatments(treatment, store(x), sampling_weight=weight, **options)
        other = rs.cohort.weight_treatments(treatment[twice], store(x[twice]), **options)
        assert_allclose(found.weight[twice] / weight[twice], other.weight, rtol=1e-5)
    pair = found.pair("a", "b")
    assert_allclose(pair.population.sampling_weight, weight[found.rows("a", "b")])


def test_a_model_of_a_sample_has_the_shares_of_all():
    """Scores of a sample of each arm, with intercepts for the shares of the arms among all."""
    treatment, x, _ = for_glmnet()
    code = np.unique(treatment, return_inverse=True)[1]
    rows = []
    for k in range(3):
        own = np.flatnonzero(code == k)
        rows.append(own[np.arange(60) * (own.size - 1) // 59])
    rows = np.sort(np.concatenate(rows))
    for penalty in (None, rs.L1(4.0)):
        found = rs.cohort.weight_treatments(treatment, x, penalty=penalty, max_rows=60)
        part = rs.cohort.weight_treatments(treatment[rows], x[rows], penalty=penalty)
        odds = part.score * np.bincount(code)  # of arms of equal size
        assert_allclose(found.score[rows], odds / odds.sum(axis=1, keepdims=True), rtol=1e-5)


def test_too_few_people_for_the_folds():
    with pytest.raises(rs.CohortError, match="4 people, too few for 10 folds"):
        rs.cohort.weight_treatments(list("abab"), [[1.0], [2.0], [2.0], [3.0]], max_correlation=1)


def test_a_pair_has_two_treatments():
    found = rs.cohort.weight_treatments(["a", "b", "c"], score=[[0.5, 0.25, 0.25]] * 3)
    with pytest.raises(rs.InputError, match="both 'a'"):
        found.pair("a", "a")
