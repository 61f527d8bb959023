"""Every kind of covariate from a CDM, by hand."""

import datetime

import pyarrow as pa
import pytest

import riskset as rs
from omop.toy import rows

DAY0 = datetime.date(2020, 1, 1)


def on(day):
    return DAY0 + datetime.timedelta(days=day)


# -------------------------------------------------------------------- by hand


TABLES = {
    "condition_era": ("condition_concept_id", "condition_era_start_date", "condition_era_end_date"),
    "condition_occurrence": ("condition_concept_id", "condition_start_date", "condition_end_date"),
    "drug_era": ("drug_concept_id", "drug_era_start_date", "drug_era_end_date"),
    "drug_exposure": (
        "drug_concept_id",
        "drug_exposure_start_date",
        "drug_exposure_end_date",
        "days_supply",
    ),
    "procedure_occurrence": ("procedure_concept_id", "procedure_date"),
    "observation": ("observation_concept_id", "observation_date"),
    "measurement": (
        "measurement_concept_id",
        "measurement_date",
        "value_as_number",
        "unit_concept_id",
        "range_low",
        "range_high",
        "measurement_id",
    ),
    "concept": (
        "concept_name",
        "domain_id",
        "vocabulary_id",
        "concept_class_id",
        "standard_concept",
        "concept_code",
    ),
    "concept_ancestor": ("descendant_concept_id", "min_levels_of_separation"),
    "person": (
        "year_of_birth",
        "month_of_birth",
        "day_of_birth",
        "gender_concept_id",
        "race_concept_id",
        "ethnicity_concept_id",
    ),
}
KEYS = {"concept": "concept_id", "concept_ancestor": "ancestor_concept_id"}


def table(name, records):
    """Records that start with the person, or the concept; days are relative to index."""
    columns = (KEYS.get(name, "person_id"), *TABLES[name])
    given = {}
    for k, column in enumerate(columns):
        values = [r[k] if k < len(r) else None for r in records]
        if column.endswith("_date"):
            given[column] = pa.array([None if v is None else on(v) for v in values], pa.date32())
        elif TABLES.get("concept") and column in TABLES["concept"]:
            given[column] = pa.array(values, pa.string())
        else:
            whole = all(v is None or float(v).is_integer() for v in values)
            given[column] = pa.array(values, pa.int64() if whole else pa.float64())
    return pa.table(given)


def covariates(records, analyses, *, people=(1, 2), drugs=(), **settings):
    """Sorted (person, name, value) of people who enter on 2020-01-01, target and comparators."""
    tables = {name: table(name, own) for name, own in records.items()}
    persons = sorted(people)
    tables.setdefault("person", table("person", [(p, 1950) for p in persons]))
    tables["observation_period"] = pa.table(
        {
            "person_id": persons,
            "observation_period_start_date": [on(-400)] * len(persons),
            "observation_period_end_date": [on(400)] * len(persons),
        }
    )
    both = pa.table(
        {
            "cohort_definition_id": [1 if p == 1 else 2 for p in persons],
            "subject_id": persons,
            "cohort_start_date": [DAY0] * len(persons),
        }
    )
    chosen = rs.omop.CovariateSettings(analyses, **settings)
    with rs.omop.Cdm(tables) as cdm:
        episodes = rs.omop.CohortTable(1, 2, both, drugs=drugs).read(cdm)
        start = rs.omop.Eligibility(restrict_to_common_period=False).select(cdm, episodes)
        found = rs.omop.Covariates.extract(cdm, start, chosen)
        names = dict(zip(found.ids, found.names, strict=True))
        # row ids are 1, 2, ... by person
        entries = sorted(
            (persons[r - 1], names[i], v)
            for i, r, v in rows(found.table, "covariate_id", "row_id", "value")
        )
        return entries, found


def of_person(entries, person=1):
    return [name for p, name, _ in entries if p == person]


