"""Held-out scores against case 20 and sums written out; Fine-Gray's; folds; checkpoints."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from cases import brute_force as exact

CASE = Path(__file__).parents[1] / "cases" / "20-cv-folds-without-events"
TIGHT = {"tol_replicates": 1e-12}


# ------------------------------------------------------------------- sums written out (O(n^2))


class Cohort:
    """Ties, strata, late entry, fractional weights (some 0), offsets."""

    def __init__(self, seed, n=60, p=3):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(n, p))
        self.entry = rng.integers(0, 4, n) * 1.0
        self.time = self.entry + rng.integers(1, 12, n)
        self.event = (rng.random(n) < 0.6).astype(int)
        self.stratum = rng.integers(0, 2, n)
        self.weight = rng.choice([0.0, 0.5, 1.0, 2.5], n, p=[0.1, 0.3, 0.3, 0.3])
        self.offset = rng.normal(size=n)
        self.fold = rng.integers(0, 4, n)
        self.y = rs.Surv(self.time, self.event, self.entry)

    def log_likelihood(self, rows, coef, *, efron):
        """Of some rows by themselves."""
        rows = [i for i in rows if self.weight[i] > 0]
        total, _, _ = exact.cox(
            coef, self.x[rows], self.time[rows], self.event[rows], self.entry[rows],
            self.weight[rows], self.stratum[rows], self.offset[rows],
            ties="efron" if efron else "breslow",
        )  # fmt: skip
        return float(total)


# ------------------------------------------------------------------------------------ case 20


@pytest.fixture(scope="module")
def case20() -> tuple[dict, pd.DataFrame]:
    return json.loads((CASE / "expected.json").read_text()), pd.read_csv(CASE / "input.csv")


@pytest.mark.parametrize(("score", "column"), [("difference", 0), ("held_out", 1)])
def test_scores_of_case_20(case20: tuple, score: str, column: int) -> None:
    expected, table = case20
    x, y = table[["x1", "x2"]].to_numpy(), rs.Surv(table["time"], table["event"])
    penalties = [rs.L2(row["l2"]) for row in expected["results"]]
    model = rs.CoxCV(
        penalties=penalties, folds=table["fold"].to_numpy(), score=score, tol=1e-12, **TIGHT
    ).fit(x, y)
    found = model.cross_validation_
    assert found.folds.tolist() == [1, 2, 3, 4, 5]
    by_l2 = {p.l2: k for k, p in enumerate(found.penalties)}
    for row in expected["results"]:
        k = by_l2[row["l2"]]
        values = np.array(row["per_fold_vvh_and_heldout"])[:, column]
        assert_allclose(found.scores[k], values, rtol=1e-9, atol=1e-9)
        total = row["vvh_total" if column == 0 else "heldout_total"]
        assert_allclose(found.mean[k], total / 5, rtol=1e-9)
        assert_allclose(found.se[k], np.std(values, ddof=1) / np.sqrt(5), rtol=1e-8)
    best = max(
        expected["results"], key=lambda row: np.sum(row["per_fold_vvh_and_heldout"], 0)[column]
    )
    assert model.best_penalty_.l2 == best["l2"]


def test_a_training_set_without_events(case20: tuple) -> None:
    _, table = case20
    x, y = table[["x1", "x2"]].to_numpy(), rs.Surv(table["time"], table["event"])
    ids = table["fold_all_events_in_1"].to_numpy()
    found = rs.cross_validate(rs.Cox(rs.L2(1.0)), x, y, folds=ids, **TIGHT)
    # No event in training: all coefficients are 0, and the score is the null log likelihood.
    assert found.n_nonzero_replicates[0, 0] == 0
    first = ids == 1
    time, event = table["time"][first].to_numpy(), table["event"][first].to_numpy()
    null = -sum(np.log((time >= t).sum()) for t in time[event == 1])
    assert_allclose(found.scores[0, 0], null, rtol=1e-12)
    assert_array_equal(found.scores[0, 1:], 0.0)  # all others have no event
    assert np.isfinite(found.se[0])


@pytest.mark.parametrize(("score", "column"), [("difference", 0), ("held_out", 1)])
def test_scores_of_case_20_with_all_events_in_one_fold(
    case20: tuple, score: str, column: int
) -> None:
    expected, table = case20
    x, y = table[["x1", "x2"]].to_numpy(), rs.Surv(table["time"], table["event"])
    ids = table["fold_all_events_in_1"].to_numpy()
    for row in expected["results_fold_all_events_in_1"]:
        model = rs.Cox(rs.L2(row["l2"]))
        found = rs.cross_validate(model, x, y, folds=ids, score=score, **TIGHT)
        values = np.array(row["per_fold_vvh_and_heldout"])[:, column]
        assert_allclose(found.scores[0], values, rtol=1e-9, atol=1e-9)
        total = row["vvh_total" if column == 0 else "heldout_total"]
        assert_allclose(5 * found.mean[0], total, rtol=1e-9)


# -------------------------------------------------------------------------------- brute force


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_scores_in_80_bits(seed: int, ties: str) -> None:
    """Cyclops' out-of-fold score, fits and all from the brute force of the cases."""
    c, l2 = Cohort(seed, n=40, p=2), 0.7
    found = rs.cross_validate(
        rs.Cox(rs.L2(l2), ties=ties),
        c.x,
        c.y,
        folds=c.fold,
        sample_weight=c.weight,
        strata=c.stratum,
        offset=c.offset,
        **TIGHT,
    )

    def likelihood(rows: np.ndarray) -> object:
        given = {"start": c.entry, "w": c.weight, "strata": c.stratum, "offset": c.offset}
        parts = {name: values[rows] for name, values in given.items()}
        return lambda b: exact.cox(b, c.x[rows], c.time[rows], c.event[rows], ties=ties, **parts)

    for k in range(4):
        train = np.flatnonzero((c.fold != k) & (c.weight > 0))
        out = np.flatnonzero((c.fold == k) & (c.weight > 0))
        coef, _ = exact.fit(likelihood(train), 2, l2=l2)
        assert_allclose(found.scores[0, k], float(likelihood(out)(coef)[0]), rtol=1e-9)


