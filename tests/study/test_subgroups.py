"""Effects at the levels of a variable: which model they are of, and who is in it."""

import numpy as np
import pyarrow as pa
import pytest

import riskset as rs
from study.small import people, run

ANALYSES = {"crude": {}}


def data(n=500, seed=3):
    columns = people(n, seed)
    columns["group"] = np.array(["a", "b", "c"])[np.arange(n) % 3]
    return columns


def levels(found, **names):
    return {r["level"]: r for r in found.rows("estimates", role="subgroup", **names)}


def surv(columns, rows=slice(None)):
    return rs.Surv(columns["days"][rows].astype(float), columns["died"][rows])


def by_level(columns, names, **more):
    """Columns of a model in which each level has a treatment of its own."""
    return {
        **{f"drug in {g}": columns["drug"] * (columns["group"] == g) * 1.0 for g in names},
        **{g: (columns["group"] == g) * 1.0 for g in names[1:]},
        **more,
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    analyses = ANALYSES | {"adjusted": {"model": {"covariates": "all", "strength": 4.0}}}
    subgroups = {"g": {"column": "group"}}
    return run(tmp_path_factory.mktemp("g"), data(), analyses=analyses, subgroups=subgroups)


def test_levels_are_of_one_model_with_a_treatment_of_each(found):
    columns = data()
    own = by_level(columns, ["a", "b", "c"])
    fitted = rs.Cox().fit(rs.Design.from_columns(own), surv(columns))
    for k, (level, row) in enumerate(levels(found, analysis="crude").items()):
        assert level == "abc"[k]
        assert row["log_hr"] == pytest.approx(fitted.coef_[k], abs=1e-6)
        assert row["n_covariates"] == 0
        assert row["l1"] is None


def test_covariates_of_the_main_estimate_are_in_it_with_its_penalty(found):
    """The same model by other columns: only age and x, which are scaled, have a penalty."""
    columns = data()
    scaled = {name: columns[name] / columns[name].max() for name in ("x", "age")}
    own = by_level(columns, ["a", "b", "c"], **scaled)
    free = [name for name in own if name not in scaled]
    model = rs.Cox(rs.L1(4.0, unpenalized=free), tol=1e-10)
    fitted = model.fit(rs.Design.from_columns(own), surv(columns))
    ends = model.confidence_interval([f"drug in {g}" for g in "abc"], method="profile")
    rows = levels(found, analysis="adjusted")
    (main,) = found.rows("estimates", analysis="adjusted", role="main")
    for k, (level, row) in enumerate(rows.items()):
        assert row["log_hr"] == pytest.approx(fitted.coef_[k], abs=1e-6)
        expected = np.exp(ends[f"drug in {level}"])
        assert [row["hr_lower"], row["hr_upper"]] == pytest.approx(expected, rel=1e-5)
        assert (row["interval"], row["l1"]) == ("profile", 4.0)
        assert row["n_covariates"] == main["n_covariates"] > 0
    crude = levels(found, analysis="crude")
    assert all(abs(rows[g]["log_hr"] - crude[g]["log_hr"]) > 1e-4 for g in "abc")


def test_a_first_level_without_outcomes_in_an_arm_does_not_stand_for_all(tmp_path):
    columns = data()
    first = columns["group"] == "a"
    columns["died"] = np.where(first & (columns["drug"] == 1), 0, columns["died"])
    found = run(tmp_path, columns, analyses=ANALYSES, subgroups={"g": {"column": "group"}})
    rows = levels(found)
    assert (rows["a"]["status"], rows["a"]["log_hr"]) == ("events_in_one_arm", None)
    assert rows["a"]["target_outcomes"] == 0 < rows["a"]["comparator_outcomes"]
    others = {name: values[~first] for name, values in columns.items()}
    own = rs.Design.from_columns(by_level(others, ["b", "c"]))
    fitted = rs.Cox().fit(own, surv(others))
    assert rows["b"]["log_hr"] == pytest.approx(fitted.coef_[0], abs=1e-6)
    assert rows["c"]["log_hr"] == pytest.approx(fitted.coef_[1], abs=1e-6)
    assert rows["b"]["interaction_p"] == rows["c"]["interaction_p"] > 0


def test_one_level_with_an_estimate_is_by_itself(tmp_path):
    columns = data()
    columns["died"] = np.where(columns["group"] == "c", columns["died"], 0)
    found = run(tmp_path, columns, analyses=ANALYSES, subgroups={"g": {"column": "group"}})
    rows = levels(found)
    assert [rows[g]["status"] for g in "abc"] == ["no_events", "no_events", "ok"]
    last = columns["group"] == "c"
    fitted = rs.Cox().fit(columns["drug"][last][:, None].astype(float), surv(columns, last))
    assert rows["c"]["log_hr"] == pytest.approx(fitted.coef_[0], abs=1e-6)
    assert rows["c"]["interaction_p"] is None


def test_levels_have_the_order_that_their_type_declares(tmp_path):
    columns = people(300)
    place = pa.array(np.arange(300) % 3)
    columns["stage"] = pa.DictionaryArray.from_arrays(place, pa.array(["low", "mid", "high"]))
    found = run(tmp_path, columns, subgroups={"stage": {"column": "stage"}})
    rows = found.rows("estimates", role="subgroup")
    assert [row["level"] for row in rows] == ["low", "mid", "high"]
    assert rows[0]["interaction_p"] is None or len({row["interaction_p"] for row in rows}) == 1
    levels = [row["level"] for row in found.rows("subgroup_balance")]
    assert list(dict.fromkeys(levels)) == ["low", "mid", "high"]