def test_eras_overlap_windows():
    records = {
        "condition_era": [
            (1, 10, -500, -366),  # a day too early
            (1, 11, -500, -365),
            (1, 12, -100, -31),
            (1, 13, -100, -30),
            (1, 14, 0, 90),
            (1, 15, 1, 90),  # a day too late
            (1, 0, -5, 5),
            (1, None, -5, 5),
            (2, 14, -10, None),
        ]
    }
    entries, _ = covariates(records, (202, 203, 204))
    names = [f"condition [unknown concept {c}], days {d} to 0" for c, d in (
        (11, -365), (12, -180), (12, -365), (13, -180), (13, -30), (13, -365),
        (14, -180), (14, -30), (14, -365),
    )]  # fmt: skip
    assert of_person(entries) == sorted(names)
    assert of_person(entries, 2) == names[6:]
    before, _ = covariates(records, (204,), end_day=-1, short_days=-10)
    assert before == [(2, "condition [unknown concept 14], days -10 to -1", 1.0)]


def test_overlap_is_the_index_day():
    entries, _ = covariates({"drug_era": [(1, 5, -9, 0), (1, 6, 0, 9), (1, 7, -9, -1)]}, (405,))
    assert of_person(entries) == [f"drug [unknown concept {c}], days 0 to 0" for c in (5, 6)]


@pytest.mark.parametrize(
    ("domain", "name", "analysis"),
    [
        ("procedure", "procedure_occurrence", 502),
        ("observation", "observation", 802),
        ("measurement", "measurement", 702),
    ],
)
def test_records_of_a_day(domain, name, analysis):
    records = {
        name: [(1, 5, -366), (1, 6, -365), (1, 7, 0), (1, 7, -3), (1, 8, 1)],
        "concept": [(6, "Six")],
    }
    entries, _ = covariates(records, (analysis,))
    assert of_person(entries) == [
        f"{domain} Six, days -365 to 0",
        f"{domain} [unknown concept 7], days -365 to 0",
    ]


def test_people():
    records = {
        "person": [
            (1, 1954, 1, 1, 8507, 8527, 38003563),
            (2, 1954, 1, 2, 0, 0, 0),
            (3, 1954, None, None, 8532, 8516, 77),
        ],
        "concept": [(8516, "Black")],
    }
    entries, found = covariates(records, (1, 2, 3, 4, 5, 6, 7), people=(1, 2, 3))
    assert [(n, v) for p, n, v in entries if p == 1] == [
        ("age group 65-69", 1.0),
        ("age in years", 66.0),
        ("ethnicity Hispanic or Latino", 1.0),
        ("index month 1", 1.0),
        ("index year 2020", 1.0),
        ("race White", 1.0),
        ("sex MALE", 1.0),
    ]
    assert [(n, v) for p, n, v in entries if p == 2][:2] == [
        ("age group 65-69", 1.0),
        ("age in years", 65.0),
    ]
    assert {"race Black", "sex FEMALE", "ethnicity [unknown concept 77]"} <= set(
        of_person(entries, 3)
    )
    assert dict(rows(found.ref, "name", "is_binary"))["age in years"] is False
    by_year, _ = covariates(records, (2,), people=(1, 2, 3), age_method="year_difference")
    assert [v for *_, v in by_year] == [66.0, 66.0, 66.0]


def test_bad_births():
    with pytest.raises(rs.CohortError) as raised:
        covariates({"person": [(1, 1890), (2, 1950)]}, (3,))
    assert raised.value.code == "BadBirthDate"
    entries, _ = covariates({"person": [(1, 1890), (2, 1950)]}, (7,))  # no age is asked for
    assert entries == [(1, "index month 1", 1.0), (2, "index month 1", 1.0)]


