"""Concordance of Uno and Wolbers: by hand, by the formula, and what it cannot do."""

from dataclasses import astuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from metrics import by_formula as formula
from riskset import Outcome, Surv
from riskset._errors import InputError, RisksetWarning
from riskset._runtime import Runtime
from riskset.kernels import concordance_cpu, concordance_ref
from riskset.metrics import concordance, concordance_of

# G is 3/4 from 2 on and 3/8 from 4 on (see test_brier).
TIME = [1.0, 2.0, 2.0, 3.0, 4.0, 5.0]
Y = Surv(TIME, [1, 0, 1, 2, 0, 1])
SCORE = [1 / 2, 1 / 4, 3 / 4, 1 / 4, 1 / 2, 0.0]


def test_wolbers_by_hand():
    # Row 1 beats rows 2, 4, 6, loses to 3, ties with 5. Row 3 beats 2 (censored when it failed),
    # 4, 5, 6. Row 6 outlives everybody else, but row 4 had a competing event: it loses to it.
    plain = concordance(Y, SCORE, cause=1)
    assert astuple(plain)[2:5] == (7, 2, 1)
    assert plain.concordance == 3 / 4
    assert concordance(Y, SCORE, cause=1, tau=2.0).concordance == 7.5 / 9
    # The last pair weighs 1 / (G(5-) G(3-)) = 8/3 4/3, the others 1.
    weighted = concordance(Y, SCORE, cause=1, ipcw=True)
    assert_allclose(astuple(weighted)[2:5], [7, 1 + 32 / 9, 1], rtol=1e-14)
    assert weighted.concordance == pytest.approx(135 / 226, rel=1e-14)
    assert concordance(Y, SCORE, cause=1, ipcw=True, tau=2.0).concordance == 7.5 / 9


def test_uno_by_hand():
    # Row 4 now has the event, at G(3-) = 3/4: it loses to 5 and beats 6, each with weight 16/9.
    y = Surv(TIME, [1, 0, 1, 1, 0, 1])
    got = concordance(y, SCORE, ipcw=True)
    assert_allclose(astuple(got)[2:5], [7 + 16 / 9, 1 + 16 / 9, 1], rtol=1e-14)
    assert got.concordance == pytest.approx(167 / 226, rel=1e-14)


@pytest.mark.parametrize("ipcw", [False, True])
@pytest.mark.parametrize("n_causes", [1, 3])
@pytest.mark.parametrize("weights", [(1.0,), (0.0, 0.5, 1.0, 2.5)], ids=["plain", "weighted"])
@pytest.mark.parametrize("tau", [None, 7.0])
def test_equals_the_formula(ipcw, n_causes, weights, tau):
    case, score = formula.draw(60, n_causes, n_causes=n_causes, weights=weights)
    strata = np.random.default_rng(1).integers(0, 3, 60)
    for groups in (None, strata):
        got = concordance(**case, risk_score=score, tau=tau, ipcw=ipcw, strata=groups)
        want = formula.concordance(
            case["y"], score, case["sample_weight"], tau=tau or np.inf, ipcw=ipcw, strata=groups
        )
        assert got.concordance == pytest.approx(want, rel=1e-12)


def test_equals_scikit_survival():
    y, age = formula.lung()
    got = [concordance(y, age, ipcw=True, tau=t).concordance for t in formula.LUNG_TIMES]
    golden = [0.6000256650306544, 0.5591022153944933, 0.5600768678856893]
    assert_allclose(got, golden, rtol=1e-14)


@pytest.mark.parametrize("ipcw", [False, True])
def test_the_standard_error_is_the_jackknife_to_first_order(ipcw):
    case, score = formula.draw(40, 7, weights=(0.5, 1.0, 2.0))
    cluster = np.arange(40) // 3
    for groups in (None, cluster):
        got = concordance(**case, risk_score=score, tau=9.0, ipcw=ipcw, cluster=groups)
        want = formula.jackknife(
            lambda w: formula.concordance(case["y"], score, w, tau=9.0, ipcw=ipcw),
            case["sample_weight"],
            groups,
        )
        assert got.standard_error == pytest.approx(want, rel=1e-6)


