"""One coordinate of the likelihoods: fast as the reference, and both as the definitions."""

from collections.abc import Callable
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernels.problems import SCENES, Scene, frozen
from riskset._runtime import Runtime
from riskset._types import RiskSets
from riskset.data.outcome import Outcome
from riskset.kernels import ccd_cpu, ccd_ref, risk_sets_ref
from riskset.kernels.ccd_ref import CompetingStay

TOLERANCE = {"rtol": 1e-11, "atol": 1e-12}
"""After moves that correct sums."""
STEPS = (0.7, -1.3, 2.0)

each_scene = pytest.mark.parametrize("s", SCENES.values(), ids=SCENES)
each_ties = pytest.mark.parametrize("efron", [False, True], ids=["breslow", "efron"])
each_curves = pytest.mark.parametrize("n_curves", [0, 1, 3])
both = pytest.mark.parametrize("cox", [ccd_cpu, ccd_ref], ids=["cpu", "ref"])
both_fg = pytest.mark.parametrize("fg", [ccd_cpu, ccd_ref], ids=["cpu", "ref"])


def mild(s: Scene) -> np.ndarray:
    """A linear predictor that one exponent holds."""
    return frozen(np.clip(s.eta - s.eta.max(), -30, 0))


def columns(s: Scene) -> list[tuple[np.ndarray, np.ndarray]]:
    """Entries in risk order: none, one, some and all; zeros and ones, and any numbers."""
    rng, n = np.random.default_rng(s.n_groups), s.risk.order.size
    made = []
    for share in (0.0, 0.2, 0.6, 1.0):
        place = np.flatnonzero(rng.random(n) < share).astype(np.int32)
        for value in (np.zeros(0), rng.normal(size=place.size)):
            made.append((frozen(place), frozen(value)))
    made.append((frozen(np.array([n - 1], dtype=np.int32)), frozen(np.zeros(0))))
    return made


def stay(s: Scene, n_curves: int) -> CompetingStay:
    """Some rows without an event stay at risk, by curves that may reach 0."""
    rng, n = np.random.default_rng(n_curves + s.n_groups), s.risk.order.size
    stays = (rng.random(n) < 0.5 * (n_curves > 0)) & (s.risk.event_weight == 0)
    return CompetingStay(
        frozen(np.where(stays, rng.uniform(1, 4, n), 0.0)),
        frozen(rng.integers(0, max(n_curves, 1), n)),
        frozen(np.sort(rng.choice([0.0, 0.3, 0.7, 1.0], (n_curves, s.n_groups)), axis=1)),
    )


def check_same(fast: tuple, slow: tuple) -> None:
    for name, got, expected in zip(fast._fields, fast, slow, strict=True):
        assert_allclose(got, expected, err_msg=name, **TOLERANCE)


def check_kernels(s: Scene, stem: tuple[ModuleType, ModuleType], prefix: str, rule: object) -> None:
    """State, derivatives, and both again after every move."""
    fast, slow = (
        {k: getattr(m, f"{prefix}_{k}") for k in ("state", "fused", "move")} for m in stem
    )
    states = [f["state"](mild(s), 0.5, s.risk, rule) for f in (fast, slow)]
    check_same(*states)
    for place, value in columns(s):
        for step in STEPS:
            got, expected = (
                f["fused"](place, value, state, s.risk, rule)
                for f, state in zip((fast, slow), states, strict=True)
            )
            assert_allclose(got, expected, rtol=1e-10, atol=1e-11)
            for f, state in zip((fast, slow), states, strict=True):
                f["move"](place, value, step, state, s.risk, rule)
            check_same(*states)


@each_scene
@each_ties
def test_same_numbers_cox(s: Scene, efron: bool) -> None:
    check_kernels(s, (ccd_cpu, ccd_ref), "cox", efron)


@each_scene
@each_curves
def test_same_numbers_finegray(s: Scene, n_curves: int) -> None:
    check_kernels(s, (ccd_cpu, ccd_ref), "fg", stay(s, n_curves))


def check_sweeps(s: Scene, stem: tuple[ModuleType, ModuleType], prefix: str, rule: object) -> None:
    """Two sweeps over all columns end at the same coefficients, regions and state."""
    entries = [e for e in columns(s) if e[1].size or not e[0].size]
    stop = np.cumsum([place.size for place, _ in entries])
    begin = stop - [place.size for place, _ in entries]
    place = frozen(np.concatenate([place for place, _ in entries]))
    value = frozen(np.concatenate([value for _, value in entries]))
    q = len(entries)
    l1, l2 = frozen(np.linspace(0, 0.4, q)), frozen(np.linspace(0.3, 0.1, q))
    which = (frozen(np.arange(q)), frozen(begin), frozen(stop))
    ends = []
    for module in stem:
        beta, width, curvature = np.zeros(q), np.linspace(0.1, 1.0, q), np.zeros(q)
        state = getattr(module, f"{prefix}_state")(mild(s), 0.5, s.risk, rule)
        for _ in range(2):
            getattr(module, f"{prefix}_sweep")(
                *which, place, value, l1, l2, beta, width, curvature, state, s.risk, rule
            )
        ends.append((beta, width, curvature, state))
    for got, expected in zip(ends[0][:3], ends[1][:3], strict=True):
        assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    assert_allclose(ends[0][3].total, ends[1][3].total, rtol=1e-9)


