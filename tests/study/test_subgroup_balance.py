"""Balance within subgroups reaches results and report; small counts hide all levels."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from riskset.disclosure.engine import Disclosure
from riskset.results.rows import TABLES, SubgroupBalanceRow


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    rng = np.random.default_rng(8)
    n = 500
    sex = rng.random(n) < 0.5
    ill, rare = rng.random(n) < 0.3, np.zeros(n, dtype=bool)
    rare[np.flatnonzero(sex)[:3]] = True  # few, and of one level alone
    rare[np.flatnonzero(~sex)[:80]] = True
    treated = rng.random(n) < np.where(ill & sex, 0.7, 0.4)
    columns = {
        "drug": treated.astype(int),
        "sex": np.where(sex, "female", "male"),
        "ill": ill.astype(int),
        "rare": rare.astype(int),
        "days": rng.integers(1, 400, n),
        "event": (rng.random(n) < 0.3).astype(int),
    }
    folder = tmp_path_factory.mktemp("within")
    pq.write_table(pa.table(columns), folder / "people.parquet")
    specification = {
        "title": "Levels",
        "data": {"people": "people.parquet", "treatment": "drug",
                 "covariates": {"columns": ["ill", "rare"]}},
        "exposures": {"a": {"value": "1"}, "b": {"value": "0"}},
        "comparisons": [{"target": "a", "comparator": "b"}],
        "outcomes": {"o": {"time": "days", "event": "event"}},
        "subgroups": {"sex": {"column": "sex", "label": "Sex"}},
        "analyses": {"plain": {"propensity": None}},
        "sharing": {"blind": False},
    }  # fmt: skip
    rs.study.run(rs.study.Study(specification, folder), folder / "out")
    return folder / "out", columns


def test_differences_in_levels(out):
    """The difference of the shares over the root of the mean of both variances."""
    folder, columns = out
    rows = rs.study.StudyResults.open(folder / "private").read(SubgroupBalanceRow)
    assert {(row.subgroup, row.level) for row in rows} == {("sex", "female"), ("sex", "male")}
    for row in rows:
        inside = columns["sex"] == row.level
        arms = [columns[row.name][inside & (columns["drug"] == k)] for k in (1, 0)]
        unit = np.sqrt((arms[0].var(ddof=1) + arms[1].var(ddof=1)) / 2)
        expected = (arms[0].mean() - arms[1].mean()) / unit
        assert row.before_smd == pytest.approx(expected, rel=1e-9)
        assert row.after_smd == pytest.approx(row.before_smd)


def test_few_people_of_a_level_hide_all_levels(out):
    folder, columns = out
    private = rs.study.StudyResults.open(folder / "private")
    rows = private.read(SubgroupBalanceRow)
    assert min(row.fewest for row in rows if row.name == "rare") < 5
    shared = rs.study.StudyResults.open(folder / "results").read(SubgroupBalanceRow)
    assert len(shared) == len(rows)
    for row in shared:
        assert (row.after_smd is None) == (row.name == "rare")
        assert row.fewest is None
    again = Disclosure(private.rows, TABLES, 5).shown(SubgroupBalanceRow)
    assert [dict(row) for row in again] == [dict(row) for row in shared]


def test_the_report_has_a_row_of_each_level(out):
    folder, _ = out
    path = rs.report.write(folder / "results", folder / "own.html")
    text = path.read_text("utf-8")
    assert "Balance within subgroups" in text
    assert text.count('data-table="parts/0/balance/tables/subgroups"') == 1


def test_results_of_earlier_versions_have_none(out, tmp_path):
    import json
    import shutil

    from riskset.data.documents import SEAL, sealed
    from riskset.data.writers import write_json

    shutil.copytree(out[0] / "results", tmp_path / "results")
    document = json.loads((tmp_path / "results/study.json").read_text("utf-8"))
    del document["tables"]["subgroup_balance"], document[SEAL]
    write_json(tmp_path / "results/study.json", sealed(document))
    (tmp_path / "results/subgroup_balance.parquet").unlink()
    opened = rs.study.StudyResults.open(tmp_path / "results")
    assert opened.rows("subgroup_balance") == []
    assert "Balance within subgroups" not in rs.report.write(
        opened, tmp_path / "report.html"
    ).read_text("utf-8")
