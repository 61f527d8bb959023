"""A setting is declared once: objects and keywords, signatures, checks and YAML are the same."""

import dataclasses
import inspect

import numpy as np
import pytest

import riskset as rs
from riskset._settings import declared, is_section
from riskset.cohort import settings as cohort_settings
from riskset.cohort.arms.augmentation_settings import DoublyRobustOptions
from riskset.cohort.arms.restricted_means import RestrictedMeanOptions
from riskset.cohort.arms.risks import RiskDifferenceOptions
from riskset.cohort.arms.standardization import StandardizeOptions
from riskset.omop.eligibility import Eligibility
from riskset.omop.risk import TimeAtRisk
from riskset.study.specification import sections

STEPS = {
    rs.cohort.tidy: rs.cohort.Tidy,
    rs.cohort.propensity_score: rs.cohort.PropensityModel,
    rs.cohort.trim: rs.cohort.Trim,
    rs.cohort.match: rs.cohort.Match,
    rs.cohort.stratify: rs.cohort.Stratify,
    rs.cohort.weight: rs.cohort.Weight,
    rs.cohort.balance: rs.cohort.BalanceOptions,
    rs.cohort.fit_outcome: rs.cohort.OutcomeModel,
    rs.cohort.diagnose: rs.cohort.DiagnosticLimits,
    rs.cohort.risk_difference: RiskDifferenceOptions,
    rs.cohort.restricted_mean: RestrictedMeanOptions,
    rs.cohort.standardize: StandardizeOptions,
    rs.cohort.doubly_robust: DoublyRobustOptions,
}

RNG = np.random.default_rng(3)
X = RNG.integers(0, 2, (40, 3)).astype(float)
Y = rs.Surv(RNG.integers(1, 90, 40), RNG.integers(0, 2, 40))
TREATED = np.where(RNG.uniform(size=40) < 0.8, X[:, 0], 1 - X[:, 0])
PEOPLE = rs.cohort.Population(TREATED, RNG.uniform(0.3, 0.7, 40))
BLOCKS = RNG.integers(0, 2, 40)

CALLS = {
    rs.cohort.tidy: ((X, PEOPLE), {"min_count": 3}, {}),
    rs.cohort.propensity_score: (
        (TREATED, X),
        {"penalty": None, "max_correlation": 1.0},
        {},
    ),
    rs.cohort.trim: ((PEOPLE,), {"symmetric": 0.35}, {"weights": rs.cohort.weight(PEOPLE)}),
    rs.cohort.match: (
        (PEOPLE,),
        {"ratio": 2, "exact_covariates": ("x1",)},
        {"within": BLOCKS, "X": X},
    ),
    rs.cohort.stratify: ((PEOPLE,), {"k": 3}, {"within": BLOCKS}),
    rs.cohort.weight: ((PEOPLE,), {"estimand": "ate"}, {}),
    rs.cohort.balance: ((X, rs.cohort.match(PEOPLE)), {"sd": "current"}, {"n_threads": 1}),
    rs.cohort.fit_outcome: ((Y, PEOPLE), {"interval": "wald"}, {"covariates": X}),
    rs.cohort.diagnose: ((), {"max_mdrr": 5.0}, {"mdrr": 4.0}),
    rs.cohort.restricted_mean: ((Y, PEOPLE, [30.0, 60.0]), {"level": 0.9}, {}),
    rs.cohort.standardize: ((Y, PEOPLE, X[:, 1:], [30.0]), {"by_arm": False}, {}),
    rs.cohort.doubly_robust: ((Y, PEOPLE, X[:, 1:], [30.0]), {"censoring": "kaplan-meier"}, {}),
    rs.cohort.risk_difference: ((Y, PEOPLE, [30.0, 60.0]), {"replicates": 50}, {}),
}
"""Arguments of every function that takes settings: by position, of the settings, and others."""


@pytest.fixture
def people():
    return rs.cohort.Population([1, 1, 0, 0, 0], [0.5, 0.4, 0.49, 0.41, 0.1])


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_signatures_and_docstrings_come_from_the_declaration(step):
    parameters = inspect.signature(step).parameters
    for own in declared(STEPS[step]).values():
        assert parameters[own.name].default == own.default
        assert f"\n{own.name} : {own.words}" in inspect.getdoc(step)
        assert f"\n{own.name} : {own.words}" in inspect.getdoc(STEPS[step])


def test_objects_and_keywords(people):
    wanted = rs.cohort.match(people, ratio=2, caliper=None).set_id
    options = rs.cohort.Match(ratio=2, caliper=None)
    for made in (
        rs.cohort.match(people, options),
        rs.cohort.match(people, settings=options),
        rs.cohort.match(people, 2, None),
        rs.cohort.match(people, ratio=np.int64(2), caliper=None),
    ):
        np.testing.assert_array_equal(made.set_id, wanted)
        assert made.settings["ratio"] == 2
        assert type(made.settings["ratio"]) is int


