"""Fine and Gray's model with late entry: what it refuses, and what follows a fit."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from estimators.finegray import TOL, fit
from estimators.late_entry import Problem, observed_before, problem, split
from riskset._runtime import Runtime
from riskset.model.censoring import CensoringDistribution
from riskset.model.finegray import FineGrayLoss


def simulated(rng, n=400, n_times=10):
    """Covariates, and outcomes of people who enter late; the first rows are at risk all along."""
    x = rng.normal(size=(n, 3))
    entry = np.floor(n_times * rng.exponential(0.4, n))
    time = entry + np.ceil(n_times * rng.exponential(np.exp(-0.7 * x[:, 0])))
    event = rng.choice(3, size=n, p=[0.3, 0.4, 0.3])
    entry[:10], time[:10], event[:10] = 0.0, time.max() + 1, 0
    return x, rs.Surv(time, event, entry)


# ------------------------------------------------------------------------------------- refusals


def test_an_empty_risk_set_is_refused():
    """Row 0 has a competing event before everybody leaves; what follows cannot weigh it."""
    x = np.array([0.5, 1.0, 0.0, 0.3, 1.0, 0.2])[:, None]
    time, event = [2.0, 3.0, 7.0, 8.0, 9.0, 9.5], [2, 0, 1, 2, 1, 0]
    entry = [0.0, 0.0, 4.0, 5.0, 5.0, 4.0]
    y = rs.Surv(time, event, entry)
    with pytest.raises(rs.InputError, match=r"just before time 4, .* 1 row with") as caught:
        rs.FineGray().fit(x, y)
    assert "leave out the rows that end by 4, or those that enter then or later." in str(
        caught.value
    )
    kept = np.array(time) > 4
    assert rs.FineGray(rs.L2(1.0)).fit(x[kept], y[kept]).status_ == "converged"
    # A censored row, or one with the event of interest, needs no weight.
    for code in (0, 1):
        y["event"][0] = code
        model = rs.FineGray(rs.L2(1.0)).fit(x, y)
        assert model.status_ == "converged"
    # Nor does it where no event of interest follows in its stratum.
    y["event"][0] = 2
    strata = [0, 0, 1, 1, 1, 1]
    assert rs.FineGray(rs.L2(1.0)).fit(x, y, strata=strata).status_ == "converged"
    # Other groups of censoring know nothing of each other.
    with pytest.raises(rs.InputError, match="just before time 4"):
        rs.FineGray(censoring_group=[0, 0, 0, 0, 1, 1]).fit(x, y)


def test_weights_on_either_side_of_an_empty_risk_set():
    """Both sides have competing events and events, in strata: each by itself has that weight."""
    x = np.array([0.5, 1.0, 0.0, 0.3, 1.0, 0.2, 0.1, 0.9])[:, None]
    time = np.array([2.0, 3.0, 3.5, 3.8, 8.0, 9.0, 9.5, 9.7])
    entry = np.array([0.0, 0.0, 2.5, 0.0, 5.0, 5.0, 8.5, 5.0])
    event = np.array([2, 0, 1, 0, 2, 1, 1, 0])
    stratum = np.repeat([0, 1], 4)
    model = fit(x, rs.Surv(time, event, entry), rs.L2(1.0), strata=stratum)
    sides = [
        fit(x[of], rs.Surv(time[of], event[of], entry[of]), rs.L2(1.0))
        for of in (stratum == 0, stratum == 1)
    ]
    total = sum(side.null_log_likelihood_ for side in sides)
    assert_allclose(model.null_log_likelihood_, total, rtol=1e-13)


def test_rows_that_follow_each_other_need_a_word():
    x = np.arange(6.0)[:, None] % 4
    y = rs.Surv([3, 6, 2.5, 7, 8, 9], [0, 1, 2, 1, 1, 1], [0, 3, 0, 0, 2, 1])
    cluster = ["a", "a", "b", "c", "d", "e"]
    with pytest.raises(rs.InputError, match=r"rows 0 and 1 of one cluster .*time 3") as caught:
        rs.FineGray().fit(x, y, cluster=cluster)
    assert "`person='cluster'`" in str(caught.value)
    assert "`person='row'`" in str(caught.value)
    models = [fit(x, y, rs.L2(1.0), cluster=cluster, person=who) for who in ("cluster", "row")]
    # Leaving and entering at one time cancel in G H, unless the rows are of different groups.
    assert_allclose(models[0].log_likelihood_, models[1].log_likelihood_, rtol=1e-13)
    group = np.array([0, 1, 1, 1, 1, 1])
    apart = [
        fit(x, y, rs.L2(1.0), cluster=cluster, person=who, censoring_group=group).log_likelihood_
        for who in ("cluster", "row")
    ]
    assert_allclose(apart[0], models[0].log_likelihood_, rtol=1e-13)
    assert abs(apart[1] - apart[0]) > 0.1
    assert models[1].log_likelihood_ == fit(x, y, rs.L2(1.0)).log_likelihood_
    # Row 0 is not censored: G is 1.
    known = fit(x, y, rs.L2(1.0), censoring_probability=h_of(y, first=[0, 2, 3, 4, 5]))
    assert_allclose(models[0].log_likelihood_, known.log_likelihood_, rtol=1e-13)


def h_of(y, first):
    """H(time-) by its definition, where these rows are the first of people."""
    out = np.ones(len(y))
    for u in np.unique(y["entry"][first])[1:]:
        entering = np.count_nonzero(y["entry"][first] == u)
        there = np.count_nonzero((y["entry"] <= u) & (u < y["time"]))
        out *= np.where(y["time"] <= u, 1 - entering / there, 1.0)
    return out


BAD_PEOPLE = [
    (
        {"entry": [0, 4, 0, 0, 2, 1]},
        r"`entry` must be the time at which .* \(first: row 1, value 4",
    ),
    (
        {"entry": [0, 2, 0, 0, 4, 1]},
        r"`entry` must be the time at which .* \(first: row 1, value 2",
    ),
    ({"event": [2, 1, 2, 1, 0, 1]}, r"`event` must be 0 in every row .* \(first: row 0, value 2"),
    ({"cluster": None}, "`person='cluster'` needs clusters"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_PEOPLE, ids=["gap", "overlap", "event", "no"])
def test_rows_of_people(changes, message):
    given = {
        "time": [3, 6, 5, 7, 8, 9],
        "event": [0, 1, 2, 1, 0, 1],
        "entry": [0, 3, 0, 0, 2, 1],
        "cluster": [0, 0, 1, 2, 3, 4],
    } | changes
    y = rs.Surv(given["time"], given["event"], given["entry"])
    with pytest.raises(rs.InputError, match=message):
        rs.FineGray(person="cluster").fit(np.eye(6)[:, :1], y, cluster=given["cluster"])


@pytest.mark.parametrize("entry", [None, np.zeros(6)])
def test_rows_of_a_person_that_all_begin_at_the_start_overlap(entry):
    y = rs.Surv([3, 6, 5, 7, 8, 9], [0, 1, 2, 1, 0, 1], entry)
    model = rs.FineGray(person="cluster")
    with pytest.raises(
        rs.InputError, match="rows 1 and 3 of one cluster overlap: both are at risk"
    ):
        model.fit(np.arange(6.0)[:, None] % 4, y, cluster=[0, 1, 2, 1, 3, 4])
    model.fit(np.arange(6.0)[:, None] % 4, y, cluster=np.arange(6))  # a row each
    weight = [1, 1, 1, 0, 1, 1]
    model.fit(np.arange(6.0)[:, None] % 4, y, sample_weight=weight, cluster=[0, 1, 2, 1, 3, 4])


def test_a_person_is_a_row_or_a_cluster():
    with pytest.raises(rs.InputError, match="person"):
        rs.FineGray(person="site").fit(np.eye(3), rs.Surv([1, 2, 3], [1, 2, 1]))


def test_entries_before_anything_happened_say_nothing():
    x = np.arange(3.0)[:, None]
    one = fit(x, rs.Surv([2.0, 3.0, 4.0], [1, 2, 1], [0.0, 1.0, 0.0]), rs.L2(1.0))
    two = fit(x, rs.Surv([2.0, 3.0, 4.0], [1, 2, 1]), rs.L2(1.0))
    assert_array_equal(one.coef_, two.coef_)


def test_blocks_are_refused():
    x, y = simulated(np.random.default_rng(1), 40)
    blocks = rs.Blocks(lambda part: {"X": x, "y": y}, [0], engine=None)
    with pytest.raises(rs.InputError, match="late entry"):
        rs.FineGray().fit(blocks)
    with pytest.raises(rs.InputError, match="`person` does not fit in blocks"):
        rs.FineGray(person="row").fit(blocks)


# ------------------------------------------------------------------------------- after the fit


def test_infinite_estimate(rng):
    """No event among the exposed: the others' estimate is as if they were absent."""
    x, y = simulated(rng, 200)
    exposed = (np.arange(200) % 2 == 0) & (y["event"] != 1)
    own = CensoringDistribution.estimate(
        rs.Outcome.build(y["time"], y["event"], entry=y["entry"], cause=1)
    ).own
    both = np.column_stack([x[:, 0], exposed])
    model = fit(both, y, censoring_probability=own)
    assert model.status_ == "infinite_estimate"
    assert model.coef_[1] == -np.inf
    kept = ~exposed
    alone = fit(x[kept, :1], y[kept], censoring_probability=own[kept])
    assert_allclose(model.coef_[0], alone.coef_[0], rtol=1e-7)
    assert_allclose(model.log_likelihood_, alone.log_likelihood_, rtol=1e-9)
    assert_allclose(model.robust_variance_[0, 0], alone.robust_variance_[0, 0], rtol=1e-6)
    estimated = fit(both, y)
    assert estimated.coef_[1] == -np.inf
    assert np.isfinite(estimated.robust_standard_error_[0])


