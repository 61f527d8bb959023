"""Resamples of penalised models: which coefficients, and the penalty chosen anew in each."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from estimators.samples import model_and_data, simulated, state
from riskset.estimators import _inference


def test_unpenalized_coefficients_by_default():
    model, *_ = model_and_data(penalty=rs.L1(3.0, unpenalized=["x1", "x3"]))
    assert model.bootstrap(2).names == ("x1", "x3")
    assert model.bootstrap(2, parameters=["x0", "x3"]).names == ("x0", "x3")
    assert model.bootstrap(2, parameters="x3").names == ("x3",)


def test_zeros_of_a_penalty_are_estimates():
    model, *_ = model_and_data(penalty=rs.L1(30.0))
    found = model.bootstrap(40, parameters=list(model.covariates_))
    zeros = found.replicates == 0
    assert zeros.any()
    assert found.n_failed == 0
    assert found.interval()["x3"] == (0.0, 0.0) if zeros[:, 3].all() else True


def test_every_covariate_penalised():
    model, *_ = model_and_data(penalty=rs.L2(3.0))
    with pytest.raises(rs.InputError, match="every covariate is penalised") as error:
        model.bootstrap()
    assert "`unpenalized`" in str(error.value)


def test_retuning_repeats_the_cross_validation():
    """Resampled rows, each in one fold: the fit of `CoxCV` with numbers of draws as weights."""
    x, y = simulated(np.random.default_rng(2))
    fold = np.arange(120) % 3
    cv = rs.CoxCV(rs.L1(unpenalized=["x0"]), penalties=[1.0, 5.0, 20.0], folds=fold, repeats=1).fit(
        x, y
    )
    before = state(cv)
    found = cv.bootstrap(6, retune=True)
    assert state(cv) == before
    assert found.names == ("x0",)
    training = cv._fitted.training
    resampling, _ = _inference._resampling(training, None, False)
    for k, penalty in enumerate(found.penalties):
        again = rs.CoxCV(
            rs.L1(unpenalized=["x0"]), penalties=[1.0, 5.0, 20.0], folds=fold, repeats=1
        ).fit(x, y, sample_weight=resampling.counts(1, k).astype(float))
        assert again.best_penalty_.l1 == penalty.l1
        assert_allclose(found.replicates[k, 0], again.coef_[0], rtol=1e-4, atol=1e-5)
    assert len({penalty.l1 for penalty in found.penalties}) > 1


@pytest.mark.parametrize("weights", ["case", "none"])
def test_retuning_finegray(weights):
    """One penalty to choose from: what is left is the bootstrap at that penalty."""
    x, y = simulated(np.random.default_rng(2))
    y = rs.Surv(y["time"], np.random.default_rng(1).integers(0, 3, 120))
    kind = rs.L1(unpenalized=["x0"])
    cv = rs.FineGrayCV(kind, penalties=[3.0], folds=3, repeats=1, censoring_weights=weights)
    cv.fit(x, y, sample_weight=np.tile([0.5, 1.0, 2.0], 40))
    kept, chosen = cv.bootstrap(3), cv.bootstrap(3, retune=True)
    assert [penalty.l1 for penalty in chosen.penalties] == [3.0] * 3
    assert_allclose(chosen.replicates, kept.replicates, rtol=1e-4, atol=1e-5)


def retunable(n=60, n_events=3, **parameters):
    g = np.random.default_rng(0)
    x, time, event = g.normal(size=(n, 3)), g.exponential(size=n), np.zeros(n, int)
    event[:n_events] = 1
    cv = rs.CoxCV(rs.L1(unpenalized=["x0"]), **({"folds": 3, "repeats": 1} | parameters))
    return cv.fit(x, rs.Surv(time, event)), event


def drawn(cv, replicates):
    """How often each replicate draws each row."""
    resampling, _ = _inference._resampling(cv._fitted.training, None, False)
    return np.array([resampling.counts(1, k) for k in range(replicates)])


@pytest.mark.slow
def test_resamples_in_which_no_penalty_can_be_chosen_are_counted():
    cv, event = retunable()
    with pytest.warns(rs.RisksetWarning, match=r"no estimate of 'x0' \(.*no_penalty") as record:
        found = cv.bootstrap(60, retune=True)
    without = np.array([status == "no_penalty" for status in found.statuses])
    # Whoever draws no event has nothing to choose by: (1 - 3/60)^60 = 4.6 % of resamples.
    no_events = drawn(cv, 60)[:, event == 1].sum(axis=1) == 0
    assert no_events.any()
    assert without[no_events].all()
    assert not without.all()
    assert found.n_failed == found.status_counts["no_penalty"] == without.sum()
    assert_array_equal(np.isnan(found.replicates[:, 0]), without)
    assert [penalty is None for penalty in found.penalties] == without.tolist()
    assert [bool(reason) for reason in found.reasons] == without.tolist()
    first = int(np.flatnonzero(without)[0])
    assert f"in replicate {first}, for example: no penalised covariate" in str(record[0].message)
    assert record[0].filename == __file__
    again = pickle.loads(pickle.dumps(found))
    assert again.reasons == found.reasons


def test_given_penalties_need_no_events():
    cv, event = retunable(penalties=[1.0, 10.0])
    with pytest.warns(rs.RisksetWarning, match="not_estimable"):
        found = cv.bootstrap(40, retune=True)
    no_events = drawn(cv, 40)[:, event == 1].sum(axis=1) == 0
    assert no_events.any()
    assert {found.statuses[k] for k in np.flatnonzero(no_events)} == {"not_estimable"}
    assert set(found.reasons) == {""}


@pytest.mark.parametrize(
    ("folds", "reason"),
    [
        (np.arange(60) // 59, "fold ids must have at least two different values"),
        (37, "rows of positive weight, too few for 37 folds"),
    ],
)
def test_resamples_that_cannot_be_divided_are_counted(folds, reason):
    cv, _ = retunable(n_events=40, penalties=[3.0], folds=folds, score="difference")
    with pytest.warns(rs.RisksetWarning, match=reason):
        found = cv.bootstrap(40, retune=True)
    counts = drawn(cv, 40)
    lost = (counts > 0).sum(axis=1) < 37 if isinstance(folds, int) else counts[:, 59] == 0
    assert 0 < lost.sum() < 40
    assert_array_equal(lost, [status == "no_penalty" for status in found.statuses])
    assert all(reason in found.reasons[k] for k in np.flatnonzero(lost))
    assert np.isfinite(found.replicates[~lost]).all()


def test_folds_that_no_resample_has_are_refused_before_any_fit(monkeypatch):
    cv, _ = retunable(n_events=40, penalties=[3.0], folds=60, score="difference")
    monkeypatch.setattr(_inference, "retuned_estimates", None)
    with pytest.raises(rs.InputError, match="none of the 30 resamples can be divided") as error:
        cv.bootstrap(30, retune=True)
    assert f"there are {(drawn(cv, 1) > 0).sum()} rows" in str(error.value)
    assert "take fewer folds" in str(error.value)


def test_a_cross_validated_model_keeps_its_penalty_otherwise():
    x, y = simulated(np.random.default_rng(2))
    kind = rs.L1(unpenalized=["x0"])
    cv = rs.CoxCV(kind, penalties=[5.0, 20.0], folds=3, repeats=1).fit(x, y)
    plain = rs.Cox(cv.best_penalty_).fit(x, y)
    assert cv.best_penalty_.l1 > 1.0
    assert_allclose(cv.bootstrap(5).replicates, plain.bootstrap(5).replicates, rtol=1e-5)
    assert cv.bootstrap(2).penalties is None
    ends = [m.confidence_interval("x0", method="profile")["x0"] for m in (cv, plain)]
    assert_allclose(*ends, rtol=1e-6)


def test_retuning_needs_a_choice():
    model, *_ = model_and_data(penalty=rs.L1(3.0, unpenalized=["x0"]))
    with pytest.raises(rs.InputError, match="Cox was fitted with the penalty that it was given"):
        model.bootstrap(2, retune=True)
