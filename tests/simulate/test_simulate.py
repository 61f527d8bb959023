"""Simulated cohorts follow the distributions they claim, and files hold the same as memory."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

import riskset as rs
from riskset.simulate import CoxDesign, FineGrayDesign, Simulation, save_cohort

SIMULATORS = [rs.simulate_cox, rs.simulate_finegray]


@pytest.mark.parametrize("simulate", SIMULATORS)
def test_shape_density_and_order(simulate: Callable[..., Simulation]) -> None:
    cohort = simulate(1000, 30, density=0.07, seed=5)
    assert cohort.X.shape == (1000, 30)
    assert (np.diff(cohort.indptr) == 70).all()
    assert (cohort.X.data == 1).all()
    for j in range(30):
        rows = cohort.indices[cohort.indptr[j] : cohort.indptr[j + 1]]
        assert (np.diff(rows) > 0).all()
        assert rows[0] >= 0
        assert rows[-1] < 1000
    assert cohort.y.dtype.names == ("event", "time")
    assert np.isfinite(cohort.time).all()
    assert (cohort.time > 0).all()


@pytest.mark.parametrize("simulate", SIMULATORS)
def test_seed_decides_everything(simulate: Callable[..., Simulation]) -> None:
    first, again, other = (simulate(500, 10, seed=s) for s in (1, 1, 2))
    for name in ("indices", "time", "event", "coef"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(first.time, other.time)


def test_every_density_up_to_one() -> None:
    for density in (0.001, 0.5, 0.999, 1.0):
        cohort = rs.simulate_cox(1000, 3, density=density)
        assert cohort.X.nnz == 3 * round(1000 * density)


def test_share_without_effect() -> None:
    coef = rs.simulate_cox(10, 20_000, zero=0.8, density=0.1).coef
    assert abs((coef == 0).mean() - 0.8) < 0.01
    assert stats.kstest(coef[coef != 0], "norm").pvalue > 0.001
    assert (rs.simulate_cox(10, 50, zero=1.0).coef == 0).all()
    assert (rs.simulate_cox(10, 50, zero=0.0).coef != 0).all()


def test_cox_without_effects_by_hand() -> None:
    """P(event) and the time of censoring, for one exponential rate and uniform censoring."""
    n = 200_000
    cohort = rs.simulate_cox(n, 1, zero=1.0, seed=3)
    design = CoxDesign(n, 1, zero=1.0, seed=3)
    list(design.columns())
    rate = design._rng.uniform(0.01, 0.03)
    # P(T < C) for whole days: integrate P(T < u) over the uniform u.
    expected = 1 - (1 - np.exp(-499 * rate)) / (499 * rate)
    assert abs(cohort.event.mean() - expected) < 0.01
    assert np.unique(cohort.time).size > 0.99 * n
    assert set(np.unique(cohort.event)) == {0, 1}


def test_finegray_cumulative_incidence_by_hand() -> None:
    """Among rows with the same linear predictor, cause 1 has the cumulative incidence claimed."""
    n, p = 200_000, 0.4
    design = FineGrayDesign(n, 1, zero=1.0, baseline=p, seed=9)
    list(design.columns())
    design._eta[:] = 0.7
    time, event = design.outcomes()
    # No row is censored before 0.1 but a tenth; compare sub-densities through the censoring-free
    # probability P(T1 <= min(t, C)) = integral of (1 - s) dF1(s).
    t, ratio = 0.5, np.exp(0.7)
    grid = np.linspace(0, t, 20_001)
    incidence = 1 - (1 - p * (1 - np.exp(-grid))) ** ratio
    expected = np.sum((1 - (grid[1:] + grid[:-1]) / 2) * np.diff(incidence))
    observed = ((event == 1) & (time <= np.log(1e100 * t + 2))).mean()
    assert abs(observed - expected) < 4 * np.sqrt(expected / n)
    assert set(np.unique(event)) == {0, 1, 2}


def test_finegray_extreme_predictors_are_finite() -> None:
    design = FineGrayDesign(1000, 1, seed=1)
    list(design.columns())
    design._eta[:] = np.linspace(-40, 40, 1000)
    time, _ = design.outcomes()
    assert np.isfinite(time).all()


@pytest.mark.parametrize(
    ("kind", "simulate"), [(CoxDesign, rs.simulate_cox), (FineGrayDesign, rs.simulate_finegray)]
)
def test_files_hold_the_same_cohort(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[CoxDesign],
    simulate: Callable[..., Simulation],
) -> None:
    monkeypatch.setattr("riskset.simulate.drawing.BLOCK_ENTRIES", 150)  # several blocks
    save_cohort(kind(400, 11, density=0.1, seed=7), tmp_path)
    cohort = simulate(400, 11, density=0.1, seed=7)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "covariates.parquet",
        "outcomes.parquet",
        "truth.parquet",
    ]
    outcomes = pq.read_table(tmp_path / "outcomes.parquet")
    assert outcomes.column_names == ["rowId", "time", "y"]
    np.testing.assert_array_equal(outcomes["rowId"].to_numpy(), np.arange(1, 401))
    np.testing.assert_array_equal(outcomes["time"].to_numpy(), cohort.time)
    np.testing.assert_array_equal(outcomes["y"].to_numpy(), cohort.event)
    pairs = pq.read_table(tmp_path / "covariates.parquet")
    assert pairs.column_names == ["rowId", "covariateId"]
    np.testing.assert_array_equal(pairs["rowId"].to_numpy() - 1, cohort.indices)
    np.testing.assert_array_equal(pairs["covariateId"].to_numpy(), np.repeat(np.arange(1, 12), 40))
    truth = pq.read_table(tmp_path / "truth.parquet")
    np.testing.assert_array_equal(truth["coef"].to_numpy(), cohort.coef)


def test_a_failed_run_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: CoxDesign) -> None:
        raise RuntimeError("stopped half-way")

    monkeypatch.setattr(CoxDesign, "outcomes", fail)
    with pytest.raises(RuntimeError, match="half-way"):
        save_cohort(CoxDesign(100, 5), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_rows": 0}, "`n_rows` must be a whole number of at least 1, but it is 0"),
        ({"n_rows": 2.5}, "`n_rows`"),
        ({"n_rows": 2**31}, "smaller than 2\\^31"),
        ({"n_covariates": -1}, "`n_covariates`"),
        ({"density": 0.0}, r"`density` must be in \(0, 1\]"),
        ({"density": 5}, "`density`"),
        ({"density": float("nan")}, "`density`"),
        ({"zero": 1.5}, r"`zero` must be in \[0, 1\]"),
        ({"seed": -1}, "`seed`"),
        ({"seed": None}, "`seed`"),
    ],
)
@pytest.mark.parametrize("simulate", SIMULATORS)
def test_bad_arguments(
    simulate: Callable[..., Simulation], arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(rs.InputError, match=message):
        simulate(**({"n_rows": 10, "n_covariates": 2} | arguments))


def test_published_optimum() -> None:
    """The same cohort as in the comparison of programs, which agree on its penalised optimum.

    Cyclops 3.7.0 (variance 1.414, tolerance 1e-6) reports -790000.623639.
    """
    cohort = rs.simulate_cox(100_000, 1000, density=0.05, seed=123)
    model = rs.Cox(rs.L1.from_variance(1.414)).fit(cohort.X, cohort.y)
    assert model.status_ == "converged"
    assert -model.objective_ == pytest.approx(-790000.623639, rel=1e-11)


@pytest.mark.parametrize("baseline", [0.0, 1.0, 1.2])
def test_bad_baseline(baseline: float) -> None:
    with pytest.raises(rs.InputError, match="`baseline`"):
        rs.simulate_finegray(10, 2, baseline=baseline)