def test_a_wide_range_of_linear_predictors(rng):
    """An offset that one exponent cannot hold: strata far apart are as if alone."""
    x, y = simulated(rng, 300)
    stratum = rng.integers(0, 2, 300)
    stratum[:2] = [0, 1]
    far = fit_offset(x, y, stratum, np.where(stratum == 0, 0.0, 1500.0))
    near = fit_offset(x, y, stratum, np.zeros(300))
    assert_allclose(far.coef_, near.coef_, rtol=1e-7)
    assert_allclose(far.robust_variance_, near.robust_variance_, rtol=1e-6)


def fit_offset(x, y, stratum, offset):
    return rs.FineGray(tol=TOL).fit(x, y, strata=stratum, offset=offset)


def test_copies_files_and_other_ways_to_fit(rng, tmp_path):
    x, y = simulated(rng)
    cluster = np.arange(400)
    model = fit(x, y, person="cluster", cluster=cluster, censoring_ties="finegray")
    _ = model.robust_variance_
    model.save(tmp_path / "fit.riskset")
    for again in (pickle.loads(pickle.dumps(model)), rs.load(tmp_path / "fit.riskset")):
        assert again.person == "cluster"
        assert_array_equal(again.coef_, model.coef_)
        assert_array_equal(again.robust_variance_, model.robust_variance_)
        assert_array_equal(
            again.predict_cumulative_incidence(x[:4], [1.0, 5.0, 30.0]),
            model.predict_cumulative_incidence(x[:4], [1.0, 5.0, 30.0]),
        )
    (each,) = rs.fit_each([rs.FineGray(tol=TOL, censoring_ties="finegray")], x, y)
    assert_array_equal(each.coef_, model.coef_)
    sweeps = fit(x, y, censoring_ties="finegray", solver="ccd")
    assert_allclose(sweeps.coef_, model.coef_, rtol=1e-6, atol=1e-8)
    result = rs.path(rs.FineGray(rs.L1(1.0), censoring_ties="finegray"), x, y, n_penalties=5)
    assert set(result.statuses) == {"converged"}
    alone = fit(x, y, result.penalties[-1], censoring_ties="finegray")
    assert_allclose(result.model(-1).coef_, alone.coef_, atol=1e-7)


