"""A setting is declared once: objects and keywords, signatures, checks and YAML are the same."""

import dataclasses
import inspect

import numpy as np
import pytest

import riskset as rs
from riskset._settings import declared, is_section
from riskset.cohort import settings as cohort_settings
from riskset.omop.eligibility import Eligibility
from riskset.omop.risk import TimeAtRisk
from riskset.study import sections

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
}


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
        rs.cohort.match(people, rs.cohort.Match(ratio=1), ratio=2, caliper=None),
        rs.cohort.match(people, 2, None),
        rs.cohort.match(people, ratio=np.int64(2), caliper=None),
    ):
        np.testing.assert_array_equal(made.set_id, wanted)
        assert made.settings["ratio"] == 2
        assert type(made.settings["ratio"]) is int


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
        sections.MatchSection: cohort_settings.Match,
        sections.TrimSection: cohort_settings.Trim,
        sections.StratifySection: cohort_settings.Stratify,
        sections.PropensitySection: cohort_settings.PropensityModel,
        sections.OutcomeModelSection: cohort_settings.OutcomeModel,
    }
    for section, base in shared.items():
        assert issubclass(section, base)
    kinds = {own.name: own.kind for own in declared(sections.Analysis).values()}
    assert kinds["tidy"] is cohort_settings.Tidy
    assert kinds["weight"] == cohort_settings.Weight | None
    assert kinds["balance"] is cohort_settings.BalanceOptions
    assert kinds["eligibility"] == Eligibility | None
    assert kinds["time_at_risk"] == TimeAtRisk | None
    # What only functions of Python have is no key of a file.
    keys = {own.key for own in declared(sections.MatchSection).values()}
    assert keys == {"ratio", "caliper", "scale", "within", "allow_reverse", None}
    assert all(map(is_section, shared))
