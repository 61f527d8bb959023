"""Clustered standard errors of curves against R's survfit, differences, and themselves.

The numbers of R are made by tests/golden/make_curves.R.
"""

import numpy as np
import pytest

import riskset as rs
from reference import GOLDEN, read_json, read_table

R = read_json(GOLDEN / "curves.json")["clustered"]


def agrees(curve: rs.SurvivalCurve, expected: dict) -> None:
    k = np.searchsorted(curve.time, expected["times"], side="right") - 1
    np.testing.assert_allclose(curve.survival[k], expected["survival"], rtol=1e-12)
    np.testing.assert_allclose(curve.standard_error[k], expected["survival_error"], rtol=1e-10)
    np.testing.assert_allclose(curve.cumulative_hazard[k], expected["hazard"], rtol=1e-12)
    errors = curve.cumulative_hazard_standard_error[k]
    np.testing.assert_allclose(errors, expected["hazard_error"], rtol=1e-10)


def test_weighted_patients_of_institutions() -> None:
    d = read_table(GOLDEN / "lung.csv")
    y = rs.Surv(d["time"], d["event"])
    curves = rs.kaplan_meier(y, weight=d["weight"], cluster=d["inst"])
    assert curves.variance == "robust"
    agrees(curves["all"], R["lung"])


@pytest.mark.parametrize("name", ["heart", "heart_weighted"])
def test_rows_of_one_person(name: str) -> None:
    d = read_table(GOLDEN / "heart.csv")
    y = rs.Surv(d["stop"], d["event"], d["start"])
    weight = 1 + (d["id"] % 4) / 2 if "weighted" in name else None
    agrees(rs.kaplan_meier(y, weight=weight, cluster=d["id"])["all"], R[name])


def test_competing_events() -> None:
    d, expected = read_table(GOLDEN / "mgus2.csv"), R["mgus2"]
    y = rs.Surv(d["time"], d["event"].astype(int))
    weight, cluster = 1 + (d["male"] == 1) / 3, d["age"] // 2
    curve = rs.aalen_johansen(y, weight=weight, cluster=cluster)["all"]
    k = np.searchsorted(curve.time, expected["times"], side="right") - 1
    np.testing.assert_allclose(curve.incidence[:, k], expected["incidence"], rtol=1e-12)
    np.testing.assert_allclose(curve.standard_error[:, k], expected["incidence_error"], rtol=1e-10)


def sample(rng, n, late):
    time = rng.integers(2, 12, n).astype(float)
    entry = np.where(rng.random(n) < 0.5, time - rng.integers(1, 5, n), 0).clip(0)
    entry[: n // 4] = 0
    y = rs.Surv(time, rng.integers(0, 3, n), entry if late else None)
    return y, rng.uniform(0.2, 3.0, n), rng.integers(0, n // 3, n)


def errors(y, **given):
    survival = rs.kaplan_meier(y, cause=1, **given)["all"]
    incidence = rs.aalen_johansen(y, **given)["all"]
    return np.vstack(
        [
            incidence.standard_error,
            survival.standard_error,
            survival.cumulative_hazard_standard_error,
        ]
    )


@pytest.mark.parametrize("late", [False, True])
def test_influence_of_a_cluster_is_the_derivative_in_the_weight_of_its_rows(rng, late) -> None:
    y, weight, cluster = sample(rng, 60, late)

    def estimates(w):
        survival = rs.kaplan_meier(y, weight=w, cause=1)["all"]
        incidence = rs.aalen_johansen(y, weight=w)["all"].incidence
        return np.vstack([incidence, survival.survival, survival.cumulative_hazard])

    expected, step = 0.0, 1e-5
    for c in np.unique(cluster):
        more, less = (np.where(cluster == c, weight * f, weight) for f in (1 + step, 1 - step))
        expected = expected + ((estimates(more) - estimates(less)) / (2 * step)) ** 2
    found = errors(y, weight=weight, cluster=cluster)
    known = np.isfinite(found)
    np.testing.assert_allclose(found[known] ** 2, expected[known], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("late", [False, True])
def test_clusters_of_one_row_are_no_clusters(rng, late) -> None:
    y, weight, _ = sample(rng, 200, late)
    alone = errors(y, weight=weight, cluster=rng.permutation(200))
    np.testing.assert_allclose(alone, errors(y, weight=weight, variance="robust"), rtol=1e-9)


@pytest.mark.parametrize("by", ["order", "scale", "text"])
def test_order_scale_and_labels_do_not_matter(rng, by) -> None:
    y, weight, cluster = sample(rng, 150, True)
    expected = errors(y, weight=weight, cluster=cluster)
    rows = rng.permutation(150)
    same = {
        "order": lambda: errors(y[rows], weight=weight[rows], cluster=cluster[rows]),
        "scale": lambda: errors(y, weight=weight * 1e-170, cluster=cluster),
        "text": lambda: errors(y, weight=weight, cluster=[f"c{k}" for k in cluster]),
    }[by]()
    np.testing.assert_allclose(same, expected, rtol=1e-9)


def test_split_rows_of_a_person_are_the_person(rng) -> None:
    """Follow-up that is cut at random times has the standard errors of the whole."""
    n = 80
    time, event = rng.integers(3, 30, n).astype(float), rng.integers(0, 3, n)
    weight, cut = rng.uniform(0.5, 2.0, n), rng.integers(1, 3, n).astype(float)
    whole = errors(rs.Surv(time, event), weight=weight, variance="robust")
    y = rs.Surv(np.append(cut, time), np.append(0 * event, event), np.append(0 * cut, cut))
    split = rs.kaplan_meier(
        y, weight=np.tile(weight, 2), cause=1, cluster=np.tile(np.arange(n), 2)
    )["all"]
    ends = np.isin(split.time, time)
    np.testing.assert_allclose(split.standard_error[ends], whole[2], rtol=1e-9)
    np.testing.assert_allclose(split.cumulative_hazard_standard_error[ends], whole[3], rtol=1e-9)


def test_clusters_within_groups(rng) -> None:
    """A cluster with rows in two groups counts in the curve of each, as if alone."""
    y, weight, cluster = sample(rng, 120, True)
    group = rng.integers(0, 2, 120)
    both = rs.kaplan_meier(y, group, weight, cause="any", cluster=cluster)
    for g in (0, 1):
        own = group == g
        alone = rs.kaplan_meier(y[own], None, weight[own], cause="any", cluster=cluster[own])
        np.testing.assert_array_equal(both[g].standard_error, alone["all"].standard_error)


def test_refusals() -> None:
    y = rs.Surv([1, 2, 3], [1, 0, 1])
    with pytest.raises(rs.InputError, match="the variance 'counts' takes rows for independent"):
        rs.kaplan_meier(y, cluster=[1, 1, 2], variance="counts")
    with pytest.raises(rs.InputError, match="the variance 'aalen' takes rows for independent"):
        rs.aalen_johansen(y, cluster=[1, 1, 2], variance="aalen")
    with pytest.raises(rs.InputError, match="cluster"):
        rs.kaplan_meier(y, cluster=[1, 2])


def test_a_single_cluster_is_refused():
    """Its influences add up to 0, which would be its standard error."""
    y, one = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 1]), ["all"] * 4
    for estimate in (
        lambda: rs.kaplan_meier(y, cluster=one),
        lambda: rs.aalen_johansen(y, cluster=one),
        lambda: rs.restricted_mean(y, times=2, cluster=one),
        lambda: rs.logrank_test(y, list("abab"), cluster=one),
    ):
        with pytest.raises(rs.InputError, match="`cluster` has the same label in all rows"):
            estimate()