def test_scores_of_a_lasso_in_80_bits() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(60, 3))
    time, event = rng.exponential(np.exp(-x @ [0.8, -0.6, 0.0])), rng.random(60) < 0.7
    fold = np.arange(60) % 3
    found = rs.cross_validate(rs.Cox(rs.L1(1.0)), x, rs.Surv(time, event), folds=fold, **TIGHT)
    for k in range(3):
        train, out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)

        def likelihood(b: object, rows: np.ndarray = train) -> tuple:
            return exact.cox(b, x[rows], time[rows], event[rows])

        # Every pattern of signs; the best of those that agree with their own signs.
        best = (-np.inf, None)
        for signs in itertools.product([-1, 0, 1], repeat=3):
            held = {j: 0.0 for j in range(3) if signs[j] == 0}
            coef, _ = exact.fit(likelihood, 3, l1=1.0, l1sign=signs, fixed=held)
            value = float(likelihood(coef)[0] - np.abs(coef).sum())
            if (np.sign(coef.astype(float)) == signs).all() and value > best[0]:
                best = (value, coef)
        assert found.n_nonzero_replicates[0, k] == np.count_nonzero(best[1])
        assert_allclose(found.scores[0, k], float(likelihood(best[1], out)[0]), rtol=1e-8)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("score", ["held_out", "difference"])
@pytest.mark.parametrize("seed", [1, 2])
def test_scores_are_the_sums_written_out(ties: str, score: str, seed: int) -> None:
    c = Cohort(seed)
    model = rs.Cox(rs.ElasticNet(l1=0.5, l2=1.0, unpenalized=[0]), ties=ties, tol=1e-11)
    more = {"strata": c.stratum, "offset": c.offset}
    found = rs.cross_validate(
        model, c.x, c.y, folds=c.fold, score=score, sample_weight=c.weight, **more, **TIGHT
    )
    everyone = range(len(c.time))
    for k in range(4):
        train = np.flatnonzero(c.fold != k)
        parts = {name: value[train] for name, value in more.items()}
        alone = rs.Cox(model.penalty, ties=ties, tol=1e-11).fit(
            c.x[train], c.y[train], sample_weight=c.weight[train], **parts
        )
        efron = ties == "efron"
        if score == "held_out":
            expected = c.log_likelihood(np.flatnonzero(c.fold == k), alone.coef_, efron=efron)
        else:
            expected = c.log_likelihood(everyone, alone.coef_, efron=efron)
            expected -= c.log_likelihood(train, alone.coef_, efron=efron)
        assert_allclose(found.scores[0, k], expected, rtol=1e-8)
        assert found.kkt[0, k] <= 1e-12


