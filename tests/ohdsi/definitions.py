"""Cohort definitions in the JSON of Circe, and the small CDM to which the tests apply them."""

import datetime

import pyarrow as pa


def day(text):
    return datetime.date.fromisoformat(text)


def item(concept, **flags):
    return {"concept": {"CONCEPT_ID": concept, "CONCEPT_NAME": "x"}, **flags}


def concept_set(number, *items, name="a set"):
    return {"id": number, "name": name, "expression": {"items": list(items)}}


def definition(criterion, *sets, prior_days=0, limit="First", **parts):
    """People at a criterion, such as {"DrugExposure": {"CodesetId": 0}}."""
    return {
        "ConceptSets": list(sets),
        "PrimaryCriteria": {
            "CriteriaList": [criterion],
            "ObservationWindow": {"PriorDays": prior_days, "PostDays": 0},
            "PrimaryCriteriaLimit": {"Type": limit},
        },
        "QualifiedLimit": {"Type": limit},
        "ExpressionLimit": {"Type": limit},
        "InclusionRules": [],
        "CensoringCriteria": [],
        "CollapseSettings": {"CollapseType": "ERA", "EraPad": 0},
        "CensorWindow": {},
        **parts,
    }


def rule(name, *criteria, demographic=()):
    group = {"Type": "ALL", "CriteriaList": list(criteria), "Groups": []}
    return {"name": name, "expression": group | {"DemographicCriteriaList": list(demographic)}}


def occurs(criterion, kind, count, first=None, last=None):
    """A criterion `kind` times (0 exactly, 1 at most, 2 at least) from day `first` to `last`."""
    ends = {}
    for name, end, open_end in (("Start", first, -1), ("End", last, 1)):
        ends[name] = {"Coeff": open_end} if end is None else {"Days": abs(end), "Coeff": 1}
        if end is not None and end < 0:
            ends[name]["Coeff"] = -1
    return {
        "Criteria": criterion,
        "StartWindow": {**ends, "UseEventEnd": False},
        "Occurrence": {"Type": kind, "Count": count},
    }


DRUG, CLASS, DISEASE = 11, 10, 20


def small_tables():
    """Five people, observed in 2010 to 2019.

    1 starts the drug 11 on 2012-03-01 (30 days) and again on 2012-03-25 (30 days) and 2014-01-01.
    2 starts it on 2010-06-01, after 151 days of observation, and is ill on 2011-01-01.
    3 is ill on 2012-01-01, and starts it on 2013-01-01.
    4, who is 30, starts it on 2015-05-05.
    5 starts drug 12, which is no descendant of class 10.
    """
    exposures = [
        (1, 1, 11, "2012-03-01", "2012-03-30"),
        (2, 1, 11, "2012-03-25", "2012-04-23"),
        (3, 1, 11, "2014-01-01", "2014-01-30"),
        (4, 2, 11, "2010-06-01", "2010-06-30"),
        (5, 3, 11, "2013-01-01", "2013-01-30"),
        (6, 4, 11, "2015-05-05", "2015-06-03"),
        (7, 5, 12, "2015-05-05", "2015-06-03"),
    ]
    ills = [(1, 2, 20, "2011-01-01"), (2, 3, 20, "2012-01-01")]
    people = [1, 2, 3, 4, 5]
    return {
        "person": pa.table(
            {
                "person_id": people,
                "year_of_birth": [1950, 1950, 1950, 1985, 1950],
                "gender_concept_id": [8507, 8532, 8507, 8532, 8507],
            }
        ),
        "observation_period": pa.table(
            {
                "observation_period_id": people,
                "person_id": people,
                "observation_period_start_date": [day("2010-01-01")] * 5,
                "observation_period_end_date": [day("2019-12-31")] * 5,
            }
        ),
        "drug_exposure": pa.table(
            {
                "drug_exposure_id": [row[0] for row in exposures],
                "person_id": [row[1] for row in exposures],
                "drug_concept_id": [row[2] for row in exposures],
                "drug_exposure_start_date": [day(row[3]) for row in exposures],
                "drug_exposure_end_date": [day(row[4]) for row in exposures],
                "days_supply": [30] * 7,
                "quantity": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
            }
        ),
        "condition_occurrence": pa.table(
            {
                "condition_occurrence_id": [row[0] for row in ills],
                "person_id": [row[1] for row in ills],
                "condition_concept_id": [row[2] for row in ills],
                "condition_start_date": [day(row[3]) for row in ills],
            }
        ),
        "concept": pa.table(
            {
                "concept_id": [10, 11, 12, 20],
                "invalid_reason": pa.array([None] * 4, pa.string()),
            }
        ),
        "concept_ancestor": pa.table(
            {
                "ancestor_concept_id": [10, 10, 11, 12, 20],
                "descendant_concept_id": [10, 11, 11, 12, 20],
            }
        ),
    }
