"""Adjustments of the data of LaLonde, against what MatchIt and WeightIt publish."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from cohort.lalonde import NAMES, PUBLISHED, columns, covariates, scored

pytestmark = pytest.mark.filterwarnings("ignore::riskset.RisksetWarning")
DIGITS = {"rtol": 0, "atol": 5.1e-5}


def check_means(found, expected, **tolerance):
    """Balance to the four digits that are printed."""
    check_side(rs.cohort.balance(covariates(), found).after, expected, **tolerance)


def check_side(side, expected, **tolerance):
    columns = {
        "mean_target": "mean_target",
        "mean_comparator": "mean_comparator",
        "variance_ratio": "variance_ratio",
        "ecdf_max": "ks",
    }
    for name, own in columns.items():
        if name in expected:
            known = np.array([v is not None for v in expected[name]])
            values = np.array([v for v in expected[name] if v is not None])
            assert_allclose(getattr(side, own)[known], values, **(DIGITS | tolerance))


def test_balance_before_an_adjustment():
    found = rs.cohort.balance(covariates(), rs.cohort.Population(columns()["treat"]))
    check_side(found.before, PUBLISHED["before"])
    assert np.isnan(found.before.variance_ratio[found.is_binary]).all()


def mean_pair_distance(found):
    """In units of the standard deviation of the score in the target, as MatchIt has it."""
    people = found.population
    kept = np.flatnonzero(found.kept)
    same = found.set_id[kept][:, None] == found.set_id[kept]
    pairs = np.argwhere(same & (people.treatment[kept][:, None] > people.treatment[kept]))
    gap = np.abs(people.score[kept[pairs[:, 0]]] - people.score[kept[pairs[:, 1]]])
    return gap.mean() / people.score[people.is_target].std(ddof=1)


def test_full_matching_of_mahalanobis_distances_within_calipers():
    expected = PUBLISHED["full_mahalanobis"]
    people = scored()
    found = rs.cohort.match(
        people, method="full", caliper=0.01 * people.score.std(ddof=1), scale="propensity score",
        mahalanobis=["age", "educ", "re74", "re75"], X=covariates(),
    )  # fmt: skip
    assert (found.n_target, found.n_comparator) == (expected["n_target"], expected["n_comparator"])
    # People with equal covariates may change places, which changes the sum of squared weights.
    check_means(found, expected, rtol=4e-4)


@pytest.mark.parametrize(
    ("key", "options"),
    [("full_score", {"method": "full"}), ("optimal_within_race", {"method": "optimal"})],
)
def test_distances_are_not_larger_than_those_of_optmatch(key, options):
    """Optmatch rounds distances to its tolerance, so its sets are not quite the best."""
    expected = PUBLISHED[key]
    within = columns()["race"] if key == "optimal_within_race" else ()
    found = rs.cohort.match(
        scored(), caliper=None, scale="propensity score", within=within, **options
    )
    assert (found.n_target, found.n_comparator) == (expected["n_target"], expected["n_comparator"])
    own = mean_pair_distance(found)
    assert 0.97 * expected["pair_distance"] < own <= expected["pair_distance"] + 5e-5


def test_mahalanobis_distances_with_replacement():
    expected = PUBLISHED["replacement_mahalanobis"]
    people = rs.cohort.Population(columns()["treat"])
    found = rs.cohort.match(
        people, caliper=None, replacement=True, mahalanobis=NAMES, X=covariates()
    )
    assert found.n_target == expected["n_target"]
    check_means(found, expected)


@pytest.mark.parametrize("method", ["entropy", "cbps"])
def test_weights_that_balance_covariates(method):
    expected = PUBLISHED["ebal_att"]
    people = rs.cohort.Population(columns()["treat"])
    x = covariates("age", "educ", "married", "nodegree", "re74")
    found = rs.cohort.weight(people, "att", method=method, X=x)
    own = np.sort(found.weight[~people.is_target])
    assert_allclose(effective(own), expected["effective_comparator"], atol=5e-3)
    scaled = own / own.mean()
    assert_allclose(scaled[0], expected["min"], atol=5e-4)
    assert_allclose(scaled[-5:], expected["largest"], atol=5.1e-4)
    of_score = PUBLISHED["cbps_att"]  # not scaled
    assert_allclose(own[0], of_score["min"], atol=5.1e-4)
    assert_allclose(own[-5:], of_score["largest"], atol=5.1e-4)


def effective(weight):
    return weight.sum() ** 2 / (weight**2).sum()


def test_coarsened_exact_matching():
    expected = PUBLISHED["cem"]
    people = rs.cohort.Population(columns()["treat"])
    educ = np.linspace(0, 18, 6)[1:-1].tolist()
    found = rs.cohort.coarsen(
        people, covariates(), covariates=["age", "black", "married", "educ"], cuts={"educ": educ}
    )
    assert (found.n_target, found.n_comparator) == (expected["n_target"], expected["n_comparator"])
    assert_allclose(found.effective_sizes()[1], expected["effective_comparator"], atol=5e-3)
    check_means(found, expected)
