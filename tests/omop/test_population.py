"""Study populations: the golden study, the nineteen rows and the options of eligibility by hand."""

import pyarrow as pa
import pytest

import riskset as rs
from cohort.golden import FOLDER, TINY
from omop.by_hand import DAY0, cdm_of, on
from omop.toy import (
    COMPARATOR,
    EXPECTED,
    TARGET,
    checksum,
    cohort,
    counts,
    population,
    rows,
    toy,
)

# -------------------------------------------------------------------- the golden study


def test_attrition():
    assert counts(population().attrition) == EXPECTED["attrition"]
    assert population().status == "ok"


def test_rows():
    columns = ("person_id", "treatment", "index_date", "risk_start", "risk_end")
    found = rows(population().table, *columns, "time_at_risk", "survival_time", "status")
    assert len(found) == EXPECTED["population_rows"]
    assert [[str(v) for v in row] for row in found[:5]] == EXPECTED["first_rows"]
    assert checksum(found) == EXPECTED["population_sha256"]


def test_totals_by_arm():
    arm, status = population().column("treatment"), population().column("status")
    for a in (0, 1):
        own = arm == a
        n = {str(s): int((status[own] == s).sum()) for s in (0, 1, 2)}
        assert n == EXPECTED["status_by_arm"][str(a)]
        for name, column in (
            ("days_by_arm", "time_at_risk"),
            ("survival_days_by_arm", "survival_time"),
        ):
            assert population().column(column)[own].sum() == EXPECTED[name][str(a)]


def test_schema():
    types = {f.name: str(f.type) for f in population().table.schema}
    days = ("days_from_obs_start", "days_to_cohort_end", "days_to_obs_end", "risk_start")
    days += ("risk_end", "time_at_risk", "survival_time")
    assert [types[name] for name in days] == ["int32"] * 7
    assert (types["row_id"], types["person_id"]) == ("int64", "int64")
    assert (types["treatment"], types["status"]) == ("int8", "int8")
    assert types["index_date"] == "date32[day]"
    assert types["end_reason"].startswith("dictionary<values=string")


def test_adjustments_go_on_from_it():
    people = population().people
    assert (people.n_target, people.n_comparator) == (241, 439)
    kept = rs.cohort.restrict(people, people.population.row_id > 1, "not the first")
    assert [s.step for s in kept.attrition][-2:] == ["at least 1 day at risk", "not the first"]
    assert rs.cohort.followup(population().outcome, people).target.max() <= 3400


def test_results_do_not_depend_on_the_order_of_rows():
    shuffled = {
        name: table.take(pa.array(range(table.num_rows - 1, -1, -1)))
        for name, table in ((n, toy().arrow(n)) for n in toy().tables)
    }
    with rs.omop.Cdm(shuffled) as cdm:
        new = rs.omop.NewUserCohort(TARGET, COMPARATOR).read(cdm)
        again = rs.omop.Eligibility(restrict_to_common_period=False).select(cdm, new)
    assert again.table.equals(cohort().table)


# -------------------------------------------------------------------- the nineteen rows


@pytest.fixture(scope="module")
def tiny():
    files = {
        name: FOLDER / f"tiny_population_{name}.csv"
        for name in ("cohort", "observation_period", "death")
    }
    with rs.omop.Cdm(files) as cdm:
        yield cdm


def test_tiny(tiny):
    events = FOLDER / "tiny_population_outcome.csv"
    both = rs.omop.CohortTable(target=1, comparator=2).read(tiny)
    entered = rs.omop.Eligibility(restrict_to_common_period=False).select(tiny, both)
    found = rs.omop.TimeAtRisk().follow(tiny, entered, events, "death")
    golden = TINY["population"]
    # tiny.R takes the first exposure in the step of both cohorts already; by the rule of that step,
    # as in the golden study, the two exposures of person 15 are one more until the next step.
    first, both, *others = golden["attrition"]
    assert counts(found.attrition) == [first, both | {"target_exposures": 9}, *others]
    names = ("person_id", "treatment", "risk_start", "risk_end", "time_at_risk")
    names += ("survival_time", "status", "end_reason")
    assert rows(found.table, *names) == [tuple(row.values()) for row in golden["rows"]]
    # person 16 dies 300 days after index, within observation; nothing is outside
    assert found.events_outside_observation == 0


