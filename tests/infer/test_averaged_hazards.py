"""Averages of predictions: by hand, by numerical derivatives, and one cause as several."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from riskset.infer.averaged_hazards import averages

RNG = np.random.default_rng(4)
TIME = np.array([0.5, 1.0, 2.0, 3.5, 5.0])
UNTIL = np.array([0.2, 1.0, 2.7, 6.0])
LOG_STEP = np.log(RNG.uniform(0.02, 0.3, (2, TIME.size)))
LOG_STEP[1, 1] = LOG_STEP[0, 3] = -np.inf
ETA = RNG.normal(size=(2, 7))
WEIGHT = RNG.dirichlet(np.ones(7))


def mean(log_step, eta):
    return np.tensordot(WEIGHT, averages(TIME, log_step, eta, WEIGHT, UNTIL).value, 1)


@pytest.mark.parametrize("causes", [1, 2])
def test_values_by_hand(causes):
    found = averages(TIME, LOG_STEP[:causes], ETA[:causes], WEIGHT, UNTIL)
    hazards = np.exp(LOG_STEP[:causes, None, :] + ETA[:causes, :, None])
    for i in range(7):
        total = hazards[:, i].sum(axis=0)
        free, risk = [1.0], [0.0]
        for h, own in zip(total, hazards[0, i], strict=True):
            share = own / h if h else 0.0
            risk.append(risk[-1] + free[-1] * (1 - np.exp(-h)) * share)
            free.append(free[-1] * np.exp(-h))
        for k, end in enumerate(UNTIL):
            seen = int((end >= TIME).sum())
            edges = np.concatenate([[0.0], TIME[:seen], [end]])
            assert_allclose(found.value[i, 0, k], risk[seen])
            assert_allclose(found.value[i, 1, k], np.diff(edges) @ free[: seen + 1])
            assert_allclose(found.value[i, 2, k], np.diff(edges) @ risk[: seen + 1], atol=1e-15)


@pytest.mark.parametrize("causes", [1, 2])
def test_derivatives(causes):
    log_step, eta, small = LOG_STEP[:causes], ETA[:causes], 1e-6
    found = averages(TIME, log_step, eta, WEIGHT, UNTIL)
    for j in range(causes):
        for g in np.flatnonzero(np.isfinite(log_step[j])):
            move = np.zeros_like(log_step)
            move[j, g] = small
            slope = (mean(log_step + move, eta) - mean(log_step - move, eta)) / (2 * small)
            assert_allclose(found.by_step[j, :, :, g], slope, rtol=1e-6, atol=1e-9)
        for i in range(7):
            move = np.zeros_like(eta)
            move[j, i] = small
            slope = (mean(log_step, eta + move) - mean(log_step, eta - move)) / (2 * small)
            assert_allclose(WEIGHT[i] * found.by_eta[j, i], slope, rtol=1e-6, atol=1e-9)


def test_a_cause_without_events_changes_nothing():
    one = averages(TIME, LOG_STEP[:1], ETA[:1], WEIGHT, UNTIL)
    none = np.concatenate([LOG_STEP[:1], np.full((1, TIME.size), -np.inf)])
    two = averages(TIME, none, ETA, WEIGHT, UNTIL)
    assert_allclose(two.value, one.value, atol=1e-15)
    assert_allclose(two.by_eta[0], one.by_eta[0], atol=1e-15)
    assert_allclose(two.by_step[0], one.by_step[0], atol=1e-15)
    assert not two.by_step[1].any()


def test_no_events():
    found = averages(np.zeros(0), np.zeros((1, 0)), ETA[:1], WEIGHT, UNTIL)
    assert_allclose(found.value[:, 1], np.tile(UNTIL, (7, 1)))
    assert not found.value[:, [0, 2]].any()
