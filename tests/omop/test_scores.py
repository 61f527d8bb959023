"""Comorbidity scores, with the points counted by hand."""

import pytest

import riskset as rs
from omop.covariates_by_hand import covariates

ANCESTORS = {
    "concept": [(1001, "An infarction")],
    "concept_ancestor": [
        (ancestor, descendant, 1)
        for ancestor, descendant in (
            (4329847, 1001),  # myocardial infarction
            (4329847, 1004),
            (201820, 1002),  # diabetes
            (442793, 1003),  # its complications
            (443392, 1005),  # malignancy
            (381591, 1006),  # cerebrovascular disease
            (375557, 1006),  # cerebral embolism
            (201820, 1007),
            (195771, 1007),  # secondary diabetes
            (320128, 1008),  # hypertension
            (320128, 1009),
            (197930, 1009),  # of the kidney
            (316866, 1009),
            (312327, 1001),  # acute infarction
        )
    ],
}


def scored(records, analyses, people, **settings):
    """Person and covariate -> value, and what was found."""
    found, all_of_it = covariates(records, analyses, people=people, **settings)
    return {(person, name): value for person, name, value in found}, all_of_it


def test_charlson():
    records = ANCESTORS | {
        "condition_era": [
            (1, 1001, -3000, -2999),
            (1, 1004, -5, 5),  # the same disease
            (1, 1002, -700, -600),
            (1, 1003, 0, 9),
            (1, 1005, 1, 9),  # after the index date
            (2, 1009, -5, 0),
            (3, 443392, -1, 0),  # the concept itself
        ]
    }
    name = "Charlson index - Romano adaptation"
    values, found = scored(records, ("CharlsonIndex",), (1, 2, 3))
    assert values == {(1, name): 1 + 1 + 2, (3, name): 2}
    assert found.ids == (1901,)
    row = found.ref.to_pylist()[0]
    assert (row["analysis_id"], row["concept_id"], row["domain"]) == (901, 0, "condition")
    assert (row["start_day"], row["end_day"]) == (None, 0)
    assert (row["is_binary"], row["missing_means_zero"]) == (False, True)
    before, _ = scored(records, (901,), (1, 2, 3), end_day=-1)
    assert before == {(1, name): 1 + 1, (3, name): 2}
    observed, _ = scored(records, (901,), (1, 2, 3), within_observation=True)
    assert observed == {(1, name): 1 + 2, (3, name): 2}


PEOPLE = {
    "person": [
        (1, 1950, 1, 1, 8532),
        (2, 1945, 12, 31, 8507),  # 75 by the difference of years, 74 years completed
        (3, 1946, 1, 1, 8507),
        (4, 1956, 1, 1, 8532),
    ]
}


def test_chads2_and_chads2vasc():
    records = (
        ANCESTORS
        | PEOPLE
        | {
            "condition_era": [
                (1, 1006, -900, -800),  # stroke
                (1, 1007, -5, -5),  # diabetes, for CHADS2 alone
                (1, 1009, -5, -5),  # hypertension, for CHADS2 alone
                (1, 317305, -5, -5),  # vascular disease by the concept itself
                (3, 1008, -5, -5),  # hypertension, for CHA2DS2-VASc alone
                (3, 1002, -5, -5),
                (3, 318773, -5, -5),  # heart failure, for CHA2DS2-VASc alone
            ]
        }
    )
    values, found = scored(records, ("Chads2", "Chads2Vasc"), (1, 2, 3, 4))
    assert values == {
        (1, "CHADS2"): 2 + 1 + 1,
        (2, "CHADS2"): 1,
        (3, "CHADS2"): 1,
        (4, "CHADS2"): 0,
        (1, "CHADS2VASc"): 2 + 1 + 1 + 1,  # stroke, vascular, 65 to 74 years, female
        (2, "CHADS2VASc"): 2,
        (3, "CHADS2VASc"): 1 + 1 + 1 + 1,
        (4, "CHADS2VASc"): 1,
    }
    assert found.ids == (1903, 1904)
    completed, _ = scored(records, (903, 904), (1, 2, 3, 4), age_method="completed_years")
    assert (completed[2, "CHADS2"], completed[2, "CHADS2VASc"]) == (0, 1)