def test_without_censoring_weights_are_one():
    case, score = formula.draw(60, 2, censored=0.0)
    a = concordance(**case, risk_score=score)
    b = concordance(**case, risk_score=score, ipcw=True)
    assert_allclose(astuple(b), astuple(a), rtol=1e-12)


def test_without_competing_events_the_cause_does_not_matter():
    case, score = formula.draw(60, 3, n_causes=1)
    for ipcw in (False, True):
        a = concordance(**case, risk_score=score, ipcw=ipcw)
        assert concordance(**case, risk_score=score, ipcw=ipcw, cause=1) == a


def test_weight_two_is_the_row_twice_and_only_order_counts():
    case, score = formula.draw(60, 6, weights=(0.0, 1.0, 2.0))
    w = case.pop("sample_weight")
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(60), w.astype(int)))
    y = case["y"][rows]
    y["time"] = np.exp(y["time"])
    options = {"cause": 1, "ipcw": True}
    a = concordance(case["y"], score, w, cluster=np.arange(60), **options)
    b = concordance(y, np.exp(score[rows]) - 1e3, cluster=rows, **options)
    assert_allclose(astuple(b)[:6], astuple(a)[:6], rtol=1e-11)


def test_censoring_from_elsewhere():
    case, score = formula.draw(50, 8)
    train = formula.draw(90, 9)[0]["y"]
    want = formula.concordance(case["y"], score, np.ones(50), train=train)
    outcome = Outcome.build(train["time"], train["event"], cause=1)
    for y_train in (train, outcome):
        got = concordance(**case, risk_score=score, ipcw=True, y_train=y_train)
        assert got.concordance == pytest.approx(want, rel=1e-12)


def test_only_events_in_pairs_need_a_chance():
    # Nobody is followed beyond the last event, so it is compared with nobody.
    train = Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    y = Surv([1.0, 2.0, 3.0, 6.0], [1, 0, 1, 1])
    for tau in (None, 4.0):
        got = concordance(y, [4.0, 3.0, 2.0, 1.0], ipcw=True, y_train=train, tau=tau)
        assert got.concordance == 1.0
        assert got.concordant == 4.0
    # With somebody beyond it, its chance of being uncensored is needed and not known ...
    longer = Surv([1.0, 2.0, 3.0, 6.0, 7.0], [1, 0, 1, 1, 0])
    score = [5.0, 4.0, 3.0, 1.0, 2.0]
    for last in (0, 1):  # ... whether the curve ends with a censoring or with an event
        train = Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, last])
        with pytest.raises(InputError, match="row 3.* 6(.|\n)*Hint: .*ends at 4; choose `tau` up"):
            concordance(longer, score, ipcw=True, y_train=train)
        got = concordance(longer, score, ipcw=True, y_train=train, tau=4.0)
        assert (got.concordant, got.discordant) == (6, 0)
        # In a stratum of its own it is compared with nobody, and in one with row 4 it is.
        strata = [0, 0, 0, 1, 0]
        alone = concordance(longer, score, strata=strata, ipcw=True, y_train=train)
        assert (alone.concordant, alone.discordant) == (4, 0)
        with pytest.raises(InputError, match="ends at 4; choose `tau`"):
            concordance(longer, score, strata=[0, 0, 0, 1, 1], ipcw=True, y_train=train)
        # A row of weight 0 is not there.
        got = concordance(longer, score, [1, 1, 1, 1, 0], ipcw=True, y_train=train)
        assert (got.concordant, got.discordant) == (4, 0)


