"""Unmeasured confounding and bounds from controls in results, reports and what is shared."""

import json

import numpy as np
import pytest

import riskset as rs
from report.parsed import parse
from study.small import content, hide, run

LOOSE = {"max_smd": 9.0, "max_mdrr": 90.0, "min_equipoise": 0.0, "max_ease": 9.0}
N_CONTROLS = 6
RUN = {"target": "new", "comparator": "old", "outcome": "death", "analysis": "a"}


def people(n=1500, seed=5):
    """An outcome with an effect, and controls that a hidden confounder makes look like one."""
    rng = np.random.default_rng(seed)
    age, hidden = rng.integers(40, 90, n), rng.normal(size=n)
    drug = (rng.random(n) < 1 / (1 + np.exp(-(0.03 * (age - 65) + 0.4 * hidden)))).astype(int)
    columns = {"id": np.arange(n), "drug": drug, "age": age}
    for name, effect in (("death", 0.9), *((f"c{k}", 0.0) for k in range(N_CONTROLS))):
        hazard = 0.001 * np.exp(0.03 * (age - 65) + 0.3 * hidden + effect * drug)
        time, end = rng.exponential(1 / hazard), rng.uniform(100, 700, n)
        columns[f"{name}_days"] = np.ceil(np.minimum(time, end))
        columns[f"{name}_event"] = (time <= end).astype(int)
    return columns


def study(folder, **changes):
    """Results of a study with controls, and with what `changes` say."""
    outcomes = {"death": {"time": "death_days", "event": "death_event"}}
    outcomes |= {
        f"c{k}": {"time": f"c{k}_days", "event": f"c{k}_event", "kind": "negative control"}
        for k in range(N_CONTROLS)
    }
    covariates = {"covariates": {"columns": ["age"]}}
    defaults = {
        "analyses": {"a": {"weight": {"estimand": "ato"}}},
        "diagnostics": LOOSE,
        "outcomes": outcomes,
        "data": content()["data"] | covariates,
    }
    return run(folder, people(), **defaults | changes)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    model = {"covariates": "all", "strength": 0.01}
    place = tmp_path_factory.mktemp("unmeasured")
    return study(place, analyses={"a": {"weight": {"estimand": "ato"}, "model": model}}), place


def test_rows_are_those_of_the_function(found):
    results, _ = found
    (main,) = results.rows("estimates", role="main", outcome="death")
    interval = {"lower": main["hr_lower"], "upper": main["hr_upper"], "scale": "hazard"}
    interval |= {"common": main["e_value_common"]}
    rows = results.rows("unmeasured_confounding")
    assert {row["outcome"] for row in rows} == {"death"}
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) == (3 * 2 + 3 * 2) * 3
    for row in rows:
        names = ("target_prevalence", "comparator_prevalence", "difference")
        values = {name: row[name] for name in names if row[name] is not None}
        one = rs.cohort.adjust_for_confounder(
            main["hr"], **interval, **values, effect=row["effect"]
        )
        expected = [one.bias[0], one.ratio[0], one.lower[0], one.upper[0]]
        shown = [row[name] for name in ("bias", "ratio", "ratio_lower", "ratio_upper")]
        assert shown == pytest.approx(expected, rel=1e-12)
        assert row["tips"] == one.tips[0]
        points = rs.cohort.tipping_points(main["hr"], **interval, **values)
        for name, value in (("", points.effect), ("_of_estimate", points.of_estimate)):
            own = row[f"tipping_effect{name}"]
            assert (np.nan if own is None else own) == pytest.approx(value[0], nan_ok=True)