@each_scene
@each_ties
def test_same_sweeps_cox(s: Scene, efron: bool) -> None:
    check_sweeps(s, (ccd_cpu, ccd_ref), "cox", efron)


@each_scene
@each_curves
def test_same_sweeps_finegray(s: Scene, n_curves: int) -> None:
    check_sweeps(s, (ccd_cpu, ccd_ref), "fg", stay(s, n_curves))


def test_entries_between_those_of_other_columns_are_not_touched() -> None:
    s = SCENES["strata"]
    n = s.risk.order.size
    place = frozen(np.r_[np.arange(n), [2, 5, 9], np.arange(n)].astype(np.int32))
    ends = []
    for begin, stop, own in (([n], [n + 3], place), ([0], [3], place[n : n + 3])):
        beta, width, curvature = np.zeros(1), np.ones(1), np.zeros(1)
        state = ccd_cpu.cox_state(mild(s), 0.5, s.risk, False)
        ccd_cpu.cox_sweep(
            np.array([0]), np.array(begin), np.array(stop), frozen(own), np.zeros(0),
            np.zeros(1), np.ones(1), beta, width, curvature, state, s.risk, False,
        )  # fmt: skip
        ends.append(np.r_[beta, width, curvature, state.total])
    assert ends[0][0] != 0.0
    assert_allclose(ends[0], ends[1], rtol=0)


# ---------------------------------------------------------------------------- definitions


def slopes(f: Callable[[float], float], h: float = 1e-3) -> tuple[float, float]:
    """First and second derivative at 0 by five-point differences."""
    a, b, c, d, e = (f(k * h) for k in (-2, -1, 0, 1, 2))
    return (a - 8 * b + 8 * d - e) / (12 * h), (-a + 16 * b - 30 * c + 16 * d - e) / (12 * h * h)


@both
@each_scene
@each_ties
def test_derivatives_are_those_of_the_likelihood(s: Scene, efron: bool, cox: ModuleType) -> None:
    state = cox.cox_state(mild(s), 0.5, s.risk, efron)
    for place, value in columns(s)[2:]:
        x = np.zeros(s.eta.size, dtype=np.longdouble)
        x[s.risk.order[place]] = value if value.size else 1.0

        def likelihood(t: float, x: np.ndarray = x) -> float:
            eta = mild(s).astype(np.longdouble) + np.longdouble(t) * x
            return risk_sets_ref.cox_pass(eta, s.risk, efron, Runtime(1)).log_likelihood

        first, second = slopes(likelihood)
        size = 1 + s.risk.group_events.sum()
        gradient, hessian = cox.cox_fused(place, value, state, s.risk, efron)
        assert_allclose(gradient, float(first), rtol=1e-8, atol=1e-9 * size)
        assert_allclose(hessian, -float(second), rtol=1e-6, atol=1e-8 * size)


@both_fg
@each_scene
@each_curves
def test_derivatives_are_those_of_the_subdistribution(
    s: Scene, n_curves: int, fg: ModuleType
) -> None:
    risk, rows = s.risk, stay(s, n_curves)
    state = fg.fg_state(mild(s), 0.5, risk, rows)
    own = np.repeat(np.arange(s.n_groups), np.diff(risk.group_ptr))
    stratum = np.cumsum(risk.starts_stratum)
    for place, value in columns(s)[2:]:
        x = np.zeros(s.eta.size)
        x[place] = value if value.size else 1.0

        def likelihood(t: float, x: np.ndarray = x) -> float:
            # From the definition, row by row.
            eta = (mild(s)[risk.order] + t * x).astype(np.longdouble)
            r = risk.weight * np.exp(eta)
            out = (risk.event_weight * eta).sum()
            for g in np.flatnonzero(risk.group_events > 0):
                here = stratum[own] == stratum[g]
                total = r[here & (own <= g)].sum()
                for c in range(n_curves):
                    after = here & (own > g) & (rows.curve == c)
                    total += rows.survival[c, g] * (r * rows.later)[after].sum()
                out -= risk.group_events[g] * np.log(total)
            return out

        first, second = slopes(likelihood)
        size = 1 + risk.group_events.sum()
        gradient, hessian = fg.fg_fused(place, value, state, risk, rows)
        assert_allclose(gradient, float(first), rtol=1e-8, atol=1e-9 * size)
        assert_allclose(hessian, -float(second), rtol=1e-6, atol=1e-8 * size)


