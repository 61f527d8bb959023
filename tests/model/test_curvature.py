"""The sampled curvature: positive semidefinite always, and near the exact one where it matters."""

import numpy as np
import pytest
import scipy.linalg as sla
from numpy.testing import assert_allclose, assert_array_equal

from model.cohorts import KINDS, Cohort, cohort
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.model.cox import CoxLoss, Ties
from riskset.model.curvature import sampled_information
from storages import Store, each_storage

N_SAMPLES = 20_000


def ratios(c: Cohort, ties: Ties, eta: np.ndarray, n_samples: int = N_SAMPLES) -> np.ndarray:
    """Eigenvalues of exact^-1 sampled, after checking that both are what they should be."""
    loss = c.loss(ties)
    exact = loss.information(c.design, eta, c.columns)
    model = sampled_information(loss, c.design, eta, c.columns, n_samples)
    size = np.sqrt(np.diag(exact))
    relative = model / np.outer(size, size)
    assert_allclose(relative, relative.T, rtol=0, atol=1e-13)
    assert np.linalg.eigvalsh(relative).min() > -1e-12
    return sla.eigh(model, exact, eigvals_only=True)


SHAPES = {
    "plain": {},
    "tied": {"n_times": 30},
    "strata": {"n_strata": 5},
    "many_strata": {"n_strata": 150},
    "late": {"late": True},
    "late_strata_weights": {"late": True, "n_strata": 4, "weights": (0.0, 1.0, 2.0, 0.5)},
    "late_many_strata": {"late": True, "n_strata": 60},
}


@pytest.mark.parametrize("kinds", [*((k,) for k in KINDS), KINDS], ids="+".join)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_near_the_exact_information(shape: dict[str, object], kinds: tuple[str, ...]) -> None:
    c = cohort(3000, seed=21, each=12 // len(kinds), kinds=kinds, effect=0.2, **shape)
    for eta in (np.zeros(3000), c.eta):
        found = ratios(c, "breslow", eta)
        assert found.min() > 0.85
        assert found.max() < 1.3


def test_efron_with_heavy_ties() -> None:
    c = cohort(3000, seed=22, each=4, n_times=10, effect=0.2)
    found = ratios(c, "efron", c.eta)
    assert found.min() > 0.85
    assert found.max() < 1.5  # the model knows nothing of Efron's shares


@pytest.mark.parametrize("n_samples", [64, 101, 1000])
@pytest.mark.parametrize("name", ["plain", "late_strata_weights", "many_strata"])
def test_few_samples_are_still_a_covariance(name: str, n_samples: int) -> None:
    c = cohort(600, seed=23, each=8, effect=0.2, **SHAPES[name])
    ratios(c, "breslow", c.eta, n_samples)


def test_rare_columns_keep_their_diagonal() -> None:
    """A column that the sample hardly meets must not look flat, or its step is far too long."""
    c = cohort(20_000, seed=24, each=3, kinds=("binary",))
    rng = np.random.default_rng(24)
    x = np.concatenate([c.x, rng.random((20_000, 6)) < 4e-4], axis=1)
    design = Design.from_dense(x)
    columns = np.arange(x.shape[1])
    loss = c.loss("breslow")
    exact = np.diag(loss.information(design, c.eta, columns))
    model = np.diag(sampled_information(loss, design, c.eta, columns, 2000))
    assert (model > 0.8 * exact).all()


@pytest.mark.parametrize("late", [False, True])
def test_extreme_eta(late: bool) -> None:
    c = cohort(500, seed=25, each=4, effect=200.0, late=late)
    model = sampled_information(c.loss("breslow"), c.design, c.eta, c.columns, 5000)
    assert np.isfinite(model).all()
    assert np.linalg.eigvalsh(model).min() > -1e-9 * np.abs(model).max()


@each_storage
@pytest.mark.parametrize("name", ["plain", "late_strata_weights", "many_strata"])
def test_same_bits_for_any_number_of_threads(store: Store, name: str) -> None:
    c = cohort(2000, seed=26, each=6, **SHAPES[name]).stored(store)
    first, *others = (
        sampled_information(
            CoxLoss(c.outcome, "efron", Runtime(n)), c.design, c.eta, c.columns, 5000
        )
        for n in (1, 1, 2, 3, 5)
    )
    for other in others:
        assert_array_equal(other, first)