def test_bounds_are_those_of_the_function(found):
    results, _ = found
    (main,) = results.rows("estimates", role="main", outcome="death")
    reading = {"model": main["model"], "reading": main["reading"]}
    used = [row for row in results.rows("controls", **reading) if row["used"]]
    assert len(used) == N_CONTROLS
    controls = rs.cohort.Controls([r["log_hr"] for r in used], [r["se"] for r in used])
    expected = rs.cohort.bias_bounds(
        controls, main["hr"], main["hr_lower"], main["hr_upper"], scale="hazard",
        common=main["e_value_common"],
    )  # fmt: skip
    rows = results.rows("bias_bounds")
    assert [(r["basis"], r["direction"]) for r in rows] == list(
        zip(expected.basis.tolist(), expected.direction.tolist(), strict=True)
    )
    pairs = {"limit_lower": "lower", "limit_upper": "upper", "bias_lower": "bias_lower",
             "ratio_upper": "ratio_upper", "e_value": "e_value"}  # fmt: skip
    for column, name in pairs.items():
        values = getattr(expected, name)
        assert [row[column] for row in rows] == pytest.approx(values, rel=1e-10)
    assert rows[0]["beyond"] == pytest.approx(expected.probability_beyond, rel=1e-8)
    assert rows[2]["beyond"] == expected.share_beyond


def test_the_report_shows_them(found):
    results, place = found
    report = rs.report.write(place / "out", place / "report.html", blind=False)
    page = parse(report)
    text = page.text
    assert "Which confounder that was not measured could explain the result?" in text
    assert "At least 15 % of a group have the outcome" in text.replace("\u202f", " ")
    assert "6 negative controls" in text
    assert "Discs are measured covariates" in text
    own = json.loads((place / "report.json").read_text("utf-8"))["parts"][0]["unmeasured"]
    (main,) = results.rows("estimates", role="main", outcome="death")
    assert own["observed"]["common"]
    assert own["observed"]["ratio"] == pytest.approx(
        rs.cohort.e_value(
            main["hr"], main["hr_lower"], main["hr_upper"], scale="hazard", common=True
        ).risk_ratio
    )
    # Those that make the ratio too large, once each; and the covariate by hand.
    assert len(own["tables"]["tipping"]) == 3 + 3
    assert all(row["target_prevalence"] > row["comparator_prevalence"]
               for row in own["tables"]["tipping"] if row["kind"] == "binary")  # fmt: skip
    columns = people()
    ages = [columns["age"][columns["drug"] == arm] for arm in (1, 0)]
    spread = np.sqrt(np.mean([age.var(ddof=1) for age in ages]))
    (strength,) = own["strengths"]
    (coef,) = (r["coef"] for r in results.rows("outcome_coefficients", outcome="death", number=1))
    assert strength["difference"] == pytest.approx((ages[0].mean() - ages[1].mean()) / spread)
    assert np.log(strength["effect"]) == pytest.approx(coef * spread)


def test_the_values_are_settings(tmp_path):
    asked = {"prevalences": [0.2, 0.4], "differences": [0.3], "effects": [3], "bias_level": 0.8}
    results = study(tmp_path, unmeasured=asked)
    rows = results.rows("unmeasured_confounding")
    pairs = [(r["target_prevalence"], r["comparator_prevalence"], r["difference"]) for r in rows]
    assert pairs == [(0.2, 0.4, None), (0.4, 0.2, None), (None, None, 0.3), (None, None, -0.3)]
    assert {row["effect"] for row in rows} == {3}
    assert {row["range_level"] for row in results.rows("bias_bounds")} == {0.8}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"prevalences": [1.5]}, "unmeasured.prevalences"),
        ({"effects": [0.5]}, "unmeasured.effects"),
        ({"differences": [0]}, "unmeasured.differences"),
        ({"bias_level": 1}, "unmeasured.bias_level"),
    ],
)
def test_wrong_values_are_refused(tmp_path, asked, words):
    with pytest.raises(rs.InputError, match=words):
        rs.study.Study(content(unmeasured=asked), tmp_path)


def test_without_controls_there_are_no_bounds(tmp_path):
    results = study(tmp_path, outcomes={"death": {"time": "death_days", "event": "death_event"}})
    assert results.rows("unmeasured_confounding")
    assert not results.rows("bias_bounds")
    report = rs.report.write(tmp_path / "out", tmp_path / "report.html", blind=False)
    assert "Errors as large as those of the negative controls" not in report.read_text("utf-8")


