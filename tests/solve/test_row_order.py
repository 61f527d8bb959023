"""Fits with the rows in risk order are the same fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import riskset as rs
from riskset.solve import fit


@pytest.mark.parametrize(
    ("estimator", "late"), [(rs.Cox, False), (rs.Cox, True), (rs.FineGray, False)]
)
def test_same_fit(estimator: type, late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    n = 400
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
    ordered = estimator(penalty=rs.L1(1.0), **options).fit(x, y, **given)
    assert ordered.status_ == plain.status_ == "converged"
    assert_allclose(ordered.coef_, plain.coef_, rtol=1e-5, atol=1e-7)
    assert_allclose(ordered.objective_, plain.objective_, rtol=1e-12)
    at = {"strata": given["strata"], "offset": given["offset"]}
    assert_allclose(
        ordered.predict_survival_function(x, [5.0, 20.0], **at),
        plain.predict_survival_function(x, [5.0, 20.0], **at),
        rtol=1e-5,
    )
