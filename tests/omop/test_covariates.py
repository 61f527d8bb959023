"""Every kind of covariate from a CDM, by hand."""

import pytest

import riskset as rs
from omop.covariates_by_hand import covariates, during, of_person
from omop.toy import rows


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
    names = [f"condition_era {during(d)}: [unknown concept {c}]" for c, d in (
        (11, -365), (12, -180), (12, -365), (13, -180), (13, -30), (13, -365),
        (14, -180), (14, -30), (14, -365),
    )]  # fmt: skip
    assert of_person(entries) == sorted(names)
    assert of_person(entries, 2) == names[6:]
    before, _ = covariates(records, (204,), end_day=-1, short_days=-10)
    assert before == [(2, f"condition_era {during(-10, -1)}: [unknown concept 14]", 1.0)]


def test_overlap_is_the_index_day():
    entries, _ = covariates({"drug_era": [(1, 5, -9, 0), (1, 6, 0, 9), (1, 7, -9, -1)]}, (405,))
    assert of_person(entries) == [f"drug_era {during(0)}: [unknown concept {c}]" for c in (5, 6)]


@pytest.mark.parametrize(
    ("name", "analysis"),
    [
        ("procedure_occurrence", 502),
        ("observation", 802),
        ("measurement", 702),
        ("device_exposure", 602),
        ("condition_occurrence", 102),
        ("drug_exposure", 302),
    ],
)
def test_records_of_a_day(name, analysis):
    records = {
        name: [(1, 5, -366), (1, 6, -365), (1, 7, 0), (1, 7, -3), (1, 8, 1)],
        "concept": [(6, "Six")],
    }
    entries, _ = covariates(records, (analysis,))
    assert of_person(entries) == [
        f"{name} {during(-365)}: Six",
        f"{name} {during(-365)}: [unknown concept 7]",
    ]


def test_people():
    records = {
        "person": [
            (1, 1954, 1, 1, 8507, 8527, 38003563),
            (2, 1954, 1, 2, 0, 0, 0),
            (3, 1954, None, None, 8532, 8516, 77),
        ],
        "concept": [
            (8516, "Black", "Race", "Race", "Race"),
            (8527, None, "Race", "Race", "Race"),
            (38003563, None, "Ethnicity", "Ethnicity", "Ethnicity"),
            (77, None, "Ethnicity", "Ethnicity", "Ethnicity"),
        ],
    }
    entries, found = covariates(records, (1, 2, 3, 4, 5, 6, 7), people=(1, 2, 3))
    assert [(n, v) for p, n, v in entries if p == 1] == [
        ("age group: 65 - 69", 1.0),
        ("age in years", 66.0),
        ("ethnicity = Hispanic or Latino", 1.0),
        ("gender = MALE", 1.0),
        ("index month: 1", 1.0),
        ("index year: 2020", 1.0),
        ("race = White", 1.0),
    ]
    assert {"race = Black", "gender = FEMALE", "ethnicity = [unknown concept 77]"} <= set(
        of_person(entries, 3)
    )
    assert dict(rows(found.ref, "name", "is_binary"))["age in years"] is False
    assert [v for _, name, v in entries if name == "age in years"] == [66.0, 66.0, 66.0]
    completed, _ = covariates(records, (2,), people=(1, 2, 3), age_method="completed_years")
    assert [v for *_, v in completed] == [66.0, 65.0, 66.0]


def test_race_and_ethnicity_must_be_so_in_the_vocabulary():
    records = {
        "person": [(1, 1950, None, None, 0, 8527, 8516), (2, 1950, None, None, 0, 8516, 0)],
        "concept": [(8516, "Black", "Race", "Race", "Race")],
    }
    entries, found = covariates(records, (4, 5))
    assert entries == [(2, "race = Black", 1.0)]
    told = {note.code: note.message for note in found.notes}
    assert told["unknown_race"].startswith("1 row of the cohort has a race_concept_id that table")
    assert "unknown_ethnicity" in told


def test_bad_births():
    with pytest.raises(rs.CohortError) as raised:
        covariates({"person": [(1, 1890), (2, 1950)]}, (3,))
    assert raised.value.code == "BadBirthDate"
    entries, _ = covariates({"person": [(1, 1890), (2, 1950)]}, (7,))  # no age is asked for
    assert entries == [(1, "index month: 1", 1.0), (2, "index month: 1", 1.0)]