def test_dataset_and_column_names(rng):
    pd = pytest.importorskip("pandas")
    x, y = simulated(rng)
    site = np.where(rng.random(400) < 0.5, "a", "b")
    site[:10] = ["a", "b"] * 5
    frame = pd.DataFrame(x, columns=["u", "v", "w"]).assign(
        stop=y["time"], start=y["entry"], event=y["event"], site=site
    )
    data = rs.Dataset.from_frame(frame, time="stop", entry="start", censoring_group="site")
    assert_allclose(fit(data, None).coef_, fit(x, y, censoring_group=site).coef_, rtol=1e-9)


def test_profile_is_the_likelihood_with_one_coefficient_held(rng):
    x, y = simulated(rng)
    model = fit(x, y)
    found = rs.profile(model, x, y, parameter="x0", grid=[0.2, 0.9])
    for value, log_likelihood in zip(found.values, found.log_likelihood, strict=True):
        held = rs.FineGray(tol=TOL).fit(x[:, 1:], y, offset=value * x[:, 0])
        assert_allclose(log_likelihood, held.log_likelihood_, rtol=1e-9)
    ends = model.confidence_interval(["x0"], method="profile")["x0"]
    assert ends[0] < model.coef_[0] < ends[1]


def test_a_resample_estimates_both_distributions_anew(rng):
    x, y = simulated(rng)
    model = rs.FineGray(tol=TOL).fit(x, y)
    boot = model.bootstrap(replicates=12, seed=3)
    assert boot.statuses == ("converged",) * 12
    loss = model._fitted.training.loss
    weight = rng.multinomial(400, np.full(400, 1 / 400)).astype(float)
    weight[:10] = 1.0
    eta = 0.3 * x[:, 0]
    again = fit_loss(y, weight)
    replicate = loss.replicate(weight, weight)
    assert_allclose(
        replicate.evaluate(eta).log_likelihood, again.evaluate(eta).log_likelihood, rtol=1e-12
    )
    assert_allclose(replicate.evaluate(eta).residual, again.evaluate(eta).residual, atol=1e-11)