def test_a_withheld_estimate_has_neither(tmp_path):
    strict = LOOSE | {"max_mdrr": 1.01}
    private = study(tmp_path, diagnostics=strict)
    assert private.rows("unmeasured_confounding")
    shared = rs.study.StudyResults.open(tmp_path / "out" / "results")
    assert shared.rows("runs", outcome="death")[0]["blinded"]
    assert not shared.rows("unmeasured_confounding")
    assert not shared.rows("bias_bounds")
    for folder, blind in (("results", None), ("private", True)):
        path = rs.report.write(tmp_path / "out" / folder, tmp_path / f"{folder}.html", blind=blind)
        assert "Tipping points" not in path.read_text("utf-8")
        own = json.loads(path.with_suffix(".json").read_text("utf-8"))["parts"][0]
        assert "unmeasured" not in own


def shared(results, **changed):
    """Both tables as they are shared, if the main estimate or the controls are changed."""
    estimates = results.rows("estimates")
    for row in estimates:
        if row["outcome"] == "death" and row["role"] == "main":
            row |= changed.get("main", {})
        if row["outcome"] == "c0":
            row |= changed.get("control", {})
    others = {name: results.rows(name) for name in ("runs", "controls")} | {"estimates": estimates}
    tables = ("unmeasured_confounding", "bias_bounds")
    return [hide(name, results.rows(name), 5, **others) for name in tables]


def test_what_is_shared(found):
    results, _ = found
    confounders, bounds = shared(results)
    assert len(confounders) == len(results.rows("unmeasured_confounding"))
    assert len(bounds) == 4
    # Few outcomes of one arm hide the E-values, and what depends on the same numbers.
    confounders, bounds = shared(results, main={"target_outcomes": 3})
    assert not confounders
    assert [row.e_value for row in bounds] == [None] * 4
    assert bounds[0].limit_lower is not None
    # Few outcomes in all hide the effect.
    few = {"target_outcomes": 1, "comparator_outcomes": 2}
    confounders, bounds = shared(results, main=few)
    assert not confounders
    assert not bounds
    # A control whose effect is hidden would be the end of the range.
    confounders, bounds = shared(results, control=few)
    assert confounders
    assert [row.basis for row in bounds] == ["null", "null"]


def test_an_interval_that_contains_1_and_a_ratio_below_1(tmp_path):
    columns = people()
    columns["drug"] = 1 - columns["drug"]
    outcomes = {
        "death": {"time": "death_days", "event": "death_event"},
        "nothing": {"time": "c0_days", "event": "c0_event"},
    }
    data = content()["data"] | {"covariates": {"columns": ["age"]}}
    given = {"outcomes": outcomes, "data": data, "diagnostics": LOOSE}
    results = run(tmp_path, columns, analyses={"a": {"weight": {"estimand": "ato"}}}, **given)
    path = rs.report.write(tmp_path / "out", tmp_path / "report.html", blind=False)
    parts = json.loads(path.with_suffix(".json").read_text("utf-8"))["parts"]
    for part, outcome in zip(parts, outcomes, strict=True):
        (main,) = results.rows("estimates", role="main", outcome=outcome)
        own = part["unmeasured"]
        assert own["observed"]["ratio"] < 1
        is_inside = main["hr_upper"] >= 1
        assert (own["observed"]["limit"] == 1) == is_inside
        rows = own["tables"]["tipping"]
        assert all(r["comparator_prevalence"] > r["target_prevalence"]
                   for r in rows if r["kind"] == "binary")  # fmt: skip
        assert all(row["difference"] < 0 for row in rows if row["kind"] == "normal")
        if is_inside:
            assert {row["tipping_effect"] for row in rows} == {1.0}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"prevalences": [0.1]}, "a binary confounder needs two"),
        ({"prevalences": [0.1, 0.2, 0.1]}, "`prevalences` has the same number twice"),
        ({"effects": [2, 2.0]}, "`effects` has the same number twice"),
    ],
)
def test_confounders_that_are_none_or_twice_are_refused(tmp_path, asked, words):
    with pytest.raises(rs.InputError, match=words):
        rs.study.Study(content(unmeasured=asked), tmp_path)


def test_no_binary_confounder_may_be_asked_for(tmp_path):
    rs.study.Study(content(unmeasured={"prevalences": []}), tmp_path)