def small(time: list[float], event: list[int]) -> RiskSets:
    return Outcome.build(np.array(time), np.array(event, dtype=bool)).risk


def entries(*place: int) -> tuple[np.ndarray, np.ndarray]:
    return np.array(place, dtype=np.int32), np.zeros(0)


def exactly(found: tuple[float, float], gradient: Fraction, hessian: Fraction) -> None:
    assert_allclose(found, (float(gradient), float(hessian)), rtol=1e-15)


@both
def test_three_rows_by_hand(cox: ModuleType) -> None:
    # At the times 3, 2, 1: x = 1, 0, 1 and means 1, 1/2, 2/3 of risk sets of 1, 2 and 3 rows.
    risk = small([3.0, 2.0, 1.0], [1, 1, 1])
    state = cox.cox_state(np.zeros(3), 0.0, risk, False)
    found = cox.cox_fused(*entries(0, 2), state, risk, False)
    exactly(found, 2 - (1 + Fraction(1, 2) + Fraction(2, 3)), Fraction(1, 4) + Fraction(2, 9))


@both
def test_two_tied_events_by_hand(cox: ModuleType) -> None:
    # x = 1 survives; of the two events one has x = 1. Efron's means: 2/3, then (2 - 1/2) / 2.
    risk = small([5.0, 1.0, 1.0], [0, 1, 1])
    state = cox.cox_state(np.zeros(3), 0.0, risk, True)
    found = cox.cox_fused(*entries(0, 1), state, risk, True)
    first, second = Fraction(2, 3), Fraction(3, 4)
    exactly(found, 1 - first - second, first * (1 - first) + second * (1 - second))


@both_fg
def test_a_competing_event_by_hand(fg: ModuleType) -> None:
    # Censored at 3 with x = 1, event at 2 with x = 0, competing event at 1 with x = 1 that counts
    # G(2-) / G(1-) = 1/2 in the risk set at 2: the mean there is (1 + 1/2) / (2 + 1/2) = 3/5.
    risk = small([3.0, 2.0, 1.0], [0, 1, 0])
    rows = CompetingStay(
        np.array([0.0, 0.0, 1.0]), np.zeros(3, dtype=np.int64), np.array([[0.5, 1.0]])
    )
    state = fg.fg_state(np.zeros(3), 0.0, risk, rows)
    found = fg.fg_fused(*entries(0, 2), state, risk, rows)
    exactly(found, -Fraction(3, 5), Fraction(6, 25))


@both
@pytest.mark.parametrize(
    ("gradient", "hessian", "beta", "l1", "l2", "width", "step", "next_width"),
    [
        (3.0, 2.0, 0.0, 0.0, 0.0, 9.0, 1.5, 4.5),  # Newton's step; the region shrinks by half
        (3.0, 2.0, 0.0, 1.0, 0.0, 9.0, 1.0, 4.5),  # to the right of 0 the slope is 3 - 1
        (-3.0, 2.0, 0.0, 1.0, 0.0, 9.0, -1.0, 4.5),
        (0.9, 2.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.5),  # neither direction gains
        (-0.9, 2.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.5),
        (3.0, 2.0, 0.0, 0.0, 0.0, 0.5, 0.5, 1.0),  # at the border, and it grows to twice
        (-3.0, 2.0, 0.0, 0.0, 0.0, 0.5, -0.5, 1.0),
        (-5.0, 2.0, 1.0, 1.0, 0.0, 9.0, -1.0, 4.5),  # -3 would lead across 0
        (5.0, 2.0, -1.0, 1.0, 0.0, 9.0, 1.0, 4.5),
        (-5.0, 2.0, 1.0, 0.0, 0.0, 9.0, -2.5, 5.0),  # without an L1 part it may
        (3.0, 2.0, 1.0, 0.0, 1.0, 9.0, 2.0 / 3.0, 4.5),  # slope 3 - 1, curvature 2 + 1
        (1.0, -1e-18, 0.0, 0.0, 0.0, 0.5, 0.5, 1.0),  # a curvature of 0 but for rounding
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.25),
    ],
)
def test_steps_by_hand(
    cox: ModuleType,
    gradient: float,
    hessian: float,
    beta: float,
    l1: float,
    l2: float,
    width: float,
    step: float,
    next_width: float,
) -> None:
    found = cox.coordinate_step(gradient, hessian, beta, l1, l2, width)
    assert_allclose(found, (step, next_width), rtol=1e-15)
