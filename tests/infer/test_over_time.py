"""Effects in intervals of time against R's survival, and by hand.

The numbers are those of `Rscript over_time.R` with survival 3.5-3: the split data, at the constant
coefficient, one step without iterating::

    s <- survSplit(Surv(start, stop, event) ~ ., d, cut = head(ends, -1), episode = "k")
    X <- sapply(seq_along(ends), function(k) s$x * (s$k == k))
    m <- coxph(Surv(start, stop, event) ~ X + strata(st), s, weights = w, ties = ties,
               init = rep(b, length(ends)), iter = 0, robust = FALSE)
    I <- diag(solve(m$var)); u <- resid(m, "score", weighted = TRUE); r <- rowsum(u, s$cl)
    rbind(b + colSums(u) / I, 1 / sqrt(I), sqrt(colSums(r^2)) / I)

with ``ends = sort(t)[ceiling(length(t) * 1:K / K)]`` of the times of events; for Fine and Gray's
model on the data of ``finegray(Surv(time, factor(event)) ~ ., d, etype = "1")``.
"""

from pathlib import Path

import numpy as np
import pytest

import riskset as rs
from riskset.infer.over_time import effect_over_time

GOLDEN = Path(__file__).parents[1] / "golden"
VETERAN = np.genfromtxt(GOLDEN / "veteran.csv", delimiter=",", names=True)
MGUS = np.genfromtxt(GOLDEN / "mgus2.csv", delimiter=",", names=True)


def over_time(model, x, y, n_intervals, cluster=None, **given):
    model.fit(rs.Design.from_columns({"x": x}), y, **given)
    design = rs.Design.from_columns({"x": x})
    own = (given.get("sample_weight"), given.get("strata"), None, None)
    at = model._evaluated(design, y, *own)
    return effect_over_time(*at, 0, float(model.coef_[0]), n_intervals, cluster)


CASES = {
    "breslow": [
        [-0.115352548, 0.752734196, 0.102526460, -0.774908636],
        [0.353595769, 0.354421942, 0.358988930, 0.380048280],
        [0.349532020, 0.352810872, 0.358701255, 0.330116877],
    ],
    "efron": [
        [-0.114824368, 0.756615521, 0.105719557, -0.777365231],
        [0.353595871, 0.354430049, 0.359028641, 0.380078543],
        [0.351797810, 0.354949728, 0.360683860, 0.330927931],
    ],
}


@pytest.mark.parametrize("ties", CASES)
def test_veteran(ties):
    y = rs.Surv(VETERAN["time"], VETERAN["event"])
    found = over_time(rs.Cox(ties=ties), VETERAN["trt"], y, 4)
    assert found.end.tolist() == [22, 61, 144, 999]
    assert found.start.tolist() == [0, 22, 61, 144]
    assert found.events.tolist() == [32] * 4
    for own, golden in zip((found.coef, found.se_model), CASES[ties], strict=False):
        assert own == pytest.approx(golden, rel=1e-7)
    # The mean over the steps of tied events, where R takes each step by itself.
    robust = {"breslow": 1e-7, "efron": 3e-5}
    assert found.se_robust == pytest.approx(CASES[ties][2], rel=robust[ties])


def test_weights_strata_and_clusters():
    """Weights age / 60, strata the cell type, clusters the Karnofsky score."""
    y = rs.Surv(VETERAN["time"], VETERAN["event"])
    given = {"sample_weight": VETERAN["age"] / 60, "strata": VETERAN["stratum"]}
    found = over_time(rs.Cox(), VETERAN["trt"], y, 4, VETERAN["karno"], **given)
    golden = [
        [-0.110571343, 0.733930622, 0.190020006, -0.585521501],
        [0.378953573, 0.369264592, 0.392808301, 0.492498553],
        [0.367014110, 0.377328582, 0.307492031, 0.595936668],
    ]
    for own, values in zip((found.coef, found.se_model, found.se_robust), golden, strict=True):
        assert own == pytest.approx(values, rel=1e-7)


def test_fine_and_gray():
    y = rs.Surv(MGUS["time"], MGUS["event"])
    model = rs.FineGray(cause=1, censoring_ties="finegray")
    found = over_time(model, MGUS["male"], y, 3)
    assert found.end.tolist() == [45, 101, 373]
    golden = [
        [-0.396977246, -0.0726462089, -0.181140676],
        [0.324481131, 0.3245064584, 0.324530287],
        [0.323625280, 0.3247433982, 0.320782301],
    ]
    for own, values in zip((found.coef, found.se_model, found.se_robust), golden, strict=True):
        assert own == pytest.approx(values, rel=1e-6)


def test_the_constant_effect_is_their_mean():
    y = rs.Surv(VETERAN["time"], VETERAN["event"])
    model = rs.Cox(ties="efron")
    found = over_time(model, VETERAN["trt"] * 2.5, y, 6)
    mean = np.average(found.coef, weights=found.se_model**-2)
    assert mean == pytest.approx(model.coef_[0], abs=1e-9)
    # In units of the covariate.
    other = over_time(model, VETERAN["trt"], y, 6)
    assert found.coef * 2.5 == pytest.approx(other.coef, abs=1e-8)
    assert found.se_robust * 2.5 == pytest.approx(other.se_robust, rel=1e-8)


def test_events_at_one_time_stay_together():
    """60 events, 45 of them on day 1: thirds end on days 1, 1 and 16."""
    time = np.r_[np.ones(45), 1 + np.arange(1, 16), np.full(20, 30)]
    y = rs.Surv(time, np.r_[np.ones(60), np.zeros(20)].astype(int))
    found = over_time(rs.Cox(), np.arange(80.0) % 2, y, 3)
    assert found.end.tolist() == [1, 16]
    assert found.events.tolist() == [45, 15]


def test_too_few_events_for_two_intervals():
    y = rs.Surv(np.arange(1.0, 40), np.ones(39, dtype=int))
    assert over_time(rs.Cox(), np.arange(39.0) % 2, y, 6) is None
    y = rs.Surv(np.arange(1.0, 41), np.ones(40, dtype=int))
    assert over_time(rs.Cox(), np.arange(40.0) % 2, y, 6).events.tolist() == [20, 20]