def test_ranges_need_a_value_and_both_borders():
    records = {
        "measurement": [
            (1, 5, -1, 0.5, 0, 1, 2),
            (1, 5, -2, 1.0, 0, 1, 2),
            (1, 5, -3, 9.5, 0, 1, 2),
            (1, 6, -3, None, 0, 1, 2),
            (1, 7, -3, 1.5, 0, None, 2),
            (1, 8, -3, 2.5, 0, None, 2),
            (1, 9, -3, 1.5, 0, None, None),
        ],
        "concept": [(5, "Sodium"), (8, "Zinc")],
    }
    entries, found = covariates(records, (710,))
    assert of_person(entries) == [
        f"measurement {side} normal range {during(-365)}: Sodium"
        for side in ("above", "below", "within")
    ]
    assert found.ids == (51710, 52710, 53710)
    none, without = covariates({"measurement": [(1, 5, -1, 0.5)]}, (710,))
    assert none == []
    assert "no_ranges" in {note.code for note in without.notes}


@pytest.mark.parametrize(("table", "first"), [("measurement", 705), ("observation", 809)])
def test_last_value_of_a_unit(table, first):
    records = {
        table: [
            (1, 5, -9, 4.0, 8840),
            (1, 5, -2, 6.5, 8840),
            (1, 5, -2, 2.5, 8840),  # the smallest of the last day
            (1, 5, -1, None, 8840),
            (1, 5, 1, 9.0, 8840),
            (1, 5, -1, 7.0, None),
            (2, 5, -40, 8.0, 8840),
            (2, 5, -4000, 3.0, 8840),
        ],
        "concept": [(8840, "milligram per deciliter"), (5, "Glucose")],
    }
    entries, found = covariates(records, (first + 1, first + 3))
    unit = "milligram per deciliter"
    assert entries == [
        (1, f"{table} value {during(-30)}: Glucose (Unknown unit)", 7.0),
        (1, f"{table} value {during(-30)}: Glucose ({unit})", 2.5),
        (1, f"{table} value {during(-365)}: Glucose (Unknown unit)", 7.0),
        (1, f"{table} value {during(-365)}: Glucose ({unit})", 2.5),
        (2, f"{table} value {during(-365)}: Glucose ({unit})", 8.0),
    ]
    of_unit = [5840000 + first + k for k in (1, 3)]
    assert found.ids == (5000000 + first + 1, 5000000 + first + 3, *of_unit)
    assert rows(found.ref, "is_binary", "missing_means_zero") == [(False, False)] * 4
    early = dict.fromkeys(("long_days", "medium_days", "short_days", "end_day"), -3000)
    ever, _ = covariates(records, (first,), **early)
    words = "any time prior through -3000 days relative to index"
    assert ever == [(2, f"{table} value {words}: Glucose ({unit})", 3.0)]


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
        (person, f"condition_era group (ConditionGroupEraShortTerm) {during(-30)}: {name}", 1.0)
        for person, name in (
            (1, "Heart failure"),
            (1, "Systolic heart failure"),
            (2, "Heart failure"),
            (2, "Obesity"),
        )
    ]
    own = rs.omop.ConditionGroups(min_levels=1, always=(), unless_like=("%failure",))
    entries, _ = covariates(records, (212,), condition_groups=own)
    assert [n.split(": ")[1] for n in of_person(entries)] == [
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
    assert [(p, n.split(": ")[1]) for p, n, _ in entries] == [
        (1, "ACE plain"),
        (1, "CARDIOVASCULAR"),
        (1, "Ramipril"),
        (2, "ALIMENTARY"),
        (2, "Metformin"),
    ]
    assert entries[0][1].startswith(f"drug_era group (DrugGroupEraShortTerm) {during(-30)}: ")


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
        (1, f"condition_era {during(-30)}: [unknown concept 3]", 1.0),
        (1, f"condition_era {during(-365)}: [unknown concept 3]", 1.0),
        (1, f"drug_era {during(-365)}: Metformin", 1.0),
        (2, f"condition_era {during(-365)}: [unknown concept 3]", 1.0),
        (2, f"drug_era {during(-365)}: Metformin", 1.0),
    ]
    assert {note.code for note in found.notes} == {"eras_built"}


