"""Whoever has the shared results of a study alone cannot work out the counts they hide."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from disclosure.attacks import (
    ARMS,
    CELLS,
    SIDES,
    covariates_found,
    levels_of_subgroups_found,
    near_times_found,
    outcomes_found,
    parts_found,
    steps_found,
)
from gibleed import comparison, needs_gibleed
from study.small import people

LEAST = 5


def simulated(n, seed):
    """People with rare covariates, a covariate that nearly all have, levels of few, and dates."""
    rng = np.random.default_rng(seed + 100)
    columns = {name: values for name, values in people(n, seed).items() if name != "died"} | {
        "event": rng.choice([0, 1, 2], n, p=[0.85, 0.1, 0.05]),
        "start": np.datetime64("2010-01-01") + rng.integers(0, 2000, n),
        "reason": rng.choice(["left", "end of data", "moved"], n, p=[0.4, 0.58, 0.02]),
        "group": rng.choice(["a", "b", "c"], n, p=[0.7, 0.25, 0.05]),
    }
    for k, share in enumerate(np.geomspace(2 / n, 0.1, 12)):
        columns[f"rare{k}"] = (rng.random(n) < share).astype(int)
    for k, share in enumerate((2 / n, 6 / n, 15 / n)):
        columns[f"common{k}"] = (rng.random(n) >= share).astype(int)
    return columns


SPECIFICATION = {
    "title": "Simulated",
    "data": {
        "people": "people.parquet", "treatment": "drug", "id": "id", "index_date": "start",
        "covariates": {"drop": ["reason"]},
    },
    "exposures": {"new": {"value": 1}, "old": {"value": 0}},
    "comparisons": [{"target": "new", "comparator": "old"}],
    "outcomes": {"death": {"time": "days", "event": "event", "end_reason": "reason"}},
    "defaults": {
        "propensity": {"penalty": "l2", "variance": 0.1, "cross_validate": False},
        "model": {"rmst": [100, 102, 108, 300], "standardize": [99, 101, 108, 250]},
    },
    "analyses": {
        "crude": {"propensity": "none"},
        "matched": {"match": {}},
        "weighted": {"weight": {"estimand": "ato"}},
        "by current sd": {"match": {}, "balance": {"sd": "current"}},
    },
    "subgroups": {"group": {"column": "group"}},
    "risk_times": [96, 100, 103, 365],
    "sharing": {"blind": False},
}  # fmt: skip


def run(folder, specification):
    rs.study.run(rs.study.Study(specification, folder), folder / "out")
    return [rs.study.StudyResults.open(folder / "out" / name) for name in ("results", "private")]


@pytest.fixture(scope="module", params=[(250, 1), (1500, 2)], ids=["few", "many"])
def found(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated")
    pq.write_table(pa.table(simulated(*request.param)), folder / "people.parquet")
    return run(folder, SPECIFICATION)


def check_covariates(results, private):
    told, n_hidden = covariates_found(results)
    assert n_hidden > 10, "the data have nothing to hide"
    assert told == []
    # The attack works: with the differences, the small counts come back. Counts that are hidden to
    # protect those of other levels may be large, and it does not try them.
    rows = {}
    for row in private.rows("balance"):
        rows.setdefault(row["adjustment"], []).append(row)
    for number, own in rows.items():
        shown = {r["covariate_id"]: r for r in results.rows("balance", adjustment=number)}
        names = [f"{side}_{word}_{arm}" for side, arm in CELLS for word in ("count", "mean", "sd")]
        rows[number] = [
            row | {name: shown[row["covariate_id"]][name] for name in names} for row in own
        ]
    told, n_hidden = covariates_found(results, rows)
    assert len([t for t in told if len(t) == 4 and isinstance(t[3], np.ndarray)]) > n_hidden / 3


def test_counts_of_covariates_do_not_come_back(found):
    check_covariates(*found)


def test_on_which_side_of_the_limit_a_hidden_difference_is(found):
    results, private = found
    rows = zip(results.rows("balance"), private.rows("balance"), strict=True)
    n_hidden = 0
    for row, own in rows:
        few = [
            is_few(own, side, arm, results)
            for side, arm in CELLS
            if own[f"{side}_count_{arm}"] is not None
        ]
        if any(few):
            n_hidden += 1
            for side in SIDES:
                assert row[f"{side}_smd"] is row[f"{side}_smd_variance"] is row[f"{side}_p"] is None
                assert row[f"{side}_balanced"] == own[f"{side}_balanced"]
            assert row["generalisability_both"] is row["generalisability_target"] is None
            assert "before_smd" in row["suppressed"]
    assert n_hidden > 10


def is_few(own, side, arm, results):
    """Whether few have it, or all but few."""
    (made,) = results.rows("adjustments", adjustment=own["adjustment"])
    first = results.rows("attrition", adjustment=own["adjustment"], number=1)
    n = made[f"{arm}_rows"] if side == "after" else first[0][f"{arm}_exposures"] if first else None
    count = own[f"{side}_count_{arm}"]
    return 0 < count < LEAST or (n is not None and 0 < n - count < LEAST)


def test_summaries_do_not_tell_a_difference_that_is_hidden(found):
    results, private = found
    for made in private.rows("adjustments"):
        (shown,) = results.rows("adjustments", adjustment=made["adjustment"])
        rows = results.rows("balance", adjustment=made["adjustment"])
        for side in SIDES:
            sizes = [abs(r[f"{side}_smd"]) for r in rows if r[f"{side}_smd"] is not None]
            is_shown = any(np.isclose(made[f"{side}_max"], s, rtol=1e-9) for s in sizes)
            assert (shown[f"{side}_max"] is not None) == is_shown
    for check in private.rows("diagnostics", name="balance"):
        keys = {k: check[k] for k in ("target", "comparator", "outcome", "analysis")}
        (run,) = results.rows("runs", **keys)
        (made,) = results.rows("adjustments", adjustment=run["adjustment"])
        (shown,) = results.rows("diagnostics", name="balance", **keys)
        assert shown["verdict"] == check["verdict"]
        assert shown["value"] == (check["value"] if made["after_max"] is not None else None)


def test_outcomes_do_not_come_back(found):
    results, private = found
    assert outcomes_found(results) == []
    # The attack works: rates and the expected error tell every one.
    for name in ("arms", "estimates"):
        rows = results.rows(name)
        hidden = [
            (k, arm)
            for k, row in enumerate(rows)
            for arm in ARMS
            if row[f"{arm}_outcomes"] is None and row[f"{arm}_exposures"] is not None
        ]
        own = private.rows(name)
        rates = [f"{arm}_{word}" for arm in ARMS for word in ("rate", "days")]
        extra = {(name, k): {rate: own[k][rate] for rate in rates} for k, _ in hidden}
        told = [t for t in outcomes_found(results, extra) if t[0] == name]
        assert len(told) == len(hidden)
        assert all(count == own[k][f"{arm}_outcomes"] for _, k, arm, count in told)


def test_curves_have_no_steps_of_few(found):
    results, private = found
    assert results.rows("curves")
    assert steps_found(results, private, LEAST) == []


def test_near_times_do_not_differ_by_few(found):
    """Risks, restricted means, curves and numbers at risk at times that lie close together."""
    results, private = found
    assert any(row["target_risk"] is not None for row in results.rows("absolute_risks"))
    assert any(row["target_mean"] is not None for row in results.rows("restricted_means"))
    assert near_times_found(private, private, LEAST)
    assert near_times_found(results, private, LEAST) == []


def test_parts_of_totals_do_not_come_back(found):
    results, _ = found
    assert parts_found(results, LEAST) == []
    assert levels_of_subgroups_found(results) == []


def test_nobody_stands_alone(found):
    """The ends of follow-up are those of single people, and so is what the smallest counts say."""
    results, private = found
    assert all(r["days"] is None for r in results.rows("follow_up") if r["share"] in (0, 1))
    assert all(r["days"] is not None for r in private.rows("follow_up"))
    for row in results.rows("ps_coefficients"):
        (score,) = results.rows("ps", ps=row["ps"])
        for arm in ARMS:
            share, n = row[f"mean_{arm}"], score[f"n_{arm}"]
            if row["is_binary"] and share is not None and n is not None:
                assert not 0 < round(share * n) < LEAST
                assert not 0 < round((1 - share) * n) < LEAST
            if share is None:
                assert row["coef"] is None


@pytest.mark.slow
@needs_gibleed
def test_counts_of_eunomia_do_not_come_back(tmp_path):
    """GiBleed: from full differences 271 of 271 came back."""
    more = "analyses:\n  matched: {match: {ratio: 100}}\nsharing: {blind: false}\n"
    study = rs.study.Study.parse(comparison() + more, tmp_path)
    rs.study.run(study, tmp_path / "out")
    results, private = (
        rs.study.StudyResults.open(tmp_path / "out" / name) for name in ("results", "private")
    )
    check_covariates(results, private)
    assert outcomes_found(results) == []
    assert steps_found(results, private, LEAST) == []
    assert parts_found(results, LEAST) == []
