"""The effect of a study in stretches of time, and when it is withheld."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from study.small import content, people

MODEL = {"model": {"reading": "marginal"}}


def both(folder, columns, **changes):
    pq.write_table(pa.table(columns), folder / "people.parquet")
    made = content(**({"analyses": {"crude": MODEL}} | changes))
    rs.study.run(rs.study.Study(made, folder), folder / "out")
    return [rs.study.StudyResults.open(folder / "out" / name) for name in ("results", "private")]


def changing(n=300):
    """The treatment harms in the first 100 days and protects later; everybody dies."""
    found = people(n)
    rng = np.random.default_rng(1)
    found["drug"] = np.arange(n) % 2
    early = rng.exponential(100 / np.where(found["drug"] == 1, 2.0, 0.5))
    late = 100 + rng.exponential(100 / np.where(found["drug"] == 1, 0.5, 2.0))
    found["days"] = np.ceil(np.where(early < 100, early, late)).astype(int)
    found["died"] = np.ones(n, dtype=int)
    return found


def test_intervals_with_equal_numbers_of_outcomes(tmp_path):
    columns = changing()
    shared, private = both(tmp_path, columns, sharing={"blind": False})
    rows = private.rows("effect_over_time")
    assert [r["interval"] for r in rows] == [1, 2, 3, 4, 5, 6]
    assert rows[0]["start"] == 0
    assert [r["start"] for r in rows[1:]] == [r["end"] for r in rows[:-1]]
    assert rows[-1]["end"] == columns["days"].max()
    for row in rows:
        inside = (columns["days"] > row["start"]) & (columns["days"] <= row["end"])
        for arm, drug in (("target", 1), ("comparator", 0)):
            assert row[f"{arm}_outcomes"] == np.sum(inside & (columns["drug"] == drug))
        assert row["hr"] == pytest.approx(np.exp(row["log_hr"]))
        assert row["hr_upper"] == pytest.approx(row["hr"] * np.exp(1.959964 * row["se"]), rel=1e-6)
    assert rows[0]["hr_lower"] > 1 > rows[-1]["hr_upper"]
    (main,) = private.rows("estimates", role="main")
    mean = np.average([r["log_hr"] for r in rows], weights=[r["se"] ** -2 for r in rows])
    assert mean == pytest.approx(main["log_hr"], abs=1e-8)
    assert shared.rows("effect_over_time") == rows


def test_an_interval_with_few_outcomes_of_an_arm_hides_them_all(tmp_path):
    """The others and the constant ratio would tell the one that is hidden."""
    columns = changing()
    late = np.flatnonzero((columns["days"] > 100) & (columns["drug"] == 1))
    columns["died"][late[3:]] = 0
    shared, private = both(tmp_path, columns, sharing={"blind": False})
    counts = [r["target_outcomes"] for r in private.rows("effect_over_time")]
    assert min(n for n in counts if n) < 5
    assert shared.rows("effect_over_time") == []
    assert shared.rows("estimates", role="main")[0]["hr"] is not None
    made = rs.report.write(private.path, tmp_path / "page.html", blind=False)
    assert repr(private.rows("effect_over_time")[0]["hr"]) not in (
        made.with_suffix(".json").read_text()
    )


def test_it_is_withheld_with_the_effect(tmp_path):
    shared, private = both(tmp_path, changing(), diagnostics={"max_smd": 1e-9})
    assert private.rows("effect_over_time")
    assert shared.rows("effect_over_time") == []
    made = rs.report.write(private.path, tmp_path / "page.html", blind=True, min_cell_count=0)
    text = made.with_suffix(".json").read_text()
    assert repr(private.rows("effect_over_time")[0]["hr"]) not in text


def test_robust_errors_where_the_estimate_has_them(tmp_path):
    columns = changing()
    analyses = {"weighted": {"weight": {"estimand": "ate"}}, "crude": MODEL}
    _, private = both(tmp_path, columns, analyses=analyses, sharing={"blind": False})
    x, y = columns["drug"][:, None].astype(float), rs.Surv(columns["days"], columns["died"])
    for name in analyses:
        rows = private.rows("effect_over_time", analysis=name)
        (main,) = private.rows("estimates", analysis=name, role="main")
        assert main["interval"] == {"weighted": "robust", "crude": "profile"}[name]
        assert len(rows) == 6
    model = rs.Cox().fit(x, y)
    # Of information, the whole is the sum of the parts.
    errors = np.array([r["se"] for r in rows])
    assert 1 / np.sqrt(np.sum(errors**-2.0)) == pytest.approx(model.standard_error_[0], rel=1e-6)