class Competing:
    """Competing risks, with ties, weights and strata."""

    def __init__(self, seed, n=70):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(n, 2))
        self.time = rng.integers(1, 25, n) * 1.0
        self.event = rng.choice([0, 1, 2], n, p=[0.3, 0.4, 0.3])
        self.weight = rng.choice([1.0, 2.0], n)
        self.stratum = rng.integers(0, 2, n)
        self.fold = rng.integers(0, 3, n)
        self.y = rs.Surv(self.time, self.event)

    def survival_of_censoring(self, source):
        """G(t-), by cmprsk's rule for ties; where nobody of the source is left, carried on."""
        times = sorted({self.time[i] for i in source if self.event[i] == 0})

        def before(t):
            g = 1.0
            for u in times:
                at_risk = sum(self.weight[i] for i in source if self.time[i] >= u)
                now = sum(
                    self.weight[i] for i in source if self.time[i] == u and self.event[i] == 0
                )
                if u < t and now < at_risk:
                    g *= 1 - now / at_risk
            return g

        return before

    def log_likelihood(self, rows, eta, g, *, faulty=False):
        """Fine and Gray's, of some rows by themselves."""
        total = 0.0
        codes = (1, 2) if faulty else (1,)
        for i in rows:
            if self.event[i] not in codes:
                continue
            at_risk = 0.0
            for j in rows:
                if self.stratum[j] != self.stratum[i]:
                    continue
                share = 1.0 if self.time[j] >= self.time[i] else 0.0
                if share == 0 and self.event[j] == 2:
                    share = g(self.time[i]) / g(self.time[j])
                at_risk += share * self.weight[j] * np.exp(eta[j])
            total += self.event[i] * self.weight[i] * (eta[i] - np.log(at_risk))
        return total


@pytest.mark.parametrize("censoring", ["training", "full"])
@pytest.mark.parametrize("score", ["held_out", "difference"])
def test_fine_gray_scores_are_the_sums_written_out(censoring: str, score: str) -> None:
    c = Competing(3)
    model = rs.FineGray(rs.L2(1.5), tol=1e-11)
    found = rs.cross_validate(
        model,
        c.x,
        c.y,
        folds=c.fold,
        score=score,
        censoring=censoring,
        sample_weight=c.weight,
        strata=c.stratum,
        **TIGHT,
    )
    rows = np.arange(len(c.time))
    for k in range(3):
        train, out = rows[c.fold != k], rows[c.fold == k]
        g = c.survival_of_censoring(train if censoring == "training" else rows)
        own = rs.FineGray(
            rs.L2(1.5),
            tol=1e-11,
            censoring_probability=[g(t) for t in c.time[train]],
        ).fit(c.x[train], c.y[train], sample_weight=c.weight[train], strata=c.stratum[train])
        eta = c.x @ own.coef_
        expected = c.log_likelihood(out, eta, g)
        faulty = c.log_likelihood(out, eta, g, faulty=True)
        if score == "difference":
            expected = c.log_likelihood(rows, eta, g) - c.log_likelihood(train, eta, g)
        assert_allclose(found.scores[0, k], expected, rtol=1e-8)
        # Cyclops counts every competing event among the held-out rows, twice.
        if score == "held_out":
            assert abs(found.scores[0, k] - faulty) > 1.0


def test_g_is_carried_on_beyond_the_training_rows() -> None:
    # The training rows (fold 1) end at 3 with a censoring: G would be 0 for all that comes later.
    time, event = [1, 2, 3, 4, 5, 6], [1, 0, 0, 2, 1, 1]
    found = rs.cross_validate(
        rs.FineGray(rs.L2(1e9)),
        [[0.0], [1], [0], [1], [0], [1]],
        rs.Surv(time, event),
        folds=[1, 1, 1, 2, 2, 2],
    )
    # At eta = 0 with G = 1/2 throughout: the event at 5 has two rows of its own and the competing
    # one, whose weight is (1/2) / (1/2) = 1; that at 6 one row and the competing one.
    assert_allclose(found.scores[0, 1], -np.log(3) - np.log(2), rtol=1e-6)
    assert_allclose(found.scores[0, 0], -np.log(3), rtol=1e-6)


# -------------------------------------------------------------------------------------- folds


def assigned(**given: object) -> np.ndarray:
    rng = np.random.default_rng(8)
    n = 103
    x, y = rng.normal(size=(n, 2)), rs.Surv(rng.exponential(size=n), rng.random(n) < 0.3)
    weight = np.where(np.arange(n) < 3, 0.0, 1.0)
    found = rs.cross_validate(rs.Cox(rs.L2(5.0)), x, y, sample_weight=weight, **given)
    return found


def drawn(outcome_events: np.ndarray, **given: object) -> Iterator[np.ndarray]:
    from riskset.data.outcome import Outcome
    from riskset.infer.crossval.folds import draw_folds

    n = outcome_events.size
    weight = given.pop("weight", np.ones(n))
    outcome = Outcome.build(np.arange(1.0, n + 1), outcome_events, weight=weight, cause=1)
    yield from draw_folds(outcome, given.pop("folds"), given.pop("repeats", 2), 7, **given).assigned


EVENTS = (np.random.default_rng(1).random(103) < 0.23).astype(int)


def test_folds_by_row_differ_in_size_by_one() -> None:
    weight = np.where(np.arange(103) < 3, 0.0, 1.0)
    one, other = drawn(EVENTS, folds=7, weight=weight)
    assert (one[:3] == -1).all()
    sizes = np.bincount(one[3:], minlength=7)
    assert sorted(sizes) == [14, 14, 14, 14, 14, 15, 15]
    assert (one != other).any()