def test_within_observation():
    records = {"condition_era": [(1, 4, -900, -401), (1, 5, -900, -400)]}
    both, _ = covariates(records, (202,), long_days=-1000)
    assert len(both) == 2
    entries, _ = covariates(records, (202,), long_days=-1000, within_observation=True)
    assert of_person(entries) == [f"condition_era {during(-1000)}: [unknown concept 5]"]


def test_names_that_occur_twice_have_ids():
    records = {
        "procedure_occurrence": [(1, 6, -5), (1, 7, -5), (1, 8, -5)],
        "concept": [(6, "ECG"), (7, "ECG"), (8, "Braces {second} {}")],
    }
    entries, _ = covariates(records, (504,))
    assert of_person(entries) == [
        f"procedure_occurrence {during(-30)}: Braces {{second}} {{}}",
        f"procedure_occurrence {during(-30)}: ECG [6504]",
        f"procedure_occurrence {during(-30)}: ECG [7504]",
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
        ({"analyses": (202, True)}, "must be a whole number or a text, but it is True"),
        ({"analyses": (202, 202)}, "202 .ConditionEraLongTerm. is named more than once"),
        ({"analyses": ("default", 210)}, "210 .ConditionGroupEraLongTerm. is named more than"),
        ({"analyses": ("Dcis",)}, "'Dcis' is unknown.*\n.*did you mean Dcsi"),
        ({"analyses": (2010,)}, "2010 is unknown.*\n.*did you mean 210 or 201"),
        ({"exclude_analyses": ("Charlson",)}, "`exclude_analyses`.*\n.*CharlsonIndex"),
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
    expected = [1, 3, 4, 5, 6, 7, 210, 212, 410, 412, 413, 502, 504, 602, 604, 702, 704, 710, 712]
    expected += [714, 716, 802, 804, 806, 808, 901, 902, 903, 904]
    assert list(rs.omop.DEFAULT_ANALYSES) == expected
    assert rs.omop.CovariateSettings().analyses == rs.omop.DEFAULT_ANALYSES


def test_analyses_by_name_and_number():
    chosen = rs.omop.CovariateSettings(
        ("default", "MeasurementValueLongTerm", 2),
        exclude_analyses=("CharlsonIndex", 210, "DrugEraLongTerm"),
    ).analyses
    expected = {*rs.omop.DEFAULT_ANALYSES, 706, 2} - {901, 210}
    assert sorted(chosen) == sorted(expected)
    assert rs.omop.CovariateSettings("default").analyses == rs.omop.DEFAULT_ANALYSES
    assert rs.omop.CovariateSettings(5).analyses == (5,)


def test_numbers_and_names_of_feature_extraction():
    """Where numbers begin and end, from FeatureExtraction's list of analyses."""
    names = {number: a.name for number, a in rs.omop.ANALYSES.items()}
    assert len(names) == 118
    expected = {
        1: "DemographicsGender",
        12: "CareSiteId",
        101: "ConditionOccurrenceAnyTimePrior",
        108: "ConditionOccurrencePrimaryInpatientShortTerm",
        205: "ConditionEraOverlapping",
        208: "ConditionEraStartShortTerm",
        209: "ConditionGroupEraAnyTimePrior",
        216: "ConditionGroupEraStartShortTerm",
        304: "DrugExposureShortTerm",
        413: "DrugGroupEraOverlapping",
        416: "DrugGroupEraStartShortTerm",
        504: "ProcedureOccurrenceShortTerm",
        601: "DeviceExposureAnyTimePrior",
        705: "MeasurementValueAnyTimePrior",
        712: "MeasurementRangeGroupShortTerm",
        713: "MeasurementValueAsConceptAnyTimePrior",
        808: "ObservationValueAsConceptShortTerm",
        809: "ObservationValueAnyTimePrior",
        902: "Dcsi",
        904: "Chads2Vasc",
        905: "DistinctConditionCountLongTerm",
        910: "DistinctIngredientCountShortTerm",
        919: "DistinctObservationCountShortTerm",
        922: "VisitCountShortTerm",
        923: "VisitConceptCountLongTerm",
        926: "Hfrs",
    }
    assert {number: names[number] for number in expected} == expected