@pytest.mark.parametrize("step", CALLS, ids=lambda step: step.__name__)
def test_an_object_beside_arrays_is_the_same_as_keywords(step):
    arguments, fields, others = CALLS[step]
    options = STEPS[step](**fields)
    expected = repr(step(*arguments, **fields, **others))
    assert repr(step(*arguments, options, **others)) == expected
    assert repr(step(options, *arguments, **others)) == expected
    assert repr(step(*arguments, settings=options, **others)) == expected


@pytest.mark.parametrize("step", CALLS, ids=lambda step: step.__name__)
def test_one_object_and_nothing_else_gives_the_settings(step):
    arguments, fields, others = CALLS[step]
    name, kind = next(iter(fields)), STEPS[step].__name__
    options = STEPS[step](**fields)
    with pytest.raises(rs.InputError) as error:
        step(*arguments, options, **fields, **others)
    assert error.value.argument == name
    assert f"`{name}` was given together with an object of {kind}" in error.value.message
    assert f"set `{name}` in the object" in error.value.hint
    for call in (
        lambda: step(*arguments, options, options),
        lambda: step(*arguments, options, settings=options),
    ):
        with pytest.raises(rs.InputError, match="`settings` was given 2 times") as error:
            call()
        assert error.value.argument == "settings"
        assert kind in error.value.hint
    foreign = rs.cohort.Weight() if step is rs.cohort.trim else rs.cohort.Trim()
    for call in (lambda: step(*arguments, foreign), lambda: step(*arguments, settings=X)):
        with pytest.raises(rs.InputError, match=f"`settings` must be an object of {kind}"):
            call()


def test_arrays_are_settings_too():
    """Given folds are an array, which no code compares with the default."""
    fields = {"folds": np.arange(40) % 4, "repeats": 1, "max_correlation": 1.0}
    found = rs.cohort.propensity_score(PEOPLE, X, rs.cohort.PropensityModel(**fields))
    expected = rs.cohort.propensity_score(PEOPLE, X, **fields)
    np.testing.assert_array_equal(found.score, expected.score)


@pytest.mark.parametrize(
    ("keywords", "message", "hint"),
    [
        ({"ratio": "2"}, "`ratio` must be a whole number of at least 0, but it is '2'.", "is 1."),
        ({"ratio": True}, "`ratio` must be a whole number of at least 0, but it is True.", ""),
        ({"ratio": 1.5}, "`ratio` must be a whole number of at least 0, but it is 1.5.", "limit"),
        ({"caliper": np.nan}, "`caliper` must be a number of at least 0 or None, but", "limit"),
        ({"scale": "standardised"}, "`scale` must be 'standardized logit', ", "'standardized'?"),
        ({"allow_reverse": 1}, "`allow_reverse` must be True or False, but it is 1.", "larger"),
        ({"exact_covariates": "age"}, "`exact_covariates` must be a list", "share, too"),
    ],
)
def test_wrong_values_are_named(people, keywords, message, hint):
    with pytest.raises(rs.CohortError) as error:
        rs.cohort.match(people, **keywords)
    assert message in error.value.message
    assert hint in error.value.hint
    assert error.value.argument == next(iter(keywords))
    assert error.value.code == "BadSetting"


def test_unknown_keywords(people):
    with pytest.raises(TypeError, match=r"match\(\): got an unexpected keyword argument 'rato'"):
        rs.cohort.match(people, rato=2)


def test_settings_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        rs.cohort.Match().ratio = 2
    assert rs.cohort.Match(ratio=2) == rs.cohort.Match(ratio=2)


def test_no_section_of_a_study_declares_a_setting_again():
    """A section that shares a name with the settings of a step is of their class."""
    shared = {
        sections.MatchSection: rs.cohort.Match,
        sections.TrimSection: rs.cohort.Trim,
        sections.CoarsenSection: rs.cohort.Coarsen,
        sections.StratifySection: rs.cohort.Stratify,
        sections.PropensitySection: cohort_settings.PropensityModel,
        sections.OutcomeModelSection: cohort_settings.OutcomeModel,
    }
    for section, base in shared.items():
        assert issubclass(section, base)
    kinds = {own.name: own.kind for own in declared(sections.Analysis).values()}
    assert kinds["tidy"] is cohort_settings.Tidy
    assert kinds["weight"] == rs.cohort.Weight | None
    assert kinds["balance"] is cohort_settings.BalanceOptions
    assert kinds["eligibility"] == Eligibility | None
    assert kinds["time_at_risk"] == TimeAtRisk | None
    # What only functions of Python have is no key of a file.
    keys = {own.key for own in declared(sections.MatchSection).values()}
    of_any = {"ratio", "caliper", "scale", "within", "allow_reverse", None}
    assert keys == of_any | {"method", "replacement", "mahalanobis", "estimand"}
    assert all(map(is_section, shared))
