"""Scores where estimates are infinite on the training rows: limits, against sums in 80 bits.

The sums put the infinite coefficient far out and leave out the terms of events that go to -inf.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from riskset.solve import curvature, replicates

LONG = np.longdouble
FAR = 2000.0
"""exp(-2000) has room in 80 bits, and e-folds of it are told from anything finite."""
FOLDS = 3


class Cohort:
    """Ties, strata, weights, offsets; among the exposed only fold 0 has events of interest."""

    def __init__(self, seed: int, *, late: bool = False, codes: tuple[int, ...] = (0, 1)) -> None:
        rng = np.random.default_rng(seed)
        n = 90
        self.entry = rng.integers(0, 4, n) * 1.0 if late else np.full(n, -np.inf)
        self.time = np.maximum(self.entry, 0) + rng.integers(1, 12, n)
        self.event = rng.choice(codes, n)
        self.fold = rng.integers(0, FOLDS, n)
        exposed = rng.random(n) < 0.3
        self.event[exposed & (self.fold != 0) & (self.event == 1)] = 0
        self.stratum = rng.integers(0, 2, n)
        # Of fold 0 an exposed row of each stratum fails when none but the exposed are at risk.
        for s in range(2):
            i = int(np.flatnonzero(exposed & (self.fold == 0) & (self.stratum == s))[0])
            self.time[i], self.event[i] = 40.0, 1
        self.x = np.column_stack([exposed, rng.normal(size=(n, 2))])
        self.weight = rng.choice([0.5, 1.0, 2.5], n)
        self.offset = rng.normal(size=n) / 2
        self.y = rs.Surv(self.time, self.event, self.entry if late else None)

    def survival_of_censoring(self, source: np.ndarray) -> np.ndarray:
        """G(t-) at each row's time, by cmprsk's rule for ties, carried on beyond the source."""
        g = np.ones(self.time.size)
        for u in np.unique(self.time[source][self.event[source] == 0]):
            at_risk = self.weight[source][self.time[source] >= u].sum()
            now = self.weight[source][(self.time[source] == u) & (self.event[source] == 0)].sum()
            if now < at_risk:
                g[self.time > u] *= 1 - now / at_risk
        return g

    def terms(
        self, rows: np.ndarray, eta: np.ndarray, *, efron: bool = False, g: np.ndarray | None = None
    ) -> dict[int, np.longdouble]:
        """The term of each event of some rows by themselves."""
        out = {}
        risk = self.weight * np.exp(eta)
        inside = np.isin(np.arange(eta.size), rows)
        for i in np.flatnonzero(inside & (self.event == 1)):
            t, stratum = self.time[i], inside & (self.stratum == self.stratum[i])
            share = LONG(1) * (stratum & (self.entry < t) & (self.time >= t))
            if g is not None:
                after = stratum & (self.time < t) & (self.event == 2)
                share = share + after * LONG(g[i]) / g
            tied = stratum & (self.time == t) & (self.event == 1)
            m = int(tied.sum())
            ks = LONG(np.arange(m if efron else 1)) / m
            logs = np.log([(share * risk).sum() - k * risk[tied].sum() for k in ks])
            out[int(i)] = self.weight[i] * (eta[i] - logs.mean())
        return out

    def limit(self, coef: np.ndarray, score: str, k: int, **how: object) -> tuple[float, int, int]:
        """Score, number of events left out, and of exposed events that are not."""
        eta = LONG(self.x) @ LONG(np.where(np.isinf(coef), FAR * np.sign(coef), coef)) + self.offset
        everyone = np.arange(self.time.size)
        if score == "held_out":
            terms = [self.terms(everyone[self.fold == k], eta, **how)]
        else:
            terms = [
                self.terms(everyone, eta, **how),
                self.terms(everyone[self.fold != k], eta, **how),
            ]
        lost = {i for part in terms for i, value in part.items() if value < -0.1 * FAR}
        total = sum(v for i, v in terms[0].items() if i not in lost)
        total -= sum(v for part in terms[1:] for i, v in part.items() if i not in lost)
        kept = [i for i in terms[0] if i not in lost and self.x[i, 0] == 1]
        return float(total), len(lost), len(kept)


@pytest.fixture(params=[False, True], ids=["alone", "lanes"])
def lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether replicates are fitted eight at a time, although the data are small."""
    if request.param:
        monkeypatch.setattr(replicates, "MIN_SHARED_ROWS", 1)
        monkeypatch.setattr(curvature, "EXACT_WORK", 0)
    return request.param


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["breslow", "efron", "entry"])
@pytest.mark.parametrize("score", ["held_out", "difference"])
def test_cox_scores_are_limits(score: str, kind: str, seed: int) -> None:
    c = Cohort(seed, late=kind == "entry")
    ties = "breslow" if kind == "breslow" else "efron"
    model = rs.Cox(rs.L2(1.5, unpenalized=[0]), ties=ties, tol=1e-11)
    more = {"strata": c.stratum, "offset": c.offset}
    found = rs.cross_validate(
        model, c.x, c.y, folds=c.fold, score=score, sample_weight=c.weight, tol_replicates=1e-11,
        **more,
    )  # fmt: skip
    assert found.statuses[0].tolist() == ["infinite_estimate", "converged", "converged"]
    for k in range(FOLDS):
        # Where no event is exposed the limit is the fit to the others.
        train = np.flatnonzero((c.fold != k) & ((c.x[:, 0] == 0) | (k != 0)))
        alone = rs.Cox(rs.L2(1.5, unpenalized=[0] if k else []), ties=ties, tol=1e-11).fit(
            c.x[train], c.y[train], sample_weight=c.weight[train],
            **{name: value[train] for name, value in more.items()},
        )  # fmt: skip
        coef = alone.coef_.copy()
        if k == 0:
            coef[0] = -np.inf
        expected, lost, kept = c.limit(coef, score, k, efron=ties == "efron")
        assert_allclose(found.scores[0, k], expected, rtol=1e-8)
        assert found.n_left_out[0, k] == lost
        assert (lost > 0) == (k == 0)
        assert kept > 0 or k > 0


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("censoring", ["training", "full"])
@pytest.mark.parametrize("score", ["held_out", "difference"])
def test_fine_gray_scores_are_limits(score: str, censoring: str) -> None:
    c = Cohort(3, codes=(0, 1, 2))
    model = rs.FineGray(rs.L2(1.5, unpenalized=[0]))
    found = rs.cross_validate(
        model, c.x, c.y, folds=c.fold, score=score, censoring=censoring, strata=c.stratum,
        offset=c.offset, sample_weight=c.weight, tol_replicates=1e-11,
    )  # fmt: skip
    assert found.statuses[0, 0] == "infinite_estimate"
    rows = np.arange(c.time.size)
    train = rows[(c.fold != 0) & (c.x[:, 0] == 0)]
    g = c.survival_of_censoring(rows[c.fold != 0] if censoring == "training" else rows)
    alone = rs.FineGray(rs.L2(1.5), tol=1e-11, censoring_probability=g[train]).fit(
        c.x[train], c.y[train], sample_weight=c.weight[train], strata=c.stratum[train],
        offset=c.offset[train],
    )  # fmt: skip
    coef = np.append(-np.inf, alone.coef_[1:])
    expected, lost, _ = c.limit(coef, score, 0, g=g)
    assert_allclose(found.scores[0, 0], expected, rtol=1e-8)
    assert found.n_left_out[0].tolist() == [lost, 0, 0]
    assert lost > 0


