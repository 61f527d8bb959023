"""Information criteria and explained variation against R, and under what must not change them."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri

import riskset as rs
from reference import GOLDEN, matrix, read_table
from riskset._errors import NotDefinedError
from riskset.infer.explained_variation import normal_scores
from storages import Store, each_storage


def golden(case: str) -> dict[str, float]:
    table = read_table(GOLDEN / "explained_variation.csv")
    rows = table["case"] == case
    values = (float(v) for v in table["value"][rows])
    return dict(zip(table["name"][rows], values, strict=True))


def data(case: str) -> tuple[np.ndarray, np.ndarray]:
    names = {"lung": ["age", "sex", "ph.ecog"], "lung_tied": ["sex", "ph.ecog"]}
    table = read_table(GOLDEN / ("lung.csv" if case in names else "veteran.csv"))
    columns = names.get(case, ["karno", "age", "diagtime"])
    all_columns = ["time", "event", *(names["lung"] if case in names else columns)]
    kept = ~np.isnan(matrix(table, all_columns)).any(axis=1)
    return matrix(table, columns)[kept], rs.Surv(table["time"][kept], table["event"][kept])


@pytest.mark.parametrize("case", ["lung", "lung_tied", "veteran"])
def test_r(case: str) -> None:
    x, y = data(case)
    model, known = rs.Cox(ties="efron", tol=1e-11).fit(x, y), golden(case)
    assert_allclose(model.aic_, known["aic"], rtol=1e-11)
    assert_allclose(model.bic_, known["bic"], rtol=1e-11)
    found = model.explained_variation(x, y)
    assert_allclose(found.d, known["d"], rtol=1e-7)
    assert_allclose(found.d_standard_error, known["se"], rtol=1e-6)
    assert_allclose(found.r2_d, known["r2_d"], rtol=1e-7)
    assert_allclose(found.r2_kent_oquigley, known["r2_ko"], rtol=1e-7)
    assert_allclose(found.r2_nagelkerke, known["r2_n"], rtol=1e-9)
    ratio = 2 * (known["loglik"] - known["loglik0"])
    assert_allclose(found.r2_cox_snell, 1 - np.exp(-ratio / known["n"]), rtol=1e-9)
    assert_allclose(found.r2_oquigley, 1 - np.exp(-ratio / known["events"]), rtol=1e-9)


def test_other_rows_than_those_of_the_fit() -> None:
    x, y = data("veteran")
    some = np.arange(1, len(x) + 1) % 2 == 0
    found = rs.Cox(ties="efron", tol=1e-11).fit(x[some], y[some]).explained_variation(x, y)
    known = golden("veteran_new")
    assert_allclose(found.d, known["d"], rtol=1e-7)
    assert_allclose(found.d_standard_error, known["se"], rtol=1e-6)
    assert_allclose(found.r2_d, known["r2_d"], rtol=1e-7)
    assert_allclose(found.r2_kent_oquigley, known["r2_ko"], rtol=1e-7)


def as_tuple(found: Any) -> tuple[float, ...]:
    return tuple(vars(found).values())


@each_storage
def test_order_and_rows_twice_change_nothing(store: Store, rng: np.random.Generator) -> None:
    x, y = data("lung")
    weight = rng.integers(0, 3, len(x)).astype(float)
    model = rs.Cox().fit(store(x), y, sample_weight=weight)
    found = as_tuple(model.explained_variation(store(x), y, sample_weight=weight))
    rows = rng.permutation(np.repeat(np.arange(len(x)), weight.astype(int)))
    assert_allclose(as_tuple(model.explained_variation(store(x[rows]), y[rows])), found, rtol=1e-7)
    moved = model.explained_variation(
        store(x), y, sample_weight=weight, offset=np.full(len(x), 3.0)
    )
    assert_allclose(as_tuple(moved), found, rtol=1e-7)


def test_scores_of_ranks() -> None:
    scores = ndtri((np.arange(1, 6) - 0.375) / 5.25)
    values, weight = np.array([3.0, 1.0, 1.0, 9.0, 7.0]), np.array([1.0, 1.0, 1.0, 0.0, 2.0])
    found = normal_scores(values, weight)
    expected = [scores[2], scores[:2].mean(), scores[:2].mean(), 0.0, scores[3:].mean()]
    assert_allclose(found, expected, rtol=1e-14)


def test_coefficients_that_are_left_out_do_not_count() -> None:
    x, y = data("lung")
    plain = rs.Cox().fit(x, y)
    with pytest.warns(rs.RisksetWarning):
        more = rs.Cox().fit(np.column_stack([x, x[:, 0] + x[:, 1], np.ones(len(x))]), y)
    assert_allclose([more.aic_, more.bic_], [plain.aic_, plain.bic_], rtol=1e-12)


def test_what_is_not_defined_is_refused() -> None:
    x, y = data("lung")
    with pytest.raises(NotDefinedError, match="penalised"):
        _ = rs.Cox(rs.L2(1.0)).fit(x, y).aic_
    with pytest.raises(NotDefinedError, match="firth"):
        _ = rs.Cox(firth=True).fit(x, y).bic_
    model = rs.Cox().fit(x, y)
    with pytest.raises(NotDefinedError, match="not_estimable"):
        model.explained_variation(np.ones((5, 3)), y[:5])
    with pytest.raises(rs.InputError, match="whole numbers"):
        model.explained_variation(x, y, sample_weight=np.full(len(x), 0.5))


@pytest.mark.filterwarnings("ignore::riskset.ConvergenceWarning")
def test_an_infinite_coefficient_has_none() -> None:
    draw = np.random.default_rng(2)
    event = draw.integers(0, 2, 60)
    x = np.column_stack([draw.normal(size=60), event])  # only rows with x1 = 1 have the event
    y = rs.Surv(draw.exponential(size=60), event)
    model = rs.Cox().fit(x, y)
    assert model.status_ == "infinite_estimate"
    with pytest.raises(NotDefinedError, match="because the coefficient of 'x1' is infinite"):
        model.explained_variation(x, y)
