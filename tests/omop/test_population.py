"""Study populations: the golden study, the nineteen rows by hand, and every option by hand."""

import datetime

import pyarrow as pa
import pytest

import riskset as rs
from cohort.golden import FOLDER, TINY
from omop.toy import (
    COMPARATOR,
    EXPECTED,
    TARGET,
    checksum,
    cohort,
    counts,
    episodes,
    population,
    rows,
    toy,
)

DAY0 = datetime.date(2020, 1, 1)


def on(day):
    return DAY0 + datetime.timedelta(days=day)


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


def cdm_of(records, *, observed=(-1000, 1000), events=(), deaths=(), people=(), extra=None):
    """Records (arm, person, start, end) in days from 2020-01-01."""
    persons = sorted({p for _, p, *_ in records})
    tables = {
        "cohort": pa.table(
            {
                "cohort_definition_id": pa.array([a for a, *_ in records], pa.int32()),
                "subject_id": pa.array([p for _, p, *_ in records], pa.int32()),
                "cohort_start_date": pa.array([on(s) for *_, s, _ in records], pa.date32()),
                "cohort_end_date": pa.array([on(e) for *_, e in records], pa.date32()),
            }
        ),
        "observation_period": pa.table(
            {
                "person_id": persons,
                "observation_period_start_date": [on(observed[0])] * len(persons),
                "observation_period_end_date": [on(observed[1])] * len(persons),
            }
        ),
        "event": pa.table(
            {
                "person_id": pa.array([p for p, _ in events], pa.int64()),
                "event_date": pa.array([on(d) for _, d in events], pa.date32()),
            }
        ),
        "death": pa.table(
            {
                "person_id": pa.array([p for p, _ in deaths], pa.int64()),
                "death_date": pa.array([on(d) for _, d in deaths], pa.date32()),
            }
        ),
    }
    if people:
        tables["person"] = pa.table(
            {
                name: pa.array([p[k] for p in people], pa.int32())
                for k, name in enumerate(
                    ("person_id", "gender_concept_id", "year_of_birth", "month_of_birth")
                )
            }
        )
    return rs.omop.Cdm(tables | (extra or {}))


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
    assert [note.code for note in study.notes] == ["overlapping_observation_periods"]
    assert len(found) == 2


# -------------------------------------------------------------------- time at risk by hand


def followed(
    records, *, events=(), deaths=(), observed=(-1000, 1000), competing="death", **options
):
    rules = {"washout_days": 0, "restrict_to_common_period": False, "first_exposure_only": False}
    with cdm_of(records, observed=observed, events=events, deaths=deaths) as cdm:
        both = rs.omop.CohortTable(1, 0).read(cdm)
        start = rs.omop.Eligibility(remove_duplicates="keep all", **rules).select(cdm, both)
        return rs.omop.TimeAtRisk(**options).follow(cdm, start, cdm.arrow("event"), competing)


def told(found):
    return rows(
        found.table, "person_id", "risk_start", "risk_end", "survival_time", "status", "end_reason"
    )


def test_as_started():
    found = followed([(1, 1, 0, 9)], observed=(-10, 700), events=[(1, 400)], risk_end=None)
    assert told(found) == [(1, 1, 700, 400, 1, "outcome")]


def test_fixed_days_after_the_start():
    found = followed([(1, 1, 0, 9)], risk_end=365, end_anchor="cohort start")
    assert told(found) == [(1, 1, 365, 365, 0, "maximum days")]


def test_most_days_are_days():
    found = followed([(1, 1, 0, 99)], max_days=30)
    assert told(found) == [(1, 1, 30, 30, 0, "maximum days")]


def test_from_the_end_of_exposure():
    options = {"start_anchor": "cohort end", "risk_end": 30}
    found = followed([(1, 1, 0, 9), (1, 2, 0, 9)], events=[(1, 9), (2, 10)], **options)
    # Person 1 has the outcome before the risk begins on day 10.
    assert told(found) == [(2, 10, 39, 1, 1, "outcome")]
    kept = followed([(1, 1, 0, 9)], events=[(1, 9)], remove_prior_outcome=False, **options)
    assert told(kept) == [(1, 10, 39, 30, 0, "cohort end")]