# --------------------------------------------------------------------------------------- by hand


def by_hand(training: list[list[float]], held_out: list[list[float]]) -> rs.CrossValidation:
    """Rows are time, event, x1, x2."""
    table = np.array([*training, *held_out])
    fold = [1] * len(training) + [0] * len(held_out)
    y = rs.Surv(table[:, 0], table[:, 1])
    return rs.cross_validate(rs.Cox(), table[:, 2:], y, folds=fold)


def test_two_columns_that_recede_go_to_infinity_together() -> None:
    # Neither exposure has an event in training.
    training = [[1, 1, 0, 0], [2, 0, 1, 0], [3, 0, 0, 1], [4, 1, 0, 0]]
    # At t = 1 (1, 0) and (0, 1) are at risk and lie as far down: 1/2. At t = 2 the second is alone.
    found = by_hand(training, [[1, 1, 1, 0], [2, 1, 0, 1]])
    assert found.statuses[0, 0] == "infinite_estimate"
    assert_allclose(found.scores[0, 0], -np.log(2), rtol=1e-14)
    assert found.n_left_out[0, 0] == 0
    # (1, 1) lies further down than either: the event at t = 1 has likelihood 0, that at t = 2 has
    # its risk set for itself, since the rest of it is (1, 1).
    found = by_hand(training, [[1, 1, 1, 1], [2, 1, 0, 1], [3, 0, 1, 1]])
    assert found.n_left_out[0, 0] == 1
    assert_allclose(found.scores[0, 0], 0.0, atol=1e-14)


