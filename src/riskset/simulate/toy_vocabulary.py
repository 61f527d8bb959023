"""The concepts of the toy CDM: ids and short names, and what descends from what."""

import numpy as np

from riskset.simulate.toy_rows import ToyColumns, missing

__all__ = [
    "ACE_INHIBITORS",
    "CLINICAL_DRUG",
    "CONDITIONS",
    "HEART_FAILURE",
    "INFARCTION",
    "MEASUREMENTS",
    "NOISE",
    "OTHER_DRUGS",
    "PROCEDURES",
    "THIAZIDES",
    "ancestors",
    "concepts",
]

ACE_INHIBITORS = ((1308216, "lisinopril"), (1341927, "enalapril"))
THIAZIDES = ((974166, "hydrochlorothiazide"), (1395058, "chlorthalidone"))
OTHER_DRUGS = (
    (1503297, "metformin"),
    (1545958, "atorvastatin"),
    (1112807, "aspirin"),
    (1307046, "metoprolol"),
    (1125315, "acetaminophen"),
    (1177480, "ibuprofen"),
)
INGREDIENTS = (*ACE_INHIBITORS, *THIAZIDES, *OTHER_DRUGS)
CLINICAL_DRUG = {ingredient: 2_000_000_000 + k for k, (ingredient, _) in enumerate(INGREDIENTS)}
"""Ingredient -> the one clinical drug that contains it."""

CONDITIONS = (
    (320128, "Essential hypertension", 0.9, 0.02),
    (201826, "Type 2 diabetes mellitus", -1.6, 0.02),
    (432867, "Hyperlipidemia", -0.8, 0.02),
    (433736, "Obesity", -1.5, -0.005),
    (80180, "Osteoarthritis", -1.8, 0.03),
    (255573, "Chronic obstructive pulmonary disease", -3, 0.03),
    (317576, "Coronary arteriosclerosis", -3.2, 0.04),
    (313217, "Atrial fibrillation", -3.4, 0.05),
    (381591, "Cerebrovascular disease", -3.3, 0.04),
)
"""Concept, name, log odds at the age of 60, and their change by year."""

NOISE = tuple((2_000_001_000 + k, f"Toy condition {k:02d}") for k in range(1, 41))
PROCEDURES = (
    (2_000_002_001, "Toy electrocardiography"),
    (2_000_002_002, "Toy physical examination"),
    (2_000_002_003, "Toy spirometry"),
)
MEASUREMENTS = (
    (3004249, "Systolic blood pressure", 8876, None, None),
    (3016723, "Creatinine serum/plasma", 8840, 0.6, 1.2),
    (3004410, "Hemoglobin A1c", 8554, 4.0, 6.0),
)
"""Concept, name, unit, and the ends of the normal range."""

HEART_FAILURE, INFARCTION, HEART_DISEASE = 316139, 4329847, 321588
OF_THE_HEART = (HEART_FAILURE, INFARCTION, 317576, 313217)

NO_DOMAIN = (
    (0, "No matching concept", "Metadata", "Undefined", None),
    (8507, "MALE", "Gender", "Gender", "S"),
    (8532, "FEMALE", "Gender", "Gender", "S"),
    (8527, "White", "Race", "Race", "S"),
    (8516, "Black or African American", "Race", "Race", "S"),
    (8515, "Asian", "Race", "Race", "S"),
    (38003563, "Hispanic or Latino", "Ethnicity", "Ethnicity", "S"),
    (38003564, "Not Hispanic or Latino", "Ethnicity", "Ethnicity", "S"),
    (9201, "Inpatient Visit", "Visit", "Visit", "S"),
    (9202, "Outpatient Visit", "Visit", "Visit", "S"),
    (8876, "millimeter mercury column", "Unit", "Unit", "S"),
    (8840, "milligram per deciliter", "Unit", "Unit", "S"),
    (8554, "percent", "Unit", "Unit", "S"),
)


def _rows() -> list[tuple[int, str, str, str, str | None]]:
    diseases = [(concept, name) for concept, name, *_ in CONDITIONS]
    diseases += NOISE
    diseases += [
        (HEART_FAILURE, "Heart failure"),
        (INFARCTION, "Myocardial infarction"),
        (HEART_DISEASE, "Heart disease"),
    ]
    tablets = [(CLINICAL_DRUG[c], f"{name} toy oral tablet") for c, name in INGREDIENTS]
    kinds = (
        (diseases, "Condition", "Disorder"),
        (PROCEDURES, "Procedure", "Procedure"),
        ([(c, name) for c, name, *_ in MEASUREMENTS], "Measurement", "Lab Test"),
        (INGREDIENTS, "Drug", "Ingredient"),
        (tablets, "Drug", "Clinical Drug"),
    )
    named = [(c, name, domain, kind, "S") for pairs, domain, kind in kinds for c, name in pairs]
    return [*NO_DOMAIN, *named]


def concepts() -> ToyColumns:
    """Table concept."""
    ids, names, domains, classes, standard = zip(*_rows(), strict=True)
    n = len(ids)
    return {
        "concept_id": np.array(ids),
        "concept_name": np.array(names),
        "domain_id": np.array(domains),
        "vocabulary_id": np.full(n, "Toy"),
        "concept_class_id": np.array(classes),
        "standard_concept": np.array(standard, dtype=object),
        "concept_code": np.array(list(map(str, ids))),
        "valid_start_date": np.full(n, np.datetime64("1970-01-01")),
        "valid_end_date": np.full(n, np.datetime64("2099-12-31")),
        "invalid_reason": missing(n, object),
    }


def ancestors() -> ToyColumns:
    """Table concept_ancestor: everything from itself, drugs from ingredients, heart diseases."""
    pairs = {(concept, concept, 0) for concept, *_ in _rows() if concept}
    pairs |= {(ingredient, drug, 1) for ingredient, drug in CLINICAL_DRUG.items()}
    pairs |= {(HEART_DISEASE, concept, 1) for concept in OF_THE_HEART}
    ancestor, descendant, levels = np.array(sorted(pairs)).T
    return {
        "ancestor_concept_id": ancestor,
        "descendant_concept_id": descendant,
        "min_levels_of_separation": levels,
        "max_levels_of_separation": levels,
    }
