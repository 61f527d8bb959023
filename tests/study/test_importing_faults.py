"""Specifications of Strategus and CohortMethod that riskset does not understand."""

import json

import pytest

import riskset as rs
from ohdsi.definitions import concept_set, definition, item
from reference import read_json
from riskset.study import import_specification
from study.analysis_specifications import analysis, imported, only, specification


def test_unknown_settings_are_listed(tmp_path):
    one = analysis(data={"newSetting": 3, "attr_class": "args", "off": False}, anotherOne={"a": 1})
    _, lost = only(tmp_path, one)
    assert lost == {"newSetting", "anotherOne"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"washoutPeriod": "many"}, "getDbCohortMethodDataArgs.washoutPeriod must be a number"),
        ({"washoutPeriod": 1.5}, "washoutPeriod must be a whole number, but it is 1.5"),
        ({"firstExposureOnly": "yes"}, "firstExposureOnly must be true or false"),
        ({"studyStartDate": "2010"}, "studyStartDate must be a date, as 20200131"),
        ({"covariateSettings": {"DemographicsGender": True, "longTermStartDays": 5}}, "long_days"),
    ],
)
def test_values_that_cannot_be_read(tmp_path, change, message):
    with pytest.raises(rs.InputError, match=message):
        imported(tmp_path, specification(analysis(data=change)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "spec.json is not a complete specification"),
        ({}, "spec.json has no analysis that riskset can run"),
        ({"cmAnalysisList": [analysis()]}, "no cmAnalysisList or no targetComparatorOutcomesList"),
    ],
)
def test_what_is_no_specification(tmp_path, content, message):
    with pytest.raises(rs.InputError, match=message) as caught:
        imported(tmp_path, content)
    assert "Strategus" in caught.value.hint
    with pytest.raises(rs.InputError, match="cannot be read"):
        import_specification(tmp_path / "none.json", tmp_path)


def _placed(*keys, value):
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return change


FIRST = ("cmAnalysisList", 0)
COMPARISON = ("targetComparatorOutcomesList", 0)
DAMAGED = {
    "an analysis is a text": (_placed("cmAnalysisList", value=["a"]), "a list of sections"),
    "analyses are a section": (_placed("cmAnalysisList", value={"a": 1}), "a list of sections"),
    "comparisons": (_placed("targetComparatorOutcomesList", value=["a"]), "a list of sections"),
    "outcomes": (_placed(*COMPARISON, "outcomes", value=[3]), "outcomes must be a list of"),
    "an outcome twice": (
        _placed(*COMPARISON, "outcomes", value=[{"outcomeId": 3}, {"outcomeId": " 3"}]),
        "outcomes.1.outcomeId must be a number that no other one has",
    ),
    "half a concept": (
        _placed(*COMPARISON, "excludedCovariateConceptIds", value=[1.5]),
        "excludedCovariateConceptIds must be whole numbers",
    ),
    "two priors": (
        _placed(*FIRST, "createPsArgs", value={"prior": {"priorType": ["laplace", "normal"]}}),
        "priorType must be a text",
    ),
    "bounds": (
        _placed(*FIRST, "trimByPsArgs", value={"equipoiseBounds": ["a", "b"]}),
        "equipoiseBounds must be numbers",
    ),
    "bounds of a profile": (
        _placed(*FIRST, "fitOutcomeModelArgs", "profileBounds", value=["a"]),
        "profileBounds must be numbers",
    ),
    "analyses to leave out": (_placed("analysesToExclude", value=["a"]), "a list of sections"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_not_a_specification_names_its_place(tmp_path, name):
    change, message = DAMAGED[name]
    content = specification(analysis())
    change(content)
    with pytest.raises(rs.InputError, match=message):
        imported(tmp_path, content)


def test_an_analysis_twice(tmp_path):
    with pytest.raises(rs.InputError, match="analysisId must be a number that no other one has"):
        imported(tmp_path, specification(analysis(1, "a"), analysis(1, "b")))


@pytest.mark.parametrize("resources", [{"cohortDefinitions": ["a"]}, {"cohortDefinitions": {}}])
@pytest.mark.parametrize("modules", [["a"], {"module": "CohortMethodModule"}])
def test_damaged_parts_of_strategus(tmp_path, resources, modules):
    content = {"sharedResources": [resources], "moduleSpecifications": modules}
    with pytest.raises(rs.InputError, match="must be a list of sections"):
        imported(tmp_path, content)


def strategus(*definitions, **controls):
    one = {"cohortId": 101, "cohortName": "Nail", "outcomeConceptId": 139099}
    controls = {"negativeControlOutcomeCohortSet": [one]} | controls
    return {
        "sharedResources": [
            {"cohortDefinitions": list(definitions)},
            {"negativeControlOutcomes": controls},
        ],
        "moduleSpecifications": [{"module": "CohortMethodModule", "settings": specification()}],
    }


def test_a_cohort_twice(tmp_path):
    twice = strategus(*({"cohortId": 1, "cohortName": name} for name in "ab"))
    with pytest.raises(rs.InputError, match="cohortDefinitions.1.cohortId must be a number that"):
        imported(tmp_path, twice)


def test_an_unknown_occurrence_of_controls(tmp_path):
    with pytest.raises(rs.InputError, match="occurrenceType must be 'all' or 'first'"):
        imported(tmp_path, strategus(occurrenceType="sometimes"))


def test_a_definition_as_an_object_instead_of_its_text(tmp_path):
    ill = definition({"ConditionOccurrence": {"CodesetId": 0}}, concept_set(0, item(316139)))
    cohorts = [{"cohortId": k, "cohortName": f"c{k}", "cohortDefinition": ill} for k in (1, 2, 3)]
    found, (study,) = imported(tmp_path, strategus(*cohorts))
    assert study["data"]["cohort_definitions"] == "cohorts"
    assert read_json(found.studies[0].parent / "cohorts" / "cohorts" / "2.json") == ill


def test_a_folder_with_files_is_left_alone(tmp_path):
    """A study that was imported may have been edited since."""
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(specification(analysis())))
    (study,) = import_specification(path, tmp_path / "out").studies
    study.write_text("edited")
    with pytest.raises(rs.InputError, match="has files, which an import would replace"):
        import_specification(path, tmp_path / "out")
    assert study.read_text() == "edited"