def test_directions_in_turn() -> None:
    # x1 recedes; where it is 0, x2 does, but not among all, as rows with x1 = 1 have less of it.
    training = [
        [1, 1, 0, 0],
        [2, 0, 1, -1],
        [3, 0, 0, 1],
        [4, 1, 0, 0],
        [5, 0, 0, 1],
        [5, 0, 1, -1],
    ]
    # t = 1: x1 = 1 beside x1 = 0 is left out. t = 2: (0, 0) is chosen from (0, 0) and (0, 1), and
    # the second falls away. t = 3: (0, 1) alone of two.
    held_out = [[1, 1, 1, -1], [2, 1, 0, 0], [3, 1, 0, 1], [4, 0, 0, 1]]
    found = by_hand(training, held_out)
    assert found.n_left_out[0, 0] == 1
    assert_allclose(found.scores[0, 0], -np.log(2), rtol=1e-14)
    assert found.infinite_names.tolist() == ["x0", "x1"]


# ------------------------------------------------------------------------ tolerances, company


def exposed_cohort(n: int = 400, *, events: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, 6))
    time, event = rng.exponential(np.exp(-x[:, 1] / 2)), rng.random(n) < 0.4
    x[:, 0] = 0
    x[np.flatnonzero(event)[:events], 0] = 1
    x[np.flatnonzero(~event)[:60], 0] = 1
    return x, rs.Surv(time, event)


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("score", ["held_out", "difference"])
@pytest.mark.parametrize("penalty", [None, rs.L1(2.0, unpenalized=[0]), rs.L2(0.0)])
def test_no_tolerance_decides_a_score(score: str, penalty: rs.L1 | rs.L2 | None) -> None:
    x, y = exposed_cohort(events=1)
    folds = np.arange(400) % 4

    def scores(tol: float) -> rs.CrossValidation:
        return rs.cross_validate(
            rs.Cox(penalty), x, y, folds=folds, score=score, tol_replicates=tol
        )

    tight = scores(1e-11)
    (infinite,) = np.flatnonzero(tight.statuses[0] == "infinite_estimate")
    for tol in (1e-1, 1e-2, 1e-3, 1e-5, 1e-8):
        found = scores(tol)
        assert_array_equal(found.statuses, tight.statuses)
        assert_array_equal(found.n_left_out, tight.n_left_out)
        # The error of a likelihood near its maximum is of the order of the tolerance.
        assert_allclose(found.scores, tight.scores, rtol=0, atol=20 * tol)
    assert tight.n_left_out[0, infinite] == 1


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("score", ["held_out", "difference"])
@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-10])
def test_a_column_without_any_event_takes_its_rows_away(score: str, tol: float) -> None:
    """Every fit starts from one on all rows whose own estimate is infinite."""
    x, y = exposed_cohort(events=0)
    folds, kept = np.arange(400) % 4, x[:, 0] == 0
    found = rs.cross_validate(
        rs.Cox(rs.L1(2.0, unpenalized=[0])), x, y, folds=folds, score=score, tol_replicates=tol
    )
    assert (found.statuses == "infinite_estimate").all()
    assert not found.n_left_out.any()
    assert found.n_failed == 0
    without = rs.cross_validate(
        rs.Cox(rs.L1(2.0)), x[kept][:, 1:], y[kept], folds=folds[kept], score=score,
        tol_replicates=1e-11,
    )  # fmt: skip
    assert_allclose(found.scores, without.scores, rtol=0, atol=20 * tol)


