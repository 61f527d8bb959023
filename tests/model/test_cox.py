"""What `CoxLoss` makes of the kernels: orders, blocks, chunks, and the exact information."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from model.cohorts import COHORTS, RUNTIME, Cohort, cohort
from riskset._runtime import Runtime
from riskset.data.outcome import Outcome
from riskset.kernels import risk_sets_ref, term_means_ref
from riskset.model import cox
from riskset.model.cox import CoxLoss, Ties
from storages import Store, each_storage

each_ties = pytest.mark.parametrize("ties", ["breslow", "efron"])
each_cohort = pytest.mark.parametrize("c", COHORTS.values(), ids=COHORTS)


def close(a: np.ndarray, b: np.ndarray, rtol: float, square: np.ndarray | None = None) -> None:
    """Matrices, each entry on the scale of its two diagonal ones, or of the given ones."""
    size = np.sqrt(np.diag(b) if square is None else square)
    assert (np.abs(a - b) <= rtol * np.outer(size, size)).all()


@each_ties
@each_cohort
def test_rows_are_in_the_callers_order(c: Cohort, ties: Ties) -> None:
    now = c.loss(ties).evaluate(c.eta)
    observed = c.outcome.weight * c.outcome.is_event
    assert_allclose(now.residual, observed - now.expected, rtol=1e-13, atol=1e-13)
    assert (now.expected >= 0).all()
    assert (now.expected[c.outcome.weight == 0] == 0).all()
    assert_allclose(now.expected.sum(), c.loss(ties).n_events, rtol=1e-13)


@each_storage
@each_ties
@each_cohort
def test_information_by_the_formula(store: Store, c: Cohort, ties: Ties) -> None:
    c = c.stored(store)
    risk, efron = c.outcome.risk, ties == "efron"
    z = c.design.stored()[risk.order]
    expected = risk_sets_ref.cox_pass(c.eta, risk, efron, RUNTIME).expected
    means, weights = term_means_ref.risk_set_means(c.eta, risk, efron, z)
    formula = (z.T * expected) @ z - (means.T * weights) @ means
    information = c.loss(ties).information(c.design, c.eta, c.columns)
    # A risk set that one row dominates has no variance left: digits are those of the squares.
    square = expected @ z**2
    close(information, formula, 1e-12, square)
    assert_array_equal(information, information.T)
    size = np.sqrt(square)
    assert np.linalg.eigvalsh(information / np.outer(size, size)).min() > -1e-13


@each_storage
@each_ties
@pytest.mark.parametrize("name", ["tied", "strata", "late_strata_weights"])
def test_blocks_and_chunks_do_not_matter(
    store: Store, name: str, ties: Ties, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = COHORTS[name].stored(store)
    whole = c.loss(ties).information(c.design, c.eta, c.columns)
    monkeypatch.setattr(cox, "CHUNK_ROWS", 7)
    close(c.loss(ties).information(c.design, c.eta, c.columns), whole, 1e-12)
    monkeypatch.setattr(cox, "MAX_DENSE_NUMBERS", 2 * c.eta.size + 1)
    close(c.loss(ties).information(c.design, c.eta, c.columns), whole, 1e-12)


@each_storage
@each_ties
@pytest.mark.parametrize("name", ["no_ties", "strata", "late"])
def test_a_constant_in_eta_cancels(store: Store, name: str, ties: Ties) -> None:
    c, loss = COHORTS[name].stored(store), COHORTS[name].loss(ties)
    eta = np.round(c.eta * 2**20) / 2**20  # so that adding the constant rounds nothing
    here, there = loss.evaluate(eta), loss.evaluate(eta + 1024.0)
    assert_array_equal(there.residual, here.residual)
    assert there.log_likelihood == here.log_likelihood
    assert_allclose(there.log_hazard, here.log_hazard - 1024.0, rtol=1e-15)
    a = loss.information(c.design, eta, c.columns)
    close(loss.information(c.design, eta + 1024.0, c.columns), a, 1e-12)


@each_storage
def test_some_columns_in_another_order(store: Store) -> None:
    c = COHORTS["strata"].stored(store)
    whole = c.loss("efron").information(c.design, c.eta, c.columns)
    some = np.array([4, 0, 3])
    close(c.loss("efron").information(c.design, c.eta, some), whole[np.ix_(some, some)], 1e-13)


@each_storage
@pytest.mark.parametrize("name", ["tied", "late"])
def test_units_of_a_column_change_its_information_alone(store: Store, name: str) -> None:
    c = COHORTS[name].stored(store)
    scaled = store(c.x * np.where(c.columns == 5, 1024.0, 1.0))
    loss = c.loss("efron")
    information = [
        loss.information(d, c.eta, c.columns) * np.outer(d.scale, d.scale)
        for d in (c.design, scaled)
    ]
    unit = np.where(c.columns == 5, 1024.0, 1.0)
    close(information[1], information[0] * np.outer(unit, unit), 1e-12)


@each_storage
@each_ties
@pytest.mark.parametrize("late", [False, True])
def test_threads_change_no_bit(store: Store, ties: Ties, late: bool) -> None:
    c = cohort(26_000, seed=11, each=1, n_times=200, late=late, n_strata=2).stored(store)
    assert c.outcome.risk.chunk_ptr.size > 3
    one = c.loss(ties).evaluate(c.eta)
    information = c.loss(ties).information(c.design, c.eta, c.columns)
    for n_threads in (2, 3, 5):
        loss = CoxLoss(c.outcome, ties, Runtime(n_threads))
        several = loss.evaluate(c.eta)
        assert several.log_likelihood == one.log_likelihood
        assert_array_equal(several.residual, one.residual)
        assert_array_equal(several.log_hazard, one.log_hazard)
        assert_array_equal(loss.information(c.design, c.eta, c.columns), information)


def test_a_limit_takes_the_place_of_the_risk_sets() -> None:
    c = COHORTS["tied"]
    loss = c.loss("breslow")
    limit = replace(loss, limit=c.outcome.risk._replace(weight=2 * c.outcome.risk.weight))
    assert limit.risk is limit.limit
    now, doubled = loss.evaluate(c.eta), limit.evaluate(c.eta)
    assert_allclose(doubled.expected, now.expected, rtol=1e-14)
    assert_allclose(doubled.log_total, now.log_total + np.log(2), rtol=1e-13)


@each_storage
def test_information_does_not_see_what_lies_between_strata(store: Store) -> None:
    rng = np.random.default_rng(0)
    n, stratum = 300, np.repeat(np.arange(3), 100)
    x = rng.normal(size=(n, 2))
    outcome = Outcome.build(rng.exponential(size=n), np.ones(n), stratum=stratum)
    loss = CoxLoss(outcome, "efron", RUNTIME)
    eta, columns = rng.normal(size=n), np.arange(2)

    def information(z: np.ndarray) -> np.ndarray:
        design = store(z)
        return loss.information(design, eta, columns) * np.outer(design.scale, design.scale)

    far = x + np.array([0.0, 1e6, -3e6])[stratum, None]
    assert_allclose(information(far), information(x), rtol=1e-9, atol=1e-9)