def test_competing_events_in_pairs_need_a_chance():
    train = Surv([1.0, 2.0, 4.0], [0, 1, 1])
    options = {"cause": 1, "ipcw": True, "y_train": train}
    # The competing event at 5 is compared with the earlier event alone: nothing is needed at 5.
    got = concordance(Surv([2.0, 5.0], [1, 2]), [2.0, 1.0], **options)
    assert_allclose(got.concordant, (3 / 2) ** 2)
    # An event at 6 is compared with it and needs both chances.
    for code, match in (([1, 2, 1], "row 1"), ([1, 0, 1], None)):
        y = Surv([2.0, 5.0, 6.0], code)
        if match is None:
            assert_allclose(concordance(y, [3.0, 2.0, 1.0], **options).concordant, 2 * 9 / 4)
            continue
        with pytest.raises(InputError, match=match):
            concordance(y, [3.0, 2.0, 1.0], **options)


def test_late_entry_and_competing_events():
    # Row 2 had its competing event at 2 and never fails: it is compared with row 3, which was
    # there before; row 1 entered at 2.5 and is compared with nobody earlier.
    y = Surv([5.0, 2.0, 3.0, 1.0], [0, 2, 1, 1], entry=[2.5, 0.0, 0.0, 0.0])
    got = concordance(y, [4.0, 3.0, 2.0, 1.0], cause=1)
    assert (got.concordant, got.discordant) == (0, 4)


def test_an_outcome_gives_the_same():
    case, score = formula.draw(60, 4, weights=(0.5, 1.0))
    y = case["y"]
    outcome = Outcome.build(y["time"], y["event"], cause=1, weight=case["sample_weight"])
    got = concordance_of(outcome, score, competing_stay=True)
    assert got == concordance(**case, risk_score=score)
    assert concordance_of(outcome, score) != got


def test_no_comparable_pair_is_nan_and_says_so():
    for ipcw in (False, True):
        with pytest.warns(RisksetWarning, match="no pair of the 6 rows is comparable"):
            got = concordance(Y, SCORE, cause=1, tau=0.5, ipcw=ipcw)
        assert np.isnan([got.concordance, got.standard_error]).all()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"cause": None}, "`cause` does not say which"),
        ({"ipcw": False, "cause": 0}, "(?s)positive whole number.*0, 1, 2"),
        ({"ipcw": False, "y_train": Y}, "`ipcw` is False"),
        ({"y_train": Surv([1.0, 2.0], [0, 0])}, "must be positive for rows with an event"),
        ({"y": Surv([2.0] * 6, [1] * 6, entry=[1.0] * 6)}, "enter late"),
        ({"tau": np.nan}, "`tau` must be finite"),
        ({"y_train": np.zeros(4)}, "`y_train` must be a structured array"),
    ],
)
def test_what_is_refused(change, match):
    given = {"y": Y, "risk_score": SCORE, "cause": 1, "ipcw": True} | change
    with pytest.raises(InputError, match=match):
        concordance(**given)


@pytest.mark.parametrize(
    ("n", "n_ranks", "n_keys"), [(1, 1, 1), (50, 7, 9), (90, 90, 1), (90, 1, 90)]
)
def test_kernel_equals_its_reference(n, n_ranks, n_keys):
    rng = np.random.default_rng(n + n_ranks)
    ptr = np.unique([0, n // 3, n // 3, n])
    key = np.concatenate(
        [np.sort(rng.integers(0, n_keys, b - a)) for a, b in zip(ptr, ptr[1:], strict=False)]
    )
    rank, weight = rng.integers(0, n_ranks, n), rng.choice([0.0, 0.25, 3.0], n)
    args = (rank, key, weight, rng.random(n) < 0.8, ptr)
    for array in args:
        array.flags.writeable = False
    args = (*args, Runtime(1))
    # Weights are binary fractions, so that every order of addition gives the same.
    assert_array_equal(concordance_cpu.sums_by_rank(*args), concordance_ref.sums_by_rank(*args))
