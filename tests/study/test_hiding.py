"""What may be shared: small counts and withheld effects are in the private tables alone."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import riskset as rs
from riskset.study.hiding import hide
from study.small import content, people


def both(folder, columns, **changes):
    pq.write_table(pa.table(columns), folder / "people.parquet")
    found = rs.study.run(rs.study.Study(content(**changes), folder), folder / "out")
    return found, rs.study.StudyResults.open(folder / "out" / "private")


def test_few_outcomes_are_hidden_with_what_tells_them(tmp_path):
    columns = people()
    columns["died"] = np.zeros(200, dtype=int)
    columns["died"][np.flatnonzero(columns["drug"] == 1)[:3]] = 1
    columns["died"][np.flatnonzero(columns["drug"] == 0)[:9]] = 1
    shared, private = both(tmp_path, columns, analyses={"crude": {}}, sharing={"blind": False})
    (own,) = private.rows("estimates", role="main")
    (row,) = shared.rows("estimates", role="main")
    assert own["target_outcomes"] == 3
    assert row["comparator_outcomes"] == own["comparator_outcomes"] == 9
    for name in ("target_outcomes", "target_rate", "target_rate_upper", "mdrr", "expected_se"):
        assert row[name] is None
        assert name in row["suppressed"].split(", ")
    assert row["hr"] == own["hr"]
    (ends,) = shared.rows("follow_up_ends", arm="target", reason="outcome")
    assert (ends["count"], ends["suppressed"]) == (None, "count")
    # The other reason would give it away by the total.
    (others,) = shared.rows("follow_up_ends", arm="target", reason="end of follow-up")
    assert others["count"] is None


def test_effects_that_fail_diagnostics_are_withheld(tmp_path):
    columns = people()
    limits = {"max_smd": 1e-9}
    shared, private = both(tmp_path, columns, diagnostics=limits)
    (run,) = shared.rows("runs")
    assert (run["unblind"], run["blinded"]) == (False, True)
    rows = shared.rows("estimates")
    assert rows
    assert all(row["hr"] is None and row["p"] is None and row["blinded"] for row in rows)
    assert all(row["target_outcomes"] is not None for row in rows)
    assert shared.rows("curves") == []
    assert all(
        row["target_risk"] is row["difference"] is None for row in shared.rows("absolute_risks")
    )
    assert all(row["hr"] is not None for row in private.rows("estimates"))
    assert private.rows("curves")


def test_bars_with_few_people_are_joined():
    def bar(k, count, kept):
        own = {"adjustment": 1, "arm": "target", "lower": k / 100, "upper": (k + 1) / 100}
        return own | {"count": count, "kept": kept, "weight": float(kept)}

    bars = [bar(0, 10, 10), bar(1, 7, 5), bar(2, 6, 2), bar(3, 0, 0), bar(4, 8, 8), bar(5, 2, 2)]
    found = list(hide("preference", bars, 5))
    # 1 and 2 together: 7 kept, 6 gone. The last joins the one before it.
    assert [(b["lower"], b["upper"], b["count"], b["kept"]) for b in found] == [
        (0.0, 0.01, 10, 10),
        (0.01, 0.03, 13, 7),
        (0.03, 0.04, 0, 0),
        (0.04, 0.06, 10, 10),
    ]
    (alone,) = hide("preference", [bar(0, 3, 3)], 5)
    assert alone["count"] is None
    assert alone["suppressed"] == "count, kept, weight"


def test_curves_end_where_an_arm_has_few_people(tmp_path):
    shared, private = both(tmp_path, people(60), sharing={"blind": False, "min_cell_count": 10})
    ends = [r.rows("curves", adjusted=True, arm="target")[-1]["time"] for r in (shared, private)]
    assert ends[0] < ends[1]
    at = [r for r in private.rows("numbers_at_risk", adjusted=True) if r["people"] < 10]
    assert at
    for row in at:
        names = {name: row[name] for name in ("arm", "time", "adjusted")}
        (hidden,) = shared.rows("numbers_at_risk", **names)
        assert row["people"] == 0 or hidden["people"] is hidden["weighted"] is None