def test_more_repetitions_begin_with_those_of_fewer() -> None:
    few, many = list(drawn(EVENTS, folds=5, repeats=2)), list(drawn(EVENTS, folds=5, repeats=4))
    assert_array_equal(few, many[:2])


def test_groups_stay_together() -> None:
    groups = np.arange(103) % 11
    for fold in drawn(EVENTS, folds=4, groups=groups):
        for g in range(11):
            assert np.unique(fold[groups == g]).size == 1
        assert sorted(np.bincount([fold[groups == g][0] for g in range(11)])) == [2, 3, 3, 3]


def test_events_are_spread_evenly() -> None:
    codes = np.random.default_rng(2).choice([0, 1, 2], 103, p=[0.6, 0.25, 0.15])
    for fold in drawn(codes, folds=6, stratify=True):
        for code in range(3):
            sizes = np.bincount(fold[codes == code], minlength=6)
            assert sizes.max() - sizes.min() <= 1
        sizes = np.bincount(fold)
        assert sizes.max() - sizes.min() <= 1
    plain = next(drawn(codes, folds=6))
    assert np.ptp(np.bincount(plain[codes == 1], minlength=6)) > 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"folds": 1}, "`folds` must be a whole number of at least 2, .* but it is 1"),
        ({"folds": 2.5}, "but it is 2.5"),
        ({"folds": 101}, "there are 100 rows of positive weight, too few for 101 folds"),
        ({"folds": 4, "groups": np.arange(103) % 3}, "there are 3 groups of positive weight"),
        ({"folds": 4, "groups": np.zeros(103)}, "only one sample, a single group"),
        ({"folds": np.zeros(103)}, "at least two different values, but all rows .* have 0[.]"),
        (
            {"folds": np.arange(103) < 3},
            "at least two different values",
        ),  # the others have weight 0
        ({"folds": np.arange(50) % 2}, r"their shape is \(50,\)"),
        (
            {"folds": np.arange(103) % 2, "groups": np.arange(103)},
            "`groups` was given together with",
        ),
        ({"folds": np.full(103, np.nan)}, "must not be missing"),
        ({"groups": "site"}, "`groups` column 'site' was not found"),
        ({"repeats": 0}, "`repeats` must be a whole number of at least 1"),
        ({"seed": -1}, "`seed` must be"),
        ({"score": "heldout"}, "did you mean 'held_out'"),
        ({"censoring": "all"}, "`censoring` must be 'training' or 'full'"),
        ({"tol_replicates": 2}, "`tol_replicates` must be between 0 and 1"),
    ],
)
def test_impossible_folds(given: dict, message: str) -> None:
    with pytest.raises(rs.InputError, match=message):
        assigned(**given)


def test_given_repetitions() -> None:
    ids = np.array([np.arange(103) % 2, np.arange(103) % 3])
    found = assigned(folds=ids, **TIGHT)
    assert_array_equal(found.repeats, [0, 0, 1, 1, 1])
    assert_array_equal(found.folds, [0, 1, 0, 1, 2])
    parts = found.scores[0, :2], found.scores[0, 2:]
    assert_allclose(found.mean[0], found.scores[0].mean(), rtol=1e-14)
    error = np.sqrt((parts[0].var(ddof=1) / 2 + parts[1].var(ddof=1) / 3) / 2)
    assert_allclose(found.se[0], error, rtol=1e-14)
    assert_allclose(found.scores[0, :2], assigned(folds=ids[0], **TIGHT).scores[0], rtol=1e-12)


def test_one_event_and_none() -> None:
    """Folds without events score 0; nothing is ever NaN."""
    rng = np.random.default_rng(0)
    x, event = rng.normal(size=(20, 2)), np.arange(20) == 7
    folds = np.where(event, 0, 1 + np.arange(20) % 5)
    found = rs.cross_validate(rs.Cox(rs.L1(0.1)), x, rs.Surv(np.arange(1, 21), event), folds=folds)
    assert np.isfinite(found.scores).all()
    assert (found.scores == 0).all()  # alone in its fold, the event has a risk set of one
    unpenalised = rs.cross_validate(rs.Cox(), x, rs.Surv(np.arange(1, 21), event), folds=4)
    assert np.isfinite(unpenalised.scores).all()
    assert unpenalised.n_failed > 0  # training sets without an event estimate nothing
    notes = {note.code: note.message for note in unpenalised.notes()}
    assert "10 of 40 replicates are not 'converged'" in notes["replicates"]
    assert "'x0' in 30, 'x1' in 8 of 40 replicates" in notes["infinite_in_replicates"]
