"""Every block of the golden files is tested."""

import pytest

from cohort.golden import (
    COMPETING,
    CONTROLS,
    INTERACTIONS,
    MATCHINGS,
    RHC,
    STRATA,
    TINY,
    TRIMS,
    WEIGHTS,
)

ABOUT = {"versions", "note", "se_note"}

# Block of a file -> keys that the tests of this folder hold against.
TESTED = {
    "rhc": {"ps", "before", "match", "strata", "weights", "trim", "follow_up", "balance_test"},
    "tiny": {
        "match",
        "match_ties",
        "match_blocks",
        "trim",
        "balance",
        "km",
        "aj",
        "mdrr",
        "tidy",
        "population",  # in tests/omop
    },
    "competing": {
        "n_by_status",
        "fine_gray",
        "cause_specific_cox",
        "aalen_johansen",
        "gray_test",
        "matched_pairs",
    },
    "controls": {
        "removed_before_fitting",
        "null",
        "null_grid_profiles",
        "ease",
        "p",
        "ci_from_null",
        "error_model",
        "mcmc",
        "leave_one_out_p",
        "coverage",
        "boundary",
    },
    "interactions": {
        "plain",
        "profile_treat_sex",
        "matched_r1_cluster_set",
        "iptw_ate_stab",
        "strata5",
        "fine_gray_crr",
    },
}

FILES = {
    "rhc": RHC,
    "tiny": TINY,
    "competing": COMPETING,
    "controls": CONTROLS,
    "interactions": INTERACTIONS,
}


@pytest.mark.parametrize("name", FILES)
def test_every_block_is_tested(name):
    assert set(FILES[name]) - ABOUT == TESTED[name]


def test_every_step_is_tested():
    about = {"note", "quantised_1e10_same_sets_ratio4"}
    assert set(RHC["match"]) - about == set(MATCHINGS.values())
    assert set(RHC["strata"]) - about == {key for key, *_ in STRATA.values()}
    assert set(RHC["weights"]) == set(WEIGHTS)
    cutoffs = {"overlap_range", "cutoffs_asymmetric_0.05"}
    assert set(RHC["trim"]) - cutoffs == set(TRIMS)


def test_every_number_of_a_step_is_tested():
    of_weights = {
        "sum_target",
        "sum_comparator",
        "max",
        "ess_target",
        "ess_comparator",
        "n_target",
        "n_comparator",
        "smd",
        "cox",
        "km",
    }
    for block in RHC["weights"].values():
        assert set(block) - {"cap", "n_truncated"} == of_weights
    for name in TRIMS:
        block = RHC["trim"][name]
        assert set(block) - {"alpha"} == {
            "n_target",
            "n_comparator",
            "cox_unweighted",
            "ate_stab_ps_kept",
            "ate_stab_ps_refitted",
            "ps_refit_range",
        }
        assert set(block["ate_stab_ps_kept"]) == of_weights
    assert set(COMPETING["fine_gray"]) == {
        "crr_unadjusted",
        "unadjusted",
        "matched_1to1_cluster_set",
        "ps_strata5_common_G",
        "ps_strata5_G_by_stratum",
        "iptw_ate_stab_G_unweighted",
        "iptw_ate_stab_G_weighted",
        "ato_G_unweighted",
    }