def test_ranges_need_a_value():
    records = {
        "measurement": [
            (1, 5, -1, 0.5, 0, 1, 2),
            (1, 5, -2, 1.0, 0, 1, 2),
            (1, 5, -3, 9.5, 0, 1, 2),
            (1, 6, -3, None, 0, 1, 2),
            (1, 7, -3, 1.5, 0, None, 2),  # below or within, nobody knows
            (1, 8, -3, 2.5, 0, None, 2),
            (1, 9, -3, 1.5, 0, None, None),
        ],
        "concept": [(5, "Sodium"), (8, "Zinc")],
    }
    entries, found = covariates(records, (710,))
    assert of_person(entries) == [
        "measurement Sodium above range, days -365 to 0",
        "measurement Sodium below range, days -365 to 0",
        "measurement Sodium within range, days -365 to 0",
        "measurement Zinc above range, days -365 to 0",
    ]
    assert found.ids == (51710, 52710, 53710, 83710)
    none, without = covariates({"measurement": [(1, 5, -1, 0.5)]}, (710,))
    assert none == []
    assert "no_ranges" in {note.code for note in without.notes}


def test_last_value_of_a_unit():
    records = {
        "measurement": [
            (1, 5, -9, 4.0, 8840),
            (1, 5, -2, 0.0, 8840, None, None, 1),
            (1, 5, -2, 6.5, 8840, None, None, 2),  # the later record of the day
            (1, 5, -1, None, 8840),
            (1, 5, 1, 9.0, 8840),
            (1, 5, -1, 7.0, None),
            (2, 5, -40, 8.0, 8840),
        ],
        "concept": [(8840, "milligram per deciliter"), (5, "Glucose")],
    }
    entries, found = covariates(records, (706, 708))
    words = "measurement value Glucose"
    assert entries == [
        (1, f"{words} (milligram per deciliter), days -30 to 0", 6.5),
        (1, f"{words} (milligram per deciliter), days -365 to 0", 6.5),
        (1, f"{words} (no unit), days -30 to 0", 7.0),
        (1, f"{words} (no unit), days -365 to 0", 7.0),
        (2, f"{words} (milligram per deciliter), days -365 to 0", 8.0),
    ]
    assert found.ids == (5000706, 5000708, 5840706, 5840708)
    assert rows(found.ref, "is_binary", "missing_means_zero") == [(False, False)] * 4


def test_units_that_collide():
    records = {"measurement": [(1, 5, -9, 4.0, 8840), (2, 5, -9, 4.0, 9840)]}
    with pytest.raises(rs.CohortError, match="units 8840 and 9840, which give one") as raised:
        covariates(records, (706,))
    assert raised.value.code == "CovariateIdCollision"
    assert raised.value.details == {"covariate_id": 5840706, "units": [8840, 9840]}


CONDITIONS = {
    "concept": [
        (441840, "Clinical finding", "Condition"),
        (1, "Disorder of heart", "Condition"),
        (2, "Heart disease", "Condition"),
        (3, "Heart failure", "Condition"),
        (4, "Systolic heart failure", "Condition"),
        (5, "Fracture by site", "Condition"),
        (6, "Blood group", "Observation"),
        (433736, "Obesity", "Condition"),
    ],
    "concept_ancestor": [
        *((441840, c, level) for c, level in ((1, 3), (2, 2), (3, 3), (4, 4), (5, 5), (6, 4))),
        (441840, 433736, 1),
        *((c, c, 0) for c in (1, 2, 3, 4, 5, 6, 433736)),
        (1, 4, 1),
        (2, 4, 2),
        (3, 4, 1),
        (5, 4, 1),
        (6, 4, 1),
        (433736, 3, 1),
    ],
}


def test_condition_groups():
    """More than two levels below clinical finding, no containers, and some whatever their level."""
    records = CONDITIONS | {"condition_era": [(1, 4, -5, -1), (2, 3, -5, -1)]}
    entries, _ = covariates(records, (212,))
    assert entries == [
        (1, "condition group Heart failure, days -30 to 0", 1.0),
        (1, "condition group Systolic heart failure, days -30 to 0", 1.0),
        (2, "condition group Heart failure, days -30 to 0", 1.0),
        (2, "condition group Obesity, days -30 to 0", 1.0),
    ]
    own = rs.omop.ConditionGroups(min_levels=1, always=(), unless_like=("%failure",))
    entries, _ = covariates(records, (212,), condition_groups=own)
    assert [n.split(" group ")[1].split(",")[0] for n in of_person(entries)] == [
        "Disorder of heart",
        "Fracture by site",
        "Heart disease",
    ]