def fit_loss(y, weight):
    outcome = rs.Outcome.build(y["time"], y["event"], entry=y["entry"], weight=weight, cause=1)
    return FineGrayLoss(outcome, CensoringDistribution.estimate(outcome), Runtime(1))


def test_bootstrap_of_people_draws_all_their_rows():
    p = problem(np.random.default_rng(7))
    entry, time, event, row = split(p, p.rng)
    y = rs.Surv(time, event, entry)
    model = fit(p.x[row], y, cluster=row, person="cluster")
    whole = fit(p.x, p.y, cluster=np.arange(60), person="cluster")
    one, other = (m.bootstrap(replicates=8, seed=2) for m in (model, whole))
    assert_allclose(one.replicates, other.replicates, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("score", ["held_out", "difference"])
def test_cross_validation_weighs_held_out_rows_by_the_training_rows(score, rng):
    x, y = simulated(rng, 240)
    fold = np.arange(240) % 3
    found = rs.cross_validate(
        rs.FineGray(rs.L2(1.0)), x, y, folds=fold, repeats=1, score=score, tol_replicates=1e-10
    )
    for k in range(3):
        out = fold == k
        model = fit(x[~out], y[~out], rs.L2(1.0))
        eta, train = x @ model.coef_, np.where(out, 0.0, 1.0)
        own, at = both_before(y, train)
        value = {
            "all": by_definition(y, eta, np.ones(240), own, at),
            "train": by_definition(y, eta, train, own, at),
            "out": by_definition(y, eta, 1.0 - train, own, at),
        }
        want = value["out"] if score == "held_out" else value["all"] - value["train"]
        assert_allclose(found.scores[0, k], want, rtol=1e-7)


def both_before(y, weight):
    """G(t-) H(t-) of some rows, at the time of each row and of any event."""
    n = len(y)
    zero = np.zeros(n, dtype=int)
    p = Problem(zero, y["entry"], y["time"], y["event"], weight, zero, zero, None)
    own = observed_before(p, weight, y["time"], "crr")
    return own, lambda t: observed_before(p, weight, [t], "crr")[0]


def by_definition(y, eta, weight, own, at):
    time, event, total = y["time"], y["event"], 0.0
    for t in np.unique(time[(event == 1) & (weight > 0)]):
        now = (y["entry"] < t) & (t <= time)
        later = (time < t) & (event == 2)
        share = np.where(now, 1.0, np.where(later, at(t) / own, 0.0)) * weight * np.exp(eta)
        failing = (time == t) & (event == 1)
        total += weight[failing] @ eta[failing] - weight[failing].sum() * np.log(share.sum())
    return total


def test_cross_validated_penalty(rng):
    x, y = simulated(rng)
    model = rs.FineGrayCV(folds=3, repeats=1, penalties=[rs.L1(1.0), rs.L1(30.0)]).fit(x, y)
    assert model.status_ == "converged"
    assert_allclose(model.coef_, fit(x, y, model.best_penalty_).coef_, atol=1e-6)


def test_a_resample_with_an_empty_risk_set_leaves_the_factor_out():
    """Without row 1, nobody is at risk before row 2 enters: its factor of H is left out."""
    time, event = np.array([2.0, 9.0, 7.0, 8.0, 6.0]), np.array([2, 0, 1, 1, 0])
    entry = np.array([0.0, 0.0, 4.0, 5.0, 5.0])
    y = rs.Surv(time, event, entry)
    loss = fit_loss(y, np.ones(5))
    replicate = loss.replicate(*[np.array([1.0, 0.0, 1.0, 1.0, 1.0])] * 2)
    # Of the last four rows alone, at 4 one enters; of three at risk after 5 two do: H(2-) / H(7-)
    # is 1/3, and G(7-) = 2/3.
    expected = np.log(2 + 1 / (1 / 3) * 2 / 3) + np.log(1 + 1 / (1 / 3) * 2 / 3)
    assert_allclose(-replicate.evaluate(np.zeros(5)).log_likelihood, expected, rtol=1e-13)


def test_concordance_by_hand():
    """Row 1 had the other event at 2; row 3 enters at 3, after the event of row 0 at 1."""
    y = rs.Surv([1.0, 2.0, 3.0, 6.0, 5.0], [1, 2, 0, 0, 1], [0.0, 0.0, 0.0, 3.0, 0.0])
    x = np.array([[2.0], [1.0], [-1.0], [0.5], [0.0]])
    model = fit(x, y, rs.L2(1.0))
    sign = np.sign(model.coef_[0])
    # Pairs: 0 with 1, 2, 4, all below it; 4 with 1 and 3, both above it.
    share = 3 / 5 if sign > 0 else 2 / 5
    assert model.score(x, y) == pytest.approx(share)


# ------------------------------------------------------------------------------- what it is for


def truncated(rng, n, beta, late):
    """People from a model with known subdistribution hazards; those who enter in time are seen."""
    x = (rng.random(n) < 0.5).astype(float)
    p = 0.5
    one = rng.random(n) < 1 - (1 - p) ** np.exp(beta * x)
    # F_1(t | x) = 1 - (1 - p (1 - e^-t))^exp(beta x), inverted for those with cause 1.
    u = rng.random(n) * (1 - (1 - p) ** np.exp(beta * x))
    first = -np.log(1 - (1 - (1 - u) ** np.exp(-beta * x)) / p)
    second = rng.exponential(np.exp(-0.8 * x))  # depends on x: truncation selects
    time = np.where(one, first, second)
    entry = 1.5 * rng.random(n) * late
    end = entry + rng.exponential(2.0, n)
    seen = time > entry
    event = np.where(time <= end, np.where(one, 1, 2), 0)
    return x[seen, None], np.minimum(time, end)[seen], event[seen], entry[seen]


@pytest.mark.slow
def test_the_truth_under_truncation_and_not_without_its_weights():
    beta, rng = 0.7, np.random.default_rng(20)
    x, time, event, entry = truncated(rng, 60_000, beta, late=True)
    y = rs.Surv(time, event, entry)
    model = rs.FineGray().fit(x, y)
    error = float(model.robust_standard_error_[0])
    assert error < 0.05
    assert abs(model.coef_[0] - beta) < 4 * error
    # By G alone, as if those who could not enter were there: rows after a competing event are few.
    outcome = rs.Outcome.build(time, event, entry=entry, cause=1)
    g = censoring_alone(outcome)
    naive = rs.FineGray(censoring_probability=g).fit(x, y)
    assert abs(naive.coef_[0] - beta) > 4 * float(naive.robust_standard_error_[0])


def censoring_alone(outcome):
    """G(time-) among who is at risk, without ties."""
    order = np.argsort(outcome.time)
    time, entry = outcome.time[order], np.sort(outcome.entry)
    at_risk = np.searchsorted(entry, time) - np.arange(time.size)
    factor = np.where(outcome.event[order] == 0, 1 - 1 / at_risk, 1.0)
    out = np.empty(time.size)
    out[order] = np.append(1.0, np.cumprod(factor)[:-1])
    return out
