"""Residuals of fits against R's `residuals.coxph`: plain, weighted, and summed over clusters.

The numbers are those of tests/golden/make_residuals.R.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from reference import GOLDEN, matrix, read_json, read_table
from storages import each_storage

R = read_json(GOLDEN / "residuals.json")
CASES = [name for name in R if name != "versions"]


def fitted(name: str, store=lambda x: x):
    """The model, and what `residuals` takes."""
    d = read_table(GOLDEN / f"{name.split('_')[0]}.csv")
    is_heart = name.startswith("heart")
    x = matrix(d, ["age", "year", "surgery"] if is_heart else ["age", "sex", "ph.ecog"])
    y = rs.Surv(d["stop"], d["event"], d["start"]) if is_heart else rs.Surv(d["time"], d["event"])
    breslow = name in ("heart", "lung_breslow", "lung_breslow_weighted")
    data: dict = {"X": store(x), "y": y}
    if "weighted" in name:
        data["sample_weight"] = 1 + (d["id"] % 4) / 2 if is_heart else d["weight"]
    model = rs.Cox(ties="breslow" if breslow else "efron", tol=1e-13).fit(**data)
    return model, data, d["id" if is_heart else "inst"]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["martingale", "deviance", "score", "dfbeta", "dfbetas"])
def test_residuals_are_those_of_r(name: str, kind: str) -> None:
    model, data, cluster = fitted(name)
    expected, tolerance = R[name], {"rtol": 1e-6, "atol": 1e-8}
    found = model.residuals(**data, kind=kind)
    assert_allclose(found[:12], expected["plain"][kind], **tolerance)
    if kind != "deviance":
        found = model.residuals(**data, kind=kind, weighted=True)
        assert_allclose(found[:12], expected["weighted"][kind], **tolerance)
    if kind.startswith("dfbeta"):
        found = model.residuals(**data, kind=kind, weighted=False)
        assert_allclose(found[:12], expected["unweighted"][kind], **tolerance)
    found = model.residuals(**data, kind=kind, cluster=cluster, collapse=True)
    assert found.shape[0] == np.unique(cluster).size
    wanted = np.array(expected["collapsed"][kind], dtype=float)
    if kind == "deviance":  # R's formula is right where a cluster has at most one event
        events = np.bincount(np.unique(cluster, return_inverse=True)[1], data["y"]["event"])
        few = events[:12] <= 1
        assert_allclose(found[:12][few], wanted[few], **tolerance)
    else:
        assert_allclose(found[:12], wanted, **tolerance)


@pytest.mark.parametrize("name", CASES)
def test_scaled_schoenfeld_residuals_are_those_of_r(name: str) -> None:
    model, data, _ = fitted(name)
    found = model.residuals(**data, kind="scaled_schoenfeld")
    expected = R[name]["scaled"]
    assert found.values.shape[0] == expected["n"]
    if "weighted" not in name:  # R multiplies neither sums nor counts of events by the weights
        assert_allclose(found.values.sum(axis=0), expected["sum"], rtol=1e-6, atol=1e-6)
        assert_allclose((found.values**2).sum(axis=0), expected["squares"], rtol=1e-6)
    assert_array_equal(found.transformed, found.time)


@each_storage
def test_squares_of_clusters_are_the_robust_variance(store) -> None:
    for name in ("lung_weighted", "heart"):
        model, data, cluster = fitted(name, store)
        again = rs.Cox(ties=model.ties, tol=1e-13).fit(**data, cluster=cluster)
        moved = again.residuals(**data, kind="dfbeta", cluster=cluster, collapse=True)
        assert_allclose(moved.T @ moved, again.robust_variance_, rtol=1e-6)
        units = again.residuals(**data, kind="dfbetas", cluster=cluster, collapse=True)
        assert_allclose(units * again.standard_error_, moved, rtol=1e-9)


def test_dfbeta_of_fine_gray_gives_its_robust_variance() -> None:
    d = read_table(GOLDEN / "mgus2.csv")
    x, y = matrix(d, ["age", "male"]), rs.Surv(d["time"], d["event"].astype(int))
    model = rs.FineGray(cause=1, tol=1e-12).fit(x, y)
    moved = model.residuals(x, y, "dfbeta")
    assert_allclose(moved.T @ moved, model.robust_variance_, rtol=1e-6)


def test_dfbeta_is_about_the_change_without_the_row() -> None:
    model, data, _ = fitted("lung")
    moved = model.residuals(**data, kind="dfbeta")
    row = int(np.argmax(np.abs(moved[:, 2])))
    kept = np.arange(data["X"].shape[0]) != row
    without = rs.Cox(ties="efron", tol=1e-12).fit(data["X"][kept], data["y"][kept])
    assert_allclose(model.coef_ - without.coef_, moved[row], rtol=0.15, atol=1e-3)


def test_a_column_that_repeats_others_has_no_change() -> None:
    _, data, _ = fitted("lung")
    x = np.column_stack([data["X"], data["X"][:, 0]])
    with pytest.warns(rs.RisksetWarning, match="linear combination"):
        model = rs.Cox(ties="efron", tol=1e-13).fit(x, data["y"])
    moved = model.residuals(x, data["y"], "dfbeta")
    assert np.isnan(moved[:, 3]).all()
    assert_allclose(moved[:12, :3], R["lung"]["plain"]["dfbeta"], rtol=1e-6, atol=1e-8)


def test_refusals() -> None:
    model, data, cluster = fitted("lung")
    with pytest.raises(rs.InputError, match="one row per event"):
        model.residuals(**data, kind="schoenfeld", cluster=cluster, collapse=True)
    with pytest.raises(rs.InputError, match="deviance residuals are roots"):
        model.residuals(**data, kind="deviance", weighted=True)
    with pytest.raises(rs.InputError, match="the data have none"):
        model.residuals(**data, kind="score", collapse=True)
    with pytest.raises(rs.InputError, match="did you mean 'dfbetas'|dfbeta"):
        model.residuals(**data, kind="dfbetaz")
    with pytest.raises(rs.InputError, match="not defined for a penalised fit"):
        rs.Cox(rs.L2(1.0)).fit(**data).residuals(**data, kind="dfbeta")


def test_labels_of_clusters_are_not_passed_as_collapse() -> None:
    """As R's argument of that name takes them."""
    x, y = np.array([[0.0], [1.0], [0.0], [2.0]]), rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 1])
    model = rs.Cox().fit(x, y)
    with pytest.raises(rs.InputError, match="`collapse` must be True or False"):
        model.residuals(x, y, "dfbeta", collapse=[1, 1, 2, 2])
