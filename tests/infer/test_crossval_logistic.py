"""Cross-validated logistic regression: what is scored is the likelihood of the rows left out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_expit
from sklearn.linear_model import LogisticRegression

from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.infer.crossval.evaluator import PenaltyEvaluator
from riskset.infer.crossval.folds import draw_folds
from riskset.infer.crossval.scores import ScoreKind, Scorer
from riskset.infer.crossval.search_plan import SearchPlan, explore
from riskset.model.logistic import LogisticLoss
from riskset.model.penalty import L1, L2
from riskset.solve.optimality import Problem


def engine(
    n: int, *, score: ScoreKind = "held_out", folds: int = 5
) -> tuple[np.ndarray, PenaltyEvaluator]:
    rng = np.random.default_rng(n)
    x = np.c_[rng.random((n, 4)) < 0.3, rng.normal(size=(n, 3))]
    event = rng.random(n) < 1 / (1 + np.exp(1 - x[:, 0] - x[:, 5]))
    loss = LogisticLoss.of(event, Runtime(2), weight=rng.choice([0.5, 1.0, 2.0], n))
    design = Design.from_dense(x)
    problem = Problem.prepare(design, loss)
    scorer = Scorer(design, loss, draw_folds(loss.outcome, folds, 1, 1), score)
    return x, PenaltyEvaluator(problem, scorer, 1e-9, 200)


@pytest.mark.parametrize("score", ["held_out", "difference"])
@pytest.mark.parametrize("n", [400, 6_000])
def test_score_is_the_likelihood_of_the_rows_left_out(n: int, score: ScoreKind) -> None:
    x, cv = engine(n, score=score)
    done = cv.score(L2(4.0))
    outcome, folds = cv.problem.loss.outcome, cv.scorer.folds
    for k, (repeat, fold) in enumerate(folds):
        out = folds.held_out(repeat, fold)
        peer = LogisticRegression(C=1 / 4.0, tol=1e-12, max_iter=1000, solver="newton-cholesky")
        peer.fit(x[~out], outcome.is_event[~out], sample_weight=outcome.weight[~out])
        eta = peer.decision_function(x[out]) * np.where(outcome.is_event[out], 1, -1)
        expected = float(outcome.weight[out] @ log_expit(eta))
        assert done.replicates[k].status == "converged"
        assert_allclose(done.replicates[k].score, expected, rtol=1e-7)


def test_the_search_finds_a_penalty_with_worse_neighbours() -> None:
    _, cv = engine(6_000)
    scored, best, chosen = explore(cv, SearchPlan.build(L1()))
    strengths = np.array([s.strength for s in scored])
    means = np.array([s.mean for s in scored])
    assert best == chosen == means.argmax()
    assert 0 < best < len(scored) - 1
    assert strengths[best - 1] / strengths[best] < 1.11
    assert strengths[best] / strengths[best + 1] < 1.11
    assert scored[best].coef[0] > 0.3
