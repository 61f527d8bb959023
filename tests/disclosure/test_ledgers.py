"""No two numbers of the same people, in any tables and analyses of a study, differ by few."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from disclosure.attacks import ARMS, parts_found
from disclosure.ledgers import differences_found
from riskset.disclosure.engine import Disclosure
from riskset.results.rows import TABLES, AtRiskRow, CensoringWeightRow, DeviationRow, EstimateRow
from study import protocol_study, strategy_study
from study.protocol_study import simulated
from study.small import content, people

LEAST = 5
RUN = {"target": "new", "comparator": "old", "outcome": "death", "analysis": "pp"}


def run(folder, specification, **tables):
    """The results and the private results of a study with files of these names."""
    for name, columns in tables.items():
        made = {key: pa.array(np.asarray(x), from_pandas=True) for key, x in columns.items()}
        pq.write_table(pa.table(made), folder / f"{name}.parquet")
    rs.study.run(rs.study.Study(specification, folder), folder / "out")
    return [rs.study.StudyResults.open(folder / "out" / name) for name in ("results", "private")]


def near_times(folder):
    """Analyses of the same people, with different horizons and steps."""
    columns = people(400, 3)
    columns["died"] = (np.random.default_rng(5).random(400) < 0.25).astype(int)
    analyses = {
        "a": {"propensity": "none", "model": {"rmst": [100, 250], "time_effect": [94, 201]}},
        "b": {"propensity": "none", "model": {"rmst": [102, 255], "time_effect": [92, 204]}},
        "c": {"weight": {}, "model": {"rmst": [104, 245], "time_effect": [98, 198]}},
    }
    changes = {"analyses": analyses, "risk_times": [96, 200], "sharing": {"blind": False}}
    return run(folder, content(**changes), people=columns)


def deviations(folder):
    """People who deviate, and some whose follow-up ends for another reason."""
    columns, long = simulated(400, 8)
    rng = np.random.default_rng(8)
    columns["stopped"] = np.where(rng.random(400) < 0.5, np.nan, columns["stopped"])
    ends, at = rng.random(400) < 0.15, rng.integers(20, 350, 400)
    ends &= at < columns["days"]
    columns["days"] = np.where(ends, at, columns["days"])
    columns["died"] = np.where(ends, 0, columns["died"])
    is_late = columns["stopped"] > columns["days"]
    columns["stopped"] = np.where(is_late, np.nan, columns["stopped"])
    is_known = long["time"] < columns["days"][long["id"] - 100]
    long = {name: values[is_known] for name, values in long.items()}
    own = protocol_study.specification()["analyses"]
    model = {"model": {"time_effect": [60, 150], "rmst": [200]}}
    analyses = {name: analysis | model for name, analysis in own.items()}
    changes = {"analyses": analyses, "risk_times": [30, 60, 90, 120, 150, 180, 210, 240, 270]}
    return run(folder, protocol_study.specification(**changes), people=columns, labs=long)


def three_treatments(folder):
    """Comparisons that share an arm."""
    columns, rng = people(500, 4), np.random.default_rng(6)
    arm = np.clip(columns["drug"] + (rng.random(500) < 0.4), 0, 2)
    columns["drug"] = np.array(["a", "b", "c"])[arm]
    columns["died"] = (rng.random(500) < 0.25).astype(int)
    columns["had"] = (rng.random(500) < 0.015).astype(int)
    weights = {"arms": ["a", "b", "c"], "penalty": "none", "cross_validate": False}
    specification = content(
        exposures={name: {"value": name} for name in "abc"},
        comparisons=[
            {"target": target, "comparator": comparator}
            for target, comparator in (("a", "b"), ("a", "c"), ("c", "b"))
        ],
        outcomes={"death": {"time": "days", "event": "died", "prior": "had"}},
        analyses={
            "all": {"weight_treatments": weights},
            "trimmed": {"trim": {"overlap": True}, "weight": {}},
            "matched": {"match": {"ratio": 0}},
        },
        risk_times=[96, 100, 200],
        sharing={"blind": False},
    )
    return run(folder, specification, people=columns)


STUDIES = [near_times, deviations, three_treatments]


@pytest.fixture(scope="module", params=STUDIES, ids=lambda study: study.__name__)
def found(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("study"))


def test_no_numbers_differ_by_few(found):
    results, private = found
    assert len(differences_found(private, private, LEAST)) > 50, "the data have nothing to hide"
    assert differences_found(results, private, LEAST) == []
    assert parts_found(results, LEAST) == []
    assert results.rows("curves")
    assert any(row["target_outcomes"] is not None for row in results.rows("absolute_risks"))


def test_people_before_and_after_in_other_comparisons(found):
    """Of people before an adjustment, no other comparison of the exposure leaves out few."""
    results, _ = found
    for exposure in {row[arm] for row, arm in itertools.product(results.rows("arms"), ARMS)}:
        before, after = (
            {
                row[f"{arm}_exposures"]
                for row, arm in itertools.product(results.rows("arms", side=side), ARMS)
                if row[arm] == exposure
            }
            - {None}
            for side in ("before", "after")
        )
        assert after
        assert all(not 0 < n - m < LEAST for n in before for m in after)


def test_clones_of_the_same_people_in_several_comparisons(tmp_path):
    """People who never start are among those who do not start early."""
    specification = strategy_study.specification(risk_times=[100, 200])
    never = {"treated_at": "surgery", "strategy": "do not start"}
    specification["exposures"]["never"] = never
    early = {"target": "early", "comparator": "not early"}
    specification["comparisons"] = [early, {"target": "early", "comparator": "never"}]
    columns = strategy_study.simulated(260, 4)
    # Nearly nobody starts after the grace period.
    is_late = columns["surgery"] > strategy_study.GRACE
    is_late[np.flatnonzero(is_late)[:3]] = False
    columns["surgery"] = np.where(is_late, np.nan, columns["surgery"])
    results, private = run(tmp_path, specification, people=columns)
    for found, has_few in ((private, True), (results, False)):
        people, outcomes = (
            [numbers(found, name) for name in ("not early", "never")]
            for numbers in (people_at_times, outcomes_at_times)
        )
        few = [
            (time, a[time], b[time])
            for a, b in (people, outcomes)
            for time in a.keys() & b.keys()
            if 0 < abs(a[time] - b[time]) < LEAST
        ]
        assert bool(few) == has_few, few


def people_at_times(found, comparator):
    rows = found.rows("numbers_at_risk", comparator=comparator, arm="comparator", adjusted=True)
    return {row["time"]: row["people"] for row in rows if row["people"] is not None}


def outcomes_at_times(found, comparator):
    rows = found.rows("absolute_risks", comparator=comparator, adjusted=True)
    counts = {row["time"]: row["comparator_outcomes"] for row in rows}
    (arms,) = found.rows("arms", comparator=comparator, side="after")
    counts[math.inf] = arms["comparator_outcomes"]
    return {time: count for time, count in counts.items() if count is not None}


def test_few_who_enter_late_are_not_told_by_those_at_risk_at_the_start():
    arms = RUN | {"side": "after", "target_exposures": 112, "target_persons": 112}
    for numbers, expected in (((110, 60), [None, 60]), ((112, 60), [112, 60])):
        found = shown(AtRiskRow, at_risk(*numbers), arms=[arms])
        assert [row.people for row in found] == expected


@pytest.fixture(scope="module")
def few_in_an_arm(tmp_path_factory):
    """Few outcomes in one arm, and models of odds and rates without weights and covariates."""
    columns, rng = people(300, 3), np.random.default_rng(5)
    columns["died"] = (rng.random(300) < np.where(columns["drug"] == 1, 0.015, 0.15)).astype(int)
    analyses = {
        "odds": {"propensity": "none", "model": {"kind": "logistic", "also": ["poisson", "cox"]}},
        "rates": {"match": {}, "model": {"kind": "poisson", "reading": "pooled"}},
        "weighted": {"weight": {}},
    }
    changes = {"analyses": analyses, "sharing": {"blind": False}}
    return run(tmp_path_factory.mktemp("few"), content(**changes), people=columns)


def test_odds_and_rate_ratios_do_not_reveal_the_outcomes_of_an_arm(few_in_an_arm):
    """From the ratio, the people or days, and the outcomes of the other arm, they follow."""
    results, private = few_in_an_arm
    n_hidden = 0
    for row, own in zip(results.rows("estimates"), private.rows("estimates"), strict=True):
        if row["analysis"] == "weighted" or row["role"] not in ("main", "model"):
            continue
        if row["model"] == "cox":
            assert row["hr"] == own["hr"]  # the result of the study, from which no count follows
            continue
        assert row["target_outcomes"] is None
        assert 0 < own["target_outcomes"] < LEAST
        assert outcomes_from_ratio(own) == pytest.approx(own["target_outcomes"], rel=1e-6)
        for name in ("hr", "hr_lower", "hr_upper", "log_hr", "se", "p", "llr"):
            assert own[name] is not None
            assert row[name] is None
        n_hidden += 1
    assert n_hidden == 3


def outcomes_from_ratio(row):
    """Outcomes of the target group, by someone who knows all other numbers of the row."""
    if row["model"] == "poisson":
        rate = row["comparator_outcomes"] / row["comparator_days"]
        return row["hr"] * rate * row["target_days"]
    others = row["comparator_exposures"] - row["comparator_outcomes"]
    odds = row["hr"] * row["comparator_outcomes"] / others
    return row["target_exposures"] * odds / (1 + odds)


def test_what_follows_from_a_hidden_ratio_goes_with_it(few_in_an_arm):
    results, private = few_in_an_arm
    profiled = {row["analysis"] for row in private.rows("likelihood_profiles")}
    shown = {row["analysis"] for row in results.rows("likelihood_profiles")}
    assert profiled - shown == {"odds", "rates"}
    for row in results.rows("curve_tests"):
        assert (row["statistic"] is None) == (row["analysis"] != "weighted" or not row["adjusted"])
    # Weights take part in the estimate, which is the result of the study.
    (row,) = results.rows("estimates", analysis="weighted", role="main")
    assert row["hr"] is not None


def shown(kind, rows, **tables):
    everything = {kind.table: rows} | tables
    return Disclosure(lambda name: everything.get(name, []), TABLES, LEAST).shown(kind)


def at_risk(*people):
    about = RUN | {"arm": "target", "adjusted": True, "suppressed": ""}
    return [about | {"time": 10.0 * k, "people": n} for k, n in enumerate(people)]


@pytest.mark.parametrize(("hidden", "rows"), [(18, None), (None, 250)])
def test_rows_of_weights_are_the_sum_of_numbers_at_risk(hidden, rows):
    row = CensoringWeightRow.of(
        RUN | {"arm": "target", "weights": "untruncated", "rows": 250, "mean": 1.0}
    )
    arms = [RUN | {"side": "after", "target_exposures": 110, "target_persons": 110}]
    numbers = at_risk(110, 60, *([hidden] if hidden else []), 20)
    (found,) = shown(CensoringWeightRow, [row], arms=arms, numbers_at_risk=numbers)
    assert found.rows == rows
    assert found.mean == 1.0


def test_few_who_leave_neither_by_deviation_nor_with_the_outcome():
    """Of 30 others by day 10, 27 had the outcome, as the risk by then says."""
    kinds = [(0, 10, 20, 30), (10, 20, 8, 32), (20, None, 6, 14)]
    rows = [
        DeviationRow.of(RUN | {"arm": "target", "start": a, "end": b, "deviations": n, "others": m})
        for a, b, n, m in kinds
    ]
    tables = {"numbers_at_risk": at_risk(110, 60, 20)}
    risk = RUN | {"adjusted": True, "time": 10.0, "target_outcomes": 27, "target_at_risk": 60}
    risk |= {"target_risk": 0.25, "suppressed": ""}
    arms = {"side": "after", "target_exposures": 110, "target_persons": 110, "suppressed": ""}
    tables |= {"arms": [RUN | arms], "absolute_risks": [risk]}
    found = shown(DeviationRow, rows, **tables)
    assert [(row.start, row.end) for row in found] == [(0, 20), (20, None)]
    tables["absolute_risks"] = [risk | {"target_outcomes": 20}]
    found = shown(DeviationRow, rows, **tables)
    assert [(row.start, row.end) for row in found] == [(0, 10), (10, 20), (20, None)]


def test_a_level_that_an_earlier_analysis_hides_is_hidden_in_a_later_one():
    """28 people in a level are hidden beside one in another one; nobody of the 28 deviates."""
    names = ("persons", "exposures", "days", "outcomes", "competing")
    about = RUN | {"suppressed": "", "status": "ok", "model": "cox", "reading": "marginal"}

    def row(analysis, number, outcomes, **changes):
        people = {"persons": 300, "exposures": 300, "days": 9e4, "competing": 0}
        counts = {f"{arm}_{n}": (people | {"outcomes": outcomes})[n] for arm in ARMS for n in names}
        return about | {"analysis": analysis, "number": number, "role": "main"} | counts | changes

    def rows(analysis, total, *levels):
        main = row(analysis, 1, total)
        own = [
            row(analysis, 2 + k, n, role="subgroup", subgroup="g", level=level)
            for k, (level, n) in enumerate(zip("abc", levels, strict=True))
        ]
        return [main, *own]

    tables = {
        "runs": [RUN | {"analysis": name, "adjustment_kind": "none"} for name in ("itt", "pp")],
        "arms": [
            row(name, 1, n) | {"side": side}
            for name, n in (("itt", 98), ("pp", 88))
            for side in ("before", "after")
        ],
    }
    found = shown(EstimateRow, rows("itt", 98, 69, 28, 1) + rows("pp", 88, 59, 28, 1), **tables)
    counts = [found[k].target_arm.outcomes for k in range(len(found))]
    assert counts == [98, 69, None, None, 88, 59, None, None]
    # By itself, the later analysis hides the same.
    alone = shown(EstimateRow, rows("pp", 88, 59, 28, 1), **tables)
    assert [one.target_arm.outcomes for one in alone] == [88, 59, None, None]
    # With nothing small in a level of its own, it hides what the other one hides.
    found = shown(EstimateRow, rows("itt", 98, 69, 28, 1) + rows("pp", 88, 60, 28, 0), **tables)
    assert [one.target_arm.outcomes for one in found][4:] == [88, 60, None, None]
