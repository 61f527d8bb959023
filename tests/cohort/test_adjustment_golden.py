"""Trimming, matching, strata and weights of the right-heart-catheterisation cohort, as R's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from cohort.golden import (
    MATCHINGS,
    RHC,
    STRATA,
    TRIMS,
    WEIGHT,
    WEIGHTS,
    rhc_matched,
    rhc_people,
    rhc_strata,
    rhc_trimmed,
    rhc_weighted,
    sets,
    table,
)
from reference import GOLDEN, read_json


def test_overlap_of_the_scores():
    expected = RHC["ps"]
    people = rhc_people()
    found = rs.cohort.auc(people)
    assert_allclose(people.is_target.mean(), expected["mean_treated"], rtol=1e-14)
    assert_allclose(found.auc, expected["auc"]["auc"], rtol=1e-13)
    assert_allclose(found.auc, read_json(GOLDEN / "rhc.json")["ps_auc"], rtol=1e-13)
    assert_allclose(found.standard_error, expected["auc"]["se"], rtol=1e-12)
    bounds = [expected["auc"][end] for end in ("lower", "upper")]
    assert_allclose(found.interval(), bounds, rtol=1e-12)
    preference = rs.cohort.preference_score(people)
    assert_allclose(preference[:5], expected["preference_head"], rtol=1e-13)
    share = expected["equipoise_0.3_0.7"]
    assert_allclose(rs.cohort.equipoise(people), share, rtol=1e-14)
    file = read_json(GOLDEN / "rhc.json")
    assert [people.n_rows, people.is_target.sum()] == [file["n"], file["treated"]]
    head = file["ps_head"]
    assert_allclose(people.score[:10], head, rtol=1e-12)


# ------------------------------------------------------------------------------- matching


@pytest.mark.parametrize("name", MATCHINGS)
def test_matched_sets(name):
    matched, expected = rhc_matched(name), RHC["match"][MATCHINGS[name]]
    assert_array_equal(matched.set_id, sets("rhc_sets", f"set_{name}"))
    assert matched.n_target == expected["treated_matched"]
    assert matched.n_comparator == expected["controls_matched"]
    found = matched.details
    assert matched.settings["ratio"] == expected["ratio"]
    assert {str(k): n for k, n in found["sets"].items()} == expected["sets_by_controls"]
    # Distances are in whole numbers of 1e-10, of which each may be half a number off.
    slack = 1e-10 * matched.n_comparator
    assert_allclose(found["distance_sum"], expected["sum_distance"], rtol=0, atol=slack)
    assert_allclose(found["distance_max"], expected["max_distance"], rtol=0, atol=1.1e-10)
    assert_allclose(found["effective_size"], expected["ess_controls"], rtol=1e-12)
    assert_allclose(matched.effective_sizes()[1], expected["ess_controls"], rtol=1e-12)
    if isinstance(expected["caliper"], float):
        assert_allclose(found["caliper"], expected["caliper"], rtol=0, atol=1e-10)
    else:
        assert found["caliper"] is None


def test_matching_is_stated_to_be_the_same_in_whole_numbers():
    assert RHC["match"]["quantised_1e10_same_sets_ratio4"] is True


def test_standard_deviations_of_the_logit():
    expected = RHC["ps"]
    assert_allclose(rhc_matched("r1").details["sd"], expected["sd_logit_everybody"], rtol=1e-13)
    assert_allclose(rhc_matched("r1").details["caliper"], expected["caliper"], atol=1e-10, rtol=0)
    within = rs.cohort.match(rhc_people(), caliper_sd="within")
    assert_allclose(within.details["sd"], expected["sd_logit_pooled_within"], rtol=1e-13)
    assert_allclose(
        within.details["caliper"], 0.2 * expected["sd_logit_pooled_within"], atol=1e-10, rtol=0
    )


def test_first_matching_of_the_other_file():
    expected = read_json(GOLDEN / "rhc.json")["match_1to1_closest_pair_first"]
    matched = rhc_matched("r1")
    assert matched.n_target == expected["pairs"]
    assert_allclose(matched.details["distance_max"], expected["max_distance"], atol=1e-10, rtol=0)


def test_weights_of_matched_sets():
    matched = rhc_matched("r4")
    of_sets = np.bincount(matched.set_id[matched.kept], matched.weight[matched.kept])
    # The controls of each set weigh as much as its target.
    assert_allclose(of_sets[of_sets > 0], 2.0, rtol=1e-15)
    assert (matched.weight[matched.kept & matched.population.is_target] == 1).all()


def test_matching_does_not_depend_on_the_order_of_rows(rng):
    people = rhc_people()
    order = rng.permutation(people.n_rows)
    shuffled = rs.cohort.Population(
        people.treatment[order], people.score[order], row_id=people.row_id[order]
    )
    again = rs.cohort.match(shuffled, ratio=4)
    assert_array_equal(again.set_id, rhc_matched("r4").set_id[order])


# --------------------------------------------------------------------------------- strata


@pytest.mark.parametrize("name", STRATA)
def test_strata(name):
    found, expected = rhc_strata(name), RHC["strata"][STRATA[name][0]]
    assert_array_equal(found.set_id, sets("rhc_strata", name))
    assert_allclose(found.details["breaks"][0], expected["breaks"], rtol=1e-14)
    assert found.details["n_target"] == list(expected["n_target"].values())
    assert found.details["n_comparator"] == list(expected["n_comparator"].values())
    sizes = [expected["ess"][arm] for arm in ("target", "comparator")]
    assert_allclose(found.effective_sizes(), sizes, rtol=1e-12)
    assert found.estimand == expected["estimand"]


# -------------------------------------------------------------------------------- weights


def check_weights(found, expected):
    weight, target = found.weight, found.population.is_target
    assert_allclose(weight[target].sum(), expected["sum_target"], **WEIGHT)
    assert_allclose(weight[~target].sum(), expected["sum_comparator"], **WEIGHT)
    assert_allclose(weight.max(), expected["max"], **WEIGHT)
    sizes = [expected["ess_target"], expected["ess_comparator"]]
    assert_allclose(found.effective_sizes(), sizes, **WEIGHT)
    assert [found.n_target, found.n_comparator] == [expected["n_target"], expected["n_comparator"]]


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights(name):
    found, expected = rhc_weighted(name), RHC["weights"][name]
    check_weights(found, expected)
    if "cap" in expected:
        assert_allclose(found.details["cap"], expected["cap"], **WEIGHT)
        assert found.details["n_truncated"] == expected["n_truncated"]


def test_first_weights_of_the_other_file():
    head = read_json(GOLDEN / "rhc.json")["iptw_stabilised"]["head"]
    assert_allclose(rhc_weighted("ate_stab").weight[:10], head, **WEIGHT)


# ------------------------------------------------------------------------------- trimming


@pytest.mark.parametrize("name", TRIMS)
def test_trimming(name):
    found, expected = rhc_trimmed(name), RHC["trim"][name]
    assert_array_equal(found.kept, table("rhc_trim")[TRIMS[name][0]] == 1)
    assert [found.n_target, found.n_comparator] == [expected["n_target"], expected["n_comparator"]]
    assert found.attrition[-1].target_exposures == expected["n_target"]
    after = rs.cohort.weight(found, "ate", stabilise=True)
    check_weights(after, expected["ate_stab_ps_kept"])


def test_cut_offs():
    expected = RHC["trim"]
    found = rhc_trimmed("asymmetric_0.05").details
    assert found["asymmetric"] == pytest.approx(expected["cutoffs_asymmetric_0.05"], rel=1e-13)
    overlap = [expected["overlap_range"][end] for end in ("lower", "upper")]
    assert_allclose(found["overlap"], overlap, rtol=1e-13)
    alpha = rhc_trimmed("crump_optimal").details["crump"]
    assert_allclose(alpha, expected["crump_optimal"]["alpha"], rtol=1e-13)
