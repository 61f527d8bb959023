"""Studies of a table with categories: the verdict and every table know all levels."""

import numpy as np
import pyarrow as pa
import pytest

import riskset as rs
from study.small import people, run

COUNTS = {1: [1200, 700, 700, 700, 700], 0: [1000, 750, 750, 750, 750]}
"""People of levels a to e in each arm: only the first level differs by more than 0.1."""

WEIGHTED = {
    "data": {"people": "people.parquet", "treatment": "drug", "id": "id", "score": "ps"},
    "analyses": {"weighted": {"weight": {"estimand": "ato"}}},
}


def first_level_differs():
    drug = np.repeat([1, 0], [sum(COUNTS[1]), sum(COUNTS[0])])
    levels = [level for arm in (1, 0) for level in np.repeat(list("abcde"), COUNTS[arm])]
    columns = people(drug.size)
    del columns["x"]
    rng = np.random.default_rng(3)
    age = np.concatenate([rng.permutation(np.arange(n) % 40 + 40) for n in (4000, 4000)])
    return columns | {"drug": drug, "g": levels, "age": age, "ps": np.full(drug.size, 0.5)}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    sections = [
        {"section": "Group", "covariates": ["g=*"]},
        {"section": "Others", "covariates": ["age"]},
    ]
    return run(
        tmp_path_factory.mktemp("levels"),
        first_level_differs(),
        **WEIGHTED,
        table1=sections,
    )


def smd(p1, p0, n):
    spread = [p * (1 - p) * n / (n - 1) for p in (p1, p0)]
    return (p1 - p0) / np.sqrt(sum(spread) / 2)


def test_the_first_level_decides_about_the_verdict(found):
    (balance,) = found.rows("diagnostics", name="balance")
    assert balance["value"] == pytest.approx(smd(0.3, 0.25, 4000), abs=1e-12)
    assert round(balance["value"], 3) == 0.112
    assert balance["verdict"] == "fail"
    (made,) = found.rows("adjustments")
    assert (made["after_worst"], made["after_above"], made["n_covariates"]) == ("g=a", 1, 6)


def test_the_balance_has_every_level_and_says_what_belongs_together(found):
    rows = {row["name"]: row for row in found.rows("balance")}
    assert set(rows) == {"g=a", "g=b", "g=c", "g=d", "g=e", "age"}
    for k, level in enumerate("abcde"):
        row = rows[f"g={level}"]
        assert [row["before_count_target"], row["before_count_comparator"]] == [
            COUNTS[1][k],
            COUNTS[0][k],
        ]
        p1, p0 = COUNTS[1][k] / 4000, COUNTS[0][k] / 4000
        assert row["before_smd"] == pytest.approx(smd(p1, p0, 4000), abs=1e-12)
        assert row["category"] == 1
        assert row["generalisability_both"] == 0.0
    assert rows["age"]["category"] is None


def test_a_pattern_means_every_level_in_order(found):
    rows = found.rows("table1")
    assert [(row["section"], row["kind"], row["label"]) for row in rows] == [
        (None, "people", ""),
        ("Group", "category", "g"),
        *(("Group", "level", level) for level in "abcde"),
        ("Others", "mean", "age"),
    ]
    levels = rows[2:7]
    assert [row["before_target"] for row in levels] == [0.3, 0.175, 0.175, 0.175, 0.175]
    assert [row["before_target_count"] for row in levels] == COUNTS[1]


def with_rare_first_level(n=400):
    columns = people(n)
    rng = np.random.default_rng(8)
    columns["g"] = np.where(np.arange(n) < 12, "a", rng.choice(["b", "c", "d"], n))
    return columns


FITTED = {"match": {}, "tidy": {"min_count": 20}}