def codes(vocabulary, mapped, relationship="Maps to"):
    """Codes that map to concepts, numbered from 500 on, and the concepts."""
    own = [(500 + k, None, None, vocabulary, None, None, c) for k, c in enumerate(mapped)]
    targets = [(target, f"SNOMED {target}", None, "SNOMED") for target in set(mapped.values())]
    return {
        "concept": [*own, *targets],
        "concept_relationship": [
            (500 + k, target, relationship) for k, target in enumerate(mapped.values())
        ],
    }


DIABETES = {
    "250.50": 601,  # retinopathy, 1 point
    "362.02": 602,  # retinopathy, 2 points
    "250.4": 603,  # nephropathy, as it is written
    "250.40": 604,  # not listed
    "355.9": 605,  # neuropathy
    "354": 606,  # not listed
    "354.0": 607,  # neuropathy
    "428.0": 608,  # cardiovascular, 2 points
    "414.01": 609,  # cardiovascular, 1 point
    "440.20": 610,
    "440.23": 610,  # by the larger number of points
}


def test_dcsi():
    records = codes("ICD9CM", DIABETES) | {
        "condition_era": [
            *((1, c, -2000, -2000) for c in (601, 602, 603, 605, 607)),
            (1, 608, -5, 0),
            (1, 609, 0, 5),
            (2, 604, -5, 0),
            (2, 606, -5, 0),
            (3, 610, -5, 0),
            (4, 601, -5, 0),
            (4, 602, 1, 5),  # after the index date
        ]
    }
    name = "Diabetes Comorbidity Severity Index (DCSI)"
    values, found = scored(records, ("Dcsi",), (1, 2, 3, 4))
    assert values == {(1, name): 2 + 1 + 1 + 2, (3, name): 2, (4, name): 1}
    assert found.ids == (1902,)
    assert [note.code for note in found.notes] == []


def test_hfrs():
    """Tenths add up exactly."""
    mapped = {"F00.1": 601, "F00": 602, "R50.9": 603, "S06.0": 604, "S07.1": 605}
    records = codes("ICD10", mapped) | {
        "condition_era": [
            *((1, concept, -2000, -2000) for concept in (601, 602, 603, 604)),
            (2, 605, -1, 0),
            *((3, 603, -day, -day) for day in (9, 7, 5)),
        ]
    }
    name = "Hospital Frailty Risk Score (HFRS)"
    values, found = scored(records, ("Hfrs",), (1, 2, 3))
    assert values == {(1, name): 9.6, (3, name): 0.1}
    assert found.ids == (1926,)


def test_hfrs_has_109_codes():
    """Sum and number of the points that Gilbert et al. (2018) list."""
    from riskset.omop.scores import SCORES

    points = [category.points for category in SCORES[926].categories]
    assert len({category.codes for category in SCORES[926].categories}) == len(points) == 109
    assert (max(points), min(points)) == (7.1, 0.1)
    assert round(sum(points), 1) == 173.2


@pytest.mark.parametrize("analysis", ["Dcsi", "Hfrs"])
def test_scores_by_codes_need_mappings(analysis):
    eras = {"condition_era": [(1, 601, -5, 0)]}
    values, found = scored(ANCESTORS | eras, (analysis,), (1, 2))
    assert values == {}
    (note,) = (note for note in found.notes if note.code == "no_score")
    assert f"concept_relationship, so these analyses are left out: {9}" in note.message
    assert analysis in note.message
    for other in (codes("ICD9", DIABETES), codes("ICD9CM", DIABETES, "Is a")):
        values, found = scored(other | eras, (analysis,), (1, 2))
        assert values == {}
        (note,) = (note for note in found.notes if note.code == "no_score_codes")
        assert f"{analysis} (analysis 9" in note.message


def test_scores_by_concepts_need_ancestors():
    """Without them a score would be that of healthy people."""
    records = PEOPLE | {"condition_era": [(1, 4329847, -5, 0)]}
    values, found = scored(records, (901, 903, 904), (1, 2))
    assert values == {}
    (note,) = (note for note in found.notes if note.code == "no_score")
    assert note.message.endswith("left out: 901 CharlsonIndex, 903 Chads2, 904 Chads2Vasc.")


def test_excluded_concepts_still_give_points():
    records = ANCESTORS | {"condition_era": [(1, 1001, -5, 0)]}
    values, _ = scored(records, (901, 202), (1, 2), exclude=rs.omop.ConceptSet([1001]))
    assert values == {(1, "Charlson index - Romano adaptation"): 1}