@pytest.mark.parametrize(("lookback", "left"), [(None, []), (100, [1]), (101, []), (0, [1])])
def test_lookback(lookback, left):
    """Only outcomes after day -lookback count as prior."""
    found = followed([(1, 1, 0, 9)], events=[(1, -100)], prior_outcome_lookback=lookback)
    assert [p for p, *_ in told(found)] == left
    assert found.status == ("one_arm_empty" if left else "empty")


def test_outcome_outside_observation_is_no_prior_outcome():
    found = followed([(1, 1, 0, 9)], observed=(-50, 50), events=[(1, -51), (1, 51)])
    assert told(found) == [(1, 1, 9, 9, 0, "cohort end")]
    assert found.events_outside_observation == 2
    assert [note.code for note in found.notes] == ["events_outside_observation"]


def test_nothing_happens_after_death():
    found = followed([(1, 1, 0, 90)], events=[(1, 31)], deaths=[(1, 30)], competing=())
    assert told(found) == [(1, 1, 90, 90, 0, "cohort end")]
    assert found.events_outside_observation == 1


def test_death_on_the_last_day_of_observation_is_an_event():
    found = followed([(1, 1, 0, 90)], observed=(-10, 30), deaths=[(1, 30)])
    assert told(found) == [(1, 1, 30, 30, 2, "competing event")]
    as_outcome = followed([(1, 1, 0, 90)], observed=(-10, 30), deaths=[(1, 30)], competing=())
    assert as_outcome.table.column("end_reason").to_pylist() == ["observation end"]


def test_next_time_at_risk_ends_this_one():
    records = [(1, 1, 0, 100), (1, 1, 50, 60), (0, 2, 0, 5), (0, 2, 0, 7)]
    found = followed(records, censor_at_new_risk_window=True)
    assert told(found) == [
        (1, 1, 50, 50, 0, "new time at risk"),  # the next begins on day 51
        (1, 1, 10, 10, 0, "cohort end"),
        (2, 1, 7, 7, 0, "cohort end"),
    ]
    last = found.attrition.steps[-2]
    assert (last.step, last.removed_target, last.removed_comparator) == ("new time at risk", 0, 1)


def test_days_at_risk():
    records = [(1, 1, 0, 0), (1, 2, 0, 29), (0, 3, 0, 30)]
    found = followed(records, min_days_at_risk=30)
    assert [p for p, *_ in told(found)] == [3]
    assert found.attrition.steps[-1].step == "at least 30 days at risk"
    assert found.attrition.steps[-1].removed_target == 2


# -------------------------------------------------------------------- events


def test_events_of_every_kind():
    """One event a person: a diagnosis, one in hospital, a record of a cohort, a death, none."""
    records = [(1, p, 0, 90) for p in (1, 2, 3)] + [(0, p, 0, 90) for p in (4, 5)]
    extra = {
        "condition_occurrence": pa.table(
            {
                "person_id": [1, 2, 5],
                "condition_concept_id": [11, 11, 12],
                "condition_start_date": [on(10), on(20), on(5)],
            }
        ),
        "visit_occurrence": pa.table(
            {
                "person_id": [1, 2, 1],
                "visit_concept_id": [9202, 9201, 9201],
                "visit_start_date": [on(10), on(18), on(11)],
                "visit_end_date": [on(10), on(21), on(12)],
            }
        ),
        "records": pa.table(
            {
                "cohort_definition_id": [5, 6],
                "subject_id": [3, 5],
                "cohort_start_date": [on(30), on(31)],
            }
        ),
    }
    own = rs.omop.ConceptSet([11], descendants=False)
    kinds = {
        "a concept set": (own, {1: 10, 2: 20}),
        "in hospital": (rs.omop.Diagnosis(own, inpatient=True), {2: 20}),
        "a cohort": (rs.omop.CohortRecords(5, "records"), {3: 30}),
        "any cohort": (rs.omop.CohortRecords(None, "records"), {3: 30, 5: 31}),
        "death": ("death", {4: 40}),
        "several": ([own, "death"], {1: 10, 2: 20, 4: 40}),
    }
    rules = rs.omop.Eligibility(washout_days=0, restrict_to_common_period=False)
    with cdm_of(records, deaths=[(4, 40)], extra=extra) as cdm:
        start = rules.select(cdm, rs.omop.CohortTable(1, 0).read(cdm))
        for name, (event, expected) in kinds.items():
            found = rs.omop.TimeAtRisk().follow(cdm, start, event)
            told = rows(found.table, "person_id", "survival_time", "status")
            assert {p: day for p, day, status in told if status == 1} == expected, name
        with pytest.raises(rs.CohortError, match="the only event with a name is 'death'"):
            rs.omop.TimeAtRisk().follow(cdm, start, "stroke")


