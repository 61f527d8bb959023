"""Hazard ratios of studies as functions of time: R's coxph with tt(), and when they are hidden."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from reference import GOLDEN, read_json, read_table
from study.small import content, hide, people, run

R = read_json(GOLDEN / "study_time_effects.json")
VETERAN = dict(read_table(GOLDEN / "veteran.csv"))


def veteran(folder, model, *, outcome=None, data=None, **analysis):
    """Results of a study of R's data, with one analysis."""
    n = len(VETERAN["time"])
    columns = {
        "id": np.arange(n),
        "drug": VETERAN["trt"].astype(int),
        **{name: VETERAN[name] for name in ("karno", "age", "time")},
        "stratum": np.array([f"s{k:g}" for k in VETERAN["stratum"]]),
        "event": VETERAN["event"].astype(int),
        "code": np.array(R["code"], dtype=int),
        "entry": np.array(R["entry"], dtype=float),
        "score": np.array(R["score"], dtype=float),
    }
    pq.write_table(pa.table(columns), folder / "people.parquet")
    asked = content(
        data={
            "people": "people.parquet",
            "treatment": "drug",
            "id": "id",
            "covariates": {"columns": ["karno", "age"]},
            **(data or {}),
        },
        outcomes={"death": outcome or {"time": "time", "event": "event"}},
        defaults={"propensity": None},
        analyses={"main": {"model": model, **analysis}},
        sharing={"blind": False},
    )
    rs.study.run(rs.study.Study(asked, folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")


def check(found, golden, interval):
    (test,) = found.rows("time_effects")
    rows = found.rows("effect_at_times")
    assert test["interval"] == interval
    assert [r["log_hr"] for r in rows] == pytest.approx(golden["log_hr"], rel=1e-6)
    assert [r["se"] for r in rows] == pytest.approx(golden["se"], rel=1e-6)
    assert test["statistic"] == pytest.approx(golden["statistic"], rel=1e-6)
    for row in rows:
        assert row["hr"] == pytest.approx(np.exp(row["log_hr"]))
        assert row["hr_lower"] == pytest.approx(np.exp(row["log_hr"] - 1.959963985 * row["se"]))
    return test, rows


WEIGHTED = {
    "data": {"score": "score"},
    "weight": {"estimand": "ate", "stabilise": False},
}
AT = {"effect_times": R["at"]}
CASES = {
    "log": ({"time_effect": "log", **AT, "interval": "wald"}, {}, "plain", "log"),
    "identity": (
        {"time_effect": "identity", **AT, "ties": "efron", "interval": "wald"},
        {},
        "plain",
        "identity",
    ),
    "steps": ({"time_effect": [60, 150], "interval": "wald"}, {}, "plain", "steps"),
    "weighted": ({"time_effect": "log", **AT}, WEIGHTED, "weighted", "log"),
    "weighted steps": ({"time_effect": [60, 150]}, WEIGHTED, "weighted", "steps"),
    "strata": (
        {"time_effect": "log", **AT, "interval": "wald"},
        {"coarsen": {"within": ["stratum"]}},
        "strata",
        None,
    ),
    "late entry and another cause": (
        {"time_effect": "log", **AT, "interval": "wald", "kind": "cause-specific"},
        {"outcome": {"time": "time", "event": "code", "entry": "entry"}},
        "late",
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_effects_are_those_of_r(tmp_path, name):
    model, others, part, function = CASES[name]
    interval = "robust" if part == "weighted" else "wald"
    golden = R[part] if function is None else R[part][function]
    test, rows = check(veteran(tmp_path, model, **others), golden, interval)
    if isinstance(model["time_effect"], list):
        assert (test["function"], test["df"]) == ("steps", 2)
        assert [(r["start"], r["time"]) for r in rows] == [
            (0, 60), (60, 150), (150, VETERAN["time"][VETERAN["event"] == 1].max())
        ]  # fmt: skip
        inside = (VETERAN["time"] > 60) & (VETERAN["time"] <= 150) & (VETERAN["event"] == 1)
        assert rows[1]["target_outcomes"] == np.sum(inside & (VETERAN["trt"] == 1))
        assert rows[1]["comparator_outcomes"] == np.sum(inside & (VETERAN["trt"] == 0))
    else:
        assert [r["time"] for r in rows] == R["at"]
        assert (test["function"], test["df"]) == (model["time_effect"], 1)
        assert rows[0]["start"] is rows[0]["target_outcomes"] is None


def test_times_are_in_the_unit_of_the_report(tmp_path):
    """Round times of the unit, unless they are given; steps are in the unit, too."""
    columns = people(300, days=np.random.default_rng(3).integers(20, 2000, 300))
    report = {"time_unit": "years"}
    found = run(
        tmp_path,
        columns,
        report=report,
        analyses={
            "smooth": {"model": {"reading": "marginal", "time_effect": "identity"}},
            "steps": {"model": {"reading": "marginal", "time_effect": [1, 2.5]}},
        },
        sharing={"blind": False},
    )
    days = [r["time"] for r in found.rows("effect_at_times", analysis="smooth")]
    assert np.array(days) / 365.25 == pytest.approx([1, 2, 3, 4, 5])
    days = [r["start"] for r in found.rows("effect_at_times", analysis="steps")]
    assert days == pytest.approx([0, 365.25, 2.5 * 365.25])


def test_controls_and_further_models_have_none(tmp_path):
    outcomes = {
        "death": {"time": "days", "event": "died"},
        "control": {"time": "days", "event": "died", "kind": "negative control"},
    }
    model = {"reading": "marginal", "time_effect": "log", "also": ["poisson", "finegray"]}
    found = run(tmp_path, outcomes=outcomes, analyses={"crude": {"model": model}})
    assert {r["outcome"] for r in found.rows("time_effects")} == {"death"}
    assert len(found.rows("time_effects")) == 1


def test_an_effect_without_an_estimate_has_a_note(tmp_path):
    """No target has an outcome after the day 250, so that its ratio there is 0."""
    columns = people(300)
    columns["died"] = columns["died"] * ~((columns["drug"] == 1) & (columns["days"] > 250))
    model = {"reading": "marginal", "time_effect": [250]}
    found = run(tmp_path, columns, analyses={"crude": {"model": model}})
    assert not found.rows("time_effects")
    assert not found.rows("effect_at_times")
    (note,) = (r for r in found.rows("warnings") if r["code"] == "no_time_effect")
    assert "does not converge" in note["message"]
    assert found.rows("estimates", role="main")[0]["hr"] is not None


def test_times_without_outcomes_have_a_note(tmp_path):
    columns = people(300)
    last = float(columns["days"][columns["died"] == 1].max())
    for times, n in (([30.0, last], 0), ([30.0, last + 1.0, 1e6], 2)):
        model = {"reading": "marginal", "time_effect": "log", "effect_times": times}
        folder = tmp_path / str(n)
        folder.mkdir()
        found = run(folder, columns, analyses={"crude": {"model": model}})
        assert len(found.rows("effect_at_times")) == len(times)
        notes = [r for r in found.rows("warnings") if r["code"] == "effect_beyond_outcomes"]
        assert [r["message"][:28] for r in notes] == ["2 reported times of the effe"] * (n > 0)


def test_effects_of_completed_data_sets_are_pooled(tmp_path):
    columns = people(200)
    age = columns["age"].astype(float)
    columns["age"] = pa.array(np.where(np.arange(200) % 4 == 0, np.nan, age), from_pandas=True)
    data = {
        "people": "people.parquet", "treatment": "drug", "id": "id",
        "covariates": {"columns": ["age", "x"], "missing": "impute", "impute": {"datasets": 3}},
    }  # fmt: skip
    analyses = {
        "weighted": {"weight": {}, "model": {"time_effect": "log", "effect_times": [30, 300]}}
    }
    found = run(tmp_path, columns, data=data, analyses=analyses, sharing={"blind": False})
    (test,) = found.rows("time_effects")
    assert test["statistic"] is None
    assert 0 < test["p"] < 1
    rows = found.rows("effect_at_times")
    assert [r["time"] for r in rows] == [30, 300]
    # Student's t instead of the normal distribution.
    assert all(r["hr_upper"] > np.exp(r["log_hr"] + 1.96 * r["se"]) for r in rows)


# ------------------------------------------------------------------------------- disclosure

OF = {"target": "t", "comparator": "c", "outcome": "o", "analysis": "a"}


def step(number, start, time, target, comparator):
    counts = {"target_outcomes": target, "comparator_outcomes": comparator}
    effect = {"hr": 1.0, "hr_lower": 0.5, "hr_upper": 2.0, "log_hr": 0.0, "se": 0.3}
    times = {"number": number, "start": start, "time": time, "interval_level": 0.95}
    return {**OF, **times, **counts, **effect}


def main(target, comparator):
    return {
        **OF, "number": 1, "role": "main", "status": "ok", "suppressed": "", "blinded": False,
        "target_outcomes": target, "comparator_outcomes": comparator,
    }  # fmt: skip


def test_small_counts_hide_all_steps():
    steps = [step(1, 0.0, 100.0, 20, 25), step(2, 100.0, 300.0, 30, 12)]
    assert len(hide("effect_at_times", steps, 5, estimates=[main(50, 37)])) == 2
    steps[1]["target_outcomes"] = 4
    assert not hide("effect_at_times", steps, 5, estimates=[main(24, 37)])


def test_steps_that_end_near_another_interval_have_no_counts():
    """20 outcomes by the day 100 and 22 by the day 103 mean 2 in three days."""
    steps = [step(1, 0.0, 100.0, 20, 25), step(2, 100.0, 300.0, 30, 12)]
    interval = {**OF, "interval": 1, "start": 0.0, "end": 103.0, "interval_level": 0.95,
                "target_outcomes": 22, "comparator_outcomes": 25}  # fmt: skip
    others = {"estimates": [main(50, 37)], "effect_over_time": [interval]}
    found = hide("effect_at_times", steps, 5, **others)
    assert [(r["hr"], r["target_outcomes"], r["comparator_outcomes"]) for r in found] == [
        (1.0, None, None)
    ] * 2
    again = hide("effect_at_times", found, 5, **others)
    assert list(again) == list(found)
    interval["target_outcomes"] = 20
    found = hide("effect_at_times", steps, 5, **others)
    assert [r["target_outcomes"] for r in found] == [20, 30]


def test_smooth_effects_of_few_outcomes_are_hidden():
    rows = [step(1, None, 100.0, None, None)]
    test = {**OF, "function": "log", "interval": "wald", "df": 1, "statistic": 2.0, "p": 0.2}
    for name, own in (("effect_at_times", rows), ("time_effects", [test])):
        assert len(hide(name, own, 5, estimates=[main(9, 6)])) == 1
        assert not hide(name, own, 5, estimates=[main(2, 2)])


def test_effects_are_withheld_with_the_main_estimate(tmp_path):
    model = {"reading": "marginal", "time_effect": "log"}
    run(tmp_path, analyses={"crude": {"model": model}}, diagnostics={"max_smd": 1e-9})
    private, shared = (
        rs.study.StudyResults.open(tmp_path / "out" / name) for name in ("private", "results")
    )
    for name in ("time_effects", "effect_at_times"):
        assert private.rows(name)
        assert not shared.rows(name)
    made = rs.report.write(private.path, tmp_path / "page.html", blind=True, min_cell_count=0)
    text = made.with_suffix(".json").read_text()
    assert repr(private.rows("effect_at_times")[0]["hr"]) not in text


# ------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"time_effect": "sqrt"}, "time_effect: expected 'log' or 'identity' or a list of numbers"),
        ({"time_effect": [100, 50]}, "must have finite times that increase"),
        ({"time_effect": []}, "must have finite times that increase"),
        ({"time_effect": [50], "effect_times": [60]}, "belongs to an effect that is a smooth"),
        ({"effect_times": [60]}, "belongs to an effect that is a smooth function"),
        ({"time_effect": "log", "kind": "finegray"}, "belongs to the Cox model"),
        ({"time_effect": "log", "kind": "poisson", "also": ["cox"]}, "belongs to the Cox model"),
        ({"time_effect": "log", "ties": "exact"}, "not available for `ties: exact`"),
        ({"time_effect": "log", "firth": True}, "not available for `firth: true`"),
        ({"time_effect": "log", "covariates": "all"}, "adds a penalty, with which `time_effect`"),
    ],
)
def test_what_is_refused(tmp_path, model, words):
    pq.write_table(pa.table(people()), tmp_path / "people.parquet")
    made = content(analyses={"crude": {"model": model}})
    with pytest.raises(rs.InputError) as error:
        rs.study.Study(made, tmp_path)
    assert words in str(error.value)
