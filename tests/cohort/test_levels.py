"""Every level of a category counts in a study; models leave one out where they have to."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from levels_by_hand import by_hand

rng = np.random.default_rng(7)
N = 600
FRAME = pd.DataFrame(
    {
        "site": rng.choice(["a", "b", "c", "d"], N, p=[0.01, 0.39, 0.4, 0.2]),
        "sex": rng.choice(["f", "m"], N),
        "age": rng.integers(40, 80, N),
    }
)
TREATMENT = (rng.random(N) < np.where(FRAME["site"] == "b", 0.4, 0.55)).astype(int)
PEOPLE = rs.cohort.Population(TREATMENT, np.full(N, 0.5))
SITES = ("site=a", "site=b", "site=c", "site=d")
SEXES = ("sex=f", "sex=m")
NAMES = (*SITES, *SEXES, "age")
Y = rs.Surv(rng.integers(1, 200, N), rng.random(N) < 0.6)


def design_by_hand(names):
    return rs.Design.from_dense(by_hand(FRAME, names), names)


def shares(level):
    own = (FRAME["site"] == level).to_numpy()
    return own[TREATMENT == 1].mean(), own[TREATMENT == 0].mean()


def test_the_balance_of_every_level_by_hand():
    found = rs.cohort.balance(FRAME, PEOPLE)
    assert found.names == NAMES
    assert found.factors == (SITES, SEXES)
    n1, n0 = TREATMENT.sum(), N - TREATMENT.sum()
    for k, level in enumerate("abcd"):
        p1, p0 = shares(level)
        v1, v0 = p1 * (1 - p1) * n1 / (n1 - 1), p0 * (1 - p0) * n0 / (n0 - 1)
        assert_allclose(found.before.smd[k], (p1 - p0) / np.sqrt((v1 + v0) / 2), rtol=1e-10)
        assert found.before.count_target[k] == round(p1 * n1)
    # Two levels mirror each other.
    assert_allclose(found.before.smd[4], -found.before.smd[5], rtol=1e-10)


def test_a_dataset_has_every_level_too():
    data = rs.Dataset.from_frame(FRAME.assign(time=Y["time"], event=Y["event"]))
    assert rs.cohort.balance(data, PEOPLE).names == NAMES


def test_the_first_level_can_be_matched_within():
    matched = rs.cohort.match(PEOPLE, caliper=None, exact_covariates=["site=a"], X=FRAME)
    first = (FRAME["site"] == "a").to_numpy()
    sets = matched.set_id
    for s in np.unique(sets[sets >= 0]):
        assert first[sets == s].all() or not first[sets == s].any()


def test_rare_levels_go_whichever_comes_first():
    count = int((FRAME["site"] == "a").sum())
    assert 0 < count < 20
    found = rs.cohort.tidy(FRAME, min_count=20)
    assert found.removed_rare == ("site=a",)
    assert found.kept == (*SITES[1:], *SEXES, "age")
    # What is left still covers nearly everybody: the first that is left takes its place.
    assert found.design.factors == (SITES[1:], SEXES)
    score = rs.cohort.propensity_score(TREATMENT, found.design, None)
    assert score.names == ("site=c", "site=d", "sex=m", "age")


def test_a_level_that_nobody_has_who_is_kept_is_not_missed():
    inside = rs.cohort.restrict(PEOPLE, (FRAME["site"] != "a").to_numpy(), "site")
    found = rs.cohort.tidy(FRAME, inside)
    assert found.removed_empty == ("site=a",)
    fitted = rs.cohort.fit_outcome(Y, inside, covariates=found.design)
    assert fitted.names == ("site=c", "site=d", "sex=m", "age")
    assert [note.code for note in fitted.notes] == []


def test_redundant_by_analysis_is_the_most_frequent_level_and_models_keep_the_others():
    labels = ["site"] * 4 + ["sex"] * 2 + ["age"]
    found = rs.cohort.tidy(FRAME, analysis=labels)
    frequent = "sex=f" if (FRAME["sex"] == "f").sum() > N / 2 else "sex=m"
    assert found.removed_redundant == ("site=c", frequent)
    score = rs.cohort.propensity_score(TREATMENT, found.design, None)
    assert score.names == found.kept


@pytest.mark.parametrize(
    ("penalty", "names"),
    [
        (None, (*SITES[1:], "sex=m", "age")),
        (rs.L1(2.0), (*SITES[1:], "sex=m", "age")),
        (rs.L1(2.0, drop_first=False), NAMES),
        (rs.L2(2.0), NAMES),
        (rs.L2(2.0, drop_first=True), (*SITES[1:], "sex=m", "age")),
    ],
    ids=repr,
)
def test_which_levels_scores_and_outcome_models_have(penalty, names):
    score = rs.cohort.propensity_score(TREATMENT, FRAME, penalty)
    assert score.names == names
    plain = rs.cohort.propensity_score(TREATMENT, design_by_hand(names), penalty)
    assert_array_equal(score.coef, plain.coef)
    assert_array_equal(score.score, plain.score)
    found = rs.cohort.fit_outcome(Y, PEOPLE, covariates=FRAME, penalty=penalty)
    own = rs.cohort.fit_outcome(Y, PEOPLE, covariates=design_by_hand(names), penalty=penalty)
    assert found.names == own.names == names
    assert_array_equal(found.coef, own.coef)
    assert (found.log_hr, found.lower, found.upper) == (own.log_hr, own.lower, own.upper)


def test_coefficients_in_the_given_units_where_a_level_is_left_out():
    chosen = {"penalty": "l1", "folds": 3, "repeats": 1}
    found = rs.cohort.fit_outcome(Y, PEOPLE, covariates=FRAME, **chosen)
    assert found.names == (*SITES[1:], "sex=m", "age")
    own = rs.cohort.fit_outcome(Y, PEOPLE, covariates=design_by_hand(found.names), **chosen)
    assert_array_equal(found.coef, own.coef)


def test_the_effect_is_that_of_the_first_level():
    found = rs.cohort.fit_outcome(Y, PEOPLE, interactions=FRAME[["sex"]])
    assert [group.name for group in found.subgroups] == ["sex=m"]
    own = rs.cohort.fit_outcome(Y, PEOPLE, interactions=design_by_hand(("sex=m",)))
    assert found.log_hr == own.log_hr


def test_all_levels_are_held_against_the_treatment():
    """Of a category whose first level is the treatment by another name."""
    drug = np.where(TREATMENT == 1, "a", np.where(rng.random(N) < 0.5, "b", "c"))
    frame = FRAME.assign(drug=drug)
    with pytest.raises(rs.CohortError, match="'drug=a'"):
        rs.cohort.propensity_score(TREATMENT, frame, None)
    found = rs.cohort.propensity_score(TREATMENT, frame, None, on_high_correlation="exclude")
    # b and c make up a: only one of them stays, or none.
    assert "drug=a" in found.excluded
    assert len([name for name in found.names if name.startswith("drug=")]) <= 1
    assert found.high_correlation.names[0] == "drug=a"


def test_an_excluded_level_does_not_follow_from_the_others():
    """With a ridge penalty, which keeps the levels of other categories."""
    drug = np.where(TREATMENT == 1, "b", rng.choice(["a", "c", "d"], N))
    found = rs.cohort.propensity_score(
        TREATMENT,
        FRAME[["sex"]].assign(drug=drug),
        rs.L2(1.0),
        on_high_correlation="exclude",
        max_correlation=0.6,
    )
    assert found.excluded == ("drug=b",)
    assert found.names == (*SEXES, "drug=c", "drug=d")


def test_tidy_covariates_of_new_people_have_the_same_categories():
    found = rs.cohort.tidy(FRAME, min_count=20)
    again = found.apply(FRAME.iloc[:50])
    assert again.factors == found.design.factors
    assert again.names == found.design.names


def test_what_is_saved_knows_its_categories(tmp_path):
    found = rs.cohort.tidy(FRAME)
    rs.cohort.save(found, tmp_path / "tidy")
    assert rs.cohort.load(tmp_path / "tidy").design.factors == (SITES, SEXES)
    balance = rs.cohort.balance(FRAME, PEOPLE)
    rs.cohort.save(balance, tmp_path / "balance")
    assert rs.cohort.load(tmp_path / "balance").factors == (SITES, SEXES)
