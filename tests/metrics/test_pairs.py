"""Concordance: fast against pair by pair, by hand, and what is not defined."""

import inspect
from dataclasses import astuple

import numpy as np
import pytest

from riskset import metrics
from riskset._errors import InputError, RisksetWarning
from riskset._runtime import Runtime
from riskset.data.outcome import Outcome, Surv
from riskset.kernels import concordance_cpu, concordance_ref
from riskset.metrics import _concordance


def draw(n, n_times, n_scores, seed, *, late=False, n_strata=1, weights=()):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, n_times + 1, n) + float(n_times)
    event = rng.random(n) < 0.6
    entry = time - rng.integers(1, n_times + 1, n) if late else None
    return {
        "y": Surv(time, event, entry),
        "risk_score": rng.integers(0, n_scores, n) / 7,
        "sample_weight": rng.choice(weights, n) if weights else None,
        "strata": rng.integers(0, n_strata, n) if n_strata > 1 else None,
        "cluster": rng.permutation(np.arange(n) % max(2, n // 3)),
    }


CASES = {
    f"{n}_rows_{n_times}_times_{n_scores}_scores_{kind}": draw(n, n_times, n_scores, k, **options)
    for k, (n, n_times, n_scores) in enumerate(
        [(1, 1, 1), (2, 2, 2), (9, 3, 3), (60, 1, 20), (60, 8, 1), (60, 8, 5), (80, 9999, 9999)]
    )
    for kind, options in {
        "plain": {},
        "late": {"late": True},
        "all": {"late": True, "n_strata": 4, "weights": (0.0, 0.3, 1.0, 2.0)},
    }.items()
}


@pytest.mark.filterwarnings("ignore:no pair")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_fast_counts_equal_pair_by_pair(case, monkeypatch):
    got = astuple(metrics.concordance(**case))
    monkeypatch.setattr(_concordance, "count_pairs", concordance_ref.count_pairs)
    want = astuple(metrics.concordance(**case))
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)


def test_signatures_are_equal():
    fast = concordance_cpu.count_pairs
    fast = getattr(fast, "py_func", fast)
    assert inspect.signature(fast) == inspect.signature(concordance_ref.count_pairs)


def many_rows(weights):
    """Rows in the order that the kernel wants, of more than one block of keys, with ties."""
    rng = np.random.default_rng(8)
    n = 9_000
    time, event = -np.sort(-rng.integers(0, 3_000, n)).astype(float), rng.random(n) < 0.6
    order = np.lexsort((event, -time))
    score, weight = rng.integers(0, 2_000, n).astype(float), rng.choice(weights, n)
    return score, time, event[order], weight, np.array([0, 2_000, n])


def test_many_rows_equal_row_by_row():
    score, time, event, weight, ptr = many_rows([0.0, 0.25, 3.0])
    args = (score, time, event, np.zeros(0), weight, ptr, Runtime(2))
    counts, influence = concordance_cpu.count_pairs(*args)
    # Of one time, events come after the censored rows.
    key, rank = np.cumsum(np.append(0, np.diff(2 * time + ~event) != 0)), score.astype(int)
    args = (rank, key, weight, event, ptr, Runtime(1))
    expected = concordance_ref.sums_by_rank(*args)[:, [0, 2, 1]]
    np.testing.assert_array_equal(counts[:3], (weight * event) @ expected)
    failing, everyone, back = (
        np.where(event, weight, 0.0),
        np.ones(time.size, bool),
        slice(None, None, -1),
    )
    args = (rank[back], -key[back], failing[back], everyone, ptr[-1] - ptr[back], Runtime(1))
    expected += concordance_ref.sums_by_rank(*args)[back][:, [2, 0, 1]]
    np.testing.assert_array_equal(influence, expected)


def test_same_bits_for_any_number_of_threads():
    score, time, event, weight, ptr = many_rows([0.0, 0.3, 1.7])
    entry = np.maximum(time - 500.0, -1.0)

    def results(n_threads):
        runtime = Runtime(n_threads)
        found = concordance_cpu.count_pairs(score, time, event, entry, weight, ptr, runtime)
        key = -time.astype(np.int64)
        args = (score.astype(np.int64), key, weight, event, ptr, runtime)
        return [array.tobytes() for array in (*found, concordance_cpu.sums_by_rank(*args))]

    first = results(1)
    for n_threads in (1, 2, 3, 5):
        assert results(n_threads) == first


def test_by_hand():
    # Events at 1, 2, 2; censored at 2 and 3. Row 0 against the four others: scores 5 against
    # 4, 5, 6, 1. Rows 1 and 2 (tied in time) against rows 3 and 4 each.
    y = Surv([1.0, 2.0, 2.0, 2.0, 3.0], [1, 1, 1, 0, 0])
    got = metrics.concordance(y, [5, 4, 5, 6, 1])
    assert got.concordant == 2 + 1 + 1
    assert got.discordant == 1 + 1 + 1
    assert got.tied_score == 1
    assert got.tied_time == 1
    assert got.tied_both == 0
    assert got.concordance == 4.5 / 8
    assert float(got) == got.concordance


def test_the_standard_error_is_the_jackknife_to_first_order():
    case = draw(200, 30, 15, 5, late=True, n_strata=3, weights=(0.5, 1.0, 2.0))
    case["cluster"] = None
    got = metrics.concordance(**case)
    weight = case["sample_weight"]
    change = np.empty(200)
    for i in range(200):
        ends = []
        for step in (-1e-5, 1e-5):
            moved = weight.copy()
            moved[i] += step
            ends.append(metrics.concordance(**(case | {"sample_weight": moved})).concordance)
        change[i] = (ends[1] - ends[0]) / 2e-5 * weight[i]
    assert got.standard_error == pytest.approx(np.sqrt(np.sum(change**2)), rel=1e-6)


def test_one_row_per_cluster_is_no_cluster():
    case = draw(50, 9, 9, 1)
    case["cluster"] = None
    plain = metrics.concordance(**case)
    case["cluster"] = [f"person {i}" for i in range(50)]
    assert metrics.concordance(**case).standard_error == pytest.approx(plain.standard_error)


def test_weight_two_is_the_row_twice():
    case = draw(60, 9, 9, 2, late=True, weights=(0.0, 1.0, 2.0))
    rows = np.repeat(np.arange(60), case["sample_weight"].astype(int))
    case["cluster"] = np.arange(60)
    a = metrics.concordance(**case)
    b = metrics.concordance(case["y"][rows], case["risk_score"][rows], cluster=rows)
    # A row is now comparable with neither itself nor its copy, but the copies are tied in both.
    np.testing.assert_allclose(astuple(b)[:6], astuple(a)[:6], rtol=1e-12)


def test_only_the_order_of_scores_and_times_counts():
    case = draw(70, 12, 9, 3, n_strata=2)
    a = metrics.concordance(**case)
    rows = np.random.default_rng(0).permutation(70)
    y = case["y"][rows]
    y["time"] = np.exp(y["time"] / 10)
    b = metrics.concordance(
        y,
        np.exp(case["risk_score"][rows]) - 1e3,
        strata=case["strata"][rows],
        cluster=case["cluster"][rows],
    )
    np.testing.assert_allclose(astuple(b), astuple(a), rtol=1e-12)
    c = metrics.concordance(**(case | {"risk_score": -case["risk_score"]}))
    assert c.concordance == pytest.approx(1 - a.concordance)
    assert c.standard_error == pytest.approx(a.standard_error)


def test_extreme_scores():
    y = Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    got = metrics.concordance(y, [np.inf, 1e300, -0.0, 0.0])
    assert (got.concordant, got.discordant, got.tied_score) == (5, 0, 1)
    assert metrics.concordance(y, [0.0, 0.0, 0.0, -np.inf]).concordance == 4.5 / 6


def test_strata_are_not_compared():
    y = Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1])
    score = [4.0, 1.0, 2.0, 3.0]
    assert metrics.concordance(y, score, strata=["a", "b", "b", "a"]).concordance == 0.5
    names = np.array(["a", "b"])[[0, 1, 1, 0]]
    assert metrics.concordance(y, score, strata=names).concordant == 1


