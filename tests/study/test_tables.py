"""Tables of people: wide and long covariates, several arms, and rows in any order."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from parameters import rest_is_slow
from study.small import content, people, run

EFFECT = ("log_hr", "se", "target_persons", "comparator_outcomes")
LONG = {"people": "people.parquet", "treatment": "drug", "id": "id"}


def main(found, **names):
    return [
        {name: row[name] for name in EFFECT}
        for row in found.rows("estimates", role="main", **names)
    ]


@pytest.mark.parametrize("as_design", rest_is_slow([True, False], 1))
def test_long_covariates_are_as_wide_ones(tmp_path, as_design):
    columns = people(300)
    (tmp_path / "wide").mkdir()
    wide = run(tmp_path / "wide", columns)
    place = tmp_path / "long"
    place.mkdir()
    x = np.column_stack([columns["x"], columns["age"]]).astype(float)
    if as_design:
        name = "covariates.rsd"
        rs.Design.from_dense(x, ["x", "age"]).save(place / name, row_keys=columns["id"])
    else:
        name = "covariates.parquet"
        row, column = np.nonzero(x)
        long = {
            "rowId": columns["id"][row],
            "covariateId": np.array(["x", "age"])[column],
            "covariateValue": x[row, column],
        }
        pq.write_table(pa.table(long), place / name)
    own = {name: columns[name] for name in ("id", "drug", "days", "died")}
    found = run(place, own, data=LONG | {"covariates": {"table": name}})
    for one, other in zip(main(found), main(wide), strict=True):
        assert one == pytest.approx(other, rel=1e-9)
    coefs = [{r["name"]: r["coef"] for r in f.rows("ps_coefficients")} for f in (found, wide)]
    assert coefs[0] == pytest.approx(coefs[1], rel=1e-6)
    files = {source["name"]: source["rows"] for source in found.study["data"]["sources"]}
    assert files == {"people.parquet": 300, name: None}


def test_the_order_of_rows_does_not_matter(tmp_path):
    columns = people(300)
    order = np.random.default_rng(3).permutation(300)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    analyses = {"matched": {"match": {"ratio": 3}}, "strata": {"stratify": {"k": 3}}}
    one = run(tmp_path / "a", columns, analyses=analyses)
    other = run(tmp_path / "b", {k: v[order] for k, v in columns.items()}, analyses=analyses)
    for a, b in zip(main(one), main(other), strict=True):
        assert a == pytest.approx(b, rel=1e-9)


def test_three_arms_make_two_comparisons(tmp_path):
    columns = people(450)
    columns["drug"] = np.array(["a", "b", "c"])[np.arange(450) % 3]
    exposures = {name: {"value": name} for name in "abc"}
    pairs = [{"target": "a", "comparator": "c"}, {"target": "b", "comparator": "c"}]
    found = run(tmp_path, columns, exposures=exposures, comparisons=pairs)
    for target in "ab":
        (row,) = found.rows("arms", target=target, side="before")
        assert row["target_persons"] == row["comparator_persons"] == 150
        own = columns["died"][columns["drug"] == target].sum()
        assert row["target_outcomes"] == own
    assert [row["ps"] for row in found.rows("runs")] == [1, 2]
    assert found.study["targets"].keys() == {"a", "b"}


def test_true_and_false_are_treatments(tmp_path):
    columns = people()
    columns["drug"] = columns["drug"] == 1
    found = run(tmp_path, columns, exposures={"new": {"value": "true"}, "old": {"value": 0}})
    (row,) = found.rows("arms", side="before")
    assert row["target_persons"] == columns["drug"].sum()


def test_people_who_enter_twice_are_clusters(tmp_path):
    columns = people(300)
    columns["who"] = np.repeat(np.arange(150), 2)
    data = LONG | {"person": "who", "covariates": {"columns": ["x", "age"]}}
    found = run(tmp_path, columns, data=data, analyses={"crude": {}})
    (row,) = found.rows("estimates", role="main")
    assert row["target_exposures"] == columns["drug"].sum()
    assert row["target_persons"] == np.unique(columns["who"][columns["drug"] == 1]).size
    assert row["interval"] == "robust"


def test_a_table_with_competing_events_and_reasons(tmp_path):
    columns = people(300)
    columns["died"] = np.arange(300) % 3
    columns["why"] = np.array(["moved", "event", "other event"])[columns["died"]]
    outcomes = {"death": {"time": "days", "event": "died", "end_reason": "why"}}
    analyses = {"crude": {"model": {"also": ["finegray", "cause-specific"]}}}
    found = run(tmp_path, columns, outcomes=outcomes, analyses=analyses, competing="Transplant")
    kinds = {(row["role"], row["model"]) for row in found.rows("estimates")}
    assert kinds >= {("main", "cox"), ("model", "finegray"), ("model", "cause-specific")}
    assert {row["cause"] for row in found.rows("curves")} == {1, 2}
    ends = {row["reason"]: row["count"] for row in found.rows("follow_up_ends", arm="target")}
    assert sum(ends.values()) == columns["drug"].sum()
    assert ends["moved"] == ((columns["died"] == 0) & (columns["drug"] == 1)).sum()
    assert found.study["competing"] == "Transplant"


def test_ids_and_scores_are_told_by_the_names_of_their_columns(tmp_path):
    columns = people()
    columns["id"][7] = columns["id"][3]
    with pytest.raises(
        rs.InputError, match="column 'id' of people.parquet must hold a different id"
    ) as e:
        run(tmp_path, columns)
    assert "1 row does not (first: data row 8, id 13, value 13)" in str(e.value)
    columns = people()
    columns["ps"] = np.where(columns["id"] == 40, 1.5, 0.5)
    with pytest.raises(
        rs.InputError, match="column 'ps' of people.parquet must hold probabil"
    ) as e:
        run(tmp_path, columns, data=LONG | {"score": "ps", "covariates": {"columns": ["x"]}})
    assert "(first: data row 31, id 40, value 1.5)" in str(e.value)


def test_reasons_are_in_keys_and_not_in_arguments_of_python(tmp_path):
    columns = people()
    columns["same"] = columns["drug"]
    model = {"penalty": "l2", "cross_validate": False, "strength": 1}
    found = run(tmp_path, columns, defaults={"propensity": model})
    (row,) = found.rows("runs")
    assert row["status"] == "high_correlation"
    assert "on_high_correlation: exclude" in row["reason"]
    assert "='" not in row["reason"]


def test_columns_that_are_absent_have_their_line(tmp_path):
    pq.write_table(pa.table(people()), tmp_path / "people.parquet")
    study = rs.study.Study(content(outcomes={"death": {"time": "days", "event": "dead"}}), tmp_path)
    with pytest.raises(rs.InputError, match=r"outcomes.death.event: column 'dead' was not found"):
        rs.study.run(study, tmp_path / "out")
    data = {"people": "people.parquet", "treatment": "drug"}
    data["covariates"] = {"table": "people.parquet"}
    study = rs.study.Study(content(data=data), tmp_path)
    with pytest.raises(rs.InputError, match=r"data.covariates.table: a long table needs the key"):
        rs.study.check_data(study)
