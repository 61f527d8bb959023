"""Counts, values that are concepts, inpatient records, care sites, and times, by hand."""

import itertools

import pyarrow as pa
import pytest

import riskset as rs
from omop.covariates_by_hand import covariates, during, of_person
from omop.toy import rows


def test_any_time_before():
    records = {"condition_era": [(1, 10, -9000, -8000), (1, 11, 1, 5)]}
    entries, found = covariates(records, ("ConditionEraAnyTimePrior",))
    words = "condition_era any time prior through 0 days relative to index: [unknown concept 10]"
    assert entries == [(1, words, 1.0)]
    assert found.ids == (10201,)
    assert rows(found.ref, "start_day", "end_day") == [(None, 0)]


def test_eras_that_start_in_a_window():
    eras = [(1, 10, -500, -10), (1, 11, -365, 5), (1, 12, -30, 0), (1, 13, 1, 9)]
    for table, first in (("condition_era", 206), ("drug_era", 406)):
        _, found = covariates({table: eras}, (first, first + 2))
        assert found.ids == (11000 + first, 12000 + first, 12000 + first + 2)
    overlapping = covariates({"condition_era": eras}, (202,))[1]
    assert overlapping.ids == (10202, 11202, 12202)


def test_overlapping_is_the_last_day_of_the_window():
    eras = {"condition_era": [(1, 10, -5, -1), (1, 11, 0, 0), (1, 12, -5, -2)]}
    assert covariates(eras, ("ConditionEraOverlapping",), end_day=-1)[1].ids == (10205,)
    assert covariates(eras, (205,))[1].ids == (11205,)


def test_inpatient_conditions():
    records = {
        "condition_occurrence": [
            (1, 10, -10, None),
            (1, 11, -20, -10),  # starts as an outpatient
            (1, 12, -30, None),
            (1, 13, -40, None),
            (2, 14, -10, None),  # another person's visit
        ],
        "visit_occurrence": [
            (1, 9201, -12, -10),
            (1, 9202, -20, -20),
            (1, 700, -30, None),
            (1, 9201, -41, None),  # one day
        ],
        "concept": [(700, "Hospice"), (10, "Sepsis")],
        "concept_ancestor": [(262, 700, 1)],
    }
    entries, found = covariates(records, ("ConditionOccurrencePrimaryInpatientLongTerm", 104))
    assert [i for i in found.ids if i % 1000 == 106] == [10106, 12106]
    assert (1, f"condition_occurrence {during(-365)}: Sepsis (inpatient)", 1.0) in entries
    assert [i for i in found.ids if i % 1000 == 104] == [10104, 11104, 12104, 14104]
    without = {name: own for name, own in records.items() if not name.startswith("concept")}
    assert covariates(without, (106,))[1].ids == (10106,)


def test_distinct_counts():
    records = {
        "condition_era": [
            *((1, 10, -day, -day) for day in (5, 9)),
            (1, 11, -500, -365),
            (1, 12, -500, -366),
            (1, 0, -5, -5),
            (2, 10, 1, 5),
        ],
        "procedure_occurrence": [(2, 20, -1), (2, 21, -1), (2, 21, -31)],
        "measurement": [(1, 30, -31)],
        "observation": [(1, 40, 0), (1, 41, 0)],
        "drug_era": [(1, 50, -1, 0), (1, 51, -40, -31)],
    }
    entries, found = covariates(records, (905, 907, 908, 910, 911, 913, 914, 916, 917, 919))
    number = dict(zip(found.names, found.ids, strict=True))
    by_id = {(person, number[name]): value for person, name, value in entries}
    assert by_id == {
        (1, 1905): 2,
        (1, 1907): 1,
        (1, 1908): 2,
        (1, 1910): 1,
        (2, 1911): 2,
        (2, 1913): 2,
        (1, 1914): 1,
        (1, 1917): 2,
        (1, 1919): 2,
    }
    assert f"condition_era distinct concept count {during(-365)}" in of_person(entries)
    assert set(found.ref.column("is_binary").to_pylist()) == {False}
    assert set(found.ref.column("missing_means_zero").to_pylist()) == {True}


