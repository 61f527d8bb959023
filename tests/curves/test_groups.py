"""Order of groups."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import riskset as rs

GROUP = ["low", "high", "mid"] * 4
ORDER = ["low", "mid", "high"]
Y = rs.Surv(np.arange(1.0, 13.0), [1, 0, 1, 1, 0, 1, 2, 1, 0, 1, 1, 0])
DECLARED = {
    "pandas": pd.Categorical(GROUP, categories=[*ORDER, "never"]),
    "column of pandas": pd.Series(pd.Categorical(GROUP, categories=ORDER)),
    "polars": pl.Series(GROUP, dtype=pl.Enum(ORDER)),
    "Arrow": pa.DictionaryArray.from_arrays(
        pa.array([ORDER.index(level) for level in GROUP]), pa.array([*ORDER, "never"])
    ),
    "column of Arrow": pa.chunked_array(
        pa.DictionaryArray.from_arrays(
            pa.array([ORDER.index(level) for level in GROUP[k : k + 6]]), pa.array(ORDER)
        )
        for k in (0, 6)
    ),
}


@pytest.mark.parametrize("kind", DECLARED)
def test_groups_have_their_declared_order(kind):
    y = rs.Surv(Y["time"], Y["event"] > 0)
    for curves, plain in (
        (rs.kaplan_meier(y, DECLARED[kind]), rs.kaplan_meier(y, GROUP)),
        (rs.aalen_johansen(Y, DECLARED[kind]), rs.aalen_johansen(Y, GROUP)),
    ):
        assert [curve.label for curve in curves] == ORDER
        assert [curve.label for curve in plain] == sorted(ORDER)
        for label in ORDER:
            assert_array_equal(curves[label].lower, plain[label].lower)
    found = rs.logrank_test(y, DECLARED[kind])
    assert found.p_value == pytest.approx(rs.logrank_test(y, GROUP).p_value)


def test_an_unordered_category_of_polars_is_sorted():
    y = rs.Surv(Y["time"], Y["event"] > 0)
    curves = rs.kaplan_meier(y, pl.Series(GROUP, dtype=pl.Categorical))
    assert [curve.label for curve in curves] == sorted(ORDER)


def test_curves_are_asked_for_their_groups() -> None:
    curves = rs.kaplan_meier(rs.Surv(Y["time"], Y["event"] > 0), GROUP)
    assert "mid" in curves
    assert "never" not in curves
    assert [curves[curve.label] is curve for curve in curves] == [True] * 3
