"""Specifications of CohortMethod, and the studies that are made of them."""

import json
import tempfile

import yaml

from riskset.study import import_specification


def analysis(number=1, description="Crude", *, data=(), population=(), outcome=(), **parts):
    return {
        "analysisId": number,
        "description": description,
        "getDbCohortMethodDataArgs": {
            "removeDuplicateSubjects": "keep first",
            "firstExposureOnly": False,
            "washoutPeriod": 183,
            "restrictToCommonPeriod": False,
            "studyStartDate": "",
            "studyEndDate": "",
            "maxCohortSize": 0,
            "covariateSettings": {"DemographicsGender": True, "attr_class": "covariateSettings"},
            **dict(data),
        },
        "createStudyPopulationArgs": {
            "removeSubjectsWithPriorOutcome": True,
            "priorOutcomeLookback": 99999,
            "minDaysAtRisk": 1,
            "maxDaysAtRisk": 99999,
            "riskWindowStart": 0,
            "startAnchor": "cohort start",
            "riskWindowEnd": 30,
            "endAnchor": "cohort end",
            "censorAtNewRiskWindow": False,
            **dict(population),
        },
        "fitOutcomeModelArgs": {"modelType": "cox", "stratified": False, **dict(outcome)},
        **parts,
    }


def specification(*analyses, comparisons=None, **settings):
    comparisons = comparisons or [
        {"targetId": 1, "comparatorId": 2, "outcomes": [{"outcomeId": 3}]}
    ]
    content = {"cmAnalysisList": list(analyses) or [analysis()]}
    return content | {"targetComparatorOutcomesList": comparisons} | settings


def imported(tmp_path, content, **options):
    """What is written, in a folder of its own, and the studies."""
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(content))
    found = import_specification(path, tempfile.mkdtemp(dir=tmp_path), **options)
    return found, [yaml.safe_load(path.read_text("utf-8")) for path in found.studies]


def only(tmp_path, one, **settings):
    """The section of the only analysis, and the places that were lost."""
    found, (study,) = imported(tmp_path, specification(one, **settings))
    (section,) = study["analyses"].values()
    return section, {lost.place.split(".")[-1] for lost in found.lost}