def test_the_same_events_are_left_out_at_every_penalty() -> None:
    x, y = exposed_cohort()
    model = rs.CoxCV(rs.L1(unpenalized=[0]), penalties=[0.1, 1.0, 5.0, 50.0], folds=10, repeats=2)
    first = model.fit(x, y).cross_validation_
    assert first.n_left_out.any()
    assert (first.n_left_out == first.n_left_out[0]).all()
    assert (first.n_infinite == first.n_infinite[0]).all()
    one = rs.CoxCV(**model.get_params(deep=False) | {"n_threads": 1}).fit(x, y).cross_validation_
    assert_array_equal(one.scores, first.scores)


def test_what_is_said(tmp_path: Path) -> None:
    x, y = exposed_cohort(events=1)
    model = rs.CoxCV(
        rs.L1(unpenalized=[0]), penalties=[1.0, 5.0], folds=np.arange(400) % 4,
        checkpoint=tmp_path / "work.jsonl",
    ).fit(x, y)  # fmt: skip
    (note,) = [n for n in model.notes_ if n.code == "infinite_in_replicates"]
    assert note.columns == ("x0",)
    assert "'x0' in 1 of 4 replicates of each penalty" in note.message
    assert "but for 1 event of likelihood 0, left out" in note.message
    assert "not the same at all penalties" not in note.message
    assert "Penalise the covariate, or divide the rows" in note.message
    assert not [n for n in model.notes_ if n.code == "replicates"]
    assert model.n_failed_ == 0
    assert model.cv_results_["n_left_out"].sum() == 2
    # The counts are kept: in a checkpoint, and in a saved model.
    lines = (tmp_path / "work.jsonl").read_text().splitlines()
    (tmp_path / "work.jsonl").write_text("\n".join(lines[:-3]) + "\n")
    model.save(tmp_path / "cv.riskset")
    scores = model.cross_validation_
    for again in (model.fit(x, y), rs.load(tmp_path / "cv.riskset")):
        assert_array_equal(again.cross_validation_.scores, scores.scores)
        assert_array_equal(again.cross_validation_.n_left_out, scores.n_left_out)
        assert [n for n in again.notes_ if n.code == "infinite_in_replicates"] == [note]
    head = json.loads(lines[0])
    older = json.dumps(head | {"version": head["version"] - 1})
    (tmp_path / "work.jsonl").write_text("\n".join([older, *lines[1:]]) + "\n")
    with pytest.raises(rs.InputError, match="is not a checkpoint of this version"):
        model.fit(x, y)


def test_nothing_is_said_or_left_out_of_a_strong_finite_effect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # x'b spans more than 10, and each fold keeps events on both sides; lanes suffice.
    monkeypatch.setattr(replicates, "MIN_SHARED_ROWS", 1)
    monkeypatch.setattr(replicates._ReplicateTasks, "_alone", None)
    rng = np.random.default_rng(2)
    n = 1200
    x = np.column_stack([rng.random(n) < 0.5, 3 * rng.normal(size=(n, 2))])
    time = rng.exponential(np.exp(3 * x[:, 0] - x[:, 1]))
    y = rs.Surv(time, rng.random(n) < 0.7)
    model = rs.CoxCV(rs.L2(unpenalized=[0, 1]), penalties=[1.0], folds=5, repeats=2).fit(x, y)
    found = model.cross_validation_
    assert np.ptp(x[:, :2] @ model.coef_[:2]) > 10
    assert (found.statuses == "converged").all()
    assert not found.n_left_out.any()
    assert found.infinite_names.size == 0
    assert not {n.code for n in model.notes_} & {"infinite_in_replicates", "replicates"}
