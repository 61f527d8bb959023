"""Clones of a grace period with starts at any day, against R's glm, coxph and survfit."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import riskset as rs

GOLDEN = Path(__file__).parents[1] / "golden" / "per_protocol"
EXPECTED = json.loads((GOLDEN / "clones.json").read_text())


def test_clones_are_those_of_glm_and_coxph():
    """Some start within an interval, and on the first or last day of the window."""
    people = pd.read_csv(GOLDEN / "clones.csv")
    names = {"time": "days", "event": "died"}
    rows = rs.split(people, range(15, 240, 15), **names, id=None, episode=None)
    rows = rs.cohort.clone(rows, "start", grace=60, window=30, entry="entry", **names)
    y = rs.Surv(rows["days"], rows["died"], entry=rows["entry"])
    target = (rows["arm"] == 1).to_numpy()
    assert len(rows) == EXPECTED["n_rows"]
    leaves = rows["deviates"].to_numpy()
    assert [leaves[target].sum(), leaves[~target].sum()] == EXPECTED["deviations"]
    found = rs.cohort.censoring_weights(
        y,
        rows["arm"],
        rows[["severity", "age"]],
        person=rows["id"],
        deviates=rows["deviates"],
        at_risk=rows["at_risk"],
        stabilise=False,
        time_df=2,
        tol=1e-11,
    )
    np.testing.assert_allclose(found.weight[target], EXPECTED["target_weight"], rtol=1e-7)
    np.testing.assert_allclose(found.weight[~target], EXPECTED["comparator_weight"], rtol=1e-7)
    estimate = rs.cohort.fit_per_protocol(found)
    assert estimate.log_hr == pytest.approx(EXPECTED["log_hr"], abs=1e-7)
    assert estimate.se == pytest.approx(EXPECTED["robust_se"], rel=1e-6)
    curves = rs.kaplan_meier(y, rows["arm"].to_numpy(), found.weight)
    for arm, name in ((1, "target"), (0, "comparator")):
        np.testing.assert_allclose(curves[arm].at([90, 200]), EXPECTED[name], rtol=1e-7)
