"""Standardised differences among some of the people, by hand."""

import numpy as np
import pyarrow as pa
import pytest

import riskset as rs
from riskset.cohort.covariates.balance_within import balance_within
from riskset.data.frame import FrameEncoder


@pytest.mark.parametrize("sd", ["before", "current"])
def test_differences_and_the_fewest(rng, sd):
    n = 300
    treated, inside = rng.random(n) < 0.4, rng.random(n) < 0.5
    x = np.column_stack([rng.random(n) < 0.3, rng.normal(size=n), np.zeros(n)])
    score = np.where(treated, 0.5, 0.3) + 0.2 * rng.random(n)
    people = rs.cohort.weight(rs.cohort.Population(treated, score), estimand="ato")
    found = balance_within(x, people, inside, sd=sd)
    whole = rs.cohort.balance(x, people)
    everybody = balance_within(x, people, np.ones(n, dtype=bool))
    np.testing.assert_allclose(everybody.before, whole.before.smd, rtol=1e-10)
    np.testing.assert_allclose(everybody.after, whole.after.smd, rtol=1e-10, atol=1e-12)
    alone = rs.cohort.balance(
        x[inside],
        rs.cohort.weight(rs.cohort.Population(treated[inside], score[inside]), estimand="ato"),
        sd=sd,
    )
    # Overlap weights are those of each person, so that a level by itself has the same.
    np.testing.assert_allclose(found.before, alone.before.smd_current_sd, rtol=1e-10)
    np.testing.assert_allclose(found.after, alone.after.smd, rtol=1e-10, atol=1e-12)
    arms = (treated & inside, ~treated & inside)
    ones = [int(x[arm, 0].sum()) for arm in arms]
    zeros = [int((1 - x[arm, 0]).sum()) for arm in arms]
    assert found.fewest[0] == min(ones + zeros)
    assert found.fewest[1] == min(int(arm.sum()) for arm in arms)


def test_missing_values_are_left_out_and_counted(rng):
    n = 300
    treated, inside, gap = rng.random(n) < 0.5, rng.random(n) < 0.5, rng.random(n) < 0.05
    x = rng.normal(size=n) + treated
    frame = pa.table({"x": pa.array(x, mask=gap)})
    people = rs.cohort.weight(rs.cohort.Population(treated, 0.3 + 0.4 * rng.random(n)))
    found = balance_within(FrameEncoder.fit(frame, None, None, "indicator")[1], people, inside)
    alone = balance_within(x[:, None], people, inside & ~gap)
    np.testing.assert_allclose(found.before[0], alone.before[0], rtol=1e-10)
    np.testing.assert_allclose(found.after[0], alone.after[0], rtol=1e-10)
    missing = [int((arm & inside & gap).sum()) for arm in (treated, ~treated)]
    assert found.fewest[0] == min(m for m in missing if m)