# -------------------------------------------------------------------- options by hand


def entered(records, *, observed=(-1000, 1000), people=(), extra=None, **options):
    """Rows (person, arm, start, end, reason) of those who may enter, and the attrition."""
    options = {"restrict_to_common_period": False} | options
    with cdm_of(records, observed=observed, people=people, extra=extra) as cdm:
        both = rs.omop.CohortTable(1, 0).read(cdm)
        found = rs.omop.Eligibility(**options).select(cdm, both)
    out = [
        (p, a, (d - DAY0).days, (d - DAY0).days + e, reason)
        for p, a, d, e, reason in rows(
            found.table,
            "person_id",
            "treatment",
            "index_date",
            "days_to_cohort_end",
            "cohort_end_reason",
        )
    ]
    return out, found


SWITCHERS = [
    (1, 1, 0, 100),  # later the other arm, within the episode
    (0, 1, 50, 80),
    (1, 1, 200, 300),  # after the other arm began
    (0, 2, 0, 40),  # later the other arm, on the last day of the episode
    (1, 2, 40, 60),
    (1, 3, 0, 10),  # both on one day
    (0, 3, 0, 10),
    (1, 4, 0, 10),  # one arm only, twice
    (1, 4, 90, 99),
]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (
            "keep first, truncate to second",
            [
                (1, 1, 0, 49, "second cohort"),
                (2, 0, 0, 39, "second cohort"),
                (4, 1, 0, 10, "cohort end"),
                (4, 1, 90, 99, "cohort end"),
            ],
        ),
        (
            "keep first",
            [
                (1, 1, 0, 100, "cohort end"),
                (2, 0, 0, 40, "cohort end"),
                (4, 1, 0, 10, "cohort end"),
                (4, 1, 90, 99, "cohort end"),
            ],
        ),
        ("remove all", [(4, 1, 0, 10, "cohort end"), (4, 1, 90, 99, "cohort end")]),
    ],
)
def test_people_of_both_arms(how, expected):
    found, _ = entered(SWITCHERS, remove_duplicates=how, first_exposure_only=False)
    assert found == expected


def test_keep_all_keeps_all():
    found, study = entered(SWITCHERS, remove_duplicates="keep all", first_exposure_only=False)
    assert len(found) == 9
    # by person and date; of two on one day the target comes first
    assert [(p, a, s) for p, a, s, *_ in found][:3] == [(1, 1, 0), (1, 0, 50), (1, 1, 200)]
    assert [(p, a) for p, a, *_ in found][5:7] == [(3, 1), (3, 0)]
    assert study.attrition.steps[0].target_persons == 4


def test_an_earlier_exposure_outside_observation_counts():
    found, study = entered([(1, 1, -2000, -1990), (1, 1, 0, 9), (0, 2, 0, 9)], washout_days=0)
    assert [p for p, *_ in found] == [2]
    assert study.status == "one_arm_empty"
    assert [s.step for s in study.attrition.steps] == [
        "original cohorts",
        "both cohorts: keep first, truncate to second",
        "first exposure only",
        "observed at index",
    ]


def test_washout_counts_days_before_index():
    found, _ = entered([(1, 1, -635, 0), (1, 2, -636, 0)], washout_days=365)
    assert [p for p, *_ in found] == [1]


def test_common_period_is_of_the_original_cohorts():
    records = [(1, 1, 0, 9), (1, 2, 50, 59), (0, 3, 10, 19), (0, 4, 99, 100), (0, 5, 51, 52)]
    found, study = entered(records, restrict_to_common_period=True)
    assert [p for p, *_ in found] == [2, 3]  # from day 10 to day 50
    assert study.attrition.steps[-1].step == "period common to both cohorts"


