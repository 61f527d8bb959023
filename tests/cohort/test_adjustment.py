"""Adjustments small enough to work out by hand, their statuses, and their messages."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from cohort.golden import TINY, WEIGHT, rhc_covariates, rhc_people, table


def tiny(name, score="score", divisor=2000):
    own = table(name)
    return rs.cohort.Population(own["treat"], own[score] / divisor, row_id=own["id"])


def found_sets(matched):
    people = matched.population
    chosen = matched.kept & ~people.is_target
    sets = {}
    for control, target in zip(people.row_id[chosen], matched.set_id[chosen], strict=True):
        sets.setdefault(str(target), []).append(int(control))
    return sets


def expected_sets(block):
    return {k: v if isinstance(v, list) else [v] for k, v in block.items()}


# ------------------------------------------------------------------------------- matching


@pytest.mark.parametrize(
    ("key", "ratio", "caliper"),
    [
        ("closest_first_ratio1", 1, 150),
        ("ratio2", 2, 150),
        ("ratio4", 4, 150),
        ("caliper_80_inclusive_ratio1", 1, 80),
        ("caliper_100_ratio1", 1, 100),
        ("no_caliper_unlimited", 0, None),
    ],
)
def test_matching_by_hand(key, ratio, caliper):
    limit = None if caliper is None else caliper / 2000
    assert caliper in (TINY["match"]["caliper"], None) or str(caliper) in key
    found = rs.cohort.match(tiny("tiny_match"), ratio, limit, scale="propensity score")
    assert found_sets(found) == expected_sets(TINY["match"][key])
    assert found_sets(found) != expected_sets(TINY["match"]["in_id_order_instead"])


@pytest.mark.parametrize("ratio", [1, 2])
def test_ties_go_by_distance_target_and_comparator(ratio):
    expected = TINY["match_ties"]
    limit = expected["caliper"] / 2000
    found = rs.cohort.match(tiny("tiny_match_ties"), ratio, limit, scale="propensity score")
    assert found_sets(found) == expected_sets(expected[f"ratio{ratio}"])


@pytest.mark.parametrize(
    ("scale", "partner"), [("propensity score", 1), ("standardized", 1), ("standardized logit", 2)]
)
def test_the_scale_decides_without_a_caliper(scale, partner):
    """From 0.10 the score 0.05 is closer than 0.16, but of logits 0.16: 0.539 against 0.747."""
    people = rs.cohort.Population([1, 0, 0], [0.10, 0.05, 0.16])
    for within in ((), ["a", "a", "a"]):
        matched = rs.cohort.match(people, caliper=None, scale=scale, within=within)
        assert np.flatnonzero(matched.weight).tolist() == [0, partner]
        assert matched.details["caliper"] is None


def test_blocks():
    people, labels = tiny("tiny_match_blocks"), table("tiny_match_blocks")["block"]
    expected = TINY["match_blocks"]
    options = {"caliper": expected["caliper"] / 2000, "scale": "propensity score"}
    within = rs.cohort.match(people, within=labels, **options)
    assert found_sets(within) == expected_sets(expected["ratio1"])
    assert found_sets(rs.cohort.match(people, within=[labels, labels], **options)) == found_sets(
        within
    )
    alone = rs.cohort.match(people, **options)
    assert found_sets(alone) == expected_sets(expected["without_blocks"])


def test_exact_covariates():
    people = rs.cohort.Population([1, 1, 0, 0], [0.5, 0.6, 0.5, 0.6])
    x = rs.Design.from_dense(np.array([[0, 7.5], [1, 7.5], [1, 7.5], [0, 7.5]]), keys=[11, 12])
    free = rs.cohort.match(people, caliper=None)
    assert_array_equal(free.set_id, [0, 1, 0, 1])
    found = rs.cohort.match(people, caliper=None, exact_covariates=[11, 12], X=x)
    assert_array_equal(found.set_id, [0, 1, 1, 0])
    assert found.settings["exact_covariates"] == (11, 12)
    # Together with labels: only rows 0 and 3 have both in common.
    both = rs.cohort.match(people, caliper=None, within=[1, 2, 3, 1], exact_covariates=[11], X=x)
    assert_array_equal(both.set_id, [0, -1, -1, 0])
    with pytest.raises(rs.InputError, match="covariate 13 was not found"):
        rs.cohort.match(people, exact_covariates=[13], X=x)
    with pytest.raises(rs.CohortError, match="`exact_covariates` names 11, but `X` was not given"):
        rs.cohort.match(people, exact_covariates=[11])


def test_exact_covariates_are_blocks():
    own, names = rhc_covariates(), ["fac_sex_Male"]
    found = rs.cohort.match(rhc_people(), exact_covariates=names, X=own)
    assert_array_equal(
        found.set_id, rs.cohort.match(rhc_people(), within=table("rhc_ps")["sex_male"]).set_id
    )


def test_a_missing_label_is_a_label():
    people = rs.cohort.Population([1, 1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5, 0.5])
    found = rs.cohort.match(people, within=np.array(["a", None, None, "b", "b"], dtype=object))
    # 0 is alone in a, 1 and 2 lack the label, b has no target.
    assert_array_equal(found.set_id, [-1, 1, 1, -1, -1])
    assert found.details["unmatched_blocks"] == 3
    assert (found.details["unmatched_target"], found.details["unmatched_comparator"]) == (1, 2)


def test_reversed_matching():
    people = rs.cohort.Population([1, 1, 1, 0], [0.52, 0.5, 0.4, 0.5])
    found = rs.cohort.match(people, ratio=2, caliper=None, allow_reverse=True)
    assert found.estimand == "atu"
    assert found.details["reversed"]
    # The comparator, row 3, is offered the two closest targets, which weigh one half each.
    assert_array_equal(found.set_id, [3, 3, -1, 3])
    assert_array_equal(found.weight, [0.5, 0.5, 0.0, 1.0])
    plain = rs.cohort.match(people, ratio=2, caliper=None)
    assert_array_equal(plain.weight, [0.0, 1.0, 0.0, 1.0])


def test_nobody_within_the_caliper():
    people = rs.cohort.Population([1, 1, 0, 0], [0.9, 0.8, 0.2, 0.1])
    found = rs.cohort.match(people, caliper=0.05)
    assert found.status == "no_matches"
    assert not found.kept.any()
    last = found.attrition[-1]
    assert (last.step, last.removed_target, last.removed_comparator) == ("matched", 2, 2)


def test_equal_scores_need_no_caliper():
    found = rs.cohort.match(rs.cohort.Population([1, 0, 0], [0.5, 0.5, 0.5]))
    assert [note.code for note in found.notes] == ["ps_constant"]
    assert_array_equal(found.set_id, [0, 0, -1])


@pytest.mark.parametrize("n", [5, 7, 24, 59])
@pytest.mark.parametrize("score", [0.1, 0.3, 0.37, 0.6])
@pytest.mark.parametrize("caliper_sd", ["all", "within"])
def test_equal_scores_have_no_standard_deviation_whatever_their_mean_rounds_to(
    n, score, caliper_sd
):
    people = rs.cohort.Population(np.arange(n) < n // 2, np.full(n, score))
    found = rs.cohort.match(people, caliper_sd=caliper_sd)
    assert found.details["sd"] == 0.0
    assert [note.code for note in found.notes] == ["ps_constant"]


def test_scores_of_0_and_1_are_matched_to_each_other_only():
    # Their logits are cut at 34.5; they do not count in the standard deviation.
    people = rs.cohort.Population([1, 1, 0, 0], [1.0, 0.5, 1.0, 0.51])
    found = rs.cohort.match(people, caliper=3)
    assert_array_equal(found.set_id, [0, 1, 0, 1])
    assert found.details["sd"] == pytest.approx(np.log(0.51 / 0.49) / np.sqrt(2), rel=1e-12)


def test_after_trimming_only_those_left_are_matched():
    people = rs.cohort.Population([1, 1, 0, 0], [0.97, 0.5, 0.96, 0.4])
    trimmed = rs.cohort.trim(people, symmetric=0.05)
    found = rs.cohort.match(trimmed, caliper=None)
    assert_array_equal(found.set_id, [-1, 1, -1, 1])
    assert [step.step for step in found.attrition] == [
        "population",
        "score above 0.05 and below 0.95",
        "matched",
    ]


# ------------------------------------------------------------------------------- trimming


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("keep_common_range", {"overlap": True}),
        ("keep_symmetric_0.1", {"symmetric": 0.1}),
        ("keep_asymmetric_0.25", {"asymmetric": 0.25}),
        ("keep_reverse_asymmetric_0.25", {"reverse_asymmetric": 0.25}),
        ("keep_equipoise", {"equipoise": (0.3, 0.7)}),
    ],
)
def test_trimming_by_hand(key, options):
    people = tiny("tiny_trim", "ps", 1)
    found = rs.cohort.trim(people, **options)
    assert people.row_id[found.kept].tolist() == TINY["trim"][key]
    for name in ("asymmetric", "reverse_asymmetric"):
        if name in options:
            assert found.details[name] == pytest.approx(TINY["trim"][f"cutoffs_{name}_0.25"])
            assert_allclose(found.details["overlap"], list(TINY["trim"]["overlap"].values()))


def test_numbers_by_hand():
    people, expected = tiny("tiny_trim", "ps", 1), TINY["trim"]
    assert_allclose(rs.cohort.preference_score(people), expected["preference"], rtol=1e-13)
    found = rs.cohort.auc(people)
    assert_allclose(found.auc, expected["auc"]["auc"], rtol=1e-14)
    assert_allclose(found.standard_error, expected["auc"]["se"], rtol=1e-13)
    assert_allclose(found.interval(), [expected["auc"][e] for e in ("lower", "upper")], rtol=1e-13)
    strata = rs.cohort.stratify(people, 3)
    assert strata.details["breaks"][0] == pytest.approx(expected["strata3_breaks_all"])
    assert strata.set_id.tolist() == expected["strata3"]


@pytest.mark.parametrize("name", TINY["trim"]["weights"])
def test_weights_by_hand(name):
    options = {
        "ate_stab": ("ate", True),
        "att_stab_cohortmethod": ("att", "cohortmethod"),
    }
    estimand, stabilise = options.get(name, (name, False))
    found = rs.cohort.weight(tiny("tiny_trim", "ps", 1), estimand, stabilise=stabilise)
    assert_allclose(found.weight, TINY["trim"]["weights"][name], rtol=1e-14)


def test_rules_are_applied_one_after_the_other():
    people = rs.cohort.Population([1, 1, 1, 0, 0, 0], [0.99, 0.8, 0.5, 0.97, 0.6, 0.3])
    found = rs.cohort.trim(people, symmetric=0.05, overlap=True)
    # Of 0.8 0.5 and 0.6 0.3: the overlap is [0.5, 0.6].
    assert people.row_id[found.kept].tolist() == [2, 4]
    assert [(s.removed_target, s.removed_comparator) for s in found.attrition] == [
        (0, 0),
        (1, 1),
        (1, 1),
    ]


def test_crump_keeps_everybody_where_scores_are_near_one_half():
    found = rs.cohort.trim(rs.cohort.Population([1, 0, 1, 0], [0.4, 0.5, 0.6, 0.5]), crump=True)
    assert found.details["crump"] == 0.0
    assert found.kept.all()


def test_crump_keeps_the_person_whose_score_sets_the_limit():
    # 1 / (e (1 - e)) is 4 ten times, 7.84 twice and 101: twice the mean of the twelve is 9.28.
    score = np.array([0.5] * 10 + [0.15, 0.85, 0.01])
    mean = (40 + 2 / (0.15 * 0.85)) / 12
    found = rs.cohort.trim(rs.cohort.Population(np.arange(13) % 2, score), crump=True)
    alpha = found.details["crump"]
    assert_allclose(1 / (alpha * (1 - alpha)), 2 * mean, rtol=1e-12)
    assert found.kept.tolist() == [True] * 12 + [False]


def test_crump_by_its_equation():
    score = np.linspace(0.001, 0.999, 500) ** 2
    people = rs.cohort.Population(np.arange(500) % 2, score)
    alpha = rs.cohort.trim(people, crump=True).details["crump"]
    spread = 1 / (score * (1 - score))
    inside = spread <= 1 / (alpha * (1 - alpha)) * (1 + 1e-12)
    # The largest spread kept is within twice the mean of those kept; the next one is not.
    assert spread[inside].max() <= 2 * spread[inside].mean()
    more = np.sort(spread)[: inside.sum() + 1]
    assert more[-1] > 2 * more.mean()


def test_trimming_stops_when_an_arm_is_gone():
    people = rs.cohort.Population([1, 1, 0], [0.99, 0.98, 0.5])
    found = rs.cohort.trim(people, symmetric=0.05, overlap=True)
    assert found.status == "one_arm_empty"
    assert len(found.attrition) == 2


def test_scores_that_do_not_overlap():
    found = rs.cohort.trim(rs.cohort.Population([1, 1, 0], [0.9, 0.8, 0.5]), asymmetric=0.05)
    assert found.status == "empty"


# ------------------------------------------------------------------------ strata and weights


def test_weights_of_strata():
    # Strata {1, 0, 0} and {1, 1, 0}.
    people = rs.cohort.Population([1, 0, 0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    ate = rs.cohort.stratify(people, 2).weight
    assert_array_equal(ate, [3, 1.5, 1.5, 1.5, 1.5, 3])
    att = rs.cohort.stratify(people, 2, weighting="att").weight
    assert_array_equal(att, [1, 0.5, 0.5, 1, 1, 2])
    atu = rs.cohort.stratify(people, 2, weighting="atu").weight
    assert_array_equal(atu, [2, 1, 1, 0.5, 0.5, 1])
    equal = rs.cohort.stratify(people, 2, weighting="equal").weight
    assert_array_equal(equal, [1, 0.5, 0.5, 0.5, 0.5, 1])


def test_strata_without_an_arm_are_counted_and_left_out():
    people = rs.cohort.Population([0, 0, 1, 0], [0.1, 0.2, 0.7, 0.8])
    found = rs.cohort.stratify(people, 2)
    assert_array_equal(found.weight, [0, 0, 2, 2])
    assert_array_equal(found.set_id, [-1, -1, 2, 2])
    assert found.details["uninformative_strata"] == 1
    assert found.details["uninformative_people"] == 2
    assert [note.code for note in found.notes] == ["single_stratum"]
    assert found.attrition[-1].removed_comparator == 2


def test_equal_quantiles_count_once():
    people = rs.cohort.Population([1, 0, 1, 0, 1, 0], [0.5, 0.5, 0.5, 0.5, 0.5, 0.9])
    found = rs.cohort.stratify(people, 5)
    assert "strata_merged" in [note.code for note in found.notes]
    # The quantiles are 0.5, the 0.8-quantile too: everybody but the last is at or below it.
    assert found.details["breaks"] == [[0.5]]


def test_strata_of_blocks_have_quantiles_of_their_own():
    score = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    people = rs.cohort.Population([1, 0] * 4, score)
    found = rs.cohort.stratify(people, 2, within=["a"] * 4 + ["b"] * 4)
    assert_array_equal(found.set_id, [1, 1, 2, 2, 3, 3, 4, 4])
    assert_allclose(found.details["breaks"], [[0.25], [0.75]])


def test_overlap_weights_need_no_positivity():
    people = rs.cohort.Population([1, 0, 1, 0], [0.0, 1.0, 0.5, 0.5])
    assert rs.cohort.weight(people, "ato").weight.max() == pytest.approx(1.0)
    with pytest.raises(rs.CohortError, match="1 target with a score of about 0") as caught:
        rs.cohort.weight(people, "ate")
    assert caught.value.code == "Positivity"
    assert caught.value.details == {"target": 1, "comparator": 1}


def test_notes_of_extreme_weights():
    score = np.full(400, 0.5)
    score[0] = 0.001
    found = rs.cohort.weight(rs.cohort.Population(np.arange(400) % 2 == 0, score), "ate")
    assert [note.code for note in found.notes] == ["low_effective_size", "heavy_person"]
    # 1000 of 1000 + 199 * 2.
    assert "71.5%" in found.notes[1].message


def test_truncation_at_a_percentile():
    people = rs.cohort.Population([1, 1, 0, 0], [0.5, 0.25, 0.5, 0.75])
    found = rs.cohort.weight(people, "ate", truncate="p50")
    # Weights 2, 4, 2, 4: the median is 3.
    assert_array_equal(found.weight, [2, 3, 2, 3])
    assert found.details["n_truncated"] == 2


def test_persons_and_exposures():
    people = rs.cohort.Population([1, 1, 0], [0.5, 0.99, 0.5], person_id=[7, 7, 8])
    found = rs.cohort.trim(people, symmetric=0.05)
    first, last = found.attrition
    assert (first.target_persons, first.target_exposures) == (1, 2)
    assert (last.target_persons, last.target_exposures, last.removed_target) == (1, 1, 1)
    assert_array_equal(found.cluster, [7, 7, 8])


# -------------------------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (lambda c: c.Population([1, 0, 2]), "BadTreatment", r"first: row 2, value 2"),
        (lambda c: c.Population(["a", "b"]), "BadTreatment", r"value 'a'"),
        (lambda c: c.Population([1, 0], [0.5, np.nan]), "BadScore", r"first: row 1, value nan"),
        (lambda c: c.Population([1, 0], [0.5, 1.5]), "BadScore", r"first: row 1, value 1.5"),
        (lambda c: c.Population([1, 0], row_id=[3, 3]), "DuplicateId", r"first: 3"),
        (lambda c: c.Population([1, 0], row_id=[3.5, 3]), "BadId", r"whole number"),
        (lambda c: c.match(c.Population([1, 0])), "NoScore", r"no"),
        (lambda c: c.match([1, 0]), "BadPopulation", r"got list"),
        (lambda c: c.match(c.weight(c.Population([1, 0], [0.5, 0.5]))), "AlreadyAdjusted", r"weig"),
        (
            lambda c: c.match(c.Population([1, 0], [0.5, 0.5]), within=["a"]),
            "BadBlock",
            r"each of the 2 rows",
        ),
        (lambda c: c.match(c.Population([1, 0], [0.5, 0.5]), ratio=1.5), "BadSetting", r"1.5"),
        (lambda c: c.match(c.Population([1, 0], [0.5, 0.5]), caliper=-1), "BadSetting", r"-1"),
        (lambda c: c.trim(c.Population([1, 0], [0.5, 0.5]), symmetric=0.6), "BadSetting", r"0.6"),
        (lambda c: c.trim(c.Population([1, 0], [0.5, 0.5]), max_weight=3), "BadSetting", "weights"),
        (
            lambda c: c.trim(
                c.Population([1, 0], [0.5, 0.5]),
                max_weight=3,
                weights=c.weight(c.Population([1], [0.5])),
            ),
            "BadSetting",
            "2 rows of the population, but it has 1",
        ),
        (
            lambda c: c.trim(c.Population([1, 0], [0.5, 0.5]), equipoise=(0.7, 0.3)),
            "BadSetting",
            r"lower first",
        ),
        (lambda c: c.stratify(c.Population([1, 0], [0.5, 0.5]), 1), "BadSetting", r"at least 2"),
        (
            lambda c: c.weight(c.Population([1, 0], [0.5, 0.5]), truncate="q9"),
            "BadSetting",
            r"'q9'",
        ),
        (
            lambda c: c.weight(c.Population([1, 0], [0.6, 0.5]), "ate", truncate=0.99),
            "BadSetting",
            r"`truncate` is 0.99, but all weights are larger",
        ),
        (lambda c: c.restrict(c.Population([1, 0]), [1, 0], "x"), "BadSelection", r"True or"),
    ],
)
def test_messages(make, code, words):
    with pytest.raises(rs.CohortError, match=words) as caught:
        make(rs.cohort)
    assert caught.value.code == code
    assert "Hint: " in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda c, p: c.match(p, scale="logits"),
        lambda c, p: c.match(p, caliper_sd="between"),
        lambda c, p: c.stratify(p, base="everybody"),
        lambda c, p: c.stratify(p, weighting="none"),
        lambda c, p: c.weight(p, "atx"),
        lambda c, p: c.weight(p, stabilise="yes"),
    ],
)
def test_unknown_options(make):
    with pytest.raises(rs.InputError, match="must be .*'.*', but it is"):
        make(rs.cohort, rs.cohort.Population([1, 0], [0.5, 0.5]))


def test_one_arm_is_a_status():
    people = rs.cohort.Population([1, 1], [0.5, 0.6])
    assert rs.cohort.match(people).status == "one_arm_empty"
    assert rs.cohort.stratify(people).status == "one_arm_empty"
    assert rs.cohort.weight(people, "ate").status == "one_arm_empty"
    assert rs.cohort.trim(people, symmetric=0.05).status == "one_arm_empty"
    assert np.isnan(rs.cohort.auc(people).auc)
    assert np.isnan(rs.cohort.equipoise(people))


def test_nobody_is_a_status():
    people = rs.cohort.Population([], [])
    for adjusted in (rs.cohort.match(people), rs.cohort.stratify(people), rs.cohort.weight(people)):
        assert adjusted.status == "empty"


def test_weights_are_exact():
    people = tiny("tiny_trim", "ps", 1)
    found = rs.cohort.weight(people, "att")
    assert_allclose(found.weight[6:], people.score[6:] / (1 - people.score[6:]), **WEIGHT)
