"""Fits with the rows in risk order are the same fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import riskset as rs
from riskset._runtime import Runtime
from riskset.data.outcome import Outcome
from riskset.model.censoring import CensoringDistribution
from riskset.model.finegray import FineGrayLoss
from riskset.solve import curvature, fit
from riskset.solve.prox_newton import Minimisation


@pytest.mark.parametrize(
    ("estimator", "late"), [(rs.Cox, False), (rs.Cox, True), (rs.FineGray, False)]
)
@pytest.mark.parametrize("n", [400, 4000])
def test_same_fit(estimator: type, late: bool, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    x = sp.random_array((n, 12), density=0.2, rng=rng, format="csc")
    x.data[: x.indptr[6]] = 1.0
    time = np.round(rng.exponential(20, n)) + 1.0
    event = rng.integers(0, 3, n) if estimator is rs.FineGray else rng.integers(0, 2, n)
    y = rs.Surv(time, event, time - 0.5 - rng.integers(0, 9, n) if late else None)
    given = {
        "sample_weight": rng.choice([0.0, 1.0, 2.0], n),
        "strata": rng.integers(0, 3, n),
        "offset": rng.normal(size=n),
    }
    options = {"cause": 1} if estimator is rs.FineGray else {}
    plain = estimator(penalty=rs.L1(1.0), **options).fit(x, y, **given)
    monkeypatch.setattr(fit, "MIN_SORTED_ROWS", 0)
    monkeypatch.setattr(fit, "MIN_PART_EVENTS", 50)
    monkeypatch.setattr(curvature, "EXACT_WORK", 0)  # as for many rows
    starts = []
    begin = Minimisation.begin
    monkeypatch.setattr(Minimisation, "begin", lambda self, s: (starts.append(s), begin(self, s)))
    ordered = estimator(penalty=rs.L1(1.0), **options).fit(x, y, **given)
    assert [start is not None for start in starts] == ([False] if n == 400 else [False, True])
    assert ordered.status_ == plain.status_ == "converged"
    assert_allclose(ordered.coef_, plain.coef_, rtol=1e-5, atol=1e-7)
    assert_allclose(ordered.objective_, plain.objective_, rtol=1e-12)
    at = {"strata": given["strata"], "offset": given["offset"]}
    assert_allclose(
        ordered.predict_survival_function(x, [5.0, 20.0], **at),
        plain.predict_survival_function(x, [5.0, 20.0], **at),
        rtol=1e-5,
    )


def test_some_rows_keep_the_censoring_distribution_of_all() -> None:
    rng = np.random.default_rng(4)
    n = 300
    time, event = rng.integers(1, 40, n).astype(float), rng.integers(0, 3, n)
    outcome = Outcome.build(time, event, stratum=rng.integers(0, 3, n), cause=1)
    group = rng.integers(0, 2, n)
    whole = FineGrayLoss(outcome, CensoringDistribution.estimate(outcome, group=group), Runtime(1))
    rows = rng.permutation(n)[:60]
    some = whole.of_rows(rows)
    assert_allclose(some.outcome.time, time[rows])
    assert_allclose(some.censoring.own, whole.censoring.own[rows])
    places = list(zip(whole.outcome.group_stratum, whole.outcome.group_time, strict=True))
    own = zip(some.outcome.group_stratum, some.outcome.group_time, strict=True)
    for g, place in enumerate(own):
        if not np.isnan(place[1]):
            of_whole = whole.censoring.at_events[:, places.index(place)]
            assert_allclose(some.censoring.at_events[:, g], of_whole)


def test_columns_that_vary_only_in_rows_that_do_not_count() -> None:
    time = np.arange(1.0, 13.0)
    event = (time > 3).astype(int)  # rows 0 to 2 leave before the first event
    weight = np.ones(12)
    weight[11] = 0.0
    x = np.zeros((12, 5))
    x[:3, 0] = 1.0  # only rows never at risk
    x[11, 1] = 1.0  # only the row without weight
    x[3:11, 2] = 1.0  # all that count
    x[[0, 5, 6, 7, 8, 11], 3] = 1.0
    x[5, 4] = 1.0  # one row: counting does not show it, the look at the rows does
    for form in (x, sp.csc_array(x)):
        fit = rs.Cox(penalty=rs.L2(1.0)).fit(form, rs.Surv(time, event), sample_weight=weight)
        assert (fit.coef_ == 0).tolist() == [True, True, True, False, False]