def test_age_and_sex():
    people = [(1, 8507, 1950, 1), (2, 8532, 1950, 2), (3, 8532, 1950, None), (4, 8507, 1951, 1)]
    records = [(1, p, 0, 9) for p in (1, 2, 3)] + [(0, 4, 0, 9)]
    # On 2020-01-01: 70, 69 (born in February), 70 (January is taken), 69.
    assert [p for p, *_ in entered(records, people=people, min_age=70)[0]] == [1, 3]
    assert [p for p, *_ in entered(records, people=people, max_age=69)[0]] == [2, 4]
    of_years = {"age_method": "year_difference"}
    assert [p for p, *_ in entered(records, people=people, min_age=70, **of_years)[0]] == [1, 2, 3]
    chosen, study = entered(records, people=people, gender_concept_ids=(8532,), min_age=0)
    assert [p for p, *_ in chosen] == [2, 3]
    assert [s.step for s in study.attrition.steps[-2:]] == ["age of at least 0", "sex"]


def test_nesting_cohort():
    nested = pa.table(
        {
            "cohort_definition_id": [7, 7, 8],
            "subject_id": [1, 2, 3],
            "cohort_start_date": [on(0), on(1), on(-9)],
            "cohort_end_date": [on(0), on(9), on(9)],
        }
    )
    records = [(1, 1, 0, 9), (1, 2, 0, 9), (0, 3, 0, 9)]
    within = rs.omop.CohortRecords(7, nested)
    assert [p for p, *_ in entered(records, nesting_cohort=within)[0]] == [1]
    assert [p for p, *_ in entered(records, nesting_cohort=1)[0]] == [1, 2]  # of the same table


def test_study_window_cuts_follow_up():
    records = [(1, 1, -1, 9), (1, 2, 0, 99), (0, 3, 10, 30), (0, 4, 11, 12)]
    options = {"study_start": "2020-01-01", "study_end": on(10), "washout_days": 0}
    found, study = entered(records, **options)
    assert [p for p, *_ in found] == [2, 3]
    assert rows(study.table, "days_to_obs_end", "obs_end_reason") == [
        (10, "study end"),
        (0, "study end"),
    ]
    with cdm_of(records) as cdm:
        followed = rs.omop.TimeAtRisk().follow(cdm, study, cdm.arrow("event"))
    assert rows(followed.table, "person_id", "risk_end", "end_reason") == [(2, 10, "study end")]


@pytest.mark.parametrize(("size", "chosen"), [(1, [1]), (3, [1, 3, 6]), (6, [1, 2, 3, 4, 5, 6])])
def test_sample_is_even(size, chosen):
    """Positions 1 + k (6 - 1) / (3 - 1), rounded down: 1, 3, 6."""
    records = [(1, p, 0, 9) for p in range(1, 7)] + [(0, 9, 0, 9)]
    found, study = entered(records, max_cohort_size=size)
    assert [p for p, *_ in found] == [*chosen, 9]
    assert rows(study.table, "row_id") == [(k,) for k in range(1, len(chosen) + 2)]


def test_overlapping_observation_periods():
    periods = pa.table(
        {
            "person_id": [1, 1, 2],
            "observation_period_start_date": [on(-500), on(-400), on(-500)],
            "observation_period_end_date": [on(5), on(50), on(5)],
        }
    )
    records = [(1, 1, 0, 9), (0, 2, 0, 9)]
    found, study = entered(records, extra={"observation_period": periods})
    assert rows(study.table, "days_from_obs_start", "days_to_obs_end") == [(500, 5), (500, 5)]
    assert [note.code for note in study.notes] == [
        "missing_table",  # person
        "overlapping_observation_periods",
    ]
    assert len(found) == 2
