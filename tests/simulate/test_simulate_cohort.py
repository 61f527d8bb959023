"""The simulated cohort has the prevalences, the events and the hazard ratios that it claims."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import riskset as rs
from riskset.simulate import CohortDesign, save_cohort


def test_prevalences_are_heavy_tailed_with_the_density_asked_for() -> None:
    n, p = 20_000, 2000
    cohort = rs.simulate_cohort(n, p, seed=1)
    prevalence = np.diff(cohort.indptr[:-1]) / n
    assert abs(prevalence.mean() - 0.0289) < 0.0005
    assert prevalence.min() > 0
    # Log-normal of standard deviation 2: the median is far below the mean; none above one half.
    assert np.median(prevalence) < 0.0289 / 4
    assert 0.45 < prevalence.max() < 0.52
    assert abs(np.diff(cohort.indptr)[-1] / n - 0.5) < 0.02
    for j in (0, 1, 500, p - 1):
        rows = cohort.indices[cohort.indptr[j] : cohort.indptr[j + 1]]
        assert (np.diff(rows) > 0).all()
        assert (rows[0] >= 0) & (rows[-1] < n)
    assert np.count_nonzero(cohort.coef) == 201
    assert cohort.coef[-1] == -0.2


def test_rows_differ_in_burden() -> None:
    """Given the burden b of rows, a covariate of rate c is present with probability 1 - e^(-c b).

    Two covariates of prevalence m are then present together more often than m^2: by the factor
    E b^2 / (E b)^2 = exp(0.25) where they are rare.
    """
    n, p = 100_000, 200
    cohort = rs.simulate_cohort(n, p, density=0.02, seed=2)
    x = cohort.X[:, :-1].tocsr()
    size = np.diff(x.tocsc().indptr) / n
    rare = np.flatnonzero(size < 0.01)
    burden = np.asarray(x[:, rare].sum(axis=1)).ravel()
    both = (burden**2 - burden).mean()  # ordered pairs
    expected = size[rare].sum() ** 2 - (size[rare] ** 2).sum()
    assert abs(both / expected - np.exp(0.25)) < 0.06


@pytest.mark.parametrize("competing", [0.0, 0.1])
def test_shares_of_events(competing: float) -> None:
    n = 50_000
    cohort = rs.simulate_cohort(n, 30, events=0.05, competing=competing, seed=4)
    for cause, share in ((1, 0.05), (2, competing)):
        error = np.sqrt(share * (1 - share) / n)
        assert abs((cohort.event == cause).mean() - share) <= 4 * error
    assert (cohort.time == np.round(cohort.time)).all()
    assert cohort.time.min() >= 1


def test_hazard_ratios_are_those_claimed() -> None:
    """Estimates of both models, all covariates in them, lie within 4 standard errors."""
    for model, competing in ((rs.Cox(), 0.0), (rs.FineGray(), 0.2)):
        cohort = rs.simulate_cohort(
            20_000, 12, density=0.2, events=0.25, competing=competing, n_effects=5, seed=6
        )
        model.fit(cohort.X, cohort.y)
        error = (model.coef_ - cohort.coef) / model.standard_error_
        assert np.abs(error).max() < 4
        assert model.standard_error_[-1] < 0.06


def test_treatment_is_confounded() -> None:
    cohort = rs.simulate_cohort(50_000, 40, events=0.2, confounding=0.5, seed=8)
    risk = cohort.X[:, :-1] @ cohort.coef[:-1]
    treated = cohort.X[:, [-1]].toarray().ravel() == 1
    model = rs.Cox(penalty=None).fit(cohort.X[:, [-1]], cohort.y)
    assert risk[treated].mean() > risk[~treated].mean() + 0.4 * risk.std()
    assert model.coef_[0] > cohort.coef[-1] + 0.1


def test_share_treated() -> None:
    """The odds of the treatment are those at mean risk, exactly without confounding."""
    cohort = rs.simulate_cohort(50_000, 40, treated=0.24, confounding=0.0, seed=8)
    n_treated = cohort.indptr[-1] - cohort.indptr[-2]
    assert abs(n_treated - 12_000) < 4 * (50_000 * 0.24 * 0.76) ** 0.5
    for share in (0.0, 1.0):
        with pytest.raises(rs.InputError, match="`treated` must"):
            rs.simulate_cohort(50, 4, treated=share)
    with pytest.raises(rs.InputError, match="`treatment` must be a finite number"):
        rs.simulate_cohort(50, 4, treatment=float("inf"))
    with pytest.raises(rs.InputError, match="`confounding` must be a finite number"):
        rs.simulate_cohort(50, 4, confounding=float("nan"))


def test_files_hold_the_same_cohort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riskset.simulate.drawing.BLOCK_ENTRIES", 150)
    n_entries = save_cohort(CohortDesign(400, 11, density=0.1, seed=7), tmp_path)
    cohort = rs.simulate_cohort(400, 11, density=0.1, seed=7)
    assert n_entries == cohort.indices.size
    pairs = pq.read_table(tmp_path / "covariates.parquet")
    np.testing.assert_array_equal(pairs["rowId"].to_numpy() - 1, cohort.indices)
    keys = np.repeat(np.arange(1, 12), np.diff(cohort.indptr))
    np.testing.assert_array_equal(pairs["covariateId"].to_numpy(), keys)
    outcomes = pq.read_table(tmp_path / "outcomes.parquet")
    np.testing.assert_array_equal(outcomes["time"].to_numpy(), cohort.time)
    np.testing.assert_array_equal(outcomes["y"].to_numpy(), cohort.event)


def test_the_treatment_may_stand_apart(tmp_path: Path) -> None:
    save_cohort(CohortDesign(400, 11, density=0.1, seed=7), tmp_path, treatment_apart=True)
    cohort = rs.simulate_cohort(400, 11, density=0.1, seed=7)
    last = cohort.indptr[-2]
    pairs = pq.read_table(tmp_path / "covariates.parquet")
    np.testing.assert_array_equal(pairs["rowId"].to_numpy() - 1, cohort.indices[:last])
    assert pairs["covariateId"].to_numpy().max() == 10
    outcomes = pq.read_table(tmp_path / "outcomes.parquet")
    treatment = outcomes["treatment"].to_numpy()
    np.testing.assert_array_equal(np.flatnonzero(treatment == 1), cohort.indices[last:])
    np.testing.assert_array_equal(treatment == 0, treatment != 1)
    np.testing.assert_array_equal(outcomes["y"].to_numpy(), cohort.event)


@pytest.mark.parametrize("columns", [1, 2])
def test_few_columns(columns: int) -> None:
    cohort = rs.simulate_cohort(1000, columns, events=0.3)
    assert cohort.X.shape == (1000, columns)
    assert cohort.event.any()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"density": 0.5}, "`density` must be smaller than 0.5"),
        ({"events": 0.0}, r"`events` must be in \(0, 1\]"),
        ({"events": 0.3, "competing": 0.3}, "`events` and `competing` must not add up"),
        ({"n_effects": -1}, "`n_effects` must not be negative"),
    ],
)
def test_arguments_outside_their_range(options: dict[str, float], said: str) -> None:
    with pytest.raises(rs.InputError, match=said):
        rs.simulate_cohort(100, 5, **options)  # type: ignore[arg-type]
