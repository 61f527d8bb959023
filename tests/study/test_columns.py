"""Names of columns of a long table, and causes as text, as in `fit` and `read_dataset`."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from study.small import content, people, run

COLUMNS = people()
END = np.array(["home", "death", "transfer"])[np.random.default_rng(5).integers(0, 3, 200)]
CODES = np.where(END == "home", 0, np.where(END == "death", 1, 2))
SUBDISTRIBUTION = {"matched": {"match": {}, "model": {"kind": "finegray"}}}


def main_row(results):
    (row,) = results.rows("estimates", role="main")
    return row


def of_death(folder, event, **keys):
    outcome = {"time": "days", "event": "end"} | keys
    folder.mkdir()
    found = run(
        folder,
        COLUMNS | {"end": event},
        outcomes={"death": outcome},
        analyses=SUBDISTRIBUTION,
        data={"people": "people.parquet", "treatment": "drug", "id": "id"}
        | {"covariates": {"columns": ["x", "age"]}},
    )
    return main_row(found)


def test_text_causes_are_those_of_codes(tmp_path):
    expected = of_death(tmp_path / "codes", CODES)
    assert expected["status"] == "ok"
    found = of_death(tmp_path / "text", END, cause="death", censored="home")
    other = of_death(tmp_path / "other", np.where(CODES == 2, 1, 2 * CODES), cause=2)
    for one in (found, other):
        assert one["log_hr"] == expected["log_hr"]
        assert one["se"] == expected["se"]


@pytest.mark.parametrize(
    ("event", "keys", "words"),
    [
        (END, {"cause": "death"}, "not known which of them means censored"),
        (END, {"censored": "home"}, "does not name the one to study"),
        (END, {"censored": "home", "cause": "deth"}, "must be a label of the events"),
        (END, {"censored": "alive", "cause": "death"}, "never holds the label of censoring"),
        (CODES, {"censored": "home"}, "holds numbers"),
        (CODES + 1, {}, "must hold 0, 1 or 2"),
    ],
)
def test_causes_that_cannot_be_read(tmp_path, event, keys, words):
    pq.write_table(pa.table(COLUMNS | {"end": event}), tmp_path / "people.parquet")
    outcomes = {"death": {"time": "days", "event": "end"} | keys}
    study = rs.study.Study(content(outcomes=outcomes), tmp_path)
    with pytest.raises(rs.InputError, match=words):
        rs.study.check_data(study)


def long_table(names):
    rows = COLUMNS["id"][COLUMNS["x"] == 1]
    values = [rows, np.full(rows.size, 7), np.ones(rows.size)]
    return pa.table(dict(zip(names, values, strict=True)))


def test_names_of_the_columns_of_a_long_table(tmp_path):
    found = []
    for names, key in (
        (("rowId", "covariateId", "covariateValue"), {}),
        (("patient", "code", "size"), {"covariate_columns": ["patient", "code", "size"]}),
    ):
        folder = tmp_path / names[0]
        folder.mkdir()
        pq.write_table(long_table(names), folder / "long.parquet")
        covariates = {"table": "long.parquet"} | key
        data = {"people": "people.parquet", "treatment": "drug", "id": "id"}
        found.append(run(folder, COLUMNS, data=data | {"covariates": covariates}))
    a, b = (main_row(one) for one in found)
    assert a["status"] == "ok"
    assert (a["log_hr"], a["se"]) == (b["log_hr"], b["se"])


def test_names_of_columns_need_a_long_table(tmp_path):
    pq.write_table(pa.table(COLUMNS), tmp_path / "people.parquet")
    data = content()["data"] | {"covariates": {"covariate_columns": ["a", "b"]}}
    with pytest.raises(rs.InputError, match="but there is none"):
        rs.study.check_data(rs.study.Study(content(data=data), tmp_path))


def test_a_study_without_a_penalty_needs_one_key(tmp_path):
    analyses = {"matched": {"match": {}, "propensity": {"penalty": "none"}}}
    found = run(tmp_path, COLUMNS, analyses=analyses, defaults={})
    assert main_row(found)["status"] == "ok"
    (row,) = found.rows("ps")
    assert (row["penalty"], row["chosen_by"]) == ("none", "given")