# -------------------------------------------------------------------- new users


def exposures_of(records):
    """Records (person, concept, start, end, supply)."""
    names = ("drug_exposure_start_date", "drug_exposure_end_date")
    drugs = pa.table(
        {
            "person_id": [r[0] for r in records],
            "drug_concept_id": [r[1] for r in records],
            names[0]: [on(r[2]) for r in records],
            names[1]: pa.array([None if r[3] is None else on(r[3]) for r in records], pa.date32()),
            "days_supply": pa.array([r[4] for r in records], pa.int32()),
        }
    )
    persons = sorted({r[0] for r in records})
    periods = pa.table(
        {
            "person_id": persons,
            "observation_period_start_date": [on(-5)] * len(persons),
            "observation_period_end_date": [on(900)] * len(persons),
        }
    )
    return {"drug_exposure": drugs, "observation_period": periods}


def episodes_of(records, **options):
    sets = (rs.omop.ConceptSet([c], descendants=False) for c in (11, 22))
    with rs.omop.Cdm(exposures_of(records)) as cdm:
        return rs.omop.NewUserCohort(*sets, **options).read(cdm)


def days(found):
    return [
        (a, p, (s - DAY0).days, (e - DAY0).days)
        for a, p, s, e in rows(found.table, "treatment", "person_id", "start_date", "end_date")
    ]


def test_ends_of_exposures():
    records = [
        (1, 11, 0, 9, 30),  # the end date comes first
        (2, 11, 0, None, 30),
        (3, 11, 0, None, 0),
        (4, 11, 0, None, None),
        (5, 11, 0, -3, 30),
        (6, 0, 0, 9, 9),
        (7, 33, 0, 9, 9),
    ]
    found = days(episodes_of(records))
    assert found == [(1, 1, 0, 9), (1, 2, 0, 29), (1, 3, 0, 0), (1, 4, 0, 0), (1, 5, 0, 0)]


def test_gaps_are_from_the_running_end():
    records = [(1, 11, 0, 99, 0), (1, 11, 5, 9, 0), (1, 11, 129, 139, 0), (1, 11, 170, 179, 0)]
    assert days(episodes_of(records)) == [(1, 1, 0, 139), (1, 1, 170, 179)]
    assert days(episodes_of(records, gap_days=31)) == [(1, 1, 0, 179)]
    more = days(episodes_of(records, end_extension_days=60))
    assert more == [(1, 1, 0, 169), (1, 1, 170, 239)]


def test_notes_of_exposures():
    found = episodes_of([(1, 11, 0, 400, 0), (2, 22, 300, 310, 0)])
    assert [note.code for note in found.notes] == ["long_exposures"]
    assert found.early == {"target": 1.0, "comparator": 0.0}


def test_eras():
    eras = rs.omop.NewUserCohort(TARGET, COMPARATOR, source="drug_era").read(toy())
    # Gaps of 30 days were already closed, so only overlaps of the two drugs of a class can differ.
    assert eras.table.equals(episodes().table)