DRUGS = {
    "concept": [
        (100, "Ramipril", "Drug", "RxNorm", "Ingredient", "S", "x"),
        (101, "Ramipril tablet", "Drug", "RxNorm", "Clinical Drug", "S", "x"),
        (200, "Metformin", "Drug", "RxNorm", "Ingredient", "S", "x"),
        (201, "Metformin tablet", "Drug", "RxNorm", "Clinical Drug", "S", "x"),
        (900, "CARDIOVASCULAR", "Drug", "ATC", "ATC 1st", "C", "C"),
        (901, "ACE plain", "Drug", "ATC", "ATC 4th", "C", "C09AA"),
        (902, "Ramipril ATC", "Drug", "ATC", "ATC 5th", "C", "C09AA05"),
        (903, "ALIMENTARY", "Drug", "ATC", "ATC 1st", "C", "A"),
    ],
    "concept_ancestor": [
        *((c, c, 0) for c in (100, 101, 200, 201)),
        (100, 101, 1),
        (200, 201, 1),
        *((g, d, 2) for g in (900, 901, 902) for d in (100, 101)),
        *((903, d, 2) for d in (200, 201)),
    ],
}


def test_drug_groups():
    records = DRUGS | {"drug_era": [(1, 100, -5, -1), (2, 200, -5, -1)]}
    entries, _ = covariates(records, (412,))
    assert [(p, n.split(",")[0]) for p, n, _ in entries] == [
        (1, "drug group ACE plain"),
        (1, "drug group CARDIOVASCULAR"),
        (1, "drug group Ramipril"),
        (2, "drug group ALIMENTARY"),
        (2, "drug group Metformin"),
    ]


@pytest.mark.parametrize("listed", [(100,), (101,)])
@pytest.mark.parametrize("descendants", [True, False])
def test_drugs_of_the_arms_are_no_covariates(listed, descendants):
    """Neither by themselves, nor within their classes; for a tablet neither its ingredient."""
    records = DRUGS | {"drug_era": [(1, 100, -5, -1), (2, 200, -5, -1)]}
    arms = (rs.omop.ConceptSet(listed, descendants=descendants),)
    entries, _ = covariates(records, (404, 412), drugs=arms)
    assert {p for p, *_ in entries} == {2}
    entries, _ = covariates(records, (404, 412), drugs=arms, exclude_arms=False)
    assert {p for p, *_ in entries} == {1, 2}
    entries, _ = covariates(records, (404, 412), exclude=rs.omop.ConceptSet([100, 903]))
    assert of_person(entries) == []
    # Metformin is a descendant of the class 903, so it is excluded with it.
    assert of_person(entries, 2) == []


def test_roll_ups_need_ancestors():
    entries, found = covariates({"condition_era": [(1, 4, -5, -1)]}, (210, 212, 410))
    assert entries == []
    assert [note.code for note in found.notes if note.code == "no_roll_up"] == ["no_roll_up"] * 2
    assert "210, 212" in found.notes[-2].message


def test_eras_are_built_where_there_are_none():
    records = DRUGS | {
        "drug_era": [],
        "drug_exposure": [
            (1, 201, -400, None, 10),
            (1, 201, -372, None, 8),  # within 30 days: one era from -400 to -365
            (2, 201, -400, -366),
            (2, 201, -335, -330),
        ],
        "condition_era": [],
        "condition_occurrence": [(1, 3, -40, None), (1, 3, -10, -5), (2, 3, -41, None)],
    }
    entries, found = covariates(records, (202, 204, 402))
    assert entries == [
        (1, "condition [unknown concept 3], days -30 to 0", 1.0),
        (1, "condition [unknown concept 3], days -365 to 0", 1.0),
        (1, "drug Metformin, days -365 to 0", 1.0),
        (2, "condition [unknown concept 3], days -365 to 0", 1.0),
        (2, "drug Metformin, days -365 to 0", 1.0),
    ]
    assert {note.code for note in found.notes} == {"eras_built"}