@pytest.mark.parametrize(
    ("time", "event"), [([3.0], [1]), ([1.0, 2.0], [0, 0]), ([2.0, 2.0, 2.0], [1, 1, 1])]
)
def test_no_comparable_pair_is_nan_and_says_so(time, event):
    with pytest.warns(RisksetWarning, match="no pair of the . rows is comparable"):
        got = metrics.concordance(Surv(time, event), np.zeros(len(time)))
    assert np.isnan([got.concordance, got.standard_error]).all()


def test_an_outcome_gives_the_same():
    case = draw(60, 9, 9, 4, late=True, n_strata=3, weights=(0.5, 1.0))
    y = case["y"]
    outcome = Outcome.build(
        y["time"],
        y["event"],
        entry=y["entry"],
        weight=case["sample_weight"],
        stratum=case["strata"],
        cluster=case["cluster"],
    )
    assert metrics.concordance_of(outcome, case["risk_score"]) == metrics.concordance(**case)


def test_scikit_survival_arrays_are_accepted():
    y = np.array([(True, 1.0), (False, 2.0)], dtype=[("cens", bool), ("days", float)])
    assert metrics.concordance(y, [2.0, 1.0]).concordance == 1.0


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"risk_score": [0.1, np.nan, 0.3]}, "`risk_score` must not be missing"),
        ({"risk_score": [0.1, 0.2]}, "`risk_score` must have one number for each of the 3 rows"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "`sample_weight` must not be negative"),
        ({"strata": ["a", "b"]}, "`strata`"),
        ({"y": np.zeros(3)}, "structured array"),
        ({"y": Surv([1.0], [1])[:0]}, "no rows"),
    ],
)
def test_what_is_refused(change, match):
    given = {"y": Surv([1.0, 2.0, 3.0], [1, 0, 1]), "risk_score": [0.1, 0.2, 0.3]} | change
    with pytest.raises(InputError, match=match):
        metrics.concordance(**given)


@pytest.mark.parametrize("name", ["concordance", "brier_score", "auc"])
def test_several_causes_ask_for_one(name: str) -> None:
    y = Surv([1.0, 2, 3, 4], [1, 2, 1, 0])
    more = {} if name == "concordance" else {"times": [2.0]}
    with pytest.raises(InputError, match="`cause` does not say which of them"):
        getattr(metrics, name)(y, [0.1, 0.2, 0.3, 0.4], **more)