def test_min_count_leaves_the_first_level_out_as_any_other(tmp_path):
    found = run(tmp_path, with_rare_first_level(), analyses={"m": FITTED})
    (score,) = found.rows("ps")
    assert score["removed_rare"] == 1
    # x, age, and of the levels left all but the first.
    assert score["n_covariates"] == 4
    assert {row["name"] for row in found.rows("balance")} >= {"g=a", "g=b", "g=c", "g=d"}


def test_a_level_that_is_excluded_does_not_follow_from_the_others(tmp_path):
    for k, name in enumerate(("g=a", "g=b")):
        folder = tmp_path / str(k)
        folder.mkdir()
        propensity = {"penalty": "none", "cross_validate": False, "exclude": [name]}
        analyses = {"m": {"match": {}, "propensity": propensity}}
        found = run(folder, with_rare_first_level(), analyses=analyses)
        (score,) = found.rows("ps")
        # x, age, g=c and g=d: that or the other of g=a and g=b goes, too.
        assert score["n_covariates"] == 4
        names = {row["name"] for row in found.rows("ps_coefficients")}
        assert names == {"x", "age", "g=c", "g=d"}


def test_the_outcome_model_leaves_the_first_level_out(tmp_path):
    model = {"covariates": "all", "strength": 2.0}
    found = run(tmp_path, with_rare_first_level(), analyses={"m": {"match": {}, "model": model}})
    for row in found.rows("estimates", role="main"):
        assert row["status"] == "ok"
        assert row["n_covariates"] == 5
    assert not {"g=a"} & {row["name"] for row in found.rows("outcome_coefficients")}


def test_a_variable_may_be_the_first_level(tmp_path):
    found = run(
        tmp_path,
        with_rare_first_level(),
        variables={"first": {"covariate": "g=a"}},
        subgroups={"first": {"column": "first"}},
    )
    rows = found.rows("estimates", role="subgroup")
    assert {row["level"] for row in rows} == {"yes", "no"}


def test_levels_have_the_declared_order_after_the_reference(tmp_path):
    columns = people(600)
    sizes = np.random.default_rng(4).integers(0, 3, 600)
    columns["size"] = pa.DictionaryArray.from_arrays(sizes, ["small", "medium", "large"])

    def names(folder, **covariates):
        folder.mkdir()
        data = {"people": "people.parquet", "treatment": "drug", "id": "id"}
        found = run(folder, columns, data=data | {"covariates": covariates})
        rows = found.rows("balance")
        return [row["name"] for row in rows if row["name"].startswith("size=")]

    declared = ["size=small", "size=medium", "size=large"]
    assert names(tmp_path / "declared") == declared
    chosen = names(tmp_path / "chosen", reference={"size": "large"})
    assert chosen == ["size=large", "size=small", "size=medium"]
    with pytest.raises(rs.InputError, match="data.covariates.reference: .*column 'sise'"):
        names(tmp_path / "absent", reference={"sise": "large"})
    with pytest.raises(rs.InputError, match="level 'huge' was not found in column 'size'"):
        names(tmp_path / "wrong", reference={"size": "huge"})


def test_missing_values_have_indicators_in_the_balance_and_the_score(tmp_path):
    columns = people(400)
    age = pa.array([None if k % 10 == 0 else int(a) for k, a in enumerate(columns["age"])])
    data = {"people": "people.parquet", "treatment": "drug", "id": "id"}
    data["covariates"] = {"missing": "indicator"}
    found = run(tmp_path, columns | {"age": age}, data=data)
    rows = {row["name"]: row for row in found.rows("balance")}
    assert set(rows) == {"x", "age", "age=(missing)"}
    shares = [row["before_mean_target"] for row in [rows["age=(missing)"]]]
    treated = columns["drug"] == 1
    assert shares == pytest.approx([(treated & (np.arange(400) % 10 == 0)).sum() / treated.sum()])
    assert {row["name"] for row in found.rows("ps_coefficients")} >= {"age=(missing)"}
    (note,) = found.rows("warnings", code="missing_values")
    assert note["message"].startswith("column 'age' of people.parquet has no value in 40 rows")