def test_within_observation():
    records = {"condition_era": [(1, 4, -900, -401), (1, 5, -900, -400)]}
    both, _ = covariates(records, (202,), long_days=-1000)
    assert len(both) == 2
    entries, _ = covariates(records, (202,), long_days=-1000, within_observation=True)
    assert of_person(entries) == ["condition [unknown concept 5], days -1000 to 0"]


def test_names_that_occur_twice_have_ids():
    records = {
        "procedure_occurrence": [(1, 6, -5), (1, 7, -5), (1, 8, -5)],
        "concept": [(6, "ECG"), (7, "ECG"), (8, "Braces {unit} {}")],
    }
    entries, _ = covariates(records, (504,))
    assert of_person(entries) == [
        "procedure Braces {unit} {}, days -30 to 0",
        "procedure ECG, days -30 to 0 [6504]",
        "procedure ECG, days -30 to 0 [7504]",
    ]


VISITS = """
SELECT c.row_id, p.procedure_concept_id AS concept_id, count(*) AS value FROM {cohort} c
JOIN {procedure_occurrence} p ON p.person_id = c.person_id AND p.procedure_date < c.index_date
GROUP BY ALL
"""


def test_custom_covariates():
    custom = rs.omop.CustomCovariates(950, VISITS, "number of", is_binary=False)
    records = {
        "procedure_occurrence": [(1, 6, -500), (1, 6, -1), (1, 6, 0), (2, 6, -9)],
        "concept": [(6, "ECG")],
    }
    entries, found = covariates(records, (), custom=[custom])
    assert entries == [(1, "number of ECG", 2.0), (2, "number of ECG", 1.0)]
    assert found.ids == (6950,)
    assert rows(found.ref, "domain", "is_binary", "start_day") == [("custom", False, None)]


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("SELECT 1 AS row_id, 5 AS concept_id", "BadCustomCovariates", "value"),
        ("SELECT row_id, 5 AS concept_id, 1 AS value FROM nowhere", "BadCustomCovariates", "950"),
        ("SELECT row_id, 5 AS concept_id, 1 AS value FROM {nowhere}", "MissingTable", "nowhere"),
        ("SELECT row_id FROM {cohort", "BadCustomCovariates", "cannot be read"),
        (
            "SELECT row_id, 5 AS concept_id, 1 AS value FROM {cohort}, range(2)",
            "CovariateIdCollision",
            "2 rows and concepts more than one value",
        ),
    ],
)
def test_bad_custom_covariates(query, code, words):
    with pytest.raises(rs.CohortError, match=words) as raised:
        covariates({}, (), custom=[rs.omop.CustomCovariates(950, query)])
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"analyses": (202, 999)}, "999 is unknown"),
        ({"analyses": (202, 202)}, "202 is named more than once"),
        ({"end_day": 1}, "`end_day` must not be after index"),
        ({"end_day": -60}, "`short_days` must not be after `end_day`"),
        ({"age_method": "days"}, "age_method"),
        ({"custom": [rs.omop.CustomCovariates(951, "x")] * 2}, "two custom covariates"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(rs.InputError, match=words):
        rs.omop.CovariateSettings(**settings)


def test_custom_numbers_are_not_those_of_others():
    with pytest.raises(rs.CohortError, match="must be 950 to 999, but it is 202"):
        rs.omop.CustomCovariates(202, "x")


def test_default_analyses():
    expected = [1, 3, 4, 5, 6, 7, 202, 204, 210, 212, 402, 404, 405, 410, 412, 413, 502, 504]
    expected += [702, 704, 710, 712, 802, 804]
    assert list(rs.omop.DEFAULT_ANALYSES) == expected