def test_visits():
    records = {
        "visit_occurrence": [
            *((1, 9202, -day, None) for day in (3, 3, 40)),
            (1, 9201, -500, -365),
            (1, 0, -3, -3),
            (2, 9201, 1, 2),
        ],
        "concept": [(9202, "Outpatient Visit")],
    }
    entries, found = covariates(records, (920, 922, 923, 925))
    assert entries == sorted(
        [
            (1, f"visit_occurrence concept count {during(-365)}", 4.0),
            (1, f"visit_occurrence concept count {during(-30)}", 2.0),
            (1, f"visit_occurrence concept count {during(-365)}: Outpatient Visit", 3.0),
            (1, f"visit_occurrence concept count {during(-30)}: Outpatient Visit", 2.0),
            (1, f"visit_occurrence concept count {during(-365)}: [unknown concept 9201]", 1.0),
        ]
    )
    assert found.ids == (1920, 1922, 9201923, 9202923, 9202925)


def pair_id(concept, value, analysis):
    """The id of a concept with its value, in whole numbers of any size."""
    first = (concept * 2654435769 // 4096) & 1048575
    second = (value * 2654435769 // 1024) & 4194303
    return first * 4194304000 + second * 1000 + analysis


@pytest.mark.parametrize(
    ("table", "first", "record"),
    [
        ("measurement", 713, lambda p, c, day, v: (p, c, day, None, None, None, None, None, v)),
        ("observation", 805, lambda p, c, day, v: (p, c, day, None, None, v)),
    ],
)
def test_values_that_are_concepts(table, first, record):
    records = {
        table: [
            record(1, 3028437, -40, 4124462),
            record(1, 3028437, -5, 4124462),
            record(2, 3028437, -5, 9189),
            record(2, 3028437, -5, 0),
            record(2, 3028437, -5, None),
            record(2, 2147483647, -400, 2147483647),
        ],
        "concept": [(3028437, "Culture"), (4124462, "None"), (9189, "Negative")],
    }
    entries, found = covariates(records, (first, first + 1, first + 3))
    ids = {
        pair_id(c, v, first + k)
        for c, v, windows in (
            (3028437, 4124462, (0, 1, 3)),
            (3028437, 9189, (0, 1, 3)),
            (2147483647, 2147483647, (0,)),
        )
        for k in windows
    }
    assert set(found.ids) == ids
    assert max(ids) < 2**53
    assert (1, f"{table} {during(-365)}: Culture = None", 1.0) in entries
    assert (2, f"{table} {during(-30)}: Culture = Negative", 1.0) in entries
    assert len(entries) == 3 + 3 + 1
    by_id = {row[0]: row[1:] for row in rows(
        found.ref, "covariate_id", "analysis_id", "concept_id", "value_as_concept_id", "collisions"
    )}  # fmt: skip
    number = pair_id(3028437, 9189, first + 1)
    assert by_id[number] == (first + 1, 3028437, 9189, 0)


def test_pairs_that_collide():
    """The first pair keeps the id; the others are left out, and counted."""
    seen = {}
    for value in itertools.count(1):
        number = pair_id(5, value, 714)
        if number in seen:
            break
        seen[number] = value
    first = seen[number]
    measured = [(1, 5, -1, value) for value in (first, value)] + [(2, 5, -1, value)]
    records = {"measurement": [(p, c, d, *[None] * 5, v) for p, c, d, v in measured]}
    entries, found = covariates(records, (714,))
    assert found.ids == (number,)
    assert [p for p, *_ in entries] == [1]
    assert rows(found.ref, "value_as_concept_id", "collisions") == [(first, 1)]
    (note,) = (note for note in found.notes if note.code == "colliding_pairs")
    assert note.message.startswith("1 pair of a concept and its value in table measurement has")


def test_times_and_months():
    entries, found = covariates({}, (8, 9, 10, 11), days=30)
    assert [(n, v) for p, n, v in entries if p == 1] == [
        ("index year and month: 202001", 1.0),
        ("observation time (days) after index", 400.0),
        ("observation time (days) prior to index", 400.0),
        ("time (days) between cohort start and end", 30.0),
    ]
    assert found.ids == (1008, 1009, 1010, 202001011)
    assert found.ref.column("is_binary").to_pylist() == [False, False, False, True]


def test_care_sites():
    """A detail of a visit on the index date, else the visit, else the person's own."""
    own = [(p, 1950, None, None, None, None, None, 7 if p < 4 else None) for p in (1, 2, 3, 4)]
    records = {
        "person": own,
        "visit_occurrence": [
            (1, 9202, 0, 0, 8),
            (2, 9202, -3, 5, 8),
            (2, 9202, -3, 2, 6),  # ends first
            (3, 9202, 0, None, None),
            (3, 9202, 1, 1, 8),
        ],
        "visit_detail": [(1, -1, 1, 9), (2, -3, -1, 9)],
    }
    entries, found = covariates(records, ("CareSiteId",), people=(1, 2, 3, 4))
    assert [(p, n) for p, n, _ in entries] == [
        (1, "care site ID = 9"),
        (2, "care site ID = 6"),
        (3, "care site ID = 7"),
    ]
    assert found.ids == (6012, 7012, 9012)
    assert set(found.ref.column("concept_id").to_pylist()) == {0}
    records["person"] = [(p, 1950, *[None] * 5, 2**60) for p in (1, 2, 3, 4)]
    with pytest.raises(rs.CohortError, match="2 rows of the cohort have a care_site_id") as raised:
        covariates(records, (12,), people=(1, 2, 3, 4))
    assert raised.value.code == "BadId"


def test_tables_that_are_missing():
    """None of these covariates, and a note."""
    wanted = (106, 302, 602, 714, 806, 810, 911, 920, 12)
    entries, found = covariates({}, wanted)
    assert entries == []
    missing = {n.message.split(" no table ")[1] for n in found.notes if " no table " in n.message}
    assert {m.split(";")[0] for m in missing} >= {
        *("condition_occurrence", "drug_exposure", "device_exposure", "measurement"),
        *("observation", "procedure_occurrence", "visit_occurrence", "visit_detail"),
    }


def test_columns_that_are_missing():
    """None of these covariates, and a note."""
    tables = rs.simulate.toy_tables(50)
    measured = tables["measurement"].drop_columns(["range_low", "unit_concept_id"])
    tables = tables | {"measurement": measured}
    arms = [rs.omop.ConceptSet(ids) for ids in ([974166, 1395058], [1308216, 1341927])]
    with rs.omop.Cdm(tables) as cdm:
        cohort = rs.omop.Eligibility().select(cdm, rs.omop.NewUserCohort(*arms).read(cdm))
        wanted = rs.omop.CovariateSettings((1, 12, 706, 710, 714))
        found = rs.omop.Covariates.extract(cdm, cohort, wanted)
    assert {i % 1000 for i in found.ids} == {1, 706}
    missing = {note.message.split(";")[0] for note in found.notes if note.code == "missing_column"}
    assert missing == {
        *(f"table {name} has no column care_site_id" for name in ("person", "visit_occurrence")),
        "table measurement has no column range_low",
        "table measurement has no column unit_concept_id",
        "table measurement has no column value_as_concept_id",
    }


def test_a_table_of_a_header_counts_as_empty():
    """As where a header was loaded as the only row, under other names of columns."""
    header = ("DEVICE_EXPOSURE_ID", "PERSON_ID", "DEVICE_CONCEPT_ID")
    tables = rs.simulate.toy_tables(50) | {
        "device_exposure": pa.table({f"column{k:02}": [name] for k, name in enumerate(header)})
    }
    arms = [rs.omop.ConceptSet(ids) for ids in ([974166, 1395058], [1308216, 1341927])]
    with rs.omop.Cdm(tables) as cdm:
        cohort = rs.omop.Eligibility().select(cdm, rs.omop.NewUserCohort(*arms).read(cdm))
        found = rs.omop.Covariates.extract(cdm, cohort, rs.omop.CovariateSettings((1, 602)))
    assert {i % 1000 for i in found.ids} == {1}
    (note,) = (note for note in found.notes if note.code == "missing_table")
    assert note.message.startswith("table device_exposure has no column person_id or device_")
